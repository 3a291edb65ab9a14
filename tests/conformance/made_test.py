"""Channels made on the fly are numpy's formulas in float64, cast: to one unit in the last place of
float32."""

import json

import numpy as np
import pytest
import xarray as xr
from view_commands import batch, refused

T, Y, X = 12, 7, 9
TIMES = np.datetime64("2020-02-28T00", "ns") + np.arange(T) * np.timedelta64(6, "h")
LATITUDES, LONGITUDES = np.linspace(90, -90, Y), np.arange(X) * 40.0
TURN = 2 * np.pi


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    ds = xr.Dataset({"t2m": (("time", "latitude", "longitude"),
                             rng.normal(280, 20, (T, Y, X)).astype("f4")),
                     "t": (("time", "level", "latitude", "longitude"),
                           rng.normal(280, 20, (T, 2, Y, X)).astype("f4")),
                     "lsm": (("latitude", "longitude"), rng.random((Y, X)).astype("f4")),
                     "count": (("time", "latitude", "longitude"), rng.integers(0, 9, (T, Y, X)))},
                    {"time": TIMES, "level": [500, 850],
                     "latitude": ("latitude", LATITUDES, {"units": "degrees_north"}),
                     "longitude": ("longitude", LONGITUDES, {"units": "degrees_east"})})
    path = tmp_path_factory.mktemp("made") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, encoding={"t2m": {"chunks": (4, 4, 9)}})
    return path


def make(*names):
    return [{"make": name} if isinstance(name, str) else name for name in names]


def near(ours, expected):
    """At most one unit in the last place away from the formula's value, cast."""
    expected = np.asarray(expected, "f8")
    assert ours.shape == expected.shape and ours.dtype == "float32"
    unit = np.spacing(np.maximum(np.abs(expected), 1e-7).astype("f4")).astype("f8")
    assert np.all(np.abs(ours.astype("f8") - expected.astype("f4")) <= unit)


# ---- the formulas, over time x latitude x longitude ----

def field(values):
    return np.broadcast_to(values, (T, Y, X))


def seconds(times):
    return (times - np.datetime64(0, "s")).astype("timedelta64[ns]").astype("i8") / 1e9


def sun(times):
    """The declination and the hour angle at Greenwich [radians]: the Astronomical Almanac."""
    n = (seconds(times) - 946728000) / 86400
    g = np.deg2rad(357.528 + 0.9856003 * n)
    ecliptic = np.deg2rad(280.460 + 0.9856474 * n + 1.915 * np.sin(g) + 0.020 * np.sin(2 * g))
    tilt = np.deg2rad(23.439 - 0.0000004 * n)
    ascension = np.arctan2(np.cos(tilt) * np.sin(ecliptic), np.cos(ecliptic))
    declination = np.arcsin(np.sin(tilt) * np.sin(ecliptic))
    return declination, np.deg2rad(280.46061837 + 360.98564736629 * n) - ascension


