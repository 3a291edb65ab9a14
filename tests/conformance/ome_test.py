"""OME-Zarr: axes, coordinates and levels as the specification defines them, in stores that
zarr-python writes."""

import io
import json

import numpy as np
import pytest
from ome_images import (
    RNG, SCALE, SHAPE, VERSIONS, add_array, axes, coordinates, downsampled, expected, metadata,
    new_group, save, scales, shift, write_image,
)


@pytest.fixture(scope="module", params=VERSIONS)
def image(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("ome") / "image.zarr"
    return request.param, path, write_image(new_group(path, request.param), request.param)


EACH = {"window": {"c": 1, "z": 1, "y": 1, "x": 1}}


@pytest.mark.parametrize("k", range(3))
def test_dimensions_and_coordinates(batchfs, image, tmp_path, k):
    version, store, values = image
    for view in ({**EACH, "variables": [str(k)]}, {**EACH, "level": k},
                 {**EACH, "level": k, "variables": ["image"]}):
        assert coordinates(batchfs, store, view, tmp_path) == expected(version, k)
        batch = batchfs.npy("batch", store, "--view", save(tmp_path, {**view, "batch": 1 << 20}))
        np.testing.assert_array_equal(batch.reshape(values[k].shape), values[k])
    plan = json.loads(batchfs.bytes("plan", store, "--view",
                                    save(tmp_path, {"window": {"y": 4, "x": 4}, "level": k}),
                                    "--json"))
    assert [t["name"] for t in plan["tensors"]] == ["image"] and plan["tensors"][0]["dims"] == [
        "sample", "c", "z", "y", "x"]


def test_inspect_has_scales_and_units(batchfs, image):
    _, store, _ = image
    found = json.loads(batchfs.bytes("inspect", store, "--json"))["ome"]["images"]["/"]
    assert [a.get("unit")
            for a in found["levels"][1]["axes"]] == [None, "micrometer", "micrometer", "micrometer"]
    assert [a["scale"] for a in found["levels"][1]["axes"][1:]] == scales(1)[1:]
    assert [a["translation"] for a in found["levels"][1]["axes"][1:]] == shift(1)[1:]


def test_labels_select(batchfs, image, tmp_path):
    _, store, values = image
    y = np.arange(24) * SCALE[2]
    rows = (y >= 1.0) & (y <= 5.0)
    got = batchfs.npy("cat", store, "0", "--select", "c=GFP", "--select", "y=1.0:5.0")
    np.testing.assert_array_equal(got, values[0][1][:, rows])
    view = {"level": 0, "select": {"c": "DAPI", "y": {"from": 1.0, "to": 5.0}}, "window": {"x": 8},
            "batch": 4}
    got = batchfs.npy("batch", store, "--view", save(tmp_path, view))
    np.testing.assert_array_equal(got,
                                  values[0][0][:, rows].reshape(3, -1, 4, 8).transpose(2, 0, 1, 3))
    assert "'blue'" in batchfs.refusal("cat", store, "0", "--select", "c=blue")


@pytest.mark.parametrize("level, wanted", [
    (0, 0), (2, 2), ({"resolution": {"x": "0.25 um"}}, 0), ({"resolution": {"x": "600nm"}}, 1),
    ({"resolution": {"x": 0.8, "y": "1.4 micrometer"}}, 2), ({"resolution": {"x": "1 m"}}, 2),
])
def test_a_level_is_chosen(batchfs, image, tmp_path, level, wanted):
    _, store, values = image
    view = {"level": level, "window": {"y": 6, "x": 8}, "batch": 1}
    np.testing.assert_array_equal(batchfs.npy("batch", store, "--view", save(tmp_path, view))[0],
                                  values[wanted][:, :, :6, :8])
    del view["level"]
    text = str(level) if isinstance(level, int) else (
        ",".join(f"{axis}={d}".replace(" ", "") for axis, d in level["resolution"].items()))
    arguments = (store, "--level", text)
    got = batchfs.npy("batch", *arguments, "--view", save(tmp_path, view))
    np.testing.assert_array_equal(got[0], values[wanted][:, :, :6, :8])
    np.testing.assert_array_equal(batchfs.npy("cat", store, "image", "--level", text),
                                  values[wanted])
    found = json.loads(batchfs.bytes("inspect", *arguments, "--json"))
    assert list(found["arrays"]) == [str(wanted)]
    assert json.loads(batchfs.bytes("view", *arguments))["level"] == wanted


@pytest.mark.parametrize("level, words", [
    (3, "there is no level 3; the image has 3 levels, from 0 to 2"),
    (-1, "level: -1 is too small"),
    ("0", "level: expected the number of a level"),
    (1.5, "level: expected a whole number"),
    ({"resolution": {}}, "level.resolution: name at least one axis"),
    ({"resolution": {"x": "um"}}, "level.resolution.x: expected a distance"),
    ({"resolution": {"x": 0}}, "level.resolution.x: expected a distance"),
    ({"resolution": {"q": 1}}, "the image has no axis 'q'"),
    ({"resolution": {"c": 1}}, "no scale along 'c'"),
    ({"resolution": {"x": "1 s"}}, "cannot be compared with"),
    ({"resolution": {"x": "1 zork"}}, "'zork' is not a unit"),
    ({"size": 1}, "level: unknown key 'size'"),
])
def test_levels_that_are_refused(batchfs, image, tmp_path, level, words):
    _, store, _ = image
    said = batchfs.refusal("plan", store, "--view",
                           save(tmp_path, {"level": level, "window": {"x": 1}}))
    assert words in said and "view.json" in said


def test_a_view_without_a_level_names_its_arrays(batchfs, image, tmp_path):
    _, store, _ = image
    said = batchfs.refusal("plan", store, "--view", save(tmp_path, {"window": {"x": 1}}))
    assert "OME-Zarr image of 3 levels" in said and '"level": 0' in said
    said = batchfs.refusal("plan", store, "--view",
                           save(tmp_path, {"window": {"x": 1}, "variables": ["0", "1"]}))
    assert "dimension 'y' has length 24 in '0' and 12 in '1'" in said
    assert "--level" in batchfs.refusal("cat", store, "image", "--level", "7")


def test_the_fill_value_is_a_value(batchfs, image, tmp_path):
    """Where xarray takes 0 of Zarr v2 for missing: images keep their type."""
    _, store, values = image
    assert (values[0] == 0).any()
    got = batchfs.npy("cat", store, "0")
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got, values[0])


