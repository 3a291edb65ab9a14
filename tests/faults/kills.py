#!/usr/bin/env python3
"""Kills the process that serves a mount, over and over and at random moments, under programs that
read.

    BATCHFS=build/batchfs python3 tests/faults/kills.py --kills 100

Readers open, read and map batches and an array, and compare every byte with what the program gives
without a mount. The process is killed (SIGKILL) whatever it is doing, also while it starts. Ends
with 1 when a byte was wrong or a read failed. For each kill, reports the longest wait of a reader.
"""

import argparse
import errno
import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
LONG = 120  # seconds that nothing here takes, on however slow a machine
MODES = ["read", "mmap", "list", "read"]  # of the readers, in turn
SLOW = 0.002  # seconds; a read that took less was not held up


def read(directory, table, mode, stop):
    """A reader: until the file `stop` exists. Prints what it saw as JSON."""
    files = sorted(json.loads(pathlib.Path(table).read_text()).items())
    chance = random.Random(f"{mode} {os.getpid()}")
    count, failures, wrong, slow = 0, [], [], []
    print("ready", flush=True)
    while not os.path.exists(stop):
        name, known = chance.choice(files)
        known = pathlib.Path(known).read_bytes()
        start = time.monotonic()
        try:
            with open(os.path.join(directory, name), "rb", buffering=0) as file:
                assert os.fstat(file.fileno()).st_size == len(known), name
                for _ in range(chance.randrange(1, 20)):
                    offset = chance.randrange(len(known))
                    size = chance.choice([1, 512, 4096, 70000, len(known)])
                    if mode == "mmap":
                        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                            got = memory[offset : offset + size]
                    else:
                        got = os.pread(file.fileno(), size, offset)
                    now = time.monotonic()
                    if now - start > SLOW:
                        slow.append((start, now))
                    count += 1
                    if got != known[offset : offset + size]:
                        wrong.append(f"{name}: {size} bytes from {offset}: {len(got)} came")
                    start = time.monotonic()
            if mode == "list" and os.path.basename(name) not in os.listdir(os.path.join(
                    directory, os.path.dirname(name))):
                wrong.append(f"{name} is not listed")
        except OSError as error:
            failures.append(f"{name}: {error}")
    print(json.dumps({"reads": count, "failures": failures, "wrong": wrong, "slow": slow}))


