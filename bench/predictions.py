#!/usr/bin/env python3
"""batchfs.create beside region writes of xarray and zarr-python: predictions of a view whose
windows overlap by a quarter.

    build/venv/bin/python bench/predictions.py [--gigabytes 2] [--ranks 8] [--rounds 3]
                                             [--folder DIR]

Each rank is a process that has its share of the windows, in order, and the predictions in memory
already: what is measured is bringing them into the store. batchfs blends with cosine ramps, or
trims; the peers cut each window to its middle, as trim does, and write it with
`Dataset.to_zarr(region=...)` and with `array[region] = values`, into the same chunks. Two processes
that write to one chunk lose values there, so that the peers' ranks take turns by the time step:
each chunk belongs to one. All write to the page cache, in memory that was used just before: virtual
machines get new memory from their host at a fraction of the speed. GB are of predictions, overlaps
included.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import queue
import shutil
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import xarray as xr
import zarr

import batchfs

LAT, LON, SIZE, STRIDE = 768, 1536, 256, 192
CHUNKS = {"time": 1, "lat": LAT, "lon": LON}


def view_of(ranks):
    """Every rank has whole time steps: a batch is one."""
    return {"name": "p", "variables": ["t"],
            "window": {"time": 1, "lat": {"size": SIZE, "stride": STRIDE, "edge": "drop"},
                       "lon": {"size": SIZE, "stride": STRIDE, "edge": "drop"}},
            "batch": {"size": len(starts(LAT)) * len(starts(LON))}}


def starts(length):
    return range(0, length - SIZE + 1, STRIDE)


def make(path, steps):
    field = 250 + 40 * np.sin(np.linspace(0, np.pi, LAT))[:, None] * np.ones(LON, "f4")
    rng = np.random.default_rng(0)
    group = zarr.open_group(path, mode="w")
    array = group.create_array("t", shape=(steps, LAT, LON), chunks=(1, LAT, LON), dtype="f4",
                               dimension_names=("time", "lat", "lon"))
    for step in range(steps):
        noise = rng.normal(0, 3, (LAT // 8, LON // 8)).repeat(8, 0).repeat(8, 1)
        array[step] = (field + noise + rng.normal(0, 0.05, (LAT, LON))).astype("f4").round(2)


class Held:
    """A batch as create() takes it, without the server: its numbers, starts and values."""

    def __init__(self, batch):
        self.index, self.samples = batch.index.copy(), batch.samples
        self._labels = type("Labels", (), {"starts": batch._labels.starts.copy()})()
        self.values = batch["t"].numpy().copy()
        self.shape = self.values.shape
        self.labels = {dim: labels.copy() for dim, labels in batch.labels.items()}

    def __getitem__(self, name):
        return self


def rank_of(kind, store, out, rank, ranks, options, ready, begin, results):
    data = batchfs.open(store, view=view_of(ranks), rank=rank, world=ranks)
    held = [Held(batch) for batch in data]
    ready.wait()
    begin.wait()
    began, cpu = time.perf_counter(), time.process_time()
    write = {"batchfs": with_batchfs, "xarray": with_xarray, "zarr-python": with_zarr}[kind]
    write(data, held, out, options)
    results.put((began, time.perf_counter(), time.process_time() - cpu, peak_megabytes()))


def peak_megabytes():
    """Peak memory of this program: getrusage() includes that of its parent at the start."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def with_batchfs(data, held, out, options):
    with batchfs.create(out, like=data, chunks=CHUNKS, **options) as target:
        for batch in held:
            target.write(batch, batch.values)


def middles(batch):
    """The middle of each window, and where it goes."""
    for sample in range(batch.samples):
        step, *place = (int(batch._labels.starts[sample, d]) for d in range(3))
        cut, region = [], []
        for start, length in zip(place, (LAT, LON)):
            low = 0 if start == 0 else (SIZE - STRIDE) // 2
            high = SIZE if start == starts(length)[-1] else (SIZE + STRIDE) // 2
            cut.append(slice(low, high))
            region.append(slice(start + low, start + high))
        yield batch.values[sample, 0][tuple(cut)], (slice(step, step + 1), *region)


def with_zarr(data, held, out, options):
    array = zarr.open_group(out, mode="r+")["t"]
    for batch in held:
        for values, region in middles(batch):
            array[region] = values[None]


def with_xarray(data, held, out, options):
    for batch in held:
        for values, region in middles(batch):
            xr.Dataset({"t": (("time", "lat", "lon"), values[None])}).to_zarr(
                out, region=dict(zip(("time", "lat", "lon"), region)), safe_chunks=False)


