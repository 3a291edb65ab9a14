"""Metadata of formats 2 and 3 at one place, one of them broken, against zarr-python."""

import json

import numpy as np
import pytest
import zarr

BROKEN = {"empty": "", "truncated": '{"zarr_format": 3, "node_ty', "no JSON": "zarr", "a list": "["}


def both(path):
    """A group with an array, of both formats: format 3 has other values."""
    for version in (2, 3):
        group = zarr.open_group(path, mode="a" if version == 3 else "w", zarr_format=version)
        array = group.create_array("v", shape=(6,), chunks=(6,), dtype="f4", overwrite=False,
                                   **({"dimension_names": ["x"]} if version == 3 else {}))
        array[:] = np.arange(6) + version
    return path


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "s.zarr"
    both(path)
    assert {file.name for file in path.iterdir() if file.is_file()} >= {"zarr.json", ".zgroup"}
    assert {file.name for file in (path / "v").iterdir() if file.is_file()} >= {
        "zarr.json", ".zarray"}
    return path


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.filterwarnings("ignore")
def test_format_3_is_read_and_not_format_2_where_it_is_broken(batchfs, store, broken):
    assert np.array_equal(zarr.open_array(store / "v")[:], np.arange(6) + 3)
    assert np.array_equal(batchfs.npy("cat", store, "v"), np.arange(6) + 3)
    (store / "v" / "zarr.json").write_text(BROKEN[broken])
    with pytest.raises(json.JSONDecodeError):
        zarr.open_array(store / "v")
    line = batchfs.refusal("cat", store, "v")
    assert "v/zarr.json" in line and "zarr.json is read before .zarray, which is there too" in line
    (store / "zarr.json").write_text(BROKEN[broken])
    with pytest.raises(json.JSONDecodeError):
        zarr.open_group(store)
    for words in (["cat", store, "v"], ["inspect", store]):
        assert ("zarr.json is read before .zgroup, which is there too: repair it, or remove "
                "it to read format 2" in batchfs.refusal(*words))
    (store / "zarr.json").unlink()
    (store / "v" / "zarr.json").unlink()
    assert np.array_equal(batchfs.npy("cat", store, "v"), zarr.open_array(store / "v")[:])


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.filterwarnings("ignore")
def test_format_2_may_be_broken_beside_format_3(batchfs, store, broken):
    for name in (".zgroup", ".zmetadata", "v/.zarray"):
        (store / name).write_text(BROKEN[broken])
    assert np.array_equal(zarr.open_array(store / "v")[:], np.arange(6) + 3)
    assert np.array_equal(batchfs.npy("cat", store, "v"), np.arange(6) + 3)
    assert json.loads(batchfs.bytes("inspect", store, "--json"))["problems"] == []


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_consolidated_metadata_beside_format_3_is_an_error(batchfs, store, broken):
    """The consolidated metadata is another document of the root."""
    zarr.consolidate_metadata(store, zarr_format=2)
    (store / "zarr.json").write_text(BROKEN[broken])
    assert "zarr.json is read before .zmetadata" in batchfs.refusal("inspect", store)
