"""A mount's reports about itself: metrics for Prometheus, the trace, top, the report, the log."""

import fcntl
import html.parser
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

PROGRAM = os.environ.get("BATCHFS", "build/batchfs")


@pytest.fixture(scope="module")
def read_mount(weather, mount_at, tmp_path_factory):
    """A mount with a view that was read."""
    view = {"name": 'a <b>&"view', "window": {"time": 1}, "variables": ["t"], "batch": {"size": 2},
            "epochs": 1}
    mount = mount_at(weather, tmp_path_factory.mktemp("inside") / "mnt", {"v": view})
    for batch in range(20):
        np.load(mount / "views" / view["name"] / f"epoch-0000/batch-{batch:06d}.npy")
    return mount


def test_metrics_as_prometheus_reads_them(read_mount):
    text = (read_mount / ".batchfs/metrics").read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, family in families.items():
        assert (name.startswith("batchfs_") and family.documentation
                    and family.type != "unknown"), name
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples), name
        for forbidden in ("nanoseconds", "milliseconds", "kilobytes"):
            assert forbidden not in name
    samples = {(s.name, tuple(s.labels.values())): s.value for f in families.values()
               for s in f.samples}
    assert samples["batchfs_batches_opened_total", ()] == 20
    assert samples["batchfs_stream_batches_total", ('a <b>&"view', "npy", "0", "1")] == 20
    waits = families["batchfs_get_batch_seconds"]
    assert waits.type == "histogram"
    buckets = [s.value for s in waits.samples if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == 20
    assert samples["batchfs_get_batch_seconds_count", ()] == 20
    status = json.loads((read_mount / ".batchfs/status.json").read_text())
    assert samples["batchfs_fetched_bytes_total", ()] == status["bytes_fetched"]


def test_metrics_as_promtool_wants_them(read_mount):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"],
                          input=(read_mount / ".batchfs/metrics").read_bytes(), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_trace_is_of_the_trace_event_format(read_mount):
    trace = json.loads((read_mount / ".batchfs/trace.json").read_text())
    status = json.loads((read_mount / ".batchfs/status.json").read_text())
    spans = [event for event in trace if event["ph"] == "X"]
    assert {event["name"] for event in spans} == {"decode", "assemble", "wait"}
    rows = {event["tid"] for event in trace if event["name"] == "thread_name"}
    for event in spans:
        assert (event["pid"] == status["pid"] and event["tid"] in rows and event["ts"] > 0
                and event["dur"] >= 0)
        assert event["args"]["view"] == 'a <b>&"view' and 0 <= event["args"]["batch"] < 20
    assert sorted(e["args"]["batch"] for e in spans if e["name"] == "wait") == list(range(20))
    assert {e["args"]["chunk"].split("/")[0] for e in spans if e["name"] == "decode"} == {"t"}
    for row in rows:  # spans of a row do not overlap
        ends = 0
        for event in sorted((e for e in spans if e["tid"] == row), key=lambda e: e["ts"]):
            assert event["ts"] >= ends - 0.002
            ends = event["ts"] + event["dur"]


def test_top_for_programs(read_mount, good):
    now = json.loads(good("top", read_mount, "--json", "--interval", "0.2"))
    (reader,) = now["readers"]
    assert (reader["view"], reader["rank"], reader["world"],
            reader["batch"]) == ('a <b>&"view', 0, 1, 19)
    assert reader["batches_per_second"] == 0 and now["errors"] == 0
    text = good("top", read_mount, "--once", "--interval", "0.2").decode()
    assert 'a <b>&"view (npy)' in text and "19/20" in text and "\x1b" not in text


def test_top_needs_a_terminal(read_mount, fails):
    assert "--once" in fails(2, "top", read_mount, stdin=subprocess.DEVNULL)


class Screen:
    """top in a terminal of its own."""

    def __init__(self, mount, columns=100, rows=24):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([PROGRAM, "top", str(mount), "--interval", "0.1"],
                                        stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True)
        self.slave = slave
        self.text = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, wanted, seconds=20):
        self.text = b""
        end = time.monotonic() + seconds
        while wanted not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536)

    def end(self):
        """Waits for the end, reading what is still written."""
        end = time.monotonic() + 20
        while self.process.poll() is None:
            assert time.monotonic() < end
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before  # the terminal is as it was
        assert self.text.rstrip().endswith(b"\x1b[?1049l")
        return self.process.returncode


