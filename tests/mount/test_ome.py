"""An OME-Zarr image in a mount: tiles of a level, with coordinates."""

import json

import numpy as np
import xarray as xr
import zarr

SHAPE, SCALE = (2, 24, 32), (1.0, 0.5, 0.25)


def write(path):
    group = zarr.open_group(path, mode="w", zarr_format=2)
    axes = [{"name": "c", "type": "channel"}] + [{"name": n, "type": "space", "unit": "micrometer"}
                                                 for n in "yx"]
    datasets, values = [], []
    for k in range(2):
        scale = [s if d == 0 else s * 2**k for d, s in enumerate(SCALE)]
        datasets.append({"path": str(k), "coordinateTransformations": [
            {"type": "scale", "scale": scale},
            {"type": "translation", "translation": [0, 3, k]}]})
        shape = [n if d == 0 else n // 2**k for d, n in enumerate(SHAPE)]
        values.append(np.random.default_rng(k).integers(0, 99, shape).astype("u2"))
        array = group.create_array(str(k), shape=shape, chunks=(1, 8, 8), dtype="u2",
                                   chunk_key_encoding={"name": "v2", "separator": "/"})
        array[...] = values[-1]
    group.attrs.update({"multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets}],
                        "omero": {"channels": [{"label": "DAPI"}, {"label": "GFP"}]}})
    return values


def test_batches_have_coordinates_with_units(mount_at, tmp_path):
    values = write(tmp_path / "image.zarr")
    view = {"name": "v", "level": {"resolution": {"x": "0.5 um"}}, "window": {"y": 4, "x": 16},
            "batch": 3, "formats": ["zarr", "npy"]}
    mnt = mount_at(tmp_path / "image.zarr", tmp_path / "mnt", {"v": view})
    assert json.loads((mnt / "views/v/view.json").read_text())["level"] == 1
    batch = xr.open_zarr(mnt / "views/v/epoch-0000/batch-000000.zarr", consolidated=False).load()
    np.testing.assert_array_equal(batch["image"].values,
                                  values[1].reshape(2, 3, 4, 16).swapaxes(0, 1))
    np.testing.assert_array_equal(np.load(mnt / "views/v/epoch-0000/batch-000000.npy"),
                                  batch["image"].values)
    assert batch["c"].values.tolist() == ["DAPI", "GFP"]
    coords = mnt / "views/v/coords"
    np.testing.assert_array_equal(np.load(coords / "y.npy"), np.arange(12) * 1.0 + 3)
    np.testing.assert_array_equal(np.load(coords / "x.npy"), np.arange(16) * 0.5 + 1)
    assert np.load(coords / "c.npy").tolist() == ["DAPI", "GFP"]
    assert batch["x_start"].attrs["units"] == "micrometer"
    assert "image" in (mnt / "summary.txt").read_text()
    assert json.loads((mnt / "store.json").read_text())["arrays"]["0"]["dims"] == ["c", "y", "x"]
