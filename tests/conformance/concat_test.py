"""Stores one behind the other, against xarray.concat."""

import io
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from several_stores import SeveralStores, write

LATS, LONS = np.linspace(60, -60, 5), np.arange(6) * 60.0


def year(seed, number, hours=6, count=None, lats=LATS):
    times = pd.date_range(f"{number}-01-01", f"{number}-12-31T23", freq=f"{hours}h").values.astype(
        "M8[ns]")
    times = times[:count] if count else times
    random = np.random.default_rng(seed)
    shape = (len(times), len(lats), len(LONS))
    return xr.Dataset({"t2m": (("time", "lat", "lon"), random.standard_normal(shape).astype("f4"),
                               {"units": "K"}),
                       "tp": (("time", "lat", "lon"), random.random(shape).astype("f4")),
                       "lsm": (("lat", "lon"),
                               np.arange(len(lats) * 6, dtype="f4").reshape(len(lats), 6))},
                      {"time": times, "lat": lats, "lon": LONS})


class Years(SeveralStores):
    """Three stores of a year each, of other chunks, one packed as integers."""

    def __init__(self, batchfs, folder, version=3):
        super().__init__(batchfs, folder, folder / "first.zarr",
                         [f"era={folder}/y{{2000..2002}}.zarr"])
        self.data = []
        packed = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 1.5,
                          "_FillValue": -32768}}
        for i, number in enumerate((2000, 2001, 2002)):
            self.data.append(write(folder / f"y{number}.zarr", year(i, number, count=50 + 7 * i),
                                   version, {"time": (7, 11, 50)[i], "lat": 2 + i},
                                   packed if i == 1 else None))
            self.data[-1]["t2m"].attrs.pop("scale_factor", None)
        self.whole = xr.concat(self.data, "time", data_vars="minimal", coords="minimal",
                               compat="override", combine_attrs="drop_conflicts")
        write(self.first, year(9, 2000, count=3), version)


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def years(request, batchfs, tmp_path):
    return Years(batchfs, tmp_path, request.param)


def of_years(**more):
    return ({"sources": {"era": {"store": "era"}}, "batch": 1000, "order": {"shuffle": "none"}}
            | more)


def windows(array, size, stride=None):
    stride = stride or size
    return np.stack([array[i:i + size] for i in range(0, len(array) - size + 1, stride)])


@pytest.mark.parametrize("size, stride", [(1, 1), (5, 3), (60, 40)])
def test_windows_over_the_seams_are_those_of_xr_concat(years, size, stride):
    got = years.tensors(of_years(variables=["t2m", "tp"],
                                 window={"time": {"size": size, "stride": stride}}))
    for name in ("t2m", "tp"):
        expected = windows(years.whole[name].values, size, stride)
        assert np.array_equal(got[name], expected.reshape(got[name].shape), equal_nan=True)


def test_each_chunk_is_named_with_its_store(years):
    view = of_years(variables=["t2m"], window={"time": 2})
    data = years.batchfs.bytes("batch", *years.command(view), "--format", "json")
    chunks = json.loads(data)["chunks"]
    assert {chunk.split(":")[0] for chunk in chunks} == {"era.2000", "era.2001", "era.2002"}
    assert "era.2001:t2m/0.0.0" in chunks


def test_selections_of_the_whole(years):
    whole = years.whole
    cases = [({"from": "2000-01-10", "to": "2001-01-05"},
              whole.sel(time=slice("2000-01-10", "2001-01-05"))),
             ({"from": "2002-01-02", "to": "2002-01-03"},
              whole.sel(time=slice("2002-01-02", "2002-01-03"))),
             (["#3", "#120", "#60", "#61", "#0"], whole.isel(time=[3, 120, 60, 61, 0]))]
    for select, expected in cases:
        view = of_years(variables=["tp"], select={"time": select, "lat": {"from": 60, "to": 0}},
                        window={"time": 2})
        expected = windows(expected.sel(lat=slice(60, 0)).tp.values, 2)
        assert np.array_equal(years.tensors(view)["tp"], expected)


