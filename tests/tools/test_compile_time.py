"""tests/tools/test_compile_time.py: gives bench/compile_time.py made-up times and sizes, and sees its check fail when it must."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NB, NB_TENON, PB, PB_TENON = "nanobind ndarray", "nanobind + Tenon", "pybind11 array_t", "pybind11 + Tenon"
ENGINE, LIBRARY = "Tenon's engine", "nanobind's library"
COMPILERS = ("g++", "clang++")
KB = 1024

#: (column, functions) -> ms and bytes, each as much as is promised
GOOD = {
    (NB, 1): (300, 1000), (NB, 2): (320, 1500),
    (NB_TENON, 1): (600, 8 * KB), (NB_TENON, 2): (700, 12 * KB),
    (PB, 1): (1000, 90_000), (PB, 2): (1100, 93_000),
    (PB_TENON, 1): (1200, 90_000), (PB_TENON, 2): (1250, 94_000),
    (ENGINE, 0): (6000, 250 * KB), (LIBRARY, 0): (3000, 180_000),
}  # fmt: skip


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    for name in ("compile_time", "object_size", "report", "timing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import compile_time

    return compile_time


@pytest.fixture
def run(tool, monkeypatch):
    """Runs the command with these figures in place of the good ones, by (compiler, column, functions)."""

    def with_figures(changed, *arguments, without=()):
        figures = {(compiler, *cell): values for compiler in COMPILERS for cell, values in GOOD.items()} | changed

        def make_jobs(folder, skipped):
            jobs = [tool.Job(*cell, command=values, object=values) for cell, values in figures.items() if cell[1] not in without]
            return {name: f"{name} 1.2" for name in COMPILERS}, jobs

        monkeypatch.setattr(tool, "pin_to_one_core", lambda: False)
        monkeypatch.setattr(tool, "make_jobs", make_jobs)
        monkeypatch.setattr(tool, "processor_time", lambda values: values[0])
        monkeypatch.setattr(tool, "bytes_of_code", lambda values: values[1])
        monkeypatch.setattr(tool, "stripped_bytes", lambda module, without: module[0].object[1])
        return tool.main(["--rounds", "2", *arguments])

    return with_figures


def failures(capsys):
    return [line.removeprefix("FAIL ") for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]


def test_as_much_as_is_promised_passes(run, capsys):
    assert run({}, "--check") == 0
    assert failures(capsys) == []


MISSED = {
    "nanobind's time": ((NB_TENON, 1, (604, 8 * KB)), "nanobind: Tenon / own is 2.01x, promised at most 2.00x"),
    "pybind11's time": ((PB_TENON, 1, (1210, 90_000)), "pybind11: Tenon / own is 1.21x, promised at most 1.20x"),
    "nanobind's code": ((NB_TENON, 1, (600, 8193)), "nanobind + Tenon is 8193, promised at most 8192"),
    "pybind11's code": ((PB_TENON, 1, (1200, 91_000)), "pybind11: Tenon / own is 1.01x, promised at most 1.00x"),
    "nanobind's second": ((NB_TENON, 2, (700, 12 * KB + 1)), "nanobind + Tenon is 4097, promised at most 4096"),
    "pybind11's second": ((PB_TENON, 2, (1250, 94_097)), "pybind11 + Tenon is 4097, promised at most 4096"),
    "engine's time": ((ENGINE, 0, (6001, 1)), "Tenon's engine is 6001, promised at most 6000"),
}
SIZE_MISSED = {
    "g++": ((ENGINE, 0, (1, 250 * KB + 1)), "Tenon's engine is 256001, promised at most 256000"),
    "clang++": ((ENGINE, 0, (1, 320 * KB + 1)), "Tenon's engine is 327681, promised at most 327680"),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("missed", [*MISSED, "engine's size"])
def test_each_promise_can_be_missed(run, capsys, missed, compiler):
    (column, functions, values), said = MISSED.get(missed) or SIZE_MISSED[compiler]
    assert run({(compiler, column, functions): values}, "--check") == 1
    (failure,) = failures(capsys)
    assert failure.startswith(f"{compiler} 1.2, ") and failure.endswith(said)


@pytest.mark.parametrize("column", [NB_TENON, PB, PB_TENON, ENGINE])
def test_what_was_not_measured_fails(run, capsys, column):
    assert run({}, "--check", without=[column]) == 1
    assert any("not measured" in failure for failure in failures(capsys))


def test_without_check_nothing_fails(run):
    assert run({("g++", ENGINE, 0): (99_999, 1)}) == 0


def test_markdown_fills_its_blocks_alone(run, tmp_path):
    page = tmp_path / "page.md"
    blocks = (f"<!-- {name}:begin -->\nold\n<!-- {name}:end -->\n" for name in ("compile", "code", "engine"))
    page.write_text("before\n" + "between\n".join(blocks) + "after\n")
    assert run({}, "--markdown", str(page)) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- engine:end -->\nafter\n")
    assert "old" not in text and text.count("\nbetween\n") == 2
    assert "| g++ 1.2, one function | 300 | 600 | 1000 | 1200 | 2.00x | 1.20x |" in text
    assert "| g++ 1.2, a second one adds | 500 | 4096 | 3000 | 4000 | 8.19x | 1.33x |" in text
    assert "| clang++ 1.2, bytes in the stripped module | 256000 | 180000 | 1.42x |" in text
    assert text.count("Best of 2 interleaved rounds") == 2, "sizes have no rounds"


def test_what_is_lost_in_noise_has_no_ratio(run, capsys):
    assert run({("g++", NB, 2): (299, 1500)}, "--markdown", "-") == 0
    assert "| g++ 1.2, a second one adds | -1 | 100 | 100 | 50 | - | 0.50x |" in capsys.readouterr().out


def test_the_page_has_the_blocks():
    text = (ROOT / "BENCHMARKS.md").read_text()
    for name in ("compile", "code", "engine"):
        assert re.search(f"<!-- {name}:begin -->\n(.*\n)*?<!-- {name}:end -->\n", text), name


needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@needs_gcc
def test_every_file_is_there(tool):
    skipped = []
    found = list(tool.sources(skipped))
    assert not skipped and all(source.is_file() for _, _, source, _ in found)
    assert [(column, functions) for column, functions, _, _ in found] == list(GOOD)


@needs_gcc
def test_second_function_is_in_the_file(tool, tmp_path, monkeypatch):
    """The nanobind module alone, which is quick to compile."""
    monkeypatch.setattr(tool, "COMPILERS", ("g++",))
    monkeypatch.setattr(tool, "MODULES", {NB: tool.MODULES[NB]})
    one, two = (job for job in tool.make_jobs(tmp_path, [])[1] if job.functions)
    sizes = []
    for job in (one, two):
        assert tool.processor_time(job.command) > 0
        sizes.append(tool.bytes_of_code(job.object))
    assert sizes[0] < sizes[1]


BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_time_is_that_of_the_processor(tool):
    assert tool.processor_time([sys.executable, "-c", BUSY]) >= 300
    assert tool.processor_time([sys.executable, "-c", "import time; time.sleep(2)"]) < 2000, "sleeping is free"


def test_time_of_children_counts(tool):
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    assert tool.processor_time([sys.executable, "-c", child]) >= 300


@needs_gcc
def test_what_does_not_compile_is_not_timed(tool, tmp_path):
    source = tmp_path / "broken.cpp"
    source.write_text("#include <tenon/not_there.hpp>\n")
    with pytest.raises(SystemExit, match="not_there"):
        tool.processor_time(["g++", "-fsyntax-only", str(source)])


def compiled(folder, text, name="some", *options):
    source = folder / f"{name}.cpp"
    source.write_text(text)
    subprocess.run(["g++", "-O2", "-fPIC", *options, "-c", source.name, "-o", f"{name}.o"], cwd=folder, check=True)
    return folder / f"{name}.o"


@needs_gcc
@pytest.mark.skipif(shutil.which("size") is None, reason="binutils are not installed")
def test_code_is_what_size_calls_text(tool, tmp_path):
    made = compiled(tmp_path, "#include <string>\nstd::string f(int x) { return std::to_string(x) + 'a'; }\nint g = 3;\n")
    text = subprocess.run(["size", str(made)], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[0]
    assert tool.bytes_of_code(made) == int(text) > 0


@needs_gcc
def test_constants_count_and_variables_do_not(tool, tmp_path):
    empty = tool.bytes_of_code(compiled(tmp_path, ""))
    assert tool.bytes_of_code(compiled(tmp_path, "extern const char x[1000] = {1};\n")) - empty == 1000
    assert tool.bytes_of_code(compiled(tmp_path, "char x[1000] = {1}; char y[1000];\n")) == empty


def test_what_is_no_object_is_refused(tool, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"MZ" + bytes(100))
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        tool.bytes_of_code(other)


#: Something that is visible whatever the file's visibility, as those of the standard library's templates are.
SHOWN = '__attribute__((visibility("default"))) extern const char y[100000] = {1};\n'


@needs_gcc
def test_stripped_bytes_are_what_the_object_adds_of_what_is_used(tool, tmp_path):
    def job(name, text, column=ENGINE):
        return tool.Job("g++", column, 0, [], compiled(tmp_path, text, name, "-fdata-sections", "-fvisibility=hidden"))

    user = job("user", 'extern const char x[]; __attribute__((visibility("default"))) char f(int i) { return x[i]; }\n', NB_TENON)
    little, much, unused = (
        tool.stripped_bytes([user, job("library", f"extern const char x[{size}] = {{1}};\n" + more)], [])
        for size, more in ((1000, ""), (101_000, ""), (1000, "extern const char y[100000] = {1};\n"))
    )
    assert 0 <= little < 9000
    assert much - little == pytest.approx(100_000, abs=9000), "sections begin on pages"
    assert unused == little
    shown = tool.stripped_bytes([user, job("library", "extern const char x[1000] = {1};\n" + SHOWN)], [])
    assert shown == little, "what the engine shows is its own, and nobody uses it"
