# python/tenon/_html.py: what a notebook shows of a Tensor: its facts, and where its elements lie in memory.
"""Tensors in notebooks.

The drawing has two halves. Above, a grid as the tensor is indexed: each cell says how many elements after the first it
lies. Below, the memory in its own order: each cell says the index of the element there. A row has one colour in both.
The picture is made of the description alone: no memory is read, so that of a device is drawn as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tenon._core import Tensor
from tenon._dtype import dtype
from tenon._limits import package_of
from tenon._memory import is_compact
from tenon._remedies import name_of

# How much is drawn: larger tensors show their beginning and their end.
_MOST_ROWS, _MOST_COLUMNS, _MOST_IN_ONE_ROW = 6, 8, 16
#: More cells than this between two that are shown are drawn as one.
_MOST_BETWEEN = 3
#: Steps that the search for elements may take, in each place where it looks.
_PATIENCE = 300

# In pixels: the drawing, a cell's height, a line of memory with the numbers under it.
_WIDTH, _CELL, _LINE = 720, 22, 44


def repr_html(self: Tensor) -> str:
    """The facts and a drawing of the memory layout, as HTML with an SVG inside: for notebooks, which call it.

    >>> import tenon
    >>> tenon.asdlpack(b"abc")._repr_html_().startswith("<div")
    True
    """
    facts = "".join(
        f'<tr><td style="text-align:left"><b>{name}</b></td><td style="text-align:left">{_escaped(value)}</td></tr>'
        for name, value in _facts(self)
    )
    return f"<div><b>tenon.Tensor</b><table>{facts}</table>{_drawing(self) if self.size else ''}</div>"


def _facts(t: Tensor) -> Iterator[tuple[str, str]]:
    kind = dtype(t.dtype)
    yield "shape", f"{t.shape}" + ("" if t.size else ": no elements")
    yield "dtype", f"{kind} ({kind.bits} bits{f' × {kind.lanes}' if kind.lanes > 1 else ''})"
    yield "device", t.device
    steps = ""
    if _bits_apart(t) % 8 == 0 and t.ndim:
        steps = f" elements = {tuple(s * kind.itemsize for s in t.strides)} bytes"
    yield "strides", f"{t.strides}{steps}: {_layout(t)}"
    yield "memory", f"{t.nbytes:,} bytes at {t.data_ptr:#x}" + (", read-only" if t.readonly else "")
    if owner := _owner_name(t):
        yield "owner", owner if len(owner) <= 100 else owner[:100] + "…"


def _owner_name(t: Tensor) -> str:
    """The package and the class of what keeps the memory, as in the Tensor's repr; no code of that class runs."""
    kind = type(t.owner)
    name, package = name_of(kind), package_of(kind)
    if kind is type(None):
        return ""
    return name if package in ("", "builtins") else f"{package}.{name}"


def _bits_apart(t: Tensor) -> int:
    """From one element to its neighbour: not whole bytes for packed ones."""
    kind = dtype(t.dtype)
    return kind.itemsize * 8 if t.flags & 4 else kind.bits * kind.lanes


def _layout(t: Tensor) -> str:
    if t.is_contiguous:
        return "row-major, without gaps"
    stepped = [(axis, n, s) for axis, (n, s) in enumerate(zip(t.shape, t.strides, strict=True)) if n > 1]
    words: list[str] = []
    if repeated := [str(axis) for axis, _, s in stepped if s == 0]:
        words.append(f"repeated along axis {', '.join(repeated)}")
    if backward := [str(axis) for axis, _, s in stepped if s < 0]:
        words.append(f"reversed along axis {', '.join(backward)}")
    moving = [(n, abs(s)) for _, n, s in stepped if s]
    if not is_compact([n for n, _ in moving], [s for _, s in moving]):
        overlap = math.prod(n for n, _ in moving) > 1 + sum((n - 1) * s for n, s in moving)
        words.append("overlapping" if overlap else "with gaps")
    elif [s for _, s in moving] == sorted(s for _, s in moving) and len(moving) > 1:
        words.append("column-major")
    elif [s for _, s in moving] != sorted((s for _, s in moving), reverse=True):
        words.append("axes in another order")
    return "; ".join(words)


def _escaped(text: str) -> str:
    """For HTML and XML alike, whatever somebody called his class."""
    from html import escape

    return escape("".join(c if c.isprintable() else "\ufffd" for c in str(text)))


# --- which elements are drawn, and where they lie ---------------------------------------------------


class _Slice(NamedTuple):
    """The last two axes of a tensor, all others at their beginning; missing ones have one place."""

    rows: int
    columns: int
    row_step: int
    column_step: int
    shown_rows: list[int]
    shown_columns: list[int]

    def place(self, row: int, column: int) -> int:
        """How many elements after the first one it lies."""
        return row * self.row_step + column * self.column_step

    @property
    def places(self) -> dict[int, list[tuple[int, int]]]:
        """In memory order, and who lies there: positions among the shown rows and columns."""
        found: dict[int, list[tuple[int, int]]] = {}
        for i, row in enumerate(self.shown_rows):
            for j, column in enumerate(self.shown_columns):
                found.setdefault(self.place(row, column), []).append((i, j))
        return dict(sorted(found.items()))


