"""Either side ends, at any moment: nothing hangs, nothing is lost but what was held."""

import gc
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from reader_servers import PROGRAM, VIEWS, mount, same
from watching import eventually, status

import batchfs

# A reader that stops at a step, reports it, and waits for its end.
READER = """
import sys, time, batchfs
def reach(step):
    if step == sys.argv[2]:
        print("reached", flush=True)
        time.sleep(600)
data = batchfs.open(sys.argv[1], "two")
reach("opened")
iteration = iter(data)
reach("started")
batch = next(iteration)
reach("one batch")
held = [batch] + [next(iteration) for _ in range(5)]
reach("many batches")
array = held[0]["t"].numpy()
del held, batch
reach("an array")
list(iteration)
reach("the end")
"""


def handoff(directory):
    return status(directory)["handoff"]


def idle(directory):
    now = handoff(directory)
    return now["readers"] == now["leases"] == now["memory_bytes"] == 0


@pytest.mark.parametrize("step",
                         ["opened", "started", "one batch", "many batches", "an array", "the end"])
def test_a_killed_reader_gives_everything_back(mounted, step):
    reader = subprocess.Popen([sys.executable, "-c", READER, mounted, step], stdout=subprocess.PIPE)
    assert reader.stdout.readline() == b"reached\n"
    assert handoff(mounted)["readers"] >= 1
    if "batch" in step or step == "an array":
        assert handoff(mounted)["leases"] >= 1
    reader.kill()
    reader.wait()
    assert eventually(lambda: idle(mounted)), handoff(mounted)


def test_leases_and_memory_go_with_the_arrays(own_mount):
    data = batchfs.open(own_mount, "two", prefetch=0)
    held = list(data)
    now = handoff(own_mount)
    assert now["leases"] == 14 and now["memory_bytes"] >= sum(
        t.nbytes for b in held for t in b.values())
    array = held[3]["t"].numpy()
    del held
    gc.collect()
    assert eventually(lambda: handoff(own_mount)["leases"] == 1)
    del array
    gc.collect()
    assert eventually(lambda: handoff(own_mount)["leases"] == 0)
    del data
    gc.collect()
    assert eventually(lambda: idle(own_mount))
    # The engine's cache for the next reader grows until it holds the store's chunks. A lease lost
    # in each round would grow it in each.
    used = []
    for _ in range(16):
        assert len(list(batchfs.open(own_mount, "two"))) == 14
        assert eventually(lambda: idle(own_mount))
        used.append(status(own_mount)["memory_used"])
    assert sum(later > sooner for sooner, later in zip(used, used[1:])) <= len(used) / 2, used


@pytest.mark.parametrize("step", ["opened", "started", "one batch", "the last batch"])
def test_a_killed_server_is_an_error_and_what_was_read_stays(serve, step):
    server = serve()
    data = batchfs.open(server.socket, "two", prefetch=1)
    iteration, held = None, []
    if step != "opened":
        iteration = iter(data)
    if step == "one batch":
        held.append(next(iteration))
    if step == "the last batch":
        held += [next(iteration) for _ in range(13)]
    copies = [batch["t"].numpy().copy() for batch in held]
    server.kill()
    began = time.monotonic()
    with pytest.raises(batchfs.Error, match="process is gone"):
        iteration = iteration or iter(data)
        held += iteration
    with pytest.raises(batchfs.Error, match="process is gone"):
        data.batch(0)
    assert time.monotonic() - began < 10
    assert all(same(batch["t"].numpy(), copy) for batch, copy in zip(held, copies))


def test_a_server_that_comes_back_is_found_again(serve):
    server = serve()
    data = batchfs.open(server.socket, "two", prefetch=1)
    numbers = []
    for batch in data:
        numbers.append(batch.number)
        if batch.number == 5:
            server.kill()
            server.start()
    assert numbers == list(range(14))


def test_an_error_is_not_the_end(serve):
    server = serve()
    data = batchfs.open(server.socket, "two", prefetch=0)
    iteration = iter(data)
    first = next(iteration).number
    server.kill()
    with pytest.raises(batchfs.Error):
        list(iteration)
    state = data.state_dict()
    server.start()
    data.load_state_dict(state)
    assert [batch.number for batch in data] == list(range(state["batches_done"], 14))
    assert first == 0 and state["batches_done"] >= 1


