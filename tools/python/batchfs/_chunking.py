"""The layout of output arrays: overlap of windows, chunks, objects and type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._errors import InvalidArgument, NotSupported
from ._placement import Placement
from ._windows import Windows

_CHUNK_BYTES = 4 << 20
_MAX_OBJECTS = 1 << 26


class WriteOptions(NamedTuple):
    """Those of batchfs.create."""

    overlap: str
    rank: int
    world: int
    denormalize: bool
    dtype: Any
    chunks: Mapping[str, int] | None
    shards: Mapping[str, int] | None
    codec: str
    memory: int  # bytes
    threads: int | None


def lay_out(placement: Placement, windows: Windows, options: WriteOptions) -> None:
    """Settles the overlap, type, chunks and objects of an array. Raises InvalidArgument, NotSupported."""
    collides = [dim for w, dim in enumerate(windows.dims)
                if w not in {axis.window for axis in placement.axes} and len(np.unique(windows.starts[:, w])) > 1]
    overlaps = []
    for axis in placement.axes:
        if axis.window is None:
            continue
        state = axis.set_starts(np.unique(windows.starts[:, axis.window]), options.overlap, windows.is_grid)
        if state == "collide":
            collides.append(axis.name)
        elif state == "overlap":
            overlaps.append(axis.name)
    if collides and options.overlap != "last":
        raise InvalidArgument(f"several samples have values for the same elements of '{placement.name}', along "
                              f"'{collides[0]}': pass overlap=\"last\" to keep those of the last sample, or time=\"lead\" for "
                              "forecasts of several steps")
    if overlaps and options.overlap == "error":
        raise InvalidArgument(f"windows overlap along '{overlaps[0]}': pass overlap=\"trim\", \"mean\", \"cosine\" or \"last\" to "
                              f"say which values '{placement.name}' gets there")
    placement.dtype = dtype_of(options.dtype, windows.dtypes[placement.tensor])
    if options.overlap in ("mean", "cosine") and placement.dtype.kind != "f":
        raise InvalidArgument(f"overlap=\"{options.overlap}\" makes means, and '{placement.name}' has values of the type "
                              f"{placement.dtype}: pass overlap=\"trim\"")
    placement.fill = math.nan if placement.dtype.kind == "f" else 0
    placement.set_objects(*objects_of(placement, options.chunks, options.shards))
    count = math.prod(placement.grid)
    if count > _MAX_OBJECTS:
        raise InvalidArgument(f"'{placement.name}' would have {count} chunks; pass larger ones with chunks=")
    placement.expected = np.zeros(count, np.int64)
    for _, numbers in placement.each_object(windows.starts):
        placement.expected += np.bincount(numbers, minlength=count)



def objects_of(placement: Placement, chunks: Mapping[str, int] | None,
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


def dtype_of(wanted: Any, of_tensor: str) -> np.dtype[Any]:
    if wanted is None:
        wanted = "float32" if of_tensor == "bfloat16" else of_tensor
    try:
        chosen: np.dtype[Any] = np.dtype(wanted)
    except TypeError:
        raise InvalidArgument(f"dtype={wanted!r} is no type of numpy; pass \"float32\" or another") from None
    if chosen.kind not in "fiub":
        raise NotSupported(f"predictions of the type {chosen} cannot be written; pass dtype= with a type of numbers")
    return chosen
