"""Positions of a view ("#3", ranges of them, steps) count inside its selection, in "where" and in
the regions of "split"; and ranges of positions that go round, everywhere. The positions are
numpy's, window by window, in random views of a small store.

Each seed is one store and a number of views. BATCHFS_POSITIONS_SEEDS=100:200 asks others than the
usual ones.
"""

import itertools
import json
import os

import numpy as np
import pytest
import xarray as xr

FIRST, LAST = map(int, os.environ.get("BATCHFS_POSITIONS_SEEDS", "0:4").split(":"))


class Refused(Exception):
    """The words of the expected error."""


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def make_store(rng, path):
    """`x` has labels, `lon` has some of a circle, `y` has none. The values are all different."""
    nx, nlon, ny = (int(rng.integers(low, 13)) for low in (7, 7, 5))
    x = np.sort(rng.choice(100, nx, replace=False))[::pick(rng, 1, -1)] * 1.0
    lon = np.arange(nlon) * 360.0 / nlon
    dataset = xr.Dataset(
        {"v": (("y", "x", "lon"), np.arange(nx * nlon * ny).reshape(ny, nx, nlon))},
        {"x": x, "lon": ("lon", lon, {"units": "degrees_east"})})
    dataset.to_zarr(path, zarr_format=2, encoding={"v": {"chunks": (2, 3, 4)}})
    return dataset


def around(n, a, b):
    """A range of positions that goes round: from a until before b, of which one may count from the
    end."""
    if not (-n <= a < n and -n <= b <= n):
        raise Refused("is outside of")
    if a < 0 <= b:  # the last positions and the first ones
        count = b - a
        if count > n:
            raise Refused("more than once round")
    else:
        count = (b % n if b < n else n) - a % n
        count += n if count < 0 else 0
    if count == 0:
        raise Refused("the range of positions is empty")
    return (a + np.arange(count)) % n


def number(rng, n):
    return int(rng.integers(-n - 2, n + 3))


def some_range(rng, n):
    """A range of positions as it is written, and its positions among n."""
    a, b = (number(rng, n) if rng.random() < 0.8 else None for _ in range(2))
    if a is None and b is None:
        a = -1
    written = {key: f"#{end}" for key, end in (("from", a), ("to", b)) if end is not None}
    step = pick(rng, 1, 1, 2, 3)
    if step > 1:
        written["step"] = step

    def found():
        if "wrap" in written:
            return around(n, a, b)[::step]
        positions = np.arange(n)[slice(a, b)][::step]
        if positions.size == 0:
            raise Refused("the range of positions is empty")
        return positions

    if len(written) - (step > 1) == 2 and rng.random() < 0.4:
        written["wrap"] = True
    return written, found


def some_labels(rng, labels, of):
    """A range of labels, any of the store's; its places among the labels that are selected."""
    low, high = np.sort(rng.choice(labels, 2))
    step = pick(rng, 1, 2, 3)
    written = {"from": low, "to": high, **({"step": step} if step > 1 else {})}
    if (of >= 0).all() and (labels >= 0).all() and rng.random() < 0.5 and np.ptp(labels) > 200:
        start, end = pick(rng, (low, high), (high, low))
        written |= {"from": start, "to": end, "wrap": True}
        turned = (of - start) % 360
        places = np.argsort(turned, kind="stable")
        return written, lambda: places[turned[places] <= (end - start) % 360][::step]
    return written, lambda: np.flatnonzero((of >= low) & (of <= high))[::step]


def condition(rng, stored, selected, dim):
    """A condition along a dimension, and the positions of the selection that fulfil it."""
    n = len(selected)
    ask = pick(rng, "one", "list", "range", "range", "range",
               *(["labels", "labels"] if dim != "y" else []))
    if ask == "labels":
        labels = stored[dim].values
        return some_labels(rng, labels, labels[selected])
    if ask == "range":
        return some_range(rng, n)
    numbers = [number(rng, n) for _ in range(1 if ask == "one" else 3)]

    def found():
        if any(not -n <= k < n for k in numbers):
            raise Refused("is outside of")
        return np.arange(n)[numbers]

    return f"#{numbers[0]}" if ask == "one" else [f"#{k}" for k in numbers], found


def selection(rng, stored, dim):
    """A selection along a dimension as it is written, and the stored positions: at least three."""
    n = stored.sizes[dim]
    while True:
        ask = pick(rng, "all", "range", "range", "list", *(["labels"] if dim != "y" else []))
        if ask == "all":
            return None, np.arange(n)
        if ask == "list":
            numbers = rng.choice(n, int(rng.integers(3, n)), replace=rng.random() < 0.3)
            return [f"#{k}" for k in numbers], numbers
        labels = stored[dim].values
        written, found = some_range(rng, n) if ask == "range" else some_labels(rng, labels, labels)
        try:
            positions = found()
        except Refused:
            continue
        if len(positions) >= 3:
            return written, positions


