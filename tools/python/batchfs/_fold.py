"""An object's values from the values of its samples."""

from __future__ import annotations

import math

import numpy as np

from ._placement import Box, Placement

Samples = dict[int, list[np.ndarray]]  # the values in each of a sample's boxes


def cut(values: np.ndarray, boxes: list[Box]) -> list[np.ndarray]:
    """Copies of what a sample has in its boxes."""
    return [np.array(values[box.source], order="C") for box in boxes]


def fold(placement: Placement, number: int, samples: Samples, starts: dict[int, np.ndarray], overlap: str,
         is_grid: bool, fill: float) -> np.ndarray:
    """The object, clipped at the array's end. Samples are taken in the order of their numbers, so that the result does
    not depend on who wrote which when."""
    region = placement.region(number)
    shape = tuple(one.stop - one.start for one in region)
    ordered = [(box, part) for sample in sorted(samples)
               for box, part in zip(placement.boxes(number, starts[sample]), samples[sample], strict=True)]
    if not placement.blends or overlap == "last":
        result = np.full(shape, fill, placement.dtype)
        for box, part in ordered:
            result[box.target] = part
        return result
    if overlap == "trim":
        return _nearest(placement, shape, ordered, fill)
    # Sums round less than the result's type does, so that equal values give that value.
    wide = np.longdouble if placement.dtype.itemsize > 4 else np.float64
    total = np.zeros(shape, wide)
    weight = np.zeros(shape, np.float64)
    for box, part in ordered:
        weights = _outer(box, part.shape)
        total[box.target] += part * weights.astype(wide)
        weight[box.target] += weights
    if not is_grid:
        np.divide(total, weight, out=total, where=weight > 0)
    if placement.dtype.kind in "iu":
        np.rint(total, out=total)
    result = total.astype(placement.dtype)
    result[weight == 0] = fill
    return result


def _outer(box: Box, shape: tuple[int, ...]) -> np.ndarray:
    """The product of the weights along all axes, of dimensions 1 where there are none."""
    result = np.ones((1,) * len(shape), np.float64)
    for d, weights in enumerate(box.weights):
        if weights is not None:
            result = result * weights.reshape(-1, *(1,) * (len(shape) - d - 1))
    return result


def _nearest(placement: Placement, shape: tuple[int, ...], ordered: list[tuple[Box, np.ndarray]], fill: float) -> np.ndarray:
    """Trims samples that are no grid: each element comes from the sample whose middle is nearest."""
    result = np.full(shape, fill, placement.dtype)
    best = np.full(shape, math.inf)
    for box, part in ordered:
        distance = np.zeros((1,) * len(shape))
        for d, squares in enumerate(box.weights):
            if squares is not None:
                distance = distance + squares.reshape(-1, *(1,) * (len(shape) - d - 1))
        distance = np.broadcast_to(distance, part.shape)
        nearer = distance < best[box.target]
        result[box.target][nearer] = part[nearer]
        best[box.target][nearer] = distance[nearer]
    return result
