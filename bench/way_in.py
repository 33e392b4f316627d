# bench/way_in.py: the contenders, producers and promises of taking one argument from Python.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "Included: the Python call itself (see the empty call). Excluded: the first call for each type, which "
    "looks protocols up and fills caches; several arguments; constraints on dtype, shape or device; "
    "failures; GPU memory and streams; threads; and what the function would do with the data."
)

#: column -> (module, functions); of several, the fastest that takes the row's object is shown.
COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "empty call": ("bench_floor", ("empty",)),
    "floor": ("bench_floor", ("torch_borrowed", "numpy_struct", "buffer", "dlpack", "dlpack_bare")),
    "floor owned": ("bench_floor", ("torch_owned", "numpy_owned", "buffer", "dlpack", "dlpack_bare")),
    "Tenon borrowed": ("bench_tenon", ("take_borrowed",)),
    "Tenon owned": ("bench_tenon", ("take_owned",)),
    "nanobind ndarray": ("bench_nanobind", ("ndarray_ro", "ndarray")),
    "pybind11 array": ("bench_pybind11", ("array",)),
    "pybind11 array_t": ("bench_pybind11", ("array_t",)),
    "pybind11 buffer": ("bench_pybind11", ("buffer",)),
}

#: Where the cost of a call that ignores its argument is shown.
EMPTY_CALLS = {
    "empty call": "bench_floor",
    "nanobind ndarray": "bench_nanobind",
    "pybind11 array": "bench_pybind11",
}

OVER_FLOOR = Ratio("Tenon borrowed / floor", "Tenon borrowed", "floor")
OVER_TENON = Ratio("nanobind / Tenon borrowed", "nanobind ndarray", "Tenon borrowed")

PROMISES = (
    Promise("torch", OVER_FLOOR, "at most", 1.3),
    Promise("torch", OVER_TENON, "at least", 15),
    Promise("numpy", OVER_FLOOR, "at most", 1.6),
    Promise("numpy", OVER_TENON, "at least", 3),
)


@dataclass(frozen=True)
class Row:
    """One producer: an object it made, and the address at which its data really lies."""

    key: str
    title: str
    sample: Any
    address: int


def make_rows(skipped: list[str]) -> Iterator[Row]:
    """A sample of every library that is installed; the others are named in ``skipped``."""
    try:
        import torch

        tensor = torch.ones(16, 16)
        yield Row("torch", "torch CPU tensor", tensor, tensor.data_ptr())
    except ImportError:
        skipped.append("torch")
    try:
        import numpy

        array = numpy.ones((16, 16), dtype=numpy.float32)
        yield Row("numpy", "NumPy array", array, array.ctypes.data)
    except ImportError:
        skipped.append("numpy")
    try:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax_array = jax.block_until_ready(jax.numpy.ones((16, 16), dtype="float32"))
        yield Row("jax", "JAX CPU array", jax_array, jax_array.unsafe_buffer_pointer())
    except ImportError:
        skipped.append("jax")
    data = bytes(1024)
    # The bytes follow the object's header; __basicsize__ counts one of them, the closing zero.
    yield Row("bytes", "bytes", data, id(data) + bytes.__basicsize__ - 1)


def make_cases(rows: list[Row], modules: dict[str, Any]) -> Iterator[Case]:
    """Every contender that takes the row's object, marked where the data it sees is not the object's own."""
    setup = {"torch": modules["bench_floor"].setup_torch, "numpy": modules["bench_floor"].setup_numpy}
    for row in rows:
        if row.key in setup:
            setup[row.key](type(row.sample))
    for row in rows:
        for column, (module_name, names) in COLUMNS.items():
            module = modules.get(module_name)
            for name in names if module else ():
                function = getattr(module, name)
                try:
                    function(row.sample)
                except Exception:  # Not every contender takes every object, and each refuses in its own way.
                    continue
                copies = name != "empty" and module.last_address() != row.address
                yield Case(row.key, column, name, row.sample, function, copies)
    for column, module_name in EMPTY_CALLS.items():
        if module := modules.get(module_name):
            yield Case("empty", column, "empty", object(), module.empty)


def make_table(modules: dict[str, Any], skipped: list[str]) -> Table:
    rows = list(make_rows(skipped))
    titles = {row.key: row.title for row in rows} | {"empty": "(ignored argument)"}
    cases = list(make_cases(rows, modules))
    return Table(
        "in",
        "Taking one argument from Python",
        titles,
        list(COLUMNS),
        (OVER_FLOOR, OVER_TENON),
        PROMISES,
        cases,
        [EXCLUDED],
    )
