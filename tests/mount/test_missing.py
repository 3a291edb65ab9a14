"""Views that skip samples or reach over the edge, through the kernel, against xarray."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr

T, Y, X = 37, 10, 12
CHUNKS = (5, 4, 12)


@pytest.fixture(scope="module")
def gappy(tmp_path_factory):
    """Fields with gaps: some points, some times, a whole chunk that is not stored."""
    path = tmp_path_factory.mktemp("gappy") / "s.zarr"
    rng = np.random.default_rng(8)
    a = rng.standard_normal((T, Y, X)).astype("f4")
    a[rng.random(a.shape) < 0.002] = np.nan
    a[11] = np.nan
    a[20:25, 0:4] = np.nan
    b = rng.standard_normal((T, Y, X))
    b[30, 9, 11] = np.nan
    data = xr.Dataset({"a": (("time", "lat", "lon"), a), "b": (("time", "lat", "lon"), b)}, {
        "time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(1, "D"),
        "lat": np.linspace(-1, 1, Y)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_zarr(path, zarr_format=2,
                     encoding={"a": {"chunks": CHUNKS}, "b": {"chunks": (1, 10, 12)}})
    return path, xr.open_zarr(path).load()


VIEWS = {
    f"{shuffle}-{remainder}-{edge}": {
        "name": f"{shuffle}-{remainder}-{edge}",
        "window": {"lat": {"size": 4, "edge": edge}, "time": {"size": 2, "stride": 1}}, "tensors": {
            "x": {"variables": ["a"], "offsets": {"time": [-1, 0]}}, "y": {"variables": ["b"]}},
        "batch": {"size": 8, "remainder": remainder}, "missing": {"nan": "skip"}, "epochs": 3,
        "order": {"shuffle": shuffle, "seed": 5} | ({"buffer": 2} if shuffle == "block" else {})}
    for shuffle, remainder, edge in (("global", "keep", "pad"), ("block", "pad", "pad"),
                                     ("block", "drop", "drop"), ("block", "keep", "pad"),
                                     ("none", "pad", "partial"))}


@pytest.fixture(scope="module")
def views(gappy, mount_at, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield mount_at(gappy[0], tmp_path_factory.mktemp("gappy-mount") / "mnt", VIEWS) / "views"


def good_windows(ds, edge):
    """(lat, time) of every window without NaN, in the order of their numbers."""
    a, b = ds.a.values, ds.b.values
    return [(y, t) for y in ([0, 4] if edge == "drop" else [0, 4, 8])
            for t in range(1, T - 1) if not np.isnan(a[t - 1:t + 2, y:y + 4]).any()
            and not np.isnan(b[t:t + 2, y:y + 4]).any()]


def padded(values, length):
    """Latitude padded with NaN."""
    return np.pad(values, [(0, 0), (0, length - values.shape[1]), (0, 0)], constant_values=np.nan)


@pytest.mark.parametrize("name", VIEWS)
def test_every_sample_of_every_epoch(gappy, views, name):
    ds = gappy[1]
    view = VIEWS[name]
    windows = good_windows(ds, view["window"]["lat"]["edge"])
    schema = json.loads((views / name / "schema.json").read_text())
    n, remainder = len(windows), view["batch"]["remainder"]
    assert schema["samples"] == n
    assert schema["batches"] == (n // 8 if remainder == "drop" else -(-n // 8))
    orders = []
    for epoch in range(3):
        order = []
        for b in range(schema["batches"]):
            batch = views / name / f"epoch-{epoch:04d}" / f"batch-{b:06d}"
            samples = json.loads(batch.with_suffix(".json").read_text())["samples"]
            order += samples
            x, y = np.load(batch / "x.npy"), np.load(batch / "y.npy")
            assert len(x) == len(y) == len(samples) == min(8,
                                                           n - 8 * b if remainder == "keep" else 8)
            length = x.shape[2]
            assert length == (max(min(4, Y - windows[s][0]) for s in samples)
                              if name.endswith("partial") else 4)
            for row, sample in enumerate(samples):
                lat, t = windows[sample]
                mine = slice(lat, lat + 4)
                expected = padded(np.concatenate([ds.a.values[t - 1:t + 1, mine],
                                                  ds.a.values[t:t + 2, mine]]), length)
                np.testing.assert_array_equal(x[row], expected)
                np.testing.assert_array_equal(y[row], padded(ds.b.values[t:t + 2, mine], length))
        counts = np.bincount(order, minlength=n)
        if remainder == "keep":
            assert (counts == 1).all()
        elif remainder == "drop":
            assert counts.max() == 1 and counts.sum() == n // 8 * 8
        else:  # the first ones again
            assert (counts >= 1).all() and order[n:] == order[:len(order) - n]
        orders.append(order)
    assert (orders[0] == orders[1]) == (view["order"]["shuffle"] == "none")


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_what_is_left(views, name, world):
    schema = json.loads((views / name / "schema.json").read_text())
    whole = views / name / "epoch-0001"
    counts = []
    for rank in range(world):
        mine = views / name / f"rank-{rank}-of-{world}" / "epoch-0001"
        batches = sorted(file.name for file in mine.iterdir() if file.suffix == ".json")
        counts.append(len(batches))
        for local, file in enumerate(batches):
            number = local * world + rank
            if number >= schema["batches"]:  # of a padded rank
                continue
            assert json.loads((mine / file).read_text())["samples"] == \
                json.loads((whole / f"batch-{number:06d}.json").read_text())["samples"]
            assert (mine / file[:-5] / "x.npy").read_bytes() == (
                whole / f"batch-{number:06d}" / "x.npy").read_bytes()
    assert max(counts) - min(counts) <= (VIEWS[name]["batch"]["remainder"] == "keep")


@pytest.mark.parametrize("edge", ["pad", "partial"])
def test_zarr_batches_over_the_edge(gappy, mount_at, tmp_path, edge):
    """Sizes of partial batches are right in every format; coordinates are those of the windows."""
    ds = gappy[1]
    view = {"name": "v", "variables": ["b"], "window": {"time": {"size": 10, "edge": edge}},
            "batch": 1, "formats": ["zarr", "npy", "safetensors"]}
    epoch = mount_at(gappy[0], tmp_path / "mnt", {"v": view}) / "views" / "v" / "epoch-0000"
    files = sorted(file.name for file in epoch.iterdir())
    assert len([file for file in files if file.endswith(".npy")]) == 4
    for b in range(4):
        expected = ds.b.values[10 * b:10 * b + 10]
        length = 10 if edge == "pad" else len(expected)
        expected = np.concatenate([expected, np.full((length - len(expected), Y, X), np.nan)])
        file = epoch / f"batch-{b:06d}.npy"
        values = np.load(file)
        np.testing.assert_array_equal(values, expected[None])
        assert file.stat().st_size == 4096 + values.nbytes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batch = xr.open_zarr(epoch / f"batch-{b:06d}.zarr")
        np.testing.assert_array_equal(batch.b.values, expected[None])
        assert batch.time_start.values[0] == ds.time.values[10 * b]


def test_a_damaged_chunk_fails_the_scan(gappy, fails, tmp_path):
    shutil.copytree(gappy[0], tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / "b" / "3.0.0").write_bytes(b"no Blosc")
    (tmp_path / "v.json").write_text(json.dumps({"variables": ["b"], "window": {"time": 1},
                                                 "missing": {"nan": "skip"}}))
    (tmp_path / "mnt").mkdir()
    line = fails(1, "mount", tmp_path / "s.zarr", tmp_path / "mnt", "--view", tmp_path / "v.json")
    assert "b/3.0.0" in line and not os.path.ismount(tmp_path / "mnt")
