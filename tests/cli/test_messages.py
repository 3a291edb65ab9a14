"""Messages for people about errors and large sizes: one line with advice."""

import json
import os
import pathlib
import re
import socket
import subprocess

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr

PROGRAM = os.environ.get("BATCHFS", "build/batchfs")


@pytest.fixture
def said_of(fails, weather, tmp_path):
    """said_of(text): what `plan` says of a view file with this text."""

    def said(text):
        (tmp_path / "view.json").write_text(text)
        return fails(1, "plan", weather, "--view", tmp_path / "view.json")

    return said


# ---- view files ----

@pytest.mark.parametrize("text, words", [
    ('{"window": {"time": 1}\n "batch": 4}',
     'at line 2, column 2: a comma is missing before this: `^"batch": 4}`'),
    ('{"window": {"time": 1},}',
     'column 23: there must be no comma before \'}\': `{"window": {"time": 1}^,}`'),
    ('{"window": {"time": 1} # hours\n}',
     "JSON has no comments with '#': `{\"window\": {\"time\": 1} ^# hours`"),
    ('{"window": {"time": 1} /* hours\n}',
     'this comment is not closed: `{"window": {"time": 1} ^/* hours`'),
    ('{ // hours\n"window": {"time": 1},}', 'line 2, column 22: there must be no comma before'),
    ('{"window": {"lon": {"size": 4, "wrap": True}}}',
     'JSON writes true: `{"window": {"lon": {"size": 4, "wrap": ^True}}}`'),
    ("{'window': {'time': 1}}", "JSON wants double quotes: `{^'window': {'time': 1}}`"),
    ('{"select": {"level": None}}', "JSON writes null"),
])
def test_the_line_that_is_not_json_is_quoted(said_of, text, words):
    assert words in said_of(text)


