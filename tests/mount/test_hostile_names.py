"""Texts of a store never control the terminal that shows them, nor deceive their reader."""

import json
import re

import numpy as np
import pytest
import zarr

# A cursor that moves by one byte or two, text that runs backwards, names that look alike, lines
# that are not there.
HARMFUL = ["\x1b[2J", "\x9b2J", "\x85", "\u061c", "\u200b", "\u200d", "\u200f", "\u2028", "\u202e",
           "\u2060", "\u2066", "\ufeff", "\U000e0041"]
# in the mount, no name has C0 characters
NAMES = [f"a{text}b" for text in HARMFUL if "\x1b" not in text]
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\U000e0000-\U000e007f]")
DECEPTION = "".join(HARMFUL) + "\nunits       fine"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s\u202e.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=3, attributes={"title": DECEPTION})
    for name in NAMES:
        array = group.create_array(name, shape=(4,), chunks=(1,),
                                   dtype="f4", dimension_names=[f"d{name}"],
                                   attributes={"units": DECEPTION, "long_name": DECEPTION})
        array[:] = np.arange(4)
    text = group.create_array("text", shape=(1,), dtype=f"U{len(DECEPTION)}",
                              dimension_names=["one"])
    text[:] = np.array([DECEPTION])
    metadata = path / NAMES[0] / "zarr.json"
    (path / "odd").mkdir()
    odd = json.loads(metadata.read_text())
    odd["codecs"] = [{"name": DECEPTION, "configuration": {}}]
    (path / "odd" / "zarr.json").write_text(json.dumps(odd))
    return path


@pytest.fixture
def view(store, tmp_path):
    name = NAMES[0]
    file = tmp_path / "view.json"
    file.write_text(json.dumps({"name": "v", "window": {f"d{name}": 1}, "variables": [name],
                                "batch": {"size": 1}}))
    return file


def is_harmless(output):
    text = output.decode()  # all of it is UTF-8
    assert text
    found = CONTROL.search(text)
    assert found is None, repr(text[max(found.start() - 40, 0):found.end() + 10])


@pytest.mark.parametrize("command",
                         [["inspect"], ["inspect", "--json"], ["view"], ["plan", "--view"],
                          ["plan", "--json", "--view"], ["batch", "--format", "json", "--view"],
                          ["statistics", "--view"]])
def test_outputs_of_commands(command, store, view, good):
    is_harmless(good(*command, *[view] * (command[-1] == "--view"), store))


@pytest.mark.parametrize("format", ["text", "json"])
def test_values(format, store, good):
    is_harmless(good("cat", store, "text", "--format", format))
    is_harmless(good("cat", store, NAMES[0], "--format", format))
    if format == "json":
        assert json.loads(good("cat", store, "text", "--format", format)) == [DECEPTION]


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_errors(number, store, batchfs):
    for arguments in [["cat", store, "x" + NAMES[number]],
                      ["cat", store, NAMES[number], "--select", "nothing=3"],
                      ["inspect", str(store) + NAMES[number]]]:
        done = batchfs(*arguments)
        assert done.returncode != 0 and done.stderr.count(b"\n") == 1
        is_harmless(done.stderr)


def test_a_mount(store, view, mount_at, good, tmp_path):
    name = NAMES[0]
    (chunk,) = [path for path in (store / name / "c").iterdir() if path.name == "3"]
    contents = chunk.read_bytes()
    directory = mount_at(store, tmp_path / "mnt", {"v": json.loads(view.read_text())})
    chunk.write_bytes(b"damaged")
    try:
        with pytest.raises(OSError):
            (directory / "views/v/epoch-0000/batch-000003.npy").read_bytes()
        (directory / "views/v/epoch-0000/batch-000001.npy").read_bytes()
    finally:
        chunk.write_bytes(contents)
    for file in ["summary.txt", "store.json", "views/v/schema.json", "views/v/view.json",
                 ".batchfs/log", ".batchfs/status.json", ".batchfs/config.json",
                 *(f"arrays/{name}/summary.txt" for name in NAMES)]:
        is_harmless((directory / file).read_bytes())
    # no line was made up
    assert len((directory / "arrays" / name / "summary.txt").read_text().splitlines()) < 10
    for command in [["log"], ["status"], ["report"], ["top", "--once", "--interval", "0.1"]]:
        is_harmless(good(*command, directory))
