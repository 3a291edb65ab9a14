"""Every command and code block of the guide runs as it stands, page by page."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_blocks import Block, blocks_of, check_syntax, commands_of
from page_running import GUIDE, run_page
from watching import eventually

PAGES = [page for page in sorted(GUIDE.rglob("*.md")) if blocks_of(page)]
ELSEWHERE = {"recipes.md": "test_recipes.py"}  # the test that runs it


def named(page):
    return str(page.relative_to(GUIDE))


def needs_mount(page):
    return any("batchfs mount " in block.text for block in blocks_of(page) if not block.needs)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in ELSEWHERE], ids=named)
def test_the_blocks_of_a_page_run(page, tmp_path):
    if needs_mount(page) and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse is missing: nothing can be mounted")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]


NOT_RUN = [(page, block) for page in PAGES for block in blocks_of(page) if block.needs]


@pytest.mark.parametrize(("page", "block"), NOT_RUN, ids=lambda value: f"{value.line}"
                             if isinstance(value, Block) else named(value))
def test_the_syntax_of_a_block_that_cannot_run(page, block):
    check_syntax(block)


def test_files_of_the_pages_are_of_their_language():
    for page in PAGES:
        for block in blocks_of(page):
            if block.file and block.language != "json":  # views have comments
                check_syntax(block)


def test_a_wrong_block_fails(tmp_path):
    def verdict(text):
        page = tmp_path / "page.md"
        page.write_text(text)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return run_page(page, folder).returncode == 0

    assert verdict("```console\n$ echo one; echo two\n...\ntwo\n```\n")
    assert verdict("```python\na = 1\n```\n```pycon\n>>> a\n1\n```\n")
    assert verdict("```{code-block} json\n:caption: a.txt\n7\n```\n```console\n"
                   "$ cat a.txt\n7\n```\n")
    assert verdict("```{code-block} python\n:caption: Needs a GPU\nassert False\n```\n")
    assert not verdict("```console\n$ echo one\ntwo\n```\n")
    assert not verdict("```console\n$ false\n```\n")
    assert not verdict("```python\nassert False\n```\n")
    assert not verdict("```pycon\n>>> 1\n2\n```\n")
    assert not verdict("```{code-block} json\n:caption: a.txt\n7\n```\n```console\n"
                       "$ cat a.txt\n8\n```\n")


def test_commands_of_a_block():
    text = "$ a \\\n  b\none\n$ c <<END\n> d\n> END\ntwo\n"
    assert commands_of(text) == [("a \\\n  b", ["one"]), ("c <<END\nd\nEND", ["two"])]


@pytest.mark.parametrize(("language", "text"),
                         [("python", "a ="), ("json", "{"), ("console", "$ if\n"), ("julia", "f(x"),
                          ("r", "f(x))"), ("yaml", "a: [")])
def test_wrong_syntax_is_found(language, text):
    with pytest.raises(Exception):  # noqa: B017
        check_syntax(Block(language, text, 1))


def test_a_page_that_fails_leaves_no_server_behind(tmp_path):
    page, folder = tmp_path / "page.md", tmp_path / "run"
    folder.mkdir()
    view = ('```{code-block} json\n:caption: v.json\n'
            '{"window": {"time": 1}, "variables": ["tas"]}\n```\n')
    serve = ("```console\n$ python man/guide/examples/stores.py cmip6\n...\n$ batchfs serve "
             "cmip6.zarr --view v.json --socket ./a.sock --background\n$ false\n```\n")
    page.write_text(view + serve)
    assert run_page(page, folder).returncode != 0
    assert eventually(lambda: not (folder / "a.sock").exists())
