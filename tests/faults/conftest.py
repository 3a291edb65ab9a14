"""A store behind a server that goes wrong, mounts of it, and certificates of a private
authority."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
from fault_proxy import QUICK, FaultProxy

VIEW = {"name": "v", "window": {"time": 1}, "batch": {"size": 6}, "order": {"shuffle": "none"}}


@pytest.fixture(scope="session")
def values():
    return np.random.default_rng(3).normal(size=(24, 40)).astype("f4")


@pytest.fixture(scope="session", params=["v2", "v3", "sharded"])
def directory(request, values, tmp_path_factory):
    """A consolidated store with the array x, in chunks of 4 steps."""
    path = tmp_path_factory.mktemp("origin")
    version = 2 if request.param == "v2" else 3
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    layout = {"chunks": (4, 40)}
    if request.param == "sharded":
        layout["shards"] = (12, 40)
    if version == 3:
        layout["dimension_names"] = ["time", "place"]
    array = group.create_array("x", shape=values.shape, dtype="f4", fill_value=-1, **layout)
    array[:] = values
    if version == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "place"]
    zarr.consolidate_metadata(str(path))
    return path


@pytest.fixture
def proxy(directory):
    with FaultProxy(directory) as proxy:
        yield proxy


@pytest.fixture
def view_file(tmp_path):
    path = tmp_path / "view.json"
    path.write_text(json.dumps(VIEW))
    return path


@pytest.fixture
def mounted(good, batchfs, tmp_path, view_file):
    """mounted(url): the directory where it is mounted with the view `v`, until the test ends."""
    if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    where = []

    def mount(url, *options):
        directory = tmp_path / "mnt"
        directory.mkdir()
        good("mount", url, directory, "--view", view_file, *(options or QUICK))
        assert os.path.ismount(directory)
        where.append(directory)
        return directory

    yield mount
    for directory in where:
        batchfs("umount", "--lazy", directory)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A private certificate authority and what it has signed for 127.0.0.1: (authority,
    certificate, key)."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    where = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=where, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=private authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr",
            "-subj", "/CN=server")
    (where / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial",
            "-out", "server.pem", "-days", "2", "-extfile", "names")
    return where / "ca.pem", where / "server.pem", where / "server.key"

