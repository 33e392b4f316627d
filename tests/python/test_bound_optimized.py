# tests/python/test_bound_optimized.py: a bound function's own loop is compiled as it would be anywhere else.
from __future__ import annotations

import platform
import re
import shutil
import sysconfig

import pytest
from building import ROOT, run
from quick import rest_is_slow

SOURCES = ROOT / "tests/optimized"
COMPILERS = {"gcc": "g++", "clang": "clang++"}
# What each loop of kernels.hpp becomes when it is compiled for speed; scalar code says mulss, divsd, subss.
PACKED = {"add_scaled": "mulps", "invert": "divpd", "subtract": "subps", "multiply": "mulpd"}


def headers_of(binder: str) -> list[str]:
    if binder == "capi":
        return []
    module = pytest.importorskip(binder)
    return [module.get_include() if binder == "pybind11" else module.include_dir()]


def instructions(object_file) -> set[str]:
    listing = run("objdump", "-d", "--no-show-raw-insn", object_file)
    return set(re.findall(r"^\s*[0-9a-f]+:\s+(\w+)", listing, re.M))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86's instructions")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("binder", rest_is_slow(["capi", "pybind11", "nanobind"], "nanobind"))
@pytest.mark.parametrize("name", rest_is_slow(COMPILERS, "gcc"))
def test_F96_the_loops_of_bound_functions_are_vectorized(tmp_path, binder, name):
    """GCC compiles for size what it takes for never run: it must not think so of what follows the arguments."""
    compiler = shutil.which(COMPILERS[name])
    if compiler is None:
        pytest.skip(f"{COMPILERS[name]} is not installed")
    folders = [ROOT / "include", sysconfig.get_path("include"), *headers_of(binder)]
    made = tmp_path / "optimized.o"
    run(compiler, "-std=c++20", "-O3", "-fPIC", "-fvisibility=hidden", *[f"-I{folder}" for folder in folders],
        "-c", SOURCES / f"{binder}.cpp", "-o", made)
    found = instructions(made)
    assert {loop for loop, packed in PACKED.items() if packed not in found} == set(), "compiled without vectors"


def test_F96_no_header_marks_a_function_cold():
    """Also not where today's compilers make nothing of it: any of them may be inlined ahead of a user's loop."""
    marked = [str(path.relative_to(ROOT)) for path in (ROOT / "include").rglob("*.hpp")
              if re.search(r"\[\[[^]]*\bcold\b|__attribute__\(\(.*\bcold\b", path.read_text())]
    assert marked == []
