"""The shuffle quality that `batchfs plan` gives, against its definition computed from the order of
samples."""

import json
import math

import numpy as np
import pytest
from sparse_array import sparse_store

rng = np.random.default_rng(4)


def plan(batchfs, folder, shape, chunks, view, *options):
    store = folder / "s.zarr"
    if not store.exists():
        # Parts of uncompressed local chunks are read alone.
        sparse_store(store, shape, chunks, {"id": "zlib", "level": 1})
    (folder / "v.json").write_text(json.dumps(view))
    return json.loads(batchfs.bytes("plan", store, "--view", folder / "v.json", "--json", *options))


def mean_distance(values):
    """Distance of two of them, along the last axis."""
    values = np.sort(np.asarray(values, "f8"), -1)
    n = values.shape[-1]
    return (values * (2 * np.arange(n) + 1 - n)).sum(-1) / (n * (n - 1) / 2)


def test_mean_distance_is_that_of_all_pairs():
    values = rng.integers(0, 50, 40)
    i, j = np.triu_indices(40, 1)
    assert mean_distance(values) == pytest.approx(np.abs(values[i] - values[j]).mean())


def quality(order, counts, batch):
    """Figures of one epoch: order lists sample numbers, counts the positions along each
    dimension."""
    stretch = max(batch, 2)
    worst = 1.0
    for places in np.unravel_index(order, counts):
        if places.max() == places.min():
            continue
        stretches = [places[i:i + stretch] for i in range(0, len(places), stretch)]
        inside = np.mean([mean_distance(s) for s in stretches if len(s) > 1])
        worst = min(worst, inside / mean_distance(places))
    return worst


def block_quality(counts, group, window, batch, draws=4000):
    """Figures of a block order, from batches drawn by numpy's own random numbers out of runs drawn
    so."""
    tiles = [np.arange(n).reshape(-1, g) for n, g in zip(counts, group)]
    groups = np.array([np.ravel_multi_index(np.meshgrid(a, b, indexing="ij"), counts).ravel()
                       for a in tiles[0] for b in tiles[1]])
    window = min(window, len(groups))
    inside = np.zeros(len(counts))
    for _ in range(draws):
        run = groups[rng.choice(len(groups), window, replace=False)].ravel()
        picked = run[rng.choice(len(run), max(batch, 2), replace=False)]
        inside += [mean_distance(places) for places in np.unravel_index(picked, counts)]
    anywhere = [mean_distance(places)
                for places in np.unravel_index(np.arange(math.prod(counts)), counts)]
    return (inside / draws / anywhere).min()


@pytest.mark.parametrize("batch", [1, 5, 32])
@pytest.mark.parametrize("window", [{"time": 1}, {"x": 1, "time": {"size": 4, "stride": 2}},
                                    {"time": 3, "x": 2}])
def test_without_a_shuffle_it_is_exact(batchfs, tmp_path, window, batch):
    counts = [{1: 300, 4: 149, 3: 100}[w if isinstance(w, int) else w["size"]] if d == "time"
              else 12 // w for d, w in window.items()]
    view = {"window": window, "batch": batch}
    expected = quality(np.arange(math.prod(counts)), counts, batch)
    assert plan(batchfs, tmp_path, [300, 12], [10, 4], view)["shuffle_quality"] == pytest.approx(
        expected, rel=1e-3)


@pytest.mark.parametrize("shape, group",
                         [((4000, 4), (100, 4)), ((320, 96), (20, 8)), ((5000, 16), (50, 16))],
                         ids=["steps", "tiles", "sampled"])
@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("window", [1, 2, 8, 32])
def test_of_block_orders(batchfs, tmp_path, shape, group, window, batch):
    view = {"window": {"time": 1, "x": 1}, "batch": batch,
            "order": {"shuffle": "block", "buffer": window}}
    expected = block_quality(shape, group, window, batch)
    assert plan(batchfs, tmp_path, shape, group, view)["shuffle_quality"] == pytest.approx(
        expected, abs=0.02)


@pytest.mark.parametrize("shape", [(10, 4), (1000, 30), (40000, 25000)])
def test_of_global_orders_it_is_one(batchfs, tmp_path, shape):
    """Also of 10^9 samples, at once."""
    view = {"window": {"time": 1, "x": 1}, "batch": 8, "order": {"shuffle": "global"}}
    assert plan(batchfs, tmp_path, shape, [10, 1], view)["shuffle_quality"] == pytest.approx(
        1, abs=0.02)


def test_advice_weighs_decoding_against_quality(batchfs, tmp_path):
    """8 GB in chunks of 100 steps; a batch of a global order decodes a chunk for each sample."""
    shape, chunks = [20000, 100000], [100, 100000]
    view = {"window": {"time": 1}, "batch": 32, "order": {"shuffle": "global"}}
    before = plan(batchfs, tmp_path, shape, chunks, view, "--memory", "1G")
    (line,) = [line for line in before["advice"] if "block" in line]
    view["order"] = {"shuffle": "block"}
    after = plan(batchfs, tmp_path, shape, chunks, view, "--memory", "1G")
    assert f"shuffle quality of {after['shuffle_quality']:.2f}" in line
    # By hand: batches that have room in three quarters of the memory take their parts of a chunk
    # when it is decoded, each of the 200 chunks once; a block order decodes each once in the epoch.
    decoded = before["batches"] / (0.75 * 2**30 / (32 * 400e3))
    times = float(line.split("would decode ")[1].split(" times")[0])
    assert times == pytest.approx(decoded, rel=0.05)
    view["order"] = {"shuffle": "block", "buffer": 1}
    lines = plan(batchfs, tmp_path, shape, chunks, view, "--memory", "4G")["advice"]
    assert any('"buffer" of 10 groups' in line and "0.9" in line for line in lines)
    text = batchfs.bytes("plan", tmp_path / "s.zarr", "--view", tmp_path / "v.json").decode()
    assert "shuffle quality" in text


def test_views_without_an_order_have_none(batchfs, tmp_path):
    assert plan(batchfs, tmp_path, [8, 4], [2, 4],
                {"xbatcher": {"input_dims": {"time": 2}}})["shuffle_quality"] is None
    assert plan(batchfs, tmp_path, [8, 4], [2, 4],
                {"window": {"time": 8}})["shuffle_quality"] is None
