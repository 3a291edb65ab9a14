"""Longitudes of one store among those of another, and coarser grids: xarray with longitudes of one
convention."""

import io
import json
import warnings

import numpy as np
import pytest
import xarray as xr

LATS = np.linspace(45, -45, 4)


def write(path, dataset, chunk=7):
    encoding = {name: {"chunks": tuple(min(n, chunk) for n in v.shape)}
                for name, v in dataset.data_vars.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset.to_zarr(path, mode="w", zarr_format=3, encoding=encoding, consolidated=True)


def grid(seed, lons, name, lats=LATS, **attributes):
    values = np.random.default_rng(seed).standard_normal((3, len(lats), len(lons))).astype("f4")
    return xr.Dataset({name: (("time", "lat", "lon"), values)},
                      {"time": np.arange(3), "lat": lats, "lon": ("lon", lons, attributes)})


class Pair:
    def __init__(self, batchfs, folder):
        self.batchfs, self.folder = batchfs, folder

    def words(self, anchor, other, view):
        for name, dataset in (("anchor", anchor), ("other", other)):
            if not isinstance(dataset, str):
                write(self.folder / f"{name}.zarr", dataset)
        (self.folder / "view.json").write_text(json.dumps(view))
        return [self.folder / "anchor.zarr", "--store", f"b={self.folder}/other.zarr", "--view",
                self.folder / "view.json"]

    def view(self, join, **more):
        return {"sources": {"a": {}, "b": {"store": "b", "join": join}}, "variables": ["t", "b:u"],
                "window": {"time": 1}, "batch": 100, "order": {"shuffle": "none"}} | more

    def tensors(self, anchor, other, join, **more):
        words = self.words(anchor, other, self.view(join, **more))
        with np.load(io.BytesIO(self.batchfs.bytes("batch", *words, "--format", "npz"))) as file:
            return dict(file)

    def refusal(self, anchor, other, join, **more):
        return self.batchfs.refusal("plan", *self.words(anchor, other, self.view(join, **more)))


@pytest.fixture
def pair(batchfs, tmp_path):
    return Pair(batchfs, tmp_path)


def on_circle(dataset):
    return dataset.assign_coords(lon=dataset.lon % 360).sortby("lon")


EAST, WEST = np.arange(0, 360, 15.0), np.arange(-180, 180, 15.0)


@pytest.mark.parametrize("kind", ["f8", "f4", "i2"])
@pytest.mark.parametrize("lons, others",
                         [(EAST, WEST), (WEST, EAST), (EAST, np.roll(WEST, 5)), (EAST[::-1], WEST)],
                         ids=["west", "east", "rolled", "reversed"])
def test_exact_is_that_of_longitudes_modulo_360(pair, kind, lons, others):
    anchor, other = grid(1, lons.astype(kind), "t"), grid(2, others.astype(kind), "u")
    made = pair.tensors(anchor, other, {"lon": {"period": 360}})
    expected = on_circle(other).sel(lon=anchor.lon % 360).u.values
    assert np.array_equal(made["b:u"][:, 0], expected)
    assert np.array_equal(made["t"][:, 0], anchor.t.values)


def test_longitudes_that_are_rounded_are_the_same(pair):
    """-0.1 of float32 and 359.9."""
    lons = np.arange(-1800, 1800, 7) / 10
    anchor, other = grid(1, lons.astype("f4"), "t"), grid(2, (lons % 360).astype("f4"), "u")
    assert np.array_equal(pair.tensors(anchor, other, {"lon": {"period": 360}})["b:u"][:, 0],
                          other.u.values)
    other = grid(2, lons % 360, "u")
    assert np.array_equal(pair.tensors(anchor, other, {"lon": {"period": 360}})["b:u"][:, 0],
                          other.u.values)


@pytest.mark.parametrize("pick, method",
                         [("nearest", "nearest"), ("last", "pad"), ("next", "backfill")])
@pytest.mark.parametrize("tolerance", [None, 4.0])
def test_neighbours_over_the_seam(pair, pick, method, tolerance):
    """The last longitude before 360 has 0 as its neighbour."""
    random = np.random.default_rng(5)
    anchor = grid(1, np.sort(random.uniform(0, 360, 40)), "t")
    anchor["lon"] = np.r_[anchor.lon.values[:-2], 359.75, 359.99]
    other = grid(2, np.sort(random.uniform(-180, 180, 33)), "u")
    three = xr.concat([on_circle(other).assign_coords(lon=on_circle(other).lon + turn)
                       for turn in (-360, 0, 360)], "lon")
    places = three.get_index("lon").get_indexer(anchor.lon.values, method=method,
                                                tolerance=tolerance)
    expected = three.u.values[:, :, places]
    expected[:, :, places < 0] = np.nan
    join = {"lon": {"pick": pick, "period": 360, "missing": "pad"}
                | ({"tolerance": tolerance} if tolerance else {})}
    assert np.array_equal(pair.tensors(anchor, other, join)["b:u"][:, 0], expected, equal_nan=True)


def test_windows_round_the_seam(pair):
    anchor, other = grid(1, WEST, "t"), grid(2, EAST, "u")
    made = pair.tensors(anchor, other, {"lon": {"period": 360}},
                        window={"lon": {"size": 5, "stride": 4, "wrap": True}})
    expected = on_circle(other).sel(lon=anchor.lon % 360).u.values
    expected = np.stack([np.take(expected, np.arange(s, s + 5) % 24, axis=2)
                         for s in range(0, 24, 4)])
    assert np.array_equal(made["b:u"], expected)


def test_a_region_is_found_on_the_circle(pair):
    anchor, other = grid(1, EAST, "t"), grid(2, np.arange(-30, 31, 15.0), "u")
    made = pair.tensors(anchor, other, {"lon": {"period": 360, "missing": "pad"}})["b:u"][:, 0]
    expected = other.assign_coords(lon=other.lon % 360).reindex(lon=anchor.lon).u.values
    assert np.isnan(expected).any()
    assert np.array_equal(made, expected, equal_nan=True)


def test_zero_and_360_are_one_place(pair):
    anchor, other = grid(1, np.r_[WEST, 180.0], "t"), grid(2, np.r_[EAST, 360.0], "u")
    made = pair.tensors(anchor, other, {"lon": {"period": 360}})["b:u"][:, 0]
    assert np.array_equal(made, other.isel(lon=slice(0, -1)).sel(lon=anchor.lon % 360).u.values)


def test_finer_cells_on_the_circle(pair):
    """A cell of 60 degrees round 0 has its parts on both sides of the seam."""
    anchor, other = grid(1, np.arange(6) * 60.0, "t"), grid(2, np.arange(-180 + 7.5, 180, 15), "u")
    made = pair.tensors(anchor, other, {"lon": {"ratio": 4, "period": 360}}, tensors={
        "x": {"variables": ["t"]}, "y": {"variables": ["b:u"]}})["y"][:, 0]
    wanted = (np.arange(6)[:, None] * 60 + np.array([-22.5, -7.5, 7.5, 22.5])).ravel()
    assert np.array_equal(made, on_circle(other).sel(lon=wanted % 360).u.values)


def test_longitudes_of_two_conventions_name_the_period(pair):
    for lons, others in ((EAST, WEST), (WEST, EAST)):
        anchor, other = grid(1, lons, "t", units="degrees_east"), grid(
            2, others, "u", standard_name="longitude")
        for join in ("exact", "nearest", "last", {"pick": "nearest", "tolerance": 1.0}):
            text = pair.refusal(anchor, other, {"lon": join})
            assert "12 of 24 labels match, and 24 on a circle" in text
            pick = join if isinstance(join, str) else join["pick"]
            words = ({} if pick == "exact"
                     else {"pick": pick}) | ({"tolerance": 1.0} if isinstance(join, dict) else {})
            line = text[text.index('write "join": ') + len('write "join": '):]
            pasted = json.JSONDecoder().raw_decode(line)[0]
            assert pasted == {"lon": words | {"period": 360}}
            expected = on_circle(other).sel(lon=anchor.lon % 360).u.values
            if pick == "exact":
                assert np.array_equal(pair.tensors(anchor, other, pasted)["b:u"][:, 0], expected)
    far = grid(1, EAST[13:], "t").rename(lon="longitude")
    text = pair.refusal(far, grid(2, WEST[:12] + 0.0, "u"), {"lon": {"as": "longitude"}})
    assert '0 of 11 labels match, and 11 on a circle' in text
    assert '"join": {"lon": {"as": "longitude", "period": 360}}' in text
    text = pair.refusal(grid(1, EAST, "t"), grid(2, WEST, "u"), {})
    assert '"join": {"lon": {"period": 360}}' in text


def test_other_numbers_have_no_period(pair):
    cells = [grid(i, lons, name).rename(lon="cell")
             for i, lons, name in ((1, EAST, "t"), (2, WEST, "u"))]
    assert "lacks 12 of 24 labels of 'cell'" in pair.refusal(*cells, {"cell": "exact"})
    times = [d.rename(time="step").rename(lon="time")
                 .assign_coords(time=np.arange(24).astype("M8[h]").astype("M8[ns]"))
             for d in (grid(1, EAST, "t"), grid(2, EAST, "u"))]
    text = pair.refusal(*times, {"time": {"period": 360}}, window={"step": 1})
    assert "a period is of numbers, as longitudes" in text
    assert "0 is not a period" in pair.refusal(*cells, {"cell": {"period": 0}})


@pytest.mark.parametrize("ratio", [2, 3, 4])
@pytest.mark.parametrize("turned", [False, True])
def test_a_coarser_grid_is_repeated(pair, ratio, turned):
    """numpy.repeat of the coarse cells, whose labels are those of xarray.coarsen."""
    lats, lons = np.arange(24) * 0.5 - 6, np.arange(0, 360, 7.5)
    anchor = grid(1, lons, "t", lats)
    coarse = anchor.coarsen(lat=ratio, lon=ratio).mean().rename(t="u")
    expected = np.repeat(np.repeat(coarse.u.values, ratio, axis=1), ratio, axis=2)
    join = {"lat": {"ratio": f"1/{ratio}"}, "lon": {"ratio": f"1/{ratio}", "period": 360}}
    other = coarse
    if turned:
        other = coarse.isel(lat=slice(None, None, -1))
        other = other.assign_coords(lon=(other.lon + 180) % 360 - 180).sortby("lon")
    made = pair.tensors(anchor, other, join, window={"lat": {"size": 5, "stride": 3}},
                        tensors={"x": {"variables": ["t", "b:u"], "stack": "channel",
                                       "dims": ["channel", "time", "lat", "lon"]}})["x"]
    whole = np.stack([anchor.t.values, expected])
    assert np.array_equal(made, np.stack([whole[:, :, s:s + 5] for s in range(0, 20, 3)]))


def test_daily_fields_beside_hourly_ones(pair):
    hours = (np.datetime64("2000-01-01", "ns")
             + np.delete(np.arange(24 * 6), [5, 50, 51]) * np.timedelta64(1, "h"))
    days = np.datetime64("2000-01-01", "ns") + np.array([0, 1, 3, 4]) * np.timedelta64(1, "D")
    random = np.random.default_rng(0)
    anchor = xr.Dataset({"t": (("time", "x"), random.random((len(hours), 3)))}, {"time": hours})
    other = xr.Dataset({"u": (("time", "x"), random.random((4, 3)))}, {"time": days})
    made = pair.tensors(anchor, other, {"time": {"ratio": "1/24"}}, batch=1000)
    day = hours.astype("M8[D]").astype("M8[ns]")
    keep = np.isin(day, days)
    assert np.array_equal(made["b:u"][:, 0], other.u.sel(time=day[keep]).values)
    assert np.array_equal(made["t"][:, 0], anchor.t.values[keep])


def test_grids_that_do_not_nest_name_the_first_bad_cell(pair):
    anchor = grid(1, np.arange(0, 40, 2.5), "t")
    text = pair.refusal(anchor, grid(2, np.array([3.0, 13.0, 23.0, 33.0]), "u"),
                        {"lon": {"ratio": "1/4"}})
    assert ("the grids do not nest: 'lon' of 'a' at position 0 is not a cell of 4 in that of 'lon' "
            "of 'b' at position 0" in text)
    late = np.r_[np.arange(0, 20, 2.5), 21.0]
    coarse = grid(2, np.array([3.75, 13.75, 23.75]), "u")
    assert "'lon' of 'a' at position 8 is not a cell" in pair.refusal(grid(1, late, "t"), coarse,
                                                                      {"lon": {"ratio": "1/4"}})
    assert '"1/4": a coarser grid' in pair.refusal(anchor, coarse, {"lon": {"ratio": "1/1"}})
    assert '"1/4": a coarser grid' in pair.refusal(anchor, coarse, {"lon": {"ratio": 0.25}})
