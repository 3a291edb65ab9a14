#!/usr/bin/env python3
"""Systematic fault injection: the n-th malloc, open, read, ... of a command fails, for one n after
another.

    BATCHFS=build/batchfs python3 tests/faults/inject.py --points 2000

For each scenario (a command, or a mount with a reader) the calls of each kind are counted in a run
without faults. Then the scenario runs once for each point (kind, n, once or from then on), at most
`--points` of a kind: the first call of each place of the program, and where fewer places call,
others spread over all calls. A run is right if it ends in time with the same output as without
faults, or with exit code 1 and one line of error; readers of a mount get the right bytes or an
error. A crash, a hang, another exit code, a second line or a wrong byte is a finding.
Prints a line for each finding and a table; ends with 1 if anything was found.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import errno
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from processes import end_of_processes, processes_of, stacks_of

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ.get("BATCHFS", str(HERE.parents[1] / "build" / "batchfs"))
LIMIT = 60  # seconds after which a run counts as hung
DEFAULT_KINDS = "open read mmap fork thread write sync descriptor truncate malloc"

# In the order of inject.c: the errno of the failure, and whether "from then on" is tried, too. A
# permanent lack of memory cannot be reported.
KINDS = {
    "malloc": (errno.ENOMEM, False),
    "open": (errno.EMFILE, True),
    "read": (errno.EIO, True),
    "mmap": (errno.ENOMEM, True),
    "fork": (errno.EAGAIN, True),
    "thread": (errno.EAGAIN, True),
    "write": (errno.ENOSPC, True),
    "sync": (errno.EIO, True),
    "descriptor": (errno.EMFILE, True),
    "truncate": (errno.ENOSPC, True),
}


class State(ctypes.Structure):
    """struct State of inject.c."""
    _fields_ = [("calls", ctypes.c_long * 16), ("failed", ctypes.c_long), ("kind", ctypes.c_long),
                ("at", ctypes.c_long), ("persists", ctypes.c_long), ("error", ctypes.c_long)]


def build_library(directory):
    """Compiles inject.c; the path of the library."""
    library = pathlib.Path(directory) / "inject.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", library,
                    HERE / "inject.c"], check=True)
    return library


def make_store(directory):
    """A store with shards, plain chunks and coordinates, and a view of it."""
    import numpy as np
    import xarray as xr

    draw = np.random.default_rng(1)
    data = xr.Dataset(
        {"t": (("time", "latitude", "longitude"), draw.normal(280, 10, (24, 8, 16)).astype("f4")),
         "q": (("time", "latitude", "longitude"), draw.uniform(0, 1, (24, 8, 16)).astype("f4"))},
        {"time": np.arange("2000-01-01", "2000-01-07", np.timedelta64(6, "h"), dtype="M8[ns]"),
         "latitude": np.linspace(70.0, -70.0, 8), "longitude": np.arange(0, 360, 22.5)})
    store = directory / "store.zarr"
    data.to_zarr(store, zarr_format=3, consolidated=False,
                 encoding={"t": {"chunks": (4, 8, 16), "shards": (12, 8, 16)},
                           "q": {"chunks": (4, 8, 16)}})
    view = directory / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["t", "q"],
                                "batch": {"size": 6}, "order": {"shuffle": "global", "seed": 3},
                                "formats": ["npy"]}))
    return store, view


def serve(directory):
    """An HTTP server of a directory, as long as this process lives; its URL."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(directory))

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """The client went away, as it may."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Outcome:
    """How a run ended: what counts when it is compared, and the stacks of one that did not end.
    `lasting`: the error of a file that failed twice on a mount that lasted."""

    def __init__(self, code, stdout, stderr, wrong=None, stacks=""):
        self.code, self.stdout, self.stderr, self.wrong = code, stdout, stderr, wrong
        self.stacks, self.lasting = stacks, None


class Command:
    """A command that ends by itself."""

    def __init__(self, name, *arguments):
        self.name, self.arguments = name, arguments

    def run(self, environment, scratch):
        arguments = [str(a).replace("SCRATCH", str(scratch)) for a in self.arguments]
        with subprocess.Popen([PROGRAM, *arguments], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                stacks = stacks_of(scratch)
                for pid in {process.pid, *processes_of(scratch)}:
                    os.kill(pid, signal.SIGKILL)
                process.communicate()
                return Outcome(None, b"", b"", "it did not end", stacks)
            return Outcome(process.returncode, out, err)

    def judge(self, expected, outcome):
        """The error in an outcome; None if there is none."""
        if outcome.wrong:
            return outcome.wrong
        lines = outcome.stderr.decode(errors="replace").splitlines()
        if outcome.code == 0:
            return None if outcome.stdout == expected.stdout else "exit code 0 with other output"
        if outcome.code != 1:
            return f"exit code {outcome.code}: {lines[-1:]}"
        if len(lines) != 1 or not lines[0].startswith("batchfs: "):
            return f"standard error is {lines[:3]}"
        return None


class Inspect(Command):
    """`inspect --json`, which reads values of coordinates, and names those that it could not
    read."""

    def judge(self, expected, outcome):
        if outcome.code == 0 and outcome.stdout != expected.stdout:
            arrays = json.loads(outcome.stdout)["arrays"]
            right = json.loads(expected.stdout)["arrays"]
            for name, array in arrays.items():
                if array.pop("unreadable", None):
                    del right[name]["range"]
            return None if arrays == right else "exit code 0 with other output"
        return super().judge(expected, outcome)


class Plan(Command):
    """`plan --json`, which measures some chunks, and names those that it could not read."""

    def judge(self, expected, outcome):
        if (outcome.code == 0 and outcome.stdout != expected.stdout
                and json.loads(outcome.stdout)["unreadable"]):
            return None
        return super().judge(expected, outcome)


class Mount(Command):
    """A mount in the background, whose files are read, and its end. `kill`: its daemon is killed
    before that, so that another takes over."""

    def __init__(self, name, store, view, files, *options, kill=False):
        super().__init__(name, "mount", store, "SCRATCH/mnt", "--view", view, *options)
        self.files, self.kill = files, kill

    def run(self, environment, scratch):
        directory = scratch / "mnt"
        directory.mkdir()
        try:
            outcome = super().run(environment, scratch)
            if outcome.wrong or outcome.code != 0:
                return outcome
            got = {}
            if self.kill:
                kill_daemon(directory)
            for name in self.files:
                got[name], stopped = self.read(scratch, name)
                if got[name] is None and not stopped:
                    again, stopped = self.read(scratch, name)
                    if again is None and is_mounted(directory):
                        outcome.lasting = f"{name} fails again, after one failing call"
                if stopped:
                    return stopped
            outcome.stdout = got
            return outcome
        finally:
            plain = {k: v for k, v in environment.items()
                     if k not in ("LD_PRELOAD", "INJECT_STATE")}
            subprocess.run([PROGRAM, "umount", "--lazy", directory], env=plain, capture_output=True,
                           check=False, timeout=LIMIT)
            if os.path.ismount(directory):
                subprocess.run(["umount", "-l", directory], capture_output=True, check=False)
            end_of_processes(str(directory))

    @staticmethod
    def read(scratch, name):
        """The bytes of a file, None where it cannot be read; and the outcome where that does not
        end."""
        # In a separate process. Not even SIGKILL ends it when the mount hangs.
        with subprocess.Popen(["cat", scratch / "mnt" / name], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as reader:
            try:
                read, _ = reader.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                stacks = stacks_of(scratch)
                abort_connection(scratch / "mnt")
                reader.kill()
                return None, Outcome(None, b"", b"", f"reading {name} did not end", stacks)
        return (read if reader.returncode == 0 else None), None

    def judge(self, expected, outcome):
        if outcome.wrong or outcome.code != 0:
            return super().judge(expected, outcome)
        for name, got in outcome.stdout.items():
            if got is not None and got != expected.stdout[name]:
                return f"{name} has other bytes"
        return None


def is_mounted(directory):
    """Whether a mount and its session last."""
    try:
        os.statvfs(directory)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return False
    return any(line.split()[4] == str(directory)
               for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def kill_daemon(directory):
    """Kills the process that serves a mount, unless its number cannot be read."""
    done = subprocess.run(["cat", directory / ".batchfs" / "stats.json"], capture_output=True,
                          check=False, timeout=LIMIT)
    if done.returncode == 0:
        with contextlib.suppress(ProcessLookupError):
            os.kill(json.loads(done.stdout)["pid"], signal.SIGKILL)


def abort_connection(directory):
    """Has the kernel answer all requests of a mount whose daemon does not. Needs root and
    fusectl."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[4] == str(directory):
            abort = pathlib.Path("/sys/fs/fuse/connections", fields[2].split(":")[1], "abort")
            if not abort.exists():
                subprocess.run(["mount", "-t", "fusectl", "none", abort.parents[1]], check=False)
            abort.write_text("1")


