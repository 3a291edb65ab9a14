"""batchfs.dask on a LocalCluster: workers that die, copies of two passes, refusals."""

import json
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest
import xarray as xr

import batchfs

distributed = pytest.importorskip("distributed")
from batchfs.dask import run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("dask"))
    with (distributed.LocalCluster(2, threads_per_worker=1, resources={"batchfs": 1},
                                   dashboard_address=None, local_directory=place) as cluster,
          distributed.Client(cluster) as connected):
        yield connected


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("tasks")
    values = np.random.default_rng(3).normal(280, 15, (150, 8, 10)).astype("f4")
    data = xr.Dataset({"t": (("time", "latitude", "longitude"), values)}, {
        "time": np.arange(150) * np.timedelta64(6, "h") + np.datetime64("2001-01-01")})
    data.to_zarr(place / "s.zarr", zarr_format=2, encoding={"t": {"chunks": (2, 8, 10)}})
    (place / "view.json").write_text(json.dumps({"variables": ["t"], "window": {"time": 1}}))
    return place


def words(place):
    return ["statistics", place / "s.zarr", "--view", place / "view.json"]


def test_statistics_with_a_worker_killed_in_the_middle(client, place, tmp_path):
    alone = subprocess.run([PROGRAM, *map(str, words(place)), "--json"], capture_output=True,
                           check=True).stdout
    pids = client.run(os.getpid)
    seen = []

    def progress(done, tasks):
        seen.append((done, tasks))
        if done == 5:
            os.kill(next(iter(pids.values())), signal.SIGKILL)

    found = run(client, words(place), tasks=40, out=tmp_path / "parts",
                merge=tmp_path / "stats.json", resources={"batchfs": 1}, progress=progress,
                program=PROGRAM)
    assert (tmp_path / "stats.json").read_bytes() == alone and found == json.loads(alone)
    assert seen[0] == (0, 40) and seen[-1] == (40, 40)
    # Called again with parts deleted.
    (tmp_path / "parts" / "part-000007").unlink()
    assert run(client, words(place), tasks=40, out=tmp_path / "parts", program=PROGRAM) == found


def test_a_copy_of_two_passes(client, place, tmp_path):
    done = run(client, ["rechunk", place / "s.zarr", "--chunks", "time=150,latitude=1", "--codec",
                        "none", "--memory", "64K"],
               tasks=3, out=tmp_path / "copy.zarr", program=PROGRAM)
    assert done["state"] == "finished" and done["plan"]["passes"] == 2
    assert xr.open_zarr(tmp_path / "copy.zarr").equals(xr.open_zarr(place / "s.zarr"))


def test_problems_that_check_finds_are_told(client, place, tmp_path):
    done = run(client, ["check", place / "s.zarr"], tasks=3, out=tmp_path / "good", program=PROGRAM)
    assert done["problems"] == 0 and done["arrays"] == 2
    broken = tmp_path / "s.zarr"
    subprocess.run(["cp", "-r", place / "s.zarr", broken], check=True)
    (broken / "t" / "3.0.0").write_bytes(b"broken")
    done = run(client, ["check", broken], tasks=3, out=tmp_path / "bad",
               merge=tmp_path / "report.json", program=PROGRAM)
    assert [finding["chunk"] for finding in done["findings"]] == ["3.0.0"]
    assert json.loads((tmp_path / "report.json").read_text()) == done


def test_a_failure_that_no_retry_helps_ends_it(client, place, tmp_path):
    run(client, words(place), tasks=2, out=tmp_path / "parts", program=PROGRAM)
    with pytest.raises(batchfs.InvalidArgument, match='"tasks" differs'):
        run(client, words(place), tasks=3, out=tmp_path / "parts", program=PROGRAM)
    with pytest.raises(batchfs.Error, match="task 0 of 1 failed: .*no-such.zarr"):
        run(client, ["check", place / "no-such.zarr"], tasks=1, out=tmp_path / "none", retries=1,
            program=PROGRAM)


def test_wrong_arguments(client, tmp_path):
    with pytest.raises(batchfs.InvalidArgument, match="begins with"):
        run(client, ["mount", "s.zarr"], tasks=1, out=tmp_path / "p")
    with pytest.raises(batchfs.InvalidArgument, match="tasks="):
        run(client, ["check", "s.zarr"], tasks=0, out=tmp_path / "p")
    with pytest.raises(batchfs.InvalidArgument, match="merge="):
        run(client, ["rechunk", "s.zarr"], tasks=1, out=tmp_path / "p", merge=tmp_path / "m")
