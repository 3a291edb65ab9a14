"""Mounts of a store without consolidated metadata on a web server that cannot list: the view names
its arrays."""

import functools
import http.server
import pathlib
import threading

import numpy as np
import pytest
import xarray as xr

VIEW = {"name": "v", "window": {"time": 2}, "variables": ["t"], "batch": 3}


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if pathlib.Path(self.translate_path(self.path)).is_dir():
            return self.send_error(404)
        return super().do_GET()


@pytest.fixture
def server(tmp_path):
    """The folder that is served, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("path", ["s.zarr", "a/b/s.zarr"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_arrays_of_the_view_are_there(server, mount_at, tmp_path, path, zarr_format):
    folder, url = server
    values = np.random.default_rng(0).normal(size=(12, 4, 6)).astype("f4")
    xr.Dataset({"t": (("time", "y", "x"), values)}).to_zarr(folder / path, zarr_format=zarr_format,
                                                            consolidated=False,
                                                            encoding={"t": {"chunks": (2, 4, 6)}})
    # Places above the store are searched for consolidated metadata; what is missing there is not
    # missing in the store.
    place = mount_at(f"{url}/{path}", tmp_path / "m", {"v": VIEW})
    np.testing.assert_array_equal(np.load(place / "views/v/epoch-0000/batch-000001.npy"),
                                  values[6:12].reshape(3, 2, 4, 6))
