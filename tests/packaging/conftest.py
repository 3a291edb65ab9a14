"""The Debian package, packed from the build and unpacked; root file systems to try packages in; and
what is needed to mount."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOTS = pathlib.Path(os.environ.get("BATCHFS_ROOTS", ROOT / "build/roots")).resolve()
BUILD = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build/batchfs")).resolve().parent


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The package's file."""
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: no Debian package can be made here")
    if not (BUILD / "CPackConfig.cmake").exists():
        pytest.skip(f"{BUILD} is not a build folder of CMake's: there is nothing to pack")
    made = subprocess.run(["ninja", "-C", BUILD, "packaged"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path_factory.mktemp("package")
    done = subprocess.run(["cpack", "-G", "DEB", "-B", folder], cwd=BUILD, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("*.deb")
    return file


@pytest.fixture(scope="session")
def unpacked(package, tmp_path_factory):
    """Where the package lies unpacked, as root sees it after installing: readable by everyone."""
    folder = tmp_path_factory.mktemp("unpacked")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return folder


@pytest.fixture(scope="session")
def bare_root():
    """bare_root(SUITE, *packages): a root file system of that release of Debian, with these
    packages; kept for later runs."""
    if os.geteuid() != 0:
        pytest.skip("only root can change the root directory")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed (tools/dependencies test-services): no root file "
                    "system can be made")

    def make(suite, *packages):
        folder = ROOTS / "-".join([suite, *packages])
        done = subprocess.run([ROOT / "tools/packaging/debian_root", suite, folder, *packages],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"debootstrap makes no {suite} on this machine: "
                        f"{done.stderr.strip()[-300:]}")
        return folder

    return make


@pytest.fixture(scope="session")
def can_mount():
    if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse is missing or cannot be opened: nothing can be "
                    "mounted on this machine")


@pytest.fixture
def directory(tmp_path, can_mount):
    """A directory to mount at; whatever is mounted there goes at the end."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    yield directory
    if os.path.ismount(directory):
        subprocess.run([BUILD / "batchfs", "umount", "--lazy", directory], check=False)
