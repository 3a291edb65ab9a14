#!/usr/bin/env python3
"""The hand-off of batches in GPU memory, from end to end, on a machine with a GPU, FUSE, torch and
cupy.

    handoff.py PROGRAM FOLDER [--only PART]... [CODING]...

FOLDER holds stores of bench/gpu_batches, CODING names of theirs.

Mounts each store, opens it in other processes with device="cuda:0", compares batches with the
mount's files (part bytes), kills readers and daemons (killed), does without a GPU or its memory
(fallbacks), reads on all GPUs where there are several (several), writes predictions that lie on the
GPU (predictions), measures (rates; forcings: channels made on the fly), and prints what it found.
The exit code is 1 when anything was wrong.
"""

import argparse
import array
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from handoff_roles import GPU_MEMORY

ROLES = pathlib.Path(__file__).with_name("handoff_roles.py")
AUTO = "client"  # the choice of auto
wrong = []


def check(condition, what):
    if not condition:
        wrong.append(what)
    print("ok   " if condition else "WRONG", what, flush=True)


def pairs_view(store, size, epochs):
    """All variables stacked, and the same a step later."""
    variables = sorted(path.name for path in store.iterdir() if path.is_dir())
    dims = ["channel", "latitude", "longitude"]
    tensor = {"variables": variables, "stack": "channel", "dims": dims}
    return {"name": "pairs", "window": {"time": 1}, "batch": {"size": size, "remainder": "drop"},
            "epochs": epochs, "order": {"shuffle": "none"},
            "tensors": {"x": tensor, "y": {**tensor, "offsets": {"time": [1]}}}}


FORCINGS = [{"make": "cos_zenith"}, {"make": "cos_latitude"}, {"make": "sin_julian_day"},
            {"make": "cos_julian_day"}]


def forced_view(store, size, epochs):
    """The same with channels of times and places, for which the store gets coordinates."""
    variables = sorted(path.name for path in store.iterdir()
                       if path.is_dir() and len(shape_of(path)) == 3)
    steps, *grid = shape_of(store / variables[0])
    coordinates = {"time": ("hours since 2001-01-01", [6 * i for i in range(steps)])}
    for dim, unit, count, span in zip(("latitude", "longitude"), ("degrees_north", "degrees_east"),
                                      grid, (-180, 360)):
        coordinates[dim] = unit, [(90 if span < 0 else 0) + span * i / count for i in range(count)]
    for name, (units, values) in coordinates.items():
        (store / name).mkdir(exist_ok=True)
        (store / name / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": [name],
                                                          "units": units}))
        (store / name / ".zarray").write_text(json.dumps(
            {"zarr_format": 2, "shape": [len(values)], "chunks": [len(values)], "dtype": "<f8",
             "compressor": None, "filters": None, "fill_value": None, "order": "C"}))
        (store / name / "0").write_bytes(array.array("d", values).tobytes())
    view = pairs_view(store, size, epochs)
    for tensor in view["tensors"].values():
        tensor["variables"] = variables
    view["tensors"]["x"]["variables"] = variables + FORCINGS
    return view


def shape_of(path):
    return json.loads((path / ".zarray").read_text())["shape"]


class Mount:
    """A daemon with these views, or one named "pairs"."""

    def __init__(self, program, store, *options, size=16, epochs=1000, views=None, memory="24G"):
        views = views or [pairs_view(store, size, epochs)]
        self.directory = tempfile.mkdtemp(prefix="batchfs-gpu-")
        files = []
        for view in views:
            files.append(f"{self.directory}.{view['name']}.json")
            pathlib.Path(files[-1]).write_text(json.dumps(view))
        self.log = open(self.directory + ".log", "w+")
        self.process = subprocess.Popen([program, "mount", store, self.directory,
                                         *(a for file in files for a in ("--view", file)),
                                         "--foreground", "--memory", memory, *options],
                                        stderr=self.log)
        for _ in range(200):
            if os.path.exists(f"{self.directory}/views/{views[-1]['name']}/schema.json"):
                return
            time.sleep(0.05)
            if self.process.poll() is not None:
                break
        self.log.seek(0)
        raise SystemExit("mount failed: " + self.log.read())

    def status(self):
        return json.loads(pathlib.Path(self.directory + "/.batchfs/status.json").read_text())

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                check(False, "the daemon ends within 20 s")
                self.process.kill()
        subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL)


def reader(role, place, *arguments, **options):
    return subprocess.Popen([sys.executable, ROLES, "--" + role, place, *map(str, arguments)],
                            text=True, stdout=subprocess.PIPE, **options)


def answer(process, timeout=120):
    """The last line that a reader says, as JSON."""
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"error": "it hangs"}
    lines = out.strip().splitlines()
    return json.loads(lines[-1]) if process.returncode == 0 and lines else {
        "error": f"exit {process.returncode}: {out[-300:]}"}


