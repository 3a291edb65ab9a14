"""batchfs.create: an identity model gives the input back, as xarray reads both; other oracles are
numpy's."""

import json
import os

import numpy as np
import pytest
import xarray as xr

import batchfs

from prediction_stores import GRID, OPTIONS, T, X, Y, identity, open_, same_bits, view_of
from prediction_stores import data, store, truth  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" in os.environ,
                                reason="Python would need the sanitizer's runtime")


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
    result = identity(store, tmp_path / "o", view, overlap=overlap,
                      chunks={"time": 3, "lat": 7, "lon": 10})
    assert same_bits(result.t.values, truth.t.values)


@pytest.mark.parametrize("overlap", ["mean", "cosine"])
@pytest.mark.parametrize("name", ["t", "q"])
def test_blended_windows_come_back_within_a_unit_in_the_last_place(
        store, truth, tmp_path, overlap, name):
    result = identity(store, tmp_path / "o", view_of(GRID, variables=[name]), overlap=overlap,
                      chunks={"lat": 9})
    got, expected = result[name].values, truth[name].values
    assert got.dtype == expected.dtype
    assert (np.abs(got - expected) <= np.spacing(np.abs(expected))).all()


def starts_of(length, size, stride):
    return list(range(0, length - size + 1, stride))


@pytest.mark.parametrize("overlap", ["trim", "mean", "cosine", "last"])
def test_overlap_against_numpy(store, truth, tmp_path, overlap):
    """Every sample predicts its own number: what an element gets says who had a share in it."""
    view = view_of({"time": 1, "lat": {"size": 10, "stride": 4}, "lon": {"size": 8, "stride": 7}},
                   variables=["p"])
    result = identity(store, tmp_path / "o", view, overlap=overlap, chunks={"lat": 5, "lon": 11},
                      predict=lambda batch: np.broadcast_to(
                          batch.index[:, None, None, None] * np.float32(1.25), batch["p"].shape))
    total, weight = np.zeros((T, Y, X)), np.zeros((T, Y, X))
    best, nearest = np.full((T, Y, X), np.inf), np.full((T, Y, X), np.nan)
    number = 0
    lats, lons = starts_of(Y, 10, 4), starts_of(X, 8, 7)

    def ramps(starts, i, size):
        w = np.ones(size)
        for k in range(size):
            if i > 0 and (o := starts[i - 1] + size - starts[i]) > 0 and k < o:
                w[k] *= np.sin(np.pi / 2 * (k + 0.5) / o) ** 2
            if i + 1 < len(starts) and (o := starts[i] + size
                                        - starts[i + 1]) > 0 and k >= size - o:
                w[k] *= np.sin(np.pi / 2 * (size - k - 0.5) / o) ** 2
        return w

    for t in range(T):
        for i, lat in enumerate(lats):
            for j, lon in enumerate(lons):
                box = (t, slice(lat, lat + 10), slice(lon, lon + 8))
                w = np.ones((10, 8)) if overlap == "mean" else np.outer(
                    ramps(lats, i, 10), ramps(lons, j, 8))
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
    assert (np.isnan(result.p.values[:, :, 36:]).all()
            and not np.isnan(result.p.values[:, :26, :36]).any())


@pytest.mark.parametrize("overlap", ["trim", "mean", "cosine", "last"])
def test_windows_that_are_no_grid(store, truth, tmp_path, overlap):
    """A list of windows may lack some neighbours: their elements come from the existing windows."""
    chosen = [(0, 0, 0), (0, 6, 7), (0, 12, 0), (1, 0, 7), (1, 3, 7), (2, 18, 28), (2, 15, 21)]
    view = view_of({"time": 1, "lat": {"size": 8, "stride": 1}, "lon": {"size": 8, "stride": 1}},
                   variables=["t"], samples={"list": str(tmp_path / "list.csv")})
    rows = [f"{truth.time.values[a]},{float(truth.lat[b])!r},{float(truth.lon[c])!r}"
            for a, b, c in chosen]
    (tmp_path / "list.csv").write_text("\n".join(["time,lat,lon", *rows]) + "\n")
    result = identity(store, tmp_path / "o", view, overlap=overlap)
    covered = np.zeros((T, Y, X), bool)
    for a, b, c in chosen:
        covered[a, b:b + 8, c:c + 8] = True
    expected = np.where(covered[:, None], truth.t.values, np.float32("nan"))
    assert np.array_equal(np.isnan(result.t.values), np.isnan(expected))
    np.testing.assert_allclose(result.t.values, expected, rtol=2e-7)
    if overlap in ("trim", "last"):
        assert np.array_equal(result.t.values, expected, equal_nan=True)


