"""Attributes that Python writes and reads back and that are not JSON: one of them must not cost the
store."""

import io
import json
import math

import numpy as np
import pytest
import xarray as xr
import zarr

VALUES = np.arange(1, 7, dtype="f4")
ODD = {"latin1": '"\\udcb0C"', "half_pair": '["\\ud83d", "a\\udfffb"]', "huge": "1e400",
       "deep": '{"a": [-1e999, {"b": 2}]}', "\\udcb0": '"the name"', "nan": "NaN",
       "infinity": "[Infinity, -Infinity]", "whole": "9" * 400}


def replaced(value):
    """The strict JSON of a value that Python's json module has read: U+FFFD for lone surrogates,
    infinity as a string."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [replaced(one) for one in value]
    if isinstance(value, dict):
        return {replaced(key): replaced(one) for key, one in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 1024:
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def insert(text, name):
    """The attributes `odd` of a document, written as Python would."""
    return text.replace('"odd": {}', ", ".join(f'"{key}": {value}' for key, value in ODD.items()),
                        1)


def attributes_of(path, group, consolidated, zarr_format):
    """The attributes as Python's json reads them."""
    if zarr_format == 2:
        key = f"{group}/.zattrs".lstrip("/")
        return (json.loads((path / ".zmetadata").read_text())["metadata"][key] if consolidated
                else json.loads((path / key).read_text()))
    if consolidated and group:
        return json.loads((path / "zarr.json").read_text())[
            "consolidated_metadata"]["metadata"][group]["attributes"]
    return json.loads((path / group / "zarr.json").read_text())["attributes"]


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def zarr_format(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["consolidated", "listed"])
def odd(request, zarr_format, tmp_path):
    """The path of a store with odd attributes of the group and of `t`, and whether it is
    consolidated."""
    path = tmp_path / "s.zarr"
    attributes = {"units": "K", "odd": {}}
    xr.Dataset({"t": (("x",), VALUES, attributes), "u": (("x",), VALUES + 1)},
               attrs={"title": "all", "odd": {}}).to_zarr(path, zarr_format=zarr_format,
                                                          consolidated=request.param)
    for document in path.rglob("*"):
        if document.name in (".zattrs", ".zmetadata", "zarr.json"):
            text = document.read_text()
            compact = json.dumps(json.loads(text))
            while '"odd": {}' in compact:
                compact = insert(compact, document.name)
            document.write_text(compact)
    return path, request.param


def test_the_others_and_the_values_are_read(good, tmp_path, odd, zarr_format):
    path, consolidated = odd
    np.testing.assert_array_equal(xr.open_zarr(path, consolidated=consolidated,
                                               chunks=None).t.values, VALUES)
    for name, values in (("t", VALUES), ("u", VALUES + 1)):
        np.testing.assert_array_equal(
            np.load(io.BytesIO(good("cat", path, name, "--format", "npy"))), values)
    found = json.loads(good("inspect", "--json", path))
    assert found["problems"] == []
    for group, shown in (("t", found["arrays"]["t"]["attributes"]),
                         ("", found["groups"]["/"]["attributes"])):
        want = replaced(attributes_of(path, group, consolidated, zarr_format))
        want.pop("_ARRAY_DIMENSIONS", None)
        shown.pop("_ARRAY_DIMENSIONS", None)
        assert shown == want
    where = "t/.zattrs" if zarr_format == 2 else "t/zarr.json"
    noted = {(note["key"], note["why"].split("'")[1]) for note in found["notes"]}
    for name in ("latin1", "half_pair", "huge", "deep", "\ufffd", "whole"):
        assert (where, name) in noted, noted
    assert not any(name in ("nan", "infinity", "units", "title") for _, name in noted)
    text = good("inspect", path).decode()
    assert ("Not read as stored:" in text
            and f"{where}: the attribute 'huge' has a number beyond float64" in text)
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"x": 2}, "variables": ["t"], "batch": 3}))
    np.testing.assert_array_equal(np.load(io.BytesIO(good("batch", path, "--view", view))),
                                  VALUES.reshape(3, 2))
    good("check", path)


def test_copies_and_mounts(good, tmp_path, odd):
    path, _ = odd
    for to in ("2", "3"):
        copy = tmp_path / f"copy{to}.zarr"
        good("rechunk", path, "-o", copy, "--format", to)
        np.testing.assert_array_equal(zarr.open_group(copy, mode="r")["t"][...], VALUES)
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    good("mount", path, mountpoint)
    try:
        np.testing.assert_array_equal(np.load(mountpoint / "arrays/t/values.npy"), VALUES)
    finally:
        good("umount", mountpoint)


