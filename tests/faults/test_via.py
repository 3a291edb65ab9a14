"""Shared caches (--via): nginx as it is shipped, caches that go wrong, and caches that go."""

import concurrent.futures
import io
import json
import os
import signal

import numpy as np
import pytest
import zarr

from fault_proxy import QUICK, Fault, FaultProxy
from nginx_slices import NGINX, NginxCache

EPOCH = "views/v/epoch-0000"
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def server_of(proxy):
    return f"127.0.0.1:{proxy.port}"


def is_metadata(path):
    return path.rsplit("/", 1)[-1] in ("zarr.json", ".zmetadata", ".zarray", ".zgroup", ".zattrs")


def chunks_asked(proxy):
    """Requests for chunks: (for bytes, for news of a version)."""
    with proxy.lock:
        requests = [(path, headers) for method, path, headers in proxy.requests
                    if path.startswith("x/") and not is_metadata(path)
                    and (proxy.directory / path).is_file()]
    checks = [path for path, headers in requests if "If-None-Match" in headers]
    return [path for path, headers in requests if "If-None-Match" not in headers], checks


def load(output):
    return np.load(io.BytesIO(output))


@pytest.fixture
def cache(proxy, tmp_path):
    with NginxCache(tmp_path / "cache", [server_of(proxy)]) as cache:
        yield cache


@needs_nginx
def test_each_chunk_leaves_the_store_once_for_many_readers(good, proxy, cache, values):
    def read(_):
        return load(good("cat", proxy.url, "x", "--via", cache.url))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for got in pool.map(read, range(8)):
            np.testing.assert_array_equal(got, values)
    for_bytes, checks = chunks_asked(proxy)
    assert for_bytes and sorted(for_bytes) == sorted(set(for_bytes))
    assert set(checks) == set(for_bytes)


@needs_nginx
def test_trusted_caches_are_not_checked(good, proxy, cache, values):
    for _ in range(2):
        np.testing.assert_array_equal(
            load(good("cat", proxy.url, "x", "--via", cache.url, "--cache-trust")), values)
    for_bytes, checks = chunks_asked(proxy)
    assert len(for_bytes) == len(set(for_bytes)) and checks == []


@needs_nginx
def test_the_environment_names_caches(good, proxy, cache, values):
    for _ in range(2):
        got = good("cat", proxy.url, "x", env=os.environ | {"BATCHFS_VIA": cache.url})
        np.testing.assert_array_equal(load(got), values)
    assert len(chunks_asked(proxy)[0]) == len(set(chunks_asked(proxy)[0]))


@needs_nginx
def test_objects_that_were_replaced_are_seen(good, tmp_path):
    store = tmp_path / "store"
    array = zarr.create_array(store, shape=(8, 1000), chunks=(2, 1000), dtype="f4",
                              dimension_names=["t", "i"])
    array[:] = 1
    with FaultProxy(store) as proxy, NginxCache(tmp_path / "cache", [server_of(proxy)]) as cache:
        def read(*options):
            return load(good("cat", proxy.url, "/", "--via", cache.url, *options))

        assert (read() == 1).all()
        array[2:4] = 2
        assert (read()[2:4] == 2).all()
        assert (read()[:2] == 1).all()
        assert (read("--cache-trust")[2:4] == 1).all()  # the purpose of the option
        (store / "c/3/0").unlink()
        assert (read()[6:] == 0).all()


@needs_nginx
def test_metadata_and_missing_chunks_are_the_stores(good, fails, tmp_path):
    store = tmp_path / "store"
    array = zarr.create_array(store, shape=(8, 4), chunks=(2, 4), dtype="f4", fill_value=7)
    array[2:4] = 1
    with FaultProxy(store) as proxy, NginxCache(tmp_path / "cache", [server_of(proxy)]) as cache:
        want = array[:]
        np.testing.assert_array_equal(load(good("cat", proxy.url, "/", "--via", cache.url)), want)
        array[6:] = 3
        want = array[:]
        np.testing.assert_array_equal(load(good("cat", proxy.url, "/", "--via", cache.url)), want)
        proxy.set(Fault(status=403))
        assert "denies" in fails(1, "cat", proxy.url, "/", "--via", cache.url, *QUICK)


@needs_nginx
def test_the_shipped_configuration_serves_no_other_server(good, proxy, directory, cache, values):
    with FaultProxy(directory) as other:
        np.testing.assert_array_equal(load(good("cat", other.url, "x", "--via", cache.url)), values)
        assert proxy.requests == []
        assert not any("Via" in headers or "X-Forwarded-For" in headers
                       for _, _, headers in other.requests)


# ---- caches that answer with something else ----

