"""Several stores in one sample, against xarray and pandas: what xr.align, sel and merge_asof
give."""

import functools
import http.server
import io
import json
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from source_stores import HOUR, LATS, LONS, START, Sources, fields, two


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def sources(request, batchfs, tmp_path):
    return Sources(batchfs, tmp_path, request.param, seed=request.param)


def test_exact_join_is_xr_align(sources):
    view = two({"time": "exact"}, window={"time": 1}, tensors={
        "x": {"variables": ["era5:t2m", "rain:tp", "static:lsm"], "stack": "channel",
              "broadcast": True},
        "y": {"variables": ["t2m"]}})
    a, b = xr.align(sources.data["anchor"], sources.data["rain"], join="inner")
    made = sources.tensors(view)
    assert made["x"].shape == (a.sizes["time"], 3, 1, 5, 6)
    b = b.sel(lat=a.lat)
    assert np.array_equal(made["x"][:, 0, 0], a.t2m.values)
    assert np.array_equal(made["x"][:, 1, 0], b.tp.values)
    assert (made["x"][:, 2, 0] == sources.data["static"].lsm.values).all()
    assert np.array_equal(made["y"][:, 0], a.t2m.values)
    samples, dropped = sources.samples(view)
    assert samples == a.sizes["time"]
    assert dropped["join"] == sources.data["anchor"].sizes["time"] - samples


@pytest.mark.parametrize("size,offsets", [(2, [0]), (3, [-1, 0, 2]), (1, [-2, 1])])
def test_windows_that_need_a_missing_label_are_no_samples(sources, size, offsets):
    view = two({"time": "exact"}, window={"time": {"size": size, "stride": 1}}, tensors={
        "x": {"variables": ["t2m"]}, "r": {"variables": ["rain:tp"], "offsets": {"time": offsets}}})
    anchor, rain = sources.data["anchor"], sources.data["rain"]
    places = rain.get_index("time").get_indexer(anchor.get_index("time"))
    starts = [s for s in range(anchor.sizes["time"])
              if all(0 <= s + o and s + o + size <= len(places) for o in [0, *offsets])
              and all(places[s + o + k] >= 0 for o in offsets for k in range(size))]
    made = sources.tensors(view)
    wanted = [rain.tp.values[[places[s + o + k] for o in offsets for k in range(size)]][:, ::-1]
              for s in starts]
    assert np.array_equal(made["r"], np.stack(wanted))
    assert np.array_equal(made["x"], np.stack([anchor.t2m.values[s:s + size] for s in starts]))


@pytest.mark.parametrize("pick,method,direction",
                         [("last", "pad", "backward"), ("next", "backfill", "forward"),
                          ("nearest", "nearest", None)])
@pytest.mark.parametrize("tolerance", ["3h", "20h", None])
def test_picks_are_those_of_xarray_and_pandas(sources, pick, method, direction, tolerance):
    days = (START + np.sort(np.random.default_rng(3).choice(90, 25, replace=False))
            * np.timedelta64(185, "m") * 2)
    sources.add("sst", fields(9, days[::-1], "sst"), chunks={"time": 3})
    join = {"pick": pick} | ({"tolerance": tolerance} if tolerance else {})
    anchor = sources.data["anchor"].get_index("time")
    by_time = sources.data["sst"].sortby("time")
    places = by_time.get_index("time").get_indexer(
        anchor, method=method, tolerance=pd.Timedelta(tolerance) if tolerance else None)
    if direction is not None:
        merged = pd.merge_asof(
            pd.DataFrame({"time": anchor}),
            pd.DataFrame({"time": by_time.time.values, "place": np.arange(len(days))}), on="time",
            direction=direction, tolerance=pd.Timedelta(tolerance) if tolerance else None)
        assert np.array_equal(places, merged["place"].fillna(-1).astype(int))
    for missing in ("drop", "pad"):
        view = {"sources": {"era5": {},
                            "sst": {"store": "sst", "join": {"time": join | {"missing": missing}}}},
                "window": {"time": 1}, "batch": 1000, "variables": ["t2m", "sst:sst"]}
        made = sources.tensors(view)["sst:sst"][:, 0]
        values = by_time.sst.values[places]
        values[places < 0] = np.nan
        assert np.array_equal(made, values[places >= 0] if missing == "drop" else values,
                              equal_nan=True)


