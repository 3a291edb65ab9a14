"""States of a store that grows, over deaths and upgrades of the daemon: a path, a name and an inode
mean one state."""

import errno
import json
import math
import os
import pathlib
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import xarray as xr
import zarr
from growing import VIEW, append, batches, create, generations, status, steps, values

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))


class PlainStore:
    def __init__(self, folder):
        self.path = folder / "s.zarr"
        create(self.path, 8)

    def append(self, first, count):
        append(self.path, first, count)


class IcechunkStore:
    def __init__(self, folder):
        icechunk = pytest.importorskip(
            "icechunk", reason="tools/dependencies test installs the icechunk package")
        self.path = folder / "repository"
        self.repository = icechunk.Repository.create(
            icechunk.local_filesystem_storage(str(self.path)))
        session = self.repository.writable_session("main")
        dataset, encoding = steps(0, 8)
        dataset.to_zarr(session.store, zarr_format=3, consolidated=False, encoding=encoding)
        session.commit("first")

    def append(self, first, count):
        session = self.repository.writable_session("main")
        steps(first, count)[0].to_zarr(session.store, append_dim="time", consolidated=False)
        session.commit(f"{count} more")


@pytest.fixture(params=[PlainStore, IcechunkStore], ids=["plain", "icechunk"])
def store(request, tmp_path):
    return request.param(tmp_path)


def wait_for_another(directory, pid, patience=60):
    until = time.monotonic() + patience
    while status(directory)["pid"] == pid:
        assert time.monotonic() < until, "no other daemon takes over"
        time.sleep(0.02)


def kill(directory):
    pid = status(directory)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for_another(directory, pid)


def check_newest(directory, samples):
    """Every path shows the newest state, with its labels, and nothing else."""
    view, epoch = directory / "views/train", directory / "views/train/epoch-0000"
    count = math.ceil(samples / 4)
    assert len(batches(directory)) == count
    assert np.array_equal(np.load(view / "coords/time.npy"), np.arange(samples))
    schema = json.loads((view / "schema.json").read_text())
    assert (schema["samples"], schema["batches"]) == (samples, count)
    state = status(directory)["snapshot"]["id"]
    for number in range(count):
        provenance = json.loads((epoch / f"batch-{number:06}.json").read_text())
        assert provenance["snapshot"]["id"] == state
        assert provenance["samples"] == list(range(number * 4, min(samples, number * 4 + 4)))
    assert not (epoch / f"batch-{count:06}.npy").exists()
    assert np.array_equal(values(directory)[:, 0], np.arange(samples) * 100)
    assert json.loads((directory / "store.json").read_text())["snapshot"] == state


