"""local: a local store in the page cache. How fast it is read as a whole, and as batches in order;
how soon a mount is ready, and what an idle one takes."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import zlib

import numpy as np
import zarr

from harness import data
from harness.mount import PROGRAM
from harness.rounds import Contender, chosen, measure, median, verified
from harness.table import text
from peers import bare

CODECS = ["raw", "blosc-lz4", "blosc-zstd", "zstd"]
VARIABLES = ["t2m", "V500", "U500", "T500", "Z500", "Q500"]
GRID = (721, 1440)
STEPS = 128  # 3.2 GB decoded
BATCH, PAIR = 8, 2
CHUNK_BYTES = 4 * GRID[0] * GRID[1]


def store_of(arguments, codec):
    steps = max(2 * BATCH * PAIR, int(STEPS * arguments.scale) // (BATCH * PAIR) * BATCH * PAIR)
    variable = {"grid": GRID, "dims": ["time", "latitude", "longitude"], "chunk": [1, *GRID]}
    path = data.make_store(arguments.data, {
        "name": f"local-{codec}", "format": 3, "codec": codec, "steps": steps,
        "variables": {name: variable for name in VARIABLES},
        "coordinates": {"latitude": GRID[0], "longitude": GRID[1]}})
    return str(path), steps


# Everything is read several times, as in training: memory that a virtual machine has to fetch from
# its host first is then a small part of what it takes.
EPOCHS = 4
SINGLE = {"name": "all", "variables": VARIABLES, "window": {"time": 1}, "batch": {"size": 4},
          "epochs": EPOCHS}
PAIRS = {"name": "pairs", "window": {"time": PAIR}, "batch": {"size": BATCH}, "epochs": EPOCHS,
         "tensors": {"x": {"variables": VARIABLES, "stack": "channel",
                           "dims": ["time", "channel", "latitude", "longitude"]}}}


def pairs_expected(store, batches):
    """Checksums of the batches of PAIRS, from zarr-python and numpy."""
    group = zarr.open_group(store, mode="r")
    sums = {}
    for batch in range(batches):
        span = slice(batch * BATCH * PAIR, (batch + 1) * BATCH * PAIR)
        values = np.stack([group[name][span] for name in VARIABLES], axis=1)
        for epoch in range(EPOCHS):
            sums[f"{epoch}/{batch}"] = zlib.crc32(values.reshape(-1).view("u1"))
    return sums


def rate(result):
    """Bytes per second; a mount's start is not counted, it has a row of its own."""
    return result.bytes / (result.seconds - result.report.get("mount_seconds", 0))


