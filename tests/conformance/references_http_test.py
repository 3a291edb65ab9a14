"""Reference sets on web servers, and of files there: requests, redirects, signed addresses."""

import functools
import hashlib
import http.server
import pathlib
import threading

import numpy as np
import pytest
from reference_sets import array_of, cat, one, parquet_folder, records, write, write_steps


@pytest.fixture
def steps(tmp_path):
    return write_steps(tmp_path)


class Handler(http.server.SimpleHTTPRequestHandler):
    """With ranges; notes what was asked for."""

    asked = []

    def log_message(self, *_):
        pass

    def send_head(self):
        self.asked.append(self.path)
        path = pathlib.Path(self.translate_path(self.path))
        if self.path.startswith("/elsewhere"):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/f0.bin")
            self.end_headers()
            return None
        if not path.is_file():
            self.send_error(404)
            return None
        data = path.read_bytes()
        begin, end, status = 0, len(data), 200
        if (wanted := self.headers.get("Range", "")).startswith("bytes="):
            first, _, last = wanted[6:].partition("-")
            begin, end, status = int(first), min(int(last or len(data)) + 1, len(data)), 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.send_header("ETag", f'"{hashlib.md5(data).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[begin:end])
        return None


@pytest.fixture
def served(tmp_path):
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Handler.asked.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_set_over_http_takes_one_request(batchfs, steps, tmp_path, served):
    one(tmp_path, "f1.bin", 4, 40)
    assert np.array_equal(cat(batchfs, f"{served}/one.json", "a"), steps[20:30])
    assert Handler.asked == ["/one.json", "/f1.bin"]
    batchfs.bytes("inspect", f"{served}/one.json")
    store = parquet_folder(tmp_path / "set", array_of([10], [10]), 2)
    records([f"{served}/f0.bin"], [4], [40], None, store / "a/refs.0.parq", engine="pyarrow")
    assert f"--virtual {served}/" in batchfs.refusal("cat", f"{served}/set", "a")
    assert np.array_equal(cat(batchfs, f"{served}/set", "a", "--virtual", served), steps[:10])
    assert "not a Zarr store" in batchfs.refusal("inspect", f"{served}/nothing.json")


def test_no_redirect_and_no_reference_to_this_machine_without_leave(
        batchfs, steps, tmp_path, served):
    store = one(tmp_path, f"{served}/elsewhere/f0.bin", 4, 40)
    Handler.asked.clear()
    assert f"--virtual {served}/" in batchfs.refusal("cat", store, "a")
    assert Handler.asked == []
    batchfs.refusal("cat", store, "a", "--virtual", f"{served}/")
    assert all(path.startswith("/elsewhere") for path in Handler.asked)
    assert np.array_equal(cat(batchfs, one(tmp_path, f"{served}/f0.bin", 4, 40), "a", "--virtual",
                              f"{served}/"), steps[:10])


class GuardedHandler(Handler):
    """Notes who asked."""

    def send_head(self):
        self.server.said.append((self.path, self.headers.get("Authorization")))
        return super().send_head()


def test_credentials_do_not_go_to_other_servers(batchfs, steps, tmp_path):
    """The credentials of the set's own URL are for its own server, whatever else the set names and
    the user allows."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(
        GuardedHandler, directory=str(tmp_path))) for _ in range(2)]
    try:
        for server in servers:
            server.said = []
            threading.Thread(target=server.serve_forever, daemon=True).start()
        own, other = (f"127.0.0.1:{server.server_port}" for server in servers)
        refs = {".zgroup": "{\"zarr_format\": 2}", "a/.zarray": array_of([20], [10]),
                "a/0": ["f0.bin", 4, 40], "a/1": [f"http://{other}/f1.bin", 4, 40]}
        write(tmp_path / "two.json", refs)
        values = cat(batchfs, f"http://user:secret@{own}/two.json", "a", "--virtual",
                     f"http://{other}/")
        assert np.array_equal(values, np.concatenate([steps[:10], steps[20:30]]))
        assert {path for path, said in servers[0].said if said} >= {"/two.json", "/f0.bin"}
        assert servers[1].said == [("/f1.bin", None)]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


class SignedHandler(Handler):
    """Files only for their signatures; the file of an address with an id depends on the query
    alone."""

    signatures = {"/f0.bin": "sig=a%2Fb%3D&se=2030-01-01T00%3A00%3A00Z", "/f1.bin": "X=1/2+3"}

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/download" and query.startswith("id="):
            self.path = f"/{query[3:]}"
        elif not path.endswith((".json", "/.zmetadata",
                                ".parq")) and self.signatures.get(path) != query:
            self.asked.append(self.path)
            self.send_error(403)
            return
        super().do_GET()


@pytest.fixture
def signed(tmp_path):
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(SignedHandler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Handler.asked.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def address(signed, file):
    return f"{signed}/{file}?{SignedHandler.signatures['/' + file]}"


def test_signed_addresses(batchfs, steps, tmp_path, signed):
    store = one(tmp_path, address(signed, "f0.bin"), 4, 40)
    refusal = batchfs.refusal("cat", store, "a")
    assert f"--virtual {signed}/" in refusal and "sig=" not in refusal
    assert np.array_equal(cat(batchfs, store, "a", "--virtual", signed), steps[:10])
    assert np.array_equal(cat(batchfs, f"{signed}/one.json", "a"),
                          steps[:10]), "below the set's own folder"
    store = one(tmp_path, address(signed, "f1.bin"), 4, 40)
    assert np.array_equal(cat(batchfs, store, "a", "--virtual", f"{signed}/"),
                          steps[20:30]), "characters that a signature may hold"


def test_addresses_that_differ_in_their_queries_are_two_files(batchfs, steps, tmp_path, signed):
    refs = {".zgroup": "{\"zarr_format\": 2}", "a/.zarray": array_of([20], [10]),
            "a/0": [f"{signed}/download?id=f1.bin", 4, 40],
            "a/1": [f"{signed}/download?id=f0.bin", 4, 40]}
    values = cat(batchfs, write(tmp_path / "ids.json", refs), "a", "--virtual", signed)
    assert np.array_equal(values, np.concatenate([steps[20:30], steps[:10]]))


def test_a_signature_that_has_expired(batchfs, steps, tmp_path, signed):
    store = one(tmp_path, f"{signed}/f0.bin?sig=expired", 4, 40)
    refusal = batchfs.refusal("cat", store, "a", "--virtual", signed)
    assert "signature, which may have expired" in refusal and "=expired" not in refusal, refusal
    fresh = f"{signed}/?{SignedHandler.signatures['/f0.bin']}"
    assert np.array_equal(cat(batchfs, store, "a", "--virtual", f"{signed}/={fresh}"), steps[:10])


def test_signed_addresses_in_parquet(batchfs, steps, tmp_path, signed):
    store = parquet_folder(tmp_path / "set", array_of([10], [10]), 2)
    records([address(signed, "f0.bin")], [4], [40], None, store / "a/refs.0.parq", engine="pyarrow")
    assert np.array_equal(cat(batchfs, store, "a", "--virtual", signed), steps[:10])
    assert np.array_equal(cat(batchfs, f"{signed}/set", "a", "--virtual", signed), steps[:10])
