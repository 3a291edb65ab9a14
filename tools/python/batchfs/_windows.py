"""The samples of an epoch: their batches and the starts of their windows."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from typing import Any

import numpy as np

from ._dataset import Dataset
from ._errors import Error, InvalidArgument
from ._program import find_program, option_words, run_program, run_program_bytes, shown_store, store_word, view_words

# Options of `batchfs serve` that `batchfs plan` does not have.
_OF_SERVER = {"gpu", "memory", "prefetch", "device", "place", "view", "rank", "world", "mode", "device_memory", "part", "program"}


class Windows:
    """The table that `batchfs plan --windows` writes, sorted by sample."""

    def __init__(self, table: np.ndarray, dims: list[str], epoch: int, dtypes: dict[str, str],
                 shapes: dict[str, tuple[int, ...]]):
        self.dims = dims
        self.epoch = epoch
        self.dtypes = dtypes  # by tensor
        self.shapes = shapes  # by tensor, of a full batch
        self.reduce = False
        self.store = ""
        self.batches = table[:, 0]  # of the rows of the epoch, in its order
        self.samples, first, self.row_of = np.unique(table[:, 1], return_index=True, return_inverse=True)
        self.row_of = self.row_of.reshape(-1)
        self.starts = np.ascontiguousarray(table[first, 2:])
        counts = [len(np.unique(self.starts[:, d])) for d in range(len(dims))]
        # Of a grid every combination of starts is a sample.
        self.is_grid = math.prod(counts) == len(self.samples)
        self._inspect: Any = None

    @staticmethod
    def of(data: Dataset, store: str | os.PathLike[str] | None, part: str | None, epoch: int,
           program: str | os.PathLike[str] | None) -> Windows:
        """The samples of a dataset's view. Raises InvalidArgument where it is served without saying of which store."""
        arguments = data._arguments
        stdin: str | None
        if data._server is not None:
            place = data._server.store
            words, stdin = data._server.view_words, data._server.view
            part = arguments.get("part")
            program = data._server.program
            options = {key: value for key, value in arguments.items() if key not in _OF_SERVER}
        elif store is not None:
            place = store_word(store)
            words, stdin = view_words(data.view)
            options = {}
        else:
            raise InvalidArgument("a mount or a socket does not say where each sample lies: pass store= as well, the store that it "
                                  "serves")
        found = find_program(program)
        base = option_words(options)
        text = run_program_bytes(found, ["plan", place, *words, "--windows", f"--epoch={epoch}", *base,
                                         *option_words({"part": part})], stdin=stdin, doing=f"planning {shown_store(place)}")
        info = data._open_info
        if info is None:
            raise Error("the dataset is closed; open it again")
        table = np.load(io.BytesIO(text), allow_pickle=False)
        dims = [str(window["dim"]) for window in info.windows]
        if table.ndim != 2 or table.shape[1] != 2 + len(dims):
            raise InvalidArgument(f"the store '{shown_store(place)}' gives other windows than the dataset; pass the store that it serves")
        windows = Windows(table, dims, epoch, {name: entry["dtype"] for name, entry in info.tensors.items()},
                          {name: tuple(entry["shape"]) for name, entry in info.tensors.items()})
        windows.store = place
        windows._inspect = lambda: run_program(found, ["inspect", place, "--json", *[word for word in base
                                                                                    if not word.startswith("--store=")]],
                                               doing=f"looking at {shown_store(place)}")
        return windows

    def arrays(self) -> dict[str, Any]:
        """Dims and attributes of the store's arrays, from `batchfs inspect`."""
        try:
            arrays: dict[str, Any] = json.loads(self._inspect())["arrays"]
        except (Error, ValueError, KeyError):  # options of other commands: attributes that tensors share will do
            return {}
        return arrays | {key.rpartition("/")[2]: value for key, value in arrays.items()}

    def digest(self) -> str:
        """Of which samples there are, and where."""
        known = hashlib.sha256(self.samples.tobytes())
        known.update(self.starts.tobytes())
        return known.hexdigest()[:32]


