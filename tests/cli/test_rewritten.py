"""A store that is rewritten with the same metadata, between the processes of a run or while one
reads: never a mixture."""

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
import zipfile

import numpy as np
import pytest
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
STEPS = 24
CHANGED = "the store has changed since the run began: objects of "
VIEW = {"variables": ["t", "u"], "window": {"time": 1}, "batch": {"size": 4},
        "order": {"shuffle": "none"}}


def run(*words, ok=True, **options):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
                          **options)
    assert (done.returncode == 0) == ok, (done.returncode, done.stderr, done.stdout[-2000:])
    return done.stdout if ok else done.stderr


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


def write_store(path):
    """Chunks of one step, without compression: other values have the same size."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    for name, first in (("t", 1), ("u", 1000)):
        array = group.create_array(name, shape=(STEPS, 3, 4), chunks=(1, 3, 4), dtype="f4",
                                   compressors=None, fill_value=0.0)
        array[:] = first + np.arange(STEPS * 12, dtype="f4").reshape(STEPS, 3, 4)
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "y", "x"]
    time = group.create_array("time", shape=(STEPS,), chunks=(STEPS,), dtype="i8", compressors=None)
    time[:] = np.arange(STEPS)
    time.attrs["_ARRAY_DIMENSIONS"] = ["time"]
    zarr.consolidate_metadata(path, zarr_format=2)


@pytest.fixture
def place(tmp_path):
    write_store(tmp_path / "s.zarr")
    (tmp_path / "view.json").write_text(json.dumps(VIEW))
    return tmp_path


def chunks(store, array="t"):
    return sorted(path for path in (store / array).iterdir() if not path.name.startswith("."))


def other_bytes(path):
    return (np.frombuffer(path.read_bytes(), "f4") + 0.5).tobytes()


def in_place(path):
    path.write_bytes(other_bytes(path))


def renamed_over(path):
    (path.parent / "new").write_bytes(other_bytes(path))
    (path.parent / "new").rename(path)


def with_times_restored(path):
    """The state after `cp -p` and rsync: the size and the modification time are unchanged."""
    before = path.stat()
    in_place(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def renamed_with_times(path):
    before = path.stat()
    new = path.parent / "new"
    new.write_bytes(other_bytes(path))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(path)


def removed(path):
    path.unlink()


WAYS = [in_place, renamed_over, with_times_restored, renamed_with_times, removed]


def rewrite(store, way=in_place, array="t"):
    for path in chunks(store, array):
        way(path)


def command(name, source, view, out):
    """The words of a command that continues, or merges, what is in `out`."""
    if name == "rechunk":
        return ["rechunk", source, "--chunks", "time=3", "-o", out]
    if name.startswith("export"):
        return ["export", source, "--view", view, "--to", name.split()[1], "--shard-size", "300",
                "-o", out]
    if name == "check":
        return ["check", source, "--out", out]
    return [name, source, "--view", view, "--out", out]


LOCAL = ["rechunk", "export zarr", "export npz", "export webdataset", "export mds", "statistics",
         "check"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOCAL)
def test_tasks_that_see_two_versions_are_refused(place, name, way):
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 2)
    before = contents(place / "out")
    rewrite(place / "s.zarr", way)
    for task in (0, 1):  # one is done
        said = run(*words, "--task", task, "--tasks", 2, ok=False)
        assert CHANGED + "'t' are of another version" in said
        assert "remove the output to begin anew, or name a new place" in said
    assert contents(place / "out") == before


@pytest.mark.parametrize("name", LOCAL)
def test_tasks_that_see_one_version_finish(place, name):
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    for task in range(3):
        run(*words, "--task", task, "--tasks", 3)
        # of a folder: it does not depend on the objects
        os.utime(place / "s.zarr" / "t", ns=(1, 1))
    if name in ("statistics", "check"):
        view = () if name == "check" else ("--view", place / "view.json")
        merged = run(name, "--merge", place / "out", "--json")
        assert merged == run(name, place / "s.zarr", *view, "--merge", place / "out", "--json")
        assert merged == run(name, place / "s.zarr", *view, "--json")
    else:
        run(*words[:-1], place / "alone")
        names_of_runs = (".batchfs.json",)
        assert {key: value for key, value in contents(place / "out").items()
                if key not in names_of_runs} == {key: value
                                                 for key, value in contents(place / "alone").items()
                                                 if key not in names_of_runs}


@pytest.mark.parametrize("name", ["statistics", "check"])
def test_parts_of_two_versions_are_not_merged(place, name):
    """Also without the store."""
    for task, out in ((0, place / "a"), (1, place / "b")):
        run(*command(name, place / "s.zarr", place / "view.json", out), "--task", task, "--tasks",
            2)
        rewrite(place / "s.zarr", array="u")
    shutil.copy(place / "b" / "part-000001", place / "a")
    assert CHANGED + "'u'" in run(name, "--merge", place / "a", ok=False)


@pytest.mark.parametrize("name", ["statistics", "check"])
def test_the_store_of_a_merge_is_the_one_that_was_read(place, name):
    for task in range(2):
        run(*command(name, place / "s.zarr", place / "view.json", place / "out"), "--task", task,
            "--tasks", 2)
    rewrite(place / "s.zarr")
    view = () if name == "check" else ("--view", place / "view.json")
    assert CHANGED + "'t'" in run(name, place / "s.zarr", *view, "--merge", place / "out", ok=False)


@pytest.mark.parametrize("name", ["rechunk", "export npz"])
def test_a_finished_output_is_not_taken_for_one_of_the_new_version(place, name):
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    run(*words)
    before = contents(place / "out")
    run(*words)  # finished before
    rewrite(place / "s.zarr")
    assert CHANGED + "'t'" in run(*words, ok=False)
    assert contents(place / "out") == before


@pytest.mark.parametrize("name", ["export npz", "statistics"])
def test_only_what_is_read_counts(place, name):
    (place / "view.json").write_text(json.dumps({**VIEW, "variables": ["u"],
                                                 "select": {"time": {"from": "#6", "to": "#17"}}}))
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 2)
    rewrite(place / "s.zarr", array="t")
    in_place(place / "s.zarr" / "u" / "5.0.0")
    run(*words, "--task", 1, "--tasks", 2)
    shutil.rmtree(place / "out")
    run(*words, "--task", 0, "--tasks", 2)
    in_place(place / "s.zarr" / "u" / "6.0.0")
    assert CHANGED + "'u'" in run(*words, "--task", 1, "--tasks", 2, ok=False)


@pytest.mark.parametrize("name", LOCAL)
def test_a_chunk_that_appears_is_a_change(place, name):
    late = place / "s.zarr" / "t" / "20.0.0"
    data = late.read_bytes()
    late.unlink()
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 2)
    late.write_bytes(data)
    assert CHANGED + "'t'" in run(*words, "--task", 1, "--tasks", 2, ok=False)


@pytest.mark.parametrize("name", ["export npz", "statistics"])
def test_a_coordinate_that_is_rewritten_is_a_change(place, name):
    words = command(name, place / "s.zarr", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 2)
    path = place / "s.zarr" / "time" / "0"
    path.write_bytes((np.frombuffer(path.read_bytes(), "i8")[::-1]).tobytes())
    assert CHANGED + "'time'" in run(*words, "--task", 1, "--tasks", 2, ok=False)


# Other kinds of stores.


@pytest.mark.parametrize("name", LOCAL)
def test_an_archive(place, name):
    def pack():
        with zipfile.ZipFile(place / "new.zip", "w") as archive:
            for path in sorted((place / "s.zarr").rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(place / "s.zarr"))
        (place / "new.zip").rename(place / "s.zip")

    pack()
    words = command(name, place / "s.zip", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 3)
    run(*words, "--task", 1, "--tasks", 3)
    rewrite(place / "s.zarr")
    pack()
    assert CHANGED in run(*words, "--task", 2, "--tasks", 3, ok=False)


@pytest.mark.parametrize("name", LOCAL)
def test_files_that_references_name(place, name):
    (place / "refs").mkdir()
    references = {}
    with open(place / "refs" / "data.bin", "wb") as data:
        for path in sorted((place / "s.zarr").rglob("*")):
            key = str(path.relative_to(place / "s.zarr"))
            if path.is_file() and path.name.startswith("."):
                references[key] = path.read_text()
            elif path.is_file():
                references[key] = ["data.bin", data.tell(), path.stat().st_size]
                data.write(path.read_bytes())
    (place / "refs" / "set.json").write_text(json.dumps({"version": 1, "refs": references}))
    words = command(name, place / "refs" / "set.json", place / "view.json", place / "out")
    run(*words, "--task", 0, "--tasks", 3)
    run(*words, "--task", 1, "--tasks", 3)
    with_times_restored(place / "refs" / "data.bin")
    assert CHANGED in run(*words, "--task", 2, "--tasks", 3, ok=False)


def test_a_further_store(place):
    write_store(place / "more.zarr")
    view = {**VIEW, "variables": ["t", "more:u"], "sources": {"more": {"store": "more"}}}
    (place / "view.json").write_text(json.dumps(view))
    words = [*command("export npz", place / "s.zarr", place / "view.json", place / "out"),
             "--store", f"more={place / 'more.zarr'}"]
    run(*words, "--task", 0, "--tasks", 3)
    run(*words, "--task", 1, "--tasks", 3)
    rewrite(place / "more.zarr", array="u")
    assert CHANGED + "'u'" in run(*words, "--task", 2, "--tasks", 3, ok=False)


# Web servers, which can be held while a command reads.


class Files(http.server.SimpleHTTPRequestHandler):
    """Files with ETags and ranges. Once `server.hold` is set, answers with whole chunks wait for
    `server.release`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = pathlib.Path(self.translate_path(self.path))
        server = self.server
        is_chunk = path.name[:1].isdigit() and path.parent.name in ("t", "u")
        wanted = self.headers.get("Range")
        if is_chunk and wanted is None:
            with server.lock:
                server.chunks += 1
                holds = server.hold is not None and server.chunks > server.hold
            if holds:
                server.held.set()
                server.release.wait(60)
        if not path.is_file():
            return self.answer(404, b"")
        data, status = path.read_bytes(), path.stat()
        tag = f'"{status.st_ino:x}-{status.st_ctime_ns:x}-{len(data)}"'
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, b"", tag)
        if wanted is None:
            return self.answer(200, data, tag)
        first, last = wanted.removeprefix("bytes=").split("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        self.answer(206, data[begin:end], tag, f"bytes {begin}-{end - 1}/{len(data)}")

    def answer(self, status, body, tag=None, content_range=None):
        self.send_response(status)
        for key, value in (("ETag", tag), ("Content-Range", content_range),
                           ("Content-Length", len(body))):
            if value is not None:
                self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder, hold=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Files, directory=str(folder)))
    server.lock, server.chunks, server.hold = threading.Lock(), 0, hold
    server.held, server.release = threading.Event(), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}/s.zarr"
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()


