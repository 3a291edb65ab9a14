"""Reference sets (kerchunk, VirtualiZarr), against the files that they refer to, read with h5py and
scipy, against xarray with fsspec, and against real sets with the digests that fsspec gave.

The real ones lie beside the project (../shared/fixtures/virtual); without them those tests are
skipped.
"""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re

import numcodecs
import numpy as np
import pytest

pytest.importorskip("kerchunk", reason="tools/dependencies test installs kerchunk")
import h5netcdf
import h5py
import kerchunk.combine
import kerchunk.df
import kerchunk.hdf
import kerchunk.netCDF3
import pandas as pd
import scipy.io
import xarray as xr
from conftest import PROGRAM
from measured import measure
from reference_sets import array_of, cat, one, parquet_folder, records, write, write_steps

VIRTUAL = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "fixtures" / "virtual"
real = pytest.mark.skipif(not VIRTUAL.exists(), reason=f"no fixtures at {VIRTUAL}")


def rows(wanted):
    if not VIRTUAL.exists():
        return []
    found = [json.loads(line) for line in (VIRTUAL / "EXPECTED.jsonl").read_text().splitlines()]
    return [row for row in found if row["store"].startswith(("kerchunk/", "titiler-xarray/"))
            and wanted(row)]



def digest(values):
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes("C")).hexdigest()


@real
@pytest.mark.parametrize("row", rows(lambda row: "sha256" in row), ids=lambda row: row["path"])
def test_values_are_those_of_fsspec(batchfs, row):
    values = cat(batchfs, VIRTUAL / row["store"], row["array"])
    assert list(values.shape) == row["shape"] and digest(values) == row["sha256"]


@real
def test_a_list_of_sets_is_refused_by_name(batchfs):
    line = batchfs.refusal("inspect", VIRTUAL / "kerchunk/hrrr.wrfsfcf.subset.json")
    assert "a list of reference sets" in line and "MultiZarrToZarr" in line


# ---- sets that kerchunk makes ----

@pytest.fixture(scope="module")
def netcdf4(tmp_path_factory):
    """A file with what HDF5 stores in chunks, and the references that kerchunk made of it."""
    folder = tmp_path_factory.mktemp("netcdf4")
    random = np.random.default_rng(3)
    with h5py.File(folder / "a.h5", "w", libver="latest") as file:
        steps = (random.normal(size=(7, 20, 30)) * 100).astype("i4")
        file.create_dataset("plain", data=steps, chunks=(2, 7, 30))
        file.create_dataset("zipped", data=steps, chunks=(3, 10, 10), compression="gzip",
                            shuffle=True)
        file.create_dataset("checked", data=steps.astype("f8"), chunks=(3, 10, 10), fletcher32=True)
        file.create_dataset("all", data=steps.astype("f4"), chunks=(3, 10, 10), compression="gzip",
                            shuffle=True, fletcher32=True)
        file.create_dataset("lzf", data=steps, chunks=(3, 10, 10), compression="lzf", shuffle=True)
        file.create_dataset("contiguous", data=random.normal(size=(50, 40)))
        file.create_dataset("big_endian", data=steps.astype(">i2"), chunks=(7, 20, 10))
        file.create_dataset("scalar", data=np.float32(2.5))
        sparse = file.create_dataset("sparse", shape=(20, 20), chunks=(5, 5), dtype="f4",
                                     fillvalue=-9)
        sparse[6:8, 11:13] = 1
        file.create_dataset("deep/er/group", data=np.arange(10, dtype="u1"), chunks=(4,))
    made = kerchunk.hdf.SingleHdf5ToZarr(str(folder / "a.h5"), inline_threshold=0).translate()
    # kerchunk 0.2.10 leaves out arrays with a checksum or LZF
    with h5py.File(folder / "a.h5") as file:
        for name, filters in CHECKED.items():
            add_chunked(made["refs"], file[name], filters, str(folder / "a.h5"))
    return folder, made