def test_durations_are_looked_up_in_the_sources_own_labels(sources):
    half_hours = START + np.arange(600) * np.timedelta64(30, "m")
    half_hours = np.delete(half_hours, [100, 333])
    sources.add("imerg", fields(11, half_hours, "precipitation"), chunks={"time": 24})
    offsets = ["-330min", "-30min", "0min", "30min"]
    view = {"sources": {"era5": {}, "imerg": {"store": "imerg", "join": {"time": "exact"}}},
            "window": {"time": {"size": 2, "stride": 1}}, "batch": 1000, "tensors": {
                "x": {"variables": ["t2m"]},
                "rain": {"variables": ["imerg:precipitation"], "offsets": {"time": offsets}}}}
    anchor, imerg = sources.data["anchor"], sources.data["imerg"]
    own = imerg.get_index("time")
    starts, wanted = [], []
    for s in range(anchor.sizes["time"] - 1):
        labels = [anchor.time.values[s + k] + np.timedelta64(pd.Timedelta(o)) for o in offsets
                  for k in range(2)]
        places = own.get_indexer(pd.DatetimeIndex(labels))
        if (places >= 0).all():
            starts.append(s)
            wanted.append(imerg.precipitation.values[places])
    made = sources.tensors(view)
    assert len(starts) > 5
    assert np.array_equal(made["rain"], np.stack(wanted))
    assert np.array_equal(made["x"], np.stack([anchor.t2m.values[s:s + 2] for s in starts]))
    stacked = view | {"tensors": {"both": {"variables": ["t2m", "imerg:precipitation"],
                                           "stack": "channel", "dims": ["channel", "lat", "lon"],
                                           "offsets": {"time": ["-6h", "0h"]}}}}
    made = sources.tensors(stacked)["both"]
    schema = sources.plan(stacked)
    assert made.shape[1:] == (8, 5, 6) and schema["samples"] == len(made)


def test_a_dimension_of_another_source_alone(sources):
    levels = xr.Dataset({"z": (("time", "level", "lat", "lon"), np.random.default_rng(2)
                                   .standard_normal((60, 3, 5, 6)).astype("f4"))},
                        {"time": START + np.arange(60) * 6 * HOUR, "level": [500, 700, 850],
                         "lat": LATS, "lon": LONS})
    sources.add("upper", levels, chunks={"time": 5, "level": 1})
    view = {"sources": {"era5": {}, "upper": {"store": "upper", "join": {"time": "exact"}}},
            "select": {"level": [850, 500]}, "window": {"time": 1}, "batch": 1000, "tensors": {
                "x": {"variables": ["t2m", "upper:z"], "stack": "channel"}}}
    made = sources.tensors(view)["x"][:, :, 0]
    a, b = xr.align(sources.data["anchor"], sources.data["upper"], join="inner", exclude=["level"])
    b = b.sel(level=[850, 500])
    assert np.array_equal(made[:, 0], a.t2m.values)
    assert np.array_equal(made[:, 1:], b.z.values)


