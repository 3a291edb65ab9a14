""""samples.list", "labels", "anchor" and "snap" against numpy and pandas: the rows of a file are
the samples."""

import io
import json
import os
import pathlib

import brute_force
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from man_view_test import page

T, Y, X = 30, 12, 18
TIMES = pd.date_range("2001-01-01", periods=T, freq="6h")
LATITUDES = np.linspace(60, 5, Y).astype("f4")
LONGITUDES = np.arange(X) * 20.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(2)
    ds = xr.Dataset({"t": (("time", "lat", "lon"), rng.random((T, Y, X)).astype("f4")),
                     "s": (("lat", "lon"), rng.random((Y, X))),
                     "u": (("time", "plain"), rng.random((T, 9)))},
                    {"time": TIMES, "lat": ("lat", LATITUDES, {"units": "degrees_north"}),
                     "lon": ("lon", LONGITUDES, {"units": "degrees_east"})})
    path = tmp_path_factory.mktemp("list") / "s.zarr"
    ds.to_zarr(path, zarr_format=2, encoding={"t": {"chunks": (7, 5, 6)}, "s": {"chunks": (12, 18)},
                                              "u": {"chunks": (30, 9)}})
    return path, ds


WINDOW = {"time": {"size": 3, "stride": 2}, "lat": 4, "lon": {"size": 5, "wrap": True}}


def random_rows(n, seed=0, low=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(low, T - 4, n), rng.integers(0, Y - 3, n),
                            rng.integers(0, X, n)])


def run_with(batchfs, tmp_path, store, view, rows=None, name="rows.npy", **samples):
    if rows is not None:
        np.save(tmp_path / name, rows)
    return brute_force.View(batchfs, tmp_path, store, view | {"samples": {"list": name, **samples}})


def check(run, ds, view, rows, size):
    plan = run.plan()
    assert plan["samples"] == plan["windows"] == len(rows)
    dims = list(view["window"])
    numbers = []
    for b in range(plan["batches"]):
        provenance = run.provenance(b)
        numbers += provenance["samples"]
        assert provenance["starts"] == [list(map(int, rows[s])) for s in provenance["samples"]]
        for name in brute_force.tensors_of(view):
            expected = [brute_force.take(ds, view, dict(zip(dims, rows[s])))[name][0]
                        for s in provenance["samples"]]
            np.testing.assert_array_equal(run.tensor(name, b), np.stack(expected))
    return numbers


@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
@pytest.mark.parametrize("kind", ["rows", "columns", "int32"])
def test_rows_of_npy(batchfs, store, tmp_path, kind, shuffle):
    path, ds = store
    rows = random_rows(40)
    rows[7] = rows[31]
    view = {"variables": ["t", "s"], "window": WINDOW, "batch": 9,
            "order": {"shuffle": shuffle, "seed": 5}}
    saved = {"rows": rows, "columns": np.asfortranarray(rows), "int32": rows.astype("i4")}[kind]
    run = run_with(batchfs, tmp_path, path, view, saved)
    numbers = check(run, ds, view, rows, 9)
    assert sorted(numbers) == list(range(40)) and (numbers
                                                   == list(range(40))) == (shuffle == "none")
    if shuffle == "global":
        assert numbers == [page()["permute"](i, 40, 5, 0) for i in range(40)]


