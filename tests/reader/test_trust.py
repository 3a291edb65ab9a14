"""Readers that share batches cannot harm each other, nor the process that makes them, whatever user
they are."""

import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from raw_reader import RawReader
from reader_servers import PROGRAM, Server, same
from watching import eventually, status

import batchfs

TIMES, BATCH, SIDE = 96, 16, 160
WIDE = {"name": "two", "window": {"time": 1}, "variables": ["t"], "batch": {"size": BATCH},
        "epochs": 1}  # 1.6 MB a batch
SMALL = WIDE | {"name": "small", "variables": ["s"]}


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """A store with a variable of large batches and one of small ones, and their values."""
    random = np.random.default_rng(1)
    t = random.normal(size=(TIMES, SIDE, SIDE)).astype("f4")
    ds = xr.Dataset({"t": (("time", "y", "x"), t), "s": (("time",), t[:, 0, 0])})
    path = tmp_path_factory.mktemp("fields") / "fields.zarr"
    ds.to_zarr(path, zarr_format=2, encoding={"t": {"chunks": (BATCH, SIDE, SIDE)}})
    return path, ds


@pytest.fixture
def serve_fields(fields, tmp_path):
    servers = []

    def start(*options, views=None):
        servers.append(Server(fields[0], tmp_path, views or {"two": WIDE, "small": SMALL},
                              *options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def attempts(fd):
    """Everything that would change the file of this descriptor, by name."""
    path = f"/proc/self/fd/{fd}"
    libc = ctypes.CDLL(None, use_errno=True)

    def mapped():
        with mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as memory:
            memory[0] = 1

    def made_writable():
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, fd,
                            ctypes.c_long(0))
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096),
                         mmap.PROT_READ | mmap.PROT_WRITE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def again(flags):
        other = os.open(path, flags)
        try:
            os.pwrite(other, b"x", 0)
        finally:
            os.close(other)

    def from_pipe():
        out, into = os.pipe()
        os.write(into, b"xxxx")
        os.splice(out, fd, 4, offset_dst=0)

    def copied():
        other = os.memfd_create("other")
        os.write(other, b"xxxx")
        os.sendfile(fd, other, 0, 4)

    return {
        "write": lambda: os.pwrite(fd, b"x", 0),
        "ftruncate": lambda: os.ftruncate(fd, 0),
        "truncate": lambda: os.truncate(path, 0),
        "fallocate": lambda: os.posix_fallocate(fd, 1 << 24, 4096),
        "opening it for writing": lambda: again(os.O_RDWR),
        "opening it to append": lambda: again(os.O_WRONLY | os.O_APPEND),
        "mapping it": mapped,
        "making a mapping writable": made_writable,
        "splice": from_pipe,
        "sendfile": copied,
    }


def what_works(fd):
    for change in (lambda: os.fchmod(fd, 0o666), lambda: os.fchown(fd, 65534, 65534)):
        try:
            change()
        except OSError:
            pass
    worked = []
    for name, attempt in attempts(fd).items():
        try:
            attempt()
            worked.append(name)
        except OSError:
            pass
    return worked


@pytest.mark.says("batch-immutable")
@pytest.mark.parametrize("view, variable", [("two", "t"), ("small", "s")])
def test_no_reader_changes_what_others_read(serve_fields, fields, view, variable):
    server = serve_fields()
    reader = RawReader(server.socket, view)
    for fd in reader.view + reader.batch(0) + reader.batch(1):
        size = os.fstat(fd).st_size
        assert stat.S_ISREG(os.fstat(fd).st_mode)
        assert what_works(fd) == []
        assert os.fstat(fd).st_size == size
        try:  # a lease on a file blocks open(2)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            pass
    values = fields[1][variable].values
    others = [batch[variable].numpy().squeeze()
              for batch in batchfs.open(server.socket, view, mode="shm")]
    assert same(np.concatenate([other.reshape(BATCH, *values.shape[1:]) for other in others]),
                values)
    assert server.process.poll() is None


@pytest.mark.says("batch-immutable")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at its mappings' files")
def test_nobody_changes_a_batch_that_is_mapped_from_the_mount(fields, tmp_path):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    directory, view = tmp_path / "mnt", tmp_path / "two.json"
    directory.mkdir()
    view.write_text(json.dumps(WIDE))
    subprocess.run([PROGRAM, "mount", str(fields[0]), str(directory), "--view", str(view)],
                   check=True)
    try:
        file = next((directory / "views/two/epoch-0000").glob("batch-000000.npy"))
        before = file.read_bytes()
        with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0,
                                                   access=mmap.ACCESS_READ) as memory:
            assert what_works(opened.fileno()) == []
            for mapping in pathlib.Path("/proc/self/map_files").iterdir():
                if "batch-000000" not in os.readlink(mapping):
                    continue
                for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
                    with pytest.raises(OSError):
                        os.close(os.open(mapping, flags))
                with pytest.raises(OSError):
                    os.truncate(mapping, 0)
            assert memory[:] == before
    finally:
        subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=True)


# Holds every batch that it gets, of several readers in turn, prints their number, and waits.
GREEDY = """
import sys, batchfs
readers = [iter(batchfs.open(sys.argv[1], "two", mode="shm", prefetch=0))
           for _ in range(int(sys.argv[2]))]
held = []
try:
    while len(held) < 500:
        held.append(next(readers[len(held) % len(readers)]))
except (batchfs.Error, MemoryError) as error:
    why = error
print(len(held), why, flush=True)
sys.stdin.read()
"""


