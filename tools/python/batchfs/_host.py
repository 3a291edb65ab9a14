"""Arrays of any library in the memory of the host."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._batch import Tensor
from ._errors import InvalidArgument

_CPU = 1  # DLPack's kDLCPU


def on_host(values: Any) -> np.ndarray:
    """The values as a numpy array. A GPU tensor is copied to the host once, on the stream that made
    it."""
    if isinstance(values, Tensor):
        return values.numpy()
    module = type(values).__module__.split(".")[0]
    if module == "torch":
        values = values.detach()
        host = values.cpu()  # waits for the current stream
        return np.asarray((host.float() if str(host.dtype) == "torch.bfloat16" else host).numpy())
    if module == "cupy":
        return np.asarray(values.get())
    if module not in ("numpy", "jax", "jaxlib") and hasattr(values, "__dlpack_device__"):
        if values.__dlpack_device__()[0] == _CPU:
            return np.from_dlpack(values)
        for name in ("torch", "cupy"):
            if name in sys.modules:
                return on_host(sys.modules[name].from_dlpack(values))
        raise InvalidArgument(f"a prediction of {type(values).__name__} is on a GPU: pass a tensor "
                              "of torch, cupy or jax, or copy it to the host")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("a prediction is an array, not "
                              f"{type(values).__name__}: {error}") from None
    if array.dtype.kind == "O":
        raise InvalidArgument(f"a prediction is an array of numbers, not {type(values).__name__}")
    return array
