"""sources: samples of three stores, and channels made on the fly, beside the same fields of one
store.

`joined`: hourly fields, six-hourly rain and a static field, each of a store of its own, beside one
store that has all three, the rain six times over. `forcings`: the hourly fields with four channels
of time and sun, beside the fields alone. Whole global fields in order, as W2; all in the page
cache.
"""

import warnings

import numpy as np
import zarr

from harness import data
from harness.geometry import checksum
from harness.loaders import figures, tag
from harness.rounds import Contender, chosen, measure, verified
from harness.table import text
from samples import WAYS

GRID, DIMS, BATCH, EVERY = [361, 720], ["time", "latitude", "longitude"], 4, 6
FORCINGS = ["cos_julian_day", "sin_julian_day", "cos_latitude", "insolation"]


def make(arguments):
    """Three stores and the one that has everything: their paths by name, and the number of
    steps."""
    steps = max(24, int(192 * arguments.scale)) // (BATCH * EVERY) * BATCH * EVERY
    spec = {"format": 2, "codec": "zstd", "coordinates": dict(zip(DIMS[1:], GRID))}
    variable = {"grid": GRID, "dims": DIMS, "chunk": [1, *GRID]}
    places = {"hourly": data.make_store(arguments.data,
                                        {**spec, "name": "sources-hourly", "steps": steps,
                                         "variables": {"t": variable, "u": variable}}),
              "rain": data.make_store(arguments.data,
                                      {**spec, "name": "sources-rain", "steps": steps // EVERY,
                                       "variables": {"r": variable}}),
              "static": arguments.data / "sources-static.zarr",
              "one": arguments.data / f"sources-one-{steps}.zarr"}
    read = {name: zarr.open_group(str(places[name]), mode="r") for name in ("hourly", "rain")}
    hours = np.arange(EVERY, steps + EVERY, dtype="i8")  # 0 is the fill value: no time
    if not places["one"].exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            static = zarr.open_group(str(places["static"]), mode="w", zarr_format=2)
            one = zarr.open_group(str(places["one"]), mode="w", zarr_format=2)
            for root in (static, one):
                for dim, size in zip(DIMS[1:], GRID):
                    data.create(root, dim, (size,), (size,), "f8", "raw", [dim],
                                True)[:] = coordinate(dim)
                data.create(root, "lsm", GRID, GRID, "f4", "zstd", DIMS[1:],
                            True)[:] = read["hourly"]["t"][0] > 0
            data.create(one, "time", (steps,), (steps,), "i8", "raw", ["time"], True,
                        {"units": "hours since 2000-01-01"})[:] = hours
            for name, source, every in (("t", "hourly", 1), ("u", "hourly", 1),
                                        ("r", "rain", EVERY)):
                array = data.create(one, name, (steps, *GRID), (1, *GRID), "f4", "zstd", DIMS, True)
                for step in range(steps):
                    array[step] = read[source][name][step // every]
            for path in (places["hourly"], places["rain"]):
                root = zarr.open_group(str(path), mode="r+")
                for dim in DIMS[1:]:
                    root[dim][:] = coordinate(dim)
                root["time"][:] = hours[::EVERY] if path == places["rain"] else hours
            for path in places.values():
                zarr.consolidate_metadata(str(path))
    return {name: str(path) for name, path in places.items()}, steps


def coordinate(dim):
    size = GRID[DIMS.index(dim) - 1]
    return np.linspace(90, -90, size) if dim == "latitude" else np.arange(size) * 360 / size


def view(name, variables, **more):
    return {"name": name, "window": {"time": 1},
            "tensors": {"x": {"variables": variables, "stack": "channel", "broadcast": True,
                              "dims": ["time", "channel", *DIMS[1:]]}}, "batch":
                {"size": BATCH, "remainder": "drop"}, "dtype": "float32", "formats": ["npy"]} | more


def run(arguments):
    places, steps = make(arguments)
    count = steps // BATCH
    for path in places.values():
        data.warm(path)
    one = {name: zarr.open_group(places["one"], mode="r")[name][...]
           for name in ("t", "u", "r", "lsm")}
    sums = {tag(i, count): checksum(
        [np.stack([np.stack([one["t"][s], one["u"][s], one["r"][s], one["lsm"]])[None]
                   for s in range(i * BATCH, (i + 1) * BATCH)])]) for i in range(count)}
    joined = view("joined", ["hourly:t", "hourly:u", "rain:r", "static:lsm"], sources={
        "hourly": {},
        "rain": {"store": "rain", "join": {"time": {"pick": "last", "tolerance": "5h"}}},
        "static": {"store": "static"}})
    stores = ["--store", f"rain={places['rain']}", "--store", f"static={places['static']}"]
    forcings = view("forcings", ["t", "u", *({"make": name} for name in FORCINGS)])
    cases = [("one store", "one", view("one", ["t", "u", "r", "lsm"]), [], sums),
             ("three stores", "hourly", joined, stores, sums),
             ("fields", "hourly", view("fields", ["t", "u"]), [], None),
             ("fields and forcings", "hourly", forcings, [], None)]
    running, good = [], True
    for name, store, of_case, options, expected in cases:
        given = {"store": places[store], "view": of_case, "count": count, "options": options}
        found, ok = verified([Contender(f"{name}, {way}", function, given)
                              for way, function in WAYS.items()], expected)
        running, good = running + found, good and ok
    results = {name: figures(runs, 1) for name, runs in measure(chosen(running, arguments.peers),
                                                                arguments.rounds).items()}
    beside = {"three stores": "one store", "fields and forcings": "fields"}
    rows = []
    for name, values in results.items():
        case, way = name.split(", ")
        plain = results.get(f"{beside.get(case)}, {way}")
        rows.append([name, values["steady_s"], values["steady_s"] / plain["steady_s"] if plain
                         else np.nan, values["cpu_s_per_gb"], values["peak_mb"]])
    print(f"\nSeveral stores, and channels made on the fly: {steps} steps of {GRID[0]} x "
          f"{GRID[1]}, batches of {BATCH}")
    print(text(rows, ["", "batch/s", "/ without", "CPU s/GB", "peak MB"]))
    return results, good
