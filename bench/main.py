"""bench/run: batchfs beside its peers, each workload a file of this folder. `bench/run --help` says
how."""

import argparse
import importlib
import json
import os
import pathlib
import sys

from harness.machine import machine, touch_memory

WORKLOADS = ["local", "raw", "w1", "w2", "w3", "samples", "mixing", "sources", "repository",
             "handoff", "mount", "rechunk", "guard"]
ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser(prog="bench/run", description="Runs batchfs and its peers "
                                         "in turn on the same data, checks every delivered byte, "
                                         "and prints their figures side by side.",
                                     epilog="example: bench/run local --json build/local.json")
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS, metavar="WORKLOAD",
                        help="which ones: " + ", ".join(WORKLOADS))
    parser.add_argument("--peers",
                        help="only these contenders: names as the table has them, joined by commas")
    parser.add_argument("--only", help="only the parts of a workload whose name contains this")
    parser.add_argument("--rounds", type=int, default=5,
                        help="how often each is measured; medians count (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 is the "
                            "written size; 0.1 tests the benchmark itself")
    parser.add_argument("--latency", type=float, default=None, metavar="MS",
                        help="read over HTTP from the origin server, which answers "
                             "each request this late")
    parser.add_argument("--steps", type=lambda text: [float(step) for step in text.split(",")],
                        default=[0, 0.1], metavar="SECONDS,…", help="time between two batches, as "
                            "a training step takes (w1; default 0,0.1)")
    parser.add_argument("--data", type=pathlib.Path,
                        help="where the data is kept (default: $BATCHFS_BENCH_DATA "
                             "or build/bench-data)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write every measurement to this file")
    parser.add_argument("--record", action="store_true",
                        help="keep the ratios of guard, for later runs to be compared with")
    arguments = parser.parse_args()
    arguments.data = (
        arguments.data
        or pathlib.Path(os.environ.get("BATCHFS_BENCH_DATA", ROOT / "build/bench-data"))).resolve()
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
        print("\nSome contenders failed, delivered other bytes, or fell behind: see above.")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
