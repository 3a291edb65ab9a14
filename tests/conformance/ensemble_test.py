"""Stores beside one another along a new dimension, against xarray.concat."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
import zarr.codecs
from man_view_test import page
from several_stores import SeveralStores, write

LATS, LONS = np.linspace(60, -60, 5), np.arange(6) * 60.0
TIMES = np.datetime64("2000-01-01", "ns") + np.arange(20) * np.timedelta64(6, "h")


def member(seed, lats=LATS, **more):
    random = np.random.default_rng(seed)
    shape = (len(TIMES), len(lats), 6)
    return xr.Dataset({"t2m": (("time", "lat", "lon"), random.standard_normal(shape).astype("f4"),
                               {"units": "K"}),
                       "tp": (("time", "lat", "lon"), random.random(shape).astype("f4")),
                       "lsm": (("lat", "lon"), random.random((len(lats), 6)).astype("f4")),
                       "mean": ((), np.float32(seed))},
                      {"time": TIMES, "lat": lats, "lon": LONS} | more)


class Ensemble(SeveralStores):
    """Four stores, of other chunks and codecs each, one of shards and one packed as integers."""

    def __init__(self, batchfs, folder, version=3):
        super().__init__(batchfs, folder, folder / "first.zarr", [f"era={folder}/m{{00..03}}.zarr"])
        self.data = []
        kinds = [{}, {"t2m": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -32768}}, {}, {}]
        if version == 3:
            kinds[2] = {"t2m": {"shards": (8, 4, 6)}}
        for i, encoding in enumerate(kinds):
            chunks = {"time": 4 + i % 3, "lat": 2} if i != 2 else {"time": 4, "lat": 2}
            self.data.append(write(folder / f"m{i:02}.zarr", member(i), version, chunks, encoding))
        self.whole = self.concat(np.arange(4))
        write(self.first, member(9), version)

    def concat(self, labels):
        return xr.concat(self.data, pd.Index(labels, name="member"), data_vars="all",
                         coords="minimal", compat="override", combine_attrs="drop_conflicts",
                         join="exact")


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def ensemble(request, batchfs, tmp_path):
    return Ensemble(batchfs, tmp_path, request.param)


def members(concat=None, **more):
    return {"sources": {"era": {"store": "era", "concat": concat or {"dim": "member"}}},
            "batch": 1000, "order": {"shuffle": "none"}} | more


def test_windows_over_time_have_all_members(ensemble):
    view = members(variables=["t2m", "tp", "lsm"], window={"time": {"size": 3, "stride": 2}})
    view["tensors"] = {"t2m": {"variables": ["t2m"]}, "lsm": {"variables": ["lsm"]}}
    del view["variables"]
    got = ensemble.tensors(view)
    whole = ensemble.whole
    assert np.array_equal(got["t2m"],
                          np.stack([whole.t2m.values[:, s:s + 3] for s in range(0, 18, 2)]),
                          equal_nan=True)
    assert np.array_equal(got["lsm"], np.stack([whole.lsm.values] * 9))
    tensor = next(t for t in ensemble.plan(view)["tensors"] if t["name"] == "t2m")
    assert tensor["dims"] == ["sample", "member", "time", "lat", "lon"]


@pytest.mark.parametrize("size, stride", [(1, 1), (2, 1), (3, 1)])
def test_windows_over_members(ensemble, size, stride):
    view = members(variables=["t2m"],
                   window={"member": {"size": size, "stride": stride}, "time": 2})
    got = ensemble.tensors(view)["t2m"]
    whole = ensemble.whole.t2m.values
    expected = [whole[m:m + size, s:s + 2] for m in range(0, 5 - size, stride)
                for s in range(0, 20, 2)]
    assert np.array_equal(got, np.stack(expected), equal_nan=True)


@pytest.mark.parametrize("select", [[3, 1], 2, {"from": 1, "to": 2}, ["#0", "#2"]], ids=str)
def test_selections_of_members(ensemble, select):
    view = members(variables=["t2m"], window={"time": 4},
                   select={"member": select, "lat": {"from": 60, "to": 0}})
    wanted = (ensemble.whole.isel(member=[0, 2]) if select == ["#0", "#2"] else
              ensemble.whole.sel(member=slice(1, 2) if isinstance(select, dict) else select))
    wanted = wanted.sel(lat=slice(60, 0)).t2m
    expected = np.stack([wanted.isel(time=slice(s, s + 4)).values for s in range(0, 20, 4)])
    assert np.array_equal(ensemble.tensors(view)["t2m"], expected, equal_nan=True)


def test_labels_of_the_new_dimension(ensemble):
    for labels_given in ([10, 20, 30, 40], ["control", "p1", "p2", "p3"], [0.5, 1.5, 2.5, -1]):
        view = members({"dim": "member", "labels": labels_given}, variables=["tp"],
                       window={"time": 20}, select={"member": [labels_given[2], labels_given[0]]})
        expected = ensemble.concat(labels_given).sel(member=[labels_given[2],
                                                             labels_given[0]]).tp.values[None]
        assert np.array_equal(ensemble.tensors(view)["tp"], expected)
    listed = [f"{name}={ensemble.folder}/m0{i}.zarr"
              for i, name in enumerate(["control", "warm", "cold"])]
    view = members(variables=["tp"], window={"time": 20}, select={"member": ["cold", "control"]})
    view["sources"] = {"era": {"stores": ["control", "warm", "cold"], "concat": {"dim": "member"}}}
    got = ensemble.tensors(view, stores=listed)["tp"]
    assert np.array_equal(got, ensemble.whole.tp.values[None, [2, 0]])
    view["sources"]["era"]["concat"] = {"dim": "member", "labels": [7, 8]}
    assert "sources.era.concat.labels: 2 labels for 3 stores" in ensemble.refusal(
        view, stores=listed)


def test_a_scalar_coordinate_of_the_stores_is_the_label(batchfs, tmp_path):
    ensemble = Ensemble(batchfs, tmp_path)
    data = [write(tmp_path / f"s{i}.zarr", member(i, realization=realization))
            for i, realization in enumerate([11, 5, 7])]
    whole = xr.concat(data, "realization", data_vars="all", coords="minimal", compat="override",
                      join="exact")
    assert whole.realization.values.tolist() == [11, 5, 7]
    view = members({"dim": "realization"}, variables=["t2m"], window={"time": 20},
                   select={"realization": [7, 11]})
    got = ensemble.tensors(view, stores=[f"era={tmp_path}/s{{0..2}}.zarr"])["t2m"]
    assert np.array_equal(got, whole.t2m.sel(realization=[7, 11]).values[None])


def test_chunks_are_named_with_their_store(ensemble):
    view = members(variables=["t2m"], window={"time": 2}, select={"member": [1, 3]})
    chunks = ensemble.provenance(view)["chunks"]
    assert {chunk.split(":")[0] for chunk in chunks} == {"era.01", "era.03"}
    assert "era.01:t2m/0.0.0" in chunks
    found = ensemble.provenance(members(variables=["t2m"], window={"member": 1, "time": 20})
                                | {"batch": 4})
    assert "member" in json.dumps(found)


def test_parts_of_a_split_over_members(ensemble):
    view = members(variables=["tp"], window={"member": 1, "time": 4}, split={"parts": {
        "train": "rest", "val": [{"member": {"from": 3, "to": 3}}]}})
    whole = ensemble.whole.tp.values
    for part, which in (("train", [0, 1, 2]), ("val", [3])):
        got = ensemble.tensors(view, "--part", part)["tp"]
        assert np.array_equal(got, np.stack([whole[m:m + 1, s:s + 4] for m in which
                                             for s in range(0, 20, 4)]))


MODELS = ["ecmwf", "gfs", "ecmwf", "icon-eu-nest", "gfs", "ukmo", "\u00e9t\u00e9", "icon-eu-nest"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("concat", [{"dim": "member"}, {"member": "new"}], ids=["dim", "new"])
@pytest.mark.parametrize("kind", ["fixed", "variable", "bytes", "characters"])
@pytest.mark.parametrize("coordinate", [True, False])
@pytest.mark.parametrize("version", [2, 3])
def test_strings_are_stacked(batchfs, tmp_path, version, coordinate, kind, concat):
    """Members in groups by a text that each store has: the parts of the split are those of the
    texts that xarray stacks."""
    data = []
    for i, model in enumerate(MODELS):
        if kind in ("bytes", "characters"):
            text = np.array(model.encode(), f"S{len(model.encode())}")
        else:
            text = np.array(model, object if kind == "variable" else None)
        encoding = {"model": {"dtype": "S1"}} if kind == "characters" and version == 2 else None
        ds = member(i)
        ds["model"] = ((), text)
        ds = ds.set_coords("model") if coordinate else ds
        data.append(write(tmp_path / f"m{i:02}.zarr", ds, version, encoding=encoding))
    whole = xr.concat(data, pd.Index(range(8), name="member"), data_vars="all", coords="different",
                      join="exact")
    texts = [text.decode() if isinstance(text, bytes) else str(text)
             for text in whole.model.values.tolist()]
    assert texts == MODELS
    classes = list(dict.fromkeys(texts))
    folds = page()["draw"](classes, None, 3, 5, True)
    runs = SeveralStores(batchfs, tmp_path, tmp_path / "m00.zarr",
                         [f"era={tmp_path}/m{{00..07}}.zarr"])
    view = members(concat, variables=["tp"], window={"member": 1, "time": 20},
                   split={"groups": {"model": "value"}, "folds": 3, "seed": 5})
    for fold in set(folds):
        got = runs.tensors(view, "--part", f"fold-{fold}-val")["tp"]
        which = [m for m, text in enumerate(texts) if folds[classes.index(text)] == fold]
        assert np.array_equal(got, whole.tp.values[which][:, None])


def test_an_ensemble_beside_another_store(ensemble):
    """A field of the first source for all members of the joined one."""
    view = {"sources": {"a": {}, "era": {"store": "era", "concat": {"dim": "member"}}},
            "window": {"time": 5}, "batch": 10, "order": {"shuffle": "none"},
            "tensors": {"x": {"variables": ["t2m"]}, "y": {"variables": ["era:tp"]}}}
    got = ensemble.tensors(view)["y"]
    assert np.array_equal(got,
                          np.stack([ensemble.whole.tp.values[:, s:s + 5] for s in range(0, 20, 5)]))


def test_statistics_are_of_all_members(ensemble):
    view = members(variables=["t2m", "lsm"], window={"time": 1})
    found = json.loads(ensemble.batchfs.bytes("statistics", *ensemble.command(view),
                                              "--json"))["variables"]
    for name in ("t2m", "lsm"):
        values = ensemble.whole[name].values.astype("f8")
        np.testing.assert_allclose([found[name]["mean"], found[name]["std"]],
                                   [np.nanmean(values), np.nanstd(values)], rtol=1e-9)


@pytest.mark.parametrize("window", [{"time": 1}, {"member": 1, "time": 1}])
def test_numbers_of_each_member(ensemble, window):
    values = ensemble.whole.tp.values.astype("f8")
    mean, std = values.mean(axis=(1, 2, 3)), values.std(axis=(1, 2, 3))
    numbers = {"dims": ["member"], "mean": mean.tolist(), "std": std.tolist()}
    expected = (values - mean[:, None, None, None]) / std[:, None, None, None]
    got = ensemble.tensors(members(variables=["tp"], window=window, dtype="float64", normalize={
        "method": "zscore", "statistics": {"tp": numbers}}))["tp"]
    want = (expected.swapaxes(0, 1)[:, :, None] if len(window) == 1
            else expected.reshape(-1, 1, 1, *values.shape[2:]))
    assert np.array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_orders_take_each_sample_once(ensemble, shuffle):
    view = members(variables=["tp"], window={"member": 1, "time": 1},
                   order={"shuffle": shuffle, "seed": 3})
    got = ensemble.tensors(view)["tp"][:, 0, 0]
    assert sorted(got[:, 0, 0]) == sorted(ensemble.whole.tp.values.reshape(-1, 5, 6)[:, 0, 0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_the_other_order(batchfs, tmp_path, order):
    ensemble = Ensemble(batchfs, tmp_path)
    values = np.random.default_rng(0).random((2, 4, 6, 3)).astype("f4")
    for i in range(2):
        group = zarr.open_group(tmp_path / f"o{i}.zarr", mode="w", zarr_format=3)
        group.create_array("v", data=values[i], chunks=(2, 3, 3), dimension_names=["a", "b", "c"],
                           filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))])
        group.create_array("s", data=values[i], chunks=(2, 3, 3), shards=(4, 6, 3),
                           dimension_names=["a", "b", "c"],
                           filters=[zarr.codecs.TransposeCodec(order=(1, 2, 0))])
        old = zarr.open_group(tmp_path / f"p{i}.zarr", mode="w", zarr_format=2)
        old.create_array("v", data=values[i], chunks=(2, 3, 3),
                         order=order).attrs["_ARRAY_DIMENSIONS"] = ["a", "b", "c"]
    for store, name in (("o", "v"), ("o", "s"), ("p", "v")):
        view = members(variables=[name], window={"a": 2})
        got = ensemble.tensors(view, stores=[f"era={tmp_path}/{store}{{0..1}}.zarr"])[name]
        assert np.array_equal(got, np.stack([values[:, :2], values[:, 2:]]))


def test_what_is_no_ensemble_is_refused(ensemble):
    folder = ensemble.folder
    write(folder / "other.zarr", member(7, lats=np.r_[LATS[:3], -31.0, -60]))
    pair = [f"a={folder}/m00.zarr", f"b={folder}/other.zarr"]
    view = members(variables=["tp"], window={"time": 1})
    view["sources"] = {"era": {"stores": ["a", "b"], "concat": {"dim": "member"}}}
    text = ensemble.refusal(view, stores=pair)
    assert "stores beside one another along 'member' have the same 'lat'" in text
    assert "the first difference is -30.0 and -31.0 at position 3" in text
    assert "'era.00' has the dimension 'time' already" in ensemble.refusal(
        members({"dim": "time"}, window={"time": 1}))
    assert "'era.00' has a variable 'tp'" in ensemble.refusal(
        members({"dim": "tp"}, window={"time": 1}))
    assert "is given twice" in ensemble.refusal(members({"dim": "m", "labels": [1, 1]},
                                                        window={"time": 1}))
    assert "all numbers or all texts" in ensemble.refusal(members(
        {"dim": "m", "labels": [1, "a"]}, window={"time": 1}))
    both = members(window={"time": 1})
    both["sources"]["era"]["prefer"] = "last"
    assert "members along a new dimension have no label in common" in ensemble.refusal(both)
    text = ensemble.refusal(members("membr", window={"time": 1}))
    assert "has no dimension 'membr'" in text and 'a new one is "concat": {"dim": "membr"}' in text
    for source in both["sources"].values():
        source.pop("prefer")
        source.pop("concat")
    assert 'as members of an ensemble, they are "concat": {"dim": "member"}' in ensemble.refusal(
        both)
