""""samples.mask" against numpy: a variable over some of the window's dimensions says which windows
are samples."""

import itertools
import json
import os
import pathlib

import brute_force
import numpy as np
import pytest
import xarray as xr
import zarr
from measured import measure

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
T, Y, X = 17, 12, 10


@pytest.fixture(scope="module", params=[(5, 5, 6), (17, 12, 10), (1, 4, 3)],
                ids=["mixed", "whole", "small"])
def store(request, tmp_path_factory):
    rng = np.random.default_rng(4)
    t = rng.random((T, Y, X)).astype("f4")
    t[rng.random(t.shape) < 0.01] = np.nan
    land = (np.add.outer(np.arange(Y), np.arange(X)) % 9 < 5) * rng.random((Y, X))
    land[3, 4] = np.nan
    ds = xr.Dataset(
        {"t": (("time", "lat", "lon"), t),
         "land": (("lat", "lon"), land.astype("f4")),
         "turned": (("lon", "lat"), rng.integers(-1, 2, (X, Y)).astype("i2")),
         "wet": (("time",), rng.random(T) < 0.6),
         "rain": (("time", "lat", "lon"),
                  np.where(rng.random((T, Y, X)) < 0.7, 0, rng.random((T, Y, X)))),
         "level_mask": (("level",), np.ones(3)), "name": (("lat",), np.array(list("abcdefghijkl"))),
         "scalar": ((), 1.0), "none": (("lat", "lon"), np.zeros((Y, X)))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(T) * np.timedelta64(6, "h")})
    sizes = dict(zip(("time", "lat", "lon"), request.param)) | {"level": 3}
    path = tmp_path_factory.mktemp("mask") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, encoding={n: {"chunks": tuple(sizes[d] for d in v.dims)}
                                              for n, v in ds.items() if v.dims})
    return path, ds


def marked(ds, mask):
    values = ds[mask["variable"]]
    if "above" not in mask and "below" not in mask:
        return values.notnull() & (values != 0)
    result = xr.ones_like(values, dtype=bool)
    if "above" in mask:
        result &= values > mask["above"]
    if "below" in mask:
        result &= values < mask["below"]
    return result


def passes(ds, view, mask, cells, at):
    window, feet = brute_force.window_of(view), brute_force.footprints(ds, view)
    values = cells.values
    for axis, dim in enumerate(cells.dims):
        n, wrap = ds.sizes[dim], window[dim].get("wrap")
        low, high = feet[dim]
        index = ([at[dim] + window[dim]["size"] // 2] if mask.get("at") == "center"
                 else range(at[dim] + low, at[dim] + high))
        if mask.get("at") == "center" and not wrap and index[0] >= n:
            return False
        values = np.take(values, [i % n for i in index if wrap or 0 <= i < n], axis)
    if mask.get("at") == "center":
        return bool(values.all())
    least, most = mask.get("fraction", [1, 1])
    return least <= int(values.sum()) / values.size <= most


WINDOWS = {
    "plain": {"variables": ["t"], "window": {"time": 1, "lat": 4, "lon": 3}},
    "overlapping": {"variables": ["t"],
                    "window": {"lon": {"size": 4, "stride": 2}, "time": {"size": 3, "stride": 1},
                               "lat": {"size": 3, "stride": 1}}},
    "circle": {"variables": ["t"],
               "window": {"time": 2, "lat": 3, "lon": {"size": 4, "stride": 3, "wrap": True}}},
    "more than the circle": {"variables": ["t"], "window": {
        "time": 5, "lat": 6, "lon": {"size": 13, "stride": 4, "wrap": True}}},
    "offsets": {"window": {"time": {"size": 2, "stride": 1}, "lat": 4, "lon": 5},
                "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-2, 0]}},
                            "y": {"variables": ["t"], "offsets": {"time": [1], "lat": [0, 2]}}}},
    "edge": {"variables": ["t"], "window": {"time": {"size": 4, "edge": "pad"},
                                            "lat": {"size": 5, "edge": "pad"}, "lon": 2}},
}
MASKS = [
    {"variable": "land"}, {"variable": "land", "above": 0.3, "fraction": [0.25, 1]},
    {"variable": "land", "above": 0.1, "below": 0.6, "fraction": [0, 0.5]},
    {"variable": "land", "at": "center"}, {"variable": "turned", "fraction": [0.5, 0.75]},
    {"variable": "turned", "below": 0, "fraction": [0.1, 1]}, {"variable": "wet"},
    {"variable": "wet", "fraction": [0, 0.4]}, {"variable": "wet", "at": "center"},
    {"variable": "rain", "fraction": [0.3, 0.6]},
    {"variable": "rain", "above": 0.5, "at": "center"},
]


