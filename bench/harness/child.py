"""One contender of a benchmark, run in a process of its own: started by harness.process, answers
with JSON.

A contender is a generator function `contender(report, **arguments)` that yields `(tag, arrays)`: a
batch, or a piece of an array that is read as a whole. Its module's imports come before the clock
starts; opening the store comes after. A yielded value is valid until the next one is requested.
"""

import importlib
import json
import os
import resource
import sys
import time
import typing
import zlib

import numpy as np

PAGE = 4096


class Elsewhere(typing.NamedTuple):
    """A batch that another process of the contender has read, touched and, when asked, summed."""
    nbytes: int
    sum: int


def flat(array):
    return np.ascontiguousarray(array).reshape(-1).view("u1")


def touch(array):
    """Reads a byte of each page, so that a mapped file counts as delivered only when its pages are
    there."""
    if array.size and array.flags.c_contiguous:
        return int(array.reshape(-1).view("u1")[::PAGE].sum())
    return 0 if array.size == 0 else float(array.sum())


def cpu_seconds(who):
    return sum(resource.getrusage(who)[:2])


def read_characters():
    with open("/proc/self/io") as io:
        return int(io.readline().split()[1])


def main():
    job = json.loads(sys.argv[1])
    module, _, name = job["contender"].partition(":")
    contender = getattr(importlib.import_module(module), name)
    step, verify, limit = job.get("step", 0), job.get("verify", False), job.get("limit")
    report, waits, sums, delivered = {"verify": verify}, [], {}, 0
    imported = time.monotonic()
    cpu, read = cpu_seconds(resource.RUSAGE_SELF), read_characters()
    batches = contender(report, **job["arguments"])
    started = before = time.monotonic()
    ended = started
    for tag, arrays in batches:
        for array in arrays:
            if not isinstance(array, Elsewhere):
                touch(array)
        ended = time.monotonic()
        waits.append(ended - before)
        for array in arrays:
            delivered += array.nbytes
            if isinstance(array, Elsewhere):
                sums[tag] = array.sum
            elif verify:
                sums[tag] = zlib.crc32(flat(array), sums.get(tag, 0))
        array = arrays = None  # a mount that is mapped cannot end
        if limit and len(waits) >= limit:
            break
        if step:
            time.sleep(step)
        before = time.monotonic()
    read = read_characters() - read
    batches.close()  # the contender ends its processes and fills in its report
    json.dump({"spawn": imported - job["spawned"], "waits": waits, "seconds": ended - started,
               "bytes": delivered, "own_cpu": cpu_seconds(resource.RUSAGE_SELF) - cpu,
               "children_cpu": cpu_seconds(resource.RUSAGE_CHILDREN), "read": read,
               "pid": os.getpid(), "report": report, "sums": sums if verify else None}, sys.stdout)


if __name__ == "__main__":
    from harness.child import main  # so that this module is one, also for contenders that import it
    main()
