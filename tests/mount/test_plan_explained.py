"""The explanation of a batch by `batchfs plan --explain`, beside the counters of a mount that reads
it."""

import json
import os

import numpy as np
import pytest
import zarr
from watching import status

CODECS = {
    "zstd": {"compressors": zarr.codecs.ZstdCodec(level=1)},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="zstd", shuffle="shuffle",
                                                    blocksize=512)},
    "none": {"compressors": None},
    "shards": {"compressors": zarr.codecs.ZstdCodec(level=1), "shards": (16, 10, 30)},
}


def make(path, codec):
    array = zarr.create_group(path).create_array("a", shape=(40, 20, 30), chunks=(8, 5, 10),
                                                 dtype="f4", dimension_names=["time", "y", "x"],
                                                 **CODECS[codec])
    values = np.random.default_rng(1).integers(1, 99, array.shape)
    values[32:, :5, :10] = 0  # this chunk is not stored
    array[:] = values


def view_of(order):
    return {"name": "v", "window": {"time": 2, "y": {"size": 6, "stride": 6}}, "batch": {"size": 8},
            "dtype": "float32", "order": {"shuffle": order, "seed": 3}}


def read(directory, batches):
    [epoch] = (directory / "views/v").glob("epoch-*")
    names = sorted(name for name in os.listdir(epoch) if name.endswith(".npy"))
    for batch in batches:
        np.load(epoch / names[batch])
    return len(names)


def plan_of(good, tmp_path, view, *more):
    (tmp_path / "view.json").write_text(json.dumps(view))
    return json.loads(good("plan", tmp_path / "s.zarr", "--view", tmp_path / "view.json", "--json",
                           *more))


@pytest.mark.parametrize("order", ["none", "global"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_is_read_alone_takes_what_the_plan_says(mount_at, good, tmp_path, codec,
                                                             order):
    make(tmp_path / "s.zarr", codec)
    last = plan_of(good, tmp_path, view_of(order))["batches"] - 1
    alone = plan_of(good, tmp_path, view_of(order), "--explain", last)["read_alone"]
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view_of(order)})
    before = status(directory)
    read(directory, [last])  # nothing follows it that would be made ahead
    after = status(directory)
    read_now = {name: after[name] - before[name]
                for name in ("chunks_decoded", "bytes_decoded", "bytes_fetched")}
    assert read_now["chunks_decoded"] == alone["whole"] + alone["in_part"] + alone["missing"] > 0
    assert read_now["bytes_decoded"] == alone["decoded_bytes"]
    if alone["fetched_bytes_are"] == "exact":
        assert read_now["bytes_fetched"] == alone["fetched_bytes"]
    assert (alone["fetched_bytes_are"] == "exact") == (codec != "blosc")


@pytest.mark.parametrize("order", ["none", "global"])
def test_an_epoch_decodes_the_chunks_that_the_plan_says(mount_at, good, tmp_path, order):
    """With memory for all chunks, where it does not depend on time."""
    make(tmp_path / "s.zarr", "zstd")
    batches = plan_of(good, tmp_path, view_of(order))["batches"]
    explained = [plan_of(good, tmp_path, view_of(order), "--explain", batch)["read_in_order"]
                 for batch in range(batches)]
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view_of(order)})
    before = status(directory)
    assert read(directory, range(batches)) == batches
    after = status(directory)
    assert after["chunks_decoded"] - before["chunks_decoded"] == sum(
        read["whole"] + read["missing"] for read in explained)
    assert after["bytes_decoded"] - before["bytes_decoded"] == sum(
        read["decoded_bytes"] for read in explained)
    assert after["bytes_fetched"] - before["bytes_fetched"] == sum(
        read["fetched_bytes"] for read in explained)
