#!/usr/bin/env python3
"""batchfs.open of a local store to its first batch, beside xarray.open_zarr with the same batch.

    build/venv/bin/python bench/open.py [--rounds 20] [--json] [--folder DIR]

`fresh`: a new process for each round. `import` is that of the library (both import numpy), `open`
the call alone, `batch` the first batch of eight samples after it, `process` all from the start of
Python. `again`: the same process opens the store once more, and for batchfs the server of before
has ended; `shared`: while another process has it open, as the other ranks of a job do. Medians;
contenders take turns. Every batch is compared with what was written.

Stores: five variables; 300 arrays, whose metadata is not consolidated; three variables with 10^6
times. Where the machine was busy the head line says so: such figures count little.
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLES, GRID = 8, (64, 128)
STORES = {"5 variables": (5, 500), "300 arrays": (300, 100), "10^6 times": (3, 1_000_000)}
COLUMNS = ["import", "open", "batch", "process", "again", "shared"]


def make(path, arrays, times):
    """Only the first chunks are there: opening reads no others."""
    import numpy as np
    import zarr

    values = np.random.default_rng(0).normal(280, 10, (SAMPLES, *GRID)).astype("f4")
    group = zarr.open_group(path, mode="w", zarr_format=3)

    def array(name, shape, chunks, dims, dtype="f4", **attributes):
        return group.create_array(name, shape=shape, chunks=chunks, dtype=dtype,
                                  dimension_names=dims, attributes=attributes)

    for number in range(arrays):
        array(f"v{number}", (times, *GRID), (1, *GRID), ("time", "lat", "lon"))
    for number in range(2):
        group[f"v{number}"][:SAMPLES] = values + number
    array("time", (times,), (min(times, 100_000),), ("time",), "i8", units="hours since 1940-01-01",
          calendar="proleptic_gregorian")[:] = np.arange(times)
    for name, length in zip(("lat", "lon"), GRID):
        array(name, (length,), (length,), (name,))[:] = np.linspace(-80, 80, length, dtype="f4")
    np.save(f"{path}.npy", values)


# ---- in a new process ----

def with_batchfs(store):
    import batchfs

    data = batchfs.open(store, view={"window": {"time": 1}, "variables": ["v0", "v1"],
                                     "batch": {"size": SAMPLES}})
    yield
    batch = next(iter(data))
    yield [batch[name].numpy()[:, 0] for name in ("v0", "v1")]
    del batch
    data.close()
    yield


def with_xarray(store):
    import xarray as xr

    data = xr.open_zarr(store, consolidated=False, chunks=None)
    yield
    batch = data[["v0", "v1"]].isel(time=slice(0, SAMPLES))
    yield [batch[name].values for name in ("v0", "v1")]
    data.close()
    yield


CONTENDERS = {"batchfs": with_batchfs, "xarray": with_xarray}
LIBRARIES = {"batchfs": ["batchfs"], "xarray": ["xarray", "zarr"]}


def measure(contender, store):
    """Prints the seconds, and waits for a line while it holds the store."""
    times = {}
    started = time.monotonic()
    for name in LIBRARIES[contender]:
        importlib.import_module(name)
    times["import"] = time.monotonic() - started

    def once():
        steps = CONTENDERS[contender](store)
        began = time.perf_counter()
        next(steps)
        opened = time.perf_counter()
        values = next(steps)
        checksum = [float(one.sum()) for one in values]  # all values are present
        return steps, values, checksum, opened - began, time.perf_counter() - opened

    steps, values, _, times["open"], times["batch"] = once()
    times["ended"] = time.monotonic()

    import numpy as np

    written = np.load(f"{store}.npy")
    assert all(np.array_equal(one, written + np.float32(number))
               for number, one in enumerate(values))
    print("ready", flush=True)
    sys.stdin.readline()
    del values
    next(steps)
    del steps
    time.sleep(0.3)  # until the server has ended
    steps, values, _, opening, reading = once()
    times["again"] = opening + reading
    del values
    next(steps)
    print(json.dumps(times), flush=True)


# ---- the rounds ----

class Process:
    def __init__(self, contender, store):
        self.started = time.monotonic()
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--measure",
                                         contender, str(store)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "ready\n", line

    def end(self):
        told, _ = self.process.communicate("\n")
        assert self.process.returncode == 0
        times = json.loads(told)
        return times | {"process": times.pop("ended") - self.started}


def round_of(contender, store):
    first = Process(contender, store)
    second = Process(contender, store)
    shared = second.end()
    return first.end() | {"shared": shared["open"] + shared["batch"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", help="where the stores go (default: a new folder in /tmp)")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(*arguments.measure)

    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    busy = load > 0.25 * cores
    results = {"cores": cores, "load": load, "busy": busy, "rounds": arguments.rounds}
    if not arguments.json:
        print(f"{cores} cores, load {load:.1f}{': a busy machine' if busy else ''}; medians of "
              f"{arguments.rounds}, in ms")
    folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        for title, (arrays, times) in STORES.items():
            store = folder / f"{arrays}.zarr"
            make(store, arrays, times)
            told = {contender: [] for contender in CONTENDERS}
            for number in range(arguments.rounds + 1):
                for contender in list(CONTENDERS)[::1 if number % 2 else -1]:
                    told[contender].append(round_of(contender, store))
            # the first round reads from the disk
            results[title] = {contender: {name: statistics.median(one[name] for one in runs[1:])
                                          for name in COLUMNS} for contender, runs in told.items()}
            if not arguments.json:
                print(f"\n{title:12}" + "".join(f"{name:>9}" for name in COLUMNS))
                for contender, figures in results[title].items():
                    print(f"{contender:12}" + "".join(f"{figures[name] * 1000:9.1f}"
                                                      for name in COLUMNS))
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
