"""Groups of a store: each command and view of one is what xarray makes of it alone."""

import functools
import http.server
import io
import json
import threading
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

RNG = np.random.default_rng(11)


def tree():
    """Groups whose dimensions have the same names and other lengths; the root has no variables."""
    def days(first, count):
        return np.datetime64(first, "ns") + np.arange(count) * np.timedelta64(1, "D")

    def fields(time, lat, offset):
        values = (offset + RNG.standard_normal((len(time), lat, 4))).astype("f4")
        return xr.Dataset({"tas": (("time", "lat", "lon"), values),
                           "mask": (("lat", "lon"), values[0] > offset)},
                          {"time": time, "lat": np.linspace(60.0, -60.0, lat)})

    return xr.DataTree.from_dict({
        "/": xr.Dataset(attrs={"title": "models"}),
        "/model/hist": fields(days("2000-01-01", 20), 3, 280),
        "/model/ssp 5": fields(days("2050-01-01", 12), 5, 290),
        "/obs": xr.Dataset({"station": (("time",), np.arange(7.0))},
                           {"time": days("1990-01-01", 7)}),
        "/coordinates": xr.Dataset(coords={"x": np.arange(3)}),
    })


GROUPS = {"model/hist": "tas", "model/ssp 5": "tas", "obs": "station"}


@pytest.fixture(scope="module", params=[(2, True), (2, False), (3, True), (3, False)],
                ids=["v2", "v2-plain", "v3", "v3-plain"])
def store(request, tmp_path_factory):
    version, consolidated = request.param
    path = tmp_path_factory.mktemp("groups") / "tree.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree().to_zarr(path, zarr_format=version, consolidated=False,
                       encoding={"/model/hist": {"tas": {"chunks": (3, 2, 4)}}})
        if consolidated:
            zarr.consolidate_metadata(path)
    return path


def dataset(store, group):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_dataset(store, engine="zarr", group=group, consolidated=False).load()


@pytest.mark.parametrize("group", GROUPS)
def test_cat(batchfs, store, group):
    ds = dataset(store, group)
    for name in ds.variables:
        wanted = ds[name].values
        np.testing.assert_array_equal(batchfs.npy("cat", store, name, "--group", group), wanted)
        np.testing.assert_array_equal(batchfs.npy("cat", store, f"/{name}/", "--group",
                                                  f"/{group}/"), wanted)
        np.testing.assert_array_equal(batchfs.npy("cat", store, f"{group}/{name}"), wanted)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("by", ["option", "view", "both"])
def test_a_view_of_a_group(batchfs, store, tmp_path, group, by):
    ds = dataset(store, group)
    name = GROUPS[group]
    view = {"name": "v", "variables": [name], "window": {"time": 2}, "batch": 2}
    options = {"option": ["--group", group], "view": [], "both": ["--group", "coordinates"]}[by]
    if by != "option":
        view["group"] = f"/{group}"
    (tmp_path / "view.json").write_text(json.dumps(view))
    arguments = (store, "--view", tmp_path / "view.json", *options)
    plan = json.loads(batchfs.bytes("plan", *arguments, "--json"))
    assert plan["samples"] == ds.sizes["time"] // 2
    batch = batchfs.npy("batch", *arguments, "--batch", 1)
    samples = range(2, min(4, plan["samples"]))
    np.testing.assert_array_equal(batch,
                                  np.stack([ds[name].values[2 * s:2 * s + 2] for s in samples]))
    found = json.loads(batchfs.bytes("statistics", *arguments, "--json"))["variables"][name]
    assert found["mean"] == pytest.approx(ds[name].values.astype("f8").mean(), rel=1e-12)
    assert json.loads(batchfs.bytes("check", *arguments, "--json"))["arrays"] == 1