def test_a_dimension_that_stays_whole(years):
    view = of_years(variables=["t2m"], window={"lat": 2},
                    select={"time": {"from": "#40", "to": "#130"}})
    expected = years.whole.t2m.values[40:130]
    got = years.tensors(view)["t2m"]
    assert np.array_equal(got, np.stack([expected[:, :2], expected[:, 2:4]]), equal_nan=True)


def test_a_stack_with_offsets_and_a_static_field(years):
    view = of_years(window={"time": 1}, dtype="float32", tensors={"x": {
        "variables": ["t2m", "tp", "lsm"], "stack": "channel", "broadcast": True,
        "offsets": {"time": [-1, 0, 2]}}})
    got = years.tensors(view)["x"]
    t2m, tp, lsm = (years.whole[name].values.astype("f4") for name in ("t2m", "tp", "lsm"))
    expected = np.stack([np.stack([a[i - 1:i + 3][[0, 1, 3]] for i in range(1, len(t2m) - 2)])
                         for a in (t2m, tp, np.broadcast_to(lsm, t2m.shape))], axis=1)
    assert np.array_equal(got, expected, equal_nan=True)


def test_spacing_and_lengths_of_time_see_the_seams(years):
    time = years.whole.time.values
    steps = np.diff(time) == np.timedelta64(6, "h")
    plan = years.plan(of_years(variables=["tp"], window={"time": 2},
                               samples={"spacing": {"time": "6h"}}))
    assert (plan["samples"] == steps[::2].sum()
            and plan["dropped"]["spacing"] == (~steps[::2]).sum() > 0)
    view = of_years(window={"time": 1},
                    tensors={"x": {"variables": ["tp"], "offsets": {"time": ["-12h", "0h"]}}})
    index = pd.Index(time)
    before = index.get_indexer(time - np.timedelta64(12, "h"))
    rows = np.flatnonzero(before >= 0)
    expected = np.stack([years.whole.tp.values[[before[i], i]] for i in rows])
    assert np.array_equal(years.tensors(view)["x"], expected)


def test_another_source_beside_the_years(years):
    """The years as the first source, and joined to another one."""
    first = xr.open_zarr(years.folder / "first.zarr").load()
    times = years.whole.time.values
    view = {"sources": {"rain": {}, "era": {"store": "era",
                                            "join": {"time": {"pick": "last", "missing": "pad"}}}},
            "batch": 1000, "order": {"shuffle": "none"}, "variables": ["era:tp"],
            "window": {"time": 1}}
    got = years.tensors(view)["era:tp"][:, 0]
    assert np.array_equal(got, years.whole.tp.sel(time=first.time, method="pad").values)
    shifted = first.assign_coords(time=times[[48, 49, 120]] + np.timedelta64(1, "h"))
    write(years.folder / "late.zarr", shifted)
    stores = ["era=" + str(years.folder / "y{2000..2002}.zarr"),
              f"late={years.folder / 'late.zarr'}"]
    view["sources"]["rain"] = {"store": "late"}
    assert np.array_equal(years.tensors(view, stores=stores)["era:tp"][:, 0],
                          years.whole.tp.values[[48, 49, 120]])
    exact = shifted.assign_coords(time=np.array([times[10], times[10] + np.timedelta64(1, "h"),
                                                 times[130]]))
    write(years.folder / "exact.zarr", exact)
    stores[1] = f"late={years.folder / 'exact.zarr'}"
    view["sources"]["era"]["join"]["time"] = {"pick": "exact", "missing": "pad"}
    got = years.tensors(view, stores=stores)["era:tp"][:, 0]
    expected = years.whole.tp.reindex(time=exact.time).values
    assert np.array_equal(got, expected, equal_nan=True) and np.isnan(got[1]).all()
    view["sources"] = {"era": {"store": "era"},
                       "late": {"store": "late", "join": {"time": "exact"}}}
    view["variables"] = ["t2m", "late:tp"]
    got = years.tensors(view, stores=stores)
    assert np.array_equal(got["t2m"][:, 0], years.whole.t2m.values[[10, 130]])
    assert np.array_equal(got["late:tp"][:, 0], exact.tp.values[[0, 2]])


