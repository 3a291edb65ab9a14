""""every" of a window: starts at labels that are a multiple of a length of time, against pandas,
cftime and xarray on stores with gaps."""

import json

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr


def write(path, times, units=None, calendar=None, chunks=7, name="v", zarr_format=2):
    ds = xr.Dataset({name: (("time", "x"),
                            np.arange(len(times) * 3, dtype="f4").reshape(len(times), 3))},
                    {"time": times})
    time = {key: value for key, value in (("units", units), ("calendar", calendar))
            if value} | ({"dtype": "i8"} if units else {})
    ds.to_zarr(path, zarr_format=zarr_format,
               encoding={name: {"chunks": (chunks, 3)}, "time": time}, consolidated=False)
    return ds


class Store:
    def __init__(self, batchfs, folder, more=()):
        self.batchfs, self.folder, self.more = batchfs, folder, more

    def words(self, view):
        (self.folder / "v.json").write_text(json.dumps({"batch": 4096} | view))
        return [self.folder / "s.zarr", "--view", self.folder / "v.json", *self.more]

    def batch(self, view, *more):
        return json.loads(self.batchfs.bytes("batch", *self.words(view), "--format", "json", *more))

    def starts(self, view, *more):
        return [window["time"][0] for window in self.batch(view, *more)["windows"]]

    def refusal(self, view):
        return self.batchfs.refusal("plan", *self.words(view))


@pytest.fixture
def store(batchfs, tmp_path):
    return Store(batchfs, tmp_path)


def window(every="6h", size=1, **more):
    return {"window": {"time": {"size": size, "every": every} | more}}


def with_gaps(rng, start, periods, freq, share=.2):
    times = pd.date_range(start, periods=periods, freq=freq)
    return times[np.sort(rng.permutation(periods)[:int(periods * (1 - share))])]


UNITS = {"hours since 2000-01-01": "2000-01-01", "minutes since 1999-12-31T03:00": "1999-12-31T03",
         "seconds since 1970-01-01": "1970-01-01", "hours since 2000-01-01T01:00": "2000-01-01T01"}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("every", ["6h", "1d", "90min", "7h", "2w"])
def test_starts_are_multiples_from_the_date_of_the_units(store, units, every):
    rng = np.random.default_rng(len(units) + len(every))
    times = with_gaps(rng, "2000-01-03", 900, "30min")
    write(store.folder / "s.zarr", times, units)
    step = pd.Timedelta(every.replace("w", "W"))
    multiples = [i for i, t in enumerate(times)
                 if (t - pd.Timestamp(UNITS[units])) % step == pd.Timedelta(0)]
    if not multiples:
        assert (f"lies a multiple of {'14d' if every == '2w' else every} after "
                f"{pd.Timestamp(UNITS[units]).isoformat()}" in store.refusal(window(every)))
        return
    for size in 1, 5:
        fitting = [i for i in multiples if i + size <= len(times)]
        assert store.starts(window(every, size)) == fitting
        batch = store.batch(window(every, size))
        assert batch["coordinates"]["time"] == [str(times[i].isoformat()) for i in fitting]


@pytest.mark.parametrize("origin", ["first", "2000-01-05T02:30", "2030", "1850-03"])
def test_an_origin_replaces_the_date_of_the_units(store, origin):
    times = with_gaps(np.random.default_rng(3), "2000-01-03T00:30", 600, "30min")
    write(store.folder / "s.zarr", times, "minutes since 1900-01-01")
    since = times[0] if origin == "first" else pd.Timestamp(origin)
    expected = [i for i, t in enumerate(times)
                if (t - since) % pd.Timedelta("6h") == pd.Timedelta(0)]
    assert expected and store.starts(window(origin=origin)) == expected
    # "first" is that of the selection.
    view = window(origin="first") | {"select": {"time": {"from": "#11"}}}
    left = times[11:]
    assert store.starts(view) == [11 + i for i, t in enumerate(left)
                                  if (t - left[0]) % pd.Timedelta("6h") == pd.Timedelta(0)]


