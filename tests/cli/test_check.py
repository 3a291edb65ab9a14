"""batchfs check, on stores made by zarr-python: healthy ones, and every kind of damage."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import zipfile

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
VALUES = np.random.default_rng(5).integers(0, 1000, (40, 30)).astype("i4")


def check(store, *options, exit_code=0):
    """The --json document."""
    done = subprocess.run([PROGRAM, "check", str(store), "--json", *map(str, options)],
                          capture_output=True, timeout=120)
    assert done.returncode == exit_code, (done.returncode, done.stderr.decode(),
                                          done.stdout.decode()[:2000])
    return json.loads(done.stdout)


def text(store, *options):
    return subprocess.run([PROGRAM, "check", str(store), *map(str, options)], capture_output=True,
                          text=True, timeout=120)


def only(found, **expected):
    """The one finding."""
    assert found["problems"] == len(found["findings"]) == 1, found["findings"]
    finding = found["findings"][0]
    assert {name: finding[name] for name in expected} == expected
    return finding


# Names of arrays, and how zarr-python encodes them. A chunk is 10 x 10, 12 of them.
V3 = {
    "raw": {"compressors": None},
    "zstd": {"compressors": [ZstdCodec(checksum=True)]},
    "gzip": {"compressors": [GzipCodec()]},
    "blosc": {"compressors": [BloscCodec(cname="lz4")]},
    "crc32c": {"compressors": [Crc32cCodec()]},
    "blosc_crc32c": {"compressors": [BloscCodec(cname="zstd"), Crc32cCodec()]},
}
V2 = {
    "raw": {"compressors": None},
    "zlib": {"compressors": numcodecs.Zlib()},
    "lz4": {"compressors": numcodecs.LZ4()},
    "bz2": {"compressors": numcodecs.BZ2()},
    "lzma": {"compressors": numcodecs.LZMA()},
    "zstd": {"compressors": numcodecs.Zstd(checksum=True)},
    "crc32": {"compressors": None, "filters": [numcodecs.CRC32()]},
    "adler32": {"compressors": None, "filters": [numcodecs.Adler32()]},
}
CASES = [(3, name) for name in V3] + [(2, name) for name in V2]
# Codecs without a checksum do not reveal a changed byte.
WITHOUT_CHECKSUM = {(3, "raw"), (3, "blosc"), (2, "raw"), (2, "lz4")}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made[format]: a store with the arrays above."""
    stores = {}
    for zarr_format, arrays in ((2, V2), (3, V3)):
        path = tmp_path_factory.mktemp("made") / "s.zarr"
        group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
        for name, options in arrays.items():
            group.create_array(name, shape=VALUES.shape, chunks=(10, 10), dtype="i4",
                               **options)[...] = VALUES
        stores[zarr_format] = path
    return stores


@pytest.fixture
def copy(made, tmp_path):
    def copied(zarr_format):
        shutil.copytree(made[zarr_format], tmp_path / "s.zarr")
        return tmp_path / "s.zarr"
    return copied


def chunk_file(store, zarr_format, name, chunk=(1, 2)):
    return store / name / ("c/%d/%d" % chunk if zarr_format == 3 else "%d.%d" % chunk)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_healthy_store(made, zarr_format):
    found = check(made[zarr_format])
    count = len(V2 if zarr_format == 2 else V3)
    assert (found["problems"], found["findings"], found["notes"],
            found["not_checked"]) == (0, [], [], [])
    assert (found["arrays"], found["chunks"], found["objects"],
            found["missing_chunks"]) == (count, 12 * count, 12 * count, 0)
    assert found["decoded_bytes"] == 12 * count * 400
    done = text(made[zarr_format])
    assert (done.returncode == 0 and done.stderr == ""
            and done.stdout.endswith("no problems found\n"))


@pytest.mark.parametrize("zarr_format, name", CASES)
def test_truncated(copy, zarr_format, name):
    store = copy(zarr_format)
    file = chunk_file(store, zarr_format, name)
    file.write_bytes(file.read_bytes()[:-3])
    only(check(store, exit_code=1), array=name, chunk="1.2", key=str(file.relative_to(store)))


