"""Writes the pictures of "Concepts in pictures" into a folder: make_pictures.py [FOLDER], by
default _static/pictures.

Orders are those of batchfs: they are computed as batchfs-view(5) defines them.
"""

import pathlib
import sys
from xml.sax.saxutils import escape

BLUE, ORANGE, GREY, LINE, TEXT = "#2f6fb0", "#d9822b", "#e8ebef", "#8a94a0", "#1f2933"
# Colours of groups, which differ in lightness, too.
TINTS = ["#0b4f8a", "#d9822b", "#7fb3dd", "#8c5a9e", "#f2c879", "#3f8f6b"]
CELL = 26


class Picture:
    """Shapes in an SVG with a title, a description and a white background, so that it is legible in
    dark themes."""

    def __init__(self, title, description, width, height):
        self.head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                     f'width="{width}" height="{height}" role="img" aria-labelledby="title '
                     'description" font-family="system-ui, sans-serif" font-size="14">\n'
                     f'<title id="title">{escape(title)}</title>\n'
                     f'<desc id="description">{escape(description)}</desc>\n'
                     f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n')
        self.shapes = []

    def box(self, x, y, width, height, fill="none", stroke=LINE, thick=1, dashes=""):
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
                           f'fill="{fill}" stroke="{stroke}" stroke-width="{thick}"{dashed}/>')

    def text(self, x, y, words, anchor="start", fill=TEXT, size=14, weight="normal"):
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" '
                           f'font-size="{size}" font-weight="{weight}">{escape(words)}</text>')

    def grid(self, x, y, columns, rows, fill=GREY):
        for row in range(rows):
            for column in range(columns):
                self.box(x + column * CELL, y + row * CELL, CELL, CELL, fill)

    def arrow(self, x1, y1, x2, y2):
        self.shapes.append(f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="{TEXT}" fill="none" '
                           'marker-end="url(#head)"/>')

    def save(self, path):
        marker = ('<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="3" '
                  f'orient="auto"><path d="M0 0 L6 3 L0 6 Z" fill="{TEXT}"/></marker></defs>\n')
        path.write_text(self.head + marker + "\n".join(self.shapes) + "\n</svg>\n")


def window():
    picture = Picture("A window over a store",
                      "A grid of 12 longitudes and 6 latitudes. Windows of 4 by 3 cells lie side "
                      "by side; they are numbered 0 to 5, row by row. Window 0 is "
                      "highlighted: it is sample 0.", 420, 250)
    x, y = 60, 40
    picture.grid(x, y, 12, 6)
    picture.box(x, y, 4 * CELL, 3 * CELL, BLUE)
    for number in range(6):
        row, column = divmod(number, 3)
        left, top = x + column * 4 * CELL, y + row * 3 * CELL
        picture.box(left, top, 4 * CELL, 3 * CELL, stroke=TEXT, thick=2)
        picture.text(left + 2 * CELL, top + 1.5 * CELL + 5, f"sample {number}", "middle",
                     "#ffffff" if number == 0 else TEXT)
    picture.text(x + 6 * CELL, y - 12, "longitude, 12 positions", "middle")
    picture.text(x - 8, y + 3 * CELL + 5, "lat", "end")
    picture.text(x, y + 6 * CELL + 28, '"window": {"latitude": 3, "longitude": 4}', size=13)
    return picture


def stride():
    picture = Picture("Stride and overlap",
                      "Ten positions along a dimension. With size 4 and stride 4 two windows fit, "
                      "at 0 and 4; the last two positions are in none. With stride 2 four windows "
                      "fit, at 0, 2, 4 and 6, each sharing half of its positions with the next.",
                      520, 270)
    x, y = 130, 20
    picture.grid(x, y, 10, 1)
    for position in range(10):
        picture.text(x + (position + 0.5) * CELL, y + 18, str(position), "middle", size=12)
    y += 50
    for step in (4, 2):
        picture.text(x - 12, y + 14, f"stride {step}", "end")
        for number, start in enumerate(range(0, 7, step)):
            top = y + number * 24
            picture.box(x + start * CELL, top, 4 * CELL, 18, BLUE if number % 2 == 0 else TINTS[2],
                        LINE)
            picture.text(x + (start + 2) * CELL, top + 14, f"sample {number}", "middle",
                         "#ffffff" if number % 2 == 0 else TEXT, 12)
        y += 24 * len(range(0, 7, step)) + 26
    picture.text(x, y + 2, '"window": {"time": {"size": 4, "stride": 2}}', size=13)
    return picture


def offsets():
    picture = Picture("Offsets",
                      "Eight steps of time. For the sample at step 2, tensor x has the steps 1 and "
                      "2, offsets minus 1 and 0, and tensor y has step 3, offset 1. Step 0 and "
                      "step 7 are not samples, since an offset would leave the store.", 520, 230)
    x, y = 130, 24
    for row, step in enumerate((1, 2, 3)):
        top = y + row * 52
        picture.text(x - 12, top + 18, f"sample {step - 1}", "end")
        for position in range(8):
            inputs, target = position in (step - 1, step), position == step + 1
            picture.box(x + position * CELL * 1.6, top, CELL * 1.6, CELL,
                        BLUE if inputs else ORANGE if target else GREY)
            label = "x" if inputs else "y" if target else str(position)
            picture.text(x + (position + 0.5) * CELL * 1.6, top + 18, label, "middle",
                         "#ffffff" if inputs else TEXT)
    picture.text(20, y + 3 * 52 + 16,
                 '"x": {"offsets": {"time": [-1, 0]}}, "y": {"offsets": {"time": [1]}}', size=13)
    return picture


