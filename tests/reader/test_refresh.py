"""`batchfs refresh` of a server and of a mount: readers that are open keep their batches, new ones get the new steps."""

import json
import subprocess

import numpy as np
import pytest
import xarray as xr
from reader_servers import PROGRAM, Server
from watching import eventually

import batchfs

VIEWS = {name: {"name": name, "window": {"time": 1}, "variables": ["t"], "batch": {"size": 4}, "epochs": 9,
                "order": {"shuffle": "none"}, "formats": ["npy"]} for name in ("two", "other")}


def steps(first, count):
    times = np.arange(first, first + count)
    return xr.Dataset({"t": (("time", "x"), (times[:, None] * 100 + np.arange(6)).astype("f4"))}, {"time": times})


@pytest.fixture
def growing(tmp_path):
    path = tmp_path / "s.zarr"
    steps(0, 40).to_zarr(path, zarr_format=3, consolidated=False,
                         encoding={"t": {"chunks": (4, 6)}, "time": {"chunks": (4,)}})
    return path


def append(path, first, count):
    steps(first, count).to_zarr(path, append_dim="time", consolidated=False)


def refresh(place):
    return subprocess.run([PROGRAM, "refresh", place], check=True, capture_output=True, text=True).stdout


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
        subprocess.run([PROGRAM, "mount", growing, place, "--view", tmp_path / "two.json"], check=True)
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
            assert len(reader) == count // 4 and np.array_equal(np.asarray(batch["t"])[:, 0, 0], expected)
    del open_ones, data, reader, walk, batch
    assert len(batchfs.open(server.socket, "two")) == 30
    assert server.stop() == 0
