"""Downscaling: a network restores fields of HRRR forecasts from fields of a quarter of the
resolution.

    python downscaling.py --offline
    python downscaling.py --store PATH_OR_URL_OF_A_STORE

Shows: patches of a sharded store with a lead time, a block shuffle, coarse input made on the device
from the fine target, so that only one copy is read, and scores in original units.
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
        self.correct = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.GELU(),
                                     nn.Conv2d(width, channels, 3, padding=1))
        nn.init.zeros_(self.correct[-1].weight), nn.init.zeros_(self.correct[-1].bias)

    def forward(self, coarse):
        smooth = nn.functional.interpolate(coarse, scale_factor=FACTOR, mode="bilinear")
        return smooth + self.correct(smooth)


def normalized(fine):
    """Fields, (sample, lead time, channel, y, x), as (field, channel, y, x) around 0; and what
    brings the units back."""
    fine = fine.flatten(0, 1)
    mean, deviation = fine.mean((0, 2, 3), keepdim=True), fine.std((0, 2, 3), keepdim=True) + 1e-6
    return (fine - mean) / deviation, lambda values: values * deviation + mean


def coarse(fine):
    return nn.functional.avg_pool2d(fine, FACTOR)


def train_step(model, optimizer, batch):
    """The mean square error of a batch, before the step."""
    fine, _ = normalized(batch["fine"])
    loss = nn.functional.mse_loss(model(coarse(fine)), fine)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def scores(model, val):
    """RMSE of each variable in its units: of the model, and of interpolation alone."""
    squares, count = 0, 0
    for batch in val:
        fine, restored = normalized(batch["fine"])
        smooth = nn.functional.interpolate(coarse(fine), scale_factor=FACTOR, mode="bilinear")
        guesses = torch.stack([restored(guess) - restored(fine)
                               for guess in (model(coarse(fine)), smooth)])
        squares, count = squares + (guesses.double() ** 2).mean((1, 3, 4)), count + 1
    return (squares / count).sqrt().tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true",
                        help="use a small store, made in --folder")
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
    train, val = (BatchDataset(store, VIEW, part=part, device=device) for part in ("train", "val"))
    model = Refine(2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    step = 0
    while step < arguments.steps:
        for batch in loader(train):
            train_step(model, optimizer, batch)
            step += 1
            if step == arguments.steps:
                break
    (ours, _), (interpolation, _) = scores(model, loader(val))
    print(f"{step} steps: 2 m temperature, RMSE {interpolation:.2f} K with interpolation "
          f"alone, {ours:.2f} K now")


if __name__ == "__main__":
    main()
