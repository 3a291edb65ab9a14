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
        "order": {"shuffle": "global", "seed": 3}, "dtype": "float32",
        "formats": ["npy", "npz", "safetensors"], "tensors": {
            "x": {"variables": ["t", *FORCINGS, {"make": "ratio", "of": ["t", "orography"]}],
                  "stack": "channel", "offsets": {"time": [-1, 0]}},
            "forcings": {"variables": FORCINGS, "stack": "channel", "offsets": {"time": [1]}}}}


@pytest.fixture(scope="module")
def view_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("made") / "two.json"
    file.write_text(json.dumps(VIEW))
    return file


@pytest.fixture(scope="module")
def written(store, view_file):
    def npy(number, name):
        command = [PROGRAM, "batch", store, "--view", view_file, "--batch", str(number), "--tensor",
                   name]
        return np.load(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout))

    return {(number, name): npy(number, name) for number in range(3) for name in ("x", "forcings")}


@contextlib.contextmanager
def mounted(store, directory, view_file):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    directory.mkdir()
    subprocess.run([PROGRAM, "mount", str(store), str(directory), "--view", str(view_file)],
                   check=True)
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
                assert same(load_file(base.with_suffix(".safetensors"))[name],
                            written[number, name])
        info = json.loads((directory / "views/two/schema.json").read_text())
        assert info["tensors"][0]["channels"] == ["t_500", "t_700", "t_850", "cos_zenith",
                                                  "sin_local_time", "ratio_500", "ratio_700",
                                                  "ratio_850"]
        assert info["tensors"][1]["channels"] == ["cos_zenith", "sin_local_time"]
        assert json.loads((directory / ".batchfs/status.json").read_text())["errors"] == 0


# ---- coarsened tensors ----

COARSE = {"latitude": 2, "longitude": 4}
PAIRS = {"name": "two", "window": {"time": {"size": 2, "stride": 1}}, "batch": 3,
         "formats": ["npy", "zarr"], "order": {"shuffle": "global", "seed": 1},
         "tensors": {"low": {"variables": ["t"], "coarsen": COARSE}, "high": {"variables": ["t"]},
                     "sums": {"variables": ["t"],
                              "coarsen": {"time": {"size": 2, "how": "sum"}, **COARSE}}}}


def test_coarsened_batches_and_their_labels(store, tmp_path):
    """By a server and a mount, and as files: xarray.coarsen of the store's values and
    coordinates."""
    import xarray as xr

    data = xr.open_zarr(store).t.load().astype("f8")
    means = data.coarsen(COARSE, boundary="exact").mean()
    server = Server(store, tmp_path, {"two": PAIRS})
    try:
        batch = next(iter(batchfs.open(server.socket, "two")))
        opened = batch.xarray()
        assert opened.low.dims == ("sample", "low_time", "level", "latitude", "longitude")
        assert opened.high.dims == ("sample", "high_time", "level", "high_latitude",
                                    "high_longitude")
        for dim in COARSE:
            np.testing.assert_allclose(opened[dim].values, means[dim].values, rtol=1e-6)
            assert opened[dim].dtype == means[dim].dtype
            np.testing.assert_array_equal(opened[f"high_{dim}"].values, data[dim].values)
            np.testing.assert_array_equal(batch["low"].coords[dim], opened[dim].values)
        for row, start in enumerate(batch.labels["time"]):
            at = int(np.flatnonzero(data.time.values == start)[0])
            np.testing.assert_allclose(opened.low[row], means[at:at + 2], rtol=1e-6)
            np.testing.assert_array_equal(opened.high[row], data[at:at + 2].astype("f4"))
        opened.load()
    finally:
        server.stop()
    (tmp_path / "pairs.json").write_text(json.dumps(PAIRS))
    with mounted(store, tmp_path / "m", tmp_path / "pairs.json") as directory:
        theirs = xr.open_zarr(directory / "views/two/epoch-0000/batch-000000.zarr").load()
        xr.testing.assert_identical(opened.drop_attrs(), theirs.drop_attrs())
        assert set(opened.coords) == set(theirs.coords)


def test_predictions_of_coarsened_tensors_are_refused(store, tmp_path):
    server = Server(store, tmp_path, {"two": PAIRS})
    try:
        data = batchfs.open(server.socket, "two")
        with pytest.raises(batchfs.NotSupported, match="coarsens it"):
            batchfs.create(tmp_path / "out.zarr", like=data, store=store, tensor="low")
    finally:
        server.stop()
