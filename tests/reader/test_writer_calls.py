"""Calls of libbatchfs_writer as a careless program makes them; and values in every layout."""

import ctypes
import json
import os
import pathlib
import re
import signal
import threading
import traceback

import numpy as np
import pytest

from prediction_stores import GRID, T, open_, view_of
from prediction_stores import store, truth  # noqa: F401 (fixtures)
from watching import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("BATCHFS",
                                      "build/batchfs")).resolve().parent / "libbatchfs_writer.so"
HEADER = (ROOT / "tools/writer/batchfs_writer.h").read_text()
ERROR_SIZE = 2048
EINVAL = 22

pytestmark = pytest.mark.skipif("BATCHFS_SANITIZER_REPORTS" in os.environ,
                                reason="the program would need the sanitizer's runtime")

TEXT, TEXTS = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)
FIELDS = [("size", ctypes.c_size_t), ("part", TEXT), ("tensors", TEXTS), ("name", TEXT),
          ("names", TEXTS), ("overlap", TEXT), ("time", TEXT), ("reduce", TEXT), ("dtype", TEXT),
          ("chunks", TEXT), ("shards", TEXT), ("codec", TEXT), ("denormalize", ctypes.c_int32),
          ("threads", ctypes.c_int32), ("memory", ctypes.c_uint64), ("rank", ctypes.c_int64),
          ("world", ctypes.c_int64), ("epoch", ctypes.c_int64), ("store_options", TEXTS)]


class Options(ctypes.Structure):
    _fields_ = FIELDS


class Failed(Exception):
    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


class Library:
    """The functions, with errors as exceptions."""

    def __init__(self):
        self.c = ctypes.CDLL(str(LIBRARY))
        self.c.batchfs_writer_version.restype = TEXT

    def call(self, name, *arguments):
        error = ctypes.create_string_buffer(b"x" * (ERROR_SIZE + 8), ERROR_SIZE + 16)
        code = getattr(self.c, "batchfs_writer_" + name)(*arguments, error)
        assert error.raw[ERROR_SIZE:] == b"x" * 8 + b"\0" * 8  # nothing is written after the buffer
        if code != 0:
            assert error.value
            raise Failed(code, error.value.decode())
        assert error.value == b""

    def create(self, store, view, out, **options):
        given = Options(size=ctypes.sizeof(Options))
        for key, value in options.items():
            if isinstance(value, str):
                value = value.encode()
            if isinstance(value, list):
                value = (ctypes.c_char_p * (len(value) + 1))(*(one.encode() for one in value), None)
                value = ctypes.cast(value, TEXTS)
            setattr(given, key, value)
        writer = ctypes.c_void_p(1)
        try:
            self.call("create", str(store).encode(), view.encode(), str(out).encode(),
                      ctypes.byref(given), ctypes.byref(writer))
        except Failed:
            assert writer.value is None
            raise
        return Writer(self, writer)


class Writer:
    def __init__(self, library, writer):
        self.library, self.writer = library, writer

    def numbers(self, function, *arguments):
        count = ctypes.c_size_t()
        self.library.call(function, self.writer, *arguments, None, ctypes.c_size_t(0),
                          ctypes.byref(count))
        values = np.full(count.value + 1, -7, np.int64)
        self.library.call(function, self.writer, *arguments, values.ctypes.data_as(ctypes.c_void_p),
                          count, ctypes.byref(count))
        assert values[-1] == -7
        return values[:-1]

    def remaining(self):
        return self.numbers("remaining")

    def samples(self, batch):
        return self.numbers("batch_samples", ctypes.c_int64(batch))

    def write(self, samples, values, dtype=None, tensor=None, strides=True):
        samples = np.ascontiguousarray(samples, np.int64)
        steps = (ctypes.c_int64 * values.ndim)(*values.strides)
        self.library.call("write", self.writer, tensor, samples.ctypes.data_as(ctypes.c_void_p),
                          ctypes.c_size_t(len(samples)), ctypes.c_void_p(values.ctypes.data),
                          (dtype or values.dtype.name).encode(), steps if strides else None)

    def samples_of_epoch(self):
        return self.numbers("samples")

    def shape(self, samples, tensor=None):
        samples = np.ascontiguousarray(samples, np.int64)
        return self.numbers("shape", tensor, samples.ctypes.data_as(ctypes.c_void_p),
                            ctypes.c_size_t(len(samples))).tolist()

    def done(self):
        count = ctypes.c_size_t()
        self.library.call("done", self.writer, None, ctypes.c_size_t(0), ctypes.byref(count))
        values = np.full(count.value + 1, 9, np.uint8)
        self.library.call("done", self.writer, values.ctypes.data_as(ctypes.c_void_p), count,
                          ctypes.byref(count))
        assert values[-1] == 9
        return values[:-1].tolist()

    def describe(self):
        size = ctypes.c_size_t()
        self.library.call("describe", self.writer, None, ctypes.c_size_t(0), ctypes.byref(size))
        for capacity in (size.value, size.value + 1):  # the NUL has to fit, too
            text = ctypes.create_string_buffer(b"x" * size.value, size.value + 9)
            self.library.call("describe", self.writer, text, ctypes.c_size_t(capacity),
                              ctypes.byref(size))
            if capacity == size.value:
                assert text.value == b"x" * size.value
        assert len(text.value) == size.value
        return json.loads(text.value)

    def suspend(self):
        self.library.call("suspend", self.writer)

    def missing(self):
        count = ctypes.c_uint64(99)
        self.library.call("missing", self.writer, ctypes.byref(count))
        return count.value

    def finished(self):
        return self.library.c.batchfs_writer_finished(self.writer)

    def close(self):
        self.library.call("close", self.writer)

    def free(self):
        self.library.c.batchfs_writer_free(self.writer)
        self.writer = None


