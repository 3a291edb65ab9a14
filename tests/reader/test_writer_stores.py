"""libbatchfs_writer with other stores and views: labels of every kind, samples that do not form a
grid, groups, channels made on the fly."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

from prediction_stores import open_
from test_writer_library import Case, program, pytestmark  # noqa: F401 (fixtures)

T, S, Z = 12, 5, 4


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Dimensions with labels of several types, and without."""
    path = tmp_path_factory.mktemp("labelled") / "s.zarr"
    rng = np.random.default_rng(3)
    dims, shape = ("time", "station", "lag", "bin"), (T, S, Z, 6)
    ds = xr.Dataset({"a": (dims, rng.normal(size=shape).astype("f4"), {"units": "m"}),
                     "b": (dims, rng.normal(size=shape).astype("f4"), {"units": "s"}),
                     "wet": (dims[:2], rng.random((T, S)) > 0.5), "holes": (
                         dims[:2], np.where(rng.random((T, S)) > 0.8, np.nan, 1).astype("f4"))},
                    {"time": ("time", xr.date_range("2001-02-26", periods=T,
                                                    freq="D", calendar="noleap", use_cftime=True),
                              {"axis": "T"}),
                     "station": ("station", np.array(["Åre", "Basel", "Chur", "Davos", "Evolène"])),
                     "lag": ("lag", np.arange(Z) * np.timedelta64(90, "m").astype("m8[ns]"))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=3, encoding={"a": {"chunks": (3, S, Z, 6)},
                                                  "lag": {"units": "minutes", "dtype": "int64"}})
        ds.isel(station=slice(2)).to_zarr(path, zarr_format=3, group="few/south", mode="a")
    return path


@pytest.fixture
def case(program, labelled, tmp_path):  # noqa: F811
    return lambda view, **options: Case(program, labelled, tmp_path, {"batch": {"size": 3}} | view,
                                        **options)


def test_labels_of_every_type(case, labelled):
    written = case({"window": {"time": 1, "station": 2}, "variables": ["a"]}).written()
    with xr.open_zarr(labelled) as truth:
        xr.testing.assert_equal(written.a, truth.a.isel(station=slice(4)).load()
                                    if written.sizes["station"] == 4
                                    else truth.a.where(truth.station != "Evolène").load())
        assert (written.time.dt.calendar == "noleap"
                and list(written.station.values) == list(truth.station.values))
        assert np.array_equal(written.lag.values, truth.lag.values)


def test_leads_of_a_calendar_without_datetimes(case, labelled):
    written = case({"window": {"time": 1},
                    "tensors": {"y": {"variables": ["a"], "offsets": {"time": [1, 2]}}}},
                   time="lead").written()
    with xr.open_zarr(labelled) as truth:
        assert (written.init_time.dt.calendar == "noleap"
                and np.array_equal(written.init_time.values, truth.time.values[:T - 2]))
        for lead in (0, 1):
            assert np.array_equal(written.a.isel(lead_time=lead).values,
                                  truth.a.values[1 + lead:T - 1 + lead])


@pytest.mark.parametrize("view, options, wanted", [
    ({"window": {"bin": {"size": 3, "stride": 1, "wrap": True}}, "variables": ["b"]},
     {"overlap": "cosine"}, lambda s: s.b),
    ({"window": {"time": {"size": 5, "stride": 2}}, "variables": ["wet"]}, {"overlap": "trim"},
     lambda s: s.wet[:11]),
    ({"window": {"time": 1},
      "tensors": {"t": {"variables": ["a"], "dims": ["bin", "lag", "time", "station"]}}},
     {"chunks": {"bin": 6, "lag": 1}}, lambda s: s.a),
    ({"window": {"time": 1},
      "tensors": {"t": {"variables": ["a", "b"], "stack": "c", "dims": ["lag", "c"]}}},
     {"codec": "none"}, lambda s: s[["a", "b"]]),
    ({"window": {"time": 2}, "variables": ["a"], "dtype": "float16"}, {},
     lambda s: s.a.astype("f2")),
    ({"window": {"time": 2}, "variables": ["a"],
      "select": {"station": ["Chur", "Basel"], "bin": {"from": "#1", "to": "#4"}}},
     {}, lambda s: s.a.sel(station=["Chur", "Basel"]).isel(bin=slice(1, 4))),
    ({"window": {"time": 1}, "variables": ["a"], "select": {"station": "Davos"}},
     {"dtype": "float64"}, lambda s: s.a.sel(station="Davos").astype("f8")),
    ({"window": {"time": 1}, "variables": ["a"], "group": "few/south"}, {},
     lambda s: s.a.isel(station=slice(2))),
    ({"window": {"time": {"size": 3, "stride": 2}}, "variables": ["a"],
      "batch": {"size": 4, "remainder": "drop"}}, {"overlap": "mean"}, lambda s: s.a[:9]),
    ({"window": {"time": {"size": 3, "stride": 1}}, "variables": ["a"],
      "batch": {"size": 4, "remainder": "pad"}}, {"overlap": "mean"}, lambda s: s.a),
    ({"window": {"time": 1}, "variables": ["a"], "batch": {"size": 12}}, {}, lambda s: s.a),
    ({"window": {"time": 1}, "tensors": {"t": {
        "variables": ["b", {"make": "difference", "of": ["a", "b"], "name": "d"}], "stack": "c"}}},
     {"dtype": "float32"}, lambda s: s[["b"]].assign(d=s.a - s.b)),
    ({"window": {"time": {"size": 2, "stride": 1}}, "variables": ["holes"],
      "missing": {"nan": "skip"}}, {"overlap": "last"}, lambda s: s.holes.where(full(s))),
    ({"window": {"time": 1}, "tensors": {"t": {
        "variables": ["b", {"make": "difference", "of": ["a", "b"], "name": "d"}], "stack": "c"}},
      "normalize": {"method": "minmax", "variables": ["b", "d"],
                    "statistics": {"b": {"min": -4, "max": 4}, "d": {"min": -5.5, "max": 7}}}},
     {"denormalize": True}, lambda s: s[["b"]].assign(d=s.a - s.b)),
    ({"window": {"bin": {"size": 4, "stride": 3, "wrap": True}, "time": {"size": 2}},
      "variables": ["a"], "select": {"lag": {"from": "#1", "to": "#3"}},
      "normalize": {"method": "robust", "statistics": {"a": {"dims": ["lag", "bin"], **{
          key: (shift + np.arange(12).reshape(2, 6) / 8).tolist()
          for key, shift in (("median", 0.3), ("p25", -1), ("p75", 1.1))}}}}},
     {"denormalize": True, "overlap": "trim"}, lambda s: s.a.isel(lag=slice(1, 3))),
])
def test_the_input_comes_back(case, labelled, view, options, wanted):
    """Elements that no window has are left out of what is wanted: they are NaN, or 0."""
    written = case(view, **options).written()
    with xr.open_zarr(labelled) as truth:
        wanted = wanted(truth.load())
    for name, values in (wanted.to_dataset() if isinstance(wanted, xr.DataArray)
                         else wanted).data_vars.items():
        got = written[name].transpose(*values.dims)
        assert got.dtype == values.dtype
        inside = tuple(slice(0, length) for length in values.shape)
        np.testing.assert_allclose(got.values[inside].astype("f8"), values.values.astype("f8"),
                                   rtol=1e-5, atol=2e-6)
        outside = got.values.copy()
        outside[inside] = 0
        rest = np.ones(outside.shape, bool)
        rest[inside] = False
        assert (np.isnan(outside[rest]) if outside.dtype.kind == "f" else outside[rest] == 0).all()


def full(s):
    """Elements of windows of two steps without missing values."""
    whole = s.holes.notnull().all("station")
    pairs = whole.values[:-1] & whole.values[1:]
    return xr.DataArray(np.append(pairs, False) | np.insert(pairs, 0, False), dims="time")


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
    assert written.forecast.attrs == {"units": "s"} and written.forecast.dims == (
        "time", "station", "lag", "bin")
