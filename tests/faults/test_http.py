"""Every fault of a server: the right bytes arrive, or the right error does; never fill values."""

import errno
import io
import resource

import numpy as np
import pytest
import zarr

from fault_proxy import QUICK, Fault, FaultProxy, is_chunk
from watching import eventually, status

PASSING = {
    "nothing": Fault(),
    "latency": Fault(latency=0.05),
    "429": Fault(status=429, times=1),
    "500": Fault(status=500, times=2),
    "503 with Retry-After": Fault(status=503, headers={"Retry-After": "1"}, times=1),
    "a reset": Fault(cut=10, reset=True, times=1),
    "a short body": Fault(cut=10, times=2),
    "a stall": Fault(stall=10, times=1),
    "a wrong range": Fault(shift=3, times=1, applies=is_chunk),
    "ranges of whole blocks": Fault(block=64),
    "ranges of whole blocks, chunked": Fault(block=1000, chunked=True),
    "longer ranges": Fault(extend=100),
    "no ranges": Fault(ignore_range=True),
    "no ranges from the end, 416": Fault(no_suffix=416),
    "no ranges from the end, 400": Fault(no_suffix=400),
    "no ranges from the end, 501": Fault(no_suffix=501),
    "ranges without Content-Range": Fault(lose_range=True),
    "ranges without the object's size": Fault(lose_size=True),
    "no size and no ranges from the end": Fault(lose_size=True, no_suffix=416),
    "metadata compressed unasked": Fault(encoding=True, applies=lambda path: not is_chunk(path)),
}

LASTING = {
    "429": (Fault(status=429), "fewer requests"),
    "500": (Fault(status=500), "tried 3 times"),
    "503 with a long Retry-After": (Fault(status=503, headers={"Retry-After": "3600"}), "3600 s"),
    "resets": (Fault(cut=10, reset=True), "connection"),
    "short bodies": (Fault(cut=10), "connection"),
    "a stall": (Fault(stall=10), "stalled"),
    "no answer": (Fault(latency=20), "does not answer"),
    "a drip": (Fault(drip=0.05), "stalled"),
    "denied": (Fault(status=403), "denies access"),
    "a web page": (Fault(status=200, headers={"Content-Type": "text/html"},
                         body=b"<html>Log in</html>"), "web page"),
    "a body that is none": (Fault(corrupt=True), "x/"),
    "a bad request": (Fault(status=400), "400"),
    "headers without end": (Fault(headers={"X-Long": "a" * 400000}), "headers are too long"),
}


def cat(output):
    return np.load(io.BytesIO(output))


@pytest.mark.parametrize("name", PASSING)
def test_cat_gives_the_right_bytes(good, proxy, values, name):
    proxy.set(PASSING[name])
    np.testing.assert_array_equal(cat(good("cat", proxy.url, "x", *QUICK)), values)


@pytest.mark.parametrize("name", LASTING)
def test_cat_says_what_is_wrong(fails, proxy, name):
    fault, words = LASTING[name]
    fault.applies = is_chunk
    proxy.set(fault)
    line = fails(1, "cat", proxy.url, "x", *QUICK)
    assert words in line


GZIP, ZIP, PAGE = (b"\x1f\x8b\x08" + bytes(40), b"PK\3\4" + bytes(40),
                   b"<!doctype html><title>Log in</title>")


@pytest.mark.parametrize("body, words",
                         [(GZIP, "gzip data"), (ZIP, "zip archive"), (PAGE, "web page")])
def test_what_came_in_an_objects_place_is_named(request, good, fails, proxy, values, body, words):
    """The server's headers do not reveal it."""
    proxy.set(Fault(status=200, body=body,
                    applies=lambda path: path.endswith((".zmetadata", "zarr.json"))))
    if body == GZIP and "v2" in request.node.name:
        # Damaged consolidated metadata is ignored: the documents of the arrays are read.
        np.testing.assert_array_equal(cat(good("cat", proxy.url, "x", *QUICK)), values)
    else:
        line = fails(1, "cat", proxy.url, "x", *QUICK)
        assert words in line or (body == GZIP and "gzip" in line), line
    if "sharded" not in request.node.name:
        proxy.set(Fault(status=200, body=body, applies=is_chunk))
        assert words in fails(1, "cat", proxy.url, "x", *QUICK)