def per_codec(arguments, codec):
    store, steps = store_of(arguments, codec)
    data.warm(store)
    whole = {"store": store, "variables": VARIABLES, "passes": EPOCHS}
    view = {"store": store, "view": SINGLE, "count": steps // SINGLE["batch"]["size"],
            "epochs": EPOCHS, "by_tensor": True}
    read_all = [
        Contender("batchfs-values", "peers.batchfs:read_values", whole),
        Contender("batchfs-view", "peers.batchfs:batches", view),
        Contender("batchfs-library", "peers.handoff:batches", view),
        Contender("zarr-zarrs", "peers.zarr_python:read_all", {**whole, "pipeline": "zarrs"}),
        Contender("zarr", "peers.zarr_python:read_all", whole),
        Contender("zarr-fused", "peers.zarr_python:read_all", {**whole, "pipeline": "fused"}),
        Contender("tensorstore", "peers.tensor_store:read_all", whole),
    ]
    pairs = {"store": store, "view": PAIRS, "count": steps // (BATCH * PAIR), "epochs": EPOCHS}
    in_order = [
        Contender("batches-mmap", "peers.batchfs:batches", pairs),
        Contender("batches-read", "peers.batchfs:batches", {**pairs, "how": "read"}),
        Contender("batches-library", "peers.handoff:batches", pairs),
    ]
    running = chosen(read_all + in_order, arguments.peers)
    read_all, good = verified([one for one in read_all if one in running])
    in_order = [one for one in in_order if one in running]
    in_order, good_too = (verified(in_order, pairs_expected(store, steps // (BATCH * PAIR)))
                              if in_order else ([], True))
    bounds, runs = [], {}
    for _ in range(arguments.rounds):
        bounds.append(bare.rate(store, VARIABLES, codec, CHUNK_BYTES))
        for name, results in measure(read_all + in_order, 1).items():
            runs.setdefault(name, []).extend(results)
    ratio = 4 * len(VARIABLES) * steps * GRID[0] * GRID[1] / data.stored_bytes(store)
    return runs, statistics.median(bounds), ratio, good and good_too


def show(codec, runs, bound, ratio):
    rates = {name: median(results, rate) / 1e9 for name, results in runs.items()}
    peers = [value for name, value in rates.items() if not name.startswith("bat")]
    ours = [value for name, value in rates.items() if name.startswith("batchfs")]
    best_peer, own = max(peers, default=None), max(ours, default=None)
    rows = []
    for name, value in rates.items():
        over = lambda other: value / other if other else None
        rows.append([name, value, over(best_peer), over(bound / 1e9), over(own),
                     median(runs[name], lambda r: r.cpu / r.bytes * 1e9),
                     median(runs[name], lambda r: r.memory / 1e6)])
    rows.append(["bare library", bound / 1e9, bound / 1e9 / best_peer if best_peer else None, 1.0,
                 bound / 1e9 / own if own else None, None, None])
    print(f"\n{codec}: compressed {ratio:.2f} times; GB/s of decoded values")
    print(text(rows,
               ["", "GB/s", "/ best peer", "/ bare", "/ own read-all", "CPU s/GB", "MB peak"]))
    return {"rates": rates, "bare": bound / 1e9, "ratio": ratio}


def mount_of_many(arguments):
    """Seconds until `batchfs mount` of 300 arrays returns, and the memory of the idle mount."""
    names = [f"v{i:03d}" for i in range(300)]
    variable = {"grid": [8, 8], "dims": ["time", "latitude", "longitude"], "chunk": [1, 8, 8]}
    store = data.make_store(arguments.data,
                            {"name": "many", "format": 3, "codec": "zstd",
                             "steps": 2, "variables": {name: variable for name in names},
                             "coordinates": {"latitude": 8, "longitude": 8}})
    ready, memory = [], []
    for _ in range(max(3, arguments.rounds)):
        with tempfile.TemporaryDirectory(prefix="batchfs-bench-") as folder:
            begin = time.monotonic()
            subprocess.run([PROGRAM, "mount", store, folder], check=True)
            ready.append(time.monotonic() - begin)
            try:
                os.listdir(pathlib.Path(folder) / "arrays")
                time.sleep(0.3)
                pid = json.loads((pathlib.Path(folder) / ".batchfs/status.json").read_text())["pid"]
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                memory.append(int(status.split("VmRSS:")[1].split()[0]) / 1024)
            finally:
                subprocess.run([PROGRAM, "umount", folder], check=True)
    result = {"ready_seconds": statistics.median(ready), "idle_mib": statistics.median(memory)}
    print("\nA mount of 300 arrays with consolidated metadata")
    print(text([["ready after", f"{result['ready_seconds'] * 1e3:.0f} ms"],
                ["resident when idle", f"{result['idle_mib']:.1f} MiB"]], ["", ""]))
    return result


def run(arguments):
    results, good = {}, True
    for codec in CODECS:
        if arguments.only and arguments.only not in codec:
            continue
        runs, bound, ratio, ok = per_codec(arguments, codec)
        results[codec] = show(codec, runs, bound, ratio)
        good = good and ok
    if not arguments.only or arguments.only in "mount":
        results["mount"] = mount_of_many(arguments)
    return results, good
