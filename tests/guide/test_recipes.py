"""The views of the page "Views by example": short, and each gives the batches that the page
shows."""

import io
import json
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import safetensors

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_blocks import blocks_of
from page_running import GUIDE, PROGRAM, run_page

PAGE = GUIDE / "recipes.md"
PLANS = re.findall(r"^\$ batchfs plan (\S+) --view (\S+)(.*)$", PAGE.read_text(), re.M)
LINES = 15  # of a view, at most


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the page has run: with its stores and views."""
    folder = tmp_path_factory.mktemp("recipes")
    done = run_page(PAGE, folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_there_are_many_short_ones():
    assert re.findall(r"^### (\d+)\. ", PAGE.read_text(), re.M) == [str(number + 1)
                                                                    for number in range(len(PLANS))]
    assert len(PLANS) >= 25
    views = {block.file: block.text for block in blocks_of(PAGE) if block.language == "json"}
    assert {view for _, view, _ in PLANS} <= set(views)
    assert {name: len(text.splitlines()) for name, text in views.items()
            if len(text.splitlines()) > LINES} == {}


@pytest.mark.parametrize(("store", "view", "options"), PLANS, ids=[view for _, view, _ in PLANS])
def test_a_batch_of_a_recipe_is_as_planned(folder, store, view, options):
    words = [store, "--view", view, *shlex.split(options)]

    def run(*command):
        return subprocess.run([PROGRAM, *command, *words], cwd=folder, capture_output=True,
                              check=True).stdout

    plan = json.loads(run("plan", "--json"))
    shapes = {tensor["name"]: tuple(tensor["shape"]) for tensor in plan["tensors"]}
    if any(tensor["dtype"] == "bfloat16" for tensor in plan["tensors"]):
        tensors = safetensors.deserialize(run("batch", "--format", "safetensors"))
        assert {name: tuple(tensor["shape"]) for name, tensor in tensors} == shapes
        return
    with np.load(io.BytesIO(run("batch", "--format", "npz"))) as tensors:
        assert {name: tensor.shape for name, tensor in tensors.items()} == shapes
        # Values, and not fill values alone.
        assert [name for name, tensor in tensors.items()
                if tensor.size > 10 and len(np.unique(tensor)) < 3] == []
