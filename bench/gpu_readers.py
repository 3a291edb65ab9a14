#!/usr/bin/env python3
"""Several reading processes on one GPU, or on several, from the page cache and from the disk.

    bench/gpu_readers.py FOLDER [--codings zstd-3,blosc-lz4,raw] [--readers 1,2,4] [--gpus 1]
                         [--mode client,server] [--seconds 5]

FOLDER is bench/gpu_batches' own, with its stores in it. The readers are ranks of one mount, reader
i on GPU i modulo `--gpus`; each takes torch tensors of its batches, pairs of steps with all
variables in a global shuffle, and adds up x, so that the GPU reads it. Printed are GB/s delivered
to all readers, the processor seconds in a second that the daemon takes meanwhile, and the longest
time to a first batch. `--cold` takes the store out of the page cache before each run, and lets a
reader go through its batches once: what is larger than the page cache is read as fast as that.
Beside them TensorStore in as many processes, each with pinned memory of its own and the number of
samples, in an order of its own; a step that is x of one sample and y of another is read for both.

Checked after measuring: the first batch of each reader has the bytes of the mount's files. Needs
PyTorch with CUDA, TensorStore for the peer (left out where it is missing) and the Python package.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ddp import processor_seconds, view_of
from harness import mount
from harness.table import text

BATCH = 4
HEADER = ["readers", "GB/s", "daemon's cores", "first, ms"]


def read(pipe, place, gpu, rank, world, mode, seconds, limit):
    """A reader of batchfs: tells its first batch's milliseconds, waits for the others, and tells
    what it read."""
    import numpy as np
    import torch

    import batchfs

    torch.cuda.set_device(gpu)
    torch.zeros(1, device="cuda")
    pipe.recv()
    begin = time.perf_counter()
    data = batchfs.open(place, device=f"cuda:{gpu}", rank=rank, world=world, mode=mode)
    batches = (batch for _ in range(1000) for batch in data)
    batch = next(batches)
    tensors = batch.torch()
    torch.cuda.synchronize()
    first_ms = (time.perf_counter() - begin) * 1e3
    folder = pathlib.Path(place) / f"views/pairs/epoch-{batch.epoch:04d}/batch-{batch.number:06d}"
    got = {name: tensors[name].cpu().view(torch.int32).numpy() for name in ("x", "y")}
    size = sum(tensor.nbytes for tensor in tensors.values())
    tensors = batch = None
    count, passed = consume(pipe, (one.torch()["x"] for one in batches), seconds, limit)
    right = all(np.array_equal(got[name], np.load(folder / f"{name}.npy").view("i4"))
                for name in got)
    pipe.send({"mode": data.mode, "first_ms": first_ms, "bytes": count * size, "seconds": passed,
               "right": right})


def read_by_tensorstore(pipe, store, gpu, rows, seconds, limit):
    """The peer: `rows` are the numbers of the samples of this rank's batches."""
    import numpy as np
    import tensorstore as ts
    import torch

    torch.cuda.set_device(gpu)
    torch.zeros(1, device="cuda")
    names = sorted(path.name for path in pathlib.Path(store).iterdir()
                   if (path / ".zarray").exists())
    context = ts.Context({"cache_pool": {"total_bytes_limit": 0}})
    ahead = 3
    pipe.recv()
    begin = time.perf_counter()
    arrays = [ts.open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{store}/{name}/"}},
                      context=context).result() for name in names]
    shape = (2, BATCH, len(names), *arrays[0].shape[1:])
    pinned = [torch.empty(shape, pin_memory=True) for _ in range(ahead)]
    copied = [torch.cuda.Event() for _ in range(ahead)]

    def start(i):
        copied[i % ahead].synchronize()
        memory = pinned[i % ahead].numpy()
        return [ts.array(memory[offset, sample, v]).write(array[int(row) + offset])
                for v, array in enumerate(arrays) for offset in (0, 1)
                for sample, row in enumerate(rows[i % len(rows)])]

    def batches():
        reads = [start(i) for i in range(ahead - 1)]
        for i in range(1_000_000):
            for one in reads[i]:
                one.result()
            reads[i] = None
            pair = pinned[i % ahead].to("cuda", non_blocking=True)
            copied[i % ahead].record()
            reads.append(start(i + ahead - 1))
            yield pair[0]

    following = batches()
    first = next(following)
    torch.cuda.synchronize()
    first_ms = (time.perf_counter() - begin) * 1e3
    got, size = first.cpu().numpy(), 2 * first.nbytes
    count, passed = consume(pipe, following, seconds, limit)
    right = all(np.array_equal(got[s, v], arrays[v][int(row)].read().result())
                for v in range(len(names)) for s, row in enumerate(rows[0]))
    pipe.send({"mode": "tensorstore", "first_ms": first_ms, "bytes": count * size,
               "seconds": passed, "right": right})


