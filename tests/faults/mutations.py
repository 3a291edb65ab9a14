#!/usr/bin/env python3
"""Changes a store under a mount, over and over and at random, and compares every value that readers
get with a model.

    BATCHFS=build/batchfs python3 tests/faults/mutations.py --operations 100000
                                                    --stores local,zip,http

Objects are replaced, rewritten in place, grown, filled, deleted and truncated, arrays and the whole
store removed, while readers open and read batches, chunks and arrays by files and, where the Python
package is installed, by the hand-off; with --kills the process that serves is killed in between.
Errors are right only for what changed, and values only when one version of each object explains
them all (mutation_model.py). Prints the counts of each kind as a line of JSON for each store. Ends
with 1 when anything was wrong.
"""

import argparse
import contextlib
import errno
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutation_model as model
import mutation_stores

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))
HEADER = 4096  # bytes before the values of every .npy file
CHANGES, READS = 12, 120  # of a round, a mount; reads of each reader
READERS = 2
PAUSE = 0.03  # seconds between changes, at most
HELD = 6  # files that a reader keeps open
CURRENT = object()  # values as they are
# A mount whose store cannot be opened again, since it changed or is missing, ends with the daemon.
ENDED = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENODEV, errno.ECONNREFUSED,
         errno.ESTALE, errno.ENOENT}

try:
    import batchfs
except ImportError:
    batchfs = None


class Mutator:
    """Changes the store, and tells the model before it does."""

    def __init__(self, store, known, chance):
        self.store, self.model, self.chance = store, known, chance
        self.metadata = mutation_stores.metadata()
        self.version = 0
        self.gone = False

    def start(self):
        """All objects anew."""
        self.gone = False
        # the values of each object; None when it is absent
        self.now, objects = {}, dict(self.metadata)
        for layout in model.LAYOUTS:
            for number in range(layout.objects):
                values = None if self.chance.random() < 0.2 else self.new_values(layout, number)
                self.now[layout.name, number] = values
                if values is not None:
                    objects[mutation_stores.key_of(layout, number)] = mutation_stores.encode(
                        layout, values)
        self.store.reset(objects)
        self.damaged = set()
        if self.store.whole:
            group = model.Group(self.state("good"))
            self.model.start(dict.fromkeys(self.now, group))
        else:
            self.model.start(
                {key: model.Group(self.state("good" if values is not None else "absent", key))
                 for key, values in self.now.items()})

    def new_values(self, layout, number):
        self.version += 1
        boxes = list(layout.inner_boxes())
        chosen = (boxes if self.chance.random() < 0.6
                  else self.chance.sample(boxes, self.chance.randrange(1, len(boxes) + 1)))
        return layout.values(number, self.version, chosen)

    def state(self, kind, key=None, values=CURRENT):
        """The present state, or one with other values of an object."""
        keys = self.now if self.store.whole else [key]
        filled = {}
        for one in keys:
            layout = next(layout for layout in model.LAYOUTS if layout.name == one[0])
            current = self.now[one]
            filled[one] = np.zeros(layout.object_shape, "i8") if current is None else current
        if values is not CURRENT:
            filled = dict.fromkeys(filled) if self.store.whole and values is None else filled | {
                key: values}
        return model.State(kind, filled)

    def announce(self, key, kind, values=CURRENT):
        self.model.add_state(key, self.state(kind, key, values))

    def set(self, key, values):
        """Sets an object's values; None: missing."""
        self.now[key] = values
        self.damaged.discard(key)
        self.announce(key, "absent" if values is None and not self.store.whole else "good")

    def change(self):
        """One change; its kind, or None when it does not apply."""
        layout = self.chance.choice(model.LAYOUTS)
        number = self.chance.randrange(layout.objects)
        key, name = (layout.name, number), mutation_stores.key_of(layout, number)
        weights = [1 if kind.startswith("remove") else 8 for kind in self.store.changes]
        kind = self.chance.choices(self.store.changes, weights)[0]
        if self.gone or (self.store.whole and self.damaged):
            return None
        current = self.now[key]
        if kind.startswith("remove"):
            self.gone = True
            prefix = layout.name if kind == "remove array" else ""
            for one in [next(iter(self.now))] if self.store.whole else [
                    one for one in self.now if not prefix or one[0] == prefix]:
                self.announce(one, "gone", None)
            self.store.remove(prefix)
        elif kind.startswith("fill"):
            box = self.box_to_fill(layout, current)
            if box is None or key in self.damaged:
                return None
            self.version += 1
            fresh = layout.values(number, self.version, [box])
            values = fresh if current is None else current + fresh
            self.set(key, values)
            if kind == "fill":
                self.store.replace(name, mutation_stores.encode(layout, values))
            else:
                steps = slice(box[0].start + number * layout.steps,
                              box[0].stop + number * layout.steps)
                self.store.fill_with_zarr(layout, (steps, *box[1:]), fresh[box])
        elif kind == "replace":
            values = self.new_values(layout, number)
            self.set(key, values)
            self.store.replace(name, mutation_stores.encode(layout, values))
        elif current is None or key in self.damaged:
            return None
        elif kind == "rewrite":
            values = self.new_values(layout, number)
            self.announce_torn(layout, key, mutation_stores.encode(layout, current),
                               mutation_stores.encode(layout, values))
            self.set(key, values)
            self.store.rewrite(name, mutation_stores.encode(layout, values))
        elif kind == "delete":
            self.set(key, None)
            self.store.delete(name)
        else:
            data = mutation_stores.encode(layout, current)
            if kind == "grow" and self.store.whole:
                values = self.new_values(layout, number)
                self.set(key, values)
                self.store.append(name, mutation_stores.encode(layout, values))
            else:
                self.damaged.add(key)
                self.announce(key, "broken", current if kind == "grow" else None)
                if kind == "grow":
                    self.store.append(name, bytes(64))
                else:
                    self.store.truncate(name, self.chance.randrange(len(data)))
        return kind

    def announce_torn(self, layout, key, old, new):
        """The contents of a file between the writes that replace it."""
        if self.store.whole:
            return self.announce(key, "torn", None)
        half = len(new) // 2
        for data in (new[:half] + old[half:], new + old[len(new) :]):
            self.announce(key, "torn", mutation_stores.decode(layout, data))

    def box_to_fill(self, layout, current):
        if current is None:
            return self.chance.choice(list(layout.inner_boxes()))
        missing = [box for box in layout.inner_boxes() if not current[box].any()]
        return self.chance.choice(missing) if missing else None


