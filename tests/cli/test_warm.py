"""The local cache and `batchfs warm`, over a web server that counts what it is asked for and what
it sends."""

import functools
import http.server
import io
import json
import os
import pathlib
import pty
import runpy
import subprocess
import threading
import zipfile

import numpy as np
import pytest
import xarray as xr
import zarr

# Not `from conftest import`: there are several, and pytest's import mode decides which one that
# would be.
shared = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "conftest.py"))
PROGRAM, make_weather = shared["PROGRAM"], shared["make_weather"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files with ETags, conditions and ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        path = pathlib.Path(self.translate_path(self.path))
        data = path.read_bytes() if path.is_file() else None
        with server.lock:
            server.requests.append(self.path)
        if self.path == server.broken:
            return self.answer(500, b"")
        if data is None:
            return self.answer(404, b"")
        tag = f'"{path.stat().st_mtime_ns:x}-{len(data)}"'
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, b"", tag)
        wanted = self.headers.get("Range")
        if wanted is None:
            return self.answer(200, data, tag)
        first, last = wanted.removeprefix("bytes=").split("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if begin >= len(data):
            return self.answer(416, b"", tag, f"bytes */{len(data)}")
        self.answer(206, data[begin:end], tag, f"bytes {begin}-{end - 1}/{len(data)}")

    def answer(self, status, body, tag=None, content_range=None):
        # The metadata of an array that the command names is asked for beside the consolidated one,
        # which may come first: the command can end without waiting for that answer and keeping it.
        if (not self.path.startswith("/w.zarr/t/")
                or not self.path.endswith(("zarr.json", ".zarray", ".zattrs"))):
            with self.server.lock:
                self.server.sent += len(body)
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        if content_range:
            self.send_header("Content-Range", content_range)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """A directory that is served; `.url`, and since `.reset()` what was asked and the bytes that
    were sent."""
    root = tmp_path / "served"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Handler, directory=root))
    server.daemon_threads = True
    server.lock = threading.Lock()
    server.broken = None
    server.root, server.url = root, f"http://127.0.0.1:{server.server_port}"

    def reset():
        server.requests, server.sent = [], 0

    server.reset = reset
    reset()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def store(request, served):
    chunks = {"chunks": (7, 2, 5, 16)}
    make_weather().to_zarr(served.root / "w.zarr", zarr_format=request.param, consolidated=True,
                           encoding={"t": chunks, "q": chunks})
    return f"{served.url}/w.zarr"


@pytest.fixture
def view(tmp_path):
    """The first steps of one variable: not all of the store."""
    path = tmp_path / "some.json"
    path.write_text(
        json.dumps({"variables": ["t"], "window": {"time": 2}, "batch": {"size": 3},
                    "select": {"time": {"from": "#0", "to": "#21"}, "level": [500, 700]}}))
    return path


def load(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def chunk_requests(served):
    return [path for path in served.requests
            if "/t/" in path and not path.endswith((".json", ".zarray", ".zattrs"))]


def test_warm_fetches_what_the_view_needs(good, served, store, view, tmp_path):
    cache = tmp_path / "cache"
    done = json.loads(good("warm", store, "--view", view, "--cache-dir", cache, "--json"))
    # Steps 0-20 are in three chunks of 7, the levels in one of 2, the latitudes in two of 5.
    assert (done["chunks"], done["missing_chunks"], done["evicted"],
            done["view"]) == (6, 0, 0, "some")
    stored = {path: (served.root / path.lstrip("/")).stat().st_size
              for path in set(chunk_requests(served))}
    assert len(stored) == 6
    assert done["bytes"] == sum(stored.values())
    assert done["written_bytes"] >= done["bytes"]

    served.reset()
    batch = good("batch", store, "--view", view, "--batch", 0, "--cache-dir", cache)
    assert served.sent == 0
    assert len(served.requests) == len(set(served.requests))
    assert len(chunk_requests(served)) <= 6
    assert batch == good("batch", store, "--view", view, "--batch", 0)
    expected = make_weather()["t"].values[:6, :2].reshape(3, 2, 2, 8, 16)
    assert np.array_equal(load(batch), expected)

    served.reset()
    again = json.loads(good("warm", store, "--view", view, "--cache-dir", cache, "--json"))
    assert (again["chunks"], again["bytes"], again["written_bytes"]) == (6, done["bytes"], 0)
    assert served.sent == 0


def test_trusted_chunks_are_not_asked_about(good, served, store, view, tmp_path):
    good("warm", store, "--view", view, "--cache-dir", tmp_path / "cache")
    served.reset()
    good("batch", store, "--view", view, "--batch", 0, "--cache-dir", tmp_path / "cache",
         "--cache-trust")
    assert chunk_requests(served) == []
    assert served.sent == 0


def test_what_changes_in_the_store_is_seen(good, served, store, tmp_path):
    cache = "--cache-dir", tmp_path / "cache"
    assert np.array_equal(load(good("cat", store, "t", *cache)), make_weather()["t"].values)
    changed = make_weather()
    changed["t"] = changed["t"] + 1
    xr.Dataset({"t": changed["t"]}).to_zarr(served.root / "w.zarr", mode="r+", region={})
    assert np.array_equal(load(good("cat", store, "t", *cache)), changed["t"].values)


def test_a_damaged_cache_costs_only_time(good, served, store, tmp_path):
    cache = tmp_path / "cache"
    before = good("cat", store, "t", "--cache-dir", cache)
    for file in cache.rglob("*"):
        if file.is_file() and len(file.name) == 64:
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)
    served.reset()
    assert good("cat", store, "t", "--cache-dir", cache) == before
    assert served.sent > 0
    served.reset()
    assert good("cat", store, "t", "--cache-dir", cache) == before
    assert served.sent == 0


