"""Random names of dimensions (repeated, empty, missing, those of variables): batches, `cat` and
copies against numpy.

Zarr lets an array have one name twice, as covariances (time, c, c); xarray opens it and selects
along both. Here the second is called "c:2", and what "select" says of "c" holds for it, unless it
is selected itself.
"""

import io
import json
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

warnings.filterwarnings("ignore")
NAMES = ["t", "c", "c", "c", "", None, "v", "w", "dim_1", "c:2", "x"]
LENGTHS = {"t": 6, "c": 3, "v": 4, "w": 2, "dim_1": 5, "c:2": 3, "x": 4}


def view_file(folder, view):
    file = folder / "view.json"
    file.write_text(json.dumps(view))
    return file


def create(path, zarr_format, arrays):
    """`arrays`: name -> (names of dimensions, values)."""
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for name, (dims, values, chunks) in arrays.items():
        more = {"dimension_names": dims} if zarr_format == 3 else {"attributes": {
            "_ARRAY_DIMENSIONS": dims}}
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype,
                           **more)[...] = values
    return path


def distinct(dims):
    """The documented names."""
    names = []
    for d, stored in enumerate(dims):
        name, number = stored or f"dim_{d}", 2
        if not stored or stored in names:
            own = name
            while own in names or own in dims:
                own, number = f"{name}:{number}", number + 1
            name = own
        names.append(name)
    return names


def originals(dims, names, shape):
    """The name that each dimension repeats; its own where it repeats none."""
    return [names[dims.index(stored)] if stored
            and shape[dims.index(stored)] == shape[d] else names[d]
            for d, stored in enumerate(dims)]


def random_case(rng):
    while True:
        rank = int(rng.integers(1, 5))
        dims = [NAMES[i] for i in rng.integers(len(NAMES), size=rank)]
        shape = [LENGTHS.get(name, 2 + int(rng.integers(4))) for name in dims]
        if rng.random() < 0.1:
            shape[-1] += 1  # one name, two lengths: two dimensions
        if np.prod(shape) <= 2000:
            break
    chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
    values = (1 + rng.permutation(int(np.prod(shape)))).astype("f4").reshape(shape)
    return dims, values, chunks


def random_selection(rng, names, window, shape):
    """name -> (positions, as a view says it)."""
    chosen = {}
    for name, length in zip(names, shape):
        if rng.random() < 0.6:
            continue
        if rng.random() < 0.3 and name != window:
            at = int(rng.integers(length))
            chosen[name] = (at, f"#{at}")
        elif rng.random() < 0.5:
            begin = int(rng.integers(length))
            end = int(rng.integers(begin + 1, length + 1))
            chosen[name] = (list(range(begin, end)), {"from": f"#{begin}", "to": f"#{end}"})
        else:
            some = rng.permutation(length)[:int(rng.integers(1, length + 1))].tolist()
            chosen[name] = (some, [f"#{i}" for i in some])
    return chosen


