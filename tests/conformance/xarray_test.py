"""Values and selections equal to xarray.open_zarr's, to the last bit."""

import json
import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

warnings.filterwarnings("ignore")
N = 12


def write(path, version, name, values, attributes, fill, dims=("x",)):
    """One array with attributes exactly as given, past xarray's own encoding."""
    root = zarr.open_group(path, mode="w", zarr_format=version)
    extra = {"dimension_names": dims} if version == 3 else {}
    array = root.create_array(name, shape=values.shape, chunks=tuple(max(1, n // 2) for n in values.shape),
                              dtype=values.dtype, fill_value=fill, **extra)
    array[...] = values
    attributes = dict(attributes)
    if version == 2:
        attributes["_ARRAY_DIMENSIONS"] = list(dims)
    array.attrs.update(attributes)


def same(batchfs, path, name, expected, *more):
    got = batchfs.npy("cat", path, name, "--decode", "cf", *more)
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape
    if expected.dtype.kind == "f":  # a NaN is a NaN
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        assert np.where(np.isnan(got), 0, got).tobytes() == np.where(np.isnan(expected), 0, expected).tobytes()
    else:
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


def numbers(dtype):
    values = np.arange(N) - (0 if np.dtype(dtype).kind == "u" else 4)
    values[[2, 7]] = 5
    return values.astype(dtype)


PACKING = [{}, {"scale_factor": 0.01}, {"add_offset": 273.15}, {"scale_factor": 0.01, "add_offset": 273.15},
           {"scale_factor": 0.1, "add_offset": 3}]
MASKS = [{}, {"missing_value": 5}, {"missing_value": [5, 3]}, {"missing_value": 5.0}]


@pytest.mark.parametrize("packing", PACKING, ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("version", [2, 3])
def test_masks_scale_and_offset(batchfs, tmp_path, version, mask, packing):
    for dtype in ("i1", "u1", "<i2", ">i2", "u2", "i4", "u4", "i8", "f2", "f4", ">f4", "f8"):
        for fill in ([None, 5, 0] if version == 2 else [0]):
            path = tmp_path / f"{dtype.strip('<>')}-{fill}-{dtype[0]=='>'}.zarr"
            write(path, version, "v", numbers(dtype), {**mask, **packing}, fill)
            expected = xr.open_zarr(path, consolidated=False)["v"].values
            same(batchfs, path, "v", expected)


@pytest.mark.parametrize("fill", [np.nan, -999.0, 5.0])
@pytest.mark.parametrize("packing", PACKING[:4], ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_float_fill_values(batchfs, tmp_path, dtype, packing, fill):
    values = numbers(dtype)
    values[3] = np.nan
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        attributes = dict(packing)
        if version == 3:
            from xarray.backends.zarr import FillValueCoder
            attributes["_FillValue"] = FillValueCoder.encode(float(fill), np.dtype(dtype))
        write(path, version, "v", values, attributes, fill if version == 2 else 0)
        same(batchfs, path, "v", xr.open_zarr(path, consolidated=False)["v"].values)


@pytest.mark.parametrize("unsigned,dtype", [("true", "i1"), ("true", "i2"), ("false", "u1"), ("false", "u2"),
                                            ("true", "u1"), ("false", "i2")])
@pytest.mark.parametrize("attributes", [{}, {"_FillValue": 5}, {"scale_factor": 0.5}, {"_FillValue": 5, "scale_factor": 0.5}],
                         ids=str)
def test_unsigned(batchfs, tmp_path, unsigned, dtype, attributes):
    values = np.array([0, 1, 5, 100, 127, 200 if dtype[0] == "u" else -56, 255 if dtype[0] == "u" else -1]).astype(dtype)
    write(tmp_path / "s.zarr", 3, "v", values, {"_Unsigned": unsigned, **attributes}, 0)
    same(batchfs, tmp_path / "s.zarr", "v", xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["v"].values)


UNITS = ["days since 1970-01-01", "hours since 1900-01-01", "hours since 1900-01-01 00:00:0.0",
         "minutes since 2000-02-29 12:34:56", "seconds since 1970-01-01T00:00:00", "days since 2000-01-01 06:00",
         "milliseconds since 1970-01-01", "hours since 2000-01-01 00:00:00 +03:00", "days since 1850-1-1",
         "seconds since 2001-01-01 00:00:00.5", "microseconds since 1999-12-31", "Hours since 1990-05-06"]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("calendar", [None, "standard", "gregorian", "proleptic_gregorian"])
def test_times(batchfs, tmp_path, units, calendar):
    attributes = {"units": units, **({"calendar": calendar} if calendar else {})}
    for dtype, values in [("i4", np.arange(N)), ("i8", np.arange(N) * 1000), ("f8", np.arange(N) + 0.25),
                          ("f4", np.arange(N) * 0.5), ("i2", np.arange(N) - 3)]:
        path = tmp_path / f"{dtype}.zarr"
        write(path, 2, "t", values.astype(dtype), attributes, None)
        same(batchfs, path, "t", xr.open_zarr(path, consolidated=False)["t"].values)


@pytest.mark.parametrize("fill", [None, 5])
def test_missing_times(batchfs, tmp_path, fill):
    for dtype in ("i4", "i8", "f8"):
        values = np.arange(N).astype(dtype)
        if dtype == "f8":
            values[4] = np.nan
        if dtype == "i8":
            values[4] = np.iinfo("i8").min
        path = tmp_path / f"{dtype}.zarr"
        write(path, 2, "t", values, {"units": "days since 2000-01-01"}, fill)
        same(batchfs, path, "t", xr.open_zarr(path, consolidated=False)["t"].values)


@pytest.mark.parametrize("units", ["hours", "days", "seconds", "milliseconds"])
@pytest.mark.parametrize("dtype", [None, "timedelta64[ns]", "timedelta64[s]", "timedelta64[ms]"])
def test_timedeltas(batchfs, tmp_path, units, dtype):
    if units == "milliseconds" and dtype == "timedelta64[s]":
        pytest.skip("xarray itself refuses to lose the milliseconds")
    attributes = {"units": units, **({"dtype": dtype} if dtype else {})}
    write(tmp_path / "s.zarr", 3, "lead", np.arange(N), attributes, 0)
    same(batchfs, tmp_path / "s.zarr", "lead", xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["lead"].values)


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap", "julian", "365_day"])
def test_other_calendars_stay_numbers(batchfs, tmp_path, calendar):
    write(tmp_path / "s.zarr", 2, "t", np.arange(N), {"units": "days since 2000-01-01", "calendar": calendar}, None)
    got = batchfs.npy("cat", tmp_path / "s.zarr", "t")
    assert got.dtype == np.int64 and got.tolist() == list(range(N))


def test_bool_char_and_stored_times(batchfs, tmp_path):
    ds = xr.Dataset({"flag": ("x", np.arange(4) % 2 == 0),
                     "when": ("x", np.datetime64("2001-02-03", "ns") + np.arange(4)),
                     "name": ("x", np.array(["a", "bcd", "", "é"]))})
    ds["flag"].encoding["dtype"] = "i1"
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        ds[["flag", "when"]].to_zarr(path, zarr_format=version)
        opened = xr.open_zarr(path)
        for name in ("flag", "when"):
            same(batchfs, path, name, opened[name].values)
    characters = np.array([[b"a", b"b", b""], [b"x", b"", b""]], "S1")
    write(tmp_path / "c.zarr", 2, "c", characters, {}, b"", ("x", "n"))
    joined = xr.open_zarr(tmp_path / "c.zarr", consolidated=False)["c"].values
    assert batchfs.npy("cat", tmp_path / "c.zarr", "c").tolist() == joined.tolist()


def test_an_integer_scale_factor_keeps_integers(batchfs, tmp_path):
    write(tmp_path / "s.zarr", 3, "v", numbers("i2"), {"scale_factor": 2}, 0)
    same(batchfs, tmp_path / "s.zarr", "v", xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["v"].values)


# ---- selection ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def era(tmp_path_factory):
    path = tmp_path_factory.mktemp("sel") / "s.zarr"
    ds = xr.Dataset(
        {"v": (("time", "level", "lat", "lon"), np.arange(40 * 3 * 7 * 8, dtype="f4").reshape(40, 3, 7, 8)),
         "plain": (("row", "lat"), np.arange(21).reshape(3, 7))},
        coords={"time": np.datetime64("2000-01-28", "ns") + np.arange(40) * np.timedelta64(6, "h"),
                "level": [200, 500, 850], "lat": np.linspace(0.3, -0.3, 7).astype("f4"), "lon": np.arange(8) * 45.0})
    ds.to_zarr(path, zarr_format=2)
    return path, xr.open_zarr(path)


SELECTIONS = [
    ({"level": "500"}, dict(sel=dict(level=500))),
    ({"level": "500,850"}, dict(sel=dict(level=[500, 850]))),
    ({"level": "850,200"}, dict(sel=dict(level=[850, 200]))),
    ({"time": "2000-01-31"}, dict(sel=dict(time="2000-01-31"))),
    ({"time": "2000-02"}, dict(sel=dict(time="2000-02"))),
    ({"time": "2000-01-29T06"}, dict(sel=dict(time="2000-01-29T06:00"))),
    ({"time": "2000-01-29:2000-02-01"}, dict(sel=dict(time=slice("2000-01-29", "2000-02-01")))),
    ({"time": "2000-01-29T06:00:00:2000-01-30T12:00:00"}, dict(sel=dict(time=slice("2000-01-29T06", "2000-01-30T12")))),
    ({"time": "2000-02-03:"}, dict(sel=dict(time=slice("2000-02-03", None)))),
    ({"time": ":2000-01-29"}, dict(sel=dict(time=slice(None, "2000-01-29")))),
    ({"lon": "90:270"}, dict(sel=dict(lon=slice(90, 270)))),
    ({"lat": "0.25:-0.15"}, dict(sel=dict(lat=slice(0.25, -0.15)))),
    ({"lat": "-0.15:0.25"}, dict(sel=dict(lat=slice(0.25, -0.15)))),
    ({"lat": "0.1:"}, dict(sel=dict(lat=slice(np.float32(0.1), None)))),
    ({"lat": "0.2"}, dict(sel=dict(lat=np.float32(0.2)))),
    ({"time": "#0:#4", "lat": "#3"}, dict(isel=dict(time=slice(0, 4), lat=3))),
    ({"time": "#-4:", "lon": "#1,#6"}, dict(isel=dict(time=slice(-4, None), lon=[1, 6]))),
    ({"time": ":#2", "level": "#-1"}, dict(isel=dict(time=slice(None, 2), level=-1))),
]


@pytest.mark.parametrize("options,how", SELECTIONS, ids=lambda v: json.dumps(v) if isinstance(v, dict) and "sel" not in v and "isel" not in v else "")
def test_selections(batchfs, era, options, how):
    path, ds = era
    expected = ds["v"].sel(**how.get("sel", {})).isel(**how.get("isel", {})).values
    arguments = [a for dim, text in options.items() for a in ("--select", f"{dim}={text}")]
    same(batchfs, path, "v", expected, *arguments)


def test_what_is_absent_is_an_error_that_helps(batchfs, era):
    path, _ = era
    assert "no '300' in 'level'" in batchfs.refusal("cat", path, "v", "--select", "level=300")
    assert "did you mean 'level'" in batchfs.refusal("cat", path, "v", "--select", "levl=500")
    assert "#0:#4" in batchfs.refusal("cat", path, "plain", "--select", "row=1")
    assert "outside" in batchfs.refusal("cat", path, "v", "--select", "time=#40")
    assert "not a date" in batchfs.refusal("cat", path, "v", "--select", "time=yesterday")
    assert "nothing of" in batchfs.refusal("cat", path, "v", "--select", "time=1990:1991")