class Case:
    def __init__(self, rng, stored):
        self.rng, self.stored = rng, stored
        self.dims = list(rng.permutation(["x", "lon", "y"])[:pick(rng, 1, 2)])
        self.view = {"name": "v", "batch": 4096, "window": {}, "select": {}}
        self.selected = {}
        for dim in ("x", "lon", "y"):
            written, self.selected[dim] = selection(rng, stored, dim)
            if written is not None:
                self.view["select"][dim] = written
        for dim in self.dims:
            self.view["window"][dim] = {"size": int(rng.integers(1, 3)),
                                        "stride": int(rng.integers(1, 3))}

    def windows(self):
        """The start along each dimension of each window, in order."""
        along = []
        for dim in self.dims:
            size, stride = self.view["window"][dim].values()
            along.append(range(0, len(self.selected[dim]) - size + 1, stride))
        return list(itertools.product(*along))

    def footprint(self, start):
        return [range(s, s + self.view["window"][dim]["size"]) for dim, s in zip(self.dims, start)]

    def values(self, starts):
        samples = []
        for start in starts:
            places = dict(zip(self.dims, self.footprint(start)))
            samples.append(self.stored.v.isel({
                dim: self.selected[dim][list(places.get(dim, range(len(self.selected[dim]))))]
                for dim in ("x", "lon", "y")}).transpose("y", "x", "lon").values)
        return np.stack(samples)

    def conditions(self):
        """By dimension, as written; and the functions that find the positions."""
        asked = {dim: condition(self.rng, self.stored, self.selected[dim], dim)
                 for dim in self.dims}
        return {dim: written for dim, (written, _) in asked.items()}, [
            found for _, found in asked.values()]


def check(batchfs, folder, case, expected, *options):
    """`expected` computes the starts of the samples, or throws Refused."""
    (folder / "v.json").write_text(json.dumps(case.view))
    arguments = (folder / "s.zarr", "--view", folder / "v.json", *options)
    try:
        starts = expected()
    except Refused as refused:
        assert str(refused) in batchfs.refusal("batch", *arguments), case.view
        return False
    np.testing.assert_array_equal(batchfs.npy("batch", *arguments), case.values(starts),
                                  err_msg=str(case.view))
    return True


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_where_counts_inside_the_selection(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    stored = make_store(rng, tmp_path / "s.zarr")
    had_samples = 0
    for _ in range(25):
        case = Case(rng, stored)
        written, positions = case.conditions()
        of_footprint = rng.random() < 0.3
        case.view["samples"] = {"where": written | ({"of": "footprint"} if of_footprint else {})}

        def samples(case=case, positions=positions, of_footprint=of_footprint):
            left = case.windows()
            for d, found in enumerate(positions):
                those = set(found().tolist())
                left = [start for start in left if (set(case.footprint(start)[d]) <= those
                                                    if of_footprint else start[d] in those)]
                if not left:
                    raise Refused("no sample is left")
            return left

        had_samples += check(batchfs, tmp_path, case, samples)
    assert had_samples >= 5


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_regions_of_a_split_count_inside_the_selection(batchfs, tmp_path, seed):
    rng = np.random.default_rng(1000 + seed)
    stored = make_store(rng, tmp_path / "s.zarr")
    had_samples = 0
    for _ in range(25):
        case = Case(rng, stored)
        written, positions = case.conditions()
        case.view["split"] = {"parts": {"a": "rest", "b": [written]}}

        def part(name, case=case, positions=positions):
            chosen = []
            for found in positions:
                chosen.append(set(found().tolist()))
                if not chosen[-1]:
                    raise Refused('"select" has none of these labels')
            parts = {"a": [], "b": []}
            for start in case.windows():
                inside = [all(p in those for p, those in zip(cell, chosen))
                          for cell in itertools.product(*case.footprint(start))]
                if all(inside):
                    parts["b"].append(start)
                if not any(inside):
                    parts["a"].append(start)
            if not parts[name]:
                raise Refused("no sample")
            return parts[name]

        for name in ("a", "b"):
            had_samples += check(batchfs, tmp_path, case, lambda part=part, name=name: part(name),
                                 "--part", name)
    assert had_samples >= 8


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_ranges_of_positions_go_round_in_commands_and_views(batchfs, tmp_path, seed):
    rng = np.random.default_rng(2000 + seed)
    stored = make_store(rng, tmp_path / "s.zarr")
    n = stored.sizes["y"]
    for a, b in (rng.permutation(list(itertools.product(range(-n - 1, n + 2), repeat=2)))[:30]
                     .tolist() + [[-2, n - 2], [-n, 0]]):
        view = {"select": {"y": {"from": f"#{a}", "to": f"#{b}", "wrap": True}}, "window": {"y": 1},
                "batch": n}
        (tmp_path / "v.json").write_text(json.dumps(view))
        commands = (("cat", tmp_path / "s.zarr", "v", "--select", f"y=#{a}:#{b}:wrap"),
                    ("batch", tmp_path / "s.zarr", "--view", tmp_path / "v.json"))
        try:
            positions = around(n, a, b)
        except Refused as refused:
            for command in commands:
                assert str(refused) in batchfs.refusal(*command), (a, b)
            continue
        values = stored.v.values[positions]
        np.testing.assert_array_equal(batchfs.npy(*commands[0]), values, err_msg=str((a, b)))
        np.testing.assert_array_equal(batchfs.npy(*commands[1]), values[:, None],
                                      err_msg=str((a, b)))
