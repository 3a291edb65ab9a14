"""Output arrays: their dimensions, type, chunks and objects.

An object is what is put at once: a chunk, or a shard.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import InvalidArgument, NotSupported

_CHUNK_BYTES = 4 << 20


class Axis:
    """A dimension of an output array: `length` positions in objects of `step`."""

    def __init__(self, name: str, length: int, labels: np.ndarray | None = None):
        self.name = name
        self.length = length
        self.labels = labels
        self.step = length


class Layout:
    """An output array, and the grid of its objects, whose numbers count in C order."""

    def __init__(self, name: str, axes: list[Axis], dtype: np.dtype[Any],
                 attributes: dict[str, Any]):
        self.name = name
        self.axes = axes
        self.attributes = attributes
        self.dtype = dtype
        self.fill = math.nan if dtype.kind == "f" else 0  # of elements that are never written
        self.chunk: tuple[int, ...] = ()
        self.grid: tuple[int, ...] = ()  # of objects

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def object_shape(self) -> tuple[int, ...]:
        return tuple(axis.step for axis in self.axes)

    @property
    def is_sharded(self) -> bool:
        return self.chunk != self.object_shape

    def set_objects(self, chunk: tuple[int, ...], steps: tuple[int, ...]) -> None:
        self.chunk = chunk
        for axis, step in zip(self.axes, steps, strict=True):
            axis.step = step
        self.grid = tuple(-(-axis.length // axis.step) for axis in self.axes)

    def number(self, at: tuple[int, ...]) -> int:
        result = 0
        for k, n in zip(at, self.grid, strict=True):
            result = result * n + k
        return result

    def region(self, number: int) -> tuple[slice, ...]:
        """The elements of the array that an object has."""
        at = np.unravel_index(number, self.grid) if self.grid else ()
        return tuple(slice(int(k) * axis.step, min((int(k) + 1) * axis.step, axis.length))
                     for axis, k in zip(self.axes, at, strict=True))


def digest_of(axes: list[Axis]) -> str:
    """Digest of their names, lengths and labels."""
    known = hashlib.sha256()
    for axis in axes:
        known.update(f"{axis.name} {axis.length}".encode())
        if axis.labels is not None:
            known.update(np.ascontiguousarray(axis.labels).tobytes())
    return known.hexdigest()[:32]


def objects_of(layout: Layout, chunks: Mapping[str, int] | None,
               shards: Mapping[str, int] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements of chunks and of objects along each axis."""
    chunk = _default_chunk(layout)
    names = [axis.name for axis in layout.axes]
    for keyword, given in (("chunks", chunks), ("shards", shards)):
        for dim, length in (given or {}).items():
            if dim not in names:
                raise InvalidArgument(f"{keyword}= names '{dim}', and '{layout.name}' has "
                                      f"{', '.join(names)}")
            if not isinstance(length, int) or (length < 1 and length != -1):
                raise InvalidArgument(f"{keyword}= has {length!r} for '{dim}': pass a number of "
                                      "elements, or -1 for all of them")
    for d, axis in enumerate(layout.axes):
        length = (chunks or {}).get(axis.name, chunk[d])
        chunk[d] = max(1, axis.length if length == -1 else min(length, axis.length))
    if shards is None:
        return tuple(chunk), tuple(chunk)
    steps = []
    for d, axis in enumerate(layout.axes):
        length = shards.get(axis.name, chunk[d])
        length = -(-axis.length // chunk[d]) * chunk[d] if length == -1 else length
        if length % chunk[d] != 0:
            raise InvalidArgument(f"shards of {length} along '{axis.name}' are not a whole number "
                                  f"of chunks of {chunk[d]}")
        steps.append(length)
    return tuple(chunk), tuple(steps)


def _default_chunk(layout: Layout) -> list[int]:
    """Chunks that take as much of the last dimensions as makes 4 MB, in halves."""
    sizes = [axis.length for axis in layout.axes]
    for d in range(len(sizes)):
        while math.prod(sizes) * layout.dtype.itemsize > _CHUNK_BYTES and sizes[d] > 1:
            sizes[d] = (sizes[d] + 1) // 2
    return sizes


def dtype_of(wanted: Any) -> np.dtype[Any]:
    try:
        chosen: np.dtype[Any] = np.dtype(wanted)
    except TypeError:
        raise InvalidArgument(f"dtype={wanted!r} is not a type of numpy; pass "
                              "\"float32\" or another") from None
    if chosen.kind not in "fiub":
        raise NotSupported(f"predictions of the type {chosen} cannot be written; pass dtype= "
                           "with a type of numbers")
    return chosen
