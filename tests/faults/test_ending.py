"""Ending while the network is dead: nothing waits for it, nothing is left behind."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from fault_proxy import Fault, is_chunk
from watching import eventually, is_alive, status

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
PATIENT = ["--timeout", "600", "--retries", "100"]
SOON = 2  # seconds: the delays below take minutes

# Faults that keep a chunk from arriving, for as long as anyone waits.
DEAD = {
    "a stall": Fault(stall=10),
    "no answer": Fault(latency=50),
    "retries": Fault(status=503, headers={"Retry-After": "40"}),
}


def pid_of(directory):
    return status(directory)["pid"]


def ends_soon(pid):
    return eventually(lambda: not is_alive(pid), SOON)


def arrived(proxy):
    """Waits until requests for chunks have come."""

    def asked():
        with proxy.lock:
            return any(is_chunk(path) for _, path, _ in proxy.requests)

    assert eventually(asked), "nobody asked for a chunk"


@pytest.fixture
def dead(request, proxy, mounted):
    """A mount whose chunks never come, and a process that waits for one: (directory, its pid, the
    reader)."""
    readers = []

    def start(fault, file="views/v/epoch-0000/batch-000001.npy"):
        directory = mounted(proxy.url, *PATIENT)
        pid = pid_of(directory)
        fault.applies = is_chunk
        proxy.set(fault)
        reader = subprocess.Popen([sys.executable,
                                   "-c", f"open({str(directory / file)!r}, 'rb').read()"],
                                  stderr=subprocess.PIPE)
        readers.append(reader)
        arrived(proxy)
        return directory, pid, reader

    yield start
    for reader in readers:
        reader.kill()
        reader.wait(20)


@pytest.mark.says("umount-signal", "umount-waiting")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("name", DEAD)
def test_a_signal_ends_the_mount_and_its_readers(dead, name, number):
    directory, pid, reader = dead(DEAD[name])
    os.kill(pid, number)
    assert ends_soon(pid)
    assert reader.wait(SOON) != 0
    assert b"Error" in reader.stderr.read()
    assert not os.path.ismount(directory)


@pytest.mark.parametrize("name", DEAD)
def test_umount_after_a_reader_that_gave_up(dead, good, name):
    directory, pid, reader = dead(DEAD[name])
    reader.kill()
    assert reader.wait(SOON) != 0
    good("umount", directory, timeout=SOON)
    assert ends_soon(pid)


def test_umount_with_a_reader_says_so_at_once(dead, batchfs, good):
    directory, pid, reader = dead(DEAD["a stall"])
    done = batchfs("umount", directory, timeout=SOON)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert reader.poll() is None
    good("umount", "--lazy", directory, timeout=SOON)
    assert not os.path.ismount(directory)
    assert is_alive(pid)  # for the reader
    reader.kill()
    assert ends_soon(pid)


def test_a_killed_reader_of_values_is_let_go(dead, good):
    directory, pid, reader = dead(DEAD["a stall"], "arrays/x/values.npy")
    reader.kill()
    assert reader.wait(SOON) != 0
    good("umount", directory, timeout=SOON)
    assert ends_soon(pid)


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_cat(proxy, name, number):
    fault = DEAD[name]
    fault.applies = is_chunk
    proxy.set(fault)
    cat = subprocess.Popen([PROGRAM, "cat", proxy.url, "x", *PATIENT], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    arrived(proxy)
    cat.send_signal(number)
    output, errors = cat.communicate(timeout=SOON)
    assert cat.returncode == -number and output == b"" and errors == b""


def test_mount_in_vain_can_be_interrupted(proxy, tmp_path):
    """The command waits for its daemon: Ctrl-C ends both."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    proxy.set(Fault(latency=50))
    command = subprocess.Popen([PROGRAM, "mount", proxy.url, str(directory), *PATIENT],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    assert eventually(lambda: proxy.requests)
    children = pathlib.Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    assert len(children) == 1
    os.killpg(command.pid, signal.SIGINT)
    command.communicate(timeout=SOON)
    assert ends_soon(int(children[0]))
    assert not os.path.ismount(directory)
