"""A run asks S3 for the versions of its objects by listing them: few requests, and the versions
that reads have."""

import collections
import http.client
import http.server
import json
import sys
import threading
import urllib.parse

import numpy as np
import pytest
import xarray as xr
from cloud_servers import files_of
from test_s3 import READ, Moto

BUCKET = "versions"
CHUNKS = 1300  # two pages of a listing


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and counts them by kind."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        kind = "get"
        if "list-type" in query:
            kind = "list" if "delimiter" in query else "versions"
        elif self.headers.get("Range") == "bytes=0-0":
            kind = "version"
        with self.server.lock:
            self.server.counts[kind] += 1
        there = http.client.HTTPConnection(self.server.origin, timeout=60)
        there.request("GET", self.path, headers=dict(self.headers.items()))
        answer = there.getresponse()
        body = self.server.change(kind, answer.read())
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date",
                                    "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        there.close()


@pytest.fixture(scope="module")
def store(server, free_port, tmp_path_factory):
    """(moto, the folder of the store): an array of many chunks, with consolidated metadata."""
    port = free_port()
    server([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], port)
    moto = Moto(port)
    s3 = moto.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    folder = tmp_path_factory.mktemp("versions") / "s.zarr"
    values = np.random.default_rng(1).normal(size=(CHUNKS, 4)).astype("f4")
    xr.Dataset({"t": (("time", "x"), values)}, {"time": np.arange(CHUNKS)}).to_zarr(
        folder, zarr_format=2, consolidated=True,
        encoding={"t": {"chunks": (1, 4)}, "time": {"chunks": (CHUNKS,)}})
    for key, data in files_of(folder):
        s3.put_object(Bucket=BUCKET, Key=f"some data/{key}", Body=data)
    moto.add_user("reader", READ)
    moto.add_user("blind", ["s3:GetObject"])
    moto.enforce(True)
    return moto, folder


@pytest.fixture
def proxy(store):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.origin = store[0].url.removeprefix("http://")
        server.counts, server.lock = collections.Counter(), threading.Lock()
        server.change = lambda kind, body: body
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def statistics(store, cloud, proxy, tmp_path):
    """statistics(user, *options): counts of requests."""
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"variables": ["t"], "window": {"time": 1}}))

    def run(user, *options):
        proxy.counts.clear()
        cloud("statistics", f"s3://{BUCKET}/some data/s.zarr", "--view", view, *options,
              AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy.server_port}", **store[0].keys[user])
        return dict(proxy.counts)

    return run


def test_a_thousand_versions_take_one_request(statistics, tmp_path):
    counts = statistics("reader", "--out", tmp_path / "parts", "--task", 0, "--tasks", 2)
    assert counts["versions"] == 2  # pages, of t; time has one object
    assert counts["version"] <= 3


def test_versions_of_a_listing_are_those_of_reads(statistics, cloud, tmp_path):
    """Parts of a process that may list and of one that may not belong together."""
    listing = statistics("reader", "--out", tmp_path / "parts", "--task", 0, "--tasks", 2)
    asking = statistics("blind", "--out", tmp_path / "parts", "--task", 1, "--tasks", 2)
    assert asking["version"] >= CHUNKS > 100 * listing["version"]
    merged = json.loads(cloud("statistics", "--merge", tmp_path / "parts", "--json"))
    assert merged["variables"]["t"]["count"] == CHUNKS * 4


def test_listings_that_name_versions_in_another_way_are_not_used(
        statistics, cloud, proxy, tmp_path):
    statistics("reader", "--out", tmp_path / "parts", "--task", 0, "--tasks", 2)
    proxy.change = (lambda kind, body: body.replace(b"<ETag>", b"<ETag>0") if kind == "versions"
                    else body)
    counts = statistics("reader", "--out", tmp_path / "parts", "--task", 1, "--tasks", 2)
    assert counts["version"] >= CHUNKS
    assert json.loads(cloud("statistics", "--merge", tmp_path / "parts",
                            "--json"))["variables"]["t"]["count"] == CHUNKS * 4


def test_an_object_that_changed_between_tasks_is_noticed(store, statistics, cloud_fails, tmp_path):
    moto, folder = store
    statistics("reader", "--out", tmp_path / "parts", "--task", 0, "--tasks", 2)
    moto.enforce(False)
    key, other = "some data/s.zarr/t/700.0", (folder / "t/701.0").read_bytes()
    moto.client("s3").put_object(Bucket=BUCKET, Key=key, Body=other)
    moto.enforce(True)
    try:
        line = cloud_fails("statistics", f"s3://{BUCKET}/some data/s.zarr", "--view",
                           tmp_path / "view.json", "--out", tmp_path / "parts", "--task", 1,
                           "--tasks", 2, AWS_ENDPOINT_URL=moto.url, **moto.keys["reader"])
        assert "objects of 't' are of another version" in line
    finally:
        moto.enforce(False)
        moto.client("s3").put_object(Bucket=BUCKET, Key=key, Body=(folder / "t/700.0").read_bytes())
        moto.enforce(True)
