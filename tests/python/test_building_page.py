# tests/python/test_building_page.py: what docs/guides/building.md tells people to write does what it says.
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from building import ROOT, configure, need_installed_package, run

PROGRAM = ROOT / "tests" / "consume" / "core.cpp"


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
    shutil.copy(PROGRAM, made / "program.cpp")
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
    assert f"-I{place}/include" in (tmp_path / "build" / "build.ninja").read_text()


def test_pkg_config(tmp_path, monkeypatch):
    need_installed_package()
    for tool in ("pkg-config", "c++"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    monkeypatch.chdir(tmp_path)
    shutil.copy(PROGRAM, "program.cpp")
    run("bash", "-euc", shown("sh", "pkg-config"))
    assert run("./program").endswith(": 6\n")
