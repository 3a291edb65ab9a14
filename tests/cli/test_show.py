"""batchfs show: the page against xarray and zarr-python, its limits, and what a hostile store may put in it."""

import base64
import html
import html.parser
import io
import json
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest
import xarray as xr
import zarr

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "rect", "line", "image", "use", "path"}


class Page(html.parser.HTMLParser):
    """What a page consists of; refuses what is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attributes)))
        if tag not in VOID or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag):
        return [attributes for name, attributes in self.attributes if name == tag]


def show(good, *arguments):
    return Page(good("show", *arguments).decode())


def png_pixels(url):
    """Indexes of the palette, by an independent reader of the format's few parts."""
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    parts, at = {}, 8
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        parts[data[at + 4:at + 8]] = data[at + 8:at + 8 + size]
        assert zlib.crc32(data[at + 4:at + 8 + size]) == int.from_bytes(data[at + 8 + size:at + 12 + size], "big")
        at += 12 + size
    width, height = (int.from_bytes(parts[b"IHDR"][i:i + 4], "big") for i in (0, 4))
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:]


@pytest.fixture(scope="module")
def earth(tmp_path_factory):
    """A field on a globe of 2 degrees, of which some chunks and some values are missing."""
    lat, lon = np.linspace(-89, 89, 90), np.arange(0, 360, 2.0)
    time = np.arange("2000-01-01", "2000-01-11", np.timedelta64(1, "D"), dtype="M8[ns]")
    values = (np.arange(10)[:, None, None] + np.zeros((10, 90, 180)) + lat[None, :, None]).astype("f4")
    values[:, :9, :] = np.nan
    data = xr.Dataset({"t2m": (("time", "lat", "lon"), values, {"units": "K", "long_name": "air temperature"}),
                       "rain": (("time", "lat", "lon"), values, {"units": "m"})},
                      {"time": time, "lat": lat, "lon": lon}, {"title": "A small Earth"})
    path = tmp_path_factory.mktemp("earth") / "earth.zarr"
    data.to_zarr(path, zarr_format=2, encoding={"t2m": {"chunks": (1, 90, 180)}, "rain": {"chunks": (5, 45, 90)}})
    for day in (0, 1, 2):
        (path / "t2m" / f"{day}.0.0").unlink()
    return path


def test_the_tree_is_zarrs(good, earth):
    page = show(good, earth)
    group = zarr.open_group(earth, mode="r")
    for name, array in group.arrays():
        assert name in page.texts
        assert " x ".join(map(str, array.shape)) in page.text
        assert " x ".join(map(str, array.chunks)) in page.text
    assert "A small Earth" in page.text
    assert page.tags.count("h1") == 1


def test_a_map_has_the_values_of_its_step(good, earth):
    page = show(good, earth)
    pictures = [a for a in page.all("image")]
    assert len(pictures) == 2
    # t2m is after rain: sections stand in the store's order.
    labels = [a["aria-label"] for a in page.all("svg") if a.get("class") == "map"]
    assert labels[1].startswith("Map of t2m at time 2000-01-06 (6 of 10): values from ")
    values = xr.open_zarr(earth).t2m.isel(time=5).values
    pixels = png_pixels(pictures[1]["href"])
    assert pixels.shape == values.shape
    shown = np.flipud(pixels)  # north is up
    missing = 2
    assert ((shown == missing) == np.isnan(values)).all()
    order = np.argsort(values[9:].ravel(), kind="stable")
    assert (np.diff(shown[9:].ravel()[order].astype(int)) >= 0).all()
    assert f"{np.nanmin(values):.5g} to {np.nanmax(values):.5g} K" in page.text
    assert "1,620 (10.0 %)" in page.text  # missing
    assert f"{np.nanmean(values):.5g} K" in page.text


def test_coastlines_are_on_maps_of_degrees_only(good, earth, tmp_path):
    page = show(good, earth)
    assert [a["class"] for a in page.all("use")].count("coast") == 2
    (path,) = page.all("path")  # both maps have one grid
    assert path["d"].count("M") > 50
    zarr.create_array(tmp_path / "a.zarr", data=np.arange(12.0).reshape(3, 4))
    page = show(good, tmp_path / "a.zarr")
    assert page.all("use") == [] and len(page.all("image")) == 1


