# tests/python/test_deep.py: chains of owners, and imports within imports: neither may use the stack up.
"""Each runs in a process of its own, on stacks of three sizes: the main thread's, a common one, and a small one."""
from __future__ import annotations

import pytest
from isolation import SANITIZED, run_isolated

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

LINKS = {
    # What `owner=t.owner` gives: memory that keeps memory, with nothing in between.
    "memory": "tenon.from_pointer(64, (0,), 'uint8', owner=x.owner, deleter=count)",
    "memory_and_tensor": "tenon.from_pointer(64, (0,), 'uint8', owner=x, deleter=count)",
    "tensor": "tenon.asdlpack(x)",
    "memoryview": "tenon.asdlpack(memoryview(x))",
    "tuple": "tenon.from_pointer(64, (0,), 'uint8', owner=(x,))",
    "deleter": "tenon.from_pointer(64, (0,), 'uint8', deleter=Deleter(x))",
    "capsule": "tenon.asdlpack(x.__dlpack__(max_version=(1, 3)))",
    "arrow": "tenon.asdlpack(Arrow(x))",
    "interface": "tenon.asdlpack(Interface(x))",
    "numpy": "tenon.asdlpack(numpy.asarray(x)[:])",
}

CHAIN = ON_A_STACK + """
import numpy
link, count_of = sys.argv[2], int(sys.argv[3])
released = 0


def count(_):
    global released
    released += 1


class Deleter:
    def __init__(self, kept):
        self.kept = kept

    def __call__(self, _):
        count(_)


class Arrow:
    def __init__(self, kept):
        self.kept = kept

    def __arrow_c_array__(self, requested_schema=None):
        return self.kept.__arrow_c_array__()


class Interface:
    def __init__(self, kept):
        self.kept = kept

    @property
    def __array_interface__(self):
        return self.kept.__array_interface__


def chain():
    x = tenon.from_pointer(64, (0,), "uint8", owner=None, deleter=count)
    make = eval("lambda x: " + link)
    for _ in range(count_of):
        x = make(x)
    del x
    gc.collect()


run(chain)
assert released == (count_of + 1 if "deleter=" in link else 1), released
"""


@on_every_stack
@pytest.mark.parametrize("link", LINKS)
def test_F90_chain_of_owners(link, stack):
    count = 20_000 if stack == "small" or SANITIZED else 100_000
    run_isolated(CHAIN, args=(STACKS[stack], LINKS[link], count), timeout=120)


def test_F90_chain_of_600_000_memory_objects():
    run_isolated(CHAIN, args=(0, LINKS["memory"], 60_000 if SANITIZED else 600_000), timeout=240)


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
    for name in ATTRIBUTES:
        print("inspect, explain", name, flush=True)
        producer = type("Nested", (), {name: property(tenon.asdlpack)})()
        assert "RecursionError" in str(tenon.inspect(producer)), str(tenon.inspect(producer))
        assert "nested" in str(tenon.explain(producer, "numpy")), str(tenon.explain(producer, "numpy"))


run(nested)
"""


@on_every_stack
def test_F90_import_that_imports_itself(stack):
    run_isolated(NESTED, args=(STACKS[stack], 1000), timeout=240)


def test_F90_import_that_imports_itself_where_the_interpreter_would_let_it():
    run_isolated(NESTED, args=(0, 100_000), timeout=240)