def test_groups_of_the_first_store_are_sources_too(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    path = sources.stores["anchor"]
    extra = fields(21, START + np.arange(9) * 24 * HOUR, "rain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extra.to_zarr(path, group="daily", mode="a", consolidated=False, zarr_format=3)
        import zarr
        zarr.consolidate_metadata(path)
    view = {"sources": {"era5": {}, "day": {"group": "daily", "join": {"time": {"pick": "last"}}}},
            "window": {"time": 1}, "batch": 1000, "variables": ["t2m", "day:rain"]}
    made = sources.tensors(view)["day:rain"][:, 0]
    wanted = extra.rain.sel(time=sources.data["anchor"].time, method="pad")
    assert np.array_equal(made, wanted.values)


def test_statistics_are_of_what_samples_reach(sources):
    view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"])
    a, b = xr.align(sources.data["anchor"], sources.data["rain"], join="inner")
    found = json.loads(sources.batchfs.bytes("statistics", *sources.command(view),
                                             "--json"))["variables"]
    for name, values in (("t2m", a.t2m), ("rain:tp", b.tp)):
        values = values.values.astype("f8")
        assert found[name]["count"] == values.size
        np.testing.assert_allclose([found[name]["mean"], found[name]["std"]],
                                   [values.mean(), values.std()], rtol=1e-9)
    view["normalize"] = {"method": "zscore", "statistics": {"variables": found}}
    made = sources.tensors(view)["rain:tp"]
    np.testing.assert_allclose(made.mean(), 0, atol=1e-6)


def test_missing_values_of_any_source_are_skipped(sources):
    rain = sources.data["rain"].copy(deep=True)
    rain.tp[[3, 20], 1, 2] = np.nan
    sources.add("holes", rain)
    view = {"sources": {"era5": {},
                        "holes": {"store": "holes", "join": {"time": "exact", "lat": "exact"}}},
            "window": {"time": 1}, "batch": 1000, "missing": {"nan": "skip"},
            "variables": ["t2m", "holes:tp"]}
    a, b = xr.align(sources.data["anchor"], sources.data["holes"], join="inner")
    keep = ~np.isnan(b.tp.values).any((1, 2))
    assert np.array_equal(sources.tensors(view)["t2m"][:, 0], a.t2m.values[keep])


def test_a_shuffled_epoch_has_each_sample_once(sources):
    for order in ({"shuffle": "global", "seed": 4}, {"shuffle": "block", "seed": 4}):
        view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"], order=order)
        a, b = xr.align(sources.data["anchor"], sources.data["rain"], join="inner")
        made = sources.tensors(view)
        number = {v.tobytes(): i for i, v in enumerate(a.t2m.values)}
        found = [number[v[0].tobytes()] for v in made["t2m"]]
        assert sorted(found) == list(range(a.sizes["time"]))
        assert np.array_equal(made["rain:tp"][:, 0], b.sel(lat=a.lat).tp.values[found])


def test_provenance_names_the_source(sources):
    view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"], batch=2)
    text = sources.batchfs.bytes("batch", *sources.command(view), "--format", "json")
    chunks = json.loads(text)["chunks"]
    assert any(name.startswith("rain:tp/") for name in chunks)
    assert any(name.startswith("t2m/") for name in chunks)


def test_refusals_are_one_line_that_says_what_to_do(sources):
    def refused(changes, stores=None, **more):
        view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"]) | more
        view["sources"] = view["sources"] | changes
        return sources.refusal(view, stores)

    assert "add --store rain=URL" in refused({}, stores=["static"])
    text = refused({"rain": {"store": "rain", "join": {"lat": "exact"}}})
    assert ("'time' is another dimension than in 'era5'" in text
            and '"join": {"time": "exact"}' in text)
    late = fields(1, START + np.arange(5) * 6 * HOUR + np.timedelta64(3650, "D"), "tp")
    sources.add("late", late)
    text = refused({"late": {"store": "late", "join": {"time": "exact"}}}, variables=["late:tp"])
    assert "no label is in both" in text and "2000-01-0" in text and "2009-12-29" in text
    doubled = fields(1, np.repeat(START + np.arange(3) * 6 * HOUR, 2), "tp")
    sources.add("doubled", doubled)
    text = refused({"doubled": {"store": "doubled", "join": {"time": {"pick": "last"}}}},
                   variables=["doubled:tp"])
    assert ("'time' of 'doubled' has the label 2000-01-01" in text
            and "twice, at positions 0 and 1" in text)
    calendar = xr.Dataset({"tp": (("time",), np.zeros(3))}, {"time": ("time", [0, 1, 2], {
        "units": "days since 2000-01-01", "calendar": "360_day"})})
    sources.stores["calendar"] = sources.folder / "calendar.zarr"
    calendar.to_zarr(sources.stores["calendar"], consolidated=False)
    text = refused({"calendar": {"store": "calendar", "join": {"time": "exact"}}},
                   variables=["calendar:tp"])
    assert "of the calendar 360_day" in text
    assert "no variable 'rain:pt', did you mean 'rain:tp'?" in refused({}, variables=["rain:pt"])
    assert "has no dimension 'tim'" in refused({"rain": {"store": "rain",
                                                         "join": {"tim": "exact"}}})
    assert "'asof' is none of exact, nearest, last, next" in refused(
        {"rain": {"store": "rain", "join": {"time": "asof"}}})
    assert "not by URL" in refused({"rain": {"store": "s3://bucket/b.zarr"}})
    assert "no \"join\" itself" in refused({"era5": {"join": {"time": "exact"}}})
    assert "lacks 1 of 5 labels of 'lat'" in refused(
        {"half": {"store": "half", "join": {"time": "exact", "lat": "exact"}}},
        variables=["t2m", "half:tp"],
        **({} if sources.add("half", sources.data["rain"].isel(lat=slice(0, 4))) else {}))
    assert "has no fixed length" in refused({}, tensors={
        "r": {"variables": ["rain:tp"], "offsets": {"time": ["1mo"]}}})
    assert "no store 'a' is given" in refused({"rain": {"stores": ["a", "b"], "concat": "time"}})
    assert "has no \"group\": name the \"group\" in a source" in refused({}, group="/")
    assert "tolerance" in refused({"rain": {"store": "rain",
                                            "join": {"time": {"pick": "last", "tolerance": 3}}}})


@pytest.mark.parametrize("seed", range(12))
def test_random_stores_and_windows(batchfs, tmp_path, seed):
    """Windows of any size, stride, edge and circle over random labels: numpy finds each element by
    its label."""
    rng = np.random.default_rng(seed)
    count, lons = int(rng.integers(8, 40)), int(rng.choice([4, 6, 8]))
    sources = Sources(batchfs, tmp_path)
    anchor = fields(seed, START + np.sort(rng.choice(60, count, replace=False)) * HOUR, "t2m", LATS,
                    np.arange(lons) * 360.0 / lons)
    own = rng.permutation(np.union1d(rng.choice(60, 45, replace=False), [0, 59]))
    lon_order, lat_order = rng.permutation(lons), rng.permutation(len(LATS))
    other = fields(seed + 100, START + own * HOUR, "tp", LATS[lat_order],
                   anchor.lon.values[lon_order])
    sources.add("a", anchor, chunks={"time": int(rng.integers(1, 9)), "lon": 3})
    sources.add("b", other,
                chunks={"time": int(rng.integers(1, 9)), "lat": 2, "lon": int(rng.integers(1, 5))})
    sources.stores["anchor"] = sources.stores.pop("a")
    pads = bool(rng.integers(2))
    size, stride = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    edge = "pad" if rng.integers(2) else "drop"
    lon_size, offsets = int(rng.integers(1, lons + 1)), sorted(
        rng.choice(4, int(rng.integers(1, 3)), replace=False).tolist())
    view = {"sources": {"a": {}, "b": {"store": "b", "join": {
                "time": {"pick": "exact", "missing": "pad" if pads else "drop"}, "lat": "exact",
                "lon": "exact"}}},
            "select": {"lat": [float(v) for v in LATS[rng.permutation(len(LATS))[:3]]]},
            "window": {"time": {"size": size, "stride": stride, "edge": edge},
                       "lon": {"size": lon_size, "stride": 2, "wrap": True}},
            "tensors": {"x": {"variables": ["t2m"]},
                        "y": {"variables": ["b:tp"], "offsets": {"time": offsets}}},
            "batch": 100000}
    by_label = {(t, la, lo): v for t, row in zip(other.time.values, other.tp.values)
                for la, line in zip(other.lat.values, row) for lo, v in zip(other.lon.values, line)}
    times, lats, all_lons = anchor.time.values, view["select"]["lat"], anchor.lon.values
    wanted = []
    room = count - size - max(offsets)
    whole = list(range(0, room + 1, stride))
    after = whole[-1] + stride if whole else 0
    if edge == "pad" and (not whole or whole[-1] < room) and after + max(offsets) < count:
        whole.append(after)
    for start in whole:
        needed = [p for o in offsets for p in range(start + o, start + o + size) if p < count]
        if not pads and not all((times[p], lats[0], all_lons[0]) in by_label for p in needed):
            continue
        for west in range(0, lons, 2):
            wanted.append([[[by_label.get((times[p], la, all_lons[(west + k) % lons]), np.nan)
                             if p < count else np.nan for k in range(lon_size)] for la in lats]
                           for o in offsets for p in range(start + o, start + o + size)])
    if not wanted:
        assert ("no sample is left" in sources.refusal(view, ["b"])
                or "no window of" in sources.refusal(view, ["b"]))
        return
    made = sources.tensors(view)["y"]
    assert np.array_equal(made, np.array(wanted, "f4"), equal_nan=True)


@pytest.fixture
def served(tmp_path):
    """A web server of the folder: the URL of a store in it."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.log_message = lambda *arguments: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield lambda name: f"http://127.0.0.1:{server.server_port}/{name}.zarr"
    server.shutdown()


def test_a_remote_store_beside_a_local_one(batchfs, tmp_path, served):
    sources = Sources(batchfs, tmp_path)
    sources.stores |= {"rain": served("rain"), "static": served("static")}
    view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp", "static:lsm"])
    a, b = xr.align(sources.data["anchor"], sources.data["rain"], join="inner")
    made = sources.tensors(view)
    assert np.array_equal(made["t2m"][:, 0], a.t2m.values)
    assert np.array_equal(made["rain:tp"][:, 0], b.sel(lat=a.lat).tp.values)
    assert np.array_equal(made["static:lsm"][0], sources.data["static"].lsm.values)
    cache = tmp_path / "cache"
    text = batchfs.bytes("warm", *sources.command(view), "--cache-dir", cache).decode()
    assert text and any(cache.rglob("*"))
    assert np.array_equal(made["rain:tp"], np.load(io.BytesIO(batchfs.bytes(
        "batch", *sources.command(view), "--cache-dir", cache, "--format", "npz")))["rain:tp"])


def test_check_says_to_check_each_store(sources):
    view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"])
    text = sources.batchfs.refusal("check", *sources.command(view))
    assert f"one store is checked at a time: batchfs check {sources.stores['rain']}" in text


def test_a_split_needs_a_gap_for_durations(sources):
    view = two({"time": "exact"}, window={"time": 1},
               tensors={"x": {"variables": ["t2m"]},
                        "y": {"variables": ["rain:tp"], "offsets": {"time": ["-6h", "0h"]}}},
               split={"parts": {"train": "rest", "val": [{"time": {"from": "2000-01-08"}}]}})
    assert "give a \"gap\" along 'time'" in sources.refusal(view)
    view["split"]["gap"] = {"time": "12h"}
    plan = sources.plan(view)
    assert plan["parts"]["train"]["samples"] > 0 and plan["parts"]["val"]["samples"] > 0


@pytest.mark.parametrize("at_most", [0, 0.2])
def test_missing_values_at_looked_up_times_are_skipped(sources, at_most):
    hourly = fields(31, START + np.arange(300) * HOUR, "p")
    holes = np.random.default_rng(4).choice(300, 40, replace=False)
    hourly.p[holes, 2, 3] = np.nan
    sources.add("hourly", hourly, chunks={"time": 16})
    offsets = ["-2h", "0h", "1h"]
    view = {"sources": {"era5": {}, "h": {"store": "hourly", "join": {"time": "exact"}}},
            "window": {"time": 1}, "batch": 1000,
            "missing": {"nan": "skip", "at_most": at_most, "variables": ["y"]},
            "tensors": {"x": {"variables": ["t2m"]},
                        "y": {"variables": ["h:p"], "offsets": {"time": offsets}}}}
    anchor, own = sources.data["anchor"], sources.data["hourly"]
    kept = []
    for s, time in enumerate(anchor.time.values):
        labels = [time + np.timedelta64(pd.Timedelta(o)) for o in offsets]
        if all(label in own.get_index("time") for label in labels):
            if np.isnan(own.p.sel(time=labels).values).mean() <= at_most:
                kept.append(s)
    assert 0 < len(kept)
    assert np.array_equal(sources.tensors(view)["x"][:, 0], anchor.t2m.values[kept])


def test_listed_windows_need_a_match(sources):
    anchor, rain = sources.data["anchor"], sources.data["rain"]
    places = rain.get_index("time").get_indexer(anchor.get_index("time"))
    have, lack = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
    np.save(sources.folder / "rows.npy", have[::-1, None])
    view = two({"time": "exact"}, window={"time": 1}, variables=["t2m", "rain:tp"],
               samples={"list": "rows.npy"})
    assert np.array_equal(sources.tensors(view)["rain:tp"][:, 0],
                          rain.tp.values[places[have[::-1]]][:, ::-1])
    np.save(sources.folder / "rows.npy", lack[:1, None])
    assert f"the window at {lack[0]} needs labels that another source lacks" in sources.refusal(
        view)


@pytest.mark.parametrize("offsets", [["0h"], ["0h", "6h"], [0, 1]], ids=str)
def test_made_channels_beside_those_of_another_source(sources, offsets):
    """Their times are those of the first source."""
    day = {"make": "cos_julian_day"}
    view = two({"time": {"pick": "last", "tolerance": "36h"}}, window={"time": 1}, tensors={
        "x": {"variables": [day, "t2m", "rain:tp", {"make": "cos_latitude", "units": "degrees"},
                            "static:lsm"],
              "stack": "channel", "broadcast": True, "offsets": {"time": offsets}}})
    alone = two({"time": {"pick": "last", "tolerance": "36h"}}, window={"time": 1},
                tensors={"x": {"variables": ["t2m", "rain:tp", "static:lsm"], "stack": "channel",
                               "broadcast": True, "offsets": {"time": offsets}},
                         "t": {"variables": ["t2m"], "offsets": {"time": offsets}},
                         "d": {"variables": [day], "offsets": {"time": offsets}}})
    made, plain = sources.tensors(view)["x"], sources.tensors(alone)
    assert np.array_equal(made[:, [1, 2, 4]], plain["x"], equal_nan=True)
    anchor = sources.data["anchor"]
    step = {value.tobytes(): i for i, value in enumerate(anchor.t2m.values)}
    for sample in range(len(made)):
        for o in range(len(offsets)):
            time = pd.Timestamp(anchor.time.values[step[made[sample, 1, o].tobytes()]])
            fraction = (time - time.normalize()) / pd.Timedelta("1D")
            expected = np.float32(np.cos(2 * np.pi * (time.dayofyear - 1 + fraction) / 365.25))
            np.testing.assert_allclose(made[sample, 0, o], expected, rtol=2e-7, atol=1e-7)
    np.testing.assert_allclose(made[:, 3],
                               np.broadcast_to(np.cos(np.deg2rad(LATS))[:, None], made[:, 3].shape),
                               rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("offsets", [[0], [-1, 0]])
def test_channels_made_of_variables_of_two_sources(sources, offsets):
    view = two({"time": {"pick": "last", "tolerance": "12h"}}, window={"time": 1}, tensors={
        "x": {"variables": ["t2m", {"make": "difference", "of": ["era5:t2m", "rain:tp"]}],
              "stack": "channel", "offsets": {"time": offsets}},
        "y": {"variables": [{"make": "product", "of": ["rain:tp", "static:lsm"]}],
              "stack": "channel"}})
    anchor = sources.data["anchor"]
    rain = sources.data["rain"].tp.sel(lat=LATS)
    near = rain.indexes["time"].get_indexer(anchor.time.values, method="pad",
                                            tolerance=pd.Timedelta("12h"))
    rows = [i for i in range(-min(offsets), len(near)) if all(near[i + o] >= 0 for o in offsets)]
    assert 0 < len(rows) <= len(near)
    got = sources.tensors(view)
    for o, offset in enumerate(offsets):
        tp = rain.values[[near[i + offset] for i in rows]].astype("f8")
        t2m = anchor.t2m.values[[i + offset for i in rows]]
        assert np.array_equal(got["x"][:, 1, o], (t2m.astype("f8") - tp).astype("f4"))
        if offset == 0:
            lsm = sources.data["static"].lsm.values.astype("f8")
            assert np.array_equal(got["y"][:, 0, 0], (tp * lsm).astype("f4"))


@pytest.mark.parametrize("missing", ["drop", "pad"])
def test_statistics_of_channels_of_several_sources_are_those_of_their_batches(sources, missing):
    """Statistics of the batches' values before normalization; padding does not count."""
    view = two({"time": {"pick": "exact", "missing": missing}}, window={"time": 1}, dtype="float64",
               tensors={
                   "x": {"variables": [{"make": "difference", "of": ["era5:t2m", "rain:tp"]},
                                       {"make": "sum", "of": ["rain:tp", "rain:tp"]}],
                         "stack": "channel"},
                   "y": {"variables": [{"make": "product", "of": ["rain:tp", "static:lsm"]}],
                         "stack": "channel"}})
    values = sources.tensors(view | {"batch": 10000})
    for options in ([], ["--threads", "1"]):
        numbers = json.loads(sources.batchfs.bytes("statistics", *sources.command(view), "--json",
                                                   "--quantiles", *options))["variables"]
        for name, tensor, channel in (("difference", "x", 0), ("sum", "x", 1), ("product", "y", 0)):
            delivered = values[tensor][:, channel]
            assert np.isnan(delivered).any() == (missing == "pad")
            delivered = delivered[~np.isnan(delivered)]
            entry = numbers[name]
            assert (entry["count"], entry["nan"]) == (delivered.size, 0)
            assert (entry["min"], entry["max"]) == (delivered.min(), delivered.max())
            np.testing.assert_allclose([entry["mean"], entry["std"]],
                                       [delivered.mean(), delivered.std()], rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(entry["median"], np.median(delivered), rtol=1e-9, atol=1e-12)
