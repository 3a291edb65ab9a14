"""Labels of batches: against batch-….json, the format zarr, and xarray on the store."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from reader_servers import PROGRAM, Server, same

import batchfs

BATCH = {"formats": ["npy", "zarr"], "epochs": 2}
VIEWS = {
    "two": {"window": {"time": 1}, "variables": ["u"]},  # required by Server
    "plain": {"window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 3},
              "order": {"shuffle": "global", "seed": 5}},
    "patches": {"window": {"time": 2, "latitude": {"size": 3, "stride": 2},
                           "longitude": {"size": 4, "wrap": True}},
                "variables": ["t"], "batch": {"size": 7, "remainder": "pad"},
                "order": {"shuffle": "global", "seed": 1}},
    "stacked": {"window": {"time": 1}, "batch": {"size": 4}, "dtype": "float32", "tensors": {
        "x": {"variables": ["t", "u"], "stack": "channel",
              "dims": ["channel", "latitude", "longitude"]},
        "y": {"variables": ["u"], "stack": "channel", "dims": ["channel", "latitude", "longitude"],
              "offsets": {"time": [1]}},
        "z": {"variables": ["orography"]}}},
    "coarse": {"window": {"time": 2}, "batch": {"size": 4}, "tensors": {
        "x": {"variables": ["u"],
              "coarsen": {"latitude": 2, "longitude": {"size": 4, "how": "max"}}},
        "y": {"variables": ["u"], "coarsen": {"longitude": 8}},
        "z": {"variables": ["t"], "coarsen": {"level": 3}}}},
    "points": {"window": {"x": {"size": 2, "stride": 3}}, "variables": ["p"],
               "select": {"x": {"from": "#4"}}, "batch": {"size": 4},
               "order": {"shuffle": "global"}},
    "listed": {"window": {"x": 1}, "variables": ["p"],
               "select": {"x": ["#9", "#2", "#5", "#31", "#30"]}, "batch": {"size": 2}},
    "noleap": {"window": {"day": 1}, "variables": ["c"], "batch": {"size": 2}},
    "leads": {"window": {"lead": 1}, "variables": ["l"], "batch": {"size": 2}},
    "partial": {"window": {"time": {"size": 12, "edge": "partial"}}, "variables": ["t"],
                "batch": {"size": 1}},
    "many": {"window": {"time": 1, "latitude": 1, "longitude": 1}, "variables": ["u"],
             "batch": {"size": 5000}, "order": {"shuffle": "global"}},
    "sliced": {"xbatcher": {"input_dims": {"latitude": 3, "longitude": 5},
                            "batch_dims": {"time": 4}}, "variables": ["u"]},
    "joined": {"xbatcher": {"input_dims": {"latitude": 3, "longitude": 5},
                            "concat_input_dims": True}, "variables": ["u"]},
}
for view_name, view in VIEWS.items():
    view |= {"name": view_name} | {key: value for key, value in BATCH.items()
                                   if "xbatcher" not in view or key == "formats"}


def make_store(path):
    random = np.random.default_rng(3)
    time = np.arange("2000-01-01", "2000-01-11", np.timedelta64(6, "h"), dtype="M8[ns]")
    shape = (len(time), 3, 8, 16)
    dims = ("time", "level", "latitude", "longitude")
    dataset = xr.Dataset(
        {"t": (dims, random.normal(280, 10, shape).astype("f4"),
               {"units": "K", "long_name": "temperature", "valid_range": [100.0, 400.0]}),
         "q": (dims, random.uniform(0, 0.02, shape),
               {"units": "kg kg-1", "standard_name": "specific_humidity"}),
         "u": (("time", "latitude", "longitude"),
               random.normal(size=(len(time), 8, 16)).astype("f4"),
               {"units": "m s-1", "grid_mapping": "crs"}),
         "orography": (("latitude", "longitude"), random.uniform(0, 5000, shape[2:]).astype("f4"),
                       {"units": "m"}),
         "p": (("x", "band"), random.normal(size=(40, 2))),
         "c": (("day",), np.arange(5.0)),
         "l": (("lead",), np.arange(4.0))},
        {"time": ("time", time, {"long_name": "valid time"}),
         "level": ("level", [500, 700, 850], {"units": "hPa"}),
         "latitude": ("latitude", np.linspace(70.0, -70.0, 8), {"units": "degrees_north"}),
         "longitude": ("longitude", np.arange(0, 360, 22.5), {"units": "degrees_east"}),
         "band": ["red", "nir"], "lead": np.arange(4) * np.timedelta64(6, "h").astype("m8[ns]"),
         "day": ("day", np.arange(5), {"units": "days since 2001-02-27", "calendar": "noleap"})})
    chunks = {"chunks": (7, 2, 5, 16)}
    dataset.to_zarr(path, zarr_format=2, encoding={"t": chunks, "q": chunks | {
        "dtype": "i2", "scale_factor": 1e-6, "add_offset": 0.01, "_FillValue": -32768}})
    return xr.open_zarr(path, drop_variables=["day"])  # without cftime xarray cannot open it


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "store.zarr"
    return path, make_store(path)


@pytest.fixture(scope="module")
def places(weather, tmp_path_factory):
    """The socket of a server, and a mount of the same views."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    folder = tmp_path_factory.mktemp("views")
    server = Server(weather[0], folder, VIEWS)
    directory = tmp_path_factory.mktemp("mount") / "mnt"
    directory.mkdir()
    files = [part for name in VIEWS for part in ("--view", str(folder / f"{name}.json"))]
    subprocess.run([PROGRAM, "mount", str(weather[0]), str(directory), *files], check=True)
    yield server.socket, directory
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)
    server.stop()


