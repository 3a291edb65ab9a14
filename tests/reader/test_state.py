"""`batchfs status`, `top`, `report` and `log` of a server without a mount."""

import json
import os
import signal
import socket
import subprocess

import pytest
from reader_servers import VIEWS
from watching import eventually

import batchfs as package


@pytest.fixture
def read_server(serve):
    """A server of which one view was read: a report has the latest readers only."""
    server = serve()
    reader = package.open(server.socket, "two", epoch=0)
    for batch in reader:
        batch["t"].numpy()
    yield server
    del reader


def good(*arguments):
    program = os.environ.get("BATCHFS", "build/batchfs")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, check=True,
                          timeout=60).stdout


def refused(*arguments):
    program = os.environ.get("BATCHFS", "build/batchfs")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=False,
                          timeout=60)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1, done
    return done.stderr.decode()


def test_status(read_server):
    told = json.loads(good("status", read_server.socket, "--json"))
    assert told["pid"] == read_server.process.pid and told["handoff"]["readers"] >= 1
    assert told["errors"] == 0 and told["bytes_fetched"] > 0
    stream = next(stream for stream in told["streams"] if stream["view"] == "two")
    assert stream["batches"] > 0
    text = good("status", read_server.socket).decode()
    lines = text.splitlines()
    assert str(read_server.socket) in lines[0] and any(line.startswith("two (")
                                                       for line in lines), text
    assert all(len(line) <= 80 for line in lines[1:]), text


def test_top(read_server):
    now = json.loads(good("top", read_server.socket, "--json", "--interval", "0.1"))
    assert now["pid"] == read_server.process.pid
    assert any(reader["view"] == "two" for reader in now["readers"])
    assert str(read_server.socket) in good("top", read_server.socket, "--once", "--interval",
                                           "0.1").decode()


def test_show(read_server):
    page = good("show", read_server.socket, "--pictures", "1").decode()
    assert page.startswith("<!DOCTYPE html>") and page.count("<img ") == len(VIEWS)
    told = json.loads(good("status", read_server.socket, "--json"))
    assert told["errors"] == 0


def test_report(read_server, tmp_path):
    advice = good("report", read_server.socket, "-o", tmp_path / "report.html").decode()
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and advice.strip() and "two 0/1" in page
    assert "<img" not in page
    assert "by the kernel" not in advice


def test_report_with_a_batch(read_server, tmp_path):
    good("report", read_server.socket, "--batch", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<img ") == 1 and "Batch 0 of the view two" in page
    for file in (tmp_path).glob("*.json"):
        file.unlink()
    good("report", read_server.socket, "--batch", "-o", tmp_path / "report.html")
    assert "No batch: " in (tmp_path / "report.html").read_text()


def test_log_and_its_level(serve):
    own = serve()
    assert b"serving batches at" in good("log", own.socket)
    good("log", own.socket, "--level", "debug")
    assert eventually(lambda: b"the log's level is debug" in good("log", own.socket))


def test_what_is_no_place(tmp_path):
    (tmp_path / "file").write_text("")
    assert "no mount and no socket" in refused("status", tmp_path / "nothing")
    assert "nothing is mounted there" in refused("status", tmp_path)
    for command in ("status", "top", "report", "log"):
        assert "socket" in refused(command, tmp_path / "nothing",
                                   *(["--once"] if command == "top" else []))


def test_a_socket_that_nobody_serves(tmp_path):
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(path))
    assert "batchfs serve" in refused("status", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(tmp_path / "other.sock"))
        other.listen()
        assert "not of batchfs" in refused("status", tmp_path / "other.sock")


def test_a_server_that_hangs(serve):
    own = serve()
    own.process.send_signal(signal.SIGSTOP)
    try:
        assert "no answer within 5 seconds" in refused("status", own.socket)
    finally:
        own.process.send_signal(signal.SIGCONT)
    assert json.loads(good("status", own.socket, "--json"))["pid"] == own.process.pid


def test_the_socket_of_a_mount_names_the_mount(mounted):
    assert "name the mount's directory" in refused("status", mounted / ".batchfs/handoff.sock")
