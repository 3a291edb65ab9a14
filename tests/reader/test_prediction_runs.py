"""batchfs.create in several processes, ended at any moment and continued; and what it refuses."""

import io
import json
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import sysconfig
import time
import warnings

import numpy as np
import pytest
import xarray as xr

import batchfs
from batchfs import _output, _writer
from batchfs._writer import find_library

from prediction_stores import (GRID, OPTIONS, OVERLAPPING, files, make_store, run_ranks, view_of,
                               write_rank)
from prediction_stores import data, store, truth  # noqa: F401 (fixtures)
from watching import eventually

pytestmark = pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" in os.environ,
                                reason="Python would need the sanitizer's runtime")


@pytest.fixture(scope="module")
def alone(store, tmp_path_factory):
    """An output that one rank wrote."""
    out = tmp_path_factory.mktemp("alone") / "o"
    write_rank(store, out, 0, 1)
    return files(out)


@pytest.mark.parametrize("memory", ["1G", "20K"])
def test_ranks_write_what_one_does(store, truth, tmp_path, alone, memory):
    out = tmp_path / "o"
    assert run_ranks(*((store, out, rank, 3, memory) for rank in range(3))) == [0, 0, 0]
    assert files(out) == alone


def test_a_rank_that_is_killed_goes_on(store, tmp_path, alone):
    out = tmp_path / "o"
    assert run_ranks((store, out, 0, 2, "20K", None, "none"),
                     (store, out, 1, 2, "20K", 30, "none")) == [0, -signal.SIGKILL]
    assert not (out / "zarr.json").exists()
    put = {name: (out / name).stat().st_mtime_ns for name in files(out) if name.startswith("t/c/")}
    assert put
    write_rank(store, out, 1, 2, order="none")
    assert (out / "zarr.json").exists()
    assert files(out) == alone
    assert {name: (out / name).stat().st_mtime_ns for name in put} == put  # put once


@pytest.mark.parametrize("after", [0, 1, 17, 30])
def test_a_resumed_output_has_the_same_bytes(store, tmp_path, alone, after):
    out = tmp_path / "o"
    assert run_ranks((store, out, 0, 1, "20K", after)) == [-signal.SIGKILL]
    with pytest.raises(Exception, match=".*"):
        xr.open_zarr(out)
    write_rank(store, out, 0, 1)
    assert files(out) == alone
    data = batchfs.open(store, view=OVERLAPPING)
    with batchfs.create(out, like=data, **OPTIONS) as target:  # there is nothing left to do
        assert target.finished and target.missing() == 0 and list(target.remaining()) == []
    assert files(out) == alone


def test_an_interrupted_loop_keeps_what_it_wrote(store, tmp_path, alone):
    data = batchfs.open(store, view=OVERLAPPING)
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    with pytest.raises(KeyboardInterrupt), target:
        for n, batch in enumerate(target.remaining()):
            if n == 20:
                raise KeyboardInterrupt
            target.write(batch, batch["t"].numpy())
    again = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    assert again.missing() == data.schema["samples"] - 20 * 5
    for batch in again.remaining():
        again.write(batch, batch["t"].numpy())
    again.close()
    assert files(tmp_path / "o") == alone


def test_samples_that_are_missing_at_the_end_are_an_error(store, tmp_path, alone):
    data = batchfs.open(store, view=OVERLAPPING)
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batches = [data[n] for n in (3, 7)]
    for batch in batches:
        target.write(batch, batch["t"].numpy())
    samples = data.schema["samples"]
    with pytest.raises(batchfs.Error,
                       match=f"{samples - 10} of {samples} samples are missing.*remaining"):
        target.close()
    assert not (tmp_path / "o/zarr.json").exists()
    write_rank(store, tmp_path / "o", 0, 1)
    assert files(tmp_path / "o") == alone


def test_kills_at_random_moments(store, tmp_path, alone):
    rng = random.Random(5)
    context = multiprocessing.get_context("spawn")
    for number in range(3):
        out = tmp_path / str(number)
        ranks = [context.Process(target=write_rank, args=(store, out, rank, 4, "20K"))
                 for rank in range(4)]
        for rank in ranks:
            rank.start()
        assert eventually(lambda out=out: (out / ".batchfs.json").exists())
        time.sleep(rng.uniform(0, 1))
        for rank in rng.sample(ranks, 2):
            rank.kill()
        for rank in ranks:
            rank.join(timeout=120)
        run_ranks(*((store, out, rank, 4, "20K") for rank in range(4)))
        assert files(out) == alone


# Bad input.

