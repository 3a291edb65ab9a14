"""denormalize() against the same view without "normalize"."""

import pickle

import numpy as np
import pytest
import xarray as xr
from reader_servers import Server

import batchfs

LEVELS = {"mean": [280.0, 270.5, 260.25], "std": [10.0, 9.0, 8.5], "min": [200.0, 210.0, 220.0],
          "max": [330.0, 320.0, 310.0], "dims": ["level"]}
# In another order than the store's, with a level that it does not have.
TURNED = LEVELS | {"coordinates": {"level": [850, 100, 500, 700]}} | {key: [
    LEVELS[key][2], 0.0, LEVELS[key][0], LEVELS[key][1]] for key in ("mean", "std", "min", "max")}
ONE = {"mean": 0.01, "std": 0.005, "min": 0.0, "max": 0.02}
random = np.random.default_rng(7)
PIXELS = {"mean": random.uniform(250, 300, (8, 16)).tolist(),
          "std": random.uniform(1, 9, (8, 16)).tolist(), "dims": ["latitude", "longitude"]}
WHOLE = {"window": {"time": 1}, "batch": {"size": 3}, "order": {"shuffle": "global"}}
STACK = {"tensors": {"x": {"variables": ["t", "q", "o"], "stack": "channel",
                           "dims": ["channel", "latitude", "longitude"],
                           "offsets": {"time": [0, 2]}},
                     "y": {"variables": ["q"]}},
         "dtype": "float64"}
PATCHES = {"window": {"time": 1, "latitude": {"size": 3, "stride": 1},
                      "longitude": {"size": 4, "wrap": True}},
           "batch": {"size": 16}, "order": {"shuffle": "global"}}
CASES = {
    "one": (WHOLE | {"variables": ["t", "q"]},
            {"t": {"mean": 280, "std": 10, "min": 200, "max": 350}}),
    "levels": (WHOLE | {"variables": ["t"]}, {"t": LEVELS}),
    "turned": (WHOLE | {"variables": ["t"]}, {"t": TURNED}),
    "selected": (WHOLE | {"variables": ["t"], "select": {"level": 700}}, {"t": TURNED}),
    "stack": (WHOLE | STACK, {"t": TURNED, "q": ONE}),
    "half": (WHOLE | {"variables": ["t"], "dtype": "float16"}, {"t": LEVELS}),
    "pixels": (PATCHES | {"variables": ["o"]}, {"o": PIXELS}),
    "some levels": (WHOLE | {"variables": ["t"], "select": {"level": [850, 500]}}, {"t": TURNED}),
}


def view_of(name, method):
    view, statistics = CASES[name]
    return view | {"name": name, "normalize": {"method": method, "statistics": statistics,
                                               "variables": list(statistics)}}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """By method, and None: nothing is normalized."""
    path = tmp_path_factory.mktemp("denormalize")
    shape = (12, 3, 8, 16)
    values = np.random.default_rng(1)
    xr.Dataset({"t": (("time", "level", "latitude", "longitude"),
                      values.normal(270, 10, shape).astype("f4"), {"units": "K"}),
                "q": (("time", "level", "latitude", "longitude"),
                      values.uniform(0, 0.02, shape).astype("f4")),
                "o": (("time", "latitude", "longitude"),
                      values.normal(270, 10, (12, 8, 16)).astype("f4"))},
               {"time": np.arange(12), "level": [500, 700, 850],
                "latitude": np.linspace(70, -70, 8),
                "longitude": np.arange(0, 360, 22.5)}).to_zarr(path / "s.zarr", zarr_format=2)
    started = {}
    for method in ("zscore", "minmax", None):
        (path / str(method)).mkdir()
        views = {name: view_of(name, method) if method else CASES[name][0] | {"name": name}
                 for name in CASES if method != "minmax" or name != "pixels"}
        for view in views.values():
            view["formats"] = ["npy"]
        views["two"] = {"name": "two", "window": {"time": 1}, "variables": ["t"]}
        started[method] = Server(path / "s.zarr", path / str(method), views)
    yield started
    for server in started.values():
        server.stop()


@pytest.mark.parametrize("name, method",
                         [(name, method) for name in CASES for method in ("zscore", "minmax")
                          if (name, method) != ("pixels", "minmax")])
def test_the_values_of_the_store_come_back(servers, name, method):
    normalized, plain = (batchfs.open(servers[key].socket, name) for key in (method, None))
    for ours, expected in zip(normalized, plain, strict=True):
        assert ours.index.tolist() == expected.index.tolist()
        for tensor in ours:
            back, stored = tensor.denormalize(), expected[tensor.name].numpy()
            assert back.shape == stored.shape
            assert back.dtype == (np.float32 if name == "half" else stored.dtype)
            np.testing.assert_allclose(back, stored.astype(back.dtype),
                                       rtol=2e-3 if name == "half" else 2e-6, atol=1e-7)
            assert np.array_equal(ours.denormalize(tensor.name), back)
        copy = pickle.loads(pickle.dumps(ours))
        assert all(np.array_equal(copy.denormalize(tensor.name), tensor.denormalize())
                   for tensor in ours)


