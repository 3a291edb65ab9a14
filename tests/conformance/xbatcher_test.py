"""Views of a whole dataset against xbatcher itself: its coordinates have dimensions, too."""

import io
import json
import warnings

import numpy as np
import pytest
import xarray as xr
import xbatcher

warnings.filterwarnings("ignore")
DIMS = ["p", "q", "r", "s", "t"]


def random_dataset(rng):
    """Data variables of some of the dimensions, and index and auxiliary coordinates of all of
    them."""
    names = [str(name) for name in rng.permutation(DIMS)]
    sizes = {name: int(rng.integers(1, 4)) for name in names}
    inner = names[:rng.integers(1, 4)]

    def array(dims):
        return list(dims), rng.normal(size=[sizes[d] for d in dims])

    data = {f"v{i}": array(rng.permutation(inner)[:rng.integers(1, len(inner) + 1)].tolist())
            for i in range(rng.integers(1, 3))}
    coords = {name: np.arange(sizes[name]) * 10 for name in names if rng.random() < 0.5}
    for i in range(rng.integers(1, 3)):
        coords[f"k{i}"] = array(rng.permutation(names)[:rng.integers(1, 3)].tolist())
    return xr.Dataset(data, coords)


@pytest.mark.parametrize("seed", range(120))
def test_dimensions_of_coordinates_alone(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    random_dataset(rng).to_zarr(tmp_path / "s.zarr", consolidated=True)
    data = xr.open_zarr(tmp_path / "s.zarr").load()
    view = {}
    selectable = [d for d in data.sizes if rng.random() < 0.2]
    if selectable and len(selectable) < len(data.sizes):
        data = data.isel({d: 0 for d in selectable})
        view["select"] = {d: "#0" for d in selectable}
    dims = [str(d) for d in rng.permutation(list(data.sizes))]
    form = {"input_dims": {d: int(rng.integers(1, data.sizes[d] + 1))
                           for d in dims[:rng.integers(1, len(dims) + 1)]}}
    if batch := {d: int(rng.integers(1, data.sizes[d] + 1)) for d in dims if rng.random() < 0.3}:
        form["batch_dims"] = batch
    form["concat_input_dims"] = bool(rng.random() < 0.4)
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view | {"xbatcher": form}))
    try:
        generator = xbatcher.BatchGenerator(data, **form)
        expected = [generator[b] for b in range(len(generator))]
    except Exception:
        batchfs.refusal("plan", tmp_path / "s.zarr", "--view", file)
        return
    plan = json.loads(batchfs.bytes("plan", tmp_path / "s.zarr", "--view", file, "--json"))
    assert plan["batches"] == len(expected)
    for b in sorted({0, len(expected) // 2, len(expected) - 1}):
        archive = batchfs.bytes("batch", tmp_path / "s.zarr", "--view", file, "--batch", b,
                                "--format", "npz")
        with np.load(io.BytesIO(archive)) as arrays:
            for name in data.data_vars:
                np.testing.assert_array_equal(arrays[name], expected[b][name].values,
                                              f"batch {b}, {name}")
                (tensor,) = [t for t in plan["tensors"] if t["name"] == name]
                assert tuple(tensor["dims"]) == expected[b][name].dims
