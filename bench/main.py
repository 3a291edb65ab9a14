"""bench/run: batchfs beside its peers, each workload a file of this folder. `bench/run --help` says how."""

import argparse
import importlib
import json
import mmap
import os
import pathlib
import platform
import sys
import time

WORKLOADS = ["local", "raw", "w1", "w2", "w3", "handoff", "mount"]
ROOT = pathlib.Path(__file__).resolve().parents[1]


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1),
            "kernel": platform.release(), "load": os.getloadavg()[0],
            "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}


def touch_memory():
    """Writes to most of the free memory once. A virtual machine gets its memory from the host when it is first
    touched, at a fraction of its speed; who comes first would pay for all."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = mmap.mmap(-1, max(free * 3 // 4, mmap.PAGESIZE))
    memory.madvise(mmap.MADV_HUGEPAGE)
    for offset in range(0, len(memory), mmap.PAGESIZE):
        memory[offset] = 1
    memory.close()


def main():
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Runs batchfs and its peers in turn on the same data, checks every delivered "
        "byte, and prints their figures side by side.",
        epilog="example: bench/run local --json build/local.json")
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS, metavar="WORKLOAD",
                        help="which ones: " + ", ".join(WORKLOADS))
    parser.add_argument("--peers", help="only these contenders: names as the table has them, joined by commas")
    parser.add_argument("--only", help="only the parts of a workload whose name contains this")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured; medians count (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 is the written size; 0.1 tests the benchmark itself")
    parser.add_argument("--latency", type=float, default=None, metavar="MS",
                        help="read over HTTP from the origin server, which answers each request this late")
    parser.add_argument("--steps", type=lambda text: [float(step) for step in text.split(",")], default=[0, 0.1],
                        metavar="SECONDS,…", help="time between two batches, as a training step takes (w1; default 0,0.1)")
    parser.add_argument("--data", type=pathlib.Path, help="where the data is kept (default: $BATCHFS_BENCH_DATA or build/bench-data)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to this file")
    arguments = parser.parse_args()
    arguments.data = (arguments.data or pathlib.Path(os.environ.get("BATCHFS_BENCH_DATA", ROOT / "build/bench-data"))).resolve()
    arguments.peers = arguments.peers.split(",") if arguments.peers else None
    touch_memory()
    here = machine()
    print(", ".join(f"{name} {value}" for name, value in here.items()))
    results = {"machine": here, "scale": arguments.scale, "rounds": arguments.rounds}
    ok = True
    for name in arguments.workloads:
        print(f"\n== {name}")
        results[name], good = importlib.import_module(name).run(arguments)
        ok = ok and good
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    if not ok:
        print("\nSome contenders failed or delivered other bytes: see above.")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
