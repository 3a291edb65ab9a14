#!/usr/bin/env python3
"""batchfs rechunk beside dask with zarr-python, on the same store with the same plan.

    build/venv/bin/python bench/rechunk.py [--gigabytes 4] [--rounds 3] [--folder DIR]

The plan is rechunker's: regions of whole chunks of both sides, each copied by one task. Here it is the one that `batchfs
rechunk --dry-run` prints; dask's threads copy `target[region] = source[region]` with zarr-python, as rechunker's
dask executor does. Both read from and write to the page cache. Values of both copies are compared with the source.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import dask
import numpy as np
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAT, LON = 361, 720


def make(path, gigabytes):
    """A field of smooth noise in float32, ten steps to a chunk, as archives have it; zstd, as zarr-python writes it."""
    steps = max(100, round(gigabytes * 1e9 / (LAT * LON * 4)) // 100 * 100)
    array = zarr.open_group(path, mode="w").create_array(
        "t2m", shape=(steps, LAT, LON), chunks=(10, LAT, LON), dtype="f4", dimension_names=("time", "latitude", "longitude"))
    rng = np.random.default_rng(0)
    base = 250 + 40 * np.sin(np.linspace(0, np.pi, LAT))[:, None] * np.ones(LON, "f4")
    for start in range(0, steps, 10):
        noise = rng.normal(0, 3, (10, LAT // 8 + 1, LON // 8)).repeat(8, 1).repeat(8, 2)[:, :LAT, :LON]
        array[start:start + 10] = (base + noise + rng.normal(0, 0.05, (10, LAT, LON))).astype("f4").round(2)
    return steps



def with_batchfs(program, source, target, options):
    began = time.perf_counter()
    pid = subprocess.Popen([program, "rechunk", source, *options, "-o", target], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(pid.pid, 0)
    assert status == 0
    return time.perf_counter() - began, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def with_dask(source, target, plan, chunks, threads):
    began, cpu = time.perf_counter(), time.process_time()
    array = zarr.open_group(source, mode="r")["t2m"]
    copy = zarr.open_group(target, mode="w").create_array("t2m", shape=array.shape, chunks=chunks, dtype=array.dtype,
                                                          compressors=zarr.codecs.ZstdCodec(level=3), fill_value=array.fill_value)

    def one(region):
        copy[region] = array[region]

    starts = itertools.product(*(range(0, n, step) for n, step in zip(array.shape, plan["read_region"])))
    regions = [tuple(slice(s, s + step) for s, step in zip(start, plan["read_region"])) for start in starts]
    dask.compute([dask.delayed(one)(region) for region in regions], scheduler="threads", num_workers=threads)
    return time.perf_counter() - began, time.process_time() - cpu


def assert_equal(source, target):
    a, b = zarr.open_group(source, mode="r")["t2m"], zarr.open_group(target, mode="r")["t2m"]
    for start in range(0, a.shape[0], 200):
        assert np.array_equal(a[start:start + 200], b[start:start + 200])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--folder", help="where the stores go (default: a new folder in /tmp)")
    arguments = parser.parse_args()
    program = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        source = folder / "source.zarr"
        steps = make(source, arguments.gigabytes)
        stored = sum(p.stat().st_size for p in source.rglob("*") if p.is_file())
        decoded = steps * LAT * LON * 4
        print(f"{decoded / 1e9:.2f} GB decoded, {stored / 1e9:.2f} GB stored, {threads} threads, --memory {arguments.memory}")
        for title, lengths in (("a step to a chunk", (1, LAT, LON)), ("columns of 100 steps", (100, 91, 90))):
            dims = ",".join(f"{d}={n}" for d, n in zip(("time", "latitude", "longitude"), lengths))
            options = ["--chunks", dims, "--codec", "zstd:3", "--memory", arguments.memory]
            plan = json.loads(subprocess.run([program, "rechunk", source, *options, "-o", folder / "o", "--dry-run", "--json"],
                                             check=True, capture_output=True).stdout)["plan"]["arrays"][0]
            ours, theirs = [], []
            for number in range(arguments.rounds):
                target = folder / "ours"
                ours.append(with_batchfs(program, source, target, options))
                if number == 0:
                    assert_equal(source, target)
                shutil.rmtree(target)
                target = folder / "theirs"
                theirs.append(with_dask(source, target, plan, lengths, threads))
                if number == 0:
                    assert_equal(source, target)
                shutil.rmtree(target)
            us, them = statistics.median(t for t, *_ in ours), statistics.median(t for t, _ in theirs)
            print(f"{title}: batchfs {us:.2f} s ({decoded / us / 1e9:.2f} GB/s, {max(c for *_, c in ours):.1f} s of CPU, peak "
                  f"{max(m for _, m, _ in ours):.0f} MB), dask with zarr-python {them:.2f} s ({max(c for _, c in theirs):.1f} s of CPU): "
                  f"{them / us:.1f} times as fast; {plan['passes']} pass, regions of {plan['read_region']}")


if __name__ == "__main__":
    main()
