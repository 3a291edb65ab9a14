"""Coarsened tensors are those of xarray.coarsen(boundary="exact") in float64, cast: within one unit
in the last place."""

import json

import numpy as np
import pytest
import xarray as xr
from view_commands import batch, refused

T, Y, X = 12, 8, 12
TIMES = np.datetime64("2020-02-28T00", "ns") + np.arange(T) * np.timedelta64(6, "h")
LATITUDES, LONGITUDES = np.linspace(87.5, -87.5, Y), np.arange(X) * 30.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    t2m = rng.normal(280, 20, (T, Y, X)).astype("f4")
    t2m[rng.random(t2m.shape) < 0.2] = np.nan
    t2m[3, :4] = np.nan  # whole blocks
    ds = xr.Dataset(
        {"t2m": (("time", "latitude", "longitude"), t2m, {"units": "K"}),
         "t": (("time", "level", "latitude", "longitude"),
               rng.normal(280, 20, (T, 2, Y, X)).astype("f4")),
         "f8": (("time", "latitude", "longitude"), rng.normal(0, 1, (T, Y, X))),
         "lsm": (("latitude", "longitude"), rng.random((Y, X)).astype("f4")),
         "count": (("time", "latitude", "longitude"), rng.integers(0, 999, (T, Y, X), dtype="i4")),
         "when": (("time", "latitude", "longitude"), np.full((T, Y, X), TIMES[0]))},
        {"time": TIMES, "level": [500, 850],
         "latitude": ("latitude", LATITUDES, {"units": "degrees_north"}),
         "longitude": ("longitude", LONGITUDES.astype("f4"), {"units": "degrees_east"})})
    path = tmp_path_factory.mktemp("coarsen") / "s.zarr"
    ds.to_zarr(path, zarr_format=3,
               encoding={name: {"chunks": (4, 4, 9)} for name in ("t2m", "f8")})
    return path


def near(ours, expected, dtype="float32"):
    """At most one unit in the last place from the value in float64, cast; NaN where it is NaN."""
    expected = np.asarray(expected).astype(dtype)
    assert ours.shape == expected.shape and ours.dtype == dtype
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))
    if dtype == "float64":  # sums of another order, which may cancel
        return np.testing.assert_allclose(ours, expected, rtol=1e-13, atol=1e-14)
    unit = np.spacing(np.maximum(np.abs(expected), np.finfo(dtype).tiny))
    assert np.all((np.abs(ours - expected) <= unit) | np.isnan(ours))


def in_float64(store):
    ds = xr.open_zarr(store).load()
    return ds.drop_vars("when").astype("f8")


def coarse(array, method, **sizes):
    return getattr(array.coarsen(sizes, boundary="exact"), method)()


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:All-NaN slice encountered")
@pytest.mark.parametrize("method", ["mean", "sum", "min", "max"])
def test_a_method_is_xarrays(batchfs, tmp_path, store, method):
    ds = in_float64(store)
    sizes = {"latitude": 2, "longitude": 3}
    how = {dim: size if method == "mean" else {"size": size, "how": method}
           for dim, size in sizes.items()}
    view = {"window": {"time": 1}, "batch": 5,
            "tensors": {"x": {"variables": ["t2m"], "coarsen": how},
                        "d": {"variables": ["f8"], "coarsen": how}}}
    for number in range(3):
        at = slice(5 * number, 5 * number + 5)
        near(batch(batchfs, tmp_path, store, view, number)[:, 0],
             coarse(ds.t2m, method, **sizes)[at])
        near(batch(batchfs, tmp_path, store, view, number, "d")[:, 0],
             coarse(ds.f8, method, **sizes)[at], "float64")


def test_windows_that_wrap_and_are_shuffled(batchfs, tmp_path, store):
    ds = in_float64(store)
    view = {"window": {"time": {"size": 2, "stride": 1}, "latitude": {"size": 4, "stride": 2},
                       "longitude": {"size": 6, "stride": 5, "wrap": True}},
            "batch": 16, "order": {"shuffle": "global", "seed": 3},
            "tensors": {"x": {"variables": ["t2m"], "coarsen": {"longitude": 3, "latitude": 4},
                              "dims": ["longitude", "latitude", "time"]}}}
    for number in (0, 4):
        ours = batch(batchfs, tmp_path, store, view, number)
        info = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--batch",
                                        number, "--format", "json"))
        for row, (time, lat, lon) in enumerate(info["starts"]):
            patch = ds.t2m[time:time + 2, lat:lat + 4].isel(
                longitude=np.arange(lon, lon + 6) % X).drop_vars("longitude")
            near(ours[row], coarse(patch, "mean", latitude=4,
                                   longitude=3).transpose("longitude", "latitude", "time"))


