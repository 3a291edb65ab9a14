"""Listed and weighted samples with labels, over each way that batches come: a server, a mount, its
files and Zarr batches."""

import json
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from reader_servers import PROGRAM, Server

import batchfs

T, Y, X = 20, 6, 8
CSV = "rows.csv"
VIEW = {"window": {"time": 2, "lat": 3}, "variables": ["t"], "batch": {"size": 4},
        "order": {"shuffle": "block", "seed": 2}, "epochs": 2, "formats": ["npy", "zarr"]}
VIEWS = {
    "two": VIEW,  # required by Server
    "listed": VIEW | {"samples": {"list": CSV, "labels": ["kind", "rain"]}},
    "drawn": VIEW | {"epochs": {"count": 2, "samples": 13},
                     "samples": {"list": CSV, "labels": ["rain"], "weights": {"column": "rain"}}},
    "single": VIEW | {"dtype": "float32", "samples": {"list": CSV, "labels": ["rain"]}},
}
for view_name in VIEWS:
    VIEWS[view_name] = VIEWS[view_name] | {"name": view_name}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    rng = np.random.default_rng(1)
    times, latitudes = pd.date_range("2001-01-01", periods=T, freq="6h"), np.linspace(50, 0, Y)
    store = tmp_path_factory.mktemp("listed") / "s.zarr"
    ds = xr.Dataset({"t": (("time", "lat", "lon"), rng.random((T, Y, X)).astype("f4"))},
                    {"time": times, "lat": latitudes})
    ds.to_zarr(store, zarr_format=2, encoding={"t": {"chunks": (5, 2, 8)}})
    rows = np.column_stack([rng.integers(0, T - 1, 22), rng.integers(0, Y - 2, 22)])
    frame = pd.DataFrame({"time": times[rows[:, 0]], "lat": latitudes[rows[:, 1]],
                          "kind": rng.integers(0, 5, 22), "rain": rng.random(22)})
    folder = tmp_path_factory.mktemp("views")
    frame.to_csv(folder / CSV, index=False)
    server = Server(store, folder, VIEWS)
    directory = tmp_path_factory.mktemp("mount") / "mnt"
    directory.mkdir()
    files = [part for name in VIEWS for part in ("--view", str(folder / f"{name}.json"))]
    subprocess.run([PROGRAM, "mount", str(store), str(directory), *files], check=True)
    yield ds, rows, frame, server.socket, directory, folder
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)
    server.stop()


@pytest.mark.parametrize("mode", ["serve", "mount", "files"])
@pytest.mark.parametrize("name", ["listed", "drawn", "single"])
def test_tensors_labels_and_numbers(made, name, mode):
    ds, rows, frame, socket, directory, _ = made
    data = batchfs.open(socket if mode == "serve" else directory, name,
                        mode="files" if mode == "files" else "auto")
    dtype = "float32" if name == "single" else "float64"
    for epoch in range(2):
        data.set_epoch(epoch)
        seen = []
        for batch in data:
            index = batch.index
            seen += index.tolist()
            np.testing.assert_array_equal(batch.labels["time"], ds.time.values[rows[index, 0]])
            np.testing.assert_array_equal(batch.labels["lat"], ds.lat.values[rows[index, 1]])
            np.testing.assert_array_equal(batch["t"].numpy(),
                                          np.stack([ds.t.values[t:t + 2, y:y + 3]
                                                    for t, y in rows[index]]))
            rain = batch["rain"].numpy()
            assert rain.dtype == dtype and rain.shape == (len(index),)
            np.testing.assert_array_equal(rain, frame["rain"].values[index].astype(dtype))
            if name == "listed":
                assert batch["kind"].numpy().dtype == "int64"
                np.testing.assert_array_equal(batch["kind"].numpy(), frame["kind"].values[index])
            labelled = batch.xarray()
            assert labelled["rain"].dims == ("sample",) and np.array_equal(
                labelled["rain"].values, rain)
        assert len(seen) == (13 if name == "drawn" else 22) and (name == "drawn"
                                                                 or sorted(seen) == list(range(22)))


def test_zarr_batches(made):
    ds, rows, frame, _, directory, _ = made
    folder = directory / "views/listed/epoch-0001"
    for b in range(6):
        index = json.loads((folder / f"batch-{b:06}.json").read_text())["samples"]
        with xr.open_zarr(folder / f"batch-{b:06}.zarr") as batch:
            np.testing.assert_array_equal(batch["kind"].values, frame["kind"].values[index])
            np.testing.assert_array_equal(batch["rain"].values, frame["rain"].values[index])
            np.testing.assert_array_equal(batch["t"].values, np.stack([
                ds.t.values[t:t + 2, y:y + 3] for t, y in rows[index]]))
            assert batch["rain"].dims == ("sample",)


def test_the_resolved_view_names_the_file_and_its_digest(made):
    directory = made[4]
    resolved = json.loads((directory / "views/listed/view.json").read_text())
    assert (resolved["samples"]["list"]["file"] == CSV
            and resolved["samples"]["list"]["digest"].startswith("xxh3:"))
    schema = json.loads((directory / "views/listed/schema.json").read_text())
    kinds = {t["name"]: t for t in schema["tensors"]}
    assert kinds["kind"] == {"name": "kind", "dtype": "int64", "shape": [4], "dims": ["sample"],
                             "variables": [], "attributes": {}}
    assert schema["samples"] == 22


def test_resume_with_another_world(made):
    """The draws of a batch depend on its number alone."""
    _, _, _, socket, _, _ = made
    def numbers(rank, world):
        return [batch.index.tolist()
                for batch in batchfs.open(socket, "drawn", rank=rank, world=world)]
    alone = numbers(0, 1)
    for world in (2, 3):
        for rank in range(world):
            assert numbers(rank, world) == alone[rank::world]
