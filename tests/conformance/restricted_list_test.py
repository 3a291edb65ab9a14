""""samples.list" together with "where", "spacing", "mask" and a split: the rows that all of them
leave, in their order."""

import json

import brute_force
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from mask_test import marked, passes

T, Y, X = 40, 12, 10
DAYS = [d for d in range(T + 2) if d not in (13, 29)]  # two gaps
TIMES = pd.Timestamp("2001-01-20") + pd.to_timedelta(DAYS, "D")
WINDOW = {"time": 2, "lat": 3, "lon": 2}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(8)
    ds = xr.Dataset({"t": (("time", "lat", "lon"), rng.random((T, Y, X)).astype("f4")),
                     "land": (("lat", "lon"), (rng.random((Y, X)) < 0.8).astype("f4")),
                     "wet": (("time",), rng.random(T) < 0.7),
                     "rain": (("time", "lat", "lon"), rng.random((T, Y, X)))},
                    {"time": TIMES, "lat": np.linspace(60, 5, Y), "lon": np.arange(X) * 2.0})
    path = tmp_path_factory.mktemp("restricted") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, encoding={"t": {"chunks": (7, 5, 6)}})
    return path, ds


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    every = np.column_stack([rng.integers(0, T - 1, 300), rng.integers(0, Y - 2, 300),
                             rng.integers(0, X - 1, 300)])
    every[17] = every[4]
    return every


def times(row):
    return TIMES[row[0]:row[0] + 2]


RESTRICTIONS = {
    "where": ({"where": {"time": {"month": 2}, "lat": {"from": 45, "to": 10}}},
              lambda ds, row: times(row)[0].month == 2 and 10 <= ds["lat"][row[1]] <= 45),
    "footprint": ({"where": {"time": {"month": 1}, "of": "footprint"}},
                  lambda ds, row: all(t.month == 1 for t in times(row))),
    "spacing": ({"spacing": {"time": "1D"}},
                lambda ds, row: times(row)[1] - times(row)[0] == pd.Timedelta("1D")),
    "mask": ({"mask": {"variable": "land", "fraction": [0.8, 1]}},
             lambda ds, row: row_passes(ds, {"variable": "land", "fraction": [0.8, 1]}, row)),
    "mask along one dimension": ({"mask": {"variable": "wet"}},
                                 lambda ds, row: row_passes(ds, {"variable": "wet"}, row)),
    "mask along all": ({"mask": {"variable": "rain", "above": 0.3, "fraction": [0.6, 1]}},
                       lambda ds, row: row_passes(ds, {"variable": "rain", "above": 0.3,
                                                       "fraction": [0.6, 1]}, row)),
}
VIEW = {"variables": ["t"], "window": WINDOW, "batch": 16}


def row_passes(ds, mask, row):
    return passes(ds, VIEW, mask, marked(ds, mask), dict(zip(WINDOW, map(int, row))))


# For each split: its keys, and the part that contains the footprint of a row.
SPLITS = {
    "time": ({"parts": {"train": [{"time": {"to": "2001-01-25"}}], "val": "rest"},
              "gap": {"time": 2}}, lambda ds, row: part_of(
                  [TIMES[row[0] + i] < pd.Timestamp("2001-01-26") for i in range(2)])),
    "box": ({"parts": {"train": "rest",
                       "val": [{"lat": {"from": 40, "to": 5}, "lon": {"from": 8, "to": 18}}]}},
            lambda ds, row: part_of([not (5 <= ds["lat"][row[1] + i] <= 40
                                          and 8 <= ds["lon"][row[2] + j] <= 18)
                                     for i in range(3) for j in range(2)])),
}


def part_of(in_train):
    return "train" if all(in_train) else "val" if not any(in_train) else None


def starts(batchfs, tmp_path, path, run_keys, part=None):
    file = tmp_path / "v.json"
    file.write_text(json.dumps(run_keys))
    options = ("--part", part) if part else ()
    plan = json.loads(batchfs.bytes("plan", path, "--view", file, "--json", *options))
    found = []
    for b in range(plan["batches"]):
        found += json.loads(batchfs.bytes("batch", path, "--view", file, "--batch", b, "--format",
                                          "json", *options))["starts"]
    return plan, found


@pytest.mark.parametrize("split", [None, *SPLITS])
@pytest.mark.parametrize(
    "restrictions", [["where"], ["footprint"], ["spacing"], ["mask"], ["mask along one dimension"],
                     ["mask along all"], [], ["where", "spacing", "mask"],
                     ["spacing", "mask along one dimension"], ["footprint", "mask along all"]],
    ids="-".join)
