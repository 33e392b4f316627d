# bench/quick.py: what taking one argument from Python costs, for every contender, in one pinned process.
"""Measure taking one argument from Python. Needs the folder of the built modules on PYTHONPATH.

bench/README.md says what is measured, what is not, and how to read the table."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from report import Promise, Ratio, Report, check, describe_machine, show, write_json, write_markdown
from timing import Case, measure, pin_to_one_core

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


def load_modules(skipped: list[str]) -> dict[str, Any]:
    """The contenders that were built; the others are named in ``skipped``."""
    modules = {}
    for name in dict.fromkeys(name for name, _ in COLUMNS.values()):
        try:
            modules[name] = importlib.import_module(name)
        except ModuleNotFoundError:
            skipped.append(f"{name} (not on PYTHONPATH)")
    if "bench_floor" not in modules:
        raise SystemExit("bench_floor cannot be imported: put the folder of the built modules on PYTHONPATH")
    return modules


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


def run(rounds: int, slice_ms: float) -> Report:
    pinned = pin_to_one_core()
    skipped: list[str] = []
    modules = load_modules(skipped)
    rows = list(make_rows(skipped))
    cases = list(make_cases(rows, modules))
    measure(cases, rounds, slice_ms)

    titles = {row.key: row.title for row in rows} | {"empty": "(ignored argument)"}
    machine = describe_machine(("numpy", "torch", "jax", "nanobind", "pybind11"), pinned)
    if compiler := getattr(modules.get("bench_tenon"), "compiler", None):
        machine["compiler"] = compiler
    remarks = [EXCLUDED]
    if skipped:
        remarks.append("Skipped: " + ", ".join(skipped) + ".")
    return Report(titles, list(COLUMNS), (OVER_FLOOR, OVER_TENON), cases, machine, remarks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=51, help="interleaved rounds, 7 or more (%(default)s)")
    parser.add_argument("--slice-ms", type=float, default=2, help="length of one timing (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write every timing")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked block of FILE; - prints it")
    parser.add_argument("--check", action="store_true", help="fail when a promised ratio does not hold")
    options = parser.parse_args()
    if options.rounds < 7:
        parser.error("--rounds must be at least 7")

    report = run(options.rounds, options.slice_ms)
    show(report)
    if options.json:
        write_json(report, options.json)
    if options.markdown:
        write_markdown(report, options.markdown)
    return 0 if not options.check or check(report, PROMISES) else 1


if __name__ == "__main__":
    sys.exit(main())
