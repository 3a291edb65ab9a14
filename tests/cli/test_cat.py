"""batchfs cat against zarr-python and xarray."""

import io
import json

import numpy as np
import pytest
import xarray as xr
import zarr


def load(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def assert_same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes() or np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("name", ["t", "q", "orography", "time", "level", "latitude"])
def test_values_are_xarrays(good, weather, name):
    assert_same(load(good("cat", weather, name)), xr.open_zarr(weather)[name].values)


@pytest.mark.parametrize("name", ["t", "q", "orography", "time"])
def test_raw_values_are_zarrs(good, weather, name):
    assert_same(load(good("cat", weather, name, "--decode", "raw")),
                zarr.open_group(weather, mode="r")[name][...])


@pytest.mark.parametrize("selections, sel, isel", [
    (["time=2000-01-03"], {"time": "2000-01-03"}, {}),
    (["time=2000-01-02:2000-01-04"], {"time": slice("2000-01-02", "2000-01-04")}, {}),
    (["time=2000-01-02T06:00:00:2000-01-03T12:00:00"],
     {"time": slice("2000-01-02T06:00:00", "2000-01-03T12:00:00")}, {}),
    (["time=2000-01-09:"], {"time": slice("2000-01-09", None)}, {}),
    (["level=700"], {"level": 700}, {}),
    (["level=850,500"], {"level": [850, 500]}, {}),
    (["latitude=10:50"], {"latitude": slice(50, 10)}, {}),
    (["latitude=50:10"], {"latitude": slice(50, 10)}, {}),
    (["time=#7"], {}, {"time": 7}),
    (["time=#-4:"], {}, {"time": slice(-4, None)}),
    (["time=#3,#9,#8"], {}, {"time": [3, 9, 8]}),
    (["time=#5:#17", "level=500", "longitude=90:180"],
     {"level": 500, "longitude": slice(90, 180)}, {"time": slice(5, 17)}),
    (["time=#7", "level=#0", "latitude=#0", "longitude=#15"], {},
     {"time": 7, "level": 0, "latitude": 0, "longitude": 15}),
])
def test_selection_is_xarrays(good, weather, selections, sel, isel):
    arguments = [word for selection in selections for word in ("--select", selection)]
    expected = xr.open_zarr(weather).q.isel(isel).sel(sel).values
    assert_same(load(good("cat", weather, "q", *arguments)), expected)


@pytest.mark.parametrize("selection, words", [
    ("time=2001", "time"), ("level=600", "level"), ("time=#40", "time"),
    ("tim=#0", "did you mean 'time'"), ("latitude=95", "latitude"), ("level=#5:#4", "level"),
])
def test_what_is_not_there_is_an_error(fails, weather, selection, words):
    assert words in fails(1, "cat", weather, "t", "--select", selection)


@pytest.mark.parametrize("memory", ["16K", "16777", "70K", "150K"])
@pytest.mark.parametrize("selections, isel", [
    ([], {}),
    (["time=#3:#38"], {"time": slice(3, 38)}),  # begins and ends inside of chunks
    (["time=#39,#0,#1,#7,#6", "longitude=#15"], {"time": [39, 0, 1, 7, 6], "longitude": 15}),
    (["level=#2"], {"level": 2}),
])
def test_reading_in_pieces_gives_the_same(good, weather, memory, selections, isel):
    # Pieces of a quarter of the memory: their borders fall between chunks and inside of rows.
    arguments = [word for selection in selections for word in ("--select", selection)]
    ours = load(good("cat", weather, "t", "--memory", memory, "--threads", "1", *arguments))
    assert_same(ours, xr.open_zarr(weather).t.isel(isel).values)


def test_arrays_below_groups_and_alone(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    array = root.create_array("x/y", shape=(5, 3), chunks=(2, 2), dtype="i4")
    array[...] = np.arange(15).reshape(5, 3)
    # the same default dimension, another length
    root.create_array("x/other", shape=(7,), dtype="i4")
    for store, path in [(tmp_path / "a.zarr", "x/y"), (tmp_path / "a.zarr", "/x/y/"),
                        (tmp_path / "a.zarr/x/y", "/"), (tmp_path / "a.zarr/x", "y")]:
        assert_same(load(good("cat", store, path)), array[...])


@pytest.mark.parametrize("path, words", [
    ("x", "is a group"), ("/", "is a group"), ("x/z", "did you mean 'x/y'"), ("../x/y", ".."),
    ("//x/y", ""), ("x//y", ""), ("x/./y", ""),
])
def test_paths_that_are_none(fails, tmp_path, path, words):
    zarr.create_group(tmp_path / "a.zarr").create_array("x/y", shape=(5,), dtype="i4")
    assert words in fails(1, "cat", tmp_path / "a.zarr", path)


DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", "<f4", ">f8", "<c8", ">c16", "<M8[D]",
          "<M8[25us]", "<m8[s]", "S5", "<U4", ">U4"]


def sample(dtype, shape, seed=1):
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        words = np.array(["", "a", "héllo" if dtype.kind == "U" else "hello", "zarr", "\u6570"][:4])
        return random.choice(words, shape).astype(dtype)
    if dtype.kind in "mM":
        return random.integers(-10000, 10000,
                               shape).astype("i8").view(dtype.newbyteorder("=")).astype(dtype)
    values = random.normal(0, 50, shape)
    if dtype.kind == "c":
        values = values + 1j * random.normal(0, 50, shape)
    if dtype.kind == "u":
        values = np.abs(values)
    return values.astype(dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_of_v2(good, tmp_path, dtype, order):
    values = sample(dtype, (7, 5))
    zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(3, 2), order=order, zarr_format=2)
    ours = load(good("cat", tmp_path / "a.zarr", "/", "--decode", "raw"))
    assert_same(ours, values.astype(np.dtype(dtype).newbyteorder("=")))


def test_structures(good, tmp_path):
    dtype = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3")])
    values = np.zeros(4, dtype)
    values["a"], values["b"], values["c"] = range(4), 0.5, b"xy"
    zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(3,), zarr_format=2)
    ours = load(good("cat", tmp_path / "a.zarr", "/", "--decode", "raw"))
    assert ours.dtype.names == ("a", "b", "c")
    for field in dtype.names:
        assert np.array_equal(ours[field], values[field])
    assert json.loads(good("cat", tmp_path / "a.zarr", "/", "--decode", "raw", "--format",
                           "json"))[3] == {"a": 3, "b": 0.5, "c": "xy"}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_no_dimensions_and_no_elements(good, tmp_path, zarr_format):
    zarr.create_array(tmp_path / "0d.zarr", data=np.array(2.5), zarr_format=zarr_format)
    zarr.create_array(tmp_path / "empty.zarr", shape=(2, 0, 3), chunks=(1, 1, 1), dtype="i4",
                      zarr_format=zarr_format)
    assert_same(load(good("cat", tmp_path / "0d.zarr", "/", "--decode", "raw")), np.array(2.5))
    assert_same(load(good("cat", tmp_path / "empty.zarr", "/", "--decode", "raw")),
                np.empty((2, 0, 3), "i4"))
    assert good("cat", tmp_path / "0d.zarr", "/", "--format", "json") == b"2.5\n"
    assert json.loads(good("cat", tmp_path / "empty.zarr", "/", "--format", "json")) == [[], []]


