"""The decompression library alone, on every chunk of a store: the bound (bare.cc)."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "bench_bare"


def chunk_files(store, variables):
    metadata = {"zarr.json", ".zarray", ".zattrs", ".zgroup"}
    files = []
    for name in variables:
        files += sorted(str(file) for file in (pathlib.Path(store) / name).rglob("*")
                        if file.is_file() and file.name not in metadata)
    return files


def rate(store, variables, codec, chunk_bytes, threads=None):
    """Decoded bytes per second."""
    done = subprocess.run([PROGRAM, codec.partition("-")[0], str(threads or os.cpu_count()),
                           str(chunk_bytes)], input="\n".join(chunk_files(store, variables)),
                          capture_output=True, text=True, check=True)
    decoded, seconds = done.stdout.split()
    return int(decoded) / float(seconds)
