# bench/report.py: turns timed cases into a table for the terminal, Markdown, JSON, and a check of promises.

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from timing import Case

BEGIN, END = "<!-- quick:begin -->", "<!-- quick:end -->"


@dataclass(frozen=True)
class Ratio:
    """A column of one contender over another, and the words that head it."""

    title: str
    over: str
    under: str


@dataclass(frozen=True)
class Promise:
    """A bound on a ratio of one row."""

    row: str
    ratio: Ratio
    relation: str  # "at most" or "at least"
    bound: float

    def kept(self, value: float | None) -> bool:
        if value is None:
            return False
        return value <= self.bound if self.relation == "at most" else value >= self.bound


class Report:
    """The fastest case of each cell, the ratios between them, and where all of it was measured."""

    def __init__(
        self,
        titles: dict[str, str],
        columns: Sequence[str],
        ratios: Sequence[Ratio],
        cases: list[Case],
        machine: dict[str, str],
        remarks: list[str],
    ) -> None:
        self.titles, self.columns, self.ratios = titles, columns, ratios
        self.cases, self.machine, self.remarks = cases, machine, remarks
        self.cells: dict[tuple[str, str], Case] = {}
        for case in cases:
            shown = self.cells.setdefault((case.row, case.column), case)
            # A copy is another job: it stands for a column only where nothing else works.
            if (case.copies, case.best) < (shown.copies, shown.best):
                self.cells[case.row, case.column] = case

    def ratio(self, row: str, ratio: Ratio) -> float | None:
        over, under = self.cells.get((row, ratio.over)), self.cells.get((row, ratio.under))
        return over.best / under.best if over and under else None

    def header(self) -> list[str]:
        return ["ns per call", *self.columns, *(ratio.title for ratio in self.ratios)]

    def lines(self) -> Iterator[list[str]]:
        for row, title in self.titles.items():
            cells = (self.cells.get((row, column)) for column in self.columns)
            ratios = (self.ratio(row, ratio) for ratio in self.ratios)
            yield [title, *map(_cell, cells), *map(_ratio, ratios)]

    def notes(self) -> Iterator[str]:
        chosen = "; ".join(self._chosen())
        if chosen:
            yield f"Where a contender has several ways the fastest is shown, row by row: {chosen}."
        noise = sorted(case.median / case.best - 1 for case in self.cells.values())
        rounds, typical, worst = len(self.cases[0].rounds), statistics.median(noise), noise[-1]
        yield (
            f"Best of {rounds} interleaved rounds. The median lies {typical:.0%} above the best in the "
            f"typical cell and {worst:.0%} in the worst."
        )
        yield from self.remarks

    def _chosen(self) -> Iterator[str]:
        for column in self.columns:
            timed = [case for case in self.cases if case.column == column and case.variant != "empty"]
            shown = [f"`{case.variant}`" for case in timed if self.cells[case.row, column] is case]
            if len({case.variant for case in timed}) > 1:
                yield f"{column} " + ", ".join(shown)


def _cell(case: Case | None) -> str:
    return "-" if case is None else f"{case.best:.0f} (copies)" if case.copies else f"{case.best:.0f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def describe_machine(distributions: Sequence[str], pinned: bool) -> dict[str, str]:
    """What a reader needs to know to repeat the run, in the order it is printed."""
    machine = {
        "date": datetime.date.today().isoformat(),
        "CPU": f"{_cpu_model()} ({os.cpu_count()} cores, {platform.machine()})",
        "system": platform.system() + (", pinned to one core" if pinned else ", not pinned"),
        "Python": platform.python_version(),
    }
    for name in distributions:
        try:
            machine[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return machine


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def show(report: Report) -> None:
    """Prints the report, as a rich table where rich is installed."""
    print("; ".join(f"{key} {value}" for key, value in report.machine.items()))
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        lines = [report.header(), *report.lines()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        for first, *rest in lines:
            print(first.ljust(widths[0]), *map(str.rjust, rest, widths[1:]), sep="  ")
    else:
        table = Table()
        for i, name in enumerate(report.header()):
            style = "bold" if name.startswith("Tenon") else ""
            table.add_column(name, justify="right" if i else "left", style=style, no_wrap=i == 0)
        for line in report.lines():
            table.add_row(*line)
        console = Console()
        (console if console.is_terminal else Console(width=150)).print(table)
    for note in report.notes():
        print("- " + note.replace("`", ""))


def as_markdown(report: Report) -> str:
    header = report.header()
    rows = [header, ["---", *["---:"] * (len(header) - 1)], *report.lines()]
    about = "; ".join(f"{key} {value}" for key, value in report.machine.items())
    table = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([f"Measured: {about}.", "", *table, "", *(f"- {note}" for note in report.notes())])


def write_markdown(report: Report, target: str) -> None:
    """Prints the Markdown for ``-``; otherwise replaces the marked block of the file."""
    if target == "-":
        print(as_markdown(report))
        return
    path = Path(target)
    head, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{target} has no {BEGIN} ... {END} block to fill")
    path.write_text(f"{head}{BEGIN}\n{as_markdown(report)}\n{END}{tail}", encoding="utf-8")


def write_json(report: Report, target: str) -> None:
    """Every timed case, shown or not."""
    cases = [
        {
            "row": case.row,
            "column": case.column,
            "variant": case.variant,
            "shown": report.cells[case.row, case.column] is case,
            "copies": case.copies,
            "best_ns": round(case.best, 2),
            "median_ns": round(case.median, 2),
            "rounds": len(case.rounds),
            "loops": case.loops,
        }
        for case in report.cases
    ]
    ratios = {row: {r.title: report.ratio(row, r) for r in report.ratios} for row in report.titles}
    document = {"machine": report.machine, "ratios": ratios, "cases": cases, "remarks": report.remarks}
    Path(target).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def check(report: Report, promises: Sequence[Promise]) -> bool:
    """Says of each promise whether it holds; one that could not be measured does not."""
    kept = True
    for promise in promises:
        value = report.ratio(promise.row, promise.ratio)
        ok = promise.kept(value)
        kept = kept and ok
        found = "not measured" if value is None else f"{value:.2f}x"
        print(
            f"{'ok  ' if ok else 'FAIL'} {report.titles.get(promise.row, promise.row)}: "
            f"{promise.ratio.title} is {found}, promised {promise.relation} {promise.bound:g}x"
        )
    return kept