@pytest.mark.parametrize("group", GROUPS)
def test_the_starter_view_names_its_group(batchfs, store, tmp_path, group):
    view = json.loads(batchfs.bytes("view", store, "--group", group))
    assert list(view)[:2] == ["name", "group"] and view["group"] == group
    (tmp_path / "view.json").write_text(json.dumps(view))
    plan = json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json", "--json"))
    assert GROUPS[group] in [t["name"] for t in plan["tensors"]]


def test_inspect_shows_commands_that_work(batchfs, store):
    text = batchfs.bytes("inspect", store).decode()
    _, commands = text.split("\nNext: ")
    commands = [line.removeprefix("  or: ") for line in commands.splitlines()]
    assert commands == [f"batchfs view --group {word} {store} > view.json"
                        for word in ("model/hist", "'model/ssp 5'", "obs")]
    one = batchfs.bytes("inspect", store, "--group", "obs").decode()
    assert (one.endswith(f"\nNext: batchfs view --group obs {store} > view.json\n")
            and "tas" not in one)
    found = json.loads(batchfs.bytes("inspect", store, "--group", "model", "--json"))
    assert set(found["groups"]) == {"model", "model/hist", "model/ssp 5"}
    assert "model/hist/tas" in found["arrays"] and "obs/station" not in found["arrays"]


def test_check_of_a_group(batchfs, store):
    every = json.loads(batchfs.bytes("check", store, "--json"))
    part = json.loads(batchfs.bytes("check", store, "--group", "model", "--json"))
    assert part["arrays"] == sum(len(dataset(store, g).variables)
                                 for g in ("model/hist", "model/ssp 5")) < every["arrays"]


@pytest.mark.parametrize("arguments, words", [
    (["inspect", "--group", "model/hst"],
     "there is no group 'model/hst', did you mean 'model/hist'?"),
    (["inspect", "--group", "obs/station"], "'obs/station' is an array; its group is 'obs'"),
    (["cat", "tas", "--group", "obs"], "no array 'obs/tas'"),
])
def test_refusals(batchfs, store, arguments, words):
    assert words in batchfs.refusal(arguments[0], store, *arguments[1:])


