"""Stores that change under a mount: a directory, an archive, a web server with and without ETags,
S3."""

import io
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
import zipfile

import google_crc32c
import numcodecs
import numpy as np
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))
import cloud_servers
from mutation_model import LAYOUTS, SHAPE


def metadata():
    """The metadata of a store with all arrays, consolidated: {key: bytes}."""
    store = zarr.storage.MemoryStore()
    group = zarr.open_group(store, mode="w", zarr_format=3)
    for layout in LAYOUTS:
        codecs = zarr.codecs.ZstdCodec() if layout.compressed else None
        shards = {"shards": layout.object_shape} if layout.inner else {}
        group.create_array(layout.name, shape=SHAPE, chunks=layout.chunk, dtype="i8", fill_value=0,
                           compressors=codecs, dimension_names=["time", "y", "x"], **shards)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that format 3 does not have consolidated metadata yet
        zarr.consolidate_metadata(store)
    return {key: data.to_bytes() for key, data in store._store_dict.items()}


ZSTD = numcodecs.Zstd(level=0)


def encode(layout, values):
    """The bytes of an object. Chunks of a shard that are all fill values are missing."""
    def one(chunk):
        data = np.ascontiguousarray(chunk).tobytes()
        return ZSTD.encode(data) if layout.compressed else data

    if layout.inner is None:
        return one(values)
    parts, index, offset = [], [], 0
    for box in layout.inner_boxes():
        if not values[box].any():
            index += [2**64 - 1, 2**64 - 1]
            continue
        parts.append(one(values[box]))
        index += [offset, len(parts[-1])]
        offset += len(parts[-1])
    table = np.array(index, "<u8").tobytes()
    return b"".join(parts) + table + google_crc32c.value(table).to_bytes(4, "little")


def decode(layout, data):
    """The values in the bytes of an object, whatever they are; -1 where there are none, None when
    there are none at all."""
    def one(part):
        shape = layout.chunk
        try:
            return np.frombuffer(ZSTD.decode(part) if layout.compressed else part, "i8").reshape(
                shape)
        except (RuntimeError, ValueError):
            return np.full(shape, -1)

    if layout.inner is None:
        return one(data)
    boxes = list(layout.inner_boxes())
    table = data[-16 * len(boxes) - 4 : -4]
    if google_crc32c.value(table).to_bytes(4, "little") != data[-4:]:
        return None
    values = np.zeros(layout.object_shape, "i8")
    for box, (offset, length) in zip(boxes, np.frombuffer(table, "<u8").reshape(-1, 2)):
        if offset != 2**64 - 1:
            values[box] = one(data[int(offset) : int(offset + length)])
    return values


def key_of(layout, number):
    return f"{layout.name}/c/{number}/0/0"


