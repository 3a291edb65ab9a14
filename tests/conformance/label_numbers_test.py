"""Integers as labels (H3 and HEALPix cells, river reaches) are exact: random ones of every width
near 2^53, 2^63 and 2^64, against pandas, xarray and Python's integers.

BATCHFS_LABEL_SEED=100 asks other questions than the usual ones.
"""

import json
import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from several_stores import SeveralStores, write
from view_commands import refused, view_file

FIRST = int(os.environ.get("BATCHFS_LABEL_SEED", "0"))
EDGES = {"u8": [0, 2**53, 599686042433355776, 2**63, 2**64 - 1],
         "i8": [-2**63, -2**53, 0, 2**53, 2**63 - 1], "u4": [2**32 - 1], "i4": [-2**31],
         "u1": [255], "i2": [0]}
KINDS = [(dtype, edge) for dtype, edges in EDGES.items() for edge in edges]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")


def generator(kind):
    return np.random.default_rng([FIRST, KINDS.index(kind)])


def random_labels(rng, kind, n=12):
    """Labels near an edge of the type, each once; some have the same float64."""
    dtype, edge = kind
    info = np.iinfo(dtype)
    low = min(max(edge - 12, int(info.min)), int(info.max) - 24)
    return np.array([low + int(i) for i in rng.permutation(25)[:n]], dtype)


def store_of(path, labels, name="v"):
    return write(path,
                 xr.Dataset({name: (("c",), np.arange(len(labels), dtype="f8"))}, {"c": labels}),
                 version=[2, 3][len(labels) % 2])


def near_misses(labels):
    """Integers next to labels which are none."""
    known = set(map(int, labels))
    return [i for label in known for i in (label - 1, label + 1) if i not in known]


@kinds
def test_one_label_is_itself_alone(batchfs, tmp_path, kind):
    rng = generator(kind)
    labels = random_labels(rng, kind)
    ds = store_of(tmp_path / "s.zarr", labels)
    assert batchfs.npy("cat", tmp_path / "s.zarr", "c").tolist() == labels.tolist()
    for label in labels:
        assert batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select",
                           f"c={label}") == ds.v.sel(c=label).values
    for label in near_misses(labels)[:6]:
        assert label not in pd.Index(labels)
        assert f"no '{label}' in 'c'" in batchfs.refusal("cat", tmp_path / "s.zarr", "v",
                                                         "--select", f"c={label}")
        line = refused(batchfs, tmp_path, tmp_path / "s.zarr",
                       {"window": {"c": 1}, "select": {"c": [label]}})
        # Beyond 64 bits JSON becomes a float.
        assert ("less than an integer of 64 bits" if label < -2**63 else "no '" if label == 2**64
                else f"no '{label}' in 'c'") in line
    for label in (2**64, -2**63 - 1, 10**25, -10**25):
        assert "in 'c'" in batchfs.refusal("cat", tmp_path / "s.zarr", "v", "--select",
                                           f"c={label}")
    wanted = [int(i) for i in rng.permutation(labels)]
    view = {"window": {"c": 1}, "select": {"c": wanted}, "batch": 20}
    file = view_file(tmp_path, view)
    got = batchfs.npy("batch", tmp_path / "s.zarr", "--view", file, "--tensor", "v")
    assert got.ravel().tolist() == ds.v.sel(c=np.array(wanted, labels.dtype)).values.tolist()
    provenance = json.loads(batchfs.bytes("batch", tmp_path / "s.zarr", "--view", file, "--format",
                                          "json"))
    assert provenance["coordinates"]["c"] == wanted


