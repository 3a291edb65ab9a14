"""Reference dates and units of times as they are in the wild: what xarray reads has the same
values; what it refuses is shown as numbers with a note, never as other times.
"""

import calendar
import json
import re
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

READ = ["days since 20000101", "days since 2000/01/01", "days since 2000-01", "days since 2000",
        "hours since 1900-01-01T06:00:00.000000", "seconds since 1970-01-01T00:00:00Z",
        "seconds since 1970-01-01 00:00:00 +0000", "seconds since 1981-01-01 00:00:00 UTC",
        "seconds since 1970-01-01 00:00:00.000000000", "days since 2000-1-1 0:0:0",
        "days since 2000-01-01 12", "days since 2000-01-01T12", "seconds  since 1970-01-01",
        " days since 2000-01-01 ", "days since 2000-01-01 00:00:00 -6:00",
        "days since 2000-01-01 00:00:00-06:00", "days since 2000-01-01 00:00:00 +05:30",
        "days since 2000-01-01 00:00:00 GMT", "Days since 2000-01-01", "day since 2000-01-01",
        "d since 2000-01-01", "hrs since 2000-01-01", "mins since 2000-01-01",
        "secs since 2000-01-01", "ms since 2000-01-01", "msecs since 2000-01-01",
        "nanoseconds since 2000-01-01", "days since 2000-01-01T00:00:00.5",
        "days since 2000-01-01 00:00:00.123456789", "hours since 1800-01-01 00:00:0.0",
        "days since 1858-11-17 00:00:00", "days since Jan 1, 2000", "days since 1 January 2000",
        "days since 2-Sept-2000", "days since 2000-Jan-02",
        "hours since 02 jan 2000 06:00:00 +01:00", "days since 2000-01-01 00.00.00",
        "minutes since 2000-01-01 00:00:00.0 00:00"]
REFUSED = ["days since 2000-01-01 24:00:00", "weeks since 2000-01-01", "months since 2000-01-01",
           "days since 2000-13-01", "days since 2000-02-30", "days since 0000-01-01",
           "days since 0-0-0", "days since 1582-10-10", "seconds since beginning of run",
           "days since", "days since 2000-01-01 00:00:60", "days since 2000-001",
           "days since 2000-012"]
OF_ANOTHER_CALENDAR = ["days since 0000-01-01", "days since 1582-10-10"]
# xarray reads a shift of 53 hours, ignores the time zone, takes the month first, ignores the hour,
# takes it for a day, for a month, ignores it, ignores the time zone, takes it for a time of day,
# ignores it, ignores the clock, takes the last clock.
UNCLEAR = ["days since 2000-01-01 00:00:00 +530", "days since 2000-01-01 00:00:00 EST",
           "days since 01/02/2000", "days since 2000-01-01 6", "days since 2000-01 06",
           "days since 2000 06", "days since 2000-01-01 06 utc", "days since 2000-01-01 +5:30",
           "days since 2000-01-01+14:00", "days since 2000-01-01 -6",
           "days since 2000-01-01 06.07.08", "minutes since 2000-01-01 03:00:00.0 00:00",
           "minutes since 2000-01-01 00:00:00 05:00"]
NUMBERS = ["DAYS SINCE 2000-01-01", "days Since 2000-01-01", "day as %Y%m%d.%f", "days", "hours",
           "K days", "month"]


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
    why = ("which datetime64 cannot hold" if units in OF_ANOTHER_CALENDAR
           else "which are not understood")
    entry = next(iter(json.loads(batchfs.bytes("inspect", path, "--json"))["arrays"].values()))
    assert why in entry["decoded"]["note"] and units in entry["decoded"]["note"]
    assert why in batchfs.refusal("cat", path, "t", "--select", "t=2000-01-01")


# ---- random units ----

CLEAR_ZONES = ["", "", "", "Z", " UTC", " GMT", " +00:00", " +05:30", "-06:00", " -6:00", " +0530",
               " -0800", " +05"]
UNCLEAR_ZONES = [" EST", " CET", " PST", " +530", " -330", " 05:00", " 03:00", " 12 PM"]
# xarray reads the other names of a unit with some of the dates only.
UNITS = {"days": ["days", "day", "d", "Days"],
         "hours": ["hours", "hour", "h", "hr", "hrs", "Hours"],
         "minutes": ["minutes", "min", "mins"],
         "seconds": ["seconds", "second", "sec", "secs", "s"],
         "milliseconds": ["milliseconds", "ms", "msecs"], "microseconds": ["microseconds"]}


def random_date(rng):
    year, month, day = int(rng.integers(1700, 2200)), int(rng.integers(1, 13)), int(
        rng.integers(1, 29))
    long, short = calendar.month_name[month], calendar.month_abbr[month]
    named = [f"{short} {day}, {year}", f"{long} {day} {year}", f"{day} {long} {year}",
             f"{day:02d}-{short}-{year}", f"{year}-{short.lower()}-{day:02d}",
             f"{year} {long.upper()} {day}", f"{day} {short}, {year}"]
    plain = [f"{year}-{month:02d}-{day:02d}", f"{year}-{month}-{day}",
             f"{year}/{month:02d}/{day:02d}", f"{year}{month:02d}{day:02d}", f"{year}-{month:02d}",
             f"{year}"]
    return str(rng.choice(named if rng.random() < 0.4 else plain))


