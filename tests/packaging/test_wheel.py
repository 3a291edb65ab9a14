"""The wheel, packed from the build and installed into an environment of its own: the program, the
package, the pages."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import numpy as np
import pytest
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BATCHFS", ROOT / "build/batchfs")).resolve().parent
# Libraries of every system of the tag manylinux_2_36 (auditwheel's list), and the kernel's own.
SYSTEM = {"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6",
          "libpthread.so.0", "libresolv.so.2", "librt.so.1", "libstdc++.so.6", "libz.so.1",
          "linux-vdso.so.1"}

OPEN = """
import json, sys, batchfs
view = {"window": {"time": 1}, "variables": ["field"], "batch": {"size": 4}}
with batchfs.open(sys.argv[1], view=view) as data:
    print(json.dumps([batchfs.__file__, data._server.program,
                      [batch["field"].numpy().tolist() for batch in data],
                      batchfs.inspect(sys.argv[1]).arrays.field.shape]))
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel's file: that of BATCHFS_WHEEL, or one with the extension module that the tests have
    installed."""
    if "BATCHFS_WHEEL" in os.environ:
        return pathlib.Path(os.environ["BATCHFS_WHEEL"]).resolve()
    for module in ("auditwheel", "wheel", "scikit_build_core"):
        pytest.importorskip(module,
                            reason=f"{module} is not installed: no wheel can be packed here")
    if os.environ.get("BATCHFS_SANITIZER_REPORTS"):
        pytest.skip("a program that was built with sanitizers is nothing to pack")
    import batchfs

    extension = pathlib.Path(batchfs._core.__file__)
    made = subprocess.run(["ninja", "-C", BUILD, "completions"], capture_output=True, text=True,
                          check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, ROOT / "tools/packaging/wheel.py", "--build", BUILD,
                           "--output", folder, extension],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("*.whl")
    assert done.stdout.strip() == str(file)
    return file


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel, whose Python sees numpy of this one."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                    wheel], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    # After its own packages.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def bare(installed, tmp_path):
    """The environment of a user who has installed the wheel, and nothing else."""
    return {"PATH": f"{installed}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}


def test_its_name_says_where_it_works(wheel):
    assert re.fullmatch(
        r"batchfs-\d+\.\d+\.\d+-(cp3\d+\.?)+-(cp3\d+\.?|abi3\.?)+-manylinux_2_36_x86_64\.whl",
        wheel.name)
    assert wheel.stat().st_size < 30 << 20


def test_it_has_a_module_for_each_tag(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        (tags,) = (file.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL"))
        (metadata,) = (file.read(name).decode()
                       for name in names if name.endswith(".dist-info/METADATA"))
    modules = {name for name in names if name.startswith("batchfs/_core.") and name.endswith(".so")}
    wanted = {"batchfs/_core.abi3.so" if "abi3" in tag
              else f"batchfs/_core.cpython-{tag.split('-')[0][2:]}-x86_64-linux-gnu.so"
              for tag in re.findall(r"^Tag: (.*)$", tags, re.M)}
    assert modules == wanted
    assert "Requires-Python: >=3.10" in metadata and "Requires-Dist: numpy" in metadata
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any("licenses/libcurl" in name for name in names)


def test_the_program_is_in_path(installed, tmp_path):
    done = subprocess.run(["batchfs", "--version"], env=bare(installed, tmp_path),
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wanted = subprocess.run([BUILD / "batchfs", "--version"], capture_output=True, text=True,
                            check=True).stdout
    assert done.stdout == wanted
    done = subprocess.run(["batchfs", "inspect", "/nothing"], env=bare(installed, tmp_path),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("batchfs: inspect failed: ")


@pytest.mark.parametrize("name", ["bin/batchfs", "lib/libbatchfs_writer.so.0"])
def test_it_brings_its_libraries(installed, tmp_path, name):
    (file,) = installed.glob(f"lib/python3*/site-packages/batchfs/{name}")
    listed = subprocess.run(["ldd", file], env=bare(installed, tmp_path), capture_output=True,
                            text=True, check=True).stdout
    found = re.findall(r"^\s+(\S+) => (\S+)|^\s+(\S+) \(", listed, re.M)
    for needed, path, alone in found:
        library = os.path.basename(needed or alone)
        assert library in SYSTEM or "/batchfs.libs/" in path, (library, path)
    assert sum("/batchfs.libs/" in path for _, path, _ in found) > 10


CREATE = """
import sys, numpy, batchfs
from batchfs._writer import find_library
with batchfs.create(sys.argv[2], store=sys.argv[1],
                    view={"window": {"time": 1}, "variables": ["field"],
                          "batch": {"size": 10}}) as out:
    out.write(0, numpy.arange(300, dtype="f4").reshape(10, 1, 6, 5))
