"""Coarsened tensors of windows that are padded, of several sources and of ensembles are those of
xarray.coarsen."""

import io
import itertools
import json

import numpy as np
import pytest
import xarray as xr

T, Y, X = 10, 8, 12
HOUR = np.timedelta64(1, "h")
TIMES = np.datetime64("2000-01-01", "ns") + np.arange(T) * 6 * HOUR
LATS, LONS = np.arange(Y) * -3.0 + 10, np.arange(X) * 30.0
METHODS = ["mean", "sum", "min", "max"]


def field(seed, times, lats, lons, missing=0.1):
    rng = np.random.default_rng(seed)
    values = rng.normal(280, 20, (len(times), len(lats), len(lons)))
    values[rng.random(values.shape) < missing] = np.nan
    return (("time", "lat", "lon"), values)


class Stores:
    def __init__(self, batchfs, folder):
        self.batchfs, self.folder, self.data, self.options = batchfs, folder, {}, []
        lsm = (("lat", "lon"), np.random.default_rng(9).random((Y, X)))
        self.add("anchor", xr.Dataset({"t": field(0, TIMES, LATS, LONS),
                                       "u": field(1, TIMES, LATS, LONS), "lsm": lsm},
                                      {"time": TIMES, "lat": LATS, "lon": LONS}))

    def add(self, name, dataset, chunk=4):
        chunks = {each: {"chunks": tuple(min(n, chunk + d) for d, n in enumerate(v.shape))}
                  for each, v in dataset.data_vars.items()}
        dataset.to_zarr(self.folder / f"{name}.zarr", zarr_format=3, encoding=chunks,
                        consolidated=False)
        self.data[name] = dataset
        if name != "anchor":
            self.options += ["--store", f"{name}={self.folder}/{name}.zarr"]

    def words(self, view):
        (self.folder / "view.json").write_text(json.dumps(view))
        return [self.folder / "anchor.zarr", *self.options, "--view", self.folder / "view.json"]

    def tensors(self, view, *more):
        data = self.batchfs.bytes("batch", *self.words({"batch": 1000, "dtype": "float64"} | view),
                                  "--format", "npz", *more)
        with np.load(io.BytesIO(data)) as file:
            return dict(file)

    def starts(self, view):
        return json.loads(self.batchfs.bytes("batch", *self.words({"batch": 1000} | view),
                                             "--format", "json"))["starts"]


@pytest.fixture
def stores(batchfs, tmp_path):
    return Stores(batchfs, tmp_path)


def window(array, axis, start, size):
    """Positions from `start` on, NaN behind the end."""
    inside = np.take(array, np.arange(start, min(start + size, array.shape[axis])), axis)
    lengths = [(0, 0)] * array.ndim
    lengths[axis] = (0, size - inside.shape[axis])
    return np.pad(inside, lengths, constant_values=np.nan)


def coarse(values, dims, method, sizes, outside=None, pad=np.nan):
    """xarray's, but `pad` for blocks that are outside altogether, whose sums are 0 in xarray."""
    blocks = xr.DataArray(values, dims=dims).coarsen(sizes, boundary="exact")
    result = getattr(blocks, method)().values
    if outside is not None:
        result[xr.DataArray(outside, dims=dims).coarsen(sizes,
                                                        boundary="exact").min().values == 1] = pad
    return result


def close(ours, expected):
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:All-NaN slice encountered")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pad", [None, -99.0])
def test_windows_that_are_padded(stores, method, pad):
    sizes = {"time": 2, "lat": 2, "lon": 3}
    how = {dim: {"size": size, "how": method} for dim, size in sizes.items()}
    value = {} if pad is None else {"pad_value": pad}
    view = {"window": {"time": {"size": 4, "edge": "pad"} | value,
                       "lat": {"size": 6, "stride": 4, "edge": "pad"} | value},
            "tensors": {"x": {"variables": ["t", {"make": "sum", "of": ["t", "u"]},
                                            {"make": "cos_latitude", "units": "degrees"}],
                              "stack": "c", "coarsen": how}}}
    if method == "sum":  # a channel along latitude has no sums along others
        view["tensors"]["x"]["variables"].pop()
    anchor = stores.data["anchor"]
    made = {0: anchor.t.values, 1: (anchor.t + anchor.u).values}
    if method != "sum":
        made[2] = np.broadcast_to(np.cos(np.deg2rad(LATS))[:, None], (T, Y, X))
    ours = stores.tensors(view)["x"]
    starts = stores.starts(view)
    assert len(starts) == 6 and [8, 4] in starts
    for row, (time, lat) in enumerate(starts):
        for channel, values in made.items():
            outside = window(window(np.zeros((T, Y, X)), 0, time, 4), 1, lat, 6)
            values = window(window(values, 0, time, 4), 1, lat, 6)
            close(ours[row, channel], coarse(values, ("time", "lat", "lon"), method, sizes,
                                             np.isnan(outside), pad if pad is not None else np.nan))


