"""An output of predictions, which libbatchfs_writer writes."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._batch import Batch
from ._dataset import Dataset
from ._errors import InvalidArgument
from ._host import on_host
from ._writer import Writer


class Predictions:
    """An output that predictions are written to. Made by `batchfs.create`.

    Use it as a `with` block, or call `close()`. One process writes a rank; its threads may share
    the object.
    """

    def __init__(self, writer: Writer, output: str, dataset: Dataset | None, rank: int, world: int,
                 epoch: int):
        self._writer = writer
        self._output = output
        self._dataset = dataset
        self._rank, self._world, self._epoch = rank, world, epoch
        self._closed = False
        self._arrays: list[dict[str, Any]] = writer.describe()["arrays"]
        self._dims = {one["tensor"]: one["tensor_dims"] for one in self._arrays}
        self._samples = writer.numbers("samples")
        self._starts = writer.numbers("starts").reshape(len(self._samples), -1)

    # Contents of the output.

    @property
    def finished(self) -> bool:
        """Is the output complete: does it open as a Zarr store?"""
        return self._writer.finished()

    def done(self) -> np.ndarray:
        """Whether each sample of the epoch, by its number from 0, is in the output (or a part of
        it)."""
        return self._writer.numbers("done", dtype=np.uint8).astype(bool)

    def missing(self) -> int:
        """The number of samples that are not in the output yet, of all ranks."""
        return self._writer.missing()

    def remaining(self, dataset: Dataset | None = None) -> Iterator[Batch]:
        """The batches of this rank with samples that the output lacks: all of a new output, after a
        crash the rest.

        `dataset` is the one that `like` named, unless given. Batches that are done are not read,
        but for those between two that are needed.
        """
        data = dataset if dataset is not None else self._dataset
        if data is None:
            raise InvalidArgument("pass the dataset: out.remaining(dataset)")
        own = [number for number in self._writer.numbers("remaining").tolist()
               if number % data.world == data.rank]
        if not own:
            return
        data.set_epoch(self._epoch)
        data._done, data._resumed = own[0] // data.world * data.world, True
        wanted = set(own)
        try:
            for batch in data:
                if batch.number in wanted:
                    yield batch
                if batch.number >= own[-1]:
                    return
        finally:
            data.set_epoch(self._epoch)

    # Writing.

    def write(self, batch: Batch | int, prediction: Any) -> None:
        """Writes what was made from a batch, or from the batch of this number in the epoch: an
        array of numpy, torch, cupy or jax, or one by tensor name.

        It has the shape of the tensor that is predicted, samples first; with reduce="window" a
        value for each sample. It is copied: the memory may be used again when this returns. Blocks
        while objects wait to be encoded. Raises what a write before it has failed with.
        """
        samples = self._samples_of(batch)
        if not isinstance(prediction, Mapping):
            if len(self._dims) > 1:
                raise InvalidArgument("predictions of several tensors are passed by name: "
                                      f"{{{', '.join(map(repr, sorted(self._dims)))}: "
                                      "...}")
            prediction = {next(iter(self._dims)): prediction}
        if absent := self._dims.keys() - prediction.keys():
            raise InvalidArgument(f"the prediction lacks the tensor '{min(absent)}'")
        if strange := prediction.keys() - self._dims.keys():
            raise InvalidArgument(f"the output has nothing for the tensor '{min(strange)}'; it has "
                                  f"{', '.join(sorted(self._dims))}")
        arrays = {name: self._checked(name, on_host(prediction[name]), samples)
                  for name in self._dims}
        for name, values in arrays.items():
            self._writer.write(name, samples, values)

    def _samples_of(self, batch: Batch | int) -> np.ndarray:
        """The numbers of the batch's samples."""
        if isinstance(batch, int):
            return self._writer.numbers("batch_samples", ctypes.c_int64(batch))
        rows = np.searchsorted(self._samples, batch.index)
        known = rows < len(self._samples)
        known[known] = self._samples[rows[known]] == batch.index[known]
        if not known.all():
            raise InvalidArgument(f"the view has no sample {int(batch.index[~known][0])} in epoch "
                                  f"{self._epoch}, of which the output is: pass create() the view "
                                  "and the epoch that the batches are of")
        if not np.array_equal(self._starts[rows], batch._labels.starts):
            raise InvalidArgument("the batch is of another view than the output: its samples have "
                                  "other windows; pass create() the view that the batches are of")
        return batch.index

    def _checked(self, tensor: str, values: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """The values, as the library takes them."""
        expected = self._writer.shape(tensor, samples)
        if values.shape != expected:
            raise InvalidArgument(f"the prediction for '{tensor}' has the shape {values.shape}, "
                                  f"and the batch's is {expected} "
                                  f"({', '.join(self._dims[tensor][:len(expected)])})")
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        return np.require(values, requirements="A")

    # Completion.

    def close(self) -> None:
        """Ends this rank's share. The rank that ends last makes the output a Zarr store.

        Raises what a write failed with; and, in the rank that ends last, when samples are missing,
        saying how many: what was written stays, and the same program continues it.
        """
        self._closed = True
        self._writer.call("close")

    def __enter__(self) -> Predictions:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
            return
        # Another exception is propagating: keeps the written data for the next run.
        self._closed = True
        with contextlib.suppress(Exception):
            self._writer.call("suspend")

    def __repr__(self) -> str:
        names = ", ".join(f"{one['name']} {one['dtype']} {tuple(one['shape'])}"
                          for one in self._arrays)
        state = ("finished" if self.finished else "closed" if self._closed
                 else f"rank {self._rank} of {self._world}")
        return f"<batchfs.Predictions {self._output}: {names}; {state}>"
