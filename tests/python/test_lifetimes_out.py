# tests/python/test_lifetimes_out.py: memory that leaves, from its consumers' side: who may go first, how often it may be read, how deep it may be passed on.
from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref

import pytest
import tenon
import tenon_exports
import tenon_probe
from fakes_ctypes import consumed, release
from isolation import isolated, run_isolated
from producers import exactly_once, refuse
from tenon_exports import Counter, Matrix

np = pytest.importorskip("numpy")

VERSIONED = dict(max_version=(1, 3))
FIRST = b"\x00\x01\x02\x03"

# What a consumer may make of an object; each keeps the memory.
CONSUMERS = {
    "numpy.from_dlpack": np.from_dlpack,
    "numpy.asarray": np.asarray,
    "memoryview": memoryview,
    "asdlpack of the object": tenon.asdlpack,
    "asdlpack of a capsule": lambda obj: tenon.asdlpack(obj.__dlpack__(**VERSIONED)),
    "asdlpack of a legacy capsule": lambda obj: tenon.asdlpack(obj.__dlpack__()),
    "held by C++": tenon_probe.hold,
    "like an array": lambda obj: tenon_exports.there_and_back(obj, np.zeros(1)),
}
every_consumer = pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS.keys())


def bytes_of(consumer) -> bytes:
    """The first four bytes, as the consumer sees them."""
    return memoryview(np.asarray(consumer)).tobytes()[:4] if not isinstance(consumer, tenon_probe.Held) else FIRST


@every_consumer
def test_object_goes_before_the_array(consume):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        array = consume(obj)
        del obj
        gc.collect()
        assert counter.releases == 0 and bytes_of(array) == FIRST
        del array
        assert counter.releases == 1


@every_consumer
def test_array_goes_before_the_object(consume):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        array = consume(obj)
        del array
        gc.collect()
        assert counter.releases == 0 and bytes_of(obj) == FIRST
        del obj
        assert counter.releases == 1


@every_consumer
def test_both_go_at_once(consume):
    counter = Counter()
    with exactly_once(counter):
        pair = [tenon_exports.produce(counter)]
        pair.append(consume(pair[0]))
        pair.append(pair)
        del pair
        gc.collect()
        assert counter.releases == 1


@pytest.mark.parametrize("options", [{}, VERSIONED, dict(copy=True)], ids=str)
def test_capsule_that_is_never_used(options):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        capsules = [obj.__dlpack__(**options) for _ in range(100)]
        del obj
        gc.collect()
        assert counter.releases == ("copy" in options)
        del capsules
        assert counter.releases == 1


@pytest.mark.parametrize("make", [tenon_exports.versioned, tenon_exports.legacy], ids=["versioned", "legacy"])
def test_capsule_that_is_used_twice(make):
    counter = Counter()
    with exactly_once(counter):
        capsule = make(counter)
        first = tenon.asdlpack(capsule)
        refuse(capsule, BufferError, "consumed already")
        refuse(capsule, (BufferError, ValueError, TypeError, AttributeError), None, np.from_dlpack)
        assert counter.releases == 0
        del first
        assert counter.releases == 1
        refuse(capsule, BufferError, "consumed already")


@pytest.mark.parametrize("last", CONSUMERS)
def test_many_consumers_of_one_object(last):
    """Whichever goes last lets go of the memory, and no other."""
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        made = {name: [consume(obj) for _ in range(10)] for name, consume in CONSUMERS.items()}
        kept = made.pop(last)
        del obj
        made.clear()
        del kept[1:]
        gc.collect()
        assert counter.releases == 0 and bytes_of(kept[0]) == FIRST
        del kept
        gc.collect()
        assert counter.releases == 1


def test_consumer_outlives_the_object_and_its_module():
    run_isolated("""
import gc, sys
import numpy as np
import tenon, tenon_exports, tenon_probe
counter = tenon_exports.Counter()
obj = tenon_exports.produce(counter)
kept = [np.from_dlpack(obj), memoryview(obj), tenon.asdlpack(obj.__dlpack__(max_version=(1, 3))), tenon_probe.hold(obj)]
for name in [name for name in sys.modules if name.startswith("tenon")]:
    del sys.modules[name]
del obj, tenon, tenon_exports, tenon_probe
gc.collect()
assert counter.releases == 0 and kept[0].tobytes()[:4] == bytes(range(4))
del kept
gc.collect()
assert counter.releases == 1
""")


