# tests/python/test_import.py: importing tenon is quick: no array library comes with it, and little of the standard library.
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tenon

LIBRARIES = {"numpy", "torch", "jax", "tensorflow", "paddle", "pyarrow", "cupy", "numba", "tvm_ffi", "ml_dtypes", "pandas", "polars"}
HEAVY = {"dataclasses", "html", "inspect", "json", "mmap", "pickle", "ctypes", "unittest", "argparse"}


def imported(code: str) -> set[str]:
    """What a program imports, in an interpreter that has nothing but tenon on its path."""
    env = {**os.environ, "PYTHONPATH": str(Path(tenon.__file__).parents[1])}
    code = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=env)
    return set(done.stdout.split())


def test_nothing_large_comes_with_it():
    assert imported("import tenon") & (LIBRARIES | HEAVY) == set()


def test_what_is_needed_comes_when_it_is_needed():
    assert {"mmap", "json"} <= imported("import tenon._files.safetensors")
    assert imported("import tenon; tenon.asdlpack(b'abc').tolist(); tenon.explain(b'abc', 'torch')") & LIBRARIES == set()
    assert "pickle" in imported("import tenon, copyreg; tenon.asdlpack(b'abc').__reduce_ex__(5)")


def test_what_comes_later_is_there_all_the_same():
    assert {"explain", "inspect", "open", "SafetensorsFile"} <= set(dir(tenon))
    assert all(hasattr(tenon, name) for name in tenon.__all__)
    assert not hasattr(tenon, "no_such_name")