@pytest.mark.parametrize("span", [{}, {"time": 2, "lon": 2}])
@pytest.mark.parametrize("buffer", [1, 3, 100])
@pytest.mark.parametrize("epoch", [0, 5])
def test_the_block_order(batchfs, store, tmp_path, epoch, buffer, span):
    """Rows are grouped by the chunks that they start in: the function of the page gives the same
    order."""
    path, _ = store
    rows = random_rows(150, 3)
    view = {"variables": ["t", "s"], "window": WINDOW, "batch": 10,
            "order": {"shuffle": "block", "seed": 8, "buffer": buffer, "span": span}}
    run = run_with(batchfs, tmp_path, path, view, rows)
    # the longest of the variables
    chunks = [c * span.get(d, 1) for d, c in zip(WINDOW, (7, 12, 18))]
    expected = list(page()["listed"](rows.tolist(),
                                     lambda start: [s // c for s, c in zip(start, chunks)], 8,
                                     epoch, buffer))
    assert [s for b in range(15)
            for s in run.provenance(b, "--epoch", epoch)["samples"]] == expected
    assert sorted(expected) == list(range(150))


@pytest.mark.parametrize("order", [{"shuffle": "block", "lanes": 3},
                                   {"shuffle": "block", "lanes": 2, "home": True},
                                   {"shuffle": "global", "lanes": 4}], ids=json.dumps)
@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
def test_ranks_lanes_and_another_world(batchfs, store, tmp_path, order, remainder):
    path, _ = store
    view = {"variables": ["t"], "window": WINDOW, "batch": {"size": 4, "remainder": remainder},
            "order": order}
    run = run_with(batchfs, tmp_path, path, view, random_rows(90, 4))
    count = run.plan()["batches"]
    epoch = [run.provenance(b, "--epoch", 1)["samples"] for b in range(count)]
    flat = [s for batch in epoch for s in batch]
    assert (len(flat),
            len(set(flat))) == {"keep": (90, 90), "drop": (88, 88), "pad": (92, 90)}[remainder]
    for world in (2, 3):  # an epoch that is resumed with another world has the same batches
        for b in (0, 3, 6):
            for rank in range(world):
                assert run.provenance(b, "--rank", rank, "--world", world, "--epoch",
                                      1)["samples"] == epoch[b * world + rank]


@pytest.mark.parametrize("edge", ["drop", "pad"])
def test_offsets_edges_and_the_middle(batchfs, store, tmp_path, edge):
    path, ds = store
    view = {"window": {"time": {"size": 2, "edge": edge}, "lat": {"size": 5, "edge": edge}},
            "batch": 5, "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-3, 0]}},
                                    "y": {"variables": ["t"], "offsets": {"time": [4]}}}}
    last = (T - 5, Y - 1) if edge == "pad" else (T - 6, Y - 5)
    rows = np.array([(3, 0), last, (10, 4), (3, 0)])
    check(run_with(batchfs, tmp_path, path, view, rows), ds, view, rows, 5)
    middle = np.minimum(rows + [1, 2], [T - 1, Y - 1])  # a position of the selection
    check(run_with(batchfs, tmp_path, path, view, middle, anchor="center"), ds, view,
          middle - [1, 2], 5)
    for wrong, dim, needs in (((2, 0), "time", "-1 to 7"),
                              ((last[0] + 1, 0), "time", f"{last[0] - 2} to {last[0] + 6}"),
                              ((3, last[1] + 1), "lat", f"{last[1] + 1} to {last[1] + 5}")):
        if edge == "pad" and dim == "lat":
            message = (f"samples.list: row 2: 'lat' has no position {Y}: the selection has {Y}; 1 "
                       "of 4 rows does not fit")
        else:
            n = T if dim == "time" else Y
            message = (f"samples.list: row 2: along '{dim}' its window needs the positions "
                       f"{needs}, and the selection has {n}")
        refusal = run_with(batchfs, tmp_path, path, view,
                           np.array([rows[0], rows[1], wrong, rows[3]])).refusal()
        assert message in refusal and "1 of 4 rows does not fit" in refusal
        assert ('"edge": "pad"' in refusal) == (edge == "drop" and wrong != (2, 0))


def test_one_dimension_and_what_is_selected(batchfs, store, tmp_path):
    path, ds = store
    view = {"variables": ["t"], "window": {"time": 2},
            "select": {"time": ["#20", "#3", "#4", "#5", "#11"]}}
    run = run_with(batchfs, tmp_path, path, view, np.array([3, 0, 0, 2]))
    check(run, ds.isel(time=[20, 3, 4, 5, 11]), view, [[3], [0], [0], [2]], 1)
    assert "row 1: 'time' has no position 5: the selection has 5; 2 of 3 rows do not fit" in \
        run_with(batchfs, tmp_path, path, view, np.array([0, 5, -1])).refusal()


