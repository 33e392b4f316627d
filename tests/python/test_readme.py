# tests/python/test_readme.py: the examples of README.md run and compile as they stand there.
import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert found, f"README.md has no {language} example"
    return found


def test_python_example_does_what_its_comments_say(capsys):
    pytest.importorskip("numpy")
    (source,) = blocks("python")
    names = {}
    exec(source, names)
    printed = capsys.readouterr().out.strip()
    assert f"print(t)                             # {printed}\n" in source
    assert names["a"][0, 1] == 42


def both_binders(source):
    """What the comments of the example say it can be instead, for the other binder."""
    if "nanobind" not in source:
        return [source]
    other = re.sub(r"#include \S+ +// or (\S+)", r"#include \1", source)
    other = re.sub(r"NB_MODULE\(.*\) \{ +// or (.*)", r"\1 {", other)
    return [source, other.replace("nanobind::", "pybind11::")]


def include_of(binder):
    module = pytest.importorskip(binder)
    return ["-isystem", module.get_include() if binder == "pybind11" else module.include_dir()]


@pytest.mark.parametrize("source", [each for block in blocks("cpp") for each in both_binders(block)])
def test_cpp_example_compiles(source, tmp_path):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH")
    file = tmp_path / "example.cpp"
    file.write_text(source)
    include = [f"-I{ROOT / 'include'}", f"-I{sysconfig.get_paths()['include']}"]
    for binder in ("nanobind", "pybind11"):
        if f"<{binder}/" in source:
            include += include_of(binder)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *include, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
