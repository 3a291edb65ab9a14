"""Millions of labels: they stay in the memory that semantics(7) promises, or one line says what to
do."""

import io
import json
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr
from measured import measure, peak_of
from watching import eventually, status

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reader"))
from raw_reader import RawReader  # noqa: E402

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
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
    "long strings": (lambda count: np.array([f"{number:08}" * 250
                                             for number in range(count)], dtype=object), {}),
    "very long strings": (lambda count: np.array([chr(97 + number % 26) * MILLION
                                                  for number in range(count)], dtype=object), {}),
}
CHUNK = {"long strings": 1000, "very long strings": 1}
# Kind, number, --memory in MB, and whether a view that does not name labels has them.
MANY = [("floats", MILLION, 64, True), ("times", MILLION, 64, True),
        ("floats", 3 * MILLION, 64, True), ("floats", 4 * MILLION, 64, False),
        ("times", 4 * MILLION, 64, False), ("times", 4 * MILLION, 24, False),
        ("characters", MILLION, 64, True), ("characters", 5 * MILLION, 64, False),
        ("strings", MILLION // 10, 64, True), ("strings", MILLION, 64, False),
        ("long strings", MILLION // 10, 64, False), ("very long strings", 100, 64, False)]
# Beyond 16 MB and half of --memory.
TOO_MANY = [("times", 4 * MILLION, 24), ("floats", 8 * MILLION, 64), ("strings", MILLION, 64)]
# Strings that are known to take too much once they are read.
TOO_LONG = [("long strings", MILLION // 10), ("very long strings", 100)]

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
            group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0,
                               attributes=dims)
            labels = make(count)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of zarr, about strings in format 2
                group.create_array("time", shape=(count,), chunks=(CHUNK.get(kind, 1 << 16),),
                                   dtype=str if labels.dtype == object else labels.dtype,
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
    for number in range(min(8, -(-count // VIEW["batch"]))):
        # no chunk was written
        assert np.isnan(np.load(directory / f"views/v/epoch-0000/batch-{number:06}.npy")).all()
    for name in ("schema.json", "view.json", "epoch-0000/batch-000000.json"):
        json.loads((directory / "views/v" / name).read_text())
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
    for words in (["mount", store, tmp_path / "mnt", "--foreground"],
                  ["serve", store, "--socket", tmp_path / "socket"], ["plan", store]):
        taken = measure(PROGRAM, *words, "--view", view, "--memory", f"{memory}M", timeout=300)
        assert taken.status == 1
        assert taken.peak <= (memory + 64) * MB
        (line,) = taken.error.strip().splitlines()
        assert f"the {count} labels of 'time'" in line
        assert "give more with --memory, or use positions" in line


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize(("kind", "count"), TOO_LONG)
def test_longer_than_a_view_may_name(stores, tmp_path, kind, count):
    store = stores(kind, count)
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW | {"select": {"time": {"from": "a" * 10}}}))
    (tmp_path / "mnt").mkdir()
    for words in (["mount", store, tmp_path / "mnt", "--foreground"], ["plan", store]):
        taken = measure(PROGRAM, *words, "--view", view, "--memory", "64M", timeout=300)
        assert taken.status == 1
        assert taken.peak <= (64 + 64) * MB
        (line,) = taken.error.strip().splitlines()
        assert f"{count} strings" in line and "give more with --memory" in line and "time" in line


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize(("kind", "count"), [("floats", 4 * MILLION), ("times", 4 * MILLION)])
def test_labels_that_a_view_names(mount_at, stores, tmp_path, kind, count):
    """They take half of the memory, and the view has none of its own."""
    first = {"times": "1900-01-01", "floats": 0}[kind]
    view = VIEW | {"select": {"time": {"from": first}}}
    directory = mount_at(stores(kind, count), tmp_path / "mnt", {"v": view}, "--memory", "64M")
    assert np.isnan(np.load(directory / "views/v/epoch-0000/batch-000000.npy")).all()
    json.loads((directory / "views/v/epoch-0000/batch-000000.json").read_text())
    # the first label is the fill value
    assert json.loads((directory / "views/v/schema.json").read_text())["samples"] == count - 1
    assert peak_of(status(directory)["pid"]) <= (64 + 64) * MB


@pytest.mark.says("bounded-memory")
@pytest.mark.parametrize(("kind", "count", "memory", "has"), MANY)
def test_commands(stores, tmp_path, kind, count, memory, has):
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW))
    for words in (["plan"], ["batch", "--format", "npy"]):
        taken = measure(PROGRAM, *words, stores(kind, count), "--view", view, "--memory",
                        f"{memory}M", timeout=300)
        assert taken.status == 0, taken.error
        assert taken.peak <= (memory + 64) * MB


@pytest.mark.says("labels-memory")
def test_views_of_many_parts(mount_at, tmp_path):
    """They share labels, and each shows all of them."""
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(2000,), chunks=(100,), dtype="i1", fill_value=0, attributes=dims)
    group.create_array("time", shape=(2000,), chunks=(100,), dtype="i8", fill_value=-1,
                       attributes=dims)[:] = np.arange(2000)
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {
        "v": VIEW | {"batch": 10, "split": {"blocks": {"time": 10}, "folds": 20}}})
    parts = list((directory / "views").iterdir())
    assert len(parts) == 40
    for part in parts:
        np.testing.assert_array_equal(np.load(part / "coords/time.npy"), np.arange(2000))


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize("block", [1, 1000])
def test_views_of_many_samples(mount_at, tmp_path, block):
    """40 parts of a split of 200,000: each has a list of its samples, and all have the same
    labels."""
    count = 200_000
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0,
                       attributes=dims)
    group.create_array("time", shape=(count,), chunks=(1 << 16,), dtype="f8", fill_value=-1,
                       attributes=dims)[:] = np.arange(count)
    view = VIEW | {"batch": 10, "split": {"blocks": {"time": block}, "folds": 20}}
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view}, "--memory", "64M")
    samples = 0
    for part in (directory / "views").iterdir():
        schema = json.loads((part / "schema.json").read_text())
        samples += schema["samples"]
        np.testing.assert_array_equal(np.load(part / "coords/time.npy"), np.arange(count))
        assert np.isnan(np.load(part / "epoch-0000/batch-000000.npy")).all()
    assert samples == 20 * count
    assert peak_of(status(directory)["pid"]) <= (64 + 64) * MB


