"""Everything that a shared cache can say in an object's place: the reader gets the store's bytes,
and the counters show it."""

import io
import os

import numpy as np
import pytest
import zarr
from fault_proxy import Fault, FaultProxy
from watching import status

BOUNDARY = b"--b\r\nContent-Range: bytes 0-3/4\r\n\r\nabcd\r\n--b--\r\n"


# Faults of the cache; most answers have the store's version.
LIES = {
    "short, and every header agrees": Fault(shorten=7),
    "empty, and every header agrees": Fault(shorten=10**9),
    "short, until the connection closes": Fault(unsized=True, shorten=7),
    "whole, until the connection closes": Fault(unsized=True),
    "cut off": Fault(cut=7),
    "reset in the body": Fault(cut=7, reset=True),
    "chunked and cut off": Fault(chunked=True, cut=20),
    "a longer Content-Length": Fault(length=99999, closes=True),
    "a shorter Content-Length": Fault(length=5, closes=True),
    "another Content-Range": Fault(shift=1),
    "fewer bytes than Content-Range says": Fault(lie=3),
    "no Content-Range": Fault(lose_range=True),
    "the whole object for a range": Fault(ignore_range=True),
    "garbage": Fault(garbage=True),
    "one byte is another": Fault(corrupt=True),
    "missing": Fault(status=404),
    "gone": Fault(status=410),
    "forbidden": Fault(status=403),
    "an error": Fault(status=500, body=b"broken"),
    "a bad gateway": Fault(status=502),
    "too busy": Fault(status=503, headers={"Retry-After": "100"}),
    "a web page": Fault(status=200, headers={"Content-Type": "text/html"},
                        body=b"<html>log in</html>"),
    "a web page of no type": Fault(status=200, headers={"ETag": '"x"'},
                                   body=b"<html>log in</html>"),
    "gzip, unasked": Fault(encoding=True),
    "another version": Fault(headers={"ETag": '"another"'}, garbage=True),
    "no version": Fault(headers={"ETag": "", "Last-Modified": ""}, garbage=True),
    "nothing": Fault(status=200),
    "no content": Fault(status=204),
    "not modified, unasked": Fault(status=304),
    "parts": Fault(status=206, headers={"Content-Type": "multipart/byteranges; boundary=b"},
                   body=BOUNDARY),
    "a redirect in a circle": Fault(redirect=lambda path: "/" + path),
    "a range beyond the end": Fault(status=416, headers={"Content-Range": "bytes */3"}),
    "headers without end": Fault(headers={"X-Long": "a" * 400000}),
    "no HTTP": Fault(raw=b"SSH-2.0-OpenSSH_9.2\r\n"),
    "silence": Fault(raw=b"", stall=1),
    "a hung up call": Fault(hang_up=True),
}
# Odd, and right: the cache's answer counts.
TRUE = {
    "another Content-Type": Fault(headers={"Content-Type": "text/plain"}),
    "chunked": Fault(chunked=True),
    "a longer range": Fault(extend=3),
    "headers twice": Fault(headers={"content-type": "text/plain", "etag": ""}),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store with compressed chunks and shards; (folder, values)."""
    folder = tmp_path_factory.mktemp("lies") / "s.zarr"
    values = np.random.default_rng(3).normal(size=(24, 40)).astype("f4")
    group = zarr.open_group(folder, mode="w", zarr_format=3)
    group.create_array("x", data=values, chunks=(4, 40), dimension_names=["time", "place"])
    group.create_array("sharded", data=values, chunks=(4, 40), shards=(12, 40),
                       dimension_names=["time", "place"])
    zarr.consolidate_metadata(folder)
    return folder, values


@pytest.fixture
def through(good, batchfs, stored, tmp_path):
    """through(fault): (arrays as a mount reads them through a cache that does so, counters)."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    folder, _ = stored
    directory = tmp_path / "m"
    directory.mkdir()

    def read(fault, *options):
        with FaultProxy(folder) as store, FaultProxy(folder) as cache:
            cache.fault = fault
            good("mount", store.url, directory, "--via", cache.url, *options)
            try:
                arrays = {}
                for name in ("x", "sharded"):
                    # np.load of a file keeps the interpreter's lock, which the servers need to
                    # answer.
                    contents = (directory / "arrays" / name / "values.npy").read_bytes()
                    arrays[name] = np.load(io.BytesIO(contents))
                return arrays, status(directory)["store"]
            finally:
                batchfs("umount", "--lazy", directory)

    return read


@pytest.mark.parametrize("lie", LIES)
def test_the_reader_gets_the_stores_bytes(through, stored, lie):
    arrays, counters = through(LIES[lie])
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, stored[1], err_msg=name)
    if lie != "the whole object for a range":  # which is as good as the range
        assert counters["via_fallbacks"] > 0
    assert counters["via_requests"] > 0


@pytest.mark.parametrize("lie", ["short, and every header agrees", "garbage"])
def test_what_the_disk_keeps_of_a_lie_is_replaced(through, stored, tmp_path, lie):
    """And read from there afterwards."""
    cache = ("--cache-dir", tmp_path / "cache")
    for fault in (LIES[lie], LIES[lie], Fault()):
        arrays, _ = through(fault, *cache)
        for array in arrays.values():
            np.testing.assert_array_equal(array, stored[1])


@pytest.mark.parametrize("way", TRUE)
def test_odd_answers_that_are_right_count(through, stored, way):
    arrays, counters = through(TRUE[way])
    for array in arrays.values():
        np.testing.assert_array_equal(array, stored[1])
    assert counters["via_fallbacks"] == 0 and counters["via_requests"] > 0