def test_another_store_behind_the_same_socket_is_not_gone_on_with(serve, store, tmp_path):
    server = serve()
    data = batchfs.open(server.socket, "two", prefetch=0)
    iteration = iter(data)
    next(iteration)
    server.kill()
    (tmp_path / "two.json").write_text(json.dumps(VIEWS["two"]
                                                  | {"order": {"shuffle": "global", "seed": 4}}))
    server.start()
    with pytest.raises(batchfs.Error, match="the view has changed since this was opened"):
        list(iteration)


@pytest.mark.parametrize("options", [[], ["--no-supervisor"]], ids=["supervised", "alone"])
def test_a_killed_daemon_leaves_what_was_read(store, tmp_path, options):
    mnt = tmp_path / "mnt"
    mount(store, mnt, *options)
    try:
        data = batchfs.open(mnt, "two", prefetch=0)
        assert data.mode == "shm"
        held = list(data)
        copies = [batch["q"].numpy().copy() for batch in held]
        killed = status(mnt)["pid"]
        os.kill(killed, signal.SIGKILL)
        if options:
            with pytest.raises(batchfs.Error):
                for _ in range(1000):
                    data.batch(0)
        else:  # another daemon takes over: a repeated request succeeds
            assert eventually(lambda: status(mnt)["pid"] != killed)
            assert eventually(lambda: answers(data, copies[0]))
        assert all(same(batch["q"].numpy(), copy) for batch, copy in zip(held, copies))
    finally:
        subprocess.run([PROGRAM, "umount", "--lazy", str(mnt)], check=False)


def answers(data, expected):
    try:
        return same(data.batch(0, epoch=0)["q"].numpy(), expected)
    except batchfs.Error:  # of the daemon that was killed
        return False


def test_files_are_taken_where_the_socket_cannot_be_reached(own_mount):
    link = own_mount / ".batchfs/handoff.sock"
    os.unlink(os.readlink(link))
    data = batchfs.open(own_mount, "two")
    assert data.mode == "files" and "No such file" in data.why_files
    assert [batch.number for batch in data] == list(range(14))
    with pytest.raises(batchfs.Error):
        batchfs.open(own_mount, "two", mode="shm")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reads_files(store, tmp_path_factory):
    base = pathlib.Path("/tmp") / f"batchfs-test-{os.getpid()}"
    base.mkdir(mode=0o755)
    mount(store, base / "mnt", "--allow-other")
    try:
        # In a child process: credentials are checked per process.
        script = ("import os, sys, batchfs, json\nos.setgid(65534); os.setuid(65534)\n"
                  f"data = batchfs.open('{base}/mnt', 'two')\n"
                  "print(json.dumps([data.mode, data.why_files, [b.number for b in data]]))")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        mode, why, numbers = json.loads(done.stdout)
        assert mode == "files" and why and numbers == list(range(14))
    finally:
        subprocess.run([PROGRAM, "umount", "--lazy", str(base / "mnt")], check=False)
        for name in VIEWS:
            (base / f"{name}.json").unlink()
        (base / "mnt").rmdir()
        base.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_by_a_server(serve, tmp_path):
    server = serve()
    for directory in [*server.socket.parents][:-2]:
        if directory.stat().st_uid == os.geteuid():
            directory.chmod(0o755)
    server.socket.chmod(0o777)
    script = ("import os, batchfs\nos.setgid(65534); os.setuid(65534)\n"
              f"batchfs.open('{server.socket}', 'two')")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=False)
    assert done.returncode != 0 and "the user that batchfs runs as" in done.stderr


def test_a_slow_reader_holds_up_nobody(serve):
    server = serve()
    slow = iter(batchfs.open(server.socket, "two", prefetch=5))
    next(slow)
    for _ in range(3):
        assert [batch.number for batch in batchfs.open(server.socket, "two")] == list(range(14))
    assert len(list(slow)) == 13


def test_many_readers_share_batches(own_mount):
    before = status(own_mount)["batches_assembled"]
    readers = [batchfs.open(own_mount, "one") for _ in range(8)]
    arrays = [reader[3]["t"].numpy() for reader in readers]
    assert all(same(array, arrays[0]) for array in arrays)
    assert handoff(own_mount)["leases"] == 8
    # One batch was made for all, besides batches prefetched for a reader.
    inodes = {line.split()[4] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
              if any(line.startswith(f"{array.ctypes.data & ~0xfff:x}-") for array in arrays)}
    assert len(inodes) == 1
    assert status(own_mount)["batches_assembled"] - before <= 4


