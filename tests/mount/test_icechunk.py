"""A mount of an Icechunk repository shows one snapshot, whatever is committed, and whichever daemon
serves it."""

import json
import os
import pathlib
import signal
import time

import numpy as np
import pytest
import zarr

icechunk = pytest.importorskip("icechunk",
                               reason="tools/dependencies test installs the icechunk package")


@pytest.fixture
def repository(tmp_path):
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "r")))
    session = made.writable_session("main")
    array = zarr.create_array(session.store, name="a", shape=(8,), chunks=(2,), dtype="i4",
                              dimension_names=("t",))
    array[:] = np.arange(8)
    session.commit("first")
    return made


def commit(repository, message):
    session = repository.writable_session("main")
    zarr.open_array(session.store, path="a")[:] = 9
    return session.commit(message)


def values(directory):
    return np.load(directory / "arrays/a/values.npy")


def shown(directory):
    return json.loads((directory / "store.json").read_text())["icechunk"]


def daemon(directory):
    return json.loads((directory / ".batchfs/status.json").read_text())["pid"]


def test_a_commit_is_not_seen_until_it_is_mounted_again(good, repository, tmp_path):
    directory = pathlib.Path(tmp_path / "mnt")
    directory.mkdir()
    first = repository.lookup_branch("main")
    good("mount", tmp_path / "r", directory, "-o", "branch=main")
    try:
        second = commit(repository, "second")
        assert shown(directory)["snapshot"] == first and f"snapshot {first} of branch main" in (
            directory / "summary.txt").read_text()
        assert np.array_equal(values(directory), np.arange(8))
        before = daemon(directory)
        os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while (after := daemon(directory)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert after != before
        assert shown(directory)["snapshot"] == first
        assert np.array_equal(values(directory), np.arange(8))
    finally:
        good("umount", directory)
    good("mount", tmp_path / "r", directory)
    try:
        assert shown(directory)["snapshot"] == second
        assert np.array_equal(values(directory), np.full(8, 9))
    finally:
        good("umount", directory)
