"""batchfs.create: an identity model gives the input back, as xarray reads both; other oracles are numpy's."""

import json
import multiprocessing
import os
import pathlib
import signal
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


@pytest.mark.parametrize("overlap", ["trim", "mean", "cosine", "last"])
def test_windows_that_are_no_grid(store, truth, tmp_path, overlap):
    """Of a list of windows some neighbours are missing: their elements come from the windows that there are."""
    chosen = [(0, 0, 0), (0, 6, 7), (0, 12, 0), (1, 0, 7), (1, 3, 7), (2, 18, 28), (2, 15, 21)]
    view = view_of({"time": 1, "lat": {"size": 8, "stride": 1}, "lon": {"size": 8, "stride": 1}}, variables=["t"],
                   samples={"list": str(tmp_path / "list.csv")})
    rows = [f"{truth.time.values[a]},{float(truth.lat[b])!r},{float(truth.lon[c])!r}" for a, b, c in chosen]
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
        "y": {"variables": ["t", "p"], "stack": "channel", "dims": ["lat", "channel", "lon"], "offsets": {"time": [1]}}})
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
    assert same_bits(result.pressure.values, truth.p.values) and same_bits(result.kind.values, truth.kind.values)
    result = identity(store, tmp_path / "f8", view, tensor="p", name="wide", dtype="float64")
    assert same_bits(result.wide.values, truth.p.values.astype("f8")) and list(result.data_vars) == ["wide"]


def test_leads_have_dimensions_of_their_own(store, truth, tmp_path):
    view = view_of({"time": {"size": 1, "stride": 3}}, tensors={
        "x": {"variables": ["p"]}, "y": {"variables": ["p"], "offsets": {"time": [1, 2, 4]}}})
    result = identity(store, tmp_path / "o", view, tensor="y", time="lead", predict=lambda b: b["y"].numpy())
    assert result.p.dims == ("init_time", "lead_time", "lat", "lon")
    starts = list(range(0, T - 4, 3))
    assert np.array_equal(result.init_time.values, truth.time.values[starts])
    assert np.array_equal(result.lead_time.values.astype("m8[ns]"), np.array([6, 12, 24], "m8[h]").astype("m8[ns]"))
    for i, start in enumerate(starts):
        assert same_bits(result.p.values[i], truth.p.values[[start + 1, start + 2, start + 4]])


def test_valid_times_of_several_leads_collide(store, truth, tmp_path):
    view = view_of({"time": 1}, tensors={"y": {"variables": ["p"], "offsets": {"time": ["6h", "24h"]}}})
    data = batchfs.open(store, view=view)
    with pytest.raises(batchfs.InvalidArgument, match="same elements of 'p', along 'time'.*overlap=\"last\".*time=\"lead\""):
        batchfs.create(tmp_path / "o", like=data)
    assert not (tmp_path / "o").exists()
    result = identity(store, tmp_path / "o", view, overlap="last")
    assert np.array_equal(result.p.values[1:], truth.p.values[1:])


def test_a_number_for_each_sample(store, truth, tmp_path):
    result = identity(store, tmp_path / "o", view_of(GRID, variables=["p"]), reduce="window", name="mean", dtype="f8",
                      predict=lambda batch: batch["p"].numpy().astype("f8").mean((1, 2, 3)))
    assert result["mean"].dims == ("time", "lat", "lon")
    lats, lons = starts_of(Y, 8, 6), starts_of(X, 8, 7)
    assert np.array_equal(result.lat.values, truth.lat.values[lats]) and np.array_equal(result.lon.values, truth.lon.values[lons])
    expected = [[[truth.p.values[t, a:a + 8, b:b + 8].astype("f8").mean() for b in lons] for a in lats] for t in range(T)]
    np.testing.assert_allclose(result["mean"].values, expected, rtol=1e-12)


def test_normalized_predictions(store, truth, tmp_path):
    statistics = {"p": {"mean": 1e5, "std": 100.0}}
    view = view_of({"time": 1}, variables=["p"], normalize={"method": "zscore", "statistics": statistics})
    result = identity(store, tmp_path / "o", view, denormalize=True)
    np.testing.assert_allclose(result.p.values, truth.p.values, rtol=2e-7)
    assert result.p.attrs["units"] == "Pa"
    result = identity(store, tmp_path / "n", view)
    np.testing.assert_allclose(result.p.values, (truth.p.values - 1e5) / 100, atol=1e-4)
    assert result.p.attrs == {"original_units": "Pa"}


