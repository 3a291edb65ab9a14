"""Keys of a reference set that no reader asks for cost at most their array: against zarr-python with fsspec."""

import json

import numpy as np
import pytest
import zarr

pytest.importorskip("fsspec")

ARRAY = {"zarr_format": 2, "chunks": [], "shape": [], "dtype": "<i8", "compressor": None, "filters": None, "fill_value": -9,
         "order": "C", "dimension_separator": "."}


def write(folder, refs):
    file = folder / "r.json"
    known = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(ARRAY | {"shape": [4], "chunks": [2], "dtype": "<f8"}),
             "a/0": ["data.bin", 0, 16]}
    file.write_text(json.dumps({"version": 1, "refs": known | refs}))
    (folder / "data.bin").write_bytes(np.arange(10.0).tobytes())
    return file


def theirs(file, name):
    relative = json.loads(file.read_text())
    for value in relative["refs"].values():
        if isinstance(value, list):
            value[0] = str(file.parent / value[0])
    group = zarr.open_group("reference://", mode="r", storage_options={"fo": relative, "remote_protocol": "file"}, zarr_format=2,
                            use_consolidated=False)
    return group[name][...]


def test_a_scalar_of_virtualizarr(batchfs, tmp_path):
    """Its chunk has an empty name; zarr-python asks for the chunk 0."""
    file = write(tmp_path, {"crs/.zarray": json.dumps(ARRAY), "crs/": ["data.bin", 8, 8], "n/.zarray": json.dumps(ARRAY),
                            "n/0": ["data.bin", 0, 8]})
    for name in ("a", "crs", "n"):
        assert np.array_equal(batchfs.npy("cat", file, name, "--decode", "raw"), theirs(file, name)), name
    told = json.loads(batchfs.bytes("inspect", file, "--json"))
    assert [problem["key"] for problem in told["problems"]] == ["crs/"]
    assert b"no reader asks for this key" in batchfs.bytes("inspect", file)


@pytest.mark.parametrize("others", [0, 1500])
@pytest.mark.parametrize("key", ["b//0", "b/../0", "b/./0", "/b/0", "./b/0", "b/0/", "x/../b/0"])
def test_other_keys_cost_their_array(batchfs, tmp_path, key, others):
    """Also where more keys than those that are reported came before."""
    array = json.dumps(ARRAY | {"shape": [4], "chunks": [2], "dtype": "<f8"})
    before = {f"c//{number}": ["data.bin", 8, 8] for number in range(others)}
    file = write(tmp_path, before | {"b/.zarray": array, key: ["data.bin", 8, 8], "b/1": ["data.bin", 0, 16]})
    assert np.array_equal(batchfs.npy("cat", file, "a", "--decode", "raw"), theirs(file, "a"))
    line = batchfs.refusal("cat", file, "b")
    assert "no reference has this key" in line and key in line
    problems = [problem["key"] for problem in json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]]
    assert problems == (list(before) + [key])[:1000]


def test_keys_outside_of_the_set_are_problems(batchfs, tmp_path):
    file = write(tmp_path, {"../x": "text", "/y": "text", "": "text"})
    assert batchfs.npy("cat", file, "a", "--select", "dim_0=#0:#2").tolist() == [0, 1]
    assert len(json.loads(batchfs.bytes("inspect", file, "--json"))["problems"]) == 3
