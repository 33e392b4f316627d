# tests/python/test_producer_lifetimes.py: who releases what leaves, when and where: rules P9 to P16.
from __future__ import annotations

import ctypes
import gc
import os
import threading
import weakref

import pytest
import tenon
import tenon_exports
from fakes_ctypes import consumed, described, name_of, opened, release, release_on_native_thread
from isolation import LEAKS_BY_DESIGN, isolated, run_isolated
from producers import exactly_once, refuse
from tenon_exports import Counter

np = pytest.importorskip("numpy")

VERSIONED = dict(max_version=(1, 3))

# Every way a capsule of ours comes about: it belongs to the counter's memory alone, or to an object that does.
WAYS = {
    "versioned": tenon_exports.versioned,
    "legacy": tenon_exports.legacy,
    "method": lambda counter: tenon_exports.produce(counter).__dlpack__(**VERSIONED),
    "method, legacy": lambda counter: tenon_exports.produce(counter).__dlpack__(),
    "inside": lambda counter: tenon_exports.inline_object(counter).__dlpack__(**VERSIONED),
    "passed on": lambda counter: tenon.asdlpack(tenon_exports.produce(counter)).__dlpack__(**VERSIONED),
    "passed on twice": lambda counter: tenon.asdlpack(
        tenon.asdlpack(tenon_exports.versioned(counter)).__dlpack__(**VERSIONED)).__dlpack__(**VERSIONED),
}
every_way = pytest.mark.parametrize("make", WAYS.values(), ids=WAYS.keys())


@every_way
def test_P09_unconsumed_capsule_lets_go_once(make):
    counter = Counter()
    with exactly_once(counter):
        capsule = make(counter)
        assert counter.releases == 0
        del capsule
        assert counter.releases == 1


@every_way
@pytest.mark.parametrize("by", ["rename", "destructor", "both"])
def test_P10_P11_consumed_capsule_leaves_the_struct_to_its_consumer(make, by):
    """Consumers rename, or take the destructor off, or both: whichever, the struct is theirs."""
    counter = Counter()
    with exactly_once(counter):
        capsule = make(counter)
        managed = consumed(capsule, by)
        del capsule
        gc.collect()
        assert counter.releases == 0
        release(managed)
        assert counter.releases == 1


def test_P10_renamed_capsule_cannot_be_taken_again():
    counter = Counter()
    with exactly_once(counter):
        capsule = tenon_exports.versioned(counter)
        managed = consumed(capsule)
        assert name_of(capsule) == b"used_dltensor_versioned"
        refuse(capsule, BufferError, "consumed already")
        release(managed)


@pytest.mark.parametrize("make", [*WAYS.values(), tenon_exports.produce], ids=[*WAYS, "the object itself"])
def test_P12_exception_in_flight_survives_the_destructor(make):
    counter, mine = Counter(), KeyError("mine")

    def fail():
        raise mine

    with exactly_once(counter, exports=None):
        with pytest.raises(KeyError) as caught:
            print(make(counter), fail())  # the capsule is on the stack that the exception clears
        assert caught.value is mine and mine.__cause__ is None
        mine.__traceback__ = None
    assert counter.releases == 1


@every_way
def test_P13_deleter_on_a_thread_python_does_not_know(make):
    counter = Counter()
    with exactly_once(counter):
        release_on_native_thread(consumed(make(counter)))
        assert counter.releases == 1 and counter.elsewhere


@every_way
def test_P13_deleter_without_the_gil(make):
    counter = Counter()
    with exactly_once(counter):
        release(consumed(make(counter)))  # ctypes lets go of it
        assert counter.releases == 1


