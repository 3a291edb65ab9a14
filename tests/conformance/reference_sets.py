"""Reference sets that tests write by hand."""

import json

import numpy as np
import pandas as pd


def cat(batchfs, *arguments):
    return batchfs.npy("cat", *arguments, "--decode", "raw")


def write(path, refs):
    path.write_text(refs if isinstance(refs, str) else json.dumps(refs))
    return path


def array_of(shape, chunks, dtype="<i4", **more):
    return json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype,
                       "fill_value": -1, "order": "C", "compressor": None, "filters": None, **more})


def write_steps(folder):
    """0, 1, ... 59 in files of 20, after four other bytes."""
    values = np.arange(60, dtype="<i4")
    for number in range(3):
        (folder / f"f{number}.bin").write_bytes(b"head"
                                                + values[20 * number:20 * number + 20].tobytes())
    return values


def one(tmp_path, file, *range, name="one.json"):
    refs = {".zgroup": "{\"zarr_format\": 2}", "a/.zarray": array_of([10], [10]),
            "a/0": [file, *range]}
    return write(tmp_path / name, refs)


def records(path, offset, size, raw, where, **options):
    columns = {"path": path, "offset": np.asarray(offset, "i8"), "size": np.asarray(size, "i8"),
               "raw": raw}
    where.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({key: value for key, value in columns.items() if value is not None}).to_parquet(
        where, **options)


def parquet_folder(where, array, record_size, name="a"):
    where.mkdir(parents=True, exist_ok=True)
    write(where / ".zmetadata",
          {"metadata": {".zgroup": {"zarr_format": 2}, f"{name}/.zarray": json.loads(array),
                        f"{name}/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]}},
           "record_size": record_size})
    return where