def test_predictions_of_torch(servers):
    torch = pytest.importorskip("torch")
    batch = batchfs.open(servers["zscore"].socket, "levels")[0]
    ours = batch.denormalize("t", torch.ones(batch["t"].shape, dtype=torch.bfloat16))
    assert ours.dtype == torch.float32 and ours[0, 0, 1, 0, 0] == 279.5
    graph = torch.zeros(batch["t"].shape, requires_grad=True)
    batch.denormalize("t", graph).sum().backward()
    assert graph.grad[0, 0, 2, 0, 0] == 8.5


def test_predictions_of_numpy(servers):
    batch = batchfs.open(servers["zscore"].socket, "levels")[0]
    zero = np.zeros(batch["t"].shape, "f4")
    mean = batch.denormalize("t", zero)
    assert (np.array_equal(np.unique(mean), sorted(LEVELS["mean"]))
            and np.array_equal(mean[:, :, 0], zero[:, :, 0] + 280))
    # Another number of samples, as after filtering them: the numbers do not depend on the sample.
    assert batch["t"].denormalize(zero[:1]).shape[0] == 1
    with pytest.raises(batchfs.InvalidArgument, match="are not a tensor of"):
        batch.denormalize("t", zero[:, :, :2])
    with pytest.raises(batchfs.InvalidArgument, match="are not a tensor of"):
        batch.denormalize("t", zero[0])
    with pytest.raises(KeyError):
        batch.denormalize("none")


def test_what_is_not_normalized_is_unchanged(servers):
    batch = batchfs.open(servers["zscore"].socket, "one")[0]
    values = np.ones(batch["q"].shape, "f4")
    assert batch.denormalize("q", values) is values and np.shares_memory(batch.denormalize("q"),
                                                                         batch["q"].numpy())
    batch = batchfs.open(servers[None].socket, "one")[0]
    assert np.shares_memory(batch.denormalize("t"), batch["t"].numpy())


def test_units_of_normalized_values_have_another_name(servers):
    dataset = batchfs.open(servers["zscore"].socket, "one")[0].xarray()
    assert dataset.t.attrs == {"original_units": "K"}


def test_statistics_along_times_that_are_looked_up(tmp_path):
    """Where a window begins is not known from its position then."""
    times = np.array("2000-01-01", "M8[ns]") + np.delete(np.arange(12), 5) * np.timedelta64(6, "h")
    xr.Dataset({"t": (("time", "x"), np.ones((11, 2), "f4"))}, {"time": times}).to_zarr(
        tmp_path / "s.zarr", zarr_format=2)
    statistics = {"t": {"mean": list(range(11)), "std": [1] * 11, "dims": ["time"]}}
    view = {"window": {"time": 1}, "normalize": {"method": "zscore", "statistics": statistics},
            "formats": ["npy"]}
    tensors = {"hours": {"x": {"variables": ["t"], "offsets": {"time": ["0h", "12h"]}}},
               "two": {"x": {"variables": ["t"], "offsets": {"time": [0, 2]}}}}
    server = Server(tmp_path / "s.zarr", tmp_path,
                    {name: view | {"name": name, "tensors": of} for name, of in tensors.items()})
    try:
        batch = batchfs.open(server.socket, "two")[0]
        assert np.array_equal(batch["x"].denormalize(), np.ones(batch["x"].shape))
        batch = batchfs.open(server.socket, "hours")[0]
        with pytest.raises(batchfs.NotSupported, match="'t' is normalized along 'time', where its "
                                                       "offsets are lengths of time"):
            batch["x"].denormalize()
    finally:
        server.stop()


LOGS = {"method": "log1p", "scale": 0.1}


@pytest.mark.parametrize("rule", [{"variables": ["q"]}, {"except": ["t", "o"]}])
@pytest.mark.parametrize("then", [{}, {"then": "zscore", "statistics": {"q": ONE}}])
def test_logarithms_of_another_variable(tmp_path, rule, then):
    """Only tensors with logarithms cannot be denormalized."""
    rng = np.random.default_rng(4)
    xr.Dataset({name: (("time", "x"), rng.uniform(1, 2, (6, 3)).astype("f4"))
                for name in ("t", "q", "o")}
                   | {"whole": (("time", "x"), rng.integers(0, 9, (6, 3)))},
               {"time": np.arange(6)}).to_zarr(tmp_path / "s.zarr", zarr_format=2)
    view = {"window": {"time": 1}, "normalize": LOGS | rule | then,
            "tensors": {"plain": {"variables": ["t", "o"], "stack": "c"},
                        "whole": {"variables": ["whole"]}, "logs": {"variables": ["q"]},
                        "both": {"variables": ["t", "q"], "stack": "c"}}}
    with batchfs.open(tmp_path / "s.zarr", view) as dataset:
        batch = dataset[0]
        for name in ("plain", "whole"):
            np.testing.assert_array_equal(batch[name].denormalize(), batch[name].numpy())
        for name in ("logs", "both"):
            with pytest.raises(batchfs.NotSupported, match="log1p"):
                batch[name].denormalize()
