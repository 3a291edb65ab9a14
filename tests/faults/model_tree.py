"""The expected contents of a mount, computed without batchfs: names by batchfs-layout(7), the order
of samples by the Python of batchfs-view(5), bytes by zarr-python, xarray and numpy.

A seed makes a store and its views. Only the meaning of texts (summaries, JSON, metadata of the Zarr
format) is known before: they are read once from a mount, their meaning is checked, and from then on
they are known like the rest.
"""

import io
import itertools
import json
import math
import pathlib
import random
import re
import warnings

import numpy as np
import xarray as xr
import zarr
from safetensors.numpy import load as load_safetensors

PAGE = pathlib.Path(__file__).resolve().parents[2] / "man" / "batchfs-view.5"
HIDDEN_EPOCHS = [7, 12345]  # beyond every view's "epochs"


def order_of_the_page():
    """The functions permute and block."""
    escapes = {r"\-": "-", r"\(ha": "^", r"\(dq": '"', r"\e": "\\", r"\&": ""}
    blocks = re.findall(r"^\.Bd -literal.*\n((?s:.*?))^\.Ed$", PAGE.read_text(), re.M)
    (code,) = [block for block in blocks if "def permute" in block]
    names = {}
    exec(re.sub(r"\\(-|\(ha|\(dq|e|&)", lambda found: escapes[found.group()], code), names)
    return names["permute"], names["block"]


