"""Writes a model's output into a Zarr store, at the positions of the samples."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from . import _arrays
from ._batch import Batch
from ._dataset import Dataset
from ._chunking import WriteOptions
from ._errors import Error, InvalidArgument
from ._fold import Samples, cut, fold
from ._host import on_host
from ._output import RUN_KEY, WORKING, Folder, Lock, Parts
from ._placement import Placement, digest_of
from ._windows import Windows


class Predictions:
    """An output that predictions are written to. Made by `batchfs.create`.

    Use it as a `with` block, or call `close()`. One process writes a rank; its threads may share the object.
    """

    def __init__(self, folder: Folder, windows: Windows, placements: list[Placement], options: WriteOptions,
                 dataset: Dataset | None):
        self._folder = folder
        self._windows = windows
        self._placements = placements
        self._options = options
        self._rank, self._world = options.rank, options.world
        self._dataset = dataset
        self._arrays = _arrays.arrays_of(folder.put, placements, options.codec)
        self._done: dict[str, np.ndarray] = {}
        self._mutex = threading.Lock()  # guards what follows
        self._open: dict[tuple[str, int], Samples] = {}  # oldest first
        self._spilled: dict[tuple[str, int], set[int]] = {}
        self._held = 0  # bytes of _open
        self._failed: Exception | None = None
        self._closed = False
        self._lock: Lock | None = None
        self._parts = Parts(folder, self._begin(), self._rank)
        self._find_parts()
        threads = options.threads or min(4, len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(threads, "batchfs-write")
        self._jobs: list[Future[None]] = []
        self._slots = threading.BoundedSemaphore(2 * threads)  # objects that wait to be encoded

    # The output, and what it has.

    def _begin(self) -> str:
        identity = {"batchfs": "predictions", "version": 1, "arrays": self._arrays.identity(), "overlap": self._options.overlap,
                    "samples": self._windows.digest(), "denormalize": self._options.denormalize,
                    "coordinates": digest_of([axis for placement in self._placements for axis in placement.axes])}
        run = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
        folder = self._folder
        found = folder.get(RUN_KEY)
        if found is None:
            if not folder.is_empty():
                found = folder.get(RUN_KEY)  # another rank may have begun meanwhile
                if found is None:
                    raise InvalidArgument(f"'{folder.root}' exists and batchfs.create did not make it; name a new folder")
        if found is not None:
            try:
                other = json.loads(found)
            except ValueError:
                other = {}
            for key, value in json.loads(json.dumps(identity)).items():
                if not isinstance(other, dict) or other.get(key) != value:
                    raise InvalidArgument(f"'{folder.root}' is of another run: its \"{key}\" differs; remove it, name a new folder, or "
                                          "repeat the call that began it")
        else:
            folder.put(RUN_KEY, json.dumps(identity, indent=1).encode() + b"\n")
        self._lock = folder.try_lock(f"lock-rank-{self._rank}") if not self.finished else None
        if self._lock is None and not self.finished:
            raise InvalidArgument(f"another process writes rank {self._rank} of '{folder.root}'; pass each process a rank of its own, "
                                  "or wait until it has ended")
        folder.remove(self._ended(self._rank))
        for placement in self._placements:
            self._done[placement.name] = self._find_done(placement)
        return run

    def _ended(self, rank: int) -> str:
        return f"{WORKING}/ended-{rank}-of-{self._world}"

    def _find_done(self, placement: Placement) -> np.ndarray:
        done = np.zeros(len(placement.expected), bool)
        if self.finished:
            done[:] = True
            return done
        if not placement.grid:
            done[0] = self._folder.has(f"{placement.name}/c")
            return done
        for key in self._folder.objects(f"{placement.name}/c"):
            at = key.split("/")
            if len(at) == len(placement.grid) and all(one.isdecimal() for one in at):
                where = tuple(map(int, at))
                if all(k < n for k, n in zip(where, placement.grid, strict=True)):
                    done[placement.number(where)] = True
        return done

    def _find_parts(self) -> None:
        """Those of a run that was ended, and of other ranks."""
        for placement in self._placements:
            for number in self._parts.numbers(placement.name):
                if number >= len(placement.expected):
                    raise InvalidArgument(f"'{self._folder.root}' has parts of another run; remove it and write it anew")
                samples = self._parts.samples(placement.name, number)
                self._starts(samples)
                self._spilled[placement.name, number] = samples

    @property
    def finished(self) -> bool:
        """Is the output complete: does it open as a Zarr store?"""
        return self._folder.has("zarr.json")

    def done(self) -> np.ndarray:
        """Of each sample of the epoch, by its number from 0: is it in the output, in an object or a part of one?"""
        done = np.ones(len(self._windows.samples), bool)
        for placement in self._placements:
            finished = self._find_done(placement)
            parts: dict[int, set[int]] = {}
            for number in self._parts.numbers(placement.name):
                parts[number] = self._parts.samples(placement.name, number)
            for rows, numbers in placement.each_object(self._windows.starts):
                there = finished[numbers]
                if parts:
                    for i in np.flatnonzero(~there).tolist():
                        there[i] = int(self._windows.samples[rows[i]]) in parts.get(int(numbers[i]), ())
                done[rows] &= there
        return done

    def missing(self) -> int:
        """The number of samples that are not in the output yet, of all ranks."""
        return 0 if self.finished else int((~self.done()).sum())

    def remaining(self, dataset: Dataset | None = None) -> Iterator[Batch]:
        """The batches of this rank with samples that the output lacks: all of a new output, after a crash the rest.

        `dataset` is the one that `like` named, unless given. Batches that are done are not read, but for those between two
        that are needed.
        """
        data = dataset if dataset is not None else self._dataset
        if data is None:
            raise InvalidArgument("pass the dataset: out.remaining(dataset)")
        needed = set(np.unique(self._windows.batches[~self._done_rows()]).tolist()) if not self.finished else set()
        own = sorted(number for number in needed if number % data.world == data.rank)
        if not own:
            return
        data.set_epoch(self._windows.epoch)
        data._done, data._resumed = own[0] // data.world * data.world, True
        wanted = set(own)
        try:
            for batch in data:
                if batch.number in wanted:
                    yield batch
                if batch.number >= own[-1]:
                    return
        finally:
            data.set_epoch(self._windows.epoch)

    def _done_rows(self) -> np.ndarray:
        return self.done()[self._windows.row_of]

    # Writing.

    def write(self, batch: Batch | int, prediction: Any) -> None:
        """Writes what was made from a batch, or from the batch of this number in the epoch: an array of numpy, torch, cupy
        or jax, or one by tensor name.

        It has the shape of the tensor that is predicted, samples first; with reduce="window" a value for each sample. It
        is copied: the memory may be used again when this returns. Blocks while objects wait to be encoded. Raises what a
        write before it has failed with.
        """
        self._check()
        rows = self._rows_of(batch) if isinstance(batch, int) else self._rows(batch)
        tensors = {placement.tensor for placement in self._placements}
        if not isinstance(prediction, Mapping):
            if len(tensors) > 1:
                raise InvalidArgument(f"predictions of several tensors are passed by name: {{{', '.join(map(repr, sorted(tensors)))}: "
                                      "...}")
            prediction = {next(iter(tensors)): prediction}
        if absent := tensors - set(prediction):
            raise InvalidArgument(f"the prediction lacks the tensor '{min(absent)}'")
        if strange := set(prediction) - tensors:
            raise InvalidArgument(f"the output has nothing for the tensor '{min(strange)}'; it has {', '.join(sorted(tensors))}")
        arrays = {}
        for name in tensors:
            values = prediction[name]
            if self._options.denormalize:
                if isinstance(batch, int):
                    raise InvalidArgument("denormalize=True needs the batch, not its number: denormalize in the model")
                values = batch.denormalize(name, values)
            arrays[name] = on_host(values)
        shapes = self._windows.shapes if isinstance(batch, int) else {name: batch[name].shape for name in tensors}
        values_of = {placement.name: self._checked(placement, arrays[placement.tensor], len(rows), shapes)
                     for placement in self._placements}
        for placement in self._placements:
            for i, row in enumerate(rows):
                self._add(placement, row, values_of[placement.name][i])

    def _rows_of(self, number: int) -> list[int]:
        """The rows of the samples of a batch of this number."""
        result: list[int] = self._windows.row_of[self._windows.batches == number].tolist()
        if not result:
            raise InvalidArgument(f"the view has no batch {number} in epoch {self._windows.epoch}; it has {int(self._windows.batches.max()) + 1}")
        return result

    def _rows(self, batch: Batch) -> list[int]:
        """The rows of the batch's samples in the table of windows."""
        windows = self._windows
        rows = np.searchsorted(windows.samples, batch.index)
        known = rows < len(windows.samples)
        known[known] = windows.samples[rows[known]] == batch.index[known]
        if not known.all():
            raise InvalidArgument(f"the view has no sample {int(batch.index[~known][0])} in epoch {windows.epoch}, of which the output is: "
                                  "pass create() the view and the epoch that the batches are of")
        if not np.array_equal(windows.starts[rows], batch._labels.starts):
            raise InvalidArgument("the batch is of another view than the output: its samples have other windows; pass create() the "
                                  "view that the batches are of")
        result: list[int] = rows.tolist()
        return result

    def _checked(self, placement: Placement, values: np.ndarray, samples: int, shapes: Mapping[str, Any]) -> np.ndarray:
        expected = (samples,) if self._windows.reduce else (samples, *shapes[placement.tensor][1:])
        if values.shape != expected:
            raise InvalidArgument(f"the prediction for '{placement.tensor}' has the shape {values.shape}, and the batch's is {expected} "
                                  f"({', '.join(placement.dims[:len(expected)])})")
        if not np.can_cast(values.dtype, placement.dtype, "same_kind"):
            raise InvalidArgument(f"the prediction for '{placement.tensor}' is of the type {values.dtype}, and '{placement.name}' of "
                                  f"{placement.dtype}: convert it, or pass dtype= to create()")
        return placement.values(values)

    def _add(self, placement: Placement, row: int, values: np.ndarray) -> None:
        sample, starts = int(self._windows.samples[row]), self._windows.starts[row]
        for number in placement.objects_of(starts):
            if self._done[placement.name][number]:
                continue
            parts = [part.astype(placement.dtype, copy=False) for part in cut(values, placement.boxes(number, starts))]
            key = (placement.name, number)
            with self._mutex:
                samples = self._open.setdefault(key, {})
                old = samples.get(sample, [])
                samples[sample] = parts
                self._held += sum(part.nbytes for part in parts) - sum(part.nbytes for part in old)
                spilled = self._spilled.get(key)
                complete = (len(samples.keys() | spilled) if spilled else len(samples)) == placement.expected[number]
                if complete:
                    self._take(key)
            if complete:
                self._start(placement, number, samples)
            self._relieve()

    def _take(self, key: tuple[str, int]) -> Samples:
        """Precondition: holds the mutex."""
        samples = self._open.pop(key)
        self._held -= sum(part.nbytes for parts in samples.values() for part in parts)
        return samples

    def _relieve(self) -> None:
        """Above the budget the oldest objects become parts."""
        while True:
            with self._mutex:
                if self._held <= self._options.memory or not self._open:
                    return
                key = next(iter(self._open))
                samples = self._take(key)
                self._spilled.setdefault(key, set()).update(samples)
            self._spill(self._placement(key[0]), key[1], samples)

    def _placement(self, name: str) -> Placement:
        return next(placement for placement in self._placements if placement.name == name)

    def _start(self, placement: Placement, number: int, samples: Samples) -> None:
        """Encodes and puts a complete object on another thread."""
        self._slots.acquire()

        def job() -> None:
            try:
                self._fold(placement, number, samples)
            except Exception as error:
                with self._mutex:
                    self._failed = self._failed or error
            finally:
                self._slots.release()

        with self._mutex:
            self._jobs = [one for one in self._jobs if not one.done()]
            self._jobs.append(self._pool.submit(job))

    def _spill(self, placement: Placement, number: int, samples: Samples) -> None:
        self._parts.put(placement.name, number, samples)
        self._fold(placement, number, {})

    def _fold(self, placement: Placement, number: int, samples: Samples) -> None:
        """Puts the object if all of its samples are there, in `samples` and parts."""
        expected = int(placement.expected[number])
        name = placement.name
        if len(samples) == expected:
            self._put(placement, number, samples)
            return
        with self._folder.locked(f"parts/{name}/{number}.lock"):
            if self._has(placement, number):
                self._parts.discard(name, number)  # of a process that was killed meanwhile
                return
            if samples:
                found = self._parts.samples(name, number) | set(samples)
            else:
                found = self._parts.samples(name, number)
            if len(found) < expected:
                if samples:
                    self._parts.put(name, number, samples)
                return
            starts = self._starts(found)
            read = self._parts.read(name, number, lambda sample: self._shapes(placement, number, sample), placement.dtype)
            self._put(placement, number, read | samples, starts)
            self._parts.discard(name, number)

    def _shapes(self, placement: Placement, number: int, sample: int) -> list[tuple[int, ...]]:
        return [tuple(one.stop - one.start for one in box.source)
                for box in placement.boxes(number, self._starts({sample})[sample])]

    def _starts(self, samples: Any) -> dict[int, np.ndarray]:
        wanted = np.fromiter(samples, np.int64, len(samples))
        rows = np.searchsorted(self._windows.samples, wanted)
        if len(rows) and (rows.max() >= len(self._windows.samples) or (self._windows.samples[rows] != wanted).any()):
            raise InvalidArgument(f"a part in '{self._folder.path(WORKING)}' has samples that the view does not have; remove the output "
                                  "and write it anew")
        return dict(zip(wanted.tolist(), self._windows.starts[rows], strict=True))

    def _has(self, placement: Placement, number: int) -> bool:
        return self._folder.has(self._object_key(placement, number))

    def _object_key(self, placement: Placement, number: int) -> str:
        at = np.unravel_index(number, placement.grid) if placement.grid else ()
        return "/".join([placement.name, "c", *map(str, map(int, at))])

    def _put(self, placement: Placement, number: int, samples: Samples, starts: dict[int, np.ndarray] | None = None) -> None:
        values = fold(placement, number, samples, starts or self._starts(samples), self._options.overlap)
        self._arrays.put(placement.name, placement.region(number), values)
        self._done[placement.name][number] = True

    # The end.

    def _check(self) -> None:
        if self._closed:
            raise Error("the output is closed; create it again, with the same arguments: it continues")
        with self._mutex:
            failed = self._failed
        if failed is not None:
            raise failed

    def _drain(self) -> None:
        """Ends all work: incomplete objects become parts."""
        with self._mutex:
            jobs = list(self._jobs)
        for job in jobs:
            job.result()
        self._check()
        while True:
            with self._mutex:
                if not self._open:
                    return
                key = next(iter(self._open))
                samples = self._take(key)
            self._spill(self._placement(key[0]), key[1], samples)

    def close(self) -> None:
        """Ends this rank's share. The rank that ends last makes the output a Zarr store.

        Raises what a write failed with; and, in the rank that ends last, when samples are missing, saying how many: what
        was written stays, and the same program continues it.
        """
        if self._closed:
            return
        try:
            self._drain()
            if not self.finished:
                self._folder.put(self._ended(self._rank), b"ended\n")
                self._finish()
            if self.finished:  # also of a rank that began while another one finished the output
                self._folder.discard_working_files()
        finally:
            self._release()

    def _finish(self) -> None:
        with self._folder.locked("lock-finish"):
            if self.finished or not all(self._folder.has(self._ended(rank)) for rank in range(self._world)):
                return
            lacking = 0
            for placement in self._placements:
                for number in self._parts.numbers(placement.name):  # of ranks that were killed before they could
                    self._fold(placement, number, {})
                lacking += int((~self._find_done(placement) & (placement.expected > 0)).sum())
            if lacking:
                samples = self.missing()
                raise Error(f"the output is not finished: {samples} of {len(self._windows.samples)} samples are missing, in {lacking} "
                            f"chunks of '{self._folder.root}'; create it again with the same arguments and write the batches "
                            "of out.remaining()")
            self._arrays.put_coordinates()
            self._folder.sync()
            for key, document in self._arrays.documents():
                self._folder.put(key, document)
            self._folder.sync()

    def _release(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=True)
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Predictions:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
            return
        # Another failure is on its way: what was written is kept for the next run.
        with contextlib.suppress(Exception):
            self._drain()
        self._release()

    def __repr__(self) -> str:
        names = ", ".join(f"{one.name} {one.dtype} {one.shape}" for one in self._placements)
        state = "finished" if self.finished else "closed" if self._closed else f"rank {self._rank} of {self._world}"
        return f"<batchfs.Predictions {self._folder.root}: {names}; {state}>"