@pytest.fixture(params=["serve", "mount", "files"])
def opened(request, places):
    """opened(view): a dataset, over each way that batches come."""
    def open_(name, **options):
        data = batchfs.open(places[0] if request.param == "serve" else places[1], name,
                            mode="files" if request.param == "files" else "auto", **options)
        assert data.mode == ("files" if request.param == "files" else "shm")
        return data
    return open_


def provenance(places, data, batch):
    """batch-….json of the mount."""
    directory = places[1] / "views" / data.name
    if batch.number >= data.schema["batches"]:
        directory /= f"rank-{batch.number}-of-{batch.number + 1}"
        return json.loads((directory / f"epoch-{batch.epoch:04}/batch-000000.json").read_text())
    return json.loads(
        (directory / f"epoch-{batch.epoch:04}/batch-{batch.number:06}.json").read_text())


@pytest.mark.says("handoff-labels")
@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if "xbatcher" not in view])
def test_labels_are_those_of_the_provenance(opened, places, weather, view):
    data = opened(view)
    for epoch in range(2):
        data.set_epoch(epoch)
        for batch in data:
            about = provenance(places, data, batch)
            assert batch.index.dtype == np.int64 and batch.index.tolist() == about["samples"]
            assert batch.index.shape == (batch.samples,)
            assert list(batch.labels) == list(VIEWS[view]["window"])
            for dim, labels in batch.labels.items():
                starts = [window[dim][0] for window in about["windows"]]
                if dim in weather[1].coords and view != "noleap":
                    expected = weather[1][dim].values[starts]
                    assert labels.dtype == expected.dtype and np.array_equal(labels, expected)
                elif view == "noleap":
                    assert labels.tolist() == about["coordinates"][dim] == starts
                else:
                    assert labels.dtype == np.int64 and labels.tolist() == starts


def test_labels_find_the_samples_in_the_store(opened, weather):
    """xarray's own indexing, with nothing but the labels."""
    batch = opened("plain")[2]
    for row, time in enumerate(batch.labels["time"]):
        assert same(batch["t"].numpy()[row, 0], weather[1].t.sel(time=time).values)
    batch = opened("patches")[5]
    around = xr.concat([weather[1].t, weather[1].t], "longitude")
    for row in range(batch.samples):
        first = {dim: int(np.flatnonzero(weather[1][dim].values == values[row])[0])
                 for dim, values in batch.labels.items()}
        patch = around.isel({dim: slice(start, start + VIEWS["patches"]["window"][dim]["size"]
                                            if dim != "time" else start + 2)
                             for dim, start in first.items()})
        assert same(batch["t"].numpy()[row], patch.values)


def test_a_padded_rank_repeats_samples(opened):
    data = opened("patches", rank=2, world=4)
    numbers = np.concatenate([batch.index for rank in range(4)
                              for batch in opened("patches", rank=rank, world=4)])
    assert len(numbers) == 4 * len(data) * 7
    assert set(numbers.tolist()) == set(range(data.schema["samples"]))


def test_coordinates_of_whole_dimensions(opened, weather):
    batch = opened("plain")[0]
    coords = batch["t"].coords
    assert list(coords) == ["level", "latitude", "longitude"]
    for dim, values in coords.items():
        assert same(values, weather[1][dim].values)
    assert opened("patches")[0]["t"].coords.keys() == {"level"}
    batch = opened("stacked")[0]
    assert batch["x"].coords["channel"].tolist() == ["t_0_500", "t_0_700", "t_0_850", "u_0"]
    assert batch["y"].coords["channel"].tolist() == ["u_1"]
    assert opened("points")[0]["p"].coords["band"].tolist() == ["red", "nir"]


