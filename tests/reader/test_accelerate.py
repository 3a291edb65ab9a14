"""Hugging Face's accelerate: two processes get each sample once, from every kind of loader.

Skipped where accelerate is not installed.
"""

import json

import numpy as np
import pytest
import xarray as xr

import batchfs
from framework_scripts import SHUFFLED, means, run_script


@pytest.fixture
def view_file(tmp_path):
    file = tmp_path / "v.json"
    file.write_text(json.dumps(SHUFFLED))
    return file


ACCELERATE = """
import sys
import batchfs, batchfs.torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2])
    loader = accelerator.prepare(batchfs.torch.loader(data))
    found = [float(batch["t"].mean()) for batch in loader]
    accelerator.save_state("state")
    accelerator.wait_for_everyone()
    accelerator.load_state("state")
    from accelerate.data_loader import IterableDatasetShard
    data.set_epoch(0)
    shard = IterableDatasetShard(data, batch_size=1, num_processes=2,
                                 process_index=accelerator.process_index)
    show([accelerator.process_index, found, [float(batch["t"].mean()) for batch in shard]])
"""


def test_accelerate_leaves_a_loader_as_it_is(store, view_file, tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("accelerate")
    shown = run_script(tmp_path, ACCELERATE, store, view_file, processes=2,
                       environment={"CUDA_VISIBLE_DEVICES": ""})  # it may have one GPU
    assert sorted(rank for rank, *_ in shown) == [0, 1]
    expected = means(store, 0)
    for rank, values, of_a_shard in shown:
        assert np.allclose(values, expected[rank::2], rtol=1e-6)
        assert np.allclose(of_a_shard, expected[rank::2], rtol=1e-6)


OWN_LOADER = """
import sys, warnings
import batchfs.torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

if __name__ == "__main__":
    workers, start, persistent = int(sys.argv[3]), sys.argv[4] or None, sys.argv[5] == "True"
    accelerator = Accelerator(cpu=True)
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2])
    loader = DataLoader(data, batch_size=None, num_workers=workers, multiprocessing_context=start,
                        persistent_workers=persistent)
    loader = accelerator.prepare(loader)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [[float(batch["t"].mean()) for batch in loader] for _ in range(2)]
    said = sum("batchfs.torch.loader(dataset)" in str(warning.message) for warning in said)
    accelerator.end_training()
    show([accelerator.process_index, len(loader), found, said])
"""


@pytest.mark.parametrize(("workers", "start", "persistent"),
                         [(0, "", False), (2, "fork", False), (2, "spawn", True)])
def test_accelerate_takes_a_data_loader_of_ones_own(store, view_file, tmp_path, workers, start,
                                                    persistent):
    pytest.importorskip("torch"), pytest.importorskip("accelerate")
    shown = run_script(tmp_path, OWN_LOADER, store, view_file, workers, start, persistent,
                       processes=2, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert sorted(rank for rank, *_ in shown) == [0, 1]
    for rank, length, found, said in shown:
        expected = [means(store, epoch)[rank::2] for epoch in range(2)]
        assert length == len(expected[0]) and said >= 1
        assert np.allclose(found, expected, rtol=1e-6), (rank, found, expected)


OF_A_MAP = """
import sys
import batchfs.torch
from accelerate import Accelerator

if __name__ == "__main__":
    workers, start = int(sys.argv[3]), sys.argv[4] or None
    accelerator = Accelerator(cpu=True)
    data = batchfs.torch.BatchMap(sys.argv[1], sys.argv[2])
    loader = accelerator.prepare(batchfs.torch.loader(data, num_workers=workers,
                                                      multiprocessing_context=start))
    found = [[batch["t"].mean(tuple(range(1, batch["t"].ndim))).tolist() for batch in loader]
             for _ in range(2)]
    accelerator.end_training()
    show([accelerator.process_index, len(loader), found])
"""


def samples_of_batches(store, epoch):
    """A number for each sample, of each batch of an epoch."""
    with batchfs.open(store, SHUFFLED, epoch=epoch) as data:
        return [batch["t"].numpy().mean(axis=tuple(range(1, batch["t"].numpy().ndim)))
                for batch in data]


@pytest.mark.parametrize(("workers", "start"), [(0, ""), (2, "spawn")])
def test_accelerate_divides_the_batches_of_a_map(store, view_file, tmp_path, workers, start):
    pytest.importorskip("torch"), pytest.importorskip("accelerate")
    shown = run_script(tmp_path, OF_A_MAP, store, view_file, workers, start, processes=2,
                       environment={"CUDA_VISIBLE_DEVICES": ""})
    assert sorted(rank for rank, *_ in shown) == [0, 1]
    for rank, length, found in shown:
        for epoch in range(2):
            expected = samples_of_batches(store, epoch)[rank::2]
            assert length == len(expected) == len(found[epoch])
            for one, other in zip(found[epoch], expected):
                np.testing.assert_allclose(one, other, rtol=1e-6)


SAMPLES = """
import sys
import batchfs.torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2]), batch_size=None,
                        num_workers=int(sys.argv[3]))
    found = []
    for batch in accelerator.prepare(loader):
        found += batch["t"].mean(tuple(range(1, batch["t"].ndim))).tolist()
    accelerator.end_training()
    show([accelerator.process_index, found])
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_comes_once_where_the_processes_do_not_divide_the_batches(
        store, view_file, tmp_path, workers):
    """accelerate divides the samples of a last batch for which it has too many processes."""
    pytest.importorskip("torch"), pytest.importorskip("accelerate")
    view_file.write_text(json.dumps(SHUFFLED | {"batch": {"size": 8}}))
    shown = dict(run_script(tmp_path, SAMPLES, store, view_file, workers, processes=2,
                            environment={"CUDA_VISIBLE_DEVICES": ""}))
    assert set(shown) == {0, 1}
    values = xr.open_zarr(store).t.values.astype("f4")
    expected = values.mean(axis=tuple(range(1, values.ndim)))
    assert len(expected) % 16 == 8  # an odd number of batches
    np.testing.assert_allclose(sorted(shown[0] + shown[1]), sorted(expected), rtol=1e-6)
