"""A server of batchfs.open is killed, and the store changes: the next server serves the same state,
or an error."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
import zarr
from growing import VIEW as STEPS, append, create
from opened_stores import VIEW, member, servers, values_of, write_field
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


def grow_store(store):
    zarr.open_group(store)["field"].resize((36, 6, 5))


def kill_server(runtime):  # noqa: F811
    (server,) = servers(runtime)
    os.kill(server, signal.SIGKILL)
    assert eventually(lambda: server not in servers(runtime))


def read_until_the_second_epoch(data):
    """Each chunk was read: gives the first epoch by the samples' numbers, the second's iteration,
    and its first batch.

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


def test_a_store_that_changed_between_two_opens_is_opened_anew(field):  # noqa: F811
    store, _ = field
    # so that servers end late
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        for _ in range(10):
            with batchfs.open(store, view=VIEW) as data:
                values = np.concatenate([batch["field"].numpy() for batch in data])
            assert np.array_equal(values.reshape(-1, 6, 5), zarr.open_array(store / "field")[:])
            change_chunks(store)
    finally:
        for process in busy:
            process.kill()
            process.wait()


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


class EndingServers:
    """Listens in place of a server: closes each of the first connections, and with the last of them
    its socket."""

    def __init__(self, path, connections):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path.unlink(missing_ok=True)
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        self.socket.bind(f"/proc/self/fd/{directory}/{path.name}")  # an address holds 107 bytes
        os.close(directory)
        self.socket.listen(16)
        self.thread = threading.Thread(target=self.end, args=(path, connections))
        self.thread.start()

    def end(self, path, connections):
        for number in range(connections):
            connection, _ = self.socket.accept()
            if number == connections - 1:
                path.unlink()
                self.socket.close()
            connection.close()


@pytest.mark.filterwarnings("ignore:the server of")
@pytest.mark.parametrize("connections", [1, 2, 3, 5])
def test_a_server_that_ends_is_waited_for(field, runtime, connections):  # noqa: F811
    store, _ = field
    with opened(store) as data:
        numbers = [batch.number for batch in data]
        kill_server(runtime)
        (path,) = runtime.glob("*/*.sock")
        ending = EndingServers(path, connections)
        assert [batch.number for batch in data] == numbers
        ending.thread.join()
        kill_server(runtime)
        ending = EndingServers(path, connections)
        with opened(store) as second:
            assert [batch.number for batch in second] == numbers
        ending.thread.join()


@pytest.mark.filterwarnings("ignore:the server of")
@pytest.mark.parametrize("change", [change_chunks, replace_store, grow_store])
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
    with opened(store) as data:  # no process relies on the old state
        assert len(list(data)) == len(data)


@pytest.mark.filterwarnings("ignore:the server of")
def test_another_store_is_an_error_too(field, runtime, tmp_path):  # noqa: F811
    """Which --store names; its metadata are the same, its chunks are not."""
    store, _ = field
    other, _ = write_field(tmp_path / "more.zarr", 1)
    view = {"sources": {"a": {}, "b": {"store": "more"}}, "window": {"time": 1},
            "variables": ["field", "b:field"], "batch": {"size": 4}}
    with batchfs.open(store, view=view, stores={"more": other}, prefetch=0) as data:
        assert len(list(data)) == 5
        kill_server(runtime)
        change_chunks(other)
        with pytest.raises(batchfs.Error, match="has changed since"):
            data.batch(0, 0)


@pytest.mark.filterwarnings("ignore:the server of")
def test_every_process_of_a_job_keeps_the_session(field, view_file, runtime):  # noqa: F811
    """Whichever starts the next server; and one that comes new does not begin another state while
    somebody reads."""
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


