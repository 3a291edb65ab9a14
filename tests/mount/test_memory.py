"""The memory budget: under many readers, in a control group with a hard limit, and for batches that
are too large."""

import errno
import json
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import zarr
from watching import eventually, status

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build/batchfs"))
MB = 1 << 20
STEPS, WIDTH = 256, 32 << 10  # samples of 128 KB, chunks of 1 MB


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A store of 32 MB: value of sample t at x is 1000 t + x % 7."""
    path = tmp_path_factory.mktemp("large") / "s.zarr"
    values = np.arange(STEPS, dtype="f4")[:, None] * 1000 + np.arange(WIDTH, dtype="f4") % 7
    zarr.create_group(path).create_array("v", data=values, chunks=(8, WIDTH),
                                         dimension_names=["time", "x"])
    return path


class Cgroup:
    """A memory control group below this process's own; v1 or v2."""

    def __init__(self, limit):
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            base = pathlib.Path("/sys/fs/cgroup") / ("memory" if controllers else "")
            for parent in (base / path.lstrip("/"), base):
                folder = parent / f"batchfs-test-{os.getpid()}"
                try:
                    folder.mkdir()
                    (folder / ("memory.limit_in_bytes" if controllers
                               else "memory.max")).write_text(str(limit))
                    (folder / "cgroup.procs").read_text()
                except OSError:
                    if folder.is_dir():
                        folder.rmdir()
                    continue
                self.folder, self.v1 = folder, bool(controllers)
                return
        pytest.skip("no memory cgroup can be made here")

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def shared(self):
        """Bytes of files in memory: batches."""
        stat = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines())
        return int(stat["total_shmem" if self.v1 and "total_shmem" in stat else "shmem"])

    def kills(self):
        file = self.folder / ("memory.oom_control" if self.v1 else "memory.events")
        return dict(line.split() for line in file.read_text().splitlines()).get("oom_kill", "0")

    def remove(self):
        eventually(lambda: not (self.folder / "cgroup.procs").read_text())
        self.folder.rmdir()


class Peaks(threading.Thread):
    """Peak memory of a process, sampled all the time: its own memory, and that with all batches."""

    def __init__(self, pid, cgroup):
        super().__init__()
        self.status, self.cgroup = pathlib.Path(f"/proc/{pid}/status"), cgroup
        self.anonymous = self.total = self.samples = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.01):
            rss = {line.split(":")[0]: int(line.split()[1]) << 10
                   for line in self.status.read_text().splitlines() if line.startswith("Rss")}
            self.anonymous = max(self.anonymous, rss["RssAnon"])
            self.total = max(self.total, rss["RssAnon"] + rss["RssFile"] + self.cgroup.shared())
            self.samples += 1

    def end(self):
        self.ended.set()
        self.join()


# Opens random batches of random views in every way, and checks their values; holds one at a time,
# some for a while.
READER = """
import mmap, os, random, sys, time
import json, numpy as np
mount, seed, views = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
rng = random.Random(seed)
for i in range(12):
    view = rng.choice(views)
    world = rng.choice([1, 2, 5])
    folder = (f"{mount}/views/{view}/"
              + (f"rank-{rng.randrange(world)}-of-{world}/" if world > 1 else "")
              + f"epoch-{rng.randrange(3):04d}")
    name = rng.choice([n for n in os.listdir(folder) if n.endswith(".npy")])
    samples = json.load(open(f"{folder}/{name[:-4]}.json"))["samples"]
    way = rng.randrange(3)
    x = None
    x = np.load(f"{folder}/{name}", mmap_mode="r" if way else None)
    assert x.shape == (len(samples), 1, %d), x.shape
    first = np.asarray(samples, "f4") * 1000
    for at in (0, 5, %d):
        assert np.array_equal(x[:, 0, at], first + at %% 7), (view, name, at)
    if way == 2:
        time.sleep(rng.random() * 0.05)
""" % (WIDTH, WIDTH - 1)


@pytest.mark.says("memory-budget", "memory-back")
@pytest.mark.parametrize("options", [[], ["--no-passthrough"]],
                         ids=["passthrough", "no-passthrough"])
