"""batchfs statistics against numpy, and normalising with what it wrote."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

T, L, Y, X = 29, 4, 12, 15


def dataset():
    rng = np.random.default_rng(8)
    q = rng.gamma(2.0, 3e-3, (T, L, Y, X))
    q[rng.random(q.shape) < 0.02] = np.nan
    q[:, 2, 5] = np.nan
    walk = np.cumsum(rng.standard_normal((T, Y, X)), 0) + 101325
    return xr.Dataset(
        {"msl": (("time", "lat", "lon"), walk),
         "t": (("time", "level", "lat", "lon"), rng.normal(250, 20, (T, L, Y, X)).astype("f4")),
         "q": (("time", "level", "lat", "lon"), q),
         "series": (("lat", "lon", "time"), rng.standard_normal((Y, X, T))),
         "count": (("time", "lat"), rng.integers(-1000, 1000, (T, Y)).astype("i4")),
         "empty": (("time",), np.full(T, np.nan)),
         "flag": (("time",), np.arange(T) % 2 == 0),
         "mask": (("lat", "lon"), rng.integers(0, 2, (Y, X)).astype("f4"))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
         "level": [300.0, 500.0, 700.0, 850.0], "lat": np.linspace(50, 40, Y),
         "lon": np.arange(X) * 1.0})


@pytest.fixture(scope="module",
                params=[(2, (5, 2, 12, 4)), (3, (1, 4, 12, 15)), (3, (29, 1, 5, 15))],
                ids=["v2", "step", "column"])
def store(request, tmp_path_factory):
    version, (t, l, y, x) = request.param
    path = tmp_path_factory.mktemp("statistics") / "s.zarr"
    ds = dataset()
    sizes = dict(time=t, level=l, lat=y, lon=x)
    encoding = {n: {"chunks": tuple(sizes[d] for d in v.dims)} for n, v in ds.data_vars.items()}
    encoding["t"] |= {"dtype": "i2", "scale_factor": 0.01, "add_offset": 250.0,
                      "_FillValue": -32768}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=True)
    return path, xr.open_zarr(path).load()


def statistics(batchfs, folder, store, view, *arguments):
    file = folder / "view.json"
    file.write_text(json.dumps(view))
    return json.loads(batchfs.bytes("statistics", store, "--view", file, "--json", *arguments))


def check(entry, values, axes):
    """Against numpy over `axes`; what is left stays."""
    values = values.astype("f8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = {"mean": np.nanmean(values, axes), "std": np.nanstd(values, axes),
                  "min": np.nanmin(values, axes), "max": np.nanmax(values, axes)}
    for key, expected in wanted.items():
        if key in entry:
            actual = np.array(entry[key], "f8")
            # a mean of both signs cancels
            scale = np.nanmax(np.abs(values)) if key == "mean" else 0
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14 * scale,
                                       err_msg=key)
    assert np.array_equal(entry["count"], np.sum(~np.isnan(values), axes))
    if "nan" in entry:
        assert np.array_equal(entry["nan"], np.sum(np.isnan(values), axes))


def test_every_variable_over_everything(batchfs, store, tmp_path):
    path, ds = store
    names = ["msl", "t", "q", "series", "count", "empty", "flag", "mask"]
    found = statistics(batchfs, tmp_path, path,
                       {"variables": names, "window": {"time": 3}})["variables"]
    assert list(found) == [n for n in names if n != "flag"]
    for name, entry in found.items():
        variable = ds[name]
        kept = [d for d in variable.dims if d == "level"]
        assert entry.get("dims", []) == kept
        assert entry.get("coordinates", {}) == {d: ds[d].values.tolist() for d in kept}
        axes = tuple(i for i, d in enumerate(variable.dims) if d != "level")
        check(entry, variable.values, axes)
        if "time" in variable.dims:
            assert entry["tendency"]["dim"] == "time"
            check(entry["tendency"],
                  np.diff(variable.values.astype("f8"), axis=variable.dims.index("time")), axes)
        else:
            assert "tendency" not in entry
    assert (found["empty"]["mean"] is None and found["empty"]["std"] is None
            and found["empty"]["nan"] == T)


@pytest.mark.parametrize("select", [
    {"time": {"from": "2001-01-02", "to": "2001-01-05"}, "level": [700, 300]},
    {"time": {"from": "#3", "to": "#28"}, "lat": {"from": "#2", "to": "#9"},
     "lon": ["#1", "#2", "#9", "#14"], "level": 500},
    {"time": ["#2", "#3", "#4", "#11", "#12", "#20"]},
])
def test_of_the_selection(batchfs, store, tmp_path, select):
    path, ds = store
    positions = {"time": [2, 3, 4, 11, 12, 20]} if isinstance(select["time"], list) else {}
    if "lat" in select:
        positions = {"time": slice(3, 28), "lat": slice(2, 9), "lon": [1, 2, 9, 14], "level": 1}
    sub = ds.isel(positions) if positions else ds.sel(time=slice("2001-01-02", "2001-01-05"),
                                                      level=[700, 300])
    found = statistics(batchfs,
                       tmp_path, path, {"variables": ["msl", "t", "q", "series"], "select": select,
                                        "window": {"time": 1}})["variables"]
    for name, entry in found.items():
        variable = sub[name]
        axes = tuple(i for i, d in enumerate(variable.dims) if d != "level")
        check(entry, variable.values, axes)
        check(entry["tendency"],
              np.diff(variable.values.astype("f8"), axis=variable.dims.index("time")), axes)


@pytest.mark.parametrize("size, of, hours",
                         [(1, "start", [0, 6]), (2, "start", [0, 6]), (3, "footprint", [0, 6, 12])])
@pytest.mark.parametrize(
    "select", [None, ["#0", "#1", "#2", "#4", "#5", "#8", "#9", "#10", "#11", "#12", "#13", "#28"]],
    ids=["all", "listed"])
def test_of_the_positions_that_samples_reach(batchfs, store, tmp_path, size, of, hours, select):
    path, ds = store
    view = {"variables": ["msl", "q", "series", "mask"],
            "window": {"time": {"size": size, "stride": 1}},
            "samples": {"where": {"time": {"hour": hours, "of": of}}}}
    selected = np.arange(T)
    if select:
        view["select"] = {"time": select}
        selected = np.array([int(position[1:]) for position in select])
    fits = np.isin(ds.time.dt.hour.values[selected], hours)
    windows = [range(s, s + size) for s in range(len(selected) - size + 1)]
    kept = [w for w in windows if (fits[w[0]] if of == "start" else fits[list(w)].all())]
    reached = sorted({i for w in kept for i in w})
    assert len(reached) < len(selected)
    found = statistics(batchfs, tmp_path, path, view)["variables"]
    for name, entry in found.items():
        dims = ds[name].dims
        axes = tuple(i for i, d in enumerate(dims) if d != "level")
        if "time" not in dims:
            check(entry, ds[name].values, axes)
            continue
        time = dims.index("time")
        values = np.take(ds[name].values, selected[reached], time)
        check(entry, values, axes)
        # Between neighbours of the selection only.
        follows = np.flatnonzero(np.diff(reached) == 1)
        check(entry["tendency"], np.take(np.diff(values.astype("f8"), axis=time), follows, time),
              axes)
    by_time = statistics(batchfs, tmp_path, path, view, "--per", "time")["variables"]["msl"]
    # Each selected position has its number: those of nothing where no sample reaches it.
    check({key: np.take(by_time[key], reached)
           for key in ("count", "nan", "mean", "std", "min", "max")},
          ds.msl.values[selected[reached]], (1, 2))
    for i in sorted(set(range(len(selected))) - set(reached)):
        assert [by_time[key][i] for key in ("count", "nan", "mean", "std", "min", "max")] == [
            0, 0, None, None, None, None]


def test_numbers_are_needed_where_samples_reach(batchfs, store, tmp_path):
    """With statistics of the positions that samples reach, that have a number each."""
    path, ds = store
    view = {"window": {"time": 1}, "batch": T, "variables": ["msl"],
            "samples": {"where": {"time": {"hour": [0, 6]}}},
            "normalize": {"method": "zscore", "statistics": "stats.json"}}
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view))
    batchfs.bytes("statistics", path, "--view", file, "--per", "time", "-o",
                  tmp_path / "stats.json")
    reached = np.flatnonzero(np.isin(ds.time.dt.hour.values, [0, 6]))
    kept = ds.msl.values[reached]
    wanted = (kept - kept.mean((1, 2), keepdims=True)) / kept.std((1, 2), keepdims=True)
    np.testing.assert_allclose(batchfs.npy("batch", path, "--view", file)[:, 0], wanted, rtol=1e-9,
                               atol=1e-9)
    file.write_text(json.dumps({key: value for key, value in view.items() if key != "samples"}))
    label = str(ds.time.values[np.setdiff1d(np.arange(T), reached)[0]].astype("M8[s]"))
    line = batchfs.refusal("plan", path, "--view", file)
    assert "there is no finite \"mean\" of" in line and label in line


@pytest.mark.parametrize("per", [["none"], ["lat"], ["level", "lon"], ["lat", "lon"], ["time"]],
                         ids="+".join)
def test_dimensions_that_are_kept(batchfs, store, tmp_path, per):
    path, ds = store
    arguments = [a for dim in per for a in ("--per", dim)]
    found = statistics(batchfs, tmp_path, path,
                       {"variables": ["t", "q", "series"], "window": {"time": 1}}, *arguments)
    for name, entry in found["variables"].items():
        dims = ds[name].dims
        assert entry.get("dims", []) == [d for d in dims if d in per]
        axes = tuple(i for i, d in enumerate(dims) if d not in per)
        check(entry, ds[name].values, axes)
        assert ("tendency" in entry) == ("time" not in per)
        if "time" not in per:
            check(entry["tendency"], np.diff(ds[name].values.astype("f8"), axis=dims.index("time")),
                  axes)


def test_tendency_along_another_dimension(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["q"], "window": {"time": 1}}
    entry = statistics(batchfs, tmp_path, path, view, "--tendency", "lon", "--per",
                       "none")["variables"]["q"]
    assert entry["tendency"]["dim"] == "lon"
    check(entry["tendency"], np.diff(ds.q.values, axis=3), (0, 1, 2, 3))
    assert "tendency" not in statistics(batchfs, tmp_path, path, view, "--tendency",
                                        "none")["variables"]["q"]


def test_threads_and_memory_change_nothing(batchfs, store, tmp_path):
    view = {"variables": ["msl", "q", "series"], "window": {"time": 1}}
    texts = set()
    for arguments in (["--threads", 1], ["--threads", 7], ["--threads", 3, "--memory", "1M"]):
        for _ in range(2):
            texts.add(json.dumps(statistics(batchfs, tmp_path, store[0], view, *arguments)))
    assert len(texts) == 1


def test_normalizing_with_the_file(batchfs, store, tmp_path):
    path, ds = store
    file = tmp_path / "view.json"
    view = {"variables": ["t", "msl"], "window": {"time": 1}, "batch": 4,
            "dtype": "float32", "select": {"level": [850, 300]},
            "normalize": {"method": "zscore", "statistics": "stats.json"}}
    file.write_text(json.dumps(view))
    assert "batchfs statistics" in batchfs.refusal("plan", path, "--view", file)
    table = batchfs.bytes("statistics", path, "--view", file, "-o",
                          tmp_path / "stats.json").decode()
    assert "level=850" in table and "msl" in table
    found = json.loads((tmp_path / "stats.json").read_text())["variables"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stats.json", "view.json"]
    for name in ("t", "msl"):
        values = (ds.t.sel(level=[850, 300]) if name == "t" else ds.msl).values
        shape = (-1, 1, 1) if name == "t" else ()
        mean, std = (np.array(found[name][key]).reshape(shape) for key in ("mean", "std"))
        batch = batchfs.npy("batch", path, "--view", file, "--batch", 2, "--tensor", name)
        expected = np.stack([((values[t:t + 1].astype("f8") - mean) / std).astype("f4")
                             for t in range(8, 12)])
        np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize("arguments, words", [
    (["--per", "levl"], "did you mean 'level'"),
    (["--tendency", "tim"], "did you mean 'time'"),
    (["-o", "/nowhere/stats.json"], "/nowhere/stats.json"),
])
def test_refusals(batchfs, store, tmp_path, arguments, words):
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"variables": ["t"], "window": {"time": 1}}))
    assert words in batchfs.refusal("statistics", store[0], "--view", file, *arguments)


def test_a_damaged_chunk_is_named(batchfs, tmp_path):
    ds = xr.Dataset({"v": (("time", "x"), np.arange(40.0).reshape(8, 5))})
    ds.to_zarr(tmp_path / "s.zarr", zarr_format=2, encoding={"v": {"chunks": (2, 5)}})
    (tmp_path / "s.zarr" / "v" / "2.0").write_bytes(b"damaged")
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"window": {"time": 1}}))
    assert "v/2.0" in batchfs.refusal("statistics", tmp_path / "s.zarr", "--view", file)


def test_quantiles_are_numpys_within_their_error(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["msl", "t", "q", "count", "empty", "mask"], "window": {"time": 3}}
    found = statistics(batchfs, tmp_path, path, view, "--quantiles")["variables"]
    for name, entry in found.items():
        values = ds[name].values.astype("f8")
        axes = tuple(i for i, d in enumerate(ds[name].dims) if d != "level")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = {key: np.nanquantile(values, q, axes)
                      for key, q in (("p25", 0.25), ("median", 0.5), ("p75", 0.75))}
        for key, expected in wanted.items():
            if name == "empty":
                assert entry[key] is None
            else:  # all have fewer distinct values than there are buckets
                np.testing.assert_allclose(np.array(entry[key], "f8"), expected, rtol=1e-15, atol=0,
                                           err_msg=f"{name} {key}")
                assert np.all(np.array(entry["quantile_error"]) == 0)
    without = statistics(batchfs, tmp_path, path, view)["variables"]
    assert "median" not in without["t"]
    for name in found:
        assert {key: value for key, value in found[name].items()
                if key in without[name]} == without[name]


def test_quantiles_of_more_values_than_buckets(batchfs, tmp_path):
    rng = np.random.default_rng(3)
    values = {"t": rng.normal(280, 20, (40, 100, 100)),
              "p": rng.normal(101325, 500, (40, 100, 100)).astype("f4"),
              "rain": np.exp(rng.normal(-12, 4, (40, 100, 100)))}
    xr.Dataset({name: (("time", "y", "x"), array) for name, array in values.items()}).to_zarr(
        tmp_path / "s.zarr", encoding={name: {"chunks": (7, 40, 100)} for name in values})
    view = {"window": {"time": 1}}
    found = statistics(batchfs, tmp_path, tmp_path / "s.zarr", view, "--quantiles", "--threads",
                       "2")
    assert found == statistics(batchfs, tmp_path, tmp_path / "s.zarr", view, "--quantiles",
                               "--threads", "1")
    for name, array in values.items():
        entry = found["variables"][name]
        spread = np.quantile(array.astype("f8"), 0.75) - np.quantile(array.astype("f8"), 0.25)
        for key, q in (("p25", 0.25), ("median", 0.5), ("p75", 0.75)):
            assert (abs(entry[key] - np.quantile(array.astype("f8"), q)) <= entry["quantile_error"]
                    <= 0.01 * spread)


def test_robust_reads_the_quantiles(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["t"], "window": {"time": 1}, "batch": T}
    (tmp_path / "s.json").write_text(json.dumps(statistics(batchfs, tmp_path, path, view,
                                                           "--quantiles")))
    view |= {"normalize": {"method": "robust", "statistics": "s.json"}, "dtype": "float64"}
    (tmp_path / "view.json").write_text(json.dumps(view))
    ours = batchfs.npy("batch", path, "--view", tmp_path / "view.json")[:, 0]
    values = ds.t.values.astype("f8")
    low, middle, high = (np.nanquantile(values, q, (0, 2, 3), keepdims=True)
                         for q in (0.25, 0.5, 0.75))
    np.testing.assert_allclose(ours, (values - middle) / (high - low), rtol=1e-12, atol=1e-14)
    (tmp_path / "s.json").write_text(json.dumps(statistics(batchfs, tmp_path, path, view)))
    (tmp_path / "view.json").write_text(json.dumps(view))
    assert "batchfs statistics --quantiles computes it" in batchfs.refusal(
        "plan", path, "--view", tmp_path / "view.json")


def log_view(path, method="zscore", **normalize):
    return {"window": {"time": 1}, "variables": ["q", "msl", "count"], "batch": T, "normalize":
                {"method": "log1p", "scale": 0.001, "then": method, "statistics": "stats.json"}
                | normalize}


@pytest.mark.parametrize("method", ["zscore", "minmax", "robust"])
def test_statistics_of_logarithms(batchfs, store, tmp_path, method):
    path, ds = store
    view = log_view(path, method, variables=["q", "count"])
    found = statistics(batchfs, tmp_path, path, view, "--quantiles")["variables"]
    logs = {name: np.log1p(np.maximum(ds[name].values.astype("f8"), 0) / 0.001)
            for name in ("q", "count")}
    check(found["q"], logs["q"], (0, 2, 3))
    check(found["count"], logs["count"], (0, 1))
    check(found["q"]["tendency"], np.diff(logs["q"], axis=0), (0, 2, 3))
    check(found["msl"], ds.msl.values, (0, 1, 2))  # not normalized: its values
    assert found["q"]["log1p"] == found["count"]["log1p"] == 0.001 and "log1p" not in found["msl"]
    np.testing.assert_allclose(found["q"]["median"], np.nanmedian(logs["q"], (0, 2, 3)), rtol=1e-12)
    (tmp_path / "stats.json").write_text(json.dumps({"variables": found}))
    batch = batchfs.npy("batch", path, "--view", tmp_path / "view.json", "--tensor",
                        "q")[:, 0].astype("f8")
    got = {"zscore": (np.nanmean, np.nanstd), "minmax": (np.nanmin, np.nanmax), "robust": (
        np.nanmedian, lambda x, axes: np.subtract(*np.nanpercentile(x, [75, 25], axes)))}[method]
    for function, wanted in zip(got, {"robust": (0, 1), "zscore": (0, 1), "minmax": (0, 1)}[method],
                                strict=True):
        np.testing.assert_allclose(function(batch, (0, 2, 3)), wanted, atol=1e-4)


def test_statistics_of_logarithms_of_made_channels_and_tasks(batchfs, store, tmp_path):
    path, ds = store
    view = {"window": {"time": 1},
            "batch": T, "normalize": {"method": "log1p", "scale": 2.5,
                                      "then": "zscore", "statistics": "s.json"},
            "tensors": {"x": {"variables": ["msl", {"make": "difference", "of": ["msl", "mask"]}],
                              "stack": "c"}}}
    found = statistics(batchfs, tmp_path, path, view)["variables"]
    name = next(name for name in found if name not in ("msl", "mask"))
    logs = np.log1p(np.maximum(ds.msl.values - ds["mask"].values.astype("f8"), 0) / 2.5)
    check(found[name], logs, (0, 1, 2))
    assert found[name]["log1p"] == 2.5
    for task in range(3):
        batchfs.bytes("statistics", path, "--view", tmp_path / "view.json", "--task", task,
                      "--tasks", 3, "--out", tmp_path / "parts")
    assert json.loads(batchfs.bytes("statistics", "--merge", tmp_path / "parts",
                                    "--json"))["variables"] == found
    table = batchfs.bytes("statistics", path, "--view", tmp_path / "view.json").decode()
    assert "msl, log1p, scale 2.5" in table


def test_statistics_of_other_values_are_refused(batchfs, store, tmp_path):
    path, _ = store
    raw = {"window": {"time": 1}, "variables": ["q"],
           "normalize": {"method": "zscore", "statistics": "stats.json"}}
    log = raw | {"normalize": raw["normalize"]
                     | {"method": "log1p", "scale": 0.5, "then": "zscore"}}
    other = log | {"normalize": log["normalize"] | {"scale": 0.25}}
    texts = {"raw": "the values themselves", "log": "log1p with the scale 0.5",
             "other": "log1p with the scale 0.25"}
    views = {"raw": raw, "log": log, "other": other}
    file = tmp_path / "view.json"
    for made, view in views.items():
        file.write_text(json.dumps(view))
        batchfs.bytes("statistics", path, "--view", file, "-o", tmp_path / "stats.json")
        for used, reader in views.items():
            file.write_text(json.dumps(reader))
            if used == made:
                batchfs.bytes("plan", path, "--view", file)
                continue
            refused = batchfs.refusal("plan", path, "--view", file)
            assert (f"those of 'q' are of {texts[made]}, and the view "
                    f"normalizes {texts[used]}" in refused)
            assert "compute them again with batchfs statistics" in refused
    # Numbers that a person wrote are taken as those of what the view normalizes.
    log["normalize"]["statistics"] = {"q": {"mean": 1, "std": 2}}
    file.write_text(json.dumps(log))
    batchfs.bytes("plan", path, "--view", file)
