"""libbatchfs_writer, from a program in C: the outputs are what numpy and xarray say that they
are."""

import json
import os
import pathlib
import re
import signal
import subprocess

import numpy as np
import pytest
import xarray as xr
import zarr

import batchfs

from expected_predictions import expected
from prediction_stores import GRID, T, X, Y, files, open_, view_of
from prediction_stores import store, truth  # noqa: F401 (fixtures)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BATCHFS", "build/batchfs")).resolve().parent


pytestmark = pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" in os.environ,
                                reason="the program would need the sanitizer's runtime")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, as a user would compile it."""
    path = tmp_path_factory.mktemp("c") / "write_predictions"
    subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I",
                    ROOT / "tools/writer", "-o",
                    path, pathlib.Path(__file__).parent / "write_predictions.c", "-L", BUILD,
                    "-lbatchfs_writer", f"-Wl,-rpath,{BUILD}"], check=True)
    return path


class Case:
    """A view, the values of its samples, and what the program makes of them."""

    def __init__(self, program, store, folder, view, tensor=None, predict=None, **options):
        self.program, self.store, self.folder, self.view, self.options = (
            program, store, folder, view, options)
        self.tensor = tensor
        (folder / "view.json").write_text(json.dumps(view))
        data = batchfs.open(store, view=view)
        self.data = data
        name = tensor or next(iter(data.schema["tensors"]))["name"]
        self.predict = predict or (lambda batch: batch[name].numpy())
        made = [(batch.index.copy(), self.predict(batch)) for batch in data]
        data.set_epoch(0)
        numbers, first = np.unique(np.concatenate([index for index, _ in made]), return_index=True)
        assert np.array_equal(numbers, np.arange(len(numbers)))  # an assumption of the program
        self.values = np.concatenate([values for _, values in made])[first]
        (folder / "values").write_bytes(self.values.tobytes())

    def arguments(self, out, **more):
        words = {"values": self.folder / "values", "samples": len(self.values),
                 "from": self.values.dtype.name}
        if self.tensor:
            words["tensor"] = self.tensor
        for key, value in (self.options | more).items():
            if isinstance(value, dict) and key != "name":
                value = ",".join(f"{dim}={length}" for dim, length in value.items())
            if key == "name" and isinstance(value, dict):
                words |= value
            else:
                words[key] = int(value) if isinstance(value, bool) else value
        return [str(self.program), str(self.store), str(self.folder / "view.json"), str(out),
                *(f"{k}={v}" for k, v in words.items())]

    def run(self, out, **more):
        return subprocess.run(self.arguments(out, **more), capture_output=True, text=True,
                              timeout=120, check=False)

    def by_c(self, **more):
        out = self.folder / "c"
        done = self.run(out, **more)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == "0 missing, finished 1"
        return out

    def written(self):
        """The output of the C program."""
        return open_(self.by_c()).load()


@pytest.fixture
def case(program, store, tmp_path):
    return lambda view, **options: Case(program, store, tmp_path, view, **options)


OVERLAPPING = view_of(GRID, variables=["t"], order={"shuffle": "global"})


def noise(name):
    """A model whose windows differ where they overlap."""
    return (lambda batch: batch[name].numpy()
            + batch.index.astype("f4").reshape(-1, *(1,) * (len(batch[name].shape) - 1)))


@pytest.mark.parametrize("overlap", ["trim", "mean", "cosine", "last"])
def test_overlapping_windows(case, overlap):
    made = case(OVERLAPPING, predict=noise("t"), overlap=overlap, chunks={"time": 2, "lat": 9})
    written = made.written()
    samples = {int(number): (dict(zip(GRID, starts.tolist())), made.values[number])
               for batch in made.data for number, starts in zip(batch.index, batch._labels.starts)}
    windows = {"time": ([0], 1, False), "lat": ([0], 8, False), "lon": ([0], 8, False)}
    wanted = expected(list(written.t.dims), dict(written.t.sizes), windows, samples, overlap, "f4")
    np.testing.assert_allclose(written.t.values, wanted, rtol=3e-7)


def test_the_input_comes_back(case, truth):
    """Against the store itself, not against another writer."""
    written = case(OVERLAPPING, overlap="trim").written()
    region = {"lat": slice(0, written.lat.size)}
    xr.testing.assert_identical(written, truth[["t"]].isel(region).assign_attrs({}))


def test_means_are_those_of_numpy(case, truth):
    made = case(view_of({"time": 1, "lat": {"size": 10, "stride": 4}}, variables=["p"]),
                predict=noise("p"), overlap="mean")
    written = made.written()
    total, count = np.zeros((T, Y, X)), np.zeros((T, Y, X))
    for batch in made.data:
        for i, (at, lat) in enumerate(batch._labels.starts):
            total[at, lat:lat + 10] += made.predict(batch)[i, 0]
            count[at, lat:lat + 10] += 1
    with np.errstate(invalid="ignore"):
        assert np.array_equal(written.p.values, (total / count).astype("f4"), equal_nan=True)


def test_steps_ahead_lie_where_they_are_for(case, truth):
    view = view_of({"time": {"size": 1, "stride": 3}}, tensors={"x": {"variables": ["p"]}, "y": {
        "variables": ["t", "p"], "offsets": {"time": [1, 2]}, "stack": "channel"}}, dtype="float32")
    written = case(view, tensor="y").written()
    starts = np.arange(0, T - 2, 3)
    for ahead in (1, 2):
        assert np.array_equal(written.t.values[starts + ahead], truth.t.values[starts + ahead])
    assert np.isnan(written.t.values[starts]).all()


def test_leads_have_a_dimension(case, truth):
    view = view_of({"time": 1},
                   tensors={"x": {"variables": ["p"]},
                            "y": {"variables": ["p"], "offsets": {"time": ["6h", "12h"]}}})
    written = case(view, tensor="y", name="forecast", time="lead").written()
    assert written.forecast.dims == ("init_time", "lead_time", "lat", "lon")
    assert np.array_equal(written.forecast.values[:, 1], truth.p.values[2:])


def test_one_number_for_each_window(case, truth):
    view = view_of({"time": 2, "lat": {"size": 8}}, variables=["t"])
    written = case(view,
                   predict=lambda batch: batch["t"].numpy().mean(axis=(1, 2, 3, 4), dtype="f8"),
                   reduce="window", name="score", dtype="float64").written()
    assert written.score.dims == ("time", "lat")
    assert np.array_equal(written.lat.values, truth.lat.values[:24:8])


def test_classes_shards_and_codecs(case, truth):
    made = case(view_of({"time": 1, "lat": {"size": 8, "stride": 6, "edge": "pad"},
                         "lon": {"size": 16, "stride": 9, "wrap": True}}, variables=["kind"]),
                overlap="trim", chunks={"time": 1, "lat": 13, "lon": 9},
                shards={"time": 4, "lat": -1, "lon": 36}, codec="blosc:zstd:5")
    written = made.written()
    assert written.kind.dtype == "i2" and np.array_equal(written.kind.values, truth.kind.values)
    array = zarr.open_group(made.folder / "c", mode="r")["kind"]
    assert (array.chunks, array.shards) == ((1, 13, 9), (4, 26, 36))
    assert [one.cname.value for one in array.compressors] == ["zstd"]


def test_normalization_is_undone(case, truth):
    view = view_of({"time": 1, "lat": 13}, variables=["t", "p"],
                   normalize={"method": "zscore", "statistics": {
                       "t": {"mean": [280, 285], "std": [9, 10], "dims": ["level"]},
                       "p": {"mean": 1e5, "std": 100}}})
    written = case(view, tensor="t", denormalize=True, name={"t": "temperature"}).written()
    assert written.temperature.attrs["units"] == "K"
    np.testing.assert_allclose(written.temperature.values, truth.t.values, rtol=1e-6)


def test_normalized_values_say_so(case, truth):
    view = view_of({"time": 1}, variables=["t"],
                   normalize={"method": "minmax", "statistics": {"t": {"min": 200, "max": 300}}})
    written = case(view).written()
    assert written.t.attrs["original_units"] == "K"
    np.testing.assert_allclose(written.t.values, (truth.t.values - 200) / 100, rtol=1e-5)


def test_the_program_of_the_guide(tmp_path):
    page = (ROOT / "man/guide/predictions.md").read_text()
    (tmp_path / "program.c").write_text(
        re.search(r":caption: write_predictions.c\n(.*?)```", page, re.S)[1])
    subprocess.run(["cc", "-Wall", "-Werror", "-I", ROOT / "tools/writer", "-o",
                    tmp_path / "program", tmp_path / "program.c", "-L", BUILD, "-lbatchfs_writer",
                    f"-Wl,-rpath,{BUILD}"], check=True)
    cells = ("time", "latitude", "longitude"), np.zeros((28, 32, 60), "f4")
    xr.Dataset({"t2m": cells}).to_zarr(tmp_path / "week.zarr", consolidated=False)
    done = subprocess.run([tmp_path / "program"], cwd=tmp_path, capture_output=True, text=True,
                          check=True)
    assert (done.stdout,
            done.stderr) == (re.search(r"\$ \./write_predictions\n(.*?)```", page, re.S)[1], "")
    assert (open_(tmp_path / "constant.zarr").t2m.values == 280).all()


# Ranks, and processes that are killed.

OPTIONS = {"overlap": "cosine", "chunks": {"time": 2, "lat": 9, "lon": 36}}


@pytest.fixture(scope="module")
def windows(program, store, tmp_path_factory):
    """Predictions of overlapping windows, and the files that one rank writes."""
    made = Case(program, store, tmp_path_factory.mktemp("windows"), OVERLAPPING, predict=noise("t"),
                **OPTIONS)
    made.alone = files(made.by_c())
    return made


def test_ranks_write_what_one_does(windows, tmp_path):
    ranks = [subprocess.Popen(windows.arguments(tmp_path / "o", rank=rank, world=3, memory=memory),
                              stdout=subprocess.PIPE, text=True)
             for rank, memory in enumerate((1 << 30, 20_000, 1))]
    said = [rank.communicate(timeout=120)[0].splitlines() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert sum(int(lines[0].split()[0]) for lines in said) == -(-len(windows.values) // 5)
    assert files(tmp_path / "o") == windows.alone


@pytest.mark.parametrize("after", [0, 1, 17, 30])
def test_a_killed_program_continues(windows, tmp_path, after):
    out = tmp_path / "o"
    assert windows.run(out, kill=after, memory=20_000).returncode == -signal.SIGKILL
    assert not (out / "zarr.json").exists()
    again = windows.run(out)
    assert (again.returncode, again.stderr) == (0, "")
    assert files(out) == windows.alone
    assert windows.run(out).stdout.splitlines() == ["0 batches", "0 missing, finished 1"]


def test_a_rank_may_be_killed_and_another_one_not(windows, tmp_path):
    out = tmp_path / "o"
    assert windows.run(out, rank=0, world=2).stdout.splitlines()[-1].endswith("finished 0")
    assert windows.run(out, rank=1, world=2, kill=3).returncode == -signal.SIGKILL
    rank = windows.run(out, rank=1, world=2)
    assert (rank.returncode, rank.stderr) == (0, "")
    assert files(out) == windows.alone


# Refusals.

@pytest.mark.parametrize("change, why", [
    ({"overlap": "error"}, "windows overlap along 'lat': pass overlap="),
    ({"overlap": "soft"}, "soft"),
    ({"time": "later"}, 'time="later" is unknown: pass "valid" or "lead"'),
    ({"reduce": "all"}, 'reduce="all" is unknown'),
    ({"dtype": "float33"}, "float33"),
    ({"chunks": "depth=3"}, "depth"),
    ({"codec": "zip"}, "'zip' is not a codec"),
    ({"tensor": "z"}, "the view has no tensor 'z'; it has t"),
    ({"rank": 3, "world": 2}, "rank 3 is not below world 2"),
    ({"rank": -1}, "rank is -1"),
    ({"store_option": "--nothing"}, "store_options: "),
    ({"part": "test"}, "part"),
    ({"dtype": "int16", "overlap": "last"}, "int16"),
])
def test_wrong_options_are_refused(windows, tmp_path, change, why):
    done = windows.run(tmp_path / "o", **change)
    assert done.returncode == 1
    assert why in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_output_of_another_run_is_refused(windows, tmp_path):
    assert windows.run(tmp_path / "o", kill=3).returncode == -signal.SIGKILL
    assert 'its "overlap" differs' in windows.run(tmp_path / "o", overlap="mean").stderr
    assert "lies in the store that is read" in windows.run(windows.store / "out").stderr
