"""A batch as a dataset of xarray, as xarray.open_zarr gives it of the mount's batch-NNNNNN.zarr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._labels import tensor_dim

if TYPE_CHECKING:
    from ._batch import Batch

_Coordinates = dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]


def dataset_of(batch: Batch) -> Any:
    import xarray

    _ = batch.index  # raises if the server is too old to send labels
    coordinates = _coordinates_of(batch)
    dims = _dims_of(batch, coordinates)
    schema = batch._labels.schema
    attributes = {tensor["name"]: tensor["attributes"] for tensor in schema["tensors"]}
    stacks = {tensor["name"]: tensor.get("stack") for tensor in schema["tensors"]}
    of_stored = {tensor_dim(coordinate["name"]): coordinate["attributes"]
                 for coordinate in schema["coordinates"]}
    coarsened = any("coarsen" in tensor for tensor in schema["tensors"])
    for name, tensor in batch.items():
        for stored, dim in zip(tensor.dims, dims[name], strict=True):
            if stored not in tensor.coords or dim in coordinates:
                continue
            if stored == stacks[name]:
                coordinates[dim] = ((dim,), tensor.coords[stored], {})
            elif coarsened and dim != stored:
                coordinates[dim] = ((dim,), tensor.coords[stored], of_stored[stored])
    variables = {name: (dims[name], tensor.numpy(), attributes[name])
                 for name, tensor in batch.items()}
    return xarray.Dataset({name: _decoded(name, *parts) for name, parts in variables.items()},
                          {name: _decoded(name, *parts) for name, parts in coordinates.items()})


def _decoded(name: str, dims: tuple[str, ...], values: np.ndarray,
             attributes: dict[str, Any]) -> Any:
    """A variable. Times that are numbers, since datetime64 does not hold them, become objects of
    cftime where that is installed, as xarray.open_zarr decodes them."""
    import xarray
    import xarray.conventions

    variable = xarray.Variable(dims, values, attributes)
    if " since " not in str(attributes.get("units", "")):
        return variable
    try:
        import cftime  # noqa: F401
    except ImportError:
        return variable
    return xarray.conventions.decode_cf_variable(name, variable).load()


def _coordinates_of(batch: Batch) -> _Coordinates:
    """Along the samples the labels of their windows, along other dimensions their own."""
    schema = batch._labels.schema
    attributes = {coordinate["name"]: coordinate["attributes"]
                  for coordinate in schema["coordinates"]}
    of_tensors = {dim for tensor in batch for dim in tensor.dims[1:]}
    result: _Coordinates = {}
    sampled = any(tensor.dims[:1] == ("sample",)
                  for tensor in batch) and not batch._labels.is_xbatcher
    for window in schema["window"] if sampled else []:
        dim = window["dim"]
        name = dim if window["size"] == 1 and tensor_dim(dim) not in of_tensors else f"{dim}_start"
        if name not in batch and name not in result and name not in of_tensors:
            result[name] = (("sample",), batch.labels[dim], attributes.get(dim, {}))
    for coordinate in schema["coordinates"]:
        name = tensor_dim(coordinate["name"])
        for tensor in batch:
            stack = next(one.get("stack") for one in schema["tensors"]
                         if one["name"] == tensor.name)
            if name in tensor.coords and name != stack and name not in batch and name not in result:
                result[name] = ((name,), tensor.coords[name], coordinate["attributes"])
    return result


def _dims_of(batch: Batch, coordinates: _Coordinates) -> dict[str, tuple[str, ...]]:
    """The dimensions of each tensor. A name has one length in a dataset: where tensors disagree,
    each has a dimension of its own, "x_time", but for those that agree with a coordinate."""
    stacks = {tensor["name"]: tensor.get("stack") for tensor in batch._labels.schema["tensors"]}

    def along(tensor: Any, d: int) -> tuple[int, Any]:
        """The length, and the channels of a stack."""
        dim = tensor.dims[d]
        channels = tensor.coords.get(dim) if dim == stacks[tensor.name] else None
        return tensor.shape[d], None if channels is None else tuple(channels)

    known: dict[str, Any] = {}
    for tensor in batch:
        for d, dim in enumerate(tensor.dims):
            if known.setdefault(dim, along(tensor, d)) != along(tensor, d):
                known[dim] = None
    for name, (dims, values, _) in coordinates.items():
        if dims == (name,):
            known[name] = (len(values), None)
    for name in batch.keys():
        if name in known:
            known[name] = None
    result = {}
    for tensor in batch:
        own = list(tensor.dims)
        for d, dim in enumerate(tensor.dims):
            if known[dim] == along(tensor, d):
                continue
            name = f"{tensor.name}_{dim}"
            while name in known or name in batch or name in coordinates:
                name += "_"
            known[name] = along(tensor, d)
            own[d] = name
        result[tensor.name] = tuple(own)
    return result
