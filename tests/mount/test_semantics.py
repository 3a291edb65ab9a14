"""What batchfs-semantics(7) promises, through the kernel. Each test carries the tags of its sentences."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

EPOCH = "views/one/epoch-0000"
BATCH = f"{EPOCH}/batch-000001.npy"
libc = ctypes.CDLL(None, use_errno=True)


def error_of(action, *arguments, **options):
    """The errno that a call fails with."""
    with pytest.raises(OSError) as caught:
        action(*arguments, **options)
    return caught.value.errno


def stats(directory):
    return json.loads((directory / ".batchfs/stats.json").read_text())


def has_passthrough(directory):
    return stats(directory)["passthrough"]


@pytest.fixture
def batch(mounted):
    """An open batch: (descriptor, its bytes)."""
    fd = os.open(mounted / BATCH, os.O_RDONLY)
    yield fd, (mounted / BATCH).read_bytes()
    os.close(fd)


# ---- names and listings ----

@pytest.mark.says("names-exact")
@pytest.mark.parametrize("name", ["views/one/epoch-0", "views/ONE", f"{EPOCH}/batch-1.npy", f"{EPOCH}/batch-000001.npy~",
                                  f"{EPOCH}/batch-000001.NPY", "summary.txt ", "Summary.txt"])
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
    before = sorted(os.listdir(directory / "arrays")), np.load(directory / "arrays/latitude/values.npy").shape
    zarr.open_group(store, mode="a").create_array("new", shape=(3,), dtype="i4")[...] = 1
    zarr.open_group(store, mode="a")["t"].resize((41, 3, 8, 16))
    assert error_of(os.stat, directory / "arrays/new") == errno.ENOENT
    assert (sorted(os.listdir(directory / "arrays")), np.load(directory / "arrays/latitude/values.npy").shape) == before
    assert np.load(directory / "arrays/t/values.npy", mmap_mode="r").shape == (40, 3, 8, 16)
    shutil.rmtree(store)
    assert sorted(os.listdir(directory / "arrays")) == before[0]
    assert (directory / "arrays/t/values.npy").stat().st_size == 4096 + 40 * 3 * 8 * 16 * 4


@pytest.mark.says("names-hidden")
def test_what_is_not_listed_can_be_opened(mounted):
    assert ".batchfs" not in os.listdir(mounted)
    assert os.listdir(mounted / ".batchfs")
    assert set(os.listdir(mounted / "views/one")) == {"coords", "epoch-0000", "epoch-0001", "schema.json", "view.json"}
    for hidden in ("epoch-0002", "epoch-123456", "rank-1-of-3", "rank-1-of-3/epoch-0007"):
        assert os.listdir(mounted / "views/one" / hidden)


@pytest.mark.says("list-order")
def test_listings_are_the_same_and_without_repetition(mounted):
    for where in ("", EPOCH, "views/one", "arrays", "arrays/t", "arrays/t/chunks"):
        names = os.listdir(mounted / where)
        assert names == os.listdir(mounted / where) and len(names) == len(set(names))
        listed = subprocess.run(["ls", "-fa", mounted / where], capture_output=True, check=True, text=True).stdout.split("\n")[:-1]
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
            assert info.st_blksize == 1 << 20
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
    other = mount_at(weather, tmp_path / "mnt", {name: json.loads((mounted / f"../mnt-{name}.json").resolve().read_text())
                                                 for name in ("one", "two")})
    for path in ("summary.txt", "views/two", EPOCH, BATCH, "arrays/t/chunks/1.0.0.0.npy", "views/one/rank-0-of-2/epoch-0009"):
        if "chunks" in path:
            path = f"arrays/t/chunks/{sorted(os.listdir(mounted / 'arrays/t/chunks'))[3]}"
        assert os.stat(mounted / path).st_ino == os.stat(other / path).st_ino
        assert os.stat(mounted / path).st_ino == os.stat(mounted / path).st_ino
    assert (mounted / BATCH).read_bytes() == (other / BATCH).read_bytes() == (mounted / BATCH).read_bytes()


@pytest.mark.says("statfs")
def test_statfs(mounted):
    for path in (mounted, mounted / BATCH):
        info = os.statvfs(path)
        assert info.f_blocks * info.f_frsize >= 40 * 3 * 8 * 16 * (4 + 2)
        assert (info.f_bfree, info.f_bavail, info.f_namemax) == (0, 0, 255)
        assert info.f_flag & (os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV) == os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV


# ---- permissions ----

def as_nobody(*command):
    return subprocess.run(command, capture_output=True, check=False, text=True, user=65534, group=65534, extra_groups=[], cwd="/")


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


# ---- writing ----

@pytest.mark.says("erofs")
@pytest.mark.parametrize("attempt", [
    lambda d: os.open(d / BATCH, os.O_WRONLY),
    lambda d: os.open(d / BATCH, os.O_RDWR),
    lambda d: os.open(d / BATCH, os.O_RDONLY | os.O_TRUNC),
    lambda d: os.open(d / "new", os.O_RDONLY | os.O_CREAT),
    lambda d: os.open(d / EPOCH, os.O_TMPFILE | os.O_RDWR),
    lambda d: os.rename(d / BATCH, d / EPOCH / "batch-000002.npy"),
    lambda d: os.rename(d / EPOCH, d / "new"),
    lambda d: os.link(d / BATCH, d / "new"),
    lambda d: os.symlink("a", d / EPOCH / "new"),
    lambda d: os.mkfifo(d / "new"),
    lambda d: os.mkdir(d / EPOCH / "new"),
    lambda d: os.unlink(d / BATCH),
    lambda d: os.rmdir(d / EPOCH),
    lambda d: os.truncate(d / BATCH, 10),
    lambda d: os.chmod(d / BATCH, 0o600),
    lambda d: os.chown(d / BATCH, 1, 1),
    lambda d: os.utime(d / BATCH, (0, 0)),
    lambda d: os.setxattr(d / BATCH, "user.a", b"b"),
    lambda d: os.removexattr(d / BATCH, "user.a"),
])
def test_no_attempt_to_write_succeeds(mounted, attempt):
    assert error_of(attempt, mounted) == errno.EROFS


@pytest.mark.says("write-fd")
def test_writing_to_what_is_open(batch):
    fd, contents = batch
    assert error_of(os.write, fd, b"a") == errno.EBADF
    assert error_of(os.pwrite, fd, b"a", 0) == errno.EBADF
    assert error_of(os.posix_fallocate, fd, 0, 10) == errno.EBADF
    assert error_of(os.ftruncate, fd, 10) == errno.EINVAL
    assert os.pread(fd, len(contents), 0) == contents


@pytest.mark.says("xattr")
@pytest.mark.parametrize("path", [BATCH, EPOCH, "summary.txt"])
def test_extended_attributes(mounted, path):
    assert error_of(os.getxattr, mounted / path, "user.a") == errno.EOPNOTSUPP
    assert error_of(os.getxattr, mounted / path, "security.selinux") == errno.EOPNOTSUPP
    try:
        assert os.listxattr(mounted / path) == []
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP


@pytest.mark.says("fsync-locks")
def test_fsync_and_locks(mounted, batch):
    fd, _ = batch
    os.fsync(fd)
    os.fdatasync(fd)
    other = os.open(mounted / BATCH, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert error_of(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB) == errno.EWOULDBLOCK
    fcntl.flock(fd, fcntl.LOCK_UN)
    fcntl.lockf(fd, fcntl.LOCK_SH)
    os.close(other)


# ---- opening and reading ----

@pytest.mark.says("open-once")
def test_many_openings_are_one_batch(mounted):
    path = mounted / "views/one/epoch-0031/batch-000006.npy"  # the last: nothing is made ahead behind it
    before = stats(mounted)
    fds = [os.open(path, os.O_RDONLY) for _ in range(20)]
    readers = [subprocess.Popen(["sha256sum", path], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({reader.communicate()[0] for reader in readers}) == 1
    after = stats(mounted)
    assert after["batches_opened"] - before["batches_opened"] == 1
    for fd in fds:
        os.close(fd)


@pytest.mark.says("open-flags")
def test_flags_of_open(mounted):
    path = mounted / BATCH
    contents = path.read_bytes()
    for flags in (os.O_CLOEXEC, os.O_NONBLOCK, os.O_NOATIME, os.O_DIRECT, os.O_SYNC, os.O_APPEND, os.O_CREAT, os.O_NOFOLLOW):
        fd = os.open(path, os.O_RDONLY | flags)
        if not flags & os.O_DIRECT:
            assert os.pread(fd, 1 << 20, 0) == contents
        os.close(fd)
    fd = os.open(path, os.O_PATH)
    assert os.fstat(fd).st_size == len(contents)
    os.close(fd)
    assert error_of(os.open, path, os.O_RDONLY | os.O_DIRECTORY) == errno.ENOTDIR
    assert error_of(os.open, path, os.O_RDONLY | os.O_CREAT | os.O_EXCL) == errno.EEXIST


@pytest.mark.says("read-anywhere")
def test_every_way_of_reading(mounted, batch):
    fd, contents = batch
    assert os.pread(fd, 1 << 24, 0) == contents
    for offset, size in [(0, 1), (1, 4096), (4095, 2), (len(contents) - 1, 10), (len(contents), 10), (1 << 40, 1)]:
        assert os.pread(fd, size, offset) == contents[offset:offset + size]
    parts = [bytearray(3), bytearray(5000), bytearray(1 << 20)]
    assert os.preadv(fd, parts, 7) == len(contents) - 7
    assert b"".join(parts)[:len(contents) - 7] == contents[7:]
    for move in ("sendfile", "splice"):
        reading, writing = os.pipe()
        sent = os.sendfile(writing, fd, 10, 3000) if move == "sendfile" else os.splice(fd, writing, 3000, offset_src=10)
        assert 0 < sent <= 3000
        assert os.read(reading, sent) == contents[10:10 + sent]
        os.close(reading)
        os.close(writing)


@pytest.mark.says("direct-io")
@pytest.mark.parametrize("path", [BATCH, "summary.txt", "arrays/t/values.npy", f"{EPOCH}/batch-000001.json", "store.json"])
def test_direct_io(mounted, path):
    contents = (mounted / path).read_bytes()
    fd = os.open(mounted / path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 1 << 20)  # on a page
    got = 0
    while n := os.preadv(fd, [memoryview(buffer)[got:got + 8192]], got):
        got += n
        if got % 4096:
            break
    assert buffer[:got] == contents
    os.close(fd)


@pytest.mark.says("seek-hole")
def test_holes(batch):
    fd, contents = batch
    assert os.lseek(fd, 0, os.SEEK_END) == len(contents)
    assert os.lseek(fd, -4, os.SEEK_CUR) == len(contents) - 4
    assert os.lseek(fd, 100, os.SEEK_DATA) == 100
    assert os.lseek(fd, 100, os.SEEK_HOLE) == len(contents)
    assert error_of(os.lseek, fd, len(contents), os.SEEK_DATA) == errno.ENXIO
    assert error_of(os.lseek, fd, -1, os.SEEK_SET) == errno.EINVAL


@pytest.mark.says("ioctl")
def test_ioctl(batch):
    assert error_of(fcntl.ioctl, batch[0], 0x80086601) == errno.ENOTTY  # FS_IOC_GETFLAGS
    assert error_of(fcntl.ioctl, batch[0], 0x1234) == errno.ENOTTY


# ---- mapping ----

class Mapping:
    """A file's pages, mapped, and the file closed: Python's own mmap keeps a descriptor."""

    def __init__(self, path, flags):
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(fd).st_size
        self.address = libc.mmap(None, self.size, mmap.PROT_READ, flags, fd, 0)
        os.close(fd)
        assert self.address != ctypes.c_void_p(-1).value

    def bytes(self):
        return ctypes.string_at(self.address, self.size)

    def unmap(self):
        assert libc.munmap(self.address, self.size) == 0


@pytest.mark.says("mmap-read", "mmap-after-close")
@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_SHARED | mmap.MAP_POPULATE], ids=["shared", "private", "populate"])
@pytest.mark.parametrize("path", [BATCH, f"{EPOCH}/batch-000001.npz", "arrays/t/values.npy", "summary.txt", "views/one/coords/level.npy"])
def test_mapping(mounted, path, flags):
    contents = (mounted / path).read_bytes()
    mapped = Mapping(mounted / path, flags)
    for other in range(7):
        (mounted / EPOCH / f"batch-{other:06d}.npz").read_bytes()
    assert mapped.bytes() == contents
    mapped.unmap()


@pytest.mark.says("mmap-private")
def test_a_private_mapping_can_be_written(mounted, batch):
    fd, contents = batch
    mapped = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    mapped[:4] = b"mine"
    assert mapped[:4] == b"mine"
    assert os.pread(fd, len(contents), 0) == (mounted / BATCH).read_bytes() == contents


@pytest.mark.says("mmap-shared-write")
def test_a_shared_mapping_cannot_be_written(batch):
    fd, contents = batch
    assert error_of(mmap.mmap, fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) == errno.EACCES
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    address = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    assert address != ctypes.c_void_p(-1).value
    assert libc.mprotect(address, 4096, mmap.PROT_READ | mmap.PROT_WRITE) == -1
    assert ctypes.get_errno() == errno.EACCES


@pytest.mark.says("mmap-end")
@pytest.mark.parametrize("path", [BATCH, "summary.txt", "arrays/t/values.npy"])
def test_behind_the_end_of_a_mapping(mounted, path):
    program = f"""