CHECKED = {"checked": [{"id": "fletcher32"}],
           "lzf": [{"id": "shuffle", "elementsize": 4}, {"id": "imagecodecs_lzf"}],
           "all": [{"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 4},
                   {"id": "fletcher32"}]}


def add_chunked(refs, data, filters, file):
    """Adds a chunked dataset like VirtualiZarr does."""
    refs[f"{data.name[1:]}/.zarray"] = json.dumps(
        {"zarr_format": 2, "shape": data.shape, "chunks": data.chunks, "dtype": data.dtype.str,
         "fill_value": 0, "order": "C", "compressor": None, "filters": filters, "attributes": {}})
    for number in range(data.id.get_num_chunks()):
        chunk = data.id.get_chunk_info(number)
        index = ".".join(str(o // c) for o, c in zip(chunk.chunk_offset, data.chunks, strict=True))
        refs[f"{data.name[1:]}/{index}"] = [file, chunk.byte_offset, chunk.size]


ARRAYS = ["plain", "zipped", "checked", "all", "lzf", "contiguous", "big_endian", "scalar",
          "sparse", "deep/er/group"]


def relative(refs, folder):
    """The same set with names that begin at its folder."""
    if isinstance(refs, list):
        return [str(refs[0]).replace(f"file://{folder}/", "").replace(f"{folder}/", ""), *refs[1:]]
    if isinstance(refs, dict):
        return {key: relative(value, folder) for key, value in refs.items()}
    return refs



def check_all(batchfs, store, folder, *options):
    with h5py.File(folder / "a.h5") as file:
        for name in ARRAYS:
            values = cat(batchfs, store, name, *options)
            expected = file[name][...]
            assert values.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), name
            assert np.array_equal(values, expected), name


@pytest.mark.parametrize("form", ["v1", "v0", "inline", "consolidated", "objects", "absolute",
                                  "file-url", "template", "v0-blanks"])
def test_values_are_those_of_the_file(batchfs, netcdf4, form):
    folder, made = netcdf4
    made = json.loads(json.dumps(made))
    store = folder / f"{form}.json"
    if form == "absolute":
        pass
    elif form == "file-url":
        made["refs"] = {key: [f"file://{value[0]}", *value[1:]] if isinstance(value, list)
                            else value
                        for key, value in made["refs"].items()}
    else:
        made = relative(made, folder)
    if form in ("v0", "v0-blanks"):
        made = made["refs"]
    if form == "inline":
        made["refs"] = {key: inlined(folder, value) for key, value in made["refs"].items()}
    if form == "consolidated":  # the consolidated metadata is out of date
        made["refs"][".zmetadata"] = json.dumps({"metadata": {".zgroup": {"zarr_format": 2}},
                                                 "zarr_consolidated_format": 1})
    if form == "objects":
        made["refs"] = {key: json.loads(value) if isinstance(value, str) and value.startswith("{")
                            else value for key, value in made["refs"].items()}
    if form == "template":
        made["templates"] = {"u": "a.h5", "f": "{{c}}.h5"}
        made["refs"] = {key: [("{{u}}", "{{ f(c='a') }}")[len(key) % 2], *value[1:]]
                            if isinstance(value, list) else value
                        for key, value in made["refs"].items()}
    write(store, json.dumps(made, indent=7) if form == "v0-blanks" else made)
    check_all(batchfs, store, folder)
    listed = json.loads(batchfs.bytes("inspect", store, "--json"))
    assert set(listed["arrays"]) == set(ARRAYS) and not listed.get("problems")


COMPRESSED = {"a.json.gz": gzip.compress, "a.json.zst": lambda data: numcodecs.Zstd().encode(data),
              "b.json": gzip.compress,
              "c.json.zst": lambda data: bytes(numcodecs.Zstd().encode(data[:1000]))
                  + bytes(numcodecs.Zstd().encode(data[1000:]))}


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("prefix", ["", "reference::"])
def test_compressed_sets(batchfs, netcdf4, name, prefix):
    folder, made = netcdf4
    (folder / name).write_bytes(COMPRESSED[name](json.dumps(relative(made, folder)).encode()))
    check_all(batchfs, f"{prefix}{folder / name}", folder)


def test_compressed_sets_are_bounded_by_the_memory(batchfs, tmp_path):
    for name, compress in COMPRESSED.items():
        (tmp_path / name).write_bytes(compress(b'{"version": 1, "refs": {' + b" " * (64 << 20)
                                               + b"}}"))
        assert "give more with --memory" in batchfs.refusal("inspect", tmp_path / name, "--memory",
                                                            "16M")
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9])
        assert "cut short" in batchfs.refusal("inspect", tmp_path / name)


def inlined(folder, value):
    if not isinstance(value, list) or len(value) == 1:
        return value
    with open(folder / value[0], "rb") as file:
        file.seek(value[1])
        return "base64:" + base64.b64encode(file.read(value[2])).decode()


