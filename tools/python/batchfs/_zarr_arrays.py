"""The arrays of an output, encoded by zarr-python: its store keeps documents in memory and hands on
the objects."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import zarr
import zarr.codecs
from zarr.storage import MemoryStore

from ._cf import encoded
from ._errors import InvalidArgument
from ._layout import Axis, Layout

_DOCUMENT = "zarr.json"
_WHOLE: Any = {"write_empty_chunks": True}


class _Sink(MemoryStore):
    """No object is read back: every one is written whole."""

    def __init__(self, put: Callable[[str, Any], None]):
        super().__init__()
        self._put = put

    async def set(self, key: str, value: Any, byte_range: Any = None) -> None:
        if key.rpartition("/")[2] == _DOCUMENT:
            await super().set(key, value, byte_range)
        else:
            await asyncio.to_thread(self._put, key, value.as_numpy_array())

    def set_sync(self, key: str, value: Any) -> None:
        if key.rpartition("/")[2] == _DOCUMENT:
            super().set_sync(key, value)
        else:
            self._put(key, value.as_numpy_array())

    def documents(self) -> dict[str, bytes]:
        return {key: value.to_bytes() for key, value in self._store_dict.items()
                if key.rpartition("/")[2] == _DOCUMENT}


class Arrays:
    """Documents and encoding of all arrays. Thread-safe after the last add()."""

    def __init__(self, put: Callable[[str, Any], None]):
        self._sink = _Sink(put)
        self._group = zarr.create_group(self._sink, zarr_format=3)
        self._arrays: dict[str, Any] = {}
        self._coordinates: dict[str, tuple[Any, np.ndarray]] = {}

    def add(self, layout: Layout, codec: str) -> None:
        attributes = layout.attributes
        if layout.dtype.kind == "f":
            attributes = attributes | {"_FillValue": float("nan")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._arrays[layout.name] = self._group.create_array(
                layout.name, shape=layout.shape, dtype=layout.dtype, chunks=layout.chunk,
                shards=layout.object_shape if layout.is_sharded else None,
                compressors=compressors_of(codec), filters=None,
                fill_value=layout.dtype.type(layout.fill),
                dimension_names=[axis.name for axis in layout.axes],
                attributes=_plain(attributes, layout.dtype), config=_WHOLE)

    def add_coordinate(self, axis: Axis) -> None:
        """The labels of a dimension, as CF has them."""
        if axis.labels is None or axis.name in self._coordinates or axis.name in self._arrays:
            return
        values, attributes = encoded(axis.labels, {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strings, which have no specification yet
            array = self._group.create_array(
                axis.name, shape=values.shape, dtype=str if values.dtype.kind == "U"
                    else values.dtype, chunks=(max(1, len(values)),), dimension_names=[axis.name],
                attributes=_plain(attributes, values.dtype), config=_WHOLE)
        self._coordinates[axis.name] = (array, values)

    def put(self, name: str, region: tuple[slice, ...], values: np.ndarray) -> None:
        """Encodes an object and hands it on. Blocking."""
        self._arrays[name][region if region else ...] = values

    def put_coordinates(self) -> None:
        for array, values in self._coordinates.values():
            if len(values):
                array[...] = values

    def identity(self) -> dict[str, Any]:
        """The documents of the arrays, without coordinates."""
        documents = self._sink.documents()
        return {name: json.loads(documents[f"{name}/{_DOCUMENT}"]) for name in sorted(self._arrays)}

    def documents(self) -> list[tuple[str, bytes]]:
        """All of them, consolidated; the one that makes the output a store is the last."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(self._sink)
        documents = self._sink.documents()
        last = documents.pop(_DOCUMENT)
        return [*documents.items(), (_DOCUMENT, last)]


def compressors_of(codec: str) -> Any:
    """The codecs of "zstd", "zstd:9", "blosc", "blosc:zstd:5", "gzip:6", "none", as for `batchfs
    rechunk`."""
    name, *parts = codec.split(":")
    try:
        level = int(parts[-1]) if parts and parts[-1].lstrip("-").isdecimal() else None
        inner = parts[0] if parts and not parts[0].lstrip("-").isdecimal() else None
        if name == "none" and not parts:
            return None
        if name == "zstd" and inner is None:
            return zarr.codecs.ZstdCodec(level=3 if level is None else level)
        if name == "gzip" and inner is None:
            return zarr.codecs.GzipCodec(level=6 if level is None else level)
        if name == "blosc":
            inside: Any = inner or "lz4"
            return zarr.codecs.BloscCodec(cname=inside, clevel=5 if level is None else level,
                                          shuffle="shuffle")
    except (ValueError, TypeError):
        pass
    raise InvalidArgument(f"codec={codec!r} is unknown: pass \"zstd\", \"blosc\", \"gzip\", with a "
                          "level as in \"zstd:9\", or \"none\"")


def _plain(attributes: dict[str, Any], dtype: np.dtype[Any]) -> dict[str, Any]:
    """The attributes as xarray writes them: the fill value of floats is base64."""
    result = dict(attributes)
    if "_FillValue" in result and dtype.kind == "f":
        import base64

        result["_FillValue"] = base64.b64encode(np.array(np.nan, "<f8").tobytes()).decode()
    return result
