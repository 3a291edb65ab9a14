"""batchfs, mounted for a contender."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BATCHFS", str(ROOT / "build" / "batchfs"))


def tensor_names(view):
    """The names of a view's tensors; those of a mixture are the first view's."""
    one = next(iter(view["mix"].values()))["view"] if "mix" in view else view
    return list(one.get("tensors") or one["variables"])


class Mount:
    """`with Mount(report, store, views) as path`: mounted in the foreground, as a child of this
    process, so that its processor time and memory count as the contender's. Its counters go to
    `report` at the end."""

    def __init__(self, report, store, views=(), options=()):
        self.report, self.store, self.views, self.options = report, store, views, options

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="batchfs-bench-")
        base = pathlib.Path(self.folder.name)
        self.path = base / "mnt"
        self.path.mkdir()
        arguments = []
        for view in self.views:
            file = base / f"{view['name']}.json"
            file.write_text(json.dumps(view))
            arguments += ["--view", str(file)]
        device = os.stat(base).st_dev
        begin = time.monotonic()
        self.log = open(base / "log", "wb")
        self.process = subprocess.Popen([PROGRAM, "mount", "-f", *arguments, *self.options,
                                         str(self.store), str(self.path)],
                                        stdout=self.log, stderr=self.log)
        while os.stat(self.path).st_dev == device:
            if self.process.poll() is not None:
                raise RuntimeError((base / "log").read_text())
            time.sleep(0.001)
        self.report["mount_seconds"] = time.monotonic() - begin
        return self.path

    def __exit__(self, *_):
        self.report["status"] = json.loads((self.path / ".batchfs/status.json").read_text())
        subprocess.run([PROGRAM, "umount", "--lazy", str(self.path)], check=True)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.log.close()
        self.folder.cleanup()