REMOTE = ["rechunk", "export npz", "statistics", "check", "warm"]


def options_of(name, place):
    return ("--cache-dir", place / "cache") if name == "warm" else ()


@pytest.mark.parametrize("name", REMOTE)
def test_tasks_of_a_web_server(place, name):
    with served(place) as server:
        words = [*command(name, server.url, place / "view.json", place / "out"),
                 *options_of(name, place)]
        run(*words, "--task", 0, "--tasks", 3)
        run(*words, "--task", 1, "--tasks", 3)
        rewrite(place / "s.zarr", with_times_restored)
        assert CHANGED + "'t'" in run(*words, "--task", 2, "--tasks", 3, ok=False)


@pytest.mark.parametrize("name", REMOTE)
def test_a_change_while_one_process_reads(place, name):
    with served(place, hold=5) as server:
        out = () if name in ("rechunk", "export npz") else ("--task", "0", "--tasks", "1")
        words = [*command(name, server.url, place / "view.json", place / "out"),
                 *options_of(name, place), *out]
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        assert server.held.wait(60)
        rewrite(place / "s.zarr")
        rewrite(place / "s.zarr", array="u")
        server.release.set()
        said, _ = process.communicate(timeout=60)
        if name == "check":  # reports the change as a finding
            assert process.returncode == 0, said
            merged = subprocess.run([PROGRAM, "check", "--merge", str(place / "out"), "--json"],
                                    capture_output=True, timeout=60)
            said = " ".join({finding["why"] for finding in json.loads(merged.stdout)["findings"]})
        else:
            assert process.returncode != 0
            assert not (place / "out" / "zarr.json").exists() and not list((place / "out").glob(
                "part-*"))
        assert "has changed since it was first read" in said


