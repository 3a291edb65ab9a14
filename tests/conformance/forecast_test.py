"""Channels of time on forecasts are those of the time that a value is for: start plus lead time, or
the coordinate of valid times. Against xarray, numpy and pvlib.
"""

import json

import numpy as np
import pandas as pd
import pvlib
import pytest
import xarray as xr
from view_commands import batch, refused, view_file

STARTS = np.datetime64("2024-03-20", "ns") + np.arange(3) * np.timedelta64(12, "h")
LEADS = np.array([-6, 0, 6, 12, 30]) * np.timedelta64(1, "h").astype("m8[ns]")
LATS, LONS = np.array([50.0, -10.0]), np.array([0.0, 90.0, 250.0])
VALID = STARTS[:, None] + LEADS
NAMES = [("init_time", "lead_time"), ("time", "prediction_timedelta"), ("time", "step"),
         ("forecast_reference_time", "tau")]


def zenith(times):
    """The cosine, over times x LATS x LONS."""
    flat = pd.DatetimeIndex(np.ravel(times))
    grid = np.stack(
        [[np.cos(np.deg2rad(pvlib.solarposition.ephemeris(flat, lat, lon, 0).zenith.values))
          for lon in LONS] for lat in LATS])
    return np.moveaxis(grid, -1, 0).reshape(*np.shape(times), len(LATS), len(LONS))


def day_progress(times):
    of_day = (times - times.astype("M8[D]")) / np.timedelta64(1, "D")
    return (of_day[..., None] + LONS / 360) % 1


def julian_day(times):
    days = (times - times.astype("M8[Y]")) / np.timedelta64(1, "D")
    return np.cos(2 * np.pi * days / 365.25)


def forecast(path, names=("init_time", "lead_time"), lead=None, order=None, attributes=None,
             version=3, **more):
    start, step = names
    dims = order or (start, step, "lat", "lon")
    sizes = {start: len(STARTS), step: len(LEADS), "lat": len(LATS), "lon": len(LONS)}
    values = np.arange(float(np.prod(list(sizes.values())))).reshape([sizes[d] for d in dims])
    ds = xr.Dataset({"t": (dims, values), "analysis": ((start, "lat", "lon"), np.zeros((3, 2, 3))),
                     "orography": (("lat", "lon"), np.ones((2, 3)))},
                    {start: STARTS, step: (step, LEADS if lead is None else lead, attributes or {}),
                     "lat": ("lat", LATS, {"units": "degrees_north"}),
                     "lon": ("lon", LONS, {"units": "degrees_east"}), **more})
    ds.to_zarr(path, zarr_format=version)
    return path


def near(ours, expected):
    """To 0.1 degrees; ours may have dimensions of length 1 more."""
    assert ours.size == expected.size
    assert np.allclose(ours.reshape(expected.shape), expected, atol=2e-3)


def made(window, *variables, offsets=None, dims=None, **more):
    make = {"make": "cos_zenith", **more}
    tensor = {"variables": [*variables, make], "stack": "c", "broadcast": True}
    if offsets:
        tensor["offsets"] = offsets
    if dims:
        tensor["dims"] = dims
    return {"window": window, "tensors": {"x": tensor}, "batch": 100}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_the_lead_is_a_dimension_of_the_tensor(batchfs, tmp_path, names, version):
    path = forecast(tmp_path / "s.zarr", names, version=version)
    dims = ["c", names[1], "lat", "lon"]
    x = batch(batchfs, tmp_path, path, made({names[0]: 1}, "t", dims=dims))
    near(x[:, 1], zenith(VALID))
    x = batch(batchfs, tmp_path, path,
              made({names[0]: 1, names[1]: 5}, "t", dims=["c", names[1], "lat", "lon"]))
    near(x[:, 1], zenith(VALID))


@pytest.mark.parametrize("lead, attributes", [
    (None, {}), ([-6, 0, 6, 12, 30], {"units": "hours"}), ([-6.0, 0, 6, 12, 30], {"units": "h"}),
    ([-360, 0, 360, 720, 1800], {"units": "minutes", "standard_name": "forecast_period"})])
def test_the_lead_is_a_dimension_of_the_window(batchfs, tmp_path, lead, attributes):
    path = forecast(tmp_path / "s.zarr", lead=lead, attributes=attributes)
    flat = VALID.ravel()
    view = {"window": {"init_time": 1, "lead_time": 1}, "batch": 100,
            "tensors": {"x": {"variables": ["t", {"make": "cos_zenith"}, {"make": "day_progress"},
                                            {"make": "cos_julian_day"}], "stack": "c"}}}
    x = batch(batchfs, tmp_path, path, view)
    near(x[:, 1], zenith(flat))
    near(x[:, 2], np.repeat(day_progress(flat)[:, None], 2, 1))
    near(x[:, 3], np.broadcast_to(julian_day(flat)[:, None, None], (15, 2, 3)))
    # In the other order of dimensions and of the window.
    path = forecast(tmp_path / "o.zarr", lead=lead, attributes=attributes,
                    order=("lead_time", "lat", "init_time", "lon"))
    x = batch(batchfs, tmp_path, path, view | {"window": {"lead_time": 1, "init_time": 1}})
    near(x[:, 1], zenith(VALID.T.ravel()))


