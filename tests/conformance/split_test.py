"""Splits of a view: against the Python of batchfs-view(5), xarray and numpy, and by what the
batches hold. The values of the stores are their own positions."""

import itertools
import json
import math
import re
import sys
import pathlib
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from man_view_test import page  # noqa: E402


def write(path, times, lat=5, basin=None):
    n = len(times)
    data = {"a": (("time", "lat"), np.arange(n * lat, dtype="i4").reshape(n, lat))}
    if basin is not None:
        data["basin"] = (("lat",), basin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset(data, {"time": times, "lat": np.arange(lat) * 2.5}).to_zarr(
            path, mode="w", zarr_format=2, encoding={"a": {"chunks": (7, lat)}})
    return path


class Run:
    """A view file of a store."""

    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file = batchfs, store, folder / "view.json"
        self.file.write_text(json.dumps(view))

    def plan(self, *more):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json",
                                             *more))

    def refusal(self, *more):
        return self.batchfs.refusal("plan", self.store, "--view", self.file, *more)

    def tensor(self, part, batch=0, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--part", part, "--batch",
                                batch, *more)

    def batch(self, part, batch=0, *more):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--part",
                                             part, "--format", "json", "--batch", batch, *more))

    def starts(self, part):
        """The starts of all samples of a part, in the order of their numbers."""
        provenance = self.batch(part)
        return [start for _, start in sorted(zip(provenance["samples"], provenance["starts"],
                                                 strict=True))]


W = {"window": {"time": {"size": 2, "stride": 1}}, "variables": ["a"], "batch": 10_000}
TIMES = pd.date_range("2014-01-01", "2018-12-31", freq="5D").values


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("split") / "s.zarr", TIMES)


REGIONS = {"parts": {"train": "rest", "val": [{"time": {"from": "2016", "to": "2016"}}],
                     "test": [{"time": {"from": "2018-03"}}]},
           "gap": {"time": "12d"}}


