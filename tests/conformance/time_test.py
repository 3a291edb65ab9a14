"""Views that know real time, against brute force with numpy and pandas. The values of the stores are their
own positions, so that each element of a batch tells where it comes from."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

STEPS = {"6h": "6h", "1d": "1D", "30min": "30min", "1mo": "MS", "1y": "YS"}


def labels(rng, freq, count, missing):
    """Regular times without `missing` of them."""
    full = pd.date_range("1999-12-30" if freq[-1] not in "SY" else "1999-12-01", periods=count + missing, freq=freq)
    gone = rng.choice(np.arange(1, len(full) - 1), missing, replace=False)
    return np.delete(full.values, gone).astype("M8[ns]")


def write(path, times, chunk=7, x=3, more=None):
    n = len(times)
    data = {"a": (("time", "x"), np.arange(n * x, dtype="i4").reshape(n, x)),
            "b": (("x", "time"), 1_000_000 + np.arange(n * x, dtype="i4").reshape(n, x).T)}
    ds = xr.Dataset(data, {"time": times, "x": np.arange(x) * 10.0, **(more or {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, mode="w", zarr_format=2, encoding={"a": {"chunks": (chunk, x)}, "b": {"chunks": (1, chunk)}})
    return path


class Run:
    """A view of a store: its plan and all its samples in order."""

    def __init__(self, batchfs, folder, store, view):
        self.batchfs, self.store, self.file = batchfs, store, folder / "view.json"
        self.file.write_text(json.dumps(view))

    def plan(self):
        return json.loads(self.batchfs.bytes("plan", self.store, "--view", self.file, "--json"))

    def refusal(self):
        return self.batchfs.refusal("plan", self.store, "--view", self.file)

    def batch(self, batch, epoch=0, *more):
        return json.loads(self.batchfs.bytes("batch", self.store, "--view", self.file, "--format", "json", "--epoch",
                                             epoch, "--batch", batch, *more))

    def tensor(self, name, batch=0, epoch=0, *more):
        return self.batchfs.npy("batch", self.store, "--view", self.file, "--format", "npy", "--epoch", epoch,
                                "--batch", batch, "--tensor", name, *more)


def is_regular(times, step):
    """Labels exactly one step apart, months and years by calendar."""
    times = pd.DatetimeIndex(times)
    offset = {"mo": pd.DateOffset(months=int(step[:-2] or 1)) if step.endswith("mo") else None,
              "y": pd.DateOffset(years=int(step[:-1])) if step.endswith("y") else None}.get(step.lstrip("0123456789"))
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
    offsets = [sorted(rng.choice(np.arange(-2, 3), int(rng.integers(1, 3)), replace=False).tolist()) for _ in range(2)]
    view = {"window": {"time": {"size": size, "stride": stride}, "x": 1},
            "tensors": {"u": {"variables": ["a"], "offsets": {"time": offsets[0]}},
                        "v": {"variables": ["b"], "offsets": {"time": offsets[1]}}},
            "samples": {"spacing": {"time": step}}, "batch": {"size": 10_000},
            "order": {"shuffle": ["none", "global", "block"][seed % 3], "seed": seed}}
    run = Run(batchfs, tmp_path, write(tmp_path / "s.zarr", times), view)
    low, high = min(offsets[0] + offsets[1]), max(offsets[0] + offsets[1])
    n = len(times)
    whole = [s for s in range(0, n, stride) if s + min(low, 0) >= 0 and s + max(high, 0) + size <= n]
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
        assert u[row, :, 0].tolist() == [(start + o + i) * 3 + x for o in offsets[0] for i in range(size)]
        assert v[row, 0].tolist() == [1_000_000 + (start + o + i) * 3 + x for o in offsets[1] for i in range(size)]


def test_no_window_crosses_a_missing_date_and_ranks_agree(batchfs, tmp_path):
    rng = np.random.default_rng(1)
    times = labels(rng, "6h", 200, 9)
    store = write(tmp_path / "s.zarr", times)
    view = {"window": {"time": {"size": 3, "stride": 1}}, "variables": ["a"], "batch": {"size": 8},
            "samples": {"spacing": {"time": "6h"}}, "order": {"shuffle": "block", "seed": 3, "buffer": 2}}
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
    times = np.delete(pd.date_range("2000-01-01", periods=60, freq="6h").values.astype("M8[ns]"), [10, 30, 31])
    store = write(tmp_path / "s.zarr", times)
    run = Run(batchfs, tmp_path, store, {"window": {"time": {"size": 3, "stride": 1}, "x": 1}, "variables": ["a"]})
    across = 3 * sum(not is_regular(times[s:s + 3], "6h") for s in range(len(times) - 2))
    plan = run.plan()
    assert plan["samples"] == plan["windows"] == 3 * (len(times) - 2) and plan["dropped"] == {}
    (warning,) = plan["warnings"]
    assert warning.startswith(f"time: 2 gaps: {across} samples reach across one; ")
    text = batchfs.bytes("plan", store, "--view", run.file).decode()
    assert f"Warning: {warning}" in text
    # One position a sample, and regular times: nothing to warn of.
    assert Run(batchfs, tmp_path, store, {"window": {"time": 1}, "variables": ["a"]}).plan()["warnings"] == []
    regular = write(tmp_path / "r.zarr", times[:10])
    assert Run(batchfs, tmp_path, regular, {"window": {"time": 3}, "variables": ["a"]}).plan()["warnings"] == []


@pytest.mark.parametrize("samples, message", [
    ({"spacing": {"time": "6x"}}, "samples.spacing.time: '6x' is no length of time; write 6h"),
    ({"spacing": {"time": 6}}, "samples.spacing.time: expected a length of time, a string; write 6h"),
    ({"spacing": {"time": "0h"}}, "samples.spacing.time: '0h': labels cannot be 0 apart"),
    ({"spacing": {}}, "samples.spacing: name at least one dimension"),
    ({"spacing": {"x": "6h"}}, "samples.spacing.x: 'x' has no coordinate of times: it is float64"),
    ({"spacing": {"tim": "6h"}}, "samples.spacing.tim: 'tim' is no dimension of \"window\""),
    ({"freq": "6h"}, "samples: unknown key 'freq'"),
    ({"spacing": {"time": "5h"}}, "samples.spacing.time: no sample is left: each of 19 windows along 'time' reaches "
                                  "across labels that are not 5h apart, as 2000-01-01T00:00:00 and 2000-01-01T06:00:00"),
])
def test_mistakes_in_samples(batchfs, tmp_path, samples, message):
    store = write(tmp_path / "s.zarr", pd.date_range("2000-01-01", periods=20, freq="6h").values.astype("M8[ns]"))
    view = {"window": {"time": {"size": 2, "stride": 1}, "x": 1}, "variables": ["a"], "samples": samples}
    assert message in Run(batchfs, tmp_path, store, view).refusal()
