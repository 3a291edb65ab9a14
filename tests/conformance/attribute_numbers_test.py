"""Attributes that are numbers: NaN and infinity, as Python's json module writes them, and values to
mask, in copies."""

import json
import math

import numpy as np
import pytest
import xarray as xr
import zarr

NAN, INFINITY = math.nan, math.inf


def random_value(rng, depth=0):
    kind = int(rng.integers(10 if depth < 3 else 8))
    if kind == 8:
        return [random_value(rng, depth + 1) for _ in range(int(rng.integers(4)))]
    if kind == 9:
        return {f"{name}{i}": random_value(rng, depth + 1)
                for i, name in enumerate(rng.permutation(["NaN", "a \"b\"", "\\", "é"]))}
    return [NAN, INFINITY, -INFINITY, "NaN", "-Infinity", "x \"NaN\", \\", 1.5, None][kind]


def refuse(token):
    raise AssertionError(f"{token} is not JSON")


@pytest.mark.parametrize("source", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_copies_have_the_same_attributes(batchfs, tmp_path, seed, source):
    rng = np.random.default_rng(seed)
    attributes = {"a": [NAN, "NaN", [INFINITY, -INFINITY]]} | {
        f"k{i}": random_value(rng) for i in range(5)}
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=source, attributes=attributes)
    for path in ("v", "g/w"):
        names = {"dimension_names": ["x"]} if source == 3 else {}
        own = attributes | ({} if source == 3 else {"_ARRAY_DIMENSIONS": ["x"]})
        group.create_array(path, data=np.arange(3, dtype="f4"), chunks=(3,), attributes=own,
                           **names)
    group["g"].attrs.update(attributes)
    if seed % 2:
        zarr.consolidate_metadata(tmp_path / "a")
    shown = json.loads(batchfs.bytes("inspect", "--json", tmp_path / "a"), parse_constant=refuse)
    assert shown["arrays"]["v"]["attributes"]["a"] == ["NaN", "NaN", ["Infinity", "-Infinity"]]
    for to in (2, 3):
        batchfs.bytes("rechunk", tmp_path / "a", "-o", tmp_path / f"{to}", "--format", to)
        for consolidated in (None, False):
            copy = zarr.open_group(tmp_path / f"{to}", mode="r", use_consolidated=consolidated)
            for node in (copy, copy["v"], copy["g"], copy["g/w"]):
                got = {name: value for name, value in dict(node.attrs).items()
                       if name not in ("_ARRAY_DIMENSIONS", "_FillValue")}
                assert repr(got) == repr(attributes)  # NaN != NaN


@pytest.mark.parametrize("to", [2, 3])
def test_xarray_decodes_to_the_same_type(batchfs, tmp_path, to):
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=3)
    group.create_array("v", data=np.arange(3, dtype="f4"), dimension_names=["x"], chunks=(3,),
                       attributes={"scale_factor": 0.5, "missing_value": NAN})
    batchfs.bytes("rechunk", tmp_path / "a", "-o", tmp_path / "b", "--format", to)
    want, got = (xr.open_zarr(tmp_path / name, consolidated=False, chunks=None)["v"]
                 for name in "ab")
    assert got.dtype == want.dtype == np.dtype("f4")
    np.testing.assert_array_equal(got.values, want.values)
    np.testing.assert_array_equal(batchfs.npy("cat", tmp_path / "a", "v"), want.values)


def test_a_number_beyond_float64_is_infinite_as_python_reads_it(batchfs, tmp_path):
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=3)
    group.create_array("v", data=np.arange(3, dtype="f4"), dimension_names=["x"], chunks=(3,),
                       attributes={"limit": "BEYOND"})
    document = tmp_path / "a/v/zarr.json"
    document.write_text(document.read_text().replace('"BEYOND"', "[1e999, -1e999]"))
    batchfs.bytes("rechunk", tmp_path / "a", "-o", tmp_path / "b")
    assert zarr.open_group(tmp_path / "b", mode="r")["v"].attrs["limit"] == [INFINITY, -INFINITY]


