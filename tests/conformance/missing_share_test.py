"""Samples of whose values a share may be missing ("at_most"), and of some tensors only, against
numpy."""

import brute_force
import numpy as np
import pytest
import xarray as xr

T, L, Y, X = 22, 3, 12, 10


@pytest.fixture(scope="module", params=[(5, 2, 5, 6), (1, 3, 12, 10), (22, 1, 4, 3)],
                ids=["mixed", "step", "column"])
def store(request, tmp_path_factory):
    rng = np.random.default_rng(8)
    gaps = rng.random((T, Y, X)) < np.linspace(0, 0.6, T)[:, None, None]
    ds = xr.Dataset(
        {"t": (("time", "lat", "lon"), np.where(gaps, np.nan, rng.random((T, Y, X))).astype("f4")),
         "q": (("time", "level", "lat", "lon"),
               np.where(rng.random((T, L, Y, X)) < 0.1, np.nan, rng.random((T, L, Y, X)))),
         "land": (("lat", "lon"), np.where(np.arange(Y)[:, None] < 3, np.nan, rng.random((Y, X)))),
         "n": (("time", "lat", "lon"), rng.integers(0, 9, (T, Y, X)).astype("i4"))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h"),
         "level": [300, 500, 700]})
    sizes = dict(zip(("time", "level", "lat", "lon"), request.param))
    path = tmp_path_factory.mktemp("share") / "s.zarr"
    ds.to_zarr(path, zarr_format=2,
               encoding={n: {"chunks": tuple(sizes[d] for d in v.dims)} for n, v in ds.items()})
    return path, ds


CASES = {
    "one": {"variables": ["t"], "window": {"time": 1, "lat": 4}},
    "with integers": {"variables": ["t", "n"],
                      "window": {"time": 2, "lat": {"size": 5, "stride": 3}}},
    "several": {"variables": ["t", "q", "land"],
                "window": {"lat": {"size": 4, "stride": 2}, "time": 3}},
    "circle": {"variables": ["t", "q"], "window": {"lon": {"size": 4, "stride": 3, "wrap": True},
                                                   "time": {"size": 2, "stride": 1}}},
    "longer than the circle": {
        "variables": ["t"], "window": {"lon": {"size": 23, "stride": 7, "wrap": True}, "time": 1}},
    "overlapping offsets": {
        "window": {"time": {"size": 2, "stride": 1}, "lat": 6},
        "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-1, 0, 0]}},
                    "y": {"variables": ["q", "t"][:1], "offsets": {"time": [2]}}}},
    "edge": {"variables": ["t"],
             "window": {"lat": {"size": 5, "edge": "pad"}, "time": {"size": 4, "edge": "pad"}}},
}


def share(values):
    values = [v for v in values if v.dtype.kind == "f"]
    return sum(int(np.isnan(v).sum()) for v in values) / sum(v.size for v in values)


def inside(ds, view, at):
    """Tensors without what lies outside: padding is neither missing nor counted."""
    full = brute_force.take(ds, view, at)
    marks = brute_force.take(
        ds.map(lambda v: xr.ones_like(v, dtype="f8") if v.dtype.kind == "f" else v), view, at)
    return {name: [v[~np.isnan(m)] if m.dtype.kind == "f" else v
                   for v, m in zip(full[name], marks[name])] for name in full}


