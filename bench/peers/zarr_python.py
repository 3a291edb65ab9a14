"""zarr-python, with its own codec pipelines and with zarrs'."""

import numpy as np
import zarr

from harness.geometry import Geometry
from harness.loaders import tag

PIPELINES = {
    "default": None,
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


def use(pipeline):
    path = PIPELINES[pipeline]
    if path is not None:
        zarr.config.set({"codec_pipeline.path": path})


def opened(store):
    """A store for zarr: a path, obstore's HTTP client, or after "icechunk:" what the main branch of
    a repository holds."""
    if store.startswith("icechunk:"):
        import icechunk
        place = store.removeprefix("icechunk:")
        storage = (icechunk.http_storage(place) if place.startswith("http")
                   else icechunk.local_filesystem_storage(place))
        return icechunk.Repository.open(storage).readonly_session("main").store
    if not store.startswith("http"):
        return store
    import obstore.store
    return zarr.storage.ObjectStore(
        obstore.store.from_url(store, client_options={"allow_http": True}), read_only=True)


def read_all(report, store, variables, pipeline="default", passes=1):
    """Every array as a whole, `passes` times."""
    if pipeline == "zarrs":
        import zarrs  # noqa: F401  registers the pipeline
    use(pipeline)
    group = zarr.open_group(store, mode="r")
    for name in variables * passes:
        yield name, [np.asarray(group[name][...])]


def batches(report, store, geometry, order, batches_per_epoch, pipeline="default"):
    """Batches gathered sample by sample, without any cache of decoded chunks: zarr-python has
    none."""
    if pipeline == "zarrs":
        import zarrs  # noqa: F401  registers the pipeline
    use(pipeline)
    geometry = Geometry(geometry)
    group = zarr.open_group(opened(store), mode="r")
    arrays = {name: group[name] for name in geometry.variables}
    for number, samples in enumerate(np.load(order)):
        yield tag(number, batches_per_epoch), geometry.gather(arrays, samples)


def pairs(report, store, geometry, batch, count, pipeline="default", views=False):
    """In-order pairs of steps, x and y: one read of the steps of a batch and one more. With
    `views`, x and y overlap in that memory; without, they are two arrays."""
    if pipeline == "zarrs":
        import zarrs  # noqa: F401  registers the pipeline
    use(pipeline)
    geometry = Geometry(geometry)
    group = zarr.open_group(opened(store), mode="r")
    array = group[next(iter(geometry.variables))]
    for number in range(count):
        steps = array[number * batch:(number + 1) * batch + 1][:, None]
        x, y = steps[:-1], steps[1:]
        yield f"0/{number}", [x, y] if views else [x.copy(), y.copy()]