def test_missing_values_of_each_year_count(years, tmp_path):
    whole = years.whole.load().copy(deep=True)
    random = np.random.default_rng(5)
    whole.tp.values[random.random(whole.tp.shape) < 0.02] = np.nan
    starts = np.cumsum([0] + [len(d.time) for d in years.data])
    for i, number in enumerate((2000, 2001, 2002)):
        write(tmp_path / f"n{number}.zarr", whole.isel(time=slice(starts[i], starts[i + 1])),
              chunks={"time": 9})
    stores = ["era=" + str(tmp_path / "n{2000..2002}.zarr")]
    parts = windows(np.isnan(whole.tp.values), 3, 2)
    for at_most in (0, 0.02, 0.05):
        view = of_years(variables=["tp"], window={"time": {"size": 3, "stride": 2}},
                        missing={"nan": "skip", "at_most": at_most})
        keep = parts.reshape(len(parts), -1).mean(axis=1) <= at_most
        assert 0 < keep.sum() < len(keep)
        expected = windows(whole.tp.values, 3, 2)[keep]
        assert np.array_equal(years.tensors(view, stores=stores)["tp"], expected, equal_nan=True)


def test_statistics_and_splits(years):
    def statistics(view, *more):
        return json.loads(years.batchfs.bytes("statistics", *years.command(view), "--json",
                                              *more))["variables"]["tp"]
    view = of_years(variables=["tp"], window={"time": 1})
    values = years.whole.tp.values.astype("f8")
    own = statistics(view)
    assert own["count"] == values.size
    assert np.allclose([own["mean"], own["std"], own["min"], own["max"]],
                       [values.mean(), values.std(), values.min(), values.max()], rtol=1e-12)
    # in each store
    tendency = np.concatenate([np.diff(d.tp.values.astype("f8"), axis=0) for d in years.data])
    assert own["tendency"]["count"] == tendency.size
    assert np.allclose([own["tendency"]["mean"], own["tendency"]["std"]],
                       [tendency.mean(), tendency.std()], rtol=1e-10)
    view["split"] = {"parts": {"train": "rest",
                               "val": [{"time": {"from": "2000-01-12", "to": "2001-01-03"}}]}}
    left = years.whole.time.values
    left = (left < np.datetime64("2000-01-12")) | (left >= np.datetime64("2001-01-04"))
    own = statistics(view)
    assert own["count"] == values[left].size and np.isclose(own["mean"], values[left].mean(),
                                                            rtol=1e-12)


@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_orders_take_each_sample_once(years, shuffle):
    view = of_years(variables=["tp"], window={"time": 1}, order={"shuffle": shuffle, "seed": 3})
    got = years.tensors(view)["tp"][:, 0]
    assert sorted(got[:, 0, 0]) == sorted(years.whole.tp.values[:, 0, 0])


def test_masks_and_weights(years):
    view = of_years(variables=["tp"], window={"time": 1, "lat": 1, "lon": 1}, batch=100000,
                    samples={"mask": {"variable": "tp", "above": 0.9, "fraction": [1, 1]}})
    values = years.whole.tp.values
    assert np.array_equal(years.tensors(view)["tp"].ravel(), values[values > 0.9])


def test_channels_made_of_variables_of_the_years(years):
    view = of_years(window={"time": 3}, tensors={"x": {"stack": "channel", "variables": [
        "t2m", {"make": "sum", "of": ["t2m", "tp"]}, {"make": "sin_julian_day"}]}})
    expected = (years.whole.t2m.astype("f8") + years.whole.tp.astype("f8")).values
    assert np.array_equal(years.tensors(view)["x"][:, 1], windows(expected, 3), equal_nan=True)
    entry = json.loads(years.batchfs.bytes("statistics", *years.command(view),
                                           "--json"))["variables"]["sum"]
    assert (entry["count"], entry["nan"]) == (np.isfinite(expected).sum(), np.isnan(expected).sum())
    assert (entry["min"], entry["max"]) == (np.nanmin(expected), np.nanmax(expected))
    np.testing.assert_allclose([entry["mean"], entry["std"]],
                               [np.nanmean(expected), np.nanstd(expected)], rtol=1e-12)
    steps = np.diff(expected, axis=0)
    np.testing.assert_allclose(entry["tendency"]["std"], np.nanstd(steps), rtol=1e-10)


