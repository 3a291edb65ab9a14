"""The GPUs that the built program and the reader's library have kernels for, read out of their fat
binaries."""

import os
import pathlib
import re
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build/batchfs")).resolve().parent

# gpu/architectures.cmake says which cards these are.
CODE = {75, 80, 86, 89, 90, 100, 120}
PTX = {120}  # for later cards

MAGIC, PTX_KIND, CODE_KIND = struct.pack("<I", 0xBA55ED50), 1, 2


def images(data):
    """(kind, architecture) of each image in the fat binaries of a file; cuobjdump --list-elf and
    --list-ptx show the same.

    A fat binary is a header (magic, version, size of the header, size of the images) and images:
    kind, version, size of the header, size of the data, and at byte 28 the architecture."""
    found, at = set(), data.find(MAGIC)
    while at >= 0:
        _, _, header, size = struct.unpack_from("<IHHQ", data, at)
        end = at + header + size
        if header == 16 and end <= len(data):
            place = at + header
            while place < end:
                kind, _, image_header, image_size = struct.unpack_from("<HHIQ", data, place)
                found.add((kind, *struct.unpack_from("<I", data, place + 28)))
                place += image_header + image_size
            assert place == end, "the images do not fill the fat binary"
        else:
            end = at + 4
        at = data.find(MAGIC, end)
    return found


@pytest.mark.parametrize("name", ["batchfs", "libbatchfs_reader_cuda.so"])
def test_every_supported_card_has_a_kernel(name):
    if not (BUILD / "libbatchfs_reader_cuda.so").exists():
        pytest.skip("this build has no GPU part: there is no nvcc")
    if re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
        pytest.skip("this build was configured for other GPUs")
    found = images((BUILD / name).read_bytes())
    # The CUDA runtime itself has no kernels: all images are ours.
    assert {architecture for kind, architecture in found if kind == CODE_KIND} == CODE
    assert {architecture for kind, architecture in found if kind == PTX_KIND} == PTX


def test_one_list_names_the_architectures():
    """No build file but gpu/architectures.cmake sets them."""
    setting = re.compile(r"set\(CMAKE_CUDA_ARCHITECTURES|CUDA_ARCHITECTURES\s+\d")
    files = subprocess.run(["git", "-C", ROOT, "ls-files",
                            "*CMakeLists.txt", "*.cmake", "tools/package", "tools/packaging"],
                           capture_output=True, text=True, check=True).stdout.split()
    setters = [name for name in files if setting.search((ROOT / name).read_text(errors="replace"))]
    assert setters == ["gpu/architectures.cmake"]
