# tests/tools/test_test_gpu.py: tools/test_gpu.py says so where there is no device, and builds nothing.
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
