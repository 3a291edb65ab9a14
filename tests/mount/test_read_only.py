"""Every call that would change something, on every kind of object, as root and as another user, in
the manner of pjdfstest: it fails, with the errno that the same tree has on a tmpfs that is
read-only, and nothing is changed.
"""

import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import pathlib
import socket
import stat
import subprocess

import pytest

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
FAILED = ctypes.c_void_p(-1).value
NOBODY = 65534
VIEWS = {
    "one": {"name": "one", "window": {"time": 1}, "variables": ["t"], "batch": {"size": 20},
            "formats": ["npy", "npz"]},
    "two": {"name": "two", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 20},
            "formats": ["npy", "zarr"]},
}
TWO = "views/two/epoch-0000"
OBJECTS = {
    "root": ".",
    "text": "summary.txt",
    "folder of arrays": "arrays",
    "array": "arrays/t",
    "values": "arrays/t/values.npy",
    "folder of chunks": "arrays/t/chunks",
    "view": "views/one",
    "folder of coordinates": "views/one/coords",
    "coordinate": "views/one/coords/level.npy",
    "epoch": "views/one/epoch-0000",
    "epoch that is not listed": "views/one/epoch-0031",
    "rank": "views/one/rank-1-of-2",
    "batch": "views/one/epoch-0000/batch-000001.npy",
    "batch of a rank": "views/one/rank-1-of-2/epoch-0000/batch-000000.npz",
    "folder of tensors": f"{TWO}/batch-000000",
    "tensor": f"{TWO}/batch-000000/q.npy",
    "batch as Zarr": f"{TWO}/batch-000000.zarr",
    "Zarr metadata": f"{TWO}/batch-000000.zarr/.zgroup",
    "control folder": ".batchfs",
    "control text": ".batchfs/config.json",
    "link": ".batchfs/handoff.sock",
    "nothing": "nothing",
    "nothing in an epoch": "views/one/epoch-0000/batch-0.npy",
    "nothing in nothing": "nothing/nothing",
    "nothing in the control folder": ".batchfs/nothing",
    "below a text": "summary.txt/nothing",
    "too long": "a" * 256,
    "too long in an epoch": "views/one/epoch-0000/" + "a" * 256,
    "text with a slash": "summary.txt/",
    "epoch with a slash": "views/one/epoch-0000/",
    "itself": "views/one/.",
    "above": "views/one/..",
}


