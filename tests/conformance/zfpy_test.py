"""The codec zfpy, against numcodecs and zfpy."""

import json

import numpy as np
import pytest
import zarr

pytest.importorskip("zfpy", reason="tools/dependencies test installs zfpy")
from numcodecs.zfpy import ZFPY  # noqa: E402

ACCURACY, PRECISION, RATE = 4, 3, 2
MODES = {"accuracy": ZFPY(ACCURACY, tolerance=1e-3), "precision": ZFPY(PRECISION, precision=14),
         "rate": ZFPY(RATE, rate=9)}


@pytest.fixture(scope="module", autouse=True)
def built_with_zfp(batchfs, tmp_path_factory):
    path = tmp_path_factory.mktemp("probe")
    zarr.create_array(path, shape=(4,), chunks=(4,), dtype="f4", zarr_format=2,
                      compressors=MODES["accuracy"], fill_value=0)
    done = batchfs.run("cat", path, "/")
    for why in (b"built without zfp", b"libzfp.so.1, which cannot be loaded"):
        if why in done.stderr:
            pytest.skip(done.stderr.decode().strip())


def field_of(shape, dtype):
    field = 100 * np.sin(np.arange(np.prod(shape)).reshape(shape) / 7)
    return field.astype(dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "<i8"])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("shape, chunks", [((11,), (5,)), ((7, 9), (4, 3)), ((5, 6, 7), (2, 6, 4)),
                                           ((3, 4, 5, 6), (2, 3, 5, 4)), ((9, 1), (9, 1))], ids=str)
def test_values(batchfs, tmp_path, zarr_format, dtype, mode, shape, chunks):
    if np.dtype(dtype).kind == "i" and mode == "accuracy":
        pytest.skip("zfp has no accuracy mode for integers")
    if zarr_format == 2:
        options = {"compressors": MODES[mode]}
    else:
        from numcodecs import zarr3
        config = MODES[mode].get_config()
        options = {"serializer": zarr3.ZFPY(**{k: v for k, v in config.items()
                                               if k not in ("id", "compression_kwargs")}),
                   "compressors": None}
    array = zarr.create_array(tmp_path, shape=shape, chunks=chunks, dtype=dtype,
                              zarr_format=zarr_format, fill_value=3, **options)
    written = tuple(slice(0, n) for n in chunks)  # the other chunks are missing
    array[written] = np.ascontiguousarray(field_of(shape, dtype)[written])
    oracle = zarr.open_array(tmp_path, mode="r")[...]
    ours = batchfs.npy("cat", tmp_path, "/", "--decode", "raw")
    assert ours.dtype == oracle.dtype and ours.tobytes() == oracle.tobytes()


def stored(path, data, shape=(8, 8), dtype="<f4"):
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(
        {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "order": "C",
         "fill_value": 0, "filters": None, "compressor": MODES["accuracy"].get_config()}))
    (path / ".".join("0" * len(shape))).write_bytes(data)
    return path


def test_damage_ends_in_order(batchfs, tmp_path):
    data = bytes(MODES["accuracy"].encode(field_of((8, 8), "<f4")))
    assert batchfs.npy("cat", stored(tmp_path / "good", data), "/").shape == (8, 8)
    for name, bad in {"empty": b"", "head": data[:12],
                      "half": data[:len(data) // 2 // 8 * 8], "magic": b"x" + data[1:],
                      "other-shape": bytes(MODES["accuracy"].encode(field_of((8, 9), "<f4"))),
                      "turned": bytes(MODES["accuracy"].encode(field_of((16, 4), "<f4"))),
                      "other-type": bytes(MODES["accuracy"].encode(field_of((8, 8), "<f8"))),
                      "long": data + bytes(100_000)}.items():
        line = batchfs.refusal("cat", stored(tmp_path / name, bad), "/")
        assert "zfp data" in line or "bytes or more" in line, line


def test_other_types_are_refused_by_name(batchfs, tmp_path):
    assert "'zfpy' on values of the type float16" in batchfs.refusal(
        "cat", stored(tmp_path / "a", b"", dtype="<f2"), "/")
    assert "'zfpy' on big-endian values" in batchfs.refusal(
        "cat", stored(tmp_path / "b", b"", dtype=">f4"), "/")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape, chunks", [((5, 6, 7), (2, 6, 4)), ((3, 4, 5, 6), (2, 3, 5, 4))],
                         ids=str)
def test_members_of_an_ensemble(batchfs, tmp_path, shape, chunks):
    """An array that is seen with one more dimension; what zfp says of shapes has none."""
    dims = list("abcd")[:len(shape)]
    for i in range(2):
        group = zarr.open_group(tmp_path / f"m{i}.zarr", mode="w", zarr_format=2)
        array = group.create_array("v", shape=shape, chunks=chunks, dtype="f4",
                                   compressors=MODES["precision"], fill_value=0)
        array.attrs["_ARRAY_DIMENSIONS"] = dims
        array[...] = field_of(shape, "f4") + i
    oracle = np.stack([zarr.open_array(tmp_path / f"m{i}.zarr/v", mode="r")[...] for i in range(2)])
    (tmp_path / "view.json").write_text(
        json.dumps({"sources": {"e": {"store": "e", "concat": {"dim": "member"}}},
                    "window": {"a": 1}, "batch": 100}))
    made = batchfs.npy("batch", tmp_path / "m0.zarr", "--store", f"e={tmp_path}/m{{0..1}}.zarr",
                       "--view", tmp_path / "view.json", "--format", "npy")
    assert np.array_equal(made, np.stack([oracle[:, i:i + 1] for i in range(shape[0])]))
