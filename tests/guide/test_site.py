"""tools/docs builds the guide without a warning; every link inside it leads somewhere, and the manual pages are whole."""

import html.parser
import pathlib
import re
import subprocess
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    done = subprocess.run([ROOT / "tools" / "docs", folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """The links, anchors and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "img":
            self.pictures.append(values)


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def test_links_inside_the_site_lead_somewhere(site, pages):
    assert len(pages) > 8
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme or target.netloc:
                continue
            file = path if not target.path else (path.parent / urllib.parse.unquote(target.path)).resolve()
            anchor = urllib.parse.unquote(target.fragment)
            if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_pictures_exist_and_say_what_they_show(site, pages):
    wrong = [f"{path.relative_to(site)}: {picture.get('src')}" for path, page in pages.items() for picture in page.pictures
             if not (path.parent / picture["src"]).is_file() or len(picture.get("alt") or "") < 20]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "man").glob("*.[1-9]")))
def test_a_manual_page_is_in_the_site_with_all_its_sections(site, name):
    source = (ROOT / "man" / name).read_text()
    text = (site / "manual" / f"{name}.html").read_text()
    titles = [html.unescape(title) for title in re.findall(r"<h[2-4]>(.*?)<a ", text)]
    for macro, title in re.findall(r"^\.(Sh|Ss) (.*)$", source, re.M):
        assert (title.capitalize() if macro == "Sh" else title).strip('"') in titles, title
    # The last words of the page, so that nothing is cut off.
    last = [line for line in source.splitlines() if line and not line.startswith(".")][-1].split()[0]
    assert last in text


def test_every_public_name_of_the_package_is_described(pages, site):
    reference = site / "python.html"
    if not reference.exists():
        pytest.skip("the page is not written yet")
    import batchfs

    missing = [name for name in batchfs.__all__ if name != "__version__" and f"batchfs.{name}" not in pages[reference].anchors]
    assert missing == []
