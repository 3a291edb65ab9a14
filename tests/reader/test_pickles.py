"""Batches and tensors that travel between processes, and arguments of a wrong type."""

import multiprocessing
import pickle

import numpy as np
import pytest
from reader_servers import same

import batchfs


def test_a_batch_is_pickled_as_a_copy(server):
    data = batchfs.open(server.socket, "two")
    batch = data[13]
    copy = pickle.loads(pickle.dumps(batch))
    assert (copy.epoch, copy.number, copy.samples) == (batch.epoch, batch.number,
                                                       batch.samples) == (0, 13, 1)
    assert copy.keys() == batch.keys() and repr(copy) == repr(batch)
    for one, other in zip(copy, batch, strict=True):
        assert (one.name, one.dtype, one.shape, one.dims,
                one.strides) == (other.name, other.dtype, other.shape, other.dims, other.strides)
        assert (same(one.numpy(), other.numpy())
                and one.numpy().ctypes.data != other.numpy().ctypes.data)
        assert same(np.from_dlpack(one), other.numpy())
        assert one.nbytes == other.nbytes and len(one) == len(other)
    again = pickle.loads(pickle.dumps(copy["t"]))
    assert same(again.numpy(), batch["t"].numpy())


def give(place, numbers, answers):
    """A DataLoader's worker: indexes the dataset and puts the batches into a queue."""
    data = batchfs.open(place, "two")
    for number in numbers:
        answers.put(data[number])
    answers.close()
    answers.join_thread()


def test_batches_come_from_a_worker_process(server):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    worker = context.Process(target=give, args=(server.socket, [0, 5, 13], answers))
    worker.start()
    try:
        data = batchfs.open(server.socket, "two")
        for number in (0, 5, 13):
            batch = answers.get(timeout=60)
            assert batch.number == number
            assert all(same(batch[name].numpy(), data[number][name].numpy()) for name in ("t", "q"))
    finally:
        worker.join(timeout=60)
        worker.kill()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_loader_over_a_dataset(server, workers):
    torch = pytest.importorskip("torch")
    data = batchfs.open(server.socket, "two")
    expected = [batch["t"].numpy().copy() for batch in batchfs.open(server.socket, "two")]
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers,
                                         timeout=60 if workers else 0)
    for (t, q), array in zip(loader, expected, strict=True):
        assert same(t.numpy(), array) and same(t.torch().numpy(), array) and q.name == "q"


@pytest.mark.parametrize("arguments", [{"rank": "1", "world": 2}, {"world": 2.0}, {"epoch": None},
                                       {"prefetch": "2"}, {"device_memory": "1G"}])
def test_numbers_of_a_wrong_type(server, arguments):
    wrong = next(name for name, value in arguments.items() if not isinstance(value, int))
    with pytest.raises(TypeError, match=f"{wrong} is a whole number, not {arguments[wrong]!r}"):
        batchfs.open(server.socket, "two", **arguments)


def test_numbers_of_numpy_are_numbers(server):
    data = batchfs.open(server.socket, "two", rank=np.int64(1), world=np.int32(2))
    assert data[np.int64(0)].number == 1
    data.set_epoch(np.int64(2))
    assert data.epoch == 2


def test_wrong_indexes(server):
    data = batchfs.open(server.socket, "two")
    with pytest.raises(TypeError, match="by name, 't', 'q', not by 0"):
        data[0][0]
    with pytest.raises(KeyError):
        data[0]["x"]
    for wrong in ("0", 1.0, slice(0, 2)):
        with pytest.raises(TypeError, match="is a whole number"):
            data[wrong]
    with pytest.raises(TypeError, match="epoch is a whole number"):
        data.set_epoch("1")
