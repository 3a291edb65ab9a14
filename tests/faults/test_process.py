"""Events of the process: the clock jumps, an origin or a reader stops, a disk is full, memory,
files and threads are short.

Whatever it is, each read ends in the right bytes or one clear error, within a bounded time; nothing
crashes or hangs.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

from watching import eventually, is_alive, status

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
LONG = 60  # seconds that nothing here takes, on however slow a machine
BATCHES = [f"views/v/epoch-0000/batch-{number:06}.npy" for number in range(4)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A store with the array x: 24 steps in chunks of 4, without compression."""
    path = tmp_path_factory.mktemp("store") / "s.zarr"
    values = np.random.default_rng(1).normal(size=(24, 64, 128)).astype("f4")
    group = zarr.create_group(path)
    group.create_array("x", data=values, chunks=(4, 64, 128), compressors=None,
                       dimension_names=["time", "lat", "lon"])
    zarr.consolidate_metadata(str(path))
    return path, values


def right(values, number, contents):
    return np.array_equal(contents[-6 * 64 * 128 * 4:].view("f4").reshape(6, 1, 64, 128)[:, 0],
                          values[6 * number:6 * number + 6])


def read(path):
    return np.frombuffer(path.read_bytes(), dtype="u1")


def outcome(path):
    """The bytes, or the errno."""
    try:
        return read(path)
    except OSError as error:
        return error.errno


class Background(threading.Thread):
    """The outcome of a read that may hang."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.result = path, None
        self.start()

    def run(self):
        self.result = outcome(self.path)

    def end(self):
        self.join(LONG)
        assert not self.is_alive(), "a read has not ended"
        return self.result


@pytest.fixture
def tmpfs(tmp_path):
    """tmpfs(size): a directory on a small disk of its own."""
    libc, places = ctypes.CDLL(None, use_errno=True), []

    def make(size):
        path = tmp_path / f"disk{len(places)}"
        path.mkdir()
        if libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, f"size={size}".encode()) != 0:
            pytest.skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")
        places.append(path)
        return path

    yield make
    for path in places:
        libc.umount2(os.fsencode(path), 2)  # MNT_DETACH


@pytest.fixture
def origin(place):
    """An HTTP server in a process of its own, so that it can be stopped: (url, pid)."""
    code = ("import http.server, sys; s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), "
            "http.server.SimpleHTTPRequestHandler); print(s.server_address[1], "
            "flush=True); s.serve_forever()")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=place[0], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait(LONG)


# ---- stopped processes ----


def test_a_stopped_origin(place, origin, mounted):
    """It answers no more, but its connections stay open."""
    url, pid = origin
    directory = mounted(url, "--timeout", "1", "--retries", "1")
    assert right(place[1], 0, read(directory / BATCHES[0]))
    os.kill(pid, signal.SIGSTOP)
    try:
        before = time.monotonic()
        result = Background(directory / BATCHES[3]).end()
        # it may have been read ahead
        assert result in (errno.ETIMEDOUT, errno.EIO) or right(place[1], 3, result)
        assert time.monotonic() - before < LONG
        assert "handoff" in status(directory)  # the mount itself answers
    finally:
        os.kill(pid, signal.SIGCONT)
    assert eventually(lambda: not isinstance(outcome(directory / BATCHES[3]), int), LONG)
    assert right(place[1], 3, read(directory / BATCHES[3]))


def test_a_stopped_reader_disturbs_nobody(place, mounted, good):
    directory = mounted(place[0], "--memory", "64M")
    code = ("import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, "
            "prot=mmap.PROT_READ); print('open', flush=True); input()")
    reader = subprocess.Popen([sys.executable, "-c", code, directory / BATCHES[0]],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert reader.stdout.readline() == b"open\n"
        reader.send_signal(signal.SIGSTOP)
        for number, name in enumerate(BATCHES):
            assert right(place[1], number, Background(directory / name).end())
        good("umount", "--lazy", directory)
    finally:
        reader.kill()
        reader.wait(LONG)


# ---- the clock ----

# Adds the number in the file $CLOCK_OFFSET to the clocks of the date, in the calls of the shared
# libraries and of this program.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long offset(void) {
  long seconds = 0;
  FILE* file = fopen(getenv("CLOCK_OFFSET"), "re");
  if (file != NULL) {
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
  }
  return seconds;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += offset();
  return result;
}
time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
"""


