#!/bin/bash
# xarray 2026.9.0 (zarr 3.4.2): a missing value of integers whose units are a length of time is read as -9223372036854775808.
#
# Precipitation durations are int16 with "units": "hours" and "_FillValue": -1. Other units make float32 with NaN of them. With
# a unit of time, and without decode_timedelta (its default), xarray masks with NaT but does not decode: int64 with the
# bits of NaT, which isnull() does not find and mean() counts. It says so only in the dtype.
#
# Output seen:
#   hours        int64    [1, -9223372036854775808, 3]  isnull 0
#   millimetres  float32  [1.0, nan, 3.0]  isnull 1
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2026.9.0 zarr==3.4.2
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import xarray as xr
import zarr

seen = []
for units in "hours", "millimetres":
    group = zarr.open_group("s.zarr", mode="w", zarr_format=3)
    group.create_array("v", data=np.array([1, -1, 3], "i2"), dimension_names=["x"], attributes={"units": units, "_FillValue": -1})
    read = xr.open_zarr("s.zarr", consolidated=False)["v"]
    seen.append((str(read.dtype), str(read.values.tolist()), int(read.isnull().sum())))
    print(f"{units:12} {seen[-1][0]:8} {seen[-1][1]}  isnull {seen[-1][2]}")
sys.exit(seen != [("int64", "[1, -9223372036854775808, 3]", 0), ("float32", "[1.0, nan, 3.0]", 1)])
PYTHON
