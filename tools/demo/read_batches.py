"""Reads every batch of an epoch with numpy and compares it with what xarray gives for the same
samples.

Usage: read_batches.py VIEW_DIRECTORY STORE"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import xarray as xr


def expected(winds, times):
    """u and v at these months, as (time, channel, latitude, longitude)."""
    part = winds.isel(time=times)
    return np.stack([part.u.values, part.v.values], axis=1).astype("float32")


def main(view, store):
    winds = xr.open_zarr(store)
    epoch = view / "epoch-0000"
    ours, theirs = hashlib.sha256(), hashlib.sha256()
    for batch in sorted(epoch.glob("batch-??????")):
        x, y = np.load(batch / "x.npy"), np.load(batch / "y.npy")
        print(f"{batch.name}  x {x.dtype} {x.shape}  y {y.dtype} {y.shape}")
        ours.update(x.tobytes() + y.tobytes())
        # The first sample has two months before it: sample s stands at month s + 2.
        samples = json.loads(batch.with_suffix(".json").read_text())["samples"]
        theirs.update(np.stack([expected(winds, [s, s + 1, s + 2]) for s in samples]).tobytes())
        theirs.update(np.stack([expected(winds, [s + 3]) for s in samples]).tobytes())
    print("batchfs", ours.hexdigest())
    print("xarray ", theirs.hexdigest())
    if ours.digest() != theirs.digest():
        sys.exit("The batches differ from xarray's values.")
    print("The same, to the last bit.")


main(pathlib.Path(sys.argv[1]), sys.argv[2])
