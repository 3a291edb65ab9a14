#!/bin/bash
# kerchunk 0.2.10 and VirtualiZarr 2.8.0 (xarray 2026.9.0): two NetCDF files, each packed to int16 with a scale of its own, as
# one virtual array.
#
# Writers that pack (ERA5's NetCDF files among them) choose scale_factor and add_offset for each file. An array of a
# reference set has one of each: kerchunk's MultiZarrToZarr and xarray.concat of virtual datasets take the first file's,
# without an error or a warning, and the second file's values are wrong. xarray.concat refuses with
# combine_attrs="identical" or "no_conflicts"; its default is "override".
#
# Output seen:
#   the files      [10. 10. 11. 11.]
#   kerchunk       [10. 10.  3.  3.]
#   virtualizarr   [10. 10.  3.  3.]
#   no_conflicts   MergeError
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q kerchunk==0.2.10 virtualizarr==2.8.0 h5py==3.16.0 h5netcdf==1.8.2 zarr==3.4.2 \
  obstore==0.12.1 fsspec==2026.9.0 xarray==2026.9.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os
import sys

import numpy as np
import xarray as xr
from kerchunk.combine import MultiZarrToZarr
from kerchunk.hdf import SingleHdf5ToZarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import HDFParser

paths = []
for i, (scale, offset) in enumerate([(0.01, 0.0), (0.02, 5.0)]):
    paths.append(f"{os.getcwd()}/{i}.nc")
    data = xr.Dataset({"t": (("time", "x"), np.full((2, 3), 10.0 + i))}, {"time": [2 * i, 2 * i + 1], "x": [0, 1, 2]})
    data.to_netcdf(paths[-1], engine="h5netcdf", encoding={"t": {
        "dtype": "i2", "scale_factor": scale, "add_offset": offset, "_FillValue": -9999, "chunksizes": (1, 3)}})


def read(references):
    how = {"fo": references, "remote_protocol": "file", "remote_options": {"asynchronous": True}}
    return xr.open_dataset("reference://", engine="zarr",
                           backend_kwargs={"consolidated": False, "storage_options": how}).t.values[:, 0]


right = xr.concat([xr.open_dataset(path) for path in paths], "time").t.values[:, 0]
singles = [SingleHdf5ToZarr(path, inline_threshold=0).translate() for path in paths]
kerchunk = read(MultiZarrToZarr(singles, concat_dims=["time"], identical_dims=["x"], remote_protocol="file").translate())
registry = ObjectStoreRegistry({"file://": LocalStore()})
virtual = [open_virtual_dataset(f"file://{path}", registry=registry, parser=HDFParser(), loadable_variables=["time", "x"])
           for path in paths]
virtualizarr = read(xr.concat(virtual, "time").vz.to_kerchunk(format="dict"))
try:
    xr.concat(virtual, "time", combine_attrs="no_conflicts")
    refused = "accepted"
except xr.MergeError as error:
    refused = type(error).__name__
print("the files     ", right)
print("kerchunk      ", kerchunk)
print("virtualizarr  ", virtualizarr)
print("no_conflicts  ", refused)
wrong = [10, 10, 3, 3]
sys.exit(not (right.tolist() == [10, 10, 11, 11] and kerchunk.round(3).tolist() == wrong
              and virtualizarr.round(3).tolist() == wrong and refused == "MergeError"))
PYTHON
