"""Values and selections equal to xarray.open_zarr's, to the last bit."""

import io
import json
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
    array = root.create_array(name, shape=values.shape,
                              chunks=tuple(max(1, n // 2) for n in values.shape),
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
        assert np.where(np.isnan(got), 0,
                        got).tobytes() == np.where(np.isnan(expected), 0, expected).tobytes()
    else:
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


def numbers(dtype):
    values = np.arange(N) - (0 if np.dtype(dtype).kind == "u" else 4)
    values[[2, 7]] = 5
    return values.astype(dtype)


PACKING = [{}, {"scale_factor": 0.01}, {"add_offset": 273.15},
           {"scale_factor": 0.01, "add_offset": 273.15}, {"scale_factor": 0.1, "add_offset": 3}]
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


@pytest.mark.parametrize("unsigned,dtype", [("true", "i1"), ("true", "i2"), ("false", "u1"),
                                            ("false", "u2"), ("true", "u1"), ("false", "i2")])
@pytest.mark.parametrize("attributes", [{}, {"_FillValue": 5}, {"scale_factor": 0.5},
                                        {"_FillValue": 5, "scale_factor": 0.5}], ids=str)
def test_unsigned(batchfs, tmp_path, unsigned, dtype, attributes):
    values = np.array([0, 1, 5, 100, 127, 200 if dtype[0] == "u" else -56,
                       255 if dtype[0] == "u" else -1]).astype(dtype)
    write(tmp_path / "s.zarr", 3, "v", values, {"_Unsigned": unsigned, **attributes}, 0)
    same(batchfs, tmp_path / "s.zarr", "v",
         xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["v"].values)


UNITS = ["days since 1970-01-01", "hours since 1900-01-01", "hours since 1900-01-01 00:00:0.0",
         "minutes since 2000-02-29 12:34:56", "seconds since 1970-01-01T00:00:00",
         "days since 2000-01-01 06:00", "milliseconds since 1970-01-01",
         "hours since 2000-01-01 00:00:00 +03:00", "days since 1850-1-1",
         "seconds since 2001-01-01 00:00:00.5", "microseconds since 1999-12-31",
         "Hours since 1990-05-06"]


@pytest.mark.long
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("calendar", [None, "standard", "gregorian", "proleptic_gregorian"])
def test_times(batchfs, tmp_path, units, calendar):
    attributes = {"units": units, **({"calendar": calendar} if calendar else {})}
    for dtype, values in [("i4", np.arange(N)), ("i8", np.arange(N) * 1000),
                          ("f8", np.arange(N) + 0.25), ("f4", np.arange(N) * 0.5),
                          ("i2", np.arange(N) - 3)]:
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
    same(batchfs, tmp_path / "s.zarr", "lead",
         xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["lead"].values)


CALENDARS = ["noleap", "365_day", "all_leap", "366_day", "360_day", "julian"]


@pytest.mark.parametrize("units, calendar, first",
                         [*[("days since 2000-01-01", calendar, 0) for calendar in CALENDARS],
                          ("days since 2300-01-01", "standard", 0),
                          ("hours since 1500-01-01", "gregorian", 0),
                          ("days since 1500-01-01", "proleptic_gregorian", 0),
                          ("days since 1970-01-01", "proleptic_gregorian", -200_000)])
def test_times_that_xarray_has_as_objects_stay_numbers(batchfs, tmp_path, units, calendar, first):
    write(tmp_path / "s.zarr", 2, "t", first + np.arange(N), {"units": units, "calendar": calendar},
          None, ["t"])
    assert xr.open_zarr(tmp_path / "s.zarr", consolidated=False).t.dtype == object
    got = batchfs.npy("cat", tmp_path / "s.zarr", "t")
    assert got.dtype == np.int64 and got.tolist() == list(range(first, first + N))
    # Units and calendar are said where they are needed.
    why = "which datetime64 cannot hold" if calendar in CALENDARS else (
        "outside of what datetime64[ns] holds (1677 to 2262)")
    note = f"times in units '{units}', calendar '{calendar}', {why}"
    assert note in batchfs.bytes("cat", tmp_path / "s.zarr", "t", "--format",
                                 "text").decode().splitlines()[1]
    (tmp_path / "view.json").write_text('{"window": {"t": 1}, "variables": ["t"]}')
    arguments = (tmp_path / "s.zarr", "--view", tmp_path / "view.json")
    plan = json.loads(batchfs.bytes("plan", *arguments, "--json"))
    assert plan["coordinates"] == [{"name": "t", "dims": ["t"], "dtype": "int64", "size": N,
                                    "note": note,
                                    "attributes": {"units": units, "calendar": calendar}}]
    assert batchfs.npy("batch", *arguments, "--format", "npy").ravel().tolist() == [first]


@pytest.mark.parametrize("units", ["days since 1500-01-01", "days since 0001-01-01",
                                   "hours since 1582-10-01", "days since 2300-01-01"])
@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian"])
def test_times_that_begin_far_away_and_come_near(batchfs, tmp_path, units, calendar):
    """The values decide, not the reference date."""
    days = {"1500": 190_000, "0001": 730_000, "1582": 24 * 150_000,
            "2300": -60_000}[units.split()[2][:4]]
    write(tmp_path / "s.zarr", 3, "t", days + np.arange(N), {"units": units, "calendar": calendar},
          0, ["t"])
    expected = xr.open_zarr(tmp_path / "s.zarr", consolidated=False).t.values
    assert expected.dtype == "M8[ns]"
    same(batchfs, tmp_path / "s.zarr", "t", expected)


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


@pytest.mark.parametrize("version", [2, 3])
def test_bounds_take_over_the_units_of_their_time(batchfs, tmp_path, version):
    path = tmp_path / "s.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=version)
    times = {"units": "days since 2000-01-01", "calendar": "standard", "bounds": "time_bnds"}
    for name, dims, values, attributes in [
            ("time", ["time"], np.arange(N), times),
            ("time_bnds", ["time", "nv"], np.arange(2 * N).reshape(N, 2), {}),
            ("lat_bnds", ["time", "nv"], np.arange(2 * N).reshape(N, 2), {})]:
        more = {"dimension_names": dims} if version == 3 else {}
        attributes = attributes if version == 3 else {**attributes, "_ARRAY_DIMENSIONS": dims}
        root.create_array(name, data=values, attributes=attributes, **more)
    opened = xr.open_zarr(path, consolidated=False)
    assert opened["time_bnds"].dtype == "M8[ns]"
    for name in ("time", "time_bnds", "lat_bnds"):
        same(batchfs, path, name, opened[name].values)


def test_characters_along_a_dimension_of_others_are_not_joined(batchfs, tmp_path):
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=2)
    flags = np.array([[b"a", b"", b"c"], [b"x", b"y", b"z"]])
    for name, dims, values in [("flag", ["x", "y"], flags), ("v", ["x", "y"], np.zeros((2, 3))),
                               ("lone", ["x", "n"], flags), ("tag", ["x", "m"], flags),
                               ("longer", ["m"], np.array([b"aa", b"bb", b"cc"]))]:
        root.create_array(name, data=values, attributes={"_ARRAY_DIMENSIONS": dims},
                          fill_value=None)
    opened = xr.open_zarr(tmp_path / "s.zarr", consolidated=False)
    assert opened["flag"].shape == (2, 3) and opened["lone"].shape == opened["tag"].shape == (2,)
    for name in ("flag", "lone", "tag"):
        same(batchfs, tmp_path / "s.zarr", name, opened[name].values)


@pytest.mark.parametrize("dtype", ["<M8[ns]", ">M8[us]", "<M8[D]", "<M8[h]", "<M8[W]", "<M8[M]",
                                   "<m8[ns]", "<m8[h]", "<m8[D]"])
def test_stored_times(batchfs, tmp_path, dtype):
    values = np.arange(300, 300 + N).astype(np.dtype(dtype).newbyteorder("=")).astype(dtype)
    for version, fill in [(2, None), (2, values[3]), (3, values[3])]:
        path = tmp_path / f"{version}-{fill is None}.zarr"
        write(path, version, "t", values, {}, fill, ["t"])
        expected = xr.open_zarr(path, consolidated=False)["t"].values
        expected = expected.astype(expected.dtype.newbyteorder("="))
        same(batchfs, path, "t", expected)
        label = str(values[5]) if dtype[1] == "M" else f"{305}{dtype[4:-1]}"
        got = batchfs.npy("cat", path, "t", "--select", f"t={label}:{label}")
        assert values[5] in got
        if dtype[1] == "m":
            assert got.tolist() == values[5:6].tolist()


@pytest.mark.parametrize("dtype", ["<c8", ">c16"])
@pytest.mark.parametrize("attributes", [{}, {"missing_value": 5}, {"missing_value": [5, 3.0]}],
                         ids=str)
def test_complex_fill_values(batchfs, tmp_path, dtype, attributes):
    from xarray.backends.zarr import FillValueCoder
    values = (numbers("f8") + 1j * (np.arange(N) % 3)).astype(dtype)
    values[4] = complex(np.nan, 1)
    for version, fill in [(2, None), (2, 0), (2, values[5]), (2, complex(np.nan, 0)), (3, 0)]:
        path = tmp_path / f"{version}-{fill}.zarr"
        more = ({"_FillValue": FillValueCoder.encode(complex(values[5]), np.dtype(dtype))}
                if version == 3 else {})
        write(path, version, "v", values, {**attributes, **more}, fill)
        got, expected = batchfs.npy("cat", path,
                                    "v"), xr.open_zarr(path, consolidated=False)["v"].values
        assert got.dtype == expected.dtype
        for mine, theirs in ((got.real, expected.real), (got.imag, expected.imag)):
            assert np.array_equal(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("version", [2, 3])
def test_strings_of_any_length(batchfs, tmp_path, version):
    names = np.array(["Praha", "", "K\u00f8benhavn", "\u5317\u4eac", "\U0001f600 x"], dtype=object)
    ds = xr.Dataset({"v": (("x", "station"), np.arange(15.0).reshape(3, 5)),
                     "kind": ("x", np.array(["a", "bb", "c"], object)),
                     "title": ((), np.array("one", object))}, {"station": names})
    encoding = {"station": {"chunks": (2,)}, "v": {"chunks": (2, 2)}}
    ds.to_zarr(tmp_path / "s.zarr", zarr_format=version, consolidated=False, encoding=encoding)
    opened = xr.open_zarr(tmp_path / "s.zarr", consolidated=False)
    for name in ("station", "kind", "title"):
        for decode in ("cf", "raw"):
            got = batchfs.npy("cat", tmp_path / "s.zarr", name, "--decode", decode)
            assert (got.dtype.kind == "U"
                    and got.tolist() == np.asarray(opened[name].values).tolist())
    assert json.loads(batchfs.bytes("cat", tmp_path / "s.zarr", "station", "--format",
                                    "json")) == names.tolist()
    assert "'K\u00f8benhavn'" in batchfs.bytes("cat", tmp_path / "s.zarr", "station", "--format",
                                               "text").decode()
    picked = ["\u5317\u4eac", "Praha"]
    same(batchfs, tmp_path / "s.zarr", "v", opened.v.sel(station=picked).values, "--select",
         "station=" + ",".join(picked))
    # In a view they select and are reported, but are in no tensor.
    view = {"window": {"x": 1}, "select": {"station": picked}}
    (tmp_path / "view.json").write_text(json.dumps(view))
    with np.load(io.BytesIO(batchfs.bytes("batch", tmp_path / "s.zarr", "--view",
                                          tmp_path / "view.json", "--format", "npz"))) as batch:
        assert list(batch) == ["v"] and np.array_equal(batch["v"][0],
                                                       opened.v.sel(station=picked).values[:1])
    (tmp_path / "view.json").write_text(json.dumps({**view, "variables": ["kind"]}))
    assert "'kind' is of type string, which no tensor can hold" in batchfs.refusal(
        "plan", tmp_path / "s.zarr", "--view", tmp_path / "view.json")
    told = json.loads(batchfs.bytes("inspect", tmp_path / "s.zarr", "--json"))["arrays"]["station"]
    assert told["dtype"] == "string" and "unsupported" not in told


def test_an_integer_scale_factor_keeps_integers(batchfs, tmp_path):
    write(tmp_path / "s.zarr", 3, "v", numbers("i2"), {"scale_factor": 2}, 0)
    same(batchfs, tmp_path / "s.zarr", "v",
         xr.open_zarr(tmp_path / "s.zarr", consolidated=False)["v"].values)


# ---- selection -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def era(tmp_path_factory):
    path = tmp_path_factory.mktemp("sel") / "s.zarr"
    ds = xr.Dataset({"v": (("time", "level", "lat", "lon"),
                           np.arange(40 * 3 * 7 * 8, dtype="f4").reshape(40, 3, 7, 8)),
                     "plain": (("row", "lat"), np.arange(21).reshape(3, 7))},
                    coords={"time": np.datetime64("2000-01-28", "ns")
                                + np.arange(40) * np.timedelta64(6, "h"),
                            "level": [200, 500, 850], "lat": np.linspace(0.3, -0.3, 7).astype("f4"),
                            "lon": np.arange(8) * 45.0})
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
    ({"time": "2000-01-29T06:00:00:2000-01-30T12:00:00"},
     dict(sel=dict(time=slice("2000-01-29T06", "2000-01-30T12")))),
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


@pytest.mark.parametrize("options,how", SELECTIONS, ids=lambda v: json.dumps(v)
                             if isinstance(v, dict) and "sel" not in v and "isel" not in v else "")
def test_selections(batchfs, era, options, how):
    path, ds = era
    expected = ds["v"].sel(**how.get("sel", {})).isel(**how.get("isel", {})).values
    arguments = [a for dim, text in options.items() for a in ("--select", f"{dim}={text}")]
    same(batchfs, path, "v", expected, *arguments)


@pytest.mark.parametrize("unit", ["ns", "s"])
@pytest.mark.parametrize("text, how",
                         [("6h", np.timedelta64(6, "h")),
                          ("1D", np.timedelta64(1, "D")), ("1.5D", np.timedelta64(36, "h")),
                          ("6h,720m", [np.timedelta64(6, "h"), np.timedelta64(12, "h")]),
                          ("12h:86400s", slice(np.timedelta64(12, "h"), np.timedelta64(1, "D"))),
                          ("1D:", slice(np.timedelta64(1, "D"), None))])
def test_lengths_of_time(batchfs, tmp_path, unit, text, how):
    steps = (np.arange(9) * 6).astype("m8[h]").astype(f"m8[{unit}]")
    xr.Dataset({"v": ("step", np.arange(9.0))}, {"step": steps}).to_zarr(
        tmp_path / "s.zarr", zarr_format=2)
    opened = xr.open_zarr(tmp_path / "s.zarr")
    assert opened.step.dtype.kind == "m"
    same(batchfs, tmp_path / "s.zarr", "v", opened.v.sel(step=how).values, "--select",
         f"step={text}")
    assert "write 6h, 30min or 2d" in batchfs.refusal("cat", tmp_path / "s.zarr", "v", "--select",
                                                      "step=six")
    assert "no '7h' in 'step'" in batchfs.refusal("cat", tmp_path / "s.zarr", "v", "--select",
                                                  "step=7h")


def test_what_is_absent_is_an_error_that_helps(batchfs, era):
    path, _ = era
    assert "no '300' in 'level'" in batchfs.refusal("cat", path, "v", "--select", "level=300")
    assert "did you mean 'level'" in batchfs.refusal("cat", path, "v", "--select", "levl=500")
    assert "#0:#4" in batchfs.refusal("cat", path, "plain", "--select", "row=1")
    assert "outside" in batchfs.refusal("cat", path, "v", "--select", "time=#40")
    assert "not a date" in batchfs.refusal("cat", path, "v", "--select", "time=yesterday")
    assert "nothing of" in batchfs.refusal("cat", path, "v", "--select", "time=1990:1991")
