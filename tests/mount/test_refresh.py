"""`batchfs refresh`: what is opened afterwards sees the new steps of a store that grows, what is
open keeps the old ones."""

import errno
import json
import os
import signal
import threading
import time

import numpy as np
import pytest
import zarr
from growing import VIEW, append, batches, create, generations, status, steps, values

@pytest.fixture(params=[[], ["--no-passthrough"]], ids=["passthrough", "no-passthrough"])
def grown(request, mount_at, tmp_path):
    """A mounted store of 8 steps: (store, directory)."""
    store = tmp_path / "s.zarr"
    create(store, 8)
    return store, mount_at(store, tmp_path / "mnt", {"train": VIEW}, *request.param)


@pytest.mark.smoke
@pytest.mark.says("refresh-new")
def test_new_steps_are_seen_by_what_is_opened_afterwards(good, grown):
    store, directory = grown
    before = status(directory)["snapshot"]
    append(store, 8, 5)
    assert len(batches(directory)) == 2
    answer = json.loads(good("refresh", directory, "--json"))
    assert answer["changed"] and answer["views"] == [
        {"name": "train", "samples": 13, "batches": 4, "samples_before": 8, "batches_before": 2}]
    assert len(batches(directory)) == 4
    assert np.array_equal(values(directory), zarr.open_array(store / "t", mode="r")[:])
    assert np.load(directory / "arrays/t/values.npy").shape == (13, 6)
    after = status(directory)["snapshot"]
    assert after["id"] != before["id"] and after == answer["snapshot"]
    assert json.loads((directory / "views/train/epoch-0000/batch-000003.json")
                          .read_text())["snapshot"] == {"id": after["id"]}
    assert json.loads((directory / "store.json").read_text())["snapshot"] == after["id"]


def test_the_command_says_what_has_changed(good, grown):
    store, directory = grown
    assert good("refresh", directory).decode().startswith("nothing has changed: snapshot ")
    assert status(directory)["generations"] == 1
    append(store, 8, 4)
    assert good("refresh", directory).decode().splitlines()[1] == "view train: 3 batches, 2 before"
    assert good("refresh", directory).decode().startswith("nothing has changed: snapshot ")


@pytest.mark.says("refresh-open", "refresh-released")
def test_open_files_and_directories_keep_the_old_steps(good, grown):
    store, directory = grown
    epoch = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
    batch = os.open("batch-000001.npy", os.O_RDONLY, dir_fd=epoch)
    array = os.open(directory / "arrays/t/values.npy", os.O_RDONLY)
    size, old = os.fstat(array).st_size, os.pread(batch, 1 << 20, 0)
    append(store, 8, 8)
    good("refresh", directory)
    assert os.pread(batch, 1 << 20, 0) == old
    assert os.fstat(array).st_size == size and len(os.pread(array, 1 << 20, 0)) == size
    assert sorted(n for n in os.listdir(epoch)
                  if n.endswith(".npy")) == ["batch-000000.npy", "batch-000001.npy"]
    again = os.open("batch-000000.npy", os.O_RDONLY, dir_fd=epoch)
    assert json.loads(open(os.open("batch-000000.json", os.O_RDONLY,
                                   dir_fd=epoch)).read())["samples"] == [0, 1, 2, 3]
    with pytest.raises(FileNotFoundError):
        os.open("batch-000002.npy", os.O_RDONLY, dir_fd=epoch)
    assert len(batches(directory)) == 4
    assert generations(directory, 2) == 2
    for descriptor in (batch, array, again, epoch):
        os.close(descriptor)
    assert generations(directory, 1) == 1
    assert len(batches(directory)) == 4


@pytest.mark.says("refresh-cwd")
def test_a_mapping_and_a_current_directory_keep_the_old_steps(good, grown):
    store, directory = grown
    mapped = np.load(directory / "views/train/epoch-0000/batch-000001.npy", mmap_mode="r")
    before = os.getcwd()
    os.chdir(directory / "views/train/epoch-0000")
    try:
        append(store, 8, 8)
        good("refresh", directory)
        assert len(os.listdir(".")) == 4
        with pytest.raises(FileNotFoundError):
            os.getcwd()
        assert np.load("batch-000000.npy")[0, 0, 0] == 0
        assert not os.path.exists("batch-000002.npy")
    finally:
        os.chdir(before)
    assert mapped[3, 0, 5] == 705
    del mapped
    assert generations(directory, 1) == 1


def test_names_that_were_not_there_appear(good, grown):
    store, directory = grown
    name = directory / "views/train/epoch-0000/batch-000002.npy"
    assert not name.exists()
    append(store, 8, 4)
    good("refresh", directory)
    assert np.load(name)[0, 0, 0] == 800