def test_missing_chunks_are_fill_values(good, tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(10,), chunks=(3,), dtype="f4",
                              fill_value=-1.5)
    array[4:6] = 7
    assert_same(load(good("cat", tmp_path / "a.zarr", "/", "--decode", "raw")), array[...])


def test_shards(good, tmp_path):
    values = sample("f4", (50, 33))
    zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 4), shards=(20, 12))
    assert_same(load(good("cat", tmp_path / "a.zarr", "/")), values)
    assert_same(load(good("cat", tmp_path / "a.zarr", "/", "--select", "dim_0=#13:#31")),
                values[13:31])


def test_json(good, tmp_path):
    values = np.array([[1.5, np.nan], [np.inf, -2]])
    zarr.create_array(tmp_path / "f.zarr", data=values, chunks=(1, 2))
    assert json.loads(good("cat", tmp_path / "f.zarr", "/", "--format", "json")) == [
        [1.5, None], [None, -2.0]]
    times = np.array(["2000-01-01T06", "NaT", "1969-12-31T23"], "M8[h]")
    zarr.create_array(tmp_path / "t.zarr", data=times, zarr_format=2)
    assert json.loads(good("cat", tmp_path / "t.zarr", "/", "--decode", "raw", "--format",
                           "json")) == ["2000-01-01T06", None, "1969-12-31T23"]


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", "i1", "<u8", "?"])
def test_json_numbers_read_back_exactly(good, tmp_path, dtype):
    values = sample(dtype, (4, 3, 2))
    zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(3, 3, 1))
    told = json.loads(good("cat", tmp_path / "a.zarr", "/", "--format", "json"))
    assert_same(np.array(told, dtype), values)


