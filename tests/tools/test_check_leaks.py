"""tests/tools/test_check_leaks.py: gives tools/check_leaks.py sanitizer logs that must fail, and one that must not."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_leaks.py"

HEAD = "==7==ERROR: LeakSanitizer: detected memory leaks\n\n"
CANARY = "Direct leak of 4242 byte(s) in 1 object(s) allocated from:\n    #1 0x7f in tenon_leak_canary_block a.c:8\n\n"
FOREIGN = "Direct leak of 48 byte(s) in 1 object(s) allocated from:\n    #1 0x7f in _PyObject_New Objects/object.c:176\n\n"
OURS = "Indirect leak of 9 byte(s) in 1 object(s) allocated from:\n    #0 0x7f in malloc\n    #1 0x7f in {}\n\n"


def run(root, *logs):
    folder = root / "logs"
    folder.mkdir()
    for number, text in enumerate(logs):
        (folder / f"log.{number}").write_text(text)
    command = [sys.executable, TOOL, "--ours", root / "site", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_leaks_of_others_pass(tmp_path):
    done = run(tmp_path, HEAD + FOREIGN, HEAD + CANARY + FOREIGN)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("frame", ["tenon::py::to_capsule() capsule.hpp:9", "f ({root}/site/tenon/_core.so+0x12)"])
def test_leak_of_ours_fails(tmp_path, frame):
    frame = frame.replace("{root}", str(tmp_path))
    done = run(tmp_path, HEAD + CANARY, HEAD + FOREIGN + OURS.format(frame))
    assert done.returncode == 1
    assert "a leak of ours" in done.stderr


@pytest.mark.parametrize("logs", [[], [HEAD + FOREIGN]])
def test_no_canary_fails(tmp_path, logs):
    done = run(tmp_path, *logs)
    assert done.returncode == 1
    assert "not looked for" in done.stderr


@pytest.mark.parametrize(
    "report",
    [
        "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60\n",
        "x.cpp:11:74: runtime error: signed integer overflow\n",
        "==7==LeakSanitizer has encountered a fatal error.\n",
    ],
)
def test_other_reports_fail(tmp_path, report):
    done = run(tmp_path, HEAD + CANARY, report)
    assert done.returncode == 1
    assert report.strip() in done.stderr
