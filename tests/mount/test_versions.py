"""A local store that changes or disappears while it is mounted: each object has one version, or it
is ESTALE."""

import errno
import json
import os
import shutil
import time
import zipfile

import numpy as np
import pytest
import zarr

STEPS = 32
VIEW = {"v": {"name": "v", "window": {"time": 1}, "batch": {"size": 2},
              "order": {"shuffle": "none"}}}
RAW = {"compressors": None}
LAYOUTS = {
    "unsharded": {"chunks": (2, 256), **RAW},
    "unsharded-compressed": {"chunks": (2, 256)},
    "sharded": {"chunks": (2, 256), "shards": (8, 256), **RAW},
    "sharded-compressed": {"chunks": (2, 256), "shards": (8, 256)},
}
FILL = -9.0
# Nothing is prefetched or cached: a batch's values were read when it was opened.
SMALL = ("--memory", "24K", "--threads", "2")


def values(version):
    """The rows of one version: row r holds r and the version, never the fill value."""
    return (np.arange(STEPS, dtype="f4")[:, None] + np.linspace(0, 0.5, 256, dtype="f4")
            + 100 * version).astype("f4")


def create(path, layout, consolidated=False, **options):
    group = zarr.create_group(path, overwrite=True)
    array = group.create_array("v", shape=(STEPS, 256), dtype="f4", fill_value=FILL,
                               dimension_names=["time", "x"], **LAYOUTS[layout], **options)
    if consolidated:
        zarr.consolidate_metadata(path)
    return array


def settle():
    """Longer than the time stamps of any file system of a test machine are coarse."""
    time.sleep(0.05)


def batch(mount, number, epoch=0):
    return mount / f"views/v/epoch-{epoch:04d}/batch-{number:06d}.npy"


def rows(mount, number, epoch=0):
    """The rows of a batch, or the errno of opening it. Batches of an epoch that was not read before
    are made for it."""
    try:
        return np.load(batch(mount, number, epoch)).reshape(2, 256)
    except OSError as error:
        return error.errno


def is_stale(got):
    return isinstance(got, int) and got == errno.ESTALE


def holds(got, version, number):
    return not isinstance(got, int) and np.array_equal(got,
                                                       values(version)[2 * number:2 * number + 2])


def is_fill(got):
    return not isinstance(got, int) and bool(np.all(got == FILL))


def log(mount):
    return (mount / ".batchfs/log").read_text()


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.mark.says("store-one-version", "store-no-mixture")
def test_what_is_written_over_is_stale_once_it_was_read(layout, mount_at, tmp_path):
    array = create(tmp_path / "s.zarr", layout)
    array[...] = values(0)
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    array[...] = values(1)
    settle()
    for number in range(STEPS // 2):
        got = rows(mount, number)
        assert holds(got, 0, number) or holds(got, 1, number) or is_stale(got), number
    # The object of the first batch was read. Its memory may be kept; data that must be read again
    # is stale.
    again = [rows(mount, number) for number in range(4 if "shards" in LAYOUTS[layout] else 1)]
    assert all(is_stale(got) or holds(got, 0, number) for number, got in enumerate(again))
    # The last object may have been read ahead, or not: of one version it is in any case.
    last = [rows(mount, number) for number in range(12, 16)] if "shards" in LAYOUTS[layout] else []
    versions = {0 if holds(got, 0, 12 + i) else 1 for i, got in enumerate(last)
                if not is_stale(got)}
    assert len(versions) <= 1
    if any(is_stale(got) for got in again + last):
        lines = [line for line in log(mount).splitlines() if "has changed since" in line]
        assert lines and "v/" in lines[0]


@pytest.mark.says("store-one-version")
def test_a_gap_that_is_filled_shifts_nothing(mount_at, tmp_path):
    """zarr-python writes a shard anew: what lies behind the new chunks is somewhere else then."""
    array = create(tmp_path / "s.zarr", "sharded")
    for begin in (0, 2, 6):
        array[begin:begin + 2] = values(0)[begin:begin + 2]
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    array[4:6] = values(0)[4:6]
    settle()
    assert is_stale(rows(mount, 3, 1))
    # the gap: as in the first version, or an error
    assert is_stale(got := rows(mount, 2, 1)) or is_fill(got)
    assert "has changed since it was first read" in log(mount)


@pytest.mark.says("store-appears")
def test_what_was_absent_may_appear(layout, mount_at, tmp_path):
    array = create(tmp_path / "s.zarr", layout)
    array[:8] = values(0)[:8]
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0) and is_fill(rows(mount, 12)) and is_fill(rows(mount, 13))
    array[24:32] = values(0)[24:32]
    settle()
    for number in (12, 13, 14, 15):
        for epoch in range(1, 30):
            if holds(got := rows(mount, number, epoch), 0, number):
                break
            assert is_fill(got) or is_stale(got)  # remembered for a moment
            time.sleep(1)
        assert holds(got, 0, number)