def test_times_in_json_are_iso_dates(good, weather):
    told = json.loads(good("cat", weather, "time", "--format", "json"))
    assert np.array_equal(np.array(told, "M8[ns]"), xr.open_zarr(weather).time.values)


def test_text_shows_the_ends_of_long_dimensions(good, weather):
    text = good("cat", weather, "t", "--format", "text").decode()
    assert text.splitlines()[0] == "t (time: 40, level: 3, latitude: 8, longitude: 16) float32"
    assert "..." in text
    values = xr.open_zarr(weather).t.values
    assert str(values[0, 0, 0, 0]) in text and str(values[-1, -1, -1, -1]) in text
    short = good("cat", weather, "level", "--format", "text").decode()
    assert short == "level (level: 3) int64\n[500 700 850]\n"


def test_an_array_that_is_not_there(fails, tmp_path):
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for name in ("t2m", "group/wind", "group/torn"):
        root.create_array(name, data=np.zeros(3))
    (tmp_path / "a.zarr/group/torn/.zarray").write_text('{"zarr_format": 2')
    assert "did you mean 't2m'?" in fails(1, "cat", tmp_path / "a.zarr", "t2n")
    assert "did you mean 'group/wind'?" in fails(1, "cat", tmp_path / "a.zarr", "wind")
    assert "; there are group/wind, t2m" in fails(1, "cat", tmp_path / "a.zarr", "precipitation")
    assert "name an array in it: wind" in fails(1, "cat", tmp_path / "a.zarr", "group")
    assert "group/torn/.zarray cannot be used: not valid JSON" in fails(
        1, "cat", tmp_path / "a.zarr", "group/torn")
    (tmp_path / "v.json").write_text('{"window": {"dim_0": 1}, "tensors": {"x": '
                                     '{"variables": ["torn"]}}}')
    assert "metadata of 'torn' cannot be used: not valid JSON" in fails(
        1, "plan", tmp_path / "a.zarr/group", "--view", tmp_path / "v.json")


def test_links_that_lead_nowhere(fails, good, tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(4,), chunks=(2,), dtype="f4",
                              zarr_format=2, fill_value=7)
    array[...] = 1
    (tmp_path / "a.zarr/1").rename(tmp_path / "elsewhere")
    assert good("cat", tmp_path / "a.zarr", "/", "--format", "json", "--decode",
                "raw") == b"[1.0, 1.0, 7.0, 7.0]\n"
    (tmp_path / "a.zarr/1").symlink_to(tmp_path / "elsewhere")
    assert good("cat", tmp_path / "a.zarr", "/", "--format", "json", "--decode", "raw",
                "--follow-links") == b"[1.0, 1.0, 1.0, 1.0]\n"
    (tmp_path / "elsewhere").unlink()
    line = fails(1, "cat", tmp_path / "a.zarr", "/", "--follow-links")
    assert "a symbolic link leads to what is not there" in line and "a.zarr/1" in line


@pytest.mark.parametrize("document", ["zarr.json", ".zarray"])
def test_metadata_behind_a_link_outside_is_one_problem(good, tmp_path, document):
    version = 3 if document == "zarr.json" else 2
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    for name in ("x", "y"):
        root.create_array(name, data=np.zeros(3))
    (tmp_path / "a.zarr/y" / document).rename(tmp_path / "elsewhere")
    (tmp_path / "a.zarr/y" / document).symlink_to(tmp_path / "elsewhere")
    assert good("inspect", tmp_path / "a.zarr").count(b"leads outside the store") == 1


def test_a_damaged_chunk_is_an_error_that_names_it(fails, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=sample("f4", (64, 64)), chunks=(32, 32),
                      zarr_format=2)
    chunk = tmp_path / "a.zarr/1.0"
    data = bytearray(chunk.read_bytes())
    data[16:] = b"\xa5" * (len(data) - 16)
    chunk.write_bytes(data)
    assert "1.0" in fails(1, "cat", tmp_path / "a.zarr", "/", "--decode", "raw")
    chunk.write_bytes(b"")
    assert "1.0" in fails(1, "cat", tmp_path / "a.zarr", "/", "--decode", "raw")
