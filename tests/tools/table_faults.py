"""tests/tools/table_faults.py: what is wrong with a table of docs/dev that names the tests of each of its rows."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path


def table_faults(rows: Sequence[tuple[str, ...]], wanted: Sequence[str], test_name: Callable[[str], str], folder: Path) -> list[str]:
    """In words. A row begins with its number and ends with its files; ``test_name`` is the pattern of what they must define."""
    found = [row[0] for row in rows]
    out = [f"{number} has no line" for number in wanted if number not in found]
    out += [f"{number} is unknown, or is there twice" for number in found if number not in wanted or found.count(number) > 1]
    for number, *_, files in rows:
        name = re.compile(test_name(number))
        named = re.findall(r"`([^`]+)`", files)
        out += [] if named else [f"{number} has no tests"]
        for file in named:
            path = folder / file
            if not path.is_file() or not name.search(path.read_text()):
                out.append(f"{number} has no test in {file}")
    return out