def test_a_checksum_that_does_not_match(batchfs, netcdf4):
    folder, made = netcdf4
    refs = relative(json.loads(json.dumps(made)), folder)["refs"]
    refs["checked/0.0.0"][1] += 8
    assert "fletcher32 checksum does not match" in batchfs.refusal(
        "cat", write(folder / "bad.json", refs), "checked")


def test_netcdf3_with_records(batchfs, tmp_path):
    random = np.random.default_rng(4)
    with scipy.io.netcdf_file(tmp_path / "n.nc", "w", version=2) as file:
        file.createDimension("t", None)
        file.createDimension("y", 5)
        file.createDimension("x", 6)
        for name, kind, dims in (("r", "f4", ("t", "y", "x")), ("s", "i2", ("t", "x")),
                                 ("fixed", "f8", ("y", "x"))):
            variable = file.createVariable(name, kind, dims)
            shape = [9 if d == "t" else {"y": 5, "x": 6}[d] for d in dims]
            variable[:] = (random.normal(size=shape) * 50).astype(kind)
    made = relative(kerchunk.netCDF3.NetCDF3ToZarr(str(tmp_path / "n.nc"),
                                                   inline_threshold=0).translate(), tmp_path)
    store = write(tmp_path / "n.json", made)
    with scipy.io.netcdf_file(tmp_path / "n.nc", mmap=False) as file:
        for name in "r", "s", "fixed":
            assert np.array_equal(cat(batchfs, store, name), file.variables[name][:]), name
            part = cat(batchfs, store, name, "--select", "x=#2:#4")
            assert np.array_equal(part, file.variables[name][:][..., 2:4])


def test_several_files_joined(batchfs, tmp_path):
    random = np.random.default_rng(5)
    sets = []
    for number in range(3):
        data = xr.Dataset({"t2m": (("time", "y", "x"), random.normal(size=(4, 6, 8)).astype("f4"))},
                          {"time": np.arange(4 * number, 4 * number + 4), "y": np.arange(6.0),
                           "x": np.arange(8.0)})
        data.to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf",
                       encoding={"t2m": {"zlib": True, "shuffle": True, "chunksizes": (2, 3, 8)}})
        sets.append(kerchunk.hdf.SingleHdf5ToZarr(str(tmp_path / f"{number}.nc")).translate())
    joined = kerchunk.combine.MultiZarrToZarr(sets, concat_dims=["time"],
                                              identical_dims=["y", "x"]).translate()
    store = write(tmp_path / "joined.json", joined)
    with xr.concat([xr.open_dataset(tmp_path / f"{n}.nc", engine="h5netcdf") for n in range(3)],
                   "time") as data:
        with xr.open_dataset(str(store), engine="kerchunk",
                             storage_options={"remote_protocol": "file"}) as theirs:
            for name in "t2m", "time", "y", "x":
                values = batchfs.npy("cat", store, name)
                assert (np.array_equal(values, data[name].values)
                            and np.array_equal(values, theirs[name].values)), name
        view = write(tmp_path / "view.json", {"window": {"time": 3}, "variables": ["t2m"],
                                              "batch": {"size": 2}, "order": {"shuffle": "none"}})
        assert "time" in batchfs.bytes("plan", store, "--view", view).decode()
        batch = batchfs.npy("batch", store, "--view", view, "--batch", 1)
        expected = data["t2m"].values
        assert np.array_equal(np.squeeze(batch), np.stack([expected[6:9], expected[9:12]]))
    assert b"" == batchfs.run("check", store).stderr


# ---- sets written by hand ----

@pytest.fixture
def steps(tmp_path):
    return write_steps(tmp_path)


