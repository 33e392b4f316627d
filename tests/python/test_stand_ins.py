# tests/python/test_stand_ins.py: what only goes by a library's name, as stubs and mocks do, makes no arrays over our memory.
"""Each runs in a process of its own: it puts something in a module's place."""
from __future__ import annotations

import pytest
from isolation import run_isolated
from real_support import need

BFLOAT16 = """
import sys, types
import numpy as np, tenon

memory = bytearray(b"AB" * 4)
t = tenon.from_pointer(tenon.asdlpack(memory).data_ptr, (4,), "bfloat16", owner=memory)


def refused(make):
    try:
        found = make()
    except (BufferError, TypeError, ValueError) as error:
        return str(error)
    raise AssertionError(f"taken as {found.dtype}: {found.nbytes} bytes over {len(memory)}")


"""
# What `numpy.dtype` makes of each: Python objects, a wider type, one as wide, structures, another of ml_dtypes' own.
STUBS = {
    "class": "type('bfloat16', (), {})", "wider": "np.complex128", "as wide": "np.float16", "structure": "np.void",
    "another": "__import__('ml_dtypes').float8_e5m2",
}  # fmt: skip


@pytest.mark.parametrize("stub", STUBS)
def test_a_module_in_the_place_of_ml_dtypes(stub):
    need("numpy")
    if stub == "another":
        need("ml_dtypes")
    run_isolated(BFLOAT16 + f"""
stub = types.ModuleType("ml_dtypes")
stub.bfloat16 = {STUBS[stub]}
sys.modules["ml_dtypes"] = stub
for make in (t.numpy, lambda: t.to("numpy"), lambda: np.asarray(t), lambda: np.array(t)):
    assert "ml_dtypes" in refused(make), refused(make)
""")


@pytest.mark.parametrize("made", ["None", "'bfloat16'", "type", "np.float32", "object()"])
def test_a_function_in_the_place_of_numpy_dtype(made):
    need("numpy")
    need("ml_dtypes")
    run_isolated(BFLOAT16 + f"""
import ml_dtypes
import bound_capi, bound_nanobind, bound_pybind11

a = np.zeros(3, ml_dtypes.bfloat16)
assert t.numpy().dtype == ml_dtypes.bfloat16
for bound in (bound_capi, bound_nanobind, bound_pybind11):
    assert bound.zeros_like(a).dtype == ml_dtypes.bfloat16
np.dtype = lambda *arguments, **keywords: {made}
assert "no such type" in refused(t.numpy)
for bound in (bound_capi, bound_nanobind, bound_pybind11):
    assert "no such type" in refused(lambda: bound.zeros_like(a))
""")
