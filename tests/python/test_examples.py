# tests/python/test_examples.py: each folder of examples/ builds outside this tree, by the commands of its README.md.
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from building import ROOT, WARNINGS, assert_clean, configure, copy_of, install_to, pip_install, python_path, run

import tenon

EXAMPLES = ROOT / "examples"
BINDERS = [name for name in ("pybind11", "nanobind") if importlib.util.find_spec(name)]


def is_installed(library):
    return importlib.util.find_spec(library) is not None


# --- a class of the user's own ------------------------------------------------------------------------------------

OWN_CLASS = sorted((EXAMPLES / "own_class").glob("*.cpp"))


@pytest.mark.parametrize("file", OWN_CLASS, ids=lambda file: file.stem)
def test_own_class_takes_less_than_thirty_lines(file):
    lines = [line for line in file.read_text().splitlines() if line.strip()]
    assert len(lines) < 30
    assert max(map(len, lines)) <= 110


@pytest.fixture(scope="module")
def own_class(tmp_path_factory):
    """The modules, built with Tenon as `cmake --install` leaves it."""
    if not BINDERS:
        pytest.skip("neither pybind11 nor nanobind is installed")
    folder = tmp_path_factory.mktemp("own_class")
    prefix = install_to(folder / "prefix", folder / "tenon")
    configure(
        copy_of(EXAMPLES / "own_class", folder),
        folder / "build",
        f"-Dtenon_ROOT={prefix}",
        f"-DCMAKE_CXX_FLAGS={WARNINGS}",
        "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON",  # or there would be no warnings from headers
        # In half the time: the sources of nanobind at once, and without the optimization pybind11 asks for.
        "-DCMAKE_UNITY_BUILD=ON",
        "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
        "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF",
    )
    output = run("cmake", "--build", folder / "build", "--verbose")
    assert f"{prefix / 'include'}" in output
    return folder, output


@pytest.mark.slow
def test_own_class_compiles_without_warnings(own_class):
    folder, output = own_class
    assert_clean(output, *(folder / "own_class" / file.name for file in OWN_CLASS))


@pytest.mark.slow
def test_own_class_is_read_by_every_library(own_class):
    folder, _ = own_class
    said = run(sys.executable, folder / "own_class" / "run.py", folder / "build")
    for binder in BINDERS:
        assert f"Image, bound by {binder}:\n" in said
    for library, name in (("numpy", "NumPy"), ("torch", "PyTorch"), ("jax", "JAX")):
        assert said.count(f"    {name} ") == is_installed(library) * len(BINDERS)
    assert "leaked" not in said  # nanobind's word


@pytest.mark.skipif(not BINDERS, reason="neither pybind11 nor nanobind is installed")
def test_own_class_finds_the_checkout_it_lies_in(tmp_path):
    configure(EXAMPLES / "own_class", tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_tenon=ON")
    assert f"-isystem {ROOT / 'include'}" in (tmp_path / "build.ninja").read_text()


# --- Cython -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cython(tmp_path_factory):
    """The module, built and installed by pip with what is here."""
    pytest.importorskip("Cython")
    if not (Path(tenon.__file__).parent / "include" / "tenon" / "src" / "tenon.cpp").is_file():
        pytest.skip("this tenon is not installed: it has no C++ files")
    folder = tmp_path_factory.mktemp("cython")
    flags = f"{WARNINGS} -O0"
    output = pip_install(copy_of(EXAMPLES / "cython", folder), folder / "site", CFLAGS=flags, CXXFLAGS=flags)
    return folder, output


@pytest.mark.slow
def test_cython_compiles_without_warnings(cython):
    _, output = cython
    assert output.count("/tenon/src/tenon.cpp -o ") == 1
    assert_clean(output, "matrices.cpp", "matrices.pyx", "tenon_cpp.pxd")
    assert not re.search(r"^\s*warning: \S+\.(pyx|pxd):", output, re.M), output  # Cython's own


@pytest.mark.slow
def test_cython_takes_and_gives_arrays(cython):
    folder, _ = cython
    said = run(sys.executable, folder / "cython" / "run.py", PYTHONPATH=python_path(folder / "site"))
    for library in ("numpy", "torch", "jax"):
        assert (f"\n    {library}" in said) == is_installed(library)
