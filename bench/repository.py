"""repository: W1 and W2 from an Icechunk repository, beside icechunk-python under zarr-python and
under xarray with xbatcher. The chunks are those of W1's and W2's stores, byte for byte; local, or
50 ms per GET with --latency. batchfs reads with the workload's limit of memory, and with about the
least that it works with."""

import numpy as np

import w1
import w2
from harness import data
from harness.geometry import Geometry
from harness.loaders import expected, figures, order_of, table
from harness.origin import Origin
from harness.rounds import Contender, chosen, measure, verified


def w1_patches(arguments):
    store, spec, steps = w1.make(arguments, "v3 zstd")
    decoded = steps * (len(w1.SURFACE) + w1.LEVELS) * 128 * 64 * 4
    view = {**w1.view("global"), "epochs": 1}
    return store, spec, view, max(20, int(w1.BATCHES * arguments.scale)), decoded, int(
        decoded * w1.CACHE_SHARE)


def w2_pairs(arguments):
    store, view, geometry, batch, count, _ = w2.pairs_b(arguments, "zstd", "global")
    decoded = (count * batch + 1) * int(np.prod(Geometry(geometry).shape)) * 4
    return store, geometry, view, count, decoded, None


PARTS = {"W1": w1_patches, "W2": w2_pairs}
# chunks of 17 MB, two at a time; batches of 157 MB, one read while the next is made
LEAST = {"W1": "48MB", "W2": "350MB"}


def contenders(part, store, spec, view, count, order, memory):
    gather = {"store": f"icechunk:{store}", "geometry": spec, "order": order,
              "batches_per_epoch": count}
    ours = {"store": store, "view": view, "count": count,
            "options": ["--memory", str(memory)] if memory else []}
    slow = {"limit": min(40, count)}
    return [
        Contender("batchfs", "peers.batchfs:batches", ours),
        Contender("batchfs-library", "peers.handoff:batches", ours),
        Contender("batchfs-least", "peers.batchfs:batches",
                  {**ours, "options": ["--memory", LEAST[part]]}),
        Contender("icechunk-zarr", "peers.zarr_python:batches", gather, slow),
        Contender("icechunk-zarr-fused", "peers.zarr_python:batches",
                  {**gather, "pipeline": "fused"}, slow),
        Contender("icechunk-xbatcher", "peers.xbatcher_items:batches", {**gather, "threads": 2},
                  slow),
    ]


def run(arguments):
    results, good = {}, True
    for part, make in PARTS.items():
        if arguments.only and arguments.only not in part:
            continue
        plain, spec, view, count, decoded, memory = make(arguments)
        order = order_of(arguments.data, plain, view, count)
        sums = expected(plain, spec, order, count)
        path = data.make_repository(plain)
        data.warm(path)
        ratio = decoded / data.stored_bytes(path)
        with Origin(arguments.data, latency=arguments.latency or 0) as origin:
            store = origin.url(path) if arguments.latency is not None else str(path)
            where = (f"{arguments.latency:g} ms per GET" if arguments.latency is not None
                     else "local")

            def after(result):
                if arguments.latency is not None:
                    result.report["origin"] = origin.stats()

            running = chosen(contenders(part, store, spec, view, count, order, memory),
                             arguments.peers)
            running, ok = verified(running, sums)
            good = good and ok
            title = (f"{part} from an Icechunk repository, {where}, {decoded / 1e9:.2f} GB "
                     f"decoded, {ratio:.1f} times compressed")
            found = measure(running, arguments.rounds, before=origin.reset, after=after)
            results[title] = {name: figures(runs, ratio) for name, runs in found.items()}
            table(title, results[title])
    return results, good
