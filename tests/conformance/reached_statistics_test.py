"""Statistics are of what samples reach, where samples choose over several dimensions together:
against what batches deliver.

The values of the stores are the numbers of their elements, so that a batch with all samples shows
which elements count."""

import json

import numpy as np
import pytest
import xarray as xr
from source_stores import Sources, grids

SIZES = {"time": 13, "lat": 12, "lon": 10}
VARIABLES = {"v": ("time", "lat", "lon"), "turned": ("lon", "time", "lat"), "s": ("lat", "lon"),
             "u": ("time", "lon"), "one": ("lat",)}
ALL = 100_000


def numbers(name):
    shape = [SIZES[d] for d in VARIABLES[name]]
    return np.arange(np.prod(shape), dtype="f8").reshape(shape)


@pytest.fixture(scope="module", params=[(5, 5, 4), (13, 12, 10), (1, 3, 10)],
                ids=["mixed", "whole", "steps"])
def store(request, tmp_path_factory):
    rng = np.random.default_rng(5)
    ds = xr.Dataset(
        {name: (dims, numbers(name)) for name, dims in VARIABLES.items()}
            | {"land": (("lat", "lon"), (rng.random((12, 10)) < 0.4).astype("i2")),
               "wet": (("time", "lat", "lon"), (rng.random((13, 12, 10)) < 0.4).astype("i2")),
               "rain": (("time", "lat"), (rng.random((13, 12)) < 0.5).astype("f4")),
               "wind": (("time",), (rng.random(13) < 0.5).astype("f4"))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(13) * np.timedelta64(6, "h")})
    chunks = dict(zip(SIZES, request.param))
    path = tmp_path_factory.mktemp("reached") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, consolidated=False,
               encoding={n: {"chunks": tuple(chunks[d] for d in v.dims)}
                         for n, v in ds.data_vars.items()})
    return path


def written(views, view):
    (views.folder / "view.json").write_text(json.dumps(view))
    return views.folder / "view.json"


def part_of(view):
    return ["--part", "train"] if "split" in view else []


