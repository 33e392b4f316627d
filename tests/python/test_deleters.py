# tests/python/test_deleters.py: from_pointer's deleter in cycles that the collector takes apart: whole, once, and last.
from __future__ import annotations

import ctypes
import functools
import gc
import sys
import textwrap
import threading

from isolation import isolated, run_isolated
from real_support import need

import tenon

SIZE = 4


class Block:
    """Four bytes. Giving them back makes them 255, which no test puts there."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_uint8 * SIZE)(1, 2, 3, 4)
        self.ptr = ctypes.addressof(self.memory)
        self.freed: list[int] = []

    def tensor(self, deleter, **options):
        return tenon.from_pointer(self.ptr, SIZE, "uint8", deleter=deleter, **options)

    def give_back(self, ptr: int) -> None:
        self.freed.append(ptr)
        ctypes.memset(ptr, 255, SIZE)

    @property
    def is_released_once(self) -> bool:
        return self.freed == [self.ptr]


class Node:
    """Something to make cycles of."""


class Complaints:
    """What deleters raised."""

    def __enter__(self):
        self.told: list[BaseException] = []
        self.hook, sys.unraisablehook = sys.unraisablehook, lambda u: self.told.append(u.exc_value)
        return self.told

    def __exit__(self, *_):
        sys.unraisablehook = self.hook
        assert self.told == []


def collected(block: Block) -> None:
    """One gc.collect() is enough, and no other releases it again."""
    with Complaints():
        gc.collect()
        assert block.freed == [block.ptr]
        gc.collect()
        gc.collect()
    assert block.is_released_once


# --- deleters that reach the memory they release ----------------------------------------------------


@isolated
def test_F84_function():
    b = Block()

    def free(ptr):
        b.give_back(ptr)

    free.t = b.tensor(free)
    del free
    collected(b)


def test_F84_function_of_a_module():
    """Without a closure: what is cleared of it first is its code."""
    told = run_isolated(
        "import ctypes, gc, tenon\n"
        "block = (ctypes.c_double * 4)()\n"
        "def free(address): print('freed', address == ctypes.addressof(block))\n"
        "free.t = tenon.from_pointer(ctypes.addressof(block), (4,), 'float64', deleter=free)\n"
        "del free\n"
        "gc.collect()\n"
        "print('collected')\n"
    )
    assert told.split("\n") == ["freed True", "collected", ""]


@isolated
def test_F84_method():
    b = Block()

    class Owner:
        def __init__(self):
            self.release = b.give_back  # what free() needs is in the dictionary that the collector empties
            self.t = b.tensor(self.free)

        def free(self, ptr):
            self.release(ptr)

    Owner()
    collected(b)


@isolated
def test_F84_partial():
    b, node = Block(), Node()
    node.block = b
    node.t = b.tensor(functools.partial(lambda node, ptr: node.block.give_back(ptr), node))
    del node
    collected(b)


@isolated
def test_F84_closure():
    b = Block()

    def make():
        release = b.give_back

        def free(ptr):
            assert t.shape == (SIZE,)
            release(ptr)

        t = b.tensor(free)

    make()
    collected(b)


@isolated
def test_F84_c_function():
    b, node = Block(), Node()
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    node.release = b.give_back
    node.free = prototype(lambda ptr, node=node: node.release(ptr))
    node.t = b.tensor(node.free)
    del node
    collected(b)


@isolated
def test_F84_namespace():
    """A module that is thrown away: its function reaches the Tensor by the globals."""
    b = Block()
    code = "def free(ptr):\n    b.give_back(ptr)\nt = b.tensor(free)\n"
    exec(code, {"b": b})
    collected(b)


@isolated
def test_F84_owner_too():
    b = Block()

    def free(ptr):
        b.give_back(ptr)

    free.t = b.tensor(free, owner=free)
    del free
    collected(b)


@isolated
def test_F84_many():
    blocks = [Block() for _ in range(500)]
    for b in blocks:

        def free(ptr, b=b):
            b.give_back(ptr)

        free.t = b.tensor(free)
    del free
    with Complaints():
        gc.collect()
    assert all(b.is_released_once for b in blocks)


@isolated
def test_F84_collections_of_the_young():
    """Those that come by themselves release it, too."""
    b = Block()

    def free(ptr):
        b.give_back(ptr)

    free.t = b.tensor(free)
    del free
    with Complaints():
        for generation in (0, 1, 2, 2):
            gc.collect(generation)
    assert b.is_released_once


@isolated
def test_F84_where_the_collector_is_off():
    gc.disable()
    try:
        test_F84_function.__wrapped__()
    finally:
        gc.enable()


@isolated
def test_F84_threads():
    blocks = [Block() for _ in range(8)]

    def work(b):
        def free(ptr):
            b.give_back(ptr)

        free.t = b.tensor(free)
        del free
        for _ in range(3):
            gc.collect()

    with Complaints():
        threads = [threading.Thread(target=work, args=(b,)) for b in blocks]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        gc.collect()
    assert all(b.is_released_once for b in blocks)


# --- when ---------------------------------------------------------------------------------------------


def seen_by_finalizers(reaching: bool) -> None:
    """Views that objects of the same cycle look at when they are finalized, made before the Tensor and after it."""
    b, seen = Block(), []

    class Looker:
        def __del__(self):
            seen.append(self.view.tolist())

    class Buffer:
        def __init__(self):
            self.before, self.itself = Looker(), self
            release = b.give_back
            self.t = b.tensor(self.free if reaching else lambda ptr: release(ptr))
            self.after = Looker()
            self.before.view, self.after.view = memoryview(self.t), memoryview(self.t)
            self.before.buffer = self.after.buffer = self

        def free(self, ptr):
            assert self.t is not None
            b.give_back(ptr)

        def __del__(self):
            seen.append(self.t.tolist())

    Buffer()
    collected(b)
    assert seen == [[1, 2, 3, 4]] * 3


@isolated
def test_F84_every_finalizer_of_the_cycle_sees_the_memory():
    seen_by_finalizers(reaching=False)


@isolated
def test_F84_every_finalizer_sees_it_where_the_deleter_reaches_it():
    seen_by_finalizers(reaching=True)


@isolated
def test_F84_an_array_that_the_cycle_holds():
    """NumPy's arrays hide what they hold from the collector: the memory goes when the array does, and not before."""
    np = need("numpy")
    b, seen = Block(), []

    class Looker:
        def __del__(self):
            seen.append(self.view.tolist())

    looker = Looker()
    looker.view, looker.itself = np.asarray(b.tensor(lambda ptr: b.give_back(ptr))), looker
    del looker
    collected(b)
    assert seen == [[1, 2, 3, 4]]