def test_refusals_of_views(batchfs, store, tmp_path):
    view = {"window": {"time": 1}, "group": "ob"}
    (tmp_path / "v.json").write_text(json.dumps(view))
    said = batchfs.refusal("plan", store, "--view", tmp_path / "v.json")
    assert "group: there is no group 'ob', did you mean 'obs'?" in said and "v.json" in said
    (tmp_path / "v.json").write_text(json.dumps(view | {"group": "model"}))
    said = batchfs.refusal("plan", store, "--view", tmp_path / "v.json")
    assert ("the group 'model' has no arrays of its own" in said
            and "model/hist, model/ssp 5, obs" in said)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Plain files; directories are not listed."""

    def log_message(self, *arguments):
        pass

    def list_directory(self, path):
        self.send_error(404)


@pytest.fixture
def served(store):
    handler = functools.partial(Quiet, directory=store.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{store.name}"
    server.shutdown()
    server.server_close()


def test_a_group_over_http(batchfs, store, served, tmp_path, request):
    """The metadata of all groups is in the root's document, which a group's URL alone does not
    have."""
    url = f"{served}/model/hist"
    if "plain" in request.node.name:
        assert "0 arrays" in (text := batchfs.bytes("inspect",
                                                    url).decode()) and "--array PATH" in text
        np.testing.assert_array_equal(batchfs.npy("cat", url, "tas"),
                                      dataset(store, "model/hist").tas.values)
        return
    ds = dataset(store, "model/hist")
    for place, options in ((url, []), (url + "/", []), (served, ["--group", "model/hist"])):
        np.testing.assert_array_equal(batchfs.npy("cat", place, "tas", *options), ds.tas.values)
        (tmp_path / "view.json").write_text(json.dumps({"window": {"time": 4}, "variables": ["tas"],
                                                        "batch": 2}))
        with np.load(io.BytesIO(batchfs.bytes("batch", place, "--view", tmp_path / "view.json",
                                              "--format", "npz", *options))) as arrays:
            np.testing.assert_array_equal(arrays["tas"], ds.tas.values[:8].reshape(2, 4, 3, 4))
    found = json.loads(batchfs.bytes("inspect", f"{served}/model", "--json"))
    assert found["consolidated"] and set(found["groups"]) == {"/", "hist", "ssp 5"}
    # A group below that group, from there.
    np.testing.assert_array_equal(batchfs.npy("cat", f"{served}/model", "tas", "--group", "hist"),
                                  ds.tas.values)
    assert "not a Zarr store" in batchfs.refusal("inspect", f"{served}/modl")
    # A missing chunk is fill values only while the array exists.
    batchfs.bytes("check", url)


# ---- several groups in one view ----

@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Fields of one grid in several groups, and groups that do not fit."""
    path = tmp_path_factory.mktemp("parts") / "parts.zarr"
    time = np.datetime64("2000-01-01", "ns") + np.arange(15) * np.timedelta64(6, "h")
    lat, lon = np.linspace(60.0, -60.0, 4), np.arange(5) * 72.0

    def field(*lengths):
        return RNG.standard_normal(lengths).astype("f4")

    groups = {
        "surface": xr.Dataset({"tas": (("time", "lat", "lon"), field(15, 4, 5))},
                              {"time": time, "lat": lat, "lon": lon}),
        "model/rain": xr.Dataset({"pr": (("time", "lat", "lon"), field(15, 4, 5))},
                                 {"time": time, "lat": lat}),
        "static": xr.Dataset({"lsm": (("lat", "lon"), field(4, 5))}, {"lat": lat}),
        "shifted": xr.Dataset({"pr": (("time", "lat", "lon"), field(15, 4, 5))},
                              {"time": time + np.timedelta64(1, "h")}),
        "longer": xr.Dataset({"pr": (("time", "lat", "lon"), field(16, 4, 5))}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.DataTree.from_dict(groups).to_zarr(path, zarr_format=2, consolidated=True)
    mixed = zarr.open_group(path, mode="a", zarr_format=2).create_group("mixed")
    for name, length in (("a", 6), ("b", 7)):
        array = mixed.create_array(name, shape=(length, 2), chunks=(2, 2), dtype="f4")
        array[...] = field(length, 2)
        array.attrs["_ARRAY_DIMENSIONS"] = ["x", "y"]
    zarr.consolidate_metadata(path)
    return path


def test_variables_of_several_groups(batchfs, parts, tmp_path):
    tas, pr, lsm = (dataset(parts, g)[n].values
                    for g, n in (("surface", "tas"), ("model/rain", "pr"), ("static", "lsm")))
    view = {"group": "surface", "window": {"time": {"size": 3, "stride": 1}}, "batch": 4,
            "select": {"lat": {"from": 60, "to": -25}},
            "tensors": {"x": {"variables": ["tas", "model/rain:pr", "static:lsm"],
                              "stack": "channel", "broadcast": True},
                        "y": {"variables": ["/model/rain/:pr"], "offsets": {"time": [1]}}}}
    (tmp_path / "view.json").write_text(json.dumps(view))
    x = batchfs.npy("batch", parts, "--view", tmp_path / "view.json", "--batch", 1, "--tensor", "x")
    y = batchfs.npy("batch", parts, "--view", tmp_path / "view.json", "--batch", 1, "--tensor", "y")
    for row, start in enumerate(range(4, 8)):
        steps = slice(start, start + 3)
        np.testing.assert_array_equal(x[row, 0], tas[steps, :3])
        np.testing.assert_array_equal(x[row, 1], pr[steps, :3])
        np.testing.assert_array_equal(x[row, 2], np.broadcast_to(lsm[:3], (3, 3, 5)))
        np.testing.assert_array_equal(y[row], pr[start + 1:start + 4, :3])
    # A view of the root has no arrays of its own; its coordinates are those of the groups.
    rootless = {"window": {"time": 1}, "variables": ["model/rain:pr"], "batch": 15,
                "tensors": {"pr": {"variables": ["model/rain:pr"]}},
                "samples": {"where": {"time": {"hour": [0, 12]}}}}
    (tmp_path / "view.json").write_text(json.dumps(rootless))
    hours = dataset(parts, "model/rain").time.dt.hour.values
    np.testing.assert_array_equal(batchfs.npy("batch", parts, "--view",
                                              tmp_path / "view.json")[:, 0],
                                  pr[np.isin(hours, [0, 12])])


def test_only_the_arrays_that_a_view_names_must_fit_together(batchfs, parts, tmp_path):
    values = zarr.open_array(parts / "mixed/a", mode="r")[...]
    (tmp_path / "view.json").write_text(json.dumps({"group": "mixed", "variables": ["a"],
                                                    "window": {"x": 2}, "batch": 3}))
    np.testing.assert_array_equal(batchfs.npy("batch", parts, "--view", tmp_path / "view.json"),
                                  values.reshape(3, 2, 2))
    (tmp_path / "view.json").write_text(json.dumps({"group": "mixed", "variables": ["a", "b"],
                                                    "window": {"x": 2}}))
    assert "dimension 'x' has length" in batchfs.refusal("plan", parts, "--view",
                                                         tmp_path / "view.json")


@pytest.mark.parametrize("variable, words", [
    ("shifted:pr", "has another coordinate 'time' than 'surface/time'"),
    ("longer:pr", "dimension 'time' has length 16 in 'longer:pr' and 15 in 'tas'"),
    ("longr:pr", "no variable 'longr:pr'"),
    ("static:pr", "no variable 'static:pr'"),
])
def test_groups_that_do_not_fit(batchfs, parts, tmp_path, variable, words):
    view = {"group": "surface", "window": {"time": 1},
            "tensors": {"x": {"variables": ["tas", variable], "stack": "c"}}}
    (tmp_path / "view.json").write_text(json.dumps(view))
    assert words in batchfs.refusal("plan", parts, "--view", tmp_path / "view.json")


WORDS = ["stack", "mask", "batch", "target", "channel", "global", "train", "float32", "mean",
         "time", "normalize", "select"]


@pytest.mark.parametrize("word", WORDS)
def test_an_array_that_is_called_as_a_word_of_the_view(batchfs, tmp_path, word):
    """In a group whose arrays do not fit together, a view has those that it names, and no other by
    chance."""
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    values = np.arange(24, dtype="f4").reshape(4, 6)
    for name, data, dims in (("a", values, ("t", "y")),
                             ("ok", np.array([1, 0, 1, 1], "f4"), ("t",)),
                             (word, np.zeros((4, 7), "f4"), ("t", "y"))):
        group.create_array(name, data=data, dimension_names=dims)
    view = {"name": "train", "window": {"t": 1},
            "tensors": {"target": {"variables": ["a"], "stack": "channel"}}, "batch": 10,
            "samples": {"mask": {"variable": "ok"}}, "order": {"shuffle": "none"},
            "dtype": "float32", "select": {"y": {"from": "#1"}},
            "normalize": {"method": "zscore", "statistics": {"a": {"mean": 0, "std": 2}}}}
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view))
    with np.load(io.BytesIO(batchfs.bytes("batch", tmp_path / "s.zarr", "--view", file, "--format",
                                          "npz"))) as tensors:
        np.testing.assert_array_equal(tensors["target"].reshape(3, 5), values[[0, 2, 3], 1:] / 2)
    view["tensors"]["target"]["variables"].append(word)
    file.write_text(json.dumps(view))
    assert "dimension 'y' has length" in batchfs.refusal("batch", tmp_path / "s.zarr", "--view",
                                                         file, "--format", "npz")
