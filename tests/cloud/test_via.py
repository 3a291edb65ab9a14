"""Signed s3:// through nginx as a shared cache, as it is shipped. The server checks the
signatures."""

import io

import numpy as np
import pytest
import zarr

from nginx_slices import NGINX, NginxCache
from test_s3 import BUCKET, moto, reader, store  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@pytest.fixture
def cache(moto, tmp_path):
    with NginxCache(tmp_path / "cache", [moto.url.removeprefix("http://")]) as cache:
        yield cache


def kept(cache):
    """The slices that the cache has."""
    return {path.name for path in (cache.folder / "kept").rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["v2c.zarr", "v3.zarr"])
def test_signed_reads(cloud, reader, cache, stores, name):
    root = zarr.open_group(stores[name], mode="r")
    for path in ("values", "sparse"):
        for _ in range(2):
            got = cloud("cat", store(name), path, "--decode", "raw", "--via", cache.url, **reader)
            assert np.array_equal(np.load(io.BytesIO(got)), root[path][...])
    assert kept(cache)


def test_ranges_of_shards(cloud, reader, cache, stores):
    want = zarr.open_array(stores["sharded.zarr"], mode="r")[...]
    for _ in range(2):
        assert np.array_equal(np.load(io.BytesIO(cloud("cat", store("sharded.zarr"), "/", "--via",
                                                       cache.url, **reader))), want)
    before = kept(cache)
    assert len(before) == 2  # one slice of each shard
    part = cloud("cat", store("sharded.zarr"), "/", "--select", "dim_0=#3:#7", "--via", cache.url,
                 **reader)
    assert np.array_equal(np.load(io.BytesIO(part)), want[3:7])
    assert kept(cache) == before


def test_an_icechunk_repository(check_repository, cloud, reader, cache):
    check_repository(lambda *arguments: cloud(*arguments, "--via", cache.url, **reader),
                     f"s3://{BUCKET}/some data")


def test_who_may_not_read_gets_nothing_of_the_cache(cloud, cloud_fails, moto, reader, cache):
    """The store is asked for the version of each object."""
    cloud("cat", store("v3.zarr"), "values", "--via", cache.url, **reader)
    stranger = moto.keys["stranger"] | {"AWS_ENDPOINT_URL": moto.url}
    assert "denied" in cloud_fails("cat", store("v3.zarr"), "values", "--via", cache.url,
                                   **stranger)
    wrong = reader | {"AWS_SECRET_ACCESS_KEY": "WRONGSECRET"}
    assert "SignatureDoesNotMatch" in cloud_fails("cat", store("v3.zarr"), "values", "--via",
                                                  cache.url, **wrong)


def test_no_key_is_kept_by_the_cache(cloud, reader, cache):
    cloud("cat", store("v3.zarr"), "values", "--via", cache.url, **reader)
    for path in cache.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"AWS4-HMAC" not in data and reader["AWS_ACCESS_KEY_ID"].encode() not in data


def test_a_cache_that_is_gone(cloud, reader, cache, stores):
    cache.kill()
    got = cloud("cat", store("v3.zarr"), "values", "--decode", "raw", "--via", cache.url, **reader)
    assert np.array_equal(np.load(io.BytesIO(got)),
                          zarr.open_group(stores["v3.zarr"], mode="r")["values"][...])