def consume(pipe, tensors, seconds, limit):
    """Batches read until the time is over, or `limit`, and the seconds that they took."""
    import torch

    pipe.send("ready")
    pipe.recv()
    begin, count = time.perf_counter(), 0
    for x in tensors:
        x.sum()
        count += 1
        if count == limit or (limit is None and time.perf_counter() - begin > seconds):
            break
    torch.cuda.synchronize()
    passed = time.perf_counter() - begin
    pipe.send("read")
    pipe.recv()  # the measurement has ended
    return count, passed


def forget(store):
    """Takes the files of a store out of the page cache."""
    os.sync()
    for path in store.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def together(target, arguments_of, world, daemon=None):
    """Reports of the readers, started together and measured together after the first batch of each;
    and the processor seconds of the daemon meanwhile."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(world):
        here, there = context.Pipe()
        processes.append(context.Process(target=target, args=(there, *arguments_of(rank)),
                                         daemon=True))
        processes[-1].start()
        there.close()
        pipes.append(here)
    looks = []
    for told in (None, "ready", None, "read", None):
        for pipe in pipes:
            pipe.recv() if told else pipe.send("go")
        if told and daemon:
            looks.append(processor_seconds(daemon))
    found = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    return found, looks[1] - looks[0] if daemon else None


def row_of(world, found, daemon_cpu):
    name = f"{world} {found[0]['mode']}"
    if not all(one["right"] for one in found):
        raise SystemExit(f"{name}: wrong bytes")
    seconds = max(one["seconds"] for one in found)
    row = {"name": name, "GB_s": sum(one["bytes"] for one in found) / seconds / 1e9,
           "first_ms": max(one["first_ms"] for one in found),
           "daemon_cores": daemon_cpu / seconds if daemon_cpu is not None else None}
    print(json.dumps(row), flush=True)
    return row


def measured(arguments, store, view, world, mode):
    report = {}
    if arguments.cold:
        forget(store)
    with mount.Mount(report, str(store), [view]) as path:
        limit = arguments.limit if arguments.cold else None
        daemon = json.loads((path / ".batchfs/status.json").read_text())["pid"]
        arguments_of = lambda rank: (str(path), rank % arguments.gpus, rank, world, mode,
                                     arguments.seconds, limit)
        found = together(read, arguments_of, world, daemon)
    return row_of(world, *found)


def peer(arguments, store, samples, world):
    if arguments.cold:
        forget(store)
    limit = arguments.limit if arguments.cold else None
    arguments_of = lambda rank: (str(store), rank % arguments.gpus, samples[rank::world],
                                 arguments.seconds, limit)
    return row_of(world, *together(read_by_tensorstore, arguments_of, world))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--codings", default="zstd-3,blosc-lz4,raw")
    parser.add_argument("--readers", default="1,2,4")
    parser.add_argument("--gpus", type=int, default=1, help="over which the readers are spread")
    parser.add_argument("--mode", default="client,server")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--cold", action="store_true", help="from the disk")
    parser.add_argument("--limit", type=int, default=30,
                        help="batches of each reader from the disk")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    import numpy as np

    results = {}
    for coding in arguments.codings.split(","):
        store = (arguments.folder / coding).resolve()
        view = view_of(store, BATCH)
        steps = json.loads((next(store.glob("*/.zarray"))).read_text())["shape"][0]
        samples = np.random.default_rng(0).permutation(
            steps - 1)[: (steps - 1) // BATCH * BATCH].reshape(-1, BATCH)
        rows = []
        for world in map(int, arguments.readers.split(",")):
            rows += [measured(arguments, store, view, world, mode)
                     for mode in arguments.mode.split(",")]
            try:
                import tensorstore  # noqa: F401
            except ImportError:
                continue
            rows.append(peer(arguments, store, samples, world))
        title = f"{coding}, {steps} steps, from the {'disk' if arguments.cold else 'page cache'}"
        results[title] = rows
        cells = [[row["name"], row["GB_s"], row["daemon_cores"], row["first_ms"]] for row in rows]
        print(f"\n{title}\n{text(cells, HEADER)}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
