"""How many threads the process that serves a mount has."""

import concurrent.futures
import json
import os

import numpy as np
import pytest
import zarr

VIEW = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 1},
        "order": {"shuffle": "global", "seed": 1}, "epochs": 2}
READERS = 64


@pytest.fixture
def mounted(good, batchfs, tmp_path):
    zarr.create_group(tmp_path / "s.zarr").create_array(
        "t", data=np.arange(READERS * 40, dtype="f4").reshape(READERS, 40), chunks=(4, 40),
        dimension_names=["time", "place"])
    (tmp_path / "view.json").write_text(json.dumps(VIEW))
    directory = tmp_path / "mnt"
    directory.mkdir()
    good("mount", tmp_path / "s.zarr", directory, "--view", tmp_path / "view.json", "--threads",
         "2")
    yield directory
    batchfs("umount", "--lazy", directory)


def test_many_readers_need_no_threads_of_their_own(mounted):
    def read(epoch, number):
        np.load(mounted / f"views/v/epoch-{epoch:04}/batch-{number:06}.npy")
        return len(os.listdir(f"/proc/{pid}/task"))

    pid = json.loads((mounted / ".batchfs" / "status.json").read_text())["pid"]
    one = read(0, 0)
    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        many = list(readers.map(read, [1] * READERS, range(READERS)))
    requests = max(4, os.cpu_count())  # threads that take requests start as they are needed
    assert max(many) <= one + requests
