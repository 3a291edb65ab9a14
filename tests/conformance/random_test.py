"""Random stores, selections and views: what the program gives equals what xarray, zarr-python and
numpy say.

Each seed is a store of a few variables with random dimensions, types, chunks, shards, codecs and CF
attributes, and questions about it. BATCHFS_SEEDS=1000:2000 asks others than the usual ones.
"""

import io
import itertools
import json
import os
import warnings

import numcodecs
import numpy as np
import pytest
import xarray as xr
import xbatcher
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

warnings.filterwarnings("ignore")
FIRST, LAST = map(int, os.environ.get("BATCHFS_SEEDS", "0:24").split(":"))
SEEDS = range(FIRST, LAST)
DIMS = ["time", "level", "lat", "lon"]
NUMBERS = ["?", "i1", "<u1", "<i2", ">i2", "<u2", "<i4", "<u4", ">i8", "<i8", "<u8", "<f2", "<f4",
           ">f4", "<f8", ">f8", "<c8"]


# ---- stores --------------------------------------------------------------------------------------


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def divisor(rng, n):
    return int(pick(rng, *[d for d in range(1, n + 1) if n % d == 0]))


def random_values(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -100, 100, shape).astype(dtype)
    values = rng.normal(0, 30, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.normal(0, 30, shape)).astype(dtype)
    values[rng.random(shape) < 0.05] = np.nan
    return values.astype(dtype)


def cf_attributes(rng, dtype):
    attributes = {}
    if np.dtype(dtype).kind not in "iuf":
        return attributes
    if rng.random() < 0.3:
        attributes["scale_factor"] = pick(rng, 0.01, 0.5, 2.0)
    if rng.random() < 0.3:
        attributes["add_offset"] = pick(rng, 273.15, -1.0, 10)
    if rng.random() < 0.3:
        attributes["missing_value"] = pick(rng, 5, 7.0, [3, 4])
    return attributes


def coordinate(rng, dim, n):
    """Values and attributes of a dimension's coordinate; None for none."""
    kind = pick(rng, "none", "ascending", "descending", "float32", "dates", "text", "strings")
    if kind == "ascending":
        return np.cumsum(rng.integers(1, 5, n)), {}
    if kind == "descending":
        return (90 - 2.5 * np.arange(n)), {}
    if kind == "float32":
        return (0.1 * np.arange(n)).astype("f4"), {}
    if kind == "dates":
        units = pick(rng, "hours since 1999-12-30", "days since 1950-01-01 12:00",
                     "seconds since 2000-02-28")
        return np.cumsum(rng.integers(1, 9, n)).astype(pick(rng, "i4", "i8", "f8")), {
            "units": units}
    if kind == "strings":
        return np.array([f"{dim} {'x' * i}" for i in range(n)], object), {}
    if kind == "text":
        return np.array([f"{dim}{i}" for i in range(n)], pick(rng, "U", "S")), {}
    return None


