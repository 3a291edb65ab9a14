"""Views that know real time, against brute force with numpy and pandas. The values of the stores
are their own positions, so that each element of a batch tells where it comes from."""

import importlib.util
import itertools
import json
import pathlib
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from timed_store import Run, write

STEPS = {"6h": "6h", "1d": "1D", "30min": "30min", "1mo": "MS", "1y": "YS"}


def labels(rng, freq, count, missing):
    """Regular times without `missing` of them."""
    full = pd.date_range("1999-12-30" if freq[-1] not in "SY" else "1999-12-01",
                         periods=count + missing, freq=freq)
    gone = rng.choice(np.arange(1, len(full) - 1), missing, replace=False)
    return np.delete(full.values, gone).astype("M8[ns]")


def is_regular(times, step):
    """Labels exactly one step apart, months and years by calendar."""
    times = pd.DatetimeIndex(times)
    offset = {"mo": pd.DateOffset(months=int(step[:-2] or 1)) if step.endswith("mo") else None,
              "y": pd.DateOffset(years=int(step[:-1])) if step.endswith("y")
                  else None}.get(step.lstrip("0123456789"))
    if offset is None:
        offset = pd.Timedelta(step)
    return all(a + offset == b for a, b in itertools.pairwise(times))


def consistent(plan):
    assert plan["windows"] - sum(plan["dropped"].values()) == plan["samples"]


