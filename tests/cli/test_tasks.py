"""--task, --tasks, --out and --merge: shares of statistics, check and warm come to the result of
one process."""

import concurrent.futures
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

import numpy as np
import pytest
import xarray as xr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
STEPS = 211


def call(*words, ok=True, **options):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=240,
                          **options)
    assert (done.returncode == 0) == ok, (done.returncode, done.stderr, done.stdout[-2000:])
    return done.stdout if ok else done.stderr


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """211 steps of 3 levels with NaN, in chunks of 2 steps, and an array that cannot be summed."""
    place = tmp_path_factory.mktemp("tasks")
    values = np.random.default_rng(19).normal(280, 15, (STEPS, 3, 9, 20)).astype("f4")
    values[5, 1, :4] = np.nan
    data = xr.Dataset({"t": (("time", "level", "latitude", "longitude"), values),
                       "p": (("time", "latitude", "longitude"), values[:, 0] ** 2),
                       "flag": (("time",), np.arange(STEPS) % 2 == 0)},
                      {"time": np.arange(STEPS) * np.timedelta64(6, "h")
                           + np.datetime64("2001-01-01"),
                       "level": ("level", [500, 700, 850], {"positive": "down"})})
    chunks = {"t": {"chunks": (2, 2, 9, 20)}, "p": {"chunks": (5, 4, 20)}}
    data.to_zarr(place / "s.zarr", zarr_format=2, encoding=chunks)
    (place / "view.json").write_text(json.dumps({"variables": ["t", "p"], "window": {"time": 1}}))
    return place


def task(store, out, i, tasks, *options, command="statistics", ok=True):
    view = ("--view", store / "view.json") if command != "check" else ()
    return call(command, store / "s.zarr", *view, "--out", out, "--task", i, "--tasks", tasks,
                *options, ok=ok)


@pytest.fixture(scope="module")
def whole(store):
    return call("statistics", store / "s.zarr", "--view", store / "view.json", "--json",
                "--threads", 1)


@pytest.mark.parametrize("tasks", [1, 7, 64])
def test_statistics_of_tasks_are_those_of_one_process(store, whole, tasks, tmp_path):
    parts = tmp_path / "parts"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda i: task(store, parts, i, tasks, "--threads", 1 + i % 3),
                      reversed(range(tasks))))
    assert call("statistics", "--merge", parts, "-o", tmp_path / "stats.json", "--json") == whole
    assert (tmp_path / "stats.json").read_text() == whole
    # With the store's name it is compared, too.
    assert call("statistics", store / "s.zarr", "--view", store / "view.json", "--merge", parts,
                "--json") == whole


def test_quantiles_of_tasks_are_those_of_one_process(store, tmp_path):
    whole = call("statistics", store / "s.zarr", "--view", store / "view.json", "--json",
                 "--quantiles")
    for i in range(5):
        task(store, tmp_path / "parts", i, 5, "--quantiles", "--threads", 1 + i % 2)
    assert call("statistics", "--merge", tmp_path / "parts", "--json") == whole
    assert "median" in whole


def test_the_merged_numbers_are_those_of_numpy(store, tmp_path):
    parts = tmp_path / "parts"
    for i in range(3):
        task(store, parts, i, 3)
    call("statistics", "--merge", parts, "-o", tmp_path / "stats.json")
    found = json.loads((tmp_path / "stats.json").read_text())["variables"]
    data = xr.open_zarr(store / "s.zarr")
    for name, kept in (("t", ["level"]), ("p", [])):
        values = data[name].astype("f8")
        over = [dim for dim in values.dims if dim not in kept]
        assert np.allclose(found[name]["mean"], values.mean(over), rtol=1e-13)
        assert np.allclose(found[name]["std"], values.std(over), rtol=1e-12)
        assert np.array_equal(found[name]["count"], values.count(over))
        steps = values.diff("time")
        assert np.allclose(found[name]["tendency"]["mean"], steps.mean(over), rtol=1e-9, atol=1e-12)
        assert np.allclose(found[name]["tendency"]["std"], steps.std(over), rtol=1e-12)
        assert np.array_equal(found[name]["tendency"]["count"], steps.count(over))
    assert found["t"]["coordinates"] == {"level": [500, 700, 850]}
    table = call("statistics", "--merge", parts)
    assert table == call("statistics", store / "s.zarr", "--view", store / "view.json")
    assert "level=850" in table