def test_comments_and_a_schema_are_for_people_and_editors(batchfs, good, weather, tmp_path):
    text = """{ // every hour
      "$schema": "view.schema.json",
      "window": {"time": 1}, /* one
      by one */ "variables": ["t"]
    }"""
    (tmp_path / "view.json").write_text(text)
    good("plan", weather, "--view", tmp_path / "view.json")
    read = subprocess.run([PROGRAM, "plan", weather, "--view", "-"], input=text,
                          capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    wrong = subprocess.run([PROGRAM, "plan", weather, "--view", "-"], input="{",
                           capture_output=True, text=True)
    assert wrong.returncode == 1 and "(standard input)" in wrong.stderr


@pytest.mark.parametrize("command", ["show", "check", "plan", "statistics", "batch", "warm",
                                     "export", "mount", "serve"])
def test_the_help_says_where_a_view_may_come_from(good, command):
    (option,) = re.findall(r"^  --view .*", good(command, "--help").decode(), re.M)
    assert re.search("; - (is|reads it from) standard input", option)


@pytest.mark.parametrize("command", ["show", "check", "statistics"])
def test_the_man_page_says_that_a_view_may_come_from_standard_input(command):
    page = (pathlib.Path(__file__).parents[2] / "man/batchfs.1").read_text()
    (described,) = re.findall(rf"^\.It Cm {command} .*?(?=^\.It Cm )",
                              page.split(".Sh DESCRIPTION")[1], re.M | re.S)
    assert re.search(r"-view Cm \\&-\nreads the view from standard input|Cm \\&-\n"
                     r"reads it from standard input", described)


def test_statistics_check_and_show_read_a_view_from_standard_input(good, fails, weather, tmp_path):
    view = (b'{"select": {"time": {"from": "2000-01-02", "to": "2000-01-04"}}, "window": {"time": '
            b'1}, "variables": ["t"]}')
    told = json.loads(good("statistics", weather, "--view", "-", "--json", input=view))
    selected = xr.open_zarr(weather, consolidated=False)["t"].sel(
        time=slice("2000-01-02", "2000-01-04")).values.astype("f8")
    assert told["variables"]["t"]["count"] == [selected[:, 0].size] * 3  # of each level
    np.testing.assert_allclose(told["variables"]["t"]["mean"], selected.mean(axis=(0, 2, 3)),
                               rtol=1e-12)

    # 12 of 40 times, from 4 to 15, lie in 3 of 6 chunks of 7 times; each has 2 x 2 of levels and
    # latitudes.
    told = json.loads(good("check", weather, "--view", "-", "--json", input=view))
    assert told["chunks"] == 3 * 2 * 2

    page = good("show", weather, "--view", "-", input=view).decode()
    assert ("Batch 0 of epoch 0" in page
            and "Batch 0 of epoch 0" not in good("show", weather).decode())

    for command in ("statistics", "check", "show"):
        assert "(standard input)" in fails(1, command, weather, "--view", "-", input=b"{")


@pytest.mark.parametrize("change, words", [
    ({"batch_size": 8}, 'unknown key \'batch_size\': write "batch": {"size": 32}'),
    ({"shuffle": True}, '"order": {"shuffle": "global"'),
    ({"drop_last": True}, '"remainder": "drop"'),
    ({"num_workers": 8}, "there are no workers"),
    ({"transforms": []}, '"normalize"'),
    ({"window": {"time": {"size": 8, "overlap": 4}}},
     'window.time: unknown key \'overlap\': write "stride"'),
    ({"window": {"time": {"size": 8, "step": 4}}}, 'write "stride"'),
    ({"select": {"time": {"start": "2000", "stop": "2001"}}},
     'the first label of a range is "from"'),
    ({"dtype": "float"}, 'write "float32"'),
    ({"where": {"time": {"month": 6}}},
     'unknown key \'where\': it belongs to "samples": {"where": '),
    ({"mask": {"variable": "lsm"}}, 'unknown key \'mask\': it belongs to "samples": {"mask": '),
    ({"spacing": {"time": "6h"}}, 'unknown key \'spacing\': it belongs to "samples": {"spacing": '),
    ({"list": "samples.csv"}, 'unknown key \'list\': it belongs to "samples": {"list": '),
    ({"window": {"time": {"size": 3, "edge": "wrap"}}},
     'window.time.edge: \'wrap\' is none of drop, pad, partial: write "wrap": true'),
    ({"samples": {"where": {"latitude": 3}}},
     '\'latitude\' is not a dimension of "window"; "select" chooses'),
    ({"tensors": {"x": ["t2m", "u"]}},
     'tensors.x: expected an object; write {"variables": ["t2m","u"]}'),
    ({"tensors": {"x": {"variables": ["t2m"], "offsets": [-1, 0]}}},
     'tensors.x.offsets: expected an object; write {"time": [-1,0]}'),
    ({"tensors": {"x": {"variables": ["t2m"], "offsets": {"time": 1}}}},
     "tensors.x.offsets.time: expected a list; write [1]"),
    ({"tensors": {"x": {"variables": ["t2m"], "offsets": {"time": "6h"}}}},
     'tensors.x.offsets.time: expected a list; write ["6h"]'),
    ({"tensors": {"x": {"variables": [{"make": "zenith"}]}}},
     "there is no channel 'zenith', did you mean 'cos_zenith'?"),
])
def test_what_other_loaders_call_it_is_answered(said_of, change, words):
    assert words in said_of(json.dumps({"window": {"time": 1}, **change}))


# ---- which path is meant ----

def test_an_error_says_which_path_it_means(fails, good, weather, tmp_path):
    view = tmp_path / "view.json"
    view.write_text('{"window": {"time": 1}}')
    assert f"(the view file '{tmp_path}/none.json')" in fails(
        1, "plan", weather, "--view", tmp_path / "none.json")
    assert f"(the view file '{tmp_path}')" in fails(1, "plan", weather, "--view", tmp_path)
    assert f"no such directory (the store '{tmp_path}/none.zarr')" in fails(
        1, "plan", tmp_path / "none.zarr", "--view", view)
    assert f"(the store '{view}')" in fails(1, "inspect", view)
    (tmp_path / "empty").mkdir()
    assert f"(the store '{tmp_path}/empty')" in fails(1, "inspect", tmp_path / "empty")
    view.write_text('{"window": {"tim": 1}}')
    assert f"did you mean 'time'? (the view file '{view}')" in fails(
        1, "plan", weather, "--view", view)
    if os.path.exists("/dev/fuse"):
        assert f"no such directory; make it with mkdir (the mount point '{tmp_path}/mnt')" in fails(
            1, "mount", weather, tmp_path / "mnt")
        assert f"it is not a directory (the mount point '{view}')" in fails(
            1, "mount", weather, view)


def without_fuse(*arguments):
    """The program where /dev is empty but for what programs need."""
    script = 'mount -t tmpfs none /dev && : > /dev/null && exec "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", PROGRAM,
                           *map(str, arguments)], capture_output=True, timeout=60, check=False)


