"""The order of samples: orders that were published never change, and what lanes, homes and epochs
promise holds for random views."""

import hashlib
import json

import numpy as np
import pytest
from sparse_array import sparse_store

T, X = 61, 10
CHUNKS = (6, 4)
rng = np.random.default_rng(8)
MISSING = rng.random((T, X)) < 0.03
MISSING[12:24, 4:8] = True  # whole chunks
WINDOW = {"x": {"size": 1, "stride": 1}, "time": {"size": 2, "stride": 1}}  # x is the slowest
COUNTS = (X, T - 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Chunks of 6 times and 4 points, with NaN where MISSING is."""
    path = sparse_store(tmp_path_factory.mktemp("order") / "s.zarr", [T, X], CHUNKS)
    padded = np.zeros((66, 12), "<f4")
    padded[:T, :X] = np.where(MISSING, np.nan, 1)
    for i in range(11):
        for j in range(3):
            (path / "t" / f"{i}.{j}").write_bytes(
                padded[6 * i:6 * i + 6, 4 * j:4 * j + 4].tobytes())
    return path


def kept():
    """Windows that are samples when those with missing values are skipped."""
    return [w for w in range(np.prod(COUNTS))
            if not MISSING[w % (T - 1):w % (T - 1) + 2, w // (T - 1)].any()]


def batch(batchfs, store, folder, view, epoch, number, rank=0, world=1):
    (folder / "v.json").write_text(json.dumps(view))
    text = batchfs.bytes("batch", store, "--view", folder / "v.json", "--format", "json", "--epoch",
                         epoch, "--batch", number, "--rank", rank, "--world", world)
    return json.loads(text)["samples"]


GOLDEN = {
    "none-keep": "10d368b56092b4fa", "none-skip": "6f1d87a67145dc93",
    "global-keep": "989c82bca0c33d8c", "global-skip": "c2fd23e84766dc81",
    "block-keep": "53fd9054f1599a99", "block-skip": "35d025f8af96d951",
    "block-3-keep": "9948d0b87627c8a2", "block-3-skip": "31b576d29fbec61d",
    "keep": "348a9d9fe2b59e52", "drop": "fb02c8d4a990e07a", "pad": "442ce14996015110",
}


@pytest.mark.parametrize("nan", ["keep", "skip"])
@pytest.mark.parametrize("order", [{"shuffle": "none"}, {"shuffle": "global", "seed": 12345678901},
                                   {"shuffle": "block", "seed": 5},
                                   {"shuffle": "block", "seed": 5, "buffer": 3}],
                         ids=["none", "global", "block", "block-3"])
def test_orders_of_older_versions(batchfs, store, tmp_path, request, order, nan):
    """The digests were made before orders had lanes."""
    view = {"window": WINDOW, "batch": 1000, "order": order, "missing": {"nan": nan}}
    samples = [batch(batchfs, store, tmp_path, view, epoch, 0) for epoch in (0, 7)]
    digest = hashlib.sha256(json.dumps(samples).encode()).hexdigest()[:16]
    assert digest == GOLDEN[request.node.callspec.id]


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
def test_batches_of_older_versions(batchfs, store, tmp_path, remainder):
    view = {"window": WINDOW, "batch": {"size": 170, "remainder": remainder},
            "order": {"shuffle": "block", "seed": 5, "buffer": 3}}
    samples = [batch(batchfs, store, tmp_path, view, 1, i, rank, 2)
               for rank in (0, 1) for i in range({"keep": 2, "drop": 1, "pad": 2}[remainder])]
    digest = hashlib.sha256(json.dumps(samples).encode()).hexdigest()[:16]
    assert digest == GOLDEN[remainder]


def plan(batchfs, store, folder, view, *options):
    (folder / "v.json").write_text(json.dumps(view))
    return json.loads(batchfs.bytes("plan", store, "--view", folder / "v.json", "--json", *options))


@pytest.mark.parametrize("world", [1, 2, 3, 6, 7])
def test_batches_do_not_depend_on_the_world(batchfs, store, tmp_path, world):
    view = {"window": WINDOW, "batch": 45,
            "order": {"shuffle": "block", "seed": 5, "lanes": 6, "home": True, "buffer": 2}}
    batches = plan(batchfs, store, tmp_path, view)["batches"]
    for b in range(batches):
        assert (batch(batchfs, store, tmp_path, view, 2, b // world, b % world, world)
                == batch(batchfs, store, tmp_path, view, 2, b))


def test_the_nodes_of_a_plan_fetch_what_their_batches_need(batchfs, store, tmp_path):
    view = {"window": WINDOW, "batch": 25,
            "order": {"shuffle": "block", "seed": 5, "lanes": 4, "span": {"time": 2}, "home": True,
                      "buffer": 2}}
    chunk = 4 * CHUNKS[0] * CHUNKS[1]
    found = plan(batchfs, store, tmp_path, view, "--world", 4, "--nodes", 2)
    nodes = {}
    for epoch in (0, 1):
        nodes[epoch] = [set(), set()]
        for b in range(found["batches"]):
            text = batchfs.bytes("batch", store, "--view", tmp_path / "v.json", "--format", "json",
                                 "--epoch", epoch, "--batch", b)
            nodes[epoch][b % 4 // 2].update(json.loads(text)["chunks"])
    assert found["bytes_fetched_counted"] is True
    assert found["bytes_fetched_by_node"] == [chunk * len(node) for node in nodes[0]]
    assert found["bytes_fetched"] == sum(found["bytes_fetched_by_node"]) == (
        2 * found["bytes_fetched_per_node"])
    assert found["copies_per_chunk"] == pytest.approx(
        sum(map(len, nodes[0])) / len(nodes[0][0] | nodes[0][1]), rel=1e-3)
    assert found["bytes_fetched_in_next_epoch"] == chunk * sum(len(b - a)
                                                               for a, b in zip(*nodes.values()))
    assert 0 < found["shuffle_quality"] < found["shuffle_quality_per_step"] <= 1.05
    text = batchfs.bytes("plan", store, "--view", tmp_path / "v.json", "--world", 4, "--nodes",
                         2).decode()
    assert "An epoch of 4 ranks on 2 nodes" in text and "counted" in text


def test_a_plan_says_what_a_world_costs(batchfs, tmp_path):
    store = sparse_store(tmp_path / "s.zarr", [4000, 64], [10, 64])
    view = {"window": {"time": {"size": 2, "stride": 1}}, "batch": 5,
            "order": {"shuffle": "block", "buffer": 2, "lanes": 8}}
    def advice(*options):
        return " ".join(plan(batchfs, store, tmp_path, view, *options)["advice"])
    assert "do not divide" not in advice("--world", 4, "--nodes", 4)
    assert "3 ranks do not divide the 8 lanes" in advice("--world", 3, "--nodes", 3)
    assert "works on 8 lanes" in advice("--memory", "64K")
    assert "works on 4 lanes" in advice("--memory", "64K", "--world", 2, "--nodes", 2)
    for options, message in ((("--nodes", 2), "--nodes needs --world"),
                             (("--world", 2, "--nodes", 3), "--nodes 3 is more than --world 2")):
        failed = batchfs.run("plan", store, "--view", tmp_path / "v.json", *options)
        assert failed.returncode != 0 and message in failed.stderr.decode()


def test_a_plan_of_epochs_of_some_samples(batchfs, store, tmp_path):
    view = {"window": WINDOW, "batch": 25, "epochs": {"count": 4, "samples": 130}}
    found = plan(batchfs, store, tmp_path, view)
    assert (found["samples"], found["epoch_samples"], found["batches"],
            found["epochs"]) == (600, 130, 6, 4)
    assert found["epoch_bytes"] == 130 * 2 * 4
    text = batchfs.bytes("plan", store, "--view", tmp_path / "v.json").decode()
    assert "600 samples, 130 an epoch, in 6 batches of 25, 4 epochs" in text
