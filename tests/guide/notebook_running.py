"""Runs the notebooks of man/guide/examples/. Run as a program, for `tools/docs --notebooks
[NAME...]`: runs them, all by default, and stores their output. A notebook whose framework is not
installed is named and left unchanged, with exit status 3."""

import ast
import base64
import importlib.util
import io
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_running import ROOT, environment

EXAMPLES = ROOT / "man/guide/examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
# modules, and where they come from
FRAMEWORKS = {"torch": "torch", "jax": "jax", "nvidia.dali": "nvidia-dali-cuda130"}
LARGEST = 300_000  # bytes of a notebook


def trees(notebook):
    """The code of a notebook, parsed, a tree for each cell of code."""
    return [ast.parse(cell.source) for cell in notebook.cells if cell.cell_type == "code"]


def imported(path):
    """The modules that a file of Python, or a notebook, imports."""
    import nbformat

    parsed = trees(nbformat.read(path, as_version=4)) if path.suffix == ".ipynb" else [
        ast.parse(path.read_text())]
    found = set()
    for node in (node for tree in parsed for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def frameworks_of(path):
    """The modules of frameworks that a notebook, or a script that it imports, needs."""
    found = imported(path)
    for script in EXAMPLES.glob("*.py"):
        if script.stem in found:
            found = found | imported(script)
    return sorted(name
                  for name in FRAMEWORKS if any(f"{one}.".startswith(f"{name}.") for one in found))


def missing(path):
    """The packages that are to be installed before a notebook runs."""
    found = []
    for name in frameworks_of(path):
        try:
            there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:  # of the parent
            there = False
        if not there:
            found.append(FRAMEWORKS[name])
    return found


def executed(path, folder):
    """The notebook, run from its beginning in a folder, on the CPU. A cell that fails raises."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    kept = dict(os.environ)
    os.environ.update(
        environment()
        | {"PYTHONPATH": os.pathsep.join(filter(None, [str(EXAMPLES), kept.get("PYTHONPATH")])),
           "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "2",
           "XLA_FLAGS": "--xla_force_host_platform_device_count=4"})
    try:
        nbclient.NotebookClient(notebook, timeout=900, record_timing=False,
                                extra_arguments=["--IPKernelApp.log_level=40"],
                                resources={"metadata": {"path": str(folder)}}).execute()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    return notebook


def store(notebook, path, folder):
    """Written so that another run changes only what it shows, and names no folder of this one."""
    import nbformat
    import PIL.Image

    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"],
                         "language_info": {"name": "python"}}
    names = {}

    def renamed(found):
        return names.setdefault(found[0], f"id-{len(names)}")

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise SystemExit(f"{path.name} shows a warning: {output.text}")
            for texts in (output, output.get("data", {})):
                for kind in {"text", "text/plain", "text/html"} & set(texts):
                    texts[kind] = texts[kind].replace(f"{folder}/", "")
            # 256 colors are enough, and a third of the bytes
            if "image/png" in output.get("data", {}):
                picture = PIL.Image.open(
                    io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB")
                small = io.BytesIO()
                picture.quantize(256, PIL.Image.Quantize.MAXCOVERAGE, kmeans=2,
                                 dither=PIL.Image.Dither.NONE).save(small, "PNG", optimize=True)
                output.data["image/png"] = base64.b64encode(small.getvalue()).decode()
            # xarray's have identifiers that are new each time
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = re.sub(
                    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", renamed,
                    output.data["text/html"])
    text = nbformat.writes(notebook, version=4) + "\n"
    if len(text) > LARGEST:
        raise SystemExit(f"{path.name} would have {len(text)} bytes, more than {LARGEST}: "
                         "draw smaller pictures")
    path.write_text(text)


def main(names):
    status = 0
    unknown = set(names) - {path.stem for path in NOTEBOOKS}
    if unknown:
        raise SystemExit(f"there is no notebook {', '.join(sorted(unknown))}; there are "
                         f"{', '.join(path.stem for path in NOTEBOOKS)}")
    for path in NOTEBOOKS:
        if names and path.stem not in names:
            continue
        if lacking := missing(path):
            print(f"{path.name} is left as it is: it needs {', '.join(lacking)}; run "
                  "tools/dependencies frameworks", file=sys.stderr)
            status = 3
            continue
        with tempfile.TemporaryDirectory(prefix="batchfs-notebook-") as folder:
            store(executed(path, folder), path, folder)
        print(path.relative_to(ROOT))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
