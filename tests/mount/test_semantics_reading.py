"""Promises of batchfs-semantics(7) about opening, reading and mapping. Each test carries the tags
of its sentences."""

import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import zarr
from calls import BATCH, EPOCH, error_of, has_passthrough, libc
from watching import eventually, status

# ---- opening and reading ----

@pytest.mark.says("open-once")
def test_many_openings_are_one_batch(mounted):
    # the last: nothing is prefetched after it
    path = mounted / "views/one/epoch-0031/batch-000006.npy"
    before = status(mounted)
    fds = [os.open(path, os.O_RDONLY) for _ in range(20)]
    readers = [subprocess.Popen(["sha256sum", path], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({reader.communicate()[0] for reader in readers}) == 1
    after = status(mounted)
    assert after["batches_opened"] - before["batches_opened"] == 1
    for fd in fds:
        os.close(fd)


@pytest.mark.says("open-flags")
def test_flags_of_open(mounted):
    path = mounted / BATCH
    contents = path.read_bytes()
    for flags in (os.O_CLOEXEC, os.O_NONBLOCK, os.O_NOATIME, os.O_DIRECT, os.O_SYNC, os.O_APPEND,
                  os.O_CREAT, os.O_NOFOLLOW):
        fd = os.open(path, os.O_RDONLY | flags)
        if not flags & os.O_DIRECT:
            assert os.pread(fd, 1 << 20, 0) == contents
        os.close(fd)
    fd = os.open(path, os.O_PATH)
    assert os.fstat(fd).st_size == len(contents)
    os.close(fd)
    assert error_of(os.open, path, os.O_RDONLY | os.O_DIRECTORY) == errno.ENOTDIR
    assert error_of(os.open, path, os.O_RDONLY | os.O_CREAT | os.O_EXCL) == errno.EEXIST


def test_the_kernel_reads_mappings_far_ahead_for_root(mounted):
    device = os.stat(mounted).st_dev
    readahead = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    if not os.access(readahead, os.W_OK):
        pytest.skip("only root may raise the kernel's read-ahead")
    assert int(readahead.read_text()) == 1024


@pytest.mark.says("read-anywhere")
def test_every_way_of_reading(mounted, batch):
    fd, contents = batch
    assert os.pread(fd, 1 << 24, 0) == contents
    for offset, size in [(0, 1), (1, 4096), (4095, 2), (len(contents) - 1, 10), (len(contents), 10),
                         (1 << 40, 1)]:
        assert os.pread(fd, size, offset) == contents[offset:offset + size]
    parts = [bytearray(3), bytearray(5000), bytearray(1 << 20)]
    assert os.preadv(fd, parts, 7) == len(contents) - 7
    assert b"".join(parts)[:len(contents) - 7] == contents[7:]
    for move in ("sendfile", "splice"):
        reading, writing = os.pipe()
        sent = (os.sendfile(writing, fd, 10, 3000) if move == "sendfile"
                else os.splice(fd, writing, 3000, offset_src=10))
        assert 0 < sent <= 3000
        assert os.read(reading, sent) == contents[10:10 + sent]
        os.close(reading)
        os.close(writing)


@pytest.mark.says("direct-io")
@pytest.mark.parametrize("path", [BATCH, "summary.txt", "arrays/t/values.npy",
                                  f"{EPOCH}/batch-000001.json", "store.json"])
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
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [
            ctypes.c_long]
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
@pytest.mark.parametrize("flags",
                         [mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_SHARED | mmap.MAP_POPULATE],
                         ids=["shared", "private", "populate"])
@pytest.mark.parametrize("path", [BATCH, f"{EPOCH}/batch-000001.npz", "arrays/t/values.npy",
                                  "summary.txt", "views/one/coords/level.npy"])
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
    assert error_of(mmap.mmap, fd, 0, mmap.MAP_SHARED,
                    mmap.PROT_READ | mmap.PROT_WRITE) == errno.EACCES
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False,
                          text=True)
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGBUS)


@pytest.mark.says("mmap-memory")
def test_what_is_mapped_after_it_was_closed_is_seen(mount_at, tmp_path):
    values = np.arange(8 << 20, dtype="f4").reshape(8, -1)  # samples of 4 MB
    zarr.create_group(tmp_path / "s.zarr").create_array("v", data=values, chunks=(1, 1 << 20),
                                                        dimension_names=["time", "x"])
    view = {"name": "v", "window": {"time": 1}, "batch": {"size": 1}}
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view}, "--memory", "20M")
    if not has_passthrough(directory):
        pytest.skip("without passthrough a mapped file counts as open")
    epoch = directory / "views/v/epoch-0000"
    kept = [Mapping(epoch / f"batch-{b:06d}.npy", mmap.MAP_SHARED) for b in range(2)]
    for b in (5, 7):  # prefetched batches, and the batches last opened, make way
        np.load(epoch / f"batch-{b:06d}.npy")
    told = status(directory)
    assert 8 << 20 <= told["memory_mapped_after_close"] < 20 << 20
    assert kept[1].bytes()[4096:] == values[1].tobytes()
    for mapping in kept:
        mapping.unmap()
    assert eventually(lambda: status(directory)["memory_mapped_after_close"] == 0)


# ---- when the store changes ----

@pytest.mark.says("store-open", "store-one-version")
def test_a_chunk_that_is_written_over(mount_at, tmp_path):
    array = zarr.create_group(tmp_path / "s.zarr").create_array(
        "v", data=np.zeros((40, 2048), "f4"), chunks=(1, 2048), dimension_names=["time", "x"])
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt",
                         {"v": {"name": "v", "window": {"time": 1}, "batch": {"size": 2}}},
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
        os.kill(status(directory)["pid"], signal.SIGTERM)
        assert eventually(lambda: not os.path.ismount(directory))
        assert file.read() == contents
    assert mapped[:] == contents
