"""The contents of batches, also as arrays of other libraries."""

import gc
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from reader_servers import PROGRAM, VIEWS, same

import batchfs


@pytest.fixture(params=["shm", "files", "socket"])
def dataset(request, server):
    """dataset(view, **arguments): opened over the mount's socket, the mount's files, or a server
    without a mount."""

    def opened(view="two", **arguments):
        if request.param == "socket":
            return batchfs.open(server.socket, view, **arguments)
        mounted = request.getfixturevalue("mounted")
        made = batchfs.open(mounted / "views" / view, mode=request.param, **arguments)
        assert made.mode == request.param
        return made

    return opened


def test_batches_are_the_files_of_the_mount_byte_for_byte(dataset, mounted):
    for batch in dataset():
        for name in ("t", "q"):
            file = mounted / (
                f"views/two/epoch-{batch.epoch:04d}/batch-{batch.number:06d}/{name}.npy")
            assert same(batch[name].numpy(), np.load(file))


def test_batches_are_what_the_command_writes(dataset, store, tmp_path):
    view = tmp_path / "two.json"
    view.write_text(json.dumps(VIEWS["two"]))
    batch = dataset().batch(5, epoch=1)
    for name in ("t", "q"):
        written = subprocess.run([PROGRAM, "batch", store, "--view", view, "--epoch", "1",
                                  "--batch", "5", "--tensor", name],
                                 capture_output=True, check=True).stdout
        assert same(batch[name].numpy(), np.load(io.BytesIO(written)))


def test_what_a_batch_says_of_itself(dataset, mounted):
    data = dataset()
    assert data.schema == json.loads((mounted / "views/two/schema.json").read_text())
    assert data.view == json.loads((mounted / "views/two/view.json").read_text())
    assert len(data) == data.schema["batches"] == 14
    batch = data[13]
    assert (batch.epoch, batch.number, batch.samples) == (0, 13, 1)  # 40 samples in batches of 3
    assert list(batch.keys()) == ["t", "q"] and len(batch) == 2
    assert list(dict(batch)) == [name for name, _ in batch.items()] == ["t", "q"]
    assert "t" in batch and "x" not in batch and batch.get("x") is None
    first, second = batch  # as `for x, y in dataset` does
    assert (first.name, second.name) == ("t", "q") and batch.values() == [first, second]
    assert batch["t"].shape == (1, 1, 3, 8, 16) and batch["t"].dims[0] == "sample"
    assert batch["t"].dtype == "float32" and batch["t"].nbytes == 4 * 3 * 8 * 16
    assert batch["t"].strides == batch["t"].numpy().strides
    provenance = json.loads((mounted / "views/two/epoch-0000/batch-000013.json").read_text())
    assert len(provenance["samples"]) == batch.samples


def test_indexing_is_as_a_list(dataset):
    data = dataset(rank=1, world=4)
    assert [data[i].number for i in range(len(data))] == [1, 5, 9, 13]
    assert data[-1].number == 13
    for wrong in (4, -5, 1 << 62):
        with pytest.raises(IndexError):
            data[wrong]
    with pytest.raises(batchfs.NotFound):
        data.batch(14)


def test_arrays_share_memory_and_are_read_only(dataset):
    tensor = dataset()[0]["t"]
    ways = [tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor),
            np.asarray(memoryview(tensor._core))]
    for array in ways:
        assert array.ctypes.data == ways[0].ctypes.data
        assert not array.flags.writeable
        assert array.dtype == np.float32 and array.shape == tensor.shape
        with pytest.raises(ValueError):
            array[0] = 1
    with pytest.raises((BufferError, TypeError, ValueError)):
        memoryview(tensor._core).cast("B")[0] = 1


def test_memory_lives_as_long_as_any_array(dataset):
    data = dataset()
    expected = {name: array.copy() for name, array in data[2].numpy().items()}
    array = data[2]["t"].numpy()
    part = np.from_dlpack(data[2]["q"])[1:]
    view = memoryview(data[2]["t"]._core)
    del data
    gc.collect()
    assert same(array, expected["t"])
    assert same(part, expected["q"][1:])
    assert view.tobytes() == expected["t"].tobytes()


def test_dlpack_versions_and_requests(dataset):
    tensor = dataset()[0]["t"]
    assert tensor.__dlpack_device__() == (1, 0)
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(tensor.__dlpack__())
    assert '"dltensor"' in repr(tensor.__dlpack__(stream=None, max_version=(0, 8)))
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        tensor.__dlpack__(stream=7)
    copy = np.from_dlpack(tensor, copy=True)
    assert copy.flags.writeable and same(copy, tensor.numpy())
    copy[:] = 0
    assert tensor.numpy().any()


