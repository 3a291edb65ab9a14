"""insitubatch: block-shuffled batches, in its own order. Tags are the numbers of the samples."""

import itertools

import insitubatch
import numpy as np

from harness.geometry import Geometry


def dataset(store, geometry, batch, block_chunks, seed, shuffle, budget):
    """Labels "variable+step" for each step that a sample needs."""
    url = store if store.startswith("http") else f"file://{store}"
    options = {"client_options": {"allow_http": True}} if store.startswith("http") else {}
    source = insitubatch.obstore_store(url, **options)
    geometries = insitubatch.open_geometries(source, variables=list(geometry.variables))
    steps = {offset + step for _, offset in geometry.tensors
             for step in range(geometry.extent("time"))}
    views = {f"{name}+{step}": found.shift(step) for name, found in geometries.items()
             for step in sorted(steps)}
    manifest = insitubatch.split_by_chunk(next(iter(geometries.values())),
                                          fractions=(1.0, 0.0, 0.0))
    return insitubatch.InSituDataset(source, manifest, geometries=views, batch_size=batch,
                                     block_chunks=block_chunks, seed=seed, shuffle=shuffle,
                                     cache_budget_bytes=budget)


def batches(report, store, geometry, batch, count, block_chunks=16, seed=0, shuffle=True,
            budget=None):
    """`count` full batches. It shuffles steps of time; where a sample is a part of a field, one is
    cut out of each field, at random."""
    geometry = Geometry(geometry)
    random = np.random.default_rng(seed)
    data = dataset(store, geometry, batch, block_chunks, seed, shuffle, budget)
    other = [(dim, size, stride, n) for dim, size, stride, n in geometry.spec["window"]
             if dim != "time"]
    times = dict((dim, n) for dim, *_, n in geometry.spec["window"])["time"]
    stride = geometry.window["time"][1]
    given = 0
    for epoch in itertools.count():
        data.set_epoch(epoch)
        for found in data.train:
            if len(found) < batch:
                continue
            anchors = np.asarray(found.sample_indices)
            outs = geometry.empty(batch)
            samples = []
            for row, anchor in enumerate(anchors):
                place = [int(random.integers(n)) for *_, n in other]
                starts = {dim: at * step for (dim, _, step, _), at in zip(other, place)}
                number = 0
                for (_, _, _, n), at in zip(other, place):
                    number = number * n + at
                samples.append(number * times + int(anchor) // stride)
                for tensor, (_, offset) in enumerate(geometry.tensors):
                    for name, dims in geometry.variables.items():
                        to = geometry.place(outs[tensor], row, name)
                        cut = tuple(slice(starts.get(dim, 0), starts.get(dim, 0)
                                              + geometry.extent(dim)) for dim in dims[1:])
                        for step in range(geometry.extent("time")):
                            to[step] = found.arrays[f"{name}+{offset + step}"][row][cut]
            yield "samples " + " ".join(map(str, samples)), outs
            given += 1
            if given == count:
                return
