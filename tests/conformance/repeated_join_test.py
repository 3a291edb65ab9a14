"""Joins along dimensions that an array has more than once, as covariances (time, c, c): batches
against numpy.

Each value is looked up by its labels along every occurrence of the dimension.
BATCHFS_REPEATED_JOIN_SEEDS=100:200 asks others than the usual ones.
"""

import os

import numpy as np
import pytest
import zarr
from several_stores import SeveralStores

SEEDS = range(*map(int, os.environ.get("BATCHFS_REPEATED_JOIN_SEEDS", "0:60").split(":")))
KINDS = ["exact", "last", "next", "nearest", "fine", "coarse", "equal", "lacking"]


def create(path, arrays):
    group = zarr.open_group(path, mode="w")
    for name, (dims, values) in arrays.items():
        values = np.asarray(values)
        chunks = tuple(max(1, n - 1) for n in values.shape)
        group.create_array(name, data=values, chunks=chunks, dimension_names=dims)
    return path


def position(own, label, pick):
    """The place of the label that stands for another one; -1: none does."""
    fits = {"exact": own == label, "last": own <= label, "next": own >= label,
            "nearest": own == own}[pick]
    places = np.flatnonzero(fits)
    if len(places) == 0:
        return -1
    return int(min(places, key=lambda i: (abs(own[i] - label), -own[i])))


