"""xbatcher, alone and with worker processes: the Earthmover demo's way (dask below, one item at a
time)."""

import multiprocessing

import dask
import numpy as np
import xarray as xr
import xbatcher

from harness.geometry import Geometry
from harness.loaders import tag
from peers.zarr_python import opened


class Items:
    """Samples of a geometry out of a BatchGenerator."""

    def __init__(self, store, geometry, threads):
        self.geometry = Geometry(geometry)
        scheduler = {"scheduler": "single-threaded"} if threads == 1 else {
            "scheduler": "threads", "num_workers": threads}
        dask.config.set(**scheduler)
        dataset = xr.open_zarr(opened(store), chunks={},
                               decode_times=False)[list(self.geometry.variables)]
        reach = max(offset for _, offset in self.geometry.tensors)
        sizes = {dim: size + (reach if dim == "time" else 0)
                 for dim, (size, _) in self.geometry.window.items()}
        others = {dim: size for dim, size in dataset.sizes.items() if dim not in sizes}
        overlap = {dim: sizes[dim] - stride for dim, (_, stride) in self.geometry.window.items()}
        if len(others) > 1:
            sizes |= others  # whole, and last: xbatcher would join them into one dim
        self.generator = xbatcher.BatchGenerator(dataset, input_dims=sizes, input_overlap=overlap,
                                                 preload_batch=False)

    def batch(self, samples):
        outs = self.geometry.empty(len(samples))
        for row, sample in enumerate(samples):
            item = self.generator[int(sample)].load()
            for tensor, (_, offset) in enumerate(self.geometry.tensors):
                steps = slice(offset, offset + self.geometry.extent("time"))
                for name, dims in self.geometry.variables.items():
                    values = item[name].transpose(*dims).values[steps]
                    self.geometry.place(outs[tensor], row, name)[...] = values
        return outs


def batches(report, store, geometry, order, batches_per_epoch, threads=1):
    items = Items(store, geometry, threads)
    for number, samples in enumerate(np.load(order)):
        yield tag(number, batches_per_epoch), items.batch(samples)


def work(pipe, store, geometry, threads):
    items = Items(store, geometry, threads)
    while (samples := pipe.recv()) is not None:
        pipe.send(items.batch(samples))


def with_workers(report, store, geometry, order, batches_per_epoch, workers, threads=4, ahead=3):
    """A DataLoader's workers: each makes whole batches, `ahead` of them asked for in advance."""
    context = multiprocessing.get_context("forkserver")
    pipes, processes = [], []
    for _ in range(workers):
        here, there = context.Pipe()
        processes.append(context.Process(target=work, args=(there, store, geometry, threads),
                                         daemon=True))
        processes[-1].start()
        pipes.append(here)
    rows = np.load(order)
    try:
        for number in range(min(len(rows), workers * ahead)):
            pipes[number % workers].send(rows[number])
        for number in range(len(rows)):
            pipe = pipes[number % workers]
            outs = pipe.recv()
            if number + workers * ahead < len(rows):
                pipe.send(rows[number + workers * ahead])
            yield tag(number, batches_per_epoch), outs
    finally:
        for process in processes:
            process.terminate()
            process.join()
