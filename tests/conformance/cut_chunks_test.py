"""Chunks that end early: the message names the damage, and no compression that the chunk has by
itself."""

import json

import numcodecs
import numpy as np
import pytest
import zarr
from zarr import codecs

V3 = {
    "zstd": [codecs.ZstdCodec()],
    "gzip": [codecs.GzipCodec()],
    "blosc": [codecs.BloscCodec(cname="zstd")],
    "zstd and crc32c": [codecs.ZstdCodec(), codecs.Crc32cCodec()],
    "gzip of zstd": [codecs.ZstdCodec(), codecs.GzipCodec()],
}
V2 = {"zstd": numcodecs.Zstd(), "gzip": numcodecs.GZip(), "zlib": numcodecs.Zlib(),
      "blosc": numcodecs.Blosc("zstd"), "lz4": numcodecs.LZ4(), "bz2": numcodecs.BZ2(),
      "lzma": numcodecs.LZMA()}
VALUES = np.random.default_rng(3).normal(size=(8, 64)).astype("f4")


def store(folder, version, name):
    path = folder / "s.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=version)
    if name == "shards":
        array = group.create_array("a", shape=(8, 64), dtype="f4", chunks=(2, 64), shards=(8, 64),
                                   compressors=[codecs.ZstdCodec()], dimension_names=["t", "x"])
    elif name == "shards in a codec":
        array = group.create_array("a", shape=(8, 64), dtype="f4", chunks=(8, 64), compressors=None,
                                   dimension_names=["t", "x"])
        meta = json.loads((path / "a/zarr.json").read_text())
        inner = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 64], "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 1, "checksum": False}}], "index_codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}
        meta["codecs"] = [inner, {"name": "crc32c"}]
        (path / "a/zarr.json").write_text(json.dumps(meta))
        array = zarr.open_array(path / "a")
    elif version == 3:
        array = group.create_array("a", shape=(8, 64), dtype="f4", chunks=(8, 64),
                                   compressors=V3[name], dimension_names=["t", "x"])
    else:
        array = group.create_array("a",
                                   shape=(8, 64), dtype="f4", chunks=(8, 64), compressors=V2[name],
                                   attributes={"_ARRAY_DIMENSIONS": ["t", "x"]})
    array[:] = VALUES
    return path, path / ("a/c/0/0" if version == 3 else "a/0.0")


CASES = [(3, name) for name in [*V3, "shards", "shards in a codec"]] + [(2, name) for name in V2]


@pytest.mark.parametrize("version, name", CASES)
@pytest.mark.parametrize("keep", [0.5, 0.97])
def test_chunks_that_end_early(batchfs, tmp_path, version, name, keep):
    path, chunk = store(tmp_path, version, name)
    data = chunk.read_bytes()
    np.testing.assert_array_equal(batchfs.npy("cat", path, "a"), VALUES)
    chunk.write_bytes(data[:int(len(data) * keep)])
    (tmp_path / "view.json").write_text(json.dumps({"window": {"t": 8}, "variables": ["a"]}))
    for command in (["cat", path, "a"], ["batch", path, "--view", tmp_path / "view.json"]):
        refused = batchfs.refusal(*command)
        assert "(a/" in refused
        assert "compressed after" not in refused and "compresses what it sends" not in refused


@pytest.mark.parametrize("version, name", [case for case in CASES if case[1] not in ("shards",)])
def test_chunks_that_were_compressed_again(batchfs, tmp_path, version, name):
    """A compression that is not the chunk's own is named."""
    path, chunk = store(tmp_path, version, name)
    own = {"zstd", "gzip"} & set(name.split()) if not name.startswith("shards") else {"zstd"}
    data = chunk.read_bytes()
    for other, pack in (("gzip", numcodecs.GZip()), ("zstd", numcodecs.Zstd())):
        if other in own:
            continue
        chunk.write_bytes(bytes(pack.encode(data)))
        refused = batchfs.refusal("cat", path, "a")
        assert f"it is {other} data" in refused