def test_generations_go_when_nobody_uses_them(good, grown):
    store, directory = grown
    for turn in range(24):
        append(store, 8 + turn, 1)
        good("refresh", directory)
        got = values(directory)
        assert np.array_equal(got[:, 0], np.arange(9 + turn) * 100)
    assert generations(directory, 1) == 1


def test_too_many_generations_in_use_are_refused(good, fails, grown):
    store, directory = grown
    held = []
    for turn in range(7):
        held.append(os.open(directory / "views/train/epoch-0000/batch-000000.npy", os.O_RDONLY))
        append(store, 8 + turn, 1)
        good("refresh", directory)
    append(store, 15, 1)
    assert "close their files" in fails(1, "refresh", directory)
    assert len(values(directory)) == 15
    os.close(held.pop(0))
    assert generations(directory, 7) == 7
    good("refresh", directory)
    assert len(values(directory)) == 16
    for descriptor in held:
        os.close(descriptor)
    assert generations(directory, 1) == 1


@pytest.mark.says("refresh-refused")
def test_what_does_not_fit_the_views_is_refused(good, fails, grown):
    store, directory = grown
    os.rename(store / "t", store.parent / "t")
    assert "'t'" in fails(1, "refresh", directory)
    assert len(batches(directory)) == 2 and status(directory)["generations"] == 1
    assert "could not be read again" in (directory / ".batchfs/log").read_text()
    os.rename(store.parent / "t", store / "t")
    # Half of a resize: one array is longer than its coordinate.
    zarr.open_array(store / "t").resize((12, 6))
    fails(1, "refresh", directory)
    zarr.open_array(store / "t").resize((8, 6))
    assert good("refresh", directory).decode().startswith("nothing has changed")
    assert np.array_equal(values(directory)[:, 0], np.arange(8) * 100)


def test_a_mount_without_views_grows(good, mount_at, tmp_path):
    create(tmp_path / "s.zarr", 8)
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {})
    append(tmp_path / "s.zarr", 8, 4)
    good("refresh", directory)
    assert np.load(directory / "arrays/t/values.npy").shape == (12, 6)
    assert (directory / "arrays/t/chunks/2.0.npy").exists()


def test_a_chunk_that_grew_is_read_anew(good, grown):
    """Appending fills the last chunk, whose object changes."""
    store, directory = grown
    append(store, 8, 2)
    good("refresh", directory)
    assert len(values(directory)) == 10
    append(store, 10, 2)
    good("refresh", directory)
    assert np.array_equal(values(directory)[:, 0], np.arange(12) * 100)


def test_what_is_no_mount(fails, tmp_path):
    assert "nothing is mounted there" in fails(1, "refresh", tmp_path)


def test_readers_while_the_store_grows(good, grown):
    store, directory = grown
    wrong, stop, reads = [], threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                epoch = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
                names = sorted(n for n in os.listdir(epoch) if n.endswith(".npy"))
                for number, name in enumerate(names):
                    with open(os.open(name, os.O_RDONLY, dir_fd=epoch), "rb") as file:
                        got = np.load(file)[:, 0, 0]
                    if not np.array_equal(got, (number * 4 + np.arange(len(got))) * 100):
                        wrong.append((name, got))
                    reads.append(name)
                os.close(epoch)
            except OSError as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(20):
        append(store, 8 + 4 * turn, 4)  # whole chunks: those of earlier steps stay as they are
        good("refresh", directory)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == [] and len(reads) > 100
    assert len(batches(directory)) == 22
    assert generations(directory, 1) == 1


@pytest.mark.says("refresh-death")
def test_another_daemon_has_the_newest_state(good, grown):
    store, directory = grown
    epoch = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
    held = os.open("batch-000000.npy", os.O_RDONLY, dir_fd=epoch)
    append(store, 8, 8)
    good("refresh", directory)
    before = status(directory)
    batch = os.open(directory / "views/train/epoch-0000/batch-000003.npy", os.O_RDONLY)
    shown = os.pread(batch, 1 << 20, 0)
    os.kill(before["pid"], signal.SIGKILL)
    until = time.monotonic() + 30
    while status(directory)["pid"] == before["pid"] and time.monotonic() < until:
        time.sleep(0.1)
    assert status(directory)["snapshot"] == before["snapshot"]
    assert os.pread(batch, 1 << 20, 0) == shown
    assert len(batches(directory)) == 4
    with pytest.raises(OSError) as failed:
        os.open("batch-000001.npy", os.O_RDONLY, dir_fd=epoch)
    assert failed.value.errno == errno.ESTALE
    if status(directory)["passthrough"]:
        assert len(os.pread(held, 1 << 20, 0)) > 4096
    else:
        with pytest.raises(OSError) as failed:
            os.pread(held, 1 << 20, 0)
        assert failed.value.errno == errno.ESTALE
    append(store, 16, 4)
    good("refresh", directory)
    assert np.array_equal(values(directory)[:, 0], np.arange(20) * 100)
    assert generations(directory, 2) == 2  # that of the daemon that died stays
    assert os.pread(batch, 1 << 20, 0) == shown
    for descriptor in (batch, held, epoch):
        os.close(descriptor)


