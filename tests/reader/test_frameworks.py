"""Loaders and trainers of frameworks: each batch once, in the order of the view, and another order
in each epoch.

They are large; where one is not installed its tests are skipped. Each runs in a process of its own.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import batchfs
from framework_scripts import SHOW, SHUFFLED, means, run_script

METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture
def view_file(tmp_path):
    file = tmp_path / "v.json"
    file.write_text(json.dumps(SHUFFLED))
    return file


# ---- counting batches, without a framework -------------------------------------------------------


def test_a_trainer_that_counts_batches_gets_the_next_epoch(store):
    with batchfs.open(store, SHUFFLED) as data:
        for epoch in range(3):
            batches = iter(data)
            taken = [next(batches) for _ in range(len(data))]  # and never asks for the end
            assert [batch.epoch for batch in taken] == [epoch] * len(data)
            assert data.epoch == epoch


def test_an_iteration_that_is_left_early_starts_again(store):
    with batchfs.open(store, SHUFFLED) as data:
        batches = iter(data)
        for _ in range(len(data) - 1):
            next(batches)
        assert next(iter(data)).epoch == 0
        assert data.remaining() == len(data)
        data.load_state_dict(data.state_dict())
        assert data.remaining() == len(data) - 1


def test_the_same_dataset_of_another_rank(store):
    with batchfs.open(store, SHUFFLED, epoch=1) as data:
        second = data.of_rank(1, 2)
        assert (second.rank, second.world, second.epoch) == (1, 2, 1)
        assert [batch.number for batch in second] == [1, 3, 5, 7, 9]


# ---- PyTorch -------------------------------------------------------------------------------------

LOADERS = """
import sys
import batchfs, batchfs.torch
from torch.utils.data import DataLoader

def epochs(loader, count):
    return [[float(batch["t"].mean()) for batch in loader] for _ in range(count)]

if __name__ == "__main__":
    store, view, method, persistent = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "True"
    options = {"num_workers": 2, "multiprocessing_context": method,
               "persistent_workers": persistent}
    data = batchfs.torch.BatchDataset(store, view)
    next(iter(data))  # workers do not share this connection
    loader = batchfs.torch.loader(data, **options)
    first = epochs(loader, 2)
    data.set_epoch(0)
    again = epochs(loader, 1)
    by_number = batchfs.torch.BatchMap(store, view)
    loader = batchfs.torch.loader(by_number, **options)
    mapped = epochs(loader, 1)
    by_number.set_epoch(1)
    mapped += epochs(loader, 1)
    raw = [float(batch["t"].numpy().mean())
           for batch in DataLoader(batchfs.open(store, view), batch_size=None, **options)]
    show([first, again, mapped, raw])
"""


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_data_loader(store, view_file, tmp_path, method, persistent):
    pytest.importorskip("torch")
    ((first, again, mapped, raw),) = run_script(tmp_path, LOADERS, store, view_file, method,
                                                persistent)
    expected = [means(store, epoch) for epoch in range(2)]
    for found in (first, mapped):
        assert np.allclose(found, expected, rtol=1e-6)
    assert np.allclose(again, expected[:1], rtol=1e-6) and np.allclose(raw, expected[0], rtol=1e-6)


RESUMING = """
import sys
import batchfs.torch

if __name__ == "__main__":
    import torch
    torch.cuda.is_available = lambda: True  # the copy is made by a stand-in
    batchfs.torch._in_pinned_memory = lambda batch: {name: tensor.clone()
                                                     for name, tensor in batch.torch().items()}
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2], pin=True)
    taken = []
    for batch in data:
        taken.append(float(batch["t"].mean()))
        if len(taken) == 3:
            break
    state = data.state_dict()
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2], pin=True)
    data.load_state_dict(state)
    for _ in range(2):
        taken += [float(batch["t"].mean()) for batch in data]
    show([state["batches_done"], taken])
"""


def test_pinned_batches_are_the_same_and_the_state_counts_what_was_given_out(
        store, view_file, tmp_path):
    pytest.importorskip("torch")
    ((done, taken),) = run_script(tmp_path, RESUMING, store, view_file)
    assert done == 3
    assert np.allclose(taken, means(store, 0) + means(store, 1), rtol=1e-6)


RANKS = """
import sys
import torch, batchfs.torch

if __name__ == "__main__":
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2], rank=0, world=1)
    assert (data.batches.rank, data.batches.world) == (0, 1)
    import os
    rank = int(os.environ.pop("RANK"))
    data = batchfs.torch.BatchDataset(sys.argv[1], sys.argv[2])  # before it is known
    os.environ["RANK"] = str(rank)
    torch.distributed.init_process_group("gloo")
    show([rank, [float(batch["t"].mean()) for batch in batchfs.torch.loader(data)]])
    torch.distributed.destroy_process_group()
