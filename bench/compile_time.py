# bench/compile_time.py: what Tenon costs a project to compile, and how much code it leaves: modules, and the engine.
"""Measure compiling whole modules that take arrays, by each binder's own type and by Tenon's, and the engine once.

bench/README.md says what is measured, what is not, and how to read the tables."""

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from object_size import bytes_of_code
from report import Promise, Ratio, Report, Table, check, describe_machine, in_words, show, write_markdown
from timing import Case, pin_to_one_core

ROOT = Path(__file__).resolve().parents[1]
KB = 1024

#: column -> the file in bench/compile/
MODULES = {
    "nanobind ndarray": "nanobind_own",
    "nanobind + Tenon": "nanobind_tenon",
    "pybind11 array_t": "pybind11_own",
    "pybind11 + Tenon": "pybind11_tenon",
}
ENGINE, PEER_ENGINE = "Tenon's engine", "nanobind's library"
COMPILERS = ("g++", "clang++")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections")

NANOBIND = Ratio("nanobind: Tenon / own", "nanobind + Tenon", "nanobind ndarray")
PYBIND11 = Ratio("pybind11: Tenon / own", "pybind11 + Tenon", "pybind11 array_t")
ENGINES = Ratio("Tenon / nanobind", ENGINE, PEER_ENGINE)

#: the marker of a table -> what is promised of it for each compiler: row, column or ratio, and the most it may be,
#: or that for each compiler
PROMISES = {
    "compile": (("one", NANOBIND, 2), ("one", PYBIND11, 1.2)),
    "code": (
        ("one", "nanobind + Tenon", 8 * KB),
        ("one", PYBIND11, 1),
        ("second", "nanobind + Tenon", 4 * KB),
        ("second", "pybind11 + Tenon", 4 * KB),
    ),
    "engine": (("time", ENGINE, 6000), ("size", ENGINE, {"g++": 250 * KB, "clang++": 320 * KB})),
}


@dataclass
class Job:
    """One source to compile with one compiler, and what that took, in ms, round by round."""

    compiler: str
    column: str
    functions: int  # 0: a library, which has none for Python
    command: list[str]
    object: Path
    rounds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.rounds)


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


def package_folder(name: str) -> Path | None:
    try:
        return Path(str(importlib.metadata.distribution(name).locate_file(name)))
    except importlib.metadata.PackageNotFoundError:
        return None


def sources(skipped: list[str]) -> Iterator[tuple[str, int, Path, list[str]]]:
    """For each file to compile its column, how many functions it binds, and the options it needs."""
    common = [f"-I{ROOT / 'include'}", f"-I{sysconfig.get_path('include')}"]
    for column, name in MODULES.items():
        binder = column.split()[0]
        folder = package_folder(binder)
        if folder is None:
            skipped.append(f"{column} ({binder} is not installed)")
            continue
        for functions in (1, 2):
            source = ROOT / "bench" / "compile" / f"{name}.cpp"
            yield column, functions, source, [*common, f"-I{folder / 'include'}", f"-DFUNCTIONS={functions}"]
    yield ENGINE, 0, ROOT / "src" / "tenon.cpp", common
    if folder := package_folder("nanobind"):
        needed = [f"-I{folder / 'include'}", f"-I{folder / 'ext/robin_map/include'}", "-fno-strict-aliasing"]
        yield PEER_ENGINE, 0, folder / "src" / "nb_combined.cpp", [*common, *needed]


def make_jobs(folder: Path, skipped: list[str]) -> tuple[dict[str, str], list[Job]]:
    """The compilers, with words for each, and what is to be timed; what cannot be is named in ``skipped``."""
    compilers, jobs = {}, []
    found = list(sources(skipped))
    for compiler in COMPILERS:
        version = compiler_version(compiler)
        if version is None:
            skipped.append(f"{compiler} (not installed)")
            continue
        compilers[compiler] = f"{compiler} {version}"
        for column, functions, source, options in found:
            into = folder / f"{compiler}-{source.stem}-{functions}.o"
            command = [compiler, *FLAGS, *options, "-c", str(source), "-o", str(into)]
            jobs.append(Job(compiler, column, functions, command, into))
    return compilers, jobs


