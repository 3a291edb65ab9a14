"""The hand-off's protocol as far as it takes to get descriptors: see gpu/handoff/protocol.h."""

import socket
import struct

HELLO, GET, WELCOME, BATCH = 1, 3, 64, 65


class RawReader:
    """A reader of a server's view, which keeps every descriptor that it is sent."""

    def __init__(self, path, view):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        name = view.encode()
        self.send(HELLO, struct.pack("<IIQqq16sII256s", 0, 1 << 1, 0, 0, 1, b"", len(name), 0, name))
        self.view = self.receive(WELCOME)

    def send(self, kind, body):
        self.socket.send(struct.pack("<IHH", 8 + len(body), kind, 1) + body)

    def receive(self, kind):
        message, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 17, 16)
        assert struct.unpack_from("<IHH", message)[1] == kind, message
        return descriptors

    def batch(self, number):
        self.send(GET, struct.pack("<Qqq", 1, 0, number))
        return self.receive(BATCH)