def run(kind, store, out, steps, ranks, options):
    if kind != "batchfs":
        zarr.open_group(out, mode="w").create_array(
            "t", shape=(steps, LAT, LON), chunks=(1, LAT, LON), dtype="f4", fill_value=np.nan,
            dimension_names=("time", "lat", "lon"), compressors=codec_of(options["codec"]))
        zarr.consolidate_metadata(out)
    context = multiprocessing.get_context("spawn")
    ready, begin, results = context.Barrier(ranks + 1), context.Barrier(ranks + 1), context.Queue()
    processes = [context.Process(target=rank_of, args=(kind, store, out, rank, ranks, options,
                                                       ready, begin, results), daemon=True)
                 for rank in range(ranks)]
    for process in processes:
        process.start()
    with contextlib.suppress(threading.BrokenBarrierError):  # a rank that failed is found below
        ready.wait(300)
        np.ones(2 * written_bytes(steps), "u1")  # memory that is used, and free again
        begin.wait(60)
    told = []
    while len(told) < ranks:
        with contextlib.suppress(queue.Empty):
            told.append(results.get(timeout=1))
        if any(process.exitcode for process in processes):  # the others would wait for it
            sys.exit(f"a rank of {kind} failed")
    for process in processes:
        process.join()
    return (max(end for _, end, *_ in told) - min(began for began, *_ in told),
            sum(cpu for *_, cpu, _ in told), max(m for *_, m in told))


def written_bytes(steps):
    return steps * len(starts(LAT)) * len(starts(LON)) * SIZE * SIZE * 4


def codec_of(text):
    return (zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle") if text == "blosc"
            else zarr.codecs.ZstdCodec(level=3))


def check(store, out, exact):
    source, copy = zarr.open_group(store, mode="r")["t"], zarr.open_group(out, mode="r")["t"]
    covered = (starts(LAT)[-1] + SIZE, starts(LON)[-1] + SIZE)
    for step in range(0, source.shape[0], 7):
        a, b = source[step, :covered[0], :covered[1]], copy[step, :covered[0], :covered[1]]
        assert np.array_equal(a, b) if exact else (np.abs(a - b) <= np.spacing(a)).all()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default="blosc", choices=["blosc", "zstd"])
    parser.add_argument("--writers", help="of batchfs trim, batchfs cosine, zarr-python, xarray: "
                                          "separated by commas (default: all)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", help="where the stores go (default: a new folder in /tmp)")
    arguments = parser.parse_args()
    windows = len(starts(LAT)) * len(starts(LON))
    steps = max(arguments.ranks, round(arguments.gigabytes * 1e9 / (windows * SIZE * SIZE * 4)))
    written = written_bytes(steps)
    told = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        make(folder / "source.zarr", steps)
        if not arguments.json:
            print(f"{written / 1e9:.2f} GB of predictions, {arguments.ranks} ranks, "
                  f"{len(os.sched_getaffinity(0))} cores, {arguments.codec}")
        cases = [("batchfs trim", "batchfs", {"overlap": "trim"}),
                 ("batchfs cosine", "batchfs", {"overlap": "cosine"}),
                 ("zarr-python", "zarr-python", {}), ("xarray", "xarray", {})]
        if arguments.writers:
            cases = [case for case in cases if case[0] in arguments.writers.split(",")]
        for number in range(arguments.rounds):
            for title, kind, options in cases:
                out = folder / "out"
                told.setdefault(title, []).append(run(kind, folder / "source.zarr",
                                                      out, steps, arguments.ranks,
                                                      options | {"codec": arguments.codec}))
                if number == 0:
                    check(folder / "source.zarr", out, exact=title != "batchfs cosine")
                shutil.rmtree(out)
    results = {title: {"seconds": statistics.median(s for s, *_ in runs), "gigabytes_per_second":
                           written / 1e9 / statistics.median(s for s, *_ in runs),
                       "cpu_seconds": statistics.median(c for _, c, _ in runs),
                       "peak_megabytes_of_a_rank": max(m for *_, m in runs)}
               for title, runs in told.items()}
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for title, one in results.items():
        print(f"{title}: {one['seconds']:.2f} s, {one['gigabytes_per_second']:.2f} GB/s, "
              f"{one['cpu_seconds']:.1f} s of CPU, peak "
              f"{one['peak_megabytes_of_a_rank']:.0f} MB a rank")


if __name__ == "__main__":
    main()
