"""The example for Slurm: a cluster of two nodes on one machine runs the job script."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/faults"))
from fault_proxy import FaultProxy  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("BATCHFS", ROOT / "build/batchfs"))
LONG = 120  # seconds that nothing here takes, on however slow a machine
TOOLS = ["slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "munged", "unshare"]
SAMPLES = 41

CONFIGURATION = """ClusterName=batchfs
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={name} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 State=UNKNOWN
NodeName=n2 NodeHostname={name} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"""

# Replaces train.py, which needs PyTorch: prints each rank's view of the mount of its node.
TRAIN = """
import json, os, pathlib, sys
import numpy
rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
epoch = pathlib.Path(sys.argv[1], "train", f"rank-{rank}-of-{world}",
                     os.environ.get("EPOCH", "epoch-0001"))
samples = []
for file in sorted(epoch.glob("*.npy")):
    told = json.loads(file.with_suffix(".json").read_text())["samples"]
    assert numpy.load(file)[:, 0, 0].tolist() == told  # the values are the samples' numbers
    samples += told
print("RANK", json.dumps([rank, world, os.environ["SLURMD_NODENAME"], samples]), flush=True)
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, can_mount):
    """The environment of those who use it. Each node has a /mounts of its own."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"],
                                           capture_output=True).returncode != 0:
        pytest.skip("a cluster of one's own takes root and mount namespaces")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ["state", "n1", "n2", "munge", "bin", "mounts"]:
        (folder / name).mkdir(mode=0o700)
    (folder / "munge/key").write_bytes(os.urandom(1024))
    (folder / "munge/key").chmod(0o600)
    (folder / "bin/batchfs").symlink_to(PROGRAM)
    (folder / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "bin/python3").chmod(0o755)
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(name=socket.gethostname().split(".")[0],
                                                  folder=folder, ports=free_ports(3)))
    environment = dict(os.environ, SLURM_CONF=str(configuration),
                       BATCHFS_DIR=str(folder / "mounts"),
                       PATH=f"{folder}/bin:{os.environ['PATH']}:/usr/sbin")
    own = 'mount --make-rprivate / && mount -t tmpfs none "$0" && exec "$@"'
    munge = [f"--{name}={folder}/munge/{file}"
             for name, file in [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"),
                                ("log-file", "log"), ("seed-file", "seed")]]
    commands = [["munged", "--foreground", "--force", *munge], ["slurmctld", "-D"],
                *(["unshare", "-m", "sh", "-c", own, folder / "mounts", "slurmd", "-D", "-N", node]
                  for node in ("n1", "n2"))]
    running = []
    with (folder / "log").open("wb") as log:
        try:
            for command in commands:
                running.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log))
                until = time.monotonic() + LONG
                while (command[0] == "munged" and not (folder / "munge/socket").exists()
                       and time.monotonic() < until):
                    time.sleep(0.05)
            until = time.monotonic() + LONG
            while "idle 2" not in (seen := subprocess.run(["sinfo", "-h", "-o", "%t %D"],
                                                          env=environment, capture_output=True,
                                                          text=True).stdout):
                ended = [command[0] for command, process in zip(commands, running)
                         if process.poll() is not None]
                if ended or time.monotonic() > until:
                    pytest.skip(f"no cluster can be started here: {ended or seen}: "
                                f"{(folder / 'log').read_text()[-500:]}")
                time.sleep(0.2)
            yield environment
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                process.wait(LONG)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The folder that it is submitted from."""
    folder = tmp_path_factory.mktemp("job")
    shutil.copy(ROOT / "tools/packaging/slurm/train.sbatch", folder)
    (folder / "train.py").write_text(TRAIN)
    values = np.repeat(np.arange(SAMPLES, dtype="f4")[:, None], 5, axis=1)
    zarr.create_group(folder / "s.zarr").create_array("v", data=values, chunks=(4, 5),
                                                      dimension_names=["time", "x"])
    view = {"name": "train", "window": {"time": 1}, "batch": {"size": 3},
            "order": {"shuffle": "global"}, "epochs": 2}
    (folder / "view.json").write_text(json.dumps(view))
    return folder