def formulas(times=TIMES):
    lat, lon = np.deg2rad(LATITUDES)[:, None], np.deg2rad(LONGITUDES)
    day = times.astype("datetime64[D]")
    of_day = ((times - day) / np.timedelta64(1, "D"))[:, None, None]
    julian = ((times - times.astype("datetime64[Y]")) / np.timedelta64(1, "D"))[:, None, None]
    of_year = np.mod(seconds(times) / 86400 / 365.24219, 1.0)[:, None, None]
    local = np.mod(of_day + LONGITUDES / 360, 1.0)

    def zenith(at):
        declination, hour = (a[:, None, None] for a in sun(at))
        return (np.sin(declination) * np.sin(lat)
                + np.cos(declination) * np.cos(lat) * np.cos(hour + lon))

    def radiation(at):
        number = (at.astype("datetime64[D]")
                  - at.astype("datetime64[Y]")).astype("i8")[:, None, None] + 1
        return 1361 * (1 + 0.033 * np.cos(TURN * number / 365)) * np.maximum(zenith(at), 0)

    nodes, weights = np.polynomial.legendre.leggauss(10)
    hourly = sum(w / 2 * radiation(times + np.timedelta64(round(0.5 * (n - 1) * 3600e9), "ns"))
                 for n, w in zip(nodes, weights))
    return {name: field(values) for name, values in {
        "sin_latitude": np.sin(lat), "cos_latitude": np.cos(lat), "sin_longitude": np.sin(lon),
        "cos_longitude": np.cos(lon), "sin_julian_day": np.sin(TURN * julian / 365.25),
        "cos_julian_day": np.cos(TURN * julian / 365.25), "sin_local_time": np.sin(TURN * local),
        "cos_local_time": np.cos(TURN * local),
        "year_progress": of_year, "sin_year_progress": np.sin(TURN * of_year),
        "cos_year_progress": np.cos(TURN * of_year), "day_progress": local,
        "sin_day_progress": np.sin(TURN * local), "cos_day_progress": np.cos(TURN * local),
        "year_progress_sin": np.sin(TURN * of_year), "day_progress_cos": np.cos(TURN * local),
        "cos_zenith": zenith(times), "insolation": np.maximum(zenith(times), 0),
        "toa_radiation": radiation(times), "hourly": hourly, "constant": np.array(2.5)}.items()}


MADE = ({name: {"make": name} for name in formulas()}
        | {"hourly": {"make": "toa_radiation", "mean": "1h", "name": "hourly"}, "constant": {
            "make": "constant", "value": 2.5}})


@pytest.mark.parametrize("name", MADE)
def test_a_channel_is_its_formula(batchfs, tmp_path, store, name):
    view = {"window": {"time": 1}, "batch": T,
            "tensors": {"x": {"variables": ["t2m", MADE[name]], "stack": "channel"}}}
    ours = batch(batchfs, tmp_path, store, view)
    np.testing.assert_array_equal(ours[:, 0, 0], xr.open_zarr(store).t2m.values)
    near(ours[:, 1, 0], formulas()[name])


def test_all_channels_in_one_tensor_in_any_order_of_dims(batchfs, tmp_path, store):
    names = list(MADE)
    for dims in (["time", "channel", "latitude", "longitude"],
                 ["longitude", "channel", "time", "latitude"],
                 ["latitude", "longitude", "time", "channel"]):
        view = {"window": {"time": {"size": 3, "stride": 2}}, "batch": 3,
                "order": {"shuffle": "global", "seed": 3}, "tensors": {
                    "x": {"variables": [*MADE.values(), "t2m"], "stack": "channel", "dims": dims}}}
        ours = batch(batchfs, tmp_path, store, view, 1)
        info = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--batch",
                                        1, "--format", "json"))
        for row, start in enumerate(info["starts"]):
            sample = ours[row].transpose([dims.index(d)
                                          for d in ("channel", "time", "latitude", "longitude")])
            for channel, name in enumerate(names):
                near(sample[channel], formulas()[name][start[0]:start[0] + 3])
            np.testing.assert_array_equal(sample[-1],
                                          xr.open_zarr(store).t2m.values[start[0]:start[0] + 3])


def test_levels_are_stacked_beside_them(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "batch": T, "tensors": {
        "x": {"variables": [{"make": "cos_julian_day"}, "t", {"make": "cos_latitude"}],
              "stack": "channel"}}}
    ours = batch(batchfs, tmp_path, store, view)
    assert ours.shape == (T, 4, 1, Y, X)
    near(ours[:, 0, 0], formulas()["cos_julian_day"])
    np.testing.assert_array_equal(ours[:, 1:3, 0], xr.open_zarr(store).t.values)
    near(ours[:, 3, 0], formulas()["cos_latitude"])
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json", "--json"))
    assert plan["tensors"][0]["channels"] == ["cos_julian_day", "t_500", "t_850", "cos_latitude"]
    assert [v.get("make")
            for v in plan["tensors"][0]["variables"]] == ["cos_julian_day", None, "cos_latitude"]


