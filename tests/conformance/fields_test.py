"""Structured arrays: as a whole, and each field as a variable, against zarr-python."""

import base64
import io
import json

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, ShardingCodec, TransposeCodec, ZstdCodec

SHAPE, CHUNKS = (7, 5), (3, 2)
RECORD = np.dtype([("x", "<i4"), ("y", "<f8"), ("name", "S3")])
TIMES = np.dtype([("x", "<i4"), ("when", "<M8[s]")])
BIG = np.dtype([("x", ">i4"), ("flag", "?"), ("y", ">f4"), ("u", ">U2")])
EIGHT = np.dtype([("x", "<i4"), ("name", "S3"), ("flag", "u1")])
NESTED_EIGHT = np.dtype([("id", "u1"), ("position", [("lat", "<f4"), ("n", "<i2"), ("s", "S1")])])
NESTED = np.dtype([("id", "u1"), ("position", [("lat", "<f4"), ("lon", "<f8")])])



def records(dtype):
    values = np.zeros(SHAPE, dtype)
    random = np.random.default_rng(3)

    def fill(part):
        for name in part.dtype.names:
            if part.dtype[name].names:
                fill(part[name])
            elif part.dtype[name].kind in "SU":
                part[name] = random.choice(["", "a", "bc"], SHAPE)
            else:
                part[name] = random.integers(0, 100, SHAPE).astype(
                    part.dtype[name].newbyteorder("="))
    fill(values)
    return values


def leaves(values, prefix):
    for name in values.dtype.names:
        if values.dtype[name].names:
            yield from leaves(values[name], f"{prefix}.{name}")
        else:
            yield f"{prefix}.{name}", values[name]


def check(batchfs, store, expected, name="a"):
    whole = batchfs.npy("cat", store, name, "--decode", "raw")
    assert whole.tolist() == expected.tolist() and whole.dtype == expected.dtype.newbyteorder("<")
    for field, values in leaves(expected, name):
        ours = batchfs.npy("cat", store, field)
        native = values.dtype.newbyteorder("=")
        assert ours.dtype == native and ours.tobytes() == values.astype(native).tobytes(), field


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("compressor", [None, numcodecs.Zlib(1)], ids=["raw", "zlib"])
@pytest.mark.parametrize("dtype", [RECORD, BIG], ids=["record", "big"])
def test_format_2(batchfs, tmp_path, dtype, compressor, order):
    group = zarr.create_group(tmp_path, zarr_format=2)
    fill = np.zeros((), dtype)
    fill[dtype.names[0]] = 7
    array = group.create_array("a", shape=SHAPE, chunks=CHUNKS, dtype=dtype, compressors=compressor,
                               fill_value=fill[()], order=order)
    array[:4] = records(dtype)[:4]
    expected = zarr.open_group(tmp_path, mode="r")["a"][...]
    assert expected[6, 4][0] == 7
    check(batchfs, tmp_path, expected)


def structured_json(dtype):
    """The form that zarr-python 3.1 writes."""
    return {"name": "structured", "configuration": {"fields": [
        [name, structured_json(dtype[name]) if dtype[name].names else zarr.dtype.parse_data_type(
            dtype[name], zarr_format=3).to_json(zarr_format=3)] for name in dtype.names]}}


def written_as_bytes(path, dtype, zarr_format, **options):
    """Arrays that zarr-python does not write with structured types: of other ones of their size,
    whose metadata is changed then."""
    fill = np.zeros((), dtype)
    fill[dtype.names[0]] = 7
    expected = np.full(SHAPE, fill, dtype)
    expected[:4] = records(dtype)[:4]
    plain = np.dtype("<u8" if dtype.itemsize == 8 else f"V{dtype.itemsize}")
    array = zarr.create_array(path, **{"shape": SHAPE, "chunks": CHUNKS, "dtype": plain,
                                       "zarr_format": zarr_format,
                                       "fill_value": fill.view(plain)[()], **options})
    array[:4] = expected.view(plain)[:4]
    metadata = path / (".zarray" if zarr_format == 2 else "zarr.json")
    document = json.loads(metadata.read_text())
    document["fill_value"] = base64.b64encode(fill.tobytes()).decode()
    document["dtype" if zarr_format == 2
             else "data_type"] = dtype.descr if zarr_format == 2 else structured_json(dtype)
    metadata.write_text(json.dumps(document))
    return expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compressor", [None, numcodecs.Blosc("zstd")], ids=["raw", "blosc"])
