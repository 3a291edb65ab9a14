"""mixing: mixtures of ten views beside one view.

`w1`: ten views, each of a tenth of W1's steps, all in memory, beside one view of all of them.
`huge`: ten views of 10^9 samples of an array without chunks, beside one of them; how often each
view comes is counted in each 1,024 positions.
"""

import collections
import json

import numpy as np

import w1
from harness import data
from harness.geometry import checksum
from harness.loaders import expected, figures, tag
from harness.mount import Mount
from harness.rounds import Contender, chosen, measure, median, verified
from harness.table import text
from samples import WAYS, order_of

VIEWS = 10
HUGE, ROW, SIZE = 10**9, 64, 32


def mixture(name, views, batch, epochs, mixing="sample"):
    return {"name": name, "mix": {f"v{i}": {"view": view} for i, view in enumerate(views)},
            "batch": {"size": batch, "remainder": "drop", "mixing": mixing}, "epochs": epochs}


def of_w1(arguments):
    """(store, spec, bytes, {name: view})."""
    path, spec, steps = w1.make(arguments, "v2 blosc-lz4", name="samples")
    own = lambda view: {key: view[key] for key in ("window", "tensors", "order")}
    tenth = steps // VIEWS
    parts = [{**own(w1.view("global")),
              "select": {"time": {"from": f"#{i * tenth}", "to": f"#{(i + 1) * tenth - 1}"}}}
             for i in range(VIEWS)]
    mixed = {f"{VIEWS} views, by {mixing}": mixture("w1", parts, w1.BATCH, w1.EPOCHS, mixing)
             for mixing in ("sample", "batch")}
    return path, spec, steps * (len(w1.SURFACE) + w1.LEVELS) * 128 * 64 * 4, {
        "one view": w1.view("global"), **mixed}


def of_huge(arguments, batches):
    path = arguments.data / "mixing-huge.zarr"
    if not path.exists():
        (path / "t").mkdir(parents=True)
        (path / ".zgroup").write_text('{"zarr_format": 2}')
        (path / "t/.zarray").write_text(
            json.dumps({"zarr_format": 2, "shape": [HUGE, ROW], "chunks": [64, ROW], "dtype": "<f4",
                        "compressor": None, "fill_value": None, "filters": None, "order": "C"}))
        (path / "t/.zattrs").write_text('{"_ARRAY_DIMENSIONS": ["time", "x"]}')
    one = lambda seed: {"variables": ["t"], "window": {"time": 1},
                        "order": {"shuffle": "global", "seed": seed}}
    epochs = {"count": 1, "samples": batches * SIZE}
    return path, {"one view": {**one(0), "name": "huge", "batch": SIZE, "epochs": epochs},
                  f"{VIEWS} views": mixture("huge", [one(i) for i in range(VIEWS)], SIZE, epochs)}


def quotas(path, view):
    """Are the quotas of each 1,024 positions equal? Checks the first 32 of them."""
    found = set()
    with Mount({}, path, [view]) as place:
        names = []
        for batch in range(32 * 1024 // SIZE):
            names += json.loads(
                (place / f"views/huge/epoch-0000/batch-{batch:06d}.json").read_text())["components"]
        for first in range(0, len(names), 1024):
            found.add(tuple(sorted(collections.Counter(names[first:first + 1024]).items())))
    return len(found) == 1 and {count
                                for _, count in found.pop()} <= {1024 // VIEWS, 1024 // VIEWS + 1}


def run(arguments):
    running, good = [], True
    batches = max(20, int(w1.BATCHES * arguments.scale))
    path, spec, size, views = of_w1(arguments)
    data.warm(path)
    for name, view in views.items():
        sums = expected(path, spec, order_of(arguments.data, path, view, spec, batches), batches)
        given = {"store": path, "view": view, "count": batches, "epochs": w1.EPOCHS,
                 "options": ["--memory", str(2 * size)]}
        found, ok = verified([Contender(f"w1, {name}, {way}", function, given)
                              for way, function in WAYS.items()], sums)
        running, good = running + found, good and ok
    many = max(1024, int(10_000 * arguments.scale))
    huge, views = of_huge(arguments, many)
    zeros = checksum([np.zeros((SIZE, 1, ROW), "f4")])
    for name, view in views.items():
        given = {"store": str(huge), "view": view, "count": many, "epochs": 1, "options": []}
        found, ok = verified([Contender(f"huge, {name}, {way}", function, given)
                              for way, function in WAYS.items()],
                             {tag(i, many): zeros for i in range(many)})
        running, good = running + found, good and ok
    if not quotas(huge, views[f"{VIEWS} views"]):
        print("  OTHER QUOTAS in 1,024 positions of 10 views of 10^9 samples")
        good = False
    found = measure(chosen(running, arguments.peers), arguments.rounds)
    results = {name: {**figures(runs, 1),
                      "open_s": median(runs, lambda run: run.report.get("mount_seconds", np.nan))}
               for name, runs in found.items()}
    rows = []
    for name, values in results.items():
        store, _, *_, way = name.split(", ")
        plain = results.get(f"{store}, one view, {way}")
        rows.append([name, values["steady_s"], values["steady_s"] / plain["steady_s"] if plain
                         else np.nan, values["cpu_s_per_gb"], values["peak_mb"], values["open_s"]])
    print("\nMixtures")
    print(text(rows, ["", "batch/s", "/ one view", "CPU s/GB", "peak MB", "open s"]))
    return results, good
