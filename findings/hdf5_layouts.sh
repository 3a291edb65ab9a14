#!/bin/bash
# kerchunk 0.2.10 and VirtualiZarr 2.8.0 (h5py 3.16.0, zarr 3.4.2): HDF5 datasets whose bytes are not in chunks or in one block
# of the file.
#
# HDF5 has three more layouts: compact (a small dataset inside its header), external (raw files beside it), and virtual
# (pieces of other files' datasets). Reference sets made of such files have the dataset's metadata and no key for its
# bytes, without a warning. Readers take what is missing for the fill value: the variable is there, with wrong values.
# (kerchunk reads what is smaller than inline_threshold, 500 bytes unless told; here it is 0, as for larger data.)
#
# Output seen:
#   compact   h5py [0 1 2 3]  kerchunk [0 0 0 0]  virtualizarr [0 0 0 0]
#   external  h5py [0 1 2 3]  kerchunk [0 0 0 0]  virtualizarr [0 0 0 0]
#   virtual   h5py [0 1 2 3]  kerchunk [0 0 0 0]  virtualizarr [0 0 0 0]
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q kerchunk==0.2.10 virtualizarr==2.8.0 h5py==3.16.0 zarr==3.4.2 obstore==0.12.1 \
  fsspec==2026.9.0 xarray==2026.9.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os
import sys

import h5py
import numpy as np
import zarr
from kerchunk.hdf import SingleHdf5ToZarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import HDFParser

values = np.arange(4, dtype="i4")
here = os.getcwd()


def compact(file):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(values.shape)
    h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, how).write(h5py.h5s.ALL, h5py.h5s.ALL, values)


def external(file):
    file.create_dataset("x", (4,), "i4", external=[(f"{here}/raw.bin", 0, 16)])[:] = values


def virtual(file):
    with h5py.File("source.h5", "w") as source:
        source["x"] = values
    layout = h5py.VirtualLayout((4,), "i4")
    layout[:] = h5py.VirtualSource(f"{here}/source.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


def of_kerchunk(path):
    references = SingleHdf5ToZarr(path, inline_threshold=0).translate()
    store = zarr.storage.FsspecStore.from_url("reference://", storage_options={
        "fo": references, "remote_protocol": "file", "remote_options": {"asynchronous": True}})
    return zarr.open_group(store, mode="r")["x"][:]


def of_virtualizarr(path):
    store = HDFParser()(url=f"file://{path}", registry=ObjectStoreRegistry({"file://": LocalStore()}))
    return zarr.open_group(store, mode="r", zarr_format=3)["x"][:]


as_seen = True
for make in (compact, external, virtual):
    path = f"{here}/{make.__name__}.h5"
    with h5py.File(path, "w") as file:
        make(file)
    with h5py.File(path) as file:
        right = file["x"][:]
    got = of_kerchunk(path), of_virtualizarr(path)
    print(f"{make.__name__:9} h5py {right}  kerchunk {got[0]}  virtualizarr {got[1]}")
    as_seen &= (right == values).all() and not any(each.any() for each in got)
sys.exit(not as_seen)
PYTHON
