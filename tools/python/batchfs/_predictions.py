"""Writing a model's output back into a Zarr store, at the places of the samples that it was made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ._batch import Batch, Tensor
from ._dataset import Dataset
from ._errors import Error, InvalidArgument, NotSupported
from ._fold import Samples, cut, fold
from ._output import RUN_KEY, WORKING, Folder, Parts
from ._placement import OVERLAPS, Axis, Placement, placements_of
from ._windows import Windows

_CHUNK_BYTES = 4 << 20
_MAX_OBJECTS = 1 << 26
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Predictions:
    """An output that predictions are written to. Made by `batchfs.create`.

    Use it as a `with` block, or call `close()`. One process writes a rank; its threads may share the object.
    """

    def __init__(self, folder: Folder, windows: Windows, placements: list[Placement], options: dict[str, Any],
                 dataset: Dataset | None):
        self._folder = folder
        self._windows = windows
        self._placements = placements
        self._overlap: str = options["overlap"]
        self._fill: dict[str, float] = {}
        self._rank, self._world = int(options["rank"]), int(options["world"])
        self._denormalize: bool = options["denormalize"]
        self._dataset = dataset
        self._arrays = _arrays(folder)
        self._expected: dict[str, np.ndarray] = {}
        self._done: dict[str, np.ndarray] = {}
        self._mutex = threading.Lock()  # guards what follows
        self._open: dict[tuple[str, int], Samples] = {}  # oldest first
        self._spilled: dict[tuple[str, int], set[int]] = {}
        self._held = 0  # bytes of _open
        self._failed: Exception | None = None
        self._closed = False
        self._memory = _bytes(options["memory"])
        for placement in placements:
            self._prepare(placement, options)
        self._is_grid = windows.is_grid
        self._run = self._begin(options)
        self._parts = Parts(folder, self._run, self._rank)
        threads = options["threads"] or min(4, len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(threads, "batchfs-write")
        self._jobs: list[Future[None]] = []
        self._slots = threading.BoundedSemaphore(2 * threads)  # objects that wait to be encoded

    # Geometry.

    def _prepare(self, placement: Placement, options: dict[str, Any]) -> None:
        windows = self._windows
        collides, overlaps = [], []
        used = {axis.window for axis in placement.axes}
        for w, dim in enumerate(windows.dims):
            if w not in used and len(np.unique(windows.starts[:, w])) > 1:
                collides.append(dim)
        for axis in placement.axes:
            if axis.window is None:
                continue
            state = axis.set_starts(np.unique(windows.starts[:, axis.window]), self._overlap, windows.is_grid)
            if state == "collide":
                collides.append(axis.name)
            elif state == "overlap":
                overlaps.append(axis.name)
        if collides and self._overlap != "last":
            raise InvalidArgument(f"several samples have values for the same elements of '{placement.name}', along "
                                  f"'{collides[0]}': pass overlap=\"last\" to keep those of the last sample, or time=\"lead\" for "
                                  "forecasts of several steps")
        if overlaps and self._overlap == "error":
            raise InvalidArgument(f"windows overlap along '{overlaps[0]}': pass overlap=\"trim\", \"mean\", \"cosine\" or \"last\" "
                                  f"to say which values '{placement.name}' gets there")
        wanted = options["dtype"]
        stored = np.dtype(windows.dtypes[placement.tensor]) if wanted is None else np.dtype(wanted)
        placement.dtype = stored
        _zarr_arrays().check_dtype(stored)
        if self._overlap in ("mean", "cosine") and stored.kind not in "f":
            raise InvalidArgument(f"overlap=\"{self._overlap}\" makes means, and '{placement.name}' has values of the type {stored}: "
                                  "pass overlap=\"trim\"")
        self._fill[placement.name] = math.nan if stored.kind == "f" else 0
        chunk, steps = _objects_of(placement, options["chunks"], options["shards"])
        placement.set_objects(steps)
        if math.prod(placement.grid) > _MAX_OBJECTS:
            raise InvalidArgument(f"'{placement.name}' would have {math.prod(placement.grid)} chunks; pass larger ones with chunks=")
        self._arrays.add(placement, chunk, options["shards"] is not None, options["codec"], self._fill[placement.name])
        for axis in placement.axes:
            self._arrays.add_coordinate(axis)
        expected = np.zeros(math.prod(placement.grid), np.int64)
        for _, numbers in placement.each_object(windows.starts):
            expected += np.bincount(numbers, minlength=len(expected))
        self._expected[placement.name] = expected

    # The output, and what it has.

    def _begin(self, options: dict[str, Any]) -> str:
        identity = {"batchfs": "predictions", "version": 1, "arrays": self._arrays.identity(), "overlap": self._overlap,
                    "samples": self._windows.digest(), "denormalize": self._denormalize,
                    "coordinates": _digest_of([axis for placement in self._placements for axis in placement.axes])}
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
        done = np.zeros(len(self._expected[placement.name]), bool)
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
        for batch in data:
            if batch.number in wanted:
                yield batch
            if batch.number >= own[-1]:
                return

    def _done_rows(self) -> np.ndarray:
        return self.done()[self._windows.row_of]

    # Writing.

    def write(self, batch: Batch, prediction: Any) -> None:
        """Writes what was made from a batch: an array of numpy, torch, cupy or jax, or one by tensor name.

        It has the shape of the tensor that is predicted, samples first; with reduce="window" a value for each sample. It
        is copied: the memory may be used again when this returns. Blocks while objects wait to be encoded. Raises what a
        write before it has failed with.
        """
        self._check()
        rows = self._rows(batch)
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
            if self._denormalize:
                values = batch.denormalize(name, values)
            arrays[name] = _on_host(values)
        values_of = {placement.name: self._checked(placement, arrays[placement.tensor], batch) for placement in self._placements}
        for placement in self._placements:
            for i, row in enumerate(rows):
                self._add(placement, row, values_of[placement.name][i])

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

    def _checked(self, placement: Placement, values: np.ndarray, batch: Batch) -> np.ndarray:
        expected = (batch.samples,) if self._windows.reduce else (batch.samples, *batch[placement.tensor].shape[1:])
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
                complete = len(samples.keys() | self._spilled.get(key, set())) == self._expected[placement.name][number]
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
                if self._held <= self._memory or not self._open:
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
        expected = int(self._expected[placement.name][number])
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
        return self._arrays.key(placement.name, tuple(map(int, at)))

    def _put(self, placement: Placement, number: int, samples: Samples, starts: dict[int, np.ndarray] | None = None) -> None:
        values = fold(placement, number, samples, starts or self._starts(samples), self._overlap, self._is_grid,
                      self._fill[placement.name])
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
        """Ends all work: what is not complete becomes parts."""
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
        finally:
            self._release()

    def _finish(self) -> None:
        with self._folder.locked("lock-finish"):
            if self.finished or not all(self._folder.has(self._ended(rank)) for rank in range(self._world)):
                return
            lacking = 0
            for placement in self._placements:
                lacking += int((~self._find_done(placement) & (self._expected[placement.name] > 0)).sum())
            if lacking:
                self._folder.remove(self._ended(self._rank))
                samples = self.missing()
                raise Error(f"the output is not finished: {samples} of {len(self._windows.samples)} samples are missing, in {lacking} "
                            f"chunks of '{self._folder.root}'; create it again with the same arguments and write the batches "
                            "of out.remaining()")
            self._arrays.put_coordinates()
            self._folder.sync()
            for key, document in self._arrays.documents():
                self._folder.put(key, document)
            self._folder.sync()
            self._folder.discard_working_files()

    def _release(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

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


def create(output: str | os.PathLike[str], like: Dataset | None = None, *, store: str | os.PathLike[str] | None = None,
           view: Mapping[str, Any] | str | os.PathLike[str] | None = None, part: str | None = None,
           tensor: str | list[str] | None = None, name: str | Mapping[str, str] | None = None, overlap: str = "error",
           time: str = "valid", reduce: str | None = None, dtype: Any = None, chunks: Mapping[str, int] | None = None,
           shards: Mapping[str, int] | None = None, codec: str = "zstd", denormalize: bool = False, rank: int | None = None,
           world: int | None = None, epoch: int | None = None, memory: str | int = "1G", threads: int | None = None,
           program: str | os.PathLike[str] | None = None, **options: Any) -> Predictions:
    """An output Zarr store for a model's predictions: each goes to the place of the sample that it was made from.

        test = batchfs.open("era5.zarr", view="view.json")
        with batchfs.create("predicted.zarr", like=test, tensor="y", overlap="cosine") as out:
            for batch in out.remaining():
                out.write(batch, model(batch["x"].torch()))
        predicted = xarray.open_zarr("predicted.zarr")

    output       a new folder, or one that the same call began: then it continues
    like         the dataset whose batches are predicted, opened with a store and a view; or `store` and `view` (and
                 `part`, and options of the program), as for `open`
    tensor       which tensors of the view are predicted; by default the only one, or "y", or all. Their variables become
                 arrays with the dimensions, coordinates and attributes of what the view selects: channels of a stack are
                 taken apart
    name         what the array is called, or {"t2m": "t2m_predicted"}; by default as the variable
    overlap      where windows overlap: "error" refuses; "trim" takes each element from the window in whose middle it lies;
                 "mean"; "cosine" blends with sin² ramps; "last" takes the sample with the highest number
    time         "valid": values lie at the times that they are for; "lead": the array has dimensions init_time and
                 lead_time in place of time
    reduce       "window": a prediction is one number for each sample, at the start of its window
    dtype        of the array; by default the tensor's
    chunks       {"time": 1, "latitude": 721}; by default those of a window, up to 4 MB
    shards       the same for shards, whole numbers of chunks
    codec        "zstd", "blosc", "gzip", with a level as in "zstd:9", or "none"
    denormalize  undo what the view's "normalize" did
    rank, world  this process's share, as for `open`; by default that of `like`
    epoch        whose samples the output has; by default that of `like`
    memory       of values that wait for the rest of their chunk; beyond it they are kept in files
    threads      that encode chunks

    Needs zarr-python 3. Elements that no sample covers are NaN (0 for whole numbers).
    """
    if overlap not in OVERLAPS:
        raise InvalidArgument(f"overlap={overlap!r} is unknown: pass one of {', '.join(OVERLAPS)}")
    if time not in ("valid", "lead"):
        raise InvalidArgument(f"time={time!r} is unknown: pass \"valid\" or \"lead\"")
    if reduce not in (None, "window"):
        raise InvalidArgument(f"reduce={reduce!r} is unknown: pass \"window\", or nothing")
    folder = Folder(output)
    _zarr_arrays()
    data = like
    if data is None:
        if store is None or view is None:
            raise InvalidArgument("pass like=, a dataset; or store= and view=")
        data = Dataset(store, view, part=part, program=program, **options)
    try:
        rank = data.rank if rank is None else rank
        world = data.world if world is None else world
        if not 0 <= rank < world:
            raise InvalidArgument(f"rank {rank} is not below world {world}")
        windows = Windows.of(data, store, part, data.epoch if epoch is None else epoch, program)
        _check_apart(folder.root, windows.store)
        info = data._open_info
        assert info is not None
        if info.xbatcher is not None:
            raise NotSupported("predictions of views with \"xbatcher\" cannot be written: write the view with \"window\"")
        tensors = _tensors_of(list(info.tensors), tensor)
        names = dict(name) if isinstance(name, Mapping) else {}
        windows.reduce = reduce is not None
        placements = placements_of(info, tensors, names, windows.arrays(), time, windows.reduce)
        if isinstance(name, str):
            if len(placements) != 1:
                raise InvalidArgument(f"the tensor has {len(placements)} variables: pass name= with a name for each, "
                                      f"{{{placements[0].name!r}: ...}}")
            placements[0].name = name
        for placement in placements:
            if any(axis.name == placement.name for axis in placement.axes) or "/" in placement.name or not placement.name.strip("."):
                raise InvalidArgument(f"an array cannot be called '{placement.name}' here; pass name=")
            _units(placement.attributes, denormalize, "normalize" in info.view)
        chosen = {"overlap": overlap, "rank": rank, "world": world, "denormalize": denormalize, "dtype": dtype, "chunks": chunks,
                  "shards": shards, "codec": codec, "memory": memory, "threads": threads}
        return Predictions(folder, windows, placements, chosen, data if like is not None else None)
    finally:
        if like is None:
            data.close()


def _tensors_of(known: list[str], wanted: str | list[str] | None) -> list[str]:
    if wanted is None:
        return known if len(known) == 1 or "y" not in known else ["y"]
    chosen = [wanted] if isinstance(wanted, str) else list(wanted)
    for one in chosen:
        if one not in known:
            raise InvalidArgument(f"the view has no tensor '{one}'; it has {', '.join(known)}")
    return chosen


def _units(attributes: dict[str, Any], denormalize: bool, is_normalized: bool) -> None:
    """Of normalized values the units are called original_units."""
    if denormalize and "original_units" in attributes:
        attributes["units"] = attributes.pop("original_units")
    elif not denormalize and is_normalized and "units" in attributes:
        attributes["original_units"] = attributes.pop("units")


def _objects_of(placement: Placement, chunks: Mapping[str, int] | None,
                shards: Mapping[str, int] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements of chunks and of objects along each axis."""
    chunk = _default_chunk(placement)
    names = [axis.name for axis in placement.axes]
    for keyword, given in (("chunks", chunks), ("shards", shards)):
        for dim, length in (given or {}).items():
            if dim not in names:
                raise InvalidArgument(f"{keyword}= names '{dim}', and '{placement.name}' has {', '.join(names)}")
            if not isinstance(length, int) or (length < 1 and length != -1):
                raise InvalidArgument(f"{keyword}= has {length!r} for '{dim}': pass a number of elements, or -1 for all of them")
    for d, axis in enumerate(placement.axes):
        length = (chunks or {}).get(axis.name, chunk[d])
        chunk[d] = max(1, axis.length if length == -1 else min(length, axis.length))
    if shards is None:
        return tuple(chunk), tuple(chunk)
    steps = []
    for d, axis in enumerate(placement.axes):
        length = shards.get(axis.name, chunk[d])
        length = -(-axis.length // chunk[d]) * chunk[d] if length == -1 else length
        if length % chunk[d] != 0:
            raise InvalidArgument(f"shards of {length} along '{axis.name}' are no whole number of chunks of {chunk[d]}")
        steps.append(length)
    return tuple(chunk), tuple(steps)


def _default_chunk(placement: Placement) -> list[int]:
    """One position of what windows of one position move along; of other dimensions, the last first, as much as makes
    4 MB, in halves."""
    sizes = [axis.length if axis.window is None or axis.extent > 1 else 1 for axis in placement.axes]
    for d in range(len(sizes)):
        while math.prod(sizes) * placement.dtype.itemsize > _CHUNK_BYTES and sizes[d] > 1:
            sizes[d] = (sizes[d] + 1) // 2
    return sizes


def _check_apart(output: str, store: str) -> None:
    """Refuses an output in the store that is read, or around it."""
    source = store[len("file://"):] if store.startswith("file://") else store
    if "://" in source:
        return
    one, other = os.path.realpath(output), os.path.realpath(source)
    if one == other or one.startswith(other + os.sep) or other.startswith(one + os.sep):
        raise InvalidArgument(f"the output '{output}' lies in the store that is read, or around it; name a place beside it")


def _digest_of(axes: list[Axis]) -> str:
    known = hashlib.sha256()
    for axis in axes:
        known.update(f"{axis.name} {axis.length}".encode())
        if axis.labels is not None:
            known.update(np.ascontiguousarray(axis.labels).tobytes())
    return known.hexdigest()[:32]


def _bytes(text: str | int) -> int:
    if isinstance(text, int) and text > 0:
        return text
    word = str(text).upper().removesuffix("B")
    with contextlib.suppress(ValueError, KeyError):
        return int(word) if word.isdecimal() and int(word) > 0 else int(float(word[:-1]) * _UNITS[word[-1]])
    raise InvalidArgument(f"memory={text!r} is no size: pass \"500M\" or \"2G\"")


def _on_host(values: Any) -> np.ndarray:
    """As an array of numpy: of a GPU's tensor one copy to the host, on the stream that made it."""
    if isinstance(values, Tensor):
        return values.numpy()
    module = type(values).__module__.split(".")[0]
    if module == "torch":
        values = values.detach()
        host = values.cpu()  # waits for the current stream
        return np.asarray((host.float() if str(host.dtype) == "torch.bfloat16" else host).numpy())
    if module == "cupy":
        return np.asarray(values.get())
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] == 1:
        return np.from_dlpack(values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a prediction is an array, not {type(values).__name__}: {error}") from None
    if array.dtype.kind == "O":
        raise InvalidArgument(f"a prediction is an array of numbers, not {type(values).__name__}")
    return array


def _zarr_arrays() -> Any:
    try:
        from . import _zarr_arrays
    except ImportError as error:
        raise NotSupported(f"batchfs.create needs zarr-python 3 ({error}): pip install 'zarr>=3'") from None
    return _zarr_arrays


def _arrays(folder: Folder) -> Any:
    return _zarr_arrays().Arrays(folder.put)


