"""Pictures of batches, decoded by Pillow, against numpy."""

import io
import json

import numpy as np
import pytest
from PIL import Image

VIEW = {"name": "seen", "window": {"time": 1}, "variables": ["t", "q"], "batch": {"size": 3},
        "formats": ["npy", "png"]}
FIRST, LAST, MISSING = 16, 135, 2  # of the palette
LEFT, MAPS_AT = 8, 8 + 11 + 6 + 11  # of the first tensor's first row, below its title and the dates


@pytest.fixture(scope="module")
def seen(weather, mount_at, tmp_path_factory):
    return mount_at(weather, tmp_path_factory.mktemp("seen") / "mnt", {"seen": VIEW}) / (
        "views/seen/epoch-0000")


def picture(path):
    data = path.read_bytes()
    assert len(data) == path.stat().st_size
    image = Image.open(io.BytesIO(data))
    image.load()  # checks every checksum
    assert image.mode == "P"
    return np.asarray(image)


def expected(fields):
    """Colours of the first map of a row of them."""
    fields = fields.astype("float64")
    least, most = np.nanmin(fields), np.nanmax(fields)
    place = (fields[0] - least) / (most - least)
    return np.where(np.isnan(fields[0]), MISSING,
                    FIRST + np.round(np.nan_to_num(place) * (LAST - FIRST)))


@pytest.mark.parametrize("batch", range(3))
def test_the_first_map_is_numpys(seen, batch):
    values = np.load(seen / f"batch-{batch:06d}/t.npy")
    assert values.shape[1] == 1
    values = values.reshape(len(values), -1, *values.shape[-2:])
    top = MAPS_AT + (11 if values.shape[1] > 1 else 0)  # rows of several channels have names
    values = values[:, 0]
    lines, columns = values.shape[1:]
    assert max(lines, columns) <= 192
    enlarge = 192 // max(lines, columns)
    pixels = picture(seen / f"batch-{batch:06d}.png")
    drawn = pixels[top:top + lines * enlarge, LEFT:LEFT + columns * enlarge]
    assert np.array_equal(drawn,
                          np.kron(drawn[::enlarge, ::enlarge], np.ones((enlarge, enlarge), "u1")))
    drawn, colours = drawn[::enlarge, ::enlarge].astype(int), expected(values)
    assert min(abs(drawn - colours).max(), abs(drawn[::-1] - colours).max()) <= 1
    assert len(np.unique(drawn)) > 2


def test_the_command_draws_the_same(seen, weather, good, tmp_path):
    view = tmp_path / "view.json"
    view.write_text(json.dumps(VIEW))
    drawn = good("batch", weather, "--view", view, "--batch", "1", "--format", "png")
    assert drawn == (seen / "batch-000001.png").read_bytes()