@pytest.mark.says("store-vanished", "error-no-fill")
@pytest.mark.parametrize("what", ["array", "store", "chunks"])
@pytest.mark.parametrize("consolidated", [False, True], ids=["plain", "consolidated"])
def test_what_is_removed_is_no_fill_value(what, consolidated, layout, mount_at, tmp_path):
    array = create(tmp_path / "s.zarr", layout, consolidated)
    array[...] = values(0)
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    read = range(STEPS // 2) if what == "chunks" else range(1)
    for number in read:
        assert holds(rows(mount, number), 0, number)
    shutil.rmtree(tmp_path / {"array": "s.zarr/v", "store": "s.zarr", "chunks": "s.zarr/v/c"}[what])
    got = [rows(mount, number) for number in range(STEPS // 2)]
    assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
    assert sum(is_stale(g) for g in got) > 8
    assert "again to see what is there" in log(mount)
    assert json.loads((mount / ".batchfs/status.json").read_text())["errors"] > 0


@pytest.mark.says("store-removed")
def test_a_store_that_is_made_anew_in_the_same_place_is_another_store(layout, mount_at, tmp_path):
    create(tmp_path / "s.zarr", layout)[...] = values(0)
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    shutil.rmtree(tmp_path / "s.zarr")
    create(tmp_path / "s.zarr", layout)[...] = values(1)
    settle()
    got = [rows(mount, number) for number in range(STEPS // 2)]
    assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
    assert any(is_stale(g) for g in got)


@pytest.mark.says("store-removed")
def test_a_store_that_is_moved_is_read_where_it_went(mount_at, tmp_path):
    create(tmp_path / "s.zarr", "unsharded")[...] = values(0)
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    (tmp_path / "s.zarr").rename(tmp_path / "t.zarr")
    assert all(holds(rows(mount, number), 0, number) for number in range(STEPS // 2))


@pytest.mark.says("store-one-version")
@pytest.mark.parametrize("compressed", [False, True])
def test_parts_of_a_chunk_that_is_rewritten_in_place_are_of_one_version(
        compressed, mount_at, tmp_path):
    codec = {"compressors": zarr.codecs.BloscCodec(cname="lz4", clevel=1, shuffle="noshuffle",
                                                   blocksize=4096)}
    options = {"chunks": (STEPS, 8192), **(codec if compressed else RAW)}
    group = zarr.create_group(tmp_path / "s.zarr")
    array = group.create_array("v", shape=(STEPS, 8192), dtype="f4", dimension_names=["time", "x"],
                               **options)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1 << 20, (STEPS, 8192)).astype("f4")
    array[...] = data
    chunk = next(path for path in (tmp_path / "s.zarr/v").rglob("*")
                 if path.is_file() and path.name != "zarr.json")
    other = zarr.create_array(tmp_path / "o.zarr", shape=(STEPS, 8192), dtype="f4", **options)
    other[...] = data[::-1]
    bytes_of_other = next(p for p in (tmp_path / "o.zarr").rglob("*")
                          if p.is_file() and p.name != "zarr.json").read_bytes()
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, "--memory", "160K")
    first = np.load(batch(mount, 0)).reshape(2, 8192)
    assert np.array_equal(first, data[:2])
    with open(chunk, "r+b") as file:  # the same inode
        file.write(bytes_of_other)
        file.truncate()
    for number in range(1, STEPS // 2):
        try:
            got = np.load(batch(mount, number)).reshape(2, 8192)
        except OSError as error:
            assert error.errno == errno.ESTALE
        else:
            assert np.array_equal(got, data[2 * number:2 * number + 2])
    assert "has changed since it was first read" in log(mount)


@pytest.mark.says("store-metadata-checked")
def test_metadata_that_was_written_over_makes_no_fill_values(mount_at, tmp_path):
    """A chunk that is absent now may be absent only for another shape."""
    array = create(tmp_path / "s.zarr", "unsharded")
    array[:8] = values(0)[:8]
    settle()
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0) and is_fill(rows(mount, 10))
    array.resize((64, 256))
    settle()
    for epoch in range(1, 30):
        if is_stale(got := rows(mount, 11, epoch)):
            break
        assert is_fill(got)  # found absent before
        time.sleep(1)
    assert is_stale(got)
    assert "v/zarr.json" in log(mount)
    assert holds(rows(mount, 2, 1), 0, 2)  # existing data stays


@pytest.mark.says("store-archive")
def test_a_zip_archive_is_one_object(mount_at, tmp_path):
    def archive(version):
        create(tmp_path / "s.zarr", "unsharded")[...] = values(version)
        with zipfile.ZipFile(tmp_path / "new.zip", "w") as out:
            for path in sorted((tmp_path / "s.zarr").rglob("*")):
                if path.is_file():
                    out.write(path, path.relative_to(tmp_path / "s.zarr"))
        os.replace(tmp_path / "new.zip", tmp_path / "s.zip")
        settle()

    archive(0)
    mount = mount_at(tmp_path / "s.zip", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    archive(1)
    got = [rows(mount, number) for number in range(STEPS // 2)]
    assert all(is_stale(g) or holds(g, 0, number) for number, g in enumerate(got))
    assert any(is_stale(g) for g in got)


@pytest.mark.says("store-versions-memory")
def test_versions_are_counted(mount_at, tmp_path):
    create(tmp_path / "s.zarr", "unsharded")[...] = values(0)
    mount = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", VIEW, *SMALL)
    assert holds(rows(mount, 0), 0, 0)
    before = json.loads((mount / ".batchfs/status.json").read_text())["store"]
    assert all(holds(rows(mount, number), 0, number) for number in range(STEPS // 2))
    store = json.loads((mount / ".batchfs/status.json").read_text())["store"]
    assert (store["object_versions"] >= STEPS // 2
            and store["object_versions"] >= before["object_versions"])
    assert store["object_versions_not_kept"] == 0
    assert "object_versions_not_kept" in (mount / ".batchfs/metrics").read_text()
