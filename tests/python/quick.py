# tests/python/quick.py: what `make test` runs of a long table; `make test-all` runs all of it.
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_is_slow(values: Iterable[Any], *quick: Any) -> list[Any]:
    """The values, for `parametrize`: all but the quick ones are marked slow."""
    values = list(values)
    assert set(quick) <= set(values), f"{quick} is not in the table"
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]