def measure(jobs: Sequence[Job], rounds: int) -> None:
    """Fills the rounds of every job, each time in a new order: what disturbs the machine disturbs all alike."""
    order = list(jobs)
    shuffle = random.Random(0).shuffle
    for job in order:
        processor_time(job.command)  # reads the headers from the disk, and leaves the object to look at
    for _ in range(rounds):
        shuffle(order)
        for job in order:
            job.rounds.append(processor_time(job.command))


def linked_bytes(compiler: str, folder: Path, jobs: Sequence[Job]) -> int:
    """A stripped shared object of these, without what nothing in it uses; the engine is in an archive, as CMake has it."""
    linked, archive = folder / "linked.so", folder / f"lib{compiler}-engine.a"
    options = ["-shared", "-s", "-Wl,--gc-sections", f"-Wl,--exclude-libs,{archive.name}"]
    for job in jobs:
        if job.column == ENGINE:
            subprocess.run(["ar", "rcs", str(archive), str(job.object)], check=True)
    inputs = [str(archive if job.column == ENGINE else job.object) for job in jobs]
    processor_time([compiler, *FLAGS, *options, *sorted(inputs, key=str(archive).__eq__), "-o", str(linked)])
    return linked.stat().st_size


def stripped_bytes(module: Sequence[Job], without: Sequence[Job]) -> int:
    """How much larger the stripped module is than the one without."""
    compiler, folder = module[0].compiler, module[0].object.parent
    return linked_bytes(compiler, folder, module) - linked_bytes(compiler, folder, without)


def sizes_of(libraries: Sequence[Job], jobs: Sequence[Job]) -> Iterator[tuple[Job, int]]:
    """The engine: a module that takes an array by Tenon, beside nanobind's own. Nanobind's library: that, beside nothing."""
    by_cell = {(job.compiler, job.column, job.functions): job for job in jobs}
    for job in libraries:
        peer = by_cell.get((job.compiler, PEER_ENGINE, 0))
        own = by_cell.get((job.compiler, "nanobind ndarray", 1))
        user = by_cell.get((job.compiler, "nanobind + Tenon", 1))
        if peer is None or own is None or user is None:
            continue
        yield job, stripped_bytes([job, user, peer], [own, peer]) if job is not peer else stripped_bytes([peer, own], [])


def figure(row: str, column: str, *values: float) -> Case:
    """A cell of a table: rounds of a time, or one size."""
    return Case(row, column, "", None, lambda _: None, rounds=list(values))


def of_modules(jobs: Sequence[Job], values: Callable[[Job], list[float]]) -> list[Case]:
    """A row for one function and one for what the second adds, for each compiler."""
    cases = []
    for one in (job for job in jobs if job.functions == 1):
        (two,) = (job for job in jobs if (job.compiler, job.column, job.functions) == (one.compiler, one.column, 2))
        cases.append(figure(f"{one.compiler} one", one.column, *values(one)))
        cases.append(figure(f"{one.compiler} second", one.column, min(values(two)) - min(values(one))))
    return cases


def titles_of_modules(compilers: dict[str, str]) -> dict[str, str]:
    titles = {}
    for compiler, title in compilers.items():
        titles[f"{compiler} one"] = f"{title}, one function"
        titles[f"{compiler} second"] = f"{title}, a second one adds"
    return titles


def present(columns: Sequence[str], jobs: Sequence[Job]) -> list[str]:
    return [column for column in columns if any(job.column == column for job in jobs)]


def promises_of(marker: str, compilers: Iterable[str]) -> list[Promise]:
    return [
        Promise(f"{compiler} {row}", where, "at most", limit[compiler] if isinstance(limit, dict) else limit)
        for compiler in compilers
        for row, where, limit in PROMISES[marker]
    ]


