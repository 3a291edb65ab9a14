"""The memory that a daemon takes at most, beside what --memory says."""

import os
import pathlib

import numpy as np
import pytest
import zarr
from watching import status

MB = 1 << 20
BEYOND = 64 * MB
SMALL = 16 << 10  # bytes of a decoded chunk; for smaller ones, the records of each chunk count
# Large budgets use as much memory as they allow, and take time to fill.
BUDGETS = [int(b) * MB for b in os.environ.get("BATCHFS_RESIDENT_BUDGETS", "24 100 300").split()]
# Chunks in malloc's memory, in slabs, and in separate mappings; by their shape (time, y, x).
CHUNKS = {"6 KB": (1, 24, 64), "184 KB": (10, 64, 72), "3 MB": (16, 192, 256)}


def peak(pid):
    """Bytes; batches that the daemon maps are among them, each once."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def make(path, chunk, decoded):
    """All chunks are links to one, which compresses to nearly nothing: a large store is small on
    disk."""
    steps = max(chunk[0] * 4, decoded // (192 * 256 * 4) // chunk[0] * chunk[0])
    array = zarr.create_group(path).create_array("t", shape=(steps, 192, 256), chunks=chunk,
                                                 dtype="f4", dimension_names=["time", "y", "x"],
                                                 compressors=zarr.codecs.ZstdCodec(level=1))
    array[tuple(slice(0, n) for n in chunk)] = 7
    original = path / "t/c/0/0/0"
    for number in np.ndindex(*(-(-n // c) for n, c in zip(array.shape, chunk))):
        place = path / "t/c" / "/".join(map(str, number))
        if place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if original.stat().st_nlink < 30_000:  # file systems have a limit
            os.link(original, place)
        else:
            place.write_bytes(original.read_bytes())
            original = place


def view(budget, share):
    """Small windows in random order. All chunks are used again, and the batches ahead take much of
    the memory."""
    batch = max(8, budget // share // (4 * 32 * 32 * 4))
    return {"name": "v",
            "window": {"time": 4, "y": {"size": 32, "stride": 16}, "x": {"size": 32, "stride": 16}},
            "batch": {"size": batch}, "order": {"shuffle": "global", "seed": 1}}


@pytest.mark.says("bounded-memory")
@pytest.mark.not_sanitized("it takes several times the memory")
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b // MB}M")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_of_a_mount(mount_at, batchfs, tmp_path, budget, chunk):
    # One data set that fits into the memory beside some batches, and one that does not.
    for share, times in ((48, 0.6), (16, 1.5)):
        here = tmp_path / str(share)
        here.mkdir()
        make(here / "s.zarr", CHUNKS[chunk], int(budget * times))
        directory = mount_at(here / "s.zarr", here / "mnt", {"v": view(budget, share)}, "--memory",
                             str(budget))
        epoch = directory / "views/v/epoch-0000"
        names = sorted(name for name in os.listdir(epoch) if name.endswith(".npy"))[: 3 * share]
        for name in names:
            with open(epoch / name, "rb") as file:
                file.read(1)
        now = status(directory)
        took = peak(now["pid"])
        batchfs("umount", directory)
        print(f"RESIDENT mount {budget / MB:.0f} MB, chunks of {chunk}, {times}: "
              f"{(took - budget) / MB:.1f} MB beyond, decoded {now['bytes_decoded'] / MB:.0f} MB, "
              f"{len(names)} batches")
        is_small = 4 * int(np.prod(CHUNKS[chunk])) < SMALL
        assert took <= budget + BEYOND + (budget if is_small else 0)

