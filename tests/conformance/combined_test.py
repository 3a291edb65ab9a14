"""Random views that combine joined stores, stores one behind the other, made channels, mixtures,
splits, offsets and normalisation.

The oracle knows labels alone: each sample's values are looked up in xarray by the times and places
that its batch names. BATCHFS_COMBINED_SEEDS=100:200 asks others than the usual ones.
"""

import io
import json
import os
import warnings

import numpy as np
import pytest
import xarray as xr

LATS, LONS = np.linspace(60.0, -60.0, 7), np.arange(0.0, 360.0, 45.0)
START = np.datetime64("2000-01-01", "ns")
HOUR = np.timedelta64(1, "h")
SEEDS = range(*map(int, os.environ.get("BATCHFS_COMBINED_SEEDS", "0:6").split(":")))


def write(path, dataset, rng):
    encoding = {name: {"chunks": tuple(int(rng.integers(1, n + 1)) for n in dataset[name].shape)}
                for name in dataset.data_vars}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset.to_zarr(path, zarr_format=int(rng.choice([2, 3])), encoding=encoding,
                        consolidated=True)


def field(rng, times, lats, lons):
    return (("time", "lat", "lon"),
            rng.standard_normal((len(times), len(lats), len(lons))).astype("f4"))


class Member:
    """Yearly stores one behind the other, rain of other steps joined to them, and a static field:
    one view and what it must give."""

    def __init__(self, folder, name, rng):
        self.folder, self.name, self.rng = folder, name, rng
        steps = np.sort(rng.choice(90, int(rng.integers(40, 80)), replace=False))
        seam = int(rng.integers(1, len(steps)))
        parts = []
        for i, own in enumerate((steps[:seam], steps[seam:])):
            times = START + own * 6 * HOUR
            parts.append(xr.Dataset({"t": field(rng, times, LATS, LONS),
                                     "u": field(rng, times, LATS, LONS)},
                                    {"time": times, "lat": LATS, "lon": LONS}))
            write(folder / f"{name}{i}.zarr", parts[-1], rng)
        self.era = xr.concat(parts, "time")
        lons = rng.permutation(LONS)
        times = START + np.sort(rng.choice(180, int(rng.integers(90, 170)),
                                           replace=False)) * 3 * HOUR
        self.rain = xr.Dataset({"tp": field(rng, times, LATS[::-1], lons)},
                               {"time": times, "lat": LATS[::-1], "lon": lons})
        write(folder / f"{name}-rain.zarr", self.rain, rng)
        self.pick = rng.choice(["exact", "last", "nearest"])
        self.offset = int(rng.choice([-2, -1, 1]))
        self.hours = int(rng.choice([-6, -3, 0]))
        self.mean, self.std = float(np.round(rng.standard_normal(), 3)), 1.5

    def stores(self):
        return ["--store", f"{self.name}={self.folder / self.name}{{0..1}}.zarr", "--store",
                f"{self.name}rain={self.folder / self.name}-rain.zarr"]

    def view(self):
        rng = self.rng
        self.part = None
        join = {"pick": self.pick} | ({} if self.pick == "exact" else {"tolerance": "3h"})
        view = {"sources": {"era": {"store": self.name, "concat": "time"},
                            "rain": {"store": f"{self.name}rain",
                                     "join": {"time": join, "lat": "exact", "lon": "exact"}}},
                "window": {"time": 1, "lat": {"size": 3, "stride": 2}},
                "tensors": {
                    "x": {"variables": ["t", "u", {"make": "difference", "of": ["t", "rain:tp"]}],
                          "stack": "channel", "offsets": {"time": sorted([0, self.offset])}},
                    "y": {"variables": ["u"]},
                    "r": {"variables": ["rain:tp"], "offsets": {"time": [f"{self.hours}h"]}}},
                "normalize": {"method": "zscore",
                              "statistics": {"u": {"mean": self.mean, "std": self.std}},
                              "variables": ["u"]},
                "order": {"shuffle": str(rng.choice(["global", "none", "block"])),
                          "seed": int(rng.integers(9))}}
        if rng.random() < 0.5:
            view["split"] = {"parts": {"train": [{"time": {"to": "2000-01-14"}}],
                                       "test": [{"time": {"from": "2000-01-16"}}]},
                             "gap": {"time": "12h"}}
            self.part = str(rng.choice(["train", "test"]))
        if rng.random() < 0.5:
            view["select"] = {"lon": {"from": 45, "to": 180}}
        self.selected = "select" in view
        if not self.allowed():
            self.part = None
            view.pop("split", None)
        return view

    def looked_up(self, label):
        """The place of the rain for a time, as pandas finds it; -1: none."""
        method = {"exact": None, "last": "pad", "nearest": "nearest"}[self.pick]
        tolerance = {} if self.pick == "exact" else {"tolerance": np.timedelta64(3, "h")}
        place = self.rain.get_index("time").get_indexer([label], method=method, **tolerance)[0]
        if self.pick == "nearest" and place >= 0:  # of two as far away, batchfs takes the greater
            after = self.rain.get_index("time").get_indexer([label], method="backfill",
                                                            **tolerance)[0]
            times = self.rain.time.values
            place = after if after >= 0 and abs(times[after]
                                                - label) == abs(times[place] - label) else place
        return int(place)

    def expected(self, time, lats):
        """x, y and r of the sample at this time and these latitudes; None: its labels are not all
        there."""
        times = self.era.time.values
        lon = slice(45, 180) if self.selected else slice(None)
        era = self.era.sel(lat=lats, lon=lon)
        i = int(np.flatnonzero(times == time)[0])
        own = [i + o for o in sorted([0, self.offset])]
        if own[0] < 0 or own[-1] >= len(times):
            return None
        joined = [self.looked_up(times[k]) for k in own]
        before = self.looked_up(time + self.hours * HOUR)
        if -1 in joined or before < 0 or self.looked_up(time) < 0:
            return None
        rain = self.rain.tp.sel(lat=lats).sel(lon=era.lon)
        scaled = ((era.u.values.astype("f8") - self.mean) / self.std).astype("f4")
        t, tp = era.t.values[own], rain.values[joined]
        x = np.stack([t, scaled[own], t - tp])
        return {"x": x, "y": scaled[i][None], "r": rain.values[before][None]}

    def allowed(self):
        """Times that are samples."""
        found = []
        for time in self.era.time.values:
            needed = [int(np.flatnonzero(self.era.time.values == time)[0]) + o
                      for o in (0, self.offset)]
            day = self.era.time.values[[k for k in needed if 0 <= k < len(self.era.time)]]
            inside = {None: day == day, "train": day < np.datetime64("2000-01-15"),
                      "test": day >= np.datetime64("2000-01-16")}[self.part]
            if inside.all() and self.expected(time, LATS[:3]) is not None:
                found.append(time)
        return found


