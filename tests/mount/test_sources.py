"""Mounts of several stores: each has one version, each is read again, each outlives the daemon."""

import errno
import json
import os
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest
import xarray as xr
from watching import eventually

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))

VIEW = {"name": "v", "sources": {"a": {}, "b": {"store": "rain", "join": {"time": "exact"}}},
        "window": {"time": 1}, "tensors": {"x": {"variables": ["t"]}, "y": {"variables": ["b:t"]}},
        "batch": {"size": 2}, "order": {"shuffle": "none"}, "formats": ["npy"], "epochs": 9}
SMALL = ("--memory", "24K", "--threads", "2")  # nothing is kept or made ahead


def write(path, times, scale, mode="w", width=6):
    times = np.asarray(times)
    values = (scale * times[:, None] + np.arange(width)).astype("f4")
    dataset = xr.Dataset({"t": (("time", "x"), values)}, {"time": times})
    more = {"append_dim": "time"} if mode == "a" else {
        "encoding": {"t": {"chunks": (2, width), "compressors": None}, "time": {"chunks": (2,)}}}
    dataset.to_zarr(path, zarr_format=3, consolidated=False, mode=mode, **more)


@pytest.fixture
def stores(tmp_path):
    first, rain = tmp_path / "a.zarr", tmp_path / "b.zarr"
    write(first, range(16), 100)
    write(rain, [1, 2, 3, 5, 6, 7, 9, 11], 1000)
    return first, rain


def tensor(directory, name, number, epoch=0):
    return np.load(directory / f"views/v/epoch-{epoch:04d}/batch-{number:06d}/{name}.npy")[:, 0, 0]


def status(directory):
    return json.loads((directory / ".batchfs/status.json").read_text())


def test_files_hold_samples_of_both_stores(mount_at, stores, tmp_path):
    first, rain = stores
    directory = mount_at(first, tmp_path / "mnt", {"v": VIEW}, "--store", f"rain={rain}")
    got = [(tensor(directory, "x", n), tensor(directory, "y", n)) for n in range(4)]
    assert np.array_equal(np.concatenate([x for x, _ in got]),
                          100 * np.array([1, 2, 3, 5, 6, 7, 9, 11]))
    assert np.array_equal(np.concatenate([y for _, y in got]),
                          1000 * np.array([1, 2, 3, 5, 6, 7, 9, 11]))
    stores_shown = status(directory)["snapshot"]["stores"]
    assert stores_shown["rain"]["url"] == str(rain)
    shown = json.loads((directory / "views/v/epoch-0000/batch-000000.json").read_text())
    assert shown["snapshot"]["stores"] == stores_shown
    assert any(name.startswith("b:t/") for name in shown["chunks"])
    assert json.loads((directory / ".batchfs/config.json").read_text())["stores"] == {
        "rain": str(rain)}


def test_a_change_in_the_second_store_is_stale(mount_at, stores, tmp_path):
    first, rain = stores
    directory = mount_at(first, tmp_path / "mnt", {"v": VIEW}, "--store", f"rain={rain}", *SMALL)
    tensor(directory, "y", 0)
    time.sleep(0.05)
    chunk = rain / "t/c/0/0"
    chunk.write_bytes(bytes(chunk.stat().st_size))
    with pytest.raises(OSError) as failed:
        tensor(directory, "y", 0, epoch=1)
    assert failed.value.errno == errno.ESTALE
    assert np.array_equal(tensor(directory, "x", 3), [900, 1100])


def test_a_refresh_reads_the_second_store_too(good, mount_at, stores, tmp_path):
    first, rain = stores
    directory = mount_at(first, tmp_path / "mnt", {"v": VIEW}, "--store", f"rain={rain}")
    before = status(directory)["snapshot"]["stores"]["rain"]["id"]
    assert not json.loads(good("refresh", directory, "--json"))["changed"]
    write(rain, [12, 13, 20], 1000, mode="a")
    answer = json.loads(good("refresh", directory, "--json"))
    assert answer["changed"] and answer["views"][0]["samples"] == 10
    assert np.array_equal(tensor(directory, "y", 4), [12000, 13000])
    assert status(directory)["snapshot"]["stores"]["rain"]["id"] != before


def daemon_of(directory):
    return status(directory)["pid"]


def test_a_daemon_that_dies_is_followed_by_one_of_all_stores(mount_at, stores, tmp_path):
    first, rain = stores
    directory = mount_at(first, tmp_path / "mnt", {"v": VIEW}, "--store", f"rain={rain}", *SMALL)
    tensor(directory, "y", 0)
    os.kill(daemon_of(directory), signal.SIGKILL)
    assert np.array_equal(tensor(directory, "y", 1), [3000, 5000])
    time.sleep(0.05)
    chunk = rain / "t/c/0/0"
    chunk.write_bytes(bytes(chunk.stat().st_size))
    with pytest.raises(OSError) as failed:
        tensor(directory, "y", 0, epoch=1)
    assert failed.value.errno == errno.ESTALE, "the version is that of the daemon before"


