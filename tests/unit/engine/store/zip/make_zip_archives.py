"""Writes archives made by Python's zipfile, for zip_store_test.cc.

    python3 make_zip_archives.py

writes zip_archives.h, zip64_archives.h and odd_archives.h beside this file.
"""

import io
import pathlib
import zipfile
from unittest import mock

TIME = (2000, 1, 1, 0, 0, 0)


def pattern(size, seed):
    """The same as pattern() in the test."""
    return bytes((i // 9 * 7 + i // 150 + seed) % 256 for i in range(size))


def info(name, method=zipfile.ZIP_STORED, extra=b""):
    made = zipfile.ZipInfo(name, TIME)
    made.compress_type, made.extra = method, extra
    return made


MEMBERS = [("zarr.json", b'{"zarr_format": 3}', zipfile.ZIP_STORED),
           ("t/c/0", pattern(600, 1), zipfile.ZIP_STORED),
           ("t/c/1", pattern(3000, 2), zipfile.ZIP_DEFLATED), ("t/c/10", b"", zipfile.ZIP_STORED),
           ("t-two/c/0", pattern(5, 3), zipfile.ZIP_DEFLATED), ("none/", b"", zipfile.ZIP_STORED)]


def archive(file=None, comment=b"", members=MEMBERS):
    file = file or io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.comment = comment
        for name, data, method in members:
            out.writestr(info(name, method), data)
    return file.getvalue()


class Pipe(io.BytesIO):
    """Where zipfile cannot go back, sizes follow the data."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError

    def seek(self, *_):
        raise OSError


def zip64():
    with mock.patch.multiple(zipfile, ZIP64_LIMIT=500, ZIP_FILECOUNT_LIMIT=2):
        return archive(comment=b"sixty-four")


def other_extras():
    """Extra fields that the local headers have and the directory has not, and the other way
    round."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        long = info("t/c/0", extra=b"\xca\xfe" + (200).to_bytes(2, "little") + bytes(200))
        out.writestr(long, pattern(600, 1))
        short = info("t/c/1", zipfile.ZIP_DEFLATED)
        out.writestr(short, pattern(3000, 2))
        long.extra, short.extra = b"", b"\xca\xfe\x04\x00spam"
    return file.getvalue()


def duplicates():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out, mock.patch("warnings.warn"):
        for data in b"first", b"second", b"the last one":
            out.writestr(info("x"), data)
    return file.getvalue()


FILES = {
    "zip_archives.h": {
        "kPlain": archive(),
        "kComment": archive(comment=b"made PK\x05\x06 by Python, " * 4),
        "kStreamed": archive(Pipe()),
        "kPrefixed": b"#!/bin/sh\nexit 1\n" + archive(),
        "kOtherExtras": other_extras(),
    },
    "zip64_archives.h": {
        "kZip64": zip64(),
        "kPrefixedZip64": b"#!/bin/sh\nexit 1\n" + zip64(),
    },
    "odd_archives.h": {
        "kDuplicates": duplicates(),
        "kBadNames": archive(members=[(name, b"bad", zipfile.ZIP_STORED) for name in (
            "../up", "/absolute", "a/../../b", "a//b", "./c", "good", "dir/.", "..")]),
        "kBzip2": archive(members=[("x", pattern(600, 1), zipfile.ZIP_BZIP2)]),
        "kEmpty": archive(members=[]),
    },
}


def text_of(archives):
    """The header, before it is formatted."""
    lines = ["#pragma once", "// Made by make_zip_archives.py.", "", "namespace batchfs {", ""]
    for name, data in archives.items():
        lines.append(f"inline constexpr unsigned char {name}[] = {{")
        lines += ["  " + ", ".join(map(str, data[i:i + 24])) + "," for i in range(0, len(data), 24)]
        lines += ["};", ""]
    return "\n".join([*lines, "}  // namespace batchfs", ""])


for file_name, held in FILES.items():
    (pathlib.Path(__file__).parent / file_name).write_text(text_of(held))
