"""A short run of model.py; `python tests/faults/model.py --seconds 600` is a long one."""

import os
import pathlib
import subprocess
import sys

import pytest

MODEL = pathlib.Path(__file__).with_name("model.py")


@pytest.mark.parametrize("options", [["--seconds", "5"], ["--seconds", "5", "--kills"]],
                         ids=["alive", "killed"])
def test_many_programs_see_what_they_must(options):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    done = subprocess.run([sys.executable, MODEL, *options], capture_output=True, text=True,
                          check=False, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
