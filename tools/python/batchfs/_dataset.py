"""A view's batches: iteration, single batches, state."""

from __future__ import annotations

import json
import operator
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from . import _core
from ._batch import Batch
from ._device import device_of
from ._errors import Error, InvalidArgument, NotFound
from ._labels import Labels, ViewInfo
from ._mixture import read_until, schedule_of, start_for, starts_of
from ._program import named_stores, shown_store
from ._server import Server, is_store, mistaken_option

T = TypeVar("T")
# The server of a retry may end, too: with another process, which was its only reader.
_RETRIES = 3
_CLOSED = "the dataset is closed; open it again"


class Dataset:
    """The batches of a view, as one rank of a world reads them. Made by `batchfs.open`.

    Iterating yields the rank's batches of one epoch, `epoch`; at its end `epoch` is the next
    number: `for epoch in range(3): for batch in dataset: ...` reads three. After leaving a loop
    before the last batch, the next iteration starts the same epoch again. `dataset[i]` is the
    rank's i-th batch of `epoch`.

    Thread-safe in the reader below, but only one iteration at a time: beginning another ends the
    first. A forked child (a DataLoader worker) gets its own connection with its first call;
    unpickling opens the place again.

    `close()`, the end of a `with` block, and the end of the last reference end the connection, once
    no batch of it is held any more. A server that `batchfs.open` has started ends with its last
    connection.

    For a torch DataLoader use `batchfs.torch.BatchDataset`. `DataLoader(dataset, batch_size=None)`
    works, too, but its workers send every batch to the parent as a pickled copy.
    """

    def __init__(self, place: str | os.PathLike[str],
                 view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *,
                 device: str = "cpu", rank: int = 0, world: int = 1, epoch: int = 0,
                 prefetch: int = 2, mode: str = "auto", device_memory: int = 0,
                 part: str | None = None, program: str | os.PathLike[str] | None = None,
                 start: Mapping[str, Any] | None = None, **options: Any):
        rank, world, epoch, prefetch, device_memory = (
            _whole_number(name, value)
            for name, value in (("rank", rank), ("world", world), ("epoch", epoch),
                                ("prefetch", prefetch), ("device_memory", device_memory)))
        if prefetch < 0:
            raise InvalidArgument("prefetch is a number of batches, 0 or more")
        core_device = device_of(device)
        if options.get("cache_dir") is not None:  # a pickled dataset has the same
            options["cache_dir"] = os.path.abspath(os.fspath(options["cache_dir"]))
        self._server = _server_of(os.fspath(place), view, device, part, program, start, options)
        # Without a server `view` is a name: is_store() refuses keys and files.
        name = part if self._server is not None else None if view is None else str(view)
        self._arguments: dict[str, Any] = {
            "place": os.fspath(place), "view": view, "device": device, "rank": rank, "world": world,
            "prefetch": prefetch, "mode": mode, "device_memory": device_memory}
        if self._server is not None:
            if view is not None and not isinstance(view, Mapping):
                self._arguments["view"] = os.path.abspath(os.fspath(view))
            self._arguments |= options | {"place": self._server.store, "part": part,
                                          "program": self._server.program, "start": start}
        # no reference to self: a dataset that is dropped ends its server at once
        is_served = self._server is not None

        def connect(at: str) -> _core.Reader:
            try:
                return _core.open(at, name, rank, world, prefetch, mode, core_device, device_memory)
            except Error as error:
                raise (_about_part(error, part, view) if is_served else error) from None

        self._connect: Callable[[str], _core.Reader] = connect
        self._take(self._connect(os.fspath(place)) if self._server is None
                   else self._server.connect(self._connect))
        self._done = 0  # global batches of the epoch that all ranks had read when the pass began
        self._position: _Position | None = None
        self._resumed = False
        # (worker, number of workers) that share this rank's batches.
        self._worker: tuple[int, int] = (0, 1)
        self.set_epoch(epoch)

    def _take(self, reader: _core.Reader) -> None:
        self._open_reader: _core.Reader | None = reader
        self._process = os.getpid()
        self._schema: dict[str, Any] = json.loads(reader.schema_json)
        self._view: dict[str, Any] = json.loads(reader.view_json)
        self._open_info: ViewInfo | None = ViewInfo(self._schema, self._view, reader.coordinate)

    @property
    def _reader(self) -> _core.Reader:
        if self._open_reader is None:
            raise Error(_CLOSED)
        return self._open_reader

    def _call(self, call: Callable[[_core.Reader], T]) -> T:
        """call(the reader); if the server has ended, starts another one and retries."""
        reader = self._reader
        for _ in range(_RETRIES):
            try:
                return call(reader)
            except Error:
                if self._server is None or reader.mode != "none" or reader.is_outdated:
                    raise
                started = self._server.ensure()
                # A forked child's server may have ended with its parent.
                if started and os.getpid() == self._process:
                    warnings.warn(f"the server of {shown_store(self._server.store)} ended and was "
                                  "started again; the read that failed is repeated, and "
                                  "nothing is to be done",
                                  RuntimeWarning, stacklevel=4)
        return call(reader)

    def close(self) -> None:
        """Ends the connection, and with the last one its server. Batches that are held stay valid,
        and keep it."""
        if self._server is not None:
            self._server.session.leave()
        self._open_reader = None
        self._open_info = None  # it reads coordinates; held batches have it, too

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Properties.

    @property
    def name(self) -> str:
        """The view's name."""
        name: str = self._schema["view"]
        return name

    @property
    def schema(self) -> dict[str, Any]:
        """schema.json: tensors, samples, batches, epochs, coordinates."""
        return self._schema

    @property
    def view(self) -> dict[str, Any]:
        """view.json: the view with every default filled in."""
        return self._view

    @property
    def rank(self) -> int:
        return int(self._arguments["rank"])

    @property
    def world(self) -> int:
        return int(self._arguments["world"])

    @property
    def mode(self) -> str:
        """How batches come: "client" (decoded here, on the GPU), "server" (device memory of the
        server), "shm" (its shared memory) or "files" (of the mount).

        On a GPU, batches of the last two are copied to it.
        """
        return self._reader.mode

    @property
    def why_files(self) -> str:
        """Why `mode` is "files" although the hand-off was tried; empty otherwise."""
        return self._reader.why_files

    @property
    def why_copied(self) -> str:
        """Why batches were made on the host and copied to the GPU, with how many for each reason;
        empty when none was."""
        return self._reader.why_copied

    def __len__(self) -> int:
        """The rank's batches in a whole epoch."""
        return self._reader.count()

    def __repr__(self) -> str:
        if self._open_reader is None:
            return f"<batchfs.Dataset {self.name}: closed>"
        return (f"<batchfs.Dataset {self.name}: {len(self)} of {self._schema['batches']} batches, "
                f"rank {self.rank} of {self.world}, {self.mode}>")

    # Batches.

    @property
    def epoch(self) -> int:
        """The epoch that an iteration is in, or that the next one reads."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads this epoch, from its start. A running one raises RuntimeError at
        its next batch."""
        epoch = _whole_number("epoch", epoch)
        if epoch < 0:
            raise InvalidArgument("an epoch is 0 or more")
        self._epoch = epoch
        self._done = 0
        self._resumed = False
        self._position = None

    def remaining(self) -> int:
        """The batches that the next iteration gives: those of an epoch, or what is left after
        `load_state_dict`."""
        return self._reader.count(self._done if self._resumed else 0)

    def __iter__(self) -> Iterator[Batch]:
        if (self._position is not None and self._position.count > 0 and self._process == os.getpid()
                and self._reader.left() == 0):
            # All batches were delivered. Trainers that count batches do not ask for the end.
            self.set_epoch(self._epoch + 1)
        if not self._resumed:
            self._done = 0
        self._resumed = False
        return _Pass(self)

    def __getitem__(self, index: int) -> Batch:
        index = _whole_number("the number of a batch", index)
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there are {count} batches, not one of number {index}")
        return self.batch(self.rank + (index % count) * self.world)

    def batch(self, number: int, epoch: int | None = None) -> Batch:
        """One batch by its global number, of any rank; of `epoch`, or of the dataset's epoch."""
        core = self._call(lambda reader: reader.get(self._epoch if epoch is None else epoch,
                                                    number))
        return self._batch_of(core)

    def _batch_of(self, core: _core.Batch) -> Batch:
        if self._open_info is None:  # closed by another thread meanwhile
            raise Error(_CLOSED)
        return Batch(core, Labels(self._open_info, core))

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is. Plain numbers and strings, to be saved with the model.

        All ranks are taken to have read as many batches as this one (as they have between two
        training steps), so the state is the same on every rank, and any rank's will do. A batch
        counts as read once it was given out.

        For a mixture, "start" records which samples of each view were read: a mixture of the same
        views, with other weights or another batch, that has it as its "start" reads the others.
        """
        state: dict[str, Any] = {"version": 1, "view": self.name, "epoch": self._epoch,
                                 "batch_size": self._schema["batch_size"],
                                 "batches_done": min(self._done + self._taken(),
                                                     self._schema["batches"])}
        if "components" in self._schema:
            state["start"] = read_until(self._schema, self._view, self._epoch,
                                        state["batches_done"])
            state["schedule"] = schedule_of(self._schema, self._view)
        return state

    def _taken(self) -> int:
        """Global batches that were read in the running pass, over all ranks and workers."""
        return (self._position.count
                - self._reader.left()) * self.world * self._worker[1] if self._position else 0

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration resumes where `state` was taken, with any world size.

        With D batches of the epoch done, rank R of W reads the batches D + R, D + R + W, ... of it:
        every batch that was not read is read once, by one rank. The ranks then differ by at most
        one batch, or by none where the view's "remainder" is "drop" or "pad", by the rule that it
        has for whole epochs. Epochs after it are split as ever. Without lanes the order of samples
        does not depend on the batch size, so that may differ too, if what was read is a whole
        number of the new batches.

        A mixture of the same views with other weights, "repeat" or "samples", another "mixing" or
        batch size continues where the state was taken: it begins with its epoch 0 and reads what
        was not read of each view, each sample once in a pass through the view. Views that are new
        begin, those of weight 0 keep their place. A store is served anew for it; of a mount or a
        socket the view must have the state's "start".
        """
        # A mixed state is compared by the names of its views.
        is_mixed = "components" in self._schema and "schedule" in state
        if state.get("version") != 1 or (state.get("view") != self.name and not is_mixed):
            raise InvalidArgument(f"not a state of the view '{self.name}'")
        if "schedule" in state and "components" not in self._schema:
            raise InvalidArgument(f"the state is of a mixture, and the view '{self.name}' is none")
        done = state["batches_done"]
        if "components" in self._schema:
            start, is_same = start_for(self._schema, self._view, state)
            if is_same and done * state["batch_size"] % self._schema["batch_size"] != 0:
                start, is_same = state["start"], False
            if start != starts_of(self._schema):
                self._serve_from(start)
            if not is_same:
                self.set_epoch(0)
                return
        if state["batch_size"] != self._schema["batch_size"]:
            if self._view.get("order", {}).get("lanes", 1) > 1:
                raise InvalidArgument("the view has lanes, so that its order depends on the batch "
                                      f"size: continue with batches of {state['batch_size']}, or "
                                      "at the start of an epoch")
            samples = done * state["batch_size"]
            if samples % self._schema["batch_size"] != 0:
                raise InvalidArgument(f"{samples} samples were read, no whole number of batches "
                                      f"of {self._schema['batch_size']}; continue with batches of "
                                      f"{state['batch_size']}")
            done = samples // self._schema["batch_size"]
        if not 0 <= done <= self._schema["batches"]:
            raise InvalidArgument(f"an epoch has {self._schema['batches']} batches, the state says "
                                  f"that {done} are done")
        self.set_epoch(state["epoch"])
        self._done = done
        self._resumed = True

    def _serve_from(self, start: dict[str, Any]) -> None:
        """The same view with another "start". Raises InvalidArgument where this process did not
        choose what is served."""
        if self._server is None:
            raise InvalidArgument("the state is of a mixture with other weights or another batch: "
                                  "to continue where it was, "
                                  f'write "start": {json.dumps(start)} into this one')
        server = self._server.with_start(start)
        self._take(server.connect(self._connect))
        self._server.session.leave()
        self._server = server
        self._arguments["start"] = start
        self.set_epoch(0)

    def of_rank(self, rank: int, world: int) -> Dataset:
        """The same dataset for another rank, at the same place of the same epoch."""
        return _reopen(self._arguments | {"rank": rank, "world": world}, self.state_dict(),
                       self._resumed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._arguments, self.state_dict(), self._resumed)


