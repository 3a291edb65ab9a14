#!/usr/bin/env python3
"""batchfs rechunk beside dask with zarr-python, on the same store with the same plan; then kills.

    bench/run rechunk                                        10 GB, 100 kills
    bench/run rechunk --scale 0.03 --rounds 1                the same, small
    build/venv/bin/python bench/rechunk.py [--gigabytes 4] [--rounds 3] [--kills 0] [--folder DIR]

The plan is rechunker's: regions of whole chunks of both sides, each copied by one task, or two
passes over an intermediate store whose chunks are what regions of both passes share. Here it is the
one that `batchfs rechunk --dry-run` prints; dask's threads copy `target[region] = source[region]`
with zarr-python, as rechunker's dask executor does, the intermediate store in the codec of the
output. Codecs and levels are the same on both sides, in the source, too. All read from and write to
the page cache. Values of both copies are compared with the source, and the memory of batchfs with
its limit.

A killed copy is started again until it has been killed so many times, and finished; then every file
is compared with that of a copy that nobody killed.
"""

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import dask
import numpy as np
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from measured import measure  # noqa: E402

PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
LAT, LON = 361, 720
DIMS = ("time", "latitude", "longitude")
# The source has ten steps to a chunk, as archives have it.
LAYOUTS = (("a step to a chunk", (1, LAT, LON)), ("columns of 100 steps", (100, 91, 90)),
           ("columns of all steps", (-1, 19, 20)))
