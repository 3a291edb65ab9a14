"""order.by: the block order whose groups are the chunks of another source. The order is that of the
Python of batchfs-view(5), with groups that pandas and numpy find; chunks are counted from the
provenance of batches."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from man_view_test import page
from several_stores import SeveralStores, write


def field(name, times, nx=4, dims=("time", "x")):
    values = np.random.default_rng(len(times)).random([len(times), nx][:len(dims)]).astype("f4")
    return xr.Dataset({name: (dims, values)},
                      {"time": times} | ({"x": np.arange(nx) * 1.0} if "x" in dims else {}))


HOURS = pd.date_range("2000-01-01", periods=120, freq="h")


def stores(batchfs, folder, other, chunks, anchor_chunk=4, anchor=HOURS):
    a = write(folder / "a.zarr", field("v", anchor), chunks={"time": anchor_chunk, "x": 2})
    b = write(folder / "b.zarr", other, chunks=chunks)
    return SeveralStores(batchfs, folder, folder / "a.zarr", [f"b={folder / 'b.zarr'}"]), a, b


def view(join, window=None, **order):
    return {"sources": {"a": {}, "b": {"store": "b", "join": join}}, "window": window
                or {"time": 1}, "batch": 8,
            "tensors": {"v": {"variables": ["a:v"]}, "r": {"variables": ["b:r"]}},
            "order": {"shuffle": "block", "seed": 3, "buffer": 2} | order}


def forward(numbers):
    """Chunks of successive positions; -1 is nothing, which belongs to the position before, or to
    the first."""
    series = pd.Series(np.where(numbers < 0, np.nan, numbers))
    return series.ffill().bfill().astype(int).to_numpy()


def axis_of(numbers, starts, span=1):
    sizes = [len(list(group)) for _, group in itertools.groupby(numbers[starts])]
    sizes = [sum(sizes[i:i + span]) for i in range(0, len(sizes), span)]
    return len(starts), 0, sizes[0] if len(set(sizes)) == 1 else sizes


def expected(axes, order, epoch):
    names, total = page(), int(np.prod([axis[0] for axis in axes]))
    if any(isinstance(axis[2], list) for axis in axes):
        return list(names["block_skipping"](lambda w: True, total, order["seed"], epoch,
                                            order["buffer"], axes))
    return [names["block"](i, total, order["seed"], epoch, order["buffer"], axes)
            for i in range(total)]


def epoch_of(runs, document, epoch):
    plan = runs.plan(document) if hasattr(runs, "plan") else json.loads(runs.batchfs.bytes(
        "plan", *runs.command(document), "--json"))
    rows = [json.loads(runs.batchfs.bytes("batch", *runs.command(document), "--batch", b, "--epoch",
                                          epoch, "--format", "json"))
            for b in range(plan["batches"])]
    return [sample for row in rows for sample in row["samples"]], rows


def check(runs, document, axes):
    for epoch in 0, 2:
        samples, _ = epoch_of(runs, document, epoch)
        assert samples == expected(axes, document["order"], epoch)


@pytest.mark.parametrize("chunk", [3, 5])
@pytest.mark.parametrize("pick", ["last", "nearest", "next"])
def test_a_coarser_source(batchfs, tmp_path, pick, chunk):
    times = pd.date_range("1999-12-31", periods=40, freq="6h").delete([3, 9, 20])
    runs, _, _ = stores(batchfs, tmp_path, field("r", times), {"time": chunk, "x": 4})
    method = {"last": "ffill", "next": "bfill", "nearest": "nearest"}[pick]
    numbers = forward(pd.Index(times).get_indexer(HOURS, method=method) // chunk)
    document = view({"time": {"pick": pick}}, by="b")
    check(runs, document, [axis_of(numbers, np.arange(120))])
    check(runs, document | {"window": {"time": {"size": 2, "stride": 3}}},
          [axis_of(numbers, np.arange(0, 119, 3))])
    document["order"]["span"] = {"time": 2}
    check(runs, document, [axis_of(numbers, np.arange(120), 2)])


def test_labels_that_the_source_lacks_and_selections(batchfs, tmp_path):
    times = HOURS[8:110].delete([12, 13, 14, 40, 77])
    runs, _, _ = stores(batchfs, tmp_path, field("r", times), {"time": 9, "x": 4})
    numbers = pd.Index(times).get_indexer(HOURS)
    numbers = np.where(numbers < 0, -1, numbers // 9)
    padded = view({"time": {"missing": "pad"}}, by="b")
    check(runs, padded, [axis_of(forward(numbers), np.arange(120))])
    has = np.flatnonzero(numbers >= 0)
    check(runs, view({"time": "exact"}, by="b"), [axis_of(forward(numbers), has)])
    where = view({"time": "exact"}, by="b") | {"samples": {
        "where": {"time": {"hour": [0, 3, 4, 5, 20]}}}}
    check(runs, where, [axis_of(forward(numbers), has[np.isin(HOURS[has].hour, [0, 3, 4, 5, 20])])])
    selected = view({"time": {"missing": "pad"}}, by="b") | {"select": {"time": {"from": "#31"}}}
    check(runs, selected, [axis_of(forward(numbers)[31:], np.arange(89))])
    every = view({"time": {"missing": "pad"}}, {"time": {"size": 1, "every": "5h"}}, by="b")
    hours = np.flatnonzero((HOURS - pd.Timestamp("2000-01-01")) % pd.Timedelta("5h")
                           == pd.Timedelta(0))
    check(runs, every, [axis_of(forward(numbers), hours)])


def test_a_finer_grid_and_several_dimensions(batchfs, tmp_path):
    y, fine = np.arange(12) * 4.0 + 1.5, np.arange(48) * 1.0
    rng = np.random.default_rng(1)
    a = xr.Dataset({"v": (("time", "y"), rng.random((20, 12)).astype("f4"))},
                   {"time": HOURS[:20], "y": y})
    b = xr.Dataset({"r": (("time", "y"), rng.random((20, 48)).astype("f4"))},
                   {"time": HOURS[:20], "y": fine})
    write(tmp_path / "a.zarr", a, chunks={"time": 4, "y": 12})
    write(tmp_path / "b.zarr", b, chunks={"time": 3, "y": 20})
    runs = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr", [f"b={tmp_path / 'b.zarr'}"])
    document = view({"y": {"ratio": 4}}, {"y": 2, "time": 1}, by="b")
    numbers = np.arange(12) * 4 // 20
    check(runs, document,
          [axis_of(numbers, np.arange(0, 12, 2)), axis_of(np.arange(20) // 3, np.arange(20))])


def test_a_dimension_that_the_source_lacks_is_one_group(batchfs, tmp_path):
    runs, _, _ = stores(batchfs, tmp_path, field("r", HOURS, dims=("time",)), {"time": 25})
    document = view({"time": "exact"}, {"time": 1, "x": 1}, by="b")
    check(runs, document, [axis_of(np.arange(120) // 25, np.arange(120)), (4, 0, 4)])


def test_the_first_source_by_name_is_the_default(batchfs, tmp_path):
    times = HOURS[::3]
    runs, _, _ = stores(batchfs, tmp_path, field("r", times), {"time": 5, "x": 4})
    join = {"time": {"pick": "last"}}
    assert epoch_of(runs, view(join, by="a"), 1)[0] == epoch_of(runs, view(join), 1)[0] != epoch_of(
        runs, view(join, by="b"), 1)[0]


def test_lists_and_weights(batchfs, tmp_path):
    times = HOURS[::3]
    runs, _, _ = stores(batchfs, tmp_path, field("r", times), {"time": 5, "x": 4})
    numbers = np.arange(120) // 3 // 5
    rows = np.random.default_rng(2).integers(0, 120, 90)
    np.save(tmp_path / "rows.npy", rows[:, None])
    document = view({"time": {"pick": "last"}}, by="b")
    listed = document | {"samples": {"list": "rows.npy"}}
    names = page()
    for epoch in 0, 1:
        assert epoch_of(runs, listed, epoch)[0] == names["listed"](
            rows.tolist(), lambda start: int(numbers[start]), 3, epoch, 2)
    weights = np.random.default_rng(3).random(120)
    np.save(tmp_path / "w.npy", weights)
    weighted = document | {"samples": {"weights": "w.npy"}, "epochs": {"samples": 100}}
    draws = list(names["drawn"](weights.tolist(), 100, 3, 1))
    order = names["listed"](draws, lambda start: int(numbers[start]), 3, 1, 2)
    assert epoch_of(runs, weighted, 1)[0] == [draws[draw] for draw in order]


def test_lanes_keep_the_chunks_of_the_source(batchfs, tmp_path):
    runs, _, _ = stores(batchfs, tmp_path, field("r", HOURS[::3]), {"time": 5, "x": 4})
    document = view({"time": {"pick": "last"}}, by="b", buffer=1, lanes=4, home=True) | {"batch": 5}
    lanes = []
    for epoch in 0, 1:
        samples, rows = epoch_of(runs, document, epoch)
        assert sorted(samples) == list(range(120))
        lanes.append([sorted({sample // 15 for row in rows[lane::4] for sample in row["samples"]})
                      for lane in range(4)])
    assert lanes[0] == lanes[1] and sorted(sum(lanes[0], [])) == list(range(8))


def chunks_by_batch(rows, name):
    return [{chunk for chunk in row["chunks"] if chunk.startswith(name)} for row in rows]


def reads(batches):
    """Chunks that are read if those of one batch are kept for the next."""
    return sum(len(batch - before) for before, batch in zip([set(), *batches], batches))


@pytest.mark.parametrize("world", [1, 2])
def test_each_chunk_of_the_source_is_read_about_once(batchfs, tmp_path, world):
    times = HOURS[::2]
    runs, a, b = stores(batchfs, tmp_path, field("r", times), {"time": 15, "x": 4}, anchor_chunk=2)
    join = {"time": {"pick": "last"}}
    document = view(join, by="b", buffer=1) | {"batch": 6}
    by_default, rows = (epoch_of(runs, each, 0)
                        for each in (view(join, buffer=1) | {"batch": 6}, document))
    (before, default_rows), (samples, rows) = by_default, rows
    assert sorted(samples) == sorted(before) == list(range(120))
    assert reads(chunks_by_batch(rows, "b:")) == 4
    assert reads(chunks_by_batch(default_rows, "b:")) > 12
    # Provenance, values and ranks are as ever.
    for number, row in enumerate(rows[:5]):
        tensors = runs.tensors(document, "--batch", str(number))
        for i, sample in enumerate(row["samples"]):
            assert np.array_equal(tensors["v"][i, 0], a.v.values[sample])
            assert np.array_equal(tensors["r"][i, 0],
                                  b.r.sel(time=HOURS[sample], method="ffill").values)
    for rank in range(world):
        words = ["--rank", rank, "--world", world, "--batch", 1, "--format", "json"]
        row = json.loads(batchfs.bytes("batch", *runs.command(document), *words))
        assert row["samples"] == rows[world + rank]["samples"]


def test_plan_names_the_dear_source(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=512, freq="h")
    rng = np.random.default_rng(6)
    a = xr.Dataset({"v": (("time", "x"), rng.random((512, 8)).astype("f4"))}, {"time": times})
    b = xr.Dataset({"r": (("time", "z"), rng.random((512, 4096)).astype("f4"))}, {"time": times})
    write(tmp_path / "a.zarr", a, chunks={"time": 2, "x": 8})
    write(tmp_path / "b.zarr", b, chunks={"time": 64, "z": 4096})
    runs = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr", [f"b={tmp_path / 'b.zarr'}"])
    document = view({"time": "exact"}, buffer=1) | {"batch": 2}

    def advice(document, memory="6M"):
        plan = json.loads(batchfs.bytes("plan", *runs.command(document), "--json", "--memory",
                                        memory))
        return [line for line in plan["advice"] if '"by"' in line]

    (line,) = advice(document)
    assert line.startswith("The chunks of 'b' are decoded about 32 times an epoch, since groups "
                           "are those of the chunks of 'a': ")
    order = json.loads("{" + line.partition(": ")[2].partition(" would decode")[0] + "}")["order"]
    assert order == {"shuffle": "block", "by": "b"}
    better = document | {"order": document["order"] | order}
    assert advice(better) == [] == advice(document, "1G")
    _, rows = epoch_of(runs, document | {"batch": 8}, 0)
    _, better_rows = epoch_of(runs, better | {"batch": 8}, 0)
    assert reads(chunks_by_batch(better_rows, "b:")) == 8 < reads(chunks_by_batch(rows, "b:")) / 10


REFUSED = {
    "global": ({"shuffle": "global", "by": "b", "seed": 1},
               'order.by: it says whose chunks make the groups of samples that "shuffle": "block"'),
    "none": ({"by": "b"}, "order.by: it says whose chunks"),
    "unknown": ({"shuffle": "block", "by": "c"},
                "order.by: \"sources\" has no 'c'; there are a, b"),
    "number": ({"shuffle": "block", "by": 1}, "order.by: expected a string"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(batchfs, tmp_path, what):
    order, message = REFUSED[what]
    runs, _, _ = stores(batchfs, tmp_path, field("r", HOURS), {"time": 9})
    assert message in batchfs.refusal("plan",
                                      *runs.command(view({"time": "exact"}) | {"order": order}))


def test_more_refusals(batchfs, tmp_path):
    runs, _, _ = stores(batchfs, tmp_path, xr.Dataset({"r": ("z", np.arange(5.0))}), {"z": 2})
    refusal = lambda document: batchfs.refusal("plan", *runs.command(document))
    static = view({}, by="b")
    static["sources"]["b"] = {"store": "b"}
    assert ("order.by: no variable of 'b' has a dimension of \"window\", so that its "
            "chunks make no groups" in refusal(static))
    unused = static | {"tensors": {"v": {"variables": ["a:v"]}}}
    assert "order.by: no tensor has a variable of 'b'" in refusal(unused)
    alone = {"window": {"time": 1}, "order": {"shuffle": "block", "by": "b"}}
    assert 'order.by: the view has no "sources"' in refusal(alone)