def test_windows_around_the_circle(store, truth, tmp_path):
    view = view_of({"time": 1, "lon": {"size": 10, "stride": 8, "wrap": True}}, variables=["p"])
    for overlap in ("trim", "cosine"):
        result = identity(store, tmp_path / overlap, view, overlap=overlap, chunks={"lon": 9})
        assert result.p.shape == truth.p.shape
        np.testing.assert_allclose(result.p.values, truth.p.values, rtol=1e-7)
    assert same_bits(open_(tmp_path / "trim").p.values, truth.p.values)


@pytest.mark.parametrize("edge", ["partial", "pad"])
def test_ragged_edges(store, truth, tmp_path, edge):
    view = view_of({"time": {"size": 6, "edge": edge}}, variables=["p"]) | {"batch": {"size": 1}}
    result = identity(store, tmp_path / "o", view)
    assert same_bits(result.p.values, truth.p.values)


def test_channels_are_taken_apart(store, truth, tmp_path):
    view = view_of({"time": 1}, dtype="float32", order={"shuffle": "global"}, tensors={
        "x": {"variables": ["p"], "stack": "channel", "dims": ["channel", "lat", "lon"]},
        "y": {"variables": ["t", "p"], "stack": "channel", "dims": ["lat", "channel", "lon"],
              "offsets": {"time": [1]}}})
    data = batchfs.open(store, view=view)
    with batchfs.create(tmp_path / "o", like=data) as out:
        for batch in data:
            out.write(batch, batch["y"].numpy())
    result = open_(tmp_path / "o")
    assert list(result.data_vars) == ["p", "t"] or set(result.data_vars) == {"p", "t"}
    for name in ("t", "p"):
        assert result[name].dims == truth[name].dims and result[name].attrs == truth[name].attrs
        assert same_bits(result[name].values[1:], truth[name].values[1:])
        assert np.isnan(result[name].values[0]).all()  # nothing predicts the first time
    xr.testing.assert_identical(result.level, truth.level)


def test_several_tensors_names_and_another_type(store, truth, tmp_path):
    view = view_of({"time": 1}, variables=["p", "kind"])
    result = identity(store, tmp_path / "o", view, name={"p": "pressure"})
    assert same_bits(result.pressure.values, truth.p.values) and same_bits(
        result.kind.values, truth.kind.values)
    result = identity(store, tmp_path / "f8", view, tensor="p", name="wide", dtype="float64")
    assert (same_bits(result.wide.values, truth.p.values.astype("f8"))
            and list(result.data_vars) == ["wide"])


def test_leads_have_dimensions_of_their_own(store, truth, tmp_path):
    view = view_of({"time": {"size": 1, "stride": 3}}, tensors={
        "x": {"variables": ["p"]}, "y": {"variables": ["p"], "offsets": {"time": [1, 2, 4]}}})
    result = identity(store, tmp_path / "o", view, tensor="y", time="lead",
                      predict=lambda b: b["y"].numpy())
    assert result.p.dims == ("init_time", "lead_time", "lat", "lon")
    starts = list(range(0, T - 4, 3))
    assert np.array_equal(result.init_time.values, truth.time.values[starts])
    assert np.array_equal(result.lead_time.values.astype("m8[ns]"),
                          np.array([6, 12, 24], "m8[h]").astype("m8[ns]"))
    for i, start in enumerate(starts):
        assert same_bits(result.p.values[i], truth.p.values[[start + 1, start + 2, start + 4]])