@pytest.mark.parametrize("dtype", [NESTED, TIMES], ids=["nested", "times"])
def test_other_records_of_format_2(batchfs, tmp_path, dtype, compressor):
    expected = written_as_bytes(tmp_path / "a", dtype, 2, compressors=compressor)
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    check(batchfs, tmp_path, expected)


CHAINS = {"plain": dict(compressors=None), "zstd": dict(compressors=[ZstdCodec()]),
          "transposed": dict(filters=[TransposeCodec(order=(1, 0))], compressors=None)}
SHARDS = {
    "sharded": dict(shards=(6, 4), compressors=[ZstdCodec()]),
    "shards-in-shards": dict(chunks=(6, 4), compressors=None, serializer=ShardingCodec(chunk_shape=(
        3, 2), codecs=[ShardingCodec(chunk_shape=(1, 2), codecs=[BytesCodec(), ZstdCodec()])])),
    "shards-zstd": dict(chunks=(6, 4), compressors=[ZstdCodec()],
                        serializer=ShardingCodec(chunk_shape=(3, 2), codecs=[BytesCodec()])),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("dtype", [RECORD, TIMES, NESTED], ids=["record", "times", "nested"])
def test_format_3(batchfs, tmp_path, dtype, chain):
    group = zarr.create_group(tmp_path, zarr_format=3)
    fill = np.zeros((), dtype)
    fill[dtype.names[0]] = 7
    array = group.create_array("a", shape=SHAPE, chunks=CHUNKS, dtype=dtype, fill_value=fill[()],
                               **CHAINS[chain])
    array[:4] = records(dtype)[:4]
    expected = zarr.open_group(tmp_path, mode="r")["a"][...]
    assert expected[6, 4][0] == 7
    check(batchfs, tmp_path, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chain", SHARDS)
@pytest.mark.parametrize("dtype", [EIGHT, NESTED_EIGHT], ids=["record", "nested"])
def test_shards(batchfs, tmp_path, dtype, chain):
    zarr.create_group(tmp_path, zarr_format=3)
    check(batchfs, tmp_path, written_as_bytes(tmp_path / "a", dtype, 3, **SHARDS[chain]))


def of_the_specification(path, endian):
    """zarr-extensions, data type `struct`: fields as objects, the byte order for all of them."""
    fields = [{"name": "x", "data_type": "int16"},
              {"name": "p", "data_type": {"name": "struct", "configuration": {"fields": [
                  {"name": "t", "data_type": {"name": "numpy.datetime64",
                                              "configuration": {"unit": "s", "scale_factor": 1}}},
                  {"name": "v", "data_type": "float32"}]}}}]
    path.mkdir()
    (path / "zarr.json").write_text(
        json.dumps({"zarr_format": 3, "node_type": "array", "shape": [6],
                    "data_type": {"name": "struct", "configuration": {"fields": fields}},
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
                    "chunk_key_encoding": {"name": "default"},
                    "fill_value": {"x": -3, "p": {"t": "NaT", "v": "NaN"}},
                    "codecs": [{"name": "bytes", "configuration": {"endian": endian}}]}))
    order = "<" if endian == "little" else ">"
    stored = np.dtype([("x", order + "i2"), ("p", [("t", order + "M8[s]"), ("v", order + "f4")])])
    values = np.array([(i, (1000 * i, i / 3)) for i in range(4)], stored)
    (path / "c").mkdir()
    (path / "c/0").write_bytes(values.tobytes())
    return np.concatenate([values, np.array([(-3, ("NaT", np.nan))] * 2, stored)])


@pytest.mark.parametrize("endian", ["little", "big"])
def test_struct_as_specified(batchfs, tmp_path, endian):
    expected = of_the_specification(tmp_path / "a", endian)
    for field, values in leaves(expected, "a"):
        native = values.dtype.newbyteorder("=")
        ours = batchfs.npy("cat", tmp_path, field)
        assert ours.dtype == native and ours.tobytes() == values.astype(native).tobytes(), field


@pytest.mark.filterwarnings("ignore")
def test_views_take_fields(batchfs, tmp_path):
    group = zarr.create_group(tmp_path / "s", zarr_format=2)
    array = group.create_array("a", shape=SHAPE, chunks=CHUNKS, dtype=RECORD, compressors=None,
                               attributes={"_ARRAY_DIMENSIONS": ["time", "x"],
                                           "scale_factor": 10.0})
    array[...] = records(RECORD)
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"time": 2}, "variables": ["a.x", "a.y"], "batch": 3}))
    plan = json.loads(batchfs.bytes("plan", tmp_path / "s", "--view", view, "--json"))
    assert [t["name"] for t in plan["tensors"]] == ["a.x", "a.y"]
    batch = np.load(io.BytesIO(batchfs.bytes("batch", tmp_path / "s", "--view", view, "--format",
                                             "npz")))
    for field in "x", "y":
        assert np.array_equal(batch[f"a.{field}"], array[...][field][:6].reshape(3, 2, 5))
    listed = json.loads(batchfs.bytes("inspect", tmp_path / "s", "--json"))["arrays"]["a"]
    assert listed["fields"] == {"a.x": "int32", "a.y": "float64", "a.name": "|S3"}
    assert "a.x (int32), a.y (float64)" in batchfs.bytes("inspect", tmp_path / "s").decode()


