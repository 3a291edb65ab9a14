"""Types of zarr-extensions that numpy lacks, against ml_dtypes: every code, in shards and
compressed, missing chunks, and copies. Also chunks that are stored in another shape."""

import itertools
import json

import ml_dtypes
import numcodecs
import numpy as np
import pytest
import zarr

READ_AS = {"int2": "i1", "int4": "i1", "uint2": "u1", "uint4": "u1", "bfloat16": "f4",
           "float8_e8m0fnu": "f4"}
TYPES = [*READ_AS, "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
         "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
SHARDS = [{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [4, 16], "codecs": ["BYTES"], "index_location": "end",
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]
CHAINS = {"raw": ["BYTES"],
          "zstd": ["BYTES", {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
          "transposed": [{"name": "transpose", "configuration": {"order": [1, 0]}}, "BYTES"],
          "sharded": SHARDS}


def store(folder, shape, chunk, data_type, codecs, chunks, fill=0):
    for key, data in chunks.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(data)
    (folder / "zarr.json").write_text(
        json.dumps({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
                    "fill_value": fill,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
                    "codecs": codecs, "attributes": {}, "chunk_key_encoding": {"name": "default"},
                    "dimension_names": [f"d{i}" for i in range(len(shape))]}))


def with_bytes(codecs, endian):
    text = json.dumps(codecs).replace(
        '"BYTES"', json.dumps({"name": "bytes", "configuration": {"endian": endian}}))
    return json.loads(text)


def encoded(chain, codes):
    data = codes.tobytes()
    if chain == "zstd":
        return numcodecs.Zstd().encode(data)
    if chain == "transposed":
        return codes.T.tobytes()
    if chain == "sharded":  # the second chunk is missing
        first = codes[:4].tobytes()
        return first + np.array([0, len(first)] + 6 * [2**64 - 1], "<u8").tobytes()
    return data


@pytest.mark.parametrize("chain, endian", itertools.product(CHAINS, ("little", "big")))
@pytest.mark.parametrize("name", TYPES)
def test_every_code(batchfs, tmp_path, name, chain, endian):
    if name == "bfloat16":
        codes = np.arange(0, 65536, 37, "u2")[:256].reshape(16, 16)
        stored = codes.astype(">u2" if endian == "big" else "<u2")
    else:
        stored = codes = np.arange(256, dtype="u1").reshape(16, 16)
    small = np.dtype(getattr(ml_dtypes, name))
    meant = codes
    if "int" in name:  # ml_dtypes has no other bits there
        bits = int(name[-1])
        meant = codes & (2**bits - 1)
        meant = np.where((meant >= 2**(bits - 1)) & (name[0] == "i"), meant.astype("i2") - 2**bits,
                         meant).astype(READ_AS[name])
    elif name.startswith(("float4", "float6")):
        meant = codes & (2**int(name[5]) - 1)
    expected = (meant.view(small) if "int" not in name else meant).astype(READ_AS.get(name, "f2"))
    fill = 1
    if chain == "sharded":
        expected = expected.copy()
        expected[4:] = fill
    expected = np.concatenate([expected, np.full((4, 16), fill, expected.dtype)])
    store(tmp_path, [20, 16], [16, 16], name, with_bytes(CHAINS[chain], endian),
          {"c/0/0": encoded(chain, stored)}, fill)
    ours = batchfs.npy("cat", tmp_path, "/", "--decode", "raw")
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours, expected)
    kept = ~np.isnan(expected)
    # of zeros, too
    np.testing.assert_array_equal(np.signbit(ours[kept]), np.signbit(expected[kept]))


@pytest.mark.parametrize("fill, value", [("NaN", np.nan), (0.1, ml_dtypes.bfloat16(0.1)),
                                         ("0xc040", -3), ("-Infinity", -np.inf)])
def test_fill_values(batchfs, tmp_path, fill, value):
    store(tmp_path, [3], [2], "bfloat16", with_bytes(["BYTES"], "little"), {}, fill)
    np.testing.assert_array_equal(batchfs.npy("cat", tmp_path, "/", "--decode", "raw"),
                                  np.full(3, value, "f4"))


@pytest.mark.parametrize("name, form",
                         itertools.product(("bfloat16", "int4", "float8_e5m2"), (2, 3)))
def test_copies_have_the_type_in_memory(batchfs, tmp_path, name, form):
    values = np.array([1, -2, 0, 1.5, -8, 3])
    small = values.astype(getattr(ml_dtypes, name))
    array = tmp_path / "in.zarr" / "a"
    array.mkdir(parents=True)
    fill = {"bfloat16": "0xc040", "int4": -3, "float8_e5m2": "0xc2"}[name]  # -3
    store(array, [8], [6], name, with_bytes(["BYTES"], "little"), {"c/0": small.tobytes()}, fill)
    (tmp_path / "in.zarr/zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group",
                                                            "attributes": {}}))
    batchfs.bytes("rechunk", tmp_path / "in.zarr", "--format", form, "-o", tmp_path / "out.zarr",
                  "--chunks", "d0=4")
    copy = zarr.open_array(tmp_path / "out.zarr" / "a", mode="r")
    dtype = READ_AS.get(name, "f2")
    assert copy.dtype == dtype
    # format 2 would mask it; its missing chunks are written
    assert copy.fill_value == (-3 if form == 3 else None)
    np.testing.assert_array_equal(copy[...], np.append(small.astype(dtype), np.full(2, -3, dtype)))
    view = tmp_path / "v.json"
    view.write_text(json.dumps({"window": {"d0": 2}, "variables": ["a"], "batch": 4}))
    batch = batchfs.npy("batch", tmp_path / "in.zarr", "--view", view)
    assert batch.dtype == dtype
    np.testing.assert_array_equal(batch.ravel(), copy[...])


RESHAPES = [([[0, 1], -1], (8, 6)), ([-1], (48,)), ([[0], 2, 2, [2]], (2, 2, 2, 6)),
            ([[0], [1], [], [2]], (2, 4, 1, 6))]


@pytest.mark.parametrize("shape, result", RESHAPES)
@pytest.mark.parametrize("rest", ["raw", "big", "zstd", "transposed", "sharded"])
def test_chunks_in_another_shape(batchfs, tmp_path, shape, result, rest):
    values = np.random.default_rng(0).integers(0, 30000, (2, 4, 12)).astype("<i2")
    codecs = [{"name": "reshape", "configuration": {"shape": shape}}]
    if rest == "transposed":
        codecs.append({"name": "transpose",
                       "configuration": {"order": list(range(len(result)))[::-1]}})
    numbers = {"name": "bytes", "configuration": {"endian": "big" if rest == "big" else "little"}}
    if rest == "sharded":
        codecs.append({"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(result), "codecs": [numbers],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}})
    else:
        codecs.append(numbers)
    if rest == "zstd":
        codecs.append({"name": "zstd", "configuration": {"level": 1, "checksum": False}})
    chunks = {}
    for x in range(2):
        chunk = np.ascontiguousarray(values[..., 6 * x:6 * x + 6]).reshape(result)
        data = (chunk.astype(">i2") if rest == "big" else chunk.T.copy() if rest == "transposed"
                else chunk).tobytes()
        if rest == "zstd":
            data = numcodecs.Zstd().encode(data)
        if rest == "sharded":
            data += np.array([0, len(data)], "<u8").tobytes()
        chunks[f"c/0/0/{x}"] = data
    store(tmp_path, [2, 4, 12], [2, 4, 6], "int16", codecs, chunks)
    np.testing.assert_array_equal(batchfs.npy("cat", tmp_path, "/", "--decode", "raw"), values)
    part = batchfs.npy("cat", tmp_path, "/", "--decode", "raw", "--select", "d1=#2", "--select",
                       "d2=#7")
    np.testing.assert_array_equal(part.ravel(), values[:, 2, 7])
