"""A batch and its tensors."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core
from ._copied import CopiedBatch, CopiedTensor
from ._labels import Labels
from ._mixture import components_of
from ._scales import denormalized
from ._xarray import dataset_of


class Tensor:
    """One tensor of a batch, read-only and not copied.

    It implements DLPack (`torch.from_dlpack(t)`, `jax.dlpack.from_dlpack(t)`), in host memory the
    buffer protocol and numpy's `__array_interface__` (`np.asarray(t)`), on a GPU
    `__cuda_array_interface__`. Its memory is valid as long as it, or any array made from it, lives.

    On a GPU, the memory is used again after what the stream that took it, the consumer's current
    one for torch, CuPy and JAX, has to do when the last array goes. Work of another stream must
    have ended by then. Nothing keeps a program from writing to it: it must not, other readers have
    the same memory.

    Pickling copies it to host memory: between processes it travels whole.
    """

    __slots__ = ("_core", "_labels")

    def __init__(self, core: _core.Tensor | CopiedTensor, labels: Labels):
        self._core = core
        self._labels = labels

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor_of, (self._labels, *_parts_of(self))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def dtype(self) -> str:
        """The name that numpy has for it: "float32", "datetime64[ns]"; "bfloat16"."""
        return self._core.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._core.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as numpy's."""
        return self._core.strides

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions, "sample" first."""
        return self._core.dims

    @property
    def coords(self) -> dict[str, np.ndarray]:
        """The labels along each dimension that has the same ones for every sample: those of its
        coordinate, or the names of channels along a stack. The samples' labels are the batch's
        `labels`."""
        return dict(self._labels.coords(self.name))

    def denormalize(self, values: Any = None) -> Any:
        """The tensor, or `values` in its place, in original units: what `normalize` of the view did
        is undone.

        `values` is an array of numpy, torch, cupy or jax with the tensor's dimensions, a prediction
        for instance, and so is the result, on the same device. Without it the result is a numpy
        array. Values of two bytes become float32. A tensor that is not normalized is returned
        unchanged. Undoing rounds: the result differs from what is stored by a few units in the last
        place of its own type.
        """
        if values is None:
            values = self.numpy()
        elif isinstance(values, Tensor):
            values = values.numpy()
        return denormalized(self._labels.scale(self.name), list(self.dims), values)

    @property
    def nbytes(self) -> int:
        return self._core.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<batchfs.Tensor {self.name}: {self.dtype} {self.shape}>"

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._core.__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._core.__cuda_array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError("another dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self, flags: int) -> memoryview:  # Python 3.12; before, memoryview(t.numpy())
        return memoryview(self._core)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        return self._core.__dlpack__(stream=stream, max_version=max_version,
                                     dl_device=None if dl_device is None
                                         else (int(dl_device[0]), int(dl_device[1])), copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._core.__dlpack_device__()

    def numpy(self) -> np.ndarray:
        """A read-only array over the same memory, or, of a tensor on a GPU, a copy. bfloat16 needs
        the package ml_dtypes."""
        if self.__dlpack_device__()[0] == 1:
            array = np.asarray(self._core)
        else:
            array = np.empty(self.shape, self._core.typestr)
            self._core.copy_to(array.reshape(-1).view(np.uint8))
        if self.dtype == "bfloat16":
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError("numpy has no bfloat16: install "
                                "ml_dtypes, or use .torch()") from None
            return array.view(ml_dtypes.bfloat16)
        return array

    def torch(self) -> Any:
        """A torch.Tensor over the same memory.

        torch has no read-only tensors. Changing one of the host in place is safe, but copies the
        pages that it touches; one on a GPU must not be changed.
        """
        take, current_stream = _of_torch(self._core.device is not None)
        if take is None:
            import torch

            return torch.from_dlpack(self)
        return self._core.taken_by(take, current_stream)

    def jax(self) -> Any:
        """A jax.Array of the same values; not copied where jax can do so."""
        import jax

        return jax.dlpack.from_dlpack(self)

    def cupy(self) -> Any:
        """A cupy.ndarray over the same memory; of a tensor of the host, a copy on the current
        GPU."""
        import cupy  # pyright: ignore[reportMissingImports]

        if self.__dlpack_device__()[0] == 1:
            return cupy.asarray(self.numpy())
        return cupy.from_dlpack(self)


@functools.cache
def _of_torch(on_gpu: bool) -> tuple[Any, Any]:
    """torch's functions that make a tensor of a DLPack capsule, and that say which stream is
    current on a GPU; None for those that it has not. `torch.from_dlpack` asks for what is known,
    which takes longer than the rest."""
    import torch

    parts = getattr(torch, "_C", None)
    take = getattr(parts, "_from_dlpack", None)
    if not on_gpu:
        return take, None
    torch.cuda.init()
    current_stream = getattr(parts, "_cuda_getCurrentRawStream", None)
    return take, current_stream or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def _parts_of(tensor: Tensor) -> tuple[Any, ...]:
    """The arguments of a CopiedTensor."""
    if tensor.__dlpack_device__()[0] == 1:
        array = np.asarray(tensor._core)
    else:
        array = np.empty(tensor.shape, tensor._core.typestr)
        tensor._core.copy_to(array.reshape(-1).view(np.uint8))
    return (tensor.name, tensor.dtype, tensor.dims,
            array.view(np.int16) if tensor.dtype == "bfloat16" else array)


def _tensor_of(labels: Labels, *parts: Any) -> Tensor:
    return Tensor(CopiedTensor(*parts), labels)


def _batch_of(labels: Labels, epoch: int, number: int, samples: int,
              tensors: list[tuple[Any, ...]]) -> Batch:
    return Batch(CopiedBatch(epoch, number, samples, [CopiedTensor(*parts) for parts in tensors]),
                 labels)


class Batch:
    """A batch: its tensors by name, in the view's order.

    `batch["x"]` is a tensor, and `keys`, `values`, `items`, `get` and `in` are as a dict's.
    Iterating gives the tensors, not their names, so that `for x, y in dataset` does what it says.
    Pickling copies the tensors.
    """

    __slots__ = ("_core", "_labels", "_tensors")

    def __init__(self, core: _core.Batch | CopiedBatch, labels: Labels):
        self._core = core
        self._labels = labels
        self._tensors: dict[str, Tensor] = {}  # those that were asked for

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch_of, (self._labels, self.epoch, self.number, self.samples,
                           [_parts_of(tensor) for tensor in self])

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def number(self) -> int:
        """Its number in the epoch, over all ranks: the mount's epoch-EEEE/batch-NNNNNN."""
        return self._core.number

    @property
    def samples(self) -> int:
        """How many samples it holds: the last batch of an epoch may hold fewer."""
        return self._core.samples

    @property
    def index(self) -> np.ndarray:
        """The numbers of its samples, int64, in the order of the rows: the "samples" of
        batch-NNNNNN.json.

        With "xbatcher", the numbers are those of xbatcher's batches.
        """
        return self._labels.index

    @property
    def component(self) -> np.ndarray:
        """The name of each sample's view in a mixture, in the order of the rows. Raises
        InvalidArgument for other views."""
        return components_of(self._labels.schema, self._labels.index)

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """For each dimension of the view's "window", the label where each sample's window begins.

        Times are datetime64. Times of a calendar that datetime64 cannot hold are the numbers that
        are stored, and the schema's "coordinates" have a "note". Where a dimension has no
        coordinate these are positions in the store. With "xbatcher", where the batch's first patch
        begins.
        """
        return dict(self._labels.labels)

    def denormalize(self, name: str, values: Any = None) -> Any:
        """`batch[name].denormalize(values)`: the tensor, or values in its place, in original
        units."""
        return self[name].denormalize(values)

    def xarray(self) -> Any:
        """The batch as an xarray.Dataset: tensors as variables that share their memory (copies, of
        those on a GPU), with the attributes of what is stored.

        Its coordinates are, along `sample`, `labels` (as NAME_start, where windows are longer than
        one position), and along every other dimension `coords`. xarray.open_zarr of the mount's
        batch-NNNNNN.zarr gives an equal one. Where tensors disagree about a dimension's length,
        each has its own, as "x_time". For normalized values the attribute `units` is called
        `original_units`. Times that datetime64 does not hold are objects of cftime where that is
        installed, else numbers.
        """
        return dataset_of(self)

    def __getitem__(self, name: str) -> Tensor:
        if not isinstance(name, str):
            names = ", ".join(map(repr, self.keys()))
            raise TypeError(f"the tensors of a batch are found by name, {names}, not by {name!r}")
        tensor: Tensor | None = self.get(name)
        if tensor is None:
            near = difflib.get_close_matches(name, self.keys(), 1)
            raise KeyError(f"there is no tensor {name!r}"
                           + (f", did you mean {near[0]!r}?" if near else "") + "; the batch has "
                           + ", ".join(self.keys()))
        return tensor

    def get(self, name: str, default: Any = None) -> Any:
        tensor = self._tensors.get(name)
        if tensor is None:
            core = self._core.tensor(name) if isinstance(name, str) else None
            if core is None:
                return default
            tensor = self._tensors[name] = Tensor(core, self._labels)
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._core.names

    def keys(self) -> tuple[str, ...]:
        """The names of the tensors."""
        return tuple(self._core.names)

    def values(self) -> list[Tensor]:
        return [self[name] for name in self._core.names]

    def items(self) -> list[tuple[str, Tensor]]:
        return [(name, self[name]) for name in self._core.names]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.values())

    def __len__(self) -> int:
        return len(self._core.names)

    def __repr__(self) -> str:
        tensors = ", ".join(f"{t.name} {t.dtype} {t.shape}" for t in self.values())
        return f"<batchfs.Batch {self.number} of epoch {self.epoch}: {tensors}>"

    def numpy(self) -> dict[str, np.ndarray]:
        """Every tensor's .numpy()."""
        return {name: tensor.numpy() for name, tensor in self.items()}

    def torch(self) -> dict[str, Any]:
        """Every tensor's .torch()."""
        take, current_stream = _of_torch(self._core.device is not None)
        if take is None:
            return {name: tensor.torch() for name, tensor in self.items()}
        return self._core.taken_by(take, current_stream)

    def jax(self) -> dict[str, Any]:
        """Every tensor's .jax()."""
        return {name: tensor.jax() for name, tensor in self.items()}

    def cupy(self) -> dict[str, Any]:
        """Every tensor's .cupy()."""
        return {name: tensor.cupy() for name, tensor in self.items()}
