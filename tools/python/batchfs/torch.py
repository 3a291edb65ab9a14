"""batchfs for PyTorch: an IterableDataset of dicts of tensors.

    from torch.utils.data import DataLoader
    from batchfs.torch import BatchDataset

    train = BatchDataset("s3://bucket/era5.zarr", "view.json")
    for epoch in range(3):
        train.set_epoch(epoch)
        for batch in DataLoader(train, batch_size=None):
            loss = model(batch["x"]) - batch["y"]

No worker processes are needed: batches are made by batchfs, on all cores, ahead of the reader. Where workers are wanted
for what comes after, they share the rank's batches and the order stays the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils.data

from ._dataset import Dataset, open
from ._errors import InvalidArgument


def rank_and_world() -> tuple[int, int]:
    """Of torch.distributed where it is initialised, else of the environment (torchrun's), else 0 of 1."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class BatchDataset(torch.utils.data.IterableDataset[Any]):
    """The batches of a view: `batchfs.open`'s arguments, with the rank from torch.distributed or the environment by default.

    To be used with `DataLoader(dataset, batch_size=None)`. `transform` is applied to the dict of tensors. Call
    `set_epoch` before each epoch when there are workers, which start anew each time.
    """

    def __init__(self, place: str | os.PathLike[str],
                 view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *, device: str = "cpu",
                 rank: int | None = None, world: int | None = None, epoch: int = 0, prefetch: int = 2,
                 mode: str = "auto", device_memory: int = 0, part: str | None = None,
                 memory: str | int | None = None, cache_dir: str | os.PathLike[str] | None = None,
                 program: str | os.PathLike[str] | None = None,
                 transform: Callable[[dict[str, torch.Tensor]], Any] | None = None, **options: Any):
        if (rank is None) != (world is None):
            raise InvalidArgument("rank and world are given together, or neither")
        if rank is None or world is None:
            rank, world = rank_and_world()
        self.batches: Dataset = open(place, view, device=device, rank=rank, world=world, epoch=epoch,
                                     prefetch=prefetch, mode=mode, device_memory=device_memory, part=part,
                                     memory=memory, cache_dir=cache_dir, program=program, **options)
        self._transform = transform

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        self.batches._worker = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for batch in self.batches:
            tensors = batch.torch()
            yield tensors if self._transform is None else self._transform(tensors)

    def set_epoch(self, epoch: int) -> None:
        self.batches.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As Dataset.state_dict. Of a DataLoader without workers: workers read ahead of what was trained on."""
        return self.batches.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.batches.load_state_dict(state)
