# bench/timing.py: times calls of one argument, all contenders interleaved on one core.

from __future__ import annotations

import gc
import os
import random
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Case:
    """One function that takes one object, and what a call of it took, in ns, round by round."""

    row: str
    column: str
    variant: str
    argument: Any
    function: Callable[[Any], object]
    copies: bool = False
    loops: int = 1
    rounds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The interpreter specializes bytecode per call site, so every case gets a loop of its own.
        self.timer = timeit.Timer("f(x)", "f = function; x = argument", globals=vars(self))

    @property
    def best(self) -> float:
        return min(self.rounds)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


def pin_to_one_core() -> bool:
    """Keeps this process on the last core it may use; false where the system has no call for that."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return True


def measure(cases: list[Case], rounds: int, slice_ms: float) -> None:
    """Fills the rounds of every case.

    Each round visits all cases in a new order, so that a drift of the clock hits all alike. A slice is short,
    so that even beside a busy neighbour some round of each case meets a quiet core."""
    for case in cases:
        case.timer.timeit(1000)
        while (seconds := case.timer.timeit(case.loops)) < slice_ms / 1e3:
            case.loops = max(case.loops * 2, int(case.loops * slice_ms / 1e3 / max(seconds, 1e-7)))
    order = list(cases)
    shuffle = random.Random(0).shuffle
    gc.collect()
    for _ in range(rounds):
        shuffle(order)
        for case in order:
            case.rounds.append(case.timer.timeit(case.loops) * 1e9 / case.loops)
