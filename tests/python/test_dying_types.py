# tests/python/test_dying_types.py: a class that loses its last object, and is collected, while it is looked at.
"""A lookup in a class runs the `__eq__` of a key that hashes alike, which may give the object another class and collect
the old one. Memory that is freed is filled with a pattern (PYTHONMALLOC=debug): whoever goes on reading it trips."""
from __future__ import annotations

import pytest
from isolation import SANITIZED, run_isolated

PROGRAM = """
import gc
import sys

import tenon, tenon_exports, tenon_probe
import bound_capi, bound_nanobind, bound_pybind11

NAMES = ("__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__",
         "__cuda_array_interface__", "__array_interface__", "__array_typestr__", "__arrow_c_array__",
         "__arrow_c_device_array__", "__arrow_c_stream__", "__module__", "__array_namespace__", "from_dlpack",
         "__name__", "is_conj", "is_neg", "requires_grad", "untyped_storage")
kind = sys.argv[1]
armed = []
acted = 0


class Key(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        global acted
        if armed and str.__eq__(self, other):
            acted += 1
            armed[0].__class__ = Other
            gc.collect()
        return False


if kind == "plain":
    roots = ()
elif kind == "numpy":
    import numpy
    roots = (numpy.ndarray,)
elif kind == "producer":
    from producers import Producer
    roots = (Producer,)
else:
    from producers import exchange_class
    roots = (exchange_class(),)


def fresh():
    # An object of a class that only it holds.
    global Other
    keys = {Key(n): None for n in NAMES}
    # The keys of a base are met when the bases are walked one by one: nothing but us holds the class itself then.
    base = type("Base", roots, keys)
    Other = type("Other", (base,), {})
    dying = type("Dying" * 50, (base,), keys)
    return numpy.zeros(4, "float32").view(dying) if kind == "numpy" else dying()


ACTS = {
    "asdlpack": tenon.asdlpack,
    "asdlpack_copy": lambda obj: tenon.asdlpack(obj, copy=True),
    "borrow": lambda obj: tenon_probe.borrow(obj, read=False),
    "borrow_writable": lambda obj: tenon_probe.borrow(obj, writable=True, read=False),
    "like": lambda obj: tenon_exports.like(tenon_exports.Counter(), obj, shape=(2, 3)),
    "there_and_back": tenon_exports.there_and_back,
    "empty_like": lambda obj: tenon_exports.empty_like(obj, (2, 3), "float32"),
    "twin": tenon_exports.twin,
    "inspect": lambda obj: str(tenon.inspect(obj)),
    "explain": lambda obj: str(tenon.explain(obj, "numpy")),
    "repr": lambda obj: repr(tenon.from_pointer(64, (0,), "uint8", owner=obj)),
    "capi": bound_capi.total,
    "nanobind": bound_nanobind.total,
    "pybind11": bound_pybind11.total,
}

gc.freeze()  # what is there by now need not be looked through each time
for name, act in ACTS.items():
    print(name, flush=True)  # the last one printed is the one that crashed
    acted = 0
    for _ in range(2):
        obj = fresh()
        armed[:] = [obj]
        try:
            act(obj)
        except (TypeError, BufferError, ValueError, MemoryError):
            pass
        armed.clear()
        assert type(obj) is Other
        del obj
        gc.collect()
    assert acted, "no key was met: the test has seen nothing"
"""

DEBUG = {} if SANITIZED else {"PYTHONMALLOC": "debug"}


@pytest.mark.parametrize("kind", ("plain", "numpy", "producer", "exchange_table"))
def test_F88_class_that_dies_while_it_is_looked_at(kind):
    run_isolated(PROGRAM, args=(kind,), env=DEBUG)