def test_a_daemon_that_dies_is_followed_by_one_of_the_same_snapshots(good, mount_at, tmp_path):
    icechunk = pytest.importorskip("icechunk",
                                   reason="tools/dependencies test installs the icechunk package")
    paths = [tmp_path / "a", tmp_path / "b"]
    stores = [icechunk.local_filesystem_storage(str(path)) for path in paths]

    def commit(number, times, scale, **more):
        repository = icechunk.Repository.open_or_create(stores[number])
        session = repository.writable_session("main")
        write(session.store, times, scale, **more)
        return session.commit("steps")

    before = [commit(0, range(12), 100), commit(1, range(12), 1000)]
    directory = mount_at(paths[0], tmp_path / "mnt", {"v": VIEW}, "--store", f"rain={paths[1]}",
                         *SMALL)
    commit(0, range(12, 16), 100, mode="a")
    after = commit(1, range(12, 16), 1000, mode="a")
    for _ in range(2):
        os.kill(daemon_of(directory), signal.SIGKILL)
        assert np.array_equal(tensor(directory, "y", 5), [10000, 11000])
        shown = status(directory)["snapshot"]
        assert [shown["id"], shown["stores"]["rain"]["id"]] == before
    good("refresh", directory)
    os.kill(daemon_of(directory), signal.SIGKILL)
    assert np.array_equal(tensor(directory, "y", 7), [14000, 15000])
    assert status(directory)["snapshot"]["stores"]["rain"]["id"] == after


SERIES = {"name": "v", "sources": {"e": {"store": "era"}}, "window": {"time": 1},
          "tensors": {"x": {"variables": ["t"]}}, "batch": {"size": 2},
          "order": {"shuffle": "none"}, "formats": ["npy"], "epochs": 9}


@pytest.fixture
def series(tmp_path):
    for part, times in enumerate((range(3), range(3, 8), range(10, 14))):
        write(tmp_path / f"e{part}.zarr", times, 100)
    return ["--store", f"era={tmp_path}/e{{0..2}}.zarr"]


def value(directory, number, epoch=0):
    return np.load(directory / f"views/v/epoch-{epoch:04d}/batch-{number:06d}.npy")[:, 0, 0]


def test_stores_one_behind_the_other(good, mount_at, stores, series, tmp_path):
    directory = mount_at(stores[0], tmp_path / "mnt", {"v": SERIES}, *series)
    got = np.concatenate([value(directory, n) for n in range(6)])
    assert np.array_equal(got, 100 * np.array([*range(8), *range(10, 14)]))
    assert list(status(directory)["snapshot"]["stores"]) == ["era.0", "era.1", "era.2"]
    before = status(directory)["snapshot"]["stores"]
    write(tmp_path / "e2.zarr", [14, 15], 100, mode="a")
    assert json.loads(good("refresh", directory, "--json"))["changed"]
    assert np.array_equal(value(directory, 6), [1400, 1500])
    after = status(directory)["snapshot"]["stores"]
    assert [before[name]["id"] == after[name]["id"] for name in after] == [True, True, False]


def test_a_change_in_one_of_them_is_stale_also_for_the_next_daemon(
        mount_at, stores, series, tmp_path):
    directory = mount_at(stores[0], tmp_path / "mnt", {"v": SERIES}, *series, *SMALL)
    assert np.array_equal(value(directory, 2), [400, 500])
    os.kill(daemon_of(directory), signal.SIGKILL)
    assert np.array_equal(value(directory, 4), [1000, 1100])
    time.sleep(0.05)
    chunk = tmp_path / "e1.zarr/t/c/0/0"
    chunk.write_bytes(bytes(chunk.stat().st_size))
    with pytest.raises(OSError) as failed:
        value(directory, 2, epoch=1)
    assert failed.value.errno == errno.ESTALE, "the version is that of the daemon before"
    assert np.array_equal(value(directory, 5), [1200, 1300])


@pytest.fixture
def ensemble(tmp_path):
    for part in range(3):
        write(tmp_path / f"m{part}.zarr", range(8), 10 ** part)
    return ["--store", f"era={tmp_path}/m{{0..2}}.zarr"]


MEMBERS = SERIES | {"sources": {"e": {"store": "era", "concat": {"dim": "member"}}},
                    "tensors": {"field": {"variables": ["t"]}}}


def members(directory, number, epoch=0):
    return np.load(directory / f"views/v/epoch-{epoch:04d}/batch-{number:06d}.npy")[:, :, 0, 0]


