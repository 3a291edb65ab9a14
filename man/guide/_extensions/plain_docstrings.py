"""Docstrings of the package are plain text: `code` in backticks, indented code, columns of names
and meanings."""

import re

CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
# A name, at least two spaces, its meaning; lines that continue it begin in the column of the
# meaning.
COLUMN = re.compile(r"((?:[a-z_]+)(?:, [a-z_]+)*)(  +)(\S.*)")


def as_rst(lines):
    """The lines of a docstring as reStructuredText."""
    result = []
    column = 0  # of meanings, in a list
    in_code = False
    # Code that is broken across lines.
    text = re.sub(r"`[^`]*\n[^`]*`", lambda code: " ".join(code[0].split()), "\n".join(lines))
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        previous = result[-1] if result else ""
        if not line.strip():
            column = 0
            result.append("")
            continue
        if indent >= 4 and not column and (not previous.strip() or in_code):
            if not in_code:
                result += [".. code-block:: python", ""]
            in_code = True
            result.append("    " + line.lstrip() if indent == 4 else "    " + line[4:])
            continue
        in_code = in_code and indent >= 4
        found = COLUMN.fullmatch(line) if indent == 0 else None
        if found:
            column = found.start(3)
            if previous.strip():
                result.append("")
            names = ", ".join(f"``{name}``" for name in found[1].split(", "))
            result += [names, "    " + CODE.sub(r"``\1``", found[3])]
        elif column and indent >= column:
            result.append("    " + CODE.sub(r"``\1``", line.strip()))
        else:
            column = 0
            result.append(CODE.sub(r"``\1``", line))
    return result


def process(_app, _what, _name, _object, _options, lines):
    lines[:] = as_rst(lines)


def setup(app):
    app.connect("autodoc-process-docstring", process)
    return {"version": "1", "parallel_read_safe": True}
