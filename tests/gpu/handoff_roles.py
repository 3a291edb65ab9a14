"""Roles of the readers of handoff.py, each run in a separate process: `handoff_roles.py --ROLE
PLACE ARGUMENT...`."""

import json
import sys
import time

GPU_MEMORY = "12000M"


def expected(place, number, name, epoch=0):
    import numpy as np

    return np.load(f"{place}/views/pairs/epoch-{epoch:04d}/batch-{number:06d}/{name}.npy")


def role_compare(place, mode, count, gpu="0", rank="0", world="1"):
    """Compares the first `count` batches of all ranks, those of this one, and some again."""
    import cupy
    import numpy as np
    import torch

    import batchfs

    gpu, rank, world = int(gpu), int(rank), int(world)
    torch.cuda.set_device(gpu)
    cupy.cuda.Device(gpu).use()
    data = batchfs.open(place, device=f"cuda:{gpu}", mode=mode, rank=rank, world=world)
    bad, numbers = [], []

    def same(batch):
        for name, tensor in batch.items():
            right = expected(place, batch.number, name, batch.epoch)
            if tensor.__dlpack_device__() != (2, gpu):
                bad.append([batch.number, name, "not on the GPU, but on",
                            tensor.__dlpack_device__()])
            if not torch.equal(tensor.torch().view(torch.int32),
                               torch.from_numpy(right).cuda().view(torch.int32)):
                bad.append([batch.number, name, "torch"])
            if not bool((tensor.cupy().view("u4") == cupy.asarray(right).view("u4")).all()):
                bad.append([batch.number, name, "cupy"])
            if not bool((cupy.asarray(tensor).view("u4") == cupy.asarray(right).view("u4")).all()):
                bad.append([batch.number, name, "cupy by its interface"])
            if batch.number == 0 and not np.array_equal(tensor.numpy().view("u4"),
                                                        right.view("u4")):
                bad.append([batch.number, name, "numpy"])

    for batch in data:
        same(batch)
        numbers.append(batch.number)
        if batch.number + world >= int(count):
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
    print(json.dumps({"bad": bad, "numbers": numbers, "mode": data.mode,
                      "why_copied": data.why_copied}))


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
                last, total = batch["x"].torch(), int(
                    batch["x"].torch().view(torch.int32).sum(dtype=torch.int64))
                print("reading", flush=True)
        result = "the epochs ended"
    except batchfs.Error as error:
        result = str(error)
    again = int(last.view(torch.int32).sum(dtype=torch.int64))
    print(json.dumps({"result": result, "valid": again == total}))


def open_fed(place, mode, **options):
    """With as much memory for decoding, wherever it is."""
    import batchfs

    return batchfs.open(place, device="cuda:0", mode=mode, device_memory=int(GPU_MEMORY[:-1]) << 20,
                        **options)


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
    # A batch that is ready: to a processor that is awake, and to one that has slept; then one that
    # has to be asked for.
    for prefetch, sleeps, key in ((2, False, "ready_us"), (2, True, "ready_after_sleep_us"),
                                  (0, True, "asked_us")):
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
    """A training step that copies batches of host memory to the GPU, which is free to overlap with
    it."""
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
            x = {name: tensor.to("cuda", non_blocking=True) for name, tensor in batch.items()
                 if torch.is_tensor(tensor)}
        step()  # beside the copy
        torch.cuda.current_stream().wait_stream(copies)
        x["x"][0, 0, 0].sum()

    both = timed(fed)
    batch = next(iterator)
    size = sum(tensor.nbytes for tensor in batch.values() if torch.is_tensor(tensor))
    print(json.dumps({"bad": bad, "MB": size / 1e6, "alone_ms": alone * 1e3, "fed_ms": both * 1e3,
                      "share": both / alone - 1}))


def role_predict(store, view, out, mode):
    """Writes the negative of each value, from torch and cupy in turn."""
    import numpy as np
    import tensorstore
    import torch

    import batchfs

    data = batchfs.open(store, view=view, device="cuda:0", mode=mode)
    stream, a = torch.cuda.Stream(), torch.randn(8192, 8192, device="cuda")
    with batchfs.create(out, like=data, tensor="x", codec="none") as output:
        for batch in data:
            with torch.cuda.stream(stream):
                x = batch["x"].torch()
                for _ in range(20):  # work queued after it waits for it
                    a = torch.matmul(a, a).clamp(-1, 1)
                if batch.number % 3 == 0:
                    predicted = -x
                elif batch.number % 3 == 1:  # its rows are not one after the other
                    predicted = -x.transpose(-1, -2).contiguous().transpose(-1, -2)
                else:
                    predicted = -batch["x"].cupy()
                output.write(batch, predicted)
            written = (batch.number + 1) * batch.samples
    with open(view) as file:
        names, bad = json.load(file)["tensors"]["x"]["variables"], []

    def values(driver, path):
        return tensorstore.open({"driver": driver,
                                 "kvstore": {"driver": "file", "path": path}}).result()

    for name in names:
        right, got = values("zarr", f"{store}/{name}"), values("zarr3", f"{out}/{name}")
        if not np.array_equal(-right[:written].read().result(), got[:written].read().result()):
            bad.append(name)
    print(json.dumps({"bad": bad, "written": written, "mode": data.mode}))


if __name__ == "__main__":
    globals()["role_" + sys.argv[1][2:]](*sys.argv[2:])
