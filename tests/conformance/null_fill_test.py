"""Zarr v2 arrays whose fill value is null, with chunks missing: what zarr-python 3 reads, for every
data type."""

import json
import os

import numpy as np
import pytest
import xarray as xr
import zarr

TYPES = ["|b1", *(f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (2, 4, 8)),
         "|i1", "|u1", *(f"{order}f{size}" for order in "<>" for size in (2, 4, 8)),
         *(f"{order}c{size}" for order in "<>" for size in (8, 16)),
         *(f"<{kind}8[{unit}]" for kind in "Mm"
           for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s")),
         *(f">{kind}8[{unit}]" for kind in "Mm" for unit in ("D", "ns")),
         "|S3", "<U3", ">U3", "|V4", [["a", "<i4"], ["b", ">f4"]],
         [["a", "<M8[ns]"], ["b", "<m8[s]"]]]


def element(dtype):
    """A value that is neither zero nor missing."""
    if dtype.names:
        return np.array([tuple(element(dtype[name])[0] for name in dtype.names)], dtype)
    if dtype.kind in "SUV":
        return np.array([b"ab" if dtype.kind != "U" else "ab"], dtype)
    return (np.ones(1, "i8").astype(dtype) if dtype.kind not in "Mm"
            else np.array([1], f"{dtype.str[0]}i8").view(dtype))


@pytest.mark.parametrize("stored", TYPES, ids=str)
def test_missing_chunks_are_what_zarr_python_reads(batchfs, tmp_path, stored):
    dtype = np.dtype(stored if isinstance(stored, str) else [tuple(field) for field in stored])
    path = tmp_path / "a"
    array = path / "v"
    os.makedirs(array)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    (array / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    (array / ".zarray").write_text(json.dumps({"zarr_format": 2, "shape": [4],
                                               "chunks": [2], "dtype": stored, "compressor": None,
                                               "fill_value": None, "order": "C", "filters": None}))
    (array / "0").write_bytes(np.repeat(element(dtype), 2).tobytes())
    want = zarr.open_array(array, mode="r")[:]
    assert want[0] != want[2]

    def same(got):
        np.testing.assert_array_equal(np.ascontiguousarray(got).view("u1"),
                                      np.ascontiguousarray(want.astype(got.dtype)).view("u1"))

    if dtype.kind in "Mm":
        assert np.isnat(want[2:]).all()
        opened = xr.open_zarr(path, consolidated=False, chunks=None)["v"].values
        np.testing.assert_array_equal(opened, want.astype(opened.dtype))
    same(batchfs.npy("cat", path, "v"))
    for to in ("2", "3"):
        batchfs.bytes("rechunk", path, "-o", tmp_path / to, "--chunks", "x=3", "--format", to)
        same(zarr.open_group(tmp_path / to, mode="r")["v"][:])


def test_batches_hold_nat(batchfs, tmp_path):
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=2)
    for name, dtype in ("t", "M8[ns]"), ("d", "m8[s]"):
        array = group.create_array(name, shape=(4,), chunks=(2,), dtype=dtype, fill_value=None,
                                   attributes={"_ARRAY_DIMENSIONS": ["x"]})
        array[:2] = np.array([1, 2]).view(dtype)
    (tmp_path / "v.json").write_text('{"window": {"x": 4}, "variables": ["t", "d"]}')
    for name in "td":
        got = batchfs.npy("batch", tmp_path / "a", "--view", tmp_path / "v.json", "--tensor", name)
        assert np.isnat(got).ravel().tolist() == [False, False, True, True]
