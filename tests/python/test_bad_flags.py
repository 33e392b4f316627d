# tests/python/test_bad_flags.py: flags that cannot work are told in one sentence, not in thousands of lines.
from __future__ import annotations

import shutil
import sysconfig

import pytest
from building import ROOT, attempt

CXX17 = "Tenon needs C++20: compile with -std=c++20 (or later)"
NO_EXCEPTIONS = "Tenon needs C++ exceptions: compile without -fno-exceptions"

# What people include or compile, and the package whose headers it needs.
ENTRIES = {
    "<tenon/tenon.hpp>": None,
    "<tenon/py.hpp>": None,
    "<tenon/bind/function.hpp>": None,
    "<tenon/bind/pybind11.hpp>": "pybind11",
    "<tenon/bind/nanobind.hpp>": "nanobind",
    f'"{ROOT}/src/core.cpp"': None,
    f'"{ROOT}/src/python.cpp"': None,
    f'"{ROOT}/src/tenon.cpp"': None,
}


def compiled(compiler, entry, folder, *flags):
    """What comes of a file that includes this and nothing else."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    theirs = [sysconfig.get_path("include")]
    if package := ENTRIES[entry]:
        module = pytest.importorskip(package)
        theirs.append(module.get_include() if package == "pybind11" else module.include_dir())
    source = folder / "user.cpp"
    source.write_text(f"#include {entry}\n")
    include = [f"-I{ROOT / 'include'}", *(f"-isystem{path}" for path in theirs)]
    return attempt(compiler, "-fsyntax-only", *flags, *include, source, LC_ALL="C")


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("flags", "said"),
    [(["-std=c++17"], CXX17), (["-std=c++20", "-fno-exceptions"], NO_EXCEPTIONS)],
    ids=["C++17", "no exceptions"],
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_one_sentence(compiler, entry, flags, said, tmp_path):
    done = compiled(compiler, entry, tmp_path, *flags)
    assert done.returncode != 0
    errors = [line for line in done.stdout.splitlines() if "error: " in line]
    assert said in errors[0]
    assert len(errors) <= 2, done.stdout
    assert len(done.stdout.splitlines()) <= 15, done.stdout


@pytest.mark.parametrize("entry", ["<tenon/py.hpp>", f'"{ROOT}/src/tenon.cpp"'])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_type_information_is_not_needed(compiler, entry, tmp_path):
    done = compiled(compiler, entry, tmp_path, "-std=c++20", "-fno-rtti")
    assert done.returncode == 0, done.stdout
