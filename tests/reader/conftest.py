"""Mounts and servers for the tests of the Python package."""

import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from reader_servers import VIEWS, Server, mounted_at  # noqa: E402

# The weather is the other tests'.
_spec = importlib.util.spec_from_file_location(
    "weather", pathlib.Path(__file__).resolve().parents[1] / "conftest.py")
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
    with mounted_at(store, tmp_path_factory.mktemp("mount") / "mnt") as directory:
        yield directory


@pytest.fixture
def own_mount(store, tmp_path):
    """A mount that no other test uses."""
    with mounted_at(store, tmp_path / "mnt") as directory:
        yield directory
