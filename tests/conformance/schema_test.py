"""The JSON schema that `batchfs view --schema` prints takes the views that batchfs takes, and
refuses those it refuses."""

import json
import pathlib
import sys

import jsonschema
import numpy as np
import pandas as pd
import pytest
import xarray as xr

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def schema(batchfs):
    schema = json.loads(batchfs.bytes("view", "--schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "s.zarr"
    shape = (40, 3, 4, 8)
    dims = ("time", "level", "latitude", "longitude")
    xr.Dataset({name: (dims, np.zeros(shape, "f4")) for name in ("t", "q")},
               {"time": pd.date_range("2000-05-20", periods=40, freq="D"), "level": [200, 500, 850],
                "latitude": [60.0, 50, 40, 30], "longitude": np.arange(8) * 45.0,
                "time_mask": ("time", np.ones(40, "i1"))}).to_zarr(path, zarr_format=2)
    return path


def test_the_views_of_the_page_are_taken(schema):
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    from man_view_test import displays
    views = [json.loads(block) for block in displays() if block.startswith("{")]
    # not a file of statistics
    views = [view for view in views if "window" in view or "xbatcher" in view]
    assert len(views) >= 3
    for view in views:
        schema.validate(view)


def test_the_starter_view_is_taken(batchfs, schema, store):
    schema.validate(json.loads(batchfs.bytes("view", store)))


W = {"window": {"time": 1}}
TAKEN = [
    W,
    {"window": {"time": "1d"}},
    {"window": {"time": {"size": 4, "stride": 2}, "longitude": {"size": 2, "wrap": True}},
     "batch": 3},
    {"$schema": "view.schema.json", **W},
    {**W, "group": "/"},
    {"mix": {"a": {"view": W}, "b": {"view": {**W, "order": {"shuffle": "global"}}}}},
    {"mix": {"a": {"view": W, "weight": 2}, "b": {"view": W, "weight": 1}},
     "batch": {"size": 4, "mixing": "batch", "block": 9}, "temperature": 2, "order": {"seed": 4},
     "epochs": {"samples": 99}, "start": {"a": 5}, "formats": ["npz"]},
    {"mix": {"a": {"view": W, "repeat": 2.5}}, "batch": {"size": 4, "mixing": "stratified"}},
    {**W, "select": {"level": 500, "longitude": {"from": 315, "to": 45, "wrap": True}}},
    {**W, "select": {"level": [500, 850], "time": {"from": "#0", "to": "#-4", "step": 2}}},
    {**W, "select": {"time": [{"from": "2000-05-20", "to": "2000-05-25"}, "2000-06-01",
                              {"month": 6, "weekday": [0, 1]}]}},
    {**W, "select": {"time": {"season": ["MAM"], "hour": 0},
                     "latitude": {"nearest": 51, "tolerance": 2}}},
    {**W, "select": {"latitude": {"nearest": [51, 41]}}},
    {**W,
     "tensors": {"x": {"variables": ["t", "q"], "stack": "channel", "offsets": {"time": [0, 1]}}}},
    {**W, "tensors": {"x": {"variables": ["q"], "broadcast": True}}},
    {**W, "tensors": {"x": {"variables": ["t", {"make": "cos_zenith"},
                                          {"make": "toa_radiation", "mean": "1h"}], "stack": "c"}}},
    {**W, "tensors": {"x": {"variables": [{"make": "wind_speed", "of": ["t", "q"], "name": "w"},
                                          {"make": "constant", "value": 1}],
                            "stack": "c"}}},
    {**W, "normalize": {"method": "log1p", "scale": 0.5}},
    {**W, "normalize": {"method": "robust",
                        "statistics": {n: {"median": 0, "p25": 0, "p75": 1} for n in ("t", "q")}}},
    {**W, "normalize": {"method": "zscore", "by": "tendency", "statistics": {
        n: {"mean": 0, "tendency": {"std": 1}} for n in ("t", "q")}}},
    {**W, "batch": {"size": 2, "remainder": "pad"},
     "order": {"shuffle": "block", "seed": 3, "buffer": 2}, "epochs": 4},
    {**W, "dtype": "float16", "missing": {"nan": "fill", "value": 0}, "formats": ["npy", "zarr"]},
    {"xbatcher": {"input_dims": {"time": 4}, "input_overlap": {"time": 1}}},
    {"window": {"time": {"size": 7, "edge": "pad", "pad_value": 1}}},
    {**W, "order": {"shuffle": "block", "lanes": 2, "span": {"time": 1}, "home": True},
     "epochs": {"count": 3, "samples": 50}},
    {**W, "samples": {"spacing": {"time": "24h"},
                      "where": {"time": {"month": [5, 6], "of": "footprint"}, "of": "start"}}},
    {**W, "samples": {"where": {"time": [{"from": "2000-05-20"}, "2000-06-03"]}},
     "reserve": {"time": ["-1d", "2d"]}},
    {**W, "missing": {"nan": "skip", "at_most": 0.5, "variables": ["t"]}},
    {**W, "sources": {"a": {}, "b": {
        "group": "/", "join": {"time": {"pick": "last", "tolerance": "7d", "missing": "pad"}}}},
     "variables": ["t", "b:t"]},
    {**W, "sources": {"a": {}, "b_2.x": {"join": {"time": "exact"}}},
     "variables": ["a:t", "b_2.x:t"]},
    {**W, "sources": {
        "a": {}, "b": {"join": {"time": "exact", "longitude": {"pick": "nearest", "period": 360}}}},
     "variables": ["a:t", "b:t"]},
    {**W, "samples": {"mask": {"variable": "time_mask", "above": 0.5, "below": 2,
                               "fraction": [0.5, 1]}}},
    {**W, "samples": {"mask": {"variable": "time_mask", "at": "center"},
                      "weights": {"variable": "time_mask"}}},
    {**W, "samples": {"list": "rows.csv", "labels": ["w"], "anchor": "center", "snap": "nearest",
                      "tolerance": {"time": "1d"}, "weights": {"column": "w"}}},
    {**W, "samples": {"list": {"file": "rows.csv"}}},
    {**W, "samples": {"list": "rows.csv", "where": {"time": {"month": 5}},
                      "spacing": {"time": "1d"}, "mask": {"variable": "time_mask"}}},
    {"window": {"time": {"size": "2d", "stride": "1d"}},
     "tensors": {"x": {"variables": ["t"], "offsets": {"time": ["-24h", "0h"]}}}},
    {**W, "split": {"parts": {"train": "rest", "val": [{"time": {"from": "2000-06-10"}}]},
                    "gap": {"time": "2d"}}},
    {**W, "split": {"parts": {"a": [{"time": ["2000-05-20", "#4"]}], "b": "rest"},
                    "gap": {"time": 0}, "with": {"b": {"order": {"shuffle": "global"}, "batch": 4,
                                                       "epochs": 2, "missing": {"nan": "keep"}}}}},
    {**W, "split": {"blocks": {"time": "5d"}, "fractions": {"train": 0.75, "val": 0.25}, "seed": 3,
                    "draw": "permute", "part": "val"}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 2, "draw": "hash"}},
    {**W, "split": {"groups": {"time": "day"}, "folds": 2, "seed": 1}},
]
REFUSED = [
    {},
    [],
    {"window": {}},
    {"window": {"time": 0}},
    {"window": {"time": 1.5}},
    {"window": {"time": {"stride": 2}}},
    {"window": {"time": {"size": 2, "edge": "wrap"}}},
    {**W, "batch_size": 4},
    {**W, "batch": 0},
    {**W, "batch": {"size": 2, "remainder": "some"}},
    {**W, "order": {"shuffle": True}},
    {**W, "order": {"seed": -1}},
    {**W, "variables": []},
    {**W, "group": 1},
    {**W, "mix": {"a": {"view": W}}},
    {**W, "temperature": 2},
    {**W, "batch": {"size": 2, "mixing": "sample"}},
    {"mix": {}},
    {"mix": {"a": {}}},
    {"mix": {"a b": {"view": W}}},
    {"mix": {"a": {"view": W, "weight": -1}}},
    {"mix": {"a": {"view": W, "weight": 1, "repeat": 1}}},
    {"mix": {"a": {"view": {"mix": {"b": {"view": W}}}}}},
    {"mix": {"a": {"view": W}}, "temperature": 0},
    {"mix": {"a": {"view": W}}, "batch": {"size": 2, "mixing": "none"}},
    {"mix": {"a": {"view": W}}, "order": {"shuffle": "global"}},
    {"mix": {"a": {"view": W}}, "start": {"a": -1}},
    {"mix": {"a": {"view": W}}, "dtype": "float32"},
    {**W, "level": -1},
    {**W, "level": "0"},
    {**W, "level": 0.5},
    {**W, "level": {}},
    {**W, "level": {"resolution": {}}},
    {**W, "level": {"resolution": {"x": 0}}},
    {**W, "level": {"resolution": {"x": "um"}}},
    {**W, "level": {"resolution": {"x": "1 um"}, "of": 3}},
    {**W, "variables": ["t", "t"]},
    {**W, "name": "a/b"},
    {**W, "name": ""},
    {**W, "$schema": 1},
    {**W, "select": {"time": []}},
    {**W, "select": {"time": None}},
    {**W, "select": {"time": {"start": 1}}},
    {**W, "select": {"time": {"step": 0}}},
    {**W, "select": {"time": {"month": 13}}},
    {**W, "select": {"time": {"month": []}}},
    {**W, "select": {"time": {"season": "winter"}}},
    {**W, "select": {"latitude": {"nearest": 51, "to": 2}}},
    {**W, "select": {"time": {"wrap": 1}}},
    {**W, "dtype": "int8"},
    {**W, "sources": {}},
    {**W, "sources": {"a": {}}, "group": "/"},
    {**W, "sources": {"a b": {}}},
    {**W, "sources": {"a": {}, "b": {"store": "s3://bucket/b.zarr"}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": "asof"}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"tolerance": -1}}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"ratio": 1}}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"ratio": "1/1"}}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"ratio": "4"}}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"period": 0}}}}},
    {**W, "sources": {"a": {"stores": ["x", "y"], "concat": {"labels": [1, 2]}}}},
    {**W, "sources": {"a": {"stores": ["x", "y"], "concat": {"dim": "m", "labels": [1, "b"]}}}},
    {**W, "sources": {"a": {"stores": ["x", "y"], "concat": {"dim": "m", "labels": [1, 1]}}}},
    {**W, "sources": {"a": {}, "b": {"join": {"time": {"ratio": 4, "pick": "last"}}}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "sources": {"a": {}}},
    {**W, "missing": {"value": 1}},
    {**W, "missing": {"nan": "drop"}},
    {**W, "formats": ["jpeg"]},
    {**W, "formats": []},
    {**W, "tensors": {}},
    {**W, "tensors": {"x": {"variables": ["t", "q"]}}},
    {**W, "tensors": {"x": {"variables": [{"make": "cos_zeniths"}]}}},
    {**W, "tensors": {"x": {"variables": [{"make": "wind_speed", "of": ["t"]}]}}},
    {**W, "tensors": {"x": {"variables": [{"make": "constant"}]}}},
    {**W, "tensors": {"x": {"variables": [{"make": "cos_zenith", "mean": "1h"}]}}},
    {**W, "variables": [{"make": "cos_zenith"}]},
    {**W, "normalize": {"method": "log1p"}},
    {**W, "normalize": {"method": "log1p", "scale": 1, "statistics": {}}},
    {**W, "normalize": {"method": "zscore", "scale": 1, "statistics": {}}},
    {**W, "tensors": {"x": {"variables": ["t"], "offsets": {"time": []}}}},
    {**W, "tensors": {"x": {"variables": ["t"], "broadcast": "time"}}},
    {**W, "xbatcher": {"input_dims": {"time": 4}}},
    {"xbatcher": {"input_dims": {}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "batch": 3},
    {**W, "xbatcher": {"input_dims": {"time": 4}}, "batch": 3},
    {**W, "xbatcher": {"input_dims": {"time": 4}}, "tensors": {"x": {"variables": ["t"]}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "samples": {"spacing": {"time": "1d"}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "samples": {"list": "rows.csv"}},
    {"xbatcher": {"input_dims": {"time": 4}}, "reserve": {"time": [1]}},
    {**W, "normalize": {"method": "zscore"}},
    {**W, "order": {"shuffle": "global", "lanes": 2, "home": True}},
    {**W, "order": {"lanes": 0}},
    {**W, "epochs": {"samples": 0}},
    {**W, "samples": {"spacing": {"time": 6}}},
    {**W, "samples": {"spacing": {"time": "6 hours"}}},
    {**W, "samples": {"spacing": {"time": "6 h"}}},
    {**W, "samples": {"where": {"time": {"of": "footprint"}}}},
    {**W, "samples": {"where": {"time": {"of": "end", "month": 5}}}},
    {**W, "samples": {"where": {"time": {"mont": 5}}}},
    {**W, "missing": {"nan": "skip", "at_most": 2}},
    {**W, "missing": {"at_most": 0.5}},
    {**W, "missing": {"nan": "skip", "variables": []}},
    {**W, "samples": {"mask": "time_mask"}},
    {**W, "samples": {"mask": {}}},
    {**W, "samples": {"mask": {"variable": "time_mask", "fraction": [0, 1], "at": "center"}}},
    {**W, "samples": {"mask": {"variable": "time_mask", "fraction": 1}}},
    {**W, "samples": {"labels": ["w"]}},
    {**W, "samples": {"snap": "nearest"}},
    {**W, "samples": {"list": "rows.csv", "tolerance": 1}},
    {**W, "samples": {"list": "rows.csv", "anchor": "end"}},
    {**W, "samples": {"weights": {}}},
    {**W, "samples": {"weights": {"column": "w", "variable": "time_mask"}, "list": "rows.csv"}},
    {**W, "reserve": {"time": ["-1d", 2]}},
    {"window": {"time": "a day"}},
    {**W, "normalize": {"method": "rank", "statistics": {}}},
    {**W, "split": {}},
    {**W, "split": {"parts": {}}},
    {**W, "split": {"parts": {"train": "others", "val": [{"time": "2000-06"}]}}},
    {**W, "split": {"parts": {"train": "rest", "val": {"time": "2000-06"}}}},
    {**W, "split": {"parts": {"train": "rest", "val": [{}]}}},
    {**W, "split": {"parts": {"train": "rest", "val": [{"time": "2000-06"}]}, "seed": 1}},
    {**W, "split": {"parts": {"train": "rest", "val": [{"time": "2000-06"}]}, "blocks": {"time": 4},
                    "folds": 2}},
    {**W, "split": {"blocks": {"time": 4}}},
    {**W, "split": {"blocks": {"time": 0}, "folds": 2}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 1}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 2, "fractions": {"a": 1}}},
    {**W, "split": {"blocks": {"time": 4}, "fractions": {"a": 1.5, "b": -0.5}}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 2, "draw": "random"}},
    {**W, "split": {"groups": {"time": "week"}, "folds": 2}},
    {**W, "split": {"groups": {"time": "month"}, "folds": 2, "draw": "permute"}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 2, "gap": {"time": -1}}},
    {**W, "split": {"blocks": {"time": 4}, "folds": 2, "with": {"val": {"dtype": "float32"}}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "split": {"blocks": {"time": 4}, "folds": 2}},
]


def write(folder, view):
    (folder / "v.json").write_text(json.dumps(view))
    (folder / "rows.csv").write_text("time,w\n2000-05-21,1\n#7,0.5\n")


@pytest.mark.parametrize("view", TAKEN, ids=json.dumps)
def test_both_take(batchfs, schema, store, tmp_path, view):
    write(tmp_path, view)
    batchfs.bytes("plan", store, "--view", tmp_path / "v.json")
    schema.validate(view)


@pytest.mark.parametrize("view", REFUSED, ids=json.dumps)
def test_both_refuse(batchfs, schema, store, tmp_path, view):
    write(tmp_path, view)
    batchfs.refusal("plan", store, "--view", tmp_path / "v.json")
    assert not schema.is_valid(view)
