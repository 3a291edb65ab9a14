"""Selections on the command line and in views are xarray's: random labels, ranges, partial dates
and positions, and ranges that go round a circle of longitudes.

Each seed is one store and a number of questions. BATCHFS_SELECTION_SEEDS=100:200 asks others than
the usual ones.
"""

import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

warnings.filterwarnings("ignore")
FIRST, LAST = map(int, os.environ.get("BATCHFS_SELECTION_SEEDS", "0:3").split(":"))


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def longitudes(rng):
    """Once round the globe, or a part of it; from 0, from -180 or from anywhere; float32 or
    float64."""
    step = pick(rng, 2.5, 5.0, 10.0)
    n = int(360 / step) if rng.random() < 0.7 else int(rng.integers(4, 360 / step))
    first = pick(rng, 0.0, -180.0, step * int(rng.integers(-40, 40)))
    return (first + step * np.arange(n)).astype(pick(rng, "f4", "f8"))


def make_store(rng, path):
    n = int(rng.integers(20, 60))
    hours = int(pick(rng, 1, 6, 24, 24 * 10))
    coords = {
        "time": pd.date_range("1999-12-20", periods=n, freq=f"{hours}h"),
        "level": np.array([1000, 850, 500, 200])[:: pick(rng, 1, -1)],
        "lat": np.linspace(80, -80, 17)[:: pick(rng, 1, -1)],
        "lon": longitudes(rng),
        "site": np.array(["bergen", "oslo", "tromso"]),
    }
    shape = {name: len(values) for name, values in coords.items()}
    dataset = xr.Dataset(
        {"v": (("time", "level", "lat"),
               rng.normal(size=[shape[d] for d in ("time", "level", "lat")]).astype("f4")),
         "w": (("lat", "lon"), rng.normal(size=[shape["lat"], shape["lon"]]).astype("f4")),
         "s": (("site", "level"), rng.normal(size=[3, 4]).astype("f4"))}, coords)
    dataset["lon"].attrs = pick(rng, {}, {"units": "degrees_east"},
                                {"standard_name": "longitude", "units": "degrees"})
    dataset.to_zarr(path, zarr_format=2, encoding={
        "v": {"chunks": (7, 3, 5)}, "w": {"chunks": (6, int(rng.integers(3, shape["lon"] + 1)))}})
    return xr.open_zarr(path)


def date(rng, times):
    """A date near the store's times, from years to hours."""
    moment = times[0] + (times[-1] - times[0]) * float(rng.uniform(-0.3, 1.3))
    return pd.Timestamp(moment).strftime(pick(rng, "%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H",
                                              "%Y-%m-%dT%H:00"))


def number(rng, values):
    """One of the values, or a number near them."""
    if rng.random() < 0.6:
        return float(values[rng.integers(len(values))])
    return round(float(rng.uniform(values.min() - 20, values.max() + 20)), 1)


