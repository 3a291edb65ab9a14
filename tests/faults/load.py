#!/usr/bin/env python3
"""Every kind of fault of a server, one after the other, under programs that read a mount of it.

    BATCHFS=build/batchfs python3 tests/faults/load.py --seconds 10

For each kind, first all requests for chunks suffer, then three of ten at random, then none.
Meanwhile eight readers open random batches, go through epochs and read parts of arrays; each read
must give the right bytes, or fail as the kind must, and soon. Then everything must be readable
again, without mounting anew, and when nobody reads any more, nothing may be in flight, nobody wait,
and no byte of the budget be in use. Prints a table and, as JSON, its sums; ends with 1 when
anything was wrong.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import errno
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from fault_kinds import fault_kinds  # noqa: E402
from fault_proxy import Fault, FaultProxy  # noqa: E402
from watching import eventually  # noqa: E402

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
READERS = 8
# seconds: longer than any read, on however slow a machine: requests end after 5, those who wait for
# memory after this
LONG = 60
SAMPLES, WIDTH, BATCH = 192, 1000, 6
ARRAYS = ["x", "w"]  # in shards, and in chunks of their own
# more than the readers hold, less than two epochs: chunks are asked for again and again
MEMORY = 600 << 10
OPTIONS = ["--timeout", "2", "--retries", "1", "--wait", str(LONG), "--idle", "0.5", "--memory",
           str(MEMORY)]
MODES = [[], ["--no-passthrough"]]  # of the mounts, in turn
GAUGES = ["readers_waiting", "readers_waiting_for_memory", "memory_used",
          "memory_mapped_after_close", "memory_spare", "chunk_cache_bytes"]
ERRORS = errno.errorcode | {errno.EOPNOTSUPP: "EOPNOTSUPP"}  # which has two names


def is_chunk(path):
    return not path.endswith("zarr.json")


def make_store(path):
    """Arrays with the values of NAME.bin."""
    import warnings

    import numpy as np
    import zarr

    group = zarr.open_group(str(path / "store"), mode="w", zarr_format=3)
    for seed, (name, layout) in enumerate(zip(ARRAYS, [{"shards": (12, WIDTH)}, {}])):
        values = np.random.default_rng(seed).normal(size=(SAMPLES, WIDTH)).astype("f4")
        group.create_array(name, shape=values.shape, chunks=(4, WIDTH), dtype="f4", fill_value=-1,
                           dimension_names=["time", "place"], **layout)[:] = values
        (path / f"{name}.bin").write_bytes(values.tobytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that format 3 does not have this yet
        zarr.consolidate_metadata(str(path / "store"))
    view = {"name": "v", "variables": ARRAYS, "window": {"time": 1}, "batch": {"size": BATCH}}
    (path / "v.json").write_text(json.dumps(view))


@dataclasses.dataclass
class Seen:
    """The results of the reads of a kind."""
    kind: str
    right: int = 0
    # by errno
    refused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    longest: float = 0  # seconds that a read took
    back: float = 0     # seconds until everything could be read again
    leaked: int = 0     # bytes
    wrong: list = dataclasses.field(default_factory=list)


class Mount:
    def __init__(self, origin, directory, url, options):
        self.directory = directory
        self.values = {name: (origin / f"{name}.bin").read_bytes() for name in ARRAYS}
        subprocess.run([PROGRAM, "mount", url, directory, "--view", origin / "v.json", *OPTIONS,
                        *options], check=True)
        self.pid = self.status()["pid"]

    def end(self):
        subprocess.run([PROGRAM, "umount", "--lazy", self.directory], check=False)

    def status(self):
        return json.loads((self.directory / ".batchfs/status.json").read_text())

    def batch(self, epoch, number, name):
        """(path, its data)"""
        size = BATCH * WIDTH * 4
        return (f"views/v/epoch-{epoch:04}/batch-{number:06}/{name}.npy",
                self.values[name][number * size : (number + 1) * size])

    def all(self):
        """Everything that is read: each batch of an epoch, each array."""
        found = [self.batch(0, number, name) for number in range(SAMPLES // BATCH)
                 for name in ARRAYS]
        return found + [(f"arrays/{name}/values.npy", self.values[name]) for name in ARRAYS]

    def read(self, path, whole, offset, size):
        """The errno of reading so much of the data of a file: 0, -1 when other bytes came."""
        try:
            fd = os.open(self.directory / path, os.O_RDONLY)
            try:
                return 0 if os.pread(fd, size, 4096
                                         + offset) == whole[offset : offset + size] else -1
            finally:
                os.close(fd)
        except OSError as error:
            return error.errno

    def gauges(self):
        """The gauges that are not zero."""
        told = self.status()
        levels = {name: told[name] for name in GAUGES} | {name: told["store"][name] for name in [
            "requests_in_flight", "requests_waiting"]}
        return {name: value for name, value in levels.items() if value != 0}


def at_random(mount, chance):
    """Parts of files, for ever: (path, its data, offset, size). The kernel asks for all of a large
    part piece by piece."""
    while True:
        path, whole = chance.choice(mount.all())
        yield path, whole, chance.randrange(len(whole)), chance.choice([4, 5000, 50000])


def in_order(mount, chance):
    """Epochs from a random position on."""
    first = chance.randrange(50 * SAMPLES // BATCH)
    for number in range(first, 1 << 30):
        for name in ARRAYS:
            path, whole = mount.batch(number * BATCH // SAMPLES, number % (SAMPLES // BATCH), name)
            yield path, whole, 0, len(whole)


def load(mount, kind, seconds, seed, seen):
    """Runs the readers for `seconds` and adds their results to `seen`. Returns how many reads
    succeeded."""
    until = time.monotonic() + seconds
    lock, before = threading.Lock(), seen.right

    def reader(number):
        chance = random.Random(f"{seed} {number}")
        for path, whole, offset, size in (at_random if number % 2 else in_order)(mount, chance):
            start = time.monotonic()
            result = mount.read(path, whole, offset, size)
            now = time.monotonic()
            with lock:
                seen.longest = max(seen.longest, now - start)
                if result == 0:
                    seen.right += 1
                elif result in kind.errors:
                    seen.refused[result] += 1
                else:
                    seen.wrong.append(
                        f"{path}: {'wrong bytes' if result == -1 else os.strerror(result)}")
            if now > until:
                return

    threads = [threading.Thread(target=reader, args=(number,), daemon=True)
               for number in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, until + LONG - time.monotonic()))
    if hanging := sum(thread.is_alive() for thread in threads):
        seen.wrong.append(f"{hanging} readers hang")
    return seen.right - before


def check(name, kind, mount, proxy, seconds, seed):
    """Returns the results."""
    seen = Seen(name)
    kind.fault.applies = is_chunk
    proxy.set(kind.fault)
    right = load(mount, kind, seconds, f"{seed} all", seen)
    if kind.always and right:
        seen.wrong.append(f"{right} reads succeeded although no request did")
    proxy.set(dataclasses.replace(kind.fault, share=0.3))
    load(mount, kind, seconds, f"{seed} some", seen)

    # Requests in flight may still fail; a repeated read succeeds.
    proxy.set(Fault())
    start = time.monotonic()
    for path, whole in mount.all():
        if not eventually(lambda: mount.read(path, whole, 0, len(whole)) == 0, LONG):
            seen.wrong.append(f"{path} cannot be read any more")
    seen.back = time.monotonic() - start
    if not eventually(lambda: not mount.gauges(), LONG):
        gauges = mount.gauges()
        seen.leaked = gauges.get("memory_used", 0)
        seen.wrong.append(f"not zero: {gauges}")
    if mount.status()["pid"] != mount.pid:
        seen.wrong.append("the process died")
    return seen


def check_some(names, origin, directory, options, seconds, seed):
    """These kinds, on a server and a mount of their own."""
    directory.mkdir()
    with FaultProxy(origin / "store") as proxy:
        mount = Mount(origin, directory, proxy.url, options)
        try:
            kinds = fault_kinds(proxy)
            # From now on the versions of all objects are known, and none of their bytes are in
            # memory.
            wrong = [path for path, whole in mount.all()
                     if mount.read(path, whole, 0, len(whole)) != 0]
            assert wrong == [] and eventually(lambda: not mount.gauges(), LONG), (
                wrong, mount.status())
            return [check(name, kinds[name], mount, proxy, seconds, f"{seed} {name}")
                    for name in names]
        finally:
            mount.end()


def run(names, seconds, at_once, seed, scratch):
    """The results for each kind. Each server has a process: what it does must not hold up another's
    readers."""
    with concurrent.futures.ProcessPoolExecutor(at_once,
                                                multiprocessing.get_context("fork")) as pool:
        pool.submit(make_store, scratch).result()
        running = [pool.submit(check_some, names[i::at_once], scratch, scratch / f"mnt{i}",
                               MODES[i % 2], seconds, seed) for i in range(at_once)]
        found = {seen.kind: seen for one in running for seen in one.result()}
    return [found[name] for name in names]


def table(found):
    yield f"{'kind':<32}{'right':>7}  {'refused':<20}{'longest wait':>12}{'back after':>12}"
    for seen in found:
        refused = ", ".join(f"{count} {ERRORS[number]}" for number, count in seen.refused.items())
        (yield f"{seen.kind:<32}{seen.right:>7}  {refused:<20}{seen.longest:>10.2f} "
               f"s{seen.back:>10.2f} s")


def main():
    names = list(fault_kinds(None))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5, help="of each kind, twice")
    parser.add_argument("--kind", action="append", choices=names, metavar="KIND",
                        help="this one; may be repeated")
    parser.add_argument("--at-once", type=int, default=8, help="so many mounts")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    names = arguments.kind or names
    with tempfile.TemporaryDirectory(prefix="batchfs-load-", ignore_cleanup_errors=True) as scratch:
        found = run(names, arguments.seconds, min(arguments.at_once, len(names)), arguments.seed,
                    pathlib.Path(scratch))
    wrong = [f"{seen.kind}: {text}" for seen in found for text in seen.wrong]
    print("\n".join(table(found)))
    print(json.dumps({"kinds": len(found), "seed": arguments.seed,
                      "right": sum(seen.right for seen in found),
                      "refused": sum(seen.refused.total() for seen in found), "wrong": len(wrong),
                      "leaked_bytes": sum(seen.leaked for seen in found),
                      "longest_wait": max(seen.longest for seen in found)}))
    for text in wrong[:40]:
        print(text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
