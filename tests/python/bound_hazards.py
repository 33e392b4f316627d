# tests/python/bound_hazards.py: the modules of native/bound_hazards.hpp by turns, for the tests of what goes on around a bound function's arguments.
from __future__ import annotations

import importlib

import pytest

MODULES = ("capi", "pybind11", "nanobind")


@pytest.fixture(scope="module", params=MODULES)
def hazards(request):
    """Each of the modules, by turns."""
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_hazards_{request.param}")


@pytest.fixture(scope="module", params=MODULES[1:])
def of_binder(request):
    """Those of the binders: overloads, classes, guards."""
    pytest.importorskip(request.param)
    return importlib.import_module(f"bound_hazards_{request.param}")
