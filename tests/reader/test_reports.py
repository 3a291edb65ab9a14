"""batchfs.view, inspect, plan and statistics: what the program prints, as Python objects."""

import html.parser
import json
import pickle
import re
import subprocess

import numpy as np
import pytest
import zarr
from reader_servers import PROGRAM

import batchfs

VIEW = {"window": {"time": 2}, "variables": ["t"], "batch": {"size": 4}}


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("BATCHFS", PROGRAM)


def printed(*words, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True,
                          **options).stdout


@pytest.fixture
def view_file(tmp_path):
    file = tmp_path / "view.json"
    file.write_text(json.dumps(VIEW))
    return file


# ---- reports ----


def test_inspect_is_what_the_program_says(store):
    report = batchfs.inspect(store)
    assert report.to_dict() == json.loads(printed("inspect", store, "--json"))
    assert repr(report) == str(report) == printed("inspect", store).rstrip("\n")
    assert report.arrays.t.shape == report["arrays"]["t"]["shape"] == [40, 3, 8, 16]
    assert ({"t", "q"} <= set(report.arrays) and "t" in dir(report.arrays)
            and len(report.arrays) >= 2)
    with pytest.raises(AttributeError, match="there is no 'x'; there are "):
        _ = report.arrays.x
    with pytest.raises(KeyError):
        _ = report["x"]
    again = pickle.loads(pickle.dumps(report))
    assert again == report and repr(again) == repr(report)


@pytest.mark.parametrize("given", ["dict", "file"])
def test_plan_is_what_the_program_says(store, view_file, given):
    view = VIEW | {"name": "view"} if given == "dict" else view_file
    report = batchfs.plan(store, view, memory="64MB")
    words = ["plan", store, "--view", view_file, "--memory", "64MB"]
    assert report.to_dict() == json.loads(printed(*words, "--json"))
    assert repr(report) == printed(*words).rstrip("\n")
    assert report.tensors[0].shape == [4, 2, 3, 8, 16] and report.batches == 5
    assert batchfs.plan(store, view, world=2, nodes=1).world == 2


@pytest.mark.parametrize("per", [None, "none", ["level", "latitude"]])
def test_statistics_is_what_the_program_says(store, view_file, tmp_path, per):
    file = tmp_path / "statistics.json"
    report = batchfs.statistics(store, VIEW, per=per, output=file)
    words = ["statistics", store, "--view", view_file]
    for dim in [per] if isinstance(per, str) else per or []:
        words += ["--per", dim]
    assert report.to_dict() == json.loads(file.read_text()) == json.loads(printed(*words, "--json"))
    assert repr(report) == printed(*words).rstrip("\n")
    values = zarr.open_group(store, mode="r")["t"][:].astype("f8")
    if per == "none":
        assert (np.isclose(report.variables.t.mean, values.mean())
                and np.isclose(report.variables.t.std, values.std()))
    # The report's purpose.
    view = VIEW | {"normalize": {"method": "zscore", "statistics": str(file)}}
    assert batchfs.plan(store, view).samples == 20


def test_failures_are_those_of_the_program(store, tmp_path):
    for call, kind, told in [
            (lambda: batchfs.inspect(tmp_path / "no.zarr"), batchfs.NotFound, "no.zarr"),
            (lambda: batchfs.inspect(store, branch="x", tag="y"), batchfs.InvalidArgument,
             "branch|tag"),
            (lambda: batchfs.inspect(store, jsn=True), batchfs.InvalidArgument,
             "no option '--jsn', did you mean '--json'"),
            (lambda: batchfs.plan(store, {"window": {"time": 1}, "batsch": 1}),
             batchfs.InvalidArgument, r"'batsch'.*\(the view\)"),
            (lambda: batchfs.plan(store, "no.json"), batchfs.NotFound,
             "the view file '.*/no.json'"),
            (lambda: batchfs.plan(store, VIEW, nodes=3), batchfs.InvalidArgument,
             "--nodes needs --world"),
            (lambda: batchfs.statistics(store, VIEW, per="tme"), batchfs.Error, "tme"),
            (lambda: batchfs.inspect("--help"), batchfs.NotFound, "--help"),
            (lambda: batchfs.inspect("a\0b"), batchfs.InvalidArgument, "null byte")]:
        with pytest.raises(kind, match=told) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_text_of_a_store_that_is_gone(tmp_path):
    zarr.create_group(tmp_path / "s.zarr").create_array("a", shape=(2,), dtype="i4")
    report = batchfs.inspect(tmp_path / "s.zarr")
    (tmp_path / "s.zarr").rename(tmp_path / "gone.zarr")
    assert "inspect" in repr(report) and "s.zarr" in repr(report)


# ---- pages ----


