"""batchfs for NVIDIA DALI: what `fn.external_source` takes.

    import batchfs, batchfs.dali
    from nvidia.dali import fn, pipeline_def

    train = batchfs.open("/mnt/era5/views/train")

    @pipeline_def(batch_size=train.schema["batch_size"], num_threads=2, device_id=0,
                  prefetch_queue_depth=2)
    def pipeline():
        x, y = fn.external_source(source=batchfs.dali.Source(train, ["x", "y"], held=3),
                                  num_outputs=2, no_copy=True, cycle="raise")
        return x.gpu(), y.gpu()

At the end of an epoch `run()` raises StopIteration, and after `reset()` the next epoch comes: that
is what cycle="raise" is for, without it DALI takes one epoch only. A batch with fewer samples than
the others is one with fewer samples to DALI, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from ._batch import Batch
from ._dataset import Dataset


class Source:
    """Gives a tuple of arrays, one for each of `tensors`, for each batch of an epoch; then the next
    epoch's.

    DALI uses what it was given without a copy (`no_copy=True`) for as many iterations as its
    prefetch_queue_depth: `held` batches are kept alive, to be at least one more than that.
    """

    def __init__(self, dataset: Dataset, tensors: Sequence[str] | None = None, *, held: int = 3):
        self._dataset = dataset
        self._tensors = (tuple(tensors) if tensors is not None
                         else tuple(t["name"] for t in dataset.schema["tensors"]))
        self._held: deque[Batch] = deque(maxlen=held)

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        for batch in self._dataset:
            self._held.append(batch)
            yield tuple(batch[name].numpy() for name in self._tensors)
