"""A store, and processes that write predictions of its windows."""

import multiprocessing
import os
import pathlib
import signal
import warnings

import numpy as np
import pytest
import xarray as xr

import batchfs

T, L, Y, X = 20, 2, 26, 36
GRID = {"time": 1, "lat": {"size": 8, "stride": 6}, "lon": {"size": 8, "stride": 7}}


def make_store(path):
    rng = np.random.default_rng(4)
    shape, dims = (T, L, Y, X), ("time", "level", "lat", "lon")
    ds = xr.Dataset({"t": (dims, rng.normal(280, 10, shape).astype("f4"),
                           {"units": "K", "long_name": "temperature"}),
                     "q": (dims, rng.uniform(0, 0.02, shape), {"units": "kg kg-1"}),
                     "p": (("time", "lat", "lon"), rng.normal(1e5, 100, (T, Y, X)).astype("f4"),
                           {"units": "Pa"}),
                     "kind": (("time", "lat", "lon"), rng.integers(0, 9, (T, Y, X)).astype("i2"))},
                    {"time": ("time", np.datetime64("2001-01-01", "ns") + np.arange(T)
                                  * np.timedelta64(6, "h"), {"long_name": "valid time"}),
                     "level": ("level", np.array([500, 850]), {"units": "hPa"}),
                     "lat": ("lat", np.linspace(50, 37.5, Y), {"units": "degrees_north"}),
                     "lon": ("lon", np.arange(X) * 10.0, {"units": "degrees_east"})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=3, encoding={name: {"chunks": (7, 2, 26, 36)[-ds[name].ndim:]}
                                                  for name in ds.data_vars}
                       | {"time": {"units": "hours since 1990-01-01"}})
    return ds


def open_(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "not consolidated" would be one
        return xr.open_zarr(path)


def view_of(window, **keys):
    return {"name": "test", "window": window, "batch": {"size": 5}, **keys}


def identity(store, out, view, tensor=None, predict=None, open_options=None, **options):
    """Writes each batch's own tensor; the dataset of what comes out."""
    data = batchfs.open(store, view=view, **(open_options or {}))
    with batchfs.create(out, like=data, tensor=tensor, **options) as target:
        for batch in data:
            values = {name: batch[name].numpy() for name in batch.keys()}
            target.write(batch, predict(batch) if predict else values if len(values) > 1
                             and tensor is None else values[tensor or next(iter(values))])
    assert target.finished
    return open_(out)


def same_bits(a, b):
    return (a.dtype == b.dtype and a.shape == b.shape
            and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())


def files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(pathlib.Path(path).rglob("*"))
            if p.is_file()}


OVERLAPPING = view_of(GRID, variables=["t"], order={"shuffle": "global"})
OPTIONS = {"overlap": "cosine", "chunks": {"time": 2, "lat": 9, "lon": 36}}


def write_rank(store, out, rank, world, memory="1G", after=None, order="global"):
    """`after`: batches; then the process is killed."""
    data = batchfs.open(store, view=OVERLAPPING | {"order": {"shuffle": order}}, rank=rank,
                        world=world)
    with batchfs.create(out, like=data, memory=memory, **OPTIONS) as target:
        for n, batch in enumerate(target.remaining()):
            if n == after:
                os.kill(os.getpid(), signal.SIGKILL)
            target.write(batch, batch["t"].numpy())


def run_ranks(*calls):
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=write_rank, args=call) for call in calls]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout=120)
    return [rank.exitcode for rank in ranks]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions") / "s.zarr"
    make_store(path)
    return path


@pytest.fixture(scope="module")
def truth(store):
    return xr.open_zarr(store).load()


@pytest.fixture
def data(store):
    with batchfs.open(store, view=OVERLAPPING) as opened:
        yield opened
