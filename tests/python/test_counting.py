# tests/python/test_counting.py: a borrowed import of a PyTorch tensor or a NumPy array allocates nothing and calls no Python.
from __future__ import annotations

import os
import sys

import pytest
from isolation import SANITIZED, run_isolated

COUNT = """
import gc, sys
import alloc_counter, fakes, tenon_probe
from producers import Producer, exchange_class

kind = sys.argv[1]
if kind == "torch":
    import torch
    objects = [torch.arange(24.0).reshape(2, 3, 4), torch.ones(5), torch.tensor(1.0), torch.zeros(0, 3)]
    objects.append(objects[0].transpose(0, 2))
elif kind == "numpy":
    import numpy
    objects = [numpy.arange(24.0).reshape(2, 3, 4), numpy.ones(5, "i4"), numpy.array(1.0), numpy.zeros((0, 3))]
    objects += [objects[0][::-1, ::2], numpy.ones((2, 2), "f4", order="F")]
else:
    objects = [Producer()]

gc.disable()
for obj in objects:
    for _ in range(5):
        tenon_probe.borrow_many(obj, 10)     # the type is seen, every cache is warm
    allocations = tenon_probe.borrow_many(obj, 1000)
    assert allocations is not None, "alloc_counter is not preloaded"
    events = []
    sys.setprofile(lambda frame, event, argument: events.append((event, getattr(argument, "__name__", frame.f_code.co_name))))
    tenon_probe.borrow_many(obj, 100)
    sys.setprofile(None)
    calls = [name for event, name in events if event in ("call", "c_call") and name not in ("borrow_many", "setprofile")]
    print(kind, allocations, len(calls), calls[:3])
    if kind == "control":
        assert allocations >= 1000 and len(calls) >= 100, "the counters see nothing: they prove nothing"
    else:
        assert allocations == 0, f"{allocations} allocations in 1000 borrows"
        assert not calls, calls[:5]
"""


def count(kind):
    alloc_counter = pytest.importorskip("alloc_counter")
    if not alloc_counter.supported:
        pytest.skip("needs glibc")
    if SANITIZED:
        pytest.skip("the sanitizer counts allocations itself")
    preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), alloc_counter.__file__]))
    run_isolated(COUNT, env={"LD_PRELOAD": preloaded, "PYTHONMALLOC": "malloc"}, args=(kind,))


def test_borrowing_a_numpy_array_allocates_nothing_and_calls_no_python():
    pytest.importorskip("numpy")
    count("numpy")


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD")
def test_borrowing_a_torch_tensor_allocates_nothing_and_calls_no_python():
    pytest.importorskip("torch")
    count("torch")


def test_counters_see_a_producer_that_allocates_and_is_called():
    count("control")
