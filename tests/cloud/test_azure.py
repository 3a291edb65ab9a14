"""az:// against a small server that checks each signature with the official library's signer.

There is no package of an Azure emulator for Python or Debian."""

import base64
import io
import json
import os
import pathlib
import urllib.parse
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pytest
import zarr
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

from cloud_servers import ODD_NAME, Handler, Server, files_of, version_of

ACCOUNT, CONTAINER = "testaccount", "the-container"
KEY = base64.b64encode(b"the key of the test account").decode()
SAS = "sv=2021-12-02&sr=c&sp=rl&sig=HU%2FSH%2B%3D"


def official_signature(handler):
    headers = {name.lower(): value for name, value in handler.headers.items()}
    headers.pop("host")
    # The library looks for the range under this name: it always sends x-ms-range.
    headers["byte_range"] = headers.pop("range", "")
    request = HttpRequest(handler.command, handler.server.url + handler.path, headers=headers)
    SharedKeyCredentialPolicy(ACCOUNT, KEY).on_request(
        PipelineRequest(request, PipelineContext(None)))
    return request.headers["Authorization"]


class Azure(Handler):
    def allowed(self):
        if self.server.right == "sas":
            return self.query.get("sig") == "HU/SH+=" and self.query.get("sp") == "rl"
        return ("x-ms-date" in self.headers
                and self.headers.get("Authorization") == official_signature(self))

    def do_GET(self):
        if "Authorization" not in self.headers and "sig" not in self.query:
            return self.answer(404, x_ms_error_code="ResourceNotFound")
        if not self.allowed():
            return self.answer(403, x_ms_error_code="AuthenticationFailed")
        assert self.headers["x-ms-version"]
        _, account, container, *rest = self.path_part.split("/", 3)
        if container != CONTAINER:
            return self.answer(404, x_ms_error_code="ContainerNotFound")
        assert account == ACCOUNT
        if not rest:
            return self.list()
        data = self.server.objects.get(urllib.parse.unquote(rest[0]))
        if data is None:
            return self.answer(404, x_ms_error_code="BlobNotFound")
        return self.answer_object(data, suffixes=False)

    do_HEAD = do_GET

    def do_PUT(self):
        """Put Blob, Put Block and Put Block List."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.may_write():
            return None
        key, comp = urllib.parse.unquote(self.path_part.split("/", 3)[3]), self.query.get("comp")
        if comp == "block":
            self.server.blocks.setdefault(key, {})[self.query["blockid"]] = body
        elif comp == "blocklist":
            named = [node.text for node in ElementTree.fromstring(body)]
            blocks = self.server.blocks.pop(key)
            assert set(named) == set(blocks) and len({len(name) for name in named}) == 1
            self.server.objects[key] = b"".join(blocks[name] for name in named)
        else:
            assert comp is None and self.headers["x-ms-blob-type"] == "BlockBlob"
            self.server.objects[key] = body
        return self.answer(201)

    def do_DELETE(self):
        if not self.may_write():
            return None
        found = self.server.objects.pop(urllib.parse.unquote(self.path_part.split("/", 3)[3]), None)
        return (self.answer(404, x_ms_error_code="BlobNotFound") if found is None
                else self.answer(202))

    def may_write(self):
        if not self.allowed():
            self.answer(403, x_ms_error_code="AuthenticationFailed")
        elif self.server.right != "key":
            self.answer(403, x_ms_error_code="AuthorizationPermissionMismatch")
        elif self.path_part.split("/")[2] != CONTAINER:
            self.answer(404, x_ms_error_code="ContainerNotFound")
        else:
            return True
        return False

    def list(self):
        query = self.query
        assert (query["restype"], query["comp"],
                query.get("delimiter", "/")) == ("container", "list", "/")
        if "delimiter" in query:
            keys, prefixes, after = self.children(query.get("prefix", ""), query.get("marker", ""))
            blobs = "".join(f"<Blob><Name>{escape(key)}</Name></Blob>" for key in keys)
            blobs += "".join(f"<BlobPrefix><Name>{escape(key)}</Name></BlobPrefix>"
                             for key in prefixes)
        else:
            found, after = self.everything(query.get("prefix", ""), query.get("marker", ""))
            blobs = "".join(
                f"<Blob><Name>{escape(key)}</Name><Properties><Etag>{version_of(data)}</Etag>"
                f"<Content-Length>{len(data)}</Content-Length></Properties></Blob>"
                for key, data in found)
        return self.answer(200, '\ufeff<?xml version="1.0" encoding="utf-8"?>'
                           f"<EnumerationResults><Blobs>{blobs}</Blobs>"
                           f"<NextMarker>{escape(after)}</NextMarker></EnumerationResults>")


@pytest.fixture(scope="module")
def azure(stores):
    server = Server(Azure, {f"some data/{key}": data for folder in stores.values()
                            for key, data in files_of(folder)})
    server.right = "key"
    yield server
    server.shutdown()


@pytest.fixture(params=["key", "connection string", "sas", "sas in the URL"])
def right(request, azure):
    """Environment and the end of the URL, for each way to be let in."""
    azure.right = "sas" if "sas" in request.param else "key"
    endpoint = f"{azure.url}/{ACCOUNT}"
    here = {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT}
    return {"key": (here | {"AZURE_STORAGE_ACCOUNT_KEY": KEY}, ""),
            "connection string": ({
                "AZURE_STORAGE_CONNECTION_STRING":
                    f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"}, ""),
            "sas": (here | {"AZURE_STORAGE_SAS_TOKEN": SAS}, ""),
            "sas in the URL": (here, "?" + SAS)}[request.param]


def store(name):
    return f"az://{CONTAINER}/some data/{name}"


def load(output):
    return np.load(io.BytesIO(output))


def test_reads_what_zarr_python_wrote(cloud, right, stores):
    variables, end = right
    for name in ("v2.zarr", "v3c.zarr"):
        root = zarr.open_group(stores[name], mode="r")
        for path in ("values", "sparse", f"deep/er/{ODD_NAME}"):
            told = load(cloud("cat", store(name) + end, path, "--decode", "raw", **variables))
            assert np.array_equal(told, root[path][...])
        told = json.loads(cloud("inspect", store(name) + end, "--json", **variables))
        assert sorted(told["arrays"]) == sorted([f"deep/er/{ODD_NAME}", "sparse", "values"])
        assert told["store"] == store(name)


def test_an_icechunk_repository(check_repository, cloud, right):
    variables, end = right
    check_repository(lambda *arguments: cloud(*arguments, **variables),
                     f"az://{CONTAINER}/some data", end)


def test_the_last_bytes_of_shards(cloud, right, stores):
    variables, end = right
    assert np.array_equal(load(cloud("cat", store("sharded.zarr") + end, "/", **variables)),
                          zarr.open_array(stores["sharded.zarr"], mode="r")[...])


def test_a_wrong_right_is_refused_and_not_repeated(cloud_fails, azure):
    here = {"AZURE_STORAGE_ENDPOINT": azure.url, "AZURE_STORAGE_ACCOUNT": ACCOUNT}
    azure.right = "key"
    line = cloud_fails("inspect", store("v3.zarr"), **here, AZURE_STORAGE_ACCOUNT_KEY="V1JPTkc=")
    assert "AuthenticationFailed" in line and "V1JPTkc" not in line
    azure.right = "sas"
    line = cloud_fails("inspect", store("v3.zarr") + "?sv=1&sig=WRONG", **here)
    assert "AuthenticationFailed" in line and "WRONG" not in line
    assert "without credentials" in cloud_fails("inspect", store("v3.zarr"), **here)
    assert "without credentials" in cloud_fails("inspect", store("v3.zarr"), "--anon", **here,
                                                AZURE_STORAGE_ACCOUNT_KEY=KEY)


def test_what_is_not_there(cloud_fails, azure):
    here = {"AZURE_STORAGE_ENDPOINT": azure.url, "AZURE_STORAGE_ACCOUNT": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY}
    azure.right = "key"
    assert "not a Zarr store" in cloud_fails("inspect", store("absent.zarr"), **here)
    assert "no container 'nothing-here'" in cloud_fails("inspect", "az://nothing-here/a.zarr",
                                                        **here)
    assert "AZURE_STORAGE_ACCOUNT_NAME" in cloud_fails("inspect", store("v3.zarr"))


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK),
                    reason="/dev/fuse cannot be used")
def test_a_mount_shows_no_secret(batchfs, azure, cloud, environment, tmp_path, stores):
    azure.right = "sas"
    variables = {"AZURE_STORAGE_ENDPOINT": azure.url, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT}
    view, mount = tmp_path / "view.json", tmp_path / "mount"
    view.write_text(json.dumps({"name": "v", "variables": ["values"], "window": {"time": 1},
                                "batch": {"size": 4}}))
    mount.mkdir()
    cloud("mount", store("v3c.zarr") + "?" + SAS, mount, "--view", view, **variables)
    try:
        values = zarr.open_group(stores["v3c.zarr"], mode="r")["values"][...]
        batch = np.load(mount / "views/v/epoch-0000/batch-000002.npy")
        assert np.array_equal(batch, values[8:].reshape(batch.shape))
        assert json.loads((mount / "store.json").read_text())["url"] == store("v3c.zarr")
        control = mount / ".batchfs"
        daemon = json.loads((control / "status.json").read_text())["pid"]
        for path in (mount / "store.json", mount / "summary.txt", control / "config.json",
                     control / "log", pathlib.Path("/proc/self/mountinfo"),
                     pathlib.Path(f"/proc/{daemon}/cmdline")):
            text = path.read_bytes()
            assert b"HU%2F" not in text and b"HU/SH" not in text, path
        assert b"batchfs" in text and str(mount).encode() in text
    finally:
        batchfs("umount", "--lazy", mount)
