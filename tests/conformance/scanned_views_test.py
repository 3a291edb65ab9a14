"""`statistics` and `check` take every view that `plan` takes, and the numbers are those of the
stored values, whatever types, stacks, tensors and treatment of missing values the view has.
"""

import json

import numpy as np
import pytest
import xarray as xr
from view_commands import view_file

T, Z, Y = 12, 3, 5
BASE = {"window": {"time": 1}, "batch": 4}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    ds = xr.Dataset({"single": (("time", "lat"), rng.normal(280, 20, (T, Y)).astype("f4")),
                     "double": (("time", "lat"), rng.normal(0, 1, (T, Y))),
                     "half": (("time", "lat"), rng.normal(0, 1, (T, Y)).astype("f2")),
                     "whole": (("time", "lat"), rng.integers(0, 99, (T, Y)).astype("i2")),
                     "count": (("time", "lat"), rng.integers(0, 99, (T, Y)).astype("u8")),
                     "deep": (("time", "level", "lat"), rng.normal(0, 1, (T, Z, Y)).astype("f4")),
                     "when": (("time",), np.datetime64("2001-01-01", "ns")
                                  + np.arange(T) * np.timedelta64(1, "D"))},
                    {"time": np.datetime64("2000-01-01", "ns")
                         + np.arange(T) * np.timedelta64(6, "h"),
                     "level": ("level", [500, 850, 1000], {"positive": "down"}),
                     "lat": ("lat", np.linspace(60, -60, Y), {"units": "degrees_north"})})
    ds.single[3, 2] = np.nan
    path = tmp_path_factory.mktemp("scanned") / "s.zarr"
    ds.to_zarr(path, zarr_format=3,
               encoding={name: {"chunks": (5, *ds[name].shape[1:])} for name in ds.data_vars})
    return path, xr.open_zarr(path).load()


def stacked(*variables, **more):
    return {"tensors": {"x": {"variables": list(variables), "stack": "c", **more}}}


NUMBERS = {"method": "minmax",
           "statistics": {n: {"min": 0, "max": 300}
                          for n in ("single", "double", "half", "whole", "count")}}
VIEWS = {
    "float32 with float64": {**stacked("single", "double"), "dtype": "float32"},
    "float16 with float64": {**stacked("half", "double"), "dtype": "float64"},
    "bfloat16": {**stacked("half", "single", "double"), "dtype": "bfloat16",
                 "formats": ["safetensors"]},
    "integers that are normalized": {**stacked("single", "whole"), "dtype": "float32",
                                     "normalize": NUMBERS | {"variables": ["single", "whole"]}},
    "integers of two types": {**stacked("whole", "count"),
                              "normalize": NUMBERS | {"variables": ["whole", "count"]}},
    "made channels with integers": {**stacked("whole", {"make": "cos_julian_day"}),
                                    "dtype": "float32",
                                    "normalize": NUMBERS | {"variables": ["whole"]}},
    "made of integers": {**stacked("single", {"make": "sum", "of": ["whole", "count"]}),
                         "dtype": "float32"},
    "levels beside a surface": {**stacked("deep", "double"), "dtype": "float32"},
    "a fraction as padding of integers": {
        "window": {"time": {"size": 3, "edge": "pad", "pad_value": 0.5}}, "variables": ["whole"],
        "dtype": "float32", "normalize": NUMBERS | {"variables": ["whole"]}},
    "coarsened": {"tensors": {"x": {"variables": ["single", "double"], "stack": "c",
                                    "coarsen": {"lat": 5}}}, "dtype": "float32"},
    "coarsened integers": {"tensors": {"x": {"variables": ["whole"], "coarsen": {"lat": 5}}},
                           "dtype": "float32"},
    "filled": {**stacked("single", "double"), "dtype": "float32",
               "missing": {"nan": "fill", "value": 0}},
    "skipped": {**stacked("single", "double"), "dtype": "float32", "missing": {"nan": "skip"}},
    "broadcast": {**stacked("single", "deep", broadcast=True), "dtype": "float32"},
    "offsets": {**stacked("single", "double", offsets={"time": ["-6h", "0h"]}), "dtype": "float32"},
    "pictures": {"variables": ["single"], "dtype": "float32",
                 "formats": ["npy", "safetensors", "npz", "zarr"]},
    "log": {"variables": ["double", "single"], "normalize": {"method": "log1p", "scale": 1}},
    "a split": {**stacked("single", "double"), "dtype": "float32",
                "split": {"blocks": {"time": 3}, "fractions": {"train": 0.5, "val": 0.5}}},
    "times too": {"variables": ["single", "when"], "dtype": "float16"},
    "one tensor each": {"dtype": "float32"},
    "xbatcher": {"xbatcher": {"input_dims": {"time": 3}}, "variables": ["single", "double"],
                 "dtype": "float32"},
    "a split along levels": {"window": {"time": 1, "level": 1}, "variables": ["deep"], "split": {
        "parts": {"a": [{"level": [500, 850]}], "b": [{"level": [1000]}]}}},
}


def variables_of(view):
    names = view.get("variables") or [v for t in view.get("tensors", {}).values()
                                      for v in t["variables"] if isinstance(v, str)]
    return names or ["single", "double", "half", "whole", "count", "deep"]


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_scanned(batchfs, tmp_path, store, name):
    path, ds = store
    view = (BASE | VIEWS[name]) if "xbatcher" not in VIEWS[name] else VIEWS[name]
    file = view_file(tmp_path, view)
    batchfs.bytes("plan", path, "--view", file)
    found = json.loads(batchfs.bytes("statistics", path, "--view", file, "--json",
                                     "--quantiles"))["variables"]
    batchfs.bytes("check", path, "--view", file)
    for variable in set(variables_of(view)) - {"when"}:
        if "split" in view:
            continue
        values = ds[variable].values.astype("f8")
        if name == "log":  # the numbers are those of the logarithms
            values = np.log1p(np.maximum(values, 0))
        kept = tuple(i for i, dim in enumerate(ds[variable].dims) if dim != "level")
        for key, expected in (("mean", np.nanmean(values, kept)), ("std", np.nanstd(values, kept)),
                              ("min", np.nanmin(values, kept)), ("max", np.nanmax(values, kept)),
                              ("median", np.nanmedian(values, kept))):
            assert np.allclose(found[variable][key], expected, rtol=1e-6), (variable, key)


def test_numbers_do_not_depend_on_types_and_stacks(batchfs, tmp_path, store):
    path, _ = store
    plain = json.loads(batchfs.bytes("statistics", path, "--view", view_file(
        tmp_path, BASE | {"variables": ["single", "double"]}), "--json"))["variables"]
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        formats = {"formats": ["safetensors"]} if dtype == "bfloat16" else {}
        file = view_file(tmp_path, BASE | stacked("single", "double") | {"dtype": dtype} | formats)
        assert json.loads(batchfs.bytes("statistics", path, "--view", file,
                                        "--json"))["variables"] == plain
