"""The Debian package in root file systems of Debian 12 and 13 that have no compilers, as
`tools/package deb --root` tries it.

The package of the release on which the tests run is packed from their build. That of another
release is what `tools/package deb --root SUITE` made beforehand, in build/package/SUITE or in the
folder that BATCHFS_PACKAGES names: compiling all of batchfs once more would take longer than all
other tests.
"""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = ["bookworm", "trixie"]
PACKAGES = pathlib.Path(os.environ.get("BATCHFS_PACKAGES", ROOT / "build/package"))


def package_of(suite, request):
    if platform.freedesktop_os_release().get("VERSION_CODENAME") == suite:
        if os.environ.get("BATCHFS_SANITIZER_REPORTS"):
            pytest.skip("a program that was built with sanitizers is nothing to pack")
        return request.getfixturevalue("package")
    made = sorted((PACKAGES / suite).glob("batchfs_*.deb"))
    if not made:
        pytest.skip(f"there is no package for {suite}; make it with tools/package "
                    f"deb --root {suite}")
    return made[-1]


def attempt(root, package):
    return subprocess.run([sys.executable, ROOT / "tools/packaging/try_package", root, package],
                          capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("suite", SUITES)
def test_the_package_works_in_a_debian_without_compilers(suite, bare_root, can_mount, request):
    package = package_of(suite, request)
    root = bare_root(suite)
    before = {path.name for path in root.iterdir()}
    done = attempt(root, package)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{package} works in Debian 1{2 + SUITES.index(suite)}.")
    # It was tried in a copy: the next trial begins with a bare root again.
    assert {path.name for path in root.iterdir()} == before
    assert not (root / "usr/bin/batchfs").exists()


@pytest.mark.long
def test_a_package_of_another_release_is_refused(bare_root, can_mount, request):
    """That the trial notices what cannot be installed; and why each release has a package of its
    own."""
    own = platform.freedesktop_os_release().get("VERSION_CODENAME")
    if own not in SUITES:
        pytest.skip(f"the tests' build is not of {' or '.join(SUITES)}")
    done = attempt(bare_root(SUITES[1 - SUITES.index(own)]), package_of(own, request))
    assert done.returncode == 1
    assert "does not work in" in done.stderr
    assert "unmet dependencies" in done.stderr or "not installable" in done.stderr


@pytest.mark.long
def test_a_program_that_reads_wrong_values_is_found(bare_root, can_mount, request, tmp_path):
    """A package whose `batchfs cat` is right in form, and wrong in its values."""
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME")
    if suite not in SUITES:
        pytest.skip(f"the tests' build is not of {' or '.join(SUITES)}")
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "-R", package_of(suite, request), unpacked], check=True)
    program = unpacked / "usr/bin/batchfs"
    program.rename(program.with_name("batchfs.real"))
    program.write_text('#!/bin/sh\nif [ "$1" = cat ]; then exec batchfs.real "$@" --select '
                       'time=#0:#9; fi\nexec batchfs.real "$@"\n')
    program.chmod(0o755)
    subprocess.run(["dpkg-deb", "-b", unpacked, tmp_path / "wrong.deb"], check=True,
                   capture_output=True)
    done = attempt(bare_root(suite), tmp_path / "wrong.deb")
    assert done.returncode == 1
    assert "the output of `batchfs cat` differs from what numpy wrote" in done.stderr