@pytest.mark.parametrize("seed", range(12))
def test_spacing(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    step = list(STEPS)[seed % len(STEPS)]
    missing = int(rng.integers(0, 5))
    times = labels(rng, STEPS[step], int(rng.integers(12, 40)), missing)
    size, stride = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    offsets = [sorted(rng.choice(np.arange(-2, 3), int(rng.integers(1, 3)), replace=False).tolist())
               for _ in range(2)]
    view = {"window": {"time": {"size": size, "stride": stride}, "x": 1},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": offsets[0]}},
                        "v": {"variables": ["b"], "offsets": {"time": offsets[1]}}},
            "samples": {"spacing": {"time": step}}, "batch": {"size": 10_000},
            "order": {"shuffle": ["none", "global", "block"][seed % 3], "seed": seed}}
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times), view)
    low, high = min(offsets[0] + offsets[1]), max(offsets[0] + offsets[1])
    n = len(times)
    whole = [s for s in range(0, n, stride)
             if s + min(low, 0) >= 0 and s + max(high, 0) + size <= n]
    left = [s for s in whole if is_regular(times[s + low:s + high + size], step)]
    if not left:
        assert "samples.spacing.time: no sample is left" in run.refusal()
        return
    plan = run.plan()
    assert plan["windows"] == 3 * len(whole) and plan["samples"] == 3 * len(left)
    assert plan["dropped"] == {"spacing": 3 * (len(whole) - len(left))} and plan["warnings"] == []
    u, v = run.tensor("u"), run.tensor("v")
    samples = run.batch(0)["samples"]
    assert sorted(samples) == list(range(3 * len(left)))
    for row, sample in enumerate(samples):
        start, x = left[sample // 3], sample % 3
        assert u[row, :, 0].tolist() == [(start + o + i) * 3 + x for o in offsets[0]
                                         for i in range(size)]
        assert v[row, 0].tolist() == [1_000_000 + (start + o + i) * 3 + x for o in offsets[1]
                                      for i in range(size)]


def test_no_window_crosses_a_missing_date_and_ranks_agree(batchfs, tmp_path):
    rng = np.random.default_rng(1)
    times = labels(rng, "6h", 200, 9)
    store = write(tmp_path / "s.zarr", times)
    view = {"window": {"time": {"size": 3, "stride": 1}}, "variables": ["a"], "batch": {"size": 8},
            "samples": {"spacing": {"time": "6h"}},
            "order": {"shuffle": "block", "seed": 3, "buffer": 2}}
    run = Run(batchfs, tmp_path, store, view)
    plan = run.plan()
    consistent(plan)
    seen = []
    for b in range(plan["batches"]):
        a = run.tensor("a", b)
        for row in a[:, :, 0] // 3:
            assert is_regular(times[row], "6h")
            seen.append(row[0])
        share = run.batch(b // 2, 0, "--rank", b % 2, "--world", 2)["samples"]
        assert share == run.batch(b)["samples"]
    assert sorted(seen) == [s for s in range(len(times) - 2) if is_regular(times[s:s + 3], "6h")]


def test_without_spacing_a_warning_counts_the_samples_across_gaps(batchfs, tmp_path):
    times = np.delete(pd.date_range("2000-01-01", periods=60, freq="6h").values.astype("M8[ns]"),
                      [10, 30, 31])
    store = write(tmp_path / "s.zarr", times)
    run = Run(batchfs, tmp_path, store,
              {"window": {"time": {"size": 3, "stride": 1}, "x": 1}, "variables": ["a"]})
    across = 3 * sum(not is_regular(times[s:s + 3], "6h") for s in range(len(times) - 2))
    plan = run.plan()
    assert plan["samples"] == plan["windows"] == 3 * (len(times) - 2) and plan["dropped"] == {}
    (warning,) = plan["warnings"]
    assert warning.startswith(f"time: 2 gaps: {across} samples reach across one; ")
    text = batchfs.bytes("plan", store, "--view", run.file).decode()
    assert f"Warning: {warning}" in text
    # One position a sample, and regular times: nothing to warn of.
    assert Run(batchfs, tmp_path, store,
               {"window": {"time": 1}, "variables": ["a"]}).plan()["warnings"] == []
    regular = write(tmp_path / "r.zarr", times[:10])
    assert Run(batchfs, tmp_path, regular,
               {"window": {"time": 3}, "variables": ["a"]}).plan()["warnings"] == []


def position(times, start, duration):
    """Where the label `duration` after that of `start` is; -1: nowhere."""
    months = {"mo": 1, "y": 12}.get(duration.lstrip("-0123456789"))
    label = pd.Timestamp(times[start])
    if months:
        label += pd.DateOffset(months=months * int(duration.rstrip("moy")))
    else:
        label += pd.Timedelta(duration)
    found = np.flatnonzero(times == np.datetime64(label))
    return int(found[0]) if len(found) else -1


CHOICES = {"6h": ["-12h", "-6h", "0h", "6h", "12h", "1d"], "1d": ["-2d", "-1d", "0h", "24h", "48h"],
           "30min": ["-1h", "-30min", "0h", "30m", "90min"],
           "1mo": ["-2mo", "-1mo", "0h", "1mo", "3mo"], "1y": ["-1y", "0h", "12mo", "2y"]}


@pytest.mark.parametrize("seed", range(12))
def test_offsets_by_duration(batchfs, tmp_path, seed):
    """A missing date drops just the windows that need it; others find their labels across it."""
    rng = np.random.default_rng(100 + seed)
    step = list(STEPS)[seed % len(STEPS)]
    times = labels(rng, STEPS[step], int(rng.integers(20, 40)), int(rng.integers(1, 6)))
    if seed % 4 == 3:
        times = times[::-1].copy()
    size, stride = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    pick = lambda n: rng.permutation(CHOICES[step])[:n].tolist()  # in any order
    offsets, reserve = pick(2), pick(1) if seed % 3 == 0 else []
    steps = [0, 1] if seed % 2 else [0]
    view = {"window": {"x": 1, "time": {"size": size, "stride": stride}},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": offsets}},
                        "v": {"variables": ["a"], "offsets": {"time": steps}}},
            "batch": {"size": 10_000},
            "order": {"shuffle": ["none", "block"][seed % 2], "seed": seed}}
    if reserve:
        view["reserve"] = {"time": reserve}
    if seed % 4 == 1:
        view["samples"] = {"spacing": {"time": step}}
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times), view)
    n = len(times)
    whole = [s for s in range(0, n, stride) if s + steps[-1] + size <= n]
    at = lambda s, names: [position(times, s, name) for name in names]
    inside = lambda places: all(p >= 0 and p + size <= n for p in places)
    found = [s for s in whole if inside(at(s, offsets))]
    held = [s for s in found if inside(at(s, reserve))]
    left = held
    if "samples" in view:
        reach = lambda s: [s, s + steps[-1], *at(s, offsets), *at(s, reserve)]
        left = [s for s in held if is_regular(times[min(reach(s)):max(reach(s)) + size], step)]
    dropped = {"offsets": 3 * (len(whole) - len(found))}
    if reserve:
        dropped["reserve"] = 3 * (len(found) - len(held))
    if "samples" in view:
        dropped["spacing"] = 3 * (len(held) - len(left))
    if not left:
        assert "no sample is left" in run.refusal()
        return
    plan = run.plan()
    consistent(plan)
    assert plan["dropped"] == dropped and plan["samples"] == 3 * len(left)
    u, v = run.tensor("u"), run.tensor("v")
    samples = run.batch(0)["samples"]
    assert sorted(samples) == list(range(3 * len(left)))
    for row, sample in enumerate(samples):
        x, start = divmod(sample, len(left))
        start = left[start]
        assert u[row, :, 0].tolist() == [(p + i) * 3 + x for p in at(start, offsets)
                                         for i in range(size)]
        assert v[row, :, 0].tolist() == [(start + o + i) * 3 + x for o in steps
                                         for i in range(size)]


