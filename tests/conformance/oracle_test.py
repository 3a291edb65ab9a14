"""Arrays of every kind, written by zarr-python when the test runs; values equal zarr-python's to
the last byte.

Every array has edge chunks, and chunks that were never written, which are fill values.
"""

import itertools
import json
import lzma
import struct
import warnings

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec,
                         TransposeCodec, ZstdCodec)

SHAPE, CHUNKS, WRITTEN = (7, 5), (3, 2), np.s_[:4, :5]

DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<i4", ">i4", "<i8", ">u8", "<u2", ">u4", "<f2",
          ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16", "<M8[ns]", ">M8[D]",
          "<M8[25us]", "<m8[s]", ">m8[h]", "S1", "S5", "<U1", "<U4", ">U4", "V3"]

FILLS = {"?": True, "i": -3, "u": 3, "f": np.nan, "c": complex(1.5, np.nan), "S": b"x",
         "U": "\u00e9", "V": b"\1\2\3"}


def values_of(dtype):
    dtype = np.dtype(dtype)
    random = np.random.default_rng(dtype.num)
    if dtype.kind in "mM":
        values = random.integers(-10**6, 10**6, SHAPE)
        values[1, 2] = np.iinfo("i8").min  # NaT
        return values.view(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind == "S":
        return random.choice(np.array([b"", b"a", b"hello", b"\xff\xfe"]), SHAPE).astype(dtype)
    if dtype.kind == "U":
        return random.choice(np.array(["", "a", "h\u00e9llo", "\u6570", "\U0001f600x"]),
                             SHAPE).astype(dtype)
    if dtype.kind == "V":
        return np.frombuffer(random.bytes(np.prod(SHAPE) * dtype.itemsize), dtype).reshape(SHAPE)
    if dtype.kind == "b":
        return random.integers(0, 2, SHAPE).astype(dtype)
    values = random.normal(0, 40, SHAPE)
    if dtype.kind == "c":
        values = values + 1j * random.normal(0, 40, SHAPE)
    if dtype.kind in "fc":
        values[0, 1:5] = [np.nan, np.inf, -np.inf, -0.0]
    return (np.abs(values) if dtype.kind == "u" else values).astype(dtype)


def fill_of(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "mM":
        return np.array(77, "i8").view(dtype.newbyteorder("="))[()]
    return np.array(FILLS.get(dtype.kind, FILLS["?"])).astype(dtype)[()]


def name_of(value):
    return str(value).replace("/", "|")


class Case:
    """One array: its name and how zarr-python makes it."""

    def __init__(self, *name, dtype="<f4", **options):
        self.name = "-".join(map(name_of, name))
        self.dtype, self.options = dtype, options


def v2_cases():
    for dtype, order, separator in itertools.product(DTYPES, "CF", "./"):
        yield Case("dtype", dtype, order, "dot" if separator == "." else "slash",
                   dtype=dtype, order=order, compressors=None,
                   chunk_key_encoding={"name": "v2", "separator": separator})
    for dtype in DTYPES:
        yield Case("blosc", dtype, dtype=dtype,
                   compressors=numcodecs.Blosc("zstd", 5, numcodecs.Blosc.BITSHUFFLE))
    for codec, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"),
                                            (-1, 0, 1, 2)):
        for dtype in ("u1", "<i2", ">f8"):
            yield Case("blosc", codec, shuffle, dtype, dtype=dtype,
                       compressors=numcodecs.Blosc(codec, 9, shuffle))
    raw = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
    compressors = {"zstd": numcodecs.Zstd(3), "zstd-checksum": numcodecs.Zstd(1, checksum=True),
                   "gzip": numcodecs.GZip(1), "zlib": numcodecs.Zlib(9), "lz4": numcodecs.LZ4(),
                   "bz2": numcodecs.BZ2(1), "lzma": numcodecs.LZMA(preset=1),
                   "lzma-alone": numcodecs.LZMA(format=lzma.FORMAT_ALONE),
                   "lzma-raw": numcodecs.LZMA(lzma.FORMAT_RAW, filters=raw),
                   "crc32": numcodecs.CRC32(), "crc32-end": numcodecs.CRC32(location="end"),
                   "adler32": numcodecs.Adler32(), "fletcher32": numcodecs.Fletcher32(),
                   "crc32c": numcodecs.checksum32.CRC32C(),
                   "crc32c-start": numcodecs.checksum32.CRC32C(location="start"),
                   "adler32-end": numcodecs.Adler32(location="end"),
                   "jenkins_lookup3": numcodecs.JenkinsLookup3(),
                   "jenkins_lookup3-initval": numcodecs.JenkinsLookup3(initval=1234567890)}
    for (name, compressor), order in itertools.product(compressors.items(), "CF"):
        yield Case(name, order, compressors=compressor, order=order)
    filters = {
        "delta-i4": ("<i4", [numcodecs.Delta("<i4")]),
        "delta-big": (">i4", [numcodecs.Delta(">i4")]),
        "delta-narrow": ("<i8", [numcodecs.Delta("<i8", "<i4")]),
        "delta-u1": ("u1", [numcodecs.Delta("u1")]),
        "fixed-u2": (
            "<f4", [numcodecs.FixedScaleOffset(offset=-200, scale=10, dtype="<f4", astype="<u2")]),
        "fixed-i4": (
            "<f8", [numcodecs.FixedScaleOffset(offset=0.1, scale=1000, dtype="<f8", astype="<i4")]),
        "fixed-f4": ("<f8",
                     [numcodecs.FixedScaleOffset(offset=0.3, scale=7, dtype="<f8", astype="<f4")]),
        "quantize": ("<f8", [numcodecs.Quantize(2, "<f8", "<f4")]),
        "bitround": ("<f4", [numcodecs.BitRound(6)]),
        "astype": ("<f8", [numcodecs.AsType("<f4", "<f8")]),
        "astype-int": ("<i8", [numcodecs.AsType("<i2", "<i8")]),
        "packbits": ("?", [numcodecs.PackBits()]),
        "shuffle": ("<f8", [numcodecs.Shuffle(8)]),
        "delta-shuffle": ("<i4", [numcodecs.Delta("<i4", "<i2"), numcodecs.Shuffle(2)]),
    }
    for (name, (dtype, chain)), order in itertools.product(filters.items(), "CF"):
        for compressor in (None, numcodecs.Zlib(1)):
            yield Case(name, order, "zlib" if compressor else "raw", dtype=dtype, filters=chain,
                       compressors=compressor, order=order)


def v3_cases():
    little, big = BytesCodec(endian="little"), BytesCodec(endian="big")
    for dtype, endian in itertools.product(
            sorted({np.dtype(d).newbyteorder("<").str for d in DTYPES}), (little, big)):
        for compressors in (None, ZstdCodec(level=1)):
            yield Case("dtype", dtype, endian.endian.value, "zstd" if compressors else "raw",
                       dtype=dtype, serializer=endian, compressors=compressors)
    for name, separator in itertools.product(("default", "v2"), "./"):
        yield Case("keys", name, "dot" if separator == "." else "slash", compressors=None,
                   chunk_key_encoding={"name": name, "separator": separator})
    for codec, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"),
                                            ("noshuffle", "shuffle", "bitshuffle")):
        yield Case("blosc", codec, shuffle, compressors=BloscCodec(cname=codec, shuffle=shuffle))
    chains = {"gzip": [GzipCodec(level=1)], "crc32c": [Crc32cCodec()],
              "zstd-checksum": [ZstdCodec(checksum=True)],
              "zstd-crc32c": [ZstdCodec(), Crc32cCodec()],
              "blosc-gzip": [BloscCodec(), GzipCodec()]}
    for (name, chain), transposed in itertools.product(chains.items(), (False, True)):
        yield Case(name, "transposed" if transposed else "plain", compressors=chain,
                   filters=[TransposeCodec(order=(1, 0))] if transposed else None)
    indexes = {"crc": [little, Crc32cCodec()], "bare": [little], "big": [big, Crc32cCodec()]}
    inners = {"raw": [little], "big": [big], "zstd": [little, ZstdCodec()],
              "blosc-crc": [little, BloscCodec(), Crc32cCodec()],
              "transposed": [TransposeCodec(order=(1, 0)), little],
              "nested": [ShardingCodec(chunk_shape=(1, 2), codecs=[little, ZstdCodec()],
                                       index_location="start")]}
    for (index, index_codecs), (inner, codecs), location in itertools.product(
            indexes.items(), inners.items(), ("start", "end")):
        sharding = ShardingCodec(chunk_shape=(3, 2), codecs=codecs, index_codecs=index_codecs,
                                 index_location=location)
        yield Case("shard", inner, index, location, chunks=(6, 4), serializer=sharding,
                   compressors=None)
    whole = ShardingCodec(chunk_shape=(3, 2), codecs=[little])
    yield Case("shard-gzip", chunks=(6, 4), serializer=whole, compressors=[GzipCodec()])
    yield Case("shard-larger", chunks=(9, 8), serializer=whole, compressors=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are not part of the v3 specification
        from numcodecs import zarr3
        plain = {"zlib": zarr3.Zlib(level=1), "lz4": zarr3.LZ4(),
                 "bz2": zarr3.BZ2(), "lzma": zarr3.LZMA(preset=1), "zstd": zarr3.Zstd(level=1),
                 "blosc": zarr3.Blosc(cname="lz4"), "gzip": zarr3.GZip(level=1),
                 "shuffle": zarr3.Shuffle(elementsize=4), "crc32": zarr3.CRC32(),
                 "adler32": zarr3.Adler32(), "fletcher32": zarr3.Fletcher32(),
                 "crc32c": zarr3.CRC32C(), "crc32c-start": zarr3.CRC32C(location="start"),
                 "crc32-end": zarr3.CRC32(location="end"),
                 "jenkins_lookup3": zarr3.JenkinsLookup3(),
                 "jenkins_lookup3-initval": zarr3.JenkinsLookup3(initval=7)}
        for name, codec in plain.items():
            yield Case("numcodecs", name, compressors=[codec])
        filters = {"delta": ("<i4", zarr3.Delta(dtype="<i4", astype="<i2")),
                   "bitround": ("<f4", zarr3.BitRound(keepbits=5)),
                   "fixed": ("<f8",
                             zarr3.FixedScaleOffset(offset=3, scale=10, dtype="<f8", astype="<i4")),
                   "quantize": ("<f8", zarr3.Quantize(digits=2, dtype="<f8")),
                   "astype": ("<f8", zarr3.AsType(encode_dtype="<f4", decode_dtype="<f8")),
                   "packbits": ("?", zarr3.PackBits())}
        for name, (dtype, codec) in filters.items():
            yield Case("numcodecs", name, dtype=dtype, filters=[codec], compressors=None)


CASES = [pytest.param(zarr_format, case, id=f"v{zarr_format}-{case.name}")
         for zarr_format, cases in ((2, v2_cases()), (3, v3_cases())) for case in cases]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("oracle")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zarr_format, case", CASES)
def test_values(batchfs, folder, zarr_format, case):
    path = folder / f"v{zarr_format}-{case.name}".replace("<", "l").replace(">", "b")
    dtype = np.dtype(case.dtype)
    options = {"chunks": CHUNKS, **case.options}
    array = zarr.create_array(path, shape=SHAPE, dtype=dtype, zarr_format=zarr_format,
                              fill_value=fill_of(dtype), **options)
    array[WRITTEN] = values_of(dtype)[WRITTEN]
    oracle = zarr.open_array(path, mode="r")[...]
    ours = batchfs.npy("cat", path, "/", "--decode", "raw")
    assert ours.shape == oracle.shape
    assert ours.dtype == oracle.dtype.newbyteorder("=")
    assert ours.tobytes() == oracle.astype(oracle.dtype.newbyteorder("=")).tobytes()


@pytest.mark.parametrize("compressor", [None, numcodecs.GZip(1), numcodecs.Zstd(1)],
                         ids=["raw", "gzip", "zstd"])
@pytest.mark.parametrize("edges", ["padded", "truncated"])
@pytest.mark.parametrize("dtype", ["u1", ">i2", ">f8"])
def test_blocks_of_n5(batchfs, tmp_path, dtype, edges, compressor):
    """Written as N5's specification says: a header, then big-endian values, the first dimension
    fastest."""
    values = values_of(dtype)
    codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}},
              {"name": "bytes", "configuration": {"endian": "big"}}]
    if compressor:
        codecs.append({"name": compressor.codec_id, "configuration": {"level": 1}})
    (tmp_path / "zarr.json").write_text(
        json.dumps({"zarr_format": 3, "node_type": "array",
                    "shape": SHAPE, "fill_value": 7, "data_type": np.dtype(dtype).name,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNKS}},
                    "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
                    "codecs": [{"name": "n5_default", "configuration": {"codecs": codecs}}]}))
    for y, x in itertools.product(range(3), range(3)):
        block = values[CHUNKS[0] * y:CHUNKS[0] * (y + 1), CHUNKS[1] * x:CHUNKS[1] * (x + 1)]
        if edges == "padded":
            block = np.pad(block, [(0, c - n) for c, n in zip(CHUNKS, block.shape, strict=True)])
        data = block.tobytes("F")
        (tmp_path / f"{y}").mkdir(exist_ok=True)
        if (y, x) != (1, 1):  # is missing
            (tmp_path / f"{y}/{x}").write_bytes(struct.pack(">HHII", 0, 2, *block.shape)
                                                + bytes(compressor.encode(data) if compressor
                                                        else data))
    expected = values.copy()
    expected[3:6, 2:4] = 7
    ours = batchfs.npy("cat", tmp_path, "/", "--decode", "raw")
    assert ours.tobytes() == expected.astype(expected.dtype.newbyteorder("=")).tobytes()