def check(member, tensors, s, time, lats):
    wanted = member.expected(time, lats)
    for name, values in wanted.items():
        made = tensors[name][s]
        assert made.size == values.size, (name, made.shape, values.shape)
        assert (np.allclose(made.reshape(values.shape), values, rtol=3e-7, atol=3e-7) if name != "r"
                    else np.array_equal(made.reshape(values.shape), values)), (
            member.name, name, time, lats)


def batches(batchfs, words, epoch):
    count = json.loads(batchfs.bytes("plan", *words, "--json"))["batches"]
    for b in range(count):
        more = ("--batch", b, "--epoch", epoch)
        row = json.loads(batchfs.bytes("batch", *words, *more, "--format", "json"))
        with np.load(io.BytesIO(batchfs.bytes("batch", *words, *more, "--format", "npz"))) as file:
            yield row, dict(file)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sample_is_found_by_its_labels(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    members = {name: Member(tmp_path, name, rng) for name in ("a", "b")}
    parts = {name: {"view": member.view(), "weight": int(rng.integers(1, 5))}
                 | ({"part": member.part} if member.part else {})
             for name, member in members.items()}
    if members["a"].selected != members["b"].selected:  # shapes must agree
        for name in parts:
            parts[name]["view"].pop("select", None)
            members[name].selected = False
    if (members["a"].offset < 0) != (members["b"].offset < 0):
        members["b"].offset = -members["b"].offset
        parts["b"]["view"]["tensors"]["x"]["offsets"]["time"] = sorted([0, members["b"].offset])
    words = [tmp_path / "a0.zarr", *members["a"].stores(), *members["b"].stores(), "--view",
             tmp_path / "v.json"]
    for name, member in members.items():
        alone = parts[name]["view"] | {"batch": 100}
        (tmp_path / "v.json").write_text(json.dumps(alone))
        part = ["--part", member.part] if member.part else []
        seen = []
        for row, tensors in batches(batchfs, [*words, *part], 1):
            for s, (start, at) in enumerate(zip(row["starts"], row["coordinates"]["time"],
                                                strict=True)):
                time = np.datetime64(at, "ns")
                seen.append((time, start[1]))
                check(member, tensors, s, time, LATS[start[1]:start[1] + 3])
        assert sorted(seen) == [(time, k) for time in member.allowed() for k in (0, 2, 4)], (
            name, member.pick, member.part)
    (tmp_path / "v.json").write_text(json.dumps({"mix": parts, "batch": 50}))
    count = 0
    for row, tensors in batches(batchfs, words, 2):
        for s, component in enumerate(row["components"]):
            time = np.datetime64(row["coordinates"]["time"][s], "ns")
            k = row["starts"][s][1]
            k -= len(LATS) if k >= len(LATS) else 0
            check(members[component], tensors, s, time, LATS[k:k + 3])
            count += 1
    assert count > 0
