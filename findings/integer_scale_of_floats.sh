#!/bin/bash
# xarray 2026.9.0: floating-point data with an integer "scale_factor" and no "add_offset" is read as int64: fractions are lost.
#
# 1 and 1.0 are the same number, and stores differ in which of both they hold: a Python 1 becomes an integer attribute of
# NetCDF, and Zarr's JSON keeps both apart. With the integer, 0.75 is read as 0, and 0.75 hours as a whole hour, without a
# warning. An offset of 0 beside it, which changes nothing, makes xarray read 0.75.
#
# Output seen:
#   scale_factor 1.0                float64 0.75 2001-01-01T00:45
#   scale_factor 1                  int64 0 2001-01-01T00:00
#   scale_factor 1, add_offset 0    float64 0.75 2001-01-01T00:45
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2026.9.0 zarr==3.4.2 numpy==2.5.5
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

import numpy as np
import xarray as xr
import zarr

seen = []
for name, scale in (("scale_factor 1.0", {"scale_factor": 1.0}), ("scale_factor 1", {"scale_factor": 1}),
                    ("scale_factor 1, add_offset 0", {"scale_factor": 1, "add_offset": 0})):
    group = zarr.open_group("s.zarr", mode="w", zarr_format=3)
    for variable, attributes in (("number", {}), ("time", {"units": "hours since 2001-01-01"})):
        array = group.create_array(variable, shape=(1,), dtype="f8", dimension_names=["x"], attributes=scale | attributes)
        array[:] = 0.75
    read = xr.open_zarr("s.zarr", consolidated=False)
    number = read["number"]
    seen.append((str(number.dtype), float(number.values[0]), str(np.datetime_as_string(read["time"].values[0], "m"))))
    print(f"{name:31} {number.dtype} {number.values[0]:g} {seen[-1][2]}")
whole = ("float64", 0.75, "2001-01-01T00:45")
sys.exit(seen != [whole, ("int64", 0.0, "2001-01-01T00:00"), whole])
PYTHON
