"""The scan of views that skip missing values: from a web server, with a progress bar, interrupted;
what is kept of it, and when that is not used."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import pty
import signal
import subprocess
import threading
import time
import warnings
import zipfile

import numpy as np
import pytest
import xarray as xr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
T = 40


@pytest.fixture
def store(tmp_path):
    """40 steps in a chunk each; of step 7 a value is missing."""
    values = np.random.default_rng(2).random((T, 6))
    values[7, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"t": (("time", "x"), values)}).to_zarr(tmp_path / "s.zarr",
                                                           zarr_format=2, consolidated=True,
                                                           encoding={"t": {"chunks": (1, 6)}})
    return tmp_path / "s.zarr"


@pytest.fixture
def view(tmp_path):
    file = tmp_path / "v.json"
    file.write_text(json.dumps({"variables": ["t"], "window": {"time": 1}, "batch": 4,
                                "missing": {"nan": "skip"}}))
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "batchfs" / "samples"


@pytest.fixture
def web(store):
    """web(seconds): a server of the store's directory that waits before each chunk; gives the
    address and the list of what it is asked for."""
    servers = []

    def start(seconds=0.0):
        asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked.append(self.path)
                if "/t/" in self.path and not self.path.endswith((".zarray", ".zattrs")):
                    time.sleep(seconds)
                try:
                    super().do_GET()
                except OSError:  # the client was stopped
                    pass

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            # All chunks are asked for at once: with the usual queue, of 5, a busy machine refuses
            # connections, and a client that takes it as a sign to send fewer requests waits for the
            # earlier slow answers
            request_queue_size = 128

        server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=store.parent))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/{store.name}", asked

    yield start
    for server in servers:
        server.shutdown()


def samples(good, store, view, *options):
    return json.loads(good("plan", store, "--view", view, "--json", *options))["samples"]


def put(store, step, values):
    """Stores the values of one step anew, its metadata as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import zarr
        zarr.open_array(store / "t", mode="r+")[step] = values


def test_a_remote_store_is_scanned_once(good, web, view, cache):
    address, asked = web()
    assert samples(good, address, view) == T - 1
    chunks = [path for path in asked if is_chunk(path)]
    assert len(set(chunks)) == T
    asked.clear()
    assert samples(good, address, view) == T - 1
    chunks = [path for path in asked if is_chunk(path)]
    assert T <= len(chunks) < 1.5 * T  # once each for their versions, a few for their sizes
    batch = json.loads(good("batch", address, "--view", view, "--batch", 1, "--format", "json"))
    assert [w["time"][0] for w in batch["windows"]] == [4, 5, 6, 8]


def test_what_changes_is_scanned_again(good, store, view, cache):
    assert samples(good, store, view) == T - 1
    assert samples(good, store, view) == T - 1
    assert len(list(cache.iterdir())) == 1
    put(store, 7, np.zeros(6))
    assert samples(good, store, view) == T
    put(store, slice(0, 3), np.full((3, 6), np.nan))
    assert samples(good, store, view) == T - 3
    (store / "t" / "20.0").unlink()  # its fill value is NaN
    assert samples(good, store, view) == T - 4
    assert len(list(cache.iterdir())) == 4
    # The same place by another name.
    (store.parent / "link").symlink_to(store)
    assert samples(good, store.parent / "link", view) == T - 4
    assert samples(good, os.path.relpath(store, os.getcwd()), view) == T - 4
    assert len(list(cache.iterdir())) == 4


def test_archives_that_change_are_scanned_again(good, store, view, cache):
    archive = store.parent / "s.zip"

    def pack():
        with zipfile.ZipFile(archive, "w") as out:
            for file in sorted(store.rglob("*")):
                if file.is_file():
                    out.write(file, file.relative_to(store))

    pack()
    assert samples(good, archive, view) == T - 1
    assert samples(good, archive, view) == T - 1
    assert len(list(cache.iterdir())) == 1
    pack()  # the same values in another file
    assert samples(good, archive, view) == T - 1
    assert len(list(cache.iterdir())) == 2
    put(store, 30, np.full(6, np.nan))
    pack()
    assert samples(good, archive, view) == T - 2
    assert len(list(cache.iterdir())) == 3


