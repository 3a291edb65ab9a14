"""Stores with times whose values are their own positions, and the samples of their views."""

import json
import warnings

import numpy as np
import xarray as xr


def write(path, times, chunk=7, x=3, more=None):
    n = len(times)
    data = {"a": (("time", "x"), np.arange(n * x, dtype="i4").reshape(n, x)),
            "b": (("x", "time"), 1_000_000 + np.arange(n * x, dtype="i4").reshape(n, x).T)}
    ds = xr.Dataset(data, {"time": times, "x": np.arange(x) * 10.0, **(more or {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, mode="w", zarr_format=2,
                   encoding={"a": {"chunks": (chunk, x)}, "b": {"chunks": (1, chunk)}})
    return path


class Run:
    """A view of a store: its plan and all its samples in order."""

    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file = batchfs, store, folder / "view.json"
        self.file.write_text(json.dumps(view))

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json"))

    def refusal(self):
        return self.batchfs.refusal("plan", self.store, "--view", self.file)

    def batch(self, batch, epoch=0, *more):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--format",
                                             "json", "--epoch", epoch, "--batch", batch, *more))

    def tensor(self, name, batch=0, epoch=0, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--format", "npy",
                                "--epoch", epoch, "--batch", batch, "--tensor", name, *more)
