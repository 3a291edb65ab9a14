"""A run asks Azure and Google for the versions of its objects by listing them, as it asks S3
(test_s3_versions.py)."""

import collections
import json
import threading

import numpy as np
import pytest
import test_azure
import test_gcs
import xarray as xr

from cloud_servers import Server, files_of

CHUNKS = 250  # three pages of a listing


def counting(handler, is_listing):
    """`handler`, which counts requests by kind. Listings may be refused, or name other versions."""

    class Counting(handler):
        def do_GET(self):
            kind = "version" if self.headers.get("Range") == "bytes=0-0" else "get"
            if is_listing(self):
                kind = "list" if "delimiter" in self.query else "versions"
            with self.server.lock:
                self.server.counts[kind] += 1
            if kind == "versions" and self.server.refusal:
                return self.answer(403, self.server.refusal,
                                   x_ms_error_code="AuthorizationPermissionMismatch")
            return super().do_GET()

        do_HEAD = do_GET

        def everything(self, *arguments):
            found, after = super().everything(*arguments)
            return [(name, self.server.change(data)) for name, data in found], after

    return Counting


Azure = counting(test_azure.Azure, lambda handler: "comp" in handler.query)
Google = counting(test_gcs.Google, lambda handler: handler.path_part.endswith("/o"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("versions") / "s.zarr"
    values = np.random.default_rng(1).normal(size=(CHUNKS, 4)).astype("f4")
    xr.Dataset({"t": (("time", "x"), values)}, {"time": np.arange(CHUNKS)}).to_zarr(
        path, zarr_format=2, consolidated=True,
        encoding={"t": {"chunks": (1, 4)}, "time": {"chunks": (CHUNKS,)}})
    return path


@pytest.fixture(params=["az", "gs"])
def remote(request, folder, tmp_path):
    """The server, with the store's URL and the environment of the program."""
    server = Server(Azure if request.param == "az" else Google,
                    {f"some data/{key}": data for key, data in files_of(folder)})
    server.counts, server.lock, server.refusal, server.change = collections.Counter(), (
        threading.Lock()), "", lambda data: data
    if request.param == "az":
        server.right, server.store = "key", test_azure.store("s.zarr")
        server.variables = {"AZURE_STORAGE_ENDPOINT": f"{server.url}/{test_azure.ACCOUNT}",
                            "AZURE_STORAGE_ACCOUNT_NAME": test_azure.ACCOUNT,
                            "AZURE_STORAGE_ACCOUNT_KEY": test_azure.KEY}
    else:
        server.tokens, server.store = ["token"], test_gcs.store("s.zarr")
        (tmp_path / "config.json").write_text(json.dumps({"gcs": {"endpoint": server.url}}))
        server.variables = {"GOOGLE_OAUTH_ACCESS_TOKEN": "token",
                            "BATCHFS_CONFIG": str(tmp_path / "config.json")}
    yield server
    server.shutdown()


@pytest.fixture
def task(cloud, remote, tmp_path):
    """task(number): computes the statistics of a half; counts of requests."""
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"variables": ["t"], "window": {"time": 1}}))

    def run(number, run=cloud):
        remote.counts.clear()
        line = run("statistics", remote.store, "--view", view, "--out", tmp_path / "parts",
                   "--task", number, "--tasks", 2, **remote.variables)
        return dict(remote.counts) if run is cloud else line

    return run


def merged(cloud, tmp_path):
    return json.loads(cloud("statistics", "--merge", tmp_path / "parts",
                            "--json"))["variables"]["t"]["count"]


def test_a_page_of_versions_takes_one_request(task):
    counts = task(0)
    assert counts["versions"] == 3
    assert counts["version"] <= 3


def test_versions_of_a_listing_are_those_of_reads(task, cloud, remote, tmp_path):
    """Parts of a process that may list and of one that may not belong together."""
    listing = task(0)
    remote.refusal = "{}"
    asking = task(1)
    assert asking["version"] >= CHUNKS > 50 * listing["version"]
    assert merged(cloud, tmp_path) == CHUNKS * 4


def test_listings_that_name_versions_in_another_way_are_not_used(task, cloud, remote, tmp_path):
    task(0)
    remote.change = lambda data: data + b"!"
    assert task(1)["version"] >= CHUNKS
    assert merged(cloud, tmp_path) == CHUNKS * 4


def test_the_objects_of_folders_are_passed_over(task, remote):
    for name in ("t/", "t/sub/"):
        remote.objects[f"some data/s.zarr/{name}"] = b""
    counts = task(0)
    assert counts["versions"] == 3
    assert counts["version"] <= 3


def test_an_object_that_changed_between_tasks_is_noticed(task, cloud_fails, remote, folder):
    task(0)
    remote.objects["some data/s.zarr/t/70.0"] = (folder / "t/71.0").read_bytes()
    assert "objects of 't' are of another version" in task(1, run=cloud_fails)
