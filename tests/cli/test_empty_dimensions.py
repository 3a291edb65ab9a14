"""Stores with dimensions of length 0, with and without coordinates: every command ends well or with
one clear line."""

import io
import json

import numpy as np
import pytest
import xarray as xr

COORDINATES = {
    "none": None,
    "times": np.array([], "M8[ns]"),
    "floats": np.array([], "f8"),
    "integers": np.array([], "i8"),
    "texts": np.array([], "U4"),
}


def before_the_first_append(coordinate):
    """No time yet; `space` has elements, `scalar` no dimension, `x` labels."""
    return xr.Dataset({"v": (("time", "x"), np.zeros((0, 4), "f4")),
                       "flags": ("time", np.zeros(0, "?")), "space": ("x", np.arange(1.0, 5)),
                       "scalar": ((), 7)},
                      {"x": np.arange(1, 5)} | ({} if coordinate is None else {"time": coordinate}))


def without_elements():
    return xr.Dataset(
        {"v": (("time", "x", "y"), np.zeros((0, 0, 0), "f4")), "w": ("x", np.zeros(0, "M8[ns]")),
         "plain": (("x", "u"), np.zeros((0, 3), "i2"))},
        {"x": np.array([], "f4"), "time": np.array([], "M8[ns]"), "lat": ("x", np.zeros(0))})


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def zarr_format(request):
    return request.param


@pytest.fixture(scope="module", params=[*COORDINATES, "no elements"])
def store(request, zarr_format, tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "s.zarr"
    named = COORDINATES.get(request.param)
    data = without_elements() if request.param == "no elements" else before_the_first_append(named)
    data.to_zarr(path, zarr_format=zarr_format, consolidated=True)
    return path


def is_clear(done):
    """Success, or one line on stderr and exit code 1."""
    lines = done.stderr.decode().splitlines()
    assert done.returncode in (0, 1), (done.args, done.returncode, lines)
    if done.returncode == 1:
        assert len(lines) == 1 and lines[0].startswith("batchfs: "), (done.args, lines)
    return done.returncode == 0


VIEWS = {
    "along the empty dimension": {"window": {"time": 1}},
    "of what has elements": {"window": {"x": 1}, "variables": ["space"]},
    "of what has none": {"window": {"x": 1}, "variables": ["v"]},
    "of positions": {"window": {"x": 1}, "variables": ["v"],
                     "select": {"time": {"from": "#0", "to": "#1"}}},
    "of a label": {"window": {"x": 1}, "variables": ["v"], "select": {"time": "2000-01-01"}},
    "of the nearest label": {"window": {"x": 1}, "variables": ["v"],
                             "select": {"time": {"nearest": "3"}}},
    "of a range": {"window": {"x": 1}, "variables": ["v"],
                   "select": {"time": {"from": "0", "to": "9"}}},
    "stacked": {"window": {"x": 1}, "tensors": {"t": {"variables": ["v"], "stack": "channel",
                                                      "dims": ["channel", "x"]}}},
    "padded": {"window": {"time": {"size": 2, "edge": "pad"}}, "variables": ["v"]},
    "round": {"window": {"time": {"size": 2, "wrap": True}}, "variables": ["v"]},
    "split": {"window": {"time": 1}, "split": {"train": 0.8, "test": 0.2}},
    "spaced": {"window": {"time": 1}, "samples": {"spacing": {"time": "6h"}}},
    "offsets": {"window": {"time": 1},
                "tensors": {"t": {"variables": ["v"], "offsets": {"time": [0, 1]}}}},
    "durations": {"window": {"time": 1},
                  "tensors": {"t": {"variables": ["v"], "offsets": {"time": ["0h", "6h"]}}}},
    "coarse": {"window": {"x": 2}, "tensors": {"t": {"variables": ["v"], "coarsen": {"time": 2}}}},
    "normalized": {"window": {"x": 1}, "variables": ["v"], "normalize": {
        "method": "zscore", "statistics": {"v": {"dims": ["time"], "mean": [], "std": []}}}},
    "xbatcher": {"xbatcher": {"input_dims": {"x": 2}}},
    "xbatcher along it": {"xbatcher": {"input_dims": {"time": 2}}},
    "the day": {"window": {"x": 1}, "tensors": {"t": {"variables": ["v", {"make": "day_of_year"}],
                                                      "stack": "c", "broadcast": True}}},
}


def commands_of_store(store, folder):
    yield "inspect", store
    yield "inspect", "--json", "--size", store
    for name in ("v", "time", "x", "scalar", "w", "plain"):
        for form in ("npy", "text", "json"):
            yield "cat", store, name, "--format", form
        for selection in ("time=#0", "time=#0:#1", "time=2000", "time=0:3", "x=#0", "time.month=6"):
            yield "cat", store, name, "--format", "npy", "--select", selection
    yield "view", store
    yield "view", store, "--patch", "2", "--time", "2"
    yield "check", store
    yield "doctor", store
    yield "show", store, "-o", folder / "page.html"
    for form in ("2", "3"):
        yield "rechunk", store, "-o", folder / f"copy{form}.zarr", "--format", form
    yield "rechunk", store, "-o", folder / "cut.zarr", "--chunks", "time=2,x=2"


def commands_of_view(store, view, folder):
    for command in ("plan", "check", "statistics"):
        yield command, store, "--view", view
    for form in ("npz", "png", "json"):
        yield "batch", store, "--view", view, "--format", form
    yield "export", store, "--view", view, "--to", "zarr", "-o", folder / "export"
    yield "show", store, "--view", view, "-o", folder / "page.html"


def test_no_command_crashes(batchfs, tmp_path, store):
    for command in commands_of_store(store, tmp_path):
        is_clear(batchfs(*command))


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_crashes(batchfs, tmp_path, store, name):
    view = tmp_path / "view.json"
    view.write_text(json.dumps(VIEWS[name]))
    for command in commands_of_view(store, view, tmp_path):
        is_clear(batchfs(*command))


def test_the_tree_of_a_mount_can_be_read(good, tmp_path, store):
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    good("mount", store, mountpoint)
    try:
        for path in sorted(mountpoint.rglob("*")):
            if path.is_file() and ".batchfs" not in path.parts:
                path.read_bytes()
        assert np.load(mountpoint / "arrays/v/values.npy").size == 0
        assert "v" in (mountpoint / "summary.txt").read_text()
    finally:
        good("umount", mountpoint)


def test_copies_are_the_same(good, tmp_path, store):
    copy = tmp_path / "copy.zarr"
    good("rechunk", store, "-o", copy)
    xr.testing.assert_identical(xr.open_zarr(copy, decode_cf=False).load(),
                                xr.open_zarr(store, decode_cf=False).load())


@pytest.mark.parametrize("coordinate", COORDINATES)
def test_values_and_pages_are_right(good, tmp_path, zarr_format, coordinate):
    store = tmp_path / "s.zarr"
    before_the_first_append(COORDINATES[coordinate]).to_zarr(store, zarr_format=zarr_format)
    page = good("show", store)
    assert b"space" in page and b" of 0)" not in page
    assert np.load(io.BytesIO(good("cat", store, "v", "--format", "npy"))).shape == (0, 4)
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"x": 1}, "variables": ["space", "v"], "batch": 4}))
    with np.load(io.BytesIO(good("batch", store, "--view", view, "--format", "npz"))) as batch:
        np.testing.assert_array_equal(batch["space"], np.arange(1.0, 5).reshape(4, 1))
        assert batch["v"].shape == (4, 0, 1)
