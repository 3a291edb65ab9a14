"""Runs a page of the guide in a folder, as a process of its own."""

import atexit
import functools
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "man" / "guide"
PROGRAM = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build" / "batchfs"))


def environment():
    """With this batchfs and this Python first in PATH."""
    paths = [str(PROGRAM.parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    return {**os.environ, "PATH": ":".join(paths), "BATCHFS": str(PROGRAM),
            "PYTHONWARNINGS": "default"}


@functools.cache
def made_store(name):
    """A store of man/guide/examples/stores.py, once for all tests of this process."""
    spec = importlib.util.spec_from_file_location("batchfs_example_stores",
                                                  ROOT / "man/guide/examples" / "stores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make(name, _folder()).resolve()


@functools.cache
def _folder():
    folder = tempfile.mkdtemp(prefix="batchfs-guide-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run_page(page, folder):
    """The finished process. `man/guide` in the folder is that of the checkout, and so are the
    stores that the page makes by it. A mount at `mnt` and servers with a socket there are ended."""
    (folder / "man").mkdir()
    (folder / "man/guide").symlink_to(ROOT / "man/guide")
    text = page.read_text()
    for name in ("era5", "imerg", "cmip6", "sentinel2", "cells", "hrrr"):
        if "stores" in text and name in text:
            (folder / f"{name}.zarr").symlink_to(made_store(name))
    done = subprocess.run([sys.executable, ROOT / "tests" / "guide" / "run_page.py", page],
                          cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                          env=environment())
    subprocess.run([PROGRAM, "umount", "--lazy", folder / "mnt"], capture_output=True, check=False)
    for socket in folder.glob("*.sock"):  # of a page that failed before it ended its server
        status = subprocess.run([PROGRAM, "status", "--json", socket], capture_output=True,
                                check=False)
        if status.returncode == 0:
            os.kill(json.loads(status.stdout)["pid"], signal.SIGTERM)
    return done