@pytest.mark.not_sanitized("what is loaded before everything else must be the sanitizer")
@pytest.mark.parametrize("jump", [86400 * 400, -86400 * 400])
def test_the_clock_jumps(place, origin, good, batchfs, tmp_path, view_file, jump):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "clock.so", tmp_path / "clock.c",
                    "-ldl"], check=True)
    offset = tmp_path / "offset"
    offset.write_text("0")
    environment = dict(os.environ, LD_PRELOAD=str(tmp_path / "clock.so"), CLOCK_OFFSET=str(offset))
    directory = tmp_path / "mnt"
    directory.mkdir()
    good("mount", origin[0], directory, "--view", view_file, "--hang-timeout", "3", "--wait", "30",
         "--cache-dir", tmp_path / "cache", env=environment)
    try:
        pid = status(directory)["pid"]
        for number, name in enumerate(BATCHES):
            result = Background(directory / name)
            offset.write_text(str(jump * (number % 2)))
            assert right(place[1], number, result.end())
        time.sleep(1)
        assert status(directory)["pid"] == pid and status(directory)["errors"] == 0
    finally:
        batchfs("umount", "--lazy", directory)


STILL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME_COARSE) {
    long long date = atoll(getenv("STILL"));
    now->tv_sec = date / 1000000000;
    now->tv_nsec = date % 1000000000;
  }
  return result;
}
"""


@pytest.mark.not_sanitized("what is loaded before everything else must be the sanitizer")
def test_a_file_is_read_when_the_clock_stands_still(place, batchfs, tmp_path):
    """A file that was just written is read when its time stamp has aged; the clock may never say
    so."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "still.c").write_text(STILL)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "still.so", tmp_path / "still.c",
                    "-ldl"], check=True)
    store = place[0]
    for document in store.rglob("*"):
        if document.is_file() and document.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup",
                                                    ".zmetadata"):
            still = str(document.stat().st_ctime_ns)
            done = batchfs("inspect", store,
                           env=dict(os.environ, LD_PRELOAD=str(tmp_path / "still.so"), STILL=still))
            assert done.returncode == 0, done.stderr


# ---- disks ----


def test_the_disk_of_the_cache_is_full(place, origin, mounted, tmpfs):
    cache = tmpfs("400k")
    directory = mounted(origin[0], "--cache-dir", cache)
    for number, name in enumerate(BATCHES):
        assert right(place[1], number, read(directory / name))
    log = (directory / ".batchfs" / "log").read_text()
    assert sum("cache" in line and "No space left" in line for line in log.splitlines()) == 1
    assert status(directory)["errors"] == 0


def test_the_temporary_directory_is_full(tmpfs, batchfs):
    disk = tmpfs("100k")
    (disk / "full").write_bytes(bytes(90 << 10))
    done = batchfs("doctor", "--json", env=dict(os.environ, TMPDIR=str(disk)), timeout=LONG)
    assert done.returncode in (0, 1) and b"internal" not in done.stderr
    checks = json.loads(done.stdout)["checks"]
    if os.access("/dev/fuse", os.R_OK | os.W_OK):  # else nothing is measured
        assert any("could not be measured" in check["found"] and "room" in check["next"]
                   for check in checks), checks
    assert os.listdir(disk) == ["full"]


# ---- memory, files, threads ----


class Group:
    """A control group with a limit, version 1 or 2."""

    def __init__(self, controller, limit):
        name = f"batchfs-test-{os.getpid()}"
        first = {"memory": "memory.limit_in_bytes", "pids": "pids.max"}[controller]
        for root, file in [(f"/sys/fs/cgroup/{controller}", first),
                           ("/sys/fs/cgroup", f"{controller}.max")]:
            self.path = pathlib.Path(root) / name
            try:
                self.path.mkdir()
                (self.path / file).write_text(str(limit))
                with contextlib.suppress(OSError):
                    (self.path / "memory.swap.max").write_text("0")
                return
            except OSError:
                with contextlib.suppress(OSError):
                    self.path.rmdir()
        pytest.skip("no control group can be made here")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        def gone():
            with contextlib.suppress(OSError):
                self.path.rmdir()
            return not self.path.exists()

        assert eventually(gone, LONG)


