"""batchfs view, plan and batch against xarray, and plan's figures against counting."""

import io
import json
import os
import math
import shutil

import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import load as load_safetensors

VIEW = {
    "name": "train",
    "window": {"time": 1},
    "tensors": {"x": {"variables": ["t"], "offsets": {"time": [-1, 0]}},
                "y": {"variables": ["q"], "offsets": {"time": [1]}}},
    "batch": {"size": 6},
    "order": {"shuffle": "global", "seed": 7},
    "dtype": "float32",
}
CHUNK = (7, 2, 5, 16)  # as the fixture stores them


@pytest.fixture
def write(tmp_path):
    def write_view(**changes):
        path = tmp_path / "view.json"
        path.write_text(json.dumps(VIEW | changes))
        return path

    return write_view


def provenance(good, weather, view, batch, *more):
    return json.loads(good("batch", weather, "--view", view, "--format", "json", "--batch", batch,
                           *more))


def expected(weather, samples):
    """x and y of these samples: sample s stands at time s + 1, the first that has a predecessor."""
    dataset = xr.open_zarr(weather)
    t, q = dataset.t.values, dataset.q.values.astype("f4")
    return np.stack([t[s:s + 2] for s in samples]), np.stack([q[s + 2:s + 3] for s in samples])


def test_a_starter_view_of_a_shape_can_be_used(good, fails, weather, tmp_path):
    opened = xr.open_zarr(weather)
    starter = good("view", weather, "--patch", 2, "--time", 3, "--predict", 2)
    (tmp_path / "v.json").write_bytes(starter)
    plan = json.loads(good("plan", weather, "--view", tmp_path / "v.json", "--json"))
    sizes = {tensor["name"]: dict(zip(tensor["dims"], tensor["shape"]))
             for tensor in plan["tensors"]}
    patch = dict.fromkeys(list(opened.t.dims)[-2:], 2)
    assert sizes["x"].items() >= {"time": 3, **patch}.items() and sizes["y"].items() >= {
        "time": 2, **patch}.items()
    assert plan["samples"] % (opened.sizes["time"] - 4) == 0
    tiles = json.loads(good("view", weather, "--patch", "chunk"))
    largest = max(opened.data_vars.values(), key=lambda variable: variable.size)
    assert [tiles["window"][d] for d in largest.dims[-2:]] == list(largest.encoding["chunks"][-2:])
    assert "--patch takes a number" in fails(2, "view", weather, "--patch", "0")
    assert "has 40" in fails(1, "view", weather, "--time", 40, "--predict", 1)


def test_the_starter_view_can_be_used(good, weather, tmp_path):
    starter = good("view", weather, "--name", "mine")
    assert json.loads(starter)["name"] == "mine"
    (tmp_path / "v.json").write_bytes(starter)
    plan = json.loads(good("plan", weather, "--view", tmp_path / "v.json", "--json"))
    assert plan["samples"] > 0
    assert "View mine" in good("plan", weather, "--view", tmp_path / "v.json").decode()


def test_plan_gives_the_schema(good, weather, write):
    plan = json.loads(good("plan", weather, "--view", write(), "--json"))
    assert (plan["samples"], plan["batches"]) == (38, 7)
    assert [(t["name"], t["dtype"], t["shape"], t["dims"][0]) for t in plan["tensors"]] == [
        ("x", "float32", [6, 2, 3, 8, 16], "sample"), ("y", "float32", [6, 1, 3, 8, 16], "sample")]


