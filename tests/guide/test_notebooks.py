"""The notebooks of man/guide/examples/: what is stored in each is whole, and each prints it again
where its framework is installed."""

import ast
import builtins
import importlib.util
import json
import pathlib
import re
import sys

import pytest

import batchfs

sys.path.insert(0, str(pathlib.Path(__file__).parent))
nbformat = pytest.importorskip("nbformat", reason="tools/dependencies test installs it")
import notebook_running
from notebook_running import EXAMPLES, LARGEST, NOTEBOOKS, executed, missing, trees
from page_running import ROOT

# Folders of a machine or of somebody on it.
PLACE = re.compile(
    r"(?<![\w.:/])/(?:home|root|work|tmp|usr|var|opt|Users|private)/|[A-Z]:\\\\?Users")
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def printed(notebook):
    return ["".join(output["text"] for output in cell.get("outputs", [])
                    if output["output_type"] == "stream") for cell in notebook.cells]


def kinds(notebook):
    return [[sorted(output.get("data", {})) for output in cell.get("outputs", [])]
            for cell in notebook.cells]


@each_notebook
def test_a_notebook_prints_what_it_shows(path, tmp_path):
    pytest.importorskip("nbclient", reason="tools/dependencies test installs it")
    if lacking := missing(path):
        pytest.skip(f"{path.name} needs {', '.join(lacking)}: `tools/test frameworks` "
                    "installs it and runs this")
    stored, again = read(path), executed(path, tmp_path)
    assert printed(again) == printed(stored)
    assert kinds(again) == kinds(stored)


# ---- without a framework -------------------------------------------------------------------------


def test_every_example_has_a_notebook():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"stores"}
    assert scripts | {"era5"} == {path.stem for path in NOTEBOOKS}


@each_notebook
def test_a_notebook_is_stored_with_its_outputs(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data",
                                                          "execute_result"}
    assert {output.name for output in outputs if output.output_type == "stream"} <= {"stdout"}
    for cell in code:
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert re.match(r"# .{20}", cell.source), (
                f"no comment says what the picture shows: {cell.source[:80]}")
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert notebook.cells[0].source.startswith("# ")
    assert "False" not in " ".join(printed(notebook))  # the statements about its model hold


@each_notebook
def test_a_notebook_names_no_place_of_a_machine(path):
    texts = [cell.source for cell in read(path).cells]
    for cell in read(path).cells:
        for output in cell.get("outputs", []):
            texts += [output.get("text", "")] + [data
                                                 for kind, data in output.get("data", {}).items()
                                                 if kind != "image/png"]
    assert [found[0] for text in texts for found in PLACE.finditer(str(text))] == []


def test_what_a_place_is():
    for text in ("'/home/ann/era5.zarr'", "in /tmp/x", "C:\\Users\\ann", "=/root/x"):
        assert PLACE.search(text), text
    for text in ("https://host/home/x", "gs://bucket/work/", "examples/home/x", "a/tmp/b"):
        assert not PLACE.search(text), text


def exported(script):
    """Names that a module defines: functions, classes, constants."""
    found = set()
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def package_names():
    """batchfs, its public names; and its modules for frameworks, which need not be importable
    here."""
    folder = pathlib.Path(batchfs.__file__).parent
    modules = {path.stem: path for path in folder.glob("[a-z]*.py")}
    return {"batchfs": {*batchfs.__all__, *modules}} | {f"batchfs.{name}": exported(path)
                                                        for name, path in modules.items()}


def unknown_names(parsed):
    """Names that code uses and nothing defines: neither it, nor Python, nor the scripts of
    man/guide/examples/, nor batchfs."""
    known = {path.stem: exported(path) for path in EXAMPLES.glob("*.py")} | package_names()
    nodes = [node for tree in parsed for node in ast.walk(tree)]
    bound, modules, unknown = set(dir(builtins)), {}, set()
    for node in nodes:
        if isinstance(node, ast.Import):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            modules |= {alias.asname or alias.name: alias.name
                        for alias in node.names if alias.name in known}
            modules |= {"batchfs": "batchfs"} if any(alias.name.startswith("batchfs.")
                                                     for alias in node.names) else {}
        elif isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
            if node.module in known:
                unknown |= {f"{node.module}.{alias.name}"
                            for alias in node.names if alias.name not in known[node.module]}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            module = modules[ast.unparse(node.value)]
            if node.attr not in known[module]:
                unknown.add(f"{module}.{node.attr}")
        elif isinstance(node, ast.Name) and node.id not in bound:
            unknown.add(node.id)
    return unknown


@each_notebook
def test_a_notebook_uses_what_the_scripts_define(path):
    assert unknown_names(trees(read(path))) == set()


