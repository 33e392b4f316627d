# tests/tools/test_test_gpu.py: tools/test_gpu.py says so where there is no device, and believes no checker that says nothing.
from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "test_gpu.py"


@pytest.mark.parametrize("arguments", [[], ["--sanitizers"], ["--sanitizers", "memcheck"]], ids=str)
def test_without_a_device_it_says_so_and_succeeds(tmp_path, arguments):
    there = tmp_path / "build"
    said = subprocess.run([sys.executable, TOOL, "--build", there, *arguments], capture_output=True, text=True,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert said.returncode == 0 and "no CUDA device here" in said.stdout, said
    assert not there.exists()


def test_every_file_it_runs_is_there():
    names = runpy.run_path(str(TOOL))
    for name in names["ON_DEVICE"] + names["BY_STAND_IN"]:
        assert (TOOL.parents[1] / "tests" / "python" / name).is_file(), name


def test_every_file_of_gpu_tests_is_run():
    names = runpy.run_path(str(TOOL))
    marked = {p.name for p in (TOOL.parents[1] / "tests" / "python").glob("test_*.py") if "mark.gpu" in p.read_text()}
    assert marked == set(names["ON_DEVICE"])


@pytest.mark.parametrize(
    "said, status, good",
    [
        ("========= ERROR SUMMARY: 0 errors", 0, True),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", 0, True),
        ("", 0, False),  # the checker did not run
        ("========= ERROR SUMMARY: 0 errors", 1, False),  # a test failed
        ("========= ERROR SUMMARY: 10 errors", 0, False),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)", 0, False),
    ],
)
def test_a_checker_must_have_said_that_it_found_nothing(tmp_path, monkeypatch, capfd, said, status, good):
    stand_in = tmp_path / "compute-sanitizer"
    stand_in.write_text(f"#!/bin/sh\necho '5 passed in 1 s'\necho '{said}'\necho \"$@\"\nexit {status}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    check = runpy.run_path(str(TOOL))["check"]
    assert check("memcheck", "some tests", ["the", "tests"], tmp_path, dict(os.environ)) == good
    assert (tmp_path / "memcheck.some tests.log").read_text().rstrip().endswith("the tests")
    shown = capfd.readouterr().out
    assert "memcheck, some tests: 5 passed in 1 s" in shown
    assert ("exit status" in shown) == (not good)