@pytest.mark.parametrize("zarr_format, name", CASES)
def test_a_changed_byte(copy, zarr_format, name):
    store = copy(zarr_format)
    file = chunk_file(store, zarr_format, name)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)
    if (zarr_format, name) in WITHOUT_CHECKSUM:
        # Without a checksum, data that still decodes to the right size counts as valid.
        found = subprocess.run([PROGRAM, "check", store, "--json"], capture_output=True, timeout=60)
        assert found.returncode in (0, 1)
        return
    only(check(store, exit_code=1), array=name, chunk="1.2", what="data")


# Decoders of zlib streams, zarr-python's too, end at the stream's end.
@pytest.mark.parametrize("zarr_format, name",
                         [case for case in CASES if case[1] not in ("zlib", "bz2")])
def test_extended(copy, zarr_format, name):
    store = copy(zarr_format)
    with chunk_file(store, zarr_format, name).open("ab") as file:
        file.write(b"\1\2\3\4\5")
    only(check(store, exit_code=1), array=name, chunk="1.2")


@pytest.mark.parametrize("zarr_format, name", CASES)
def test_empty(copy, zarr_format, name):
    store = copy(zarr_format)
    chunk_file(store, zarr_format, name).write_bytes(b"")
    only(check(store, exit_code=1), array=name, chunk="1.2")


def test_a_raw_chunk_of_another_size_and_a_missing_one(copy):
    store = copy(3)
    chunk_file(store, 3, "raw").write_bytes(bytes(401))
    chunk_file(store, 3, "raw", (0, 0)).unlink()
    found = check(store, exit_code=1)
    finding = only(found, array="raw", what="size")
    assert "401" in finding["why"] and "400" in finding["why"]
    assert (found["missing_chunks"], found["chunks"]) == (1, 12 * len(V3) - 1)


def test_the_text(copy):
    store = copy(3)
    chunk_file(store, 3, "crc32c").write_bytes(bytes(404))
    done = text(store)
    assert done.returncode == 1
    assert "crc32c" in done.stdout and "1.2" in done.stdout and "checksum" in done.stdout
    assert (done.stderr.count("\n") == 1
            and done.stderr.startswith("batchfs: check failed: 1 problem was found"))


def test_metadata_that_is_not_json(copy):
    store = copy(3)
    (store / "gzip/zarr.json").write_text('{"zarr_format": 3, "node_type"')
    found = check(store, exit_code=1)
    only(found, key="gzip/zarr.json", what="metadata")
    assert [entry["name"] for entry in found["not_checked"]] == ["gzip/zarr.json"]
    assert found["arrays"] == len(V3) - 1


def test_an_unsupported_codec_is_not_checked(copy):
    store = copy(2)
    metadata = json.loads((store / "bz2/.zarray").read_text())
    metadata["compressor"] = {"id": "tomorrow"}
    (store / "bz2/.zarray").write_text(json.dumps(metadata))
    found = check(store)
    assert [entry["name"] for entry in found["not_checked"]] == ["bz2"]
    assert "tomorrow" in found["not_checked"][0]["why"]
    assert "bz2" in text(store).stdout


def test_what_is_no_chunk_is_noted(copy):
    store = copy(3)
    (store / "raw/c/1/2.partial").write_bytes(b"x")
    (store / "raw/c/9").mkdir()
    (store / "raw/c/9/0").write_bytes(b"x")
    (store / "raw/c/01").mkdir()
    (store / "raw/c/01/1").write_bytes(b"x")
    (store / "raw/c/1/x").mkdir()
    found = check(store)
    assert sorted(note["key"] for note in found["notes"]) == [
        "raw/c/01/1", "raw/c/1/2.partial", "raw/c/1/x", "raw/c/9/0"]
    assert "outside" in next(note["why"] for note in found["notes"] if note["key"] == "raw/c/9/0")


