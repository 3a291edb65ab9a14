"""An HTTP server of a directory that fails on demand, between a store and its reader.

    with FaultProxy(directory) as proxy:
        proxy.fault = Fault(status=503, times=2)
        ... read proxy.url ...
        proxy.requests     # (method, path, headers) of each

A fault is for the first `times` requests of each path that `applies` to (all of them when None), or
for a `share` of them at random.
"""

import dataclasses
import email.utils
import http.server
import gzip
import pathlib
import random
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse

# A few seconds instead of many: the tests check the outcome, not the default timeouts.
QUICK = ["--timeout", "1", "--retries", "2"]


def is_chunk(path):
    """Is it a chunk of the array x, in either format?"""
    return path.startswith("x/") and not path.endswith(("zarr.json", ".zarray", ".zattrs"))


@dataclasses.dataclass
class Fault:
    status: int | None = None             # answered instead of the object
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    latency: float = 0                    # seconds before the answer
    cut: int | None = None                # bytes of the body after which the connection closes
    reset: bool = False                   # it closes with a TCP reset
    stall: int | None = None              # bytes of the body after which nothing more comes
    drip: float = 0                       # seconds between two bytes of the body
    # a range request gets a range that begins so many bytes later
    shift: int = 0
    ignore_range: bool = False            # a range request gets the whole object
    new_etag: bool = False                # every answer has another ETag
    corrupt: bool = False                 # a byte of the body is flipped
    redirect: object = None               # a function of the path: the URL to go to instead
    raw: bytes | None = None              # sent instead of an answer, and the connection closes
    hang_up: bool = False                 # the connection closes without an answer
    early: bool = False                   # an interim answer comes first
    # a range request gets so many bytes more, and Content-Range agrees
    extend: int = 0
    # a range request gets all blocks of so many bytes that it touches
    block: int = 1
    lie: int = 0                          # so many bytes less than in Content-Range
    lose_range: bool = False              # Content-Range does not come
    lose_size: bool = False               # Content-Range does not name the object's size
    no_suffix: int | None = None          # the answer's status where the last bytes are asked for
    chunked: bool = False                 # in pieces, without Content-Length
    unsized: bool = False                 # until the connection closes
    length: int | None = None             # value of Content-Length
    # so many bytes of the object are missing, and every header agrees
    shorten: int = 0
    garbage: bool = False                 # the body's bytes are others
    encoding: bool = False                # gzip, although not requested
    closes: bool = False                  # the connection, after each answer
    jitter: float = 0                     # up to so many seconds before the answer
    share: float = 1
    times: int | None = None
    applies: object = None                # a function of the path

    def concerns(self, path, nth):
        return ((self.times is None or nth < self.times)
                and (self.applies is None or self.applies(path))
                and (self.share == 1 or random.random() < self.share))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # header and body come in two parts: the second would wait for an acknowledgement
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        proxy = self.server.proxy
        path = urllib.parse.unquote(self.path.split("?")[0]).lstrip("/")
        with proxy.lock:
            proxy.requests.append((self.command, path, dict(self.headers)))
            nth = proxy.seen[path] = proxy.seen.get(path, -1) + 1
            proxy.in_flight += 1
            proxy.most_in_flight = max(proxy.most_in_flight, proxy.in_flight)
            fault = proxy.fault if proxy.fault.concerns(path, nth) else Fault()
        try:
            self.answer(proxy, path, fault, nth)
        except (BrokenPipeError, ConnectionError):
            self.close_connection = True
        finally:
            with proxy.lock:
                proxy.in_flight -= 1

    def answer(self, proxy, path, fault, nth):
        time.sleep(fault.latency + fault.jitter * random.random())
        if fault.hang_up or fault.raw is not None:
            self.wfile.write(fault.raw or b"")
            self.close_connection = True
            if fault.stall is not None:
                self.wait_for_leaving()
            return None
        if fault.early:
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        if fault.redirect is not None:
            return self.send(302, {"Location": fault.redirect(path)}, b"elsewhere", fault)
        if fault.status is not None:
            return self.send(fault.status, fault.headers, fault.body, fault)
        file = proxy.directory / path
        if not file.is_file():
            return self.send(404, {}, b"not found", fault)
        data = file.read_bytes()
        data = data[:max(0, len(data) - fault.shorten)]
        if fault.garbage:
            data = bytes(byte ^ 0xA5 for byte in data)
        info = file.stat()
        headers = {"ETag": f'"{info.st_mtime_ns:x}-{nth if fault.new_etag else 0}"',
                   "Accept-Ranges": "bytes",
                   "Last-Modified": email.utils.formatdate(info.st_mtime, usegmt=True),
                   "Content-Type": "application/octet-stream"} | fault.headers
        status, body = 200, data
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        # Servers that compress as they send have no ranges of it.
        if wanted and not fault.ignore_range and not fault.encoding:
            first, last = wanted[1], wanted[2]
            if not first and fault.no_suffix is not None:
                return self.send(fault.no_suffix, {}, b"no such ranges", fault)
            begin = int(first) if first else max(0, len(data) - int(last))
            end = min(int(last) + 1, len(data)) if first and last else len(data)
            if begin >= len(data):
                return self.send(416, {"Content-Range": f"bytes */{len(data)}"}, b"", fault)
            begin, end = min(begin + fault.shift, len(data) - 1), min(
                end + fault.shift + fault.extend, len(data))
            begin, end = (begin // fault.block * fault.block,
                          min(-(-end // fault.block) * fault.block, len(data)))
            status, body = 206, data[begin:end - fault.lie]
            if not fault.lose_range:
                headers["Content-Range"] = (f"bytes {begin}-{end - 1}"
                                            f"/{'*' if fault.lose_size else len(data)}")
        if self.headers.get("If-None-Match") == headers["ETag"]:
            status, body = 304, b""
        if fault.corrupt and body:
            body = bytes([body[0] ^ 0xFF]) + body[1:]
        self.send(status, headers, body, fault)

    def send(self, status, headers, body, fault):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if fault.encoding and body:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        if fault.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            pieces = [body[i:i + 1000] for i in range(0, len(body), 1000)] + [b""]
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        elif not fault.unsized:
            self.send_header("Content-Length",
                             str(len(body) if fault.length is None else fault.length))
        if fault.unsized or fault.closes:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        ends_early = fault.cut is not None or fault.stall is not None
        if ends_early:
            body = body[:fault.cut if fault.cut is not None else fault.stall]
        if fault.drip:
            for i in range(len(body)):
                self.wfile.write(body[i:i + 1])
                time.sleep(fault.drip)
        else:
            self.wfile.write(body)
        if fault.stall is not None:
            self.wait_for_leaving()
        if ends_early:
            self.close_connection = True
            if fault.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack("ii", 1, 0))
                self.connection.close()


    def wait_for_leaving(self):
        self.connection.settimeout(60)
        try:
            self.connection.recv(1)  # the client says nothing more
        except OSError:
            pass


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that leave are what these tests are about


class FaultProxy:
    def __init__(self, directory, certificate=None, key=None):
        self.directory = pathlib.Path(directory)
        self.fault = Fault()
        self.lock = threading.Lock()
        self.requests = []
        self.seen = {}
        self.in_flight = self.most_in_flight = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.port = self._server.server_address[1]
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            # The handshake in the connection's own thread: one that fails must not hold up the
            # others.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.other_url = f"{scheme}://localhost:{self.port}"

    def set(self, fault):
        """Sets the fault from now on, and resets the counts of requests."""
        with self.lock:
            self.fault = fault
            self.seen.clear()
            self.requests.clear()

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *failure):
        self._server.shutdown()
        self._server.server_close()
