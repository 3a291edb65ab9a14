"""Views of several stores: writing the stores, and running the commands on them."""

import io
import json
import warnings

import numpy as np
import xarray as xr


def write(path, dataset, version=3, chunks=None, encoding=None):
    """Writes a store with chunks of at most `chunks` by dimension; returns what xarray reads
    back."""
    encodings = {
        name: {"chunks": tuple(min(n, (chunks or {}).get(d, n)) for d, n in zip(v.dims, v.shape))}
        for name, v in dataset.data_vars.items() if v.ndim}
    for name, more in (encoding or {}).items():
        encodings.setdefault(name, {}).update(more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset.drop_encoding().to_zarr(path, zarr_format=version, encoding=encodings,
                                        consolidated=True)
        return xr.open_zarr(path).load()


class SeveralStores:
    """Commands name `first`, then the stores `others` (NAME=URL) with --store unless a test names
    others."""

    def __init__(self, batchfs, folder, first, others=()):
        self.batchfs, self.folder, self.first, self.others = batchfs, folder, first, others

    def command(self, view, stores=None):
        file = self.folder / "view.json"
        file.write_text(json.dumps(view))
        words = [self.first]
        for store in self.others if stores is None else stores:
            words += ["--store", store]
        return [*words, "--view", file]

    def tensors(self, view, *more, stores=None):
        data = self.batchfs.bytes("batch", *self.command(view, stores), "--format", "npz", *more)
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return dict(file)

    def provenance(self, view, stores=None):
        return json.loads(self.batchfs.bytes("batch", *self.command(view, stores), "--format",
                                             "json"))

    def plan(self, view, stores=None):
        return json.loads(self.batchfs.bytes("plan", *self.command(view, stores), "--json"))

    def refusal(self, view, stores=None):
        return self.batchfs.refusal("plan", *self.command(view, stores))
