"""The permitted reads of a store that changes meanwhile: each object's history, and whether the
values read fit it.

A mount gives one version of each object: the one that it read first. An object that was absent may
appear. The model keeps every state that an object had since the store was mounted, and every
observation: the states that what was read agrees with. A mount is right as long as one state
explains all observations of an object, where those of nothing but fill values may also be explained
by the object having been absent before that state.

Every value says which array, object, version and position it is of, so values of two versions are
never the same.
"""

import dataclasses
import errno
import itertools
import threading

import numpy as np

SHAPE = (24, 8, 128)  # of each array: time, y, x
VERSION_SHIFT, ARRAY_SHIFT, TIME_SHIFT = 40, 36, 24


@dataclasses.dataclass(frozen=True)
class Layout:
    """How an array is stored. Objects split the time only."""

    name: str
    number: int
    steps: int  # time steps of an object
    inner: tuple | None  # shape of the chunks of a shard; None: the object is a chunk
    compressed: bool

    @property
    def objects(self):
        return SHAPE[0] // self.steps

    @property
    def object_shape(self):
        return (self.steps, *SHAPE[1:])

    @property
    def chunk(self):
        return self.inner or self.object_shape

    def inner_boxes(self):
        counts = [n // c for n, c in zip(self.object_shape, self.chunk)]
        for index in itertools.product(*map(range, counts)):
            yield tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, self.chunk))

    def values(self, number, version, boxes=None):
        """Values of an object; 0, the fill value, outside the boxes."""
        time, y, x = np.indices(self.object_shape, dtype="i8")
        time += number * self.steps
        made = (version << VERSION_SHIFT) | (self.number << ARRAY_SHIFT) | (time << TIME_SHIFT) | (
            y * SHAPE[2] + x)
        if boxes is None:
            return made
        result = np.zeros_like(made)
        for box in boxes:
            result[box] = made[box]
        return result


LAYOUTS = [Layout("raw", 1, 3, None, False), Layout("packed", 2, 3, None, True),
           Layout("shards", 3, 6, (2, 4, 128), True), Layout("rawshards", 4, 6, (2, 4, 128), False)]


@dataclasses.dataclass
class State:
    """`values`: by (array, number); None where nothing can be read. An object that is absent reads
    as fill values."""

    # good, absent, broken (an error, or the values), torn (while it is written), gone (with its
    # array)
    kind: str
    values: dict


class Group:
    """Objects that change together: one, or all of an archive."""

    def __init__(self, state):
        self.states = [state]
        self.observations = set()  # (states that agree, first absent state that agrees or None)
        self.wrong = False  # one violation was reported

    def changed(self):
        return len(self.states) > 1

    def may_be_damaged(self):
        return any(state.kind in ("broken", "torn", "gone") for state in self.states)

    def agreeing(self, key, seen):
        """Numbers of the states that agree with [(where in the object, values)]."""
        result = []
        for number, state in enumerate(self.states):
            values = state.values.get(key)
            if values is not None and all(np.array_equal(values[where], got)
                                          for where, got in seen):
                result.append(number)
        return result

    def observe(self, agreeing):
        """False when no state explains this and everything before."""
        absent = [n for n in agreeing if self.states[n].kind == "absent"]
        present = frozenset(n for n in agreeing if self.states[n].kind != "absent")
        self.observations.add((present, min(absent) if absent else None))
        if all(first_absent is not None for _, first_absent in self.observations):
            return True
        return any(all(number in present or (first_absent is not None and first_absent < number)
                       for present, first_absent in self.observations)
                   for number, state in enumerate(self.states) if state.kind != "absent")


class Model:
    """The groups of a store. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.groups = {}  # by (array, number)
        self.violations = []
        self.counts = {}

    def count(self, what, by=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + by

    def start(self, groups):
        """A new mount: {key: Group}."""
        with self.lock:
            self.groups = groups

    def add_state(self, key, state):
        """Before the change is made."""
        with self.lock:
            self.groups[key].states.append(state)

    def violation(self, text):
        with self.lock:
            self.violations.append(text)

    def wrong_in(self, group, text):
        group.wrong = True
        self.violations.append(text)

    def describe(self, key, seen):
        group = self.groups[key]
        versions = sorted({int(v) >> VERSION_SHIFT for _, got in seen for v in np.unique(got)})
        states = [(s.kind, sorted({int(v) >> VERSION_SHIFT for v in np.unique(s.values[key])})
                       if s.values.get(key) is not None else None) for s in group.states]
        return (f"{key[0]}/{key[1]}: versions {versions}; states {states}; observed "
                f"{sorted(map(str, group.observations))}")

    def check(self, what, seen, fixed=None):
        """Checks the values read, {key: [(where, values)]}. `fixed`: of an open file whose contents
        must not change, the states that agreed so far, by key; it is kept up to date."""
        with self.lock:
            for key, parts in seen.items():
                group = self.groups[key]
                if group.wrong:
                    continue
                agreeing = group.agreeing(key, parts)
                if not agreeing:
                    self.wrong_in(group, f"{what}: values of no state: {self.describe(key, parts)}")
                    continue
                if fixed is not None:
                    fixed[key] = fixed[key] & set(agreeing) if key in fixed else set(agreeing)
                    if not fixed[key]:
                        self.wrong_in(group,
                                      f"{what}: an open file changed: {self.describe(key, parts)}")
                        continue
                if not group.observe(agreeing):
                    self.wrong_in(group, f"{what}: another version than before: "
                                         f"{self.describe(key, parts)}")

    def check_error(self, what, keys, error):
        """Errors are for objects that changed."""
        with self.lock:
            groups = [self.groups[key] for key in keys]
            allowed = {errno.ESTALE} if any(group.changed() for group in groups) else set()
            if any(group.may_be_damaged() for group in groups):
                allowed.add(errno.EIO)
            if error not in allowed:
                self.violations.append(
                    f"{what}: {errno.errorcode.get(error, error)}, objects {sorted(keys)} with "
                    f"states {[[state.kind for state in group.states] for group in groups]}")


# ---- the files of a mount ----

ROWS, BATCH = 4, 8  # y of a sample, samples of a batch
ROW_BYTES = ROWS * SHAPE[2] * 8
BATCHES = SHAPE[0] * (SHAPE[1] // ROWS) // BATCH


def view_of(layout):
    return {"name": layout.name, "variables": [layout.name],
            "window": {"time": 1, "y": {"size": ROWS}}, "batch": {"size": BATCH},
            "order": {"shuffle": "none"}, "epochs": 1, "formats": ["npy"]}


def batch_keys(layout, batch):
    return {key for row in range(BATCH) for key, _ in [row_of(layout, batch, row)]}


def row_of(layout, batch, row):
    """(object, where in it) of a batch's row."""
    time, part = divmod(batch * BATCH + row, SHAPE[1] // ROWS)
    number, local = divmod(time, layout.steps)
    return (layout.name, number), np.s_[local, part * ROWS : (part + 1) * ROWS, :]


def seen_in_rows(layout, batch, first, rows):
    """`rows`: shape (n, ROWS, x), of a batch from row `first` on."""
    seen = {}
    for i, values in enumerate(rows):
        key, where = row_of(layout, batch, first + i)
        seen.setdefault(key, []).append((where, values))
    return seen


def seen_in_steps(layout, first, steps):
    """`steps`: shape (n, y, x), whole time steps of the array from `first` on."""
    seen = {}
    for i, values in enumerate(steps):
        number, local = divmod(first + i, layout.steps)
        seen.setdefault((layout.name, number), []).append((np.s_[local], values))
    return seen
