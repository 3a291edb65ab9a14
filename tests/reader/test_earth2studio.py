"""The IO backend for earth2studio, called as its workflows call one: earth2studio itself is too
large for the tests.

Its documented interface: add_array(coords, array_name, data=None), write(x, coords, array_name).
Coordinates are ordered dicts of numpy arrays; names are a string or an array of strings; tensors
are torch's, which these are in DLPack's terms.
"""

import collections
import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr

import batchfs
from batchfs.earth2studio import PredictionBackend

LAT, LON = np.linspace(90, -90, 19), np.arange(0, 360, 10.0)
VARIABLES = np.array(["t2m", "msl", "z500"])
TIMES = np.array(["2024-01-01T00", "2024-01-02T06"], "M8[h]").astype("M8[ns]")
STEPS = 4


class Tensor:
    """An array of a library that has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Model:
    """Its forecasts are numbers of (ensemble member, time, lead time, variable, latitude,
    longitude)."""

    def __init__(self, lat=LAT, lon=LON):
        self.lat, self.lon = lat, lon

    def shape(self):
        return (len(self.lat), len(self.lon)) if np.ndim(self.lat) == 1 else np.shape(self.lat)

    def coords(self, **more):
        return collections.OrderedDict(more, variable=VARIABLES, lat=self.lat, lon=self.lon)

    def forecast(self, member, time, step):
        rng = np.random.default_rng([member, int(np.flatnonzero(time == TIMES)[0]), step])
        return rng.normal(size=(len(VARIABLES), *self.shape())).astype("f4")

    def iterate(self, members, times):
        buffer = np.empty((len(members), len(times), 1, len(VARIABLES), *self.shape()), "f4")
        for step in range(1000):
            for m, member in enumerate(members):
                for t, time in enumerate(times):
                    buffer[m, t, 0] = self.forecast(member, time, step)
            yield buffer, self.coords(ensemble=np.asarray(members), time=times,
                                      lead_time=lead_times(step, step + 1))


def lead_times(first, last):
    return np.arange(first, last) * np.timedelta64(6, "h")


def extract(x, coords, dim="variable"):
    """Variables as arrays of their own, as workflows pass them."""
    at = list(coords).index(dim)
    rest = collections.OrderedDict((name, values) for name, values in coords.items() if name != dim)
    return [Tensor(np.take(x, i, at)) for i in range(len(coords[dim]))], rest, coords[dim]


def workflow(io, model, times=TIMES, members=(0,), at_once=1, fail_at=None, nsteps=STEPS):
    """A workflow of an ensemble. With one member it has no ensemble dimension, like a deterministic
    one."""
    total = model.coords(ensemble=np.arange(len(members)), time=times,
                         lead_time=lead_times(0, nsteps + 1))
    if len(members) == 1:
        del total["ensemble"]
    names = total.pop("variable")
    io.add_array(total, names)
    for first in range(0, len(members), at_once):
        for step, (x, coords) in enumerate(model.iterate(members[first:first + at_once], times)):
            if (first, step) == fail_at:
                raise RuntimeError("the model failed")
            if len(members) == 1:
                x = x[0]
                del coords["ensemble"]
            io.write(*extract(x, coords))
            x[:] = -1  # the memory is the model's again
            if step == nsteps:
                break


def opened(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "not consolidated" would be one
        return xr.open_zarr(path, decode_timedelta=True)


def check(path, model, members=(0,), nsteps=STEPS):
    dataset = opened(path)
    assert sorted(dataset.data_vars) == sorted(VARIABLES)
    np.testing.assert_array_equal(dataset.time.values, TIMES)
    np.testing.assert_array_equal(dataset.lead_time.values, lead_times(0, nsteps + 1))
    for v, name in enumerate(VARIABLES):
        array = (dataset[name] if "ensemble" in dataset.dims
                 else dataset[name].expand_dims("ensemble"))
        assert array.dims[:3] == ("ensemble", "time", "lead_time") and array.dtype == "f4"
        for member in members:
            for t, time in enumerate(TIMES):
                for step in range(nsteps + 1):
                    np.testing.assert_array_equal(array.values[member, t, step],
                                                  model.forecast(member, time, step)[v])
    return dataset


def files(path):
    return {str(one.relative_to(path)): one.read_bytes() for one in pathlib.Path(path).rglob("*")
            if one.is_file()}


@pytest.mark.parametrize("options, objects",
                         [({}, len(TIMES) * (STEPS + 1)),
                          ({"chunks": {"lead_time": 3, "lat": 7}}, len(TIMES) * 2 * 3),
                          ({"shards": {"lead_time": -1}, "codec": "blosc"}, len(TIMES)),
                          ({"chunks": {"time": 2, "lead_time": 2}, "codec": "none"}, 3)])
def test_a_deterministic_workflow(tmp_path, options, objects):
    model = Model()
    with PredictionBackend(tmp_path / "out.zarr", **options) as io:
        workflow(io, model)
        assert "t2m" in io and "variable" not in io
    dataset = check(tmp_path / "out.zarr", model)
    np.testing.assert_array_equal(dataset.lat.values, LAT)
    np.testing.assert_array_equal(dataset.lon.values, LON)
    assert len([name for name in files(tmp_path / "out.zarr")
                if name.startswith("t2m/c/")]) == objects
    assert not (tmp_path / "out.zarr/.batchfs").exists()


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_an_ensemble(tmp_path, at_once):
    model, members = Model(), list(range(5))
    with PredictionBackend(tmp_path / "out.zarr", chunks={"ensemble": 2}) as io:
        workflow(io, model, members=members, at_once=at_once)
    check(tmp_path / "out.zarr", model, members)


def test_a_curvilinear_grid(tmp_path):
    lat, lon = np.meshgrid(np.linspace(50, 40, 6), np.linspace(0, 8, 9), indexing="ij")
    model = Model(lat + 0.1 * lon, lon - 0.1 * lat)
    with PredictionBackend(tmp_path / "out.zarr") as io:
        workflow(io, model)
    dataset = check(tmp_path / "out.zarr", model)
    assert dataset.t2m.dims[2:] == ("ilat", "ilon") and {"lat", "lon"} <= set(dataset.coords)
    np.testing.assert_array_equal(dataset.lat.values, model.lat)
    np.testing.assert_array_equal(dataset.lon.values, model.lon)


def test_labels_say_where_values_go(tmp_path):
    """In any order, and with gaps; what was never written is NaN."""
    coords = {"time": TIMES, "lat": LAT, "lon": LON}
    want = np.full((len(TIMES), len(LAT), len(LON)), np.nan, "f4")
    rng = np.random.default_rng(0)
    with PredictionBackend(tmp_path / "out.zarr", chunks={"lat": 5, "lon": 7}) as io:
        io.add_array(coords, "t2m", attributes={"units": "K"})
        for n in range(6):
            lat, lon = rng.permutation(len(LAT))[:9], rng.permutation(len(LON))[:11]
            t = [n % 2]
            fresh = np.isnan(want[np.ix_(t, lat, lon)])
            part = rng.normal(size=(1, 9, 11)).astype("f4")
            part = np.where(fresh, part, want[np.ix_(t, lat, lon)])
            want[np.ix_(t, lat, lon)] = part
            io.write(Tensor(part),
                     {"time": TIMES[t].astype("M8[s]"), "lat": LAT[lat], "lon": LON[lon]}, "t2m")
    got = opened(tmp_path / "out.zarr").t2m
    np.testing.assert_array_equal(got.values, want)
    assert got.attrs == {"units": "K"} and np.isnan(want).any()


def test_arrays_with_data(tmp_path):
    mask = np.arange(len(LAT) * len(LON)).reshape(len(LAT), len(LON))
    with PredictionBackend(tmp_path / "out.zarr") as io:
        io.add_array({"lat": LAT, "lon": LON}, ["index", "half"], [Tensor(mask), Tensor(mask / 2)])
    dataset = opened(tmp_path / "out.zarr")
    np.testing.assert_array_equal(dataset["index"].values, mask)
    np.testing.assert_array_equal(dataset["half"].values, mask / 2)
    assert dataset["index"].dtype == mask.dtype


def test_a_workflow_that_failed_is_continued(tmp_path):
    model, members = Model(), [0, 1, 2]
    whole, begun = tmp_path / "whole.zarr", tmp_path / "begun.zarr"
    with PredictionBackend(whole) as io:
        workflow(io, model, members=members)
    with pytest.raises(RuntimeError, match="the model failed"):
        with PredictionBackend(begun) as io:
            workflow(io, model, members=members, fail_at=(1, 2))
    assert not (begun / "zarr.json").exists()
    there = {name: (begun / name).stat().st_ino for name in files(begun) if "/c/" in name}
    assert there
    with PredictionBackend(begun) as io:
        workflow(io, model, members=members)
    assert files(begun) == files(whole)
    # not written again
    assert all((begun / name).stat().st_ino == inode for name, inode in there.items())


def test_what_is_refused(tmp_path):
    coords = {"time": TIMES, "lat": LAT, "lon": LON}
    here, values = {"time": TIMES[:1], "lat": LAT, "lon": LON}, np.zeros(
        (1, len(LAT), len(LON)), "f4")
    io = PredictionBackend(tmp_path / "out.zarr")
    io.add_array(coords, "t2m")

    def refused(what, call, *arguments, **options):
        with pytest.raises(batchfs.InvalidArgument, match=what):
            call(*arguments, **options)

    refused("taken", io.add_array, coords, "t2m")
    refused("taken", io.add_array, coords, "lat")
    refused("no name of a folder", io.add_array, coords, "../t2m")
    refused("other labels", io.add_array, coords | {"lat": LAT + 1}, "msl")
    refused("2 tensors are given for 1", io.write, [values, values], here, "t2m")
    refused("no array 'msl'", io.write, values, here, "msl")
    refused("no label 2024-01-01T01", io.write, values,
            here | {"time": TIMES[:1] + np.timedelta64(1, "h")}, "t2m")
    refused("there twice", io.write, values.repeat(2, 0), here | {"time": TIMES[[0, 0]]}, "t2m")
    refused("has the dimensions", io.write, values[0], {"lat": LAT, "lon": LON}, "t2m")
    refused("has the shape", io.write, values[:, 1:], here, "t2m")
    refused("of the type complex64", io.write, values + 1j, here, "t2m")
    refused("another process", PredictionBackend, tmp_path / "out.zarr")
    io.write(values, here, "t2m")
    refused("a second time", io.write, values, here, "t2m")
    io.close()
    with pytest.raises(batchfs.Error, match="closed"):
        io.write(values, here, "t2m")
    refused("finished", PredictionBackend, tmp_path / "out.zarr")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes").write_text("")
    refused("did not make it", PredictionBackend, tmp_path / "mine")


def test_another_run_is_refused(tmp_path):
    coords = {"time": TIMES, "lat": LAT, "lon": LON}
    with pytest.raises(RuntimeError), PredictionBackend(tmp_path / "out.zarr") as io:
        io.add_array(coords, "t2m")
        raise RuntimeError
    for other, options in ((coords | {"lat": LAT + 1}, {}), (coords, {"chunks": {"lat": 4}}),
                           (coords, {"codec": "none"})):
        with pytest.raises(batchfs.InvalidArgument, match="another run"), PredictionBackend(
                tmp_path / "out.zarr", **options) as io:
            io.add_array(other, "t2m")


def test_a_failed_write_is_raised(tmp_path, monkeypatch):
    """At the next write, or at the end; then there is no store."""
    io = PredictionBackend(tmp_path / "out.zarr", threads=1)
    io.add_array({"time": TIMES, "lat": LAT, "lon": LON}, "t2m")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io._folder, "_create", full)
    values = np.zeros((2, len(LAT), len(LON)), "f4")
    io.write(values, {"time": TIMES, "lat": LAT, "lon": LON}, "t2m")
    with pytest.raises(batchfs.Error, match="make room and run the same program again"):
        io.close()
    assert not (tmp_path / "out.zarr/zarr.json").exists()
