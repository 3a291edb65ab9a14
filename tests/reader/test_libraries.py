"""The reader's libraries are loaded into other people's programs: they need the C and C++ runtimes
only."""

import ctypes
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BATCHFS", "build/batchfs")).resolve().parent
RUNTIMES = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\b.*")


@pytest.mark.parametrize("name", ["libbatchfs_reader.so", "libbatchfs_reader_cuda.so"])
def test_needs_the_runtimes_only_and_loads(name):
    library = BUILD / name
    if not library.exists():
        pytest.skip(f"{name} was not built: it needs nvcc")
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                             text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert needed and [one for one in needed if not RUNTIMES.fullmatch(one)] == []
    if "sanitizer" not in dynamic and not os.environ.get("BATCHFS_SANITIZER_REPORTS"):
        assert ctypes.CDLL(str(library), mode=os.RTLD_NOW)