def test_times_stored_as_datetime64_count_from_1970(store):
    import zarr
    times = with_gaps(np.random.default_rng(5), "1969-12-30T05", 200, "h")
    write(store.folder / "s.zarr", times)
    group = zarr.open_group(store.folder / "s.zarr")
    del group["time"]
    array = group.create_array("time", shape=len(times), dtype="M8[s]", chunks=(50,))
    array[:] = times.values.astype("M8[s]")
    array.attrs["_ARRAY_DIMENSIONS"] = ["time"]
    expected = [i for i, t in enumerate(times) if t.value // 10**9 % (5 * 3600) == 0]
    assert store.starts(window("5h")) == expected


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap", "julian", "standard"])
def test_calendars_of_cf(store, calendar):
    rng = np.random.default_rng(7)
    whole = xr.date_range("2000-02-20T00", periods=400, freq="3h", calendar=calendar,
                          use_cftime=True)
    times = whole[np.sort(rng.permutation(400)[:330])]
    write(store.folder / "s.zarr", times, "hours since 1850-01-01T03:00", calendar)
    epoch = cftime.datetime(1850, 1, 1, 3, calendar=calendar)
    for every, hours in ("9h", 9), ("2d", 48):
        seconds = [(t - epoch).total_seconds() for t in times]
        expected = [i for i, s in enumerate(seconds) if s % (hours * 3600) == 0]
        assert store.starts(window(every)) == expected
    february = "2000-02-30" if calendar == "360_day" else "2000-02-28"
    origin = cftime.datetime(2000, 2, int(february[-2:]), calendar=calendar)
    assert store.starts(window("1d", origin=february)) == [
        i for i, t in enumerate(times) if (t - origin).total_seconds() % 86400 == 0]


@pytest.mark.parametrize("every", [1, 3, 12])
def test_months_and_years(store, every):
    times = pd.date_range("1999-11-15", "2004-03-01", freq="D")
    times = times.delete(np.random.default_rng(1).permutation(len(times))[:300])
    write(store.folder / "s.zarr", times, "days since 1900-01-01")
    text = f"{every}mo" if every < 12 else "1y"
    dates = {pd.Timestamp("1900-01-01") + pd.DateOffset(months=every * k) for k in range(1300)}
    assert store.starts(window(text)) == [i for i, t in enumerate(times) if t in dates]
    dates = {pd.Timestamp("2001-01-31") + pd.DateOffset(months=every * k) for k in range(-40, 60)}
    assert store.starts(window(text, origin="2001-01-31")) == [
        i for i, t in enumerate(times) if t in dates]


@pytest.mark.parametrize("seed", range(12))
def test_with_spacing_where_offsets_and_edges(store, seed):
    rng = np.random.default_rng(seed)
    times = with_gaps(rng, "2000-01-03", 500, "h", .05)
    if seed % 4 == 3:
        times = times[::-1]
    write(store.folder / "s.zarr", times, "hours since 2000-01-01", chunks=int(rng.integers(1, 40)))
    every, size, hour = int(rng.integers(2, 9)), int(rng.integers(1, 5)), pd.Timedelta("1h")
    step = hour if seed % 4 != 3 else -hour
    low, high = (int(rng.integers(-3, 1)), int(rng.integers(0, 4))) if seed % 2 else (0, 0)
    hours = sorted(rng.permutation(24)[:9].tolist())
    view = window(f"{every}h", size) | {
        "samples": {"spacing": {"time": "1h" if step > pd.Timedelta(0) else "-1h"},
                    "where": {"time": {"hour": hours}}},
        "tensors": {"x": {"variables": ["v"], "offsets": {"time": [low, high]}}}, "order": {
            "shuffle": "block", "seed": 5}}
    expected = []
    for i, t in enumerate(times):
        begin, end = i + low, i + high + size
        if ((t - pd.Timestamp("2000-01-01")) % (every * hour) or begin < 0 or end > len(times)
                or t.hour not in hours):
            continue
        if all(times[k + 1] - times[k] == step for k in range(begin, end - 1)):
            expected.append(i)
    if not expected:
        assert "no sample is left" in store.refusal(view)
        return
    plan = json.loads(store.batchfs.bytes("plan", *store.words(view), "--json"))
    assert plan["samples"] == len(expected)
    multiples = [i for i, t in enumerate(times)
                 if (t - pd.Timestamp("2000-01-01")) % (every * hour) == pd.Timedelta(0)]
    assert plan["windows"] == sum(i + low >= 0 and i + high + size <= len(times) for i in multiples)
    assert sorted(store.starts(view)) == expected
    # A window over the edge: the first multiple after the last whole window, unless that ends with
    # the selection.
    whole = [i for i in multiples if i + size <= len(times)]
    over = [i for i in multiples
            if i + size > len(times)][:1] if whole[-1] + size < len(times) else []
    assert store.starts(window(f"{every}h", size, edge="pad")) == whole + over


def test_offsets_by_label_and_values(store):
    times = with_gaps(np.random.default_rng(2), "2000-01-03", 400, "h")
    ds = write(store.folder / "s.zarr", times, "hours since 2000-01-01")
    view = window("6h") | {"tensors": {"x": {"variables": ["v"],
                                             "offsets": {"time": ["-6h", "0h", "1h"]}}}}
    expected = [i for i, t in enumerate(times)
                if t.hour % 6 == 0 and all(t + pd.Timedelta(f"{h}h") in times for h in (-6, 1))]
    assert store.starts(view) == expected
    x = store.batchfs.npy("batch", *store.words(view), "--tensor", "x")
    for row, i in enumerate(expected):
        wanted = ds.v.sel(time=[times[i] + pd.Timedelta(f"{h}h") for h in (-6, 0, 1)]).values
        assert np.array_equal(x[row], wanted)


def test_a_split_keeps_the_starts(store):
    times = pd.date_range("2000-01-01", periods=600, freq="h").delete([100, 101, 333])
    write(store.folder / "s.zarr", times, "hours since 1990-01-01")
    view = window("6h", 3) | {"split": {
        "blocks": {"time": "2d"}, "fractions": {"train": .7, "val": .3}, "gap": {"time": "5h"}}}
    multiples = [i for i, t in enumerate(times) if t.hour % 6 == 0 and i + 3 <= len(times)]
    parts = {part: store.starts(view, "--part", part) for part in ("train", "val")}
    assert parts["train"] and parts["val"] and not set(parts["train"]) & set(parts["val"])
    assert set(parts["train"]) | set(parts["val"]) <= set(multiples)
    day = lambda i: (times[i] - pd.Timestamp("1970-01-01")) // pd.Timedelta("2d")
    inside = [i for i in multiples if day(i) == day(i + 2)]
    owner = {day(i): part for part, starts in parts.items() for i in starts}
    assert parts["val"] == [i for i in inside if owner[day(i)] == "val"] or parts["train"] == [
        i for i in inside if owner[day(i)] == "train"]
    near = [abs(times[a] - times[b]) for a in parts["train"] for b in parts["val"]]
    assert min(near) > pd.Timedelta("5h")


def test_several_sources(store):
    a = with_gaps(np.random.default_rng(8), "2000-01-01", 300, "h")
    b = with_gaps(np.random.default_rng(9), "2000-01-01", 200, "30min", .1)
    write(store.folder / "s.zarr", a, "hours since 2000-01-01T02:00")
    other = write(store.folder / "b.zarr", b, "minutes since 1999-01-01T00:30", name="r")
    store.more = [f"--store=b={store.folder / 'b.zarr'}"]
    view = window("5h") | {"sources": {"a": {}, "b": {"store": "b", "join": {"time": "exact"}}},
                           "tensors": {"x": {"variables": ["a:v"]}, "r": {
                               "variables": ["b:r"], "offsets": {"time": ["-30min", "0h"]}}}}
    since = pd.Timestamp("2000-01-01T02")
    expected = [i for i, t in enumerate(a) if (t - since) % pd.Timedelta("5h") == pd.Timedelta(0)
                and t in b and t - pd.Timedelta("30min") in b]
    assert expected and store.starts(view) == expected
    r = store.batchfs.npy("batch", *store.words(view), "--tensor", "r")
    for row, i in enumerate(expected):
        assert np.array_equal(r[row], other.r.sel(time=[a[i] - pd.Timedelta("30min"), a[i]]).values)


def test_stores_one_behind_the_other_count_from_the_first_ones_date(store):
    times = with_gaps(np.random.default_rng(8), "2000-01-01", 300, "h")
    write(store.folder / "s.zarr", times[:100], "hours since 2000-01-01T02:00")
    write(store.folder / "b.zarr", times[100:], "hours since 2000-01-09T00:00")
    store.more = [f"--store=a={store.folder / 's.zarr'}", f"--store=b={store.folder / 'b.zarr'}"]
    view = window("5h") | {"sources": {"all": {"stores": ["a", "b"], "concat": "time"}}}
    assert store.starts(view) == [i for i, t in enumerate(times)
                                  if (t - pd.Timestamp("2000-01-01T02")) % pd.Timedelta("5h")
                                  == pd.Timedelta(0)]


def test_lengths_of_time(store):
    leads = pd.timedelta_range("0h", periods=50, freq="3h").delete([7, 20])
    write(store.folder / "s.zarr", leads, "hours")
    assert store.starts(window("12h")) == [i for i, t in enumerate(leads)
                                           if t % pd.Timedelta("12h") == pd.Timedelta(0)]
    assert store.starts(window("12h", origin="3h")) == [
        i for i, t in enumerate(leads) if t % pd.Timedelta("12h") == pd.Timedelta("3h")]
    assert "window.time.every: '1mo' is of a calendar" in store.refusal(window("1mo"))
    assert "'2000' is not a length of time" in store.refusal(window("12h", origin="2000"))


def test_other_dimensions_and_the_resolved_view(store):
    times = pd.date_range("2000-01-01", periods=30, freq="h").delete([8])
    write(store.folder / "s.zarr", times, "hours since 2000-01-01")
    view = {"window": {"time": {"size": 1, "every": "6h", "origin": "2000-01-01T01"},
                       "x": {"size": 2, "stride": 1}}}
    starts = [i for i, t in enumerate(times) if t.hour % 6 == 1]
    assert [(w["time"][0], w["x"][0])
            for w in store.batch(view)["windows"]] == [(i, x) for i in starts for x in (0, 1)]


def test_a_list_says_where_windows_begin(store):
    write(store.folder / "s.zarr", pd.date_range("2000-01-01", periods=30, freq="h"),
          "hours since 2000-01-01")
    np.save(store.folder / "list.npy", np.array([[3], [11]]))
    view = window() | {"samples": {"list": "list.npy"}}
    assert store.starts(view) == [3, 11]
    plan = json.loads(store.batchfs.bytes("plan", *store.words(view), "--json"))
    assert 'window.time.every is ignored: "list" says where the windows begin' in plan["warnings"]


REFUSED = {
    "number": (window(6), "window.time.every: expected a length of time, a string; write 6h"),
    "text": (window("six"), "window.time.every: 'six' is not a length of time; write 6h"),
    "zero": (window("0h"), "window.time.every: '0h' is not more than 0"),
    "negative": (window("-6h"), "window.time.every: '-6h' is not more than 0"),
    "stride": (window(stride=2), 'window.time.every: "stride" counts positions and "every" goes by '
                                 'labels; leave one of them out'),
    "wrap": (window(wrap=True), 'window.time.every: lengths of time do not go with "wrap"'),
    "origin alone": ({"window": {"time": {"size": 1, "origin": "first"}}},
                     'window.time.origin: it goes with "every"'),
    "origin number": (window(origin=3), 'window.time.origin: expected a string, "first" or a date'),
    "origin text": (window(origin="last"),
                    "window.time.origin: 'last' is not a date; write \"first\" or 2000-01-01T06"),
    "origin day": (window(origin="2001-02-29"), "window.time.origin: '2001-02-29' is not a date"),
    "no time": ({"window": {"x": {"size": 1, "every": "6h"}}},
                "window.x.every: 'x' has no coordinate of times"),
    "none": (window("1y"), "window.time.every: none of the 48 labels of 'time' lies a multiple of "
                           "1y after 1999-06-01T00:00:00; they begin with 2000-01-01T00:00:00"),
    "fits": (window("1d", 30), "window.time.every: no window of 30 that begins at a multiple of 1d "
                               "fits: the selection has 48 positions"),
    "edge": (window("1d", size=60, edge="keep"),
             "window.time.edge: 'keep' is none of drop, pad, partial"),
    "name": ({"window": {"time": {"size": 1, "evry": "6h"}}},
             "window.time: unknown key 'evry', did you mean 'every'?"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(store, what):
    view, message = REFUSED[what]
    origin = "2000-01-01T20" if what == "fits" else "1999-06-01"
    write(store.folder / "s.zarr", pd.date_range("2000-01-01", periods=48, freq="h"),
          f"hours since {origin}")
    assert message in store.refusal(view)
