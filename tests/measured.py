"""Cost of a command: processor time and memory."""

import subprocess
import tempfile
from dataclasses import dataclass


@dataclass
class Measured:
    status: int
    seconds: float  # of the processor
    peak: int       # bytes that were resident at most
    error: str


# The peak of a child begins as its parent's: another process, which is small, starts the program.
STARTER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(3, (f"{os.waitstatus_to_exitcode(status)} {usage.ru_utime + usage.ru_stime} "
             f"{usage.ru_maxrss}").encode())
"""


def measure(program, *arguments, timeout=120):
    with tempfile.TemporaryFile() as error, tempfile.TemporaryFile() as usage:
        command = ["python3", "-I", "-S", "-c", f"import os; os.dup2({usage.fileno()}, 3)\n"
                       + STARTER, program, *map(str, arguments)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=error, pass_fds=[usage.fileno()],
                       timeout=timeout, check=True)
        usage.seek(0)
        error.seek(0)
        status, seconds, peak = usage.read().split()
        return Measured(int(status), float(seconds), int(peak) * 1024,
                        error.read().decode(errors="replace"))


def peak_of(pid):
    """Bytes that a running process has had resident at most."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0
