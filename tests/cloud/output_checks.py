"""Checks of outputs in every kind of bucket. `bucket` has keys(prefix) and get(key), which do not
use batchfs."""

import json
import os
import subprocess
import time

import numpy as np
import zarr


def make_source(tmp_path):
    group = zarr.open_group(tmp_path / "source.zarr", mode="w", attributes={"title": "x"})
    values = np.random.default_rng(3).normal(0, 1, (400, 16, 16)).astype("f4")
    group.create_array("a", data=values, chunks=(50, 16, 16), dimension_names=("t", "y", "x"),
                       attributes={"units": "K"})
    return tmp_path / "source.zarr", values


def files_of(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def assert_same_bytes(bucket, prefix, folder):
    assert bucket.keys(prefix) == files_of(folder)
    for key in files_of(folder):
        assert bucket.get(f"{prefix}/{key}") == (folder / key).read_bytes(), key


def check_the_copy(cloud, place, bucket, tmp_path, variables, end=""):
    """rechunk writes what it writes to a folder, and a copy is a source; export, too. `end`: of
    each URL."""
    source, values = make_source(tmp_path)
    command = ["rechunk", source, "--chunks", "t=-1,y=4,x=4"]
    told = json.loads(cloud(*command, "-o", f"{place}/some copy.zarr{end}", "--json", **variables))
    assert told["state"] == "finished" and told["output"] == f"{place}/some copy.zarr"
    cloud(*command, "-o", tmp_path / "local.zarr")
    assert_same_bytes(bucket, "some copy.zarr", tmp_path / "local.zarr")
    again = json.loads(cloud(*command, "-o", f"{place}/some copy.zarr{end}", "--json", **variables))
    assert again["regions_done"] == 0
    # And from there to another place of it, in shards.
    cloud("rechunk", f"{place}/some copy.zarr{end}", "--chunks", "t=1,y=16,x=16", "--shards",
          "t=10", "-o", f"{place}/third{end}", **variables)
    cloud("rechunk", f"{place}/third{end}", "--chunks", "t=400", "-o", tmp_path / "back",
          **variables)
    assert np.array_equal(zarr.open_group(tmp_path / "back", mode="r")["a"][...], values)
    (tmp_path / "view.json").write_text(json.dumps({"name": "v", "window": {"t": 1},
                                                    "batch": {"size": 32}}))
    export = ["export", source, "--view", tmp_path / "view.json", "--to", "npz", "-o"]
    cloud(*export, f"{place}/batches{end}", **variables)
    cloud(*export, tmp_path / "batches")
    assert_same_bytes(bucket, "batches", tmp_path / "batches")


def check_resume(cloud, environment, place, bucket, tmp_path, variables, end=""):
    """A copy that is killed has no metadata, and is continued to the same bytes."""
    source, _ = make_source(tmp_path)
    command = ["rechunk", source, "--chunks", "t=10,y=4,x=8", "--codec", "zstd:1", "--threads", "1",
               "-o"]
    program = os.environ.get("BATCHFS", "build/batchfs")
    process = subprocess.Popen([program, *map(str, command), f"{place}/killed{end}"],
                               env=environment | variables, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and len(bucket.keys("killed")) < 10:
        time.sleep(0.01)
    process.kill()
    process.wait()
    keys = bucket.keys("killed")
    assert "zarr.json" not in keys and len(keys) >= 10
    cloud(*command, f"{place}/killed{end}", **variables)
    cloud(*command, tmp_path / "whole")
    assert_same_bytes(bucket, "killed", tmp_path / "whole")


def check_parts_of_tasks(cloud, cloud_fails, place, bucket, tmp_path, variables, end=""):
    source, _ = make_source(tmp_path)
    (tmp_path / "view.json").write_text(json.dumps({"window": {"t": 1}}))
    words = ["statistics", source, "--view", tmp_path / "view.json", "--tendency", "t"]
    parts = f"{place}/parts"
    for task in (2, 0):
        cloud(*words, "--out", parts + end, "--task", task, "--tasks", 3, **variables)
    assert "1 of 3 parts are missing; run --task 1" in cloud_fails(
        "statistics", "--merge", parts + end, **variables)
    cloud(*words, "--out", parts + end, "--task", 1, "--tasks", 3, **variables)
    assert bucket.keys("parts") == [".batchfs.json", "part-000000", "part-000001", "part-000002"]
    assert cloud("statistics", "--merge", parts + end, "--json",
                 **variables) == cloud(*words, "--json")
    assert "differs" in cloud_fails(*words, "--out", parts + end, "--tasks", 4, **variables)
