"""The hand-off's protocol as far as it takes to get descriptors: see gpu/handoff/protocol.h."""

import socket
import struct

HELLO, START, GET, WELCOME, BATCH, SETUP, PROGRAM, ENDED = 1, 2, 3, 64, 65, 128, 129, 130
HOST, OWN = 1 << 1, 1 << 4  # kinds of memory


def send(to, kind, body):
    to.send(struct.pack("<IHH", 8 + len(body), kind, 1) + body)


def receive(sender, kind):
    """The body of the next message, and its descriptors."""
    message, descriptors, _, _ = socket.recv_fds(sender, 1 << 17, 16)
    assert struct.unpack_from("<IHH", message)[1] == kind, message
    return message[8:], descriptors


class RawReader:
    """A reader of a server's view, which keeps every descriptor that it is sent."""

    def __init__(self, path, view, *, kinds=HOST, rank=0, world=1, device_mib=0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        name = view.encode()
        send(self.socket, HELLO, struct.pack("<IIQqq16sII256s", 0, kinds, 0, rank, world, b"",
                                             len(name), device_mib, name))
        self.view = receive(self.socket, WELCOME)[1]

    def batch(self, number):
        send(self.socket, GET, struct.pack("<Qqq", 1, 0, number))
        return receive(self.socket, BATCH)[1]


class RawDecoder(RawReader):
    """A rank that decodes for itself, but that it decodes nothing: its batches are of the GPU's
    memory."""

    def __init__(self, path, view, rank, world):
        super().__init__(path, view, kinds=HOST | OWN, rank=rank, world=world, device_mib=256)
        setups = socket.socket(fileno=self.view[1])
        setups.settimeout(20)
        send(self.socket, START, struct.pack("<QqqqqII", 1, 0, rank, world, 2, 2, 0))
        programs = socket.socket(fileno=receive(setups, SETUP)[1][2])
        programs.settimeout(20)
        self.setups, self.programs = setups, programs

    def run_program(self):
        number, _ = struct.unpack("<QQ", receive(self.programs, PROGRAM)[0])
        send(self.programs, ENDED, struct.pack("<QII", number, 0, 0))

    def next(self):
        """The fallback of the next batch: 0 where it is in the GPU's memory."""
        return struct.unpack_from("<QQQqqqIIII", receive(self.socket, BATCH)[0])[-1]
