"""batchfs itself: arrays and batches read through a mount."""

import contextlib
import mmap
import multiprocessing
import multiprocessing.connection
import os

import numpy as np

from harness.child import Elsewhere, touch
from harness.geometry import checksum
from harness.mount import Mount, tensor_names

BLOCK = 4 << 20


class Reader:
    """Opens .npy files, by mapping them, or by read() into memory that is used again."""

    def __init__(self, how):
        self.how = how
        self.buffer = None

    def __call__(self, file):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if self.how == "mmap":
                memory = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
            else:
                if self.buffer is None or len(self.buffer) < size:
                    self.buffer = mmap.mmap(-1, size)
                memory = memoryview(self.buffer)[:size]
                done = 0
                while done < size:
                    done += os.readv(descriptor, [memory[done:]])
        finally:
            os.close(descriptor)
        return self.array(memory, size)

    @staticmethod
    def array(memory, size):
        length = int.from_bytes(memory[8:10], "little")
        # as numpy.lib.format reads it
        header = eval(bytes(memory[10:10 + length]), {"__builtins__": {}})
        return np.frombuffer(memory, header["descr"], offset=10 + length).reshape(header["shape"])


def read_values(report, store, variables, passes=1, options=()):
    """Every array, as a sequential read of its values.npy, `passes` times."""
    with Mount(report, store, options=options) as path:
        buffer = mmap.mmap(-1, BLOCK)
        for name in variables * passes:
            with open(path / "arrays" / name / "values.npy", "rb", buffering=0) as file:
                file.seek(4096)
                while count := file.readinto(buffer):
                    yield name, [np.frombuffer(buffer, "u1", count)]


def batches(report, store, view, count, how="mmap", epochs=1, first=0, rank=None, options=(),
            by_tensor=False):
    """`count` batches of each of the first `epochs` epochs of a view: all tensors of each, in the
    view's order. `by_tensor`: tagged by tensor, as arrays that are read as a whole are."""
    with Mount(report, store, [view], options) as path:
        folder = path / "views" / view["name"]
        if rank:
            folder /= f"rank-{rank[0]}-of-{rank[1]}"
        # Closed before the unmounting, and with it every map of the mount's files.
        with contextlib.closing(read_batches(folder, view, count, how, epochs, first,
                                             by_tensor)) as read:
            yield from read


def read_batches(folder, view, count, how, epochs, first, by_tensor):
    names = tensor_names(view)
    readers = {name: Reader(how) for name in names}
    for number in range(epochs):
        files = folder / f"epoch-{number:04d}"
        for batch in range(first, first + count):
            base = files / f"batch-{batch:06d}"
            if len(names) == 1:
                arrays = [readers[names[0]](f"{base}.npy")]
            else:
                arrays = [readers[name](base / f"{name}.npy") for name in names]
            if by_tensor:
                yield from ((name, [array]) for name, array in zip(names, arrays))
            else:
                yield f"{number}/{batch}", arrays


def rank_reader(pipe, folder, view, count, how, rank, world, verify):
    """One rank's process: reads its batches and tells of each its global number, size and
    checksum."""
    own = range(rank, count, world)
    for number, (_, arrays) in zip(own, read_batches(folder, view, len(own), how, 1, 0, False)):
        for array in arrays:
            touch(array)
        pipe.send((f"0/{number}", Elsewhere(sum(array.nbytes for array in arrays),
                                            checksum(arrays) if verify else 0)))
        array = arrays = None
    pipe.send(None)


def ranks(report, store, view, count, world, how="mmap", options=()):
    """The first `count` global batches, read by `world` processes at once, in the order in which
    they come."""
    context = multiprocessing.get_context("fork")
    with Mount(report, store, [view], options) as path:
        pipes, processes = [], []
        for rank in range(world):
            here, there = context.Pipe(duplex=False)
            folder = path / "views" / view["name"] / f"rank-{rank}-of-{world}"
            processes.append(context.Process(target=rank_reader, daemon=True, args=(
                there, folder, view, count, how, rank, world, report["verify"])))
            processes[-1].start()
            there.close()
            pipes.append(here)
        while pipes:
            for pipe in multiprocessing.connection.wait(pipes):
                told = pipe.recv()
                if told is None:
                    pipes.remove(pipe)
                else:
                    yield told[0], [told[1]]
        for process in processes:
            process.join()
