"""Writes what fuzzing starts from, tests/fuzz/corpus: small good inputs of every kind, made by the
libraries that write such data. Run again when a target's input changes: python3
tests/fuzz/make_corpus.py"""

import base64
import gzip
import io
import json
import pathlib
import struct
import tempfile
import zipfile
import zlib

import icechunk
import numcodecs
import numpy as np
import pyarrow
import pyarrow.parquet
import xarray as xr
import zarr

CORPUS = pathlib.Path(__file__).parent / "corpus"
IMAGES = pathlib.Path(__file__).parents[1] / "conformance/recorded/images.json.gz"
STEPS = (np.arange(2048) // 5).astype("<i4")
BYTES = np.frombuffer(bytes(i * i // 7 % 256 for i in range(2048)), "u1")
count = {}


def put(target, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    count[target] = count.get(target, 0) + 1
    (folder / f"{count[target]:02d}").write_bytes(data)


def files(entries):
    return b"".join(key.encode() + b"\0" + text.encode() + b"\0" for key, text in entries)


def metadata():
    time = np.arange("2000-01-01", "2000-01-03", np.timedelta64(6, "h"), dtype="M8[ns]")
    data = xr.Dataset({"t": (("time", "x"), np.ones((8, 3), "f4"), {"units": "K"}),
                       "s": (("x",), np.array(["a", "b", "c"]))},
                      {"time": time, "x": [1.0, 2.0, 4.0]})
    for form in (2, 3):
        for consolidated in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                store = pathlib.Path(folder) / "a.zarr"
                data.to_zarr(store, zarr_format=form, consolidated=consolidated, encoding={
                    "t": {"chunks": (4, 2), "dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}})
                names = [".zmetadata"] if form == 2 and consolidated else [
                    "zarr.json", ".zgroup", ".zattrs", ".zarray"]
                found = [p for p in sorted(store.rglob("*")) if p.name in names]
                put("metadata", files((str(p.relative_to(store)), p.read_text()) for p in found))
    with tempfile.TemporaryDirectory() as folder:
        zarr.create_array(folder + "/s.zarr", shape=(8, 8), chunks=(2, 2), shards=(4, 4),
                          dtype="f8", fill_value=float("nan"))
        put("metadata",
            files([("zarr.json", (pathlib.Path(folder) / "s.zarr/zarr.json").read_text())]))


def views():
    for view, statistics in [
        ({"name": "a", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 4}}, ""),
            ({"select": {"time": {"from": "2000-01-01", "to": "#9"}, "level": [500, 850]},
              "window": {"latitude": {"size": 3, "stride": 2, "wrap": True},
                         "time": {"size": 2, "edge": "pad"}},
              "tensors": {"x": {"variables": ["t", "q"], "offsets": {"time": [-1, 0]},
                                "stack": "channel", "dims": ["time", "channel", "latitude"]},
                          "y": {"variables": ["q"], "offsets": {"time": [1]}}},
              "batch": {"size": 3, "remainder": "pad"}, "order": {"shuffle": "block", "seed": 3},
              "epochs": 2, "dtype": "float16", "missing": {"nan": "fill", "value": 0},
              "formats": ["npy", "safetensors", "npz", "zarr"]}, ""),
            ({"window": {"time": 1}, "variables": ["t"],
              "normalize": {"method": "zscore", "statistics": "s.json"}},
             json.dumps({"variables": {"t": {"mean": 1.0, "std": 2.0, "min": 0, "max": 3}}})),
            ({"variables": ["t"],
              "xbatcher": {"input_dims": {"time": 5, "latitude": 3}, "input_overlap": {"time": 2},
                           "batch_dims": {"time": 10}, "concat_input_dims": True}}, ""),
            ({"window": {"time": 1}, "variables": ["q"], "missing": {"nan": "skip"},
              "order": {"shuffle": "global", "seed": 1}}, ""),
            ({"window": {"time": {"size": "3h", "stride": 1}, "latitude": 1},
              "reserve": {"time": ["-2h", "5h"]}, "batch": 9,
              "tensors": {"x": {"variables": ["t"], "offsets": {"time": ["-1h", "0h"]}}},
              "order": {"shuffle": "block"},
              "samples": {"spacing": {"time": "1h"}, "where": {"of": "footprint", "time": {
                  "month": [1], "hour": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
                  "season": ["DJF"], "from": "#1"}, "latitude": {"from": 10, "to": 50}}}}, ""),
            ({"window": {"time": {"size": 3, "edge": "pad"}},
              "tensors": {"x": {"variables": ["q", "orography"], "stack": "c", "broadcast": True,
                                "dims": ["latitude", "c", "time"], "offsets": {"time": [0, 1]}}},
              "dtype": "float32"}, ""),
            ({"window": {"time": {"size": 2, "stride": 1}, "latitude": {"size": 1}}, "batch": 5,
              "order": {"shuffle": "global"}, "split": {
                  "parts": {"train": "rest",
                            "val": [{"time": {"from": "2000-01-01T09"}, "latitude": [60, 50]}]},
                  "gap": {"time": "2h", "latitude": 1}, "with": {"train": {"batch": 3}}}}, ""),
            ({"window": {"time": {"size": 3, "stride": 1}}, "missing": {"nan": "skip"},
              "split": {"blocks": {"time": "5h"}, "fractions": {"a": 0.75, "b": 0.25}, "seed": 1,
                        "gap": {"time": 1}}}, ""),
            ({"window": {"latitude": 1, "time": {"size": 2, "wrap": True}},
              "split": {"groups": {"time": "day", "latitude": "value"}, "folds": 2,
                        "part": "fold-1-val"}}, ""),
    ]:
        put("view", json.dumps(view).encode() + b"\0" + statistics.encode())
    put("view",
        b"# as YAML\nwindow:\n  time: {size: 0x2, stride: 3h}\n"
        b"select: {time: {from: 2000-01-01, to: '#9'}}\n"
        b"tensors:\n  x: &a {variables: [t, \"q\"], stack: c}\n  y: *a\nbatch: 3\n\0")
    made = {"window": {"time": {"size": 2, "stride": 1}}, "batch": 3, "dtype": "float32",
            "tensors": {
                "x": {"variables": ["t", {"make": "cos_julian_day"},
                                    {"make": "cos_latitude", "units": "degrees", "name": "c"},
                                    {"make": "ratio", "of": ["t", "orography"]},
                                    {"make": "constant", "value": 2}],
                      "stack": "c", "offsets": {"time": [0, 3]}},
                "f": {"variables": [{"make": "year_progress"}]}},
            "normalize": {"method": "log1p", "scale": 2, "then": "robust", "statistics": "s.json",
                          "variables": ["ratio"]}}
    put("view", json.dumps(made).encode() + b"\0"
            + json.dumps({"ratio": {"median": 1, "p25": 0.5, "p75": 2}}).encode())
    for sources, view in [
        ({"a": {"stores": ["m{00..02}"], "concat": {"dim": "member"}}},
         {"window": {"member": {"size": 2, "stride": 1}, "time": 9},
          "select": {"member": [2, 0, 1]}, "variables": ["t", "orography"]}),
            ({"a": {"stores": ["x", "y"], "concat": {"dim": "m", "labels": ["north", "south"]}},
              "b": {"join": {"latitude": {"pick": "nearest", "period": 45, "tolerance": 7}}}},
             {"window": {"time": 4}, "variables": ["q", "b:q"], "batch": 3}),
            ({"a": {}, "b": {"join": {"latitude": {"ratio": "1/2", "missing": "pad"},
                                      "level": {"ratio": 2, "missing": "pad"}}}},
             {"window": {"time": 4}, "variables": ["b:orography", "q"], "batch": 3}),
    ]:
        put("view", json.dumps({"sources": sources} | view).encode() + b"\0")
    coarse = {"window": {"time": {"size": 4, "stride": 1}}, "batch": 2,
              "tensors": {"x": {"variables": ["q", {"make": "ratio", "of": ["t", "q"]}],
                                "stack": "c", "offsets": {"time": [0, 2]},
                                "coarsen": {"latitude": 1, "time": {"size": 2, "how": "max"}}}}}
    put("view", json.dumps(coarse).encode() + b"\0")


def values():
    """The first byte is the type's number in values.cc."""
    def put_values(number, array, attributes, label):
        put("values", bytes([number]) + json.dumps(attributes).encode() + b"\0" + label.encode()
                + b"\0" + array.tobytes())

    steps = np.arange(12)
    put_values(2, steps.astype("<i2"),
               {"scale_factor": 0.5, "add_offset": 10, "_FillValue": -1, "missing_value": [3, 4]},
               "11:12")
    put_values(3, steps.astype(">i4"),
               {"units": "hours since 2000-01-01 12:00", "calendar": "standard"},
               "2000-01-01T13:2000-01")
    put_values(4, steps.astype("<i8"), {"units": "days since 1500-01-01", "calendar": "noleap"},
               "#3:#-1")
    put_values(5, steps.astype("u1"), {"_Unsigned": "true", "valid_range": [0, 5]}, "3,4,5")
    put_values(8, steps.astype("<f2"), {"scale_factor": 0.1}, "0.5")
    put_values(10, steps.astype("<f8") / 3, {"missing_value": "NaN", "units": "seconds"}, "0:2.5")
    put_values(12, (steps + 1j).astype("<c16"), {}, "#7")
    put_values(13, np.array(list("abcdef"), "S1"), {"_Encoding": "utf-8"}, "a")
    put_values(15, np.array(["ab", "c"], "<U2"), {}, "ab,c")
    put_values(17, steps.astype("<M8[Y]"), {}, "1975")
    put_values(22, steps.astype("<M8[ns]"), {"_FillValue": 0}, "1970-01-01")
    put_values(27, steps.astype("<m8[ns]"), {}, "5")
    put_values(28, np.zeros(2, [("a", "<i2"), ("b", ">f4", 2), ("c", "S2")]), {}, "#0")


def codecs():
    """The first byte is the codec's number in codec.cc, then come where a range begins and how long
    it is."""
    def coded(number, data):
        put("codec", struct.pack("<BHH", number, 100, 300) + bytes(data))

    for cname, shuffle in (("lz4", 1), ("zstd", 2), ("blosclz", 0), ("zlib", 1)):
        coded(0, numcodecs.Blosc(cname, 5, shuffle, blocksize=512).encode(BYTES))
    coded(0, numcodecs.Blosc("lz4", 5, 1, blocksize=256).encode(STEPS[:512]))
    coded(1, numcodecs.Zstd(3).encode(BYTES))
    coded(1, numcodecs.Zstd(1, checksum=True).encode(BYTES[:1000])
              + numcodecs.Zstd(1).encode(BYTES[1000:]))
    coded(2, numcodecs.LZ4().encode(BYTES))
    coded(3, numcodecs.GZip(5).encode(BYTES))
    coded(4, numcodecs.Zlib(5).encode(BYTES))
    coded(5, numcodecs.BZ2(5).encode(BYTES))
    coded(6, numcodecs.LZMA().encode(BYTES))
    import lzma
    coded(7, numcodecs.LZMA(format=lzma.FORMAT_ALONE).encode(BYTES))
    coded(8, numcodecs.LZMA(format=lzma.FORMAT_RAW,
                            filters=[{"id": lzma.FILTER_DELTA, "dist": 4},
                                     {"id": lzma.FILTER_LZMA2, "preset": 1}]).encode(BYTES))
    coded(10, numcodecs.CRC32().encode(BYTES))
    coded(11, numcodecs.Adler32().encode(BYTES))
    coded(12, numcodecs.Shuffle(4).encode(BYTES))
    coded(13, numcodecs.Delta("<i4").encode(STEPS).tobytes())
    coded(14, numcodecs.PackBits().encode(BYTES > 100).tobytes())
    coded(17, STEPS.astype(">i4").tobytes())
    from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec
    for number, codec in (
            (19, ShardingCodec(chunk_shape=(8, 16), codecs=[BytesCodec(), ZstdCodec()],
                               index_codecs=[BytesCodec()])),
            (20, ShardingCodec(chunk_shape=(16, 8), codecs=[BytesCodec()], index_location="start",
                               index_codecs=[BytesCodec(), Crc32cCodec()]))):
        store = {}
        zarr.create_array(store, shape=(32, 64), chunks=(32, 64), dtype="<i4", serializer=codec,
                          filters=None, compressors=None,
                          fill_value=0)[...] = STEPS.reshape(32, 64) * (np.arange(32)[:, None] < 20)
        coded(number, store["c/0/0"].to_bytes())
    coded(21, numcodecs.Fletcher32().encode(BYTES))
    coded(22, numcodecs.JenkinsLookup3(initval=3).encode(BYTES))
    coded(23, numcodecs.Categorize(["a", "bc"], "<U2").encode(np.array(["a", "bc", "", "d"] * 512,
                                                                       "<U2")).tobytes())
    coded(24, np.array([(i, 2 * i) for i in range(2048)], [("x", "<i2"), ("y", "<i4")]).tobytes())
    from numcodecs.zfpy import ZFPY
    field = np.sin(np.arange(2048, dtype="f4") / 50).reshape(32, 64)
    for options in ({"mode": 4, "tolerance": 1e-3}, {"mode": 3, "precision": 12},
                    {"mode": 2, "rate": 4}):
        coded(25, ZFPY(**options).encode(field))

    def texts(number, data, count):
        put("codec", struct.pack("<BHH", number, 0, count) + bytes(data))

    words = np.array(["", "a", "h\u00e9llo"], object)
    texts(26, numcodecs.VLenUTF8().encode(words), 3)
    texts(27, numcodecs.VLenBytes().encode(np.array([b"", b"a", b"\xff\0"], object)), 3)
    texts(28, numcodecs.JSON().encode(words), 3)
    texts(29, b"\1\2\0", 3)
    import eccodes
    field = np.sin(np.arange(16) / 5)
    for sample, packings in (("regular_ll_sfc_grib2",
                              ("grid_simple", "grid_complex_spatial_differencing",
                               "grid_jpeg", "grid_ccsds", "grid_ieee")),
                             ("regular_ll_sfc_grib1", ("grid_simple",))):
        for packing in packings:
            message = eccodes.codes_grib_new_from_samples(sample)
            eccodes.codes_set(message, "Ni", 4)
            eccodes.codes_set(message, "Nj", 4)
            eccodes.codes_set_values(message, field)
            eccodes.codes_set(message, "packingType", packing)
            texts(30, eccodes.codes_get_message(message), 16)
            eccodes.codes_release(message)
    for rows, columns in ((32, 64), (10, 3)):
        block = STEPS[:rows * columns].astype(">i4").reshape(rows, columns).tobytes("F")
        coded(31, struct.pack(">HHII", 0, 2, rows, columns) + bytes(numcodecs.Zstd().encode(block)))
    import h5py
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("a", data=STEPS[:400].reshape(20, 20), chunks=(20, 20),
                                   compression="szip", compression_opts=("ec", 8))
        coded(34, data.id.read_direct_chunk((0, 0))[1])
    coded(35, (3 * STEPS).tobytes())
    for number, dtype in ((36, "<f4"), (37, "<f8"), (38, "<i2"), (39, "<f8"), (40, ">i4"),
                          (41, "<i4"), (42, "<i4"), (43, "<f4"), (46, "<i4"), (47, ">u2"),
                          (48, "u1"), (49, "u1")):
        coded(number, STEPS.astype(dtype).tobytes())
    coded(44, bytes.fromhex("801860503824160b0100"))  # imagecodecs.lzw_encode(b"a" * 20)
    coded(45, bytes.fromhex("feaa0280002afdaa0380002a22f7aa"))  # imagecodecs.packbits_encode
    numbers = {"jpeg 2": 50, "jpeg 420 3": 50, "jpeg RGB YCBCR": 51, "jpeg2k codestream 2": 52,
               "jpeg2k 3": 52, "lerc 2": 53, "lerc f4 NaN": 53,
               "webp 3 None {'lossless': True}": 54, "webp 4 None {'level': 80}": 54}
    for array in map(json.loads, gzip.decompress(IMAGES.read_bytes()).splitlines()):
        if number := numbers.get(array["name"].removeprefix("format 2 ")):
            coded(number, base64.b64decode(next(iter(array["chunks"].values()))))


def chunks_for_the_gpu():
    """The first byte is the codec's number in gpu_decode.cc, then comes what it decodes to."""
    def coded(number, data, size=2048):
        put("gpu_decode", struct.pack("<BH", number, size) + bytes(data))

    for cname, shuffle in (("lz4", 1), ("lz4", 2), ("zstd", 1), ("zstd", 0)):
        coded(0, numcodecs.Blosc(cname, 5, shuffle, blocksize=512).encode(STEPS[:512]))
    coded(1, numcodecs.Zstd(3).encode(BYTES))
    coded(1, numcodecs.Zstd(19, checksum=True).encode(STEPS[:512]))
    coded(1, numcodecs.Zstd(1).encode(BYTES[:1000]) + numcodecs.Zstd(1).encode(BYTES[1000:]))
    coded(2, numcodecs.LZ4().encode(BYTES))
    coded(5, numcodecs.Shuffle(4).encode(STEPS[:100]), 400)
    for level, strategy in ((0, zlib.Z_DEFAULT_STRATEGY), (1, zlib.Z_DEFAULT_STRATEGY),
                            (6, zlib.Z_FIXED), (9, zlib.Z_RLE)):
        for number, window in ((3, 15), (4, 31)):
            deflate = zlib.compressobj(level, zlib.DEFLATED, window, 2, strategy)
            coded(number, deflate.compress(BYTES.tobytes()) + deflate.flush())
    coded(4, gzip.compress(BYTES[:1000].tobytes(), 6, mtime=0)
              + gzip.compress(BYTES[1000:].tobytes(), 9, mtime=0))
    # A byte, then a match of 119 bytes that begins 80 before it.
    coded(2, struct.pack("<I", 125) + bytes([0x1f, 1, 80, 0, 100, 0x50, 1, 2, 3, 4, 5]), 125)


def shard_indexes():
    missing = (1 << 64) - 1
    put("shard_index", struct.pack("<Q8Q", 1000, 0, 24, 24, 24, missing, missing, 48, 24))
    put("shard_index", struct.pack("<Q8Q", 1000, 990, 24, missing, 0, 0, missing, 1 << 63, 1 << 63))


def zips():
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("zarr.json", '{"zarr_format": 3}' * 3)
            archive.writestr("t/c/0/0", BYTES[:200].tobytes())
            archive.writestr("t/c/0/1", b"")
            archive.mkdir("empty")
            archive.comment = b"a comment"
        put("zip", file.getvalue())
    file = io.BytesIO(b"before")
    file.seek(6)
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("big", "w", force_zip64=True) as member:
            member.write(b"zip64")
    put("zip", file.getvalue())


def unpacked(file):
    """A file of an Icechunk repository without its compression, which would hide it from the
    fuzzer."""
    if not file.startswith(b"ICE\xf0\x9f\xa7\x8aCHUNK") or file[38] != 1:
        return file
    return file[:38] + b"\0" + bytes(numcodecs.Zstd().decode(file[39:]))


def repository(folder, leave_out=("transactions", "config.yaml", "overwritten")):
    found = [p for p in sorted(folder.rglob("*"))
             if p.is_file() and p.relative_to(folder).parts[0] not in leave_out]
    return b"".join(str(p.relative_to(folder)).encode() + b"\0"
                    + struct.pack("<I", len(unpacked(p.read_bytes()))) + unpacked(p.read_bytes())
                    for p in found)


def repositories():
    """Repositories of version 1. icechunk 2.3.0 made those of version 2 (icechunk/v2-*) in the same
    way."""
    with tempfile.TemporaryDirectory() as folder:
        made = icechunk.Repository.create(icechunk.local_filesystem_storage(folder))
        session = made.writable_session("main")
        root = zarr.create_group(session.store)
        root.create_array("g/a", shape=(4, 4), chunks=(2, 2), dtype="i2")[:] = 7
        root.create_array("native", shape=(8, 8, 16), chunks=(8, 8, 16), dtype="f4",
                          compressors=None)[:] = np.arange(1024).reshape(8, 8, 16)
        root.create_array("scalar", shape=(), dtype="f8")[...] = 1
        session.store.set_virtual_ref("g/a/c/0/1", "s3://example-archive/data/x.bin", offset=3,
                                      length=8, checksum="tag", validate_container=False)
        made.create_tag("t", snapshot_id=session.commit("one"))
        put("icechunk", repository(pathlib.Path(folder)))


def reference_sets():
    plain = json.dumps(
        {"version": 1, "templates": {"u": "x", "f": "{{c}}.nc"},
         "gen": [{"key": "g/{{i}}", "url": "{{u}}.nc", "offset": "{{(i + 1) * 8 // 2}}",
                  "length": "4", "dimensions": {"i": {"start": 0, "stop": 3, "step": 1}}}],
         "refs": {".zgroup": {"zarr_format": 2}, "a/.zarray": "{}",
                  "a/0.0": ["{{f(c='y')}}", 10, 20], "a/0.1": ["x.nc"], "a/1.0": "base64:AAEC",
                  "b/c/0/1": ["s3://example-archive/x.nc", 1, 2],
                  "b/c/2/0": ["/etc/x", 1, 2]}}).encode()
    put("references", b"\0" + plain)
    put("references", b"\0" + json.dumps({
        "metadata": {"a/.zarray": {"shape": [4, 4], "chunks": [2, 2]}, ".zgroup": {}},
        "record_size": 10}).encode())
    rows = {"path": ["x.nc", "x.nc", None, "y.nc"], "offset": [1, 2, 0, 0], "size": [3, 4, 0, 0],
            "raw": [None, None, b"abc", None]}
    table = pyarrow.table({"path": pyarrow.array(rows["path"]),
                           "offset": pyarrow.array(rows["offset"], pyarrow.int64()),
                           "size": pyarrow.array(rows["size"], pyarrow.int64()),
                           "raw": pyarrow.array(rows["raw"], pyarrow.binary())})
    for options in ({"compression": "snappy"},
                    {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"},
                    {"compression": "none", "row_group_size": 2},
                    {"compression": "gzip", "write_statistics": False}):
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file, store_schema=False, **options)
        put("references", b"\1" + file.getvalue())
    put("references", b"\0" + gzip.compress(plain, mtime=0))
    put("references", b"\0" + bytes(numcodecs.Zstd().encode(plain)))


def answers():
    def answer(service, status, body, headers=""):
        put("answers", bytes([service, status]) + headers.encode() + b"\0" + body.encode())

    answer(0, 0,
           '<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>'
           '<NextContinuationToken>n</NextContinuationToken><Contents><Key>p/.zattrs</Key>'
           '</Contents><CommonPrefixes><Prefix>p/t2m/</Prefix></CommonPrefixes></ListBucketResult>')
    for status, code in ((2, "PermanentRedirect"), (5, "ExpiredToken"), (7, "AccessDenied"),
                         (8, "NoSuchKey"), (13, "SlowDown")):
        answer(0, status,
               f"<Error><Code>{code}</Code><Message>m</Message><Region>eu-west-1</Region></Error>",
               "x-amz-bucket-region: eu-west-1\n")
    answer(1, 0, '{"nextPageToken":"CgI=","prefixes":["p/t2m/"],'
                 '"items":[{"name":"p/"},{"name":"p/.zattrs"}]}')
    answer(1, 7, '{"error":{"code":403,"message":"m","errors":[{"reason":"forbidden"}]}}')
    answer(2, 0, '<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>p/.zattrs</Name>'
                 '</Blob><BlobPrefix><Name>p/t2m/</Name></BlobPrefix></Blobs>'
                 '<NextMarker>n</NextMarker></EnumerationResults>')
    answer(2, 7, "", "x-ms-error-code: AuthenticationFailed\n")
    answer(3, 1, "0123456789",
           "content-range: bytes 5-14/100\ncontent-length: 10\netag: \"a\"\nretry-after: 3\n")
    answer(3, 10, "", "content-range: bytes */4\nlast-modified: Sat, 21 Nov 2026 07:28:00 GMT\n"
                      "retry-after: Sat, 21 Nov 2026 07:28:00 GMT\n")
    answer(3, 0, "<html></html>", "content-type: text/html\n")


def messages():
    """gpu/handoff/protocol.h."""
    def message(kind, body, version=1):
        return struct.pack("<IHH", 8 + len(body), kind, version) + body

    def framed(*all_messages):
        return b"".join(struct.pack("<H", len(m)) + m for m in all_messages)

    def hello_of(view, world=1, version=1):
        return message(1, struct.pack("<IIQqq16sII256s", 0, 2, 0, 0, world, b"", 1, 0, view),
                       version)

    hello = hello_of(b"v")
    start = message(2, struct.pack("<QqqqqII", 1, 0, 0, 1, 10, 2, 0))
    get = message(3, struct.pack("<Qqq", 7, 1, 3))
    release = message(4, struct.pack("<IIQ", 1, 0, 1))
    want = message(5, struct.pack("<QII", 1, 4, 0))
    put("handoff_server",
        framed(hello, start, get, release, want, message(4, struct.pack("<IIQQ", 2, 0, 2, 3))))
    put("handoff_server",
        framed(hello, get, get, message(2, struct.pack("<QqqqqII", 2, 1, 1, 2, 3, 64, 0)), want))
    put("handoff_server",
        framed(hello_of(b"p", 4), message(2, struct.pack("<QqqqqII", 1, 0, 12, 1, 4, 3, 0)),
               message(3, struct.pack("<Qqq", 1, 0, 15))))

    put("handoff_server", framed(hello_of(b"v", version=2), start, get, release, want))

    source = (pathlib.Path(__file__).parent / "handoff_reader.cc").read_text()
    schema, view = (part.split(')"')[0] for part in source.split('R"(')[1:3])

    def sent(descriptors, data):
        return struct.pack("<BH", descriptors, len(data)) + data

    welcome = message(64,
                      struct.pack("<IIQQqqqqII", 1, 64, len(schema), len(view), 40, 4, 10, 2, 0, 1))
    records = (struct.pack("<QQII", 5, 4096, 1, 3) + struct.pack("<QQII", 0, 96, 0, 3)
               + struct.pack("<3q", 4, 1, 6))

    def batch(lease, stream, request):
        return message(65, struct.pack("<QQQqqqIIII", lease, stream, request, 0, 0, 4, 1, 1, 3, 0)
                           + records)

    failed = message(67, struct.pack("<QQQqqIIII", 2, 1, 0, 0, 1, 3, 3, 3, 0) + b"whyv/0")
    end = message(66, struct.pack("<Q", 1))
    put("handoff_reader", sent(1, welcome) + sent(1, batch(1, 1, 0)) + sent(0, failed)
            + sent(1, batch(3, 1, 0)) + sent(0, end) + sent(1, batch(4, 0, 1)))
    # Version 2: the coordinate, and the windows of each batch, in the message or in a memory file.
    welcome = message(64,
                      struct.pack("<IIQQqqqqII", 1, 64, len(schema), len(view), 40, 4, 10, 2, 0, 1)
                          + struct.pack("<QII", 16 + 40 * 8, 1, 2), 2)

    def labelled(lease, stream, request, windows):
        return message(65, struct.pack("<QQQqqqIIII", lease, stream, request, 0, 0, 4, 1, 1, 3, 0)
                           + records + windows, 2)

    inline = struct.pack("<II12q", 4, 0, 7, 3, 12, 39, 7, 0, 3, 1, 12, 2, 39, 6)
    put("handoff_reader", sent(1, welcome) + sent(1, labelled(1, 1, 0, inline))
            + sent(2, labelled(2, 1, 0, struct.pack("<II", 4, 1))) + sent(0, end))
    put("handoff_reader", sent(0, message(68, struct.pack("<IIII", 1, 3, 5, 0) + b"whywhere")))


def inits():
    """fs/fuse/fuse_abi.h: whether passthrough is wanted, libfuse's reply, the kernel's request."""
    def asked(opcode, flags, flags2):
        return (struct.pack("<IIQQIIIHH", 104, opcode, 2, 0, 0, 0, 0, 0, 0)
                + struct.pack("<5I44x", 7, 41, 131072, flags, flags2))

    reply = struct.pack("<4I2H2I2H2IH22x", 7, 36, 131072, 1 << 30 | 1, 128, 96, 1 << 20, 1, 256, 0,
                        0, 0, 0)
    put("fuse_init", b"\1" + reply + asked(26, 0x73fffffb, 0xff))
    put("fuse_init", b"\0" + reply + asked(26, 0x03fffffb, 0))
    put("fuse_init", b"\1" + reply + asked(1, 0, 0))


if __name__ == "__main__":
    for seed in CORPUS.glob("*/[0-9][0-9]"):
        seed.unlink()
    for make in (metadata, values, views, codecs, chunks_for_the_gpu, shard_indexes, zips,
                 repositories, reference_sets, answers, messages, inits):
        make()
    put("program", bytes(100))
    put("program", struct.pack("<BBB10B", 2, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
            + struct.pack("<QQQIxxxx", 0, 64, 128, 0) + bytes(64))
    print(count)
