"""A store that grows, its mount, and what the mount then shows."""

import json
import time

import numpy as np
import xarray as xr

VIEW = {"name": "train", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 4},
        "order": {"shuffle": "none"}, "formats": ["npy"]}


def steps(first, count, chunk=4):
    """Steps of a dataset whose values say which step they are of."""
    times = np.arange(first, first + count)
    values = (times[:, None] * 100 + np.arange(6)).astype("f4")
    made = xr.Dataset({"t": (("time", "x"), values)}, {"time": times})
    return made, {"t": {"chunks": (chunk, 6)}, "time": {"chunks": (chunk,)}}


def create(path, count, zarr_format=3):
    dataset, encoding = steps(0, count)
    dataset.to_zarr(path, zarr_format=zarr_format, consolidated=False, encoding=encoding)


def append(path, first, count):
    steps(first, count)[0].to_zarr(path, append_dim="time", consolidated=False)


def batches(directory):
    return sorted(p.name for p in (directory / "views/train/epoch-0000").iterdir()
                  if p.suffix == ".npy")


def values(directory, view="train"):
    folder = directory / f"views/{view}/epoch-0000"
    return np.concatenate([np.load(p) for p in sorted(folder.glob("*.npy"))])[:, 0]


def status(directory):
    return json.loads((directory / ".batchfs/status.json").read_text())


def generations(directory, count, patience=20):
    """Waits until the daemon has so many generations."""
    until = time.monotonic() + patience
    while status(directory)["generations"] != count and time.monotonic() < until:
        time.sleep(0.1)
    return status(directory)["generations"]
