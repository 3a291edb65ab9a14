"""Channels made on the fly, as readers have them: every road gives the bytes of the command."""

import contextlib
import io
import json
import os
import subprocess

import numpy as np
import pytest
from reader_servers import PROGRAM, Server, same
from safetensors.numpy import load_file

import batchfs

FORCINGS = [{"make": "cos_zenith"}, {"make": "sin_local_time"}]
VIEW = {"name": "two", "window": {"time": {"size": 1, "stride": 1}}, "batch": {"size": 3},
        "order": {"shuffle": "global", "seed": 3}, "dtype": "float32", "formats": ["npy", "npz", "safetensors"],
        "tensors": {"x": {"variables": ["t", *FORCINGS, {"make": "ratio", "of": ["t", "orography"]}], "stack": "channel",
                          "offsets": {"time": [-1, 0]}},
                    "forcings": {"variables": FORCINGS, "stack": "channel", "offsets": {"time": [1]}}}}


@pytest.fixture(scope="module")
def view_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("made") / "two.json"
    file.write_text(json.dumps(VIEW))
    return file


@pytest.fixture(scope="module")
def written(store, view_file):
    def npy(number, name):
        command = [PROGRAM, "batch", store, "--view", view_file, "--batch", str(number), "--tensor", name]
        return np.load(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout))

    return {(number, name): npy(number, name) for number in range(3) for name in ("x", "forcings")}


@contextlib.contextmanager
def mounted(store, directory, view_file):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    directory.mkdir()
    subprocess.run([PROGRAM, "mount", str(store), str(directory), "--view", str(view_file)], check=True)
    try:
        yield directory
    finally:
        subprocess.run([PROGRAM, "umount", str(directory)], check=True)


def test_a_server_gives_what_the_command_writes(store, written, tmp_path):
    server = Server(store, tmp_path, {"two": VIEW})
    try:
        for number, batch in zip(range(3), batchfs.open(server.socket, "two")):
            for name in ("x", "forcings"):
                assert same(batch[name].numpy(), written[number, name])
            assert batch["x"].dims == ("sample", "channel", "time", "latitude", "longitude")
    finally:
        server.stop()


def test_a_batch_with_made_channels_as_xarray(store, tmp_path):
    view = {**VIEW, "tensors": {"x": VIEW["tensors"]["x"]}}
    server = Server(store, tmp_path, {"two": view})
    try:
        batch = next(iter(batchfs.open(server.socket, "two")))
        opened = batch.xarray()
        assert np.array_equal(opened.x.values, batch["x"].numpy())
        assert opened.sizes["channel"] == 8 and opened.sizes["latitude"] == 8
    finally:
        server.stop()


def test_the_files_of_a_mount_hold_the_same(store, view_file, written, tmp_path):
    with mounted(store, tmp_path / "mnt", view_file) as directory:
        for number in range(3):
            base = directory / f"views/two/epoch-0000/batch-{number:06d}"
            for name in ("x", "forcings"):
                assert same(np.load(base / f"{name}.npy"), written[number, name])
                assert same(np.load(base.with_suffix(".npz"))[name], written[number, name])
                assert same(load_file(base.with_suffix(".safetensors"))[name], written[number, name])
        info = json.loads((directory / "views/two/schema.json").read_text())
        assert info["tensors"][0]["channels"] == ["t_500", "t_700", "t_850", "cos_zenith", "sin_local_time", "ratio_500",
                                                  "ratio_700", "ratio_850"]
        assert info["tensors"][1]["channels"] == ["cos_zenith", "sin_local_time"]
        assert json.loads((directory / ".batchfs/status.json").read_text())["errors"] == 0