@pytest.mark.parametrize("name", ["rechunk", "export npz", "statistics"])
def test_a_chunk_that_appears_while_one_process_reads(place, name):
    late = place / "s.zarr" / "u" / "23.0.0"
    data = late.read_bytes()
    late.unlink()
    with served(place, hold=2) as server:
        words = command(name, server.url, place / "view.json", place / "out")
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        assert server.held.wait(60)
        late.write_bytes(data)
        server.release.set()
        said, _ = process.communicate(timeout=60)
    assert process.returncode != 0 and "objects of 'u' are of another version" in said, said
    assert not (place / "out" / "zarr.json").exists() and not list((place / "out").glob("part-*"))


@pytest.mark.parametrize("changes", [False, True])
def test_an_interrupted_run(place, changes):
    """It continues to the bytes of an uninterrupted one, or is refused."""
    with served(place, hold=10) as server:
        words = command("export npz", server.url, place / "view.json", place / "out")
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        assert server.held.wait(60)
        process.send_signal(signal.SIGINT)
        server.release.set()
        said, _ = process.communicate(timeout=60)
        assert "run the same command again: it continues" in said
        before = contents(place / "out")
        if changes:
            rewrite(place / "s.zarr", renamed_with_times)
            assert CHANGED + "'t'" in run(*words, ok=False)
            assert contents(place / "out") == before
        else:
            run(*words)
            run(*words[:-1], place / "alone")
            assert contents(place / "out") == contents(place / "alone")


