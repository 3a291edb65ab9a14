"""A short run of inject.py, always of the same points; `python tests/faults/inject.py --points 2000` is a
long one. With -s, its table is shown."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

INJECT = pathlib.Path(__file__).with_name("inject.py")
KINDS = "open read mmap fork thread write sync descriptor truncate"


@pytest.mark.not_sanitized("they bring an allocator of their own")
@pytest.mark.parametrize("only", ["inspect", "cat", "plan", "batch", "statistics"])
def test_a_failing_call_ends_in_success_or_one_line(only):
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("there is no C compiler to build the library with that makes calls fail")
    done = subprocess.run([sys.executable, INJECT, "--only", only, "--points", "4", "--seed", "1",
                           "--kinds", KINDS],
                          capture_output=True, text=True, check=False, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
