"""Labels along windows that no tensor has: those of the store's coordinate, as for other
tensors."""

import numpy as np
import pytest
import xarray as xr

import batchfs

TIMES = np.datetime64("2020-01-01", "ns") + np.arange(6) * np.timedelta64(1, "D")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("window_labels") / "s.zarr"
    xr.Dataset({"t": (("time", "x"), np.random.default_rng(1).random((6, 4))),
                "lsm": (("x",), np.ones(4)), "one": ((), 1.0)},
               {"time": TIMES, "x": np.arange(10.0, 50, 10)}).to_zarr(path, consolidated=True)
    return path


SAMPLES = {
    "all": {},
    "where": {"samples": {"where": {"time": {"from": "2020-01-02"}}}},
    "split": {"split": {"parts": {"a": [{"time": {"to": "2020-01-03"}}], "b": "rest"}}},
    "shuffled": {"order": {"shuffle": "global", "seed": 4}},
}


WINDOWS = [{"time": 3}, {"time": 3, "x": 2}]
CASES = [(window, samples) for window in WINDOWS for samples in SAMPLES] + \
    [({"time": {"size": 2, "edge": "partial"}}, "all"), ({"x": 2}, "all"), ({"x": 2}, "shuffled")]


@pytest.mark.parametrize("window, samples", CASES)
def test_labels_do_not_depend_on_the_tensors(store, window, samples):
    view = {"window": window, "batch": 20} | SAMPLES[samples]
    part = {"part": "a"} if samples == "split" else {}
    with batchfs.open(store, view | {"variables": ["t"]}, **part) as dataset:
        wanted = {name: values.copy() for name, values in dataset[0].labels.items()}
    assert wanted.keys() == window.keys()
    assert "time" not in wanted or (wanted["time"].dtype == "M8[ns]"
                                    and set(wanted["time"]) <= set(TIMES))
    for variables in (["lsm"], ["one"]):
        with batchfs.open(store, view | {"variables": variables}, **part) as dataset:
            batch = dataset[0]
            assert batch.labels.keys() == wanted.keys()
            for name, values in wanted.items():
                assert batch.labels[name].dtype == values.dtype
                np.testing.assert_array_equal(batch.labels[name], values)
                np.testing.assert_array_equal(batch.xarray()[f"{name}_start"].values, values)


def test_labels_of_a_list(store, tmp_path):
    (tmp_path / "list.csv").write_text("time\n2020-01-05\n2020-01-02\n")
    view = {"window": {"time": 1}, "variables": ["lsm"], "batch": 2,
            "samples": {"list": str(tmp_path / "list.csv")}}
    with batchfs.open(store, view) as dataset:
        np.testing.assert_array_equal(dataset[0].labels["time"], TIMES[[4, 1]])
