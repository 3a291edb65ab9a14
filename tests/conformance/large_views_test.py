"""Views of 10^9 samples: opening one takes memory for the positions along its dimensions, not for
its samples."""

import json

import numpy as np
import pytest
import xarray as xr
from conftest import PROGRAM
from measured import measure

T, Y, X = 87_660, 1000, 1000  # 60 years every 6 hours
WINDOW = {"time": {"size": 1, "stride": 1}, "lat": {"size": 8, "stride": 8},
          "lon": {"size": 4, "stride": 4, "wrap": True}}
BASE = {"window": WINDOW, "batch": 32, "tensors": {"x": {"variables": ["t"]}}}
SPLIT = {"blocks": {"time": "30d"}, "fractions": {"train": 0.8, "val": 0.2}, "gap": {"time": "3d"},
         "part": "train"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Without any chunk of the variable."""
    path = tmp_path_factory.mktemp("large") / "s.zarr"
    xr.Dataset({"wet": ("time", np.random.default_rng(0).integers(0, 2, T).astype("i1"))},
               {"time": xr.date_range("1960-01-01", periods=T, freq="6h"),
                "lat": ("lat", np.linspace(-89, 89, Y), {"units": "degrees_north"}),
                "lon": ("lon", np.arange(X) * 0.36, {"units": "degrees_east"})}).to_zarr(
        path, zarr_format=2, consolidated=False,
        encoding={"time": {"chunks": (T,)}, "wet": {"chunks": (T,)}})
    (path / "t").mkdir()
    (path / "t" / ".zarray").write_text(
        json.dumps({"zarr_format": 2, "shape": [T, Y, X], "chunks": [1, Y, X], "dtype": "<f4",
                    "fill_value": 0.0, "order": "C", "filters": None, "compressor": None}))
    (path / "t" / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]}))
    return path


def opened(store, folder, view):
    """Bytes of memory that the first batch's provenance takes."""
    (folder / "v.json").write_text(json.dumps(view))
    measured = measure(PROGRAM, "batch", store, "--view", folder / "v.json", "--format", "json")
    assert measured.status == 0, measured.error
    return measured.peak


@pytest.mark.parametrize("more", [
    {"samples": {"spacing": {"time": "6h"}}},
    {"samples": {"where": {"time": {"month": [6, 7, 8], "hour": [0, 12]},
                           "lat": {"from": -60, "to": 60}}}},
    {"samples": {"mask": {"variable": "wet"}}},
    {"reserve": {"time": ["-12h", "72h"]}},
    {"split": {"parts": {"train": "rest", "val": [{"time": {"from": "2016"}}]},
               "gap": {"time": "10d"}, "part": "train"}},
    {"split": SPLIT},
    {"split": SPLIT, "reserve": {"time": ["72h"]},
     "order": {"shuffle": "block", "lanes": 8, "home": True},
     "samples": {"spacing": {"time": "6h"}, "mask": {"variable": "wet", "fraction": [0.3, 1]},
                 "where": {"time": {"month": [6, 7, 8]}, "of": "footprint"}},
     "epochs": {"count": 3, "samples": 10**8}},
], ids=lambda more: ", ".join(more))
def test_restrictions_along_one_dimension(batchfs, store, tmp_path, more):
    few = opened(store, tmp_path, BASE | {"select": {"time": {"from": "#0", "to": "#4"}}})
    many = opened(store, tmp_path, BASE | more)
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "v.json", "--json"))
    assert (plan["windows"] >= 10**9
            and plan["samples"] == plan["windows"] - sum(plan["dropped"].values()) >= 10**8)
    assert many - few < 16 << 20  # where the bits of the windows alone would be 342 MB