@pytest.fixture
def library():
    return Library()


PRESSURE = json.dumps(view_of({"time": 1}, variables=["p"]))


def test_the_header_says_which_version_it_is(library):
    version = ".".join(re.search(rf"VERSION_{part} (\d+)", HEADER)[1]
                       for part in ("MAJOR", "MINOR", "PATCH"))
    assert library.c.batchfs_writer_version().decode() == version
    assert re.search(r"project\(batchfs VERSION (\S+)",
                     (ROOT / "CMakeLists.txt").read_text())[1] == version
    assert f"BATCHFS_WRITER_ERROR_SIZE {ERROR_SIZE}" in HEADER
    struct = HEADER[HEADER.index("typedef struct batchfs_writer_options"):HEADER.index(
        "} batchfs_writer_options")]
    assert re.findall(r"(\w+);",
                      re.sub(r"/\*.*?\*/", "", struct, flags=re.S)) == [name for name, _ in FIELDS]


def test_values_of_every_layout_and_type(library, store, truth, tmp_path):
    """The view is passed as text."""
    p = truth.p.values
    writer = library.create(store, PRESSURE, tmp_path / "o")
    assert (writer.remaining().tolist() == [0, 1, 2, 3] and writer.missing() == T
            and not writer.finished())
    assert writer.samples(3).tolist() == [15, 16, 17, 18, 19]
    writer.write(np.arange(4), p[:4, None])
    writer.write(np.arange(4, 8), p[4:8, None], strides=False)
    writer.write([9, 8], p[9:7:-1][:, None, ::1])  # backwards in memory
    writer.write(np.arange(10, 13), np.asfortranarray(p[10:13, None]))
    writer.write([13], np.repeat(p[13:14, None], 2, axis=-1)[..., ::2])
    writer.write([14], p[14:15, None].astype("f8"))
    with np.errstate(over="ignore"):
        writer.write([15], p[15:16, None].astype("f2"))
    bits = (p[16:17, None].view("u4") >> 16).astype("u2")
    writer.write([16], bits, "bfloat16")
    writer.write([17], p[17:18, None].astype("i2"))
    writer.write([18], np.broadcast_to(np.float32(5), (1, 1, 26, 36)))
    assert eventually(lambda: writer.missing() == 1) and writer.remaining().tolist() == [3]
    writer.write([19, 19], np.stack([p[19:20], p[19:20]]))  # as in a batch that repeats samples
    writer.close()
    writer.close()
    assert writer.finished() and writer.missing() == 0 and writer.remaining().tolist() == []
    writer.free()
    with np.errstate(over="ignore"):
        expected = np.concatenate([p[:15], p[15:16].astype("f2"),
                                   (p[16:17].view("u4") >> 16 << 16).view("f4"),
                                   p[17:18].astype("i2"), np.full_like(p[18:19], 5), p[19:]])
    assert np.array_equal(open_(tmp_path / "o").p.values, expected)


