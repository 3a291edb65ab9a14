"""Promises of batchfs-semantics(7) about names, attributes and permissions. Each test carries the
tags of its sentences."""

import ctypes
import errno
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import zarr
from calls import BATCH, EPOCH, error_of, libc

# ---- names and listings ----

@pytest.mark.says("names-exact")
@pytest.mark.parametrize("name", ["views/one/epoch-0", "views/ONE", f"{EPOCH}/batch-1.npy",
                                  f"{EPOCH}/batch-000001.npy~", f"{EPOCH}/batch-000001.NPY",
                                  "summary.txt ", "Summary.txt"])
def test_another_spelling_is_no_name(mounted, name):
    assert error_of(os.stat, mounted / name) == errno.ENOENT


@pytest.mark.says("names-too-long")
@pytest.mark.parametrize("where", ["", EPOCH, "arrays"])
def test_a_name_that_is_too_long(mounted, where):
    assert error_of(os.stat, mounted / where / ("a" * 255)) == errno.ENOENT
    for length in (256, 1024, 1025, 4000):
        assert error_of(os.stat, mounted / where / ("a" * length)) == errno.ENAMETOOLONG


@pytest.mark.says("names-forever", "store-metadata")
def test_names_and_shapes_are_those_of_the_mount(weather, mount_at, tmp_path):
    store = tmp_path / "s.zarr"
    shutil.copytree(weather, store)
    directory = mount_at(store, tmp_path / "mnt", {})
    before = sorted(os.listdir(directory / "arrays")), np.load(
        directory / "arrays/latitude/values.npy").shape
    zarr.open_group(store, mode="a").create_array("new", shape=(3,), dtype="i4")[...] = 1
    zarr.open_group(store, mode="a")["t"].resize((41, 3, 8, 16))
    assert error_of(os.stat, directory / "arrays/new") == errno.ENOENT
    assert (sorted(os.listdir(directory / "arrays")),
            np.load(directory / "arrays/latitude/values.npy").shape) == before
    assert np.load(directory / "arrays/t/values.npy", mmap_mode="r").shape == (40, 3, 8, 16)
    shutil.rmtree(store)
    assert sorted(os.listdir(directory / "arrays")) == before[0]
    assert (directory / "arrays/t/values.npy").stat().st_size == 4096 + 40 * 3 * 8 * 16 * 4


@pytest.mark.says("names-hidden")
def test_what_is_not_listed_can_be_opened(mounted):
    assert ".batchfs" not in os.listdir(mounted)
    assert os.listdir(mounted / ".batchfs")
    assert set(os.listdir(mounted / "views/one")) == {"coords", "epoch-0000", "epoch-0001",
                                                      "schema.json", "view.json"}
    for hidden in ("epoch-0002", "epoch-123456", "rank-1-of-3", "rank-1-of-3/epoch-0007"):
        assert os.listdir(mounted / "views/one" / hidden)


@pytest.mark.says("list-order")
def test_listings_are_the_same_and_without_repetition(mounted):
    for where in ("", EPOCH, "views/one", "arrays", "arrays/t", "arrays/t/chunks"):
        names = os.listdir(mounted / where)
        assert names == os.listdir(mounted / where) and len(names) == len(set(names))
        listed = subprocess.run(["ls", "-fa", mounted / where], capture_output=True, check=True,
                                text=True).stdout.split("\n")[:-1]
        assert sorted(listed) == sorted([".", ".."] + names)
        for entry in os.scandir(mounted / where):
            assert entry.inode() == os.lstat(entry.path).st_ino
            assert entry.is_dir() == os.path.isdir(entry.path)


@pytest.mark.says("list-seek")
def test_positions_in_a_directory(mounted):
    libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
    libc.telldir.restype = ctypes.c_long
    libc.telldir.argtypes = libc.readdir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
    libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]

    def name(entry):  # struct dirent: d_ino, d_off, d_reclen, d_type, d_name
        return ctypes.string_at(entry + 19)

    stream = libc.opendir(os.fsencode(mounted / EPOCH))
    places, names = [], []
    while True:
        places.append(libc.telldir(stream))
        entry = libc.readdir(stream)
        if not entry:
            break
        names.append(name(entry))
    for i in reversed(range(len(names))):
        libc.seekdir(stream, places[i])
        assert name(libc.readdir(stream)) == names[i]
    libc.closedir(stream)


# ---- attributes ----