# ---- shards: 20 x 20 with chunks of 5 x 10, so 8 in each; the last ones reach over the array's edg

@pytest.fixture(params=["end", "start"])
def sharded(request, tmp_path):
    path = tmp_path / "shards.zarr"
    codec = ShardingCodec(chunk_shape=(5, 10), codecs=[BytesCodec(), Crc32cCodec()],
                          index_location=request.param)
    array = zarr.create_array(path, shape=(40, 30), chunks=(20, 20), dtype="i4", serializer=codec,
                              compressors=None, filters=None)
    array[...] = VALUES
    return path, request.param


def index_of(path, location):
    """The entries, and a function that writes changed ones back with the right checksum."""
    data = bytearray(path.read_bytes())
    size = 8 * 16 + 4
    begin = len(data) - size if location == "end" else 0
    entries = np.frombuffer(bytes(data[begin:begin + 128]), "<u8").reshape(8, 2).copy()

    def write():
        index = entries.tobytes()
        checksum = numcodecs.checksum32.CRC32C(location="end").encode(np.frombuffer(index, "u1"))
        data[begin:begin + size] = bytes(memoryview(checksum))
        path.write_bytes(data)
    return entries, write


def test_healthy_shards(sharded):
    found = check(sharded[0])
    assert (found["problems"], found["objects"], found["missing_chunks"]) == (0, 4, 0)
    assert found["chunks"] >= 24 and found["arrays"] == 1


def test_the_end_of_a_shard_is_gone(sharded):
    path, location = sharded
    shard = path / "c/0/1"
    shard.write_bytes(shard.read_bytes()[:-40])
    found = check(path, exit_code=1)
    if location == "end":
        only(found, what="shard index", key="c/0/1", chunk="")
    else:
        assert {f["what"] for f in found["findings"]} == {"shard index"}
        assert {f["key"] for f in found["findings"]} == {"c/0/1"}


def test_a_changed_byte_of_the_index(sharded):
    path, location = sharded
    shard = path / "c/1/0"
    data = bytearray(shard.read_bytes())
    data[-30 if location == "end" else 30] ^= 1
    shard.write_bytes(data)
    found = check(path, exit_code=1)
    assert "checksum" in only(found, what="shard index", key="c/1/0", chunk="")["why"]
    assert found["missing_chunks"] == 0  # unknown


def test_a_changed_byte_of_an_inner_chunk(sharded):
    path, location = sharded
    shard = path / "c/0/0"
    entries, _ = index_of(shard, location)
    data = bytearray(shard.read_bytes())
    data[int(entries[3, 0]) + 7] ^= 1
    shard.write_bytes(data)
    only(check(path, exit_code=1), what="data", chunk="1.1", key="c/0/0")


def test_an_entry_outside_the_shard(sharded):
    path, location = sharded
    entries, write = index_of(path / "c/0/0", location)
    entries[2, 0] = 1 << 40
    write()
    assert "points at" in only(check(path, exit_code=1), what="shard index", chunk="1.0")["why"]


def test_entries_that_overlap(sharded):
    path, location = sharded
    entries, write = index_of(path / "c/0/0", location)
    entries[3] = entries[2]
    write()
    finding = only(check(path, exit_code=1), what="shard index")
    assert finding["chunk"] in ("1.0", "1.1") and "overlap" in finding["why"]


def test_an_entry_over_the_index(sharded):
    path, location = sharded
    shard = path / "c/0/0"
    entries, write = index_of(shard, location)
    entries[5, 0] = shard.stat().st_size - entries[5, 1] - 8 if location == "end" else 8
    write()
    found = check(path, exit_code=1)
    assert "index" in next(f["why"] for f in found["findings"] if f["what"] == "shard index"
                           and f["chunk"] == "2.1")


def test_an_entry_of_a_wrong_size(sharded):
    path, location = sharded
    entries, write = index_of(path / "c/0/0", location)
    entries[0, 1] -= 4
    write()
    only(check(path, exit_code=1), what="size", chunk="0.0")