def write(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def question(rng, dataset):
    """A variable, a dimension of it, how a selection is typed and written in a view, and xarray's
    answer or None."""
    name = pick(rng, "v", "v", "w", "s")
    array = dataset[name]
    dim = pick(rng, *[d for d in array.dims if d != "lon"])
    index = dataset.indexes[dim]
    label = ((lambda: date(rng, index)) if dim == "time" else (lambda: number(rng, index.values))
             if dim != "site" else (lambda: pick(rng, "bergen", "oslo", "tromso", "rome", "m")))
    ask = pick(rng, "one", "range", "range", "open", "list", "position", "positions")
    if ask == "one":
        a = label()
        return array, dim, write(a), a, lambda: array.sel({dim: a})
    if ask == "list":
        labels = [label() for _ in range(rng.integers(2, 4))]
        if dim == "time":  # in xarray a list has whole labels
            labels = [str(np.datetime64(index[rng.integers(len(index))], "s")) for _ in labels]
        return array, dim, ",".join(map(write, labels)), labels, lambda: array.sel({dim: labels})
    if ask == "position":
        i = int(rng.integers(-len(index) - 2, len(index) + 2))
        return array, dim, f"#{i}", f"#{i}", lambda: array.isel({dim: i})
    if ask == "positions":
        a, b = (int(rng.integers(-len(index) - 2, len(index) + 2)) for _ in range(2))
        return array, dim, f"#{a}:#{b}", {"from": f"#{a}", "to": f"#{b}"}, lambda: array.isel(
            {dim: slice(a, b)})
    a, b = label(), label()
    if ask == "open":
        if rng.random() < 0.5:
            a = None
        else:
            b = None
        ends = slice(a, b)
    else:
        # The ends in either order: xarray wants that of the index.
        whole = (lambda x: pd.Period(x).start_time) if dim == "time" else (lambda x: x)
        low, high = sorted((a, b), key=whole)
        ends = slice(low, high) if index.is_monotonic_increasing else slice(high, low)
    typed = f"{'' if a is None else write(a)}:{'' if b is None else write(b)}"
    written = {key: end for key, end in (("from", a), ("to", b)) if end is not None}
    return array, dim, typed, written, lambda: array.sel({dim: ends})


def answer(ask):
    """xarray's values; None where there are none."""
    try:
        values = ask().values
    except (KeyError, IndexError):
        return None
    return values if values.size else None


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_selections_are_xarrays(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    dataset = make_store(rng, tmp_path / "s.zarr")
    for _ in range(30):
        array, dim, typed, written, ask = question(rng, dataset)
        expected = answer(ask)
        said = (array.name, f"{dim}={typed}")
        if expected is None:
            line = batchfs.refusal("cat", tmp_path / "s.zarr", array.name, "--select",
                                   f"{dim}={typed}")
            assert f"--select {dim}={typed}: " in line, said
        else:
            ours = batchfs.npy("cat", tmp_path / "s.zarr", array.name, "--select", f"{dim}={typed}")
            np.testing.assert_array_equal(ours, expected, err_msg=str(said))
        if rng.random() < 0.25:
            in_a_view(batchfs, tmp_path, array, dim, written, expected)


def in_a_view(batchfs, tmp_path, array, dim, written, expected):
    """One sample is the whole selection of one row of another dimension."""
    other = next(d for d in array.dims if d != dim)
    view = {"variables": [array.name], "select": {dim: written}, "window": {other: 1},
            "batch": array.sizes[other]}
    (tmp_path / "v.json").write_text(json.dumps(view))
    arguments = (tmp_path / "s.zarr", "--view", tmp_path / "v.json")
    if expected is None:
        assert f"select.{dim}: " in batchfs.refusal("plan", *arguments)
        return
    ours = batchfs.npy("batch", *arguments)
    axis = array.dims.index(other) - (expected.ndim < array.ndim
                                      and array.dims.index(dim) < array.dims.index(other))
    np.testing.assert_array_equal(ours, np.expand_dims(np.moveaxis(expected, axis, 0), 1 + axis),
                                  err_msg=str(view))


# ---- steps, lists of ranges, parts of dates, the nearest label ----


def wish(rng, dataset):
    """Like question()."""
    name = pick(rng, "v", "v", "w")
    array = dataset[name]
    ask = pick(rng, "step", "ranges", "field", "nearest", "nearest list")
    dim = "time" if ask == "field" else pick(rng, *[
        d for d in array.dims if d not in ("lon", *(["time"] if "n" in ask[:1] else []))])
    if dim not in array.dims:
        array, name = dataset.v, "v"
    index = dataset.indexes[dim]

    def ends():
        i, j = sorted(rng.integers(0, len(index), 2))
        return [str(np.datetime64(index[k], "s")) if dim == "time" else float(index[k])
                for k in (i, j)]

    if ask == "step":
        (a, b), step = ends(), int(rng.integers(1, 6))
        return (array, dim, f"{dim}={write(a)}:{write(b)}:step={step}",
                {"from": a, "to": b, "step": step}, lambda: array.sel({dim: slice(a, b, step)}))
    if ask == "ranges":
        both = [ends(), ends()]
        order = dict.fromkeys(int(i) for a, b in both
                              for i in np.arange(len(index))[index.slice_indexer(a, b)])
        return (array, dim, f"{dim}=" + ",".join(f"{write(a)}:{write(b)}" for a, b in both),
                [{"from": a, "to": b} for a, b in both], lambda: array.isel({dim: list(order)}))
    if ask == "field":
        field = pick(rng, "year", "month", "day", "hour", "minute", "weekday", "dayofyear",
                     "season")
        a, b = ends()
        step = int(rng.integers(1, 3))
        values = array.time.dt.season.values if field == "season" else getattr(index, field)
        wanted = sorted({*np.asarray(values)[rng.integers(0, len(index), 2)].tolist()})

        def passing():
            part = array.sel(time=slice(a, b, step))
            of = part.time.dt.season if field == "season" else getattr(part.time.dt, field)
            return part.isel(time=np.flatnonzero(of.isin(wanted)))

        return (array, dim,
                [f"time={a}:{b}:step={step}", f"time.{field}={','.join(map(str, wanted))}"],
                {"from": a, "to": b, "step": step, field: wanted}, passing)
    labels = [round(float(rng.uniform(index.min() - 50, index.max() + 50)), 1)
              for _ in range(1 if ask == "nearest" else 3)]
    tolerance = pick(rng, None, 4.0, 60.0)
    typed = f"{dim}={','.join(map(write, labels))}:nearest" + (
        f":tolerance={tolerance:g}" if tolerance else "")
    chosen = labels if ask == "nearest list" else labels[0]
    written = {"nearest": chosen, **({"tolerance": tolerance} if tolerance else {})}
    ordered = array.sortby(dim)  # as pandas wants it
    return array, dim, typed, written, lambda: ordered.sel({dim: chosen}, method="nearest",
                                                           tolerance=tolerance)


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_steps_ranges_parts_of_dates_and_the_nearest_are_xarrays(batchfs, tmp_path, seed):
    rng = np.random.default_rng(5000 + seed)
    dataset = make_store(rng, tmp_path / "s.zarr")
    for _ in range(20):
        array, dim, typed, written, ask = wish(rng, dataset)
        expected = answer(ask)
        typed = typed if isinstance(typed, list) else [typed]
        options = [word for text in typed for word in ("--select", text)]
        if expected is None:
            line = batchfs.refusal("cat", tmp_path / "s.zarr", array.name, *options)
            assert "--select " in line and dim in line, typed
        else:
            ours = batchfs.npy("cat", tmp_path / "s.zarr", array.name, *options)
            np.testing.assert_array_equal(ours, expected, err_msg=str(typed))
        if rng.random() < 0.3:
            in_a_view(batchfs, tmp_path, array, dim, written, expected)


def test_an_empty_selection_names_the_restriction(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=40, freq="6h")
    xr.Dataset({"v": (("time", "x"), np.zeros((40, 3)))},
               {"time": times, "x": [1.0, 2.0, 5.0]}).to_zarr(tmp_path / "s.zarr", zarr_format=2)
    refused = lambda *typed: batchfs.refusal(  # noqa: E731
        "cat", tmp_path / "s.zarr", "v", *[word for text in typed for word in ("--select", text)])
    assert ("--select time.month=7: none of 40 times of 'time', from 2000-01-01T00:00:00 to "
            "2000-01-10T18:00:00, has month 7" in refused("time.month=7"))
    line = refused("time=2000-01-02:2000-01-03", "time.hour=0,12", "time.weekday=5")
    assert ("none of 8 times of 'time', from 2000-01-02T00:00:00" in line
            and "has hour 0, 12 and weekday 5" in line)
    assert "no label of 'x' within 0.5 of '4'; the nearest is 5.0" in refused(
        "x=4:nearest:tolerance=0.5")
    assert "'x' holds no times" in refused("x.month=6")
    assert "'months' is not a field of a time; there are year, month" in refused("time.months=6")
    assert "no dimension 'y'" in refused("y.month=6")
    assert "from 1 to 12" in refused("time.month=13")
    for select, words in (({"month": 13}, "select.time.month: '13' is not a month"),
                          ({"step": 0}, "select.time.step: "),
                          ({"season": ["winter"]},
                           "select.time.season[0]: 'winter' is not a season"),
                          ({"hour": [3]}, "select.time: none of 40 times"),
                          ({"months": [3]}, '"month": [6, 7, 8]')):
        (tmp_path / "v.json").write_text(json.dumps({"select": {"time": select},
                                                     "window": {"x": 1}}))
        assert words in batchfs.refusal("plan", tmp_path / "s.zarr", "--view", tmp_path / "v.json")


# ---- circles ----


def around(array, start, end):
    """From start up to end, modulo 360, in this order: xarray's, on longitudes that are counted
    from start."""
    turned = array.assign_coords(lon=(array.lon.astype("f8") - start) % 360).sortby("lon")
    length = 360.0 if end != start and (end - start) % 360 == 0 else (end - start) % 360
    turned = turned.sel(lon=slice(0, length))
    return turned.assign_coords(lon=("lon", array.lon.values[[  # as stored
        int(np.flatnonzero((array.lon.values.astype("f8") - start) % 360 == lon)[0])
        for lon in turned.lon.values]]))


def test_the_oracle_is_roll_and_concat(tmp_path):
    lon = np.arange(0, 360, 10.0)
    array = xr.DataArray(np.arange(36), dims="lon", coords={"lon": lon})
    joined = xr.concat([array.sel(lon=slice(350, None)), array.sel(lon=slice(None, 30))], "lon")
    xr.testing.assert_identical(around(array, 350.0, 30.0), joined)
    xr.testing.assert_identical(around(array, -180.0, 180.0), array.roll(lon=18, roll_coords=True))


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_ranges_that_go_round(batchfs, tmp_path, seed):
    rng = np.random.default_rng(1000 + seed)
    dataset = make_store(rng, tmp_path / "s.zarr")
    lon = dataset.lon.values.astype("f8")
    for _ in range(12):
        start = float(pick(rng, *lon)) + 360 * int(rng.integers(-1, 2)) + pick(rng, 0.0, 0.0, 0.5)
        end = start + float(rng.integers(-72, 73)) * 5
        expected = around(dataset.w, start, end)
        typed = f"lon={start:g}:{end:g}:wrap"
        if expected.size == 0:
            assert "nothing of 'lon'" in batchfs.refusal("cat", tmp_path / "s.zarr", "w",
                                                         "--select", typed)
            continue
        np.testing.assert_array_equal(batchfs.npy("cat", tmp_path / "s.zarr", "w", "--select",
                                                  typed), expected, err_msg=typed)
        np.testing.assert_array_equal(batchfs.npy("cat", tmp_path / "s.zarr", "lon", "--select",
                                                  typed), expected.lon)
        # Without wrap it returns all of this, or an error that shows how to write it.
        plain = batchfs.run("cat", tmp_path / "s.zarr", "w", "--select",
                            typed.removesuffix(":wrap"))
        if plain.returncode == 0:
            assert len(plain.stdout) >= expected.nbytes and start <= end, typed
        else:
            assert f"write {typed.removeprefix('lon=')} (in a view " in plain.stderr.decode(), typed


@pytest.mark.parametrize("seed", range(FIRST, min(LAST, FIRST + 3)))
def test_views_of_ranges_that_go_round(batchfs, tmp_path, seed):
    rng = np.random.default_rng(2000 + seed)
    dataset = make_store(rng, tmp_path / "s.zarr")
    lon = dataset.lon.values.astype("f8")
    start, length = float(pick(rng, *lon)), float(rng.integers(8, 60)) * 5
    selected = around(dataset.w, start, start + length)
    size = int(rng.integers(1, min(4, selected.sizes["lon"]) + 1))
    view = tmp_path / "v.json"
    view.write_text(json.dumps({
        "variables": ["w"], "select": {"lon": {"from": start, "to": start + length, "wrap": True}},
        "window": {"lon": size}, "batch": 3, "formats": ["zarr", "npy"]}))
    arguments = (tmp_path / "s.zarr", "--view", view)
    plan = json.loads(batchfs.bytes("plan", *arguments, "--json"))
    assert plan["samples"] == selected.sizes["lon"] // size
    assert {c["name"]: c["size"] for c in plan["coordinates"]}["lon"] == selected.sizes["lon"]
    patches = [selected.isel(lon=slice(i * size, (i + 1) * size)) for i in range(plan["samples"])]
    for batch in range(plan["batches"]):
        chosen = patches[3 * batch:3 * batch + 3]
        np.testing.assert_array_equal(batchfs.npy("batch", *arguments, "--batch", batch, "--format",
                                                  "npy"), np.stack([p.values for p in chosen]))
        about = json.loads(batchfs.bytes("batch", *arguments, "--batch", batch, "--format", "json"))
        assert about["coordinates"]["lon"] == [float(p.lon[0]) for p in chosen]
        stored = [int(np.flatnonzero(lon == float(p.lon[0]))[0]) for p in chosen]
        assert [window["lon"][0] for window in about["windows"]] == stored
        cells = {f"w/{i}.{j}" for i in range(3) for j in {
            int(np.flatnonzero(lon == float(x))[0]) // dataset.w.encoding["chunks"][1]
            for p in chosen for x in p.lon}}
        assert set(about["chunks"]) == cells
    numbers = json.loads(batchfs.bytes("statistics", *arguments, "--json"))["variables"]["w"]
    assert numbers["count"] == selected.size
    assert numbers["mean"] == pytest.approx(float(selected.astype("f8").mean()), rel=1e-9)
    assert numbers["min"] == float(selected.min())


def test_a_range_over_the_end_is_an_error_that_shows_wrap(batchfs, tmp_path):
    xr.Dataset({"t": (("lat", "lon"), np.zeros((3, 36), "f4"))},
               {"lat": [10, 5, 0],
                "lon": np.arange(0, 360, 10)}).to_zarr(tmp_path / "s.zarr", zarr_format=2)
    view = tmp_path / "v.json"
    for ends in ((350, 30), (-10, 30)):
        view.write_text(json.dumps({"select": {"lon": dict(zip(("from", "to"), ends))},
                                    "window": {"lat": 1}}))
        line = batchfs.refusal("plan", tmp_path / "s.zarr", "--view", view)
        assert f'{{"from": {ends[0]}, "to": {ends[1]}, "wrap": true}}' in line
    assert batchfs.npy("cat", tmp_path / "s.zarr", "t", "--select", "lat=0:10").shape == (3, 36)
    assert batchfs.npy("cat", tmp_path / "s.zarr", "t", "--select", "lat=10:0").shape == (3, 36)