def scenarios(directory):
    store, view = make_store(directory)
    small = ["--threads", "2", "--memory", "64M"]
    files = ["views/v/epoch-0000/batch-000001/t.npy", "views/v/epoch-0000/batch-000000/q.npy",
             "arrays/t/values.npy", "store.json"]
    return [
        Inspect("inspect", "inspect", store, "--json"),
        Command("cat", "cat", store, "t", "--select", "time=2000-01-02", *small),
        Command("view", "view", store),
        Plan("plan", "plan", store, "--view", view, "--json", *small),
        Command("batch", "batch", store, "--view", view, "--batch", "2", "--format", "npz", *small),
        Command("http", "cat", serve(directory) + "/store.zarr", "q",
                "--select", "time=2000-01-02", *small),
        Command("statistics", "statistics", store, "--view", view, *small),
        Mount("mount", store, view, files, "--wait", "20", *small),
        Mount("mount without passthrough", store, view, files, "--wait", "20", "--no-passthrough",
              *small),
        Mount("takeover", store, view, files, "--wait", "20", *small, kill=True),
    ]


class Injector:
    """Runs scenarios with a call made to fail."""

    def __init__(self, directory, caller=None):
        """`caller`: only calls from libraries with this in their path count."""
        self.directory, self.library, self.runs = pathlib.Path(directory), build_library(
            directory), 0
        self.caller = caller

    def run(self, scenario, kind=None, at=0, persists=False, trace=None, places=None):
        """The outcome and the state of the calls afterwards. The file `trace` gets the stack of the
        failed call, the file `places` all calls, see inject.c."""
        self.runs += 1
        scratch = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        state = State(kind=-1 if kind is None else list(KINDS).index(kind), at=at,
                      persists=persists, error=0 if kind is None else KINDS[kind][0])
        file = scratch / "state"
        file.write_bytes(bytes(state))
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "INJECT_STATE": str(file),
                       "HOME": str(scratch), "TMPDIR": str(scratch)}
        for name, value in (("INJECT_TRACE", trace), ("INJECT_PLACES", places),
                            ("INJECT_CALLER", self.caller)):
            if value is not None:
                environment[name] = str(value)
        try:
            outcome = scenario.run(environment, scratch)
            return outcome, State.from_buffer_copy(file.read_bytes())
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def spread(among, points, seed):
    """At most `points` of the list: one at random of each of as many equal parts."""
    if len(among) <= points:
        return among
    draw = random.Random(seed)
    edges = [i * len(among) // points for i in range(points + 1)]
    return [among[draw.randrange(begin, end)] for begin, end in zip(edges, edges[1:])]


def first_calls(places):
    """By kind: the number of the first call of each place."""
    calls = collections.defaultdict(dict)
    for kind, call, place in struct.iter_unpack("3l", places.read_bytes()):
        calls[kind].setdefault(place, call)
    return {kind: sorted(of_kind.values()) for kind, of_kind in calls.items()}


def points_of(count, firsts, points, seed):
    """The calls to fail, of `count`: those of `firsts`, and others where these are too few."""
    chosen = spread(firsts, points, seed)
    others = sorted(set(range(1, count + 1)) - set(chosen))
    if len(chosen) < points:
        chosen = chosen + spread(others, points - len(chosen), seed)
    return sorted(chosen)


def named_frames(text):
    """The text of a trace, with names for the frames of the program."""
    lines = text.splitlines()
    program = os.path.realpath(PROGRAM)
    places = {line: line.split("(+")[1].split(")")[0] for line in lines
              if "(+" in line and os.path.realpath(line.split("(")[0]) == program}
    names = {}
    if places:
        done = subprocess.run(["addr2line", "-fCse", program, *places.values()],
                              capture_output=True, text=True, check=True)
        names = dict(zip(places, done.stdout.splitlines()[::2]))
    return "\n".join("  " + names.get(line, line) for line in lines)


def progress(line):
    """Shows how far it is, in one line of a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()


def show(injector, scenario, point):
    """Runs one point, written as malloc:8196 or read:3+, and prints its end and the call's
    stack."""
    kind, at = point.split(":")
    trace = injector.directory / "trace"
    trace.unlink(missing_ok=True)
    outcome, state = injector.run(scenario, kind, int(at.rstrip("+")), at.endswith("+"), trace)
    print(f"{scenario.name}: {state.failed} calls failed, exit code {outcome.code}, "
          f"{outcome.wrong or 'ended'}")
    print(outcome.stderr.decode(errors="replace"), end="")
    print(outcome.stacks, end="")
    print(named_frames(trace.read_text() if trace.exists() else ""))


def try_points(injector, scenario, options, tried, found):
    """Runs a scenario with each of its points."""
    places = injector.directory / "places"
    expected, state = injector.run(scenario, places=places)
    firsts = first_calls(places)
    places.unlink()
    if problem := scenario.judge(expected, expected):
        sys.exit(f"{scenario.name} fails without a fault: {problem} {expected.stderr!r}")
    points = []
    for kind in options.kinds.split():
        number = list(KINDS).index(kind)
        chosen = points_of(state.calls[number], firsts.get(number, []), options.points,
                           options.seed)
        for persists in [False, True] if KINDS[kind][1] else [False]:
            points += [(kind, at, persists) for at in chosen]

    def attempt(point):
        outcome, after = injector.run(scenario, *point)
        problem = scenario.judge(expected, outcome) or (None if point[2] else outcome.lasting)
        return point, problem, after.failed, outcome.stacks

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            results = enumerate(pool.map(attempt, points), 1)
            for done, ((kind, at, persists), problem, failed, stacks) in results:
                tried[scenario.name, kind] += failed > 0
                progress(f"{scenario.name}: {done} of {len(points)} points, {len(found)} findings")
                if problem:
                    progress("")
                    found.append(problem)
                    later = " and later" if persists else ""
                    print(f"{scenario.name}: {kind} {at}{later}: {problem}\n{stacks}", end="",
                          flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--points", type=int, default=200,
                        help="of each kind and scenario, at most")
    parser.add_argument("--kinds", default=DEFAULT_KINDS, help="separated by spaces")
    parser.add_argument("--only", help="scenarios whose name contains this")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000,
                        help="of the points; printed at the end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--caller", help="only calls from libraries with this in their path, such "
                        "as libfuse3")
    parser.add_argument("--show", metavar="POINT", help="run this point only, malloc:8196 or "
                        "read:3+ (and later), and print where the call failed")
    options = parser.parse_args()

    found, tried = [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="batchfs-inject-") as directory:
        injector = Injector(directory, options.caller)
        try:
            for scenario in scenarios(pathlib.Path(directory)):
                if options.only and options.only not in scenario.name:
                    continue
                if options.show:
                    show(injector, scenario, options.show)
                else:
                    try_points(injector, scenario, options, tried, found)
        except KeyboardInterrupt:
            print("interrupted")
    progress("")
    for (name, kind), count in sorted(tried.items()):
        print(f"{name:28} {kind:12} {count:6} points")
    print(json.dumps({"points": sum(tried.values()), "findings": len(found), "seed": options.seed}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