def test_views_with_the_same_reserve_have_the_same_samples(batchfs, tmp_path):
    rng = np.random.default_rng(5)
    store = write(tmp_path / "s.zarr", labels(rng, "6h", 60, 4))
    starts = []
    for lead, reserve in ((1, [-2, 12]), (4, [-2, 12]), (12, [-2, 12]),
                          (1, ["-12h", "72h"]), (4, ["-12h", "72h"]), (12, ["-12h", "72h"])):
        name = [lead] if isinstance(reserve[0], int) else [f"{6 * lead}h"]
        view = {"window": {"time": {"size": 1}},
                "reserve": {"time": reserve}, "samples": {"spacing": {"time": "6h"}},
                "tensors": {"x": {"variables": ["a"]},
                            "y": {"variables": ["a"], "offsets": {"time": name}}},
                "batch": 1000, "order": {"shuffle": "global", "seed": 3}}
        run = Run(batchfs, tmp_path, store, view)
        x, y = run.tensor("x"), run.tensor("y")
        assert (y[:, 0, 0] - x[:, 0, 0] == 3 * lead).all()
        starts.append(x[:, 0, 0].tolist())
    assert len(starts[0]) > 5 and all(each == starts[0] for each in starts)


@pytest.mark.parametrize("window, spacing, size, stride", [
    ({"size": "24h", "stride": "6h"}, None, 4, 1),
    ("12h", None, 2, 2),
    ({"size": "1d", "stride": 2}, "6h", 4, 2),
    ({"size": 3, "stride": "720min"}, None, 3, 2)])
def test_durations_of_windows(batchfs, tmp_path, window, spacing, size, stride):
    times = pd.date_range("2000-01-01", periods=30, freq="6h").values.astype("M8[ns]")
    view = {"window": {"time": window}, "variables": ["a"], "batch": 100}
    if spacing:
        view["samples"] = {"spacing": {"time": spacing}}
        times = np.delete(times, [7])
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times), view)
    left = [s for s in range(0, len(times) - size + 1, stride)
            if is_regular(times[s:s + size], "6h")]
    a = run.tensor("a")
    assert a.shape[1] == size and (a[:, 0, 0] // 3).tolist() == left


def test_windows_of_months(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=36, freq="MS").values.astype("M8[ns]")
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times),
              {"window": {"time": {"size": "1y", "stride": "3mo"}}, "variables": ["a"],
               "batch": 100})
    a = run.tensor("a")
    assert a.shape[:2] == (9, 12) and (a[:, 0, 0] // 3).tolist() == list(range(0, 27, 3))


@pytest.mark.parametrize("duration", ["1mo", "-1mo", "3mo", "1y"])
@pytest.mark.parametrize("freq", ["1D", "12h", "SMS"])
def test_months_after_days_with_gaps(batchfs, tmp_path, freq, duration):
    """Where the day is missing there is no sample: no other day of the month takes its place."""
    times = np.delete(pd.date_range("2003-11-01", "2005-03-31", freq=freq).values.astype("M8[ns]"),
                      slice(3, None, 7))
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times),
              {"window": {"time": 1},
               "tensors": {"u": {"variables": ["a"], "offsets": {"time": ["0h", duration]}}},
               "batch": 10_000})
    u = run.tensor("u")[:, :, 0] // 3
    assert u.tolist() == [[s, position(times, s, duration)] for s in range(len(times))
                          if position(times, s, duration) >= 0]