def test_inspect(batchfs, image):
    version, store, _ = image
    text = batchfs.bytes("inspect", store).decode()
    assert (f"OME-Zarr {version} image, 3 levels, pixels at z 0.5, y 0.36, x 0.25 "
            "micrometer, 'cells'" in text)
    assert "c, z, y, x" in text and f"\nNext: batchfs view {store} > view.json\n" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "1", "2", "x", "3", "x", "12", "x", "16", "z", "0.5,", "y", "0.72,", "x", "0.5",
            "micrometer"] in rows


def test_the_starting_view(batchfs, tmp_path):
    store = tmp_path / "wide.zarr"
    group = new_group(store)
    group.attrs.update(metadata("0.4", 1))
    values = RNG.integers(0, 255, (2, 3, 600, 700)).astype("u1")
    add_array(group, "0", values, chunks=(1, 1, 512, 100))
    view = json.loads(batchfs.bytes("view", store))
    assert (view["level"] == 0 and view["window"] == {"z": 1, "y": 256, "x": 100}
            and view["batch"]["size"] == 32)
    view["order"]["shuffle"] = "none"
    batch = batchfs.npy("batch", store, "--view", save(tmp_path, view), "--batch", 0)
    assert batch.shape == (32, 2, 1, 256, 100)
    np.testing.assert_array_equal(batch[8], values[:, :1, 256:512, 100:200])
    json.loads(batchfs.bytes("plan", store, "--view", save(tmp_path, view), "--json"))
    view = json.loads(batchfs.bytes("view", store, "--patch", 64))
    assert view["level"] == 0 and view["window"] == {"y": 64, "x": 64} and view["variables"] == [
        "image"]
    assert "no axis of time; leave --time out" in batchfs.refusal("view", store, "--time", 2)


# ---- labels ----

