"""A global forecast: a U-Net predicts the weather six hours ahead from two steps of ERA5
(WeatherBench 2).

    python forecast_unet.py --offline                        # a small store of the same layout
    python forecast_unet.py --epochs 10                      # the public store, one GPU or the CPU
    torchrun --nproc-per-node 8 forecast_unet.py --epochs 10

Shows: a view with two tensors and channels, statistics, parts, ranks of torchrun, bfloat16, a
checkpoint in the middle of an epoch, and scores in original units.
"""

import argparse
import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import batchfs
from batchfs.torch import BatchDataset, loader

STORE = "gs://weatherbench2/datasets/era5/1959-2022-6h-64x32_equiangular_conservative.zarr"
VIEW = pathlib.Path(__file__).parent / "views" / "forecast.json"


class GlobeConv(nn.Module):
    """A convolution that is cyclic along longitude, the last dimension but one."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)

    def forward(self, x):
        x = nn.functional.pad(x, (0, 0, 1, 1), mode="circular")
        return nn.functional.gelu(self.conv(nn.functional.pad(x, (1, 1, 0, 0), mode="replicate")))


class UNet(nn.Module):
    def __init__(self, inputs, outputs, width=32):
        super().__init__()
        self.down1, self.down2 = GlobeConv(inputs, width), GlobeConv(width, 2 * width)
        self.middle = GlobeConv(2 * width, 2 * width)
        self.up = GlobeConv(3 * width, width)
        self.head = nn.Conv2d(width, outputs, 1)
        nn.init.zeros_(self.head.weight), nn.init.zeros_(self.head.bias)  # begins as persistence

    def forward(self, x):
        fine = self.down1(x)
        coarse = self.middle(self.down2(nn.functional.avg_pool2d(fine, 2)))
        coarse = nn.functional.interpolate(coarse, size=fine.shape[-2:])
        return self.head(self.up(torch.cat([fine, coarse], 1)))


def predict(model, x):
    """The next step from x, (sample, channel, time, longitude, latitude): the last one and a
    change."""
    change = model(x.flatten(1, 2))
    return x[:, :, -1] + change


def write_statistics(store, folder, **options):
    """Into the file that the view names, beside a copy of the view."""
    view = json.loads(VIEW.read_text())
    plain = {key: value for key, value in view.items() if key != "normalize"}
    batchfs.statistics(store, plain, output=folder / view["normalize"]["statistics"], **options)
    (folder / VIEW.name).write_text(VIEW.read_text())


def train_step(model, optimizer, batch):
    """The mean square error of a batch, before the step."""
    with torch.autocast(batch["x"].device.type, dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(predict(model, batch["x"]), batch["y"][:, :, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true",
                        help="use a small store, made in --folder")
    parser.add_argument("--store", default=STORE)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("forecast"))
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="of an epoch; 0: all")
    arguments = parser.parse_args()
    distributed = "RANK" in os.environ
    device = (torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
              if torch.cuda.is_available() else torch.device("cpu"))
    if distributed:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank = dist.get_rank() if distributed else 0

    folder, store, options = arguments.folder, arguments.store, {"anon": True}
    if arguments.offline:
        store, options = folder / "era5.zarr", {}
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.offline:
            import stores

            stores.make("era5", folder)
        if not (folder / "forecast-statistics.json").exists():
            write_statistics(store, folder, **options)
    if distributed:
        dist.barrier()
    if not arguments.offline:
        options["cache_dir"] = folder / "cache"

    # On a GPU the batches are decoded into its memory.
    view, where = folder / VIEW.name, str(device)
    train = BatchDataset(store, view, part="train", device=where, **options)
    val = BatchDataset(store, view, part="val", device=where, **options)
    channels = {tensor["name"]: tensor["shape"][1] for tensor in train.batches.schema["tensors"]}
    model = UNet(2 * channels["x"], channels["y"]).to(device)
    forward = DistributedDataParallel(model) if distributed else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"]), optimizer.load_state_dict(saved["optimizer"])
        train.load_state_dict(saved["train"])

    for epoch in range(train.batches.epoch, arguments.epochs):
        for step, batch in enumerate(loader(train)):
            loss = train_step(forward, optimizer, batch)
            if step + 1 == arguments.steps:
                break
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "train": train.state_dict()}, checkpoint)
            ours, persistence = scores(model, val)
            print(f"epoch {epoch}: loss {loss:.3f}, 2 m temperature after 6 h: RMSE {ours:.2f} K, "
                  f"persistence {persistence:.2f} K", flush=True)
        train.set_epoch(epoch + 1)  # with --steps it has not ended by itself
    if distributed:
        dist.barrier()
        dist.destroy_process_group()


@torch.no_grad()
def scores(model, val):
    """RMSE in kelvin, of the model and of the last step as its forecast, over up to eight
    batches."""
    squares = torch.zeros(2, dtype=torch.float64)
    batches = val.batches.of_rank(0, 1)
    count = min(8, len(batches))
    for number in range(count):
        batch = batches.batch(number)
        x, truth = batch["x"].torch(), batch.denormalize("y", batch["y"].torch())[:, 0, 0]
        forecast = batch.denormalize("y", predict(model, x)[:, :, None])[:, 0, 0]
        last = batch.denormalize("y", x[:, :, -1:])[:, 0, 0]
        squares += torch.stack([((forecast - truth) ** 2).mean(),
                                ((last - truth) ** 2).mean()]).cpu()
    return (squares / count).sqrt().tolist()


if __name__ == "__main__":
    main()
