"""Waits end: by a signal, by the clock, by the store's deadline; and nothing else waits with
them."""

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fault_proxy import QUICK, Fault, is_chunk
from watching import eventually, is_alive, status

PATIENT = ["--timeout", "600", "--retries", "100"]
SOON = 20  # seconds; a stalled answer comes to its end after 60
EPOCH = "views/v/epoch-0000"

# Opens or reads without Python's own retries, and prints the errno; 0 on success.
READER = """
import ctypes, os, signal, sys
path, restart = sys.argv[1], sys.argv[2] == "restart"
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.siginterrupt(signal.SIGUSR1, not restart)
libc = ctypes.CDLL(None, use_errno=True)
values = path.endswith("values.npy")  # waits in its read, others in their open
if not values:
    print("ready", flush=True)
fd = libc.open(os.fsencode(path), os.O_RDONLY | os.O_NONBLOCK)
if fd >= 0 and values:
    print("ready", flush=True)
    buffer = ctypes.create_string_buffer(1 << 20)
    got = libc.pread(fd, buffer, len(buffer), 4096)
    fd = -1 if got < 0 else fd
print(ctypes.get_errno() if fd < 0 else 0, flush=True)
"""


class Reader:
    def __init__(self, path, restart=False):
        self.process = subprocess.Popen([sys.executable, "-c", READER, str(path), "restart"
                                             if restart else ""], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def is_in_call(self):
        """Whether it waits for an answer of the mount; never true where the kernel does not
        tell."""
        try:
            return pathlib.Path(
                f"/proc/{self.process.pid}/wchan").read_text() == "request_wait_answer"
        except OSError:
            return False

    def waits(self, seconds=0.3):
        """Whether it waits for an answer of the mount, and still does so many seconds later."""
        eventually(lambda: self.process.poll() is not None or self.is_in_call(), SOON)
        time.sleep(seconds)
        return self.process.poll() is None

    def errno(self, timeout=30):
        return int(self.process.communicate(timeout=timeout)[0])


@pytest.fixture
def reader():
    readers = []

    def start(path, **options):
        readers.append(Reader(path, **options))
        return readers[-1]

    yield start
    for one in readers:
        one.process.kill()
        one.process.wait(20)


def nobody_waits(directory):
    return eventually(lambda: status(directory)["readers_waiting"] == 0)


def chunk_file(directory):
    folder = directory / "arrays/x/chunks"
    return folder / sorted(os.listdir(folder))[-1]


WAITS = {"batch": lambda d: d / EPOCH / "batch-000003.npy", "chunk": chunk_file,
         "values": lambda d: d / "arrays/x/values.npy"}


@pytest.fixture
def stalled(proxy, mounted):
    """stalled(*options): a mount whose chunks have stopped coming."""

    def start(*options):
        directory = mounted(proxy.url, *(options or PATIENT))
        proxy.set(Fault(stall=10, applies=is_chunk))
        return directory

    return start


@pytest.mark.says("list-no-data")
def test_listings_and_sizes_need_no_data(stalled, reader, proxy):
    directory = stalled()
    waiting = reader(WAITS["batch"](directory))
    assert waiting.waits()
    assert len(os.listdir(directory / EPOCH)) == 8
    sizes = {path: path.stat().st_size for path in directory.rglob("*") if path.is_file()}
    assert (directory / EPOCH / "batch-000000.npy").stat().st_size == 4096 + 6 * 40 * 4
    assert waiting.waits(0)
    proxy.set(Fault())
    assert waiting.errno() == 0
    assert len([path for path in sizes if ".batchfs" not in path.parts]) > 20
    for path, size in sizes.items():
        content = path.read_bytes()
        assert size == (0 if ".batchfs" in path.parts else len(content)), path


@pytest.mark.says("open-waits", "read-never-waits", "values-wait")
def test_what_waits_and_what_does_not(proxy, mounted, reader, values):
    directory = mounted(proxy.url, *PATIENT, "--memory", "20K")
    with open(directory / EPOCH / "batch-000000.npy", "rb") as file:
        proxy.set(Fault(stall=10, applies=is_chunk))
        for name in ("batch", "chunk"):
            waiting = reader(WAITS[name](directory))  # O_NONBLOCK, too
            assert waiting.waits()
        with open(directory / "arrays/x/values.npy", "rb"):
            assert reader(directory / "arrays/x/values.npy").waits()
        assert np.array_equal(np.frombuffer(file.read()[4096:], "f4").reshape(6, 40), values[:6])


@pytest.mark.says("eintr")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("what", WAITS)
def test_a_signal_interrupts(stalled, reader, what, restart):
    directory = stalled()
    waiting = reader(WAITS[what](directory), restart=restart)
    assert waiting.waits()
    waiting.process.send_signal(signal.SIGUSR1)
    assert waiting.errno(SOON) == errno.EINTR
    # the kernel reads ahead, and not for a reader
    assert what == "values" or nobody_waits(directory)


@pytest.mark.says("kill")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", WAITS)
def test_a_killed_reader_is_gone_at_once(stalled, reader, what, number):
    directory = stalled()
    waiting = reader(WAITS[what](directory))
    assert waiting.waits()
    waiting.process.send_signal(number)
    assert waiting.process.wait(SOON) != 0
    # the kernel reads ahead, and not for a reader
    assert what == "values" or nobody_waits(directory)


@pytest.mark.says("interrupt-others")
def test_others_are_not_disturbed(proxy, mounted, reader):
    directory = mounted(proxy.url, *PATIENT)
    proxy.set(Fault(latency=2, applies=is_chunk))
    batch = WAITS["batch"](directory)
    leaving, staying = reader(batch), reader(batch)
    assert leaving.waits()
    leaving.process.kill()
    assert leaving.process.wait(SOON) != 0
    assert staying.errno() == 0


@pytest.mark.says("wait-deadline")
@pytest.mark.parametrize("what", WAITS)
def test_nobody_waits_longer_than_the_deadline(stalled, reader, what):
    directory = stalled(*PATIENT, "--wait", "0.5")
    assert reader(WAITS[what](directory)).errno() == errno.ETIMEDOUT
    assert "--wait" in (directory / ".batchfs/log").read_text()
    assert nobody_waits(directory)


@pytest.mark.says("store-deadline", "retry")
def test_a_stalled_object_is_a_timeout_and_others_go_on(proxy, directory, mounted, reader, values):
    (last,) = [key for key in ("x/5.0", "x/c/5/0", "x/c/1/0") if (directory / key).exists()][:1]
    directory = mounted(proxy.url, *QUICK)
    proxy.set(Fault(stall=10, applies=lambda path: is_chunk(path) and path.endswith(last)))
    waiting = reader(WAITS["batch"](directory))
    got = np.frombuffer((directory / EPOCH / "batch-000000.npy").read_bytes()[4096:], "f4")
    assert np.array_equal(got.reshape(6, 40), values[:6])
    assert waiting.errno() == errno.ETIMEDOUT
    proxy.set(Fault())
    got = np.frombuffer(WAITS["batch"](directory).read_bytes()[4096:], "f4")
    assert np.array_equal(got.reshape(6, 40), values[18:])


def pid_of(directory):
    return status(directory)["pid"]


def test_a_disk_that_hangs(proxy, mounted, batchfs, good, reader, tmp_path):
    """A local store on a network disk whose server is gone: here, on another mount whose store
    stalls."""
    view = json.loads((tmp_path / "view.json").read_text())
    (tmp_path / "view.json").write_text(
        json.dumps(view | {"formats": ["zarr"], "tensors": {"field": {"variables": ["x"]}}}))
    disk = mounted(proxy.url, *PATIENT)
    proxy.set(Fault(stall=10, applies=is_chunk))
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner.json").write_text(json.dumps({"name": "v", "window": {"sample": 1},
                                                     "variables": ["field"]}))
    good("mount", disk / EPOCH / "batch-000001.zarr", tmp_path / "inner", "--view",
         tmp_path / "inner.json", "--wait", "0.5")
    try:
        pid = pid_of(tmp_path / "inner")
        assert reader(tmp_path / "inner" / EPOCH / "batch-000000.npy").errno() == errno.ETIMEDOUT
        os.listdir(tmp_path / "inner" / EPOCH)
        os.kill(pid, signal.SIGTERM)
        assert eventually(lambda: not os.path.ismount(tmp_path / "inner"))
        assert eventually(lambda: not is_alive(pid))
    finally:
        batchfs("umount", "--lazy", tmp_path / "inner")
