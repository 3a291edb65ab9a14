"""batchfs rechunk: the copy equals the original for zarr-python and xarray, whatever happens on the
way."""

import hashlib
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr
from measured import measure

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
T, Y, X = 50, 32, 48
KILLS = int(os.environ.get("BATCHFS_KILLS", "20"))  # 100 is the long form


def dataset():
    rng = np.random.default_rng(1)
    packed = rng.gamma(1, 1, (T, Y, X))
    packed[rng.random(packed.shape) < 0.05] = np.nan
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), rng.normal(280, 10, (T, Y, X)).astype("f4"),
                 {"units": "K", "list": [1, 2.5]}),
         "pr": (("time", "lat", "lon"), packed),
         "count": (("lat", "lon"), rng.integers(0, 9, (Y, X)).astype("u1"))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
         "lat": np.linspace(50, 40, Y), "lon": np.arange(X) * 1.0, "run": 7,
         "region": ("lat", np.array([f"région {i % 3}" for i in range(Y)], dtype=object))},
        {"title": "a test", "nested": {"a": [1, None]}})


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def store(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("rechunk") / "source.zarr"
    encoding = {"t2m": {"chunks": (7, 32, 48)},
                "pr": {"chunks": (7, 16, 48), "dtype": "i2", "scale_factor": 0.01,
                       "add_offset": 1.0, "_FillValue": -1}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset().to_zarr(path, zarr_format=request.param, encoding=encoding, consolidated=True)
    return path


def opened(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "not consolidated" would be a warning
        return xr.open_zarr(path, **options)


def contents(path):
    """Every file of an output by its path, and a digest."""
    return {str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(path.rglob("*")) if p.is_file()}


def assert_same_arrays(source, copy):
    """Compares the arrays with zarr-python, without CF decoding."""
    a, b = zarr.open_group(source, mode="r"), zarr.open_group(copy, mode="r")
    names = sorted(name for name, _ in a.arrays())
    assert names == sorted(name for name, _ in b.arrays())
    for name in names:
        x, y = a[name], b[name]
        assert x.shape == y.shape
        assert np.array_equal(x[...], y[...], equal_nan=x.dtype.kind in "fc"), name


@pytest.mark.parametrize("options", [
    ["--chunks", "time=1"],
    ["--chunks", "time=-1,lat=5,lon=7", "--codec", "blosc:zstd:3"],
    ["--chunks", "time=1,lat=16", "--codec", "blosc"],
    ["--chunks", "time=13,lat=32", "--codec", "gzip:1"],
    ["--chunks", "time=50,lat=8", "--codec", "none"],
    ["--chunks", "time=1", "--shards", "time=16,lat=32,lon=48"],
    ["--chunks", "time=5,lat=10,lon=10", "--shards", "time=-1,lat=20,lon=-1", "--codec",
     "blosc:lz4hc:9"],
    ["--chunks", "time=1,lat=-1,lon=-1", "--codec", "zstd:9", "--threads", "1"],
], ids=lambda options: " ".join(options))
@pytest.mark.parametrize("format", [2, 3])
def test_the_copy_is_identical(batchfs, store, tmp_path, options, format):
    out = tmp_path / "out.zarr"
    if format == 2 and "--shards" in options:
        assert "format 2 has no shards" in batchfs.refusal("rechunk", store, "-o", out, "--format",
                                                           2, *options)
        assert not out.exists()
        return
    batchfs.bytes("rechunk", store, "-o", out, "--format", format, *options)
    original, copy = opened(store), opened(out)
    assert copy.identical(original) and copy.equals(original)
    assert list(copy.variables) and set(copy.coords) == set(original.coords)
    lengths = dict(part.split("=") for part in options[1].split(","))
    sizes = dict(zip(("time", "lat", "lon"), (T, Y, X)))
    for name, old in (("t2m", (7, 32, 48)), ("pr", (7, 16, 48))):
        wanted = tuple(old[i] if d not in lengths else sizes[d] if lengths[d] == "-1"
                       else int(lengths[d]) for i, d in enumerate(("time", "lat", "lon")))
        assert copy[name].encoding["chunks"] == wanted
    assert_same_arrays(store, out)
    assert not (out / ".batchfs").exists()
    assert "no problems found" in batchfs.bytes("check", out).decode()


def test_two_passes_over_a_temporary_store(batchfs, store, tmp_path):
    whole, out = tmp_path / "whole.zarr", tmp_path / "out.zarr"
    command = ["rechunk", store, "--chunks", "time=-1,lat=4,lon=4", "--variables", "t2m"]
    batchfs.bytes(*command, "-o", whole)
    little = ["--memory", "1280K", "--threads", "1"]
    plan = json.loads(batchfs.bytes(*command, *little, "-o", out, "--dry-run", "--json"))["plan"]
    assert plan["passes"] == 2 and not out.exists()
    batchfs.bytes(*command, *little, "-o", out, "--temporary", tmp_path / "pieces")
    assert {k: v for k, v in contents(out).items() if k != ".batchfs.json"} == \
        {k: v for k, v in contents(whole).items() if k != ".batchfs.json"}
    assert list((tmp_path / "pieces").rglob("region*")) == []
    shutil.rmtree(out)
    batchfs.bytes(*command, *little, "-o", out)
    assert opened(out).t2m.identical(opened(store).t2m)
    assert not (out / ".batchfs").exists()


def test_too_little_memory_for_a_chunk_says_so(batchfs, store, tmp_path):
    said = batchfs.refusal("rechunk", store, "--chunks", "time=-1,lat=-1,lon=-1", "--memory",
                           "100K", "-o", tmp_path / "o")
    assert "--memory" in said and "t2m" in said


TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">i2",
         ">f4", ">f8", "S5", "U3", "M8[ns]", "m8[s]"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("given", "format"), [(2, 2), (2, 3), (3, 3), (3, 2)])
def test_every_type(batchfs, tmp_path, dtype, given, format):
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 100, (9, 11))
    values = (raw.astype("U3") if dtype == "U3" else np.char.encode(raw.astype("U5"))
              if dtype == "S5" else raw.astype(dtype))
    store, out = tmp_path / "s.zarr", tmp_path / "o.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(store, mode="w", zarr_format=given)
        array = group.create_array("a", shape=values.shape, chunks=(4, 4), dtype=values.dtype)
        array[...] = values
        array.attrs["x"] = 1
        batchfs.bytes("rechunk", store, "--chunks", "dim_0=3,dim_1=11", "-o", out, "--format",
                      format)
        copy = zarr.open_group(out, mode="r")["a"]
        assert copy.chunks == (3, 11) and copy.metadata.zarr_format == format
        assert copy.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
        assert np.array_equal(copy[...], values)
        assert copy.attrs["x"] == 1
        if given == format:
            assert str(copy.fill_value) == str(array.fill_value)


def test_chunks_that_are_absent_stay_absent(batchfs, tmp_path):
    store, out = tmp_path / "s.zarr", tmp_path / "o.zarr"
    group = zarr.open_group(store, mode="w")
    array = group.create_array("a", shape=(100, 10), chunks=(10, 10), dtype="f4", fill_value=np.nan)
    array[30:50] = 1
    group.create_array("b", shape=(100, 10), chunks=(10, 10), shards=(50, 10), dtype="i2",
                       fill_value=-5)[60:70] = 3
    batchfs.bytes("rechunk", store, "--chunks", "dim_0=5,dim_1=5", "-o", out)
    assert len(list((out / "a").rglob("c/*/*"))) == 8
    assert len(list((out / "b").rglob("c/*/*"))) == 4
    assert_same_arrays(store, out)
    assert zarr.open_group(out, mode="r")["b"].fill_value == -5
    sharded = tmp_path / "sharded.zarr"
    batchfs.bytes("rechunk", store, "--chunks", "dim_0=5,dim_1=5", "--shards", "dim_0=20,dim_1=10",
                  "-o", sharded)
    assert len(list((sharded / "a").rglob("c/*/*"))) == 2
    assert_same_arrays(store, sharded)


def test_a_fill_value_of_format_3_masks_nothing_in_format_2(batchfs, tmp_path):
    """Format 2 has one fill value for both: zeros must stay zeros."""
    store, out = tmp_path / "s.zarr", tmp_path / "o.zarr"
    values = np.arange(40).reshape(4, 10) % 3
    xr.Dataset({"a": (("y", "x"), values.astype("i4"))}).to_zarr(
        store, zarr_format=3, consolidated=True)
    batchfs.bytes("rechunk", store, "--chunks", "x=2", "--format", 2, "-o", out)
    assert opened(out).identical(opened(store)) and opened(out).a.dtype == "i4"


def test_variables_bring_their_coordinates(batchfs, store, tmp_path):
    out = tmp_path / "o.zarr"
    batchfs.bytes("rechunk", store, "--variables", "count", "--chunks", "lat=8", "-o", out)
    copy = opened(out)
    assert (set(copy.variables) >= {"count", "lat", "lon"} and "t2m" not in copy
            and "time" not in copy)
    assert copy["count"].identical(opened(store)["count"][...].drop_vars(
        [n for n in opened(store)["count"].coords if n not in copy]))
    assert "did you mean 'count'" in batchfs.refusal("rechunk", store, "--variables", "cont", "-o",
                                                     tmp_path / "p")


def test_groups(batchfs, tmp_path):
    store, out, part = tmp_path / "s.zarr", tmp_path / "o.zarr", tmp_path / "p.zarr"
    root = zarr.open_group(store, mode="w", attributes={"at": "root"})
    below = root.create_group("a/b", attributes={"at": "b"})
    below.create_array("v", data=np.arange(12.0).reshape(3, 4), dimension_names=("y", "x"))
    root.create_array("w", data=np.arange(5))
    batchfs.bytes("rechunk", store, "--chunks", "y=1", "-o", out)
    copy = zarr.open_group(out, mode="r")
    assert (copy.attrs["at"] == "root" and copy["a/b"].attrs["at"] == "b"
            and copy["a/b/v"].chunks == (1, 4))
    assert (np.array_equal(copy["a/b/v"][...], below["v"][...])
            and np.array_equal(copy["w"][...], root["w"][...]))
    batchfs.bytes("rechunk", store, "--group", "a/b", "-o", part)
    assert (zarr.open_group(part, mode="r").attrs["at"] == "b"
            and list(zarr.open_group(part, mode="r")) == ["v"])


def test_what_cannot_be_used_is_said(batchfs, tmp_path):
    store = tmp_path / "s.zarr"
    group = zarr.open_group(store, mode="w")
    for name in ("a", "b"):
        group.create_array(name, data=np.arange(6.0), chunks=(2,), dimension_names=("x",))
    (store / "b" / "zarr.json").write_text("{")
    told = json.loads(batchfs.bytes("rechunk", store, "--chunks", "x=3", "-o", tmp_path / "o",
                                    "--json"))
    assert [entry["key"] for entry in told["left_out"]] == ["b/zarr.json"]
    assert list(zarr.open_group(tmp_path / "o", mode="r")) == ["a"]
    document = json.loads((store / "a" / "zarr.json").read_text())
    document["codecs"].append({"name": "nobody.has.this"})
    (store / "a" / "zarr.json").write_text(json.dumps(document))
    said = batchfs.refusal("rechunk", store, "--chunks", "x=3", "-o", tmp_path / "p")
    assert "nobody.has.this" in said and not (tmp_path / "p").exists()


def test_stores_that_are_no_folders(batchfs, store, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "s"), "zip", store)
    batchfs.bytes("rechunk", packed, "--chunks", "time=1", "-o", tmp_path / "from_zip")
    assert opened(tmp_path / "from_zip").identical(opened(store))

    def handler(*arguments):
        return http.server.SimpleHTTPRequestHandler(*arguments, directory=store)

    http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        batchfs.bytes("rechunk", f"http://127.0.0.1:{server.server_port}", "--chunks", "time=1",
                      "-o", tmp_path / "from_web")
    finally:
        server.shutdown()
    assert opened(tmp_path / "from_web").identical(opened(store))
    same = contents(tmp_path / "from_zip"), contents(tmp_path / "from_web")
    for each in same:
        each.pop(".batchfs.json")
    assert same[0] == same[1]


