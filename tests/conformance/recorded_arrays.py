"""Arrays with codecs whose writers need a newer Python than the tests have: recorded with the
values that their own library, or GDAL, reads. record_numbers.py and record_tiff.py write them."""

import base64
import gzip
import json
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "recorded"


class Recorder:
    def __init__(self):
        self.arrays = []

    def keep(self, name, document, chunks, values):
        """`document` is zarr.json or .zarray, `chunks` has the stored bytes of each key."""
        values = np.ascontiguousarray(values)
        values = values.astype(values.dtype.newbyteorder("="))
        self.arrays.append({"name": name, "document": document, "dtype": values.dtype.str,
                            "shape": values.shape, "values": text(values.tobytes()),
                            "chunks": {key: text(data) for key, data in sorted(chunks.items())}})

    def write(self, name):
        FOLDER.mkdir(exist_ok=True)
        data = "\n".join(json.dumps(array) for array in self.arrays).encode()
        (FOLDER / name).write_bytes(gzip.compress(data, mtime=0))
        print(len(self.arrays), "arrays")


def text(data):
    return base64.b64encode(bytes(data)).decode()


def recorded(name):
    return [json.loads(line) for line in gzip.decompress((FOLDER / name).read_bytes()).splitlines()]


def store_and_values(array, folder):
    """Writes the store into a folder. The values are those to expect."""
    name = "zarr.json" if array["document"]["zarr_format"] == 3 else ".zarray"
    (folder / name).write_text(json.dumps(array["document"]))
    for key, data in array["chunks"].items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(base64.b64decode(data))
    return np.frombuffer(base64.b64decode(array["values"]), array["dtype"]).reshape(array["shape"])
