"""Maps samples to output arrays: their dimensions, and the boxes of a sample in their objects.

An object is what is put at once: a chunk, or a shard. Along an axis of an output array each window start has pieces:
which part of the sample's values goes to which part of which object, and with what weights. The box of a sample in an
object is the product of the pieces along all axes.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ._errors import InvalidArgument, NotSupported
from ._labels import ViewInfo

OVERLAPS = ("error", "trim", "mean", "cosine", "last")
# Attributes that say how values are stored, or that name arrays which the output does not have.
_ENCODING = {"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "dtype", "coordinates",
             "_ARRAY_DIMENSIONS"}
_UNITS = {"w": 604_800 * 10**9, "W": 604_800 * 10**9, "d": 86_400 * 10**9, "D": 86_400 * 10**9, "h": 3600 * 10**9,
          "min": 60 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Piece(NamedTuple):
    """Along one axis."""

    object: int
    source: slice  # of the sample's values
    target: slice  # in the object
    first: int  # of the source, in the window: where weights begin


class Axis:
    """A dimension of an output array: `length` positions in objects of `step`.

    `window` is the number of the window's dimension that moves along it; None: every sample has the whole of it.
    """

    def __init__(self, name: str, length: int, window: int | None = None, blocks: tuple[tuple[int, int], ...] = (),
                 wraps: bool = False, labels: np.ndarray | None = None, attributes: dict[str, Any] | None = None,
                 index: np.ndarray | None = None):
        self.name = name
        self.length = length
        self.window = window
        self.blocks = blocks  # (offset from the window's start, positions), in the order of the values
        self.wraps = wraps
        self.labels = labels
        self.attributes = attributes or {}
        self.index = index  # the starts in order, where the axis has a position for each
        self.step = length
        self.starts = np.zeros(0, np.int64)
        self._cuts: dict[int, tuple[int, int]] = {}
        self._weights: dict[int, np.ndarray] = {}
        self._pieces: dict[int, list[Piece]] = {}

    @property
    def extent(self) -> int:
        """Positions that a sample has along it."""
        return self.length if self.window is None else sum(size for _, size in self.blocks)

    def set_starts(self, starts: np.ndarray, overlap: str, is_grid: bool) -> str:
        """The starts of all windows, each once and sorted. Do windows overlap along this axis?

        "no"; "overlap": as `overlap` resolves it; "collide": in a way that only "last" resolves.
        """
        self.starts = starts
        if self.window is None:
            return "no"
        if self.index is not None:
            self.index, self.length = starts, len(starts)
            self.labels = starts if self.labels is None else self.labels[starts]
            return "no"
        size = self.blocks[0][1]
        gaps = np.diff(starts)
        around = self.wraps and len(starts) > 1
        if around:
            gaps = np.append(gaps, starts[0] + self.length - starts[-1])
        if len(self.blocks) > 1 or (self.wraps and size > self.length):
            return "collide" if self._positions_collide() else "no"
        if len(starts) < 2 or int(gaps.min()) >= size:
            return "no"
        if overlap == "trim" and not is_grid:
            # The square of the distance from the middle: see fold().
            distance = ((np.arange(size) - (size - 1) / 2) / size) ** 2
            self._weights = {start: distance for start in starts.tolist()}
        elif overlap == "trim":
            self._cut(size, gaps, around)
        elif overlap in ("mean", "cosine"):
            self._weigh(size, gaps, around, overlap == "cosine")
        return "overlap"

    def _positions_collide(self) -> bool:
        taken = np.concatenate([start + offset + np.arange(size) for start in self.starts for offset, size in self.blocks])
        if self.wraps:
            taken %= self.length
        return len(np.unique(taken)) < len(taken)

    def _cut(self, size: int, gaps: np.ndarray, around: bool) -> None:
        """Each position goes to the window in whose middle it lies; halfway, to the earlier one."""
        for i, start in enumerate(self.starts.tolist()):
            low = max(0, (size - 1 - int(gaps[i - 1])) // 2 + 1) if i > 0 or around else 0  # -1: around the end
            high = min(size, (size - 1 + int(gaps[i])) // 2 + 1) if i < len(gaps) else size
            self._cuts[start] = (low, high)

    def _weigh(self, size: int, gaps: np.ndarray, around: bool, cosine: bool) -> None:
        """Weights of each window: 1, with ramps where it overlaps its neighbours."""
        for i, start in enumerate(self.starts.tolist()):
            weights = self._weights[start] = np.ones(size, np.float64)
            before = size - int(gaps[i - 1]) if i > 0 or around else 0  # positions shared with the window before
            behind = size - int(gaps[i]) if i < len(gaps) else 0
            if cosine and before > 0:
                weights[:before] *= np.sin(np.pi / 2 * (np.arange(before) + 0.5) / before) ** 2
            if cosine and behind > 0:
                weights[size - behind:] *= np.sin(np.pi / 2 * (np.arange(behind) + 0.5)[::-1] / behind) ** 2

    def pieces(self, start: int) -> list[Piece]:
        """Those of a window that begins at `start`."""
        found = self._pieces.get(start)
        if found is None:
            found = self._pieces[start] = list(self._make_pieces(start))
        return found

    def _make_pieces(self, start: int) -> Iterator[Piece]:
        first = 0
        if self.window is None:
            yield from self._segment(0, 0, self.length)
            return
        if self.index is not None:
            yield from self._segment(0, int(np.searchsorted(self.index, start)), 1)
            return
        low, high = self._cuts.get(start, (0, self.extent))
        for offset, size in self.blocks:
            begin, end = max(first, low), min(first + size, high)
            place = start + offset + begin - first
            while begin < end:
                if self.wraps:
                    place %= self.length
                if place < 0:  # padding before the first position
                    begin, place = begin - place, 0
                    continue
                count = min(end - begin, self.length - place)
                if count <= 0:  # padding behind the last one
                    break
                yield from self._segment(begin, place, count)
                begin, place = begin + count, place + count
                if not self.wraps:
                    break
            first += size

    def _segment(self, source: int, place: int, count: int) -> Iterator[Piece]:
        while count > 0:
            number, inside = divmod(place, self.step)
            taken = min(count, self.step - inside)
            yield Piece(number, slice(source, source + taken), slice(inside, inside + taken), source)
            source, place, count = source + taken, place + taken, count - taken

    def weights(self, start: int, piece: Piece) -> np.ndarray | None:
        """Of a piece; None where it has the position alone."""
        weights = self._weights.get(start)
        return None if weights is None else weights[piece.source]

    @property
    def is_weighted(self) -> bool:
        return bool(self._weights)


class Box(NamedTuple):
    """The values of a sample in an object."""

    source: tuple[slice, ...]
    target: tuple[slice, ...]
    weights: tuple[np.ndarray | None, ...]


class Placement:
    """An output array, and which values of a tensor go to it."""

    def __init__(self, name: str, tensor: str, dims: tuple[str, ...], axes: list[Axis], order: tuple[int, ...],
                 stack: tuple[int, int, int, tuple[int, ...]] | None, attributes: dict[str, Any]):
        self.name = name
        self.tensor = tensor
        self.dims = dims  # of the tensor
        self.axes = axes
        self.attributes = attributes
        self._order = order  # of the values' dimensions (joined ones, then the tensor's own), for the axes
        self._stack = stack  # its dimension, the first and the last channel, and the lengths that they have
        self.dtype = np.dtype(np.float32)
        self.fill = math.nan  # of elements that no sample has
        self.chunk: tuple[int, ...] = ()
        self.grid: tuple[int, ...] = ()  # of objects
        self.expected = np.zeros(0, np.int64)  # samples of each object

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

    def values(self, prediction: np.ndarray) -> np.ndarray:
        """(samples, axes), without a copy where numpy can."""
        if self._stack is not None:
            axis, first, last, lengths = self._stack
            prediction = np.moveaxis(prediction, axis, 1)[:, first:last]
            prediction = prediction.reshape(len(prediction), *lengths, *prediction.shape[2:])
        prediction = prediction.transpose(0, *(1 + d for d in self._order if d >= 0))
        for position, d in enumerate(self._order):
            if d < 0:  # the place of the window's start
                prediction = np.expand_dims(prediction, 1 + position)
        return prediction

    def start_along(self, axis: Axis, starts: np.ndarray) -> int:
        return 0 if axis.window is None else int(starts[axis.window])

    def objects_of(self, starts: np.ndarray) -> list[int]:
        """The numbers of the objects that hold values of a sample, sorted."""
        along = [sorted({piece.object for piece in axis.pieces(self.start_along(axis, starts))}) for axis in self.axes]
        return [self.number(at) for at in itertools.product(*along)]

    def boxes(self, number: int, starts: np.ndarray) -> list[Box]:
        """The sample's boxes in an object, always in the same order."""
        at = np.unravel_index(number, self.grid) if self.grid else ()
        along = []
        for axis, k in zip(self.axes, at, strict=True):
            start = self.start_along(axis, starts)
            along.append([(piece, axis.weights(start, piece)) for piece in axis.pieces(start) if piece.object == k])
        return [Box(tuple(piece.source for piece, _ in parts), tuple(piece.target for piece, _ in parts),
                    tuple(weights for _, weights in parts)) for parts in itertools.product(*along)]

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

    def each_object(self, starts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which objects samples touch: pairs of rows of `starts` and numbers of objects."""
        columns = []
        for axis in self.axes:
            unique, inverse = (np.unique(starts[:, axis.window], return_inverse=True) if axis.window is not None
                               else (np.zeros(1, np.int64), np.zeros(len(starts), np.intp)))
            lists = [sorted({piece.object for piece in axis.pieces(start)}) for start in unique.tolist()]
            width = max((len(one) for one in lists), default=0)
            table = np.full((len(lists), width), -1, np.int64)
            for row, one in enumerate(lists):
                table[row, :len(one)] = one
            columns.append((table, inverse.reshape(-1)))
        for ks in itertools.product(*(range(table.shape[1]) for table, _ in columns)):
            numbers = np.zeros(len(starts), np.int64)
            valid = np.ones(len(starts), bool)
            for (table, inverse), k, n in zip(columns, ks, self.grid, strict=True):
                along = table[inverse, k]
                valid &= along >= 0
                numbers = numbers * n + along
            rows = np.flatnonzero(valid)
            yield rows, numbers[rows]

    @property
    def blends(self) -> bool:
        return any(axis.is_weighted for axis in self.axes)


def digest_of(axes: list[Axis]) -> str:
    """Of their names, lengths and labels."""
    known = hashlib.sha256()
    for axis in axes:
        known.update(f"{axis.name} {axis.length}".encode())
        if axis.labels is not None:
            known.update(np.ascontiguousarray(axis.labels).tobytes())
    return known.hexdigest()[:32]


def placements_of(info: ViewInfo, tensors: list[str], names: dict[str, str], arrays: dict[str, Any], time: str,
                  reduce: bool) -> list[Placement]:
    """The output arrays of these tensors: one for each of their variables, without objects yet.

    `arrays` is what `batchfs inspect` says of the store's. With `reduce` a tensor is one number for each sample.
    """
    result: list[Placement] = []
    for tensor in tensors:
        entry = info.tensors[tensor]
        if any(not isinstance(variable, dict) for variable in entry.get("variables", [None])):
            raise NotSupported("the batchfs process is of a version that does not say what a tensor is made of")
        channel = 0
        for variable in entry["variables"][:1] if reduce else entry["variables"]:
            count = math.prod(variable.get("joined", {}).values())
            name = names.get(variable["name"], variable["name"])
            if any(other.name == name for other in result):
                raise InvalidArgument(f"two tensors have values for '{name}'; pass tensor= to name one of them, or name=")
            result.append(_placement(info, entry, variable, name, channel, count, arrays.get(variable["name"], {}), time,
                                     reduce))
            channel += count
    return result


def _placement(info: ViewInfo, entry: dict[str, Any], variable: dict[str, Any], name: str, channel: int, count: int,
               info_of_array: dict[str, Any], time: str, reduce: bool) -> Placement:
    stack = entry.get("stack")
    dims = tuple(entry["dims"])
    joined = variable.get("joined", {})
    own = [dim for dim in dims[1:] if dim != stack]
    lengths = dict(zip(dims, entry["shape"], strict=True))
    windows = {window["dim"]: w for w, window in enumerate(info.windows)}
    lead = _time_dim(info) if time == "lead" else None
    values = list(joined.items())
    values += [("sample" if dim == "stored_sample" else dim, lengths[dim]) for dim in own]
    axes: list[tuple[Axis, int]] = []
    if reduce:
        values = []
        axes = [(_start_axis(info, dim, w), -1) for dim, w in windows.items()]
    for d, (dim, length) in enumerate(values):
        if dim not in windows:
            labels = info.coordinate(dim)
            if labels is not None and len(labels) != length:
                raise _coarse(entry["name"], dim)
            axes.append((Axis(dim, length, labels=labels, attributes=_attributes(info, dim)), d))
            continue
        axis = _window_axis(info, entry["name"], variable, dim, windows[dim], length)
        if dim == lead:
            start = _start_axis(info, dim, windows[dim])
            start.name = f"init_{dim}"
            axes.append((start, -1))
            axis = _lead_axis(info, dim, axis)
        axes.append((axis, d))
    stored = info_of_array.get("dims") or [*info.view.get("window", {}), *joined, *own]
    ranks = {dim: rank for rank, dim in enumerate(stored)}

    def place(one: tuple[Axis, int]) -> tuple[int, int]:
        """As stored; where an axis has another name, the window's start before the lead."""
        name = one[0].name.removeprefix("init_").removeprefix("lead_")
        return ranks.get(name, len(ranks)), one[1]

    axes.sort(key=place)
    stacked = None
    if stack is not None and not reduce:
        stacked = (dims.index(stack), channel, channel + count, tuple(joined.values()))
    attributes = dict(entry["attributes"])
    if len(entry["variables"]) > 1:
        attributes = {key: value for key, value in info_of_array.get("attributes", {}).items() if key not in _ENCODING}
    return Placement(name, entry["name"], dims, [axis for axis, _ in axes], tuple(d for _, d in axes), stacked, attributes)


def _window_axis(info: ViewInfo, tensor: str, variable: dict[str, Any], dim: str, w: int, length: int) -> Axis:
    window = info.windows[w]
    size = int(window["size"])
    offsets = [_steps(info, dim, offset) for offset in variable.get("offsets", {}).get(dim, [0])]
    keys = info.view.get("window", {}).get(dim, {})
    partial = isinstance(keys, dict) and keys.get("edge") == "partial"
    if length != size * len(offsets) and not partial:
        raise _coarse(tensor, dim)
    blocks: list[tuple[int, int]] = []
    for offset in offsets:
        if blocks and blocks[-1][0] + blocks[-1][1] == offset:
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + size)
        else:
            blocks.append((offset, size))
    return Axis(dim, info.length(window), w, tuple(blocks), bool(isinstance(keys, dict) and keys.get("wrap")),
                info.coordinate(dim), _attributes(info, dim))


