# tests/tools/test_test_gpu.py: tools/test_gpu.py says so where there is no device, leaves no test out where there is one, and sees every failure.
from __future__ import annotations

import ctypes
import importlib.util
import os
import runpy
import shutil
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
    found = subprocess.run([*map(str, names["pytest"](names["GUIDE"])), "--collect-only"], capture_output=True, text=True,
                           cwd=TOOL.parents[1])
    assert "1 test collected" in found.stdout, found


def test_every_file_of_gpu_tests_is_run():
    assert files_that_say("mark.gpu") == set(runpy.run_path(str(TOOL))["ON_DEVICE"])


def test_every_file_with_a_stand_in_driver_is_run():
    using = files_that_say("from fake_cuda import")
    assert using and using <= set(runpy.run_path(str(TOOL))["BY_STAND_IN"])


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


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("test_gpu", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("failing", [None, "ctest", "test_real_cuda.py", "test_producer_cuda.py"])
def test_any_part_that_fails_is_a_failure(tool, monkeypatch, tmp_path, failing):
    ran = []
    monkeypatch.setattr(tool, "device_count", lambda: 1)
    monkeypatch.setattr(tool, "build", lambda folder: {})
    monkeypatch.setattr(tool, "run", lambda *command, **_: ran.append(command) or int(str(failing) in " ".join(map(str, command))))
    monkeypatch.setattr(sys, "argv", ["test_gpu.py", "--build", str(tmp_path), "-k", "some"])
    assert tool.main() == (failing is not None)
    assert [command[-2:] == ("-k", "some") for command in ran] == [False, True, True]


@pytest.mark.parametrize("named", [[], ["racecheck"]])
@pytest.mark.parametrize("failing", [None, "C++", "test_real_cuda.py"])
def test_any_check_that_fails_is_a_failure(tool, monkeypatch, tmp_path, capsys, named, failing):
    ran = set()
    monkeypatch.setattr(tool, "device_count", lambda: 1)
    monkeypatch.setattr(tool, "build", lambda folder: {})
    monkeypatch.setattr(tool, "cuda_tests", lambda folder: folder / "tests")
    monkeypatch.setattr(tool, "example", lambda folder: folder / "example")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(tool, "check", lambda kind, tests, *_: ran.add((kind, tests)) or (kind, tests) != ("racecheck", failing))
    monkeypatch.setattr(sys, "argv", ["test_gpu.py", "--build", str(tmp_path), "--sanitizers", *named])
    assert tool.main() == (failing is not None)
    assert ran == {(kind, tests) for kind in named or tool.TOOLS for tests in ("C++", *tool.ON_DEVICE)}
    assert (f"errors found by: racecheck ({failing})\n" in capsys.readouterr().out) == (failing is not None)
