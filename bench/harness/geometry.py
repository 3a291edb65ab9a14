"""Samples as windows over arrays: what the peers that read arrays need to make the same batches as
a view.

A spec (plain JSON, so that contenders get it as an argument):
  {"window": [[dim, size, stride, count], …]   row-major: the first slowest
   "variables": {name: [dims]}, "sizes": {dim: size}
   "tensors": [[name, offset of time], …]
   "stack": true}                              variables joined along dim 1, after time
Without "stack" there is one variable.
"""

import functools
import zlib

import numpy as np


class Geometry:
    def __init__(self, spec):
        self.spec = spec
        self.window = {dim: (size, stride) for dim, size, stride, _ in spec["window"]}
        self.counts = [count for *_, count in spec["window"]]
        self.variables = spec["variables"]
        self.tensors = spec["tensors"]
        self.samples = int(np.prod(self.counts))
        self.shape = self._shape()

    def extent(self, dim):
        return self.window[dim][0] if dim in self.window else self.spec["sizes"][dim]

    @functools.cached_property
    def channels(self):
        """{variable: (first, last)} along the stacked dim."""
        at, found = 0, {}
        for name, dims in self.variables.items():
            count = self.extent(dims[1]) if len(dims) == 4 else 1
            found[name] = (at, at + count)
            at += count
        return found

    def _shape(self):
        dims = next(iter(self.variables.values()))
        if not self.spec.get("stack"):
            return tuple(self.extent(dim) for dim in dims)
        return (self.extent(dims[0]), max(last for _, last in self.channels.values()),
                *(self.extent(dim) for dim in dims[-2:]))

    def starts(self, sample):
        positions = np.unravel_index(sample, self.counts)
        return {dim: int(position) * self.window[dim][1]
                for dim, position in zip(self.window, positions)}

    def slices(self, sample, variable, offset):
        starts = self.starts(sample)
        first = lambda dim: starts.get(dim, 0) + (offset if dim == "time" else 0)
        return tuple(slice(first(dim), first(dim) + self.extent(dim))
                     for dim in self.variables[variable])

    def empty(self, count):
        return [np.empty((count, *self.shape), "f4") for _ in self.tensors]

    def place(self, out, row, variable):
        """The part of a tensor's row that holds the variable, shaped as the variable is."""
        if not self.spec.get("stack"):
            return out[row]
        first, last = self.channels[variable]
        part = out[row, :, first:last]
        return part if len(self.variables[variable]) == 4 else part[:, 0]

    def pieces(self, samples):
        """(tensor, row, variable, slices) for each part of a batch of samples."""
        for row, sample in enumerate(samples):
            for tensor, (_, offset) in enumerate(self.tensors):
                for variable in self.variables:
                    yield tensor, row, variable, self.slices(int(sample), variable, offset)

    def gather(self, arrays, samples):
        """A batch from arrays that are indexed with slices."""
        outs = self.empty(len(samples))
        for tensor, row, variable, slices in self.pieces(samples):
            self.place(outs[tensor], row, variable)[...] = arrays[variable][slices]
        return outs


def checksum(arrays):
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view("u1"), value)
    return value
