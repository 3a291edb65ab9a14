"""The directive `manual-page`: a page of man/, by mandoc, with its sections as sections of the
site.

Each section gets a label, "batchfs-view.5:select", for links from other pages:
[select](#batchfs-view.5:select).
"""

import pathlib
import re
import subprocess
from xml.etree import ElementTree

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

MAN = pathlib.Path(__file__).resolve().parents[2]
OURS = {path.name for path in MAN.glob("*.[1-9]")}


def html_of(path):
    command = ["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ExtensionError("mandoc is missing; run tools/dependencies test") from None
    if not done.stdout:
        raise ExtensionError(f"mandoc failed: {done.stderr}")
    return ElementTree.fromstring(f"<page>{done.stdout}</page>")


def mend_links(page):
    """Pages that are not ours are Debian's. mandoc links to a section "A-b" as "A_b"."""
    anchors = {re.sub(r"\W", "_", anchor): anchor
               for anchor in (part.get("id") for part in page.iter()) if anchor}
    for link in page.iter("a"):
        target = link.get("href", "")
        if target.startswith("#"):
            link.set("href", "#" + anchors.get(re.sub(r"\W", "_", target[1:]), target[1:]))
        found = re.fullmatch(r"([\w.-]+)\.(\d)\.html", target)
        if found and f"{found[1]}.{found[2]}" not in OURS:
            link.set("href", f"https://manpages.debian.org/{found[1]}.{found[2]}")


class ManualPage(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = MAN / self.arguments[0]
        self.env.note_dependency(str(path))
        page = html_of(path)
        mend_links(page)
        text = page.find("./div[@class='manual-text']")
        return [self.section(part, path.name) for part in text if part.get("class") == "Sh"]

    def section(self, part, page):
        heading = part.find("h1") if part.get("class") == "Sh" else part.find("h2")
        title = " ".join("".join(heading.itertext()).split())
        if part.get("class") == "Sh":  # in capitals
            title = title.capitalize()
        anchor = heading.get("id")
        node = nodes.section("", nodes.title(title, title), ids=[anchor])
        label = f"{page}:{title.lower()}"
        self.env.domains.standard_domain.labels[label] = (self.env.docname, anchor, title)
        self.env.domains.standard_domain.anonlabels[label] = (self.env.docname, anchor)
        body = []
        for element in part:
            if element is heading:
                continue
            if element.get("class") == "Ss":
                self.flush(body, node)
                node += self.section(element, page)
            else:
                body.append(ElementTree.tostring(element, encoding="unicode", method="html"))
        self.flush(body, node)
        return node

    @staticmethod
    def flush(body, node):
        if body:
            html = f'<div class="manual">{"".join(body)}</div>'
            node += nodes.raw("", html, format="html")
            body.clear()


def setup(app):
    app.add_directive("manual-page", ManualPage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