def _start_axis(info: ViewInfo, dim: str, w: int) -> Axis:
    """A position for each start of a window; set_starts() of the writer says which there are."""
    return Axis(dim, 0, w, ((0, 1),), False, info.coordinate(dim), _attributes(info, dim), np.zeros(0, np.int64))


def _lead_axis(info: ViewInfo, dim: str, axis: Axis) -> Axis:
    steps = np.concatenate([offset + np.arange(size) for offset, size in axis.blocks])
    labels, attributes = steps, {"long_name": f"steps along {dim} from the start of the sample's window"}
    spacing = _spacing(info, dim)
    if spacing is not None:
        labels, attributes = steps * spacing, {"long_name": "time since the start of the sample's window"}
    return Axis(f"lead_{axis.name}", len(steps), None, labels=labels, attributes=attributes)


def _attributes(info: ViewInfo, dim: str) -> dict[str, Any]:
    return next((dict(one["attributes"]) for one in info.schema["coordinates"] if one["name"] == dim), {})


def _time_dim(info: ViewInfo) -> str:
    for window in info.windows:
        values = info.coordinate(window["dim"])
        if values is not None and values.dtype.kind == "M":
            return str(window["dim"])
    for window in info.windows:
        if window["dim"] == "time":
            return "time"
    raise InvalidArgument('time="lead" needs a dimension of times in the view\'s "window"')


