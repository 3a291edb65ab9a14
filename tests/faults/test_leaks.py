"""Whether a daemon has freed all of its memory when it ends. Only one in the foreground, alone,
ends as programs do."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import zarr

PROGRAM = os.environ.get("BATCHFS")


@pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" not in os.environ,
                    reason="only LeakSanitizer knows: see tests/conftest.py")
@pytest.mark.parametrize("options", [[], ["--no-passthrough"]], ids=["passthrough", "served"])
def test_a_daemon_leaks_nothing(batchfs, tmp_path, options):
    zarr.create_group(tmp_path / "s.zarr").create_array("v", data=np.ones((40, 100), "f4"),
                                                        chunks=(3, 100),
                                                        dimension_names=["time", "x"])
    view = tmp_path / "v.json"
    view.write_text(json.dumps({"name": "v", "window": {"time": 1}, "batch": {"size": 6},
                                "formats": ["npy", "npz", "safetensors", "zarr", "png"]}))
    directory = tmp_path / "mnt"
    directory.mkdir()
    with subprocess.Popen([PROGRAM, "mount", "-f", "--no-supervisor", tmp_path / "s.zarr",
                           directory, "--view", view, *options], stderr=subprocess.PIPE) as process:
        try:
            while not os.path.ismount(directory) and process.poll() is None:
                time.sleep(0.05)
            for folder in [directory, directory / ".batchfs", directory / "views/v/rank-1-of-2"]:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        path.read_bytes()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, process.stderr.read().decode()
        finally:
            batchfs("umount", "--lazy", directory)