def test_valid_times_of_several_leads_collide(store, truth, tmp_path):
    view = view_of({"time": 1},
                   tensors={"y": {"variables": ["p"], "offsets": {"time": ["6h", "24h"]}}})
    data = batchfs.open(store, view=view)
    with pytest.raises(batchfs.InvalidArgument,
                       match="same elements of 'p', along 'time'.*overlap=\"last\".*time=\"lead\""):
        batchfs.create(tmp_path / "o", like=data)
    assert not (tmp_path / "o").exists()
    result = identity(store, tmp_path / "o", view, overlap="last")
    assert np.array_equal(result.p.values[1:], truth.p.values[1:])


def test_a_number_for_each_sample(store, truth, tmp_path):
    result = identity(store, tmp_path / "o", view_of(GRID, variables=["p"]), reduce="window",
                      name="mean", dtype="f8",
                      predict=lambda batch: batch["p"].numpy().astype("f8").mean((1, 2, 3)))
    assert result["mean"].dims == ("time", "lat", "lon")
    lats, lons = starts_of(Y, 8, 6), starts_of(X, 8, 7)
    assert (np.array_equal(result.lat.values, truth.lat.values[lats])
            and np.array_equal(result.lon.values, truth.lon.values[lons]))
    expected = [[[truth.p.values[t, a:a + 8, b:b + 8].astype("f8").mean() for b in lons]
                 for a in lats] for t in range(T)]
    np.testing.assert_allclose(result["mean"].values, expected, rtol=1e-12)


def test_normalized_predictions(store, truth, tmp_path):
    statistics = {"p": {"mean": 1e5, "std": 100.0}}
    view = view_of({"time": 1}, variables=["p"],
                   normalize={"method": "zscore", "statistics": statistics})
    result = identity(store, tmp_path / "o", view, denormalize=True)
    np.testing.assert_allclose(result.p.values, truth.p.values, rtol=2e-7)
    assert result.p.attrs["units"] == "Pa"
    result = identity(store, tmp_path / "n", view)
    np.testing.assert_allclose(result.p.values, (truth.p.values - 1e5) / 100, atol=1e-4)
    assert result.p.attrs == {"original_units": "Pa"}


@pytest.mark.parametrize("codec", ["zstd:1", "blosc:zstd:3", "gzip", "none"])
def test_codecs_and_shards(store, truth, tmp_path, codec):
    import zarr
    result = identity(store, tmp_path / "o", view_of({"time": 1}, variables=["p"]), codec=codec,
                      chunks={"time": 2, "lat": 13}, shards={"time": 8, "lat": -1})
    assert same_bits(result.p.values, truth.p.values)
    array = zarr.open_group(tmp_path / "o", mode="r")["p"]
    assert array.chunks == (2, 13, 36) and array.shards == (8, 26, 36)


def test_store_and_view_without_a_dataset(store, truth, tmp_path, monkeypatch):
    (tmp_path / "view.json").write_text(json.dumps(view_of({"time": 1}, variables=["p"])))
    batches = batchfs.open(store, view=tmp_path / "view.json")
    with batchfs.create(tmp_path / "o", view=tmp_path / "view.json", store=store) as out:
        for batch in batches:
            out.write(batch, batch["p"])
    assert same_bits(open_(tmp_path / "o").p.values, truth.p.values)


def test_a_server_does_not_say_which_store_it_has(store, truth, tmp_path):
    from reader_servers import TWO, Server
    server = Server(store, tmp_path, {"two": TWO | {"variables": ["p"], "epochs": 1}})
    try:
        data = batchfs.open(server.socket, "two")
        with pytest.raises(batchfs.InvalidArgument, match="pass store= as well"):
            batchfs.create(tmp_path / "o", like=data)
        with batchfs.create(tmp_path / "o", like=data, store=store) as out:
            for batch in out.remaining():
                out.write(batch, batch["p"].numpy())
        assert same_bits(open_(tmp_path / "o").p.values, truth.p.values)
    finally:
        server.stop()


