"""batchfs rechunk, export and tasks to s3://, against moto's server, which checks signatures and
permissions, and against a small server whose parts of objects fail."""

import sys

import boto3
import botocore.config
import numpy as np
import pytest
import zarr

from cloud_servers import Handler, Server
from output_checks import check_parts_of_tasks, check_resume, check_the_copy, make_source
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
    return make_source(tmp_path)


def writer_client(moto):
    keys = moto.keys["writer"]
    return boto3.client("s3", endpoint_url=moto.url, region_name="us-east-1",
                        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
                        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
                        config=botocore.config.Config(s3={"addressing_style": "path"}))


class Bucket:
    def __init__(self, moto):
        self.s3 = writer_client(moto)

    def keys(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=prefix + "/")
        return sorted(entry["Key"].removeprefix(prefix + "/") for page in pages
                      for entry in page.get("Contents", []))

    def get(self, key):
        return self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def keys_of(moto, prefix):
    return Bucket(moto).keys(prefix)


def writer(moto):
    return moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}


def test_the_objects_are_those_of_a_local_copy(cloud, moto, tmp_path):
    check_the_copy(cloud, f"s3://{BUCKET}", Bucket(moto), tmp_path, writer(moto))


def test_a_killed_copy_continues(cloud, environment, moto, tmp_path):
    check_resume(cloud, environment, f"s3://{BUCKET}", Bucket(moto), tmp_path, writer(moto))


def test_what_may_not_be_written_is_one_line(cloud_fails, cloud, moto, local):
    source, _ = local
    reader = moto.keys["reader"] | {"AWS_ENDPOINT_URL": moto.url}
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", f"s3://{BUCKET}/denied",
                       **reader)
    assert "may not write" in said
    assert keys_of(moto, "denied") == []
    writer = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", "s3://no-such-bucket/x",
                       **writer)
    assert "no-such-bucket" in said
    writer_client(moto).put_object(Bucket=BUCKET, Key="mine/notes.txt", Body=b"mine")
    said = cloud_fails("rechunk", source, "--chunks", "t=1", "-o", f"s3://{BUCKET}/mine", **writer)
    assert "batchfs did not write it" in said
    assert keys_of(moto, "mine") == ["notes.txt"]


def test_two_passes_need_a_local_folder(cloud_fails, cloud, moto, local, tmp_path):
    source, values = local
    keys = moto.keys["writer"] | {"AWS_ENDPOINT_URL": moto.url}
    command = ["rechunk", source, "--chunks", "t=-1,y=1,x=16", "--codec", "none", "--memory",
               "840K", "--threads", "1", "-o", f"s3://{BUCKET}/two"]
    assert "--temporary" in cloud_fails(*command, **keys)
    cloud(*command, "--temporary", tmp_path / "pieces", **keys)
    cloud("rechunk", f"s3://{BUCKET}/two", "-o", tmp_path / "back", **keys)
    assert np.array_equal(zarr.open_group(tmp_path / "back", mode="r")["a"][...], values)


def test_parts_of_tasks_lie_in_a_bucket(cloud, cloud_fails, moto, tmp_path):
    check_parts_of_tasks(cloud, cloud_fails, f"s3://{BUCKET}", Bucket(moto), tmp_path, writer(moto))
    source = tmp_path / "source.zarr"
    reader = moto.keys["reader"] | {"AWS_ENDPOINT_URL": moto.url}
    assert "may not write" in cloud_fails("statistics", source, "--view", tmp_path / "view.json",
                                          "--out", f"s3://{BUCKET}/denied-parts", **reader)


