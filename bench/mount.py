"""mount: what the file system itself costs, beside tmpfs: reading a batch that is ready, by one
reader, mapped and by read(); with passthrough and without; listing a directory of a million
entries; stat of files that nobody has asked for before."""

import json
import mmap
import os
import pathlib
import random
import shutil
import statistics
import tempfile
import time

import numpy as np

import local
from harness import data
from harness.mount import Mount
from harness.table import text

STEPS_A_BATCH, BLOCK = 128, 4 << 20
ENTRIES, STATS = 1_000_000, 20_000
SHARED_MEMORY = "/dev/shm"
VIEW = {"name": "v", "window": {"time": 1}, "variables": ["t2m"]}


def through_map(fd, size, buffer):
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as memory:
        values = np.frombuffer(memory, "u1")
        for begin in range(0, size, BLOCK):
            part = values[begin:begin + BLOCK]
            np.copyto(buffer[:part.size], part)
        del values, part


def through_read(fd, size, buffer):
    for begin in range(0, size, BLOCK):
        os.preadv(fd, [memoryview(buffer)[:min(BLOCK, size - begin)]], begin)


WAYS = {"mapped": through_map, "read": through_read}


def rate(path, way, buffer, times):
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        begin = time.monotonic()
        for _ in range(times):
            WAYS[way](fd, size, buffer)
        return times * size / (time.monotonic() - begin)
    finally:
        os.close(fd)


def reading(arguments):
    store, steps = local.store_of(arguments, "raw")
    data.warm(store)
    view = {**VIEW, "batch": {"size": min(STEPS_A_BATCH, steps)}}
    file = "views/v/epoch-0000/batch-000000.npy"
    buffer = np.ones(BLOCK, "u1")
    with (Mount({}, store, [view]) as passing,
          Mount({}, store, [view], ["--no-passthrough"]) as direct,
          tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder):
        copy = pathlib.Path(folder) / "batch.npy"
        shutil.copyfile(passing / file, copy)
        if copy.read_bytes() != (direct / file).read_bytes():
            print("  the mounts' bytes differ")
            return {}, False
        ways = [("tmpfs, mapped", copy, "mapped"),
                ("passthrough, mapped", passing / file, "mapped"),
                ("tmpfs, read", copy, "read"), ("passthrough, read", passing / file, "read"),
                ("direct, read", direct / file, "read")]
        # they stay ready
        holding = [os.open(path, os.O_RDONLY) for path in (passing / file, direct / file)]
        rates = {name: [] for name, _, _ in ways}
        for number in range(arguments.rounds + 1):
            for name, path, way in ways[number % len(ways):] + ways[:number % len(ways)]:
                rates[name].append(rate(path, way, buffer, 3))
        for fd in holding:
            os.close(fd)
    # the first meets memory that is new
    figures = {name: statistics.median(values[1:]) / 1e9 for name, values in rates.items()}
    rows = [[name, value, value / figures["tmpfs, " + name.split(", ")[1]]]
            for name, value in figures.items()]
    print(f"\nOne reader, a batch of {STEPS_A_BATCH * local.CHUNK_BYTES / 1e6:.0f} MB that is "
          "ready, copied into memory that is used again; GB/s")
    print(text(rows, ["", "GB/s", "/ tmpfs"]))
    return figures, True


def processor_seconds(pid):
    return sum(int(task.joinpath("schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def timed_list(folder):
    begin = time.monotonic()
    count = sum(1 for _ in os.scandir(folder))
    return time.monotonic() - begin, count


def timed_stats(folder, names):
    begin = time.monotonic()
    for name in names:
        os.stat(f"{folder}/{name}")
    return (time.monotonic() - begin) / len(names) * 1e6


def listing(arguments):
    entries = max(2000, int(ENTRIES * arguments.scale))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(
            dir=SHARED_MEMORY) as shared:
        # No chunk exists: only names and sizes are read. A batch is a .npy and a .json.
        array = pathlib.Path(folder) / "long.zarr" / "t2m"
        array.mkdir(parents=True)
        (array.parent / "zarr.json").write_text(
            '{"zarr_format": 3, "node_type": "group", "attributes": {}}')
        (array / "zarr.json").write_text(json.dumps(
            {"zarr_format": 3, "node_type": "array", "shape": [entries // 2],
             "data_type": "float32", "attributes": {},
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [entries // 2]}},
             "fill_value": 0, "chunk_key_encoding": {"name": "default"},
             "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
             "dimension_names": ["time"]}))
        for number in range(entries):
            open(f"{shared}/batch-{number:06d}.npy", "wb").close()
        seconds, stats, daemon = {"tmpfs": [], "batchfs": []}, {"tmpfs": [], "batchfs": []}, []
        for number in range(arguments.rounds):
            names = [f"batch-{n:06d}.npy"
                     for n in random.Random(number).sample(range(entries // 2),
                                                           min(STATS, entries // 2))]
            with Mount({}, array.parent, [VIEW]) as path:  # a new one: the kernel knows no name
                epoch = path / "views/v/epoch-0000"
                os.stat(epoch)
                pid = json.loads((path / ".batchfs/status.json").read_text())["pid"]
                before = processor_seconds(pid)
                stats["batchfs"].append(timed_stats(epoch, names))
                daemon.append((processor_seconds(pid) - before) / len(names) * 1e6)
                taken, count = timed_list(epoch)
            if count != entries:
                print(f"  {count} entries instead of {entries}")
                return {}, False
            seconds["batchfs"].append(taken)
            stats["tmpfs"].append(timed_stats(shared, names))
            seconds["tmpfs"].append(timed_list(shared)[0])
    figures = {name: {"list_seconds": statistics.median(seconds[name]),
                      "stat_us": statistics.median(stats[name])} for name in seconds}
    figures["batchfs"]["stat_daemon_us"] = statistics.median(daemon)
    print(f"\nA directory of {entries} entries; stat of files that nobody has asked for before")
    print(text([[name, f["list_seconds"], f["stat_us"], f.get("stat_daemon_us")]
                for name, f in figures.items()],
               ["", "listed, s", "stat, us", "of it in the daemon"]))
    return figures, True


def run(arguments):
    results, good = {}, True
    for part, measured in {"reading": reading, "listing": listing}.items():
        if arguments.only and arguments.only not in part:
            continue
        results[part], ok = measured(arguments)
        good = good and ok
    return results, good
