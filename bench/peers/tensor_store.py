"""TensorStore."""

import collections

import numpy as np
import tensorstore

from harness.geometry import Geometry
from harness.loaders import tag


def open_arrays(store, variables, zarr_format, cache_bytes=0):
    context = tensorstore.Context({"cache_pool": {"total_bytes_limit": cache_bytes}})
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    opening = {}
    for name in variables:
        if store.startswith("http"):
            base, _, path = store.rpartition("/")
            kvstore = {"driver": "http", "base_url": base, "path": f"/{path}/{name}/"}
        else:
            kvstore = {"driver": "file", "path": f"{store}/{name}/"}
        opening[name] = tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True,
                                         read=True, context=context, recheck_cached_data=False,
                                         recheck_cached_metadata=False)
    return {name: future.result() for name, future in opening.items()}


def read_all(report, store, variables, zarr_format=3, passes=1):
    """Every array as a whole, `passes` times."""
    arrays = open_arrays(store, variables, zarr_format)
    for name in variables * passes:
        yield name, [arrays[name].read().result()]


def batches(report, store, geometry, order, batches_per_epoch, zarr_format, cache_bytes, ahead=8):
    """Batches gathered by hand, `ahead` of them being read while one is used."""
    geometry = Geometry(geometry)
    arrays = open_arrays(store, geometry.variables, zarr_format, cache_bytes)
    rows = np.load(order)

    def begin(samples):
        return [(*piece[:3], arrays[piece[2]][piece[3]].read())
                for piece in geometry.pieces(samples)]

    reading = collections.deque(begin(samples) for samples in rows[:ahead])
    for number in range(len(rows)):
        outs = geometry.empty(len(rows[number]))
        for tensor, row, variable, future in reading.popleft():
            geometry.place(outs[tensor], row, variable)[...] = future.result()
        if number + ahead < len(rows):
            reading.append(begin(rows[number + ahead]))
        yield tag(number, batches_per_epoch), outs


def pairs(report, store, geometry, batch, count, zarr_format=3, views=False, ahead=2):
    """In-order pairs of steps, as zarr_python.pairs."""
    geometry = Geometry(geometry)
    array = next(iter(open_arrays(store, geometry.variables, zarr_format).values()))
    begin = lambda number: array[number * batch:(number + 1) * batch + 1].read()
    reading = collections.deque(begin(number) for number in range(min(ahead, count)))
    for number in range(count):
        steps = reading.popleft().result()[:, None]
        if number + ahead < count:
            reading.append(begin(number + ahead))
        x, y = steps[:-1], steps[1:]
        yield f"0/{number}", [x, y] if views else [x.copy(), y.copy()]