def test_rows_that_are_left(batchfs, store, rows, tmp_path, restrictions, split):
    path, ds = store
    np.save(tmp_path / "rows.npy", rows)
    samples = {"list": "rows.npy"}
    left = list(map(tuple, rows.tolist()))
    dropped = {}
    order = {"spacing": 0, "footprint": 1, "where": 1, "mask along one dimension": 2, "mask": 4,
             "mask along all": 4}
    steps = [(order[name], name, RESTRICTIONS[name][1]) for name in restrictions]
    for name in restrictions:
        samples |= RESTRICTIONS[name][0]
    part = None
    if split:
        part = "val" if split == "time" else "train"
        steps.append((3, "split", lambda ds, row: SPLITS[split][1](ds, row) == part))
    if split == "time":  # no row within 2 positions of the other part, which ends with position 5
        steps.append((3.5, "gap", lambda ds, row: row[0] - 5 > 2))
    for _, name, keep in sorted(steps, key=lambda step: step[0]):
        after = [row for row in left if keep(ds, row)]
        dropped[{"footprint": "where"}.get(name, name.split()[0])] = len(left) - len(after)
        left = after
    assert left, "the test needs rows that are left"
    view = VIEW | {"samples": samples} | ({"split": SPLITS[split][0]} if split else {})
    plan, found = starts(batchfs, tmp_path, path, view, part)
    assert found == [list(row) for row in left]
    assert (plan["windows"] == len(rows) and plan["samples"] == len(left)
            and plan["dropped"] == dropped)


def test_values_labels_weights_and_orders(batchfs, store, rows, tmp_path):
    path, ds = store
    frame = pd.DataFrame({"time": TIMES[rows[:, 0]], "lat": ds["lat"].values[rows[:, 1]],
                          "lon": ds["lon"].values[rows[:, 2]], "number": np.arange(len(rows)),
                          "weight": np.linspace(0, 1, len(rows))})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    kept = [i for i, row in enumerate(rows) if times(row)[0].month == 2]
    for order in ({"shuffle": "none"}, {"shuffle": "global", "seed": 3},
                  {"shuffle": "block", "seed": 3}):
        view = VIEW | {"order": order, "samples": {"list": "rows.csv", "labels": ["number"],
                                                   "where": {"time": {"month": 2}}}}
        run = brute_force.View(batchfs, tmp_path, path, view)
        numbers = []
        for b in range(run.plan()["batches"]):
            mine = run.tensor("number", b)
            numbers += mine.tolist()
            expected = [brute_force.take(ds, VIEW, dict(zip(WINDOW, map(int, rows[i]))))["t"][0]
                        for i in mine]
            np.testing.assert_array_equal(run.tensor("t", b), np.stack(expected))
        assert sorted(numbers) == kept and (numbers == kept) == (order["shuffle"] == "none")
    view["samples"] |= {"weights": {"column": "weight"}}
    run = brute_force.View(batchfs, tmp_path, path, view)
    drawn = np.concatenate([run.tensor("number", b) for b in range(run.plan()["batches"])])
    counts = np.bincount(drawn, minlength=len(rows))
    exact = frame["weight"].where(frame.index.isin(kept), 0)
    exact = exact / exact.sum() * len(kept)
    assert (np.abs(counts - exact) < 1).all(), "systematic resampling of the rows that are left"


def test_the_parts_of_a_list_do_not_leak(batchfs, store, rows, tmp_path):
    path, _ = store
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "v.json").write_text(
        json.dumps(VIEW | {"samples": {"list": "rows.npy"}, "split": SPLITS["box"][0]}))
    found = {part: starts(batchfs, tmp_path, path, json.loads((tmp_path / "v.json").read_text()),
                          part)[1] for part in ("train", "val")}
    assert found["train"] and found["val"]
    assert not {tuple(s) for s in found["train"]} & {tuple(s) for s in found["val"]}
    plan = json.loads(batchfs.bytes("plan", path, "--view", tmp_path / "v.json", "--json"))
    split = plan["split"]
    assert split["leak_check"]["shared"] == 0
    assert {name: part["samples"] for name, part in plan["parts"].items()} == {
        name: len(rows) for name, rows in found.items()}
    assert (sum(part["windows"] for part in split["parts"].values())
            + split["straddling"] == plan["windows"] == len(rows))


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    """The store with values missing in places, in few of the steps."""
    rng = np.random.default_rng(5)
    values = rng.random((T, Y, X)).astype("f4")
    values[rng.random((T, Y, X)) < 0.12] = np.nan
    values[20:30] = 1
    ds = xr.Dataset({"t": (("time", "lat", "lon"), values),
                     "land": (("lat", "lon"), (rng.random((Y, X)) < 0.8).astype("f4"))},
                    {"time": TIMES, "lat": np.linspace(60, 5, Y), "lon": np.arange(X) * 2.0})
    path = tmp_path_factory.mktemp("holes") / "s.zarr"
    ds.to_zarr(path, zarr_format=3, encoding={"t": {"chunks": (7, 5, 6)}})
    return path, ds


