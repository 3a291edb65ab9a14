"""Directories of a million batches, and batches of nothing, through the kernel."""

import json
import os

import numpy as np
import pytest
import xarray as xr


def write_array(path, shape, dims, fill):
    """An array of format 2 without chunks: all of it is the fill value."""
    path.mkdir(parents=True)
    (path / ".zarray").write_text(json.dumps(
        {"zarr_format": 2, "shape": shape, "chunks": [max(n, 1) for n in shape], "dtype": "<f4",
         "compressor": None, "fill_value": fill, "order": "C", "filters": None}))
    (path / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": dims}))
    (path.parent / ".zgroup").write_text('{"zarr_format": 2}')


def resident_bytes(directory):
    """Resident memory of the process that serves a mount."""
    pid = json.loads((directory / ".batchfs/status.json").read_text())["pid"]
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.says("list-large")
@pytest.mark.parametrize("options", [[], ["--no-passthrough"]],
                         ids=["passthrough", "no-passthrough"])
def test_a_million_batches(mount_at, tmp_path, options):
    write_array(tmp_path / "s.zarr" / "v", [1_000_000], ["t"], 2.5)
    mnt = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": {"name": "v", "window": {"t": 1}}},
                   *options)
    epoch = mnt / "views/v/epoch-0000"
    before = resident_bytes(mnt)
    names = [entry.name for entry in os.scandir(epoch)]
    assert len(names) == 2_000_000 and len(set(names)) == 2_000_000
    assert names[0] == "batch-000000.npy" and names[-1] == "batch-999999.json"
    # Listing caches nothing: it would take 100 MB and more.
    assert resident_bytes(mnt) < before + (32 << 20)
    # The fill value of format 2 means missing, as in xarray.
    assert np.isnan(np.load(epoch / names[-2])).tolist() == [[True]]
    assert json.loads((epoch / names[-1]).read_text())["samples"] == [999_999]


def test_batches_of_nothing(mount_at, tmp_path):
    write_array(tmp_path / "s.zarr" / "v", [4, 0], ["t", "x"], 0)
    view = {"name": "v", "window": {"t": 1}, "batch": 3,
            "formats": ["npy", "npz", "safetensors", "zarr"]}
    mnt = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view})
    epoch = mnt / "views/v/epoch-0000"
    assert np.load(epoch / "batch-000001.npy").shape == (1, 1, 0)
    assert np.load(epoch / "batch-000000.npz")["v"].shape == (3, 1, 0)
    chunk = epoch / "batch-000000.zarr/v/0.0.0"
    assert (chunk.stat().st_size, chunk.read_bytes()) == (0, b"")
    assert xr.open_zarr(epoch / "batch-000000.zarr").v.values.shape == (3, 1, 0)
