# bench/way_out.py: the contenders, results and promises of handing memory of C++ to Python.

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "Included: the Python call itself (see the empty call), making the result, dropping it, and a release "
    "that counts. Excluded: the first call, which finds the library's functions and fills caches; allocating "
    "the memory; failures; GPU memory and streams; threads."
)

#: column -> module; a contender's function for a row has the row's key for a name.
COLUMNS = {
    "floor": "bench_floor_out",
    "Tenon": "bench_tenon",
    "nanobind": "bench_nanobind",
    "pybind11": "bench_pybind11",
}

OVER_FLOOR = Ratio("Tenon / floor", "Tenon", "floor")
OVER_TENON = Ratio("nanobind / Tenon", "nanobind", "Tenon")

PROMISES = (
    Promise("to_torch", OVER_FLOOR, "at most", 1.3),
    Promise("to_capsule", OVER_FLOOR, "at most", 1.4),
    Promise("to_capsule", OVER_TENON, "at least", 1),
)


@dataclass(frozen=True)
class Row:
    """What memory becomes: argument and result type of the call, and how the result tells its address."""

    key: str
    title: str
    argument: Any
    result: type | None
    address: Callable[[Any], int]


def make_rows(floor: Any) -> Iterator[Row]:
    """A row for every library that is installed, and for what needs none."""
    try:
        import torch

        floor.setup_torch(torch.Tensor)
        yield Row("to_torch", "to a torch tensor", torch.ones(1), torch.Tensor, lambda t: t.data_ptr())
    except ImportError:
        pass
    try:
        import numpy

        try:
            from numpy._core import _multiarray_umath as numpy_core
        except ImportError:  # NumPy 1
            from numpy.core import _multiarray_umath as numpy_core
        floor.setup_numpy(numpy_core._ARRAY_API)
        yield Row("to_numpy", "to a NumPy array", numpy.ones(1), numpy.ndarray, lambda a: a.ctypes.data)
    except ImportError:
        pass
    yield Row("to_capsule", "to a bare capsule", object(), None, floor.capsule_address)
    yield Row(
        "to_producer",
        "to a producer object",
        object(),
        None,
        lambda producer: floor.capsule_address(producer.__dlpack__()),
    )


def verify(row: Row, module: Any, function: Callable[[Any], Any]) -> None:
    """One call, looked at closely: a contender that does another job is not worth timing."""
    before = module.releases()
    made = function(row.argument)
    where = f"{module.__name__}.{row.key}"
    if row.result and type(made) is not row.result:
        raise SystemExit(f"{where} gave a {type(made)}")
    if row.address(made) != module.address():
        raise SystemExit(f"{where} gave other memory than it was to give")
    if module.releases() != before:
        raise SystemExit(f"{where} released the memory while it was in use")
    del made
    if module.releases() != before + 1:
        raise SystemExit(f"{where} released the memory {module.releases() - before} times")


def make_cases(rows: list[Row], modules: dict[str, Any]) -> Iterator[Case]:
    floor = modules["bench_floor_out"]
    for row in rows:
        yield Case(row.key, "empty call", "empty", row.argument, modules["bench_floor"].empty)
        for column, name in COLUMNS.items():
            if function := getattr(modules.get(name), row.key, None):
                verify(row, modules[name], function)
                yield Case(row.key, column, row.key, row.argument, function)
    for column, name in COLUMNS.items():
        if make := getattr(modules.get(name), "to_producer", None):
            producer = make(object())
            references = sys.getrefcount(producer)
            if floor.capsule_address(floor.ask_dlpack(producer)) != modules[name].address():
                raise SystemExit(f"__dlpack__ of {name} gave other memory than it was to give")
            if sys.getrefcount(producer) != references:
                raise SystemExit(f"__dlpack__ of {name} did not let go of its object")
            yield Case("ask_dlpack", column, "ask_dlpack", producer, floor.ask_dlpack)


def make_table(modules: dict[str, Any]) -> Table:
    rows = list(make_rows(modules["bench_floor_out"]))
    return Table(
        "out",
        "Handing memory to Python",
        {row.key: row.title for row in rows} | {"ask_dlpack": "`__dlpack__()` of a producer object"},
        ["empty call", *COLUMNS],
        (OVER_FLOOR, OVER_TENON),
        PROMISES,
        list(make_cases(rows, modules)),
        [EXCLUDED],
    )
