# tests/python/bound_hazards.py: the modules of native/bound_hazards.hpp by turns, for the tests of what goes on around a bound function's arguments.
from __future__ import annotations

import importlib
import importlib.util

import pytest

MODULES = ("capi", "pybind11", "nanobind")


def installed():
    """All of them that can be built here."""
    return [importlib.import_module(f"bound_hazards_{name}") for name in MODULES
            if name == "capi" or importlib.util.find_spec(name)]  # fmt: skip


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
