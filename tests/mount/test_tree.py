"""The names, sizes and refusals of a mount, and its beginning and end."""

import errno
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import zarr
from watching import eventually, is_alive

pytestmark = pytest.mark.smoke

PROGRAM = os.environ.get("BATCHFS", "build/batchfs")


def names(path):
    return sorted(p.name for p in path.iterdir())


def test_the_root(mounted):
    assert names(mounted) == ["arrays", "store.json", "summary.txt", "views"]
    assert names(mounted / "views") == ["one", "two"]
    assert names(mounted / "views/one") == ["coords", "epoch-0000", "epoch-0001", "schema.json",
                                            "view.json"]


def test_an_epoch_lists_the_files_of_its_formats_and_the_json(mounted):
    assert names(mounted / "views/one/epoch-0001") == sorted(
        f"batch-{b:06d}.{form}" for b in range(7) for form in ("npy", "npz", "safetensors", "json"))
    listed = names(mounted / "views/two/epoch-0000")
    assert listed == sorted(f"batch-{b:06d}{form}" for b in range(5)
                            for form in ("", ".zarr", ".json"))


def test_schema_says_what_is_there(mounted):
    schema = json.loads((mounted / "views/one/schema.json").read_text())
    assert (schema["samples"], schema["batches"], schema["epochs"]) == (40, 7, 2)
    (tensor,) = schema["tensors"]
    first = np.load(mounted / "views/one/epoch-0000/batch-000000.npy")
    assert (tensor["shape"], tensor["dtype"]) == (list(first.shape), str(first.dtype))


@pytest.mark.says("size-exact")
def test_sizes_are_those_of_the_contents(mounted):
    for folder, _, files in os.walk(mounted):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                assert len(file.read()) == os.stat(path).st_size, path


@pytest.mark.parametrize("name", [
    "nothing", "views/three", "views/one/epoch-0", "views/one/epoch-00000", "views/one/epoch--001",
    "views/one/epoch-0000/batch-0.npy", "views/one/epoch-0000/batch-000007.npy",
    "views/one/epoch-0000/batch-000000.zarr", "views/one/epoch-0000/batch-0000000.npy",
    "views/two/epoch-0000/batch-000000.npy", "views/two/epoch-0000/batch-000000/z.npy",
    "views/one/rank-4-of-4", "views/one/rank-0-of-0", "views/one/rank-00-of-4",
    "views/one/rank-1-of-4/epoch-0", "arrays/t/chunks/99.0.0.0.npy", "arrays/t/chunks/0.0.0.npy",
    "arrays/t/chunks/00.0.0.0.npy", "arrays/nothing", "a" * 255,
])
def test_names_that_are_none(mounted, name):
    with pytest.raises(FileNotFoundError):
        os.stat(mounted / name)


@pytest.mark.parametrize("attempt", [
    lambda d: open(d / "new", "w"),
    lambda d: open(d / "summary.txt", "a"),
    lambda d: open(d / "views/one/epoch-0000/batch-000000.npy", "r+b"),
    lambda d: os.mkdir(d / "new"),
    lambda d: os.unlink(d / "summary.txt"),
    lambda d: os.rename(d / "summary.txt", d / "new"),
    lambda d: os.symlink("a", d / "new"),
    lambda d: os.truncate(d / "summary.txt", 0),
    lambda d: os.chmod(d / "summary.txt", 0o777),
    lambda d: os.utime(d / "summary.txt"),
    lambda d: os.rmdir(d / "views"),
])
def test_every_attempt_to_write_is_erofs(mounted, attempt):
    with pytest.raises(OSError) as error:
        attempt(mounted)
    assert error.value.errno == errno.EROFS


def test_arrays_are_zarrs(mounted, weather):
    group = zarr.open_group(weather, mode="r")
    for name, array in group.arrays():
        ours = np.load(mounted / "arrays" / name / "values.npy")
        assert ours.dtype == array.dtype
        assert np.array_equal(ours, array[...])
        assert np.array_equal(np.load(mounted / "arrays" / name / "values.npy", mmap_mode="r"),
                              array[...])


def test_chunks_are_decoded_and_clipped(mounted, weather):
    array = zarr.open_group(weather, mode="r")["t"]
    folder = mounted / "arrays/t/chunks"
    assert len(names(folder)) == array.nchunks
    for index in [(0, 0, 0, 0), (5, 1, 1, 0)]:  # the last is cut at the array's end
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, array.chunks))
        assert np.array_equal(np.load(folder / (".".join(map(str, index)) + ".npy")), array[box])


def test_the_metadata_is_as_stored(mounted, weather):
    stored = weather / "t" / ("zarr.json" if (weather / "t/zarr.json").exists() else ".zarray")
    assert json.loads((mounted / "arrays/t/metadata.json").read_text()) == json.loads(
        stored.read_text())


