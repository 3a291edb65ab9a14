"""Samples without missing values, and missing values that are replaced, against numpy."""

import itertools
import json
import os
import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr

T, L, Y, X = 26, 3, 14, 16


def dataset():
    rng = np.random.default_rng(3)
    t = rng.normal(280, 10, (T, Y, X)).astype("f4")
    q = rng.random((T, L, Y, X))
    t[7, 3, 4] = t[8, 3, 5] = t[19] = np.nan
    q[2, 1, 13, 15] = q[12, 0, 0, 0] = q[23, 2, 6, 9] = np.nan
    return xr.Dataset(
        {"t": (("time", "lat", "lon"), t), "q": (("time", "level", "lat", "lon"), q),
         "packed": (("time", "lat", "lon"),
                    np.where(rng.random((T, Y, X)) < 0.001, np.nan, rng.random((T, Y, X)))),
         "land": (("lat", "lon"), np.where(np.arange(Y)[:, None] < 2, np.nan, rng.random((Y, X)))),
         "n": (("time", "lat", "lon"), rng.integers(0, 9, (T, Y, X)).astype("i4"))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
         "level": [300, 500, 700]})


@pytest.fixture(scope="module",
                params=[(2, (5, 2, 14, 6)), (3, (1, 3, 14, 16)), (3, (26, 1, 5, 4))],
                ids=["v2", "step", "column"])
def store(request, tmp_path_factory):
    version, (t, l, y, x) = request.param
    path = tmp_path_factory.mktemp("missing") / "s.zarr"
    ds = dataset()
    sizes = dict(time=t, level=l, lat=y, lon=x)
    encoding = {n: {"chunks": tuple(sizes[d] for d in v.dims)} for n, v in ds.data_vars.items()}
    encoding["packed"] |= {"dtype": "i2", "scale_factor": 1e-4, "add_offset": 0.5,
                           "_FillValue": -32768}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=True)
    return path, xr.open_zarr(path).load()


class Batches:
    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file, self.cache = (batchfs, store, folder / "view.json",
                                                           folder / "cache")
        self.file.write_text(json.dumps(view))

    def tensor(self, name, batch, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--batch", batch,
                                "--tensor", name, "--cache-dir", self.cache, *more)

    def provenance(self, batch, *more):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--batch",
                                             batch, "--format", "json", "--cache-dir", self.cache,
                                             *more))

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json",
                                             "--cache-dir", self.cache))


def take(values, dims, at, sizes, offsets, lengths):
    for axis, dim in enumerate(dims):
        if dim in at:
            index = [(at[dim] + o + i) % lengths[dim] for o in offsets.get(dim, [0])
                     for i in range(sizes[dim])]
            values = np.take(values, index, axis)
    return values


CASES = {
    "steps": ({"variables": ["t"], "window": {"time": 1}, "batch": 4}, {}),
    "all": ({"variables": ["t", "q", "packed", "n"],
             "window": {"time": 1, "lat": {"size": 5, "stride": 3}}, "batch": 6}, {}),
    "wrap": ({"variables": ["t", "q"], "batch": 16, "window": {
        "lon": {"size": 5, "stride": 3, "wrap": True}, "time": {"size": 2, "stride": 1}}}, {}),
    "tensors": ({"window": {"time": 1, "lat": {"size": 4, "stride": 2}},
                 "batch": 5, "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-2, 0]}},
                                         "y": {"variables": ["q"], "offsets": {"time": [3]}}}},
                {"x": [-2, 0], "y": [3]}),
    "lacks": ({"variables": ["t", "land"], "window": {"lat": 2, "time": 3}, "batch": 5}, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "select", [None, {"time": ["#20", "#2", "#3", "#7", "#11", "#12", "#13", "#14", "#15", "#22"]},
               {"time": {"from": "#1", "to": "#20"}, "level": [700, 300]}],
    ids=["", "list", "range"])
