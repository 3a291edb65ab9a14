""""samples.weights": draws by systematic resampling, as the functions of batchfs-view(5) give
them."""

import collections
import fractions
import json
import math

import brute_force
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from man_view_test import page

T, Y, X = 24, 10, 8


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(12)
    rain = np.where(rng.random((T, Y)) < 0.4, 0, rng.random((T, Y)) * 10)
    bad = rain.copy()
    bad[3, 2:4] = np.nan, -1
    t = rng.random((T, Y, X)).astype("f4")
    t[5, 2] = t[11] = np.nan
    ds = xr.Dataset({"t": (("time", "lat", "lon"), t), "rain": (("time", "lat"), rain.astype("f4")),
                     "bad": (("time", "lat"), bad), "dry": (("lat",), np.zeros(Y)),
                     "lon_weight": (("lon",), np.ones(X))},
                    {"time": pd.date_range("2001-01-01", periods=T, freq="D")})
    path = tmp_path_factory.mktemp("weights") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, encoding={"t": {"chunks": (5, 4, 8)}})
    return path, ds


def weights_of(n, seed=0):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random(n) < 0.2, 0, rng.random(n) ** 4 * 10.0 ** rng.integers(-3, 4, n))
    weights[n // 2] = weights[:n].sum() / 3
    return weights


def epoch_of(run, epoch, *more):
    return [s for b in range(run.plan()["batches"])
            for s in run.provenance(b, "--epoch", epoch, *more)["samples"]]


def check_counts(samples, weights, draws):
    """Each sample as often as its share of the draws, rounded down or up."""
    count = collections.Counter(samples)
    exact = [fractions.Fraction(float(w)) for w in weights]
    total = sum(exact)
    for s, weight in enumerate(exact):
        share = weight * draws / total
        assert math.floor(share) <= count[s] <= math.ceil(share), (s, float(share), count[s])


def expected_order(view, weights, draws, epoch, starts, chunks):
    names, order = page(), view.get("order", {})
    seed, shuffle = order.get("seed", 0), order.get("shuffle", "none")
    drawn = names["drawn"](list(map(float, weights)), draws, seed, epoch)
    positions = range(draws)
    size = view["batch"] if isinstance(view["batch"], int) else view["batch"]["size"]
    chunk_of = lambda start: [s // c for s, c in zip(start, chunks)]  # noqa: E731
    if order.get("home"):
        count = [-(-length // c) for length, c in zip((T, Y), chunks)]
        return [drawn[j]
                for j in names["drawn_home"]([starts[s] for s in drawn], chunk_of, count, seed,
                                             epoch, order["buffer"], size, order["lanes"])]
    if order.get("lanes", 1) > 1:
        positions = [names["unlaned"](i, draws, size, order["lanes"]) for i in positions]
    if shuffle == "none":
        js = list(positions)
    elif shuffle == "global":
        js = [names["permute"](i, draws, seed, epoch, 4) for i in positions]
    else:
        rows = names["listed"]([starts[s] for s in drawn], chunk_of, seed, epoch, order["buffer"])
        js = [rows[i] for i in positions]
    return [drawn[j] for j in js]


ORDERS = [{}, {"shuffle": "global", "seed": 7}, {"shuffle": "global", "seed": 2**60, "lanes": 3},
          {"shuffle": "block", "seed": 3, "buffer": 2},
          {"shuffle": "block", "seed": 3, "buffer": 100, "lanes": 2},
          {"shuffle": "block", "seed": 3, "buffer": 2, "lanes": 2, "home": True},
          {"shuffle": "block", "seed": 2**60, "buffer": 1, "lanes": 3, "home": True}]


@pytest.mark.parametrize("order", ORDERS, ids=json.dumps)
@pytest.mark.parametrize("draws", [None, 17, 301])
@pytest.mark.parametrize("epoch", [0, 4])
def test_of_a_grid(batchfs, store, tmp_path, epoch, draws, order):
    path, ds = store
    view = {"variables": ["t"],
            "window": {"time": {"size": 2, "stride": 1}, "lat": {"size": 3, "stride": 2}},
            "batch": 10, "order": order, "samples": {"weights": "w.npy"}}
    starts = [list(at.values()) for at in brute_force.windows(ds, view)]
    weights = weights_of(len(starts))
    np.save(tmp_path / "w.npy", weights)
    if draws is not None:
        view["epochs"] = {"samples": draws}
    run = brute_force.View(batchfs, tmp_path, path, view)
    assert (run.plan()["samples"] == len(starts)
            and run.plan()["batches"] == math.ceil((draws or len(starts)) / 10))
    samples = epoch_of(run, epoch)
    assert samples == expected_order(view, weights, draws or len(starts), epoch, starts, (5, 4))
    check_counts(samples, weights, draws or len(starts))
    assert run.provenance(0, "--epoch", epoch)["starts"] == [starts[s] for s in samples[:10]]


@pytest.mark.parametrize("order", ORDERS, ids=json.dumps)
def test_of_a_list(batchfs, store, tmp_path, order):
    path, ds = store
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, T - 1, 70), rng.integers(0, Y - 2, 70)])
    weights = weights_of(70, 5)
    pd.DataFrame({"time": ds.time.values[rows[:, 0]], "lat": [f"#{y}" for y in rows[:, 1]],
                  "w": [repr(float(w)) for w in weights],
                  "class": np.arange(70)}).to_csv(tmp_path / "rows.csv", index=False)
    view = {"variables": ["t"], "window": {"time": 2, "lat": 3},
            "batch": 9, "order": order, "epochs": {"samples": 111},
            "samples": {"list": "rows.csv", "weights": {"column": "w"}, "labels": ["class", "w"]}}
    run = brute_force.View(batchfs, tmp_path, path, view)
    samples = epoch_of(run, 2)
    assert samples == expected_order(view, weights, 111, 2, rows.tolist(), (5, 4))
    check_counts(samples, weights, 111)
    np.testing.assert_array_equal(run.tensor("class", 3, "--epoch", 2), samples[27:36])
    np.testing.assert_array_equal(run.tensor("w", 3, "--epoch", 2), weights[samples[27:36]])
    np.save(tmp_path / "w.npy", weights.astype("f8"))
    view["samples"] = {"list": "rows.csv", "weights": {"file": "w.npy"}}
    assert epoch_of(brute_force.View(batchfs, tmp_path, path, view), 2) == samples


@pytest.mark.parametrize("more", [
    {}, {"missing": {"nan": "skip"}}, {"samples": {"where": {"time": {"weekday": [0, 1, 2]}}}},
    {"samples": {"mask": {"variable": "rain", "above": 3, "fraction": [0.3, 1]}}}], ids=json.dumps)
def test_a_variable(batchfs, store, tmp_path, more):
    """The value at the window's start, of the samples that are left."""
    path, ds = store
    view = {"variables": ["t"], "window": {"time": {"size": 2, "stride": 1}, "lat": 3}, "batch": 8,
            "order": {"shuffle": "global", "seed": 1}, **more}
    run = brute_force.View(batchfs, tmp_path, path, view | {"order": {}})
    starts = [row for b in range(run.plan()["batches"]) for row in run.provenance(b)["starts"]]
    view["samples"] = {**more.get("samples", {}), "weights": {"variable": "rain"}}
    weights = [float(ds.rain.values[t, y]) for t, y in starts]
    samples = epoch_of(brute_force.View(batchfs, tmp_path, path, view), 1)
    assert (samples == expected_order(view, weights, len(starts), 1, starts, (5, 4))
            and len(starts) > 20)
    check_counts(samples, weights, len(starts))


def test_lanes_keep_their_chunks(batchfs, tmp_path):
    """With "home" a lane needs few chunks in later epochs that it did not need before; without,
    nearly as many as ever."""
    ds = xr.Dataset({"t": (("time",), np.zeros(4000, "f4")),
                     "w": (("time",), np.random.default_rng(2).random(4000) ** 3)})
    ds.to_zarr(tmp_path / "s.zarr", zarr_format=3,
               encoding={"t": {"chunks": (10,)}, "w": {"chunks": (4000,)}})
    new = {}
    for home in (True, False):
        view = {"variables": ["t"], "window": {"time": 1}, "batch": 50,
                "samples": {"weights": {"variable": "w"}},
                "order": {"shuffle": "block", "lanes": 4, "home": home, "buffer": 4}}
        run = brute_force.View(batchfs, tmp_path, tmp_path / "s.zarr", view)
        chunks = [[{start[0] // 10 for b in range(lane, 80, 4)
                    for start in run.provenance(b, "--epoch", epoch)["starts"]}
                   for lane in range(4)] for epoch in (0, 3)]
        new[home] = [len(later - first) / len(later) for first, later in zip(*chunks)]
    assert max(new[True]) < 0.1 < 0.5 < min(new[False])


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
def test_ranks_and_another_world(batchfs, store, tmp_path, remainder):
    path, _ = store
    view = {"variables": ["t"], "window": {"time": 1, "lat": 5},
            "batch": {"size": 4, "remainder": remainder}, "epochs": {"samples": 90},
            "order": {"shuffle": "block"}, "samples": {"weights": {"variable": "rain"}}}
    run = brute_force.View(batchfs, tmp_path, path, view)
    count = run.plan()["batches"]
    assert count == (22 if remainder == "drop" else 23)
    batches = [run.provenance(b, "--epoch", 3)["samples"] for b in range(count)]
    assert len(batches[-1]) == {"keep": 2, "drop": 4, "pad": 4}[remainder]
    for world in (2, 5):
        for rank in range(world):
            assert run.provenance(2, "--rank", rank, "--world", world, "--epoch",
                                  3)["samples"] == batches[2 * world + rank]


def test_equal_weights_draw_each_sample_once(batchfs, store, tmp_path):
    path, _ = store
    np.save(tmp_path / "w.npy", np.full(T * 2, 0.1, "f4"))
    view = {"variables": ["t"], "window": {"time": 1, "lat": 5}, "batch": 48,
            "order": {"shuffle": "global"}, "samples": {"weights": "w.npy"}}
    run = brute_force.View(batchfs, tmp_path, path, view)
    epochs = [epoch_of(run, e) for e in range(4)]
    assert all(sorted(e) == list(range(48)) for e in epochs) and epochs[0] != epochs[1]


BASE = {"variables": ["t"], "window": {"time": 1, "lat": 5}}


@pytest.mark.parametrize("array, message", [
    (np.where(np.arange(48) % 20 == 7, np.nan, 1.0),
     "samples.weights: sample 7 has the weight nan; a weight is a number from 0 on, and 3 of "
     "48 weights are not"),
    (np.where(np.arange(48) == 47, -0.5, 1.0),
     "samples.weights: sample 47 has the weight -0.5; a weight is a number from 0 on, and 1 "
     "of 48 weights is not"),
    (np.where(np.arange(48) == 0, np.inf, 1.0), "samples.weights: sample 0 has the weight inf"),
    (np.zeros(48), "samples.weights: no sample is left: each of 48 weights is 0"),
    (np.full(48, 1e308), "samples.weights: the sum of the weights is beyond what a float64 holds"),
    (np.ones(47),
     "samples.weights: the array has 1 dimension and 47 numbers; there are 48 samples"),
    (np.ones((48, 1)), "samples.weights: the array has 2 dimensions and 48 numbers"),
    (np.array(["1"] * 48), "its elements are '<U1'; save numbers"),
])
def test_mistakes_of_files(batchfs, store, tmp_path, array, message):
    path, _ = store
    np.save(tmp_path / "w.npy", array)
    assert message in brute_force.View(batchfs, tmp_path, path,
                                       BASE | {"samples": {"weights": "w.npy"}}).refusal()


@pytest.mark.parametrize("weights, more, message", [
    ({"variable": "bad"}, {"window": {"time": 1, "lat": 1}},
     "samples.weights: sample 32 has the weight nan; a weight is a number from 0 on, and 2 of "
     "240 weights are not"),
    ({"variable": "dry"}, {}, "samples.weights: no sample is left: each of 48 weights is 0"),
    ({"variable": "lon_weight"}, {}, "samples.weights.variable: 'lon_weight' has the dimension "
                                     "'lon', which is none of \"window\": time, lat"),
    ({"variable": "rein"}, {},
     "samples.weights.variable: no variable 'rein', did you mean 'rain'?"),
    ({"column": "w"}, {}, 'samples.weights.column: columns are those of a .csv file in "list"'),
    ({}, {}, 'samples.weights: name one of "column", "variable" and "file"'),
    ({"column": "w", "variable": "rain"}, {}, "samples.weights: name one of"),
    ("w.csv", {}, "samples.weights: 'w.csv' is not a .npy file"),
    ("w.npy", {"missing": {"nan": "skip"}}, "samples.weights: a file cannot know which samples"),
    ({"variable": "rain"}, {"order": {"shuffle": "block"}, "epochs": {"samples": 2**40}},
     'order.shuffle: "block" with "weights" takes at most 268,435,456 samples'),
    (3, {}, "samples.weights: "),
])
def test_mistakes(batchfs, store, tmp_path, weights, more, message):
    path, _ = store
    np.save(tmp_path / "w.npy", np.ones(48))
    assert message in brute_force.View(batchfs, tmp_path, path,
                                       BASE | more | {"samples": {"weights": weights}}).refusal()
