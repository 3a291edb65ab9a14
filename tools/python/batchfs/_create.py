"""batchfs.create: an output for predictions, from a view."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._dataset import Dataset
from ._errors import Error, InvalidArgument
from ._predictions import Predictions
from ._program import option_words, progress, shown_store, store_word, view_json
from ._writer import Writer, load

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# Options of `batchfs serve` about making batches, not about the store.
_OF_SERVER = {"gpu", "gpu_memory", "memory", "prefetch", "device", "place", "view", "rank", "world",
              "mode", "device_memory", "part", "program", "start", "refresh", "idle", "wait",
              "background"}


def create(output: str | os.PathLike[str], like: Dataset | None = None, *,
           store: str | os.PathLike[str] | None = None,
           view: Mapping[str, Any] | str | os.PathLike[str] | None = None, part: str | None = None,
           tensor: str | list[str] | None = None, name: str | Mapping[str, str] | None = None,
           overlap: str = "error", time: str = "valid", reduce: str | None = None,
           dtype: Any = None, chunks: Mapping[str, int] | None = None,
           shards: Mapping[str, int] | None = None, codec: str = "zstd", denormalize: bool = False,
           rank: int | None = None, world: int | None = None, epoch: int | None = None,
           memory: str | int = "1G", threads: int | None = None,
           program: str | os.PathLike[str] | None = None, **options: Any) -> Predictions:
    """An output Zarr store for a model's predictions: each is written at the position of its
    sample.

        test = batchfs.open("era5.zarr", view="view.json")
        with batchfs.create("predicted.zarr", like=test, tensor="y", overlap="cosine") as out:
            for batch in out.remaining():
                out.write(batch, model(batch["x"].torch()))
        predicted = xarray.open_zarr("predicted.zarr")

    output       a new folder, or one that the same call began: then it continues
    like         the dataset whose batches are predicted, opened with a store and a view; or `store`
                 and `view` (and `part`, and options of the program), as for `open`
    tensor       which tensors of the view are predicted; by default the only one, or "y", or all.
                 Their variables become arrays with the dimensions, coordinates and attributes of
                 what the view selects: channels of a stack are taken apart
    name         what the array is called, or {"t2m": "t2m_predicted"}; by default as the variable
    overlap      where windows overlap: "error" refuses; "trim" takes each element from the window
                 in whose middle it lies; "mean"; "cosine" blends with sin² ramps; "last" takes the
                 sample with the highest number
    time         "valid": values lie at the times that they are for; "lead": the array has
                 dimensions init_time and lead_time in place of time
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

    Elements that no sample covers are NaN (0 for whole numbers). The library libbatchfs_writer
    writes, which the wheel and the Debian package bring; it is found beside the program.
    """
    library = load(program if like is None or like._server is None
                   or program is not None else like._server.program)
    source = _source_of(like, store, view, part, options)
    share = (_given(rank, like.rank if like is not None else 0),
             _given(world, like.world if like is not None else 1),
             _given(epoch, like.epoch if like is not None else 0))
    if share[1] < 1:  # which the library takes for 1
        raise InvalidArgument(f"rank {share[0]} is not below world {share[1]}")
    given = {"part": source.part, "tensors": [tensor] if isinstance(tensor, str) else None
                 if tensor is None else list(tensor), "name": name if isinstance(name, str)
                 else None, "names": [text for pair in name.items() for text in pair]
                 if isinstance(name, Mapping) else None, "overlap": overlap, "time": time,
             "reduce": reduce, "dtype": _dtype_name(dtype), "chunks": _lengths("chunks", chunks),
             "shards": _lengths("shards", shards), "codec": codec, "denormalize": int(denormalize),
             "threads": threads, "memory": _size(memory), "rank": share[0], "world": share[1],
             "epoch": share[2], "store_options": source.options}
    with progress(f"opening {shown_store(source.store)}"):
        writer = Writer(library, source.store, source.view, os.fspath(output), given)
    return Predictions(writer, os.fspath(output), like, *share)


class _Source(NamedTuple):
    """The inputs of the output's description."""

    store: str
    view: str  # the name of a file, or JSON
    part: str | None
    options: list[str]  # words of a command line


def _source_of(like: Dataset | None, store: str | os.PathLike[str] | None,
               view: Mapping[str, Any] | str | os.PathLike[str] | None, part: str | None,
               options: Mapping[str, Any]) -> _Source:
    if like is None:
        if store is None or view is None:
            raise InvalidArgument("pass like=, a dataset; or store= and view=")
        return _Source(store_word(store), _view_text(view), part, _store_options(options))
    if like._open_info is None:
        raise Error("the dataset is closed; open it again")
    server = like._server
    if server is not None:
        text = server.view if server.view is not None else like._arguments["view"]
        return _Source(server.store, text, like._arguments.get("part"),
                       _store_options(like._arguments))
    if store is None:
        raise InvalidArgument("a mount or a socket does not say where each sample lies: pass "
                              "store= as well, the store that it serves")
    return _Source(store_word(store), view_json(like.view), part, _store_options(options))


def _view_text(view: Mapping[str, Any] | str | os.PathLike[str]) -> str:
    return view_json(view) if isinstance(view, Mapping) else os.path.abspath(os.fspath(view))


def _store_options(options: Mapping[str, Any]) -> list[str]:
    return option_words({key: value for key, value in options.items() if key not in _OF_SERVER})


def _given(value: int | None, default: int) -> int:
    return default if value is None else operator.index(value)


def _dtype_name(dtype: Any) -> str | None:
    if dtype is None:
        return None
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        raise InvalidArgument(f"dtype={dtype!r} is not a type of numpy; pass "
                              "\"float32\" or another") from None


def _lengths(keyword: str, lengths: Mapping[str, int] | None) -> str | None:
    """The lengths in the library's syntax: "time=1,latitude=-1"."""
    for dim, length in (lengths or {}).items():
        if not isinstance(length, int) or (length < 1 and length != -1):
            raise InvalidArgument(f"{keyword}= has {length!r} for '{dim}': pass a number of "
                                  "elements, or -1 for all of them")
    return ",".join(f"{dim}={length}" for dim, length in lengths.items()) if lengths else None


def _size(text: str | int) -> int:
    if isinstance(text, int) and text > 0:
        return text
    word = str(text).upper().removesuffix("B")
    with contextlib.suppress(ValueError, KeyError):
        return (int(word) if word.isdecimal()
                and int(word) > 0 else int(float(word[:-1]) * _UNITS[word[-1]]))
    raise InvalidArgument(f"memory={text!r} is not a size: pass \"500M\" or \"2G\"")
