"""HDF5's filter szip, read by references; against h5py."""

import json

import h5py
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP),
                                reason="this h5py has no szip")


def references(file, data):
    """The references of a chunked dataset, its filters as numcodecs name them."""
    properties = data.id.get_create_plist()
    filters = []
    for number in range(properties.get_nfilters()):
        code, _, values, _ = properties.get_filter(number)
        if code == h5py.h5z.FILTER_SHUFFLE:
            filters.append({"id": "shuffle", "elementsize": values[0]})
        else:
            assert code == h5py.h5z.FILTER_SZIP
            names = ("options_mask", "pixels_per_block", "bits_per_pixel", "pixels_per_scanline")
            filters.append({"id": "imagecodecs_szip"}
                           | {name: int(value) for name, value in zip(names, values, strict=True)})
    refs = {f"{data.name[1:]}/.zarray": json.dumps(
        {"zarr_format": 2, "shape": data.shape, "chunks": data.chunks, "dtype": data.dtype.str,
         "fill_value": 0, "order": "C", "compressor": None, "filters": filters})}
    for number in range(data.id.get_num_chunks()):
        chunk = data.id.get_chunk_info(number)
        assert chunk.filter_mask == 0
        index = ".".join(str(o // c) for o, c in zip(chunk.chunk_offset, data.chunks, strict=True))
        refs[f"{data.name[1:]}/{index}"] = [file, chunk.byte_offset, chunk.size]
    return refs


@pytest.fixture(scope="module")
def written(batchfs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("szip")
    smooth = np.round(100 * np.sin(np.arange(13 * 40).reshape(13, 40) / 37)) + 100
    refs = {".zgroup": json.dumps({"zarr_format": 2})}
    with h5py.File(folder / "a.h5", "w") as file:
        for dtype in ("u1", "<i2", ">i2", "<i4", "<u8", "<f4", ">f4", "<f8"):
            for method in ("nn", "ec"):
                for block, chunks in ((8, (5, 40)), (16, (4, 33)), (32, (13, 7)), (2, (1, 40))):
                    name = f"{np.dtype(dtype).str.replace('|', '')}-{method}-{block}"
                    data = file.create_dataset(name, data=smooth.astype(dtype), chunks=chunks,
                                               compression="szip", compression_opts=(method, block),
                                               shuffle=block == 16)
                    if any(data.id.get_chunk_info(i).filter_mask
                           for i in range(data.id.get_num_chunks())):
                        # chunks that szip could not compress: references cannot express them
                        continue
                    file.flush()
                    refs |= references("a.h5", data)
    (folder / "a.json").write_text(json.dumps(refs))
    done = batchfs.run("cat", folder / "a.json", "u1-nn-8")
    for why in (b"built without libaec", b"libaec.so.0, which cannot be loaded"):
        if why in done.stderr:
            pytest.skip(done.stderr.decode().strip())
    return folder


def test_values_are_those_of_h5py(batchfs, written):
    compared = 0
    with h5py.File(written / "a.h5") as file:
        for name in json.loads(batchfs.bytes("inspect", written / "a.json", "--json"))["arrays"]:
            values = batchfs.npy("cat", written / "a.json", name, "--decode", "raw")
            assert np.array_equal(values, file[name][...]), name
            compared += 1
    assert compared > 40


def test_a_damaged_chunk_is_an_error(batchfs, written, tmp_path):
    refs = json.loads((written / "a.json").read_text())
    file, offset, size = refs["<i4-nn-8/0.0"]
    refs["<i4-nn-8/0.0"] = [file, offset, size - 9]
    (written / "short.json").write_text(json.dumps(refs))
    assert "szip data are truncated or damaged" in batchfs.refusal(
        "cat", written / "short.json", "<i4-nn-8")
