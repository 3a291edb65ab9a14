"""GRIB messages in reference sets of kerchunk's: values equal those of kerchunk's codec, to the
last byte."""

import io
import json
import struct

import numpy as np
import PIL.Image
import pytest

pytest.importorskip("kerchunk", reason="tools/dependencies test installs kerchunk")
eccodes = pytest.importorskip("eccodes", reason="tools/dependencies test installs eccodes")
from kerchunk.codecs import GRIBCodec  # noqa: E402

NI, NJ = 11, 7
PACKINGS = ["grid_simple", "grid_complex", "grid_complex_spatial_differencing", "grid_ieee",
            "grid_jpeg", "grid_png", "grid_ccsds"]


@pytest.fixture(scope="module", autouse=True)
def built_with_eccodes(batchfs, tmp_path_factory):
    done = batchfs.run("cat", array(tmp_path_factory.mktemp("probe") / "a", message()), "/")
    for why in (b"built without ecCodes", b"libeccodes.so.0, which cannot be loaded"):
        if why in done.stderr:
            pytest.skip(done.stderr.decode().strip())


def field():
    y, x = np.mgrid[:NJ, :NI]
    return 280 + 15 * np.sin(x / 3) * np.cos(y / 2)


def message(packing="grid_simple", edition=2, values=None, missing=None, **keys):
    if packing == "grid_png":  # which this ecCodes does not write
        return as_png(message(edition=edition, values=values, missing=missing, bitsPerValue=8,
                              **keys))
    handle = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
    eccodes.codes_set(handle, "Ni", NI)
    eccodes.codes_set(handle, "Nj", NJ)
    for key, value in {
            "latitudeOfFirstGridPointInDegrees": 30.0, "longitudeOfFirstGridPointInDegrees": 10.0,
            "latitudeOfLastGridPointInDegrees": 30.0 - (NJ - 1),
            "longitudeOfLastGridPointInDegrees": 10.0 + NI - 1, "iDirectionIncrementInDegrees": 1.0,
            "jDirectionIncrementInDegrees": 1.0, "bitsPerValue": 16, **keys}.items():
        eccodes.codes_set(handle, key, value)
    if missing is not None:
        eccodes.codes_set(handle, "bitmapPresent", 1)
        eccodes.codes_set(handle, "missingValue", missing)
    eccodes.codes_set_values(handle, np.asarray(field() if values is None else values).ravel())
    eccodes.codes_set(handle, "packingType", packing)
    data = eccodes.codes_get_message(handle)
    eccodes.codes_release(handle)
    return data


def changed(data, at, value):
    return data[:at] + value + data[at + len(value):]


def section(data, number):
    at = 16
    while data[at + 4] != number:
        at += int.from_bytes(data[at:at + 4], "big")
    return at


def as_png(plain):
    """A message of simple packing, its values of 8 bits as an image: FM 92 GRIB, data
    representation template 41."""
    packing, data = section(plain, 5), section(plain, 7)
    image = io.BytesIO()
    PIL.Image.frombytes("L", (NI, NJ), plain[data + 5:-4]).save(image, "png")
    packed = struct.pack(">IB", 5 + len(image.getvalue()), 7) + image.getvalue() + b"7777"
    head = changed(plain[:data], packing + 9, struct.pack(">H", 41))
    return changed(head, 8, struct.pack(">Q", data + len(packed))) + packed


def array(path, data, var="t2m", dtype="float64", shape=(NJ, NI), numpy_type=None):
    path.mkdir(parents=True, exist_ok=True)
    document = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": numpy_type
                    or np.dtype(dtype).str, "order": "C", "fill_value": None, "compressor": None,
                "filters": [{"id": "grib", "var": var, "dtype": dtype}]}
    (path / ".zarray").write_text(json.dumps(document))
    (path / ".".join("0" * len(shape))).write_bytes(data)
    return path


def check(batchfs, path, data, var="t2m", dtype="float64"):
    expected = np.asarray(GRIBCodec(var, dtype).decode(data)).reshape(NJ, NI)
    ours = batchfs.npy("cat", array(path, data, var, dtype), "/", "--decode", "raw")
    assert ours.dtype == expected.dtype and ours.tobytes() == expected.tobytes()
    return ours


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("edition, packing",
                         [(2, packing) for packing in PACKINGS] + [(1, "grid_simple")])
def test_values(batchfs, tmp_path, edition, packing, dtype):
    ours = check(batchfs, tmp_path / "a", message(packing, edition), dtype=dtype)
    assert np.allclose(ours, field(), atol=0.1 if packing == "grid_png" else 0.02)


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.parametrize("var", ["latitude", "longitude"])
def test_places(batchfs, tmp_path, edition, var):
    ours = check(batchfs, tmp_path / "a", message(edition=edition), var)
    assert ours[0, 0] == (30 if var == "latitude"
                          else 10) and ours[-1, -1] == (24 if var == "latitude" else 20)


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.parametrize("missing", [9999, -999])
def test_missing_values(batchfs, tmp_path, missing, edition):
    values = field()
    values[2:4, 3:] = missing
    ours = check(batchfs, tmp_path / "a", message(values=values, missing=missing, edition=edition))
    assert np.isnan(ours[2:4, 3:]).all() and np.isnan(ours).sum() == 2 * (NI - 3)


def test_a_constant_field(batchfs, tmp_path):
    for packing in "grid_simple", "grid_jpeg", "grid_ccsds":
        check(batchfs, tmp_path / packing, message(packing, values=np.full((NJ, NI), 3.5)))


