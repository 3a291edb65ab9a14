"""The Debian package: what is in it, what it needs, and that what it has works."""

import os
import re
import shutil
import subprocess

import pytest

FILES = [
    "usr/bin/batchfs", "usr/sbin/mount.batchfs", "usr/sbin/mount.fuse.batchfs",
    "usr/include/batchfs_reader.h", "usr/include/batchfs_writer.h",
    "usr/lib/systemd/system/batchfs@.service", "usr/lib/systemd/system/batchfs-end@.service",
    "usr/share/bash-completion/completions/batchfs", "usr/share/zsh/vendor-completions/_batchfs",
    "usr/share/fish/vendor_completions.d/batchfs.fish",
    "usr/share/man/man1/batchfs-export.1.gz", "usr/share/man/man1/batchfs-rechunk.1.gz",
    "usr/share/man/man1/batchfs.1.gz", "usr/share/man/man5/batchfs-view.5.gz",
    "usr/share/man/man7/batchfs-layout.7.gz", "usr/share/man/man8/mount.batchfs.8.gz",
    "usr/share/doc/batchfs/copyright", "usr/share/doc/batchfs/changelog.gz",
]


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True,
                          check=True).stdout.strip()


@pytest.fixture(scope="session")
def libraries(unpacked):
    (library,) = unpacked.glob("usr/lib/**/libbatchfs_reader.so")
    return library.parent


def test_what_is_in_it(unpacked, libraries):
    assert [name for name in FILES if not os.path.lexists(unpacked / name)] == []
    for part in "reader", "writer":
        assert os.readlink(libraries / f"libbatchfs_{part}.so") == f"libbatchfs_{part}.so.0"
    everything = [path.relative_to(unpacked) for path in unpacked.rglob("*") if not path.is_dir()]
    outside = [str(p) for p in everything if str(p).split("/")[0] != "usr" or "test" in str(p)
               or p.suffix == ".a"]
    assert outside == []


def test_what_it_is_and_needs(package):
    assert field(package, "Package") == "batchfs"
    assert re.fullmatch(r"batchfs_[0-9.]+_\w+\.deb", package.name)
    needed = {entry.split()[0] for entry in field(package, "Depends").split(", ")}
    # One of each kind: what the program is linked with, and the program that mounts for ordinary
    # users.
    assert {"libc6", "libstdc++6", "libfuse3-3", "libtbb12", "libcurl4", "libblosc1",
            "fuse3"} <= needed
    assert not {name for name in needed if name.endswith("-dev") or name.startswith("python")}


def test_nothing_but_ldconfig_is_run_when_it_is_installed(package, tmp_path):
    subprocess.run(["dpkg-deb", "-e", package, tmp_path], check=True)
    assert (tmp_path / "triggers").read_text() == "activate-noawait ldconfig\n"
    assert [line.split(" (>= ")[0] for line in (tmp_path / "shlibs").read_text().splitlines()] == \
        ["libbatchfs_reader 0 batchfs", "libbatchfs_writer 0 batchfs"]
    for name in {"preinst", "postinst", "prerm", "postrm"} & set(os.listdir(tmp_path)):
        commands = [line.strip() for line in (tmp_path / name).read_text().splitlines()
                    if line and not line.startswith("#")]
        assert set(commands) <= {"set -e", 'if [ "$1" = "configure" ]; then',
                                 'if [ "$1" = "remove" ]; then', "ldconfig", "fi"}


def test_lintian_finds_nothing(package):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", package],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_program_runs(unpacked):
    for program in ("usr/bin/batchfs", "usr/sbin/mount.batchfs", "usr/sbin/mount.fuse.batchfs"):
        done = subprocess.run([unpacked / program, "--help"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert "STORE" in done.stdout


def test_the_packaged_mount_helper_mounts(unpacked, weather, directory):
    helper = unpacked / "usr/sbin/mount.batchfs"
    done = subprocess.run([helper, weather, directory, "-o", "rw,noatime,no-passthrough"],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(directory)) == ["arrays", "store.json", "summary.txt", "views"]


PROGRAMS = {
    "reader": 'batchfs_reader* r; int e = batchfs_open("/nowhere", NULL, &r); '
              'puts(batchfs_error());',
    "writer": 'batchfs_writer* w; char error[BATCHFS_WRITER_ERROR_SIZE];'
    ' int e = batchfs_writer_create("/nowhere", "{}", "/tmp/o", NULL, &w, error); puts(error);'}


@pytest.mark.parametrize("part", PROGRAMS)
def test_a_c_program_is_built_with_the_packaged_library(unpacked, libraries, tmp_path, part):
    for tool in ("pkg-config", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    source = tmp_path / "use.c"
    source.write_text(f'#include <batchfs_{part}.h>\n#include <stdio.h>\n'
                      f'int main(void) {{ {PROGRAMS[part]} return e == 0; }}\n')
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", f"batchfs_{part}"],
                           capture_output=True, text=True, check=True, env=os.environ
                               | {"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}).stdout.split()
    subprocess.run(["cc", source, "-o", tmp_path / "use", *flags], check=True)
    done = subprocess.run([tmp_path / "use"], capture_output=True, text=True, check=True,
                          env=os.environ | {"LD_LIBRARY_PATH": str(libraries)})
    assert "/nowhere" in done.stdout


@pytest.mark.parametrize("part", PROGRAMS)
def test_cmake_finds_the_packaged_library(unpacked, tmp_path, part):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(use LANGUAGES C)\n"
        f"find_package(batchfs_{part} 0.2 REQUIRED)\n"
        f"get_target_property(header batchfs::{part} INTERFACE_INCLUDE_DIRECTORIES)\n"
        f'if(NOT EXISTS "${{header}}/batchfs_{part}.h")\n'
        f'  message(FATAL_ERROR "no header in ${{header}}")\nendif()\n')
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build",
                           f"-DCMAKE_PREFIX_PATH={unpacked}/usr"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_systemd_accepts_the_unit(unpacked):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = unpacked / "usr/lib/systemd/system/batchfs@.service"
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True,
                          text=True)
    # The program is not where the unit will find it; everything else is to be right.
    complaints = [line for line in done.stderr.splitlines()
                  if "batchfs@" in line and "is not executable" not in line]
    assert complaints == []
