"""batchfs.create: an identity model gives the input back, as xarray reads both; other oracles are numpy's."""

import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr

import batchfs

T, L, Y, X = 20, 2, 26, 36
GRID = {"time": 1, "lat": {"size": 8, "stride": 6}, "lon": {"size": 8, "stride": 7}}


def make_store(path):
    rng = np.random.default_rng(4)
    shape, dims = (T, L, Y, X), ("time", "level", "lat", "lon")
    ds = xr.Dataset(
        {"t": (dims, rng.normal(280, 10, shape).astype("f4"), {"units": "K", "long_name": "temperature"}),
         "q": (dims, rng.uniform(0, 0.02, shape), {"units": "kg kg-1"}),
         "p": (("time", "lat", "lon"), rng.normal(1e5, 100, (T, Y, X)).astype("f4"), {"units": "Pa"}),
         "kind": (("time", "lat", "lon"), rng.integers(0, 9, (T, Y, X)).astype("i2"))},
        {"time": ("time", np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"), {"long_name": "valid time"}),
         "level": ("level", np.array([500, 850]), {"units": "hPa"}),
         "lat": ("lat", np.linspace(50, 37.5, Y), {"units": "degrees_north"}),
         "lon": ("lon", np.arange(X) * 10.0, {"units": "degrees_east"})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=3, encoding={name: {"chunks": (7, 2, 26, 36)[-ds[name].ndim:]} for name in ds.data_vars}
                   | {"time": {"units": "hours since 1990-01-01"}})
    return ds


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions") / "s.zarr"
    make_store(path)
    return path


@pytest.fixture(scope="module")
def truth(store):
    return xr.open_zarr(store).load()


def open_(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "not consolidated" would be one
        return xr.open_zarr(path)


def view_of(window, **keys):
    return {"name": "test", "window": window, "batch": {"size": 5}, **keys}


def identity(store, out, view, tensor=None, predict=None, open_options=None, **options):
    """Writes each batch's own tensor; the dataset of what comes out."""
    data = batchfs.open(store, view=view, **(open_options or {}))
    with batchfs.create(out, like=data, tensor=tensor, **options) as target:
        for batch in data:
            values = {name: batch[name].numpy() for name in batch.keys()}
            target.write(batch, predict(batch) if predict else values if len(values) > 1 and tensor is None else values[tensor or next(iter(values))])
    assert target.finished
    return open_(out)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(pathlib.Path(path).rglob("*")) if p.is_file()}


def test_whole_fields_come_back(store, truth, tmp_path):
    result = identity(store, tmp_path / "o", view_of({"time": 1}, variables=["t", "q"]))
    xr.testing.assert_identical(result.load(), truth[["t", "q"]])
    assert same_bits(result.t.values, truth.t.values) and same_bits(result.q.values, truth.q.values)
    assert result.time.encoding["units"] == "hours since 2001-01-01 00:00:00"
    assert not (tmp_path / "o/.batchfs").exists()


@pytest.mark.parametrize("shuffle", ["none", "global"])
@pytest.mark.parametrize("overlap", ["trim", "last"])
def test_overlapping_windows_come_back_bit_for_bit(store, truth, tmp_path, overlap, shuffle):
    view = view_of(GRID, variables=["t"], order={"shuffle": shuffle})
    result = identity(store, tmp_path / "o", view, overlap=overlap, chunks={"time": 3, "lat": 7, "lon": 10})
    assert same_bits(result.t.values, truth.t.values)


@pytest.mark.parametrize("overlap", ["mean", "cosine"])
@pytest.mark.parametrize("name", ["t", "q"])
def test_blended_windows_come_back_within_a_unit_in_the_last_place(store, truth, tmp_path, overlap, name):
    result = identity(store, tmp_path / "o", view_of(GRID, variables=[name]), overlap=overlap, chunks={"lat": 9})
    got, expected = result[name].values, truth[name].values
    assert got.dtype == expected.dtype
    assert (np.abs(got - expected) <= np.spacing(np.abs(expected))).all()


def starts_of(length, size, stride):
    return list(range(0, length - size + 1, stride))


@pytest.mark.parametrize("overlap", ["trim", "mean", "cosine", "last"])
def test_overlap_against_numpy(store, truth, tmp_path, overlap):
    """Every sample predicts its own number: what an element gets says who had a share in it."""
    view = view_of({"time": 1, "lat": {"size": 10, "stride": 4}, "lon": {"size": 8, "stride": 7}}, variables=["p"])
    result = identity(store, tmp_path / "o", view, overlap=overlap, chunks={"lat": 5, "lon": 11},
                      predict=lambda batch: np.broadcast_to(batch.index[:, None, None, None] * np.float32(1.25), batch["p"].shape))
    total, weight = np.zeros((T, Y, X)), np.zeros((T, Y, X))
    best, nearest = np.full((T, Y, X), np.inf), np.full((T, Y, X), np.nan)
    number = 0
    lats, lons = starts_of(Y, 10, 4), starts_of(X, 8, 7)

    def ramps(starts, i, size):
        w = np.ones(size)
        for k in range(size):
            if i > 0 and (o := starts[i - 1] + size - starts[i]) > 0 and k < o:
                w[k] *= np.sin(np.pi / 2 * (k + 0.5) / o) ** 2
            if i + 1 < len(starts) and (o := starts[i] + size - starts[i + 1]) > 0 and k >= size - o:
                w[k] *= np.sin(np.pi / 2 * (size - k - 0.5) / o) ** 2
        return w

    for t in range(T):
        for i, lat in enumerate(lats):
            for j, lon in enumerate(lons):
                box = (t, slice(lat, lat + 10), slice(lon, lon + 8))
                w = np.ones((10, 8)) if overlap == "mean" else np.outer(ramps(lats, i, 10), ramps(lons, j, 8))
                distance = ((np.arange(10) - 4.5)[:, None] ** 2 + (np.arange(8) - 3.5) ** 2)
                if overlap == "last":
                    distance = np.full((10, 8), -number)
                nearer = distance < best[box]
                nearest[box][nearer] = number * 1.25
                best[box][nearer] = distance[nearer]
                total[box] += w * number * 1.25
                weight[box] += w
                number += 1
    expected = nearest
    if overlap in ("mean", "cosine"):
        expected = np.where(weight > 0, total / np.where(weight > 0, weight, 1), np.nan)
    np.testing.assert_allclose(result.p.values, expected.astype("f4"), rtol=2e-7)
    assert np.isnan(result.p.values[:, :, 36:]).all() and not np.isnan(result.p.values[:, :26, :36]).any()
