"""Sphinx configuration of the users' guide. `tools/docs` builds it."""

import pathlib
import re
import sys

GUIDE = pathlib.Path(__file__).resolve().parent
ROOT = GUIDE.parents[1]
sys.path[:0] = [str(GUIDE / "_extensions"), str(ROOT / "tools" / "python")]

project = "batchfs"
author = "the batchfs developers"
version = release = re.search(r'VERSION = "(.*)"',
                              (ROOT / "tools/python/batchfs/_version.py").read_text()).group(1)
html_title = "batchfs"
html_domain_indices = False
html_show_copyright = False
html_show_sourcelink = False

extensions = ["myst_parser", "sphinx.ext.autodoc", "manual_page", "notebook_page",
              "plain_docstrings"]
exclude_patterns = ["_extensions", "_pictures", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# "-n" reports references that lead nowhere: ours, not those to names of Python and numpy.
nitpick_ignore_regex = [(r"py:.*", r"(?!batchfs\b).*"), (r"py:.*", r"batchfs\._.*")]

# The extension module is compiled, torch is large: the pages need neither.
autodoc_mock_imports = ["batchfs._core", "distributed", "jax", "lightning", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "navbar_center": [],  # the pages are in the sidebar
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"**": ["sidebar-guide"]}
html_static_path = ["_static"]
html_css_files = ["guide.css"]