def window_at(ds, row):
    return ds["t"].values[row[0]:row[0] + 2, row[1]:row[1] + 3, row[2]:row[2] + 2]


@pytest.mark.parametrize("at_most", [0, 0.1, 0.2])
@pytest.mark.parametrize("restrictions, split",
                         [([], None), (["where"], None), (["spacing", "mask"], None),
                          (["mask"], "time"), ([], "box")])
def test_rows_with_missing_values(batchfs, holes, rows, tmp_path, restrictions, split, at_most):
    path, ds = holes
    np.save(tmp_path / "rows.npy", rows)
    samples, left = {"list": "rows.npy"}, list(map(tuple, rows.tolist()))
    for name in restrictions:
        samples |= RESTRICTIONS[name][0]
        left = [row for row in left if RESTRICTIONS[name][1](ds, row)]
    part = "train" if split else None
    if split:
        left = [row for row in left if SPLITS[split][1](ds, row) == part]
    kept = [row for row in left if np.isnan(window_at(ds, row)).mean() <= at_most]
    assert 0 < len(kept) < len(left)
    view = VIEW | {"samples": samples, "missing": {"nan": "skip"}
                       | ({"at_most": at_most} if at_most else {})}
    view |= {"split": {k: v for k, v in SPLITS[split][0].items() if k != "gap"}} if split else {}
    plan, found = starts(batchfs, tmp_path, path, view, part)
    assert found == [list(row) for row in kept]
    assert (plan["windows"] == len(rows) and plan["samples"] == len(kept)
            and plan["dropped"]["missing"] == len(left) - len(kept))