class Readers:
    """Processes that read and compare, until finish()."""

    def __init__(self, directory, expected, modes, scratch):
        table, self.stop = scratch / "expected.json", scratch / "stop"
        table.write_text(json.dumps(expected))
        self.running = [subprocess.Popen([sys.executable, __file__, "read", str(directory),
                                          str(table), mode, str(self.stop)],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        for mode in modes]
        for reader in self.running:
            assert reader.stdout.readline() == b"ready\n"

    def finish(self):
        """The observations of each reader."""
        self.stop.touch()
        seen = []
        for reader in self.running:
            output, errors = reader.communicate(timeout=LONG)
            seen.append(json.loads(output) if reader.returncode == 0 else {"reads": 0, "failures": [
                f"ended with {reader.returncode}: "
                f"{errors.decode()[-500:]}"], "wrong": [], "slow": []})
        return seen

    def end(self):
        for reader in self.running:
            reader.kill()
            reader.communicate()


def state_of(pid):
    """(state, parent) of a process; ("X", 0) when it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1])
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0


def daemon_of(supervisor):
    """Its child that lives; None when there is none now."""
    children = pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return next((int(pid) for pid in children if state_of(pid)[0] not in "ZX"), None)


def wait_for_service(directory):
    """Waits until requests are answered. A request to a process that died then is stale."""
    while True:
        try:
            (directory / ".batchfs/status.json").read_bytes()
            return
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def stalls(times, seen):
    """How long the reader waited that each of the kills at these times held up longest, in
    seconds."""
    ends = times[1:] + [float("inf")]
    return [max((end - max(start, time) for one in seen for start, end in one["slow"]
                 if end > time and start < after), default=0) for time, after in zip(times, ends)]


def kill_under_readers(directory, supervisor, readers, kills, pause, seed):
    """Kills the daemon so many times, up to `pause` seconds apart. Gives a report."""
    moments = random.Random(seed)
    times = []
    for _ in range(kills):
        # One of four is killed while it starts, or soon after.
        if moments.random() < 0.75:
            wait_for_service(directory)
        time.sleep(moments.random() * pause)
        until = time.monotonic() + LONG
        while (daemon := daemon_of(supervisor)) is None:
            assert time.monotonic() < until, "no daemon was started"
            time.sleep(0.0005)
        times.append(time.monotonic())
        os.kill(daemon, signal.SIGKILL)
    (directory / "store.json").read_bytes()
    seen = readers.finish()
    held_up = stalls(times, seen)
    return {"kills": len(times),
            "seed": seed, "readers": len(seen), "reads": sum(one["reads"] for one in seen),
            "wrong": [text for one in seen for text in one["wrong"]],
            "failed": [text for one in seen for text in one["failures"]],
            "stall_seconds": {"p50": percentile(held_up, 0.5), "p99": percentile(held_up, 0.99),
                              "max": max(held_up, default=0)}}


def make_store(path):
    import warnings

    import numpy as np
    import zarr

    group = zarr.open_group(str(path), mode="w", zarr_format=3)
    values = np.random.default_rng(0).normal(size=(64, 128, 256)).astype("f4")
    array = group.create_array("field", shape=values.shape, chunks=(4, 64, 128), dtype="f4",
                               dimension_names=["time", "y", "x"])
    array[:] = values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that format 3 does not have this yet
        zarr.consolidate_metadata(str(path))
    return values


def run(kills, readers, passthrough, pause, seed, scratch):
    """A store, a mount of it, kills under readers. Gives the report."""
    import io

    import numpy as np

    store, view, directory = scratch / "s.zarr", scratch / "view.json", scratch / "mnt"
    values = make_store(store)
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "batch": {"size": 8},
                                "order": {"shuffle": "global", "seed": 1},
                                "formats": ["npy", "safetensors"], "epochs": 2}))
    expected = {}
    for epoch in range(2):
        for batch in range(8):
            for format in ["npy", "safetensors"]:
                path = scratch / f"{epoch}-{batch}.{format}"
                done = subprocess.run([PROGRAM, "batch", store, "--view", view, "--epoch",
                                       str(epoch), "--batch", str(batch), "--format", format],
                                      capture_output=True, check=True)
                path.write_bytes(done.stdout)
                expected[f"views/v/epoch-{epoch:04}/batch-{batch:06}.{format}"] = str(path)
    directory.mkdir()
    subprocess.run([PROGRAM, "mount", store, directory, "--view", view,
                    *([] if passthrough else ["--no-passthrough"])], check=True)
    try:
        whole = scratch / "values.npy"
        whole.write_bytes((directory / "arrays/field/values.npy").read_bytes())
        assert np.array_equal(np.load(io.BytesIO(whole.read_bytes())), values)
        expected["arrays/field/values.npy"] = str(whole)
        status = json.loads((directory / ".batchfs/status.json").read_text())
        supervisor = state_of(status["pid"])[1]
        group = Readers(directory, expected, [MODES[i % len(MODES)] for i in range(readers)],
                        scratch)
        try:
            report = kill_under_readers(directory, supervisor, group, kills, pause, seed)
        finally:
            group.end()
        return {"passthrough": status["passthrough"], **report}
    finally:
        subprocess.run([PROGRAM, "umount", "--lazy", directory], check=False)


def main():
    if sys.argv[1:2] == ["read"]:
        return read(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--no-passthrough", action="store_true")
    parser.add_argument("--pause", type=float, default=0.6,
                        help="at most so many seconds between kills")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="batchfs-kills-") as scratch:
        report = run(arguments.kills, arguments.readers, not arguments.no_passthrough,
                     arguments.pause, arguments.seed, pathlib.Path(scratch))
    print(json.dumps({**report, "wrong": len(report["wrong"]), "failed": len(report["failed"])}))
    for text in (report["wrong"] + report["failed"])[:20]:
        print(text, file=sys.stderr)
    sys.exit(1 if report["wrong"] or report["failed"] else 0)


if __name__ == "__main__":
    main()
