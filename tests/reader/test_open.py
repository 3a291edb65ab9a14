"""batchfs.open of a store: a server for the processes of a job."""

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr
from opened_stores import VIEW, member, script, servers, values_of, write_field
from opened_stores import field, runtime, view_file  # noqa: F401 (fixtures)
from reader_servers import same
from watching import eventually

import batchfs


# ---- one line ----


def test_the_values_are_those_of_zarr(field):
    store, values = field
    with batchfs.open(store, view=VIEW) as data:
        assert len(data) == 5 and data.mode == "shm"
        assert same(values_of(data), zarr.open_group(store, mode="r")["field"][:])
        assert data[-1].index.tolist() == [16, 17]


@pytest.mark.parametrize("kind",
                         ["path", "string", "relative", "yaml", "url", "one slash", "localhost"])
def test_a_view_may_be_a_file_and_a_store_a_url(field, view_file, tmp_path, monkeypatch, kind):
    store, values = field
    view = view_file
    if kind == "string":
        view, store = str(view_file), str(store)
    if kind == "relative":
        monkeypatch.chdir(tmp_path)
        view, store = "view.json", "field.zarr"
    if kind == "yaml":
        view = tmp_path / "view.yaml"
        view.write_text("window: {time: 1}\nvariables: [field]\nbatch: {size: 4}\n")
    if kind in ("url", "one slash", "localhost"):
        store = ({"url": "file://", "one slash": "FILE:", "localhost": "file://localhost"}[kind]
                 + str(store))
    with batchfs.open(store, view=view) as data:
        assert same(values_of(data), values)


def test_words_of_stores(tmp_path, monkeypatch):
    from batchfs._program import local_path, store_word

    monkeypatch.chdir(tmp_path)
    here = str(tmp_path)
    assert [store_word(place)
            for place in ("a", "/a", "file:/a", "FILE:///a", "file://localhost/a", "file://a",
                          "icechunk+a", "icechunk+file:/a", "reference::a.json")] == [
        f"{here}/a", "/a", "/a", "/a", "/a", f"{here}/a", f"icechunk+{here}/a", "icechunk+/a",
        f"reference::{here}/a.json"]
    # The program refuses the last ones, and names the form to write.
    for place in ("s3://b/x", "HTTP://h/x", "icechunk+s3://b/x", "s3:/b/x", "file:x"):
        assert store_word(place) == place
    assert (local_path("file:x") is None and local_path("c:/x") == "c:/x"
            and local_path("s3:x") == "s3:x")


