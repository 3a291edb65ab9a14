"""batchfs.open where something is missing, wrong or dies: one exception each; and what a terminal
shows."""

import contextlib
import http.server
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from opened_stores import VIEW, servers
from opened_stores import field, runtime, view_file  # noqa: F401 (fixtures)
from reader_servers import PROGRAM, TWO

import batchfs


# ---- missing, wrong or dying: one exception each ----


def test_no_program(field, monkeypatch, tmp_path):
    monkeypatch.setenv("BATCHFS", str(tmp_path / "nothing"))
    with pytest.raises(batchfs.NotFound,
                       match="there is no program '.*/nothing', which the variable BATCHFS names"):
        batchfs.open(field[0], view=VIEW)
    monkeypatch.delenv("BATCHFS")
    monkeypatch.setenv("PATH", str(tmp_path))
    from batchfs import _program

    monkeypatch.setattr(_program, "_BUNDLED", str(tmp_path / "bin/batchfs"))
    with pytest.raises(batchfs.NotFound, match="not in PATH.*; install the wheel"):
        batchfs.open(field[0], view=VIEW)
    with pytest.raises(batchfs.NotFound, match="there is no program 'x', which program= names"):
        batchfs.open(field[0], view=VIEW, program="x")
    with batchfs.open(field[0], view=VIEW, program=PROGRAM) as data:
        assert len(data) == 5
    # The package's own program takes precedence over the one in PATH.
    (tmp_path / "bin").mkdir()
    for place in ("batchfs", "bin/batchfs"):
        (tmp_path / place).symlink_to(PROGRAM)
    assert _program.find_program() == str(tmp_path / "bin/batchfs")
    (tmp_path / "bin/batchfs").unlink()
    assert _program.find_program() == str(tmp_path / "batchfs")


def program_in(tmp_path, text):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n" + text)
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("text, told", [
    ("echo batchfs 0.1.0; echo batchfs: serve failed: there is no option >&2; exit 2",
     "is version 0.1.0 of batchfs, and this"),
    ("echo Usage; exit 1", "is not batchfs, and this"),
], ids=["older", "another"])
def test_a_program_of_another_version(field, tmp_path, text, told):
    with pytest.raises(batchfs.NotSupported,
                       match=told + " package is version .*; install both of one version"):
        batchfs.open(field[0], view=VIEW, program=program_in(tmp_path, text))


