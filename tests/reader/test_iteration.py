"""Epochs, ranks, state."""

import multiprocessing
import os
import pickle

import pytest
from reader_servers import same

import batchfs


def numbers(dataset):
    return [(batch.epoch, batch.number) for batch in dataset]


@pytest.fixture(params=["shm", "files"])
def place(request, server):
    """Arguments to open a dataset."""
    if request.param == "shm":
        return lambda view="two", **arguments: batchfs.open(server.socket, view, **arguments)
    mounted = request.getfixturevalue("mounted")
    return lambda view="two", **arguments: batchfs.open(mounted, view, mode="files", **arguments)


def test_each_pass_is_an_epoch(place):
    data = place()
    for epoch in range(3):
        assert data.epoch == epoch
        assert numbers(data) == [(epoch, b) for b in range(14)]
    data.set_epoch(7)
    assert numbers(data)[0] == (7, 0)


def test_leaving_early_starts_the_epoch_again(place):
    data = place(epoch=1)
    for batch in data:
        if batch.number == 3:
            break
    assert numbers(data) == [(1, b) for b in range(14)]


def test_another_iteration_ends_the_first(place):
    data = place()
    first = iter(data)
    next(first)
    second = iter(data)
    assert next(second).number == 0
    with pytest.raises(RuntimeError, match="another iteration"):
        next(first)


def test_a_finished_iteration_stays_finished(place):
    iteration = iter(place())
    assert len(list(iteration)) == 14
    assert next(iteration, None) is None


@pytest.mark.parametrize("world", [1, 2, 3, 5, 14, 20])
def test_ranks_share_an_epoch(place, world):
    read = [numbers(place(rank=rank, world=world)) for rank in range(world)]
    for rank, mine in enumerate(read):
        assert mine == [(0, b) for b in range(rank, 14, world)]
        assert len(place(rank=rank, world=world)) == len(mine)


@pytest.mark.parametrize("world", [1, 3, 4, 13, 15])
def test_remainders_give_all_ranks_the_same(place, world):
    # 40 samples: 13 whole batches of 3 with drop, 14 with pad.
    dropped = [numbers(place("drop", rank=rank, world=world)) for rank in range(world)]
    assert {len(mine) for mine in dropped} == {13 // world}
    padded = [numbers(place("pad", rank=rank, world=world)) for rank in range(world)]
    assert {len(mine) for mine in padded} == {-(-14 // world)}
    assert sorted({n for mine in padded for _, n in mine}) == list(range(-(-14 // world) * world))


def test_padded_batches_are_the_mounts(server, mounted):
    for batch in batchfs.open(server.socket, "pad", rank=3, world=4):
        files = batchfs.open(mounted, "pad", rank=3, world=4, mode="files").batch(batch.number)
        assert same(batch["t"].numpy(), files["t"].numpy())


@pytest.mark.parametrize("view,left", [("two", 14), ("drop", 13), ("pad", 14)])
@pytest.mark.parametrize("before,steps,after", [(2, 3, 2), (2, 3, 4), (4, 2, 1), (1, 5, 3),
                                                (3, 1, 2), (2, 0, 5), (2, 7, 3)])
def test_going_on_with_another_world_reads_what_is_left_once(place, view, left, before, steps,
                                                             after):
    first, states = [], []
    for rank in range(before):
        data = place(view, rank=rank, world=before)
        iteration = iter(data)
        first += [next(iteration).number for _ in range(min(steps, len(data)))]
        states.append(data.state_dict())
    if len({len(place(view, rank=rank, world=before)) for rank in range(before)}) == 1:
        assert all(state == states[0] for state in states)
    done = min(steps * before, left)
    second = []
    for rank in range(after):
        data = place(view, rank=rank, world=after)
        data.load_state_dict(states[0])
        second.append([number for _, number in numbers(data)])
        assert data.epoch == 1
        assert numbers(data)[:1] == [(1, rank)][:len(data)]  # the next epoch is a whole one
    for rank, mine in enumerate(second):
        assert mine == list(range(done + rank, done + rank + after * len(mine), after))
    together = sorted(n for mine in second for n in mine)
    rest = list(range(done, left))
    if view == "two":
        assert together == rest
    elif view == "drop":
        assert together == rest[:len(rest) // after * after] and len({
            len(mine) for mine in second}) == 1
    else:
        assert together[:len(rest)] == rest and len({len(mine) for mine in second}) == 1
        assert len(together) - len(rest) < after


def test_state_is_of_what_was_given_out(place):
    data = place()
    assert data.state_dict()["batches_done"] == 0
    iteration = iter(data)
    for done in range(1, 4):
        next(iteration)
        assert data.state_dict() == {"version": 1, "view": "two", "epoch": 0, "batch_size": 3,
                                     "batches_done": done}
    for _ in iteration:
        pass
    assert data.state_dict() == {"version": 1, "view": "two", "epoch": 1, "batch_size": 3,
                                 "batches_done": 0}


def test_state_survives_loading_and_saving(place):
    data = place(rank=1, world=2)
    data.load_state_dict({"version": 1, "view": "two", "epoch": 4, "batch_size": 3,
                          "batches_done": 5})
    assert data.state_dict()["batches_done"] == 5
    iteration = iter(data)
    assert (next(iteration).number, data.state_dict()["batches_done"]) == (6, 7)


def test_state_of_another_batch_size(place):
    data = place()
    state = {"version": 1, "view": "two", "epoch": 0, "batch_size": 9, "batches_done": 2}
    data.load_state_dict(state)
    assert numbers(data)[0] == (0, 6)
    with pytest.raises(ValueError, match="whole number"):
        data.load_state_dict(state | {"batch_size": 5, "batches_done": 1})


@pytest.mark.parametrize("change", [{"version": 2}, {"view": "one"}, {"batches_done": 15},
                                    {"batches_done": -1}])
def test_states_that_do_not_fit(place, change):
    state = {"version": 1, "view": "two", "epoch": 0, "batch_size": 3, "batches_done": 2} | change
    with pytest.raises(ValueError):
        place().load_state_dict(state)


def test_reading_by_number_leaves_an_iteration_alone(place):
    data = place()
    seen = []
    for batch in data:
        seen.append(batch.number)
        assert data[batch.number - 5].number == (batch.number - 5) % 14
    assert seen == list(range(14))


@pytest.mark.parametrize("prefetch", [0, 1, 5, 100])
def test_all_batches_can_be_held_at_once(place, prefetch):
    data = place(prefetch=prefetch)
    held = list(data)
    assert [batch.number for batch in held] == list(range(14))
    for batch in held:
        assert same(batch["q"].numpy(), data.batch(batch.number, epoch=0)["q"].numpy())


def test_pickling_opens_again(place):
    data = place(rank=1, world=2)
    data.load_state_dict({"version": 1, "view": "two", "epoch": 3, "batch_size": 3,
                          "batches_done": 4})
    again = pickle.loads(pickle.dumps(data))
    assert numbers(again) == numbers(data)


def _child(data, queue):
    queue.put((os.getpid(), [batch.number for batch in data], data[2].number))


def test_a_forked_child_reads_by_itself(place):
    data = place()
    iteration = iter(data)
    held = [next(iteration), next(iteration)]
    expected = held[0]["t"].numpy().copy()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_child, args=(data, queue)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in children:
        pid, seen, single = queue.get(timeout=30)
        assert pid != os.getpid() and seen == list(range(14)) and single == 2
    for child in children:
        child.join()
    assert [batch.number for batch in iteration] == list(range(2, 14))
    assert same(held[0]["t"].numpy(), expected)