def test_the_cache_keeps_to_its_size(good, fails, served, store, view, tmp_path):
    cache = tmp_path / "cache"
    line = fails(1, "warm", store, "--view", view, "--cache-dir", cache, "--cache-size", "6K")
    assert "--cache-size" in line
    good("cat", store, "t", "--cache-dir", cache, "--cache-size", "64K")
    assert sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) <= 64 << 10


def test_the_cache_is_its_owners(good, served, store, tmp_path):
    cache = tmp_path / "cache"
    good("cat", store, "t", "--cache-dir", cache)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in cache.rglob("*") if file.is_file()} == {0o600}


@pytest.mark.parametrize("arguments, says", [
    ((), "--cache-dir"),
    (("--cache-dir", "{file}"), "cache directory"),
])
def test_warm_needs_a_place(fails, store, view, tmp_path, arguments, says):
    (tmp_path / "file").write_text("")
    given = [each.format(file=tmp_path / "file") for each in arguments]
    assert says in fails(1 if given else 2, "warm", store, "--view", view, *given)


def test_warm_of_a_local_store_is_refused(fails, served, store, view, tmp_path):
    assert "on this machine" in fails(1, "warm", served.root / "w.zarr", "--view", view,
                                      "--cache-dir", tmp_path / "c")


def a_chunk(served):
    """A chunk of t that the view reads, of either format."""
    array = served.root / "w.zarr" / "t"
    return next(path for path in (array / "c/1/0/0/0", array / "1.0.0.0") if path.exists())


def test_chunks_that_are_not_there_are_no_failure(good, served, store, view, tmp_path):
    a_chunk(served).unlink()
    done = json.loads(good("warm", store, "--view", view, "--cache-dir", tmp_path / "c", "--json"))
    assert (done["chunks"], done["missing_chunks"]) == (6, 1)


def test_chunks_that_cannot_be_fetched_are_a_failure(fails, served, store, view, tmp_path):
    served.broken = "/" + str(a_chunk(served).relative_to(served.root))
    line = fails(1, "warm", store, "--view", view, "--cache-dir", tmp_path / "c", "--retries", 0)
    assert "1 of 6 chunks could not be fetched" in line
    assert served.broken in line


def test_a_zip_archive_is_cached(good, served, view, tmp_path):
    make_weather().to_zarr(tmp_path / "w.zarr", zarr_format=3, consolidated=True)
    with zipfile.ZipFile(served.root / "w.zip", "w") as archive:
        for file in sorted((tmp_path / "w.zarr").rglob("*")):
            archive.write(file, str(file.relative_to(tmp_path / "w.zarr")))
    url = f"{served.url}/w.zip"
    good("warm", url, "--view", view, "--cache-dir", tmp_path / "cache")
    served.reset()
    batch = good("batch", url, "--view", view, "--cache-dir", tmp_path / "cache")
    assert np.array_equal(load(batch), make_weather()["t"].values[:6, :2].reshape(3, 2, 2, 8, 16))
    assert served.sent <= 1  # the archive's size may have been asked for with its first byte


def test_parts_of_shards_are_the_same_from_afar(good, served, tmp_path):
    values = np.random.default_rng(3).integers(0, 1000, (60, 80)).astype("i4")
    array = zarr.create_array(served.root / "a.zarr", shape=values.shape,
                              dtype=values.dtype, chunks=(30, 40), shards=(60, 80),
                              compressors=zarr.codecs.BloscCodec(blocksize=512))
    array[...] = values
    for _ in range(2):
        part = good("cat", f"{served.url}/a.zarr", "/", "--decode", "raw", "--select", "dim_0=#33",
                    "--select", "dim_1=#3:#7", "--cache-dir", tmp_path / "cache")
        assert np.array_equal(load(part), values[33, 3:7])
    # A coordinate is read in another way than data; of its last chunk there is only a part.
    xr.Dataset({"v": ("x", values[0, :60])}, {"x": np.arange(60)}).to_zarr(
        served.root / "x.zarr", zarr_format=3,
        consolidated=True, encoding={name: {"chunks": (50,), "shards": (100,),
                                            "compressors": [zarr.codecs.BloscCodec(blocksize=128)]}
                                     for name in ("v", "x")})
    cut = "--select", "x=50:52"
    assert load(good("cat", f"{served.url}/x.zarr", "v",
                     *cut)).tolist() == values[0, 50:53].tolist()


def test_a_terminal_sees_a_bar(served, store, view, tmp_path):
    master, slave = pty.openpty()
    done = subprocess.Popen([PROGRAM, "warm", store, "--view", view, "--cache-dir",
                             tmp_path / "cache"], stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    os.close(master)
    assert done.wait(timeout=60) == 0
    assert b"6 chunks" in done.stdout.read()
    assert b"fetching [" in shown
    assert shown.endswith(b"\r\x1b[K")