def test_generated_references(batchfs, steps, tmp_path):
    text = {"version": 1, "templates": {"u": "f{{n}}.bin", "end": "bin"}, "gen":
                [{"key": "a/{{ i * 2 + j }}", "url": "f{{i}}.{{end}}",
                  "offset": "{{ 4 + (j % 2) * 10 * 4 }}", "length": "40",
                  "dimensions": {"i": {"stop": 3}, "j": [0, 1]}},
                 {"key": "b/{{(-i) // -1}}", "url": "{{u(n='2')}}", "offset": "{{4 + 8 * (9 - i)}}",
                  "length": 8, "dimensions": {"i": {"start": 9, "stop": 0, "step": -3}}},
                 {"key": "whole/{{i}}",
                  "url": "f{{i}}.bin", "dimensions": {"i": {"start": 0, "stop": 3}}}],
            "refs": {".zgroup": "{\"zarr_format\": 2}", "a/.zarray": array_of([60], [10]),
                     "b/.zarray": array_of([20], [2]), "whole/.zarray": array_of([63], [21])}}
    store = write(tmp_path / "gen.json", text)
    assert np.array_equal(cat(batchfs, store, "a"), steps)
    expected = np.full(20, -1)
    for i in 9, 6, 3:
        expected[2 * i:2 * i + 2] = steps[40 + 2 * (9 - i):][:2]
    assert np.array_equal(cat(batchfs, store, "b"), expected)
    whole = cat(batchfs, store, "whole")
    assert np.array_equal(whole.reshape(3, 21)[:, 1:].ravel(), steps)


def test_zarr_v3_and_other_separators(batchfs, steps, tmp_path):
    v3 = {"zarr_format": 3, "node_type": "array", "shape": [6, 10], "data_type": "int32",
          "fill_value": -1,
          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 10]}},
          "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
          "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}}
    refs = {"zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": {"x": 1}},
            "g/a/zarr.json": json.dumps(v3),
            **{f"g/a/c/{i}/0": [f"f{i}.bin", 4, 80] for i in range(3)}}
    store = write(tmp_path / "v3.json", {"version": 1, "refs": refs})
    assert np.array_equal(cat(batchfs, store, "g/a"), steps.reshape(6, 10))
    refs = {".zgroup": "{\"zarr_format\": 2}",
            "a/.zarray": array_of([6, 10], [2, 10], dimension_separator="/"),
            **{f"a/{i}/0": [f"./x/../f{i}.bin", 4, 80] for i in (0, 2)}}
    values = cat(batchfs, write(tmp_path / "slash.json", refs), "a")
    expected = steps.reshape(6, 10).copy()
    expected[2:4] = -1
    assert np.array_equal(values, expected)


def test_text_with_control_characters_and_dimensions_without_elements(batchfs, tmp_path):
    refs = {".zgroup": {"zarr_format": 2}, "a/.zarray": array_of([8], [8], "|u1", fill_value=0),
            "a/0": "\0\1\x7f\"\\\n\t/", "none/.zarray": array_of([0, 3], [0, 3]),
            "nan/.zarray": '{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"<f4",'
                           '"fill_value":NaN,"order":"C","compressor":null,"filters":null}'}
    store = write(tmp_path / "t.json", refs)
    assert cat(batchfs, store, "a").tolist() == [0, 1, 127, 34, 92, 10, 9, 47]
    assert cat(batchfs, store, "none").shape == (0, 3)
    assert np.isnan(cat(batchfs, store, "nan")).all()



def test_what_lies_outside_needs_leave(batchfs, steps, tmp_path):
    inside = tmp_path / "set"
    inside.mkdir()
    outside = tmp_path / "f1.bin"
    for file in (f"{outside}", f"file://{outside}", "../f1.bin"):
        store = one(inside, file, 4, 40)
        line = batchfs.refusal("cat", store, "a")
        assert ("outside of the reference set's directory" in line
                    and f"--virtual file://{tmp_path}/" in line), line
        values = cat(batchfs, store, "a", "--virtual", f"file://{tmp_path}/")
        assert np.array_equal(values, steps[20:30])
    (inside / "link.bin").symlink_to(outside)
    assert "cat failed" in batchfs.refusal("cat", one(inside, "link.bin", 4, 40), "a")
    for url, prefix in (("s3://bucket/x/y.nc", "s3://bucket/x/"),
                        ("http://169.254.169.254/latest", "http://169.254.169.254/"),
                        ("gcs://b/a/c", "gs://b/a/"), ("s3://user:secret@b/a", "s3://b/")):
        line = batchfs.refusal("cat", one(inside, url, 4, 40), "a")
        assert f"--virtual {prefix}" in line and "secret" not in line, line
    values = cat(batchfs, one(inside, "s3://bucket/f0.bin", 4, 40), "a", "--virtual",
                 f"s3://bucket/={tmp_path}")
    assert np.array_equal(values, steps[:10])
    for url in ("memory://x", "zip://a::file:///b", "simplecache::s3://b/a", "data:text/plain,x"):
        line = batchfs.refusal("cat", one(inside, url, 4, 40), "a", "--virtual", "https://h/")
        assert "which batchfs does not" in line or "that batchfs does not" in line
        assert "secret" not in line
    assert "secret" not in batchfs.refusal("cat", one(inside, "/etc/shadow", 0, 40), "a")