@kinds
def test_ranges_are_xarrays(batchfs, tmp_path, kind):
    rng = generator(kind)
    labels = np.sort(random_labels(rng, kind))
    descending = rng.random() < 0.5
    if descending:
        labels = labels[::-1]
    store_of(tmp_path / "s.zarr", labels)
    for _ in range(6):
        ends = sorted(int(labels[rng.integers(len(labels))]) + int(rng.integers(-1, 2))
                      for _ in range(2))
        inside = [i for i, label in enumerate(labels) if ends[0] <= int(label) <= ends[1]]
        if descending:
            ends.reverse()
        index = pd.Index(labels)
        if all(np.iinfo(labels.dtype).min <= end <= np.iinfo(labels.dtype).max for end in ends):
            assert np.arange(len(labels))[
                index.slice_indexer(*map(labels.dtype.type, ends))].tolist() == inside
        words = ["cat", tmp_path / "s.zarr", "v", "--select", f"c={ends[0]}:{ends[1]}"]
        # A view refuses integers below int64, which select the same.
        first, last = (max(end, -(2**63)) for end in ends)
        where = {"window": {"c": 1}, "samples": {"where": {"c": {"from": first, "to": last}}},
                 "batch": 20}
        if not inside:
            assert "nothing of 'c' lies in this range" in batchfs.refusal(*words)
            assert "nothing of 'c' lies in this range" in refused(
                batchfs, tmp_path, tmp_path / "s.zarr", where)
            continue
        assert batchfs.npy(*words).tolist() == inside
        got = batchfs.npy("batch", tmp_path / "s.zarr", "--view", view_file(tmp_path, where),
                          "--tensor", "v")
        assert got.ravel().tolist() == inside
    middle = int(labels[5])
    for select, kept in ((f"{middle}:", labels[5:]), (f":{middle}", labels[:6])):
        assert len(batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select",
                               f"c={select}")) == len(kept)


@kinds
def test_the_nearest_label(batchfs, tmp_path, kind):
    """By Python's integers: pandas subtracts uint64 with a wrap."""
    rng = generator(kind)
    labels = random_labels(rng, kind)
    store_of(tmp_path / "s.zarr", labels)
    own = list(map(int, labels))
    for label in near_misses(labels)[:8]:
        best = min(own, key=lambda i: (abs(i - label), -i))
        away = abs(best - label)
        words = ["cat", tmp_path / "s.zarr", "v", "--select"]
        assert batchfs.npy(*words, f"c={label}:nearest") == own.index(best)
        assert batchfs.npy(*words, f"c={label}:nearest:tolerance={away}") == own.index(best)
        assert "no label of 'c' within" in batchfs.refusal(
            *words, f"c={label}:nearest:tolerance={away - 1}")


@kinds
def test_rows_of_a_list(batchfs, tmp_path, kind):
    rng = generator(kind)
    labels = random_labels(rng, kind)
    store_of(tmp_path / "s.zarr", labels)
    rows = rng.permutation(12)[:7]
    (tmp_path / "rows.csv").write_text("c,id\n" + "".join(f"{labels[i]},{int(i) * 2**58}\n"
                                                          for i in rows))
    view = {"window": {"c": 1}, "samples": {"list": "rows.csv", "labels": ["id"]}, "batch": 20}
    file = view_file(tmp_path, view)
    assert batchfs.npy("batch", tmp_path / "s.zarr", "--view", file, "--tensor",
                       "v").ravel().tolist() == rows.tolist()
    ids = batchfs.npy("batch", tmp_path / "s.zarr", "--view", file, "--tensor", "id")
    assert ids.dtype == "int64" and ids.tolist() == [int(i) * 2**58 for i in rows]
    absent = near_misses(labels)[0]
    (tmp_path / "rows.csv").write_text(f"c,id\n{absent},1\n")
    assert "is not a label of 'c'" in refused(batchfs, tmp_path, tmp_path / "s.zarr", view)
    (tmp_path / "rows.csv").write_text(f"c,id\n{labels[0]},{2**64 - 1}\n")
    assert "is beyond an int64" in refused(batchfs, tmp_path, tmp_path / "s.zarr", view)


def test_positions_of_uint64_do_not_wrap(batchfs, tmp_path):
    store_of(tmp_path / "s.zarr", np.arange(12))
    np.save(tmp_path / "rows.npy", np.array([0, 2**64 - 1], "u8"))
    line = refused(batchfs, tmp_path, tmp_path / "s.zarr",
                   {"window": {"c": 1}, "samples": {"list": "rows.npy"}})
    assert "row 1: 'c' has no position 9223372036854775807" in line


