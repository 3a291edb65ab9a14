"""Servers that `batchfs.open` starts: one for all processes of a job that open the same store and
view.

A server is found by its socket, whose name is a hash of all that it was started with, in the user's
private directory. It ends by itself with its last reader (`batchfs serve --until-unused`): the
kernel closes the connections of a process that is killed, so no server is left behind, and no
process has to be the parent of the others. A lock keeps two processes from starting two.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ._errors import Error, InvalidArgument, NotFound
from ._program import (
    VersionCheck,
    find_program,
    local_path,
    named_stores,
    option_words,
    run_program,
    shown_store,
    store_word,
    view_json,
    view_words,
)
from ._session import Session, remove_abandoned
from ._version import VERSION

T = TypeVar("T")

_FIRST_READER = 10  # seconds that a server waits for the process that started it
_ATTEMPTS = 8
# Variables that affect what a server reads, or which job it belongs to.
_VARIABLES = re.compile(
    r"(AWS|AZURE|BATCHFS|CLOUDSDK|CURL|ECCODES|GCE|GOOGLE|SSL)_\w+|\w+_PROXY|\w+_proxy|HOME|"
    r"LD_LIBRARY_PATH|SLURM_JOB_ID|PBS_JOBID|LSB_JOBID|JOB_ID|XDG_CACHE_HOME")
_METADATA = ("zarr.json", ".zmetadata", ".zgroup", ".zattrs", ".zarray")
_MOST_LOOKED_AT = 64  # inspected arrays and groups of a local store
_VIEW_FILES = (".json", ".yaml", ".yml")


def is_store(place: str, view: Any) -> bool:
    """Is `place` a store to be served, rather than a mount, a view in it or a socket? Raises
    InvalidArgument."""
    is_url = local_path(place) != place
    try:
        is_mount = not is_url and any(os.path.exists(os.path.join(place, name))
                                      for name in (".batchfs", "schema.json"))
        is_socket = not is_url and stat.S_ISSOCK(os.stat(place).st_mode)
    except (OSError, ValueError):
        is_mount = is_socket = False
    if is_mount or is_socket:
        if isinstance(view, (Mapping, os.PathLike)):
            raise InvalidArgument(f"'{place}' serves the views that it was started with; pass the "
                                  "name of one, or the store in its place")
        return False
    if view is None:
        if is_url or any(os.path.exists(os.path.join(place, name)) for name in _METADATA):
            raise InvalidArgument(f"'{place}' is a store: pass a view as well, its keys or its "
                                  f"file, for instance view=batchfs.view({place!r})")
        return False
    return (is_url or not isinstance(view, str) or "/" in view or view.endswith(_VIEW_FILES)
            or os.path.isfile(view))


def mistaken_option(name: str, place: str, view: Any, part: str | None) -> Error:
    """The error of an option of a store that is to be served, given for a place that is not one
    (`is_store`)."""
    missing = False
    try:
        os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        missing = True
    except OSError:  # a mount whose process has ended, for instance
        pass
    if missing:
        return NotFound(f"'{place}' does not exist: pass a store, a mount, a view's "
                        "directory in it or a socket")
    if any(os.path.exists(os.path.join(place, metadata)) for metadata in _METADATA):
        return InvalidArgument(f"'{place}' is a store, and there is no file '{view}' of a view: "
                               "pass its keys or its file as view=")
    instead = (f"; pass the view of the part, view='{view or 'NAME'}-{part}'" if name == "part"
               else "")
    return InvalidArgument(f"{name}= is for a store that is opened with a view, and '{place}' "
                           f"serves the views that it was started with: leave {name}= out{instead}")


class Server:
    """The settings of a server. Starts one if none is running; `call` keeps it running."""

    def __init__(self, store: str | os.PathLike[str], view: Any, options: Mapping[str, Any],
                 program: str | os.PathLike[str] | None, start: Mapping[str, Any] | None = None):
        self.program = find_program(program)
        self.store = store_word(store)
        self._given = (self.store, view if isinstance(view, Mapping)
                           else os.path.abspath(os.fspath(view)), options, self.program)
        # of a view's file
        self.start = None if start is None or isinstance(view, Mapping) else view_json(start)
        self.view_words, self.view = view_words(view if start is None or self.start is not None
                                                else {**view, "start": start})
        self.options = option_words(options)
        self.stores = [self.store, *named_stores(options.get("stores")).values()]
        self.directory = _private_directory()
        self.name = f"open-{self._key()}"
        self.socket = os.path.join(self.directory, self.name + ".sock")
        self.session = Session(os.path.join(self.directory, self.name + ".session"))

    def with_start(self, start: Mapping[str, Any]) -> Server:
        """The server of the same mixture with another "start"."""
        return Server(*self._given, start)

    def connect(self, connect: Callable[[str], T]) -> T:
        """connect(the socket's path), with a server that listens there. Raises a server's start
        error."""
        for attempt in range(_ATTEMPTS):
            with self._listener() as listens:
                if listens:
                    try:
                        self.session.join()
                        reader = connect(self.socket)
                        if self.session.is_current():
                            return reader
                        del reader  # another server, of another session, has started meanwhile
                    except Error as error:
                        # Lost, or removed: this server has ended. Any other error is its answer.
                        lost = type(error) is Error or not os.path.exists(self.socket)
                        if not lost or attempt == _ATTEMPTS - 1:
                            raise
            if listens:
                continue
            try:
                self._start()
            except Error:
                with self._listener() as listens:
                    if not listens:
                        raise
        self.session.join()
        return connect(self.socket)

    def ensure(self) -> bool:
        """Starts a server if none listens. Returns whether it did."""
        with self._listener() as listens:
            if listens:
                return False
        self._start()
        return True

    # Identity of a server.

    def _key(self) -> str:
        """A key of all settings that make one server serve other data than another."""
        at = os.stat(self.program)
        known = {"version": VERSION, "program": [self.program, at.st_mtime_ns, at.st_size],
                 "store": self.store, "store_is": [_identity(place) for place in self.stores],
                 "view": self.view or self.view_words, "options": self.options,
                 "variables": {name: value
                               for name, value in os.environ.items() if _VARIABLES.fullmatch(name)},
                 "files": list(self._files())}
        if self.start is not None:
            known["start"] = self.start
        if self.view is not None:
            known["view"] = json.loads(self.view)
            known["folder"] = os.getcwd() if known["files"] else ""
        text = json.dumps(known, sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]

    def _files(self) -> Iterator[Any]:
        """The view's file and the files that it may name: those of its strings that are names of
        files."""
        if self.view is not None:
            folder, texts = os.getcwd(), list(_strings(json.loads(self.view)))
        else:
            path = self.view_words[0].partition("=")[2]
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    text = file.read(1 << 24)
            except OSError as error:
                kind = NotFound if isinstance(error, FileNotFoundError) else InvalidArgument
                raise kind(f"{error.strerror} (the view file '{path}')") from None
            yield hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
            folder, texts = os.path.dirname(path), re.findall(r"[\w./+-]{3,255}", text)
        for text in sorted(set(texts))[:1024]:
            with contextlib.suppress(OSError, ValueError):
                at = os.stat(os.path.join(folder, text))
                if stat.S_ISREG(at.st_mode):
                    yield [text, at.st_mtime_ns, at.st_size]

    # Finding and starting it.

    @contextlib.contextmanager
    def _listener(self) -> Iterator[bool]:
        """Does a server listen? Stays connected to it in the meantime."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                _connect(probe, self.socket)
                listens = True
            except OSError:
                listens = False
            yield listens

    def _start(self) -> None:
        check = VersionCheck(self.program)
        _remove_leftovers(self.directory)
        relied = self.session.is_current()
        try:
            with _locked(os.path.join(self.directory,
                                      self.name + ".lock")), self._listener() as listens:
                if not listens:
                    self.session.begin()
                    self._run()
        except Error:
            if not relied:
                self.session.leave()  # nothing of it was read
            check.finish()  # a server of another version need not understand the request
            raise
        check.finish()

    def _run(self) -> None:
        words = ["serve", self.store, *self.view_words, f"--socket={self.socket}",
                 f"--session={self.session.path}", f"--until-unused={_FIRST_READER}",
                 "--background", *self.options]
        if self.start is not None:
            words.append("--start=-")
        run_program(self.program, words, stdin=self.view if self.start is None else self.start,
                    doing=f"opening {shown_store(self.store)}")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _identity(store: str) -> list[Any]:
    """State of a local store that changes with a rewrite or other arrays. Reads a bounded
    amount."""
    found: list[Any] = []

    def note(path: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            at = os.stat(path)
            found.append([path, at.st_ino, at.st_mtime_ns, at.st_size])

    path = local_path(store)
    if path is None:
        return found
    note(path)
    folders = [path]
    with contextlib.suppress(OSError, ValueError), os.scandir(path) as entries:
        for entry in entries:
            if len(folders) > _MOST_LOOKED_AT:
                break
            if entry.is_dir():
                folders.append(entry.path)
    for folder in sorted(folders):
        for name in _METADATA:
            note(os.path.join(folder, name))
    return found


def _private_directory() -> str:
    """Like the program: $XDG_RUNTIME_DIR/batchfs, for root /run/batchfs, /tmp/batchfs-UID. Raises
    Error."""
    user = os.geteuid()
    candidates = [f"/tmp/batchfs-{user}"]
    if user == 0:
        candidates.insert(0, "/run/batchfs")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        candidates.insert(0, runtime + "/batchfs")
    for candidate in candidates:
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(candidate, 0o700)
            at = os.lstat(candidate)
            if (stat.S_ISDIR(at.st_mode) and at.st_uid == user and at.st_mode & 0o077 == 0
                    and os.access(candidate, os.W_OK | os.X_OK)):
                return candidate
    raise Error("there is no directory for sockets that only this user can enter; set "
                "XDG_RUNTIME_DIR to one")


def _connect(probe: socket.socket, path: str) -> None:
    """Raises OSError: ConnectionRefusedError where nobody listens any more."""
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        probe.settimeout(10)
        # An address holds 107 bytes, fewer than a path may have.
        probe.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)


def _remove_leftovers(directory: str) -> None:
    """Removes sockets, sessions and locks of servers and processes that were killed."""
    names = {match[1] for name in os.listdir(directory)
             if (match := re.fullmatch(r"(open-\w+)\.(sock|session|lock)", name))}
    for name in names:
        path = os.path.join(directory, name)
        # While a server is being started, its lock is held, and its files are in use.
        with contextlib.suppress(BlockingIOError), _locked(path + ".lock", wait=False):
            remove_abandoned(path + ".session")
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX,
                                                             socket.SOCK_SEQPACKET) as probe:
                try:
                    _connect(probe, path + ".sock")
                except ConnectionRefusedError:
                    os.unlink(path + ".sock")


@contextlib.contextmanager
def _locked(path: str, wait: bool = True) -> Iterator[None]:
    """Holds a lock, whose file is removed at the end: nothing is left in the directory. Raises
    BlockingIOError."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _locks.add(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(lock)):
                    break
        except BaseException:
            _unlock(lock)
            raise
        _unlock(lock)  # another process has removed it meanwhile
    try:
        yield
    finally:
        os.unlink(path)
        _unlock(lock)


_locks: set[int] = set()  # descriptors, of all threads


def _unlock(lock: int) -> None:
    _locks.discard(lock)
    os.close(lock)


def _drop_locks() -> None:
    """Called in a child that another thread forks: it would hold the lock as long as it lives."""
    for lock in list(_locks):
        _unlock(lock)


os.register_at_fork(after_in_child=_drop_locks)
