"""Servers and mounts as processes, and the views that they serve."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest
from watching import eventually

import batchfs

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))

TWO = {"name": "two", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 3},
       "dtype": "float32", "order": {"shuffle": "global", "seed": 3}, "epochs": 2,
       "formats": ["npy", "safetensors"]}
VIEWS = {
    "two": TWO,
    "one": {"name": "one", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 6},
            "formats": ["npy"]},
    "half": {"name": "half", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 6},
             "dtype": "bfloat16", "formats": ["safetensors"]},
    "drop": TWO | {"name": "drop", "batch": {"size": 3, "remainder": "drop"}},
    "pad": TWO | {"name": "pad", "batch": {"size": 3, "remainder": "pad"}},
}


class Server:
    """`batchfs serve` as a process."""

    def __init__(self, store, directory, views, *options):
        self.socket = directory / f"s{len(list(directory.iterdir()))}.sock"
        files = []
        for name, view in views.items():
            file = directory / f"{name}.json"
            file.write_text(json.dumps(view))
            files += ["--view", str(file)]
        self.command = [PROGRAM, "serve", str(store), *files, "--socket", str(self.socket),
                        *map(str, options)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        assert eventually(self.answers), "batchfs serve does not start"

    def answers(self):
        assert self.process.poll() is None, "batchfs serve ended"
        try:
            batchfs.open(self.socket, "two")
        except (batchfs.Error, OSError):
            return False
        return True

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=20)


def mount(store, directory, *options):
    directory.mkdir()
    files = []
    for name, view in VIEWS.items():
        file = directory.parent / f"{name}.json"
        file.write_text(json.dumps(view))
        files += ["--view", str(file)]
    subprocess.run([PROGRAM, "mount", str(store), str(directory), *files, *options], check=True)
    assert os.path.ismount(directory)


@contextlib.contextmanager
def mounted_at(store, directory):
    """A mount that ends with the block; skips the test where nothing can be mounted."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened: nothing can be mounted on this machine")
    mount(store, directory)
    yield directory
    subprocess.run([PROGRAM, "umount", "--lazy", str(directory)], check=False)


def same(a, b):
    """The same bytes: NaN is as good as any."""
    return (a.dtype == b.dtype and a.shape == b.shape
            and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())
