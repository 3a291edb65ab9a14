"""The notebooks of examples/: each runs, and prints what is stored in it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_running import ROOT, environment

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def printed(notebook):
    return ["".join(output["text"] for output in cell.get("outputs", []) if output["output_type"] == "stream")
            for cell in notebook.cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_prints_what_it_shows(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="tools/dependencies test installs it")
    nbclient = pytest.importorskip("nbclient", reason="tools/dependencies test installs it")
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples"))  # for stores.py
    stored, again = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    nbclient.NotebookClient(again, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(again) == printed(stored)
    kinds = [[sorted(output.get("data", {})) for output in cell.get("outputs", [])] for cell in stored.cells]
    assert kinds == [[sorted(output.get("data", {})) for output in cell.get("outputs", [])] for cell in again.cells]
    assert any("image/png" in output for cell in kinds for output in cell)
