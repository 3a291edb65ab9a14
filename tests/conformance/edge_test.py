"""Windows over the edge of the selection, against numpy."""

import itertools
import json
import warnings

import numpy as np
import pytest
import xarray as xr

T, L, Y, X = 23, 2, 11, 18


@pytest.fixture(scope="module",
                params=[(2, (5, 2, 11, 6)), (3, (1, 2, 11, 18)), (3, (23, 1, 4, 5))],
                ids=["v2", "step", "column"])
def store(request, tmp_path_factory):
    version, (t, l, y, x) = request.param
    rng = np.random.default_rng(9)
    ds = xr.Dataset({"t": (("time", "lat", "lon"), rng.standard_normal((T, Y, X)).astype("f4")),
                     "q": (("time", "level", "lat", "lon"), rng.standard_normal((T, L, Y, X))),
                     "n": (("time", "lat", "lon"), rng.integers(-9, 9, (T, Y, X)).astype("i2"))},
                    {"time": np.datetime64("2001-01-01", "ns")
                         + np.arange(T) * np.timedelta64(6, "h"), "level": [300, 500]})
    path = tmp_path_factory.mktemp("edge") / "s.zarr"
    sizes = dict(time=t, level=l, lat=y, lon=x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=version, consolidated=True,
                   encoding={n: {"chunks": tuple(sizes[d] for d in v.dims)}
                             for n, v in ds.data_vars.items()})
    return path, xr.open_zarr(path).load()


class Batches:
    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file = batchfs, store, folder / "view.json"
        self.file.write_text(json.dumps(view))

    def tensor(self, name, batch):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--batch", batch,
                                "--tensor", name)

    def provenance(self, batch):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--batch",
                                             batch, "--format", "json"))

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json"))


def starts(length, size, stride, edge):
    """Whole windows; and one more when something is left behind them."""
    whole = [s for s in range(0, length, stride) if s + size <= length]
    following = len(whole) * stride
    if edge != "drop" and (not whole or whole[-1] + size < length) and following < length:
        whole.append(following)
    return whole


def padded(values, axis, start, size, pad):
    """values[start:start + size] along an axis, with `pad` behind the end."""
    index = np.arange(start, start + size)
    inside = index[index < values.shape[axis]]
    part = np.take(values, inside, axis)
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, size - len(inside))
    return np.pad(part, widths, constant_values=pad)