def make_store(path, chance):
    """Fields small and large, packed and sharded, a number alone, and nothing at all; the chunk
    lengths by variable."""
    version = chance.choice([2, 3])
    rng = np.random.default_rng(chance.randrange(1 << 32))
    times, levels, y, x = chance.randrange(12, 41), 3, chance.choice([8, 12]), chance.choice(
        [16, 24])
    dims = ("time", "level", "lat", "lon")
    t = rng.normal(280, 10, (times, levels, y, x)).astype("f4")
    q = rng.uniform(0, 0.02, t.shape)
    q[rng.random(q.shape) < 0.01] = np.nan
    field = rng.normal(size=(times, 128, chance.choice([257, 512]))).astype(
        chance.choice(["f4", "f8"]))
    data = xr.Dataset({"t": (dims, t), "q": (dims, q), "field": (("time", "y", "x"), field),
                       "count": (("time",), rng.integers(0, 1 << 40, times)),
                       "mask": (("lat", "lon"), rng.integers(0, 2, (y, x)).astype("i1")),
                       "one": ((), np.float64(4.5)), "none": (("nothing",), np.zeros(0, "i2"))},
                      {"time": np.datetime64("2000-01-01", "ns")
                           + np.arange(times) * np.timedelta64(6, "h"), "level": [500, 700, 850],
                       "lat": np.linspace(70, -70, y).astype("f4"),
                       "lon": np.arange(x) * (360 / x)})
    chunks = {"t": (chance.choice([1, 4, 5]), 2, y, chance.choice([7, x])),
              "q": (6, 3, chance.choice([5, y]), x),
              "field": (chance.choice([1, 4]), 64, field.shape[2])}
    encoding = {name: {"chunks": lengths} for name, lengths in chunks.items()}
    encoding["q"] |= {"dtype": "i2", "scale_factor": 1e-6, "add_offset": 0.01, "_FillValue": -32768}
    if version == 3 and chance.random() < 0.5:
        encoding["field"]["shards"] = (2 * chunks["field"][0], 128, field.shape[2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that format 3 does not have consolidated metadata yet
        data.to_zarr(path, zarr_format=version, encoding=encoding)
    return {name: dict(zip(data[name].dims, lengths)) for name, lengths in chunks.items()}


def make_views(chance):
    def some(*formats):
        return chance.sample(formats, chance.randrange(1, len(formats) + 1))

    def order():
        return {"shuffle": chance.choice(["none", "global", "block"]),
                "seed": chance.randrange(1 << 63), "buffer": chance.choice([1, 2, 9])}

    def batch(*sizes):
        return {"size": chance.choice(sizes), "remainder": chance.choice(["keep", "drop", "pad"])}

    views = {
        "single": {"variables": ["t"],
                   "window": {"time": chance.choice([1, 2])}, "batch": batch(3, 5), "epochs": 2,
                   "formats": some("npy", "safetensors", "npz", "png")},
        "patches": {"variables": ["t", "q"],
                    "window": {"lat": {"size": 4, "stride": 4},
                               "lon": {"size": 8, "stride": 5, "wrap": True}, "time": 2},
                    "dtype": chance.choice(["float16", "float32", "float64"]),
                    "batch": batch(20, 32), "formats": some("npy", "zarr", "npz")},
        "pairs": {"window": {"time": 1}, "batch": batch(2, 4),
                  "epochs": 3, "formats": some("npy", "safetensors", "zarr"),
                  "tensors": {"x": {"variables": ["q"], "offsets": {"time": [-1, 0]}},
                              "y": {"variables": ["t"], "offsets": {"time": [1]}}}},
        "large": {"variables": ["field"], "window": {"time": 1}, "batch": batch(4, 7),
                  "formats": some("npy", "safetensors")},
    }
    return {name: {"name": name, **view, "order": order()} for name, view in views.items()}


class ViewModel:
    """The order, the batches and the tensors of a view."""

    permute, block = map(staticmethod, order_of_the_page())

    def __init__(self, view, data, chunks):
        self.view, self.data = view, data
        self.size, self.remainder = view["batch"]["size"], view["batch"]["remainder"]
        tensors = view.get("tensors") or {name: {"variables": [name]} for name in view["variables"]}
        self.tensors = {name: (data[one["variables"][0]], one.get("offsets", {}))
                        for name, one in tensors.items()}
        self.window = {dim: one if isinstance(one, dict) else {"size": one}
                       for dim, one in view["window"].items()}
        self.starts, self.axes = [], []
        for dim, one in self.window.items():
            size, length = one["size"], data.sizes[dim]
            stride = one.get("stride", size)
            offsets = [o for _, all_ in self.tensors.values() for o in all_.get(dim, [0])]
            starts = [s for s in range(0, length, stride) if one.get("wrap")
                      or all(0 <= s + o and s + o + size <= length for o in offsets)]
            chunk = max(chunks[variable.name][dim] for variable, _ in self.tensors.values())
            group = max(1, chunk // stride)
            lead = (min(len(starts), math.ceil(-starts[0] % chunk / stride)) if chunk % stride == 0
                    else 0)
            self.starts.append(starts)
            self.axes.append((len(starts), lead, group) if (len(starts) - lead) // group
                             else (len(starts), 0, len(starts)))
        self.samples = math.prod(map(len, self.starts))
        self.batches = self.samples // self.size if self.remainder == "drop" else -(
            -self.samples // self.size)

    def sample_numbers(self, epoch, batch):
        """Sample numbers of the rows of a batch; with `pad` they wrap around."""
        order = self.view["order"]
        seed = order["seed"]
        end = (batch + 1) * self.size
        rows = range(batch * self.size, end if self.remainder == "pad" else min(end, self.samples))
        rows = [row % self.samples for row in rows]
        if order["shuffle"] == "global":
            return [self.permute(row, self.samples, seed, epoch) for row in rows]
        if order["shuffle"] == "block":
            return [self.block(row, self.samples, seed, epoch, order["buffer"], self.axes)
                    for row in rows]
        return rows

    def tensor(self, name, samples):
        variable, offsets = self.tensors[name]
        rows = []
        for sample in samples:
            values = variable.values
            for dim, starts in reversed(list(zip(self.window, self.starts))):
                sample, place = divmod(sample, len(starts))
                index = [starts[place] + o + i for o in offsets.get(dim, [0])
                         for i in range(self.window[dim]["size"])]
                values = np.take(values, [i % self.data.sizes[dim] for i in index],
                                 variable.dims.index(dim))
            rows.append(values)
        made = np.stack(rows)
        return (made.astype(self.view["dtype"]) if "dtype" in self.view
                and made.dtype.kind == "f" else made)

    def batches_of(self, rank, world):
        if self.remainder == "drop":
            return [b * world + rank for b in range(self.batches // world)]
        if self.remainder == "pad":
            return [b * world + rank for b in range(-(-self.batches // world))]
        return list(range(rank, self.batches, world))


def npy(values):
    """With data at byte 4096."""
    values = np.asarray(values)
    values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))).reshape(
        values.shape)
    header = repr({"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False,
                   "shape": tuple(map(int, values.shape))})
    header = header[:-1] + ", }"
    return (b"\x93NUMPY\x01\x00" + (4086).to_bytes(2, "little") + header.ljust(4085).encode()
            + b"\n" + values.tobytes())


class Tree:
    """`folders`: path to {name: is it a folder}, what is listed. `files`: path to (offset, size) in
    `blob`. Paths that nobody lists are there, too."""

    def __init__(self):
        self.folders, self.files, self.inodes = {}, {}, {}
        self.blob = io.BytesIO()
        self.large = set()  # files that hold memory of the daemon while they are open

    def add(self, path, contents):
        self.files[path] = (self.blob.tell(), len(contents))
        self.blob.write(contents)

    def finish(self, path):
        path.write_bytes(self.blob.getbuffer())
        self.blob = None


def add_arrays(tree, store, mount):
    group = zarr.open_group(str(store), mode="r")
    tree.folders["arrays"] = {name: True for name in group.array_keys()}
    for name, array in group.arrays():
        where = f"arrays/{name}"
        tree.folders[where] = {"summary.txt": False, "metadata.json": False, "values.npy": False,
                               "chunks": True}
        metadata = store / name / ("zarr.json" if (store / name / "zarr.json").exists()
                                   else ".zarray")
        text = (mount / where / "metadata.json").read_bytes()
        assert json.loads(text) == json.loads(metadata.read_bytes()), where
        tree.add(f"{where}/metadata.json", text)
        values = array[...]
        tree.add(f"{where}/values.npy", npy(values))
        names = tree.folders[f"{where}/chunks"] = {}
        counts = [-(-n // c) for n, c in zip(array.shape, array.chunks)]
        for index in itertools.product(*map(range, counts)):
            file = (".".join(map(str, index)) or "0") + ".npy"
            names[file] = False
            box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, array.chunks))
            tree.add(f"{where}/chunks/{file}", npy(values[box]))


def add_batch(tree, model, where, names, epoch, number, shown, mount):
    """Batch `shown` of a directory, which is the epoch's batch `number`."""
    view, stem = model.view, f"batch-{shown:06}"
    samples = model.sample_numbers(epoch, number)
    tensors = {name: model.tensor(name, samples) for name in model.tensors}
    names[f"{stem}.json"] = False
    text = (mount / where / f"{stem}.json").read_bytes()
    told = json.loads(text)
    assert (told["view"], told["epoch"],
            told["samples"]) == (view["name"], epoch, samples), (where, stem, samples, told)
    tree.add(f"{where}/{stem}.json", text)
    for form in view["formats"]:
        if form == "npy" and len(tensors) > 1:
            names[stem] = True
            tree.folders[f"{where}/{stem}"] = {f"{name}.npy": False for name in tensors}
            for name, values in tensors.items():
                tree.add(f"{where}/{stem}/{name}.npy", npy(values))
                tree.large.add(f"{where}/{stem}/{name}.npy")
            continue
        path = f"{where}/{stem}.{form}"
        names[f"{stem}.{form}"] = form == "zarr"
        if form == "zarr":
            add_zarr(tree, path, tensors, mount)
            continue
        tree.large.add(path)
        if form == "npy":
            tree.add(path, npy(*tensors.values()))
            continue
        contents = (mount / path).read_bytes()
        if form == "png":
            assert contents.startswith(b"\x89PNG")
        else:
            same(load_safetensors(contents) if form == "safetensors"
                     else dict(np.load(io.BytesIO(contents))), tensors, path)
        tree.add(path, contents)


def add_zarr(tree, where, tensors, mount):
    opened = xr.open_zarr(mount / where, decode_cf=False)
    same({name: opened[name].values for name in tensors}, tensors, where)
    opened.close()
    for folder in [mount / where, *(path for path in (mount / where).rglob("*") if path.is_dir())]:
        tree.folders[str(folder.relative_to(mount))] = {entry.name: entry.is_dir()
                                                        for entry in folder.iterdir()}
        for file in folder.iterdir():
            if not file.is_dir():
                tree.add(str(file.relative_to(mount)), file.read_bytes())
                tree.large.add(str(file.relative_to(mount)))


def same(got, expected, where):
    assert got.keys() == expected.keys(), where
    for name, values in expected.items():
        assert (got[name].dtype, got[name].shape) == (values.dtype, values.shape), (where, name)
        assert got[name].tobytes() == values.tobytes(), (where, name)


def add_view(tree, model, chance, mount):
    view = model.view
    where = f"views/{view['name']}"
    epochs = view.get("epochs", 1)
    names = tree.folders[where] = {"view.json": False, "schema.json": False, "coords": True}
    names |= {f"epoch-{epoch:04}": True for epoch in range(epochs)}
    schema = json.loads((mount / where / "schema.json").read_text())
    assert (schema["samples"], schema["batches"],
            schema["epochs"]) == (model.samples, model.batches, epochs), (where, schema)
    tree.folders[f"{where}/coords"] = {}
    for coordinate in schema["coordinates"]:
        tree.folders[f"{where}/coords"][f"{coordinate['name']}.npy"] = False
        tree.add(f"{where}/coords/{coordinate['name']}.npy",
                 npy(model.data[coordinate["name"]].values))
    for epoch in [*range(epochs), chance.choice(HIDDEN_EPOCHS)]:
        folder = f"{where}/epoch-{epoch:04}"
        listed = tree.folders[folder] = {}
        for batch in range(model.batches):
            add_batch(tree, model, folder, listed, epoch, batch, batch, mount)
    world = chance.choice([2, 3])
    rank = chance.randrange(world)
    tree.folders[f"{where}/rank-{rank}-of-{world}"] = {f"epoch-{epoch:04}": True
                                                       for epoch in range(epochs)}
    for epoch in range(epochs):
        folder = f"{where}/rank-{rank}-of-{world}/epoch-{epoch:04}"
        listed = tree.folders[folder] = {}
        for shown, batch in enumerate(model.batches_of(rank, world)):
            add_batch(tree, model, folder, listed, epoch, batch, shown, mount)


def make_tree(store, views, chunks, chance, mount, blob):
    """The tree that every mount of the store with the views has; `mount` is one of them."""
    tree = Tree()
    data = xr.open_zarr(store).load()
    tree.folders[""] = {"summary.txt": False, "store.json": False, "arrays": True, "views": True}
    tree.folders["views"] = {name: True for name in views}
    add_arrays(tree, store, mount)
    for view in views.values():
        add_view(tree, ViewModel(view, data, chunks), chance, mount)
    for folder, names in tree.folders.items():
        assert sorted(names) == sorted(path.name for path in (mount / folder).iterdir()), folder
        tree.inodes[folder] = (mount / folder).stat().st_ino
        for name, is_folder in names.items():
            path = f"{folder}/{name}".lstrip("/")
            if not is_folder and path not in tree.files:
                tree.add(path, (mount / path).read_bytes())
    tree.inodes |= {path: (mount / path).stat().st_ino for path in tree.files}
    tree.finish(blob)
    return tree


def make(seed, scratch):
    """A store and view files for a seed: (store, views, chunks, chance for what follows)."""
    chance = random.Random(f"tree {seed}")
    store = scratch / "s.zarr"
    chunks = make_store(store, chance)
    views = make_views(chance)
    for name, view in views.items():
        (scratch / f"{name}.json").write_text(json.dumps(view))
    return store, views, chunks, chance
