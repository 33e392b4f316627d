"""tests/tools/test_check_foreign_code.py: plants calls of CPython's in a small tree and sees tools/check_foreign_code fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_foreign_code"

FINE = {
    "inside": "auto f() { return foreign_code([&] { return PyObject_Str(obj); }); }",
    "inside, over lines": "auto f() {\n  return foreign_code(\n    [&] {\n      g();\n      return PyNumber_Index(obj); });\n}",
    "a comment": "// PyObject_GetAttr( would run anything",
    "said why": "// no foreign code: the keys are ours\nPyDict_GetItemString(dict, name);",
    "no such function": "PyTuple_GET_ITEM(t, 0); PyNumber_Check(x); PyDict_New(); PyErr_Clear();",
}
WRONG = {
    "an attribute": "PyObject_GetAttrString(obj, name);",
    "a lookup": "PyDict_GetItemWithError(dict, key);",
    "a conversion": "PyFloat_AsDouble(obj);",
    "behind it": "foreign_code([&] { f(); }); PyObject_IsTrue(obj);",
    "a word too far away": "// no foreign code: not this\n\n\nPyObject_Hash(obj);",
}


def run(folder: Path, text: str, other: str = "include/tenon/py/other.hpp") -> subprocess.CompletedProcess:
    for name, written in {
        "src/py/runtime/call.hpp": "inline auto attr() { return PyObject_GetAttr(obj, name); }",
        other: text,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(written + "\n")
    return subprocess.run([sys.executable, TOOL, folder], text=True, capture_output=True)


@pytest.mark.parametrize("name", FINE)
def test_fine(tmp_path, name):
    done = run(tmp_path, FINE[name])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", WRONG)
def test_wrong(tmp_path, name):
    done = run(tmp_path, WRONG[name])
    assert done.returncode == 1
    assert "include/tenon/py/other.hpp:" in done.stdout and "take it from src/py/runtime/call.hpp" in done.stdout


@pytest.mark.parametrize("file", ["src/py/import/x.hpp", "src/py/export/x.cpp", "python/src/x.cpp"])
def test_every_folder_is_looked_at(tmp_path, file):
    done = run(tmp_path, WRONG["an attribute"], file)
    assert done.returncode == 1 and f"{file}:1: " in done.stdout


def test_an_empty_tree_is_no_success(tmp_path):
    assert subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True).returncode == 1


def test_this_tree():
    done = subprocess.run([sys.executable, TOOL], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout
