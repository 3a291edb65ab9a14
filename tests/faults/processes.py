"""The processes of a run: which there are, what they wait for, and their end."""

import os
import pathlib
import shutil
import signal
import subprocess
import time


def processes_of(scratch):
    """The processes of a run: those that name its directory in their arguments or environment."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and any(
                    str(scratch).encode() in (process / name).read_bytes()
                    for name in ("cmdline", "environ")):
                found.append(int(process.name))
        except OSError:
            continue  # it has ended, or is another user's
    return sorted(found)


def stacks_of(scratch):
    """The stacks of all threads of a run. Call before anything of the run is killed."""
    return "".join(stacks_of_process(pid) for pid in processes_of(scratch))


def stacks_of_process(pid):
    process = pathlib.Path("/proc", str(pid))
    try:
        arguments = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        status = [f"  {line}" for line in (process / "status").read_text().splitlines()
                  if line.split(":")[0] in ("State", "PPid", "SigBlk", "SigPnd")]
        descriptors = [f"{fd.name} {os.readlink(fd)}" for fd in (process / "fd").iterdir()]
        text = [f"process {pid}: {arguments}", *status, "  descriptors: " + ", ".join(descriptors)]
        for task in sorted((process / "task").iterdir()):
            waits = [f"{name} {(task / name).read_text().strip()}" for name in ("wchan", "syscall")]
            text.append(f"  thread {task.name}: " + ", ".join(waits))
            if not shutil.which("gdb"):
                text.append((task / "stack").read_text())
    except OSError as error:  # it has ended meanwhile, or is another user's
        return f"process {pid}: {error.strerror}\n"
    if shutil.which("gdb"):
        try:
            done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
                                   "-p", str(pid), "-ex", "thread apply all bt 16"],
                                  capture_output=True, text=True, errors="replace", check=False,
                                  timeout=30)
            text += [f"  {line}" for line in done.stdout.splitlines()
                     if line.startswith(("#", "Thread"))]
        except subprocess.TimeoutExpired:
            text.append("  gdb did not end")
    return "\n".join(text) + "\n"


def end_of_processes(text):
    """Waits until no process names `text` in its arguments; kills what stays."""
    until = time.monotonic() + 20
    while True:
        left = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (text.encode() in (process / "cmdline").read_bytes()
                        and int(process.name) != os.getpid()):
                    left.append(int(process.name))
            except OSError:
                continue
        if not left:
            return
        if time.monotonic() > until:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)
