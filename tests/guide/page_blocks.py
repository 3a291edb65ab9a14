"""The code blocks of a Markdown page, and their syntax.

A block whose caption begins with "Needs" cannot run in the tests, and says why: its syntax is
checked. Any other caption is the name of a file that the block is the content of.
"""

import dataclasses
import json
import re
import shutil
import subprocess

import yaml
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Punctuation, String

RUN = ("console", "python", "pycon")
FILES = ("json", "yaml", "c", "r", "julia", "ini", "bash", "python")
SHOWN = ("text", "mermaid", "ini")


@dataclasses.dataclass
class Block:
    language: str
    text: str
    line: int  # of its first line
    file: str = ""
    needs: str = ""


def blocks_of(page):
    """The fenced blocks of a page, without directives of other kinds than code."""
    found, lines = [], page.read_text().splitlines()
    number = 0
    while number < len(lines):
        fence = re.fullmatch(r"(`{3,})(.*)", lines[number])
        number += 1
        if not fence:
            continue
        first, body = number, []
        while lines[number] != fence[1]:
            body.append(lines[number])
            number += 1
        number += 1
        directive = re.fullmatch(r"\{code-block\} (\w+)", fence[2])
        if fence[2].startswith("{") and not directive:
            continue
        block = Block(directive[1] if directive else fence[2], "", first + 1)
        while directive and body and (option := re.fullmatch(r":(\w+): (.*)", body[0])):
            assert option[1] == "caption", f"{page.name}:{first}: option {option[1]}"
            if option[2].startswith("Needs "):
                block.needs = option[2]
            else:
                block.file = option[2]
            body, block.line = body[1:], block.line + 1
        block.text = "\n".join(body) + "\n"
        assert block.language in {*RUN, *FILES,
                                  *SHOWN}, f"{page.name}:{first}: language {block.language!r}"
        found.append(block)
    return found


def commands_of(text):
    """(command, expected output) of a block of the shell. Lines after one that ends with a
    backslash, or that begin with "> ", belong to the command."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([[line[2:]], []])
        elif found[-1][1] == [] and (found[-1][0][-1].endswith("\\") or line.startswith("> ")):
            found[-1][0].append(line.removeprefix("> "))
        else:
            found[-1][1].append(line)
    return [("\n".join(command), output) for command, output in found]


def sources_of(text):
    """The Python of a `pycon` block."""
    return "\n".join(re.sub(r"^(>>>|\.\.\.) ?", "", line) for line in text.splitlines()
                     if line.startswith((">>>", "...")))


def check_syntax(block):
    """Raises where a block is not of its language."""
    language, text = block.language, block.text
    if language in ("python", "pycon"):
        compile(text if language == "python" else sources_of(text), block.file or "block", "exec")
    elif language == "json":
        json.loads(text)
    elif language == "yaml":
        list(yaml.safe_load_all(text))
    elif language in ("console", "bash"):
        for script, _ in commands_of(text) if language == "console" else [(text, None)]:
            subprocess.run(["bash", "-n", "-c", script], check=True)
    elif language == "c" and shutil.which("gcc"):
        root = __import__("pathlib").Path(__file__).resolve().parents[2]
        subprocess.run(["gcc", "-fsyntax-only", "-Wall", "-Werror", f"-I{root}/gpu/reader",
                        f"-I{root}/tools/writer", "-x", "c", "-"],
                       input=text, text=True, check=True)
    elif language in ("r", "julia"):
        check_brackets(language, text)


def check_brackets(language, text):
    """No interpreter of these is needed to find words that the language does not have, and brackets
    that do not match."""
    pairs, open_ones = {")": "(", "]": "[", "}": "{"}, []
    for kind, value in get_lexer_by_name(language).get_tokens(text):
        assert kind not in Error, f"{language}: {value!r}"
        if kind in Comment or kind in String:
            continue
        for character in value if kind in Punctuation else "":
            if character in "([{":
                open_ones.append(character)
            elif character in pairs:
                assert open_ones and open_ones.pop() == pairs[character], (
                    f"{language}: a {character} too many")
    assert open_ones == [], f"{language}: {open_ones} not closed"
