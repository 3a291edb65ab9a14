"""One process of model.py: it does one thing after another, drawn by its seed, and compares each
with what is known.

Ends with 0 and prints how many steps it did; with 1 and a traceback whose last line names
operation, seed and step.
"""

import ctypes
import dataclasses
import errno
import fcntl
import json
import mmap
import os
import pathlib
import pickle
import random
import select
import stat
import sys
import threading
import time

from model_checks import Different, must, must_be, must_fail
from model_mappings import PAGE, Mappings, libc
from model_names import Names

SAYS = 4096  # bytes of the file where a process announces its next step
LONGEST = 255
GETDENTS64 = {"x86_64": 217, "aarch64": 61}.get(os.uname().machine)
FIONREAD = 0x541B


@dataclasses.dataclass
class Known:
    folders: dict
    files: dict
    inodes: dict
    large: set
    directories: list


@dataclasses.dataclass
class Description:
    """An open file, which several descriptors may share, and where it stands."""
    path: str
    data: memoryview
    flags: int
    at: int = 0


class Reader(Names, Mappings):
    def __init__(self, scratch, number, seed, seconds, share, killed):
        super().__init__()
        with open(scratch / "tree", "rb") as file:
            self.known = pickle.load(file)
        with open(scratch / "blob", "rb") as file:
            self.blob = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        with open(scratch / f"says-{number}", "r+b") as file:
            self.says = mmap.mmap(file.fileno(), SAYS)
        self.scratch = scratch / f"own-{number}"
        self.chance = random.Random(f"{seed} {number}")
        self.seed, self.seconds, self.share, self.killed = seed, seconds, share, killed
        self.paths = sorted(self.known.files)
        self.large = sorted(self.known.large)
        self.folders = sorted(self.known.folders)
        self.open = {}      # descriptor to Description
        self.orders = {}    # of listings
        self.times = {}     # of the mounts
        self.buffer = mmap.mmap(-1, 1 << 20)
        self.step = 0

    def run(self):
        until = time.monotonic() + self.seconds
        names = [name for name in dir(self) if name.startswith("do_")]
        weights = [getattr(getattr(self, name), "weight", 2) for name in names]
        while time.monotonic() < until:
            self.step += 1
            name = self.chance.choices(names, weights)[0]
            self.say(name)
            try:
                getattr(self, name)()
            except Exception as error:
                raise Different(f"{name[3:]}: {error} (seed "
                                f"{self.seed}, step {self.step})") from error
        self.say("ending")
        while self.mapped:
            self.unmap(self.mapped[0])
        for fd in list(self.open):
            os.close(fd)
        print(self.step)

    def say(self, *words):
        text = " ".join(map(str, [f"step {self.step}:", *words])).encode()[:SAYS]
        self.says[:] = text.ljust(SAYS, b"\0")

    # ---- the objects of its calls ----

    def directory(self):
        return self.chance.choice(self.known.directories)

    def file(self):
        """The path of a file in the mount; batches more often than others."""
        return self.chance.choice(self.large if self.chance.random() < 0.6 else self.paths)

    def data(self, path):
        offset, size = self.known.files[path]
        return self.blob[offset:offset + size]

    def place_in(self, size):
        """Anywhere, often at an edge, sometimes behind the end."""
        edge = self.chance.choice([0, 4096, 1 << 17, 1 << 20, 2 << 20, size])
        return max(0, self.chance.choice([self.chance.randrange(size + 1), edge, edge - 1, edge + 1,
                                          size + self.chance.randrange(1 << 20)]))

    def length(self):
        return self.chance.choice([0, 1, 7, 512, 4095, 4096, 4097, 70000, 1 << 17, (1 << 20) + 3,
                                   3 << 20])

    def descriptor(self, direct=False):
        """An open one; None where there is none."""
        fds = [fd for fd, one in self.open.items()
               if direct or not one.flags & (os.O_DIRECT | os.O_PATH)]
        return self.chance.choice(fds) if fds else None

    def held(self):
        """Bytes of the daemons' memory."""
        return sum({id(one): len(one.data) for one in [*self.open.values(), *self.mapped]}.values())

    def make_room(self, size):
        while self.held() + size > self.share and (self.open or self.mapped):
            if self.mapped and (not self.open or self.chance.random() < 0.5):
                self.unmap(self.chance.choice(self.mapped))
            else:
                self.close(self.chance.choice(sorted(self.open)))

    def close(self, fd):
        os.close(fd)
        del self.open[fd]

    def do_open(self):
        directory, path = self.directory(), self.file()
        self.make_room(len(self.data(path)))
        flags = self.chance.choice([0, 0, 0, os.O_NONBLOCK, os.O_NOATIME, os.O_CLOEXEC, os.O_DIRECT,
                                    os.O_PATH, os.O_NOFOLLOW, os.O_SYNC, os.O_CREAT])
        self.say("open", directory, path, oct(flags))
        whole = os.path.join(directory, path)
        if self.chance.random() < 0.2:
            folder = os.open(os.path.dirname(whole), os.O_PATH)
            fd = os.open(os.path.basename(whole), flags, dir_fd=folder)
            os.close(folder)
        else:
            fd = os.open(whole, flags)
        self.open[fd] = Description(path, self.data(path), flags)
    do_open.weight = 10

    def do_open_again(self):
        """By the name of its descriptor."""
        if (fd := self.descriptor(direct=True)) is None:
            return
        one = self.open[fd]
        self.make_room(len(one.data))
        if fd not in self.open:
            return
        self.say("open again", one.path)
        self.open[os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)] = Description(one.path, one.data, 0)

    def do_close(self):
        if self.open:
            self.close(self.chance.choice(sorted(self.open)))
    do_close.weight = 5

    def do_dup(self):
        if (fd := self.descriptor()) is None or len(self.open) > 100:
            return
        other = self.descriptor()
        if self.chance.random() < 0.3 and other != fd:
            os.dup2(fd, other)
            self.open[other] = self.open[fd]
        else:
            self.open[os.dup(fd)] = self.open[fd]

    # ---- reading ----

    def do_pread(self):
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        offset, size = self.place_in(len(one.data)), self.length()
        self.say("pread", one.path, offset, size)
        must_be(os.pread(fd, size, offset), one.data[offset:offset + size], one.path, offset, size)
    do_pread.weight = 25

    def do_pread_far(self):
        if (fd := self.descriptor()) is not None:
            must_be(os.pread(fd, 100, self.chance.choice([1 << 31, 1 << 32, 1 << 40, (1 << 62)])),
                    b"")
            must_fail(errno.EINVAL, os.pread, fd, 1, -1)

    def do_read(self):
        if (fd := self.descriptor()) is None:
            return
        one, size = self.open[fd], self.length()
        self.say("read", one.path, one.at, size)
        got = os.read(fd, size)
        must_be(got, one.data[one.at:one.at + size], one.path, one.at, size)
        one.at += len(got)
    do_read.weight = 10

    def do_readv(self):
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        parts = [bytearray(self.chance.choice([0, 1, 100, 4096, 9999, 200000]))
                 for _ in range(self.chance.randrange(1, 6))]
        total, offset = sum(map(len, parts)), self.place_in(len(one.data))
        positioned = self.chance.random() < 0.5
        begin = offset if positioned else one.at
        self.say("readv", one.path, begin, total)
        got = os.preadv(fd, parts, offset) if positioned else os.readv(fd, parts)
        must_be(b"".join(parts)[:got], one.data[begin:begin + total], one.path, begin, total)
        one.at += 0 if positioned else got

    def do_read_whole(self):
        directory, path = self.directory(), self.file()
        self.make_room(len(self.data(path)))
        self.say("read whole", directory, path)
        with open(os.path.join(directory, path), "rb",
                  buffering=self.chance.choice([0, 4096, 1 << 20])) as file:
            must_be(file.read(), self.data(path), path)
    do_read_whole.weight = 4

    def do_read_direct(self):
        """Whole pages, of a descriptor that was opened for that."""
        direct = [fd for fd, one in self.open.items() if one.flags & os.O_DIRECT]
        if not direct:
            return
        fd = self.chance.choice(direct)
        one = self.open[fd]
        offset, size = self.place_in(len(one.data)) // PAGE * PAGE, self.chance.choice(
            [PAGE, 16 * PAGE, 1 << 20])
        self.say("read direct", one.path, offset, size)
        got = os.preadv(fd, [memoryview(self.buffer)[:size]], offset)
        must_be(self.buffer[:got], one.data[offset:offset + size], one.path, offset, size)
    do_read_direct.weight = 6

    def do_seek(self):
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        size = len(one.data)
        offset = self.place_in(size)
        how = self.chance.choice(["set", "current", "end", "data", "hole"])
        self.say("seek", one.path, how, offset)
        if how == "data" or how == "hole":
            if offset >= size:
                must_fail(errno.ENXIO, os.lseek, fd, offset,
                          os.SEEK_DATA if how == "data" else os.SEEK_HOLE)
                return
            one.at = offset if how == "data" else size
            must_be(os.lseek(fd, offset, os.SEEK_DATA if how == "data" else os.SEEK_HOLE), one.at,
                    one.path, how)
            return
        base = {"set": 0, "current": one.at, "end": size}[how]
        delta = offset if how == "set" else offset - size
        whence = {"set": os.SEEK_SET, "current": os.SEEK_CUR, "end": os.SEEK_END}[how]
        if base + delta < 0:
            must_fail(errno.EINVAL, os.lseek, fd, delta, whence)
            return
        one.at = base + delta
        must_be(os.lseek(fd, delta, whence), one.at, one.path, how)
    do_seek.weight = 6

    def do_move(self):
        """sendfile, splice and copy_file_range."""
        if (fd := self.descriptor()) is None:
            return
        one, size = self.open[fd], self.length()
        offset = self.place_in(len(one.data))
        how = self.chance.choice(["sendfile", "splice", "copy_file_range"])
        self.say(how, one.path, offset, size)
        expected = one.data[offset:offset + size]
        with open(self.scratch, "w+b", buffering=0) as copy:
            done = 0
            while done < size:
                if how == "splice":
                    reading, writing = os.pipe()
                    got = os.splice(fd, writing, size - done, offset_src=offset + done)
                    moved = 0
                    while moved < got:
                        moved += os.splice(reading, copy.fileno(), got - moved,
                                           offset_dst=done + moved)
                    os.close(reading)
                    os.close(writing)
                elif how == "sendfile":
                    got = os.sendfile(copy.fileno(), fd, offset + done, size - done)
                else:
                    try:
                        got = os.copy_file_range(fd, copy.fileno(), size - done, offset + done,
                                                 done)
                    except OSError as error:  # the kernel copies within one kind of file system
                        must_be(error.errno, errno.EXDEV, one.path)
                        return
                if got == 0:
                    break
                done += got
            must_be(os.pread(copy.fileno(), size + 1, 0), expected, how, one.path, offset, size)
    do_move.weight = 4

    def do_advise(self):
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        offset = self.place_in(len(one.data))
        os.posix_fadvise(fd, offset, self.length(),
                         self.chance.choice([os.POSIX_FADV_DONTNEED, os.POSIX_FADV_WILLNEED,
                                             os.POSIX_FADV_RANDOM, os.POSIX_FADV_SEQUENTIAL,
                                             os.POSIX_FADV_NORMAL]))
        if self.chance.random() < 0.3:
            libc.readahead(fd, offset, self.length())

    def do_ask_descriptor(self):
        """Further calls on an open file."""
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        answer = bytearray(4)
        fcntl.ioctl(fd, FIONREAD, answer)
        must_be(int.from_bytes(answer, "little", signed=True), len(one.data) - one.at, one.path,
                "FIONREAD")
        name = os.readlink(f"/proc/self/fd/{fd}")
        must(name.endswith(one.path), name, one.path)
        must_be(select.select([fd], [], [], 0)[0], [fd], one.path)
        os.fsync(fd)
        must_fail(errno.EBADF, os.write, fd, b"x")
        must_fail(errno.ENOTTY, fcntl.ioctl, fd, 0x80086601)
        must_be(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, os.O_RDONLY, one.path)

    def do_lock(self):
        if (fd := self.descriptor()) is None:
            return
        try:
            (fcntl.flock if self.chance.random() < 0.5 else fcntl.lockf)(
                fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
        except BlockingIOError:
            pass

    # ---- more than one at a time ----

    def do_fork(self):
        """A child reads what was open and mapped, moves what it shares, and leaves."""
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        mapping, moves = self.mapping(), self.chance.randrange(5000)
        self.say("fork", one.path)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                good = os.pread(fd, 10000, moves) == one.data[moves:moves + 10000]
                good &= os.lseek(fd, moves, os.SEEK_SET) == moves
                if mapping is not None:
                    ctypes.string_at(mapping.address, 1)
                code = 0 if good else 2
            finally:
                os._exit(code)
        must_be(os.waitpid(child, 0)[1], 0, one.path, "in a child")
        one.at = moves

    def do_read_in_threads(self):
        directory, path = self.directory(), self.file()
        self.make_room(2 * len(self.data(path)))
        self.say("read in threads", directory, path)
        data, wrong = self.data(path), []
        fd = os.open(os.path.join(directory, path), os.O_RDONLY)

        def read(seed):
            chance = random.Random(seed)
            for _ in range(10):
                offset, size = chance.randrange(len(data) + 1), chance.choice([1, 4096, 100000])
                if os.pread(fd, size, offset) != data[offset:offset + size]:
                    wrong.append((offset, size))

        threads = [threading.Thread(target=read, args=(self.chance.random(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(fd)
        must_be(wrong, [], path)

    def do_control(self):
        """Files about the process, whose contents change each time."""
        folder = os.path.join(self.directory(), ".batchfs")
        names = os.listdir(folder)
        name = self.chance.choice(sorted(set(names) - {"handoff.sock"}))
        self.say("control", name)
        try:
            text = pathlib.Path(folder, name).read_text()
        except OSError as error:
            must(self.killed and error.errno == errno.ESTALE, name, error)
            return
        must(name != "status.json" or json.loads(text)["memory_used"] >= 0, name)
        must_be(os.stat(os.path.join(folder, name)).st_size, 0, name)
        if "handoff.sock" in names:
            must(os.readlink(os.path.join(folder, "handoff.sock")).startswith("/"), "handoff.sock")
            must(stat.S_ISLNK(os.lstat(os.path.join(folder, "handoff.sock")).st_mode),
                 "handoff.sock")


def main():
    scratch, number, seed, seconds, share, killed = sys.argv[1:]
    Reader(pathlib.Path(scratch), int(number), int(seed), float(seconds), int(share),
           killed == "1").run()


if __name__ == "__main__":
    main()
