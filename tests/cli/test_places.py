"""The forms of a place: file: URLs as RFC 8089 has them, schemes in any case, and what is not quite
a URL."""

import io
import json
import os
import pathlib

import numpy as np
import pytest
import zarr

FORMS = ["{}", "file://{}", "file:{}", "FILE:{}", "File://{}", "file://localhost{}",
         "file://LOCALHOST{}"]


@pytest.fixture
def store(tmp_path):
    group = zarr.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.create_array("v", shape=(6,), chunks=(2,), dtype="f4")[:] = np.arange(1, 7)
    return tmp_path / "s.zarr"


def values(output):
    return np.load(io.BytesIO(output)).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_a_store_is_named_by_a_path_or_a_url(good, store, tmp_path, form):
    assert values(good("cat", form.format(store), "v")) == list(range(1, 7))
    told = json.loads(good("inspect", store, "--store", f"b={form.format(store)}", "--json"))
    assert list(told["stores"]) == ["b"]
    assert f"ok       store                  {store}: Zarr format 2" in good(
        "doctor", form.format(store)).decode()


@pytest.mark.parametrize("form", FORMS)
def test_an_output_too(good, fails, store, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    good("rechunk", store, "-o", form.format(tmp_path / "o.zarr"), "--chunks", "dim_0=3")
    assert zarr.open_array(tmp_path / "o.zarr" / "v")[:].tolist() == list(range(1, 7))
    assert "lies in the store" in fails(1, "rechunk", store, "-o", form.format(store / "o.zarr"),
                                        "--chunks", "dim_0=3")


@pytest.mark.parametrize("form", FORMS)
def test_the_files_of_a_reference_set_too(good, fails, tmp_path, form):
    outside = tmp_path / "outside"
    outside.mkdir()
    np.arange(4, dtype="<f4").tofile(outside / "data.bin")
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f4", "order": "C",
             "compressor": None, "fill_value": None, "filters": None}
    (tmp_path / "set").mkdir()
    for name, templates, file in (("plain", {}, form.format(outside / "data.bin")),
                                  ("template", {"u": form.format(outside)}, "{{u}}/data.bin")):
        refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(array),
                "a/0": [file, 0, 16]}
        place = tmp_path / "set" / f"{name}.json"
        place.write_text(json.dumps({"version": 1, "templates": templates, "refs": refs}))
        assert f"--virtual file://{outside}/" in fails(1, "cat", place, "a")
        for allowed in FORMS:
            assert values(good("cat", place, "a", "--virtual", allowed.format(outside))) == [
                0, 1, 2, 3]


@pytest.mark.parametrize("place, proposed", [
    ("file:s.zarr", "write 's.zarr'"), ("reference::FILE:s.json", "write 's.json'"),
    ("s3:/bucket/s.zarr", "write 's3://bucket/s.zarr'"),
    ("icechunk+GS:/bucket/s", "write 'gs://bucket/s'"),
    (str(pathlib.PurePosixPath("https://host/s.zarr?key=secret")), "write 'https://host/s.zarr'")])
def test_a_place_without_its_slashes_is_refused_with_the_form_to_write(
        fails, tmp_path, monkeypatch, place, proposed):
    monkeypatch.chdir(tmp_path)
    for words in (["inspect", place], ["rechunk", tmp_path / "s.zarr", "-o", place]):
        if words[0] == "rechunk":
            zarr.create_group(tmp_path / "s.zarr", overwrite=True).create_array(
                "v", shape=(1,), dtype="i1")
        line = fails(1, *words)
        assert proposed in line and "secret" not in line


def test_an_encoded_path_is_refused_with_the_form_to_write(good, fails, store, tmp_path):
    spaced = tmp_path / "with space.zarr"
    os.rename(store, spaced)
    assert f"a path has no %XX: write '{spaced}'" in fails(1, "inspect", spaced.as_uri())
    assert values(good("cat", f"file://{spaced}", "v")) == list(range(1, 7))
    percent = tmp_path / "with%20space.zarr"
    percent.symlink_to(spaced)
    assert values(good("cat", percent, "v")) == list(range(1, 7))


def test_a_referenced_file_that_never_was(fails, tmp_path):
    array = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f4", "order": "C",
             "compressor": None, "fill_value": None, "filters": None}
    for name, file in (("whole", ["no.bin"]), ("range", ["no.bin", 0, 4])):
        place = tmp_path / f"{name}.json"
        place.write_text(json.dumps({".zgroup": '{"zarr_format": 2}',
                                     "a/.zarray": json.dumps(array), "a/0": file}))
        line = fails(1, "cat", place, "a")
        assert (f"{tmp_path}/no.bin, which the chunk lies in, is not there; the "
                "set names it 'no.bin'" in line and "more" not in line)
