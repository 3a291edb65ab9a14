"""batchfs for Lightning: a DataModule of the parts of a view.

    from lightning.pytorch import Trainer
    from batchfs.lightning import BatchDataModule

    data = BatchDataModule("s3://bucket/era5.zarr", "view.json", train="train", val="val")
    Trainer(max_epochs=3).fit(model, data)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

try:
    from lightning.pytorch import LightningDataModule
except ImportError:
    from pytorch_lightning import LightningDataModule

from ._errors import InvalidArgument
from .torch import BatchDataset, loader


class BatchDataModule(LightningDataModule):  # pyright: ignore[reportGeneralTypeIssues]
    """The loaders of a Trainer: dicts of tensors, of this process's rank.

    `train`, `val`, `test` and `predict` name parts of a view with "split", or are views themselves, keys or files; `view`
    alone, without "split", is for training. `workers` is the DataLoader's, who need none; other options are those of
    `batchfs.torch.BatchDataset`.
    """

    def __init__(self, place: str | os.PathLike[str], view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *,
                 train: Any = None, val: Any = None, test: Any = None, predict: Any = None, workers: int = 0,
                 **options: Any):
        super().__init__()
        parts = {"train": train, "val": val, "test": test, "predict": predict}
        if view is None and all(part is None for part in parts.values()):
            raise InvalidArgument("pass a view, or the views or parts for train=, val=, test=, predict=")
        self._place = place
        self._view = view
        self._parts = {stage: part for stage, part in parts.items() if part is not None}
        if not self._parts:
            self._parts = {"train": None}
        self._workers = workers
        self._options = options
        for stage in parts:
            if stage not in self._parts:  # as a module without this loader
                setattr(self, f"{stage}_dataloader", getattr(super(), f"{stage}_dataloader"))

    def dataset(self, stage: str) -> BatchDataset:
        """The dataset of "train", "val", "test" or "predict", of this process's rank."""
        part = self._parts[stage]
        if self._view is None:
            return BatchDataset(self._place, part, **self._options)
        return BatchDataset(self._place, self._view, part=part, **self._options)

    def _loader(self, stage: str) -> Any:
        dataset = self.dataset(stage)
        if stage == "train" and self.trainer is not None:
            dataset.set_epoch(self.trainer.current_epoch)  # of a checkpoint, where training goes from
        return loader(dataset, num_workers=self._workers)

    def train_dataloader(self) -> Any:
        return self._loader("train")

    def val_dataloader(self) -> Any:
        return self._loader("val")

    def test_dataloader(self) -> Any:
        return self._loader("test")

    def predict_dataloader(self) -> Any:
        return self._loader("predict")
