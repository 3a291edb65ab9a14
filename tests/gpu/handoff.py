#!/usr/bin/env python3
"""The hand-off of batches in GPU memory, from end to end, on a machine with a GPU, FUSE, torch and cupy.

    handoff.py PROGRAM FOLDER [--only PART]... [CODING]...      FOLDER holds stores of bench/gpu_batches, CODING names of theirs

Mounts each store, opens it in other processes with device="cuda:0", compares batches with the mount's files (part bytes),
kills readers and daemons (killed), does without a GPU or its memory (fallbacks), reads on two GPUs where there are two (two),
measures (rates; forcings: channels made on the fly), and prints what it found. The exit code is 1 when anything was wrong.
"""

import argparse
import array
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GPU_MEMORY = "12000M"
AUTO = "client"  # what auto chooses
wrong = []


def check(condition, what):
    if not condition:
        wrong.append(what)
    print("ok   " if condition else "WRONG", what, flush=True)


def pairs_view(store, size, epochs):
    """All variables stacked, and the same a step later."""
    variables = sorted(path.name for path in store.iterdir() if path.is_dir())
    dims = ["channel", "latitude", "longitude"]
    tensor = {"variables": variables, "stack": "channel", "dims": dims}
    return {"name": "pairs", "window": {"time": 1}, "batch": {"size": size, "remainder": "drop"}, "epochs": epochs,
            "order": {"shuffle": "none"}, "tensors": {"x": tensor, "y": {**tensor, "offsets": {"time": [1]}}}}


FORCINGS = [{"make": "cos_zenith"}, {"make": "cos_latitude"}, {"make": "sin_julian_day"}, {"make": "cos_julian_day"}]


def forced_view(store, size, epochs):
    """The same with channels of times and places, for which the store gets coordinates."""
    variables = sorted(path.name for path in store.iterdir() if path.is_dir() and len(shape_of(path)) == 3)
    steps, *grid = shape_of(store / variables[0])
    coordinates = {"time": ("hours since 2001-01-01", [6 * i for i in range(steps)])}
    for dim, unit, count, span in zip(("latitude", "longitude"), ("degrees_north", "degrees_east"), grid, (-180, 360)):
        coordinates[dim] = unit, [(90 if span < 0 else 0) + span * i / count for i in range(count)]
    for name, (units, values) in coordinates.items():
        (store / name).mkdir(exist_ok=True)
        (store / name / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": [name], "units": units}))
        (store / name / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [len(values)], "chunks": [len(values)], "dtype": "<f8", "compressor": None, "filters": None,
            "fill_value": None, "order": "C"}))
        (store / name / "0").write_bytes(array.array("d", values).tobytes())
    view = pairs_view(store, size, epochs)
    for tensor in view["tensors"].values():
        tensor["variables"] = variables
    view["tensors"]["x"]["variables"] = variables + FORCINGS
    return view


def shape_of(path):
    return json.loads((path / ".zarray").read_text())["shape"]


class Mount:
    """A daemon with these views, or one named "pairs"."""

    def __init__(self, program, store, *options, size=16, epochs=1000, views=None, memory="24G"):
        views = views or [pairs_view(store, size, epochs)]
        self.directory = tempfile.mkdtemp(prefix="batchfs-gpu-")
        files = []
        for view in views:
            files.append(f"{self.directory}.{view['name']}.json")
            pathlib.Path(files[-1]).write_text(json.dumps(view))
        self.log = open(self.directory + ".log", "w+")
        self.process = subprocess.Popen([program, "mount", store, self.directory, *(a for file in files for a in ("--view", file)),
                                         "--foreground", "--memory", memory, *options], stderr=self.log)
        for _ in range(200):
            if os.path.exists(f"{self.directory}/views/{views[-1]['name']}/schema.json"):
                return
            time.sleep(0.05)
            if self.process.poll() is not None:
                break
        self.log.seek(0)
        raise SystemExit("mount failed: " + self.log.read())

    def status(self):
        return json.loads(pathlib.Path(self.directory + "/.batchfs/status.json").read_text())

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                check(False, "the daemon ends within 20 s")
                self.process.kill()
        subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL)


