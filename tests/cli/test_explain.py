"""batchfs plan --explain against the chunks that a script finds for the windows of the batch."""

import functools
import http.server
import json
import threading

import numpy as np
import pytest
import zarr
from touched_chunks import rows, stored_at, touched

SHAPE, CHUNKS = (40, 12, 30), (8, 5, 10)
SIZES = (3, 4)
VIEW = {"name": "v", "variables": ["a", "b"],
        "window": {"time": {"size": 3, "stride": 3}, "y": {"size": 4, "stride": 4}},
        "batch": {"size": 5}, "order": {"shuffle": "global", "seed": 5}}
CODECS = {
    "zstd": {"compressors": zarr.codecs.ZstdCodec(level=1)},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="zstd", shuffle="shuffle",
                                                    blocksize=256)},
    "one block": {"compressors": zarr.codecs.BloscCodec(cname="zstd", shuffle="shuffle")},
    "none": {"compressors": None},
    "shards": {"compressors": zarr.codecs.ZstdCodec(level=1), "shards": (16, 5, 30)},
}


def make(path, codec, missing=()):
    group = zarr.create_group(path)
    for seed, name in enumerate("ab"):
        array = group.create_array(name, shape=SHAPE, chunks=CHUNKS, dtype="f4",
                                   dimension_names=["time", "y", "x"], **CODECS[codec])
        values = np.random.default_rng(seed).integers(1, 99, SHAPE)
        for chunk in missing:
            values[tuple(slice(i * c, (i + 1) * c) for i, c in zip(chunk, CHUNKS))] = 0
        array[:] = values
    return path


@pytest.fixture
def write(tmp_path):
    def write_view(**changes):
        path = tmp_path / "view.json"
        path.write_text(json.dumps(VIEW | changes))
        return path

    return write_view


def explain(good, store, view, batch, *more):
    return json.loads(good("plan", store, "--view", view, "--explain", batch, "--json", *more))


