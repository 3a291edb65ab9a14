"""A store behind a server that changes or disappears while it is mounted: each object has one
version, or it is ESTALE."""

import errno
import os
import re
import shutil
import time

import numpy as np
import pytest
import zarr

from fault_proxy import QUICK, Fault, FaultProxy, is_chunk
from watching import eventually, status

STEPS, FILL = 48, -1.0
# Evidence that the server sends of an object's version: its ETag, its modification time, or only
# its size.
TELLS = {"etag": {}, "modified": {"ETag": ""}, "size": {"ETag": "", "Last-Modified": ""}}
MEMORY = ("--memory", "24K", *QUICK)  # no prefetching, and hardly any cache


def values(version):
    return np.random.default_rng(version).normal(size=(STEPS, 40)).astype("f4")


@pytest.fixture(params=["plain", "sharded"])
def layout(request):
    return {"chunks": (6, 40)} | ({"shards": (12, 40)} if request.param == "sharded" else {})


@pytest.fixture
def origin(layout, tmp_path):
    """A consolidated store that may be changed: the array x, of which the steps from 24 on are not
    written."""
    path = tmp_path / "origin"
    array = zarr.open_group(path, mode="w").create_array("x", shape=(STEPS, 40), dtype="f4",
                                                         fill_value=FILL,
                                                         dimension_names=["time", "place"],
                                                         **layout)
    array[:24] = values(0)[:24]
    zarr.consolidate_metadata(path)
    return path


def age(path, seconds):
    """Sets modification times to that long ago: servers report whole seconds."""
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (time.time() - seconds,) * 2)


def rows(directory, number, epoch=0):
    """A batch, or the errno of reading it. (Not np.load: it would read under the lock that the
    proxy's threads need.)"""
    try:
        contents = (directory / f"views/v/epoch-{epoch:04d}/batch-{number:06d}.npy").read_bytes()
    except OSError as error:
        return error.errno
    return np.frombuffer(contents[4096:], "f4").reshape(6, 40)


def holds(got, version, number):
    return not isinstance(got, int) and np.array_equal(got,
                                                       values(version)[6 * number:6 * number + 6])


def is_stale(got):
    return isinstance(got, int) and got == errno.ESTALE


def is_fill(got):
    return not isinstance(got, int) and bool(np.all(got == FILL))


@pytest.mark.says("store-vanished", "error-no-fill")
@pytest.mark.parametrize("what", ["everything", "the array"])
@pytest.mark.parametrize("cached", [False, True], ids=["", "cached"])
def test_a_server_that_has_nothing_any_more(what, cached, origin, mounted, tmp_path):
    with FaultProxy(origin) as proxy:
        options = ("--cache-dir", tmp_path / "cache") if cached else ()
        directory = mounted(proxy.url, *MEMORY, *options)
        assert holds(rows(directory, 0), 0, 0)
        proxy.set(Fault(status=404, applies=None if what == "everything"
                            else lambda path: path.startswith("x/")))
        got = [rows(directory, number, 1) for number in range(8)]
        assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
        assert all(is_stale(g) for g in got[4:])
        log = (directory / ".batchfs/log").read_text()
        # If the chunk was prefetched before, the chunk itself is missing, and no metadata is
        # requested.
        assert re.search(r"again to see.*/(zarr\.json|x/c/\d)", log), log
        assert status(directory)["errors"] > 0
        proxy.set(Fault())
        assert is_fill(rows(directory, 7))  # the error is not cached


@pytest.mark.says("store-one-version", "store-vanished")
@pytest.mark.parametrize("tells", TELLS)
@pytest.mark.parametrize("change", ["written over", "removed"])
def test_an_object_that_changes_is_stale(change, tells, origin, mounted):
    with FaultProxy(origin) as proxy:
        age(origin, 100)
        proxy.set(Fault(headers=TELLS[tells]))
        directory = mounted(proxy.url, *MEMORY)
        assert all(holds(rows(directory, number), 0, number) for number in range(4))
        if change == "removed":
            shutil.rmtree(origin / "x/c")
        else:
            # compresses to another size
            zarr.open_array(origin / "x", mode="r+")[:24] = np.round(values(1)[:24], 1)
        age(origin, 50)
        got = [rows(directory, number, 1) for number in range(4)]
        assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
        assert any(is_stale(g) for g in got)


@pytest.mark.says("store-stale")
def test_the_log_names_an_object_that_changed_once(origin, mounted):
    with FaultProxy(origin) as proxy:
        directory = mounted(proxy.url, *MEMORY)
        assert all(holds(rows(directory, number), 0, number) for number in range(4))
        zarr.open_array(origin / "x", mode="r+")[:24] = values(1)[:24]
        got = [rows(directory, number, epoch) for epoch in (1, 2, 3) for number in range(4)]
        assert sum(map(is_stale, got)) > 4
        lines = [line for line in (directory / ".batchfs/log").read_text().splitlines()
                 if "has changed since" in line]
        assert lines and all("reading a chunk failed" in line for line in lines)
        objects = [line.split()[-1] for line in lines]
        assert len(set(objects)) == len(objects) <= 4, lines


@pytest.mark.says("store-appears")
def test_what_was_absent_may_appear(origin, mounted):
    with FaultProxy(origin) as proxy:
        directory = mounted(proxy.url, *MEMORY)
        assert is_fill(rows(directory, 6))
        zarr.open_array(origin / "x", mode="r+")[24:] = values(0)[24:]
        for number in range(4, 8):
            for epoch in range(1, 30):
                if holds(got := rows(directory, number, epoch), 0, number):
                    break
                assert is_fill(got) or is_stale(got)
                time.sleep(1)
            assert holds(got, 0, number)


@pytest.mark.says("store-appears")
def test_absent_chunks_cost_few_requests(origin, mounted, layout):
    with FaultProxy(origin) as proxy:
        directory = mounted(proxy.url, *MEMORY)
        proxy.set(Fault())
        assert all(is_fill(rows(directory, number)) for number in range(4, 8))
        with proxy.lock:
            seen = dict(proxy.seen)
        chunks = {path: 1 + nth for path, nth in seen.items() if is_chunk(path)}
        assert len(chunks) >= (2 if "shards" in layout else 4)
        assert max(chunks.values()) <= 2  # one per shard, not one per chunk


@pytest.mark.says("store-metadata-checked")
def test_metadata_that_was_written_over_makes_no_fill_values(origin, mounted):
    with FaultProxy(origin) as proxy:
        directory = mounted(proxy.url, *MEMORY)
        assert is_fill(rows(directory, 7))
        zarr.open_array(origin / "x", mode="r+").resize((96, 40))
        for epoch in range(1, 30):
            if is_stale(got := rows(directory, 5, epoch)):
                break
            assert is_fill(got)  # found absent before
            time.sleep(1)
        assert is_stale(got)


@pytest.mark.says("store-cached")
def test_what_a_cache_keeps_is_served_when_it_is_gone(origin, mounted, tmp_path):
    with FaultProxy(origin) as proxy:
        directory = mounted(proxy.url, *MEMORY, "--cache-dir", tmp_path / "cache")
        assert all(holds(rows(directory, number), 0, number) for number in range(4))
        written = lambda: status(directory)["store"]["disk_cache_bytes_written"] > 24 * 40 * 2
        assert eventually(written)
        proxy.set(Fault(status=404))
        got = [rows(directory, number, 1) for number in range(4)]
        assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
        assert not isinstance(got[0], int)
