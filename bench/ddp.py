#!/usr/bin/env python3
"""Training on several GPUs of one host by torchrun, DistributedDataParallel in bfloat16, all ranks reading one mount.

    bench/ddp.py STORE [--gpus 1,2,4,8] [--net unet,small] [--mode client,server] [--latency MS] [--steps 60]

STORE has variables of (time, latitude, longitude), as bench/gpu_batches makes them. A batch is pairs of steps with all
variables as channels. Of each number of GPUs, net and mode, the table has the samples per second of all ranks; the same
with one batch that stays in memory, which is the training alone; the share of the step that reading costs; the share of
the time in which a GPU computed nothing; and the bytes that the mount fetched and decoded, and that each rank read from
files, beside the delivered ones. `--latency` reads over HTTP from bench_origin, which answers each request this late.

Checked in every run: all ranks together read the batches of each epoch in order, each once; their samples are those of
`batchfs plan --windows`; the first and the last batch of each rank have the bytes of the mount's files; and a training
that continues from a state in the middle, with another number of ranks where there are several, reads what was left.
Needs PyTorch, numpy and the Python package; without GPUs it runs on processors, to test itself.
"""

import argparse
import contextlib
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

WARM_UP = 5


def view_of(store, size):
    """All fields stacked, and the same a step later, in a global shuffle."""
    variables = sorted(path.name for path in store.iterdir() if len(shape_of(path)) == 3)
    tensor = {"variables": variables, "stack": "channel", "dims": ["channel", "latitude", "longitude"]}
    return {"name": "pairs", "window": {"time": 1}, "batch": {"size": size, "remainder": "drop"}, "epochs": 1000,
            "order": {"shuffle": "global", "seed": 0}, "tensors": {"x": tensor, "y": {**tensor, "offsets": {"time": [1]}}}}


def shape_of(path):
    for name in (".zarray", "zarr.json"):
        if (path / name).exists():
            return json.loads((path / name).read_text()).get("shape", [])
    return []


# A rank, started by torchrun.