def call(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")


def opened(flags, action=lambda fd: None, mode=0o644):
    def attempt(path):
        fd = os.open(path, flags, mode)
        try:
            action(fd)
        finally:
            os.close(fd)

    return attempt


def path_of(path):
    return ctypes.c_char_p(os.fsencode(path))


def rename_exchange(a, b, flags):
    call(libc.renameat2(-100, path_of(a), -100, path_of(b), flags))


def bind(path):
    with socket.socket(socket.AF_UNIX) as one:
        # Paths longer than a socket address are not the subject of this test.
        folder, name = os.path.split(path.rstrip("/"))
        before = os.open(".", os.O_RDONLY)
        try:
            os.chdir(folder or ".")
            one.bind(name[:100])
        finally:
            os.fchdir(before)
            os.close(before)


def copy_into(path):
    with open("/proc/self/exe", "rb") as source:
        opened(os.O_RDONLY, lambda fd: os.copy_file_range(source.fileno(), fd, 100))(path)


def shared_writable(fd):
    if libc.mmap(None, 1, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0) == FAILED:
        raise OSError(ctypes.get_errno(), "")


ELSE = "views/one/schema.json"  # another file
FOLDER = "arrays/q"              # another directory
ATTEMPTS = {
    "open for writing": opened(os.O_WRONLY),
    "open for reading and writing": opened(os.O_RDWR),
    "open to append": opened(os.O_WRONLY | os.O_APPEND),
    "open to truncate": opened(os.O_RDONLY | os.O_TRUNC),
    "open to write and truncate": opened(os.O_WRONLY | os.O_TRUNC),
    "create": opened(os.O_RDWR | os.O_CREAT),
    "create anew": opened(os.O_RDONLY | os.O_CREAT | os.O_EXCL),
    "create and truncate": opened(os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    "create a folder by open": opened(os.O_RDONLY | os.O_CREAT | os.O_DIRECTORY),
    "open a folder for writing": opened(os.O_RDWR | os.O_DIRECTORY),
    "open for writing without following": opened(os.O_WRONLY | os.O_NOFOLLOW),
    "open for writing by O_DIRECT": opened(os.O_WRONLY | os.O_DIRECT),
    "temporary file": opened(os.O_TMPFILE | os.O_RDWR),
    "mkdir": os.mkdir,
    "mknod": lambda p: os.mknod(p, stat.S_IFREG | 0o600),
    "mknod of a device": lambda p: os.mknod(p, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "mkfifo": os.mkfifo,
    "bind": bind,
    "symlink": lambda p: os.symlink("summary.txt", p),
    "link to": lambda p: os.link(ELSE, p),
    "link from": lambda p: os.link(p, "new", follow_symlinks=False),
    "link from, into itself": lambda p: os.link(p, p),
    "rename to": lambda p: os.rename(ELSE, p),
    "rename a folder to": lambda p: os.rename(FOLDER, p),
    "rename from": lambda p: os.rename(p, "new"),
    "rename onto itself": lambda p: os.rename(p, p),
    "rename into itself": lambda p: os.rename(p, p + "/new"),
    "rename onto a file": lambda p: os.rename(p, ELSE),
    "rename onto a folder": lambda p: os.rename(p, FOLDER),
    "rename without replacing": lambda p: rename_exchange(p, ELSE, 1),
    "rename exchanging": lambda p: rename_exchange(p, ELSE, 2),
    "rename leaving a whiteout": lambda p: rename_exchange(p, "new", 4),
    "rename to elsewhere": lambda p: os.rename(p, "/tmp/batchfs-read-only-new"),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "truncate": lambda p: os.truncate(p, 0),
    "truncate to more": lambda p: os.truncate(p, 1 << 40),
    "truncate to less than nothing": lambda p: os.truncate(p, -1),
    "ftruncate": opened(os.O_RDONLY, lambda fd: os.ftruncate(fd, 0)),
    "write": opened(os.O_RDONLY, lambda fd: os.write(fd, b"a")),
    "pwrite": opened(os.O_RDONLY, lambda fd: os.pwrite(fd, b"a", 0)),
    "writev": opened(os.O_RDONLY, lambda fd: os.writev(fd, [b"a"])),
    "copy_file_range": copy_into,
    "fallocate": opened(
        os.O_RDONLY, lambda fd: call(libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(10)))),
    "punch a hole": opened(
        os.O_RDONLY, lambda fd: call(libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(10)))),
    "map shared for writing": opened(os.O_RDONLY, shared_writable),
    "chmod": lambda p: os.chmod(p, 0o777),
    "chmod to what it is": lambda p: os.chmod(p, stat.S_IMODE(os.stat(p).st_mode)),
    "fchmod": opened(os.O_RDONLY, lambda fd: os.fchmod(fd, 0o777)),
    "chown": lambda p: os.chown(p, 1, 1),
    "chown to nobody else": lambda p: os.chown(p, -1, -1),
    "lchown": lambda p: os.lchown(p, 1, 1),
    "fchown": opened(os.O_RDONLY, lambda fd: os.fchown(fd, 1, 1)),
    "utimensat": lambda p: os.utime(p, (1, 1)),
    "utimensat now": os.utime,
    "utimensat of a link": lambda p: os.utime(p, (1, 1), follow_symlinks=False),
    "futimens": opened(os.O_RDONLY, lambda fd: os.utime(fd, (1, 1))),
    "setxattr of a user": lambda p: os.setxattr(p, "user.a", b"b"),
    "setxattr of a link": lambda p: os.setxattr(p, "trusted.a", b"b", follow_symlinks=False),
    "setxattr of security": lambda p: os.setxattr(p, "security.a", b"b"),
    "set an access list": lambda p: os.setxattr(p, "system.posix_acl_access", b"\2\0\0\0"),
    "set a capability": lambda p: os.setxattr(p, "security.capability", bytes(20)),
    "removexattr": lambda p: os.removexattr(p, "user.a"),
    "removexattr of a link": lambda p: os.removexattr(p, "trusted.a", follow_symlinks=False),
    "fsetxattr": opened(os.O_RDONLY, lambda fd: os.setxattr(fd, "user.a", b"b")),
    # FS_IOC_SETFLAGS
    "set flags": opened(os.O_RDONLY, lambda fd: fcntl.ioctl(fd, 0x40086602, bytes(8))),
    # FS_IOC_FSSETXATTR
    "set extended flags": opened(os.O_RDONLY, lambda fd: fcntl.ioctl(fd, 0x401C5820, bytes(28))),
    # FICLONE
    "clone into": opened(os.O_RDONLY, lambda fd: fcntl.ioctl(fd, 0x40049409, fd)),
    # FS_IOC_SETFSLABEL
    "set the label": opened(os.O_RDONLY, lambda fd: fcntl.ioctl(fd, 0x41009432, bytes(256))),
    "access for writing": lambda p: call(libc.access(path_of(p), os.W_OK)),
    "eaccess for writing": lambda p: call(libc.eaccess(path_of(p), os.W_OK)),
}


# Calls that follow a link act on the socket, which lies elsewhere.
FOLLOWING = {"chmod", "chmod to what it is", "chown", "chown to nobody else", "utimensat",
             "utimensat now", "setxattr of a user", "setxattr of security", "set an access list",
             "set a capability", "removexattr", "access for writing", "eaccess for writing"}


def errors(directory, user):
    """The errno of every attempt on every object, "attempt | object" to name; tried by a process of
    its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(directory)
            if user != 0:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            found = {}
            for what, attempt in ATTEMPTS.items():
                for name, path in OBJECTS.items():
                    if name == "link" and what in FOLLOWING:
                        continue
                    try:
                        attempt(path)
                        found[f"{what} | {name}"] = "succeeds"
                    except OSError as error:
                        found[f"{what} | {name}"] = errno.errorcode[error.errno]
                    except Exception as error:
                        found[f"{what} | {name}"] = repr(error)
            with open(writing, "w") as answer:
                json.dump(found, answer)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def contents(directory):
    """Everything visible of the listed files and of OBJECTS."""
    seen = {}
    for folder, folders, files in os.walk(directory):
        for name in folders + files:
            path = pathlib.Path(folder, name)
            info = path.stat()
            data = None if name in folders else hashlib.sha256(path.read_bytes()).hexdigest()
            seen[str(path.relative_to(directory))] = (info.st_ino, info.st_mode, info.st_size,
                                                      info.st_uid, info.st_mtime, data)
    for name in OBJECTS.values():
        try:
            info = os.lstat(directory / name)
            seen[name] = (info.st_ino, info.st_mode, info.st_size, info.st_uid, info.st_mtime)
        except OSError as error:
            seen[name] = error.errno
    return seen


@pytest.fixture(scope="module")
def read_only(weather, mount_at, tmp_path_factory):
    where = tmp_path_factory.mktemp("ro")
    for folder in [where, *where.parents]:
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    return mount_at(weather, where / "mnt", VIEWS, "--allow-other")


@pytest.fixture(scope="module", params=["file system", "bind"])
def oracle(request, read_only):
    """The same tree on a tmpfs that is read-only, itself or where it is mounted."""
    directory = read_only.parent / request.param
    directory.mkdir()

    def mount(*arguments):
        return subprocess.run(["mount", *arguments, directory], capture_output=True,
                              check=False).returncode == 0

    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "mode=755", "tmpfs"):
        pytest.skip("only root can mount a tmpfs to compare with")
    try:
        for path in OBJECTS.values():
            path = path.rstrip("/.") or "."
            if not os.path.lexists(read_only / path):
                continue
            for part in [*reversed(pathlib.Path(path).parents), pathlib.Path(path)]:
                ours, theirs = read_only / part, directory / part
                if os.path.lexists(theirs):
                    continue
                if ours.is_symlink():
                    theirs.symlink_to(os.readlink(ours))
                elif ours.is_dir():
                    theirs.mkdir()
                else:
                    theirs.write_bytes(b"a" * min(ours.stat().st_size, 10))
        for path in (ELSE, FOLDER):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / ELSE).write_bytes(b"{}")
        (directory / FOLDER).mkdir()
        (directory / FOLDER / "values.npy").write_bytes(b"")
        for folder, folders, files in os.walk(directory, topdown=False):
            for name in folders + files:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o555 if name in folders else 0o444)
        directory.chmod(0o555)
        if request.param == "bind":
            assert mount("--bind", directory) and mount("-o", "remount,ro,bind,nosuid,nodev")
        else:
            assert mount("-o", "remount,ro,nosuid,nodev")
        yield directory
    finally:
        while subprocess.run(["umount", "--lazy", directory], capture_output=True,
                             check=False).returncode == 0:
            pass


# The kernel checks permissions before a mount's read-only flag, but after that of the file system,
# as for batchfs.
PERMISSION_FIRST = {"open for writing", "open for reading and writing", "open to append",
                    "create", "open for writing without following", "open for writing by O_DIRECT",
                    "truncate", "truncate to more", "access for writing", "eaccess for writing"}


@pytest.mark.says("erofs", "erofs-names")
@pytest.mark.parametrize("user", [0, NOBODY], ids=["root", "nobody"])
def test_errors_are_those_of_another_file_system(read_only, oracle, user):
    before = contents(read_only)
    ours, theirs = errors(read_only, user), errors(oracle, user)
    assert contents(read_only) == before
    assert "succeeds" not in ours.values()
    found = {what: (ours[what], theirs[what]) for what in ours if ours[what] != theirs[what]}
    if user == NOBODY and oracle.name == "bind":
        assert {what.split(" | ")[0] for what in found} == PERMISSION_FIRST
        assert set(found.values()) == {("EROFS", "EACCES")}
    else:
        assert found == {}
