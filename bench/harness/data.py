"""The data of the benchmarks: smooth, weather-like fields, made from a seed and kept in a folder.

A field is a sum of a few waves over latitude and longitude that move with time, plus a little white
noise, rounded to a number of mantissa bits: so that compressors find about what they find in
reanalysis data (two to four times). Every field is a pure function of (variable, step), whatever
its chunks and codec.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shutil
import warnings

import numpy as np
import zarr
import zarr.codecs

WAVES = 12


class Fields:
    """The fields of one variable: `fields(step)` is a float32 array of the grid's shape."""

    def __init__(self, name, grid, *, bits=14, noise=0.01, level=280.0):
        self.grid = tuple(grid)
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        random = np.random.default_rng(seed)
        self.bits, self.noise, self.level = bits, noise, level
        rows, columns = self.grid[-2:]
        latitude = np.linspace(0, np.pi, rows, dtype="f4")[:, None]
        self.longitude = np.linspace(0, 2 * np.pi, columns, endpoint=False, dtype="f4")[None, :]
        self.north = (np.cos(latitude * random.integers(1, 9, WAVES) + random.uniform(0, 6, WAVES))
                      * (10 / np.arange(1, WAVES + 1))).astype("f4")
        self.waves = random.integers(1, 17, WAVES)[:, None].astype("f4")
        self.phase = random.uniform(0, 6, WAVES)[:, None].astype("f4")
        self.speed = random.uniform(-0.2, 0.2, WAVES)[:, None].astype("f4")
        self.gradient = (20 * np.sin(latitude)).astype("f4")
        # One field of noise, shifted by each step: drawing new noise would cost more than all the
        # rest.
        self.white = random.standard_normal(rows * columns).astype("f4") * np.float32(noise * 20)

    def __call__(self, step):
        outer = int(np.prod(self.grid[:-2], dtype=int))
        out = np.empty((outer, *self.grid[-2:]), "f4")
        for level in range(outer):
            east = np.cos(self.waves * self.longitude + self.phase + self.speed * step
                          + 0.3 * level)
            field = (self.north @ east.astype("f4") + self.gradient
                     + np.float32(self.level + 3 * level))
            field += np.roll(self.white, 7919 * (step + 31 * level)).reshape(field.shape)
            out[level] = self.rounded(field)
        return out.reshape(self.grid)

    def rounded(self, field):
        """Round half up to `bits` mantissa bits."""
        if self.bits >= 23:
            return field
        drop = 23 - self.bits
        bits = field.view("u4")
        return ((bits + np.uint32(1 << (drop - 1)))
                & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)).view("f4")


def incompressible(name, grid):
    """Fields of standard normal float32, as insitubatch's benchmarks use."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return lambda step: np.random.default_rng((seed, step)).standard_normal(grid, "f4")


def codec(name, zarr_format):
    """zarr-python's compressors for a codec by our name."""
    if name == "raw":
        return None
    kind, _, inner = name.partition("-")
    if zarr_format == 2:
        import numcodecs
        if kind == "blosc":
            return numcodecs.Blosc(cname=inner, clevel=5, shuffle=numcodecs.Blosc.SHUFFLE)
        return numcodecs.Zstd(level=3)
    if kind == "blosc":
        return zarr.codecs.BloscCodec(cname=inner, clevel=5, shuffle="shuffle", typesize=4)
    return zarr.codecs.ZstdCodec(level=3)


def make_store(folder, spec):
    """Makes the store that `spec` describes, unless it exists. Returns its path.

    spec: {"name", "format": 2|3, "codec", "steps", "variables": {name: {"grid", "dims", "chunk"}},
    "coordinates": {dim: size}, "random": bool}
    """
    folder = pathlib.Path(folder)
    key = hashlib.sha256(json.dumps(spec, sort_keys=True).encode() + recipe()).hexdigest()[:10]
    path = folder / f"{spec['name']}-{key}.zarr"
    if path.exists():
        return path
    print(f"making {path.name}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{path.name}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    root = zarr.open_group(str(temporary), mode="w", zarr_format=spec["format"])
    dims_of_v2 = spec["format"] == 2
    steps = spec["steps"]
    coordinates = {"time": np.arange(steps, dtype="i8"), **{
        dim: np.linspace(0, 1, size) for dim, size in spec.get("coordinates", {}).items()}}
    for dim, values in coordinates.items():
        attributes = {"units": "hours since 2000-01-01"} if dim == "time" else {}
        create(root, dim, values.shape, values.shape, values.dtype, "raw", [dim], dims_of_v2,
               attributes)[:] = values
    for name, variable in spec["variables"].items():
        grid, chunk = tuple(variable["grid"]), tuple(variable["chunk"])
        array = create(root, name, (steps, *grid), chunk, "f4", spec["codec"], variable["dims"],
                       dims_of_v2)
        fields = incompressible(name, grid) if spec.get("random") else Fields(name, grid)

        def write(first, array=array, fields=fields, chunk=chunk):
            last = min(first + chunk[0], steps)
            array[first:last] = np.stack([fields(step) for step in range(first, last)])

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(write, range(0, steps, chunk[0])))
    with warnings.catch_warnings():  # that Zarr 3 does not define consolidated metadata is known
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(str(temporary))
    os.rename(temporary, path)
    return path


def create(root, name, shape, chunk, dtype, codec_name, dims, dims_of_v2, attributes=None):
    zarr_format = 2 if dims_of_v2 else 3
    compressor = codec(codec_name, zarr_format)
    attributes = dict(attributes or {})
    names = {"dimension_names": dims}
    if dims_of_v2:
        attributes["_ARRAY_DIMENSIONS"] = dims
        names = {}
    return root.create_array(name, shape=shape, chunks=chunk, dtype=dtype, compressors=compressor,
                             fill_value=0, attributes=attributes, **names)


@functools.cache
def recipe():
    """Part of a store's name: it is made anew when this file changes."""
    return hashlib.sha256(pathlib.Path(__file__).read_bytes()).digest()


def make_repository(store):
    """An Icechunk repository with a commit of the same arrays, chunk for chunk. Returns its path;
    makes it unless it exists."""
    import asyncio

    import icechunk
    from zarr.core.buffer import cpu

    store = pathlib.Path(store)
    path = store.with_suffix(".icechunk")
    if path.exists():
        return path
    print(f"making {path.name}", flush=True)
    temporary = store.parent / f".{path.name}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    session = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(temporary))).writable_session("main")

    async def copy():
        files = [file for file in store.rglob("*") if file.is_file()]
        # an array, then its chunks
        for file in sorted(files, key=lambda file: (file.name != "zarr.json", file)):
            content = file.read_bytes()
            if file.name == "zarr.json":
                document = json.loads(content)
                document.pop("consolidated_metadata", None)
                content = json.dumps(document).encode()
            await session.store.set(str(file.relative_to(store)), cpu.Buffer.from_bytes(content))

    asyncio.run(copy())
    session.commit("the arrays")
    os.rename(temporary, path)
    return path


def stored_bytes(path):
    return sum(file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file())


def warm(path):
    """Brings a store into the page cache."""
    for file in pathlib.Path(path).rglob("*"):
        if file.is_file():
            with open(file, "rb", buffering=0) as stream:
                while stream.read(1 << 22):
                    pass