def test_sums_of_times_of_means_of_places(batchfs, tmp_path, store):
    """Steps of another method are a reduction of their own, in the order of the file."""
    ds = in_float64(store)
    view = {"window": {"time": {"size": 6, "stride": 2}}, "batch": 3, "tensors": {
        "x": {"variables": ["f8"], "offsets": {"time": [0, 1]},
              "coarsen": {"latitude": 2, "longitude": 2, "time": {"size": 3, "how": "sum"}}},
        "y": {"variables": ["f8"], "coarsen": {"time": {"size": 6, "how": "max"},
                                               "longitude": {"size": 2, "how": "sum"}}}}}
    ours = batch(batchfs, tmp_path, store, view)
    assert ours.shape == (3, 4, 4, 6)
    places = coarse(ds.f8, "mean", latitude=2, longitude=2)
    for row in range(3):
        for entry, start in enumerate((2 * row, 2 * row + 1)):
            near(ours[row, 2 * entry:2 * entry + 2], coarse(places[start:start + 6], "sum", time=3),
                 "float64")
    ours = batch(batchfs, tmp_path, store, view, tensor="y")
    for row in range(3):
        near(ours[row],
             coarse(coarse(ds.f8[2 * row:2 * row + 6], "max", time=6), "sum", longitude=2),
             "float64")


def test_stacks_of_levels_fields_and_made_channels(batchfs, tmp_path, store):
    ds = in_float64(store)
    made = [{"make": "cos_latitude"}, {"make": "product", "of": ["f8", "lsm"]}]
    view = {"window": {"time": 1}, "batch": 4, "dtype": "float32", "tensors": {
        "x": {"variables": [made[0], "t", "lsm", "count", made[1]], "stack": "channel",
              "broadcast": True, "coarsen": {"latitude": 4, "longitude": 2}}}}
    ours = batch(batchfs, tmp_path, store, view, 1)[:, :, 0]
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json",
                                    "--json"))["tensors"][0]
    assert plan["channels"] == ["cos_latitude", "t_500", "t_850", "lsm", "count", "product"]
    assert plan["shape"] == [4, 6, 1, 2, 6] and plan["coarsen"]["latitude"] == {
        "size": 4, "how": "mean"}
    at, sizes = slice(4, 8), {"latitude": 4, "longitude": 2}
    near(ours[:, 0],
         np.broadcast_to(np.cos(np.deg2rad(LATITUDES)).reshape(2, 4).mean(1)[:, None], (4, 2, 6)))
    near(ours[:, 1:3], coarse(ds.t, "mean", **sizes)[at])
    near(ours[:, 3], np.broadcast_to(coarse(ds.lsm, "mean", **sizes), (4, 2, 6)))
    near(ours[:, 4], coarse(ds["count"], "mean", **sizes)[at])
    near(ours[:, 5], coarse(ds.f8 * ds.lsm, "mean", **sizes)[at])


def test_integers_are_float64(batchfs, tmp_path, store):
    ds = in_float64(store)
    view = {"window": {"time": 1}, "batch": T, "tensors": {
        "x": {"variables": ["count"], "coarsen": {"latitude": {"size": 8, "how": "sum"}}}}}
    np.testing.assert_array_equal(batch(batchfs, tmp_path, store, view)[:, 0],
                                  coarse(ds["count"], "sum", latitude=8))


def test_normalize_and_fill_come_after(batchfs, tmp_path, store):
    ds = in_float64(store)
    view = {"window": {"time": 1}, "batch": T, "missing": {"nan": "fill", "value": 7},
            "normalize": {"method": "zscore", "statistics": {"t2m": {"mean": 280, "std": 20}, "t": {
                "dims": ["level"], "mean": [250, 300], "std": [2, 4]}}},
            "tensors": {"x": {"variables": ["t2m"], "coarsen": {"latitude": 2, "longitude": 2}},
                        "y": {"variables": ["t"],
                              "coarsen": {"latitude": {"size": 2, "how": "max"}}}}}
    expected = ((coarse(ds.t2m, "mean", latitude=2, longitude=2) - 280) / 20).fillna(7)
    near(batch(batchfs, tmp_path, store, view)[:, 0], expected)
    levels = coarse(ds.t, "max", latitude=2).values
    near(batch(batchfs, tmp_path, store, view, tensor="y")[:, 0],
         (levels - np.array([250, 300])[:, None, None]) / np.array([2, 4])[:, None, None])
    view["normalize"]["statistics"]["t"] = {"dims": ["latitude"], "mean": [0] * Y, "std": [1] * Y}
    assert "along 'latitude'" in refused(batchfs, tmp_path, store, view)


