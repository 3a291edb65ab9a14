"""Looking at mounts and processes until something is so."""

import json
import pathlib
import time


def eventually(condition, seconds=20):
    """The value of condition() as soon as it is true; False after so many seconds."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return result


def status(directory):
    """The counters of a mount."""
    return json.loads((pathlib.Path(directory) / ".batchfs/status.json").read_text())


def is_alive(pid):
    """Does the process run? One that nobody has waited for yet does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
