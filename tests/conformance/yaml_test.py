"""Views in YAML are the views that an independent reader of YAML makes of them."""

import json
import re
import subprocess
import warnings

import numpy as np
import pytest
import xarray as xr
import yaml
from conftest import PROGRAM


class Core(yaml.SafeLoader):
    """PyYAML's own parser, with the tags of YAML 1.2's core schema (10.3.2) in place of those of
    YAML 1.1."""

    yaml_implicit_resolvers = {}


for tag, pattern in {
    "null": r"null|Null|NULL|~|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
}.items():
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), None)


def number(loader, node):
    text = node.value.lstrip("+")
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:] if base != 10 else text, base)


Core.add_constructor("tag:yaml.org,2002:int", number)
Core.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("yaml") / "s.zarr"
    rng = np.random.default_rng(3)
    ds = xr.Dataset({"no": (("time", "level", "lat"), rng.random((40, 2, 6), "f4")),
                     "2m_temperature": (("time", "lat"), rng.random((40, 6), "f4"))},
                    {"time": np.arange("2000-01-01", "2000-01-11", np.timedelta64(6, "h"),
                                       dtype="M8[ns]"),
                     "level": [500, 850], "lat": np.linspace(70.0, -70.0, 6)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(path, zarr_format=2)
    return path


VIEWS = {
    "blocks": """\
# yaml-language-server: $schema=view.schema.json
name: train
variables: [no, 2m_temperature]
select:
  time: {from: 2000-01-02, to: 2000-01-08}   # a date is no number
  level: [500, 850]
window:
  time: {size: 24h, stride: 6h}
  lat:
    size: 2
    wrap: false
samples:
  spacing: {time: 6h}
  where:
    time: {hour: [0, 0o14], of: start}
batch: {size: 3, remainder: keep}
order:
  shuffle: block
  seed: 007
epochs: 2
dtype: float32
missing: {nan: fill, value: -.5}
formats:
- npy
- safetensors
""",
    "anchors": """\
window: {time: 1}
tensors:
  x: &both {variables: &names ["no", '2m_temperature'], stack: channel, dims: [channel, lat]}
  y:
    variables: *names
    stack: channel
    dims: [lat, channel]
    offsets: {time: [1, +2]}
  z: *both
""",
    "json": '{"window": {"time": {"size": 0x4}}, "select": {"time": {"from": null, '
            '"to": "2000-01-05"}}}',
    "at a time": "window: {time: 1}\nselect:\n"
                 "  time: 2000-01-02T06:00\n".replace("time: 1", "lat: 1"),
}


@pytest.mark.parametrize("text", VIEWS.values(), ids=VIEWS)
def test_a_view_is_what_the_oracle_reads(batchfs, store, tmp_path, text):
    (tmp_path / "v.json").write_text(json.dumps(yaml.load(text, Core)))
    for name in ("v.yaml", "v.yml"):
        (tmp_path / name).write_text(text)
        for arguments in (["plan", "--json"],
                          ["batch", "--epoch", "1", "--batch", "2", "--format", "npz"],
                          ["batch", "--format", "json"]):
            command, *rest = arguments
            wanted = batchfs.bytes(command, store, "--view", tmp_path / "v.json", *rest)
            assert batchfs.bytes(command, store, "--view", tmp_path / name, *rest) == wanted
    if not text.startswith("{"):
        done = subprocess.run([PROGRAM, "plan", store, "--view", "-", "--json"],
                              input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr
        plan = batchfs.bytes("plan", store, "--view", tmp_path / "v.json", "--json")
        assert json.loads(done.stdout)["tensors"] == json.loads(plan)["tensors"]


@pytest.mark.parametrize("text, words", [
    ("window: {time: 1}\nwindow: {lat: 1}\n", "the key 'window' is given twice"),
    ("window: {time: yes}\n", "window.time"),
    ("window: {time: 1}\nbatch_size: 3\n", "unknown key 'batch_size'"),
    ("window: {time: 1}\nselect: {time: [2000-01-02, *later]}\n",
     "line 2, column 29: the alias 'later'"),
    ("window: {time: 1}\npad: !!python/name:os.system x\n", "the tag"),
    ("window: {time: 1\n", "not valid YAML at line 2, column 1"),
    ("- window\n", "a view is a JSON object"),
    ("", "a view is a JSON object"),
])
def test_errors_name_the_place(batchfs, store, tmp_path, text, words):
    (tmp_path / "v.yaml").write_text(text)
    said = batchfs.refusal("plan", store, "--view", tmp_path / "v.yaml")
    assert words in said and "v.yaml" in said
