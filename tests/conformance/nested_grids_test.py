"""Sources of several grids in one sample, against numpy and xarray."""

import json

import numpy as np
import pytest
import xarray as xr
from source_stores import HOUR, START, Sources, grids


@pytest.mark.parametrize("ratio", [2, 3, 4])
@pytest.mark.parametrize("size,stride,wrap,offsets", [(2, 2, False, [0]), (3, 1, False, [0]),
                                                      (2, 1, False, [-1, 0, 2]), (3, 2, True, [0])])
def test_patches_of_nested_grids(batchfs, tmp_path, ratio, size, stride, wrap, offsets):
    sources = Sources(batchfs, tmp_path)
    _, _, fine = grids(sources, ratio)
    join = {"y": {"ratio": ratio}, "x": {"ratio": ratio}}
    view = {"sources": {"c": {}, "f": {"store": "fine", "join": join}}, "batch": 10000,
            "window": {"time": 1, "y": size, "x": {"size": size, "stride": stride, "wrap": wrap}},
            "tensors": {"lo": {"variables": ["t"]},
                        "hi": {"variables": ["f:u"], "offsets": {"x": offsets}}}}
    made = sources.tensors(view)
    coarse = sources.data["coarse"].t.values
    low, high = [], []
    for t in range(5):
        for y in range(0, 6 - size + 1, size):
            for x in range(0, 8, stride):
                if not wrap and not all(0 <= x + o and x + o + size <= 8 for o in [0, *offsets]):
                    continue
                low.append(coarse[t:t + 1, y:y + size].take(np.arange(x, x + size) % 8, 2))
                columns = [(x + o) * ratio + k for o in offsets for k in range(size * ratio)]
                high.append(fine[t:t + 1, y * ratio:(y + size) * ratio].take(
                    np.array(columns) % (8 * ratio), 2))
    assert np.array_equal(made["lo"], np.stack(low))
    assert np.array_equal(made["hi"], np.stack(high))


def test_whole_nested_grids_selections_and_finer_times(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    y, x, fine = grids(sources)
    hours = START + np.arange(5 * 6) * HOUR
    sources.add("hourly", xr.Dataset({"p": (("time",), np.arange(30.0))}, {"time": hours}),
                chunks={"time": 4})
    static = xr.Dataset({"m": (("time",), np.arange(5.0).astype("f4"))},
                        {"time": START + np.arange(5) * 6 * HOUR})
    sources.add("one", static)
    view = {
        "sources": {"c": {}, "f": {"store": "fine", "join": {"y": {"ratio": 3}, "x": {"ratio": 3}}},
                    "h": {"store": "hourly", "join": {"time": {"ratio": 6}}},
                    "o": {"store": "one"}},
        "select": {"y": [float(y[4]), float(y[1])]}, "window": {"time": {"size": 2, "stride": 1}},
        "batch": 10, "tensors": {"hi": {"variables": ["f:u", "o:m"], "stack": "channel",
                                        "broadcast": True, "dims": ["channel", "time", "y", "x"]},
                                 "p": {"variables": ["h:p"]}},
        "missing": {"nan": "skip"}}
    made = sources.tensors(view)
    rows = np.r_[12:15, 3:6]
    for s in range(4):
        assert np.array_equal(made["hi"][s, 0], fine[s:s + 2][:, rows])
        assert (made["hi"][s, 1] == np.arange(s, s + 2)[:, None, None]).all()
        assert np.array_equal(made["p"][s], np.arange(s * 6, s * 6 + 12))
    schema = sources.plan(view)
    assert schema["tensors"][0]["dims"] == ["sample", "channel", "time", "f:y", "f:x"]
    found = json.loads(batchfs.bytes("statistics", *sources.command(view | {"variables": [
        "f:u"], "tensors": {"hi": {"variables": ["f:u"]}}}), "--json"))["variables"]["f:u"]
    np.testing.assert_allclose(found["mean"], fine[:, rows].astype("f8").mean(), rtol=1e-9)
    view["tensors"]["hi"]["variables"] = ["f:u", "t"]
    assert "have grids of different resolution along 'y'; give them tensors of their own" in (
        sources.refusal(view))


def test_grids_that_do_not_nest_are_refused(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    grids(sources, 2)
    view = {"sources": {"c": {},
                        "f": {"store": "fine", "join": {"y": {"ratio": 3}, "x": {"ratio": 2}}}},
            "window": {"time": 1}, "variables": ["t", "f:u"]}
    text = sources.refusal(view)
    assert "sources.f.join.y: the grids do not nest: in the cell of 'y' of 'c' at position" in text
    view["sources"]["f"]["join"]["y"] = {"ratio": 2}
    view["select"] = {"x": float(sources.data["coarse"].x[2])}
    assert "write it as a list, which keeps the dimension" in sources.refusal(view)


def test_statistics_that_would_be_of_other_positions_are_refused(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    grids(sources, 2)
    view = {"sources": {"c": {},
                        "f": {"store": "fine", "join": {"y": {"ratio": 2}, "x": {"ratio": 2}}}},
            "window": {"time": 1}, "variables": ["t", "f:u"]}
    assert "no numbers for each 'y': 'f:u' has 2 positions" in batchfs.refusal(
        "statistics", *sources.command(view), "--per", "y")
    view["window"] = {"y": 1}
    view["split"] = {"blocks": {"y": 2}, "fractions": {"train": 0.5, "val": 0.5}}
    assert "which the view's split cuts" in batchfs.refusal("statistics", *sources.command(view))


def test_statistics_of_channels_of_a_coarser_grid(batchfs, tmp_path):
    sources = Sources(batchfs, tmp_path)
    y, x, fine = grids(sources, 2)
    sources.stores["anchor"], sources.stores["coarse"] = (sources.stores["fine"],
                                                          sources.stores["anchor"])
    view = {"sources": {"f": {}, "c": {"store": "coarse",
                                       "join": {"y": {"ratio": "1/2"}, "x": {"ratio": "1/2"}}}},
            "window": {"time": 1},
            "select": {"y": [float(v) for v in sources.data["fine"].y[1:-1]]}, "dtype": "float64",
            "batch": 100, "tensors": {"x": {"variables": [{"make": "ratio", "of": ["u", "c:t"]}]}}}
    repeated = np.repeat(np.repeat(sources.data["coarse"].t.values[:, ::-1], 2, axis=1), 2, axis=2)
    expected = fine[:, ::-1].astype("f8") / repeated
    np.testing.assert_array_equal(sources.tensors(view)["x"].reshape(expected.shape), expected)
    entry = json.loads(batchfs.bytes("statistics", *sources.command(view),
                                     "--json"))["variables"]["ratio"]
    assert (entry["min"], entry["max"], entry["count"]) == (expected.min(), expected.max(),
                                                            expected.size)
