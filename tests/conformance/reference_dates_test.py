"""Reference dates and units of times as they are in the wild: what xarray reads has the same values; what it refuses is shown as
numbers with a note, never as other times.
"""

import json
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

READ = ["days since 20000101", "days since 2000/01/01", "days since 2000-01", "days since 2000", "hours since 1900-01-01T06:00:00.000000",
        "seconds since 1970-01-01T00:00:00Z", "seconds since 1970-01-01 00:00:00 +0000", "seconds since 1981-01-01 00:00:00 UTC",
        "seconds since 1970-01-01 00:00:00.000000000", "days since 2000-1-1 0:0:0", "days since 2000-01-01 12",
        "days since 2000-01-01T12", "seconds  since 1970-01-01", " days since 2000-01-01 ", "days since 2000-01-01 00:00:00 -6:00",
        "days since 2000-01-01 00:00:00-06:00", "days since 2000-01-01 00:00:00 +05:30", "days since 2000-01-01 00:00:00 GMT",
        "Days since 2000-01-01", "day since 2000-01-01", "d since 2000-01-01", "hrs since 2000-01-01", "mins since 2000-01-01",
        "secs since 2000-01-01", "ms since 2000-01-01", "msecs since 2000-01-01", "nanoseconds since 2000-01-01",
        "days since 2000-01-01T00:00:00.5", "days since 2000-01-01 00:00:00.123456789", "hours since 1800-01-01 00:00:0.0",
        "days since 1858-11-17 00:00:00"]
REFUSED = ["days since 2000-01-01 24:00:00", "weeks since 2000-01-01", "months since 2000-01-01", "days since 2000-13-01",
           "days since 2000-02-30", "days since 0000-01-01", "days since 0-0-0", "days since 1582-10-10",
           "seconds since beginning of run", "days since", "days since 2000-01-01 00:00:60", "days since 2000-001",
           "days since 2000-012"]
OF_ANOTHER_CALENDAR = ["days since 0000-01-01", "days since 1582-10-10"]
UNCLEAR = ["days since 2000-01-01 00:00:00 +530", "days since 2000-01-01 00:00:00 EST", "days since 01/02/2000"]
NUMBERS = ["DAYS SINCE 2000-01-01", "days Since 2000-01-01", "day as %Y%m%d.%f", "days", "hours", "K days", "month"]


def store(path, units):
    group = zarr.open_group(path, mode="w", zarr_format=2)
    array = group.create_array("t", shape=(4,), dtype="i8", chunks=(2,), fill_value=None)
    array[...] = np.arange(4) * 3
    array.attrs.update({"units": units, "_ARRAY_DIMENSIONS": ["t"]})
    return path


def theirs(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_zarr(path, consolidated=False, chunks=None).t.values


@pytest.mark.parametrize("units", READ + NUMBERS)
def test_what_xarray_reads(batchfs, tmp_path, units):
    path = store(tmp_path / "s.zarr", units)
    ours, expected = batchfs.npy("cat", path, "t"), theirs(path)
    assert ours.dtype == expected.dtype and np.array_equal(ours, expected)


@pytest.mark.parametrize("units", REFUSED + UNCLEAR)
def test_what_is_not_understood_has_a_note(batchfs, tmp_path, units):
    path = store(tmp_path / "s.zarr", units)
    if units in REFUSED:
        with pytest.raises(ValueError):
            theirs(path)
    assert batchfs.npy("cat", path, "t").tolist() == [0, 3, 6, 9]
    why = "which datetime64 cannot hold" if units in OF_ANOTHER_CALENDAR else "which are not understood"
    entry = next(iter(json.loads(batchfs.bytes("inspect", path, "--json"))["arrays"].values()))
    assert why in entry["decoded"]["note"] and units in entry["decoded"]["note"]
    assert why in batchfs.refusal("cat", path, "t", "--select", "t=2000-01-01")