@pytest.mark.parametrize("remote", [False, True])
def test_kept_samples_are_of_the_version_that_is_read(place, remote):
    """Which windows have missing values is kept on disk."""
    view = {**VIEW, "variables": ["t"], "missing": {"nan": "skip"}, "batch": {"size": 1}}
    (place / "view.json").write_text(json.dumps(view))
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "kept")}
    paths = chunks(place / "s.zarr")

    def blank(path):
        status, values = path.stat(), np.frombuffer(path.read_bytes(), "f4").copy()
        values[:] = np.nan
        path.write_bytes(values.tobytes())
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    with served(place) as server:
        source = server.url if remote else place / "s.zarr"
        for number in (2, 3):
            blank(paths[number])
            out = place / f"out-{number}"
            run("export", source, "--view", place / "view.json", "--to", "npz", "-o", out,
                env=environment)
            batches = [np.load(path)["t"] for path in sorted(out.glob("batch-*.npz"))]
            assert len(batches) == STEPS - (number - 1)
            assert not np.isnan(np.concatenate(batches)).any()
    assert list((place / "kept").rglob("*.index"))


# The output lies within the input.


@pytest.mark.parametrize("words", [
    ["rechunk", "STORE", "-o", "IN"],
    ["rechunk", "STORE", "-o", "OUT", "--temporary", "IN"],
    ["export", "STORE", "--view", "VIEW", "--to", "npz", "-o", "IN"],
    ["export", "OTHER", "--store", "x=STORE", "--view", "VIEW", "--to", "npz", "-o", "IN"],
    ["statistics", "STORE", "--view", "VIEW", "--out", "IN"],
    ["statistics", "STORE", "--view", "VIEW", "-o", "IN"],
    ["check", "STORE", "--out", "IN"],
    ["show", "STORE", "-o", "IN"],
    ["inspect", "STORE", "--cache-dir", "IN"],
], ids=lambda words: " ".join(words))
def test_nothing_is_written_into_a_source(place, words):
    write_store(place / "other.zarr")
    (place / "link").symlink_to(place / "s.zarr")
    before = contents(place / "s.zarr")
    for inside in ("s.zarr/t/1.0.0", "link/new"):
        names = {"STORE": place / "s.zarr", "OTHER": place / "other.zarr",
                 "VIEW": place / "view.json", "OUT": place / "out", "IN": place / inside}
        said = run(*[f"x={place / 's.zarr'}" if word == "x=STORE" else names.get(word, word)
                     for word in words], ok=False)
        assert "lies in the store that is read; name a place beside it" in said
    assert contents(place / "s.zarr") == before