"""


def test_the_rank_follows_torch_distributed(store, view_file, tmp_path):
    pytest.importorskip("torch")
    found = dict(run_script(tmp_path, RANKS, store, view_file, processes=2))
    expected = means(store, 0)
    assert (np.allclose(found[0], expected[0::2], rtol=1e-6)
            and np.allclose(found[1], expected[1::2], rtol=1e-6))


# ---- Lightning -----------------------------------------------------------------------------------

FULL_SHM = """
import sys
import batchfs, batchfs.torch

for kind in (batchfs.torch.BatchDataset, batchfs.torch.BatchMap):
    try:
        kind(sys.argv[1], sys.argv[2])
    except batchfs.NoMemory as error:
        show(str(error))
"""


def test_no_space_in_dev_shm(store, view_file, tmp_path):
    pytest.importorskip("torch")
    if os.geteuid() != 0:
        pytest.skip("only root has a /dev/shm of its own")
    file = tmp_path / "script.py"
    file.write_text(SHOW + FULL_SHM)
    full = ('mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > '
            '/dev/shm/full; exec "$@"')
    done = subprocess.run(["unshare", "--mount", "sh", "-c", full, "sh", sys.executable, file,
                           store, view_file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    for line in done.stdout.splitlines():
        assert "/dev/shm" in line and "--shm-size=1g" in line


LIGHTNING = """
import sys
import torch
from lightning.pytorch import LightningModule, Trainer
from batchfs.lightning import BatchDataModule

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(1, 1), {}

    def training_step(self, batch, index):
        self.seen.setdefault(f"train {self.current_epoch}", []).append(float(batch["t"].mean()))
        return self.layer(batch["t"].mean().reshape(1)).sum()

    def validation_step(self, batch, index):
        self.seen.setdefault("val", []).append(float(batch["t"].mean()))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-6)

if __name__ == "__main__":
    store, view, workers, devices, folder = (sys.argv[1], sys.argv[2], int(sys.argv[3]),
                                             int(sys.argv[4]), sys.argv[5])
    options = {"accelerator": "cpu", "devices": devices,
               "strategy": "ddp" if devices > 1 else "auto", "logger": False,
               "enable_progress_bar": False, "enable_model_summary": False,
               "num_sanity_val_steps": 0, "default_root_dir": folder, "enable_checkpointing": False}
    model, data = Model(), BatchDataModule(store, view, train="train", val="val", workers=workers)
    trainer = Trainer(max_epochs=2, **options)
    trainer.fit(model, data)
    if devices == 1:
        trainer.save_checkpoint(folder + "/after.ckpt")
        more = Model()
        Trainer(max_epochs=3, **options).fit(more, data, ckpt_path=folder + "/after.ckpt")
        model.seen |= {"train 2": more.seen["train 2"]}
    show([trainer.global_rank, model.seen])
"""

LIGHTNING_OF_A_MAP = LIGHTNING[:LIGHTNING.index('if __name')] + """
import batchfs.torch

if __name__ == "__main__":
    store, view, devices, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    model = Model()
    trainer = Trainer(max_epochs=1, accelerator="cpu", devices=devices,
                      strategy="ddp" if devices > 1 else "auto", logger=False,
                      enable_progress_bar=False, enable_model_summary=False,
                      default_root_dir=folder, enable_checkpointing=False)
    trainer.fit(model, batchfs.torch.loader(batchfs.torch.BatchMap(store, view)))
    show([trainer.global_rank, model.seen])
"""


LIGHTNING_IN_THE_MIDDLE = LIGHTNING[:LIGHTNING.index('if __name__')] + """
from lightning.pytorch.callbacks import ModelCheckpoint

if __name__ == "__main__":
    store, view, folder = sys.argv[1:]
    options = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False,
               "enable_model_summary": False, "default_root_dir": folder, "max_epochs": 2}
    data = BatchDataModule(store, view)
    saved = ModelCheckpoint(dirpath=folder, filename="{step}", every_n_train_steps=3, save_top_k=-1)
    whole, rest = Model(), Model()
    Trainer(callbacks=[saved], **options).fit(whole, data)
    Trainer(enable_checkpointing=False, **options).fit(rest, data,
                                                       ckpt_path=folder + "/step=3.ckpt")
    show([whole.seen, rest.seen])
