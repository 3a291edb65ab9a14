"""Keys of a reference set that no reader asks for cost at most their array: against zarr-python
with fsspec."""

import json

import numpy as np
import pytest
import zarr

pytest.importorskip("fsspec")

ARRAY = {"zarr_format": 2, "chunks": [], "shape": [], "dtype": "<i8", "compressor": None,
         "filters": None, "fill_value": -9, "order": "C", "dimension_separator": "."}


def write(folder, refs):
    file = folder / "r.json"
    known = {".zgroup": '{"zarr_format": 2}',
             "a/.zarray": json.dumps(ARRAY | {"shape": [4], "chunks": [2], "dtype": "<f8"}),
             "a/0": ["data.bin", 0, 16]}
    file.write_text(json.dumps({"version": 1, "refs": known | refs}))
    (folder / "data.bin").write_bytes(np.arange(10.0).tobytes())
    return file


def group_of(file):
    relative = json.loads(file.read_text())
    for value in relative["refs"].values():
        if isinstance(value, list):
            value[0] = str(file.parent / value[0])
    return zarr.open_group("reference://", mode="r",
                           storage_options={"fo": relative, "remote_protocol": "file"},
                           zarr_format=2, use_consolidated=False)


def theirs(file, name):
    return group_of(file)[name][...]


def test_a_scalar_of_virtualizarr(batchfs, tmp_path):
    """Its chunk has an empty name; zarr-python asks for the chunk 0."""
    file = write(tmp_path, {"crs/.zarray": json.dumps(ARRAY), "crs/": ["data.bin", 8, 8],
                            "n/.zarray": json.dumps(ARRAY), "n/0": ["data.bin", 0, 8]})
    for name in ("a", "crs", "n"):
        assert np.array_equal(batchfs.npy("cat", file, name, "--decode", "raw"),
                              theirs(file, name)), name
    told = json.loads(batchfs.bytes("inspect", file, "--json"))
    assert [problem["key"] for problem in told["problems"]] == ["crs/"]
    assert b"no reader asks for this key" in batchfs.bytes("inspect", file)


@pytest.mark.parametrize("others", [0, 1500])
@pytest.mark.parametrize("key", ["b//0", "b/../0", "b/./0", "/b/0", "./b/0", "b/0/", "x/../b/0"])
def test_other_keys_cost_their_array(batchfs, tmp_path, key, others):
    """Also where more keys than those that are reported came before."""
    array = json.dumps(ARRAY | {"shape": [4], "chunks": [2], "dtype": "<f8"})
    before = {f"c//{number}": ["data.bin", 8, 8] for number in range(others)}
    file = write(tmp_path,
                 before | {"b/.zarray": array, key: ["data.bin", 8, 8], "b/1": ["data.bin", 0, 16]})
    assert np.array_equal(batchfs.npy("cat", file, "a", "--decode", "raw"), theirs(file, "a"))
    line = batchfs.refusal("cat", file, "b")
    assert "no reference has this key" in line and key in line
    problems = [problem["key"]
                for problem in json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]]
    assert problems == (list(before) + [key])[:1000]


OTHER_SPELLINGS = ["b//.zattrs", "b/./.zattrs", "/b/.zattrs", "b/.zattrs/", "./b/.zattrs",
                   "x/../b/.zattrs", "//b//.zattrs"]


@pytest.mark.parametrize("key", OTHER_SPELLINGS)
def test_attributes_that_no_reader_asks_for_cost_their_array(batchfs, tmp_path, key):
    """fsspec finds none, so xarray would read b without its scale_factor."""
    array = json.dumps(ARRAY | {"shape": [4], "chunks": [2], "dtype": "<f8"})
    file = write(tmp_path, {"b/.zarray": array, "b/0": ["data.bin", 0, 16],
                            key: json.dumps({"scale_factor": 0.5})})
    assert not dict(group_of(file)["b"].attrs)
    assert np.array_equal(batchfs.npy("cat", file, "a", "--decode", "raw"), theirs(file, "a"))
    problems = {problem["key"]: problem["why"]
                for problem in json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]}
    assert set(problems) == {key, "b/.zarray"}
    for decode in ([], ["--decode", "raw"]):
        assert key in batchfs.refusal("cat", file, "b", *decode)
    # With the key that readers ask for, nothing is lost.
    refs = json.loads(file.read_text())["refs"]
    file = write(tmp_path, refs | {"b/.zattrs": json.dumps({"scale_factor": 2.0})})
    assert dict(group_of(file)["b"].attrs) == {"scale_factor": 2.0}
    assert batchfs.npy("cat", file, "b", "--select", "dim_0=#0:#2").tolist() == [0, 2]
    assert [problem["key"] for problem in json.loads(batchfs.bytes("inspect", file,
                                                                   "--json"))["problems"]] == [key]


