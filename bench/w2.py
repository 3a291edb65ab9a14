"""w2: pairs of steps of whole global fields, in order, as training a forecast model reads them.

a) three variables of 721 x 1440, not compressed, t0 and t1 of steps that do not overlap;
b) six channels of 640 x 1280, x and y one step apart: each step is wanted twice, and should be
decoded once.
"""

import numpy as np

from harness import data
from harness.geometry import Geometry
from harness.loaders import expected, figures, in_order, order_of, table
from harness.origin import Origin
from harness.rounds import Contender, chosen, measure, verified

THREE = ["t2m", "u10", "v10"]
CHANNELS = 6


def pairs_a(arguments):
    """(a): the store, the view, the geometry; batches of 8 pairs."""
    steps, batch = max(64, int(256 * arguments.scale) // 16 * 16), 8
    grid, dims = [721, 1440], ["time", "latitude", "longitude"]
    store = data.make_store(arguments.data, {
        "name": "w2a", "format": 2, "codec": "raw", "steps": steps,
        "variables": {name: {"grid": grid, "dims": dims, "chunk": [1, *grid]} for name in THREE},
        "coordinates": {"latitude": grid[0], "longitude": grid[1]}})
    tensor = lambda offset: {"variables": THREE, "offsets": {"time": [offset]}, "stack": "channel",
                             "dims": ["time", "channel", "latitude", "longitude"]}
    view = {"name": "a", "window": {"time": {"size": 1, "stride": 2}},
            "tensors": {"t0": tensor(0), "t1": tensor(1)},
            "batch": {"size": batch, "remainder": "drop"}}
    geometry = {"window": [["time", 1, 2, steps // 2]], "variables": {name: dims for name in THREE},
                "sizes": dict(zip(dims[1:], grid)), "tensors": [["t0", 0], ["t1", 1]],
                "stack": True}
    return str(store), view, geometry, batch, steps // 2 // batch, 2


def pairs_b(arguments, codec, shuffle, chunk=1):
    """(b): x is a step of all channels, y the next; batches of 4 pairs."""
    steps, batch = max(33, int(128 * arguments.scale)) // 4 * 4 + 1, 4
    grid, dims = [CHANNELS, 640, 1280], ["time", "channel", "latitude", "longitude"]
    store = data.make_store(arguments.data, {
        "name": f"w2b-{codec}-t{chunk}", "format": 3, "codec": codec, "steps": steps,
        "variables": {"combined": {"grid": grid, "dims": dims, "chunk": [chunk, 1, *grid[1:]]}},
        "coordinates": dict(zip(dims[1:], grid))})
    tensor = lambda offset: {"variables": ["combined"], "offsets": {"time": [offset]}}
    view = {"name": "b", "window": {"time": {"size": 1}},
            "tensors": {"x": tensor(0), "y": tensor(1)},
            "batch": {"size": batch, "remainder": "drop"}, "order": {"shuffle": shuffle, "seed": 0}}
    geometry = {"window": [["time", 1, 1, steps - 1]], "variables": {"combined": dims},
                "sizes": dict(zip(dims[1:], grid)), "tensors": [["x", 0], ["y", 1]]}
    return str(store), view, geometry, batch, (steps - 1) // batch, 3


PARTS = {
    "a raw in order": lambda arguments: pairs_a(arguments),
    "b zstd in order": lambda arguments: pairs_b(arguments, "zstd", "none"),
    "b zstd shuffled": lambda arguments: pairs_b(arguments, "zstd", "global"),
    "b raw in order": lambda arguments: pairs_b(arguments, "raw", "none"),
    "b blosc-lz4 in order": lambda arguments: pairs_b(arguments, "blosc-lz4", "none"),
    "b zstd in order, ten steps a chunk": lambda arguments: pairs_b(arguments, "zstd", "none", 10),
}


def contenders(store, view, geometry, batch, count, zarr_format, order):
    gather = {"store": store, "geometry": geometry, "order": order, "batches_per_epoch": count}
    cache = 512 << 20
    found = [
        Contender("batchfs-mmap", "peers.batchfs:batches",
                  {"store": store, "view": view, "count": count}),
        Contender("batchfs-read", "peers.batchfs:batches",
                  {"store": store, "view": view, "count": count, "how": "read"}),
        Contender("tensorstore", "peers.tensor_store:batches",
                  {**gather, "zarr_format": zarr_format, "cache_bytes": cache, "ahead": 2}),
        Contender("zarr-zarrs", "peers.zarr_python:batches", {**gather, "pipeline": "zarrs"}),
        Contender("zarr", "peers.zarr_python:batches", gather),
        Contender("zarr-fused", "peers.zarr_python:batches", {**gather, "pipeline": "fused"}),
        Contender("xbatcher", "peers.xbatcher_items:batches", {**gather, "threads": 2}),
    ]
    if view["name"] == "b" and view["order"]["shuffle"] == "none":
        pairs = {"store": store, "geometry": geometry, "batch": batch, "count": count}
        for name, views in (("", False), ("-views", True)):
            found += [
                Contender(f"zarr-zarrs-slab{name}", "peers.zarr_python:pairs",
                          {**pairs, "pipeline": "zarrs", "views": views}),
                Contender(f"zarr-fused-slab{name}", "peers.zarr_python:pairs",
                          {**pairs, "pipeline": "fused", "views": views}),
                Contender(f"tensorstore-slab{name}", "peers.tensor_store:pairs",
                          {**pairs, "zarr_format": zarr_format, "views": views}),
            ]
    shuffled = view.get("order", {}).get("shuffle") == "global"
    found.append(Contender("insitubatch", "peers.insitu:batches",
                           {"store": store, "geometry": geometry, "batch": batch, "count": count,
                            "shuffle": shuffled}, comparable=False))
    return found


def run(arguments):
    results, good = {}, True
    for part, make in PARTS.items():
        if arguments.only and arguments.only not in part:
            continue
        path, view, geometry, batch, count, zarr_format = make(arguments)
        shuffled = view.get("order", {}).get("shuffle") == "global"
        order = (order_of(arguments.data, path, view, count) if shuffled
                 else in_order(arguments.data, count, batch))
        data.warm(path)
        of_one = Geometry(geometry)
        steps = count * batch + 1 if view["name"] == "b" else count * batch * 2
        decoded = steps * int(np.prod(of_one.shape)) * 4
        ratio = decoded / data.stored_bytes(path)
        with Origin(arguments.data, latency=arguments.latency or 0) as origin:
            store = origin.url(path) if arguments.latency is not None else path
            where = (f"{arguments.latency:g} ms per GET" if arguments.latency is not None
                     else "local")
            running = chosen(contenders(store, view, geometry, batch, count, zarr_format, order),
                             arguments.peers)
            running, ok = verified(running, expected(path, geometry, order, count))
            good = good and ok

            def after(result):
                if arguments.latency is not None:
                    result.report["origin"] = origin.stats()

            title = (f"W2 {part}, {where}, {decoded / 1e9:.2f} GB decoded, {ratio:.1f} times "
                     f"compressed, batches of {batch}")
            found = measure(running, arguments.rounds, before=origin.reset, after=after)
            results[title] = {name: figures(runs, ratio) for name, runs in found.items()}
            table(title, results[title])
    return results, good
