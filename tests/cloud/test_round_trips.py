"""How many answers must be waited for, one after the other, until a batch is there: requests that
are under way together are one round trip. The server answers when no other request has come for a
while, all at once."""

import contextlib
import http.server
import io
import json
import pathlib
import threading

import numpy as np
import pytest
import xarray as xr
import zarr

PAUSE = 0.3  # seconds: much longer than it takes to send independent requests


class Rounds(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder):
        self.folder, self.rounds = pathlib.Path(folder), []
        self.changed, self.arrived = threading.Condition(), 0
        super().__init__(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def wait(self, key):
        """Returns when the round of this request ends."""
        with self.changed:
            self.arrived += 1
            if self.arrived == 1:
                self.rounds.append([])
            self.rounds[-1].append(key)
            mine = len(self.rounds)
            self.changed.notify_all()
            while len(self.rounds) == mine and self.arrived:
                count = self.arrived
                if not self.changed.wait_for(lambda: self.arrived != count
                                                 or len(self.rounds) != mine, PAUSE):
                    self.arrived = 0
                    self.changed.notify_all()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        key = self.path.lstrip("/")
        self.server.wait(key)
        file = self.server.folder / key
        if not file.is_file():
            return self.answer(404, b"")
        data = file.read_bytes()
        if "Range" not in self.headers:
            return self.answer(200, data)
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        begin, end = ((int(first), min(int(last) + 1 if last else len(data), len(data))) if first
                          else (max(0, len(data) - int(last)), len(data)))
        self.answer(206, data[begin:end],
                    [("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")])

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(body))), ("ETag", '"1"')]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def dataset():
    data = xr.Dataset(
        {name: (("time", "x"), np.random.default_rng(0).random((12, 5))) for name in ("a", "b")},
        {"time": np.arange("2000-01-01", "2000-01-13", dtype="datetime64[D]"), "x": np.arange(5.0)})
    return data, {name: {"chunks": (3, 5)} for name in data}


VIEW = {"window": {"time": 2}, "batch": 2,
        "tensors": {"a": {"variables": ["a"]}, "b": {"variables": ["b"]}}}


@contextlib.contextmanager
def serving(folder):
    server = Rounds(folder)
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield server
    finally:
        server.shutdown()


@pytest.fixture
def rounds_of(tmp_path, good):
    """rounds_of(prefix): the rounds of requests for the first batch of tmp_path / "store"."""
    view = tmp_path / "view.json"
    view.write_text(json.dumps(VIEW))

    def rounds(prefix=""):
        with serving(tmp_path) as server:
            batch = np.load(io.BytesIO(good("batch", f"{prefix}{server.url}/store", "--view", view,
                                            "--format", "npz")))
        assert np.shape(batch["a"]) == (2, 2, 5)
        return server.rounds

    return rounds


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_consolidated_store(rounds_of, tmp_path, zarr_format):
    data, encoding = dataset()
    data.to_zarr(tmp_path / "store", zarr_format=zarr_format, encoding=encoding, consolidated=True)
    rounds = rounds_of()
    assert len(rounds) == 3, rounds  # metadata, coordinates, chunks


@pytest.mark.parametrize("prefix", ["", "icechunk+"])
def test_an_icechunk_repository(rounds_of, tmp_path, prefix):
    icechunk = pytest.importorskip("icechunk",
                                   reason="tools/dependencies test installs the icechunk package")
    data, encoding = dataset()
    repository = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(tmp_path / "store")),
        config=icechunk.RepositoryConfig(inline_chunk_threshold_bytes=0))
    session = repository.writable_session("main")
    data.to_zarr(session.store, zarr_format=3, encoding=encoding, consolidated=False)
    session.commit("written")
    rounds = rounds_of(prefix)
    # Repository type and branch; the snapshot; manifests; coordinates; chunks.
    assert len(rounds) == 5, rounds


def test_many_arrays_of_an_icechunk_repository(rounds_of, tmp_path):
    """The manifests that the view needs come along, though others are smaller."""
    icechunk = pytest.importorskip("icechunk",
                                   reason="tools/dependencies test installs the icechunk package")
    data, encoding = dataset()
    repository = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(tmp_path / "store")),
        config=icechunk.RepositoryConfig(inline_chunk_threshold_bytes=0))
    session = repository.writable_session("main")
    data.to_zarr(session.store, zarr_format=3, encoding=encoding, consolidated=False)
    for number in range(40):
        zarr.create_array(session.store, name=f"other{number}", data=np.arange(4.0), chunks=(2,))
    session.commit("written")
    rounds = rounds_of()
    assert len(rounds) == 5, rounds


def test_one_array_of_version_2_on_a_plain_server(good, tmp_path):
    zarr.create_array(tmp_path / "a", data=np.arange(12.0), chunks=(3,), zarr_format=2)
    with serving(tmp_path) as server:
        assert "12" in good("inspect", f"{server.url}/a").decode()
    assert len(server.rounds) == 1, server.rounds
