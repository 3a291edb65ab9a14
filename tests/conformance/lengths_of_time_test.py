"""Lengths of time: one grammar in selections and views, and messages that name them as they are
written."""

import json

import numpy as np
import pytest
import xarray as xr


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("lengths") / "s.zarr"
    xr.Dataset({"a": (("lead_time", "x"), np.arange(24.0).reshape(8, 3))},
               {"lead_time": (np.arange(8) * 30).astype("m8[m]").astype("m8[ns]")}).to_zarr(path)
    return path


def view_file(folder, view):
    (folder / "view.json").write_text(json.dumps({"window": {"lead_time": 1}, "variables": ["a"]}
                                                 | view))
    return folder / "view.json"


@pytest.mark.parametrize("text, row",
                         [("60m", 2), ("60min", 2), ("1h", 2), ("0D", 0), ("0d", 0), ("0w", 0),
                          ("0W", 0), ("1800s", 1), ("1800000ms", 1), ("1.5h", 3)])
def test_selections_take_every_unit_of_views(batchfs, tmp_path, store, text, row):
    assert batchfs.npy("cat", store, "a", "--select", f"lead_time={text}")[0] == row * 3
    file = view_file(tmp_path, {"select": {"lead_time": [text]}})
    assert batchfs.npy("batch", store, "--view", file)[0, 0, 0] == row * 3
    if "." not in text:
        tensor = {"variables": ["a"], "offsets": {"lead_time": [text]}}
        file = tmp_path / "offsets.json"
        file.write_text(json.dumps({"window": {"lead_time": 1}, "tensors": {"x": tensor}}))
        assert batchfs.npy("batch", store, "--view", file)[0, 0, 0] == row * 3


@pytest.mark.parametrize("unit", ["M", "y", "mo", "minutes", "min2"])
def test_other_units_are_refused(batchfs, store, unit):
    assert "is not a length of time; write 6h, 30min or 2d" in batchfs.refusal(
        "cat", store, "a", "--select", f"lead_time=1{unit}")


def test_messages_name_lengths_of_time(batchfs, tmp_path, store):
    message = batchfs.refusal("cat", store, "a", "--select", "lead_time=45min")
    assert "goes from 0h to 210min; the nearest is 30min" in message
    message = batchfs.refusal("plan", store, "--view",
                              view_file(tmp_path, {"select": {"lead_time": ["9h"]}}))
    assert "goes from 0h to 210min" in message and "0000000" not in message


def test_pages_name_lengths_of_time(batchfs, tmp_path):
    xr.Dataset({"u": (("lead_time", "y", "x"),
                      np.random.default_rng(1).random((5, 6, 7)).astype("f4"))},
               {"lead_time": (np.arange(5) * np.timedelta64(6, "h")).astype("m8[ns]")}).to_zarr(
        tmp_path / "s.zarr")
    batchfs.bytes("show", tmp_path / "s.zarr", "-o", tmp_path / "page.html")
    assert "lead_time 12h (3 of 5)" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("order, meant",
                         [("shuffle", "global"), ("random", "global"), ("true", "global"),
                          ("sequential", "none"), ("chunks", "block"), ("block", "block"),
                          ("none", "none"), ("anything", "global")])
def test_an_order_that_is_a_string(batchfs, tmp_path, store, order, meant):
    message = batchfs.refusal("plan", store, "--view", view_file(tmp_path, {"order": order}))
    assert f'order: expected an object; write {{"shuffle": "{meant}"}}' in message
    batchfs.bytes("plan", store, "--view", view_file(tmp_path, {"order": {"shuffle": meant}}))


@pytest.mark.parametrize("missing, meant", [("drop", "skip"), ("zero", "fill"), ("fill", "fill"),
                                            ("anything", "fill")])
def test_a_rule_for_missing_values_that_is_a_string(batchfs, tmp_path, store, missing, meant):
    message = batchfs.refusal("plan", store, "--view", view_file(tmp_path, {"missing": missing}))
    assert f'missing: expected an object; write {{"nan": "{meant}"}}' in message
    batchfs.bytes("plan", store, "--view", view_file(tmp_path, {"missing": {"nan": meant}}))


def test_lists(batchfs, tmp_path):
    times = np.datetime64("2020-01-01", "ns") + np.arange(8) * np.timedelta64(6, "h")
    path = tmp_path / "s.zarr"
    xr.Dataset({"a": (("time",), np.arange(8.0))}, {"time": times}).to_zarr(path)

    def file(text, **samples):
        (tmp_path / "l.csv").write_text(text)
        (tmp_path / "v.json").write_text(json.dumps(
            {"window": {"time": 1}, "variables": ["a"], "samples": {"list": "l.csv"} | samples}))
        return tmp_path / "v.json"

    for time in ("2020-01-01T06:00:00Z", "2020-01-01T06:00:00+00:00", "2020-01-01 06:00+00:00"):
        assert batchfs.npy("batch", path, "--view", file(f"time\n{time}\n"))[0, 0] == 1
    for time in ("2020-01-01+00:00", "2020-01-01T06:00:00+01:00", "+00:00"):
        assert "is not a date" in batchfs.refusal("plan", path, "--view", file(f"time\n{time}\n"))
    for separator, shown in ((";", "time;rain"), ("\t", "time rain")):
        message = batchfs.refusal("plan", path, "--view",
                                  file(f"time{separator}rain\n2020-01-01T06:00{separator}1\n"))
        assert f"the columns of '{shown}' are not separated by ','" in message
    message = batchfs.refusal("plan",
                              path, "--view", file("time\n2020-01-01T03:00\n", snap="nearest",
                                                   tolerance={"time": "1h"}))
    assert "the nearest is 3h away" in message
