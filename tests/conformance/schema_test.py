"""The JSON schema that `batchfs view --schema` prints takes the views that batchfs takes, and refuses those it refuses."""

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
                "latitude": [60.0, 50, 40, 30], "longitude": np.arange(8) * 45.0}).to_zarr(path, zarr_format=2)
    return path


def test_the_views_of_the_page_are_taken(schema):
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    from man_view_test import displays
    views = [json.loads(block) for block in displays() if block.startswith("{")]
    views = [view for view in views if "window" in view or "xbatcher" in view]  # not a file of statistics
    assert len(views) >= 3
    for view in views:
        schema.validate(view)


def test_the_starter_view_is_taken(batchfs, schema, store):
    schema.validate(json.loads(batchfs.bytes("view", store)))


W = {"window": {"time": 1}}
TAKEN = [
    W,
    {"window": {"time": {"size": 4, "stride": 2}, "longitude": {"size": 2, "wrap": True}}, "batch": 3},
    {"$schema": "view.schema.json", **W},
    {**W, "select": {"level": 500, "longitude": {"from": 315, "to": 45, "wrap": True}}},
    {**W, "select": {"level": [500, 850], "time": {"from": "#0", "to": "#-4", "step": 2}}},
    {**W, "select": {"time": [{"from": "2000-05-20", "to": "2000-05-25"}, "2000-06-01", {"month": 6, "weekday": [0, 1]}]}},
    {**W, "select": {"time": {"season": ["MAM"], "hour": 0}, "latitude": {"nearest": 51, "tolerance": 2}}},
    {**W, "select": {"latitude": {"nearest": [51, 41]}}},
    {**W, "tensors": {"x": {"variables": ["t", "q"], "stack": "channel", "offsets": {"time": [0, 1]}}}},
    {**W, "batch": {"size": 2, "remainder": "pad"}, "order": {"shuffle": "block", "seed": 3, "buffer": 2}, "epochs": 4},
    {**W, "dtype": "float16", "missing": {"nan": "fill", "value": 0}, "formats": ["npy", "zarr"]},
    {"xbatcher": {"input_dims": {"time": 4}, "input_overlap": {"time": 1}}},
    {"window": {"time": {"size": 7, "edge": "pad", "pad_value": 1}}},
    {**W, "order": {"shuffle": "block", "lanes": 2, "span": {"time": 1}, "home": True}, "epochs": {"count": 3, "samples": 50}},
    {**W, "samples": {"spacing": {"time": "24h"}, "where": {"time": {"month": [5, 6], "of": "footprint"}, "of": "start"}}},
    {**W, "samples": {"where": {"time": [{"from": "2000-05-20"}, "2000-06-03"]}}, "reserve": {"time": ["-1d", "2d"]}},
    {"window": {"time": {"size": "2d", "stride": "1d"}}, "tensors": {"x": {"variables": ["t"], "offsets": {"time": ["-24h", "0h"]}}}},
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
    {**W, "missing": {"value": 1}},
    {**W, "missing": {"nan": "drop"}},
    {**W, "formats": ["jpeg"]},
    {**W, "formats": []},
    {**W, "tensors": {}},
    {**W, "tensors": {"x": {"variables": ["t", "q"]}}},
    {**W, "tensors": {"x": {"variables": ["t"], "offsets": {"time": []}}}},
    {**W, "xbatcher": {"input_dims": {"time": 4}}},
    {"xbatcher": {"input_dims": {}}},
    {"xbatcher": {"input_dims": {"time": 4}}, "batch": 3},
    {**W, "normalize": {"method": "zscore"}},
    {**W, "order": {"shuffle": "global", "lanes": 2, "home": True}},
    {**W, "order": {"lanes": 0}},
    {**W, "epochs": {"samples": 0}},
    {**W, "samples": {"spacing": {"time": 6}}},
    {**W, "samples": {"spacing": {"time": "6 hours"}}},
    {**W, "samples": {"where": {"time": {"of": "footprint"}}}},
    {**W, "samples": {"where": {"time": {"of": "end", "month": 5}}}},
    {**W, "samples": {"where": {"time": {"mont": 5}}}},
    {**W, "reserve": {"time": ["-1d", 2]}},
    {"window": {"time": "a day"}},
    {**W, "normalize": {"method": "robust", "statistics": {}}},
]


@pytest.mark.parametrize("view", TAKEN, ids=json.dumps)
def test_both_take(batchfs, schema, store, tmp_path, view):
    (tmp_path / "v.json").write_text(json.dumps(view))
    batchfs.bytes("plan", store, "--view", tmp_path / "v.json")
    schema.validate(view)


@pytest.mark.parametrize("view", REFUSED, ids=json.dumps)
def test_both_refuse(batchfs, schema, store, tmp_path, view):
    (tmp_path / "v.json").write_text(json.dumps(view))
    batchfs.refusal("plan", store, "--view", tmp_path / "v.json")
    assert not schema.is_valid(view)
