"""Lanes, homes and epochs of another length: the same batches for every number of ranks, and exact
resumption."""

import warnings

import numpy as np
import pytest
import xarray as xr
from reader_servers import Server

import batchfs

TIMES = 203
VIEW = {"name": "two", "window": {"time": 1}, "variables": ["v"], "batch": {"size": 4}, "epochs": 3}
ORDERS = {
    "two": {"shuffle": "none", "lanes": 6},
    "global": {"shuffle": "global", "lanes": 6},
    "block": {"shuffle": "block", "buffer": 3, "lanes": 6, "span": {"time": 2}},
    "home": {"shuffle": "block", "buffer": 3, "lanes": 6, "home": True},
    "drop": {"shuffle": "block", "buffer": 3, "lanes": 6, "home": True},
    "short": {"shuffle": "block", "buffer": 3, "lanes": 6},
    "long": {"shuffle": "global", "lanes": 5},
}
MORE = {"drop": {"batch": {"size": 4, "remainder": "drop"}},
        "short": {"epochs": {"count": 3, "samples": 77}},
        "long": {"epochs": {"count": 3, "samples": 500}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lanes")


@pytest.fixture(scope="module")
def server(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"v": ("time", np.arange(TIMES, dtype="i4"))}).to_zarr(
            folder / "s.zarr", zarr_format=2, encoding={"v": {"chunks": (5,)}})
    views = {name: VIEW | {"name": name, "order": order} | MORE.get(name, {})
             for name, order in ORDERS.items()}
    server = Server(folder / "s.zarr", folder, views)
    yield server
    server.stop()


def values(batches):
    """Number and samples of each batch."""
    result = []
    for batch in batches:
        result.append((batch.number, tuple(batch["v"].numpy()[:, 0].tolist())))
        assert batch.samples == len(result[-1][1])
    return result


@pytest.mark.parametrize("view", ["two", "global", "block", "home", "drop", "short", "long"])
def test_ranks_of_every_world_have_the_same_batches(server, view):
    alone = values(batchfs.open(server.socket, view, epoch=1))
    samples = [s for _, batch in alone for s in batch]
    if view == "drop":
        assert len(set(samples)) == len(samples) == TIMES - TIMES % 4
    elif view == "short":
        # Positions 77 to 153 of the first pass.
        assert len(set(samples)) == len(samples) == 77
        others = [s for epoch in (0, 2)
                  for _, batch in values(batchfs.open(server.socket, view, epoch=epoch))
                  for s in batch]
        assert len(set(samples + others)) == TIMES
    elif view == "long":
        assert len(samples) == 500 and {samples.count(s) for s in range(TIMES)} <= {1, 2, 3}
    else:
        assert sorted(samples) == list(range(TIMES))
    for world in (2, 3, 4, 6):
        ranks = [values(batchfs.open(server.socket, view, rank=rank, world=world, epoch=1))
                 for rank in range(world)]
        together = sorted(batch for mine in ranks for batch in mine)
        assert together == (alone if view != "drop" else alone[:len(alone) // world * world])


@pytest.mark.parametrize("before, after", [(3, 2), (6, 1), (1, 6), (2, 5)])
@pytest.mark.parametrize("view", ["global", "block", "home", "short", "long"])
def test_resuming_with_another_world_is_exact(server, view, before, after):
    alone = values(batchfs.open(server.socket, view))
    steps, states, first = 3, [], []
    for rank in range(before):
        data = batchfs.open(server.socket, view, rank=rank, world=before)
        iteration = iter(data)
        first += values(next(iteration) for _ in range(steps))
        states.append(data.state_dict())
    assert all(state == states[0] for state in states)
    second = []
    for rank in range(after):
        data = batchfs.open(server.socket, view, rank=rank, world=after)
        data.load_state_dict(states[0])
        second += values(data)
        assert data.epoch == 1
    assert sorted(first) + sorted(second) == alone


def test_lanes_keep_the_batch_size(server):
    state = batchfs.open(server.socket, "global").state_dict()
    with pytest.raises(batchfs.InvalidArgument, match="lanes"):
        batchfs.open(server.socket, "global").load_state_dict(
            state | {"batch_size": 8, "batches_done": 2})
