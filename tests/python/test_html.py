# tests/python/test_html.py: what a notebook shows of a Tensor: well-formed, of bounded size, and true of every layout.
from __future__ import annotations

import doctest
import html.parser
import itertools
import random
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

import pytest
from real_support import script

import tenon
import tenon._html
from tenon import _core

SVG = "{http://www.w3.org/2000/svg}"
NOWHERE = 0x7F00_0000_0000  # nothing is mapped there: whoever reads it dies
COLOURS = [re.search(r"hsl\(\d+", look).group() for look in tenon._html._COLOURS]


def described(shape, strides=None, triple=(2, 32, 1), device=(2, 0), readonly=False, padded=False, owner=None):
    return _core.from_pointer(NOWHERE, shape, strides, triple, device, readonly, padded, owner, None)


@dataclass
class Cell:
    colours: list[int] = field(default_factory=list)
    look: str = ""  # of what has no colour: gap, other
    first: bool = False
    label: str = ""
    place: str = ""


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def drawn(t):
    """The grid as rows of labels with their colours, and the strip as cells from left to right, line by line."""
    root = ElementTree.fromstring(t._repr_html_())
    svg = root.find(f".//{SVG}svg")
    width, height = numbers(svg, "width", "height")
    headings = [e for e in svg.iter(f"{SVG}text") if e.text.startswith(("by index", "in memory"))]
    middle = float(headings[-1].get("y"))
    cells: dict[tuple[int, float], Cell] = {}
    grid: dict[tuple[float, float], Cell] = {}
    for group in svg.findall(f"{SVG}g"):
        for box in group.findall(f"{SVG}rect"):
            x, y, wide, high = numbers(box, "x", "y", "width", "height")
            assert x >= 0 and x + wide <= width and y + high <= height, "outside the drawing"
            if y < middle:
                cell = grid.setdefault((y, x + wide / 2), Cell())
            else:
                cell = cells.setdefault((int(y - middle - 9) // 44, x + wide / 2), Cell())
            fill = group.get("fill")
            if fill.startswith("hsl"):
                cell.colours.append(COLOURS.index(fill.split(",")[0]))
            elif group.get("stroke-width") == "2":
                cell.first = True
            elif "stroke-dasharray" in group.attrib:
                cell.look = "gap"
            elif fill == "currentColor":
                cell.look = "other"
        for text in group.findall(f"{SVG}text"):
            x, y = numbers(text, "x", "y")
            at = (y - 14, x), (int(y - middle - 9) // 44, x)
            if text in headings:
                continue
            if y < middle:
                if at[0] in grid:
                    grid[at[0]].label = text.text
            elif group.get("font-size") == "8":
                cells[at[1]].place = text.text
            else:
                cells[at[1]].label = text.text
    lines = [list(line) for _, line in itertools.groupby(sorted(grid.items()), key=lambda item: item[0][0])]
    return [[cell for _, cell in line] for line in lines], [cell for _, cell in sorted(cells.items())]


def labels(cells):
    return [cell.label or cell.look for cell in cells]


# --- layouts ----------------------------------------------------------------------------------------


def test_row_major():
    grid, strip = drawn(described((2, 3)))
    assert [labels(line) for line in grid] == [["0", "1", "2"], ["3", "4", "5"]]
    assert [[cell.colours for cell in line] for line in grid] == [[[0]] * 3, [[1]] * 3]
    assert labels(strip) == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert [cell.colours for cell in strip] == [[0]] * 3 + [[1]] * 3
    assert [cell.place for cell in strip] == list("012345")
    assert [cell.first for cell in strip] == [True] + [False] * 5


def test_transposed():
    grid, strip = drawn(described((2, 3), (1, 2)))
    assert [labels(line) for line in grid] == [["0", "2", "4"], ["1", "3", "5"]]
    assert labels(strip) == ["0,0", "1,0", "0,1", "1,1", "0,2", "1,2"]
    assert [cell.colours for cell in strip] == [[0], [1]] * 3


def test_sliced():
    _, strip = drawn(described((2, 2), (6, 2)))
    assert labels(strip) == ["0,0", "gap", "0,1", "gap", "gap", "gap", "1,0", "gap", "1,1"]
    assert [cell.colours for cell in strip if cell.look == "gap"] == [[]] * 5
    _, strip = drawn(described((2, 2), (1000, 1)))
    assert labels(strip) == ["0,0", "0,1", "⋯ gap of 998 ⋯", "1,0", "1,1"]


def test_reversed():
    grid, strip = drawn(described((3,), (-1,)))
    assert labels(grid[0]) == ["0", "-1", "-2"]
    assert labels(strip) == ["2", "1", "0"]
    assert [cell.place for cell in strip] == ["-2", "-1", "0"]
    assert [cell.first for cell in strip] == [False, False, True]
    _, strip = drawn(described((2, 2), (2, -1)))
    assert labels(strip) == ["0,1", "0,0", "1,1", "1,0"]
    assert [cell.first for cell in strip] == [False, True, False, False]


def test_repeated():
    grid, strip = drawn(described((3, 2), (0, 1)))
    assert [labels(line) for line in grid] == [["0", "1"]] * 3
    assert labels(strip) == [":,0", ":,1"]
    assert [cell.colours for cell in strip] == [[0, 1, 2]] * 2
    _, strip = drawn(described((2, 3), (1, 0)))
    assert labels(strip) == ["0,:", "1,:"]
    _, strip = drawn(described((2**40,), (0,)))
    assert labels(strip) == [":"]


def test_overlapping():
    _, strip = drawn(described((3, 3), (1, 1)))
    assert labels(strip) == ["0,0", "2×", "3×", "2×", "2,2"]
    assert [cell.colours for cell in strip] == [[0], [0, 1], [0, 1, 2], [1, 2], [2]]


def test_without_axes():
    grid, strip = drawn(described(()))
    assert grid == []
    assert (labels(strip), strip[0].first) == (["()"], True)


def test_more_axes_show_the_last_two():
    grid, strip = drawn(described((2, 2, 2)))
    assert [labels(line) for line in grid] == [["0", "1"], ["2", "3"]]
    assert labels(strip) == ["0,0", "0,1", "1,0", "1,1", "⋯ 4 places ⋯"]
    grid, strip = drawn(described((2, 2, 2), (1, 4, 2)))
    assert labels(strip) == ["0,0", "other", "0,1", "other", "1,0", "other", "1,1", "other"]
    assert "by index [0, :, :]:" in described((2, 2, 2))._repr_html_()
    assert "by index [0, …, :, :]:" in described((1,) * 60)._repr_html_()


def test_large_ones_show_both_ends():
    grid, strip = drawn(described((1000, 1000)))
    assert len(grid) == 5
    assert labels(grid[0]) == ["0", "1", "2", "3", "4", "5", "999"]
    assert labels(grid[-1])[-1] == "999999"
    assert labels(strip)[:8] == ["0,0", "0,1", "0,2", "0,3", "0,4", "0,5", "⋯ 993 places ⋯", "0,999"]
    assert labels(strip)[-1] == "999,999"
    _, strip = drawn(described((100,)))
    assert labels(strip)[-3:] == ["13", "⋯ 85 places ⋯", "99"]
    _, strip = drawn(described((10**9,)))  # longer numbers, so fewer of them
    assert labels(strip)[-3:] == ["5", "⋯ 999,999,993 places ⋯", "999999999"]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0)])
