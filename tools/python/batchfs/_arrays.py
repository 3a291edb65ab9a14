"""zarr-python, which only outputs need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import NotSupported
from ._placement import Placement

if TYPE_CHECKING:
    from ._zarr_arrays import Arrays


def check_zarr() -> None:
    """Raises NotSupported where it is not installed."""
    try:
        from . import _zarr_arrays  # noqa: F401
    except ImportError as error:
        raise NotSupported(f"batchfs.create needs zarr-python 3 ({error}): pip install 'zarr>=3.0.8'") from None


def arrays_of(put: Callable[[str, Any], None], placements: list[Placement], codec: str) -> Arrays:
    """The arrays of an output and their coordinates. Objects are handed to `put`."""
    check_zarr()
    from ._zarr_arrays import Arrays

    arrays = Arrays(put)
    for placement in placements:
        arrays.add(placement, codec)
    for placement in placements:
        for axis in placement.axes:
            arrays.add_coordinate(axis)
    return arrays
