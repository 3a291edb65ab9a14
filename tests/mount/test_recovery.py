"""The process that serves a mount dies: another takes over, and readers notice a pause at most."""

import contextlib
import json
import mmap
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

# importlib mode does not
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
import kills
from watching import eventually, is_alive

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
LONG = 60  # seconds: longer than any step here, on however slow a machine
VIEWS = {
    "one": {"name": "one", "window": {"time": 1}, "variables": ["t"],
            "batch": {"size": 6}, "order": {"shuffle": "global", "seed": 7}, "epochs": 2,
            "formats": ["npy", "safetensors", "npz"]},
    "two": {"name": "two", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 9},
            "dtype": "float32", "order": {"shuffle": "none"}},
}
MODES = {"passthrough": [], "no-passthrough": ["--no-passthrough"]}

def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def soon(condition, what):
    result = eventually(condition, LONG)
    assert result, f"{what}: not within {LONG} s"
    return result


def serving_pid(directory):
    """A text of the process that serves now. Stale if a daemon died while it was read."""

    def read():
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return json.loads((directory / ".batchfs" / "status.json").read_text())["pid"]

    return soon(read, "status.json")


def kill(directory, number=signal.SIGKILL):
    """Ends the daemon and waits for the next. Returns its pid."""
    pid = serving_pid(directory)
    os.kill(pid, number)

    def successor():
        now = serving_pid(directory)
        return now if now != pid else None

    return soon(successor, "another daemon")


@pytest.fixture
def store(weather):
    return weather


@pytest.fixture
def mount(store, good, batchfs, tmp_path):
    """mount(*options): a directory where the store is mounted, until the test ends."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    views = []
    for name, view in VIEWS.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(view))
        views += ["--view", file]

    def mount(*options):
        good("mount", store, directory, *views, *options)
        assert os.path.ismount(directory)
        return directory

    mount.views = views
    mount.directory = directory
    yield mount
    batchfs("umount", "--lazy", directory)


@pytest.fixture
def foreground(mount, store):
    """The command in the foreground, its own supervisor: (process, directory)."""
    process = subprocess.Popen([PROGRAM, "mount", "-f", str(store), str(mount.directory),
                                *map(str, mount.views)], stderr=subprocess.PIPE)
    soon(lambda: os.path.ismount(mount.directory) or process.poll() is not None, "the mount")
    yield process, mount.directory
    process.terminate()
    process.communicate(timeout=LONG)


@pytest.fixture
def expected(mount, good, store, tmp_path):
    """{name in the mount: file with its bytes}, made without a mount."""
    files = {}

    def keep(name, contents):
        path = tmp_path / f"expected-{len(files)}"
        path.write_bytes(contents)
        files[name] = str(path)

    for format in ["npy", "safetensors", "npz"]:
        for batch in range(6):
            keep(f"views/one/epoch-0001/batch-{batch:06}.{format}",
                 good("batch", store, "--view", mount.views[1], "--epoch", 1, "--batch", batch,
                      "--format", format))
    for batch in range(5):
        for tensor in ["t", "q"]:
            keep(f"views/two/epoch-0000/batch-{batch:06}/{tensor}.npy",
                 good("batch", store, "--view", mount.views[3], "--batch", batch, "--tensor",
                      tensor))
    return files


def values_of(good, store, name):
    import zarr

    return np.asarray(zarr.open_group(str(store), mode="r")[name][...])


@pytest.fixture
def readers(mount, expected, tmp_path):
    """readers(modes): processes that read and compare, until finish() is called on what is
    returned."""
    groups = []

    def start(modes):
        groups.append(kills.Readers(mount.directory, expected, modes, tmp_path))
        return groups[-1]

    yield start
    for group in groups:
        group.end()


def saw_nothing_wrong(seen):
    assert [one["wrong"] + one["failures"] for one in seen] == [[]] * len(seen)
    return all(one["reads"] > 0 for one in seen)


def ends_with(good, directory, pid):
    """Unmounts; the daemon and its supervisor end."""
    supervisor = parent_of(pid)
    good("umount", directory)
    assert not os.path.ismount(directory)
    soon(lambda: not is_alive(pid) and not is_alive(supervisor), "the end of daemon and supervisor")


@pytest.mark.says("death-pause")
@pytest.mark.parametrize("mode", MODES)
def test_kills_at_random_moments_under_readers(mount, readers, good, mode):
    directory = mount(*MODES[mode])
    supervisor = parent_of(serving_pid(directory))
    group = readers(["read", "mmap", "list"] * 2)
    report = kills.kill_under_readers(directory, supervisor, group, 12, 0.3,
                                      random.randrange(1 << 32))
    print(report)
    assert report["wrong"] == report["failed"] == []
    assert report["reads"] > 100
    pid = serving_pid(directory)
    assert parent_of(pid) == supervisor
    ends_with(good, directory, pid)


@pytest.mark.parametrize("stdin_goes", [True, False], ids=["closed", "open"])
def test_a_view_from_standard_input_outlives_the_daemon(store, batchfs, good, tmp_path, stdin_goes):
    """It is read once, before anything is forked; --replace brings its own."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    (tmp_path / "stats.json").write_text(json.dumps({"variables": {"t": {"mean": 280, "std": 10}}}))
    view = ("name: piped\nwindow: {time: 1}\nvariables: [t]\nbatch: 6\n"
            "normalize: {method: zscore, statistics: stats.json}\n")
    (tmp_path / "view.yaml").write_text(view)
    expected = good("batch", store, "--view", tmp_path / "view.yaml", "--batch", 3)

    def run(*options):
        if stdin_goes:
            good("mount", store, directory, "--view", "-", *options, input=view.encode(),
                 cwd=tmp_path)
        else:
            with open(tmp_path / "view.yaml") as file:
                good("mount", store, directory, "--view", "-", *options, stdin=file, cwd=tmp_path)

    run()
    try:
        name = directory / "views/piped/epoch-0000/batch-000003.npy"
        assert name.read_bytes() == expected
        for _ in range(2):
            kill(directory)
            assert name.read_bytes() == expected
        run("--replace")
        kill(directory)
        assert name.read_bytes() == expected
        assert b"standard input" in batchfs("mount", store, directory, "--view", "-", "--view",
                                            "-").stderr
        ends_with(good, directory, serving_pid(directory))
    finally:
        batchfs("umount", "--lazy", directory)


