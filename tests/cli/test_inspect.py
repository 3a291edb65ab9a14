"""batchfs inspect against zarr-python."""

import fcntl
import http.server
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import numpy as np
import pytest
import xarray as xr
import zarr


def inspect(good, store):
    return json.loads(good("inspect", store, "--json"))


def test_json_says_what_zarr_says(good, weather):
    told = inspect(good, weather)
    group = zarr.open_group(weather, mode="r")
    assert told["zarr_format"] == group.metadata.zarr_format
    assert set(told["arrays"]) == set(group.array_keys())
    for name, array in group.arrays():
        entry = told["arrays"][name]
        assert tuple(entry["shape"]) == array.shape
        assert tuple(entry["chunks"]) == array.chunks
        assert entry["chunk_count"] == array.nchunks
        assert entry["bytes"] == array.nbytes
        assert np.dtype(entry["dtype"]) == array.dtype.newbyteorder("=")
        assert "unsupported" not in entry


def test_dimensions_are_xarrays(good, weather):
    told = inspect(good, weather)
    dataset = xr.open_zarr(weather)
    for name, variable in dataset.variables.items():
        assert tuple(told["arrays"][name]["dims"]) == variable.dims


def test_shards_and_their_chunks(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(64, 30), chunks=(4, 10), shards=(16, 30),
                      dtype="f8")
    entry = inspect(good, tmp_path / "a.zarr")["arrays"]["/"]
    assert entry["chunks"] == [4, 10]
    assert entry["shards"] == [16, 30]
    assert entry["chunk_count"] == 48


