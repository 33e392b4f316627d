# tests/python/bound_results.py: the modules of native/bound_results.hpp by turns, for the tests of results, `out` and owners.
from __future__ import annotations

import importlib

import pytest

MODULES = ("capi", "pybind11", "nanobind")


@pytest.fixture(scope="module", params=MODULES)
def results(request):
    """Each of the modules, by turns."""
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_results_{request.param}")


@pytest.fixture(scope="module", params=MODULES[1:])
def of_binder(request):
    """Those of the binders."""
    pytest.importorskip(request.param)
    return importlib.import_module(f"bound_results_{request.param}")
