"""The daemon never reads from its own mount, where it would wait for itself."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest


@pytest.fixture
def directory(tmp_path, batchfs):
    directory = tmp_path / "mnt"
    directory.mkdir()
    yield directory
    if os.path.ismount(directory):
        batchfs("umount", "--lazy", directory)


def test_what_it_reads_cannot_lie_in_the_mount(weather, directory, fails, tmp_path):
    shutil.copytree(weather, directory / "s.zarr")
    view = directory / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["t"]}))
    normalized = tmp_path / "view.json"
    (directory / "statistics.json").write_text(
        json.dumps({"statistics": {"t": {"mean": 0, "std": 1}}}))
    normalize = {"method": "zscore", "statistics": "mnt/statistics.json"}
    normalized.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["t"],
                                      "normalize": normalize}))
    for arguments in ([directory / "s.zarr", directory], [weather, directory, "--view", view],
                      [weather, directory, "--view", normalized],
                      [weather, directory, "--cache-dir", directory / "cache"],
                      [directory / "s.zarr", directory / "s.zarr/t"]):
        assert "read from itself" in fails(1, "mount", *arguments)
        assert not os.path.ismount(directory)


def test_it_has_nothing_of_the_mount_open(weather, directory, good, tmp_path):
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "variables": ["t"],
                                "batch": {"size": 4}}))
    good("mount", weather, directory, "--view", view)
    process = pathlib.Path("/proc") / (
        str(json.loads((directory / ".batchfs/status.json").read_text())["pid"]))
    device = os.stat(directory).st_dev
    for batch in range(5):
        np.load(directory / f"views/v/epoch-0000/batch-{batch:06}.npy", mmap_mode="r")
        for link in [process / "cwd", process / "root", *(process / "fd").iterdir()]:
            try:
                assert os.stat(link).st_dev != device, os.readlink(link)
            except FileNotFoundError:
                pass  # closed meanwhile
    assert str(directory) not in (process / "maps").read_text()