def same(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("pad", [None, -7])
@pytest.mark.parametrize("size, stride", [(5, 5), (4, 3), (5, 2), (3, 1), (6, 9), (40, 40)])
@pytest.mark.parametrize("shuffle", ["none", "global"])
def test_pad(batchfs, store, tmp_path, size, stride, pad, shuffle):
    path, ds = store
    edge = {"edge": "pad"} | ({} if pad is None else {"pad_value": pad})
    view = {"variables": ["t", "q", "n"], "batch": 5, "order": {"shuffle": shuffle},
            "window": {"time": {"size": size, "stride": stride} | edge, "lat": {"size": 4} | edge}}
    positions = list(itertools.product(starts(T, size, stride, "pad"), starts(Y, 4, 4, "pad")))
    batches = Batches(batchfs, tmp_path, path, view)
    plan = batches.plan()
    assert plan["samples"] == len(positions) and plan["batches"] == -(-len(positions) // 5)
    for b in sorted({0, plan["batches"] - 1}):
        provenance = batches.provenance(b)
        mine = [positions[s] for s in provenance["samples"]]
        assert [w["time"] for w in provenance["windows"]] == [
            [t, min(t + size, T)] for t, _ in mine]
        for name in ("t", "q", "n"):
            values, dims = ds[name].values, ds[name].dims
            value = pad if pad is not None else 0 if name == "n" else np.nan
            expected = np.stack([padded(padded(values, dims.index("time"), t, size, value),
                                        dims.index("lat"), y, 4, value) for t, y in mine])
            same(batches.tensor(name, b), expected)


def test_padding_is_no_data(batchfs, store, tmp_path):
    """It is neither normalised, nor filled, nor a reason to skip."""
    path, ds = store
    window = {"time": {"size": 4, "edge": "pad"}}
    expected = ((ds.t.values.astype("f8") - 2) / 4).astype("f4")
    whole = padded(expected, 0, 20, 4, np.nan)
    for missing in ({"nan": "fill", "value": 5}, {"nan": "skip"}):
        view = {"variables": ["t"], "window": window, "missing": missing,
                "normalize": {"method": "zscore", "statistics": {"t": {"mean": 2, "std": 4}}}}
        batches = Batches(batchfs, tmp_path, path, view)
        assert batches.plan()["samples"] == 6
        same(batches.tensor("t", 5), whole[None])
    view |= {"dtype": "float16", "window": {"time": {"size": 4, "edge": "pad", "pad_value": 0.1}}}
    same(Batches(batchfs, tmp_path, path, view).tensor("t", 5)[0, 3:],
         np.full((1, Y, X), 0.1, "f2"))


def test_pad_with_offsets_and_a_stack(batchfs, store, tmp_path):
    path, ds = store
    view = {"window": {"time": {"size": 3, "edge": "pad"}}, "batch": 3, "dtype": "float32",
            "tensors": {"x": {"variables": ["t", "q"], "offsets": {"time": [-1, 0]},
                              "stack": "channel", "dims": ["time", "channel", "lat", "lon"]},
                        "y": {"variables": ["t"], "offsets": {"time": [2]}}}}
    batches = Batches(batchfs, tmp_path, path, view)
    # Whole windows start at 3, 6 ... 18 (18 + 3 + 2 is 23): nothing remains after the last one.
    assert batches.plan()["samples"] == 6
    view["tensors"]["y"]["offsets"]["time"] = [1]
    # ... 18, and 21, of which offset 1 begins inside
    batches = Batches(batchfs, tmp_path, path, view)
    assert batches.plan()["samples"] == 7
    both = np.concatenate([ds.t.values[:, None], ds.q.values.astype("f4")], 1)
    same(batches.tensor("x", 2),
         np.concatenate([padded(both, 0, 20, 3, np.nan), padded(both, 0, 21, 3, np.nan)])[None])
    same(batches.tensor("y", 2), padded(ds.t.values, 0, 22, 3, np.nan)[None])


@pytest.mark.parametrize("size, stride", [(5, 5), (4, 3), (40, 40)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_partial(batchfs, store, tmp_path, size, stride, count):
    """A batch is as long as its longest window; what is shorter is padded."""
    path, ds = store
    view = {"variables": ["t", "q", "n"], "batch": count,
            "window": {"lat": {"size": 6, "edge": "partial"},
                       "time": {"size": size, "stride": stride, "edge": "partial"}}}
    positions = list(itertools.product(starts(Y, 6, 6, "partial"),
                                       starts(T, size, stride, "partial")))
    batches = Batches(batchfs, tmp_path, path, view)
    plan = batches.plan()
    assert plan["samples"] == len(positions)
    for b in range(plan["batches"]):
        mine = positions[count * b:count * b + count]
        time = max(min(size, T - t) for _, t in mine)
        lat = max(min(6, Y - y) for y, _ in mine)
        for name in ("t", "n") if b % 3 else ("q",):
            values, dims = ds[name].values, ds[name].dims
            value = 0 if name == "n" else np.nan
            expected = np.stack([padded(padded(values, dims.index("time"), t, time, value),
                                        dims.index("lat"), y, lat, value) for y, t in mine])
            same(batches.tensor(name, b), expected)


def test_the_view_says_its_edge(batchfs, store, tmp_path):
    view = {"variables": ["t"], "window": {"time": {"size": 4, "edge": "partial"}},
            "formats": ["npy", "zarr"]}
    assert Batches(batchfs, tmp_path, store[0], view).plan()["tensors"][0]["shape"] == [1, 4, Y, X]


@pytest.mark.parametrize("window, more, words", [
    ({"size": 4, "edge": "pads"}, {}, "did you mean 'pad'"),
    ({"size": 4, "edge": "pad", "wrap": True}, {}, "wrap"),
    ({"size": 4, "pad_value": 1}, {}, "edge"),
    ({"size": 4, "edge": "pad", "pad_value": 0.5}, {}, "int16"),
    ({"size": 4, "edge": "pad", "pad_value": 40000}, {}, "int16"),
    ({"size": 4, "edge": "partial"}, {"order": {"shuffle": "global"}}, "shuffle"),
    ({"size": 3000000000, "edge": "pad"}, {}, "at most"),
])
def test_refusals(batchfs, store, tmp_path, window, more, words):
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"variables": ["n"], "window": {"time": window}} | more))
    assert words in batchfs.refusal("plan", store[0], "--view", file)
