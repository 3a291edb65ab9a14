"""Downscaling: a network restores fields of HRRR forecasts from fields of a quarter of the resolution.

    python downscaling.py --offline
    python downscaling.py --store PATH_OR_URL_OF_A_STORE

Shows: patches of a sharded store with a lead time, a block shuffle, coarse input made on the device from the fine target,
so that only one copy is read.
"""

import argparse
import pathlib

import torch
from torch import nn

from batchfs.torch import BatchDataset, loader

VIEW = pathlib.Path(__file__).parent / "views" / "downscaling.json"
FACTOR = 4


class Refine(nn.Module):
    """Bilinear interpolation, and a correction."""

    def __init__(self, channels, width=32):
        super().__init__()
        self.correct = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.GELU(), nn.Conv2d(width, channels, 3, padding=1))
        nn.init.zeros_(self.correct[-1].weight), nn.init.zeros_(self.correct[-1].bias)

    def forward(self, coarse):
        smooth = nn.functional.interpolate(coarse, scale_factor=FACTOR, mode="bilinear")
        return smooth + self.correct(smooth)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a small store, made in --folder")
    parser.add_argument("--store", help="a store of HRRR forecasts with init_time, lead_time, y, x")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    store = arguments.store
    if arguments.offline:
        import stores

        arguments.folder.mkdir(parents=True, exist_ok=True)
        store = stores.make("hrrr", arguments.folder)
    if store is None:
        parser.error("pass --offline or --store")

    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = BatchDataset(store, VIEW, device=device)
    model = Refine(2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    losses, step = [], 0
    while step < arguments.steps:
        for batch in loader(train):
            fine = batch["fine"].flatten(0, 1)  # samples and lead times
            mean, deviation = fine.mean((0, 2, 3), keepdim=True), fine.std((0, 2, 3), keepdim=True)
            fine = (fine - mean) / (deviation + 1e-6)
            loss = nn.functional.mse_loss(model(nn.functional.avg_pool2d(fine, FACTOR)), fine)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1
            if step == arguments.steps:
                break
    print(f"{step} steps: error {losses[0]:.3f} with interpolation alone, {losses[-1]:.3f} now")


if __name__ == "__main__":
    main()
