"""The parts of a split in a mount: a view each, which share no position."""

import json
import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr

TIMES = pd.date_range("2015-01-01", "2018-12-31", freq="5D")
SPLIT = {"parts": {"train": "rest", "val": [{"time": {"from": "2016", "to": "2016"}}],
                   "test": [{"time": {"from": "2018-03"}}]},
         "gap": {"time": "12d"},
         "with": {"val": {"order": {"shuffle": "none"}, "batch": {"size": 5}}}}
VIEW = {"window": {"time": {"size": 2, "stride": 1}}, "batch": {"size": 8},
        "order": {"shuffle": "global", "seed": 1}}


@pytest.fixture(scope="module")
def views(mount_at, tmp_path_factory):
    folder = tmp_path_factory.mktemp("splits")
    values = np.arange(len(TIMES) * 3, dtype="i4").reshape(-1, 3)
    xr.Dataset({"a": (("time", "x"), values)}, {"time": TIMES}).to_zarr(
        folder / "s.zarr", zarr_format=2)
    split = {"era": {**VIEW, "name": "era", "split": SPLIT},
             "cv": {**VIEW, "name": "cv",
                    "split": {"blocks": {"time": "60d"}, "folds": 2, "seed": 3}},
             "whole": {**VIEW, "name": "whole"}}
    return mount_at(folder / "s.zarr", folder / "mnt", split) / "views"


def positions(view):
    schema = json.loads((view / "schema.json").read_text())
    batches = [np.load(view / "epoch-0000" / f"batch-{b:06}.npy") for b in range(schema["batches"])]
    rows = np.concatenate(batches)[:, :, 0] // 3
    assert len(rows) == schema["samples"]
    return rows


def test_each_part_is_a_view(views):
    assert sorted(os.listdir(views)) == ["cv-fold-0-train", "cv-fold-0-val", "cv-fold-1-train",
                                         "cv-fold-1-val", "era-test", "era-train", "era-val",
                                         "whole"]
    parts = {part: positions(views / f"era-{part}") for part in ("train", "val", "test")}
    assert set(TIMES[parts["val"].ravel()].year) == {2016}
    assert parts["val"].tolist() == sorted(parts["val"].tolist())  # its own order
    held = {part: set(rows.ravel().tolist()) for part, rows in parts.items()}
    assert not held["train"] & held["val"] and not held["train"] & held["test"]
    distance = min(abs(TIMES[p] - TIMES[q]) for p in held["train"]
                   for q in held["val"] | held["test"])
    assert distance > pd.Timedelta("12d")
    for fold in range(2):
        train, val = (set(positions(views / f"cv-fold-{fold}-{part}").ravel().tolist())
                      for part in ("train", "val"))
        assert not train & val


def test_view_json_makes_the_part_again(views, tmp_path, good):
    view = json.loads((views / "era-val" / "view.json").read_text())
    assert (view["name"] == "era-val" and view["split"]["part"] == "val"
            and view["batch"]["size"] == 5)
    (tmp_path / "view.json").write_text(json.dumps(view))
    store = views.parent.parent / "s.zarr"
    plan = json.loads(good("plan", store, "--view", tmp_path / "view.json", "--json"))
    assert plan["view"] == "era-val" and plan["samples"] == len(positions(views / "era-val"))
    assert json.loads((views / "era-val" / "schema.json").read_text())["view"] == "era-val"


def test_ranks_take_turns_in_a_part(views):
    batch = np.load(views / "era-train" / "rank-1-of-2" / "epoch-0003" / "batch-000002.npy")
    assert np.array_equal(batch, np.load(views / "era-train" / "epoch-0003" / "batch-000005.npy"))
