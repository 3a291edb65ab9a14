"""The service as a real systemd runs it, and lines of fstab(5) that systemd mounts."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

sys.path[:0] = [str(pathlib.Path(__file__).parent),
                str(pathlib.Path(__file__).resolve().parents[1] / "faults")]
import kills
from machine import Machine, NoMachine

PROGRAM = os.environ.get("BATCHFS",
                         str(pathlib.Path(__file__).resolve().parents[2] / "build/batchfs"))
VIEW = {"name": "v", "window": {"time": 1}, "batch": {"size": 6},
        "order": {"shuffle": "global", "seed": 7}, "epochs": 2}
BATCHES = [f"views/v/epoch-{epoch:04}/batch-{batch:06}.npy" for epoch in range(2)
           for batch in range(8)]


@pytest.fixture(scope="module")
def machine(unpacked, can_mount, tmp_path_factory):
    try:
        machine = Machine(tmp_path_factory.mktemp("machine"), unpacked)
    except NoMachine as reason:
        pytest.skip(f"no systemd of its own: {reason}")
    yield machine
    machine.stop()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.zarr"
    values = np.random.default_rng(0).normal(size=(48, 64, 128)).astype("f4")
    zarr.create_group(path).create_array("field", data=values, chunks=(4, 64, 64),
                                         dimension_names=["time", "y", "x"])
    return path


class Service:
    """batchfs@NAME."""

    def __init__(self, machine, name, store, folder):
        self.machine, self.unit, self.store = machine, f"batchfs@{name}", store
        self.place, self.view = folder / "mnt", folder / "view.json"
        self.place.mkdir()
        self.view.write_text(json.dumps(VIEW))
        self.mnt = machine.path(self.place)
        self.configure()

    def configure(self, *options):
        self.machine.path(f"/etc/batchfs/{self.unit[8:]}.conf").write_text(
            f"STORE={self.store}\nDIR={self.place}\n"
            f"OPTIONS=--view {self.view} {' '.join(options)}\n")

    def also(self, *settings):
        """Adds settings like `systemctl edit`."""
        folder = self.machine.path(f"/run/units/{self.unit}.service.d")
        folder.mkdir(exist_ok=True)
        (folder / "also.conf").write_text("\n".join(["[Service]", *settings, ""]))
        self.machine.good("systemctl", "daemon-reload")

    def control(self, verb, *options):
        self.machine.good("systemctl", verb, *options, self.unit)

    def status(self):
        return json.loads((self.mnt / ".batchfs/status.json").read_text())

    def is_mounted(self):
        return f" {self.place} " in pathlib.Path(
            f"/proc/{self.machine.first}/mountinfo").read_text()

    def is_(self, **properties):
        self.machine.until(self.unit, **properties)


@pytest.fixture
def service(machine, store, tmp_path, request):
    service = Service(machine, re.sub(r"\W", "_", request.node.name), store, tmp_path)
    yield service
    machine.run("systemctl", "stop", service.unit)
    machine.run("systemctl", "reset-failed", service.unit)


@pytest.fixture(scope="module")
def expected(store, tmp_path_factory):
    """{name in the mount: file with its bytes}, made without a mount."""
    folder = tmp_path_factory.mktemp("expected")
    (folder / "view.json").write_text(json.dumps(VIEW))
    files = {}
    for name in BATCHES:
        epoch, batch = re.findall(r"\d+", name)
        done = subprocess.run([PROGRAM, "batch", store, "--view", folder / "view.json", "--epoch",
                               epoch, "--batch", batch], capture_output=True, check=True)
        (folder / f"{epoch}-{batch}").write_bytes(done.stdout)
        files[name] = str(folder / f"{epoch}-{batch}")
    return files


def test_the_units_are_right(machine):
    done = machine.run("systemd-analyze", "verify", "--man=no", "batchfs@era5.service",
                       "batchfs-end@era5.service")
    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_as_confined_as_the_manual_says(machine, service):
    """Its own mount namespace would lower the exposure, but nobody else would see the mount."""
    service.control("start")
    told = machine.good("systemd-analyze", "security", "--no-pager", service.unit).splitlines()[-1]
    print(told)
    assert float(re.search(r"level for \S+: ([0-9.]+)", told)[1]) <= 4.7
    # The restrictions do not break it.
    assert service.status()["passthrough"] and service.status()["errors"] == 0
    assert np.load(service.mnt / BATCHES[0]).shape == (6, 1, 64, 128)


def test_it_is_active_when_it_is_mounted(service, expected):
    service.control("start")
    assert service.is_mounted()
    assert service.machine.properties(service.unit, "ActiveState", "StatusText") == \
        ["active", f"serving {service.store} at {service.place}"]
    for name, file in expected.items():
        assert (service.mnt / name).read_bytes() == pathlib.Path(file).read_bytes()


def test_it_is_not_active_before(service):
    """While the store does not answer; it can be stopped meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        service.store = f"http://127.0.0.1:{silent.getsockname()[1]}/s.zarr"
        service.configure()
        service.control("start", "--no-block")
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            assert service.machine.properties(service.unit, "ActiveState") == ["activating"]
            assert not service.is_mounted()
            service.control("stop")
    assert service.machine.properties(service.unit, "ActiveState") == ["inactive"]