def test_times_are_the_labels_of_the_offsets(batchfs, tmp_path, store):
    made = make("sin_local_time", "cos_zenith")
    for offsets in ([-1, 2], ["-6h", "12h"]):
        view = {"window": {"time": {"size": 1, "stride": 1}}, "batch": 4, "tensors": {
            "x": {"variables": ["t2m", *made], "stack": "channel", "offsets": {"time": offsets},
                  "dims": ["channel", "time", "latitude", "longitude"]}}}
        ours = batch(batchfs, tmp_path, store, view)
        for row in range(4):
            at = [row, row + 3]
            near(ours[row, 1], formulas()["sin_local_time"][at])
            near(ours[row, 2], formulas()["cos_zenith"][at])


def test_a_tensor_of_made_channels_alone(batchfs, tmp_path, store):
    view = {"window": {"time": {"size": 1, "stride": 1}}, "batch": 4,
            "tensors": {"x": {"variables": ["t2m"]},
                        "f": {"variables": make("year_progress", "day_progress"), "stack": "f",
                              "offsets": {"time": [1, 2]}}}}
    ours = batch(batchfs, tmp_path, store, view, tensor="f")
    assert ours.shape == (4, 2, 2, X)
    for row in range(4):
        near(ours[row, 0], formulas()["year_progress"][row + 1:row + 3, 0])
        near(ours[row, 1], formulas()["day_progress"][row + 1:row + 3, 0])
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json", "--json"))
    assert plan["samples"] == T - 2
    view["tensors"]["f"]["dims"] = ["f", "time", "latitude", "longitude"]
    ours = batch(batchfs, tmp_path, store, view, tensor="f")
    near(ours[1, 1], formulas()["day_progress"][2:4])


def test_patches_that_wrap_and_are_padded(batchfs, tmp_path, store):
    view = {"window": {"time": 1, "latitude": {"size": 4, "edge": "pad", "pad_value": -7},
                       "longitude": {"size": 5, "stride": 4, "wrap": True}},
            "batch": 6, "select": {"latitude": {"from": 60, "to": -90}}, "tensors": {
                "x": {"variables": ["t2m", *make("insolation", "cos_latitude", "sin_longitude")],
                      "stack": "channel"}}}
    ours = batch(batchfs, tmp_path, store, view, 1)
    info = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--batch", 1,
                                    "--format", "json"))
    for row, (time, lat, lon) in enumerate(info["starts"]):
        for channel, name in enumerate(("insolation", "cos_latitude", "sin_longitude"), 1):
            whole = np.full((8, X), -7.0)
            whole[:6] = formulas()[name][time, 1:]
            near(ours[row, channel, 0], whole[lat:lat + 4][:, np.arange(lon, lon + 5) % X])


def test_partial_windows(batchfs, tmp_path, store):
    view = {"window": {"time": {"size": 5, "edge": "partial"}},
            "tensors": {"x": {"variables": ["t2m", *make("cos_zenith")], "stack": "c"}}}
    ours = batch(batchfs, tmp_path, store, view, 2)
    assert ours.shape == (1, 2, 2, Y, X)
    near(ours[0, 1], formulas()["cos_zenith"][10:])
    view["tensors"]["x"]["variables"] = [{"make": "sum", "of": ["t2m", "lsm"]}]
    assert "channels of variables, as 'sum', do not go with \"edge\"" in refused(
        batchfs, tmp_path, store, view)


def test_check_passes_them_over(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "missing": {"nan": "skip"}, "tensors": {
        "x": {"variables": ["t2m", *make("cos_zenith"), {"make": "sum", "of": ["t2m", "lsm"]}],
              "stack": "c"}}}
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view))
    batchfs.bytes("check", store, "--view", file)


# ---- their statistics ----

def numbers_of(batchfs, folder, store, view, *options):
    (folder / "view.json").write_text(json.dumps(view))
    return json.loads(batchfs.bytes("statistics", store, "--view", folder / "view.json", "--json",
                                    *options))["variables"]


