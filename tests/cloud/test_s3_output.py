"""batchfs rechunk and export to s3://, against moto's server, which checks signatures and permissions."""

import json
import sys

import boto3
import botocore.config
import numpy as np
import pytest
import zarr

from test_s3 import Moto

BUCKET = "outputs"


@pytest.fixture(scope="module")
def moto(server, free_port):
    port = free_port()
    server([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], port)
    moto = Moto(port)
    moto.client("s3").create_bucket(Bucket=BUCKET)
    moto.add_user("writer", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"])
    moto.add_user("reader", ["s3:GetObject", "s3:ListBucket"])
    moto.enforce(True)
    return moto


@pytest.fixture
def local(tmp_path):
    group = zarr.open_group(tmp_path / "source.zarr", mode="w", attributes={"title": "x"})
    values = np.random.default_rng(3).normal(0, 1, (400, 16, 16)).astype("f4")
    group.create_array("a", data=values, chunks=(50, 16, 16), dimension_names=("t", "y", "x"), attributes={"units": "K"})
    return tmp_path / "source.zarr", values


def writer_client(moto):
    keys = moto.keys["writer"]
    return boto3.client("s3", endpoint_url=moto.url, region_name="us-east-1", aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
                        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
                        config=botocore.config.Config(s3={"addressing_style": "path"}))


def keys_of(moto, prefix):
    found = writer_client(moto).list_objects_v2(Bucket=BUCKET, Prefix=prefix + "/").get("Contents", [])
    return sorted(entry["Key"].removeprefix(prefix + "/") for entry in found)


def files_of(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def test_the_objects_are_those_of_a_local_copy(cloud, moto, local, tmp_path):
    source, values = local
    keys = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    command = ["rechunk", source, "--chunks", "t=-1,y=4,x=4"]
    told = json.loads(cloud(*command, "-o", f"s3://{BUCKET}/some copy.zarr", "--json", **keys))
    assert told["state"] == "finished" and told["output"] == f"s3://{BUCKET}/some copy.zarr"
    cloud(*command, "-o", tmp_path / "local.zarr")
    assert keys_of(moto, "some copy.zarr") == files_of(tmp_path / "local.zarr")
    s3 = writer_client(moto)
    for key in files_of(tmp_path / "local.zarr"):
        body = s3.get_object(Bucket=BUCKET, Key=f"some copy.zarr/{key}")["Body"].read()
        assert body == (tmp_path / "local.zarr" / key).read_bytes(), key
    again = json.loads(cloud(*command, "-o", f"s3://{BUCKET}/some copy.zarr", "--json", **keys))
    assert again["regions_done"] == 0
    # And from there to another place of it.
    cloud("rechunk", f"s3://{BUCKET}/some copy.zarr", "--chunks", "t=1,y=16,x=16", "--shards", "t=10", "-o", f"s3://{BUCKET}/third", **keys)
    cloud("rechunk", f"s3://{BUCKET}/third", "--chunks", "t=400", "-o", tmp_path / "back", **keys)
    assert np.array_equal(zarr.open_group(tmp_path / "back", mode="r")["a"][...], values)


def test_what_may_not_be_written_is_one_line(cloud_fails, cloud, moto, local):
    source, _ = local
    reader = moto.keys["reader"] | {"AWS_ENDPOINT_URL": moto.url}
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", f"s3://{BUCKET}/denied", **reader)
    assert "may not write" in said
    assert keys_of(moto, "denied") == []
    writer = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", "s3://no-such-bucket/x", **writer)
    assert "no-such-bucket" in said
    writer_client(moto).put_object(Bucket=BUCKET, Key="mine/notes.txt", Body=b"mine")
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", f"s3://{BUCKET}/mine", **writer)
    assert "batchfs did not write it" in said
    assert keys_of(moto, "mine") == ["notes.txt"]


def test_two_passes_need_a_local_folder(cloud_fails, cloud, moto, local, tmp_path):
    source, values = local
    keys = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    command = ["rechunk", source, "--chunks", "t=-1,y=1,x=16", "--memory", "420K", "--threads", "1", "-o", f"s3://{BUCKET}/two"]
    assert "--temporary" in cloud_fails(*command, **keys)
    cloud(*command, "--temporary", tmp_path / "pieces", **keys)
    cloud("rechunk", f"s3://{BUCKET}/two", "-o", tmp_path / "back", **keys)
    assert np.array_equal(zarr.open_group(tmp_path / "back", mode="r")["a"][...], values)


def test_parts_of_tasks_lie_in_a_bucket(cloud, cloud_fails, moto, local, tmp_path):
    source, _ = local
    keys = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    (tmp_path / "view.json").write_text(json.dumps({"window": {"t": 1}}))
    words = ["statistics", source, "--view", tmp_path / "view.json", "--tendency", "t"]
    parts = f"s3://{BUCKET}/parts"
    for task in (2, 0):
        cloud(*words, "--out", parts, "--task", task, "--tasks", 3, **keys)
    assert "1 of 3 parts are missing; run --task 1" in cloud_fails("statistics", "--merge", parts, **keys)
    cloud(*words, "--out", parts, "--task", 1, "--tasks", 3, **keys)
    assert keys_of(moto, "parts") == [".batchfs.json", "part-000000", "part-000001", "part-000002"]
    assert cloud("statistics", "--merge", parts, "--json", **keys) == cloud(*words, "--json")
    assert "differs" in cloud_fails(*words, "--out", parts, "--tasks", 4, **keys)
    reader = moto.keys["reader"] | {"AWS_ENDPOINT_URL": moto.url}
    assert "may not write" in cloud_fails(*words, "--out", f"s3://{BUCKET}/denied-parts", **reader)