@pytest.mark.parametrize("pick", ["exact", "nearest", "last", "next"])
@pytest.mark.parametrize("edge", EDGES["u8"])
@pytest.mark.parametrize("kind", ["u8", "i8", "f8"])
def test_joins(batchfs, tmp_path, kind, edge, pick):
    """Labels of the coordinate's type, and int64 with uint64 and with float64."""
    rng = np.random.default_rng([FIRST, EDGES["u8"].index(edge), len(pick)])
    labels = random_labels(rng, ("u8", edge))
    own = {"u8": np.array([int(i) + int(rng.integers(-1, 2)) * (int(i) not in (0, 2**64 - 1))
                           for i in labels], "u8"),
           "i8": np.array([min(int(i), 2**63 - 1 - k) for k, i in enumerate(labels)], "i8"),
           "f8": labels.astype("f8")}[kind]
    own = own[np.sort(np.unique([int(i) for i in own], return_index=True)[1])]
    store_of(tmp_path / "a.zarr", labels)
    store_of(tmp_path / "b.zarr", own, "u")
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr", [f"b={tmp_path}/b.zarr"])
    there = [int(i) for i in own]

    def match(label):
        if label in there:
            return there.index(label)
        around = {"exact": [], "nearest": there, "last": [i for i in there if i < label],
                  "next": [i for i in there if i > label]}[pick]
        if pick == "nearest" and kind == "f8":  # distances of floats are floats
            return there.index(min(around, key=lambda i: (abs(float(i) - float(label)), -i)))
        return there.index(min(around, key=lambda i: (abs(i - label), -i))) if around else -1

    places = [match(int(label)) for label in labels]
    view = {"sources": {"a": {},
                        "b": {"store": "b", "join": {"c": {"pick": pick, "missing": "pad"}}}},
            "variables": ["v", "b:u"], "window": {"c": 1}, "batch": 20}
    if set(places) == {-1}:
        assert "no label is in both" in stores.refusal(view)
        return
    got = stores.tensors(view)["b:u"].ravel()
    assert np.array_equal(got, np.where(np.array(places) < 0, np.nan, places), equal_nan=True)


def test_a_join_on_a_circle_of_whole_numbers(batchfs, tmp_path):
    period = 2**40
    labels = np.array([2**53 + 1, 2**60 + 7, 2**63 + 5], "u8")
    own = np.array([(int(i) % period) for i in labels][::-1] + [2], "i8")
    store_of(tmp_path / "a.zarr", labels)
    store_of(tmp_path / "b.zarr", own, "u")
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr", [f"b={tmp_path}/b.zarr"])
    view = {"sources": {"a": {}, "b": {"store": "b", "join": {"c": {"period": period}}}},
            "variables": ["v", "b:u"], "window": {"c": 1}, "batch": 20}
    assert stores.tensors(view)["b:u"].ravel().tolist() == [2, 1, 0]


def test_stores_one_behind_the_other(batchfs, tmp_path):
    first = 2**63 + np.arange(4, dtype="u8")
    for name, labels in (("a", first), ("b", first + 4), ("c", first + 3)):
        store_of(tmp_path / f"{name}.zarr", labels)
    stores = SeveralStores(batchfs, tmp_path, tmp_path / "a.zarr",
                           [f"{n}={tmp_path}/{n}.zarr" for n in "abc"])
    view = {"sources": {"x": {"stores": ["a", "b"], "concat": "c"}}, "window": {"c": 1},
            "batch": 20}
    assert stores.provenance(view)["coordinates"]["c"] == [int(i) for i in (*first, *first + 4)]
    view["sources"]["x"]["stores"] = ["a", "c"]
    assert "does not lie behind" in stores.refusal(view)
    view["sources"]["x"]["prefer"] = "last"
    assert stores.provenance(view)["coordinates"]["c"] == [
        int(i) for i in range(int(first[0]), int(first[0]) + 7)]


