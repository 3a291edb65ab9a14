"""How batches come to a GPU as long as they are delivered in host memory: each is copied."""

from __future__ import annotations

from typing import Any

from ._batch import Copier, Tensor
from ._errors import NotSupported


def copier_for(device: str) -> Copier | None:
    """What copies a tensor to `device`; None for the host. Raises NotSupported."""
    if device in ("cpu", "host"):
        return None
    if device.split(":")[0] != "cuda":
        raise NotSupported(f"there is no device '{device}': it is cpu, cuda or cuda:N")
    reasons = []
    try:
        import torch

        if torch.cuda.is_available():
            def with_torch(tensor: Tensor) -> Any:
                return torch.from_dlpack(tensor).to(device)

            return with_torch
        reasons.append("torch sees no CUDA device")
    except ImportError:
        reasons.append("torch is not installed")
    try:
        import cupy

        number = int(device.partition(":")[2] or 0)
        if cupy.cuda.runtime.getDeviceCount() > number:
            def with_cupy(tensor: Tensor) -> Any:
                with cupy.cuda.Device(number):
                    return cupy.asarray(tensor.numpy())

            return with_cupy
        reasons.append(f"cupy sees no CUDA device {number}")
    except ImportError:
        reasons.append("cupy is not installed")
    except Exception as error:  # cupy without a driver
        reasons.append(f"cupy: {error}")
    raise NotSupported(f"batches cannot be brought to {device}: {', '.join(reasons)}; open with device=\"cpu\"")
