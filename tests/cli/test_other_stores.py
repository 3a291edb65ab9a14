"""--store of the commands that show a store or copy batches: `inspect`, `show` and `export`."""

import html
import io
import json
import warnings

import numpy as np
import pytest
import xarray as xr

VIEW = {"name": "v", "sources": {"a": {}, "rain": {"store": "rain", "join": {"time": "exact"}}},
        "window": {"time": 1},
        "tensors": {"x": {"variables": ["t"]}, "y": {"variables": ["rain:pr"]}},
        "batch": {"size": 3}, "order": {"shuffle": "global", "seed": 1}}


def write(path, name, hours):
    values = np.random.default_rng(len(hours)).standard_normal((len(hours), 4)).astype("f4")
    dataset = xr.Dataset({name: (("time", "x"), values, {"units": "mm"})}, {
        "time": np.datetime64("2000-01-01", "ns") + np.array(hours) * np.timedelta64(1, "h")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset.to_zarr(path, zarr_format=3, encoding={name: {"chunks": (4, 4)}})
    return dataset


@pytest.fixture
def stores(tmp_path):
    first = write(tmp_path / "a.zarr", "t", range(0, 60, 6))
    rain = write(tmp_path / "rain.zarr", "pr", [h for h in range(60) if h != 12])
    (tmp_path / "v.json").write_text(json.dumps(VIEW))
    return first, rain


def words(folder):
    return [folder / "a.zarr", "--store", f"rain={folder / 'rain.zarr'}"]


def test_inspect_shows_each_store(good, stores, tmp_path):
    told = json.loads(good("inspect", *words(tmp_path), "--json"))
    alone = json.loads(good("inspect", tmp_path / "rain.zarr", "--json"))
    assert told["stores"] == {"rain": alone}
    assert {key: value for key, value in told.items()
            if key != "stores"} == json.loads(good("inspect", tmp_path / "a.zarr", "--json"))
    text = good("inspect", *words(tmp_path)).decode()
    assert "\nrain:\n" in text and text.index("\nrain:\n") < text.index(" pr ")


def test_show_has_the_view_of_both(good, stores, tmp_path):
    view = ["--view", tmp_path / "v.json"]
    page = html.unescape(good("show", *words(tmp_path), *view).decode())
    with np.load(io.BytesIO(good("batch", *words(tmp_path), *view, "--format", "npz"))) as batch:
        y = batch["y"]
    assert "9 samples" in page and "No batch: " not in page
    assert f"{y.min():.5g}" in page and f"{y.max():.5g}" in page


def test_export_is_what_batch_gives(good, stores, tmp_path):
    view = ["--view", tmp_path / "v.json"]
    good("export", *words(tmp_path), *view, "--to", "npz", "-o", tmp_path / "out")
    first, rain = stores
    seen = []
    for file in sorted((tmp_path / "out").rglob("*.npz")):
        with np.load(file) as batch:
            seen += list(zip(batch["x"][:, 0], batch["y"][:, 0], strict=True))
    both, of_rain = xr.align(first.t, rain.pr, join="inner")
    wanted = sorted(zip(both.values.tolist(), of_rain.values.tolist(), strict=True))
    assert sorted((x.tolist(), y.tolist()) for x, y in seen) == wanted


def test_an_export_of_other_stores_is_not_continued(good, fails, stores, tmp_path):
    view = ["--view", tmp_path / "v.json", "--to", "npz", "-o", tmp_path / "out"]
    good("export", *words(tmp_path), *view)
    write(tmp_path / "more.zarr", "pr", range(60))
    message = fails(1, "export", tmp_path / "a.zarr", "--store", f"rain={tmp_path / 'more.zarr'}",
                    *view)
    assert str(tmp_path / "out") in message


def test_a_store_that_is_not_there(fails, stores, tmp_path):
    for command in (["inspect"], ["show"], ["export", "--view", tmp_path / "v.json", "--to", "npz",
                                            "-o", tmp_path / "out"]):
        message = fails(1, command[0], tmp_path / "a.zarr", "--store",
                        f"rain={tmp_path / 'none.zarr'}", *command[1:])
        assert "none.zarr" in message
