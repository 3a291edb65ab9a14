"""w1: patches of a small global grid, as the Earthmover demonstration trains from (WeatherBench 2,
128 x 64).

Windows of 48 x 48 and three steps that overlap, 15 channels stacked, batches of 4, shuffled: a
batch of 1.66 MB touches about 70 MB of decoded chunks. The result depends on how often each
contender decodes a chunk.
"""

from harness import data
from harness.loaders import expected, figures, order_of, table
from harness.origin import Origin
from harness.rounds import Contender, chosen, measure, verified
from harness.workloads import checked_in_own_order

STEPS, BATCH, BATCHES, EPOCHS = 4000, 4, 500, 3
SURFACE = ["10m_wind_speed", "2m_temperature"]
LEVELS = 13
CACHE_SHARE = 10 / 45  # of the decoded data, as in the demonstration
STORES = {"v2 blosc-lz4": (2, "blosc-lz4"), "v3 zstd": (3, "zstd")}


def make(arguments, kind, name="w1"):
    zarr_format, codec = STORES[kind]
    steps = max(200, int(STEPS * arguments.scale) // 40 * 40)
    variables = {name: {"grid": [128, 64], "dims": ["time", "longitude", "latitude"],
                        "chunk": [40, 128, 64]} for name in SURFACE}
    variables["specific_humidity"] = {"grid": [LEVELS, 128, 64],
                                      "dims": ["time", "level", "longitude", "latitude"],
                                      "chunk": [40, LEVELS, 128, 64]}
    store = data.make_store(arguments.data,
                            {"name": f"{name}-{codec}", "format": zarr_format, "codec": codec,
                             "steps": steps, "variables": variables,
                             "coordinates": {"level": LEVELS, "longitude": 128, "latitude": 64}})
    spec = {"window": [["latitude", 48, 16, 2], ["longitude", 48, 16, 6],
                       ["time", 3, 1, steps - 2]],
            "variables": {name: variable["dims"] for name, variable in variables.items()},
            "sizes": {"level": LEVELS}, "tensors": [["x", 0]], "stack": True}
    return str(store), spec, steps


def view(order):
    return {"name": "w1",
            "window": {"latitude": {"size": 48, "stride": 16},
                       "longitude": {"size": 48, "stride": 16}, "time": {"size": 3, "stride": 1}},
            "tensors": {"x": {"variables": [*SURFACE, "specific_humidity"], "stack": "channel",
                              "dims": ["time", "channel", "longitude", "latitude"]}},
            "batch": {"size": BATCH, "remainder": "drop"}, "order": {"shuffle": order, "seed": 0},
            "epochs": EPOCHS}


def contenders(store, spec, steps, zarr_format, orders, batches, step):
    decoded = steps * (len(SURFACE) + LEVELS) * 128 * 64 * 4
    cache = int(decoded * CACHE_SHARE)
    per_epoch, all_batches = batches, batches * EPOCHS
    # stores that take minutes for a few batches get fewer
    share = 3 if store.startswith("http") else 1
    slow = lambda count: {"step": step, "limit": min(count // share, all_batches)}
    ours = lambda order, memory: {"store": store, "view": view(order), "count": per_epoch,
                                  "epochs": EPOCHS,
                                  "options": ["--memory", str(memory)] if memory else []}
    gather = {"store": store, "geometry": spec, "order": orders["global"],
              "batches_per_epoch": per_epoch}
    tensorstore = lambda memory: {**gather, "zarr_format": zarr_format, "cache_bytes": memory}
    fast = {"step": step}
    if step:
        fast["limit"] = min(300, all_batches)
    return [
        Contender("batchfs", "peers.batchfs:batches", ours("global", cache), fast),
        Contender("batchfs-block", "peers.batchfs:batches", ours("block", cache), fast,
                  comparable=False),
        Contender("batchfs-in-memory", "peers.batchfs:batches", ours("global", 2 * decoded), fast),
        Contender("batchfs-library", "peers.handoff:batches", ours("global", cache), fast),
        Contender("batchfs-library-in-memory", "peers.handoff:batches", ours("global", 2 * decoded),
                  fast),
        Contender("tensorstore", "peers.tensor_store:batches", tensorstore(cache), fast),
        Contender("tensorstore-in-memory", "peers.tensor_store:batches", tensorstore(2 * decoded),
                  fast),
        Contender("insitubatch", "peers.insitu:batches",
                  {"store": store, "geometry": spec, "batch": BATCH, "count": all_batches}, fast,
                  comparable=False),
        Contender("zarr-zarrs", "peers.zarr_python:batches", {**gather, "pipeline": "zarrs"},
                  slow(60)),
        Contender("xbatcher", "peers.xbatcher_items:batches", gather, slow(40)),
        Contender("xbatcher-4-workers", "peers.xbatcher_items:with_workers",
                  {**gather, "workers": 4}, slow(100)),
        Contender("xbatcher-8-workers", "peers.xbatcher_items:with_workers",
                  {**gather, "workers": 8}, slow(100)),
    ]


def run(arguments):
    results, good = {}, True
    for kind, (zarr_format, _) in STORES.items():
        if arguments.only and arguments.only not in kind:
            continue
        path, spec, steps = make(arguments, kind)
        batches = max(20, int(BATCHES * arguments.scale))
        orders = {order: order_of(arguments.data, path, view(order), batches, EPOCHS)
                  for order in ("global", "block")}
        sums = {order: expected(path, spec, file, batches) for order, file in orders.items()}
        data.warm(path)
        decoded = steps * (len(SURFACE) + LEVELS) * 128 * 64 * 4
        ratio = decoded / data.stored_bytes(path)
        with Origin(arguments.data, latency=arguments.latency or 0) as origin:
            store = origin.url(path) if arguments.latency is not None else path
            where = (f"{arguments.latency:g} ms per GET" if arguments.latency is not None
                     else "local")

            def after(result):
                if arguments.latency is not None:
                    result.report["origin"] = origin.stats()

            for step in arguments.steps:
                title = (f"W1, {kind}, {where}, step {step:g} s, {steps} steps "
                         f"({decoded / 1e9:.2f} GB decoded, {ratio:.1f} times compressed)")
                running = chosen(contenders(store, spec, steps, zarr_format, orders, batches, step),
                                 arguments.peers)
                if step == 0:
                    common, ok = verified([c for c in running if c.comparable], sums["global"])
                    good = good and ok
                    for contender in running:
                        if not contender.comparable:
                            good = (checked_in_own_order(contender, path, spec, sums["block"])
                                    and good)
                found = measure(running,
                                arguments.rounds if step == 0 else max(1, arguments.rounds // 3),
                                before=origin.reset, after=after)
                results[title] = {name: figures(runs, ratio) for name, runs in found.items()}
                table(title, results[title])
    return results, good