def _last_axes(t: Tensor) -> _Slice:
    rows, columns = (1, 1, *t.shape)[-2:]
    row_step, column_step = (0, 0, *t.strides)[-2:]
    farthest = max(abs((rows - 1) * row_step), abs((columns - 1) * column_step))
    fitting = (_WIDTH - _width_for(rows)) // _width_for(columns, -2 * farthest) - 1
    most = min(_MOST_IN_ONE_ROW if rows == 1 else _MOST_COLUMNS, fitting)
    return _Slice(rows, columns, row_step, column_step, _shown(rows, _MOST_ROWS), _shown(columns, most))


def _shown(extent: int, most: int) -> list[int]:
    return list(range(extent)) if extent <= most else [*range(most - 2), extent - 1]


def _places_within(t: Tensor, begin: int, end: int) -> Iterator[int]:
    """Where elements lie, from `begin` to before `end`, counted from the first; some several times.

    Strides can be made so that the search is long. It is then given up, and everything taken for an element.
    """
    axes = sorted(
        ((s, n) for n, s in zip(t.shape, t.strides, strict=True) if n > 1 and s), key=lambda axis: -abs(axis[0])
    )
    low, high = [0], [0]  # what the axes from here on can add
    for step, extent in reversed(axes):
        low.append(low[-1] + min(0, step * (extent - 1)))
        high.append(high[-1] + max(0, step * (extent - 1)))
    low.reverse()
    high.reverse()
    left = _PATIENCE

    def search(depth: int, offset: int) -> Iterator[int]:
        nonlocal left
        if depth == len(axes):
            yield offset
            return
        step, extent = axes[depth]
        nearest, farthest = begin - high[depth + 1] - offset, end - 1 - low[depth + 1] - offset
        if step < 0:
            nearest, farthest = farthest, nearest
        for i in range(max(0, -(-nearest // step)), min(extent - 1, farthest // step) + 1):
            left -= 1
            if left < 0:
                return
            yield from search(depth + 1, offset + i * step)

    yield from search(0, 0)
    if left < 0:
        yield from range(begin, end)


# --- the drawing ------------------------------------------------------------------------------------

# Looks: attributes of a group of shapes. Text and lines take the colour of the page's text, and the rest lets the page
# shine through, so that it is readable on light and dark ones.
_COLOURS = tuple(f'fill="hsl({hue},80%,55%)" fill-opacity=".45"' for hue in (210, 28, 140, 330, 265, 180))
_FRAME = 'fill="none" stroke="currentColor" stroke-opacity=".45"'
_FIRST = 'fill="none" stroke="currentColor" stroke-width="2"'
_GAP = 'fill="none" stroke="currentColor" stroke-opacity=".35" stroke-dasharray="2 3"'
_OTHER = 'fill="currentColor" fill-opacity=".14"'
_CENTRED = 'text-anchor="middle"'
_MUTED = 'text-anchor="middle" fill-opacity=".6"'
_TICK = 'text-anchor="middle" fill-opacity=".6" font-size="8"'
_HEADING = 'fill-opacity=".6" font-size="11"'
_ROW_NUMBER = 'text-anchor="end" fill-opacity=".6"'


class _Sheet:
    """Shapes, kept by their look. Text is drawn last, over everything."""

    def __init__(self) -> None:
        self.boxes: dict[str, list[str]] = {}
        self.texts: dict[str, list[str]] = {}

    def box(self, look: str, x: float, y: float, width: float, height: float) -> None:
        shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'
        self.boxes.setdefault(look, []).append(shape)

    def text(self, look: str, x: float, y: float, words: object) -> None:
        self.texts.setdefault(look, []).append(f'<text x="{x:g}" y="{y:g}">{_escaped(str(words))}</text>')

    def cell(self, look: str, x: float, y: float, width: float) -> None:
        self.box(look, x + 1, y + 1, width - 2, _CELL - 2)

    def svg(self, height: float) -> str:
        groups = (*self.boxes.items(), *self.texts.items())
        inside = "".join(f"<g {look}>{''.join(shapes)}</g>" for look, shapes in groups)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="memory layout" width="{_WIDTH}" '
            f'height="{height:g}" viewBox="0 0 {_WIDTH} {height:g}" style="max-width:100%;height:auto" '
            f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="10" fill="currentColor">{inside}</svg>'
        )


def _drawing(t: Tensor) -> str:
    sheet, part = _Sheet(), _last_axes(t)
    middle = _draw_grid(sheet, t, part) if t.ndim else 0
    return sheet.svg(_draw_strip(sheet, t, part, middle))


def _width_for(*labels: object) -> int:
    return max(26, 8 + math.ceil(6.1 * max(len(str(label)) for label in labels)))


def _draw_grid(sheet: _Sheet, t: Tensor, part: _Slice) -> int:
    """The upper half. Returns where it ends."""
    which = " [0, :, :]" if t.ndim == 3 else f" [0, {'0' if t.ndim == 4 else '…'}, :, :]" if t.ndim > 3 else ""
    sheet.text(_HEADING, 0, 11, f"by index{which}: the place of each element in memory, counted from the first")
    left, top = (8 + math.ceil(6.1 * len(str(part.rows - 1))) if t.ndim > 1 else 0), 34
    last_row, last_column = len(part.shown_rows) - 1, len(part.shown_columns) - 1
    cut_rows, cut_columns = last_row + 1 < part.rows, last_column + 1 < part.columns
    width = _width_for(*part.places, part.columns - 1)

    def x_of(j: int) -> int:
        return left + width * (j + (cut_columns and j == last_column))

    def y_of(i: int) -> int:
        return top + _CELL * (i + (cut_rows and i == last_row))

    for j, column in enumerate(part.shown_columns):
        sheet.text(_MUTED, x_of(j) + width / 2, top - 5, column)
    for i, row in enumerate(part.shown_rows):
        if t.ndim > 1:
            sheet.text(_ROW_NUMBER, left - 6, y_of(i) + 15, row)
        if cut_columns:
            sheet.text(_MUTED, x_of(last_column) - width / 2, y_of(i) + 15, "⋯")
        for j, column in enumerate(part.shown_columns):
            sheet.cell(_COLOURS[i], x_of(j), y_of(i), width)
            sheet.text(_CENTRED, x_of(j) + width / 2, y_of(i) + 15, part.place(row, column))
    if cut_rows:
        sheet.text(_MUTED, left + width / 2, y_of(last_row) - 7, "⋮")
    return y_of(last_row) + _CELL + 14


def _draw_strip(sheet: _Sheet, t: Tensor, part: _Slice, top: int) -> int:
    """The lower half, which begins at `top`. Returns where it ends."""
    sheet.text(_HEADING, 0, top + 11, "in memory: the index of the element in each place; the first one is outlined")
    labels = {place: _label(t, part, there) for place, there in part.places.items()}
    width = _width_for(*labels, *labels.values())
    x, y = 0, top + 20

    def take_room(needed: int) -> int:
        """Where the next cell goes: on the next line when this one is full."""
        nonlocal x, y
        if x and x + needed > _WIDTH:
            x, y = 0, y + _LINE
        x += needed
        return x - needed

    def draw_between(begin: int, end: int) -> None:
        """The places from `begin` to before `end`: none is in the grid."""
        if end - begin > _MOST_BETWEEN:
            used = next(_places_within(t, begin, end), None) is not None
            words = f"⋯ {end - begin:,} places ⋯" if used else f"⋯ gap of {end - begin:,} ⋯"
            at = take_room(_width_for(words))
            sheet.cell(_OTHER if used else _GAP, at, y, _width_for(words))
            sheet.text(_MUTED, at + _width_for(words) / 2, y + 15, words)
            return
        used_ones = set(_places_within(t, begin, end))
        for place in range(begin, end):
            at = take_room(width)
            sheet.cell(_OTHER if place in used_ones else _GAP, at, y, width)
            sheet.text(_TICK, at + width / 2, y + 33, place)

    reach = [(n - 1) * s for n, s in zip(t.shape, t.strides, strict=True)]
    before = sum(s for s in reach if s < 0)
    for place, there in part.places.items():
        draw_between(before, place)
        before = place + 1
        at = take_room(width)
        rows = sorted({i for i, _ in there})
        band = (_CELL - 2) / len(rows)  # a place that several rows have in common shows all their colours
        for n, i in enumerate(rows):
            sheet.box(_COLOURS[i], at + 1, round(y + 1 + n * band, 1), width - 2, round(band, 1))
        sheet.cell(_FIRST if place == 0 else _FRAME, at, y, width)
        sheet.text(_CENTRED, at + width / 2, y + 15, labels[place])
        sheet.text(_TICK, at + width / 2, y + 33, place)
    draw_between(before, 1 + sum(s for s in reach if s > 0))
    return y + _LINE


def _label(t: Tensor, part: _Slice, there: list[tuple[int, int]]) -> str:
    """The index of what lies in one place: ':' for all along an axis, '3×' for several that make no such pattern."""

    def along(positions: set[int], shown: list[int]) -> str | None:
        if len(positions) == 1:
            return str(shown[min(positions)])
        return ":" if len(positions) == len(shown) else None

    rows, columns = {i for i, _ in there}, {j for _, j in there}
    row, column = along(rows, part.shown_rows), along(columns, part.shown_columns)
    if row is None or column is None or len(rows) * len(columns) != len(there):
        return f"{len(there)}×"
    return ("()", column, f"{row},{column}")[min(t.ndim, 2)]