def reader(role, place, *arguments, **options):
    return subprocess.Popen([sys.executable, __file__, "--" + role, place, *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, **options)


def answer(process, timeout=120):
    """The last line that a reader says, as JSON."""
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"error": "it hangs"}
    lines = out.strip().splitlines()
    return json.loads(lines[-1]) if process.returncode == 0 and lines else {"error": f"exit {process.returncode}: {out[-300:]}"}


# What readers do, in processes of their own.


def expected(place, number, name, epoch=0):
    import numpy as np

    return np.load(f"{place}/views/pairs/epoch-{epoch:04d}/batch-{number:06d}/{name}.npy")


def role_compare(place, mode, count, gpu="0"):
    import cupy
    import numpy as np
    import torch

    import batchfs

    gpu = int(gpu)
    torch.cuda.set_device(gpu)
    cupy.cuda.Device(gpu).use()
    data = batchfs.open(place, device=f"cuda:{gpu}", mode=mode)
    bad = []

    def same(batch):
        for name, tensor in batch.items():
            right = expected(place, batch.number, name, batch.epoch)
            if tensor.__dlpack_device__() != (2, gpu):
                bad.append([batch.number, name, "not on the GPU, but on", tensor.__dlpack_device__()])
            if not torch.equal(tensor.torch().view(torch.int32), torch.from_numpy(right).cuda().view(torch.int32)):
                bad.append([batch.number, name, "torch"])
            if not bool((tensor.cupy().view("u4") == cupy.asarray(right).view("u4")).all()):
                bad.append([batch.number, name, "cupy"])
            if not bool((cupy.asarray(tensor).view("u4") == cupy.asarray(right).view("u4")).all()):
                bad.append([batch.number, name, "cupy by its interface"])
            if batch.number == 0 and not np.array_equal(tensor.numpy().view("u4"), right.view("u4")):
                bad.append([batch.number, name, "numpy"])

    for batch in data:
        same(batch)
        if batch.number + 1 >= int(count):
            break
    same(data.batch(3))
    held = []
    for batch in data:  # more than there are slots
        held.append(batch)
        if len(held) == 8:
            break
    for batch in held:
        same(batch)
    del batch, held
    # Work that is still queued when a batch goes.
    sums, rights = [], []
    stream = torch.cuda.Stream()
    for batch in data:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            sums.append(batch["x"].torch().view(torch.int32).sum(dtype=torch.int64))
        rights.append(int(expected(place, batch.number, "x").view("i4").sum(dtype="i8")))
        del batch
        if len(sums) == 12:
            break
    torch.cuda.synchronize()
    if [int(s) for s in sums] != rights:
        bad.append("a slot was used again too early")
    print(json.dumps({"bad": bad, "mode": data.mode, "why_copied": data.why_copied}))


def role_hold(place, mode, count):
    """Holds batches until it is killed."""
    import torch

    import batchfs

    held = []
    for batch in batchfs.open(place, device="cuda:0", mode=mode):
        held.append(batch["x"].torch())
        if len(held) == int(count):
            break
    torch.cuda.synchronize()
    print("holding", flush=True)
    time.sleep(1000)


def role_orphan(place, mode):
    """Reads until the daemon is gone."""
    import torch

    import batchfs

    data = batchfs.open(place, device="cuda:0", mode=mode)
    last, total = None, None
    try:
        for n, batch in enumerate(batch for _ in range(1000) for batch in data):
            if n == 4:
                last, total = batch["x"].torch(), int(batch["x"].torch().view(torch.int32).sum(dtype=torch.int64))
                print("reading", flush=True)
        result = "the epochs ended"
    except batchfs.Error as error:
        result = str(error)
    again = int(last.view(torch.int32).sum(dtype=torch.int64))
    print(json.dumps({"result": result, "valid": again == total}))


