"""A page that is a block ```{notebook} NAME``` becomes the notebook man/guide/examples/NAME.ipynb,
with the outputs that it stores.

The notebook becomes Markdown before the page is parsed, so its headings are sections of the site
and its code is highlighted. The alternative text of a picture is the comment that the code of its
cell begins with.
"""

import base64
import itertools
import json
import os
import pathlib
import re

from sphinx.errors import ExtensionError

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
BLOCK = re.compile(r"^```\{notebook\} (\w+)\n```$", re.M)
MIN_ALTERNATIVE = 20  # characters


def fenced(words, text, *options):
    """A block whose fence is longer than any in the text."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + words, *options, text.strip("\n"), fence])


def joined(text):
    """nbformat keeps text as a string or as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def alternative(source):
    """Caption of a picture: the comment at the beginning of its cell."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), source.splitlines())
    text = " ".join(line.removeprefix("#").strip() for line in lines)
    if len(text) < MIN_ALTERNATIVE:
        raise ExtensionError("a cell that makes a picture begins with a comment that says what it "
                             f"shows, not with {text!r}")
    return text


def as_markdown(notebook, save):
    """The notebook as Markdown; save(number, bytes) gives the address of a picture."""
    blocks, pictures = [], 0
    for cell in notebook["cells"]:
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(fenced("{code-block} python", source))
        for output in cell["outputs"]:
            data = output.get("data", {})
            if output["output_type"] == "stream":
                blocks.append(fenced("{code-block} text", joined(output["text"]), ":class: output"))
            elif "image/png" in data:
                pictures += 1
                address = save(pictures, base64.b64decode(joined(data["image/png"])))
                blocks.append(f"```{{image}} {address}\n:alt: {alternative(source)}\n```")
            elif "text/plain" in data:
                blocks.append(fenced("{code-block} text", joined(data["text/plain"]),
                                     ":class: output"))
    return "\n\n".join(blocks) + "\n"


def replace_notebook(app, document, source):
    found = BLOCK.search(source[0])
    if not found:
        return
    name = found[1]
    path = EXAMPLES / f"{name}.ipynb"
    app.env.note_dependency(str(path), docname=document)
    folder = pathlib.Path(app.doctreedir) / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)

    def save(number, data):
        picture = folder / f"{name}-{number}.png"
        picture.write_bytes(data)
        return os.path.relpath(picture, pathlib.Path(app.srcdir, document).parent)

    text = as_markdown(json.loads(path.read_text()), save)
    source[0] = source[0][:found.start()] + text + source[0][found.end():]


def setup(app):
    app.connect("source-read", replace_notebook)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