def random_clock(rng, date):
    hour, minute, second = int(rng.integers(24)), int(rng.integers(60)), int(rng.integers(60))
    zeros = ["00.00.00", "0.0.0", "00:00:00 00:00", "0:0:0.0 0:0", "00:00:00 0000",
             "00.00.00 00:00"]
    return str(rng.choice([f"{hour:02d}:{minute:02d}:{second:02d}", f"{hour}:{minute}:{second}",
                           f"{hour:02d}:{minute:02d}",
                           f"{hour:02d}:{minute:02d}:{second:02d}.{rng.integers(1000)}",
                           *(zeros if re.fullmatch(r"\d+-\d+-\d+", date) else [])]))


def random_units(rng):
    """Random units, the same with the unit's full name, and whether all readers agree on their
    meaning."""
    unit, date = str(rng.choice(list(UNITS))), random_date(rng)
    kind, clock = rng.integers(5), random_clock(rng, date)
    if kind == 0:
        moment = date
    elif kind == 4:
        moment = f"{date} {rng.choice(['12:00:00', '06:30'])}{rng.choice(UNCLEAR_ZONES)}"
    else:
        moment = f"{date} {clock}{rng.choice(CLEAR_ZONES) if set(clock) - set('0:. ') else ''}"
    return f"{rng.choice(UNITS[unit])} since {moment}", f"{unit} since {moment}", kind != 4


@pytest.mark.parametrize("seed", range(6))
def test_random_units(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "s.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    cases = {}
    for number in range(60):
        units, full_units, is_clear = random_units(rng)
        values = rng.integers(-5000, 5000, 4) * (0.25 if number % 3 == 0 else 1)
        name, known = f"t{number}", str(rng.choice(["", "standard", "gregorian",
                                                    "proleptic_gregorian", "noleap"]))
        array = group.create_array(name, shape=(4,), dtype="f8" if number % 3 == 0 else "i8",
                                   chunks=(2,), fill_value=None)
        array[...] = values
        array.attrs.update({"units": units, "_ARRAY_DIMENSIONS": [name]}
                           | ({"calendar": known} if known else {}))
        cases[name] = units, full_units, known, is_clear, values
    notes = json.loads(batchfs.bytes("inspect", path, "--json"))["arrays"]
    for name, (units, full_units, known, is_clear, values) in cases.items():
        times = xr.Dataset({name: ((name,), values,
                                   {"units": full_units} | ({"calendar": known} if known else {}))})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = xr.decode_cf(times)[name].values
        except ValueError:
            expected = None
        ours = batchfs.npy("cat", path, name)
        if is_clear and expected is not None and expected.dtype.kind == "M":
            assert ours.dtype == expected.dtype and np.array_equal(ours, expected), (units, known)
        else:
            assert ours.tolist() == values.tolist(), (units, known)
            assert units in notes[name]["decoded"]["note"], (units, known)


# ---- times of day and time zones in all combinations ----

DATES = ["2000-01-02", "2000-1-2", "2000/01/02", "20000102", "2 January 2000", "Jan 2, 2000",
         "2000-01", "2000"]
CLOCKS = ["", "T03", " 03", " 3", "T3", " 03:00", " 3:05", " 03:00:00", "T03:00:00", " 03:00:00.5",
          " 0", " 00", " 00.00.00", " 0000"]
ZONES = ["", "Z", " z", " UTC", "GMT", " utc", "gmt", "+00:00", " +0", "+05:30", " +05:30",
         " -6:00", "-06:00", " +0530", "-0800", " +05", " -6", "-6", " +5:30", " +14:00", " -23:59",
         " +24:00", " EST", " 00:00"]


@pytest.mark.parametrize("calendar", ["", "standard", "proleptic_gregorian", "noleap"])
@pytest.mark.parametrize("seed", range(2))
def test_times_are_those_of_xarray_or_numbers(batchfs, tmp_path, seed, calendar):
    rng = np.random.default_rng(seed)
    chosen = rng.permutation([f"minutes since {date}{clock}{zone}" for date in DATES
                              for clock in CLOCKS for zone in ZONES])[:40]
    path = tmp_path / "s.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    known = {"calendar": calendar} if calendar else {}
    for number, units in enumerate(chosen):
        array = group.create_array(f"t{number}", shape=(2,), dtype="i8", chunks=(2,),
                                   fill_value=None)
        array[...] = [0, 100]
        array.attrs.update({"units": str(units), "_ARRAY_DIMENSIONS": [f"t{number}"]} | known)
    notes = json.loads(batchfs.bytes("inspect", path, "--json"))["arrays"]
    for number, units in enumerate(chosen):
        ours = batchfs.npy("cat", path, f"t{number}")
        if ours.dtype.kind != "M":
            assert (ours.tolist() == [0, 100]
                    and str(units) in notes[f"t{number}"]["decoded"]["note"])
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = xr.decode_cf(
                xr.Dataset({"t": (("t",), [0, 100], {"units": str(units)} | known)})).t.values
        assert ours.dtype == expected.dtype and np.array_equal(ours, expected), units
