"""Arrays of which only the metadata is stored."""

import json


def sparse_store(path, shape, chunks, compressor=None):
    """A group with one array, `t` over time and x."""
    (path / "t").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    (path / "t" / ".zarray").write_text(
        json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<f4",
                    "compressor": compressor, "fill_value": 0, "filters": None, "order": "C"}))
    (path / "t" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["time", "x"]}')
    return path