def test_members_of_an_ensemble(good, mount_at, stores, ensemble, tmp_path):
    directory = mount_at(stores[0], tmp_path / "mnt", {"v": MEMBERS | {"formats": ["npy", "zarr"]}},
                         *ensemble)
    coordinate = np.load(directory / "views/v/coords/member.npy")
    assert coordinate.tolist() == [0, 1, 2] and coordinate.dtype == np.int64
    batch = xr.open_zarr(directory / "views/v/epoch-0000/batch-000001.zarr", consolidated=False)
    assert (batch.field.dims == ("sample", "member", "time", "x")
            and batch.member.values.tolist() == [0, 1, 2])
    wanted = np.array([2, 3])[:, None] * 10 ** np.arange(3)
    assert np.array_equal(batch.field.values[:, :, 0, 0], wanted)
    assert np.array_equal(members(directory, 1), wanted)
    for part in range(3):
        write(tmp_path / f"m{part}.zarr", [8, 9], 10 ** part, mode="a")
    assert json.loads(good("refresh", directory, "--json"))["changed"]
    assert np.array_equal(members(directory, 4), np.array([8, 9])[:, None] * 10 ** np.arange(3))


def test_a_change_in_a_member_is_stale(mount_at, stores, tmp_path):
    """With chunks of 1.6 KB of which the cache holds few."""
    for part in range(3):
        write(tmp_path / f"m{part}.zarr", range(40), 10 ** part, width=200)
    directory = mount_at(stores[0], tmp_path / "mnt", {"v": MEMBERS}, "--store",
                         f"era={tmp_path}/m{{0..2}}.zarr", *SMALL)
    for number in range(20):
        assert np.array_equal(members(directory, number),
                              np.array([2 * number, 2 * number + 1])[:, None] * 10 ** np.arange(3))
    time.sleep(0.05)
    chunk = tmp_path / "m1.zarr/t/c/11/0"
    chunk.write_bytes(bytes(chunk.stat().st_size))
    with pytest.raises(OSError) as failed:
        members(directory, 11, epoch=1)
    assert failed.value.errno == errno.ESTALE
    assert np.array_equal(members(directory, 12), np.array([24, 25])[:, None] * 10 ** np.arange(3))


YEARS = {"name": "s", "sources": {"a": {}, "all": {"store": "rain",
                                                   "concat": "time", "join": {"time": "exact"}}},
         "window": {"time": 1}, "tensors": {"y": {"variables": ["all:t"]}}, "batch": {"size": 2},
         "order": {"shuffle": "none"}}


@pytest.fixture
def years(tmp_path):
    """A store, and three one behind the other whose names do not sort as their times."""
    write(tmp_path / "a.zarr", range(12), 100)
    for i, name in enumerate(("9", "10", "11")):
        write(tmp_path / f"y{name}.zarr", range(4 * i, 4 * i + 4), 1000)
    return tmp_path / "a.zarr", f"rain={tmp_path}/y{{9..11}}.zarr"


def shown(page):
    return page.decode() if isinstance(page, bytes) else page.read_text()


def test_show_and_report_of_a_mount_take_its_stores(good, mount_at, years, tmp_path):
    first, series = years
    directory = mount_at(first, tmp_path / "mnt", {"s": YEARS}, "--store", series)
    config = json.loads((directory / ".batchfs/config.json").read_text())
    assert config["series"] == {"rain": ["rain.9", "rain.10", "rain.11"]}
    assert config["stores"]["rain.10"] == str(tmp_path / "y10.zarr")
    page = shown(good("show", directory))
    assert "12 samples" in page and "No batch: " not in page
    good("report", directory, "--batch", "-o", tmp_path / "report.html")
    page = shown(tmp_path / "report.html")
    assert "Batch 0 of the view s" in page and "No batch: " not in page
    # Stores that the command names are those of the page.
    write(tmp_path / "other.zarr", range(5), 1)
    assert "5 samples" in shown(good("show", directory,
                                     "--store", f"rain={tmp_path}/{{other,y11}}.zarr", "--view",
                                     own_view(tmp_path)))


def own_view(folder):
    file = folder / "own.json"
    file.write_text(json.dumps(
        YEARS | {"sources": {"a": {}, "all": {"store": "rain.other", "join": {"time": "exact"}}}}))
    return file


def test_show_and_report_of_a_server_take_its_stores(good, years, tmp_path):
    first, series = years
    (tmp_path / "s.json").write_text(json.dumps(YEARS))
    socket = tmp_path / "s.sock"
    server = subprocess.Popen([PROGRAM, "serve", first, "--view", tmp_path / "s.json", "--socket",
                               socket, "--store", series], stderr=subprocess.DEVNULL)
    try:
        assert eventually(
            lambda: socket.exists()
            and subprocess.run([PROGRAM, "status", socket], capture_output=True).returncode == 0)
        page = shown(good("show", socket))
        assert "12 samples" in page and "No batch: " not in page
        good("report", socket, "--batch", "-o", tmp_path / "report.html")
        assert "Batch 0 of the view s" in shown(tmp_path / "report.html")
    finally:
        server.terminate()
        server.wait(timeout=20)
