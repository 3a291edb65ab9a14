"""`batchfs refresh` of stores on servers: web servers, and S3 by moto."""

import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from growing import VIEW, append, batches, create, steps, values
from watching import eventually


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files with ETags and ranges."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        data = path.read_bytes()
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        if self.headers.get("If-None-Match") == tag:
            self.send_response(304)
            self.send_header("ETag", tag)
            return self.end_headers()
        status, total = 200, len(data)
        if asked := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            first, last = asked.groups()
            begin = int(first) if first else max(0, total - int(last))
            end = total if not first or not last else min(int(last) + 1, total)
            status, data = 206, data[begin:end]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{total}")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag)
        self.end_headers()
        return self.wfile.write(data)


@pytest.fixture
def served(tmp_path):
    (tmp_path / "served").mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(
            Handler, directory=str(tmp_path / "served"))) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.asked
        server.shutdown()


@pytest.fixture(scope="module")
def moto():
    pytest.importorskip("moto", reason="tools/dependencies test installs moto")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p",
                                str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0
    assert eventually(answers, 60)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def consolidated(folder, first, count):
    dataset, encoding = steps(first, count)
    if first == 0:
        dataset.to_zarr(folder, zarr_format=2, consolidated=True, encoding=encoding)
    else:
        dataset.to_zarr(folder, append_dim="time", consolidated=True)


class OnWeb:
    """A consolidated store on a plain web server."""

    def __init__(self, tmp_path, url):
        self.folder, self.url = tmp_path / "served/s.zarr", url + "/s.zarr"
        self.options = []

    def grow(self, first, count):
        consolidated(self.folder, first, count)


class SetOnWeb(OnWeb):
    """A reference set on a plain web server, of the files of another store there."""

    def __init__(self, tmp_path, url):
        super().__init__(tmp_path, url)
        self.set, self.url = tmp_path / "served/set.json", url + "/set.json"

    def grow(self, first, count):
        consolidated(self.folder, first, count)
        # Chunks that grew are other files: a file that was referred to may not change.
        copy = self.folder.with_name(f"s-{first}")
        shutil.copytree(self.folder, copy)
        refs = {str(p.relative_to(copy)): (p.read_text() if p.name.startswith(".")
                                           else [f"{copy.name}/{p.relative_to(copy)}"])
                for p in copy.rglob("*") if p.is_file()}
        self.set.write_text(json.dumps({"version": 1, "refs": refs}))


class InBucket:
    """A store without consolidated metadata in a bucket."""

    def __init__(self, tmp_path, url):
        import boto3
        self.folder, self.url = tmp_path / "local/s.zarr", "s3://grows/s.zarr"
        self.client = boto3.client("s3", endpoint_url=url, region_name="us-east-1",
                                   aws_access_key_id="a", aws_secret_access_key="b")
        self.client.create_bucket(Bucket="grows")
        for found in self.client.list_objects_v2(Bucket="grows").get("Contents", []):
            self.client.delete_object(Bucket="grows", Key=found["Key"])
        self.options = ["--endpoint", url, "--region", "us-east-1"]
        self.folder.parent.mkdir()

    def grow(self, first, count):
        (append if first else lambda path, _, count: create(path, count))(self.folder, first, count)
        files = sorted((p for p in self.folder.rglob("*") if p.is_file()),
                       key=lambda p: p.name == "zarr.json")  # metadata last
        for path in files:
            self.client.put_object(Bucket="grows", Key=f"s.zarr/{path.relative_to(self.folder)}",
                                   Body=path.read_bytes())


class RepositoryInBucket(InBucket):
    """An Icechunk repository in a bucket."""

    def __init__(self, tmp_path, url):
        super().__init__(tmp_path, url)
        icechunk = pytest.importorskip(
            "icechunk", reason="tools/dependencies test installs the icechunk package")
        self.url = "s3://grows/r"
        self.repository = icechunk.Repository.create(icechunk.s3_storage(
            bucket="grows", prefix="r", region="us-east-1", endpoint_url=url, allow_http=True,
            force_path_style=True, access_key_id="a", secret_access_key="b"))

    def grow(self, first, count):
        session = self.repository.writable_session("main")
        dataset, encoding = steps(first, count)
        if first == 0:
            dataset.to_zarr(session.store, zarr_format=3, consolidated=False, encoding=encoding)
        else:
            dataset.to_zarr(session.store, append_dim="time", consolidated=False)
        session.commit(f"from {first}")


@pytest.fixture(params=[OnWeb, SetOnWeb, InBucket, RepositoryInBucket])
def remote(request, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    on_web = issubclass(request.param, OnWeb)
    made = request.param(tmp_path, request.getfixturevalue("served")[0] if on_web
                             else request.getfixturevalue("moto"))
    made.grow(0, 8)
    return made


@pytest.mark.parametrize("cached", [False, True], ids=["plain", "cached"])
def test_new_steps_are_seen(good, mount_at, remote, tmp_path, cached):
    """Also through --cache-dir, whose files of the state before must not be taken for new ones."""
    cache = ["--cache-dir", tmp_path / "cache"] if cached else []
    directory = mount_at(remote.url, tmp_path / "mnt", {"train": VIEW}, *remote.options, *cache)
    assert np.array_equal(values(directory)[:, 0], np.arange(8) * 100)
    assert good("refresh", directory).decode().startswith("nothing has changed")
    held = os.open(directory / "views/train/epoch-0000/batch-000001.npy", os.O_RDONLY)
    before = os.pread(held, 1 << 20, 0)
    remote.grow(8, 3)
    assert "view train: 3 batches, 2 before" in good("refresh", directory).decode()
    assert np.array_equal(values(directory)[:, 0], np.arange(11) * 100)
    assert os.pread(held, 1 << 20, 0) == before
    os.close(held)
    remote.grow(11, 5)  # the chunk of the last steps grows, too
    good("refresh", directory)
    assert np.array_equal(values(directory)[:, 0], np.arange(16) * 100)


def test_at_intervals(mount_at, remote, tmp_path):
    directory = mount_at(remote.url, tmp_path / "mnt", {"train": VIEW}, *remote.options,
                         "--refresh", "1s")
    remote.grow(8, 4)
    assert eventually(lambda: len(batches(directory)) == 3, 20)
    assert np.array_equal(values(directory)[:, 0], np.arange(12) * 100)


def test_a_server_that_does_not_answer_changes_nothing(fails, good, mount_at, tmp_path, served):
    url, _ = served
    store = OnWeb(tmp_path, url)
    store.grow(0, 8)
    directory = mount_at(store.url, tmp_path / "mnt", {"train": VIEW}, "--retries", "0",
                         "--timeout", "2")
    assert len(batches(directory)) == 2
    hidden = store.folder.rename(tmp_path / "hidden")
    fails(1, "refresh", directory)
    assert len(batches(directory)) == 2
    hidden.rename(store.folder)
    store.grow(8, 4)
    good("refresh", directory)
    assert len(batches(directory)) == 3