print(find_library())
"""


def test_the_package_writes_predictions(installed, tmp_path):
    zarr.create_group(tmp_path / "f.zarr").create_array("field", data=np.zeros((10, 6, 5), "f4"),
                                                        chunks=(3, 4, 4),
                                                        dimension_names=["time", "y", "x"])
    done = subprocess.run([installed / "bin/python", "-c", CREATE, tmp_path / "f.zarr",
                           tmp_path / "o.zarr"], env=bare(installed, tmp_path), cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout.strip().startswith(str(installed))
            and done.stdout.strip().endswith("batchfs/lib/libbatchfs_writer.so.0"))
    assert np.array_equal(zarr.open_group(tmp_path / "o.zarr", mode="r")["field"][...].ravel(),
                          np.arange(300))


def test_the_package_opens_a_store(installed, tmp_path):
    values = np.random.default_rng(0).normal(size=(10, 6, 5)).astype("f4")
    zarr.create_group(tmp_path / "f.zarr").create_array("field", data=values, chunks=(3, 4, 4),
                                                        dimension_names=["time", "y", "x"])
    done = subprocess.run([installed / "bin/python", "-c", OPEN, tmp_path / "f.zarr"],
                          env=bare(installed, tmp_path), cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    package, program, batches, shape = json.loads(done.stdout)
    assert (package.startswith(str(installed))
            and program == str(pathlib.Path(package).parent / "bin/batchfs"))
    read = np.concatenate([np.array(batch, "f4")[:, 0] for batch in batches])
    assert shape == [10, 6, 5]
    assert np.array_equal(read, zarr.open_group(tmp_path / "f.zarr", mode="r")["field"][:])


def test_pages_and_completions_are_where_others_look(installed, tmp_path):
    share = installed / "share"
    for name in ("man1/batchfs.1", "man5/batchfs-view.5", "man7/batchfs-layout.7",
                 "man7/batchfs-semantics.7"):
        section = name[3]
        assert (share / "man" / name).read_bytes() == (
            ROOT / "man" / f"{name.split('/')[1]}").read_bytes(), section
    for shell, place in (("bash", "bash-completion/completions/batchfs"),
                         ("zsh", "zsh/site-functions/_batchfs"),
                         ("fish", "fish/vendor_completions.d/batchfs.fish")):
        done = subprocess.run([BUILD / "batchfs", "completion", shell], capture_output=True,
                              check=True)
        assert (share / place).read_bytes() == done.stdout


def test_it_works_with_every_python_that_it_names(wheel, tmp_path):
    """The Pythons that are installed here; with the whole wheel of `tools/package wheel`, named by
    BATCHFS_WHEEL, all of them."""
    tried = []
    with zipfile.ZipFile(wheel) as file:
        tags = re.findall(r"^Tag: (\S+?)-", next(file.read(n).decode() for n in file.namelist()
                                                 if n.endswith("/WHEEL")), re.M)
    for minor in range(10, 15):
        python = shutil.which(f"python3.{minor}")
        if python is None or not (f"cp3{minor}" in tags or (minor > 12 and "cp312" in tags)):
            continue
        if subprocess.run([python, "-c", "0"], capture_output=True, check=False).returncode != 0:
            continue
        folder = tmp_path / f"python3.{minor}"
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--no-index",
                        "--no-deps", wheel], check=True)
        # Without numpy, which belongs to one Python: the module alone.
        code = "import importlib.machinery as m, importlib.util as u, os, sys\n" \
               "folder = os.path.dirname(u.find_spec('batchfs').origin)\n" \
               "spec = m.PathFinder.find_spec('_core', [folder])\n" \
               "module = u.module_from_spec(spec); spec.loader.exec_module(module)\n" \
               "print(os.path.basename(spec.origin), module.open.__name__)"
        done = subprocess.run([folder / "bin/python", "-c", code], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[1] == "open"
        assert (f"cpython-3{minor}" in done.stdout) == (minor < 12)
        tried.append(minor)
    print("tried Python 3.", tried)
    if not tried:
        pytest.skip("no Python that the wheel is for is in PATH")


IN_A_ROOT = """set -e
mount -t proc proc "$1/proc"
exec chroot "$1" sh -ec '
for compiler in gcc cc c++ nvcc; do if command -v "$compiler"; then exit 1; fi; done
cd "$1"
python3 -m venv --system-site-packages venv
venv/bin/pip install -q --no-index --no-deps --no-cache-dir *.whl 2>/dev/null
export PATH="$1/venv/bin:$PATH"
batchfs --version >&2
batchfs inspect f.zarr >&2
exec python open.py f.zarr' sh "$2"
"""


@pytest.mark.long
@pytest.mark.parametrize("release, tag",
                         [("bookworm", "cp311"), ("trixie", "cp312"), ("sid", "cp312")])
def test_in_a_debian_without_compilers(wheel, release, tag, bare_root, tmp_path):
    """Python 3.11, 3.13 and 3.14."""
    if tag not in re.split("[-.]", wheel.name):
        pytest.skip(f"the wheel is not for the Python of {release}: make a whole one with "
                    "tools/package wheel, and name it by BATCHFS_WHEEL")
    root = bare_root(release, "python3-numpy", "python3-pip", "python3-venv")
    values = np.random.default_rng(0).normal(size=(10, 6, 5)).astype("f4")
    place = root / "tmp" / tmp_path.name
    place.mkdir()
    try:
        zarr.create_group(place / "f.zarr").create_array("field", data=values, chunks=(3, 4, 4),
                                                         dimension_names=["time", "y", "x"])
        shutil.copy(wheel, place)
        (place / "open.py").write_text(OPEN)
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                               IN_A_ROOT, "sh", root, f"/tmp/{tmp_path.name}"],
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        _, program, batches, _ = json.loads(done.stdout.splitlines()[-1])
        assert program.endswith("batchfs/bin/batchfs")
        assert np.array_equal(np.concatenate([np.array(batch, "f4")[:, 0] for batch in batches]),
                              values)
    finally:
        shutil.rmtree(place)