def _whole_number(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r} "
                        f"({type(value).__name__})") from None


class _Position:
    """Which pass through an epoch the dataset is in. The pass has it too: neither keeps the
    other."""

    __slots__ = ("count",)

    def __init__(self, count: int):
        self.count = count


class _Pass(Iterator[Batch]):
    """One pass over an epoch. A batch that cannot be made raises; the next call returns the batch
    after it."""

    __slots__ = ("_dataset", "_position", "_ended")

    def __init__(self, dataset: Dataset):
        worker, workers = dataset._worker
        self._dataset = dataset
        self._position = _Position(dataset._reader.count(dataset._done, worker, workers))
        self._ended = False
        dataset._call(lambda reader: reader.start(dataset._epoch, dataset._done, worker, workers))
        dataset._position = self._position

    def __next__(self) -> Batch:
        dataset = self._dataset
        if dataset._position is not self._position:
            if self._ended:
                raise StopIteration
            raise RuntimeError("another iteration of this dataset has begun, or "
                               "its position was set")
        core = dataset._call(lambda reader: reader.next())
        if core is None:
            dataset.set_epoch(dataset._epoch + 1)
            self._ended = True
            raise StopIteration
        return dataset._batch_of(core)


def _reopen(arguments: dict[str, Any], state: dict[str, Any], resumed: bool) -> Dataset:
    dataset = Dataset(**arguments)
    if resumed:
        dataset.load_state_dict(state)
    else:
        dataset.set_epoch(state["epoch"])
    return dataset