def test_empty(shape):
    shown = described(shape)._repr_html_()
    ElementTree.fromstring(shown)
    assert "no elements" in shown
    assert "<svg" not in shown


def test_every_place_is_what_the_strides_say():
    """Small random layouts, each place against a plain enumeration."""
    chance = random.Random(5)
    seen = set()
    for _ in range(300):
        shape = tuple(chance.randint(1, 4) for _ in range(chance.randint(1, 4)))
        strides = tuple(chance.randint(-6, 6) for _ in shape)
        used: dict[int, list[tuple[int, ...]]] = {}
        for index in itertools.product(*map(range, shape)):
            used.setdefault(sum(i * s for i, s in zip(index, strides, strict=True)), []).append(index)
        _, strip = drawn(described(shape, strides))
        place = min(used)
        for cell in strip:
            if many := re.fullmatch(r"⋯ (gap of )?(\d+)( places)? ⋯", cell.label):
                places = range(place, place + int(many[2]))
                assert (cell.look == "gap") is not any(p in used for p in places)
            else:
                places = range(place, place + 1)
                inside = [i for i in used.get(place, []) if not any(i[:-2])]
                rows = sorted({(0, *i)[-2] for i in inside})
                assert int(cell.place) == place
                assert cell.colours == rows
                assert cell.first is (place == 0)
                assert cell.look == ("" if inside else "other" if place in used else "gap")
            seen.add((cell.look, len(cell.colours) > 1, bool(many)))
            place = places.stop
        assert place == max(used) + 1
    assert len(seen) >= 6  # gaps, others and shared places, one by one and many together


# --- whatever the tensor ----------------------------------------------------------------------------