def test_an_image_and_its_labels(batchfs, tmp_path):
    """Label images have the dimensions of the image, some of length 1, or lack the channels."""
    store = tmp_path / "labelled.zarr"
    root = new_group(store)
    values = write_image(root, "0.4", 2)
    labels = root.create_group("labels")
    labels.attrs["labels"] = ["cells", "nuclei"]
    cells = labels.create_group("cells")
    cells.attrs.update({"image-label": {"version": "0.4"}, **metadata("0.4", 2)})
    marks = [add_array(cells, str(k),
                       RNG.integers(0, 9, (1, *downsampled(SHAPE, k)[1:])).astype("i4"))
             for k in range(2)]
    nuclei = labels.create_group("nuclei")
    attributes = {"image-label": {}, **metadata("0.4", 2, names="czyx")}
    multiscale = attributes["multiscales"][0]
    multiscale["axes"] = multiscale["axes"][1:]
    for dataset in multiscale["datasets"]:
        for step in dataset["coordinateTransformations"]:
            step[step["type"]] = step[step["type"]][1:]
    nuclei.attrs.update(attributes)
    flat = [add_array(nuclei, str(k), RNG.integers(0, 9, downsampled(SHAPE, k)[1:]).astype("i4"))
            for k in range(2)]

    tensors = {"x": {"variables": ["image"]}, "cells": {"variables": ["labels/cells:image"]},
               "nuclei": {"variables": ["labels/nuclei:image"]}}
    for k in range(2):
        view = {"level": k, "window": {"y": 6, "x": 8}, "batch": 4, "tensors": tensors}
        named = {**view, "tensors": {n: {"variables": [t["variables"][0].replace("image", str(k))]}
                                     for n, t in tensors.items()}}
        del named["level"]
        for one in (view, named):
            with np.load(io.BytesIO(batchfs.bytes("batch", store, "--view", save(tmp_path, one),
                                                  "--format", "npz"))) as batch:
                np.testing.assert_array_equal(batch["x"][1], values[k][:, :, :6, 8:16])
                np.testing.assert_array_equal(batch["cells"][1], marks[k][:, :, :6, 8:16])
                np.testing.assert_array_equal(batch["nuclei"][1], flat[k][:, :6, 8:16])
    plan = json.loads(batchfs.bytes("plan", store, "--view", save(tmp_path, view), "--json"))
    dims = {t["name"]: t["dims"] for t in plan["tensors"]}
    assert dims["cells"] == ["sample", "labels/cells:c", "z", "y", "x"] and dims["nuclei"] == [
        "sample", "z", "y", "x"]
    text = batchfs.bytes("inspect", store).decode()
    assert ("labels: labels/cells, labels/nuclei" in text
            and "OME-Zarr 0.4 label image, 2 levels" in text)
    # Another scale is another coordinate.
    multiscale["datasets"][0]["coordinateTransformations"][0]["scale"][2] = 0.3
    nuclei.attrs.update(attributes)
    said = batchfs.refusal("plan", store, "--view",
                           save(tmp_path, {"level": 0, "window": {"y": 6}, "tensors": tensors}))
    assert ("dimension 'x' has the coordinate 0.25 * i + 0 micrometer in 'image' and 0.3 * i + 0 "
            "micrometer in 'labels/nuclei:image'" in said)
    # A label image of fewer levels.
    multiscale["datasets"] = multiscale["datasets"][:1]
    nuclei.attrs.update(attributes)
    said = batchfs.refusal("plan", store, "--view", save(tmp_path, {**view, "level": 1}))
    assert "'labels/nuclei:image': level: there is no level 1" in said


# ---- other versions and metadata of the arrays ----

def test_names_of_arrays_win(batchfs, tmp_path):
    """An array that has names of its own keeps them; a dimension of another name gets no
    coordinate."""
    store = tmp_path / "named.zarr"
    group = new_group(store)
    values = write_image(group, "0.4", 1)[0]
    group["0"].attrs["_ARRAY_DIMENSIONS"] = ["c", "z", "row", "x"]
    view = {"variables": ["0"], "window": {"z": 1, "row": 4, "x": 4}}
    assert set(coordinates(batchfs, store, view, tmp_path)) == {"z", "x"}
    # An array in the group is the coordinate of its name.
    x = add_array(group, "x", np.linspace(5.0, 9.0, 32))
    group["x"].attrs["_ARRAY_DIMENSIONS"] = ["x"]
    assert coordinates(batchfs, store, {**view, "window": {"x": 1}}, tmp_path)["x"] == x.tolist()
    np.testing.assert_array_equal(batchfs.npy("cat", store, "0"), values)


def test_transformations_of_all_levels(batchfs, tmp_path):
    store = tmp_path / "all.zarr"
    write_image(new_group(store), "0.4", 2,
                coordinateTransformations=[{"type": "scale", "scale": [1, 2, 3, 4]},
                                           {"type": "translation", "translation": [0, 10, 20, 30]}])
    for k in range(2):
        found = coordinates(batchfs, store, {**EACH, "level": k}, tmp_path)
        for d, name in enumerate("zyx", 1):
            wanted = (np.arange(downsampled(SHAPE, k)[d]) * scales(k)[d]
                      + shift(k)[d]) * (d + 1) + 10 * d
            np.testing.assert_allclose(found[name], wanted, rtol=1e-15)


@pytest.mark.parametrize("version, axes_json",
                         [("0.1", None), ("0.2", None), ("0.3", ["t", "c", "z", "y", "x"])])
