"""The store changes, and the process that serves dies: the next one serves the same versions, or
ESTALE."""

import contextlib
import errno
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
from test_recovery import MODES, kill, mount, store  # noqa: F401 (fixtures)


def chunks_of(array):
    return sorted(path for path in array.rglob("*")
                  if path.is_file() and path.name not in ("zarr.json", ".zarray", ".zattrs"))


def change_chunks(array):
    """Gives every chunk the contents of another."""
    files = chunks_of(array)
    contents = [path.read_bytes() for path in files]
    for path, data in zip(files, contents[1:] + contents[:1]):
        fresh = path.with_name("fresh")
        fresh.write_bytes(data)
        fresh.rename(path)


def is_stale(read):
    with pytest.raises(OSError) as error:
        read()
    return error.value.errno == errno.ESTALE


@pytest.fixture
def copy(store, tmp_path):  # noqa: F811
    return pathlib.Path(shutil.copytree(store, tmp_path / "copy.zarr"))


@pytest.mark.says("death-changed")
@pytest.mark.parametrize("how", ["changed", "appeared"])
def test_an_open_batch_never_becomes_another(mount, copy, good, how):  # noqa: F811
    """Without passthrough the next daemon makes what is open again: from what the store holds
    then."""
    hidden = {path: path.read_bytes()
              for path in chunks_of(copy / "t")} if how == "appeared" else {}
    for path in hidden:
        path.unlink()
    directory = mount.directory
    good("mount", copy, directory, *mount.views, "--no-passthrough")
    known = {name: (directory / name).read_bytes()
             for name in ("views/one/epoch-0000/batch-000000.npy",
                          "views/two/epoch-0000/batch-000000/t.npy", "arrays/q/chunks/0.0.0.0.npy")}
    *others, same = known
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(directory / name, "rb", buffering=0))
                 for name in known}
        for name, file in files.items():
            assert os.pread(file.fileno(), 5000, 0) == known[name][:5000]
        if how == "changed":
            change_chunks(copy / "t")
        for path, data in hidden.items():
            path.write_bytes(data)
        for name, file in files.items():
            assert os.pread(file.fileno(), 5000, 5000) == known[name][5000:10000]
        for _ in range(2):
            kill(directory)
            assert os.pread(files[same].fileno(), 1 << 20, 5000) == known[same][5000:]
            for name in others:
                assert is_stale(lambda: os.pread(files[name].fileno(), 5000, 5000))
                assert is_stale(lambda: open(directory / name, "rb"))
    lines = [line for line in (directory / ".batchfs/log").read_text().splitlines()
             if "the store changed" in line or "has changed" in line]
    assert lines
    if how == "appeared":
        assert len(lines) == len(others)  # of the last daemon
        for name in others:
            assert (directory / name).read_bytes() != known[name]


@pytest.mark.says("death-versions")
@pytest.mark.parametrize("mode", MODES)
def test_the_next_daemon_keeps_to_the_versions(mount, copy, good, mode):  # noqa: F811
    """Versions of files that are read part by part, and of files that are opened again."""
    directory = mount.directory
    good("mount", copy, directory, *mount.views, *MODES[mode])
    batch = directory / "views/one/epoch-0000/batch-000000.npy"
    batch.read_bytes()
    same = (directory / "arrays/q/values.npy").read_bytes()
    with open(directory / "arrays/t/values.npy", "rb", buffering=0) as file:
        os.pread(file.fileno(), 1 << 20, 0)
        change_chunks(copy / "t")
        kill(directory)
        assert is_stale(lambda: os.pread(file.fileno(), 1 << 20, 0))
        assert is_stale(batch.read_bytes)
    assert (directory / "arrays/q/values.npy").read_bytes() == same