def selected(values, per_axis):
    """Each axis by itself; positions drop it."""
    for axis in reversed(range(values.ndim)):
        values = np.take(values, per_axis[axis], axis)
    return values


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_batches_are_what_numpy_takes(batchfs, tmp_path, seed, zarr_format):
    rng = np.random.default_rng(seed)
    dims, values, chunks = random_case(rng)
    store = create(tmp_path / "s.zarr",
                   zarr_format, {"v": (dims, values, chunks), "w": (["w"], np.arange(10, 12), (2,)),
                                 "u": (["t"], np.arange(6), (6,))})
    names = distinct(dims)
    first = originals(dims, names, values.shape)
    described = json.loads(batchfs.bytes("inspect", "--json", store))
    assert described["arrays"]["v"]["dims"] == names
    np.testing.assert_array_equal(batchfs.npy("cat", store, "v"), values)

    window = names[int(rng.integers(len(names)))]
    chosen = random_selection(rng, names, window, values.shape)
    per_axis = [chosen.get(name, chosen.get(first[d], (list(range(values.shape[d])), None)))[0]
                for d, name in enumerate(names)]
    axis = names.index(window)
    size = int(rng.integers(1, 3))
    view = {"variables": ["v"], "window": {window: size},
            "select": {name: text for name, (_, text) in chosen.items()},
            "batch": {"size": 3, "remainder": "keep"}}
    file = view_file(tmp_path, view)
    repeats = [name for name, other in zip(names, first) if other == window and name != window]
    if np.ndim(per_axis[axis]) == 0 or len(per_axis[axis]) < size:
        assert f"{window}" in batchfs.refusal("plan", store, "--view", file)
        return
    if repeats:
        assert f"the dimension '{window}' twice" in batchfs.refusal("plan", store, "--view", file)
        return
    want = selected(values, per_axis)
    window_axis = axis - sum(np.ndim(p) == 0 for p in per_axis[:axis])
    samples = [np.take(want, range(i, i + size), window_axis)
               for i in range(0, want.shape[window_axis] - size + 1, size)]
    plan = json.loads(batchfs.bytes("plan", store, "--view", file, "--json"))
    assert plan["samples"] == len(samples)
    for number in range(-(-len(samples) // 3)):
        got = batchfs.npy("batch", store, "--view", file, "--batch", number)
        np.testing.assert_array_equal(got, np.stack(samples[3 * number:3 * number + 3]))
    done = batchfs.run("export", store, "--view", file, "--to", "zarr", "-o",
                       tmp_path / "copy.zarr")
    if len(samples) % 3 == 0 or len(samples) < 3:
        assert done.returncode == 0, done.stderr
        copy = xr.open_zarr(tmp_path / "copy.zarr", chunks=None)
        assert list(copy["v"].dims[1:]) == [n for n, p in zip(names, per_axis) if np.ndim(p)]
        np.testing.assert_array_equal(copy["v"].values, np.stack(samples))


COVARIANCES = {"flux": (["time", "c"], np.arange(1, 19, dtype="f4").reshape(6, 3), (2, 2)),
               "cov": (["time", "c", "c"], np.arange(1, 55, dtype="f4").reshape(6, 3, 3),
                       (2, 2, 3)),
               "c": (["c"], np.array([10, 20, 30], "i4"), (3,)),
               "time": (["time"], np.arange(1, 7), (6,))}


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def covariances(request, tmp_path):
    return create(tmp_path / "cov.zarr", request.param, COVARIANCES)


@pytest.mark.parametrize("typed, label, positions",
                         [("20", "20", 1), ("30,10", ["30", "10"], [2, 0]),
                          ("10:20", {"from": "10", "to": "20"}, slice(0, 2))],
                         ids=["one", "list", "range"])
def test_a_selection_is_along_all_dimensions_of_the_name_as_in_xarray(
        batchfs, tmp_path, covariances, typed, label, positions):
    opened = xr.open_zarr(covariances, consolidated=False, chunks=None)
    view = view_file(tmp_path, {"window": {"time": 1}, "select": {"c": label}, "batch": 6})
    for name in ("cov", "flux"):
        want = opened[name].isel(c=positions).values
        np.testing.assert_array_equal(
            batchfs.npy("batch", covariances, "--view", view, "--tensor", name)[:, 0], want)
        np.testing.assert_array_equal(batchfs.npy("cat", covariances, name, "--select",
                                                  f"c={typed}"), want)


def test_each_can_be_selected_by_its_own_labels(batchfs, tmp_path, covariances):
    view = view_file(tmp_path, {"window": {"time": 1}, "variables": ["cov"], "batch": 6,
                                "select": {"c": ["30", "10"], "c:2": "20"}})
    cov = COVARIANCES["cov"][1]
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", view)[:, 0],
                                  cov[:, [2, 0], 1])
    np.testing.assert_array_equal(batchfs.npy("cat", covariances, "cov", "--select", "c:2=20"),
                                  cov[:, :, 1])
    line = batchfs.refusal("cat", covariances, "cov", "--select", "c:3=20")
    assert "c:3" in line


def test_windows_along_a_repeated_dimension_say_which(batchfs, tmp_path, covariances):
    cov = COVARIANCES["cov"][1]
    line = batchfs.refusal("plan", covariances, "--view",
                           view_file(tmp_path, {"window": {"c": 1}, "variables": ["cov"]}))
    assert "'cov' has the dimension 'c' twice" in line and "'c:2'" in line
    line = batchfs.refusal("plan", covariances, "--view", view_file(
        tmp_path, {"xbatcher": {"input_dims": {"c": 1}}, "variables": ["cov"]}))
    assert "'cov' has the dimension 'c' twice" in line
    columns = view_file(tmp_path, {"window": {"c:2": 1}, "variables": ["cov"], "batch": 3})
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", columns)[..., 0],
                                  np.moveaxis(cov, 2, 0))
    both = view_file(tmp_path, {"window": {"c": 1, "c:2": 1}, "variables": ["cov"], "batch": 9})
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", both)[..., 0, 0],
                                  cov.reshape(6, 9).T)
    patches = view_file(tmp_path, {"xbatcher": {"input_dims": {"c:2": 1, "c": 2, "time": 6}},
                                   "variables": ["cov"]})
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", patches, "--batch",
                                              1), cov[:, :2, 1:2])


