"""A mount of a reference set shows the chunks of the files that it refers to, in little memory."""

import json
import pathlib
import re

import numpy as np
import pytest

ARRAY = {"zarr_format": 2, "order": "C", "compressor": None, "filters": None, "fill_value": -1}


def array(shape, chunks, dtype):
    return json.dumps({**ARRAY, "shape": shape, "chunks": chunks, "dtype": dtype})


@pytest.fixture
def directory(tmp_path):
    made = pathlib.Path(tmp_path / "mnt")
    made.mkdir()
    return made


def daemon(directory):
    return json.loads((directory / ".batchfs/status.json").read_text())["pid"]


def test_batches_and_values_of_a_set(good, tmp_path, directory):
    values = np.arange(80, dtype="<i4").reshape(8, 10)
    (tmp_path / "a.bin").write_bytes(b"head" + values.tobytes())
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": array([8, 10], [2, 10], "<i4"),
            "a/.zattrs": '{"_ARRAY_DIMENSIONS": ["t", "x"]}',
            **{f"a/{i}.0": ["a.bin", 4 + 80 * i, 80] for i in range(4)}}
    (tmp_path / "r.json").write_text(json.dumps({"version": 1, "refs": refs}))
    (tmp_path / "view.json").write_text('{"window": {"t": 2}, "variables": ["a"], "batch": '
                                        '{"size": 2}, "order": {"shuffle": "none"}, '
                                        '"formats": ["npy"]}')
    good("mount", tmp_path / "r.json", directory, "--view", tmp_path / "view.json")
    try:
        assert np.array_equal(np.load(directory / "arrays/a/values.npy"), values)
        batch = np.load(next((directory / "views").rglob("batch-000001.npy")))
        assert np.array_equal(batch.squeeze(), values[4:].reshape(2, 2, 10))
    finally:
        good("umount", directory)


def test_a_million_references_take_less_than_200_mb(good, tmp_path, directory):
    """1,000 files with 1,000 chunks each."""
    files, steps = 1000, 1000
    text = ['{"version": 1, "refs": {".zgroup": "{\\"zarr_format\\": 2}"',
            f'"t2m/.zarray": {json.dumps(array([files * steps, 100, 100], [1, 100, 100], "<f4"))}',
            '"t2m/.zattrs": "{\\"_ARRAY_DIMENSIONS\\": [\\"time\\", \\"y\\", \\"x\\"]}"']
    text += [f'"t2m/{f * steps + i}.0.0": ["s3://example-archive/reanalysis/hourly/t2m_{f:04}.nc", '
             f'{20000 + 40000 * i}, 40000]' for f in range(files) for i in range(steps)]
    (tmp_path / "r.json").write_text(",".join(text) + "}}")
    good("mount", tmp_path / "r.json", directory)
    try:
        status = pathlib.Path(f"/proc/{daemon(directory)}/status").read_text()
        most = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
        assert most < 200 << 10, most
        assert (directory / "arrays/t2m").is_dir()
    finally:
        good("umount", directory)
