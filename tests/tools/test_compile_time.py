"""tests/tools/test_compile_time.py: gives bench/compile_time.py made-up times, and sees its check fail when it must."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    for name in ("compile_time", "report", "timing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import compile_time

    return compile_time


@pytest.fixture
def run(tool, monkeypatch):
    """Runs the command with these times, in ms, by compiler and column; every other cell took one."""

    def with_times(times, *arguments, without=()):
        def make_cases(folder, skipped):
            titles = {row: row for row in ("g++", "clang++")}
            columns = [column for column in tool.HEADERS if column not in without]
            return titles, [tool.Case(row, column, "", (row, column), None) for row in titles for column in columns]

        monkeypatch.setattr(tool, "pin_to_one_core", lambda: False)
        monkeypatch.setattr(tool, "make_cases", make_cases)
        monkeypatch.setattr(tool, "processor_time", lambda cell: times.get(cell, 1.0))
        return tool.main(["--rounds", "2", *arguments])

    return with_times


def cells(tenon, nanobind, pybind11):
    both = {}
    for compiler in ("g++", "clang++"):
        both |= {(compiler, "Tenon"): tenon, (compiler, "nanobind"): nanobind, (compiler, "pybind11"): pybind11}
    return both


@pytest.mark.parametrize("times", [(2, 1, 3), (2, 3, 1), (1, 2, 3), (3, 1, 3)])
def test_not_the_slowest_passes(run, times):
    assert run(cells(*times), "--check") == 0


def test_slowest_fails(run, capsys):
    assert run(cells(3.1, 1, 3), "--check") == 1
    assert "FAIL g++: Tenon takes 3 ms, pybind11 3 ms, promised not to be the slowest" in capsys.readouterr().out


@pytest.mark.parametrize(("slow", "other"), [("g++", "clang++"), ("clang++", "g++")])
def test_slowest_with_one_compiler_fails(run, capsys, slow, other):
    assert run(cells(2, 1, 3) | {(slow, "Tenon"): 9.0}, "--check") == 1
    said = capsys.readouterr().out
    assert f"ok   {other}: Tenon takes 2 ms" in said and f"FAIL {slow}: Tenon takes 9 ms" in said


@pytest.mark.parametrize("column", ["Tenon", "nanobind", "pybind11"])
def test_what_was_not_measured_fails(run, capsys, column):
    assert run(cells(1, 2, 3), "--check", without=[column]) == 1
    assert f"not measured: {column}" in capsys.readouterr().out


def test_headers_of_a_binder_promise_nothing(run):
    assert run(cells(1, 2, 3) | {("g++", "Tenon for pybind11"): 99.0}, "--check") == 0


def test_without_check_nothing_fails(run):
    assert run(cells(9, 1, 1)) == 0


def test_markdown_fills_its_block_alone(run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- compile:begin -->\nold\n<!-- compile:end -->\nafter\n")
    assert run(cells(20, 10, 40), "--markdown", str(page)) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- compile:end -->\nafter\n") and "old" not in text
    assert "| g++ | 1 | 1 | 20 | 10 | 40 |" in text
    assert "2.00x | 0.50x" in text


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_time_is_that_of_the_compiler(tool, tmp_path):
    light, heavy = tmp_path / "light.cpp", tmp_path / "heavy.cpp"
    light.write_text("int x;\n")
    heavy.write_text("#include <complex>\n#include <memory>\n")
    times = [tool.processor_time(["g++", "-std=c++20", "-fsyntax-only", str(path)]) for path in (light, heavy)]
    assert 0 < 2 * times[0] < times[1]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_what_does_not_compile_is_not_timed(tool, tmp_path):
    source = tmp_path / "broken.cpp"
    source.write_text("#include <tenon/not_there.hpp>\n")
    with pytest.raises(SystemExit, match="not_there"):
        tool.processor_time(["g++", "-fsyntax-only", str(source)])
