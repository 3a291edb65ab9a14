"""raw: uncompressed chunks from an origin, against plain parallel GETs of the same objects
(`peers/get.cc`): what is lost between the network and the reader. With and without 50 ms for each
answer, as fast as the origin sends and at a network card's rate."""

import statistics

import local
from harness import data
from harness.origin import Origin
from harness.rounds import Contender, chosen, measure, median
from harness.table import text

# latency, MB/s
NETWORKS = {"as fast as it goes": (0, 0), "50 ms": (50, 0), "50 ms, 500 MB/s": (50, 500)}


def run(arguments):
    store, steps = local.store_of(arguments, "raw")
    data.warm(store)
    stored = data.stored_bytes(store)
    view = {**local.SINGLE, "epochs": 1}
    results, rows = {}, []
    for name, (latency, rate) in NETWORKS.items():
        if arguments.only and arguments.only not in name:
            continue
        with Origin(arguments.data, latency=latency, rate=rate) as origin:
            contenders = chosen([Contender("batchfs", "peers.batchfs:batches", {
                "store": origin.url(store), "view": view, "count": steps // view["batch"]["size"],
                "by_tensor": True, "epochs": 1})], arguments.peers)
            bounds, runs = [], []
            for _ in range(arguments.rounds):
                bounds.append(origin.get_rate(store))
                runs += measure(contenders, 1).get("batchfs", [])
        bound = statistics.median(bounds)
        ours = (median(runs, lambda r: r.bytes / (r.seconds - r.report["mount_seconds"])) if runs
                else None)
        results[name] = {"get": bound, "batchfs": ours}
        rows.append([name, bound / 1e6, ours and ours / 1e6, ours and ours / bound,
                     median(runs, lambda r: r.cpu / r.bytes * 1e9) if runs else None])
    print(f"\nraw: {stored / 1e9:.2f} GB of uncompressed chunks, "
          f"{local.CHUNK_BYTES / 1e6:.1f} MB each; MB/s")
    print(text(rows, ["", "GETs", "batchfs", "/ GETs", "CPU s/GB"]))
    return results, all(row["batchfs"] for row in results.values())
