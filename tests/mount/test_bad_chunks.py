"""A mount over damaged stores: an unreadable chunk is EIO and a line in the log that names it, the
rest works."""

import errno
import json

import numpy as np
import pytest
import zarr

SHAPE = (12, 32, 64)  # chunks of whole pages: the kernel reads no less


def read_error(path):
    """The errno of reading a file to its end."""
    with pytest.raises(OSError) as caught:
        path.read_bytes()
    return caught.value.errno


def log(mount):
    return (mount / ".batchfs/log").read_text()


VIEWS = {name: {"name": name, "variables": [name], "window": {"time": 1}, "batch": {"size": 3}}
         for name in ("good", "cut", "flipped", "long", "sharded")}


@pytest.fixture(scope="module", params=["passthrough", "no-passthrough"])
def damaged(request, mount_at, tmp_path_factory):
    """A store in which chunk (1, 0, 0) of every array but one is damaged, and its mount."""
    folder = tmp_path_factory.mktemp("damaged")
    root = zarr.create_group(folder / "store.zarr", zarr_format=3)
    values = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    for name in VIEWS:
        options = {"shards": (6, 32, 64)} if name == "sharded" else {}
        root.create_array(name, shape=SHAPE, chunks=(3, 32, 64),
                          dtype="f4", dimension_names=["time", "y", "x"], fill_value=-1,
                          **options)[...] = values
    chunk = folder / "store.zarr/cut/c/1/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-20])
    chunk = folder / "store.zarr/flipped/c/1/0/0"
    chunk.write_bytes(b"\xa5" * chunk.stat().st_size)
    chunk = folder / "store.zarr/long/c/1/0/0"
    chunk.write_bytes(chunk.read_bytes() + bytes(1 << 20))
    chunk = folder / "store.zarr/sharded/c/0/0/0"
    data = bytearray(chunk.read_bytes())
    data[-8] ^= 1  # in the index
    chunk.write_bytes(data)
    (folder / "store.zarr/torn").mkdir()
    (folder / "store.zarr/torn/zarr.json").write_text('{"zarr_format": 3, "node_ty')
    options = [] if request.param == "passthrough" else ["--no-passthrough"]
    mount = mount_at(folder / "store.zarr", folder / "mnt", VIEWS, *options)
    return mount, values


@pytest.mark.says("error-eio")
def test_batches_over_damaged_chunks_are_errors_and_others_are_not(damaged):
    mount, values = damaged
    for name, first_bad, place in (("cut", 1, "cut/1.0.0"), ("flipped", 1, "flipped/1.0.0"),
                                   ("long", 1, "long/1.0.0"), ("sharded", 0, "sharded/0.0.0")):
        epoch = mount / "views" / name / "epoch-0000"
        size = (mount / "views/good/epoch-0000/batch-000001.npy").stat().st_size
        bad = epoch / f"batch-{first_bad:06d}.npy"
        assert bad.stat().st_size == size
        assert read_error(bad) == errno.EIO
        assert place in log(mount)
        assert np.array_equal(np.load(epoch / "batch-000003.npy")[:, 0], values[9:12])
    assert np.array_equal(np.load(mount / "views/good/epoch-0000/batch-000001.npy")[:, 0],
                          values[3:6])


def test_values_and_chunks(damaged):
    mount, values = damaged
    for name in ("cut", "flipped", "long"):
        array = mount / "arrays" / name
        assert read_error(array / "values.npy") == errno.EIO
        assert read_error(array / "chunks/1.0.0.npy") == errno.EIO
        assert np.array_equal(np.load(array / "chunks/0.0.0.npy"), values[:3])
        # A file this small is one read to most programs; mapped it is read by pages.
        mapped = np.memmap(array / "values.npy", "f4", "r", offset=4096, shape=SHAPE)
        assert np.array_equal(mapped[9:12], values[9:12])
    assert np.array_equal(np.load(mount / "arrays/good/values.npy"), values)


def test_reading_again_is_the_same_error_and_the_counter_counts(damaged):
    mount, _ = damaged
    before = json.loads((mount / ".batchfs/status.json").read_text())["errors"]
    bad = mount / "views/flipped/epoch-0000/batch-000001.npy"
    assert read_error(bad) == errno.EIO
    assert read_error(bad) == errno.EIO
    assert json.loads((mount / ".batchfs/status.json").read_text())["errors"] >= before
    assert "views" in [path.name for path in mount.iterdir()]


def test_metadata_that_cannot_be_read_is_said_and_not_shown(damaged):
    mount, _ = damaged
    assert not (mount / "arrays/torn").exists()
    assert "torn/zarr.json" in log(mount)


@pytest.mark.says("error-no-fill", "store-stale")
def test_a_shard_that_goes_away_is_an_error_and_no_fill_value(mount_at, tmp_path):
    values = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    path = tmp_path / "store.zarr"
    zarr.create_group(path).create_array("good", data=values, chunks=(3, 32, 64),
                                         shards=(6, 32, 64), dimension_names=["time", "y", "x"])
    mount = mount_at(path, tmp_path / "mnt", {"good": {**VIEWS["good"], "batch": {"size": 1}}})
    epoch = mount / "views/good/epoch-0000"
    # reads the second shard's index
    assert np.array_equal(np.load(epoch / "batch-000011.npy")[:, 0], values[11:])
    (path / "good/c/1/0/0").unlink()
    # Some batches may have been made ahead; none may hold fill values.
    for batch in range(6, 11):
        file = epoch / f"batch-{batch:06d}.npy"
        try:
            assert np.array_equal(np.load(file)[:, 0], values[batch:batch + 1])
        except OSError as error:
            assert error.errno in (errno.EIO, errno.ESTALE)
