"""Batches against numpy slicing written independently here, and against xbatcher itself."""

import itertools
import json
import warnings

import numpy as np
import pytest
import xarray as xr
import xbatcher

T, L, Y, X = 23, 4, 13, 18


def dataset():
    rng = np.random.default_rng(5)
    return xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), rng.standard_normal((T, Y, X)).astype("f4")),
            "q": (("time", "level", "lat", "lon"), rng.standard_normal((T, L, Y, X)).astype("f4")),
            "msl": (("time", "lat", "lon"), rng.standard_normal((T, Y, X))),
            "mask": (("lat", "lon"), rng.integers(0, 2, (Y, X)).astype("i1")),
        },
        coords={
            "time": np.datetime64("2000-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
            "level": np.array([200, 500, 700, 850], "i4"),
            "lat": np.linspace(60, -60, Y).astype("f4"),
            "lon": np.arange(X) * 20.0,
        },
    )


@pytest.fixture(scope="module",
                params=[(2, (5, 4, 13, 7)), (3, (1, 4, 13, 18)), (3, (8, 1, 5, 18))],
                ids=["v2", "v3-step", "v3-mixed"])
def store(request, tmp_path_factory):
    version, (t, l, y, x) = request.param
    path = tmp_path_factory.mktemp("view") / "s.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = dataset()
        encoding = {name: {"chunks": tuple(dict(time=t, level=l, lat=y, lon=x)[d] for d in v.dims)}
                    for name, v in ds.data_vars.items()}
        ds.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=True)
        return path, xr.open_zarr(path).load()


class Batches:
    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file = batchfs, store, folder / "view.json"
        self.file.write_text(json.dumps(view))

    def tensor(self, name, batch, epoch=0, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--epoch", epoch,
                                "--batch", batch, "--tensor", name, "--format", "npy", *more)

    def samples(self, batch, epoch=0, *more):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--epoch",
                                             epoch, "--batch", batch, "--format", "json",
                                             *more))["samples"]

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json"))


def starts(length, size, stride, offsets=(0,), wrap=False):
    if wrap:
        return list(range(0, length, stride))
    return [s for s in range(0, length, stride)
            if all(0 <= s + o and s + o + size <= length for o in offsets)]


def window(values, dims, at, sizes, offsets, wraps, lengths):
    """One sample of one variable: numpy only."""
    for axis, dim in enumerate(dims):
        if dim not in at:
            continue
        index = [at[dim] + o + i for o in offsets.get(dim, [0]) for i in range(sizes[dim])]
        if wraps.get(dim):
            index = [i % lengths[dim] for i in index]
        values = np.take(values, index, axis)
    return values


