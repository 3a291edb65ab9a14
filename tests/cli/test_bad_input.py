"""Stores and views that are damaged, wrong or absurd: one clear line and exit code 1, or the right
values; never a crash, a hang, or memory without bound."""

import functools
import http.server
import io
import json
import lzma
import pathlib
import resource
import shutil
import threading

import numcodecs
import numpy as np
import pytest
import zarr

V2 = {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype": "<f4", "compressor": None,
      "fill_value": 0, "order": "C", "filters": None}
V3 = {"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "float32",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
      "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
      "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
      "attributes": {}}
VALUES = np.arange(8, dtype="<f4") * 1.5


def write_array(folder, name, metadata, chunks=None):
    path = folder / name
    path.mkdir(parents=True)
    v3 = metadata["zarr_format"] == 3
    (path / ("zarr.json" if v3 else ".zarray")).write_text(json.dumps(metadata))
    if chunks is None:
        chunks = {("c/" if v3 else "") + str(i): VALUES[4 * i:4 * i + 4].tobytes()
                  for i in range(2)}
    for key, data in chunks.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(data)
    return path


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def cat(batchfs, path, *options):
    return batchfs("cat", path, "/", "--decode", "raw", *options, preexec_fn=limited)


# ---- the place ----

@pytest.mark.parametrize("command", [("inspect",), ("cat", "x"), ("view",)], ids=lambda c: c[0])
def test_what_is_no_store(fails, tmp_path, command):
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/readme.txt").write_text("hello")
    for place, why in (("nothing", "no such directory"), ("file", "this is a file"),
                       ("empty", "not a Zarr store"), ("other", "not a Zarr store"),
                       ("nothing.zip", "")):
        line = fails(1, command[0], tmp_path / place, *command[1:])
        assert why in line and place in line


def test_plan_batch_and_mount_of_what_is_no_store(fails, tmp_path):
    view = tmp_path / "view.json"
    view.write_text('{"window": {"time": 1}}')
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    assert "no such directory" in fails(1, "plan", tmp_path / "nothing", "--view", view)
    assert "no such directory" in fails(1, "batch", tmp_path / "nothing", "--view", view)
    assert "no such directory" in fails(1, "mount", tmp_path / "nothing", mountpoint)


@pytest.mark.parametrize("name, contents, words", [
    ("air.nc", b"\x89HDF\r\n\x1a\n" + bytes(100), "a NetCDF-4 or HDF5 file"),
    ("air.nc", b"CDF\x01" + bytes(100), "a NetCDF file"),
    ("gfs.grb2", b"GRIB" + bytes(100), "a GRIB file"),
    ("scene.tif", b"II*\0" + bytes(100), "a TIFF file"),
    ("store.zarr", b"PK\x03\x04" + bytes(100), "a zip archive"),
])
def test_other_files_are_refused_by_name(fails, tmp_path, name, contents, words):
    (tmp_path / name).write_bytes(contents)
    line = fails(1, "inspect", tmp_path / name)
    assert f"this is {words}, which batchfs does not read; " in line and name in line


OLD_ICECHUNK = "an Icechunk repository without a branch main, or from before Icechunk 0.1.3"


@pytest.mark.parametrize("files, words", [
    ({"refs/branch.main/ref.json": '{"snapshot": "A"}', "snapshots/A": "", "manifests/A": ""},
     OLD_ICECHUNK),
    ({"attributes.json": '{"n5": "2.0.0"}'}, "an N5 store"),
    ({"meta": "{}", "attrs": "{}", "0.0": ""}, "a store of Zarr format 1"),
])
@pytest.mark.parametrize("place", ["folder", "zip", "http"])
def test_other_stores_are_refused_by_name(fails, tmp_path, place, files, words):
    if place == "http" and "format 1" in words:
        pytest.skip("nothing tells where nothing can be listed")
    server = None
    folder = tmp_path / "store"
    for key, text in files.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_text(text)
    where = folder
    if place == "zip":
        where = shutil.make_archive(str(folder), "zip", folder)
    if place == "http":
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_port}"
    try:
        for arguments in (("inspect", where), ("cat", where, "x")):
            assert f"this is {words}, which batchfs does not read; " in fails(1, *arguments)
    finally:
        if server:
            server.shutdown()
            server.server_close()


VIRTUAL = pathlib.Path(__file__).resolve().parents[2].parent / "shared/fixtures/virtual"