@pytest.mark.parametrize("at_most", [0, 0.05, 0.25, 0.29, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_share(batchfs, store, tmp_path, case, at_most):
    path, ds = store
    view = CASES[case] | {"missing": {"nan": "skip", "at_most": at_most}, "batch": 5}
    expected = [
        at for at in brute_force.windows(ds, view)
        if share([v for arrays in inside(ds, view, at).values() for v in arrays]) <= at_most]
    run = brute_force.View(batchfs, tmp_path, path, view)
    if not expected:
        assert ("missing.at_most" if at_most else "leaves no sample") in run.refusal()
        return
    plan = run.plan()
    assert (plan["samples"] == len(expected)
            and plan["dropped"]["missing"] == plan["windows"] - len(expected))
    for b in sorted({0, plan["batches"] // 2, plan["batches"] - 1}):
        assert brute_force.starts_in(run.provenance(b), view) == expected[5 * b:5 * b + 5]
        for name in brute_force.tensors_of(view):
            np.testing.assert_array_equal(run.tensor(name, b),
                                          np.stack([brute_force.take(ds, view, at)[name][0]
                                                    for at in expected[5 * b:5 * b + 5]]))


def test_a_label_selected_twice_counts_twice(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["q"], "window": {"time": 1, "lat": 3},
            "select": {"level": ["#0", "#0", "#2"]}, "missing": {"nan": "skip", "at_most": 0.1}}
    some = ds.isel(level=[0, 0, 2])
    expected = [at for at in brute_force.windows(some, view)
                if share(brute_force.take(some, view, at)["q"]) <= 0.1]
    run = brute_force.View(batchfs, tmp_path, path, view)
    assert 0 < len(expected) < T * 4 and run.plan()["samples"] == len(expected)
    assert [brute_force.starts_in(run.provenance(b), view)[0]
            for b in range(0, len(expected), 7)] == expected[::7]


@pytest.mark.parametrize("names, counted",
                         [(["y"], ["y"]), (["q"], ["y"]), (["t"], ["x"]), (["x", "q"], ["x", "y"])])
@pytest.mark.parametrize("at_most", [None, 0.2])
def test_some_tensors_only(batchfs, store, tmp_path, names, counted, at_most):
    path, ds = store
    view = {"window": {"time": 1, "lat": 3},
            "batch": 4, "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-1, 0]}},
                                    "y": {"variables": ["q"], "offsets": {"time": [1]}}},
            "missing": {"nan": "skip", "variables": names}
                | ({} if at_most is None else {"at_most": at_most})}
    expected = [at for at in brute_force.windows(ds, view)
                if share([v for name in counted for v in brute_force.take(ds, view, at)[name]])
                <= (at_most or 0)]
    run = brute_force.View(batchfs, tmp_path, path, view)
    if not expected:
        assert "missing" in run.refusal()
        return
    plan = run.plan()
    assert plan["samples"] == len(expected)
    assert brute_force.starts_in(run.provenance(plan["batches"] - 1),
                                 view) == expected[4 * (plan["batches"] - 1):]


def test_shares_are_kept_apart(batchfs, store, tmp_path):
    """The stored result of one share is not that of another."""
    path, _ = store
    view = {"variables": ["t"], "window": {"time": 1}}
    samples = [brute_force.View(batchfs, tmp_path, path,
                                view | {"missing": {"nan": "skip", "at_most": s}}).plan()["samples"]
               for s in (0.1, 0.3, 0.1)]
    assert samples[0] == samples[2] < samples[1]


@pytest.mark.parametrize("missing, message", [
    ({"nan": "skip", "at_most": 1.5}, "missing.at_most: 1.5 is not a share"),
    ({"nan": "skip", "at_most": -0.1}, "missing.at_most: -0.1 is not a share"),
    ({"nan": "skip", "at_most": "half"}, "missing.at_most"),
    ({"nan": "fill", "at_most": 0.5}, 'missing.at_most: it goes with "nan": "skip"'),
    ({"variables": ["t"]}, 'missing.variables: it goes with "nan": "skip"'),
    ({"nan": "skip", "variables": []}, "missing.variables: the list is empty"),
    ({"nan": "skip", "variables": ["t", "t"]}, "missing.variables: 't' is given twice"),
    ({"nan": "skip", "variables": ["tt"]},
     "missing.variables[0]: the view has no tensor or variable 'tt', did you mean 't'?"),
    ({"nan": "skip", "variables": ["n"]}, "missing.variables[0]: values of 'n' cannot be NaN"),
])
def test_mistakes(batchfs, store, tmp_path, missing, message):
    path, _ = store
    run = brute_force.View(batchfs, tmp_path, path,
                           {"variables": ["t", "n"], "window": {"time": 1}, "missing": missing})
    assert message in run.refusal()
