"""Common parts of the tests of single system calls: their objects, and the errors of calls."""

import ctypes

import pytest
from watching import status

EPOCH = "views/one/epoch-0000"
BATCH = f"{EPOCH}/batch-000001.npy"
libc = ctypes.CDLL(None, use_errno=True)


def error_of(action, *arguments, **options):
    """The errno that a call fails with."""
    with pytest.raises(OSError) as caught:
        action(*arguments, **options)
    return caught.value.errno


def has_passthrough(directory):
    return status(directory)["passthrough"]
