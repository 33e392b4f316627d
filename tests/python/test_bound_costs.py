# tests/python/test_bound_costs.py: what a bound function costs besides its work: for an array that is borrowed, nothing; and nothing is ever kept.
from __future__ import annotations

import ctypes
import importlib
import os
import sys

import pytest
import tenon_exports
from growth import ALLOWED_BLOCKS, ROUNDS, grows
from isolation import SANITIZED, run_isolated

COUNT = """
import collections, ctypes, gc, itertools, sys
import bound_capi
from producers import Producer

kind = sys.argv[1]
if kind == "torch":
    import torch
    objects = [(bound_capi.threes, torch.ones(5, 3)), (bound_capi.maybe, torch.ones(2))]
elif kind == "numpy":
    import numpy
    objects = [(bound_capi.threes, numpy.ones((5, 3), "f4")), (bound_capi.threes, numpy.ones((3, 5), "f4").T),
               (bound_capi.maybe, numpy.ones(2, "f4")), (bound_capi.either, numpy.ones(2, "f8"))]
else:
    objects = [(bound_capi.threes, Producer(shape=(2, 3)))]

allocations = ctypes.CDLL(None).tenon_test_allocations
allocations.restype = ctypes.c_long

def counted(function, obj, times):
    before = allocations()
    collections.deque(map(function, itertools.repeat(obj, times)), 0)
    return allocations() - before

gc.disable()
for function, obj in objects:
    counted(function, obj, 100)  # the type is seen, every cache is warm
    # Besides the calls there are the iterators: the same for any number of calls.
    extra = counted(function, obj, 1100) - counted(function, obj, 100)
    events = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    collections.deque(map(function, itertools.repeat(obj, 100)), 0)
    sys.setprofile(None)
    calls = events.count("call")
    print(kind, function.__name__, extra, calls)
    if kind == "control":
        assert extra >= 1000 and calls >= 100, "the counters see nothing: they prove nothing"
    else:
        assert extra == 0, f"{extra} allocations in 1000 calls of {function.__name__}"
        assert calls == 0, f"{calls} calls of Python"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD")
@pytest.mark.skipif(SANITIZED, reason="the sanitizer counts allocations itself")
@pytest.mark.parametrize("kind", ["numpy", "torch", "control"])
def test_a_borrowed_array_costs_no_allocation_and_no_call(kind):
    if kind != "control":
        pytest.importorskip(kind)
    alloc_counter = pytest.importorskip("alloc_counter")
    if not alloc_counter.supported:
        pytest.skip("needs glibc")
    preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), alloc_counter.__file__]))
    run_isolated(COUNT, env={"LD_PRELOAD": preloaded, "PYTHONMALLOC": "malloc"}, args=(kind,))


# --- leaks -----------------------------------------------------------------------------------------------------------

COUNTER = tenon_exports.Counter()


class Plain:
    """A producer that has `__dlpack__` alone. (The fakes keep what they have handed out.)"""

    def __init__(self, **fields):
        self.behind = tenon_exports.produce(COUNTER, **fields)

    def __dlpack_device__(self):
        return self.behind.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.behind.__dlpack__(**keywords)


MATRIX = Plain(shape=(2, 3))
VECTOR = Plain(shape=(6,), dtype="float64")


def refused(call):
    """A call that must be refused, as a step of a loop."""

    def step():
        try:
            call()
        except (TypeError, ValueError, BufferError, LookupError):
            return
        raise AssertionError("not refused")

    return step


def ways(bound) -> dict:
    found = {
        "borrowed": lambda: bound.total_2d(MATRIX),
        "capsule": lambda: bound.total_2d(tenon_exports.versioned(COUNTER)),
        "capsule, refused": refused(lambda: bound.total(tenon_exports.versioned(COUNTER))),
        "capsule in a list, refused": refused(lambda: bound.total_of([tenon_exports.versioned(COUNTER)])),
        "keyword": lambda: bound.total_2d(x=MATRIX),
        "optional": lambda: bound.maybe(None),
        "kept": lambda: bound.keep(MATRIX),
        "list": lambda: bound.total_of([VECTOR, VECTOR]),
        "dict": lambda: bound.totals({"a": VECTOR}),
        "own": lambda: bound.numbers(3, 3),
        "own, refused": refused(lambda: bound.numbers(3, 4)),
        "refused": refused(lambda: bound.total(MATRIX)),
        "refused in a list": refused(lambda: bound.total_of([VECTOR, MATRIX])),
        "no array": refused(lambda: bound.total("text")),
        "missing": refused(lambda: bound.total()),
        "thrown": refused(lambda: bound.fail(VECTOR, "python_error")),
    }
    try:
        import numpy
    except ImportError:
        return found
    x, y = numpy.ones(3, "f4"), numpy.ones(3)
    found |= {
        "numpy": lambda: bound.total(y),
        "numpy, a result": lambda: bound.scale(x),
        "numpy, results": lambda: (bound.pair_of(x), bound.both(x), bound.named(x)),
        "numpy, the same": lambda: bound.same(x),
        "numpy, converted": lambda: bound.first_converted(y),
        "numpy, in a tuple": lambda: bound.mixed((x, y)),
        "numpy, refused": refused(lambda: bound.total(x)),
    }
    if hasattr(bound, "by_dtype"):
        i = numpy.ones(3, "i4")
        model = bound.Model(VECTOR)
        found |= {
            "overloads": lambda: bound.by_dtype(y),
            "overloads, refused": refused(lambda: bound.by_dtype(i)),
            "method": lambda: model.width(x),
            "shared": lambda: model.weights(),
            "constructor": lambda: bound.Model(VECTOR),
        }
    return found


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc's mallinfo2")
@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps freed memory back, and looks for leaks itself")
@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_nothing_grows(binder):
    if binder != "capi":
        pytest.importorskip(binder)
    rounds = ROUNDS // 40
    for way, step in ways(importlib.import_module(f"bound_{binder}")).items():
        owed = COUNTER.exports - COUNTER.releases
        blocks, grown = grows(step, rounds, warm_up=200)
        # One that leaks leaks in every round; the allowance is for what goes on beside it.
        assert abs(blocks) <= ALLOWED_BLOCKS, f"{way}: {blocks} Python blocks in {rounds} rounds"
        assert grown <= 16 << 10, f"{way}: {grown} bytes in {rounds} rounds"
        assert COUNTER.exports - COUNTER.releases == owed, way