@pytest.mark.parametrize("view", list(VIEWS))
def test_xarray_is_the_format_zarr(opened, places, view):
    data = opened(view)
    for number in {0, len(data) // 2, len(data) - 1}:
        batch = data[number]
        ours = batch.xarray()
        theirs = xr.open_zarr(places[1] / "views" / view / f"epoch-0000/batch-{number:06}.zarr")
        xr.testing.assert_identical(ours, theirs)
        assert {name: variable.dtype for name, variable in ours.variables.items()} == \
            {name: variable.dtype for name, variable in theirs.variables.items()}


def test_variables_keep_their_attributes(opened, weather):
    dataset = opened("plain")[0].xarray()
    for name in ("t", "q", "level", "latitude", "longitude"):
        assert dataset[name].attrs == weather[1][name].attrs
    assert dataset.time_start.attrs == weather[1].time.attrs
    assert opened("stacked")[0].xarray().x.attrs == {}
    assert opened("stacked")[0].xarray().y.attrs == weather[1].u.attrs


def test_times_that_datetime64_cannot_hold_are_numbers_as_labels(opened, monkeypatch):
    data = opened("noleap")
    assert data.schema["coordinates"][0]["note"].count("noleap")
    assert data[1].labels["day"].tolist() == [2, 3]
    day = data[1].xarray().day_start
    assert [str(time) for time in day.values] == ["2001-03-01 00:00:00", "2001-03-02 00:00:00"]
    assert day.attrs == {} and day.dt.calendar == "noleap"
    monkeypatch.setitem(sys.modules, "cftime", None)
    day = data[1].xarray().day_start
    assert day.values.tolist() == [2, 3]
    assert day.attrs == {"units": "days since 2001-02-27", "calendar": "noleap"}


def test_a_dataset_is_not_a_copy(opened):
    batch = opened("plain")[0]
    dataset = batch.xarray()
    assert (np.shares_memory(dataset.t.values, batch["t"].numpy())
            and not dataset.t.values.flags.writeable)


def test_views_of_xbatcher(opened, weather):
    import xbatcher
    data = opened("sliced")
    generator = xbatcher.BatchGenerator(weather[1][["u"]], {"latitude": 3, "longitude": 5},
                                        batch_dims={"time": 4})
    for number, expected in enumerate(generator):
        batch = data[number]
        assert batch.index.tolist() == [number]
        dataset = batch.xarray()
        assert same(dataset.u.values, expected.u.values)
        for dim in expected.u.dims:
            assert np.array_equal(dataset[dim], expected[dim])
            assert (batch.labels[dim].shape == (1,)
                    and batch.labels[dim][0] == expected[dim].values[0])


def give(place, view, numbers, answers):
    data = batchfs.open(place, view)
    for number in numbers:
        answers.put(data[number])
    answers.close()
    answers.join_thread()


def equal_labels(one, other):
    assert same(one.index, other.index) and one.labels.keys() == other.labels.keys()
    assert all(same(one.labels[dim], other.labels[dim]) for dim in other.labels)
    for name in other.keys():
        assert one[name].coords.keys() == other[name].coords.keys()
        assert all(same(one[name].coords[dim], other[name].coords[dim])
                   for dim in other[name].coords)


@pytest.mark.parametrize("view", ["plain", "stacked", "sliced"])
def test_labels_are_pickled_with_the_batch(opened, view):
    batch = opened(view)[1]
    for copy in (pickle.loads(pickle.dumps(batch)),
                 pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(batch))))):
        equal_labels(copy, batch)
        xr.testing.assert_identical(copy.xarray(), batch.xarray())
    name = batch.keys()[0]
    assert pickle.loads(pickle.dumps(batch[name])).coords.keys() == batch[name].coords.keys()


def test_labels_come_from_a_worker_process(places):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    worker = context.Process(target=give, args=(places[0], "plain", [0, 3], answers))
    worker.start()
    try:
        for number in (0, 3):
            equal_labels(answers.get(timeout=60), batchfs.open(places[0], "plain")[number])
    finally:
        worker.join(timeout=60)
        worker.kill()


def test_labels_outlive_the_server(weather, tmp_path):
    server = Server(weather[0], tmp_path, {name: VIEWS[name] for name in ("plain", "two")})
    data = batchfs.open(server.socket, "plain")
    batch, expected = data[1], data[1]
    labels = expected.labels
    server.kill()
    assert same(batch.labels["time"], labels["time"]) and batch.xarray().sizes["sample"] == 3
