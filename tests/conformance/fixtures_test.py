"""Real Zarr data with the digests that zarr-python and zarrita.js gave.

The fixtures lie beside the project (../shared/fixtures); without them these tests are skipped.
Every row is either equal, or is listed in not_supported.txt with the reason. The list may only
shrink: a listed row that passes fails the test.
"""

import hashlib
import json
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parents[2] / "shared" / "fixtures"

pytestmark = pytest.mark.skipif(not (FIXTURES / "zarr-fixtures.tar.zst").exists(),
                                reason=f"no fixtures at {FIXTURES}")


def rows():
    for name in ("EXPECTED-v2.jsonl", "EXPECTED-v3.jsonl"):
        if (FIXTURES / name).exists():
            for line in (FIXTURES / name).read_text().splitlines():
                yield json.loads(line)


def not_supported():
    lines = (HERE / "not_supported.txt").read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fixtures")
    subprocess.run(["tar", "-I", "zstd", "-xf", FIXTURES / "zarr-fixtures.tar.zst", "-C", folder],
                   check=True)
    return folder


def little_endian_digest(values):
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes("C")).hexdigest()


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row["path"])
def test_row(batchfs, unpacked, row):
    listed = not_supported().get(row["path"])
    command = ("cat", unpacked / row["path"], "/", "--decode", "raw")
    if "sha256" not in row or row["digest_of"] != "bytes-le-C":
        # The oracle could not read it, or returned Python objects: reading it must end in order in
        # either case.
        done = batchfs.run(*command)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1:
            assert done.stderr.decode().startswith("batchfs: ") and done.stderr.count(b"\n") == 1
        return
    if listed is not None:
        assert listed.strip() in batchfs.refusal(*command)
        return
    values = batchfs.npy(*command)
    assert list(values.shape) == row["shape"]
    assert little_endian_digest(values) == row["sha256"]


def test_the_shard_that_is_too_small_is_refused(batchfs, unpacked):
    store = unpacked / "gdal/autotest/gdrivers/data/zarr/v3/sharing_too_small_data_file/ar"
    assert "cat failed" in batchfs.refusal("cat", store, "/", "--decode", "raw")