import ctypes, os
fd = os.open({str(mounted / path)!r}, os.O_RDONLY)
size = os.fstat(fd).st_size
pages = -(-size // 4096) * 4096
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
at = libc.mmap(None, pages + 8192, 1, 1, fd, 0)
print(ctypes.string_at(at + size, pages - size) == bytes(pages - size), flush=True)
ctypes.string_at(at + pages + 4096, 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGBUS)


@pytest.mark.says("mmap-memory")
def test_what_is_mapped_after_it_was_closed_is_seen(mount_at, tmp_path):
    values = np.arange(8 << 20, dtype="f4").reshape(8, -1)  # samples of 4 MB
    zarr.create_group(tmp_path / "s.zarr").create_array("v", data=values, chunks=(1, 1 << 20), dimension_names=["time", "x"])
    view = {"name": "v", "window": {"time": 1}, "batch": {"size": 1}}
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view}, "--memory", "20M")
    if not has_passthrough(directory):
        pytest.skip("without passthrough a mapped file counts as open")
    epoch = directory / "views/v/epoch-0000"
    kept = [Mapping(epoch / f"batch-{b:06d}.npy", mmap.MAP_SHARED) for b in range(2)]
    for b in (5, 7):  # what was made ahead, and the batches last opened, make way
        np.load(epoch / f"batch-{b:06d}.npy")
    told = stats(directory)
    assert 8 << 20 <= told["memory_mapped_after_close"] < 20 << 20
    assert kept[1].bytes()[4096:] == values[1].tobytes()
    for mapping in kept:
        mapping.unmap()
    for _ in range(200):
        if stats(directory)["memory_mapped_after_close"] == 0:
            break
        time.sleep(0.05)
    assert stats(directory)["memory_mapped_after_close"] == 0


