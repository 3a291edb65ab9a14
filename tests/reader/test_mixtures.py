"""Mixtures over each way that batches come: tensors, labels, the view of each sample, and other
mixtures that continue."""

import io
import json
import os
import pickle
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
    return {"view": {"window": {"time": 1}, "variables": ["t"],
                     "order": ORDERS[name]}, "store": name} | more


def mixture(name, **more):
    weights = more.pop("weights", (3, 1))
    return {"name": name, "mix": {"a": part("a", weight=weights[0]),
                                  "b": part("b", weight=weights[1])}, "batch": {"size": 4},
            "epochs": {"count": 3, "samples": 48}, "formats": ["npy", "zarr"]} | more


VIEWS = {"two": mixture("two"),
         "stratified": mixture("stratified", batch={"size": 8, "mixing": "stratified"}),
         "batches": mixture("batches", batch={"size": 4, "mixing": "batch", "block": 8}),
         "blocks": mixture("blocks", batch={"size": 4, "block": 16}),
         "scaled": {"name": "scaled", "mix": {"b": {"view": {"window": {"time": 1}, "variables": [
             "t"], "normalize": {"method": "zscore",
                                 "statistics": {"t": {"mean": 0.5, "std": 2}}}}, "store": "b"}}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    folder, data = tmp_path_factory.mktemp("mixtures"), {}
    for seed, (name, steps) in enumerate(N.items()):
        values = np.random.default_rng(seed).random((steps, 3, 5)).astype("f4")
        data[name] = xr.Dataset({"t": (("time", "y", "x"), values)}, {
            "time": pd.date_range(f"200{seed}-01-01", periods=steps, freq="6h")})
        data[name].to_zarr(folder / f"{name}.zarr", zarr_format=2,
                           encoding={"t": {"chunks": (5, 3, 5)}})
    stores = [f"--store={name}={folder / name}.zarr" for name in N]
    server = Server(folder / "a.zarr", folder, VIEWS, *stores)
    directory = tmp_path_factory.mktemp("mount") / "mnt"
    directory.mkdir()
    files = [word for name in VIEWS for word in ("--view", str(folder / f"{name}.json"))]
    subprocess.run([PROGRAM, "mount", str(folder / "a.zarr"), str(directory), *files, *stores],
                   check=True)
    yield data, server.socket, directory, folder
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)
    server.stop()


def written(folder, name, batch, epoch):
    words = [PROGRAM, "batch", folder / "a.zarr", "--view", folder / f"{name}.json", "--batch",
             str(batch), "--epoch", str(epoch),
             *(f"--store={store}={folder / store}.zarr" for store in N)]
    run = lambda *more: subprocess.run([*words, *more], capture_output=True, check=True).stdout
    return json.loads(run("--format", "json")), np.load(io.BytesIO(run("--tensor", "t")))


@pytest.mark.parametrize("mode", ["serve", "mount", "files"])
@pytest.mark.parametrize("name", ["two", "stratified", "batches", "blocks"])
def test_tensors_labels_and_views(made, name, mode):
    data, socket, directory, folder = made
    dataset = batchfs.open(socket if mode == "serve" else directory, name,
                           mode="files" if mode == "files" else "auto")
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
                opened = xr.open_zarr(
                    directory / f"views/{name}/epoch-{epoch:04d}/batch-{number:06d}.zarr",
                    consolidated=False)
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


@pytest.fixture(scope="module")
def alone(made):
    """The samples of a view by itself, epoch after epoch: sample number o is that of ordinal o in a
    mixture."""
    folder, known = made[3], {}

    def samples(name, count):
        view = folder / f"alone-{name}.json"
        view.write_text(json.dumps(part(name)["view"] | {"batch": 1000, "epochs": 9}))
        numbers = known.setdefault(name, [])
        while len(numbers) < count:
            words = [PROGRAM, "batch", folder / f"{name}.zarr", "--view", view, "--epoch",
                     str(len(numbers) // N[name]), "--format", "json"]
            numbers += json.loads(subprocess.run(words, capture_output=True,
                                                 check=True).stdout)["samples"]
        return numbers[:count]

    return samples


def opened(made, view, **more):
    return batchfs.open(made[3] / "a.zarr", view,
                        stores={name: str(made[3] / f"{name}.zarr") for name in N}, program=PROGRAM,
                        **more)


def note(read, batch):
    for name, sample in zip(batch.component, batch.index):
        read[str(name)].append(int(sample) - (N["a"] if name == "b" else 0))


def read_some(dataset, count):
    """The samples of each view in so many batches of all ranks from where the dataset is."""
    read, done = {name: [] for name in N}, dataset.state_dict()["batches_done"]
    for number in range(done, done + count):
        note(read, dataset.batch(number))
    return read


def counted(component, samples):
    return {"view": part(component)["view"], "store": component, "samples": samples}


OLD = {"sample": mixture("m", batch={"size": 4, "block": 16}),
       "stratified": mixture("m", batch={"size": 8, "mixing": "stratified"}),
       "batch": mixture("m", batch={"size": 3, "mixing": "batch", "block": 5}),
       "counts": mixture("m", mix={"a": counted("a", 17), "b": counted("b", 31)}, epochs=3)}
OTHER = {"weights": mixture("m", weights=(1, 1), batch={"size": 4, "block": 16}),
         "block": mixture("m", batch={"size": 4, "block": 12}),
         "seed": mixture("m", order={"seed": 9}, batch={"size": 4, "block": 16}),
         "temperature": mixture("m", temperature=3, batch=5),
         "size": mixture("m", batch={"size": 7, "block": 16}),
         "stratified": mixture("m", weights=(1, 2), batch={"size": 6, "mixing": "stratified"}),
         "batch": mixture("m", weights=(2, 1), batch={"size": 5, "mixing": "batch"}),
         "samples": mixture("m", mix={"a": counted("a", 55), "b": counted("b", 20)}, epochs=3),
         "repeat": mixture("m", mix={name: {"view": part(name)["view"], "store": name,
                                            "repeat": 1.5} for name in N}, epochs=3)}


@pytest.mark.parametrize("other", OTHER)
@pytest.mark.parametrize("old", OLD)
def test_other_mixtures_continue_at_any_position(made, alone, old, other):
    for epoch, batches, world in (0, 3, 2), (1, 2, 3), (2, 1, 1):
        with opened(made, OLD[old], rank=world - 1, world=world) as dataset:
            seen = {name: [] for name in N}
            for before in range(epoch):
                dataset.set_epoch(before)
                for name, samples in read_some(dataset, dataset.schema["batches"]).items():
                    seen[name] += samples
            dataset.set_epoch(epoch)
            for name, samples in read_some(dataset,
                                           min(batches * world, dataset.schema["batches"])).items():
                seen[name] += samples
            iterator = iter(dataset)
            for _ in range(min(batches, len(dataset))):
                next(iterator)
            state = json.loads(json.dumps(dataset.state_dict()))
        unread, before = {}, {name: len(samples) for name, samples in seen.items()}
        for name, start in state["start"].items():
            first, left = (start["samples"], start["left"]) if isinstance(start, dict) else (
                start, [])
            assert sorted(alone(name, first)[o]
                          for o in set(range(first)) - set(left)) == sorted(seen[name])
            unread[name] = [*left, *range(first, first + 300)]
        with opened(made, OTHER[other], rank=1, world=2) as dataset:
            dataset.load_state_dict(state)
            for _ in range(2):
                for name, samples in read_some(dataset, dataset.schema["batches"]
                                                   - dataset.state_dict()["batches_done"]).items():
                    seen[name] += samples
                dataset.set_epoch(dataset.epoch + 1)
        for name, samples in seen.items():
            ordinals = unread[name][:len(samples) - before[name]]
            assert sorted(samples[before[name]:]) == sorted(alone(name, 600)[o] for o in ordinals)


def test_mixtures_continue_one_another_and_are_resumed(made, alone, tmp_path):
    """States inside a block, taken where what others left is still being read; and another process
    at each of them."""
    rng = np.random.default_rng(4)
    views = [*OLD.values(), *OTHER.values()]
    (tmp_path / "m.json").write_text(json.dumps(views[0] | {"mix": {
        name: {"view": f"{name}.yaml", "store": name, "weight": 1} for name in N}}))
    for name in N:
        (tmp_path / f"{name}.yaml").write_text(json.dumps(part(name)["view"]))
    views.append(tmp_path / "m.json")
    seen, state = {name: [] for name in N}, None
    for _ in range(15):
        with opened(made, views[rng.integers(len(views))]) as dataset:
            if state is not None:
                dataset.load_state_dict(state)
            iterator = iter(dataset)
            for _ in range(rng.integers(1, 4)):
                note(seen, next(iterator))
            state = dataset.state_dict()
            whole = [batch.index.tolist() for batch in iterator]
        # The same mixture, whose file has no "start", continues with the same batches.
        view = dataset._arguments["view"]
        with opened(made, view) as again:
            again.load_state_dict(json.loads(json.dumps(state)))
            assert again.schema == dataset.schema
            assert [batch.index.tolist() for batch in again] == whole
    for name in N:
        start = state["start"][name]
        first, left = (start["samples"], start["left"]) if isinstance(start, dict) else (start, [])
        assert len(left) < 60
        assert sorted(alone(name, first)[o]
                      for o in set(range(first)) - set(left)) == sorted(seen[name])


def test_a_continued_dataset_is_pickled_and_read_by_other_ranks(made):
    with opened(made, OLD["sample"]) as dataset:
        next(iter(dataset))
        state = dataset.state_dict()
    with opened(made, OTHER["stratified"]) as dataset:
        dataset.load_state_dict(state)
        whole = [batch.index.tolist() for batch in dataset]
        dataset.set_epoch(0)
        with pickle.loads(pickle.dumps(dataset)) as other, dataset.of_rank(1, 2) as second:
            assert [batch.index.tolist() for batch in other] == whole
            assert [batch.index.tolist() for batch in second] == whole[1::2]
        # Its resolved view is the same mixture.
        with opened(made, dataset.view) as resolved:
            assert resolved.view == dataset.view
            assert [batch.index.tolist() for batch in resolved] == whole
    with opened(made, OTHER["stratified"], start=state["start"]) as given:
        assert [batch.index.tolist() for batch in given] == whole


def test_what_is_served_continues_with_the_start_that_the_message_says(made, alone, tmp_path):
    _, socket, directory, folder = made
    dataset = batchfs.open(socket, "blocks")
    iterator = iter(dataset)
    seen = {name: [] for name in N}
    for _ in range(6):
        note(seen, next(iterator))
    state = dataset.state_dict() | {"view": "two"}
    for place in socket, directory:
        with pytest.raises(batchfs.InvalidArgument,
                           match='write "start": (.*) into this one') as refusal:
            batchfs.open(place, "two").load_state_dict(state)
    start = json.loads(refusal.value.args[0].partition('"start": ')[2].rpartition(" into")[0])
    assert start == state["start"]
    words = [f"--store={name}={folder / name}.zarr" for name in N]
    server = Server(folder / "a.zarr", tmp_path, {"two": mixture("two", start=start)}, *words)
    try:
        other = batchfs.open(server.socket, "two")
        other.load_state_dict(state)
        for batch in other:
            note(seen, batch)
        for name, samples in seen.items():
            assert sorted(samples) == sorted(alone(name, len(samples)))
    finally:
        server.stop()


def test_views_may_be_added_and_keep_their_place_without_weight(made, alone):
    with opened(made, mixture("m", mix={"a": part("a", weight=1)})) as dataset:
        iterator, seen = iter(dataset), {name: [] for name in N}
        for _ in range(3):
            note(seen, next(iterator))
        state = dataset.state_dict()
    with opened(made, mixture("m")) as dataset:
        dataset.load_state_dict(state)
        for batch in dataset:
            note(seen, batch)
        state = dataset.state_dict()
        for name, samples in seen.items():
            assert sorted(samples) == sorted(alone(name, len(samples)))
    with opened(made, mixture("m", mix={"a": part("a", weight=1)})) as dataset:
        with pytest.raises(batchfs.InvalidArgument,
                           match="'b', which this one lacks; .* weight of 0"):
            dataset.load_state_dict(state)
    with opened(made, mixture("m", weights=(1, 0))) as dataset:
        dataset.load_state_dict(state)
        assert dataset.state_dict()["start"] == state["start"]


def test_start_is_of_mixtures(made, tmp_path):
    with pytest.raises(batchfs.InvalidArgument, match='"start" is of a mixture'):
        view = tmp_path / "v.json"
        view.write_text('{"window": {"time": 1}}')
        opened(made, view, start={"a": 3})
    with pytest.raises(batchfs.InvalidArgument, match="start.c: \"mix\" has no view 'c'"):
        opened(made, mixture("m"), start={"c": 3})
    with opened(made, {"window": {"time": 1}, "name": "m"}) as plain, opened(
            made, mixture("m")) as mixed:
        with pytest.raises(batchfs.InvalidArgument, match="not a mixture"):
            mixed.load_state_dict(plain.state_dict())
        with pytest.raises(batchfs.InvalidArgument, match="the state is of a mixture"):
            plain.load_state_dict(mixed.state_dict())


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    """Two stores with levels; in the second, the variable has another name, and the store other
    labels along y."""
    folder, data = tmp_path_factory.mktemp("levels"), {}
    for seed, (name, steps) in enumerate(N.items()):
        values = np.random.default_rng(seed).normal(250, 20, (steps, 3, 5)).astype("f4")
        data[name] = xr.Dataset(
            {"t" if name == "a" else "temperature": (("time", "level", "y"), values),
             "q": (("time", "level", "y"), values / 100)},
            {"time": pd.date_range(f"200{seed}-01-01", periods=steps, freq="6h"),
             "level": [500.0, 700.0, 850.0], "y": np.arange(5.0) + seed})
        data[name].to_zarr(folder / f"{name}.zarr", zarr_format=2)
    return data, folder


def numbers(of, dims):
    """Statistics of an array along dimensions, as `batchfs statistics` writes them."""
    axes = tuple(dim for dim in of.dims if dim not in dims)
    entry = {"mean": of.mean(axes).values.tolist(), "std": of.std(axes).values.tolist()}
    return entry | ({"dims": list(dims), "coordinates": {dim: of[dim].values.astype(
        "M8[s]" if dim == "time" else float).astype(
            str if dim == "time" else float).tolist() for dim in dims}} if dims else {})


def scaled(data, dims, **normalize):
    """A mixture of stacks of two variables: the first view keeps "q" as it is, the second
    normalizes all."""
    mix = {}
    for name, t in (("a", "t"), ("b", "temperature")):
        statistics = {t: numbers(data[name][t], dims[name])} | (
            {"q": numbers(data[name].q, [])} if name == "b" else {})
        mix[name] = {"store": name, "view": {
            "window": {"time": 1}, "tensors": {"x": {"variables": [t, "q"], "stack": "channel"}},
            "order": ORDERS[name], "normalize": {"method": "zscore", "statistics": statistics,
                                                 "variables": list(statistics)}
                | normalize.get(name, {})}}
    return {"name": "v", "mix": mix, "batch": {"size": 8}}


def stored(data, batch):
    """The stored values at each sample's place, as the tensor has them."""
    rows = []
    for view, time in zip(batch.component, batch.labels["time"]):
        one = data[view].sel(time=time)
        rows.append(np.concatenate([one["t" if view == "a" else "temperature"].values,
                                    one.q.values])[:, None])
    return np.array(rows).reshape(batch["x"].shape)


@pytest.mark.parametrize("dims", [{"a": [], "b": []}, {"a": ["level"], "b": []},
                                  {"a": ["level"], "b": ["level"]}], ids=str)
def test_denormalize_takes_the_numbers_of_each_samples_view(levels, dims):
    data, folder = levels
    with opened((None, None, None, folder), scaled(data, dims)) as dataset:
        seen = set()
        for batch in dataset:
            seen |= set(batch.component)
            wanted = stored(data, batch)
            assert not np.allclose(batch["x"].numpy(), wanted, rtol=1e-3)
            np.testing.assert_allclose(batch["x"].denormalize(), wanted, rtol=2e-6, atol=1e-5)
            np.testing.assert_allclose(batch.denormalize("x", batch["x"].numpy() * 0 + 1)
                                           - batch.denormalize("x", batch["x"].numpy() * 0),
                                       spread(data, batch, dims), rtol=1e-4)
            copy = pickle.loads(pickle.dumps(batch))
            np.testing.assert_array_equal(copy["x"].denormalize(), batch["x"].denormalize())
            if len(set(batch.component)) > 1:
                with pytest.raises(batchfs.InvalidArgument,
                                   match="normalized with numbers of the shape"):
                    batch.denormalize("x", batch["x"].numpy()[:1])
        assert seen == {"a", "b"}


def spread(data, batch, dims):
    """The standard deviation of each value of the tensor, 1 where it is not normalized."""
    rows = []
    for view in batch.component:
        t = data[view]["t" if view == "a" else "temperature"]
        one = t.std([dim for dim in t.dims if dim not in dims[view]]).values
        q = data[view].q.std().values if view == "b" else 1
        rows.append(np.concatenate([np.broadcast_to(np.reshape(one, (-1, 1)), (3, 5)),
                                    np.broadcast_to(q, (3, 5))]))
    return np.array(rows).reshape(batch["x"].shape)


@pytest.mark.parametrize("dims, more, message", [
    ({"a": ["time"], "b": []}, {},
     "'t' is normalized along 'time', a dimension of \"window\" of a mixture"),
    ({"a": ["y"], "b": []}, {}, "the views of the mixture have different labels along 'y'"),
    ({"a": [], "b": []}, {"a": {"method": "log1p", "scale": 1, "then": "zscore"}},
     "log1p cuts off"),
])
def test_numbers_that_a_mixture_cannot_place_are_an_error(levels, dims, more, message):
    data, folder = levels
    with opened((None, None, None, folder), scaled(data, dims, **more)) as dataset:
        batch = next(batch for batch in dataset if "a" in batch.component)
        with pytest.raises(batchfs.NotSupported, match=message):
            batch["x"].denormalize()


def test_a_mixture_without_normalize_is_returned_as_it_is(made):
    _, socket, _, _ = made
    batch = next(iter(batchfs.open(socket, "two")))
    assert np.shares_memory(batch["t"].denormalize(), batch["t"].numpy())
    scaled = next(iter(batchfs.open(socket, "scaled")))
    np.testing.assert_allclose(scaled["t"].denormalize(), scaled["t"].numpy() * 2 + 0.5, rtol=1e-6)


def test_other_views_have_no_components(made):
    _, socket, _, folder = made
    with batchfs.open(folder / "a.zarr", {"window": {"time": 1}}, program=PROGRAM) as plain:
        with pytest.raises(batchfs.InvalidArgument, match="is not a mixture"):
            _ = next(iter(plain)).component