def trained(cluster, job, nodes, tasks, *arguments, **more):
    """The ranks of a job, each as (world, node, samples), the rest of its output, and its
    number."""
    told = subprocess.run(["sbatch", "--parsable", f"--nodes={nodes}", f"--ntasks-per-node={tasks}",
                           "--output=out-%j", "train.sbatch", *arguments],
                          cwd=job, env=cluster | more, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    number = told.stdout.strip()
    until = time.monotonic() + LONG
    while subprocess.run(["squeue", "-h", "-j", number], env=cluster, capture_output=True,
                         text=True).stdout.strip():
        assert time.monotonic() < until, (job / f"out-{number}").read_text()
        time.sleep(0.2)
    output = (job / f"out-{number}").read_text()
    ranks = {rank: (world, node, samples) for rank, world, node, samples in
             (json.loads(line[5:]) for line in output.splitlines() if line.startswith("RANK "))}
    assert sorted(ranks) == list(range(nodes * tasks)), output
    return ranks, output, number


@pytest.mark.parametrize("nodes, tasks", [(1, 2), (2, 2)])
def test_ranks_share_the_samples(cluster, job, nodes, tasks):
    ranks, output, number = trained(cluster, job, nodes, tasks, job / "s.zarr", job / "view.json")
    assert {world for world, _, _ in ranks.values()} == {nodes * tasks}
    assert {node for _, node, _ in ranks.values()} == {"n1", "n2"} if nodes == 2 else {"n1"}
    assert sorted(sample for _, _, samples in ranks.values()
                  for sample in samples) == list(range(SAMPLES))
    # A line for each mount, and no complaint of any step.
    rest = [line for line in output.splitlines() if not line.startswith("RANK ")]
    assert len(rest) == nodes and all("mounted on" in line for line in rest), rest
    assert not [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                if f"batchfs-{number} " in line]


def test_nodes_keep_the_chunks_of_their_lanes(cluster, job, tmp_path):
    """In a cache on a disk of their own: the second job fetches next to nothing, and has other
    mounts."""
    values = np.repeat(np.arange(320, dtype="f4")[:, None], 5, axis=1)
    zarr.create_group(tmp_path / "s.zarr").create_array("v", data=values, chunks=(2, 5),
                                                        dimension_names=["time", "x"])
    zarr.consolidate_metadata(tmp_path / "s.zarr")
    view = {"name": "train", "window": {"time": 1}, "batch": {"size": 4}, "epochs": 2,
            "order": {"shuffle": "block", "buffer": 1, "lanes": 4, "home": True}}
    (tmp_path / "view.json").write_text(json.dumps(view))
    with FaultProxy(tmp_path / "s.zarr") as origin:
        fetched = []
        for epoch in range(2):
            ranks, _, _ = trained(cluster, job, 2, 2, origin.url, tmp_path / "view.json",
                                  "--cache-dir", f"{cluster['BATCHFS_DIR']}/cache",
                                  EPOCH=f"epoch-{epoch:04d}")
            assert [ranks[rank][1] for rank in range(4)] == ["n1", "n1", "n2", "n2"]
            assert sorted(sample for _, _, samples in ranks.values()
                          for sample in samples) == list(range(320))
            fetched.append(sum(method == "GET" and path.startswith("v/c/")
                               and "If-None-Match" not in headers
                               for method, path, headers in origin.requests))
            origin.requests.clear()
    assert 160 <= fetched[0] <= 1.15 * 160  # each chunk is of one node
    assert fetched[1] <= 0.05 * fetched[0]


def test_tasks_of_an_array(cluster, job, tmp_path):
    """Shares of statistics, one of them in an array of its own, come to the result of one
    process."""
    view = tmp_path / "view.json"
    view.write_text(json.dumps({"window": {"time": 1}}))
    words = ["statistics", str(job / "s.zarr"), "--view", str(view)]
    alone = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, check=True).stdout
    parts = tmp_path / "parts"

    def submit(array, **more):
        command = ["sbatch", "--wait", "--parsable", f"--array={array}", "--output",
                   str(tmp_path / "task-%a.out"), str(ROOT / "tools/packaging/slurm/tasks.sbatch"),
                   *words, "--out", str(parts)]
        done = subprocess.run(command, env=dict(cluster, **more), cwd=tmp_path, capture_output=True,
                              text=True, timeout=LONG)
        said = "".join(path.read_text() for path in tmp_path.glob("task-*.out"))
        assert done.returncode == 0, (done.stderr, said)

    submit("0-5")
    (parts / "part-000003").unlink()
    submit("3", TASKS="6")
    merged = subprocess.run([PROGRAM, "statistics", "--merge", str(parts), "--json"],
                            capture_output=True, check=True).stdout
    assert merged == alone
