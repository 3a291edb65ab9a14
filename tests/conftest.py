"""Common parts of the program's tests: the program, and small stores made by zarr-python and
xarray."""

import http.server
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

# for the modules beside this file; importlib mode does not
sys.path.insert(0, str(pathlib.Path(__file__).parent))
ROOT = pathlib.Path(__file__).resolve().parents[1]
# The default is five connections at a time: each further one waits a second.
http.server.ThreadingHTTPServer.request_queue_size = 128
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
# A shell without job control starts background jobs that ignore SIGINT, and so would the programs
# that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    config.addinivalue_line("markers", "says(tags): tests these sentences of batchfs-semantics(7)")
    config.addinivalue_line("markers", "smoke: part of `tools/test quick`")
    config.addinivalue_line("markers", "long: not part of `tools/test quick`")
    config.addinivalue_line("markers", "not_sanitized(why): is nothing for a program that was "
                                       "built with sanitizers")


# ---- a program that was built with sanitizers ----
# BATCHFS_SANITIZER_REPORTS is a folder where it, and every daemon that it starts, leaves what is
# wrong. Nobody sees the standard error of a daemon, so what is found there fails the test that is
# running, or the last one.

REPORTS = os.environ.get("BATCHFS_SANITIZER_REPORTS")
if REPORTS:
    os.makedirs(REPORTS, exist_ok=True)
    # Freed memory is not kept for long: the daemons of many tests live at a time.
    common = ("print_stacktrace=1:detect_leaks=1:quarantine_size_mb=32:"
              "allocator_may_return_null=1:exitcode=99")
    os.environ["ASAN_OPTIONS"] = f"{common}:log_path={REPORTS}/address"
    os.environ["UBSAN_OPTIONS"] = f"{common}:log_path={REPORTS}/undefined"


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("not_sanitized"):
            if REPORTS:
                item.add_marker(pytest.mark.skip(reason=f"built with sanitizers: {mark.args[0]}"))


def fail_by_reports():
    """The sanitizers' reports, each once."""
    texts = []
    for path in sorted(pathlib.Path(REPORTS).glob("*.[0-9]*")):
        texts.append(f"{path}\n{path.read_text(errors='replace')[:6000]}")
        path.rename(path.with_name(f"seen-{path.name.replace('.', '-')}"))
    if texts:
        pytest.fail("\n".join(texts), pytrace=False)


@pytest.fixture(autouse=True)
def nothing_is_reported():
    yield
    if REPORTS:
        fail_by_reports()


def running():
    """The processes of the program."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == os.path.realpath(PROGRAM):
                found.append((process.name,
                              (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_is_reported_at_the_end():
    """Reports of daemons while they end. (Leaks only those in the foreground, see
    faults/test_leaks.py.)"""
    yield
    if REPORTS:
        until = time.monotonic() + 60
        while running() and time.monotonic() < until:
            time.sleep(0.1)
        fail_by_reports()
        assert running() == []


@pytest.fixture(scope="session")
def batchfs():
    """batchfs(*arguments): runs the program and gives the finished process; output is bytes."""

    def run(*arguments, **options):
        options.setdefault("timeout", 60)
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False,
                              **options)

    return run


@pytest.fixture(scope="session")
def good(batchfs):
    """good(*arguments): runs the program, which must succeed without a word on stderr; gives its
    output."""

    def run(*arguments, **options):
        done = batchfs(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
        return done.stdout

    return run


@pytest.fixture(scope="session")
def fails(batchfs):
    """fails(code, *arguments): runs the program, which must fail with one line; gives the line."""

    def run(code, *arguments, **options):
        done = batchfs(*arguments, **options)
        assert done.returncode == code, done.stderr
        lines = done.stderr.decode().splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("batchfs: ") and " failed: " in lines[0]
        return lines[0]

    return run


def make_weather():
    """A small dataset with what real ones have: times, packed integers, missing values, levels."""
    random = np.random.default_rng(0)
    time = np.arange("2000-01-01", "2000-01-11", np.timedelta64(6, "h"), dtype="M8[ns]")
    shape = (len(time), 3, 8, 16)
    t = random.normal(280, 10, shape).astype("f4")
    q = random.uniform(0, 0.02, shape)
    q[3, 1, 2:4] = np.nan
    return xr.Dataset(
        {"t": (("time", "level", "latitude", "longitude"), t, {"units": "K"}),
         "q": (("time", "level", "latitude", "longitude"), q),
         "orography": (("latitude", "longitude"), random.uniform(0, 5000, shape[2:]).astype("f4"))},
        {"time": time, "level": [500, 700, 850], "latitude": np.linspace(70.0, -70.0, 8),
         "longitude": np.arange(0, 360, 22.5)})


@pytest.fixture(scope="session", params=[2, 3], ids=["v2", "v3"])
def weather(request, tmp_path_factory):
    """The path of a store; q is packed to 16 bits."""
    path = tmp_path_factory.mktemp("weather") / f"weather{request.param}.zarr"
    packed = {"dtype": "i2", "scale_factor": 1e-6, "add_offset": 0.01, "_FillValue": -32768}
    chunks = {"chunks": (7, 2, 5, 16)}
    make_weather().to_zarr(path, zarr_format=request.param, consolidated=request.param == 2,
                           encoding={"t": chunks, "q": packed | chunks})
    return path
