"""batchfs show: the page against xarray and zarr-python, its limits, and what a hostile store may
put in it."""

import base64
import html.parser
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pytest
import xarray as xr
import zarr
from watching import eventually

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "rect", "line", "image",
        "use", "path"}


class Page(html.parser.HTMLParser):
    """Structure of a page; refuses elements that are not closed in order."""

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
    """Indexes of the palette, or red, green and blue, by an independent reader of the format's few
    parts."""
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    parts, at = {}, 8
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        parts[data[at + 4:at + 8]] = data[at + 8:at + 8 + size]
        assert zlib.crc32(data[at + 4:at + 8 + size]) == int.from_bytes(
            data[at + 8 + size:at + 12 + size], "big")
        at += 12 + size
    width, height = (int.from_bytes(parts[b"IHDR"][i:i + 4], "big") for i in (0, 4))
    colours = {3: 1, 2: 3}[parts[b"IHDR"][9]]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(
        height, width * colours + 1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:] if colours == 1 else rows[:, 1:].reshape(height, width, 3)


@pytest.fixture(scope="module")
def earth(tmp_path_factory):
    """A field on a globe of 2 degrees, of which some chunks and some values are missing."""
    lat, lon = np.linspace(-89, 89, 90), np.arange(0, 360, 2.0)
    time = np.arange("2000-01-01", "2000-01-11", np.timedelta64(1, "D"), dtype="M8[ns]")
    values = (np.arange(10)[:, None, None] + np.zeros((10, 90, 180)) + lat[None, :, None]).astype(
        "f4")
    values[:, :9, :] = np.nan
    data = xr.Dataset({"t2m": (("time", "lat", "lon"), values,
                               {"units": "K", "long_name": "air temperature"}),
                       "rain": (("time", "lat", "lon"), values, {"units": "m"})},
                      {"time": time, "lat": lat, "lon": lon}, {"title": "A small Earth"})
    path = tmp_path_factory.mktemp("earth") / "earth.zarr"
    data.to_zarr(path, zarr_format=2,
                 encoding={"t2m": {"chunks": (1, 90, 180)}, "rain": {"chunks": (5, 45, 90)}})
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
    assert "every value is missing" in page.text
    assert "its values are not numbers" in page.text


def test_structures_show_their_fields(good, tmp_path):
    values = np.zeros((4, 4), [("u", "f4"), ("v", "i2")])
    values["u"] = np.arange(16).reshape(4, 4)
    zarr.save_array(tmp_path / "a.zarr", values, zarr_format=2)
    page = show(good, tmp_path / "a.zarr")
    assert "values.u" in page.text and "values.v" in page.text


# ---- true colours ----


def in_colours(page):
    """Pictures in true colours: pixels by label."""
    return {a["aria-label"]: png_pixels(image["href"]) for a, image in zip(
        [a for a in page.all("svg") if a.get("class") == "map"], page.all("image"), strict=True)
        if png_pixels(image["href"]).ndim == 3}


def stretched(bands):
    """Bytes, stretched without the lowest and the highest 2 % of all values."""
    values = np.sort(bands[np.isfinite(bands)])
    low, high = (values[int(part * (values.size - 1))] for part in (0.02, 0.98))
    return np.nan_to_num((bands - low) / (high - low)).clip(0, 1) * 255


def test_bands_of_sentinel_2_are_a_picture_in_true_colours(good, tmp_path):
    random = np.random.default_rng(4)
    bands = {name: random.integers(1000 * k, 1000 * k + 3000, (60, 50)).astype("f4")
             for k, name in enumerate(["b02", "b03", "b04", "b08"])}
    for values in bands.values():
        values[:7, :9] = np.nan
    data = xr.Dataset({name: (("y", "x"), values) for name, values in bands.items()})
    data.to_zarr(tmp_path / "a.zarr", group="r10m",
                 encoding={name: {"dtype": "u2", "_FillValue": 65535} for name in bands})
    page = show(good, tmp_path / "a.zarr")
    ((label, pixels),) = in_colours(page).items()
    assert label.startswith("Picture of r10m: red b04, green b03, blue b02: ")
    expected = stretched(
        np.stack([bands[name] for name in ("b04", "b03", "b02")], axis=-1).astype("f8"))
    inside = ~np.isnan(bands["b02"])
    assert np.abs(pixels[inside] - expected[inside]).max() <= 1
    assert (pixels[~inside] == 160).all()
    assert len(page.all("image")) == 5