@pytest.mark.parametrize("key", ["b//.zarray", "/b/.zarray", "b/.zarray/", "b//zarr.json",
                                 "./b/zarr.json"])
def test_metadata_that_no_reader_asks_for(batchfs, tmp_path, key):
    v3 = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float64",
          "fill_value": 0, "attributes": {},
          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
          "chunk_key_encoding": {"name": "v2"},
          "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
    file = write(tmp_path, {key: json.dumps(v3 if "json" in key else ARRAY
                                            | {"shape": [4], "chunks": [2], "dtype": "<f8"})})
    assert "b" not in group_of(file)
    assert np.array_equal(batchfs.npy("cat", file, "a", "--decode", "raw"), theirs(file, "a"))
    assert key in [problem["key"]
                   for problem in json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]]
    assert key in batchfs.refusal("cat", file, "b")


@pytest.mark.parametrize("key", OTHER_SPELLINGS)
@pytest.mark.parametrize("kind", ["store", "json", "parquet"])
def test_consolidated_attributes_that_no_reader_asks_for(batchfs, tmp_path, kind, key):
    """zarr-python refuses such a store."""
    array = ARRAY | {"shape": [4], "chunks": [4], "dtype": "<f8"}
    documents = {".zgroup": {"zarr_format": 2}, "a/.zarray": array, "b/.zarray": array,
                 key: {"scale_factor": 0.5}}
    consolidated = {"zarr_consolidated_format": 1, "metadata": documents}
    place = tmp_path / "s"
    if kind == "json":
        chunks = {f"{name}/0": ["data.bin", 0, 32] for name in "ab"}
        place.write_text(json.dumps({"version": 1,
                                     "refs": {".zmetadata": json.dumps(consolidated)} | chunks}))
    else:
        for name in "ab":
            (place / name).mkdir(parents=True)
            (place / name / "0").write_bytes(np.arange(4.0).tobytes())
        (place / ".zmetadata").write_text(
            json.dumps(consolidated | ({"record_size": 10} if kind == "parquet" else {})))
    (tmp_path / "data.bin").write_bytes(np.arange(4.0).tobytes())
    if kind == "store":
        with pytest.raises((ValueError, zarr.errors.GroupNotFoundError)):
            zarr.open_group(place, mode="r", zarr_format=2, use_consolidated=True)
    if kind != "parquet":  # it has no records
        assert batchfs.npy("cat", place, "a", "--decode", "raw").tolist() == [0, 1, 2, 3]
    problems = [problem["key"]
                for problem in json.loads(batchfs.bytes("inspect", place, "--json"))["problems"]]
    assert problems == ["b/.zattrs", "b/.zarray"] + ([key] if kind == "parquet" else [])
    assert key in batchfs.refusal("cat", place, "b")


def test_keys_outside_of_the_set_are_problems(batchfs, tmp_path):
    file = write(tmp_path, {"../x": "text", "/y": "text", "": "text"})
    assert batchfs.npy("cat", file, "a", "--select", "dim_0=#0:#2").tolist() == [0, 1]
    assert len(json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]) == 3


def test_a_relative_name_begins_in_the_directory_of_the_set(batchfs, tmp_path, monkeypatch):
    """Whatever the working directory is, unlike in fsspec; the error has the name as the set has
    it."""
    file = write(tmp_path, {})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert batchfs.npy("cat", "../r.json", "a", "--select", "dim_0=#0:#2").tolist() == [0, 1]
    (tmp_path / "data.bin").rename(elsewhere / "data.bin")
    line = batchfs.refusal("cat", file, "a")
    assert f"{tmp_path}/data.bin, which the chunk lies in, is not there" in line
    assert "the set names it 'data.bin', relative to the set's directory" in line
