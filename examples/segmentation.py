"""Segmentation of tiles: a network learns the scene classification of a Sentinel-2 product in EOPF's Zarr format.

    python segmentation.py --offline
    python segmentation.py --store https://HOST/PRODUCT.zarr

Shows: bands as channels and labels of another group, packed integers that become reflectances, tiles without data left
out, training and validation tiles that share no pixel.
"""

import argparse
import pathlib

import torch
from torch import nn

from batchfs.torch import BatchDataset, loader

VIEW = pathlib.Path(__file__).parent / "views" / "tiles.json"
CLASSES = 12  # 0, no data, to 11


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a small store, made in --folder")
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

    def prepared(batch):
        """Bands around 0, without NaN, and classes as whole numbers; what is missing has class 0."""
        return {"image": torch.nan_to_num(batch["image"] * 5 - 1), "classes": torch.nan_to_num(batch["classes"]).long()}

    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = BatchDataset(store, VIEW, part="train", device=device, transform=prepared)
    val = BatchDataset(store, VIEW, part="val", device=device, transform=prepared)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(32, CLASSES, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(arguments.epochs):
        for batch in loader(train):
            loss = nn.functional.cross_entropy(model(batch["image"]), batch["classes"], ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right, known = 0, 0
        with torch.no_grad():
            for batch in loader(val):
                labelled = batch["classes"] > 0
                right += int(((model(batch["image"]).argmax(1) == batch["classes"]) & labelled).sum())
                known += int(labelled.sum())
        print(f"epoch {epoch}: loss {loss.item():.3f}, {right / known:.0%} of {known} pixels right")


if __name__ == "__main__":
    main()