def test_nested_groups(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    root.create_group("x/y", attributes={"note": "here"}).create_array("z", shape=(2,), dtype="i4")
    told = inspect(good, tmp_path / "a.zarr")
    assert list(told["arrays"]) == ["x/y/z"]
    assert told["groups"]["x/y"]["attributes"] == {"note": "here"}
    assert {"/", "x", "x/y"} == set(told["groups"])


def test_an_array_that_cannot_be_read_does_not_spoil_the_store(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("fine", shape=(2,), dtype="i4")
    root.create_array("odd", shape=(2,), dtype="i4")
    document = json.loads((tmp_path / "a.zarr/odd/.zarray").read_text())
    document["compressor"] = {"id": "brunsli"}
    (tmp_path / "a.zarr/odd/.zarray").write_text(json.dumps(document))
    arrays = inspect(good, tmp_path / "a.zarr")["arrays"]
    assert "unsupported" not in arrays["fine"]
    assert "brunsli" in arrays["odd"]["unsupported"]
    assert "brunsli" in good("inspect", tmp_path / "a.zarr").decode()


def test_text_shows_every_array_and_the_next_step(good, weather):
    text = good("inspect", weather).decode()
    for name in ("t", "q", "orography", "latitude"):
        assert re.search(rf"\n +{name} ", text)
    assert "40 x 3 x 8 x 16" in text
    assert "batchfs view" in text


@pytest.mark.parametrize("content",
                         ["", "{", '{"zarr_format": 2', "[]", "\xff", '{"zarr_format": 9}'])
def test_broken_metadata_is_an_error_or_a_problem(batchfs, tmp_path, content):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/.zarray").write_text(content, encoding="latin-1")
    done = batchfs("inspect", tmp_path / "a.zarr", "--json")
    if done.returncode == 0:
        assert json.loads(done.stdout)["problems"]
    else:
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1


# ---- values, types and sizes ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 3])
def era5(tmp_path_factory, request):
    """A store with units, packed values, shards and long names."""
    time = np.arange("2000-01-01", "2000-01-31", np.timedelta64(6, "h"), dtype="M8[ns]")
    dims = ("time", "latitude", "longitude")
    values = np.random.default_rng(0).normal(280, 10, (len(time), 37, 72)).astype("f4")
    ds = xr.Dataset({"t2m": (dims, values, {"units": "K", "long_name": "2 metre temperature"}),
                     "u10": (dims, values,
                             {"units": "m s**-1", "long_name": "10 metre U wind component " * 5}),
                     "tp": (dims, values - 270, {"units": "m"}),
                     "a_variable_with_a_name_that_is_as_long_as_those_of_cmip": (
                         dims[1:], values[0], {"units": "kg m-2 s-1" * 5})},
                    {"time": time, "latitude": ("latitude", np.linspace(90, -90, 37).astype("f4"),
                                                {"units": "degrees_north"}),
                     "longitude": ("longitude", np.arange(0, 360, 5.0), {"units": "degrees_east"}),
                     "step": ("step", np.arange(3).astype("m8[h]").astype("m8[ns]")),
                     "level": ("level", [1000, 850, 500], {"units": "hPa"})})
    path = tmp_path_factory.mktemp("inspect") / "era5.zarr"
    encoding = {"tp": {"dtype": "i2", "scale_factor": 0.002, "add_offset": 10.5,
                       "_FillValue": -32767},
                "t2m": {"chunks": (24, 37, 72)}}
    if request.param == 3:
        encoding["t2m"]["shards"] = (72, 37, 72)
    ds.to_zarr(path, zarr_format=request.param, encoding=encoding)
    return path


def test_decoded_values_are_xarrays(good, era5):
    told = inspect(good, era5)["arrays"]
    opened, stored = xr.open_zarr(era5), zarr.open_group(era5, mode="r")
    for name, variable in opened.variables.items():
        assert np.dtype(told[name]["decoded"]["dtype"]) == variable.dtype, name
        if variable.dtype.kind not in "mM":
            assert told[name]["decoded"].get("units") == variable.attrs.get("units")
        assert told[name]["stored_bytes"] == stored[name].nbytes_stored()
    assert (told["tp"]["decoded"]["scale_factor"] == 0.002
            and told["tp"]["decoded"]["add_offset"] == 10.5)
    for name in ("latitude", "longitude", "level"):
        values = opened[name].values
        assert (told[name]["range"]["first"],
                told[name]["range"]["last"]) == (values[0], values[-1])
    assert told["latitude"]["range"]["step"] == -5 and "step" not in told["level"]["range"]
    assert np.datetime64(told["time"]["range"]["last"]) == opened.time.values[-1]
    assert told["time"]["range"]["step"] == 6 * 3600 * 10**9
    assert "range" not in told["t2m"]


def test_the_text_says_them(good, era5):
    text = good("inspect", era5, env=os.environ | {"COLUMNS": "100"}).decode()
    for words in ("90 to -90 degrees_north, step -5", "0 to 355 degrees_east, step 5",
                  "1000 to 500 hPa", "datetime64[ns]", "0 to 2 h, step 1 h",
                  "2000-01-01 to 2000-01-30T18:00, step 6 h", "int16 -> float64",
                  "decoded as stored x 0.002 + 10.5, -32767 is missing", "m s**-1",
                  "2 metre temperature", "MB stored"):
        assert words in text, text
    assert ("shards 72 x 37 x 72" in text) == (
        json.loads(good("inspect", era5, "--json"))["zarr_format"] == 3)


def in_terminal(columns, *arguments, **environment):
    """Output of the program on a terminal with this number of columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {name: value for name, value in os.environ.items()
           if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    process = subprocess.Popen([os.environ.get("BATCHFS", "build/batchfs"), *map(str, arguments)],
                               stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                               env=own | {"TERM": "xterm"} | environment)
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    os.close(master)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


def too_wide(text, columns, store):
    """Lines that are wider, but for paths and commands, which stay whole, and single words."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [line for line in plain.split("\n") if len(line) > columns and str(store) not in line
            and len(line.split()) > 1]


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_lines_fit_the_terminal(era5, columns):
    text = in_terminal(columns, "inspect", era5)
    assert too_wide(text, columns, era5) == []
    assert max(len(line)
               for line in re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")) > min(columns, 100) - 25
    assert in_terminal(132, "inspect", era5, COLUMNS=str(columns)) == text


def test_lines_fit_80_columns_in_a_pipe(batchfs, era5):
    without = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    text = batchfs("inspect", era5, env=without).stdout.decode()
    assert too_wide(text, 80, era5) == []
    assert batchfs("inspect", era5, env=without | {"COLUMNS": "80"}).stdout.decode() == text


def test_colours_are_for_terminals(good, era5):
    assert "\x1b[" in in_terminal(80, "inspect", era5)
    assert "\x1b" not in in_terminal(80, "inspect", era5, NO_COLOR="1")
    assert "\x1b" not in in_terminal(80, "inspect", era5, TERM="dumb")
    assert "\x1b[" in in_terminal(80, "inspect", era5, NO_COLOR="")  # empty: as if it were not set
    assert b"\x1b" not in good("inspect", era5)
    assert re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(80, "inspect", era5)) == in_terminal(
        80, "inspect", era5, NO_COLOR="1")


def test_sizes_of_a_store_that_cannot_list(good, fails, weather):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=weather)

        def log_message(self, *_):
            pass

        def list_directory(self, path):
            self.send_error(404)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    told = json.loads(good("inspect", url, "--json"))
    assert all("stored_bytes" not in entry
               for entry in told["arrays"].values()) and "stored_bytes" not in told
    assert "cannot do" in fails(1, "inspect", url, "--size")
    server.shutdown()


