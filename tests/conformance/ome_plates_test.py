"""OME-Zarr: plates, series of images, and images on web servers that cannot list."""

import functools
import http.server
import io
import json
import threading

import numpy as np
import pytest
import xarray
from ome_images import RNG, SHAPE, VERSIONS, add_array, new_group, save, write_image


# ---- plates and series ----

@pytest.fixture(scope="module", params=["0.4", "0.5"])
def plate(request, tmp_path_factory):
    version, path = request.param, tmp_path_factory.mktemp("plate") / "plate.zarr"
    root = new_group(path, version)
    wells = [f"{row}/{column}" for row in "AB" for column in (1, 2, 3)]

    def set_attributes(group, key, value):
        group.attrs.update({key: {"version": "0.4"} | value} if version == "0.4"
                           else {"ome": {"version": version, key: value}})

    set_attributes(root,
                   "plate", {"name": "assay", "rows": [{"name": r} for r in "AB"],
                             "columns": [{"name": str(c)} for c in (1, 2, 3)],
                             "wells": [{"path": w, "rowIndex": 0, "columnIndex": 0} for w in wells],
                             "field_count": 2})
    values = {}
    for well in wells:
        group = root.create_group(well)
        set_attributes(group, "well", {"images": [{"path": "0"}, {"path": "1"}]})
        for field in "01":
            values[f"{well}/{field}"] = write_image(group.create_group(field), version, 2)
    return version, path, values


def test_a_plate(batchfs, plate, tmp_path):
    version, store, values = plate
    text = batchfs.bytes("inspect", store).decode()
    assert f"/: OME-Zarr {version} plate 'assay', 6 wells: A/1, A/2, A/3, B/1, B/2, B/3\n" in text
    assert f"A/1: OME-Zarr {version} well, 2 fields: A/1/0, A/1/1\n" in text
    assert (f"\nNext: batchfs view --group A/1/0 {store} > view.json\n" in text
            and "and 8 more groups" in text)
    assert "the root is not an OME-Zarr image with levels; images are A/1/0, A/1/1," in (
        batchfs.refusal("view", store))
    view = json.loads(batchfs.bytes("view", store, "--group", "B/2/1"))
    assert view["group"] == "B/2/1" and view["level"] == 0
    view["order"]["shuffle"] = "none"
    got = batchfs.npy("batch", store, "--view", save(tmp_path, view))
    np.testing.assert_array_equal(got[1], values["B/2/1"][0][:, :, :8, 8:16])
    view["variables"], view["level"] = ["A/1/0:image", "image"], 1
    assert len(json.loads(batchfs.bytes("plan", store, "--view", save(tmp_path, view | {"tensors": {
        "a": {"variables": ["A/1/0:image"]}}}), "--json"))["tensors"]) == 1


def test_series_of_bioformats2raw(batchfs, tmp_path):
    store = tmp_path / "series.zarr"
    root = new_group(store)
    root.attrs["bioformats2raw.layout"] = 3
    for name in ("0", "1", "2"):
        write_image(root.create_group(name), "0.4", 2)
    text = batchfs.bytes("inspect", store).decode()
    assert "/: OME-Zarr 0.4 series, 3 images: 0, 1, 2\n" in text
    assert (f"\nNext: batchfs view --group 0 {store} > view.json\n"
            "  or: batchfs view --group 1" in text)
    root.create_group("OME").attrs["series"] = ["2", "0"]
    assert "/: OME-Zarr 0.4 series, 2 images: 2, 0\n" in batchfs.bytes("inspect", store).decode()


def test_wrong_plates_are_named(batchfs, tmp_path):
    store = tmp_path / "wrong.zarr"
    add_array(new_group(store), "0", RNG.integers(1, 9, SHAPE).astype("u2"))
    for plate, words in (({"wells": [{"path": "../x"}]},
                          "plate.wells[0].path: '../x' is not the path"),
                         ({"wells": 1}, "plate.wells: expected a list"),
                         ({}, "plate: the key 'wells' is missing"),
                         ({"wells": [{"path": "A/1"}] * 100_000}, "plate.wells: 100000 elements")):
        (store / ".zattrs").write_text(json.dumps({"plate": plate}))
        assert words in batchfs.bytes("inspect", store).decode()


# ---- web servers that cannot list ----

