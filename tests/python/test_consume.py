# tests/python/test_consume.py: tests/consume builds by every way a project can have Tenon, with each compiler.
from __future__ import annotations

import importlib.util
import json
import re
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
# Nothing is missing that is not called either: functions are looked up when a module is loaded, not at their first call.
ALL_THERE = {"LD_BIND_NOW": 1}


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
    """What a download holds, less what users of the library do not need."""
    made = tmp_path_factory.mktemp("archive") / "tenon.tar"
    with tarfile.open(made, "w") as tar:
        for name in ("CMakeLists.txt", "cmake", "include", "src"):
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


def times_compiled(source: str, output: str) -> int:
    """How often a file of the engine was compiled, by what a verbose build said."""
    return len(re.findall(rf" -c \S*src/{re.escape(source)}(?= |$)", output, re.M))


def assert_works(program: Path, compiler: str) -> None:
    assert run(program) == f"tenon {tenon.__version__} by {compiler}: 6\n"


# --- each way, by the program ---------------------------------------------------------------------------------------


def test_find_package_needs_no_python_for_the_core(compiler, project, prefix, tmp_path):
    output = built_by(compiler, project, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", *NOT_LOOKED_FOR)
    assert f"{prefix}/include" in output and str(ROOT / "include") not in output
    assert times_compiled("core.cpp", output) == 1 and times_compiled("python.cpp", output) == 0
    assert_works(tmp_path / "consume_core", compiler)


def test_add_subdirectory(compiler, project, tmp_path):
    options = ["-DCONSUME_BY=add_subdirectory", f"-DCONSUME_TENON={ROOT}", *NOT_LOOKED_FOR]
    output = built_by(compiler, project, tmp_path, *options)
    assert times_compiled("core.cpp", output) == 1 and times_compiled("python.cpp", output) == 0
    assert_works(tmp_path / "consume_core", compiler)


def test_fetch_content(compiler, project, archive, tmp_path):
    options = ["-DCONSUME_BY=FetchContent", f"-DCONSUME_TENON={archive}", *NOT_LOOKED_FOR]
    output = built_by(compiler, project, tmp_path, *options)
    assert f"{tmp_path}/_deps/tenon-src/include" in output and str(ROOT / "include") not in output
    assert times_compiled("core.cpp", output) == 1
    assert_works(tmp_path / "consume_core", compiler)


def test_header_only(compiler, project, prefix, tmp_path):
    """The two files of the program have the engine each, and the linker makes one of them."""
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DTENON_HEADER_ONLY=ON", *NOT_LOOKED_FOR]
    output = built_by(compiler, project, tmp_path, *options)
    assert times_compiled("core.cpp", output) == 0
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
    engine, whole = (
        run("pkg-config", f"--variable={name}", "tenon", PKG_CONFIG_PATH=folder).strip()
        for name in ("core_source", "source")
    )
    assert Path(whole) == Path(engine).with_name("tenon.cpp") and Path(whole).is_file()
    command = [compiler, "-std=c++20", "-O0", *WARNINGS.split(), *flags, project / "core.cpp", project / "total.cpp"]
    output = run(*command, engine, "-o", tmp_path / "core")
    assert "warning" not in output
    assert_works(tmp_path / "core", compiler)


def test_bare_header_only(compiler, project, prefix, tmp_path):
    flags = ["-std=c++20", "-O0", *WARNINGS.split(), f"-I{prefix}/include", "-DTENON_HEADER_ONLY"]
    output = run(compiler, *flags, project / "core.cpp", project / "total.cpp", "-o", tmp_path / "core")
    assert "warning" not in output
    assert_works(tmp_path / "core", compiler)


# --- projects of other kinds ----------------------------------------------------------------------------------------

STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wundef -Wswitch-enum -Werror"
FIND = "find_package(tenon CONFIG REQUIRED{})\n"


@pytest.mark.parametrize("mode", rest_is_slow(["one file", "in the headers"], "one file"))
def test_the_engine_is_clean_by_the_flags_of_a_strict_project(mode, compiler, prefix, tmp_path):
    """It is compiled by the user's own flags, and optimized code is warned of for more."""
    source = ROOT / "src" / "tenon.cpp"
    if mode == "in the headers":
        source = tmp_path / "module.cpp"
        source.write_text("#define TENON_HEADER_ONLY\n#include <tenon/bind/function.hpp>\n")
    flags = [f"-I{prefix}/include", "-isystem", sysconfig.get_path("include"), "-fPIC"]
    assert run(compiler, "-std=c++20", "-O2", *STRICT.split(), *flags, "-c", source, "-o", tmp_path / "engine.o") == ""


@pytest.fixture
def configured(tmp_path, prefix):
    """Configures a project of these files, and says where it was and what CMake said."""

    def write_and_configure(*options, **folders):
        for folder, text in folders.items():
            place = tmp_path if folder == "top" else tmp_path / folder
            place.mkdir(exist_ok=True)
            start = "cmake_minimum_required(VERSION 3.23...4.0)\nproject(some LANGUAGES CXX)\n" if folder == "top" else ""
            (place / "CMakeLists.txt").write_text(start + text)
        for name in ("core.cpp", "total.cpp", "again.cpp", "again_module.cpp"):
            shutil.copy(ROOT / "tests" / "consume" / name, tmp_path)
        build = tmp_path / "build"
        return build, configure(tmp_path, build, f"-DCMAKE_PREFIX_PATH={prefix}", *options)

    return write_and_configure


PROGRAM = "add_executable(program core.cpp total.cpp)\ntarget_link_libraries(program PRIVATE tenon::core)\n"


@pytest.mark.parametrize("way", ["find_package", "add_subdirectory"])
def test_a_strict_project_gets_no_warnings(way, project, prefix, tmp_path):
    """Neither from the headers nor from the engine, which is compiled with its flags."""
    options = [f"-DCONSUME_BY={way}", f"-DCONSUME_TENON={ROOT}", f"-DCMAKE_PREFIX_PATH={prefix}", *NOT_LOOKED_FOR]
    configure(project, tmp_path, f"-DCMAKE_CXX_FLAGS={STRICT} -O0", "-DCMAKE_CXX_STANDARD=23", *options)
    output = run("cmake", "--build", tmp_path, "--verbose")
    assert "-Wold-style-cast" in output and "warning" not in output
    assert len(re.findall(r"-std=\S*2[3b] .*-c ", output)) == 3, output
    assert run(tmp_path / "consume_core").endswith(": 6\n")


@pytest.mark.slow
def test_unity_and_whole_program_optimization(project, prefix, tmp_path):
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_UNITY_BUILD=ON", *NOT_LOOKED_FOR]
    configure(project, tmp_path, *options, "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON", "-DCMAKE_BUILD_TYPE=Release")
    output = run("cmake", "--build", tmp_path, "--verbose")
    assert "-flto" in output and times_compiled("core.cpp", output) == 1
    assert run(tmp_path / "consume_core").endswith(": 6\n")


@pytest.mark.slow
def test_several_configurations_at_once(project, prefix, tmp_path):
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-O0", *NOT_LOOKED_FOR]
    run("cmake", "-S", project, "-B", tmp_path, "-G", "Ninja Multi-Config", *options)
    for kind in ("Debug", "Release"):
        run("cmake", "--build", tmp_path, "--config", kind)
        assert run(tmp_path / kind / "consume_core").endswith(": 6\n")


def test_two_folders_find_it_and_share_the_engine(configured):
    """The second is the first to ask for Python, which the targets then find though they were made by the other."""
    module = "add_library(again MODULE ../again.cpp ../again_module.cpp)\ntarget_link_libraries(again PRIVATE tenon::python)\n"
    build, _ = configured(
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        top="add_subdirectory(one)\nadd_subdirectory(two)\n",
        one=FIND.format("") + PROGRAM.replace("core.cpp total.cpp", "../core.cpp ../total.cpp"),
        two=FIND.format(" COMPONENTS python") + module,
    )
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = [Path(command["file"]).name for command in commands]
    assert compiled.count("python.cpp") == 1 and compiled.count("core.cpp") == 2  # the program's is one of them
    (engine,) = (command["command"] for command in commands if command["file"].endswith("src/python.cpp"))
    assert sysconfig.get_paths()["include"] in engine


@pytest.mark.parametrize("first", ["find_package", "add_subdirectory"])
def test_had_twice_it_is_there_once(first, configured, tmp_path):
    add = f'add_subdirectory("{ROOT}" tenon)\n'
    text = FIND.format("") + add if first == "find_package" else add + FIND.format("")
    build, said = configured(top=text + PROGRAM)
    assert ("the project has it already" in said) == (first == "find_package")
    assert len(re.findall(r"^build .*libtenon_core_engine\.a: CXX_STATIC", (build / "build.ninja").read_text(), re.M)) == 1


def test_a_library_that_uses_it_is_exported(configured):
    build, _ = configured(
        f"-DCMAKE_INSTALL_PREFIX={ROOT / 'nowhere'}",
        top=FIND.format("")
        + "add_library(totals STATIC total.cpp)\ntarget_link_libraries(totals PUBLIC tenon::core)\n"
        + "install(TARGETS totals EXPORT totals)\ninstall(EXPORT totals DESTINATION lib)\n",
    )
    (exported,) = build.glob("CMakeFiles/Export/*/totals.cmake")
    assert 'INTERFACE_LINK_LIBRARIES "tenon::core"' in exported.read_text()


def test_a_project_without_cpp_is_told(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.23...4.0)\nproject(plain LANGUAGES C)\n" + FIND.format("")
    )
    done = attempt("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode != 0
    assert "project(... LANGUAGES CXX)" in " ".join(done.stdout.split())


# --- the modules ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules(compiler, project, prefix, tmp_path_factory):
    """The folder with a module for each target."""
    build = tmp_path_factory.mktemp("modules")
    output = built_by(
        compiler,
        project,
        build,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCONSUME_COMPONENTS={';'.join(['again', 'python', *BINDERS])}",
        "-DCMAKE_UNITY_BUILD=ON",  # the sources of nanobind at once
        "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
    )
    assert times_compiled("core.cpp", output) == 1 and times_compiled("python.cpp", output) == 1, "once for all of them"
    return build


@pytest.mark.parametrize("binder", ["python", "pybind11", "nanobind"])
def test_modules(binder, modules):
    if binder not in ("python", *BINDERS):
        pytest.skip(f"{binder} is not installed")
    code = f"import array, consume_{binder} as m; print(m.sum(array.array('f', [1, 2, 3.5])))"
    assert run(sys.executable, "-c", code, **ALL_THERE, PYTHONPATH=modules) == "6.5\n"


def test_modules_of_one_project_live_side_by_side(modules):
    """Each has an engine of its own, which none of them shows."""
    names = ["consume_again", *(f"consume_{name}" for name in ("python", *BINDERS))]
    code = (
        f"import array, {', '.join(names)}\n"
        "x = array.array('f', [1, 2, 3.5])\n"
        "t = consume_again.again(x)\n"
        f"print([m.sum(t) for m in ({', '.join(names[1:])},)])\n"
    )
    assert run(sys.executable, "-c", code, **ALL_THERE, PYTHONPATH=modules) == f"{[6.5] * (len(names) - 1)}\n"


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="binutils are not installed")
def test_a_module_shows_nothing_of_the_engine(modules):
    """Neither what it has of the standard library's templates, which no setting of visibility hides: of its clocks, say."""
    (module,) = modules.glob("consume_python*.so")
    shown = run("nm", "--dynamic", "--defined-only", "--format=just-symbols", str(module)).split()
    assert "PyInit_consume_python" in shown
    assert [name for name in shown if "chrono" in name] == []


@pytest.mark.parametrize("mode", rest_is_slow(["compiled once", "in the headers"], "compiled once"))
def test_a_module_of_two_files(mode, compiler, project, prefix, tmp_path):
    names = ["python"] if mode == "compiled once" else ["python", *BINDERS]  # which have been seen with the engine apart
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCONSUME_COMPONENTS=again;{';'.join(names)}"]
    if mode == "in the headers":
        options.append("-DTENON_HEADER_ONLY=ON")
    output = built_by(compiler, project, tmp_path, *options)
    assert times_compiled("python.cpp", output) == (mode == "compiled once")
    for name in names:
        code = f"import array, consume_again as a, consume_{name} as m; print(m.sum(a.again(array.array('f', [1, 2, 3.5]))))"
        assert run(sys.executable, "-c", code, **ALL_THERE, PYTHONPATH=tmp_path) == "6.5\n"


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
