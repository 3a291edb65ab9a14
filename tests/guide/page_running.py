"""Runs a page of the guide in a folder, as a process of its own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "man" / "guide"
PROGRAM = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build" / "batchfs"))


def environment():
    """With this batchfs and this Python first in PATH."""
    paths = [str(PROGRAM.parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    return {**os.environ, "PATH": ":".join(paths), "BATCHFS": str(PROGRAM), "PYTHONWARNINGS": "default"}


def run_page(page, folder):
    """The finished process. `examples` in the folder is that of the checkout; what is mounted at `mnt` is unmounted."""
    (folder / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run([sys.executable, ROOT / "tests" / "guide" / "run_page.py", page], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=300, env=environment())
    subprocess.run([PROGRAM, "umount", "--lazy", folder / "mnt"], capture_output=True, check=False)
    return done