def create(rng, root, version, name, dims, values, attributes, fill, holes):
    """An array in random chunks and codecs, of which some may never be written."""
    chunks = [int(rng.integers(1, n + 3)) if n else 1 for n in values.shape]
    options = {}
    if version == 2:
        options["order"] = pick(rng, "C", "F")
        options["compressors"] = pick(rng, None, numcodecs.Blosc("lz4"),
                                      numcodecs.Blosc("zstd", shuffle=2), numcodecs.Zstd(),
                                      numcodecs.Zlib())
        if rng.random() < 0.3 and values.dtype != object:
            options["filters"] = [numcodecs.Shuffle(values.dtype.itemsize)]
        options["chunk_key_encoding"] = {"name": "v2", "separator": pick(rng, ".", "/")}
        attributes = {**attributes, "_ARRAY_DIMENSIONS": dims}
    else:
        endian = "big" if values.dtype.byteorder == ">" else "little"
        codecs = [BytesCodec(endian=endian)] + pick(rng, [], [ZstdCodec(level=1)],
                                                    [BloscCodec(cname="lz4")], [GzipCodec(level=1)])
        if values.ndim > 1 and rng.random() < 0.2:
            codecs.insert(0, TransposeCodec(order=tuple(map(int, rng.permutation(values.ndim)))))
        if values.ndim > 0 and rng.random() < 0.4:  # zarr-python has no shards of one number
            inner = tuple(divisor(rng, c) for c in chunks)
            codecs = [ShardingCodec(chunk_shape=inner, codecs=codecs,
                                    index_location=pick(rng, "start", "end"))]
        serializer = next(c for c in codecs if isinstance(c, (BytesCodec, ShardingCodec)))
        at = codecs.index(serializer)
        options.update(filters=codecs[:at] or None, serializer=serializer,
                       compressors=codecs[at + 1:] or None, dimension_names=dims,
                       chunk_key_encoding={"name": pick(rng, "default", "v2"),
                                           "separator": pick(rng, ".", "/")})
    if values.dtype == object:  # made of nothing else
        options = {k: v for k, v in options.items()
                   if k in ("dimension_names", "chunk_key_encoding")}
    dtype = str if values.dtype == object else values.dtype
    array = root.create_array(name, shape=values.shape, chunks=tuple(chunks), dtype=dtype,
                              fill_value=fill, attributes=attributes, **options)
    whole = holes and values.size > 0 and rng.random() < 0.3
    if whole:  # a corner that is written
        corner = tuple(slice(0, int(rng.integers(0, n + 1))) for n in values.shape)
        array[corner] = values[corner]
    else:
        array[...] = values


def make_store(rng, path):
    version = pick(rng, 2, 3)
    root = zarr.open_group(path, mode="w", zarr_format=version)
    dims = DIMS[:rng.integers(1, 5)]
    sizes = {d: int(rng.integers(1, 14)) for d in dims}
    for dim in dims:
        if (made := coordinate(rng, dim, sizes[dim])) is not None:
            values, attributes = made
            fill = (None if version == 2 else "" if values.dtype == object
                    else np.zeros((), values.dtype)[()])
            create(rng, root, version, dim, [dim], values, attributes, fill, False)
    for v in range(rng.integers(1, 5)):
        own = [str(d) for d in rng.permutation(dims)[:rng.integers(0, len(dims) + 1)]]
        dtype = np.dtype(pick(rng, *NUMBERS))
        values = random_values(rng, dtype, [sizes[d] for d in own])
        fill = pick(rng, 0, 1, 5) if version == 3 else pick(rng, None, 0, 1, 5)
        if version == 2 and dtype.kind == "b":
            fill = None  # with one, xarray makes objects of booleans
        if fill is not None:
            fill = np.array(fill).astype(dtype)[()]
        create(rng, root, version, f"v{v}", own, values, cf_attributes(rng, dtype), fill, True)
    create(rng, root, version, "scalar", [], np.array(4.5), {}, 0.0, False)
    if rng.random() < 0.5:
        zarr.consolidate_metadata(path)
    return xr.open_zarr(path, consolidated=False).load()


def same(got, expected):
    """To the last bit; a NaN is a NaN."""
    expected = np.ascontiguousarray(expected).reshape(np.shape(expected))
    # one string is as long as it is in numpy, and here as the longest of the array
    if expected.dtype.kind in "SUOT":
        kind = "S" if expected.dtype.kind == "S" else "U"
        assert (got.dtype.kind, got.shape, got.tolist()) == (kind, expected.shape,
                                                             expected.tolist())
        return
    expected = expected.astype(expected.dtype.newbyteorder("="))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fc":
        parts = ([(got.real, expected.real), (got.imag, expected.imag)]
                 if expected.dtype.kind == "c" else [(got, expected)])
        for a, b in parts:
            assert np.array_equal(np.isnan(a), np.isnan(b))
            assert np.where(np.isnan(a), 0, a).tobytes() == np.where(np.isnan(b), 0, b).tobytes()
    else:
        assert got.tobytes() == expected.tobytes()


# ---- selections ----------------------------------------------------------------------------------