@pytest.mark.says("death-open")
@pytest.mark.parametrize("mode", MODES)
def test_open_files_go_on(mount, expected, good, store, mode):
    directory = mount(*MODES[mode])
    known = {name: pathlib.Path(file).read_bytes() for name, file in expected.items()}
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(directory / name, "rb", buffering=0))
                 for name in known}
        maps = {name: stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                for name, file in files.items()}
        values = stack.enter_context(open(directory / "arrays/t/values.npy", "rb"))
        text = stack.enter_context(open(directory / "store.json", "rb"))
        first = values.read(5000)
        for _ in range(3):
            kill(directory)
            for name, contents in known.items():
                assert os.pread(files[name].fileno(), len(contents), 0) == contents
                assert maps[name][:] == contents
                # A file that the kernel reads itself cannot be opened in another way meanwhile.
                assert (directory / name).read_bytes() == contents
        assert json.loads(text.read())["snapshot"]
        rest = values.read()
    whole = (directory / "arrays/t/values.npy").read_bytes()
    assert first + rest == whole
    assert np.array_equal(np.load(directory / "arrays/t/values.npy"), values_of(good, store, "t"))
    for name, contents in known.items():  # all were closed: made again
        assert (directory / name).read_bytes() == contents
    ends_with(good, directory, serving_pid(directory))


