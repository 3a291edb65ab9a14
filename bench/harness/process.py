"""Running a contender in a process of its own, watching the memory of it and of all it starts."""

import dataclasses
import json
import mmap
import pathlib
import subprocess
import sys
import tempfile
import time

import psutil

BENCH = pathlib.Path(__file__).resolve().parents[1]
SAMPLE_SECONDS = 0.1


class Failed(Exception):
    """A contender ended with an error."""


@dataclasses.dataclass
class Result:
    spawn: float      # seconds from starting the process to the end of its imports
    waits: list       # seconds per batch, the first from opening the store
    seconds: float    # opening the store to the last batch
    bytes: int        # delivered
    cpu: float        # seconds of all its processes, without the imports
    read: int         # bytes that its processes read from files
    memory: int       # bytes, peak; memory that processes share counts once
    report: dict      # the contender's own report
    sums: dict | None

    @property
    def rate(self):
        return self.bytes / self.seconds

    @property
    def after_first(self):
        """Bytes per second from the second batch on."""
        return self.bytes * (1 - 1 / len(self.waits)) / max(1e-9, self.seconds - self.waits[0])


def memory_of(process):
    """(private, shared) resident bytes."""
    private = shared = 0
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            private = int(line.split()[1]) << 10
        elif line.startswith("RssShmem:"):
            shared = int(line.split()[1]) << 10
    return private, shared


class Watch:
    """Peak memory, bytes read and processor time of a tree of processes."""

    def __init__(self, pid):
        self.root = psutil.Process(pid)
        self.memory = 0
        self.read, self.cpu = {}, {}

    def sample(self):
        private_sum = shared_most = 0
        try:
            processes = [self.root, *self.root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in processes:
            try:
                private, shared = memory_of(process)
                self.read[process.pid] = process.io_counters().read_chars
                self.cpu[process.pid] = sum(process.cpu_times()[:2])
            except (psutil.Error, OSError):
                continue
            private_sum += private
            shared_most = max(shared_most, shared)
        self.memory = max(self.memory, private_sum + shared_most)


def get_memory_from_host(most=4 << 30):
    """Touches memory once and releases it. On a virtual machine the first use of memory takes the
    host as long as some contenders take for their work; the first contender, or the one that keeps
    most, would pay for all."""
    size = min(most, psutil.virtual_memory().free // 2) // mmap.PAGESIZE * mmap.PAGESIZE
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for start in range(0, size, mmap.PAGESIZE):
            memory[start] = 1


def run(contender, arguments, *, timeout=1800, **options):
    """Runs `contender` ("module:function") and gives its Result. Options: step, verify, limit."""
    job = {"contender": contender, "arguments": arguments, "spawned": time.monotonic(), **options}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([sys.executable, "-m", "harness.child", json.dumps(job)],
                                   cwd=BENCH, stdout=out, stderr=errors)
        watch = Watch(process.pid)
        try:
            while process.poll() is None:
                watch.sample()
                if time.monotonic() - job["spawned"] > timeout:
                    raise Failed(f"{contender} took longer than {timeout} s")
                time.sleep(SAMPLE_SECONDS)
        finally:
            if process.poll() is None:
                for child in watch.root.children(recursive=True):
                    child.terminate()
                process.kill()
                process.wait()
        out.seek(0), errors.seek(0)
        if process.returncode != 0:
            raise Failed(f"{contender} failed: "
                         f"{errors.read().decode(errors='replace').strip()[-1000:]}")
        answer = json.loads(out.read())
    main = answer.pop("pid")
    answer["read"] += sum(read for pid, read in watch.read.items() if pid != main)
    # Workers of workers are nobody's waited-for children; what was waited for is counted exactly.
    answer["cpu"] = answer.pop("own_cpu") + max(
        answer.pop("children_cpu"), sum(cpu for pid, cpu in watch.cpu.items() if pid != main))
    return Result(memory=watch.memory, **answer)