@pytest.mark.says("handoff-share")
@pytest.mark.parametrize("readers", [1, 3])
def test_a_reader_that_holds_all_it_can_and_stops_starves_nobody(serve_fields, fields, readers):
    views = {"two": WIDE | {"epochs": 50, "batch": {"size": 4}}}  # 0.4 MB a batch, 24 of them
    server = serve_fields("--memory", "5M", views=views)
    greedy = subprocess.Popen([sys.executable, "-c", GREEDY, server.socket, str(readers)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = greedy.stdout.readline()
        held, why = said.split(" ", 1)
        assert 4 <= int(held) <= 9 and "exceeds its share" in why, said
        greedy.send_signal(signal.SIGSTOP)
        read = [batch["t"].numpy().copy()
                for batch in batchfs.open(server.socket, "two", mode="shm")]
        assert same(np.concatenate(read).squeeze(), fields[1].t.values)
    finally:
        greedy.kill()
        greedy.wait()


@pytest.mark.says("umount-handoff")
def test_umount_refuses_while_a_reader_of_the_handoff_holds_a_batch(own_mount):
    held = next(iter(batchfs.open(own_mount, "two", prefetch=0, mode="shm")))
    done = subprocess.run([PROGRAM, "umount", str(own_mount)], capture_output=True, text=True,
                          timeout=20)
    assert done.returncode != 0 and os.path.ismount(own_mount)
    assert done.stderr.count("\n") == 1
    assert "of the hand-off holds" in done.stderr and "--lazy" in done.stderr, done.stderr
    del held
    assert eventually(lambda: status(own_mount)["handoff"]["leases"] == 0)
    subprocess.run([PROGRAM, "umount", str(own_mount)], check=True, timeout=20)
    assert not os.path.ismount(own_mount)


@pytest.mark.says("umount-handoff")
def test_umount_lazy_ends_a_mount_whose_batches_are_held(own_mount):
    held = next(iter(batchfs.open(own_mount, "two", prefetch=0, mode="shm")))
    before = held["t"].numpy().copy()
    subprocess.run([PROGRAM, "umount", "--lazy", str(own_mount)], check=True, timeout=20)
    assert not os.path.ismount(own_mount)
    assert same(held["t"].numpy(), before)


def test_umount_of_a_mount_that_hangs_does_not(own_mount):
    daemon = status(own_mount)["pid"]
    os.kill(daemon, signal.SIGSTOP)
    try:
        done = subprocess.run([PROGRAM, "umount", str(own_mount)], capture_output=True, text=True,
                              timeout=20)
        assert done.returncode == 0, done.stderr
    finally:
        os.kill(daemon, signal.SIGCONT)


@pytest.mark.says("handoff-own-server")
def test_a_socket_that_others_could_replace_is_refused(serve_fields, fields, tmp_path):
    server = serve_fields()
    tmp_path.chmod(0o777)
    with pytest.raises(batchfs.Error, match="any user can replace the socket.*chmod o-w"):
        batchfs.open(server.socket, "two")
    view = tmp_path / "two.json"
    done = subprocess.run([PROGRAM, "serve", str(fields[0]), "--view", str(view), "--socket",
                           str(tmp_path / "other.sock")],
                          capture_output=True, text=True, timeout=20)
    assert (done.returncode != 0 and done.stderr.count("\n") == 1
            and "any user could replace the socket" in done.stderr)
    tmp_path.chmod(0o1777)  # sticky: the entries are ours
    assert batchfs.open(server.socket, "two").schema
    tmp_path.chmod(0o700)


# Serves as another user.
OTHER = """
import os, sys
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.says("handoff-own-server")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_another_users_server_is_refused(fields, tmp_path_factory):
    directory = tmp_path_factory.mktemp("other")
    for above in [directory, *directory.parents, *fields[0].parents]:
        if above.is_relative_to("/tmp/") and above != pathlib.Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o055)
    os.chown(directory, 65534, 65534)
    (directory / "two.json").write_text(json.dumps(WIDE))
    socket = directory / "s"
    server = subprocess.Popen([sys.executable, "-c", OTHER, PROGRAM, "serve", str(fields[0]),
                               "--view", str(directory / "two.json"), "--socket", str(socket)],
                              stderr=subprocess.DEVNULL)
    try:
        if not eventually(lambda: socket.exists()
                          or server.poll() is not None) or server.poll() is not None:
            pytest.skip("another user cannot run the program here")
        with pytest.raises(batchfs.Error, match="the server runs as user 65534"):
            batchfs.open(socket, "two")
    finally:
        server.kill()
        server.wait()


@pytest.mark.says("handoff-any-type")
def test_tensors_need_no_file_format_to_be_handed_over(fields, serve_fields, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = WIDE | {"dtype": "bfloat16"}  # as files they would be npy, which has none
    server = serve_fields(views={"two": half})
    got = np.concatenate([batch["t"].numpy() for batch in batchfs.open(server.socket, "two")])
    assert got.dtype == ml_dtypes.bfloat16
    assert same(got.squeeze(), fields[1].t.values.astype(ml_dtypes.bfloat16))
    # A mount shows files, and reports the size it would need.
    (tmp_path / "mnt").mkdir()
    refused = subprocess.run([PROGRAM, "mount", str(fields[0]), str(tmp_path / "mnt"), "--view",
                              str(tmp_path / "two.json")],
                             capture_output=True, text=True, timeout=20)
    assert (refused.returncode != 0
                and '"formats": ["safetensors"]' in refused.stderr), refused.stderr
