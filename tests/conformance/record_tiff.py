"""Records TIFF files of GDAL as virtual-tiff describes them, with GDAL's values, into
recorded/tiff.json.gz. Needs Python 3.12; virtual-tiff 0.5.0 does not work with zarr 3.4:

    pip install zarr==3.2.1 numpy==2.5.5 virtualizarr==2.8.0 virtual-tiff==0.5.0 async-tiff==0.7.2 \
        imagecodecs==2026.10.10 imagecodecs-numcodecs==2026.10.10 rasterio==1.5.2
    python tests/conformance/record_tiff.py
"""

import itertools
import json
import pathlib
import tempfile
import warnings

import imagecodecs.numcodecs
import numpy as np
import rasterio
import zarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from recorded_arrays import Recorder
from virtual_tiff import VirtualTIFF
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

warnings.filterwarnings("ignore")
imagecodecs.numcodecs.register_codecs(verbose=False)
recorder = Recorder()


def tiff():
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.tif"
        cases = [(kind, bands, options)
                 for kind, bands in itertools.product(("uint8", "int16", "float32"), (1, 3))
                 for options in ({"compress": "lzw"}, {"compress": "packbits"},
                                 {"compress": "deflate", "predictor": 2},
                                 {"compress": "lzw", "predictor": 2, "interleave": "band"},
                                 {"compress": "zstd"}, {})]
        cases += [(kind, 1, {"compress": "deflate", "predictor": 3})
                  for kind in ("float32", "float64")]
        cases += [(kind, 1, {"compress": "lzw", "ENDIANNESS": "BIG", **options})
                  for kind, options in (("uint16", {}), ("int32", {}), ("uint16", {"predictor": 2}),
                                        ("float32", {"predictor": 2}),
                                        ("float32", {"predictor": 3}))]
        for kind, bands, options in cases:
            pixels = np.add.outer(np.add.outer(100 * np.arange(bands), np.arange(20)),
                                  np.arange(34)) + random.integers(0, 3, (bands, 20, 34))
            pixels = pixels.astype(kind) / np.array(3 if "float" in kind else 1, kind)
            with rasterio.open(path, "w", driver="GTiff", height=20, width=34, count=bands,
                               dtype=kind, tiled=True, blockxsize=16, blockysize=16,
                               **options) as file:
                file.write(pixels)
            with rasterio.open(path) as file:
                values = file.read()
            described = " ".join(f"{k}={v}" for k, v in options.items())
            described_by_virtual_tiff(f"tiff {kind} {bands} {described}", path,
                                      values if bands > 1 else values[0])


def described_by_virtual_tiff(name, path, values):
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    manifests = VirtualTIFF(ifd=0)(f"file://{path}", registry=registry)
    document = json.loads(sync(manifests.get("0/zarr.json", default_buffer_prototype())).to_bytes())
    document["attributes"] = {}
    file = path.read_bytes()
    chunks = {}
    for key, place in manifests._group.arrays["0"].manifest.dict().items():
        chunks["c/" + key.replace(".",
                                  "/")] = file[place["offset"]:place["offset"] + place["length"]]
    recorder.keep(name, document, chunks, values)



def plain_codecs():
    """Codecs of imagecodecs in format 2, as tifffile and kerchunk name them, and longer data than
    tiles have."""
    random = np.random.default_rng(1)
    noise, steps = random.integers(0, 256, (80, 64)).astype("u1"), (
        np.arange(80 * 64).reshape(80, 64) // 7 % 251).astype("u1")
    codecs = imagecodecs.numcodecs
    for name, values in (("noise", noise), ("steps", steps), ("zeros", np.zeros_like(noise))):
        for compressor in (codecs.Lzw(), codecs.Packbits(), codecs.Deflate(), codecs.Zstd()):
            format_2(f"{compressor.codec_id} {name}", values, (80, 64), None, compressor)
    for dtype in ("<u2", ">u2", "<i4", ">i4", "|i1", "<i8", "<f4", ">f8"):
        values = random.normal(0, 100, (8, 6, 3)).astype(dtype)
        format_2(f"delta {dtype}", values, (4, 6, 3), [codecs.Delta(shape=(4, 6, 3), dtype=dtype)],
                 codecs.Lzw())
        for axis in (-2, 0):
            format_2(f"delta {dtype} {axis}", values, (4, 6, 3),
                     [codecs.Delta(shape=(4, 6, 3), dtype=dtype, axis=axis)], None)
    for dtype in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
        values = random.normal(0, 100, (8, 6, 3)).astype(dtype)
        for axis, dist in ((-1, 1), (-2, 1), (-2, 2)):
            format_2(f"floatpred {dtype} {axis} {dist}", values, (4, 6, 3),
                     [codecs.Floatpred(shape=(4, 6, 3), dtype=dtype, axis=axis, dist=dist)], None)


def format_2(name, written, chunks, filters, compressor, exact=True, values=None):
    """Keeps `values`; by default those that are read back, which are those written if the codec is
    exact."""
    store = {}
    array = zarr.create_array(store, shape=written.shape, dtype=written.dtype, chunks=chunks,
                              fill_value=0, zarr_format=2, filters=filters, compressors=compressor)
    array[...] = written
    assert np.array_equal(array[...], written) or not exact
    values = array[...] if values is None else values
    recorder.keep(f"format 2 {name}", json.loads(store[".zarray"].to_bytes()),
                  {key: data.to_bytes() for key, data in store.items() if not key.startswith(".")},
                  values)


if __name__ == "__main__":
    tiff()
    plain_codecs()
    recorder.write("tiff.json.gz")