@pytest.mark.parametrize("dtype", ["u8", "i8", "i4", "f4", "f8"])
@pytest.mark.parametrize("text", ["3", "3.0", "3e0", "-1", "3.5", "1e3", "0.1", "1e25", "16777217"])
def test_numbers_of_another_kind_than_the_coordinate(batchfs, tmp_path, dtype, text):
    """Like xarray: the label is cast to a coordinate of floats."""
    labels = (np.array([0, 3, 5, 1000, 16777216], dtype) if dtype[0] != "f"
              else np.array([0.1, 3, 3.5, 1000, 16777216], dtype))
    store_of(tmp_path / "s.zarr", labels)
    number = np.asarray(float(text)).astype(dtype).item() if dtype[0] == "f" else float(text)
    there = [float(i) for i in labels]
    for view in (False, True):
        if number not in there:
            words = [tmp_path / "s.zarr"] if view else ["cat", tmp_path / "s.zarr", "v", "--select",
                                                        f"c={text}"]
            line = (refused(batchfs, tmp_path, *words, {"window": {"c": 1},
                                                        "select": {"c": [json.loads(text)]}})
                    if view else batchfs.refusal(*words))
            assert "in 'c', which goes from" in line
            continue
        if view:
            file = view_file(tmp_path, {"window": {"c": 1}, "select": {"c": [json.loads(text)]}})
            got = batchfs.npy("batch", tmp_path / "s.zarr", "--view", file, "--tensor", "v").item()
        else:
            got = batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select", f"c={text}").item()
        assert got == there.index(number)
    inside = [i for i, label in enumerate(labels) if -1 <= float(label) <= 3.5]
    assert batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select", "c=-1:3.5").tolist() == inside


def test_lengths_of_time(batchfs, tmp_path):
    """No NaT lies in a range, and counts beyond 2^53 ns are exact."""
    steps = np.array([0, 2**53, 2**53 + 1, "NaT", 2**60 + 1], "m8[ns]")
    write(tmp_path / "s.zarr", xr.Dataset({"v": (("c",), np.arange(5.0))}, {"c": steps}))
    cat = lambda select: batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select",
                                     f"c={select}").tolist()  # noqa: E731
    assert cat(f"{2**53 + 1}ns") == 2 and cat(f"{2**53}ns") == 1 and cat(f"{2**60 + 1}ns") == 4
    assert cat("0h:20000D") == [0, 1, 2, 4]
    assert cat(f":{2**53}ns") == [0, 1]
    assert cat(f"{2**53 + 2}ns:nearest") == 2


def test_booleans(batchfs, tmp_path):
    write(tmp_path / "s.zarr", xr.Dataset({"v": (("c",), np.arange(2.0))}, {"c": [True, False]}))
    for text, place in (("true", 0), ("false", 1)):
        assert batchfs.npy("cat", tmp_path / "s.zarr", "v", "--select", f"c={text}") == place


def test_statistics_and_masks(batchfs, tmp_path):
    """"normalize" finds each label's numbers, and a mask compares integers."""
    labels = 2**63 + np.arange(4, dtype="u8")
    rng = np.random.default_rng(0)
    write(tmp_path / "s.zarr", xr.Dataset({"v": (("c", "x"), rng.normal(size=(4, 50))),
                                           "m": (("x",), 2**60 + np.arange(50))}, {"c": labels}))
    view = {"window": {"x": 1}, "variables": ["v"], "batch": 50}
    batchfs.bytes("statistics", tmp_path / "s.zarr", "--view", view_file(tmp_path, view), "--per",
                  "c", "-o", tmp_path / "statistics.json")
    assert json.loads((tmp_path / "statistics.json")
                          .read_text())["variables"]["v"]["coordinates"]["c"] == labels.tolist()
    view |= {"select": {"c": [int(i) for i in labels[::-1]]},
             "normalize": {"method": "zscore", "statistics": "statistics.json"}}
    got = batchfs.npy("batch", tmp_path / "s.zarr", "--view", view_file(tmp_path, view), "--tensor",
                      "v")
    assert np.allclose(got.mean(axis=0), 0) and np.allclose(got.std(axis=0), 1)
    view = {"window": {"x": 1}, "variables": ["v"], "batch": 50,
            "samples": {"mask": {"variable": "m", "above": 2**60 + 10, "below": 2**60 + 14}}}
    plan = json.loads(batchfs.bytes("plan", tmp_path / "s.zarr", "--view",
                                    view_file(tmp_path, view), "--json"))
    assert plan["samples"] == 3
