"""JAX on a mesh: the next month of a CMIP6 simulation from three months before it.

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python climate_jax.py --offline
    python climate_jax.py --store gs://cmip6/CMIP6/CMIP/...   # one variable, tas, of a simulation

Shows: batches sharded over all devices of a mesh, one copied while another is used; a calendar without leap days.
"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

import batchfs
import batchfs.jax

VIEW = pathlib.Path(__file__).parent / "views" / "climate.json"


def predict(weights, x):
    """A weight for each month and place, and a constant: x is (sample, month, lat, lon)."""
    return jnp.einsum("smyx,myx->syx", x, weights["months"]) + weights["constant"]


def loss_of(weights, x, y):
    return jnp.mean((predict(weights, x) - y[:, 0]) ** 2)


@jax.jit
def step(weights, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x, y)
    size = x.shape[-1] * x.shape[-2]
    return jax.tree.map(lambda weight, slope: weight - 0.1 * size * slope, weights, gradient), loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="use a small store, made in --folder")
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
    everywhere = NamedSharding(mesh, PartitionSpec())
    with batchfs.open(store, VIEW, rank=jax.process_index(), world=jax.process_count()) as train:
        _, months, *grid = next(tensor["shape"] for tensor in train.schema["tensors"] if tensor["name"] == "x")
        weights = {"months": jnp.full((months, *grid), 1 / months), "constant": jnp.zeros(grid)}
        weights = jax.device_put(weights, everywhere)
        for epoch in range(arguments.epochs):
            for arrays in batchfs.jax.sharded(train, by_sample):
                weights, loss = step(weights, arrays["x"], arrays["y"])
            print(f"epoch {epoch}: loss {float(loss):.4f} on {len(arrays['x'].addressable_shards)} devices")


if __name__ == "__main__":
    main()
