"""batchfs for Dask: the tasks of one command on the workers of a cluster.

    from dask.distributed import Client
    from batchfs.dask import run

    statistics = run(Client("scheduler:8786"),
                     ["statistics", "s3://bucket/era5.zarr", "--view", "view.json"],
                     tasks=2000, out="s3://bucket/parts", merge="statistics.json")

Each task is a process of the program on a worker. It uses all cores: give workers one thread. A
task that fails, or whose worker dies, runs again; what tasks have done before stays done, also when
run() is called again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from distributed import Client, Future, as_completed

from ._errors import Error, InvalidArgument, NotFound, NotSupported
from ._program import failure, find_program, printable, store_word

_MERGED = ("check", "statistics", "warm")
_COMMANDS = (*_MERGED, "export", "rechunk")
_FIRST_PASS = "first pass of the task done"

Progress = Callable[[int, int], None]


def run(client: Client, command: Sequence[str | os.PathLike[str]], *, tasks: int,
        out: str | os.PathLike[str], merge: str | os.PathLike[str] | None = None, retries: int = 3,
        resources: Mapping[str, float] | None = None, progress: Progress | None = None,
        program: str | None = None) -> dict[str, Any]:
    """Runs `command`, the words of a command line, in `tasks` shares; returns the document that its
    --json writes.

    `command` begins with statistics, check, warm, rechunk or export. `out` is the folder of the
    parts, or of the copy that rechunk and export write: a URL, or a path that all workers and this
    process see. The parts are merged here; `merge` is a file for the merged document. Problems that
    check finds are in its document.

    `resources` are those of Dask that a task needs: {"batchfs": 1} on workers that were started
    with this resource. `progress(done, tasks)` is called as tasks end; without it, a terminal shows
    their number. `program` is the program's path on workers and here. Workers take credentials from
    their own environment.

    Raises InvalidArgument and NotSupported at once; Error when a task has failed `retries` times
    more, or lost more workers than the scheduler allows ("distributed.scheduler.allowed-failures").
    """
    words = [os.fspath(word) for word in command]
    if not words or words[0] not in _COMMANDS:
        raise InvalidArgument(f"the command begins with one of {', '.join(_COMMANDS)}")
    if tasks < 1:
        raise InvalidArgument("tasks= is at least 1")
    if merge is not None and words[0] not in _MERGED:
        raise InvalidArgument(f"merge= goes with {', '.join(_MERGED)}; {words[0]} writes "
                              "its output into out=")
    place = store_word(out)
    words += ["--json"]
    states: list[str] = []
    # A copy in two passes: no task may begin the second one before all have done the first.
    for _ in range(2):
        with _shown(words[0], progress) as show:
            states = _round(client, [*words, "--out", place, "--tasks", str(tasks)], tasks, retries,
                            resources, show, program)
        if _FIRST_PASS not in states:
            break
    if words[0] not in _MERGED:
        # The last task to end finishes the copy; two that ended at the same time may leave that to
        # this one.
        return dict(json.loads(_call(program, [*words, "--out", place, "--tasks", str(tasks)])))
    document = _call(program, [*words, "--merge", place], also_failed=words[0] == "check")
    if merge is not None:
        _write(os.fspath(merge), document)
    return dict(json.loads(document))


def _round(client: Client, words: list[str], tasks: int, retries: int,
           resources: Mapping[str, float] | None, show: Progress, program: str | None) -> list[str]:
    """The states that the tasks end in."""
    name = f"batchfs-{words[0]}-{uuid.uuid4().hex[:8]}"
    futures: list[Future] = client.map(_task, range(tasks), words=words, directory=os.getcwd(),
                                       program=program, pure=False,
                                       key=[f"{name}-{task}" for task in range(tasks)],
                                       batch_size=1000, retries=retries,
                                       resources=dict(resources) if resources else None)
    numbers = {future.key: number for number, future in enumerate(futures)}
    states = []
    try:
        show(0, tasks)
        for future in as_completed(futures, raise_errors=False):
            if future.status != "finished":
                why = future.exception() if future.status == "error" else "it was cancelled"
                raise Error(f"task {numbers[future.key]} of {tasks} failed: {why}")
            refusal, state = future.result()
            if refusal is not None:
                raise refusal
            states.append(state)
            show(len(states), tasks)
    except BaseException:
        client.cancel(futures, force=True)
        raise
    return states


def _task(task: int, *, words: list[str], directory: str,
          program: str | None) -> tuple[Error | None, str]:
    """Runs on a worker. Returns a failure that a retry cannot cure, and raises others."""
    try:
        done = _call(program, [*words, "--task", str(task)],
                     directory=directory if os.path.isdir(directory) else None)
    except (InvalidArgument, NotSupported) as error:
        return error, ""
    return None, json.loads(done)["state"]


def _call(program: str | None, words: list[str], *, directory: str | None = None,
          also_failed: bool = False) -> str:
    """The program's output. `also_failed`: also when it fails."""
    path = find_program(program)
    try:
        ended = subprocess.run([path, *words], cwd=directory, stdin=subprocess.DEVNULL,
                               capture_output=True, check=False,
                               env=os.environ | {"BATCHFS_ERRORS": "json"})
    except OSError as error:
        raise NotFound(f"the program '{path}' cannot be run: {error.strerror}") from None
    if ended.returncode != 0 and not (also_failed and ended.returncode == 1 and ended.stdout):
        raise failure(path, ended.returncode, ended.stderr.decode(errors="replace"))
    return ended.stdout.decode()


def _write(path: str, text: str) -> None:
    part = f"{path}.{uuid.uuid4().hex[:8]}.part"
    try:
        with open(part, "w") as file:
            file.write(text)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


@contextlib.contextmanager
def _shown(command: str, progress: Progress | None) -> Iterator[Progress]:
    if progress is not None:
        yield progress
        return
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, tasks: None
        return

    def show(done: int, tasks: int) -> None:
        sys.stderr.write(f"\rbatchfs: {printable(command)}: {done} of {tasks} tasks\033[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