class Axis:
    """The labels of the first source, those of another one, and for each occurrence where each of
    the first is there."""

    def __init__(self, rng, kind, count, number):
        self.kind, self.number = kind, number
        self.labels = 10.0 * np.arange(1, number + 1)
        if kind not in ("fine", "coarse"):
            self.labels = rng.permutation(self.labels)
        own, self.cells = self.labels, np.arange(number)[:, None]
        if kind == "exact":
            own = rng.permutation(np.union1d(self.labels[:rng.integers(1, number + 1)],
                                             [7.0, 999.0]))
        elif kind in ("last", "next", "nearest"):
            own = rng.permutation(np.unique(self.labels + rng.integers(-6, 7, number)))
        elif kind == "fine":
            own = np.add.outer(self.labels, [-2.5, 2.5]).ravel()
            self.cells = np.arange(2 * number).reshape(number, 2)
        elif kind == "coarse":
            own = self.labels.reshape(-1, 2).mean(1)
            self.cells = (np.arange(number) // 2)[:, None]
        order = rng.permutation(len(own)) if kind in ("fine", "coarse") else np.arange(len(own))
        self.own = own[order]
        place = np.argsort(order)
        # The second occurrence may have a rule of its own.
        self.picks = [kind] * count
        if kind in ("last", "next", "nearest") and rng.random() < 0.4:
            self.picks[1] = str(rng.choice(["last", "next", "nearest"]))
        if kind in ("fine", "coarse"):
            self.places = [place[self.cells]] * count
        elif kind in ("equal", "lacking"):
            self.places = [self.cells] * count
        else:
            self.places = [np.array([[position(self.own, label, pick)] for label in self.labels])
                           for pick in self.picks]

    def rules(self, rng, name, pads):
        """The keys of "join"; `name`: that of the dimension in the first source."""
        if self.kind in ("equal", "lacking"):
            return {}
        pad = {"missing": "pad"} if pads else {}
        def rule(pick, own, known):
            own_rule = {"fine": {"ratio": 2}, "coarse": {"ratio": "1/2"}}.get(pick, {"pick": pick})
            return own_rule | pad | ({"as": known} if known != own else {})
        rules = {"c": rule(self.picks[0], "c", name)}
        if self.picks[1] != self.picks[0] or rng.random() < 0.2:
            rules["c:2"] = rule(self.picks[1], "c:2", f"{name}:2")
        return rules


def taken(values, axes, places):
    """Values at places of every axis; NaN at -1; one place drops the axis."""
    for axis, at in reversed(list(zip(axes, places))):
        at = np.asarray(at)
        shape = [1] * values.ndim
        shape[axis] = at.size
        found = np.where((at < 0).reshape(shape), np.nan,
                         np.take(values, np.maximum(at.ravel(), 0), axis))
        values = found if at.ndim else found.squeeze(axis)
    return values


@pytest.mark.parametrize("seed", SEEDS)
def test_each_value_is_found_by_its_labels(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    kind, count = KINDS[seed % len(KINDS)], int(rng.integers(2, 4))
    axis = Axis(rng, kind, count, 4 if kind == "coarse" else int(rng.choice([2, 4])))
    name = "station" if rng.random() < 0.4 and kind not in ("equal", "lacking") else "c"
    pads = bool(rng.integers(2))
    times = 3
    dims = ["c"] * count
    dims.insert(int(rng.integers(count + 1)), "time")
    axes = [d for d, own in enumerate(dims) if own == "c"]
    values = rng.permutation(int(times * len(axis.own) ** count)).astype("f4")
    values = values.reshape([times if own == "time" else len(axis.own) for own in dims])
    first = {"time": (["time"], np.arange(times)), "t": (["time"], np.arange(times, dtype="f4"))}
    repeats_too = kind != "lacking" and rng.random() < 0.4
    square = rng.standard_normal((times, axis.number, axis.number)).astype("f4")
    if kind != "lacking":
        first[name] = ([name], axis.labels)
    if repeats_too:
        first["square"] = (["time", name, name], square)
    create(tmp_path / "a", first)
    create(tmp_path / "b",
           {"c": (["c"], axis.own), "time": (["time"], np.arange(times)), "cov": (dims, values)})

    # A selection along the dimension is selected along its repetitions, unless they are named.
    names = [name, f"{name}:2", f"{name}:3"][:count]
    labels = axis.own if kind == "lacking" else axis.labels
    chosen, select = {}, {}
    for each in names[:2]:
        if rng.random() < 0.5:
            continue
        if rng.random() < 0.3 and kind != "fine" and not (repeats_too and each == name):
            at = int(rng.integers(axis.number))
            chosen[each], select[each] = at, float(labels[at])
        else:
            at = rng.permutation(axis.number)[:int(rng.integers(1, axis.number + 1))]
            chosen[each], select[each] = at, [float(labels[i]) for i in at]
    per_axis = [chosen.get(each, chosen.get(name, np.arange(axis.number))) for each in names]
    places = [own[at].reshape(-1) if np.ndim(at) else own[at, 0]
              for own, at in zip(axis.places, per_axis)]

    tensors = {"cov": {"variables": ["b:cov"]}} | ({"square": {"variables": ["square"]}}
                                                   if repeats_too else {})
    join = axis.rules(rng, name, pads)
    view = {"sources": {"a": {}, "b": {"store": "b"} | ({"join": join} if join else {})},
            "window": {"time": 1}, "select": select, "tensors": tensors, "batch": times}
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "a", [f"b={tmp_path}/b"])
    if all((own < 0).all() for own in axis.places[:1]) or (axis.places[1] < 0).all():
        assert "no label is in both" in stores.refusal(view)
        return
    if not pads and any((np.asarray(at) < 0).any() for at in places):
        assert "'b' lacks " in stores.refusal(view)
        return
    made = stores.tensors(view)
    time_axis = dims.index("time")
    want = np.moveaxis(values, time_axis, 0)
    want = taken(want, range(1, count + 1), places)
    dropped = sum(np.ndim(at) == 0 for own, at in zip(axes, places) if own < time_axis)
    got = np.moveaxis(made["cov"], 1 + time_axis - dropped, 1)[:, 0]
    np.testing.assert_array_equal(got, want.astype("f4"))
    if repeats_too:
        np.testing.assert_array_equal(made["square"][:, 0], taken(square, [1, 2], per_axis[:2]))


COVARIANCE = np.arange(18, dtype="f4").reshape(2, 3, 3)
ORDER = [2, 0, 1]


@pytest.fixture
def stores(batchfs, tmp_path):
    create(tmp_path / "a", {"time": (["time"], np.arange(2)), "c": (["c"], [10, 20, 30])})
    turned = COVARIANCE[:, ORDER][:, :, ORDER]
    for name in "bd":
        create(tmp_path / name, {"time": (["time"], np.arange(2)), "c": (["c"], [30, 10, 20]),
                                 "cov": (["time", "c", "c"], turned)})
    return SeveralStores(batchfs, tmp_path, tmp_path / "a",
                         [f"{name}={tmp_path}/{name}" for name in "bd"])


def view_of(variables, joins, **more):
    sources = {name: {"store": name, "join": join} for name, join in joins.items()}
    return {"sources": {"a": {}} | sources, "window": {"time": 1}, "batch": 2,
            "tensors": {"x": {"variables": variables, "stack": "source"}}} | more


def test_windows_slide_along_both_occurrences(stores):
    view = view_of(["b:cov"], {"b": {"c": "exact"}}, window={"c": 1, "c:2": 1}, batch=9)
    assert np.array_equal(stores.tensors(view)["x"][:, 0, :, 0, 0], COVARIANCE.reshape(2, 9).T)
    view["window"] = {"c": 1}
    assert "'b:cov' has the dimension 'c' twice" in stores.refusal(view)


def test_two_sources_share_the_repetition(stores):
    view = view_of(["b:cov", "d:cov"], {"b": {"c": "exact"}, "d": {"c": "exact"}},
                   select={"c": [30, 20]})
    want = COVARIANCE[:, [2, 1]][:, :, [2, 1]]
    assert np.array_equal(stores.tensors(view)["x"][:, :, 0], np.stack([want, want], 1))


def test_a_dimension_of_the_repetitions_name_is_another_one(batchfs, tmp_path, stores):
    """A selection along "c" does not hold for a dimension "c:2" that the first source has
    itself."""
    own = {"time": (["time"], np.arange(2)), "c": (["c"], [10, 20, 30]),
           "c:2": (["c:2"], [20, 30, 40]),
           "u": (["time", "c:2"], np.arange(6, dtype="f4").reshape(2, 3))}
    create(tmp_path / "a", own)
    line = stores.refusal(view_of(["b:cov"], {"b": {"c": "exact"}}))
    assert '\'c:2\' repeats \'c\' and would be \'c:2\', which is another dimension' in line
    view = view_of(["b:cov"], {"b": {"c": "exact", "c:2": {"missing": "pad"}}}, select={"c": [20]})
    want = np.concatenate([COVARIANCE[:, [1]][:, :, 1:], np.full((2, 1, 1), np.nan, "f4")], 2)
    np.testing.assert_array_equal(stores.tensors(view)["x"][:, 0, 0], want)
    view = view_of(["u"], {}, select={"c": [20]})
    assert stores.tensors(view)["x"].shape == (2, 1, 1, 3)
    # Dimensions with equal labels need no join, and stay dimensions of their own.
    create(tmp_path / "a", own | {"c": (["c"], [30, 10, 20]), "c:2": (["c:2"], [30, 10, 20])})
    view = view_of(["b:cov"], {"b": {}}, select={"c": [20]})
    assert np.array_equal(stores.tensors(view)["x"][:, 0, 0], COVARIANCE[:, [1]][:, :, ORDER])


def test_a_repetition_joins_that_of_another_repetition(tmp_path, stores):
    """The labels of "x:2" follow "x", which lies along the second occurrence of "c"."""
    create(tmp_path / "a", {"time": (["time"], np.arange(2)), "c": (["c"], [10, 20, 30]),
                            "cov": (["time", "c", "c"], COVARIANCE)})
    turned = COVARIANCE[:, ORDER][:, :, ORDER]
    create(tmp_path / "b", {"time": (["time"], np.arange(2)), "x": (["x"], [30, 10, 20]),
                            "cov": (["time", "x", "x"], turned)})
    for select, at in ({"c": [20, 10]}, [1, 0]), ({"c": [30], "c:2": [20, 10]}, [1, 0]), (
            {"c:2:2": [10, 20, 30]}, [0, 1, 2]):
        view = view_of(["b:cov"], {"b": {"x": {"as": "c:2"}}}, select=select)
        assert np.array_equal(stores.tensors(view)["x"][:, 0, 0], COVARIANCE[:, at][:, :, at])
