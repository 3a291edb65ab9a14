#!/usr/bin/env python3
"""Systematic fault injection: the n-th malloc, open, read, ... of a command fails, for one n after another.

    BATCHFS=build/batchfs python3 tests/faults/inject.py --points 2000

For each scenario (a command, or a mount with a reader) the calls of each kind are counted in a run without
faults. Then the scenario runs once for each point (kind, n, once or from then on), at most `--points` of a
kind, spread over all calls. A run is right if it ends in time with the same output as without faults, or with
exit code 1 and one line of error; readers of a mount get the right bytes or an error. A crash, a hang, another
exit code, a second line or a wrong byte is a finding.
Prints a line for each finding and a table; ends with 1 if anything was found.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import errno
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ.get("BATCHFS", str(HERE.parents[1] / "build" / "batchfs"))
LIMIT = 60  # seconds after which a run counts as hung
DEFAULT_KINDS = "open read mmap fork thread write sync descriptor truncate malloc"

# In the order of inject.c: the errno of the failure, and whether "from then on" is tried too. Without any
# memory there is no way to report it.
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
    _fields_ = [("calls", ctypes.c_long * 16), ("failed", ctypes.c_long), ("kind", ctypes.c_long), ("at", ctypes.c_long),
                ("persists", ctypes.c_long), ("error", ctypes.c_long)]


def build_library(directory):
    """Compiles inject.c; the path of the library."""
    library = pathlib.Path(directory) / "inject.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", library, HERE / "inject.c"], check=True)
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
                 encoding={"t": {"chunks": (4, 8, 16), "shards": (12, 8, 16)}, "q": {"chunks": (4, 8, 16)}})
    view = directory / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 6},
                                "order": {"shuffle": "global", "seed": 3}, "formats": ["npy"]}))
    return store, view


class Outcome:
    """How a run ended: what counts when it is compared."""

    def __init__(self, code, stdout, stderr, wrong=None):
        self.code, self.stdout, self.stderr, self.wrong = code, stdout, stderr, wrong


class Command:
    """A command that ends by itself."""

    def __init__(self, name, *arguments):
        self.name, self.arguments = name, arguments

    def run(self, environment, scratch):
        arguments = [str(a).replace("SCRATCH", str(scratch)) for a in self.arguments]
        with subprocess.Popen([PROGRAM, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Outcome(None, b"", b"", "it did not end")
            return Outcome(process.returncode, out, err)

    def judge(self, expected, outcome):
        """What is wrong with it; None if nothing."""
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


class Plan(Command):
    """`plan --json`, which measures some chunks, and names those that it could not read."""

    def judge(self, expected, outcome):
        if outcome.code == 0 and outcome.stdout != expected.stdout and json.loads(outcome.stdout)["unreadable"]:
            return None
        return super().judge(expected, outcome)


class Mount(Command):
    """A mount in the background, whose files are read, and its end."""

    def __init__(self, name, store, view, files, *options):
        super().__init__(name, "mount", store, "SCRATCH/mnt", "--view", view, *options)
        self.files = files

    def run(self, environment, scratch):
        directory = scratch / "mnt"
        directory.mkdir()
        try:
            outcome = super().run(environment, scratch)
            if outcome.wrong or outcome.code != 0:
                return outcome
            got = {}
            for name in self.files:
                # In a process of its own, which can be killed when the mount hangs.
                try:
                    done = subprocess.run(["cat", directory / name], capture_output=True, check=False, timeout=LIMIT)
                except subprocess.TimeoutExpired:
                    return Outcome(None, b"", b"", f"reading {name} did not end")
                got[name] = done.stdout if done.returncode == 0 else None
            outcome.stdout = got
            return outcome
        finally:
            plain = {k: v for k, v in environment.items() if k not in ("LD_PRELOAD", "INJECT_STATE")}
            subprocess.run([PROGRAM, "umount", "--lazy", directory], env=plain, capture_output=True, check=False,
                           timeout=LIMIT)
            if os.path.ismount(directory):
                subprocess.run(["umount", "-l", directory], capture_output=True, check=False)
            end_of_processes(str(directory))

    def judge(self, expected, outcome):
        if outcome.wrong or outcome.code != 0:
            return super().judge(expected, outcome)
        for name, got in outcome.stdout.items():
            if got is not None and got != expected.stdout[name]:
                return f"{name} has other bytes"
        return None


def end_of_processes(text):
    """Waits until no process names `text` in its arguments; kills what stays."""
    until = time.monotonic() + 20
    while True:
        left = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if text.encode() in (process / "cmdline").read_bytes() and int(process.name) != os.getpid():
                    left.append(int(process.name))
            except OSError:
                continue
        if not left:
            return
        if time.monotonic() > until:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def scenarios(directory):
    store, view = make_store(directory)
    small = ["--threads", "2", "--memory", "64M"]
    files = ["views/v/epoch-0000/batch-000001/t.npy", "views/v/epoch-0000/batch-000000/q.npy",
             "arrays/t/values.npy", "store.json"]
    return [
        Command("inspect", "inspect", store, "--json"),
        Command("cat", "cat", store, "t", "--select", "time=2000-01-02", *small),
        Command("view", "view", store),
        Plan("plan", "plan", store, "--view", view, "--json", *small),
        Command("batch", "batch", store, "--view", view, "--batch", "2", "--format", "npz", *small),
        Command("statistics", "statistics", store, "--view", view, *small),
        Mount("mount", store, view, files, "--wait", "20", *small),
        Mount("mount without passthrough", store, view, files, "--wait", "20", "--no-passthrough", *small),
    ]


class Injector:
    """Runs scenarios with a call made to fail."""

    def __init__(self, directory):
        self.directory, self.library, self.runs = pathlib.Path(directory), build_library(directory), 0

    def run(self, scenario, kind=None, at=0, persists=False):
        """The outcome and the state of the calls afterwards."""
        self.runs += 1
        scratch = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        state = State(kind=-1 if kind is None else list(KINDS).index(kind), at=at, persists=persists,
                      error=0 if kind is None else KINDS[kind][0])
        file = scratch / "state"
        file.write_bytes(bytes(state))
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "INJECT_STATE": str(file), "HOME": str(scratch),
                       "TMPDIR": str(scratch)}
        try:
            outcome = scenario.run(environment, scratch)
            return outcome, State.from_buffer_copy(file.read_bytes())
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def spread(count, points, seed):
    """At most `points` of the numbers 1 to count: one at random of each of as many equal parts."""
    if count <= points:
        return list(range(1, count + 1))
    draw = random.Random(seed)
    edges = [1 + i * count // points for i in range(points + 1)]
    return [draw.randrange(begin, end) for begin, end in zip(edges, edges[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=200, help="of each kind and scenario, at most")
    parser.add_argument("--kinds", default=DEFAULT_KINDS, help="separated by spaces")
    parser.add_argument("--only", help="scenarios whose name contains this")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the points; printed at the end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    found, tried = [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="batchfs-inject-") as directory:
        injector = Injector(directory)
        for scenario in scenarios(pathlib.Path(directory)):
            if options.only and options.only not in scenario.name:
                continue
            expected, state = injector.run(scenario)
            if problem := scenario.judge(expected, expected):
                sys.exit(f"{scenario.name} fails without a fault: {problem} {expected.stderr!r}")
            points = []
            for kind in options.kinds.split():
                count = state.calls[list(KINDS).index(kind)]
                for persists in [False, True] if KINDS[kind][1] else [False]:
                    points += [(kind, at, persists) for at in spread(count, options.points, options.seed)]

            def attempt(point, scenario=scenario, expected=expected):
                outcome, after = injector.run(scenario, *point)
                return point, scenario.judge(expected, outcome), after.failed, outcome

            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for (kind, at, persists), problem, failed, _ in pool.map(attempt, points):
                    tried[scenario.name, kind] += failed > 0
                    if problem:
                        found.append(problem)
                        print(f"{scenario.name}: {kind} {at}{' and later' if persists else ''}: {problem}", flush=True)
    for (name, kind), count in sorted(tried.items()):
        print(f"{name:28} {kind:12} {count:6} points")
    print(json.dumps({"points": sum(tried.values()), "findings": len(found), "seed": options.seed}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