@pytest.mark.not_sanitized("it takes several times the memory")
def test_64_readers_in_a_control_group(batchfs, large, tmp_path, options):
    budget = 24 * MB  # the largest batch takes 4 MB, and all data 32 MB and more
    cgroup = Cgroup(budget + 64 * MB)
    views = {f"v{size}{order}": {"name": f"v{size}{order}", "window": {"time": 1},
                                 "batch": {"size": size}, "epochs": 3, "order": {"shuffle": order}}
             for size in (1, 6, 32) for order in ("none", "global", "block")}
    directory = tmp_path / "mnt"
    directory.mkdir()
    arguments = []
    for name, view in views.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(view))
        arguments += ["--view", str(tmp_path / f"{name}.json")]
    try:
        done = subprocess.run([PROGRAM, "mount", large, directory, "--memory", str(budget),
                               *arguments, *options],
                              preexec_fn=cgroup.enter, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        peaks = Peaks(status(directory)["pid"], cgroup)
        peaks.start()
        readers = [subprocess.Popen([sys.executable, "-c", READER, str(directory), str(seed),
                                     *views], stderr=subprocess.PIPE) for seed in range(64)]
        try:
            for reader in readers:
                _, told = reader.communicate(timeout=300)
                assert reader.returncode == 0, told.decode()
        finally:
            peaks.end()
        now = status(directory)
        assert eventually(lambda: status(directory)["readers_waiting"] == 0)
        assert eventually(lambda: status(directory)["memory_mapped_after_close"] == 0)
        assert eventually(lambda: status(directory)["memory_used"] <= budget)
        assert now["readers_waiting_for_memory"] == 0
        process = pathlib.Path(f"/proc/{now['pid']}/status").read_text()
        (peak,) = [int(line.split()[1]) << 10 for line in process.splitlines()
                   if line.startswith("VmHWM")]
        print(f"budget {budget / MB:.0f} MB; at most {peak / MB:.1f} MB resident, "
              f"{peaks.anonymous / MB:.1f} of them the process's own, {peaks.total / MB:.1f} with "
              f"all batches ({peaks.samples} looks)")
        assert peak <= budget + 64 * MB
        assert peaks.total <= budget + 64 * MB
        assert cgroup.kills() == "0"
        assert now["cgroup"]["memory_limit"] == budget + 64 * MB
        assert (0 < now["cgroup"]["memory_shared"] <= now["cgroup"]["memory_used"] <= budget
                + 64 * MB)
    finally:
        batchfs("umount", "--lazy", directory)
        cgroup.remove()


@pytest.mark.says("memory-back")
def test_all_memory_is_given_back_when_nobody_comes(large, mount_at, tmp_path):
    view = {"name": "v", "window": {"time": 1}, "batch": {"size": 8}}
    directory = mount_at(large, tmp_path / "mnt", {"v": view}, "--memory", "24M", "--idle", "0.3")

    def used():
        return status(directory)["memory_used"]

    with open(directory / "views/v/epoch-0000/batch-000003.npy", "rb"):
        (directory / "views/v/epoch-0000/batch-000009.npy").read_bytes()
        (directory / "arrays/v/values.npy").read_bytes()
        assert eventually(lambda: used() < 3 * MB)
        assert used() > MB  # the held batches
    assert eventually(lambda: used() == 0)


@pytest.mark.says("memory-refused")
def test_a_batch_larger_than_the_budget_is_refused(large, fails, good, tmp_path):
    (tmp_path / "mnt").mkdir()
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"name": "huge", "window": {"time": 1}, "batch": {"size": 200}}))
    for command in (["plan", large], ["mount", large, tmp_path / "mnt"],
                    ["serve", large, "--socket", tmp_path / "s"]):
        line = fails(1, *command, "--view", view, "--memory", "16M")
        assert "a batch of 2" in line and "memory budget of 16" in line and "view huge" in line
    assert not os.path.ismount(tmp_path / "mnt")
    good("plan", large, "--view", view, "--memory", "64M")


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    """a and b of 16 steps of 128 KB, of int16."""
    path = tmp_path_factory.mktemp("grids") / "s.zarr"
    group = zarr.create_group(path)
    for name, factor in (("a", 3), ("b", -5)):
        values = (np.arange(16 * 256 * 256) % 997 * factor).astype("i2").reshape(16, 256, 256)
        group.create_array(name, data=values, chunks=(1, 256, 256),
                           dimension_names=["time", "y", "x"])
    return path