def test_a_field_that_does_not_exist(batchfs, tmp_path):
    of_the_specification(tmp_path / "a", "little")
    assert "'a.z'" in batchfs.refusal("cat", tmp_path, "a.z")


def test_a_field_of_arrays_is_refused_by_name(batchfs, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.zarray").write_text(json.dumps({"zarr_format": 2, "shape": [2], "chunks": [2],
                                                    "dtype": [["x", "<i4"], ["many", "<i2", [3]]],
                                                    "order": "C", "fill_value": None,
                                                    "filters": None, "compressor": None}))
    values = np.array([(1, [2, 3, 4]), (5, [6, 7, 8])], [("x", "<i4"), ("many", "<i2", 3)])
    (tmp_path / "a/0").write_bytes(values.tobytes())
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    assert batchfs.npy("cat", tmp_path, "a.x").tolist() == [1, 5]
    assert batchfs.npy("cat", tmp_path, "a").tobytes() == values.tobytes()
    assert "a field that holds an array" in batchfs.refusal("cat", tmp_path, "a.many")


def test_names_that_are_no_names_of_files_are_left_out(batchfs, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.zarray").write_text(
        json.dumps({"zarr_format": 2, "shape": [2], "chunks": [2],
                    "dtype": [["../x", "<i4"], ["ok", "<i2"], ["\u0001", "|u1"]], "order": "C",
                    "fill_value": None, "filters": None, "compressor": None}))
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    assert (list(json.loads(batchfs.bytes("inspect", tmp_path, "--json"))["arrays"]["a"]["fields"])
            == ["a.ok"])


def test_kerchunks_record_member(batchfs, tmp_path):
    from kerchunk.codecs import RecordArrayMember
    stored = np.array([(i, i / 2) for i in range(6)], [("x", ">i2"), ("y", "<f8")])
    codec = RecordArrayMember("y", [("x", ">i2"), ("y", "<f8")])
    (tmp_path / ".zarray").write_text(
        json.dumps({"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<f8", "order": "C",
                    "fill_value": None, "filters": [codec.get_config()], "compressor": None}))
    (tmp_path / "0").write_bytes(stored.tobytes())
    assert batchfs.npy("cat", tmp_path, "/").tobytes() == codec.decode(stored.tobytes()).tobytes()
