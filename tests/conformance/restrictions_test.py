"""Everything that determines which windows are samples and in which order they come, in random
combinations: spacing, where, mask, missing values, lists, weights, reserve, splits, lanes, home and
epochs of some samples, in several calendars. The samples are found window by window with numpy,
their order with the Python of batchfs-view(5), their values with xarray."""

import itertools
import json
import math

import brute_force
import jsonschema
import numpy as np
import pytest
import xarray as xr
from man_view_test import page

LAT, LON = 5, 6
CHUNKS = {"time": 7, "lat": 2, "lon": 4}  # the longest of the variables


class Store:
    """Times that are whole steps after the first one, some of them missing; `ticks` counts the
    steps."""

    def __init__(self, folder, rng):
        self.calendar = str(rng.choice(["standard", "noleap", "360_day", "julian"]))
        self.hours = int(rng.choice([6, 24]))
        count = int(rng.integers(24, 40))
        every = xr.date_range("2000-02-20", periods=count + 4, freq=f"{self.hours}h",
                              calendar=self.calendar, use_cftime=self.calendar != "standard")
        gone = rng.choice(np.arange(1, count + 3), int(rng.integers(0, 5)), replace=False)
        self.ticks = np.array([k for k in range(count + 4) if k not in gone])
        times = every[self.ticks]

        def field(*dims):
            sizes = {"time": len(times), "lat": LAT, "lon": LON}
            return dims, rng.random([sizes[d] for d in dims])

        values = field("time", "lat", "lon")[1].astype("f4")
        values[rng.random(values.shape) < 0.004] = np.nan
        self.stored = xr.Dataset(
            {"t": (("time", "lat", "lon"), values), "u": field("time", "lat", "lon"),
             "s": field("lat", "lon"), "m1": field("time"), "m2": field("lat", "lon"),
             "m3": field("time", "lat"), "w": field("time", "lat")},
            {"time": times, "lat": ("lat", np.arange(LAT) * 10.0, {"units": "degrees_north"}),
             "lon": ("lon", np.arange(LON) * 60.0, {"units": "degrees_east"})})
        self.path = folder / "s.zarr"
        self.stored.to_zarr(self.path, zarr_format=2, encoding={
            "t": {"chunks": (7, 2, 3)}, "u": {"chunks": (5, 2, 4)}, "s": {"chunks": (1, 2)}})
        self.first = int(rng.integers(0, 4)) * int(rng.random() < 0.4)
        self.ds = self.stored.isel(time=slice(self.first, None)).load()
        self.ticks = self.ticks[self.first:]


