"""Dates are selected in every calendar of CF as xarray selects them with cftime: random axes,
partial dates, ranges, fields.

Each seed is one store and a number of questions. BATCHFS_SELECTION_SEEDS=100:200 asks others than
the usual ones.
"""

import datetime
import json
import os
import warnings

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

warnings.filterwarnings("ignore")
FIRST, LAST = map(int, os.environ.get("BATCHFS_SELECTION_SEEDS", "0:3").split(":"))
CALENDARS = ["noleap", "all_leap", "360_day", "julian", "standard", "proleptic_gregorian"]
FIELDS = ["year", "month", "day", "hour", "minute", "weekday", "dayofyear", "season"]
SEASONS = ["DJF", "MAM", "JJA", "SON"]


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def make_store(rng, path, calendar):
    """Times from hours to months apart, ascending or descending, whole or halves; near or, where
    datetime64 has the calendar, sometimes beyond it."""
    n = int(rng.integers(20, 60))
    step, unit = pick(rng, (6, "hours"), (1, "days"), (0.5, "days"), (30, "days"), (90, "minutes"),
                      (365, "days"))
    year = (int(pick(rng, 1850, 1999, 2300, 1400))
            if calendar in ("standard", "proleptic_gregorian") else int(rng.integers(1, 2400)))
    units = f"{unit} since {year:04}-{rng.integers(1, 13):02}-{rng.integers(1, 28):02}"
    counts = (int(rng.integers(0, 40))
              + step * np.arange(n)) * 1.0 + pick(rng, 0, 0.5) * (unit == "days")
    if rng.random() < 0.5 and (counts % 1 == 0).all():
        counts = counts.astype(pick(rng, "i4", "i8", "f8"))
    counts = counts[:: pick(rng, 1, 1, -1)]
    root = zarr.open_group(path, mode="w", zarr_format=2)
    for name, values, attributes in (("time", counts, {"units": units, "calendar": calendar}),
                                     ("v", np.arange(n), {})):
        array = root.create_array(name, data=values, chunks=(7,))
        array.attrs.update({**attributes, "_ARRAY_DIMENSIONS": ["time"]})
    return xr.open_zarr(path, consolidated=False)


def moments(dataset):
    """The times as cftime has them, and as texts that sort as they do."""
    times = dataset.time.values
    if times.dtype != object:
        times = xr.CFTimeIndex(cftime.num2date(times.astype("M8[us]").astype("i8"),
                                               "microseconds since 1970-01-01",
                                               "proleptic_gregorian")).values
    return times


def text(moment, level=6):
    return ("-".join(["%04d" % moment.year, "%02d" % moment.month, "%02d" % moment.day][:level])
            + ("T" + ":".join(["%02d" % moment.hour, "%02d" % moment.minute,
                               "%02d" % moment.second][:level - 3]) if level > 3 else ""))


def whole(texts, index, prefix):
    return [i for i in index if texts[i].startswith(prefix)]


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_dates_in_every_calendar(batchfs, tmp_path, seed, calendar):
    rng = np.random.default_rng(3000 + seed)
    dataset = make_store(rng, tmp_path / "s.zarr", calendar)
    times = moments(dataset)
    index = dataset.indexes["time"]
    ascending = index.is_monotonic_increasing
    for _ in range(12):
        a, b = sorted(rng.integers(0, len(times), 2), key=lambda i: text(times[i]))
        ask = pick(rng, "partial", "range", "field", "open")
        if ask == "field":
            field = pick(rng, *FIELDS)
            values = (dataset.time.dt.season.values if field == "season"
                      else getattr(dataset.time.dt, field).values)
            wanted = sorted({*values[rng.integers(0, len(values), 2)].tolist()})
            expected = dataset.v.values[np.isin(values, wanted)]
            typed, written = f"time.{field}={','.join(map(str, wanted))}", {field: wanted}
        else:
            level = int(rng.integers(1, 7))
            low, high = text(times[a], level), text(times[b], level)
            if ask == "partial":
                level = int(rng.integers(1, 3))  # below the resolution of every axis here
                low = text(times[a], level)
                expected = dataset.v.sel(time=low).values
                typed, written = f"time={low}", low
            elif ask == "open":
                expected = dataset.v.sel(time=slice(low, None) if ascending
                                             else slice(None, low)).values
                typed = f"time={low}:" if ascending else f"time=:{low}"
                written = {"from" if ascending else "to": low}
            else:
                ends = slice(low, high) if ascending else slice(high, low)
                expected = dataset.v.sel(time=ends).values
                typed, written = f"time={low}:{high}", {"from": low, "to": high}
        ours = batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select", typed)
        np.testing.assert_array_equal(ours, expected, err_msg=f"{typed} of {index}")
        if rng.random() < 0.3:
            (tmp_path / "v.json").write_text(json.dumps({"variables": ["v"],
                                                         "select": {"time": written},
                                                         "window": {"time": len(expected)}}))
            arguments = (tmp_path / "s.zarr", "--view", tmp_path / "v.json")
            np.testing.assert_array_equal(batchfs.npy("batch", *arguments).ravel(), expected)
            assert json.loads(batchfs.bytes("plan", *arguments, "--json"))["samples"] == 1


