"""batchfs.create with views and options that are drawn, beside numpy: see
expected_predictions.py."""

import os
import random

import numpy as np
import pytest

import batchfs

from expected_predictions import expected
from prediction_stores import open_
from prediction_stores import store  # noqa: F401 (fixture)

pytestmark = pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" in os.environ,
                                reason="Python would need the sanitizer's runtime")

LENGTHS = {"time": 20, "lat": 26, "lon": 36}
DIMS = {"t": ("time", "level", "lat", "lon"), "p": ("time", "lat", "lon"),
        "kind": ("time", "lat", "lon")}


def draw_window(draw, dim):
    size = draw.choice([1, 1, 2, 3, 5, 8]) if dim == "time" else draw.choice([
        4, 7, 8, 13, LENGTHS[dim]])
    window = {"size": size,
              "stride": draw.choice([size, size, max(1, size - 1), max(1, size // 2), size + 2])}
    if dim == "lon" and draw.random() < 0.4:
        window["wrap"] = True
    elif draw.random() < 0.2:
        window["edge"] = "pad"
    return window


def draw_view(draw):
    window = {dim: draw_window(draw, dim) for dim in draw.sample(list(LENGTHS), draw.randint(1, 3))}
    order, remainder = draw.choice([("none", "keep"), ("none", "drop"), ("global", "keep"),
                                    ("global", "pad")])
    view = {"window": window,
            "batch": {"size": draw.choice([3, 5, 8, 200]), "remainder": remainder},
            "order": {"shuffle": order}}
    if draw.random() < 0.3:
        view["select"] = draw.choice([{"level": 850}, {"level": [850, 500]},
                                      {"level": [500], "lat": {"from": "#2", "to": "#20"}}])
    names = draw.choice([["t"], ["p"], ["t", "p"], ["kind"]])
    tensor = {"variables": names}
    if len(names) > 1:
        tensor["stack"], view["dtype"] = "channel", "float32"
    if "time" in window and draw.random() < 0.5:
        tensor["offsets"] = {
            "time": draw.choice([[1], [0, 1], [1, 2], [-1, 1], ["6h"], ["6h", "18h"], [2, 1]])}
    if names in (["p"], ["kind"]) and draw.random() < 0.3:
        tensor["dims"] = draw.sample(list(LENGTHS), 3)
    view["tensors"] = {"y": tensor}
    if draw.random() < 0.3:
        view["tensors"]["x"] = {"variables": ["p"]}
    return view


def draw_options(draw):
    options = {"overlap": draw.choice(["error", "trim", "mean", "cosine", "last", "last"])}
    if draw.random() < 0.3:
        options["chunks"] = {dim: draw.choice([1, 3, 8, -1])
                             for dim in draw.sample(list(LENGTHS), 2)}
    if draw.random() < 0.2:
        options["shards"] = {"lat": -1}
    if draw.random() < 0.3:
        options["codec"] = draw.choice(["none", "zstd:1", "gzip", "blosc"])
    if draw.random() < 0.2:
        options["memory"] = 50_000
    return options


def noise(batch):
    """A model whose windows differ where they overlap."""
    values = batch["y"].numpy()
    return values + batch.index.astype(values.dtype).reshape(-1, *(1,) * (values.ndim - 1))


def samples_of(data, written, variable):
    """By number: the start, and the values of the variable with its dimensions as they are
    stored."""
    entry = next(one for one in data.schema["tensors"] if one["name"] == "y")
    dims, stack = entry["dims"][1:], entry.get("stack")
    windows = ([one["dim"] for one in data.schema["windows"]] if "windows" in data.schema
               else list(data.view["window"]))
    result = {}
    for numbers, starts, values in written:
        if stack:
            names = [one["name"] for one in entry["variables"]]
            counts = [int(np.prod(list(one.get("joined", {}).values()), dtype=int))
                      for one in entry["variables"]]
            first = sum(counts[:names.index(variable)])
            joined = entry["variables"][names.index(variable)].get("joined", {})
            values = np.moveaxis(values, 1 + dims.index(stack),
                                 1)[:, first:first + counts[names.index(variable)]]
            values = values.reshape(len(values), *joined.values(), *values.shape[2:])
            own = [*joined, *(dim for dim in dims if dim != stack)]
        else:
            own = dims
        order = [dim for dim in DIMS[variable] if dim in own]
        values = values.transpose(0, *(1 + own.index(dim) for dim in order))
        for i, number in enumerate(numbers.tolist()):
            result[number] = dict(zip(windows, starts[i].tolist())), values[i]
    return result, order


@pytest.mark.parametrize("seed", range(40))
def test_drawn_views_and_options(store, tmp_path, seed):  # noqa: F811
    draw = random.Random(seed)
    view, options = draw_view(draw), draw_options(draw)
    try:
        data = batchfs.open(store, view=view)
    except batchfs.Error:
        pytest.skip("the view has no samples")
    try:
        out = batchfs.create(tmp_path / "o", like=data, tensor="y", **options)
    except batchfs.Error as refusal:
        pytest.skip(f"refused: {refusal}")
    written = []
    with out:
        for batch in out.remaining():
            values = noise(batch)
            written.append((batch.index.copy(), batch._labels.starts.copy(), values.copy()))
            out.write(batch, values)
    result = open_(tmp_path / "o").load()
    tensor = view["tensors"]["y"]
    offsets = [{"6h": 1, "18h": 3}.get(one, one)
               for one in tensor.get("offsets", {}).get("time", [0])]
    for variable in tensor["variables"]:
        samples, dims = samples_of(data, written, variable)
        array = result[variable]
        assert list(array.dims) == dims
        windows = {dim: (offsets if dim == "time" else [0], one["size"], one.get("wrap", False))
                   for dim, one in view["window"].items()}
        wanted = expected(dims, dict(array.sizes), windows, samples, options["overlap"],
                          array.dtype)
        np.testing.assert_allclose(array.values, wanted, rtol=3e-7, err_msg=f"{view} {options}")
