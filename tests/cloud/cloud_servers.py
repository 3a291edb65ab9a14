"""Data that the tests upload, and common parts of their own servers: objects in memory, ranges,
versions, listings in pages."""

import hashlib
import http.server
import pathlib
import re
import threading
import urllib.parse

ODD_NAME = "dt=2020-01-01 t+m é"  # every character that is written differently in URLs


def files_of(folder):
    """Key and bytes of every file below a folder."""
    folder = pathlib.Path(folder)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder.parent)), path.read_bytes()


def version_of(data):
    return hashlib.md5(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def path_part(self):
        return self.path.partition("?")[0]

    @property
    def query(self):
        return dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))

    def answer(self, status, body=b"", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_object(self, data, suffixes=True):
        """The object, or the range of it that is asked for; or that its version is still the
        same."""
        version = f'"{version_of(data)}"'
        if self.headers.get("If-None-Match") == version:
            return self.answer(304, ETag=version)
        self.server.sent.append(self.path)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            return self.answer(200, data, ETag=version)
        first, last = asked.groups()
        if not first:
            if not suffixes:
                return self.answer(400)
            first, last = max(0, len(data) - int(last)), len(data) - 1
        first, last = int(first), min(int(last or len(data)), len(data) - 1)
        if first >= len(data):
            return self.answer(416, Content_Range=f"bytes */{len(data)}")
        return self.answer(206, data[first:last + 1], ETag=version,
                           Content_Range=f"bytes {first}-{last}/{len(data)}")

    def children(self, prefix, after, count=2):
        """(keys, prefixes, next page) of what begins with `prefix`, cut at the next slash."""
        names = sorted({prefix + key[len(prefix):].partition("/")[0]
                        + ("/" if "/" in key[len(prefix):] else "") for key in self.server.objects
                        if key.startswith(prefix)})
        names = [name for name in names if name > after]
        page = names[:count]
        return ([name for name in page if not name.endswith("/")],
                [name for name in page if name.endswith("/")],
                page[-1] if len(names) > count else "")

    def everything(self, prefix, after, count=100):
        """(keys with their objects, next page) of what begins with `prefix`, at any depth."""
        names = sorted(key for key in self.server.objects if key.startswith(prefix) and key > after)
        return [(name, self.server.objects[name])
                for name in names[:count]], names[count - 1] if len(names) > count else ""


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, handler, objects):
        super().__init__(("127.0.0.1", 0), handler)
        self.objects = objects
        self.sent = []  # objects whose bytes were sent
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()
