"""Times and lengths of time that are stored as numbers of any type, against xarray: every value
alone, and all together where that gives xarray's numbers of each."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 1e-3,
           "microseconds": 1e-6, "nanoseconds": 1e-9}
TYPES = ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def numbers(rng, units, dtype, lowest):
    """Numbers of a unit for lengths of time that people use, random ones, and fractions that have
    no end."""
    seconds = np.concatenate([np.arange(0, 150 * 60, 60), rng.integers(0, 90 * 86400, 40),
                              rng.uniform(0, 9e6, 20)])
    seconds = np.concatenate([seconds, -seconds[::3]]) if lowest < 0 else seconds
    counts = seconds / SECONDS[units]
    if np.dtype(dtype).kind != "f":
        counts = np.rint(counts)
        counts = counts[(counts >= np.iinfo(dtype).min) & (counts <= np.iinfo(dtype).max)]
    else:
        counts = counts[np.abs(counts) < np.finfo(dtype).max]
    return counts.astype(dtype)


def decoded(values, attributes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A copy: xarray multiplies numbers of seconds and less in place.
        return xr.decode_cf(xr.Dataset({"v": ("x", values.copy(), attributes)})).v.values


def stored(folder, values, attributes, version):
    group = zarr.open_group(folder / "s.zarr", mode="w", zarr_format=version)
    group.create_array("v", data=values, attributes=attributes
                           | ({"_ARRAY_DIMENSIONS": ["x"]} if version == 2 else {}),
                       fill_value=None if version == 2 else 0,
                       **({} if version == 2 else {"dimension_names": ["x"]}))
    return folder / "s.zarr"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("units", SECONDS)
def test_lengths_of_time(batchfs, tmp_path, units, dtype):
    rng = np.random.default_rng(len(units) + TYPES.index(dtype))
    values = numbers(rng, units, dtype, -1)
    attributes = {"units": units, "dtype": "timedelta64[ns]"}
    ours = batchfs.npy("cat", stored(tmp_path, values, attributes, 3 if dtype[0] == "f" else 2),
                       "v")
    assert ours.dtype == "m8[ns]"
    if dtype[0] == "f":
        # Numbers of half precision overflow in xarray's steps.
        single = values.astype("f8") if dtype == "f2" else values
        alone = np.array([decoded(single[i:i + 1], attributes).astype("m8[ns]")[0]
                          for i in range(len(values))])
        np.testing.assert_array_equal(ours, alone)
    if dtype not in ("f2", "f4"):
        np.testing.assert_array_equal(ours, decoded(values, attributes))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("step, units", [(600, "hours"), (300, "hours"), (60, "minutes"),
                                         (1, "minutes"), (1200, "days")])
def test_labels_that_xarray_wrote(batchfs, tmp_path, step, units, unit):
    times = (np.arange(1000) * step).astype("m8[s]").astype(f"m8[{unit}]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"v": ("x", times)}).to_zarr(
            tmp_path / "s.zarr", encoding={"v": {"units": units, "dtype": "float64"}})
    ours = batchfs.npy("cat", tmp_path / "s.zarr", "v")
    assert ours.dtype == times.dtype
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = xr.open_zarr(tmp_path / "s.zarr").v.values
    # Coarser units: xarray's type depends on the values; the nearest count is the time that was
    # written.
    np.testing.assert_array_equal(ours, theirs if unit == "ns" else times)


@pytest.mark.parametrize("packing",
                         [{"scale_factor": 1 / 6}, {"scale_factor": 1 / 3, "add_offset": 0.1},
                          {"_FillValue": 7.0}])
def test_packed_lengths_of_time(batchfs, tmp_path, packing):
    values = np.arange(500).astype("i2" if "scale_factor" in packing else "f8")
    attributes = {"units": "hours", "dtype": "timedelta64[ns]"} | packing
    ours = batchfs.npy("cat", stored(
        tmp_path, values, {k: v for k, v in attributes.items() if k != "_FillValue"}
        | ({"_FillValue": "AAAAAAAAHEA="} if "_FillValue" in packing else {}), 3), "v")
    np.testing.assert_array_equal(ours, decoded(values, attributes))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("units", SECONDS)
def test_dates(batchfs, tmp_path, units, dtype):
    rng = np.random.default_rng(100 + len(units) + TYPES.index(dtype))
    values = numbers(rng, units, dtype, -1)
    attributes = {"units": f"{units} since 2000-02-28T00:00:00", "calendar": "standard"}
    ours = batchfs.npy("cat", stored(tmp_path, values, attributes, 3), "v")
    np.testing.assert_array_equal(ours, decoded(values, attributes).astype("M8[ns]"))


def test_labels_are_found(batchfs, tmp_path):
    lead = (np.arange(60) * 10).astype("m8[m]").astype("m8[ns]")
    xr.Dataset({"a": (("lead_time", "x"), np.arange(180.).reshape(60, 3))},
               {"lead_time": lead}).to_zarr(
        tmp_path / "s.zarr", encoding={"lead_time": {"units": "hours", "dtype": "float64"}})
    labels = set(xr.open_zarr(tmp_path / "s.zarr").lead_time.values.tolist())
    minutes_there = [minutes for minutes in range(0, 600, 10) if minutes * 60_000_000_000 in labels]
    assert {10, 290, 590} <= set(minutes_there)  # xarray, too, has some a nanosecond off
    for minutes in minutes_there:
        (tmp_path / "view.json").write_text(json.dumps({"window": {"lead_time": 1},
                                                        "variables": ["a"],
                                                        "select": {"lead_time": [f"{minutes}m"]}}))
        batch = batchfs.npy("batch", tmp_path / "s.zarr", "--view", tmp_path / "view.json")
        np.testing.assert_array_equal(batch[0, 0], np.arange(3) + minutes / 10 * 3)