@pytest.mark.says("death-names")
def test_names_in_use_keep_their_paths(mount, good):
    """getcwd(2), and the links in /proc that tools read, of directories and files that were in use
    when the daemon died."""
    directory = mount()
    with contextlib.ExitStack() as stack:
        held = {}
        for path in [directory, *sorted(directory.rglob("*"))[:200]]:
            held[path] = os.open(path, os.O_PATH)
            stack.callback(os.close, held[path])
        assert {"store.json", "views"} <= {path.name for path in held}
        current = subprocess.Popen(["sh", "-c", "read line; pwd -P"], cwd=directory / "views",
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(current.kill)
        kill(directory)
        for _ in range(2):  # the second one is answered after the kernel's names have been checked
            good("refresh", directory)
        assert {path: os.readlink(f"/proc/self/fd/{fd}")
                for path, fd in held.items()} == {path: str(path) for path in held}
        assert current.communicate("\n", timeout=60)[0] == f"{directory / 'views'}\n"


@pytest.mark.says("death-control")
def test_a_text_of_the_dead_daemon_is_stale(mount):
    """The text of status.json is gone with its daemon; the rest of another text would be wrong."""
    directory = mount()
    with open(directory / ".batchfs" / "status.json", "rb", buffering=0) as file:
        assert len(file.read(10)) == 10
        kill(directory)
        with pytest.raises(OSError) as error:
            file.read()
    assert error.value.errno == 116  # ESTALE
    assert "was ended by signal 9" in (directory / ".batchfs" / "log").read_text()


@pytest.mark.parametrize("whom", ["daemon", "supervisor"])
def test_sigterm_ends_the_mount(mount, whom):
    directory = mount()
    pid = kill(directory)
    supervisor = parent_of(pid)
    os.kill(pid if whom == "daemon" else supervisor, signal.SIGTERM)
    soon(lambda: not is_alive(pid) and not is_alive(supervisor), "the end")
    assert not os.path.ismount(directory)
    assert os.listdir(directory) == []


def test_unmount_with_a_busy_reader_after_a_kill(mount, batchfs, good):
    directory = mount()
    pid = kill(directory)
    with open(directory / "store.json", "rb"):
        done = batchfs("umount", directory)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        good("umount", "--lazy", directory)
        assert not os.path.ismount(directory)
    soon(lambda: not is_alive(pid), "the end")


@pytest.mark.says("death-end")
def test_no_supervisor(mount):
    """The mount ends with the daemon, and leaves nothing that would say `Transport endpoint is not
    connected`."""
    directory = mount("--no-supervisor")
    pid = serving_pid(directory)
    parent = parent_of(pid)
    with open(directory / "arrays/t/values.npy", "rb", buffering=0) as file:
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(OSError):
            while file.read(100):
                pass
    soon(lambda: not is_alive(parent), "the end")
    assert not os.path.ismount(directory)
    assert os.listdir(directory) == []


def test_without_its_supervisor_the_daemon_serves_on(mount, good):
    directory = mount()
    pid = serving_pid(directory)
    os.kill(parent_of(pid), signal.SIGKILL)
    assert json.loads((directory / "store.json").read_text())
    assert serving_pid(directory) == pid
    good("umount", directory)
    soon(lambda: not is_alive(pid), "the end")


@pytest.mark.says("death-end")
def test_crashes_again_and_again_are_given_up(foreground):
    process, directory = foreground
    with open(directory / "arrays/t/values.npy", "rb", buffering=0) as file:
        for _ in range(4):
            kill(directory, signal.SIGSEGV)
        os.kill(serving_pid(directory), signal.SIGSEGV)
        with pytest.raises(OSError):  # the session has ended, no reader waits
            while file.read(100):
                pass
    _, errors = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert not os.path.ismount(directory)
    assert "ended 5 times within a minute and is not started again" in (
        errors.decode().splitlines()[-1])


def test_daemons_that_are_killed_before_they_serve_are_given_up(foreground):
    """Like the kernel when memory is short. Looking at the mount serves nobody."""
    process, directory = foreground
    pid = serving_pid(directory)
    for _ in range(19):
        pid = kill(directory)
    # served: the count starts again
    (directory / "views/one/epoch-0000/batch-000000.npy").read_bytes()
    for _ in range(20):
        pid = kill(directory)
    os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert not os.path.ismount(directory)
    assert "killed 20 times" in errors.decode().splitlines()[-1]


@pytest.mark.says("death-end")
def test_a_store_that_is_gone_is_given_up(foreground, store):
    process, directory = foreground
    moved = store.with_name("moved")
    store.rename(moved)
    try:
        with open(directory / "arrays/t/values.npy", "rb", buffering=0) as file:
            os.kill(serving_pid(directory), signal.SIGKILL)
            with pytest.raises(OSError):
                while file.read(100):
                    pass
        _, errors = process.communicate(timeout=LONG)
    finally:
        moved.rename(store)
    assert process.returncode == 1
    assert not os.path.ismount(directory)
    assert "the last one gave up: " in errors.decode().splitlines()[-1]


def test_hand_off_after_a_kill(mount):
    directory = mount()

    def connect():
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(LONG)
        connection.connect(os.readlink(directory / ".batchfs" / "handoff.sock"))
        return connection

    with connect() as old:
        kill(directory)
        try:
            assert old.recv(1) == b""
        except ConnectionResetError:
            pass  # it had not read all its messages
        with connect():
            pass


def replace(good, mount, store, *options):
    """Mounts over the live mount; returns the pid that serves now."""
    pid = serving_pid(mount.directory)
    supervisor = parent_of(pid)
    good("mount", "--replace", store, mount.directory, *mount.views, *options)
    assert not is_alive(pid)
    soon(lambda: not is_alive(supervisor), "the end of the supervisor that was")
    now = serving_pid(mount.directory)
    assert now != pid and parent_of(now) != supervisor
    return now


@pytest.mark.parametrize("mode", MODES)
def test_replace_under_readers(mount, readers, store, good, mode):
    directory = mount(*MODES[mode])
    group = readers(["read", "mmap", "list"])
    for _ in range(3):
        replace(good, mount, store, *MODES[mode])
        pid = kill(directory)  # its supervisor starts it again, too
    assert saw_nothing_wrong(group.finish())
    ends_with(good, directory, pid)


def test_replace_with_other_options(mount, expected, store, good):
    """Files that the kernel reads itself stay so while they are open."""
    directory = mount()
    name = "views/one/epoch-0001/batch-000000.npy"
    known = pathlib.Path(expected[name]).read_bytes()
    with open(directory / name, "rb") as file:
        pid = replace(good, mount, store, "--no-passthrough", "--memory", "64M")
        assert file.read() == known
        assert (directory / name).read_bytes() == known
    assert (directory / name).read_bytes() == known
    status = json.loads((directory / ".batchfs" / "status.json").read_text())
    assert status["memory_budget"] == 64 << 20 and not status["passthrough"]
    ends_with(good, directory, pid)


def test_replace_in_vain_changes_nothing(mount, store, fails, good, tmp_path):
    directory = mount()
    pid = serving_pid(directory)
    pathlib.Path(mount.views[1]).write_text(json.dumps(dict(VIEWS["one"], batch={"size": 5})))
    assert "a view has changed" in fails(1, "mount", "--replace", store, directory, *mount.views)
    fails(1, "mount", "--replace", tmp_path / "nothing", directory, *mount.views)
    assert serving_pid(directory) == pid
    pathlib.Path(mount.views[1]).write_text(json.dumps(VIEWS["one"]))
    ends_with(good, directory, replace(good, mount, store))


def test_replace_what_is_not_there(store, fails, tmp_path):
    assert "nothing is mounted there" in fails(1, "mount", "--replace", store, tmp_path)


def test_a_killed_service_takes_its_session_from_systemd(mount, store, tmp_path):
    """The service manager keeps the descriptors that it is sent, and hands them to the next process
    of the service."""
    directory = mount.directory
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(LONG)
    manager.bind(str(tmp_path / "notify"))
    command = [PROGRAM, "mount", "-f", str(store), str(directory), *map(str, mount.views)]
    environment = dict(os.environ, NOTIFY_SOCKET=str(tmp_path / "notify"))

    def told(until):
        """The messages up to a line, and the stored descriptors by name."""
        stored, seen = {}, set()
        while not (until in seen and (until != "READY" or len(stored) == 2)):
            text, descriptors, _, _ = socket.recv_fds(manager, 4096, 2)
            lines = dict(line.split("=", 1) for line in text.decode().splitlines())
            if "FDSTORE" in lines:
                stored[lines["FDNAME"]] = descriptors[0]
            seen |= set(lines)
        return stored

    service = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    stored = told("READY")
    assert set(stored) == {"batchfs-session", "batchfs-state"}
    try:
        with open(directory / "arrays/t/values.npy", "rb", buffering=0) as file:
            file.read(100)
            pid = serving_pid(directory)
            service.kill()  # systemd ends the rest of the service, too
            os.kill(pid, signal.SIGKILL)
            service.wait(LONG)
            start = ("export LISTEN_PID=$$ LISTEN_FDS=2 "
                     "LISTEN_FDNAMES=batchfs-session:batchfs-state; exec \"$@\" 3<&{} 4<&{}")
            session, state = (os.dup2(stored[name], number)
                              for name, number in [("batchfs-session", 63), ("batchfs-state", 64)])
            service = subprocess.Popen(["bash", "-c", start.format(session, state), "bash",
                                        *command], env=environment, pass_fds=[session, state],
                                       stderr=subprocess.DEVNULL)
            again = told("READY")
            assert file.read()[-100:] == (directory / "arrays/t/values.npy").read_bytes()[-100:]
            assert serving_pid(directory) != pid
        service.terminate()
        told("FDSTOREREMOVE")
        assert service.wait(LONG) == 0
        assert not os.path.ismount(directory)
    finally:
        service.kill()
        for descriptor in [*stored.values(), *again.values(), session, state]:
            os.close(descriptor)
