"""tests/tools/test_rules_table.py: docs/dev/rules.md lists every rule and a test of it; planted faults are found."""

import re
from pathlib import Path

import pytest
from table_faults import table_faults

ROOT = Path(__file__).resolve().parents[2]
RULES = [f"{kind}{number}" for kind, last in (("P", 42), ("C", 27), ("X", 15)) for number in range(1, last + 1)]
ROW = re.compile(r"^\| ([PCX]\d+) \| (.+?) \| (.*) \|$", re.MULTILINE)


def faults(table: str) -> list[str]:
    """What is wrong with the table, in words."""

    def test_name(rule: str) -> str:
        # The rule may be one of several in a name, with or without a leading zero: test_F45_C09_...
        return rf"\btest_(?:[A-Z]\d+_)*{rule[0]}0?{rule[1:]}_"

    return table_faults(ROW.findall(table), RULES, test_name, ROOT / "tests" / "python")


@pytest.fixture
def table() -> str:
    return (ROOT / "docs" / "dev" / "rules.md").read_text()


def test_table_is_complete(table):
    assert faults(table) == []


LAST = r"^(\| {} \|.*\|) .* \|$"  # the tests of a rule


@pytest.mark.parametrize(("old", "new", "fault"), [
    (r"^\| P7 \|.*\n", "", "P7 has no line"),
    (r"^\| P7 \|", "| P8 |", "P8 is unknown, or is there twice"),
    (r"^\| X15 \|", "| X16 |", "X16 is unknown"),
    (LAST.format("C3"), r"\1  |", "C3 has no tests"),
    (LAST.format("C3"), r"\1 `nowhere.py` |", "C3 has no test in nowhere.py"),
    (LAST.format("P42"), r"\1 `producers.py` |", "P42 has no test in producers.py"),
])
def test_planted_fault_is_found(table, old, new, fault):
    broken = re.sub(old, new, table, count=1, flags=re.MULTILINE)
    assert broken != table
    assert any(found.startswith(fault) for found in faults(broken))