def test_padding_is_neither_normalized_nor_filled(stores):
    numbers = {"t": {"mean": 280, "std": 20}, "lsm": {"mean": 0.5, "std": 0.25}}
    view = {"window": {"time": 1, "lat": {"size": 8, "stride": 6, "edge": "pad", "pad_value": -9}},
            "missing": {"nan": "fill", "value": 7},
            "normalize": {"method": "zscore", "statistics": numbers},
            "tensors": {"x": {"variables": ["t", "lsm"], "stack": "c", "broadcast": True,
                              "coarsen": {"lat": 4}}}}
    ours = stores.tensors(view)["x"]
    anchor = stores.data["anchor"]
    for row, (time, lat) in enumerate(stores.starts(view)):
        for channel, values in enumerate((anchor.t.values[time], anchor.lsm.values)):
            name = ("t", "lsm")[channel]
            blocks = coarse(window(values, 0, lat, 8), ("lat", "lon"), "mean", {"lat": 4})
            expected = np.nan_to_num((blocks - numbers[name]["mean"]) / numbers[name]["std"], nan=7)
            if lat == 6:  # two positions are left: the second block is padding
                expected[1] = -9
            close(ours[row, channel, 0], expected)


def test_each_position_of_a_window_has_its_numbers(stores):
    """Along dimensions of windows that are not coarsened; a block of a coarsened one is of
    several."""
    mean, std = np.arange(Y) * 10.0, np.arange(Y) + 1.0
    along_time = {"dims": ["time"], "mean": list(range(T)), "std": [2] * T}
    view = {
        "window": {"time": {"size": 2, "stride": 1}, "lat": {"size": 3, "stride": 2, "edge": "pad"},
                   "lon": {"size": 4, "wrap": True}},
        "normalize": {"method": "zscore", "statistics": {
            "t": {"dims": ["lat"], "mean": list(mean), "std": list(std)}, "u": along_time}},
        "tensors": {"x": {"variables": ["t"], "offsets": {"time": [0, -1]}, "coarsen": {"lon": 2}},
                    "y": {"variables": ["u"], "offsets": {"time": [0, 1]},
                          "coarsen": {"lon": {"size": 4, "how": "max"}}}}}
    ours = stores.tensors(view)
    anchor = stores.data["anchor"]
    t = (anchor.t.values.reshape(T, Y, X))
    for row, (time, lat, lon) in enumerate(stores.starts(view)):
        columns = np.arange(lon, lon + 4) % X
        steps = [time, time + 1, time - 1, time]
        patch = window(t[steps][..., columns], 1, lat, 3)
        numbers = [window(each, 0, lat, 3)[:, None] for each in (mean, std)]
        close(ours["x"][row],
              (coarse(patch, ("time", "lat", "lon"), "mean", {"lon": 2}) - numbers[0]) / numbers[1])
        steps = np.array([time, time + 1, time + 1, time + 2])
        patch = window(anchor.u.values[steps][..., columns], 1, lat, 3)
        close(ours["y"][row],
              (coarse(patch, ("time", "lat", "lon"), "max", {"lon": 4}) - steps[:, None, None]) / 2)
    view["tensors"] = {"x": {"variables": ["t"], "coarsen": {"lat": 3}}}
    view["normalize"]["variables"] = ["t"]
    assert ("is normalized with a number for each position along 'lat', and a block "
            "of it is of several" in stores.batchfs.refusal("plan", *stores.words(view)))


