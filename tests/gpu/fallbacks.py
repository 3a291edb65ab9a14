#!/usr/bin/env python3
"""Which batches a GPU makes and which come from the host, and why, on a machine with a GPU, FUSE
and tensorstore.

    fallbacks.py PROGRAM FOLDER [--only PART]... [--no-gpu]

FOLDER is where stores are made, 600 MB.

Part late: views that are opened one after the other, each by a reader that leaves, all get GPU
memory. Part reasons: batches of sharded and other stores are made on the GPU whatever pattern their
reader reads in, and each batch of the host has its reason, in the reader, in the counters and in
the log. Part beside: an idle reader that decodes on the GPU takes no threads from decoding on the
CPU. Prints PASS and FAIL lines and counters; the exit code is 1 when anything failed. With --no-gpu
readers want host memory: that tests this script where there is no GPU.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

import handoff

GPU = "--no-gpu" not in sys.argv
# modes: who decodes
SERVER, CLIENT, HOST = ("server", "client", "shm") if GPU else ("shm", "shm", "shm")
failed = []


def check(condition, what, said=""):
    if not condition:
        failed.append(what)
    print("PASS" if condition else "FAIL", what, "" if condition else f": {said}", flush=True)


def show(what, counters):
    print("    ", what, json.dumps(counters), flush=True)


# Stores.


def codecs(name):
    packed = {"name": "bytes", "configuration": {"endian": "little"}}
    blosc = {"cname": "blosclz" if name == "blosclz" else "lz4", "clevel": 5, "shuffle": "shuffle",
             "typesize": 4, "blocksize": 0}
    return [packed] + {"zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
                       "blosc": [{"name": "blosc", "configuration": blosc}],
                       "blosclz": [{"name": "blosc", "configuration": blosc}],  # the CPU's
                       "gzip": [{"name": "gzip", "configuration": {"level": 1}}],
                       "raw": []}[name]


def make_store(folder, name, coding, steps, chunk, shard=None, variables=("t", "u")):
    """A group of arrays (time, y, x) of smooth fields of float32."""
    import tensorstore as ts

    root = folder / ("fallbacks-" + name)
    if (root / "made").exists():
        return root
    root.mkdir(parents=True, exist_ok=True)
    (root / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group",
                                                "attributes": {}}))
    y, x = np.mgrid[0:256, 0:512].astype("f4")
    noise = np.random.default_rng(7).normal(0, 0.3, (16, 256, 512)).astype("f4")
    for n, variable in enumerate(variables):
        chain = codecs(coding)
        if shard is not None:
            chain = [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": chunk, "codecs": chain, "index_location": "end", "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]
        array = ts.open(
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{root}/{variable}/"},
             "create": True, "delete_existing": True,
             "metadata": {"shape": [steps, 256, 512], "data_type": "float32", "fill_value": 0.0,
                          "dimension_names": ["time", "y", "x"], "codecs": chain, "chunk_grid": {
                              "name": "regular",
                              "configuration": {"chunk_shape": shard or chunk}}}}).result()
        for first in range(0, steps, 16):
            times = np.arange(first, min(first + 16, steps), dtype="f4")[:, None, None]
            field = 280 + 20 * np.sin(y / 9 + times / 5
                                      + n) + 5 * np.cos(x / 7 - times / 3) + noise[:len(times)]
            array[first:first + len(times)] = np.round(field * 64) / 64
    (root / "made").touch()
    return root


def view(name, variables=("t", "u"), size=2):
    return {"name": name, "window": {"time": 1}, "batch": {"size": size, "remainder": "drop"},
            "epochs": 1000, "order": {"shuffle": "none"},
            "tensors": {"x": {"variables": list(variables), "stack": "channel",
                              "dims": ["channel", "y", "x"]}}}


# Readers, in processes of their own.


def opened(place, name, mode, **options):
    import batchfs

    if GPU:
        options["device"] = "cuda:0"
    return batchfs.open(place, name, mode=mode, **options)


def role_read(place, name, mode, pattern, options="{}"):
    """44 batches in some pattern; how many are wrong, and why any came from the host."""
    options = json.loads(options)
    if pattern == "ahead":
        options["prefetch"] = 8
    data = opened(place, name, mode, **options)
    count = bad = 0
    begin = time.perf_counter()

    def same(batch):
        nonlocal count, bad
        count += 1
        right = np.load(
            f"{place}/views/{name}/epoch-{batch.epoch:04d}/batch-{batch.number:06d}.npy")
        bad += not np.array_equal(batch["x"].numpy().view("u4"), right.view("u4"))

    held = collections.deque(maxlen=2 if pattern == "hold" else 1)
    while count < 44:
        if pattern == "number":
            same(data.batch(count % 11))
            continue
        for n, batch in enumerate(data, 1):
            held.append(batch)
            same(batch)
            if count == 44 or (pattern == "again" and n == 11):
                break
        data.set_epoch(0)  # starts again while a batch is held
    print(json.dumps({"batches": count, "bad": bad, "mode": data.mode, "why_copied":
                          data.why_copied, "seconds": round(time.perf_counter() - begin, 2)}))


def role_rate(place, name, seconds):
    """Batches per second in host memory."""
    import batchfs

    data = batchfs.open(place, name, mode=HOST)
    count, begin = 0, None
    while True:
        for batch in data:
            if begin is None:
                begin = time.perf_counter()
            count += 1
            del batch
            if time.perf_counter() - begin > float(seconds):
                print(json.dumps({"rate": round(count / (time.perf_counter() - begin), 2)}))
                return


def role_idle(place, name, *_):
    """Reads a batch, then holds the connection."""
    data = opened(place, name, CLIENT)
    batch = next(iter(data))
    print("idle", data.mode, flush=True)
    time.sleep(600)
    del batch


def reader(role, place, *arguments):
    extra = [] if GPU else ["--no-gpu"]
    return subprocess.Popen([sys.executable, __file__, "--" + role, place, *map(str, arguments),
                             *extra], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


# The parts.


def gpu_counters(mount):
    gpus = mount.status()["handoff"]["gpus"]
    return gpus[0] if gpus else {"batches": 0, "memory_used": 0, "memory_limit": 0, "streams": 0,
                                 "from_host": {}}


def total(counts):
    return sum(counts.values())


def log_of(mount):
    mount.log.seek(0)
    return mount.log.read()


def part_late(program, folder):
    store = make_store(folder, "whole-zstd", "zstd", 96, [1, 256, 512])
    names = [f"v{i}" for i in range(10)]
    mount = handoff.Mount(program, store, "--gpu-memory", "3000M",
                          views=[view(name) for name in names], memory="2G")
    for name in names:
        said = handoff.answer(reader("read", mount.directory, name, SERVER, "plain"))
        check(said.get("bad") == 0 and said.get("why_copied") == "" and said.get("mode") == SERVER,
              f"late: {name}, opened after its predecessors' readers had left, is "
              "made in GPU memory", said)
        now = gpu_counters(mount)
        show(name, {key: now[key]
                    for key in ("streams", "memory_used", "memory_limit", "batches", "from_host")})
    check(total(gpu_counters(mount)["from_host"]) == 0, "late: no batch came from the host",
          gpu_counters(mount))
    # Readers that stay keep their memory: the rest is shared, and a view that gets too little
    # reports it.
    staying = [reader("idle_server", mount.directory, name) for name in names[:3]]
    for process in staying:
        print("     ", process.stdout.readline().strip(), flush=True)
    said = handoff.answer(reader("read", mount.directory, names[5], SERVER, "plain"))
    check(said.get("bad") == 0, "late: a view beside three that are read is right", said)
    show("beside three readers", {"said": said, **gpu_counters(mount)})
    for process in staying:
        process.kill()
        process.wait()
    mount.end()


def role_idle_server(place, name, *_):
    data = opened(place, name, SERVER)
    batch = next(iter(data))
    print("holding a batch, mode", data.mode, data.why_copied, flush=True)
    time.sleep(600)
    del batch


def part_reasons(program, folder):
    stores = {"sharded-zstd": make_store(folder, "sharded-zstd", "zstd", 96, [1, 128, 128],
                                         [8, 256, 512]),
              "sharded-blosc": make_store(folder, "sharded-blosc", "blosc", 96, [1, 256, 512],
                                          [16, 256, 512]),
              "sharded-blosclz": make_store(folder, "sharded-blosclz", "blosclz", 96, [1, 256, 512],
                                            [16, 256, 512]),
              "sharded-raw": make_store(folder, "sharded-raw", "raw", 96, [2, 128, 256],
                                        [8, 256, 512]),
              "sharded-gzip": make_store(folder, "sharded-gzip", "gzip", 96, [1, 256, 512],
                                         [16, 256, 512]),
              "whole-zstd": make_store(folder, "whole-zstd", "zstd", 96, [1, 256, 512])}
    for name, store in stores.items():
        mount = handoff.Mount(program, store, "--gpu-memory", "6000M", views=[view("v")],
                              memory="2G")
        for mode in (CLIENT, SERVER):
            for pattern in ("plain", "hold", "again", "ahead") if name == "sharded-zstd" else (
                    "plain", "again"):
                said = handoff.answer(reader("read", mount.directory, "v", mode, pattern))
                check(said.get("bad") == 0 and said.get("mode") == mode and said.get("why_copied")
                          == "", f"reasons: {name}, mode {mode}, {pattern}: 44 batches "
                                 "right, none of the host", said)
        now = mount.status()["handoff"]
        counters = {"client": now["decoding_readers"]["from_host"],
                    "server": gpu_counters(mount)["from_host"]}
        check(total(counters["client"]) == 0 and total(counters["server"]) == 0,
              f"reasons: {name}: counted so", counters)
        show(name, now)
        if name == "sharded-zstd" and GPU:
            for mode in (CLIENT, SERVER):
                said = handoff.answer(reader("read", mount.directory, "v", mode, "number"))
                check(said.get("bad") == 0 and "44 of 44 batches" in said.get("why_copied", "")
                          and "by_number" in said["why_copied"],
                      f"reasons: batches by number, mode {mode}, say so", said)
            now = mount.status()["handoff"]
            counters = {"client": now["decoding_readers"]["from_host"],
                        "server": gpu_counters(mount)["from_host"]}
            check(all(c.get("by_number") == 44 and total(c) == 44 for c in counters.values()),
                  "reasons: and are counted so", counters)
        print(log_of(mount), flush=True)
        mount.end()

    if not GPU:
        return
    mount = handoff.Mount(program, stores["sharded-zstd"], "--gpu-memory", "20M", views=[view("v")],
                          memory="2G")
    for mode, options in ((SERVER, {}), (CLIENT, {"device_memory": 20 << 20}),
                          (CLIENT, {"device_memory": 1 << 40})):
        before = mount.status()["handoff"]
        said = handoff.answer(reader("read", mount.directory, "v", mode, "plain",
                                     json.dumps(options)))
        check(said.get("bad") == 0 and "no_memory" in said.get("why_copied", ""),
              f"reasons: no memory, mode {mode} {options}, is said", said)
        after = mount.status()["handoff"]
        show("before and after", [before, after, said])
        counts = (after["decoding_readers"]["from_host"] if mode == CLIENT
                  else gpu_counters(mount)["from_host"])
        check(counts.get("no_memory", 0) > 0 and counts.get("failed", 1) == 0,
              f"reasons: no memory, mode {mode} {options}, is counted", counts)
    text = log_of(mount)
    check("no_memory" in text, "reasons: no memory is logged", text)
    print(text, flush=True)
    mount.end()


def part_beside(program, folder):
    store = make_store(folder, "large", "zstd", 768, [1, 256, 512], variables=("t",))
    views = [view("train", ["t"], 16), view("idle", ["t"], 2)]
    mount = handoff.Mount(program, store, views=views, memory="300M")

    def rate():
        return handoff.answer(reader("rate", mount.directory, "train", 4)).get("rate", 0)

    rate()
    alone = [rate(), rate()]
    idle = reader("idle", mount.directory, "idle")
    print("     ", idle.stdout.readline().strip(), flush=True)
    beside = [rate(), rate()]
    idle.kill()
    idle.wait()
    after = rate()
    show("batches/s on the CPU",
         {"alone": alone, "beside an idle reader that decodes on the GPU": beside,
          "alone again": after})
    check(min(alone) > 0 and max(beside) > 0.8 * max(alone),
          "beside: decoding on the CPU keeps its rate", [alone, beside])
    mount.end()


PARTS = {"late": part_late, "reasons": part_reasons, "beside": part_beside}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--no-gpu", action="store_true")
    given = parser.parse_args()
    for name in given.only or PARTS:
        print("==", name, flush=True)
        PARTS[name](given.program, given.folder)
    print("failed:", failed or "nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and "role_" + sys.argv[1][2:] in globals():
        globals()["role_" + sys.argv[1][2:]](*(a for a in sys.argv[2:] if a != "--no-gpu"))
    else:
        sys.exit(main())