def _spacing(info: ViewInfo, dim: str) -> np.timedelta64 | None:
    """Between neighbouring labels, where it is the same everywhere."""
    values = info.coordinate(dim)
    if values is None or values.dtype.kind != "M" or len(values) < 2:
        return None
    gaps = np.diff(values)
    return gaps[0] if bool((gaps == gaps[0]).all()) else None


def _steps(info: ViewInfo, dim: str, offset: int | str) -> int:
    """An offset in positions; a length of time needs labels of one spacing."""
    if not isinstance(offset, str):
        return int(offset)
    match = re.fullmatch(r"([+-]?\d+)([a-zA-Z]+)", offset)
    spacing = _spacing(info, dim)
    if match is None or match[2] not in _UNITS or spacing is None:
        raise NotSupported(f"the offset '{offset}' along '{dim}' is not the same number of positions everywhere: write "
                           "predictions of views whose times have one spacing, or offsets in positions")
    length = int(match[1]) * _UNITS[match[2]]
    step = int(spacing.astype("m8[ns]").astype(np.int64))
    if length % step != 0:
        raise NotSupported(f"the offset '{offset}' is no whole number of positions of '{dim}'")
    return length // step


def _coarse(tensor: str, dim: str) -> NotSupported:
    return NotSupported(f"the tensor '{tensor}' has other positions along '{dim}' than what the view selects, by "
                        '"coarsen" for instance: predictions for it have no place in an array; name another with tensor=')
