"""Fetches of the machines of a cluster: a server for each, which reads the chunks of its ranks from
one origin that counts bytes."""

import http.server
import json
import pathlib
import re
import subprocess
import threading
import warnings

import numpy as np
import pytest
import xarray as xr
from numcodecs import Zstd
from reader_servers import PROGRAM, Server

import batchfs

WORLD = 8
TIMES, CHUNK = 3200, 2  # windows of two steps: every other one reaches into the next chunk
SPAN = 16
LANES = {"shuffle": "block", "seed": 3, "buffer": 1, "lanes": WORLD, "span": {"time": SPAN}}


class Origin(http.server.ThreadingHTTPServer):
    """Files below http://.../NODE/, with the bytes of chunks that each node was sent."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), OriginHandler)
        self.folder = folder
        self.lock = threading.Lock()
        self.sent = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a server that ends leaves its connections

    def url(self, node):
        return f"http://127.0.0.1:{self.server_port}/{node}/s.zarr"


class OriginHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        node, _, key = self.path.lstrip("/").partition("/")
        file = self.server.folder / key
        data = file.read_bytes() if file.is_file() else None
        etag = f'"{len(data or b"")}-{key}"'
        if data is not None and self.headers.get("If-None-Match") == etag:
            self.send_response(304)
            self.send_header("ETag", etag)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(404 if data is None else 200)
        body = data or b""
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        assert not asked or int(asked[2]) + 1 >= len(body), "whole objects are asked for"
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", etag)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body)
        if re.search(r"/\d+\.\d+$", key):
            with self.server.lock:
                self.server.sent[node] = self.server.sent.get(node, 0) + len(body)


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("origin")
    values = np.random.default_rng(1).integers(0, 1 << 30, (TIMES, 16)).astype("i4")
    values[:, 0] = np.arange(TIMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"v": (("time", "x"), values)}).to_zarr(
            folder / "s.zarr", zarr_format=2,
            encoding={"v": {"chunks": (CHUNK, 16), "compressors": [Zstd(1)]}})
    origin = Origin(folder)
    yield origin
    origin.shutdown()


def view_of(order):
    """With a home two epochs: prefetching reads into the next one."""
    return {"name": "two", "window": {"time": {"size": 2, "stride": 1}}, "variables": ["v"],
            "batch": {"size": 4}, "order": order, "epochs": 2 if order.get("home") else 1}


class Node:
    """One machine: a server, and the ranks that read from it."""

    def __init__(self, origin, folder, order, number, nodes, *options):
        folder.mkdir(exist_ok=True)
        self.ranks = range(number * WORLD // nodes, (number + 1) * WORLD // nodes)
        self.server = Server(origin.url(number), folder, {"two": view_of(order)}, *options)

    def read(self, epoch):
        """First steps of all windows that the ranks read."""
        def rank(number):
            dataset = batchfs.open(self.server.socket, rank=number, world=WORLD, epoch=epoch)
            seen.extend(int(w) for batch in dataset for w in batch["v"].numpy()[:, 0, 0])
        seen = []
        threads = [threading.Thread(target=rank, args=(r,)) for r in self.ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen


def epoch_of(origin, folder, order, nodes, epoch, *options):
    """Reads an epoch on servers of its own. The bytes that each was sent."""
    origin.sent.clear()
    seen = []
    for n in range(nodes):  # one after the other, so that each fetches on its own
        node = Node(origin, folder / str(n), order, n, nodes,
                    *[str(o).replace("NODE", str(folder / str(n) / "cache")) for o in options])
        try:
            seen += node.read(epoch)
        finally:
            node.server.stop()
    assert sorted(seen) == list(range(TIMES - 1))
    return [origin.sent.get(str(n), 0) for n in range(nodes)]


def plan(origin, folder, order, nodes):
    (folder / "v.json").write_text(json.dumps(view_of(order)))
    return json.loads(subprocess.run([PROGRAM, "plan", origin.folder / "s.zarr", "--view",
                                      folder / "v.json", "--json", "--world", str(WORLD), "--nodes",
                                      str(nodes)], check=True, capture_output=True).stdout)


def stored(origin):
    return sum(f.stat().st_size for f in pathlib.Path(origin.folder / "s.zarr" / "v").iterdir()
               if f.name[0].isdigit())


@pytest.mark.parametrize("nodes", [2, 8])
def test_nodes_fetch_what_the_plan_says(origin, tmp_path, nodes):
    sent = epoch_of(origin, tmp_path, LANES, nodes, 0)
    expected = plan(origin, tmp_path, LANES, nodes)
    assert expected["bytes_fetched_counted"]
    assert sum(sent) == pytest.approx(expected["bytes_fetched"], rel=0.02)
    assert sent == pytest.approx(expected["bytes_fetched_by_node"], rel=0.02)
    assert sum(sent) <= 1.15 * stored(origin)
    chunks = TIMES / CHUNK
    formula = 1 + (1 - 1 / nodes) / SPAN + nodes * SPAN / chunks
    assert sum(sent) / stored(origin) == pytest.approx(formula, abs=0.08)


def test_without_lanes_each_node_fetches_most_of_the_store(origin, tmp_path):
    sent = epoch_of(origin, tmp_path, {"shuffle": "block", "seed": 3, "buffer": 8}, 2, 0)
    expected = plan(origin, tmp_path, {"shuffle": "block", "seed": 3, "buffer": 8}, 2)
    assert sum(sent) == pytest.approx(expected["bytes_fetched"], rel=0.02)
    assert sum(sent) > 1.4 * stored(origin)


@pytest.mark.parametrize("nodes", [2, 8])
def test_with_homes_the_next_epoch_comes_from_the_cache(origin, tmp_path, nodes):
    order = LANES | {"home": True}
    cached = ("--cache-dir", "NODE")
    first = epoch_of(origin, tmp_path, order, nodes, 0, *cached)
    expected = plan(origin, tmp_path, order, nodes)
    assert sum(first) == pytest.approx(expected["bytes_fetched"], rel=0.02)
    assert sum(first) <= 1.15 * stored(origin)
    # New servers again: nothing is in memory.
    second = epoch_of(origin, tmp_path, order, nodes, 1, *cached)
    assert sum(second) == pytest.approx(expected["bytes_fetched_in_next_epoch"],
                                        abs=0.01 * sum(first))
    assert sum(second) <= 0.05 * sum(first)
