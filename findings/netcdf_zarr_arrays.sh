#!/bin/bash
# netCDF-C 4.10.1 (NCZarr, of netCDF4 1.7.5.1.post1): arrays of Zarr format 2 that zarr-python writes.
#
# 1. "order": "F" is not looked at: chunks that lie column by column are read as if row by row. Values are permuted, with
#    the right shape and without an error.
# 2. The fill value of a big-endian array has its bytes swapped: of what is in no chunk, 258 becomes 513. Chunks are right.
#
# Output seen:
#   order F          [0. 3. 1. 4. 2. 5.] for [0. 1. 2. 3. 4. 5.]
#   big-endian fill  [  0   1   2   3 513 513] for [  0   1   2   3 258 258]
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q netCDF4==1.7.5.1.post1 zarr==3.4.2
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import os
import sys

import netCDF4
import numpy as np
import zarr


def read(name, values, **how):
    """What netCDF-C and zarr-python read of the first four elements, in chunks of 2 x 3 or 4."""
    array = zarr.create_group(name, zarr_format=2).create_array(
        "x", shape=values.shape, dtype=values.dtype, compressors=None, **how)
    array.attrs["_ARRAY_DIMENSIONS"] = [f"d{i}" for i in range(values.ndim)]
    array[:4] = values[:4]
    with netCDF4.Dataset(f"file://{os.getcwd()}/{name}#mode=zarr,file") as file:
        file.set_auto_maskandscale(False)
        return np.asarray(file["x"][:]).ravel(), array[:].ravel()


columns, right = read("columns.zarr", np.arange(6, dtype="f4").reshape(2, 3), chunks=(2, 3), order="F")
print("order F         ", columns, "for", right)
filled, wanted = read("filled.zarr", np.arange(6, dtype=">i2"), chunks=(4,), fill_value=258)
print("big-endian fill ", filled, "for", wanted)
as_seen = right.tolist() == [0, 1, 2, 3, 4, 5] and wanted.tolist() == [0, 1, 2, 3, 258, 258]
sys.exit(not (as_seen and columns.tolist() == [0, 3, 1, 4, 2, 5] and filled.tolist() == [0, 1, 2, 3, 513, 513]))
PYTHON