class Directory:
    name, whole = "local", False
    changes = ("replace", "rewrite", "grow", "fill", "fill with zarr", "delete", "truncate",
               "remove array", "remove store")

    def __init__(self, scratch):
        self.path = scratch / "store.zarr"
        self.aside = scratch / "aside"
        self.url = str(self.path)
        self.environment, self.options = {}, []

    def reset(self, objects):
        """{key: bytes}, all that the store holds."""
        for place in (self.path, self.aside):
            shutil.rmtree(place, ignore_errors=True)
        for key, data in objects.items():
            (self.path / key).parent.mkdir(parents=True, exist_ok=True)
            (self.path / key).write_bytes(data)

    def replace(self, key, data):
        place = self.path / key
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name("fresh")
        fresh.write_bytes(data)
        fresh.rename(place)

    def rewrite(self, key, data):
        """In place, in two halves."""
        with open(self.path / key, "r+b", buffering=0) as file:
            file.write(data[: len(data) // 2])
            file.write(data[len(data) // 2 :])
            file.truncate()

    def append(self, key, data):
        with open(self.path / key, "ab") as file:
            file.write(data)

    def truncate(self, key, length):
        os.truncate(self.path / key, length)

    def delete(self, key):
        (self.path / key).unlink()

    def fill_with_zarr(self, layout, box, values):
        zarr.open_array(str(self.path / layout.name), mode="r+")[box] = values

    def remove(self, prefix):
        self.aside.mkdir(exist_ok=True)
        (self.path / prefix if prefix else self.path).rename(self.aside / (prefix or "store"))

    def end(self):
        pass


class Archive:
    """One object: whatever changes, the archive is another."""

    name, whole = "zip", True
    changes = ("replace", "rewrite", "grow", "fill", "delete", "truncate", "remove store")

    def __init__(self, scratch):
        self.path = scratch / "store.zip"
        self.url = str(self.path)
        self.environment, self.options = {}, []

    def bytes_of(self, objects):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for key, data in objects.items():
                archive.writestr(key, data, zipfile.ZIP_DEFLATED if key.startswith("raw/")
                                     else zipfile.ZIP_STORED)
        return file.getvalue()

    def reset(self, objects):
        self.objects = dict(objects)
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(self.bytes_of(objects))

    def replace(self, key, data):
        self.objects[key] = data
        fresh = self.path.with_name("fresh")
        fresh.write_bytes(self.bytes_of(self.objects))
        fresh.rename(self.path)

    def rewrite(self, key, data):
        self.objects[key] = data
        made = self.bytes_of(self.objects)
        with open(self.path, "r+b", buffering=0) as file:
            file.write(made[: len(made) // 2])
            file.write(made[len(made) // 2 :])
            file.truncate()

    def append(self, key, data):
        """Like tools that update an archive: appends the new member, and a new directory."""
        self.objects[key] = data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the duplicate name
            with zipfile.ZipFile(self.path, "a") as archive:
                archive.writestr(key, data)

    def truncate(self, key, length):
        os.truncate(self.path, self.path.stat().st_size // 2)

    def delete(self, key):
        del self.objects[key]
        fresh = self.path.with_name("fresh")
        fresh.write_bytes(self.bytes_of(self.objects))
        fresh.rename(self.path)

    def remove(self, prefix):
        self.path.unlink()

    def end(self):
        pass


class WebHandler(cloud_servers.Handler):
    def do_GET(self):
        found = self.server.objects.get(self.path_part.lstrip("/"))
        if found is None:
            return self.answer(404)
        data, version = found
        if self.server.etags:
            self.facts = {"ETag": f'"{version}"'}
            if self.headers.get("If-None-Match") == f'"{version}"':
                return self.answer(304)
        else:
            # Seconds, so each change comes a second later.
            self.facts = {"Last-Modified": time.strftime("%a, %d %b %Y %H:%M:%S GMT",
                                                         time.gmtime(1_000_000_000 + version))}
        self.answer_object(data)

    do_HEAD = do_GET

    def answer(self, status, body=b"", **headers):
        headers.pop("ETag", None)  # the facts have the version, if there is one
        super().answer(status, body, **headers,
                       **(getattr(self, "facts", {}) if status < 400 else {}))
        self.facts = {}


class WebServer(cloud_servers.Server):
    def handle_error(self, request, client_address):
        """A killed client is not an error."""


class Web:
    whole = False
    changes = ("replace", "grow", "fill", "delete", "truncate", "remove array", "remove store")

    def __init__(self, name, etags):
        self.name = name
        self.server = WebServer(WebHandler, {})
        self.server.etags = etags
        self.url = self.server.url
        self.version = 0
        self.environment, self.options = {}, ["--retries", "0"]

    def reset(self, objects):
        self.server.objects = {}
        for key, data in objects.items():
            self.replace(key, data)

    def replace(self, key, data):
        self.version += 1
        self.server.objects[key] = (data, self.version)

    def append(self, key, data):
        self.replace(key, self.server.objects[key][0] + data)

    def truncate(self, key, length):
        self.replace(key, self.server.objects[key][0][:length])

    def delete(self, key):
        del self.server.objects[key]

    def remove(self, prefix):
        self.server.objects = {key: found for key, found in self.server.objects.items()
                               if prefix and not key.startswith(prefix + "/")}

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class S3:
    """moto's server."""

    name, whole = "s3", False
    changes = Web.changes
    BUCKET = "bucket"

    def __init__(self, scratch):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1",
                                         "-p", str(port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.endpoint = f"http://127.0.0.1:{port}"
        self.url = f"s3://{self.BUCKET}/store.zarr"
        self.environment = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "reader",
                            "AWS_EC2_METADATA_DISABLED": "true"}
        self.options = ["--endpoint", self.endpoint, "--region", "us-east-1", "--retries", "0"]
        end = time.monotonic() + 60
        while True:
            try:
                self.send("PUT", "", b"")
                break
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
        self.objects = {}

    def send(self, method, key, data=None):
        place = f"{self.endpoint}/{self.BUCKET}" + (f"/store.zarr/{key}" if key else "")
        # Any signature will do, but there must be one.
        headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=setup/20200101/us-east-1/s3/"
                                    "aws4_request, SignedHeaders=host, Signature=0",
                   "Content-Type": "application/octet-stream"}
        with urllib.request.urlopen(urllib.request.Request(place, data, headers, method=method),
                                    timeout=30):
            pass

    def reset(self, objects):
        for key in self.objects.keys() - objects.keys():
            self.send("DELETE", key)
        for key, data in objects.items():
            if self.objects.get(key) != data:
                self.send("PUT", key, data)
        self.objects = dict(objects)

    def replace(self, key, data):
        self.objects[key] = data
        self.send("PUT", key, data)

    def append(self, key, data):
        self.replace(key, self.objects[key] + data)

    def truncate(self, key, length):
        self.replace(key, self.objects[key][:length])

    def delete(self, key):
        del self.objects[key]
        self.send("DELETE", key)

    def remove(self, prefix):
        for key in [key for key in self.objects if not prefix or key.startswith(prefix + "/")]:
            self.delete(key)

    def end(self):
        self.process.terminate()
        self.process.wait()


def make(name, scratch):
    """A store of this name."""
    if name == "http":
        return Web(name, etags=True)
    if name == "http-without-etags":
        return Web(name, etags=False)
    return {"local": Directory, "zip": Archive, "s3": S3}[name](scratch)


NAMES = ("local", "zip", "http", "http-without-etags", "s3")
