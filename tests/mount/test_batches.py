"""Batches read through the kernel, against xarray."""

import hashlib
import json
import mmap
import os
import shutil
import subprocess
import threading

import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import load_file

pytestmark = pytest.mark.smoke

EPOCH = "views/one/epoch-0000"


def samples(batch_json):
    return json.loads(batch_json.read_text())["samples"]


def values(weather, name="t"):
    return xr.open_zarr(weather)[name].values


def expected(weather, epoch, batch):
    return values(weather)[samples(epoch / f"batch-{batch:06d}.json")][:, None]


@pytest.mark.parametrize("batch", range(7))
def test_npy_is_xarrays(mounted, weather, batch):
    epoch = mounted / EPOCH
    ours = np.load(epoch / f"batch-{batch:06d}.npy")
    assert ours.shape[0] == (4 if batch == 6 else 6)
    assert np.array_equal(ours, expected(weather, epoch, batch))


def test_an_epoch_holds_every_sample_once(mounted):
    for epoch in ("epoch-0000", "epoch-0001", "epoch-0123"):
        found = [s for b in range(7)
                 for s in samples(mounted / "views/one" / epoch / f"batch-{b:06d}.json")]
        assert sorted(found) == list(range(40))


def test_every_format_holds_the_same(mounted, weather):
    epoch = mounted / EPOCH
    x = expected(weather, epoch, 2)
    assert np.array_equal(np.load(epoch / "batch-000002.npz")["t"], x)
    assert np.array_equal(load_file(epoch / "batch-000002.safetensors")["t"], x)


def test_several_tensors_are_a_directory(mounted, weather):
    epoch = mounted / "views/two/epoch-0000"
    rows = samples(epoch / "batch-000001.json")
    assert rows == list(range(9, 18))
    for name in ("t", "q"):
        ours = np.load(epoch / "batch-000001" / f"{name}.npy")
        assert np.array_equal(ours, values(weather, name)[rows][:, None].astype("f4"),
                              equal_nan=True)


def test_each_file_of_a_batch_is_counted_once(mounted):
    def delivered():
        status = json.loads((mounted / ".batchfs/status.json").read_text())
        return status["bytes_delivered"], status["batches_opened"]

    folder = mounted / "views/two/epoch-0007/batch-000002"
    before = delivered()
    sizes = [len((folder / f"{name}.npy").read_bytes()) for name in ("t", "q")]
    after = delivered()
    assert after[0] - before[0] == sum(sizes)
    assert after[1] - before[1] == 1


def test_the_zarr_format_opens_with_xarray(mounted, weather):
    batch = mounted / "views/two/epoch-0000/batch-000001.zarr"
    opened = xr.open_zarr(batch)
    rows = samples(batch.with_suffix(".json"))
    assert opened.t.dims[0] == "sample"
    assert np.array_equal(opened.t.values, values(weather, "t")[rows][:, None])
    assert np.array_equal(opened.q.values, values(weather, "q")[rows][:, None].astype("f4"),
                          equal_nan=True)
    assert np.array_equal(opened.latitude.values, xr.open_zarr(weather).latitude.values)


def test_times_of_other_calendars_are_decoded_from_the_zarr_format(mount_at, tmp_path):
    times = xr.date_range("2000-02-27", periods=8, freq="D", calendar="noleap", use_cftime=True)
    xr.Dataset({"v": ("time", np.arange(8.0))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", zarr_format=2)
    view = {"name": "v", "select": {"time": {"from": "2000-02-28"}}, "window": {"time": 2},
            "batch": 3, "formats": ["zarr"]}
    mnt = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view})
    opened = xr.open_zarr(mnt / "views/v/epoch-0000/batch-000000.zarr")
    assert opened.v.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert opened.time_start.values.tolist() == times[1::2][:3].tolist()


@pytest.mark.parametrize("mode", ["r", "c"])
def test_mapping(mounted, weather, mode):
    epoch = mounted / EPOCH
    assert np.array_equal(np.load(epoch / "batch-000003.npy", mmap_mode=mode),
                          expected(weather, epoch, 3))