def test_missing_chunks_are_counted(good, earth):
    page = show(good, earth)
    assert "Stored: 7 of 10 chunks; missing: 3 (30.0 %), which hold the fill value." in page.text
    assert "Stored: 8 of 8 chunks." in page.text
    cells = [a["class"] for a in page.all("rect") if a.get("class") in ("stored", "missing")]
    assert cells.count("missing") == 3


def test_types_of_all_kinds(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    for dtype in ("bool", "i1", "u2", "i8", "f2", "f8", "c8"):
        root.create_array(dtype, data=np.arange(12).reshape(3, 4).astype(dtype))
    root.create_array("scalar", data=np.array(5.0))
    root.create_array("line", data=np.arange(100))
    root.create_array("empty", shape=(0, 4), dtype="f4")
    root.create_array("nan", data=np.full((3, 3), np.nan))
    root.create_array("text", shape=(2, 2), dtype="<U3")
    page = show(good, tmp_path / "a.zarr")
    assert len(page.all("image")) == 7
    assert "every value of the sample is missing" in page.text
    assert "its values are no numbers" in page.text


def test_structures_show_their_fields(good, tmp_path):
    values = np.zeros((4, 4), [("u", "f4"), ("v", "i2")])
    values["u"] = np.arange(16).reshape(4, 4)
    zarr.save_array(tmp_path / "a.zarr", values, zarr_format=2)
    page = show(good, tmp_path / "a.zarr")
    assert "values.u" in page.text and "values.v" in page.text


# ---- limits ----


def test_a_huge_array_is_sampled(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(10**6, 10**5, 10**5), chunks=(1, 256, 256), dtype="f4", fill_value=0.5)
    page = show(good, tmp_path / "a.zarr")
    assert "the middle 2048 x 2048 of 100000 x 100000" in page.text
    assert "64 chunks" in page.text
    assert "Not known which" in page.text


def test_a_chunk_past_the_limit_is_not_read(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(4000, 500, 500), chunks=(4000, 500, 500), dtype="f4")
    page = show(good, tmp_path / "a.zarr")
    assert "one chunk takes 3.7 GB in memory, past the limit of" in page.text
    zarr.create_array(tmp_path / "b.zarr", data=np.zeros((600, 600)), chunks=(600, 600))
    assert "past the limit of 1.0 MB" in show(good, tmp_path / "b.zarr", "--read", "1M").text


def test_many_variables_are_listed(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    for i in range(60):
        root.create_array(f"v{i:03}", data=np.random.default_rng(i).normal(size=(40, 40)))
    page = show(good, tmp_path / "a.zarr")
    assert len(page.all("image")) == 40
    assert all(f"v{i:03}" in page.text for i in range(60))
    assert len(show(good, tmp_path / "a.zarr", "--pictures", 3).all("image")) == 3
    assert show(good, tmp_path / "a.zarr", "--pictures", 0).all("image") == []


@pytest.mark.long
def test_the_page_stays_small(good, tmp_path):
    root = zarr.create_group(tmp_path / "a.zarr")
    noise = np.random.default_rng(0).normal(size=(400, 400)).astype("f4")
    one = root.create_array("v0", data=noise, attributes={"long_name": "x" * 10_000, "units": "y" * 10_000})
    for i in range(1, 3000):
        shutil.copytree(tmp_path / "a.zarr" / "v0", tmp_path / "a.zarr" / f"v{i}")
    assert one.shape == (400, 400)
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    text = good("show", tmp_path / "a.zarr", "--pictures", 400)
    assert len(text) < 16 << 20
    page = Page(text.decode())
    assert "1,000 more arrays are not listed" in page.text


# ---- views ----


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    path = tmp_path_factory.mktemp("view") / "train.json"
    path.write_text(json.dumps({"name": "train", "variables": ["t2m", "rain"], "select": {"time": {"from": "2000-01-05", "to": "2000-01-10"}},
                                "window": {"time": 1}, "batch": {"size": 3}}))
    return path


def test_a_view_shows_its_first_batch(good, earth, view):
    page = show(good, earth, "--view", view, "--pictures", 0)
    (picture,) = page.all("img")
    assert picture["alt"] and picture["src"].startswith("data:image/png;base64,")
    assert "6 samples · 2 batches of 3 samples" in page.text
    npz = np.load(io.BytesIO(good("batch", earth, "--view", view, "--format", "npz")))
    for name in npz.files:
        values = npz[name].astype("f8")
        assert f"{np.nanmean(values):.5g} {np.nanstd(values):.5g} {np.nanmin(values):.5g} {np.nanmax(values):.5g}" in page.text
    assert "2000-01-05" in page.text  # a label


def test_a_batch_that_is_too_large_is_not_read(good, earth, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps({"variables": ["t2m"], "window": {"time": 10}, "batch": {"size": 1}}))
    page = show(good, earth, "--view", tmp_path / "v.json", "--memory", "1M")
    assert "past the limit of" in page.text


# ---- hostile stores, and what else goes wrong ----

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x1b[31m\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "a <b>&\".zarr"
    root = zarr.create_group(path, zarr_format=2, attributes={EVIL: EVIL, "list": [EVIL, {EVIL: EVIL}]})
    inner = root.create_group("<script>alert(3)<", attributes={"title": EVIL})
    name = "t\"><script>alert(4)<"
    array = inner.create_array(name, data=np.arange(6.0).reshape(2, 3))
    array.attrs.update({"_ARRAY_DIMENSIONS": [EVIL, "lon<script>"], "units": EVIL, "long_name": EVIL, EVIL: EVIL})
    lon = inner.create_array("lon<script>", data=np.array(["<b>", EVIL, "c"], dtype="<U80"))
    lon.attrs.update({"_ARRAY_DIMENSIONS": ["lon<script>"], "units": EVIL})
    return path, {"group": "<script>alert(3)<", "name": EVIL.replace("/", "").replace("\x1b", ""), "variables": [name],
                  "window": {EVIL: 1}, "batch": 2}


def test_nothing_of_a_store_is_markup(good, hostile, tmp_path):
    store, view = hostile
    (tmp_path / "v.json").write_text(json.dumps(view))
    text = good("show", store, "--view", tmp_path / "v.json").decode()
    page = Page(text)
    assert "script" not in page.tags and "alert(1)" in page.text
    assert {name for _, attributes in page.attributes for name in attributes if name.startswith("on")} == set()
    for attributes in page.all("img") + page.all("image"):
        assert (attributes.get("src") or attributes.get("href")).startswith("data:image/png;base64,")
    assert "\x1b" not in text and "\u202e" not in text
    (policy,) = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert re.findall(r"https?:", re.sub(r"data:image/png;base64,[\w+/=]+", "", text)) == []


def test_damaged_chunks_are_said(good, earth, tmp_path):
    shutil.copytree(earth, tmp_path / "a.zarr")
    for chunk in (tmp_path / "a.zarr" / "t2m").glob("[0-9]*"):
        chunk.write_bytes(b"no chunk")
    page = show(good, tmp_path / "a.zarr")
    assert "No picture: " in page.text
    assert len(page.all("image")) == 1


def test_wrong_usage(fails, earth, tmp_path):
    assert "--pictures" in fails(2, "show", earth, "--pictures", "-1")
    assert str(tmp_path / "none.zarr") in fails(1, "show", tmp_path / "none.zarr")
    assert "view.json" in fails(1, "show", earth, "--view", tmp_path / "view.json")


def test_a_file_is_written_whole_or_not_at_all(good, fails, earth, tmp_path):
    assert good("show", earth, "-o", tmp_path / "page.html") == b""
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")
    fails(1, "show", earth, "-o", tmp_path / "missing" / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


# ---- a browser ----


def chromium(page, *options):
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    return subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", *options,
                           page.as_uri()], capture_output=True, check=True, timeout=60)


@pytest.mark.long
def test_a_browser_reads_it_without_errors(good, earth, view, tmp_path):
    page = tmp_path / "page.html"
    good("show", earth, "--view", view, "-o", page)
    done = chromium(page, "--dump-dom")
    assert b"CONSOLE" not in done.stderr, done.stderr
    shown = done.stdout.decode()
    assert shown.count("<h3") == page.read_text().count("<h3")
    assert html.escape("2 batches of 3 samples") in shown
