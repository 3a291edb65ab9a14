"""The package's type hints under pyright; tools/lint runs mypy --strict."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "tools/python"


def test_pyright_finds_nothing():
    """With PyTorch and the others, whose types the package uses."""
    for module in ("pyright", "torch"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: `tools/test frameworks` has it")
    done = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
                          cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
