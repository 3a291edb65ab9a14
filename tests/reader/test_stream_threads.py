"""How many threads a server of GPU streams has."""

import os

import numpy as np
import pytest
import zarr
from raw_reader import RawDecoder, RawReader
from reader_servers import Server
from watching import eventually

STREAMS = 8
THREADS = 3
VIEW = {"name": "two", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 1}, "epochs": 1}


@pytest.fixture
def server(tmp_path):
    zarr.create_group(tmp_path / "s.zarr").create_array(
        "t", data=np.arange(STREAMS * 20 * 40, dtype="f4").reshape(-1, 40), chunks=(1, 40),
        dimension_names=["time", "place"])
    (tmp_path / "server").mkdir()
    server = Server(tmp_path / "s.zarr", tmp_path / "server", {"two": VIEW}, "--threads", THREADS)
    yield server
    server.stop()


def test_gpu_streams_have_no_threads_of_their_own(server):
    def threads():
        return len(os.listdir(f"/proc/{server.process.pid}/task"))

    RawReader(server.socket, "two").batch(0)
    before = threads()
    readers = [RawDecoder(server.socket, "two", rank, STREAMS) for rank in range(STREAMS)]
    for reader in readers:
        reader.run_program()
        assert reader.next() == 0
    assert eventually(lambda: threads() <= before + THREADS)  # those that made the streams end
