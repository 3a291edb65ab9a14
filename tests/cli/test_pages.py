"""--help, the man page and the README agree, and their examples run unchanged."""

import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import xarray as xr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "man" / "batchfs.1").read_text()
README = (ROOT / "README.md").read_text()
MOUNTABLE = os.access("/dev/fuse", os.R_OK | os.W_OK)


@functools.cache
def commands():
    """The names of the commands, from --help."""
    text = subprocess.run([program(), "--help"], capture_output=True, check=True, text=True).stdout
    names = re.findall(r"^  ([a-z]+)  +\S", text, re.M)
    assert len(names) > 10
    return [*names, "completion"]  # which is for packages, and not listed


def program():
    return os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))


def help_of(command):
    return subprocess.run([program(), command, "--help"], capture_output=True, check=True,
                          text=True).stdout


def options_of(command):
    """Long options; of several spellings the first."""
    return set(re.findall(r"^  (?:-\w,)?--([\w-]+)", help_of(command), re.M)) - {"help"}


def test_every_option_is_in_the_man_page_and_the_other_way_round():
    told = {name for command in commands() for name in options_of(command)}
    described = set(re.findall(r"Fl (?:\w , )?-([\w-]+)", PAGE))
    assert told - described == set()
    assert described - told == {"version", "help"}


def test_every_command_is_in_the_man_page_and_in_the_readme():
    in_page = re.findall(r"^\.Nm\n\.Cm (\w+)", PAGE, re.M)
    assert sorted(in_page) == sorted(commands())
    rows = re.findall(r"^\| (`.*?`) \|", README, re.M)
    table = [command for row in rows for command in re.findall(r"`(\w+)`", row)]
    assert sorted([*table, "completion"]) == sorted(commands())


def test_the_view_in_the_readme_is_the_quickstarts():
    (shown,) = [block for block in re.findall(r"((?:^    .*\n)+)", README, re.M)
                if '"window"' in block]
    assert json.loads(shown) == json.loads(
        (ROOT / "tools" / "demo" / "next-month.json").read_text())


# ---- examples ------------------------------------------------------------------------------------


def man_examples():
    """The displays of the page's EXAMPLES, as a shell reads them."""
    text = PAGE[PAGE.index(".Sh EXAMPLES"):]
    return [block.replace(r"\e", "\\")
            for block in re.findall(r"^\.Bd.*\n((?s:.*?))^\.Ed$", text, re.M)]


def example_of(command):
    return re.search(r"^Example:\n  (.*)$", help_of(command), re.M).group(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the store of the examples, which a web server shows as well, and what their
    places stand for."""
    folder = tmp_path_factory.mktemp("examples")
    time = np.arange("2000-01-01", "2000-03-01", np.timedelta64(1, "D"), dtype="M8[ns]")
    shape = (len(time), 8, 16)
    values = np.random.default_rng(0).normal(280, 10, shape).astype("f4")
    dims = ("time", "latitude", "longitude")
    coordinates = {"time": time, "latitude": np.linspace(70.0, -70.0, 8),
                   "longitude": np.arange(0, 360, 22.5)}
    xr.Dataset({"t2m": (dims, values), "msl": (dims, values)}, coordinates).to_zarr(
        folder / "era5.zarr", zarr_format=2)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "mnt").mkdir()
    yield folder, {"/mnt/era5": str(folder / "mnt"), "/tmp/era5.sock": str(folder / "era5.sock"),
                   "/scratch/batchfs": str(folder / "cache"), "/etc/bash_completion.d/": str(folder)
                       + "/", "s3://bucket/": f"http://127.0.0.1:{server.server_port}/"}
    subprocess.run([program(), "umount", "--lazy", folder / "mnt"], capture_output=True,
                   check=False)
    server.shutdown()


def shell(place, script, code=0):
    folder, places = place
    for name, stands_for in places.items():
        script = script.replace(name, stands_for)
    tools = [str(pathlib.Path(path).parent) for path in (program(), sys.executable)]
    environment = {**os.environ, "PATH": ":".join([*tools, os.environ["PATH"]])}
    done = subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, check=False,
                          timeout=120, env=environment)
    assert done.returncode == code, (script, done.stderr.decode())
    return done.stdout


def with_mount(command):
    return pytest.param(command, marks=pytest.mark.skipif(
        not MOUNTABLE, reason="/dev/fuse is missing: nothing can be mounted"))


BEFORE_MOUNT = ["inspect", "show", "check", "cat", "view", "plan", "statistics", "batch", "warm",
                "rechunk", "export", "completion"]
OF_A_MOUNT = ["mount", "refresh", "status", "report", "log", "umount"]


@pytest.mark.parametrize("command", BEFORE_MOUNT + [with_mount(command) for command in OF_A_MOUNT])
def test_the_example_of_a_command(place, command):
    """In the order of their use: one makes what the next needs."""
    if command == "batch":  # a batch of one tensor, as npy
        folder, _ = place
        view = json.loads((folder / "view.json").read_text())
        (folder / "view.json").write_text(json.dumps({**view, "variables": ["t2m"],
                                                      "batch": {"size": 5}}))
    shell(place, example_of(command))


def test_the_examples_made_what_they_say(place):
    folder, _ = place
    taken = xr.open_zarr(folder / "era5.zarr").t2m.sel(time="2000-01",
                                                       latitude=slice(60, 35)).values
    assert np.array_equal(np.load(folder / "t2m.npy"), taken)
    assert np.load(folder / "batch-7.npy").shape == (5, 1, 8, 16)
    assert "t2m" in json.loads((folder / "stats.json").read_text())["variables"]
    assert (folder / "batchfs").read_text().count("batchfs") > 3
    assert "</html>" in (folder / "era5.html").read_text()


@pytest.mark.skipif(not MOUNTABLE, reason="/dev/fuse is missing: nothing can be mounted")
def test_what_the_mount_examples_made(place):
    folder, _ = place
    assert "</html>" in (folder / "report.html").read_text()
    assert not os.path.ismount(folder / "mnt")


def test_no_command_lacks_a_test_of_its_example():
    elsewhere = {"serve": "stays in the foreground, as the man page's example does not",
                 "top": "wants a terminal", "doctor": "fails where the machine lacks something"}
    assert sorted(BEFORE_MOUNT + OF_A_MOUNT + list(elsewhere)) == sorted(commands())


@pytest.mark.parametrize("words", ["batchfs inspect era5", "--select latitude", pytest.param(
    "batchfs mount", marks=pytest.mark.skipif(
        not MOUNTABLE, reason="/dev/fuse is missing: nothing can be mounted"))])
def test_the_examples_of_the_man_page(place, words):
    (script,) = [block for block in man_examples() if words in block]
    output = shell(place, script)
    if "mount" in words:
        assert b"(32, 1, 8, 16)" in output
