"""w3: single steps of a field, shuffled, from chunks of 1, 8 or 32 steps, read by 1, 2 or 4 ranks
at once.

The workload that insitubatch is made for: with many steps in a chunk, decoding a chunk for each
step is slow. All ranks together must deliver the same order of samples, and a killed reader must be
able to resume.
"""


from harness import data
from harness.loaders import expected, figures, order_of, table
from harness.origin import Origin
from harness.rounds import Contender, chosen, measure, verified
from harness.workloads import checked_in_own_order

STEPS, GRID, BATCH, BATCHES, BLOCK = 3000, [361, 720], 32, 64, 16
CHUNKS = [1, 8, 32]
RANKS = [2, 4]
CACHE = 620 << 20  # a block of 16 chunks of 32 steps is 532 MB


def make(arguments, chunk):
    steps = max(4 * BATCH, int(STEPS * arguments.scale) // 32 * 32)
    dims = ["time", "latitude", "longitude"]
    store = data.make_store(arguments.data, {
        "name": f"w3-c{chunk}", "format": 3, "codec": "zstd", "steps": steps,
        "variables": {"t2m": {"grid": GRID, "dims": dims, "chunk": [chunk, *GRID]}},
        "coordinates": dict(zip(dims[1:], GRID))})
    geometry = {"window": [["time", 1, 1, steps]], "variables": {"t2m": dims},
                "sizes": dict(zip(dims[1:], GRID)), "tensors": [["x", 0]]}
    return str(store), geometry, steps


def view(order):
    return {"name": "w3", "window": {"time": 1}, "tensors": {"x": {"variables": ["t2m"]}},
            "batch": {"size": BATCH, "remainder": "drop"}, "order": {"shuffle": order, "seed": 0}}


def contenders(store, geometry, orders, count):
    ours = lambda order: {"store": store, "view": view(order), "count": count,
                          "options": ["--memory", str(CACHE)]}
    gather = {"store": store, "geometry": geometry, "order": orders["global"],
              "batches_per_epoch": count}
    found = [
        Contender("batchfs-global", "peers.batchfs:batches", ours("global")),
        Contender("batchfs-block", "peers.batchfs:batches", ours("block"), comparable=False),
        Contender("batchfs-in-order", "peers.batchfs:batches", ours("none"), comparable=False),
    ]
    for ranks in RANKS:
        found.append(Contender(f"batchfs-block-{ranks}-ranks", "peers.batchfs:ranks",
                               {**ours("block"), "world": ranks}, comparable=False))
    return found + [
        Contender("insitubatch", "peers.insitu:batches",
                  {"store": store, "geometry": geometry, "batch": BATCH, "count": count,
                   "block_chunks": BLOCK}, comparable=False),
        Contender("tensorstore-2GB", "peers.tensor_store:batches",
                  {**gather, "zarr_format": 3, "cache_bytes": 2 << 30, "ahead": 3}),
        Contender("zarr-zarrs", "peers.zarr_python:batches", {**gather, "pipeline": "zarrs"},
                  {"limit": 8}),
        Contender("xbatcher", "peers.xbatcher_items:batches", gather, {"limit": 4}),
        Contender("xbatcher-4-workers", "peers.xbatcher_items:with_workers",
                  {**gather, "workers": 4}, {"limit": 16}),
    ]


def run(arguments):
    results, good = {}, True
    for chunk in CHUNKS:
        if arguments.only and arguments.only not in f"c{chunk}":
            continue
        path, geometry, steps = make(arguments, chunk)
        # so that every rank has as many
        count = min(BATCHES, steps // BATCH) // max(RANKS) * max(RANKS)
        orders = {order: order_of(arguments.data, path, view(order), count)
                  for order in ("global", "block", "none")}
        sums = {order: expected(path, geometry, file, count) for order, file in orders.items()}
        data.warm(path)
        decoded = steps * GRID[0] * GRID[1] * 4
        ratio = decoded / data.stored_bytes(path)
        with Origin(arguments.data, latency=arguments.latency or 0) as origin:
            store = origin.url(path) if arguments.latency is not None else path
            where = (f"{arguments.latency:g} ms per GET" if arguments.latency is not None
                     else "local")
            running = chosen(contenders(store, geometry, orders, count), arguments.peers)
            common, ok = verified([c for c in running if c.comparable], sums["global"])
            for contender in running:
                if not contender.comparable:
                    order = next(
                        (name for name in ("block", "none")
                         if contender.arguments.get("view", {}).get("order", {}).get("shuffle")
                         == name), None)
                    ok = checked_in_own_order(contender, path, geometry, sums.get(order)) and ok
            good = good and ok

            def after(result):
                if arguments.latency is not None:
                    result.report["origin"] = origin.stats()

            title = (f"W3, {chunk} steps a chunk, {where}, {steps} steps ({decoded / 1e9:.2f} GB "
                     f"decoded, {ratio:.1f} times compressed), batches of {BATCH}")
            found = measure(running, arguments.rounds, before=origin.reset, after=after)
            results[title] = {name: figures(runs, ratio) for name, runs in found.items()}
            for values in results[title].values():
                values["samples_s"] = values["batches_s"] * BATCH
            table(title, results[title])
    return results, good