def test_what_killed_processes_left_is_taken_by_nobody(field, view_file, runtime):  # noqa: F811
    """Sessions, sockets and locks; the next that opens any store removes them."""
    store, _ = field
    reader = member(store, view_file)
    reader.stdout.readline()
    (server,) = servers(runtime)
    os.kill(server, signal.SIGSTOP)  # it must not clean up
    reader.kill()
    reader.communicate()
    os.kill(server, signal.SIGKILL)
    assert eventually(lambda: not servers(runtime))
    (session,), (socket,) = runtime.glob("*/*.session"), runtime.glob("*/*.sock")
    lock = session.with_suffix(".lock")
    lock.touch()
    shutil.rmtree(store)
    _, values = write_field(store, 2)
    with batchfs.open(store, view=VIEW) as data:
        assert same(values_of(data), values)
        assert len(list(runtime.glob("*/*.session"))) == len(list(runtime.glob("*/*.sock"))) == 1
        assert not any(left.exists() for left in (session, socket, lock))
        # Nothing of a server that lives, or of one that is being started, is removed.
        other, _ = write_field(store.with_name("other.zarr"), 3)
        starting = session.with_name("open-0.lock")
        with open(starting, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with batchfs.open(other, view=VIEW) as second:
                assert len(list(second)) == len(list(data))
                assert starting.exists() and len(list(runtime.glob("*/*.sock"))) == 2
        starting.unlink()


class Continued:
    """`batchfs serve` of a store that grows, whose session this process holds, as readers of
    batchfs.open do."""

    def __init__(self, folder):
        self.store, self.socket, self.session = (folder / "s.zarr", folder / "serve.sock",
                                                 folder / "serve.session")
        create(self.store, 8)
        view = folder / "steps.json"
        view.write_text(json.dumps(STEPS))
        self.command = [os.environ["BATCHFS"], "serve", self.store, "--view", view, "--socket",
                        self.socket, "--session", self.session]
        self.process = None
        self.start()
        self.held = open(self.session)
        fcntl.flock(self.held, fcntl.LOCK_SH)

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        while line and "serving batches at" not in line:
            line = self.process.stderr.readline()
        assert line, "the server does not start"

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def refresh(self, *options):
        return subprocess.run([os.environ["BATCHFS"], "refresh", self.socket, "--json", *options],
                              check=True, capture_output=True).stdout

    def end(self):
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        fcntl.flock(self.held, fcntl.LOCK_UN)
        self.held.close()
        return said


@pytest.fixture
def continued(tmp_path, runtime):  # noqa: F811
    server = Continued(tmp_path)
    yield server
    server.end()
    server.session.unlink(missing_ok=True)


def steps_of(data):
    return np.concatenate([batch["t"].numpy()[:, 0, 0] for batch in data])


@pytest.mark.parametrize("refreshes", [1, 3])
@pytest.mark.parametrize("changes", [True, False])
def test_after_a_refresh_the_versions_pass_to_the_next_server(continued, refreshes, changes):
    """Versions of the newest reading, which a reader that connected since has read."""
    for turn in range(refreshes):
        append(continued.store, 8 + 4 * turn, 4)
        assert json.loads(continued.refresh())["changed"]
    steps = 8 + 4 * refreshes
    data = batchfs.open(continued.socket, prefetch=0)
    assert same(steps_of(data), np.arange(steps, dtype="f4") * 100)
    continued.kill()
    if changes:
        change_chunks(continued.store / "t")
    continued.start()
    if not changes:
        assert same(steps_of(data), np.arange(steps, dtype="f4") * 100)
        return
    for number in range(steps // 4):
        with pytest.raises(batchfs.Error, match="has changed since|log says why"):
            data.batch(0, number)


def test_a_session_belongs_to_one_server_and_one_user(field, view_file, tmp_path):  # noqa: F811
    store, _ = field
    program, session = os.environ["BATCHFS"], tmp_path / "session"

    def serve(name):
        return subprocess.run([program, "serve", str(store), "--view", str(view_file), "--socket",
                               str(tmp_path / name), "--session", str(session), "--background",
                               "--until-unused", "20"], capture_output=True, text=True, check=False)

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
