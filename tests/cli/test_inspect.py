"""batchfs inspect against zarr-python."""

import json

import numpy as np
import pytest
import xarray as xr
import zarr


def inspect(good, store):
    return json.loads(good("inspect", store, "--json"))


def test_json_says_what_zarr_says(good, weather):
    told = inspect(good, weather)
    group = zarr.open_group(weather, mode="r")
    assert told["zarr_format"] == group.metadata.zarr_format
    assert set(told["arrays"]) == set(group.array_keys())
    for name, array in group.arrays():
        entry = told["arrays"][name]
        assert tuple(entry["shape"]) == array.shape
        assert tuple(entry["chunks"]) == array.chunks
        assert entry["chunk_count"] == array.nchunks
        assert entry["bytes"] == array.nbytes
        assert np.dtype(entry["dtype"]) == array.dtype.newbyteorder("=")
        assert "unsupported" not in entry


def test_dimensions_are_xarrays(good, weather):
    told = inspect(good, weather)
    dataset = xr.open_zarr(weather)
    for name, variable in dataset.variables.items():
        assert tuple(told["arrays"][name]["dims"]) == variable.dims


def test_shards_and_their_chunks(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(64, 30), chunks=(4, 10), shards=(16, 30), dtype="f8")
    entry = inspect(good, tmp_path / "a.zarr")["arrays"]["/"]
    assert entry["chunks"] == [4, 10]
    assert entry["shards"] == [16, 30]
    assert entry["chunk_count"] == 48


def test_nested_groups(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    root.create_group("x/y", attributes={"note": "here"}).create_array("z", shape=(2,), dtype="i4")
    told = inspect(good, tmp_path / "a.zarr")
    assert list(told["arrays"]) == ["x/y/z"]
    assert told["groups"]["x/y"]["attributes"] == {"note": "here"}
    assert {"/", "x", "x/y"} == set(told["groups"])


def test_an_array_that_cannot_be_read_does_not_spoil_the_store(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("fine", shape=(2,), dtype="i4")
    root.create_array("odd", shape=(2,), dtype="i4")
    document = json.loads((tmp_path / "a.zarr/odd/.zarray").read_text())
    document["compressor"] = {"id": "brunsli"}
    (tmp_path / "a.zarr/odd/.zarray").write_text(json.dumps(document))
    arrays = inspect(good, tmp_path / "a.zarr")["arrays"]
    assert "unsupported" not in arrays["fine"]
    assert "brunsli" in arrays["odd"]["unsupported"]
    assert "brunsli" in good("inspect", tmp_path / "a.zarr").decode()


def test_text_shows_every_array_and_the_next_step(good, weather):
    text = good("inspect", weather).decode()
    for name in ("t", "q", "orography", "latitude"):
        assert f"\n  {name} " in text
    assert "40 x 3 x 8 x 16" in text
    assert "batchfs view" in text


@pytest.mark.parametrize("content", ["", "{", '{"zarr_format": 2', "[]", "\xff", '{"zarr_format": 9}'])
def test_broken_metadata_is_an_error_or_a_problem(batchfs, tmp_path, content):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/.zarray").write_text(content, encoding="latin-1")
    done = batchfs("inspect", tmp_path / "a.zarr", "--json")
    if done.returncode == 0:
        assert json.loads(done.stdout)["problems"]
    else:
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1
