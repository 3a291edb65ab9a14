"""A picture of waits: for each contender a histogram and a timeline, as one SVG, from a file of
results.

  python -m harness.picture RESULTS.json PART-OF-TITLE OUT.svg
"""

import html
import json
import math
import sys

LEFT, HISTOGRAM, TIMELINE, ROW, GAP = 190, 330, 420, 54, 26
LOW, HIGH = 1e-5, 10.0  # seconds
STEPS = 40
COLORS = {"batchfs": "#1b7837"}
PEER = "#7b6f8e"


def place(seconds, width):
    """Where a wait lies on a logarithmic scale."""
    at = ((math.log10(min(max(seconds, LOW), HIGH)) - math.log10(LOW))
          / (math.log10(HIGH) - math.log10(LOW)))
    return at * width


def label(seconds):
    return (f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.0f} ms"
            if seconds < 1 else f"{seconds:.0f} s")


def picture(title, found):
    height = 60 + (ROW + 14) * len(found) + 40
    width = LEFT + HISTOGRAM + GAP + TIMELINE + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="10" y="20" font-size="14">{html.escape(title)}</text>',
           f'<text x="{LEFT}" y="42" fill="#555">how often a wait took how long</text>',
           f'<text x="{LEFT + HISTOGRAM + GAP}" y="42" fill="#555">wait of each batch, '
           'first to last</text>']
    bottom = 60 + (ROW + 14) * len(found)
    for exponent in range(-5, 2):
        x = LEFT + place(10.0 ** exponent, HISTOGRAM)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="50" y2="{bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" '
                   f'fill="#555">{label(10.0 ** exponent)}</text>')
    for row, (name, values) in enumerate(found.items()):
        base = 50 + (ROW + 14) * (row + 1)
        color = next((c for part, c in COLORS.items() if name.startswith(part)), PEER)
        waits = values["waits"]
        counts = [0] * STEPS
        for wait in waits:
            counts[min(STEPS - 1, int(place(wait, STEPS)))] += 1
        out.append(f'<text x="10" y="{base - ROW / 2:.0f}">{html.escape(name)}</text>')
        out.append(f'<text x="10" y="{base - ROW / 2 + 15:.0f}" fill="#555">first '
                   f'{label(waits[0])}, p99 {label(values["p99_ms"] / 1e3)}</text>')
        for step, count in enumerate(counts):
            if count:  # the root shows the rare long waits beside the many short ones
                tall = ROW * math.sqrt(count / len(waits))
                out.append(f'<rect x="{LEFT + step * HISTOGRAM / STEPS:.1f}" y="{base - tall:.1f}" '
                           f'width="{HISTOGRAM / STEPS - 1:.1f}" '
                           f'height="{tall:.1f}" fill="{color}"/>')
        points = " ".join(f"{LEFT + HISTOGRAM + GAP + TIMELINE * i / max(1, len(waits) - 1):.1f}"
                          f",{base - place(wait, ROW):.1f}" for i, wait in enumerate(waits))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1"/>')
        out.append(f'<line x1="{LEFT}" x2="{width - 20}" y1="{base}" y2="{base}" stroke="#999"/>')
    return "\n".join([*out, "</svg>", ""])


def main():
    results, part, out = sys.argv[1:]
    for workload in json.load(open(results)).values():
        for title, found in workload.items() if isinstance(workload, dict) else ():
            if (part in title and isinstance(found, dict)
                    and all(isinstance(v, dict) and "waits" in v for v in found.values())):
                open(out, "w").write(picture(title, found))
                return 0
    print(f"no part named {part!r} with waits in {results}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
