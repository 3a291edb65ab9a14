"""batchfs doctor: every check says what it found, and what to do where something is missing."""

import json
import os

import pytest

NEEDED = {"kernel", "passthrough", "direct-io mmap", "/dev/fuse", "fusermount3", "allow-other", "open files", "locked memory",
          "huge pages", "memory"}


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


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="/dev/fuse is missing: nothing can be mounted")
def test_the_ways_of_reading_are_measured(batchfs):
    checks = {check["topic"]: check for check in run(batchfs, "--json")}
    if "mounting" in checks:
        pytest.skip(checks["mounting"]["found"])
    assert checks["read by batchfs"]["found"].endswith("GB/s")
    if checks["passthrough"]["state"] == "ok" and os.geteuid() == 0 and "mapped by the kernel" in checks:
        assert checks["read by the kernel"]["found"].endswith("GB/s")
    with open("/proc/mounts") as mounts:
        assert "batchfs-doctor" not in mounts.read()


def test_a_store(batchfs, weather):
    checks = {check["topic"]: check for check in run(batchfs, weather, "--json")}
    assert checks["store"]["state"] == "ok" and "arrays" in checks["store"]["found"]
    assert checks["latency"]["state"] == "ok"


def test_a_store_that_is_not_there(batchfs, tmp_path):
    checks = {check["topic"]: check for check in run(batchfs, tmp_path / "nothing.zarr", "--json")}
    assert checks["store"]["state"] == "problem" and "nothing.zarr" in checks["store"]["found"]


def test_a_store_that_does_not_answer(batchfs):
    checks = {check["topic"]: check
              for check in run(batchfs, "http://127.0.0.1:9/x.zarr", "--json", "--retries", "0", "--timeout", "2")}
    assert checks["store"]["state"] == "problem" and checks["store"]["next"]


def test_without_fuse(batchfs, tmp_path):
    """PATH without fusermount3: a note to root, a problem to others."""
    checks = {check["topic"]: check for check in run_without_path(batchfs, tmp_path)}
    assert checks["fusermount3"]["state"] == ("note" if os.geteuid() == 0 else "problem")
    assert "fuse3" in checks["fusermount3"]["next"]


def run_without_path(batchfs, empty):
    done = batchfs("doctor", "--json", timeout=120, env={**os.environ, "PATH": str(empty)})
    return json.loads(done.stdout)["checks"]
