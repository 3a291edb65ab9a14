"""Stores that are read together: of several times, and of several grids."""

import numpy as np
import xarray as xr
from several_stores import SeveralStores, write

START = np.datetime64("2000-01-01", "ns")
HOUR = np.timedelta64(1, "h")
LATS, LONS = np.linspace(60, -60, 5), np.arange(6) * 60.0


def fields(seed, times, name, lats=LATS, lons=LONS):
    values = np.random.default_rng(seed).standard_normal((len(times), len(lats), len(lons))).astype(
        "f4")
    return xr.Dataset({name: (("time", "lat", "lon"), values)},
                      {"time": times, "lat": lats, "lon": lons})


def times_with_gaps(seed, count, step, gaps):
    left = np.delete(np.arange(count),
                     np.random.default_rng(seed).choice(count, gaps, replace=False))
    return START + left * step * HOUR


class Sources(SeveralStores):
    """Three stores: `anchor` (six-hourly, with gaps), `rain` (the same days, other gaps) and
    `static`."""

    def __init__(self, batchfs, folder, version=3, seed=1):
        super().__init__(batchfs, folder, folder / "anchor.zarr")
        self.stores, self.data = {}, {}
        self.add("anchor", fields(seed, times_with_gaps(seed, 40, 6, 5), "t2m"), version,
                 {"time": 4})
        self.add("rain", fields(seed + 1, times_with_gaps(seed + 1, 50, 6, 12), "tp", LATS[::-1]),
                 version, {"time": 7, "lat": 2})
        static = xr.Dataset({"lsm": (("latitude", "lon"), np.arange(30, dtype="f4").reshape(5, 6))},
                            {"latitude": LATS + 1e-6, "lon": LONS})
        self.add("static", static, version, {"latitude": 2})

    def add(self, name, dataset, version=3, chunks=None):
        self.stores[name] = self.folder / f"{name}.zarr"
        self.data[name] = write(self.stores[name], dataset, version, chunks)

    def command(self, view, stores=None):
        self.first = self.stores["anchor"]  # tests replace it
        names = stores if stores is not None else [name for name in self.stores if name != "anchor"]
        return super().command(view, [f"{name}={self.stores[name]}" for name in names])

    def samples(self, view):
        plan = self.plan(view)
        return plan["samples"], plan["dropped"]


def two(join, **more):
    return {"sources": {"era5": {}, "rain": {"store": "rain", "join": {"lat": "exact"} | join},
                        "static": {"store": "static",
                                   "join": {"latitude": {"as": "lat", "tolerance": 1e-4}}}},
            "batch": 1000, "order": {"shuffle": "none"}} | more


def grids(sources, ratio=3):
    """A coarse grid and one of `ratio` times its resolution, stored from north to south, with a
    border more."""
    y, x = np.arange(6) * 3.0, np.arange(8) * 3.0 + 100
    fine_y = (np.arange(-1, 6 * ratio + 1) - (ratio - 1) / 2) * 3.0 / ratio
    fine_x = (np.arange(8 * ratio) - (ratio - 1) / 2) * 3.0 / ratio + 100
    times = START + np.arange(5) * 6 * HOUR
    rng = np.random.default_rng(5)
    for name, variable, ys, xs, chunks in (("coarse", "t", y, x, {"y": 4}),
                                           ("fine", "u", fine_y[::-1], fine_x, {"y": 5, "x": 7})):
        values = rng.standard_normal((5, len(ys), len(xs))).astype("f4")
        sources.add(name, xr.Dataset({variable: (("time", "y", "x"), values)},
                                     {"time": times, "y": ys, "x": xs}), chunks=chunks)
    sources.stores["anchor"] = sources.stores.pop("coarse")
    return y, x, sources.data["fine"].u.sel(y=fine_y[1:-1]).values
