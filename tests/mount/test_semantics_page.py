"""Each promise of batchfs-semantics(7) has a test, and each test of a promise a sentence there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "man/batchfs-semantics.7"


def promised():
    return re.findall(r'^\.\\" S (\S+)$', PAGE.read_text(), re.M)


def tested():
    found = set()
    for file in (ROOT / "tests").rglob("*.py"):
        for names in re.findall(r"pytest\.mark\.says\(([^)]*)\)", file.read_text()):
            found.update(re.findall(r'"([a-z0-9-]+)"', names))
    return found


@pytest.mark.skipif(not PAGE.exists(), reason="not in a checkout")
def test_every_promise_is_tested_and_every_tested_promise_is_made():
    tags = promised()
    assert len(tags) > 50 and len(tags) == len(set(tags))
    assert set(tags) - tested() == set()
    assert tested() - set(tags) == set()


@pytest.mark.skipif(not PAGE.exists(), reason="not in a checkout")
def test_every_sentence_of_the_sections_that_promise_has_a_tag():
    sections = re.split(r"^\.Ss .*\n", PAGE.read_text().split(".Sh SEE ALSO")[0], flags=re.M)[1:]
    for section in sections:
        assert section.startswith('.\\" S '), section
