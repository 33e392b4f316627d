# tests/compile_fail/test_compile_fail.py: misuse does not compile, and the compiler's first error says what to do.
"""Each .cpp file here is one misuse. Its first lines name it and state, as plain text, what the first error must say:

    // must say: give one integer for each axis of the view
    // must say (g++): what only this compiler puts so

With CORRECT defined the same file must compile, so that no misuse is refused for another reason than the stated one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CASES = sorted(HERE.glob("*.cpp"))
COMPILERS = ("g++", "clang++")
LIMIT = float(os.environ.get("TENON_TEST_TIMEOUT", "900"))  # against what hangs
FLAGS = ("-std=c++20", f"-I{HERE.parents[1] / 'include'}", f"-isystem{sysconfig.get_path('include')}")
BINDERS = {"nanobind": "include_dir", "pybind11": "get_include"}  # and what tells where their headers are


def binder_of(source: Path) -> str | None:
    """The binder that a case is about, by what it includes."""
    text = source.read_text()
    return next((name for name in BINDERS if f"#include <{name}/" in text), None)


def has(binder: str) -> bool:
    return importlib.util.find_spec(binder) is not None


def flags_for_binders() -> list[str]:
    return [f"-isystem{getattr(importlib.import_module(name), BINDERS[name])()}" for name in BINDERS if has(name)]


@dataclass(frozen=True)
class Compiler:
    """A compiler, and a folder for the headers that it has compiled once for all cases."""

    name: str
    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        # In English, and without what the sanitizer run preloads: compilers leak.
        kept = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
        command = [self.name, *FLAGS, *flags_for_binders(), *map(str, arguments)]
        return subprocess.run(
            command, env=kept | {"LC_ALL": "C"}, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    def precompile(self, source: Path) -> Path:
        """A header of what ``source`` includes of Tenon, with its precompiled form beside it."""
        includes = re.findall(r"^#include <(tenon/\S+)>$", source.read_text(), re.M)
        header = self.folder / ("_".join(includes).replace("/", "_"))
        if not header.exists():
            header.write_text("".join(f"#include <{name}>\n" for name in includes))
            quick = ["-fpch-instantiate-templates"] if self.name == "clang++" else []
            done = self.run("-x", "c++-header", *quick, header, "-o", f"{header}.gch")
            assert done.returncode == 0, done.stderr
        return header

    def check(self, source: Path, *flags: str) -> subprocess.CompletedProcess[str]:
        return self.run("-fsyntax-only", "-include", self.precompile(source), *flags, source)


def first_error(output: str) -> str:
    """The first error with its notes and the lines it quotes, up to the second."""
    errors = [match.start() for match in re.finditer(r"^\S+: (?:fatal )?error: ", output, re.M)]
    return output[errors[0] : errors[1] if len(errors) > 1 else None] if errors else ""


def demands(source: Path, compiler: str) -> list[str]:
    """What the compiler must say of this file."""
    stated = re.findall(r"^// must say(?: \((\S+)\))?: (.+)$", source.read_text(), re.M)
    return [text for only, text in stated if only in ("", compiler)]


def problems(compiler: Compiler, source: Path) -> list[str]:
    """What is wrong with the case: nothing, if it is refused for the stated reason alone."""
    wanted = demands(source, compiler.name)
    if not wanted:
        return [f"{source.name} does not state what {compiler.name} must say"]
    compiler.precompile(source)
    with ThreadPoolExecutor(2) as pool:
        misuse, control = pool.map(lambda flags: compiler.check(source, *flags), [(), ("-DCORRECT",)])
    found = []
    if control.returncode != 0:
        found.append(f"the corrected use does not compile:\n{control.stderr}")
    if misuse.returncode == 0:
        found.append("the misuse compiles")
    said = first_error(misuse.stderr)
    for text in wanted:
        if misuse.returncode != 0 and text not in said:
            found.append(f"the first error does not say {text!r}:\n{misuse.stderr}")
    return found


@pytest.fixture(scope="module", params=["g++", pytest.param("clang++", marks=pytest.mark.slow)])
def compiler(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return Compiler(request.param, tmp_path_factory.mktemp("precompiled"))


# pybind11's headers take the longest, and say what nanobind's do.
@pytest.mark.parametrize(
    "source",
    [pytest.param(case, marks=pytest.mark.slow) if binder_of(case) == "pybind11" else case for case in CASES],
    ids=lambda source: source.stem,
)
def test_misuse_is_refused(compiler: Compiler, source: Path) -> None:
    binder = binder_of(source)
    if binder is not None and not has(binder):
        pytest.skip(f"{binder} is not installed")
    found = problems(compiler, source)
    assert not found, "\n".join(found)


# --- the test is tested: each kind of fault in a case is seen ----------------------------------------------------

REFUSED = 'static_assert(false, "use the other one");\n'
PLANTED = {
    "good": (f"// must say: the other one\n#ifndef CORRECT\n{REFUSED}#endif\n", None),
    "misuse_compiles": ("// must say: the other one\n", "the misuse compiles"),
    "control_fails": (f"// must say: the other one\n{REFUSED}", "the corrected use does not compile"),
    "other_reason": (
        f"// must say: the other one\n#ifndef CORRECT\nint x = y;\n{REFUSED}#endif\n",
        "the first error does not say 'the other one'",
    ),
    "one_of_two_reasons": (
        f"// must say: the other one\n// must say: at once\n#ifndef CORRECT\n{REFUSED}#endif\n",
        "the first error does not say 'at once'",
    ),
    "nothing_stated": ("int x;\n", "does not state"),
    "for_another_compiler": ("// must say (cl): the other one\nint x;\n", "does not state"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_seen(compiler: Compiler, tmp_path: Path, name: str) -> None:
    text, fault = PLANTED[name]
    source = tmp_path / f"{name}.cpp"
    source.write_text("#include <tenon/version.hpp>\n" + text)
    found = problems(compiler, source)
    assert [] == found if fault is None else len(found) == 1 and fault in found[0], found