WRONG = {
    "html": Fault(status=200, headers={"Content-Type": "text/html"}, body=b"<html>log in</html>"),
    "nothing": Fault(status=200),
    "no content": Fault(status=204),
    "redirect": Fault(redirect=lambda path: "http://127.0.0.1:9/" + path),
    "forbidden": Fault(status=403),
    "missing": Fault(status=404),
    "precondition": Fault(status=412),
    "error": Fault(status=500, body=b"broken"),
    "gateway": Fault(status=502),
    "slow down": Fault(status=503, headers={"Retry-After": "100"}),
    "range": Fault(status=416, headers={"Content-Range": "bytes */3"}),
    "other version": Fault(headers={"ETag": '"another"'}, corrupt=True),
    "no version": Fault(headers={"ETag": "", "Last-Modified": ""}, corrupt=True),
    "short": Fault(cut=7),
    "reset": Fault(cut=7, reset=True),
    "other range": Fault(shift=1),
    "longer": Fault(extend=3),
    "lie": Fault(lie=3),
    "no range": Fault(lose_range=True),
    "compressed": Fault(encoding=True, headers={"ETag": '"z"'}),
    "no http": Fault(raw=b"SSH-2.0-OpenSSH_9.2\r\n"),
    "hang up": Fault(hang_up=True),
    "stall": Fault(stall=7),
    "silence": Fault(raw=b"", stall=1),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_cache_that_answers_with_something_else(good, proxy, directory, values, kind):
    with FaultProxy(directory) as cache:
        cache.fault = WRONG[kind]
        np.testing.assert_array_equal(load(good("cat", proxy.url, "x", "--via", cache.url)), values)
        assert cache.requests and not any(path.endswith("json") or is_metadata(path)
                                          for _, path, _ in cache.requests)


def test_a_cache_that_goes_wrong_now_and_then(good, proxy, directory, values):
    with FaultProxy(directory) as cache:
        for fault in (Fault(status=500, times=1), Fault(cut=3, share=0.5),
                      Fault(headers={"ETag": '"b"'}, corrupt=True, share=0.5)):
            cache.set(fault)
            np.testing.assert_array_equal(load(good("cat", proxy.url, "x", "--via", cache.url)),
                                          values)


def test_a_cache_that_is_not_there(good, proxy, values):
    np.testing.assert_array_equal(
        load(good("cat", proxy.url, "x", "--via", "http://127.0.0.1:9,http://127.0.0.2:9")), values)


def test_an_error_of_the_store_stays_one(fails, proxy, directory):
    with FaultProxy(directory) as cache:
        cache.fault = Fault(status=500)
        proxy.set(Fault(status=403, applies=lambda path: not is_metadata(path)))
        assert "denies" in fails(1, "cat", proxy.url, "x", "--via", cache.url, *QUICK)


# ---- several caches, and caches that go ----


@needs_nginx
def test_caches_share_the_objects(good, proxy, tmp_path, values):
    servers = [server_of(proxy)]
    with NginxCache(tmp_path / "a", servers) as a, NginxCache(tmp_path / "b", servers) as b:
        for order in ((a, b), (b, a)):
            via = ",".join(cache.url for cache in order)
            np.testing.assert_array_equal(load(good("cat", proxy.url, "x", "--via", via)), values)
        for_bytes, _ = chunks_asked(proxy)
        assert sorted(for_bytes) == sorted(set(for_bytes))
        a.kill()
        np.testing.assert_array_equal(
            load(good("cat", proxy.url, "x", "--via", f"{a.url},{b.url}")), values)
        b.kill()
        np.testing.assert_array_equal(
            load(good("cat", proxy.url, "x", "--via", f"{a.url},{b.url}")), values)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A store with 200 chunks, and a view of it."""
    folder = tmp_path_factory.mktemp("many")
    data = np.random.default_rng(1).normal(size=(400, 5000)).astype("f4")
    group = zarr.open_group(str(folder / "store"), mode="w", zarr_format=3)
    group.create_array("x", data=data, chunks=(2, 5000), dimension_names=["time", "place"])
    zarr.consolidate_metadata(str(folder / "store"))
    view = folder / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "batch": {"size": 4},
                                "order": {"shuffle": "none"}}))
    return folder / "store", view, data


@needs_nginx
@pytest.mark.parametrize("end", ["kill", "hang"])
def test_a_cache_that_goes_under_eight_readers(good, batchfs, many, tmp_path, end):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    with FaultProxy(many[0]) as proxy:
        proxy.fault = Fault(latency=0.005)
        with NginxCache(tmp_path / "a", [server_of(proxy)]) as a, NginxCache(
                tmp_path / "b", [server_of(proxy)]) as b:
            one_left = read_by_eight(good, batchfs, proxy, many, tmp_path / "one", [a, b],
                                     lambda: leave(a, end))
            assert one_left["via_requests"] > 0
            none_left = read_by_eight(good, batchfs, proxy, many, tmp_path / "none", [b],
                                      lambda: leave(b, end))
            assert none_left["via_fallbacks"] > 0


def leave(cache, end):
    cache.kill() if end == "kill" else cache.signal(signal.SIGSTOP)


def read_by_eight(good, batchfs, proxy, many, folder, caches, end):
    """Eight readers of a mount while end() happens. Returns the counters of the store."""
    store, view, data = many
    folder.mkdir()
    good("mount", proxy.url, folder, "--view", view, "--memory", "32M", "--via",
         ",".join(c.url for c in caches))
    try:
        def read(reader):
            wrong = 0
            for n in range(100):
                number = (n + 13 * reader) % 100
                if reader == 0 and n == 20:
                    end()
                got = (folder / EPOCH / f"batch-{number:06d}.npy").read_bytes()[4096:]
                wrong += got != data[4 * number:4 * number + 4].tobytes()
            return wrong

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(read, range(8))) == 0
        return json.loads((folder / ".batchfs/status.json").read_text())["store"]
    finally:
        batchfs("umount", "--lazy", folder)


# ---- refusals ----


@pytest.mark.parametrize("url", ["cache:8090", "ftp://cache", "http://cache/path",
                                 "http://me:secret@cache", "http://a,http://a", "unix:cache",
                                 "unix:/" + 110 * "a", ""])
def test_what_is_no_cache_is_wrong_usage(batchfs, proxy, url):
    done = batchfs("cat", proxy.url, "x", "--via", url)
    assert done.returncode == 2, done.stderr
    assert b"secret" not in done.stderr and (b"--via" in done.stderr)


def test_passwords_and_tokens_do_not_travel_in_clear(fails, proxy):
    address = proxy.url.replace("http://", "http://me:secret@")
    line = fails(1, "cat", address, "x", "--via", "http://192.0.2.1:8090")
    assert "in clear" in line and "https" in line and "secret" not in line
    line = fails(1, "cat", "gs://bucket/x", "x", "--via", "http://192.0.2.1:8090",
                 env=os.environ | {"GOOGLE_OAUTH_ACCESS_TOKEN": "secret"})
    assert "--anon" in line and "secret" not in line


def test_credentials_go_to_caches_that_were_named_alone(good, proxy, directory, values):
    address = proxy.url.replace("http://", "http://me:word@")
    with FaultProxy(directory) as cache, FaultProxy(directory) as elsewhere:
        cache.fault = Fault(redirect=lambda path: f"{elsewhere.url}/{path}")
        np.testing.assert_array_equal(load(good("cat", address, "x", "--via", cache.url)), values)
        assert elsewhere.requests == []


def test_caches_with_tls(good, fails, batchfs, proxy, directory, authority, values):
    address = proxy.url.replace("http://", "http://me:word@")
    with FaultProxy(directory, authority[1], authority[2]) as cache:
        trusting = os.environ | {"SSL_CERT_FILE": str(authority[0])}
        np.testing.assert_array_equal(
            load(good("cat", address, "x", "--via", cache.url, env=trusting)), values)
        seen = [headers for _, path, headers in cache.requests if path.startswith("x/")]
        assert seen and all(headers["Host"] == server_of(proxy)
                            and headers["Authorization"].startswith("Basic ") for headers in seen)
        # A cache with an untrusted certificate gets no requests.
        cache.requests.clear()
        np.testing.assert_array_equal(load(good("cat", address, "x", "--via", cache.url)), values)
        assert cache.requests == []
        (check,) = caches_of(batchfs, address, "--via", cache.url, "--timeout", "2")
        assert (check["state"] == "problem" and "certificate" in check["found"]
                and "word" not in str(check))


# ---- doctor ----


def caches_of(batchfs, *arguments):
    done = batchfs("doctor", "--json", *arguments, timeout=120)
    return [check for check in json.loads(done.stdout)["checks"] if check["topic"] == "cache"]


@needs_nginx
def test_doctor_tries_each_cache(batchfs, proxy, cache):
    good_one, gone = caches_of(batchfs, proxy.url, "--via", f"{cache.url},http://127.0.0.1:9",
                               "--timeout", "2")
    assert good_one["state"] == "ok" and cache.url in good_one["found"]
    assert gone["state"] == "problem" and "connecting" in gone["found"] and "--via" in gone["next"]
    assert caches_of(batchfs, proxy.url) == []


@needs_nginx
def test_doctor_says_what_a_cache_does_wrong(batchfs, proxy, directory, cache, tmp_path):
    with FaultProxy(directory) as other:
        (refused,) = caches_of(batchfs, other.url, "--via", cache.url)
        assert refused["state"] == "problem" and server_of(other) in refused["next"]
    (page,) = caches_of(batchfs, proxy.url, "--via",
                        serving(Fault(status=200, body=b"<html>"), directory))
    assert page["state"] == "problem" and "not the store" in page["found"]
    (keeps_nothing,) = caches_of(batchfs, proxy.url, "--via",
                                 serving(Fault(headers={"X-Cache": "MISS"}), directory))
    assert keeps_nothing["state"] == "note" and "does not keep" in keeps_nothing["found"]
    (old,) = caches_of(batchfs, proxy.url, "--via",
                       serving(Fault(headers={"ETag": '"old"'}), directory))
    assert old["state"] == "note" and "older" in old["found"]


def serving(fault, directory):
    """The URL of a cache with this fault, until the tests end."""
    cache = FaultProxy(directory)
    cache.fault = fault
    cache.__enter__()
    return cache.url