def test_a_set_that_kerchunk_made(batchfs, tmp_path):
    from kerchunk.combine import MultiZarrToZarr
    pytest.importorskip("cfgrib", reason="tools/dependencies test installs cfgrib")
    from kerchunk.grib2 import scan_grib
    with open(tmp_path / "t.grib2", "wb") as file:
        for step in range(3):
            file.write(message(values=field() + step, stepRange=step, shortName="2t"))
    sets = scan_grib(str(tmp_path / "t.grib2"))
    combined = MultiZarrToZarr(sets, concat_dims=["step"],
                               identical_dims=["latitude", "longitude"]).translate()
    (tmp_path / "t.json").write_text(json.dumps(combined))
    listed = json.loads(batchfs.bytes("inspect", tmp_path / "t.json", "--json"))["arrays"]
    name = next(name for name, entry in listed.items() if len(entry["shape"]) == 3)
    assert not any("unsupported" in entry for entry in listed.values())
    import xarray as xr
    with xr.open_dataset("reference://", engine="zarr", decode_cf=False, backend_kwargs={
            "consolidated": False, "storage_options": {"fo": combined}}) as oracle:
        expected = oracle[name].values
    assert batchfs.npy("cat", tmp_path / "t.json", name, "--decode",
                       "raw").tobytes() == expected.tobytes()
    report = json.loads(batchfs.bytes("check", tmp_path / "t.json", "--json"))
    assert not report["findings"]


def test_view_decodes_on_the_cpu(batchfs, tmp_path):
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    array(tmp_path / "a", message())
    (tmp_path / "a/.zattrs").write_text('{"_ARRAY_DIMENSIONS": ["y", "x"]}')
    (tmp_path / "v.json").write_text('{"window": {"y": 1}, "variables": ["a"]}')
    assert np.load(io.BytesIO(batchfs.bytes("batch", tmp_path, "--view",
                                            tmp_path / "v.json"))).shape[-1] == NI


# ---- messages that mean harm ----

HOSTILE = {
    "empty": lambda m: b"",
    "cut": lambda m: m[:-20],
    "longer": lambda m: m + bytes(8),
    "not-grib": lambda m: b"X" + m[1:],
    "edition-3": lambda m: changed(m, 7, b"\3"),
    "total-length": lambda m: changed(m, 8, b"\xff" * 8),
    "section-length": lambda m: changed(m, section(m, 3), b"\xff\xff\xff\xff"),
    "section-of-0": lambda m: changed(m, section(m, 4), bytes(4)),
    "points": lambda m: changed(m, section(m, 3) + 6, b"\x7f\xff\xff\xff"),
    "columns": lambda m: changed(m, section(m, 3) + 30, b"\x7f\xff\xff\xff"),
    "values": lambda m: changed(m, section(m, 5) + 5, b"\x7f\xff\xff\xff"),
    "bits": lambda m: changed(m, section(m, 5) + 19, b"\xff"),
    "template": lambda m: changed(m, section(m, 5) + 9, b"\0\x32"),
    "no-data": lambda m: changed(m, section(m, 7) + 4, b"\1"),
}


@pytest.mark.parametrize("harm", HOSTILE)
@pytest.mark.parametrize("packing", ["grid_simple", "grid_complex_spatial_differencing",
                                     "grid_jpeg", "grid_png"])
def test_hostile_messages_are_refused_before_they_are_decoded(batchfs, tmp_path, packing, harm):
    line = batchfs.refusal("cat", array(tmp_path / "a", HOSTILE[harm](message(packing))), "/")
    assert "GRIB" in line and "ecCodes" not in line, line


def test_images_of_other_sizes(batchfs, tmp_path):
    for packing, at in (("grid_jpeg", 8), ("grid_png", 16)):
        data = message(packing)
        data = changed(data, section(data, 7) + 5 + at, b"\0\1\0\0")
        assert "an image of 65536 x" in batchfs.refusal("cat", array(tmp_path / packing, data), "/")


def test_packings_that_are_refused_by_name(batchfs, tmp_path):
    line = batchfs.refusal("cat", array(tmp_path / "a", message("grid_second_order", 1)), "/")
    assert "second-order packing" in line and "grib_set -r -s packingType=grid_simple" in line


@pytest.mark.parametrize("at, value", [(22, b"\0"), (22, b"\7"), (23, b"\0\0"), (23, b"\xff\xff"),
                                       (19, b"\x40")])
def test_numbers_of_ccsds_that_libaec_cannot_take(batchfs, tmp_path, at, value):
    data = message("grid_ccsds")
    line = batchfs.refusal("cat",
                           array(tmp_path / "a", changed(data, section(data, 5) + at, value)), "/")
    assert "CCSDS blocks of" in line


def test_another_shape_than_the_chunks(batchfs, tmp_path):
    line = batchfs.refusal("cat", array(tmp_path / "a", message(), shape=(NJ, NI + 1)), "/")
    assert "it has 77 points, the chunk has 84" in line
    line = batchfs.refusal("cat", array(tmp_path / "b", message(edition=1), shape=(NJ, NI + 1)),
                           "/")
    assert "77 values, 84 were expected" in line


@pytest.mark.parametrize("edition, packing", [(2, p) for p in PACKINGS] + [(1, "grid_simple")])
def test_damage_ends_in_order(batchfs, tmp_path, edition, packing):
    """Each byte of some: values, or one line."""
    data = message(packing, edition)
    random = np.random.default_rng(1)
    for at in random.choice(len(data), 12, replace=False):
        done = batchfs.run("cat",
                           array(tmp_path / "a", changed(data, int(at), bytes([data[at] ^ 0xff]))),
                           "/")
        # libpng prints its own messages
        lines = [line for line in done.stderr.splitlines() if not line.startswith(b"libpng")]
        assert done.returncode in (0, 1) and len(lines) <= 1, (at, done)
