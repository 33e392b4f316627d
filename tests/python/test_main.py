# tests/python/test_main.py: the command line of the package.
from __future__ import annotations

import pytest

import tenon
from tenon.__main__ import main


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