@pytest.mark.parametrize("calendar", CALENDARS)
def test_a_whole_date_is_one_label(batchfs, tmp_path, calendar):
    times = xr.date_range("2000-02-27", periods=8, freq="6h", calendar=calendar, use_cftime=True)
    xr.Dataset({"v": ("time", np.arange(8))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", zarr_format=2)
    opened = xr.open_zarr(tmp_path / "s.zarr",
                          decode_times=xr.coders.CFDatetimeCoder(use_cftime=True))
    moment = times[5]
    expected = opened.v.sel(time=moment).values
    ours = batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select", f"time={text(moment)}")
    assert expected.shape == ours.shape == () and ours == expected
    line = batchfs.refusal("cat", tmp_path / "s.zarr", "v", "--select", "time=2000-02-27T07:00:00")
    assert "the nearest is 2000-02-27T06:00:00" in line and "goes from 2000-02-27T00:00:00" in line


def test_dates_that_a_calendar_has_not(batchfs, tmp_path):
    for calendar, there, absent in (("360_day", "2000-02-30", "2000-01-31"),
                                    ("noleap", "2000-02-28", "2000-02-29"),
                                    ("all_leap", "2001-02-29", "2001-02-30")):
        path = tmp_path / f"{calendar}.zarr"
        times = xr.date_range("2000-01-01", periods=800, freq="D", calendar=calendar,
                              use_cftime=True)
        dataset = xr.Dataset({"v": ("time", np.arange(800))}, {"time": times})
        dataset.to_zarr(path, zarr_format=2)
        expected = dataset.v.sel(time=there).values.ravel()
        assert batchfs.npy("cat", path, "v", "--select",
                           f"time={there}").ravel().tolist() == expected.tolist()
        line = batchfs.refusal("cat", path, "v", "--select", f"time={absent}")
        assert f"'{absent}' is not a date of the calendar {calendar}" in line
    assert pd.Timestamp("2000-02-29")  # which datetime64 has


STEPS = [("6h", {"hours": 6}), ("1D", {"days": 1}), ("5D", {"days": 5}), ("1mo", None)]


def steps_of(calendar, year, freq, count):
    times = xr.date_range(f"{year:04}-01-01", periods=count, freq={"1mo": "MS"}.get(freq, freq),
                          calendar=calendar, use_cftime=True)
    return np.array(list(times))


@pytest.mark.parametrize("freq, step", STEPS)
@pytest.mark.parametrize("calendar, year",
                         [("noleap", 2000), ("all_leap", 1999), ("360_day", 1850), ("julian", 2000),
                          ("standard", 850), ("proleptic_gregorian", 2400)])
def test_steps_in_every_calendar(batchfs, tmp_path, calendar, year, freq, step):
    """Samples keep to the spacing, and offsets find their labels, as cftime adds lengths of
    time."""
    every = steps_of(calendar, year, freq, 90)
    times = np.delete(every, [20, 21, 55])
    xr.Dataset({"v": ("time", np.arange(len(times)))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", zarr_format=2)
    place = {time: i for i, time in enumerate(every)}
    positions = [place[time] for time in times]
    arguments = (tmp_path / "s.zarr", "--view", tmp_path / "v.json")

    def starts(view):
        (tmp_path / "v.json").write_text(json.dumps({"batch": 1000, "order": {"shuffle": "none"}}
                                                    | view))
        return [start for start, in json.loads(batchfs.bytes("batch", *arguments, "--format",
                                                             "json"))["starts"]]

    window = {"time": {"size": 3, "stride": 1}}
    even = [i for i in range(len(times) - 2) if positions[i + 2] - positions[i] == 2]
    assert starts({"window": window, "samples": {"spacing": {"time": freq}}}) == even
    assert any("2 gaps" in line for line in json.loads(
        batchfs.bytes("plan", *arguments, "--json"))["warnings"]) is False
    assert starts({"window": window}) == list(range(len(times) - 2))
    assert any("2 gaps" in line and f'"{freq.lower()}"' in line
               for line in json.loads(batchfs.bytes("plan", *arguments, "--json"))["warnings"])
    later = {"6h": "12h", "1D": "2d", "5D": "10d", "1mo": "2mo"}[freq]
    tensors = {"x": {"variables": ["v"], "offsets": {"time": ["0h", later]}}}
    found = starts({"window": {"time": {"size": 1, "stride": 1}}, "tensors": tensors})
    assert found == [i for i, at in enumerate(positions) if at + 2 in positions]
    values = batchfs.npy("batch", *arguments, "--tensor", "x").reshape(-1, 2)
    assert values.tolist() == [[i, positions.index(positions[i] + 2)] for i in found]
    if step:
        assert all(times[b] - times[a] == 2 * datetime.timedelta(**step)
                   for a, b in values.astype(int))
    regular = tmp_path / "regular.zarr"
    xr.Dataset({"v": ("time", np.arange(90.0))}, {"time": every}).to_zarr(regular, zarr_format=2)
    starter = json.loads(batchfs.bytes("view", regular))
    assert starter["samples"]["spacing"]["time"] == freq.lower()
    (tmp_path / "v.json").write_text(json.dumps(starter))
    assert json.loads(batchfs.bytes("plan", regular, "--view", tmp_path / "v.json",
                                    "--json"))["samples"] == 90
