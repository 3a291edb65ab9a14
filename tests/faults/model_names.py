"""Calls of a process of model.py with names: attributes, rights, listings."""

import ctypes
import errno
import os

from model_checks import must, must_be, must_fail
from model_mappings import libc

LONGEST = 255
GETDENTS64 = {"x86_64": 217, "aarch64": 61}.get(os.uname().machine)


class Names:
    """The names that a Reader (model_reader.py) looks at, which this is a part of."""

    def check_attributes(self, info, path, directory):
        folder = path in self.known.folders
        size = 0 if folder else self.known.files[path][1]
        must_be((info.st_mode, info.st_size, info.st_nlink),
                (0o040555 if folder else 0o100444, size, 2 if folder else 1), path)
        must_be(info.st_ino, self.known.inodes[path], path, "inode number")
        must_be((info.st_blksize, info.st_blocks),
                (1 << 20 if path.endswith("/values.npy") else 4096, -(-size // 512)), path)
        must(info.st_atime == info.st_mtime == info.st_ctime
                 == self.times.setdefault(directory, info.st_mtime), path, "times")

    # ---- names ----

    def do_stat(self):
        directory, path = self.directory(), self.chance.choice([self.file(),
                                                                self.chance.choice(self.folders)])
        self.say("stat", directory, path)
        whole = os.path.join(directory, path)
        how = self.chance.randrange(4)
        if how == 0:
            info = os.lstat(whole)
        elif how == 1:
            root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            info = os.stat(path or ".", dir_fd=root, follow_symlinks=self.chance.random() < 0.5)
            os.close(root)
        else:
            info = os.stat(whole)
        self.check_attributes(info, path, directory)
    do_stat.weight = 8

    def do_fstat(self):
        if (fd := self.descriptor(direct=True)) is not None:
            must_be(os.fstat(fd).st_size, len(self.open[fd].data), self.open[fd].path)

    def do_missing_name(self):
        """Names that differ from an existing one."""
        folder = self.chance.choice(self.folders)
        names = sorted(self.known.folders[folder]) or ["batch-000000.npy"]
        name = self.chance.choice(names)
        cut = self.chance.randrange(len(name))
        wrong = self.chance.choice([name + "~", name.upper(), name[:cut],
                                    name[:cut] + name[cut + 1:], name + ".npy",
                                    name[:cut] + "0" + name[cut:], " " + name, "batch-999999.npy",
                                    "x" * LONGEST, name.replace("0", "1"), "\xff" + name, "batch-"])
        path = os.path.join(folder, wrong)
        if (wrong in ("", ".", "..") or path in self.known.folders or path in self.known.files
                or "epoch-" in wrong or "rank-" in wrong):
            return
        self.say("missing", path)
        directory = self.directory()
        action = self.chance.choice([os.stat, os.lstat, lambda p: os.open(p, os.O_RDONLY),
                                     os.listdir, os.readlink, lambda p: os.stat(p + "/more")])
        must_fail(errno.ENOENT, action, os.path.join(directory, path))

    def do_wrong_kind(self):
        file = os.path.join(self.directory(), self.file())
        self.say("wrong kind", file)
        must_fail(errno.ENOTDIR, os.stat, file + "/more")
        must_fail(errno.ENOTDIR, os.stat, file + "/")
        must_fail(errno.ENOTDIR, os.listdir, file)
        must_fail(errno.EINVAL, os.readlink, file)
        must_fail(errno.ENAMETOOLONG, os.stat,
                  os.path.join(os.path.dirname(file), "y" * (LONGEST + 1)))
        must_fail(errno.EACCES, os.execv, file, ["x"])
        folder = os.open(os.path.dirname(file), os.O_RDONLY)
        must_fail(errno.EISDIR, os.read, folder, 10)
        os.close(folder)

    def do_write(self):
        directory, path = self.directory(), self.file()
        file = os.path.join(directory, path)
        must_fail(errno.EROFS,
                  self.chance.choice([lambda: os.open(file, os.O_RDWR),
                                      lambda: os.open(file + "new", os.O_WRONLY | os.O_CREAT),
                                      lambda: os.unlink(file), lambda: os.rename(file, file + "x"),
                                      lambda: os.truncate(file, 0), lambda: os.mkdir(file + "d"),
                                      lambda: os.utime(file)]))

    def do_access(self):
        file = os.path.join(self.directory(), self.file())
        must(os.access(file, os.R_OK) and not os.access(file, os.W_OK)
                 and not os.access(file, os.X_OK), file)

    def do_statfs(self):
        path = os.path.join(self.directory(), self.file())
        info = os.statvfs(path)
        must_be((info.f_bfree, info.f_namemax, info.f_bsize), (0, LONGEST, 1 << 20), path)
        must(info.f_blocks > 0 and info.f_flag & os.ST_RDONLY, path)

    def do_extended_attributes(self):
        must_fail(errno.EOPNOTSUPP, os.getxattr, os.path.join(self.directory(), self.file()),
                  "user.a")

    # ---- listings ----

    def check_listing(self, folder, names):
        must_be(sorted(names), sorted(self.known.folders[folder]), folder)
        must_be(names, self.orders.setdefault(folder, names), folder, "order")

    def do_list(self):
        directory, folder = self.directory(), self.chance.choice(self.folders)
        self.say("list", directory, folder)
        names = []
        for entry in os.scandir(os.path.join(directory, folder)):
            names.append(entry.name)
            path = os.path.join(folder, entry.name)
            must_be(entry.is_dir(follow_symlinks=False), path in self.known.folders, path)
            must_be(entry.inode(), self.known.inodes[path], path)
        self.check_listing(folder, names)

    def do_list_in_pieces(self):
        """getdents64 with buffers of any size, going back in between."""
        if GETDENTS64 is None:
            return
        directory, folder = self.directory(), self.chance.choice(self.folders)
        self.say("list in pieces", directory, folder)
        fd = os.open(os.path.join(directory, folder), os.O_RDONLY | os.O_DIRECTORY)
        buffer = ctypes.create_string_buffer(8192)
        names, places = [], [0]
        while True:
            if len(names) > 2 and self.chance.random() < 0.1:
                keep = self.chance.randrange(len(places))
                os.lseek(fd, places[keep], os.SEEK_SET)
                del names[keep:], places[keep + 1:]
            got = libc.syscall(GETDENTS64, fd, buffer, self.chance.choice([300, 512, 1000, 8192]))
            must(got >= 0, "getdents64", ctypes.get_errno())
            if got == 0:
                break
            at = 0
            while at < got:  # struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name
                places.append(int.from_bytes(buffer.raw[at + 8:at + 16], "little"))
                names.append(os.fsdecode(buffer.raw[at + 19:at + 19 + LONGEST + 1].split(b"\0")[0]))
                at += int.from_bytes(buffer.raw[at + 16:at + 18], "little")
        os.close(fd)
        must_be(names[:2], [".", ".."], folder)
        self.check_listing(folder, names[2:])

    # ---- open, close, duplicate ----
