"""Stacks of variables with random dimensions: a view that `plan` accepts has batches, with the
values that xarray gives.

BATCHFS_STACK_SEEDS=100:200 asks others than the usual ones.
"""

import itertools
import json
import os

import numpy as np
import pytest
import xarray as xr

SEEDS = range(*map(int, os.environ.get("BATCHFS_STACK_SEEDS", "0:60").split(":")))
SIZES = {"time": 6, "lev": 4, "y": 2, "x": 3}


def random_data(rng):
    variables = {}
    for name in "uvw"[:int(rng.integers(2, 4))]:
        dims = rng.permutation([dim for dim in SIZES if rng.random() < 0.65] or ["time"]).tolist()
        shape = [SIZES[dim] for dim in dims]
        variables[name] = (dims, rng.permutation(int(np.prod(shape))).reshape(shape).astype("f4"))
    return xr.Dataset(variables)


def stacked(data, names, window, broadcast):
    """A sample's stack; None: the variables do not go together."""
    own = [list(data[name].dims) for name in names]
    shared = [dim for dim in dict.fromkeys(itertools.chain(*own))
              if dim in window or all(dim in dims for dims in own)]
    kept = shared if broadcast else [dim for dim in own[0] if dim in shared]
    channels = []
    for name, dims in zip(names, own):
        array = data[name]
        if not broadcast:
            if any(dim not in dims for dim in kept) or any(dim in dims and window[dim] > 1
                                                           for dim in shared if dim not in kept):
                return None
            array = array.squeeze([dim for dim in shared if dim in dims and dim not in kept])
        # In the order of the first variable.
        joined = [dim for dim in own[0] if dim in dims and dim not in shared]
        joined += [dim for dim in dims if dim not in shared and dim not in joined]
        array = array.expand_dims({dim: data.sizes[dim] for dim in kept if dim not in dims})
        channels.append(
            array.transpose(*joined, *kept).values.reshape(-1, *(data.sizes[dim] for dim in kept)))
    return np.concatenate(channels)


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_accepts_what_batch_makes(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng)
    data.to_zarr(tmp_path / "a", zarr_format=3, consolidated=False,
                 encoding={name: {"chunks": tuple(max(1, n - 1) for n in array.shape)}
                           for name, array in data.items()})
    names = rng.permutation(list(data)).tolist()
    window = {str(dim): int(rng.integers(1, 3)) for dim in rng.permutation(list(data.dims))
              if rng.random() < 0.5}
    window = window or {str(next(iter(data.dims))): 2}
    broadcast = rng.random() < 0.3
    tensor = {"variables": names, "stack": "channel"} | ({"broadcast": True} if broadcast else {})
    view = {"window": {dim: {"size": n, "stride": 2} for dim, n in window.items()},
            "tensors": {"t": tensor}, "batch": 1000}
    # None of these changes whether the variables go together.
    extra = str(rng.choice(["none", "none", "coarsen", "offsets", "pad"]))
    first = data[names[0]].dims
    if extra == "coarsen":
        dim = str(rng.choice(first))
        if dim in window or all(dim in data[name].dims for name in names):
            tensor["coarsen"] = {dim: window.get(dim, SIZES[dim])}
    elif extra == "offsets":
        dim = str(rng.choice([dim for dim in window]))
        tensor["offsets"] = {dim: [0, 1]}
    elif extra == "pad":
        for own in view["window"].values():
            own["edge"] = "pad"
    file = tmp_path / "v.json"
    file.write_text(json.dumps(view))
    sizes = {dim: n * len(tensor.get("offsets", {}).get(dim, [0])) for dim, n in window.items()}
    one = {dim: slice(0, n) for dim, n in sizes.items()}
    if stacked(data.isel(one), names, sizes, broadcast) is None:
        for command in ("plan", "batch", "statistics"):
            assert "has no dimension '" in batchfs.refusal(command, tmp_path / "a", "--view", file)
        return
    assert json.loads(batchfs.bytes("plan", tmp_path / "a", "--view", file,
                                    "--json"))["samples"] > 0
    got = batchfs.npy("batch", tmp_path / "a", "--view", file)
    if extra != "none":
        return
    starts = itertools.product(*(range(0, SIZES[dim] - n + 1, 2) for dim, n in window.items()))
    want = [stacked(data.isel({dim: slice(begin, begin + window[dim])
                               for dim, begin in zip(window, start)}), names, window, broadcast)
            for start in starts]
    np.testing.assert_array_equal(got, np.stack(want))
