# tests/tools/test_make.py: what the Makefile asks pytest for: every test is run by some target, and a crash ends the run.
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = float(os.environ.get("TENON_TEST_TIMEOUT", "900"))  # against what hangs

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def pytest_commands(*arguments):
    """The commands by which a target would run pytest."""
    # Without what a make that runs these tests hands down.
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["make", "-n", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=LIMIT
    )
    return re.findall(r"-m pytest (.*)", done.stdout.replace("\\\n", " "))


def marked(target):
    return [re.findall(r'-m "([^"]*)"', command) for command in pytest_commands(target)]


def test_what_one_target_leaves_out_another_runs():
    assert marked("test") == [["not slow"]]
    assert marked("test-rest") == [["slow"]]
    assert marked("test-all") == [["not slow"], ["slow"]]
    assert marked("test-python") == [[]]


CRASHES = """
import os, pytest

@pytest.mark.parametrize("n", range(5))
def test_some(n):
    if n == 2:
        os.abort()
"""


def test_a_crash_ends_the_run_and_is_named(tmp_path):
    (command,) = pytest_commands("test-python")
    options = re.search(r"-n \d+ .*?(?= +--junitxml)", command).group().split()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_crashes.py").write_text(CRASHES)
    for name in "abcdef":
        (tmp_path / f"test_{name}.py").write_text("def test_well():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "crashed while running 'test_crashes.py::test_some[2]'" in done.stdout
    assert "worker restarting disabled" in done.stdout, "it went on with a new worker, as if nothing had been"
