"""tests/tools/test_check_layers.py: plants bad includes in a small tree and sees tools/check_layers fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layers"

GOOD = {
    "include/tenon/version.hpp": [],
    "include/tenon/abi/dlpack.hpp": [],
    "include/tenon/detail/config.hpp": [],
    "include/tenon/detail/core_engine.hpp": ["../src/core.cpp", "../../../src/core.cpp"],
    "include/tenon/detail/python_engine.hpp": ["../src/python.cpp", "../../../src/python.cpp"],
    "include/tenon/value/error.hpp": ["tenon/detail/config.hpp"],
    "include/tenon/value/dtype.hpp": ["tenon/abi/dlpack.hpp", "tenon/value/error.hpp", "tenon/version.hpp"],
    "include/tenon/tensor/tensor.hpp": ["tenon/value/dtype.hpp"],
    "include/tenon/memory/copy.hpp": ["tenon/tensor/tensor.hpp"],
    "include/tenon/gpu/stream.hpp": ["tenon/tensor/tensor.hpp"],
    "include/tenon/tenon.hpp": ["tenon/gpu/stream.hpp", "tenon/memory/copy.hpp", "tenon/detail/core_engine.hpp"],
    "include/tenon/py/python.hpp": ["Python.h"],
    "include/tenon/py/ref.hpp": ["tenon/py/python.hpp"],
    "include/tenon/py/import.hpp": ["tenon/py/ref.hpp", "tenon/tensor/tensor.hpp"],
    "include/tenon/py/export.hpp": ["tenon/py/ref.hpp"],
    "include/tenon/py.hpp": [
        "tenon/tenon.hpp",
        "tenon/py/import.hpp",
        "tenon/py/export.hpp",
        "tenon/detail/python_engine.hpp",
    ],
    "include/tenon/bind/array.hpp": ["tenon/py/import.hpp"],
    "include/tenon/bind/pybind11.hpp": ["tenon/bind/array.hpp", "tenon/detail/python_engine.hpp"],
    "src/value/error.cpp": ["tenon/value/error.hpp"],
    "src/tensor/managed.hpp": ["tenon/tensor/tensor.hpp"],
    "src/memory/plan.hpp": ["../tensor/managed.hpp"],
    "src/gpu/driver.hpp": ["../memory/plan.hpp"],
    "src/arrow/layout.hpp": ["tenon/tensor/tensor.hpp"],
    "src/py/runtime/call.hpp": ["tenon/py/ref.hpp", "../../gpu/driver.hpp"],
    "src/py/library/library_of.hpp": ["../runtime/call.hpp"],
    "src/py/import/dlpack.hpp": ["../library/library_of.hpp", "tenon/py/import.hpp"],
    "src/py/import/numpy.hpp": ["dlpack.hpp"],
    "src/py/export/capsule.cpp": ["tenon/py/export.hpp", "../import/dlpack.hpp"],
    "src/bind/array.cpp": ["tenon/bind/array.hpp", "../py/import/dlpack.hpp"],
    "src/core.cpp": ["value/error.cpp"],
    "src/python.cpp": ["py/export/capsule.cpp", "bind/array.cpp", "tenon/py.hpp"],
    "src/tenon.cpp": ["core.cpp", "python.cpp"],
    "python/src/module.hpp": ["tenon/py.hpp"],
    "python/src/module.cpp": ["module.hpp", "structmember.h", "../../src/py/import/dlpack.hpp"],
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
        ("include/tenon/version.hpp", "tenon/abi/dlpack.hpp", "upward"),
        ("include/tenon/abi/dlpack.hpp", "tenon/value/error.hpp", "upward"),
        ("include/tenon/detail/config.hpp", "tenon/value/error.hpp", "upward"),
        ("include/tenon/value/error.hpp", "tenon/tensor/tensor.hpp", "upward"),
        ("include/tenon/value/error.hpp", "../py/ref.hpp", "upward"),
        ("include/tenon/value/error.hpp", "tenon/tenon.hpp", "upward"),
        ("include/tenon/tenon.hpp", "tenon/py/ref.hpp", "upward"),
        ("include/tenon/py/ref.hpp", "tenon/py/import.hpp", "upward"),
        ("include/tenon/py/import.hpp", "tenon/py/export.hpp", "upward"),
        ("include/tenon/py/import.hpp", "tenon/bind/array.hpp", "upward"),
        ("include/tenon/py/import.hpp", "tenon/py.hpp", "upward"),
        ("src/value/error.cpp", "../tensor/managed.hpp", "upward"),
        ("src/tensor/managed.hpp", "../memory/plan.hpp", "upward"),
        ("src/memory/plan.hpp", "../gpu/driver.hpp", "upward"),
        ("src/gpu/driver.hpp", "tenon/py/ref.hpp", "upward"),
        ("src/py/runtime/call.hpp", "../library/library_of.hpp", "upward"),
        ("src/py/library/library_of.hpp", "../import/dlpack.hpp", "upward"),
        ("src/py/import/dlpack.hpp", "tenon/py/export.hpp", "upward"),
        ("src/bind/array.cpp", "../../python/src/module.hpp", "upward"),
        ("src/gpu/driver.hpp", "../arrow/layout.hpp", "sideways"),
        ("src/arrow/layout.hpp", "tenon/gpu/stream.hpp", "sideways"),
        ("include/tenon/value/error.hpp", "tenon/value/dtype.hpp", "cycle"),
        ("src/py/import/dlpack.hpp", "numpy.hpp", "cycle"),
        ("include/tenon/tensor/tensor.hpp", "../../../src/tensor/managed.hpp", "no public header"),
        ("include/tenon/tensor/tensor.hpp", "tenon/detail/core_engine.hpp", "the whole engine"),
        ("src/bind/array.cpp", "../python.cpp", "the whole engine"),
        ("src/bind/array.cpp", "../py/export/capsule.cpp", "is a source"),
        ("include/tenon/py/ref.hpp", "Python.h", "only tenon/py/python.hpp"),
        ("src/value/error.cpp", "Python.h", "only tenon/py/python.hpp"),
        ("src/arrow/layout.hpp", "structmember.h", "no Python here"),
        ("python/src/module.cpp", "Python.h", "only tenon/py/python.hpp"),
        ("include/tenon/value/error.hpp", "tenon/value/gone.hpp", "does not exist"),
        ("src/py/import/dlpack.hpp", "../runtime/gone.hpp", "does not exist"),
    ],
)
def test_planted_include_fails(tmp_path, name, target, said):
    done = run(tmp_path, {**GOOD, name: [*GOOD[name], target]})
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize("name", ["include/tenon/misc/x.hpp", "include/tenon/py/new.hpp", "src/py/other/x.cpp", "src/x.hpp"])
def test_file_without_a_layer_fails(tmp_path, name):
    done = run(tmp_path, {**GOOD, name: []})
    assert done.returncode == 1
    assert "no layer rule" in done.stderr


def test_empty_tree_fails(tmp_path):
    assert run(tmp_path, {}).returncode == 1