SPEED = {"make": "wind_speed", "of": ["a", "b"]}
PRODUCT = {"make": "product", "of": ["a", "b", "a"]}
BLOCKS = {"y": 4, "x": 4}
# Channels that are combined: the tensors, the grids of operands, the bytes of a value in the batch
# for each of a grid.
COMBINED = {
    "coarsened": ({"t": {"variables": ["a"], "coarsen": BLOCKS}}, 1, 4 / 16),
    "made of two": ({"t": {"variables": [SPEED]}}, 2, 4),
    "made of three": ({"t": {"variables": [PRODUCT]}}, 3, 4),
    "made and coarsened": ({"t": {"variables": [SPEED], "coarsen": BLOCKS}}, 3, 4 / 16),
    "in two tensors": ({"t": {"variables": ["a"], "coarsen": BLOCKS}, "u": {"variables": [SPEED]}},
                       3, 4 + 4 / 16),
}


def combined_batch(tensors, group):
    """The tensors of a batch of all 16 steps, by numpy."""
    a, b = (group[name][:].astype("f8") for name in "ab")
    made = {"wind_speed": np.hypot(a, b), "product": a * b * a}
    of = {}
    for name, tensor in tensors.items():
        (channel,) = tensor["variables"]
        values = a if channel == "a" else made[channel["make"]]
        if "coarsen" in tensor:
            values = values.reshape(16, 64, 4, 64, 4).mean(axis=(2, 4))
        of[name] = values.astype("f4")
    return of


@pytest.mark.says("memory-refused")
@pytest.mark.parametrize("kind", COMBINED)
def test_operands_count_where_a_batch_is_refused_and_planned(grids, fails, good, mount_at, tmp_path,
                                                             kind):
    tensors, operands, itemsize = COMBINED[kind]
    view = {"name": "v", "window": {"time": 1}, "batch": 16, "dtype": "float32", "tensors": tensors}
    (tmp_path / "view.json").write_text(json.dumps(view))
    (tmp_path / "refused").mkdir()
    grid = 16 * 256 * 256
    operand_bytes, batch_bytes = operands * grid * 8, round(grid * itemsize)
    too_little = f"{(operand_bytes + batch_bytes) // 1024 - 64}K"
    for command in (["plan", grids], ["mount", grids, tmp_path / "refused"],
                    ["serve", grids, "--socket", tmp_path / "s"],
                    ["batch", grids, "--format", "safetensors"]):
        line = fails(1, *command, "--view", tmp_path / "view.json", "--memory", too_little)
        assert (f"and {operand_bytes / MB:.1f} MB of operands of channels that are "
                "combined are larger" in line), line
        assert "use a smaller batch size or a larger --memory" in line and "a batch of " in line
    enough = f"{(operand_bytes + 4 * batch_bytes) // MB + 8}M"
    plan = json.loads(good("plan", grids, "--view", tmp_path / "view.json", "--memory", enough,
                           "--json"))
    assert (plan["batch_bytes"], plan["operand_bytes"]) == (batch_bytes, operand_bytes)
    assert plan["memory_need"] == 2 * batch_bytes + operand_bytes + plan["decoded_bytes_per_batch"]
    directory = mount_at(grids, tmp_path / "mnt", {"v": view}, "--memory", enough)
    batch = directory / "views/v/epoch-0000/batch-000000"
    for name, expected in combined_batch(tensors, zarr.open_group(grids, mode="r")).items():
        ours = np.load(batch / f"{name}.npy" if len(tensors) > 1 else batch.with_suffix(".npy"))
        np.testing.assert_allclose(ours, expected[:, np.newaxis], rtol=2e-7)
    assert eventually(lambda: status(directory)["memory_used"] < operand_bytes + batch_bytes)


