"""s3:// against moto's server, which checks signatures and permissions."""

import io
import json
import os
import sys

import boto3
import botocore.config
import numpy as np
import pytest
import requests
import zarr

from cloud_servers import ODD_NAME, files_of

BUCKET = "the-bucket"
READ = ["s3:GetObject", "s3:ListBucket"]


class Moto:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        self.keys = {}

    def client(self, service):
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1",
                            aws_access_key_id="setup", aws_secret_access_key="setup",
                            config=botocore.config.Config(s3={"addressing_style": "path"}))

    def add_user(self, name, actions):
        iam = self.client("iam")
        iam.create_user(UserName=name)
        statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [statement]}))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        self.keys[name] = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                           "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def enforce(self, enforced):
        requests.post(f"{self.url}/moto-api/reset-auth", data="0" if enforced else "inf",
                      timeout=30)


@pytest.fixture(scope="module")
def moto(server, free_port, stores):
    port = free_port()
    server([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], port)
    moto = Moto(port)
    s3 = moto.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for folder in stores.values():
        for key, data in files_of(folder):
            s3.put_object(Bucket=BUCKET, Key=f"some data/{key}", Body=data)
    moto.add_user("reader", READ)
    moto.add_user("blind", ["s3:GetObject"])
    moto.add_user("stranger", ["s3:ListAllMyBuckets"])
    moto.enforce(True)
    return moto


@pytest.fixture
def reader(moto):
    return moto.keys["reader"] | {"AWS_ENDPOINT_URL": moto.url}


def store(name):
    return f"s3://{BUCKET}/some data/{name}"


def load(output):
    return np.load(io.BytesIO(output))


@pytest.mark.parametrize("name", ["v2.zarr", "v2c.zarr", "v3.zarr", "v3c.zarr"])
def test_reads_what_zarr_python_wrote(cloud, reader, stores, name):
    root = zarr.open_group(stores[name], mode="r")
    for path in ("values", "sparse", f"deep/er/{ODD_NAME}"):
        assert np.array_equal(load(cloud("cat", store(name), path, "--decode", "raw", **reader)),
                              root[path][...])
    told = json.loads(cloud("inspect", store(name), "--json", **reader))
    assert sorted(told["arrays"]) == sorted([f"deep/er/{ODD_NAME}", "sparse", "values"])
    assert told["consolidated"] == name.endswith("c.zarr")
    assert told["store"] == store(name)


def test_reads_shards(cloud, reader, stores):
    assert np.array_equal(load(cloud("cat", store("sharded.zarr"), "/", **reader)),
                          zarr.open_array(stores["sharded.zarr"], mode="r")[...])


def test_an_icechunk_repository(check_repository, cloud, reader):
    check_repository(lambda *arguments: cloud(*arguments, **reader), f"s3://{BUCKET}/some data")


def test_a_batch(cloud, reader, stores, tmp_path):
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"name": "v", "variables": ["values"], "window": {"time": 1},
                                "batch": {"size": 4}}))
    values = zarr.open_group(stores["v3.zarr"], mode="r")["values"][...]
    batch = load(cloud("batch", store("v3.zarr"), "--view", view, "--batch", "1", **reader))
    assert np.array_equal(batch, values[4:8].reshape(batch.shape))


