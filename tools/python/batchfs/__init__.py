"""Training batches of Zarr stores, made by batchfs, read without copying them.

    import batchfs

    train = batchfs.open("s3://bucket/era5.zarr", view="view.json")
    for epoch in range(3):
        for batch in train:
            x, y = batch["x"].torch(), batch["y"].torch()

A batch has labels: `batch.index` (numbers of the samples), `batch.labels` (where their windows
begin), `batch["x"].coords`, and all of it as `batch.xarray()`.

`open` takes a store and a view, and serves it in the background; or a mount (`batchfs mount`), a
view's directory in it, or the socket of `batchfs serve`. Batches come over the hand-off where it
can be reached: shared memory, ready before it is asked for; else from the mount's files. They are
the same bytes either way.

`view` makes a view from keyword arguments; `inspect`, `plan` and `statistics` show what is in a
store, what a view gives and costs, and the numbers that its "normalize" needs. `show` makes a page
with pictures of all of it.

`create` makes an output Zarr store for predictions, which go to the places of the samples that they
were made from.
"""

from ._batch import Batch, Tensor
from ._create import create
from ._dataset import Dataset, open
from ._errors import Error, InvalidArgument, NoMemory, NotFound, NotSupported
from ._predictions import Predictions
from ._reports import Page, Report, inspect, plan, show, statistics, view
from ._version import VERSION as __version__

__all__ = ["Batch", "Dataset", "Error", "InvalidArgument", "NoMemory", "NotFound", "NotSupported",
           "Page", "Predictions", "Report", "Tensor", "__version__", "create", "inspect", "open",
           "plan", "show", "statistics", "view"]