def test_a_file_that_is_no_program(field, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    with pytest.raises(batchfs.NotFound, match="cannot be run: Exec format error"):
        batchfs.open(field[0], view=VIEW, program=program)


def test_a_daemon_that_is_killed_while_it_opens(view_file, runtime):
    """Like a server that exceeds the machine's memory."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        def kill():
            silent.accept()[0].close()
            connection, _ = silent.accept()
            for process in sorted(servers(runtime)):
                if pathlib.Path(f"/proc/{process}/task/{process}/children").read_text() == "":
                    os.kill(process, signal.SIGKILL)  # the daemon, which the command waits for
            connection.close()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(batchfs.Error, match="the daemon ended before it was ready"):
            batchfs.open(f"http://127.0.0.1:{silent.getsockname()[1]}/s.zarr", view=view_file)
        killer.join()


def test_a_command_that_is_killed(field, tmp_path):
    program = program_in(tmp_path,
                         f'[ "$1" = --version ] && exec {PROGRAM} --version\nkill -9 $$\n')
    with pytest.raises(batchfs.Error, match=r"was killed by signal 9; if memory had run out, "
                                            r"pass a smaller memory="):
        batchfs.open(field[0], view=VIEW, program=program)


def test_a_store_that_does_not_exist(tmp_path):
    with pytest.raises(batchfs.NotFound) as caught:
        batchfs.open(tmp_path / "nothing.zarr", view=VIEW)
    said = subprocess.run([PROGRAM, "inspect", tmp_path / "nothing.zarr"], capture_output=True,
                          text=True, check=False)
    assert str(caught.value) == said.stderr.strip().removeprefix("batchfs: inspect failed: ")


def test_a_view_that_is_refused(field, tmp_path):
    for view, kind, told in [
            (VIEW | {"batsch": 1}, batchfs.InvalidArgument, r"batsch.*batch"),
            ({"batch": 4}, batchfs.InvalidArgument, "window"),
            (VIEW | {"variables": ["feld"]}, batchfs.NotFound, "feld.*field"),
            (tmp_path / "no.json", batchfs.NotFound, "No such file or directory .*no.json"),
    ]:
        with pytest.raises(kind, match=told) as caught:
            batchfs.open(field[0], view=view)
        assert "\n" not in str(caught.value) and "batchfs: " not in str(caught.value)
    with pytest.raises(batchfs.InvalidArgument,
                       match="there is no option '--memry', did you mean '--memory'"):
        batchfs.open(field[0], view=VIEW, memry="8GB")
    with pytest.raises(batchfs.InvalidArgument, match="'8 goats' is not a size"):
        batchfs.open(field[0], view=VIEW, memory="8 goats")


def test_a_store_without_a_view(field):
    with pytest.raises(batchfs.InvalidArgument, match=r"is a store: pass a view as "
                                                      r"well.*view=batchfs.view\('.*field.zarr'\)"):
        batchfs.open(field[0])
    with pytest.raises(batchfs.InvalidArgument, match="is a store: pass a view as well"):
        batchfs.open("s3://bucket/x.zarr")


def test_an_option_for_a_place_that_is_not_a_store(field, tmp_path):
    with pytest.raises(batchfs.NotFound, match="no.zarr' does not exist: pass a store"):
        batchfs.open(tmp_path / "no.zarr", "train", part="val")
    with pytest.raises(batchfs.InvalidArgument,
                       match="is a store, and there is no file 'train' of a view: pass its keys"):
        batchfs.open(field[0], "train", part="val")


def test_a_view_with_a_split_needs_its_part(field):
    view = VIEW | {"split": {"parts": {"early": [{"time": {"from": "#0", "to": "#4"}}],
                                       "late": "rest"}}}
    with pytest.raises(batchfs.InvalidArgument, match="pass a part, part='view-early' for "
                                                      "instance; there are view-early, view-late$"):
        batchfs.open(field[0], view=view)
    with pytest.raises(batchfs.NotFound,
                       match="the view has no part 'erly'; there are view-early, view-late$"):
        batchfs.open(field[0], view=view, part="erly")


def test_a_socket_has_its_own_views(serve):
    server = serve()
    with pytest.raises(batchfs.InvalidArgument, match="serves the views that it was started with"):
        batchfs.open(server.socket, view=TWO)
    with pytest.raises(batchfs.InvalidArgument,
                       match="memory= is for a store that is opened with a view"):
        batchfs.open(server.socket, "two", memory="8GB")
    with pytest.raises(batchfs.InvalidArgument,
                       match="leave part= out; pass the view of the part, view='two-val'"):
        batchfs.open(server.socket, "two", part="val")
    with pytest.raises(batchfs.InvalidArgument, match="a socket has no files"):
        batchfs.open(server.socket, "two", mode="files")


@contextlib.contextmanager
def refusing():
    """A server that refuses all requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(403)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_no_credentials(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with refusing() as endpoint, pytest.raises(batchfs.Error,
                                               match="without credentials; set AWS_ACCESS_KEY_ID"):
        batchfs.open("s3://bucket/x.zarr", view=VIEW, region="us-east-1", endpoint=endpoint,
                     retries=0)


# A /dev of its own: no /dev/fuse, and a /dev/shm in which nothing has room.
POOR_DEV = """set -e
mkdir "$1/dev"
mount -t tmpfs none "$1/dev"
for node in null zero full random urandom; do
  touch "$1/dev/$node"
  mount --bind "/dev/$node" "$1/dev/$node"
done
mkdir "$1/dev/shm"
mount -t tmpfs -o size=4k none "$1/dev/shm"
mount --move "$1/dev" /dev
head -c 4096 /dev/zero > /dev/shm/full
shift
exec "$@"
"""


def test_without_fuse_and_with_a_full_dev_shm(field, tmp_path):
    """Neither is needed: batches are in memory files of their own."""
    if os.geteuid() != 0:
        pytest.skip("only root has a /dev of its own")
    text = ("import json, os, sys, batchfs\nassert not os.path.exists('/dev/fuse')\n"
            "try:\n    open('/dev/shm/more', 'wb').write(bytes(4096))\n"
            "except OSError as error:\n    assert error.errno == 28\n"
            "with batchfs.open(sys.argv[1], view=json.loads(sys.argv[2])) as data:\n"
            "    print(json.dumps(float(sum(batch['field'].numpy().sum(dtype='f8') "
            "for batch in data))))")

    def run(*command):
        return subprocess.run(["unshare", "--mount", "sh", "-c", POOR_DEV, "sh", tmp_path,
                               *command], capture_output=True, text=True, check=False)

    done = run(sys.executable, "-c", text, field[0], json.dumps(VIEW))
    assert done.returncode == 0, done.stderr
    assert np.isclose(float(done.stdout), field[1].sum(dtype="f8"))
    (tmp_path / "mnt").mkdir()
    (tmp_path / "dev").rmdir()
    done = run(PROGRAM, "mount", field[0], tmp_path / "mnt")
    assert done.returncode == 1 and (
        "nothing can be mounted without /dev/fuse; `batchfs doctor` says how" in done.stderr)


def test_no_directory_for_the_socket(field, monkeypatch, runtime):
    """A directory that others may enter is not used."""
    (runtime / "batchfs").mkdir(mode=0o755)
    (runtime / "batchfs").chmod(0o755)
    from batchfs import _server

    directory = _server._private_directory()
    assert directory != str(runtime / "batchfs") and os.stat(directory).st_mode & 0o077 == 0
    monkeypatch.setattr(_server.os, "mkdir", lambda *_: (_ for _ in ()).throw(PermissionError()))
    monkeypatch.setattr(_server.os, "lstat", lambda *_: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(batchfs.Error, match="only this user can enter; set XDG_RUNTIME_DIR"):
        _server._private_directory()
    monkeypatch.undo()
    (runtime / "batchfs").rmdir()


def test_secrets_of_a_url_are_not_shown():
    from batchfs._program import shown_store

    assert shown_store(
        "https://me:pass@word@host/a.zarr?sig=1&x=2") == "https://me:xxx@host/a.zarr?xxx"
    assert shown_store("s3://bucket/a.zarr") == "s3://bucket/a.zarr"
    assert shown_store("/data/what?.zarr") == "/data/what?.zarr"


# ---- on a terminal ----


@pytest.mark.parametrize("on_terminal", [True, False])
def test_what_takes_long_is_shown_on_a_terminal(view_file, runtime, on_terminal):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/s.zarr"
        text = ("import sys, batchfs\ntry:\n    batchfs.open(sys.argv[1], view=sys.argv[2])\n"
                "except batchfs.Error:\n    pass")
        main, terminal = pty.openpty()
        process = subprocess.Popen([sys.executable, "-c", text, address, view_file],
                                   stdin=subprocess.DEVNULL,
                                   stderr=terminal if on_terminal else subprocess.PIPE)
        os.close(terminal)
        connection, _ = silent.accept()
        if on_terminal:
            shown = b""
            while b"batchfs: opening http://127.0.0.1" not in shown:
                shown += os.read(main, 1000)
        connection.close()
        silent.close()
        _, said = process.communicate()
        assert process.returncode == 0 and not said
        os.close(main)
