"""Views that know real time, through the kernel: what a mount shows and logs of missing dates."""

import json
import time
import warnings

import numpy as np
import pytest
import xarray as xr


@pytest.fixture(scope="module")
def gap(tmp_path_factory):
    """40 times every 6 hours, without two of them; values are their own positions."""
    path = tmp_path_factory.mktemp("gap") / "s.zarr"
    times = np.delete(np.datetime64("2001-01-01", "ns") + np.arange(40) * np.timedelta64(6, "h"),
                      [9, 30])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": ("time", np.arange(38, dtype="f4"))}, {"time": times}).to_zarr(
            path, zarr_format=2, encoding={"a": {"chunks": (7,)}})
    return path, times


WINDOW = {"window": {"time": {"size": "18h", "stride": "6h"}}, "batch": 8,
          "order": {"shuffle": "block", "seed": 1}}


def test_batches_of_a_mount_do_not_reach_across_missing_dates(gap, mount_at, tmp_path, good):
    path, times = gap
    view = {**WINDOW, "samples": {"spacing": {"time": "6h"}}}
    plain = {**WINDOW, "window": {"time": {"size": 3, "stride": 1}}}
    mount = mount_at(path, tmp_path / "mnt", {"spaced": view, "plain": plain})
    folder = mount / "views" / next(p.name for p in (mount / "views").iterdir()
                                    if p.name.endswith("spaced"))
    resolved = json.loads((folder / "view.json").read_text())
    assert resolved["window"]["time"]["size"] == 3 and resolved["window"]["time"]["stride"] == 1
    assert resolved["samples"] == {"spacing": {"time": "6h"}}
    schema = json.loads((folder / "schema.json").read_text())
    seen = []
    for file in sorted(folder.glob("epoch-*/**/*.npy")):
        for row in np.load(file):
            positions = row.astype(int)
            assert (np.diff(times[positions]) == np.timedelta64(6, "h")).all()
            seen.append(positions[0])
    assert len(seen) == schema["samples"] == 38 - 2 - 2 * 2 and len(set(seen)) == len(seen)
    for _ in range(100):
        log = good("log", mount).decode()
        if "samples reach across one" in log:
            break
        time.sleep(0.1)
    (line,) = [line for line in log.splitlines() if "reach across" in line]
    assert ('time: 2 gaps: 4 samples reach across one; "samples": {"spacing": {"time": '
            '"6h"}} leaves them out' in line)
    assert "plain: " in line
