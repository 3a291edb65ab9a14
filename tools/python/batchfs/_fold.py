"""An object's values from the values of its samples."""

from __future__ import annotations

import math

import numpy as np

from . import _core
from ._placement import Box, Placement

Samples = dict[int, list[np.ndarray]]  # the values in each of a sample's boxes


def cut(values: np.ndarray, boxes: list[Box]) -> list[np.ndarray]:
    """Copies of what a sample has in its boxes."""
    return [np.array(values[box.source], order="C") for box in boxes]


def fold(placement: Placement, number: int, samples: Samples, starts: dict[int, np.ndarray], overlap: str) -> np.ndarray:
    """The object, clipped at the array's end. Samples are added in the order of their numbers, so that the
    result does not depend on the order of writing."""
    region = placement.region(number)
    shape = tuple(one.stop - one.start for one in region)
    ordered = [(box, part) for sample in sorted(samples)
               for box, part in zip(placement.boxes(number, starts[sample]), samples[sample], strict=True)]
    if not placement.blends or overlap == "last":
        result = np.full(shape, placement.fill, placement.dtype)
        for box, part in ordered:
            result[box.target] = part
        return result
    if overlap == "trim":
        return _nearest(placement, shape, ordered)
    result = np.empty(shape, placement.dtype)
    wide = result if placement.dtype.itemsize > 2 else np.empty(shape, np.float32)
    _core.blend(wide, [part.astype(wide.dtype, copy=False) for _, part in ordered],
                [[target.start for target in box.target] for box, _ in ordered],
                [list(box.weights) for box, _ in ordered], placement.fill)
    if wide is not result:
        result[...] = wide
    return result


def _nearest(placement: Placement, shape: tuple[int, ...], ordered: list[tuple[Box, np.ndarray]]) -> np.ndarray:
    """Trims samples that are no grid: each element comes from the sample whose middle is nearest."""
    result = np.full(shape, placement.fill, placement.dtype)
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
