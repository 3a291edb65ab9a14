"""One damaged reference costs its key only: all other keys have the values that they had, and the
damaged one is an error that names it. The oracle is the array that the set was made of.
"""

import base64
import json

import numpy as np
import pytest
from reference_sets import array_of, cat, parquet_folder, records, write

CHUNKS = 4
NAMES = ["inline", "coded", "range", "whole", "template", "deep/group"]
# None of these is text, bytes or [file], [file, offset, length].
MALFORMED = ["true", "null", "17", "-1.5e3", "[]", "[[]]", "[1, 2, 3]", '["f.bin", 1]',
             '["f.bin", -4, 8]', '["f.bin", 0, -8]', '["f.bin", 0.5, 8]', '["f.bin", "0", 8]',
             '["f.bin", 0, 8, 9]', '["f.bin", 0, 99999999999999999999]',
             '["f.bin", 9223372036854775807, 8]', '["f.bin", 8, 0]', '["", 0, 8]', "[null, 0, 8]",
             '[{"f": 1}, 0, 8]', '["f.bin" 0 8]', '"base64:@@"', '"base64:A"', '"base64:====="',
             '"\\ud800"', '["\\udc00", 0, 8]', '["{{unknown}}", 0, 8]', '["{{u|upper}}", 0, 8]',
             '["{{u", 0, 8]']


def values_of(number):
    return np.arange(2 * CHUNKS, dtype="<i4") + 100 * number


def references(folder):
    """Their JSON texts by key; two elements a chunk."""
    refs = {".zgroup": json.dumps('{"zarr_format": 2}'), ".zattrs": '{"title": "t"}'}
    for number, name in enumerate(NAMES):
        values = values_of(number)
        (folder / f"{name.replace('/', '-')}.bin").write_bytes(values.tobytes())
        refs[f"{name}/.zarray"] = json.dumps(array_of([2 * CHUNKS], [2]))
        refs[f"{name}/.zattrs"] = '{"_ARRAY_DIMENSIONS": ["x"]}'
        for chunk in range(CHUNKS):
            part = values[2 * chunk:2 * chunk + 2].tobytes()
            own = folder / f"{name.replace('/', '-')}-{chunk}.bin"
            own.write_bytes(part)
            refs[f"{name}/{chunk}"] = json.dumps({
                "inline": part.decode("latin1"),
                "coded": "base64:" + base64.b64encode(part).decode(), "whole": [own.name],
                "template": ["{{u}}.bin", 8 * chunk, 8],
            }.get(name, [f"{name.replace('/', '-')}.bin", 8 * chunk, 8]))
    return refs


def text_of(pairs, version):
    members = "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"
    return (members.replace("{{u}}", "template") if version == 0
            else f'{{"version": 1, "templates": {{"u": "template"}}, "refs": {members}}}')


def check_array(batchfs, store, number, damaged):
    """`damaged` is the name of a key of this array, None: none."""
    name, expected = NAMES[number], values_of(number)
    if damaged is None:
        assert np.array_equal(cat(batchfs, store, name), expected)
        return
    assert f"{name}/{damaged}" in batchfs.refusal("cat", store, name, "--decode", "raw")
    if damaged.startswith("."):
        return
    for chunk in range(CHUNKS):
        if chunk != int(damaged):
            begin = 2 * chunk
            part = cat(batchfs, store, name, "--select", f"x=#{begin}:#{begin + 2}")
            assert np.array_equal(part, expected[begin:begin + 2]), chunk


def check_set(batchfs, store, key):
    told = json.loads(batchfs.bytes("inspect", store, "--json"))
    assert [problem["key"] for problem in told["problems"] if problem["key"] == key] == [key]
    assert key in batchfs.bytes("inspect", store).decode()
    name, _, last = key.rpartition("/")
    for number in range(len(NAMES)):
        check_array(batchfs, store, number, last if NAMES[number] == name else None)