@pytest.mark.parametrize("codec", ["zstd:1", "blosc:zstd:3", "gzip", "none"])
def test_codecs_and_shards(store, truth, tmp_path, codec):
    import zarr
    result = identity(store, tmp_path / "o", view_of({"time": 1}, variables=["p"]), codec=codec, chunks={"time": 2, "lat": 13},
                      shards={"time": 8, "lat": -1})
    assert same_bits(result.p.values, truth.p.values)
    array = zarr.open_group(tmp_path / "o", mode="r")["p"]
    assert array.chunks == (2, 13, 36) and array.shards == (8, 26, 36)


# Ranks, ends and new beginnings.

OVERLAPPING = view_of(GRID, variables=["t"], order={"shuffle": "global"})
OPTIONS = {"overlap": "cosine", "chunks": {"time": 2, "lat": 9, "lon": 36}}


def write_rank(store, out, rank, world, memory="1G", after=None, order="global"):
    """`after`: batches; then the process is killed."""
    data = batchfs.open(store, view=OVERLAPPING | {"order": {"shuffle": order}}, rank=rank, world=world)
    with batchfs.create(out, like=data, memory=memory, **OPTIONS) as target:
        for n, batch in enumerate(target.remaining()):
            if n == after:
                os.kill(os.getpid(), signal.SIGKILL)
            target.write(batch, batch["t"].numpy())


def run_ranks(*calls):
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=write_rank, args=call) for call in calls]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout=120)
    return [rank.exitcode for rank in ranks]


@pytest.fixture(scope="module")
def alone(store, tmp_path_factory):
    """What one rank writes."""
    out = tmp_path_factory.mktemp("alone") / "o"
    write_rank(store, out, 0, 1)
    return files(out)


@pytest.mark.parametrize("memory", ["1G", "20K"])
def test_ranks_write_what_one_does(store, truth, tmp_path, alone, memory):
    out = tmp_path / "o"
    assert run_ranks(*((store, out, rank, 3, memory) for rank in range(3))) == [0, 0, 0]
    assert files(out) == alone


def test_a_rank_that_is_killed_goes_on(store, tmp_path, alone):
    out = tmp_path / "o"
    assert run_ranks((store, out, 0, 2, "20K", None, "none"), (store, out, 1, 2, "20K", 30, "none")) == [0, -signal.SIGKILL]
    assert not (out / "zarr.json").exists()
    put = {name: (out / name).stat().st_mtime_ns for name in files(out) if name.startswith("t/c/")}
    assert put
    write_rank(store, out, 1, 2, order="none")
    assert (out / "zarr.json").exists()
    assert files(out) == alone
    assert {name: (out / name).stat().st_mtime_ns for name in put} == put  # put once


@pytest.mark.parametrize("after", [0, 1, 17, 30])
def test_a_resumed_output_has_the_same_bytes(store, tmp_path, alone, after):
    out = tmp_path / "o"
    assert run_ranks((store, out, 0, 1, "20K", after)) == [-signal.SIGKILL]
    with pytest.raises(Exception, match=".*"):
        xr.open_zarr(out)
    write_rank(store, out, 0, 1)
    assert files(out) == alone
    data = batchfs.open(store, view=OVERLAPPING)
    with batchfs.create(out, like=data, **OPTIONS) as target:  # there is nothing left to do
        assert target.finished and target.missing() == 0 and list(target.remaining()) == []
    assert files(out) == alone


def test_an_interrupted_loop_keeps_what_it_wrote(store, tmp_path, alone):
    data = batchfs.open(store, view=OVERLAPPING)
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    with pytest.raises(KeyboardInterrupt), target:
        for n, batch in enumerate(target.remaining()):
            if n == 20:
                raise KeyboardInterrupt
            target.write(batch, batch["t"].numpy())
    again = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    assert again.missing() == data.schema["samples"] - 20 * 5
    for batch in again.remaining():
        again.write(batch, batch["t"].numpy())
    again.close()
    assert files(tmp_path / "o") == alone