@pytest.mark.skipif(subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev"],
                                   capture_output=True, check=False).returncode != 0,
                    reason="needs a mount namespace: root")
def test_without_dev_fuse_mount_and_doctor_refer_to_each_other(weather, tmp_path):
    done = without_fuse("mount", weather, tmp_path)
    line = done.stderr.decode()
    assert done.returncode == 1 and line.count("\n") == 1
    assert "/dev/fuse" in line and "`batchfs doctor`" in line and "`batchfs serve`" in line
    report = without_fuse("doctor").stdout.decode()
    for words in ("`batchfs mount` cannot work", "modprobe fuse", "--device /dev/fuse",
                  "`batchfs serve`"):
        assert words in report


# ---- sizes ----

def test_the_starter_view_of_a_large_store_is_not_large(batchfs, tmp_path):
    group = zarr.create_group(tmp_path / "era5.zarr")
    grid = {"latitude": 721, "longitude": 1440}
    for name in ("geopotential", "temperature"):
        group.create_array(name, shape=(350000, 37, 721, 1440), chunks=(1, 37, 721, 1440),
                           dtype="f4", dimension_names=["time", "level", *grid])
    for name in ("10m_u_component_of_wind", "2m_temperature"):
        group.create_array(name, shape=(350000, 721, 1440), chunks=(1, 721, 1440), dtype="f4",
                           dimension_names=["time", *grid])
    done = batchfs("view", tmp_path / "era5.zarr")
    note = done.stderr.decode()
    assert done.returncode == 0 and note.count("\n") == 1
    assert "2 of 4 variables" in note and "9.4 GB" in note
    (tmp_path / "v.json").write_bytes(done.stdout)
    view = json.loads(done.stdout)
    assert view["variables"] == ["10m_u_component_of_wind", "2m_temperature"]
    plan = json.loads(batchfs("plan", tmp_path / "era5.zarr", "--view", tmp_path / "v.json",
                              "--json").stdout)
    assert plan["batch_bytes"] <= 256 << 20


@pytest.fixture
def planned(good, tmp_path):
    """planned(view, memory): the text and the JSON of `plan` of 100 steps of 100 KB in chunks of
    ten."""
    xr.Dataset({"t": (("time", "x"), np.ones((100, 25600), "f4"))}).to_zarr(
        tmp_path / "t.zarr", zarr_format=2,
        encoding={"t": {"chunks": (10, 25600), "compressors": numcodecs.Zlib(1)}})

    def plan(view, memory):
        (tmp_path / "v.json").write_text(json.dumps(view))
        arguments = ("plan", tmp_path / "t.zarr", "--view", tmp_path / "v.json", "--memory", memory)
        return good(*arguments).decode(), json.loads(good(*arguments, "--json"))

    return plan


def test_plan_does_not_alarm_where_nothing_is_wrong(planned):
    # Four steps of ten in each chunk: in memory, or kept for the next batch, they cost nothing.
    for memory, words in (("1G", "each is read once and stays in memory"),
                          ("8M", "each is read about once an epoch")):
        text, numbers = planned({"window": {"time": 1}, "batch": 4}, memory)
        assert words in text and "Nothing to change" in text
        assert "amplification" not in text and "if none were kept" not in text
        assert (numbers["chunk_reads_per_epoch"] > 2
                and numbers["expected_chunk_reads_per_epoch"] == pytest.approx(1, abs=0.2))


