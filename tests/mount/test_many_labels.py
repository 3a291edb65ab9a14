"""Millions of labels: they stay in the memory that semantics(7) promises, or one line says what to do."""

import json
import os
import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr
from measured import measure, peak_of
from watching import status

PROGRAM = os.environ.get("BATCHFS", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
MB = 1 << 20
VIEW = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": 4096}
MILLION = 1_000_000


def names(count):
    return np.char.add("station ", np.arange(count).astype("U"))


LABELS = {  # values, attributes
    "floats": (lambda count: np.arange(count) / 8, {}),
    "times": (np.arange, {"units": "minutes since 1900-01-01"}),
    "characters": (lambda count: names(count).astype("S15"), {}),
    "strings": (lambda count: names(count).astype(object), {}),
}
# Kind, number, --memory in MB, and whether a view that does not name labels has them.
MANY = [("floats", MILLION, 64, True), ("times", MILLION, 64, True),
        ("times", 4 * MILLION, 24, False), ("characters", MILLION, 64, True), ("characters", 5 * MILLION, 64, False),
        ("strings", MILLION // 10, 64, True), ("strings", MILLION, 64, False)]
# Beyond 16 MB and half of --memory.
TOO_MANY = [("times", 4 * MILLION, 24), ("floats", 8 * MILLION, 64), ("strings", MILLION, 64)]

pytestmark = pytest.mark.not_sanitized("it takes several times the memory")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The store of so many labels of a kind, made once."""
    made = {}

    def store(kind, count):
        if (kind, count) not in made:
            path = tmp_path_factory.mktemp("labels") / "s.zarr"
            make, attributes = LABELS[kind]
            group = zarr.create_group(path, zarr_format=2)
            dims = {"_ARRAY_DIMENSIONS": ["time"]}
            group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0, attributes=dims)
            labels = make(count)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of zarr, about strings in format 2
                group.create_array("time", shape=(count,), chunks=(1 << 16,), dtype=str if labels.dtype == object else labels.dtype,
                                   attributes=dims | attributes)[:] = labels
            made[kind, count] = path
        return made[kind, count]
    return store


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize(("kind", "count", "memory", "has"), MANY)
def test_mount(mount_at, stores, tmp_path, kind, count, memory, has):
    store = stores(kind, count)
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEW}, "--memory", f"{memory}M")
    pid = status(directory)["pid"]
    for number in range(8):
        assert np.isnan(np.load(directory / f"views/v/epoch-0000/batch-{number:06}.npy")).all()  # no chunk was written
    kept = directory / "views/v/coords/time.npy"
    assert kept.exists() == has
    if has:
        expected = xr.open_zarr(store, consolidated=False)["time"].values
        np.testing.assert_array_equal(np.load(kept).astype(expected.dtype), expected)
    assert peak_of(pid) <= (memory + 64) * MB


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize(("kind", "count", "memory"), TOO_MANY)
def test_more_than_a_view_may_name(stores, tmp_path, kind, count, memory):
    store = stores(kind, count)
    first = {"times": "1900-01-01", "floats": 0, "strings": "station 0"}[kind]
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW | {"select": {"time": {"from": first}}}))
    (tmp_path / "mnt").mkdir()
    for words in (["mount", store, tmp_path / "mnt", "--foreground"], ["serve", store, "--socket", tmp_path / "socket"], ["plan", store]):
        taken = measure(PROGRAM, *words, "--view", view, "--memory", f"{memory}M", timeout=300)
        assert taken.status == 1
        assert taken.peak <= (memory + 64) * MB
        (line,) = taken.error.strip().splitlines()
        assert f"the {count} labels of 'time'" in line
        assert "give more with --memory, or use positions" in line


@pytest.mark.says("bounded-memory")
@pytest.mark.parametrize(("kind", "count", "memory", "has"), MANY)
def test_commands(stores, tmp_path, kind, count, memory, has):
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW))
    for words in (["plan"], ["batch", "--format", "npy"]):
        taken = measure(PROGRAM, *words, stores(kind, count), "--view", view, "--memory", f"{memory}M", timeout=300)
        assert taken.status == 0, taken.error
        assert taken.peak <= (memory + 64) * MB


@pytest.mark.says("labels-memory")
def test_views_of_many_parts(mount_at, tmp_path):
    """They share labels, and each shows all of them."""
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(2000,), chunks=(100,), dtype="i1", fill_value=0, attributes=dims)
    group.create_array("time", shape=(2000,), chunks=(100,), dtype="i8", fill_value=-1, attributes=dims)[:] = np.arange(2000)
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": VIEW | {"batch": 10, "split": {"blocks": {"time": 10}, "folds": 20}}})
    parts = list((directory / "views").iterdir())
    assert len(parts) == 40
    for part in parts:
        np.testing.assert_array_equal(np.load(part / "coords/time.npy"), np.arange(2000))


@pytest.mark.says("bounded-memory")
@pytest.mark.parametrize("size", [1, 10, 1000])
def test_groups_of_strings(tmp_path, size):
    """A million of 80 bytes, that differ or not: they are read in pieces, and their groups count."""
    count, memory = MILLION, 24
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0, attributes=dims)
    texts = np.char.add("station-", np.char.zfill((np.arange(count) // size).astype("U"), 12))
    group.create_array("s", shape=(count,), chunks=(100_000,), dtype="U20", attributes=dims)[:] = texts
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW | {"split": {"groups": {"s": "value"}, "fractions": {"a": .5, "b": .5}, "part": "a"}}))
    taken = measure(PROGRAM, "plan", tmp_path / "s.zarr", "--view", view, "--memory", f"{memory}M", timeout=300)
    assert taken.peak <= (memory + 64) * MB
    assert taken.status == (1 if size == 1 else 0), taken.error
    if size == 1:
        (line,) = taken.error.strip().splitlines()
        assert "split.groups.s" in line and "give more with --memory" in line