def test_images_of_bytes_are_shown_as_they_are(good, tmp_path):
    image = np.random.default_rng(5).integers(0, 256, (2, 40, 30, 3)).astype("u1")
    zarr.create_array(tmp_path / "a.zarr", data=image, dimension_names=["n", "y", "x", "c"])
    ((_, pixels),) = in_colours(show(good, tmp_path / "a.zarr")).items()
    assert (pixels == image[1]).all()


def test_labels_of_bands_are_their_names(good, tmp_path):
    values = np.random.default_rng(6).normal(size=(4, 30, 20))
    xr.Dataset({"sr": (("band", "y", "x"), values)},
               {"band": ["nir", "blue", "green", "red"]}).to_zarr(tmp_path / "a.zarr")
    ((label, pixels),) = in_colours(show(good, tmp_path / "a.zarr")).items()
    assert "red red, green green, blue blue" in label
    assert np.abs(pixels - stretched(np.moveaxis(values[[3, 2, 1]], 0, -1))).max() <= 1


def test_channels_of_ome_zarr_have_their_colours(good, tmp_path):
    random = np.random.default_rng(7)
    image = random.integers(0, 5000, (3, 300, 280)).astype("u2")
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("0", data=image, chunks=(1, 100, 100))
    root.create_array("1", data=image[:, ::2, ::2], chunks=(1, 100, 100))
    channels = [{"label": "DNA", "color": "0000FF", "window": {"start": 100, "end": 4000}},
                {"label": "off", "color": "00FF00", "active": False,
                 "window": {"start": 0, "end": 1}},
                {"label": "<Actin>", "color": "FF8000", "window": {"start": 0, "end": 3000}}]
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"},
            {"name": "x", "type": "space"}]
    datasets = [{"path": str(k),
                 "coordinateTransformations": [{"type": "scale", "scale": [1, 2 ** k, 2 ** k]}]}
                for k in (0, 1)]
    root.attrs.update({"multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets}],
                       "omero": {"channels": channels}})
    ((label, pixels),) = in_colours(show(good, tmp_path / "a.zarr")).items()
    assert label == "Picture of 0: DNA (#0000FF) 100 to 4000, <Actin> (#FF8000) 0 to 3000"
    dna, actin = ((image[0] - 100.0) / 3900).clip(0, 1), (image[2] / 3000).clip(0, 1)
    expected = np.stack([actin, actin * 128 / 255, dna], axis=-1).clip(0, 1) * 255
    assert np.abs(pixels - expected).max() <= 1
    # Without usable colours there is no such picture.
    for wrong in ({"color": "red"}, {"color": "GG0000"}, {}, {"color": 5}):
        root.attrs["omero"] = {"channels": [{"label": "a", **wrong}] * 3}
        assert in_colours(show(good, tmp_path / "a.zarr")) == {}


