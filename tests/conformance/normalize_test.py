"""Normalised batches equal numpy doing the same operations, to the last bit."""

import json

import numpy as np
import pytest
import view_commands
import xarray as xr
from safetensors.numpy import load as load_safetensors
from view_commands import refused, view_file

T, L, Y, X = 11, 3, 6, 7


@pytest.fixture(scope="module", params=[(2, (4, 2, 6, 5)), (3, (1, 3, 6, 7))], ids=["v2", "v3"])
def store(request, tmp_path_factory):
    version, (t, l, y, x) = request.param
    rng = np.random.default_rng(2)
    q = rng.gamma(2.0, 3e-3, (T, L, Y, X))
    q[2, 1, 3] = np.nan
    ds = xr.Dataset({"t2m": (("time", "lat", "lon"), rng.normal(280, 20, (T, Y, X)).astype("f4")),
                     "q": (("time", "level", "lat", "lon"), q),
                     "packed": (("time", "lat", "lon"), rng.normal(10, 3, (T, Y, X))),
                     "half": (("time", "lat", "lon"), rng.normal(0, 3, (T, Y, X)).astype("f2")),
                     "count": (("time", "lat", "lon"), rng.integers(-2**40, 2**40, (T, Y, X))),
                     "lsm": (("time", "lat", "lon"), np.ones((T, Y, X), "f4"))},
                    {"time": np.datetime64("2001-01-01", "ns") + np.arange(T)
                         * np.timedelta64(1, "D"), "level": np.array([500.0, 700.0, 850.0], "f4"),
                     "lat": np.linspace(50, 40, Y), "lon": np.arange(X) * 1.1})
    path = tmp_path_factory.mktemp("normalize") / "s.zarr"
    sizes = dict(time=t, level=l, lat=y, lon=x)
    encoding = {n: {"chunks": tuple(sizes[d] for d in v.dims)} for n, v in ds.data_vars.items()}
    encoding["packed"] |= {"dtype": "i2", "scale_factor": 0.01, "add_offset": 10.0,
                           "_FillValue": -32768}
    ds.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=version == 2)
    return path, xr.open_zarr(path).load()


def batch(batchfs, folder, store, view, name, number=0, form="npy"):
    if form == "npy":
        return view_commands.batch(batchfs, folder, store, view, number, name)
    file = view_file(folder, view)
    return load_safetensors(batchfs.bytes("batch", store, "--view", file, "--batch", number,
                                          "--format", form))[name]


