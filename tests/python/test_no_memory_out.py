# tests/python/test_no_memory_out.py: every allocation of every way out fails once: MemoryError or success, nothing leaked, nothing released twice.
from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass

import pytest
import tenon
import tenon_exports
from fakes_ctypes import Versioned, release, table_of
from isolation import table
from tenon_exports import Counter, Matrix, call_slot

VERSIONED = dict(max_version=(1, 3))
OWN = type(tenon_exports.produce(Counter()))
# Looked up before memory runs out: ctypes needs some.
SLOTS = {cls: (table_of(cls).own, table_of(cls).to_python) for cls in (OWN, Matrix)}
OUT = ctypes.c_uint64()
THERE = ctypes.addressof(OUT)


def stop_failing():
    import _testcapi

    _testcapi.remove_mem_hooks()


@dataclass
class Call:
    """A function of a table with its argument, and how to undo it: made before memory runs out, since it takes some."""

    slot: int
    first: int
    kept: object
    undo: object  # of the result, or of 0 when there is none

    def __call__(self):
        try:
            outcome, error = call_slot(self.slot, self.first, THERE)
            assert outcome == 0 or OUT.value == 0, "a result although it failed"
        except MemoryError as told:  # for want of memory to tell: the function itself may have gone well
            outcome, error = -1, told
        stop_failing()
        self.undo(OUT.value)
        if outcome != 0:
            raise error


def table_own(make):
    def build(counter):
        obj, OUT.value = make(counter), 0
        return Call(SLOTS[type(obj)][0], id(obj), obj, lambda made: made and release(Versioned.from_address(made)))

    return build


def table_to_python(make):
    def build(counter):
        obj = make(counter)
        assert call_slot(SLOTS[type(obj)][0], id(obj), THERE) == (0, None)
        managed, OUT.value = Versioned.from_address(OUT.value), 0

        def undo(made):
            if made:
                ctypes.pythonapi.Py_DecRef(ctypes.cast(made, ctypes.py_object))
            else:
                release(managed)  # what is refused is still ours

        return Call(SLOTS[type(obj)][1], ctypes.addressof(managed), None, undo)

    return build


def matrix(_):
    return Matrix(2, 3)


def strided(counter):
    return produced(counter, shape=(2, 3), strides=(1, 2))


def line(counter):
    return produced(counter, shape=(6,))


def nothing(counter):
    return counter


produced = tenon_exports.produce
# What the sweep is made on, and what fails in it.
WAYS = {
    "produce": (nothing, produced),
    "produce, many axes": (nothing, lambda counter: produced(counter, shape=(1,) * 7)),
    "produce, refused": (nothing, lambda counter: produced(counter, shape=(-1,))),
    "versioned": (nothing, tenon_exports.versioned),
    "legacy": (nothing, tenon_exports.legacy),
    "legacy, refused": (nothing, lambda counter: tenon_exports.legacy(counter, readonly=True)),
    "inside": (nothing, tenon_exports.inline_object),
    "like nothing": (nothing, lambda counter: tenon_exports.like(counter, None)),
    "like our own": (lambda counter: (counter, produced(Counter())), lambda pair: tenon_exports.like(*pair)),
    "empty like nothing": (nothing, lambda counter: tenon_exports.empty_like(None, (2, 3), "float32")),
    "there and back": (produced, tenon_exports.there_and_back),
    "dlpack, legacy": (produced, lambda obj: obj.__dlpack__()),
    "dlpack, versioned": (produced, lambda obj: obj.__dlpack__(**VERSIONED)),
    "dlpack, copy": (produced, lambda obj: obj.__dlpack__(copy=True, **VERSIONED)),
    "dlpack, strided copy": (strided, lambda obj: obj.__dlpack__(copy=True)),
    "dlpack, refused": (produced, lambda obj: obj.__dlpack__(dl_device=(2, 0))),
    "dlpack, junk": (produced, lambda obj: obj.__dlpack__(stream="junk")),
    "device": (produced, lambda obj: obj.__dlpack_device__()),
    "memoryview": (produced, memoryview),
    "bytes": (strided, bytes),
    "interface": (strided, lambda obj: obj.__array_interface__),
    "no interface": (produced, lambda obj: obj.__cuda_array_interface__),
    "cuda interface": (lambda counter: produced(counter, device=(2, 0), address=4096),
                       lambda obj: obj.__cuda_array_interface__),
    "arrow schema": (line, lambda obj: obj.__arrow_c_schema__()),
    "arrow array": (line, lambda obj: obj.__arrow_c_array__()),
    "arrow device array": (line, lambda obj: obj.__arrow_c_device_array__()),
    "arrow, refused": (produced, lambda obj: obj.__arrow_c_array__()),
    "arrow, junk": (line, lambda obj: obj.__arrow_c_array__("junk")),
    "repr": (strided, repr),
    "table, own": (table_own(produced), Call.__call__),
    "table, to_python": (table_to_python(produced), Call.__call__),
    "matrix, dlpack": (matrix, lambda obj: obj.__dlpack__()),
    "matrix, versioned": (matrix, lambda obj: obj.__dlpack__(**VERSIONED)),
    "matrix, copy": (matrix, lambda obj: obj.__dlpack__(copy=True, **VERSIONED)),
    "matrix, memoryview": (matrix, memoryview),
    "matrix, interface": (matrix, lambda obj: obj.__array_interface__),
    "matrix, table, own": (table_own(matrix), Call.__call__),
    "matrix, table, to_python": (table_to_python(matrix), Call.__call__),
    "matrix, imported": (matrix, tenon.asdlpack),
}
# Of Python's own memory, what it keeps ready for small tuples aside.
NEED_NONE = {"device", "table, own", "matrix, table, own"}


def attempt(build, leave, counter, n):
    """The exception of one try in which the n-th allocation fails."""
    import _testcapi

    built = build(counter)
    _testcapi.set_nomemory(n, n + 1)
    try:
        leave(built)
    except BaseException as error:
        _testcapi.remove_mem_hooks()
        error.__traceback__ = None
        return type(error)
    finally:
        _testcapi.remove_mem_hooks()
    return None


def sweep(way):
    """Lets each allocation fail, until there are no more."""
    pytest.importorskip("_testcapi")
    build, leave = WAYS[way]
    normal = attempt(build, leave, Counter(), 10**9)  # makes what is made once, too
    quiet, outcomes = 0, set()
    for n in range(400):
        counter = Counter()
        outcome = attempt(build, leave, counter, n)
        gc.collect()
        assert counter.exports == counter.releases, (n, outcome, counter.exports, counter.releases)
        outcomes.add(outcome)
        quiet = 0 if outcome is MemoryError else quiet + 1
        if quiet == 20:  # far beyond the last allocation
            break
    # An exception that passes through Python code is lost now and then by CPython itself.
    assert outcomes <= {MemoryError, normal, SystemError if normal else None}, outcomes
    assert MemoryError in outcomes or way in NEED_NONE, "nothing was allocated"


table(globals(), {"test_F28_" + way.replace(",", "").replace(" ", "_"): dict(way=way) for way in WAYS}, sweep)