def test_a_shared_mapping_outlives_its_file(mounted, weather):
    epoch = mounted / EPOCH
    with open(epoch / "batch-000003.npy", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    for batch in range(7):
        (epoch / f"batch-{batch:06d}.npy").read_bytes()
    assert np.array_equal(np.frombuffer(mapped, "f4", offset=4096),
                          expected(weather, epoch, 3).ravel())


def test_cat_cp_and_dd_read_the_same_bytes(mounted, tmp_path):
    batch = mounted / EPOCH / "batch-000001.npy"
    whole = batch.read_bytes()
    assert len(whole) == batch.stat().st_size
    assert subprocess.run(["cat", batch], capture_output=True, check=True).stdout == whole
    subprocess.run(["cp", batch, tmp_path / "copy"], check=True)
    assert (tmp_path / "copy").read_bytes() == whole
    subprocess.run(["dd", f"if={batch}", f"of={tmp_path / 'dd'}", "bs=777", "status=none"],
                   check=True)
    assert (tmp_path / "dd").read_bytes() == whole
    shutil.copyfile(batch, tmp_path / "sendfile")
    assert (tmp_path / "sendfile").read_bytes() == whole


def test_reads_anywhere(mounted):
    batch = mounted / EPOCH / "batch-000001.npy"
    whole = batch.read_bytes()
    with open(batch, "rb", buffering=0) as file:
        for offset, size in [(0, 1), (4095, 2), (5000, 1 << 20), (len(whole) - 1, 10),
                             (len(whole), 10), (1 << 40, 1)]:
            assert os.pread(file.fileno(), size, offset) == whole[offset:offset + size]


def test_data_begins_on_a_page(mounted):
    data = (mounted / EPOCH / "batch-000000.npy").read_bytes()
    assert 10 + int.from_bytes(data[8:10], "little") == 4096
    data = (mounted / EPOCH / "batch-000000.safetensors").read_bytes()
    assert (8 + int.from_bytes(data[:8], "little")) % 4096 == 0


@pytest.mark.parametrize("world", [2, 3, 8])
def test_ranks_have_the_batches_of_the_epoch_in_turn(mounted, world):
    view = mounted / "views/one"
    for rank in range(world):
        part = view / f"rank-{rank}-of-{world}" / "epoch-0000"
        batches = range(rank, 7, world)
        assert sorted(p.name for p in part.glob("*.npy")) == [f"batch-{b:06d}.npy"
                                                              for b in range(len(batches))]
        for b, whole in enumerate(batches):
            assert (part / f"batch-{b:06d}.npy").read_bytes() == \
                (view / f"epoch-0000/batch-{whole:06d}.npy").read_bytes()


def test_the_command_line_gives_the_same_bytes(mounted, good, weather):
    directory = mounted
    view = directory.parent / f"{directory.name}-one.json"
    for form in ("npy", "npz", "safetensors"):
        assert good("batch", weather, "--view", view, "--batch", 4, "--format", form) == \
            (directory / EPOCH / f"batch-000004.{form}").read_bytes()


def test_many_readers_at_once(mounted):
    paths = [mounted / "views/one" / f"epoch-{e:04d}" / f"batch-{b:06d}.npy" for e in range(4, 8)
             for b in range(7)]
    found = [[] for _ in range(8)]

    def read(mine, start):
        for i in range(len(paths)):
            path = paths[(start + 5 * i) % len(paths)]
            mine.append((path.parent.name + path.name,
                         hashlib.sha256(path.read_bytes()).hexdigest()))

    threads = [threading.Thread(target=read, args=(mine, i)) for i, mine in enumerate(found)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(sorted(mine) == sorted(found[0]) and len(set(mine)) == len(paths) for mine in found)


def test_a_damaged_chunk_is_eio_and_the_mount_lives_on(weather, mount_at, tmp_path):
    store = tmp_path / "store.zarr"
    shutil.copytree(weather, store)
    name = "t/3.0.0.0" if (store / "t/3.0.0.0").exists() else "t/c/3/0/0/0"
    chunk = store / name
    data = bytearray(chunk.read_bytes())
    data[:] = b"\xa5" * len(data)
    chunk.write_bytes(data)
    view = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 7}}
    directory = mount_at(store, tmp_path / "mnt", {"v": view})
    epoch = directory / "views/v/epoch-0000"
    good_batches = bad = 0
    for batch in sorted(epoch.glob("*.npy")):
        assert batch.stat().st_size > 4096
        if any(21 <= s < 28 for s in samples(batch.with_suffix(".json"))):
            with pytest.raises(OSError) as error:
                batch.read_bytes()
            assert error.value.errno == 5
            bad += 1
        else:
            batch.read_bytes()
            good_batches += 1
    assert bad > 0 and good_batches + bad == 6
    assert "t/3.0.0.0" in (directory / ".batchfs/log").read_text()
    assert (directory / "arrays/t/chunks/0.0.0.0.npy").stat().st_size > 0