def test_what_nothing_defines_is_found():
    code = ["import downscaling as d, stores\nfrom segmentation import network, nothing\n"
            "import batchfs.jax, numpy as np",
            "d.Refine(2), d.Refined(2), stores.make('era5'), batchfs.open('x'), "
            "batchfs.opened('x')",
            "network(), missing(np.anything), batchfs.jax.sharded(1), batchfs.jax.shards(1), [x "
            "for x in range(3)]"]
    assert unknown_names([ast.parse(cell) for cell in code]) == {
        "segmentation.nothing", "downscaling.Refined", "batchfs.opened", "missing",
        "batchfs.jax.shards"}


def test_a_notebook_needs_the_frameworks_of_its_script():
    found = {path.stem: notebook_running.frameworks_of(path) for path in NOTEBOOKS}
    assert found == {"era5": [], "forecast_unet": ["torch"], "downscaling": ["torch"],
                     "segmentation": ["torch"], "climate_jax": ["jax"],
                     "cells_dali": ["nvidia.dali"]}


def test_what_is_stored_differs_only_in_what_a_run_shows(tmp_path):
    path = tmp_path / "a.ipynb"
    for number in (1, 2):
        cell = nbformat.v4.new_code_cell("1", execution_count=1)
        cell.id = "cell-0"
        one = f"0000000{number}-1111-2222-3333-444444444444"
        cell.outputs = [nbformat.v4.new_output("execute_result", {
            "text/html": f"<a id='{one}'><a href='#{one}'>{tmp_path}/x.zarr"}, execution_count=1)]
        notebook = nbformat.v4.new_notebook(cells=[cell], metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python", "version": f"3.{number}"}})
        notebook_running.store(notebook, path, tmp_path)
        if number == 1:
            first = path.read_text()
    assert path.read_text() == first and "<a id='id-0'><a href='#id-0'>x.zarr" in first
    cell.outputs = [nbformat.v4.new_output("stream", name="stderr", text="DeprecationWarning")]
    with pytest.raises(SystemExit, match="a.ipynb shows a warning: DeprecationWarning"):
        notebook_running.store(notebook, path, tmp_path)


def test_a_notebook_without_its_framework_is_left_as_it_is(monkeypatch, capsys):
    before = (EXAMPLES / "climate_jax.ipynb").read_bytes()
    monkeypatch.setattr(notebook_running, "missing", lambda path: ["jax"])
    assert notebook_running.main(["climate_jax"]) == 3
    assert "climate_jax.ipynb is left as it is: it needs jax" in capsys.readouterr().err
    assert (EXAMPLES / "climate_jax.ipynb").read_bytes() == before
    with pytest.raises(SystemExit,
                       match="there is no notebook climate; there are cells_dali, climate_jax"):
        notebook_running.main(["climate"])


# ---- as pages of the guide -----------------------------------------------------------------------


def test_a_notebook_becomes_markdown():
    pytest.importorskip("sphinx", reason="tools/dependencies test installs it")
    spec = importlib.util.spec_from_file_location(
        "notebook_page", ROOT / "man" / "guide" / "_extensions" / "notebook_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    saved = {}

    def save(number, data):
        saved[number] = data
        return f"{number}.png"

    picture = {"output_type": "display_data",
               "data": {"image/png": "AAEC", "text/plain": "<Figure>"}}
    cells = [{"cell_type": "markdown", "source": ["# A\n", "b"]},
             {"cell_type": "code", "source": "print('```')",
              "outputs": [{"output_type": "stream", "text": ["```\n"]}]},
             {"cell_type": "code", "source": "# A map of what\n# is shown\ndraw()",
              "outputs": [picture]},
             {"cell_type": "code", "source": "1",
              "outputs": [{"output_type": "execute_result", "data": {"text/plain": "1"}}]}]
    assert module.as_markdown({"cells": cells}, save) == """# A
b

````{code-block} python
print('```')
````

````{code-block} text
:class: output
```
````

```{code-block} python
# A map of what
# is shown
draw()
```

```{image} 1.png
:alt: A map of what is shown
```

```{code-block} python
1
```

```{code-block} text
:class: output
1
```
"""
    assert saved == {1: b"\0\1\2"}
    cells[2]["source"] = "draw()"
    with pytest.raises(Exception, match="begins with a comment"):
        module.as_markdown({"cells": cells}, save)


def test_the_guide_has_a_page_for_each_notebook():
    pages = {path.stem: path.read_text()
             for path in (ROOT / "man" / "guide" / "notebooks").glob("*.md")}
    assert pages == {path.stem: f"```{{notebook}} {path.stem}\n```\n" for path in NOTEBOOKS}
    assert all(json.loads(path.read_text())["cells"] for path in NOTEBOOKS)