@pytest.mark.parametrize("started", [False, True], ids=["fresh", "after-work"])
def test_forked_processes_scan_and_encode(library, store, truth, tmp_path, started):
    """Workers do not survive a fork: each process starts its own, also where its parent had some,
    and the parent continues."""
    # a scan finds the samples
    view = json.dumps(view_of({"time": 1}, variables=["p"], missing={"nan": "skip"}))

    def write_all(out):
        writer = library.create(store, view, out, threads=3)
        for batch in writer.remaining():
            samples = writer.samples(batch)
            writer.write(samples, truth.p.values[samples][:, None])
        writer.close()
        assert writer.finished()
        writer.free()

    if started:
        write_all(tmp_path / "before")
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(120)  # a child that waits for ever
            try:
                write_all(tmp_path / f"child-{number}")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    write_all(tmp_path / "after")
    for out in ["child-0", "child-1", "child-2", "after"]:
        assert np.array_equal(open_(tmp_path / out).p.values, truth.p.values)


def test_windows_that_end_early(library, store, truth, tmp_path):
    view = view_of({"time": 1, "lat": {"size": 8, "edge": "partial"}}, variables=["p"],
                   batch={"size": 1})
    (tmp_path / "view.json").write_text(json.dumps(view))
    writer = library.create(store, str(tmp_path / "view.json"), tmp_path / "o", codec="gzip:3")
    for batch in writer.remaining():
        time, lat = divmod(int(batch), 4)
        assert writer.samples(batch).tolist() == [batch]
        writer.write([batch], truth.p.values[None, time:time + 1, 8 * lat:8 * lat + 8],
                     strides=lat != 3)
    writer.close()
    assert np.array_equal(open_(tmp_path / "o").p.values, truth.p.values)
    writer.free()


def test_the_output_is_described(library, store, truth, tmp_path):
    view = json.dumps(view_of({"time": 1, "lat": {"size": 8, "edge": "partial"}}, variables=["t"],
                              batch={"size": 1}))
    writer = library.create(store, view, tmp_path / "o", name="temperature", dtype="float64")
    assert writer.describe() == {"dims": ["time", "lat"], "arrays": [
        {"name": "temperature", "tensor": "t",
         "tensor_dims": ["sample", "time", "level", "lat", "lon"], "dtype": "float64",
         "dims": ["time", "level", "lat", "lon"], "shape": [T, 2, 26, 36]}]}
    assert writer.samples_of_epoch().tolist() == list(range(4 * T))
    starts = writer.numbers("starts").reshape(-1, 2)
    assert starts.tolist() == [[time, lat] for time in range(T) for lat in (0, 8, 16, 24)]
    # 26 rows: the last window has 2
    assert writer.shape([0]) == [1, 1, 2, 8, 36] and writer.shape([3], b"t") == [1, 1, 2, 2, 36]
    with pytest.raises(Failed, match="nothing for the tensor 'z'"):
        writer.shape([0], b"z")
    with pytest.raises(Failed, match="numbers of the samples are needed"):
        library.call("shape", writer.writer, None, None, ctypes.c_size_t(1), None,
                     ctypes.c_size_t(0), ctypes.byref(ctypes.c_size_t()))
    with pytest.raises(Failed, match="a place for the text"):
        library.call("describe", writer.writer, None, ctypes.c_size_t(8),
                     ctypes.byref(ctypes.c_size_t()))
    writer.free()


def test_a_suspended_output_goes_on(library, store, truth, tmp_path):
    """Chunks of four steps, of which three are written; the rank is free at once, and the parts
    count."""
    values = truth.p.values[:, None]
    writer = library.create(store, PRESSURE, tmp_path / "o", chunks="time=4,lat=-1,lon=-1")
    writer.write(np.arange(3), values[:3])
    assert writer.done() == [0] * T
    writer.suspend()
    writer.suspend()
    writer.close()  # does nothing: the output is not finished
    assert not writer.finished() and writer.done() == [1] * 3 + [0] * (T - 3)
    with pytest.raises(Failed, match="closed"):
        writer.write([3], values[3:4])
    again = library.create(store, PRESSURE, tmp_path / "o", chunks="time=4,lat=-1,lon=-1")
    again.write(np.arange(3, T), values[3:])
    again.close()
    again.suspend()
    assert again.done() == [1] * T and writer.finished()
    assert np.array_equal(open_(tmp_path / "o").p.values, truth.p.values)
    writer.free()
    again.free()