def test_P13_threads_that_release_at_once():
    counter = Counter()
    obj = tenon_exports.produce(counter)
    structs = [consumed(obj.__dlpack__(**VERSIONED)) for _ in range(200)]
    del obj
    with exactly_once(counter):
        assert counter.releases == 0
        threads = [threading.Thread(target=lambda part: [release(m) for m in part], args=(structs[i::8],))
                   for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.releases == 1


AFTER_THE_END = """
import ctypes, sys
import tenon_exports
from fakes_ctypes import consumed
from test_producer_lifetimes import WAYS
libc = ctypes.CDLL(None)
libc.strdup.restype, libc.strdup.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

def at_the_end(function, argument):     # the C runtime calls the last first, after Py_Finalize
    assert libc.__cxa_atexit(ctypes.cast(function, ctypes.c_void_p), argument, None) == 0

at_the_end(libc.puts, libc.strdup(b"still alive"))
for make in WAYS.values():
    managed = consumed(make(tenon_exports.Counter()))
    at_the_end(managed.deleter, ctypes.addressof(managed))
"""


def test_P14_deleter_after_the_interpreter_is_gone():
    assert run_isolated(AFTER_THE_END, env=LEAKS_BY_DESIGN) == "still alive\n"


def test_P14_deleter_while_the_interpreter_goes():
    """atexit, module teardown, and whatever is left in sys: capsules, structs and objects of every kind."""
    out = run_isolated("""
import atexit, builtins, sys
import tenon_exports
from fakes_ctypes import consumed, release
from test_producer_lifetimes import WAYS
counter = tenon_exports.Counter()
structs = [consumed(make(counter)) for make in WAYS.values()]
def first():
    for managed in structs:
        release(managed)
    assert counter.releases == counter.exports == len(WAYS), (counter.releases, counter.exports)
    print("released", flush=True)
atexit.register(first)
kept = [make(tenon_exports.Counter()) for make in WAYS.values()]
builtins.kept = [tenon_exports.produce(tenon_exports.Counter()) for _ in range(3)]
sys.kept = [memoryview(obj) for obj in builtins.kept]
class Late:
    def __init__(self): self.structs = [consumed(make(tenon_exports.Counter())) for make in WAYS.values()]
    def __del__(self, release=release):
        for managed in self.structs:
            release(managed)
sys.late = Late()
""", env=LEAKS_BY_DESIGN)
    assert out == "released\n"


@every_way
def test_P15_memory_lives_until_the_deleter_runs(make):
    counter = Counter()
    with exactly_once(counter):
        capsule = make(counter)
        before = ctypes.string_at(opened(capsule).dl_tensor.data, 24)
        managed = consumed(capsule)
        del capsule
        others = [tenon_exports.produce(Counter(), data=b"\xff" * 24) for _ in range(64)]  # would be where it was
        gc.collect()
        assert counter.releases == 0 and ctypes.string_at(managed.dl_tensor.data, 24) == before
        release(managed)
        del others


def test_P15_python_memory_lives_until_the_deleter_runs():
    array = np.arange(6.0)
    seen = weakref.ref(array)
    managed = consumed(tenon.asdlpack(array).__dlpack__())
    del array
    gc.collect()
    assert seen() is not None
    release(managed)
    assert seen() is None


def test_P15_object_of_a_users_class_lives_until_the_deleter_runs():
    class Sub(tenon_exports.Matrix):
        pass

    matrix = Sub(2, 3)
    seen, address = weakref.ref(matrix), matrix.address
    managed = consumed(matrix.__dlpack__())
    del matrix
    gc.collect()
    assert seen() is not None and managed.dl_tensor.data == address
    release_on_native_thread(managed)
    assert seen() is None


@pytest.mark.parametrize("make", [lambda counter: tenon_exports.produce(counter), lambda _: tenon_exports.Matrix(2, 3)],
                         ids=["own", "matrix"])
def test_P16_exports_share_memory_and_nothing_else(make):
    """Some consumers write into the structs they were given."""
    obj = make(Counter())
    first, second = (consumed(obj.__dlpack__(**VERSIONED)) for _ in range(2))
    untouched = described(second.dl_tensor)
    assert described(first.dl_tensor) == untouched
    for array in (first.dl_tensor.shape, first.dl_tensor.strides):
        array[0] = array[1] = 77
    first.dl_tensor.data, first.dl_tensor.ndim, first.flags = None, 0, 7
    assert described(second.dl_tensor) == untouched and second.flags == 0
    third = obj.__dlpack__(**VERSIONED)
    assert described(opened(third).dl_tensor) == untouched
    release(first)
    assert described(second.dl_tensor) == untouched
    release(second)


@isolated
def test_P13_fork_then_release_on_both_sides():
    counters = {name: Counter() for name in WAYS}
    structs = {name: consumed(make(counters[name])) for name, make in WAYS.items()}
    child = os.fork()
    if child == 0:
        for name, managed in structs.items():
            (release if len(name) % 2 else release_on_native_thread)(managed)
        os._exit(0 if all(counter.releases == 1 for counter in counters.values()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for name, managed in structs.items():
        assert counters[name].releases == 0, "the child's release is the child's"
        release(managed)
        assert counters[name].releases == 1
