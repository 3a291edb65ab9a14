"""batchfs for earth2studio: an IO backend that writes what its workflows predict into one Zarr
store.

    import earth2studio.run
    from batchfs.earth2studio import PredictionBackend

    with PredictionBackend("forecast.zarr") as io:
        earth2studio.run.deterministic(["2024-01-01"], 20, model, data, io)
    forecast = xarray.open_zarr("forecast.zarr")

The backend takes what workflows hand to `add_array` and `write`; each chunk is written once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._errors import Error, InvalidArgument, NotSupported
from ._host import on_host
from ._layout import Axis, Layout, digest_of, dtype_of, objects_of
from ._output import RUN_KEY, WORKING, Folder

if TYPE_CHECKING:
    from ._zarr_arrays import Arrays

_RUN = {"batchfs": "earth2studio", "version": 1}
_ONE_BY_ONE = ("ensemble", "time", "lead_time")  # workflows write one position of these at a time
Index = tuple[slice | np.ndarray, ...]


class _Open(NamedTuple):
    """An object, some of whose values have come."""

    values: np.ndarray
    lacks: np.ndarray  # of each element, whether it has not been written


class PredictionBackend:
    """Where a workflow of earth2studio writes to: its IO backend. Use it as a `with` block, or call
    `close()`.

    output       a new folder, or one that the same workflow began: what is in it is not written
                 again
    chunks       {"lead_time": 4, "lat": 721}; by default one ensemble member, time and lead time,
                 and of other dimensions as much as makes 4 MB
    shards       the same for shards, whole numbers of chunks: fewer files
    codec        "zstd", "blosc", "gzip", with a level as in "zstd:9", or "none"
    threads      that encode chunks

    Each chunk (or shard) is written once, when all of its values have come; until then it is in
    memory. The output is a Zarr store after `close()`, where what was never written is NaN (0 for
    whole numbers). A workflow that failed leaves complete chunks. Needs zarr-python 3.
    """

    def __init__(self, output: str | os.PathLike[str], *, chunks: Mapping[str, int] | None = None,
                 shards: Mapping[str, int] | None = None, codec: str = "zstd",
                 threads: int | None = None):
        arrays = _zarr_arrays()
        self._folder = Folder(output)
        self._chunks, self._shards, self._codec = dict(chunks or {}), shards, codec
        self._arrays = arrays(self._folder.put)
        self._layouts: dict[str, Layout] = {}
        self._axes: dict[str, Axis] = {}
        self._kept: dict[str, set[int]] = {}  # objects that an earlier run has put
        self._mutex = threading.Lock()  # guards the members below
        self._open: dict[tuple[str, int], _Open] = {}
        self._put: set[tuple[str, int]] = set()
        self._jobs: list[Future[None]] = []
        self._failed: Exception | None = None
        self._closed = False
        self._begin()
        count = threads or min(4, len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(count, "batchfs-write")
        self._slots = threading.BoundedSemaphore(2 * count)  # objects that wait to be encoded

    def _begin(self) -> None:
        folder = self._folder
        found = folder.get(RUN_KEY)
        if folder.has("zarr.json"):
            raise InvalidArgument(f"'{folder.root}' is a finished Zarr store; name a new folder")
        if found is None and not folder.is_empty():
            raise InvalidArgument(f"'{folder.root}' exists and this backend did not make "
                                  "it; name a new folder")
        if found is not None and found != self._document():
            raise InvalidArgument(f"'{folder.root}' is an output of something "
                                  "else; name a new folder")
        folder.put(RUN_KEY, self._document())
        self._lock = folder.try_lock("lock-rank-0")
        if self._lock is None:
            raise InvalidArgument(f"another process writes '{folder.root}'; name another folder, "
                                  "or wait until it has ended")

    @staticmethod
    def _document() -> bytes:
        return json.dumps(_RUN, indent=1).encode() + b"\n"

    # The protocol.

    def add_array(self, coords: Mapping[str, Any], array_name: str | Iterable[str],
                  data: Any = None, *, dtype: Any = None,
                  attributes: Mapping[str, Any] | None = None) -> None:
        """Adds arrays with these dimensions and labels, one for each name, of float32 or the type
        of `data`."""
        self._check()
        names = _names(array_name)
        values = [None] * len(names) if data is None else _tensors(data, names)
        axes, curved = self._axes_of(coords)
        for name, one in zip(names, values, strict=True):
            if name in self._layouts or name in self._axes or not name.strip(".") or "/" in name:
                raise InvalidArgument(f"an array cannot be called '{name}' here: the name is taken "
                                      "or no name of a folder")
            shown = dict(attributes or {}) | ({"coordinates": " ".join(curved)} if curved else {})
            wanted = dtype if dtype is not None else "float32" if one is None else one.dtype
            self._add(name, axes, dtype_of(wanted), shown, self._chunks)
            if one is not None:
                self._write(self._layouts[name], one, [np.arange(axis.length) for axis in axes])

    def write(self, x: Any, coords: Mapping[str, Any], array_name: str | Iterable[str]) -> None:
        """Writes values at the positions of their labels. They are copied: the memory may be used
        again when this returns.

        Blocks while chunks wait to be encoded. Raises what a write before it has failed with.
        """
        self._check()
        names = _names(array_name)
        tensors = _tensors(x, names)
        if absent := [name for name in names if name not in self._layouts]:
            raise InvalidArgument(f"the output has no array '{absent[0]}': call add_array with all "
                                  "of its coordinates first")
        labels = {dim: values for dim, values, _ in _flat(coords)}
        for name, values in zip(names, tensors, strict=True):
            layout = self._layouts[name]
            dims = [axis.name for axis in layout.axes]
            if list(labels) != dims:
                raise InvalidArgument(f"'{name}' has the dimensions {', '.join(dims)}, and what is "
                                      f"written has {', '.join(labels)}")
            self._write(layout, values,
                        [_positions(axis, labels[axis.name]) for axis in layout.axes])

    def close(self) -> None:
        """Writes what is left, and makes the output a Zarr store. Raises what a write failed
        with."""
        if self._closed:
            return
        try:
            self._drain()
            for (name, number), one in sorted(self._open.items(), key=lambda item: item[0]):
                self._store(self._layouts[name], number, one.values)
            self._open.clear()
            self._drain()
            self._arrays.put_coordinates()
            self._folder.sync()
            for key, document in self._arrays.documents():
                self._folder.put(key, document)
            self._folder.sync()
            self._folder.discard_working_files()
        finally:
            self._release()

    def __enter__(self) -> PredictionBackend:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
            return
        with contextlib.suppress(Exception):  # another failure is on its way
            self._drain()
        self._release()

    def __contains__(self, name: object) -> bool:
        return name in self._layouts

    # Arrays.

    def _axes_of(self, coords: Mapping[str, Any]) -> tuple[list[Axis], list[str]]:
        """The dimensions, and the names of coordinates that have several."""
        axes, curved = [], []
        for dim, labels, whole in _flat(coords):
            known = self._axes.get(dim)
            if known is None:
                known = self._axes[dim] = Axis(dim, len(labels), labels=labels)
                self._arrays.add_coordinate(known)
            elif known.labels is None or not np.array_equal(known.labels, labels):
                raise InvalidArgument(f"'{dim}' has other labels than in the arrays before; "
                                      "give it another name")
            axes.append(known)
            if whole is not None:
                curved.append((whole, axes[-1]))
        grid = [axis for _, axis in curved]
        for name, _ in curved:
            values = np.asarray(coords[name])
            if name in self._layouts:
                continue
            self._add(name, grid, values.dtype, {}, {axis.name: -1 for axis in grid}, shards=None)
            self._write(self._layouts[name], values, [np.arange(axis.length) for axis in grid])
        return axes, [name for name, _ in curved]

    def _add(self, name: str, axes: list[Axis], dtype: np.dtype[Any], attributes: dict[str, Any],
             chunks: Mapping[str, int], **options: Any) -> None:
        # objects are of each array
        own = [Axis(axis.name, axis.length, labels=axis.labels) for axis in axes]
        layout = Layout(name, own, dtype, attributes)
        dims = {axis.name for axis in axes}
        wanted = (dict.fromkeys(dims.intersection(_ONE_BY_ONE), 1)
                  | {dim: n for dim, n in chunks.items() if dim in dims})
        shards = options.get("shards", self._shards)
        if shards is not None:
            shards = {dim: n for dim, n in shards.items() if dim in dims} or None
        layout.set_objects(*objects_of(layout, wanted, shards))
        self._arrays.add(layout, self._codec)
        document = {"array": self._arrays.identity()[name], "labels": digest_of(own)}
        self._same_run(name, json.dumps(document, sort_keys=True, indent=1).encode())
        self._layouts[name] = layout
        self._kept[name] = set(self._found(layout))

    def _same_run(self, name: str, document: bytes) -> None:
        key = f"{WORKING}/arrays/{name}"
        found = self._folder.get(key)
        if found is not None and found != document:
            raise InvalidArgument(f"'{self._folder.root}' is of another run: its '{name}' has "
                                  "other labels, chunks or another type; remove it, "
                                  "or name a new folder")
        if found is None:
            self._folder.put(key, document)

    def _found(self, layout: Layout) -> Iterator[int]:
        """The numbers of the objects that exist."""
        for key in self._folder.objects(f"{layout.name}/c"):
            at = key.split("/")
            if len(at) == len(layout.grid) and all(one.isdecimal() for one in at):
                yield layout.number(tuple(map(int, at)))

    # Values.

    def _write(self, layout: Layout, values: np.ndarray, positions: list[np.ndarray]) -> None:
        shape = tuple(len(one) for one in positions)
        if values.shape != shape:
            raise InvalidArgument(f"what is written to '{layout.name}' has the shape "
                                  f"{values.shape}, and its coordinates {shape}")
        if not np.can_cast(values.dtype, layout.dtype, "same_kind"):
            raise InvalidArgument(f"what is written to '{layout.name}' is of the type "
                                  f"{values.dtype}, and the array of {layout.dtype}: convert it, "
                                  "or pass dtype= to add_array")
        along = [_by_object(one, axis.step)
                 for one, axis in zip(positions, layout.axes, strict=True)]
        for pieces in itertools.product(*along):
            number = layout.number(tuple(piece[0] for piece in pieces))
            source, target = _index([piece[1] for piece in pieces]), _index(
                [piece[2] for piece in pieces])
            self._fill(layout, number, values[source], target)

    def _fill(self, layout: Layout, number: int, part: np.ndarray, target: Index) -> None:
        if number in self._kept[layout.name]:
            return
        key = (layout.name, number)
        shape = tuple(one.stop - one.start for one in layout.region(number))
        with self._mutex:
            if key in self._put:
                raise InvalidArgument(f"values of '{layout.name}' are written a second time, and "
                                      "the chunk that has them is complete: write each value once")
            one = self._open.get(key)
            if one is None and part.shape == shape and all(isinstance(index, slice)
                                                           for index in target):
                values = np.array(part, layout.dtype, order="C")
            else:
                if one is None:
                    one = _Open(np.full(shape, layout.fill, layout.dtype), np.ones(shape, bool))
                    self._open[key] = one
                one.values[target] = part
                one.lacks[target] = False
                if one.lacks.any():
                    return
                values = self._open.pop(key).values
            self._put.add(key)
        self._store(layout, number, values)

    def _store(self, layout: Layout, number: int, values: np.ndarray) -> None:
        """Encodes and puts an object on another thread."""
        self._slots.acquire()

        def job() -> None:
            try:
                self._arrays.put(layout.name, layout.region(number), values)
            except Exception as error:
                with self._mutex:
                    self._failed = self._failed or error
            finally:
                self._slots.release()

        with self._mutex:
            self._jobs = [one for one in self._jobs if not one.done()]
            self._jobs.append(self._pool.submit(job))

    # The end.

    def _check(self) -> None:
        if self._closed:
            raise Error("the output is closed; make it again: it continues")
        with self._mutex:
            failed = self._failed
        if failed is not None:
            raise failed

    def _drain(self) -> None:
        with self._mutex:
            jobs = list(self._jobs)
        for job in jobs:
            job.result()
        self._check()

    def _release(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=True)
        if self._lock is not None:
            self._lock.release()

    def __repr__(self) -> str:
        names = ", ".join(f"{one.name} {one.dtype} {one.shape}" for one in self._layouts.values())
        return (f"<batchfs.earth2studio.PredictionBackend {self._folder.root}: "
                f"{names or 'no arrays'}>")


def _zarr_arrays() -> type[Arrays]:
    """Raises NotSupported where zarr-python is not installed, which only this backend needs."""
    try:
        from ._zarr_arrays import Arrays
    except ImportError as error:
        raise NotSupported(f"batchfs.earth2studio needs zarr-python 3 ({error}): pip "
                           "install 'zarr>=3.0.8'") from None
    return Arrays


def _names(array_name: str | Iterable[str]) -> list[str]:
    return [array_name] if isinstance(array_name, str) else [str(name) for name in array_name]


def _tensors(x: Any, names: list[str]) -> list[np.ndarray]:
    """On the host, one for each name."""
    given = list(x) if isinstance(x, (list, tuple)) else [x]
    if len(given) != len(names):
        raise InvalidArgument(f"{len(given)} tensors are given for {len(names)} arrays: pass a "
                              "list with one for each name")
    return [on_host(one) for one in given]


def _flat(coords: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray, str | None]]:
    """Dimensions and their labels. Coordinates of several dimensions, such as latitude and
    longitude of a curvilinear grid, are one for each of their dimensions: these have positions for
    labels, and the name of the coordinate comes with them."""
    curved = [name for name, values in coords.items() if np.ndim(values) > 1]
    for name, values in coords.items():
        labels = np.asarray(values)
        if labels.ndim > 1:
            if labels.ndim != len(curved) or labels.shape != np.shape(coords[curved[0]]):
                raise InvalidArgument(f"'{name}' has the shape {labels.shape}: coordinates of "
                                      "several dimensions have one shape, and are as "
                                      "many as its dimensions")
            yield f"i{name}", np.arange(labels.shape[curved.index(name)]), name
            continue
        if labels.dtype.kind == "O":
            labels = labels.astype("M8[ns]")  # datetime
        (yield name,
         labels.astype(f"{labels.dtype.kind}8[ns]") if labels.dtype.kind in "mM" else labels, None)


def _positions(axis: Axis, labels: np.ndarray) -> np.ndarray:
    """Positions of labels along an axis."""
    own = axis.labels
    assert own is not None
    if np.array_equal(own, labels):
        return np.arange(axis.length)
    order = np.argsort(own, kind="stable")
    found = np.minimum(np.searchsorted(own, labels, sorter=order), max(axis.length - 1, 0))
    positions: np.ndarray = order[found]
    strange = own[positions] != labels
    if strange.any():
        raise InvalidArgument(f"'{axis.name}' has no label {labels[strange][0]} in the output")
    if len(np.unique(positions)) < len(positions):
        raise InvalidArgument(f"labels of '{axis.name}' are there twice in what is written")
    return positions


def _by_object(positions: np.ndarray, step: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(object, which of the positions, where they are in the object)."""
    numbers = positions // step
    return [(int(number), np.flatnonzero(numbers == number), positions[numbers == number] % step)
            for number in np.unique(numbers)]


def _index(along: list[np.ndarray]) -> Index:
    """Slices where they do."""
    slices = tuple(slice(int(one[0]), int(one[-1]) + 1) for one in along)
    if all((np.diff(one) == 1).all() for one in along):
        return slices
    return np.ix_(*along)