def same(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    np.testing.assert_array_equal(actual, expected)


def zscore(values, mean, std):
    return (values.astype("f8") - mean) / std


@pytest.mark.parametrize("dtype", [None, "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["t2m", "packed", "half", "count"])
def test_zscore_with_one_pair_of_numbers(batchfs, store, tmp_path, name, dtype):
    path, ds = store
    values = ds[name].values
    mean, std = float(values.astype("f8").mean()), float(values.astype("f8").std())
    view = {"variables": [name], "window": {"time": 1, "lon": {"size": 3, "stride": 2}}, "batch": 8,
            "normalize": {"method": "zscore", "variables": [name],
                          "statistics": {name: {"mean": mean, "std": std}}}}
    if dtype:
        view["dtype"] = dtype
    with np.errstate(over="ignore"):
        whole = zscore(values, mean, std).astype(dtype
                                                 or ("f8" if name == "count" else values.dtype))
    samples = [(t, x) for t in range(T) for x in (0, 2, 4)]
    for b in (0, 2):
        expected = np.stack([whole[t:t + 1, :, x:x + 3] for t, x in samples[8 * b:8 * b + 8]])
        same(batch(batchfs, tmp_path, path, view, name, b), expected)


@pytest.mark.parametrize("select", [None, [850, 500]])
@pytest.mark.parametrize("labels", [True, False])
def test_numbers_by_level_from_a_file(batchfs, store, tmp_path, select, labels):
    path, ds = store
    q = ds.q if select is None else ds.q.sel(level=select)
    low, high = q.min(("time", "lat", "lon")).values, q.max(("time", "lat", "lon")).values
    entry = {"dims": ["level"], "min": low.tolist(), "max": high.tolist()}
    if labels:  # of all levels, in another order
        order = [2, 0, 1]
        entry = {"dims": ["level"], "coordinates": {"level": ds.level.values[order].tolist()},
                 "min": ds.q.min(("time", "lat", "lon")).values[order].tolist(),
                 "max": ds.q.max(("time", "lat", "lon")).values[order].tolist()}
    (tmp_path / "numbers").mkdir(exist_ok=True)
    (tmp_path / "numbers" / "stats.json").write_text(json.dumps({"variables": {"q": entry}}))
    view = {"window": {"time": 2}, "batch": 2,
            "dtype": "float32", "tensors": {"x": {"variables": ["q"], "stack": "channel",
                                                  "dims": ["time", "channel", "lat", "lon"]}},
            "normalize": {"method": "minmax", "statistics": "numbers/stats.json"}}
    if select:
        view["select"] = {"level": select}
    levels = (slice(None), None, None)
    whole = ((q.values.astype("f8") - low[levels]) / (high[levels] - low[levels])).astype("f4")
    for b in (0, 1):
        same(batch(batchfs, tmp_path, path, view, "x", b),
             np.stack([whole[4 * b:4 * b + 2], whole[4 * b + 2:4 * b + 4]]))


def test_numbers_at_each_point(batchfs, store, tmp_path):
    path, ds = store
    mean, std = ds.t2m.values.astype("f8").mean(0), ds.t2m.values.astype("f8").std(0)
    view = {"variables": ["t2m"], "window": {"time": 1, "lat": 4}, "batch": 3,
            "normalize": {"method": "zscore", "statistics": {
                "t2m": {"dims": ["lon", "lat"], "mean": mean.T.tolist(), "std": std.T.tolist()}}}}
    whole = zscore(ds.t2m.values, mean, std).astype("f4")
    same(batch(batchfs, tmp_path, path, view, "t2m", 1),
         np.stack([whole[t:t + 1, :4] for t in (3, 4, 5)]))


def test_which_variables(batchfs, store, tmp_path):
    path, ds = store
    statistics = {"t2m": {"mean": 280, "std": 20}, "half": {"mean": 1, "std": 2}}
    view = {"variables": ["t2m", "half", "lsm", "count"], "window": {"time": 1},
            "normalize": {"method": "zscore", "statistics": statistics, "except": ["lsm"]}}
    same(batch(batchfs, tmp_path, path, view, "t2m"),
         zscore(ds.t2m.values[:1], 280, 20).astype("f4")[None])
    same(batch(batchfs, tmp_path, path, view, "lsm"), ds.lsm.values[:1][None])
    same(batch(batchfs, tmp_path, path, view, "count"), ds["count"].values[:1][None])
    view["normalize"] = {"method": "zscore", "statistics": statistics, "variables": ["half"]}
    same(batch(batchfs, tmp_path, path, view, "t2m"), ds.t2m.values[:1][None])
    same(batch(batchfs, tmp_path, path, view, "half"),
         zscore(ds.half.values[:1], 1, 2).astype("f2")[None])


@pytest.mark.parametrize("statistics, words", [
    ({}, "there are none for 't2m'"),
    ({"t2n": {"mean": 1, "std": 2}}, "did you mean 't2n'"),
    ({"t2m": {"mean": 1}}, "'t2m' has no \"std\""),
    ({"t2m": {"mean": 1, "std": 0}}, "'t2m' is constant"),
    ({"t2m": {"mean": None, "std": 1}}, "no finite \"mean\" of 't2m'"),
    ({"t2m": {"mean": 1, "std": -1}}, "makes no sense"),
    ({"t2m": {"mean": [1, 2], "std": [1, 2]}}, "lists need \"dims\""),
    ({"t2m": {"dims": ["level"], "mean": [1], "std": [1]}}, "'level', which it does not have"),
    ({"t2m": {"dims": ["lat"], "mean": [1], "std": [1]}}, "list of 6 numbers along 'lat'"),
    ({"t2m": {"dims": ["lat"], "coordinates": {"lat": [50]}, "mean": [1], "std": [1]}},
     "no finite \"mean\" of 't2m' at lat=48"),
])
def test_numbers_that_do_not_serve(batchfs, store, tmp_path, statistics, words):
    view = {"variables": ["t2m"], "window": {"time": 1},
            "normalize": {"method": "zscore", "statistics": statistics}}
    text = refused(batchfs, tmp_path, store[0], view)
    assert words in text and '"except": ["t2m"]' in text


@pytest.mark.parametrize("normalize, words", [
    ({"method": "zscore"}, "statistics"),
    ({"method": "z", "statistics": {}}, "none of zscore, minmax"),
    ({"method": "zscore", "statistics": "absent.json"}, "batchfs statistics writes it"),
    ({"method": "zscore", "statistics": "view.json", "variable": []}, "did you mean 'variables'"),
    ({"method": "zscore", "statistics": {}, "except": ["t2n"]}, "did you mean 't2m'"),
    ({"method": "minmax", "statistics": {"t2m": {"min": 2, "max": 2}}}, "'t2m' is constant"),
    ({"method": "minmax", "statistics": {"t2m": {"min": 2, "max": 1}}}, "makes no sense"),
])
def test_what_is_wrong_with_the_key(batchfs, store, tmp_path, normalize, words):
    view = {"variables": ["t2m"], "window": {"time": 1}, "normalize": normalize}
    if normalize.get("except"):
        normalize["statistics"] = {"t2m": {"mean": 0, "std": 1}}
    assert words in refused(batchfs, tmp_path, store[0], view)


def test_bfloat16_is_for_safetensors(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["t2m"], "window": {"time": 1}, "batch": 4, "dtype": "bfloat16",
            "formats": ["safetensors"],
            "normalize": {"method": "zscore", "statistics": {"t2m": {"mean": 280, "std": 20}}}}
    for normalized in (True, False):
        if not normalized:
            del view["normalize"]
        values = ds.t2m.values[:4]
        single = zscore(values, 280, 20).astype("f4") if normalized else values
        words = single.view("u4").astype("u8")
        expected = ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype("u2")
        file = tmp_path / "view.json"
        file.write_text(json.dumps(view))
        data = batchfs.bytes("batch", path, "--view", file, "--format", "safetensors")
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])["t2m"]
        assert header["dtype"] == "BF16" and header["shape"] == [4, 1, Y, X]
        np.testing.assert_array_equal(np.frombuffer(data[8 + length:], "u2"), expected.ravel())
    assert "safetensors" in batchfs.refusal("batch", path, "--view", file, "--format", "npy")
    view["formats"] = ["npy"]
    assert "safetensors" in refused(batchfs, tmp_path, path, view)
