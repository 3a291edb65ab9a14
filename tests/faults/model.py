#!/usr/bin/env python3
"""Programs that do anything a program may do with files that it can only read, against a model of
what they must see.

    BATCHFS=build/batchfs python3 tests/faults/model.py --seed 17 --seconds 60 --processes 8

A seed makes a store, views and what each process does; the same store is mounted with passthrough
and without. Every result is compared with model_tree.py. With --kills the processes that serve are
killed at random moments. Ends with 1, and names the operation, the seed and the step, when anything
differed. Without --seed the seeds that failed before (model_seeds.txt) come first, and one that
fails now is added to them.
"""

import argparse
import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import model_reader
import model_tree

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
KEPT = pathlib.Path(__file__).with_name("model_seeds.txt")
MODES = {"passthrough": [], "served": ["--no-passthrough"]}
LONG = 120  # seconds that no operation takes, on however slow a machine


def kept_seeds():
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return [int(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]


def keep(seed, why):
    if seed not in kept_seeds():
        try:
            with KEPT.open("a") as file:
                file.write(f"{seed}  # {why[:100]}\n")
        except OSError:
            pass  # it was printed


def status(directory):
    return json.loads((directory / ".batchfs/status.json").read_text())


def child_of(supervisor):
    """The process that serves; None when there is none now."""
    try:
        children = pathlib.Path(
            f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class Mounts:
    def __init__(self, scratch, store, views, memory):
        self.directories = []
        for name, options in MODES.items():
            directory = scratch / name
            directory.mkdir()
            files = [part for view in views for part in ("--view", scratch / f"{view}.json")]
            subprocess.run([PROGRAM, "mount", store, directory, *files, "--memory", str(memory),
                            *options], check=True)
            self.directories.append(directory)
        self.pids = [status(directory)["pid"] for directory in self.directories]
        self.supervisors = [parent_of(pid) for pid in self.pids]

    def differences(self, killed):
        """Differences in the mounts' own counters, once nobody reads any more."""
        for directory, pid in zip(self.directories, self.pids):
            told = status(directory)
            log = (directory / ".batchfs/log").read_text()[-2000:]
            if not killed and told["pid"] != pid:
                yield f"{directory.name}: process {pid} died\n{log}"
            if (told["errors"] or told["readers_waiting"]
                    or told["memory_used"] > told["memory_budget"]):
                yield f"{directory.name}: {told}\n{log}"

    def end(self):
        for directory in self.directories:
            subprocess.run([PROGRAM, "umount", "--lazy", directory], check=False)


class Reader:
    """A process of model_reader.py. It writes what it is about to do into `says`, where it can be
    read when it hangs."""

    def __init__(self, scratch, number, seed, seconds, share, killed):
        self.number, self.says = number, scratch / f"says-{number}"
        self.says.write_bytes(bytes(model_reader.SAYS))
        arguments = [scratch, number, seed, seconds, share, int(killed)]
        self.process = subprocess.Popen([sys.executable, model_reader.__file__,
                                         *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, until):
        """(steps, what differed or None)"""
        try:
            output, errors = self.process.communicate(timeout=max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return 0, f"process {self.number} hangs in {self.doing()}"
        if self.process.returncode == 0:
            return int(output), None
        text = errors.decode()[-3000:]
        return (0, f"process {self.number} ended with {self.process.returncode} in "
                   f"{self.doing()}: {text}")

    def doing(self):
        return self.says.read_bytes().rstrip(b"\0").decode(errors="replace")


def kill_at_random(mounts, chance, until):
    """Gives how many times."""
    count = 0
    while time.monotonic() < until:
        time.sleep(chance.random() * 0.5)
        daemon = child_of(chance.choice(mounts.supervisors))
        if daemon is not None:
            os.kill(daemon, signal.SIGKILL)
            count += 1
    return count


def run(seed, seconds, processes, kills, scratch):
    """One seed: (a line about it, what differed)."""
    store, views, chunks, chance = model_tree.make(seed, scratch)
    memory = chance.choice([64, 128, 256]) << 20
    mounts = Mounts(scratch, store, views, memory)
    try:
        tree = model_tree.make_tree(store, views, chunks, chance, mounts.directories[0],
                                    scratch / "blob")
        with (scratch / "tree").open("wb") as file:
            pickle.dump(model_reader.Known(tree.folders, tree.files, tree.inodes, tree.large,
                                           [str(d) for d in mounts.directories]), file)
        start = time.monotonic()
        # Half of the memory for the batches that they hold: opening a batch must never wait for
        # another forever.
        readers = [Reader(scratch, n, seed, seconds, memory // 2 // processes, kills)
                   for n in range(processes)]
        killed = kill_at_random(mounts, random.Random(f"kills {seed}"), start
                                    + seconds) if kills else 0
        done = [reader.finish(start + seconds + LONG) for reader in readers]
        wrong = [text for _, text in done if text is not None]
        wrong += mounts.differences(kills)
        line = {"seed": seed, "operations": sum(steps for steps, _ in done),
                "files": len(tree.files), "memory": memory, "kills": killed,
                "formats": {name: view["formats"] for name, view in views.items()},
                "differences": len(wrong)}
        return json.dumps(line), wrong
    finally:
        mounts.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=1, help="so many, each for --seconds")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kills", action="store_true")
    arguments = parser.parse_args()
    fresh = (arguments.seed if arguments.seed is not None
             else random.SystemRandom().randrange(1 << 32))
    again = [] if arguments.seed is not None else kept_seeds()
    failed = False
    for seed in again + [fresh + i for i in range(arguments.seeds)]:
        seconds = min(arguments.seconds, 3) if seed in again else arguments.seconds
        print(f"seed {seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="batchfs-model-",
                                         ignore_cleanup_errors=True) as scratch:
            try:
                line, wrong = run(seed, seconds, arguments.processes, arguments.kills,
                                  pathlib.Path(scratch))
                print(line, flush=True)
            except Exception:
                wrong = [f"before the processes began: {traceback.format_exc()}"]
        for text in wrong:
            print(f"seed {seed}: {text}", file=sys.stderr)
        if wrong:
            failed = True
            keep(seed, wrong[0].splitlines()[0])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
