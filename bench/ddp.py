#!/usr/bin/env python3
"""Training on several GPUs of one host by torchrun, DistributedDataParallel in bfloat16, all ranks
reading one mount.

    bench/ddp.py STORE [--gpus 1,2,4,8] [--net unet,small] [--mode client,server] [--latency MS]
                       [--steps 60] [--ranks-per-gpu 1] [--resume 4,2]

STORE has variables of (time, latitude, longitude), as bench/gpu_batches makes them. A batch is
pairs of steps with all variables as channels. For each number of GPUs, net and mode, the table has
the samples per second of all ranks; the same with one batch that stays in memory, which is the
training alone; the share of the step that reading costs; the share of the time in which a GPU
computed nothing; the processor seconds in a second of the daemon, and of the rank that took most,
fed and alone; and the bytes that the mount fetched and decoded in these steps, and that each rank
read from files, beside the delivered ones. `--latency` reads over HTTP from bench_origin, which
answers each request this late. Several ranks on one GPU (`--ranks-per-gpu`) add up gradients by
gloo: NCCL accepts one.

Checked in every run: all ranks together read the batches of each epoch in order, each once; their
samples are those of `batchfs plan --windows`; the first and the last batch of each rank have the
bytes of the mount's files; and ranks that continue from the state at the end, as many as `--resume`
names (half and a quarter as many where it is not given, none for ''), read what was left, in order,
with the right samples and bytes.
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
CONTINUED = 3  # batches that a rank reads to see that it continues rightly


def view_of(store, size):
    """All fields stacked, and the same a step later, in a global shuffle."""
    variables = sorted(path.name for path in store.iterdir() if len(shape_of(path)) == 3)
    tensor = {"variables": variables, "stack": "channel",
              "dims": ["channel", "latitude", "longitude"]}
    return {"name": "pairs", "window": {"time": 1}, "batch": {"size": size, "remainder": "drop"},
            "epochs": 1000, "order": {"shuffle": "global", "seed": 0},
            "tensors": {"x": tensor, "y": {**tensor, "offsets": {"time": [1]}}}}


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
        return nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), nn.GELU(),
                             nn.Conv2d(8, channels, 3, padding=1))

    class UNet(nn.Module):
        """Four resolutions, two convolutions at each."""

        def __init__(self, width=64):
            super().__init__()
            widths = [width, 2 * width, 4 * width, 8 * width]
            self.down = nn.ModuleList(self.block(a, b) for a, b in zip([channels, *widths], widths))
            self.up = nn.ModuleList(self.block(a + b, a)
                                    for a, b in reversed(list(zip(widths, widths[1:]))))
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
        """Seconds of all steps, and the share of them in which the GPU computed nothing; None on a
        processor."""
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


def same_as_file(place, batch):
    """Whether the tensors of a batch have the bytes of the mount's files."""
    import numpy as np
    import torch

    folder = pathlib.Path(place) / f"views/pairs/epoch-{batch.epoch:04d}/batch-{batch.number:06d}"
    return all(np.array_equal(batch[name].torch().cpu().view(torch.int32).numpy(),
                              np.load(folder / f"{name}.npy").view("i4")) for name in ("x", "y"))


def read_of(batch):
    return batch.epoch, batch.number, batch.index.tolist()


def continued(place, state, **options):
    """The next batches from a state on: which, and whether their bytes are right."""
    import batchfs

    with batchfs.open(place, **options) as data:
        data.load_state_dict(state)
        batches = itertools.islice((batch for _ in itertools.count() for batch in data), CONTINUED)
        found = [(read_of(batch), same_as_file(place, batch)) for batch in batches]
    return {"read": [read for read, _ in found], "right": [right for _, right in found]}


