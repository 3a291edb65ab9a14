"""TensorStore."""

import tensorstore


def open_arrays(store, variables, zarr_format, cache_bytes=0):
    context = tensorstore.Context({"cache_pool": {"total_bytes_limit": cache_bytes}})
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    opening = {}
    for name in variables:
        if store.startswith("http"):
            base, _, path = store.rpartition("/")
            kvstore = {"driver": "http", "base_url": base, "path": f"/{path}/{name}/"}
        else:
            kvstore = {"driver": "file", "path": f"{store}/{name}/"}
        opening[name] = tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True, read=True,
                                         context=context, recheck_cached_data=False,
                                         recheck_cached_metadata=False)
    return {name: future.result() for name, future in opening.items()}


def read_all(report, store, variables, zarr_format=3):
    """Every array as a whole."""
    arrays = open_arrays(store, variables, zarr_format)
    for name in variables:
        yield name, [arrays[name].read().result()]
