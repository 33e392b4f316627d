"""tests/tools/test_check_layers.py: plants bad includes in a small tree and sees tools/check_layers fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layers"

GOOD = {
    "include/tenon/version.hpp": [],
    "include/tenon/tenon.hpp": ["tenon/core/dtype.hpp"],
    "include/tenon/py.hpp": ["tenon/tenon.hpp", "tenon/py/import.hpp", "tenon/py/export.hpp"],
    "include/tenon/abi/dlpack.hpp": [],
    "include/tenon/core/error.hpp": [],
    "include/tenon/core/dtype.hpp": ["tenon/abi/dlpack.hpp", "tenon/core/error.hpp", "tenon/version.hpp"],
    "include/tenon/py/python.hpp": ["Python.h"],
    "include/tenon/py/ref.hpp": ["tenon/py/python.hpp"],
    "include/tenon/py/import/dlpack.hpp": ["tenon/py/ref.hpp", "tenon/core/dtype.hpp"],
    "include/tenon/py/import/numpy.hpp": ["tenon/py/ref.hpp"],
    "include/tenon/py/export/capsule.hpp": ["tenon/py/ref.hpp"],
    "include/tenon/py/import.hpp": ["tenon/py/import/dlpack.hpp", "tenon/py/import/numpy.hpp"],
    "include/tenon/py/export.hpp": ["tenon/py/export/capsule.hpp"],
    "include/tenon/bind/request.hpp": ["tenon/py.hpp"],
    "include/tenon/bind/pybind11.hpp": ["tenon/bind/request.hpp"],
    "python/src/module.hpp": ["tenon/py.hpp"],
    "python/src/module.cpp": ["module.hpp", "structmember.h"],
}


def run(root, includes):
    for name, targets in includes.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{target}"\n' for target in targets))
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)


def test_good_tree_passes(tmp_path):
    done = run(tmp_path, GOOD)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("include/tenon/abi/dlpack.hpp", "tenon/core/error.hpp", "upward"),
        ("include/tenon/core/error.hpp", "tenon/py/ref.hpp", "upward"),
        ("include/tenon/core/error.hpp", "../py/ref.hpp", "upward"),
        ("include/tenon/core/error.hpp", "tenon/tenon.hpp", "upward"),
        ("include/tenon/tenon.hpp", "tenon/py/ref.hpp", "upward"),
        ("include/tenon/py/ref.hpp", "tenon/py/import/dlpack.hpp", "upward"),
        ("include/tenon/py/import/numpy.hpp", "tenon/py/import.hpp", "upward"),
        ("include/tenon/py/import.hpp", "tenon/bind/request.hpp", "upward"),
        ("include/tenon/version.hpp", "tenon/abi/dlpack.hpp", "upward"),
        ("include/tenon/py/import/numpy.hpp", "tenon/py/import/dlpack.hpp", "sideways"),
        ("include/tenon/py/import/numpy.hpp", "dlpack.hpp", "sideways"),
        ("include/tenon/py/import/numpy.hpp", "tenon/py/export/capsule.hpp", "sideways"),
        ("include/tenon/py/import.hpp", "tenon/py/export.hpp", "sideways"),
        ("include/tenon/bind/request.hpp", "python/src/module.hpp", "sideways"),
        ("include/tenon/core/error.hpp", "tenon/core/dtype.hpp", "cycle"),
        ("include/tenon/py/ref.hpp", "Python.h", "only tenon/py/python.hpp"),
        ("include/tenon/core/error.hpp", "Python.h", "only tenon/py/python.hpp"),
        ("include/tenon/core/error.hpp", "structmember.h", "no Python here"),
        ("python/src/module.cpp", "Python.h", "only tenon/py/python.hpp"),
        ("include/tenon/core/error.hpp", "tenon/core/gone.hpp", "does not exist"),
    ],
)
def test_planted_include_fails(tmp_path, name, target, said):
    done = run(tmp_path, {**GOOD, name: [*GOOD[name], target]})
    assert done.returncode == 1
    assert said in done.stderr


def test_file_without_a_layer_fails(tmp_path):
    done = run(tmp_path, {**GOOD, "include/tenon/misc/x.hpp": []})
    assert done.returncode == 1
    assert "no layer rule" in done.stderr


def test_empty_tree_fails(tmp_path):
    assert run(tmp_path, {}).returncode == 1