def test_attributes_that_do_not_decode(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("odd", shape=(2,), dtype="i4", attributes={"scale_factor": "large"})
    told = inspect(good, tmp_path / "a.zarr")["arrays"]["odd"]
    assert "scale_factor" in told["undecoded"] and "unsupported" not in told
    assert "scale_factor" in good("inspect", tmp_path / "a.zarr").decode()


def test_a_coordinate_of_many_chunks_is_read_at_its_ends(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    x = root.create_array("x", shape=(1000,), chunks=(1,), dtype="f8", dimension_names=["x"])
    x[:] = np.arange(1000.0)
    for number in range(1, 999):
        (tmp_path / f"a.zarr/x/c/{number}").write_bytes(b"broken")
    assert inspect(good, tmp_path / "a.zarr")["arrays"]["x"]["range"] == {"first": 0, "last": 999}
    (tmp_path / "a.zarr/x/c/0").write_bytes(b"broken")
    broken = inspect(good, tmp_path / "a.zarr")["arrays"]["x"]
    assert "range" not in broken and "(x/0)" in broken["unreadable"]
    shown = good("inspect", tmp_path / "a.zarr").decode()
    assert "The values of these coordinates cannot be read:\n  x: " in shown


@pytest.mark.parametrize("jitter", ["1 s", "1 ms", "1 ns"])
def test_times_that_jitter_have_no_step(good, tmp_path, jitter):
    size, unit = jitter.split()
    times = (np.datetime64("2020-01-01", "ns")
             + np.arange(50) * np.timedelta64(6, "h").astype("m8[ns]"))
    times[20] += np.timedelta64(int(size), unit)
    xr.Dataset({"a": ("time", np.zeros(50))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", consolidated=False,
        encoding={"time": {"units": "nanoseconds since 2020-01-01"}})
    assert "step" not in inspect(good, tmp_path / "s.zarr")["arrays"]["time"]["range"]
    assert "step" not in good("inspect", tmp_path / "s.zarr").decode()
    assert "spacing" not in good("view", tmp_path / "s.zarr").decode()
    good("show", tmp_path / "s.zarr", "-o", tmp_path / "s.html")
    assert "step 6 h" not in (tmp_path / "s.html").read_text()


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "julian", "all_leap"])
def test_times_of_other_calendars_are_shown_as_xarrays_dates(good, tmp_path, calendar):
    times = xr.date_range("2000-02-27", periods=40, calendar=calendar, use_cftime=True)
    xr.Dataset({"a": ("time", np.zeros(40))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", consolidated=False)
    told = inspect(good, tmp_path / "s.zarr")["arrays"]["time"]["range"]
    assert told["dates"] == {"first": times[0].isoformat(), "last": times[-1].isoformat(),
                             "calendar": calendar}
    assert (told["first"], told["last"], told["step"]) == (0, 39, 1)
    words = f"{times[0].isoformat()[:10]} to {times[-1].isoformat()[:10]} {calendar}, step 1 d"
    assert words in re.sub(r"\s+", " ", good("inspect", tmp_path / "s.zarr").decode())


def test_a_group_whose_arrays_do_not_fit_has_a_next_step(good, fails, tmp_path):
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    group.create_array("stack", shape=(20, 16), chunks=(4, 8), dtype="u2")
    group.create_array("noname", shape=(20, 6), chunks=(5, 6), dtype="f4")
    advice = 'a view names arrays that fit together, "variables": ["noname"]'
    text = re.sub(r"\s+", " ", good("inspect", tmp_path / "s.zarr").decode())
    assert "Not all arrays of a group fit into one view: /: dimension 'dim_1' has length" in text
    assert advice in text
    assert advice in fails(1, "plan", tmp_path / "s.zarr", "--view", "-",
                           input=b'{"window": {"dim_0": 1}}')
    good("plan", tmp_path / "s.zarr", "--view", "-",
         input=b'{"window": {"dim_0": 1}, "variables": ["noname"]}')


def test_a_group_without_variables_names_the_groups_that_have_arrays(fails, tmp_path):
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    group.create_array("x", shape=(4,), chunks=(4,), dtype="f4", dimension_names=["x"])
    said = fails(1, "view", tmp_path / "s.zarr")
    assert "there is no variable to make batches of" in said and "group" not in said
    group.create_array("model/hist/tas", shape=(4,), chunks=(4,), dtype="f4", dimension_names=["x"])
    assert "there is no variable to make batches of; --group can be model/hist" in fails(
        1, "view", tmp_path / "s.zarr")


def test_rectilinear_chunks_are_named_with_the_copy_that_helps(good, tmp_path):
    group = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=3)
    group.create_array("v", shape=(20, 6), chunks=(5, 6), dtype="f4")
    file = tmp_path / "s.zarr/v/zarr.json"
    metadata = json.loads(file.read_text())
    metadata["chunk_grid"] = {"name": "rectilinear",
                              "configuration": {"kind": "inline", "chunk_shapes": [[5, 15], [6]]}}
    file.write_text(json.dumps(metadata))
    said = inspect(good, tmp_path / "s.zarr")["arrays"]["v"]["unsupported"]
    assert ("the chunk grid 'rectilinear' is not supported; xarray copies the "
            "store to regular chunks" in said)
