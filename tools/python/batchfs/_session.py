"""The session of a server that this process relies on: the server after a killed one continues it.

A server records in a file which versions of the store's objects were read. Each process that reads
holds a shared lock on the file, and so does the server. A process that starts a server continues
the file if another one still holds it: otherwise nobody relies on it, and a new one begins. The
last process that leaves removes it; the next process that starts any server removes the files of
killed processes (`_server._remove_leftovers`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref


class Session:
    """A lock on the session of the server at `path`, once `join` or `begin` was called."""

    def __init__(self, path: str):
        self.path = path
        self._file = -1
        self._process = 0
        _sessions.add(self)

    def join(self) -> None:
        """Holds the session of the server that listens now. Without one, it is about to end."""
        while not self.is_current():
            self.leave()
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return
            self._hold(file)

    def is_current(self) -> bool:
        """Is the session that is held the one of the server that listens?"""
        with contextlib.suppress(FileNotFoundError):
            return self._file >= 0 and os.path.samestat(os.fstat(self._file), os.stat(self.path))
        return False

    def begin(self) -> None:
        """Holds the session for a new server: the one that others hold, or a new one. Precondition:
        the server's lock is held."""
        remove_abandoned(self.path)
        while not self.is_current():
            self.leave()
            self._hold(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
                               0o600))

    def leave(self) -> None:
        """Releases the session."""
        file, self._file = self._file, -1
        if file < 0:
            return
        if self._process == os.getpid():
            _remove_unheld(file, self.path)
        os.close(file)

    def _hold(self, file: int) -> None:
        # otherwise held only for a moment, by a process that removes it
        fcntl.flock(file, fcntl.LOCK_SH)
        self._file, self._process = file, os.getpid()

    def hold_in_child(self) -> None:
        """A forked child needs its own lock: the parent's ends with the parent's."""
        if self._file < 0:
            return
        shared, self._file = self._file, -1
        with contextlib.suppress(OSError):
            self._hold(os.open(f"/proc/self/fd/{shared}", os.O_RDWR | os.O_CLOEXEC))
        os.close(shared)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the interpreter's end
            self.leave()


def _remove_unheld(file: int, path: str) -> None:
    """Removes a session that no one else holds."""
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), os.stat(path)):
            os.unlink(path)


def remove_abandoned(path: str) -> None:
    """Removes a session that no process holds. Precondition: its server's lock is held."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _remove_unheld(file, path)
        finally:
            os.close(file)


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _hold_in_child() -> None:
    for session in list(_sessions):
        session.hold_in_child()


os.register_at_fork(after_in_child=_hold_in_child)