@pytest.mark.parametrize("order", ["none", "global", "block"])
@pytest.mark.parametrize("codec", CODECS)
def test_the_chunks_are_those_that_the_windows_touch(good, tmp_path, write, codec, order):
    store = make(tmp_path / "s.zarr", codec, missing=[(0, 0, 1), (2, 1, 2)])
    view = write(order={"shuffle": order, "seed": 5})
    epoch = rows(good, store, view)
    seen = {}  # the first batch that touches a chunk
    for batch in range(1 + epoch[-1, 0]):
        own = epoch[epoch[:, 0] == batch]
        expected = touched(store, VIEW["variables"], SIZES, own[:, 2:].tolist())
        found = explain(good, store, view, batch)
        assert (found["batch"], found["epoch"], found["samples"]) == (batch, 0, len(own))
        assert found["chunks"] == found["chunks_listed"] == len(expected)
        listed = {(chunk["array"], tuple(chunk["chunk"])): chunk for chunk in found["list"]}
        assert {key: (c["needed"]["start"], c["needed"]["shape"])
                for key, c in listed.items()} == expected
        for key, chunk in listed.items():
            stored = stored_at(store, *key)
            is_new = seen.setdefault(key, batch) == batch
            assert (chunk["key"], chunk["offset"], chunk["stored_bytes"]) == (stored or (None,) * 3)
            if codec == "none":
                continue  # a read of each batch, of the part that it needs
            assert chunk["from"] == ("memory" if not is_new else "store" if stored else "missing")
            assert (chunk["how"] == "decoded") == is_new and chunk["decoded_by"] == seen[key]
        read = found["read_in_order"]
        assert (read["whole"] + read["in_part"] + read["missing"] + read["kept"]
                + read["joined"] == len(expected))


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_of_a_batch_that_is_read_alone(good, tmp_path, write, codec):
    store = make(tmp_path / "s.zarr", codec)
    view, epoch = write(), rows(good, tmp_path / "s.zarr", write())
    own = epoch[epoch[:, 0] == 1]
    boxes = touched(store, VIEW["variables"], SIZES, own[:, 2:].tolist())
    found = explain(good, store, view, 1)
    alone = found["read_alone"]
    chunk_bytes, strides = 4 * int(np.prod(CHUNKS)), (4 * 5 * 10, 4 * 10, 4)
    # Bytes from the first needed element of a chunk to the last one.
    runs = [sum((n - 1) * s for n, s in zip(shape, strides)) + 4 for _, shape in boxes.values()]
    if codec in ("zstd", "shards", "one block"):
        assert alone["decoded_bytes"] == chunk_bytes * len(boxes)
        assert alone["fetched_bytes"] == sum(stored_at(store, *key)[2] for key in boxes)
        assert (alone["whole"], alone["in_part"]) == (len(boxes), 0)
        reasons = {chunk["why"] for chunk in found["list"] if chunk["from"] == "store"}
        assert reasons == ({"parts_cost"} if codec == "one block" else {"only_whole"})
    elif codec == "none":
        assert alone["fetched_bytes"] == alone["decoded_bytes"] == sum(runs)
    else:
        parts = sum(run <= chunk_bytes // 2 for run in runs)
        assert (alone["in_part"], alone["whole"]) == (parts, len(boxes) - parts) and parts > 0
        assert alone["decoded_bytes"] == sum(run if run <= chunk_bytes // 2 else chunk_bytes
                                             for run in runs)
        for chunk in found["list"]:
            if chunk["from"] == "store" and chunk["in_part"]:
                assert (chunk["why"] == "part_is_less" and chunk["cost"]["parts"]
                        + chunk["cost"]["later"] < chunk["cost"]["limit"])
    assert alone["fetched_bytes_are"] == ("estimate" if codec == "blosc" else "exact")


def test_with_little_memory_chunks_are_decoded_again(good, tmp_path, write):
    store, view = make(tmp_path / "s.zarr", "zstd"), write()
    batches = 1 + int(rows(good, store, view)[-1, 0])
    decoded = {memory: sum(explain(good, store, view, b, "--memory",
                                   memory)["read_in_order"]["whole"] for b in range(batches))
               for memory in ("30K", "1G")}
    assert decoded["1G"] == 2 * 5 * 3 * 3 < decoded["30K"]


def test_where_all_chunks_stay_later_epochs_read_nothing(good, tmp_path, write):
    store, view = make(tmp_path / "s.zarr", "zstd"), write(epochs=2)
    found = explain(good, store, view, 0, "--epoch", 1)
    assert found["read_in_order"]["kept"] == found["chunks"] > 0 and found["epoch"] == 1
    assert "decoded by an earlier epoch, stays in memory" in good(
        "plan", store, "--view", view, "--explain", 0, "--epoch", 1).decode()


def test_long_lists_are_cut_and_counted(good, tmp_path):
    store = tmp_path / "s.zarr"
    zarr.create_group(store).create_array("a", shape=(2, 5000), chunks=(1, 1), dtype="f4",
                                          dimension_names=["time", "x"])
    (tmp_path / "view.json").write_text(json.dumps({"window": {"time": 1}, "batch": 1}))
    found = explain(good, store, tmp_path / "view.json", 1)
    assert (found["chunks"], found["chunks_listed"], len(found["list"])) == (5000, 4096, 4096)
    text = good("plan", store, "--view", tmp_path / "view.json", "--explain", 1).decode()
    assert len(text.splitlines()) < 60 and "and 4960 more; --json lists up to 4096" in text


def test_the_text_says_why(good, tmp_path, write):
    view = write()
    texts = {codec: good("plan", make(tmp_path / codec, codec), "--view", view, "--explain",
                         0).decode() for codec in CODECS}
    for codec, words in {"zstd": "whole: its codecs decode nothing less",
                         "shards": "whole: its codecs decode nothing less",
                         "none": "part: uncompressed, only needed bytes are read"}.items():
        assert (texts[codec].startswith("Batch 0 of epoch 0 of view v: 5 samples, ")
                and words in texts[codec])
    assert "of the whole" in texts["blosc"]


@pytest.fixture
def served(tmp_path):
    """The address of a web server of the folder."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Handler, directory=tmp_path))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("codec", ["zstd", "shards"])
def test_chunks_that_the_disk_cache_holds(good, tmp_path, write, served, codec):
    make(tmp_path / "s.zarr", codec)
    view, url = write(), f"{served}/s.zarr"
    bare = explain(good, url, view, 1)
    sources = {chunk["from"] for chunk in bare["list"] if chunk["how"] == "decoded"}
    assert sources == {"store"} and bare["read_in_order"]["on_disk"] == 0
    good("warm", url, "--view", view, "--cache-dir", tmp_path / "cache")
    cached = explain(good, url, view, 1, "--cache-dir", tmp_path / "cache")
    decoded = [chunk for chunk in cached["list"] if chunk["how"] == "decoded"]
    assert {chunk["from"] for chunk in decoded} == {"disk cache"}
    assert cached["read_in_order"]["on_disk"] == len(decoded) > 0


def test_wrong_use(good, fails, tmp_path, write):
    store, view = make(tmp_path / "s.zarr", "zstd"), write()
    batches = 1 + int(rows(good, store, view)[-1, 0])
    assert f"there is no batch {batches}: an epoch has {batches}, numbered from 0" in fails(
        1, "plan", store, "--view", view, "--explain", batches)
    assert "--epoch goes with --windows or --explain" in fails(
        2, "plan", store, "--view", view, "--epoch", 1)
    assert "--world" in fails(2, "plan", store, "--view", view, "--explain", 0, "--world", 2)
