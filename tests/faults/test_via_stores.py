"""Shared caches of one store among several, filled by warm, on a disk that is full, and on a Unix
socket."""

import contextlib
import json
import os
import subprocess

import numpy as np
import pytest
import xarray as xr

from fault_proxy import Fault, FaultProxy
from nginx_slices import NGINX, NginxCache
from test_via import caches_of, chunks_asked, load, server_of

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
BOTH = {"sources": {"a": {}, "b": {"store": "b", "join": {"time": {"pick": "exact"},
                                                          "place": {"pick": "exact"}}}},
        "window": {"time": 1}, "batch": 24,
        "tensors": {"x": {"variables": ["a:x"]}, "y": {"variables": ["b:x"]}}}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory, values):
    """A store with coordinates."""
    path = tmp_path_factory.mktemp("labelled") / "s.zarr"
    coordinates = {"time": np.arange(24), "place": np.arange(40)}
    data = xr.Dataset({"x": (("time", "place"), values)}, coordinates)
    data.to_zarr(path, zarr_format=2, encoding={"x": {"chunks": (4, 40)}})
    return path


@pytest.mark.parametrize("own", ["none", "other"])
def test_a_store_has_caches_of_its_own(good, labelled, values, tmp_path, own):
    (tmp_path / "both.json").write_text(json.dumps(BOTH))
    with (FaultProxy(labelled) as first, FaultProxy(labelled) as second,
          FaultProxy(labelled) as cache, FaultProxy(labelled) as other):
        url = {"none": "none", "other": other.url}[own]
        out = good("batch", first.url, "--store", f"b={second.url}", "--view",
                   tmp_path / "both.json", "--format", "npz", "--via", cache.url, "--store-option",
                   f"b.via={url}")
        for tensor in load(out).values():
            np.testing.assert_array_equal(tensor.reshape(values.shape), values)
        assert cache.requests and {headers["Host"]
                                   for _, _, headers in cache.requests} == {server_of(first)}
        assert not chunks_asked(first)[0]
        if own == "none":
            assert chunks_asked(second)[0] and not other.requests
        else:
            assert not chunks_asked(second)[0] and (
                {headers["Host"] for _, _, headers in other.requests} == {server_of(second)})


@needs_nginx
def test_warm_fills_shared_caches(good, proxy, tmp_path, values, view_file):
    with NginxCache(tmp_path / "cache", [server_of(proxy)]) as cache:
        first, again = (json.loads(good("warm", proxy.url, "--view", view_file, "--via", cache.url,
                                        "--json")) for _ in range(2))
        assert first["via_misses"] > 0 and first["written_bytes"] == 0
        assert again["via_misses"] == 0 and again["via_hits"] == again["via_requests"] > 0
        proxy.set(Fault())
        np.testing.assert_array_equal(load(good("cat", proxy.url, "x", "--via", cache.url)), values)
        assert chunks_asked(proxy)[0] == []


def test_warm_fails_where_no_cache_is_filled(fails, proxy, directory, view_file):
    with FaultProxy(directory) as cache:
        cache.fault = Fault(status=500)
        assert "instead of the shared caches" in fails(1, "warm", proxy.url, "--view", view_file,
                                                       "--via", cache.url)
    assert "it needs --cache-dir, the directory of the cache, or --via" in fails(
        2, "warm", proxy.url, "--view", view_file)


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder],
                             capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("a file system can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@needs_nginx
def test_a_cache_whose_disk_is_full(good, proxy, tmp_path, values):
    with small_disk(tmp_path / "disk") as disk, NginxCache(tmp_path / "cache", [server_of(proxy)],
                                                           kept=disk / "kept") as cache:
        for _ in range(2):
            np.testing.assert_array_equal(load(good("cat", proxy.url, "x", "--via", cache.url)),
                                          values)
            (disk / "filled").write_bytes(
                bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize))


@needs_nginx
def test_a_cache_on_a_unix_socket(good, batchfs, proxy, tmp_path, values):
    """Passwords may go to it. One that is gone, or that nobody listens on, costs no read."""
    address = proxy.url.replace("http://", "http://me:word@")
    with NginxCache(tmp_path / "cache", [server_of(proxy)], on_socket=True) as cache:
        for place in (proxy.url, address, address):
            np.testing.assert_array_equal(load(good("cat", place, "x", "--via", cache.url)), values)
        assert len(chunks_asked(proxy)[0]) == len(set(chunks_asked(proxy)[0])) > 0
        (found,) = caches_of(batchfs, proxy.url, "--via", cache.url)
        assert found["state"] == "ok" and cache.url in found["found"]
        cache.kill()
        np.testing.assert_array_equal(
            load(good("cat", address, "x", "--via", f"{cache.url},unix:{tmp_path}/none")), values)
        (found,) = caches_of(batchfs, proxy.url, "--via", cache.url, "--timeout", "2")
        assert found["state"] == "problem" and cache.address in found["found"]
