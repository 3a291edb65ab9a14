"""Common parts of the three loader workloads: the order of samples, the expected bytes, the
table."""

import json
import statistics

import numpy as np
import zarr

from harness.geometry import Geometry, checksum
from harness.mount import Mount
from harness.rounds import median
from harness.table import text


def order_of(folder, store, view, batches, epochs=1):
    """The sample numbers of a view's batches, as batchfs itself gives them: a file that contenders
    read."""
    file = folder / f"order-{abs(hash_of([store, view, batches, epochs])):x}.npy"
    if not file.exists():
        rows = []
        with Mount({}, store, [view]) as path:
            for epoch in range(epochs):
                for batch in range(batches):
                    name = path / "views" / view["name"] / (
                        f"epoch-{epoch:04d}/batch-{batch:06d}.json")
                    rows.append(json.loads(name.read_text())["samples"])
        np.save(file, np.array(rows))
    return str(file)


def hash_of(value):
    import hashlib
    return int.from_bytes(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:6],
                          "little")


def in_order(folder, batches, size):
    """Samples 0, 1, 2 … as an order file."""
    file = folder / f"order-{batches}x{size}.npy"
    np.save(file, np.arange(batches * size).reshape(batches, size))
    return str(file)


def tag(number, batches):
    """The tag of the batch at a place of the order: "epoch/batch"."""
    return f"{number // batches}/{number % batches}"


def whole(store, variables):
    """Every array of a store in memory."""
    group = zarr.open_group(store, mode="r")
    return {name: group[name][...] for name in variables}


def expected(store, spec, order, batches):
    """{tag: checksum} of every batch of an order, from zarr-python and numpy."""
    geometry, arrays = Geometry(spec), whole(store, spec["variables"])
    return {tag(i, batches): checksum(geometry.gather(arrays, row))
            for i, row in enumerate(np.load(order))}


EARLY = 60  # batches whose waits a long run would hide


def figures(runs, store_ratio):
    """A contender's figures, medians over its runs."""
    def waits(run):
        return np.array(run.waits[1:]) if len(run.waits) > 1 else np.array(run.waits)

    def fetched(run):
        if "origin" in run.report:
            return run.report["origin"]["bytes"]
        return run.report["status"]["bytes_fetched"] if "status" in run.report else run.read

    def decoded(run):
        return (run.report["status"]["bytes_decoded"] if "status" in run.report
                else fetched(run) * store_ratio)

    busy = lambda run: sum(run.waits)
    last = lambda run: run.waits[-max(1, len(run.waits) // 3):]
    rows = np.mean([run.bytes / len(run.waits) for run in runs])
    return {
        "start_s": median(runs, lambda r: r.spawn + r.waits[0]),
        "first_s": median(runs, lambda r: r.waits[0]),
        "wait_ms": median(runs, lambda r: waits(r).mean()) * 1e3,
        "p50_ms": median(runs, lambda r: np.percentile(waits(r), 50)) * 1e3,
        "p99_ms": median(runs, lambda r: np.percentile(waits(r), 99)) * 1e3,
        "max_ms": median(runs, lambda r: waits(r).max()) * 1e3,
        "early_ms": median(runs, lambda r: waits(r)[:EARLY - 1].mean()) * 1e3,
        "early_max_ms": median(runs, lambda r: waits(r)[:EARLY - 1].max()) * 1e3,
        "batches_s": median(runs, lambda r: len(r.waits) / busy(r)),
        "steady_s": median(runs, lambda r: len(waits(r)) / max(1e-9, waits(r).sum())),
        "last_s": median(runs, lambda r: len(last(r)) / sum(last(r))),
        "delivered_mb_s": median(runs, lambda r: r.bytes / busy(r)) / 1e6,
        "decoded_mb_s": median(runs, lambda r: decoded(r) / busy(r)) / 1e6,
        "fetched_mb_s": median(runs, lambda r: fetched(r) / busy(r)) / 1e6,
        "decoded_per_delivered": median(runs, lambda r: decoded(r) / r.bytes),
        "fetched_per_delivered": median(runs, lambda r: fetched(r) / r.bytes),
        "peak_mb": median(runs, lambda r: r.memory) / 1e6,
        "cpu_s_per_gb": median(runs, lambda r: r.cpu / r.bytes * 1e9),
        "batches": int(statistics.median(len(r.waits) for r in runs)),
        "batch_mb": rows / 1e6,
        "waits": [round(wait, 7) for wait in runs[-1].waits],
    }


COLUMNS = [("start s", "start_s"), ("first s", "first_s"), ("wait ms", "wait_ms"),
           ("p50", "p50_ms"), ("p99", "p99_ms"), ("max", "max_ms"), ("early", "early_ms"),
           ("early max", "early_max_ms"), ("batch/s", "batches_s"), ("steady", "steady_s"),
           ("last 1/3", "last_s"), ("MB/s", "delivered_mb_s"), ("decoded", "decoded_mb_s"),
           ("fetched", "fetched_mb_s"), ("dec/del", "decoded_per_delivered"),
           ("fet/del", "fetched_per_delivered"), ("peak MB", "peak_mb"),
           ("CPU s/GB", "cpu_s_per_gb"), ("batches", "batches")]


def table(title, found):
    """Prints {name: figures}. `start` counts from the start of the process, `first` from opening
    the store; waits are of all batches but the first, `early` ones of the first sixty; `steady` is
    the rate without the first, `last 1/3` of the last."""
    print(f"\n{title}")
    print(text([[name, *(float(values[key]) for _, key in COLUMNS)]
                for name, values in found.items()], ["", *(name for name, _ in COLUMNS)]),
          flush=True)