def test_selected_leads_and_starts(batchfs, tmp_path):
    path = forecast(tmp_path / "s.zarr")
    x = batch(batchfs, tmp_path, path,
              made({"init_time": 1}, "t") | {"select": {"lead_time": "12h"}})
    near(x[:, 1], zenith(VALID[:, 3]))
    x = batch(batchfs, tmp_path,
              path, made({"init_time": 1}, "t", dims=["c", "lead_time", "lat", "lon"])
                  | {"select": {"lead_time": ["30h", "-6h"]}})
    near(x[:, 1], zenith(VALID[:, [4, 0]]))
    x = batch(batchfs, tmp_path, path,
              made({"lead_time": 1}, "t") | {"select": {"init_time": "#1"}})
    near(x[:, 1], zenith(VALID[1]))


def test_offsets_in_either_dimension(batchfs, tmp_path):
    path = forecast(tmp_path / "s.zarr")
    window = {"init_time": 1, "lead_time": 1}
    x = batch(batchfs, tmp_path, path, made(window, "t", offsets={"lead_time": [0, 2]},
                                            dims=["c", "lead_time", "lat", "lon"]))
    expected = np.stack([VALID[:, i:i + 3:2] for i in range(3)], 1).reshape(9, 2)
    near(x[:, 1], zenith(expected))
    x = batch(batchfs, tmp_path, path,
              made(window, "t", offsets={"init_time": [1]}, dims=["c", "init_time", "lat", "lon"]))
    near(x[:, 1, 0], zenith(VALID[1:].ravel()))


def test_values_that_have_no_lead(batchfs, tmp_path):
    path = forecast(tmp_path / "s.zarr")
    x = batch(batchfs, tmp_path, path, made({"init_time": 1}, "analysis"))
    near(x[:, 1], zenith(STARTS))
    x = batch(batchfs, tmp_path, path, made({"init_time": 1, "lead_time": 1}, "orography"))
    near(x[:, 1], zenith(VALID.ravel()))
    view = made({"init_time": 1}, "t", dims=["c", "lead_time", "lat", "lon"], lead=False)
    near(batch(batchfs, tmp_path, path, view)[:, 1], np.repeat(zenith(STARTS)[:, None], 5, 1))


@pytest.mark.parametrize("order", [("init_time", "step"), ("step", "init_time")])
def test_leads_without_units_have_valid_times(batchfs, tmp_path, order):
    values = VALID if order[0] == "init_time" else VALID.T
    path = forecast(tmp_path / "s.zarr", ("init_time", "step"), lead=np.arange(5),
                    valid_time=(order, values))
    x = batch(batchfs, tmp_path, path, made({"init_time": 1, "step": 1}, "t"))
    near(x[:, 1], zenith(VALID.ravel()))
    path = forecast(tmp_path / "n.zarr", ("init_time", "step"), lead=np.arange(5),
                    when=(order, values))
    view = made({"init_time": 1, "step": 1}, "t")
    line = refused(batchfs, tmp_path, path, view)
    assert ("the lead times of 'step', which are int64 without units, not lengths of time" in line
            and '"lead": false' in line)
    view["tensors"]["x"]["variables"][1]["time"] = "when"
    near(batch(batchfs, tmp_path, path, view)[:, 1], zenith(VALID.ravel()))


def test_one_forecast(batchfs, tmp_path):
    """Like cfgrib's output: the start is not a dimension."""
    ds = xr.open_zarr(forecast(tmp_path / "s.zarr", ("time", "step"))).isel(time=1).load()
    ds = ds.drop_encoding().assign_coords(valid_time=("step", VALID[1])).drop_vars("analysis")
    ds.to_zarr(tmp_path / "one.zarr", zarr_format=3)
    x = batch(batchfs, tmp_path, tmp_path / "one.zarr", made({"step": 1}, "t"))
    near(x[:, 1], zenith(VALID[1]))


def test_statistics_are_those_of_all_valid_times(batchfs, tmp_path):
    path = forecast(tmp_path / "s.zarr")
    view = made({"init_time": 1, "lead_time": 1}, "t")
    found = json.loads(batchfs.bytes("statistics", path, "--view", view_file(tmp_path, view),
                                     "--json"))
    numbers = found["variables"]["cos_zenith"]
    assert np.isclose(numbers["mean"], zenith(VALID).mean(), atol=2e-3)
    assert np.isclose(numbers["std"], zenith(VALID).std(), atol=2e-3)
