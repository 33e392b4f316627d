# tests/python/test_hostile_consumers.py: consumers and libraries that play games with what leaves.
from __future__ import annotations

import ctypes
import gc
import weakref

import pytest
import tenon
import tenon_exports
from fakes_ctypes import Versioned, opened, table_of
from isolation import LEAKS_BY_DESIGN, SANITIZED, run_isolated
from producers import exactly_once

ENDED_AT_EXIT = """
import sys, threading, time
import tenon, tenon_exports
started = threading.Event()
def sleep(*ignored):
    started.set()
    time.sleep(0.3)
    return ""
class Late:                     # keeps the interpreter finalizing while the thread wakes up
    def __del__(self, sleep=time.sleep):
        sleep(0.6)
def work():
    {work}
threading.Thread(target=work, daemon=True).start()
started.wait()
sys.late = Late()
"""

ENDED = {
    "weak reference": """
    import weakref
    t = tenon.asdlpack(bytearray(8))
    global kept
    kept = weakref.ref(t, sleep)
    del t""",
    "repr of a keyword": """
    Name = type("Name", (str,), {"__repr__": sleep, "__hash__": str.__hash__})
    tenon.asdlpack(bytearray(8)).__dlpack__(**{Name("evil"): 1})""",
    "deleter": """
    t = tenon_exports.called_back(sleep)
    del t""",
}


@pytest.mark.skipif(SANITIZED, reason="UBSan takes the unwinding of pthread_exit for a null reference")
@pytest.mark.parametrize("work", ENDED.values(), ids=ENDED)
def test_F19_thread_ended_in_the_middle_of_it(work):
    run_isolated(ENDED_AT_EXIT.format(work=work.strip()), env=LEAKS_BY_DESIGN)


def test_chain_of_deleters_is_let_go_without_recursing():
    run_isolated("import tenon_exports; t = tenon_exports.chained(300_000); del t")


def test_object_is_read_after_the_keywords():
    m = tenon_exports.Matrix(2, 3)

    class Grows:
        def __index__(self):
            m.grow()
            return 1

    t = tenon.asdlpack(m.__dlpack__(max_version=(Grows(), 0)))
    assert (t.data_ptr, t.shape) == (m.address, (3, 3))
    copied = tenon.asdlpack(m.__dlpack__(max_version=(Grows(), 0), copy=True))
    assert copied.shape == (4, 3) and set(memoryview(copied).cast("B").cast("f").tolist()) == {2.0}


def test_functions_made_anew_are_not_collected():
    class Namespace:
        __name__ = "made_anew"

        def from_dlpack(self, obj):
            return obj

    class Array:
        def __array_namespace__(self):
            return Namespace()

        def __dlpack__(self, **keywords):
            raise BufferError

    counter = tenon_exports.Counter()
    with exactly_once(counter, exports=200):
        seen = weakref.WeakSet()
        original = Array.__array_namespace__
        for _ in range(200):
            def fresh(self):
                seen.add(made := original(self))
                return made

            Array.__array_namespace__ = fresh
            tenon_exports.like(counter, Array())
    gc.collect()
    assert len(seen) <= 4, "one per name is kept, not one per call"


def test_P10_the_pointer_is_the_contract():
    """A proxy may put a struct of its own into a capsule: that one is released, and it releases ours."""
    counter, released = tenon_exports.Counter(), []
    set_pointer = ctypes.pythonapi.PyCapsule_SetPointer
    set_pointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    with exactly_once(counter):
        capsule = tenon_exports.versioned(counter)
        inner = opened(capsule)
        proxy = Versioned()
        ctypes.memmove(ctypes.byref(proxy), ctypes.byref(inner), ctypes.sizeof(Versioned))

        def release(_):
            released.append(True)
            inner.deleter(ctypes.addressof(inner))

        callback = type(proxy.deleter)(release)
        proxy.deleter = callback
        assert set_pointer(capsule, ctypes.addressof(proxy)) == 0
        del capsule
        assert released == [True]


@pytest.mark.parametrize("cls", [tenon.Tensor, tenon_exports.Matrix], ids=["Tensor", "class"])
@pytest.mark.parametrize("slot", ["own", "borrow"])
def test_X06_no_place_for_the_result(cls, slot):
    obj = tenon.asdlpack(bytearray(8)) if cls is tenon.Tensor else tenon_exports.Matrix(2, 2)
    function = getattr(table_of(cls), slot)
    if function is None:
        pytest.skip("a class of the user's own lends nothing")
    outcome, exception = tenon_exports.call_slot(function, id(obj), 0)
    assert outcome == -1 and isinstance(exception, BufferError)


def test_library_that_gives_other_memory_than_it_was_asked_for():
    numpy = pytest.importorskip("numpy")

    class Namespace:
        __name__ = "crooked"
        float32 = numpy.float32

        @staticmethod
        def from_dlpack(obj):
            return obj

        @staticmethod
        def empty(shape, dtype):
            return numpy.zeros(shape, dtype)[::-1, ::-1]

    class Array:
        def __array_namespace__(self):
            return Namespace

    with pytest.raises(BufferError, match="another array than it was asked for"):
        tenon_exports.empty_like(Array(), (4, 5), "float32")


@pytest.mark.parametrize("attribute", [None, property(lambda self: None), 5], ids=["None", "property", "number"])
def test_from_dlpack_that_is_no_function(attribute):
    array = type("Array", (), {"from_dlpack": attribute})()
    counter = tenon_exports.Counter()
    with exactly_once(counter):
        assert tenon.asdlpack(tenon_exports.like(counter, array)).shape == (2, 3)


def test_X09_class_that_inherits_a_producer_second():
    """Since 3.12 a class has the slots of its own `__buffer__`; the object is a producer's all the same."""

    class Plain:
        pass

    class Mixed(Plain, tenon_exports.Matrix):
        def __buffer__(self, flags):
            raise BufferError

    m = Mixed(2, 2)
    assert tenon.asdlpack(m).data_ptr == m.address
