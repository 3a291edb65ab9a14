"""Mixtures of views: the view of each sample, and how far each view was read."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from ._errors import InvalidArgument


def components_of(schema: dict[str, Any], index: np.ndarray) -> np.ndarray:
    """The name of each sample's view, by the sample's number."""
    components = schema.get("components")
    if components is None:
        raise InvalidArgument(f"the view '{schema['view']}' is no mixture")
    firsts = np.array([component["first"] for component in components], np.int64)
    names = np.array([component["name"] for component in components], np.str_)
    # Of views without samples, which begin where the next one does, the last is taken.
    result: np.ndarray = names[np.searchsorted(firsts, index, side="right") - 1]
    return result


def schedule_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The keys that determine the view at each position. Equal schedules can be resumed at any position."""
    numbers = {component["name"]: [component["rate"], component["per_epoch"], component["start"]]
               for component in schema["components"]}
    return {"mixing": schema["mixing"], "block": schema["block"], "period": schema["period"], "components": numbers}


def read_until(schema: dict[str, Any], epoch: int, batches: int) -> dict[str, int]:
    """How much of each view comes before the last border of a block at or before a position: samples, or with "mixing"
    "batch" batches. A mixture of the same views with this as "start" continues there."""
    components = schema["components"]
    per_epoch = [component["per_epoch"] for component in components]
    position = min(batches * (1 if schema["mixing"] == "batch" else schema["batch_size"]), sum(per_epoch))
    if position == sum(per_epoch):
        read = per_epoch
    else:
        position -= position % schema["block"]
        sums = [(2 * position * rate + schema["period"]) // (2 * schema["period"])
                for rate in itertools.accumulate(component["rate"] for component in components)]
        read = [after - before for before, after in zip([0, *sums], sums)]
    return {component["name"]: component["start"] + epoch * component["per_epoch"] + count
            for component, count in zip(components, read)}


def is_continued(schema: dict[str, Any], state: dict[str, Any]) -> bool:
    """Does the mixture begin where a state of another one was taken? False where it is the same mixture. Raises
    InvalidArgument where it is neither."""
    if state.get("schedule") == schedule_of(schema):
        return False
    read = state.get("components")
    if read is None:
        raise InvalidArgument("the state is of a view that is no mixture")
    if read != {component["name"]: component["start"] for component in schema["components"]}:
        raise InvalidArgument("the state is of a mixture with other weights or blocks: to continue where it was, write "
                              f'"start": {json.dumps(read)} into this one')
    return True