def same_numbers(entry, values):
    values = np.asarray(values, "f8")
    wanted = {"mean": values.mean(), "std": values.std(), "min": values.min(), "max": values.max(),
              "median": np.median(values), "p25": np.quantile(values, 0.25),
              "p75": np.quantile(values, 0.75)}
    for key, number in wanted.items():
        np.testing.assert_allclose(entry[key], number, rtol=1e-9, atol=1e-9 * np.abs(values).max(),
                                   err_msg=key)
    assert entry["count"] == values.size and entry["nan"] == 0


def test_statistics_of_made_channels_are_numpys(batchfs, tmp_path, store):
    ds = xr.open_zarr(store).load()
    channels = [*make("toa_radiation", "cos_zenith", "day_progress", "cos_latitude"),
                {"make": "constant", "value": 2}, {"make": "wind_speed", "of": ["t2m", "lsm"]},
                {"make": "ratio", "of": ["count", "t2m"]}]
    view = {"window": {"time": {"size": 2, "stride": 1}},
            "tensors": {"x": {"variables": ["t2m", *channels], "stack": "c"}}}
    numbers = numbers_of(batchfs, tmp_path, store, view, "--quantiles")
    assert list(numbers) == ["t2m", "lsm", "count", "toa_radiation", "cos_zenith", "day_progress",
                             "cos_latitude", "wind_speed", "ratio"]
    t2m, lsm, count = (ds[name].values.astype("f8") for name in ("t2m", "lsm", "count"))
    for name in ("toa_radiation", "cos_zenith"):
        same_numbers(numbers[name], formulas()[name])
    same_numbers(numbers["day_progress"], formulas()["day_progress"][:, 0])
    same_numbers(numbers["cos_latitude"], np.cos(np.deg2rad(LATITUDES)))
    same_numbers(numbers["wind_speed"], np.hypot(t2m, lsm))
    same_numbers(numbers["ratio"], count / t2m)
    steps = np.diff(np.hypot(t2m, lsm), axis=0)
    np.testing.assert_allclose(numbers["wind_speed"]["tendency"]["std"], steps.std(), rtol=1e-10)


def test_statistics_of_made_channels_do_not_depend_on_threads_and_tasks(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "tensors": {
        "x": {"variables": [{"make": "insolation"}, {"make": "product", "of": ["t2m", "lsm"]},
                            {"make": "sum", "of": ["t", "lsm"]}], "stack": "c", "broadcast": True}}}
    one = numbers_of(batchfs, tmp_path, store, view, "--quantiles", "--threads", 1)
    assert "dims" not in one["sum"] and one["t"]["dims"] == ["level"]
    assert numbers_of(batchfs, tmp_path, store, view, "--quantiles", "--threads", 3) == one
    for i in range(3):
        batchfs.bytes("statistics", store, "--view", tmp_path / "view.json", "--quantiles", "--out",
                      tmp_path / "parts", "--task", i, "--tasks", 3)
    assert json.loads(batchfs.bytes("statistics", "--merge", tmp_path / "parts",
                                    "--json"))["variables"] == one
    assert numbers_of(batchfs, tmp_path, store, view, "--per", "level")["sum"]["dims"] == ["level"]