def test_what_xarray_writes_of_latin1(good, tmp_path, zarr_format):
    path = tmp_path / "s.zarr"
    xr.Dataset({"t": (("x",), VALUES, {"units": "\udcb0C"})}).to_zarr(path, zarr_format=zarr_format)
    np.testing.assert_array_equal(np.load(io.BytesIO(good("cat", path, "t", "--format", "npy"))),
                                  VALUES)
    assert json.loads(good("inspect", "--json",
                           path))["arrays"]["t"]["attributes"]["units"] == "\ufffdC"


def set_raw(path, zarr_format, consolidated, key, raw):
    """Writes `raw`, a text that need not be JSON, as a value of the array's own metadata where it
    is read from."""
    document = path / ((".zmetadata" if zarr_format == 2 else "zarr.json") if consolidated else
                       ("t/.zarray" if zarr_format == 2 else "t/zarr.json"))
    whole = array = json.loads(document.read_text())
    if consolidated:
        array = (whole["metadata"]["t/.zarray"] if zarr_format == 2
                 else whole["consolidated_metadata"]["metadata"]["t"])
    array[key] = "PLACE"
    document.write_text(json.dumps(whole).replace('"PLACE"', raw))


@pytest.mark.parametrize("consolidated", [True, False], ids=["consolidated", "listed"])
@pytest.mark.parametrize("key, raw, why", [
    ("fill_value", "1e400", "'fill_value' has a number beyond float64"),
    ("shape", "[1e400]", "'shape.' has a number beyond float64"),
    ("type", '"\\udcb0"', "type' has text that is not Unicode"),
], ids=["fill", "shape", "type"])
def test_what_decides_on_values_is_an_error_of_its_array(good, fails, tmp_path, zarr_format,
                                                         consolidated, key, raw, why):
    path = tmp_path / "s.zarr"
    xr.Dataset({"t": (("x",), VALUES), "u": (("x",), VALUES)}).to_zarr(
        path, zarr_format=zarr_format, consolidated=consolidated)
    if key == "type":
        key = "dtype" if zarr_format == 2 else "data_type"
    set_raw(path, zarr_format, consolidated, key, raw)
    [problem] = json.loads(good("inspect", "--json", path))["problems"]
    assert why in problem["why"] and problem["key"].startswith("t/")
    assert why in fails(1, "cat", path, "t", "--format", "npy")
    np.testing.assert_array_equal(np.load(io.BytesIO(good("cat", path, "u", "--format", "npy"))),
                                  VALUES)


def test_a_node_with_such_a_name_is_left_out(good, fails, tmp_path, zarr_format):
    path = tmp_path / "s.zarr"
    xr.Dataset({"t": (("x",), VALUES), "u": (("x",), VALUES + 1)}).to_zarr(
        path, zarr_format=zarr_format, consolidated=True)
    document = path / (".zmetadata" if zarr_format == 2 else "zarr.json")
    text = document.read_text()
    document.write_text(text.replace('"t/.z', '"\\udcb0/.z') if zarr_format == 2
                        else text.replace('"t": {', '"\\udcb0": {'))
    found = json.loads(good("inspect", "--json", path))
    assert list(found["arrays"]) == ["u"]
    assert {problem["key"].split("/")[0] for problem in found["problems"]} == {"\ufffd"}
    assert "its name has text that is not Unicode" in fails(1, "cat", path, "\ufffd", "--format",
                                                            "npy")


def test_of_reference_sets(good, tmp_path):
    array = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<f4", "compressor": None,
             "filters": None, "order": "C", "fill_value": None}
    (tmp_path / "data").write_bytes(VALUES.tobytes())
    attributes = {"_ARRAY_DIMENSIONS": ["x"], "units": "\udcb0C"}
    for inline in (json.dumps(attributes), attributes):
        (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": {
            ".zgroup": json.dumps({"zarr_format": 2}), "t/.zarray": json.dumps(array),
            "t/.zattrs": inline, "t/0": [str(tmp_path / "data"), 0, 24]}}))
        out = good("cat", tmp_path / "refs.json", "t", "--format", "npy")
        np.testing.assert_array_equal(np.load(io.BytesIO(out)), VALUES)
