"""A store that changes under a mount: some seconds of mutations.py for each kind of store."""

import io
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode does not
import mutation_model
import mutation_stores
import mutations

OPERATIONS = 300


@pytest.mark.parametrize("name", mutation_stores.NAMES)
def test_every_read_is_of_one_version(name, tmp_path):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    known = mutations.run(name, OPERATIONS, True, 1, tmp_path)
    print(known.counts)
    assert not known.violations
    assert known.counts["kills"] > 0 and sum(n for what, n in known.counts.items()
                                             if what.startswith("changes")) > 0


def test_the_encoded_objects_are_zarrs(tmp_path):
    import numpy as np
    import zarr

    store = mutation_stores.Directory(tmp_path)
    values = {layout: [layout.values(n, n + 1) for n in range(layout.objects)]
              for layout in mutation_model.LAYOUTS}
    store.reset(mutation_stores.metadata()
                | {mutation_stores.key_of(layout, n): mutation_stores.encode(layout, one)
                   for layout, all_ in values.items() for n, one in enumerate(all_)})
    group = zarr.open_group(str(store.path), mode="r")
    for layout, all_ in values.items():
        assert np.array_equal(group[layout.name][...], np.concatenate(all_)), layout.name
        for one in all_:
            assert np.array_equal(
                mutation_stores.decode(layout, mutation_stores.encode(layout, one)), one)


# ---- the model detects errors ----

KEY = ("raw", 0)


def model_of(*kinds):
    """An object that had these states: its model, and the values of each state."""
    layout = mutation_model.LAYOUTS[0]
    values = [layout.values(0, version) * (kind != "absent")
              for version, kind in enumerate(kinds, 1)]
    known = mutation_model.Model()
    group = mutation_model.Group(mutation_model.State(kinds[0], {KEY: values[0]}))
    known.start({KEY: group})
    for kind, one in zip(kinds[1:], values[1:]):
        known.add_state(KEY, mutation_model.State(kind, {KEY: one if kind != "gone" else None}))
    return known, values


@pytest.mark.parametrize("kinds, read, wrong", [
    (["good", "good"], [0, 0, 0], False), (["good", "good"], [1, 1], False),
    (["good", "good"], [0, 1], True), (["absent", "good"], [0, 1, 1], False),
    (["absent", "good"], [0, 1, 0], False), (["good", "absent"], [0, 1], True),
    (["good", "absent", "good"], [1, 2], False), (["good", "absent", "good"], [0, 2], True),
    (["good", "gone"], [0, 0], False),
])
def test_the_model_knows_one_version_from_two(kinds, read, wrong):
    known, values = model_of(*kinds)
    for number in read:
        known.check("a read", {KEY: [(slice(None), values[number])]})
    assert bool(known.violations) is wrong, known.violations


def test_the_model_sees_a_mixture_and_fill_values_of_what_is_gone():
    known, values = model_of("good", "good")
    mixed = values[0].copy()
    mixed[1] = values[1][1]
    known.check("a read", {KEY: [(slice(None), mixed)]})
    assert "values of no state" in known.violations[0]
    known, values = model_of("good", "gone")
    known.check("a read", {KEY: [(slice(None), values[0] * 0)]})
    assert "values of no state" in known.violations[0]
    known, values = model_of("absent", "good")
    fixed = {}
    known.check("a read", {KEY: [(0, values[0][0])]}, fixed)
    known.check("a read", {KEY: [(1, values[1][1])]}, fixed)
    assert "an open file changed" in known.violations[0]


@pytest.mark.parametrize("kinds, error, wrong",
                         [(["good"], 116, True), (["good", "good"], 116, False),
                          (["good", "good"], 5, True), (["good", "broken"], 5, False),
                          (["good", "good"], 2, True)])
def test_errors_are_for_what_changed(kinds, error, wrong):
    known, _ = model_of(*kinds)
    known.check_error("a read", {KEY}, error)
    assert bool(known.violations) is wrong


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_run_tells_how_far_it_is():
    now = [100.0]
    known = mutation_model.Model()
    known.counts["reads"] = 50
    known.violations.append("wrong")
    log, terminal = io.StringIO(), Terminal()
    for stream in (log, terminal):
        now[0] = 100
        told = mutations.Progress(stream, lambda: now[0])
        for seconds in (5, 59, 60, 61, 119, 125):
            now[0] = 100 + seconds
            told.tell("zip", known, 1000)
        told.end()
    assert log.getvalue().splitlines() == [
        "zip: 50 of 1000 operations, 1 a second, 1 findings",
        "zip: 50 of 1000 operations, 0 a second, 1 findings"]
    assert terminal.getvalue().count("\r") == 7 and "\n" not in terminal.getvalue()