@pytest.mark.says("size-exact", "modes", "times", "links", "blocks")
def test_attributes(mounted):
    """Sizes against contents are in test_tree.py, too."""
    times = set()
    inodes = {}
    for folder, folders, files in os.walk(mounted):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.stat(path)
            assert (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid())
            assert info.st_mode == (0o040555 if name in folders else 0o100444), path
            times |= {info.st_mtime, info.st_atime, info.st_ctime}
            assert inodes.setdefault(info.st_ino, path) == path
            assert info.st_blksize == (1 << 20 if name == "values.npy" else 4096)
            if name in files:
                assert info.st_nlink == 1
                assert info.st_blocks == -(-info.st_size // 512)
                with open(path, "rb") as file:
                    assert len(file.read()) == info.st_size
    assert len(times) == 1
    assert os.stat(mounted / BATCH).st_atime in times  # after it was read


@pytest.mark.says("size-control")
def test_control_files_have_no_size(mounted):
    for name in os.listdir(mounted / ".batchfs"):
        path = mounted / ".batchfs" / name
        if not path.is_symlink():
            assert path.stat().st_size == 0
            assert name == "log" or len(path.read_bytes()) > 0


@pytest.mark.says("inodes", "open-same")
def test_two_mounts_of_a_store_are_alike(mounted, weather, mount_at, tmp_path):
    other = mount_at(weather, tmp_path / "mnt",
                     {name: json.loads((mounted / f"../mnt-{name}.json").resolve().read_text())
                      for name in ("one", "two")})
    for path in ("summary.txt", "views/two", EPOCH, BATCH, "arrays/t/chunks/1.0.0.0.npy",
                 "views/one/rank-0-of-2/epoch-0009"):
        if "chunks" in path:
            path = f"arrays/t/chunks/{sorted(os.listdir(mounted / 'arrays/t/chunks'))[3]}"
        assert os.stat(mounted / path).st_ino == os.stat(other / path).st_ino
        assert os.stat(mounted / path).st_ino == os.stat(mounted / path).st_ino
    assert (mounted / BATCH).read_bytes() == (other / BATCH).read_bytes() == (
        mounted / BATCH).read_bytes()


@pytest.mark.says("statfs")
def test_statfs(mounted):
    for path in (mounted, mounted / BATCH):
        info = os.statvfs(path)
        assert info.f_blocks * info.f_frsize >= 40 * 3 * 8 * 16 * (4 + 2)
        assert (info.f_bfree, info.f_bavail, info.f_namemax) == (0, 0, 255)
        assert info.f_flag & (os.ST_RDONLY | os.ST_NOSUID
                              | os.ST_NODEV) == os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV


# ---- permissions ----

def as_nobody(*command):
    return subprocess.run(command, capture_output=True, check=False, text=True, user=65534,
                          group=65534, extra_groups=[], cwd="/")


@pytest.fixture
def open_folder(tmp_path):
    """A directory that everybody may enter."""
    for folder in [tmp_path, *tmp_path.parents]:
        if folder != pathlib.Path("/tmp") and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    return tmp_path


@pytest.mark.says("only-me", "allow-other")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_users(weather, mount_at, open_folder):
    mine = mount_at(weather, open_folder / "mine", {})
    ours = mount_at(weather, open_folder / "ours", {}, "--allow-other")
    for command in (["ls", mine], ["stat", mine / "summary.txt"], ["cat", mine / "summary.txt"]):
        done = as_nobody(*command)
        assert done.returncode != 0 and "Permission denied" in done.stderr
    assert as_nobody("cat", ours / "summary.txt").stdout == (ours / "summary.txt").read_text()
    assert as_nobody("cat", ours / ".batchfs/config.json").stdout != ""
    assert as_nobody("touch", ours / "summary.txt").returncode != 0


@pytest.mark.says("access")
def test_access(mounted):
    def access(path, mode):
        return 0 if libc.access(os.fsencode(mounted / path), mode) == 0 else ctypes.get_errno()

    assert access(BATCH, os.R_OK) == access(EPOCH, os.R_OK | os.X_OK) == access(BATCH, os.F_OK) == 0
    assert access(BATCH, os.W_OK) == access("", os.W_OK) == errno.EROFS
    assert access(BATCH, os.X_OK) == errno.EACCES


# ---- where to mount ----

@pytest.mark.says("own-mount")
def test_a_mount_that_would_read_from_itself(weather, fails, tmp_path):
    store = tmp_path / "a/s.zarr"
    shutil.copytree(weather, store)
    (store / "mnt").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for where, options in ((tmp_path / "a", []), (store, []), (store / "mnt", []),
                           (tmp_path / "link", [])):
        assert "read from itself" in fails(1, "mount", store, where, *options)
        assert not os.path.ismount(where)
    (tmp_path / "mnt").mkdir()
    for cache in (tmp_path / "mnt", tmp_path / "mnt/not/there", tmp_path):
        line = fails(1, "mount", store, tmp_path / "mnt", "--cache-dir", cache)
        assert "read from itself" in line and "cache" in line
