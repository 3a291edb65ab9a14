"""Codecs of zarr-python 3.4, virtual-tiff and imagecodecs; values equal those of the writers'
libraries and of GDAL to the last byte."""

import pytest
from recorded_arrays import recorded, store_and_values

ARRAYS = [pytest.param(array, id=array["name"])
          for name in ("images.json.gz", "numbers.json.gz", "tiff.json.gz")
          for array in recorded(name)]


@pytest.mark.parametrize("array", ARRAYS)
def test_values(batchfs, tmp_path, array):
    expected = store_and_values(array, tmp_path)
    ours = batchfs.npy("cat", tmp_path, "/", "--decode", "raw")
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    assert ours.tobytes() == expected.tobytes()
