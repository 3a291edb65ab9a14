#!/bin/bash
# zarr 3.4.2: the codec scale_offset on int64 wraps where it raises for every other integer type.
#
# The codec multiplies by a scale when it writes, and its specification makes a result that does not fit an error. The
# products of int8 to int32 are computed in int64 and checked, and those of uint64 as Python integers. Products of int64 are
# computed in int64, too, so that the check compares numbers that have wrapped already. 2**61 written with scale 4 is stored
# as -2**63 and read as -2**61: nothing is raised, neither when writing nor when reading.
#
# Output seen:
#   int32  scale_offset produced a value outside the range of dtype int32 [-2147483648, 2147483647].
#   uint64 scale_offset produced a value outside the range of dtype uint64 [0, 18446744073709551615].
#   int64  wrote 2305843009213693952 read -2305843009213693952
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q zarr==3.4.2 numpy==2.5.5
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

import zarr
from zarr.codecs import ScaleOffset

seen = []
for dtype, value in (("int32", 2**29), ("uint64", 2**62), ("int64", 2**61)):
    array = zarr.create_array({}, shape=(1,), dtype=dtype, fill_value=0, filters=[ScaleOffset(scale=4)])
    try:
        array[0] = value
        seen.append(int(array[0]))
        print(f"{dtype:6}", "wrote", value, "read", seen[-1])
    except ValueError as error:
        seen.append(None)
        print(f"{dtype:6}", error)
sys.exit(seen != [None, None, -2**61])
PYTHON
