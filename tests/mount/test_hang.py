"""The process that serves a mount hangs: its supervisor notices, and another takes over, as when it
had died."""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

# importlib mode does not
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from watching import eventually, is_alive

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
LONG = 60  # seconds that nothing here takes, on however slow a machine
VIEW = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 6}}
FIRST = "views/v/epoch-0000/batch-000000.npy"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.zarr"
    values = np.random.default_rng(0).normal(size=(24, 40)).astype("f4")
    zarr.create_group(path).create_array("t", data=values, chunks=(4, 40),
                                         dimension_names=["time", "place"])
    return path


@pytest.fixture
def mount(store, good, batchfs, tmp_path):
    """mount(*options): a directory where the store is mounted, until the test ends."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    (tmp_path / "view.json").write_text(json.dumps(VIEW))

    def mount(*options):
        good("mount", store, directory, "--view", tmp_path / "view.json", *options)
        return directory

    yield mount
    batchfs("umount", "--lazy", directory)


def pid_of(directory):
    return json.loads((directory / ".batchfs" / "status.json").read_text())["pid"]


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class Reading(threading.Thread):
    """Reads a file in a thread, as what is tried may hang."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.contents, self.error = path, None, None
        self.start()

    def run(self):
        try:
            self.contents = self.path.read_bytes()
        except OSError as error:
            self.error = error

    def is_done(self):
        return not self.is_alive()


@pytest.mark.says("death-hang")
@pytest.mark.parametrize("mode", [[], ["--no-passthrough"]])
def test_a_stopped_daemon_is_replaced(mount, mode):
    directory = mount("--hang-timeout", "1", *mode)
    known = (directory / FIRST).read_bytes()
    pid = pid_of(directory)
    with open(directory / FIRST, "rb") as file, stopped(pid):
        reading = Reading(directory / "views/v/epoch-0000/batch-000001.npy")
        assert eventually(reading.is_done, LONG) and reading.error is None
        assert file.read() == known
    assert pid_of(directory) != pid and not is_alive(pid)
    assert parent_of(pid_of(directory))
    assert "did not answer for 1 seconds" in (directory / ".batchfs" / "log").read_text()


@pytest.mark.says("death-hang")
def test_without_a_supervisor_that_restarts_the_mount_ends(mount):
    directory = mount("--hang-timeout", "1", "--no-supervisor")
    with stopped(pid_of(directory)):
        reading = Reading(directory / FIRST)
        assert eventually(reading.is_done, LONG)
        assert reading.error is not None
    assert eventually(lambda: not os.path.ismount(directory), LONG)


def test_daemons_that_always_hang_are_given_up(mount):
    directory = mount("--hang-timeout", "1")
    for _ in range(3):
        pid = pid_of(directory)
        supervisor = parent_of(pid)
        with stopped(pid):
            assert eventually(lambda: not is_alive(pid), LONG)
        with contextlib.suppress(OSError):
            eventually(lambda: not os.path.ismount(directory) or pid_of(directory) != pid, LONG)
    assert eventually(lambda: not os.path.ismount(directory) and not is_alive(supervisor), LONG)


def test_a_stopped_supervisor_accuses_nobody(mount):
    """Time in which both it and the daemon did not run is not silence."""
    directory = mount("--hang-timeout", "2")
    pid = pid_of(directory)
    with stopped(parent_of(pid)), stopped(pid):
        time.sleep(4)
    time.sleep(1)
    assert pid_of(directory) == pid


def test_zero_leaves_a_stopped_daemon_alone(mount):
    directory = mount("--hang-timeout", "0")
    pid = pid_of(directory)
    with stopped(pid):
        time.sleep(3)
    assert pid_of(directory) == pid


def test_a_debugger_may_hold_the_daemon(mount):
    directory = mount("--hang-timeout", "1")
    pid = pid_of(directory)
    libc = ctypes.CDLL(None, use_errno=True)
    seize, interrupt, detach = 0x4206, 0x4207, 17
    if libc.ptrace(seize, pid, None, None) != 0:
        pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    try:
        assert libc.ptrace(interrupt, pid, None, None) == 0
        os.kill(pid, signal.SIGSTOP)  # the threads that are not traced stop, too
        time.sleep(4)
        assert is_alive(pid)
    finally:
        os.waitpid(pid, 0x40000000)  # __WALL
        libc.ptrace(detach, pid, None, None)
        os.kill(pid, signal.SIGCONT)
    assert pid_of(directory) == pid


# ---- descriptors that a daemon inherits from the program that started it ----


@pytest.mark.parametrize("command", ["mount", "serve"])
def test_a_lock_of_the_script_is_free_when_the_command_returns(
        command, store, mount, good, tmp_path):
    """`( flock 9; batchfs mount ... ) 9>lock`"""
    (tmp_path / "view.json").write_text(json.dumps(VIEW))
    what = {"mount": [str(store), str(tmp_path / "mnt")],
            "serve": [str(store), "--socket", str(tmp_path / "socket"), "--background"]}[command]
    script = 'exec 9>"$0"; flock 9; "$@" || exit 1'
    lock = tmp_path / "lock"
    done = subprocess.run(["bash", "-c", script, str(lock), PROGRAM, command, *what, "--view",
                           str(tmp_path / "view.json")], capture_output=True, timeout=LONG)
    try:
        assert (done.returncode, done.stderr) == (0, b"")
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        if command == "serve":
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(str(tmp_path / "socket"))
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            os.kill(struct.unpack("3i", peer)[0], signal.SIGTERM)


def test_a_view_from_a_pipe_of_the_shell(store, mount, tmp_path):
    """`--view <(make-a-view)` names a descriptor that the shell has opened."""
    (tmp_path / "view.json").write_text(json.dumps(VIEW))
    script = '"$1" mount "$2" "$3" --view <(cat "$4")'
    done = subprocess.run(["bash", "-c", script, "bash", PROGRAM, str(store), str(tmp_path / "mnt"),
                           str(tmp_path / "view.json")], capture_output=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "mnt" / FIRST).read_bytes()
