"""Time and memory are bounded whatever a store holds: linear time, and at most 64 MB more than
--memory."""

import http.server
import itertools
import json
import os
import pathlib
import socketserver
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
from hostile_stores import GROUP, ARRAY, KB, MB, METADATA, folder, stacked_gzip
from measured import measure, peak_of
from watching import status

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build/batchfs"))
MEMORY = 64 * MB
LIMIT = MEMORY + 64 * MB

pytestmark = pytest.mark.not_sanitized("memory and time are not what they are without")


def assert_bounded(measured, what):
    assert measured.peak < LIMIT, f"{what}: {measured.peak >> 20} MB"
    assert measured.status in (0, 1) and measured.error.count("\n") <= 1, f"{what}: {measured}"
    assert len(measured.error) < 4000


def assert_linear(times, what):
    """Four times the size takes at most eight times the time: quadratic work takes sixteen times.
    Work that takes no time beside the start of a process shows nothing, and passes."""
    assert times[2] < 8 * max(times[0], 0.1), f"{what}: {times}"


@pytest.mark.says("bounded-memory", "bounded-time")
@pytest.mark.parametrize("name", METADATA)
def test_reading_metadata_is_bounded(tmp_path, name):
    times = []
    for size in (1, 2, 4):
        store = METADATA[name](tmp_path / f"{size}", size)
        measured = measure(PROGRAM, "inspect", store, "--json", "--memory", MEMORY)
        assert_bounded(measured, f"{name} x {size}")
        times.append(measured.seconds)
    assert_linear(times, name)


def test_100_mb_of_metadata_are_read_where_memory_allows(tmp_path):
    attributes = {"long_name": "x" * 5000}
    document = {**GROUP, "consolidated_metadata": {"metadata": {
        f"g{i % 10}/array-{i}": {**ARRAY, "attributes": attributes} for i in range(20_000)}}}
    folder(tmp_path, {"zarr.json": document})
    assert (tmp_path / "zarr.json").stat().st_size > 100 * MB
    measured = measure(PROGRAM, "inspect", tmp_path, "--memory", "2G")
    assert measured.status == 0, measured.error
    refused = measure(PROGRAM, "inspect", tmp_path, "--memory", MEMORY)
    assert refused.status == 1 and "--memory" in refused.error and refused.peak < LIMIT


def test_codecs_on_codecs_are_bounded(tmp_path):
    times = []
    for size in (1, 2, 4):
        store = stacked_gzip(tmp_path / f"{size}", size)
        measured = measure(PROGRAM, "cat", store, "/", "--memory", MEMORY)
        assert measured.status == 1 and "(0" in measured.error, measured.error
        assert_bounded(measured, f"{5 * size + 1} codecs")
        times.append(measured.seconds)
    assert_linear(times, "codecs")


@pytest.mark.says("bounded-memory")
@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_a_chunk_larger_than_the_memory_is_refused(tmp_path, codec):
    import zarr  # noqa: PLC0415 (the other tests run without it)

    codecs = {"zstd": zarr.codecs.ZstdCodec(), "blosc": zarr.codecs.BloscCodec(cname="lz4")}
    array = zarr.create_array(str(tmp_path / "store"), shape=(4, 75 * MB), chunks=(4, 75 * MB),
                              dtype="i1", compressors=codecs[codec])
    array[...] = 1
    for selection in (["dim_1=#0:#100"], []):
        options = [option for one in selection for option in ("--select", one)]
        measured = measure(PROGRAM, "cat", tmp_path / "store", "/", *options, "--memory", MEMORY)
        assert_bounded(measured, f"a chunk of 300 MB, {options}")
        if codec == "blosc" and not options:
            assert measured.status == 0, measured.error  # a part after the other
        else:
            assert measured.status == 1 and "--memory" in measured.error, measured.error
    measured = measure(PROGRAM, "cat", tmp_path / "store", "/", "--select", "dim_1=#0:#100",
                       "--memory", 400 * MB)
    assert measured.status == 0, measured.error


@pytest.mark.says("bounded-limits")
def test_more_codecs_than_the_limit_are_refused_by_name(fails, tmp_path):
    codecs = [{"name": "bytes"}] + [{"name": "gzip", "configuration": {"level": 1}}] * 40
    folder(tmp_path, {"zarr.json": {**ARRAY, "codecs": codecs}})
    assert "41 codecs in one chain; at most 32" in fails(1, "cat", tmp_path, "/")


def test_memory_has_a_minimum(fails, tmp_path):
    folder(tmp_path, {"zarr.json": ARRAY})
    line = fails(2, "inspect", tmp_path, "--memory", "10")
    assert "'10' is too little: the minimum is 16" in line


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK),
                    reason="nothing can be mounted on this machine")
@pytest.mark.says("bounded-memory")
def test_a_mount_of_many_arrays_is_bounded(good, tmp_path):
    store = METADATA["many arrays"](tmp_path / "store", 4)
    directory = tmp_path / "mnt"
    directory.mkdir()
    good("mount", store, directory, "--memory", MEMORY)
    try:
        check_mount(directory)
    finally:
        good("umount", "--lazy", directory)


def check_mount(directory):
    assert len(list((directory / "arrays").iterdir())) >= 4000
    assert peak_of(status(directory)["pid"]) < LIMIT


# ---- servers that do not come to an end ----

class Endless(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


@pytest.fixture
def endless():
    """Serves an array whose chunk is a body without end, and a bucket whose listing is."""
    pages = itertools.count()
    array = {**ARRAY, "shape": [64 * KB],
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [64 * KB]}},
             "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            if "list-type" in self.path:
                page = next(pages)
                names = "".join(f"<Contents><Key>store/{page}-{i}-{'x' * 900}</Key></Contents>"
                                for i in range(1000))
                body = (f"<ListBucketResult><IsTruncated>true</IsTruncated>{names}"
                        f"<NextContinuationToken>t{page}</NextContinuationToken>"
                        "</ListBucketResult>").encode()
            elif self.path.endswith("zarr.json") and "bucket" not in self.path:
                body = json.dumps(array).encode()
            elif "/c/" in self.path:
                return self.send_without_end()
            else:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_without_end(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            block = b"%x\r\n" % MB + bytes(MB) + b"\r\n"
            try:
                while True:
                    self.wfile.write(block)
            except OSError:
                pass

    with Endless(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.says("bounded-answers")
def test_a_chunk_without_end_is_not_read_to_its_end(endless):
    measured = measure(PROGRAM, "cat", endless, "/", "--memory", MEMORY)
    assert measured.status == 1 and "sends more than" in measured.error
    assert measured.peak < LIMIT and measured.seconds < 10


def test_a_listing_without_end_comes_to_one(endless):
    measured = measure(PROGRAM, "inspect", "s3://bucket/store", "--endpoint", endless, "--anon",
                       "--memory", MEMORY)
    assert measured.status == 1 and "entries" in measured.error, measured.error
    assert measured.peak < LIMIT
