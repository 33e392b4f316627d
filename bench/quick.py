# bench/quick.py: what crossing between C++ and Python costs, for every contender, in pinned processes.
"""Measure taking one argument from Python, by hand and through a binder, and handing memory to Python.

Needs the folder of the built modules on PYTHONPATH.

bench/README.md says what is measured, what is not, and how to read the tables."""

from __future__ import annotations

import argparse
import importlib
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import bound
import way_in
import way_out
from report import Report, Table, check, describe_machine, in_words, show, write_json, write_markdown
from timing import Case, measure, pin_to_one_core

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


def make_tables(skipped: list[str]) -> tuple[dict[str, Any], list[Table]]:
    modules = load_modules(skipped)
    return modules, [way_in.make_table(modules, skipped), bound.make_table(modules), way_out.make_table(modules)]


def name_of(case: Case) -> tuple[str, str, str]:
    return case.row, case.column, case.variant


def cases_of(tables: list[Table]) -> list[Case]:
    return [case for table in tables for case in table.cases]


Timing = tuple[tuple[str, str, str], int, list[float]]


def measure_here(rounds: int, slice_ms: float) -> list[Timing]:
    """Times every case in this process: its name, loops and rounds."""
    pin_to_one_core()
    cases = cases_of(make_tables([])[1])
    measure(cases, rounds, slice_ms)
    return [(name_of(case), case.loops, case.rounds) for case in cases]


def run(rounds: int, slice_ms: float, processes: int) -> list[Report]:
    """Where things lie in memory differs from process to process, and with it a few nanoseconds: several have a try."""
    pinned = pin_to_one_core()
    skipped: list[str] = []
    modules, tables = make_tables(skipped)
    for _ in range(processes):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            timed = fresh.submit(measure_here, -(-rounds // processes), slice_ms).result()
        for case, (name, loops, its_rounds) in zip(cases_of(tables), timed, strict=True):
            if name != name_of(case):
                raise SystemExit(f"a process has timed {name} in place of {name_of(case)}")
            case.loops = loops
            case.rounds += its_rounds

    machine = describe_machine(("numpy", "torch", "jax", "nanobind", "pybind11"), pinned)
    machine["processes"] = str(processes)
    if compiler := getattr(modules.get("bench_tenon"), "compiler", None):
        machine["compiler"] = compiler
    if skipped:
        machine["skipped"] = ", ".join(skipped)
    return [Report(table, machine) for table in tables]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=51, help="interleaved rounds, 7 or more (%(default)s)")
    parser.add_argument("--processes", type=int, default=3, help="that share the rounds (%(default)s)")
    parser.add_argument("--slice-ms", type=float, default=2, help="length of one timing (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write every timing")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked blocks of FILE; - prints them")
    parser.add_argument("--check", action="store_true", help="fail when a promised ratio does not hold")
    options = parser.parse_args()
    if options.rounds < 7 or not 1 <= options.processes <= options.rounds:
        parser.error("--rounds must be at least 7, and --processes from 1 to as many")

    reports = run(options.rounds, options.slice_ms, options.processes)
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