def make_tables(compilers: dict[str, str], jobs: Sequence[Job]) -> list[Table]:
    modules = present(list(MODULES), jobs)
    ratios = [ratio for ratio in (NANOBIND, PYBIND11) if {ratio.over, ratio.under} <= set(modules)]
    times = Table(
        marker="compile",
        heading="Compiling a module that takes arrays",
        titles=titles_of_modules(compilers),
        columns=modules,
        ratios=ratios,
        promises=promises_of("compile", compilers),
        cases=of_modules(jobs, lambda job: job.rounds),
        remarks=(
            f"Processor time of the compiler, user and system, with `{' '.join(FLAGS)} -c`. One function takes a vector "
            "of float32 and sums it; the second takes a matrix of float64 without gaps. The whole file is counted: the "
            "binder's headers, Tenon's, and what the file makes of them. Excluded: linking, and what a project compiles "
            "once, which has a table of its own.",
        ),
        unit="ms of processor time",
    )
    code = Table(
        marker="code",
        heading="Code in the object file of that module",
        titles=titles_of_modules(compilers),
        columns=modules,
        ratios=ratios,
        promises=promises_of("code", compilers),
        cases=of_modules(jobs, lambda job: [bytes_of_code(job.object)]),
        remarks=("What `size` calls text: instructions, constants and unwinding tables, before linking.",),
        unit="bytes of code",
    )
    libraries = [job for job in jobs if job.functions == 0]
    engine = Table(
        marker="engine",
        heading="What is compiled once",
        titles={
            f"{compiler} {what}": f"{title}, {unit}"
            for compiler, title in compilers.items()
            for what, unit in (("time", "ms of processor time"), ("size", "bytes in the stripped module"))
        },
        columns=present([ENGINE, PEER_ENGINE], libraries),
        ratios=[ENGINES] if any(job.column == PEER_ENGINE for job in libraries) else [],
        promises=promises_of("engine", compilers),
        cases=[
            *(figure(f"{job.compiler} time", job.column, *job.rounds) for job in libraries),
            *(figure(f"{job.compiler} size", job.column, size) for job, size in sizes_of(libraries, jobs)),
        ],
        remarks=(
            "`src/tenon.cpp` and nanobind's `src/nb_combined.cpp`, each in one piece, with the same flags (nanobind's "
            "library also with `-fno-strict-aliasing`, as its own build has it). Bytes: how much larger the module of one "
            "function above is by Tenon than by nanobind alone, and this one than an empty one, linked with "
            "`--gc-sections` as the build files of both do, and stripped; the engine's archive with `--exclude-libs`, as Tenon's "
            "do. pybind11 has no such part: each file of a project brings its own.",
        ),
        unit="once for each project",
    )
    return [times, code, engine]


def run(rounds: int) -> list[Report]:
    pinned = pin_to_one_core()
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        compilers, jobs = make_jobs(Path(folder), skipped)
        if not compilers:
            raise SystemExit("no compiler: " + ", ".join(skipped))
        measure(jobs, rounds)
        tables = make_tables(compilers, jobs)
    machine = describe_machine(("nanobind", "pybind11"), pinned)
    if skipped:
        machine["skipped"] = ", ".join(skipped)
    return [Report(table, machine) for table in tables]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (%(default)s)")
    parser.add_argument("--markdown", metavar="FILE", help="fill the marked blocks of FILE; - prints them")
    parser.add_argument("--check", action="store_true", help="fail when a promise is missed, or was not measured")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    reports = run(options.rounds)
    print(in_words(reports[0].machine))
    for report in reports:
        show(report)
        if options.markdown:
            write_markdown(report, options.markdown)
    kept = True
    if options.check:
        for report in reports:
            print(f"\n{report.table.heading}")
            kept = check(report) and kept
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
