# bench/quick.py: what crossing between C++ and Python costs, for every contender, in one pinned process.
"""Measure taking one argument from Python, by hand and through a binder, and handing memory to Python.

Needs the folder of the built modules on PYTHONPATH.

bench/README.md says what is measured, what is not, and how to read the tables."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

import bound
import way_in
import way_out
from report import Report, check, describe_machine, in_words, show, write_json, write_markdown
from timing import measure, pin_to_one_core

FLOORS = ("bench_floor", "bench_floor_out")
CONTENDERS = ("bench_tenon", "bench_nanobind", "bench_pybind11", *bound.MODULES)


def load_modules(skipped: list[str]) -> dict[str, Any]:
    """The contenders that were built; the others are named in ``skipped``."""
    modules = {}
    for name in FLOORS + CONTENDERS:
        try:
            modules[name] = importlib.import_module(name)
        except ModuleNotFoundError:
            if name in FLOORS:
                raise SystemExit(f"{name} is missing: put the folder of the built modules on PYTHONPATH") from None
            skipped.append(f"{name} (not on PYTHONPATH)")
    return modules


def run(rounds: int, slice_ms: float) -> list[Report]:
    pinned = pin_to_one_core()
    skipped: list[str] = []
    modules = load_modules(skipped)
    tables = [way_in.make_table(modules, skipped), bound.make_table(modules), way_out.make_table(modules)]
    measure([case for table in tables for case in table.cases], rounds, slice_ms)

    machine = describe_machine(("numpy", "torch", "jax", "nanobind", "pybind11"), pinned)
    if compiler := getattr(modules.get("bench_tenon"), "compiler", None):
        machine["compiler"] = compiler
    if skipped:
        machine["skipped"] = ", ".join(skipped)
    return [Report(table, machine) for table in tables]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=51, help="interleaved rounds, 7 or more (%(default)s)")
    parser.add_argument("--slice-ms", type=float, default=2, help="length of one timing (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write every timing")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked blocks of FILE; - prints them")
    parser.add_argument("--check", action="store_true", help="fail when a promised ratio does not hold")
    options = parser.parse_args()
    if options.rounds < 7:
        parser.error("--rounds must be at least 7")

    reports = run(options.rounds, options.slice_ms)
    print(in_words(reports[0].machine))
    for report in reports:
        show(report)
    if options.json:
        write_json(reports, options.json)
    if options.markdown:
        for report in reports:
            write_markdown(report, options.markdown)
    kept = [check(report) for report in reports] if options.check else []
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
