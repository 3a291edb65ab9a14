"""Stored sizes and missing chunks of Icechunk repositories and of reference sets, against icechunk
and the bytes on disk."""

import asyncio
import json
import os
import subprocess

import numpy as np
import pytest
import zarr

icechunk = pytest.importorskip("icechunk", reason="tools/dependencies test installs icechunk")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A repository with chunks of its own, in manifests, in other files and missing, and its
    session."""
    folder = tmp_path_factory.mktemp("sizes")
    values = np.random.default_rng(0).normal(size=(40, 2000))
    (folder / "data.bin").write_bytes(values.tobytes())
    subprocess.run(["touch", "-d", "2020-01-01", folder / "data.bin"], check=True)
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 512
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(
        f"file://{folder}/", icechunk.local_filesystem_store(str(folder))))
    config.manifest = icechunk.ManifestConfig(splitting=icechunk.ManifestSplittingConfig.from_dict({
        icechunk.ManifestSplitCondition.AnyArray(): {icechunk.ManifestSplitDimCondition.Any(): 3}}))
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder / "r")),
                                            config=config)
    session = repository.writable_session("main")
    group = zarr.create_group(session.store)
    large = group.create_array("large", shape=values.shape, chunks=(10, 500), dtype="f8")
    large[...] = values
    small = group.create_array("deep/small", shape=(9,), chunks=(2,), dtype="i4")
    small[...] = np.arange(9)
    gaps = group.create_array("gaps", shape=(10, 2000), chunks=(1, 500), dtype="f8", fill_value=7)
    gaps[2:4] = values[2:4]
    gaps[8, :700] = 1
    group.create_array("empty", shape=(5, 5), chunks=(1, 5), dtype="f4")
    group.create_array("scalar", shape=(), dtype="f8")[...] = 3
    virtual = group.create_array("virtual", shape=values.shape, chunks=(10, 2000), dtype="f8",
                                 compressors=None)
    for row in range(3):
        session.store.set_virtual_ref(f"virtual/c/{row}/0", f"file://{folder}/data.bin",
                                      offset=row * 160_000, length=160_000)
    assert virtual.shape == values.shape
    session.commit("all")
    return folder, repository.readonly_session("main")


async def keys_below(store, path):
    return [key async for key in store.list_prefix(f"{path}/")]


def sizes(session, path, chunks_only=False):
    async def run():
        keys = await keys_below(session.store, path)
        return sum([await session.store.getsize(key)
                    for key in keys if not (chunks_only and key.endswith("zarr.json"))])
    return asyncio.run(run())


ARRAYS = ["large", "deep/small", "gaps", "empty", "scalar", "virtual"]


@pytest.mark.parametrize("more", [[], ["--size"]], ids=["quickly", "all"])
def test_inspect_has_the_sizes_of_icechunk(batchfs, made, more):
    folder, session = made
    told = json.loads(batchfs.bytes("inspect", folder / "r", "--json", *more))
    for path in ARRAYS:
        assert told["arrays"]["/" + path if f"/{path}" in told["arrays"]
                              else path]["stored_bytes"] == sizes(session, path), path
    native = sum(file.stat().st_size for file in (folder / "r/chunks").iterdir())
    assert told["stored_bytes"] > native + 3 * 160_000


def test_show_knows_which_chunks_are_missing(batchfs, made, tmp_path):
    folder, _ = made
    page = tmp_path / "page.html"
    batchfs.bytes("show", folder / "r", "-o", page, "--virtual", f"file://{folder}/")
    text = page.read_text()
    for words in ("Stored: 16 of 16 chunks", "Stored: 5 of 5 chunks",
                  "Stored: 10 of 40 chunks; missing: 30", "Stored: 0 of 5 chunks",
                  "Stored: 3 of 4 chunks; missing: 1"):
        assert words in text, words


def test_check_counts_missing_chunks(batchfs, made):
    folder, session = made
    done = json.loads(batchfs.bytes("check", folder / "r", "--json", "--virtual",
                                    f"file://{folder}/"))
    assert (done["objects"], done["missing_chunks"], done["problems"]) == (35, 36, 0)
    assert done["stored_bytes"] == sum(sizes(session, path, chunks_only=True) for path in ARRAYS)


def test_a_reference_set(batchfs, tmp_path):
    """Chunks in files, within the set, and missing ones."""
    data = np.arange(100, dtype="<f8").tobytes()
    (tmp_path / "data.bin").write_bytes(data)
    array = {"zarr_format": 2, "shape": [50], "chunks": [10], "dtype": "<f8", "compressor": None,
             "filters": None, "fill_value": 0, "order": "C"}
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(array), "a/.zattrs": "{}",
            "a/0": ["data.bin", 0, 80], "a/1": ["data.bin", 80, 80],
            "a/3": "base64:" + "A" * 107 + "="}
    (tmp_path / "r.json").write_text(json.dumps({"version": 1, "refs": refs}))
    told = json.loads(batchfs.bytes("inspect", tmp_path / "r.json", "--json"))
    array_told = next(iter(told["arrays"].values()))
    assert array_told["stored_bytes"] == 3 * 80 + len(refs["a/.zarray"]) + 2
    batchfs.bytes("show", tmp_path / "r.json", "-o", tmp_path / "page.html")
    assert "Stored: 3 of 5 chunks; missing: 2" in (tmp_path / "page.html").read_text()
    assert os.path.getsize(tmp_path / "data.bin") == 800
