"""batchfs-view(5): the Python in the page gives the order of samples that the program gives, and
the views in the page are views."""

import functools
import json
import math
import pathlib
import re
import warnings

import numpy as np
import pytest
import xarray as xr

PAGE = pathlib.Path(__file__).resolve().parents[2] / "man" / "batchfs-view.5"
ESCAPES = {r"\-": "-", r"\(ha": "^", r"\(dq": '"', r"\e": "\\", r"\&": ""}


def unescape(text):
    text = re.sub(r"\\(-|\(ha|\(dq|e|&)", lambda found: ESCAPES[found.group()], text)
    assert "\\" not in text, "an escape that this test does not know"
    return text


def displays():
    """The literal blocks of the page."""
    return [unescape(block)
            for block in re.findall(r"^\.Bd -literal.*\n((?s:.*?))^\.Ed$", PAGE.read_text(), re.M)]


def page():
    """The functions of the page."""
    names = {}
    shuffling, splits, mixing = [block for block in displays() if "def " in block]
    assert len([line for line in shuffling.splitlines() if line.strip()]) <= 130
    assert len([line for line in splits.splitlines() if line.strip()]) <= 60
    exec(shuffling, names)
    exec(splits, names)
    exec(mixing, names)
    return names


T, Y, X = 41, 6, 9


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Variables in chunks of 6 and 3 times; the longest counts."""
    path = tmp_path_factory.mktemp("man") / "s.zarr"
    values = np.arange(T * Y * X, dtype="f4").reshape(T, Y, X)
    data = xr.Dataset({name: (("time", "lat", "lon"), values) for name in ("a", "b", "c")},
                      {"time": np.arange(T)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_zarr(path, zarr_format=2,
                     encoding={"a": {"chunks": (6, 6, 9)}, "b": {"chunks": (3, 6, 9)},
                               "c": {"chunks": (6, 2, 9)}})
    return path


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    """The same variable c with NaN in some places; whether a row of it has any."""
    path = tmp_path_factory.mktemp("holes") / "s.zarr"
    values = np.arange(T * Y * X, dtype="f4").reshape(T, Y, X)
    values[np.random.default_rng(5).random(values.shape) < 0.01] = np.nan
    values[12:20, 2:4] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"c": (("time", "lat", "lon"), values)}).to_zarr(
            path, zarr_format=2, encoding={"c": {"chunks": (6, 2, 9)}})
    return path, np.isnan(values).any(axis=2)


def samples(batchfs, store, tmp_path, view, epoch, count=None):
    """All sample numbers of an epoch, in order; `count`: the samples there are, if not as many."""
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view))
    plan = json.loads(batchfs.bytes("plan", store, "--view", file, "--json"))
    batches = [json.loads(batchfs.bytes("batch", store, "--view",
                                        file, "--format", "json", "--epoch", epoch, "--batch", b))
               for b in range(plan["batches"])]
    order = [s for batch in batches for s in batch["samples"]]
    assert plan["samples"] == (count or len(order))
    return order


@pytest.mark.parametrize("seed", [0, 12345678901234567])
@pytest.mark.parametrize("epoch", [0, 3, 123456])
def test_global(batchfs, store, tmp_path, seed, epoch):
    view = {"variables": ["a"], "window": {"time": 2, "lat": {"size": 2, "stride": 1}}, "batch": 33,
            "order": {"shuffle": "global", "seed": seed}}
    permute = page()["permute"]
    expected = [permute(i, 100, seed, epoch) for i in range(100)]
    assert sorted(expected) == list(range(100))
    assert samples(batchfs, store, tmp_path, view, epoch) == expected


def test_permute_of_every_small_size():
    permute = page()["permute"]
    for size in range(1, 70):
        assert sorted(permute(i, size, 5, 1) for i in range(size)) == list(range(size))
    huge = [permute(i, 10**9, 5, 1) for i in range(100)]
    assert len(set(huge)) == 100 and max(huge) < 10**9


#         window of time           selection              chunk  positions  lead  group
BLOCKS = [
    ({"size": 1},                  None,                  6,     41,        0,    6),
    ({"size": 1},                  ["#4", "#37"],         6,     33,        2,    6),
    ({"size": 2, "stride": 1},     ["#1", "#41"],         6,     39,        5,    6),
    ({"size": 3, "stride": 2},     ["#1", "#41"],         6,     19,        3,    3),
    ({"size": 2, "stride": 2},     ["#5", "#41"],         6,     18,        1,    3),
    ({"size": 1, "stride": 4},     None,                  6,     11,        0,    1),
    ({"size": 7},                  ["#3", "#41"],         6,     5,         0,    1),
    ({"size": 6, "wrap": True},    None,                  6,     7,         0,    1),
    ({"size": 2, "stride": 1},     "list",                6,     30,        0,    6),
]


LATITUDE = (3, 0, 3)  # windows of 2 in one chunk of 6


@pytest.mark.parametrize("buffer", [1, 2, 5, 1 << 20])
@pytest.mark.parametrize("case", BLOCKS, ids=[str(i) for i in range(len(BLOCKS))])
def test_block(batchfs, store, tmp_path, case, buffer):
    time, selection, chunk, positions, lead, group = case
    view = {"variables": ["a", "b"], "window": {"time": time, "lat": 2}, "batch": 20,
            "order": {"shuffle": "block", "seed": 9, "buffer": buffer}}
    first = 0
    if selection == "list":
        view["select"] = {"time": [f"#{i}" for i in range(40) if i % 4 != 3] + ["#40"]}
    elif selection:
        view["select"] = {"time": {"from": selection[0], "to": selection[1]}}
        first = int(selection[0][1:])
    stride = time.get("stride", time["size"])
    # The page's own formulas agree with the table.
    assert group == max(1, chunk // stride)
    axis = (positions, lead, group) if (positions - lead) // group else (positions, 0, positions)
    if selection != "list":
        assert lead == (min(positions, math.ceil((chunk - first % chunk) % chunk / stride))
                        if chunk % stride == 0 else 0)
    count = 3 * positions
    block = page()["block"]
    expected = [block(i, count, 9, 2, buffer, [axis, LATITUDE]) for i in range(count)]
    assert sorted(expected) == list(range(count))
    assert samples(batchfs, store, tmp_path, view, 2) == expected


@pytest.mark.parametrize("buffer", [1, 4, 1 << 20])
def test_block_of_chunks_along_two_dimensions(batchfs, store, tmp_path, buffer):
    view = {"variables": ["c"],
            "window": {"lat": {"size": 1, "stride": 1}, "time": {"size": 3, "stride": 1}},
            "batch": 50, "order": {"shuffle": "block", "seed": 3, "buffer": buffer}}
    block = page()["block"]
    axes = [(Y, 0, 2), (T - 2, 0, 6)]
    expected = [block(i, Y * (T - 2), 3, 1, buffer, axes) for i in range(Y * (T - 2))]
    assert sorted(expected) == list(range(Y * (T - 2)))
    assert samples(batchfs, store, tmp_path, view, 1) == expected
    if buffer == 1:
        chunks = [(s // (T - 2) // 2, s % (T - 2) // 6) for s in expected[:3 * 6 * 12]]
        # each chunk in one run
        assert len({tuple(chunks[i:i + 12]) for i in range(0, len(chunks), 12)}) == 18
        assert all(len(set(chunks[i:i + 12])) == 1 for i in range(0, len(chunks), 12))


@pytest.mark.parametrize("buffer", [1, 3, 1 << 20])
@pytest.mark.parametrize("axes", [((0, 0, 6), (0, 0, 2)), ((5, 1, 6), (0, 0, 2))],
                         ids=["whole", "lead"])
def test_block_with_skipped_windows(batchfs, holes, tmp_path, buffer, axes):
    path, missing = holes
    first = axes[0][0]
    (time, lat) = (T - first - 2, Y)
    axes = [(lat, 0, 2), (time, axes[0][1], 6)]
    view = {"variables": ["c"], "window": {"lat": 1, "time": {"size": 3, "stride": 1}}, "batch": 20,
            "select": {"time": {"from": f"#{first}", "to": f"#{T}"}}, "missing": {"nan": "skip"},
            "order": {"shuffle": "block", "seed": 3, "buffer": buffer}}
    left = [w for w in range(lat * time)
            if not missing[first + w % time:first + w % time + 3, w // time].any()]
    assert 0 < len(left) < lat * time
    expected = list(page()["block_skipping"](set(left).__contains__, lat * time, 3, 2, buffer,
                                             axes))
    assert sorted(expected) == left
    assert samples(batchfs, path, tmp_path, view, 2) == [left.index(w) for w in expected]


LANES = {"lat": {"size": 1, "stride": 1}, "time": {"size": 3, "stride": 1}}  # windows of variable c
COUNT = Y * (T - 2)
AXES = [(Y, 0, 2), (T - 2, 0, 6)]


def in_lanes(order, size, lanes):
    """A whole epoch: `order` gives it without lanes."""
    unlaned = page()["unlaned"]
    return [order[unlaned(i, len(order), size, lanes)] for i in range(len(order))]


def without_lanes(view, epoch, axes=AXES):
    order = view["order"]
    if order["shuffle"] == "none":
        return list(range(COUNT))
    if order["shuffle"] == "global":
        return [page()["permute"](i, COUNT, 3, epoch) for i in range(COUNT)]
    return [page()["block"](i, COUNT, 3, epoch, order["buffer"], axes) for i in range(COUNT)]


@pytest.mark.long
@pytest.mark.parametrize("remainder", ["keep", "drop"])
@pytest.mark.parametrize("lanes", [1, 2, 5, 30])
@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
def test_lanes(batchfs, store, tmp_path, shuffle, lanes, remainder):
    view = {"variables": ["c"], "window": LANES, "batch": {"size": 17, "remainder": remainder},
            "order": {"shuffle": shuffle, "seed": 3, "buffer": 2, "lanes": lanes}}
    expected = in_lanes(without_lanes(view, 1), 17, lanes)
    assert sorted(expected) == list(range(COUNT))
    if remainder == "drop":
        del expected[COUNT - COUNT % 17:]
    assert samples(batchfs, store, tmp_path, view, 1, COUNT) == expected


@pytest.mark.parametrize("span", [{"time": 2}, {"lat": 1, "time": 3}, {"time": 1}])
def test_span(batchfs, store, tmp_path, span):
    view = {"variables": ["c"], "window": LANES, "batch": 17,
            "order": {"shuffle": "block", "seed": 3, "buffer": 2, "lanes": 2, "span": span}}
    axes = [(Y, 0, 2 * span.get("lat", 1)), (T - 2, 0, 6 * span["time"])]
    expected = without_lanes(view, 1, axes)
    assert sorted(expected) == list(range(COUNT))
    assert samples(batchfs, store, tmp_path, view, 1) == in_lanes(expected, 17, 2)


@pytest.mark.parametrize("size, lanes, buffer",
                         [(1, 3, 2), (6, 3, 1), (13, 7, 2), (17, 3, 2), (17, 1, 2), (17, 40, 2),
                          (20, 4, 1 << 20), (40, 2, 3)])
@pytest.mark.parametrize("skip", [False, True], ids=["all", "skip"])
def test_home(batchfs, store, holes, tmp_path, size, lanes, buffer, skip):
    path, missing = holes if skip else (store, np.zeros((T, Y), bool))
    view = {"variables": ["c"], "window": LANES,
            "batch": size, "missing": {"nan": "skip" if skip else "keep"}, "order": {
                "shuffle": "block", "seed": 3, "buffer": buffer, "lanes": lanes, "home": True}}
    left = [w for w in range(COUNT) if not missing[w % (T - 2):w % (T - 2) + 3, w // (T - 2)].any()]
    expected = page()["home"](set(left).__contains__, COUNT, 3, 1, buffer, AXES, size, lanes)
    assert sorted(expected) == left
    assert samples(batchfs, path, tmp_path, view, 1) == [left.index(w) for w in expected]


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 100, COUNT - 1, COUNT, 2 * COUNT + 40])
@pytest.mark.parametrize("order", [{"shuffle": "none"}, {"shuffle": "global", "lanes": 3},
                                   {"shuffle": "block", "buffer": 2},
                                   {"shuffle": "block", "buffer": 2, "lanes": 3, "home": True}])
def test_epochs_of_some_samples(batchfs, store, tmp_path, order, count):
    view = {"variables": ["c"], "window": LANES, "batch": 17,
            "epochs": {"count": 4, "samples": count}, "order": {"seed": 3} | order}
    @functools.cache
    def of_pass(number):
        if order.get("home"):
            return page()["home"](lambda w: True, COUNT, 3, number, 2, AXES, 17, 3)
        return without_lanes(view, number)
    for epoch in (0, 3):
        expected = [of_pass(p // COUNT)[p % COUNT]
                    for p in range(epoch * count, (epoch + 1) * count)]
        if not order.get("home"):
            expected = in_lanes(expected, 17, order.get("lanes", 1))
        assert samples(batchfs, store, tmp_path, view, epoch, COUNT) == expected


def test_block_keeps_whole_chunks_together(batchfs, store, tmp_path):
    """Mixing one group at a time, each chunk is read in one run of samples, also where stride and
    selection cut across the beginning of a chunk."""
    view = {"variables": ["a"], "window": {"time": {"size": 1, "stride": 2}}, "batch": 50,
            "select": {"time": {"from": "#1", "to": "#37"}},
            "order": {"shuffle": "block", "seed": 1, "buffer": 1}}
    chunks = [(1 + 2 * s) // 6 for s in samples(batchfs, store, tmp_path, view, 0)]
    runs = [c for i, c in enumerate(chunks) if i == 0 or chunks[i - 1] != c]
    assert sorted(runs) == sorted(set(chunks))


def test_the_views_of_the_page_can_be_used(batchfs, tmp_path):
    size = {"time": 24, "level": 2, "latitude": 96, "longitude": 96}
    rng = np.random.default_rng(0)

    def field(*dims):
        return dims, rng.standard_normal([size[d] for d in dims]).astype("f4")

    weather = xr.Dataset({"temperature": field("time", "level", "latitude", "longitude"),
                          "pressure": field("time", "latitude", "longitude"),
                          "humidity": field("time", "level", "latitude", "longitude")},
                         {"time": np.arange("1979-01-01", "1979-01-25",
                                            dtype="M8[D]").astype("M8[ns]"), "level": [500, 850]})
    ocean = xr.Dataset({"sst": (("time", "lat", "lon"), np.zeros((20, 64, 64), "f4"))})
    views = [json.loads(block) for block in displays() if block.startswith("{")]
    # those are statistics
    views = [view for view in views if not isinstance(view.get("variables"), dict)]
    assert len(views) >= 3
    for data, name in ((weather, "weather"), (ocean, "ocean")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.to_zarr(tmp_path / name, zarr_format=2)
    hours = np.datetime64("1979-01-01", "ns") + np.arange(96) * np.timedelta64(30, "m")

    def grid(name, times):
        values = rng.standard_normal((len(times), 4, 8)).astype("f4")
        return xr.Dataset({name: (("time", "latitude", "longitude"), values)},
                          {"time": times, "latitude": np.arange(4.0)})

    static = xr.Dataset({"lsm": (("lat", "longitude"), np.ones((4, 8), "f4"))},
                        {"lat": np.arange(4) + 1e-6})
    sources = {"era5": grid("t2m", hours[::12]), "imerg": grid("precipitation", hours),
               "sst": grid("sst", hours[::48]), "static": static}
    for name, data in sources.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.to_zarr(tmp_path / name, zarr_format=2)
    assert any("sources" in view for view in views)
    for view in views:
        (tmp_path / "view.json").write_text(json.dumps(view))
        if "era" in view.get("sources", {}):
            for year, part in ((1979, hours[:40]), (1980, hours[50:60])):
                grid("t2m", part).to_zarr(tmp_path / f"y{year}.zarr", zarr_format=2)
            plan = json.loads(batchfs.bytes("plan", tmp_path / "era5", "--store",
                                            f"era={tmp_path}/y{{1979..1980}}.zarr", "--view",
                                            tmp_path / "view.json", "--json"))
            assert plan["samples"] == 12
            continue
        if "gefs" in view.get("sources", {}):
            for member in range(2):
                grid("t2m", hours[:40]).to_zarr(tmp_path / f"m{member}.zarr", zarr_format=2)
            plan = json.loads(batchfs.bytes("plan", tmp_path / "era5", "--store",
                                            f"gefs={tmp_path}/m{{0..1}}.zarr", "--view",
                                            tmp_path / "view.json", "--json"))
            assert plan["samples"] == 2 * 10
            continue
        if "sources" in view:
            others = [f"--store={name}={tmp_path / name}" for name in sources if name != "era5"]
            plan = json.loads(batchfs.bytes("plan", tmp_path / "era5", *others, "--view",
                                            tmp_path / "view.json", "--json"))
            assert plan["samples"] == 7  # the first has no rain before it
            continue
        if "mix" in view:
            words = [tmp_path / "era5", f"--store=sst={tmp_path / 'sst'}", "--view",
                     tmp_path / "view.json"]
            plan = json.loads(batchfs.bytes("plan", *words, "--json"))
            assert (plan["samples"], plan["batches"]) == (8 + 2, 100)
            continue
        store = tmp_path / ("ocean" if "xbatcher" in view else "weather")
        # A short store: the batch of the page may be larger than all samples.
        if view.get("batch", {}).get("remainder") == "drop":
            view["batch"]["size"] = 4
            (tmp_path / "view.json").write_text(json.dumps(view))
        assert json.loads(batchfs.bytes("plan", store, "--view", tmp_path / "view.json",
                                        "--json"))["batches"] > 0


def test_the_examples_of_the_keys_are_json():
    """Each "Example" line is a member of a view, with a key of the page."""
    lines = re.findall(r"^\.It Example\n\.Li (.*)$", PAGE.read_text(), re.M)
    sections = set(re.findall(r"^\.Ss (\w+)$", PAGE.read_text(), re.M))
    keys = set()
    for line in lines:
        keys |= set(json.loads("{" + unescape(line) + "}"))
    assert keys | {"edge"} == sections
    assert len(lines) == len(sections)
