"""Checking contenders whose order is their own."""

import numpy as np

from harness import process
from harness.geometry import Geometry, checksum
from harness.loaders import whole


def checked_in_own_order(contender, store, spec, sums=None):
    """Runs the contender once and compares each batch: with `sums` by tag, or, where its tags are
    the numbers of its samples, with the values of the store (a local path)."""
    try:
        result = process.run(contender.function, contender.arguments, verify=True,
                             **{**contender.options, "step": 0})
    except process.Failed as failure:
        print(f"  {contender.name}: {failure}")
        return False
    geometry = Geometry(spec)
    arrays = None if all(not tag.startswith("samples ")
                         for tag in result.sums) else whole(store, spec["variables"])
    wrong = 0
    for tag, found in result.sums.items():
        if tag.startswith("samples "):
            wrong += checksum(geometry.gather(arrays, np.array(tag.split()[1:], int))) != found
        else:
            wrong += sums is None or sums.get(tag) != found
    if wrong:
        print(f"  {contender.name}: OTHER BYTES in {wrong} of {len(result.sums)}")
    return wrong == 0