FIELDS = {"month": lambda t: t.month, "day": lambda t: t.day, "hour": lambda t: t.hour,
          "minute": lambda t: t.minute, "dayofyear": lambda t: t.dayofyear,
          "year": lambda t: t.year, "weekday": lambda t: t.weekday}
SEASON = {"DJF": [12, 1, 2], "MAM": [3, 4, 5], "JJA": [6, 7, 8], "SON": [9, 10, 11]}


@pytest.mark.parametrize("seed", range(16))
def test_where(batchfs, tmp_path, seed):
    rng = np.random.default_rng(200 + seed)
    freq = ["31h", "6h", "5D", "13min"][seed % 4]
    times = labels(rng, freq, 150, 6)
    index = pd.DatetimeIndex(times)
    good = np.ones(len(times), bool)
    condition = {}
    for name in rng.permutation(list(FIELDS))[:int(rng.integers(1, 3))]:
        values = FIELDS[name](index)
        condition[name] = sorted(set(rng.choice(np.unique(values), 4).tolist()))
        good &= np.isin(values, condition[name])
    if seed % 3 == 0:
        condition["season"] = ["DJF", "SON"]
        good &= np.isin(index.month, SEASON["DJF"] + SEASON["SON"])
    if seed % 5 == 0:
        condition["from"], condition["to"] = str(index[20]), str(index[130])
        good &= (index >= index[20]) & (index <= index[130])
    footprint = bool(seed % 2)
    size, stride, offsets = int(rng.integers(1, 4)), int(rng.integers(1, 3)), [
        [0], [-1, 2], [1]][seed % 3]
    where = {"time": condition, "x": {"from": 10, "to": 30}}
    if footprint:
        (where if seed % 4 == 1 else condition)["of"] = "footprint"
    view = {"window": {"time": {"size": size, "stride": stride}, "x": 1},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": offsets}}},
            "samples": {"where": where}, "batch": 10_000,
            "order": {"shuffle": ["none", "global", "block"][seed % 3], "seed": seed}}
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times, x=5), view)
    low, high, n = min(offsets), max(offsets), len(times)
    whole = [s for s in range(0, n, stride)
             if s + min(low, 0) >= 0 and s + max(high, 0) + size <= n]
    left = [s for s in whole if (good[s + low:s + high + size].all() if footprint else good[s])]
    if not left:
        assert f"samples.where.time: {'no sample is left' if good.any() else 'none of'}" in (
            run.refusal())
        return
    plan = run.plan()
    assert plan["windows"] == 5 * len(whole) and plan["dropped"] == {"where": 5 * len(whole)
                                                                         - 3 * len(left)}
    consistent(plan)
    u = run.tensor("u")
    samples = run.batch(0)["samples"]
    assert sorted(samples) == list(range(3 * len(left)))
    for row, sample in enumerate(samples):
        start, x = left[sample // 3], 1 + sample % 3
        assert u[row, :, 0].tolist() == [(start + o + i) * 5 + x for o in offsets
                                         for i in range(size)]


def test_where_on_a_circle_and_by_positions(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=10, freq="6h").values.astype("M8[ns]")
    lon = np.arange(12) * 30.0
    ds = xr.Dataset({"a": (("time", "lon"), np.arange(120, dtype="i4").reshape(10, 12))},
                    {"time": times, "lon": lon})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(tmp_path / "s.zarr", zarr_format=2)
    view = {"window": {"lon": {"size": 3, "stride": 1, "wrap": True}, "time": 1}, "batch": 1000,
            "samples": {"where": {"lon": {"from": 300, "to": 60, "wrap": True},
                                  "time": ["#2", "2000-01-02T00"]}}}
    starts = lambda: Run(batchfs, tmp_path, tmp_path / "s.zarr", view).tensor("a")[:, 0, 0].tolist()
    assert starts() == [t * 12 + x for x in (0, 1, 2, 10, 11) for t in (2, 4)]
    view["samples"]["where"]["of"] = "footprint"
    assert starts() == [t * 12 + x for x in (0, 10, 11) for t in (2, 4)]


def man_page():
    """The Python of batchfs-view(5)."""
    file = pathlib.Path(__file__).with_name("man_view_test.py")
    spec = importlib.util.spec_from_file_location("man_view", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


@pytest.mark.parametrize("buffer", [1, 3, 1 << 20])
@pytest.mark.parametrize("hours, skip",
                         [([0, 12], False), ([0, 6, 12, 18], False), ([0, 6, 12, 18], True)])
def test_block_order_of_what_is_left(batchfs, tmp_path, buffer, hours, skip):
    """Groups are of the starts that are left in a chunk; the order is that of the page's Python."""
    rng = np.random.default_rng(7)
    times = labels(rng, "6h", 80, 0 if len(hours) == 2 else 5)
    values = np.arange(len(times) * 5, dtype="f4").reshape(-1, 5)
    if skip:
        values[rng.random(values.shape) < 0.05] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("time", "x"), values)}, {"time": times}).to_zarr(
            tmp_path / "s.zarr", zarr_format=2, encoding={"a": {"chunks": (8, 2)}})
    view = {"window": {"time": {"size": 2, "stride": 1}, "x": 1}, "batch": 1000,
            "samples": {"spacing": {"time": "6h"}, "where": {"time": {"hour": hours}}},
            "order": {"shuffle": "block", "seed": 5, "buffer": buffer}}
    if skip:
        view["missing"] = {"nan": "skip"}
    run = Run(batchfs, tmp_path, tmp_path / "s.zarr", view)
    left = [s for s in range(len(times) - 1)
            if pd.Timestamp(times[s]).hour in hours and is_regular(times[s:s + 2], "6h")]
    group = [len(list(each)) for _, each in itertools.groupby(left, lambda s: s // 8)]
    axes = [(len(left), 0, group if len(set(group)) > 1 else group[0]), (5, 0, 2)]
    assert (len(set(group)) > 1) == (len(hours) == 4 or len(times) % 8 != 0)
    count = 5 * len(left)
    is_sample = (lambda w: not skip
                 or not np.isnan(values[left[w // 5]:left[w // 5] + 2, w % 5]).any())
    kept = [w for w in range(count) if is_sample(w)]
    expected = [kept.index(w)
                for w in man_page()["block_skipping"](is_sample, count, 5, 3, buffer, axes)]
    assert run.batch(0, 3)["samples"] == expected
    plan = run.plan()
    consistent(plan)
    assert plan["samples"] == len(expected)
    if not skip:
        chunks = [(left[w // 5] // 8, w % 5 // 2) for w in expected]
        if buffer == 1:  # the samples of one chunk come together, but for those of no whole group
            runs = [c for c, _ in itertools.groupby(chunks[:4 * len(left)])]
            assert len(runs) == len(set(runs))


def test_nan_skipped_in_windows_at_labels(batchfs, tmp_path):
    rng = np.random.default_rng(11)
    times = labels(rng, "6h", 70, 5)
    values = np.arange(len(times) * 2, dtype="f4").reshape(-1, 2)
    values[rng.random(values.shape) < 0.03] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("time", "x"), values)}, {"time": times}).to_zarr(
            tmp_path / "s.zarr", zarr_format=2, encoding={"a": {"chunks": (6, 2)}})
    for select in (None, [str(t) for t in times[3:60:2]]):
        offsets, size = ["-24h", "0h", "12h"], 2
        view = {"window": {"time": {"size": size, "stride": 1}},
                "batch": 1000, "missing": {"nan": "skip"},
                "tensors": {"u": {"variables": ["a"], "offsets": {"time": offsets}}}}
        mine, data = times, values
        if select:
            view["select"] = {"time": select}
            mine, data = times[3:60:2], values[3:60:2]
        at = lambda s: [position(mine, s, o) for o in offsets]
        left = [s for s in range(len(mine) - size + 1)
                if all(p >= 0 and p + size <= len(mine) for p in at(s))]
        full = [s for s in left if not any(np.isnan(data[p:p + size]).any() for p in at(s))]
        assert 0 < len(full) < len(left)
        run = Run(batchfs, tmp_path, tmp_path / "s.zarr", view)
        plan = run.plan()
        assert plan["dropped"]["missing"] == len(left) - len(full)
        consistent(plan)
        u = run.tensor("u")
        assert u.tolist() == [[data[p + i].tolist() for p in at(s) for i in range(size)]
                              for s in full]


def test_padded_windows_at_labels(batchfs, tmp_path):
    times = np.delete(pd.date_range("2000-01-01", periods=12, freq="6h").values.astype("M8[ns]"),
                      [5])
    store = write(tmp_path / "s.zarr", times)
    view = {"window": {"time": {"size": 3, "stride": 2, "edge": "pad", "pad_value": -1}},
            "batch": 100,
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": ["0h", "12h"]}}}}
    u = Run(batchfs, tmp_path, store, view).tensor("u")[:, :, 0]
    n = len(times)
    expected = []
    for s in range(0, n, 2):
        places = [position(times, s, o) for o in ("0h", "12h")]
        if -1 not in places:
            expected.append([(p + i) * 3 if p + i < n else -1 for p in places for i in range(3)])
    # No more than one window passes over the end.
    over = [row for row in expected if -1 in row]
    assert u.tolist() == [row for row in expected if -1 not in row] + over[:1]


def test_plan_and_scan_count_the_chunks_that_samples_touch(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=400, freq="1D").values.astype("M8[ns]")
    values = np.zeros((400, 2), "f4")
    values[np.arange(0, 400, 25)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("time", "x"), values)}, {"time": times}).to_zarr(
            tmp_path / "s.zarr", zarr_format=2, encoding={"a": {"chunks": (10, 2)}})
    view = {"window": {"time": {"size": 2, "stride": 1}},
            "batch": 1000, "samples": {"where": {"time": {"month": [7]}}},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": ["-3d", "0h"]}}},
            "missing": {"nan": "skip"}}
    july = np.flatnonzero(pd.DatetimeIndex(times).month == 7)
    held = {p for s in july for o in (-3, 0) for p in (s + o, s + o + 1)}
    run = Run(batchfs, tmp_path, tmp_path / "s.zarr", view)
    plan = run.plan()
    assert plan["chunks"] == len({p // 10 for p in held})
    missing = sum(any(np.isnan(values[s + o + i, 0]) for o in (-3, 0) for i in (0, 1))
                  for s in july)
    assert plan["dropped"]["missing"] == missing > 0 and plan["samples"] == len(july) - missing


def test_channels_are_named_after_durations(batchfs, tmp_path):
    times = pd.date_range("2000-01-01", periods=12, freq="6h").values.astype("M8[ns]")
    view = {"window": {"time": 1},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": ["-12h", "0h"]},
                              "stack": "channel", "dims": ["channel", "x"]}}}
    plan = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times), view).plan()
    assert plan["tensors"][0]["channels"] == ["a_-12h", "a_0h"]


def test_the_starter_view_has_the_spacing_of_regular_times(batchfs, tmp_path):
    for freq, step in (("6h", "6h"), ("1D", "1d"), ("MS", "1mo"), ("YS", "1y"), ("30min", "30min"),
                       ("ME", "1mo")):
        times = pd.date_range("2000-01-01", periods=30, freq=freq).values.astype("M8[ns]")
        store = write(tmp_path / f"{freq}.zarr", times)
        starter = json.loads(batchfs.bytes("view", store))
        assert starter["samples"] == {"spacing": {"time": step}}
        starter["window"]["time"] = {"size": 4, "stride": 1}
        plan = Run(batchfs, tmp_path, store, starter).plan()
        assert plan["samples"] == 27 and plan["dropped"] == {"spacing": 0}
        gap = write(tmp_path / "gap.zarr", np.delete(times, [9]))
        assert "samples" not in json.loads(batchfs.bytes("view", gap))