def label_text(value):
    if isinstance(value, np.datetime64):
        return str(value.astype("M8[s]"))
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def random_selection(rng, ds, dim):
    """The selection as typed, its form in a view, the positions, and whether the dimension is
    dropped."""
    n = ds.sizes[dim]
    labels = ds[dim].values if dim in ds.coords and ds[dim].dims == (dim,) else None
    form = (pick(rng, "#one", "#range", "#list", "one", "list", "range") if labels is not None
            else pick(rng, "#one", "#range", "#list"))
    i, j = sorted(map(int, rng.integers(0, n, 2)))
    several = [int(k) for k in rng.permutation(n)[:rng.integers(1, n + 1)]]
    if form == "#one":
        k = pick(rng, i, i - n)
        return f"#{k}", f"#{k}", [i], True
    if form == "#range":
        return f"#{i}:#{j + 1}", {"from": f"#{i}", "to": f"#{j + 1}"}, list(range(i, j + 1)), False
    if form == "#list" and len(several) > 1:
        texts = [f"#{k}" for k in several]
        return ",".join(texts), texts, several, False
    if form.startswith("#"):
        return None
    text = [label_text(v) for v in labels]
    if form == "one":
        return text[i], text[i], [i], True
    if form == "list" and len(several) > 1:
        return ",".join(text[k] for k in several), [text[k] for k in several], several, False
    if form == "range" and labels.dtype.kind not in "SUOT":
        ends = pick(rng, (i, j), (j, i))
        if dim == "lon" and labels[0] < labels[-1]:
            ends = i, j  # the other way goes round, which is refused without "wrap"
        return (f"{text[ends[0]]}:{text[ends[1]]}", {"from": text[ends[0]], "to": text[ends[1]]},
                list(range(i, j + 1)), False)
    return None


def select(rng, ds, dims, share):
    chosen = {}
    for dim in dims:
        if rng.random() < share and (selection := random_selection(rng, ds, dim)) is not None:
            chosen[dim] = selection
    return chosen


def taken(variable, chosen):
    """The variable's values at the chosen positions; dimensions of one label go."""
    values = variable.values
    for axis, dim in reversed(list(enumerate(variable.dims))):
        if dim in chosen:
            _, _, positions, drops = chosen[dim]
            values = np.take(values, positions[0] if drops else positions, axis)
    return values


@pytest.mark.parametrize("seed", SEEDS)
def test_cat(batchfs, tmp_path, seed):
    rng = np.random.default_rng([seed, 1])
    ds = make_store(rng, tmp_path / "s.zarr")
    stored = zarr.open_group(tmp_path / "s.zarr", mode="r")
    for name, variable in sorted(ds.variables.items()):
        same(batchfs.npy("cat", tmp_path / "s.zarr", name, "--decode", "raw"), stored[name][...])
        same(batchfs.npy("cat", tmp_path / "s.zarr", name), variable.values)
        chosen = select(rng, ds, variable.dims, 0.7)
        arguments = [word for dim, (text, *_) in chosen.items()
                     for word in ("--select", f"{dim}={text}")]
        same(batchfs.npy("cat", tmp_path / "s.zarr", name, *arguments), taken(variable, chosen))


# ---- views ---------------------------------------------------------------------------------------