def test_a_second_writer_of_a_rank_is_refused(data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    with pytest.raises(batchfs.InvalidArgument,
                       match="another process writes rank 0 .* a rank of its own"):
        batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batchfs.create(tmp_path / "o", like=data, rank=1, world=2, **OPTIONS)
    del target


def test_a_changed_call_is_refused(store, data, tmp_path):
    batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    for change, key in (({"overlap": "mean"}, "overlap"), ({"chunks": {"lat": 13}}, "arrays")):
        with pytest.raises(batchfs.InvalidArgument,
                           match=f'of another run: its "{key}" differs; remove it'):
            batchfs.create(tmp_path / "o", like=data, **OPTIONS | change, rank=1, world=2)
    normalized = batchfs.open(store, view=OVERLAPPING | {"normalize": {
        "method": "zscore", "statistics": {"t": {"mean": 280, "std": 10}}}})
    batchfs.create(tmp_path / "n", like=normalized, denormalize=True, **OPTIONS)
    with pytest.raises(batchfs.InvalidArgument, match="of another run"):
        batchfs.create(tmp_path / "n", like=normalized, rank=1, world=2, **OPTIONS)
    other = batchfs.open(store,
                         view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 5}}})
    with pytest.raises(batchfs.InvalidArgument, match='its "samples" differs'):
        batchfs.create(tmp_path / "o", like=other, **OPTIONS, rank=1, world=2)
    shifted = batchfs.open(store,
                           view=OVERLAPPING | {"select": {"lat": {"from": "#0", "to": "#20"}}})
    with pytest.raises(batchfs.InvalidArgument, match='its "arrays" differs'):
        batchfs.create(tmp_path / "o", like=shifted, **OPTIONS, rank=1, world=2)


def rewrite(store):
    """New files of the same bytes: what tells is not in them."""
    for path in sorted((store / "t" / "c").rglob("*")):
        if path.is_file():
            path.write_bytes(path.read_bytes())


def test_predictions_are_of_one_version_of_the_store(tmp_path):
    store, out = tmp_path / "s.zarr", tmp_path / "o"
    make_store(store)
    with batchfs.open(store, view=OVERLAPPING) as data:
        target = batchfs.create(out, like=data, **OPTIONS)
        with pytest.raises(KeyboardInterrupt), target:
            target.write(data[0], data[0]["t"].numpy())
            raise KeyboardInterrupt
        batchfs.create(out, like=data, **OPTIONS)
    before = files(out)
    rewrite(store)
    with batchfs.open(store, view=OVERLAPPING) as data:
        with pytest.raises(batchfs.Error, match="the store has changed since the run began: "
                                                "objects of 't' are of another version"):
            batchfs.create(out, like=data, **OPTIONS)
        assert files(out) == before
        target = batchfs.create(tmp_path / "p", like=data, **OPTIONS)
        for batch in data:
            target.write(batch, batch["t"].numpy())
        rewrite(store)
        with pytest.raises(batchfs.Error, match="has changed"):
            target.close()
        assert not target.finished


def test_parts_of_another_run_are_refused(store, data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, memory="20K", **OPTIONS)
    with pytest.raises(KeyboardInterrupt), target:
        target.write(data[0], data[0]["t"].numpy())
        raise KeyboardInterrupt
    part = next(p for p in (tmp_path / "o/.batchfs/parts").rglob("*")
                if p.is_file() and not p.name.endswith(".lock"))
    content = part.read_bytes()
    header, _, values = content.partition(b"\n")
    told = json.loads(header)
    for damaged in (json.dumps(told | {"run": "x" + told["run"]}).encode() + b"\n" + values,
                    b"nonsense", b"",
                    json.dumps(told | {"samples": [10**9], "bytes": [4]}).encode() + b"\nabcd"):
        part.write_bytes(damaged)
        with pytest.raises(batchfs.Error, match="remove"):
            batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    part.write_bytes(content)
    batchfs.create(tmp_path / "o", like=data, **OPTIONS)


def test_places_that_are_no_output(data, store, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x").write_text("x")
    for place, match in ((tmp_path / "file", "is a file; name a new folder"),
                         (tmp_path / "other", "did not write it; name a new"),
                         (store / "out", "lies in the store"), (store, "is the store itself"),
                         ("s3://bucket/x", "s3://: name a folder"),
                         (tmp_path / "o.zip", "not the name of a folder")):
        with pytest.raises(batchfs.Error, match=match):
            batchfs.create(place, like=data, **OPTIONS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "other"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_disk_that_is_full_or_read_only(store, data, tmp_path, alone):
    import subprocess
    (tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs",
                       str(tmp_path / "small")]).returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "small")], check=True)
        with pytest.raises(batchfs.Error,
                           match="Read-only.*name an output that this user may write"):
            write_rank(store, tmp_path / "small/o", 0, 1)
        subprocess.run(["mount", "-o", "remount,rw", str(tmp_path / "small")], check=True)
        with pytest.raises(batchfs.Error,
                           match="No space left.*make room and run the same program again"):
            write_rank(store, tmp_path / "small/o", 0, 1)
        assert not (tmp_path / "small/o/zarr.json").exists()
        subprocess.run(["mount", "-o", "remount,size=9m", str(tmp_path / "small")], check=True)
        write_rank(store, tmp_path / "small/o", 0, 1)
        assert files(tmp_path / "small/o") == alone
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "small")], check=False)