def test_what_it_cannot_mount_is_in_the_journal(service):
    service.store = "/nowhere/s.zarr"
    service.configure()
    service.also("Restart=no")
    assert service.machine.run("systemctl", "start", service.unit).returncode == 1
    (line,) = (line for line in entries(service)
               if line["MESSAGE"].startswith("batchfs: mount failed: "))
    assert "/nowhere/s.zarr" in line["MESSAGE"]


def entries(service):
    lines = service.machine.good("journalctl", "-u", service.unit, "-o", "json").splitlines()
    return [entry for entry in map(json.loads, lines) if isinstance(entry.get("MESSAGE"), str)]


def test_its_log_is_in_the_journal(service, store, tmp_path):
    """Also after a reload, when another process is the main one."""
    bad = tmp_path / "bad.zarr"
    subprocess.run(["cp", "-r", store, bad], check=True)
    next(bad.glob("field/c/0/0/0")).write_bytes(b"nothing of the kind")
    service.store = bad
    service.configure()
    service.control("start")
    for _ in range(2):
        with pytest.raises(OSError):
            (service.mnt / "arrays/field/chunks/0.0.0.npy").read_bytes()
        service.control("reload")
    until = time.monotonic() + 30
    while len(told := [e for e in entries(service)
                       if "field/0.0.0" in e["MESSAGE"]]) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert len(told) >= 2 and len({entry["_PID"] for entry in told}) == 2
    assert {entry["PRIORITY"] for entry in told} == {"3"}
    assert all(not re.match(r"\d{4}-|<", entry["MESSAGE"]) for entry in told)


def test_it_ends_cleanly(service):
    service.control("start")
    service.control("stop")
    assert not service.is_mounted()
    service.control("start")
    with open(service.mnt / "arrays/field/values.npy", "rb", buffering=0) as file:
        file.read(100)
        service.control("stop")
        assert service.machine.properties(service.unit, "ActiveState",
                                          "Result") == ["inactive", "success"]
        assert not service.is_mounted()
        with pytest.raises(OSError):
            while file.read(1 << 20):
                pass


def test_an_unmounted_service_has_ended(service):
    service.control("start")
    service.machine.good("batchfs", "umount", service.place)
    service.is_(ActiveState="inactive", Result="success")


def test_killed_under_readers(service, expected, tmp_path):
    """All its processes: systemd has kept the session with the kernel."""
    service.control("start")
    group = kills.Readers(service.mnt, expected, ["read", "mmap", "list", "read"] * 2, tmp_path)
    times = []
    try:
        for kill in range(5):
            kills.wait_for_service(service.mnt)
            time.sleep(0.5)
            times.append(time.monotonic())
            service.control("kill", "-s", "KILL")
            service.is_(ActiveState="active", NRestarts=str(kill + 1))
        kills.wait_for_service(service.mnt)
        seen = group.finish()
    finally:
        group.end()
    assert [one["wrong"] + one["failures"] for one in seen] == [[]] * 8
    assert all(one["reads"] > 0 for one in seen)
    print("stalls in s:", kills.stalls(times, seen))
    assert service.machine.properties(service.unit, "NFileDescriptorStore") == ["2"]
    service.control("stop")
    assert not service.is_mounted()
    assert service.machine.properties(service.unit, "NFileDescriptorStore") == ["0"]


@pytest.mark.parametrize("reloaded", [False, True], ids=["started", "reloaded"])
def test_the_watchdog_ends_what_hangs(service, reloaded):
    service.also("WatchdogSec=1", "TimeoutAbortSec=1", "LimitCORE=0")
    service.control("start")
    if reloaded:
        service.control("reload")
    pid = service.status()["pid"]
    with open(service.mnt / "arrays/field/values.npy", "rb", buffering=0) as file:
        service.machine.good("kill", "-STOP", pid)
        service.is_(ActiveState="active", NRestarts="1")
        assert np.frombuffer(file.read(1 << 30)[-4:],
                             "f4")[0] == zarr.open_group(str(service.store))["field"][-1, -1, -1]
    assert service.status()["pid"] != pid
    assert service.is_mounted()