def test_a_task_that_is_done_is_not_done_again(store, tmp_path):
    first = json.loads(task(store, tmp_path / "parts", 2, 5, "--json"))
    part = (tmp_path / "parts" / "part-000002").read_bytes()
    again = json.loads(task(store, tmp_path / "parts", 2, 5, "--json"))
    assert first == {"output": str(tmp_path / "parts"), "task": 2, "tasks": 5, "state": "task done",
                     "skipped": False}
    assert again == first | {"skipped": True}
    (tmp_path / "parts" / "part-000002").unlink()
    task(store, tmp_path / "parts", 2, 5, "--threads", 3)
    assert (tmp_path / "parts" / "part-000002").read_bytes() == part


class SlowFiles(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.02)
        super().do_GET()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def slow_server(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(SlowFiles, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def test_a_task_that_is_killed_leaves_nothing_that_counts(store, tmp_path):
    shutil.copy(store / "view.json", tmp_path / "view.json")
    with slow_server(store) as url:
        words = ["statistics", f"{url}/s.zarr", "--view", str(tmp_path / "view.json")]
        alone = call(*words, "--json")
        parts = tmp_path / "parts"
        for i in range(3):
            share = [*words, "--out", str(parts), "--task", str(i), "--tasks", "3"]
            process = subprocess.Popen([PROGRAM, *share], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            # it reads from then on
            while not (parts / ".batchfs.json").exists() and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if i < 2:  # the third one is run once more at the end
                call(*share)
        if not (parts / "part-000002").exists():
            assert "1 of 3 parts are missing; run --task 2" in call(
                "statistics", "--merge", parts, ok=False)
            call(*words, "--out", parts, "--task", 2, "--tasks", 3)
        assert call("statistics", "--merge", parts, "--json") == alone


def test_parts_of_other_runs_are_refused(store, tmp_path):
    parts = tmp_path / "parts"
    task(store, parts, 0, 2)
    for what, words in {
        '"tasks" differs': ("statistics", store / "s.zarr", "--view", store / "view.json", "--out",
                            parts, "--tasks", 3),
            '"numbers" differs': ("statistics", store / "s.zarr", "--view", store / "view.json",
                                  "--out", parts, "--tasks", 2, "--per", "none"),
            '"command" differs': ("check", store / "s.zarr", "--out", parts, "--tasks", 2),
    }.items():
        said = call(*words, ok=False)
        assert what in said and said.count("\n") == 1, said
    (tmp_path / "other.json").write_text(json.dumps({"variables": ["t"], "window": {"time": 2}}))
    said = call("statistics", store / "s.zarr", "--view", tmp_path / "other.json", "--out", parts,
                "--tasks", 2, ok=False)
    assert "differs" in said and said.count("\n") == 1
    task(store, parts, 1, 2)
    said = call("statistics", store / "s.zarr", "--view", tmp_path / "other.json", "--merge", parts,
                ok=False)
    assert "differs" in said
    assert "not of 'check'" in call("check", "--merge", parts, ok=False)
    # A part of another run in this folder, and a damaged one.
    other = tmp_path / "others"
    call("statistics", store / "s.zarr", "--view", tmp_path / "other.json", "--out", other,
         "--tasks", 2, "--task", 1)
    kept = (parts / "part-000001").read_bytes()
    shutil.copy(other / "part-000001", parts / "part-000001")
    assert "another run" in call("statistics", "--merge", parts, ok=False)
    (parts / "part-000001").write_bytes(kept[:-1])
    assert "damaged" in call("statistics", "--merge", parts, ok=False)
    assert "damaged" in task(store, parts, 1, 2, ok=False)


def test_another_state_of_the_store_is_refused(store, tmp_path):
    shutil.copytree(store / "s.zarr", tmp_path / "s.zarr")
    words = ("statistics", tmp_path / "s.zarr", "--view", store / "view.json", "--out",
             tmp_path / "parts", "--tasks", 2)
    call(*words, "--task", 0)
    data = xr.open_zarr(tmp_path / "s.zarr").isel(time=slice(0, 2)).load()
    data["time"] = data["time"] + np.timedelta64(1000, "D")
    for name in data.variables:
        data[name].encoding = {}
    data.drop_vars("level").to_zarr(tmp_path / "s.zarr", append_dim="time", zarr_format=2)
    said = call(*words, "--task", 1, ok=False)
    assert "differs" in said and said.count("\n") == 1


def test_a_full_disk_leaves_no_part(store, whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none",
                                            disk]).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        said = task(store, disk / "parts", 0, 2, ok=False)
        assert ("No space left" in said and "run the same command again" in said
                and said.count("\n") == 1)
        assert not (disk / "parts" / "part-000000").exists()
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        for i in range(2):
            task(store, disk / "parts", i, 2)
        assert call("statistics", "--merge", disk / "parts", "--json") == whole
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("words, why", [
    (["statistics"], "STORE is required"),
    (["statistics", "s.zarr"], "--view is required"),
    (["check"], "STORE is required"),
    (["statistics", "s.zarr", "--view", "v.json", "--tasks", 3], "--tasks needs --out"),
    (["statistics", "s.zarr", "--view", "v.json", "--out", "p", "--task", 3, "--tasks", 3],
     "not below"),
    (["statistics", "s.zarr", "--view", "v.json", "--out", "p", "--merge", "p"],
     "exclude each other"),
    (["statistics", "s.zarr", "--view", "v.json", "--out", "p", "-o", "stats.json"],
     "-o goes with --merge"),
    (["statistics", "s.zarr", "--merge", "p"], "--view is required"),
    (["check", "--merge", "p", "--tasks", 2], "--merge takes no --tasks"),
    (["check", "s.zarr", "--out", "p", "--cache-dir", "c"],
     "--cache-dir cannot be combined with tasks"),
])
def test_wrong_usage(words, why):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and why in done.stderr, done.stderr


def test_a_folder_of_something_else(store, tmp_path):
    assert "no parts of a run" in call("statistics", "--merge", tmp_path, ok=False)
    (tmp_path / "notes.txt").write_text("mine")
    assert "name a new place" in task(store, tmp_path, 0, 1, ok=False)
    assert os.listdir(tmp_path) == ["notes.txt"]
    said = call("check", store / "s.zarr", "--out", store / "s.zarr" / "parts", ok=False)
    assert said.count("\n") == 1 and not (store / "s.zarr" / "parts").exists()


@pytest.mark.parametrize("broken", [False, True])
def test_check_in_tasks(store, tmp_path, broken):
    shutil.copytree(store / "s.zarr", tmp_path / "s.zarr")
    if broken:
        for chunk in ("t/0.0.0.0", "p/3.1.0"):
            (tmp_path / "s.zarr" / chunk).write_bytes(b"broken")
        (tmp_path / "s.zarr" / "t" / "notes.txt").write_text("odd")
        (tmp_path / "s.zarr" / "t" / "4.0.0.0").unlink()
    for words in ((), ("--view", str(store / "view.json"))):
        parts = tmp_path / f"parts{len(words)}"
        alone = (call("check", tmp_path / "s.zarr", "--json", *words) if not broken
                 else subprocess.run([PROGRAM, "check", tmp_path / "s.zarr", "--json",
                                      *words], capture_output=True, text=True, timeout=60).stdout)
        for i in range(7):  # a task whose share is broken has done its work
            call("check", tmp_path / "s.zarr", "--out", parts, "--task", i, "--tasks", 7, *words)
        merged = subprocess.run([PROGRAM, "check", "--merge", parts, "--json"], capture_output=True,
                                text=True, timeout=60)
        assert merged.stdout == alone
        assert merged.returncode == (1 if broken else 0)
        assert json.loads(merged.stdout)["problems"] == (2 if broken else 0)


def test_check_of_shards_in_tasks(tmp_path):
    import zarr
    group = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=3)
    array = group.create_array("a", shape=(64, 64), chunks=(4, 4), shards=(16, 16), dtype="i4")
    array[...] = np.arange(64 * 64).reshape(64, 64)
    shard = tmp_path / "s.zarr" / "a" / "c" / "1" / "2"
    shard.write_bytes(shard.read_bytes()[:-40] + b"x" * 40)
    alone = subprocess.run([PROGRAM, "check", tmp_path / "s.zarr", "--json"], capture_output=True,
                           text=True, timeout=60).stdout
    for i in range(3):
        call("check", tmp_path / "s.zarr", "--out", tmp_path / "parts", "--task", i, "--tasks", 3)
    merged = subprocess.run([PROGRAM, "check", "--merge", tmp_path / "parts", "--json"],
                            capture_output=True, text=True, timeout=60)
    assert merged.stdout == alone and json.loads(alone)["problems"] == 1


def test_warm_in_tasks(store, tmp_path):
    with slow_server(store) as url:
        words = ("warm", f"{url}/s.zarr", "--view", store / "view.json")
        alone = json.loads(call(*words, "--cache-dir", tmp_path / "alone", "--json"))
        for i in range(4):
            call(*words, "--cache-dir", tmp_path / "cache", "--out", tmp_path / "parts", "--task",
                 i, "--tasks", 4)
        merged = json.loads(call("warm", "--merge", tmp_path / "parts", "--json"))
        for key in ("store", "view", "chunks", "missing_chunks", "bytes", "evicted"):
            assert merged[key] == alone[key], key
        again = json.loads(call(*words, "--cache-dir", tmp_path / "cache", "--json"))
        assert again["written_bytes"] == 0  # everything existed already
