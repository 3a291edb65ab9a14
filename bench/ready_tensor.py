"""Time to hand over a ready batch as a torch tensor:
python bench/ready_tensor.py FOLDER [--device cuda]

Batches of 1.7 MB are made ahead, eight while the reader waits; "warm" are the last five of eight
taken at once. Others are taken after the reader was awake for 5 ms, in a busy loop, and after 80 ms
of sleep; a call of PyTorch after the same wait tells how cold the caches are.
Needs PyTorch, zarr-python and the package (BATCHFS names the program).
"""

import argparse
import pathlib
import time

import numpy as np
import torch

import batchfs

BATCHES = 400
VIEW = {"window": {"time": 1}, "variables": ["t2m"], "batch": 16, "epochs": 1}


def awake(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def measured(data, device, wait, count):
    """Seconds of `next`, of `next` with the tensor, and of a short call of PyTorch after the same
    wait."""
    taken, batches = [], iter(data)
    for _ in range(count):
        wait()
        begin = time.perf_counter()
        torch.empty(1)
        other = time.perf_counter() - begin
        wait()
        begin = time.perf_counter()
        batch = next(batches)
        middle = time.perf_counter()
        tensor = batch["t2m"].torch()
        end = time.perf_counter()
        assert tensor.device.type == device and tensor.shape[0] == 16
        taken.append((middle - begin, end - begin, other))
    return np.array(taken[20:])


def warm(data, device, groups):
    """Like measured(), for batches that are taken one after the other."""
    taken, batches = [], iter(data)
    for _ in range(groups):
        time.sleep(0.3)
        for number in range(8):
            begin = time.perf_counter()
            batch = next(batches)
            middle = time.perf_counter()
            tensor = batch["t2m"].torch()
            end = time.perf_counter()
            assert tensor.device.type == device and tensor.shape[0] == 16
            torch.empty(1)
            if number >= 3:
                taken.append((middle - begin, end - begin, time.perf_counter() - end))
    return np.array(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    store = arguments.folder / "ready.zarr"
    if not store.exists():
        import zarr

        values = np.random.default_rng(0).normal(size=(16 * BATCHES, 160, 162)).astype("f4")
        zarr.create_group(store).create_array("t2m", data=values,
                                              chunks=(16, 160, 162), compressors=None,
                                              dimension_names=["time", "latitude", "longitude"])
    torch.zeros(1, device=arguments.device)
    print("us                     median  10th percentile  90th")
    for name, taken in (("warm", lambda *of: warm(*of, 40)),
                        ("awake", lambda *of: measured(*of, lambda: awake(0.005), BATCHES)),
                        ("after 80 ms of sleep",
                         lambda *of: measured(*of, lambda: time.sleep(0.08), 120))):
        with batchfs.open(store, VIEW, device=arguments.device, prefetch=9) as data:
            for what, times in zip(("next", "next, tensor", "torch.empty(1)"),
                                   taken(data, arguments.device).T * 1e6, strict=True):
                low, middle, high = np.percentile(times, [10, 50, 90])
                print(f"{name}, {what:15} {middle:6.0f} {low:6.0f} {high:6.0f}")


if __name__ == "__main__":
    main()
