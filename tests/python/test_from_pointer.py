# tests/python/test_from_pointer.py: memory that is known by its address: kept, released once, refused when it cannot be.
from __future__ import annotations

import ctypes
import gc
import itertools
import sys
import threading
import weakref

import pytest
from real_support import need, nothing_kept, raw

import tenon


class Block:
    """Six floats, and how often they have been given back."""

    def __init__(self) -> None:
        self.numbers = (ctypes.c_float * 6)(*range(6))
        self.ptr = ctypes.addressof(self.numbers)
        self.freed: list[int] = []

    def tensor(self, **options):
        arguments = {"ptr": self.ptr, "shape": (2, 3), "dtype": "float32", "deleter": self.freed.append, **options}
        return tenon.from_pointer(**arguments)


def test_says_what_it_was_told():
    b = Block()
    t = b.tensor(strides=(1, 2), readonly=True)
    assert (t.data_ptr, t.shape, t.strides, t.dtype, t.device, t.readonly) == (b.ptr, (2, 3), (1, 2), "float32", "cpu", True)
    t = b.tensor(shape=[6], dtype=(2, 32), device=(1, 0))
    assert (t.shape, t.strides, t.readonly, raw(t)) == ((6,), (1,), False, bytes(b.numbers))
    assert b.tensor(shape=6).shape == (6,) and b.tensor(shape=()).shape == ()
    far = tenon.from_pointer(0x1000, (4,), "bfloat16", device="cuda:3")
    assert (far.device, far.dtype, far.nbytes) == ("cuda:3", "bfloat16", 8)
    assert tenon.from_pointer(0, (0, 5), "int8").size == 0


def test_deleter_runs_once_when_the_last_consumer_goes():
    np = need("numpy")
    b = Block()
    t = b.tensor()
    seen = [np.from_dlpack(t), memoryview(t), np.asarray(t), tenon.asdlpack(t.__dlpack__(max_version=(1, 0)))]
    del t
    while seen:
        gc.collect()
        assert b.freed == []
        seen.pop()
    gc.collect()
    assert b.freed == [b.ptr]


def test_deleter_runs_after_a_capsule_nobody_took():
    b = Block()
    capsule = b.tensor().__dlpack__()
    assert b.freed == []
    del capsule
    gc.collect()
    assert b.freed == [b.ptr]


def test_deleter_on_whichever_thread_the_last_one_lets_go():
    b = Block()
    held = [b.tensor()]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert b.freed == [b.ptr]


def test_deleter_that_raises_is_reported_and_not_run_again(monkeypatch):
    b, told = Block(), []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: told.append(u.exc_value))

    def deleter(ptr):
        b.freed.append(ptr)
        raise KeyError("from the deleter")

    t = b.tensor(deleter=deleter)
    del t
    gc.collect()
    assert b.freed == [b.ptr] and [type(e) for e in told] == [KeyError]


def test_owner_lives_as_long_as_anybody_looks():
    np = need("numpy")
    b = Block()
    watch = weakref.ref(b)
    view = np.from_dlpack(b.tensor(deleter=None, owner=b))
    assert "Block" in repr(tenon.asdlpack(b.tensor(deleter=None, owner=b)))
    del b
    gc.collect()
    assert watch() is not None and view[1, 2] == 5
    del view
    gc.collect()
    assert watch() is None


def test_owner_and_deleter_together():
    b = Block()
    order: list[str] = []

    class Owner:
        def __del__(self):
            order.append("owner")

    t = b.tensor(owner=Owner(), deleter=lambda _: order.append("deleter"))
    gc.collect()
    assert order == []
    del t
    gc.collect()
    assert order == ["deleter", "owner"]  # the deleter may still need what owns the memory


def test_a_cycle_through_the_owner_is_collected():
    class Owner:
        pass

    owner, b = Owner(), Block()
    owner.tensor = b.tensor(owner=owner, deleter=None)
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is None


def test_a_finalizer_in_the_same_cycle_sees_the_memory():
    """The collector runs all finalizers of a cycle first: the deleter is none of them, and comes after."""
    order: list[object] = []

    class Node:
        def __del__(self):
            order.append(self.tensor.tolist())
            saved.append(self.tensor)

    b, saved = Block(), []
    node = Node()
    node.tensor, node.itself = b.tensor(shape=3, deleter=lambda ptr: order.append(ptr), owner=node), node
    del node
    gc.collect()
    assert order == [[0.0, 1.0, 2.0]] and saved[0].tolist() == [0.0, 1.0, 2.0]  # brought back, and still whole
    saved.clear()
    gc.collect()
    assert order == [[0.0, 1.0, 2.0], b.ptr]


def test_nothing_is_kept_beyond_it():
    b = Block()
    owner = object()
    with nothing_kept(b, owner, b.numbers):
        for _ in range(50):
            tenon.from_pointer(b.ptr, (2, 3), "float32", owner=owner).__dlpack__()


REFUSALS = {
    "ptr negative": (dict(ptr=-8), TypeError, "ptr"),
    "ptr beyond 64 bits": (dict(ptr=2**64), TypeError, "ptr"),
    "ptr no number": (dict(ptr="0x10"), TypeError, "ptr"),
    "ptr bool": (dict(ptr=True), TypeError, "ptr"),
    "ptr None": (dict(ptr=None), TypeError, "ptr"),
    "ptr null": (dict(ptr=0), ValueError, "data"),
    "ptr off alignment": (dict(ptr=0x1001), ValueError, "alignment"),
    "shape negative": (dict(shape=(2, -3)), ValueError, r"shape\[1\]"),
    "shape too large": (dict(shape=(2**40, 2**40)), ValueError, "shape"),
    "shape beyond 64 bits": (dict(shape=(2**64,)), TypeError, "shape"),
    "shape of floats": (dict(shape=(2.0,)), TypeError, "shape"),
    "shape text": (dict(shape="23"), TypeError, "shape"),
    "shape None": (dict(shape=None), TypeError, "shape"),
    "shape too long": (dict(shape=(1,) * 200), ValueError, "shape has more than 64"),
    "shape without end": (dict(shape=itertools.repeat(1)), ValueError, "shape has more than 64"),
    "strides without end": (dict(strides=itertools.count()), ValueError, "strides has more than 64"),
    "strides one too few": (dict(strides=(1,)), ValueError, "strides"),
    "strides beyond the address space": (dict(strides=(2**62, 1)), ValueError, "strides|address|shape"),
    "dtype unknown": (dict(dtype="float33"), TypeError, "element type"),
    "device unknown": (dict(device="moon"), TypeError, "device"),
    "readonly no flag": (dict(readonly=1), TypeError, "readonly"),
    "deleter no function": (dict(deleter=42), TypeError, "deleter"),
}


@pytest.mark.parametrize("options, kind, match", REFUSALS.values(), ids=REFUSALS)
def test_what_is_refused_is_not_released(options, kind, match):
    b = Block()
    with nothing_kept(b), pytest.raises(kind, match=match):
        b.tensor(**options)
    gc.collect()
    assert b.freed == []


def test_shapes_and_strides_of_any_sequence():
    np = need("numpy")
    block = Block()
    for shape, strides in ((np.array([2, 3]), np.array([1, 2])), ([2, 3], [1, 2]), (iter((2, 3)), range(1, 3))):
        t = block.tensor(shape=shape, strides=strides)
        assert (t.shape, t.strides) == ((2, 3), (1, 2))
    for shape in (6, np.int8(6), np.array(6), np.array([6])):
        assert block.tensor(shape=shape).shape == (6,)
