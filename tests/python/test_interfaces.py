# tests/python/test_interfaces.py: `__array_interface__` and `__cuda_array_interface__`, field by field.
from __future__ import annotations

import ctypes
import gc
import sys
import weakref

import pytest
import tenon
import tenon_probe
from fake_buffer import Buffer
from fake_cuda import ASKED, RECORDS_ALL, Driver, remembers, stream_handle, waits, within
from isolation import isolated, table
from producers import NOWHERE, exactly_once, refuse, take

MALFORMED = tenon.MalformedError
NATIVE, SWAPPED = ("<", ">") if sys.byteorder == "little" else (">", "<")
MEMORY = (ctypes.c_float * 64)(*range(64))
ADDRESS = ctypes.addressof(MEMORY)
ABSENT = object()


def changed(base: dict, changes: dict) -> dict:
    return {key: value for key, value in {**base, **changes}.items() if value is not ABSENT}


def array_interface(**changes):
    """An object whose interface describes MEMORY, with these changes."""
    base = dict(version=3, shape=(2, 3), typestr=NATIVE + "f4", data=(ADDRESS, False))
    return type("Host", (), {"__array_interface__": changed(base, changes)})()


def cuda_interface(**changes):
    base = dict(version=3, shape=(2, 3), typestr=NATIVE + "f4", data=(NOWHERE, False), strides=None, stream=None)
    return type("Device", (), {"__cuda_array_interface__": changed(base, changes)})()


def borrow(obj, **options):
    return tenon_probe.borrow(obj, read=False, **options)


def is_refused(make, exception=MALFORMED, match=None, **changes):
    for importer in (tenon.asdlpack, borrow):
        refuse(make(**changes), exception, match, importer)


def is_taken(make, wanted, **changes):
    Driver()
    seen = take(make(**changes))
    for name, value in wanted.items():
        assert getattr(seen, name) == value, (name, getattr(seen, name), value)
    borrow(make(**changes))


LONG = 2**63


def for_both(rows):
    """The rows that hold for both interfaces, under both names."""
    out = {}
    for name, row in rows.items():
        out[f"test_{name}_host"] = dict(make=array_interface, **row)
        out[f"test_{name}_cuda"] = dict(make=cuda_interface, **row)
    return out


table(globals(), for_both({
    "F72_no_shape": dict(shape=ABSENT, match="shape"),
    "F72_no_typestr": dict(typestr=ABSENT, match="typestr"),
    "F72_version_0": dict(version=0, exception=BufferError, match="version"),
    "F72_no_version": dict(version=ABSENT, exception=BufferError, match="version"),
    "F72_version_1": dict(version=1, exception=BufferError, match="version"),
    "F72_version_4": dict(version=4, exception=BufferError, match="version"),
    "F72_version_text": dict(version="3", exception=BufferError, match="version"),
    "F72_version_huge": dict(version=2**80, exception=BufferError, match="version"),
    "F72_65_axes": dict(shape=(1,) * 65, exception=BufferError, match="shape.*65"),
    "F72_shape_is_an_int": dict(shape=6, match="shape"),
    "F72_shape_of_floats": dict(shape=(2.0, 3), match="shape"),
    "F72_shape_of_huge_ints": dict(shape=(2**80,), match="shape"),
    "F72_shape_of_text": dict(shape=("2",), match="shape"),
    "F72_negative_extent": dict(shape=(2, -3), match=r"shape\[1\]"),
    "F72_extents_that_wrap": dict(shape=(2**32, 2**32, 16), match="shape"),
    "F72_typestr_bytes": dict(typestr=b"<f4", match="typestr"),
    "F72_typestr_empty": dict(typestr="", exception=BufferError, match="typestr"),
    "F72_typestr_nul": dict(typestr=NATIVE + "f4\0x", exception=BufferError, match="typestr"),
    "F72_typestr_surrogate": dict(typestr="\udc80f4", match="typestr"),
    "F74_typestr_void": dict(typestr="|V8", exception=BufferError, match="typestr"),
    "F74_typestr_object": dict(typestr="|O8", exception=BufferError, match="typestr"),
    "F74_typestr_text": dict(typestr=NATIVE + "U4", exception=BufferError, match="typestr"),
    "F74_typestr_datetime": dict(typestr=NATIVE + "M8[ns]", exception=BufferError, match="typestr"),
    "F66_typestr_swapped": dict(typestr=SWAPPED + "f4", exception=BufferError, match="byte order"),
    "F74_mask": dict(mask=array_interface(), exception=BufferError, match="mask"),
    "F74_structured_descr": dict(descr=[("x", "<f4")], exception=BufferError, match="descr"),
    "F74_structured_descr_of_two": dict(descr=[("", "<f2"), ("", "<f2")], exception=BufferError, match="descr"),
    "F74_descr_is_not_a_list": dict(descr="<f4", exception=BufferError, match="descr"),
    "F78_strides_of_another_length": dict(strides=(4,), match="strides"),
    "F78_strides_text": dict(strides="44", match="strides"),
    "F54_stride_not_a_multiple": dict(strides=(13, 4), exception=BufferError, match=r"strides\[0\]"),
    "F39_strides_that_wrap": dict(strides=(2**62, 2**62), match="strides"),
    "F39_lowest_stride": dict(strides=(-LONG, 4), match="strides"),
    "F73_address_is_a_float": dict(data=(1e6, False), match="data"),
    "F73_address_is_a_bool": dict(data=(True, False), match="data"),
    "F73_address_is_None": dict(data=(None, False), match="data"),
    "F73_address_is_negative": dict(data=(-8, False), match="data"),
    "F73_address_is_huge": dict(data=(2**64, False), match="data"),
    "F73_address_is_junk_text": dict(data=("zebra", False), match="data"),
    "F73_data_of_one": dict(data=(ADDRESS,), match="data"),
    "F73_data_of_three": dict(data=(ADDRESS, False, 0), match="data"),
    "F73_null_address": dict(data=(0, False), match="data"),
    "F40_address_that_wraps": dict(data=(2**64 - 8, False), match="strides|byte_offset"),
}), is_refused)