def finer(ratio):
    lats = (np.arange(Y * ratio) - (ratio - 1) / 2) * -3.0 / ratio + 10
    lons = (np.arange(X * ratio) - (ratio - 1) / 2) * 30.0 / ratio
    return lats, lons


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("edge", ["drop", "pad"])
def test_a_finer_grid_is_coarsened_to_the_first(stores, method, edge):
    lats, lons = finer(4)
    fine = xr.Dataset({"v": field(3, TIMES, lats, lons, 0)},
                      {"time": TIMES, "lat": lats, "lon": lons})
    stores.add("fine", fine.isel(lat=slice(None, None, -1)), 7)
    view = {"sources": {"a": {},
                        "f": {"store": "fine", "join": {"lat": {"ratio": 4}, "lon": {"ratio": 4}}}},
            "window": {"time": 1, "lat": {"size": 3, "stride": 2, "edge": edge},
                       "lon": {"size": 4, "stride": 3, "wrap": True}},
            "tensors": {"hi": {"variables": ["f:v"]}, "lo": {"variables": ["f:v"], "coarsen": {
                "lat": {"size": 4, "how": method}, "lon": {"size": 4, "how": method}}}}}
    ours = stores.tensors(view)
    for row, (time, lat, lon) in enumerate(stores.starts(view)):
        columns = np.arange(4 * lon, 4 * lon + 16) % (4 * X)
        patch = window(fine.v.values[time][:, columns], 0, 4 * lat, 12)
        np.testing.assert_array_equal(ours["hi"][row, 0], patch)
        outside = np.isnan(window(np.zeros((4 * Y, 16)), 0, 4 * lat, 12))
        close(ours["lo"][row, 0],
              coarse(patch, ("lat", "lon"), method, {"lat": 4, "lon": 4}, outside))


@pytest.mark.parametrize("method", METHODS)
def test_a_coarser_grid_is_repeated_and_coarsened(stores, method):
    """Blocks of repeated cells, also where the coarser grid lacks some of them."""
    anchor = stores.data["anchor"]
    other = anchor[["t"]].coarsen(lat=4, lon=2).mean().rename(t="w")
    stores.add("coarse", other.isel(lon=[0, 1, 3, 4, 5]))
    cells = {"size": 2, "how": method}
    join = {"lat": {"ratio": "1/4"}, "lon": {"ratio": "1/2", "missing": "pad"}}
    view = {"sources": {"a": {}, "c": {"store": "coarse", "join": join}},
            "window": {"time": 2, "lon": {"size": 6, "stride": 1}}, "tensors": {
                "x": {"variables": ["c:w", {"make": "difference", "of": ["t", "c:w"]}],
                      "stack": "ch", "coarsen": {"time": cells, "lat": cells, "lon": cells}}}}
    repeated = np.repeat(np.repeat(other.w.values, 4, axis=1), 2, axis=2)
    repeated[:, :, 4:6] = np.nan
    outside = np.zeros((T, Y, X), bool)
    outside[:, :, 4:6] = True
    ours = stores.tensors(view)["x"]
    for row, (time, lon) in enumerate(stores.starts(view)):
        for channel, values in enumerate((repeated, anchor.t.values - repeated)):
            at = (slice(time, time + 2), slice(None), slice(lon, lon + 6))
            close(ours[row, channel], coarse(values[at], ("time", "lat", "lon"), method,
                                             {"time": 2, "lat": 2, "lon": 2}, outside[at]))