def test_strips_of_latitude(batchfs, tmp_path):
    lats = np.linspace(80, -80, 17)
    whole = year(3, 2001, count=8, lats=lats)
    for name, begin, end in (("north", 0, 5), ("middle", 5, 6), ("south", 6, 17)):
        write(tmp_path / f"{name}.zarr", whole.isel(lat=slice(begin, end)), chunks={"lat": 3})
    years = Years(batchfs, tmp_path)
    view = {"sources": {"all": {"stores": ["north", "middle", "south"], "concat": "lat"}},
            "variables": ["t2m", "lsm"], "window": {"lat": {"size": 4, "stride": 3}}, "batch": 100,
            "order": {"shuffle": "none"}}
    stores = [f"{name}={tmp_path / name}.zarr" for name in ("north", "middle", "south")]
    got = years.tensors(view, stores=stores)
    for name in ("t2m", "lsm"):
        expected = np.stack([whole[name].isel(lat=slice(i, i + 4)).values for i in range(0, 14, 3)])
        assert np.array_equal(got[name], expected)
    del view["sources"]["all"]["concat"]  # the one dimension that differs
    assert np.array_equal(years.tensors(view, stores=stores)["t2m"], got["t2m"])


def test_names_with_braces(years):
    stores = [f"y{{2000..2002}}={years.folder}/y{{}}.zarr"]
    view = of_years(variables=["tp"], window={"time": 1})
    view["sources"] = {"era": {"stores": ["y{2000..2002}"]}}
    assert np.array_equal(years.tensors(view, stores=stores)["tp"][:, 0], years.whole.tp.values)


def test_what_does_not_go_together(years, tmp_path):
    def refused(stores, sources=None, variables=("tp",)):
        view = of_years(variables=list(variables), window={"time": 1})
        view["sources"] = sources or {"era": {"stores": ["a", "b"]}}
        return years.refusal(view,
                             [f"{name}={tmp_path / store}.zarr" for name, store in stores.items()])

    line = refused({"a": "y2001", "b": "y2000"})
    assert "'b' (2000-01-01" in line and "does not lie behind 'a' (2001-01-01" in line
    assert "2000-01-13T06:00:00" in line and "2001-01-15T00:00:00" in line
    later = years.data[0].assign_coords(time=years.data[0].time + np.timedelta64(6, "h"))
    write(tmp_path / "later.zarr", later)
    assert '"prefer": "last"' in refused({"a": "y2000", "b": "later"})
    write(tmp_path / "lat.zarr", years.data[1].assign_coords(lat=LATS + 1))
    line = refused({"a": "y2000", "b": "lat"}, {"era": {"stores": ["a", "b"], "concat": "time"}})
    assert ("same 'lat', but 'a' has 5 labels from 60.0 to -60.0, and 'b' has "
            "5 labels from 61.0" in line)
    line = refused({"a": "y2000", "b": "lat"})
    assert "differ along" in line and '"concat": ' in line
    celsius = years.data[1].copy()
    celsius["t2m"] = celsius.t2m.assign_attrs(units="degC")
    write(tmp_path / "celsius.zarr", celsius[["t2m"]])
    assert "its units are \"K\" in 'a' and \"degC\" in 'b'" in refused(
        {"a": "y2000", "b": "celsius"}, None, ["t2m"])
    assert "'b' lacks it" in refused({"a": "y2000", "b": "celsius"})
    whole = years.data[1].assign(tp=years.data[1].tp.astype("i8"))
    write(tmp_path / "double.zarr", whole)
    assert "it is float32 in 'a' and int64 in 'b'" in refused({"a": "y2000", "b": "double"})
    noleap = years.data[1].assign_coords(time=xr.date_range("2001-01-01", periods=57, freq="6h",
                                                            calendar="noleap", use_cftime=True))
    write(tmp_path / "noleap.zarr", noleap)
    line = refused({"a": "y2000", "b": "noleap"})
    assert "calendar proleptic_gregorian, and that of 'b' of noleap" in line
    turned = years.data[1].transpose("lat", "time", "lon")
    write(tmp_path / "turned.zarr", turned)
    assert "its dimensions are time, lat, lon in 'a' and lat, time, lon in 'b'" in refused(
        {"a": "y2000", "b": "turned"})
    assert "no store 'c' is given" in refused({"a": "y2000", "b": "y2001"},
                                              {"era": {"stores": ["a", "c"]}})
    assert "'a' is given twice" in refused({"a": "y2000"}, {"era": {"stores": ["a", "a"]}})
    assert "not both" in refused({"a": "y2000"}, {"era": {"stores": ["a"], "store": "a"}})
    assert "has no dimension 'tme'" in refused({"a": "y2000", "b": "y2001"},
                                               {"era": {"stores": ["a", "b"], "concat": "tme"}})


