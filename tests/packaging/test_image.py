"""The container image, made from the Debian package, and the Kubernetes manifests that use it: run
by podman, which knows pods. Its base is made of this machine's Debian archive, so that nothing is
fetched from a registry of images.

The tests rewrite parts that podman 4 does not support: jobs, daemon sets, stateful sets, sidecars
that begin before the others, folders within a volume (subPath), probes.
"""

import io
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/faults")]
from fault_proxy import FaultProxy  # noqa: E402
from nginx_slices import shipped  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("BATCHFS", ROOT / "build/batchfs"))
KUBERNETES = ROOT / "tools/packaging/kubernetes"
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
            pytest.skip(f"{tool} is not installed (tools/dependencies test-services): no "
                        "image can be made here")
    if os.geteuid() != 0:
        pytest.skip("without root, containers have other users than the tests")
    folder = tmp_path_factory.mktemp("podman")
    limits = [f'"{name}={min(1024, soft)}:{min(1024, soft)}"'
              for name, soft in [("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
                                 ("nproc", resource.getrlimit(resource.RLIMIT_NPROC)[0])]]
    runtime = next((name for name in ("runc", "crun") if shutil.which(name)), "crun")
    (folder / "containers.conf").write_text(
        f'[engine]\nruntime = "{runtime}"\n[containers]\ndefault_ulimits = [{", ".join(limits)}]\n')
    environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"),
                   "BUILDAH_ISOLATION": "chroot"}
    storage = ["--root", folder / "root", "--runroot", folder / "run"]

    def run(*arguments, check=True):
        done = subprocess.run(["podman", *storage, *arguments], capture_output=True, text=True,
                              env=environment, timeout=600)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    base = folder / "base.tar"
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--customize-hook=copy-in /etc/apt/apt.conf.d /etc/apt",
         """--customize-hook=echo 'Acquire::Retries "5";' >"$1/etc/apt/apt.conf.d/90retries\"""",
         "bookworm", base], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"mmdebstrap makes no Debian 12 on this machine: {made.stderr.strip()[-300:]}")
    try:
        run("import", base, BASE)
        base.unlink()
        works = run("run", "--rm", BASE, "true", check=False)
        if works.returncode != 0:
            pytest.skip(f"podman runs no container on this machine: {works.stderr.strip()}")
        (folder / "Containerfile").write_text(
            f"FROM {BASE}\nRUN apt-get update -o APT::Update::Error-Mode=any\n")
        works = run("build", "--file", folder / "Containerfile", folder, check=False)
        if works.returncode != 0:
            pytest.skip("no package can be installed in a container on this machine: "
                        f"{(works.stdout + works.stderr).strip()[-600:]}")
        yield run
    finally:  # its storage is a mount
        run("pod", "rm", "--all", "--force", "--time", "1", check=False)
        run("system", "reset", "--force", check=False)


@pytest.fixture(scope="module")
def image(podman, package, tmp_path_factory):
    context = tmp_path_factory.mktemp("context")
    shutil.copy(package, context)
    podman("build", "--tag", "localhost/batchfs", "--file", ROOT / "tools/packaging/Containerfile",
           context)
    return "localhost/batchfs"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "era5.zarr"
    values = np.random.default_rng(1).random((50, 4, 5), dtype="f4")
    xr.Dataset({"2m_temperature": (("time", "lat", "lon"), values)},
               {"time": np.arange(50)}).to_zarr(path, zarr_format=3)
    for folder in (path, *path.parents[:2]):
        folder.chmod(0o755)
    return path


def test_the_program_works_in_it(podman, image, store):
    assert podman("run", "--rm", image, "batchfs", "--version").stdout.startswith("batchfs ")
    told = podman("run", "--rm", "--volume", f"{store.parent}:/data:ro", image, "batchfs",
                  "inspect", "--json", "/data/era5.zarr")
    assert "2m_temperature" in json.loads(told.stdout)["arrays"]
    assert "Usage" in podman("run", "--rm", image).stdout


