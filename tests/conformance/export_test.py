"""batchfs export: what other loaders read is what batchfs batch gives."""

import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tarfile
import time
import warnings
import zipfile

import numpy as np
import pytest
import xarray as xr
import zarr
from measured import measure

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))
T, Y, X = 50, 16, 24
VIEW = {"name": "train", "variables": ["t2m", "pr"],
        "window": {"time": 1, "lat": {"size": 8, "stride": 8}}, "tensors": {
            "x": {"variables": ["t2m", "pr"], "stack": "channel", "offsets": {"time": [-1, 0]}},
            "y": {"variables": ["t2m"], "offsets": {"time": [1]}}},
        "batch": {"size": 7}, "order": {"shuffle": "global", "seed": 3}, "epochs": 3}
BATCHES = 14  # 48 times x 2 rows of windows = 96 samples, the last batch has 5


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    rng = np.random.default_rng(1)
    ds = xr.Dataset({name: (("time", "lat", "lon"), rng.normal(280, 10, (T, Y, X)).astype("f4"))
                     for name in ("t2m", "pr")},
                    {"time": np.datetime64("2001-01-01", "ns")
                         + np.arange(T) * np.timedelta64(6, "h"), "lat": np.linspace(50, 40, Y),
                     "lon": np.arange(X) * 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(folder / "s.zarr", zarr_format=3,
                   encoding={n: {"chunks": (7, 16, 24)} for n in ds.data_vars})
    (folder / "view.json").write_text(json.dumps(VIEW))
    return folder


@pytest.fixture
def export(batchfs, place, tmp_path):
    def run(form, *arguments, out=None):
        out = out or tmp_path / form
        return out, json.loads(batchfs.bytes("export", place / "s.zarr", "--view",
                                             place / "view.json", "--to", form, "-o", out, "--json",
                                             *arguments))
    return run


@pytest.fixture(scope="module")
def batches(batchfs, place):
    """Epoch 1 as `batchfs batch` gives it: by tensor, and the numbers of the samples."""
    common = ("batch", place / "s.zarr", "--view", place / "view.json", "--epoch", 1)
    tensors = {name: [batchfs.npy(*common, "--tensor", name, "--batch", b) for b in range(BATCHES)]
               for name in ("x", "y")}
    samples = [
        n for b in range(BATCHES)
        for n in json.loads(batchfs.bytes(*common, "--format", "json", "--batch", b))["samples"]]
    return tensors, samples


def contents(path):
    return {str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(path.rglob("*")) if p.is_file()}


def test_zarr_has_all_samples_in_the_order_of_the_epoch(batchfs, export, batches, place):
    out, told = export("zarr", "--epoch", 1, "--shard-size", "60K")
    assert told["state"] == "finished" and told["batches_per_object"] > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "not consolidated" would be one
        warnings.filterwarnings("ignore", "The data type .* does not have a Zarr V3 specification")
        copy = xr.open_zarr(out)
    tensors, _ = batches
    for name, parts in tensors.items():
        assert np.array_equal(copy[name].values, np.concatenate(parts)), name
        array = zarr.open_group(out, mode="r")[name]
        assert (array.chunks == (7, *parts[0].shape[1:])
                and array.shards[0] == 7 * told["batches_per_object"])
    times = xr.open_zarr(place / "s.zarr").time.values
    steps = [list(times).index(t) for t in copy.time_start.values] if "time_start" in copy else [
        list(times).index(t) for t in copy.time.values]
    source = xr.open_zarr(place / "s.zarr").t2m.values
    for i in (0, 40, 95):  # the label identifies a sample's source
        assert (np.array_equal(copy.y.values[i].reshape(-1)[:X],
                               source[steps[i] + 1, :8, :].reshape(-1)[:X])
                or np.array_equal(copy.y.values[i].reshape(-1)[:X],
                                  source[steps[i] + 1, 8:, :].reshape(-1)[:X]))
    again = batchfs.npy("batch", out, "--view", out / "view.json", "--tensor", "x", "--batch", 13)
    assert np.array_equal(again.reshape(tensors["x"][13].shape), tensors["x"][13])
    assert "no problems found" in batchfs.bytes("check", out).decode()


def test_a_coordinate_larger_than_the_memory(tmp_path):
    """The samples' labels take 128 MiB; the values are fill values, of which nothing is stored."""
    times, width = 4096, 256
    names = [f"station {number} ".ljust(width, "abcdefg"[number % 7]) for number in range(32)]
    store = tmp_path / "s.zarr"
    group = zarr.open_group(store, mode="w", zarr_format=2)
    for name, shape, dtype, dims in (("t", (times, 32), "f4", ["time", "station"]),
                                     ("time", (times,), "i8", ["time"]),
                                     ("station", (32,), f"<U{width}", ["station"])):
        array = group.create_array(name, shape=shape, dtype=dtype, chunks=shape,
                                   fill_value="" if name == "station" else 0)
        array.attrs["_ARRAY_DIMENSIONS"] = dims
    group["time"][:], group["station"][:] = np.arange(times), names
    (tmp_path / "view.json").write_text(json.dumps(
        {"variables": ["t"], "window": {"time": 1, "station": 1}, "batch": {"size": 1024}}))
    out = tmp_path / "out"
    done = measure(PROGRAM, "export", store, "--view", tmp_path / "view.json", "--to", "zarr", "-o",
                   out, "--memory", "64M", timeout=600)
    assert done.status == 0, done.error
    assert done.peak < 160 << 20
    copied = zarr.open_group(out, mode="r")["station_start"]
    assert copied.shape == (times * 32,) and copied.dtype == f"<U{width}"
    for first in range(0, times * 32, 16384):
        assert copied[first:first + 16384].tolist() == names * 512


def test_a_range_of_batches(export, batches):
    out, told = export("zarr", "--epoch", 1, "--batches", "3:6", "--codec", "blosc:lz4:5")
    copy = xr.open_zarr(out)
    assert told["batches"] == [3, 6] and np.array_equal(copy.y.values,
                                                        np.concatenate(batches[0]["y"][3:6]))


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_files_are_those_of_the_mount(batchfs, export, place, form):
    out, _ = export(form, "--epoch", 1)
    manifest = json.loads((out / "_batchfs.json").read_text())
    assert [f["file"] for f in manifest["files"]] == [f"batch-{b:06}.{form}"
                                                      for b in range(BATCHES)]
    assert [f["samples"] for f in manifest["files"]] == [7] * 13 + [5] and manifest["samples"] == 96
    for b in (0, 13):
        wanted = batchfs.bytes("batch", place / "s.zarr", "--view", place / "view.json", "--epoch",
                               1, "--batch", b, "--format", form)
        assert (out / f"batch-{b:06}.{form}").read_bytes() == wanted
    if form == "npz":
        assert zipfile.ZipFile(out / "batch-000000.npz").testzip() is None
    assert json.loads((out / "schema.json").read_text())["samples"] == 96


def check_samples(found, batches):
    """`found`: (key, sample number or None, x, y) in order."""
    tensors, samples = batches
    x, y = np.concatenate(tensors["x"]), np.concatenate(tensors["y"])
    assert len(found) == 96
    for i, (key, number, one_x, one_y) in enumerate(found):
        assert key == i and number in (None, samples[i])
        assert (one_x.dtype == x.dtype and np.array_equal(one_x, x[i])
                and np.array_equal(one_y, y[i]))


def test_webdataset_archives(export, batches):
    out, _ = export("webdataset", "--epoch", 1, "--shard-size", "60K")
    shards = [f["file"] for f in json.loads((out / "_batchfs.json").read_text())["files"]]
    assert len(shards) > 3
    found = []
    for shard in shards:
        members = {}
        with tarfile.open(out / shard) as archive:
            for member in archive:
                name, _, kind = member.name.partition(".")
                members.setdefault(name, {})[kind] = archive.extractfile(member).read()
        for name, parts in members.items():
            provenance = json.loads(parts["json"])
            assert provenance["epoch"] == 1 and set(parts) == {"x.npy", "y.npy", "json"}
            found.append((int(name), provenance["sample"], np.load(io.BytesIO(parts["x.npy"])),
                          np.load(io.BytesIO(parts["y.npy"]))))
    check_samples(found, batches)


def test_the_webdataset_package_reads_them(export, batches):
    webdataset = pytest.importorskip("webdataset")
    out, _ = export("webdataset", "--epoch", 1, "--shard-size", "60K")
    shards = sorted(str(p) for p in out.glob("*.tar"))
    found = [(int(s["__key__"]), s["json"]["sample"], s["x.npy"], s["y.npy"])
             for s in webdataset.WebDataset(shards, shardshuffle=False).decode()]
    check_samples(found, batches)


def read_mds(folder):
    """Reads the format described in streaming/base/format/mds/reader.py."""
    types = {"float32": np.float32}
    for shard in json.loads((folder / "index.json").read_text())["shards"]:
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"]
        count = np.frombuffer(data, np.uint32, 1)[0]
        assert count == shard["samples"]
        offsets = np.frombuffer(data, np.uint32, count + 1, 4)
        assert json.loads(data[4 * (count + 2):offsets[0]])["column_names"] == shard["column_names"]
        for i in range(count):
            sample, at = {}, offsets[i]
            for name, encoding, size in zip(shard["column_names"], shard["column_encodings"],
                                            shard["column_sizes"]):
                _, dtype, shape = encoding.split(":")
                sample[name] = np.frombuffer(data[at:at + size], types[dtype]).reshape(
                    [int(n) for n in shape.split(",")])
                at += size
            assert at == offsets[i + 1]
            yield sample


def test_mds_shards(export, batches):
    out, _ = export("mds", "--epoch", 1, "--shard-size", "60K")
    check_samples([(i, None, s["x"], s["y"]) for i, s in enumerate(read_mds(out))], batches)


def test_the_streaming_package_reads_them(export, batches):
    streaming = pytest.importorskip("streaming")
    out, _ = export("mds", "--epoch", 1, "--shard-size", "60K")
    dataset = streaming.StreamingDataset(local=str(out), shuffle=False, batch_size=1)
    check_samples([(i, None, dataset[i]["x"], dataset[i]["y"]) for i in range(len(dataset))],
                  batches)


@pytest.mark.parametrize("form", ["zarr", "webdataset", "mds", "npz"])
def test_tasks_give_the_same_bytes(export, tmp_path, form):
    small = ("--shard-size", "60K")
    whole, _ = export(form, *small, out=tmp_path / "whole")
    states = [export(form, *small, "--task", task, "--tasks", 3, out=tmp_path / "parts")[1]["state"]
              for task in (2, 0, 1)]
    assert states == ["task done", "task done", "finished"]
    same = contents(whole), contents(tmp_path / "parts")
    for each in same:
        each.pop(".batchfs.json")
    assert same[0] == same[1]
    _, told = export(form, *small, "--task", 0, "--tasks", 3, out=tmp_path / "parts")
    assert told["state"] == "finished" and told["objects_done"] == 0


@pytest.mark.parametrize("form", ["zarr", "webdataset"])
def test_killed_at_any_moment_it_continues_to_the_same_bytes(export, place, tmp_path, form):
    small = ("--shard-size", "20K", "--threads", "1")
    began = time.monotonic()
    whole, _ = export(form, *small, out=tmp_path / "whole")
    took = time.monotonic() - began
    out, draw = tmp_path / "out", random.Random(5)
    command = [PROGRAM, "export", place / "s.zarr", "--view", place / "view.json", "--to", form,
               "-o", out, *small]
    for _ in range(int(os.environ.get("BATCHFS_KILLS", "20")) // 2):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0, took))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        if (out / ("zarr.json" if form == "zarr"
                   else "_batchfs.json")).exists() and draw.random() < 0.5:
            shutil.rmtree(out)
    export(form, *small, out=out)
    assert contents(out) == contents(whole)


def test_refusals(batchfs, place, tmp_path):
    command = ["export", place / "s.zarr", "--view", place / "view.json", "--to", "npz"]
    assert "the epoch has 14 batches" in batchfs.refusal(*command, "-o", tmp_path / "o",
                                                         "--batches", "3:15")
    assert "lies in the store" in batchfs.refusal(*command, "-o", place / "s.zarr" / "o")
    assert batchfs.run(*command, "-o", tmp_path / "o", "--batches", "5:2").returncode == 2
    batchfs.bytes(*command, "-o", tmp_path / "o", "--batches", "0:2")
    before = contents(tmp_path / "o")
    assert '"epoch" differs' in batchfs.refusal(*command, "-o", tmp_path / "o", "--batches", "0:2",
                                                "--epoch", 1)
    assert contents(tmp_path / "o") == before
    dotted = {**VIEW, "tensors": {"a.b": {"variables": ["t2m"]}}}
    (tmp_path / "dotted.json").write_text(json.dumps(dotted))
    said = batchfs.refusal("export", place / "s.zarr", "--view", tmp_path / "dotted.json", "--to",
                           "webdataset", "-o", tmp_path / "d")
    assert "'a.b' has a dot" in said


def test_a_changed_view_is_another_run(batchfs, export, place, tmp_path):
    out, told = export("npz", "--task", 0, "--tasks", 2)
    assert told["state"] == "task done"
    before = contents(out)
    (tmp_path / "changed.json").write_text(json.dumps({**VIEW,
                                                       "order": {"shuffle": "global", "seed": 4}}))
    command = ["export", place / "s.zarr", "--to", "npz", "-o", out, "--task", 1, "--tasks", 2,
               "--view"]
    assert "of another run" in batchfs.refusal(*command, tmp_path / "changed.json")
    assert contents(out) == before
    assert export("npz", "--task", 1, "--tasks", 2)[1]["state"] == "finished"


@pytest.mark.parametrize("form", ["zarr", "webdataset", "mds", "npz"])
def test_a_full_disk_loses_nothing(batchfs, export, place, tmp_path, form):
    small, disk = ("--shard-size", "20K"), tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none",
                                            disk]).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        said = batchfs.refusal("export", place / "s.zarr", "--view", place / "view.json", "--to",
                               form, "-o", disk / "o", *small)
        assert "No space left" in said and "run the same command again" in said
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        export(form, *small, out=disk / "o")
        export(form, *small, out=tmp_path / "whole")
        assert contents(disk / "o") == contents(tmp_path / "whole")
    finally:
        subprocess.run(["umount", disk], check=True)