def test_a_missing_inner_chunk_is_counted(sharded):
    path, location = sharded
    entries, write = index_of(path / "c/0/0", location)
    entries[4] = 2**64 - 1
    write()
    assert check(path)["missing_chunks"] == 1


# ---- with a view ----

def test_a_view_checks_what_it_selects(tmp_path):
    path = tmp_path / "v.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    for name in ("a", "b"):
        array = group.create_array(name, shape=(40, 30), chunks=(10, 10), dtype="f4",
                                   compressors=None)
        array[...] = VALUES
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
    (path / "a/3.0").write_bytes(b"")
    (path / "a/0.0").unlink()
    (path / "b/0.0").write_bytes(b"")
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"variables": ["a"], "window": {"time": 1},
                                "select": {"time": {"from": "#0", "to": "#20"}}}))
    found = check(path, "--view", view)
    assert (found["arrays"], found["chunks"], found["missing_chunks"]) == (1, 5, 1)
    view.write_text(json.dumps({"variables": ["a"], "window": {"time": 1},
                                "select": {"time": ["#35", "#5"], "x": "#2"}}))
    found = check(path, "--view", view, exit_code=1)
    only(found, array="a", chunk="3.0")
    assert (found["chunks"], found["missing_chunks"]) == (1, 1)


def test_a_view_checks_what_its_samples_reach(tmp_path):
    path = tmp_path / "v.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    array = group.create_array("a", shape=(40, 30), chunks=(10, 10), dtype="f4", compressors=None)
    array[...] = VALUES
    array.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
    (path / "a/1.0").write_bytes(b"")
    view = {"window": {"time": 2}, "samples": {
        "where": {"time": [{"from": "#0", "to": "#9"}, {"from": "#19", "to": "#30"}]}}}
    (tmp_path / "view.json").write_text(json.dumps(view))
    found = check(path, "--view", tmp_path / "view.json")
    # windows begin at even positions: 0 to 9 and 20 to 29 are reached
    assert found["chunks"] == 2 * 3
    view["samples"]["where"]["time"].append("#18")
    (tmp_path / "view.json").write_text(json.dumps(view))
    only(check(path, "--view", tmp_path / "view.json", exit_code=1), array="a", chunk="1.0")


# ---- places ----

def test_a_zip(made, tmp_path):
    archive = tmp_path / "s.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in sorted(made[3].rglob("*")):
            if file.is_file():
                data = file.read_bytes()
                out.writestr(str(file.relative_to(made[3])), data)
    assert check(archive)["chunks"] == 12 * len(V3)
    data = bytearray(archive.read_bytes())
    at = data.rindex(made[3].joinpath("raw/c/2/2").read_bytes())
    data[at + 5] ^= 1  # the archive's own checksum reveals it
    archive.write_bytes(data)
    only(check(archive, exit_code=1), array="raw", chunk="2.2")


@pytest.fixture
def web():
    """web(folder, seconds): the address of a server of a folder that cannot list."""
    servers = []

    def start(folder, seconds=0.0):
        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if pathlib.Path(self.translate_path(self.path)).is_dir():
                    return self.send_error(404)
                if "/c/" in self.path:
                    time.sleep(seconds)
                with contextlib.suppress(OSError):
                    super().do_GET()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128
        server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_web_server_that_cannot_list(copy, web):
    store = copy(3)
    zarr.consolidate_metadata(store)
    chunk_file(store, 3, "zstd", (0, 0)).unlink()
    file = chunk_file(store, 3, "crc32c")
    file.write_bytes(bytes(404))
    found = check(web(store), exit_code=1)
    only(found, array="crc32c", chunk="1.2", what="data")
    assert (found["missing_chunks"], found["chunks"]) == (1, 12 * len(V3) - 1)


def test_shards_over_the_web(sharded, web):
    path, location = sharded
    assert check(web(path))["chunks"] >= 24
    entries, write = index_of(path / "c/0/0", location)
    entries[2, 0] = 1 << 40
    write()
    only(check(web(path), exit_code=1), what="shard index", chunk="1.0")