def test_fill_values_are_written_as_the_format_names_them(batchfs, tmp_path):
    """A bare NaN as fill value is not valid; numpy's json wrote it."""
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=2)
    group.create_array("v", shape=(4,), chunks=(2,), dtype="f4", fill_value=NAN,
                       attributes={"_ARRAY_DIMENSIONS": ["x"]})[:2] = 1
    document = tmp_path / "a/v/.zarray"
    document.write_text(document.read_text().replace('"NaN"', "NaN"))
    assert "NaN" in document.read_text() and '"NaN"' not in document.read_text()
    for to in (2, 3):
        batchfs.bytes("rechunk", tmp_path / "a", "-o", tmp_path / f"{to}", "--format", to)
        name = {2: ".zarray", 3: "zarr.json"}[to]
        json.loads((tmp_path / f"{to}/v/{name}").read_text(), parse_constant=refuse)
        np.testing.assert_array_equal(zarr.open_group(tmp_path / f"{to}", mode="r")["v"][:],
                                      np.array([1, 1, NAN, NAN], "f4"))


def test_batches_and_exports_as_zarr_keep_them(batchfs, tmp_path):
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=3)
    group.create_array("v", data=np.arange(4, dtype="f4"), dimension_names=["x"], chunks=(4,),
                       attributes={"limits": [NAN, INFINITY, "NaN"]})
    group.create_array("x", data=np.arange(4), dimension_names=["x"], chunks=(4,),
                       attributes={"step": NAN})
    (tmp_path / "v.json").write_text('{"window": {"x": 4}, "variables": ["v"]}')
    batchfs.bytes("export", tmp_path / "a", "--view", tmp_path / "v.json", "--to", "zarr", "-o",
                  tmp_path / "b")
    limits = zarr.open_group(tmp_path / "b", mode="r")["v"].attrs["limits"]
    assert math.isnan(limits[0]) and limits[1:] == [INFINITY, "NaN"]


@pytest.mark.parametrize("values",
                         [np.array([b"ab", b"c"], "S3"), np.array(["ab", "c"], "U3"),
                          np.array([1, 2], "M8[ns]"), np.array([1, 2], "m8[s]"),
                          np.array(["ab", "c"], np.dtypes.StringDType()), np.array([True, True]),
                          np.array([1, 2], "i2"), np.array([1, 2], "f4"), np.array([1, 2], "c8")],
                         ids=lambda values: str(values.dtype))
def test_xarray_opens_copies_of_arrays_with_a_fill_value_to_mask(batchfs, tmp_path, values):
    """In format 3 it has no such attribute of strings and times."""
    fill = {"S": "ZGU=", "U": "de", "T": "de", "M": 3, "m": 3, "b": False, "i": 3, "f": 3.0,
            "c": [3.0, 0.0]}[values.dtype.kind]
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=2)
    array = group.create_array("v", shape=values.shape, chunks=(1,),
                               dtype="str" if values.dtype.kind == "T" else values.dtype,
                               attributes={"_ARRAY_DIMENSIONS": ["x"], "_FillValue": fill})
    array[:] = values
    want = xr.open_zarr(tmp_path / "a", consolidated=False, chunks=None)["v"]
    batchfs.bytes("rechunk", tmp_path / "a", "-o", tmp_path / "b", "--format", 3)
    got = xr.open_zarr(tmp_path / "b", consolidated=False, chunks=None)["v"]
    assert got.values.tolist() == want.values.tolist()


@pytest.mark.parametrize("kind", ["f4", "f8", "i2"])
@pytest.mark.parametrize("scale", [[2], [1], [0.5], [-3]], ids=str)
def test_a_scale_in_a_list_keeps_fractions(batchfs, tmp_path, kind, scale):
    """xarray's values are objects where it is an integer; an integer without a list makes integers
    of floats in both."""
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=3)
    for name, attribute in (("list", scale), ("number", scale[0])):
        group.create_array(name, data=np.array([3.75, 1.5]).astype(kind), dimension_names=["x"],
                           chunks=(2,), attributes={"scale_factor": attribute})
    wanted = xr.open_zarr(tmp_path / "a", consolidated=False, chunks=None)
    assert batchfs.npy("cat", tmp_path / "a", "list").dtype == np.float64
    for name in ("list", "number"):
        np.testing.assert_array_equal(batchfs.npy("cat", tmp_path / "a", name).astype("f8"),
                                      wanted[name].values.astype("f8"))
