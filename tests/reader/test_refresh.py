"""`batchfs refresh` of a server and of a mount: readers that are open keep their batches, new ones
get the new steps."""

import json
import os
import signal
import subprocess

import numpy as np
import pytest
import xarray as xr
import zarr
from opened_stores import servers
from opened_stores import runtime  # noqa: F401 (fixture)
from reader_servers import PROGRAM, Server
from watching import eventually, status

import batchfs

VIEWS = {name: {"name": name, "window": {"time": 1}, "variables": ["t"], "batch": {"size": 4},
                "epochs": 9, "order": {"shuffle": "none"}, "formats": ["npy"]}
         for name in ("two", "other")}


def steps(first, count):
    times = np.arange(first, first + count)
    return xr.Dataset({"t": (("time", "x"), (times[:, None] * 100 + np.arange(6)).astype("f4"))},
                      {"time": times})


@pytest.fixture
def growing(tmp_path):
    path = tmp_path / "s.zarr"
    steps(0, 40).to_zarr(path, zarr_format=3, consolidated=False,
                         encoding={"t": {"chunks": (4, 6)}, "time": {"chunks": (4,)}})
    return path


def append(path, first, count):
    steps(first, count).to_zarr(path, append_dim="time", consolidated=False)


def refresh(place, *options):
    return subprocess.run([PROGRAM, "refresh", place, *options], check=True, capture_output=True,
                          text=True).stdout


def kill(place, kind, runtime):
    """Kills the process that serves; for a mount, waits for the next one."""
    if kind == "mount":
        pid = status(place)["pid"]
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: status(place)["pid"] != pid, 60)
    else:
        (pid,) = servers(runtime)
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: pid not in servers(runtime))


def values(data):
    return np.concatenate([np.asarray(batch["t"])[:, 0, 0] for batch in data])


@pytest.mark.says("refresh-handoff")
@pytest.mark.parametrize("kind", ["socket", "mount", "files"])
def test_an_iteration_keeps_its_steps(growing, tmp_path, kind):
    (tmp_path / "place").mkdir()
    if kind == "socket":
        server = Server(growing, tmp_path / "place", VIEWS)
        place = server.socket
    else:
        place = tmp_path / "place/mnt"
        place.mkdir()
        (tmp_path / "two.json").write_text(json.dumps(VIEWS["two"]))
        subprocess.run([PROGRAM, "mount", growing, place, "--view", tmp_path / "two.json"],
                       check=True)
    try:
        mode = {"mode": "files"} if kind == "files" else {}
        early = batchfs.open(place, "two", **mode)
        walk = iter(early)
        first = [next(walk) for _ in range(3)]
        append(growing, 40, 8)
        assert "12 batches, 10 before" in refresh(place)
        rest = list(walk)
        assert np.array_equal(values(first + rest), np.arange(40) * 100)
        assert np.array_equal(values(early), np.arange(40) * 100)  # its next epoch, too
        late = batchfs.open(place, "two", **mode)
        assert len(late) == 12 and len(early) == 10
        assert np.array_equal(values(late), np.arange(48) * 100)
        assert refresh(place).startswith("nothing has changed")
    finally:
        if kind == "socket":
            assert server.stop() == 0
        else:
            subprocess.run([PROGRAM, "umount", "--lazy", place], check=True)


@pytest.mark.says("refresh-handoff")
@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("kind", ["mount", "server"])
@pytest.mark.filterwarnings("ignore:the server of")
def test_who_connects_again_gets_no_other_state(growing, tmp_path, runtime, kind, forced):
    """The view looks the same, and the values do not: the store was rewritten under its metadata,
    and the server died."""
    view = VIEWS["two"]
    if kind == "mount":
        place = tmp_path / "mnt"
        place.mkdir()
        (tmp_path / "two.json").write_text(json.dumps(view))
        subprocess.run([PROGRAM, "mount", growing, place, "--view", tmp_path / "two.json"],
                       check=True)
        opened = batchfs.open(place, prefetch=0)
    else:
        opened = batchfs.open(growing, view=view, prefetch=0)
        (place,) = runtime.glob("*/*.sock")
    try:
        walk = iter(opened)
        held = [next(walk), next(walk)]  # the server sends no other meanwhile
        assert np.array_equal(values(held), np.arange(8) * 100)
        array = zarr.open_array(growing / "t")
        if forced:
            array[:] = array[:] + 7
            refresh(place, "--force")
        else:
            assert refresh(place).startswith("nothing has changed")
        kill(place, kind, runtime)
        if forced:
            for _ in range(10):
                with pytest.raises(batchfs.Error, match="read again since this was opened"):
                    next(walk)
                with pytest.raises(batchfs.Error, match="read again since this was opened"):
                    opened.batch(0, 0)
        else:
            assert np.array_equal(values(list(walk)), np.arange(8, 40) * 100)
    finally:
        del walk, held
        opened.close()
        if kind == "mount":
            subprocess.run([PROGRAM, "umount", "--lazy", place], check=True)


@pytest.mark.says("death-appended")
@pytest.mark.parametrize("refreshed", [False, True])
@pytest.mark.parametrize("mode", ["shm", "files"])
def test_a_reader_of_an_older_state_learns_what_to_do(growing, tmp_path, mode, refreshed):
    """The daemon that takes over has the newest state only."""
    place = tmp_path / "mnt"
    place.mkdir()
    (tmp_path / "two.json").write_text(json.dumps(VIEWS["two"]))
    subprocess.run([PROGRAM, "mount", growing, place, "--view", tmp_path / "two.json"], check=True)
    opened = batchfs.open(place, prefetch=0, mode=mode)
    try:
        walk = iter(opened)
        held = [next(walk), next(walk)]
        append(growing, 40, 8)
        if refreshed:
            refresh(place)
        kill(place, "mount", None)
        for _ in range(2):
            with pytest.raises(batchfs.Error, match="[Oo]pen it again"):
                next(iter(opened))
        assert np.array_equal(values(held), np.arange(8) * 100)
        late = batchfs.open(place, mode=mode)
        assert np.array_equal(values(late), np.arange(48) * 100)
        late.close()
    finally:
        del walk, held
        opened.close()
        subprocess.run([PROGRAM, "umount", "--lazy", place], check=True)


def test_a_server_reads_at_intervals(growing, tmp_path):
    (tmp_path / "place").mkdir()
    server = Server(growing, tmp_path / "place", VIEWS, "--refresh", "1s")
    append(growing, 40, 8)
    assert eventually(lambda: len(batchfs.open(server.socket, "two")) == 12)
    assert server.stop() == 0


def test_readers_while_the_store_grows(growing, tmp_path):
    (tmp_path / "place").mkdir()
    server = Server(growing, tmp_path / "place", VIEWS)
    open_ones = []
    for turn in range(20):
        data = batchfs.open(server.socket, "two")
        open_ones = [*open_ones[-2:], (data, iter(data), 40 + 4 * turn)]
        append(growing, 40 + 4 * turn, 4)
        refresh(server.socket)
        for reader, walk, count in open_ones:
            batch = next(walk)
            expected = (batch.number * 4 + np.arange(4)) * 100
            assert len(reader) == count // 4 and np.array_equal(
                np.asarray(batch["t"])[:, 0, 0], expected)
    del open_ones, data, reader, walk, batch
    assert len(batchfs.open(server.socket, "two")) == 30
    assert server.stop() == 0