def batch():
    picture = Picture("A batch", "Four samples, 7, 2, 9 and 4, each with the channels t2m and z500 "
                                 "of 3 by 4 cells, are stacked into a tensor of the shape 4, 2, 3, "
                                 "4: sample, channel, latitude, longitude.", 640, 220)
    names = ["sample 7", "sample 2", "sample 9", "sample 4"]
    for number, name in enumerate(names):
        left = 20 + number * 105
        picture.text(left + 40, 24, name, "middle", size=13)
        for channel in (1, 0):
            for row in range(3):
                for column in range(4):
                    picture.box(left + channel * 14 + column * 16, 36 + channel * 14 + row * 16, 16,
                                16, (BLUE, ORANGE)[channel])
    picture.arrow(440, 70, 480, 70)
    picture.box(490, 36, 130, 70, GREY, TEXT, 2)
    picture.text(555, 66, "tensor x", "middle", weight="bold")
    picture.text(555, 88, "4 x 2 x 3 x 4", "middle")
    picture.text(20, 140, "blue: channel t2m, orange: channel z500", size=13)
    picture.text(20, 168, '"tensors": {"x": {"variables": ["t2m", "z500"], "stack": "channel"}},',
                 size=13)
    picture.text(20, 190, '"batch": 4', size=13)
    return picture


def permute(i, size, seed, epoch, stream=0):
    """The function of batchfs-view(5), section SHUFFLING."""
    mask, golden = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mix(x):
        x &= mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    half = 1
    while 1 << (2 * half) < size:
        half += 1
    low = (1 << half) - 1
    state = mix(mix(mix(seed + golden) + epoch + golden) + stream + golden)
    while True:
        left, right = i >> half, i & low
        for number in range(1, 7):
            left, right = right, left ^ (mix(right + mix(state + number * golden)) & low)
        i = left << half | right
        if i < size:
            return i


def order_of(shuffle, samples=24, group=4, buffer=2, seed=0, epoch=0):
    """The samples of an epoch; of "block" with groups of `group` samples in runs of `buffer`
    groups."""
    if shuffle == "none":
        return list(range(samples))
    if shuffle == "global":
        return [permute(i, samples, seed, epoch) for i in range(samples)]
    groups, result = samples // group, []
    for position in range(samples):
        run, i = divmod(position, buffer * group)
        i = permute(i, min(buffer, groups - run * buffer) * group, seed, epoch, 2 + run)
        result.append(permute(run * buffer + i // group, groups, seed, epoch) * group + i % group)
    return result


def order():
    picture = Picture("Orders", "Twenty-four samples in six chunks of four, a colour for each "
                                "chunk. Without a shuffle the chunks follow one another. A global "
                                "shuffle mixes all samples, so that each batch needs nearly every "
                                "chunk. A block shuffle mixes the samples of two chunks at a time, "
                                "so that a batch of four needs at most two.", 760, 190)
    x = 90
    for row, shuffle in enumerate(("none", "global", "block")):
        top = 20 + row * 46
        picture.text(x - 12, top + 18, shuffle, "end")
        for place, sample in enumerate(order_of(shuffle)):
            tint = TINTS[sample // 4]
            left = x + place * CELL + place // 4 * 4
            picture.box(left, top, CELL, CELL, tint)
            dark = tint in (TINTS[0], TINTS[3], TINTS[5])
            picture.text(left + CELL / 2, top + 18, str(sample), "middle",
                         "#ffffff" if dark else TEXT, 12)
    picture.text(x, 176, '"batch": 4, "order": {"shuffle": "block", "buffer": 2}; '
                         'a colour is a chunk', size=13)
    return picture


def split():
    picture = Picture("Parts with a gap",
                      "Twenty steps of time: the first eleven are for training, then a gap of two "
                      "is in no part, then four for validation, and the last three for test.", 640,
                      130)
    x, y = 20, 30
    parts = [("train", 11, BLUE), ("gap", 2, "#ffffff"), ("val", 4, ORANGE), ("test", 3, TINTS[3])]
    at = 0
    for name, length, fill in parts:
        picture.box(x + at * 30, y, length * 30, 34, fill, TEXT, 1, "4 3" if name == "gap" else "")
        picture.text(x + (at + length / 2) * 30, y + 22, name, "middle",
                     TEXT if name in ("gap", "val") else "#ffffff")
        at += length
    picture.text(x, 104, '"split": {"parts": {"train": "rest", "val": [...], "test": [...]}, '
                         '"gap": {"time": 2}}', size=13)
    return picture


PICTURES = {"window": window, "stride": stride, "offsets": offsets, "batch": batch, "order": order,
            "split": split}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PICTURES.items():
        make().save(folder / f"{name}.svg")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1
         else pathlib.Path(__file__).parents[1] / "_static" / "pictures")