class Case:
    def __init__(self, folder, rng):
        self.rng, self.folder = rng, folder
        self.store = Store(folder, rng)
        self.ds = self.store.ds
        self.lengths = dict(self.ds.sizes)
        self.view = {"name": "v"}
        if self.store.first:
            self.view["select"] = {"time": {"from": f"#{self.store.first}"}}
        self.windows()
        self.view["tensors"] = {"x": {"variables": ["t"]}, "y": {"variables": ["u"]},
                                "z": {"variables": ["s"]}}
        self.offsets()
        self.restrictions()
        self.split()
        self.listed_and_weighted()
        self.ordered()

    def maybe(self, p):
        return self.rng.random() < p

    def windows(self):
        dims = {"time": {"size": int(self.rng.integers(1, 3)),
                         "stride": int(self.rng.integers(1, 3))}}
        if self.maybe(0.8):
            dims["lat"] = {"size": int(self.rng.integers(1, 4)),
                           "stride": int(self.rng.integers(1, 3))}
            if self.maybe(0.3):
                dims["lat"]["edge"] = "pad"
        if self.maybe(0.5):
            dims["lon"] = {"size": int(self.rng.integers(1, 4)),
                           "stride": int(self.rng.integers(1, 4)), "wrap": self.maybe(0.6)}
        names = list(dims)
        self.rng.shuffle(names)
        self.view["window"] = {name: dims[name] for name in names}
        self.dims = names
        self.window = dims

    def some_offsets(self):
        numbers = sorted(self.rng.choice(np.arange(-1, 3), int(self.rng.integers(1, 3)),
                                         replace=False).tolist())
        if self.maybe(0.5):
            return numbers, False
        return numbers, True

    def offsets(self):
        """`needed`: the offsets along each dimension, as (amount, is it a length of time)."""
        self.taken = {"x": [(0, False)], "y": [(0, False)]}
        for name in self.taken:
            if self.maybe(0.5):
                numbers, durations = self.some_offsets()
                self.taken[name] = [(o, durations) for o in numbers]
                self.view["tensors"][name]["offsets"] = {"time": self.written(numbers, durations)}
        self.needed = self.taken["x"] + self.taken["y"]
        if self.maybe(0.4):
            numbers, durations = self.some_offsets()
            self.view["reserve"] = {"time": self.written(numbers, durations)}
            self.needed = self.needed + [(o, durations) for o in numbers]

    def written(self, numbers, durations):
        return [f"{o * self.store.hours}h" for o in numbers] if durations else numbers

    def restrictions(self):
        samples = {}
        if self.maybe(0.3):
            samples["spacing"] = {"time": f"{self.store.hours}h"}
        if self.maybe(0.4):
            where = {}
            if self.maybe(0.7):
                where["time"] = {"month": [3]} if self.maybe(0.5) else {
                    "day": sorted(set(self.ds.time.dt.day.values.tolist()))[::2]}
            if "lat" in self.window and (not where or self.maybe(0.5)):
                where["lat"] = {"from": 10, "to": 35}
            if where:
                samples["where"] = where | ({"of": "footprint"} if self.maybe(0.4) else {})
        if self.maybe(0.4):
            usable = [m for m in ("m1", "m2", "m3") if set(self.ds[m].dims) <= set(self.window)]
            if usable:
                mask = {"variable": str(self.rng.choice(usable)), "above": 0.3}
                mask |= ({"at": "center"} if self.maybe(0.3) else {"fraction": [0.5, 1]}
                         if self.maybe(0.8) else {})
                samples["mask"] = mask
        if samples:
            self.view["samples"] = samples
        if self.maybe(0.4):
            self.view["missing"] = {"nan": "skip", "variables": ["x"]}
            if self.maybe(0.5):
                self.view["missing"]["at_most"] = 0.05

    def split(self):
        """`owner`: the part of a place along the dimensions of the split."""
        self.part = None
        if not self.maybe(0.5):
            return
        length = self.lengths["time"]
        gap = int(self.rng.integers(0, 3))
        self.gap_in_time = self.maybe(0.5)
        split = {"gap": {"time": f"{gap * self.store.hours}h" if self.gap_in_time else gap}}
        self.split_dims, self.gaps = ["time"], {"time": gap, "lat": 0}
        if self.maybe(0.4):
            block = int(self.rng.integers(8, 12))
            split |= {"blocks": {"time": block}, "fractions": {"train": 0.5, "val": 0.5},
                      "seed": int(self.rng.integers(100))}
            blocks = -(-length // block)
            owners = page()["draw"]([""] * blocks, [0.5, 0.5], 0, split["seed"], False)
            self.owner, self.rank = lambda place: owners[place[0] // block], lambda part: part
        else:
            a, b = sorted(self.rng.choice(length, 2, replace=False).tolist())
            times = [self.stamp(k) for k in (a, b)]
            region = {"time": {"from": times[0], "to": times[1]}}
            if "lat" in self.window and self.maybe(0.5):
                region["lat"] = {"from": 0, "to": 20}
                self.split_dims = [d for d in self.dims if d in ("time", "lat")]
                if self.maybe(0.5):
                    split["gap"]["lat"] = self.gaps["lat"] = 1
            inside = {"time": range(a, b + 1), "lat": range(3)}
            dims = self.split_dims
            self.owner = lambda place: int(all(p in inside[d]
                                               for p, d in zip(place, dims, strict=True)))
            self.rank = lambda part: 1 if part else -1
            split["parts"] = {"train": "rest", "val": [region]}
        self.view["split"] = split
        self.part = int(self.rng.integers(0, 2))

    def stamp(self, k):
        time = self.ds.time.values[k]
        return str(time) if isinstance(time, np.datetime64) else time.isoformat()

    # Requirements of a sample.

    def begin(self, start, offset):
        """The position of a window at an offset, or None."""
        amount, duration = offset
        if not duration:
            return start + amount
        found = np.flatnonzero(self.store.ticks == self.store.ticks[start] + amount)
        return int(found[0]) if found.size else None

    def fits(self, dim, start):
        size, n = self.window[dim]["size"], self.lengths[dim]
        offsets = self.needed if dim == "time" else [(0, False)]
        begins = [self.begin(start, o) for o in offsets]
        return all(b is not None and 0 <= b and b + size <= n for b in begins) and start + size <= n

    def footprint(self, dim, start):
        size, n = self.window[dim]["size"], self.lengths[dim]
        offsets = self.needed if dim == "time" else [(0, False)]
        begins = [self.begin(start, o) for o in offsets]
        places = range(min(begins), max(begins) + size)
        if self.window[dim].get("wrap"):
            return sorted({p % n for p in places})
        return [p for p in places if p < n]

    def along(self, dim):
        """The starts of a dimension, before any restriction; those of a length of time are one."""
        w, n = self.window[dim], self.lengths[dim]
        if w.get("wrap"):
            return list(range(0, n, w["stride"]))
        if w.get("edge") == "pad":
            starts = [s for s in range(0, n, w["stride"]) if s + w["size"] <= n]
            after = starts[-1] + w["stride"]
            return starts + ([after] if after < n and starts[-1] + w["size"] < n else [])
        offsets = [o for o, duration in self.needed if not duration] if dim == "time" else []
        return [s for s in range(0, n, w["stride"]) if s + w["size"] <= n
                and all(0 <= s + o and s + o + w["size"] <= n for o in offsets)]

    def separable(self, dim, start):
        """Spacing, where, a mask or a split along one dimension, and labels that offsets need."""
        if dim == "time" and not self.fits(dim, start):
            return False
        samples, places = self.view.get("samples", {}), self.footprint(dim, start)
        if dim in samples.get("spacing", {}) and any(np.diff(self.store.ticks[places]) != 1):
            return False
        condition = samples.get("where", {}).get(dim)
        if condition:
            of = places if samples["where"].get("of") == "footprint" else [start]
            if not all(self.fulfils(dim, condition, p) for p in of):
                return False
        mask = samples.get("mask")
        if mask and self.ds[mask["variable"]].dims == (dim,) and not self.masked({dim: start}):
            return False
        return self.part is None or self.split_dims != [dim] or self.in_part({dim: start})

    def fulfils(self, dim, condition, p):
        labels = self.ds[dim].isel({dim: p})
        if "from" in condition:
            return condition["from"] <= float(labels) <= condition["to"]
        (field, values), = condition.items()
        return int(getattr(labels.dt, field)) in values

    def masked(self, at):
        mask = self.view["samples"]["mask"]
        marked = self.ds[mask["variable"]] > mask["above"]
        if mask.get("at") == "center":
            center = {d: at[d] + self.window[d]["size"] // 2 for d in marked.dims}
            center = {d: c % self.lengths[d] if self.window[d].get("wrap") else c
                      for d, c in center.items()}
            return all(c < self.lengths[d] for d, c in center.items()) and bool(marked.isel(center))
        cells = marked.isel({d: self.footprint(d, at[d]) for d in marked.dims}).values
        low, high = mask.get("fraction", [1, 1])
        return low <= cells.sum() / cells.size <= high

    def in_part(self, at):
        footprint = [self.footprint(d, at[d]) for d in self.split_dims]
        gaps = [(self.gaps[d], self.lengths[d], False, self.store.ticks.tolist() if d == "time"
                     and self.gap_in_time else None) for d in self.split_dims]
        return page()["is_sample"](self.part, footprint, self.owner, self.rank, gaps)

    def joint(self, at):
        mask = self.view.get("samples", {}).get("mask")
        if mask and len(self.ds[mask["variable"]].dims) > 1 and not self.masked(at):
            return False
        if self.part is not None and len(self.split_dims) > 1 and not self.in_part(at):
            return False
        missing = self.view.get("missing")
        if not missing:
            return True
        values = self.tensor("x", at, inside=True)
        return np.isnan(values).mean() <= missing.get("at_most", 0)

    def tensor(self, name, at, inside=False):
        variable = self.ds[self.view["tensors"][name]["variables"][0]]
        values = variable.values
        for axis, dim in enumerate(variable.dims):
            if dim not in at:
                continue
            n, size = self.lengths[dim], self.window[dim]["size"]
            offsets = self.taken.get(name, [(0, False)]) if dim == "time" else [(0, False)]
            places = np.array([self.begin(at[dim], o) + i for o in offsets for i in range(size)])
            if self.window[dim].get("edge") == "pad":
                if inside:
                    places = places[places < n]
                elif (places >= n).any():
                    width = [(0, int(places.max()) + 1 - n) if a == axis else (0, 0)
                             for a in range(values.ndim)]
                    values = np.pad(values, width, constant_values=np.nan)
                    n = values.shape[axis]
            values = np.take(values, places % n if self.window[dim].get("wrap") else places, axis)
        return values

    # Lists, weights, order.

    def listed_and_weighted(self):
        self.rows = None
        samples = self.view.setdefault("samples", {})
        if self.maybe(0.3):
            fitting = [[s for s in range(self.lengths[d]) if self.window[d].get("wrap")
                        or self.fits(d, s)] for d in self.dims]
            if all(fitting):
                self.rows = np.column_stack([self.rng.choice(f, 40) for f in fitting])
                np.save(self.folder / "rows.npy", self.rows)
                samples["list"] = "rows.npy"
        self.weights = None
        if self.maybe(0.35):
            if "lat" in self.window and self.maybe(0.4):
                samples["weights"] = {"variable": "w"}
                self.weights = "w"
            elif "missing" not in self.view or self.rows is not None:
                # a file cannot know which windows are skipped
                self.weights = "file"
        if not samples and not self.weights:
            del self.view["samples"]

    def find(self):
        """`starts`: of the samples, in the order of their numbers."""
        if self.rows is not None:
            # Rows count before restrictions.
            self.windows_left = [row.tolist() for row in self.rows
                                 if all(self.separable(d, int(s))
                                        for d, s in zip(self.dims, row, strict=True))]
            self.is_sample = [self.joint(dict(zip(self.dims, row, strict=True)))
                              for row in self.windows_left]
        else:
            self.axes_starts = []
            for dim in self.dims:
                all_starts = self.along(dim)
                self.axes_starts.append((len(all_starts),
                                         [s for s in all_starts if self.separable(dim, s)]))
            self.windows_left = [
                list(w) for w in itertools.product(*(left for _, left in self.axes_starts))]
            self.is_sample = [self.joint(dict(zip(self.dims, w, strict=True)))
                              for w in self.windows_left]
        self.starts = [w for w, yes in zip(self.windows_left, self.is_sample, strict=True) if yes]
        n = len(self.starts)
        if not n or self.weights is None:
            return
        if self.weights == "w":
            w = self.ds.w.values
            t, la = self.dims.index("time"), self.dims.index("lat")
            self.weights = [float(w[start[t], start[la]]) for start in self.starts]
        else:
            count = len(self.rows) if self.rows is not None else n
            numbers = self.rng.random(count) * (self.rng.random(count) < 0.9)
            np.save(self.folder / "weights.npy", numbers)
            self.view["samples"]["weights"] = "weights.npy"
            if self.rows is not None:
                numbers = numbers[self.kept_rows()]
            self.weights = numbers.tolist()

    def kept_rows(self):
        return [i for i, row in enumerate(self.rows)
                if all(self.separable(d, int(s)) for d, s in zip(self.dims, row, strict=True))
                and self.joint(dict(zip(self.dims, row.tolist(), strict=True)))]

    def ordered(self):
        order = {"shuffle": str(self.rng.choice(["none", "global", "block"])),
                 "seed": int(self.rng.integers(1000))}
        if order["shuffle"] == "block":
            order["buffer"] = int(self.rng.choice([1, 2, 5]))
            if self.maybe(0.3):
                order["span"] = {"time": 2}
        if self.maybe(0.5):
            order["lanes"] = int(self.rng.integers(1, 5))
            if order["shuffle"] == "block" and order["lanes"] > 1 and self.maybe(0.5):
                order["home"] = True
        self.order = self.view["order"] = order
        self.size = int(self.rng.integers(2, 9))
        self.remainder = str(self.rng.choice(["keep", "drop", "pad"]))
        self.view["batch"] = {"size": self.size, "remainder": self.remainder}
        self.of_epoch = int(self.rng.integers(5, 90)) if self.maybe(0.4) else None
        self.view["epochs"] = {"count": 6} | ({"samples": self.of_epoch} if self.of_epoch else {})
        self.epoch = int(self.rng.integers(0, 5))

    def chunk(self, dim):
        return CHUNKS[dim] * self.order.get("span", {}).get(dim, 1)

    def stored(self, dim, start):
        return start + (self.store.first if dim == "time" else 0)

    def chunk_of(self, start):
        return [self.stored(d, s) // self.chunk(d) for d, s in zip(self.dims, start, strict=True)]

    def axes(self):
        result, several = [], False
        for dim, (count, left) in zip(self.dims, self.axes_starts, strict=True):
            c, stride, span = (CHUNKS[dim], self.window[dim]["stride"],
                               self.order.get("span", {}).get(dim, 1))
            if len(left) < count:
                chunks = [len(list(g)) for _, g in itertools.groupby(
                    left, lambda s: self.stored(dim, s) // c)]  # noqa: B023
                groups = [sum(chunks[i:i + span]) for i in range(0, len(chunks), span)]
                several |= len(set(groups)) > 1
                result.append((len(left), 0, groups if len(set(groups)) > 1 else groups[0]))
                continue
            p = self.stored(dim, left[0])
            lead = min(len(left), math.ceil((c - p % c) % c / stride)) if c % stride == 0 else 0
            group = max(1, c // stride)
            if (len(left) - lead) // group == 0:
                result.append((len(left), 0, len(left)))
            else:
                result.append((len(left), lead, span * group))
        return result, several

    def of_pass(self, number):
        """The samples of a pass over all of them, without lanes."""
        names, n = page(), len(self.starts)
        seed, lanes = self.order["seed"], self.order.get("lanes", 1)
        if self.order["shuffle"] == "none":
            return list(range(n))
        if self.order["shuffle"] == "global":
            return [names["permute"](i, n, seed, number) for i in range(n)]
        buffer = self.order["buffer"]
        if self.rows is not None:
            if self.order.get("home"):
                rows = sorted(range(n), key=lambda row: (self.chunk_of(self.starts[row]), row))
                groups = [len(list(g)) for _, g in itertools.groupby(
                    rows, lambda row: self.chunk_of(self.starts[row]))]
                return [rows[k] for k in names["home"](lambda k: True, n, seed, number, buffer,
                                                       [(n, 0, groups)], self.size, lanes)]
            return list(names["listed"](self.starts, self.chunk_of, seed, number, buffer))
        axes, several = self.axes()
        total = len(self.windows_left)
        sample = list(itertools.accumulate([0] + self.is_sample[:-1]))
        if self.order.get("home"):
            found = names["home"](lambda w: self.is_sample[w], total, seed, number, buffer, axes,
                                  self.size, lanes)
        elif several or n < total:
            found = names["block_skipping"](lambda w: self.is_sample[w], total, seed, number,
                                            buffer, axes)
        else:
            found = [names["block"](i, total, seed, number, buffer, axes) for i in range(total)]
        return [sample[w] for w in found]

    def of_whole_epoch(self):
        names, n = page(), len(self.starts)
        seed, lanes, home = self.order["seed"], self.order.get("lanes", 1), self.order.get("home")
        count = self.of_epoch or n
        if self.weights is not None:
            samples = names["drawn"](self.weights, count, seed, self.epoch)
            starts = [self.starts[s] for s in samples]
            if self.order["shuffle"] == "none":
                draws = range(count)
            elif self.order["shuffle"] == "global":
                draws = [names["permute"](i, count, seed, self.epoch, 4) for i in range(count)]
            elif home:
                chunks = [-(-(self.stored(d, self.lengths[d]) - self.stored(d, 0) // self.chunk(d)
                              * self.chunk(d)) // self.chunk(d)) for d in self.dims]
                first = [self.stored(d, 0) // self.chunk(d) for d in self.dims]
                draws = names["drawn_home"](
                    starts,
                    lambda start: [c - f for c, f in zip(self.chunk_of(start), first, strict=True)],
                    chunks, seed, self.epoch, self.order["buffer"], self.size, lanes)
            else:
                draws = list(names["listed"](starts, self.chunk_of, seed, self.epoch,
                                             self.order["buffer"]))
            result = [samples[d] for d in draws]
        else:
            passes = {}
            result = []
            for p in range(self.epoch * count, (self.epoch + 1) * count):
                if p // n not in passes:
                    passes[p // n] = self.of_pass(p // n)
                result.append(passes[p // n][p % n])
        if home:
            return result
        return [result[names["unlaned"](i, count, self.size, lanes)] for i in range(count)]


@pytest.fixture(scope="module")
def schema(batchfs):
    return jsonschema.Draft202012Validator(json.loads(batchfs.bytes("view", "--schema")))


def check(batchfs, case, rng):
    case.find()
    run = brute_force.View(batchfs, case.folder, case.store.path, case.view)
    words = ["--part", ["train", "val"][case.part]] if case.part is not None else []
    if case.weights is not None and not any(case.weights):
        case.starts = []
    epoch = case.of_whole_epoch() if case.starts else []
    size = case.size
    if case.remainder == "drop":
        epoch = epoch[:len(epoch) // size * size]
    if not case.starts or not epoch:
        done = batchfs.run("plan", run.store, "--view", run.file, "--cache-dir", run.cache, *words)
        assert done.returncode == 1, done
        return
    plan = batchfs.run("plan", run.store, "--view", run.file, "--cache-dir", run.cache, "--json",
                       *words)
    text = plan.stderr.decode()
    if plan.returncode and "order.span.time: groups of 2 chunks are longer than half" in text:
        return
    if plan.returncode and case.part is not None:  # the other part may be the one without samples
        assert ["'val'", "'train'"][case.part] in text, text
        return
    assert plan.returncode == 0, text
    count = -(-len(epoch) // size)
    if case.remainder == "pad":
        epoch += [epoch[i % len(epoch)] for i in range(count * size - len(epoch))]
    found = []
    for b in range(count):
        world = int(rng.integers(1, 4))
        if case.remainder == "drop" and b // world >= count // world:
            world = 1  # that rank would have a batch more than others
        provenance = run.provenance(b // world, "--rank", b % world, "--world", world, "--epoch",
                                    case.epoch, *words)
        assert provenance["starts"] == [case.starts[s] for s in provenance["samples"]]
        found += provenance["samples"]
    assert found == epoch
    b = int(rng.integers(0, count))
    for name in case.view["tensors"]:
        expected = [case.tensor(name, dict(zip(case.dims, case.starts[s], strict=True)))
                    for s in epoch[b * size:(b + 1) * size]]
        np.testing.assert_array_equal(run.tensor(name, b, "--epoch", case.epoch, *words),
                                      np.stack(expected))


@pytest.mark.parametrize("seed", [*range(24), *(pytest.param(s, marks=pytest.mark.long)
                                                for s in range(24, 200))])
def test_random_views(batchfs, schema, tmp_path, seed):
    rng = np.random.default_rng(seed)
    case = Case(tmp_path, rng)
    check(batchfs, case, rng)
    schema.validate(case.view)