@pytest.mark.parametrize("columns, rows", [(80, 24), (200, 50)])
def test_top_live_fills_no_more_than_the_terminal(read_mount, columns, rows):
    screen = Screen(read_mount, columns, rows)
    screen.read_until(b"READER")
    screen.read_until(b"\x1b[J")
    screen.read_until(b"\x1b[J")
    shown = screen.text[: screen.text.rindex(b"\x1b[J")].split(b"\x1b[H")[-1].replace(
        b"\x1b[K", b"")
    lines = re.sub(rb"\x1b\[[0-9;]*m", b"", shown).decode().split("\r\n")
    print("\n".join(lines))
    assert len(lines) <= rows and all(len(line) <= columns for line in lines), lines
    (header,) = [i for i, line in enumerate(lines) if line.lstrip().startswith("READER")]
    reader = lines[header + 1]
    assert reader.startswith('a <b>&"view (npy)') and "19/20" in reader
    # Important columns are shown whole; others are left out if the terminal is too narrow.
    assert lines[header].split()[-1] == "FAILED" and reader.split()[-1] == "0"
    assert "WAITS" in lines[header] and ("EPOCH" in lines[header] or columns < 100)
    os.write(screen.master, b"q")
    assert screen.end() == 0


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_top_live_ends_with_a_key(read_mount, key):
    screen = Screen(read_mount)
    screen.read_until(b"READER")
    assert b"\x1b[?1049h" in screen.text and b"view (npy)" in screen.text
    os.write(screen.master, b"x")  # not one of its keys
    os.write(screen.master, key)
    assert screen.end() == 0


def test_top_live_ends_with_a_signal(read_mount):
    screen = Screen(read_mount)
    screen.read_until(b"READER")
    screen.process.send_signal(signal.SIGTERM)
    assert screen.end() == 0


def test_top_live_follows_the_size_of_the_terminal(read_mount):
    screen = Screen(read_mount)
    screen.read_until(b"READER")
    screen.resize(30, 6)
    screen.process.send_signal(signal.SIGWINCH)
    screen.read_until(b"\x1b[H")
    screen.read_until(b"\x1b[J")
    screen.read_until(b"\x1b[J")  # a whole screen of the new size
    last = screen.text[: screen.text.rindex(b"\x1b[J")].split(b"\x1b[H")[-1]
    lines = last.replace(b"\x1b[K", b"").split(b"\r\n")
    assert len(lines) <= 6 and all(len(line.decode()) <= 30 for line in lines), lines
    os.write(screen.master, b"q")
    assert screen.end() == 0


class Page(html.parser.HTMLParser):
    """The contents of a page, and whether every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], set(), [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_report_is_one_page(read_mount, good, tmp_path):
    advice = good("report", read_mount, "-o", tmp_path / "report.html").decode()
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.open == [] and page.links == [] and "script" not in page.tags and "svg" in page.tags
    assert "url(" not in text and "http:" not in text and "https:" not in text
    assert 'a <b>&"view' in page.text
    assert advice.strip() and advice.splitlines()[0] in page.text
    assert good("report", read_mount).decode().startswith("<!DOCTYPE html>")


def test_the_report_of_a_mount_that_nobody_read(weather, mount_at, tmp_path, good):
    mount = mount_at(weather, tmp_path / "mnt", {})
    assert b"No batch was read" in good("report", mount, "-o", tmp_path / "report.html")


def test_a_report_that_cannot_be_written(read_mount, fails, tmp_path):
    assert "/nowhere/report.html" in fails(1, "report", read_mount, "-o",
                                           tmp_path / "nowhere/report.html")


@pytest.mark.parametrize("command", ["top", "report", "log"])
def test_commands_for_mounts_refuse_what_is_none(command, fails, tmp_path):
    assert "nothing is mounted there" in fails(1, command, tmp_path)
    assert command in fails(2, command)


def test_the_log_and_its_level(weather, mount_at, tmp_path, good, fails):
    view = {"name": "v", "window": {"time": 1}, "variables": ["t"]}
    mount = mount_at(weather, tmp_path / "mnt", {"v": view})

    def eventually_in_log(text):
        for _ in range(100):
            if text in good("log", mount):
                return True
            time.sleep(0.1)
        return False

    good("log", mount, "--level", "debug")
    assert eventually_in_log(b"the log's level is debug from now on")
    os.kill(json.loads((mount / ".batchfs/status.json").read_text())["pid"], signal.SIGUSR1)
    assert eventually_in_log(b"the log's level is info from now on")
    assert "debug, info, warning or error" in fails(2, "log", mount, "--level", "loud")
    assert np.load(mount / "views/v/epoch-0000/batch-000000.npy").size > 0  # it serves as before
