"""Object storage servers of the tests, and the program run as on a machine that knows no
credentials."""

import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # whatever way pytest imports the tests

from cloud_servers import ODD_NAME  # noqa: E402

try:
    import icechunk
except ImportError:
    icechunk = None


@pytest.fixture
def environment(tmp_path):
    """The program's environment, without the settings of this machine's user."""
    home = tmp_path / "home"
    home.mkdir()
    keep = {name: value for name, value in os.environ.items()
            if name in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "BATCHFS")}
    return keep | {"HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true",
                   "LC_ALL": "C.UTF-8"}


@pytest.fixture
def cloud(good, environment):
    """cloud(*arguments, NAME=value...): runs the program with these variables; it must succeed."""
    return lambda *arguments, **variables: good(*arguments, env=environment | variables)


@pytest.fixture
def cloud_fails(fails, environment):
    """cloud_fails(*arguments, NAME=value...): must fail with one line; gives the line."""
    return lambda *arguments, **variables: fails(1, *arguments, env=environment | variables)


@pytest.fixture(scope="session")
def server():
    """server(arguments, port): starts a server, waits until it can be connected to, ends it at the
    end."""
    running = []

    def start(arguments, port, **options):
        process = subprocess.Popen([str(argument) for argument in arguments],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        running.append(process)
        for _ in range(600):
            if process.poll() is not None:
                pytest.fail(f"{arguments} ended with {process.returncode}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        pytest.fail(f"{arguments} does not answer")

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait()


@pytest.fixture(scope="session")
def free_port():
    def find():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    return find


@pytest.fixture(scope="session")
def python():
    return sys.executable


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Folders of zarr-python's, to be uploaded: name -> folder. Each has `values`, a nested array,
    and one with every character that is written differently in URLs."""
    folder = tmp_path_factory.mktemp("stores")
    made = {}
    for zarr_format in (2, 3):
        for consolidated in (False, True):
            name = f"v{zarr_format}{'c' if consolidated else ''}.zarr"
            root = zarr.open_group(folder / name, mode="w", zarr_format=zarr_format)
            root.create_array("values",
                              data=np.arange(60, dtype="f4").reshape(12, 5), chunks=(5, 5),
                              **({"dimension_names": ["time", "x"]} if zarr_format == 3 else {}))
            if zarr_format == 2:
                root["values"].attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
            root.require_group("deep/er").create_array(ODD_NAME, data=np.arange(7), chunks=(3,))
            sparse = root.create_array("sparse", shape=(9,), chunks=(3,), dtype="i4", fill_value=-1)
            sparse[3:6] = 5
            if consolidated:
                zarr.consolidate_metadata(folder / name, zarr_format=zarr_format)
            made[name] = folder / name
    sharded = zarr.create_array(folder / "sharded.zarr",
                                data=np.arange(400, dtype="i4").reshape(20, 20), chunks=(5, 5),
                                shards=(10, 20))
    assert sharded.shards == (10, 20)
    made["sharded.zarr"] = folder / "sharded.zarr"
    if icechunk is not None:
        repository = icechunk.Repository.create(
            icechunk.local_filesystem_storage(str(folder / "repository")))
        for number in range(2):
            session = repository.writable_session("main")
            zarr.create_array(session.store, name="values",
                              data=np.arange(60, dtype="f4").reshape(12, 5) + number, chunks=(5, 5),
                              dimension_names=["time", "x"], overwrite=True)
            snapshot = session.commit(f"commit {number}")
            repository.create_tag(f"v{number}", snapshot_id=snapshot)
        made["repository"] = folder / "repository"
    return made


@pytest.fixture
def check_repository(stores):
    """check_repository(run, url): an Icechunk repository's branches and tags are read below
    `url`."""
    if "repository" not in stores:
        pytest.skip("tools/dependencies test installs the icechunk package")

    def check(run, url, end=""):
        place = f"{url}/repository{end}"
        for options, number in ((), 1), (("--branch", "main"), 1), (("--tag", "v0"), 0):
            values = np.load(io.BytesIO(run("cat", place, "values", "--decode", "raw", *options)))
            assert np.array_equal(values, np.arange(60, dtype="f4").reshape(12, 5) + number)
        log = json.loads(run("inspect", place, "--log", "--json"))
        assert [one["message"] for one in log["history"]][:2] == ["commit 1", "commit 0"]
        assert set(log["tags"]) == {"v0", "v1"}
        assert np.load(io.BytesIO(run("cat", f"icechunk+{place}", "values", "--select",
                                      "time=#11"))).sum() == 290

    return check
