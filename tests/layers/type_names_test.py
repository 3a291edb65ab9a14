"""Types of one name in one namespace are one type to the linker: each has one header."""

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def types_of(header):
    spaces = []
    for line in header.read_text().splitlines():
        if opened := re.match(r"namespace ([\w:]*) ?\{", line):
            spaces.append(opened.group(1))
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif found := re.match(r"(?:struct|class|enum class) (\w+)\b(?!::)[^;()]*\{", line):
            yield "::".join([*spaces, found.group(1)])


def test_each_type_has_one_header():
    headers = collections.defaultdict(set)
    for folder in ("engine", "fs", "gpu", "tools"):
        for header in sorted((ROOT / folder).rglob("*.h")):
            for name in types_of(header):
                headers[name].add(str(header.relative_to(ROOT)))
    assert len(headers) > 500
    assert {name: sorted(files) for name, files in headers.items() if len(files) > 1} == {}
