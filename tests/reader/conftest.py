"""Mounts and servers for the tests of the Python package."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from reader_servers import PROGRAM, VIEWS, Server, mount  # noqa: E402

# The weather is the other tests'.
_spec = importlib.util.spec_from_file_location("weather", pathlib.Path(__file__).resolve().parents[1] / "conftest.py")
helpers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(helpers)


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The weather of the other tests."""
    path = tmp_path_factory.mktemp("reader") / "weather.zarr"
    chunks = {"chunks": (7, 2, 5, 16)}
    helpers.make_weather().to_zarr(path, zarr_format=2, encoding={"t": chunks, "q": chunks})
    return path


@pytest.fixture
def serve(store, tmp_path):
    """serve(*options): a server of its own."""
    servers = []

    def start(*options, views=VIEWS):
        servers.append(Server(store, tmp_path, views, *options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def server(store, tmp_path_factory):
    server = Server(store, tmp_path_factory.mktemp("server"), VIEWS)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mounted(store, tmp_path_factory):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    directory = tmp_path_factory.mktemp("mount") / "mnt"
    mount(store, directory)
    yield directory
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)