def test_wrong_predictions(store, data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    batch = data[0]
    good = batch["t"].numpy()
    for wrong, match in ((good[:3],
                          r"has the shape \(3, 1, 2, 8, 8\), and the batch's is \(5, 1, 2, 8, 8\)"),
                         (good[..., :7], "has the shape"), (good.astype("c8"), "type complex64"),
                         ([["x"]], "has the shape"), ({"y": good}, "lacks the tensor 't'"),
                         ({"t": good, "z": good}, "nothing for the tensor 'z'"), (None, "array"),
                         (np.array([object()]), "array of numbers")):
        with pytest.raises(batchfs.InvalidArgument, match=match):
            target.write(batch, wrong)
    other = batchfs.open(store,
                         view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 5}}})
    with pytest.raises(batchfs.InvalidArgument, match="of another view"):
        target.write(other[0], other[0]["t"].numpy())
    more = batchfs.open(store,
                        view=OVERLAPPING | {"window": GRID | {"lat": {"size": 8, "stride": 1}}})
    far = next(batch for batch in more if batch.index.max() >= data.schema["samples"])
    with pytest.raises(batchfs.InvalidArgument, match="has no sample"):
        target.write(far, far["t"].numpy())
    assert target.missing() == data.schema["samples"]
    target.write(batch, good)
    target.write(batch, good.astype("f8"))  # again: the values replace the first
    with pytest.raises(batchfs.Error, match="missing"):
        target.close()
    with pytest.raises(batchfs.Error, match="closed; create it again"):
        target.write(batch, good)


def test_wrong_arguments(store, data, tmp_path):
    plain = batchfs.open(store, view=view_of({"time": 1}, variables=["p", "kind"]))
    for arguments, match in (({"overlap": "max"}, "overlap='max' is unknown: pass one of"),
                             ({}, "windows overlap along 'lat': pass overlap"),
                             ({"tensor": "z"}, "no tensor 'z'; it has t"),
                             ({"overlap": "trim", "chunks": {"x": 3}}, "names 'x'"),
                             ({"overlap": "trim", "chunks": {"lat": 0}}, "number of elements"),
                             ({"overlap": "trim", "codec": "lz"}, 'codec="lz"'),
                             ({"overlap": "trim", "shards": {"lat": 5}, "chunks": {"lat": 2}},
                              "not a whole number of chunks"),
                             ({"overlap": "trim", "dtype": "float31"}, "not a type of numpy"),
                             ({"overlap": "trim", "rank": 3, "world": 2}, "not below"),
                             ({"overlap": "trim", "world": 0}, "not below"),
                             ({"overlap": "trim", "rank": -1}, "rank is -1"),
                             ({"overlap": "trim", "epoch": -1}, "there is no epoch -1"),
                             ({"overlap": "trim", "name": "lat"}, "cannot be called 'lat'"),
                             ({"overlap": "trim", "memory": "much"}, "not a size"),
                             ({"overlap": "cosine", "dtype": "i4"}, "makes means"),
                             ({"overlap": "trim", "time": "when"}, 'time="when"')):
        with pytest.raises(batchfs.InvalidArgument, match=match):
            batchfs.create(tmp_path / "o", like=data, **arguments)
    with pytest.raises(batchfs.InvalidArgument,
                       match="2 variables: pass name= with a name for each"):
        batchfs.create(tmp_path / "o", like=plain, name="x")
    with pytest.raises(batchfs.InvalidArgument, match="like=, a dataset"):
        batchfs.create(tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_zarr_python_is_not_needed(data, truth, tmp_path, monkeypatch):
    from batchfs.earth2studio import PredictionBackend

    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "batchfs._zarr_arrays", None)
        patched.setitem(sys.modules, "zarr", None)
        with batchfs.create(tmp_path / "o", like=data, **OPTIONS) as out:
            for batch in out.remaining():
                out.write(batch, batch["t"].numpy())
        with pytest.raises(batchfs.NotSupported, match="needs zarr-python 3 .* pip install"):
            PredictionBackend(tmp_path / "p")
    np.testing.assert_allclose(xr.open_zarr(tmp_path / "o").t.values, truth.t.values, rtol=1e-6)