# ---- runs that end early, and several ----


def large(tmp_path, steps=600):
    """Many small chunks: a copy of some seconds."""
    store = tmp_path / "large.zarr"
    rng = np.random.default_rng(2)
    group = zarr.open_group(store, mode="w")
    for name in ("a", "b"):
        array = group.create_array(name, shape=(steps, 64, 64), chunks=(10, 64, 64), dtype="f4",
                                   dimension_names=("t", "y", "x"))
        array[...] = rng.normal(0, 1, array.shape)
    return store


@pytest.mark.parametrize("memory", [[], ["--memory", "4M", "--threads", "2"]],
                         ids=["one pass", "two passes"])
def test_killed_at_any_moment_it_continues_to_the_same_bytes(batchfs, tmp_path, memory):
    store, whole, out = large(tmp_path), tmp_path / "whole.zarr", tmp_path / "out.zarr"
    command = ["rechunk", store, "--chunks", "t=200,y=4,x=8", "--codec", "zstd:1", *memory]
    plan = json.loads(batchfs.bytes(*command, "-o", out, "--dry-run", "--json"))["plan"]
    assert plan["passes"] == (2 if memory else 1)
    began = time.monotonic()
    batchfs.bytes(*command, "-o", whole)
    took = time.monotonic() - began
    draw = random.Random(3)
    for _ in range(KILLS // 2):
        process = subprocess.Popen([PROGRAM, *map(str, command), "-o", str(out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(draw.uniform(0, took))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        if (out / "zarr.json").exists():  # then the output is complete
            assert_same_arrays(store, out)
            if draw.random() < 0.5:
                shutil.rmtree(out)
        else:
            with pytest.raises(FileNotFoundError):
                zarr.open_group(out, mode="r")
    batchfs.bytes(*command, "-o", out)
    assert contents(out) == contents(whole)
    again = json.loads(batchfs.bytes(*command, "-o", out, "--json"))
    assert again["state"] == "finished" and again["regions_done"] == 0
    assert contents(out) == contents(whole)


def test_interrupted_it_says_so_and_skips_what_is_done(batchfs, tmp_path):
    store, out = large(tmp_path, 200), tmp_path / "out.zarr"
    command = ["rechunk", store, "--chunks", "t=20,y=4,x=4", "--threads", "1"]
    process = subprocess.Popen([PROGRAM, *map(str, command), "-o", str(out), "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and len(list((out / "a" / "c").glob("*"))) < 3:
        time.sleep(0.005)
    process.terminate()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and b"run the same command again" in errors
    done = json.loads(output)["regions_done"]
    assert done > 0
    rest = json.loads(batchfs.bytes(*command, "-o", out, "--json"))
    assert rest["regions_skipped"] == done and rest["state"] == "finished"
    assert_same_arrays(store, out)


@pytest.mark.parametrize("memory", [[], ["--memory", "4M", "--threads", "2"]],
                         ids=["one pass", "two passes"])
def test_tasks_give_the_same_bytes_in_any_order(batchfs, tmp_path, memory):
    store, whole, out = large(tmp_path), tmp_path / "whole.zarr", tmp_path / "out.zarr"
    command = ["rechunk", store, "--chunks", "t=200,y=4,x=8", *memory]
    batchfs.bytes(*command, "-o", whole)

    def state(task):
        return json.loads(batchfs.bytes(*command, "-o", out, "--task", task, "--tasks", 5,
                                        "--json"))["state"]

    if memory:
        assert {state(task) for task in (3, 0, 4, 1)} == {"first pass of the task done"}
        # all tasks have finished their first pass, so it does its second at once
        assert state(2) == "task done"
        assert state(2) == "task done"
        assert {state(task) for task in (3, 0, 4)} == {"task done"}
    else:
        assert {state(task) for task in (3, 0, 4, 2)} == {"task done"}
    assert not (out / "zarr.json").exists()
    assert state(1) == "finished" and state(3) == "finished"
    for each in (whole, out):
        (each / ".batchfs.json").unlink()
    assert contents(out) == contents(whole)


# ---- refusals: one line, nothing lost ----


def test_the_output_must_lie_apart_from_the_store(batchfs, store, tmp_path):
    before = contents(store)
    (tmp_path / "link").symlink_to(store)
    for out in (store, store / "copy", store / "t2m" / ".." / "x", tmp_path / "link" / "copy",
                store.parent):
        said = batchfs.refusal("rechunk", store, "--chunks", "time=1", "-o", out)
        assert "name" in said and "place" in said
    assert contents(store) == before


def test_outputs_of_others_are_left_alone(batchfs, store, tmp_path):
    command = ["rechunk", store, "--chunks", "time=1"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    assert "batchfs did not write it" in batchfs.refusal(*command, "-o", mine)
    assert contents(mine) == {"notes.txt": hashlib.sha256(b"mine").hexdigest()}
    file = tmp_path / "file"
    file.write_text("mine")
    assert "this is a file" in batchfs.refusal(*command, "-o", file)
    assert file.read_text() == "mine"
    out = tmp_path / "out"
    batchfs.bytes(*command, "-o", out)
    before = contents(out)
    assert '"codec" differs' in batchfs.refusal(*command, "--codec", "zstd:4", "-o", out)
    assert '"arrays" differs' in batchfs.refusal("rechunk", store, "--chunks", "time=2", "-o", out)
    other = tmp_path / "other.zarr"
    shutil.copytree(store, other)
    assert '"store" differs' in batchfs.refusal("rechunk", other, "--chunks", "time=1", "-o", out)
    assert contents(out) == before
    assert "cannot be written" in batchfs.refusal(*command, "-o", "https://example.org/x")


def test_wrong_lengths_and_codecs(batchfs, store, tmp_path):
    out = tmp_path / "o"
    for options, words in (
            (["--chunks", "time"], "DIM=LENGTH"), (["--chunks", "time=0"], "DIM=LENGTH"),
            (["--chunks", "time=1,time=2"], "twice"), (["--codec", "zip"], "is not a codec"),
            (["--codec", "zstd:99"], "levels"), (["--task", "3", "--tasks", "3"], "--tasks")):
        done = batchfs.run("rechunk", store, "-o", out, *options)
        assert (done.returncode == 2 and words in done.stderr.decode()
                and done.stderr.count(b"\n") == 1)
    assert "no array has the dimension 'tine', did you mean 'time'" in batchfs.refusal(
        "rechunk", store, "--chunks", "tine=1", "-o", out)
    assert "not a whole number of chunks" in batchfs.refusal("rechunk", store, "--chunks", "time=4",
                                                             "--shards", "time=6", "-o", out)
    assert not out.exists()


def test_a_damaged_chunk_ends_the_copy_and_names_it(batchfs, tmp_path):
    store, out = large(tmp_path), tmp_path / "o"
    chunk = store / "b" / "c" / "3" / "0" / "0"
    stored = chunk.read_bytes()
    chunk.write_bytes(stored[:-20])
    said = batchfs.refusal("rechunk", store, "--chunks", "t=1", "-o", out)
    assert "b/3.0.0" in said and not (out / "zarr.json").exists()
    chunk.write_bytes(stored)
    # The finished copies may come from the damaged store.
    assert "remove the output to begin anew" in batchfs.refusal(
        "rechunk", store, "--chunks", "t=1", "-o", out)
    shutil.rmtree(out)
    batchfs.bytes("rechunk", store, "--chunks", "t=1", "-o", out)
    assert_same_arrays(store, out)


def test_places_that_may_not_be_written(store):
    """Runs as an ordinary user, since root may write anywhere."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        shutil.copytree(store, place / "s.zarr")
        (place / "out").mkdir(mode=0o555)
        as_user = (["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                   if os.geteuid() == 0 else [])
        done = subprocess.run([*as_user, PROGRAM, "rechunk", place / "s.zarr", "--chunks", "time=1",
                               "-o", place / "out" / "o"], capture_output=True, text=True, cwd="/")
        assert (done.returncode == 1 and done.stderr.count("\n") == 1
                    and "enied" in done.stderr), done.stderr
        assert list((place / "out").iterdir()) == []


def test_a_full_disk_loses_nothing(batchfs, tmp_path):
    store, disk, whole = large(tmp_path), tmp_path / "disk", tmp_path / "whole"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "none",
                                            disk]).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        command = ["rechunk", store, "--chunks", "t=20"]
        said = batchfs.refusal(*command, "-o", disk / "o")
        assert "No space left" in said and "run the same command again" in said
        assert not (disk / "o" / "zarr.json").exists()
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        batchfs.bytes(*command, "-o", disk / "o")
        batchfs.bytes(*command, "-o", whole)
        assert contents(disk / "o") == contents(whole)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_two_at_a_time_are_refused(batchfs, tmp_path):
    store, out = large(tmp_path, 200), tmp_path / "out"
    command = ["rechunk", store, "--chunks", "t=20,y=4,x=4", "--threads", "1"]
    process = subprocess.Popen([PROGRAM, *map(str, command), "-o", str(out)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not (out / "a").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    assert "another process" in batchfs.refusal(*command, "-o", out)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=100)
    assert process.returncode == 0
    assert_same_arrays(store, out)


def test_help_and_the_plan(batchfs, store, tmp_path):
    plan = batchfs.bytes("rechunk", store, "--chunks", "time=1", "-o", tmp_path / "o",
                         "--dry-run").decode()
    assert "t2m" in plan and "7 x 32 x 48" in plan and not (tmp_path / "o").exists()
    assert "Example:" in batchfs.bytes("rechunk", "--help").decode()
    assert pathlib.Path(PROGRAM).exists()


@pytest.mark.parametrize(("options", "passes"), [
    (["--chunks", "t=-1,y=8", "--codec", "zstd:1"], 2),
    (["--chunks", "t=-1,y=8", "--shards", "t=-1,y=16", "--codec", "blosc"], 2),
    (["--chunks", "t=16,y=256", "--codec", "blosc:zstd:1"], 1),
], ids=lambda option: " ".join(option) if isinstance(option, list) else f"{option}")
def test_a_copy_stays_within_the_memory(tmp_path, options, passes):
    """Pieces of 40 MB were held twice by each thread: 309 MB were taken with a limit of 200 MB.
    Then nothing was reserved for the program: 240 MB."""
    store, out = tmp_path / "store.zarr", tmp_path / "out.zarr"
    array = zarr.create_array(store, shape=(64, 1024, 1024), chunks=(1, 1024, 1024), dtype="f4",
                              compressors=None, dimension_names=("t", "y", "x"))
    rng = np.random.default_rng(0)
    for step in range(64):
        array[step] = rng.random((1024, 1024), "f4")
    command = [PROGRAM, "rechunk", store, *options, "--memory", "200M", "--threads", "2", "-o", out]
    plan = json.loads(subprocess.run([*command, "--dry-run", "--json"], check=True,
                                     capture_output=True).stdout)["plan"]
    assert plan["passes"] == passes
    measured = measure(*command)
    assert measured.status == 0, measured.error
    assert measured.peak <= 200 << 20
    copy = zarr.open_array(out, mode="r")
    assert all(np.array_equal(copy[step], array[step]) for step in range(0, 64, 7))


@pytest.mark.not_sanitized("it takes several times the memory")
@pytest.mark.filterwarnings("ignore")
def test_strings_take_the_memory_of_a_few_chunks(tmp_path):
    """300 MB of text, which was held as a whole, and refused beyond 256 MB."""
    count, chunk = 30_000, 300
    group = zarr.create_group(tmp_path / "s.zarr")
    array = group.create_array("name", shape=(count,), chunks=(chunk,), dtype="string",
                               dimension_names=["x"])
    group.create_array("v", shape=(count,), chunks=(count,), dtype="i4",
                       dimension_names=["x"])[:] = np.arange(count)
    text = np.array(["a" * 10_000], dtype=object)
    for first in range(0, count, chunk):
        array[first:first + chunk] = (np.char.mod("%d ", np.arange(first, first + chunk))
                                          .astype(object) + text)
    taken = measure(PROGRAM, "rechunk", tmp_path / "s.zarr", "-o", tmp_path / "o.zarr", "--chunks",
                    "x=1000", "--memory", "64M")
    assert taken.status == 0, taken.error
    assert taken.peak <= 128 << 20
    copied = zarr.open_array(tmp_path / "o.zarr" / "name")
    assert copied.chunks == (chunk,)
    for first in range(0, count, chunk):
        assert np.array_equal(copied[first:first + chunk], array[first:first + chunk])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["str", "<U4", "S2", "bytes"])
@pytest.mark.parametrize("fill", ["", "zz"])
def test_strings_that_equal_the_fill_value_are_not_masked_in_format_2(
        batchfs, tmp_path, dtype, fill):
    """xarray takes the fill value of format 2 for missing, and that of format 3 not; a chunk was
    never written."""
    is_bytes = dtype in ("S2", "bytes")
    fill = fill.encode() if is_bytes else fill
    group = zarr.create_group(tmp_path / "s.zarr")
    array = group.create_array("name", shape=(6,), chunks=(2,),
                               dtype="variable_length_bytes" if dtype == "bytes" else dtype,
                               fill_value=fill, dimension_names=["x"])
    array[:3] = np.array([b"p", fill, b"q"] if is_bytes else ["p", fill, "q"],
                         dtype=object if dtype == "bytes" else None)
    batchfs.bytes("rechunk", tmp_path / "s.zarr", "--format", "2", "-o", tmp_path / "o.zarr")
    stored, copied = (xr.open_zarr(tmp_path / name, consolidated=False)["name"].values.tolist()
                      for name in ("s.zarr", "o.zarr"))
    assert copied == stored