def passed_on(obj, times, way):
    for _ in range(times):
        obj = tenon.asdlpack(way(obj), trust_legacy=True)
    return obj


PASSES = {
    "versioned": lambda obj: obj.__dlpack__(**VERSIONED), "legacy": lambda obj: obj.__dlpack__(),
    "memoryview": memoryview, "array": np.asarray,
}


@pytest.mark.parametrize("way", PASSES)
@pytest.mark.parametrize("start", [tenon_exports.produce, tenon_exports.versioned], ids=["object", "capsule"])
def test_chain_of_ten_thousand(start, way):
    run_isolated(f"""
from test_lifetimes_out import *
for drop in (tenon_probe.Held.drop, tenon_probe.Held.drop_on_thread):
    counter = Counter()
    with exactly_once(counter):
        end = passed_on(tenon.asdlpack(tenon_exports.{start.__name__}(counter)), 10_000, PASSES[{way!r}])
        assert bytes_of(end) == FIRST
        held = tenon_probe.hold(end)
        del end
        gc.collect()
        assert counter.releases == 0
        drop(held)
        gc.collect()
        assert counter.releases == 1
""")


@isolated
def test_chain_whose_middle_is_held_elsewhere():
    counter = Counter()
    with exactly_once(counter):
        links = [tenon_exports.produce(counter)]
        for _ in range(3000):
            links.append(tenon.asdlpack(links[-1].__dlpack__(**VERSIONED)))
        middle = links[1500]
        del links
        gc.collect()
        assert counter.releases == 0 and bytes_of(middle) == FIRST
        del middle
        assert counter.releases == 1


def test_weak_references():
    counter = Counter()
    with exactly_once(counter):
        obj, gone = tenon_exports.produce(counter), []
        seen = weakref.ref(obj, lambda _: gone.append(counter.releases))
        array = np.from_dlpack(obj)
        del obj
        assert seen() is not None, "the array keeps the very object"
        del array
        assert seen() is None and gone == [0], "called before the memory goes"


def test_cycles_of_objects_and_arrays_are_collected():
    counter = Counter()
    with exactly_once(counter, exports=3):
        for consume in (np.from_dlpack, memoryview, lambda obj: obj.__dlpack__()):
            class Holder:
                pass

            holder = Holder()
            holder.array, holder.self = consume(tenon_exports.produce(counter)), holder
            seen = weakref.ref(holder)
            del holder
            gc.collect()
            assert seen() is None


def test_cycle_through_a_struct_is_no_worse_than_a_leak():
    """A capsule hides what it keeps: the collector cannot see through it, and must not be fooled by it."""
    class Sub(Matrix):
        pass

    matrix = Sub(2, 3)
    matrix.capsule = matrix.__dlpack__()
    seen, address = weakref.ref(matrix), matrix.address
    del matrix
    gc.collect()
    kept = seen()
    assert kept is not None and kept.address == address
    del kept.capsule
    del kept
    assert seen() is None


@pytest.mark.parametrize("way", ["object", "capsule", "native", "array", "buffer", "refused"])
def test_deleter_that_throws_is_nobodys_problem(way):
    counter = Counter()
    counter.throws = True
    if way == "refused":
        refuse(counter, BufferError, None, lambda c: tenon_exports.legacy(c, readonly=True))
    elif way == "capsule":
        tenon_exports.versioned(counter)
    elif way == "native":
        tenon_probe.hold(tenon_exports.versioned(counter)).drop_on_thread()
    else:
        obj = tenon_exports.produce(counter)
        array = {"object": lambda o: None, "array": np.from_dlpack, "buffer": memoryview}[way](obj)
        del obj, array
    assert counter.exports == counter.releases == 1


def test_threads_that_export_and_drop_the_same_object():
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)

        def work(consume):
            for _ in range(300):
                consume(obj)

        threads = [threading.Thread(target=work, args=(consume,)) for consume in CONSUMERS.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.releases == 0
        del obj, work, threads


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_structs_of_one_object_released_in_any_order(order):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        structs = [consumed(obj.__dlpack__(**options)) for options in (VERSIONED, {}, dict(copy=True))]
        before = sys.getrefcount(obj)
        for i in order:
            release(structs[i])
        assert sys.getrefcount(obj) == before - 2
        del obj
