# tests/python/test_no_memory.py: every allocation fails once: MemoryError or success, nothing leaked, nothing released twice.
from __future__ import annotations

import pytest
from isolation import run_isolated

SWEEP = """
import _testcapi, gc, sys
import fakes, tenon, tenon_probe
from arrow_producers import Array, Device, Stream, list_schema, lists, numbers, prepared
from fake_buffer import Buffer
from producers import Ancient, Producer, exchange_class

def capsule(versioned):
    struct = fakes.Struct(shape=(1,) * 7, versioned=versioned)   # more axes than fit inside the tensor
    return struct.capsule(), struct

def interface():
    memory = bytearray(64)
    class Host:
        __array_interface__ = dict(version=3, shape=(4,), typestr="|u1", data=memory)
    return Host(), None

def version_2():
    class Old:
        __array_shape__, __array_typestr__, __array_data__ = (2,), "|u1", ("0x10000", False)
    return Old(), None

def cuda():
    class Device:
        __cuda_array_interface__ = dict(version=3, shape=(4,), typestr="|u1", data=(0x7F0000000000, False))
    return Device(), None

def counted(make):
    def build():
        obj = make()
        return obj, getattr(obj, "struct", obj)
    return build

def arrow(make):
    return counted(lambda: prepared(make()))   # the fakes themselves need memory, too

MAKERS = {
    "versioned": lambda: capsule(True), "legacy": lambda: capsule(False),
    "producer": counted(Producer), "ancient": counted(Ancient),
    "exchange": counted(lambda: exchange_class()()), "malformed": counted(lambda: Producer(shape=(-1,))),
    "buffer": counted(lambda: Buffer(shape=(4,))), "bad_buffer": counted(lambda: Buffer(shape=(4,), format="T{}")),
    "bytearray": lambda: (bytearray(8), None), "interface": interface, "version_2": version_2, "cuda": cuda,
    "arrow": arrow(Array), "arrow_device": arrow(Device), "arrow_stream": arrow(lambda: Stream(numbers())),
    "arrow_lists": arrow(lambda: Array(lists(3, numbers()), list_schema(3))),
    "arrow_malformed": arrow(lambda: Array(numbers(length=-1))),
    "arrow_chunks": arrow(lambda: Stream(numbers(), numbers())),
    "arrow_failing": arrow(lambda: Stream(numbers(), next_error=5, error="no luck")),
    "nothing": lambda: (object(), None),
}
IMPORTERS = {
    "asdlpack": tenon.asdlpack, "copy": lambda obj: tenon.asdlpack(obj, copy=True),
    "borrow": lambda obj: tenon_probe.borrow(obj, read=False), "hold": tenon_probe.hold,
}
make, importer = MAKERS[sys.argv[1]], IMPORTERS[sys.argv[2]]

def attempt(obj, n):
    _testcapi.set_nomemory(n, n + 1)
    try:
        got = importer(obj)
        got = None
    except BaseException as error:
        _testcapi.remove_mem_hooks()
        error.__traceback__ = None
        return type(error)
    finally:
        _testcapi.remove_mem_hooks()
    return None

quiet, outcomes = 0, set()
for n in range(400):
    obj, counter = make()
    outcome = attempt(obj, n)
    del obj
    if counter is not None:
        gc.collect()
        assert counter.exports == counter.releases, (n, outcome, counter.exports, counter.releases)
    outcomes.add(outcome)
    quiet = 0 if outcome is MemoryError else quiet + 1
    if quiet == 20:      # far beyond the last allocation
        break
normal = attempt(make()[0], 10**9)
assert outcomes <= {MemoryError, normal}, outcomes
print(n, outcomes)
"""


PRODUCERS = ("versioned", "legacy", "producer", "ancient", "exchange", "malformed", "buffer", "bad_buffer", "bytearray",
             "interface", "version_2", "cuda", "arrow", "arrow_device", "arrow_stream", "arrow_lists", "arrow_malformed",
             "arrow_chunks", "arrow_failing", "nothing")


@pytest.mark.parametrize("producer", PRODUCERS)
def test_F28_every_allocation_fails_once(producer):
    pytest.importorskip("_testcapi")
    run_isolated(SWEEP, args=(producer, "asdlpack"))


@pytest.mark.parametrize("importer", ["copy", "borrow", "hold"])
@pytest.mark.parametrize("producer", ["producer", "buffer", "exchange", "arrow", "arrow_stream"])
def test_F28_every_allocation_fails_once_in_the_other_ways_in(producer, importer):
    pytest.importorskip("_testcapi")
    run_isolated(SWEEP, args=(producer, importer))


FIRST_USE = """
import _testcapi, sys
import fakes, tenon_probe
from producers import Producer
n = int(sys.argv[1])
producer = Producer()
_testcapi.set_nomemory(n, n + 1)
try:
    tenon_probe.borrow(producer, read=False)     # makes this module's record of the interpreter
except MemoryError:
    _testcapi.remove_mem_hooks()
_testcapi.remove_mem_hooks()
assert tenon_probe.borrow(producer)["sum"] == 15
assert producer.struct.exports == producer.struct.releases
"""


def test_F28_allocation_fails_in_the_first_import_of_a_process():
    pytest.importorskip("_testcapi")
    for n in range(0, 48, 3):
        run_isolated(FIRST_USE, args=(n,))