def test_bfloat16(dataset):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    whole = dataset("one")[0]["t"].numpy()
    half = dataset("half")[0]["t"]
    assert half.dtype == "bfloat16"
    assert half.numpy().dtype == ml_dtypes.bfloat16
    assert same(half.numpy(), whole.astype(ml_dtypes.bfloat16))


def test_device_without_a_gpu_says_why(server):
    with pytest.raises(batchfs.NotSupported, match="no NVIDIA driver|no GPU|cuda:99"):
        batchfs.open(server.socket, "two", device="cuda:99")
    with pytest.raises(batchfs.NotSupported, match="no device 'tpu'"):
        batchfs.open(server.socket, "two", device="tpu")


def test_torch(dataset):
    torch = pytest.importorskip("torch")
    batch = dataset()[0]
    tensor = batch["t"].torch()
    assert tensor.dtype == torch.float32 and tensor.data_ptr() == batch["t"].numpy().ctypes.data
    assert same(tensor.numpy(), batch["t"].numpy())
    assert dataset("half")[0]["t"].torch().dtype == torch.bfloat16


def test_writing_all_the_same_changes_nobody_elses_batch(dataset):
    """torch has no read-only tensors: what is written to is a copy of the page, not the batch."""
    data = dataset()
    batch, other = data[3], data[3]
    expected = other["t"].numpy().copy()
    array = batch["t"].numpy()
    import ctypes

    ctypes.memset(array.ctypes.data, 0, 64)
    assert not array.reshape(-1)[:16].any()
    assert same(other["t"].numpy(), expected)
    assert same(data[3]["t"].numpy(), expected)


def test_a_corrupt_chunk_fails_its_batches_only(store, tmp_path, serve):
    import shutil

    broken = tmp_path / "broken.zarr"
    shutil.copytree(store, broken)
    (broken / "t" / "3.0.0.0").write_bytes(b"nonsense")
    from reader_servers import Server

    directory = tmp_path / "server"
    directory.mkdir()
    served = Server(broken, directory, {"two": VIEWS["two"] | {"order": {"shuffle": "none"}}})
    try:
        iteration = iter(batchfs.open(served.socket))
        good, bad = [], []
        while True:
            try:
                good.append(next(iteration).number)
            except StopIteration:
                break
            except batchfs.Error as error:
                bad.append(str(error))
        assert good == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13]  # the chunk has the times 21 to 27
        assert len(bad) == 3 and all("t/3.0.0.0" in why for why in bad)
    finally:
        served.stop()


def test_what_cannot_be_opened(server, mounted, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        batchfs.open("/nowhere")
    with pytest.raises(batchfs.NotFound, match="no view 'three'.*two"):
        batchfs.open(server.socket, "three")
    with pytest.raises(ValueError, match="say which view"):
        batchfs.open(server.socket)
    with pytest.raises(ValueError, match="say which view"):
        batchfs.open(mounted)
    with pytest.raises(batchfs.NotFound, match="no view"):
        batchfs.open(mounted, "three")
    with pytest.raises(batchfs.NotFound, match="not a batchfs mount"):
        batchfs.open(tmp_path)
    with pytest.raises(ValueError, match="no rank 4 of 4"):
        batchfs.open(server.socket, "two", rank=4, world=4)
    with pytest.raises(ValueError, match="a mode is"):
        batchfs.open(server.socket, "two", mode="gpu")
    with pytest.raises(ValueError):
        batchfs.open(server.socket, "two", epoch=-1)


def test_the_command_line_of_serve(fails, store, tmp_path):
    view = tmp_path / "two.json"
    view.write_text(json.dumps(VIEWS["two"]))
    fails(2, "serve", store, "--view", view)
    (tmp_path / "file").touch()
    assert "not a socket" in fails(1, "serve", store, "--view", view, "--socket", tmp_path / "file")
    assert "serve failed" in fails(1, "serve", store, "--view", view, "--socket",
                                   tmp_path / "missing" / "s")


@pytest.mark.parametrize("mode", ["shm", "files"])
def test_too_few_open_files_are_named_with_their_limit(mounted, mode):
    # A separate process whose descriptors are used up when it opens the batches.
    program = f"""
import os, resource, batchfs
data = batchfs.open({str(mounted / "views/two")!r}, mode="files") if {mode == "files"} else None
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
while True:
    try:
        os.dup(0)
    except OSError:
        break
(data or batchfs.open({str(mounted / "views/two")!r}, mode="shm"))[0]
"""
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                            env={**os.environ})
    assert failed.returncode == 1
    assert "this process may have 40 (RLIMIT_NOFILE); raise it with ulimit -n" in (
        failed.stderr.splitlines()[-1]), failed.stderr
