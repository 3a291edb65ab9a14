"""Two processes that write the same output at once: one of them is refused, and the output is that
of the other, whole.

Each output is compared byte by byte with one that a single process wrote, and its values with the
store's.
"""

import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import zipfile

import numpy as np
import pytest
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
PAIRS = int(os.environ.get("BATCHFS_PAIRS", "15"))
SAMPLES = 60
FORMS = ["rechunk", "zarr", "webdataset", "mds", "safetensors", "npz"]
BUSY, OTHER_RUN = "another process writes", "the output is of another run"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writers")
    values = np.random.default_rng(4).normal(size=(SAMPLES, 16, 16)).astype("f4")
    zarr.open_group(folder / "s.zarr", mode="w").create_array("a", data=values, chunks=(4, 16, 16),
                                                             dimension_names=("t", "y", "x"))
    for number, size in enumerate((4, 5)):
        view = {"window": {"t": 1}, "variables": ["a"], "batch": {"size": size}}
        (folder / f"{number}.json").write_text(json.dumps(view))
    return folder


def command(place, form, run=0):
    """Arguments of two runs, which differ in the chunks or in the view."""
    if form == "rechunk":
        return ["rechunk", place / "s.zarr", "--chunks", f"t={8 + 2 * run},y=4,x=4"]
    return ["export", place / "s.zarr", "--view", place / f"{run}.json", "--to", form]


def start(words, out):
    return subprocess.Popen([PROGRAM, *map(str, words), "-o", str(out)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def is_locked(path):
    """Does another process hold the lock? (If not, it does not get it for a moment, and is refused
    itself.)"""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def contents(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*")
            if file.is_file()}


@pytest.fixture(scope="module")
def alone(batchfs, place):
    """The output of a run that nothing disturbed; its values are those of the store where numpy or
    zarr-python read it."""
    made = {}

    def output(form, run=0):
        if (form, run) not in made:
            out = place / f"alone-{form}-{run}"
            batchfs.bytes(*command(place, form, run), "-o", out)
            values = zarr.open_group(place / "s.zarr", mode="r")["a"][:]
            if form in ("rechunk", "zarr"):
                assert np.array_equal(zarr.open_group(out, mode="r")["a"][:].reshape(values.shape),
                                      values)
            if form == "npz":
                batches = [np.load(file)["a"] for file in sorted(out.rglob("*.npz"))
                           if zipfile.is_zipfile(file)]
                assert np.array_equal(np.concatenate(batches).reshape(values.shape), values)
            made[form, run] = contents(out)
        return made[form, run]

    return output


@pytest.mark.parametrize("form", FORMS)
def test_a_second_process_is_refused_and_disturbs_nothing(batchfs, place, alone, tmp_path, form):
    out = tmp_path / "out"
    for _ in range(100):  # until it is stopped before it ends
        shutil.rmtree(out, ignore_errors=True)
        process = start(command(place, form) + ["--threads", "1"], out)
        while process.poll() is None and not is_locked(out / ".batchfs/lock-0"):
            time.sleep(0.0002)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.02)
        if process.poll() is None and is_locked(out / ".batchfs/lock-0"):
            break
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
    else:
        pytest.fail("it was never stopped in the middle")
    try:
        before = contents(out)
        assert BUSY in batchfs.refusal(*command(place, form), "-o", out)
        assert OTHER_RUN in batchfs.refusal(*command(place, form, run=1), "-o", out)
        assert contents(out) == before
    finally:
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert contents(out) == alone(form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", [0, 1], ids=["same run", "another run"])
def test_of_two_that_begin_at_once_one_writes_all(place, alone, tmp_path, form, other):
    draw, out = random.Random(form), tmp_path / "out"
    for number in range(PAIRS):
        shutil.rmtree(out, ignore_errors=True)
        first = start(command(place, form), out)
        time.sleep(draw.choice([0, 0, 0.002, 0.005, 0.01, 0.02]))
        second = start(command(place, form, other), out)
        ended = {run: (process.communicate(timeout=60)[1], process.returncode)
                 for run, process in ((0, first), ("second", second))}
        good = [run for run, (_, code) in ended.items() if code == 0]
        for said, code in ended.values():
            assert code == 0 or (code == 1
                                 and (BUSY in said or (other == 1 and OTHER_RUN in said))), said
        # The same run may find the output finished; another one never may.
        assert good and (len(good) == 1 or other == 0), (number, ended)
        assert contents(out) == alone(form, other if good[-1] == "second" else 0), (number, ended)


@pytest.mark.parametrize("form", FORMS)
def test_two_with_the_same_task_are_refused_and_other_tasks_are_not(batchfs, place, tmp_path, form):
    out = tmp_path / "out"
    share = command(place, form) + ["--tasks", 2]
    (out / ".batchfs").mkdir(parents=True)
    with open(out / ".batchfs/lock-0", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another process writes task 0" in batchfs.refusal(*share, "--task", 0, "-o", out)
        assert json.loads(batchfs.bytes(*share, "--task", 1, "--json", "-o",
                                        out))["state"] == "task done"
    assert json.loads(batchfs.bytes(*share, "--task", 0, "--json", "-o",
                                    out))["state"] == "finished"
    batchfs.bytes(*share, "--task", 1, "-o", tmp_path / "whole")
    batchfs.bytes(*share, "--task", 0, "-o", tmp_path / "whole")
    assert contents(out) == contents(tmp_path / "whole")