def open_fed(place, mode, **options):
    """With as much memory for decoding, wherever it is."""
    import batchfs

    return batchfs.open(place, device="cuda:0", mode=mode, device_memory=int(GPU_MEMORY[:-1]) << 20, **options)


def role_measure(place, mode, seconds):
    import torch

    torch.zeros(1, device="cuda")
    begin = time.perf_counter()
    data = open_fed(place, mode)
    result = {"mode": data.mode}
    sizes, started = 0, None
    count = 0
    while started is None or time.perf_counter() - started < float(seconds):
        for batch in data:
            if count == 0:
                result["first_ms"] = (time.perf_counter() - begin) * 1e3
            if count == 8:
                started = time.perf_counter()
                print("begin", flush=True)
            if count >= 8:
                sizes += sum(tensor.nbytes for tensor in batch.values())
            tensors = batch.torch()
            del tensors, batch
            count += 1
            if started is not None and time.perf_counter() - started >= float(seconds):
                break
    result["seconds"] = time.perf_counter() - started
    print("end", flush=True)
    result["GB/s"] = sizes / result["seconds"] / 1e9
    # A batch that is ready: to a processor that is awake, and to one that has slept; then one that has to be asked for.
    for prefetch, sleeps, key in ((2, False, "ready_us"), (2, True, "ready_after_sleep_us"), (0, True, "asked_us")):
        del data
        data = open_fed(place, mode, prefetch=prefetch)
        iterator, times, previous = iter(data), [], None
        for _ in range(24):
            if sleeps:
                time.sleep(0.08)
            else:
                rested = time.perf_counter() + 0.08
                while time.perf_counter() < rested:
                    pass
            before = time.perf_counter()
            batch = next(iterator)
            given = time.perf_counter()
            x = batch["x"].torch()
            times.append(((given - before) * 1e6, (time.perf_counter() - before) * 1e6))
            previous, batch = batch, None
            del x
        times = sorted(times[4:], key=lambda both: both[1])
        result[key] = [round(us, 1) for us in times[len(times) // 2]]
        del iterator, previous
    print(json.dumps(result))


def role_train(place, mode, batches):
    """A step of matrix products, with and without a batch beside it."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def step():
        for _ in range(40):
            torch.matmul(a, a)

    def timed(body):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(int(batches)):
            body()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / int(batches)

    timed(step)
    alone = timed(step)
    iterator = iter(open_fed(place, mode))
    for _ in range(4):
        next(iterator)

    def fed():
        batch = next(iterator)
        x = batch["x"].torch()
        x[0, 0, 0].sum()
        step()

    both = timed(fed)
    print(json.dumps({"alone_ms": alone * 1e3, "fed_ms": both * 1e3, "share": both / alone - 1}))


def role_pinned(place, pin, batches):
    """A training step that copies batches of host memory to the GPU, which is free to overlap with it."""
    import torch

    from batchfs.torch import BatchDataset, loader

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def step():
        for _ in range(60):
            torch.matmul(a, a)

    def timed(body):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(int(batches)):
            body()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / int(batches)

    timed(step)
    alone = timed(step)
    data = BatchDataset(place, pin=pin == "pin")
    iterator = iter(loader(data))
    copies, bad = torch.cuda.Stream(), 0
    for _ in range(3):
        next(iterator)

    def fed():
        nonlocal bad
        batch = next(iterator)
        bad += batch["x"].is_pinned() != (pin == "pin")
        with torch.cuda.stream(copies):
            x = {name: tensor.to("cuda", non_blocking=True) for name, tensor in batch.items() if torch.is_tensor(tensor)}
        step()  # beside the copy
        torch.cuda.current_stream().wait_stream(copies)
        x["x"][0, 0, 0].sum()

    both = timed(fed)
    batch = next(iterator)
    size = sum(tensor.nbytes for tensor in batch.values() if torch.is_tensor(tensor))
    print(json.dumps({"bad": bad, "MB": size / 1e6, "alone_ms": alone * 1e3, "fed_ms": both * 1e3, "share": both / alone - 1}))


# The tests.


def settled(mount):
    for _ in range(100):
        handoff = mount.status()["handoff"]
        if handoff["leases"] == 0 and handoff["readers"] == 0:
            return True
        time.sleep(0.1)
    return False


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(mount, coding, mode, how, rate=True):
    """A row of the table: the rate and its cores, ready batches, and a training step beside it."""
    said = {}
    if rate:
        process = reader("measure", mount.directory, mode, 2.5)
        process.stdout.readline()
        daemon = mount.status()["pid"]  # what was started is its supervisor
        before = processor_seconds(daemon), processor_seconds(process.pid)
        process.stdout.readline()
        after = processor_seconds(daemon), processor_seconds(process.pid)
        said = answer(process)
        check("GB/s" in said and said["mode"] == mode, f"{coding}: measured, mode {mode}")
        if "seconds" in said:
            said["cores"] = [round((b - a) / said["seconds"], 1) for a, b in zip(before, after)]
    said.update(answer(reader("train", mount.directory, mode, 20)))
    said.update(coding=coding, mode=mode + how)
    print(json.dumps(said), flush=True)
    return said


def table(rows):
    lines = ["| coding | mode | GB/s | cores: daemon, reader | first batch, ms | ready batch, us: next, with torch | after sleep | "
             "training step alone / fed, ms |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        pair = lambda key: " / ".join(map(str, row[key])) if key in row else ""  # noqa: E731
        step = f"{row['alone_ms']:.1f} / {row['fed_ms']:.1f} ({row['share']:+.0%})" if "share" in row else row.get("error", "")
        lines.append(f"| {row['coding']} | {row['mode']} | {row.get('GB/s', 0):.1f} | {pair('cores')} | {row.get('first_ms', 0):.0f} | "
                     f"{pair('ready_us')} | {pair('ready_after_sleep_us')} | {step} |")
    return "\n".join(lines)


@contextlib.contextmanager
def multi_process_service():
    """MPS for what is started meanwhile; False where it is not to be had."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        yield False
        return
    folder = tempfile.mkdtemp(prefix="batchfs-mps-")
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=folder, CUDA_MPS_LOG_DIRECTORY=folder)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
    try:
        yield True
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False)
        del os.environ["CUDA_MPS_PIPE_DIRECTORY"], os.environ["CUDA_MPS_LOG_DIRECTORY"]