def test_labels_weights_orders_and_ranks_of_rows_without_missing_values(
        batchfs, holes, rows, tmp_path):
    path, ds = holes
    frame = pd.DataFrame({"time": TIMES[rows[:, 0]], "lat": ds["lat"].values[rows[:, 1]],
                          "lon": ds["lon"].values[rows[:, 2]], "number": np.arange(len(rows)),
                          "weight": np.linspace(0, 1, len(rows))})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    kept = [i for i, row in enumerate(rows) if not np.isnan(window_at(ds, row)).any()]
    view = VIEW | {"missing": {"nan": "skip"}, "samples": {"list": "rows.csv",
                                                           "labels": ["number"]}}
    orders = [{"shuffle": "none"}, {"shuffle": "global", "seed": 3},
              {"shuffle": "block", "seed": 3}, {"shuffle": "block", "lanes": 2, "home": True}]
    for order in orders:
        run = brute_force.View(batchfs, tmp_path, path, view | {"order": order})
        numbers = []
        batches = run.plan()["batches"]
        for b in range(batches):
            mine = run.tensor("number", b)
            numbers += mine.tolist()
            np.testing.assert_array_equal(run.tensor("t", b),
                                          np.stack([window_at(ds, rows[i]) for i in mine]))
        assert sorted(numbers) == kept and (numbers == kept) == (order["shuffle"] == "none")
        shared = [run.tensor("number", b // 2, "--rank", b % 2, "--world", 2).tolist()
                  for b in range(batches // 2 * 2)]
        assert sum(shared, []) == numbers[:sum(map(len, shared))]
    view["samples"] |= {"weights": {"column": "weight"}}
    run = brute_force.View(batchfs, tmp_path, path, view)
    drawn = np.concatenate([run.tensor("number", b) for b in range(run.plan()["batches"])])
    exact = frame["weight"].where(frame.index.isin(kept), 0)
    assert (np.abs(np.bincount(drawn, minlength=len(rows)) - exact / exact.sum() * len(kept))
            < 1).all()


@pytest.mark.parametrize("more", [{"samples": {"where": {"time": {"month": 1}}}},
                                  {"split": SPLITS["box"][0]}, {"missing": {"nan": "skip"}},
                                  {"samples": {"mask": {"variable": "land", "fraction": [0.8, 1]}},
                                   "missing": {"nan": "skip"}, "split": SPLITS["box"][0]}],
                         ids=lambda more: " ".join(more))
def test_a_file_of_weights_has_a_number_for_each_row(batchfs, holes, rows, tmp_path, more):
    """Draws are those of a column of the same numbers, in each part."""
    path, ds = holes
    weights = np.random.default_rng(4).random(len(rows))
    np.save(tmp_path / "weights.npy", weights)
    pd.DataFrame({"time": TIMES[rows[:, 0]], "lat": ds["lat"].values[rows[:, 1]],
                  "lon": ds["lon"].values[rows[:, 2]], "weight": [
                      repr(float(w)) for w in weights]}).to_csv(tmp_path / "rows.csv", index=False)
    for part in ("train", "val") if "split" in more else (None,):
        found = []
        for given in ({"column": "weight"}, "weights.npy"):
            samples = {"list": "rows.csv", "weights": given} | more.get("samples", {})
            found.append(starts(batchfs, tmp_path, path, VIEW | more
                                    | {"samples": samples, "order": {"shuffle": "global"}}, part))
        assert found[0] == found[1] and len(set(map(tuple, found[0][1]))) < len(found[0][1])


def test_a_file_of_weights_for_neither_rows_nor_samples(batchfs, store, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "weights.npy", np.ones(7))
    view = VIEW | {"samples": {"list": "rows.npy", "weights": "weights.npy",
                               "where": {"time": {"month": 2}}}}
    refusal = brute_force.View(batchfs, tmp_path, store[0], view).refusal()
    left = sum(times(row)[0].month == 2 for row in rows)
    assert (f"samples.weights: the array has 1 dimension and 7 numbers; there are {left} samples, "
            "and each needs one weight" in refusal)


def test_each_row_has_a_missing_value(batchfs, holes, tmp_path):
    path, ds = holes
    missing = np.argwhere(np.isnan(ds["t"].values[:T - 1, :Y - 2, :X - 1]))[:5]
    np.save(tmp_path / "rows.npy", missing)
    refusal = brute_force.View(
        batchfs, tmp_path, path,
        VIEW | {"samples": {"list": "rows.npy"}, "missing": {"nan": "skip"}}).refusal()
    assert "missing.nan: no sample is left: of 5 rows of the list none is without NaN" in refusal


@pytest.mark.parametrize("samples, split, message", [
    ({"where": {"time": {"month": 7}}}, None, "has month 7"),
    ({"where": {"lat": {"from": 60, "to": 58}}}, None, "samples.where.lat: no sample is left"),
    ({"mask": {"variable": "rain", "above": 0.999}}, None, "samples.mask: no sample is left"),
    ({},
     {"parts": {"val": [{"time": {"from": "2001-03-01", "to": "2001-03-02"}}], "train": "rest"}},
     "no sample is left"),
])
def test_nothing_is_left(batchfs, store, tmp_path, samples, split, message):
    path, _ = store
    np.save(tmp_path / "rows.npy", np.array([[0, 3, 3], [12, 4, 2], [5, 5, 5]]))
    view = VIEW | {"samples": {"list": "rows.npy"} | samples} | ({"split": split} if split else {})
    (tmp_path / "v.json").write_text(json.dumps(view))
    refusal = batchfs.refusal("plan", path, "--view", tmp_path / "v.json",
                              *(("--part", "val") if split else ()))
    assert message in refusal and refusal.count("\n") <= 1


def test_the_windows_of_the_grid_are_no_rows(batchfs, store, tmp_path):
    """Every start along each dimension is in the part, and no row is."""
    path, _ = store
    np.save(tmp_path / "rows.npy", np.array([[0, 0, 7], [1, 8, 0]]))
    split = {"parts": {"train": "rest",
                       "val": [{"lat": {"from": 20, "to": 5}, "lon": {"from": 14, "to": 18}}]}}
    (tmp_path / "v.json").write_text(
        json.dumps(VIEW | {"samples": {"list": "rows.npy"}, "split": split}))
    assert "no sample is left: of 2 rows of the list none lies in the part 'val'" in \
        batchfs.refusal("plan", path, "--view", tmp_path / "v.json", "--part", "val")
