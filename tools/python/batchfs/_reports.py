"""Reports of the program about stores and views, as objects; and views from keyword arguments."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._errors import Error
from ._html import frame_of, page_of
from ._program import (find_program, option_words, run_program, shown_store, store_word, view_json,
                       view_words)


class Record(Mapping[str, Any]):
    """A JSON object: its values by key, and by attribute where the key is a name."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._values:
            return self[name]
        raise AttributeError(f"there is no '{name}'; there are {', '.join(map(str, self._values))}"
                             if not name.startswith("_") else name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._values if key.isidentifier())]

    def __repr__(self) -> str:
        return repr(self._values)

    def to_dict(self) -> dict[str, Any]:
        """The whole of it as plain dicts and lists; a copy."""
        copied: dict[str, Any] = json.loads(json.dumps(self._values))
        return copied


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(one) for one in value]
    return value


class Report(Record):
    """Output of a command with --json. `str()` is its output without --json."""

    def __init__(self, title: str, values: dict[str, Any], text: str | Callable[[], str]):
        super().__init__(values)
        self._title = title
        self._text = text

    def __repr__(self) -> str:
        if callable(self._text):
            try:
                self._text = self._text()
            except Error as error:  # of a store that is gone: a repr does not fail
                return f"<batchfs: {self._title}; {error}>"
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return page_of(self._title, self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Report, (self._title, self._values, repr(self))


def _values_of(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise Error("the program batchfs did not answer with JSON; is it of this "
                    "package's version?")
    return values


def _report(command: str, store: str | os.PathLike[str], words: list[str], stdin: str | None,
            program: str | os.PathLike[str] | None) -> Report:
    found, place = find_program(program), store_word(store)
    title = f"{command} {shown_store(place)}"

    def run(*more: str) -> str:
        return run_program(found, [command, place, *words, *more], stdin=stdin, doing=title)

    return Report(title, _values_of(run("--json")), run)


def inspect(store: str | os.PathLike[str], *, program: str | os.PathLike[str] | None = None,
            **options: Any) -> Report:
    """The contents of a store: groups, arrays, chunks, codecs, sizes (`batchfs inspect`).

    `options` are those of the program: inspect("s3://bucket/era5.zarr", anon=True).
    """
    return _report("inspect", store, option_words(options), None, program)


def plan(store: str | os.PathLike[str], view: Mapping[str, Any] | str | os.PathLike[str], *,
         program: str | os.PathLike[str] | None = None, **options: Any) -> Report:
    """The batches of a view and what they cost to read, with advice (`batchfs plan`): part=,
    world=, nodes=, memory=, stores=."""
    words, stdin = view_words(view)
    return _report("plan", store, [*words, *option_words(options)], stdin, program)


def statistics(store: str | os.PathLike[str], view: Mapping[str, Any] | str | os.PathLike[str], *,
               output: str | os.PathLike[str] | None = None,
               program: str | os.PathLike[str] | None = None, **options: Any) -> Report:
    """Mean, deviation and extremes of what a view selects (`batchfs statistics`): per=, tendency=,
    part=, stores=.

    Reads the data. `output` is a file for the view's "normalize".
    """
    words, stdin = view_words(view)
    found, place = find_program(program), store_word(store)
    title = f"statistics {shown_store(place)}"
    with tempfile.TemporaryDirectory(prefix="batchfs-") as folder:
        file = (os.path.abspath(os.fspath(output)) if output is not None
                else os.path.join(folder, "statistics.json"))
        text = run_program(found, ["statistics", place, *words, f"--output={file}",
                                   *option_words(options)], stdin=stdin, doing=title)
        with open(file, encoding="utf-8") as written:
            values = _values_of(written.read())
    return Report(title, values, text)


def view(store: str | os.PathLike[str], *, name: str | None = None, group: str | None = None,
         level: int | str | None = None, variables: Any = None,
         select: Mapping[str, Any] | None = None, window: Mapping[str, Any] | None = None,
         tensors: Mapping[str, Any] | None = None, batch: Any = None, order: Any = None,
         epochs: int | None = None, dtype: str | None = None, normalize: Any = None,
         missing: Any = None, samples: Any = None, reserve: Any = None, split: Any = None,
         formats: list[str] | None = None, xbatcher: Any = None,
         stores: Mapping[str, str | os.PathLike[str]] | None = None,
         options: Mapping[str, Any] | None = None, program: str | os.PathLike[str] | None = None,
         **others: Any) -> dict[str, Any]:
    """A view of a store: a dict for `open`, `plan` and `statistics`, or to be written to a file
    with json.dump.

    The arguments are the keys of batchfs-view(5); they are checked against the store. Without a
    "window" or "xbatcher", the view is the starter view of `batchfs view`, with the keys that are
    given in place of its own. `options` are those of the program for the store: {"anon": True};
    `stores` are further stores, which "sources" names.
    """
    given = {"name": name, "group": group, "level": level, "variables": variables, "select": select,
             "window": window, "tensors": tensors, "batch": batch, "order": order, "epochs": epochs,
             "dtype": dtype, "normalize": normalize, "missing": missing, "samples": samples,
             "reserve": reserve, "split": split, "formats": formats, "xbatcher": xbatcher, **others}
    keys: dict[str, Any] = json.loads(view_json({key: value for key, value in given.items()
                                                 if value is not None}))
    found, place = find_program(program), store_word(store)
    words = option_words(options or {})
    if "window" not in keys and "xbatcher" not in keys:
        starting = [f"--{key}={keys[key]}" for key in ("name", "group") if key in keys]
        starter = _values_of(run_program(found, ["view", place, *starting, *words],
                                         doing=f"looking at {shown_store(place)}"))
        if "variables" in keys or "tensors" in keys:
            for key in ("variables", "tensors"):
                starter.pop(key, None)
        keys = starter | keys
    run_program(found,
                ["plan", place, "--view=-", "--json", *words, *option_words({"stores": stores})],
                stdin=view_json(keys), doing=f"checking a view of {shown_store(place)}")
    return keys


class Page:
    """The result of `show`: an HTML page in one file. Notebooks show it unchanged, in a frame."""

    def __init__(self, title: str, html: str):
        self._title = title
        self.html = html

    def __repr__(self) -> str:
        return (f"<batchfs: {self._title}; a page of {len(self.html):,} characters, "
                "save(file) writes it>")

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(file, "w", encoding="utf-8") as written:
            written.write(self.html)

    def _repr_html_(self) -> str:
        return frame_of(self._title, self.html)


def show(store: str | os.PathLike[str],
         view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *,
         program: str | os.PathLike[str] | None = None, **options: Any) -> Page:
    """A page with pictures of what is in a store (`batchfs show`): pictures=, read=, memory=,
    anon=.

    `store` may also be the directory of a mount or the socket of a server; the page then has their
    views. Reads a small part of each variable.
    """
    words, stdin = view_words(view) if view is not None else ([], None)
    found, place = find_program(program), store_word(store)
    title = f"show {shown_store(place)}"
    return Page(title, run_program(found, ["show", place, *words, *option_words(options)],
                                   stdin=stdin, doing=title))
