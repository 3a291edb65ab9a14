"""A mask and a split together leave the windows that each of them leaves, along one dimension or
several."""

import json

import numpy as np
import pytest
import xarray as xr

T, X = 24, 12
SPLITS = {
    "one dimension": {"parts": {"train": "rest",
                                "val": [{"time": {"from": "2001-01-03", "to": "2001-01-04"}}]},
                      "gap": {"time": "6h"}},
    "two dimensions": {"parts": {"train": "rest", "val": [
        {"time": {"from": "2001-01-02", "to": "2001-01-04"}, "x": {"from": 2, "to": 8}}]}},
}
MASKS = {
    "one dimension": {"variable": "wet", "fraction": [0.5, 1]},
    "two dimensions": {"variable": "rain", "above": 0.4, "fraction": [0.5, 1]},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(6)
    path = tmp_path_factory.mktemp("allowed") / "s.zarr"
    t = rng.random((T, X)).astype("f4")
    t[rng.random(t.shape) < 0.02] = np.nan
    xr.Dataset({"t": (("time", "x"), t), "wet": (("time",), rng.random(T) < 0.6),
                "rain": (("time", "x"), rng.random((T, X)))},
               {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
                "x": np.arange(X)}).to_zarr(path, zarr_format=2)
    return path


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("shuffle", ["none", "block"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_both(batchfs, store, tmp_path, split, mask, shuffle, skip):
    file, cache = tmp_path / "v.json", ("--cache-dir", tmp_path / "cache")
    base = ({"window": {"time": {"size": 2, "stride": 1}, "x": {"size": 3, "stride": 1}},
             "variables": ["t"], "batch": 10_000, "order": {"shuffle": shuffle}}
            | ({"missing": {"nan": "skip"}} if skip else {}))

    def starts(part, **keys):
        file.write_text(json.dumps(base | keys))
        options = ("--part", part) if part else ()
        found = json.loads(batchfs.bytes("batch", store, "--view", file, "--format", "json",
                                         *options, *cache))["starts"]
        plan = json.loads(batchfs.bytes("plan", store, "--view", file, "--json", *options, *cache))
        assert sorted(plan["dropped"].values()) == sorted(map(abs, plan["dropped"].values()))
        assert plan["windows"] - sum(plan["dropped"].values()) == plan["samples"] == len(found)
        return {tuple(start) for start in found}

    masked = starts(None, samples={"mask": MASKS[mask]})
    for part in "train", "val":
        both = starts(part, samples={"mask": MASKS[mask]}, split=SPLITS[split])
        assert both == masked & starts(part, split=SPLITS[split]) and both


def test_nothing_in_common(batchfs, tmp_path):
    path = tmp_path / "s.zarr"
    rain = np.zeros((8, 6))
    rain[:2] = 1
    xr.Dataset({"t": (("time", "x"), np.ones((8, 6), "f4")), "rain": (("time", "x"), rain)},
               {"time": np.arange(8), "x": np.arange(6)}).to_zarr(path, zarr_format=2)
    file = tmp_path / "v.json"
    view = {"window": {"time": 1, "x": 2}, "variables": ["t"],
            "samples": {"mask": {"variable": "rain"}}, "split": {"parts": {"train": "rest", "val": [
                {"time": {"from": 4, "to": 7}, "x": {"from": 0, "to": 3}}]}}}
    file.write_text(json.dumps(view))
    assert "samples.mask: no sample is left: of 8 windows in the part 'val' none passes" in \
        batchfs.refusal("plan", path, "--view", file, "--part", "val")
