"""JSON as a compact piece of HTML for notebooks. Everything in it comes from a store and is
escaped."""

from __future__ import annotations

import html
from typing import Any

from ._program import printable

_MOST_ROWS, _MOST_COLUMNS, _MOST_DEPTH, _MOST_TEXT = 100, 24, 5, 200
_MOST_OPEN = 20  # rows of details that are open from the start
_TABLE = '<table style="border-collapse:collapse;text-align:left;font-size:90%">'
_CELL = 'style="text-align:left;vertical-align:top;padding:0.1em 0.6em"'


def page_of(title: str, values: dict[str, Any]) -> str:
    """Scalars as a table, nested values below it as collapsible sections."""
    return f"<div><strong>{_text(title)}</strong>{_of(values, 0, unfolded=True)}</div>"


def frame_of(title: str, page: str) -> str:
    """A whole page inside another one: neither its style nor anything else in it reaches the
    other."""
    return (f'<iframe sandbox="" title="{_text(title)}" srcdoc="{html.escape(page)}" '
            'style="width:100%;height:640px;border:1px solid #d5dbe1"></iframe>')


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        text = {True: "yes", False: "no", None: "-"}[value]
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = str(value)
    if len(text) > _MOST_TEXT:
        text = text[:_MOST_TEXT] + "…"
    return html.escape(printable(text))


def _is_single(value: Any) -> bool:
    """Does it fit in a cell?"""
    if isinstance(value, list):
        return len(value) <= 8 and not any(isinstance(one, (dict, list)) for one in value)
    return not isinstance(value, dict) or not value


def _cell(value: Any, depth: int) -> str:
    if isinstance(value, dict) and not value:
        return "-"
    if isinstance(value, list) and _is_single(value):
        return ", ".join(map(_text, value)) or "-"
    return _of(value, depth) if isinstance(value, (dict, list)) else _text(value)


def _of(value: Any, depth: int, unfolded: bool = False) -> str:
    if depth >= _MOST_DEPTH:
        return "…"
    inside = _rows(value, depth) if isinstance(value, list) else _pairs(value, depth)
    if unfolded:
        return inside
    opened = " open" if depth == 1 and len(value) <= _MOST_OPEN else ""
    return f"<details{opened}><summary>{len(value)}</summary>{inside}</details>"


def _pairs(values: dict[str, Any], depth: int) -> str:
    if depth > 0 and all(isinstance(value, dict) and value for value in values.values()):
        return _rows([{"": key, **value} for key, value in list(values.items())[:_MOST_ROWS]],
                     depth, len(values))
    rows = [f'<tr><th scope="row" {_CELL}>{_text(key)}</th><td '
            f'{_CELL}>{_cell(value, depth + 1)}</td></tr>'
            for key, value in list(values.items())[:_MOST_ROWS]]
    return f"{_TABLE}<tbody>{''.join(rows)}</tbody></table>{_more(len(values))}"


def _rows(values: list[Any], depth: int, count: int | None = None) -> str:
    count = len(values) if count is None else count
    shown = values[:_MOST_ROWS]
    if not all(isinstance(value, dict) for value in shown):
        return ", ".join(_cell(value, depth + 1) for value in shown) + _more(count)
    columns = list(dict.fromkeys(key for value in shown for key in value))[:_MOST_COLUMNS]
    head = "".join(f'<th scope="col" {_CELL}>{_text(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{_cell(value[key], depth + 1) if key in value else ''}</td>"
                         for key in columns) + "</tr>" for value in shown)
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_more(count)}"


def _more(count: int) -> str:
    return f"<p>and {count - _MOST_ROWS} more</p>" if count > _MOST_ROWS else ""
