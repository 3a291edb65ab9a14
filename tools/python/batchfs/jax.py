"""batchfs for JAX: batches as arrays that are sharded over the devices of a mesh.

    import jax
    from jax.sharding import NamedSharding, PartitionSpec
    import batchfs, batchfs.jax

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    train = batchfs.open("era5.zarr", "view.json", rank=jax.process_index(),
                         world=jax.process_count())
    for arrays in batchfs.jax.sharded(train, sharding):
        state = step(state, arrays["x"], arrays["y"])

Each process reads the batches of its rank, and puts each device's samples on that device. The
samples of all processes together are the array: the number of samples of a batch must be a multiple
of the devices along its first dimension.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import jax

from ._batch import Batch
from ._errors import InvalidArgument


def on_devices(batch: Batch, sharding: jax.sharding.Sharding) -> dict[str, jax.Array]:
    """The tensors of a batch, of all processes together, as arrays with this sharding. Returns
    before they are copied."""
    result: dict[str, jax.Array] = {}
    for name, tensor in batch.items():
        try:
            result[name] = jax.make_array_from_process_local_data(sharding, tensor.numpy())
        except ValueError as error:
            raise InvalidArgument(f"the tensor '{name}' of {tensor.shape} cannot be sharded: "
                                  f"{error}; choose a batch size that "
                                  'the devices divide, with '
                                  '"remainder": "drop" or "pad"') from error
    return result


def sharded(batches: Iterable[Batch], sharding: jax.sharding.Sharding, *,
            ahead: int = 1) -> Iterator[dict[str, jax.Array]]:
    """An epoch of batches as sharded arrays. `ahead` of them are copied to the devices while
    another is used."""
    # A batch stays as long as it may be copied from: on CPUs arrays may share its memory.
    waiting: deque[tuple[Batch, dict[str, Any]]] = deque()
    for batch in batches:
        waiting.append((batch, on_devices(batch, sharding)))
        if len(waiting) > ahead:
            yield waiting.popleft()[1]
    while waiting:
        yield waiting.popleft()[1]