def test_durations(batchfs, store, tmp_path):
    path, ds = store
    view = {"window": {"time": "12h", "lat": 3},
            "tensors": {"x": {"variables": ["t"], "offsets": {"time": ["-12h", "0h"]}}}}
    same = {"window": {"time": 2, "lat": 3},
            "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-2, 0]}}}}
    rows = np.array([[2, 1], [T - 2, 0], [7, 9]])
    run = run_with(batchfs, tmp_path, path, view, rows)
    for b, row in enumerate(rows):
        np.testing.assert_array_equal(
            run.tensor("x", b)[0],
            brute_force.take(ds, same, dict(zip(("time", "lat"), row)))["x"][0])
    assert ("along 'time' the window at 1 has not the labels of its offsets; 1 of 3 rows does not "
            "fit" in run_with(batchfs, tmp_path, path, view, rows - [1, 0]).refusal())


def test_the_stride_is_ignored(batchfs, store, tmp_path):
    path, _ = store
    run = run_with(batchfs, tmp_path, path, {"variables": ["t"], "window": WINDOW}, random_rows(3))
    assert any("window.time.stride is ignored" in w for w in run.plan()["warnings"])


# ---- .csv ----

def write_csv(tmp_path, frame, **options):
    frame.to_csv(tmp_path / "rows.csv", **options)
    return "rows.csv"


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_labels_of_csv(batchfs, store, tmp_path, index, ending):
    path, ds = store
    rows = random_rows(25, 6)
    frame = pd.DataFrame({"name": [f'station "{i}", {i}' for i in range(25)],
                          "lat": LATITUDES[rows[:, 1]], "time": TIMES[rows[:, 0]],
                          "lon": LONGITUDES[rows[:, 2]], "class": np.arange(25) % 3,
                          "rain": np.linspace(0, 1, 25)})
    write_csv(tmp_path, frame, index=index, lineterminator=ending)
    view = {"variables": ["t", "s"], "window": WINDOW, "batch": 8, "order": {"shuffle": "block"}}
    run = run_with(batchfs, tmp_path, path, view, name="rows.csv", labels=["class", "rain"])
    numbers = check(run, ds, view, rows, 8)
    labels = [run.tensor(name, b) for name in ("class", "rain") for b in range(4)]
    np.testing.assert_array_equal(np.concatenate(labels[:4]), (np.arange(25) % 3)[numbers])
    np.testing.assert_array_equal(np.concatenate(labels[4:]), np.linspace(0, 1, 25)[numbers])
    assert labels[0].dtype == "int64" and labels[4].dtype == "float64"


def test_positions_and_dates_in_cells(batchfs, store, tmp_path):
    path, ds = store
    (tmp_path / "rows.csv").write_text("\ufefftime , lat,lon\n#3,#0,#-1\n\n 2001-01-02 , 60 "
                                       ",\"340\"\n2001-01-02T06,60.0,3.4e2\n", encoding="utf-8")
    view = {"variables": ["t"], "window": {"time": 1, "lat": 2, "lon": 1}}
    check(run_with(batchfs, tmp_path, path, view, name="rows.csv"), ds, view,
          [[3, 0, 17], [4, 0, 17], [5, 0, 17]], 1)
    # a dimension without labels
    (tmp_path / "rows.csv").write_text("plain,time\n7,#2\n#1,2001-01-01\n")
    view = {"variables": ["u"], "window": {"time": 1, "plain": 2}}
    check(run_with(batchfs, tmp_path, path, view, name="rows.csv"), ds, view, [[2, 7], [0, 1]], 1)


def test_the_nearest_labels(batchfs, store, tmp_path):
    """Like xarray's nearest, but round the circle of longitudes."""
    path, ds = store
    rng = np.random.default_rng(9)
    n = 60
    frame = pd.DataFrame({"time": TIMES[rng.integers(0, T, n)]
                              + pd.to_timedelta(rng.integers(-9000, 9000, n), "s"),
                          "lat": rng.uniform(0, 65, n), "lon": rng.uniform(-200, 700, n)})
    write_csv(tmp_path, frame, index=False)
    view = {"variables": ["t"], "window": {"time": 1, "lat": 1, "lon": 1}, "batch": n}
    run = run_with(batchfs, tmp_path, path, view, name="rows.csv", snap="nearest")
    turned = np.abs((frame["lon"].values[:, None] - LONGITUDES + 180) % 360 - 180).argmin(1)
    expected = np.column_stack([ds.indexes["time"].get_indexer(frame["time"], method="nearest"),
                                ds.indexes["lat"].get_indexer(frame["lat"], method="nearest"),
                                turned])
    assert run.provenance(0)["starts"] == expected.tolist()
    away = (frame["time"] - TIMES[expected[:, 0]]).abs().dt.total_seconds()
    limit = sorted(away)[n // 2]
    first = int(np.argmax(away > limit))
    refusal = run_with(batchfs, tmp_path, path, view, name="rows.csv", snap="nearest",
                       tolerance={"time": f"{int(limit)}s"}).refusal()
    assert (f"samples.list: row {first} (line {first + 2}), time: " in refusal
            and f"{int((away > limit).sum())} of 60 rows do not fit" in refusal)
    run_with(batchfs, tmp_path, path, view, name="rows.csv", snap="nearest",
             tolerance={"time": "3h", "lat": 5.5, "lon": 10}).plan()


@pytest.mark.parametrize("dtype", [None, "float32", "float16"])
def test_formats_of_labels(batchfs, store, tmp_path, dtype):
    path, ds = store
    rows = random_rows(6, 1)
    frame = pd.DataFrame({"time": TIMES[rows[:, 0]], "lat": LATITUDES[rows[:, 1]],
                          "lon": LONGITUDES[rows[:, 2]], "kind": [3, -1, 2, 2**62, 0, 5],
                          "w": [0.5, 1, 2.25, np.nan, -4, 1e300]})
    write_csv(tmp_path, frame, index=False, na_rep="nan")
    view = {"variables": ["t"], "window": WINDOW, "batch": 4,
            "formats": ["npz", "safetensors", "zarr", "npy"]} | ({"dtype": dtype} if dtype else {})
    run = run_with(batchfs, tmp_path, path, view, name="rows.csv", labels=["kind", "w"])
    with np.errstate(over="ignore"):
        w = frame["w"].values.astype(dtype or "f8")
    schema = {t["name"]: t for t in run.plan()["tensors"]}
    assert schema["kind"]["dtype"] == "int64" and schema["w"]["dtype"] == (dtype or "float64")
    assert schema["w"]["dims"] == ["sample"] and schema["w"]["shape"] == [4]
    for b, part in ((0, slice(0, 4)), (1, slice(4, 6))):
        np.testing.assert_array_equal(run.tensor("kind", b), frame["kind"].values[part])
        np.testing.assert_array_equal(run.tensor("w", b), w[part])
        npz = np.load(io.BytesIO(run.run("batch", "--batch", b, "--format", "npz")))
        np.testing.assert_array_equal(npz["kind"], frame["kind"].values[part])
        np.testing.assert_array_equal(npz["w"], w[part])
        data = run.run("batch", "--batch", b, "--format", "safetensors")
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        begin, end = header["kind"]["data_offsets"]
        np.testing.assert_array_equal(np.frombuffer(data[8 + length + begin:8 + length + end],
                                                    "i8"), frame["kind"].values[part])


# ---- mistakes ----

def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def header(shape="(2, 3)", descr="'<i8'", order="False", body=b"\0" * 48, version=b"\x01\0"):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + body


GOOD = random_rows(2)
NPY = {
    "empty": (b"", "not a .npy file: it ends in its header"),
    "no numpy": (b"time,lat\n1,2\n" * 9, "not a .npy file: it does not begin as one"),
    "version": (header(version=b"\x09\0"), "not a .npy file: its format has version 9"),
    "cut": (npy(GOOD)[:-1], "the header speaks of 6 elements, and 47 bytes follow"),
    "longer": (npy(GOOD) + b"\0", "the header speaks of 6 elements, and 49 bytes follow"),
    "lies": (header("(2305843009213693952, 3)"),
             "the header speaks of 6917529027641081856 elements, and 48 bytes follow"),
    "overflow": (header("(9223372036854775807, 9223372036854775807)"),
                 "the header speaks of more than 2^63 elements"),
    "negative": (header("(-2, -3)"), "not a .npy file: its header has no valid shape"),
    "no shape": (header("2"), "not a .npy file: its header has no valid shape"),
    "objects": (header(descr="'|O'"), "its elements are '|O'; save numbers"),
    "big endian": (header(descr="'>i8'"), "its elements are '>i8'; save numbers"),
    "structured": (header(descr="[('a', '<i8')]"), "its elements are structured; save numbers"),
    "floats": (npy(GOOD.astype("f8")),
               "samples.list: starts are whole numbers, and the array has floats"),
    "too few columns": (npy(GOOD[:, :2]),
                        "samples.list: the array has the shape (2, 2); it needs a row for each "
                        "sample and a column for each dimension of \"window\": time, lat, lon"),
    "three dimensions": (npy(GOOD[None]), "samples.list: the array has the shape (1, 2, 3)"),
    "no row": (npy(GOOD[:0]), "samples.list: no sample is left: the file has no row"),
    "far": (npy(np.array([GOOD[0], [2**63 - 1, 0, 0], [-2**63, 0, 0]])),
            "samples.list: row 1: 'time' has no position 9223372036854775807: the selection has "
            "30; 2 of 3 rows do not fit"),
    "unsigned": (npy(np.array([[2**64 - 1, 0, 0]], "u8")),
                 "samples.list: row 0: 'time' has no position"),
    "columns first": (npy(np.asfortranarray([[1, 1, 1], [1, -1, 1], [-7, 1, 1]])),
                      "samples.list: row 1: "),
}


@pytest.mark.parametrize("case", NPY)
def test_mistakes_of_npy(batchfs, store, tmp_path, case):
    path, _ = store
    content, message = NPY[case]
    (tmp_path / "rows.npy").write_bytes(content)
    assert message in run_with(batchfs, tmp_path, path,
                               {"variables": ["t"], "window": WINDOW}).refusal()


CSV = {
    "empty": ("", {}, "samples.list: the file is empty"),
    "header only": ("time,lat,lon\n", {}, "samples.list: no sample is left: the file has no row"),
    "no column": ("time,latitude,lon\n", {},
                  "samples.list: there is no column 'lat', did you mean"),
    "twice": ("time,lat,lon,lat\n", {}, "samples.list: there are two columns 'lat'"),
    "no such label column": ("time,lat,lon\n#1,#1,#1\n", {"labels": ["rain"]},
                             "samples.labels[0]: there is no column 'rain'"),
    "cells": ("time,lat,lon\n#1,#1,#1\n#1,#1\n", {},
              "line 3: samples.list: the line has 2 cells, and the header 3"),
    "quote": ('time,lat,lon\n"#1,#1,#1\n', {},
              "line 2: a cell begins with a quote and does not end with one"),
    "after quote": ('time,lat,lon\n"#1"2,#1,#1\n', {},
                    "line 2: text follows the quote that ends a cell"),
    "nul": ("time,lat,lon\n#1,#1\0,#1\n", {}, "line 2: it holds a NUL byte"),
    "long line": ("time,lat,lon\n" + "1" * (3 << 20), {}, "line 2: the line is longer than 1 MiB"),
    "many cells": ("a," * 2000 + "\n", {}, "line 1: the line has more than 1024 cells"),
    "label": ("time,lat,lon\n#1,#1,#1\n2001-01-01T03,#1,#1\n#1,#1,7\n", {},
              "samples.list: row 1 (line 3), time: '2001-01-01T03' is not a label of 'time' in the "
              "selection; 2 of 3 rows do not fit"),
    "date": ("time,lat,lon\nyesterday,#1,#1\n", {},
             "row 0 (line 2), time: 'yesterday' is not a date; 1 of 1 row does not fit"),
    "number": ("time,lat,lon\n#1,north,#1\n", {}, "row 0 (line 2), lat: 'north' is not a number"),
    "nan": ("time,lat,lon\n#1,nan,#1\n", {}, "row 0 (line 2), lat: 'nan' is not a number"),
    "huge": ("time,lat,lon\n#1,1e300,#1\n", {},
             "row 0 (line 2), lat: '1e300' is not a label of 'lat'"),
    "beyond double": ("time,lat,lon\n#1,1e999,#1\n", {},
                      "row 0 (line 2), lat: '1e999' is not a number"),
    "overflow": ("time,lat,lon\n#99999999999999999999,#1,#1\n", {},
                 "'99999999999999999999' is not a position of 'time'"),
    "position": ("time,lat,lon\n#30,#1,#1\n", {},
                 "there is no position 30 of 'time': the selection has 30"),
    "misfit": ("time,lat,lon\n#28,#1,#1\n", {}, "samples.list: row 0 (line 2): along 'time' its "
                                                "window needs the positions 28 to 30"),
    "label text": ("time,lat,lon,w\n#1,#1,#1,1\n#1,#1,#1,\n", {"labels": ["w"]},
                   "row 1 (line 3), w: '' is not a number; 1 of 2 rows does not fit"),
    "labels twice": ("time,lat,lon,w\n#1,#1,#1,1\n", {"labels": ["w", "w"]},
                     "samples.labels[1]: 'w' is given twice"),
    "name of a tensor": ("time,lat,lon,t\n#1,#1,#1,1\n", {"labels": ["t"]},
                         "samples.labels: there is a tensor 't' already"),
    "no labels": ("time,lat,lon,t\n#1,#1,#1,1\n", {"labels": []},
                  "samples.labels: the list is empty"),
    "anchor": ("time,lat,lon\n#1,#1,#1\n", {"anchor": "middle"},
               "samples.anchor: 'middle' is none of start, center"),
    "snap": ("time,lat,lon\n#1,#1,#1\n", {"snap": "next"},
             "samples.snap: 'next' is none of exact, nearest"),
    "tolerance": ("time,lat,lon\n#1,#1,#1\n", {"tolerance": 1},
                  'samples.tolerance: it goes with "snap": "nearest"'),
    "kind of tolerance": ("time,lat,lon\n#1,#1,#1\n", {"snap": "nearest", "tolerance": {"time": 3}},
                          "samples.tolerance: '3' is not a length of time"),
    "tolerance of": ("time,lat,lon\n#1,#1,#1\n", {"snap": "nearest", "tolerance": {"tim": 3}},
                     "samples.tolerance.tim: 'tim' is not a dimension"),
    "key": ("time,lat,lon\n#1,#1,#1\n", {"label": ["w"]},
            "samples: unknown key 'label', did you mean 'labels'?"),
    "digest": ("time,lat,lon\n#1,#1,#1\n", {"list": {"file": "rows.csv", "digest": "xxh3:0"}},
               "samples.list: 'rows.csv' is not the file that the view was made for"),
}


@pytest.mark.parametrize("case", CSV)
def test_mistakes_of_csv(batchfs, store, tmp_path, case):
    path, _ = store
    text, samples, message = CSV[case]
    (tmp_path / "rows.csv").write_text(text)
    view = {"variables": ["t"], "window": WINDOW, "samples": {"list": "rows.csv"} | samples}
    refusal = brute_force.View(batchfs, tmp_path, path, view).refusal()
    assert message in refusal and len(refusal) < 700


@pytest.mark.parametrize(
    "name, message", [("rows.txt", "samples.list: 'rows.txt' is neither a .npy nor a .csv file"),
                      ("none.npy", "No such file"), ("", "samples.list: the file's name is empty"),
                      ("pipe.npy", "not a regular file"), ("folder.csv", "not a regular file")])
def test_mistakes_of_files(batchfs, store, tmp_path, name, message):
    path, _ = store
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "folder.csv").mkdir()
    assert message in run_with(batchfs, tmp_path, path, {"variables": ["t"], "window": WINDOW},
                               name=name).refusal()


def test_what_does_not_go_with_a_list(batchfs, store, tmp_path):
    path, _ = store
    np.save(tmp_path / "rows.npy", random_rows(3))
    (tmp_path / "v.json").write_text(json.dumps({"xbatcher": {"input_dims": {"time": 3}},
                                                 "samples": {"list": "rows.npy"}}))
    assert 'samples: a view has either "xbatcher" or "samples"' in batchfs.refusal(
        "plan", path, "--view", tmp_path / "v.json")
    for key, value in (("labels", ["w"]), ("anchor", "start"), ("snap", "exact"), ("tolerance", 1)):
        run = brute_force.View(batchfs, tmp_path, path,
                               {"variables": ["t"], "window": WINDOW, "samples": {key: value}})
        assert f'samples.{key}: it goes with "list"' in run.refusal()
    assert "samples.labels: labels are columns of a .csv file; 'rows.npy' has starts only" in (
        run_with(batchfs, tmp_path, path, {"variables": ["t"], "window": WINDOW},
                 labels=["w"]).refusal())


def test_files_lie_beside_the_view(batchfs, store, tmp_path, monkeypatch):
    path, _ = store
    (tmp_path / "views").mkdir()
    monkeypatch.chdir(tmp_path)
    run = run_with(batchfs, tmp_path / "views", path, {"variables": ["t"], "window": WINDOW},
                   random_rows(4))
    assert run.plan()["samples"] == 4
    assert pathlib.Path("views/rows.npy").exists() and not pathlib.Path("rows.npy").exists()
