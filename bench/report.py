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


@dataclass(frozen=True)
class Ratio:
    """A column of one contender over another, and the words that head it."""

    title: str
    over: str
    under: str


@dataclass(frozen=True)
class Promise:
    """A bound on a ratio of one row or, where a column is named, on that column's own figure."""

    row: str
    of: Ratio | str
    relation: str  # "at most" or "at least"
    bound: float

    def value(self, report: Report) -> float | None:
        if isinstance(self.of, Ratio):
            return report.ratio(self.row, self.of)
        cell = report.cells.get((self.row, self.of))
        return cell.best if cell else None

    def in_words(self, value: float) -> str:
        return f"{value:.2f}x" if isinstance(self.of, Ratio) else f"{value:.0f}"

    @property
    def title(self) -> str:
        return self.of.title if isinstance(self.of, Ratio) else self.of

    def kept(self, value: float | None) -> bool:
        if value is None:
            return False
        return value <= self.bound if self.relation == "at most" else value >= self.bound


@dataclass(frozen=True)
class Table:
    """What is shown of a set of cases: rows and columns in order, ratios between columns, promised bounds."""

    marker: str  # names its block in a Markdown file
    heading: str
    titles: dict[str, str]  # row -> words
    columns: Sequence[str]
    ratios: Sequence[Ratio]
    promises: Sequence[Promise]
    cases: Sequence[Case]
    remarks: Sequence[str]
    unit: str = "ns per call"


class Report:
    """The fastest case of each cell, the ratios between them, and where all of it was measured."""

    def __init__(self, table: Table, machine: dict[str, str]) -> None:
        self.table, self.machine = table, machine
        self.cells: dict[tuple[str, str], Case] = {}
        for case in table.cases:
            shown = self.cells.setdefault((case.row, case.column), case)
            # A copy is another job: it stands for a column only where nothing else works.
            if (case.copies, case.best) < (shown.copies, shown.best):
                self.cells[case.row, case.column] = case

    def ratio(self, row: str, ratio: Ratio) -> float | None:
        over, under = self.cells.get((row, ratio.over)), self.cells.get((row, ratio.under))
        # What a second function adds may be lost in the noise, and then has no ratio.
        return over.best / under.best if over and under and min(over.best, under.best) > 0 else None

    def header(self) -> list[str]:
        return [self.table.unit, *self.table.columns, *(ratio.title for ratio in self.table.ratios)]

    def lines(self) -> Iterator[list[str]]:
        for row, title in self.table.titles.items():
            cells = (self.cells.get((row, column)) for column in self.table.columns)
            ratios = (self.ratio(row, ratio) for ratio in self.table.ratios)
            yield [title, *map(_cell, cells), *map(_ratio, ratios)]

    def notes(self) -> Iterator[str]:
        chosen = "; ".join(self._chosen())
        if chosen:
            yield f"Where a contender has several ways the fastest is shown, row by row: {chosen}."
        timed = [case for case in self.cells.values() if len(case.rounds) > 1]  # the others are sizes
        if timed:
            noise = sorted(case.median / case.best - 1 for case in timed)
            rounds, typical, worst = len(timed[0].rounds), statistics.median(noise), noise[-1]
            yield (
                f"Best of {rounds} interleaved rounds. The median lies {typical:.0%} above the best in the "
                f"typical cell and {worst:.0%} in the worst."
            )
        yield from self.table.remarks

    def _chosen(self) -> Iterator[str]:
        for column in self.table.columns:
            timed = [case for case in self.table.cases if case.column == column and case.variant != "empty"]
            shown = [f"`{case.variant}`" for case in timed if self.cells[case.row, column] is case]
            if len(timed) > len(shown):
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


def in_words(machine: dict[str, str]) -> str:
    return "; ".join(f"{key} {value}" for key, value in machine.items())


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
    print(f"\n{report.table.heading}")
    try:
        import rich.console
        import rich.table
    except ImportError:
        lines = [report.header(), *report.lines()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for first, *rest in lines:
            print(first.ljust(widths[0]), *map(str.rjust, rest, widths[1:]), sep="  ")
    else:
        table = rich.table.Table()
        for i, name in enumerate(report.header()):
            style = "bold" if name.startswith("Tenon") else ""
            table.add_column(name, justify="right" if i else "left", style=style, no_wrap=i == 0)
        for line in report.lines():
            table.add_row(*line)
        console = rich.console.Console()
        (console if console.is_terminal else rich.console.Console(width=150)).print(table)
    for note in report.notes():
        print("- " + note.replace("`", ""))


def as_markdown(report: Report) -> str:
    header = report.header()
    rows = [header, ["---", *["---:"] * (len(header) - 1)], *report.lines()]
    table = ("| " + " | ".join(row) + " |" for row in rows)
    notes = (f"- {note}" for note in report.notes())
    return "\n".join([f"Measured: {in_words(report.machine)}.", "", *table, "", *notes])


def write_markdown(report: Report, target: str) -> None:
    """Prints the Markdown for ``-``; otherwise replaces the marked block of the file."""
    if target == "-":
        print(as_markdown(report))
        return
    path = Path(target)
    first, last = (f"<!-- {report.table.marker}:{which} -->" for which in ("begin", "end"))
    head, begin, rest = path.read_text(encoding="utf-8").partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{target} has no {first} ... {last} block to fill")
    path.write_text(f"{head}{begin}\n{as_markdown(report)}\n{end}{tail}", encoding="utf-8")


def write_json(reports: Sequence[Report], target: str) -> None:
    """Every timed case, shown or not."""
    document = {
        "machine": reports[0].machine,
        "tables": {
            report.table.marker: {
                "ratios": {
                    row: {r.title: report.ratio(row, r) for r in report.table.ratios}
                    for row in report.table.titles
                },
                "cases": [_as_json(case, report) for case in report.table.cases],
                "remarks": report.table.remarks,
            }
            for report in reports
        },
    }
    Path(target).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _as_json(case: Case, report: Report) -> dict[str, object]:
    return {
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


def check(report: Report) -> bool:
    """Says of each promise whether it holds; one that could not be measured does not."""
    kept = True
    for promise in report.table.promises:
        value = promise.value(report)
        ok = promise.kept(value)
        kept = kept and ok
        found = "not measured" if value is None else promise.in_words(value)
        title = report.table.titles.get(promise.row, promise.row)
        print(
            f"{'ok  ' if ok else 'FAIL'} {title}: {promise.title} is {found}, "
            f"promised {promise.relation} {promise.in_words(promise.bound)}"
        )
    return kept