@pytest.mark.not_sanitized("takes more memory than the group has")
def test_the_kernel_kills_for_memory(good, batchfs, tmp_path):
    """A budget that the container does not have: daemons are killed again and again, and the mount
    is given up."""
    values = np.random.default_rng(2).normal(size=(16, 1 << 20)).astype("f4")
    zarr.create_group(tmp_path / "s.zarr").create_array("x", data=values, chunks=(1, 1 << 20),
                                                        dimension_names=["time", "place"])
    (tmp_path / "view.json").write_text(json.dumps({"name": "v", "window": {"time": 1},
                                                    "batch": {"size": 16}}))
    directory = tmp_path / "mnt"
    directory.mkdir()
    group = Group("memory", 48 << 20)
    try:
        good("mount", tmp_path / "s.zarr", directory, "--view", tmp_path / "view.json", "--memory",
             "1G", preexec_fn=group.enter)
        pid = status(directory)["pid"]
        supervisor = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        result = Background(directory / BATCHES[0]).end()
        assert isinstance(result, int), "the group has room for it"
        # it may have been refused by the kernel, not killed
        if not eventually(lambda: not is_alive(supervisor), 5):
            assert result in (errno.ENOMEM, errno.EIO)
        else:
            assert not os.path.ismount(directory)
    finally:
        batchfs("umount", "--lazy", directory)
        group.remove()


@pytest.mark.not_sanitized("the sanitizer needs threads of its own")
@pytest.mark.parametrize("threads", [1, 3, 6, 12])
def test_threads_are_short(place, origin, tmp_path, view_file, threads):
    """For an ordinary user: the limit does not bind root. Whatever the number of threads, the
    result is a batch, or one line that names the limit."""
    if os.geteuid() != 0:
        pytest.skip("takes another user")
    view = tmp_path / "view.json"
    for folder in [tmp_path, *tmp_path.parents][:-2]:  # below /tmp
        os.chmod(folder, os.stat(folder).st_mode | 0o055)
    os.chmod(view, 0o644)

    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)

    done = subprocess.run([PROGRAM, "batch", origin[0], "--view", view, "--threads", "8"],
                          capture_output=True, preexec_fn=become, env={}, timeout=LONG)
    if done.returncode == 0:
        assert right(place[1], 0, np.frombuffer(done.stdout, dtype="u1"))
    else:
        (line,) = done.stderr.decode().splitlines()
        assert done.returncode == 1 and "RLIMIT_NPROC" in line, line
    assert done.returncode == 1 or threads > 1