@pytest.mark.says("bounded-memory", "labels-memory")
def test_readers_of_the_hand_off(mount_at, tmp_path):
    """Views with labels of their own: readers come until the memory is full, and again when others
    have left."""
    count, views = 400_000, 28
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0,
                       attributes=dims)
    group.create_array("time", shape=(count,), chunks=(1 << 16,), dtype="f8", fill_value=-1,
                       attributes=dims)[:] = np.arange(count)
    select = [{"time": {"from": f"#{1000 * number}", "to": f"#{1000 * number + count // 2 - 1}"}}
              for number in range(views)]
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt",
                         {f"v{number}": VIEW | {"name": f"v{number}", "select": select[number]}
                          for number in range(views)}, "--memory", "64M")
    socket = os.readlink(directory / ".batchfs/handoff.sock")
    readers, refused = [], []
    for number in range(views):
        try:
            readers.append(RawReader(socket, f"v{number}"))
        except AssertionError as error:
            assert "give more with --memory" in str(error)
            refused.append(number)
    assert len(readers) > views // 2 and refused
    again = RawReader(socket, "v0")  # shares what another reader of the view has
    assert peak_of(status(directory)["pid"]) <= (64 + 64) * MB
    for reader in [*readers, again]:
        reader.socket.close()
        for descriptor in reader.view:
            os.close(descriptor)

    def comes():
        try:
            return RawReader(socket, f"v{refused[-1]}")
        except AssertionError:
            return None
    assert eventually(comes)