class View:
    """A random view of a dataset, and its batches as numpy makes them."""

    def __init__(self, rng, ds, chosen):
        self.ds, self.chosen = ds, chosen
        self.sizes = {d: len(chosen[d][2]) if d in chosen else n for d, n in ds.sizes.items()}
        self.dropped = {d for d, c in chosen.items() if c[3]}
        self.values = {n: taken(v, chosen) for n, v in ds.data_vars.items()}
        self.dims = {n: [d for d in v.dims if d not in self.dropped]
                     for n, v in ds.data_vars.items()}
        names = list(self.values)
        first = str(rng.choice([n for n in names if self.dims[n]]))
        dims = [str(d) for d in rng.permutation(self.dims[first])[
            :rng.integers(1, len(self.dims[first]) + 1)]]
        self.window = {d: self.random_window(rng, self.sizes[d]) for d in dims}
        if "lon" in self.window and "lon" in ds.coords and ds.lon.dtype.kind in "iuf":
            self.window["lon"]["wrap"] = False  # these longitudes are a part of the circle
        self.shuffle = pick(rng, "none", "global", "block")
        if any(w["edge"] == "partial" for w in self.window.values()):
            self.shuffle = "none"
        self.dtype = pick(rng, None, "float32", "float64", "float16")
        self.size = int(rng.integers(1, 9))
        self.remainder = pick(rng, "keep", "drop", "pad")
        self.fill = pick(rng, None, None, 0, -9.5)
        self.pad = pick(rng, None, 0, 3) if any(w["edge"] != "drop"
                                                for w in self.window.values()) else None
        if self.pad and any(v.dtype.kind == "b" for v in self.values.values()):
            self.pad = 1  # values outside of a type's range are refused
        floats = [n for n in names if self.values[n].dtype.kind == "f"]
        self.statistics = {n: {"mean": float(rng.normal()), "std": float(rng.random() + 0.5)}
                           for n in floats}
        self.normalizes = bool(floats) and rng.random() < 0.3
        self.tensors = {f"t{i}": t for i, t in enumerate(self.random_tensor(rng)
                                                         for _ in range(rng.integers(1, 3)))}

    @staticmethod
    def random_window(rng, n):
        size = int(rng.integers(1, max(2, n)))
        wrap = bool(rng.random() < 0.25)
        return {"size": size, "stride": int(rng.integers(1, size + 3)), "wrap": wrap,
                "edge": "drop" if wrap else pick(rng, "drop", "drop", "pad", "partial")}

    def random_tensor(self, rng):
        names = [str(n) for n in rng.permutation(list(self.values))]
        tensor = {"variables": names[:1]}
        offsets = {d: [int(o) for o in rng.integers(-2, 3, rng.integers(1, 4))]
                   for d in self.window if rng.random() < 0.3}
        if offsets:
            tensor["offsets"] = offsets
        own = self.dims[names[0]]
        if rng.random() < 0.25:
            return self.broadcast(rng, tensor, names)
        if rng.random() < 0.5:
            tensor["stack"] = "channel"
            kept = [d for d in own if d in self.window]
            if rng.random() < 0.6:
                kept = [str(d) for d in rng.permutation(own)[:rng.integers(0, len(own) + 1)]]
                tensor["dims"] = kept + ["channel"]
                rng.shuffle(tensor["dims"])
            tensor["variables"] += [
                n for n in names[1:]
                if set(kept) <= set(self.dims[n]) and self.type(n) == self.type(names[0])
                and set(d for d in self.dims[n] if d in self.window) <= set(kept + own)
                and (set(self.dims[n]) & set(self.window) <= set(kept) or "dims" in tensor)]
        elif rng.random() < 0.5 and own:
            tensor["dims"] = [str(d) for d in rng.permutation(own)]
        return tensor

    def broadcast(self, rng, tensor, names):
        """Variables of any dimensions, repeated along those of the tensor."""
        tensor["broadcast"] = True
        if rng.random() < 0.7:
            tensor["stack"] = "channel"
            tensor["variables"] = [n for n in names[:4] if self.type(n) == self.type(names[0])]
        possible = list(self.window)
        for name in tensor["variables"]:
            possible += [d for d in self.dims[name] if d not in possible]
        own = self.dims[names[0]]
        if rng.random() < 0.6:
            kept = [str(d) for d in rng.permutation(possible)]
            if "stack" in tensor:
                kept = kept[:rng.integers(0, len(kept) + 1)] + ["channel"]
                rng.shuffle(kept)
            else:
                kept = [d for d in kept if d in own or rng.random() < 0.5]
            if kept:
                tensor["dims"] = kept
        return tensor

    def type(self, name):
        decoded = self.values[name].dtype
        return (np.dtype(self.dtype) if self.dtype
                and decoded.kind == "f" else decoded.newbyteorder("="))

    def json(self):
        view = {"select": {d: c[1] for d, c in self.chosen.items()}, "window": self.window,
                "tensors": self.tensors, "batch": {"size": self.size, "remainder": self.remainder},
                "order": {"shuffle": self.shuffle, "seed": 5}, "epochs": 2}
        if self.dtype:
            view["dtype"] = self.dtype
        if self.fill is not None:
            view["missing"] = {"nan": "fill", "value": self.fill}
        if self.pad is not None:
            view["window"] = {d: {**w, "pad_value": self.pad} if w["edge"] != "drop" else w
                              for d, w in self.window.items()}
        if self.normalizes:
            view["normalize"] = {"method": "zscore", "statistics": self.statistics}
        return view

    def offsets(self, dim):
        return [o for t in self.tensors.values() for o in t.get("offsets", {}).get(dim, [0])] + [0]

    def starts(self, dim):
        w, n = self.window[dim], self.sizes[dim]
        size, stride = w["size"], w["stride"]
        least, most = min(self.offsets(dim)), max(self.offsets(dim))
        if w["wrap"]:
            return list(range(0, n, stride))
        possible = [s for s in range(0, n, stride) if s + least >= 0]
        whole = [s for s in possible if s + most + size <= n]
        rest = [s for s in possible if s not in whole and s + most < n]
        left = not whole or whole[-1] + most + size < n
        return whole + (rest[:1] if w["edge"] != "drop" and left else [])

    def samples(self):
        return list(itertools.product(*(self.starts(d) for d in self.window)))

    def sizes_of(self, rows):
        """How long the windows of a batch are."""
        sizes = {}
        for d, dim in enumerate(self.window):
            w = self.window[dim]
            inside = [self.sizes[dim] - row[d] - min(self.offsets(dim)) for row in rows]
            sizes[dim] = min(w["size"], max(inside)) if w["edge"] == "partial" else w["size"]
        return sizes

    def part(self, name, tensor, row, sizes, lacking):
        """One variable of one sample, finished but for the cast, repeated along dimensions it lacks
        as xarray does."""
        own = xr.DataArray(self.values[name], dims=self.dims[name])
        shape = {d: self.sizes[d] for d in lacking} | dict(own.sizes)
        values = xr.broadcast(own,
                              xr.DataArray(np.zeros(list(shape.values())), dims=list(shape)))[0]
        values = values.transpose(*shape).values
        padded = np.zeros(values.shape, bool)
        if self.normalizes and values.dtype.kind == "f":
            numbers = self.statistics[name]
            values = (values.astype("f8") - numbers["mean"]) / numbers["std"]
        if self.fill is not None and values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.float64(self.fill), values.astype("f8"))
        for axis, dim in enumerate(shape):
            if dim not in self.window:
                continue
            n, start = self.sizes[dim], row[list(self.window).index(dim)]
            index = np.array([start + o + i for o in tensor.get("offsets", {}).get(dim, [0])
                              for i in range(sizes[dim])])
            outside = (index >= n) & (not self.window[dim]["wrap"])
            values = np.take(values, index % n, axis)
            along = [-1 if a == axis else 1 for a in range(values.ndim)]
            padded = np.take(padded, index % n, axis) | outside.reshape(along)
        type = self.type(name)
        pad = self.pad if self.pad is not None else np.nan if type.kind in "fc" else 0
        return np.where(padded, np.array(pad).astype(type), values.astype(type))

    def tensor(self, tensor, rows):
        sizes = self.sizes_of(rows)
        out = []
        for row in rows:
            parts = []
            names = tensor["variables"]
            own = self.dims[names[0]]
            stack = tensor.get("stack")
            every = list(dict.fromkeys(d for name in names
                                       for d in self.dims[name])) if "broadcast" in tensor else own
            shared = [d for d in every
                      if d in self.window or all(d in self.dims[name] for name in names)]
            order = tensor.get("dims") or ([stack, *shared] if stack else own)
            for name in names:
                lacking = [d for d in order if d != stack and d not in self.dims[name]]
                values, dims = self.part(name, tensor, row, sizes, lacking), [
                    *lacking, *self.dims[name]]
                if stack:
                    joined = [d for d in own if d in dims and d not in order] + [
                        d for d in dims if d not in own and d not in order]
                    kept = [d for d in order if d != stack]
                    values = values.transpose([dims.index(d) for d in kept + joined])
                    values = np.moveaxis(values.reshape([*values.shape[:len(kept)], -1]), -1,
                                         order.index(stack))
                else:
                    values = values.transpose([dims.index(d) for d in order])
                parts.append(values)
            out.append(np.concatenate(parts, order.index(stack)) if stack else parts[0])
        return np.stack(out)


