"""gs:// and az:// through nginx as a shared cache, as it is shipped. Tokens go only to caches of
this machine."""

import io
import urllib.parse

import numpy as np
import pytest
import test_azure
import test_gcs
import zarr
from test_azure import azure  # noqa: F401 (fixtures)
from test_gcs import emulator, google, key, settings  # noqa: F401

from nginx_slices import NGINX, NginxCache

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
ELSEWHERE = "http://192.0.2.1:8090"


def server_of(url):
    return urllib.parse.urlsplit(url).netloc


def check_values(cloud, address, truth, *options, **variables):
    got = np.load(io.BytesIO(cloud("cat", address, "values", "--decode", "raw", *options,
                                   **variables)))
    assert np.array_equal(got, truth)


def chunks_sent(server):
    return [path for path in server.sent if "values%2Fc" in path or "/values/c" in path]


@pytest.fixture(scope="module")
def truth(stores):
    return zarr.open_group(stores["v3.zarr"], mode="r")["values"][...]


@pytest.fixture
def account(google, settings, key):
    """The environment of a service account."""
    return settings(test_gcs.service_account(key))


def test_objects_leave_google_once(cloud, google, account, truth, tmp_path):
    with NginxCache(tmp_path / "cache", [server_of(google.url)]) as cache:
        for _ in range(3):
            check_values(cloud, test_gcs.store("v3.zarr"), truth, "--via", cache.url, **account)
    sent = chunks_sent(google)
    assert len(sent) == 3 and len(set(sent)) == 3


def test_who_has_no_token_of_google_reads_nothing_of_the_cache(
        cloud, cloud_fails, google, settings, account, truth, tmp_path):
    with NginxCache(tmp_path / "cache", [server_of(google.url)]) as cache:
        check_values(cloud, test_gcs.store("v3.zarr"), truth, "--via", cache.url, **account)
        assert "without credentials" in cloud_fails("cat", test_gcs.store("v3.zarr"), "values",
                                                    "--anon", "--via", cache.url, **account)
        for path in cache.folder.rglob("*"):
            assert not path.is_file() or google.tokens[-1].encode() not in path.read_bytes()


def test_tokens_of_google_do_not_leave_the_machine_in_clear(cloud_fails, google, account):
    line = cloud_fails("cat", test_gcs.store("v3.zarr"), "values", "--via", ELSEWHERE, **account)
    assert "in clear" in line and ELSEWHERE in line and "https://" in line
    assert not google.tokens and not google.sent


def test_the_emulator_of_google(cloud, emulator, truth, tmp_path):
    """It asks for no token, and names no versions."""
    with NginxCache(tmp_path / "cache", [server_of(emulator)]) as cache:
        for _ in range(2):
            check_values(cloud, test_gcs.store("v3.zarr"), truth, "--via", cache.url,
                         "--cache-trust", STORAGE_EMULATOR_HOST=emulator)
        assert len([path for path in (cache.folder / "kept").rglob("*") if path.is_file()]) == 3


@pytest.fixture
def token(azure):
    """The environment with a SAS token."""
    azure.right = "sas"
    azure.sent.clear()
    return {"AZURE_STORAGE_ENDPOINT": f"{azure.url}/{test_azure.ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": test_azure.ACCOUNT,
            "AZURE_STORAGE_SAS_TOKEN": test_azure.SAS}


def test_objects_leave_azure_once(cloud, azure, token, truth, tmp_path):
    with NginxCache(tmp_path / "cache", [server_of(azure.url)]) as cache:
        for _ in range(3):
            check_values(cloud, test_azure.store("v3.zarr"), truth, "--via", cache.url, **token)
    sent = chunks_sent(azure)
    assert len(sent) == 3 and len(set(sent)) == 3


def test_shards_of_azure_through_a_cache(cloud, azure, token, stores, tmp_path):
    """The end of an object is asked for as a suffix, which Azure does not know and nginx does."""
    with NginxCache(tmp_path / "cache", [server_of(azure.url)]) as cache:
        got = cloud("cat", test_azure.store("sharded.zarr"), "/", "--via", cache.url, **token)
    assert np.array_equal(np.load(io.BytesIO(got)),
                          zarr.open_array(stores["sharded.zarr"], mode="r")[...])


def test_what_of_azure_does_not_go_to_caches(cloud_fails, azure, token):
    line = cloud_fails("cat", test_azure.store("v3.zarr"), "values", "--via", ELSEWHERE, **token)
    assert "in clear" in line and "HU" not in line and not azure.sent
    keys = {name: value for name, value in token.items()
            if "SAS" not in name} | {"AZURE_STORAGE_ACCOUNT_KEY": test_azure.KEY}
    line = cloud_fails("cat", test_azure.store("v3.zarr"), "values", "--via", "http://127.0.0.1:9",
                       **keys)
    assert ("signs the range" in line and "AZURE_STORAGE_SAS_TOKEN" in line
            and test_azure.KEY not in line)
