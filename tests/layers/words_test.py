"""Documents, texts and comments are in plain technical English; links of documents exist."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINT = ROOT / "tools" / "lint_words"


def lint(*files):
    command = [sys.executable, LINT, *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def found(tmp_path, name, text):
    """(line, phrase) of each finding in a file of this name."""
    file = tmp_path / name
    file.write_text(text)
    done = lint(file)
    assert done.stderr == "" and done.returncode == (1 if done.stdout else 0)
    lines = re.findall(rf'^{re.escape(str(file))}:(\d+): "(.*?)": ', done.stdout, re.M)
    return [(int(line), phrase) for line, phrase in lines]


BAD = """
Whoever opens it waits.
Where FUSE is not to be had, take serve.
The memory is given back.
A reader was sent away.
It stays as long as it is there.
The mount goes on.
All threads were at it.
The kernel is told once.
The mount must be one's own.
Requests cannot be had again.
Tensors speak DLPack.
this is no batchfs mount
'6x' is no length of time.
shards are no whole number of chunks
There are as many as there are cores.
Nothing happened for so long.
It ends all the same.
""".strip().splitlines()
GOOD = """
The mount exists.
Put a header on the device.
Kernels go on the GPU.
Look at a store.
Give each backing file a name.
There is a chunk.
They had no memory.
The same view gives the same batches.
It is no longer mounted.
There is no reader, and there are no chunks.
A page that shows what readers waited for.
as long as it lives
batches are given to readers
not all the same type
""".strip().splitlines()
FORMS = [
    ("a.md", "{}\n\n"),
    ("a.1", ".Pp\n{}\n"),
    ("a.cc", 'f("{}");\n\n'),
    ("a.py", 'f("{}")\n\n'),
]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_every_bad_sentence_is_found(tmp_path, name, form):
    text = "".join(form.format(sentence) for sentence in BAD)
    lines = [line for line, _ in found(tmp_path, name, text)]
    first = 2 if name == "a.1" else 1
    assert lines == [first + 2 * number for number in range(len(BAD))]


def test_good_sentences_are_not(tmp_path):
    assert found(tmp_path, "a.md", "\n\n".join(GOOD)) == []


def test_a_phrase_is_found_across_lines_and_macros_and_literals(tmp_path):
    assert found(tmp_path, "a.md", "one\n\nThe mount goes\non.\n") == [(3, "goes on")]
    assert found(tmp_path, "a.1", ".Sh A\nThe mount goes\n.Em on .\n") == [(2, "goes on")]
    assert found(tmp_path, "a.cc", 'f("it goes "\n  "on");\n') == [(1, "goes on")]


def test_no_phrase_goes_over_two_texts(tmp_path):
    assert found(tmp_path, "a.md", "- where it goes\n\n- on Linux\n\n| goes | on |\n") == []
    assert found(tmp_path, "a.1", ".It where it goes\n.It on Linux\n") == []
    assert found(tmp_path, "a.cc", 'f("goes ", "on");\n') == []


def test_code_is_skipped(tmp_path):
    assert found(tmp_path, "a.md", "`goes on`\n\n    goes on\n\n```\ngoes on\n```\n") == []
    assert found(tmp_path, "a.1", '.\\" goes on\n.Bd -literal\ngoes on\n.Ed\n') == []
    assert found(tmp_path, "a.cc", "// `goes on`\nint goes_on = '\"'; f(on);\n") == []
    assert found(tmp_path, "a.py", "goes = on  # `goes on`\n") == []
    assert found(tmp_path, "a.sh", "goes on\n") == []


BAD_COMMENTS = """
Of one thread at a time.
What is left of an open file.
As open_store().
Those that wait get an error.
Fast. Of a local store only.
It is no reader.
These are no coordinates.
An option that only merging goes without.
Batches are had from there.
The number of who watches.
Whoever opens it waits.
""".strip().splitlines()
GOOD_COMMENTS = """
The size of a chunk.
Of course it does.
What is left of an open file?
As soon as the mount exists, it returns.
Reads what is left,
as open_store() does.
It is no longer mounted.
They are no more than eight.
There is no reader.
If there are no coordinates, it throws.
""".strip().splitlines()
COMMENTS = [
    ("a.cc", "/// {}\nint i;\n"),
    ("a.cu", "int i;  // {}\n\n"),
    ("a.h", "/* {} */\n\n"),
    ("a.py", "# {}\n\n"),
    ("b.py", 'def f():\n    """{}"""\n'),
    ("a.sh", "  # {}\n\n"),
    ("script", "# {}\n\n"),
]


@pytest.mark.parametrize(("name", "form"), COMMENTS)
def test_every_bad_comment_is_found(tmp_path, name, form):
    first = "#!/usr/bin/env bash\n\n" if name == "script" else ""
    text = first + "".join(form.format(sentence) for sentence in BAD_COMMENTS)
    lines = [line for line, _ in found(tmp_path, name, text)]
    begin = {"script": 3, "b.py": 2}.get(name, 1)
    assert lines == [begin + 2 * number for number in range(len(BAD_COMMENTS))]


def test_good_comments_are_not(tmp_path):
    assert found(tmp_path, "a.cc", "".join(f"// {one}\n" for one in GOOD_COMMENTS)) == []


def test_a_comment_is_read_across_its_lines(tmp_path):
    assert found(tmp_path, "a.cc", "// It is\n// no reader.\n") == [(1, "is no")]
    assert found(tmp_path, "a.cc", "// The size\n// Of two.\n//\n// Of three.\n") == [(4, "Of")]
    assert found(tmp_path, "a.cc", "int i;  // The size\n        // Of two.\n") == []
    assert found(tmp_path, "a.py", 'f("Of two. As open_store().")\n') == []


def test_comments_of_adjacent_declarations_are_apart(tmp_path):
    assert found(tmp_path, "a.cc", "int i;  // The size\nint j;  // Of two.\n") == [(2, "Of")]
    assert found(tmp_path, "a.cc", "int i;  // The size\n/// Of two.\n") == [(2, "Of")]
    assert found(tmp_path, "a.py", "i = 1  # The size\nj = 2  # Of two.\n") == [(2, "Of")]
    assert found(tmp_path, "a.py", "i = 1  # The size\n# Of two.\n") == [(2, "Of")]


def test_only_comments_of_tests_are_read(tmp_path):
    for folder in ("tools", "tests", "tests/fuzz"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("# It goes on.\nf('It goes on.')\n")
    copy = shutil.copy(LINT, tmp_path / "tools")
    done = subprocess.run([sys.executable, copy], capture_output=True, text=True, check=False)
    lines = [line.rpartition(': "')[0] for line in done.stdout.splitlines()]
    both = [f"{folder}/a.py:{line}" for folder in ("tests/fuzz", "tools") for line in (1, 2)]
    assert sorted(lines) == sorted(["tests/a.py:1", *both])


def test_the_checkout_has_none():
    done = lint()
    assert done.stdout == "" and done.returncode == 0


FOLDERS = ("man", "bench", "tests", "tools/python")
DOCUMENTS = list(ROOT.glob("*.md"))
DOCUMENTS += [path for name in FOLDERS for path in (ROOT / name).rglob("*.md")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_columns(document):
    text = document.read_text()
    prose = re.sub(r"^    .*$|`[^`]*`", "", text, flags=re.M)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []
    assert [number for number, line in enumerate(text.splitlines(), 1) if len(line) > 100] == []
