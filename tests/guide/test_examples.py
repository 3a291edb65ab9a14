"""The examples: their views give batches of the stores that --offline makes, and each runs where
its framework is."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_running import PROGRAM, ROOT, environment, made_store

EXAMPLES = ROOT / "man/guide/examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "stores.py")
# For each script: the package it needs, short arguments, and its expected output.
RUNS = {
    "forecast_unet.py": ("torch", ["--steps", "3"],
                         r"epoch 0: loss .* RMSE [\d.]+ K, persistence [\d.]+ K\n"),
    "downscaling.py": ("torch", ["--steps", "20"], r"20 steps: 2 m temperature, RMSE [\d.]+ K with "
                                                   r"interpolation alone, [\d.]+ K now\n"),
    "segmentation.py": (
        "torch", ["--epochs", "1"],
        r"epoch 0: loss [\d.]+, \d+% of \d+ pixels right, \d+% are of the most frequent class\n"),
    "climate_jax.py": ("jax", ["--epochs", "1"],
                       r"epoch 0: loss [\d.]+ on 2 devices\n"
                       r"from 2000: RMSE [\d.]+ K, with the month a year before [\d.]+ K\n"),
    "cells_dali.py": ("nvidia.dali", [], r"epoch 0: 6 batches, (\d+) pixels of cells\n"
                                         r"epoch 1: 6 batches, \1 pixels of cells\n"),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


def store_of(script):
    return re.search(r'stores\.make\("(\w+)"', script.read_text()).group(1)


def view_of(script):
    return EXAMPLES / "views" / re.search(r'"views" / "(\S+)"', script.read_text()).group(1)


def script_output(script, folder, *arguments):
    variables = environment() | {"OMP_NUM_THREADS": "2", "JAX_PLATFORMS": "cpu",
                                 "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, script, *arguments], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=300, env=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_view_of_an_example_fits_its_store(script, tmp_path):
    store = made_store(store_of(script))
    view = json.loads(view_of(script).read_text())
    part = ["--part", "train"] if "split" in view else []
    if isinstance(view.get("normalize", {}).get("statistics"), str):
        statistics = tmp_path / view["normalize"]["statistics"]
        plain = {key: value for key, value in view.items() if key != "normalize"}
        subprocess.run([PROGRAM, "statistics", store, "--view=-", "-o", statistics, *part],
                       input=json.dumps(plain).encode(), check=True, capture_output=True)
    own = tmp_path / "view.json"
    own.write_text(json.dumps(view))
    done = subprocess.run([PROGRAM, "batch", store, "--view", own, "--format", "npz", *part],
                          capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and len(done.stdout) > 10_000


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_an_example_runs_offline(script, folder):
    needed, arguments, shown = RUNS[script.name]
    parent = needed.split(".")[0]
    if importlib.util.find_spec(parent) is None or importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    assert re.fullmatch(shown,
                        script_output(script, folder, "--offline", "--folder", folder, *arguments))


def test_the_forecast_runs_on_two_ranks_and_goes_on_from_its_checkpoint(folder, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if (folder / "era5.zarr").exists():
        os.symlink(folder / "era5.zarr", tmp_path / "era5.zarr")
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               EXAMPLES / "forecast_unet.py"]
    arguments = ["--offline", "--folder", tmp_path, "--steps", "3"]
    for epochs in ("1", "2"):  # the second resumes in the middle of the first epoch
        done = subprocess.run([sys.executable, *command, *arguments, "--epochs", epochs],
                              cwd=tmp_path, capture_output=True, text=True, check=False,
                              timeout=300, env=environment() | {"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr[-3000:]
        assert (done.stdout.startswith("epoch 0: loss ")
                and done.stdout.count("epoch") == int(epochs))
