"""batchfs for Lightning: a DataModule of the parts of a view, and a writer of predictions.

    from lightning.pytorch import Trainer
    from batchfs.lightning import BatchDataModule, PredictionWriter

    data = BatchDataModule("s3://bucket/era5.zarr", "view.json", train="train", val="val",
                           predict="test")
    Trainer(max_epochs=3).fit(model, data)
    Trainer(callbacks=[PredictionWriter("predicted.zarr", tensor="y")]).predict(
        model, data, return_predictions=False)

Each process of the Trainer reads the batches of its rank, and writes its predictions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

try:
    from lightning.pytorch import LightningDataModule
    from lightning.pytorch.callbacks import BasePredictionWriter
except ImportError:
    from pytorch_lightning import LightningDataModule
    from pytorch_lightning.callbacks import BasePredictionWriter

from ._create import create
from ._errors import InvalidArgument
from ._predictions import Predictions
from .torch import BatchDataset, loader


class BatchDataModule(LightningDataModule):  # pyright: ignore[reportGeneralTypeIssues]
    """The loaders of a Trainer: dicts of tensors, of this process's rank.

    `train`, `val`, `test` and `predict` name parts of a view with "split", or are views themselves,
    keys or files; `view` alone, without "split", is for training. `workers` is the DataLoader's,
    who need none; other options are those of `batchfs.torch.BatchDataset`.
    """

    def __init__(self, place: str | os.PathLike[str],
                 view: Mapping[str, Any] | str | os.PathLike[str] | None = None, *,
                 train: Any = None, val: Any = None, test: Any = None, predict: Any = None,
                 workers: int = 0, **options: Any):
        super().__init__()
        parts = {"train": train, "val": val, "test": test, "predict": predict}
        if view is None and all(part is None for part in parts.values()):
            raise InvalidArgument("pass a view, or the views or parts for train=, "
                                  "val=, test=, predict=")
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
            # of a checkpoint, where training goes from
            dataset.set_epoch(self.trainer.current_epoch)
        return loader(dataset, num_workers=self._workers)

    def train_dataloader(self) -> Any:
        return self._loader("train")

    def val_dataloader(self) -> Any:
        return self._loader("val")

    def test_dataloader(self) -> Any:
        return self._loader("test")

    def predict_dataloader(self) -> Any:
        return self._loader("predict")


class PredictionWriter(BasePredictionWriter):  # pyright: ignore[reportGeneralTypeIssues]
    """Writes what `predict_step` returns into one Zarr store, from all processes: `batchfs.create`
    with these options.

    The Trainer predicts a `BatchDataset`, or the `predict` of a `BatchDataModule`. `predict_step`
    returns an array with the shape of the tensor that is predicted, or one by tensor name. An
    output that the same call began is continued. Where predicting fails, complete objects stay.
    """

    def __init__(self, output: str | os.PathLike[str], **options: Any):
        super().__init__("batch")
        self._output = output
        self._options = options
        self._predictions: Predictions | None = None
        self._rank, self._world = 0, 1

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        loaders = trainer.predict_dataloaders
        dataset = getattr(loaders, "dataset", None)
        if not isinstance(dataset, BatchDataset):
            raise InvalidArgument("PredictionWriter writes predictions of one BatchDataset: "
                                  "pass predict() a BatchDataModule, or "
                                  "batchfs.torch.loader(BatchDataset(...))")
        batches = dataset.batches
        self._rank, self._world = batches.rank, batches.world
        self._predictions = create(self._output, like=batches, **self._options)

    def write_on_batch_end(self, trainer: Any, pl_module: Any, prediction: Any, batch_indices: Any,
                           batch: Any, batch_idx: int, dataloader_idx: int) -> None:
        assert self._predictions is not None
        self._predictions.write(batch_idx * self._world + self._rank, prediction)

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._end(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(exception)

    def _end(self, error: BaseException | None) -> None:
        predictions, self._predictions = self._predictions, None
        if predictions is not None:
            predictions.__exit__(type(error) if error else None, error, None)
