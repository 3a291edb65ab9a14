"""Decoded bytes of an epoch according to `batchfs plan`, beside the counters of a mount that reads
it."""

import json
import os
import random

import numpy as np
import pytest
import zarr
from watching import status

# for each kind of order; 67 take some minutes
CASES = int(os.environ.get("BATCHFS_PLAN_CASES", "17"))
FIRST_SEED = int(os.environ.get("BATCHFS_PLAN_SEED", "0"))
MB = 1 << 20
NEAR = 1.1  # figures are right within 10 %
CODECS = {
    "zstd": lambda: zarr.codecs.ZstdCodec(level=1),
    "gzip": lambda: zarr.codecs.GzipCodec(level=1),
    "blosc": lambda: zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle"),
    "none": lambda: None,
}


class Case:
    """A random store, a view of it, and a budget."""

    def __init__(self, seed, order):
        rng = self.rng = random.Random(f"{seed} {order}")
        # A chunk has up to 2 MB, and in one of six stores at most 4 KB.
        largest, limits = rng.choice([(200, (24, 160, 160))] * 5 + [(60, (4, 16, 16))])
        self.shape = [rng.randrange(40, 1 + min(n, largest)) for n in (200, 160, 160)]
        self.chunks = [rng.randrange(2, 1 + min(n, limit)) for n, limit in zip(self.shape, limits)]
        # more take long to write
        while np.prod([-(-n // c) for n, c in zip(self.shape, self.chunks)]) > 1500:
            self.chunks[rng.randrange(3)] += 1
        self.codec = rng.choice(sorted(CODECS))
        self.variables = rng.choice([["a"], ["a", "b"]])
        size = [min(n, rng.choice([1, 2, 3, 8]))
                for n in self.shape[:1]] + [min(n, rng.choice([8, 24, 64, n]))
                                            for n in self.shape[1:]]
        stride = [rng.choice([1, 2, s]) for s in size[:1]] + [
            rng.choice([max(1, s // 2), s]) for s in size[1:]]
        self.window = {dim: {"size": s, "stride": st}
                       for dim, s, st in zip(("time", "y", "x"), size, stride)}
        sample = 4 * len(self.variables) * int(np.prod(size))
        samples = int(np.prod([(n - s) // st + 1 for n, s, st in zip(self.shape, size, stride)]))
        # Enough batches for an order to show, and few enough to be read in a second.
        self.batch = max(1,
                         min(samples, max(samples // rng.randrange(20, 90), (64 << 10) // sample)))
        chunk = [-(-n // c) for n, c in zip(self.shape, self.chunks)]
        self.decoded = 4 * len(self.variables) * int(np.prod(chunk)) * int(np.prod(self.chunks))
        self.batch_bytes = self.batch * sample
        room = 3 * self.batch_bytes + 4 * int(np.prod(self.chunks)) * 4
        self.memory = int(room + self.decoded * rng.choice([0.2, 0.6, 1.0, 1.5, 3]))
        self.epochs = rng.choice([1, 1, 2])
        self.order = order
        self.seed = seed

    def make(self, path):
        group = zarr.create_group(path)
        random_values = np.random.default_rng(self.seed)
        for name in self.variables:
            array = group.create_array(name, shape=self.shape, chunks=self.chunks,
                                       dtype="f4", dimension_names=["time", "y", "x"],
                                       compressors=CODECS[self.codec]())
            array[:] = random_values.integers(0, 99, self.shape)

    def view(self):
        return {"name": "v", "variables": self.variables, "window": self.window,
                "batch": {"size": self.batch}, "dtype": "float32",
                "order": {"shuffle": self.order, "seed": self.seed}, "epochs": self.epochs}

    def __str__(self):
        return (f"seed {self.seed} {self.order}: {self.shape} in {self.chunks} {self.codec} "
                f"x{len(self.variables)}, {self.window}, batch {self.batch} "
                f"= {self.batch_bytes / MB:.2f} MB, decoded {self.decoded / MB:.1f}, memory "
                f"{self.memory / MB:.1f}, epochs {self.epochs}")


def read_all(directory, case):
    """Opens every file of every batch in order, and closes it."""
    for epoch in sorted((directory / "views/v").glob("epoch-*")):
        names = sorted(name for name in os.listdir(epoch) if not name.endswith(".json"))
        for name in names:
            files = ([epoch / name] if name.endswith(".npy")
                     else [epoch / name / f"{v}.npy" for v in case.variables])
            for file in files:
                with open(file, "rb"):
                    pass


@pytest.mark.says("plan-figures")
@pytest.mark.parametrize("order", ["none", "global", "block"])
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_an_epoch_decodes_what_the_plan_says(mount_at, batchfs, good, tmp_path, seed, order):
    case = Case(seed, order)
    case.make(tmp_path / "s.zarr")
    (tmp_path / "view.json").write_text(json.dumps(case.view()))
    plan = json.loads(good("plan", tmp_path / "s.zarr", "--view", tmp_path / "view.json",
                           "--memory", str(case.memory), "--json"))
    least, expected, most = (plan[f"{name}_chunk_reads_per_epoch"]
                             for name in ("least", "expected", "most"))
    assert 0 < least <= expected <= most
    assert plan["expected_chunk_reads_are"] == ("exact" if most <= NEAR * least else "between")
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": case.view()}, "--memory",
                         str(case.memory))
    read_all(directory, case)
    now = status(directory)
    batchfs("umount", directory)
    reads = now["bytes_decoded"] / plan["decoded_bytes"]
    stay = "stay" if plan["all_chunks_stay"] else "go"
    print(f"PLAN {least} to {most}, about {expected}, {stay}; decoded {reads:.3f}, evicted "
          f"{now['chunk_cache_evictions']} | {case}")
    epochs = 1 if plan["all_chunks_stay"] else case.epochs  # that decode chunks
    assert least / NEAR <= reads <= NEAR * most * epochs


def in_order(seed):
    """A case with several files a batch that takes its chunks again and again, and little
    memory."""
    case = Case(seed, "none")
    case.variables, case.epochs = ["a", "b", "c"], 1
    case.batch_bytes = 4 * len(case.variables) * case.batch * (
            int(np.prod([w["size"] for w in case.window.values()])))
    case.memory = 8 * case.batch_bytes + 32 * 4 * int(np.prod(case.chunks))
    return case


@pytest.mark.parametrize("seed", [2, 3, 9, 25])
def test_a_batch_with_several_files_is_made_once(mount_at, batchfs, tmp_path, seed):
    case = in_order(seed)
    case.make(tmp_path / "s.zarr")
    directory = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": case.view()}, "--memory",
                         str(case.memory))
    read_all(directory, case)
    now = status(directory)
    batchfs("umount", directory)
    print(f"MADE {now['batches_assembled']} of {now['batches_opened']}, evicted "
          f"{now['chunk_cache_evictions']} | {case}")
    assert now["chunk_cache_evictions"] > 0, "the memory is short"
    assert now["batches_assembled"] == now["batches_opened"]
