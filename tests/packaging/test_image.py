"""The container image, made from the Debian package, and the Kubernetes manifests that use it: run by podman, which knows
pods. Its base is made of this machine's Debian archive, so that nothing is fetched from a registry of images.

What podman 4 does not know the tests put in other words: jobs, daemon sets, sidecars that begin before the others, folders
within a volume (subPath), probes.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "packaging/kubernetes"
BASE = "docker.io/library/debian:12-slim"
USER = 1000
READ = """
import sys, batchfs
with batchfs.open(sys.argv[1]) as data:
    print(sum(float(batch["y"].numpy().sum()) for batch in data))
"""


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    """Runs podman with storage of its own."""
    for tool in ("podman", "mmdebstrap"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (tools/dependencies test-services): no image can be made here")
    if os.geteuid() != 0:
        pytest.skip("without root, containers have other users than the tests")
    folder = tmp_path_factory.mktemp("podman")
    limits = [f'"{name}={min(1024, soft)}:{min(1024, soft)}"' for name, soft in [
        ("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)[0]), ("nproc", resource.getrlimit(resource.RLIMIT_NPROC)[0])]]
    runtime = next((name for name in ("runc", "crun") if shutil.which(name)), "crun")
    (folder / "containers.conf").write_text(
        f'[engine]\nruntime = "{runtime}"\n[containers]\ndefault_ulimits = [{", ".join(limits)}]\n')
    environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"), "BUILDAH_ISOLATION": "chroot"}
    storage = ["--root", folder / "root", "--runroot", folder / "run"]

    def run(*arguments, check=True):
        done = subprocess.run(["podman", *storage, *arguments], capture_output=True, text=True, env=environment, timeout=600)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    base = folder / "base.tar"
    made = subprocess.run(["mmdebstrap", "--variant=minbase", "--customize-hook=copy-in /etc/apt/apt.conf.d /etc/apt", "bookworm",
                           base], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"mmdebstrap makes no Debian 12 on this machine: {made.stderr.strip()[-300:]}")
    run("import", base, BASE)
    base.unlink()
    works = run("run", "--rm", BASE, "true", check=False)
    if works.returncode != 0:
        pytest.skip(f"podman runs no container on this machine: {works.stderr.strip()}")
    yield run
    run("pod", "rm", "--all", "--force", "--time", "1", check=False)
    run("system", "reset", "--force", check=False)


@pytest.fixture(scope="module")
def image(podman, package, tmp_path_factory):
    context = tmp_path_factory.mktemp("context")
    shutil.copy(package, context)
    podman("build", "--tag", "localhost/batchfs", "--file", ROOT / "packaging/Containerfile", context)
    return "localhost/batchfs"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "era5.zarr"
    values = np.random.default_rng(1).random((50, 4, 5), dtype="f4")
    xr.Dataset({"2m_temperature": (("time", "lat", "lon"), values)}, {"time": np.arange(50)}).to_zarr(path, zarr_format=3)
    for folder in (path, *path.parents[:2]):
        folder.chmod(0o755)
    return path


def test_the_program_works_in_it(podman, image, store):
    assert podman("run", "--rm", image, "batchfs", "--version").stdout.startswith("batchfs ")
    told = podman("run", "--rm", "--volume", f"{store.parent}:/data:ro", image, "batchfs", "inspect", "--json", "/data/era5.zarr")
    assert "2m_temperature" in json.loads(told.stdout)["arrays"]
    assert "Usage" in podman("run", "--rm", image).stdout


def pod_of(documents, store, sockets):
    """The manifest's pod as podman plays it, with a local store and with `sockets` as the volume of that name."""
    (owner,) = [one for one in documents if one["kind"] in ("Job", "DaemonSet")]
    spec = owner["spec"]["template"]["spec"]
    spec["containers"] = [one for one in spec["initContainers"] if one.get("restartPolicy") == "Always"] + spec["containers"]
    prepare = [one for one in spec["initContainers"] if "restartPolicy" not in one]
    spec["initContainers"] = []
    (server,) = [one for one in spec["containers"] if one["name"] == "batchfs"]
    spec["containers"] = [server]
    spec.setdefault("securityContext", server.get("securityContext"))
    probe = (server.pop("startupProbe", None) or server.pop("readinessProbe"))["exec"]["command"]
    server.pop("restartPolicy", None)
    server.pop("resources")
    server["image"] = "localhost/batchfs"
    server["command"] = ["/data/era5.zarr" if word.startswith("s3://") else word for word in server["command"]]
    server["command"] = ["--memory=200M" if word.startswith("--memory=") else word for word in server["command"]]
    server["volumeMounts"].append({"name": "data", "mountPath": "/data", "readOnly": True})
    spec["volumes"].append({"name": "data", "hostPath": {"path": str(store.parent)}})
    for volume in spec["volumes"]:
        if volume["name"] in ("sockets", "cache"):
            folder = sockets / volume["name"]
            folder.mkdir()
            folder.chmod(0o777)  # as that of an emptyDir
            for key in ("emptyDir", "hostPath"):
                volume.pop(key, None)
            volume["hostPath"] = {"path": str(folder)}
    # What prepares the volumes runs here, as its user, and each folder of a volume becomes a volume.
    for one in prepare:
        user = one.get("securityContext", spec["securityContext"])["runAsUser"]
        places = {mount["mountPath"]: str(sockets / mount["name"]) for mount in one["volumeMounts"]}
        command = [next((word.replace(at, place, 1) for at, place in places.items() if word.startswith(at + "/")), word)
                   for word in one["command"]]
        subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command], check=True)
    for mount in server["volumeMounts"]:
        if inner := mount.pop("subPath", None):
            spec["volumes"].append({"name": f"{mount['name']}-{inner}", "hostPath": {"path": f"{sockets / mount['name'] / inner}"}})
            mount["name"] += f"-{inner}"
    others = [one for one in documents if one is not owner]
    return others + [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training"}, "spec": spec}], probe


@pytest.mark.parametrize("name", ["sidecar.yaml", "daemonset.yaml"])
def test_pods_of_the_manifests_serve_batches(podman, image, store, tmp_path, name):
    pytest.importorskip("batchfs", reason="the Python package is not installed")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    documents, probe = pod_of(list(yaml.safe_load_all((KUBERNETES / name).read_text())), store, tmp_path)
    played = tmp_path / "pod.yaml"
    played.write_text(yaml.safe_dump_all(documents))
    podman("play", "kube", played)
    try:
        until = time.monotonic() + 60
        while podman("exec", "training-batchfs", *probe, check=False).returncode != 0:
            assert time.monotonic() < until, podman("logs", "training-batchfs", check=False)
            time.sleep(0.2)
        (tmp_path / "sockets").chmod(0o755)  # the training's container sees the folder in it alone
        socket = next(path for path in (tmp_path / "sockets").glob("*/train.sock"))
        expected = xr.open_zarr(store)["2m_temperature"][1:].sum(dtype="f8").values
        # The training: of the same user in another container; here it is a process of that user.
        read = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", sys.executable, "-c", READ,
                               socket], capture_output=True, text=True)
        assert read.returncode == 0, read.stderr
        assert float(read.stdout) == pytest.approx(expected, rel=1e-6)
    finally:
        podman("play", "kube", "--down", played, check=False)
