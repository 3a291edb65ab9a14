"""Mounts for the tests that read through the kernel."""

import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
from calls import BATCH  # noqa: E402

VIEWS = {
    "one": {"name": "one", "window": {"time": 1}, "variables": ["t"],
            "batch": {"size": 6}, "order": {"shuffle": "global", "seed": 7}, "epochs": 2,
            "formats": ["npy", "safetensors", "npz"]},
    "two": {"name": "two", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 9},
            "dtype": "float32", "order": {"shuffle": "none"}, "formats": ["npy", "zarr"]},
}


def reason_not_to_mount():
    if not os.path.exists("/dev/fuse"):
        return "/dev/fuse is missing: nothing can be mounted on this machine"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened by this user"
    return None


def pytest_collection_modifyitems(items):
    reason = reason_not_to_mount()
    here = pathlib.Path(__file__).parent
    for item in items:
        if reason and here in pathlib.Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def mount_at(good, batchfs):
    """mount_at(store, directory, views, *options): mounts; whatever is left is unmounted at the
    end."""
    mounted = []

    def mount(store, directory, views, *options):
        directory.mkdir()
        files = []
        for name, view in views.items():
            file = directory.parent / f"{directory.name}-{name}.json"
            file.write_text(json.dumps(view))
            files += ["--view", file]
        good("mount", store, directory, *files, *options)
        # otherwise, tests for missing files would pass in an empty directory
        assert os.path.ismount(directory)
        mounted.append(directory)
        return directory

    yield mount
    for directory in mounted:
        batchfs("umount", "--lazy", directory)


@pytest.fixture(scope="session", params=["passthrough", "no-passthrough"])
def mounted(request, weather, mount_at, tmp_path_factory):
    """The weather store with both views, read through the kernel in either way."""
    options = [] if request.param == "passthrough" else ["--no-passthrough"]
    return mount_at(weather, tmp_path_factory.mktemp("mounts") / "mnt", VIEWS, *options)


@pytest.fixture
def batch(mounted):
    """An open batch: (descriptor, its bytes)."""
    fd = os.open(mounted / BATCH, os.O_RDONLY)
    yield fd, (mounted / BATCH).read_bytes()
    os.close(fd)
