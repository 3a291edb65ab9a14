"""Records arrays of scale_offset and cast_value into recorded/numbers.json.gz. Needs Python 3.12:

    pip install zarr==3.4.2 cast-value-rs==0.5.1 numpy==2.5.5
    python tests/conformance/record_numbers.py
"""

import itertools
import json
import pathlib
import tempfile
import warnings

import numpy as np
import zarr
from recorded_arrays import Recorder
from zarr.codecs import BytesCodec, CastValue, ScaleOffset, ShardingCodec, TransposeCodec, ZstdCodec

warnings.filterwarnings("ignore")
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
recorder = Recorder()


def record(name, values, written=np.s_[:4], fill=0, **options):
    """An array of zarr-python, with chunks that were never written."""
    store = {}
    array = zarr.create_array(store, shape=values.shape,
                              dtype=values.dtype, fill_value=fill, dimension_names=["y", "x"],
                              **{"chunks": (3, 2), "compressors": None,
                                 "serializer": BytesCodec(endian="little"), **options})
    array[written] = values[written]
    recorder.keep(name, json.loads(store["zarr.json"].to_bytes()),
         {key: data.to_bytes() for key, data in store.items() if key != "zarr.json"}, array[...])


def whole_numbers(dtype, low, high):
    return np.random.default_rng(np.dtype(dtype).num).integers(low, high, (7, 5)).astype(dtype)


def scale_offset():
    for dtype in INTEGERS:
        record(f"scale_offset {dtype}", whole_numbers(dtype, 2, 12), fill=3,
               filters=[ScaleOffset(offset=2, scale=5)])
        record(f"scale_offset sharded {dtype}", whole_numbers(dtype, 2, 12), fill=3, chunks=(6, 4),
               filters=[ScaleOffset(offset=1, scale=3)],
               serializer=ShardingCodec(chunk_shape=(3, 2), codecs=[BytesCodec(endian="little")]))
    for dtype in ("int8", "int64"):
        record(f"scale_offset negative {dtype}", whole_numbers(dtype, -9, 9),
               filters=[ScaleOffset(offset=-3, scale=-1)])
    for dtype in FLOATS:
        values = np.random.default_rng(1).normal(250, 30, (7, 5)).astype(dtype)
        values[0] = [np.nan, np.inf, -np.inf, 0, -0.0]
        for fill in (0.1, np.nan):
            record(f"scale_offset {dtype} {fill}", values, fill=fill,
                   filters=[ScaleOffset(offset=273.15, scale=100)])
            record(f"scale_offset sharded {dtype} {fill}", values, fill=fill, chunks=(6, 4),
                   filters=[ScaleOffset(offset=0.3, scale=0.7)], serializer=ShardingCodec(
                       chunk_shape=(3, 2), codecs=[BytesCodec(endian="big"), ZstdCodec()]))
    record("scale_offset none", whole_numbers("int16", 0, 9), filters=[ScaleOffset()])
    record("scale_offset nan", np.ones((7, 5), "f4"),
           filters=[ScaleOffset(offset="NaN", scale="Infinity")])