def test_statistics_of_made_channels_are_those_of_the_samples(batchfs, tmp_path, store):
    """Statistics of positions that samples reach, and of one part of a split."""
    made = [{"make": "toa_radiation"}, {"make": "product", "of": ["t2m", "t2m"]}]
    view = {"window": {"time": 1}, "select": {"latitude": {"from": 60, "to": 0}},
            "samples": {"where": {"time": {"hour": [6, 18]}}},
            "tensors": {"x": {"variables": ["t2m", *made], "stack": "c"}}}
    hours = (TIMES - TIMES.astype("datetime64[D]")) / np.timedelta64(1, "h")
    at = np.isin(hours, [6, 18])
    rows = (LATITUDES <= 60) & (LATITUDES >= 0)
    squares = xr.open_zarr(store).t2m.values.astype("f8") ** 2
    numbers = numbers_of(batchfs, tmp_path, store, view, "--quantiles")
    same_numbers(numbers["toa_radiation"], formulas()["toa_radiation"][at][:, rows])
    same_numbers(numbers["product"], squares[at][:, rows])
    del view["samples"], view["select"]
    view["split"] = {"parts": {"train": "rest", "val": [{"time": {"from": "#8"}}]}}
    numbers = numbers_of(batchfs, tmp_path, store, view, "--part", "val", "--quantiles")
    same_numbers(numbers["toa_radiation"], formulas()["toa_radiation"][8:])
    same_numbers(numbers["product"], squares[8:])


def test_normalize_reads_the_statistics_of_made_channels(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "batch": T, "tensors": {"x": {"variables": [
        {"make": "toa_radiation"}, {"make": "wind_speed", "of": ["t2m", "lsm"]}], "stack": "c"}}}
    numbers = numbers_of(batchfs, tmp_path, store, view, "--quantiles", "-o", tmp_path / "s.json")
    for method, keys in (("zscore", ("mean", "std")), ("robust", ("median", "p75", "p25"))):
        ours = batch(batchfs, tmp_path, store,
                     view | {"normalize": {"method": method, "statistics": "s.json"}})[:, 1, 0]
        entry = [numbers["wind_speed"][key] for key in keys]
        ds = xr.open_zarr(store).load()
        speed = np.hypot(ds.t2m.values.astype("f8"), ds.lsm.values.astype("f8"))
        near(ours, (speed - entry[0]) / (entry[1] - entry[2] if len(entry) > 2 else entry[1]))


def test_dtypes(batchfs, tmp_path, store):
    for dtype in ("float16", "float64"):
        view = {"window": {"time": 1}, "batch": T, "dtype": dtype,
                "tensors": {"x": {"variables": ["t2m", *make("cos_zenith")], "stack": "channel"}}}
        ours = batch(batchfs, tmp_path, store, view)[:, 1, 0]
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, formulas()["cos_zenith"], rtol=0,
                                   atol=1e-10 if dtype == "float64" else 5e-4)


def test_normalize_leaves_sines_and_cosines(batchfs, tmp_path, store):
    statistics = {"t2m": {"mean": 280, "std": 20}, "toa_radiation": {"mean": 300, "std": 400},
                  "cos_zenith": {"mean": 0, "std": 2}}
    view = {"window": {"time": 1}, "batch": T,
            "normalize": {"method": "zscore", "statistics": statistics},
            "tensors": {"x": {"variables": ["t2m", *make("toa_radiation", "cos_zenith")],
                              "stack": "channel"}}}
    ours = batch(batchfs, tmp_path, store, view)[:, :, 0]
    near(ours[:, 1], (formulas()["toa_radiation"] - 300) / 400)
    near(ours[:, 2], formulas()["cos_zenith"])
    view["normalize"]["variables"] = ["cos_zenith"]
    ours = batch(batchfs, tmp_path, store, view)[:, :, 0]
    near(ours[:, 1], formulas()["toa_radiation"])
    near(ours[:, 2], formulas()["cos_zenith"] / 2)
    view["normalize"] = {"method": "zscore", "statistics": {"t2m": statistics["t2m"]}}
    assert "there are none for 'toa_radiation'" in refused(batchfs, tmp_path, store, view)
    view["normalize"]["except"] = ["toa_radiation"]
    near(batch(batchfs, tmp_path, store, view)[:, 1, 0], formulas()["toa_radiation"])