@pytest.mark.skipif(not VIRTUAL.exists(), reason="the fixtures of virtual stores are not here")
@pytest.mark.parametrize("path, words", [
    ("neuroglancer/virtual_ref.icechunk", OLD_ICECHUNK),
    ("kerchunk/air.nc", "a NetCDF-4 or HDF5 file"),
    ("kerchunk/tinygrib.grb2", "a GRIB file"),
    ("titiler-xarray/observation_1.nc", "a NetCDF-4 or HDF5 file"),
])
def test_real_stores_of_other_kinds(fails, path, words):
    assert f"this is {words}, " in fails(1, "inspect", VIRTUAL / path)


# ---- metadata ----

@pytest.mark.parametrize("metadata", [V2, V3], ids=["v2", "v3"])
def test_metadata_cut_short(fails, tmp_path, metadata):
    text = json.dumps(metadata)
    path = write_array(tmp_path, "a", metadata)
    file = path / ("zarr.json" if metadata is V3 else ".zarray")
    for length in range(0, len(text), 7):
        file.write_text(text[:length])
        assert "not valid JSON at line 1, column" in fails(1, "cat", path, "/")


@pytest.mark.parametrize("data", [b"\0" * 100, b"\xff\xfe\xff", b"\x1f\x8b\x08\0\0",
                                  b"<html>404</html>", b"[" * 100000, b'{"a":' * 1000,
                                  b'{"a": 1e999}', b'{"a": "\xff"}', b"nul", b'"' + b"x" * 1000000],
                         ids=["zeros", "binary", "gzip", "html", "deep", "deep-objects", "overflow",
                              "text", "nul", "open"])
@pytest.mark.parametrize("name", [".zarray", ".zmetadata", "zarr.json"])
def test_what_is_no_json(fails, tmp_path, name, data):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_bytes(data)
    assert name in fails(1, "inspect", tmp_path / "a")


WRONG = [None, True, -1, 1.5, 2**63, 10**400, "x", "", [], [None], [-1], ["x"], [[1]], {},
         {"name": 7}]


@pytest.mark.parametrize("key, metadata",
                         [(key, metadata) for metadata in (V2, V3) for key in metadata],
                         ids=lambda x: x if isinstance(x, str) else f"v{x['zarr_format']}")
def test_a_wrong_type_under_every_key(batchfs, tmp_path, key, metadata):
    for number, wrong in enumerate(WRONG):
        done = cat(batchfs, write_array(tmp_path, str(number), {**metadata, key: wrong}))
        assert done.returncode in (0, 1), (wrong, done.stderr)
        if done.returncode == 1:
            text = done.stderr.decode()
            assert text.startswith("batchfs: cat failed: ") and text.count("\n") == 1, text
        else:
            assert np.load(io.BytesIO(done.stdout)).shape == (8,)


@pytest.mark.parametrize("change, words", [
    ({"shape": [2**63]}, "shape[0]"),
    ({"shape": [2**62, 2], "chunks": [1, 1]}, "2^63"), ({"shape": [2**62]}, "2^63 bytes"),
    ({"chunks": [2**40]}, "1 TB"), ({"chunks": [0]}, "chunks[0]"), ({"shape": [-8]}, "shape[0]"),
    ({"shape": [1] * 40, "chunks": [1] * 40}, "dimensions"),
])
def test_absurd_sizes(fails, tmp_path, change, words):
    path = write_array(tmp_path, "a", {**V2, **change})
    for command in (("inspect", path), ("cat", path, "/"), ("view", path)):
        assert words in fails(1, *command)


@pytest.mark.parametrize("shape, chunks",
                         [([2**40], [1]), ([2**60], [2**20]), ([2**30, 2**30], [1, 1])])
def test_arrays_of_very_many_chunks_are_read_in_part(good, tmp_path, shape, chunks):
    path = write_array(tmp_path, "a", {**V2, "shape": shape, "chunks": chunks, "fill_value": 2.5})
    good("inspect", path)
    options = {"preexec_fn": limited}
    select = [word for d in range(len(shape))
              for word in ("--select", f"dim_{d}=#{shape[d] - 3}:#{shape[d]}")]
    values = np.load(io.BytesIO(good("cat", path, "/", "--decode", "raw", *select, **options)))
    assert values.shape == (3,) * len(shape) and (values == 2.5).all()


@pytest.mark.parametrize("compressor",
                         [None, {"id": "zstd"}, {"id": "blosc"}, {"id": "lz4"}, {"id": "gzip"}],
                         ids=lambda c: c["id"] if c else "raw")