@pytest.mark.parametrize("seed", SEEDS)
def test_view(batchfs, tmp_path, seed):
    rng = np.random.default_rng([seed, 2])
    ds = make_store(rng, tmp_path / "s.zarr")
    chosen = select(rng, ds, sorted(ds.dims), 0.3)
    if all(set(v.dims) <= {d for d, c in chosen.items() if c[3]} for v in ds.data_vars.values()):
        chosen = {}
    if not any(v.dims for v in ds.data_vars.values()):
        return
    view = View(rng, ds, chosen)
    file = tmp_path / "view.json"
    file.write_text(json.dumps(view.json()))
    samples = view.samples()
    batches = len(samples) // view.size if view.remainder == "drop" else -(
        -len(samples) // view.size)
    if batches == 0:
        batchfs.refusal("plan", tmp_path / "s.zarr", "--view", file)
        return
    plan = json.loads(batchfs.bytes("plan", tmp_path / "s.zarr", "--view", file, "--json"))
    assert (plan["samples"], plan["batches"]) == (len(samples), batches)
    which = sorted({int(b) for b in rng.integers(0, batches, 2)} | {batches - 1})
    if view.shuffle != "none":
        which = range(min(batches, 25))
    seen = []
    for b in which:
        at = ("--view", file, "--epoch", 1, "--batch", b)
        numbers = json.loads(batchfs.bytes("batch", tmp_path / "s.zarr", *at, "--format",
                                           "json"))["samples"]
        seen += numbers
        if view.shuffle == "none":
            assert numbers == [i % len(samples) for i in range(b * view.size, (b + 1) * view.size)
                               if view.remainder == "pad" or i < len(samples)]
        if len(seen) > 3 * view.size and b != batches - 1:
            continue
        with np.load(io.BytesIO(batchfs.bytes("batch", tmp_path / "s.zarr", *at, "--format",
                                              "npz"))) as arrays:
            assert sorted(arrays) == sorted(view.tensors)
            for name, tensor in view.tensors.items():
                same(arrays[name], view.tensor(tensor, [samples[s] for s in numbers]))
    if view.shuffle != "none":
        assert len(set(seen)) == min(len(seen), len(samples)) and set(seen) <= set(range(
            len(samples)))