def test_the_library_is_looked_for_beside_the_program(data, tmp_path):
    """Not there, broken, among the libraries of an installation, and in the program's folder."""
    built = pathlib.Path(find_library())
    program = tmp_path / "usr/bin/batchfs"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(batchfs.NotFound,
                       match="not beside the program .* install the wheel or the Debian package"):
        batchfs.create(tmp_path / "o", like=data, program=program, **OPTIONS)
    (program.parent / built.name).write_text("no library")
    with pytest.raises(batchfs.NotFound,
                       match="cannot be loaded: .* install the wheel or the Debian package"):
        batchfs.create(tmp_path / "o", like=data, program=program, **OPTIONS)
    (program.parent / built.name).unlink()
    for place in ("lib64", os.path.join("lib", sysconfig.get_config_var("MULTIARCH") or ""), "lib",
                  "bin"):
        copy = tmp_path / "usr" / place / built.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        copy.symlink_to(built)
        assert pathlib.Path(find_library(program)) == copy
    out = batchfs.create(tmp_path / "o", like=data, program=program, **OPTIONS)
    assert out.missing() == data.schema["samples"]


def test_a_library_of_another_version_is_refused(data, tmp_path, monkeypatch):
    monkeypatch.setattr(_writer, "VERSION", "9.9.9")
    with pytest.raises(batchfs.NotSupported, match="is version .* of batchfs, and this package is "
                                                   "version 9.9.9; install both of one"):
        batchfs.create(tmp_path / "o", like=data, **OPTIONS)


def test_a_forked_child_does_not_write(data, tmp_path):
    target = batchfs.create(tmp_path / "o", like=data, **OPTIONS)
    target.write(data[0], data[0]["t"].numpy())
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            target.missing()
        except batchfs.Error as error:
            said = str(error).encode()
        (tmp_path / "said").write_bytes(said)
        del target  # frees nothing here
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert "in the process that writes" in (tmp_path / "said").read_text()
    assert target.missing() == data.schema["samples"]  # which wait in memory


def test_options_of_the_dataset_are_the_outputs(store, truth, tmp_path):
    """The output uses the options of the dataset's store, but not those of its server."""
    south = tmp_path / "groups.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth[["p"]].to_zarr(south, zarr_format=3, group="few/south")
    view = view_of({"time": 1}, variables=["p"])
    data = batchfs.open(south, view=view, group="few/south", threads=1, memory="128M", refresh="1h",
                        cache_dir=tmp_path / "cache")
    with batchfs.create(tmp_path / "o", like=data) as out:
        for batch in out.remaining():
            out.write(batch, batch["p"].numpy())
    assert np.array_equal(xr.open_zarr(tmp_path / "o").p.values, truth.p.values)
    with pytest.raises(batchfs.Error, match="branch|Icechunk"):
        batchfs.create(tmp_path / "i", store=store, view=view, branch="main")
    with pytest.raises(batchfs.InvalidArgument, match="store_options: .*--nothing"):
        batchfs.create(tmp_path / "i", store=store, view=view, nothing=1)


def test_values_in_every_layout(store, truth, tmp_path):
    view = view_of({"time": 1}, variables=["p"])
    data = batchfs.open(store, view=view)
    layouts = (lambda v: v.astype(">f4"), np.asfortranarray,
               lambda v: np.repeat(v, 2, -1)[..., ::2], lambda v: v[::-1].copy()[::-1])
    with batchfs.create(tmp_path / "o", like=data) as out:
        for batch, change in zip(out.remaining(), layouts, strict=True):
            out.write(batch, change(batch["p"].numpy()))
    assert np.array_equal(xr.open_zarr(tmp_path / "o").p.values, truth.p.values)
    unaligned = np.zeros(5 * 26 * 36 * 4 + 1, "u1")[1:].view("f4").reshape(5, 1, 26, 36)
    with batchfs.create(tmp_path / "u", like=data) as out:
        for number in range(4):
            out.write(number, unaligned)
    assert (xr.open_zarr(tmp_path / "u").p.values == 0).all()


class ShortWrites(io.FileIO):
    """Takes a part of each write, as a disk does that is nearly full."""

    def write(self, data):
        return super().write(memoryview(data).cast("B")[:1000])


def test_parts_of_writes_are_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(_output.Folder, "_create", staticmethod(lambda path: (
        os.makedirs(os.path.dirname(path), exist_ok=True), ShortWrites(path, "xb"))[1]))
    folder = _output.Folder(tmp_path / "o")
    values = np.arange(3000, dtype="<i4")
    folder.put("t/c/0", [b"head", values, b"", np.empty((0, 4)), memoryview(b"tail")])
    assert (tmp_path / "o/t/c/0").read_bytes() == b"head" + values.tobytes() + b"tail"
