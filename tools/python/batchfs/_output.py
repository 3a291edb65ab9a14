"""The place that a backend writes to: a folder that becomes a Zarr store with its last document.

    .batchfs.json               what the output is: the same call continues it
    .batchfs/lock-rank-0        held by the process that writes it
    .batchfs/arrays/A           what array A is
    ARRAY/c/...                 objects, each put once, whole
    zarr.json                   put last

An object that is there is finished: objects are written under another name and renamed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from typing import Any

from ._errors import Error, InvalidArgument, NotSupported
from ._program import local_path

RUN_KEY = ".batchfs.json"
WORKING = ".batchfs"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_numbers = itertools.count()
_token = secrets.token_hex(4)  # processes of several machines may have one number


def failure(error: OSError, doing: str, path: str) -> Error:
    """The exception for a failed call, with the next step."""
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return Error(f"{doing} failed: {why} ('{path}'); make room and run the same program "
                     "again: it continues")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Error(f"{doing} failed: {why} ('{path}'); name an output that this user may write, "
                     "or change its permissions")
    return Error(f"{doing} failed: {why} ('{path}'); run the same program again: it continues")


def _unique() -> str:
    return f"{os.getpid()}-{_token}-{next(_numbers)}"


class Lock:
    """Held until it is released, or until the last reference to it ends."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.release()


def _write_all(file: Any, data: Any) -> None:
    """A nearly full disk, and Linux beyond 2 GiB, write less than asked for without an error."""
    left = memoryview(data)
    if left.nbytes == 0:
        return
    left = left.cast("B")
    while left:
        left = left[file.write(left):]


class Folder:
    """A local output. Thread-safe."""

    def __init__(self, place: str | os.PathLike[str]):
        named = os.fspath(place)
        text = local_path(named)
        if text is None and named[:5].lower() == "file:":
            raise InvalidArgument(f"'{named}': a path after 'file:' begins with "
                                  "'/'; leave 'file:' out")
        if text is None:
            raise NotSupported(f"predictions cannot be written to {named.partition(':')[0]}://: "
                               "name a folder, and copy it when it is finished")
        if not text or text.endswith(".zip"):
            raise InvalidArgument(f"the output '{text}' is not the name of a "
                                  "folder; name a new one")
        self.root = os.path.abspath(text)
        if os.path.exists(self.root) and not os.path.isdir(self.root):
            raise InvalidArgument(f"'{self.root}' is a file; name a new folder")

    def path(self, key: str) -> str:
        return os.path.join(self.root, key)

    def put(self, key: str, data: Any) -> None:
        """Writes an object: readers see all of it or nothing, also when this process is killed."""
        path = self.path(key)
        temporary = self.path(f"{WORKING}/new/{_unique()}")
        try:
            try:
                with self._create(temporary) as file:
                    for part in data if isinstance(data, list) else [data]:
                        _write_all(file, part)
                try:
                    os.rename(temporary, path)
                except FileNotFoundError:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    os.rename(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise failure(error, "writing", path) from None

    @staticmethod
    def _create(path: str) -> Any:
        try:
            return open(path, "xb", buffering=0)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return open(path, "xb", buffering=0)

    def get(self, key: str) -> bytes | None:
        try:
            with open(self.path(key), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise failure(error, "reading", self.path(key)) from None

    def has(self, key: str) -> bool:
        """Does the object exist? A power failure may leave an empty one, which does not count."""
        try:
            return os.stat(self.path(key)).st_size > 0
        except OSError:
            return False

    def names(self, key: str) -> list[str]:
        """The names of the files and folders in a folder, sorted."""
        try:
            return sorted(os.listdir(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failure(error, "reading", self.path(key)) from None

    def objects(self, prefix: str) -> Iterator[str]:
        """The keys of the objects below a folder, as parts of paths below it."""
        root = self.path(prefix)
        for folder, _, files in os.walk(root):
            below = os.path.relpath(folder, root)
            for name in files:
                if os.stat(os.path.join(folder, name)).st_size > 0:
                    yield name if below == "." else f"{below}/{name}"

    def is_empty(self) -> bool:
        return all(name == WORKING for name in self.names(""))

    def sync(self) -> None:
        """Objects written before this call survive a power failure."""
        with contextlib.suppress(OSError, AttributeError):
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            try:
                ctypes.CDLL(None, use_errno=True).syncfs(folder)
            finally:
                os.close(folder)

    def try_lock(self, name: str) -> Lock | None:
        """None: another process holds it."""
        return self._lock(name, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _lock(self, name: str, how: int) -> Lock | None:
        path = self.path(f"{WORKING}/{name}")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            lock = Lock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
            try:
                fcntl.flock(lock.descriptor, how)
            except BlockingIOError:
                return None
            return lock
        except OSError as error:
            raise failure(error, "writing", path) from None

    def discard_working_files(self) -> None:
        shutil.rmtree(self.path(WORKING), ignore_errors=True)