def test_statistics_count_every_element_once(batchfs, tmp_path, covariances):
    view = view_file(tmp_path, {"window": {"time": 2}, "variables": ["cov"], "batch": 3})
    found = json.loads(batchfs.bytes("statistics", covariances, "--view", view,
                                     "--json"))["variables"]["cov"]
    assert found["count"] == 54 and found["mean"] == pytest.approx(27.5)
    found = json.loads(batchfs.bytes("statistics", covariances, "--view", view, "--per", "c:2",
                                     "--json"))
    assert found["variables"]["cov"]["mean"] == pytest.approx(
        COVARIANCES["cov"][1].mean((0, 1)).tolist())


def test_all_formats_and_stacks(batchfs, tmp_path, covariances):
    cov, flux = COVARIANCES["cov"][1], COVARIANCES["flux"][1]
    view = view_file(tmp_path, {"window": {"time": 2}, "batch": 3})
    with np.load(io.BytesIO(batchfs.bytes("batch", covariances, "--view", view, "--format",
                                          "npz"))) as batch:
        np.testing.assert_array_equal(batch["cov"], cov.reshape(3, 2, 3, 3))
        np.testing.assert_array_equal(batch["flux"], flux.reshape(3, 2, 3))
    stack = view_file(tmp_path, {"window": {"time": 2}, "batch": 3, "tensors": {
        "x": {"variables": ["cov", "flux"], "stack": "channel", "broadcast": True,
              "dims": ["channel", "c:2", "c", "time"]},
        "y": {"variables": ["flux", "cov"], "stack": "channel"},
        "z": {"variables": ["cov"], "coarsen": {"c": 3}}}})
    wide = np.stack([cov, np.broadcast_to(flux[..., None], cov.shape)])  # channel, time, c, c:2
    x = wide.transpose(0, 3, 2, 1).reshape(2, 3, 3, 3, 2).transpose(3, 0, 1, 2, 4)
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", stack, "--tensor",
                                              "x"), x)
    # of cov, c:2 goes into the stack
    channels = np.concatenate([flux[None], np.moveaxis(cov, 2, 0)])
    y = channels.reshape(4, 3, 2, 3).transpose(1, 0, 2, 3)
    np.testing.assert_array_equal(batchfs.npy("batch", covariances, "--view", stack, "--tensor",
                                              "y"), y)
    np.testing.assert_allclose(batchfs.npy("batch", covariances, "--view", stack, "--tensor", "z"),
                               cov.mean(1, keepdims=True).reshape(3, 2, 1, 3), rtol=1e-6)