def test_a_batch_has_a_row_in_true_colours(good, tmp_path):
    values = np.random.default_rng(8).normal(size=(3, 32, 24)).astype("f4")
    root = zarr.create_group(tmp_path / "a.zarr")
    for name, band in zip(("red", "green", "blue"), values, strict=True):
        root.create_array(name, data=band, chunks=(32, 24), dimension_names=["y", "x"])
    (tmp_path / "v.json").write_text(json.dumps(
        {"window": {"y": 32, "x": 24}, "batch": 1,
         "tensors": {"image": {"variables": ["red", "green", "blue"], "stack": "band"}}}))
    page = show(good, tmp_path / "a.zarr", "--view", tmp_path / "v.json")
    (sheet,) = [png_pixels(a["src"]) for a in page.all("img")]
    expected = stretched(np.moveaxis(values, 0, -1).astype("f8"))
    enlarge = 192 // 32
    found = [(y, x) for y in range(60) for x in range(20)
             if np.abs(sheet[y:y + 192:enlarge, x:x + 144:enlarge].astype("f8") - expected).max()
             <= 1]
    assert found, "the picture of the band is on the sheet"


# ---- limits ----


def test_a_huge_array_is_sampled(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(10**6, 10**5, 10**5), chunks=(1, 256, 256),
                      dtype="f4", fill_value=0.5)
    page = show(good, tmp_path / "a.zarr")
    assert "the middle 2048 x 2048 of 100000 x 100000" in page.text
    assert "64 chunks" in page.text
    assert "Not known which" in page.text