def test_an_index_that_is_not_one_is_named(request, fails, proxy):
    if "sharded" not in request.node.name:
        pytest.skip("there are no shards")
    proxy.set(Fault(status=200, body=b"short", applies=is_chunk))
    line = fails(1, "cat", proxy.url, "x", *QUICK)
    assert "5 bytes came for the shard's index" in line and "18446744073709551615" not in line


@pytest.mark.parametrize("limit", [16, 24])
def test_few_descriptors_slow_reads_down(good, tmp_path, limit):
    """Connections use up all descriptors."""
    values = np.arange(2560, dtype="f4").reshape(256, 10)
    zarr.create_array(tmp_path / "many", data=values, chunks=(1, 10))

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    with FaultProxy(tmp_path / "many") as many:
        many.set(Fault(latency=0.02))
        np.testing.assert_array_equal(cat(good("cat", many.url, "/", preexec_fn=few)), values)
        assert many.most_in_flight > 1


def test_wrong_ranges_are_no_bytes(request, fails, proxy):
    if "sharded" not in request.node.name:
        pytest.skip("chunks are read as a whole")
    proxy.set(Fault(shift=3, applies=is_chunk))
    assert "asked for" in fails(1, "cat", proxy.url, "x", *QUICK)


def test_redirects_are_followed_without_passwords(good, proxy, directory, values):
    with FaultProxy(directory) as elsewhere:
        proxy.set(Fault(redirect=lambda path: f"{elsewhere.other_url}/{path}", applies=is_chunk))
        url = proxy.url.replace("http://", "http://me:secret@")
        np.testing.assert_array_equal(cat(good("cat", url, "x", *QUICK)), values)
        assert elsewhere.requests and all(is_chunk(path) for _, path, _ in elsewhere.requests)
        assert all("Authorization" not in headers for _, _, headers in elsewhere.requests)
        assert all("Authorization" in headers for _, _, headers in proxy.requests)


def test_redirects_in_a_circle_come_to_an_end(fails, proxy):
    proxy.set(Fault(redirect=lambda path: f"{proxy.url}/{path}", applies=is_chunk))
    assert "redirects in a circle" in fails(1, "cat", proxy.url, "x", *QUICK)
    assert max(proxy.seen.values()) < 20
    proxy.set(Fault(redirect=lambda path: "ftp://elsewhere/x", applies=is_chunk))
    assert "not followed" in fails(1, "cat", proxy.url, "x", *QUICK)


def test_missing_chunks_are_fill_values(good, proxy, values):
    first = []

    def is_first_chunk(path):
        if is_chunk(path) and not first:
            first.append(path)
        return path in first

    proxy.set(Fault(status=404, applies=is_first_chunk))
    got = cat(good("cat", proxy.url, "x", "--decode", "raw", *QUICK))
    lost = np.all(got == -1, axis=1)
    assert lost.any() and not lost.all()
    np.testing.assert_array_equal(got[~lost], values[~lost])


def test_what_403_means_can_be_said(request, good, fails, proxy, mounted, values):
    """--missing decides whether it is an error or a missing object, even for the storage's own
    message."""
    names = {"x/5.0", "x/c/1/0" if "sharded" in request.node.name else "x/c/5/0"}
    fault = Fault(status=403, body=b"<Error><Code>AccessDenied</Code></Error>",
                  applies=lambda path: path in names or path.startswith(".batchfs-"))
    proxy.set(fault)
    missing = np.all(cat(good("cat", proxy.url, "x", "--decode", "raw", *QUICK)) == -1, axis=1)
    assert missing.any() and not missing.all()
    line = fails(1, "cat", proxy.url, "x", "--missing", "404", *QUICK)
    assert "denies access" in line and "x/" in line
    fault.body = b"no"
    assert "denies access" in fails(1, "cat", proxy.url, "x", *QUICK)
    told = cat(good("cat", proxy.url, "x", "--decode", "raw", "--missing", "403", *QUICK))
    np.testing.assert_array_equal(np.all(told == -1, axis=1), missing)
    np.testing.assert_array_equal(told[~missing], values[~missing])
    assert "--missing" in fails(2, "cat", proxy.url, "x", "--missing", "401")
    directory = mounted(proxy.url, "-o", "missing=403")
    # Not np.load: it would read under the lock that the proxy's threads need.
    np.testing.assert_array_equal(cat((directory / "arrays" / "x" / "values.npy").read_bytes()),
                                  told)


