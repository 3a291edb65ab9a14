"""OME-Zarr images, which zarr-python writes, and what the tests of them share."""

import json

import numpy as np
import zarr

RNG = np.random.default_rng(31)
SHAPE = (2, 3, 24, 32)  # c, z, y, x
SCALE = (1.0, 0.5, 0.36, 0.25)
LABELS = ["DAPI", "GFP"]
VERSIONS = ["0.4", "0.5", "0.6"]


def axes(names="czyx"):
    kinds = {"t": ("time", "second"), "c": ("channel", None)}
    result = []
    for name in names:
        kind, unit = kinds.get(name, ("space", "micrometer"))
        result.append({"name": name, "type": kind} | ({"unit": unit} if unit else {}))
    return result


def downsampled(shape, k):
    return tuple(n if d < 2 else n // 2**k for d, n in enumerate(shape))


def scales(k, scale=SCALE):
    return [s if d < 2 else s * 2**k for d, s in enumerate(scale)]


def shift(k):
    """The middle of 2^k pixels lies behind the middle of the first."""
    return [0.0 if d < 2 else s * (2**k - 1) / 2 for d, s in enumerate(SCALE)]


def transformations(version, k, path):
    steps = [{"type": "scale", "scale": scales(k)},
             {"type": "translation", "translation": shift(k)}]
    if version != "0.6":
        return steps
    return [{"type": "sequence", "transformations": steps, "input": {"path": path},
             "output": {"name": "physical"}}]


def metadata(version, levels=3, names="czyx", **more):
    """The attributes of the group of an image."""
    image = {"name": "cells", "datasets": [
        {"path": str(k), "coordinateTransformations": transformations(version, k, str(k))}
        for k in range(levels)]}
    if version == "0.6":
        image["coordinateSystems"] = [{"name": "unused", "axes": axes(names[::-1])},
                                      {"name": "physical", "axes": axes(names)}]
    else:
        image["axes"] = axes(names)
    omero = {"channels": [{"label": label, "color": "0000FF"} for label in LABELS]}
    if version == "0.4":
        return {"multiscales": [{"version": "0.4"} | image | more], "omero": omero}
    return {"ome": {"version": version, "multiscales": [image | more], "omero": omero}}


def zarr_format(version):
    return 2 if version == "0.4" else 3


def add_array(group, name, values, chunks=None, dimension_names=None):
    format = group.metadata.zarr_format
    encoding = {"name": "v2", "separator": "/"} if format == 2 else {
        "name": "default", "separator": "/"}
    array = group.create_array(name, shape=values.shape, chunks=chunks
                                   or tuple(min(n, 8) for n in values.shape), dtype=values.dtype,
                               chunk_key_encoding=encoding,
                               **({"dimension_names": dimension_names} if dimension_names else {}))
    array[...] = values
    return values


def write_image(group, version, levels=3, shape=SHAPE, dtype="u2", **more):
    """Returns the values of each level."""
    group.attrs.update(metadata(version, levels, **more))
    names = list("czyx") if version == "0.5" else None
    return [add_array(group, str(k), RNG.integers(0, 1000, downsampled(shape, k)).astype(dtype),
                      dimension_names=names) for k in range(levels)]


def new_group(path, version="0.4"):
    return zarr.open_group(path, mode="w", zarr_format=zarr_format(version))


def save(tmp_path, view):
    (tmp_path / "view.json").write_text(json.dumps(view))
    return tmp_path / "view.json"


def coordinates(batchfs, store, view, tmp_path, *options):
    """The label of each position along the dimensions of the window."""
    view = {**view, "batch": 1 << 20}
    found = json.loads(batchfs.bytes("batch", store, "--view", save(tmp_path, view), "--format",
                                     "json", *options))
    return {dim: sorted(set(labels)) for dim, labels in found["coordinates"].items()}


def expected(version, k, shape=SHAPE):
    shape = downsampled(shape, k)
    wanted = {name: sorted(np.arange(shape[d]) * scales(k)[d] + shift(k)[d])
              for d, name in enumerate("czyx")}
    wanted["c"] = LABELS
    return wanted
