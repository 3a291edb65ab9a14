"""Training batches of Zarr stores, made by batchfs, read without copying them.

    import batchfs

    train = batchfs.open("/mnt/era5/views/train")
    for epoch in range(3):
        for batch in train:
            x, y = batch["x"].torch(), batch["y"].torch()

A batch has labels: `batch.index` (numbers of the samples), `batch.labels` (where their windows begin), `batch["x"].coords`,
and all of it as `batch.xarray()`.

`open` takes a mount (`batchfs mount`), a view's directory in it, or the socket of `batchfs serve`. Batches come
over the hand-off where it can be reached: shared memory, ready before it is asked for; else from the mount's
files. They are the same bytes either way.
"""

from ._batch import Batch, Tensor
from ._dataset import Dataset, open
from ._errors import Error, InvalidArgument, NoMemory, NotFound, NotSupported

__all__ = ["Batch", "Dataset", "Error", "InvalidArgument", "NoMemory", "NotFound", "NotSupported", "Tensor", "open"]
__version__ = "0.2.0"
