"""batchfs rechunk, export and tasks to az://, against a small server that checks each signature
with the official library's signer."""

import numpy as np
import pytest
import zarr

from cloud_servers import Server
from output_checks import check_parts_of_tasks, check_resume, check_the_copy, make_source
from test_azure import ACCOUNT, CONTAINER, KEY, SAS, Azure

PLACE = f"az://{CONTAINER}"


class Bucket:
    def __init__(self, server):
        self.objects = server.objects

    def keys(self, prefix):
        return sorted(key.removeprefix(prefix + "/") for key in list(self.objects)
                      if key.startswith(prefix + "/"))

    def get(self, key):
        return self.objects[key]


class WritableAzure(Azure):
    """Takes a signature in the URL for writing, too."""

    def do_PUT(self):
        self.server.requests.append(self.query.get("comp", "blob"))
        return super().do_PUT()

    def allowed(self):
        return "sig" in self.query and self.query["sig"] == "HU/SH+=" or super().allowed()


@pytest.fixture
def azure():
    server = Server(WritableAzure, {})
    server.right, server.blocks, server.requests = "key", {}, []
    server.variables = {"AZURE_STORAGE_ENDPOINT": f"{server.url}/{ACCOUNT}",
                        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
    yield server
    server.shutdown()


def test_the_objects_are_those_of_a_local_copy(cloud, azure, tmp_path):
    check_the_copy(cloud, PLACE, Bucket(azure), tmp_path, azure.variables)
    assert not azure.blocks and set(azure.requests) == {"blob"}


def test_with_a_signature_that_is_not_told(cloud, azure, tmp_path):
    del azure.variables["AZURE_STORAGE_ACCOUNT_KEY"]
    check_the_copy(cloud, PLACE, Bucket(azure), tmp_path, azure.variables, "?" + SAS)
    source, _ = make_source(tmp_path)
    for word in "finished; this run wrote", "finished before":
        told = cloud("rechunk", source, "--chunks", "t=5", "-o", f"{PLACE}/told?{SAS}",
                     **azure.variables)
        assert told.decode().startswith(f"{PLACE}/told: {word}") and b"sig" not in told


def test_a_killed_copy_continues(azure, environment, cloud, tmp_path):
    check_resume(cloud, environment, PLACE, Bucket(azure), tmp_path, azure.variables)


def test_parts_of_tasks(cloud, cloud_fails, azure, tmp_path):
    check_parts_of_tasks(cloud, cloud_fails, PLACE, Bucket(azure), tmp_path, azure.variables)


def test_a_large_object_is_put_in_blocks(cloud, azure, tmp_path):
    values = np.random.default_rng(1).integers(0, 256, 70_000_000, "u1")
    zarr.create_array(tmp_path / "large.zarr", data=values, chunks=(1_000_000,), compressors=None,
                      dimension_names=("x",))
    cloud("rechunk", tmp_path / "large.zarr", "--chunks", "x=-1", "--codec", "none", "-o",
          f"{PLACE}/large", **azure.variables)
    assert np.array_equal(np.frombuffer(azure.objects["large/c/0"], "u1"), values)
    assert (azure.requests.count("block") == 3 and azure.requests.count("blocklist") == 1
            and not azure.blocks)


def test_what_may_not_be_written_is_one_line(cloud_fails, azure, tmp_path):
    source, _ = make_source(tmp_path)
    command = ["rechunk", source, "--chunks", "t=1", "-o"]
    assert "no container 'absent'" in cloud_fails(*command, "az://absent/x", **azure.variables)
    azure.objects["mine/notes.txt"] = b"mine"
    assert "batchfs did not write it" in cloud_fails(*command, f"{PLACE}/mine", **azure.variables)
    azure.right = "sas"
    del azure.variables["AZURE_STORAGE_ACCOUNT_KEY"]
    said = cloud_fails(*command, f"{PLACE}/denied?{SAS}", **azure.variables)
    assert "may not write" in said and "sig" not in said
    assert list(azure.objects) == ["mine/notes.txt"]
