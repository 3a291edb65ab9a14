"""Views whose batches have a million samples: no name, no text and no command takes memory in
proportion to them."""

import errno
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import zarr
from measured import measure, peak_of
from watching import eventually, status

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
MB = 1 << 20
MEMORY = 64 * MB
MOST = MEMORY + 64 * MB
SIDE, ROWS, EPOCH = 1 << 10, 16, np.datetime64("1900-01-01T00", "s")
SAMPLES = SIDE * SIDE
POINT = {"time": 1, "x": 1}
LARGE = 131_072
VIEWS = {
    "all": {"window": POINT, "batch": SAMPLES},
    "shuffled": {"window": POINT, "batch": LARGE, "order": {"shuffle": "global", "seed": 1},
                 "formats": ["npy", "zarr", "safetensors"]},
    "overlapping": {"window": {"time": 1, "x": {"size": 8, "stride": 1}}, "batch": LARGE,
                    "formats": ["npy", "npz"]},
    "patches": {"xbatcher": {"input_dims": {"time": 1, "x": 1},
                             "batch_dims": {"time": LARGE // SIDE}, "concat_input_dims": True}},
    "mixed": {
        "mix": {"a": {"weight": 2,
                      "view": {"window": POINT, "select": {"time": {"from": "#0", "to": "#199"}}}},
                "b": {"weight": 1,
                      "view": {"window": POINT, "select": {"time": {"from": "#0", "to": "#99"}}}}},
        "batch": {"size": LARGE}},
    "small": {"window": POINT, "batch": 16},
}
# Two batches of most views, since making them takes seconds.
for name in ("shuffled", "overlapping", "patches"):
    VIEWS[name]["select"] = {"time": {"from": "#0", "to": f"#{2 * LARGE // SIDE}"}}
VIEWS = {name: {"name": name, "variables": ["t"]} | view if "mix" not in view
             else {"name": name} | view for name, view in VIEWS.items()}
for component in VIEWS["mixed"]["mix"].values():
    component["view"]["variables"] = ["t"]

# Stats every name below the directories, and reads the head of every file: those that take part in
# one walk do not wait for each other.
WALK = """
import os, sys
for top in sys.argv[1:]:
    for directory, _, names in os.walk(top):
        for name in sorted(names):
            path = os.path.join(directory, name)
            size = os.stat(path).st_size
            if name.endswith(".sock"):
                continue
            with open(path, "rb") as file:
                assert len(file.read(4096)) == min(4096, size) or size == 0, path
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "s.zarr"
    group = zarr.create_group(path)
    values = np.arange(SAMPLES).reshape(SIDE, SIDE) % 100
    group.create_array("t", shape=values.shape, chunks=(ROWS, SIDE), dtype="i1",
                       dimension_names=["time", "x"])[:] = values
    group.create_array("time", shape=(SIDE,), chunks=(SIDE,), dtype="i8", dimension_names=["time"],
                       attributes={"units": "hours since 1900-01-01"})[:] = np.arange(SIDE)
    group.create_array("x", shape=(SIDE,), chunks=(SIDE,), dtype="f8",
                       dimension_names=["x"])[:] = np.arange(SIDE) / 8
    return path


def write(folder, name):
    (folder / f"{name}.json").write_text(json.dumps(VIEWS[name]))
    return folder / f"{name}.json"


def check_text(text, batch, size, shuffled):
    about = json.loads(text)
    assert list(about) == ["view", "epoch", "batch", "samples", "windows", "starts", "coordinates",
                           "chunks", "snapshot"]
    samples = np.array(about["samples"])
    assert about["batch"] == batch and len(samples) == len(set(about["samples"])) == size
    if not shuffled:
        assert (samples == np.arange(batch * size, (batch + 1) * size)).all()
    time, x = samples // SIDE, samples % SIDE
    assert about["windows"] == [{"time": [t, t + 1], "x": [i, i + 1]}
                                for t, i in zip(time.tolist(), x.tolist())]
    assert (np.array(about["starts"]) == np.stack([time, x], axis=1)).all()
    assert (np.array(about["coordinates"]["time"], "M8[s]") == EPOCH
            + time * np.timedelta64(3600, "s")).all()
    assert (np.array(about["coordinates"]["x"]) == x / 8).all()
    _, first = np.unique(time // ROWS, return_index=True)
    assert about["chunks"] == [f"t/{time[i] // ROWS}.0" for i in sorted(first)]
    # Every byte as Python's json module writes it, which is an independent implementation of the
    # form.
    assert text.decode() == json.dumps(about, indent=2) + "\n"


@pytest.mark.says("bounded-memory", "size-exact", "size-long", "stat-no-text")
@pytest.mark.not_sanitized("it takes several times the memory")
def test_names_and_heads_of_files(mount_at, store, tmp_path):
    directory = mount_at(store, tmp_path / "mnt", VIEWS, "--memory", str(MEMORY))
    pid = status(directory)["pid"]
    print(f"LARGE mounted: {peak_of(pid) / MB:.0f} MB")
    assert peak_of(pid) <= MOST
    few = directory / "views/small/epoch-0000"
    tops = [str(path) for path in directory.iterdir()
            if path.name != "views"] + [str(directory / ".batchfs")]
    tops += [str(path) for path in (directory / "views").iterdir() if path.name != "small"]
    walks = [subprocess.Popen([sys.executable, "-c", WALK, *tops[i:], *tops[:i]])
             for i in (0, len(tops) // 2)]
    assert [walk.wait() for walk in walks] == [0] * len(walks)
    print(f"LARGE after {len(walks)} walks: {peak_of(pid) / MB:.0f} MB")
    assert peak_of(pid) <= MOST
    for name, size, batch in (("shuffled", LARGE, 1), ("all", SAMPLES, 0)):
        path = directory / f"views/{name}/epoch-0000/batch-{batch:06}.json"
        assert path.stat().st_size == 0
        check_text(path.read_bytes(), batch, size, name == "shuffled")
    # Texts of usual batches have their size.
    for number in (0, 1, SAMPLES // 16 - 1):
        path = few / f"batch-{number:06}.json"
        assert path.stat().st_size == len(path.read_bytes())
        check_text(path.read_bytes(), number, 16, False)
    print(f"LARGE at the end: {peak_of(pid) / MB:.0f} MB")
    assert peak_of(pid) <= MOST


@pytest.mark.says("memory-list")
@pytest.mark.not_sanitized("it takes several times the memory")
def test_a_batch_with_a_long_list_is_refused(store, tmp_path):
    """A million samples in random order; few with many positions each; two views of half of them in
    a mixture; patches of xbatcher."""
    positions = [f"#{position}" for position in range(0, SIDE, 2)]
    spread = {"name": "v", "variables": ["t"], "window": {"time": 1}, "select": {"x": positions},
              "batch": SIDE}
    shuffled = VIEWS["all"] | {"order": {"shuffle": "global", "seed": 1}}
    alone = {key: shuffled[key] for key in ("variables", "window", "order")}
    mixed = {"name": "v", "mix": {name: {"view": alone} for name in "ab"},
             "batch": {"size": SAMPLES}}
    patches = {"name": "v", "variables": ["t"], "select": {"x": positions},
               "xbatcher": {"input_dims": {"time": 1, "x": 1},
                            "batch_dims": {"time": SIDE, "x": SIDE // 2},
                            "concat_input_dims": True}}
    for view, samples in ((shuffled, SAMPLES), (spread, SIDE), (mixed, SAMPLES // 2), (patches, 1)):
        path = tmp_path / "v.json"
        path.write_text(json.dumps(view))
        (tmp_path / "mnt").mkdir(exist_ok=True)
        for words in (["plan", store], ["mount", store, tmp_path / "mnt", "--foreground"],
                      ["serve", store, "--socket", tmp_path / "s"]):
            taken = measure(PROGRAM, *words, "--view", path, "--memory", MEMORY)
            assert taken.status == 1
            assert taken.peak <= MOST
            (line,) = taken.error.strip().splitlines()
            assert f"a batch of {samples} samples" in line and "give more with --memory" in line


@pytest.mark.says("memory-list")
@pytest.mark.not_sanitized("it takes several times the memory")
def test_a_later_batch_with_a_long_list_is_not_made(mount_at, store, tmp_path):
    starts = np.stack(np.unravel_index(np.arange(SAMPLES), (SIDE, SIDE)), axis=1)
    np.random.default_rng(0).shuffle(starts[SAMPLES // 2:])
    np.save(tmp_path / "starts.npy", starts)
    view = VIEWS["all"] | {"samples": {"list": str(tmp_path / "starts.npy")}, "batch": SAMPLES // 2}
    directory = mount_at(store, tmp_path / "mnt", {"v": view}, "--memory", str(MEMORY))
    epoch = directory / "views/all/epoch-0000"
    assert np.load(epoch / "batch-000000.npy").shape == (SAMPLES // 2, 1, 1)
    with pytest.raises(OSError) as caught, open(epoch / "batch-000001.npy", "rb"):
        pass
    assert caught.value.errno == errno.ENOMEM
    log = (directory / ".batchfs/log").read_text()
    assert f"a batch of {SAMPLES // 2} samples" in log and "--memory" in log
    with open(epoch / "batch-000001.json", "rb") as file:
        assert file.read(1000).startswith(b'{\n  "view": "all",\n')
    assert peak_of(status(directory)["pid"]) <= MOST


@pytest.mark.says("memory-names")
def test_names_that_the_kernel_keeps_are_limited(mount_at, store, tmp_path):
    """Names of files, and of directories that are not listed: any number of epochs can be named."""
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEWS["small"]}, "--memory", "1M")
    limit = 4096
    for number in range(6 * limit):
        os.stat(directory / f"views/small/epoch-{number:04}")
    assert eventually(lambda: status(directory)["kernel_names"] <= 2 * limit)
    for number in range(6 * limit):
        os.stat(directory / f"views/small/epoch-0000/batch-{number:06}.npy")
    assert eventually(lambda: status(directory)["kernel_names"] <= 2 * limit)


@pytest.mark.says("size-long", "text-places")
@pytest.mark.not_sanitized("it takes several times the memory")
def test_a_long_text_is_read_from_any_place(mount_at, store, tmp_path):
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEWS["shuffled"]}, "--memory", str(MEMORY))
    path = directory / "views/shuffled/epoch-0000/batch-000001.json"
    text = path.read_bytes()
    with open(path, "rb", buffering=0) as one, open(path, "rb", buffering=0) as other:
        for at in (len(text) - 100, 5_000_000, 4_999_000, 0, len(text), len(text) + 10, 123):
            assert os.pread(one.fileno(), 1000, at) == text[at:at + 1000]
        # Any place, often before the one that was read last.
        for at in np.random.default_rng(0).integers(0, len(text), 50).tolist():
            assert os.pread(one.fileno(), 4096, at) == text[at:at + 4096]
        # Two readers of one file, each at a place of its own.
        for at in range(0, 3 << 20, 1 << 18):
            assert os.pread(one.fileno(), 1 << 18, at) == text[at:at + (1 << 18)]
            assert os.pread(other.fileno(), 1000, 2 * at) == text[2 * at:2 * at + 1000]
    copy = tmp_path / "copy.json"
    subprocess.run(["cp", path, copy], check=True)
    assert copy.read_bytes() == text
    assert subprocess.run(["cat", path], check=True, capture_output=True).stdout == text


@pytest.mark.says("bounded-memory")
@pytest.mark.not_sanitized("it takes several times the memory")
@pytest.mark.parametrize("name", VIEWS)
def test_commands(store, tmp_path, name):
    view = write(tmp_path, name)
    for command in (["plan"], ["plan", "--json"], ["plan", "--world", "2"],
                    ["batch", "--format", "json"], ["batch", "--format", "safetensors"]):
        taken = measure(PROGRAM, *command, store, "--view", view, "--memory", str(MEMORY),
                        timeout=600)
        print(f"LARGE {' '.join(command)} of {name}: {taken.peak / MB:.0f} MB, "
              f"{taken.seconds:.1f} s")
        assert taken.status == 0, taken.error
        assert taken.peak <= MOST, command


@pytest.mark.not_sanitized("it takes several times the memory")
def test_batch_writes_the_text_of_the_mount(mount_at, store, batchfs, tmp_path):
    directory = mount_at(store, tmp_path / "mnt", {"v": VIEWS["mixed"], "w": VIEWS["patches"]},
                         "--memory", str(MEMORY))
    for name in ("mixed", "patches"):
        done = batchfs("batch", store, "--view", write(tmp_path, name), "--format", "json",
                       "--memory", str(MEMORY))
        assert done.returncode == 0, done.stderr
        about = json.loads(done.stdout)
        assert done.stdout.decode() == json.dumps(about, indent=2) + "\n"
        assert len(about["windows"]) == LARGE
        mounted = json.loads(
            (directory / f"views/{name}/epoch-0000/batch-000000.json").read_bytes())
        assert set(mounted.pop("snapshot")) and mounted == about
