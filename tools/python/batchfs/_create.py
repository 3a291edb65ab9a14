"""batchfs.create: an output for predictions, from a view."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from . import _arrays
from ._chunking import WriteOptions, lay_out
from ._dataset import Dataset
from ._errors import Error, InvalidArgument, NotSupported
from ._output import Folder
from ._placement import OVERLAPS, placements_of
from ._predictions import Predictions
from ._windows import Windows

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def create(output: str | os.PathLike[str], like: Dataset | None = None, *, store: str | os.PathLike[str] | None = None,
           view: Mapping[str, Any] | str | os.PathLike[str] | None = None, part: str | None = None,
           tensor: str | list[str] | None = None, name: str | Mapping[str, str] | None = None, overlap: str = "error",
           time: str = "valid", reduce: str | None = None, dtype: Any = None, chunks: Mapping[str, int] | None = None,
           shards: Mapping[str, int] | None = None, codec: str = "zstd", denormalize: bool = False, rank: int | None = None,
           world: int | None = None, epoch: int | None = None, memory: str | int = "1G", threads: int | None = None,
           program: str | os.PathLike[str] | None = None, **options: Any) -> Predictions:
    """An output Zarr store for a model's predictions: each is written at the position of its sample.

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
    _arrays.check_zarr()
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
        info = data._open_info
        if info is None:
            raise Error("the dataset is closed; open it again")
        if "mix" in info.view:
            raise NotSupported("predictions of a mixture cannot be written: create an output for each of its views")
        if info.xbatcher is not None:
            raise NotSupported("predictions of views with \"xbatcher\" cannot be written: write the view with \"window\"")
        windows = Windows.of(data, store, part, data.epoch if epoch is None else epoch, program)
        _check_apart(folder.root, windows.store)
        tensors = _tensors_of(list(info.tensors), tensor)
        coarse = [one for one in tensors if "coarsen" in info.tensors[one]]
        if coarse:
            raise NotSupported(f"predictions of the tensor '{coarse[0]}' cannot be written, since the view coarsens it: name others "
                               "with tensor=")
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
        chosen = WriteOptions(overlap, rank, world, denormalize, dtype, chunks, shards, codec, _size(memory), threads)
        for placement in placements:
            lay_out(placement, windows, chosen)
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


def _check_apart(output: str, store: str) -> None:
    """Refuses an output in the store that is read, or around it."""
    source = store[len("file://"):] if store.startswith("file://") else store
    if "://" in source:
        return
    one, other = os.path.realpath(output), os.path.realpath(source)
    if one == other or one.startswith(other + os.sep) or other.startswith(one + os.sep):
        raise InvalidArgument(f"the output '{output}' lies in the store that is read, or around it; name a place beside it")


def _size(text: str | int) -> int:
    if isinstance(text, int) and text > 0:
        return text
    word = str(text).upper().removesuffix("B")
    with contextlib.suppress(ValueError, KeyError):
        return int(word) if word.isdecimal() and int(word) > 0 else int(float(word[:-1]) * _UNITS[word[-1]])
    raise InvalidArgument(f"memory={text!r} is no size: pass \"500M\" or \"2G\"")
