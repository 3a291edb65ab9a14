#!/bin/bash
# xarray 2026.9.0 (pandas 3.1.1, numpy 2.4.6): selecting several uint64 labels by a list of Python integers.
#
# `sel(cell=[a, b])` makes an array of the list before it compares. numpy makes float64 of integers of which some are below
# and some from 2^63 on, so each label is rounded to a float64 and the nearest identifier is taken in silence: another
# cell's value. One label alone, and an array of dtype uint64, are exact. HEALPix and S2 identifiers lie there.
#
# Output seen:
#   one label        1
#   array of uint64  [1 0]
#   list of integers [2 0]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2026.9.0 pandas==3.1.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import xarray as xr

cells = np.array([7, 2**63 + 1, 2**63 + 2], "u8")
dataset = xr.Dataset({"v": ("cell", [0, 1, 2])}, {"cell": cells})
wanted = [2**63 + 1, 7]
one = dataset.v.sel(cell=wanted[0]).item()
exact = dataset.v.sel(cell=np.array(wanted, "u8")).values
listed = dataset.v.sel(cell=wanted).values
print("one label       ", one)
print("array of uint64 ", exact)
print("list of integers", listed)
sys.exit(not (one == 1 and exact.tolist() == [1, 0] and listed.tolist() == [2, 0]))
PYTHON