def test_threads_share_a_reader(server):
    data = batchfs.open(server.socket, "two")
    expected = {number: data.batch(number)["t"].numpy().copy() for number in range(14)}
    wrong = []

    def read(start):
        for i in range(28):
            number = (start + i) % 14
            if not same(data.batch(number)["t"].numpy(), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_waiting_can_be_interrupted(tmp_path):
    """A server that greets and then says nothing: Ctrl-C ends the wait."""
    script = """
import signal, sys, threading, os, time, batchfs
try:
    batchfs.open(sys.argv[1], "two")
except KeyboardInterrupt:
    print("interrupted")
"""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    reader = subprocess.Popen([sys.executable, "-c", script, tmp_path / "s"],
                              stdout=subprocess.PIPE)
    connection, _ = listener.accept()
    assert connection.recv(1000)
    reader.send_signal(signal.SIGINT)
    assert reader.communicate(timeout=60)[0] == b"interrupted\n"


@pytest.mark.parametrize("answer",
                         [b"x", b"\0" * 8, b"\xff" * 200, (8).to_bytes(4, "little") + b"\x41\0\1\0",
                          (72).to_bytes(4, "little") + b"\x40\0\1\0" + b"\xff" * 64])
def test_a_server_that_speaks_nonsense_is_an_error(tmp_path, answer):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp_path / "s"))
    listener.listen()

    def speak():
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.send(answer)
        connection.recv(1000)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    with pytest.raises(batchfs.Error):
        batchfs.open(tmp_path / "s", "two")


def test_a_server_ends_at_a_signal_and_takes_its_socket_away(serve):
    server = serve()
    data = batchfs.open(server.socket, "two")
    batch = data[0]
    assert server.stop() == 0
    assert not server.socket.exists()
    assert np.isfinite(batch["t"].numpy()).all()


def test_a_server_ends_with_its_last_reader(serve):
    server = serve("--until-unused", 600)  # a reader has found it by now, and left
    assert server.process.wait(timeout=20) == 0
    assert not server.socket.exists()


def test_a_server_ends_when_no_reader_comes(store, tmp_path):
    (tmp_path / "two.json").write_text(json.dumps(VIEWS["two"]))
    command = [PROGRAM, "serve", store, "--view", tmp_path / "two.json", "--socket", tmp_path / "s",
               "--until-unused", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "serving batches at" in done.stderr
    assert not (tmp_path / "s").exists()


def test_a_socket_that_a_killed_server_left_is_taken_over(serve):
    server = serve()
    server.kill()
    assert server.socket.exists()
    server.start()
    assert batchfs.open(server.socket, "two")[0].number == 0


def test_two_servers_do_not_share_a_socket(serve, tmp_path):
    server = serve()
    done = subprocess.run(server.command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "another process serves batches there" in done.stderr
    assert batchfs.open(server.socket, "two")[0].number == 0


def test_sockets_at_long_paths(store, tmp_path, serve):
    directory = tmp_path
    for _ in range(4):
        directory = directory / ("d" * 60)
    directory.mkdir(parents=True)
    from reader_servers import Server

    server = Server(store, directory, {"two": VIEWS["two"]})
    try:
        assert batchfs.open(server.socket, "two")[0].number == 0
    finally:
        server.stop()


def test_sockets_of_killed_mounts_are_removed(store, tmp_path, monkeypatch):
    # Any other mount of this user would remove the socket as well.
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    mount(store, tmp_path / "mnt", "--no-supervisor")
    left = pathlib.Path(os.readlink(tmp_path / "mnt/.batchfs/handoff.sock"))
    killed = status(tmp_path / "mnt")["pid"]
    os.kill(killed, signal.SIGKILL)
    # until then its socket accepts connections
    assert eventually(lambda: not pathlib.Path(f"/proc/{killed}").exists())
    assert left.is_relative_to(runtime) and left.exists()
    subprocess.run([PROGRAM, "umount", "--lazy", str(tmp_path / "mnt")], check=False)
    mount(store, tmp_path / "again")
    try:
        assert eventually(lambda: not left.exists())
        assert batchfs.open(tmp_path / "again", "two").mode == "shm"
    finally:
        subprocess.run([PROGRAM, "umount", "--lazy", str(tmp_path / "again")], check=False)


def test_a_reader_that_holds_more_than_the_memory_is_told(store, tmp_path, serve):
    # 40 batches of one sample, 3 KB and a page each; memory for some of them.
    small = serve("--memory", "40K", views={"two": VIEWS["two"] | {"batch": {"size": 1}}})
    data = batchfs.open(small.socket, "two", prefetch=1)
    with pytest.raises(MemoryError, match="release earlier batches"):
        held = list(data)
        assert len(held) == 0
    del data
    assert len(list(map(lambda batch: batch.number, batchfs.open(small.socket, "two")))) == 40
