"""Exit codes, help and the one line of every error."""

import os
import subprocess

import pytest

COMMANDS = ["inspect", "cat", "view", "plan", "statistics", "batch", "mount", "umount", "status"]


def test_version(good):
    assert good("--version").decode().split()[0] == "batchfs"


def test_help_lists_every_command(good):
    text = good("--help").decode()
    for command in COMMANDS:
        assert f"\n  {command} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(good, command):
    text = good(command, "--help").decode()
    assert f"Example:\n  batchfs {command} " in text


@pytest.mark.parametrize("arguments, words", [
    ([], "needs a command"),
    (["inspct"], "did you mean 'inspect'"),
    (["--versoin"], "did you mean '--version'"),
    (["inspect"], "STORE is required"),
    (["inspect", "a", "b"], "too many: 'b'"),
    (["inspect", "a", "--jso"], "did you mean '--json'"),
    (["cat", "a"], "ARRAY is required"),
    (["cat", "a", "b", "--format", "csv"], "--format"),
    (["cat", "a", "b", "--decode", "some"], "--decode"),
    (["cat", "a", "b", "--select", "time"], "DIMENSION=LABELS"),
    (["cat", "a", "b", "--select", "t=1", "--select", "t=2"], "twice"),
    (["cat", "a", "b", "--memory", "lots"], "not a size"),
    (["cat", "a", "b", "--memory", "0"], "not a size"),
    (["cat", "a", "b", "--threads", "0"], "--threads"),
    (["cat", "a", "b", "--threads", "many"], "--threads"),
    (["inspect", "a", "--timeout", "-1"], "--timeout"),
    (["plan", "a"], "--view is required"),
    (["statistics", "a"], "--view is required"),
    (["batch", "a", "--view", "v", "--batch", "-1"], "--batch"),
    (["batch", "a", "--view", "v", "--world", "0"], "--world"),
    (["batch", "a", "--view", "v", "--format", "npz", "--tensor", "x"], "--tensor"),
    (["view", "a", "--name", "a/b"], "name of a directory"),
    (["mount", "a"], "DIR is required"),
    (["mount", "a", "b", "-o", "memry=8G"], "did you mean 'memory'"),
    (["mount", "a", "b", "-o", "memory=8X"], "not a size"),
    (["mount", "a", "b", "-o", "rw"], "read-only"),
    (["umount"], "DIR is required"),
    (["status"], "DIR is required"),
])
def test_wrong_usage_is_2_and_says_what_helps(fails, arguments, words):
    line = fails(2, *arguments)
    assert words in line
    assert "--help" in line


@pytest.mark.parametrize("arguments", [
    ["inspect", "/nonexistent.zarr"],
    ["cat", "/nonexistent.zarr", "t"],
    ["view", "/nonexistent.zarr"],
    ["plan", "/nonexistent.zarr", "--view", "/nonexistent.json"],
    ["batch", "/nonexistent.zarr", "--view", "/nonexistent.json"],
    ["umount", "/"],
    ["umount", "/nonexistent"],
    ["status", "/proc"],
])
def test_failure_is_1_and_names_the_place(fails, arguments):
    line = fails(1, *arguments)
    assert line.startswith(f"batchfs: {arguments[0]} failed: ")
    assert arguments[1] in line


def test_a_scheme_that_cannot_be_read_is_named(fails):
    assert "ftp://" in fails(1, "inspect", "ftp://host/a.zarr")


def test_mount_on_what_is_no_directory(fails, weather, tmp_path):
    assert "mkdir" in fails(1, "mount", weather, tmp_path / "absent")
    (tmp_path / "file").write_text("")
    assert "not a directory" in fails(1, "mount", weather, tmp_path / "file")


def test_nothing_is_lost_silently_when_the_disk_is_full(weather):
    PROGRAM = os.environ.get("BATCHFS", "build/batchfs")

    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "cat", str(weather), "t"], stdout=full,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert b"No space left" in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command, code", [
    (["cat", "STORE", "t"], 2), (["cat", "STORE", "level", "--format", "text"], 0),
    (["cat", "STORE", "level", "--format", "json"], 0), (["batch", "STORE", "--view", "VIEW"], 2),
    (["batch", "STORE", "--view", "VIEW", "--format", "npz"], 2),
    (["batch", "STORE", "--view", "VIEW", "--format", "json"], 0)])
def test_binary_values_are_not_written_to_a_terminal(weather, tmp_path, command, code):
    PROGRAM = os.environ.get("BATCHFS", "build/batchfs")

    (tmp_path / "v.json").write_text('{"variables": ["t"], "window": {"time": 1}}')
    places = {"STORE": str(weather), "VIEW": str(tmp_path / "v.json")}
    ours, terminal = os.openpty()
    done = subprocess.run([PROGRAM, *(places.get(word, word) for word in command)], stdout=terminal,
                          stderr=subprocess.PIPE, check=False)
    os.close(terminal)
    os.close(ours)
    assert done.returncode == code
    if code == 2:
        assert (b"write it to a file (> FILE), or " in done.stderr and b" --format " in done.stderr
                and done.stderr.count(b"\n") == 1)


def test_a_reader_that_goes_away_ends_it_quietly(weather):
    PROGRAM = os.environ.get("BATCHFS", "build/batchfs")

    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PROGRAM, "cat", str(weather), "t"], stdout=writing,
                          stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode != 0
    assert done.stderr == b""


def test_names_from_a_store_cannot_reach_the_terminal(batchfs, tmp_path):
    folder = tmp_path / "a\x1b[31m.zarr"
    folder.mkdir()
    done = batchfs("inspect", folder)
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr + done.stdout
