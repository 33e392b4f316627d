# tests/python/test_main.py: the command line of the package.
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from building import ROOT, need_installed_package, run

import tenon
from tenon.__main__ import main

FOLDERS = {
    "--include-dir": "tenon/version.hpp",
    "--cmake-dir": "tenon-config.cmake",
    "--pkgconfig-dir": "tenon.pc",
}


def test_without_a_command_it_shows_which_there_are(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: python -m tenon")
    assert "run the package's own tests" in said
    assert "\x1b" not in said


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"tenon {tenon.__version__}\n"


def test_a_command_nobody_knows(capsys):
    with pytest.raises(SystemExit) as end:
        main(["polish"])
    assert end.value.code == 2
    assert "polish" in capsys.readouterr().err


def test_list_names_the_tests_and_runs_none(capsys):
    assert main(["test", "--list", "-k", "python_to_"]) == 0
    names = capsys.readouterr().out.split()
    assert "tenon.tests.test_matrix.Matrix.test_python_to_memoryview" in names
    assert all("python_to_" in name for name in names)


def test_a_word_no_test_has_in_its_name(capsys):
    assert main(["test", "-k", "no_such_test"]) == 2
    assert "--list" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "file"), FOLDERS.items())
def test_folders_of_an_installed_package(option, file, tmp_path, monkeypatch):
    package = need_installed_package()
    monkeypatch.chdir(tmp_path)
    (said,) = run(sys.executable, "-m", "tenon", option).splitlines()
    assert Path(said).is_absolute()
    assert (Path(said) / file).is_file()
    assert Path(said).resolve().is_relative_to(package.resolve())


def test_sources_of_an_installed_package(tmp_path, monkeypatch):
    """One file, which finds what it includes beside itself and by the folder of the headers."""
    package = need_installed_package()
    monkeypatch.chdir(tmp_path)
    (said,) = run(sys.executable, "-m", "tenon", "--sources").splitlines()
    (include,) = run(sys.executable, "-m", "tenon", "--include-dir").splitlines()
    assert Path(said) == Path(include) / "tenon" / "src" / "tenon.cpp"
    assert Path(said).is_absolute() and Path(said).resolve().is_relative_to(package.resolve())
    here = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.[ch]pp")}
    there = {path.relative_to(Path(said).parent).as_posix() for path in Path(said).parent.rglob("*.[ch]pp")}
    assert there == here


@pytest.mark.parametrize("option", [*FOLDERS, "--sources"])
def test_a_package_without_its_folders_says_what_to_do(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tenon, "__path__", [str(tmp_path)])
    assert main([option]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert str(tmp_path) in said.err and "pip install tenon-dlpack" in said.err


def test_the_second_folder_of_an_editable_install(tmp_path, monkeypatch, capsys):
    built = tmp_path / "built" / "share" / "cmake" / "tenon"
    built.mkdir(parents=True)
    (built / "tenon-config.cmake").touch()
    monkeypatch.setattr(tenon, "__path__", [str(tmp_path / "sources"), str(tmp_path / "built")])
    assert main(["--cmake-dir"]) == 0
    assert capsys.readouterr().out == f"{built}\n"


def test_the_source_of_an_editable_install(tmp_path, monkeypatch, capsys):
    built = tmp_path / "built" / "include" / "tenon" / "src" / "tenon.cpp"
    built.parent.mkdir(parents=True)
    built.touch()
    monkeypatch.setattr(tenon, "__path__", [str(tmp_path / "sources"), str(tmp_path / "built")])
    assert main(["--sources"]) == 0
    assert capsys.readouterr().out == f"{built}\n"


def test_one_folder_at_a_time(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--cmake-dir", "--include-dir"])
    assert end.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
