"""A folder includes only from itself and the folders before it: data flows one way."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

ORDER = ["engine/base", "engine/telemetry", "engine/store", "engine/zarr", "engine/codec",
         "engine/array", "engine/dataset", "engine/view", "engine/pipeline", "engine/scan",
         "engine/write", "fs", "gpu", "tools"]

# Headers that belong to one place only.
FENCED = {
    r"(linux/)?fuse.*\.h": r"fs/fuse/\w+\.(h|cc)",
    r"curl/.*": r"engine/store/http/\w+\.(h|cc)",
    r"cuda\w*(\.h|/.*)": r"gpu/.*",
    r"(oneapi/)?tbb/.*": r"engine/pipeline/worker_pool\.cc",
}


def sources():
    for folder in ORDER:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu", ".cuh"):
                yield folder, path


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+(<([^>]+)>|"([^"]+)")', line)
        if found:
            yield number, found[2], found[3]


def test_there_are_sources():
    assert len(list(sources())) > 20


def test_a_folder_includes_only_from_folders_before_it():
    wrong = []
    for folder, path in sources():
        for number, _, quoted in includes(path):
            if quoted is None:
                continue
            owner = next((f for f in ORDER if quoted.startswith(f + "/")), None)
            if owner is None or ORDER.index(owner) > ORDER.index(folder):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {quoted}")
    assert wrong == []


def test_the_mount_and_the_handoff_do_not_need_each_other():
    wrong = []
    for folder, path in sources():
        for number, _, quoted in includes(path):
            if quoted and (folder, quoted.split("/")[0]) in {("fs", "gpu"), ("gpu", "fs")}:
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {quoted}")
    assert wrong == []


def test_the_reader_needs_nothing_of_the_engine():
    """It is a library of its own, for other people's programs."""
    allowed = re.compile(r"gpu/reader/\w+\.h|gpu/handoff/(protocol|connect|messages|trust)\.h|"
                         r"engine/base/(descriptor|descriptor_passing|error|system_error)\.h")
    wrong = [f"{path.relative_to(ROOT)}:{number}: {quoted}"
             for path in sorted((ROOT / "gpu/reader").glob("*.*"))
             for number, _, quoted in includes(path) if quoted and not allowed.fullmatch(quoted)]
    assert wrong == []


def test_library_types_stay_in_their_place():
    wrong = []
    for _, path in sources():
        name = str(path.relative_to(ROOT))
        for number, system, _ in includes(path):
            for header, allowed in FENCED.items():
                if system and re.fullmatch(header, system) and not re.fullmatch(allowed, name):
                    wrong.append(f"{name}:{number}: <{system}>")
    assert wrong == []


def test_no_cycles_between_folders():
    """Neither between sub-folders, such as engine/store/http and engine/store/cache."""
    edges = {}
    for _, path in sources():
        folder = str(path.parent.relative_to(ROOT))
        for _, _, quoted in includes(path):
            target = str(pathlib.PurePosixPath(quoted).parent) if quoted else folder
            if (target != folder and not folder.startswith(target + "/")
                    and not target.startswith(folder + "/")):
                # a folder and its parts are one library
                edges.setdefault(folder, set()).add(target)

    def cycle_from(folder, path):
        if folder in path:
            return [*path[path.index(folder):], folder]
        for target in sorted(edges.get(folder, ())):
            if target not in checked and (found := cycle_from(target, [*path, folder])):
                return found
        checked.add(folder)
        return None

    checked = set()
    for folder in sorted(edges):
        assert cycle_from(folder, []) is None


def test_no_folder_has_too_many_sources():
    folders = {}
    for _, path in sources():
        if path.suffix in (".cc", ".cu"):
            folders.setdefault(str(path.parent.relative_to(ROOT)), []).append(path.name)
    assert {folder: len(names) for folder, names in folders.items() if len(names) > 25} == {}


def test_a_unit_test_has_a_namespace_of_its_name():
    """They are compiled in groups (BATCHFS_UNITY): helpers of two tests may have one name."""
    tests = sorted((ROOT / "tests/unit").rglob("*_test.cc"))
    assert [str(p) for p in tests if f"\nnamespace {p.stem} {{\n" not in p.read_text()] == []


def test_every_header_is_guarded():
    headers = [path for _, path in sources() if path.suffix == ".h"]
    assert [str(p) for p in headers if not p.read_text().startswith("#pragma once")] == []