def train(place, out, kind, mode, steps, ranks_per_gpu, resume):
    """Prints nothing: writes what it found to a file of its rank."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import batchfs

    gpu = torch.cuda.is_available()
    device = (torch.device("cuda", int(os.environ["LOCAL_RANK"]) // ranks_per_gpu) if gpu
              else torch.device("cpu"))
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu and ranks_per_gpu == 1 else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    begin = time.perf_counter()
    options = {"device": str(device), "mode": mode if gpu else "auto"}
    data = batchfs.open(place, rank=rank, world=world, **options)
    batches, read = (batch for _ in itertools.count() for batch in data), []

    def following():
        batch = next(batches)
        read.append(read_of(batch))
        return batch

    batch = following()
    first_ms = (time.perf_counter() - begin) * 1e3
    right = [same_as_file(place, batch)]
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
    cpu = time.process_time()
    alone, alone_idle = timer.run(steps, lambda timer: learn(x, y, timer))
    alone_cores = (time.process_time() - cpu) / alone
    timer.run(WARM_UP, fed)
    daemon, files, cpu = daemon_so_far(place), io_of_this_process(), time.process_time()
    both, idle = timer.run(steps, fed)
    cpu, files = time.process_time() - cpu, io_of_this_process() - files
    daemon = {name: now - daemon[name] for name, now in daemon_so_far(place).items()}
    state = data.state_dict()
    right.append(same_as_file(place, following()))
    found = {"rank": rank, "mode": data.mode, "first_ms": first_ms, "alone": alone,
             "alone_idle": alone_idle, "fed": both, "idle": idle, "daemon": daemon,
             "cores": cpu / both, "alone_cores": alone_cores, "samples": len(batch.index),
             "bytes": x.nbytes + y.nbytes, "files": files, "read": read, "right": right,
             "state": state}
    batches = batch = x = y = None
    data.close()
    found["continued"] = {other: continued(place, state, rank=rank, world=other, **options)
                          for other in resume if rank < other}
    (pathlib.Path(out) / f"rank-{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def io_of_this_process():
    """Bytes of read() and the like."""
    return int(pathlib.Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def daemon_so_far(place):
    """Bytes that the daemon has fetched and decoded, also for GPUs, and the processor seconds that
    it took."""
    status = json.loads((pathlib.Path(place) / ".batchfs/status.json").read_text())
    return {"fetched": status["bytes_fetched"], "decoded": status["bytes_decoded"],
            "cpu": processor_seconds(status["pid"])}


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# The command.


def torchrun(ranks, place, kind, mode, steps, ranks_per_gpu, resume):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                        "--nproc-per-node", str(ranks), __file__, place, "--rank-of", out,
                        "--net", kind, "--mode", mode, "--steps", str(steps), "--ranks-per-gpu",
                        str(ranks_per_gpu), "--resume", ",".join(map(str, resume))],
                       check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600)
        return [json.loads((pathlib.Path(out) / f"rank-{rank}.json").read_text())
                for rank in range(ranks)]


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
                done = subprocess.run([*self.command, "--view", file.name, "--epoch", str(epoch)],
                                      stdout=subprocess.PIPE, check=True)
            batches = self.epochs[epoch] = []
            for batch, sample, *_ in np.load(io.BytesIO(done.stdout)).tolist():
                if batch == len(batches):
                    batches.append([])
                batches[batch].append(sample)
        return self.epochs[epoch]


def reads_of(state, rank, world, total):
    """Epoch and number of the batches that a rank reads from a state on, of epochs of `total`
    batches, without an end."""
    epoch, done = state["epoch"], state["batches_done"]
    while True:
        for i in range((total - done) // world):  # as many for each rank: "remainder" is "drop"
            yield [epoch, done + rank + world * i]
        epoch, done = epoch + 1, 0


def mistakes(ranks, order, resume):
    """Deviations from the expected batches."""
    found, world, total = [], len(ranks), len(order(0))

    def compare(who, read, right, start, rank, world):
        if [[epoch, number] for epoch, number, _ in read] != list(
                itertools.islice(reads_of(start, rank, world, total), len(read))):
            found.append(f"{who} did not read its batches in order")
        if any(index != order(epoch)[number] for epoch, number, index in read):
            found.append(f"{who}: the samples are not those of the plan")
        if not (right and all(right)):
            found.append(f"{who}: the bytes are not those of the mount's files")

    for one in ranks:
        compare(f"rank {one['rank']}", one["read"], one["right"], {"epoch": 0, "batches_done": 0},
                one["rank"], world)
        last = one["read"][-2]  # a batch was read after the state was taken
        if [one["state"]["epoch"],
                one["state"]["batches_done"]] != [last[0], last[1] - one["rank"] + world]:
            found.append(f"rank {one['rank']}: after batch {last[1]} of epoch {last[0]} the "
                         f"state is {one['state']}")
    for other in resume:
        for one in ranks[:other]:
            after = one["continued"].get(str(other), {"read": [], "right": []})
            compare(f"rank {one['rank']} of {other} that continue", after["read"], after["right"],
                    one["state"], one["rank"], other)
            if len(after["read"]) != CONTINUED:
                found.append(f"rank {one['rank']} of {other} that continue read "
                             f"{len(after['read'])} batches of {CONTINUED}")
    return found


def measured(arguments, place, view, order, gpus, kind, mode):
    import harness.mount

    ranks = gpus * arguments.ranks_per_gpu
    resume = (sorted({max(1, ranks // 2), max(1, ranks // 4)}, reverse=True)
              if arguments.resume is None else arguments.resume)
    resume = [other for other in resume if other <= ranks]
    with harness.mount.Mount({}, place, [view], arguments.option) as path:
        every = torchrun(ranks, str(path), kind, mode, arguments.steps, arguments.ranks_per_gpu,
                         resume)
        bad = mistakes(every, order, resume)
    delivered, daemon = sum(one["bytes"] for one in every) * arguments.steps, every[0]["daemon"]
    slowest, alone = max(one["fed"] for one in every), max(one["alone"] for one in every)
    samples = sum(one["samples"] for one in every) * arguments.steps
    idle = [one["idle"] for one in every if one["idle"] is not None]
    return {"gpus": gpus, "ranks": ranks, "net": kind, "mode": every[0]["mode"],
            "samples_s": samples / slowest, "alone_samples_s": samples / alone,
            "cost": slowest / alone - 1, "idle": max(idle) if idle else None,
            "alone_idle": max((one["alone_idle"] for one in every if one["alone_idle"] is not None),
                              default=None),
            "daemon_cores": daemon["cpu"] / every[0]["fed"],
            "cores": max(one["cores"] for one in every),
            "alone_cores": max(one["alone_cores"] for one in every),
            "first_ms": max(one["first_ms"] for one in every),
            "fetched": daemon["fetched"] / delivered,
            "decoded": daemon["decoded"] / delivered, "continued": resume,
            "files_of_rank": [one["files"] / (one["bytes"] * arguments.steps) for one in every],
            "mistakes": bad}


def table_of(rows):
    from harness.table import text

    one_gpu = {(row["net"], row["mode"]): row["samples_s"] for row in rows if row["ranks"] == 1}

    def times(row):
        base = one_gpu.get((row["net"], row["mode"]))
        return row["samples_s"] / base if base else None

    percent = lambda share: "-" if share is None else f"{share:.1%}"  # noqa: E731
    return text([[f"{row['gpus']}, {row['ranks']}, {row['net']}, {row['mode']}", row["samples_s"],
                  row["alone_samples_s"], percent(row["cost"]), times(row), percent(row["idle"]),
                  percent(row["alone_idle"]), row["daemon_cores"], row["cores"], row["alone_cores"],
                  row["first_ms"], row["fetched"], row["decoded"], max(row["files_of_rank"])]
                 for row in rows], ["GPUs, ranks, net, mode", "samples/s", "alone", "cost", "x one",
                                    "GPU idle", "alone", "daemon's cores", "a rank's", "alone",
                                    "first, ms", "fetched/delivered", "decoded", "read by a rank"])


def numbers(text):
    return [int(number) for number in text.split(",") if number]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("store", type=pathlib.Path)
    parser.add_argument("--gpus", type=numbers, default=[1, 2, 4, 8],
                        help="those above the GPUs of the machine are left out")
    parser.add_argument("--ranks-per-gpu", type=int, default=1)
    parser.add_argument("--resume", type=numbers, help="numbers of ranks that continue from the "
                                                       "state at the end, no more than trained")
    parser.add_argument("--net", default="unet,small")
    parser.add_argument("--mode", default="client,server")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=4, help="samples of a batch")
    parser.add_argument("--latency", type=float,
                        help="read over HTTP, answers this many milliseconds late")
    parser.add_argument("--option", action="append", default=[],
                        help="of `batchfs mount`, such as --option=--memory=64G")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of:
        return train(str(arguments.store), arguments.rank_of, arguments.net, arguments.mode,
                     arguments.steps, arguments.ranks_per_gpu, arguments.resume)

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
        for count in arguments.gpus:
            if gpus and count > gpus:
                print(f"left out: {count} GPUs; there are {gpus}")
                continue
            for kind in arguments.net.split(","):
                for mode in arguments.mode.split(","):
                    row = measured(arguments, place, view, order, count, kind, mode)
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    print(table_of(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        for mistake in row["mistakes"]:
            print(f"WRONG: {row['gpus']} GPUs, {row['ranks']} ranks, {row['net']}, "
                  f"{row['mode']}: {mistake}")
    return 1 if any(row["mistakes"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
