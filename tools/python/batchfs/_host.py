"""Arrays of any library in the memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._batch import Tensor
from ._errors import InvalidArgument


def on_host(values: Any) -> np.ndarray:
    """As an array of numpy: of a GPU's tensor one copy to the host, on the stream that made it."""
    if isinstance(values, Tensor):
        return values.numpy()
    module = type(values).__module__.split(".")[0]
    if module == "torch":
        values = values.detach()
        host = values.cpu()  # waits for the current stream
        return np.asarray((host.float() if str(host.dtype) == "torch.bfloat16" else host).numpy())
    if module == "cupy":
        return np.asarray(values.get())
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] == 1:
        return np.from_dlpack(values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a prediction is an array, not {type(values).__name__}: {error}") from None
    if array.dtype.kind == "O":
        raise InvalidArgument(f"a prediction is an array of numbers, not {type(values).__name__}")
    return array
