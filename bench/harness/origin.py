"""The origin server, running beside a benchmark."""

import json
import os
import pathlib
import subprocess
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Origin:
    """`with Origin(folder, latency=50) as origin`: serves the folder; `origin.url(store)`,
    `origin.stats()`."""

    def __init__(self, folder, latency=0, connection_rate=0, rate=0):
        self.folder = pathlib.Path(folder).resolve()
        self.arguments = ["--latency", str(latency), "--connection-rate", str(connection_rate),
                          "--rate", str(rate)]

    def __enter__(self):
        self.process = subprocess.Popen([ROOT / "build" / "bench_origin", self.folder,
                                         *self.arguments], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def url(self, store):
        return (f"http://127.0.0.1:{self.port}"
                f"/{pathlib.Path(store).resolve().relative_to(self.folder)}")

    def ask(self, what):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/.origin/{what}") as answer:
            return answer.read()

    def stats(self):
        return json.loads(self.ask("stats"))

    def reset(self):
        self.ask("reset")

    def get_rate(self, store, connections=64):
        """Bytes per second of plain parallel GETs of every object of the store: the bound."""
        paths = [f"/{pathlib.Path(folder, name).relative_to(self.folder)}"
                 for folder, _, names in os.walk(store) for name in names]
        done = subprocess.run([ROOT / "build" / "bench_get", str(self.port), str(connections)],
                              input="\n".join(sorted(paths)), capture_output=True, text=True,
                              check=True)
        count, seconds = done.stdout.split()
        return int(count) / float(seconds)
