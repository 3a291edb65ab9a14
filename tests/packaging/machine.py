"""A real systemd that starts services as it does on a machine, in namespaces of its own, for as
long as a test takes.

It is process 1 of its namespace, sees this machine's files, and has its own /run, /etc (what it
changes there is gone with it) and control groups. The package lies over /usr. Directories elsewhere
are those of this machine; what is mounted there is seen by path().
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

LONG = 60  # seconds: longer than any step here, on however slow a machine
SYSTEMD = pathlib.Path("/lib/systemd/systemd")
TOOLS = ["unshare", "nsenter", "mount", "systemctl", "journalctl"]

# Units of systemd that others name; none that this machine starts at boot.
UNITS = """basic.target sysinit.target local-fs.target local-fs-pre.target remote-fs.target
remote-fs-pre.target network.target network-online.target sockets.target timers.target paths.target
slices.target swap.target shutdown.target umount.target
systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket""".split()

BOOT = r"""set -e
folder=$1
shift
mount --make-rprivate /
mount -t tmpfs none "$folder/etc"
mkdir "$folder/etc/upper" "$folder/etc/work"
mount -t overlay none -o lowerdir=/etc,upperdir="$folder/etc/upper",workdir="$folder/etc/work" /etc
mount -t overlay none -o lowerdir="$folder/package/usr:/usr" /usr
mount -t tmpfs none /run
mount -t proc none /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --rbind /sys /sys
mount -o remount,bind,ro /sys
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/units /run/generators /etc/batchfs /etc/systemd/journald.conf.d
for unit in "$@" 'batchfs@.service' 'batchfs-end@.service'; do
  cp "/lib/systemd/system/$unit" /run/units
done
cp /lib/systemd/system-generators/systemd-fstab-generator /run/generators
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=\n' > /etc/systemd/journald.conf.d/test.conf
: > /etc/fstab
exec env -i PATH="$PATH" container=test SYSTEMD_GENERATOR_PATH=/run/generators \
  SYSTEMD_UNIT_PATH=/run/units:/run/systemd/transient:/run/systemd/generator \
  /lib/systemd/systemd --system --unit=basic.target --log-target=journal-or-kmsg
"""


class NoMachine(Exception):
    """Why no machine can run here."""


def control_group():
    """A new control group of version 2."""
    place = next((line.split()[1]
                  for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
                  if line.split()[2] == "cgroup2"), None)
    if place is None:
        raise NoMachine("there are no control groups of version 2")
    own = next(line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
               if line.startswith("0::"))
    for parent in (place + own, place):
        folder = pathlib.Path(parent) / f"batchfs-machine-{os.getpid()}"
        try:
            folder.mkdir()
            return folder
        except OSError as error:
            reason = f"no control group can be made: {error}"
    raise NoMachine(reason)


class Machine:
    def __init__(self, folder, package):
        if os.geteuid() != 0:
            raise NoMachine("systemd as a process 1 takes root")
        for tool in [SYSTEMD, *TOOLS]:
            if shutil.which(tool) is None:
                raise NoMachine(f"{tool} is not installed")
        (folder / "etc").mkdir()
        (folder / "package").symlink_to(package)
        self.group = control_group()
        self.log = folder / "boot.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount", "--cgroup", "--uts",
                 "--ipc", "sh", "-c", BOOT, "sh", folder, *UNITS],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: (self.group / "cgroup.procs").write_text(str(os.getpid())))
        try:
            self.first = self.boot()
        except NoMachine:
            self.stop()
            raise

    def boot(self):
        """The number of its process 1, once it responds."""
        until = time.monotonic() + LONG
        while time.monotonic() < until and self.process.poll() is None:
            children = pathlib.Path(
                f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children:
                self.first = int(children[0])
                if (self.path("/run/systemd/private").is_socket()
                        and self.run("systemctl", "is-active", "basic.target").returncode == 0):
                    self.run("systemctl", "start", "systemd-journald")
                    return self.first
            time.sleep(0.05)
        raise NoMachine(f"systemd cannot be started here: {self.log.read_text()[-500:].strip()}")

    def run(self, *command, **options):
        """Runs a command on it, and returns the finished process."""
        return subprocess.run(["nsenter", "-t", str(self.first), "-m", "-p", "-C", "-u", "-i",
                               "--", *map(str, command)],
                              capture_output=True, text=True, timeout=LONG, check=False, **options)

    def good(self, *command):
        done = self.run(*command)
        assert done.returncode == 0, (
            f"{command}: {done.stderr}\n{self.run('journalctl', '-n', '30').stdout}")
        return done.stdout

    def path(self, path):
        """A file as the machine sees it, including its mounts."""
        return pathlib.Path(f"/proc/{self.first}/root{path}")

    def properties(self, unit, *names):
        shown = self.good("systemctl", "show", unit, "-p", ",".join(names))
        found = dict(line.split("=", 1) for line in shown.splitlines())
        return [found[name] for name in names]

    def until(self, unit, **wanted):
        """Waits until the unit has these properties."""
        end = time.monotonic() + LONG
        while (now := self.properties(unit, *wanted)) != list(wanted.values()):
            assert time.monotonic() < end, (
                f"{unit}: {now}, not {wanted}\n{self.run('journalctl', '-n', '30').stdout}")
            time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)  # with the processes it started
        self.process.wait()
        until = time.monotonic() + LONG
        while ((self.group / "cgroup.events").read_text().splitlines()[0] != "populated 0"
               and time.monotonic() < until):
            time.sleep(0.02)
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)
