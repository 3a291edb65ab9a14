"""handoff: how a batch gets to a program that wants it: over the hand-off's socket, or from a file
of the mount, mapped, read, or loaded with numpy. All in order, and one that is ready again and
again. Uncompressed chunks, so that making batches takes little; three sizes of batch."""

import statistics

from harness import data
from harness.rounds import Contender, chosen, measure, median, verified
from harness.table import text

# Rows of float32 fields in a batch of 16, and how many steps there are.
SIZES = {"64 KiB": ((32, 32), 4096), "1.7 MB": ((160, 162), 2048), "16.6 MB": ((361, 720), 320)}
BATCH, EPOCHS, AGAIN = 16, 3, 500


def contenders(store, view, count):
    order = {"store": store, "view": view, "count": count, "epochs": EPOCHS}
    again = {"store": store, "view": view, "count": AGAIN}
    return ([Contender("handoff", "peers.handoff:batches", order),
             Contender("mmap", "peers.batchfs:batches", {**order, "how": "mmap"}),
             Contender("read", "peers.batchfs:batches", {**order, "how": "read"}),
             Contender("numpy.load", "peers.handoff:loaded", order)],
            [Contender("handoff", "peers.handoff:ready", again),
             Contender("mmap", "peers.handoff:ready_files", {**again, "how": "mmap"}),
             Contender("read", "peers.handoff:ready_files", {**again, "how": "read"}),
             Contender("numpy.load", "peers.handoff:ready_files", {**again, "how": "load"})])


def per_size(arguments, name):
    grid, steps = SIZES[name]
    steps = max(4 * BATCH, int(steps * arguments.scale) // BATCH * BATCH)
    dims = ["time", "latitude", "longitude"]
    store = str(data.make_store(arguments.data, {
        "name": f"handoff-{name.replace(' ', '')}", "format": 3, "codec": "raw", "steps": steps,
        "variables": {"t2m": {"grid": grid, "dims": dims, "chunk": [1, *grid]}},
        "coordinates": dict(zip(dims[1:], grid))}))
    data.warm(store)
    view = {"name": "v", "window": {"time": 1}, "variables": ["t2m"], "batch": {"size": BATCH},
            "epochs": EPOCHS}
    in_order, ready = contenders(store, view, steps // BATCH)
    in_order, good = verified(chosen(in_order, arguments.peers))
    ready, good_too = verified(chosen(ready, arguments.peers))
    every, again = measure(in_order, arguments.rounds), measure(ready, arguments.rounds)
    # The first waits until the mount is there; then until the batch is made.
    figures = {who: {"batches_s": median(runs, lambda r: (len(r.waits) - 1)
                                             / max(1e-9, r.seconds - r.waits[0]))}
               for who, runs in every.items()}
    for who, runs in again.items():
        waits = sorted(wait for run in runs for wait in run.waits[10:])
        figures.setdefault(who, {}).update(ready_us=statistics.median(waits) * 1e6,
                                           ready_p99_us=waits[len(waits) * 99 // 100] * 1e6)
    print(f"\nBatches of {name}; touched page by page")
    print(text([[who, f.get("batches_s"), f.get("ready_us"), f.get("ready_p99_us")]
                for who, f in figures.items()],
               ["", "batches/s", "ready batch, us", "its 99th percentile"]))
    return figures, good and good_too


def run(arguments):
    results, good = {}, True
    for name in SIZES:
        if arguments.only and arguments.only not in name:
            continue
        results[name], ok = per_size(arguments, name)
        good = good and ok
    return results, good
