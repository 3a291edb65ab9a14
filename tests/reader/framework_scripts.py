"""Scripts of the tests with frameworks: each runs in processes of its own, and shows what it found
as JSON."""

import json
import os
import subprocess
import sys

import batchfs

SHUFFLED = {"name": "v", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 4},
            "order": {"shuffle": "global"}, "dtype": "float32"}
# One write: those of two processes do not mix.
SHOW = ("import json, os\ndef show(value): os.write(1, b'RESULT ' + "
        "json.dumps(value).encode() + b'\\n')\n")


def run_script(tmp_path, script, *arguments, processes=1, environment=None):
    """Output of each process of a script."""
    file = tmp_path / "script.py"
    file.write_text(SHOW + script)
    command = [sys.executable, str(file)]
    if processes > 1:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                   f"--nproc-per-node={processes}", str(file)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=300, cwd=tmp_path,
                          env=os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {}))
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line.removeprefix("RESULT ")) for line in done.stdout.splitlines()
            if line.startswith("RESULT ")]


def means(store, epoch, view=SHUFFLED):
    """A number for each batch of an epoch."""
    with batchfs.open(store, view, epoch=epoch) as data:
        return [float(batch["t"].numpy().mean()) for batch in data]
