"""tools/docs builds the guide without a warning; every link inside it leads somewhere, and the
manual pages are whole."""

import html
import html.parser
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

import numpy as np
import pytest
import zarr

import batchfs

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_running import PROGRAM, ROOT



@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    done = subprocess.run([ROOT / "tools" / "docs", folder], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """The links, anchors and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "img":
            self.pictures.append(values)


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def test_links_inside_the_site_lead_somewhere(site, pages):
    assert len(pages) > 8
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme or target.netloc:
                continue
            file = path if not target.path else (path.parent
                                                 / urllib.parse.unquote(target.path)).resolve()
            anchor = urllib.parse.unquote(target.fragment)
            if not file.is_file() or (anchor and file.suffix == ".html"
                                      and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_pictures_exist_and_say_what_they_show(site, pages):
    wrong = [f"{path.relative_to(site)}: {picture.get('src')}" for path, page in pages.items()
             for picture in page.pictures if not (path.parent / picture["src"]).is_file()
             or len(picture.get("alt") or "") < 20]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "man").glob("*.[1-9]")))
def test_a_manual_page_is_in_the_site_with_all_its_sections(site, name):
    source = (ROOT / "man" / name).read_text()
    text = (site / "manual" / f"{name}.html").read_text()
    titles = [html.unescape(title) for title in re.findall(r"<h[2-4]>(.*?)<a ", text)]
    for macro, title in re.findall(r"^\.(Sh|Ss) (.*)$", source, re.M):
        assert (title.capitalize() if macro == "Sh" else title).strip('"') in titles, title
    # The last words of the page, so that nothing is cut off.
    last = [line for line in source.splitlines()
            if line and not line.startswith(".")][-1].split()[0]
    assert last in text


def test_every_public_name_of_the_package_is_described(pages, site):
    reference = site / "python.html"
    missing = [name for name in batchfs.__all__ if name != "__version__"
               and f"batchfs.{name}" not in pages[reference].anchors]
    assert missing == []


def test_pictures_are_those_of_their_script(tmp_path):
    folder = ROOT / "man" / "guide"
    subprocess.run([sys.executable, folder / "_pictures" / "make_pictures.py", tmp_path],
                   check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (folder / "_static" / "pictures").iterdir()}
    assert made == kept and len(made) == 6
    for text in made.values():
        assert 'role="img"' in text and "<title" in text and "<desc" in text


def test_the_orders_in_the_picture_are_those_of_the_program(tmp_path):
    path = ROOT / "man" / "guide" / "_pictures" / "make_pictures.py"
    spec = importlib.util.spec_from_file_location("make_pictures", path)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("a", data=np.arange(24, dtype="i4"), chunks=(4,), dimension_names=["time"])
    for shuffle in ("none", "global", "block"):
        order = {"shuffle": shuffle} | ({"buffer": 2} if shuffle == "block" else {})
        view = {"name": "v", "window": {"time": 1}, "batch": 4, "order": order}
        found = []
        for number in range(6):
            words = ["batch", tmp_path / "a.zarr", "--view=-", "--batch", str(number),
                     "--format=json"]
            done = subprocess.run([PROGRAM, *words], input=json.dumps(view).encode(),
                                  capture_output=True, check=True)
            found += json.loads(done.stdout)["samples"]
        assert found == pictures.order_of(shuffle), shuffle


def test_the_first_page_is_short(site):
    """Two screens: at most a hundred lines of text and code, as they are shown."""
    text = (site / "getting-started.html").read_text()
    article = text[text.index("<article"):text.index("</article>")]
    shown = html.unescape(re.sub(r"<[^>]*>", "", article))
    assert 40 < len([line for line in shown.splitlines() if line.strip()]) <= 100


def test_docstrings_become_restructured_text():
    path = ROOT / "man" / "guide" / "_extensions" / "plain_docstrings.py"
    spec = importlib.util.spec_from_file_location("plain_docstrings", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain = ["Opens `a", "view`.", "", "place, at  a store", "           or `mount`",
             "view       its keys", "", "    import x", "      y", ""]
    assert module.as_rst(plain) == ["Opens ``a view``.", "", "``place``, ``at``", "    a store",
                                    "    or ``mount``", "", "``view``", "    its keys", "",
                                    ".. code-block:: python", "", "    import x", "      y", ""]
