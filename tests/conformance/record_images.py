"""Records images that TIFF files hold, as imagecodecs, virtual-tiff and tifffile name their codecs,
into recorded/images.json.gz, with the values that imagecodecs reads; those of LERC with a mask, and
of TIFF files, with GDAL's. Needs Python 3.12 and the packages of record_tiff.py, with
tifffile==2026.11.8.
"""

import base64
import pathlib
import tempfile
import warnings

import imagecodecs.numcodecs as codecs
import numpy as np
import rasterio
import tifffile
from record_tiff import described_by_virtual_tiff, format_2, recorder

warnings.filterwarnings("ignore")
random = np.random.default_rng(0)


def smooth(shape, dtype, step=3):
    """A gradient with some noise; the last dimension of a shape of three has colors."""
    rows, columns = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
    values = (step * rows
              + columns)[(...,) + (np.newaxis,) * (len(shape) - 2)] + random.integers(0, 9, shape)
    if len(shape) == 3:
        values = values + 20 * np.arange(shape[2])
    return values.astype(dtype)


def encoded():
    for shape in ((40, 48), (40, 48, 3)):
        values, chunks = smooth(shape, "u1"), (20, 24, *shape[2:])
        for name, codec in (("jpeg", codecs.Jpeg(level=85)),
                            ("jpeg 420", codecs.Jpeg(level=60, subsampling="420")),
                            ("jpeg optimized", codecs.Jpeg(level=95, optimize=True)),
                            ("jpeg2k", codecs.Jpeg2k(level=0)),
                            ("jpeg2k lossy", codecs.Jpeg2k(level=35, reversible=False)),
                            ("jpeg2k codestream", codecs.Jpeg2k(level=0, codecformat="j2k")),
                            ("lerc", codecs.Lerc(level=0)), ("lerc of 2", codecs.Lerc(level=2))):
            format_2(f"{name} {len(shape)}", values, chunks, None, codec, exact=False)
    rgb = smooth((40, 48, 3), "u1")
    for data, jpeg in (("RGB", "RGB"), ("RGB", "YCBCR"), (2, None), (2, 2)):
        format_2(f"jpeg {data} {jpeg}", rgb, (20, 24, 3), None,
                 codecs.Jpeg(level=90, colorspace_data=data, colorspace_jpeg=jpeg), exact=False)
    for colors, alpha in ((3, None), (3, True), (4, None), (4, True)):
        for options in ({"lossless": True}, {"level": 80}):
            values = smooth((40, 48, colors), "u1")
            if colors == 3 and alpha:
                values = np.concatenate([values, np.full((40, 48, 1), 255, "u1")], axis=2)
            format_2(f"webp {colors} {alpha} {options}", values, (20, 24, values.shape[2]), None,
                     codecs.Webp(hasalpha=alpha, **options), exact=False)
    for dtype in ("u2", "i2", "u4", "i1"):
        format_2(f"jpeg2k {dtype}", smooth((40, 48), dtype, 30 if dtype != "i1" else 1), (20, 24),
                 None, codecs.Jpeg2k(level=0), exact=False)
    for dtype in ("i1", "u2", "i2", "u4", "i4", "f4", "f8"):
        values = smooth((40, 48), dtype, 30 if dtype != "i1"
                            else 1) / np.array(7 if dtype[0] == "f" else 1, dtype)
        for options in ({}, {"compression": "zstd"}, {"compression": "deflate"}):
            format_2(f"lerc {dtype} {options}", values, (20, 24), None,
                     codecs.Lerc(level=0, **options), exact=False)
    for dtype in ("f4", "f8"):
        values = smooth((40, 48, 2), dtype)
        values[3:9, 4:7] = np.nan  # imagecodecs reads 0, GDAL NaN
        format_2(f"lerc {dtype} NaN", values, (20, 24, 2), None, codecs.Lerc(level=0), exact=False,
                 values=values)


def tiff():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.tif"
        for kind, bands, options in (("uint8", 1, {"compress": "jpeg"}),
                                     ("uint8", 3, {"compress": "jpeg"}),
                                     ("uint8", 3, {"compress": "jpeg", "photometric": "ycbcr"}),
                                     ("uint8", 3, {"compress": "webp", "webp_lossless": True}),
                                     ("uint8", 3, {"compress": "webp"}),
                                     ("float32", 1, {"compress": "lerc"}),
                                     ("float32", 1, {"compress": "lerc_zstd"}),
                                     ("float32", 1, {"compress": "lerc_deflate"}),
                                     ("int16", 1, {"compress": "lerc", "max_z_error": 2})):
            pixels = np.moveaxis(smooth((40, 48, bands), kind), 2, 0)
            if kind == "float32":
                pixels[:, 2:5, 7:11] = np.nan
            with rasterio.open(path, "w", driver="GTiff", height=40, width=48, count=bands,
                               dtype=kind, tiled=True, blockxsize=16, blockysize=16,
                               **options) as file:
                file.write(pixels)
            with rasterio.open(path) as file:
                values = file.read()
            name = "tiff " + " ".join([kind, str(bands), *(f"{k}={v}" for k, v in options.items())])
            if options["compress"] != "jpeg":
                described_by_virtual_tiff(name, path, values if bands > 1 else values[0])
                continue
            # virtual-tiff 0.5 refuses tables that tiles share; as tifffile describes them.
            with tifffile.TiffFile(path) as file:
                page = file.pages[0]
                jpeg, data = tifffile.tifffile.jpeg_decode_colorspace(
                    page.photometric, page.planarconfig, page.extrasamples, page.is_jfif)
                compressor = {"id": "imagecodecs_jpeg",
                              "tables": base64.b64encode(page.jpegtables).decode(), "header": None,
                              "bitspersample": page.bitspersample, "colorspace_jpeg": jpeg,
                              "colorspace_data": data}
                tiles = [file.filehandle.seek(at) and b"" or file.filehandle.read(size)
                         for at, size in zip(page.dataoffsets, page.databytecounts)]
            shape, tail = ((40, 48), ()) if bands == 1 else ((40, 48, 3), (0,))
            document = {"zarr_format": 2, "shape": shape, "chunks": (16, 16, *shape[2:]),
                        "dtype": "|u1", "order": "C", "fill_value": 0, "filters": None,
                        "compressor": compressor}
            chunks = {".".join(map(str, (i // 3, i % 3, *tail))): tile
                      for i, tile in enumerate(tiles)}
            recorder.keep(name, document, chunks,
                          values[0] if bands == 1 else np.moveaxis(values, 0, 2))


if __name__ == "__main__":
    encoded()
    tiff()
    recorder.write("images.json.gz")