@pytest.mark.parametrize("order", "CF")
def test_a_tiny_file_for_a_chunk_of_half_a_terabyte(fails, tmp_path, compressor, order):
    data = {None: b"abc", "zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc(),
            "lz4": numcodecs.LZ4(), "gzip": numcodecs.GZip()}
    codec = data[compressor["id"] if compressor else None]
    stored = codec if isinstance(codec, bytes) else bytes(codec.encode(b"abcd"))
    path = write_array(tmp_path, "a", {**V2, "shape": [2**18, 2**19], "chunks": [2**18, 2**19],
                                       "compressor": compressor, "order": order}, {"0.0": stored})
    fails(1, "cat", path, "/", "--decode", "raw", "--select", "dim_0=#1", "--select", "dim_1=#1",
          preexec_fn=limited)


def test_a_sparse_file_of_a_terabyte_for_a_chunk_of_16_bytes(fails, tmp_path):
    path = write_array(tmp_path, "a", {**V2, "compressor": {"id": "zstd"}}, {"0": b""})
    with open(path / "0", "r+b") as file:
        file.truncate(1 << 40)
    assert "bytes or more, decoded it should have 16 (0)" in fails(
        1, "cat", path, "/", preexec_fn=limited)


# ---- chunks ----

CODECS = {"raw": None, "zstd": numcodecs.Zstd(), "gzip": numcodecs.GZip(), "zlib": numcodecs.Zlib(),
          "lz4": numcodecs.LZ4(), "bz2": numcodecs.BZ2(), "lzma": numcodecs.LZMA(preset=0),
          "lzma-raw": numcodecs.LZMA(lzma.FORMAT_RAW,
                                     filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]),
          "blosc-lz4": numcodecs.Blosc("lz4"), "blosc-zstd": numcodecs.Blosc("zstd", shuffle=2),
          "crc32": numcodecs.CRC32(), "adler32": numcodecs.Adler32(),
          "shuffle": numcodecs.Shuffle(4)}


@pytest.mark.parametrize("name", CODECS)
def test_damaged_chunks_of_every_codec(batchfs, tmp_path, name):
    codec = CODECS[name]
    path = write_array(tmp_path, "a", {**V2, "compressor": codec and codec.get_config()}, {})
    stored = VALUES[:4].tobytes() if codec is None else bytes(codec.encode(VALUES[:4]))
    middle = len(stored) // 2
    flipped = stored[:middle] + bytes([stored[middle] ^ 0xff]) + stored[middle + 1:]
    for data in (b"", stored[:1], stored[:middle], stored[:-1], b"\xff" * len(stored), b"\0" * 64,
                 flipped, stored + b"\1" * 50):
        (path / "0").write_bytes(data)
        done = cat(batchfs, path)
        # damage that a format without a checksum cannot detect, or bytes after the end
        if done.returncode == 0:
            values = np.load(io.BytesIO(done.stdout))
            assert values.shape == (8,) and (values[4:] == 0).all()
            # Raw LZMA may lack its end mark.
            assert len(data) >= len(stored) or np.array_equal(values[:4], VALUES[:4])
        else:
            text = done.stderr.decode()
            assert done.returncode == 1 and text.count("\n") == 1 and "(0" in text, text
    (path / "0").write_bytes(stored)
    assert np.array_equal(np.load(io.BytesIO(cat(batchfs, path).stdout))[:4], VALUES[:4])


@pytest.mark.parametrize("location", ["start", "end"])
def test_shard_indexes_that_point_elsewhere(fails, tmp_path, location):
    serializer = zarr.codecs.ShardingCodec(chunk_shape=(4,), codecs=[zarr.codecs.BytesCodec()],
                                           index_codecs=[zarr.codecs.BytesCodec()],
                                           index_location=location)
    path = tmp_path / "a"
    zarr.create_array(path, shape=(8,), chunks=(8,), dtype="f4", serializer=serializer,
                      compressors=None)[...] = VALUES + 1
    shard = (path / "c/0").read_bytes()
    at = 0 if location == "start" else len(shard) - 32
    for offset, length in ((2**64 - 2, 16), (2**63, 16), (len(shard), 16), (0, 2**63),
                           (0, len(shard) + 1), (16, 15), (16, 0), (2**64 - 1, 16), (0, 2**64 - 1)):
        entry = offset.to_bytes(8, "little") + length.to_bytes(8, "little")
        (path / "c/0").write_bytes(shard[:at + 16] + entry + shard[at + 32:])
        assert "(1)" in fails(1, "cat", path, "/", "--decode", "raw")
    for size in (0, 1, 31):
        (path / "c/0").write_bytes(shard[:size])
        assert "index alone needs 32" in fails(1, "cat", path, "/", "--decode", "raw")


