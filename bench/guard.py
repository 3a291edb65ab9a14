"""guard: short versions of the ratios that batchfs is held to, beside those of the last recorded
run.

    bench/run guard             measures, and names what fell by more than 15 %
    bench/run guard --record    measures, and keeps the ratios in bench/guard.json

Only ratios of one run are compared, and only between machines of one kind (processor and cores).
Each is batchfs over its peer, or over its bound: larger is better. A ratio that fell is measured
again before it is reported.
"""

import argparse
import json
import pathlib

import local
import raw
import w1
import w3
from harness.machine import machine
from harness.table import text

RECORD = pathlib.Path(__file__).with_name("guard.json")
FELL = 0.85  # of the recorded ratio


def of_local(arguments):
    rates = local.run(arguments(only="blosc-lz4", scale=0.25,
                                peers=["batchfs-values", "batchfs-view", "batches-mmap",
                                       "batches-library", "zarr-zarrs"]))[0]["blosc-lz4"]["rates"]
    return {"values.npy / zarrs": rates["batchfs-values"] / rates["zarr-zarrs"],
            "whole arrays, mapped / zarrs": rates["batchfs-view"] / rates["zarr-zarrs"],
            "pairs, mapped / library": rates["batches-mmap"] / rates["batches-library"]}


def of_w1(arguments):
    found, = w1.run(arguments(only="blosc-lz4", scale=1, steps=[0], peers=[
        "batchfs", "batchfs-library", "batchfs-in-memory", "batchfs-library-in-memory",
        "batchfs-block", "tensorstore", "tensorstore-in-memory", "insitubatch"]))[0].values()
    rate = {name: figures["batches_s"] for name, figures in found.items()}
    return {"W1 global, files / TensorStore": rate["batchfs"] / rate["tensorstore"],
            "W1 global, library / TensorStore": rate["batchfs-library"] / rate["tensorstore"],
            "W1 in memory, files / TensorStore": rate["batchfs-in-memory"]
                / rate["tensorstore-in-memory"],
            "W1 in memory, library / TensorStore": rate["batchfs-library-in-memory"]
                / rate["tensorstore-in-memory"],
            "W1 global, files / library": rate["batchfs"] / rate["batchfs-library"],
            "W1 block, files / insitubatch": rate["batchfs-block"] / rate["insitubatch"]}


def of_waits(arguments):
    found, = w1.run(arguments(only="blosc-lz4", scale=1, steps=[0.1], latency=50,
                              peers=["batchfs", "tensorstore"]))[0].values()
    waits = {"mean wait": "wait_ms", "first 60, mean wait": "early_ms"}
    return {f"W1 at 50 ms, {name} of TensorStore / files": found["tensorstore"][key]
                / found["batchfs"][key] for name, key in waits.items()}


def of_w3(arguments):
    ratios = {}
    for name, steps in {"one step": "c1", "8 steps": "c8", "32 steps": "c32"}.items():
        found, = w3.run(arguments(only=steps, scale=0.25, peers=["batchfs-global", "batchfs-block",
                                                                 "insitubatch"]))[0].values()
        ratios |= {f"W3 {name} a chunk, block / insitubatch": found["batchfs-block"]["batches_s"]
                       / found["insitubatch"]["batches_s"],
                   f"W3 {name} a chunk, "
                   "delivered / decoded": 1 / found["batchfs-global"]["decoded_per_delivered"]}
    return ratios


def of_raw(arguments):
    return {f"raw GETs, {network}: files / GETs": found["batchfs"] / found["get"]
            for network, found in raw.run(arguments(scale=0.25, peers=None))[0].items()}


PARTS = [of_local, of_w1, of_waits, of_w3, of_raw]


def run(given):
    def arguments(**changes):
        return argparse.Namespace(**{**vars(given), "latency": None, "only": None, "rounds": 1,
                                     **changes})

    here = machine()
    kind = f"{here['cpu']}, {here['cores']} cores"
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    before = recorded.get(kind, {}).get("ratios", {})
    ratios, fell = {}, set()
    for part in PARTS:
        found = part(arguments)
        if any(value < FELL * before.get(name, 0) for name, value in found.items()):
            again = part(arguments)
            found = {name: max(value, again[name]) for name, value in found.items()}
        ratios |= found
    rows = []
    for name, value in ratios.items():
        if value < FELL * before.get(name, 0):
            fell.add(name)
        rows.append([name, value, before.get(name), "fell" if name in fell else ""])
    print(f"\nRatios on {kind}, beside those recorded "
          f"{recorded.get(kind, {}).get('time', 'never')}")
    print(text(rows, ["", "now", "recorded", ""]))
    if given.record:
        recorded[kind] = {"time": here["time"],
                          "ratios": {name: round(value, 3) for name, value in ratios.items()}}
        RECORD.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    return {"ratios": ratios, "fell": sorted(fell)}, not fell