table(globals(), for_both({
    "F78_strides_None": dict(strides=None, wanted=dict(strides=(3, 1))),
    "F78_strides_absent": dict(strides=ABSENT, wanted=dict(strides=(3, 1))),
    "F78_strides_list": dict(strides=[4, 8], wanted=dict(strides=(1, 2), is_contiguous=False)),
    "F78_strides_negative": dict(strides=(-12, -4), wanted=dict(strides=(-3, -1))),
    "F78_strides_zero": dict(strides=(0, 4), wanted=dict(strides=(0, 1))),
    "F78_shape_list": dict(shape=[2, 3], wanted=dict(shape=(2, 3))),
    "F78_scalar": dict(shape=(), wanted=dict(shape=(), size=1)),
    "F74_plain_descr": dict(descr=[("", NATIVE + "f4")], wanted=dict(dtype="float32")),
    "F74_mask_None": dict(mask=None, wanted=dict(size=6)),
    "F77_empty_with_null_address": dict(shape=(0, 3), data=(0, False), wanted=dict(size=0, data_ptr=0)),
    "F77_empty_with_huge_extents": dict(shape=(0, 2**62, 2**62), data=(0, False), wanted=dict(size=0)),
    "F55_read_only": dict(data=(ADDRESS, True), wanted=dict(readonly=True)),
    "F66_typestr_one_byte": dict(typestr="|u1", wanted=dict(dtype="uint8")),
    "F66_typestr_swapped_one_byte": dict(typestr=SWAPPED + "i1", wanted=dict(dtype="int8")),
    "F46_typestr_bool": dict(typestr="|b1", wanted=dict(dtype="bool")),
}), is_taken)


@isolated
def test_F73_values_are_read_where_they_are():
    assert tenon_probe.borrow(array_interface())["sum"] == 15
    assert tenon_probe.borrow(array_interface(data=(ADDRESS + 8, False)))["sum"] == 15 + 12
    assert take(array_interface()).data_ptr == ADDRESS


@isolated
def test_F72_F81_interface_that_is_not_a_dictionary():
    for attribute in ("__array_interface__", "__cuda_array_interface__"):
        for value in (7, (), [], "text"):
            refuse(type("Odd", (), {attribute: value})(), MALFORMED, attribute)
        refuse(type("Odd", (), {attribute: None})(), TypeError, "no tensor protocol")


@isolated
def test_C25_property_that_raises_AttributeError_is_absent():
    """JAX arrays on the CPU have such a `__cuda_array_interface__`."""
    class Both:
        __cuda_array_interface__ = property(lambda self: self.no_such_thing)
        __array_interface__ = array_interface().__array_interface__

    assert take(Both()).device == "cpu"


