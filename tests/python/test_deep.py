# tests/python/test_deep.py: chains of owners, and imports within imports: neither may use the stack up.
"""Each runs in a process of its own, on stacks of three sizes: the main thread's, a common one, and a small one."""
from __future__ import annotations

import fakes
import pytest
import tenon_probe
from isolation import SANITIZED, run_isolated
from producers import Producer
from quick import rest_is_slow

import tenon

ON_A_STACK = """
import gc, sys, threading
import tenon, tenon_exports, tenon_probe
import bound_capi, bound_nanobind, bound_pybind11

size = int(sys.argv[1])


def run(test):
    if size == 0:
        return test()
    threading.stack_size(size)
    failures = []

    def body():
        try:
            test()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
"""

# The sanitizers' frames are several times as large.
SMALL = 1 << 18 if not SANITIZED else 1 << 20
STACKS = {"main": 0, "4 MiB": 1 << 22, "small": SMALL}
on_every_stack = pytest.mark.parametrize("stack", STACKS)

CHAIN = ON_A_STACK + """
import numpy

count_of, only = int(sys.argv[2]), sys.argv[3:]
released = 0


def count(_):
    global released
    released += 1


class Keeper:
    def __init__(self, kept):
        self.kept = kept


class Deleter(Keeper):
    def __call__(self, _):
        count(_)


class Arrow(Keeper):
    def __arrow_c_array__(self, requested_schema=None):
        return self.kept.__arrow_c_array__()


class Interface(Keeper):
    __array_interface__ = property(lambda self: self.kept.__array_interface__)


def pointer(**keywords):
    return tenon.from_pointer(64, (0,), "uint8", **keywords)


LINKS = {
    # What `owner=t.owner` gives: memory that keeps memory, with nothing in between.
    "memory": lambda x: pointer(owner=x.owner, deleter=count),
    "memory and tensor": lambda x: pointer(owner=x, deleter=count),
    "tensor": lambda x: tenon.asdlpack(x),
    "memoryview": lambda x: tenon.asdlpack(memoryview(x)),
    "tuple": lambda x: pointer(owner=(x,)),
    "object": lambda x: pointer(owner=Keeper(x)),
    "deleter": lambda x: pointer(deleter=Deleter(x)),
    "capsule": lambda x: tenon.asdlpack(x.__dlpack__(max_version=(1, 3))),
    "arrow": lambda x: tenon.asdlpack(Arrow(x)),
    "interface": lambda x: tenon.asdlpack(Interface(x)),
    "numpy": lambda x: tenon.asdlpack(numpy.asarray(x)[:]),
}


def chain(name):
    global released
    print(name, flush=True)  # the last one printed is the one that crashed
    released = 0
    x = pointer(deleter=count)
    for _ in range(count_of):
        x = LINKS[name](x)
    del x
    gc.collect()
    every = name in ("memory", "memory and tensor", "deleter")
    assert released == (count_of + 1 if every else 1), released


def chains():
    for name in only or LINKS:
        chain(name)


run(chains)
"""


@on_every_stack
def test_F90_chain_of_owners(stack):
    run_isolated(CHAIN, args=(STACKS[stack], 20_000))


def test_F90_chain_of_600_000_memory_objects():
    run_isolated(CHAIN, args=(0, 60_000 if SANITIZED else 600_000, "memory"))


# An object that imports itself whatever it is asked for, and takes no exception for an answer.
STUBBORN = ON_A_STACK + """
IMPORTS = [tenon.asdlpack, tenon_probe.borrow, bound_capi.total_any, bound_nanobind.total_any, bound_pybind11.total_any,
           tenon.inspect, lambda obj: tenon.explain(obj, "numpy")]
asked = 0


def stubborn():
    global asked
    for take in IMPORTS:
        class Stubborn:
            def __getattr__(self, name):
                global asked
                asked += 1
                assert asked < 1_000_000, "imports without end"
                try:
                    return take(self)
                except Exception:
                    raise AttributeError(name) from None

        asked = 0
        try:
            take(Stubborn())
        except (TypeError, BufferError, ValueError, RecursionError):
            pass
        print(take, asked, flush=True)
        assert tenon.asdlpack(b"abc").tolist() == [97, 98, 99]  # and the levels are counted anew


run(stubborn)
"""


def test_F90_imports_do_not_multiply():
    run_isolated(STUBBORN, args=(0,))


