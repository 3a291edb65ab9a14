"""batchfs rechunk, export and tasks to gs://, against the emulator gcp-storage-emulator, and
against a small server that wants a token for writing."""

import json
import sys
import urllib.parse

import pytest
import requests

from cloud_servers import Server
from output_checks import check_parts_of_tasks, check_resume, check_the_copy, make_source
from test_gcs import BUCKET, Google, service_account


@pytest.fixture(scope="module")
def emulator(server, free_port):
    port = free_port()
    server([sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1",
            f"--port={port}", "--in-memory", f"--default-bucket={BUCKET}"], port)
    return f"http://127.0.0.1:{port}"


class Emulated:
    def __init__(self, url):
        self.url = f"{url}/storage/v1/b/{BUCKET}/o"

    def keys(self, prefix):
        found = requests.get(self.url, params={"prefix": prefix + "/"}, timeout=30).json().get(
            "items", [])
        return sorted(item["name"].removeprefix(prefix + "/") for item in found)

    def get(self, key):
        answer = requests.get(f"{self.url}/{urllib.parse.quote(key, safe='')}",
                              params={"alt": "media"}, timeout=30)
        answer.raise_for_status()
        return answer.content


def test_the_objects_are_those_of_a_local_copy(cloud, emulator, tmp_path):
    check_the_copy(cloud, f"gs://{BUCKET}", Emulated(emulator), tmp_path,
                   {"STORAGE_EMULATOR_HOST": emulator})


def test_a_killed_copy_continues(emulator, environment, cloud, tmp_path):
    check_resume(cloud, environment, f"gs://{BUCKET}", Emulated(emulator), tmp_path,
                 {"STORAGE_EMULATOR_HOST": emulator})


def test_parts_of_tasks(cloud, cloud_fails, emulator, tmp_path):
    check_parts_of_tasks(cloud, cloud_fails, f"gs://{BUCKET}", Emulated(emulator), tmp_path,
                         {"STORAGE_EMULATOR_HOST": emulator})


class WritableGoogle(Google):
    def do_POST(self):
        if self.path_part == "/token":
            return super().do_POST()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.tokens[-1:] != [
                self.headers.get("Authorization", "").removeprefix("Bearer ")]:
            return self.answer(401, '{"error": {"code": 401, "errors": [{"reason": "authError"}]}}')
        if self.server.may_only_read:
            return self.answer(403, '{"error": {"code": 403, "errors": [{"reason": "forbidden"}]}}')
        if self.path_part != f"/upload/storage/v1/b/{BUCKET}/o":
            return self.answer(404, '{"error": {"code": 404, "message": "The specified bucket '
                                    'does not exist."}}')
        assert self.query["uploadType"] == "media"
        self.server.objects[self.query["name"]] = body
        return self.answer(200, "{}")

    def do_DELETE(self):
        key = urllib.parse.unquote(self.path_part.rsplit("/", 1)[1])
        return self.answer(404) if self.server.objects.pop(key, None) is None else self.answer(204)


@pytest.fixture
def google(tmp_path):
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    server = Server(WritableGoogle, {})
    server.key, server.tokens, server.scope = rsa.generate_private_key(
        65537, 2048), [], "devstorage.read_write"
    server.may_only_read = False
    (tmp_path / "credentials.json").write_text(json.dumps(service_account(server.key)
                                                          | {"token_uri": f"{server.url}/token"}))
    (tmp_path / "config.json").write_text(json.dumps({"gcs": {"endpoint": server.url}}))
    server.variables = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "credentials.json"),
                        "BATCHFS_CONFIG": str(tmp_path / "config.json")}
    yield server
    server.shutdown()


class InMemory:
    def __init__(self, server):
        self.objects = server.objects

    def keys(self, prefix):
        return sorted(key.removeprefix(prefix + "/")
                      for key in self.objects if key.startswith(prefix + "/"))

    def get(self, key):
        return self.objects[key]


def test_a_service_account_asks_for_the_right_to_write(cloud, google, tmp_path):
    source, _ = make_source(tmp_path)
    cloud("rechunk", source, "--chunks", "t=-1,y=4,x=4", "-o", f"gs://{BUCKET}/some copy.zarr",
          **google.variables)
    assert "zarr.json" in InMemory(google).keys("some copy.zarr")
    assert not [key for key in google.objects if ".batchfs/" in key]


def test_what_may_not_be_written_is_one_line(cloud_fails, google, tmp_path):
    source, _ = make_source(tmp_path)
    command = ["rechunk", source, "--chunks", "t=1", "-o"]
    google.may_only_read = True
    assert "may not write" in cloud_fails(*command, f"gs://{BUCKET}/denied", **google.variables)
    google.may_only_read = False
    assert "no bucket 'absent'" in cloud_fails(*command, "gs://absent/x", **google.variables)
    google.objects["mine/notes.txt"] = b"mine"
    assert "batchfs did not write it" in cloud_fails(*command, f"gs://{BUCKET}/mine",
                                                     **google.variables)
    assert list(google.objects) == ["mine/notes.txt"]