def test_credentials_from_files_and_options(cloud, moto, environment, stores):
    keys = moto.keys["reader"]
    folder = f"{environment['HOME']}/.aws"
    os.mkdir(folder)
    with open(f"{folder}/credentials", "w", encoding="ascii") as file:
        file.write(f"[work]\naws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\n"
                   f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}\n")
    for how in ({"AWS_PROFILE": "work"}, {}):
        options = [] if how else ["--profile", "work"]
        assert cloud("inspect", store("v3.zarr"), "--endpoint", moto.url, *options, **how)
    wrong = {"AWS_ACCESS_KEY_ID": "AKIAWRONG", "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert cloud("inspect", store("v3.zarr"), "--endpoint", moto.url, "--profile", "work", **wrong)


def test_a_wrong_secret_is_refused_and_not_repeated(cloud_fails, reader):
    line = cloud_fails("inspect", store("v3.zarr"),
                       **reader | {"AWS_SECRET_ACCESS_KEY": "WRONGSECRET"})
    assert "SignatureDoesNotMatch" in line
    assert "WRONGSECRET" not in line
    assert "InvalidAccessKeyId" in cloud_fails("inspect", store("v3.zarr"), **reader
                                                   | {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWNUNKNOWN"})


def test_who_may_not_read_is_told_so(cloud_fails, moto, reader):
    assert "access denied" in cloud_fails("inspect", store("v3c.zarr"),
                                          **reader | moto.keys["stranger"])


def test_who_may_not_list_can_read_consolidated_stores(cloud, cloud_fails, moto, reader, stores):
    blind = reader | moto.keys["blind"]
    values = zarr.open_group(stores["v2c.zarr"], mode="r")
    for path in ("values", "sparse"):  # of which some chunks are missing
        assert np.array_equal(load(cloud("cat", store("v2c.zarr"), path, "--decode", "raw",
                                         **blind)), values[path][...])
    assert "may not list" in cloud_fails("inspect", store("v2.zarr"), **blind)


def test_what_is_not_there(cloud_fails, reader):
    assert "not a Zarr store" in cloud_fails("inspect", store("absent.zarr"), **reader)
    assert "no bucket 'no-such-bucket'" in cloud_fails("inspect", "s3://no-such-bucket/a.zarr",
                                                       **reader)


def test_public_data_are_read_without_credentials(cloud, cloud_fails, moto, reader, stores):
    moto.enforce(False)
    for name in ("v2c.zarr", "v3c.zarr"):
        for key, data in files_of(stores[name]):
            moto.client("s3").put_object(Bucket=BUCKET, Key=f"public/{key}", Body=data,
                                         ACL="public-read")
    try:
        for name in ("v2c.zarr", "v3c.zarr"):
            root, public = zarr.open_group(stores[name], mode="r"), f"s3://{BUCKET}/public/{name}"
            for path in ("values", "sparse"):
                told = load(cloud("cat", public, path, "--decode", "raw",
                                  AWS_ENDPOINT_URL=moto.url))
                assert np.array_equal(told, root[path][...])
            assert cloud("inspect", public, "--anon", **reader | {"AWS_SECRET_ACCESS_KEY": "wrong"})
        line = cloud_fails("inspect", store("v3c.zarr"), AWS_ENDPOINT_URL=moto.url)
        assert "access denied to a request without credentials" in line
    finally:
        moto.enforce(True)


def test_many_entries_come_in_pages(cloud, moto, reader, tmp_path):
    moto.enforce(False)
    s3 = moto.client("s3")
    zarr.open_group(tmp_path / "wide.zarr", mode="w", zarr_format=3)
    zarr.create_array(tmp_path / "wide.zarr" / "zz", data=np.arange(3))
    for number in range(1100):
        s3.put_object(Bucket=BUCKET, Key=f"wide.zarr/{number:04}", Body=b"")
    for key, data in files_of(tmp_path / "wide.zarr"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=data)
    moto.enforce(True)
    told = json.loads(cloud("inspect", f"s3://{BUCKET}/wide.zarr", "--json", **reader))
    assert list(told["arrays"]) == ["zz"]


def test_a_reference_set(cloud, cloud_fails, moto, reader):
    """Names of objects are taken as they are written; what lies beside the set's folder needs
    leave."""
    values = np.arange(20, dtype="<i4")
    array = json.dumps({"zarr_format": 2, "shape": [20], "chunks": [10], "dtype": "<i4",
                        "fill_value": None, "order": "C", "compressor": None, "filters": None})
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": array,
            "a/0": ["odd%20name #1?.bin", 4, 40], "a/1": ["odd%20name #1?.bin", 44, 40],
            "b/.zarray": array, "b/0": ["../others/o.bin", 0, 40],
            "b/1": [f"s3://{BUCKET}/others/o.bin", 40, 40]}
    moto.enforce(False)
    s3 = moto.client("s3")
    for key, data in (("sets/r.json", json.dumps({"version": 1, "refs": refs}).encode()),
                      ("sets/odd%20name #1?.bin", b"head" + values.tobytes()),
                      ("others/o.bin", values.tobytes())):
        s3.put_object(Bucket=BUCKET, Key=key, Body=data)
    moto.enforce(True)
    place = f"s3://{BUCKET}/sets/r.json"
    assert np.array_equal(load(cloud("cat", place, "a", "--decode", "raw", **reader)), values)
    assert f"--virtual s3://{BUCKET}/others/" in cloud_fails("cat", place, "b", **reader)
    allowed = ["--virtual", f"s3://{BUCKET}/others/"]
    assert np.array_equal(load(cloud("cat", place, "b", "--decode", "raw", *allowed, **reader)),
                          values)
    assert "not a Zarr store" in cloud_fails("inspect", f"s3://{BUCKET}/sets/none.json", **reader)
