"""Common parts of the conformance tests: the program, and running it."""

import io
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

# for brute_force.py; importlib mode does not
sys.path.insert(0, str(pathlib.Path(__file__).parent))
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))


class Batchfs:
    """Runs the program; every failure must be one line on stderr and exit code 1."""

    def run(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=120)

    def bytes(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def npy(self, *arguments):
        return np.load(io.BytesIO(self.bytes(*arguments)), allow_pickle=False)

    def refusal(self, *arguments):
        done = self.run(*arguments)
        text = done.stderr.decode()
        assert done.returncode == 1, (done.returncode, text)
        assert text.startswith("batchfs: ") and text.count("\n") == 1, text
        return text


@pytest.fixture(scope="session")
def batchfs():
    if not os.access(PROGRAM, os.X_OK):
        pytest.fail(f"{PROGRAM} is not built")
    return Batchfs()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Files that batchfs keeps between commands stay out of the home directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