# ---- views ----

VIEW = {"name": "v", "variables": ["t"], "window": {"time": 1}, "batch": {"size": 4}}


@pytest.mark.parametrize("change, words", [
    ({"nmae": "x"}, "'nmae', did you mean 'name'"), ({"name": 7}, "name"), ({"name": ""}, "name"),
    ({"name": ".."}, "name"), ({"name": "a/b"}, "name"), ({"name": "x" * 300}, "name"),
    ({"variables": "t"}, "variables"), ({"variables": []}, "variables"),
    ({"variables": ["tt"]}, "tt"), ({"variables": [7]}, "variables[0]"), ({"select": []}, "select"),
    ({"select": {"tiem": "#0"}}, "tiem"), ({"select": {"time": {"from": 7, "till": 9}}}, "till"),
    ({"select": {"time": "2050-01-01"}}, "time"), ({"select": {"level": [501]}}, "501"),
    ({"select": {"time": "#99"}}, "99"), ({"window": 7}, "window"), ({"window": {}}, "window"),
    ({"window": {"tmie": 1}}, "tmie"), ({"window": {"time": 0}}, "time"),
    ({"window": {"time": -1}}, "time"), ({"window": {"time": 1.5}}, "time"),
    ({"window": {"time": 1000}}, ""), ({"window": {"time": {"size": 1, "stride": 0}}}, "stride"),
    ({"window": {"time": {"size": 2**62, "stride": 2**62}}}, ""),
    ({"window": {"time": {"size": 1, "step": 2}}}, "step"),
    ({"window": {"time": {"size": 1, "wrap": "yes"}}}, "wrap"), ({"tensors": []}, "tensors"),
    ({"tensors": {"x": 7}}, "x"), ({"tensors": {"": {"variables": ["t"]}}}, "tensors"),
    ({"tensors": {"../x": {"variables": ["t"]}}}, "tensors"),
    ({"tensors": {"x": {"variables": ["t", "q"]}}}, "stack"),
    ({"tensors": {"x": {"variables": ["t"], "offsets": {"time": "x"}}}}, "offsets"),
    ({"tensors": {"x": {"variables": ["t"], "offsets": {"time": [2**62]}}}}, ""),
    ({"tensors": {"x": {"variables": ["t"], "offsets": {"tme": [1]}}}}, "tme"),
    ({"tensors": {"x": {"variables": ["t"], "dims": ["time", "lat"]}}}, "lat"),
    ({"batch": "4"}, "batch"), ({"batch": {"size": 0}}, "batch.size"),
    ({"batch": {"size": -4}}, "batch.size"), ({"batch": {"size": "4"}}, "batch.size"),
    ({"batch": {"size": 2**63}}, "batch.size"),
    ({"batch": {"size": 4, "remainder": "lose"}}, "remainder"), ({"order": "global"}, "order"),
    ({"order": {"shuffle": "globl"}}, "shuffle"),
    ({"order": {"shuffle": "global", "seed": -1.5}}, "seed"), ({"epochs": 0}, "epochs"),
    ({"epochs": "3"}, "epochs"), ({"dtype": "float33"}, "dtype"),
    ({"dtype": 32}, "dtype"), ({"formats": ["np"]}, "formats"), ({"formats": []}, "formats"),
    ({"formats": "npy"}, "formats"), ({"missing": {"nan": "drop"}}, "missing"),
    ({"normalize": 7}, "normalize"), ({"normalize": {"method": "z"}}, "normalize"),
    ({"xbatcher": {"input_dims": {"time": 1}}}, "xbatcher"),
])
def test_views_wrong_in_every_key(fails, weather, tmp_path, change, words):
    file = tmp_path / "view.json"
    file.write_text(json.dumps({**VIEW, **change}))
    assert words in fails(1, "plan", weather, "--view", file)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null",
                                  '{"name": "v", "name": "w", "window": {"time": 1}}', "[" * 10000,
                                  '{"window": {"time": NaN}}', '{"window": {"time": 1e400}}', "\0"])
def test_views_that_are_none(fails, weather, tmp_path, text):
    file = tmp_path / "view.json"
    file.write_text(text)
    for command in ("plan", "batch"):
        fails(1, command, weather, "--view", file)
    fails(1, "plan", weather, "--view", tmp_path / "nothing.json")
    fails(1, "plan", weather, "--view", tmp_path)
