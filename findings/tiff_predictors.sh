#!/bin/bash
# virtual-tiff 0.5.0 (virtualizarr 2.8.0, imagecodecs 2026.10.10): TIFF files of big-endian byte order with a predictor.
#
# Predictor 2 stores differences of integers in the file's byte order, predictor 3 bytes in an order of its own. The codecs
# that virtual-tiff describes them by, HorizontalDeltaCodec and imagecodecs_floatpred, see the array that the codec "bytes"
# makes. With zarr 3.2.1 that is big-endian, HorizontalDeltaCodec takes it for little-endian, and predictor 2 gives other
# numbers; with 3.4.2 it is native, and predictor 3 gives other numbers. Nothing is raised. Little-endian files read right
# with both. GDAL writes the byte order of the machine unless told otherwise, but much older data are big-endian.
#
# Output seen:
#   zarr 3.2.1 predictor 2 200 44 744 65029 instead of 200 300 1000 5
#   zarr 3.2.1 predictor 3 equal
#   zarr 3.4.2 predictor 2 equal
#   zarr 3.4.2 predictor 3 -4.78989e+36 -1.68334e+37 -2.53592e+37 5 instead of 200 300 1000 5
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q zarr==3.4.2 numpy==2.5.5 virtualizarr==2.8.0 virtual-tiff==0.5.0 async-tiff==0.7.2 \
  imagecodecs==2026.10.10 imagecodecs-numcodecs==2026.10.10 rasterio==1.5.2
"$folder/venv/bin/pip" install -q --no-deps --target "$folder/older" zarr==3.2.1
cat > "$folder/read.py" <<'PYTHON'
import sys

import imagecodecs.numcodecs
import numpy as np
import rasterio
import zarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtual_tiff import VirtualTIFF

imagecodecs.numcodecs.register_codecs(verbose=False)
wrong = []
for predictor, kind in ((2, "uint16"), (3, "float32")):
    pixels = np.tile(np.array([200, 300, 1000, 5], kind), (16, 4))
    with rasterio.open("a.tif", "w", driver="GTiff", height=16, width=16, count=1, dtype=kind, tiled=True, blockxsize=16,
                       blockysize=16, compress="deflate", predictor=predictor, ENDIANNESS="BIG") as file:
        file.write(pixels, 1)
    with rasterio.open("a.tif") as file:
        assert np.array_equal(file.read(1), pixels)
    store = VirtualTIFF(ifd=0)(f"file://{sys.argv[1]}/a.tif", registry=ObjectStoreRegistry({"file://": LocalStore()}))
    got = zarr.open_group(store, mode="r", zarr_format=3)["0"][...]
    if not np.array_equal(got, pixels):
        wrong.append(predictor)
    print("zarr", zarr.__version__, "predictor", predictor, "equal" if np.array_equal(got, pixels) else
          " ".join(f"{value:g}" for value in got[0, :4]) + " instead of " + " ".join(f"{value:g}" for value in pixels[0, :4]))
sys.exit(wrong != [int(sys.argv[2])])
PYTHON
cd "$folder"
PYTHONPATH="$folder/older" "$folder/venv/bin/python" -W ignore read.py "$folder" 2
"$folder/venv/bin/python" -W ignore read.py "$folder" 3
