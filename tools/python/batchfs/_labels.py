"""Labels of a batch: which samples it holds, where their windows begin, what lies along a tensor's
dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import _scales
from ._errors import Error, NotSupported

T = TypeVar("T")


def tensor_dim(dim: str) -> str:
    """How tensors call a stored dimension: "sample" is the batch's own."""
    return "stored_sample" if dim == "sample" else dim


def _coarse(values: np.ndarray, size: int) -> np.ndarray | None:
    """The labels of a coarsened dimension: the mean of every `size` of them, added one after the
    other; None where they have no mean."""
    if size == 1:
        return values
    blocks = values.reshape(-1, size)
    if values.dtype.kind == "M" and not np.isnat(values).any():
        ticks = (blocks - values.min()).astype(np.int64)
        return np.asarray(values.min()
                          + (ticks.sum(axis=1) // size).astype(values.dtype.str.replace("M", "m")))
    if values.dtype.kind not in "iu" and values.dtype.str[1:] not in ("f4", "f8"):
        return None
    total = np.zeros(len(blocks))
    for k in range(size):
        total += blocks[:, k].astype(np.float64)
    return (total / size).astype(np.float32 if values.dtype.itemsize == 4
                                 and values.dtype.kind == "f" else np.float64)


class ViewInfo:
    """schema.json, view.json and the coordinates of a view, for all of its batches."""

    def __init__(self, schema: dict[str, Any], view: dict[str, Any],
                 read: Callable[[int], tuple[str, bytes]]):
        self.schema = schema
        self.view = view
        self.tensors: dict[str, Any] = {tensor["name"]: tensor for tensor in schema["tensors"]}
        self._read = read
        self._numbers = {coordinate["name"]: n
                         for n, coordinate in enumerate(schema["coordinates"])}
        self._values: dict[str, np.ndarray] = {}

    @property
    def windows(self) -> list[dict[str, Any]]:
        """The dimensions that windows slide along."""
        windows: list[dict[str, Any]] | None = self.schema.get("window")
        if windows is None:
            raise NotSupported("the batchfs process is of a version that does not say which "
                               "samples a batch holds")
        return windows

    @property
    def xbatcher(self) -> dict[str, Any] | None:
        return self.view.get("xbatcher")

    def coordinate(self, dim: str) -> np.ndarray | None:
        """The labels of the view's selection along a dimension; None where it has no coordinate."""
        if dim not in self._values:
            number = self._numbers.get(dim)
            if number is None:
                return None
            typestr, data = self._read(number)
            self._values[dim] = np.frombuffer(data, typestr)
        return self._values[dim]

    def length(self, window: dict[str, Any]) -> int:
        """Positions of the selection along a window's dimension."""
        positions = window.get("positions")
        if positions is None:
            return int(self.schema["coordinates"][self._numbers[window["dim"]]]["size"])
        return int(len(positions["list"]) if "list" in positions else positions["size"])


class Labels:
    """The labels of one batch: complete in a pickled batch, otherwise made on first use."""

    __slots__ = ("info", "_core", "_made")

    def __init__(self, info: ViewInfo | None, core: Any, made: dict[Any, Any] | None = None):
        self.info = info
        self._core = core
        self._made: dict[Any, Any] = {} if made is None else made

    def _get(self, key: Any, make: Callable[[ViewInfo], T]) -> T:
        if key not in self._made:
            if self._core is None or self.info is None:
                raise NotSupported("this batch came without labels")
            self._made[key] = make(self.info)
        made: T = self._made[key]
        return made

    @property
    def schema(self) -> dict[str, Any]:
        return self._get("schema", lambda info: info.schema)

    @property
    def is_xbatcher(self) -> bool:
        return self._get("xbatcher", lambda info: info.xbatcher is not None)

    def _windows(self) -> np.ndarray:
        return self._get("windows", lambda _: np.frombuffer(self._core.windows(), np.int64))

    @property
    def index(self) -> np.ndarray:
        return self._get("index", lambda _: self._windows()[:self._core.samples])

    @property
    def starts(self) -> np.ndarray:
        """Where each sample's window begins, (samples, window dimensions): positions of the
        selection."""
        return self._get("starts", lambda _: self._windows()[self._core.samples:].reshape(
            self._core.samples, -1))

    @property
    def labels(self) -> dict[str, np.ndarray]:
        return self._get("labels", self._make_labels)

    def _make_labels(self, info: ViewInfo) -> dict[str, np.ndarray]:
        result = {}
        for w, window in enumerate(info.windows):
            starts = self.starts[:, w]
            values = info.coordinate(window["dim"])
            positions = window.get("positions", {})
            if values is not None:
                result[window["dim"]] = values[starts]
            elif "list" in positions:
                result[window["dim"]] = np.asarray(positions["list"], np.int64)[starts]
            else:
                result[window["dim"]] = positions["first"] + positions["step"] * starts
        return result

    def coords(self, tensor: str) -> dict[str, np.ndarray]:
        return self._get(("coords", tensor), lambda info: self._make_coords(info, tensor))

    def _make_coords(self, info: ViewInfo, tensor: str) -> dict[str, np.ndarray]:
        entry = info.tensors[tensor]
        windows = {tensor_dim(window["dim"]): w for w, window in enumerate(info.windows)}
        result: dict[str, np.ndarray] = {}
        for dim in entry["dims"] if info.xbatcher is not None else entry["dims"][1:]:
            if dim == entry.get("stack"):
                if "channels" in entry:
                    result[dim] = np.array(entry["channels"], np.str_)
                continue
            stored = "sample" if dim == "stored_sample" and info.coordinate(dim) is None else dim
            values = info.coordinate(stored)
            if values is None or (dim == "sample" and info.xbatcher is not None):
                continue
            if dim in windows:
                if info.xbatcher is None or info.xbatcher.get("concat_input_dims"):
                    continue
                start = int(self.starts[0, windows[dim]])  # xbatcher's batch is one patch then
                values = values[start:start + info.windows[windows[dim]]["size"]]
            coarse = _coarse(values, entry.get("coarsen", {}).get(stored, {}).get("size", 1))
            if coarse is not None:
                result[dim] = coarse
        return result

    def scale(self, tensor: str) -> _scales.Scale | None:
        return self._get(("scale", tensor), lambda _: _scales.scale_of(self, tensor))

    def __reduce__(self) -> tuple[Any, ...]:
        made = dict(self._made)
        if self._core is not None and self.info is not None:
            try:
                made |= {"schema": self.schema, "xbatcher": self.is_xbatcher,
                         "index": self.index.copy(), "labels": self.labels}
                for tensor in self.info.tensors:
                    made["coords", tensor] = self.coords(tensor)
                    made["scale", tensor] = self.scale(tensor)
            except Error:  # an older server; the mount is gone: the batch is of use without them
                pass
            made.pop("windows", None)
            made.pop("starts", None)
        return Labels, (None, None, made)
