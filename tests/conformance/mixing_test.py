""""mix": which sample of which view is at each position, as the functions of batchfs-view(5) give
it; values against xarray."""

import collections
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from man_view_test import page

N = {"a": 90, "b": 40, "c": 25}  # steps of each store


def write(path, seed, steps, start, names=("t", "u"), lat=4, chunks=5):
    rng = np.random.default_rng(seed)
    ds = xr.Dataset(
        {name: (("time", "lat"), rng.standard_normal((steps, lat)).astype("f4")) for name in names},
        {"time": pd.date_range(start, periods=steps, freq="D"), "lat": np.linspace(0, 30, lat)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=3,
                   encoding={name: {"chunks": (chunks, lat)} for name in names})
    return ds


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixing")
    return folder, {name: write(folder / f"{name}.zarr", i, steps, f"20{i:02}-01-01")
                    for i, (name, steps) in enumerate(N.items())}


def view_of(**more):
    return ({"window": {"time": 1}, "tensors": {"x": {"variables": ["t", "u"], "stack": "channel"}}}
            | more)


class Mixture:
    """A mixture of views of the stores `a`, `b` and `c`."""

    def __init__(self, batchfs, stores, document, folder=None):
        self.batchfs, (self.folder, self.data) = batchfs, stores
        self.document = document
        self.file = (folder or self.folder) / "mix.json"
        self.file.write_text(json.dumps(document))
        self.words = [self.folder / "a.zarr", "--view", self.file]
        for name in "bc":
            self.words += ["--store", f"{name}={self.folder / name}.zarr"]

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", *self.words, "--json"))

    def json(self, batch, epoch=0, *more):
        return json.loads(self.batchfs.bytes("batch", *self.words, "--batch", batch, "--epoch",
                                             epoch, "--format", "json", *more))

    def tensors(self, batch, epoch=0):
        bytes_ = self.batchfs.bytes("batch", *self.words, "--batch", batch, "--epoch", epoch,
                                    "--format", "npz")
        with np.load(io.BytesIO(bytes_), allow_pickle=False) as file:
            return dict(file)

    def refusal(self, command="plan"):
        return self.batchfs.refusal(command, *self.words)

    def epoch(self, epoch=0):
        """(component, sample) at each position of an epoch."""
        result = []
        for b in range(self.plan()["batches"]):
            row = self.json(b, epoch)
            result += zip(row["components"], row["component_samples"])
        return result


def three(batch=8, **more):
    """Views in three orders, as `more` mixes them."""
    weights = more.pop("weights", ({"weight": 5}, {"weight": 3}, {"weight": 2}))
    return {"mix": {"a": {"view": view_of(order={"shuffle": "global", "seed": 3})} | weights[0],
                    "b": {"view": view_of(order={"shuffle": "block", "seed": 4, "buffer": 2}),
                          "store": "b"} | weights[1],
                    "c": {"view": view_of(), "store": "c"} | weights[2]},
            "batch": batch} | more


def orders(batchfs, stores, folder):
    """The sample of each of the three views at a position of an epoch, by the views themselves."""
    known = {}

    def sample(component, position, epoch):
        if (component, epoch) not in known:
            name = "abc"[component]
            view = list(three()["mix"].values())[component]["view"] | {"batch": 1000}
            file = folder / f"one-{name}.json"
            file.write_text(json.dumps(view))
            row = json.loads(batchfs.bytes("batch", stores[0] / f"{name}.zarr", "--view", file,
                                           "--epoch", epoch, "--format", "json"))
            known[component, epoch] = row["samples"]
        return known[component, epoch][position]

    return sample


def model(plan, seed, epoch, positions):
    """(component, ordinal) at each position, by the functions of the page."""
    parts = plan["components"]
    rates, counts = [part["rate"] for part in parts], [part["per_epoch"] for part in parts]
    return [page()["mixed"](i, epoch, rates, plan["period"], counts, plan["block"], seed)
            for i in positions]


def largest_remainder(shares, total):
    exact = [share * total for share in shares]
    parts = [int(x) for x in exact]
    for c in sorted(range(len(exact)), key=lambda c: -(exact[c] - parts[c]))[:total - sum(parts)]:
        parts[c] += 1
    return parts


WAYS = {
    "weights": ({"epochs": {"count": 2, "samples": 300}, "order": {"seed": 7}}, 1024, [.5, .3, .2],
                300),
    "blocks": ({"epochs": {"count": 2, "samples": 300}, "batch": {"size": 8, "block": 64}}, 64,
               [.5, .3, .2], 300),
    "stratified": ({"batch": {"size": 10, "mixing": "stratified"}, "order": {"seed": 2**60}}, 10,
                   [.5, .3, .2], 155),
    "temperature": ({"temperature": 2.0, "batch": {"size": 8, "block": 50}}, 50,
                    [w**.5 / sum(w**.5 for w in (.5, .3, .2)) for w in (.5, .3, .2)], 155),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epoch", [0, 3])
def test_weights_give_exact_quotas(batchfs, stores, tmp_path, way, epoch):
    more, block, shares, samples = WAYS[way]
    mixture = Mixture(batchfs, stores, three(**more), tmp_path)
    plan = mixture.plan()
    quota = largest_remainder(shares, block)
    rest = largest_remainder(shares, samples % block)
    assert plan.get("epoch_samples", 155) == samples and plan["block"] == block
    assert [part["rate"] for part in plan["components"]] == quota
    assert [part["per_epoch"] for part in plan["components"]] == [
        samples // block * q + r for q, r in zip(quota, rest)]
    made = mixture.epoch(epoch)
    assert len(made) == samples
    for first in range(0, samples, block):
        count = collections.Counter(component for component, _ in made[first:first + block])
        expected = quota if first + block <= samples else rest
        assert [count[name] for name in "abc"] == expected
    sample = orders(batchfs, stores, tmp_path)
    for (name, number), (component, ordinal) in zip(
            made, model(plan, more.get("order", {}).get("seed", 0), epoch, range(samples))):
        n = N["abc"[component]]
        assert (name, number) == ("abc"[component], sample(component, ordinal % n, ordinal // n))


COUNTS = {"samples": ([{"samples": 200}, {"samples": 41}, {"samples": 3}], [200, 41, 3]),
          "repeat": ([{"repeat": 1}, {"repeat": 2.5}, {"repeat": .2}], [90, 100, 5]),
          "none": ([{}, {}, {}], [90, 40, 25]),
          "zero": ([{"samples": 30}, {"samples": 0}, {"samples": 30}], [30, 0, 30])}


@pytest.mark.parametrize("way", COUNTS)
@pytest.mark.parametrize("block", [None, 128])
def test_counts_are_exact_in_an_epoch(batchfs, stores, tmp_path, way, block):
    weights, counts = COUNTS[way]
    batch = {"size": 16} | ({"block": block} if block else {})
    mixture = Mixture(batchfs, stores, three(batch, weights=weights), tmp_path)
    plan = mixture.plan()
    assert [part["per_epoch"] for part in plan["components"]] == counts
    sample = orders(batchfs, stores, tmp_path)
    for epoch in range(2):
        made = mixture.epoch(epoch)
        count = collections.Counter(component for component, _ in made)
        assert [count[name] for name in "abc"] == counts
        for (name, number), (component, ordinal) in zip(made,
                                                        model(plan, 0, epoch, range(sum(counts)))):
            n = N["abc"[component]]
            assert (name, number) == ("abc"[component],
                                      sample(component, ordinal % n, ordinal // n))
        if way == "none" and epoch == 0:
            assert len(set(made)) == len(made) == 155


def test_each_sample_of_a_view_comes_before_one_comes_twice(batchfs, stores, tmp_path):
    """A view's epochs continue across epochs of the mixture."""
    mixture = Mixture(batchfs, stores,
                      three(epochs={"count": 4, "samples": 70}, batch={"size": 10, "block": 20}),
                      tmp_path)
    plan = mixture.plan()
    by_ordinal = collections.defaultdict(dict)
    for epoch in range(4):
        for (name, number), (_, ordinal) in zip(mixture.epoch(epoch),
                                                model(plan, 0, epoch, range(70))):
            assert by_ordinal[name].setdefault(ordinal, number) == number
    for name, numbers in by_ordinal.items():
        assert sorted(numbers) == list(range(len(numbers))), "an ordinal is missing"
        n = N[name]
        for first in range(0, len(numbers) - n + 1, n):
            assert sorted(numbers[o] for o in range(first, first + n)) == list(range(n))


@pytest.mark.parametrize("mixing", ["sample", "stratified", "batch"])
def test_values_labels_and_numbers_are_those_of_the_views(batchfs, stores, tmp_path, mixing):
    mixture = Mixture(batchfs, stores, three({"size": 12, "mixing": mixing}), tmp_path)
    plan = mixture.plan()
    first = {part["name"]: part["first"] for part in plan["components"]}
    assert first == {"a": 0, "b": 90, "c": 130}
    assert [t["shape"] for t in plan["tensors"]] == [[12, 2, 1, 4]]
    for b in range(plan["batches"]):
        row, tensors = mixture.json(b), mixture.tensors(b)
        assert row["samples"] == [first[c] + s
                                  for c, s in zip(row["components"], row["component_samples"])]
        if mixing == "batch":
            assert len(set(row["components"])) == 1 and len(row["samples"]) == 12
        for i, (name, s) in enumerate(zip(row["components"], row["component_samples"])):
            ds = mixture.data[name]
            assert np.array_equal(tensors["x"][i, :, 0], np.stack([ds.t.values[s], ds.u.values[s]]))
            assert row["windows"][i] == {"time": [s, s + 1]}
            assert np.datetime64(row["coordinates"]["time"][i]) == ds.time.values[s]


def test_by_batch_batches_have_exact_quotas(batchfs, stores, tmp_path):
    mixture = Mixture(batchfs, stores, three({"size": 7, "mixing": "batch", "block": 10}), tmp_path)
    plan = mixture.plan()
    assert plan["batches"] == 23 and plan["epoch_samples"] == 23 * 7
    sample = orders(batchfs, stores, tmp_path)
    for epoch in range(2):
        names = []
        for b, (component, ordinal) in enumerate(model(plan, 0, epoch, range(23))):
            row = mixture.json(b, epoch)
            names.append(row["components"][0])
            n = N["abc"[component]]
            assert row["component_samples"] == [sample(component, o % n, o // n)
                                                for o in range(ordinal * 7, ordinal * 7 + 7)]
        for first in 0, 10:
            assert collections.Counter(names[first:first + 10]) == {"a": 5, "b": 3, "c": 2}


def test_ranks_share_an_epoch_with_any_world_size(batchfs, stores, tmp_path):
    mixture = Mixture(batchfs, stores, three({"size": 8, "remainder": "drop"}), tmp_path)
    whole = [mixture.json(b)["samples"] for b in range(mixture.plan()["batches"])]
    for world in 2, 3:
        for rank in range(world):
            for b in range(len(whole) // world):
                assert mixture.json(b, 0, "--rank", rank, "--world",
                                    world)["samples"] == whole[b * world + rank]


def test_start_goes_on_at_the_ordinals_with_other_weights(batchfs, stores, tmp_path):
    starts = {"a": 64, "b": 31, "c": 400}
    weights = ({"weight": 1}, {"weight": 1}, {"weight": 0})
    mixture = Mixture(batchfs, stores, three(weights=weights, start=starts), tmp_path)
    plan = mixture.plan()
    sample = orders(batchfs, stores, tmp_path)
    for (name, number), (component, ordinal) in zip(mixture.epoch(), model(plan, 0, 0, range(155))):
        ordinal += starts["abc"[component]]
        n = N["abc"[component]]
        assert (name, number) == ("abc"[component], sample(component, ordinal % n, ordinal // n))


@pytest.mark.parametrize("mixing", ["sample", "stratified", "batch"])
def test_start_reads_what_is_left_first(batchfs, stores, tmp_path, mixing):
    starts = {"a": {"samples": 64, "left": [3, 40, 62]}, "b": 31,
              "c": {"samples": 400, "left": [*range(10, 391, 10)]}}
    weights = ({"weight": 1}, {"weight": 1}, {"weight": 1})
    mixture = Mixture(batchfs, stores,
                      three({"size": 6, "mixing": mixing}, weights=weights, start=starts), tmp_path)
    plan = mixture.plan()
    assert {part["name"]: part["start"] for part in plan["components"]} == starts
    sample = orders(batchfs, stores, tmp_path)
    positions = model(plan, 0, 0, range(plan["batches"] if mixing == "batch" else 155))
    if mixing == "batch":
        positions = [(component, 6 * ordinal + i) for component, ordinal in positions
                     for i in range(6)]
    made = mixture.epoch()
    assert len(made) == len(positions)
    for (name, number), (component, ordinal) in zip(made, positions):
        first, left = (starts[name]["samples"], starts[name]["left"]) if name != "b" else (31, [])
        ordinal = left[ordinal] if ordinal < len(left) else first + ordinal - len(left)
        n = N["abc"[component]]
        assert (name, number) == ("abc"[component], sample(component, ordinal % n, ordinal // n))


def test_views_that_skip_missing_values_restrict_and_normalize_each_by_itself(batchfs, tmp_path):
    a, b = write(tmp_path / "a.zarr", 1, 30, "2001-01-01"), write(
        tmp_path / "b.zarr", 2, 20, "2002-01-01")
    a = a.copy(deep=True)
    a.t.values[[3, 4, 11]] = np.nan
    a.to_zarr(tmp_path / "a.zarr", mode="w", zarr_format=3)
    mean, std = float(b.t.mean()), float(b.t.std())
    numbers = {"t": {"mean": mean, "std": std}, "u": {"mean": 0.0, "std": 2.0}}
    document = {
        "mix": {"a": {"view": view_of(missing={"nan": "skip"})},
                "b": {"view": view_of(samples={"where": {"time": {"from": "2002-01-06"}}},
                                      normalize={"method": "zscore", "statistics": numbers}),
                      "store": "b"}},
        "batch": 100}
    (tmp_path / "mix.json").write_text(json.dumps(document))
    words = [tmp_path / "a.zarr", "--view", tmp_path / "mix.json", "--store",
             f"b={tmp_path / 'b.zarr'}", "--cache-dir", tmp_path / "cache"]
    plan = json.loads(batchfs.bytes("plan", *words, "--json"))
    assert plan["samples"] == 42 and plan["dropped"] == {"missing": 3, "where": 5}
    row = json.loads(batchfs.bytes("batch", *words, "--format", "json"))
    x = batchfs.npy("batch", *words, "--tensor", "x")
    seen = collections.defaultdict(set)
    for i, name in enumerate(row["components"]):
        start = row["windows"][i]["time"][0]
        seen[name].add(start)
        if name == "a":
            assert np.array_equal(x[i, 0, 0], a.t.values[start])
        else:
            assert np.allclose(x[i, 0, 0], (b.t.values[start] - mean) / std, atol=1e-6)
    assert seen == {"a": set(range(30)) - {3, 4, 11}, "b": set(range(5, 20))}


def test_files_beside_the_mixture_and_parts_of_splits(batchfs, stores, tmp_path):
    split = view_of(split={"parts": {"train": "rest", "val": [{"time": {"from": "#60"}}]}})
    (tmp_path / "a.json").write_text(json.dumps(split))
    (tmp_path / "b.yaml").write_text("window: {time: 1}\n"
                                     "tensors: {x: {variables: [t, u], stack: channel}}\n")
    mixture = Mixture(batchfs, stores, {"mix": {"a": {"view": "a.json", "part": "val"},
                                                "b": {"view": "b.yaml", "store": "b"}}}, tmp_path)
    assert [part["samples"] for part in mixture.plan()["components"]] == [30, 40]
    mixture = Mixture(batchfs, stores, {"mix": {"a": "a.json", "b": "b.yaml"}}, tmp_path)
    assert 'mix.a: the view has a "split": write "part": "train"' in mixture.refusal()


def test_views_of_one_store_share_its_chunks(batchfs, stores, tmp_path):
    document = {"mix": {"a": {"view": view_of(order={"shuffle": "global"})},
                        "b": {"view": view_of(select={"time": {"from": "#7", "to": "#31"}})}},
                "batch": 30}
    mixture = Mixture(batchfs, stores, document, tmp_path)
    assert mixture.plan()["samples"] == 90 + 24
    ds = mixture.data["a"]
    for b in range(4):
        row, tensors = mixture.json(b), mixture.tensors(b)
        for i, (name, sample) in enumerate(zip(row["components"], row["component_samples"])):
            step = sample + (7 if name == "b" else 0)
            assert row["windows"][i] == {"time": [step, step + 1]}
            assert np.array_equal(tensors["x"][i, :, 0],
                                  np.stack([ds.t.values[step], ds.u.values[step]]))


def test_channels_made_and_columns_of_lists_mix(batchfs, stores, tmp_path):
    (tmp_path / "a.csv").write_text("time,rain\n"
                                    + "".join(f"#{i},{i * .5}\n" for i in range(0, 90, 7)))
    (tmp_path / "b.csv").write_text("time,rain\n"
                                    + "".join(f"#{i},{-i * .25}\n" for i in range(0, 40, 3)))

    def view(name):
        return view_of(samples={"list": f"{name}.csv", "labels": ["rain"]}) | {"tensors": {"x": {
            "variables": ["t", {"make": "hypot", "of": ["t", "u"]}, {"make": "cos_julian_day"}],
            "stack": "channel"}}}
    document = {"mix": {"a": {"view": view("a")}, "b": {"view": view("b"), "store": "b"}},
                "batch": 9}
    mixture = Mixture(batchfs, stores, document, tmp_path)
    for b in range(mixture.plan()["batches"]):
        row, tensors = mixture.json(b), mixture.tensors(b)
        for i, name in enumerate(row["components"]):
            s = row["windows"][i]["time"][0]
            ds = mixture.data[name]
            assert np.array_equal(tensors["x"][i, 0, 0], ds.t.values[s])
            assert np.allclose(tensors["x"][i, 1, 0], np.hypot(ds.t.values[s], ds.u.values[s]),
                               atol=1e-6)
            assert tensors["rain"][i] == (s * .5 if name == "a" else -s * .25)


DIFFERENT = {
    "name": (view_of(tensors={"y": {"variables": ["t"]}}), "a tensor is 'x' in 'a' and 'y' in 'b'"),
    "type": (view_of(dtype="float16"), "the type of 'x' is float32 in 'a' and float16 in 'b'"),
    "shape": (view_of(window={"time": 2}),
              "the shape of a sample of 'x' is (2, 1, 4) in 'a' and (2, 2, 4) in 'b'"),
    "dims": (view_of(tensors={"x": {"variables": ["t", "u"], "stack": "field"}}),
             "what 'x' has as dimensions is sample, channel, time, lat in 'a' and sample, "
             "field, time, lat in 'b'"),
    "more": (view_of(tensors={"x": {"variables": ["t", "u"], "stack": "channel"},
                              "y": {"variables": ["t"]}}), "'b' has a tensor 'y' and 'a' has none"),
    "window": (view_of(window={"time": 1, "lat": 4}),
               "a window is none in 'a' and 4 of 'lat' in 'b'"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_tensors_that_differ_are_refused_with_the_first_difference(batchfs, stores, tmp_path, what):
    other, message = DIFFERENT[what]
    mixture = Mixture(batchfs, stores,
                      {"mix": {"a": {"view": view_of()}, "b": {"view": other, "store": "b"}}},
                      tmp_path)
    assert f"mix.b: {message}" in mixture.refusal()


def threes(**edge):
    return view_of(window={"time": {"size": 3, "stride": 3} | edge})


def test_one_view_pads(batchfs, stores, tmp_path):
    document = {"mix": {"a": {"view": threes()},
                        "b": {"view": threes(edge="pad", pad_value=-9), "store": "b"}},
                "batch": 200}
    mixture = Mixture(batchfs, stores, document, tmp_path)
    row, tensors = mixture.json(0), mixture.tensors(0)
    assert len(row["components"]) == 30 + 14
    for i, name in enumerate(row["components"]):
        s, ds = row["windows"][i]["time"][0], mixture.data[name]
        wanted = np.full((3, 4), -9, "f4")
        wanted[:len(ds.t[s:s + 3])] = ds.t.values[s:s + 3]
        assert np.array_equal(tensors["x"][i, 0], wanted)


def test_views_that_pad_with_other_values_are_refused(batchfs, stores, tmp_path):
    document = {"mix": {"a": {"view": threes(edge="pad", pad_value=-9)},
                        "b": {"view": threes(edge="pad", pad_value=-8), "store": "b"}}}
    assert "mix.b: padding of 'x' is not the same in 'a' and 'b': give both one \"pad_value\"" in (
        Mixture(batchfs, stores, document, tmp_path).refusal())


A, B = {"view": view_of()}, {"view": view_of(), "store": "b"}
REFUSED = {
    "key": ({"mix": {"a": A}, "window": {"time": 1}},
            'window: a mixture has no "window" of its own'),
    "shuffle": ({"mix": {"a": A}, "order": {"shuffle": "global"}},
                'order.shuffle: the order of a mixture has a "seed" only'),
    "nothing": ({"mix": {}}, "mix: name at least one view"),
    "store": ({"mix": {"a": A, "b": B | {"store": "d"}}}, "mix.b.store: no store 'd' is given"),
    "kinds": ({"mix": {"a": A | {"weight": 1}, "b": B | {"repeat": 1}}},
              'mix.b: it has "repeat", and \'a\' has "weight": one kind for all'),
    "one": ({"mix": {"a": A | {"weight": 1}, "b": B}},
            'mix.b: it has no "weight", and \'a\' has one'),
    "negative": ({"mix": {"a": A | {"weight": -1}}}, "mix.a.weight: -1 is not a number from 0 on"),
    "zero": ({"mix": {"a": A | {"weight": 0}, "b": B | {"weight": 0}}}, 'mix: each "weight" is 0'),
    "small": ({"mix": {"a": A | {"weight": 1e6}, "b": B | {"weight": 1}}},
              'mix.b: its share of 1024 positions, which have exact quotas, is 0.00102; give '
              '"batch" a larger "block"'),
    "stratified": ({"mix": {"a": A | {"weight": 30}, "b": B | {"weight": 1}},
                    "batch": {"size": 4, "mixing": "stratified"}},
                   'mix.b: with "stratified" each batch has a sample of each view'),
    "temperature": ({"mix": {"a": A | {"repeat": 1}}, "temperature": 2},
                    "temperature: it goes with \"weight\""),
    "epochs": ({"mix": {"a": A | {"samples": 5}}, "epochs": {"samples": 9}},
               "epochs.samples: the \"samples\" of \"mix\" say how long an epoch is"),
    "start": ({"mix": {"a": A}, "start": {"b": 4}}, "start.b: \"mix\" has no view 'b'"),
    "left": ({"mix": {"a": A}, "start": {"a": {"samples": 4, "left": [4]}}},
             'start.a.left[0]: 4 is not below "samples", 4'),
    "left order": ({"mix": {"a": A}, "start": {"a": {"samples": 4, "left": [2, 1]}}},
                   "start.a.left[1]: the list is not ascending"),
    "mixing": ({"mix": {"a": A}, "batch": {"size": 1, "mixing": "random"}},
               "batch.mixing: 'random' is none of sample, stratified, batch"),
    "nested": ({"mix": {"a": {"view": {"mix": {"a": A}}}}}, "mix.a: it is a mixture itself"),
    "partial": ({"mix": {"a": {"view": view_of(window={"time": {"size": 4, "edge": "partial"}})}}},
                'window.time.edge: "partial" makes short batches'),
    "xbatcher": ({"mix": {"a": {"view": {"xbatcher": {"input_dims": {"time": 2}}}}}},
                 'a mixture takes views with "window"'),
    "short": ({"mix": {"a": A | {"weight": 99}, "b": B | {"weight": 1}}, "epochs": {"samples": 3}},
              "mix.b: an epoch of 3 samples has none of its samples"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_mixed_is_refused(batchfs, stores, tmp_path, what):
    document, message = REFUSED[what]
    assert message in Mixture(batchfs, stores, document, tmp_path).refusal()


def test_statistics_are_those_of_each_view(batchfs, stores, tmp_path):
    (tmp_path / "a.json").write_text(
        json.dumps(view_of(select={"time": {"from": "#10", "to": "#50"}})))
    mixture = Mixture(batchfs, stores,
                      {"mix": {"a": "a.json", "b": {"view": view_of(), "store": "b"}}}, tmp_path)
    numbers = json.loads(batchfs.bytes("statistics", *mixture.words, "--quantiles", "--json", "-o",
                                       tmp_path / "s.json"))["mix"]
    assert list(numbers) == ["a", "b"]
    assert [numbers[name]["store"].rsplit("/", 1)[1] for name in "ab"] == ["a.zarr", "b.zarr"]
    selected = {"a": stores[1]["a"].isel(time=slice(10, 50)), "b": stores[1]["b"]}
    for name, ds in selected.items():
        for variable, entry in numbers[name]["variables"].items():
            values = ds[variable].values.astype("f8")
            np.testing.assert_allclose([entry["mean"], entry["std"], entry["median"]],
                                       [values.mean(), values.std(), np.median(values)], rtol=1e-12,
                                       atol=1e-15)
    alone = json.loads(batchfs.bytes("statistics", mixture.folder / "a.zarr", "--view",
                                     tmp_path / "a.json", "--quantiles", "--json"))
    assert alone | {"snapshot": ""} == numbers["a"] | {"snapshot": ""}  # here that of all stores
    # Each view finds its own numbers in the file of all.
    for method in ("zscore", "robust"):
        normalize = {"method": method, "statistics": "s.json"}
        document = {"mix": {"a": view_of(normalize=normalize),
                            "b": {"view": view_of(normalize=normalize), "store": "b"}},
                    "batch": 130}
        document["mix"]["a"] = {"view": document["mix"]["a"]}
        mixed = Mixture(batchfs, stores, document, tmp_path)
        info, x = mixed.json(0), mixed.tensors(0)["x"]
        for row, (name, sample) in enumerate(zip(info["components"], info["component_samples"])):
            name = name if isinstance(name, str) else "ab"[name]
            for channel, variable in enumerate("tu"):
                entry = numbers[name]["variables"][variable]
                by = (entry["mean"], entry["std"]) if method == "zscore" else (
                    entry["median"], entry["p75"] - entry["p25"])
                expected = (stores[1][name][variable].values[sample].astype("f8") - by[0]) / by[1]
                np.testing.assert_allclose(x[row, channel, 0], expected, rtol=1e-6, atol=1e-7)
    document["mix"]["c"] = {"view": view_of(normalize=normalize), "store": "c"}
    assert "no statistics of 'c' of the mixture" in Mixture(batchfs, stores, document,
                                                            tmp_path).refusal()
    (tmp_path / "a.json").write_text(json.dumps(view_of(normalize=normalize)))
    assert "the file is of a mixture" in batchfs.refusal("plan", mixture.folder / "a.zarr",
                                                         "--view", tmp_path / "a.json")


def test_check_reads_each_view(batchfs, stores, tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    data = {name: write(folder / f"{name}.zarr", 1, 20, "2000-01-01") for name in "abc"}
    mixture = Mixture(batchfs, (folder, data),
                      {"mix": {"a": {"view": view_of()}, "b": {"view": view_of(), "store": "b"}}},
                      tmp_path)
    words = mixture.words[:5]
    found = json.loads(batchfs.bytes("check", *words, "--json"))["mix"]
    assert {name: (part["chunks"], part["problems"])
            for name, part in found.items()} == {"a": (8, 0), "b": (8, 0)}
    chunk = next(path for path in (folder / "b.zarr" / "t").rglob("*")
                 if path.is_file() and path.name == "0" and path.parent.name == "1")
    chunk.write_bytes(chunk.read_bytes()[:-3])
    assert "1 problem was found" in batchfs.refusal("check", *words)


@pytest.mark.parametrize("command", ["statistics", "check"])
def test_mixtures_are_not_shared_among_tasks(batchfs, stores, tmp_path, command):
    mixture = Mixture(batchfs, stores, {"mix": {"a": {"view": view_of()}}}, tmp_path)
    share = ["--out", tmp_path / "parts", "--task", 0, "--tasks", 2]
    assert "a mixture is read by one process" in batchfs.refusal(
        command, *mixture.words[:3], *share)


def test_labels_that_differ_are_warned_of(batchfs, stores, tmp_path):
    write(tmp_path / "other.zarr", 9, 12, "2009-01-01")
    other = xr.open_zarr(tmp_path / "other.zarr").load().assign_coords(lat=[5.0, 6, 7, 8])
    other.drop_encoding().to_zarr(tmp_path / "other.zarr", mode="w", zarr_format=3)
    document = {"mix": {
        "a": A, "o": {"view": view_of(tensors={"x": {"variables": ["u", "t"], "stack": "channel"}}),
                      "store": "o"}}}
    (tmp_path / "mix.json").write_text(json.dumps(document))
    plan = json.loads(batchfs.bytes("plan", stores[0] / "a.zarr", "--view", tmp_path / "mix.json",
                                    "--store", f"o={tmp_path}/other.zarr", "--json"))
    assert plan["warnings"] == ["'a' and 'o' have other labels along 'lat': batches have none",
                                "channel 0 of 'x' is 't' in 'a' and 'u' in 'o'"]
    assert [c["name"] for c in plan["coordinates"]] == ["time"]
