"""Which chunks the windows of a batch touch, from the metadata that zarr-python reads."""

import io
import itertools

import numpy as np
import zarr


def rows(good, store, view, epoch=0):
    """The windows of an epoch: a row has batch, sample, and the start along each dimension."""
    return np.load(io.BytesIO(good("plan", store, "--view", view, "--windows", "--epoch", epoch)))


def touched(store, variables, sizes, starts):
    """{(array, chunk): (start, shape)}: the box of each chunk around all that these windows take.

    `sizes` are the lengths of windows along the first dimensions, which `starts` has a row of for
    each window; of the other dimensions a window takes all.
    """
    group = zarr.open_group(store, mode="r")
    boxes = {}
    for name in variables:
        array = group[name]
        for start in starts:
            begin = [*start, *[0] * (array.ndim - len(start))]
            end = [s + n for s, n in zip(start, sizes)] + list(array.shape[len(start):])
            ranges = [range(b // c, (e - 1) // c + 1) for b, e, c in zip(begin, end, array.chunks)]
            for chunk in itertools.product(*ranges):
                low = [max(b - i * c, 0) for b, i, c in zip(begin, chunk, array.chunks)]
                high = [min(e - i * c, c) for e, i, c in zip(end, chunk, array.chunks)]
                if (name, chunk) in boxes:
                    old_low, old_high = boxes[name, chunk]
                    low, high = list(map(min, low, old_low)), list(map(max, high, old_high))
                boxes[name, chunk] = (low, high)
    return {key: (low, [h - b for b, h in zip(low, high)]) for key, (low, high) in boxes.items()}


def stored_at(store, name, chunk):
    """(key, offset or None, bytes) of a stored chunk of format 3; None where it is not stored."""
    array = zarr.open_group(store, mode="r")[name]
    shards = array.shards or array.chunks
    per_shard = [s // c for s, c in zip(shards, array.chunks)]
    outer = tuple(i // n for i, n in zip(chunk, per_shard))
    key = f"{name}/{array.metadata.chunk_key_encoding.encode_chunk_key(outer)}"
    if not (store / key).exists():
        return None
    if array.shards is None:
        return key, None, (store / key).stat().st_size
    # The index: (offset, size) of each inner chunk, and a CRC-32C; all ones where there is none.
    index = (store / key).read_bytes()[-16 * int(np.prod(per_shard)) - 4:-4]
    inner = [i % n for i, n in zip(chunk, per_shard)]
    offset, size = np.frombuffer(index, "<u8").reshape(*per_shard, 2)[tuple(inner)]
    return None if offset == 2**64 - 1 else (key, int(offset), int(size))
