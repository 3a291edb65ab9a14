"""batchfs for PyTorch: datasets of dicts of tensors.

    from batchfs.torch import BatchDataset, loader

    train = BatchDataset("s3://bucket/era5.zarr", "view.json")
    for epoch in range(3):
        for batch in loader(train):
            loss = model(batch["x"]) - batch["y"]

No worker processes are needed: batches are made by batchfs, on all cores, ahead of the reader.
Where workers are wanted for what comes after, they share the rank's batches and the order stays the
same, however they are started.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.utils.data

from ._batch import Batch
from ._dataset import Dataset, open
from ._errors import InvalidArgument, NoMemory


def rank_and_world() -> tuple[int, int]:
    """Rank and world of torch.distributed if it is initialised, else of the environment
    (torchrun's), else 0 of 1."""
    if _is_distributed():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 1


def _is_distributed() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


class BatchDataset(torch.utils.data.IterableDataset[Any]):
    """The batches of a view: `batchfs.open`'s arguments, with the rank from torch.distributed or
    the environment by default. Where torch.distributed is initialised later, the rank follows it.

    To be used with `loader(dataset)`, or `DataLoader(dataset, batch_size=None)`. `transform` is
    applied to the dict of tensors. With `pin`, tensors of the host are in page-locked memory,
    copied by a thread one batch ahead, so that `x.to("cuda", non_blocking=True)` returns at once;
    without a GPU it changes nothing.

    Each iteration is the next epoch. A DataLoader's workers, which are copies of the dataset, begin
    with the same one again and again, unless `set_epoch` is called before each; `loader` does that.
    """

    def __init__(self, place: str | os.PathLike[str],
                 view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *,
                 device: str = "cpu", rank: int | None = None, world: int | None = None,
                 epoch: int = 0, prefetch: int = 2, mode: str = "auto", device_memory: int = 0,
                 part: str | None = None, memory: str | int | None = None,
                 cache_dir: str | os.PathLike[str] | None = None,
                 program: str | os.PathLike[str] | None = None,
                 transform: Callable[[dict[str, torch.Tensor]], Any] | None = None,
                 pin: bool = False, **options: Any):
        if (rank is None) != (world is None):
            raise InvalidArgument("rank and world are given together, or neither")
        self._follows = rank is None
        if rank is None or world is None:
            rank, world = rank_and_world()
        self._batches: Dataset = open(place, view, device=device, rank=rank, world=world,
                                      epoch=epoch, prefetch=prefetch, mode=mode,
                                      device_memory=device_memory, part=part, memory=memory,
                                      cache_dir=cache_dir, program=program, **options)
        self._transform = transform
        self._pin = pin
        # of an iteration that reads ahead of the batches that it has yielded
        self._state: dict[str, Any] | None = None
        # The epoch that set_epoch chose, how often it did so, and whether accelerate divides the
        # batches. Workers that persist share it.
        self._chosen = _shared([0, 0, 0])
        self._seen = 0
        self._all: Dataset | None = None

    @property
    def batches(self) -> Dataset:
        """The dataset below, of this rank."""
        if self._follows and _is_distributed():
            found = rank_and_world()
            if found != (self._batches.rank, self._batches.world):
                self._batches = self._batches.of_rank(*found)
        return self._batches

    @property
    def _given(self) -> Dataset:
        """The dataset of an iteration: the batches of this rank, or all of them where accelerate
        divides them itself."""
        own = self.batches
        if own.world == 1 or not (self._chosen[2] or _is_called_by_accelerate()):
            return own
        if not self._chosen[2]:
            self._chosen[2] = 1
            warnings.warn("accelerate divides the batches of this loader itself: more processes "
                          "read a batch than use it. batchfs.torch.loader(dataset) makes one of "
                          "which each process reads its own", RuntimeWarning, stacklevel=2)
        if self._all is None:
            self._all = own.of_rank(0, 1)
        return self._all

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[Any]:
        self._state = None
        worker = torch.utils.data.get_worker_info()
        batches = self._given
        batches._worker = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if worker is not None and int(self._chosen[1]) != self._seen:
            self._seen = int(self._chosen[1])
            batches.set_epoch(int(self._chosen[0]))
        if self._pin and torch.cuda.is_available() and worker is None:
            yield from self._pinned(batches)
            return
        for batch in batches:
            yield self._transformed(batch.torch())

    def _transformed(self, tensors: dict[str, torch.Tensor]) -> Any:
        return tensors if self._transform is None else self._transform(tensors)

    def _pinned(self, batches: Dataset) -> Iterator[Any]:
        ready: Future[dict[str, torch.Tensor]] | None = None
        state: dict[str, Any] | None = None
        with ThreadPoolExecutor(1, "batchfs-pin") as copier:
            for batch in batches:
                copied = copier.submit(_in_pinned_memory, batch)
                if ready is not None:
                    self._state = state
                    yield self._transformed(ready.result())
                ready, state = copied, batches.state_dict()
            self._state = None
            if ready is not None:
                yield self._transformed(ready.result())

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads this epoch, in this process and in workers that are there
        already."""
        self._state = None
        self._given.set_epoch(epoch)
        self._chosen[0] = epoch
        self._chosen[1] += 1
        self._seen = int(self._chosen[1])

    def state_dict(self) -> dict[str, Any]:
        """Like Dataset.state_dict. For a DataLoader without workers: workers read ahead of the
        training."""
        return self._given.state_dict() if self._state is None else self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = None
        self._given.load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        # A worker that is not forked does not know of torch.distributed.
        return self.__dict__ | {"_batches": self.batches, "_follows": False, "_state": None}


class BatchMap(torch.utils.data.Dataset[Any]):
    """The batches of a view by number, for samplers of PyTorch and of Lightning:
    `DataLoader(BatchMap(...), batch_size=None, sampler=...)`. It takes the arguments of
    `batchfs.open`.

    Batches that are asked for by number are not made ahead: use workers, or `BatchDataset`, which
    needs none. A sampler divides the batches between ranks, so that the dataset itself has them
    all.
    """

    def __init__(self, place: str | os.PathLike[str],
                 view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *, epoch: int = 0,
                 transform: Callable[[dict[str, torch.Tensor]], Any] | None = None, **options: Any):
        self.batches: Dataset = open(place, view, epoch=epoch, **options)
        self._transform = transform
        self._epoch = _shared([epoch])  # with workers

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Any:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there are {count} batches, not one of number {index}")
        number = self.batches.rank + (index % count) * self.batches.world
        tensors = self.batches.batch(number, epoch=int(self._epoch[0])).torch()
        return tensors if self._transform is None else self._transform(tensors)

    def set_epoch(self, epoch: int) -> None:
        """Batches are those of this epoch from now on, in workers, too."""
        self.batches.set_epoch(epoch)
        self._epoch.fill_(epoch)


class _First:
    """Takes a batch out of a list of one, for loaders."""

    def __init__(self, convert: Callable[[Any], Any] | None):
        if isinstance(convert, _First):  # of a loader that a trainer copies
            convert = convert.convert
        self.convert: Callable[[Any], Any] = convert or torch.utils.data.default_convert

    def __call__(self, batches: list[Any]) -> Any:
        return self.convert(batches[0])


class _Loader(torch.utils.data.DataLoader[Any]):
    """Each iteration of a BatchDataset is the next epoch, with workers, too."""

    def __init__(self, dataset: BatchDataset | BatchMap, **options: Any):
        if isinstance(dataset, BatchMap):
            # One at a time, instead of without automatic batches: accelerate divides lists of
            # numbers only.
            options |= {"batch_size": 1, "collate_fn": _First(options.get("collate_fn"))}
        else:
            options["batch_size"] = None
        super().__init__(dataset, **options)
        # accelerate would give each process a share of what the loader yields; a BatchDataset has
        # its rank's share only.
        self._is_accelerate_prepared = isinstance(dataset, BatchDataset)
        self._left = -1  # batches that the running iteration will yield

    def __iter__(self) -> Any:
        dataset = self.dataset
        if self.num_workers == 0 or not isinstance(dataset, BatchDataset):
            return super().__iter__()
        if self._left == 0:  # trainers that count batches do not ask for the end
            dataset.set_epoch(dataset.batches.epoch + 1)
        self._left = dataset.batches.remaining()
        return self._of_workers(super().__iter__(), dataset)

    def _of_workers(self, inner: Iterator[Any], dataset: BatchDataset) -> Iterator[Any]:
        for item in inner:
            self._left -= 1
            yield item
        self._left = -1
        dataset.set_epoch(dataset.batches.epoch + 1)


class _LoaderWithState(_Loader):
    """Without workers, so that the dataset knows which batches were given out. Lightning saves the
    state in its checkpoints."""

    def state_dict(self) -> dict[str, Any]:
        assert isinstance(self.dataset, BatchDataset)
        return self.dataset.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert isinstance(self.dataset, BatchDataset)
        self.dataset.load_state_dict(state)


def loader(dataset: BatchDataset | BatchMap, **options: Any) -> torch.utils.data.DataLoader[Any]:
    """`DataLoader(dataset, batch_size=None, **options)`, in which workers go through epochs as the
    dataset does, and which Hugging Face's accelerate leaves as it is: a BatchDataset has the
    batches of its rank only. accelerate and Lightning's Trainer divide the batches of a BatchMap.

    For a BatchDataset and without workers it has the dataset's `state_dict` and `load_state_dict`.
    """
    resumable = isinstance(dataset, BatchDataset) and not options.get("num_workers", 0)
    return (_LoaderWithState if resumable else _Loader)(dataset, **options)


def _shared(values: list[int]) -> torch.Tensor:
    """In memory that workers have, too; PyTorch takes it from /dev/shm. Raises NoMemory."""
    try:
        return torch.tensor(values, dtype=torch.int64).share_memory_()
    except RuntimeError as error:
        raise NoMemory("PyTorch has no shared memory for its workers: "
                       f"{str(error).splitlines()[0]}; remove files from /dev/shm, or make it "
                       "larger: --shm-size=1g for a container") from None


def _in_pinned_memory(batch: Batch) -> dict[str, torch.Tensor]:
    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_cuda:
            return tensor
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)

    return {name: copy(tensor) for name, tensor in batch.torch().items()}


def _is_called_by_accelerate() -> bool:
    """Its loaders give each process a share of what a dataset yields, or of what the first process
    reads."""
    if "accelerate.data_loader" not in sys.modules:
        return False
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            return True
    return False
