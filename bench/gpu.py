# bench/gpu.py: what crossing between C++ and Python costs with CUDA arrays and their streams, in one pinned process.
"""Measure taking a CUDA array with its stream, handing CUDA memory to Python, and a whole call with a launch.

Needs an NVIDIA GPU, and the folder of the built modules on PYTHONPATH (see `make bench-gpu`). Where there is no GPU it
says so.

bench/README.md says what is measured, what is not, and how to read the tables."""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import shutil
import sys
from typing import Any

import gpu_call
import gpu_in
import gpu_out
from gpu_libraries import load_libraries
from gpu_timing import reason
from report import Report, check, describe_machine, in_words, show, write_json, write_markdown
from timing import measure, pin_to_one_core

#: Without these there is nothing to compare.
NEEDED = ("bench_gpu_floor", "bench_gpu_tenon")
PEERS = ("bench_gpu_nanobind", "bench_gpu_pybind11", "bench_gpu_torch")
DISTRIBUTIONS = ("torch", "cupy", "cupy-cuda13x", "cupy-cuda12x", "jax", "cuda-core", "nanobind", "pybind11")


def missing_device() -> str | None:
    """Why there is no GPU to measure on, or None where there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    count = ctypes.c_int()
    if status := driver.cuInit(0):
        return f"the NVIDIA driver does not start (cuInit gave {status})"
    if driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no NVIDIA GPU"
    return None


def missing_compiler() -> str | None:
    """Why the modules cannot be built, or None."""
    if os.environ.get("CUDACXX") or shutil.which("nvcc") or os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
        return None
    return "no CUDA compiler (nvcc)"


def load_module(name: str, skipped: list[str]) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as fault:
        if name in NEEDED:
            raise SystemExit(f"{name} is missing: put the folder of the built modules on PYTHONPATH ({fault})") from None
        skipped.append(f"{name} ({'not built' if isinstance(fault, ModuleNotFoundError) else reason(fault)})")
        return None


def run(rounds: int, slice_ms: float) -> list[Report]:
    skipped: list[str] = []
    floor = load_module("bench_gpu_floor", skipped)
    libraries = list(load_libraries(floor, skipped))  # before the modules: the torch extension needs torch's libraries
    modules = {name: module for name in NEEDED + PEERS if (module := load_module(name, skipped))}
    tables = [
        gpu_in.make_table(modules, libraries, skipped),
        gpu_out.make_table(modules, libraries),
        gpu_call.make_table(modules, libraries, skipped),
    ]
    measured = [table for table in tables if table and table.cases]
    if not measured:
        raise SystemExit("nothing can be measured: " + ", ".join(skipped))
    pinned = pin_to_one_core()  # now: the libraries' own threads stay elsewhere
    measure([case for table in measured for case in table.cases], rounds, slice_ms)

    machine = describe_machine(DISTRIBUTIONS, pinned) | {"compiler": floor.compiler, "GPU": floor.device}
    if skipped:
        machine["skipped"] = ", ".join(dict.fromkeys(skipped))
    return [Report(table, machine) for table in measured]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=51, help="interleaved rounds, 7 or more (%(default)s)")
    parser.add_argument("--slice-ms", type=float, default=2, help="length of one timing (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write every timing")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked blocks of FILE; - prints them")
    parser.add_argument("--check", action="store_true", help="fail when a promised ratio does not hold")
    parser.add_argument("--can-run", action="store_true", help="only say whether there is a GPU and a CUDA compiler")
    options = parser.parse_args()
    if options.rounds < 7:
        parser.error("--rounds must be at least 7")

    missing = missing_device() or (missing_compiler() if options.can_run else None)
    if missing:
        print(f"bench/gpu.py: {missing}: nothing is measured")
    if missing or options.can_run:
        return 1 if missing and (options.check or options.can_run) else 0

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
