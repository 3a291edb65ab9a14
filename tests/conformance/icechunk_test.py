"""Icechunk repositories, against the icechunk package with zarr-python and xarray, and against real
repositories with the digests that icechunk gave.

The real ones lie beside the project (../shared/fixtures/virtual); without them those tests are
skipped. The package that the project pins writes version 1; version 2 is tested with the real ones.
"""

import datetime
import functools
import hashlib
import http.server
import json
import pathlib
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest
import zarr

VIRTUAL = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "fixtures" / "virtual"
REMOTE = "s3://example-archive/data/"

real = pytest.mark.skipif(not VIRTUAL.exists(), reason=f"no fixtures at {VIRTUAL}")


def rows(wanted):
    if not VIRTUAL.exists():
        return []
    found = [json.loads(line) for line in (VIRTUAL / "EXPECTED.jsonl").read_text().splitlines()]
    return [row for row in found if row["store"].startswith(("icechunk/", "made-v2/"))
            and wanted(row)]


def name_of(row):
    return f"{row['path']}-{row['ref']}"


def version_of(row):
    kind, _, name = row["ref"].partition("=")
    return [f"--{kind}", name] if name else []


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The files that references lead to, with the times that they had when they were referred
    to."""
    if not VIRTUAL.exists():
        return None
    folder = tmp_path_factory.mktemp("archive") / "archive"
    shutil.copytree(VIRTUAL / "made-v2/archive", folder)
    for file in folder.rglob("*"):
        subprocess.run(["touch", "-d", "2020-01-01", file], check=True)
    return folder


def digest(values):
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes("C")).hexdigest()


@real
@pytest.mark.parametrize("row", rows(lambda row: "sha256" in row), ids=name_of)
def test_values_are_those_of_icechunk(batchfs, archive, row):
    allowed = ["--virtual", f"{REMOTE}=file://{archive}"]
    values = batchfs.npy("cat", VIRTUAL / row["store"], row["array"], "--decode", "raw",
                         *version_of(row), *allowed)
    assert list(values.shape) == row["shape"]
    assert digest(values) == row["sha256"]


@real
@pytest.mark.parametrize("row", rows(lambda row: "chunk_sha256" in row), ids=name_of)
def test_a_chunk_that_cannot_be_had_is_an_error_and_its_neighbours_are_not(batchfs, tmp_path, row):
    store = VIRTUAL / row["store"]
    line = batchfs.refusal("cat", store, row["array"], "--decode", "raw", *version_of(row))
    assert "s3://testbucket/can_read_old/chunk-1" in line and "--virtual s3://testbucket/" in line
    size = row["chunks"]
    for chunk, expected in row["chunk_sha256"].items():
        if expected is None:
            continue
        index = [int(i) for i in chunk.split(".")]
        select = [f"dim_{d}=#{i * n}:#{(i + 1) * n}"
                  for d, (i, n) in enumerate(zip(index, size, strict=True))]
        values = batchfs.npy("cat", store, row["array"], "--decode", "raw", *version_of(row),
                             *(word for one in select for word in ("--select", one)))
        assert digest(values) == expected
    # It has the bytes of the next one: with it the set is complete.
    place = tmp_path / "place"
    (place / "can_read_old").mkdir(parents=True)
    allowed = ["--virtual", f"s3://testbucket/={place}"]
    assert "is not there" in batchfs.refusal("cat", store, row["array"], "--decode", "raw",
                                             *version_of(row), *allowed)
    same = next(file for file in (store / "chunks").iterdir() if file.stat().st_size == 19)
    shutil.copy(same, place / "can_read_old/chunk-1")
    values = batchfs.npy("cat", store, row["array"], "--decode", "raw", *version_of(row), *allowed,
                         "--virtual-checks", "off")
    assert digest(values) == row["sha256_with_virtual_chunk"]


REASONS = {"the initial snapshot holds no node": "nothing had been written yet",
           "the tag was deleted": "was deleted", "no such branch": "no branch 'nosuch'",
           "file is newer": "has changed since it was referred to",
           "file has another ETag": "no ETag to compare", "file is not there": "is not there"}


@real
@pytest.mark.parametrize("row", rows(lambda row: "error" in row and "chunk_sha256" not in row),
                         ids=name_of)
def test_what_must_fail_fails_with_its_reason(batchfs, archive, row):
    folder = archive
    reason = next(words for start, words in REASONS.items() if row["error"].startswith(start))
    line = batchfs.refusal("cat", VIRTUAL / row["store"], row.get("array", "x"), "--decode", "raw",
                           *version_of(row), "--virtual", f"{REMOTE}=file://{folder}")
    assert reason in line


@real
def test_what_is_not_allowed_is_refused_with_the_option(batchfs, archive):
    line = batchfs.refusal("cat", VIRTUAL / "made-v2/virtual", "packed")
    assert f"--virtual {REMOTE}" in line
    for wrong in ("s3://", "*", "s3://*/", "file:///", "/tmp"):
        assert "--virtual" in batchfs.refusal("cat", VIRTUAL / "made-v2/virtual", "packed",
                                              "--virtual", wrong)


@real
def test_the_history_of_a_repository_of_version_2(batchfs):
    log = json.loads(batchfs.bytes("inspect", VIRTUAL / "made-v2/plain", "--log", "--json"))
    assert (set(log["branches"]) >= {"main", "dev"} and "v1" in log["tags"]
            and "gone" not in log["tags"])
    assert log["history"][0]["snapshot"] == log["branches"]["main"]
    assert log["history"][-1]["snapshot"] == "1CECHNKREP0F1RSTCMT0"


# ---- repositories that the package makes ----

@pytest.fixture(scope="module")
def icechunk():
    return pytest.importorskip("icechunk",
                               reason="tools/dependencies test installs the icechunk package")


@pytest.fixture(scope="module")
def made(icechunk, tmp_path_factory):
    """Three commits: the folder, the repository, and what zarr-python saw after each."""
    folder = tmp_path_factory.mktemp("made") / "repository"
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)))
    random = np.random.default_rng(7)
    seen = []
    session = repository.writable_session("main")
    root = zarr.create_group(session.store)
    field = root.create_array("field", shape=(10, 40, 50), chunks=(3, 16, 50), dtype="f4",
                              dimension_names=("time", "y", "x"))
    field[...] = random.normal(size=field.shape)
    root.create_array("deep/er/small", shape=(6,), chunks=(2,), dtype="i8")[:] = np.arange(6)
    root.create_array("deep/sharded", shape=(64, 32), chunks=(4, 8), shards=(16, 16),
                      dtype="u2")[:40] = random.integers(0, 9, (40, 32))
    root.create_array("scalar", shape=(), dtype="f8")[...] = 2.5
    root.create_array("sparse", shape=(9, 14), chunks=(2, 3), dtype="i4", fill_value=-9,
                      dimension_names=("r", "c"))[4:5, 6:7] = 3
    root.create_array("never", shape=(5,), chunks=(2,), dtype="i2", fill_value=7,
                      dimension_names=("n",))

    def commit(message):
        identity = session.commit(message)
        group = zarr.open_group(repository.readonly_session(snapshot_id=identity).store, mode="r")
        seen.append((identity, datetime.datetime.now(datetime.timezone.utc),
                     {path: member[...] for path, member in group.members(max_depth=None)
                      if isinstance(member, zarr.Array)}))
        time.sleep(0.05)

    commit("first")
    repository.create_tag("v1", snapshot_id=seen[0][0])
    repository.create_tag("it works!", snapshot_id=seen[0][0])
    repository.create_tag("gone", snapshot_id=seen[0][0])
    repository.delete_tag("gone")
    session = repository.writable_session("main")
    zarr.open_group(session.store)["field"][4:6] = 0.5
    zarr.open_group(session.store)["deep/er/small"].resize((3,))
    commit("second: \"quoted\"\nand two lines")
    repository.create_branch("dev", snapshot_id=seen[1][0])
    session = repository.writable_session("dev")
    zarr.open_group(session.store).create_array("new", shape=(3,), dtype="i1")[:] = [1, 2, 3]
    commit("on dev")
    return folder, repository, seen


def check(batchfs, folder, options, expected):
    listed = json.loads(batchfs.bytes("inspect", folder, "--json", *options))
    assert set(listed["arrays"]) == set(expected)
    for path, values in expected.items():
        got = batchfs.npy("cat", folder, path, "--decode", "raw", *options)
        assert got.dtype == values.dtype and np.array_equal(got, values), path
    return listed


def test_branches_tags_and_snapshots(batchfs, made):
    folder, _, seen = made
    assert check(batchfs, folder, [], seen[1][2])["icechunk"]["chosen_by"] == "branch main"
    assert check(batchfs, folder, ["--branch", "dev"], seen[2][2])["snapshot"] == seen[2][0]
    for tag in "v1", "it works!":
        assert check(batchfs, folder, ["--tag", tag], seen[0][2])["snapshot"] == seen[0][0]
    for identity, _, expected in seen:
        check(batchfs, folder, ["--snapshot", identity], expected)
    check(batchfs, folder, ["--snapshot", seen[0][0].lower()], seen[0][2])
    check(batchfs, f"icechunk+file://{folder}", [], seen[1][2])


def test_the_state_of_a_branch_at_a_time(batchfs, made):
    folder, _, seen = made
    for identity, when, expected in seen:
        branch = ["--branch", "dev"]
        text = when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert check(batchfs, folder, [*branch, "--as-of", text], expected)["snapshot"] == identity
    assert "no snapshot as old" in batchfs.refusal("inspect", folder, "--as-of", "2001-01-01")


def test_what_is_not_there_is_named(batchfs, made, tmp_path):
    folder, _, _ = made
    assert "no branch 'man', did you mean 'main'?" in batchfs.refusal(
        "inspect", folder, "--branch", "man")
    assert "the tag 'gone' was deleted" in batchfs.refusal("inspect", folder, "--tag", "gone")
    assert "no tag 'v2'" in batchfs.refusal("inspect", folder, "--tag", "v2")
    assert "no snapshot 00000000000000000000" in batchfs.refusal(
        "inspect", folder, "--snapshot", "0" * 20)
    assert "'abc' is not the id of a snapshot" in batchfs.refusal(
        "inspect", folder, "--snapshot", "abc")
    zarr.create_group(tmp_path / "z.zarr")
    assert "for Icechunk repositories" in batchfs.refusal("inspect", tmp_path / "z.zarr",
                                                          "--branch", "main")
    assert "no Icechunk repository" in batchfs.refusal("inspect",
                                                       f"icechunk+file://{tmp_path}/z.zarr")


def test_the_history(batchfs, made):
    folder, repository, _ = made
    log = json.loads(batchfs.bytes("inspect", folder, "--branch", "dev", "--log", "--json"))
    expected = [(info.id, info.message) for info in repository.ancestry(branch="dev")]
    assert [(one["snapshot"], one["message"]) for one in log["history"]] == expected
    for one, info in zip(log["history"], repository.ancestry(branch="dev"), strict=True):
        assert datetime.datetime.fromisoformat(one["time"]) == info.written_at
    assert log["complete"]
    assert log["branches"] == {name: repository.lookup_branch(name)
                               for name in repository.list_branches()}
    assert log["tags"] == {name: repository.lookup_tag(name) for name in repository.list_tags()}
    text = batchfs.bytes("inspect", folder, "--log").decode()
    assert all(info.id in text for info in repository.ancestry(branch="main"))
    assert "first" in batchfs.bytes("inspect", folder, "--tag", "v1").decode()


def test_batches_are_those_of_a_plain_store_with_the_same_values(batchfs, made, tmp_path):
    folder, _, seen = made
    plain = zarr.create_group(tmp_path / "plain.zarr")
    plain.create_array("field", data=seen[1][2]["field"], chunks=(2, 40, 50),
                       dimension_names=("time", "y", "x"))
    view = tmp_path / "view.json"
    view.write_text('{"window": {"time": 2}, "variables": ["field"], "batch": {"size": 3}}')
    for batch in 0, 1:
        ours, theirs = (batchfs.bytes("batch", store, "--view", view, "--batch", batch) for store in
                        (folder, tmp_path / "plain.zarr"))
        assert ours == theirs


def test_over_http_where_nothing_can_be_listed(batchfs, made):
    folder, _, seen = made
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            check(batchfs, url, [], seen[1][2])
            check(batchfs, url, ["--tag", "it works!"], seen[0][2])
            assert "no branch 'x'" in batchfs.refusal("inspect", url, "--branch", "x")
        finally:
            server.shutdown()


def test_a_missing_chunk_file_is_an_error(batchfs, made, tmp_path):
    folder, _, _ = made
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for file in (copy / "chunks").iterdir():
        file.unlink()
    assert "garbage collection" in batchfs.refusal("cat", copy, "field")
    assert batchfs.npy("cat", copy, "deep/er/small").tolist() == [0, 1, 2]  # in the manifest
    for file in (copy / "manifests").iterdir():
        file.unlink()
    assert "garbage collection" in batchfs.refusal("cat", copy, "deep/er/small")


def test_truncated_and_flipped_files_end_in_one_line(batchfs, made, tmp_path):
    folder, _, seen = made
    random = np.random.default_rng(3)
    for kind, command in (("snapshots", "inspect"), ("manifests", "cat")):
        files = [folder / "snapshots" / seen[1][0]] if kind == "snapshots" else sorted((
            folder / kind).iterdir())
        for file in files:
            whole = file.read_bytes()
            for trial in range(12):
                copy = tmp_path / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(folder, copy)
                data = bytearray(whole)
                if trial % 2:
                    data = data[:random.integers(len(data))]
                else:
                    data[random.integers(len(data))] ^= 1 << random.integers(8)
                (copy / kind / file.name).write_bytes(data)
                done = batchfs.run(command, copy, *(["field"] if command == "cat" else []))
                assert done.returncode in (0, 1) and done.stderr.count(b"\n") <= 1, done.stderr


def test_many_splits_and_expiration(batchfs, icechunk, tmp_path):
    config = icechunk.RepositoryConfig.default()
    config.manifest = icechunk.ManifestConfig(splitting=icechunk.ManifestSplittingConfig.from_dict({
        icechunk.ManifestSplitCondition.AnyArray(): {icechunk.ManifestSplitDimCondition.Any(): 3}}))
    storage = icechunk.local_filesystem_storage(str(tmp_path / "r"))
    repository = icechunk.Repository.create(storage, config=config)
    values = np.arange(20 * 30).reshape(20, 30).astype("i4")
    session = repository.writable_session("main")
    array = zarr.create_array(session.store, name="a", shape=values.shape, chunks=(2, 2),
                              dtype="i4", fill_value=-1)
    array[...] = values
    session.commit("all")
    for row in range(3):
        session = repository.writable_session("main")
        zarr.open_array(session.store, path="a")[row] = values[row] = -row
        session.commit(f"row {row}")
    repository.expire_snapshots(datetime.datetime.now(datetime.timezone.utc))
    repository.garbage_collect(datetime.datetime.now(datetime.timezone.utc))
    assert len(list((tmp_path / "r/manifests").iterdir())) > 9
    assert np.array_equal(batchfs.npy("cat", tmp_path / "r", "a", "--decode", "raw"), values)
    log = json.loads(batchfs.bytes("inspect", tmp_path / "r", "--log", "--json"))
    assert [one["snapshot"]
            for one in log["history"]] == [info.id for info in repository.ancestry(branch="main")]


def test_virtual_chunks(batchfs, icechunk, tmp_path):
    values = np.random.default_rng(5).normal(size=(8, 10)).astype("f4")
    data = tmp_path / "with space"
    data.mkdir()
    for row in range(2):
        (data / f"{row}.bin").write_bytes(b"head" + values[row * 4:(row + 1) * 4].tobytes()
                                          + b"tail")
        subprocess.run(["touch", "-d", "2020-01-01", data / f"{row}.bin"], check=True)
    prefix = f"file://{tmp_path}/with%20space/"
    config = icechunk.RepositoryConfig.default()
    container = icechunk.VirtualChunkContainer(f"file://{tmp_path}/",
                                               icechunk.local_filesystem_store(str(tmp_path)))
    config.set_virtual_chunk_container(container)
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "r")),
                                            config=config)
    session = repository.writable_session("main")
    zarr.create_array(session.store, name="a", shape=values.shape, chunks=(4, 10), dtype="f4",
                      compressors=None, filters=None)
    for row in range(2):
        session.store.set_virtual_ref(f"a/c/{row}/0", f"file://{data}/{row}.bin", offset=4,
                                      length=160,
                                      checksum=datetime.datetime.now(datetime.timezone.utc))
    session.commit("virtual")
    line = batchfs.refusal("cat", tmp_path / "r", "a")
    assert "outside of the repository" in line and "--virtual file://" in line
    for allowed in (prefix, f"file://{data}", f"file://{tmp_path}/"):
        options = ["--virtual", allowed]
        assert np.array_equal(batchfs.npy("cat", tmp_path / "r", "a", *options, "--decode", "raw"),
                              values)
    subprocess.run(["touch", data / "0.bin", "-d", "2100-01-01"], check=True)
    options = ["--virtual", f"file://{tmp_path}/"]
    line = batchfs.refusal("cat", tmp_path / "r", "a", *options)
    assert "has changed since it was referred to" in line and "--virtual-checks off" in line
    got = batchfs.npy("cat", tmp_path / "r", "a", *options, "--virtual-checks", "off", "--decode",
                      "raw")
    assert np.array_equal(got, values)
    (data / "0.bin").write_bytes(b"short")
    line = batchfs.refusal("cat", tmp_path / "r", "a", *options, "--virtual-checks", "off")
    assert "shorter than the manifest says" in line
    (data / "0.bin").unlink()
    assert "is not there" in batchfs.refusal("cat", tmp_path / "r", "a", *options)
    (data / "0.bin").symlink_to("/etc/hostname")
    assert "cat failed" in batchfs.refusal("cat", tmp_path / "r", "a", "--virtual",
                                           f"file://{data}")
