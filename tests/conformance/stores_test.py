"""The values that xarray gives for one dataset of every CF encoding, whatever keeps it: an Icechunk
repository, reference sets of Zarr stores, of NetCDF-4 files with kerchunk. xarray opens the same
store."""

import io
import json
import pathlib
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

warnings.filterwarnings("ignore")
N = 12
TIME_UNITS = ["days since 1970-01-01", "hours since 1900-01-01 00:00:0.0",
              "minutes since 2000-02-29 12:34:56", "milliseconds since 1970-01-01",
              "days since 1850-1-1", "hours since 2000-01-01 00:00:00 +03:00"]
CALENDARS = ["noleap", "360_day", "julian"]


def arrays():
    """(name, values, attributes, dims) of every kind."""
    for dtype in ("i1", "u1", "<i2", ">i2", "u2", "i4", "u4", "i8", "f2", "f4", ">f4", "f8"):
        values = np.arange(N) - (0 if np.dtype(dtype).kind == "u" else 4)
        values[[2, 7]] = 5
        for number, attributes in enumerate(
                [{}, {"scale_factor": 0.01}, {"add_offset": 273.15},
                 {"scale_factor": 0.1, "add_offset": 3}, {"missing_value": 5},
                 {"missing_value": 5, "scale_factor": 0.01, "add_offset": 273.15}]):
            (yield f"v_{dtype.replace('<', 'le').replace('>', 'be')}_{number}",
             values.astype(dtype), attributes, ("x",))
    for number, units in enumerate(TIME_UNITS):
        for dtype, values in [("i4", np.arange(N)), ("f8", np.arange(N) + 0.25),
                              ("i8", np.arange(N) * 1000)]:
            yield f"t_{dtype}_{number}", values.astype(dtype), {"units": units}, ("x",)
    for calendar in CALENDARS:
        yield f"c_{calendar}", np.arange(N) * 40, {"units": "days since 1990-01-01",
                                                   "calendar": calendar}, ("x",)
    for unit in ("days", "hours", "seconds"):
        yield f"d_{unit}", np.arange(N), {"units": unit}, ("x",)
    yield "unsigned", np.array([0, 1, 5, 100, 127, -56, -1] + [3] * 5,
                               "i1"), {"_Unsigned": "true"}, ("x",)
    yield "logical", np.arange(N) % 3 == 0, {}, ("x",)
    yield "complex", np.arange(N) + 1j, {}, ("x",)
    yield "field", np.random.default_rng(1).normal(size=(N, 7, 5)).astype("f4"), {"units": "K"}, (
        "x", "y", "z")
    yield "scalar", np.array(2.5), {}, ()


def write(store, version):
    root = zarr.open_group(store, mode="w", zarr_format=version)
    for name, values, attributes, dims in arrays():
        array = root.create_array(name, shape=values.shape,
                                  chunks=tuple(max(1, n // 2) for n in values.shape),
                                  dtype=values.dtype, fill_value=None if version == 2 else 0,
                                  **({"dimension_names": dims} if version == 3 else {}))
        array[...] = values
        array.attrs.update(attributes | ({"_ARRAY_DIMENSIONS": list(dims)} if version == 2 else {}))


def check(batchfs, place, opened, *options):
    listed = json.loads(batchfs.bytes("inspect", place, "--json", *options))["arrays"]
    assert set(listed) == set(opened.variables)
    compared = 0
    for name, variable in opened.variables.items():
        expected = np.asarray(variable.values)
        if expected.dtype.kind == "O":  # dates of other calendars, which batchfs returns as numbers
            continue
        got = np.load(io.BytesIO(batchfs.bytes("cat", place, name, "--decode", "cf", *options)),
                      allow_pickle=False)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
        same = np.array_equal(got, expected, equal_nan=expected.dtype.kind in "fcmM")
        assert same and got[got == got].tobytes() == expected[expected == expected].tobytes(), name
        compared += 1
    return compared


@pytest.fixture(scope="module")
def icechunk():
    return pytest.importorskip("icechunk",
                               reason="tools/dependencies test installs the icechunk package")


def test_an_icechunk_repository(batchfs, icechunk, tmp_path):
    repository = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(tmp_path / "store")))
    session = repository.writable_session("main")
    write(session.store, 3)
    session.commit("all")
    opened = xr.open_zarr(repository.readonly_session("main").store, consolidated=False)
    assert check(batchfs, tmp_path / "store", opened) > 90


def opened_set(refs, folder):
    """A reference set as fsspec, zarr-python and xarray read it."""
    fsspec = pytest.importorskip("fsspec")
    absolute = {key: [str(folder / value[0]), *value[1:]] if isinstance(value, list) else value
                for key, value in refs.items()}
    files = fsspec.filesystem("reference", fo=absolute, asynchronous=True, remote_protocol="file",
                              remote_options={"asynchronous": True})
    return xr.open_zarr(zarr.storage.FsspecStore(files, read_only=True, path=""),
                        consolidated=False)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_references_to_the_objects_of_a_zarr_store(batchfs, tmp_path, version):
    write(tmp_path / "data", version)
    refs = {}
    for file in sorted(pathlib.Path(tmp_path / "data").rglob("*")):
        if not file.is_file():
            continue
        key = str(file.relative_to(tmp_path / "data"))
        small = file.name.startswith(".z") or file.name == "zarr.json"
        refs[key] = file.read_text() if small else [f"data/{key}", 0, file.stat().st_size]
    (tmp_path / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))
    assert check(batchfs, tmp_path / "set.json", opened_set(refs, tmp_path)) > 90


def test_references_of_kerchunk_to_a_netcdf4_file(batchfs, tmp_path):
    kerchunk_hdf = pytest.importorskip("kerchunk.hdf")
    data = xr.Dataset({name: (tuple(f"{d}{n}" for d, n in zip(dims, values.shape)), values,
                              attributes)
                       for name, values, attributes, dims in arrays() if values.dtype.kind in "iuf"
                           and values.dtype != "f2"})
    data.to_netcdf(tmp_path / "data.nc", engine="h5netcdf", encoding={
        name: {"zlib": True, "shuffle": True, "chunksizes": tuple(max(1, n // 2) for n in v.shape)}
        for name, v in data.variables.items() if v.ndim})
    refs = kerchunk_hdf.SingleHdf5ToZarr(str(tmp_path / "data.nc"), inline_threshold=0).translate()
    (tmp_path / "set.json").write_text(json.dumps(refs))
    assert check(batchfs, tmp_path / "set.json", opened_set(refs["refs"], tmp_path)) > 70
