#!/usr/bin/env python3
"""Reference sets and Icechunk repositories of many references: how soon they are open, and what
memory they take.

    build/venv/bin/python bench/references.py                # 1,000 NetCDF-4 files, 10^6 references
    build/venv/bin/python bench/references.py --many 10000000  # 10^7 references to one file
    build/venv/bin/python bench/references.py --files 20 --rounds 1  # tests the benchmark itself

The files are written by h5netcdf (chunks of one step, shuffle and zlib), their references by
kerchunk, as one set in JSON and one in Parquet files. Beside batchfs: xarray and zarr-python on
fsspec's reference file system. Each opens the set and reads the same steps, which are compared with
h5netcdf. --many makes sets with a script: in JSON, in Parquet files, and virtual chunks in an
Icechunk repository. Everything is read once before measuring.
"""

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5netcdf
import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAT, LON = 16, 24


def values_of(file, steps):
    rng = np.random.default_rng(file)
    return (rng.normal(280, 10, (steps, LAT, LON)).round(1)).astype("f4")


def write_file(arguments):
    path, number, steps = arguments
    if not path.exists():
        with h5netcdf.File(path, "w") as out:
            out.dimensions = {"time": steps, "latitude": LAT, "longitude": LON}
            out.create_variable("t2m", ("time", "latitude", "longitude"),
                                data=values_of(number, steps), chunks=(1, LAT, LON),
                                compression="gzip", compression_opts=4, shuffle=True)
            out.create_variable("time", ("time",),
                                data=np.arange(number * steps, (number + 1) * steps))
    import kerchunk.hdf
    return kerchunk.hdf.SingleHdf5ToZarr(str(path), inline_threshold=0).translate()["refs"]


def make_files(folder, files, steps):
    """The set of all files in JSON and in Parquet files."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    jobs = [(data / f"t2m_{f:04}.nc", f, steps) for f in range(files)]
    refs = {}
    with multiprocessing.Pool() as pool:
        for number, own in enumerate(pool.imap(write_file, jobs, chunksize=4)):
            for key, value in own.items():
                if match := re.fullmatch(r"t2m/(\d+)\.0\.0", key):
                    refs[f"t2m/{number * steps + int(match[1])}.0.0"] = value
                elif number == 0 and key in (".zgroup", "t2m/.zarray", "t2m/.zattrs"):
                    refs[key] = value
    array = json.loads(refs["t2m/.zarray"])
    array["shape"][0] = files * steps
    refs["t2m/.zarray"] = json.dumps(array)
    (folder / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))
    from kerchunk.df import refs_to_dataframe
    refs_to_dataframe({"refs": refs}, str(folder / "set.parq"))
    return {"json": folder / "set.json", "parquet": folder / "set.parq"}, len(refs)


def make_many(folder, references):
    """One file of 40 bytes a chunk, and sets that refer to it."""
    steps = references // 10
    (folder / "many").mkdir(exist_ok=True)
    # chunk i, j is row i % 100, columns 10 j to 10 j + 9
    np.arange(100 * 100, dtype="<f4").tofile(folder / "many/data.bin")
    sets = {"json": folder / "many/set.json", "parquet": folder / "many/set.parq",
            "icechunk": folder / "many/repository"}
    array = {"zarr_format": 2, "shape": [steps, 100], "chunks": [1, 10], "dtype": "<f4",
             "compressor": None, "filters": None, "fill_value": None, "order": "C"}
    attributes = {"_ARRAY_DIMENSIONS": ["time", "x"]}
    with sets["json"].open("w") as out:
        head = {".zgroup": '{"zarr_format": 2}', "t2m/.zarray": json.dumps(array),
                "t2m/.zattrs": json.dumps(attributes)}
        out.write('{"version": 1, "refs": ' + json.dumps(head)[:-1])
        for step in range(steps):
            out.write("".join(f',\n"t2m/{step}.{j}": ["{folder}/many/data.bin", '
                              f'{400 * (step % 100) + 40 * j}, 40]' for j in range(10)))
        out.write("}}")
    import fastparquet
    import pandas as pd
    record = 100_000
    (sets["parquet"] / "t2m").mkdir(parents=True, exist_ok=True)
    (sets["parquet"] / ".zmetadata").write_text(json.dumps({"record_size": record, "metadata": {
        ".zgroup": {"zarr_format": 2}, "t2m/.zarray": array, "t2m/.zattrs": attributes}}))
    offsets = (400 * (np.arange(record) // 10 % 100) + 40 * (np.arange(record) % 10)).astype("i8")
    for number in range(-(-references // record)):
        rows = min(record, references - number * record)
        table = pd.DataFrame({"path": [f"{folder}/many/data.bin"] * rows,
                              "offset": offsets[:rows], "size": np.full(rows, 40, "i8"),
                              "raw": pd.Series([None] * rows, dtype=object)})
        fastparquet.write(str(sets["parquet"] / f"t2m/refs.{number}.parq"), table,
                          compression="zstd", stats=False,
                          object_encoding={"raw": "bytes", "path": "utf8"},
                          has_nulls=["path", "raw"])
    try:
        import icechunk
    except ImportError:
        del sets["icechunk"]
        return sets, references
    import zarr
    shutil.rmtree(sets["icechunk"], ignore_errors=True)
    place = f"file://{folder}/many/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(
        place, icechunk.local_filesystem_store(str(folder / "many"))))
    session = icechunk.Repository.create(icechunk.local_filesystem_storage(str(sets["icechunk"])),
                                         config=config).writable_session("main")
    zarr.group(session.store, zarr_format=3).create_array("t2m", shape=(steps, 100), chunks=(1, 10),
                                                          dtype="f4", dimension_names=["time", "x"],
                                                          compressors=None, filters=None)
    for begin in range(0, steps, 20_000):
        session.store.set_virtual_refs(
            "t2m",
            [icechunk.VirtualChunkSpec([i, j], f"{place}data.bin", 400 * (i % 100) + 40 * j, 40)
             for i in range(begin, min(steps, begin + 20_000)) for j in range(10)],
            validate_containers=False)
    session.commit("references")
    return sets, references


def with_batchfs(program, store, folder, steps, options):
    """Seconds until it is mounted and until the steps are read; MB at most and afterwards; the
    steps."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=folder))
    began = time.perf_counter()
    subprocess.run([program, "mount", store, directory, *options], check=True)
    mounted = time.perf_counter() - began
    try:
        with (directory / "arrays/t2m/values.npy").open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            begin, size = file.tell(), math.prod(shape[1:]) * dtype.itemsize
            read = np.stack([np.frombuffer(os.pread(file.fileno(), size, begin + step * size),
                                           dtype).reshape(shape[1:]) for step in steps])
        seconds = time.perf_counter() - began
        pid = json.loads((directory / ".batchfs/status.json").read_text())["pid"]
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        peak, left = (int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1024
                      for name in ("VmHWM", "RssAnon"))
    finally:
        subprocess.run([program, "umount", directory], check=True)
        directory.rmdir()
    return mounted, seconds, peak, left, read