def cast_value():
    for array, stored in itertools.product(INTEGERS + FLOATS, INTEGERS + FLOATS):
        low = 0 if "u" in array or "u" in stored else -100
        values = whole_numbers(array, low, 100)
        if array in FLOATS:
            values[:3] += np.array([0.25, 0.5, 0.75, 0.5, 0.1]).astype(array)
        record(f"cast_value {array} {stored}", values, fill=7,
               filters=[CastValue(data_type=stored)])
    halves = np.arange(-17, 18).reshape(7, 5) / 2
    for rounding in ("nearest-even", "towards-zero", "towards-positive", "towards-negative",
                     "nearest-away"):
        # Stored without rounding, so that the decoder must round.
        for array, stored, values in (
                ("int8", "float64", halves),
                ("float32", "float64", np.linspace(-1e-3, 1, 35).reshape(7, 5)),
                ("float16", "float64", np.linspace(-60000, 60000, 35).reshape(7, 5)),
                ("float16", "float32", np.ldexp(1 + np.arange(35).reshape(7, 5) / 4096, -3)),
                ("float32", "int64", 2**24 * 2 + np.arange(35).reshape(7, 5)),
                ("float32", "uint64", 2**64 - 1 - 2**38 * np.arange(35, dtype="u8").reshape(7, 5)),
                ("float64", "int64", -2**54 + np.arange(35).reshape(7, 5))):
            stored_as(f"cast_value rounds {array} {stored} {rounding}", array,
                      values.astype(stored), {"rounding": rounding})
    wide = np.array([300, -300, 128, 127, -128, -129, 2**31, -2**31, 2**32, 2**40 + 5, 0, -1, 255,
                     256, 65535, 65536, 7, 8])
    for mode, array in itertools.product(("clamp", "wrap"), INTEGERS[:6]):
        for stored in ("int64", "float32", "float64"):
            stored_as(f"cast_value {mode} {array} {stored}", array,
                      wide.reshape(6, 3).astype(stored), {"out_of_range": mode})
    huge = np.array([1e300, -1e300, 65519, 65520, 1e5, -1e5, 2.0**63, -2.0**63, 2.0**64, 3e38,
                     3.5e38, np.inf, -np.inf, np.nan, -0.0, 5e-324])
    for array in ("float16", "float32"):
        stored_as(f"cast_value clamp {array}", array, huge.reshape(4, 4), {"out_of_range": "clamp"})
    for array in ("int64", "uint64"):
        for mode in ("clamp", "wrap"):
            stored_as(f"cast_value {mode} {array}", array, huge[:11].reshape(1, 11),
                      {"out_of_range": mode})
    data = np.array([[1.5, np.nan, np.inf], [-np.inf, 3, 300]])
    maps = {"encode": [["NaN", -32768], ["Infinity", 32767], ["-Infinity", -32767]],
            "decode": [[-32768, "NaN"], [32767, "Infinity"], [-32767, "-Infinity"]]}
    for dtype in FLOATS:
        record(f"scalar_map {dtype}", data.astype(dtype), written=np.s_[:1], chunks=(1, 2),
               fill=np.nan, filters=[CastValue(data_type="int16", scalar_map=maps)])
        record(f"scalar_map sharded {dtype}", data.astype(dtype), written=np.s_[:1], chunks=(2, 4),
               fill=np.nan, filters=[CastValue(data_type="int16", scalar_map=maps)],
               serializer=ShardingCodec(chunk_shape=(1, 2), codecs=[BytesCodec(endian="little")]))
    record("scalar_map of integers", whole_numbers("int32", 0, 9), fill=4,
           filters=[CastValue(data_type="uint8", scalar_map={"encode": [[3, 200], [4, 201]],
                                                             "decode": [[200, -7], [201, 70000]]})])
    packed = np.random.default_rng(1).normal(0.2, 0.1, (7, 5))
    for dtype, order in itertools.product(("float32", "float64"), ((0, 1), (1, 0))):
        record(f"packed {dtype} {order}", packed.astype(dtype), fill=np.nan,
               compressors=[ZstdCodec()],
               filters=[ScaleOffset(offset=-0.1, scale=10000), TransposeCodec(order=order),
                        CastValue(data_type="uint16", rounding="nearest-even", out_of_range="clamp",
                                  scalar_map={"encode": [["NaN", 0]], "decode": [[0, "NaN"]]})])


def stored_as(name, array, stored, configuration):
    """An array of one chunk whose stored numbers are these, as no encoder would make them."""
    document = {"zarr_format": 3, "node_type": "array", "shape": stored.shape, "data_type": array,
                "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": stored.shape}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "attributes": {},
                "codecs": [{"name": "cast_value",
                            "configuration": {"data_type": str(stored.dtype), **configuration}},
                           {"name": "bytes", "configuration": {"endian": "little"}}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "zarr.json").write_text(json.dumps(document))
        (path / "c/0").mkdir(parents=True)
        (path / "c/0/0").write_bytes(stored.tobytes())
        try:
            values = zarr.open_array(path, mode="r")[...]
        except ValueError:  # "wrap" that the stored type does not allow, or an infinity
            return
        recorder.keep(name, document, {"c/0/0": stored.tobytes()}, values)


scale_offset()
cast_value()
recorder.write("numbers.json.gz")
