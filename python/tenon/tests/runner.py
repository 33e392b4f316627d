# python/tenon/tests/runner.py: finds the package's tests, runs them with unittest, and says what ran, what did not, and why.
"""``python -m tenon test``."""

from __future__ import annotations

import importlib
import sys
import time
import unittest
from collections import Counter
from collections.abc import Iterator

MODULES = ("test_pydlpack", "test_bad_input", "test_held_memory", "test_matrix")


def find(word: str | None = None) -> unittest.TestSuite:
    """The tests whose name has the word in it."""
    loader = unittest.TestLoader()
    modules = [importlib.import_module(f"tenon.tests.{name}") for name in MODULES]
    suite = unittest.TestSuite(loader.loadTestsFromModule(module) for module in modules)
    wanted = [test for test in each(suite) if word is None or word.lower() in test.id().lower()]
    return unittest.TestSuite(wanted)


def each(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The tests of a suite, one after the other."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def run(word: str | None = None, *, verbose: bool = False, only_list: bool = False) -> int:
    """Runs the tests; the exit status: 0 if all is well, 1 if a test failed, 2 if there is none."""
    from tenon.tests.matrix import SCHEDULE
    from tenon.tests.test_matrix import PAIR_OF

    suite = find(word)
    if only_list:
        for test in each(suite):
            print(test.id())
        return 0
    if suite.countTestCases() == 0:
        print(f"tenon: no test has {word!r} in its name; python -m tenon test --list names them", file=sys.stderr)
        return 2
    started = time.monotonic()
    names = [test.id().rpartition(".")[2] for test in each(suite)]
    SCHEDULE.start([PAIR_OF[name] for name in names if name in PAIR_OF])
    try:
        result = unittest.TextTestRunner(verbosity=2 if verbose else 1).run(suite)
    finally:
        SCHEDULE.stop()
    _report(result, time.monotonic() - started, verbose)
    return 0 if result.wasSuccessful() else 1


def _report(result: unittest.TestResult, seconds: float, verbose: bool) -> None:
    from tenon.tests.cells import CELLS
    from tenon.tests.expectations import OUTCOMES
    from tenon.tests.matrix import SCHEDULE, absent

    sys.stderr.flush()
    done = SCHEDULE.results()
    if done:
        if verbose:
            for pair in done:
                print(f"{' -> '.join(pair.pair):34} {_counted(pair.counts())}; {pair.seconds:.1f} s")
        total = {outcome: sum(pair.counts().get(outcome, 0) for pair in done) for outcome in OUTCOMES}
        makers, takers = {r.pair[0] for r in done}, {r.pair[1] for r in done}
        print(
            f"matrix: {sum(total.values())} cells of {len(done)} pairs ({len(makers)} producers, {len(takers)} "
            f"consumers, {len(CELLS)} cells each): {_counted(total)}"
        )
        for name, why in absent().items():
            print(f"  not in the matrix: {name} ({why})")
    if result.skipped:
        print(f"skipped: {len(result.skipped)}")
        for reason, count in Counter(reason for _, reason in result.skipped).most_common():
            print(f"  {count} x {reason}")
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - bad - len(result.skipped)
    print(f"tests: {passed} passed, {bad} failed, {len(result.skipped)} skipped, in {seconds:.0f} s")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