@isolated
def test_C26_interface_whose_pieces_raise():
    mine = ZeroDivisionError("mine")

    class Number:
        def __index__(self):
            raise mine

    class Key(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            raise mine

    for changes in (dict(shape=(Number(),)), dict(strides=(Number(), 4)), dict(data=bytearray(24), offset=Number())):
        refuse(array_interface(**changes), ZeroDivisionError, "mine")
    hostile = type("Odd", (), {"__array_interface__": {Key("shape"): 1}})()
    refuse(hostile, (ZeroDivisionError, BufferError))


@isolated
def test_F73_buffer_as_data_with_an_offset():
    memory = bytearray(MEMORY)
    obj = array_interface(data=memory, offset=8)
    tensor = tenon.asdlpack(obj)
    assert tenon_probe.borrow(tensor)["sum"] == 15 + 12
    try:
        memory.append(0)
    except BufferError:
        pass
    else:
        raise AssertionError("the buffer is not held")
    del tensor
    memory.append(0)


def out_of_bounds(exception=MALFORMED, size=24, **changes):
    memory = bytearray(size)
    for importer in (tenon.asdlpack, borrow):
        refuse(array_interface(**{"data": memory, **changes}), exception, None, importer)
    memory.append(0)  # nothing holds it


table(globals(), {
    "test_F73_shape_beyond_the_buffer": dict(shape=(2, 4)),
    "test_F73_offset_beyond_the_buffer": dict(offset=28),
    "test_F73_offset_pushes_the_end_out": dict(offset=4),
    "test_F73_negative_offset": dict(offset=-4),
    "test_F73_huge_offset": dict(offset=2**63 - 1),
    "test_F73_offset_beyond_64_bits": dict(offset=2**80),
    "test_F73_offset_is_text": dict(offset="4"),
    "test_F73_negative_stride_leaves_the_buffer": dict(strides=(-12, 4)),
    "test_F73_strides_leave_the_buffer": dict(strides=(16, 4)),
    "test_F73_end_that_overflows": dict(shape=(2**60 - 1,), typestr=NATIVE + "f8", offset=16, size=100),
    "test_F73_end_that_overflows_with_strides": dict(shape=(2, 2), strides=(2**62, 2**61), offset=16, size=100),
    "test_F73_low_end_that_overflows": dict(shape=(2,), strides=(-(2**62),), offset=16),
}, out_of_bounds)


@isolated
def test_F73_negative_strides_within_the_buffer():
    obj = array_interface(data=bytearray(MEMORY), shape=(4,), strides=(-4,), offset=12)
    assert tenon_probe.borrow(obj)["sum"] == 0 + 1 + 2 + 3


@isolated
def test_F73_null_buffer_with_an_offset():
    fake = Buffer(data=None, shape=(16,), format="B", itemsize=1)
    for offset in (0, 4):
        with exactly_once(fake, exports=None):
            refuse(array_interface(data=fake, shape=(4,), typestr="|u1", offset=offset))


@isolated
def test_F73_buffer_whose_length_lies():
    for length in (-1, -(2**63)):
        fake = Buffer(shape=(16,), format="B", itemsize=1, len=length)
        with exactly_once(fake, exports=None):
            refuse(array_interface(data=fake, shape=(4,), typestr="|u1"), MALFORMED)


@isolated
def test_F73_data_that_is_no_buffer():
    for data in (7, "text", {}):
        refuse(array_interface(data=data), MALFORMED, "data")
    refuse(array_interface(data=ABSENT), MALFORMED, "data")


@isolated
def test_F70_object_itself_is_the_buffer():
    class Both(bytearray):
        __array_interface__ = dict(version=3, shape=(2, 3), typestr=NATIVE + "f4")

    # The buffer protocol goes first; without it the interface may point back to the object.
    assert take(Both(24)).shape == (24,)


@isolated
def test_F72_version_2_attributes():
    class Old:
        __array_shape__ = (2, 3)
        __array_typestr__ = NATIVE + "f4"
        __array_data__ = (hex(ADDRESS), False)

    assert tenon_probe.borrow(Old())["sum"] == 15
    assert take(Old()).data_ptr == ADDRESS
    Old.__array_strides__ = [4, 8]
    assert take(Old()).strides == (1, 2)
    Old.__array_data__ = ("junk", False)
    refuse(Old(), MALFORMED, "data")
    del Old.__array_shape__
    refuse(Old(), TypeError, "no tensor protocol")


@isolated
def test_F71_dictionary_as_the_only_owner():
    class Memory(ctypes.Array):
        _type_, _length_ = ctypes.c_float, 8

    class Owner(dict):
        pass

    seen = []

    class Fresh:
        @property
        def __array_interface__(self):
            memory = Memory(*range(8))
            owner = Owner(version=3, shape=(8,), typestr=NATIVE + "f4", data=(ctypes.addressof(memory), False))
            owner["owner"] = memory
            seen.append(weakref.ref(memory))
            return owner

    tensor = tenon.asdlpack(Fresh())
    gc.collect()
    assert seen[0]() is not None
    assert tenon_probe.borrow(tensor)["sum"] == 28
    del tensor
    gc.collect()
    assert seen[0]() is None
    assert tenon_probe.borrow(Fresh())["sum"] == 28
    gc.collect()
    assert seen[1]() is None


@isolated
def test_F62_object_behind_an_interface_is_kept_alive():
    class Owner:
        def __init__(self):
            self.memory = (ctypes.c_float * 4)(1, 2, 3, 4)
            self.__array_interface__ = dict(version=3, shape=(4,), typestr=NATIVE + "f4",
                                            data=(ctypes.addressof(self.memory), False))

    owner = Owner()
    seen = weakref.ref(owner)
    tensor = tenon.asdlpack(owner)
    del owner
    gc.collect()
    assert seen() is not None and tenon_probe.borrow(tensor)["sum"] == 10
    del tensor
    gc.collect()
    assert seen() is None


@isolated
def test_F59_cycle_through_an_interface_is_collected():
    obj = array_interface()
    seen = weakref.ref(obj)
    obj.tensor = tenon.asdlpack(obj)
    obj.tensor_again = tenon.asdlpack(obj)
    del obj
    gc.collect()
    assert seen() is None


@isolated
def test_F72_dictionary_that_changes_while_it_is_read():
    class Meddler:
        def __index__(self):
            interface.clear()
            gc.collect()
            return 2

    interface = dict(version=3, shape=(Meddler(), 3), typestr=NATIVE + "f4", data=(ADDRESS, False), strides=[12, 4])
    obj = type("Odd", (), {"__array_interface__": interface})()
    assert take(obj).shape == (2, 3)


@isolated
def test_F72_shape_list_that_changes_while_it_is_read():
    class Meddler:
        def __index__(self):
            shape.clear()
            return 2

    shape = [Meddler(), 3, 1]
    assert take(array_interface(shape=shape)).shape == (2, 3, 1)


@isolated
def test_F75_version_2_has_no_stream_so_that_the_device_is_waited_for():
    driver = Driver()
    seen = take(cuda_interface(version=2, stream=ABSENT))
    assert (seen.device, seen.data_ptr, seen.shape) == ("cuda:0", NOWHERE, (2, 3))
    assert driver.calls() == ASKED + within("cuCtxSynchronize") + RECORDS_ALL
    take(cuda_interface(version=2, stream=ABSENT), stream=-1)
    assert driver.calls() == ASKED, "told not to"
    tenon.inspect(cuda_interface(version=2, stream=ABSENT))
    assert driver.calls() == ASKED, "a look waits for nothing"
    take(cuda_interface(version=2, stream=ABSENT, shape=(0, 3)))
    assert "cuCtxSynchronize" not in driver.calls()


@isolated
def test_F76_streams_that_are_none():
    driver = Driver()
    for stream in (0, -1, "1", 1.0, True, 2**80, 3, 7, 0x10, NOWHERE, stream_handle(1) + 1):
        refuse(cuda_interface(stream=stream), ValueError, "stream")
        refuse(cuda_interface(stream=stream), ValueError, "stream", borrow)
    assert driver.calls() == []


@isolated
def test_F76_the_stream_is_remembered_and_waited_for_by_whoever_reads():
    driver, side, other = Driver(), stream_handle(1), stream_handle(2)
    for stream, is_named in ((None, False), (ABSENT, False), (1, True)):
        t = tenon.asdlpack(cuda_interface(stream=stream))
        assert (t.stream, driver.calls()) == (1, ASKED)
        del t
        assert driver.calls() == ([] if is_named else RECORDS_ALL), "who names no stream may use its memory at once"
        borrow(cuda_interface(stream=stream))
        assert driver.calls() == ASKED + ([] if is_named else RECORDS_ALL), "and the call may have queued work"
    for stream in (2, side):
        driver.calls()
        t = tenon.asdlpack(cuda_interface(stream=stream))
        assert t.stream == stream
        assert driver.calls() == ASKED + remembers(stream), "while the stream is sure to be there"
        t.__dlpack__(stream=other)
        assert f"cuStreamWaitEvent {other} event 0" in driver.calls()
        del t
        assert driver.all_closed()


@isolated
def test_F76_the_consumers_stream_waits_for_the_producers():
    driver, side, mine = Driver(), stream_handle(1), stream_handle(2)
    t = tenon.asdlpack(cuda_interface(stream=side), stream=mine)
    assert (t.stream, driver.calls()) == (mine, ASKED + waits(mine, side) + remembers(mine))
    t = tenon.asdlpack(cuda_interface(stream=side), stream=1)
    assert (t.stream, driver.calls()) == (1, ASKED + waits(1, side) + ["cuEventDestroy event"] + RECORDS_ALL)
    for same in (dict(stream=side), dict(stream=None)):
        t = tenon.asdlpack(cuda_interface(**same), stream=side)
        assert not any(call.startswith("cuStreamWait") for call in driver.calls()), "there is nothing to wait for"
    del t
    driver.calls()
    t = tenon.asdlpack(cuda_interface(stream=side), stream=-1)
    assert (t.stream, driver.calls()) == (1, ASKED), "the caller sees to it"
    for number in (0, 7, -2):
        refuse(cuda_interface(stream=side), ValueError, "stream", stream=number)
    del t
    assert driver.all_closed()


@isolated
def test_the_device_is_the_one_the_driver_says():
    driver = Driver()
    for where, device in ((dict(ordinal=1), "cuda:1"), (dict(managed=True), "cuda_managed:0"),
                          (dict(ordinal=1, pinned=True), "cuda_host:1")):
        driver.place(**where)
        assert take(cuda_interface()).device == device
        assert borrow(cuda_interface())["device"] == device
    driver.place(known=False)
    refuse(cuda_interface(), ValueError, "CUDA knows of no memory at this address")
    assert take(cuda_interface(shape=(0, 3), data=(0, False))).device == "cuda:0", "nothing lies nowhere"


@isolated
def test_memory_of_the_interface_is_copied_where_it_is_wanted():
    driver = Driver()
    on_device = cuda_interface(data=(ADDRESS, True))
    for options in (dict(device="cpu"), dict(device="cpu", copy=True)):
        t = tenon.asdlpack(on_device, **options)
        assert (t.device, t.tolist(), t.readonly) == ("cpu", [[0, 1, 2], [3, 4, 5]], False)
    driver.calls()
    t = tenon.asdlpack(on_device, copy=True)
    assert (t.device, t.readonly, t.flags, driver.allocations) == ("cuda:0", False, 2, 1)
    assert ctypes.string_at(t.data_ptr, 24) == bytes(MEMORY)[:24]
    assert "cuMemcpyDtoD 24 1" in driver.calls()
    del t
    assert driver.allocations == 0
    refuse(on_device, BufferError, "copy=False", device="cuda:1", copy=False)
    assert tenon_probe.borrow(on_device)["sum"] is None
    driver.place(known=False)
    refuse(on_device, ValueError, "no memory at this address", device="cpu")


@isolated
def test_F73_cuda_data_must_be_an_address():
    for data in (ABSENT, None, bytearray(24), 7):
        refuse(cuda_interface(data=data), MALFORMED, "data")


def test_version_2_as_a_dictionary():
    """NumPy takes it: the fields are those of version 3."""
    memory = (ctypes.c_float * 6)(*range(6))

    class Old:
        __array_interface__ = dict(
            version=2, shape=(2, 3), typestr=NATIVE + "f4", data=(ctypes.addressof(memory), False))

    assert tenon.asdlpack(Old()).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_an_interface_cannot_say_is_not_read_by_another():
    """Arrow knows nothing of byte orders: the same object's numbers would be others."""
    from arrow_producers import Array

    class Both(Array):
        __array_interface__ = dict(version=3, shape=(6,), typestr=SWAPPED + "i4", data=bytes(24))

    producer = Both()
    with pytest.raises(BufferError, match="byte order") as caught:
        tenon.asdlpack(producer)
    assert "Arrow" not in str(caught.value) and producer.calls == []
    assert [tried.name for tried in tenon.inspect(producer).tried][-1] == "__array_interface__"