@pytest.mark.parametrize("seed", range(6))
def test_random_parts(batchfs, tmp_path, seed):
    """Parts of random lengths and chunks, with gaps between and inside of them."""
    random = np.random.default_rng(seed)
    times = (np.datetime64("1999-12-30", "ns")
             + np.sort(random.choice(400, 90, replace=False)) * np.timedelta64(3, "h"))
    lats = LATS[::-1] if seed % 2 else LATS
    whole = xr.Dataset({"a": (("time", "lat", "lon"),
                              random.standard_normal((90, 5, 6)).astype("f4")),
                        "b": (("lon", "time"), random.integers(0, 99, (6, 90)).astype("i4")),
                        "when": (("time",), times[::-1])},
                       {"time": times, "lat": lats, "lon": LONS})
    cuts = [0, *np.sort(random.choice(np.arange(1, 90), 6, replace=False)), 90]
    for i in range(7):
        write(tmp_path / f"p{i:02d}.zarr", whole.isel(time=slice(cuts[i], cuts[i + 1])),
              2 + int(random.integers(2)),
              {"time": int(random.integers(1, 12)), "lat": int(random.integers(1, 6)), "lon": 4})
    years = SeveralStores(batchfs, tmp_path, tmp_path / "first.zarr")
    write(years.first, whole.isel(time=slice(0, 2)))
    size, stride = int(random.integers(1, 25)), int(random.integers(1, 9))
    view = of_years(variables=["a", "b", "when"], window={"time": {"size": size, "stride": stride}})
    got = years.tensors(view, stores=["era=" + str(tmp_path / "p{00..06}.zarr")])
    assert np.array_equal(got["a"], windows(whole.a.values, size, stride))
    assert np.array_equal(got["b"], windows(whole.b.values.T, size, stride).transpose(0, 2, 1))
    assert np.array_equal(got["when"].view("i8"),
                          windows(whole.when.values, size, stride).view("i8"))


@pytest.mark.parametrize("prefer", ["first", "last"])
@pytest.mark.parametrize("descending", [False, True])
def test_overlaps(batchfs, tmp_path, prefer, descending):
    """Three stores with labels in common, out of order, one within another."""
    times = pd.date_range("2001-01-01", periods=60, freq="6h").values.astype("M8[ns]")
    picks = [np.arange(20, 45), np.array([0, 1, 2, 5, 6, 22, 23, 31]), np.arange(30, 60, 3)]
    parts = []
    for i, pick in enumerate(picks):
        part = year(i, 2001, count=60)[["tp", "lsm"]].assign_coords(time=times).isel(time=pick)
        part = part.isel(time=slice(None, None, -1)) if descending else part
        parts.append(write(tmp_path / f"p{i}.zarr", part, chunks={"time": 4 + i}))
    order = parts if prefer == "first" else parts[::-1]
    whole = order[0].combine_first(order[1]).combine_first(order[2])
    whole = whole.sortby("time", ascending=not descending)
    years = SeveralStores(batchfs, tmp_path, tmp_path / "first.zarr")
    write(years.first, parts[0])
    view = {"sources": {"e": {"store": "e", "concat": "time", "prefer": prefer}},
            "variables": ["tp"], "window": {"time": {"size": 5, "stride": 2}}, "batch": 100,
            "order": {"shuffle": "none"}}
    stores = ["e=" + str(tmp_path / "p{0..2}.zarr")]
    assert np.array_equal(years.tensors(view, stores=stores)["tp"], windows(whole.tp.values, 5, 2))
    view["select"] = {"time": {"from": "2001-01-02", "to": "2001-01-10"}}
    days = whole.time.values.astype("M8[D]")
    whole = whole.isel(time=(days >= np.datetime64("2001-01-02"))
                           & (days <= np.datetime64("2001-01-10")))
    assert np.array_equal(years.tensors(view, stores=stores)["tp"], windows(whole.tp.values, 5, 2))
    view["missing"] = {"nan": "skip", "at_most": 0.5}
    assert np.array_equal(years.tensors(view, stores=stores)["tp"], windows(whole.tp.values, 5, 2))