def read_all(folder):
    """Reads through an open folder of a view, like programs that stay in it."""
    def read(name):
        with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
            return file.read()
    epoch = os.open("epoch-0000", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    names = sorted(os.listdir(epoch))
    os.close(epoch)
    return names, read("schema.json"), read("coords/time.npy"), read("epoch-0000/batch-000001.json")


@pytest.mark.parametrize("states", [16, 40])
@pytest.mark.says("refresh-numbers")
def test_a_state_that_is_gone_never_comes_back(good, mount_at, store, tmp_path, states):
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    samples = 8

    def refresh():
        nonlocal samples
        store.append(samples, 1)
        samples += 1
        good("refresh", directory)

    def replace():
        good("mount", store.path, directory, "--view", tmp_path / "mnt-train.json", "--replace")

    held = []
    for turn in range(states):
        refresh()
        check_newest(directory, samples)
        # A program stays in the folder of this state while the next one comes.
        if turn % 8 == 0:
            folder = os.open(directory / "views/train", os.O_RDONLY | os.O_DIRECTORY)
            held.append((folder, read_all(folder)))
        if turn % 8 == 1:
            folder, before = held[-1]
            assert read_all(folder) == before
            (kill if turn % 16 == 1 else lambda _: replace())(directory)
            check_newest(directory, samples)
            with pytest.raises(OSError) as failed:
                os.open("view.json", os.O_RDONLY, dir_fd=folder)
            assert failed.value.errno == errno.ESTALE
        if turn % 8 == 2:
            os.close(held[-1][0])
    assert generations(directory, 1) == 1


@pytest.mark.says("times")
def test_a_states_files_have_the_time_of_its_reading(good, mount_at, store, tmp_path):
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    names = ["views/train/schema.json", "views/train/epoch-0000",
             "views/train/epoch-0000/batch-000000.npy", "arrays/t/values.npy", "store.json"]

    def times(of=None):
        return {os.stat(name, dir_fd=of).st_mtime
                for name in names} if of else {(directory / name).stat().st_mtime for name in names}

    root = directory.stat().st_mtime
    (first,) = times()
    assert first == root
    time.sleep(1.1)  # times are in seconds
    store.append(8, 1)
    good("refresh", directory)
    (second,) = times()
    assert second > first and abs(second - time.time()) < 60
    assert directory.stat().st_mtime == root == (directory / ".batchfs/log").stat().st_mtime
    kill(directory)
    assert times() == {second}


@pytest.mark.says("refresh-race")
def test_readers_and_deaths_while_the_store_grows(batchfs, mount_at, tmp_path):
    """No reader finds a name missing that it was shown, and none is shown less than a refresh that
    has ended showed."""
    store = IcechunkStore(tmp_path)  # a daemon that takes over reads the snapshot that was served
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    shown, wrong, reads, stop = [8], [], [], threading.Event()

    def read():
        folder = directory / "views/train/epoch-0000"
        while not stop.is_set():
            least = shown[0]
            try:
                names = sorted(n for n in os.listdir(folder) if n.endswith(".npy"))
                if len(names) < math.ceil(least / 4):
                    wrong.append(("stale listing", least, len(names)))
                labels = np.load(directory / "views/train/coords/time.npy")
                if len(labels) < least or not np.array_equal(labels, np.arange(len(labels))):
                    wrong.append(("stale labels", least, labels))
                for number, name in enumerate(names):
                    got = np.load(folder / name)[:, 0, 0]
                    if not np.array_equal(got, (number * 4 + np.arange(len(got))) * 100):
                        wrong.append((name, got))
                    reads.append(name)
            except OSError as error:
                # A file that was open in a state that ended with its daemon fails with ESTALE.
                if error.errno != errno.ESTALE:
                    wrong.append(error)
            except ValueError as error:  # np.load of a file whose read failed half way
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    samples, deaths = 8, 0
    for turn in range(32):
        store.append(samples, 4)
        samples += 4
        pid = status(directory)["pid"]
        refresh = subprocess.Popen([PROGRAM, "refresh", str(directory)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        if turn % 4 == 3:  # during the refresh, or just after it
            time.sleep(0.03 * (turn // 4))
            os.kill(pid, signal.SIGKILL)
            deaths += 1
            refresh.wait()
            wait_for_another(directory, pid)
            batchfs("refresh", directory)
        elif refresh.wait() != 0:
            wrong.append("refresh failed")
        shown[0] = samples
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == [] and deaths == 8 and len(reads) > 100
    check_newest(directory, samples)


def test_states_whose_readers_have_left_make_room_at_once(good, mount_at, tmp_path):
    """Not with the next sweep, a second later."""
    store = PlainStore(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    samples = 8
    for _ in range(3):
        held = []
        for _ in range(7):
            folder = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
            held += [folder, os.open("batch-000000.npy", os.O_RDONLY, dir_fd=folder)]
            store.append(samples, 1)
            samples += 1
            good("refresh", directory)
        assert status(directory)["generations"] == 8
        store.append(samples, 1)
        samples += 1
        for descriptor in held:
            os.close(descriptor)
        good("refresh", directory)
        check_newest(directory, samples)


def test_the_kernel_keeps_so_many_names_and_no_more(good, mount_at, tmp_path):
    """Names of files beyond a 16th of --memory are given up: they cost the daemon memory."""
    times = np.arange(60_000)
    xr.Dataset({"t": (("time",), times.astype("i1"))},
               {"time": times}).to_zarr(tmp_path / "s.zarr", zarr_format=3, consolidated=False,
                                        encoding={"t": {"chunks": (60_000,)}})
    view = {"name": "train", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 2},
            "order": {"shuffle": "none"}}
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"train": view}, "--memory", "16M")
    before = os.getcwd()
    os.chdir(directory / "views/train/epoch-0000")
    try:
        for entry in os.scandir("."):
            entry.stat()
        assert os.getcwd() == str(directory / "views/train/epoch-0000")
        until = time.monotonic() + 60
        while (status(directory)["kernel_names"] > (16 << 20) // 16 // 56
               and time.monotonic() < until):
            time.sleep(0.1)
        assert 0 < status(directory)["kernel_names"] <= (16 << 20) // 16 // 56
        assert os.stat("batch-000007.npy").st_size > 0
    finally:
        os.chdir(before)


@pytest.mark.says("refresh-forced")
@pytest.mark.parametrize("options", [[], ["--no-passthrough"]],
                         ids=["passthrough", "no-passthrough"])
def test_chunks_that_were_rewritten_in_place(good, mount_at, tmp_path, options):
    store = PlainStore(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW}, *options)
    old = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
    before = values(directory)
    zarr.open_array(store.path / "t")[:] = before + 7
    assert good("refresh", directory).decode().startswith("nothing has changed")
    changes = json.loads(good("refresh", directory, "--force", "--json"))
    assert changes["changed"] and changes["views"][0]["batches"] == 2
    assert np.array_equal(values(directory), before + 7)
    assert np.array_equal(np.load(directory / "arrays/t/values.npy"), before + 7)
    # The older state has its own values, or none.
    try:
        with open(os.open("batch-000000.npy", os.O_RDONLY, dir_fd=old), "rb") as file:
            assert np.array_equal(np.load(file)[:, 0], before[:4])
    except OSError as error:
        assert error.errno == errno.ESTALE
    os.close(old)
    assert generations(directory, 1) == 1
