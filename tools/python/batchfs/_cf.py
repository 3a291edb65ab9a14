"""Labels as the CF conventions store them, which xarray decodes."""

from __future__ import annotations

from typing import Any

import numpy as np

_UNITS = (("days", 86_400_000_000_000), ("hours", 3_600_000_000_000), ("minutes", 60_000_000_000),
          ("seconds", 1_000_000_000), ("milliseconds", 1_000_000), ("microseconds", 1_000),
          ("nanoseconds", 1))


def encoded(values: np.ndarray, attributes: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Values and attributes as they are stored. Times become whole numbers since the first."""
    if values.dtype.kind == "M":
        numbers = values.astype("M8[ns]").astype(np.int64)
        missing = np.isnat(values)
        first = numbers[~missing].min() if not missing.all() else 0
        first -= first % 1_000_000_000
        unit, size = _coarsest(numbers[~missing] - first)
        reference = np.datetime64(int(first), "ns").astype("M8[s]").item().strftime(
            "%Y-%m-%d %H:%M:%S")
        steps = np.where(missing, np.iinfo(np.int64).min, (numbers - first) // size)
        result = attributes | {"units": f"{unit} since {reference}",
                               "calendar": "proleptic_gregorian"}
        return steps, result | ({"_FillValue": int(np.iinfo(np.int64).min)} if missing.any()
                                else {})
    if values.dtype.kind == "m":
        numbers = values.astype("m8[ns]").astype(np.int64)
        unit, size = _coarsest(numbers)
        return numbers // size, attributes | {"units": unit, "dtype": "timedelta64[ns]"}
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace"), attributes
    return values, attributes


def _coarsest(numbers: np.ndarray) -> tuple[str, int]:
    """The largest unit of which all are whole numbers."""
    return next((unit, size) for unit, size in _UNITS if not (numbers % size).any())
