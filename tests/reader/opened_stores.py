"""Stores that tests open by batchfs.open, and the processes that serve them."""

import contextlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import zarr
from reader_servers import PROGRAM
from watching import eventually


VIEW = {"window": {"time": 1}, "variables": ["field"], "batch": {"size": 4}}

# A process of a job: opens the store, prints what it read, and waits for a line.
MEMBER = """
import sys, batchfs
data = batchfs.open(sys.argv[1], view=sys.argv[2])
print(sum(float(batch["field"].numpy().sum()) for batch in data), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    """The user's runtime directory, of this test alone; nothing is left in it."""
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.setenv("BATCHFS", PROGRAM)
    yield directory
    assert eventually(lambda: not servers(directory)), servers(directory)
    assert eventually(lambda: not list(directory.glob("*/*"))), list(directory.glob("*/*"))


@pytest.fixture
def field(tmp_path):
    """A store of its own, and its values."""
    return write_field(tmp_path / "field.zarr", 0)


def write_field(path, seed, steps=18):
    values = np.random.default_rng(seed).normal(size=(steps, 6, 5)).astype("f4")
    group = zarr.create_group(path, overwrite=True)
    group.create_array("field", data=values, chunks=(5, 4, 4), dimension_names=["time", "y", "x"])
    return path, values


def servers(directory):
    """The processes that serve from this runtime directory."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"serve" in words and any(str(directory).encode() in word for word in words):
                found.append(int(process.name))
    return found


def values_of(data):
    return np.concatenate([batch["field"].numpy()[:, 0] for batch in data])


def member(store, view, **options):
    return subprocess.Popen([sys.executable, "-c", MEMBER, store, view], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, **options)


@pytest.fixture
def view_file(tmp_path):
    file = tmp_path / "view.json"
    file.write_text(json.dumps(VIEW))
    return file


def script(text, *arguments, **options):
    """Runs Python, which must succeed; gives what it prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True,
                          text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
