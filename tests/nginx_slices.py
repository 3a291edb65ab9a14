"""nginx as a shared cache, with the configuration that tools/packaging/cache/nginx.conf ships.

    with NginxCache(folder, ["127.0.0.1:9000"]) as cache:
        ... --via cache.url ...
        cache.kill()       # as kill -9 of all its processes
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

SHIPPED = pathlib.Path(__file__).resolve().parents[1] / "tools/packaging/cache/nginx.conf"
NGINX = shutil.which("nginx") or ("/usr/sbin/nginx" if os.path.exists("/usr/sbin/nginx") else None)


def shipped(text, old, new):
    assert text.count(old) == 1, old
    return text.replace(old, new)


class NginxCache:
    def __init__(self, folder, stores, port=None, kept=None, on_socket=False):
        """`stores`: their servers as HOST:PORT, plain HTTP. `kept`: where slices are kept, by
        default in `folder`. `on_socket`: it listens on a Unix socket in `folder`."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if on_socket:
            self.address = str(self.folder / "socket")
            self.url = f"unix:{self.address}"
        else:
            with socket.socket() as one:
                one.bind(("127.0.0.1", port or 0))
                self.address = one.getsockname()
            self.url = f"http://127.0.0.1:{self.address[1]}"
        site = SHIPPED.read_text()
        site = shipped(site, "/var/cache/nginx/batchfs ", f"{kept or self.folder / 'kept'} ")
        site = shipped(site, "max_size=900g", "max_size=100m")
        site = shipped(site, "keys_zone=batchfs:256m", "keys_zone=batchfs:8m")
        site = shipped(site, "listen 8090;", f"listen {self.url.removeprefix('http://')};")
        site = shipped(site, '  default "";\n',
                       '  default "";\n' + "".join(f"  {s} http://{s};\n" for s in stores))
        (self.folder / "site.conf").write_text(site)
        places = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.getuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"""
            {user} daemon off; pid {self.folder}/pid; worker_processes 1;
            error_log {self.folder}/error.log;
            events {{ worker_connections 4096; }}
            http {{ {places} include {self.folder}/site.conf; }}""")
        self.process = None

    def start(self):
        self.process = subprocess.Popen([NGINX, "-e", self.folder / "error.log", "-c",
                                         self.folder / "nginx.conf"], start_new_session=True)
        for _ in range(600):
            with socket.socket(socket.AF_UNIX if isinstance(self.address, str)
                               else socket.AF_INET) as probe:
                if probe.connect_ex(self.address) == 0:
                    return self
            assert self.process.poll() is None, (self.folder / "error.log").read_text()
            time.sleep(0.05)
        raise AssertionError("nginx does not answer")

    def signal(self, number):
        """To the master and its workers: a session of their own."""
        os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(20)
        self.process = None

    def errors(self):
        return (self.folder / "error.log").read_text()

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        if self.process is not None:
            self.signal(signal.SIGCONT)
            self.kill()