def test_reload_is_for_another_version_and_other_options(service, expected):
    service.control("start")
    (first,) = service.machine.properties(service.unit, "MainPID")
    budget = service.status()["memory_budget"]
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(service.mnt / name, "rb")) for name in BATCHES[:4]}
        service.configure("--memory", "96M")
        service.control("reload")
        for name, file in files.items():
            assert file.read() == pathlib.Path(expected[name]).read_bytes()
    assert service.status()["memory_budget"] == 96 << 20 != budget
    main, state, stored = service.machine.properties(service.unit, "MainPID", "ActiveState",
                                                     "NFileDescriptorStore")
    assert main != first and (state, stored) == ("active", "2")
    assert service.machine.good("ps", "-o", "ppid=", service.status()["pid"]).strip() == main
    # A reloaded service survives a kill like a started one.
    service.control("kill", "-s", "KILL")
    service.is_(ActiveState="active", NRestarts="1")
    assert service.status()["memory_budget"] == 96 << 20
    service.control("reload")
    service.control("stop")
    assert not service.is_mounted()
    assert service.machine.properties(service.unit, "ActiveState",
                                      "Result") == ["inactive", "success"]


def test_a_reload_in_vain_changes_nothing(service, expected):
    service.control("start")
    pid, before = service.status()["pid"], service.machine.properties(service.unit, "MainPID")
    service.view.write_text(json.dumps(dict(VIEW, batch={"size": 5})))
    assert service.machine.run("systemctl", "reload", service.unit).returncode == 1
    assert any("a view has changed" in entry["MESSAGE"] for entry in entries(service))
    assert service.machine.properties(service.unit, "MainPID", "ActiveState") == [*before, "active"]
    assert service.status()["pid"] == pid
    assert (service.mnt / BATCHES[0]).read_bytes() == pathlib.Path(
        expected[BATCHES[0]]).read_bytes()


def test_killed_for_good_it_leaves_no_dead_mount(service):
    """Who looks there finds an empty directory, not `Transport endpoint is not connected`; and it
    can be started again."""
    service.also("Restart=no")
    service.control("start")
    service.control("kill", "-s", "KILL")
    service.is_(ActiveState="failed")
    end = time.monotonic() + 30
    while service.is_mounted():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert os.listdir(service.mnt) == []
    service.control("start")
    assert service.is_mounted()


def test_started_on_what_a_killed_mount_left(service):
    service.machine.good("batchfs", "mount", "--no-supervisor", service.store, service.place)
    pid = service.status()["pid"]
    parent = service.machine.good("ps", "-o", "ppid=", pid).strip()
    service.machine.good("kill", "-KILL", parent, pid)
    end = time.monotonic() + 30
    while service.machine.run("stat", "-f", service.place).returncode == 0:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert service.is_mounted()
    service.control("start")
    assert np.load(service.mnt / BATCHES[0]).shape == (6, 1, 64, 128)


@pytest.fixture
def table(machine, store, tmp_path):
    """table(options): a line of fstab; gives the unit's name and its place."""
    view, place = tmp_path / "view.json", tmp_path / "mnt"
    view.write_text(json.dumps(VIEW))
    place.mkdir()
    unit = machine.good("systemd-escape", "-p", place).strip()

    def write(options):
        machine.path("/etc/fstab").write_text(
            f"{store} {place} batchfs view={view},{options} 0 0\n")
        machine.good("systemctl", "daemon-reload")
        return unit, place

    yield write
    machine.run("systemctl", "stop", f"{unit}.automount", f"{unit}.mount")


def test_fstab(machine, table, expected):
    unit, place = table("_netdev,nofail,memory=64M")
    machine.good("systemctl", "start", f"{unit}.mount")
    assert machine.properties(f"{unit}.mount", "ActiveState", "Type") == ["active", "fuse.batchfs"]
    assert (machine.path(place) / BATCHES[3]).read_bytes() == pathlib.Path(
        expected[BATCHES[3]]).read_bytes()
    assert "mounted on" in machine.good("journalctl", "-u", f"{unit}.mount", "-o", "cat")
    machine.good("systemctl", "stop", f"{unit}.mount")
    assert os.listdir(machine.path(place)) == []


def test_fstab_when_it_is_first_looked_at(machine, table, expected):
    unit, place = table("noauto,x-systemd.automount,x-systemd.idle-timeout=1s")
    machine.good("systemctl", "start", f"{unit}.automount")
    assert machine.properties(f"{unit}.mount", "ActiveState") == ["inactive"]
    readers = [threading.Thread(target=lambda: machine.good("cat", place / BATCHES[5]))
               for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert (machine.path(place) / BATCHES[3]).read_bytes() == pathlib.Path(
        expected[BATCHES[3]]).read_bytes()
    assert machine.properties(f"{unit}.mount", "Result") == ["success"]
    machine.until(f"{unit}.mount", ActiveState="inactive")  # nobody reads
    assert machine.good("ls", place).split() == ["arrays", "store.json", "summary.txt", "views"]