def pod_of(documents, store, sockets):
    """The manifest's pod as podman plays it, with a local store and with `sockets` as the volume of
    that name."""
    (owner,) = [one for one in documents if one["kind"] in ("Job", "DaemonSet")]
    spec = owner["spec"]["template"]["spec"]
    spec["containers"] = [one for one in spec["initContainers"]
                          if one.get("restartPolicy") == "Always"] + spec["containers"]
    prepare = [one for one in spec["initContainers"] if "restartPolicy" not in one]
    spec["initContainers"] = []
    (server,) = [one for one in spec["containers"] if one["name"] == "batchfs"]
    spec["containers"] = [server]
    spec.setdefault("securityContext", server.get("securityContext"))
    probe = (server.pop("startupProbe", None) or server.pop("readinessProbe"))["exec"]["command"]
    server.pop("restartPolicy", None)
    server.pop("resources")
    server["image"] = "localhost/batchfs"
    server["command"] = ["/data/era5.zarr" if word.startswith("s3://") else word
                         for word in server["command"]]
    server["command"] = ["--memory=200M" if word.startswith("--memory=") else word
                         for word in server["command"]]
    server["volumeMounts"].append({"name": "data", "mountPath": "/data", "readOnly": True})
    spec["volumes"].append({"name": "data", "hostPath": {"path": str(store.parent)}})
    for volume in spec["volumes"]:
        if volume["name"] in ("sockets", "cache"):
            folder = sockets / volume["name"]
            folder.mkdir()
            folder.chmod(0o777)  # like an emptyDir
            for key in ("emptyDir", "hostPath"):
                volume.pop(key, None)
            volume["hostPath"] = {"path": str(folder)}
    # The commands that prepare the volumes run here, as their user, and each folder of a volume
    # becomes a volume.
    for one in prepare:
        user = one.get("securityContext", spec["securityContext"])["runAsUser"]
        places = {mount["mountPath"]: str(sockets / mount["name"]) for mount in one["volumeMounts"]}
        command = [next((word.replace(at, place, 1) for at, place in places.items()
                         if word.startswith(at + "/")), word) for word in one["command"]]
        subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                        *command], check=True)
    for mount in server["volumeMounts"]:
        if inner := mount.pop("subPath", None):
            spec["volumes"].append({"name": f"{mount['name']}-{inner}",
                                    "hostPath": {"path": f"{sockets / mount['name'] / inner}"}})
            mount["name"] += f"-{inner}"
    others = [one for one in documents if one is not owner]
    return others + [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training"},
                      "spec": spec}], probe


@pytest.mark.parametrize("name", ["sidecar.yaml", "daemonset.yaml"])
def test_pods_of_the_manifests_serve_batches(podman, image, store, tmp_path, name):
    pytest.importorskip("batchfs", reason="the Python package is not installed")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    documents, probe = pod_of(list(yaml.safe_load_all((KUBERNETES / name).read_text())), store,
                              tmp_path)
    played = tmp_path / "pod.yaml"
    played.write_text(yaml.safe_dump_all(documents))
    podman("play", "kube", played)
    try:
        until = time.monotonic() + 60
        while podman("exec", "training-batchfs", *probe, check=False).returncode != 0:
            assert time.monotonic() < until, podman("logs", "training-batchfs", check=False)
            time.sleep(0.2)
        (tmp_path / "sockets").chmod(0o755)  # the training's container sees only the folder in it
        socket = next(path for path in (tmp_path / "sockets").glob("*/train.sock"))
        expected = xr.open_zarr(store)["2m_temperature"][1:].sum(dtype="f8").values
        # The training: of the same user in another container; here it is a process of that user.
        read = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                               sys.executable, "-c", READ, socket], capture_output=True, text=True)
        assert read.returncode == 0, read.stderr
        assert float(read.stdout) == pytest.approx(expected, rel=1e-6)
    finally:
        podman("play", "kube", "--down", played, check=False)


def documents_of(name):
    return list(yaml.safe_load_all((KUBERNETES / name).read_text()))


def play(podman, path, documents):
    path.write_text(yaml.safe_dump_all(documents))
    podman("play", "kube", path)