def test_old_versions_name_the_axes(batchfs, tmp_path, version, axes_json):
    store = tmp_path / "old.zarr"
    group = new_group(store)
    image = {"version": version, "datasets": [{"path": "0"}]} | (
        {"axes": axes_json} if axes_json else {})
    group.attrs["multiscales"] = [image]
    add_array(group, "0", np.zeros((1, 2, 3, 8, 8), "u1"))
    found = json.loads(batchfs.bytes("inspect", store, "--json"))
    assert found["arrays"]["0"]["dims"] == list("tczyx")
    assert coordinates(batchfs, store, {"variables": ["0"], "window": {"y": 8, "x": 8}},
                       tmp_path) == {}


def test_transformations_that_mix_axes_give_no_coordinates(batchfs, tmp_path):
    store = tmp_path / "rotated.zarr"
    group = new_group(store, "0.6")
    write_image(group, "0.6", 1)
    attributes = metadata("0.6", 1)
    step = attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]
    for wrong in ({"type": "rotation", "rotation": [[1]]}, {"type": "affine", "path": "a"},
                  {"type": "scale", "path": "a"}):
        attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"] = [
            wrong | {"output": step["output"]}]
        group.attrs.update(attributes)
        found = json.loads(batchfs.bytes("inspect", store, "--json"))
        assert found["arrays"]["0"]["dims"] == list("czyx")
        assert any("no coordinates" in note and "not supported" in note
                   for note in found["ome"]["images"]["/"]["notes"])
        assert set(coordinates(batchfs, store, {**EACH, "level": 0}, tmp_path)) == {"c"}


# ---- metadata that is wrong ----

def broken(change):
    attributes = metadata("0.4", 1)
    change(attributes["multiscales"][0])
    return attributes


def set_step(key, value):
    return lambda m: m["datasets"][0]["coordinateTransformations"][0].update({key: value})


