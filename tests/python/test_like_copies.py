# tests/python/test_like_copies.py: a library whose arrays hand out copies gets, from empty_like and bound functions, arrays with what was written.
from __future__ import annotations

import sys
import types

import pytest
from isolation import isolated
from real_support import has

pytestmark = pytest.mark.skipif(not has("numpy"), reason="numpy is not installed")
N = 1 << 20  # memory of a size that goes back to the system as soon as it is freed


def library(flagged: bool):
    """Its arrays lend memory that nothing keeps but the capsule, and say so or do not."""
    import numpy as np

    class Array:
        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **keywords):
            keywords.pop("copy", None)
            return self.values.__dlpack__(copy=True, **keywords) if flagged else self.values.copy().__dlpack__(**keywords)

        def __dlpack_device__(self):
            return (1, 0)

        def __array_namespace__(self, api_version=None):
            return lib

    Array.__module__ = "copylib"
    lib = sys.modules["copylib"] = types.ModuleType("copylib")
    lib.empty = lambda shape, dtype=None: Array(np.empty(shape, dtype or "float32"))
    lib.from_dlpack = lambda x: Array(np.from_dlpack(x))
    return Array, np


def used(binder: str, flagged: bool) -> None:
    import importlib

    Array, np = library(flagged)
    if binder == "exports":
        made = importlib.import_module("tenon_exports").empty_like(Array(np.zeros(3, "f4")), (N,), "float32")
        assert type(made) is Array and made.values.shape == (N,) and made.values.sum() is not None
        return
    bound = importlib.import_module(f"bound_{binder}")
    for _ in range(3):
        made = bound.scale(Array(np.ones(N, "f4")), 3.0)
        assert type(made) is Array and (made.values == 3).all(), "what was written is in it"


@isolated
def test_empty_like():
    used("exports", False)
    used("exports", True)


@isolated
def test_bound_capi():
    used("capi", False)
    used("capi", True)


@pytest.mark.skipif(not has("nanobind"), reason="nanobind is not installed")
@isolated
def test_bound_nanobind():
    used("nanobind", False)
    used("nanobind", True)


@pytest.mark.skipif(not has("pybind11"), reason="pybind11 is not installed")
@isolated
def test_bound_pybind11():
    used("pybind11", False)
    used("pybind11", True)


@isolated
def test_what_is_remembered_of_a_library_is_nobodys_to_find():
    """Functions of a library are kept where the collector shows them to nobody, who could take them away."""
    import gc

    import tenon_exports

    Array, np = library(False)
    assert type(tenon_exports.there_and_back(np.ones(3), Array(np.ones(3)))) is Array
    namespace = vars(sys.modules["copylib"])
    assert [found for found in gc.get_referrers(namespace["from_dlpack"]) if found is not namespace] == []