CODECS = {"zstd:3": zarr.codecs.ZstdCodec(level=3),
          "blosc:lz4:5": zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")}


def make(path, gigabytes, codec="zstd:3"):
    """A field of smooth noise in float32, ten steps to a chunk, as archives have it."""
    steps = max(100, round(gigabytes * 1e9 / (LAT * LON * 4)) // 100 * 100)
    array = zarr.open_group(path, mode="w").create_array("t2m", shape=(steps, LAT, LON),
                                                         chunks=(10, LAT, LON), dtype="f4",
                                                         compressors=CODECS[codec],
                                                         dimension_names=DIMS)
    rng = np.random.default_rng(0)
    base = 250 + 40 * np.sin(np.linspace(0, np.pi, LAT))[:, None] * np.ones(LON, "f4")
    for start in range(0, steps, 10):
        noise = rng.normal(0, 3, (10, LAT // 8 + 1, LON // 8)).repeat(8, 1).repeat(
            8, 2)[:, :LAT, :LON]
        array[start:start + 10] = (base + noise
                                   + rng.normal(0, 0.05, (10, LAT, LON))).astype("f4").round(2)
    return steps


def with_batchfs(source, target, options):
    began = time.perf_counter()
    measured = measure(PROGRAM, "rechunk", source, *options, "-o", target, timeout=3600)
    assert measured.status == 0, measured.error
    return time.perf_counter() - began, measured.peak, measured.seconds


def copy_regions(source, target, shape, region, threads):
    def one(box):
        target[box] = source[box]

    starts = itertools.product(*(range(0, n, step) for n, step in zip(shape, region)))
    boxes = [tuple(slice(s, s + step) for s, step in zip(start, region)) for start in starts]
    dask.compute([dask.delayed(one)(box) for box in boxes], scheduler="threads",
                 num_workers=threads)


def with_dask(source, target, plan, codec, threads):
    began, cpu = time.perf_counter(), time.process_time()
    array = zarr.open_group(source, mode="r")["t2m"]

    def new(path, chunks):
        return zarr.open_group(path, mode="w").create_array(
            "t2m", shape=array.shape, chunks=tuple(chunks), dtype=array.dtype,
            compressors=CODECS[codec], fill_value=array.fill_value)

    copy = new(target, plan["chunks"])
    if plan["passes"] == 1:
        copy_regions(array, copy, array.shape, plan["read_region"], threads)
    else:
        between = new(f"{target}-between", map(min, plan["read_region"], plan["write_region"]))
        copy_regions(array, between, array.shape, plan["read_region"], threads)
        copy_regions(between, copy, array.shape, plan["write_region"], threads)
        shutil.rmtree(f"{target}-between")
    return time.perf_counter() - began, time.process_time() - cpu


def assert_equal(source, target):
    a, b = zarr.open_group(source, mode="r")["t2m"], zarr.open_group(target, mode="r")["t2m"]
    step = max(a.chunks[0], 200)
    for start in range(0, a.shape[0], step):
        if b.chunks[0] <= 200:
            assert np.array_equal(a[start:start + step], b[start:start + step])
    if b.chunks[0] > 200:  # each chunk of the copy is decoded once
        for row in range(0, LAT, b.chunks[1]):
            assert np.array_equal(a[:, row:row + b.chunks[1]], b[:, row:row + b.chunks[1]])


def plan_of(source, options, folder):
    said = subprocess.run([PROGRAM, "rechunk", source, *options, "-o", folder / "o", "--dry-run",
                           "--json"], check=True, capture_output=True).stdout
    return json.loads(said)["plan"]["arrays"][0]


def bytes_of(size):
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]


def compare(folder, source, layout, codec, memory, rounds, threads):
    """One row of the table, for --json, and the options."""
    title, lengths = layout
    options = ["--chunks", ",".join(f"{d}={n}" for d, n in zip(DIMS, lengths)), "--codec", codec,
               "--memory", memory]
    plan = plan_of(source, options, folder)
    decoded = int(np.prod(plan["shape"])) * 4
    ours, theirs = [], []
    for number in range(rounds):
        for times, run, target in ((ours, lambda to: with_batchfs(source, to, options),
                                    folder / "ours"),
                                   (theirs, lambda to: with_dask(source, to, plan, codec, threads),
                                    folder / "theirs")):
            times.append(run(target))
            if number == 0:
                assert_equal(source, target)
            shutil.rmtree(target)
    us, them = statistics.median(t for t, *_ in ours), statistics.median(t for t, _ in theirs)
    peak = max(p for _, p, _ in ours)
    print(f"{title}, {codec}: batchfs {us:.2f} s ({decoded / us / 1e9:.2f} GB/s, "
          f"{max(c for *_, c in ours):.1f} s of CPU, peak {peak / 2**20:.0f} MiB of {memory}), "
          f"dask with zarr-python {them:.2f} s ({max(c for _, c in theirs):.1f} s of "
          f"CPU): {them / us:.2f} times as fast; passes {plan['passes']}, regions of "
          f"{plan['read_region']}", flush=True)
    assert peak <= bytes_of(memory), "more memory than the limit"
    return {"layout": title, "codec": codec, "passes": plan["passes"], "batchfs_seconds": us,
            "dask_seconds": them, "peak": peak}, options


def contents(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.rglob("*") if p.is_file()}


def kill_often(folder, source, options, kills):
    """A run records what is done every five seconds: on average it lives a little longer than
    that."""
    whole, out = folder / "whole", folder / "killed"
    took = with_batchfs(source, whole, options)[0]
    wanted = contents(whole)
    shutil.rmtree(whole)
    draw, killed, copies = random.Random(3), 0, 0
    longest = min(took, 14)
    while killed < kills:
        process = subprocess.Popen([PROGRAM, "rechunk", source, *options, "-o", out],
                                   stdout=subprocess.DEVNULL)
        try:
            assert process.wait(draw.uniform(0, longest)) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            continue
        copies += 1
        assert contents(out) == wanted, "a copy that was killed has other bytes"
        shutil.rmtree(out)
    with_batchfs(source, out, options)
    assert contents(out) == wanted, "a copy that was killed has other bytes"
    shutil.rmtree(out)
    print(f"{killed} of {killed} kills resumed to the same bytes, in {copies + 1} copies",
          flush=True)
    return killed


def measured_rows(folder, gigabytes, memory, rounds, kills, codecs=tuple(CODECS)):
    rows, threads = [], len(os.sched_getaffinity(0))
    for codec in codecs:
        source = folder / "source.zarr"
        steps = make(source, gigabytes, codec)
        stored = sum(p.stat().st_size for p in source.rglob("*") if p.is_file())
        print(f"{steps * LAT * LON * 4 / 1e9:.2f} GB decoded, {stored / 1e9:.2f} GB stored, "
              f"{codec}, {threads} threads", flush=True)
        for layout in LAYOUTS:
            row, options = compare(folder, source, layout, codec, memory, rounds, threads)
            rows.append(row)
        if kills and codec == codecs[-1]:  # of the layout with two passes
            rows.append({"kills": kill_often(folder, source, options, kills)})
        shutil.rmtree(source)
    return rows


def run(arguments):
    """The workload of bench/run."""
    gigabytes = 10 * arguments.scale
    arguments.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.data) as name:
        rows = measured_rows(pathlib.Path(name), gigabytes, "1G" if gigabytes > 2 else "192M",
                             arguments.rounds, max(5, round(100 * min(1, arguments.scale))))
    return rows, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--folder", help="where the stores go (default: a new folder in /tmp)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        measured_rows(pathlib.Path(name), arguments.gigabytes, arguments.memory, arguments.rounds,
                      arguments.kills, tuple(arguments.codecs.split(",")))


if __name__ == "__main__":
    main()