# ---- objects that are put in parts ----


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An array of 70 MB that no codec makes smaller, and the options that copy it to one object."""
    path = tmp_path_factory.mktemp("large") / "large.zarr"
    values = np.random.default_rng(1).integers(0, 256, 70_000_000, "u1")
    zarr.create_array(path, data=values, chunks=(1_000_000,), compressors=None,
                      dimension_names=("x",))
    return values, ["rechunk", path, "--chunks", "x=-1", "--codec", "none", "-o"]


def test_a_large_object_is_put_in_parts(cloud, moto, large):
    values, command = large
    cloud(*command, f"s3://{BUCKET}/large", **writer(moto))
    assert np.array_equal(np.frombuffer(Bucket(moto).get("large/c/0"), "u1"), values)
    s3 = writer_client(moto)
    assert s3.head_object(Bucket=BUCKET, Key="large/c/0")["ETag"].endswith('-3"')
    moto.enforce(False)
    assert not s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads")
    moto.enforce(True)


class Parts(Handler):
    """S3 without signatures, which fails as `server.fails` says: {what: answers of (status, code,
    joined)}."""

    def failure(self, what):
        for status, code, joins in self.server.fails.get(what, [])[:1]:
            self.server.fails[what].pop(0)
            if joins:
                self.join()
            self.answer(status, f"<Error><Code>{code}</Code></Error>")
            return True
        return False

    def join(self):
        parts = self.server.uploads.pop(self.query["uploadId"])
        self.server.objects[self.path_part] = b"".join(parts[number] for number in sorted(parts))

    def do_GET(self):
        if "list-type" in self.query:
            return self.answer(200, "<ListBucketResult></ListBucketResult>")
        data = self.server.objects.get(self.path_part)
        return (self.answer(404, "<Error><Code>NoSuchKey</Code></Error>") if data is None
                else self.answer_object(data))

    do_HEAD = do_GET

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if "uploads" in self.query:
            self.server.uploads["the<id"] = {}
            return self.answer(200, "<InitiateMultipartUploadResult><UploadId>the&lt;id</UploadId>"
                                    "</InitiateMultipartUploadResult>")
        if self.failure("join"):
            return None
        if self.query["uploadId"] not in self.server.uploads:
            return self.answer(404, "<Error><Code>NoSuchUpload</Code></Error>")
        self.join()
        return self.answer(200, "<CompleteMultipartUploadResult/>")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "partNumber" not in self.query:
            self.server.objects[self.path_part] = body
            return self.answer(200)
        number = int(self.query["partNumber"])
        if self.failure(number):
            return None
        self.server.uploads[self.query["uploadId"]][number] = body
        return self.answer(200, ETag='"tag"')

    def do_DELETE(self):
        if "uploadId" in self.query:
            self.server.dropped.append(self.query["uploadId"])
            self.server.uploads.pop(self.query["uploadId"], None)
        else:
            self.server.objects.pop(self.path_part, None)
        return self.answer(204)


@pytest.fixture
def parts():
    server = Server(Parts, {})
    server.uploads, server.dropped, server.fails = {}, [], {}
    yield server
    server.shutdown()


KEY = f"/{BUCKET}/o/c/0"


@pytest.mark.parametrize("fails", [
    {2: [(500, "InternalError", False)]},
    {"join": [(200, "InternalError", False)]},  # the status was sent before it failed
    {"join": [(500, "InternalError", True)]},   # it was joined, and the answer was lost
], ids=["a part", "the join fails late", "the answer to the join is lost"])
def test_passing_trouble_of_parts(cloud, large, parts, fails):
    values, command = large
    parts.fails = fails
    cloud(*command, f"s3://{BUCKET}/o", "--anon", AWS_ENDPOINT_URL=parts.url)
    assert not any(fails.values())
    assert np.array_equal(np.frombuffer(parts.objects[KEY], "u1"), values)
    assert not parts.uploads and not parts.dropped


def test_parts_of_what_fails_are_given_up(cloud_fails, cloud, large, parts):
    values, command = large
    parts.fails = {2: [(403, "QuotaExceeded", False)]}
    assert "QuotaExceeded" in cloud_fails(*command, f"s3://{BUCKET}/o", "--anon",
                                          AWS_ENDPOINT_URL=parts.url)
    assert parts.dropped == ["the<id"] and not parts.uploads and KEY not in parts.objects
    cloud(*command, f"s3://{BUCKET}/o", "--anon", AWS_ENDPOINT_URL=parts.url)
    assert np.array_equal(np.frombuffer(parts.objects[KEY], "u1"), values)
