# tests/python/test_interrupts.py: Ctrl-C while a library, a class or an exception is asked something ends the call, and is not taken for an answer.
from __future__ import annotations

import pytest
from isolation import run_isolated
from quick import rest_is_slow
from real_support import has

#: A module whose attributes, when they are `armed`, are interrupted; and a library of that kind.
PRELUDE = """
import importlib, sys, types
import tenon

class Module(types.ModuleType):
    armed = ()

    def __getattribute__(self, name):
        if name in types.ModuleType.__getattribute__(self, "armed"):
            raise KeyboardInterrupt(name)
        return types.ModuleType.__getattribute__(self, name)

def arm(module, *names):
    module.__class__ = Module
    module.armed = names

def is_interrupted(function):
    try:
        got = function()
    except KeyboardInterrupt:
        return
    raise SystemExit(f"swallowed, and {got!r} came out")

class Array:
    def __init__(self, values):
        import array
        self.values = array.array("f", values)
    def __dlpack__(self, **keywords):
        return tenon.asdlpack(self.values).__dlpack__(**keywords)
    def __dlpack_device__(self):
        return (1, 0)
Array.__module__ = "somelib"
somelib = sys.modules["somelib"] = types.ModuleType("somelib")
somelib.from_dlpack = lambda x: Array(tenon.asdlpack(x).tolist())
somelib.empty = lambda shape, dtype=None: Array([0.0] * shape[0])
x = Array([1.0, 2.0])
"""

LIBRARY = {
    "its function that makes arrays": 'arm(somelib, "from_dlpack"); is_interrupted(lambda: ex.there_and_back(x, x))',
    "its function that allocates": 'arm(somelib, "empty"); is_interrupted(lambda: ex.empty_like(x, (3,), "float32"))',
    "its word for a type": 'arm(somelib, "float32"); is_interrupted(lambda: ex.empty_like(x, (3,), "float32"))',
    "its import": """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "somelib": raise KeyboardInterrupt
assert type(ex.empty_like(x, (3,), "float32")) is Array
del sys.modules["somelib"]
sys.meta_path.insert(0, Finder())
is_interrupted(lambda: ex.empty_like(x, (3,), "float32"))
""",
}


@pytest.mark.parametrize("code", LIBRARY.values(), ids=LIBRARY)
def test_F92_a_library_that_is_asked(code):
    run_isolated(PRELUDE + "import tenon_exports as ex\n" + code)


@pytest.mark.skipif(not has("numpy"), reason="numpy is not installed")
def test_F92_numpy_at_the_first_look():
    run_isolated(PRELUDE + """
import numpy
a = numpy.ones(3)
arm(numpy, "ndarray")
for _ in range(2):
    is_interrupted(lambda: tenon.asdlpack(a))
numpy.armed = ()
assert tenon.inspect(a).rung == "NumPy struct", "the question was left open"
""")


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
@pytest.mark.parametrize("name", rest_is_slow(["Tensor", "UntypedStorage"], "Tensor"))
def test_F92_torch_at_the_first_look(name):
    run_isolated(PRELUDE + f"""
import torch
a = torch.ones(3)
arm(torch, {name!r})
is_interrupted(lambda: tenon.asdlpack(a))
torch.armed = ()
assert tenon.asdlpack(a).tolist() == [1, 1, 1]
""")


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_F92_the_kind_of_a_warning():
    run_isolated(PRELUDE + """
import torch, tenon_exports as ex
a = torch.ones(3, requires_grad=True)
tenon.asdlpack(a)
arm(tenon, "ReadOnlyWarning")
is_interrupted(lambda: ex.there_and_back(a))
""")


BOUND = """
class Meta(type):
    @property
    def __module__(cls):
        raise KeyboardInterrupt
class Odd(metaclass=Meta):
    pass
class Unspeakable(Exception):
    def __str__(self):
        raise KeyboardInterrupt
class Refuses:
    def __dlpack__(self, **keywords):
        raise Unspeakable
    def __dlpack_device__(self):
        return (1, 0)
for argument in (Odd(), Refuses()):
    for _ in range(2):
        is_interrupted(lambda: bound.total(argument))
        is_interrupted(lambda: bound.total_of([argument]))
import array
assert bound.total(array.array("d", [1.0, 2.0])) == 3.0
"""


@pytest.mark.parametrize("binder", ["capi", "nanobind", "pybind11"])
def test_F92_what_a_refusal_is_worded_with(binder):
    if binder != "capi" and not has(binder):
        pytest.skip(f"{binder} is not installed")
    run_isolated(PRELUDE + f'bound = importlib.import_module("bound_{binder}")\n' + BOUND)
