#!/bin/bash
# imagecodecs 2026.10.10: the numcodecs codec `imagecodecs_lerc` reads pixels that were NaN as 0.
#
# LERC has no NaN: its encoder turns NaN into pixels that the image's mask leaves out, and its decoder gives 0 and the mask.
# The codec asks for no mask. So float data with gaps (clouds, sea) that were written by the codec itself, or by GDAL into a
# TIFF file that virtual-tiff refers to, have zeros in their place. Nothing is raised. GDAL reads NaN from the same bytes.
#
# Output seen:
#   imagecodecs.lerc_decode: 0.0 0.0, mask False
#   Zarr array: 0.0 instead of nan
#   GDAL reads nan, the codec from the same tile 0.0
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q zarr==3.4.2 numpy==2.5.5 imagecodecs==2026.10.10 imagecodecs-numcodecs==2026.10.10 \
  rasterio==1.5.2 tifffile==2026.11.8
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

import imagecodecs
import imagecodecs.numcodecs as codecs
import numpy as np
import rasterio
import tifffile
import zarr

pixels = np.arange(256, dtype="f4").reshape(16, 16)
pixels[2, 3] = np.nan

decoded = imagecodecs.lerc_decode(imagecodecs.lerc_encode(pixels, level=0), masks=False)
masked, mask = imagecodecs.lerc_decode(imagecodecs.lerc_encode(pixels, level=0), masks=True)
print(f"imagecodecs.lerc_decode: {decoded[2, 3]} {masked[2, 3]}, mask {bool(mask[2, 3])}")

array = zarr.create_array({}, shape=(16, 16), chunks=(16, 16), dtype="f4", zarr_format=2, compressors=codecs.Lerc(level=0))
array[:] = pixels
print(f"Zarr array: {array[2, 3]} instead of {pixels[2, 3]}")

with rasterio.open("a.tif", "w", driver="GTiff", height=16, width=16, count=1, dtype="float32", tiled=True, blockxsize=16,
                   blockysize=16, compress="lerc") as file:
    file.write(pixels, 1)
with rasterio.open("a.tif") as file:
    gdal = file.read(1)
with tifffile.TiffFile("a.tif") as file:
    page = file.pages[0]
    file.filehandle.seek(page.dataoffsets[0])
    tile = codecs.Lerc().decode(file.filehandle.read(page.databytecounts[0]))
print(f"GDAL reads {gdal[2, 3]}, the codec from the same tile {tile[2, 3]}")
sys.exit(not (decoded[2, 3] == 0 and masked[2, 3] == 0 and not mask[2, 3] and array[2, 3] == 0 and np.isnan(gdal[2, 3]) and tile[2, 3] == 0))
PYTHON