# ---- xbatcher ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_xbatcher(batchfs, tmp_path, seed):
    rng = np.random.default_rng([seed, 3])
    ds = make_store(rng, tmp_path / "s.zarr")
    names = [str(n) for n in sorted(ds.data_vars) if ds[n].dims and ds[n].dtype.kind != "O"]
    if not names:
        return
    names = names[:rng.integers(1, len(names) + 1)]
    data = ds[names].drop_vars(ds.coords, errors="ignore")
    dims = [str(d) for d in rng.permutation(list(data.sizes))]
    inputs = {d: int(rng.integers(1, data.sizes[d] + 1))
              for d in dims[:rng.integers(1, len(dims) + 1)]}
    form = {"input_dims": inputs}
    if overlap := {d: int(rng.integers(0, n)) for d, n in inputs.items() if rng.random() < 0.4}:
        form["input_overlap"] = overlap
    if batch := {d: int(rng.integers(1, data.sizes[d] + 1)) for d in dims if rng.random() < 0.3}:
        form["batch_dims"] = batch
    form["concat_input_dims"] = bool(rng.random() < 0.5)
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"variables": names, "xbatcher": form}))
    try:
        generator = xbatcher.BatchGenerator(data, **form)
        expected = [generator[b] for b in range(len(generator))]
    except Exception:
        batchfs.refusal("plan", tmp_path / "s.zarr", "--view", file)
        return
    plan = json.loads(batchfs.bytes("plan", tmp_path / "s.zarr", "--view", file, "--json"))
    assert plan["batches"] == len(expected)
    for b in sorted({0, len(expected) // 2, len(expected) - 1}):
        at = ("--view", file, "--batch", b, "--format", "npz")
        with np.load(io.BytesIO(batchfs.bytes("batch", tmp_path / "s.zarr", *at))) as arrays:
            for name in names:
                same(arrays[name], expected[b][name].values)
                (dims,) = [t["dims"] for t in plan["tensors"] if t["name"] == name]
                assert tuple(dims) == expected[b][name].dims
