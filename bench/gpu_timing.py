# bench/gpu_timing.py: cases whose calls give the device work, timed on a chosen stream with a short queue.

from __future__ import annotations

import contextlib
import timeit
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from timing import Case

#: Most launches that are timed in a row. A device takes about a thousand in advance; after that the host waits for it.
MOST_LAUNCHES = 256
#: Most other calls: some ask for an order of streams, which is work for the device too.
MOST_CALLS = 8192

#: Makes what is entered while a library is to work on a certain stream.
Context = Callable[[], contextlib.AbstractContextManager[object]]


class QuietTimer(timeit.Timer):
    """A timer that begins every run of calls with an idle device; the waiting is not timed."""

    def __init__(self, case: GpuCase) -> None:
        arguments = case.arguments
        super().__init__(f"f({arguments})", f"f = function; {arguments} = argument", globals=vars(case))
        self._context, self._wait, self._in_a_row = case.context, case.wait, case.in_a_row

    def timeit(self, number: int = 1_000_000) -> float:
        seconds = 0.0
        with self._context():
            while number > 0:
                self._wait()
                seconds += super().timeit(min(number, self._in_a_row))
                number -= self._in_a_row
            self._wait()
        return seconds


@dataclass
class GpuCase(Case):
    """A case timed by a QuietTimer. Where there are several ``arguments``, ``argument`` is the tuple of them."""

    function: Callable[..., object]
    _: KW_ONLY
    wait: Callable[[], object]
    context: Context = contextlib.nullcontext
    arguments: str = "x"
    in_a_row: int = MOST_CALLS

    def __post_init__(self) -> None:
        self.timer = QuietTimer(self)


def reason(fault: BaseException) -> str:
    """An exception on one short line."""
    text = " ".join(str(fault).split())
    return f"{type(fault).__name__}: {text if len(text) <= 120 else text[:120] + ' ...'}"


def is_default_stream(handle: int) -> bool:
    """NULL and cudaStreamLegacy are the same stream."""
    return handle in (0, 1)
