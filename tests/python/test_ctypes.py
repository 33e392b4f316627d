# tests/python/test_ctypes.py: producers written with ctypes alone, an implementation of DLPack independent of our headers.
from __future__ import annotations

import ctypes

import tenon
import tenon_probe
from fakes_ctypes import CtypesProducer
from isolation import isolated
from producers import exactly_once, refuse, take


@isolated
def test_C01_ctypes_structs_of_both_kinds():
    for versioned in (True, False):
        producer = CtypesProducer(versioned=versioned)
        with exactly_once(producer, exports=2):
            seen = take(producer)
            assert seen.shape == (2, 3) and seen.dtype == "int32" and seen.readonly == (not versioned)
            assert seen.data_ptr == ctypes.addressof(producer.memory)
            assert tenon_probe.borrow(producer)["sum"] == 21


@isolated
def test_C05_F30_ctypes_refusal_is_released_by_the_capsule():
    for fields in (dict(flags=1 << 20), dict(shape=(-1,)), dict(shape=(2**62, 8))):
        producer = CtypesProducer(**fields)
        with exactly_once(producer):
            refuse(producer)


@isolated
def test_F15_ctypes_deleter_runs_python_on_a_native_thread():
    producer = CtypesProducer()
    with exactly_once(producer):
        tenon_probe.hold(producer).drop_on_thread()


@isolated
def test_F08_ctypes_deleter_with_an_exception_pending():
    producer = CtypesProducer()
    with exactly_once(producer):
        mine = ValueError("mine")
        assert tenon_probe.hold(producer).drop_with_error(mine) is mine


@isolated
def test_C13_ctypes_strides():
    producer = CtypesProducer(shape=(3, 2), strides=(1, 3))
    with exactly_once(producer, exports=2):
        assert take(producer).strides == (1, 3)
        copied = tenon.asdlpack(producer, copy=True)
        assert (ctypes.c_int32 * 6).from_address(copied.data_ptr)[:] == [1, 4, 2, 5, 3, 6]
        del copied


@isolated
def test_F05_ctypes_many_imports():
    producer = CtypesProducer()
    with exactly_once(producer, exports=500):
        for _ in range(500):
            take(producer)
