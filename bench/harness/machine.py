"""The machine that a benchmark runs on."""

import mmap
import os
import platform
import time


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1),
            "kernel": platform.release(), "load": os.getloadavg()[0],
            "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}


def touch_memory():
    """Writes to most of the free memory once. A virtual machine gets its memory from the host when
    it is first touched, at a fraction of its speed; who comes first would pay for all."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = mmap.mmap(-1, max(free * 3 // 4, mmap.PAGESIZE))
    memory.madvise(mmap.MADV_HUGEPAGE)
    for offset in range(0, len(memory), mmap.PAGESIZE):
        memory[offset] = 1
    memory.close()