@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
def test_the_figures_of_plan_are_right(good, weather, write, shuffle):
    view = write(order={"shuffle": shuffle, "seed": 3})
    plan = json.loads(good("plan", weather, "--view", view, "--json"))
    used, decoded, chunks = [], [], []
    grid = math.ceil(3 / 2) * math.ceil(8 / 5)  # chunks of one time block
    for batch in plan["estimated_from_batches"]:
        samples = provenance(good, weather, view, batch)["samples"]
        times = {"t": {s + k for s in samples for k in (0, 1)}, "q": {s + 2 for s in samples}}
        itemsize = {"t": 4, "q": 2}
        blocks = {name: {time // CHUNK[0] for time in found} for name, found in times.items()}
        used.append(sum(len(times[n]) * 3 * 8 * 16 * itemsize[n] for n in times))
        chunks.append(sum(len(blocks[n]) * grid for n in times))
        decoded.append(sum(len(blocks[n]) * grid * math.prod(CHUNK) * itemsize[n] for n in times))
    assert plan["used_bytes_per_batch"] == pytest.approx(np.mean(used), abs=1)
    assert plan["chunks_per_batch"] == pytest.approx(np.mean(chunks), rel=1e-3)
    assert plan["decoded_bytes_per_batch"] == pytest.approx(np.mean(decoded), abs=1)
    assert plan["decode_amplification"] == pytest.approx(np.mean(decoded) / np.mean(used), rel=1e-3)
    assert plan["batch_bytes"] == 6 * 3 * 3 * 8 * 16 * 4
    assert plan["epoch_bytes"] == 38 * 3 * 3 * 8 * 16 * 4


def test_plan_advises_on_memory(good, weather, write):
    text = good("plan", weather, "--view", write(), "--memory", "64K").decode()
    assert "--memory" in text.split("Advice")[1]


def test_plan_says_when_there_are_no_chunks(good, weather, write, tmp_path):
    store = tmp_path / "copy.zarr"
    shutil.copytree(weather, store)
    assert json.loads(good("plan", store, "--view", write(),
                           "--json"))["variables_without_chunks"] == []
    for name, without in (("t", ["t"]), ("q", ["q", "t"])):
        for entry in (store / name).iterdir():
            if entry.name not in ("zarr.json", ".zarray", ".zattrs"):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        plan = json.loads(good("plan", store, "--view", write(), "--json"))
        assert sorted(plan["variables_without_chunks"]) == without
        text = good("plan", store, "--view", write()).decode()
        assert f"No chunk of {', '.join(plan['variables_without_chunks'])} exists, so" in text
    assert "none: no chunk that was examined exists" in text


def test_plan_names_a_chunk_that_cannot_be_read(good, weather, write, tmp_path):
    store = tmp_path / "copy.zarr"
    shutil.copytree(weather, store)
    assert json.loads(good("plan", store, "--view", write(), "--json"))["unreadable"] == []
    for path in (store / "t").rglob("*"):
        if path.is_file() and path.name not in ("zarr.json", ".zarray", ".zattrs"):
            path.unlink()
            os.mkfifo(path)
    plan = json.loads(good("plan", store, "--view", write(), "--json"))
    assert len(plan["unreadable"]) == 1 and "t/" in plan["unreadable"][0]
    assert "A chunk cannot be read" in good("plan", store, "--view", write()).decode()


@pytest.mark.parametrize("batch", [0, 3, 6])
def test_npy_is_xarrays(good, weather, write, batch):
    view = write()
    samples = provenance(good, weather, view, batch)["samples"]
    assert len(samples) == (2 if batch == 6 else 6)
    for tensor, values in zip("xy", expected(weather, samples)):
        ours = np.load(io.BytesIO(good("batch", weather, "--view", view, "--batch", batch,
                                       "--tensor", tensor)))
        assert ours.dtype == np.float32
        assert np.array_equal(ours, values, equal_nan=True)


def test_npz_and_safetensors_hold_the_same(good, weather, write):
    view = write()
    x, y = expected(weather, provenance(good, weather, view, 2)["samples"])
    npz = np.load(io.BytesIO(good("batch", weather, "--view", view, "--batch", 2, "--format",
                                  "npz")))
    safetensors = load_safetensors(good("batch", weather, "--view", view, "--batch", 2, "--format",
                                        "safetensors"))
    for found in (npz, safetensors):
        assert set(found) == {"x", "y"}
        assert np.array_equal(found["x"], x)
        assert np.array_equal(found["y"], y, equal_nan=True)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_batches_of_an_epoch(good, weather, write, world):
    view = write()
    whole = [provenance(good, weather, view, b)["samples"] for b in range(7)]
    for rank in range(world):
        for b in range(len(range(rank, 7, world))):
            part = provenance(good, weather, view, b, "--rank", rank, "--world", world)
            assert part["samples"] == whole[b * world + rank]


def test_an_epoch_has_every_sample_once_in_an_order_of_its_own(good, weather, write):
    view = write()
    orders = [[s for b in range(7)
               for s in provenance(good, weather, view, b, "--epoch", e)["samples"]]
              for e in (0, 1)]
    assert [sorted(order) for order in orders] == [list(range(38))] * 2
    assert orders[0] != orders[1]
    assert orders[0] != list(range(38))


@pytest.mark.parametrize("arguments, code, words", [
    (["--batch", "7"], 1, "no batch 7"),
    (["--tensor", "z"], 1, "no tensor 'z'"),
    ([], 2, "--tensor"),
    (["--rank", "2", "--world", "2"], 2, "--rank 2"),
    (["--rank", "1", "--world", "2", "--batch", "3"], 1, "no batch 3"),
])
def test_batches_that_are_none(fails, weather, write, arguments, code, words):
    assert words in fails(code, "batch", weather, "--view", write(), *arguments)


@pytest.mark.parametrize("text, words", [
    ('{"windw": {"time": 1}}', "window"),
    ('{"window": {"tim": 1}}', "time"),
    ('{"window": {"time": 0}}', "window.time"),
    ('{"window": {"time": 1}, "variables": ["tt"]}', "variables"),
    ('{"window": {"time": 1}, "window": {"time": 2}}', "window"),
    ("{", "line 1"),
    ("[]", ""),
    ("", ""),
])
def test_wrong_views_are_one_line_that_helps(fails, weather, tmp_path, text, words):
    (tmp_path / "v.json").write_text(text)
    line = fails(1, "plan", weather, "--view", tmp_path / "v.json")
    assert words in line
