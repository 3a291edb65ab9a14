"""The program `batchfs`: where it is, calling it, and its failures as exceptions."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._errors import Error, InvalidArgument, NoMemory, NotFound, NotSupported
from ._version import VERSION

_BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "batchfs")
_CLASSES: dict[str, type[Error]] = {"invalid_argument": InvalidArgument, "usage": InvalidArgument,
                                    "not_found": NotFound, "not_supported": NotSupported,
                                    "no_memory": NoMemory}
_PROGRESS_AFTER = 1.0  # seconds
_PROGRESS_EVERY = 0.5


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """The program's path: `program`, the variable BATCHFS, the one in this package, or the one in
    PATH.

    Raises NotFound.
    """
    if program is not None:
        return _named(os.fspath(program), "program=")
    if named := os.environ.get("BATCHFS"):
        return _named(named, "the variable BATCHFS")
    if os.access(_BUNDLED, os.X_OK):
        return _BUNDLED
    found = shutil.which("batchfs")
    if found is None:
        raise NotFound("the program batchfs is not in PATH and not in this package; install the "
                       "wheel that contains it or the Debian package (tools/package makes both), "
                       "or name the program with program= or the variable BATCHFS")
    return os.path.abspath(found)


def _named(program: str, by: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NotFound(f"there is no program '{program}', which {by} names")
    return os.path.abspath(found)


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Options of the program from Python's: cache_dir="/x" is --cache-dir=/x; True is a flag, a
    list repeats.

    stores={"imerg": "s3://b/imerg.zarr"} is --store=imerg=s3://b/imerg.zarr.
    """
    words = []
    for name, value in options.items():
        if name == "stores":
            words += [f"--store={other}={place}" for other, place in named_stores(value).items()]
            continue
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            if isinstance(one, os.PathLike) or name == "cache_dir":
                one = os.path.abspath(os.fspath(one))
            words.append(option if one is True else f"{option}={one}")
    return words


def view_words(view: Any) -> tuple[list[str], str | None]:
    """The words that name a view, and what to write to standard input for them."""
    if isinstance(view, Mapping):
        return ["--view=-"], view_json(view)
    return [f"--view={os.path.abspath(os.fspath(view))}"], None


def view_json(view: Mapping[str, Any]) -> str:
    try:
        return json.dumps(view, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the view cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Converts values without a JSON form: mappings, paths, numpy's numbers, arrays and times."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None and kind in "mM":
        return value.astype(str).tolist()
    if kind is not None and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}")


_KIND = re.compile(r"icechunk\+|reference::|")
_FILE = re.compile(r"file:(//(localhost(?=/))?|(?=/))", re.IGNORECASE)
# Text that the program refuses or reads as a URL: s3:/bucket and file:path are mistakes.
_URL = re.compile(r"(file|https?|s3a?|gs|gcs|az|azure|abfss?):/|file:", re.IGNORECASE)


def local_path(place: str) -> str | None:
    """The path that a place is, without "file:"; None for a URL."""
    if file := _FILE.match(place):
        return place[file.end():]
    return None if "://" in place or _URL.match(place) else place


def store_word(store: str | os.PathLike[str]) -> str:
    """The store as a word of a command line: never taken for an option, and the same in any
    directory."""
    text = os.fspath(store)
    kind = _KIND.match(text)
    assert kind is not None
    path = local_path(text[kind.end():])
    return text if not path else kind[0] + os.path.abspath(path)


def named_stores(stores: Mapping[str, str | os.PathLike[str]] | None) -> dict[str, str]:
    """Further stores by name, their places as words of a command line. Raises InvalidArgument."""
    if stores is None:
        return {}
    if not isinstance(stores, Mapping):
        raise InvalidArgument("stores= gives further stores by name: stores={'imerg': "
                              "'s3://bucket/imerg.zarr'}")
    return {str(name): store_word(place) for name, place in stores.items()}


def shown_store(store: str) -> str:
    """The store as texts may show it: without a password, and without what follows '?', which may
    be a signature."""
    place = re.sub(r"^(\w+://[^/@:]*:)[^/]*@", r"\1xxx@", store)
    return re.sub(r"\?.*", "?xxx", place, flags=re.S) if "://" in place else place


def run_program(program: str, words: Iterable[str], *, stdin: str | None = None, doing: str) -> str:
    """The program's output. Raises its error; `doing` is shown on a terminal when it takes long."""
    return run_program_bytes(program, words, stdin=stdin, doing=doing).decode(errors="replace")


def run_program_bytes(program: str, words: Iterable[str], *, stdin: str | None = None,
                      doing: str) -> bytes:
    """The program's binary output."""
    environment = os.environ | {"BATCHFS_ERRORS": "json"}
    try:
        process = subprocess.Popen([program, *words],
                                   stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    except OSError as error:
        raise NotFound(f"the program '{program}' cannot be run: {error.strerror}") from None
    except ValueError as error:  # a NUL in a word
        raise InvalidArgument(str(error)) from None
    with process, progress(doing):
        try:
            out, said = process.communicate(None if stdin is None else stdin.encode())
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        text = said.decode(errors="replace")
        # Only views are written to standard input.
        raise failure(program, process.returncode,
                      text if stdin is None else text.replace("standard input", "the view"))
    return out


def failure(program: str, status: int, said: str) -> Error:
    """The exception of a call that ended with `status` and wrote `said` to standard error."""
    if status < 0:
        return Error(f"the program '{program}' was killed by signal {-status}; if memory had run "
                     "out, pass a smaller memory=")
    line = said.strip().rpartition("\n")[2]
    try:
        told = json.loads(line)
        return _CLASSES.get(told["code"], Error)(told["message"])
    except (ValueError, TypeError, KeyError):
        pass
    text = line.partition(" failed: ")[2] or line or f"it exited with status {status}"
    return Error(text)


_checked: set[tuple[str, int, int]] = set()  # programs that are of this version


class VersionCheck:
    """Asks a program for its version while something else is done."""

    def __init__(self, program: str):
        self._program = program
        try:
            at = os.stat(program)
        except OSError as error:
            raise NotFound(f"the program '{program}' cannot be run: {error.strerror}") from None
        self._identity = (program, at.st_mtime_ns, at.st_size)
        self._process: subprocess.Popen[bytes] | None = None
        if self._identity not in _checked:
            # calling the program itself reports why it cannot run
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen([program, "--version"], stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def finish(self) -> None:
        """Raises NotSupported where the versions differ."""
        if self._process is None:
            return
        with self._process as process:
            out, _ = process.communicate()
        self._process = None
        words = out.decode(errors="replace").split()
        if words != ["batchfs", VERSION]:
            version = (f"version {words[1]} of batchfs" if len(words) == 2
                       and words[0] == "batchfs" else "not batchfs")
            raise NotSupported(f"the program '{self._program}' is {version}, and this package is "
                               f"version {VERSION}; install both of one version, or name another "
                               "program with program= or the variable BATCHFS")
        _checked.add(self._identity)


@contextlib.contextmanager
def progress(doing: str) -> Iterator[None]:
    """Shows what is being done, and for how long, on a terminal, when it takes more than a
    second."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(doing, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(doing: str, ended: threading.Event) -> None:
    began = time.monotonic()
    if ended.wait(_PROGRESS_AFTER):
        return
    text = printable(doing)
    while True:
        sys.stderr.write(f"\rbatchfs: {text}: {time.monotonic() - began:.0f} s\033[K")
        sys.stderr.flush()
        if ended.wait(_PROGRESS_EVERY):
            break
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()


def printable(text: str) -> str:
    """Without characters that command a terminal or deceive the eye."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
                   for c in text)
