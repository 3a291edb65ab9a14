"""Times as xarray decodes them where it leaves them to cftime: reference dates from the year 1 to
9999, and short names of units.

Each seed is one store of arrays with random units, reference dates, types and numbers.
BATCHFS_TIME_SEEDS=100:200 asks others.
"""

import os
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

warnings.filterwarnings("ignore")
FIRST, LAST = map(int, os.environ.get("BATCHFS_TIME_SEEDS", "0:4").split(":"))
SECONDS = {"days": 86400, "Day": 86400, "hours": 3600, "minutes": 60, "seconds": 1,
           "milliseconds": 1e-3, "microseconds": 1e-6, "d": 86400, "hr": 3600, "h": 3600, "min": 60,
           "sec": 1, "s": 1, "msec": 1e-3}
ARRAYS = 40


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def numbers(rng, unit, target):
    """Floats near `target` seconds: whole ones, fractions, and next to whole seconds."""
    exact = (target + np.cumsum(rng.uniform(1, 1e5, 16))) / SECONDS[unit]
    kind = pick(rng, "any", "whole", "short", "seconds")
    if kind == "whole":
        exact = np.round(exact)
    elif kind == "short":
        exact = np.round(exact, int(rng.integers(1, 7)))
    elif kind == "seconds":
        exact = np.round(exact * SECONDS[unit]) / SECONDS[unit]
    return exact.astype(pick(rng, "f4", "f8", "f8"))


def write(rng, path):
    root = zarr.open_group(path, mode="w", zarr_format=2)
    for number in range(ARRAYS):
        unit = pick(rng, *SECONDS)
        year = int(pick(rng, 1, 1500, 1600, 1677, 1800, 1970, 2262, 2300, 9990,
                        rng.integers(1, 9999)))
        start = (f"{year:04}-{rng.integers(1, 13):02}-{rng.integers(1, 28):02}"
                 + pick(rng, "", " 12:30:00", " 00:00:00.5"))
        to = int(pick(rng, rng.integers(1700, 2250), rng.integers(1, 9990)))
        values = numbers(rng, unit, (to - year) * 31556952.0)
        dim = f"t{number}"
        array = root.create_array(dim, data=values, chunks=(16,))
        array.attrs.update({"units": f"{unit} since {start}",
                            "calendar": pick(rng, "standard", "proleptic_gregorian"),
                            "_ARRAY_DIMENSIONS": [dim]})


def differs_by_selection(array):
    """xarray leaves all values that it decodes together to cftime where one lies 2^63 nanoseconds
    from the reference date."""
    step = round(SECONDS[array.attrs["units"].split()[0]] * 1e9)
    return len({abs(int(number)) * step < 2**63 for number in array[:]}) > 1


def label(moment):
    """A date of cftime as batchfs takes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{moment.microsecond:06}"


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_far_times(batchfs, tmp_path, seed):
    rng = np.random.default_rng(7000 + seed)
    path = tmp_path / "s.zarr"
    write(rng, path)
    counted = {"datetime64": 0, "cftime": 0}
    for number in range(ARRAYS):
        name = f"t{number}"
        raw = zarr.open_array(path / name)
        if differs_by_selection(raw):
            continue
        about = (name, dict(raw.attrs), raw.dtype)
        others = {f"t{other}" for other in range(ARRAYS)} - {name}
        try:
            wanted = xr.open_zarr(path, consolidated=False, drop_variables=others)[name].values
        except (ValueError, OverflowError):  # xarray has no dates for these numbers
            continue
        if wanted.dtype.kind == "M":
            counted["datetime64"] += 1
            got = batchfs.npy("cat", path, name)
            assert got.dtype.kind == "M", about
            assert np.array_equal(got, wanted), (*about, (got - wanted).astype("i8"))
        elif (np.diff(raw[:]) > 0).all():
            counted["cftime"] += 1
            for i in (0, -1):
                got = batchfs.npy("cat", path, name, "--select", f"{name}={label(wanted[i])}")
                assert got.ravel().tolist() == [raw[i]], (*about, wanted[i])
    assert min(counted.values()) > 3
