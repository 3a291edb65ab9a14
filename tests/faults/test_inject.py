"""A short run of inject.py, always of the same points; `python tests/faults/inject.py --points
2000` is a long one, see tests/faults/README.md. With -s, its table is shown."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

INJECT = pathlib.Path(__file__).with_name("inject.py")
CALLS = "open read mmap fork thread write sync descriptor truncate"


def run(only, points, kinds, *options):
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("there is no C compiler to build the library with that makes calls fail")
    done = subprocess.run([sys.executable, INJECT, "--only", only, "--points", str(points),
                           "--seed", "1", "--kinds", kinds, *options],
                          capture_output=True, text=True, check=False, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.not_sanitized("they bring an allocator of their own")
@pytest.mark.parametrize("kinds, points", [(CALLS, 2), ("malloc", 20)])
@pytest.mark.parametrize("only", ["inspect", "cat", "http", "plan", "batch", "statistics"])
def test_a_failing_call_ends_in_success_or_one_line(only, kinds, points):
    run(only, points, kinds)


@pytest.mark.not_sanitized("they bring an allocator of their own")
@pytest.mark.parametrize("only", ["cat", "http"])
def test_libcrypto_without_memory(only):
    """libcrypto continues after an initialization that failed, and crashes."""
    run(only, 60, "malloc", "--caller", "libcrypto")


@pytest.mark.not_sanitized("they bring an allocator of their own")
@pytest.mark.parametrize("kinds, points", [(CALLS, 2), ("malloc", 20)])
def test_readers_of_a_mount_get_the_right_bytes_or_an_error(kinds, points):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    run("mount", points, kinds)


@pytest.mark.not_sanitized("they bring an allocator of their own")
@pytest.mark.parametrize("only", ["mount without passthrough", "takeover"])
def test_libfuse_without_memory(only):
    """Every allocation of libfuse: a session whose INIT it did not see serves nothing, and ends."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    run(only, 1000, "malloc", "--caller", "libfuse3")