def equal(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


def test_windows_with_stride_and_wrap(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["t2m", "q"],
            "window": {"lat": {"size": 5, "stride": 3},
                       "lon": {"size": 6, "stride": 5, "wrap": True}, "time": 2},
            "batch": {"size": 7}}
    batches = Batches(batchfs, tmp_path, path, view)
    positions = list(itertools.product(starts(Y, 5, 3), starts(X, 6, 5, wrap=True),
                                       starts(T, 2, 2)))
    plan = batches.plan()
    assert plan["samples"] == len(positions) and plan["batches"] == -(-len(positions) // 7)
    for b in (0, 3, plan["batches"] - 1):
        mine = positions[7 * b:7 * b + 7]
        assert batches.samples(b) == list(range(7 * b, 7 * b + len(mine)))
        for name in ("t2m", "q"):
            expected = np.stack(
                [window(ds[name].values, ds[name].dims, dict(zip(("lat", "lon", "time"), p)),
                        {"lat": 5, "lon": 6, "time": 2}, {}, {"lon": True}, {"lon": X})
                 for p in mine])
            equal(batches.tensor(name, b), expected)


def test_tensors_offsets_stack_dims_and_dtype(batchfs, store, tmp_path):
    path, ds = store
    view = {"select": {"level": [500, 850], "time": {"from": "2000-01-02", "to": "2000-01-05"}},
            "window": {"time": 1},
            "tensors": {
                "x": {"variables": ["t2m", "q", "msl"], "offsets": {"time": [-2, 0]},
                      "stack": "channel", "dims": ["time", "channel", "lat", "lon"]},
                "y": {"variables": ["q"], "offsets": {"time": [1]}},
                "flat": {"variables": ["q", "t2m"], "stack": "all", "dims": ["all", "time"]},
                "maps": {"variables": ["q", "t2m"], "stack": "all"}},
            "batch": {"size": 4, "remainder": "drop"}, "dtype": "float32", "formats": ["npy"]}
    batches = Batches(batchfs, tmp_path, path, view)
    sub = ds.sel(level=[500, 850], time=slice("2000-01-02", "2000-01-05"))
    positions = starts(sub.sizes["time"], 1, 1, (-2, 0, 1))
    assert batches.plan()["batches"] == len(positions) // 4
    for b in range(len(positions) // 4):
        mine = positions[4 * b:4 * b + 4]
        x = np.stack([np.concatenate([sub.t2m.values[[s - 2, s]][:, None], sub.q.values[[s - 2, s]],
                                      sub.msl.values[[s - 2, s]][:, None].astype("f4")], axis=1)
                      for s in mine])
        equal(batches.tensor("x", b), x)
        equal(batches.tensor("y", b), np.stack([sub.q.values[s + 1:s + 2] for s in mine]))
        flat = np.stack([np.concatenate([sub.q.values[s].ravel(),
                                         sub.t2m.values[s].ravel()])[:, None] for s in mine])
        equal(batches.tensor("flat", b), flat)
        equal(batches.tensor("maps", b),
              np.stack([np.concatenate([sub.q.values[s], sub.t2m.values[s][None]])[:, None]
                        for s in mine]))


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
def test_remainder_and_ranks(batchfs, store, tmp_path, remainder):
    path, ds = store
    view = {"variables": ["t2m"], "window": {"time": 1},
            "batch": {"size": 5, "remainder": remainder}, "order": {"shuffle": "global", "seed": 3}}
    batches = Batches(batchfs, tmp_path, path, view)
    count = {"keep": 5, "drop": 4, "pad": 5}[remainder]
    assert batches.plan()["batches"] == count
    everything = [batches.samples(b) for b in range(count)]
    flat = sum(everything, [])
    if remainder == "keep":
        assert sorted(flat) == list(range(T))
    if remainder == "pad":
        assert len(flat) == 25 and sorted(flat[:T]) == list(range(T)) and flat[T:] == flat[:2]
    for rank in range(2):
        mine = list(range(rank, count, 2))
        for local, b in enumerate(mine if remainder != "drop" else mine[:count // 2]):
            assert batches.samples(local, 0, "--rank", rank, "--world", 2) == everything[b]
    equal(batches.tensor("t2m", 1, 2),
          np.stack([ds.t2m.values[s:s + 1] for s in batches.samples(1, 2)]))


# ---- the shuffle, as batchfs-view(5) describes it ------------------------------------------------

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def permute(i, size, seed, epoch, stream=0):
    half = 1
    while half < 31 and (1 << (2 * half)) < size:
        half += 1
    state = mix((seed + GOLDEN) & MASK)
    state = mix((state + epoch + GOLDEN) & MASK)
    state = mix((state + stream + GOLDEN) & MASK)
    keys = [mix((state + r * GOLDEN) & MASK) for r in range(1, 7)]
    while True:
        left, right = i >> half, i & ((1 << half) - 1)
        for key in keys:
            left, right = right, left ^ (mix((right + key) & MASK) & ((1 << half) - 1))
        i = (left << half) | right
        if i < size:
            return i


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_global_shuffle_is_the_documented_one(batchfs, store, tmp_path, epoch):
    path, _ = store
    view = {"variables": ["t2m"], "window": {"lat": {"size": 4, "stride": 1}, "time": 1},
            "batch": {"size": 40}, "order": {"shuffle": "global", "seed": 11}}
    batches = Batches(batchfs, tmp_path, path, view)
    n = batches.plan()["samples"]
    order = [permute(i, n, 11, epoch) for i in range(n)]
    assert sorted(order) == list(range(n))
    assert batches.samples(0, epoch) == order[:40]
    assert batches.samples(2, epoch) == order[80:120]


def test_block_shuffle_is_a_permutation_that_keeps_chunks_together(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["t2m"], "window": {"time": 1, "lat": {"size": 4, "stride": 1}},
            "batch": {"size": 10}, "order": {"shuffle": "block", "seed": 2, "buffer": 2}}
    batches = Batches(batchfs, tmp_path, path, view)
    count = batches.plan()["batches"]
    flat = sum((batches.samples(b) for b in range(count)), [])
    assert sorted(flat) == list(range(batches.plan()["samples"])) and flat != sorted(flat)
    equal(batches.tensor("t2m", 1),
          np.stack([ds.t2m.values[s // 10:s // 10 + 1, s % 10:s % 10 + 4] for s in flat[10:20]]))


# ---- xbatcher ------------------------------------------------------------------------------------

XBATCHER = [
    dict(input_dims=dict(time=5)),
    dict(input_dims=dict(time=5), input_overlap=dict(time=2)),
    dict(input_dims=dict(lat=6, lon=6)),
    dict(input_dims=dict(lon=6, lat=6), input_overlap=dict(lat=4, lon=3)),
    dict(input_dims=dict(lat=6, lon=6), batch_dims=dict(time=10)),
    dict(input_dims=dict(lat=6, lon=6), input_overlap=dict(lat=3), concat_input_dims=True),
    dict(input_dims=dict(lat=6, lon=6), batch_dims=dict(time=10), concat_input_dims=True),
    dict(input_dims=dict(time=5, lat=13, lon=18), batch_dims=dict(time=10), concat_input_dims=True),
    dict(input_dims=dict(time=4, lat=6), input_overlap=dict(time=3), batch_dims=dict(time=8),
         concat_input_dims=True),
    dict(input_dims=dict(lat=6), input_overlap=dict(time=2), batch_dims=dict(time=6)),
]


@pytest.mark.parametrize("variables", [["t2m"], ["q"], ["t2m", "msl"], ["mask", "q", "t2m"]],
                         ids="+".join)
@pytest.mark.parametrize("form", XBATCHER, ids=lambda form: json.dumps(form))
def test_xbatcher(batchfs, store, tmp_path, form, variables):
    path, ds = store
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generator = xbatcher.BatchGenerator(ds[variables], **form)
    batches = Batches(batchfs, tmp_path, path, {"variables": variables, "xbatcher": form})
    plan = batches.plan()
    assert plan["batches"] == len(generator)
    for b in sorted({0, 1, len(generator) // 2, len(generator) - 1}):
        if b >= len(generator):
            continue
        expected = generator[b]
        for name in variables:
            equal(batches.tensor(name, b), np.ascontiguousarray(expected[name].values))
            dims = [t["dims"] for t in plan["tensors"] if t["name"] == name][0]
            assert tuple(dims) == expected[name].dims