def test_torch_tensors(store, truth, tmp_path):
    torch = pytest.importorskip("torch")
    result = identity(store, tmp_path / "o", view_of({"time": 1}, variables=["p"]),
                      predict=lambda batch: batch["p"].torch().clone().requires_grad_(True))
    assert same_bits(result.p.values, truth.p.values)
    result = identity(store, tmp_path / "half", view_of({"time": 1}, variables=["p"]),
                      predict=lambda batch: batch["p"].torch().to(torch.bfloat16))
    np.testing.assert_allclose(result.p.values, truth.p.values, rtol=1e-2)


class OnlyDlpack:
    def __init__(self, array, device):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device, 0


def test_arrays_of_other_libraries(data, tmp_path, monkeypatch):
    import sys
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batch = data[0]
    target.write(batch, OnlyDlpack(batch["t"].numpy().copy(), 1))
    for name in ("torch", "cupy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(batchfs.InvalidArgument,
                       match="OnlyDlpack is on a GPU: pass a tensor of torch"):
        target.write(batch, OnlyDlpack(batch["t"].numpy(), 2))


def test_a_part_of_a_split(store, truth, tmp_path):
    view = view_of({"time": 1}, variables=["p"],
                   split={"parts": {"train": [{"time": {"to": "2001-01-03"}}],
                                    "test": [{"time": {"from": "2001-01-04"}}]}})
    data = batchfs.open(store, view=view, part="test")
    with batchfs.create(tmp_path / "o", like=data) as out:
        for batch in out.remaining():
            out.write(batch, batch["p"].numpy())
    result = open_(tmp_path / "o").p
    test = truth.time.values >= np.datetime64("2001-01-04")
    assert (same_bits(result.values[test], truth.p.values[test])
            and np.isnan(result.values[~test]).all())


def test_views_without_a_place_for_each_sample(store, tmp_path):
    data = batchfs.open(store, view={"xbatcher": {"input_dims": {"time": 5}}, "variables": ["p"]})
    with pytest.raises(batchfs.NotSupported,
                       match="\"xbatcher\" cannot be written: write the view with \"window\""):
        batchfs.create(tmp_path / "o", like=data)
    data = batchfs.open(store, view={
        "mix": {"a": {"view": {"window": {"time": 1}, "variables": ["p"]}, "weight": 1}},
        "batch": {"size": 4}})
    with pytest.raises(batchfs.NotSupported,
                       match="a mixture cannot be written: create an output for each"):
        batchfs.create(tmp_path / "o", like=data)
    data.close()
    with pytest.raises(batchfs.Error, match="closed; open it again"):
        batchfs.create(tmp_path / "o", like=data)


def test_a_batch_by_its_number(store, truth, tmp_path):
    """Where a trainer hands on the prediction alone."""
    view = view_of(GRID, variables=["t"], order={"shuffle": "global"})
    data = batchfs.open(store, view=view)
    with batchfs.create(tmp_path / "o", like=data, overlap="trim") as out:
        for batch in out.remaining():
            out.write(batch.number, batch["t"].numpy())
        with pytest.raises(batchfs.InvalidArgument,
                           match="the view has no batch 1000 in epoch 0; it has "):
            out.write(1000, np.zeros(3))
        with pytest.raises(batchfs.InvalidArgument, match="has the shape .3,., and the batch's is"):
            out.write(0, np.zeros(3, "f4"))
    assert same_bits(open_(tmp_path / "o").t.values, truth.t.values)
    data.close()
    normalized = view | {"normalize": {"method": "zscore",
                                       "statistics": {"t": {"mean": 280, "std": 10}}}}
    data = batchfs.open(store, view=normalized)
    with batchfs.create(tmp_path / "d", like=data, overlap="trim", denormalize=True) as out:
        for batch in out.remaining():
            out.write(batch.number, batch["t"].numpy())
    np.testing.assert_allclose(open_(tmp_path / "d").t.values, truth.t.values, rtol=1e-6)
    data.close()
