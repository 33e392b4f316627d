# tests/tools/test_test_gpu.py: tools/test_gpu.py says so where there is no device, and builds nothing; where there is one it leaves no test out.
from __future__ import annotations

import ctypes
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "test_gpu.py"


def files_that_say(words):
    return {p.name for p in (TOOL.parents[1] / "tests" / "python").glob("test_*.py") if words in p.read_text()}


@pytest.mark.parametrize("arguments", [[], ["--sanitizers"], ["--sanitizers", "memcheck"]], ids=str)
def test_without_a_device_it_says_so_and_succeeds(tmp_path, arguments):
    there = tmp_path / "build"
    said = subprocess.run([sys.executable, TOOL, "--build", there, *arguments], capture_output=True, text=True,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert said.returncode == 0 and "no CUDA device here" in said.stdout, said
    assert not there.exists()


@pytest.mark.parametrize(("starting", "counting", "devices"), [(0, 0, 3), (100, 0, 0), (0, 100, 0)])
def test_devices_are_those_of_a_driver_that_works(monkeypatch, starting, counting, devices):
    def count(out):
        out._obj.value = 3
        return counting

    driver = SimpleNamespace(cuInit=lambda flags: starting, cuDeviceGetCount=count)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    assert runpy.run_path(str(TOOL))["device_count"]() == devices


def test_every_file_it_runs_is_there():
    names = runpy.run_path(str(TOOL))
    for name in names["ON_DEVICE"] + names["BY_STAND_IN"]:
        assert (TOOL.parents[1] / "tests" / "python" / name).is_file(), name


def test_every_file_of_gpu_tests_is_run():
    assert files_that_say("mark.gpu") == set(runpy.run_path(str(TOOL))["ON_DEVICE"])


def test_every_file_with_a_stand_in_driver_is_run():
    using = files_that_say("from fake_cuda import")
    assert using and using <= set(runpy.run_path(str(TOOL))["BY_STAND_IN"])
