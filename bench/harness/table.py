"""Tables for people."""


def text(rows, header):
    """Columns as wide as they need to be: the first to the left, the others to the right."""
    cells = [list(header)] + [[cell if isinstance(cell, str) else number(cell) for cell in row]
                              for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        first, *rest = (cell.rjust(width) if i else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths)))
        lines.append("  ".join([first, *rest]))
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def number(value):
    """Three significant digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