def test_samples_that_are_missing_at_the_end_are_an_error(store, tmp_path, alone):
    data = batchfs.open(store, view=OVERLAPPING)
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batches = [data[n] for n in (3, 7)]
    for batch in batches:
        target.write(batch, batch["t"].numpy())
    samples = data.schema["samples"]
    with pytest.raises(batchfs.Error, match=f"{samples - 10} of {samples} samples are missing.*remaining"):
        target.close()
    assert not (tmp_path / "o/zarr.json").exists()
    write_rank(store, tmp_path / "o", 0, 1)
    assert files(tmp_path / "o") == alone


# Bad input.

@pytest.fixture
def data(store):
    with batchfs.open(store, view=OVERLAPPING) as opened:
        yield opened


def test_a_second_writer_of_a_rank_is_refused(data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    with pytest.raises(batchfs.InvalidArgument, match="another process writes rank 0 .* a rank of its own"):
        batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batchfs.create(tmp_path / "o", like=data, rank=1, world=2, **OPTIONS)
    del target


def test_a_changed_call_is_refused(store, data, tmp_path):
    batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    for change, key in (({"overlap": "mean"}, "overlap"), ({"chunks": {"lat": 13}}, "arrays"), ({"denormalize": True}, "denormalize")):
        with pytest.raises(batchfs.InvalidArgument, match=f'of another run: its "{key}" differs; remove it'):
            batchfs.create(tmp_path / "o", like=data, **OPTIONS | change, rank=1, world=2)
    other = batchfs.open(store, view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 5}}})
    with pytest.raises(batchfs.InvalidArgument, match='its "samples" differs'):
        batchfs.create(tmp_path / "o", like=other, **OPTIONS, rank=1, world=2)
    shifted = batchfs.open(store, view=OVERLAPPING | {"select": {"lat": {"from": "#0", "to": "#20"}}})
    with pytest.raises(batchfs.InvalidArgument, match='its "arrays" differs'):
        batchfs.create(tmp_path / "o", like=shifted, **OPTIONS, rank=1, world=2)


def test_parts_of_another_run_are_refused(store, data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, memory="20K", **OPTIONS)
    with pytest.raises(KeyboardInterrupt), target:
        target.write(data[0], data[0]["t"].numpy())
        raise KeyboardInterrupt
    part = next(p for p in (tmp_path / "o/.batchfs/parts").rglob("*") if p.is_file() and not p.name.endswith(".lock"))
    content = part.read_bytes()
    header, _, values = content.partition(b"\n")
    for damaged in (header.replace(b'"run": "', b'"run": "x') + b"\n" + values, b"nonsense", b"",
                    json.dumps(json.loads(header) | {"samples": [10**9], "bytes": [4]}).encode() + b"\nabcd"):
        part.write_bytes(damaged)
        with pytest.raises(batchfs.InvalidArgument, match="remove"):
            batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    part.write_bytes(content)
    batchfs.create(tmp_path / "o", like=data, **OPTIONS)


def test_places_that_are_no_output(data, store, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x").write_text("x")
    for place, match in ((tmp_path / "file", "is a file; name a new folder"), (tmp_path / "other", "did not make it; name a new"),
                         (store / "out", "lies in the store"), (store, "lies in the store"), ("s3://bucket/x", "s3://: name a folder"),
                         (tmp_path / "o.zip", "not the name of a folder")):
        with pytest.raises(batchfs.Error, match=match):
            batchfs.create(place, like=data, **OPTIONS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "other"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_disk_that_is_full_or_read_only(store, data, tmp_path, alone):
    import subprocess
    (tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(tmp_path / "small")]).returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "small")], check=True)
        with pytest.raises(batchfs.Error, match="Read-only.*name an output that this user may write"):
            write_rank(store, tmp_path / "small/o", 0, 1)
        subprocess.run(["mount", "-o", "remount,rw", str(tmp_path / "small")], check=True)
        with pytest.raises(batchfs.Error, match="No space left.*make room and run the same program again"):
            write_rank(store, tmp_path / "small/o", 0, 1)
        assert not (tmp_path / "small/o/zarr.json").exists()
        subprocess.run(["mount", "-o", "remount,size=9m", str(tmp_path / "small")], check=True)
        write_rank(store, tmp_path / "small/o", 0, 1)
        assert files(tmp_path / "small/o") == alone
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "small")], check=False)