EXTREMES = {
    "many axes": ((1,) * 64, None),
    "many axes of two": ((2,) * 40, tuple(3**i % 1_000_003 for i in range(40))),
    "everything in one place": ((2,) * 40, (0,) * 40),
    "a long search": ((2,) * 40, tuple(7 ** (i % 7) * (-1) ** i for i in range(40))),
    "a search without an end": ((2,) * 40, (2, -2) * 19 + (1000, 4)),
    "all overlapping": ((10**6, 1000, 1000), (1, 1, 1)),
    "many small gaps": ((6, 8), (4, -29)),
    "far apart": ((6, 8), (10**15, 10**13)),
    "far apart backwards": ((6, 8), (-(10**12), -(10**10))),
    "large and negative": ((2**30, 2**30), (2**31, -1)),
    "long numbers": ((16,), (10**17,)),
    "two long axes": ((2**40, 2**20), None),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_size_is_bounded(name):
    shape, strides = EXTREMES[name]
    t = described(shape, strides)
    shown = t._repr_html_()
    assert len(shown.encode()) < 40_000
    drawn(t)  # well-formed, and nothing outside


def test_a_search_that_is_given_up_calls_nothing_a_gap():
    _, strip = drawn(described(*EXTREMES["a search without an end"]))
    assert labels(strip) == ["⋯ 38 places ⋯", "0,0", "other", "other", "other", "0,1", "⋯ 995 places ⋯", "1,0"] + [
        "other", "other", "other", "1,1", "⋯ 38 places ⋯",
    ]  # fmt: skip


def test_no_memory_is_read():
    """Not even that of the host: nothing is mapped at this address."""
    printed = script(f"""
import tenon
for device in ("cpu", "cuda:0", "metal:0", "cuda_managed"):
    assert "<svg" in tenon.from_pointer({NOWHERE}, (3, 4), "bfloat16", device=device)._repr_html_()
print("drawn")
""")
    assert printed.split() == ["drawn"]


def facts(t):
    root = ElementTree.fromstring(t._repr_html_())
    return {row[0][0].text: row[1].text for row in root.iter("tr")}


def test_facts():
    t = described((2, 3), (1, 2), triple=(4, 16, 1), device=(2, 1), readonly=True, owner=[])
    assert facts(t) == {
        "shape": "(2, 3)",
        "dtype": "bfloat16 (16 bits)",
        "device": "cuda:1",
        "strides": "(1, 2) elements = (2, 4) bytes: column-major",
        "memory": f"12 bytes at {NOWHERE:#x}, read-only",
        "owner": "list",
    }
    assert facts(described((4, 3), triple=(0, 4, 1)))["strides"] == "(3, 1): row-major, without gaps"
    assert facts(described((4,), triple=(0, 4, 1), padded=True))["strides"].startswith("(1,) elements = (1,) bytes")
    assert facts(described((2,), triple=(17, 4, 2)))["dtype"] == "float4_e2m1fn_x2 (4 bits × 2)"
    assert "owner" not in facts(described((2,)))


@pytest.mark.parametrize(
    "shape, strides, words",
    [
        ((2, 3, 4), (12, 4, 1), "row-major, without gaps"),
        ((2, 3, 4), (1, 2, 6), "column-major"),
        ((2, 3, 4), (4, 8, 1), "axes in another order"),
        ((2, 3), (0, 1), "repeated along axis 0"),
        ((2, 3), (0, 0), "repeated along axis 0, 1"),
        ((2, 3), (-3, 1), "reversed along axis 0"),
        ((2, 3), (-1, -2), "reversed along axis 0, 1; column-major"),
        ((2, 3), (8, 2), "with gaps"),
        ((3, 3), (1, 1), "overlapping"),
        ((2, 3, 2), (0, -4, 1), "repeated along axis 0; reversed along axis 1; with gaps"),
    ],
)
def test_layout_in_words(shape, strides, words):
    assert facts(described(shape, strides))["strides"].rpartition(": ")[2] == words


def test_what_somebody_called_his_class_is_escaped():
    hostile = type("</td><script>alert('&\x01\"')</script>" + "x" * 100_000, (), {})
    shown = described((2,), owner=hostile())._repr_html_()
    ElementTree.fromstring(shown)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 5000


class Collector(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", EXTREMES)
def test_nothing_but_still_pictures(name):
    """No script, nothing from elsewhere, and nothing that other parts of the page could see."""
    shape, strides = EXTREMES[name]
    parser = Collector()
    shown = described(shape, strides)._repr_html_()
    parser.feed(shown)
    parser.close()
    assert parser.open == []
    assert parser.tags <= {"div", "b", "table", "tr", "td", "svg", "g", "rect", "text"}
    assert not parser.attributes & {"href", "xlink:href", "src", "id", "class"}
    assert not [name for name in parser.attributes if name.startswith("on")]
    assert "url(" not in shown
    assert "#" not in re.sub(r"0x\w+", "", shown)  # no colour that is meant for one theme


def test_examples_in_the_docstrings():
    results = doctest.testmod(tenon._html)
    assert (results.failed, results.attempted >= 2) == (0, True)