def test_skip(batchfs, store, tmp_path, case, select):
    path, ds = store
    view, offsets = CASES[case]
    view = view | {"missing": {"nan": "skip"}}
    if select:
        view["select"] = select
        ds = (ds.isel(time=[20, 2, 3, 7, 11, 12, 13, 14, 15, 22])
              if isinstance(select["time"], list) else ds.isel(time=slice(1, 20), level=[2, 0]))
    tensors = {name: (tensor["variables"][0], {"time": offsets[name]})
               for name, tensor in view.get("tensors", {}).items()}
    tensors = tensors or {name: (name, {}) for name in view["variables"]}
    window = {d: {"stride": w if isinstance(w, int) else w["size"]}
                  | ({"size": w} if isinstance(w, int) else w) for d, w in view["window"].items()}
    steps = [o for list_ in offsets.values() for o in list_] + [0]
    starts = []
    for dim, w in window.items():
        own = steps if dim == "time" else [0]
        n = ds.sizes[dim]
        starts.append([s for s in range(0, n, w["stride"])
                       if w.get("wrap") or all(0 <= s + o and s + o + w["size"] <= n for o in own)])
    sizes = {d: w["size"] for d, w in window.items()}
    samples = []
    for position in itertools.product(*starts):
        at = dict(zip(window, position))
        values = {name: take(ds[v].values, ds[v].dims, at, sizes, o, ds.sizes)
                  for name, (v, o) in tensors.items()}
        if not any(np.isnan(v).any() for v in values.values() if v.dtype.kind == "f"):
            samples.append((at, values))
    batches = Batches(batchfs, tmp_path, path, view)
    if not samples:
        assert "leaves no sample" in batchfs.refusal("plan", path, "--view", batches.file,
                                                     "--cache-dir", batches.cache)
        return
    plan = batches.plan()
    size = view["batch"]
    assert plan["samples"] == len(samples) and plan["batches"] == -(-len(samples) // size)
    for b in sorted({0, plan["batches"] // 2, plan["batches"] - 1}):
        mine = samples[size * b:size * b + size]
        provenance = batches.provenance(b)
        assert provenance["samples"] == list(range(size * b, size * b + len(mine)))
        if not select:
            assert [{d: w[0] for d, w in row.items()}
                    for row in provenance["windows"]] == [at for at, _ in mine]
        for name in tensors:
            actual = batches.tensor(name, b)
            expected = np.stack([v[name] for _, v in mine])
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_ranks_and_orders_are_of_what_is_left(batchfs, store, tmp_path, remainder, shuffle):
    path, ds = store
    view = {"variables": ["t"], "window": {"time": 1, "lat": {"size": 4, "stride": 2}},
            "batch": {"size": 7, "remainder": remainder}, "order": {"shuffle": shuffle, "seed": 4},
            "missing": {"nan": "skip"}}
    good = [(t, y) for t in range(T) for y in range(0, Y - 3, 2)
            if not np.isnan(ds.t.values[t, y:y + 4]).any()]
    batches = Batches(batchfs, tmp_path, path, view)
    count = len(good) // 7 if remainder == "drop" else -(-len(good) // 7)
    assert batches.plan()["batches"] == count
    everything = [batches.provenance(b)["samples"] for b in range(count)]
    flat = sum(everything, [])
    assert (len(set(flat)) == min(len(flat), len(good)) and set(flat) <= set(range(len(good)))
            and flat != sorted(flat))
    world = 3
    for rank in range(world):
        mine = list(range(rank, count, world))[:count // world if remainder == "drop" else None]
        for local, b in enumerate(mine):
            assert batches.provenance(local, "--rank", rank, "--world",
                                      world)["samples"] == everything[b]
        if remainder == "pad":  # the same number for each
            batches.provenance(-(-count // world) - 1, "--rank", rank, "--world", world)
    np.testing.assert_array_equal(batches.tensor("t", 1),
                                  np.stack([ds.t.values[t:t + 1, y:y + 4]
                                            for t, y in (good[s] for s in everything[1])]))


def test_the_scan_is_kept(batchfs, store, tmp_path, monkeypatch):
    path, ds = store
    view = {"variables": ["t"], "window": {"time": 1}, "missing": {"nan": "skip"}}
    batches = Batches(batchfs, tmp_path, path, view)
    samples = batches.plan()["samples"]
    (index,) = (batches.cache / "samples").iterdir()
    inode = os.stat(index).st_ino  # a file that is written again has another inode
    view |= {"order": {"shuffle": "global"}, "batch": 3, "dtype": "float64"}
    assert Batches(batchfs, tmp_path, path, view).plan()["samples"] == samples
    assert ([p for p in (batches.cache / "samples").iterdir()] == [index]
            and os.stat(index).st_ino == inode)
    for damage in (b"", index.read_bytes()[:-1], index.read_bytes()[:-1] + b"\x7e", b"x" * 100):
        index.write_bytes(damage)
        assert Batches(batchfs, tmp_path, path, view).plan()["samples"] == samples
    view["window"] = {"time": 2}
    Batches(batchfs, tmp_path, path, view).plan()
    assert len(list((batches.cache / "samples").iterdir())) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    batchfs.bytes("plan", path, "--view", batches.file)
    assert len(list(pathlib.Path(tmp_path / "xdg" / "batchfs" / "samples").iterdir())) == 1
    (tmp_path / "xdg2").write_text("no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg2"))
    batchfs.bytes("plan", path, "--view", batches.file)


@pytest.mark.parametrize("value", [None, -999.5])
def test_fill(batchfs, store, tmp_path, value):
    path, ds = store
    missing = {"nan": "fill"} | ({} if value is None else {"value": value})
    view = {"variables": ["t", "q", "packed", "n"], "window": {"time": 1},
            "batch": T, "missing": missing,
            "normalize": {"method": "zscore", "statistics": {"t": {"mean": 280, "std": 10}},
                          "variables": ["t"]}}
    batches = Batches(batchfs, tmp_path, path, view)
    fill = 0.0 if value is None else value
    for name in ("t", "q", "packed", "n"):
        values = ds[name].values
        if name == "t":
            values = ((values.astype("f8") - 280) / 10).astype("f4")
        expected = (np.where(np.isnan(values), values.dtype.type(fill), values)
                    if values.dtype.kind == "f" else values)
        np.testing.assert_array_equal(batches.tensor(name, 0)[:, 0], expected)
    assert batches.plan()["samples"] == T


@pytest.mark.parametrize("missing, words", [
    ({"nan": "skipp"}, "did you mean 'skip'"),
    ({"nan": "skip", "value": 3}, "missing.value"),
    ({"nan": "fill", "value": "x"}, "missing.value"),
])
def test_refusals(batchfs, store, tmp_path, missing, words):
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"variables": ["t"], "window": {"time": 1}, "missing": missing}))
    assert words in batchfs.refusal("plan", store[0], "--view", file)


def test_xbatcher_skips_nothing(batchfs, store, tmp_path):
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"variables": ["t"], "xbatcher": {"input_dims": {"time": 2}},
                                "missing": {"nan": "skip"}}))
    assert "xbatcher" in batchfs.refusal("plan", store[0], "--view", file)
