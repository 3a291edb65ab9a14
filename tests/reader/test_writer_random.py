"""libbatchfs_writer and batchfs.create with views and options that are drawn: the same output, or the same refusal."""

import random

import pytest

import batchfs

from prediction_stores import store  # noqa: F401 (fixture)
from test_writer_library import Case, noise, program, pytestmark  # noqa: F401 (fixtures)

LENGTHS = {"time": 20, "lat": 26, "lon": 36}


def draw_window(draw, dim):
    size = draw.choice([1, 1, 2, 3, 5, 8]) if dim == "time" else draw.choice([4, 7, 8, 13, LENGTHS[dim]])
    window = {"size": size, "stride": draw.choice([size, size, max(1, size - 1), max(1, size // 2), size + 2])}
    if dim == "lon" and draw.random() < 0.4:
        window["wrap"] = True
    elif draw.random() < 0.2:
        window["edge"] = "pad"
    return window


def draw_view(draw):
    window = {dim: draw_window(draw, dim) for dim in draw.sample(list(LENGTHS), draw.randint(1, 3))}
    order, remainder = draw.choice([("none", "keep"), ("none", "drop"), ("global", "keep"), ("global", "pad")])
    view = {"window": window, "batch": {"size": draw.choice([3, 5, 8, 200]), "remainder": remainder}, "order": {"shuffle": order}}
    if draw.random() < 0.3:
        view["select"] = draw.choice([{"level": 850}, {"level": [850, 500]}, {"level": [500], "lat": {"from": "#2", "to": "#20"}}])
    names = draw.choice([["t"], ["p"], ["t", "p"], ["kind"]])
    tensor = {"variables": names}
    if len(names) > 1:
        tensor["stack"], view["dtype"] = "channel", "float32"
    if "time" in window and draw.random() < 0.5:
        tensor["offsets"] = {"time": draw.choice([[1], [0, 1], [1, 2], [-1, 1], ["6h"], ["6h", "18h"], [2, 1]])}
    if names in (["p"], ["kind"]) and draw.random() < 0.3:
        tensor["dims"] = draw.sample(list(LENGTHS), 3)
    view["tensors"] = {"y": tensor}
    if draw.random() < 0.3:
        view["tensors"]["x"] = {"variables": ["p"]}
    return view


def draw_options(draw):
    options = {"overlap": draw.choice(["error", "trim", "mean", "cosine", "last", "last"])}
    if draw.random() < 0.3:
        options["time"] = "lead"
    if draw.random() < 0.15:
        options |= {"reduce": "window", "name": "score"}
    if draw.random() < 0.3:
        options["chunks"] = {dim: draw.choice([1, 3, 8, -1]) for dim in draw.sample(list(LENGTHS), 2)}
    if draw.random() < 0.2:
        options["shards"] = {"lat": -1}
    if draw.random() < 0.3:
        options["codec"] = draw.choice(["none", "zstd:1", "gzip", "blosc"])
    if draw.random() < 0.2:
        options["memory"] = 50_000
    return options


@pytest.mark.parametrize("seed", range(24))
def test_both_ways_write_the_same_or_refuse(program, store, tmp_path, seed):  # noqa: F811
    draw = random.Random(seed)
    view, options = draw_view(draw), draw_options(draw)
    whole = view["tensors"]["y"]["variables"] == ["kind"]

    def predict(batch):
        values = batch["y"].numpy() if whole else noise("y")(batch)
        return values.reshape(len(values), -1)[:, 0] if "reduce" in options else values

    try:
        case = Case(program, store, tmp_path, view, tensor="y", predict=predict, **options)
    except batchfs.Error:
        pytest.skip("the view has no samples")
    try:
        case.by_python()
    except batchfs.Error as refusal:
        refused = case.run(tmp_path / "c")
        assert (refused.returncode, refused.stderr.split(": ", 1)[1]) == (1, f"{refusal}\n")
    else:
        case.compare()