def test_regions_are_those_of_xarray(batchfs, tmp_path, store):
    run = Run(batchfs, tmp_path, store, {**W, "split": REGIONS})
    data = xr.open_zarr(store)
    val = data.sel(time=slice("2016", "2016")).a.values[:, 0] // 5
    test = data.sel(time=slice("2018-03", None)).a.values[:, 0] // 5
    rows = {part: run.tensor(part)[:, :, 0] // 5 for part in ("train", "val", "test")}
    assert rows["val"].tolist() == [[p, p + 1] for p in val[:-1]]
    assert rows["test"].tolist() == [[p, p + 1] for p in test[:-1]]
    others = TIMES[np.concatenate([val, test])]
    gap = np.timedelta64(12, "D")
    expected = [[p, p + 1] for p in range(len(TIMES) - 1)
                if not {p, p + 1} & {*val, *test}
                and all(np.abs(TIMES[q] - others).min() > gap for q in (p, p + 1))]
    assert rows["train"].tolist() == expected
    plan = run.plan()
    parts, split = plan["parts"], plan["split"]
    assert {part: parts[part]["samples"] for part in parts} == {
        part: len(rows[part]) for part in rows}
    assert (sum(part["windows"] for part in split["parts"].values())
            + split["straddling"] == plan["windows"] == len(TIMES) - 1)
    for part in parts.values():
        assert part["windows"] - sum(part["dropped"].values()) == part["samples"]
    check = split["leak_check"]
    assert check["shared"] == 0
    assert {"parts": ["train", "val"], "dim": "time", "positions": 3,
            "time": "15d"} in check["nearest"]
    text = batchfs.bytes("plan", store, "--view", run.file).decode()
    assert "leak check: 0 positions shared, nearest train-val distance 15d" in text
    assert re.search(r"^train +\d", text, re.M) and re.search(r"^test +\d", text, re.M)


def times_of(rng, count):
    times = pd.date_range("1999-11-20", periods=count + 6,
                          freq=rng.choice(["6h", "1D", "9D", "MS"])).values
    return np.sort(rng.choice(times, count, replace=False)).astype("M8[ns]")


def python_times(times):
    return [t.to_pydatetime() for t in pd.DatetimeIndex(times)]


class Part:
    """The view of the page's functions: its part, the owner of a place, the rank of a part."""

    def __init__(self, name, part, owner, rank):
        self.name, self.part, self.owner, self.rank = name, part, owner, rank


def regions(rng, split, times):
    """Parts of two regions; and the class of each time."""
    first, last = sorted(rng.choice(len(times), 2, replace=False).tolist())
    split["parts"] = {"train": "rest",
                      "val": [{"time": {"from": str(times[first]), "to": str(times[last])}}]}
    numbers = [int(first <= p <= last) for p in range(len(times))]

    def owner(place):
        return numbers[place[0]]

    def rank(part):
        return 1 if part == 1 else -1

    return [Part("train", 0, owner, rank), Part("val", 1, owner, rank)]


def drawn(names, rng, split, texts, block):
    """Adds fractions or folds. `block`: the number of the block of a place. None: there are too few
    blocks."""
    split["seed"] = int(rng.integers(0, 1000))
    by_hash = split.get("draw") == "hash" or "groups" in split

    def rank(part):
        return part

    if rng.random() < 0.4:
        split["folds"] = int(rng.integers(2, 4))
        if split["folds"] > len(texts):
            return None
        folds = names["draw"](texts, None, split["folds"], split["seed"], by_hash)

        def in_fold(fold):
            return lambda place: int(folds[block(place)] == fold)

        return [Part(f"fold-{fold}-{name}", part, in_fold(fold), rank)
                for fold in range(split["folds"]) for part, name in enumerate(("train", "val"))]
    fractions = [0.5, 0.2, 0.3] if rng.random() < 0.5 else [0.75, 0.25]
    split["fractions"] = dict(zip("abc", fractions, strict=False))
    owners = names["draw"](texts, fractions, 0, split["seed"], by_hash)

    def owner(place):
        return owners[block(place)]

    return [Part(name, part, owner, rank) for part, name in enumerate(split["fractions"])]


@pytest.mark.parametrize("seed", range(40))
def test_random_views_are_as_the_page_says(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    names = page()
    count, lat = int(rng.integers(16, 36)), int(rng.integers(3, 6))
    times = times_of(rng, count)
    dates, latitudes = python_times(times), np.arange(lat) * 2.5
    basin = rng.integers(0, 4, lat).astype("i4")
    run_store = write(tmp_path / "s.zarr", times, lat, basin)
    size, stride = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    offsets = sorted(rng.choice(np.arange(-1, 2), int(rng.integers(1, 3)), replace=False).tolist())
    wrap = bool(rng.random() < 0.3)
    window = {"time": {"size": size, "stride": stride},
              "lat": {"size": 1, "stride": 1, "wrap": wrap}}
    split = {}
    # The texts of each dimension's classes, and the class of each position.
    kind = ["blocks", "durations", "groups", "basin", "regions"][seed % 5]
    along_lat = kind in ("blocks", "durations", "basin") and (kind == "basin" or rng.random() < 0.5)
    keys = {}
    if kind == "regions":
        parts = regions(rng, split, times)
        keys["time"] = [""] * count
    elif kind == "blocks":
        length = int(rng.integers(5, 15))
        split["blocks"] = {"time": length}
        keys["time"] = [str(times[p // length * length].astype("M8[s]")) for p in range(count)]
    elif kind == "durations":
        months = bool(rng.random() < 0.5)
        amount = int(rng.integers(1, 4)) * (1 if months else 20)
        split["blocks"] = {"time": f"{amount}mo" if months else f"{amount}d"}
        keys["time"] = [str(names["block_of_time"](t, **{"months" if months else "days": amount}))
                        for t in dates]
    elif kind == "groups":
        field = str(rng.choice(["year", "month", "season", "day"]))
        split["groups"] = {"time": field}
        keys["time"] = [str(x) for x in getattr(xr.DataArray(times, dims="t").dt, field).values]
    else:
        split["groups"] = {"basin": "value"}
        keys["lat"] = [str(b) for b in basin]
    if along_lat and kind != "basin":
        split["blocks"] = {"lat": 2, **split["blocks"]}  # the order of "window" counts
        keys["lat"] = [str(latitudes[p // 2 * 2]) for p in range(lat)]
    if "blocks" in split and rng.random() < 0.4:
        split["draw"] = "hash"
    dims = [dim for dim in ("time", "lat") if dim in keys]
    classes = {dim: list(dict.fromkeys(keys[dim])) for dim in dims}
    gaps, gap = [], {}
    for dim in dims:
        length, wraps = (count, False) if dim == "time" else (lat, wrap)
        if dim == "time" and rng.random() < 0.4:
            gap[dim] = "36h"
            gaps.append((pd.Timedelta("36h"), length, wraps, dates))
        else:
            amount = int(rng.integers(0, 3))
            gap[dim] = amount
            gaps.append((amount, length, wraps, None))
    if rng.random() < 0.7:
        split["gap"] = gap
    else:
        gaps = [(0, length, wraps, None) for _, length, wraps, _ in gaps]
    if kind != "regions":
        texts = [",".join(each) for each in itertools.product(*(classes[dim] for dim in dims))]
        number = {text: i for i, text in enumerate(texts)}
        parts = drawn(names, rng, split, texts,
                      lambda place: number[",".join(keys[dim][p]
                                                    for dim, p in zip(dims, place, strict=True))])
        if parts is None:
            return
    view = {"window": window, "tensors": {"a": {"variables": ["a"], "offsets": {"time": offsets}}},
            "batch": 100_000,
            "order": {"shuffle": ["none", "global", "block"][seed % 3], "seed": seed},
            "split": split}
    run = Run(batchfs, tmp_path, run_store, view)
    starts = {"time": [s for s in range(0, count, stride)
                       if s + min(0, *offsets) >= 0 and s + max(0, *offsets) + size <= count],
              "lat": list(range(lat))}
    seen = {}
    refused = False
    for part in parts:
        expected = []
        for start in itertools.product(starts["time"], starts["lat"]):
            at = dict(zip(("time", "lat"), start, strict=True))
            footprint = [names["along"](at["time"], offsets, size, count, False) if dim == "time"
                         else names["along"](at["lat"], [0], 1, lat, wrap) for dim in dims]
            if names["is_sample"](part.part, footprint, part.owner, part.rank, gaps):
                expected.append(list(start))
        if not expected:
            assert "split." in run.refusal("--part", part.name)
            refused = True
            continue
        try:
            found = run.starts(part.name)
        except AssertionError as error:  # another part may have drawn no block
            assert "is none" in str(error) or "as long as a sample" in str(error), error
            refused = True
            continue
        assert found == expected
        seen[part.name] = run.tensor(part.name)
    # Positions of the batches' values along the dimensions of the split.
    held = {}
    for name, tensor in seen.items():
        rows = np.unique(tensor)
        held[name] = {tuple(int(v) // lat if dim == "time" else int(v) % lat for dim in dims)
                      for v in rows}
    for (a, x), (b, y) in itertools.combinations(held.items(), 2):
        if not a.startswith("fold") or a.split("-")[1] == b.split("-")[1]:
            assert not x & y
    if not refused:
        plan = run.plan()
        for group in plan.get("folds", [plan.get("split")]):
            assert group["leak_check"]["shared"] == 0
            assert sum(part["windows"]
                       for part in group["parts"].values()) + group["straddling"] == plan["windows"]
            for name, part in group["parts"].items():
                assert (part["windows"]
                        - part["gap"] == part["samples"] == plan["parts"][name]["samples"])


def test_appended_data_change_no_old_block(batchfs, tmp_path):
    old, new = TIMES[:300], TIMES[:330]
    view = {**W, "split": {"blocks": {"time": "30d"}, "fractions": {"train": 0.7, "val": 0.3},
                           "draw": "hash", "seed": 3}}
    held = []
    for name, times in (("old", old), ("new", new)):
        run = Run(batchfs, tmp_path, write(tmp_path / name, times), view)
        held.append({part: {tuple(row) for row in run.tensor(part)[:, :, 0]}
                     for part in ("train", "val")})
    for part in ("train", "val"):
        assert held[0][part] <= held[1][part]
        assert all(max(row) // 5 >= 299 for row in held[1][part] - held[0][part])


def test_no_group_is_in_two_parts(batchfs, tmp_path, store):
    """The invariant of sklearn.model_selection.GroupKFold."""
    run = Run(batchfs, tmp_path, store,
              {**W, "split": {"groups": {"time": "year"}, "folds": 2, "seed": 1}})
    years = pd.DatetimeIndex(TIMES).year.values
    vals = []
    for fold in range(2):
        train, val = (set(years[run.tensor(f"fold-{fold}-{part}")[:, :, 0].ravel() // 5])
                      for part in ("train", "val"))
        assert not train & val and train | val == {2014, 2015, 2016, 2017, 2018}
        vals.append(val)
    assert not vals[0] & vals[1]


def test_shuffle_ranks_and_resume(batchfs, tmp_path, store):
    view = {**W, "batch": {"size": 8, "remainder": "drop"},
            "order": {"shuffle": "block", "seed": 3, "buffer": 2}, "epochs": 2,
            "split": {**REGIONS,
                      "with": {"val": {"order": {"shuffle": "none"}, "batch": 4, "epochs": 1}}}}
    run = Run(batchfs, tmp_path, store, view)
    plan = run.plan()["parts"]
    assert (plan["train"]["batch_size"], plan["train"]["epochs"]) == (8, 2)
    assert (plan["val"]["batch_size"], plan["val"]["epochs"]) == (4, 1)
    assert run.batch("val", 1)["samples"] == [4, 5, 6, 7]
    batches = plan["train"]["batches"]
    epoch = [run.batch("train", b, "--epoch", 1)["samples"] for b in range(batches)]
    assert sorted(itertools.chain(*epoch)) != list(itertools.chain(*epoch))
    assert len(set(itertools.chain(*epoch))) == 8 * batches
    for world in (2, 3):
        for b in range(batches // world * world):
            assert run.batch("train", b // world, "--epoch", 1, "--rank", b % world, "--world",
                             world)["samples"] == epoch[b]


def test_missing_values_come_after_the_split(batchfs, tmp_path):
    values = np.arange(60 * 4, dtype="f4").reshape(60, 4)
    values[[5, 21, 40], 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("t", "x"), values)}).to_zarr(tmp_path / "s", zarr_format=2)
    for split in ({"parts": {"train": "rest", "val": [{"t": {"from": "#20", "to": "#30"}}]},
                   "gap": {"t": 1}},
                  {"parts": {"train": "rest",
                             "val": [{"t": {"from": "#20", "to": "#30"}, "x": ["#1", "#2"]}]},
                   "gap": {"t": 1}}):
        window = {"t": {"size": 2, "stride": 1},
                  **({"x": 1} if "x" in split["parts"]["val"][0] else {})}
        view = {"window": window, "batch": 1000, "missing": {"nan": "skip"}, "split": split,
                "order": {"shuffle": "block", "seed": 2}}
        run = Run(batchfs, tmp_path, tmp_path / "s", view)
        total = 0
        for part, plan in run.plan()["parts"].items():
            rows = run.tensor(part)
            assert not np.isnan(rows).any()
            assert len(rows) == plan["samples"] == plan["windows"] - sum(plan["dropped"].values())
            assert plan["dropped"]["missing"] > 0
            total += len(rows)
            keep = Run(batchfs, tmp_path, tmp_path / "s", {**view, "missing": {"nan": "keep"}})
            all_rows = keep.tensor(part)
            assert len(rows) == (~np.isnan(all_rows).any(axis=tuple(range(1, all_rows.ndim)))).sum()
            run = Run(batchfs, tmp_path, tmp_path / "s", view)
        assert total > 0


def test_statistics_are_of_the_first_part(batchfs, tmp_path, store):
    run = Run(batchfs, tmp_path, store, {**W, "split": REGIONS})
    statistics = json.loads(batchfs.bytes("statistics", store, "--view", run.file,
                                          "--json"))["variables"]["a"]
    used = np.unique(run.tensor("train")).astype("f8")
    assert statistics["count"] == used.size
    np.testing.assert_allclose([statistics["mean"], statistics["std"]], [used.mean(), used.std()],
                               rtol=1e-12)
    val = json.loads(batchfs.bytes("statistics", store, "--view", run.file, "--part", "val",
                                   "--json"))["variables"]["a"]
    assert val["min"] == xr.open_zarr(store).a.sel(time="2016").values.min()
    held = run.tensor("train")[:, :, 0] // 5
    steps = np.diff(xr.open_zarr(store).a.values.astype("f8"), axis=0)[np.unique(held[:, 0])]
    np.testing.assert_allclose([statistics["tendency"]["mean"], statistics["tendency"]["std"]],
                               [steps.mean(), steps.std()])


@pytest.mark.parametrize("gap", [{}, {"time": 1, "lat": 1}])
def test_statistics_of_a_part_along_two_dimensions(batchfs, tmp_path, gap):
    values = np.random.default_rng(4).standard_normal((40, 3, 12)).astype("f4")
    values[7, 1, 3] = np.nan
    static = np.arange(12, dtype="f8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("time", "level", "lat"), values), "s": (("lat",), static)}).to_zarr(
            tmp_path / "s", zarr_format=2, encoding={"a": {"chunks": (7, 2, 5)}})
    view = {"window": {"time": 1, "lat": 1}, "variables": ["a", "s"], "batch": 10_000,
            "split": {"parts": {"train": "rest", "val": [{"time": {"from": "#5", "to": "#30"},
                                                          "lat": {"from": "#2", "to": "#12"}}]},
                      "gap": gap} | ({} if gap else {"gap": {"time": 0}})}
    run = Run(batchfs, tmp_path, tmp_path / "s", view)
    for part in ("train", "val"):
        found = json.loads(batchfs.bytes("statistics", tmp_path / "s", "--view", run.file, "--part",
                                         part, "--json"))["variables"]
        starts = run.starts(part)
        held = values[[t for t, _ in starts], :, [x for _, x in starts]].astype("f8")
        for level in range(3):
            good = held[:, level][~np.isnan(held[:, level])]
            assert (found["a"]["count"][level] == good.size
                    and found["a"]["nan"][level] == np.isnan(held[:, level]).sum())
            np.testing.assert_allclose(found["a"]["mean"][level], good.mean(), rtol=1e-9,
                                       atol=1e-12)
            assert (found["a"]["min"][level], found["a"]["max"][level]) == (good.min(), good.max())
        assert found["s"]["count"] == len({x for _, x in starts})


@pytest.mark.parametrize("split, message", [
    ({"parts": {"train": "rest", "val": [{"time": {"from": "2016", "to": "2017"}}],
                "test": [{"time": {"from": "2017-06"}}]}},
     "split.parts.test[0]: overlaps split.parts.val[0]: they share 43 positions, the first "
     "at time 2017-06-04"),
    ({"parts": {"train": "rest", "val": [{"time": {"from": "2030"}}]}},
     "split.parts.val[0].time: nothing of 'time'"),
    ({"parts": {"train": "rest", "val": [{"level": 5}]}},
     "split.parts.val[0].level: 'level' is not a dimension of \"window\""),
    ({"blocks": {"time": "1mo"}, "fractions": {"train": 0.7, "val": 0.2}},
     "split.fractions: the fractions add up to 0.9"),
    ({"blocks": {"time": "1mo"}, "fractions": {"train": 0.999, "val": 0.001}},
     "split.fractions.val: 0.001 of 60 blocks is none"),
    ({"blocks": {"time": "5d"}, "folds": 2},
     "split.blocks.time: no block is as long as a sample: each of 365 windows"),
    ({"blocks": {"time": 200}, "folds": 3}, "split.folds: 3 folds of 2 blocks; write at most 2"),
    ({"blocks": {"time": 20}, "folds": 2, "gap": {"lat": 1}},
     "split.gap.lat: 'lat' is not a dimension of \"window\""),
    ({"parts": {"train": "rest", "val": [{"time": {"from": "2014-03", "to": "2018-09"}}]},
      "gap": {"time": "90d"}}, "split.parts.train: no sample is left: of 365 windows"),
    ({"groups": {"time": "year"}, "folds": 9}, "split.folds: 9 folds of 5 groups"),
])
def test_bad_splits(batchfs, tmp_path, store, split, message):
    assert message in Run(batchfs, tmp_path, store, {**W, "split": split}).refusal()


def test_commands_need_the_part(batchfs, tmp_path, store):
    run = Run(batchfs, tmp_path, store, {**W, "split": REGIONS})
    assert "split: the view has 3 parts, train, val, test; name one: --part train, or part=" in (
        batchfs.refusal("batch", store, "--view", run.file, "--format", "json"))
    assert "--part: there is no part 'vla', did you mean 'val'?" in run.refusal("--part", "vla")
    assert run.plan("--part", "val")["view"] == "view-val"
    whole = Run(batchfs, tmp_path, store, W)
    assert "--part val: the view has no \"split\"" in whole.refusal("--part", "val")


def test_a_file_with_its_part_is_that_view(batchfs, tmp_path, store):
    run = Run(batchfs, tmp_path, store, {**W, "split": REGIONS})
    val = run.tensor("val")
    run = Run(batchfs, tmp_path, store, {**W, "name": "v", "split": {**REGIONS, "part": "val"}})
    assert run.plan()["view"] == "v"
    assert np.array_equal(run.tensor("val"), val)
    assert "split.part: the view is the part 'val', not 'test'" in run.refusal("--part", "test")


def test_reference_counts(batchfs):
    counts = page()["counts"]
    assert counts([0.65, 0.2, 0.15], 10) == [7, 2, 1]
    assert all(sum(counts([0.7, 0.2, 0.1], n)) == n
               and math.isclose(counts([0.7, 0.2, 0.1], n)[0], 0.7 * n, abs_tol=1)
               for n in range(1, 200))
