"""Symbolic links in a local store: inside it they are followed, outside only where the user said
so."""

import errno
import json
import os
import shutil

import numpy as np
import pytest
import zarr

VIEW = {"name": "v", "window": {"time": 1}, "variables": ["x"], "batch": {"size": 4},
        "order": {"shuffle": "none"}}
VALUES = np.arange(16 * 3, dtype="f4").reshape(16, 3)


def chunk_files(array):
    return sorted(path for path in (array / "c").rglob("*") if path.is_file())


@pytest.fixture
def store(tmp_path):
    """x in four chunks: the second is a link to another file of the store, the fourth one to a file
    outside."""
    path = tmp_path / "store.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=3)
    array = group.create_array("x", shape=VALUES.shape, chunks=(4, 3), dtype="f4",
                               dimension_names=["time", "place"])
    array[:] = VALUES
    _, second, _, fourth = chunk_files(path / "x")
    (path / "kept").mkdir()
    for chunk, to in [(second, path / "kept" / "chunk"), (fourth, tmp_path / "outside")]:
        shutil.move(chunk, to)
        chunk.symlink_to(os.path.relpath(to, chunk.parent))
    return path


@pytest.fixture
def view_file(tmp_path):
    path = tmp_path / "view.json"
    path.write_text(json.dumps(VIEW))
    return path


def batch_of(directory, number):
    return np.load(directory / f"views/v/epoch-0000/batch-{number:06}.npy")[:, 0]


@pytest.mark.says("link-outside")
def test_a_chunk_that_is_a_link_outside(store, mount_at, tmp_path):
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEW})
    for number in range(3):
        assert np.array_equal(batch_of(directory, number), VALUES[4 * number:4 * number + 4])
    with pytest.raises(OSError) as error:
        batch_of(directory, 3)
    assert error.value.errno == errno.EACCES
    log = (directory / ".batchfs" / "log").read_text()
    assert str(chunk_files(store / "x")[3].relative_to(store)) in log
    assert "--follow-links" in log


@pytest.mark.says("link-outside")
def test_follow_links_allows_them(store, mount_at, view_file, good, tmp_path):
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEW}, "-o", "follow-links")
    for number in range(4):
        assert np.array_equal(batch_of(directory, number), VALUES[4 * number:4 * number + 4])
    assert good("batch", "--follow-links", store, "--view", view_file, "--batch", 3) == \
        (directory / "views/v/epoch-0000/batch-000003.npy").read_bytes()


def test_commands_name_the_link(store, view_file, fails, good):
    told = fails(1, "batch", store, "--view", view_file, "--batch", 3)
    assert "--follow-links" in told and str(chunk_files(store / "x")[3].relative_to(store)) in told
    good("inspect", store)


def test_an_array_that_is_a_link_outside_is_not_missing(store, fails, good, tmp_path):
    shutil.move(store / "x", tmp_path / "x")
    (store / "x").symlink_to(tmp_path / "x")
    told = good("inspect", store).decode()
    assert "x: the symbolic link 'x' leads outside the store; --follow-links" in told
    assert "the symbolic link 'x' leads outside the store; --follow-links" in fails(
        1, "cat", store, "x")
    assert b" x " in good("inspect", "--follow-links", store)


def test_metadata_that_is_a_link_outside(store, good, tmp_path):
    shutil.move(store / "zarr.json", tmp_path / "zarr.json")
    (store / "zarr.json").symlink_to("../zarr.json")
    told = good("inspect", store).decode()
    assert "the symbolic link 'zarr.json' leads outside the store; --follow-links" in told


def test_what_the_user_typed_may_be_a_link(store, good, tmp_path):
    link = tmp_path / "link.zarr"
    link.symlink_to(store)
    assert b" x " in good("inspect", link)
    shutil.make_archive(str(tmp_path / "elsewhere"), "zip", store / "x")
    (tmp_path / "folder").mkdir()
    archive = tmp_path / "folder" / "x.zip"
    archive.symlink_to(tmp_path / "elsewhere.zip")
    assert good("inspect", archive)