def test_status(mounted, good):
    np.load(mounted / "views/one/epoch-0000/batch-000000.npy")
    told = json.loads(good("status", mounted, "--json"))
    for key in ("pid", "passthrough", "bytes_fetched", "bytes_decoded", "bytes_delivered",
                "chunks_decoded", "batches_assembled", "reader_wait_seconds", "memory_budget",
                "memory_used", "errors"):
        assert key in told
    assert told["batches_assembled"] >= 1
    command = pathlib.Path(f"/proc/{told['pid']}/cmdline").read_bytes().decode()
    assert "batchfs" in command and str(mounted) in command
    text = good("status", mounted).decode()
    assert "assembled" in text and "EB" not in text and all(len(line) <= 80
                                                            for line in text.splitlines()[1:]), text
    assert ".batchfs" not in names(mounted)


def test_both_ways_of_reading_are_tested(mounted, request):
    on = json.loads((mounted / ".batchfs/status.json").read_text())["passthrough"]
    if "no-passthrough" in request.node.callspec.id:
        assert on is False
        return
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if os.geteuid() != 0 or release < (6, 9):
        pytest.skip("passthrough needs root and Linux 6.9: the passthrough tests ran without it")
    assert on is True


def test_the_kernel_lists_it_as_read_only(mounted):
    (line,) = [line.split() for line in open("/proc/mounts") if line.split()[1] == str(mounted)]
    assert line[2] == "fuse.batchfs"
    assert {"ro", "nosuid", "nodev"} <= set(line[3].split(","))


def test_umount_ends_the_daemon(weather, mount_at, good, tmp_path):
    directory = mount_at(weather, tmp_path / "mnt", {})
    pid = json.loads((directory / ".batchfs/status.json").read_text())["pid"]
    good("umount", directory)
    assert names(directory) == []
    assert eventually(lambda: not is_alive(pid))


@pytest.mark.says("umount-busy")
def test_a_busy_mount_is_refused_in_one_line_or_ends_lazily(weather, mount_at, fails, good,
                                                            tmp_path):
    directory = mount_at(weather, tmp_path / "mnt", {})
    with open(directory / "arrays/t/values.npy", "rb") as file:
        before = file.read(4096)
        assert "--lazy" in fails(1, "umount", directory, timeout=10)
        good("umount", "--lazy", directory, timeout=10)
        assert names(directory) == []
        file.seek(0)
        assert file.read(4096) == before


def test_mount_options_as_mount_writes_them(weather, mount_at, tmp_path):
    directory = mount_at(weather, tmp_path / "mnt", {}, "-o",
                         "ro,noauto,x-systemd.automount,memory=64M,no-passthrough")
    config = json.loads((directory / ".batchfs/config.json").read_text())
    assert config["memory"] == 64 << 20
    assert json.loads((directory / ".batchfs/status.json").read_text())["passthrough"] is False


def test_what_is_wrong_is_told_before_the_command_returns(fails, weather, tmp_path):
    (tmp_path / "mnt").mkdir()
    (tmp_path / "v.json").write_text('{"window": {"tim": 1}}')
    assert "did you mean 'time'" in fails(1, "mount", weather, tmp_path / "mnt", "--view",
                                          tmp_path / "v.json")
    assert "not_there" in fails(1, "mount", tmp_path / "not_there.zarr", tmp_path / "mnt")
    (tmp_path / "a.json").write_text('{"name": "v", "window": {"time": 1}}')
    assert "two views" in fails(1, "mount", weather, tmp_path / "mnt", "--view",
                                tmp_path / "a.json", "--view", tmp_path / "a.json")
    assert not os.path.ismount(tmp_path / "mnt")


def test_what_is_mounted_is_not_covered(weather, mount_at, fails, good, tmp_path):
    directory = mount_at(weather, tmp_path / "mnt", {})
    assert "already mounted" in fails(1, "mount", weather, directory)
    good("umount", directory)
    assert not os.path.ismount(directory)


def test_the_foreground_ends_with_a_signal(weather, tmp_path):
    directory = tmp_path / "mnt"
    directory.mkdir()
    with subprocess.Popen([PROGRAM, "mount", "-f", weather, directory],
                          stderr=subprocess.PIPE) as process:
        assert eventually(lambda: os.path.ismount(directory))
        assert names(directory / "arrays") != []
        process.terminate()
        process.wait(20)
    assert process.returncode == 0
    assert not os.path.ismount(directory)


def test_a_store_whose_arrays_do_not_fit_together_can_be_mounted(mount_at, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    for name, length in (("a", 3), ("b", 5)):  # both have a first dimension without a name
        root.create_array(name, shape=(length,), dtype="i4")[...] = np.arange(length)
    directory = mount_at(tmp_path / "a.zarr", tmp_path / "mnt", {})
    assert np.array_equal(np.load(directory / "arrays/a/values.npy"), np.arange(3))
    assert np.array_equal(np.load(directory / "arrays/b/values.npy"), np.arange(5))
    assert "do not form a dataset" in (directory / ".batchfs/log").read_text()
