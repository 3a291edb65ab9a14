"""Random joins: times by pick, nested grids in any order and convention of longitudes, members,
padding, coarsened blocks.

Each value is looked up by its label. BATCHFS_JOIN_SEEDS=100:200 asks others than the usual ones.
"""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from several_stores import SeveralStores, write

SEEDS = range(*map(int, os.environ.get("BATCHFS_JOIN_SEEDS", "0:12").split(":")))
START, HOUR = np.datetime64("2000-01-01", "ns"), np.timedelta64(1, "h")
METHODS = {"exact": None, "last": "pad", "next": "backfill", "nearest": "nearest"}


class Axis:
    """A spatial dimension of the first store, the labels of the other one, and the places of its
    cells there (-1: none)."""

    def __init__(self, rng, labels, circle, slides):
        self.labels, step = labels, labels[1] - labels[0]
        self.ratio = rng.choice(["exact", "2", "3", "1/2"])
        finer = int(self.ratio) if self.ratio in "23" else 1
        at = np.arange(len(labels) * finer)
        own = labels[0] + (at - (finer - 1) / 2) * step / finer
        self.cells = at.reshape(len(labels), finer)
        if self.ratio == "1/2":
            own = labels[0] + (np.arange(len(labels) // 2) * 2 + 0.5) * step
            self.cells = (np.arange(len(labels)) // 2)[:, None]
        self.finer, self.pads = finer, False
        kept = np.arange(len(own))
        if not circle and slides and rng.random() < 0.4:  # an end is missing
            kept, self.pads = kept[finer * 2:] if rng.random() < 0.5 else kept[:-finer * 2], bool(
                rng.integers(2))
        turned = circle and rng.random() < 0.5
        if turned:
            own = (own + 180) % 360 - 180
        order = rng.permutation(kept) if rng.random() < 0.5 else kept[::-1]
        place = np.full(len(own), -1)
        place[order] = np.arange(len(order))
        self.own, self.cells = own[order], place[self.cells]
        self.join = {"exact": {}, "2": {"ratio": 2}, "3": {"ratio": 3},
                     "1/2": {"ratio": "1/2"}}[self.ratio]
        self.join = self.join | ({"period": 360} if circle else {}) | (
            {"missing": "pad"} if self.pads else {})
        if self.ratio == "exact":  # in other spellings of a number
            self.join |= {"tolerance": 1e-6}
            self.own = self.own + rng.uniform(-1e-7, 1e-7, len(self.own))


def at_places(values, places, axis):
    """`values` at places, NaN at -1."""
    found = np.take(values, np.maximum(places, 0), axis)
    shape = [1] * found.ndim
    shape[axis] = len(places)
    return np.where(np.reshape(places, shape) < 0, np.nan, found)


def looked_up(own, labels, pick, tolerance):
    places = pd.Index(own).sort_values()
    order = np.argsort(own)
    within = {} if pick == "exact" else {"tolerance": tolerance}
    found = places.get_indexer(labels, method=METHODS[pick], **within)
    if pick == "nearest":  # at equal distance, batchfs takes the greater
        after = places.get_indexer(labels, method="backfill", **within)
        for i in np.flatnonzero((found >= 0) & (after >= 0)):
            if places[after[i]] - labels[i] == labels[i] - places[found[i]]:
                found[i] = after[i]
    return np.where(found < 0, -1, order[found])


def coarse(values, axis, size, how):
    blocks = np.moveaxis(values, axis, 0)
    blocks = blocks.reshape(-1, size, *blocks.shape[1:]).astype("f8")
    with np.errstate(all="ignore"):
        return np.moveaxis(getattr(np, "nan" + how)(blocks, axis=1), 0, axis)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty")
def test_each_value_is_found_by_its_label(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    lats = np.linspace(50, 50 - 2.5 * 7, 8) * rng.choice([-1, 1])
    lons = np.arange(8) * 45.0 if rng.random() < 0.5 else np.arange(8) * 45.0 - 180
    times = START + np.sort(rng.choice(60, 20, replace=False)) * 3 * HOUR
    lat, lon = Axis(rng, lats, False, True), Axis(rng, lons, True, False)
    members = int(rng.choice([0, 0, 2, 3]))
    own = START + rng.permutation(np.union1d(rng.choice(180, 120, replace=False), [0, 179])) * HOUR
    pick = str(rng.choice(list(METHODS)))
    tolerance = int(rng.integers(1, 4))
    first = xr.Dataset({"t": (("time", "lat", "lon"),
                              rng.standard_normal((20, 8, 8)).astype("f4"))},
                       {"time": times, "lat": lats, "lon": lons})
    write(tmp_path / "a.zarr", first, 3, {"time": 3, "lat": 3})
    fields = []
    for m in range(max(members, 1)):
        fields.append(rng.standard_normal((len(own), len(lat.own), len(lon.own))).astype("f4"))
        other = xr.Dataset({"p": (("time", "lat", "lon"), fields[-1])},
                           {"time": own, "lat": lat.own, "lon": lon.own})
        write(tmp_path / f"m{m}.zarr", other, int(rng.choice([2, 3])),
              {"time": int(rng.integers(1, 40)), "lat": 5, "lon": int(rng.integers(1, 20))})
    values = np.stack(fields) if members else fields[0]
    skip = 1 if members else 0  # dimensions before the time

    size, stride = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    drops_time = bool(rng.integers(2))
    hours = (sorted(rng.choice([-5, -2, 0, 3, 4], int(rng.integers(1, 3)), replace=False).tolist())
             if rng.random() < 0.5 else None)
    join = {"time": {"pick": pick} | ({} if pick == "exact" else {"tolerance": f"{tolerance}h"})
                | ({} if drops_time else {"missing": "pad"}), "lat": lat.join, "lon": lon.join}
    source = {"store": "m", "join": join} | ({"concat": {"dim": "member"}} if members else {})
    offsets = {"offsets": {"time": [f"{h}h" for h in hours]}} if hours else {}
    how = str(rng.choice(["mean", "sum", "min", "max"]))
    # Windows over the other grid, in positions of the tensor.
    lat_size = 2 * int(rng.integers(1, 3))
    view = {"sources": {"a": {}, "b": source}, "window": {"time": {"size": size, "stride": stride},
                                                          "lat": {"size": lat_size, "stride": 1}},
            "tensors": {"x": {"variables": ["t"]}, "y": {"variables": ["b:p"]} | offsets,
                        "z": {"variables": ["b:p"],
                              "coarsen": {"lat": {"size": 2 * lat.finer, "how": how}}} | offsets},
            "batch": 100_000, "order": {"shuffle": "none"}}
    pattern = "{" + f"0..{members - 1}" + "}" if members else "0"
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr",
                           [f"m={tmp_path}/m{pattern}.zarr"])

    found = {h: looked_up(own, times + h * HOUR, pick, pd.Timedelta(hours=tolerance))
             for h in {0, *(hours or [])}}
    wanted, wanted_x, wanted_z = [], [], []
    for start in range(0, 20 - size + 1, stride):
        for south in range(0, 8 - lat_size + 1):
            window = np.arange(start, start + size)
            places = np.concatenate([found[h][window] for h in hours or [0]])
            rows = lat.cells[south:south + lat_size].ravel()
            if (drops_time and (places < 0).any()) or (not lat.pads and (rows < 0).any()):
                continue
            sample = at_places(at_places(at_places(values, places, skip), rows, skip + 1),
                               lon.cells.ravel(), skip + 2)
            wanted.append(sample)
            wanted_x.append(first.t.values[window, south:south + lat_size])
            blocks = coarse(sample, skip + 1, 2 * lat.finer, how)
            if how == "sum":  # blocks that hold only padding are padding
                blocks[coarse(np.isnan(sample), skip + 1, 2 * lat.finer, "min") > 0] = np.nan
            wanted_z.append(blocks)
    if not wanted:
        assert "no sample is left" in stores.refusal(view)
        return
    made = stores.tensors(view)
    assert np.array_equal(made["x"], np.array(wanted_x))
    assert np.array_equal(made["y"], np.array(wanted, "f4"), equal_nan=True), (
        pick, lat.join, lon.join)
    np.testing.assert_allclose(made["z"], np.array(wanted_z), rtol=3e-7, atol=3e-7)