def test_a_chunk_past_the_limit_is_not_read(good, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(4000, 500, 500), chunks=(4000, 500, 500),
                      dtype="f4")
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
    one = root.create_array("v0", data=noise,
                            attributes={"long_name": "x" * 10_000, "units": "y" * 10_000})
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
    path.write_text(json.dumps({"name": "train", "variables": ["t2m", "rain"],
                                "select": {"time": {"from": "2000-01-05", "to": "2000-01-10"}},
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
        assert (f"{np.nanmean(values):.5g} {np.nanstd(values):.5g} {np.nanmin(values):.5g} "
                f"{np.nanmax(values):.5g}" in page.text)
    assert "2000-01-05" in page.text  # a label


def test_a_batch_that_is_too_large_is_not_read(good, earth, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps({"variables": ["t2m"], "window": {"time": 10},
                                                 "batch": {"size": 1}}))
    page = show(good, earth, "--view", tmp_path / "v.json", "--memory", "1M")
    assert "past the limit of" in page.text


# ---- hostile stores, and other failures ----

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x1b[31m\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "a <b>&\".zarr"
    root = zarr.create_group(path, zarr_format=2,
                             attributes={EVIL: EVIL, "list": [EVIL, {EVIL: EVIL}]})
    inner = root.create_group("<script>alert(3)<", attributes={"title": EVIL})
    name = "t\"><script>alert(4)<"
    array = inner.create_array(name, data=np.arange(6.0).reshape(2, 3))
    array.attrs.update({"_ARRAY_DIMENSIONS": [EVIL, "lon<script>"], "units": EVIL,
                        "long_name": EVIL, EVIL: EVIL})
    lon = inner.create_array("lon<script>", data=np.array(["<b>", EVIL, "c"], dtype="<U80"))
    lon.attrs.update({"_ARRAY_DIMENSIONS": ["lon<script>"], "units": EVIL})
    return path, {"group": "<script>alert(3)<", "name": EVIL.replace("/", "").replace("\x1b", ""),
                  "variables": [name], "window": {EVIL: 1}, "batch": 2}


def test_nothing_of_a_store_is_markup(good, hostile, tmp_path):
    store, view = hostile
    (tmp_path / "v.json").write_text(json.dumps(view))
    text = good("show", store, "--view", tmp_path / "v.json").decode()
    page = Page(text)
    assert "script" not in page.tags and "alert(1)" in page.text
    assert {name for _, attributes in page.attributes
            for name in attributes if name.startswith("on")} == set()
    for attributes in page.all("img") + page.all("image"):
        assert (attributes.get("src") or attributes.get("href")).startswith(
            "data:image/png;base64,")
    assert "\x1b" not in text and "\u202e" not in text
    (policy,) = [a["content"] for a in page.all("meta")
                 if a.get("http-equiv") == "Content-Security-Policy"]
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


sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser

# The focused element: its identity, whether it is visible, and whether it is marked.
FOCUSED = """(() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  return {tag: at.tagName, href: at.getAttribute("href"),
          name: at.getAttribute("aria-label") || at.textContent.trim(),
          seen: box.width > 0 && box.height > 0 && box.top < innerHeight && box.bottom > 0,
          marked: style.outlineStyle != "none" && parseFloat(style.outlineWidth) > 0};
})()"""


@pytest.fixture(scope="module")
def browser():
    if Browser.program is None:
        pytest.skip("chromium is not installed")
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(good, earth, view, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "page.html"
    good("show", earth, "--view", view, "-o", page)
    return page


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_it_without_errors(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.messages == []
    assert browser.value("document.querySelectorAll('h3').length") == page.read_text().count("<h3")
    assert "2 batches of 3 samples" in browser.value("document.body.innerText")
    # Only tables are wider than the window, and every picture is drawn.
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("[...document.images].every(image => image.naturalWidth > 0)")
    assert browser.value("""[...document.querySelectorAll("svg text")].filter(text => {
      const box = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
      return box.left < all.left - 1 || box.right > all.right + 1;
      }).map(text => text.textContent)""") == []
    back = browser.value("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    assert len(browser.picture()) > 20_000


@pytest.mark.long
def test_it_is_used_by_the_keyboard(browser, page):
    browser.open(page, 400)
    seen = []
    for _ in range(200):
        browser.press("Tab")
        focused = browser.value(FOCUSED)
        if focused["tag"] == "BODY" or (seen and focused == seen[0]):
            break
        assert focused["seen"] and focused["marked"] and focused["name"], focused
        seen.append(focused)
    links = browser.value("document.querySelectorAll('a').length")
    assert [at["tag"] for at in seen].count("A") == links > 3
    assert [at["tag"] for at in seen].count("SUMMARY") == browser.value(
        "document.querySelectorAll('summary').length") > 1
    wide = browser.value("[...document.querySelectorAll('.wide')].filter(at => at.scrollWidth > "
                         "at.clientWidth).length")
    assert [at["tag"] for at in seen].count("DIV") >= wide >= 1, "what is cut off can be scrolled"

    def go_to(tag):
        browser.open(page, 400)
        for _ in range(200):
            browser.press("Tab")
            if browser.value("document.activeElement.tagName") == tag:
                return
        raise AssertionError(tag)

    go_to("A")
    browser.press("Enter")
    assert browser.value("location.hash") == "#arrays"
    go_to("SUMMARY")
    for key in ("Enter", "Space"):
        before = browser.value("document.activeElement.parentElement.open")
        browser.press(key)
        assert browser.value("document.activeElement.parentElement.open") != before
    go_to("DIV")
    before = browser.value("document.activeElement.scrollLeft")

    def scrolls():
        browser.press("ArrowRight")  # again: a busy browser drops keys before it has drawn the page
        return browser.value("document.activeElement.scrollLeft") > before

    assert eventually(scrolls, 60)


@pytest.mark.long
def test_it_is_printed_light_and_whole(browser, page, tmp_path):
    browser.open(page, 1280, dark=True)
    (tmp_path / "page.pdf").write_bytes(browser.printed())
    for tool in ("pdftotext", "pdftoppm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (poppler-utils)")
    text = subprocess.run(["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True,
                          check=True).stdout
    text = " ".join(text.split())  # where lines break depends on the length of the store's path
    for words in ("Groups and arrays", "air temperature", "2 batches of 3 samples", "Missing"):
        assert words in text, words
    subprocess.run(["pdftoppm", "-r", "30", "-gray", tmp_path / "page.pdf", tmp_path / "p"],
                   check=True)
    for sheet in tmp_path.glob("p-*.pgm"):
        pixels = np.frombuffer(sheet.read_bytes().split(b"\n", 3)[3], np.uint8)
        assert np.median(pixels) == 255, "paper is white"