def test_batch(good, proxy, values, view_file):
    proxy.set(Fault(status=503, times=1))
    got = cat(good("batch", proxy.url, "--view", view_file, "--batch", 2, *QUICK))
    np.testing.assert_array_equal(got.reshape(6, 40), values[12:18])


@pytest.mark.parametrize("url, words", [
    ("http://no-such-host.invalid/store", "host name"),
    ("http://127.0.0.1:9/store", "connecting"),
    ("http:///store", "host"),
])
def test_servers_that_are_not_there(fails, url, words):
    assert words in fails(1, "inspect", url, *QUICK)


def test_what_is_no_store(fails, proxy):
    assert "not a Zarr store" in fails(1, "inspect", proxy.url + "/elsewhere")
    proxy.set(Fault(status=403))
    assert "denies access" in fails(1, "inspect", proxy.url, *QUICK)
    proxy.set(Fault(status=200, headers={"Content-Type": "text/html"},
                    body=b"<!DOCTYPE html><p>hello"))
    assert "web page" in fails(1, "inspect", proxy.url, *QUICK)
    proxy.set(Fault(status=500))
    assert "tried 3 times" in fails(1, "inspect", proxy.url, *QUICK)


def test_passwords_are_sent_and_not_shown(fails, good, proxy, values):
    url = proxy.url.replace("http://", "http://me:secret@") + "?sig=hidden"
    np.testing.assert_array_equal(cat(good("cat", url, "x")), values)
    assert all(headers.get("Authorization") == "Basic bWU6c2VjcmV0"
               for _, _, headers in proxy.requests)
    proxy.set(Fault(status=500))
    line = fails(1, "cat", url, "x", *QUICK)
    assert "secret" not in line and "hidden" not in line


# ---- mounts ----

def idle(directory):
    """The store's counters once nothing is in flight any more."""

    def nothing_in_flight():
        store = status(directory)["store"]
        return store if store["requests_in_flight"] == store["requests_waiting"] == 0 else None

    store = eventually(nothing_in_flight)
    assert store, f"requests stay in flight: {status(directory)['store']}"
    return store


def holds_nothing(directory):
    """All memory is free once all failed requests have ended."""
    return eventually(lambda: status(directory)["memory_used"] == 0)


def batch(directory, number):
    return directory / "views" / "v" / "epoch-0000" / f"batch-{number:06}.npy"


def test_a_mount_gives_the_right_batches(proxy, mounted, values):
    directory = mounted(proxy.url)
    proxy.set(Fault(status=503, times=1))
    for number in range(4):
        got = np.load(batch(directory, number)).reshape(6, 40)
        np.testing.assert_array_equal(got, values[6 * number:6 * number + 6])
    store = idle(directory)
    assert store["retries"] > 0 and store["failures"] == 0
    assert store["bytes_received"] >= values.nbytes // 2


@pytest.mark.says("retry", "error-no-fill")
@pytest.mark.parametrize("name", LASTING)
def test_a_mount_survives_a_fault(proxy, mounted, values, name):
    directory = mounted(proxy.url)
    fault = LASTING[name][0]
    fault.applies = is_chunk
    proxy.set(fault)
    with pytest.raises(OSError) as failure:
        batch(directory, 1).read_bytes()
    assert failure.value.errno in (errno.EIO, errno.ETIMEDOUT, errno.EACCES)
    assert "x/" in (directory / ".batchfs" / "log").read_text()
    assert holds_nothing(directory)
    proxy.set(Fault())
    np.testing.assert_array_equal(np.load(batch(directory, 1)).reshape(6, 40), values[6:12])
    idle(directory)
    assert status(directory)["memory_used"] <= status(directory)["memory_budget"]


@pytest.mark.says("store-stale")
def test_a_changed_object_is_stale(request, proxy, mounted):
    if "sharded" not in request.node.name:
        pytest.skip("chunks are read once")
    directory = mounted(proxy.url)
    proxy.set(Fault(new_etag=True, applies=is_chunk))
    with pytest.raises(OSError) as failure:
        batch(directory, 0).read_bytes()
    assert failure.value.errno == errno.ESTALE


def test_umount_does_not_wait_for_the_server(proxy, mounted, good):
    directory = mounted(proxy.url, "--timeout", "600")
    proxy.set(Fault(latency=30, applies=is_chunk))
    (directory / "views" / "v" / "schema.json").read_text()
    good("umount", directory, timeout=20)
