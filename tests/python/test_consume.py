# tests/python/test_consume.py: tests/consume builds by every way a project can have Tenon, with each compiler.
from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from building import ROOT, WARNINGS, assert_clean, attempt, configure, copy_of, install_to, need_installed_package, run
from quick import rest_is_slow

import tenon

BINDERS = [name for name in ("pybind11", "nanobind") if importlib.util.find_spec(name)]
# A project that uses tenon::core alone must not even look for these.
NOT_LOOKED_FOR = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Python", "pybind11", "nanobind")]
NO_PYBIND11 = NOT_LOOKED_FOR[1]


@pytest.fixture(scope="module", params=rest_is_slow(["g++", "clang++"], "g++"))
def compiler(request):
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_of(ROOT / "tests" / "consume", tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    return install_to(folder / "prefix", folder / "build")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """What a download holds, less what users of the headers do not need."""
    made = tmp_path_factory.mktemp("archive") / "tenon.tar"
    with tarfile.open(made, "w") as tar:
        for name in ("CMakeLists.txt", "cmake", "include"):
            tar.add(ROOT / name, f"tenon/{name}")
    return made


def built_by(compiler: str, project: Path, build: Path, *options: object) -> str:
    """Configures and builds; all that the compiler was told and said."""
    configure(
        project,
        build,
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_CXX_FLAGS={WARNINGS} -O0",
        "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON",  # or there would be no warnings from headers
        *options,
    )
    output = run("cmake", "--build", build, "--verbose")
    assert_clean(output, *project.glob("*.cpp"))
    return output


def assert_works(program: Path, compiler: str) -> None:
    assert run(program) == f"tenon {tenon.__version__} by {compiler}: 6\n"


# --- each way, by the program ---------------------------------------------------------------------------------------


def test_find_package_needs_no_python_for_the_core(compiler, project, prefix, tmp_path):
    output = built_by(compiler, project, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", *NOT_LOOKED_FOR)
    assert f"{prefix}/include" in output and str(ROOT / "include") not in output
    assert_works(tmp_path / "consume_core", compiler)


def test_add_subdirectory(compiler, project, tmp_path):
    built_by(compiler, project, tmp_path, "-DCONSUME_BY=add_subdirectory", f"-DCONSUME_TENON={ROOT}", *NOT_LOOKED_FOR)
    assert_works(tmp_path / "consume_core", compiler)


def test_fetch_content(compiler, project, archive, tmp_path):
    options = ["-DCONSUME_BY=FetchContent", f"-DCONSUME_TENON={archive}", *NOT_LOOKED_FOR]
    output = built_by(compiler, project, tmp_path, *options)
    assert f"{tmp_path}/_deps/tenon-src/include" in output and str(ROOT / "include") not in output
    assert_works(tmp_path / "consume_core", compiler)


def test_the_wheel(compiler, project, tmp_path):
    package = need_installed_package()
    folder = run(sys.executable, "-m", "tenon", "--cmake-dir").strip()
    output = built_by(compiler, project, tmp_path, f"-Dtenon_DIR={folder}", *NOT_LOOKED_FOR)
    assert f"{package}/include" in output and str(ROOT / "include") not in output
    assert_works(tmp_path / "consume_core", compiler)


@pytest.mark.parametrize("installed", ["prefix", "wheel"])
def test_pkg_config(installed, compiler, project, prefix, tmp_path):
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    if installed == "wheel":
        need_installed_package()
        folder = run(sys.executable, "-m", "tenon", "--pkgconfig-dir").strip()
    else:
        folder = prefix / "share" / "pkgconfig"
    assert run("pkg-config", "--modversion", "tenon", PKG_CONFIG_PATH=folder).strip() == tenon.__version__
    flags = run("pkg-config", "--cflags", "--libs", "tenon", PKG_CONFIG_PATH=folder).split()
    assert [flag[:2] for flag in flags] == ["-I"]  # and nothing else
    run(compiler, "-std=c++20", "-O0", *flags, project / "core.cpp", "-o", tmp_path / "core")
    assert_works(tmp_path / "core", compiler)


# --- the modules ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules(compiler, project, prefix, tmp_path_factory):
    """The folder with a module for each target."""
    build = tmp_path_factory.mktemp("modules")
    built_by(
        compiler,
        project,
        build,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCONSUME_COMPONENTS={';'.join(['python', *BINDERS])}",
        "-DCMAKE_UNITY_BUILD=ON",  # the sources of nanobind at once
        "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
    )
    return build


@pytest.mark.parametrize("binder", ["python", "pybind11", "nanobind"])
def test_modules(binder, modules):
    if binder not in ("python", *BINDERS):
        pytest.skip(f"{binder} is not installed")
    code = f"import array, consume_{binder} as m; print(m.sum(array.array('f', [1, 2, 3.5])))"
    assert run(sys.executable, "-c", code, PYTHONPATH=modules) == "6.5\n"


@pytest.mark.parametrize("way", ["add_subdirectory", "FetchContent"])
def test_a_checkout_has_the_targets_of_the_binders_too(way, project, archive, tmp_path):
    """The flags are what a target gives; that they suffice is seen above."""
    if len(BINDERS) < 2:
        pytest.skip("pybind11 and nanobind are not both installed")
    configure(
        project,
        tmp_path,
        f"-DCONSUME_BY={way}",
        f"-DCONSUME_TENON={ROOT if way == 'add_subdirectory' else archive}",
        "-DCONSUME_COMPONENTS=python;pybind11;nanobind",
        f"-Dpybind11_DIR={run(sys.executable, '-m', 'pybind11', '--cmakedir').strip()}",
        f"-Dnanobind_DIR={run(sys.executable, '-m', 'nanobind', '--cmake_dir').strip()}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    )
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    flags = {Path(command["file"]).stem: command["command"] for command in commands}
    for target in ("python", "pybind11", "nanobind"):
        assert f"{ROOT if way == 'add_subdirectory' else tmp_path / '_deps/tenon-src'}/include" in flags[target]
        assert sysconfig.get_paths()["include"] in flags[target]
    for binder in BINDERS:
        assert f"/{binder}/include" in flags[binder]


def test_a_component_whose_binder_is_missing_says_what_to_do(project, prefix, tmp_path):
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCONSUME_COMPONENTS=pybind11", NO_PYBIND11]
    done = attempt("cmake", "-S", project, "-B", tmp_path, "-G", "Ninja", *options)
    assert done.returncode != 0
    assert "pip install pybind11" in " ".join(done.stdout.split())


def test_an_optional_component_may_be_missing(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.23...4.0)\n"
        "project(optional LANGUAGES CXX)\n"
        "find_package(tenon CONFIG REQUIRED OPTIONAL_COMPONENTS pybind11)\n"
        'message(STATUS "pybind11: ${tenon_pybind11_FOUND}")\n'
    )
    said = configure(tmp_path, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", NO_PYBIND11)
    assert "-- pybind11: FALSE" in said