WRONG = {
    "no axes": (lambda m: m.pop("axes"), "multiscales[0]: the key 'axes' is missing"),
    "axes of another rank": (
        lambda m: (m.update(axes=axes("zyx")), set_step("scale", [1, 1, 1])(m),
                   m["datasets"][0]["coordinateTransformations"].pop()),
        "multiscales[0].datasets[0].path: the array '0' has 4 dimensions, the image 3 axes"),
    "an axis twice": (lambda m: m.update(axes=axes("czyy")),
                      "multiscales[0].axes[3].name: 'y' is given twice"),
    "an axis without a name": (lambda m: m["axes"][0].update(name=""),
                               "multiscales[0].axes[0].name: the name is empty"),
    "a name that is a number": (lambda m: m["axes"][0].update(name=3),
                                "multiscales[0].axes[0].name: expected a string"),
    "a long name": (lambda m: m["axes"][0].update(name="c" * 300),
                    "multiscales[0].axes[0].name: 300 bytes"),
    "many axes": (lambda m: m.update(axes=[{"name": str(i)} for i in range(100)]),
                  "multiscales[0].axes: 100 axes"),
    "scale 0": (set_step("scale", [1, 1, 0, 1]),
                "coordinateTransformations[0].scale[2]: 0 is not above 0"),
    "scale below 0": (set_step("scale", [1, 1, 1, -2]),
                      "coordinateTransformations[0].scale[3]: -2 is not above 0"),
    "scale NaN": (set_step("scale", [1, 1, 1, float("nan")]),
                  "coordinateTransformations[0].scale[3]: expected a number"),
    "a scale that is text": (set_step("scale", [1, 1, "1", 1]),
                             "coordinateTransformations[0].scale[2]: expected a number"),
    "a short scale": (set_step("scale", [1, 1]),
                      "coordinateTransformations[0].scale: 2 numbers for 4 axes"),
    "a scale that is an object": (set_step("scale", {}),
                                  "coordinateTransformations[0].scale: expected a list"),
    "no type": (lambda m: m["datasets"][0]["coordinateTransformations"][0].pop("type"),
                "the key 'type' is missing"),
    "a path outside": (lambda m: m["datasets"][0].update(path="../../etc"),
                       "multiscales[0].datasets[0].path: '../../etc' is not the path"),
    "an absolute path": (lambda m: m["datasets"][0].update(path="/0"),
                         "multiscales[0].datasets[0].path: '/0' is not the path"),
    "a path that is a number": (lambda m: m["datasets"][0].update(path=0),
                                "multiscales[0].datasets[0].path: expected a string"),
    "many levels": (lambda m: m.update(datasets=m["datasets"] * 100000),
                    "multiscales[0].datasets: 100000 elements"),
    "no levels": (lambda m: m.update(datasets=[]), "multiscales[0].datasets: the list is empty"),
    "levels that are an object": (lambda m: m.update(datasets={}),
                                  "multiscales[0].datasets: expected a list"),
    "another version": (lambda m: m.update(version="0.9"),
                        "multiscales[0].version: OME-Zarr '0.9' is not supported"),
    "a version that is a number": (lambda m: m.update(version=0.4),
                                   "multiscales[0].version: expected a string"),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong") / "wrong.zarr"
    return path, add_array(new_group(path), "0", RNG.integers(1, 9, SHAPE).astype("u2"))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_metadata_is_named(batchfs, plain, tmp_path, name):
    """The arrays can still be read, with dimensions that have no names."""
    store, values = plain
    change, words = WRONG[name]
    (store / ".zattrs").write_text(json.dumps(broken(change)))
    text = batchfs.bytes("inspect", store).decode()
    line = next(line for line in text.splitlines() if "OME-Zarr metadata:" in line)
    assert words in line and len(line) < 400, line
    assert json.loads(batchfs.bytes("inspect", store,
                                    "--json"))["ome"]["problems"][0]["group"] == "/"
    view = {"variables": ["0"], "window": {"dim_3": 8}, "batch": 1}
    np.testing.assert_array_equal(batchfs.npy("batch", store, "--view", save(tmp_path, view))[0],
                                  values[..., :8])
    assert words in batchfs.refusal("plan", store, "--view",
                                    save(tmp_path, {"level": 0, "window": {"x": 1}}))


def test_many_images_in_one_group(batchfs, plain):
    store, _ = plain
    attributes = metadata("0.4", 1)
    attributes["multiscales"] *= 2
    (store / ".zattrs").write_text(json.dumps(attributes))
    assert "the group has 2 images; the first one is used" in batchfs.bytes(
        "inspect", store).decode()
    (store / ".zattrs").write_text('{"multiscales": [' + ",".join(['{"axes": []}'] * 1_000_000)
                                   + "]}")
    assert "multiscales: 1000000 elements" in batchfs.bytes("inspect", store).decode()


@pytest.mark.parametrize("attributes", [
    {"multiscales": {"layout": []}},
    {"multiscales": [{"datasets": [{"path": "0"}], "type": "reduce"}]}, {"multiscales": 5},
    {"plate": "glass"}, {"labels": ["a", "b"]}, {"series": [1]}, {"ome": 3},
])
def test_attributes_of_others_are_no_metadata_of_ome(batchfs, plain, attributes):
    store, _ = plain
    (store / ".zattrs").write_text(json.dumps(attributes))
    assert "ome" not in json.loads(batchfs.bytes("inspect", store, "--json"))


@pytest.mark.parametrize("omero, note", [
    ({"channels": [{"label": "a"}, {"label": "a"}]}, "two channels have the label 'a'"),
    ({"channels": [{"label": "a"}]}, "1 label for 2 channels"),
    ({"channels": 3}, "omero.channels: expected a list"),
    ({"channels": [{"label": 1}, {}]}, "omero.channels[0].label: expected a string"),
    (7, "omero: expected an object"),
    ({"channels": [{}, {}]}, None),
])
def test_channels_without_usable_labels(batchfs, plain, tmp_path, omero, note):
    store, _ = plain
    (store / ".zattrs").write_text(json.dumps(metadata("0.4", 1) | {"omero": omero}))
    notes = json.loads(batchfs.bytes("inspect", store, "--json"))["ome"]["images"]["/"]["notes"]
    assert notes == [] if note is None else note in notes[0]
    assert set(coordinates(batchfs, store, {**EACH, "level": 0}, tmp_path)) == {"z", "y", "x"}


def test_a_huge_axis(batchfs, tmp_path):
    """Coordinates are computed where they are needed, and refused where they take too much
    memory."""
    store = tmp_path / "huge.zarr"
    group = new_group(store)
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes("x"), "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [0.5]}]}]}]
    group.create_array("0", shape=(1 << 40,), chunks=(1 << 20,), dtype="u1")
    assert "1 level" in batchfs.bytes("inspect", store).decode()
    view = {"level": 0, "window": {"x": 1 << 20}, "batch": 1}
    batch = batchfs.npy("batch", store, "--view", save(tmp_path, view), "--batch", 5)
    assert batch.shape == (1, 1 << 20) and not batch.any()
    said = batchfs.refusal("plan", store, "--view",
                           save(tmp_path, {**view, "select": {"x": {"from": 3.0}}}))
    assert "the coordinate 'x' has 1099511627776 values" in said and "use positions" in said