"""


@pytest.mark.parametrize(("workers", "devices"), [(0, 1), (2, 1), (0, 2)])
def test_a_lightning_trainer_sees_every_batch_in_each_epoch(store, view_file, tmp_path, workers,
                                                            devices):
    pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch", exc_type=ImportError)
    split = SHUFFLED | {"split": {"parts": {"train": "rest", "val": [{"time": {"from": "#30"}}]}}}
    view_file.write_text(json.dumps(split))
    found = dict(run_script(tmp_path, LIGHTNING, store, view_file, workers, devices, tmp_path))
    part = {**split, "split": {**split["split"], "part": "train"}}
    assert set(found) == set(range(devices))
    for rank, seen in found.items():
        for epoch in range(3 if devices == 1 else 2):
            assert np.allclose(seen[f"train {epoch}"], means(store, epoch, part)[rank::devices],
                               rtol=1e-5), epoch
        assert len(seen["val"]) > 1


@pytest.mark.parametrize("devices", [1, 2])
def test_a_lightning_trainer_divides_the_batches_of_a_map(store, view_file, tmp_path, devices):
    pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch", exc_type=ImportError)
    found = dict(run_script(tmp_path, LIGHTNING_OF_A_MAP, store, view_file, devices, tmp_path))
    assert set(found) == set(range(devices))
    # With two devices its sampler shuffles the numbers of batches.
    values = sum((seen["train 0"] for seen in found.values()), [])
    assert np.allclose(sorted(values), sorted(means(store, 0)), rtol=1e-5)


def test_lightning_resumes_in_the_middle_of_an_epoch(store, view_file, tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch", exc_type=ImportError)
    ((whole, rest),) = run_script(tmp_path, LIGHTNING_IN_THE_MIDDLE, store, view_file, tmp_path)
    assert np.allclose(whole["train 0"], means(store, 0), rtol=1e-5)
    assert rest["train 0"] == whole["train 0"][3:] and rest["train 1"] == whole["train 1"]


LIGHTNING_PREDICTS = """
import sys
from lightning.pytorch import LightningModule, Trainer
from batchfs.lightning import BatchDataModule, PredictionWriter

class Twice(LightningModule):
    def predict_step(self, batch, index):
        if index == int(sys.argv[5]):
            raise RuntimeError("stopped")
        return batch["t"] * 2

if __name__ == "__main__":
    store, view, output, devices = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    trainer = Trainer(accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto",
                      logger=False, enable_progress_bar=False, callbacks=[PredictionWriter(output)])
    try:
        trainer.predict(Twice(), BatchDataModule(store, predict=view), return_predictions=False)
    except RuntimeError as error:
        assert str(error) == "stopped"
    show(trainer.global_rank)
"""


@pytest.mark.parametrize("devices", [1, 2])
def test_predictions_of_a_lightning_trainer(store, view_file, tmp_path, devices):
    pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch", exc_type=ImportError)
    output = tmp_path / "twice.zarr"
    if devices == 1:  # is stopped in the middle, and continued
        run_script(tmp_path, LIGHTNING_PREDICTS, store, view_file, output, 1, 2)
        assert not (output / "zarr.json").exists()
    assert sorted(run_script(tmp_path, LIGHTNING_PREDICTS, store, view_file, output, devices,
                             -1)) == list(range(devices))
    truth = xr.open_zarr(store).t
    predicted = xr.open_zarr(output).t
    np.testing.assert_array_equal(predicted.values, (truth.values.astype("f4") * 2))
    assert predicted.dims == truth.dims and (predicted.time.values == truth.time.values).all()


# ---- JAX, Keras ----------------------------------------------------------------------------------

JAX = """
import sys
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
import batchfs, batchfs.jax

mesh = jax.make_mesh((4, 2), ("data", "model"))
sharding = NamedSharding(mesh, PartitionSpec("data"))
data = batchfs.open(sys.argv[1], sys.argv[2])
found = []
for arrays in batchfs.jax.sharded(data, sharding):
    x = arrays["t"]
    assert (len(x.addressable_shards) == 8
            and x.addressable_shards[0].data.shape[0] * 4 == x.shape[0])
    found.append(float(np.asarray(x).mean()))
one = data.batch(0, epoch=0)
same = bool((np.asarray(batchfs.jax.on_devices(one, sharding)["t"]) == one["t"].numpy()).all())
try:
    batchfs.jax.on_devices(one,
                           NamedSharding(jax.make_mesh((8,), ("data",)), PartitionSpec("data")))
    refused = ""
except batchfs.InvalidArgument as error:
    refused = str(error)
show([len(jax.devices()), found, same, refused])
"""


def test_jax_arrays_are_sharded_over_a_mesh(store, view_file, tmp_path):
    pytest.importorskip("jax")
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    ((devices, found, same, refused),) = run_script(tmp_path, JAX, store, view_file,
                                                    environment=environment)
    assert devices == 8 and same
    assert np.allclose(found, means(store, 0), rtol=1e-6)
    assert "remainder" in refused


KERAS = """
import sys
import keras, numpy as np
import batchfs

data = batchfs.open(sys.argv[1], sys.argv[2])
seen = []

def pairs():
    while True:
        for batch in data:
            seen.append([batch.epoch, batch.number])
            x = batch["t"].numpy().reshape(batch.samples, -1)[:, :8]
            yield x, x[:, :1]

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(pairs(), steps_per_epoch=len(data), epochs=2, verbose=0)
show([len(data), seen])
"""


def test_keras_trains_from_a_generator(store, view_file, tmp_path):
    pytest.importorskip("jax")
    if importlib.util.find_spec("keras") is None:  # importing it chooses the backend
        pytest.skip("keras is not installed")
    ((count, seen),) = run_script(tmp_path, KERAS, store, view_file,
                                  environment={"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"})
    assert seen[:2 * count] == [[epoch, number] for epoch in range(2) for number in range(count)]