def test_plan_says_what_a_shuffle_costs_with_the_memory_there_is(planned):
    text, numbers = planned({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global"}},
                            "8M")
    assert "times an epoch: about 4.0 MB of them stay in memory" in text
    assert "bytes for each byte that batches use" in text
    assert numbers["expected_chunk_reads_per_epoch"] > 1.5


def test_mount_and_serve_warn_of_memory_as_plan_does(planned, tmp_path):
    text, numbers = planned({"window": {"time": 1}, "batch": 20}, "5M")
    line = next(line for line in numbers["advice"] if "needs" in line)
    assert "while it is made and the memory budget is 5.0 MB" in line
    with subprocess.Popen([PROGRAM, "serve", str(tmp_path / "t.zarr"), "--view",
                           str(tmp_path / "v.json"), "--memory", "5M", "--socket",
                           str(tmp_path / "s")], stderr=subprocess.PIPE, text=True) as server:
        said = []
        for logged in server.stderr:
            said.append(logged)
            if "serving batches" in logged:
                break
        server.terminate()
    assert any(line in logged for logged in said), said


def test_windows_that_wrap_need_the_whole_circle(good, fails, tmp_path):
    view = {"window": {"lon": {"size": 4, "stride": 2, "wrap": True}, "time": 1}}
    for name, lon in (("globe", np.arange(0, 360, 30.0)), ("region", np.arange(10, 60, 5.0))):
        xr.Dataset({"t": (("time", "lon"), np.zeros((4, len(lon)), "f4"))},
                   {"lon": ("lon", lon)}).to_zarr(tmp_path / name, zarr_format=2)
    (tmp_path / "v.json").write_text(json.dumps(view))
    good("plan", tmp_path / "globe", "--view", tmp_path / "v.json")
    line = fails(1, "plan", tmp_path / "region", "--view", tmp_path / "v.json")
    assert "window.lon.wrap: the values of 'lon', 10.0 to 55.0, are a part of the circle" in line
    view["select"] = {"lon": {"from": 300, "to": 60, "wrap": True}}
    (tmp_path / "v.json").write_text(json.dumps(view))
    assert "part of the circle" in fails(1, "plan", tmp_path / "globe", "--view",
                                         tmp_path / "v.json")


@pytest.mark.parametrize("words, command, code", [
    (["inspect", "/nothing/x.zarr"], "inspect", "not_found"),
    (["inspect", "/dev", "--view"], "inspect", "usage"),
    (["plan", "/nothing/x.zarr", "--view", "/nothing/v.json"], "plan", "not_found"),
    (["inspct"], "batchfs", "usage")])
def test_failures_for_programs_are_json(batchfs, words, command, code):
    done = batchfs(*words, env=os.environ | {"BATCHFS_ERRORS": "json"})
    assert done.returncode == (2 if code == "usage" else 1) and done.stdout == b""
    told = json.loads(done.stderr)
    assert (told["command"], told["code"]) == (command, code)
    for_people = batchfs(*words).stderr.decode()
    assert for_people == f"batchfs: {command} failed: {told['message']}\n"


# ---- options, servers and places ----

@pytest.mark.parametrize("arguments, option",
                         [(["--veiw", "v.json"], "veiw"), (["--views", "v.json"], "views"),
                          (["--view", "v.json", "--veiw", "x"], "veiw")])
def test_a_misspelt_option_is_named_before_the_required_one(fails, weather, arguments, option):
    assert f"there is no option '--{option}', did you mean '--view'?" in fails(
        2, "plan", weather, *arguments)


def test_a_refused_connection_says_so(fails):
    with socket.socket() as reserved:  # bound, and nobody listens
        reserved.bind(("127.0.0.1", 0))
        said = fails(1, "inspect", f"http://127.0.0.1:{reserved.getsockname()[1]}/s.zarr",
                     "--retries", "0")
    assert "failed: connection refused" in said.lower()


@pytest.mark.parametrize("command", [["statistics"], ["export", "--to", "npz"], ["show"]])
def test_an_output_whose_folder_is_missing_names_the_folder(fails, weather, tmp_path, command):
    (tmp_path / "view.json").write_text('{"window": {"time": 1}}')
    view = [] if command == ["show"] else ["--view", tmp_path / "view.json"]
    said = fails(1, *command, weather, *view, "-o", tmp_path / "none" / "x")
    assert f"the folder '{tmp_path}/none' does not exist; make it first" in said
    assert not (tmp_path / "none").exists()


def test_rechunk_makes_one_folder_and_no_more(fails, good, weather, tmp_path):
    said = fails(1, "rechunk", weather, "-o", tmp_path / "none" / "x")
    assert f"the folder '{tmp_path}/none' does not exist; make it first" in said
    assert not (tmp_path / "none").exists()
    good("rechunk", weather, "-o", f"{tmp_path}/new/")
    assert (tmp_path / "new").is_dir()