def fsspec_child(store, steps):
    began = time.perf_counter()
    import xarray as xr
    began = time.perf_counter()
    options = {"fo": str(store), "remote_protocol": "file", "asynchronous": False}
    array = xr.open_dataset("reference://", engine="zarr", decode_cf=False, chunks=None,
                            backend_kwargs={"consolidated": False, "zarr_format": 2,
                                            "storage_options": options})["t2m"]
    opened = time.perf_counter() - began
    read = np.stack([array[step].values for step in steps])
    seconds = time.perf_counter() - began
    np.save(sys.stdout.buffer, read)
    print(opened, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
          file=sys.stderr)


def with_fsspec(store, steps):
    done = subprocess.run([sys.executable, __file__, "--fsspec", store, *map(str, steps)],
                          capture_output=True, check=False)
    if done.returncode != 0:
        return None
    import io
    opened, seconds, peak = map(float, done.stderr.split()[-3:])
    return opened, seconds, peak, float("nan"), np.load(io.BytesIO(done.stdout))


def measure(name, contenders, rounds, expected):
    found = {contender: [] for contender in contenders}
    for _ in range(rounds):
        for contender, run in contenders.items():
            result = run()
            if result is None:
                found[contender] = None
                continue
            assert np.array_equal(result[-1], expected), (name, contender)
            found[contender].append(result[:-1])
    for contender, results in found.items():
        if results is None:
            print(f"{name:10} {contender:8} failed")
            continue
        opened, seconds, peak, left = (statistics.median(column)
                                       for column in zip(*results, strict=True))
        print(f"{name:10} {contender:8} {opened:9.2f} {seconds:9.2f} {peak:9.0f} {left:9.0f}",
              flush=True)


def main():
    if sys.argv[1:2] == ["--fsspec"]:
        return fsspec_child(sys.argv[2], list(map(int, sys.argv[3:])))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=1000, help="of each file")
    parser.add_argument("--many", type=int, metavar="N",
                        help="instead of files: N references to one file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path,
                        help="where the data goes, and stays (default: a new folder in /tmp)")
    arguments = parser.parse_args()
    program = os.environ.get("BATCHFS", str(ROOT / "build/batchfs"))
    folder = (arguments.folder
              or pathlib.Path(tempfile.mkdtemp(prefix="batchfs-references-"))).resolve()
    folder.mkdir(exist_ok=True)
    try:
        if arguments.many:
            sets, references = make_many(folder, arguments.many)
            steps = [0, arguments.many // 20, arguments.many // 10 - 1]
            expected = np.stack([np.arange(100, dtype="f4") + 100 * (step % 100) for step in steps])
            options = ["--virtual", f"file://{folder}/many/"]
        else:
            sets, references = make_files(folder, arguments.files, arguments.chunks)
            steps = [0, arguments.files * arguments.chunks // 2,
                     arguments.files * arguments.chunks - 1]
            expected = []
            for step in steps:
                with h5py.File(folder / f"data/t2m_{step // arguments.chunks:04}.nc") as file:
                    expected.append(file["t2m"][step % arguments.chunks])
            expected = np.stack(expected)
            options = ["--virtual", f"file://{folder}/"]
        print(f"{references:,} references; seconds until open, until {len(steps)} steps are read; "
              "MB at most, and kept")
        for name, store in sets.items():
            contenders = {
                "batchfs": lambda store=store: with_batchfs(program, store, folder, steps, options)}
            if name != "icechunk":
                contenders["fsspec"] = lambda store=store: with_fsspec(store, steps)
            measure(name, contenders, arguments.rounds, expected)
    finally:
        if not arguments.folder:
            shutil.rmtree(folder)
    return None


if __name__ == "__main__":
    sys.exit(main())