@pytest.mark.parametrize("mask", MASKS, ids=lambda m: "-".join(map(str, m.values())))
@pytest.mark.parametrize("case", WINDOWS)
def test_mask(batchfs, store, tmp_path, case, mask):
    path, ds = store
    view = WINDOWS[case] | {"samples": {"mask": mask}, "batch": 6}
    cells = marked(ds, mask)
    every = list(brute_force.windows(ds, view))
    expected = [at for at in every if passes(ds, view, mask, cells, at)]
    run = brute_force.View(batchfs, tmp_path, path, view)
    if not expected:
        message = run.refusal()
        assert ("samples.mask: no sample is left" in message
                and f"'{mask['variable']}' marks {int(cells.sum())} of" in message)
        return
    plan = run.plan()
    assert (plan["windows"], plan["samples"],
            plan["dropped"]["mask"]) == (len(every), len(expected), len(every) - len(expected))
    for b in sorted({0, plan["batches"] // 2, plan["batches"] - 1}):
        mine = expected[6 * b:6 * b + 6]
        assert brute_force.starts_in(run.provenance(b), view) == mine
        for name in brute_force.tensors_of(view):
            np.testing.assert_array_equal(run.tensor(name, b),
                                          np.stack([brute_force.take(ds, view, at)[name][0]
                                                    for at in mine]))


@pytest.mark.parametrize("mask", [{"variable": "land", "fraction": [0.4, 1]}, {"variable": "wet"}],
                         ids=["joint", "along one dimension"])
@pytest.mark.parametrize("select", [{"lat": {"from": "#2", "to": "#11"},
                                     "time": ["#16", "#3", "#4", "#9", "#9"]},
                                    {"lon": ["#1", "#2", "#7", "#8"]}])
def test_of_what_is_selected(batchfs, store, tmp_path, select, mask):
    path, ds = store
    ds = ds.isel(lat=slice(2, 11), time=[16, 3, 4, 9, 9]) if "lat" in select else ds.isel(lon=[
        1, 2, 7, 8])
    view = {"variables": ["t"], "window": {"time": 1, "lat": {"size": 3, "stride": 1}, "lon": 2},
            "select": select, "samples": {"mask": mask}}
    expected = [at for at in brute_force.windows(ds, view)
                if passes(ds, view, mask, marked(ds, mask), at)]
    run = brute_force.View(batchfs, tmp_path, path, view)
    assert run.plan()["samples"] == len(expected)
    for b in (0, len(expected) // 2, len(expected) - 1):
        np.testing.assert_array_equal(run.tensor("t", b)[0],
                                      brute_force.take(ds, view, expected[b])["t"][0])


@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
@pytest.mark.parametrize("mask", [{"variable": "land", "fraction": [0.4, 1]}, {"variable": "wet"}],
                         ids=["joint", "along one dimension"])
def test_with_where_missing_values_and_orders(batchfs, store, tmp_path, shuffle, mask):
    path, ds = store
    view = {"variables": ["t"], "window": {"time": 1, "lat": {"size": 4, "stride": 2}, "lon": 5},
            "batch": {"size": 4, "remainder": "pad"}, "order": {"shuffle": shuffle, "seed": 3},
            "samples": {"mask": mask, "where": {"time": {"hour": [0, 12]}}},
            "missing": {"nan": "skip"}}
    where = [at for at in brute_force.windows(ds, view) if at["time"] % 2 == 0]
    masked = [at for at in where if passes(ds, view, mask, marked(ds, mask), at)]
    expected = [at for at in masked if not np.isnan(brute_force.take(ds, view, at)["t"][0]).any()]
    assert 0 < len(expected) < len(masked) < len(where)
    run = brute_force.View(batchfs, tmp_path, path, view)
    plan = run.plan()
    assert plan["samples"] == len(expected)
    assert plan["dropped"] == {"where": plan["windows"] - len(where), "mask": len(where)
                                   - len(masked), "missing": len(masked) - len(expected)}
    batches = [run.provenance(b) for b in range(plan["batches"])]
    numbers = [s for b in batches for s in b["samples"]]
    assert sorted(numbers[:len(expected)]) == list(range(len(expected)))
    assert [at for b in batches
            for at in brute_force.starts_in(b, view)] == [expected[s] for s in numbers]
    for world, rank in itertools.product((2, 3), (0, 1)):
        assert run.provenance(1, "--rank", rank, "--world",
                              world)["samples"] == batches[rank + world]["samples"]


def test_a_mask_that_takes_all(batchfs, store, tmp_path):
    path, _ = store
    view = {"variables": ["t"], "window": {"time": 1, "lat": 4},
            "samples": {"mask": {"variable": "wet", "fraction": [0, 1]}}}
    plan = brute_force.View(batchfs, tmp_path, path, view).plan()
    assert plan["samples"] == plan["windows"] == T * 3 and plan["dropped"] == {"mask": 0}


@pytest.mark.parametrize("mask, message", [
    ("land", 'samples.mask: expected an object; write {"variable": "land"}'),
    ({}, "samples.mask: "),
    ({"variable": "lnd"}, "samples.mask.variable: no variable 'lnd'"),
    ({"variable": "level_mask"}, "samples.mask.variable: 'level_mask' has the dimension 'level', "
                                 "which is none of \"window\": time, lat"),
    ({"variable": "land"}, "samples.mask.variable: 'land' has the dimension 'lon', which is none "
                           "of \"window\": time, lat"),
    ({"variable": "scalar"},
     "samples.mask.variable: 'scalar' has no dimension; it needs one of \"window\": time, lat"),
    ({"variable": "name"}, "samples.mask.variable: 'name' is "),
    ({"variable": "wet", "fraction": 0.5}, "samples.mask.fraction: expected a list of two shares"),
    ({"variable": "wet", "fraction": [0.5, 1.5]}, "samples.mask.fraction[1]: 1.5 is not a share"),
    ({"variable": "wet", "fraction": [0.7, 0.5]},
     "samples.mask.fraction: the least share, 0.7, is more than the most, 0.5"),
    ({"variable": "wet", "at": "middle"}, "samples.mask.at: 'middle' is not center"),
    ({"variable": "wet", "at": "center", "fraction": [0, 1]}, "samples.mask.at: one cell has no"),
    ({"variable": "wet", "above": 2, "below": 1},
     "samples.mask.below: 1 is not more than \"above\", 2"),
    ({"variable": "wet", "over": 2}, "samples.mask: unknown key 'over'"),
    ({"variable": "wet", "above": 1}, "samples.mask: no sample is left: of 51 windows the share of "
                                      "marked cells is not 1; 'wet' marks 0 of 17 cells"),
])
def test_mistakes(batchfs, store, tmp_path, mask, message):
    path, _ = store
    run = brute_force.View(batchfs, tmp_path,
                           path, {"variables": ["t"], "window": {"time": 1, "lat": 4},
                                  "samples": {"mask": mask}})
    assert message in run.refusal()


def test_a_mask_beyond_the_memory(batchfs, tmp_path):
    ds = xr.Dataset({"t": (("lat", "lon"), np.zeros((3000, 3000), "f4")),
                     "land": (("lat", "lon"), np.ones((3000, 3000))),
                     "whole": (("lat", "lon"), np.ones((3000, 3000)))})
    ds.to_zarr(tmp_path / "s.zarr", zarr_format=3,
               encoding={n: {"chunks": (3000, 3000) if n == "whole" else (500, 500)} for n in ds})
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"lat": 500, "lon": 500}, "batch": 1,
                                "tensors": {"x": {"variables": ["t"]}},
                                "samples": {"mask": {"variable": "land"}}}))
    for memory in ("256M", "64M"):  # 69 MB of values
        assert json.loads(batchfs.bytes("plan", tmp_path / "s.zarr", "--view", view, "--json",
                                        "--memory", memory))["samples"] == 36
    line = batchfs.refusal("plan", tmp_path / "s.zarr", "--view", view, "--memory", "32M")
    assert ("samples.mask: the cells and windows take 35.5 MB of memory or more, and the lists of "
            "a view get 32.0 MB of 32.0 MB" in line)
    view.write_text(view.read_text().replace("land", "whole"))
    line = batchfs.refusal("plan", tmp_path / "s.zarr", "--view", view, "--memory", "64M")
    assert ("samples.mask.variable: the values of 'whole' in a row of its chunks take 69.7 MB of "
            "memory or more, and the lists of a view get 48.0 MB of 64.0 MB" in line)


@pytest.mark.not_sanitized("it takes several times the memory")
def test_a_mask_along_time_takes_few_bytes_a_position(tmp_path):
    """The peak of a view with a mask of millions of positions, over that of the view without it."""
    length = 4_000_000
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("t", shape=(length,), chunks=(1 << 18,), dtype="i1",
                       dimension_names=["time"])
    group.create_array("wet", shape=(length,), chunks=(1 << 18,), dtype="f8",
                       dimension_names=["time"])[:] = 1
    view = {"variables": ["t"], "window": {"time": 1}, "batch": 16}
    peaks = []
    for samples in ({}, {"samples": {"mask": {"variable": "wet"}}}):
        (tmp_path / "v.json").write_text(json.dumps(view | samples))
        taken = measure(PROGRAM, "plan", tmp_path / "s.zarr", "--view", tmp_path / "v.json",
                        "--memory", "256M")
        assert taken.status == 0, taken.error
        peaks.append(taken.peak)
    assert peaks[1] - peaks[0] < 12 * length, peaks  # 4 for sums, 4 for those of starts, and bits
