"""NVIDIA DALI: tiles of an OME-Zarr image and its labels, turned and flipped at random.

    python cells_dali.py --offline
    python cells_dali.py --store https://HOST/IMAGE.zarr
                         # with two channels, z, and a label image "cells"

Shows: batches as DALI's external source without a copy, image and labels augmented in the same way,
epochs.
"""

import argparse
import pathlib

from nvidia.dali import fn, pipeline_def, types

import batchfs
import batchfs.dali

VIEW = pathlib.Path(__file__).parent / "views" / "cells.json"


def pipeline_of(train, device_id):
    @pipeline_def(batch_size=train.schema["batch_size"], num_threads=2, device_id=device_id,
                  prefetch_queue_depth=2, seed=0)
    def pipeline():
        source = batchfs.dali.Source(train, ["image", "labels"], held=3)
        image, labels = fn.external_source(source=source, num_outputs=2, no_copy=True,
                                           cycle="raise")
        image, labels = fn.squeeze(image, axes=0), fn.squeeze(labels, axes=0)  # z, of length 1
        labels = fn.expand_dims(labels, axes=2)
        if device_id is not None:
            image, labels = image.gpu(), labels.gpu()
        across, down = fn.random.coin_flip(), fn.random.coin_flip()
        image = fn.flip(fn.cast(image, dtype=types.FLOAT) / 4000.0, horizontal=across,
                        vertical=down)
        return image, fn.flip(labels, horizontal=across, vertical=down)

    return pipeline()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true",
                        help="use a small store, made in --folder")
    parser.add_argument("--store", help="an OME-Zarr image")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--gpu", type=int, help="the number of a GPU; by default the CPU")
    arguments = parser.parse_args()
    store = arguments.store
    if arguments.offline:
        import stores

        arguments.folder.mkdir(parents=True, exist_ok=True)
        store = stores.make("cells", arguments.folder)
    if store is None:
        parser.error("pass --offline or --store")

    train = batchfs.open(store, VIEW, part="train")
    running = pipeline_of(train, arguments.gpu)
    running.build()
    for epoch in range(arguments.epochs):
        count, cells = 0, 0
        while True:
            try:
                _image, labels = running.run()
            except StopIteration:
                running.reset()
                break
            count += 1
            cells += int((labels.as_cpu().as_array() > 0).sum())
        print(f"epoch {epoch}: {count} batches, {cells} pixels of cells")


if __name__ == "__main__":
    main()
