"""How tensors become torch's, with a stand-in for torch that takes capsules as torch does; and
whose memory that is."""

import gc
import sys
import types

import numpy as np
import pytest
from reader_servers import same
from watching import eventually, status

import batchfs
from batchfs import _batch


class Offer:
    """An object that numpy takes a capsule from."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@pytest.fixture
def torch(monkeypatch):
    stand_in = types.ModuleType("torch")
    stand_in._C = types.SimpleNamespace(_from_dlpack=lambda capsule: np.from_dlpack(Offer(capsule)))
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    _batch._of_torch.cache_clear()
    yield stand_in
    _batch._of_torch.cache_clear()


def leases(directory):
    gc.collect()
    return status(directory)["handoff"]["leases"]


def test_one_tensor_and_all_are_the_same_memory(server, torch):
    batch = batchfs.open(server.socket, "two")[0]
    whole = batch.torch()
    assert tuple(whole) == batch.keys()
    for name, tensor in batch.items():
        one = tensor.torch()
        assert one.ctypes.data == whole[name].ctypes.data == tensor.numpy().ctypes.data
        assert one.shape == tensor.shape and same(one, tensor.numpy())


def test_a_tensor_that_is_held_is_not_overwritten(server, torch):
    """While many more batches pass than there are places for, a part of one tensor of the first is
    held and nothing else."""
    data = batchfs.open(server.socket, "two", prefetch=3)
    expected = next(iter(data))["t"].numpy().copy()
    held = next(iter(data)).torch()["t"]
    part = held[1:]
    del held
    for _ in range(3):
        data.set_epoch(0)
        for batch in data:
            batch.torch()
    del batch
    gc.collect()
    assert same(part, expected[1:])


def test_the_batch_goes_back_with_the_last_tensor(own_mount, torch):
    data = batchfs.open(own_mount, "two", prefetch=0)
    tensors = data[0].torch()
    assert leases(own_mount) == 1
    part = next(iter(tensors.values()))[:1]
    del tensors
    assert leases(own_mount) == 1
    del part
    assert eventually(lambda: leases(own_mount) == 0)


def test_a_capsule_that_is_refused_holds_nothing(own_mount, torch):
    def refuse(capsule):
        raise RuntimeError("torch is full")

    torch._C._from_dlpack = refuse
    _batch._of_torch.cache_clear()
    data = batchfs.open(own_mount, "two", prefetch=0)
    for take in (lambda batch: batch.torch(), lambda batch: batch["t"].torch()):
        with pytest.raises(RuntimeError, match="torch is full"):
            take(data[0])
    assert eventually(lambda: leases(own_mount) == 0)


def test_a_torch_without_that_function_is_asked_as_any_library(server, torch):
    del torch._C._from_dlpack
    torch.from_dlpack = np.from_dlpack
    batch = batchfs.open(server.socket, "two")[0]
    assert same(batch.torch()["t"], batch["t"].numpy())
