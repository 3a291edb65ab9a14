"""Zip archives as stores, against zarr-python's ZipStore and the directory that was packed."""

import io
import json
import shutil
import zipfile

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore


def load(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).normal(size=(40, 60)).astype("f4")


@pytest.fixture(scope="module", params=[zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED],
                ids=["stored", "deflated"])
def archive(request, tmp_path_factory, values):
    """A ZipStore by zarr-python: a plain, a compressed and a sharded array. Attributes that are
    written later give zarr.json twice."""
    path = tmp_path_factory.mktemp("zip") / "x.zip"
    with ZipStore(path, mode="w", compression=request.param) as store, pytest.warns(
            UserWarning, match="Duplicate"):
        group = zarr.create_group(store)
        for name, options in {"plain": {"chunks": (16, 16), "compressors": None},
                              "packed": {"chunks": (16, 60)},
                              "deep/sharded": {"chunks": (5, 10), "shards": (20, 20)}}.items():
            array = group.create_array(name, shape=values.shape, dtype=values.dtype, **options)
            array[...] = values
            array.attrs["units"] = "K"
    return path


@pytest.mark.parametrize("name", ["plain", "packed", "deep/sharded"])
def test_values_are_zarrs(good, archive, values, name):
    assert np.array_equal(load(good("cat", archive, name, "--decode", "raw")), values)
    with ZipStore(archive, mode="r") as store:
        array = zarr.open_group(store, mode="r")[name]
        assert np.array_equal(load(good("cat", archive, name, "--decode", "raw", "--select",
                                        "dim_0=#3:#17", "--select", "dim_1=#50:")),
                              array[3:17, 50:])
        assert json.loads(good("inspect", archive, "--json"))["arrays"][name]["attributes"] == dict(
            array.attrs)


def pack(directory, path, prefix=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(directory.rglob("*")):
            out.write(file, prefix + str(file.relative_to(directory)))


def test_a_packed_directory_is_the_directory(good, weather, tmp_path):
    pack(weather, tmp_path / "w.zip")
    for name in "t", "q", "time":
        assert good("cat", tmp_path / "w.zip", name) == good("cat", weather, name)
    assert good("view", tmp_path / "w.zip", "--name", "v") == good("view", weather, "--name", "v")


def test_the_store_may_be_a_folder_of_the_archive(good, weather, tmp_path):
    pack(weather, tmp_path / "w.zip", "data/weather.zarr/")
    assert good("cat", tmp_path / "w.zip", "data/weather.zarr/t", "--decode", "raw") == \
        good("cat", weather, "t", "--decode", "raw")


def test_a_directory_may_be_called_zip(good, weather, tmp_path):
    shutil.copytree(weather, tmp_path / "w.zip")
    assert good("cat", tmp_path / "w.zip", "t") == good("cat", weather, "t")


def test_what_is_no_archive_is_said_so(fails, archive, tmp_path):
    whole = archive.read_bytes()
    (tmp_path / "short.zip").write_bytes(whole[:-100])
    assert "zip archive" in fails(1, "inspect", tmp_path / "short.zip")
    assert "no such file" in fails(1, "inspect", tmp_path / "absent.zip")
    pack(tmp_path, tmp_path / "empty.zip")
    assert "not a Zarr store" in fails(1, "inspect", tmp_path / "empty.zip")


def test_a_damaged_member_names_itself(fails, good, archive, values, tmp_path):
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        member = file.getinfo("packed/c/1/0")
    data[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 16
    (tmp_path / "x.zip").write_bytes(data)
    assert "packed/1.0" in fails(1, "cat", tmp_path / "x.zip", "packed")
    assert np.array_equal(load(good("cat", tmp_path / "x.zip", "plain", "--decode", "raw")), values)


def test_encrypted_members_are_refused_by_name(fails, archive, tmp_path):
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        start = file.start_dir
    for _ in range(data.count(b"PK\x01\x02", start)):
        start = data.index(b"PK\x01\x02", start)
        data[start + 8] |= 1
        start += 4
    (tmp_path / "x.zip").write_bytes(data)
    assert "encrypted" in fails(1, "inspect", tmp_path / "x.zip")