def test_options_of_one_store(years, tmp_path):
    """A store whose chunks are links that lead out of it."""
    linked = tmp_path / "linked.zarr"
    write(linked, years.data[0][["tp"]])
    (linked / "tp").rename(tmp_path / "away")
    (linked / "tp").symlink_to(tmp_path / "away")
    view = {"sources": {"e": {"store": "e"}}, "variables": ["tp"], "window": {"time": 1},
            "batch": 100, "order": {"shuffle": "none"}}
    words = years.command(view, [f"e={linked}"])
    assert "--follow-links" in years.batchfs.refusal("batch", *words, "--format", "npz")
    data = years.batchfs.bytes("batch", *words, "--store-option", "e.follow-links", "--format",
                               "npz")
    with np.load(io.BytesIO(data)) as file:
        assert np.array_equal(file["tp"][:, 0], years.data[0].tp.values)
    assert "no store 'f' is given" in years.batchfs.refusal("batch", *words, "--store-option",
                                                            "f.anon")


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("size", [1, 4])
def test_numbers_along_the_dimension_are_those_of_the_whole(years, labelled, size):
    """Each time has its own numbers of "normalize", also where a view selects some."""
    stores = [f"e={years.folder}/y{{2000..2002}}.zarr"]
    whole = years.whole
    count = len(whole.time)
    random = np.random.default_rng(5)
    mean, std = random.normal(size=count), random.uniform(1, 2, count)
    select = slice(20, 150)
    # without labels: a number for each selected position
    used = slice(None) if labelled else select
    numbers = {"dims": ["time"], "mean": mean[used].tolist(), "std": std[used].tolist()}
    if labelled:
        numbers["coordinates"] = {"time": np.datetime_as_string(whole.time.values, "s").tolist()}
    view = {"sources": {"e": {"store": "e", "concat": "time"}}, "variables": ["tp"],
            "window": {"time": {"size": size, "stride": 1}},
            "select": {"time": {"from": "#20", "to": "#150"}}, "batch": 1000,
            "order": {"shuffle": "none"}, "dtype": "float64",
            "normalize": {"method": "zscore", "statistics": {"tp": numbers}}}
    expected = (whole.tp.values.astype("f8") - mean[:, None, None]) / std[:, None, None]
    assert np.array_equal(years.tensors(view, stores=stores)["tp"],
                          windows(expected[select], size, 1))
    numbers["std"][100] = 0.0
    place = np.datetime_as_string(whole.time.values[used][100], "s")
    assert f"'tp' is constant at time={place}" in years.refusal(view, stores=stores)


@pytest.mark.parametrize("prefer", ["first", "last"])
def test_numbers_along_stores_that_overlap(batchfs, tmp_path, prefer):
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "s0.zarr",
                           [f"e={tmp_path}/s{{0..2}}.zarr"])
    for i, hours in enumerate((range(9), range(5, 14), range(13, 20))):
        write(tmp_path / f"s{i}.zarr", xr.Dataset(
            {"x": (("time", "c"), np.full((len(hours), 2), 100.0 * i) + np.array(hours)[:, None])},
            {"time": np.datetime64("2000-01-01", "ns") + np.array(hours) * np.timedelta64(1, "h")}))
    view = {"sources": {"e": {"store": "e", "concat": "time", "prefer": prefer}},
            "variables": ["x"], "window": {"time": 1}, "batch": 100, "order": {"shuffle": "none"},
            "normalize": {"method": "zscore", "statistics": {
                "x": {"dims": ["time"], "mean": list(range(20)), "std": [1] * 20}}}}
    firsts = [9, 14] if prefer == "first" else [5, 13]
    expected = 100.0 * np.searchsorted(firsts, np.arange(20), side="right")
    np.testing.assert_array_equal(stores.tensors(view)["x"][:, 0],
                                  np.stack([expected, expected], 1))