def test_the_zenith_is_the_suns(batchfs, tmp_path, store):
    solarposition = pytest.importorskip("pvlib.solarposition")
    import pandas as pd
    view = {"window": {"time": 1}, "batch": T, "tensors": {"x": {"variables": make("cos_zenith")}}}
    ours = np.degrees(np.arccos(batch(batchfs, tmp_path, store, view)[:, 0].astype("f8")))
    times = pd.DatetimeIndex(TIMES).tz_localize("UTC")
    for y, x in np.ndindex(Y, X):
        theirs = solarposition.get_solarposition(times, LATITUDES[y], LONGITUDES[x])["zenith"]
        assert np.abs(ours[:, y, x] - theirs).max() < 0.1


# ---- channels of variables ----

COMBINED = {"wind_speed": lambda u, v: np.hypot(u, v), "hypot": lambda u, v: np.hypot(u, v),
            "sum": lambda u, v: u + v, "difference": lambda u, v: u - v,
            "product": lambda u, v: u * v, "ratio": lambda u, v: u / v}


@pytest.mark.parametrize("name", COMBINED)
def test_a_channel_of_two_variables(batchfs, tmp_path, store, name):
    view = {"window": {"time": {"size": 2, "stride": 1}, "longitude": {"size": 5, "wrap": True}},
            "batch": 7, "order": {"shuffle": "global", "seed": 1},
            "tensors": {"x": {"variables": [{"make": "cos_latitude"},
                                            {"make": name, "of": ["t2m", "lsm"]}, "t2m"],
                              "stack": "channel", "offsets": {"time": [0, 3]}},
                        "lsm": {"variables": ["lsm"]}}}
    ours = batch(batchfs, tmp_path, store, view, 1)
    info = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--batch", 1,
                                    "--format", "json"))
    ds = xr.open_zarr(store)
    whole = COMBINED[name](ds.t2m.values.astype("f8"), ds.lsm.values.astype("f8"))
    for row, (time, lon) in enumerate(info["starts"]):
        times, columns = [time, time + 1, time + 3, time + 4], np.arange(lon, lon + 5) % X
        near(ours[row, 1], whole[times][:, :, columns])
        near(ours[row, 0], formulas()["cos_latitude"][times][:, :, columns])
        np.testing.assert_array_equal(ours[row, 2], ds.t2m.values[times][:, :, columns])


def test_a_channel_of_many_variables_is_normalized(batchfs, tmp_path, store):
    statistics = {"sum": {"mean": 500, "std": 30}, "t2m": {"mean": 0, "std": 1},
                  "t": {"mean": 0, "std": 1}}
    view = {"window": {"time": 1}, "batch": T,
            "normalize": {"method": "zscore", "statistics": statistics, "variables": ["sum"]},
            "tensors": {"x": {"variables": [{"make": "sum", "of": ["t2m", "t", "lsm"]}, "t2m"],
                              "stack": "channel"}}}
    ours = batch(batchfs, tmp_path, store, view)
    ds = xr.open_zarr(store).astype("f8")
    assert ours.shape == (T, 3, 1, Y, X)
    for level in range(2):
        near(ours[:, level, 0], (ds.t2m.values + ds.t.values[:, level] + ds.lsm.values - 500) / 30)
    np.testing.assert_array_equal(ours[:, 2, 0], ds.t2m.values.astype("f4"))


def test_a_channel_of_integers(batchfs, tmp_path, store):
    view = {"window": {"time": 1}, "batch": T,
            "tensors": {"x": {"variables": [{"make": "difference", "of": ["count", "t2m"]}]}}}
    ds = xr.open_zarr(store)
    near(batch(batchfs, tmp_path, store, view)[:, 0],
         ds["count"].values.astype("f8") - ds.t2m.values.astype("f8"))


# ---- normalize ----