def test_a_progress_bar_on_a_terminal_only(good, web, view):
    address, _ = web(0.3)
    terminal, end = pty.openpty()
    with subprocess.Popen([PROGRAM, "plan", address, "--view", view, "--json"],
                          stdout=subprocess.PIPE, stderr=end) as plan:
        os.close(end)
        out = plan.stdout.read()
    drawn = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert plan.returncode == 0 and json.loads(out)["samples"] == T - 1
    assert "looking for missing values [" in drawn and drawn.endswith("\r\x1b[K")  # and wiped


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except (OSError, ValueError):
            pass
    return found


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=20, state=lambda: ""):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, state()
        time.sleep(0.02)


def is_chunk(path):
    return "/t/" in path and path.rsplit("/", 1)[1][0].isdigit()


@contextlib.contextmanager
def scanning(web, command, *arguments):
    """A command that has begun to scan, which will take long; what fails then does not wait for
    it."""
    address, asked = web(30)
    with subprocess.Popen([PROGRAM, command, address, *map(str, arguments)],
                          stderr=subprocess.PIPE) as process:
        os.set_blocking(process.stderr.fileno(), False)

        def state():
            return (f"status {process.poll()}, stderr {process.stderr.read()}, children "
                    f"{children(process.pid)}, asked for {asked}")

        try:
            wait_for(lambda: any(map(is_chunk, asked)), state=state)
            yield process
        except BaseException:
            process.terminate()
            raise


@pytest.mark.parametrize("background", [False, True])
def test_a_scan_can_be_stopped(web, view, cache, tmp_path, background):
    mount = tmp_path / "mnt"
    mount.mkdir()
    with scanning(web, "mount", mount, "--view", view, *([] if background else ["-f"])) as process:
        daemons = children(process.pid)
        assert len(daemons) == 1
        # like Ctrl-C of a waiting user
        process.send_signal(signal.SIGINT if background else signal.SIGTERM)
        assert process.wait(10) != 0
        wait_for(lambda: not any(is_running(pid) for pid in daemons))
    assert not os.path.ismount(mount)
    assert not cache.exists() or not list(cache.iterdir())


def test_a_daemon_that_is_stopped_is_reported(web, view, tmp_path):
    mount = tmp_path / "mnt"
    mount.mkdir()
    with scanning(web, "mount", mount, "--view", view) as process:
        (daemon,) = children(process.pid)
        os.kill(daemon, signal.SIGTERM)
        assert process.wait(10) == 1
        assert process.stderr.read().decode().startswith("batchfs: mount failed: ")


def test_memory_for_the_windows_is_bounded(fails, tmp_path):
    """10^9 windows of a store that holds nothing are refused before anything is read, where the
    memory is little."""
    path = tmp_path / "large.zarr"
    (path / "t").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    (path / "t" / ".zarray").write_text(
        json.dumps({"zarr_format": 2, "shape": [50000, 20000], "chunks": [50000, 1], "dtype": "<f4",
                    "compressor": None, "fill_value": 0, "filters": None, "order": "C"}))
    (path / "t" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["time", "x"]}')
    (tmp_path / "v.json").write_text(json.dumps({"window": {"time": 1, "x": 1}, "batch": 1000,
                                                 "missing": {"nan": "skip"}}))
    line = fails(1, "batch", path, "--view", tmp_path / "v.json", "--memory", "64M", "--format",
                 "json")
    assert "1,000,000,000 windows" in line and "--memory" in line


@pytest.mark.parametrize("background", [False, True])
def test_a_scan_before_serving_can_be_stopped(web, view, tmp_path, background):
    socket = tmp_path / "socket"
    with scanning(web, "serve", "--view", view, "--socket", socket,
                  *["--background"] * background) as process:
        serving = children(process.pid) if background else [process.pid]
        for pid in serving:
            os.kill(pid, signal.SIGTERM)
        assert process.wait(10) == (1 if background else 128 + signal.SIGTERM)
    assert not socket.exists()