@pytest.mark.parametrize("to", ["2", "3"])
def test_copies_keep_the_names(batchfs, tmp_path, covariances, to):
    copy = tmp_path / "copy.zarr"
    batchfs.bytes("rechunk", covariances, "-o", copy, "--chunks", "c=1", "--format", to)
    group = zarr.open_group(copy, mode="r")
    assert group["cov"].chunks == (2, 1, 1)
    names = (group["cov"].metadata.dimension_names if to == "3"
             else tuple(group["cov"].attrs["_ARRAY_DIMENSIONS"]))
    assert names == ("time", "c", "c")
    np.testing.assert_array_equal(group["cov"][...], COVARIANCES["cov"][1])
    batchfs.bytes("rechunk", covariances, "-o", tmp_path / "other.zarr", "--chunks", "c=1,c:2=3",
                  "--format", to)
    assert zarr.open_group(tmp_path / "other.zarr", mode="r")["cov"].chunks == (2, 1, 3)


def test_a_starter_view_is_one_that_can_be_used(batchfs, tmp_path):
    for dims in (["c", "c"], ["time", "c", "c"], ["c", "c", "c"]):
        values = np.arange(3 ** len(dims), dtype="f4").reshape((3,) * len(dims))
        store = create(tmp_path / f"{len(dims)}{dims[0]}.zarr", 3,
                       {"cov": (dims, values, values.shape)})
        file = tmp_path / "view.json"
        file.write_bytes(batchfs.bytes("view", store))
        batchfs.bytes("plan", store, "--view", file)
        batchfs.bytes("check", store, "--view", file)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_of_several_sources(batchfs, tmp_path, zarr_format):
    cov = COVARIANCES["cov"][1]
    covariances = create(tmp_path / "cov.zarr", zarr_format, COVARIANCES)
    other = create(tmp_path / "other.zarr", zarr_format,
                   COVARIANCES | {"cov": (["time", "c", "c"], cov + 100, (3, 3, 1))})
    view = view_file(tmp_path,
                     {"sources": {"a": {}, "b": {"store": "b"}}, "variables": ["cov", "b:cov"],
                      "select": {"c": ["30", "20"]}, "window": {"time": 1}, "batch": 6})
    for name, more in (("cov", 0), ("b:cov", 100)):
        got = batchfs.npy("batch", covariances, "--store", f"b={other}", "--view", view, "--tensor",
                          name)
        np.testing.assert_array_equal(got[:, 0], cov[:, [2, 1]][:, :, [2, 1]] + more)


def test_of_stores_one_behind_the_other(batchfs, tmp_path):
    cov = COVARIANCES["cov"][1]
    for number in (0, 1):
        create(tmp_path / f"y{number}.zarr", 3, COVARIANCES | {
            "cov": (["time", "c", "c"], cov + 100 * number, (2, 3, 2)),
            "time": (["time"], np.arange(1, 7) + 6 * number, (6,))})
        create(tmp_path / f"c{number}.zarr", 3,
               COVARIANCES | {"c": (["c"], np.arange(3) + 3 * number, (3,))})
    view = view_file(tmp_path,
                     {"sources": {"a": {"store": "a", "concat": "time"}}, "variables": ["cov"],
                      "select": {"c": ["30", "20"]}, "window": {"time": 1}, "batch": 12})
    got = batchfs.npy("batch", tmp_path / "y0.zarr", "--store", f"a={tmp_path}/y{{0..1}}.zarr",
                      "--view", view)
    whole = np.concatenate([cov, cov + 100])
    np.testing.assert_array_equal(got[:, 0], whole[:, [2, 1]][:, :, [2, 1]])
    view = view_file(tmp_path, {"sources": {"a": {"store": "a", "concat": "c"}},
                                "variables": ["cov"], "window": {"time": 1}, "batch": 6})
    line = batchfs.refusal("plan", tmp_path / "c0.zarr", "--store", f"a={tmp_path}/c{{0..1}}.zarr",
                           "--view", view)
    assert "it has the dimension 'c' more than once" in line
