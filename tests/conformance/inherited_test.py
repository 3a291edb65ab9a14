"""Coordinates that groups inherit from the groups above them: select, samples and labels are those
of xarray.DataTree."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

SEEDS = range(12)


def random_tree(rng):
    """Three levels of groups. Each has coordinates of some of its dimensions; xarray refuses trees
    whose lengths differ."""
    labels = {"time": np.datetime64("2000-01-01", "ns")
                  + np.arange(int(rng.integers(3, 8))) * np.timedelta64(6, "h"),
              "lat": np.linspace(50, -50, int(rng.integers(2, 6))),
              "name": np.array(["a", "bb", "ccc"])}
    groups = {}
    for path in ["/", "/a", "/a/b", "/a/b/c", "/d"]:
        dims = [dim for dim in labels if rng.random() < 0.7]
        fields = {f"v{path.count('/')}": (dims, rng.standard_normal(
            [len(labels[d]) for d in dims]).astype("f4"))} if path != "/" else {}
        # The labels of a level are those of the levels above: a tree cannot have others.
        groups[path] = xr.Dataset(fields,
                                  {dim: labels[dim] for dim in labels if rng.random() < 0.5})
    return xr.DataTree.from_dict(groups)


def shown(label):
    return f"{label.astype('M8[s]')}" if isinstance(label, np.datetime64) else str(label)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_selections_are_those_of_the_tree(batchfs, tmp_path, seed, zarr_format):
    rng = np.random.default_rng(seed)
    store = tmp_path / "s.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random_tree(rng).to_zarr(store, zarr_format=zarr_format, write_inherited_coords=False)
        tree = xr.open_datatree(store, engine="zarr")
    selected = 0
    for path in [group for group in tree.groups if group != "/"]:
        ds = tree[path].to_dataset(inherit=True).load()
        (name,) = ds.data_vars
        for dim in ds[name].dims:
            if dim not in ds.indexes:
                assert f"dimension '{dim}' has no coordinate" in batchfs.refusal(
                    "cat", store, name, "--group", path, "--select",
                    f"{dim}={shown(np.datetime64('2000-01-01'))}")
                continue
            labels = ds[dim].values
            first, last = sorted(rng.integers(0, len(labels), 2))
            wanted = ds[name].isel({dim: slice(first, last + 1)}).values
            choice = (f"{dim}={shown(labels[first])}:{shown(labels[last])}" if dim != "name"
                      else f"{dim}={labels[first]}")
            if dim == "name":
                wanted = ds[name].isel({dim: slice(first, first + 1)}).values
            for place in ([name, "--group", path], [f"{path[1:]}/{name}"]):
                got = batchfs.npy("cat", store, *place, "--select", choice)
                np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)
            view = {"name": "v", "group": path[1:], "variables": [name], "window": {dim: 1},
                    "batch": 1000, "select": {dim: [shown(labels[first])]}}
            (tmp_path / "view.json").write_text(json.dumps(view))
            got = batchfs.npy("batch", store, "--view", tmp_path / "view.json")
            wanted = ds[name].isel({dim: slice(first, first + 1)}).values
            np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)
            selected += 1
    assert selected > 0 or all(not tree[path].to_dataset(inherit=True).indexes
                               for path in tree.groups if path != "/")
