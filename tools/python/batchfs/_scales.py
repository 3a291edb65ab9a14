"""The numbers by which `normalize` of a view scaled a tensor, and their inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._errors import InvalidArgument, NotSupported
from ._mixture import components_of

if TYPE_CHECKING:
    from ._labels import Labels


class Scale(NamedTuple):
    """values = normalized * divide + subtract. Both have the tensor's number of dimensions and
    broadcast against it."""

    subtract: np.ndarray
    divide: np.ndarray


# For each method: the statistic to subtract, and the two whose difference divides; "" is 0.
_KEYS = {"zscore": ("mean", "", "std"), "minmax": ("min", "min", "max"),
         "robust": ("median", "p25", "p75")}


def scale_of(labels: Labels, tensor: str) -> Scale | None:
    """None if no values of the tensor are normalized."""
    info = labels.info
    assert info is not None
    if "components" in info.schema:
        return _mixed_scale(labels, info.tensors[tensor])
    return _scale_in(labels, info.view, info.tensors[tensor])


def _mixed_scale(labels: Labels, entry: dict[str, Any]) -> Scale | None:
    """The scale in a mixture: each sample has the numbers of its view."""
    info = labels.info
    assert info is not None
    names, rows = np.unique(components_of(info.schema, labels.index), return_inverse=True)
    components = {component["name"]: component for component in info.schema["components"]}
    scales: list[Scale | None] = []
    for name in names.tolist():
        view = info.view["mix"][name]["view"]
        if "normalize" in view and "tensors" not in components[name]:
            raise NotSupported("the batchfs process is of a version that does not say what the "
                               "tensors of a mixture's views are made of")
        variables = components[name].get("tensors", {}).get(entry["name"], [])
        scales.append(_scale_in(labels, view, {**entry, "variables": variables}))
    if all(scale is None for scale in scales):
        return None
    one = (1,) * len(entry["dims"])
    known = [Scale(np.zeros(one), np.ones(one)) if scale is None else scale for scale in scales]
    if len(known) == 1:
        return known[0]
    shape = np.broadcast_shapes(*(part.shape for scale in known for part in scale))
    return Scale(*(np.concatenate([np.broadcast_to(scale[i], shape) for scale in known])[rows]
                   for i in range(2)))


def _scale_in(labels: Labels, view: dict[str, Any], entry: dict[str, Any]) -> Scale | None:
    """That of a view, or of the samples that a view of a mixture has."""
    normalize = view.get("normalize")
    if normalize is None:
        return None
    if not all(isinstance(variable, dict) for variable in entry.get("variables", [None])):
        raise NotSupported("the batchfs process is of a version that does not say what "
                           "a tensor is made of")
    names = [variable["name"] for variable in entry["variables"]]
    # Without statistics, all normalized variables are listed.
    statistics = normalize.get("statistics", dict.fromkeys(normalize.get("variables", names)))
    if not any(name in statistics for name in names):
        return None
    if normalize["method"] == "log1p":
        raise NotSupported("log1p cuts off what is below 0: it cannot be undone here")
    first, low, second = _KEYS[normalize["method"]]
    if normalize.get("by") == "tendency":
        statistics = {name: {**numbers, "std": numbers["tendency"]["std"]}
                      for name, numbers in statistics.items()}
    parts = []
    for variable in entry["variables"]:
        numbers = statistics.get(variable["name"])
        if numbers is None:
            numbers = {first: 0.0, low: 0.0, second: 1.0}
        subtract = _placed(labels, entry, variable, numbers, first)
        divide = _placed(labels, entry, variable, numbers, second)
        parts.append((subtract,
                      divide - _placed(labels, entry, variable, numbers, low) if low else divide))
    if "stack" not in entry:
        return Scale(*parts[0])
    axis = entry["dims"].index(entry["stack"])
    return Scale(*(_concatenated([part[i] for part in parts], axis) for i in range(2)))


def _concatenated(arrays: list[np.ndarray], axis: int) -> np.ndarray:
    shape = np.broadcast_shapes(*(array.shape[:axis] + (1,) + array.shape[axis + 1:]
                                  for array in arrays))
    return np.concatenate([np.broadcast_to(array, shape[:axis] + array.shape[axis:axis + 1]
                                               + shape[axis + 1:]) for array in arrays], axis)


def _placed(labels: Labels, entry: dict[str, Any], variable: dict[str, Any],
            numbers: dict[str, Any],
            key: str) -> np.ndarray:
    """The numbers of a variable along the tensor's dimensions, 1 where they are the same. A stack
    is as long as what the variable has in it."""
    info = labels.info
    assert info is not None
    dims, stack, joined = entry["dims"], entry.get("stack"), variable.get("joined", {})
    own = [dim for dim in dims if dim != stack]
    axes = own + [("joined", dim) for dim in joined]
    windows = {window["dim"]: w for w, window in enumerate(info.windows)}
    values = np.array(numbers[key], np.float64)
    places: list[np.ndarray] = []
    for dim in numbers.get("dims", []):
        selected = _selected(labels, numbers, dim, values.shape[len(places)])
        name = "stored_sample" if dim == "sample" else dim
        axis = ("joined", dim) if dim in joined else name
        if axis not in axes:
            if len(selected) != 1:
                raise NotSupported(f"'{variable['name']}' is normalized along '{dim}', "
                                   f"which the tensor '{entry['name']}' does not have: it "
                                   "cannot be undone here")
            places.append(np.array(selected[0]))
            continue
        shape = [1] * len(axes)
        if dim in windows:
            if "components" in info.schema:
                raise NotSupported(f"'{variable['name']}' is normalized along '{dim}', a dimension "
                                   "of \"window\" of a mixture: it cannot be undone here; "
                                   "denormalize the batches of one view")
            if info.xbatcher is not None:
                raise NotSupported(f"'{variable['name']}' is normalized along '{dim}', which "
                                   "xbatcher slices: it cannot be undone here")
            window = info.windows[windows[dim]]
            offsets = variable.get("offsets", {}).get(dim, [0])
            if isinstance(offsets[0], str):
                raise NotSupported(f"'{variable['name']}' is normalized along '{dim}', where its "
                                   "offsets are lengths of time: it cannot be undone here")
            steps = np.concatenate([offset + np.arange(window["size"]) for offset in offsets])
            position = labels.starts[:, windows[dim], None] + steps
            length = info.length(window)
            wraps = info.view["window"][dim]["wrap"]
            position = position % length if wraps else np.minimum(position, length - 1)
            shape[0], shape[axes.index(axis)] = position.shape
            places.append(selected[position].reshape(shape))
        else:
            shape[axes.index(axis)] = len(selected)
            places.append(selected.reshape(shape))
    values = values[tuple(places)] if places else values
    values = values.reshape((1,) * (len(axes) - values.ndim) + values.shape)
    if stack is None:
        return values
    before = values.shape[:len(own)]
    values = np.broadcast_to(values, before + tuple(joined.values())).reshape(*before, -1)
    return np.moveaxis(values, -1, dims.index(stack))


def _selected(labels: Labels, numbers: dict[str, Any], dim: str, count: int) -> np.ndarray:
    """Which of the numbers along a dimension belongs to each position of the selection."""
    assert labels.info is not None
    known = numbers.get("coordinates", {}).get(dim)
    values = labels.info.coordinate(dim)
    if known is not None and values is None and "components" in labels.info.schema:
        raise NotSupported(f"the views of the mixture have different labels along '{dim}': what is "
                           "normalized along it cannot be undone here; denormalize the "
                           "batches of one view")
    if known is None or values is None:
        return np.arange(count)
    places = {label: i for i, label in reversed(
        list(enumerate(np.array(known).astype(values.dtype).tolist())))}
    return np.array([places.get(label, -1) for label in values.tolist()], np.intp)


def denormalized(scale: Scale | None, dims: list[str], values: Any) -> Any:
    """`values` in original units: an array of numpy, torch, cupy or jax with the tensor's
    dimensions."""
    if scale is None:
        return values
    shape = tuple(values.shape)
    try:
        fits = len(shape) == len(dims) and np.broadcast_shapes(shape, scale.divide.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgument(f"values of the shape {shape} are not a tensor of ({', '.join(dims)}"
                              f"), normalized with numbers of the shape {scale.divide.shape}")
    module = type(values).__module__.split(".")[0]
    if module == "torch":
        import torch

        half = values.dtype in (torch.float16, torch.bfloat16)
        values = values.to(torch.float32) if half else values
        subtract, divide = (torch.as_tensor(np.ascontiguousarray(part)).to(values)
                            for part in scale)
        return values * divide + subtract
    if module == "cupy":
        import cupy  # pyright: ignore[reportMissingImports]

        dtype = cupy.promote_types(values.dtype, np.float32)
        return (values.astype(dtype) * cupy.asarray(scale.divide, dtype)
                + cupy.asarray(scale.subtract, dtype))
    if module not in ("jax", "jaxlib"):
        values = np.asarray(values)
    dtype = values.dtype if values.dtype.itemsize > 2 else np.dtype(np.float32)
    return values.astype(dtype) * scale.divide.astype(dtype) + scale.subtract.astype(dtype)