# ---- the cache ----

def test_entries_of_a_cache(copy, web, tmp_path):
    store = copy(3)
    zarr.consolidate_metadata(store)
    address, cache = web(store), tmp_path / "cache"
    for name in ("raw", "zstd"):
        subprocess.run([PROGRAM, "cat", address, name, "--cache-dir", cache], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
    found = check(address, "--cache-dir", cache)
    entries = sorted(path for path in (cache / "batchfs-1").glob("??/*") if path.is_file())
    assert found["cache_entries"] == len(entries) >= 24
    data = bytearray(entries[3].read_bytes())
    data[-1] ^= 1
    entries[3].write_bytes(data)
    entries[7].write_bytes(entries[7].read_bytes()[:100])
    entries[9].write_bytes(entries[8].read_bytes())
    found = check(address, "--cache-dir", cache, exit_code=1)
    assert {(f["what"], f["key"]) for f in found["findings"]} == {
        ("cache entry", str(entries[i])) for i in (3, 7, 9)}
    assert entries[3].read_bytes() == data, "check changes nothing"


def test_no_cache_there(made, tmp_path):
    done = text(made[3], "--cache-dir", tmp_path / "none")
    assert done.returncode == 1 and "no cache" in done.stderr
    assert not (tmp_path / "none").exists()


# ---- much, and its end ----

def test_many_chunks_in_little_memory(tmp_path):
    array = zarr.create_array(tmp_path / "big.zarr", shape=(4000, 64), chunks=(2, 64), dtype="f4",
                              compressors=[BloscCodec()], zarr_format=3)
    array[...] = np.arange(4000 * 64, dtype="f4").reshape(4000, 64)
    found = check(tmp_path / "big.zarr", "--memory", "1M")
    assert (found["chunks"], found["problems"], found["decoded_bytes"]) == (2000, 0, 4000 * 64 * 4)


def test_a_chunk_larger_than_the_memory_is_not_checked(tmp_path):
    zarr.create_array(tmp_path / "big.zarr", shape=(1000, 1000), chunks=(1000, 1000),
                      dtype="f4")[...] = 1
    found = check(tmp_path / "big.zarr", "--memory", "1M")
    assert [entry["name"] for entry in found["not_checked"]] == ["/"] and found["chunks"] == 0


def test_the_list_is_bounded(tmp_path):
    array = zarr.create_array(tmp_path / "bad.zarr", shape=(1500,), chunks=(1,), dtype="i4",
                              compressors=None)
    array[...] = np.arange(1500) + 1
    for file in (tmp_path / "bad.zarr/c").iterdir():
        file.write_bytes(b"x")
    found = check(tmp_path / "bad.zarr", exit_code=1)
    assert (found["problems"], len(found["findings"]),
            found["findings_not_listed"]) == (1500, 1000, 500)
    assert "and 500 more" in text(tmp_path / "bad.zarr").stdout


def test_strings(tmp_path):
    path = tmp_path / "s.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    array = group.create_array("names", shape=(6,), chunks=(2,), dtype=str, compressors=None)
    array[...] = np.array(["a", "bb", "ccc", "d", "e", "f"], dtype=object)
    assert check(path)["chunks"] == 3
    file = path / "names/1"
    file.write_bytes(file.read_bytes()[:-1])
    only(check(path, exit_code=1), array="names", chunk="1", what="data")


def test_ctrl_c(made, web):
    store = web(made[3] / "raw", 0.5)
    process = subprocess.Popen([PROGRAM, "check", store, "--json", "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    if process.returncode == 130:
        pytest.skip("interrupted before the scan began")
    assert process.returncode == 1 and "interrupted after" in error and error.count("\n") == 1
    assert json.loads(out)["interrupted"] is True and json.loads(out)["problems"] == 0


@pytest.mark.parametrize("arguments",
                         [[], ["a", "b"], ["x.zarr", "--depth"], ["x.zarr", "--threads", "0"]])
def test_usage(arguments):
    done = subprocess.run([PROGRAM, "check", *arguments], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