def test_a_file_that_is_not_there_or_too_short_is_an_error(batchfs, steps, tmp_path):
    assert "is not there" in batchfs.refusal("cat", one(tmp_path, "nothing.bin", 0, 40), "a")
    assert "is not there" in batchfs.refusal("cat", one(tmp_path, "nothing.bin"), "a")
    assert "shorter than the reference set says" in batchfs.refusal(
        "cat", one(tmp_path, "f0.bin", 60, 40), "a")
    assert "shorter than the reference set says" in batchfs.refusal(
        "cat", one(tmp_path, "f0.bin", 1 << 40, 40), "a")
    os.mkfifo(tmp_path / "pipe")
    assert "cat failed" in batchfs.refusal("cat", one(tmp_path, "pipe", 0, 40), "a")


@pytest.mark.parametrize("text, words", [
    ('[]', "a list of reference sets"), ('{"version": 2, "refs": {}}', "version 2"),
    ('{"version": "x"}', "not a number"), ('{"refs": {}}', "without 'version'"),
    ('{"version": 1, "refs": {}', "not valid JSON at byte"),
    ('{"version": 1, "refs": []}', "expected '{'"),
    ('{"version": 1, "gen": [{"key": "{% if 1 %}", "url": "x", "dimensions": {"i": [0]}}]}',
     "jinja2"),
    ('{"version": 1, "gen": [{"key": "a", "url": "x", "offset": "1", "dimensions": {"i": [0]}}]}',
     "both offset and length"),
    ('{"version": 1, "gen": [{"key": "{{i//0}}", "url": "x", "dimensions": {"i": [0]}}]}',
     "division by zero"),
    ('{"version": 1, "gen": [{"key": "a/{{i}}", "url": "x", "dimensions": {"i": '
     '{"stop": 99999999999}}}]}', "more than 100,000,000"),
])
def test_what_is_no_set_is_refused_in_one_line(batchfs, tmp_path, text, words):
    line = batchfs.refusal("inspect", write(tmp_path / "r.json", text))
    assert words in line and "r.json" in line