def test_skip_looks_at_the_stored_values(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "missing": {"nan": "skip"},
            "tensors": {"x": {"variables": ["t2m"], "coarsen": {"latitude": 8}}}}
    assert "each of the 12 windows holds a NaN" in refused(batchfs, tmp_path, store, view)
    view["missing"] = {"nan": "skip", "at_most": 0.3}
    (tmp_path / "view.json").write_text(json.dumps(view))
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json", "--json"))
    assert plan["samples"] == T - 1  # half of the fourth is missing


@pytest.mark.parametrize("change, words", [
    ({"coarsen": {"latitude": 3}},
     "tensors.x.coarsen.latitude: 8 positions selected are not a whole number of blocks of 3"),
    ({"coarsen": {"time": 2}},
     "tensors.x.coarsen.time: 1 positions of a window are not a whole number of blocks of 2"),
    ({"coarsen": {"lattitude": 2}},
     "no dimension 'lattitude' of variables, did you mean 'latitude'?"),
    ({"coarsen": {"latitude": {"size": 2, "how": "median"}}}, "there is no method 'median'"),
    ({"coarsen": {"latitude": 0}}, "coarsen.latitude"),
    ({"coarsen": {}}, "name at least one dimension"),
    ({"coarsen": {"level": 2}, "variables": ["t", "t2m"], "stack": "c"}, "no dimension 'level'"),
    ({"variables": ["when"], "coarsen": {"latitude": 2}}, "only numbers are coarsened"),
    ({"variables": ["f8", "lsm"], "stack": "c", "broadcast": True,
      "coarsen": {"time": {"size": 1, "how": "sum"}}}, "'lsm' lacks the dimension 'time'"),
])
def test_refused(batchfs, tmp_path, store, change, words):
    view = {"window": {"time": 1}, "dtype": "float64",
            "tensors": {"x": {"variables": ["f8"]} | change}}
    assert words in refused(batchfs, tmp_path, store, view)


def test_a_mixture_of_coarsened_views(batchfs, tmp_path, store):
    ds = in_float64(store)
    for name, offset in (("a", 0), ("b", 6)):
        (tmp_path / f"{name}.json").write_text(json.dumps(
            {"window": {"time": 1},
             "select": {"time": {"from": f"#{offset}", "to": f"#{offset + 6}"}},
             "tensors": {"x": {"variables": ["t2m", {"make": "wind_speed", "of": ["f8", "t2m"]},
                                             {"make": "cos_latitude"}],
                               "stack": "c", "coarsen": {"latitude": 2}}}, "dtype": "float32"}))
    mix = {"mix": {"a": {"view": "a.json"}, "b": {"view": "b.json"}}, "batch": 12,
           "order": {"seed": 1}}
    (tmp_path / "view.json").write_text(json.dumps(mix))
    ours = batch(batchfs, tmp_path, store, mix)
    info = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--format",
                                    "json"))
    speed = np.hypot(ds.f8, ds.t2m)
    times = [int(np.searchsorted(TIMES, np.datetime64(row)))
             for row in info["labels"]["time"]] if "labels" in info else None
    expected = {0: coarse(ds.t2m, "mean", latitude=2), 1: coarse(speed, "mean", latitude=2)}
    if times is None:  # by value
        times = [int(
            np.argmin([np.nansum(np.abs(ours[row, 0, 0] - expected[0][t].values))
                       + 1e9 * np.mean(np.isnan(ours[row, 0, 0]) != np.isnan(expected[0][t].values))
                       for t in range(T)])) for row in range(12)]
    assert sorted(times) == list(range(12))
    for channel, values in expected.items():
        near(ours[:, channel, 0], values.values[times])
    near(ours[:, 2, 0],
         np.broadcast_to(np.cos(np.deg2rad(LATITUDES)).reshape(4, 2).mean(1)[:, None], (12, 4, X)))
