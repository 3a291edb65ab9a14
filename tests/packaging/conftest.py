"""The Debian package, packed from the build and unpacked; and what is needed to mount."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build/batchfs")).resolve().parent


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The package's file."""
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: no Debian package can be made here")
    if not (BUILD / "CPackConfig.cmake").exists():
        pytest.skip(f"{BUILD} is no build folder of CMake's: there is nothing to pack")
    made = subprocess.run(["ninja", "-C", BUILD, "packaged"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path_factory.mktemp("package")
    done = subprocess.run(["cpack", "-G", "DEB", "-B", folder], cwd=BUILD, capture_output=True, text=True)
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
def can_mount():
    if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse is missing or cannot be opened: nothing can be mounted on this machine")


@pytest.fixture
def directory(tmp_path, can_mount):
    """A directory to mount at; whatever is mounted there goes at the end."""
    directory = tmp_path / "mnt"
    directory.mkdir()
    yield directory
    if os.path.ismount(directory):
        subprocess.run([BUILD / "batchfs", "umount", "--lazy", directory], check=False)