def _has_split(view: Any) -> bool:
    """May the view have a "split"? A file is not parsed, only searched for the word."""
    if isinstance(view, Mapping):
        return "split" in view
    try:
        return "split" in pathlib.Path(view).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError):
        return True


def _about_part(error: Error, part: str | None, view: Any) -> Error:
    """The error of opening a store: its server has one view, or the parts of one, which it calls
    views."""
    views = str(error).partition("there are ")[2].partition(" (")[0]
    if part is None and str(error).startswith("say which view"):
        return InvalidArgument('the view has a "split": pass a part, '
                               f'part={views.split(", ")[0]!r} for instance; there are {views}')
    if part is not None and str(error).startswith(f"there is no view '{part}'"):
        if not _has_split(view):
            return NotFound(f"the view has no part '{part}': it has no \"split\"; leave "
                            "part out, or add one")
        return NotFound(f"the view has no part '{part}'; there are {views}" if views
                        else f"the view has no part '{part}'")
    return error


def _server_of(place: str, view: Any, device: str, part: str | None,
               program: str | os.PathLike[str] | None, start: Mapping[str, Any] | None,
               options: dict[str, Any]) -> Server | None:
    """Starts the server of a store; returns None for a mount or a socket."""
    if is_store(place, view):
        return Server(place, view, {"gpu": "off" if device in ("cpu", "host") else "auto"}
                          | options, program, start)
    given = [name for name, value in {"part": part, "program": program, "start": start, **options}
                 .items() if value is not None]
    if given:
        raise mistaken_option(given[0], place, view, part)
    return None


