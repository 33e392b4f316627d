# python/tenon/tests/matrix.py: runs the pairs of the matrix in processes of their own, and counts what they came to.
"""The matrix: every installed producer with every installed consumer."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenon.tests.cells import CELLS
from tenon.tests.consumers import CONSUMERS
from tenon.tests.expectations import OUTCOMES
from tenon.tests.pair import CRASHED, Observed
from tenon.tests.producers import PRODUCERS

Pair = tuple[str, str]

#: Against what hangs, however busy the machine: a process takes some seconds, most of them for imports.
SECONDS_PER_PAIR = float(os.environ.get("TENON_TESTS_SECONDS_PER_PAIR", "600"))

#: So often a process that died is followed by another, which goes on with the next cell.
MOST_CRASHES = 20

#: No banners, and the host's memory only: what is on a GPU is not in the matrix.
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # it would import PyTorch
}

#: Libraries for CUDA's memory, which are not in a matrix of the host's.
ON_CUDA = ("cupy", "numba")

#: Libraries that can crash each other: pairs with one of them have processes of their own.
APART = ("tensorflow", "paddle")


@dataclass(frozen=True)
class Result:
    """A pair that was run."""

    pair: Pair
    cells: list[Observed]
    #: Imports are counted where the pair had a process to itself.
    seconds: float
    #: What went wrong outside of any cell.
    trouble: str = ""

    def counts(self) -> dict[str, int]:
        """How many cells came to what."""
        found = Counter(seen.outcome for seen in self.cells)
        return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}


def is_installed(module: str | None) -> bool:
    """Whether a library can be imported. Does not import it."""
    return module is None or importlib.util.find_spec(module) is not None


def producers() -> list[str]:
    """Those that are installed."""
    return [p.name for p in PRODUCERS.values() if is_installed(p.module)]


def consumers() -> list[str]:
    """Those that are installed."""
    return [c.name for c in CONSUMERS.values() if is_installed(c.module)]


def pairs() -> list[Pair]:
    """Every pair that can be run here."""
    return [(p, c) for p in producers() for c in consumers()]


def absent() -> dict[str, str]:
    """Libraries that take no part, and why."""
    needed = [(p.name, p.module, p.install) for p in PRODUCERS.values()]
    needed += [(c.name, c.module, c.install) for c in CONSUMERS.values()]
    missing = {name: f"not installed: pip install {what}" for name, module, what in needed if not is_installed(module)}
    return {**missing, **dict.fromkeys(ON_CUDA, _why_no_cuda())}


def _why_no_cuda() -> str:
    import ctypes

    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int(0)
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value:
            return "its memory is CUDA's, and the matrix is of the host's"
    return "no CUDA device"


# --- running ------------------------------------------------------------------------------------------


def run(pair: Pair, timeout: float = SECONDS_PER_PAIR) -> Result:
    """All cells of a pair, alone. A cell the process dies in has crashed, and another process goes on after it."""
    started = time.monotonic()
    cells: list[Observed] = []
    trouble = ""
    for _ in range(MOST_CRASHES):
        end, lines = _run_process([pair], len(cells), timeout)
        cells += [Observed(**line) for line in lines if "outcome" in line]
        if lines and "seconds" in lines[-1]:
            trouble = f"after the last cell: {end}" if end else ""
            break
        if not lines:
            trouble = f"before the first cell: {end}"
            break
        if "cell" not in lines[-1]:
            trouble = f"between two cells: {end}"
            break
        dtype, layout = CELLS[lines[-1]["cell"]]
        cells.append(Observed(dtype, layout, CRASHED, message=end))
        if len(cells) == len(CELLS):
            break
    if len(cells) != len(CELLS) and not trouble:
        trouble = f"given up after {MOST_CRASHES} crashes"
    return Result(pair, cells, time.monotonic() - started, trouble)


def run_together(pairs: list[Pair], timeout: float = SECONDS_PER_PAIR) -> Iterator[Result]:
    """All cells of several pairs, whose libraries are imported once. When the process dies, the pair it died in is
    run alone, where nothing else can be the reason, and another process goes on with the pairs after it."""
    while len(pairs) > 1:
        end, lines = _run_process(pairs, 0, timeout + len(pairs))
        done = list(_finished(pairs, lines))
        if end and (len(done) == len(pairs) or not lines):  # at the exit or in the imports: it can be any pair
            break
        yield from done
        pairs = pairs[len(done) :]
        if pairs:
            yield run(pairs[0], timeout)
            pairs = pairs[1:]
    for pair in pairs:
        yield run(pair, timeout)


def _finished(pairs: list[Pair], lines: list[dict[str, Any]]) -> Iterator[Result]:
    """The pairs that a process tried to their last cell."""
    left = iter(pairs)
    cells: list[Observed] = []
    for line in lines:
        if "outcome" in line:
            cells.append(Observed(**line))
        elif "seconds" in line:
            yield Result(next(left), cells, line["seconds"])
            cells = []


def _run_process(pairs: list[Pair], first: int, timeout: float) -> tuple[str, list[dict[str, Any]]]:
    """Runs one process to its end: how it ended if that was badly, and what it reported."""
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder, tempfile.TemporaryFile() as words:
        report = Path(folder) / "report"
        report.write_text("")
        command = [sys.executable, "-m", "tenon.tests.pair", str(report), str(first), *(":".join(p) for p in pairs)]
        # What is on the path of this process is on the other's.
        path = os.pathsep.join(p for p in sys.path if p)
        child = subprocess.Popen(
            command, env={**os.environ, **QUIET, "PYTHONPATH": path}, stdin=subprocess.DEVNULL, stdout=words,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            code = child.wait(timeout)
            how = "" if code == 0 else _how(code)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            how = f"no end after {timeout:.0f} s"
        if how:
            words.seek(0)
            how = f"{how}\n{words.read().decode(errors='replace')[-2000:]}".strip()
        return how, [json.loads(line) for line in report.read_text().splitlines()]


def _how(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


class Schedule:
    """Runs pairs ahead of those who ask for them, in as many processes at a time as there are processors."""

    def __init__(self) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2)
        self.running: dict[Pair, concurrent.futures.Future[Result]] = {}

    def start(self, wanted: list[Pair]) -> None:
        """Begins with pairs that will be asked for."""
        new = [pair for pair in wanted if pair not in self.running]
        self.running.update((pair, concurrent.futures.Future()) for pair in new)
        for apart in sorted({_apart(pair) for pair in new}):
            self.pool.submit(self._run, [pair for pair in new if _apart(pair) == apart])

    def _run(self, pairs: list[Pair]) -> None:
        try:
            for result in run_together(pairs):
                self.running[result.pair].set_result(result)
        except BaseException as e:
            for pair in pairs:
                if not self.running[pair].done():
                    self.running[pair].set_exception(e)
            raise

    def result(self, pair: Pair) -> Result:
        """What a pair came to: waits for it."""
        self.start([pair])
        return self.running[pair].result()

    def stop(self) -> None:
        """Forgets what has not begun."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def results(self) -> list[Result]:
        """What was run to its end."""
        done = [f for f in self.running.values() if f.done() and not f.cancelled()]
        return [f.result() for f in done if f.exception() is None]


def _apart(pair: Pair) -> tuple[str, ...]:
    """Pairs for which this is the same share a process."""
    return tuple(name for name in APART if name in pair)


#: The one all tests of a process share.
SCHEDULE = Schedule()