def test_show_is_the_page_of_the_program(store, view_file, tmp_path):
    page = batchfs.show(store, view_file, pictures=3)
    without_time = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+</p>", "", text) for text in
                    (page.html, printed("show", store, "--view", view_file, "--pictures", "3"))]
    assert without_time[0] == without_time[1] and page.html.count("<image ") >= 1
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert "save(file)" in repr(page) and len(repr(page)) < 300
    given = batchfs.show(store, VIEW | {"name": "<b>"}, pictures=0)
    assert "&lt;b&gt;" in given.html
    with pytest.raises(batchfs.NotFound, match="no.zarr"):
        batchfs.show(tmp_path / "no.zarr")


def test_notebooks_show_a_page_in_a_frame(store):
    page = batchfs.show(store, pictures=1)

    class Frame(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            frames.append((tag, dict(attributes)))

    frames = []
    Frame().feed(page._repr_html_())
    ((tag, attributes),) = frames
    assert tag == "iframe" and attributes["sandbox"] == "" and attributes["srcdoc"] == page.html


# ---- HTML ----


class Reader(html.parser.HTMLParser):
    """A page as a browser sees it: elements, which must be closed in order, and text."""

    ALLOWED = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
               "p"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in self.ALLOWED and {name
                                        for name, _ in attributes} <= {"style", "scope", "open"}
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_tables_for_notebooks(store):
    shown = Reader(batchfs.inspect(store)._repr_html_())
    for text in ("inspect", "weather.zarr", "orography", "40, 3, 8, 16", "float32"):
        assert text in shown.text
    assert "table" in shown.seen
    assert "decode_amplification" in Reader(batchfs.plan(store, VIEW)._repr_html_()).text
    assert "mean" in Reader(batchfs.statistics(store, VIEW)._repr_html_()).text


HOSTILE = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "\x1b[2J",
           "a\u202eb", "'; --", "x" * 5000]


def test_names_from_a_store_are_only_text(tmp_path):
    group = zarr.create_group(tmp_path / "<b>s.zarr", attributes={name: name for name in HOSTILE})
    for number, name in enumerate(HOSTILE):
        group.create_array(f"a{number}", shape=(2,), dtype="i4",
                           attributes={name: {name: [name, {name: name}]}}, dimension_names=[name])
    html_text = batchfs.inspect(tmp_path / "<b>s.zarr")._repr_html_()
    shown = Reader(html_text)
    assert "<script>alert(1)</script>" in shown.text and "&lt;b&gt;" in shown.text
    assert "\x1b" not in html_text and "\u202e" not in html_text and "x" * 300 not in html_text


def test_what_is_large_is_cut(tmp_path):
    group = zarr.create_group(tmp_path / "s.zarr",
                              attributes={"deep": json.loads("[" * 50 + "]" * 50),
                                          "long": list(range(5000))})
    for number in range(130):
        group.create_array(f"a{number:03}", shape=(2,), dtype="i4")
    report = batchfs.inspect(tmp_path / "s.zarr")
    shown = Reader(report._repr_html_())
    assert "a099" in shown.text and "a100" not in shown.text and "and 30 more" in shown.text
    assert len(report._repr_html_()) < 300_000


# ---- views from keyword arguments ----


def test_a_view_has_the_keys_that_are_given(store):
    made = batchfs.view(store, window={"time": np.int64(2)}, variables=("t",), batch={"size": 4},
                        name="mine", dtype="float32")
    assert made == {"name": "mine", "variables": ["t"], "window": {"time": 2}, "batch": {"size": 4},
                    "dtype": "float32"}
    with batchfs.open(store, view=made) as data:
        assert data.name == "mine" and len(data) == 5 and data[0]["t"].shape == (4, 2, 3, 8, 16)


def test_without_a_window_it_is_the_starter_view(store):
    starter = json.loads(printed("view", store))
    assert batchfs.view(store) == starter
    assert batchfs.view(store, batch=3, name="x") == starter | {"batch": 3, "name": "x"}
    assert batchfs.view(store, variables=["q"])["variables"] == ["q"]


@pytest.mark.parametrize("keys", [
    {"window": {"tim": 1}}, {"window": {"time": 0}}, {"window": {"time": 1}, "batch": {"sise": 3}},
    {"window": {"time": 1}, "widnow": 3}, {"window": {"time": 1}, "dtype": "float31"},
    {"window": {"time": 1}, "select": {"time": "1900"}}, {"window": {"time": 1}, "tensors": {}}])
def test_a_wrong_view_has_the_error_of_its_json(store, tmp_path, keys):
    file = tmp_path / "view.json"
    file.write_text(json.dumps(keys))
    done = subprocess.run([PROGRAM, "plan", store, "--view", file], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1
    expected = re.sub(r"^batchfs: plan failed: ", "", done.stderr.strip()).replace(
        f"the view file '{file}'", "the view")
    with pytest.raises((batchfs.InvalidArgument, batchfs.NotFound)) as caught:
        batchfs.view(store, **keys)
    assert str(caught.value) == expected
    with pytest.raises((batchfs.InvalidArgument, batchfs.NotFound)) as caught:
        batchfs.open(store, view=keys)
    assert str(caught.value) == expected
