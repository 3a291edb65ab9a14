"""--cache-dir with many small chunks, many readers and the habits of web servers: right bytes, and
no error without a change."""

import concurrent.futures
import email.utils
import errno
import http.server
import json
import os
import re
import signal
import threading
import urllib.parse

import numpy as np
import pytest
import zarr
from watching import eventually, status

CHUNKS, WIDTH = 1600, 16
READERS = 4


def strong(path, data):
    return {"ETag": f'"{path.stat().st_mtime_ns:x}"'}


def weak(path, data):
    return {"ETag": f'W/"{path.stat().st_mtime_ns:x}"'}


def time_only(path, data):
    return {"Last-Modified": email.utils.formatdate(path.stat().st_mtime, usegmt=True)}


def none(path, data):
    return {}


HABITS = {"strong ETags": (strong, True), "weak ETags": (weak, True),
          "Last-Modified only": (time_only, True), "no validators": (none, True),
          "no conditional answers": (strong, False)}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        validators, heeds_conditions = self.server.habit
        path = self.server.directory / urllib.parse.unquote(self.path).lstrip("/")
        if not path.is_file():
            return self.reply(404, {}, b"")
        data = path.read_bytes()
        headers = validators(path, data)
        known = self.headers.get("If-None-Match") or self.headers.get("If-Modified-Since")
        if heeds_conditions and known is not None and known in headers.values():
            return self.reply(304, headers, b"")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            return self.reply(200, headers, data)
        begin, end = int(wanted[1]), min(int(wanted[2] or len(data)) + 1, len(data))
        self.reply(206, headers | {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"},
                   data[begin:end])

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


@pytest.fixture(params=HABITS)
def served(request, tmp_path):
    """(the store's folder, its URL, its values): keys of 4 to 8 bytes, as "v/17.0"."""
    directory = tmp_path / "s.zarr"
    # 0 is the fill value
    values = np.arange(1, CHUNKS * WIDTH + 1, dtype="f4").reshape(CHUNKS, WIDTH)
    group = zarr.open_group(directory, mode="w", zarr_format=2)
    array = group.create_array("v", shape=values.shape, chunks=(1, WIDTH), dtype="f4",
                               compressors=None, attributes={"_ARRAY_DIMENSIONS": ["time", "x"]})
    array[:] = values
    zarr.consolidate_metadata(directory)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.directory, server.habit = directory, HABITS[request.param]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield directory, f"http://127.0.0.1:{server.server_address[1]}", values
    server.shutdown()
    server.server_close()


@pytest.fixture
def mounted(good, batchfs, tmp_path):
    """mounted(url, number): a mount with the cache directory, until the test ends."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "batch": {"size": 16},
                                "order": {"shuffle": "global", "seed": 5},
                                "tensors": {"x": {"variables": ["v"]},
                                            "y": {"variables": ["v"], "offsets": {"time": [1]}}},
                                "formats": ["npy"]}))
    directories = []

    def mount(url, number):
        directory = tmp_path / f"m{number}"
        directory.mkdir()
        good("mount", url, directory, "--view", view, "--memory", "64M", "--cache-dir",
             tmp_path / "cache")
        directories.append(directory)
        return directory

    yield mount
    for directory in directories:
        batchfs("umount", "--lazy", directory)


def read_all(directory):
    """Every batch, by several readers at a time: {file: first values of its samples}."""
    epoch = directory / "views/v/epoch-0000"
    batches = sorted(path.name for path in epoch.iterdir() if path.is_dir())

    def read(batch):
        return {f"{batch}/{name}": np.load(epoch / batch / f"{name}.npy") for name in ("x", "y")}

    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        return {name: array for files in pool.map(read, batches) for name, array in files.items()}


def test_an_unchanged_store_gives_its_bytes(served, mounted):
    """Twice: the cache is filled, and then read."""
    _, url, values = served
    for number in range(2):
        found = read_all(mounted(url, number))
        for name, array in found.items():
            rows = array.reshape(-1, WIDTH)
            steps = (rows[:, 0] - 1).astype(int) // WIDTH
            np.testing.assert_array_equal(rows, values[steps], err_msg=name)
        assert sum(len(array) for array in found.values()) == 2 * (CHUNKS - 1)


def test_a_changed_chunk_is_found(request, served, mounted, tmp_path):
    directory, url, values = served
    if "no validators" in request.node.name:
        pytest.skip("a server that names no version says nothing of a change")
    mount = mounted(url, 0)
    before = read_all(mount)
    # Only the versions remain of the objects that were read: neither memory nor disk holds their
    # bytes.
    chunk = directory / "v/7.0"
    time = chunk.stat().st_mtime_ns + 5_000_000_000
    chunk.write_bytes((values[7] + 1e6).tobytes())
    os.utime(chunk, ns=(time, time))
    (tmp_path / "cache").rename(tmp_path / "lost")
    daemon = status(mount)["pid"]
    os.kill(daemon, signal.SIGKILL)
    assert eventually(lambda: status(mount)["pid"] != daemon)
    # A batch is made as a whole: all of its files, or none.
    changed = {name.split("/")[0] for name, array in before.items()
               if (array == values[7]).all(axis=-1).any()}
    assert 0 < len(changed) < len(before) / 2
    for name, array in before.items():
        path = mount / "views/v/epoch-0000" / f"{name}.npy"
        if name.split("/")[0] in changed:
            with pytest.raises(OSError) as failure:
                path.read_bytes()
            assert failure.value.errno == errno.ESTALE
        else:
            np.testing.assert_array_equal(np.load(path), array)
