# python/tenon/tests/test_matrix.py: a test for each pair of an installed producer and an installed consumer: 135 cells, each as the facts say.
"""The matrix, pair by pair."""

from __future__ import annotations

import unittest
from collections.abc import Callable

from tenon.tests.cells import CELLS
from tenon.tests.expectations import differences
from tenon.tests.matrix import SCHEDULE, Pair, Result, pairs


def wrong_with(result: Result) -> list[str]:
    """Everything about a pair that is not as the facts say: a sentence each."""
    producer, consumer = result.pair
    found = [f"{producer} -> {consumer}: {result.trouble}"] if result.trouble else []
    for seen in result.cells:
        found += differences(producer, consumer, seen)
    cells = [(seen.dtype, seen.layout) for seen in result.cells]
    if cells != list(CELLS):
        found.append(f"{producer} -> {consumer}: {len(cells)} cells were tried, not {len(CELLS)}")
    return found


class Matrix(unittest.TestCase):
    """Pointer, values, shape, strides and writability of every cell, or the refusal that is documented."""

    maxDiff = None


def _test_of(pair: Pair) -> Callable[[Matrix], None]:
    def test(self: Matrix) -> None:
        found = wrong_with(SCHEDULE.result(pair))
        if found:
            self.fail(f"{len(found)} differences from what is documented\n" + "\n".join(found))

    test.__name__ = f"test_{pair[0]}_to_{pair[1]}"
    test.__qualname__ = f"Matrix.{test.__name__}"
    return test


#: Which test runs which pair.
PAIR_OF: dict[str, Pair] = {}
for _pair in pairs():
    _test = _test_of(_pair)
    PAIR_OF[_test.__name__] = _pair
    setattr(Matrix, _test.__name__, _test)
