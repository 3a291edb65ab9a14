"""Stores that take much time or memory from a reader that trusts them. Each maker takes a size: the
same kind of store, so many times as large."""

import gzip
import json
import zipfile

ARRAY = {"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8",
         "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8]}},
         "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
KB, MB = 1 << 10, 1 << 20


def folder(path, documents):
    for name, document in documents.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(document, (bytes, str)):
            document = json.dumps(document)
        file.write_bytes(document.encode() if isinstance(document, str) else document)
    return path


def consolidated(nodes):
    return {**GROUP, "consolidated_metadata": {"kind": "inline", "must_understand": False,
                                               "metadata": nodes}}


def deep_path(path, size):
    """One array whose path has as many levels as fit."""
    return folder(path, {"zarr.json": consolidated({"/".join("a" * (32 * KB * size)): ARRAY})})


def deep_paths(path, size):
    """Paths as deep as is allowed, none of which share a group."""
    tail = "/a" * 62
    return folder(path,
                  {"zarr.json": consolidated({f"{i:06}{tail}": GROUP for i in range(200 * size)})})


def many_keys(path, size):
    return folder(
        path, {"zarr.json": {**ARRAY, "attributes": {f"key-{i}": i for i in range(12_500 * size)}}})


def many_arrays(path, size):
    return folder(path,
                  {"zarr.json": consolidated({f"array-{i:06}": ARRAY for i in range(1000 * size)})})


def many_arrays_v2(path, size):
    array = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "|S1", "order": "C",
             "compressor": None, "fill_value": None, "filters": None}
    nodes = {".zgroup": {"zarr_format": 2}}
    for i in range(1000 * size):
        nodes[f"{i}/.zarray"] = array
        nodes[f"{i}/.zattrs"] = {"_ARRAY_DIMENSIONS": [f"d{i}"]}
    return folder(path, {".zmetadata": {"zarr_consolidated_format": 1, "metadata": nodes}})


def zipped(text):
    """A zarr.json of 15 MB times the size, and a thousandth of that as it is stored."""
    def make(path, size):
        path = path.with_suffix(".zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(
                "zarr.json", "w") as out:
            head, part, tail = text
            out.write(head)
            for _ in range(15 * size):
                out.write(part * (MB // len(part)))
            out.write(tail)
        return path
    return make


def many_members(path, size):
    path = path.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zarr.json", json.dumps(GROUP))
        for i in range(4000 * size):
            archive.writestr(f"{i:06}{'x' * 400}", b"")
    return path


def stacked_gzip(path, size):
    """A chunk that grows a thousandfold with each of the codecs, and is small again at the end."""
    levels = 5 * size + 1
    chunk = bytes(256 * MB >> 10)
    chunk = gzip.compress(chunk * 8)
    for _ in range(2):
        chunk = gzip.compress(chunk)
    codecs = [{"name": "bytes"}] + [{"name": "gzip", "configuration": {"level": 1}}] * levels
    return folder(path, {"zarr.json": {**ARRAY, "shape": [64 * KB], "codecs": codecs,
                                       "chunk_grid": {"name": "regular",
                                                      "configuration": {"chunk_shape": [64 * KB]}}},
                         "c/0": chunk})


METADATA = {
    "a path of many levels": deep_path,
    "many paths of many levels": deep_paths,
    "an object of many keys": many_keys,
    "many arrays": many_arrays,
    "many arrays of characters": many_arrays_v2,
    "a zip of many members": many_members,
    "a zip of blanks": zipped((b'{"zarr_format": 3,', b" ", b'"node_type": "group"}')),
    "a zip of brackets": zipped((b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": [0',
                                 b",[]", b"]}}")),
    "a zip of one string": zipped(
        (b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": "', b"x", b'"}}')),
    "a zip of numbers": zipped((b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": [0',
                                b",1", b"]}}")),
    "a zip of digits": zipped((b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": ',
                               b"1", b"}}")),
}