def test_the_pods_of_an_indexed_job_share_statistics(podman, image, store, tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts").chmod(0o777)
    view, share, merge = documents_of("job.yaml")
    assert share["spec"]["completionMode"] == "Indexed"

    def pod(job, name, **environment):
        """A pod of the job as its controller makes it, with 3 shares, local folders and nothing of
        a cluster."""
        spec = json.loads(json.dumps(job["spec"]["template"]["spec"]))
        (container,) = spec["containers"]
        known = {one["name"]: one["value"] for one in container.get("env", [])}
        if environment:
            assert known["TASKS"] == str(job["spec"]["completions"])
        container["env"] = [{"name": key, "value": value}
                            for key, value in (known | environment).items()]
        container.pop("resources", None)
        container["image"] = "localhost/batchfs"
        for words in ("command", "args"):
            container[words] = [word.replace("s3://bucket/era5.zarr", "/data/era5.zarr").replace(
                "s3://bucket/parts", "/parts") for word in container.get(words, [])]
        container.setdefault("volumeMounts", []).extend([{"name": "data", "mountPath": "/data",
                                                          "readOnly": True},
                                                         {"name": "parts", "mountPath": "/parts"}])
        spec.setdefault("volumes", []).extend(
            [{"name": "data", "hostPath": {"path": str(store.parent)}},
             {"name": "parts", "hostPath": {"path": str(tmp_path / "parts")}}])
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    def finish(name, documents):
        play(podman, tmp_path / f"{name}.yaml", documents)
        assert podman("wait", f"{name}-batchfs").stdout.strip() == "0", podman(
            "logs", f"{name}-batchfs").stdout
        return podman("logs", f"{name}-batchfs").stdout

    for index in range(3):
        finish(f"share-{index}",
               [view, pod(share, f"share-{index}", JOB_COMPLETION_INDEX=str(index), TASKS="3")])
    (tmp_path / "view.json").write_text(view["data"]["view.json"])
    alone = subprocess.run([PROGRAM, "statistics", store, "--view", tmp_path / "view.json",
                            "--json"], capture_output=True, check=True)
    merged, expected = json.loads(finish("merge", [pod(merge, "merge")])), json.loads(alone.stdout)
    assert merged.pop("store") == "/data/era5.zarr" and expected.pop("store") == str(store)
    assert merged == expected


@pytest.fixture(scope="module")
def nginx_image(podman, tmp_path_factory):
    """In place of the one that cache.yaml names."""
    context = tmp_path_factory.mktemp("nginx")
    (context / "Containerfile").write_text(f"FROM {BASE}\nRUN apt-get update && apt-get install -y "
                                           "--no-install-recommends nginx-light ca-certificates\n"
                                           'CMD ["nginx", "-g", "daemon off;"]\n')
    podman("build", "--tag", "localhost/nginx", "--file", context / "Containerfile", context)
    return "localhost/nginx"


def test_a_pod_of_the_shared_caches_keeps_what_it_fetches(podman, nginx_image, store, tmp_path):
    service, caches, policy = documents_of("cache.yaml")
    (port,) = service["spec"]["ports"]
    spec = caches["spec"]["template"]["spec"]
    (nginx,) = spec["containers"]
    labels = caches["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == policy["spec"]["podSelector"]["matchLabels"]
    assert port["port"] == nginx["ports"][0]["containerPort"] == (
        policy["spec"]["ingress"][0]["ports"][0]["port"])
    assert [claim["metadata"]["name"]
            for claim in caches["spec"]["volumeClaimTemplates"]] == ["disk"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        listens = f"127.0.0.1:{free.getsockname()[1]}"
    (tmp_path / "disk").mkdir()
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with FaultProxy(store) as origin:
        site = shipped((ROOT / "tools/packaging/cache/nginx.conf").read_text(),
                       f"listen {port['port']};", f"listen {listens};")
        site = shipped(site, '  default "";\n', f'  default "";\n  127.0.0.1:{origin.port} '
                                                f'http://127.0.0.1:{origin.port};\n')
        site = shipped(site, "max_size=900g", "max_size=100m")
        spec["hostNetwork"] = True
        spec["volumes"].append({"name": "disk", "hostPath": {"path": str(tmp_path / "disk")}})
        nginx.update(image=nginx_image, ports=[])
        del nginx["readinessProbe"]
        configuration = {"apiVersion": "v1", "kind": "ConfigMap",
                         "metadata": {"name": "batchfs-cache"}, "data": {"nginx.conf": site}}
        try:
            play(podman, tmp_path / "pod.yaml",
                 [configuration,
                  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cache"}, "spec": spec}])
            until = time.monotonic() + 60
            while socket.socket().connect_ex(("127.0.0.1", int(listens.partition(":")[2]))) != 0:
                assert time.monotonic() < until, podman("logs", "cache-nginx", check=False)
                time.sleep(0.2)
            for _ in range(2):
                read = subprocess.run([PROGRAM, "cat", origin.url, "2m_temperature", "--via",
                                       f"http://{listens}"], capture_output=True)
                assert read.returncode == 0, read.stderr
                np.testing.assert_array_equal(np.load(io.BytesIO(read.stdout)),
                                              xr.open_zarr(store)["2m_temperature"].values)
        finally:
            podman("play", "kube", "--down", tmp_path / "pod.yaml", check=False)
        fetched = [path for method, path, headers in origin.requests
                   if path.startswith("2m_temperature/c/") and "If-None-Match" not in headers]
    assert fetched and len(fetched) == len(set(fetched))
    assert [path for path in (tmp_path / "disk").rglob("*") if path.is_file()]
