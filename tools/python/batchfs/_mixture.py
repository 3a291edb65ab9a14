"""Mixtures of views: the view of each sample, and how far each view was read."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ._errors import InvalidArgument


def components_of(schema: dict[str, Any], index: np.ndarray) -> np.ndarray:
    """The name of each sample's view, by the sample's number."""
    components = schema.get("components")
    if components is None:
        raise InvalidArgument(f"the view '{schema['view']}' is not a mixture")
    firsts = np.array([component["first"] for component in components], np.int64)
    names = np.array([component["name"] for component in components], np.str_)
    # Views without samples begin where the next view does: takes the last.
    result: np.ndarray = names[np.searchsorted(firsts, index, side="right") - 1]
    return result


def schedule_of(schema: dict[str, Any], view: dict[str, Any]) -> dict[str, Any]:
    """The keys that determine the sample at each position. Equal schedules can be resumed at any
    position."""
    numbers = {component["name"]: [component["rate"], component["per_epoch"], component["start"]]
               for component in schema["components"]}
    schedule = {"mixing": schema["mixing"], "block": schema["block"], "period": schema["period"],
                "seed": view["order"]["seed"], "components": numbers}
    if schema["mixing"] == "batch":
        schedule["batch_size"] = schema["batch_size"]
    return schedule


def starts_of(schema: dict[str, Any]) -> dict[str, Any]:
    """"start" of the mixture."""
    return {component["name"]: component["start"] for component in schema["components"]}


def read_until(schema: dict[str, Any], view: dict[str, Any], epoch: int,
               batches: int) -> dict[str, Any]:
    """The "start" of a mixture of the same views that continues after so many batches of an epoch,
    with any weights: of each view the number of samples that were read, or where the running block
    has samples before it that were not read, {"samples": ..., "left": [...]}."""
    components = schema["components"]
    by_batch = schema["mixing"] == "batch"
    batch_size = schema["batch_size"]
    per_epoch = [component["per_epoch"] for component in components]
    total = sum(per_epoch)
    position = min(batches * (1 if by_batch else batch_size), total)
    block = schema["block"]
    number, inside = (-1, 0) if position == total else divmod(position, block)
    begin = total if position == total else number * block
    end = min(begin + block, total)

    def sums(position: int) -> list[int]:
        if position == total:
            return [0, *itertools.accumulate(per_epoch)]
        return [0,
                *((2 * position * rate + schema["period"]) // (2 * schema["period"])
                  for rate in itertools.accumulate(component["rate"] for component in components))]

    before, after = sums(begin), sums(end)
    blocks = (total - 1) // block + 1
    drawn = _permuted(inside, end - begin, view["order"]["seed"], epoch * blocks + number, 5)
    read = np.zeros(end - begin, bool)
    read[drawn] = True
    result = {}
    first = 0  # of the component, in the block
    for c, component in enumerate(components):
        quota = (after[c + 1] - before[c + 1]) - (after[c] - before[c])
        ordinal = epoch * per_epoch[c] + before[c + 1] - before[c]
        unread = [ordinal + int(i) for i in np.flatnonzero(~read[first:first + quota])]
        first += quota
        ordinal += quota if inside else 0
        if not inside:
            unread = []
        if by_batch:
            unread = [batch * batch_size + i for batch in unread for i in range(batch_size)]
            ordinal *= batch_size
        result[component["name"]] = _after(component["start"], ordinal, unread)
    return result


def _after(start: Any, read: int, unread: list[int]) -> Any:
    """The "start" of a mixture that continues one that has `start` and has read the first `read`
    ordinals, counted from there, but for `unread`."""
    samples, left = (start["samples"], start["left"]) if isinstance(start, dict) else (start, [])
    rest = [left[i] if i < len(left) else samples + i - len(left) for i in unread] + left[read:]
    samples += max(0, read - len(left))
    while rest and rest[-1] == samples - 1:
        samples = rest.pop()
    return {"samples": samples, "left": rest} if rest else samples


_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x: Any) -> Any:
    """The finaliser of splitmix64, of an array of uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _permuted(count: int, size: int, seed: int, epoch: int, stream: int) -> np.ndarray:
    """permute(i, size, seed, epoch, stream) of batchfs-view(5), for i below `count`."""
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    bits, low = np.uint64(half), np.uint64((1 << half) - 1)
    state = np.zeros(1, np.uint64)  # an array: its sums wrap without a warning
    for part in (seed, epoch, stream):
        state = _mix(state + np.uint64((part + _GOLDEN) % 2**64))
    keys = [_mix(state + np.uint64(r * _GOLDEN % 2**64)) for r in range(1, 7)]
    result = np.arange(count, dtype=np.uint64)
    walking = np.arange(count)
    while len(walking):
        left, right = result[walking] >> bits, result[walking] & low
        for key in keys:
            left, right = right, left ^ (_mix(right + key) & low)
        result[walking] = left << bits | right
        walking = walking[result[walking] >= size]
    return result.astype(np.int64)


def start_for(schema: dict[str, Any], view: dict[str, Any],
              state: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The "start" with which the mixture continues where a state was taken, and whether it is then
    the state's mixture, to be continued at its position. Raises InvalidArgument where the state is
    of other views."""
    if "schedule" not in state or "start" not in state:
        raise InvalidArgument("the state is of a view that is not a mixture")
    own, given = schedule_of(schema, view), state["schedule"]
    lacking = [name for name in given["components"] if name not in own["components"]]
    if lacking:
        raise InvalidArgument(f"the state is of a mixture with the view '{lacking[0]}', which this "
                              "one lacks; to keep its place, give it a weight of 0")

    def without_start(schedule: dict[str, Any]) -> dict[str, Any]:
        return schedule | {"components": {name: numbers[:2]
                                          for name, numbers in schedule["components"].items()}}

    if without_start(own) == without_start(given):
        return {name: numbers[2] for name, numbers in given["components"].items()}, True
    # Views that the state does not know begin.
    return {name: state["start"].get(name, 0) for name in own["components"]}, False
