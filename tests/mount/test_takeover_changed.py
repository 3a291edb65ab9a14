"""The daemon dies, and the store is another one when the next reads it: it shows the state of
before, or a new one."""

import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
import zarr
from growing import VIEW, append, batches, create, generations, status, steps, values

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
from test_recovery import MODES, kill
from test_takeover_versions import change_chunks, is_stale


def the_advice(said):
    """The command that a message advises, without its program."""
    found = re.search("run `batchfs ([^`]*)`", said)
    assert found is not None, said
    return found[1]


class Plain:
    """A store in a folder."""

    def __init__(self, folder):
        self.path = folder / "s.zarr"
        create(self.path, 8)

    def append(self, first, count):
        append(self.path, first, count)


class Consolidated(Plain):
    """A store with consolidated metadata, format 2."""

    def __init__(self, folder):
        self.path = folder / "s.zarr"
        dataset, encoding = steps(0, 8)
        dataset.to_zarr(self.path, zarr_format=2, consolidated=True, encoding=encoding)

    def append(self, first, count):
        steps(first, count)[0].to_zarr(self.path, append_dim="time", consolidated=True)


class Zip(Plain):
    """A zip archive, which is replaced by a longer one."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder, self.path = self.path, folder / "s.zip"
        self.pack()

    def append(self, first, count):
        append(self.folder, first, count)
        self.pack()

    def pack(self):
        with zipfile.ZipFile(self.path.with_suffix(".new"), "w") as out:
            for path in sorted(self.folder.rglob("*")):
                if path.is_file():
                    out.write(path, path.relative_to(self.folder))
        os.replace(self.path.with_suffix(".new"), self.path)


class ReferenceSet(Plain):
    """References to the chunks of a store in another folder."""

    def __init__(self, folder):
        self.folder = folder / "data/s.zarr"
        self.path = folder / "set/set.json"
        self.path.parent.mkdir()
        create(self.folder, 8, zarr_format=2)
        self.write()
        self.options = ["--virtual", f"file://{folder}/data/"]

    def append(self, first, count):
        append(self.folder, first, count)
        self.write()

    def write(self):
        self.path = self.path.with_suffix(".json")
        refs = {str(p.relative_to(self.folder)): (p.read_text() if p.name.startswith(".")
                                                  else [f"file://{p}", 0, p.stat().st_size])
                for p in self.folder.rglob("*") if p.is_file()}
        self.path.write_text(json.dumps({"version": 1, "refs": refs}))


class ParquetSet(ReferenceSet):
    """The same in Parquet files."""

    def write(self):
        df = pytest.importorskip("kerchunk.df", reason="tools/dependencies test installs kerchunk")
        super().write()
        refs = json.loads(self.path.with_suffix(".json").read_text())
        self.path = self.path.with_suffix(".parq")
        fresh = self.path.with_suffix(".new")
        df.refs_to_dataframe(refs, str(fresh), record_size=4)
        shutil.rmtree(self.path, ignore_errors=True)
        fresh.rename(self.path)


KINDS = [Plain, Consolidated, Zip, ReferenceSet, ParquetSet]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def store(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def mounted(mount_at, store, tmp_path):
    """mounted(*options): the directory."""
    return lambda *options: mount_at(store.path, tmp_path / "mnt", {"train": VIEW},
                                     *getattr(store, "options", []), *options)


def shows(directory, samples):
    """Every path is of one state, with its labels."""
    assert np.array_equal(values(directory)[:, 0], np.arange(samples) * 100)
    assert np.array_equal(np.load(directory / "views/train/coords/time.npy"), np.arange(samples))
    assert json.loads((directory / "views/train/schema.json").read_text())["samples"] == samples
    batch = json.loads((directory / "views/train/epoch-0000/batch-000001.json").read_text())
    assert batch["snapshot"]["id"] == status(directory)["snapshot"]["id"]
    assert np.load(directory / "arrays/t/values.npy").shape == (samples, 6)


@pytest.mark.says("death-appended")
@pytest.mark.parametrize("mode", MODES)
def test_a_store_that_has_grown_is_shown_anew(good, mounted, store, mode):
    """Whole chunks and a part of one; then the mount works like any other."""
    directory = mounted(*MODES[mode])
    shows(directory, 8)
    folder = os.open(directory / "views/train/epoch-0000", os.O_RDONLY | os.O_DIRECTORY)
    with open(directory / "views/train/epoch-0000/batch-000001.npy", "rb", buffering=0) as file:
        before = os.pread(file.fileno(), 1 << 20, 0)
        store.append(8, 6)
        shows(directory, 8)
        kill(directory)
        shows(directory, 14)
        assert is_stale(lambda: os.open("batch-000000.npy", os.O_RDONLY, dir_fd=folder))
        if mode == "passthrough" and status(directory)["passthrough"]:
            assert os.pread(file.fileno(), 1 << 20, 0) == before
        else:
            assert is_stale(lambda: os.pread(file.fileno(), 1 << 20, 0))
    os.close(folder)
    assert "the store has changed since it was read" in (directory / ".batchfs/log").read_text()
    kill(directory)
    shows(directory, 14)
    assert "the store has changed" not in (directory / ".batchfs/log").read_text()
    store.append(14, 4)
    good("refresh", directory)
    shows(directory, 18)
    assert generations(directory, 1) == 1


@pytest.mark.says("death-versions")
@pytest.mark.parametrize("readings", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_versions_outlive_the_daemon_after_a_refresh(good, mounted, store, mode, readings):
    if isinstance(store, Zip):
        pytest.skip("an archive is one object: its metadata change with its chunks")
    directory = mounted(*MODES[mode])
    for turn in range(readings):
        store.append(8 + 4 * turn, 4)
        good("refresh", directory)
    samples = 8 + 4 * readings
    shows(directory, samples)
    kill(directory)
    shows(directory, samples)
    change_chunks(getattr(store, "folder", store.path) / "t")
    kill(directory)
    batch = directory / "views/train/epoch-0000/batch-000001.npy"
    assert is_stale(batch.read_bytes)
    assert is_stale((directory / "arrays/t/values.npy").read_bytes)
    assert len(batches(directory)) == samples // 4
    good("refresh", directory, "--force")
    assert sorted(values(directory)[:, 0]) == [100 * step for step in range(samples)]


@pytest.mark.says("refresh-forced")
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("kind", [ReferenceSet, ParquetSet])
def test_a_set_whose_chunks_were_rewritten(good, mount_at, tmp_path, kind, killed):
    """The set itself is as before: a forced refresh shows them. Chunks that are not in memory are
    stale until then."""
    store = kind(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW}, *store.options)
    shows(directory, 8)
    change_chunks(store.folder / "t")
    if killed:
        kill(directory)
    assert good("refresh", directory).decode().startswith("nothing has changed")
    for chunk in ("0.0", "1.0") if killed else ():
        assert is_stale((directory / f"arrays/t/chunks/{chunk}.npy").read_bytes)
    assert json.loads(good("refresh", directory, "--force", "--json"))["changed"]
    assert np.array_equal(values(directory)[:, 0], np.roll(np.arange(8), 4) * 100)
    assert np.array_equal(np.load(directory / "arrays/t/values.npy")[:, 0],
                          np.roll(np.arange(8), 4) * 100)
    kill(directory)
    assert np.array_equal(values(directory)[:, 0], np.roll(np.arange(8), 4) * 100)


@pytest.mark.says("death-versions")
def test_files_outside_of_the_store_keep_their_versions(mount_at, tmp_path):
    store = ReferenceSet(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW}, *store.options)
    shows(directory, 8)
    change_chunks(store.folder / "t")
    kill(directory)
    assert is_stale((directory / "views/train/epoch-0000/batch-000001.npy").read_bytes)


@pytest.mark.says("death-appended")
def test_a_store_that_is_incomplete_is_waited_for(good, mount_at, tmp_path):
    """Half of an append: one array is longer than its coordinate."""
    store = Plain(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    shows(directory, 8)
    whole = shutil.copytree(store.path, tmp_path / "copy.zarr")
    append(whole, 8, 4)
    zarr.open_array(store.path / "t").resize((12, 6))
    pid = status(directory)["pid"]
    waited = threading.Timer(3, lambda: shutil.copytree(whole, store.path, dirs_exist_ok=True))
    waited.start()
    os.kill(pid, 9)
    shows(directory, 12)
    waited.join()
    assert status(directory)["pid"] != pid


@pytest.mark.says("death-appended")
def test_another_batchfs_does_not_take_over_unasked(good, fails, mount_at, tmp_path):
    """`mount --replace` of a store that has grown: the old daemon serves on until a refresh."""
    store = Plain(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    view = tmp_path / "mnt-train.json"
    pid = status(directory)["pid"]
    store.append(8, 4)
    said = fails(1, "mount", store.path, directory, "--view", view, "--replace")
    assert status(directory)["pid"] == pid
    shows(directory, 8)
    advised = the_advice(said)
    good(*advised.split(), directory)
    good("mount", store.path, directory, "--view", view, "--replace")
    assert status(directory)["pid"] != pid
    shows(directory, 12)


DECIDED = {  # views whose samples depend on the values of `m`
    "skip": {"variables": ["m"], "missing": {"nan": "skip"}},
    "mask": {"samples": {"mask": {"variable": "m", "above": 0.5}}},
    "weights": {"samples": {"weights": {"variable": "m"}}, "epochs": {"samples": 12}},
    "groups": {"split": {"groups": {"m": "value"}, "fractions": {"train": 0.5, "val": 0.5},
                         "part": "train"}},
}


@pytest.mark.says("death-appended")
@pytest.mark.parametrize("decided", DECIDED)
def test_the_advice_helps_where_chunks_decide_on_the_samples(good, fails, mount_at, tmp_path,
                                                             decided):
    """They are rewritten under unchanged metadata, which a refresh alone does not see."""
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    dims = {"_ARRAY_DIMENSIONS": ["time"]}
    group.create_array("t", shape=(12,), chunks=(4,), dtype="f4", attributes=dims)[:] = np.arange(
        12)
    m = group.create_array("m", shape=(12,), chunks=(4,), dtype="f8", fill_value=-1,
                           attributes=dims)
    values = np.arange(12) % 4 + 1.0
    values[3] = np.nan if decided == "skip" else 0
    m[:] = values
    view = tmp_path / "mnt-train.json"
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {
        "train": {"window": {"time": 1}, "variables": ["t"], "batch": 2} | DECIDED[decided]})
    pid = status(directory)["pid"]
    m[:] = values[::-1]
    said = fails(1, "mount", tmp_path / "s.zarr", directory, "--view", view, "--replace")
    advised = the_advice(said)
    good(*advised.split(), directory)
    good("mount", tmp_path / "s.zarr", directory, "--view", view, "--replace")
    assert status(directory)["pid"] != pid


@pytest.mark.says("death-appended")
@pytest.mark.parametrize("expired", [False, True])
def test_a_repository_is_shown_as_before(good, mount_at, tmp_path, expired):
    """Its older snapshot is still there, unless somebody removed it."""
    icechunk = pytest.importorskip("icechunk",
                                   reason="tools/dependencies test installs the icechunk package")
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    repository = icechunk.Repository.create(storage)

    def commit(first, count):
        session = repository.writable_session("main")
        dataset, encoding = steps(first, count)
        if first == 0:
            dataset.to_zarr(session.store, zarr_format=3, consolidated=False, encoding=encoding)
        else:
            dataset.to_zarr(session.store, append_dim="time", consolidated=False)
        return session.commit(f"from {first}")

    first = commit(0, 8)
    directory = mount_at(tmp_path / "repository", tmp_path / "mnt", {"train": VIEW})
    shows(directory, 8)
    commit(8, 4)
    if expired:
        (tmp_path / "repository/snapshots" / first).unlink()
    kill(directory)
    shows(directory, 12 if expired else 8)
    good("refresh", directory)
    shows(directory, 12)


@pytest.mark.says("death-appended")
def test_a_view_that_was_changed_is_another_state(good, mount_at, tmp_path):
    store = Plain(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    shows(directory, 8)
    (tmp_path / "mnt-train.json").write_text(json.dumps(VIEW | {"batch": {"size": 2}}))
    kill(directory)
    assert len(batches(directory)) == 4
    assert np.array_equal(values(directory)[:, 0], np.arange(8) * 100)


@pytest.mark.says("refresh-race")
def test_readers_while_daemons_die_over_a_plain_store_that_grows(mount_at, tmp_path):
    """Without a refresh: a reader sees whole states, and no wrong value or label."""
    store = Plain(tmp_path)
    directory = mount_at(store.path, tmp_path / "mnt", {"train": VIEW})
    wrong, seen, stop = [], [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                labels = np.load(directory / "views/train/coords/time.npy")
                if not np.array_equal(labels, np.arange(len(labels))):
                    wrong.append(labels)
                seen.append(len(labels))
                for number in range(len(labels) // 4):
                    got = np.load(
                        directory / f"views/train/epoch-0000/batch-{number:06}.npy")[:, 0, 0]
                    if not np.array_equal(got, (number * 4 + np.arange(4)) * 100):
                        wrong.append((number, got))
            except OSError as error:
                if error.errno != errno.ESTALE:
                    wrong.append(error)
            except ValueError as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(10):
        store.append(8 + 4 * turn, 4)
        kill(directory)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == [] and len(set(seen)) > 3
    shows(directory, 48)


MAPS = """
import mmap, os, sys
mapped = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)
first = mapped[0]
print("mapped", flush=True)
sys.stdin.read()
assert all(mapped[at] >= 0 for at in range(0, len(mapped), 4096))
"""


@pytest.mark.says("death-open", "refresh-death")
@pytest.mark.parametrize("refreshed", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_pages_that_nobody_touched(good, mount_at, tmp_path, mode, refreshed):
    """Mappings of the newest state are whole after the daemon died; of older states with
    passthrough only."""
    zarr.create_group(tmp_path / "s.zarr", zarr_format=2).create_array(
        "t", shape=(8, 100_000), chunks=(4, 100_000), dtype="f8", fill_value=-1,
        attributes={"_ARRAY_DIMENSIONS": ["time", "x"]})[:] = 1
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt",
                         {"train": {"name": "train", "window": {"time": 1}, "batch": 4}},
                         *MODES[mode])
    batch = directory / "views/train/epoch-0000/batch-000001.npy"
    is_whole = not refreshed or status(directory)["passthrough"]
    reader = subprocess.Popen([sys.executable, "-c", MAPS, batch], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert reader.stdout.readline() == b"mapped\n"
    if refreshed:
        good("refresh", "--force", directory)
    kill(directory)
    reader.communicate(timeout=120)
    assert reader.returncode == (0 if is_whole else -signal.SIGBUS)
