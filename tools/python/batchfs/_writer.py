"""libbatchfs_writer, which writes predictions: where it is, calling it, and its failures as
exceptions."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sysconfig
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import Error, InvalidArgument, NoMemory, NotFound, NotSupported
from ._program import find_program
from ._version import VERSION

_NAME = "libbatchfs_writer.so.0"
_ERROR_BYTES = 2048
_CLASSES: dict[int, type[Error]] = {errno.EINVAL: InvalidArgument, errno.ENOENT: NotFound,
                                    errno.EOPNOTSUPP: NotSupported, errno.ENOMEM: NoMemory}
_TEXT, _TEXTS = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)


class _Options(ctypes.Structure):
    """batchfs_writer_options."""

    _fields_ = [("size", ctypes.c_size_t), ("part", _TEXT), ("tensors", _TEXTS), ("name", _TEXT),
                ("names", _TEXTS), ("overlap", _TEXT), ("time", _TEXT), ("reduce", _TEXT),
                ("dtype", _TEXT), ("chunks", _TEXT), ("shards", _TEXT), ("codec", _TEXT),
                ("denormalize", ctypes.c_int32), ("threads", ctypes.c_int32),
                ("memory", ctypes.c_uint64), ("rank", ctypes.c_int64), ("world", ctypes.c_int64),
                ("epoch", ctypes.c_int64), ("store_options", _TEXTS)]


def find_library(program: str | os.PathLike[str] | None = None) -> str:
    """The library's path: beside the program, as in a build folder, or among the libraries of its
    installation.

    Raises NotFound.
    """
    found = find_program(program)
    folder = os.path.dirname(os.path.realpath(found))
    prefix = os.path.dirname(folder)
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for place in (folder, os.path.join(prefix, "lib"), os.path.join(prefix, "lib", multiarch),
                  os.path.join(prefix, "lib64")):
        path = os.path.join(place, _NAME)
        if os.path.exists(path):
            return path
    raise NotFound(f"batchfs.create needs {_NAME}, which is not beside the program '{found}' and "
                   "not in the lib folder of its installation; install the wheel or the Debian "
                   "package (tools/package makes both), or name the program of an installation "
                   "that has it with program= or the variable BATCHFS")


def load(program: str | os.PathLike[str] | None = None) -> ctypes.CDLL:
    """The library that belongs to the program. Raises NotFound, and NotSupported where its version
    is another."""
    path = find_library(program)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NotFound(f"the library '{path}' cannot be loaded: {error}; install the wheel or "
                       "the Debian package, which brings what it needs, or build "
                       "it for this system") from None
    library.batchfs_writer_version.restype = _TEXT
    library.batchfs_writer_free.restype = None
    version = library.batchfs_writer_version().decode(errors="replace")
    if version != VERSION:
        raise NotSupported(f"the library '{path}' is version {version} of batchfs, and this "
                           f"package is version {VERSION}; install both of one version, or name "
                           "another program with program= or the variable BATCHFS")
    return library


def _bytes(text: str | os.PathLike[str]) -> bytes:
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{text!r} is not text in UTF-8: {error.reason}") from None
    if b"\0" in encoded:
        raise InvalidArgument(f"{text!r} has a NUL in it")
    return encoded


def _texts(words: list[str]) -> Any:
    return (ctypes.c_char_p * (len(words) + 1))(*map(_bytes, words), None)


class Writer:
    """An output that the library writes. Thread-safe. It ends with the last reference."""

    def __init__(self, library: ctypes.CDLL, store: str, view: str, output: str,
                 options: Mapping[str, Any]):
        self._library = library
        self._process = os.getpid()
        given = _Options(size=ctypes.sizeof(_Options))
        for key, value in options.items():
            if isinstance(value, str):
                value = _bytes(value)
            elif isinstance(value, list):
                value = ctypes.cast(_texts(value), _TEXTS)  # it keeps a reference to the texts
            elif value is None:
                continue
            setattr(given, key, value)
        handle = ctypes.c_void_p()
        self._handle = handle
        self.call("create", _bytes(store), _bytes(view), _bytes(output), ctypes.byref(given),
                  ctypes.byref(handle), handle=False)
        weakref.finalize(self, _free, library, handle, self._process)

    def call(self, name: str, *arguments: Any, handle: bool = True) -> None:
        """Raises what the function failed with."""
        if os.getpid() != self._process:
            raise Error("another process created this output: call batchfs.create in the process "
                        "that writes, with a rank of its own")
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        code = getattr(self._library, "batchfs_writer_" + name)(
            *([self._handle] if handle else []), *arguments, error)
        if code != 0:
            raise _CLASSES.get(code, Error)(error.value.decode(errors="replace"))

    def numbers(self, name: str, *arguments: Any, dtype: Any = np.int64) -> np.ndarray:
        """The numbers that a function lists."""
        count = ctypes.c_size_t()
        values = np.empty(0, dtype)
        while True:
            capacity = len(values)
            self.call(name, *arguments, values.ctypes.data_as(ctypes.c_void_p),
                      ctypes.c_size_t(capacity), ctypes.byref(count))
            if count.value <= capacity:
                return values[:count.value]
            values = np.empty(count.value, dtype)

    def shape(self, tensor: str, samples: np.ndarray) -> tuple[int, ...]:
        """Shape of the values that write() takes for these samples."""
        samples = np.ascontiguousarray(samples, np.int64)
        return tuple(self.numbers("shape", _bytes(tensor), samples.ctypes.data_as(ctypes.c_void_p),
                                  ctypes.c_size_t(len(samples))).tolist())

    def describe(self) -> dict[str, Any]:
        size = ctypes.c_size_t()
        self.call("describe", None, ctypes.c_size_t(0), ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value + 1)
        self.call("describe", buffer, ctypes.c_size_t(len(buffer)), ctypes.byref(size))
        described: dict[str, Any] = json.loads(buffer.value)
        return described

    def missing(self) -> int:
        count = ctypes.c_uint64()
        self.call("missing", ctypes.byref(count))
        return count.value

    def finished(self) -> bool:
        return bool(self._library.batchfs_writer_finished(self._handle))

    def write(self, tensor: str, samples: np.ndarray, values: np.ndarray) -> None:
        """`values` are of shape() and aligned, with native bytes, in any layout: the library reads
        what their strides say."""
        samples = np.ascontiguousarray(samples, np.int64)
        strides = (ctypes.c_int64 * values.ndim)(*values.strides)
        self.call("write", _bytes(tensor), samples.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(len(samples)), ctypes.c_void_p(values.ctypes.data),
                  values.dtype.name.encode(), strides)


def _free(library: ctypes.CDLL, handle: ctypes.c_void_p, process: int) -> None:
    if os.getpid() == process:  # a forked child has none of the library's threads
        library.batchfs_writer_free(handle)
