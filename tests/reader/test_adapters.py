"""PyTorch and DALI. The logic of workers and ranks is tested with a stand-in for torch as well: it
is large, and not everywhere."""

import json
import subprocess
import sys

import pytest
from reader_servers import same

import batchfs
import batchfs.dali

STAND_IN = """
import sys, types, json
torch = types.ModuleType("torch")
torch.utils, data = types.ModuleType("torch.utils"), types.ModuleType("torch.utils.data")
torch.distributed = types.SimpleNamespace(is_available=lambda: True,
                                          is_initialized=lambda: RANKS is not None,
                                          get_rank=lambda: RANKS[0],
                                          get_world_size=lambda: RANKS[1])
class IterableDataset:
    def __class_getitem__(cls, item): return cls
data.IterableDataset = data.Dataset = data.DataLoader = IterableDataset
data.get_worker_info = lambda: WORKER
class Shared(list):
    def share_memory_(self): return self
torch.int64, torch.tensor = int, lambda values, dtype: Shared(values)
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
torch.utils.data, torch.Tensor, torch.from_dlpack = data, object, lambda tensor: tensor
sys.modules.update({"torch": torch, "torch.utils": torch.utils, "torch.utils.data": data})
RANKS = WORKER = None
import batchfs.torch
"""


def with_stand_in(script, *arguments, environment=None):
    import os

    done = subprocess.run([sys.executable, "-c", STAND_IN + script, *map(str, arguments)],
                          capture_output=True, text=True, check=False,
                          env=os.environ | (environment or {}))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_workers_share_a_rank(server):
    script = """
RANKS = (1, 2)
made = batchfs.torch.BatchDataset(sys.argv[1], "one",
                                  transform=lambda tensors: tensors["t"].shape[0])
seen = []
for worker in range(3):
    WORKER = types.SimpleNamespace(id=worker, num_workers=3)
    made.set_epoch(0)
    seen.append(list(made))
numbers = []
for worker in range(3):
    made.set_epoch(0)
    made.batches._worker = (worker, 3)
    numbers.append([batch.number for batch in made.batches])
print(json.dumps([len(made), seen, numbers]))
"""
    # 40 samples in batches of 6: 7 batches, of which rank 1 of 2 has 1, 3 and 5.
    assert with_stand_in(script, server.socket) == [3, [[6], [6], [6]], [[1], [3], [5]]]


def test_ranks_are_found(server):
    script = """
made = batchfs.torch.BatchDataset(sys.argv[1], "one")
found = [made.batches.rank, made.batches.world]
RANKS = (2, 5)
made = batchfs.torch.BatchDataset(sys.argv[1], "one")
print(json.dumps(found + [made.batches.rank, made.batches.world]))
"""
    assert with_stand_in(script, server.socket) == [0, 1, 2, 5]
    assert with_stand_in(script, server.socket,
                         environment={"RANK": "1", "WORLD_SIZE": "4"}) == [1, 4, 2, 5]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_data_loader_keeps_the_order(server, workers):
    torch = pytest.importorskip("torch")
    from batchfs.torch import BatchDataset

    data = BatchDataset(server.socket, "two")
    expected = [batch["t"].numpy().copy() for batch in batchfs.open(server.socket, "two")]
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)
    assert all(same(batch["t"].numpy(), array)
               for batch, array in zip(loader, expected, strict=True))


def test_dali_gets_arrays_and_their_batches_stay(server):
    data = batchfs.open(server.socket, "two")
    source = batchfs.dali.Source(data, ["q", "t"], held=3)
    given = list(source)
    assert len(given) == 14 and len(source._held) == 3
    for number, (q, t) in enumerate(given):
        batch = data.batch(number, epoch=0)
        assert same(q, batch["q"].numpy()) and same(t, batch["t"].numpy())
    assert len(list(source)) == 14  # the next epoch
    assert [array.shape[0] for array in next(iter(batchfs.dali.Source(data)))] == [3, 3]


@pytest.mark.parametrize("place", ["server", "mounted"])
def test_a_dali_pipeline_goes_through_epochs(place, request):
    pytest.importorskip("nvidia.dali", reason="nvidia-dali-cuda130 is large; install it to test "
                                              "the pipeline itself")
    from nvidia.dali import fn, pipeline_def

    where = request.getfixturevalue(place)
    where = where.socket if place == "server" else where
    data = batchfs.open(where, "two")

    @pipeline_def(batch_size=data.schema["batch_size"], num_threads=2, device_id=None,
                  prefetch_queue_depth=2)
    def pipeline():
        return tuple(fn.external_source(source=batchfs.dali.Source(data, ["q", "t"]), num_outputs=2,
                                        no_copy=True, cycle="raise"))

    running = pipeline()
    running.build()
    for epoch in range(2):
        expected = list(batchfs.open(where, "two", epoch=epoch))
        for number, batch in enumerate(expected):
            for samples, name in zip(running.run(), ["q", "t"], strict=True):
                assert same(samples.as_array(), batch[name].numpy()), (epoch, number, name)
        with pytest.raises(StopIteration):
            running.run()
        running.reset()
