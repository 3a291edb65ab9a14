"""A short run of load.py; `python tests/faults/load.py --seconds 10` is a long one. With -s, its
table is shown."""

import os
import pathlib
import subprocess
import sys

import pytest

from fault_kinds import fault_kinds

LOAD = pathlib.Path(__file__).with_name("load.py")


@pytest.mark.says("error-no-fill", "store-deadline", "store-stale", "memory-back")
def test_every_kind_of_fault_under_many_readers():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    assert len(fault_kinds(None)) >= 24
    done = subprocess.run([sys.executable, LOAD, "--seconds", "0.5"], capture_output=True,
                          text=True, check=False, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