@isolated
def test_F84_brought_back_is_still_whole():
    b, saved = Block(), []

    class Buffer:
        def __init__(self):
            self.t = b.tensor(self.free)

        def free(self, ptr):
            b.give_back(ptr)

        def __del__(self):
            saved.append(self)

    Buffer()
    with Complaints():
        for _ in range(3):
            gc.collect()
            assert saved[0].t.tolist() == [1, 2, 3, 4] and b.freed == []
        saved.clear()
        gc.collect()
    assert b.is_released_once


@isolated
def test_F84_brought_back_and_let_go_of_without_the_collector():
    b, saved, node = Block(), [], Node()

    class Saver:
        def __del__(self):
            saved.append(self.t)
            del self.itself

    saver = Saver()
    saver.itself, saver.t = saver, b.tensor(lambda ptr: b.give_back(ptr))
    del saver, node
    gc.collect()
    assert b.freed == [] and saved[0].tolist() == [1, 2, 3, 4]
    saved.clear()
    assert b.is_released_once


@isolated
def test_F84_an_exception_is_told_once():
    b, told = Block(), []

    def free(ptr):
        b.give_back(ptr)
        raise KeyError(ptr)

    free.t = b.tensor(free)
    del free
    sys.unraisablehook = lambda u: told.append(type(u.exc_value))
    try:
        for _ in range(3):
            gc.collect()
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    assert b.is_released_once and told == [KeyError]


def test_F84_at_the_end_of_the_interpreter():
    for deleter in ("free", "lambda ptr: None", "Owner().free", "functools.partial(print)"):
        code = f"""
            import ctypes, functools, tenon
            memory = (ctypes.c_uint8 * 4)()
            def free(ptr):
                free.t.shape
            class Owner:
                def free(self, ptr):
                    self.t.shape
            deleter = {deleter}
            keeper = free if deleter is free else getattr(deleter, "__self__", free)
            keeper.t = tenon.from_pointer(ctypes.addressof(memory), 4, "uint8", deleter=deleter, owner=memory)
            """
        run_isolated(textwrap.dedent(code))
