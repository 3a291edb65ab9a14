#!/bin/bash
# imagecodecs 2026.10.10 (libjpeg-turbo): `imagecodecs_jpeg` decodes a JPEG tile that was cut off, and raises nothing.
#
# libjpeg reports the end of its input as a warning and goes on with gray blocks; the codec drops warnings. An array whose
# chunk was cut off in transfer, or by a wrong length in a reference, has pixels that nobody wrote. A WebP and a JPEG 2000
# tile of the same array, cut off at half, are errors.
#
# Output seen:
#   jpeg: the chunk at half its length is read, 54 % of its pixels differ
#   jpeg2k: Jpeg2kError
#   webp: WebpError
set -eu
for python in python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q zarr==3.4.2 numpy==2.5.5 imagecodecs==2026.10.10 imagecodecs-numcodecs==2026.10.10
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

import imagecodecs.numcodecs as codecs
import numpy as np
import zarr

pixels = np.random.default_rng(0).integers(0, 255, (128, 128, 3)).astype("u1")
outcomes = {}
for name, codec in (("jpeg", codecs.Jpeg(level=90)), ("jpeg2k", codecs.Jpeg2k(level=0)), ("webp", codecs.Webp(lossless=True))):
    store = {}
    array = zarr.create_array(store, shape=pixels.shape, chunks=pixels.shape, dtype="u1", zarr_format=2, compressors=codec)
    array[:] = pixels
    whole = array[:]
    store["0.0.0"] = zarr.core.buffer.cpu.Buffer.from_bytes(store["0.0.0"].to_bytes()[:len(store["0.0.0"]) // 2])
    try:
        differs = (array[:] != whole).any(axis=2).mean()
        outcomes[name] = round(100 * differs)
        print(f"{name}: the chunk at half its length is read, {100 * differs:.0f} % of its pixels differ")
    except Exception as error:
        outcomes[name] = type(error).__name__
        print(f"{name}: {outcomes[name]}")
sys.exit(not (isinstance(outcomes["jpeg"], int) and outcomes["jpeg"] > 0 and isinstance(outcomes["jpeg2k"], str) and isinstance(outcomes["webp"], str)))
PYTHON
