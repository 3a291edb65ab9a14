"""bench/ddp.py: ranks of torchrun that train from one mount and continue with other numbers of
ranks, on processors; and that its checks find what is wrong."""

import copy
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench/ddp.py"
WORLD, TOTAL, RESUME = 8, 25, [4, 2]  # 25 batches, of which eight ranks read three each in an epoch


@pytest.fixture(scope="module")
def ddp():
    before = sys.path[:]
    spec = importlib.util.spec_from_file_location("ddp", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = before  # it adds its own folder
    return module


def order(epoch):
    return [[epoch * TOTAL + 7 * number % TOTAL] for number in range(TOTAL)]


def right_ranks():
    """Expected results of eight ranks that read eleven batches each, three in an epoch, and save
    the state before the last."""
    read = lambda epoch, number: [epoch, number, order(epoch)[number]]  # noqa: E731
    ranks = []
    for rank in range(WORLD):
        after = {str(world): {"read": [read(3, 8 + rank + world * i) for i in range(3)],
                              "right": [True] * 3} for world in RESUME if rank < world}
        ranks.append(
            {"rank": rank, "read": [read(i // 3, rank + WORLD * (i % 3)) for i in range(11)],
             "right": [True, True], "state": {"epoch": 3, "batches_done": 8}, "continued": after})
    return ranks


def test_what_is_right_is_no_mistake(ddp):
    assert ddp.mistakes(right_ranks(), order, RESUME) == []


def spoil_order(ranks):
    ranks[3]["read"][1:3] = ranks[3]["read"][2:0:-1]


def spoil_batch_read_twice(ranks):
    ranks[3]["read"][4] = ranks[2]["read"][4]


def spoil_epoch(ranks):
    ranks[3]["read"][5][0] = 0


def spoil_samples(ranks):
    ranks[7]["read"][0][2] = [25]


def spoil_bytes(ranks):
    ranks[0]["right"][1] = False


def spoil_state(ranks):
    ranks[5]["state"]["batches_done"] = 16


def spoil_continued_order(ranks):
    ranks[1]["continued"]["4"]["read"][1] = [3, 14, order(3)[14]]


def spoil_continued_samples(ranks):
    ranks[1]["continued"]["2"]["read"][2][2] = [0]


def spoil_continued_bytes(ranks):
    ranks[0]["continued"]["4"]["right"][2] = False


def spoil_continued_end(ranks):
    del ranks[3]["continued"]["4"]["read"][2:]


@pytest.mark.parametrize(("spoil", "found"), [
    (spoil_order, ["rank 3 did not read its batches in order"]),
    (spoil_batch_read_twice, ["rank 3 did not read its batches in order"]),
    (spoil_epoch,
     ["rank 3 did not read its batches in order", "rank 3: the samples are not those of the plan"]),
    (spoil_samples, ["rank 7: the samples are not those of the plan"]),
    (spoil_bytes, ["rank 0: the bytes are not those of the mount's files"]),
    (spoil_state,
     ["rank 5: after batch 5 of epoch 3 the state is {'epoch': 3, 'batches_done': 16}"]),
    (spoil_continued_order, ["rank 1 of 4 that continue did not read its batches in order"]),
    (spoil_continued_samples, ["rank 1 of 2 that continue: the samples are not those of the plan"]),
    (spoil_continued_bytes,
     ["rank 0 of 4 that continue: the bytes are not those of the mount's files"]),
    (spoil_continued_end, ["rank 3 of 4 that continue read 2 batches of 3"]),
])
def test_each_mistake_is_found(ddp, spoil, found):
    ranks = copy.deepcopy(right_ranks())
    spoil(ranks)
    assert ddp.mistakes(ranks, order, RESUME) == found


@pytest.mark.parametrize(("done", "expected"), [
    (8, [[3, 10], [3, 14], [3, 18], [3, 22], [4, 2]]),  # 17 are left, four for each of four ranks
    (22, [[4, 2], [4, 6], [4, 10], [4, 14], [4, 18]]),  # three are left, too few for four
    (24, [[4, 2], [4, 6], [4, 10], [4, 14], [4, 18]]),
])
def test_what_a_rank_reads_from_a_state_on(ddp, done, expected):
    state = {"epoch": 3, "batches_done": done}
    assert list(itertools.islice(ddp.reads_of(state, 2, 4, TOTAL), 5)) == expected


@pytest.mark.parametrize(("ranks", "samples", "resume"), [
    (8, 25, [4, 2]),  # the state is in the middle of an epoch
    (2, 5, [2, 1]),  # the state is at the end of an epoch
])
def test_ranks_train_and_continue_in_order_with_the_right_bytes(tmp_path, ranks, samples, resume):
    pytest.importorskip("torch")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    dims, shape = ("time", "latitude", "longitude"), (samples + 1, 8, 12)
    random = np.random.default_rng(0)
    fields = xr.Dataset({name: (dims, random.normal(size=shape).astype("f4")) for name in "uvt"})
    fields.to_zarr(tmp_path / "fields.zarr", zarr_format=2,
                   encoding={name: {"chunks": (3, 8, 12)} for name in "uvt"})
    done = subprocess.run([sys.executable, PROGRAM, tmp_path / "fields.zarr", "--gpus", str(ranks),
                           "--net", "small", "--mode", "client", "--steps", "4", "--batch", "1",
                           "--resume", ",".join(map(str, resume)), "--json",
                           tmp_path / "rows.json"], capture_output=True, text=True, check=False,
                          timeout=600, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    row, = json.loads((tmp_path / "rows.json").read_text())
    assert (row["ranks"], row["mode"], row["mistakes"],
            row["continued"]) == (ranks, "shm", [], resume)
