"""Windows and their tensors, taken with numpy: what batchfs is compared with."""

import itertools
import json

import numpy as np


class View:
    """A view on a store: `batchfs` with its file and a cache directory of its own."""

    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file, self.cache = (batchfs, store, folder / "view.json",
                                                           folder / "cache")
        self.file.write_text(json.dumps(view))

    def run(self, command, *more):
        return self.batchfs.bytes(command, self.store, "--view", self.file, "--cache-dir",
                                  self.cache, *more)

    def tensor(self, name, batch, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--batch", batch,
                                "--tensor", name, "--cache-dir", self.cache, *more)

    def provenance(self, batch, *more):
        return json.loads(self.run("batch", "--batch", batch, "--format", "json", *more))

    def plan(self):
        return json.loads(self.run("plan", "--json"))

    def refusal(self, command="plan"):
        return self.batchfs.refusal(command, self.store, "--view", self.file, "--cache-dir",
                                    self.cache)


def window_of(view):
    """Size, stride, wrap and edge of each dimension."""
    return {dim: {"size": w, "stride": w} if isinstance(w, int) else {"stride": w["size"], **w}
            for dim, w in view["window"].items()}


def tensors_of(view):
    if "tensors" in view:
        return {name: (t["variables"], t.get("offsets", {})) for name, t in view["tensors"].items()}
    return {name: ([name], {}) for name in view["variables"]}


def footprints(ds, view):
    """(smallest offset, largest offset + size) of each window dimension, over the tensors that have
    it."""
    result = {}
    for dim, w in window_of(view).items():
        offsets = [o for variables, own in tensors_of(view).values()
                   if any(dim in ds[v].dims for v in variables) for o in own.get(dim, [0])]
        result[dim] = (min(offsets), max(offsets) + w["size"])
    return result


def starts_of(ds, view):
    """The starts of each window dimension."""
    result = []
    for dim, w in window_of(view).items():
        offsets = [o for _, own in tensors_of(view).values() for o in own.get(dim, [0])] + [0]
        n = ds.sizes[dim]

        def fits(s, w=w, n=n, offsets=offsets):
            return all(0 <= s + o and s + o + w["size"] <= n for o in offsets)
        starts = [s for s in range(0, n, w["stride"]) if w.get("wrap") or fits(s)]
        if w.get("edge", "drop") != "drop":
            after = (starts[-1] + w["stride"]) if starts else 0
            if after + max(offsets) < n and (not starts
                                             or starts[-1] + w["size"] + max(offsets) < n):
                starts.append(after)
        result.append(starts)
    return result


def take(ds, view, at, pad=np.nan):
    """Tensors of the sample at `at` (dimension -> start): name -> list of the arrays of its
    variables."""
    sizes = window_of(view)
    result = {}
    for name, (variables, offsets) in tensors_of(view).items():
        result[name] = []
        for variable in variables:
            values = ds[variable].values
            for axis, dim in enumerate(ds[variable].dims):
                if dim not in at:
                    continue
                n = ds.sizes[dim]
                index = np.array([at[dim] + o + i for o in offsets.get(dim, [0])
                                  for i in range(sizes[dim]["size"])])
                inside = (index >= 0) & (index < n)
                part = np.take(values, index % n, axis)
                if not sizes[dim].get("wrap") and not inside.all():
                    part = np.moveaxis(part.copy(), axis, 0)
                    part[~inside] = pad
                    part = np.moveaxis(part, 0, axis)
                values = part
            result[name].append(values)
    return result


def windows(ds, view):
    """Every window of the grid, as samples are numbered without restrictions."""
    for position in itertools.product(*starts_of(ds, view)):
        yield dict(zip(view["window"], position))


def starts_in(provenance, view):
    return [dict(zip(view["window"], row)) for row in provenance["starts"]]
