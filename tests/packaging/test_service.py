"""A mount as a service: what the manager hears, by sd_notify(3)'s protocol."""

import os
import signal
import socket
import subprocess

import pytest

PROGRAM = os.path.abspath(os.environ.get("BATCHFS", "build/batchfs"))


@pytest.fixture
def manager(tmp_path):
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(str(tmp_path / "notify"))
    listening.settimeout(30)
    with listening:
        yield listening


@pytest.fixture
def service(manager, weather, directory):
    """A mount in the foreground, as systemd starts it, with a watchdog of 0.4 s."""
    started = subprocess.Popen(
        [PROGRAM, "mount", "--foreground", weather, directory], stderr=subprocess.PIPE,
        env=os.environ | {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "400000"})
    yield started
    started.kill()
    started.wait()
    started.stderr.close()


def heard(manager):
    return manager.recv(4096).decode().splitlines()


def until(manager, word):
    while True:
        lines = heard(manager)
        if word in lines:
            return lines


def test_ready_alive_and_stopping(service, manager, weather, directory):
    ready = until(manager, "READY=1")
    assert f"STATUS=serving {weather} at {directory}" in ready
    assert os.path.ismount(directory)
    for _ in range(3):
        until(manager, "WATCHDOG=1")
    service.send_signal(signal.SIGTERM)
    until(manager, "STOPPING=1")
    assert service.wait(30) == 0
    assert not os.path.ismount(directory)


def test_it_stops_when_it_is_unmounted(service, manager, good, directory):
    until(manager, "READY=1")
    for _ in range(20):
        try:
            good("umount", directory)
            break
        except AssertionError:  # another process is using it
            until(manager, "WATCHDOG=1")
    until(manager, "STOPPING=1")
    assert service.wait(30) == 0