class Views:
    """Random views of one kind. Where a dimension is not restricted, its windows leave no position
    out."""

    def __init__(self, batchfs, folder, store, seed):
        self.batchfs, self.folder, self.store, self.rng = (batchfs, folder, store,
                                                           np.random.default_rng(seed))

    def window(self, dim, free=False):
        if free:
            return 1
        size = int(self.rng.integers(1, 4))
        window = {"size": size, "stride": int(self.rng.integers(1, 6))}
        if dim == "lon" and self.rng.random() < 0.5:
            window["wrap"] = True
        elif self.rng.random() < 0.3:
            window["edge"] = "pad"
        return window

    def view(self, free=()):
        view = {"window": {dim: self.window(dim, dim in free)
                           for dim in self.rng.permutation(list(SIZES))},
                "batch": ALL}
        if self.rng.random() < 0.5:
            return view | {"variables": list(VARIABLES)}
        tensors = {name: {"variables": [name]} for name in VARIABLES}
        tensors["v"]["offsets"] = {"lat": [0, 1]} if "time" in free else {"time": [-1, 0]}
        tensors["more"] = {"variables": ["v"],
                           "offsets": {"lat": [0, 2]} | ({} if "time" in free else {"time": [2]})}
        return view | {"tensors": tensors}

    def samples(self, view):
        return json.loads(self.run("plan", view, "--json"))["samples"]

    def run(self, command, view, *more):
        return self.batchfs.bytes(command, self.store, "--view", written(self, view),
                                  *part_of(view), *more)

    def rows(self, view):
        """Random rows of the windows that the view has."""
        windows = json.loads(self.run("batch", view, "--format", "json"))["starts"]
        kept = self.rng.choice(len(windows), max(1, len(windows) // 10))
        np.save(self.folder / "list.npy", np.array(windows)[kept])
        return str(self.folder / "list.npy")

    def weights(self, view):
        weights = (self.rng.random(self.samples(view)) < 0.2).astype("f8")
        weights[0] = 1
        np.save(self.folder / "weights.npy", weights)
        return str(self.folder / "weights.npy")

    def mask(self):
        return self.view(free=["time"]) | {"samples": {"mask": {
            "variable": "land", "fraction": [0.3, 0.9]}}}

    def mask_over_all(self):
        return self.view() | {"samples": {"mask": {"variable": "wet", "fraction": [0.4, 1]}}}

    def mask_and_where(self):
        return self.view() | {"samples": {"mask": {"variable": "land", "fraction": [0.3, 1]},
                                          "where": {"time": ["#3", "#4", "#8"]}}}

    def listed(self):
        view = self.view()
        return view | {"samples": {"list": self.rows(view)}}

    def listed_and_masked(self):
        view = self.view() | {"samples": {"mask": {"variable": "land", "fraction": [0.2, 1]}}}
        return view | {"samples": {**view["samples"], "list": self.rows(view)}}

    def weighted(self):
        view = self.view()
        return view | {"samples": {"weights": self.weights(view)}}

    def weighted_list(self):
        view = self.view()
        view["samples"] = {"list": self.rows(view)}
        return view | {"samples": {**view["samples"], "weights": self.weights(view)}}

    def weighted_by_variable(self):
        return self.view(free=["lon"]) | {"samples": {"weights": {"variable": "rain"}}}

    def weighted_along_time(self):
        return self.view(free=["time"]) | {"samples": {
            "weights": {"variable": "wind"}, "mask": {"variable": "land", "fraction": [0.3, 1]}}}

    def split(self):
        part = [{"lat": {"from": "#0", "to": "#7"}, "lon": {"from": "#2", "to": "#9"}},
                {"lat": {"from": "#7", "to": "#12"}, "lon": {"from": "#0", "to": "#2"}}]
        return self.view(free=["time"]) | {"split": {"parts": {"train": part, "val": "rest"}}}

    def blocks(self):
        return self.view() | {"split": {"blocks": {"time": 4, "lat": 4, "lon": 5},
                                        "fractions": {"train": 0.4, "val": 0.6},
                                        "seed": int(self.rng.integers(99))}}

    def two_restrictions(self):
        """Along a dimension each: tensors with other windows reach other pairs."""
        view = self.view(free=["lon"])
        view["tensors"] = {"v": {"variables": ["v"]},
                           "more": {"variables": ["v"], "offsets": {"time": [2], "lat": [3]}}}
        view.pop("variables", None)
        return view | {"samples": {"where": {"time": ["#1", "#6"], "lat": ["#2", "#5"]}}}


KINDS = [name for name, member in vars(Views).items() if callable(member)
         and name not in ("__init__", "window", "view", "samples", "run", "rows", "weights")]


def some_view(views, kind):
    """A random view that has samples, and the elements that its batch with all of them holds."""
    for _ in range(20):
        try:
            view = getattr(views, kind)()
            return view, delivered(views, view)
        except AssertionError as refusal:
            assert any(words in str(refusal)
                       for words in ("no sample is left", "leaves no sample", "no block is as long",
                                     "is none")), refusal
    raise AssertionError("no view has samples")


def delivered(views, view):
    tensors = {name: t["variables"][0]
               for name, t in view.get("tensors",
                                       {n: {"variables": [n]} for n in VARIABLES}).items()}
    reached = {name: np.zeros(numbers(name).shape, bool) for name in tensors.values()}
    for tensor, name in tensors.items():
        held = views.batchfs.npy("batch", views.store, "--view", written(views, view),
                                 *part_of(view), "--tensor", tensor)
        reached[name].reshape(-1)[np.unique(held[~np.isnan(held)]).astype(int)] = True
    return reached


def is_joint(reached):
    """Is it more than positions along each dimension?"""
    product = np.ones(reached.shape, bool)
    for axis in range(reached.ndim):
        along = reached.any(tuple(a for a in range(reached.ndim) if a != axis))
        product &= along.reshape([-1 if a == axis else 1 for a in range(reached.ndim)])
    return not np.array_equal(product, reached)


def check(entry, values):
    assert entry["count"] == values.size
    if values.size == 0:
        assert entry["mean"] is None
        return
    np.testing.assert_allclose([entry["mean"], entry["std"]], [values.mean(), values.std()],
                               rtol=1e-12)
    if "min" in entry:
        assert (entry["min"], entry["max"], entry["nan"]) == (values.min(), values.max(), 0)


def check_all(found, reached):
    for name, marks in reached.items():
        values, entry = numbers(name), found[name]
        check(entry, values[marks])
        for key, q in (("p25", 0.25), ("median", 0.5), ("p75", 0.75)):
            if marks.any():
                np.testing.assert_allclose(entry[key], np.quantile(values[marks], q), rtol=1e-12)
        if "time" in VARIABLES[name]:
            pairs = np.moveaxis(marks, VARIABLES[name].index("time"), 0)
            pairs = pairs[1:] & pairs[:-1]
            steps = np.diff(np.moveaxis(values, VARIABLES[name].index("time"), 0), axis=0)
            check(entry["tendency"], steps[pairs])


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_of_what_batches_hold(batchfs, store, tmp_path, kind):
    joint = 0
    for seed in range(6):
        views = Views(batchfs, tmp_path, store, seed)
        view, reached = some_view(views, kind)
        joint += is_joint(reached["v"])
        check_all(json.loads(views.run("statistics", view, "--json", "--quantiles"))["variables"],
                  reached)
    assert joint > 0


@pytest.mark.parametrize("per", [["lat"], ["time", "lon"], ["lat", "lon"]], ids="+".join)
@pytest.mark.parametrize("kind", ["mask", "listed", "weighted", "two_restrictions"])
def test_numbers_for_each_position(batchfs, store, tmp_path, kind, per):
    for seed in range(3):
        views = Views(batchfs, tmp_path, store, seed)
        view, reached = some_view(views, kind)
        arguments = [a for dim in per for a in ("--per", dim)]
        found = json.loads(views.run("statistics", view, "--json", *arguments))["variables"]
        for name, marks in reached.items():
            axes = tuple(i for i, d in enumerate(VARIABLES[name]) if d not in per)
            entry, counts = found[name], marks.sum(axes)
            assert np.array_equal(entry["count"], counts) and not np.any(entry["nan"])
            sums = np.where(marks, numbers(name), 0).sum(axes)
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(np.array(entry["mean"], "f8"), sums / counts, rtol=1e-12)


@pytest.mark.parametrize("kind", ["mask", "weighted_list", "blocks"])
def test_tasks_share_the_work(batchfs, store, tmp_path, kind):
    views = Views(batchfs, tmp_path, store, 1)
    view, reached = some_view(views, kind)
    found = json.loads(views.run("statistics", view, "--json"))["variables"]
    for task in range(3):
        views.run("statistics", view, "--task", task, "--tasks", 3, "--out", tmp_path / "parts")
    assert json.loads(batchfs.bytes("statistics", "--merge", tmp_path / "parts",
                                    "--json"))["variables"] == found
    for threads in (1, 4):
        assert json.loads(views.run("statistics", view, "--json", "--threads",
                                    threads))["variables"] == found


def test_channels_that_are_made_and_coarsened(batchfs, store, tmp_path):
    views = Views(batchfs, tmp_path, store, 2)
    view = {"window": {"time": 1, "lat": 4, "lon": {"size": 2, "stride": 1}}, "batch": ALL,
            "samples": {"mask": {"variable": "land", "fraction": [0.4, 1]}}}
    marks = delivered(views, view | {"variables": list(VARIABLES)})["v"]
    assert is_joint(marks)
    view["tensors"] = {"x": {"variables": [{"make": "sum", "of": ["v", "s"]}]}}
    found = json.loads(views.run("statistics", view, "--json"))["variables"]
    check(found["sum"], (numbers("v") + numbers("s"))[marks])
    view["tensors"] = {"x": {"variables": ["v", {"make": "sum", "of": ["v", "s"]}],
                             "coarsen": {"lat": 2}, "stack": "c"}}
    found = json.loads(views.run("statistics", view, "--json"))["variables"]
    check(found["v"], numbers("v")[marks])
    check(found["sum"], (numbers("v") + numbers("s"))[marks])


def test_missing_values_have_no_influence(batchfs, tmp_path):
    values = np.arange(8 * 6, dtype="f8").reshape(8, 6)
    values[1, 1] = np.nan
    land = np.zeros((8, 6))
    land[:2, :2] = land[4:6, 2:4] = 1
    path = tmp_path / "s.zarr"
    xr.Dataset({"v": (("lat", "lon"), values), "land": (("lat", "lon"), land)}).to_zarr(
        path, zarr_format=2)
    view = {"variables": ["v"], "window": {"lat": 2, "lon": 2},
            "samples": {"mask": {"variable": "land"}}, "missing": {"nan": "skip"}}
    entry = json.loads(Views(batchfs, tmp_path, path,
                             0).run("statistics", view, "--json"))["variables"]["v"]
    assert (entry["count"], entry["nan"], entry["min"], entry["max"]) == (7, 1, 0, values[5, 3])


def test_numbers_are_needed_where_samples_reach_only(batchfs, store, tmp_path):
    """Numbers of cells that no sample reaches are null, and no batch needs them."""
    views = Views(batchfs, tmp_path, store, 0)
    view = {"variables": ["v"], "window": {"time": 1, "lat": 4, "lon": 5}, "batch": ALL,
            "samples": {"mask": {"variable": "land", "fraction": [0.42, 1]}}}
    raw = delivered(views, view | {"tensors": {"v": {"variables": ["v"]}}})["v"]
    assert is_joint(raw)
    views.run("statistics", view, "--per", "lat", "--per", "lon", "-o", tmp_path / "numbers.json")
    normalized = view | {"normalize": {"method": "zscore", "statistics": "numbers.json"}}
    held = views.batchfs.npy("batch", store, "--view", written(views, view))
    values = numbers("v")
    mean, std = values.mean(0), values.std(0)
    cells = held.astype(int) % (SIZES["lat"] * SIZES["lon"])
    made = views.batchfs.npy("batch", store, "--view", written(views, normalized))
    np.testing.assert_allclose(made, (held - mean.reshape(-1)[cells]) / std.reshape(-1)[cells],
                               atol=1e-5)
    normalized.pop("samples")
    line = batchfs.refusal("plan", store, "--view", written(views, normalized))
    assert 'there is no finite "mean" of \'v\' at lat=#' in line


def test_of_another_source_with_a_finer_grid(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    _, _, fine = grids(sources, 3)
    rows = [(t, y, x) for t in (0, 3) for y, x in ((0, 1), (2, 5), (4, 6))] + [(1, 1, 1)]
    np.save(tmp_path / "list.npy", rows)
    join = {"y": {"ratio": 3}, "x": {"ratio": 3}}
    view = {"sources": {"c": {}, "f": {"store": "fine", "join": join}},
            "window": {"time": 1, "y": 2, "x": {"size": 3, "wrap": True}},
            "variables": ["t", "f:u"], "samples": {"list": str(tmp_path / "list.npy")}}
    found = json.loads(batchfs.bytes("statistics", *sources.command(view), "--json"))["variables"]
    for name, values, ratio in (("t", sources.data["coarse"].t.values, 1), ("f:u", fine, 3)):
        marks = np.zeros(values.shape, bool)
        for t, y, x in rows:
            columns = np.arange(x * ratio, (x + 3) * ratio) % values.shape[2]
            marks[t, y * ratio:(y + 2) * ratio, columns] = True
        held = values[marks].astype("f8")
        assert found[name]["count"] == held.size
        np.testing.assert_allclose([found[name]["mean"], found[name]["std"]],
                                   [held.mean(), held.std()], rtol=1e-9)
