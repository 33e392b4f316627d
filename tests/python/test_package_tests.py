# tests/python/test_package_tests.py: the tests inside the package pass here, say what they did, and can fail.
from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from isolation import LIMIT, SANITIZED

import tenon
from tenon.tests import expectations, matrix
from tenon.tests.cells import CELLS, DTYPES, LAYOUTS, Layout, pack, value
from tenon.tests.expectations import Fact, Here, differences, expected
from tenon.tests.pair import CANNOT_MAKE, COPIED, CRASHED, MISREAD, REFUSED, SHARED, Observed
from tenon.tests.test_matrix import wrong_with

# Written down again, so that a name lost from the package's own lists is missed.
PRODUCERS = {
    "numpy", "torch", "jax", "tensorflow", "paddle", "pyarrow", "tvm_ffi", "array_api_strict", "pandas", "polars",
}  # fmt: skip
CONSUMERS = {"numpy", "torch", "jax", "tensorflow", "paddle", "pyarrow", "tvm_ffi", "array_api_strict"}
ALWAYS_PRODUCERS, ALWAYS_CONSUMERS = 3, 1  # the standard library, both array interfaces; the buffer protocol


def installed(names):
    return {name for name in names if importlib.util.find_spec(name) is not None}


def run(*arguments, env=None, options=()):
    """`python -m tenon ...`, as a user runs it."""
    return subprocess.run(
        [sys.executable, *options, "-m", "tenon", *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(scope="module")
def whole_run():
    """Everything, once."""
    if SANITIZED:
        pytest.skip("where the sanitizer puts memory, TensorFlow does not take it")
    return run("test", "-v")


@pytest.mark.slow
def test_all_pass(whole_run):
    done = whole_run
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert re.search(r"^tests: \d+ passed, 0 failed, \d+ skipped, in \d+ s$", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_no_cell_is_left_out(whole_run):
    done = whole_run
    makers = len(installed(PRODUCERS)) + ALWAYS_PRODUCERS
    takers = len(installed(CONSUMERS)) + ALWAYS_CONSUMERS
    found = re.search(
        r"^matrix: (\d+) cells of (\d+) pairs \((\d+) producers, (\d+) consumers, 135 cells each\): (.*)$",
        done.stdout,
        re.MULTILINE,
    )
    assert found, done.stdout[-3000:]
    assert [int(n) for n in found.groups()[:4]] == [makers * takers * 135, makers * takers, makers, takers]
    by_outcome = {outcome: int(n) for n, outcome in re.findall(r"(\d+) ([a-z ]+)", found[5])}
    assert sum(by_outcome.values()) == makers * takers * 135
    assert by_outcome[SHARED] > makers * takers * 20
    assert CRASHED not in by_outcome or HERE.is_before("torch", ("2", "14"))
    per_pair = re.findall(r"^(\w+) -> (\w+) +(.*); [\d.]+ s$", done.stdout, re.MULTILINE)
    assert len(per_pair) == makers * takers
    for producer, consumer, counts in per_pair:
        assert sum(int(n) for n in re.findall(r"(\d+) ", counts)) == 135, (producer, consumer, counts)


@pytest.mark.slow
def test_what_takes_no_part_is_named(whole_run):
    done = whole_run
    for name in PRODUCERS - installed(PRODUCERS):
        assert re.search(rf"not in the matrix: {name} \(not installed: pip install \S+", done.stdout)
    for name in ("cupy", "numba"):
        assert re.search(rf"not in the matrix: {name} \((no CUDA device|its memory is CUDA's.*)\)", done.stdout)


# --- what the cells are -----------------------------------------------------------------------------


def test_fifteen_types_in_nine_layouts():
    assert (len(DTYPES), len(LAYOUTS), len(CELLS), len(set(CELLS))) == (15, 9, 135, 135)
    for name, layout in LAYOUTS.items():
        assert isinstance(layout, Layout)
        assert all(0 <= i < 24 for i in layout.indices()), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_exact_and_tell_their_types_apart(dtype):
    np = pytest.importorskip("numpy")
    kind = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    made = np.array([value(dtype, i) for i in range(24)], kind)
    assert made.tobytes() == b"".join(pack(dtype, value(dtype, i)) for i in range(24))
    assert made.tolist() == [value(dtype, i) for i in range(24)]
    if dtype[-2:] in ("16", "32", "64") and "int" in dtype:
        narrow = made.astype(dtype.replace(dtype[-2:], {"16": "8", "32": "16", "64": "32"}[dtype[-2:]]))
        assert (narrow.astype(dtype) != made).any()


# --- reality is compared with the facts -------------------------------------------------------------

HERE = Here()
HERE.versions.update({"jax": (0, 10, 2), "ml_dtypes": (0, 6), "python": (3, 11)})


def seen_as(outcome, dtype="float32", layout="1-d", **more):
    return Observed(dtype, layout, outcome, **{"readonly": layout == "read-only", **more})


def test_what_is_as_documented_is_silent():
    assert differences("numpy", "torch", seen_as(SHARED, to=SHARED), HERE) == []
    refusal = seen_as(REFUSED, layout="reversed", by="torch", raises=["RuntimeError"], to=REFUSED)
    assert differences("numpy", "torch", refusal, HERE) == []
    cannot = seen_as(CANNOT_MAKE, layout="reversed", readonly=None)
    assert differences("torch", "numpy", cannot, HERE) == []


@pytest.mark.parametrize("outcome", [COPIED, REFUSED, CANNOT_MAKE, MISREAD, CRASHED])
def test_anything_else_than_sharing_is_a_difference(outcome):
    (sentence,) = differences("numpy", "torch", seen_as(outcome, message="why"), HERE)
    assert sentence.startswith("numpy -> torch, float32, 1-d: expected: shared; came to: " + outcome)


@pytest.mark.parametrize("outcome", [SHARED, COPIED, CANNOT_MAKE, MISREAD, CRASHED])
def test_accepted_where_a_refusal_is_documented(outcome):
    seen = seen_as(outcome, layout="reversed")
    (sentence,) = differences("numpy", "torch", seen, HERE)
    assert "expected: refused (PyTorch has no negative strides); came to: " + outcome in sentence


def test_refused_with_another_exception_or_other_words():
    good = seen_as(REFUSED, layout="read-only", raises=["BufferError"], message="a read-only tensor cannot leave")
    assert differences("numpy", "jax", good, HERE) == []
    for bad in (replace(good, raises=["RuntimeError"]), replace(good, message="no")):
        (sentence,) = differences("numpy", "jax", bad, HERE)
        assert "not with BufferError that says 'read-only'" in sentence


def test_wrong_writability_another_way_and_faults():
    (sentence,) = differences("numpy", "torch", seen_as(SHARED, readonly=True), HERE)
    assert sentence.endswith("readonly is True, expected: False")
    (sentence,) = differences("numpy", "torch", seen_as(SHARED, to=COPIED), HERE)
    assert sentence.endswith("to() expected: shared; came to: copied")
    (sentence,) = differences("numpy", "torch", seen_as(SHARED, faults=["the moon is full"]), HERE)
    assert sentence == "numpy -> torch, float32, 1-d: the moon is full"


def test_facts_hold_only_where_they_are_true():
    assert expected("numpy", "jax", "int8", "read-only", HERE).outcome == REFUSED
    newer = Here()
    newer.versions.update({**HERE.versions, "jax": (0, 12, 0)})
    assert expected("numpy", "jax", "int8", "read-only", newer).outcome == SHARED
    assert expected("numpy", "memoryview", "bfloat16", "1-d", HERE).outcome == REFUSED
    without = Here()
    without.versions["ml_dtypes"] = None
    assert expected("numpy", "memoryview", "bfloat16", "1-d", without).outcome == CANNOT_MAKE


def test_every_fact_is_a_sentence_and_speaks_of_something():
    """A fact that no cell ever meets, of all that could be installed, is dead."""
    older = Here()
    older.versions.update(
        {
            "python": (3, 10), "ml_dtypes": None, "jax": (0, 6, 2), "pyarrow": (25, 0), "numpy": (2, 2),
            "torch": (2, 10), "pandas": (2, 3),
        }
    )  # fmt: skip
    newer = Here()
    newer.versions.update(
        {"python": (3, 14), "ml_dtypes": (0, 6), "jax": (0, 12), "pyarrow": (27,), "numpy": (2, 5), "pandas": (3,)}
    )
    bare = Here()
    bare.versions.update({"pyarrow": None, "ml_dtypes": None, "pandas": (3,)})
    met = set()
    for here in (HERE, older, newer, bare):
        for producer in matrix.PRODUCERS:
            for consumer in matrix.CONSUMERS:
                for dtype, layout in CELLS:
                    met.add(expected(producer, consumer, dtype, layout, here).because)
    for fact in expectations.FACTS:
        assert isinstance(fact, Fact)
        assert fact.because
        assert fact.because in met
        assert (fact.outcome == REFUSED) == bool(fact.raises)


# --- the whole way, with something wrong ------------------------------------------------------------

PAIR = ("python", "memoryview")


def test_a_pair_that_is_as_documented():
    result = matrix.run(PAIR)
    assert wrong_with(result) == []
    assert result.counts() == {outcome: n for outcome, n in result.counts().items() if n}
    assert sum(result.counts().values()) == 135


@pytest.mark.parametrize("pair", [("numpy", "torch"), ("torch", "numpy")], ids="-".join)
def test_a_pair_of_libraries(pair):
    """Two of them, for those who do not run them all."""
    for library in pair:
        pytest.importorskip(library)
    result = matrix.run(pair)
    assert wrong_with(result) == []
    assert len(result.cells) == 135


def test_a_wrong_expectation_fails(monkeypatch):
    """Without the facts about the standard library, every cell it cannot make is a difference."""
    result = matrix.run(PAIR)
    cannot = result.counts()[CANNOT_MAKE]
    monkeypatch.setattr(expectations, "FACTS", ())
    found = wrong_with(result)
    assert len(found) == cannot > 20
    assert "python -> memoryview, bfloat16, 1-d: expected: shared; came to: cannot make" in "\n".join(found)


def test_a_wrong_refusal_fails(monkeypatch):
    plant = Fact("planted", REFUSED, dtype=("int8",), layout=("3-d",), raises="TypeError")
    monkeypatch.setattr(expectations, "FACTS", (plant, *expectations.FACTS))
    (sentence,) = wrong_with(matrix.run(PAIR))
    assert sentence == "python -> memoryview, int8, 3-d: expected: refused (planted); came to: shared"


def test_a_crash_is_attributed_to_its_cell(monkeypatch):
    monkeypatch.setenv("TENON_TESTS_PLANT", "python-memoryview-int16-3-d=abort")
    result = matrix.run(PAIR)
    crashed = [seen for seen in result.cells if seen.outcome == CRASHED]
    assert [(seen.dtype, seen.layout) for seen in crashed] == [("int16", "3-d")]
    assert crashed[0].message.startswith("SIGABRT")
    assert [(seen.dtype, seen.layout) for seen in result.cells] == list(CELLS)  # and the others were tried
    (sentence,) = wrong_with(result)
    assert sentence.startswith("python -> memoryview, int16, 3-d: expected: shared; came to: crashed SIGABRT")


def test_a_crash_in_the_last_cell_is_attributed(monkeypatch):
    dtype, layout = CELLS[-1]
    monkeypatch.setenv("TENON_TESTS_PLANT", f"python-memoryview-{dtype}-{layout}=abort")
    result = matrix.run(PAIR)
    assert [seen.outcome == CRASHED for seen in result.cells] == [False] * 134 + [True]


@pytest.fixture
def plant_hang(monkeypatch):
    """Makes a cell hang, and the time limit run out as soon as it has begun: however slow the machine, no earlier and no
    later."""

    def plant(producer, dtype, layout):
        monkeypatch.setenv("TENON_TESTS_PLANT", f"{producer}-memoryview-{dtype}-{layout}=hang")

        class Watched(subprocess.Popen):
            def wait(self, timeout=None):
                if timeout is None:
                    return super().wait()
                report, pairs = Path(self.args[3]), self.args[5:]
                while self.poll() is None:
                    lines = [json.loads(line) for line in report.read_text().splitlines(keepends=True) if line.endswith("\n")]
                    done = sum("seconds" in line for line in lines)
                    is_in_cell = lines and lines[-1].get("cell") == CELLS.index((dtype, layout))
                    if is_in_cell and pairs[done] == f"{producer}:memoryview":
                        raise subprocess.TimeoutExpired(self.args, timeout)
                    time.sleep(0.01)
                return self.returncode

        monkeypatch.setattr(matrix.subprocess, "Popen", Watched)

    return plant


def test_a_hang_is_killed_and_attributed(plant_hang):
    plant_hang("python", "bfloat16", "sliced")
    result = matrix.run(PAIR, timeout=10)
    crashed = [(seen.dtype, seen.layout, seen.message) for seen in result.cells if seen.outcome == CRASHED]
    assert crashed == [("bfloat16", "sliced", "no end after 10 s")]
    assert len(result.cells) == 135


def test_a_library_that_does_not_import_is_a_failure(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('planted')")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = matrix.run(("torch", "memoryview"))
    assert result.cells == []
    found = wrong_with(result)
    assert "before the first cell: exit status 1" in found[0]
    assert "planted" in found[0]
    assert "0 cells were tried, not 135" in found[1]


# --- several pairs in one process -------------------------------------------------------------------

PAIRS = [(producer, "memoryview") for producer in ("interface3", "python", "interface2")]


@pytest.fixture
def processes(monkeypatch):
    """How many pairs each process was given."""
    given = []
    real = matrix._run_process
    monkeypatch.setattr(matrix, "_run_process", lambda p, *more: (given.append(len(p)), real(p, *more))[1])
    return given


def test_pairs_share_a_process(processes):
    results = list(matrix.run_together(PAIRS))
    assert processes == [3]
    assert [result.pair for result in results] == PAIRS
    assert [wrong_with(result) for result in results] == [[], [], []]
    assert [result.counts() for result in results] == [matrix.run(pair).counts() for pair in PAIRS]


def test_a_crash_among_pairs_is_its_pairs_alone(monkeypatch, processes):
    monkeypatch.setenv("TENON_TESTS_PLANT", "python-memoryview-int16-3-d=abort")
    results = list(matrix.run_together(PAIRS))
    assert processes == [3, 1, 1, 1]  # together, the crashed one until the crash and after it, the last
    assert [result.pair for result in results] == PAIRS
    (sentence,) = [sentence for result in results for sentence in wrong_with(result)]
    assert sentence.startswith("python -> memoryview, int16, 3-d: expected: shared; came to: crashed SIGABRT")


def test_a_hang_among_pairs_is_its_pairs_alone(plant_hang, processes):
    plant_hang("python", "int16", "3-d")
    results = list(matrix.run_together(PAIRS, timeout=5))
    assert processes == [3, 1, 1, 1]
    assert [[seen.outcome for seen in result.cells].count(CRASHED) for result in results] == [0, 1, 0]


@pytest.mark.parametrize("when", ["import", "exit"])
def test_what_cannot_be_told_among_pairs_is_found_out_one_by_one(monkeypatch, tmp_path, processes, when):
    """A process that does not begin, or that dies when all is done."""
    dies = "import os; os.abort()" if when == "import" else "import atexit, os; atexit.register(os.abort)"
    (tmp_path / "torch.py").write_text(dies)
    monkeypatch.syspath_prepend(str(tmp_path))
    *good, bad = list(matrix.run_together([*PAIRS, ("python", "torch")]))
    assert processes[:5] == [4, 1, 1, 1, 1]
    assert [result.pair for result in good] == PAIRS
    assert [wrong_with(result) for result in good] == [[], [], []]
    assert "SIGABRT" in bad.trouble


def test_libraries_that_crash_each_other_are_apart(processes):
    pairs = [("numpy", "torch"), ("numpy", "paddle"), ("tensorflow", "numpy"), ("paddle", "tensorflow"), ("torch", "jax")]
    assert [matrix._apart(pair) for pair in pairs] == [(), ("paddle",), ("tensorflow",), ("tensorflow", "paddle"), ()]
    schedule = matrix.Schedule()
    schedule.start(PAIRS)
    assert [schedule.result(pair).pair for pair in PAIRS] == PAIRS
    assert processes == [3]


def test_the_exit_status_says_so():
    done = run("test", "-k", "python_to_memoryview", env={"TENON_TESTS_PLANT": "python-memoryview-int8-1-d=abort"})
    assert done.returncode == 1
    assert "python -> memoryview, int8, 1-d: expected: shared; came to: crashed SIGABRT" in done.stderr
    assert "tests: 0 passed, 1 failed, 0 skipped" in done.stdout


# --- with nothing installed -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare_run(tmp_path_factory):
    """The package, the standard library and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "tenon").symlink_to(Path(tenon.__file__).parent)
    return run("test", options=["-S"], env={"PYTHONPATH": str(folder)})


def test_needs_the_standard_library_alone(bare_run):
    assert bare_run.returncode == 0, bare_run.stderr[-3000:]
    assert "matrix: 405 cells of 3 pairs (3 producers, 1 consumers, 135 cells each)" in bare_run.stdout


def test_what_is_skipped_says_what_to_install(bare_run):
    assert re.search(r"\d+ x numpy is not installed: pip install numpy", bare_run.stdout)
    assert re.search(r"\d+ x torch is not installed: pip install torch$", bare_run.stdout, re.MULTILINE)
    assert "not in the matrix: paddle (not installed: pip install paddlepaddle)" in bare_run.stdout
    assert "not in the matrix: cupy (no CUDA device)" in bare_run.stdout or "CUDA's" in bare_run.stdout


def test_pytest_can_collect_them():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "tenon.tests.test_bad_input",
         "tenon.tests.test_matrix", "-k", "NoArray or python_to_memoryview"],
        capture_output=True, text=True, timeout=LIMIT, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "3 passed" in done.stdout
