"""mount.batchfs(8): what mount(8) asks of it, and what fstab(5) may say."""

import json
import os
import pathlib
import shutil
import stat
import subprocess

import numpy as np
import pytest

PROGRAM = pathlib.Path(os.environ.get("BATCHFS", "build/batchfs")).resolve()
NOBODY = 65534
VIEW = {"name": "train", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 8}}


@pytest.fixture(scope="session")
def helper(tmp_path_factory):
    """helper(*arguments): mount.batchfs of the build; gives the finished process."""
    link = tmp_path_factory.mktemp("sbin") / "mount.batchfs"
    link.symlink_to(PROGRAM)
    return lambda *arguments: subprocess.run([link, *map(str, arguments)], capture_output=True,
                                             text=True)


@pytest.fixture
def view(tmp_path):
    file = tmp_path / "a, view.json"
    file.write_text(json.dumps(VIEW))
    return file


def options_of(directory):
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[4] == str(directory):
            return fields[fields.index("-") + 1], fields[5].split(",")
    return None


@pytest.mark.parametrize("generic", [
    "", "rw", "ro,nosuid,nodev,noexec,noatime", "defaults,_netdev,noauto,nofail,user=anna,users",
    "x-systemd.automount,x-systemd.mount-timeout=1min,X-mount.mkdir,comment=mine",
    "relatime,lazytime,silent,nosymfollow",
])
def test_options_of_every_file_system_are_passed_over(helper, weather, directory, generic):
    done = helper(weather, directory, "-n", "-o", generic, "-o", "memory=64M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    kind, options = options_of(directory)
    assert kind == "fuse.batchfs"
    assert {"ro", "nosuid", "nodev"} <= set(options)


def test_options_are_those_of_batchfs_mount(helper, weather, directory, view):
    listed = f"rw,view={str(view).replace(',', chr(92) + ',')},no-passthrough,memory=256M,_netdev"
    done = helper(weather, directory, "-v", "-t", "fuse.batchfs", "-o", listed)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"mount.batchfs: mounted at {directory}\n"
    config = json.loads((directory / ".batchfs/config.json").read_text())
    assert config["views"] == [str(view)]
    assert (config["passthrough"], config["memory"]) == (False, 256 << 20)
    assert np.load(directory / "views/train/epoch-0000/batch-000000.npy").shape == (8, 1, 3, 8, 16)


@pytest.mark.parametrize("arguments, words", [
    (["-o", "vew=/a.json"], "did you mean 'view'"),
    (["-o", "memory=lots"], "not a size"),
    (["-o", "remount,ro"], "umount it"),
    (["-s", "-o", "remount,ro"], "umount it"),
    (["-N", "/proc/1/ns/mnt"], "not supported"),
    (["surplus"], "surplus"),
    (["-x"], "-x"),
])
def test_wrong_usage_is_1_in_one_line(helper, weather, directory, arguments, words):
    done = helper(weather, directory, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("batchfs: mount failed: ") and words in line
    assert not os.path.ismount(directory)


def test_a_failed_mount_is_32_in_one_line(helper, weather, directory, tmp_path):
    for store, place in ((tmp_path / "absent.zarr", directory), (weather, tmp_path / "absent")):
        done = helper(store, place)
        assert (done.returncode, len(done.stderr.splitlines())) == (32, 1), done.stderr


def test_fake_checks_and_mounts_nothing(helper, weather, directory):
    assert helper(weather, directory, "-f", "-o", "memory=1G").returncode == 0
    assert not os.path.ismount(directory)
    assert helper(weather, directory, "-f", "-o", "vew=1").returncode == 1


def test_sloppy_passes_over_unknown_options(helper, weather, directory):
    done = helper(weather, directory, "-s", "-o", "rw,context=system_u:object_r:x,memory=64M")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((directory / ".batchfs/config.json").read_text())["memory"] == 64 << 20


def test_a_table_that_is_worked_through_twice_mounts_once(helper, weather, directory):
    assert helper(weather, directory).returncode == 0
    again = helper(weather, directory)
    assert again.returncode == 32
    assert "already" in again.stderr


def test_mount_and_fstab(tmp_path, weather, directory, view):
    """The real mount(8), with a root directory's view of /sbin where the helper is."""
    if os.geteuid() != 0:
        pytest.skip("mount(8) mounts for root only")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    sbin, table = tmp_path / "sbin", tmp_path / "fstab"
    view.rename(tmp_path / "view.json")
    table.write_text(f"{weather} {directory} batchfs "
                     f"view={tmp_path}/view.json,noatime,_netdev,nofail,x-systemd.automount 0 0\n")
    # mount(8) looks for helpers in /sbin only: one is laid over /sbin in a mount namespace of our
    # own.
    script = f"""set -e
mkdir {sbin}
mount -t tmpfs none {sbin}
mkdir {sbin}/upper {sbin}/work
ln -s {PROGRAM} {sbin}/upper/mount.batchfs
mount -t overlay none -o lowerdir=/usr/sbin,upperdir={sbin}/upper,workdir={sbin}/work /usr/sbin
mount -T {table} {directory}
ls {directory}/views
mount -T {table} -a
grep -c {directory} /proc/self/mountinfo
umount {directory}
mount -t batchfs {weather} {directory} -o memory=64M
ls {directory}
umount {directory}
"""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if "overlay" in done.stderr:
        pytest.skip(f"/sbin cannot be overlaid here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["train", "1", "arrays", "store.json", "summary.txt", "views"]


@pytest.fixture
def ordinary(weather, tmp_path_factory, can_mount):
    """ordinary(script): runs it beside a store, a view and a directory, as this user, or as nobody
    where this is root: in a mount namespace where everyone may use /dev/fuse, and fuse.conf is
    empty."""
    for tool in ("fusermount3", "unshare", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: mounting as an ordinary user cannot be tried")
    if not os.stat(shutil.which("fusermount3")).st_mode & stat.S_ISUID:
        pytest.skip("fusermount3 is not set-user-ID root: ordinary users cannot mount")
    folder = tmp_path_factory.mktemp("anna")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    shutil.copy(PROGRAM, folder / "batchfs")
    (folder / "mount.batchfs").symlink_to("batchfs")
    shutil.copytree(weather, folder / "weather.zarr")
    (folder / "view.json").write_text(json.dumps(VIEW))
    (folder / "mnt").mkdir()
    (folder / "fuse.conf").touch()
    command = ["sh", folder / "script"]
    if os.geteuid() == 0:
        os.chown(folder / "mnt", NOBODY, NOBODY)
        command = ["unshare", "-m", "sh", "-c",
                   f"mknod -m 666 {folder}/fuse c 10 229 && mount --bind {folder}/fuse /dev/fuse "
                   f"&& mount --bind {folder}/fuse.conf /etc/fuse.conf && "
                   f"exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "
                   f"sh {folder}/script"]

    def run(script):
        (folder / "script").write_text(f"set -e\ncd {folder}\n{script}")
        done = subprocess.run(command, capture_output=True, text=True)
        if "mknod:" in done.stderr or "unshare:" in done.stderr:
            pytest.skip(f"the system forbids it: {done.stderr.strip()}")
        return done

    return run


def test_an_ordinary_user_mounts(ordinary):
    done = ordinary("""./mount.batchfs weather.zarr $PWD/mnt -o rw,user=anna,view=$PWD/view.json
grep " $PWD/mnt " /proc/self/mountinfo
ls mnt/views/train
od -An -c -N6 mnt/views/train/epoch-0000/batch-000001.npy
./batchfs umount mnt
! grep " $PWD/mnt " /proc/self/mountinfo
""")
    assert (done.returncode, done.stderr) == (0, "")
    mounted, *listed, header = done.stdout.splitlines()
    assert (" fuse.batchfs " in mounted
            and {"ro", "nosuid", "nodev"} <= set(mounted.split()[5].split(",")))
    assert "epoch-0000" in listed and header.split() == ["223", "N", "U", "M", "P", "Y"]


@pytest.mark.parametrize("command, words", [
    ("./batchfs mount --allow-other weather.zarr mnt", ["user_allow_other"]),
    ("./mount.batchfs weather.zarr mnt -o allow_other", ["user_allow_other"]),
    ("./batchfs mount weather.zarr mnt; exec 9<mnt/store.json; ./batchfs umount mnt",
     ["a program still uses the mount"]),
])
def test_what_fusermount_says_is_the_reason(ordinary, command, words):
    """In the one line, not as another."""
    done = ordinary(f"""said=$( ({command}) 2>&1 ) && exit 1
./batchfs umount --lazy mnt 2>/dev/null || true
echo "$said\"""")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("batchfs: ") and all(word in line for word in words)