# ---- when the store changes ----

@pytest.mark.says("store-open", "store-chunk")
def test_a_chunk_that_is_written_over(mount_at, tmp_path):
    array = zarr.create_group(tmp_path / "s.zarr").create_array("v", data=np.zeros((40, 2048), "f4"), chunks=(1, 2048),
                                                              dimension_names=["time", "x"])
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": {"name": "v", "window": {"time": 1}, "batch": {"size": 2}}},
                         "--memory", "64K")  # holds next to nothing that was read
    epoch = directory / "views/v/epoch-0000"
    with open(epoch / "batch-000000.npy", "rb") as file:
        array[...] = 1
        assert np.frombuffer(file.read()[4096:], "f4").max() == 0
    assert np.load(epoch / "batch-000017.npy").min() == 1


# ---- the end ----

@pytest.mark.says("umount-passthrough", "mmap-after-close")
def test_batches_stay_readable_when_the_mount_ends(weather, mount_at, tmp_path):
    view = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 6}}
    directory = mount_at(weather, tmp_path / "mnt", {"v": view})
    if not has_passthrough(directory):
        pytest.skip("without passthrough reads go to the daemon")
    path = directory / "views/v/epoch-0000/batch-000000.npy"
    contents = path.read_bytes()
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
        os.kill(stats(directory)["pid"], signal.SIGTERM)
        for _ in range(200):
            if not os.path.ismount(directory):
                break
            time.sleep(0.05)
        assert not os.path.ismount(directory)
        assert file.read() == contents
    assert mapped[:] == contents


# ---- where to mount ----

@pytest.mark.says("own-mount")
def test_a_mount_that_would_read_from_itself(weather, fails, tmp_path):
    store = tmp_path / "a/s.zarr"
    shutil.copytree(weather, store)
    (store / "mnt").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for where, options in ((tmp_path / "a", []), (store, []), (store / "mnt", []), (tmp_path / "link", [])):
        assert "read from itself" in fails(1, "mount", store, where, *options)
        assert not os.path.ismount(where)
    (tmp_path / "mnt").mkdir()
    for cache in (tmp_path / "mnt", tmp_path / "mnt/not/there", tmp_path):
        line = fails(1, "mount", store, tmp_path / "mnt", "--cache-dir", cache)
        assert "read from itself" in line and "cache" in line