def test_F90_many_imports_within_one_are_fine():
    class Many:
        def __init__(self, deep):
            self.deep = deep

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **keywords):
            for _ in range(3000 if self.deep == 0 else 1):
                t = tenon.asdlpack(bytearray(b"abc") if self.deep == 0 else Many(self.deep - 1))
            return t.__dlpack__(**keywords)

    for deep in range(3):
        assert tenon.asdlpack(Many(deep)).tolist() == [97, 98, 99]


@pytest.mark.parametrize("take", [tenon.asdlpack, tenon_probe.borrow])
def test_F90_a_level_is_counted_once(take):
    """However many rungs are tried on the way: there are as many levels as the message says."""

    class Level(Producer):
        """Its table refuses, so it is taken by its method, which imports the next one first."""

        __dlpack_c_exchange_api__ = fakes.Table().capsule()

        def __init__(self, levels):
            super().__init__(exchange="silent")
            self.below = Level(levels - 1) if levels > 1 else None

        def __dlpack__(self, **keywords):
            if self.below is not None:
                take(self.below)
            return super().__dlpack__(**keywords)

    with pytest.raises(RecursionError, match="nested more than 20 deep"):
        take(Level(21))
    for _ in range(3):  # the type is new, and then known
        take(Level(20))
    with pytest.raises(RecursionError, match="nested more than 20 deep"):
        take(Level(21))


# Imports within imports, by C functions alone where that is possible: the interpreter then counts no Python calls.
NESTED = ON_A_STACK + """
sys.setrecursionlimit(int(sys.argv[2]))
ATTRIBUTES = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__arrow_c_array__",
              "__arrow_c_device_array__", "__arrow_c_stream__", "__array_typestr__")
IMPORTS = {
    "asdlpack": tenon.asdlpack,
    "borrow": tenon_probe.borrow,
    "there_and_back": tenon_exports.there_and_back,
    "twin": tenon_exports.twin,
    "capi": bound_capi.total_any,
    "nanobind": bound_nanobind.total_any,
    "pybind11": bound_pybind11.total_any,
}


def refuse(take, producer):
    try:
        found = take(producer)
    except RecursionError:
        return
    raise AssertionError(found)


def nested():
    for import_name, take in IMPORTS.items():
        for name in ATTRIBUTES:
            print(import_name, name, flush=True)  # the last one printed is the one that crashed
            refuse(take, type("Nested", (), {name: property(take)})())
            refuse(take, type("Nested", (), {name: property(lambda self: take(self))})())
    for name in ATTRIBUTES:
        print("inspect, explain", name, flush=True)
        producer = type("Nested", (), {name: property(tenon.asdlpack)})()
        assert "RecursionError" in str(tenon.inspect(producer)), str(tenon.inspect(producer))
        assert "nested" in str(tenon.explain(producer, "numpy")), str(tenon.explain(producer, "numpy"))


def reworded():
    # A tensor that is refused is asked what it is, and imports itself instead of telling.
    try:
        import torch
    except ImportError:
        return
    for import_name, take in IMPORTS.items():
        for name in ("is_quantized", "layout", "is_meta"):
            print(import_name, name, flush=True)
            cls = type("Asked", (torch.Tensor,), {name: property(lambda self, take=take: take(self))})
            refuse(take, torch.Tensor._make_subclass(cls, torch._neg_view(torch.ones(3))))


def made():
    # Arrays made by a library whose namespace makes arrays.
    from producers import Producer

    for make in (tenon_exports.twin, tenon_exports.there_and_back):
        print(make, flush=True)
        refuse(make, type("Nested", (Producer,), {"__array_namespace__": property(make)})())


run(nested)
run(reworded)
run(made)
"""


@pytest.mark.parametrize("stack", rest_is_slow(STACKS, "main"))
def test_F90_import_that_imports_itself(stack):
    run_isolated(NESTED, args=(STACKS[stack], 1000))


def test_F90_import_that_imports_itself_where_the_interpreter_would_let_it():
    run_isolated(NESTED, args=(0, 100_000))


def test_F90_chain_let_go_of_by_a_thread_that_python_does_not_know():
    """The outermost release needs no Python, and what waits for it does."""
    run_isolated("""
import tenon
from fakes_ctypes import consumed, release_on_native_thread

released = []
x = tenon.from_pointer(64, (0,), "uint8", deleter=released.append)
for i in range(5000):
    x = tenon.asdlpack(x) if i % 2 else tenon.from_pointer(64, (0,), "uint8", owner=x, deleter=released.append)
capsule = x.__dlpack__(max_version=(1, 3))
managed = consumed(capsule, "both")
del x, capsule
assert released == []
release_on_native_thread(managed)
assert released == [64] * 2501, len(released)
""")
