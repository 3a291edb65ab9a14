"""JAX on a mesh: the next month of a CMIP6 simulation from the two before it and the same month of
the year before.

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python climate_jax.py --offline
    python climate_jax.py --store gs://cmip6/CMIP6/CMIP/...   # one variable, tas, of a simulation

Shows: batches sharded over all devices of a mesh, one copied while another is used; a calendar
without leap days.
"""

import argparse
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import batchfs
import batchfs.jax

VIEW = pathlib.Path(__file__).parent / "views" / "climate.json"
LATER = {"time": {"from": "2000", "to": "2014"}}  # for scores: the view has the years before


def predict(weights, x):
    """A weight for each month and place, and a constant: x is (sample, month, lat, lon)."""
    return jnp.einsum("smyx,myx->syx", x, weights["months"]) + weights["constant"]


def loss_of(weights, x, y):
    return jnp.mean((predict(weights, x) - y[:, 0]) ** 2)


@jax.jit
def step(weights, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x, y)
    # Normalized least mean squares, at each place by itself: any rate below 2 is stable.
    power = 1 + (x ** 2).sum(1).mean(0)
    rate = 0.5 * power.size / 2 / power
    return jax.tree.map(lambda weight, slope: weight - rate * slope, weights, gradient), loss


def first_weights(data, mesh):
    """A mean of the months, on every device."""
    _, months, *grid = next(tensor["shape"] for tensor in data.schema["tensors"]
                            if tensor["name"] == "x")
    weights = {"months": jnp.full((months, *grid), 1 / months), "constant": jnp.zeros(grid)}
    return jax.device_put(weights, NamedSharding(mesh, PartitionSpec()))


def scores(weights, data):
    """RMSE in kelvin at each place: of the model, of the month a year before as its forecast, and
    of the last month."""
    squares, count = 0, 0
    for batch in data:
        x, truth = batch["x"].numpy(), batch.denormalize("y")[:, 0]
        forecast = batch.denormalize("y", np.asarray(predict(weights, x))[:, None])[:, 0]
        guesses = np.stack([forecast, *np.moveaxis(batch.denormalize("x"), 1, 0)[[0, 2]]])
        squares, count = squares + ((guesses - truth) ** 2).sum(1), count + len(truth)
    return np.sqrt(squares / count)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true",
                        help="use a small store, made in --folder")
    parser.add_argument("--store", help="a store with tas")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    store = arguments.store
    if arguments.offline:
        import stores

        arguments.folder.mkdir(parents=True, exist_ok=True)
        store = stores.make("cmip6", arguments.folder)
    if store is None:
        parser.error("pass --offline or --store")

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_sample = NamedSharding(mesh, PartitionSpec("data"))
    with batchfs.open(store, VIEW, rank=jax.process_index(), world=jax.process_count()) as train:
        weights = first_weights(train, mesh)
        for epoch in range(arguments.epochs):
            for arrays in batchfs.jax.sharded(train, by_sample):
                weights, loss = step(weights, arrays["x"], arrays["y"])
            print(f"epoch {epoch}: loss {float(loss):.4f} on "
                  f"{len(arrays['x'].addressable_shards)} devices")
    if jax.process_index() == 0:
        with batchfs.open(store, json.loads(VIEW.read_text()) | {"select": LATER}) as later:
            ours, year_before, _ = (np.sqrt((errors ** 2).mean())
                                    for errors in scores(weights, later))
        print(f"from 2000: RMSE {ours:.2f} K, with the month a year before {year_before:.2f} K")


if __name__ == "__main__":
    main()
