"""Strings and bytes of any length, in every form that zarr-python and numcodecs write; values equal
theirs.

zarr-python 3 reads neither json2 nor categorize any more: there the oracle is numcodecs' own
decoder.
"""

import json

import numcodecs
import numpy as np
import pytest
import zarr
from numcodecs.vlen import VLenUTF8

SHAPE, CHUNKS = (7, 5), (3, 2)
WORDS = ["", "a", "h\u00e9llo", "\u6570\u5b66", "\U0001f600x", "a longer text than the others"]
BLOBS = [b"", b"a", b"\xff\xfe", b"\0in\0side", bytes(range(1, 200))]


def chosen(choices):
    random = np.random.default_rng(len(choices))
    values = np.empty(SHAPE, object)
    values[...] = np.array(choices, object)[random.integers(0, len(choices), SHAPE)]
    return values


def cat(batchfs, path):
    return batchfs.npy("cat", path, "/", "--decode", "raw").tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compressor", [None, "zstd", "blosc"])
@pytest.mark.parametrize("kind", ["string", "bytes"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_of_any_length(batchfs, tmp_path, zarr_format, kind, compressor):
    values, fill = (chosen(WORDS), "none") if kind == "string" else (chosen(BLOBS), b"fi\xfful")
    dtype = "string" if kind == "string" else zarr.dtype.VariableLengthBytes()
    if compressor is None:
        compressors = None
    elif zarr_format == 2:
        compressors = numcodecs.Zstd(1) if compressor == "zstd" else numcodecs.Blosc("lz4")
    else:
        compressors = (zarr.codecs.ZstdCodec() if compressor == "zstd"
                       else zarr.codecs.BloscCodec(cname="lz4"))
    path = tmp_path / "a"
    array = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype=dtype,
                              zarr_format=zarr_format, fill_value=fill, compressors=compressors)
    array[:4] = values[:4]
    oracle = zarr.open_array(path, mode="r")[...]
    assert oracle[6, 4] == fill and cat(batchfs, path) == oracle.tolist()


def write_v2(path, filters, compressor, chunks, shape=SHAPE, chunk_shape=CHUNKS, dtype="|O",
             fill=""):
    """An array of format 2, of encoded chunks by their keys."""
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(
        {"zarr_format": 2, "shape": shape, "chunks": chunk_shape, "dtype": dtype, "order": "C",
         "fill_value": fill, "filters": [codec.get_config() for codec in filters],
         "compressor": compressor and compressor.get_config()}))
    for key, chunk in chunks.items():
        (path / key).write_bytes(bytes(compressor.encode(chunk)) if compressor else bytes(chunk))


@pytest.mark.parametrize("compressor", [None, numcodecs.Zlib(1)], ids=["raw", "zlib"])
@pytest.mark.parametrize("codec", [numcodecs.JSON(), numcodecs.JSON(indent=2, ensure_ascii=False),
                                   VLenUTF8(), numcodecs.Categorize(WORDS[1:5], dtype=object),
                                   numcodecs.Categorize(WORDS[1:5], dtype=object, astype=">u2")],
                         ids=["json2", "json2-indented", "vlen-utf8", "categorize",
                              "categorize-big"])
def test_object_arrays_of_format_2(batchfs, tmp_path, codec, compressor):
    values = chosen(WORDS)
    expected = np.full(SHAPE, "none", object)
    chunks = {}
    for y in range(2):  # the last row of chunks is missing
        for x in range(3):
            chunk = np.full(CHUNKS, "", object)
            part = values[3 * y:3 * y + 3, 2 * x:2 * x + 2]
            chunk[:part.shape[0], :part.shape[1]] = part
            encoded = codec.encode(chunk)
            chunks[f"{y}.{x}"] = encoded.tobytes() if isinstance(encoded, np.ndarray) else encoded
            decoded = np.asarray(codec.decode(encoded)).reshape(CHUNKS)
            expected[3 * y:3 * y + 3, 2 * x:2 * x + 2] = decoded[:part.shape[0], :part.shape[1]]
    write_v2(tmp_path / "a", [codec], compressor, chunks, fill="none")
    assert cat(batchfs, tmp_path / "a") == expected.tolist()


def test_json2_of_what_was_never_written(batchfs, tmp_path):
    values = np.array(["a", None, 0, ""], object)
    write_v2(tmp_path / "a", [numcodecs.JSON()], None, {"0": numcodecs.JSON().encode(values)}, (4,),
             (4,))
    assert cat(batchfs, tmp_path / "a") == ["a", "", "", ""]


def test_json2_of_other_objects_is_refused(batchfs, tmp_path):
    values = np.array(["a", {"b": 1}], object)
    write_v2(tmp_path / "a", [numcodecs.JSON()], None, {"0": numcodecs.JSON().encode(values)}, (2,),
             (2,))
    assert "of json2, only strings are supported" in batchfs.refusal("cat", tmp_path / "a", "/")


@pytest.mark.parametrize("codec, why", [("pickle", "run code"), ("msgpack2", "vlen-utf8"),
                                        ("vlen-array", "padded")])
def test_other_objects_are_refused_by_name(batchfs, tmp_path, codec, why):
    write_v2(tmp_path / "a", [], None, {}, (2,), (2,))
    document = json.loads((tmp_path / "a/.zarray").read_text())
    (tmp_path / "a/.zarray").write_text(json.dumps({**document, "filters": [{"id": codec}]}))
    line = batchfs.refusal("cat", tmp_path / "a", "/")
    assert codec in line and why in line


@pytest.mark.parametrize("dtype, astype", [("<U4", "u1"), (">U4", "<u2"), ("<U9", ">i4")])
def test_categories_of_fixed_length(batchfs, tmp_path, dtype, astype):
    values = chosen(WORDS[:5]).astype(dtype)
    codec = numcodecs.Categorize([w for w in WORDS[1:4]], dtype=dtype, astype=astype)
    path = tmp_path / "a"
    array = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype=dtype, zarr_format=2,
                              filters=[codec], compressors=None, fill_value="")
    array[:4] = values[:4]
    oracle = zarr.open_array(path, mode="r")[...]
    ours = batchfs.npy("cat", path, "/", "--decode", "raw")
    assert ours.tolist() == oracle.tolist() and len({*oracle.ravel()}) > 2


def test_the_scan_verifies_them(batchfs, tmp_path):
    zarr.create_array(tmp_path / "b", shape=(4,), chunks=(2,),
                      dtype=zarr.dtype.VariableLengthBytes(),
                      fill_value=b"")[...] = np.array([b"a", b"bb", b"", b"c"], object)
    report = json.loads(batchfs.bytes("check", tmp_path / "b", "--json"))
    assert not report["findings"] and not report["not_checked"]
    (tmp_path / "b/c/1").write_bytes(b"\2\0\0\0")
    done = batchfs.run("check", tmp_path / "b")
    assert done.returncode == 1 and b"c/1" in done.stdout