class Reader:
    """Reads at random, and has the model compare."""

    def __init__(self, directory, known, chance, round_):
        self.directory, self.model, self.chance, self.round = directory, known, chance, round_
        self.held = []  # (layout, batch, descriptor, bytes that agreed so far)
        self.datasets = {}

    def run(self, reads):
        for _ in range(reads):
            if self.round.ended:
                break
            try:
                self.chance.choice([self.batch, self.batch, self.hold, self.read_held,
                                    self.read_held, self.values, self.chunk, self.hand_off])()
            except Exception as error:  # a bug of the test must not look like silence
                self.model.violation(f"reading failed: {type(error).__name__}: {error}")
        for *_, descriptor, _ in self.held:
            os.close(descriptor)
        self.held, self.datasets = [], {}

    def failed(self, what, keys, error):
        if self.round.may_end and error.errno in ENDED:
            self.round.ended = (self.round.ended
                                or error.errno in (errno.ENOTCONN, errno.ECONNABORTED))
            self.model.count("errors after the end")
            return
        self.model.count(f"errors: {what}: {errno.errorcode.get(error.errno, error.errno)}")
        self.model.check_error(what, keys, error.errno)

    def some_batch(self):
        layout, batch = self.chance.choice(model.LAYOUTS), self.chance.randrange(model.BATCHES)
        return layout, batch, self.path_of(layout, batch)

    def path_of(self, layout, batch):
        """In an epoch that is probably not kept in memory."""
        return self.directory / (
            f"views/{layout.name}/epoch-{self.chance.randrange(10_000):04}/batch-{batch:06}.npy")

    def rows(self, layout, batch, descriptor, first, count):
        data = os.pread(descriptor, count * model.ROW_BYTES, HEADER + first * model.ROW_BYTES)
        rows = np.frombuffer(data, "i8").reshape(-1, model.ROWS, model.SHAPE[2])
        assert len(rows) == count, (len(rows), count)
        return model.seen_in_rows(layout, batch, first, rows)

    def batch(self):
        layout, batch, _ = self.some_batch()
        self.read_batch(layout, batch)

    def read_batch(self, layout, batch):
        path = self.path_of(layout, batch)
        self.model.count("reads: batch")
        try:
            with contextlib.closing(Descriptor(path)) as file:
                seen = self.rows(layout, batch, file.number, 0, model.BATCH)
        except OSError as error:
            return self.failed("batch", model.batch_keys(layout, batch), error)
        self.model.check(f"batch {path.parent.name}/{batch} of {layout.name}", seen, {})

    def hold(self):
        if len(self.held) == HELD:
            os.close(self.held.pop(self.chance.randrange(HELD))[2])
        layout, batch, path = self.some_batch()
        self.model.count("opens: batch")
        try:
            self.held.append((layout, batch, os.open(path, os.O_RDONLY), {}))
        except OSError as error:
            self.failed("open", model.batch_keys(layout, batch), error)

    def read_held(self):
        if not self.held:
            return
        layout, batch, descriptor, fixed = self.chance.choice(self.held)
        first = self.chance.randrange(model.BATCH)
        count = self.chance.randrange(1, model.BATCH - first + 1)
        self.model.count("reads: open batch")
        try:
            seen = self.rows(layout, batch, descriptor, first, count)
        except OSError as error:
            return self.failed("open batch", model.batch_keys(layout, batch), error)
        self.model.check(f"open batch {batch} of {layout.name}, rows {first} to {first + count}",
                         seen, fixed)

    def values(self):
        layout = self.chance.choice(model.LAYOUTS)
        first = self.chance.randrange(model.SHAPE[0])
        count = self.chance.randrange(1, min(8, model.SHAPE[0] - first) + 1)
        step = model.SHAPE[1] * model.SHAPE[2] * 8
        self.model.count("reads: values.npy")
        try:
            with contextlib.closing(
                    Descriptor(self.directory / f"arrays/{layout.name}/values.npy")) as file:
                data = os.pread(file.number, count * step, HEADER + first * step)
        except OSError as error:
            return self.failed("values.npy", {(layout.name, t // layout.steps)
                                              for t in range(first, first + count)}, error)
        steps = np.frombuffer(data, "i8").reshape(count, *model.SHAPE[1:])
        self.model.check(f"values of {layout.name}", model.seen_in_steps(layout, first, steps))

    def chunk(self):
        layout = self.chance.choice(model.LAYOUTS)
        index = [self.chance.randrange(n // c) for n, c in zip(model.SHAPE, layout.chunk)]
        start = index[0] * layout.chunk[0]
        key = (layout.name, start // layout.steps)
        self.model.count("reads: chunk")
        try:
            with contextlib.closing(Descriptor(
                    self.directory
                    / f"arrays/{layout.name}/chunks/{'.'.join(map(str, index))}.npy")) as file:
                data = os.pread(file.number, 1 << 20, HEADER)
        except OSError as error:
            return self.failed("chunk", {key}, error)
        local = start % layout.steps
        where = (slice(local, local + layout.chunk[0]),
                 *(slice(i * c, (i + 1) * c) for i, c in zip(index[1:], layout.chunk[1:])))
        self.model.check(f"chunk {index} of {layout.name}",
                         {key: [(where, np.frombuffer(data, "i8").reshape(layout.chunk))]}, {})

    def hand_off(self):
        if batchfs is None:
            return
        layout, batch, _ = self.some_batch()
        self.model.count("reads: hand-off")
        kills = self.round.kills
        try:
            if layout.name not in self.datasets:
                self.datasets[layout.name] = batchfs.open(self.directory / f"views/{layout.name}",
                                                          prefetch=self.chance.choice([0, 2]),
                                                          mode="shm")
            got = np.array(self.datasets[layout.name]
                               .batch(batch, self.chance.randrange(10_000))[layout.name].numpy())
        except (batchfs.Error, OSError) as error:
            self.datasets.pop(layout.name, None)
            if (self.round.kills != kills or self.round.may_end or "connection" in str(error)
                    or "socket" in str(error)):
                return self.model.count("errors: hand-off: after a kill")
            self.model.count("errors: hand-off")
            return self.model.check_error(f"hand-off: {error}", model.batch_keys(layout, batch),
                                          errno.ESTALE)
        rows = got.reshape(-1, model.ROWS, model.SHAPE[2])
        self.model.check(f"hand-off of batch {batch} of {layout.name}",
                         model.seen_in_rows(layout, batch, 0, rows), {})


class Descriptor:
    def __init__(self, path):
        self.number = os.open(path, os.O_RDONLY)

    def close(self):
        os.close(self.number)


class Round:
    """One mount."""

    def __init__(self, store, mutator, known, chance, scratch, kills):
        self.store, self.mutator, self.model, self.chance, self.with_kills = (
            store, mutator, known, chance, kills)
        self.directory = scratch / "mnt"
        self.views = [part for layout in model.LAYOUTS
                      for part in ("--view", str(scratch / f"{layout.name}.json"))]
        self.kills, self.may_end, self.ended = 0, False, False

    def run(self):
        self.mutator.start()
        mode = self.chance.choice([[], ["--no-passthrough"]])
        environment = ({"PATH": os.environ["PATH"], "HOME": str(self.directory.parent)}
                       | self.store.environment)
        environment |= {name: os.environ[name]
                        for name in ("XDG_RUNTIME_DIR", "ASAN_OPTIONS", "LD_LIBRARY_PATH")
                        if name in os.environ}
        subprocess.run([PROGRAM, "mount", self.store.url, str(self.directory), *self.views, *mode,
                        *self.store.options, "--memory", "1M", "--idle", "0.05"],
                       check=True, env=environment)
        try:
            # An array of a remote store with consolidated metadata that goes before anybody wanted
            # its chunks is not noticed.
            for layout in model.LAYOUTS:
                Reader(self.directory, self.model, self.chance, self).read_batch(layout, 0)
            readers = [Reader(self.directory, self.model, random.Random(self.chance.random()), self)
                       for _ in range(READERS)]
            threads = [threading.Thread(target=reader.run, args=(READS,)) for reader in readers]
            for thread in threads:
                thread.start()
            self.change_while(threads)
            for thread in threads:
                thread.join(120)
                if thread.is_alive():
                    self.model.violation("a reader hangs")
        finally:
            subprocess.run([PROGRAM, "umount", "--lazy", str(self.directory)], check=False,
                           stderr=subprocess.DEVNULL)

    def change_while(self, threads):
        changes = 0
        while any(thread.is_alive() for thread in threads) and changes < CHANGES:
            time.sleep(self.chance.random() * PAUSE)
            if self.with_kills and self.chance.random() < 0.15:
                self.kill()
            elif kind := self.mutator.change():
                self.model.count(f"changes: {kind}")
                changes += 1
                # Without the objects to open the store by, the next daemon cannot start.
                self.may_end = self.may_end or (self.kills > 0
                                                and (self.mutator.gone or self.store.whole))

    def kill(self):
        if self.mutator.gone:
            return
        try:
            pid = json.loads((self.directory / ".batchfs/status.json").read_text())["pid"]
        except (OSError, json.JSONDecodeError):
            return
        self.may_end = self.may_end or (self.store.whole
                                        and any(group.changed()
                                                for group in self.model.groups.values()))
        self.kills += 1
        self.model.count("kills")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Progress:
    """Tells how far a run is: on a terminal after each mount, else once a minute."""

    EVERY = 60  # seconds

    def __init__(self, stream=sys.stderr, clock=time.monotonic):
        self.stream, self.clock = stream, clock
        self.begun = self.told = clock()

    def tell(self, name, known, operations):
        now = self.clock()
        terminal = self.stream.isatty()
        if not terminal and now - self.told < self.EVERY:
            return
        self.told = now
        done = operations_of(known)
        line = (f"{name}: {done} of {operations} operations, "
                f"{done / max(now - self.begun, 1e-3):.0f} a second, "
                f"{len(known.violations)} findings")
        self.stream.write(f"\r\033[K{line}" if terminal else f"{line}\n")
        self.stream.flush()

    def end(self):
        if self.stream.isatty():
            self.stream.write("\r\033[K")


def run(name, operations, kills, seed, scratch):
    """Until so many operations: the model with its counts and violations."""
    progress = Progress()
    chance = random.Random(f"{seed} {name}")
    store = mutation_stores.make(name, scratch)
    known = model.Model()
    try:
        (scratch / "mnt").mkdir()
        for layout in model.LAYOUTS:
            (scratch / f"{layout.name}.json").write_text(json.dumps(model.view_of(layout)))
        mutator = Mutator(store, known, chance)
        # Few operations may end before the first kill.
        while (operations_of(known) < operations
               or (kills and "kills" not in known.counts)) and len(known.violations) < 100:
            Round(store, mutator, known, chance, scratch, kills).run()
            known.count("mounts")
            progress.tell(name, known, operations)
    finally:
        progress.end()
        store.end()
    return known


def operations_of(known):
    return sum(count for what, count in known.counts.items()
               if what.startswith(("reads", "opens", "changes", "kills")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--operations", type=int, default=100_000, help="of all stores together")
    parser.add_argument("--stores", default=",".join(mutation_stores.NAMES))
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    names = arguments.stores.split(",")
    failed = False
    for name in names:
        with tempfile.TemporaryDirectory(prefix="batchfs-mutations-",
                                         ignore_cleanup_errors=True) as scratch:
            known = run(name, arguments.operations // len(names), not arguments.no_kills,
                        arguments.seed, pathlib.Path(scratch))
        line = {"store": name, "seed": arguments.seed, "operations": operations_of(known),
                "violations": len(known.violations)}
        print(json.dumps(line | dict(sorted(known.counts.items()))), flush=True)
        for text in known.violations[:20]:
            print(f"{name}, seed {arguments.seed}: {text}", file=sys.stderr)
        failed = failed or bool(known.violations)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
