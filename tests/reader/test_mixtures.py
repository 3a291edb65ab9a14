"""Mixtures over each way that batches come: tensors, labels, the view of each sample, and going on with other weights."""

import io
import json
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from reader_servers import PROGRAM, Server

import batchfs

N = {"a": 40, "b": 24}
ORDERS = {"a": {"shuffle": "global", "seed": 5}, "b": {"shuffle": "block", "seed": 2, "buffer": 2}}


def part(name, **more):
    return {"view": {"window": {"time": 1}, "variables": ["t"], "order": ORDERS[name]}, "store": name} | more


def mixture(name, **more):
    weights = more.pop("weights", (3, 1))
    return {"name": name, "mix": {"a": part("a", weight=weights[0]), "b": part("b", weight=weights[1])}, "batch": {"size": 4},
            "epochs": {"count": 3, "samples": 48}, "formats": ["npy", "zarr"]} | more


VIEWS = {"two": mixture("two"), "stratified": mixture("stratified", batch={"size": 8, "mixing": "stratified"}),
         "batches": mixture("batches", batch={"size": 4, "mixing": "batch", "block": 8}),
         "blocks": mixture("blocks", batch={"size": 4, "block": 16}),
         "scaled": {"name": "scaled", "mix": {"b": {"view": {"window": {"time": 1}, "variables": ["t"], "normalize": {
             "method": "zscore", "statistics": {"t": {"mean": 0.5, "std": 2}}}}, "store": "b"}}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    folder, data = tmp_path_factory.mktemp("mixtures"), {}
    for seed, (name, steps) in enumerate(N.items()):
        values = np.random.default_rng(seed).random((steps, 3, 5)).astype("f4")
        data[name] = xr.Dataset({"t": (("time", "y", "x"), values)}, {"time": pd.date_range(f"200{seed}-01-01", periods=steps, freq="6h")})
        data[name].to_zarr(folder / f"{name}.zarr", zarr_format=2, encoding={"t": {"chunks": (5, 3, 5)}})
    stores = [f"--store={name}={folder / name}.zarr" for name in N]
    server = Server(folder / "a.zarr", folder, VIEWS, *stores)
    directory = tmp_path_factory.mktemp("mount") / "mnt"
    directory.mkdir()
    files = [word for name in VIEWS for word in ("--view", str(folder / f"{name}.json"))]
    subprocess.run([PROGRAM, "mount", str(folder / "a.zarr"), str(directory), *files, *stores], check=True)
    yield data, server.socket, directory, folder
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)
    server.stop()


def written(folder, name, batch, epoch):
    words = [PROGRAM, "batch", folder / "a.zarr", "--view", folder / f"{name}.json", "--batch", str(batch), "--epoch", str(epoch),
             *(f"--store={store}={folder / store}.zarr" for store in N)]
    run = lambda *more: subprocess.run([*words, *more], capture_output=True, check=True).stdout
    return json.loads(run("--format", "json")), np.load(io.BytesIO(run("--tensor", "t")))


@pytest.mark.parametrize("mode", ["serve", "mount", "files"])
@pytest.mark.parametrize("name", ["two", "stratified", "batches", "blocks"])
def test_tensors_labels_and_views(made, name, mode):
    data, socket, directory, folder = made
    dataset = batchfs.open(socket if mode == "serve" else directory, name, mode="files" if mode == "files" else "auto")
    for epoch in range(2):
        dataset.set_epoch(epoch)
        for number, batch in enumerate(dataset):
            row, tensor = written(folder, name, number, epoch)
            assert np.array_equal(batch["t"].numpy(), tensor)
            assert batch.component.tolist() == row["components"]
            assert batch.index.tolist() == row["samples"]
            for i, (view, sample) in enumerate(zip(row["components"], row["component_samples"])):
                assert batch.index[i] == sample + (N["a"] if view == "b" else 0)
                assert batch.labels["time"][i] == data[view].time.values[sample]
                assert np.array_equal(tensor[i, 0], data[view].t.values[sample])
            if mode != "serve":
                opened = xr.open_zarr(directory / f"views/{name}/epoch-{epoch:04d}/batch-{number:06d}.zarr", consolidated=False)
                assert np.array_equal(opened.t.values, tensor)
                assert np.array_equal(opened.time_start.values, batch.labels["time"])
                xr.testing.assert_equal(opened.load(), batch.xarray())


def all_samples(dataset):
    return [sample for batch in dataset for sample in batch.index.tolist()]


@pytest.mark.parametrize("name", ["two", "stratified", "batches"])
def test_resumes_with_another_world_size(made, name):
    _, socket, _, _ = made
    whole = [batch.index.tolist() for batch in batchfs.open(socket, name)]
    rank = batchfs.open(socket, name, rank=0, world=2)
    iterator = iter(rank)
    next(iterator)
    state = rank.state_dict()
    assert state["batches_done"] == 2
    for world in 1, 3:
        left = [None] * (len(whole) - 2)
        for r in range(world):
            dataset = batchfs.open(socket, name, rank=r, world=world)
            dataset.load_state_dict(state)
            for i, batch in enumerate(dataset):
                left[i * world + r] = batch.index.tolist()
        assert left == whole[2:]


def test_goes_on_with_other_weights_at_the_ordinals(made, tmp_path):
    _, socket, directory, folder = made
    dataset = batchfs.open(socket, "blocks")
    dataset.set_epoch(1)
    iterator = iter(dataset)
    read = {"a": 36, "b": 12}  # of epoch 0
    for _ in range(8):  # two blocks
        batch = next(iterator)
        for name in batch.component:
            read[name] += 1
    next(iterator)  # of the third
    state = dataset.state_dict()
    assert state["components"] == read

    other = mixture("blocks", weights=(1, 1), start=read, batch={"size": 4, "block": 16}, formats=["npy"])
    (tmp_path / "blocks.json").write_text(json.dumps(other))
    stores = {name: str(folder / f"{name}.zarr") for name in N}
    with batchfs.open(folder / "a.zarr", tmp_path / "blocks.json", stores=stores, program=PROGRAM) as changed:
        changed.load_state_dict(state)
        assert changed.epoch == 0 and changed.remaining() == len(changed)
        # What each view gives next, by itself.
        seen = {"a": [], "b": []}
        for batch in changed:
            for name, sample in zip(batch.component, batch.index):
                seen[name].append(int(sample) - (N["a"] if name == "b" else 0))
        for name, samples in seen.items():
            alone = folder / f"alone-{name}.json"
            alone.write_text(json.dumps(part(name)["view"] | {"batch": 1000, "epochs": 9}))
            expected = []
            for epoch in range(4):
                words = [PROGRAM, "batch", folder / f"{name}.zarr", "--view", alone, "--epoch", str(epoch), "--format", "json"]
                expected += json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["samples"]
            assert len(samples) == 24
            assert sorted(samples) == sorted(expected[read[name]:read[name] + 24])
        wrong = dict(state, components={"a": 1, "b": 2})
        with pytest.raises(batchfs.InvalidArgument, match='write "start": {"a": 1, "b": 2} into this one'):
            changed.load_state_dict(wrong)


def test_other_views_have_no_components_and_mixtures_no_single_scale(made):
    _, socket, _, folder = made
    batch = next(iter(batchfs.open(socket, "scaled")))
    with pytest.raises(batchfs.NotSupported, match="the views of a mixture have numbers of their own"):
        batch["t"].denormalize()
    with batchfs.open(folder / "a.zarr", {"window": {"time": 1}}, program=PROGRAM) as plain:
        with pytest.raises(batchfs.InvalidArgument, match="is no mixture"):
            _ = next(iter(plain)).component