def test_threads_share_a_writer(library, store, truth, tmp_path):
    view = json.dumps(view_of(GRID, variables=["t"], order={"shuffle": "global"}))
    writer = library.create(store, view, tmp_path / "o", overlap="trim", memory=30_000,
                            chunks="lat=26,lon=36")
    batches = list(writer.remaining())
    lats, lons = np.arange(0, 19, 6), np.arange(0, 29, 7)

    def work():
        while True:
            try:
                batch = batches.pop()
            except IndexError:
                return
            samples = writer.samples(batch)
            values = []
            for sample in samples:
                time, place = divmod(int(sample), len(lats) * len(lons))
                lat, lon = lats[place // len(lons)], lons[place % len(lons)]
                values.append(truth.t.values[time:time + 1, :, lat:lat + 8, lon:lon + 8])
            writer.write(samples, np.stack(values))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert np.array_equal(open_(tmp_path / "o").t.values, truth.t.values)
    writer.free()


def test_options_that_are_lists(library, store, truth, tmp_path):
    view = json.dumps(view_of({"time": 1}, variables=["t", "p", "kind"]))
    writer = library.create(store, view, tmp_path / "o", tensors=["p", "kind"],
                            names=["p", "pressure", "kind", "class"],
                            store_options=["--threads=1", "--memory=64M"])
    with pytest.raises(Failed, match="several tensors are passed by name: kind, p"):
        writer.write([0], truth.p.values[:1, None])
    with pytest.raises(Failed, match="nothing for the tensor 't'; it has kind, p"):
        writer.write([0], truth.t.values[:1], tensor=b"t")
    writer.write(np.arange(T), truth.p.values[:, None], tensor=b"p")
    writer.write(np.arange(T), truth.kind.values[:, None], tensor=b"kind")
    writer.close()
    written = open_(tmp_path / "o")
    assert (np.array_equal(written["pressure"].values, truth.p.values)
            and np.array_equal(written["class"].values, truth.kind.values))
    writer.free()
    with pytest.raises(Failed, match="names: 'kind' has no name of an array behind it"):
        library.create(store, view, tmp_path / "o2", names=["kind"])


def test_mistakes_are_errors(library, store, truth, tmp_path):
    out = tmp_path / "o"
    for missing in range(3):
        words = [str(store).encode(), PRESSURE.encode(), str(out).encode()]
        words[missing] = None
        writer = ctypes.c_void_p(1)
        with pytest.raises(Failed, match="a store, a view and an output are needed") as failed:
            library.call("create", *words, None, ctypes.byref(writer))
        assert failed.value.code == EINVAL and writer.value is None
    with pytest.raises(Failed, match="batchfs_writer_options::size is not set"):
        library.create(store, PRESSURE, out, size=8)
    with pytest.raises(Failed, match="not a valid JSON|JSON|the view"):
        library.create(store, "{", out)
    with pytest.raises(Failed) as failed:
        library.create(tmp_path / "absent.zarr", PRESSURE, out)
    assert failed.value.code == 2  # ENOENT
    with pytest.raises(Failed, match="there is no epoch -1"):
        library.create(store, PRESSURE, out, epoch=-1)
    assert not out.exists()

    writer = library.create(store, PRESSURE, out)
    row = truth.p.values[:1, None]
    for call, match in (
            (lambda: writer.write([T], row), f"no sample {T}"),
            (lambda: writer.write([-1], row), "no sample -1"),
            (lambda: writer.write([0], row, "float33"), "float33"),
            (lambda: writer.write([0], row, "float31"), "float31"),
            (lambda: writer.samples(4), "no batch 4 in epoch 0; it has 4"),
            (lambda: library.call("write", None, None, None, 0, None, b"float32", None),
             "the writer is NULL"),
            (lambda: library.call("write", writer.writer, None, None, 1, None, b"float32", None),
             "numbers of the samples"),
            (lambda: library.call("write", writer.writer, None, None, 1, None, None, None),
             "dtype is NULL"),
            (lambda: library.call("missing", writer.writer, None), "a place for the number"),
            (lambda: library.call("remaining", writer.writer, None, ctypes.c_size_t(4), None),
             "a place for the numbers")):
        with pytest.raises(Failed, match=match) as failed:
            call()
        assert failed.value.code == EINVAL
    with pytest.raises(Failed, match="another process writes rank 0"):
        library.create(store, PRESSURE, out)
    assert writer.missing() == T
    with pytest.raises(Failed, match=f"{T} of {T} samples are missing") as failed:
        writer.close()
    assert failed.value.code == 5  # EIO
    with pytest.raises(Failed, match="closed"):
        writer.write([0], row)
    assert not writer.finished()
    writer.free()
    library.c.batchfs_writer_free(None)


def test_long_reasons_are_cut_between_characters(library, store, tmp_path):
    for shift in "", "x":
        with pytest.raises(Failed) as failed:
            library.create(store, PRESSURE, tmp_path / "o", tensors=[shift + "ä" * 3000])
        assert len(str(failed.value).encode()) in (ERROR_SIZE - 1, ERROR_SIZE
                                                       - 2) and "ää" in str(failed.value)
