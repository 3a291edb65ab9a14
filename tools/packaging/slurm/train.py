"""Reads batches by rank: each task of a Slurm job its share, see train.sbatch.

    train.py VIEWS      the directory of views in a mount, or a socket of `batchfs serve`
"""

import os
import sys

import torch

from batchfs.torch import BatchDataset


def main() -> None:
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    place = sys.argv[1]
    if os.path.isdir(place):
        place = os.path.join(place, sorted(os.listdir(place))[0])
    train = BatchDataset(place, rank=rank, world=world)
    epochs = train.batches.schema["epochs"]
    for epoch in range(epochs):
        train.set_epoch(epoch)
        read, total = 0, 0.0
        for batch in torch.utils.data.DataLoader(train, batch_size=None):
            # Here a model would be trained; with DistributedDataParallel, "drop" or "pad" in the
            # view gives every rank the same number of batches.
            read += 1
            total += sum(float(tensor.double().nanmean()) for tensor in batch.values())
        print(f"rank {rank} of {world} on {os.environ['SLURMD_NODENAME']}: epoch {epoch}, {read} "
              f"batches, mean {total / read:.4f}", flush=True)


if __name__ == "__main__":
    main()
