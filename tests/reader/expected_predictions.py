"""The expected contents of an output, in numpy, element by element: from the samples' windows and
their predictions."""

import numpy as np


def ramp(starts, start, size, length, wraps, cosine):
    """Weights of a window's positions: they rise and fall over what it shares with its
    neighbours."""
    weights = np.ones(size)
    if not cosine:
        return weights
    i = starts.index(start)
    around = wraps and len(starts) > 1
    before = (starts[i] - starts[i - 1] if i > 0 else starts[0] + length - starts[-1] if around
              else size)
    behind = (starts[i + 1] - starts[i] if i + 1 < len(starts) else starts[0] + length - starts[-1]
              if around else size)
    for k in range(size):
        if k < size - before:
            weights[k] *= np.sin(np.pi / 2 * (k + 0.5) / (size - before)) ** 2
        if size - 1 - k < size - behind:
            weights[k] *= np.sin(np.pi / 2 * (size - 0.5 - k) / (size - behind)) ** 2
    return weights


def expected(dims, lengths, windows, samples, overlap, dtype):
    """`dims` of the array, and `lengths` of it; `windows`: of dimensions that windows move along
    (offsets, size, wraps); `samples`: by number (start by dimension, values with the array's
    dimensions)."""
    shape = [lengths[dim] for dim in dims]
    total, weight, best = np.zeros(shape), np.zeros(shape), np.full(shape, np.inf)
    chosen = (np.zeros(shape, dtype) if np.dtype(dtype).kind != "f"
              else np.full(shape, np.nan, dtype))
    starts = {dim: sorted({start[dim] for start, _ in samples.values()}) for dim in windows}
    for number, (start, values) in sorted(samples.items()):
        places, weights, distances, kept = [], [], [], []
        for dim in dims:
            if dim not in windows:
                place, w, far = np.arange(lengths[dim]), np.ones(lengths[dim]), np.zeros(
                    lengths[dim])
            else:
                offsets, size, wraps = windows[dim]
                place = np.concatenate([start[dim] + offset + np.arange(size)
                                        for offset in offsets])
                w = np.tile(ramp(starts[dim], start[dim], size, lengths[dim], wraps,
                                 overlap == "cosine"), len(offsets))
                far = np.tile(((np.arange(size) - (size - 1) / 2) / size) ** 2, len(offsets))
                place = place % lengths[dim] if wraps else place
            inside = np.flatnonzero((place >= 0) & (place < lengths[dim]))
            kept.append(inside)
            places.append(place[inside])
            weights.append(w[inside])
            distances.append(far[inside])
        values = values[np.ix_(*kept)]
        box = np.ix_(*places)
        w, far = np.ones(()), np.zeros(())
        for one, other in zip(weights, distances):
            w, far = np.multiply.outer(w, one), np.add.outer(far, other)
        if overlap == "last":
            far = np.full(far.shape, -float(number))
        nearer = far < best[box] - 1e-12
        chosen[box] = np.where(nearer, values, chosen[box])
        best[box] = np.where(nearer, far, best[box])
        total[box] += w * values
        weight[box] += w
    if overlap in ("mean", "cosine"):
        with np.errstate(invalid="ignore"):
            return (total / weight).astype(dtype)
    return chosen
