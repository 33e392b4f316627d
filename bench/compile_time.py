# bench/compile_time.py: how long a file takes to compile that only includes the headers, Tenon's and the peers'.
"""Measure what including a library's headers adds to the compilation of every file that does so.

bench/README.md says what is measured, what is not, and how to read the table."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from report import Ratio, Report, Table, describe_machine, in_words, show, write_markdown
from timing import Case, pin_to_one_core

ROOT = Path(__file__).resolve().parents[1]

#: column -> what the file includes
HEADERS = {
    "empty file": (),
    "Python.h": ("Python.h",),
    "Tenon": ("tenon/py.hpp",),
    "nanobind": ("nanobind/nanobind.h", "nanobind/ndarray.h"),
    "pybind11": ("pybind11/numpy.h",),
    "Tenon for nanobind": ("nanobind/nanobind.h", "tenon/bind/nanobind.hpp"),
    "Tenon for pybind11": ("pybind11/pybind11.h", "tenon/bind/pybind11.hpp"),
}
PEERS = ("nanobind", "pybind11")
RATIOS = (
    Ratio("Tenon / nanobind", "Tenon", "nanobind"),
    Ratio("Tenon / pybind11", "Tenon", "pybind11"),
    Ratio("Tenon for nanobind / nanobind", "Tenon for nanobind", "nanobind"),
    Ratio("Tenon for pybind11 / pybind11", "Tenon for pybind11", "pybind11"),
)
COMPILERS = ("g++", "clang++")
MODES = {"-O2": ("-O2", "-c", "-o", os.devnull), "-fsyntax-only": ("-fsyntax-only",)}

EXCLUDED = (
    "Processor time of the compiler, user and system. Excluded: what a file does with the headers, which instantiates "
    "templates of all three; and nanobind's own library, which its headers only declare and which each project "
    "compiles once. Tenon and pybind11 are headers alone."
)


def include_folders() -> dict[str, Path]:
    """Where the headers of each library are; a peer that is not installed is left out."""
    folders = {"tenon": ROOT / "include", "Python.h": Path(sysconfig.get_path("include"))}
    for peer in PEERS:
        try:
            folders[peer] = Path(str(importlib.metadata.distribution(peer).locate_file(f"{peer}/include")))
        except importlib.metadata.PackageNotFoundError:
            continue
    return folders


def compiler_version(command: str) -> str | None:
    """``12.2.0``, or None where there is no such compiler."""
    if shutil.which(command) is None:
        return None
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", said.splitlines()[0].rpartition(")")[2] or said)
    return found.group() if found else "of unknown version"


def processor_time(command: Sequence[str]) -> float:
    """Milliseconds that a command and its children keep a processor busy."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return (used.ru_utime + used.ru_stime) * 1e3


def make_cases(folder: Path, skipped: list[str]) -> tuple[dict[str, str], list[Case]]:
    """The rows and what is to be timed; what cannot be is named in ``skipped``."""
    folders = include_folders()
    sources = {}
    for column, names in HEADERS.items():
        if all(any((at / name).exists() for at in folders.values()) for name in names):
            sources[column] = folder / f"{column.replace(' ', '_')}.cpp"
            sources[column].write_text("".join(f"#include <{name}>\n" for name in names))
        else:
            skipped.append(f"{column} (not installed)")
    titles, cases = {}, []
    for compiler in COMPILERS:
        version = compiler_version(compiler)
        if version is None:
            skipped.append(f"{compiler} (not installed)")
            continue
        for mode, flags in MODES.items():
            row = f"{compiler} {mode}"
            titles[row] = f"{compiler} {version} `{mode}`"
            common = [compiler, "-std=c++20", *(f"-I{at}" for at in folders.values()), *flags]
            for column, source in sources.items():
                cases.append(Case(row, column, mode, [*common, str(source)], processor_time))
    return titles, cases


def measure(cases: Sequence[Case], rounds: int) -> None:
    """Fills the rounds of every case, each time in a new order: what disturbs the machine disturbs all alike."""
    order = list(cases)
    shuffle = random.Random(0).shuffle
    for case in order:
        processor_time(case.argument)  # reads the headers from the disk
    for _ in range(rounds):
        shuffle(order)
        for case in order:
            case.rounds.append(processor_time(case.argument))


def run(rounds: int) -> Report:
    pinned = pin_to_one_core()
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        titles, cases = make_cases(Path(folder), skipped)
        if not cases:
            raise SystemExit("no compiler: " + ", ".join(skipped))
        measure(cases, rounds)
    machine = describe_machine(PEERS, pinned)
    if skipped:
        machine["skipped"] = ", ".join(skipped)
    return Report(make_table(titles, cases), machine)


def make_table(titles: dict[str, str], cases: Sequence[Case]) -> Table:
    columns = [column for column in HEADERS if any(case.column == column for case in cases)]
    included = (f"{name} " + ", ".join(f"`{header}`" for header in HEADERS[name]) for name in columns if HEADERS[name])
    return Table(
        marker="compile",
        heading="Compiling a file that only includes the headers",
        titles=titles,
        columns=columns,
        ratios=[ratio for ratio in RATIOS if ratio.over in columns and ratio.under in columns],
        promises=(),
        cases=cases,
        remarks=(f"`-std=c++20`; a file of nothing but these includes: {'; '.join(included)}.", EXCLUDED),
        unit="ms of processor time",
    )


def check(report: Report) -> bool:
    """Says for each compiler whether Tenon is the slowest of the three; one that was not measured cannot excuse it."""
    kept = True
    for row, title in report.table.titles.items():
        times = {column: case.best for (of, column), case in report.cells.items() if of == row}
        missing = [column for column in ("Tenon", *PEERS) if column not in times]
        if missing:
            ok, found = False, f"not measured: {', '.join(missing)}"
        else:
            slowest = max(PEERS, key=lambda peer: times[peer])
            ok = times["Tenon"] <= times[slowest]
            found = f"Tenon takes {times['Tenon']:.0f} ms, {slowest} {times[slowest]:.0f} ms"
        kept = kept and ok
        print(f"{'ok  ' if ok else 'FAIL'} {title}: {found}, promised not to be the slowest")
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (%(default)s)")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked block of FILE; - prints it")
    parser.add_argument("--check", action="store_true", help="fail when Tenon's header is the slowest of the three")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    report = run(options.rounds)
    print(in_words(report.machine))
    show(report)
    if options.markdown:
        write_markdown(report, options.markdown)
    return 0 if not options.check or check(report) else 1


if __name__ == "__main__":
    sys.exit(main())