# The tests.


def settled(mount):
    for _ in range(100):
        handoff = mount.status()["handoff"]
        if handoff["leases"] == 0 and handoff["readers"] == 0:
            return True
        time.sleep(0.1)
    return False


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(mount, coding, mode, how, rate=True):
    """A row of the table: the rate and its cores, ready batches, and a training step beside it."""
    said = {}
    if rate:
        process = reader("measure", mount.directory, mode, 2.5)
        process.stdout.readline()
        daemon = mount.status()["pid"]  # the started process is its supervisor
        before = processor_seconds(daemon), processor_seconds(process.pid)
        process.stdout.readline()
        after = processor_seconds(daemon), processor_seconds(process.pid)
        said = answer(process)
        check("GB/s" in said and said["mode"] == mode, f"{coding}: measured, mode {mode}")
        if "seconds" in said:
            said["cores"] = [round((b - a) / said["seconds"], 1) for a, b in zip(before, after)]
    said.update(answer(reader("train", mount.directory, mode, 20)))
    said.update(coding=coding, mode=mode + how)
    print(json.dumps(said), flush=True)
    return said


def table(rows):
    lines = ["| coding | mode | GB/s | cores: daemon, reader | first batch, ms | ready batch, us: "
             "next, with torch | after sleep | training step alone / fed, ms |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        pair = lambda key: " / ".join(map(str, row[key])) if key in row else ""  # noqa: E731
        step = (f"{row['alone_ms']:.1f} / {row['fed_ms']:.1f} ({row['share']:+.0%})"
                if "share" in row else row.get("error", ""))
        lines.append(f"| {row['coding']} | {row['mode']} | {row.get('GB/s', 0):.1f} | "
                     f"{pair('cores')} | {row.get('first_ms', 0):.0f} | {pair('ready_us')} | "
                     f"{pair('ready_after_sleep_us')} | {step} |")
    return "\n".join(lines)


@contextlib.contextmanager
def multi_process_service():
    """MPS for processes started meanwhile; False if it is not available."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        yield False
        return
    folder = tempfile.mkdtemp(prefix="batchfs-mps-")
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=folder, CUDA_MPS_LOG_DIRECTORY=folder)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
    try:
        yield True
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False)
        del os.environ["CUDA_MPS_PIPE_DIRECTORY"], os.environ["CUDA_MPS_LOG_DIRECTORY"]


def part_bytes(program, folder, codings):
    for coding in codings:
        mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY, size=4)
        for mode in ("server", "client", "auto", "shm", "files") if coding == codings[0] else (
                "server", "client"):
            said = answer(reader("compare", mount.directory, mode, 12))
            right = {"auto": AUTO}.get(mode, mode)
            check(said.get("bad") == [] and said.get("mode") == right,
                  f"{coding}: batches on the GPU, mode {mode}: {said}")
        check(settled(mount), f"{coding}: leases come back")
        print("     ", json.dumps(mount.status()["handoff"]), flush=True)
        mount.end()


def part_killed(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, size=4)
    for held, mode in [(held, mode) for mode in ("server", "client") for held in (0, 1, 3, 7)]:
        holder = reader("hold", mount.directory, mode, max(held, 1))
        if held:
            holder.stdout.readline()
        else:
            time.sleep(0.8)
        holder.kill()
        holder.wait()
        check(settled(mount), f"a reader killed with {held} batches gives them back, mode {mode}")
    for mode in ("server", "client"):
        said = answer(reader("compare", mount.directory, mode, 6))
        check(said.get("bad") == [] and said.get("mode") == mode,
              f"and the next reader reads: {said}")
    mount.end()

    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, "--no-supervisor",
                  size=4)
    orphans = [reader("orphan", mount.directory, mode) for mode in ("server", "client")]
    for orphan in orphans:
        orphan.stdout.readline()
    time.sleep(0.1)
    os.kill(mount.status()["pid"], signal.SIGKILL)
    for orphan in orphans:
        said = answer(orphan, 30)
        check(said.get("valid") is True and "gone" in said.get("result", ""),
              f"a killed daemon: {said}")
    mount.end()


def part_fallbacks(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu", "off", size=4)
    said = answer(reader("compare", mount.directory, "auto", 4))
    check(said.get("bad") == [] and said.get("mode") == "client", f"a daemon without a GPU: {said}")
    mount.end()
    mount = Mount(program, folder / codings[0], "--gpu-memory", "400M", size=4)
    said = answer(reader("compare", mount.directory, "server", 4))
    check(said.get("bad") == [] and mount.status()["handoff"]["gpus"][0]["from_host"]["no_memory"]
              > 0, f"too little GPU memory: {said}")
    mount.end()


def part_several(program, folder, codings):
    """The ranks of one mount on all GPUs, at the same time: in one mode, and each mode beside the
    other on every GPU."""
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True,
                              check=True).stdout.splitlines())
    if gpus < 2:
        return print("      there is one GPU: several are not tested")
    mount = Mount(program, folder / codings[0], "--gpu-memory", GPU_MEMORY, size=4)
    for turn in (("server",), ("client",), ("server", "client"), ("client", "server")):
        modes = [turn[gpu % len(turn)] for gpu in range(gpus)]
        readers = [reader("compare", mount.directory, mode, 3 * gpus, gpu, gpu, gpus)
                   for gpu, mode in enumerate(modes)]
        answers = [answer(process) for process in readers]
        for gpu, (mode, said) in enumerate(zip(modes, answers)):
            check(said.get("bad") == [] and said.get("mode") == mode,
                  f"ranks on {gpus} GPUs, modes {modes}: that on GPU {gpu}: {said}")
        numbers = sorted(number for said in answers for number in said.get("numbers", []))
        check(numbers == list(range(3 * gpus)),
              f"ranks on {gpus} GPUs, modes {modes}: together they read the batches {numbers}")
    print("     ", json.dumps(mount.status()["handoff"]), flush=True)
    check(settled(mount), "leases of all come back")
    mount.end()


def part_predictions(program, folder, codings):
    """batchfs.create with tensors of the GPU, which are still being computed; tensorstore reads
    what it wrote."""
    store, out = folder / codings[0], pathlib.Path(tempfile.mkdtemp(prefix="batchfs-gpu-"))
    view = out / "view.json"
    view.write_text(json.dumps(pairs_view(store, 4, 1)
                               | {"select": {"time": {"from": "#0", "to": "#42"}}}))
    for mode in ("server", "client"):
        said = answer(reader("predict", store, view, out / mode, mode,
                             env=os.environ | {"BATCHFS": program}))
        check(said.get("bad") == [] and said.get("written", 0) > 0 and said.get("mode") == mode,
              f"predictions of the GPU, mode {mode}: {said}")
    shutil.rmtree(out)


def part_rates(program, folder, codings):
    rows = []
    for coding in codings:
        mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY)
        for mode in ("server", "client"):
            rows.append(measured(mount, coding, mode, ""))
        mount.end()
    with multi_process_service() as runs:
        for coding in codings if runs else ():
            mount = Mount(program, folder / coding, "--gpu-memory", GPU_MEMORY)
            rows.append(measured(mount, coding, "server", " with MPS", rate=False))
            mount.end()
    print(table(rows))


def part_forcings(program, folder, codings):
    """Channels of times and places: right, on the GPU, and what they cost."""
    rows, coding = [], codings[0]
    store = folder / f"forced-{coding}"
    shutil.copytree(folder / coding, store, copy_function=os.link, dirs_exist_ok=True)
    plain, forced = pairs_view(folder / coding, 16, 1000), forced_view(store, 16, 1000)
    mount = Mount(program, store, "--gpu-memory", GPU_MEMORY, views=[forced_view(store, 4, 1000)])
    for mode in ("server", "client"):
        said = answer(reader("compare", mount.directory, mode, 12))
        check(said.get("bad") == [] and said.get("mode") == mode
                  and "not_decoded" not in said.get("why_copied", "not_decoded"),
              f"forcings, mode {mode}: {said}")
    print("     ", json.dumps(mount.status()["handoff"]), flush=True)
    mount.end()
    for view, how in ((plain, ""), (forced, ", forcings"), (plain, ""), (forced, ", forcings")):
        mount = Mount(program, store if view is forced else folder / coding, "--gpu-memory",
                      GPU_MEMORY, views=[view])
        for mode in ("server", "client"):
            rows.append(measured(mount, coding, mode, how))
        mount.end()
    print(table(rows))


def part_pinned(program, folder, codings):
    mount = Mount(program, folder / codings[0], "--gpu", "off", size=8)
    for pin in ("pin", "no", "pin", "no"):
        said = answer(reader("pinned", mount.directory, pin, 20))
        check(said.get("bad") == 0, f"{'page-locked' if pin == 'pin' else 'ordinary'} memory, "
                                    f"copied beside a step: {said}")
    mount.end()


PARTS = {"forcings": part_forcings, "pinned": part_pinned, "bytes": part_bytes,
         "killed": part_killed, "fallbacks": part_fallbacks, "several": part_several,
         "predictions": part_predictions, "rates": part_rates}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("codings", nargs="*", default=["zstd-3", "blosc-lz4", "raw"])
    parser.add_argument("--only", action="append", choices=PARTS)
    given = parser.parse_intermixed_args()
    for name in given.only or PARTS:
        PARTS[name](given.program, given.folder, given.codings)
    print("wrong:", wrong or "nothing")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