def test_every_beginning_of_a_set_ends_in_one_line(batchfs, netcdf4, tmp_path):
    folder, made = netcdf4
    text = json.dumps(relative(made, folder))
    for length in range(0, len(text), len(text) // 25):
        done = batchfs.run("inspect", write(tmp_path / "cut.json", text[:length]))
        assert done.returncode == 1 and done.stderr.count(b"\n") == 1, done.stderr


# ---- Parquet ----


@pytest.mark.parametrize("categorical", [0, 10], ids=["categorical", "plain"])
def test_parquet_sets_of_kerchunk(batchfs, netcdf4, tmp_path, categorical):
    folder, made = netcdf4
    refs = {key: value for key, value in made["refs"].items()}
    kerchunk.df.refs_to_dataframe({"version": 1, "refs": refs}, str(tmp_path / "set.parq"),
                                  record_size=7, categorical_threshold=categorical)
    check_all(batchfs, tmp_path / "set.parq", folder, "--virtual", f"file://{folder}/")
    check_all(batchfs, f"reference::{tmp_path}/set.parq", folder, "--virtual", f"file://{folder}/")
    assert "--virtual file://" in batchfs.refusal("cat", tmp_path / "set.parq", "plain")
    assert batchfs.run("check", tmp_path / "set.parq", "--virtual",
                       f"file://{folder}/").returncode == 0


@pytest.mark.parametrize("options", [{"engine": engine, "compression": compression}
                                     for engine in ("fastparquet", "pyarrow")
                                     for compression in ("snappy", "gzip", "zstd", None)]
                             + [{"engine": "pyarrow", "data_page_version": "2.0"},
                                {"engine": "pyarrow", "use_dictionary": False}, {
                                    "engine": "pyarrow", "data_page_version": "2.0",
                                    "compression": "zstd", "use_dictionary": False},
                                {"engine": "pyarrow", "row_group_size": 3},
                                {"engine": "pyarrow", "data_page_size": 16, "write_batch_size": 2}],
                         ids=lambda options: "-".join(f"{value}" for value in options.values()))
@pytest.mark.parametrize("bytes_too", [False, True])
def test_parquet_files_of_every_make(batchfs, steps, tmp_path, options, bytes_too):
    store = parquet_folder(tmp_path / "set", array_of([60], [2]), 12)
    expected = steps.copy()
    for record in range(3):
        path, offset, size, raw = [], [], [], []
        for row in range(12):
            number = record * 12 + row
            if number >= 30 or number % 7 == 3:  # none
                path.append(None), offset.append(0), size.append(0), raw.append(None)
                expected[2 * number:2 * number + 2] = -1
            elif number % 5 == 2 and bytes_too:
                (path.append(None), offset.append(0), size.append(0),
                 raw.append(steps[2 * number:2 * number + 2].tobytes()))
            else:
                (path.append(f"../f{number // 10}.bin"), offset.append(4 + 8 * (number % 10)),
                 size.append(8), raw.append(None))
        more = ({"object_encoding": {"path": "utf8", "raw": "bytes"}}
                if options["engine"] == "fastparquet" else {})
        records(path, offset, size, raw, store / f"a/refs.{record}.parq", **options, **more)
    values = cat(batchfs, store, "a", "--virtual", f"file://{tmp_path}/")
    assert np.array_equal(values, expected)


ROWS = 300_000
# How the columns of a file of ROWS references are made and written.
LARGE = {
    "one name": (lambda i: "f0.bin", {}),
    "one name, plain": (lambda i: "f0.bin", {"use_dictionary": False, "data_page_size": 64 << 20}),
    "each its own name": (lambda i: "f0.bin" if i == 2 else f"folder/of/files/{i:09}.bin", {}),
    "each its own name, plain": (lambda i: "f0.bin" if i == 2 else f"folder/of/files/{i:09}.bin",
                                 {"use_dictionary": False, "compression": "NONE"}),
    "rows that are bytes": (None, {}),
}


@pytest.mark.parametrize("kind", LARGE)
def test_the_memory_of_one_parquet_file(batchfs, tmp_path, kind):
    name, options = LARGE[kind]
    store = parquet_folder(tmp_path / "set", array_of([ROWS], [1]), ROWS)
    write_steps(store)
    i = np.arange(ROWS)
    if name is None:
        columns = ([None] * ROWS, i * 0, i * 0, [int(n).to_bytes(4, "little") for n in i])
    else:
        columns = ([name(n) for n in range(ROWS)], 4 + i % 20 * 4, np.full(ROWS, 4), [None] * ROWS)
    records(*columns, store / "a/refs.0.parq", engine="pyarrow", **options)
    line = batchfs.refusal("cat", store, "a", "--select", "x=#2", "--memory", "2M")
    assert "gets half of --memory, 1.0 MB; give" in line
    line = batchfs.refusal("cat", store, "a", "--select", "x=#2", "--memory", "32M")
    assert (f"its {ROWS} references take up to" in line
            and "one file of references gets half of --memory, 16.0 MB" in line)
    assert "refs.0.parq" in line
    enough = re.search(r"give --memory (\d+)M or more", line)[1]
    assert int(enough) <= (44 if kind == "one name" else 300)
    assert cat(batchfs, store, "a", "--select", "x=#2", "--memory", f"{enough}M") == 2
    measured = measure(PROGRAM, "cat", store, "a", "--select", "x=#2", "--memory", f"{enough}M")
    assert measured.status == 0 and measured.peak <= (int(enough) + 64) << 20


def test_parquet_without_a_file_or_a_column(batchfs, steps, tmp_path):
    store = parquet_folder(tmp_path / "set", array_of([60], [20]), 2)
    records(["../f0.bin", "../f1.bin"], [4, 4], [80, 80], None, store / "a/refs.0.parq",
            engine="pyarrow")
    values = cat(batchfs, store, "a", "--virtual", f"file://{tmp_path}/")
    assert np.array_equal(values, np.concatenate([steps[:40], np.full(20, -1)]))
    records(["../f2.bin"], [0], [0], None, store / "a/refs.1.parq", engine="pyarrow")
    line = batchfs.refusal("cat", store, "a", "--virtual", f"file://{tmp_path}/")
    assert "84" in line
    pd.DataFrame({"path": ["x"]}).to_parquet(store / "a/refs.1.parq")
    assert "no columns 'path', 'offset' and 'size'" in batchfs.refusal(
        "cat", store, "a", "--virtual", f"file://{tmp_path}/")
    pd.DataFrame({"path": [["x"]], "offset": [1], "size": [1]}).to_parquet(
        store / "a/refs.1.parq", engine="pyarrow")
    assert "a nested column 'path'" in batchfs.refusal("cat", store, "a", "--virtual",
                                                       f"file://{tmp_path}/")
    pd.DataFrame({"path": ["x"], "offset": [1], "size": [1]}).to_parquet(
        store / "a/refs.1.parq", engine="pyarrow", compression="brotli")
    assert "compression Brotli" in batchfs.refusal("cat", store, "a", "--virtual",
                                                   f"file://{tmp_path}/")
    records(["x"] * 3, [0] * 3, [1] * 3, None, store / "a/refs.1.parq", engine="pyarrow")
    assert "3 rows, at most 2 were expected" in batchfs.refusal(
        "cat", store, "a", "--virtual", f"file://{tmp_path}/")


def test_parquet_files_cut_or_damaged_end_in_one_line(batchfs, steps, tmp_path):
    store = parquet_folder(tmp_path / "set", array_of([60], [2]), 30)
    random = np.random.default_rng(6)
    for engine in "pyarrow", "fastparquet":
        file = store / "a/refs.0.parq"
        records([f"../f{n // 10}.bin" for n in range(30)], [4 + 8 * (n % 10) for n in range(30)],
                [8] * 30, [None] * 30, file, engine=engine,
                **({"object_encoding": {"path": "utf8", "raw": "bytes"}} if engine == "fastparquet"
                   else {}))
        whole = file.read_bytes()
        for trial in range(30):
            data = bytearray(whole)
            if trial % 2:
                data = data[:random.integers(len(data))]
            else:
                data[random.integers(len(data))] ^= 1 << random.integers(8)
            file.write_bytes(data)
            done = batchfs.run("cat", store, "a", "--virtual", f"file://{tmp_path}/")
            assert done.returncode in (0, 1) and done.stderr.count(b"\n") <= 1, done.stderr


# ---- a thousand files ----

@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_thousand_netcdf4_files(batchfs, tmp_path, form):
    """One set of all, made of the references that kerchunk finds in each."""
    files, steps = 1000, 2
    values = np.random.default_rng(1).normal(size=(files * steps, 4, 6)).astype("f4")
    refs = {}
    (tmp_path / "data").mkdir()
    for number in range(files):
        path = tmp_path / f"data/{number:04}.nc"
        with h5netcdf.File(path, "w") as file:
            file.dimensions = {"time": steps, "y": 4, "x": 6}
            file.create_variable("t", ("time", "y", "x"),
                                 data=values[number * steps:(number + 1) * steps], chunks=(1, 4, 6),
                                 compression="gzip", compression_opts=4, shuffle=True)
        for key, value in kerchunk.hdf.SingleHdf5ToZarr(
                str(path), inline_threshold=0).translate()["refs"].items():
            head, _, index = key.rpartition("/")
            if head == "t" and index[0].isdigit():
                step, rest = index.split(".", 1)
                refs[f"t/{number * steps + int(step)}.{rest}"] = value
            elif number == 0 and (key == ".zgroup" or head == "t"):
                refs[key] = value
    array = json.loads(refs["t/.zarray"])
    refs["t/.zarray"] = json.dumps(array | {"shape": [files * steps, 4, 6]})
    if form == "json":
        store = write(tmp_path / "set.json", {"version": 1, "refs": relative(refs, tmp_path)})
        options = []
    else:
        store, options = tmp_path / "set.parq", ["--virtual", f"file://{tmp_path}/"]
        kerchunk.df.refs_to_dataframe({"refs": refs}, str(store), record_size=300)
    assert np.array_equal(cat(batchfs, store, "t", *options), values)
    (tmp_path / "view.json").write_text(json.dumps({"window": {"time": 3}, "variables": ["t"],
                                                    "batch": 50, "order": {"shuffle": "global"}}))
    numbers = json.loads(batchfs.bytes("batch", store, "--view", tmp_path / "view.json", "--format",
                                       "json", *options))["starts"]
    batch = batchfs.npy("batch", store, "--view", tmp_path / "view.json", *options)
    assert np.array_equal(batch, np.stack([values[start:start + 3] for start, in numbers]))