def open(place: str | os.PathLike[str],
         view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *, device: str = "cpu",
         rank: int = 0, world: int = 1, epoch: int = 0, prefetch: int = 2, mode: str = "auto",
         device_memory: int = 0, part: str | None = None, memory: str | int | None = None,
         cache_dir: str | os.PathLike[str] | None = None,
         stores: Mapping[str, str | os.PathLike[str]] | None = None,
         start: Mapping[str, Any] | None = None, program: str | os.PathLike[str] | None = None,
         **options: Any) -> Dataset:
    """Opens a view of a store, or one that is served already.

    place          a store (a path, s3://, gs://, az://, http(s)://); or a mount, a view's directory
                   in it (DIR/views/NAME), or a socket of `batchfs serve`
    view           of a store: the view's keys, or its file (JSON or YAML); else the view's name,
                   where the place has several
    device         "cpu"; "cuda" or "cuda:N": batches come in this GPU's memory, made there by the
                   server where it can, else copied
    rank, world    this process's share: rank R of W reads the batches R, R + W, ...
    epoch          the first to read
    prefetch       batches that are made ready beyond those that are held; each takes a batch of
                   memory
    mode           "auto": the hand-off where it can be reached, else files; "shm", "server": only
                   the hand-off, with batches in host or in GPU memory; "client": the same, but
                   decoded in this process, on its GPU; "files"
    device_memory  bytes of the GPU that decoding in this process may take; 0: a quarter of what is
                   free, at most 24 GiB

    A store is served by a process in the background, `batchfs serve`, which all processes of a job
    share that open the same store, view and options, and which ends with the last of them, however
    that ends. For it are

    part           the part of a view with "split"
    stores         further stores by the names that the view's "sources" have for them: {"imerg":
                   "s3://bucket/imerg.zarr"}
    start          of a mixture: the "start" of the view, in place of its own
    memory         the server's memory ("8GB"); by default half of the machine's
    cache_dir      where fetched objects of a remote store are kept
    program        the program batchfs; by default that of the variable BATCHFS, of this package, or
                   in PATH
    options        other options of `batchfs serve`: threads=4, group="x", anon=True,
                   region="eu-west-1", ...
    """
    given = options | {name: value for name, value in (("memory", memory), ("cache_dir", cache_dir),
                                                       ("stores", named_stores(stores) or None))
                       if value is not None}
    return Dataset(place, view, device=device, rank=rank, world=world, epoch=epoch,
                   prefetch=prefetch, mode=mode, device_memory=device_memory, part=part,
                   program=program, start=start, **given)