def part_bytes(program, folder, codings):
    for coding in codings:
        mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY, size=4)
        for mode in ("server", "client", "auto", "shm", "files") if coding == codings[0] else ("server", "client"):
            said = answer(reader("compare", mount.directory, mode, 12))
            right = {"auto": AUTO}.get(mode, mode)
            check(said.get("bad") == [] and said.get("mode") == right, f"{coding}: batches on the GPU, mode {mode}: {said}")
        check(settled(mount), f"{coding}: leases come back")
        print("     ", json.dumps(mount.status()["handoff"]), flush=True)
        mount.end()


def part_killed(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, size=4)
    for held, mode in [(held, mode) for mode in ("server", "client") for held in (0, 1, 3, 7)]:
        holder = reader("hold", mount.directory, mode, max(held, 1))
        if held:
            holder.stdout.readline()
        else:
            time.sleep(0.8)
        holder.kill()
        holder.wait()
        check(settled(mount), f"a reader killed with {held} batches gives them back, mode {mode}")
    for mode in ("server", "client"):
        said = answer(reader("compare", mount.directory, mode, 6))
        check(said.get("bad") == [] and said.get("mode") == mode, f"and the next reader reads: {said}")
    mount.end()

    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, "--no-supervisor", size=4)
    orphans = [reader("orphan", mount.directory, mode) for mode in ("server", "client")]
    for orphan in orphans:
        orphan.stdout.readline()
    time.sleep(0.1)
    os.kill(mount.status()["pid"], signal.SIGKILL)
    for orphan in orphans:
        said = answer(orphan, 30)
        check(said.get("valid") is True and "gone" in said.get("result", ""), f"a killed daemon: {said}")
    mount.end()


