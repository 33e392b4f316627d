# tests/python/test_building_page.py: what docs/guides/building.md tells people to write does what it says.
from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest
from building import ROOT, configure, need_installed_package, python_path, run

PROGRAM = "\n".join((ROOT / "tests" / "consume" / name).read_text() for name in ("core.cpp", "total.cpp"))
MODULE = """\
#include <tenon/py.hpp>

static PyObject* again(PyObject*, PyObject* array) {
    auto t = tenon::py::from_python(array);
    return t ? tenon::py::to_python(std::move(*t)) : nullptr;
}

static PyMethodDef methods[] = {{"again", again, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "demo", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_demo() { return PyModuleDef_Init(&definition); }
"""


def shown(language: str, word: str) -> str:
    """The one example in a language that has a word in it."""
    page = (ROOT / "docs" / "guides" / "building.md").read_text()
    (found,) = (block for block in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S) if word in block)
    return found


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project beside a checkout, in the folder that the commands of the page are for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tenon").symlink_to(ROOT)
    made = tmp_path / "project"
    (made / "third_party").mkdir(parents=True)
    (made / "third_party" / "tenon").symlink_to(ROOT)
    (made / "program.cpp").write_text(PROGRAM)
    return made


def write(project: Path, commands: str) -> None:
    start = "cmake_minimum_required(VERSION 3.23...4.0)\nproject(page LANGUAGES CXX)\n"
    (project / "CMakeLists.txt").write_text(f"{start}add_executable(program program.cpp)\n{commands}")


def test_the_package_is_used_as_in_the_template():
    template = ROOT / "examples" / "template_pybind11"
    assert shown("toml", "requires") in (template / "pyproject.toml").read_text()
    assert shown("cmake", "--cmake-dir") in (template / "CMakeLists.txt").read_text()


def test_prefix(project):
    write(project, shown("cmake", "find_package(tenon CONFIG REQUIRED)"))
    run("bash", "-euc", shown("sh", "--prefix"))
    assert run("build/project/program").endswith(": 6\n")


@pytest.mark.parametrize("way", ["add_subdirectory", "FetchContent"])
def test_checkout(way, project, tmp_path):
    write(project, shown("cmake", way))
    configure(project, tmp_path / "build", f"-DFETCHCONTENT_SOURCE_DIR_TENON={ROOT}")
    place = ROOT if way == "FetchContent" else project / "third_party" / "tenon"
    assert f"-isystem {place}/include" in (tmp_path / "build" / "build.ninja").read_text()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder to build in with what pip installed."""
    need_installed_package()
    if not shutil.which("c++"):
        pytest.skip("c++ is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.cpp").write_text(PROGRAM)
    (tmp_path / "demo.cpp").write_text(MODULE)
    return tmp_path


def test_pkg_config(installed):
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    run("bash", "-euc", shown("sh", "pkg-config"))
    assert run("./program").endswith(": 6\n")


def test_header_only(installed):
    run("bash", "-euc", shown("sh", "-DTENON_HEADER_ONLY"))
    assert run("./program").endswith(": 6\n")


def assert_module_works(folder):
    code = "import demo, tenon; t = demo.again(b'123'); print(bytes(t), type(t) is tenon.Tensor)"
    assert run(sys.executable, "-c", code, PYTHONPATH=python_path(folder), LD_BIND_NOW=1) == "b'123' True\n"


def test_one_file(installed):
    run("bash", "-euc", shown("sh", "-shared"))
    assert_module_works(installed)


def test_meson(installed):
    if importlib.util.find_spec("mesonbuild") is None:
        pytest.skip("meson is not installed")
    (installed / "meson.build").write_text(shown("meson", "extension_module"))
    native = installed / "native.ini"
    native.write_text(f"[binaries]\npython = '{sys.executable}'\n")
    run(sys.executable, "-m", "mesonbuild.mesonmain", "setup", "build", "--native-file", native)
    run("ninja", "-C", "build")
    assert_module_works(installed / "build")


def test_setuptools_is_used_as_in_the_example():
    assert shown("python", "Extension") in (ROOT / "examples" / "cython" / "setup.py").read_text()
