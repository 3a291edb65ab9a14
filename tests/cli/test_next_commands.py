"""Commands that batchfs proposes open the store as the command before did: run as they are printed,
they succeed."""

import json
import os
import pathlib
import re
import shlex

import numpy as np
import pytest
import xarray as xr
import zarr


def proposed(good, *arguments):
    """The commands after "Next:" and "or:", as words without the redirection."""
    lines = re.findall(r"^(?:Next|  or): batchfs (.*) > view\.json$",
                       good("inspect", *arguments).decode(), re.MULTILINE)
    assert lines
    return [shlex.split(line) for line in lines]


@pytest.fixture
def outside(tmp_path):
    """A reference set whose coordinate lies outside of its directory, which has a blank and a quote
    in its name."""
    (tmp_path / "data.bin").write_bytes(np.arange(4.0).tobytes())
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f8", "compressor": None,
             "filters": None, "fill_value": 0, "order": "C"}
    refs = {".zgroup": '{"zarr_format": 2}'}
    for name in ("time", "v"):
        refs |= {f"{name}/.zarray": json.dumps(array),
                 f"{name}/.zattrs": '{"_ARRAY_DIMENSIONS": ["time"]}',
                 f"{name}/0": [f"file://{tmp_path}/data.bin", 0, 32]}
    file = tmp_path / "it's a set" / "r.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 1, "refs": refs}))
    return file


def test_options_that_open_the_store_are_repeated(good, fails, outside):
    fails(1, "cat", outside, "v")
    place = f"file://{outside.parents[1]}/"
    (words,) = proposed(good, outside, "--virtual", place, "--threads", "2", "--memory", "1G",
                        "--timeout", "7")
    assert words == ["view", "--virtual", place, "--timeout", "7", "--memory", "1G", str(outside)]
    assert "v" in json.loads(good(*words))["variables"]
    good("cat", *words[1:], "v")


def test_further_stores_have_their_own_options(good, outside, weather):
    place = f"file://{outside.parents[1]}/"
    text = good("inspect", weather, "--array", "t", "--store", f"refs={outside}", "--store-option",
                f"refs.virtual={place}").decode()
    first, second = (shlex.split(line)
                     for line in re.findall(r"^Next: batchfs (.*) >", text, re.MULTILINE))
    assert first == ["view", "--array", "t", str(weather)] and second == [
        "view", "--virtual", place, str(outside)]
    for words in (first, second):
        json.loads(good(*words))


def test_groups_links_and_levels(good, tmp_path):
    inside = tmp_path / "real" / "a b"
    xr.Dataset({"v": (("y", "x"), np.zeros((4, 4)))}).to_zarr(
        inside, zarr_format=2, consolidated=False)
    root = tmp_path / "s.zarr"
    zarr.open_group(root, mode="w", zarr_format=2)
    os.symlink(inside, root / "a b")
    (words,) = proposed(good, root, "--follow-links")
    assert words == ["view", "--group", "a b", "--follow-links", str(root)]
    json.loads(good(*words))


def test_doctor_repeats_them(batchfs, good, outside):
    place = f"file://{outside.parents[1]}/"
    checks = json.loads(batchfs("doctor", outside, "--virtual", place, "--json",
                                timeout=120).stdout)["checks"]
    (line,) = [re.search("`batchfs (.*) > view.json`", check["next"])[1]
               for check in checks if check["topic"] == "batch"]
    words = shlex.split(line)
    assert words == ["view", "--virtual", place, str(outside)]
    json.loads(good(*words))


def test_proposals_are_those_of_the_sources():
    """A new proposal for a named store is one of these tests."""
    tools = pathlib.Path(__file__).resolve().parents[2] / "tools"
    found = {str(file.relative_to(tools)) for file in tools.rglob("*.cc")
             if re.search(r'"[^"]*batchfs view " \+', file.read_text())}
    assert found == {"inspect/inspect_text.cc", "doctor/check_reading.cc"}