@pytest.mark.parametrize("seed", range(len(MALFORMED)))
def test_a_malformed_value_costs_its_key(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    refs = references(tmp_path)
    key = str(rng.choice([k for k in refs if k.rpartition("/")[2].isdigit()] if seed % 3
                         else list(refs)))
    refs[key] = MALFORMED[seed]
    pairs = list(refs.items())
    rng.shuffle(pairs)
    version = 1 if "{{" in MALFORMED[seed] else seed % 2
    check_set(batchfs, write(tmp_path / "r.json", text_of(pairs, version)), key)


@pytest.mark.parametrize("key", ["range/2", "coded/0", "deep/group/.zarray", ".zattrs"])
def test_a_key_that_is_given_twice_costs_itself(batchfs, tmp_path, key):
    refs = references(tmp_path)
    pairs = [*refs.items(), (key, refs[key])]
    store = write(tmp_path / "r.json", text_of(pairs, 1))
    check_set(batchfs, store, key)
    assert "given twice" in batchfs.bytes("inspect", store).decode()


@pytest.mark.parametrize("number", [4294967295, 4294967294, 3000000000])
def test_a_chunk_far_from_the_others_costs_none_of_them(batchfs, tmp_path, number):
    eight = np.arange(8, dtype="<i4")
    (tmp_path / "eight.bin").write_bytes(eight.tobytes())
    refs = references(tmp_path) | {
        "b/.zarray": json.dumps(array_of([4] * 3, [2] * 3)), "b/1.1.0": '["eight.bin", 0, 32]',
        f"b/{number}.{number}.{number}": '["eight.bin", 0, 32]', "b/0.0.1": '["eight.bin", 0, 32]'}
    store = write(tmp_path / "r.json", text_of(refs.items(), 1))
    for number_of_array in range(len(NAMES)):
        check_array(batchfs, store, number_of_array, None)
    expected = np.full((4, 4, 4), -1)
    expected[2:, 2:, :2] = expected[:2, :2, 2:] = eight.reshape(2, 2, 2)
    assert np.array_equal(cat(batchfs, store, "b"), expected)


def test_many_malformed_values_are_bounded_by_the_memory(batchfs, tmp_path):
    refs = references(tmp_path) | {f"b/{n}": f'["{n}", -1, 5]' for n in range(100_000)}
    store = write(tmp_path / "r.json", text_of(refs.items(), 1))
    check_array(batchfs, store, 2, None)
    assert len(json.loads(batchfs.bytes("inspect", store, "--json"))["problems"]) == 1000
    assert "--memory" in batchfs.refusal("inspect", store, "--memory", "8M")


# ---- Parquet ----

@pytest.mark.parametrize("seed", range(8))
def test_a_malformed_row_costs_its_chunk(batchfs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    values = np.arange(60, dtype="<i4")
    (tmp_path / "f.bin").write_bytes(values.tobytes())
    store = parquet_folder(tmp_path / "set", array_of([60], [2]), 15)
    damaged = int(rng.integers(30))
    for record in range(2):
        rows = range(15 * record, 15 * record + 15)
        path, offset, size = ["../f.bin"] * 15, [8 * row for row in rows], [8] * 15
        if damaged in rows:
            row = damaged % 15
            path[row], offset[row], size[row] = [("../f.bin", -8, 8), ("../f.bin", 8, -8),
                                                 ("", 8, 8), ("../f.bin", 2**63 - 1, 8),
                                                 ("../f.bin", 8, 0)][seed % 5]
        records(path, offset, size, [None] * 15, store / f"a/refs.{record}.parq", engine="pyarrow")
    options = ("--virtual", f"file://{tmp_path}/")
    for chunk in range(30):
        select = ("--select", f"x=#{2 * chunk}:#{2 * chunk + 2}")
        if chunk != damaged:
            assert np.array_equal(cat(batchfs, store, "a", *select, *options),
                                  values[2 * chunk:2 * chunk + 2]), chunk
        else:
            line = batchfs.refusal("cat", store, "a", *select, *options)
            assert f"a/{chunk}" in line and f"row {chunk % 15}" in line


@pytest.mark.parametrize("document", ["true", "17", "[]", '"{"', "{}", '{"shape": [4]}',
                                      '{"shape": [9000000000000000000, 9], "chunks": [1, 1]}'])
def test_a_malformed_document_costs_its_array(batchfs, tmp_path, document):
    values = np.arange(60, dtype="<i4")
    (tmp_path / "f.bin").write_bytes(values.tobytes())
    store = parquet_folder(tmp_path / "set", array_of([60], [2]), 30)
    records(["../f.bin"] * 30, [8 * row for row in range(30)], [8] * 30, [None] * 30,
            store / "a/refs.0.parq", engine="pyarrow")
    known = (store / ".zmetadata").read_text()
    (store / ".zmetadata").write_text(known.replace('"a/.zarray":',
                                                    f'"b/.zarray": {document}, "a/.zarray":'))
    assert np.array_equal(cat(batchfs, store, "a", "--virtual", f"file://{tmp_path}/"), values)
    assert "b/.zarray" in batchfs.refusal("cat", store, "b")
    problems = json.loads(batchfs.bytes("inspect", store, "--json"))["problems"]
    assert [problem["key"] for problem in problems] == ["b/.zarray"]