@pytest.mark.says("memory-refused")
@pytest.mark.parametrize("tensors, memory, why",
                         [(COMBINED["coarsened"][0], "4M", "4.0 MB of operands of channels"),
                          ({"t": {"variables": ["a"]}}, "768K", "a batch of 1.0 MB is larger")],
                         ids=["operands", "tensors"])
def test_every_part_of_a_split_is_refused(grids, fails, good, tmp_path, tensors, memory, why):
    view = {"name": "v", "window": {"time": 1}, "batch": 8,
            "split": {"parts": {"train": "rest", "test": [{"time": {"from": "#8"}}]}},
            "dtype": "float32", "tensors": tensors}
    (tmp_path / "view.json").write_text(json.dumps(view))
    for out in ([], ["--json"]):
        assert why in fails(1, "plan", grids, "--view", tmp_path / "view.json", "--memory", memory,
                            *out)
    good("plan", grids, "--view", tmp_path / "view.json", "--memory", "16M")


@pytest.mark.says("memory-queue", "memory-enomem")
def test_who_comes_when_all_is_held(large, mount_at, tmp_path):
    # of 4 MB, also in huge pages
    view = {"name": "v", "window": {"time": 1}, "batch": {"size": 31}}
    directory = mount_at(large, tmp_path / "mnt", {"v": view}, "--memory", "10M", "--wait", "4")
    epoch = directory / "views/v/epoch-0000"
    held = [open(epoch / f"batch-00000{b}.npy", "rb") for b in (0, 4)]
    with pytest.raises(OSError) as caught:
        open(epoch / "batch-000006.npy", "rb")
    assert caught.value.errno == errno.ENOMEM
    assert "there is no room" in (directory / ".batchfs/log").read_text()
    waiting = subprocess.Popen(["cat", epoch / "batch-000007.npy"], stdout=subprocess.PIPE)
    assert eventually(lambda: status(directory)["readers_waiting_for_memory"] == 1)
    held[0].close()
    assert len(waiting.communicate(timeout=20)[0]) == (epoch / "batch-000007.npy").stat().st_size
    assert waiting.returncode == 0
    held[1].close()


# A batch takes small patches of many chunks, which the batches in work share block by block.
@pytest.mark.parametrize("memory", ["3M", "8M", "64M"])
def test_patches_of_chunks_that_memory_cannot_hold(mount_at, tmp_path, memory):
    # size, stride, count
    shape, windows = (480, 3, 48, 48), {"y": (16, 8, 5), "x": (16, 8, 5), "time": (3, 1, 478)}
    random = np.random.default_rng(5)
    group = zarr.create_group(tmp_path / "s.zarr")
    for name, steps, dtype in (("t", 40, "f4"), ("q", 32, "i2")):
        array = group.create_array(
            name, shape=shape, chunks=(steps, *shape[1:]), dtype=dtype,
            dimension_names=["time", "level", "y", "x"],
            compressors=zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle", blocksize=16 << 10))
        array[:] = random.integers(-99, 99, shape).cumsum(axis=0)
    group["q"].attrs.update(scale_factor=0.5, add_offset=7.0)
    view = {"name": "v", "window": {dim: {"size": size, "stride": stride}
                                    for dim, (size, stride, _) in windows.items()},
            "variables": ["t", "q"], "batch": {"size": 8},
            "order": {"shuffle": "global", "seed": 3}}
    epoch = mount_at(tmp_path / "s.zarr", tmp_path / "mnt", {"v": view}, "--memory", memory) / (
        "views/v/epoch-0000")
    expected = {"t": group["t"][:], "q": group["q"][:] * np.float32(0.5) + 7}
    for batch in range(250):
        numbers = json.loads((epoch / f"batch-{batch:06d}.json").read_text())["samples"]
        starts = np.stack(np.unravel_index(numbers, [count for _, _, count in windows.values()]),
                          axis=1)
        for name, values in expected.items():
            ours = np.load(epoch / f"batch-{batch:06d}" / f"{name}.npy")
            for patch, (y, x, time) in zip(ours, starts):
                theirs = values[time : time + 3, :, 8 * y : 8 * y + 16, 8 * x : 8 * x + 16]
                assert np.array_equal(patch, theirs), (batch, name)