def test_nothing_waits_by_the_clock_where_a_server_is_started_or_found(field, runtime, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    store, values = field
    with batchfs.open(store, view=VIEW) as first, batchfs.open(store, view=VIEW) as second:
        assert same(values_of(first), values) and same(values_of(second), values)
        assert len(servers(runtime)) == 1
    assert pauses == []


def test_a_cache_directory_is_relative_to_the_program(tmp_path, monkeypatch):
    from batchfs._program import option_words

    monkeypatch.chdir(tmp_path)
    assert option_words({"cache_dir": "cache", "anon": True, "follow_links": False,
                         "threads": 2, "virtual": ["a=b", "c"], "tag": None}) == [
        f"--cache-dir={tmp_path}/cache", "--anon", "--threads=2", "--virtual=a=b", "--virtual=c"]


def test_ranks_epochs_and_options_are_those_of_every_dataset(field):
    store, values = field
    with batchfs.open(store, view=VIEW | {"epochs": 3}, rank=1, world=2, epoch=2, prefetch=0,
                      memory="32MB", threads=1, idle=60) as data:
        assert [batch.number for batch in data] == [1, 3] and data.epoch == 3
        state = data.state_dict()
    with batchfs.open(store, view=VIEW | {"epochs": 3}) as data:
        data.load_state_dict(state)
        assert data.epoch == 3


def test_part_chooses_from_a_split(field):
    store, values = field
    view = VIEW | {"split": {"parts": {"train": [{"time": {"from": "#0", "to": "#12"}}],
                                       "val": "rest"}}}
    train = batchfs.open(store, view=view, part="train")
    with train, batchfs.open(store, view=view, part="val") as val:
        assert same(np.concatenate([values_of(train), values_of(val)]), values)
        with pytest.raises(batchfs.NotFound, match="there are view-train, view-val"):
            batchfs.open(store, view=view, part="test")
        with pytest.raises(batchfs.InvalidArgument,
                           match="pass a part, part='view-train' for instance"):
            batchfs.open(store, view=view)


def test_numpy_values_and_paths_in_a_view(field):
    store, values = field
    view = VIEW | {"window": {"time": np.int64(1)}, "batch": {"size": np.int32(4)},
                   "variables": ("field",)}
    with batchfs.open(store, view=view) as data:
        assert same(values_of(data), values)
    with pytest.raises(batchfs.InvalidArgument, match="cannot be written as JSON: object"):
        batchfs.open(store, view=VIEW | {"name": object()})


# ---- shared, and ended ----


def test_processes_of_a_job_share_one_server(field, view_file, runtime):
    store, values = field
    members = [member(store, view_file) for _ in range(4)]  # all at once
    said = [float(process.stdout.readline()) for process in members]
    assert said == [said[0]] * 4 and np.isclose(said[0], values.sum(dtype="f8"), rtol=1e-5)
    assert len(servers(runtime)) == 1
    for number, process in enumerate(members):
        assert len(servers(runtime)) == 1, number
        process.communicate("\n")
    assert eventually(lambda: not servers(runtime))


def test_other_views_options_and_variables_have_other_servers(
        field, runtime, monkeypatch, tmp_path):
    store, _ = field
    with contextlib.ExitStack() as stack:
        def count(store=store, view=VIEW, **options):
            stack.enter_context(batchfs.open(store, view=view, **options))
            return len(servers(runtime))

        assert count() == 1
        assert count(view=dict(reversed(VIEW.items()))) == 1  # the same view
        assert count(view=VIEW | {"batch": {"size": 3}}) == 2
        assert count(threads=1) == 3
        monkeypatch.chdir(tmp_path)
        assert count() == 3, "the view names no file"
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
        assert count() == 4


def test_the_server_ends_with_the_last_reference(field, runtime):
    store, values = field
    data = batchfs.open(store, view=VIEW)
    batch = data[0]
    data.close()
    data.close()
    assert "closed" in repr(data)
    for call in (lambda: data[0], lambda: iter(data), lambda: len(data), lambda: data.mode):
        with pytest.raises(batchfs.Error, match="the dataset is closed; open it again"):
            call()
    array = batch["field"].numpy()
    del batch
    assert servers(runtime), "a batch is held"
    del array
    assert eventually(lambda: not servers(runtime))
    with batchfs.open(store, view=VIEW) as data:
        assert same(values_of(data), values)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_leaves_no_server(field, view_file, runtime, how):
    process = member(field[0], view_file)
    process.stdout.readline()
    assert len(servers(runtime)) == 1
    process.send_signal(how)
    process.communicate()
    assert eventually(lambda: not servers(runtime))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_killed_while_it_opens_leaves_no_server(view_file, runtime, how):
    """A store that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = member(f"http://127.0.0.1:{silent.getsockname()[1]}/s.zarr", view_file,
                         stderr=subprocess.DEVNULL)
        silent.accept()[0].close()
        connection, _ = silent.accept()
        assert servers(runtime)
        process.send_signal(how)
        process.communicate()
        assert eventually(lambda: not servers(runtime))
        connection.close()
    # of the killed one; held by nobody
    for file in [*runtime.glob("*/*.lock"), *runtime.glob("*/*.session")]:
        file.unlink()


def test_a_lock_that_a_killed_process_left_holds_up_nobody(field, runtime, monkeypatch):
    store, values = field
    with batchfs.open(store, view=VIEW):
        (name,) = runtime.glob("*/*.sock")
    assert eventually(lambda: not servers(runtime))
    name.with_suffix(".lock").touch()
    with batchfs.open(store, view=VIEW) as data:
        assert same(values_of(data), values)


def test_a_killed_server_is_started_again(field, runtime):
    store, values = field
    with batchfs.open(store, view=VIEW | {"epochs": 2}, prefetch=0) as data:
        iteration = iter(data)
        read = [next(iteration)["field"].numpy()[:, 0].copy()]
        (server,) = servers(runtime)
        os.kill(server, signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="ended and was started again"):
            read += [batch["field"].numpy()[:, 0].copy() for batch in iteration]
        assert same(np.concatenate(read), values)
        assert servers(runtime) not in ([], [server])


def test_a_rewritten_store_has_a_server_of_its_own(field, runtime):
    store, before = field
    with batchfs.open(store, view=VIEW) as old:
        assert same(values_of(old), before)
        _, after = write_field(store, 1, steps=7)
        with batchfs.open(store, view=VIEW) as new:
            assert same(values_of(new), after)


def test_a_changed_view_file_is_another_view(field, view_file, runtime):
    with batchfs.open(field[0], view=view_file) as old:
        view_file.write_text(json.dumps(VIEW | {"batch": {"size": 9}}))
        with batchfs.open(field[0], view=view_file) as new:
            assert (len(old), len(new)) == (5, 2)


def test_a_changed_file_that_a_view_names_is_another_view(field, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    view = VIEW | {"samples": {"list": "list.npy"}}
    np.save("list.npy", np.array([3, 1]))
    with batchfs.open(field[0], view=view) as old:
        np.save("list.npy", np.array([5, 2, 2]))
        with batchfs.open(field[0], view=view) as new:
            assert (old[0].samples, new[0].samples) == (2, 3)
            assert same(values_of(new), field[1][[5, 2, 2]])


# ---- processes of a program ----

PROCESSES = """
import json, multiprocessing, sys, batchfs

def work(data, numbers, answers):
    answers.put([float(data.batch(number)["field"].numpy().sum()) for number in numbers])

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[3])
    data = batchfs.open(sys.argv[1], view=json.loads(sys.argv[2]))
    answers = context.SimpleQueue()
    workers = [context.Process(target=work, args=(data, range(5), answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    seen = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    own = [float(batch["field"].numpy().sum()) for batch in data]
    print(json.dumps([seen == [own] * 3, [worker.exitcode for worker in workers]]))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_dataset_works_in_other_processes(field, tmp_path, method):
    file = tmp_path / "program.py"
    file.write_text(PROCESSES)
    done = subprocess.run([sys.executable, file, field[0], json.dumps(VIEW), method],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [True, [0, 0, 0]]


def test_a_child_reads_on_when_its_parent_has_ended(field, runtime):
    text = """
import json, os, sys, batchfs
data = batchfs.open(sys.argv[1], view=json.loads(sys.argv[2]))
ready, done = os.pipe()
if os.fork():
    os._exit(0)
os.setsid()
parent = int(sys.argv[3])
print(json.dumps(sum(len(batch["field"].numpy()) for batch in data)))
"""
    assert script(text, field[0], json.dumps(VIEW), 0) == 18


@pytest.mark.parametrize("view", [VIEW, "view.json"], ids=["keys", "file"])
def test_a_pickled_dataset_opens_the_store_again(field, view_file, view, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    store, values = field
    data = batchfs.open("field.zarr", view=view, threads=1)
    iteration = iter(data)
    next(iteration)
    pickled = pickle.dumps(data)
    data.close()
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert same(values_of(again), values)


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_of_a_data_loader(field, start):
    torch = pytest.importorskip("torch")
    from batchfs.torch import BatchDataset

    store, values = field
    data = BatchDataset(store, view=VIEW)
    for epoch in range(2):
        data.set_epoch(epoch)
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2,
                                             multiprocessing_context=start)
        read = [batch["field"].numpy()[:, 0] for batch in loader]
        assert same(np.concatenate(read), values)
    data.batches.close()


def test_further_stores_are_passed_on(tmp_path, field):
    store, values = field
    other, more = write_field(tmp_path / "more.zarr", 1)
    view = {"sources": {"a": {}, "b": {"store": "more"}}, "window": {"time": 1},
            "variables": ["field", "b:field"], "batch": {"size": 18}, "order": {"shuffle": "none"}}
    with batchfs.open(store, view=view, stores={"more": other}) as data:
        (batch,) = data
        assert np.array_equal(batch["field"].numpy()[:, 0], values)
        assert np.array_equal(batch["b:field"].numpy()[:, 0], more)
        again = pickle.loads(pickle.dumps(data))
        assert len(again) == 1
        again.close()
    assert batchfs.plan(store, view, stores={"more": other}).samples == 18
    assert batchfs.statistics(store, view, stores={"more": other},
                              per="none").variables["b:field"]["count"] == more.size
    with pytest.raises(batchfs.NotFound, match="add --store more=URL"):
        batchfs.open(store, view=view)
    with pytest.raises(batchfs.InvalidArgument, match="stores= gives further stores by name"):
        batchfs.open(store, view=view, stores=[other])