def net_of(kind, channels):
    import torch
    from torch import nn

    if kind == "small":
        return nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, channels, 3, padding=1))

    class UNet(nn.Module):
        """Four resolutions, two convolutions at each."""

        def __init__(self, width=64):
            super().__init__()
            widths = [width, 2 * width, 4 * width, 8 * width]
            self.down = nn.ModuleList(self.block(a, b) for a, b in zip([channels, *widths], widths))
            self.up = nn.ModuleList(self.block(a + b, a) for a, b in reversed(list(zip(widths, widths[1:]))))
            self.head = nn.Conv2d(width, channels, 1)

        @staticmethod
        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GELU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.GELU())

        def forward(self, x):
            kept = []
            for number, block in enumerate(self.down):
                x = block(x if number == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            kept.pop()
            for block in self.up:
                fine = kept.pop()
                x = nn.functional.interpolate(x, size=fine.shape[-2:])
                x = block(torch.cat([fine, x], 1))
            return self.head(x)

    return UNet()


class Timer:
    """Seconds of steps, and of the GPU's work in them."""

    def __init__(self, torch, device):
        self.torch, self.device, self.events = torch, device, []

    def synchronize(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        self.torch.distributed.barrier()

    def run(self, count, step):
        """Seconds of all steps, and the share of them in which the GPU computed nothing; None on a processor."""
        self.events.clear()
        self.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            step(self)
        self.synchronize()
        seconds = time.perf_counter() - begin
        busy = sum(first.elapsed_time(last) for first, last in self.events) / 1e3
        return seconds, 1 - busy / seconds if self.events else None

    @contextlib.contextmanager
    def computing(self):
        if self.device.type != "cuda":
            yield
            return
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        yield
        last.record()
        self.events.append((first, last))


def train(place, out, kind, mode, steps):
    """Prints nothing: writes what it found to a file of its rank."""
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import batchfs

    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    begin = time.perf_counter()
    data = batchfs.open(place, device=str(device), rank=rank, world=world, mode=mode if gpu else "auto")
    batches, read = (batch for _ in itertools.count() for batch in data), []

    def following():
        batch = next(batches)
        read.append((batch.epoch, batch.number, batch.index.tolist()))
        return batch

    def same_as_file(batch):
        folder = pathlib.Path(place) / f"views/pairs/epoch-{batch.epoch:04d}/batch-{batch.number:06d}"
        return all(np.array_equal(batch[name].torch().cpu().view(torch.int32).numpy(), np.load(folder / f"{name}.npy").view("i4"))
                   for name in ("x", "y"))

    batch = following()
    first_ms = (time.perf_counter() - begin) * 1e3
    right = [same_as_file(batch)]
    x, y = batch["x"].torch(), batch["y"].torch()
    model = DistributedDataParallel(net_of(kind, x.shape[1]).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def learn(x, y, timer):
        with timer.computing():
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def fed(timer):
        batch = following()
        learn(batch["x"].torch(), batch["y"].torch(), timer)

    timer = Timer(torch, device)
    timer.run(WARM_UP, lambda timer: learn(x, y, timer))
    alone, alone_idle = timer.run(steps, lambda timer: learn(x, y, timer))
    timer.run(WARM_UP, fed)
    before = io_of_this_process()
    both, idle = timer.run(steps, fed)
    files = io_of_this_process() - before
    state = data.state_dict()
    right.append(same_as_file(following()))
    found = {"rank": rank, "mode": data.mode, "first_ms": first_ms, "alone": alone, "alone_idle": alone_idle, "fed": both, "idle": idle,
             "samples": len(batch.index), "bytes": x.nbytes + y.nbytes, "files": files, "read": read, "right": right, "state": state}
    (pathlib.Path(out) / f"rank-{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def io_of_this_process():
    """Bytes of read() and the like."""
    return int(pathlib.Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


# The command.


def torchrun(ranks, place, kind, mode, steps):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), __file__,
                        place, "--rank-of", out, "--net", kind, "--mode", mode, "--steps", str(steps)],
                       check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600)
        return [json.loads((pathlib.Path(out) / f"rank-{rank}.json").read_text()) for rank in range(ranks)]


class Order:
    """`order(epoch)`: of each batch the numbers of its samples, by `batchfs plan --windows`."""

    def __init__(self, program, store, view):
        self.command, self.view, self.epochs = [program, "plan", store, "--windows"], view, {}

    def __call__(self, epoch):
        import numpy as np

        if epoch not in self.epochs:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(json.dumps(self.view))
                file.flush()
                done = subprocess.run([*self.command, "--view", file.name, "--epoch", str(epoch)], stdout=subprocess.PIPE, check=True)
            batches = self.epochs[epoch] = []
            for batch, sample, *_ in np.load(io.BytesIO(done.stdout)).tolist():
                if batch == len(batches):
                    batches.append([])
                batches[batch].append(sample)
        return self.epochs[epoch]


def mistakes(ranks, order, place, other):
    """What was not as it must be."""
    import batchfs

    found = []
    world, count = len(ranks), len(order(0)) // len(ranks)  # batches of a rank in an epoch
    for one in ranks:
        right = [[i // count, one["rank"] + world * (i % count)] for i in range(len(one["read"]))]
        if [[epoch, number] for epoch, number, _ in one["read"]] != right:
            found.append(f"rank {one['rank']} did not read its batches in order")
        if any(index != order(epoch)[number] for epoch, number, index in one["read"]):
            found.append(f"rank {one['rank']}: the samples are not those of the plan")
        if one["right"] != [True, True]:
            found.append(f"rank {one['rank']}: the bytes are not those of the mount's files")
    state = ranks[0]["state"]
    done = len(ranks[0]["read"]) - 1  # the last batch was read after the state was taken
    if (state["epoch"], state["batches_done"]) not in ((done // count, done % count * world), (done // count - 1, count * world)):
        found.append(f"after {done} batches of each rank the state says {state}")
    if state["batches_done"] + other <= len(order(0)):
        left = []
        for rank in range(other):
            data = batchfs.open(place, rank=rank, world=other)
            data.load_state_dict(state)
            left.append(next(iter(data)).number)
        if left != [state["batches_done"] + rank for rank in range(other)]:
            found.append(f"{other} ranks continue after {state['batches_done']} batches with {left}")
    return found


def measured(mount, store, view, order, ranks, kind, mode, steps):
    import harness.mount

    report = {}
    with harness.mount.Mount(report, store, [view], mount) as path:
        every = torchrun(ranks, str(path), kind, mode, steps)
        bad = mistakes(every, order, str(path), max(1, ranks // 2))
    status = report["status"]
    delivered = sum(one["bytes"] * len(one["read"]) for one in every)
    slowest, alone = max(one["fed"] for one in every), max(one["alone"] for one in every)
    samples = sum(one["samples"] for one in every) * steps
    idle = [one["idle"] for one in every if one["idle"] is not None]
    return {"gpus": ranks, "net": kind, "mode": every[0]["mode"], "samples_s": samples / slowest, "alone_samples_s": samples / alone,
            "cost": slowest / alone - 1, "idle": max(idle) if idle else None,
            "alone_idle": max((one["alone_idle"] for one in every if one["alone_idle"] is not None), default=None),
            "first_ms": max(one["first_ms"] for one in every), "fetched": status["bytes_fetched"] / delivered,
            "decoded": status["bytes_decoded"] / delivered, "files_of_rank": [one["files"] / (one["bytes"] * steps) for one in every],
            "mistakes": bad}


def table_of(rows):
    from harness.table import text

    one_gpu = {(row["net"], row["mode"]): row["samples_s"] for row in rows if row["gpus"] == 1}

    def linear(row):
        base = one_gpu.get((row["net"], row["mode"]))
        return row["samples_s"] / (base * row["gpus"]) if base else None

    percent = lambda share: "-" if share is None else f"{share:.1%}"  # noqa: E731
    return text([[f"{row['gpus']} {row['net']} {row['mode']}", row["samples_s"], row["alone_samples_s"], percent(row["cost"]), linear(row),
                  percent(row["idle"]), percent(row["alone_idle"]), row["first_ms"], row["fetched"], row["decoded"], max(row["files_of_rank"])]
                 for row in rows],
                ["GPUs, net, mode", "samples/s", "alone", "cost", "x linear", "GPU idle", "alone", "first, ms",
                 "fetched/delivered", "decoded", "read by a rank"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=pathlib.Path)
    parser.add_argument("--gpus", default="1,2,4,8", help="numbers of ranks; those above the GPUs of the machine are left out")
    parser.add_argument("--net", default="unet,small")
    parser.add_argument("--mode", default="client,server")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=4, help="samples of a batch")
    parser.add_argument("--latency", type=float, help="read over HTTP, answers this many milliseconds late")
    parser.add_argument("--option", action="append", default=[], help="of `batchfs mount`, such as --option=--memory=64G")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of:
        return train(str(arguments.store), arguments.rank_of, arguments.net, arguments.mode, arguments.steps)

    import torch

    from harness.mount import PROGRAM
    from harness.origin import Origin

    store, view = arguments.store.resolve(), view_of(arguments.store, arguments.batch)
    order = Order(PROGRAM, str(store), view)
    gpus = torch.cuda.device_count()
    rows = []
    with contextlib.ExitStack() as stack:
        place = str(store)
        if arguments.latency is not None:
            place = stack.enter_context(Origin(store.parent, latency=arguments.latency)).url(store)
        for ranks in map(int, arguments.gpus.split(",")):
            if gpus and ranks > gpus:
                print(f"left out: {ranks} GPUs; there are {gpus}")
                continue
            for kind in arguments.net.split(","):
                for mode in arguments.mode.split(","):
                    row = measured(arguments.option, place, view, order, ranks, kind, mode, arguments.steps)
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    print(table_of(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        for mistake in row["mistakes"]:
            print(f"WRONG: {row['gpus']} GPUs, {row['net']}, {row['mode']}: {mistake}")
    return 1 if any(row["mistakes"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