@pytest.mark.not_sanitized("the sanitizer needs threads of its own")
@pytest.mark.parametrize("processes", [2, 3, 4, 5, 7, 9, 12, 30])
def test_threads_are_short_for_a_mount(place, origin, batchfs, tmp_path, view_file, processes):
    """A container's limit, which binds root, too: a mount, or one line that names the limit."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    group = Group("pids", processes)
    try:
        done = batchfs("mount", origin[0], directory, "--view", view_file, "--wait", "20",
                       preexec_fn=group.enter)
        if done.returncode == 0:
            result = Background(directory / BATCHES[0]).end()
            assert isinstance(result, int) or right(place[1], 0, result)
        else:
            (line,) = done.stderr.decode().splitlines()
            assert done.returncode == 1 and "pids.max" in line, line
            assert not os.path.ismount(directory)
        assert done.returncode == 0 or processes < 30
    finally:
        batchfs("umount", "--lazy", directory)
        group.remove()


def test_files_are_short(place, good, batchfs, tmp_path):
    """Each open batch is an open file of the daemon: without more, an error and not its end."""
    directory, view = tmp_path / "mnt", tmp_path / "view.json"
    directory.mkdir()
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "batch": {"size": 1},
                                "epochs": 100}))
    good("mount", place[0], directory, "--view", view, "--wait", "5",
         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    batch = [directory / f"views/v/epoch-{number // 24:04}/batch-{number % 24:06}.npy"
             for number in range(100)]
    try:
        pid = status(directory)["pid"]
        with contextlib.ExitStack() as stack:
            failures = []
            for path in batch:
                try:
                    stack.enter_context(open(path, "rb"))
                except OSError as error:
                    failures.append(error.errno)
                    if len(failures) == 3:  # files of the store are tried for 2 seconds
                        break
            assert failures and set(failures) <= {errno.ENOMEM, errno.EIO, errno.EMFILE}
        assert "RLIMIT_NOFILE" in (directory / ".batchfs" / "log").read_text()
        assert status(directory)["pid"] == pid
        # The kernel closes files a little later.
        assert eventually(lambda: not isinstance(outcome(batch[5]), int), LONG)
        contents = read(batch[5])
        assert np.array_equal(contents[-64 * 128 * 4:].view("f4").reshape(64, 128), place[1][5])
    finally:
        batchfs("umount", "--lazy", directory)


@pytest.mark.not_sanitized("the sanitizer needs files of its own")
def test_files_are_short_for_a_mount(place, batchfs, tmp_path, view_file):
    """A mount, or one line that names the limit and what to do."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    worked = []
    for files in [*range(8, 25), 28, 32, 36, 40]:
        done = batchfs("mount", place[0], directory, "--view", view_file, "--wait", "20",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                             (files, files)))
        try:
            if done.returncode == 0:
                assert right(place[1], 0, Background(directory / BATCHES[0]).end())
                worked.append(files)
            else:
                (line,) = done.stderr.decode().splitlines()
                assert done.returncode == 1, line
                # "opening failed" where the limit is met at a file of the store, which follows
                assert re.match(r"batchfs: mount failed: (opening failed: )?too many open files: "
                                rf"this process may have {files} \(RLIMIT_NOFILE\)", line), line
                assert "ulimit -n" in line, line
                assert "doctor" not in line, line
                assert not os.path.ismount(directory)
        finally:
            batchfs("umount", "--lazy", directory)
    assert 8 not in worked and 40 in worked


@pytest.mark.not_sanitized("the sanitizer needs more address space")
@pytest.mark.parametrize("command", ["batch", "mount"])
def test_the_address_space_is_short(place, batchfs, tmp_path, view_file, command):
    """The right bytes, or one line that names the limit and what to do."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    lines = []
    for megabytes in (100, 200, 300, 400, 1500):
        size = megabytes << 20
        options = {"mount": (directory, "--wait", "20"), "batch": ("--format", "npy")}[command]
        done = batchfs(command, place[0], *options, "--view", view_file,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
        try:
            if done.returncode == 0:
                contents = (np.frombuffer(done.stdout, "u1") if command == "batch"
                            else Background(directory / BATCHES[0]).end())
                assert right(place[1], 0, contents)
            else:
                (line,) = done.stderr.decode().splitlines()
                assert (done.returncode == 1
                            and line.startswith(f"batchfs: {command} failed: ")), line
                assert (f"this process may have {size} bytes of address space "
                        "(RLIMIT_AS); raise it with ulimit -v" in line
                        or "raise the limit (ulimit -v)" in line), line
                lines.append(line)
        finally:
            if command == "mount":
                batchfs("umount", "--lazy", directory)
    assert "RLIMIT_AS" in lines[0] and len(lines) < 5


def test_a_background_daemon_raises_its_limit_of_files(place, good, batchfs, tmp_path, view_file):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    directory = tmp_path / "mnt"
    directory.mkdir()
    good("mount", place[0], directory, "--view", view_file,
         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)))
    try:
        limits = pathlib.Path(f"/proc/{status(directory)['pid']}/limits").read_text()
        (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
        assert line.split()[3] == line.split()[4] == str(hard)
    finally:
        batchfs("umount", "--lazy", directory)