class Quiet(http.server.SimpleHTTPRequestHandler):
    """Plain files; directories are not listed."""

    requests = []

    def log_message(self, *arguments):
        self.requests.append(self.path)

    def list_directory(self, path):
        self.send_error(404)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                            functools.partial(Quiet, directory=folder))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}", folder
    httpd.shutdown()
    httpd.server_close()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_image_over_http(batchfs, server, tmp_path, version):
    url, folder = server
    name = f"image{version}.zarr"
    root = new_group(folder / name, version)
    values = write_image(root, version)
    labels = root.create_group("labels")
    labels.attrs.update({"labels": ["cells"]} if version == "0.4"
                        else {"ome": {"version": version, "labels": ["cells"]}})
    marks = write_image(labels.create_group("cells"), version, dtype="i4")
    text = batchfs.bytes("inspect", f"{url}/{name}").decode()
    assert (f"OME-Zarr {version} image, 3 levels" in text and "labels: labels/cells" in text
            and "--array PATH" in text)
    np.testing.assert_array_equal(batchfs.npy("cat", f"{url}/{name}", "1"), values[1])
    view = {"level": 1, "window": {"y": 6, "x": 8}, "batch": 2,
            "tensors": {"x": {"variables": ["image"]}, "y": {"variables": ["labels/cells:image"]}}}
    with np.load(io.BytesIO(batchfs.bytes("batch", f"{url}/{name}", "--view", save(tmp_path, view),
                                          "--format", "npz"))) as batch:
        np.testing.assert_array_equal(batch["x"][0], values[1][:, :, :6, :8])
        np.testing.assert_array_equal(batch["y"][0], marks[1][:, :, :6, :8])
    assert json.loads(batchfs.bytes("view", f"{url}/{name}"))["level"] == 0


def test_a_plate_over_http(batchfs, server, plate, tmp_path):
    url, folder = server
    version, store, values = plate
    link = folder / f"plate{version}.zarr"
    link.symlink_to(store)
    Quiet.requests.clear()
    text = batchfs.bytes("inspect", f"{url}/{link.name}").decode()
    assert ("6 wells: A/1, A/2" in text
            and f"\nNext: batchfs view --group A/1/0 {url}/{link.name} > view.json\n" in text)
    assert len(Quiet.requests) < 60
    view = {"group": "B/3/1", "level": 0, "window": {"y": 8, "x": 8}, "batch": 1}
    got = batchfs.npy("batch", f"{url}/{link.name}", "--view", save(tmp_path, view))
    np.testing.assert_array_equal(got[0], values["B/3/1"][0][:, :, :8, :8])
    view = json.loads(batchfs.bytes("view", f"{url}/{link.name}", "--group", "B/2/0"))
    assert view["group"] == "B/2/0"
    np.testing.assert_array_equal(batchfs.npy("cat", f"{url}/{link.name}", "A/2/1/1"),
                                  values["A/2/1"][1])
    assert "there is no group 'C/1'" in batchfs.refusal("inspect", f"{url}/{link.name}", "--group",
                                                        "C/1")


@pytest.mark.parametrize("format", [2, 3])
def test_named_arrays_over_http(batchfs, server, tmp_path, format):
    """A store without OME-Zarr: arrays are tried by the names that are given."""
    url, folder = server
    path = folder / f"fields{format}.zarr"
    time = np.datetime64("2000-01-01", "ns") + np.arange(12) * np.timedelta64(1, "D")
    ds = xarray.Dataset({"tas": (("time", "x"), RNG.standard_normal((12, 5))),
                         "pr": (("time", "x"), RNG.standard_normal((12, 5)))},
                        {"time": time, "x": np.arange(5) * 10.0})
    ds.to_zarr(path, zarr_format=format, consolidated=False)
    ds.to_zarr(path, group="deep/er", zarr_format=format, consolidated=False)
    place = f"{url}/{path.name}"
    text = batchfs.bytes("inspect", place).decode()
    assert "0 arrays" in text and "--array PATH" in text
    assert "no array of the group is known; " in batchfs.refusal("view", place)
    found = json.loads(batchfs.bytes("inspect", place, "--array", "tas", "--array", "/deep/er/pr",
                                     "--json"))
    assert (set(found["arrays"]) == {"tas", "time", "x", "deep/er/pr", "deep/er/time", "deep/er/x"}
            and not found["complete"])
    assert "there is no array or group 'taz' (--array taz)" in batchfs.refusal(
        "inspect", place, "--array", "taz")
    np.testing.assert_array_equal(batchfs.npy("cat", place, "tas", "--select", "time=2000-01-03"),
                                  ds.tas.values[2])
    np.testing.assert_array_equal(batchfs.npy("cat", place, "tas", "--group", "deep/er", "--select",
                                              "x=20"), ds.tas.values[:, 2])
    for view in ({"variables": ["pr"]}, {"variables": ["pr"], "group": "deep/er"},
                 {"tensors": {"pr": {"variables": ["deep/er:pr"]}}}):
        view = {**view, "window": {"time": 4}, "select": {"time": {"from": "2000-01-05"}},
                "batch": 2}
        got = batchfs.npy("batch", place, "--view", save(tmp_path, view))
        np.testing.assert_array_equal(got, ds.pr.values[4:].reshape(2, 4, 5))
    starter = json.loads(batchfs.bytes("view", place, "--array", "tas"))
    assert starter["variables"] == ["tas"]
    said = batchfs.refusal("plan", place, "--view",
                           save(tmp_path, {"window": {"time": 1}, "variables": ["humidity"]}))
    assert "no variable 'humidity'" in said
    assert "no array 'humidity'" in batchfs.refusal("cat", place, "humidity")
