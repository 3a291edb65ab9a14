"""The mappings of files in a process of model.py."""

import ctypes
import dataclasses
import errno
import mmap

from model_checks import must, must_be

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.readahead.argtypes = [ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t]
FAILED = ctypes.c_void_p(-1).value


@dataclasses.dataclass
class Mapping:
    address: int
    begin: int      # in the file
    length: int
    data: memoryview
    path: str
    own: dict = dataclasses.field(default_factory=dict)  # bytes written here, by place in the file
    writable: bool = False


class Mappings:
    """The mappings of a Reader (model_reader.py), which derives from this."""

    def __init__(self):
        self.mapped = []

    def do_map(self):
        if (fd := self.descriptor()) is None:
            return
        one = self.open[fd]
        if not one.data:
            return
        self.make_room(len(one.data))
        if fd not in self.open:
            return
        begin = (self.chance.randrange(len(one.data)) // PAGE * PAGE if self.chance.random() < 0.5
                 else 0)
        length = self.chance.choice([len(one.data) - begin,
                                     self.chance.randrange(1, len(one.data) - begin + 1),
                                     len(one.data) - begin + 2 * PAGE])
        shared, writable = self.chance.random() < 0.5, self.chance.random() < 0.5
        self.say("map", one.path, begin, length, shared, writable)
        flags = (mmap.MAP_SHARED if shared
                 else mmap.MAP_PRIVATE) | (mmap.MAP_POPULATE if self.chance.random() < 0.2 else 0)
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        address = libc.mmap(None, length, protection, flags, fd, begin)
        if shared and writable:
            must_be((address, ctypes.get_errno()), (FAILED, errno.EACCES), one.path)
            return
        must(address != FAILED, "mmap", ctypes.get_errno(), one.path)
        self.mapped.append(Mapping(address, begin, length, one.data, one.path, writable=writable))
    do_map.weight = 6

    def mapping(self):
        return self.chance.choice(self.mapped) if self.mapped else None

    def do_look_at_mapping(self):
        if (one := self.mapping()) is None:
            return
        # The bytes of the file, and the rest of its last page.
        reach = min(one.length, -(-(len(one.data) - one.begin) // PAGE) * PAGE)
        at = self.chance.randrange(reach)
        size = min(self.length(), reach - at)
        self.say("look at mapping", one.path, one.begin, at, size)
        expected = bytearray(one.data[one.begin + at:one.begin + at + size])
        expected += bytes(size - len(expected))
        for place, byte in one.own.items():
            if at <= place < at + size:
                expected[place - at] = byte
        must_be(ctypes.string_at(one.address + at, size), bytes(expected), one.path, one.begin, at,
                size)
    do_look_at_mapping.weight = 15

    def do_write_to_mapping(self):
        """Private: nobody else sees it."""
        if (one := self.mapping()) is None or not one.writable:
            return
        at = self.chance.randrange(min(one.length, len(one.data) - one.begin))
        byte = self.chance.randrange(256)
        self.say("write to mapping", one.path, at)
        ctypes.memset(one.address + at, byte, 1)
        one.own[at] = byte

    def do_advise_mapping(self):
        if (one := self.mapping()) is None:
            return
        advice = self.chance.choice([mmap.MADV_NORMAL, mmap.MADV_RANDOM, mmap.MADV_SEQUENTIAL,
                                     mmap.MADV_WILLNEED, mmap.MADV_DONTNEED])
        self.say("advise mapping", one.path, advice)
        must_be(libc.madvise(one.address, one.length, advice), 0, one.path, "madvise", advice)
        if advice == mmap.MADV_DONTNEED:
            one.own.clear()

    def unmap(self, one):
        self.say("unmap", one.path)
        must_be(libc.munmap(one.address, one.length), 0, one.path)
        self.mapped.remove(one)

    def do_unmap(self):
        if self.mapped:
            self.unmap(self.chance.choice(self.mapped))
    do_unmap.weight = 3