def blocks_of_existing(values, exists, steps):
    """Reduces the blocks of existing positions, one method after the other; NaN for a block without
    any, whatever the method."""
    methods = {"mean": np.nanmean, "sum": np.nansum, "min": np.nanmin, "max": np.nanmax}
    for how, group in itertools.groupby(steps, key=lambda step: step[2]):
        sizes = [1, 1, 1]
        for axis, size, _ in group:
            sizes[axis] = size
        result = np.full([n // size for n, size in zip(values.shape, sizes)], np.nan)
        exist = np.zeros(result.shape, bool)
        for at in np.ndindex(result.shape):
            block = tuple(slice(i * size, (i + 1) * size) for i, size in zip(at, sizes))
            exist[at] = exists[block].any()
            if exist[at]:
                result[at] = methods[how](values[block][exists[block]])
        values, exists = result, exist
    return values, exists


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:All-NaN")
@pytest.mark.parametrize("first", METHODS)
@pytest.mark.parametrize("second", METHODS)
def test_methods_after_each_other_take_what_exists(stores, first, second):
    """Windows pass over the end of latitude and time, and a source lacks times: such positions
    count in no block."""
    times = np.delete(TIMES, [1, 4, 5])
    stores.add("rain", xr.Dataset({"tp": field(4, times, LATS, LONS, 0.4)},
                                  {"time": times, "lat": LATS, "lon": LONS}), 3)
    tp = stores.data["rain"].tp.reindex(time=TIMES).values
    anchor = stores.data["anchor"]
    has = np.isin(TIMES, times)[:, None, None] & np.ones((T, Y, X), bool)
    for order in (("time", "lat", "lon"), ("lat", "lon", "time"), ("lon", "time", "lat")):
        sizes = {"time": 2, "lat": 4, "lon": 3}
        steps = [(("time", "lat", "lon").index(dim), sizes[dim], how)
                 for dim, how in zip(order, (first, second, second))]
        view = {"sources": {"a": {}, "rain": {"store": "rain",
                                              "join": {"time": {"pick": "exact", "missing": "pad"},
                                                       "lat": "exact", "lon": "exact"}}},
                "window": {"time": {"size": 4, "edge": "pad"},
                           "lat": {"size": 8, "stride": 5, "edge": "pad"}},
                "tensors": {
                    "x": {"variables": ["t", "rain:tp", {"make": "sum", "of": ["u", "rain:tp"]}],
                          "stack": "c",
                          "coarsen": {dim: {"size": sizes[dim], "how": how}
                                      for dim, how in zip(order, (first, second, second))}}}}
        ours = stores.tensors(view)["x"]
        fields = [(anchor.t.values, np.ones_like(has)), (tp, has), (anchor.u.values + tp, has)]
        for row, (time, lat) in enumerate(stores.starts(view)):
            for channel, (values, exists) in enumerate(fields):
                values = window(window(values, 0, time, 4), 1, lat, 8)
                exists = window(window(exists.astype(float), 0, time, 4), 1, lat, 8) == 1
                expected, _ = blocks_of_existing(values, exists, steps)
                close(ours[row, channel], expected)


@pytest.mark.parametrize("pad", [None, 5.0])
@pytest.mark.parametrize("shuffle", ["none", "global"])
def test_sources_that_lack_labels(stores, pad, shuffle):
    """Rain of other times and reversed latitudes, padded: a block consists of the existing
    times."""
    times = np.delete(TIMES, [1, 4, 5])
    rain = xr.Dataset({"tp": field(4, times, LATS[::-1], LONS)},
                      {"time": times, "lat": LATS[::-1], "lon": LONS})
    stores.add("rain", rain, 3)
    how = {"time": {"size": 2, "how": "sum"}}
    tensors = {"x": {"variables": ["rain:tp"], "coarsen": how},
               "y": {"variables": ["t", {"make": "product", "of": ["u", "rain:tp"]}], "stack": "c"},
               "z": {"variables": [{"make": "product", "of": ["u", "rain:tp"]}, "rain:tp"],
                     "stack": "c", "coarsen": {"lat": 4} | how}}
    edge = {} if pad is None else {"edge": "pad", "pad_value": pad}
    view = {"sources": {"a": {}, "rain": {"store": "rain",
                                          "join": {"time": {"pick": "exact", "missing": "pad"},
                                                   "lat": "exact"}}},
            "window": {"time": {"size": 4} | edge}, "tensors": tensors,
            "order": {"shuffle": shuffle}}
    ours = stores.tensors(view)
    anchor = stores.data["anchor"]
    tp = rain.tp.reindex(time=TIMES, lat=LATS).values
    product = anchor.u.values * tp
    absent = np.isin(TIMES, times, invert=True)
    pad = np.nan if pad is None else pad
    starts = [row[0] for row in stores.starts(view)]
    assert sorted(starts) == ([0, 4, 8] if np.isfinite(pad) else [0, 4])
    for row, start in enumerate(starts):
        outside = np.ones((4, Y, X), bool)
        outside[:len(absent[start:start + 4])] = absent[start:start + 4, None, None]
        dims = ("time", "lat", "lon")
        close(ours["x"][row],
              coarse(window(tp, 0, start, 4), dims, "sum", {"time": 2}, outside, pad))
        expected = np.where(outside, pad, window(product, 0, start, 4))
        close(ours["y"][row, 1], expected)
        for channel, values in enumerate((product, tp)):
            means = coarse(window(values, 0, start, 4), dims, "mean", {"lat": 4})
            blocks = outside[:, ::4]
            close(ours["z"][row, channel], coarse(means, dims, "sum", {"time": 2}, blocks, pad))


def test_durations_are_looked_up_by_each_source(stores):
    times = np.datetime64("2000-01-01", "ns") + np.arange(2 * 6 * T) * np.timedelta64(30, "m")
    rain = xr.Dataset({"tp": field(4, times, LATS, LONS, 0)},
                      {"time": times, "lat": LATS, "lon": LONS})
    stores.add("rain", rain)
    offsets = {"time": ["-90min", "-1h", "-30min", "0min"]}
    view = {"sources": {"a": {}, "rain": {"store": "rain", "join": {"time": "exact"}}},
            "window": {"time": 1},
            "tensors": {"x": {"variables": ["rain:tp"], "offsets": offsets,
                              "coarsen": {"lon": 3, "lat": {"size": 2, "how": "max"}}},
                        "y": {"variables": [{"make": "sum", "of": ["t", "rain:tp"]}], "stack": "c",
                              "offsets": {"time": ["-6h", "0h"]}},
                        "z": {"variables": ["rain:tp"], "offsets": {"time": ["-1h", "0h"]},
                              "coarsen": {"lat": 8, "lon": 12}}}}
    ours = stores.tensors(view)
    anchor = stores.data["anchor"]
    starts = [row[0] for row in stores.starts(view)]
    assert starts == list(range(1, T))
    for row, start in enumerate(starts):
        at = 12 * start
        steps = rain.tp.values[at - 3:at + 1]
        close(ours["x"][row], coarse(coarse(steps, ("time", "lat", "lon"), "mean", {"lon": 3}),
                                     ("time", "lat", "lon"), "max", {"lat": 2}))
        close(ours["y"][row, 0],
              anchor.t.values[start - 1:start + 1] + rain.tp.values[[at - 12, at]])
        close(ours["z"][row, :, 0, 0], rain.tp.values[[at - 2, at]].mean((1, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_members_of_an_ensemble(stores, method):
    members = []
    for i in range(4):
        members.append(xr.Dataset({"g": field(10 + i, TIMES, LATS, LONS)},
                                  {"time": TIMES, "lat": LATS, "lon": LONS}))
        members[-1].to_zarr(stores.folder / f"m{i}.zarr", zarr_format=3,
                            encoding={"g": {"chunks": (3 + i, 4, 5)}}, consolidated=False)
    stores.options += ["--store", f"gefs={stores.folder}/m{{0..3}}.zarr"]
    whole = xr.concat(members, "member", join="exact")
    how = {"member": {"size": 4, "how": method}, "lat": {"size": 2, "how": method}}
    view = {"sources": {"gefs": {"store": "gefs", "concat": {"dim": "member"}}},
            "window": {"time": {"size": 3, "stride": 3}},
            "tensors": {"x": {"variables": ["g"], "coarsen": how}}}
    ours = stores.tensors(view)["x"]
    expected = getattr(whole.g.coarsen(member=4, lat=2), method)().values
    for row, (time,) in enumerate(stores.starts(view)):
        close(ours[row], expected[:, time:time + 3])
    view["window"] = {"member": {"size": 2, "stride": 1}, "time": 1}
    how["member"]["size"] = 2
    ours = stores.tensors(view)["x"]
    for row, (member, time) in enumerate(stores.starts(view)):
        expected = getattr(whole.g[member:member + 2, time:time + 1].coarsen(member=2, lat=2),
                           method)().values
        close(ours[row], expected)


def test_partial_windows_are_refused(stores):
    view = {"window": {"time": {"size": 4, "edge": "partial"}},
            "tensors": {"x": {"variables": ["t"], "coarsen": {"lat": 2}}}}
    assert 'coarsened tensors do not go with "edge": "partial" of a window; "pad" fills it' in (
        stores.batchfs.refusal("plan", *stores.words(view)))