def test_log1p(batchfs, tmp_path, store):
    t = xr.open_zarr(store).t2m.values.astype("f8")
    logs = np.log1p(np.maximum(t - 0, 0) / 7)
    view = {"window": {"time": 1}, "batch": T, "variables": ["t2m"],
            "normalize": {"method": "log1p", "scale": 7}}
    near(batch(batchfs, tmp_path, store, view, tensor="t2m")[:, 0], logs)
    view["normalize"] |= {"then": "zscore", "statistics": {"t2m": {"mean": 3.5, "std": 0.25}}}
    near(batch(batchfs, tmp_path, store, view, tensor="t2m")[:, 0], (logs - 3.5) / 0.25)
    view = {"window": {"time": 1}, "batch": T, "normalize": {"method": "log1p", "scale": 2},
            "tensors": {"x": {"variables": [{"make": "difference", "of": ["lsm", "t2m"]},
                                            {"make": "toa_radiation"}], "stack": "c"}}}
    ours = batch(batchfs, tmp_path, store, view)
    assert not ours[:, 0].any()  # below 0 throughout
    near(ours[:, 1, 0], np.log1p(formulas()["toa_radiation"] / 2))


def test_robust_and_tendency(batchfs, tmp_path, store):
    t = xr.open_zarr(store).t2m.values.astype("f8")
    numbers = {"mean": 280, "std": 20, "median": 281, "p25": 270, "p75": 290.5,
               "tendency": {"std": 4}}
    view = {"window": {"time": 1}, "batch": T, "variables": ["t2m"],
            "normalize": {"method": "robust", "statistics": {"t2m": numbers}}}
    near(batch(batchfs, tmp_path, store, view, tensor="t2m")[:, 0], (t - 281) / 20.5)
    view["normalize"] = {"method": "zscore", "by": "tendency", "statistics": {"t2m": numbers}}
    near(batch(batchfs, tmp_path, store, view, tensor="t2m")[:, 0], (t - 280) / 4)


@pytest.mark.parametrize(("normalize", "message"), [
    ({"method": "log1p"}, "scale"),
    ({"method": "log1p", "scale": 0}, "normalize.scale"),
    ({"method": "log1p", "scale": 1, "statistics": {}},
     "normalize.statistics: log1p alone needs none"),
    ({"method": "zscore", "scale": 1, "statistics": {}}, "normalize.scale: it goes with"),
    ({"method": "robust", "statistics": {"t2m": {"median": 1, "p25": 2}}}, "'t2m' has no \"p75\""),
    ({"method": "robust", "statistics": {"t2m": {"median": 1, "p25": 2, "p75": 2}}},
     "'t2m' is constant"),
    ({"method": "minmax", "by": "tendency", "statistics": {}}, "normalize.by"),
    ({"method": "zscore", "by": "tendency", "statistics": {"t2m": {"mean": 1, "std": 2}}},
     "'t2m' has no \"tendency.std\""),
])
def test_mistakes_of_normalize(batchfs, tmp_path, store, normalize, message):
    assert message in refused(batchfs, tmp_path, store,
                              {"window": {"time": 1}, "variables": ["t2m"], "normalize": normalize})


def test_forcings_cost_no_chunks(batchfs, tmp_path, store):
    plans = []
    for made in ([], make("cos_zenith", "sin_local_time")):
        view = {"window": {"time": 1}, "batch": 2,
                "tensors": {"x": {"variables": ["t2m", *made], "stack": "channel"}}}
        file = tmp_path / "view.json"
        file.write_text(json.dumps(view))
        plans.append(json.loads(batchfs.bytes("plan", store, "--view", file, "--json")))
    same = [key for key in plans[0] if "chunk" in key or "fetch" in key]
    assert same and all(plans[0][key] == plans[1][key] for key in same)