def test_another_batchfs_takes_the_newest_state_over(good, grown):
    store, directory = grown
    append(store, 8, 4)
    good("refresh", directory)
    before = status(directory)
    good("mount", store, directory, "--view", directory.parent / "mnt-train.json", "--replace")
    assert (status(directory)["pid"] != before["pid"]
            and status(directory)["snapshot"] == before["snapshot"])
    assert len(batches(directory)) == 3


def test_at_intervals(mount_at, tmp_path):
    store = tmp_path / "s.zarr"
    create(store, 8)
    directory = mount_at(store, tmp_path / "mnt", {"train": VIEW}, "-o", "refresh=1s")
    append(store, 8, 4)
    until = time.monotonic() + 30
    while len(batches(directory)) != 3 and time.monotonic() < until:
        time.sleep(0.1)
    assert np.array_equal(values(directory)[:, 0], np.arange(12) * 100)
    assert generations(directory, 1) == 1


def test_batches_of_the_same_state_are_the_same_in_every_mount(mount_at, tmp_path):
    create(tmp_path / "s.zarr", 8)
    mounts = [mount_at(tmp_path / "s.zarr", tmp_path / "first", {"train": VIEW})]
    time.sleep(1.1)  # the time of reading has a resolution of seconds
    mounts.append(mount_at(tmp_path / "s.zarr", tmp_path / "second", {"train": VIEW}))
    assert status(mounts[0])["snapshot"]["read"] < status(mounts[1])["snapshot"]["read"]
    files = [path.relative_to(mounts[0])
             for path in sorted((mounts[0] / "views/train/epoch-0000").iterdir()) if path.is_file()]
    assert any(path.suffix == ".json" for path in files)
    for path in files:
        assert (mounts[0] / path).read_bytes() == (mounts[1] / path).read_bytes(), path


def test_times_that_make_no_sense(fails, tmp_path):
    for text in ("0s", "-5m", "1mo", "soon"):
        assert "'" + text + "'" in fails(2, "mount", tmp_path, tmp_path, f"--refresh={text}")
    assert "never changes" in fails(1, "mount", "http://127.0.0.1:9/s", tmp_path, "--refresh",
                                    "10m", "--tag", "v1")


def test_icechunk(good, mount_at, tmp_path):
    icechunk = pytest.importorskip("icechunk",
                                   reason="tools/dependencies test installs the icechunk package")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "r")))
    session = repository.writable_session("main")
    steps(0, 8)[0].to_zarr(session.store, zarr_format=3, consolidated=False,
                           encoding=steps(0, 8)[1])
    first = session.commit("first")
    repository.create_tag("v1", first)
    directory = mount_at(tmp_path / "r", tmp_path / "mnt", {"train": VIEW})
    tagged = mount_at(tmp_path / "r", tmp_path / "tagged", {"train": VIEW}, "--tag", "v1")
    assert status(directory)["snapshot"]["id"] == first
    held = os.open(directory / "views/train/epoch-0000/batch-000001.json", os.O_RDONLY)
    session = repository.writable_session("main")
    steps(8, 3)[0].to_zarr(session.store, append_dim="time", consolidated=False)
    second = session.commit("second")
    assert good("refresh", directory).decode().splitlines() == [f"snapshot {second}",
                                                                "view train: 3 batches, 2 before"]
    assert np.array_equal(values(directory)[:, 0], np.arange(11) * 100)
    provenance = json.loads((directory / "views/train/epoch-0000/batch-000001.json").read_text())
    assert provenance["snapshot"]["id"] == second
    assert json.loads(os.pread(held, 1 << 20, 0))["snapshot"]["id"] == first
    assert "of branch main" in (directory / "summary.txt").read_text()
    assert good("refresh", tagged).decode() == "nothing changes: it shows tag v1 for good\n"
    assert good("refresh", directory).decode() == f"nothing has changed: snapshot {second}\n"
    os.close(held)


def test_references(good, mount_at, tmp_path):
    """The set is read again; its file is one of its folder."""
    store = tmp_path / "s.zarr"
    create(store, 8, zarr_format=2)

    def write():
        refs = {str(p.relative_to(store)): (p.read_text() if p.name.startswith(".")
                                            else [f"s.zarr/{p.relative_to(store)}"])
                for p in store.rglob("*") if p.is_file()}
        (tmp_path / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))

    write()
    directory = mount_at(tmp_path / "set.json", tmp_path / "mnt", {"train": VIEW})
    assert good("refresh", directory).decode().startswith("nothing has changed")
    append(store, 8, 4)
    write()
    good("refresh", directory)
    assert np.array_equal(values(directory)[:, 0], np.arange(12) * 100)
