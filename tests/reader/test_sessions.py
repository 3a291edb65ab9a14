"""A server of batchfs.open is killed, and the store changes: the next server serves the same state, or an error."""

import contextlib
import os
import signal
import subprocess

import pytest
from opened_stores import VIEW, member, servers, write_field
from opened_stores import field, runtime, view_file  # noqa: F401 (fixtures)
from reader_servers import same
from watching import eventually

import batchfs

EPOCHS = VIEW | {"epochs": 2, "order": {"shuffle": "global", "seed": 1}}


def chunks_of(store):
    return sorted(path for path in store.rglob("*") if path.is_file() and path.name != "zarr.json")


def change_chunks(store):
    """Gives every chunk the contents of another; the metadata stay."""
    files = chunks_of(store)
    contents = [path.read_bytes() for path in files]
    for path, data in zip(files, contents[1:] + contents[:1]):
        fresh = path.with_name("fresh")
        fresh.write_bytes(data)
        fresh.rename(path)


def replace_store(store):
    """The same metadata and another history: a store that was made anew at the same path."""
    store.rename(store.with_name("old.zarr"))
    write_field(store, 1)


def kill_server(runtime):  # noqa: F811
    (server,) = servers(runtime)
    os.kill(server, signal.SIGKILL)
    assert eventually(lambda: server not in servers(runtime))


def read_until_the_second_epoch(data):
    """Each chunk was read: gives the first epoch by the samples' numbers, the second's iteration, and its first batch.

    While that is held, the server sends no other.
    """
    first = {}
    for batch in data:
        for sample, values in zip(batch.index, batch["field"].numpy()[:, 0]):
            first[int(sample)] = values.copy()
    iteration = iter(data)
    return first, iteration, next(iteration)


def opened(store, **options):
    return batchfs.open(store, view=EPOCHS, prefetch=0, **options)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_an_unchanged_store_is_read_on(field, runtime, end):  # noqa: F811
    store, _ = field
    with opened(store) as data:
        first, iteration, held = read_until_the_second_epoch(data)
        (server,) = servers(runtime)
        os.kill(server, end)
        assert eventually(lambda: server not in servers(runtime))
        with pytest.warns(RuntimeWarning, match="was started again"):
            rest = [held, *iteration]
        assert len(rest) == len(data)
        for batch in rest:
            for sample, values in zip(batch.index, batch["field"].numpy()[:, 0]):
                assert same(values, first[int(sample)])


@pytest.mark.filterwarnings("ignore:the server of")
@pytest.mark.parametrize("change", [change_chunks, replace_store])
def test_a_changed_store_is_an_error_and_no_other_bytes(field, runtime, change):  # noqa: F811
    store, _ = field
    with opened(store) as data:
        _, iteration, held = read_until_the_second_epoch(data)
        kill_server(runtime)
        change(store)
        for _ in range(3):
            with pytest.raises(batchfs.Error, match="has changed since"):
                next(iteration)
            with pytest.raises(batchfs.Error, match="has changed since"):
                data.batch(0, 0)
        del held
    assert eventually(lambda: not servers(runtime))
    for socket in runtime.glob("*/*.sock"):  # of the killed server, where no other could begin
        socket.unlink()
    with opened(store) as data:  # nobody relies on what was
        assert len(list(data)) == len(data)


@pytest.mark.filterwarnings("ignore:the server of")
def test_another_store_is_an_error_too(field, runtime, tmp_path):  # noqa: F811
    """Which --store names; its metadata are the same, its chunks are not."""
    store, _ = field
    other, _ = write_field(tmp_path / "more.zarr", 1)
    view = {"sources": {"a": {}, "b": {"store": "more"}}, "window": {"time": 1}, "variables": ["field", "b:field"],
            "batch": {"size": 4}}
    with batchfs.open(store, view=view, stores={"more": other}, prefetch=0) as data:
        assert len(list(data)) == 5
        kill_server(runtime)
        change_chunks(other)
        with pytest.raises(batchfs.Error, match="has changed since"):
            data.batch(0, 0)


@pytest.mark.filterwarnings("ignore:the server of")
def test_every_process_of_a_job_keeps_the_session(field, view_file, runtime):  # noqa: F811
    """Whichever starts the next server; and one that comes new does not begin another state while somebody reads."""
    store, _ = field
    with batchfs.open(store, view=view_file, prefetch=0) as old:
        list(old)
        kill_server(runtime)
        change_chunks(store)
        process = member(store, view_file, stderr=subprocess.PIPE)
        _, said = process.communicate("\n")
        assert process.returncode != 0 and "has changed since" in said
        with pytest.raises(batchfs.Error, match="has changed since"):
            old.batch(0, 0)


@pytest.mark.filterwarnings("ignore:the server of")
def test_a_forked_child_holds_the_session_alone(field, runtime):  # noqa: F811
    """Its parent has closed the dataset, and the server has died."""
    store, _ = field
    data = opened(store)
    list(data)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            data.batch(0, 0)
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            try:
                data.batch(0, 0)
            except batchfs.Error as error:
                status = 0 if "has changed since" in str(error) else 2
        os._exit(status)
    os.read(ready[0], 1)
    data.close()
    kill_server(runtime)
    change_chunks(store)
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (*ready, *go):
        os.close(end)


def test_a_session_belongs_to_one_server_and_one_user(field, view_file, tmp_path):  # noqa: F811
    store, _ = field
    program, session = os.environ["BATCHFS"], tmp_path / "session"

    def serve(name):
        return subprocess.run([program, "serve", str(store), "--view", str(view_file), "--socket", str(tmp_path / name),
                               "--session", str(session), "--background", "--until-unused", "20"], capture_output=True,
                              text=True, check=False)

    assert serve("a.sock").returncode == 0
    second = serve("b.sock")
    assert second.returncode == 1 and "another server keeps its session there" in second.stderr
    data = batchfs.open(tmp_path / "a.sock")
    data.close()
    assert eventually(lambda: not session.exists())
    session.touch(mode=0o644)
    session.chmod(0o644)
    refused = serve("c.sock")
    assert refused.returncode == 1 and "only you can read and write" in refused.stderr
