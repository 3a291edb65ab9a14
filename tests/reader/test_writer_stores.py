"""libbatchfs_writer with other stores and views: labels of every kind, samples that are no grid, groups, channels made on the fly."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

from prediction_stores import open_
from test_writer_library import Case, noise, program, pytestmark  # noqa: F401 (fixtures)

T, S, Z = 12, 5, 4


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Dimensions with labels of several types, and without."""
    path = tmp_path_factory.mktemp("labelled") / "s.zarr"
    rng = np.random.default_rng(3)
    dims, shape = ("time", "station", "lag", "bin"), (T, S, Z, 6)
    ds = xr.Dataset(
        {"a": (dims, rng.normal(size=shape).astype("f4"), {"units": "m"}), "b": (dims, rng.normal(size=shape).astype("f4"), {"units": "s"}),
         "wet": (dims[:2], rng.random((T, S)) > 0.5),
         "holes": (dims[:2], np.where(rng.random((T, S)) > 0.8, np.nan, 1).astype("f4"))},
        {"time": ("time", xr.date_range("2001-02-26", periods=T, freq="D", calendar="noleap", use_cftime=True), {"axis": "T"}),
         "station": ("station", np.array(["Åre", "Basel", "Chur", "Davos", "Evolène"])),
         "lag": ("lag", np.arange(Z) * np.timedelta64(90, "m").astype("m8[ns]"))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=3, encoding={"a": {"chunks": (3, S, Z, 6)}, "lag": {"units": "minutes", "dtype": "int64"}})
        ds.isel(station=slice(2)).to_zarr(path, zarr_format=3, group="few/south", mode="a")
    return path


@pytest.fixture
def case(program, labelled, tmp_path):  # noqa: F811
    return lambda view, **options: Case(program, labelled, tmp_path, {"batch": {"size": 3}} | view, **options)


def test_labels_of_every_type(case, labelled):
    written = case({"window": {"time": 1, "station": 2}, "variables": ["a"]}).compare()
    with xr.open_zarr(labelled) as truth:
        xr.testing.assert_equal(written.a, truth.a.isel(station=slice(4)).load() if written.sizes["station"] == 4 else
                                truth.a.where(truth.station != "Evolène").load())
        assert written.time.dt.calendar == "noleap" and list(written.station.values) == list(truth.station.values)
        assert np.array_equal(written.lag.values, truth.lag.values)


def test_leads_of_a_calendar_without_datetimes(case):
    case({"window": {"time": 1}, "tensors": {"y": {"variables": ["a"], "offsets": {"time": [1, 2]}}}}, time="lead").compare()


@pytest.mark.parametrize("view, options", [
    ({"window": {"bin": {"size": 3, "stride": 1, "wrap": True}}, "variables": ["b"]}, {"overlap": "cosine"}),
    ({"window": {"time": {"size": 5, "stride": 2}}, "variables": ["wet"]}, {"overlap": "trim"}),
    ({"window": {"time": 1}, "tensors": {"t": {"variables": ["a"], "dims": ["bin", "lag", "time", "station"]}}}, {"chunks": {"bin": 6, "lag": 1}}),
    ({"window": {"time": 1}, "tensors": {"t": {"variables": ["a", "b"], "stack": "c", "dims": ["lag", "c"]}}}, {"codec": "none"}),
    ({"window": {"time": 2}, "variables": ["a"], "dtype": "float16"}, {}),
    ({"window": {"time": 2}, "variables": ["a"], "select": {"station": ["Chur", "Basel"], "bin": {"from": "#1", "to": "#4"}}}, {}),
    ({"window": {"time": 1}, "variables": ["a"], "select": {"station": "Davos"}}, {"dtype": "float64"}),
    ({"window": {"time": 1}, "variables": ["a"], "group": "few/south"}, {}),
    ({"window": {"time": {"size": 3, "stride": 2}}, "variables": ["a"], "batch": {"size": 4, "remainder": "drop"}}, {"overlap": "mean"}),
    ({"window": {"time": {"size": 3, "stride": 1}}, "variables": ["a"], "batch": {"size": 4, "remainder": "pad"}}, {"overlap": "mean"}),
    ({"window": {"time": 1}, "variables": ["a"], "batch": {"size": 12}}, {}),
    ({"window": {"time": 1}, "tensors": {"t": {"variables": ["b", {"make": "difference", "of": ["a", "b"]}], "stack": "c"}}}, {"dtype": "float32"}),
    ({"window": {"time": {"size": 2, "stride": 1}}, "variables": ["holes"], "missing": {"nan": "skip"}}, {"overlap": "last"}),
])
def test_both_ways_write_the_same(case, view, options):
    case(view, predict=None if "wet" in str(view) else noise_of(view), **options).compare()


def noise_of(view):
    return noise(next(iter(view.get("tensors", view.get("variables")))))


def test_parts_of_a_split(case):
    split = {"parts": {"train": "rest", "test": [{"time": {"from": "#8", "to": "#12"}}]}}
    made = case({"window": {"time": 1}, "variables": ["a"]})
    made.view["split"] = split
    (made.folder / "view.json").write_text(json.dumps(made.view))
    done = made.run(made.folder / "o", part="test", kill=0)
    assert done.returncode == -9  # the part has batches
    assert "split" in made.run(made.folder / "o2").stderr


def test_the_output_says_what_it_is(case):
    written = open_(case({"window": {"time": 1}, "variables": ["b"]}, name="forecast").by_c())
    assert written.forecast.attrs == {"units": "s"} and written.forecast.dims == ("time", "station", "lag", "bin")
