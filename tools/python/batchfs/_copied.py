"""Tensors and batches that were pickled: copies in the memory of this process, with the interface
of _core's."""

from __future__ import annotations

from typing import Any

import numpy as np


class CopiedTensor:
    """In place of _core.Tensor. `array` holds the values; those of bfloat16 are two-byte
    integers."""

    def __init__(self, name: str, dtype: str, dims: tuple[str, ...], array: np.ndarray):
        self.name = name
        self.dtype = dtype
        self.dims = dims
        self.device: int | None = None
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._array.strides

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def typestr(self) -> str:
        return "<V2" if self.dtype == "bfloat16" else self._array.dtype.str

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {**self._array.__array_interface__, "typestr": self.typestr}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("this tensor was pickled: it is in host memory")

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self._array.data)

    def __dlpack__(self, **options: Any) -> Any:
        if self.dtype == "bfloat16":
            raise BufferError("a bfloat16 tensor that was pickled has no DLPack: use "
                              ".torch() or .numpy()")
        options.pop("stream", None)  # there is none on the host
        return self._array.__dlpack__(**{name: value for name, value in options.items()
                                         if value is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def copy_to(self, target: Any) -> None:
        target[...] = self._array.reshape(-1).view(np.uint8)

    def taken_by(self, take: Any, current_stream: Any) -> Any:
        if self.dtype != "bfloat16":
            return take(self._array.__dlpack__())
        import torch

        return take(self._array.view(np.int16).__dlpack__()).view(torch.bfloat16)


class CopiedBatch:
    """In place of _core.Batch."""

    def __init__(self, epoch: int, number: int, samples: int, tensors: list[CopiedTensor]):
        self.epoch = epoch
        self.number = number
        self.samples = samples
        self.device: int | None = None
        self._tensors = {tensor.name: tensor for tensor in tensors}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def tensor(self, name: str) -> CopiedTensor | None:
        return self._tensors.get(name)

    def taken_by(self, take: Any, current_stream: Any) -> dict[str, Any]:
        return {name: tensor.taken_by(take, current_stream)
                for name, tensor in self._tensors.items()}
