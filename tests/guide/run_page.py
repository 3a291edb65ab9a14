"""Runs the blocks of a page in order, in the working directory: run_page.py PAGE. The first that
fails ends it.

Python blocks share one namespace. Output that a page shows must be what the command prints; "..."
stands for anything, on a line of its own for any lines.
"""

import ast
import doctest
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_blocks import blocks_of, commands_of

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pattern(lines):
    """A regular expression for the output."""
    parts = []
    for line in lines:
        parts.append(r"(?:.*\n)*?" if line == "..."
                     else ".*".join(map(re.escape, line.rstrip().split("..."))) + r"[ \t]*\n")
    return "".join(parts)


def run_commands(block):
    for command, shown in commands_of(block.text):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
                              stdin=subprocess.DEVNULL)
        # A command on the page may fail if the page shows its message.
        if done.returncode != 0 and not any(line.startswith("batchfs: ") for line in shown):
            raise AssertionError(f"$ {command}\nended with {done.returncode}:\n{done.stdout}")
        if shown and not re.fullmatch(pattern(shown), done.stdout):
            raise AssertionError(f"$ {command}\nprinted\n{done.stdout}\nbut the page shows\n"
                                 + "\n".join(shown))


def run_python(block, page, names):
    tree = ast.parse(block.text, page)
    ast.increment_lineno(tree, block.line - 1)
    exec(compile(tree, page, "exec"), names)


def run_session(block, page, names):
    test = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line - 1)
    test.globs = names
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    said = []
    runner.run(test, out=said.append, clear_globs=False)
    if runner.summarize(verbose=False).failed:
        raise AssertionError("".join(said))


def main(page):
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        try:
            if block.needs:
                continue
            if block.file:
                pathlib.Path(block.file).write_text(block.text)
            elif block.language == "console":
                run_commands(block)
            elif block.language == "python":
                run_python(block, str(page), names)
            elif block.language == "pycon":
                run_session(block, str(page), names)
        except BaseException:
            print(f"{page}:{block.line}: this block failed", file=sys.stderr, flush=True)
            raise


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    main(pathlib.Path(sys.argv[1]))
