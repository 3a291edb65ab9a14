"""samples: W1 with a split, a mask, a list of 10^7 rows or weights, beside W1 without.

Everything is in memory, so that a batch costs least and what chooses its samples weighs most. Each
view has the windows of W1, or some of them; the order, the seed and the batches are the same. How
long the view takes to open is measured too.
"""

import json
import pathlib
import warnings

import numpy as np
import zarr

import w1
from harness import data
from harness.loaders import expected, figures, hash_of
from harness.mount import Mount
from harness.rounds import Contender, chosen, measure, median, verified
from harness.table import text

ROWS = 10_000_000
WAYS = {"files": "peers.batchfs:batches", "library": "peers.handoff:batches"}


def make(arguments):
    """W1's store with a variable that marks half of the cells."""
    path, spec, steps = w1.make(arguments, "v2 blosc-lz4", name="samples")
    if not (pathlib.Path(path) / "marked").exists():
        root = zarr.open_group(path, mode="r+")
        marked = data.create(root, "marked", (128, 64), (128, 64), "f4", "raw",
                             ["longitude", "latitude"], True)
        marked[:] = np.add.outer(np.arange(128), np.arange(64)) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(path)
    return path, spec, steps


def views(arguments, spec):
    """{name: view}; files that they name lie with the data."""
    window = spec["window"]
    random = np.random.default_rng(0)
    rows = max(1000, int(ROWS * arguments.scale))
    listed, weights = arguments.data / f"samples-{rows}.npy", arguments.data / f"weights-{rows}.npy"
    if not listed.exists():
        starts = [random.integers(0, count, rows) * stride for _, _, stride, count in window]
        np.save(listed, np.stack(starts, axis=1).astype("i4"))
    samples = int(np.prod([count for *_, count in window]))
    np.save(weights, random.random(samples))
    every = w1.view("global")
    return {
        "plain": every,
        "split": {**every, "split": {"blocks": {"time": 40},
                                     "fractions": {"train": 0.8, "val": 0.2}, "part": "train"}},
        "mask": {**every,
                 "samples": {"mask": {"variable": "marked", "above": 0.5, "fraction": [0.1, 0.9]}}},
        "list": {**every, "samples": {"list": str(listed)}},
        "weights": {**every, "samples": {"weights": str(weights)}},
    }


def order_of(folder, store, view, spec, batches):
    """The windows of a view's batches as sample numbers of W1, as batchfs itself gives them: a
    file."""
    file = folder / f"order-{hash_of([store, view, batches, w1.EPOCHS]):x}.npy"
    if not file.exists():
        rows = []
        dims, _, strides, counts = zip(*spec["window"])
        with Mount({}, store, [view]) as path:
            for epoch in range(w1.EPOCHS):
                for batch in range(batches):
                    name = path / "views" / view["name"] / (
                        f"epoch-{epoch:04d}/batch-{batch:06d}.json")
                    # in the store: a component of a mixture selects
                    windows = json.loads(name.read_text())["windows"]
                    starts = np.array([[at[dim][0] for dim in dims] for at in windows]) // strides
                    rows.append(np.ravel_multi_index(starts.T, counts))
        np.save(file, np.array(rows))
    return file


def run(arguments):
    path, spec, steps = make(arguments)
    memory = 2 * steps * (len(w1.SURFACE) + w1.LEVELS) * 128 * 64 * 4
    batches = max(20, int(w1.BATCHES * arguments.scale))
    data.warm(path)
    running, good = [], True
    for name, view in views(arguments, spec).items():
        if arguments.only and arguments.only != name and name != "plain":
            continue
        sums = expected(path, spec, order_of(arguments.data, path, view, spec, batches), batches)
        given = {"store": path, "view": view, "count": batches, "epochs": w1.EPOCHS,
                 "options": ["--memory", str(memory)]}
        found, ok = verified([Contender(f"{name}, {way}", function, given)
                              for way, function in WAYS.items()], sums)
        running, good = running + found, good and ok
    running = chosen(running, arguments.peers)
    found = measure(running, arguments.rounds)
    results = {name: {**figures(runs, 1),
                      "open_s": median(runs, lambda run: run.report.get("mount_seconds", np.nan))}
               for name, runs in found.items()}
    rows = []
    for name, values in results.items():
        plain = results.get("plain, " + name.split(", ")[1])
        rows.append([name, values["steady_s"], values["steady_s"] / plain["steady_s"] if plain
                         else np.nan, values["cpu_s_per_gb"], values["peak_mb"], values["open_s"]])
    print(f"\nW1 in memory, {steps} steps, views that choose samples")
    print(text(rows, ["", "batch/s", "/ plain", "CPU s/GB", "peak MB", "open s"]))
    return results, good
