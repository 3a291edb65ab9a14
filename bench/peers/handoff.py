"""Batches over the hand-off, through the C library: what programs get that do not read files."""

import contextlib
import ctypes
import os
import pathlib

import numpy as np

from harness.mount import PROGRAM, Mount, tensor_names
from peers.batchfs import read_batches


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("itemsize", ctypes.c_uint32), ("dlpack_code", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
                ("nbytes", ctypes.c_uint64), ("dlpack_device", ctypes.c_int32),
                ("device_number", ctypes.c_int32)]


def library():
    name = os.environ.get("BATCHFS_READER",
                          str(pathlib.Path(PROGRAM).parent / "libbatchfs_reader.so"))
    reader = ctypes.CDLL(name)
    reader.batchfs_error.restype = ctypes.c_char_p
    reader.batchfs_release.restype = None
    return reader


class Reader:
    """One view, read through the library."""

    def __init__(self, place):
        self.api = library()
        self.handle = ctypes.c_void_p()
        self.check(self.api.batchfs_open(os.fsencode(place), None, ctypes.byref(self.handle)))

    def check(self, code):
        if code != 0:
            raise RuntimeError(self.api.batchfs_error().decode())

    def arrays(self, batch):
        tensor, arrays = Tensor(size=ctypes.sizeof(Tensor)), []
        while self.api.batchfs_tensor_at(batch, len(arrays), ctypes.byref(tensor)) == 0:
            bytes_ = (ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data)
            arrays.append(
                np.frombuffer(bytes_, tensor.dtype.decode()).reshape(tensor.shape[:tensor.ndim]))
        return arrays

    def epoch(self, number):
        """The batches of an epoch; each is released when the next is requested."""
        batch = ctypes.c_void_p()
        self.check(self.api.batchfs_start(self.handle, ctypes.c_int64(number), ctypes.c_int64(0)))
        while True:
            self.check(self.api.batchfs_next(self.handle, ctypes.byref(batch)))
            if not batch:
                return
            try:
                yield self.arrays(batch)
            finally:
                self.api.batchfs_release(batch)

    def one(self, epoch, number):
        batch = ctypes.c_void_p()
        self.check(self.api.batchfs_get(self.handle, ctypes.c_int64(epoch), ctypes.c_int64(number),
                                        ctypes.byref(batch)))
        return batch

    def close(self):
        self.api.batchfs_close(self.handle)


def batches(report, store, view, count, epochs=1, options=(), by_tensor=False):
    """`count` batches of each of the first `epochs` epochs. `by_tensor`: tagged by tensor, as
    arrays that are read as a whole are."""
    names = tensor_names(view)
    with Mount(report, store, [view], options) as path, contextlib.closing(
            Reader(path / "views" / view["name"])) as reader:
        for number in range(epochs):
            with contextlib.closing(reader.epoch(number)) as epoch:
                for batch, arrays in zip(range(count), epoch):
                    if by_tensor:
                        yield from ((name, [array]) for name, array in zip(names, arrays))
                    else:
                        yield f"{number}/{batch}", arrays



def ready(report, store, view, count):
    """The same batch again and again: what it takes to be handed one that is ready."""
    with Mount(report, store, [view]) as path:
        reader = Reader(path / "views" / view["name"])
        for i in range(count):
            batch = reader.one(0, 0)
            yield str(i), reader.arrays(batch)
            reader.api.batchfs_release(batch)
        reader.close()


def ready_files(report, store, view, count, how):
    """The same batch again and again, from its file: mapped, read into memory that is used again,
    or by numpy.load."""
    with Mount(report, store, [view]) as path:
        if how == "load":
            for i in range(count):
                yield str(i), [
                    np.load(path / "views" / view["name"] / "epoch-0000/batch-000000.npy")]
            return
        for i in range(count):
            with contextlib.closing(read_batches(path / "views" / view["name"], view, 1, how, 1, 0,
                                                 False)) as read:
                yield str(i), next(read)[1]


def loaded(report, store, view, count, epochs=1):
    """All batches, each by numpy.load."""
    with Mount(report, store, [view]) as path:
        for number in range(epochs):
            for batch in range(count):
                file = path / "views" / view["name"] / f"epoch-{number:04d}" / (
                    f"batch-{batch:06d}.npy")
                yield f"{number}/{batch}", [np.load(file)]