def test_wrong_predictions(store, data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batch = data[0]
    good = batch["t"].numpy()
    for wrong, match in ((good[:3], r"has the shape \(3, 1, 2, 8, 8\), and the batch's is \(5, 1, 2, 8, 8\)"),
                         (good[..., :7], "has the shape"), (good.astype("c8"), "type complex64"), ([["x"]], "has the shape"),
                         ({"y": good}, "lacks the tensor 't'"), ({"t": good, "z": good}, "nothing for the tensor 'z'"),
                         (None, "array"), (np.array([object()]), "array of numbers")):
        with pytest.raises(batchfs.InvalidArgument, match=match):
            target.write(batch, wrong)
    other = batchfs.open(store, view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 5}}})
    with pytest.raises(batchfs.InvalidArgument, match="of another view"):
        target.write(other[0], other[0]["t"].numpy())
    more = batchfs.open(store, view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 1}}})
    far = next(batch for batch in more if batch.index.max() >= data.schema["samples"])
    with pytest.raises(batchfs.InvalidArgument, match="has no sample"):
        target.write(far, far["t"].numpy())
    assert target.missing() == data.schema["samples"]
    target.write(batch, good)
    target.write(batch, good.astype("f8"))  # again: the values replace the first
    with pytest.raises(batchfs.Error, match="missing"):
        target.close()
    with pytest.raises(batchfs.Error, match="closed; create it again"):
        target.write(batch, good)


def test_wrong_arguments(store, data, tmp_path):
    plain = batchfs.open(store, view=view_of({"time": 1}, variables=["p", "kind"]))
    for arguments, match in (({"overlap": "max"}, "overlap='max' is unknown: pass one of"), ({}, "windows overlap along 'lat': pass overlap"),
                             ({"tensor": "z"}, "no tensor 'z'; it has t"), ({"overlap": "trim", "chunks": {"x": 3}}, "names 'x'"),
                             ({"overlap": "trim", "chunks": {"lat": 0}}, "number of elements"), ({"overlap": "trim", "codec": "lz"}, "codec='lz'"),
                             ({"overlap": "trim", "shards": {"lat": 5}, "chunks": {"lat": 2}}, "no whole number of chunks"),
                             ({"overlap": "trim", "dtype": "float31"}, "no type of numpy"), ({"overlap": "trim", "rank": 3, "world": 2}, "not below"),
                             ({"overlap": "trim", "name": "lat"}, "cannot be called 'lat'"), ({"overlap": "trim", "memory": "much"}, "no size"),
                             ({"overlap": "cosine", "dtype": "i4"}, "makes means"), ({"overlap": "trim", "time": "when"}, "time='when'")):
        with pytest.raises(batchfs.InvalidArgument, match=match):
            batchfs.create(tmp_path / "o", like=data, **arguments)
    with pytest.raises(batchfs.InvalidArgument, match="2 variables: pass name= with a name for each"):
        batchfs.create(tmp_path / "o", like=plain, name="x")
    with pytest.raises(batchfs.InvalidArgument, match="like=, a dataset"):
        batchfs.create(tmp_path / "o")
    assert not (tmp_path / "o").exists()


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
    with pytest.raises(batchfs.InvalidArgument, match="OnlyDlpack is on a GPU: pass a tensor of torch"):
        target.write(batch, OnlyDlpack(batch["t"].numpy(), 2))


def test_without_zarr(data, tmp_path, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "batchfs._zarr_arrays", None)
    monkeypatch.setitem(sys.modules, "zarr", None)
    monkeypatch.delattr(batchfs, "_zarr_arrays", raising=False)
    with pytest.raises(batchfs.NotSupported, match="needs zarr-python 3 .* pip install"):
        batchfs.create(tmp_path / "o", like=data, **OPTIONS)


def test_parts_that_a_killed_rank_has_not_put_together(store, data, tmp_path, monkeypatch, alone):
    """All samples of a chunk are there as parts, and no rank has any of it left to write."""
    target = batchfs.create(tmp_path / "o", like=data, memory="20K", **OPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr(batchfs.Predictions, "_fold", lambda self, placement, number, samples:
                        self._parts.put(placement.name, number, samples) if samples else None)
        with pytest.raises(KeyboardInterrupt), target:
            for batch in target.remaining():
                target.write(batch, batch["t"].numpy())
            raise KeyboardInterrupt
    assert target.missing() == 0 and not (tmp_path / "o/t").exists()
    write_rank(store, tmp_path / "o", 0, 1)
    assert files(tmp_path / "o") == alone
