#!/bin/bash
# xarray 2026.9.0 (zarr 3.4.2, pandas 3.1.1): to_zarr(append_dim="time") of times finer than the store's units.
#
# A store of daily steps has int64 times in "days since". Appending steps of six hours makes xarray serialize these in hours, of
# which it warns, and write the numbers behind the others, whose units stay days: three steps on 4 January become
# 13 March, 19 March and 25 March. Nothing is raised; with warnings off, nothing is said.
#
# Output seen:
#   warning  Times can't be serialized faithfully to int64 with requested units 'days since 2000-01-01'. Serializing
#            with units 'hours since 2000-01-01' instead. ...
#   units    days since 2000-01-01 00:00:00
#   appended ['2000-01-04T00' '2000-01-04T06' '2000-01-04T12']
#   read     ['2000-03-13T00' '2000-03-19T00' '2000-03-25T00']
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2026.9.0 zarr==3.4.2 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import warnings

import numpy as np
import pandas as pd
import xarray as xr
import zarr


def steps(start, frequency):
    time = pd.date_range(start, periods=3, freq=frequency)
    return xr.Dataset({"t": ("time", np.arange(3.0))}, {"time": time})


steps("2000-01-01", "D").to_zarr("s.zarr", zarr_format=2)
late = steps("2000-01-04", "6h")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    late.to_zarr("s.zarr", append_dim="time")
for each in said:
    print("warning ", each.message)
wrote = late.time.values.astype("M8[h]")
read = xr.open_zarr("s.zarr").time.values[3:].astype("M8[h]")
print("units   ", zarr.open_group("s.zarr", mode="r")["time"].attrs["units"])
print("appended", wrote.astype(str))
print("read    ", read.astype(str))
sys.exit(not read.astype(str).tolist() == ["2000-03-13T00", "2000-03-19T00", "2000-03-25T00"])
PYTHON