REFUSED = [
    (make("cos_julian_days"), "tensors.x.variables[0].make: there is no channel 'cos_julian_days', "
                              "did you mean 'cos_julian_day'?"),
    ([{"mak": "cos_latitude"}], "tensors.x.variables[0]"),
    ([{"make": "cos_latitude", "mean": "1h"}],
     "tensors.x.variables[0].mean: it goes with insolation and toa_radiation"),
    ([{"make": "insolation", "mean": "2d"}], "tensors.x.variables[0].mean: '2d'"),
    ([{"make": "constant"}], "value"),
    ([{"make": "cos_latitude", "name": "lsm"}],
     "tensors.x.variables[0]: the store has a variable 'lsm'"),
    ([{"make": "wind_speed", "of": ["t2m", "t2n"]}],
     "tensors.x.variables[0].of[1]: the store has no variable 't2n', did you mean 't2m'?"),
    ([{"make": "ratio", "of": ["t2m", "t", "lsm"]}],
     "tensors.x.variables[0].of: 'ratio' is of 2 variables, not of 3"),
    ([{"make": "cos_latitude", "of": ["t2m", "lsm"]}], "tensors.x.variables[0].of: it goes with"),
    ([{"make": "sum", "of": ["t2m", "time"]}],
     "tensors.x.variables[0].of[1]: 'time' is datetime64[ns]"),
    ([3], "tensors.x.variables[0]"),
    ([], "tensors.x.variables: the list is empty"),
]


@pytest.mark.parametrize(("variables", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_mistakes_are_one_line(batchfs, tmp_path, store, variables, message):
    assert message in refused(batchfs, tmp_path, store,
                              {"window": {"time": 1}, "tensors": {"x": {"variables": variables}}})


def test_integers_take_no_made_channels(batchfs, tmp_path, store):
    view = {"window": {"time": 1},
            "tensors": {"x": {"variables": ["count", *make("cos_latitude")], "stack": "c"}}}
    assert "tensors.x: 'count' is int64, and made channels are floats" in refused(
        batchfs, tmp_path, store, view)


@pytest.mark.parametrize(("coordinates", "message"), [
    ({"time": np.arange(3)}, "no dimension has a coordinate of times (datetime64)"),
    ({"latitude": ("latitude", np.linspace(-1.5, 1.5, 4), {"units": "radians"})},
     "'latitude' is in 'radians'"),
    ({"latitude": np.linspace(-1.5, 1.5, 4), "longitude": np.linspace(0, 6, 5)},
     "'latitude' has no units"),
    ({"latitude": ("latitude", [0.0, 45, 90, 135], {"units": "degrees_north"})},
     "'latitude' has the value 135"),
])
def test_coordinates_that_do_not_serve(batchfs, tmp_path, coordinates, message):
    ds = xr.Dataset(
        {"a": (("time", "latitude", "longitude"), np.zeros((3, 4, 5), "f4"))},
        {"time": TIMES[:3], "latitude": np.linspace(-90, 90, 4), "longitude": np.arange(5.0)}
            | coordinates)
    ds.to_zarr(tmp_path / "s.zarr")
    view = {"window": {"time": 1},
            "tensors": {"x": {"variables": ["a", *make("insolation")], "stack": "c"}}}
    assert message in refused(batchfs, tmp_path, tmp_path / "s.zarr", view)


def test_cells_and_curvilinear_grids(batchfs, tmp_path):
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(-90, 90, (4, 5)), rng.uniform(0, 360, (4, 5))
    for dims, latitudes, longitudes in ((("y", "x"), lat, lon),
                                        (("cell",), lat.ravel(), lon.ravel())):
        ds = xr.Dataset({"a": (("time", *dims), np.zeros((3, *latitudes.shape), "f4"))},
                        {"time": TIMES[:3], "lat": (dims, latitudes), "lon": (dims, longitudes)})
        path = tmp_path / f"{len(dims)}.zarr"
        ds.to_zarr(path)
        view = {"window": {"time": 1}, "batch": 3, "tensors": {
            "x": {"variables": ["a", *make("cos_local_time", "sin_latitude")], "stack": "channel"}}}
        ours = batch(batchfs, tmp_path, path, view)
        of_day = ((TIMES[:3] - TIMES[:3].astype("datetime64[D]")) / np.timedelta64(1, "D")).reshape(
            -1, *[1] * len(dims))
        near(ours[:, 1, 0], np.cos(TURN * (of_day + longitudes / 360)))
        near(ours[:, 2, 0], np.broadcast_to(np.sin(np.deg2rad(latitudes)), ours[:, 2, 0].shape))