def part_fallbacks(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu", "off", size=4)
    said = answer(reader("compare", mount.directory, "auto", 4))
    check(said.get("bad") == [] and said.get("mode") == "client", f"a daemon without a GPU: {said}")
    mount.end()
    mount = Mount(program, folder / codings[0], "--gpu-memory", "400M", size=4)
    said = answer(reader("compare", mount.directory, "server", 4))
    check(said.get("bad") == [] and mount.status()["handoff"]["gpus"][0]["from_host"]["no_memory"] > 0, f"too little GPU memory: {said}")
    mount.end()


def part_two(program, folder, codings):
    """Readers of one mount on two GPUs, at the same time."""
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    if gpus < 2:
        return print("      there is one GPU: two are not tested")
    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, size=4)
    for modes in (("server", "server"), ("client", "client"), ("server", "client")):
        readers = [reader("compare", mount.directory, mode, 12, gpu) for gpu, mode in enumerate(modes)]
        for gpu, (mode, process) in enumerate(zip(modes, readers)):
            said = answer(process)
            check(said.get("bad") == [] and said.get("mode") == mode and not said.get("why_copied"),
                  f"two readers, modes {modes}: that on GPU {gpu}: {said}")
    print("     ", json.dumps(mount.status()["handoff"]), flush=True)
    check(settled(mount), "leases of both come back")
    mount.end()


def part_rates(program, folder, codings):
    rows = []
    for coding in codings:
        mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY)
        for mode in ("server", "client"):
            rows.append(measured(mount, coding, mode, ""))
        mount.end()
    with multi_process_service() as runs:
        for coding in codings if runs else ():
            mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY)
            rows.append(measured(mount, coding, "server", " with MPS", rate=False))
            mount.end()
    print(table(rows))


def part_forcings(program, folder, codings):
    """Channels of times and places: right, on the GPU, and what they cost."""
    rows, coding = [], codings[0]
    store = folder / f"forced-{coding}"
    shutil.copytree(folder / coding, store, copy_function=os.link, dirs_exist_ok=True)
    plain, forced = pairs_view(folder / coding, 16, 1000), forced_view(store, 16, 1000)
    mount = Mount(program, store, "--gpu-memory", GPU_MEMORY, views=[forced_view(store, 4, 1000)])
    for mode in ("server", "client"):
        said = answer(reader("compare", mount.directory, mode, 12))
        check(said.get("bad") == [] and said.get("mode") == mode and "not_decoded" not in said.get("why_copied", "not_decoded"),
              f"forcings, mode {mode}: {said}")
    print("     ", json.dumps(mount.status()["handoff"]), flush=True)
    mount.end()
    for view, how in ((plain, ""), (forced, ", forcings"), (plain, ""), (forced, ", forcings")):
        mount = Mount(program, store if view is forced else folder / coding, "--gpu-memory", GPU_MEMORY, views=[view])
        for mode in ("server", "client"):
            rows.append(measured(mount, coding, mode, how))
        mount.end()
    print(table(rows))


def part_pinned(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu", "off", size=8)
    for pin in ("pin", "no", "pin", "no"):
        said = answer(reader("pinned", mount.directory, pin, 20))
        check(said.get("bad") == 0, f"{'page-locked' if pin == 'pin' else 'ordinary'} memory, copied beside a step: {said}")
    mount.end()


PARTS = {"forcings": part_forcings, "pinned": part_pinned, "bytes": part_bytes, "killed": part_killed, "fallbacks": part_fallbacks, "two": part_two, "rates": part_rates}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("codings", nargs="*", default=["zstd-3", "blosc-lz4", "raw"])
    parser.add_argument("--only", action="append", choices=PARTS)
    given = parser.parse_intermixed_args()
    for name in given.only or PARTS:
        PARTS[name](given.program, given.folder, given.codings)
    print("wrong:", wrong or "nothing")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and "role_" + sys.argv[1][2:] in globals():
        globals()["role_" + sys.argv[1][2:]](*sys.argv[2:])
    else:
        sys.exit(main())
