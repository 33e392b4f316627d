"""tests/tools/test_failures_table.py: docs/dev/failures.md lists every number and a test of it; planted faults are found."""

import re
from pathlib import Path

import pytest
from table_faults import table_faults

ROOT = Path(__file__).resolve().parents[2]
LAST = 99
ROW = re.compile(r"^\| (F\d\d) \| (.+?) \| (.+?) \| (.*) \|$", re.MULTILINE)


def faults(table: str) -> list[str]:
    """What is wrong with the table, in words."""
    wanted = [f"F{number:02}" for number in range(1, LAST + 1)]
    # The number may be one of several in a name, which is a function's or a row's of a table.
    return table_faults(ROW.findall(table), wanted, r"\b(?:test_)?(?:[A-Z]\d\d_)*{}_".format, ROOT / "tests" / "python")


@pytest.fixture
def table() -> str:
    return (ROOT / "docs" / "dev" / "failures.md").read_text()


def test_table_is_complete(table):
    assert faults(table) == []


def test_every_number_that_a_comment_cites_has_a_line(table):
    listed = {row[0] for row in ROW.findall(table)}
    cited = set()
    for folder in ("include", "src", "python/src", "tests/cpp"):
        for path in (ROOT / folder).rglob("*.[ch]pp"):
            cited |= set(re.findall(r"\bF\d\d\b", path.read_text()))
    assert cited and cited <= listed


TESTS = r"^(\| {} \|.*\|) .* \|$"


@pytest.mark.parametrize(("old", "new", "fault"), [
    (r"^\| F07 \|.*\n", "", "F07 has no line"),
    (r"^\| F07 \|", "| F08 |", "F08 is unknown, or is there twice"),
    (r"^\| F98 \|", "| F00 |", "F00 is unknown"),
    (TESTS.format("F03"), r"\1  |", "F03 has no tests"),
    (TESTS.format("F03"), r"\1 `nowhere.py` |", "F03 has no test in nowhere.py"),
    (TESTS.format("F42"), r"\1 `producers.py` |", "F42 has no test in producers.py"),
])
def test_planted_fault_is_found(table, old, new, fault):
    broken = re.sub(old, new, table, count=1, flags=re.MULTILINE)
    assert broken != table
    assert any(found.startswith(fault) for found in faults(broken))