@pytest.mark.says("bounded-memory", "labels-memory")
@pytest.mark.parametrize("order", [{}, {"shuffle": "block", "seed": 1}])
@pytest.mark.parametrize("labels", [[], ["a", "b"]])
def test_lists_of_samples(mount_at, stores, tmp_path, order, labels):
    """Half a million rows are served, ten million are refused, before they are in memory."""
    store = stores("floats", MILLION)
    file = tmp_path / "rows.csv"
    view = VIEW | {"samples": {"list": str(file)} | ({"labels": labels} if labels else {})}
    if order:
        view["order"] = order
    with file.open("w") as lines:
        lines.write("time,a,b\n")
        lines.writelines(f"#{row % MILLION},{row},{row / 2}\n" for row in range(MILLION // 2))
    directory = mount_at(store, tmp_path / "mnt", {"v": view}, "--memory", "64M")
    epoch = directory / "views/v/epoch-0000"
    files = [*epoch.glob("batch-000000.npy"), *epoch.glob("batch-000000/*.npy")]
    assert len(files) == 1 + len(labels)
    for each in files:
        assert np.load(each).shape[0] == VIEW["batch"]
    assert peak_of(status(directory)["pid"]) <= (64 + 64) * MB
    with file.open("a") as lines:
        lines.writelines(f"#{row % MILLION},{row},{row / 2}\n"
                         for row in range(MILLION // 2, 10 * MILLION))
    path = tmp_path / "v.json"
    path.write_text(json.dumps(view))
    taken = measure(PROGRAM, "plan", store, "--view", path, "--memory", "64M", timeout=300)
    assert taken.peak <= (64 + 64) * MB
    assert taken.status == 1
    (line,) = taken.error.strip().splitlines()
    assert "samples.list" in line and "give more with --memory" in line


@pytest.mark.parametrize("kind", ["floats", "times", "characters", "strings"])
def test_a_list_of_labels(stores, tmp_path, kind):
    """Tens of thousands of labels, in any order, are found in one pass over the coordinate."""
    count = MILLION // 10
    store = stores(kind, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr, about strings in format 2
        zarr.create_array(store / "place", data=np.arange(count, dtype="i4"), zarr_format=2,
                          attributes={"_ARRAY_DIMENSIONS": ["time"]}, fill_value=-1)
    picks = np.random.default_rng(0).permutation(np.arange(1, count))[:70_000]
    labels = xr.open_zarr(store, consolidated=False)["time"].values[picks]
    texts = {"times": lambda: np.datetime_as_string(labels, "m"),
             "characters": lambda: labels.astype("U")}.get(kind, lambda: labels)()
    view = tmp_path / "v.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["place"],
                                "batch": len(picks), "select": {"time": texts.tolist()}}))
    output = subprocess.run([PROGRAM, "batch", store, "--view", view, "--format", "npy"],
                            stdout=subprocess.PIPE, check=True, timeout=300).stdout
    np.testing.assert_array_equal(np.load(io.BytesIO(output)).ravel(), picks)


@pytest.mark.says("bounded-memory")
@pytest.mark.parametrize("size", [1, 10, 1000])
def test_groups_of_strings(tmp_path, size):
    """A million of 80 bytes, that differ or not: they are read in pieces, and their groups
    count."""
    count, memory = MILLION, 24
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("t", shape=(count,), chunks=(1 << 16,), dtype="i1", fill_value=0,
                       attributes=dims)
    texts = np.char.add("station-", np.char.zfill((np.arange(count) // size).astype("U"), 12))
    group.create_array("s", shape=(count,), chunks=(100_000,), dtype="U20",
                       attributes=dims)[:] = texts
    view = tmp_path / "v.json"
    view.write_text(json.dumps(VIEW | {"split": {"groups": {"s": "value"},
                                                 "fractions": {"a": .5, "b": .5}, "part": "a"}}))
    taken = measure(PROGRAM, "plan", tmp_path / "s.zarr", "--view", view, "--memory", f"{memory}M",
                    timeout=300)
    assert taken.peak <= (memory + 64) * MB
    assert taken.status == (1 if size == 1 else 0), taken.error
    if size == 1:
        (line,) = taken.error.strip().splitlines()
        assert "split.groups.s" in line and "give more with --memory" in line
