"""Segmentation of tiles: a network learns the scene classification of a Sentinel-2 product in
EOPF's Zarr format.

    python segmentation.py --offline
    python segmentation.py --store https://HOST/PRODUCT.zarr

Shows: bands as channels and labels of another group, packed integers that become reflectances,
tiles without data left out, training and validation tiles that share no pixel.
"""

import argparse
import pathlib

import torch
from torch import nn

from batchfs.torch import BatchDataset, loader

VIEW = pathlib.Path(__file__).parent / "views" / "tiles.json"
CLASSES = 12  # 0, no data, to 11


def prepared(batch):
    """Bands around 0, without NaN, and classes as whole numbers; what is missing has class 0."""
    return {"image": torch.nan_to_num(batch["image"] * 5 - 1),
            "classes": torch.nan_to_num(batch["classes"]).long()}


def network(width=32):
    """Scores of each class for each pixel, from the pixels around it."""
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(width, CLASSES, 1))


def train_step(model, optimizer, batch):
    """The cross entropy of a batch, before the step."""
    loss = nn.functional.cross_entropy(model(batch["image"]), batch["classes"], ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def confusion(model, val):
    """How many pixels have a class, the line, and are given one, the column."""
    counts = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    for batch in val:
        known = batch["classes"] > 0
        pairs = batch["classes"][known] * CLASSES + model(batch["image"]).argmax(1)[known]
        counts += torch.bincount(pairs.cpu(), minlength=CLASSES ** 2).reshape(CLASSES, CLASSES)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true",
                        help="use a small store, made in --folder")
    parser.add_argument("--store", help="a product")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    store = arguments.store
    if arguments.offline:
        import stores

        arguments.folder.mkdir(parents=True, exist_ok=True)
        store = stores.make("sentinel2", arguments.folder)
    if store is None:
        parser.error("pass --offline or --store")

    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = BatchDataset(store, VIEW, part="train", device=device, transform=prepared)
    val = BatchDataset(store, VIEW, part="val", device=device, transform=prepared)
    model = network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(arguments.epochs):
        for batch in loader(train):
            loss = train_step(model, optimizer, batch)
        counts = confusion(model, loader(val))
        print(f"epoch {epoch}: loss {loss:.3f}, {counts.diag().sum() / counts.sum():.0%} of "
              f"{counts.sum()} pixels right, {counts.sum(1).max() / counts.sum():.0%} are of the "
              "most frequent class")


if __name__ == "__main__":
    main()
