"""gs:// against the emulator gcp-storage-emulator, and against a small server that wants to see a
token."""

import base64
import io
import json
import sys
import time
import urllib.parse

import numpy as np
import pytest
import requests
import zarr
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cloud_servers import ODD_NAME, Handler, Server, files_of, version_of

BUCKET = "the-bucket"
EMAIL = "reader@project.iam.gserviceaccount.com"


def store(name):
    return f"gs://{BUCKET}/some data/{name}"


def load(output):
    return np.load(io.BytesIO(output))


def check_reading(cloud, stores, **variables):
    for name in ("v2.zarr", "v2c.zarr", "v3.zarr", "v3c.zarr"):
        root = zarr.open_group(stores[name], mode="r")
        for path in ("values", "sparse", f"deep/er/{ODD_NAME}"):
            told = load(cloud("cat", store(name), path, "--decode", "raw", **variables))
            assert np.array_equal(told, root[path][...])
        told = json.loads(cloud("inspect", store(name), "--json", **variables))
        assert sorted(told["arrays"]) == sorted([f"deep/er/{ODD_NAME}", "sparse", "values"])


@pytest.fixture(scope="module")
def emulator(server, free_port, stores):
    port = free_port()
    server([sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1",
            f"--port={port}", "--in-memory", f"--default-bucket={BUCKET}"], port)
    for folder in stores.values():
        for key, data in files_of(folder):
            requests.post(f"http://127.0.0.1:{port}/upload/storage/v1/b/{BUCKET}/o",
                          params={"uploadType": "media", "name": f"some data/{key}"}, data=data,
                          timeout=30).raise_for_status()
    return f"http://127.0.0.1:{port}"


def test_reads_what_zarr_python_wrote(cloud, emulator, stores):
    check_reading(cloud, stores, STORAGE_EMULATOR_HOST=emulator)


def test_an_icechunk_repository(check_repository, cloud, emulator):
    check_repository(lambda *arguments: cloud(*arguments, STORAGE_EMULATOR_HOST=emulator),
                     f"gs://{BUCKET}/some data")


class Google(Handler):
    """The JSON API's reading half and the token service (RFC 7523, RFC 6749)."""

    def do_POST(self):
        form = dict(
            urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        if form["grant_type"] == "refresh_token":
            if (form["client_id"], form["client_secret"],
                    form["refresh_token"]) != ("id", "se/cret", "1//good"):
                return self.answer(400, '{"error": "invalid_grant"}')
        else:
            assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            decode = lambda part: base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
            header, claims, signature = form["assertion"].split(".")
            try:
                self.server.key.public_key().verify(decode(signature),
                                                    f"{header}.{claims}".encode(),
                                                    padding.PKCS1v15(), hashes.SHA256())
            except Exception:
                return self.answer(400, '{"error": "invalid_grant"}')
            claims = json.loads(decode(claims))
            assert json.loads(decode(header)) == {"alg": "RS256", "typ": "JWT", "kid": "kid"}
            assert claims["iss"] == EMAIL and claims["aud"] == f"{self.server.url}/token"
            assert (claims["scope"].endswith(self.server.scope)
                    and abs(claims["iat"] - time.time()) < 60)
            assert claims["exp"] - claims["iat"] == 3600
        self.server.tokens.append(f"token{len(self.server.tokens)}")
        return self.answer(200,
                           json.dumps({"access_token": self.server.tokens[-1], "expires_in": 3600}))

    def do_GET(self):
        if self.server.tokens[-1:] != [
                self.headers.get("Authorization", "").removeprefix("Bearer ")]:
            return self.answer(401, '{"error": {"code": 401, "errors": [{"reason": "authError"}]}}')
        start = f"/storage/v1/b/{BUCKET}/o"
        if not self.path_part.startswith(start):
            return self.answer(404, '{"error": {"code": 404, "message": "The specified bucket '
                                    'does not exist."}}')
        if self.path_part == start:
            if "delimiter" in self.query:
                keys, prefixes, after = self.children(self.query.get("prefix", ""),
                                                      self.query.get("pageToken", ""))
                page = {"items": [{"name": key} for key in keys], "prefixes": prefixes}
            else:
                found, after = self.everything(self.query.get("prefix", ""),
                                               self.query.get("pageToken", ""))
                page = {"items": [{"name": key, "etag": f'"{version_of(data)}"',
                                   "size": str(len(data))} for key, data in found]}
            return self.answer(200, json.dumps(page | ({"nextPageToken": after} if after else {})))
        key = self.path_part[len(start) + 1:]
        assert "/" not in key and self.query["alt"] == "media"
        data = self.server.objects.get(urllib.parse.unquote(key))
        return self.answer(404, "No such object") if data is None else self.answer_object(data)


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def google(stores, key):
    server = Server(Google, {f"some data/{name}": data for folder in stores.values()
                             for name, data in files_of(folder)})
    server.key, server.tokens, server.scope = key, [], "devstorage.read_only"
    yield server
    server.shutdown()


@pytest.fixture
def settings(google, tmp_path):
    """settings(credentials): environment variables that name them, and the server."""

    def write(credentials):
        (tmp_path / "credentials.json").write_text(
            json.dumps(credentials | {"token_uri": f"{google.url}/token"}))
        (tmp_path / "config.json").write_text(json.dumps({"gcs": {"endpoint": google.url}}))
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "credentials.json"),
                "BATCHFS_CONFIG": str(tmp_path / "config.json")}

    return write


def service_account(key):
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                            serialization.NoEncryption()).decode()
    return {"type": "service_account", "client_email": EMAIL, "private_key_id": "kid",
            "private_key": pem}


def test_a_service_account(cloud, settings, stores, key):
    check_reading(cloud, stores, **settings(service_account(key)))


def test_shards(cloud, settings, stores, key):
    assert np.array_equal(load(cloud("cat", store("sharded.zarr"), "/",
                                     **settings(service_account(key)))),
                          zarr.open_array(stores["sharded.zarr"], mode="r")[...])


def test_an_authorized_user(cloud, cloud_fails, settings):
    user = {"type": "authorized_user", "client_id": "id", "client_secret": "se/cret",
            "refresh_token": "1//good"}
    assert cloud("inspect", store("v3.zarr"), **settings(user))
    line = cloud_fails("inspect", store("v3.zarr"),
                       **settings(user | {"refresh_token": "1//WRONG"}))
    assert "invalid_grant" in line and "WRONG" not in line and "se/cret" not in line


def test_another_accounts_key_is_refused(cloud_fails, settings):
    other = rsa.generate_private_key(65537, 2048)
    assert "invalid_grant" in cloud_fails("inspect", store("v3.zarr"),
                                          **settings(service_account(other)))


def test_a_token_from_the_environment(cloud, cloud_fails, google, settings):
    variables = settings({}) | {"GOOGLE_OAUTH_ACCESS_TOKEN": "given"}
    assert "access token" in cloud_fails("inspect", store("v3.zarr"), **variables)
    google.tokens.append("given")
    assert cloud("inspect", store("v3.zarr"), **variables)
    assert "no bucket 'absent'" in cloud_fails("inspect", "gs://absent/a.zarr", **variables)
    assert "without credentials" in cloud_fails("inspect", store("v3.zarr"), "--anon", **variables)
