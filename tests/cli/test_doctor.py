"""batchfs doctor: every check says what it found, and what to do where something is missing."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
import zarr
from watching import eventually

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build" / "batchfs"))

NEEDED = {"kernel", "passthrough", "direct-io mmap", "/dev/fuse", "fusermount3", "allow-other",
          "open files", "locked memory", "huge pages", "memory"}


def run(batchfs, *arguments):
    done = batchfs("doctor", *arguments, timeout=120)
    report = json.loads(done.stdout)
    problems = [check for check in report["checks"] if check["state"] == "problem"]
    assert report["problems"] == len(problems)
    assert done.returncode == (1 if problems else 0)
    assert bool(done.stderr) == bool(problems)
    return report["checks"]


def test_every_check_says_what_it_found(batchfs):
    checks = run(batchfs, "--json")
    assert NEEDED <= {check["topic"] for check in checks}
    assert any(check["topic"].startswith("GPU") for check in checks)
    for check in checks:
        assert check["state"] in ("ok", "note", "problem") and check["found"]
        if check["state"] == "problem":
            assert check["next"], check


def test_for_people(batchfs):
    done = batchfs("doctor", timeout=120)
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("ok       kernel")
    for line in lines:
        assert line.split()[0] in ("ok", "note", "problem", "->"), line


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK),
                    reason="/dev/fuse is missing: nothing can be mounted")
def test_the_ways_of_reading_are_measured(batchfs):
    checks = {check["topic"]: check for check in run(batchfs, "--json")}
    if "mounting" in checks:
        pytest.skip(checks["mounting"]["found"])
    assert checks["read by batchfs"]["found"].endswith("GB/s")
    if (checks["passthrough"]["state"] == "ok" and os.geteuid() == 0
            and "mapped by the kernel" in checks):
        assert checks["read by the kernel"]["found"].endswith("GB/s")
    with open("/proc/mounts") as mounts:
        assert "batchfs-doctor" not in mounts.read()


def test_a_store(batchfs, weather):
    checks = {check["topic"]: check for check in run(batchfs, weather, "--json")}
    assert checks["store"]["state"] == "ok" and "arrays" in checks["store"]["found"]
    assert checks["latency"]["state"] == "ok"


def test_a_chunk_and_a_batch_are_timed(batchfs, weather):
    checks = {check["topic"]: check for check in run(batchfs, weather, "--json")}
    assert checks["chunk"]["state"] == "ok" and "fetched in" in checks["chunk"]["found"]
    assert checks["batch"]["state"] == "ok" and "samples in" in checks["batch"]["found"]
    assert f"batchfs view {weather}" in checks["batch"]["next"]


def test_a_damaged_chunk(batchfs, weather, tmp_path):
    shutil.copytree(weather, tmp_path / "a.zarr")
    for chunk in (tmp_path / "a.zarr").rglob("*"):
        if (chunk.is_file() and chunk.parent.name != "a.zarr" and "coordinate" not in chunk.name
                and not chunk.name.startswith((".z", "zarr."))):
            chunk.write_bytes(b"broken")
    checks = {check["topic"]: check for check in run(batchfs, tmp_path / "a.zarr", "--json")}
    assert checks["store"]["state"] == "ok"
    assert checks["chunk"]["state"] == "problem" and "batchfs check" in checks["chunk"]["next"]
    assert "batch" not in checks


def test_a_store_without_variables(batchfs, tmp_path):
    zarr.create_group(tmp_path / "a.zarr")
    checks = {check["topic"]: check for check in run(batchfs, tmp_path / "a.zarr", "--json")}
    assert checks["chunk"]["state"] == "note" and "batchfs inspect" in checks["chunk"]["next"]


@pytest.mark.parametrize("store, options, words", [
    ("nothing.zarr", [], "check the path"),
    ("http://127.0.0.1:9/x.zarr", ["--retries", "0", "--timeout", "2"], "check the network"),
    ("s3://bucket/x.zarr", ["--endpoint", "http://127.0.0.1:9", "--anon", "--retries", "0",
                            "--timeout", "2"], "--endpoint"),
])
def test_the_next_step_fits_the_error(batchfs, tmp_path, monkeypatch, store, options, words):
    monkeypatch.chdir(tmp_path)
    checks = run(batchfs, store, "--json", *options)
    (failed,) = [check for check in checks if check["topic"] in ("store", "credentials")]
    assert failed["state"] == "problem" and words in failed["next"]


def test_a_store_that_is_not_there(batchfs, tmp_path):
    checks = {check["topic"]: check for check in run(batchfs, tmp_path / "nothing.zarr", "--json")}
    assert checks["store"]["state"] == "problem" and "nothing.zarr" in checks["store"]["found"]


def test_a_store_that_does_not_answer(batchfs):
    checks = {check["topic"]: check for check in run(batchfs, "http://127.0.0.1:9/x.zarr", "--json",
                                                     "--retries", "0", "--timeout", "2")}
    assert checks["store"]["state"] == "problem" and checks["store"]["next"]


def test_without_fuse(batchfs, tmp_path):
    """PATH without fusermount3: a note to root, a problem to others."""
    checks = {check["topic"]: check for check in run_without_path(batchfs, tmp_path)}
    assert checks["fusermount3"]["state"] == ("note" if os.geteuid() == 0 else "problem")
    assert "fuse3" in checks["fusermount3"]["next"]


def run_without_path(batchfs, empty):
    done = batchfs("doctor", "--json", timeout=120, env={**os.environ, "PATH": str(empty)})
    return json.loads(done.stdout)["checks"]


@pytest.fixture
def mounted(good, batchfs, weather, tmp_path):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse is missing: nothing can be mounted")
    directory = tmp_path / "mnt"
    directory.mkdir()
    good("mount", weather, directory, "--no-supervisor")
    yield directory
    batchfs("umount", "--lazy", directory)


def test_a_mount(batchfs, mounted):
    checks = {check["topic"]: check for check in run(batchfs, mounted, "--json")}
    assert checks["mount"]["state"] == "ok" and checks["mount"]["found"].startswith("answers")


def test_a_mount_that_hangs(batchfs, mounted):
    pid = json.loads((mounted / ".batchfs/status.json").read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        # Each thread stops when it next runs, which takes a while on a busy machine.
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        assert eventually(lambda: all((task / "stat").read_text().rsplit(")", 1)[1].split()[0]
                                      == "T" for task in tasks))
        checks = {check["topic"]: check for check in run(batchfs, mounted, "--json")}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert checks["mount"]["state"] == "problem" and "5 seconds" in checks["mount"]["found"]
    assert "umount --lazy" in checks["mount"]["next"]


def test_a_mount_that_has_died(batchfs, mounted):
    pid = json.loads((mounted / ".batchfs/status.json").read_text())["pid"]
    parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    os.kill(parent, signal.SIGKILL)  # or it would unmount
    os.kill(pid, signal.SIGKILL)
    checks = {check["topic"]: check for check in run(batchfs, mounted, "--json")}
    assert checks["mount"]["state"] == "problem" and checks["mount"]["next"]


BROKEN = {
    "no /dev/fuse": ("umount /dev/fuse 2>/dev/null; mount -t tmpfs none /dev", "/dev/fuse",
                     "problem"),
    "no fuse.conf": ("mount --bind /dev/null /etc/fuse.conf", "allow-other", "note"),
    "few open files": ("ulimit -n 512", "open files", "note"),
    "no huge pages": ("mount -t tmpfs none /sys/kernel/mm", "huge pages", "note"),
    "no room to measure": ("mount -t tmpfs -o size=1m none $TMPDIR", "reading", "note"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_said(name, tmp_path):
    """In a mount namespace with the fault. Facts that do not concern root are reported for an
    ordinary user."""
    how, topic, state = BROKEN[name]
    if (os.geteuid() != 0 or shutil.which("setpriv") is None
            or subprocess.run(["unshare", "-m", "mount", "--bind", "/dev/null",
                               "/etc/fuse.conf"], capture_output=True).returncode != 0):
        pytest.skip("it takes root and a mount namespace to break it")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    shutil.copy(PROGRAM, tmp_path / "batchfs")
    (tmp_path / "tmp").mkdir()
    as_nobody = ("setpriv --reuid=65534 --regid=65534 --clear-groups"
                 if topic in ("allow-other", "huge pages") else "")
    done = subprocess.run(["unshare", "-m", "sh",
                           "-c", f"{how}; exec {as_nobody} {tmp_path}/batchfs doctor --json"],
                          env=os.environ | {"TMPDIR": str(tmp_path / "tmp")}, capture_output=True,
                          text=True, timeout=120)
    found = [check for check in json.loads(done.stdout)["checks"] if check["topic"] == topic]
    assert [check["state"] for check in found] == [state], done.stdout
    assert found[0]["found"]
    assert found[0]["next"] or topic == "huge pages"
