# tests/python/test_producer_cuda.py: streams and copies of CUDA and ROCm memory, rules P29 and P32 to P35, with a driver that writes every call down.
from __future__ import annotations

import ctypes
import os
import sys
import weakref
from types import SimpleNamespace
from unittest.mock import patch

import fakes
import pytest
import tenon
import tenon_exports
import tenon_probe
from fake_cuda import ASKED, RECORDS_ALL, Driver, library, stream_handle, waits, within
from fakes_ctypes import (  # noqa: F401 - some are for the programs below
    Versioned, consumed, described, name_of, new_capsule, opened, release, release_on_native_thread, table_of)
from isolation import isolated, run_isolated, table, wait_until
from producers import CPU, CUDA, CUDA_HOST, IS_COPIED, NOWHERE, ROCM, Producer, exactly_once, exchange_class, refuse
from tenon_exports import Counter, Matrix, call_slot

np = pytest.importorskip("numpy")

CUDA_MANAGED = (13, 0)
VERSIONED = dict(max_version=(1, 3))
SIDE, OTHER = stream_handle(1), stream_handle(2)


def owned(obj):
    """The struct that a C consumer gets by the exchange table."""
    out = ctypes.c_void_p()
    assert call_slot(table_of(type(obj)).own, id(obj), ctypes.addressof(out)) == (0, None)
    return Versioned.from_address(out.value)


def fetches(count):
    return [*ASKED, *ASKED, *within("cuCtxSynchronize", f"cuMemcpyDtoH {count}")]


def is_loaded() -> bool:
    """Whether anybody has loaded the driver into this process."""
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def exported(**options):
    """Exports memory on a device; nothing follows its address."""
    fields = {name: options.pop(name) for name in ("device", "address", "byte_offset") if name in options}
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, **{"device": CUDA, "address": NOWHERE, **fields})
        capsule = obj.__dlpack__(**options)
        seen = described(opened(capsule).dl_tensor)
        del obj, capsule
    return seen


def refused(exception, match, **options):
    refuse(options, exception, match, lambda o: exported(**o))


# --- P29: a copy on the host ----------------------------------------------------------------------


def is_copied_to_the_host(array, **options):
    """`array` is a view of part of its base, which plays the device's memory."""
    driver, base = Driver(), array
    while base.base is not None:
        base = base.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(
            counter, device=CUDA, data=base.tobytes(), byte_offset=offset, shape=array.shape, dtype=str(array.dtype),
            strides=[stride // array.itemsize for stride in array.strides], readonly=True)
        driver.calls()
        capsule = obj.__dlpack__(dl_device=CPU, **options, **VERSIONED)
        managed, seen = opened(capsule), described(opened(capsule).dl_tensor)
        assert (managed.flags, seen["device"], seen["shape"]) == (IS_COPIED, CPU, array.shape)
        if array.size == 0:
            assert (seen["data"], driver.calls()) == (None, [])
        else:
            compact = np.empty(array.shape, array.dtype)
            assert all(extent == 1 or step == stride // array.itemsize for extent, step, stride in
                       zip(array.shape, seen["strides"], compact.strides, strict=True))
            assert ctypes.string_at(seen["data"], array.nbytes) == array.tobytes()
            assert seen["data"] % array.itemsize == 0 and seen["byte_offset"] == 0
            low, high = np.lib.array_utils.byte_bounds(array)
            assert driver.calls() == fetches(high - low)
        del obj
        assert counter.releases == 1, "the copy keeps nothing of the device's"


WHOLE = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
table(globals(), {
    "test_P29_compact": dict(array=WHOLE),
    "test_P29_compact_by_copy_true": dict(array=WHOLE, copy=True),
    "test_P29_strided": dict(array=WHOLE[:, ::2, ::3]),
    "test_P29_offset": dict(array=WHOLE[1:, 2:, 3:]),
    "test_P29_negative_strides": dict(array=WHOLE[::-1, :, ::-2]),
    "test_P29_transposed": dict(array=WHOLE.T),
    "test_P29_broadcast": dict(array=np.broadcast_to(WHOLE[0, 0], (3, 6))),
    "test_P29_one_element": dict(array=WHOLE[2, 2, 2:3]),
    "test_P29_no_axes": dict(array=np.array(5.0)),
    "test_P29_empty": dict(array=WHOLE[:, :0]),
    "test_P29_bytes": dict(array=np.arange(7, dtype=np.uint8)[1::2]),
    "test_P29_complex": dict(array=np.arange(8, dtype=np.complex128)[::-1]),
}, is_copied_to_the_host)


@isolated
def test_P29_legacy_struct():
    driver, memory = Driver(), np.arange(6, dtype=np.float32)
    counter = Counter()
    with exactly_once(counter):
        capsule = tenon_exports.produce(counter, device=CUDA, data=memory.tobytes()).__dlpack__(dl_device=CPU)
        assert ctypes.string_at(opened(capsule).dl_tensor.data, 24) == memory.tobytes()
        assert driver.calls() == fetches(24)


@isolated
def test_P29_packed_elements():
    driver, counter = Driver(), Counter()
    with exactly_once(counter, exports=2):
        fp4 = dict(device=CUDA, dtype="float4_e2m1fn", shape=(3, 3))
        obj = tenon_exports.produce(counter, data=b"\x12\x34\x56\x78\x9a", **fp4)
        capsule = obj.__dlpack__(dl_device=CPU, **VERSIONED)
        assert ctypes.string_at(opened(capsule).dl_tensor.data, 5) == b"\x12\x34\x56\x78\x9a"
        assert driver.calls() == fetches(5)
        obj = tenon_exports.produce(counter, strides=(1, 3), **fp4)
        for copied in (dict(dl_device=CPU), dict(copy=True)):
            refuse(obj, BufferError, "sub-byte", lambda o: o.__dlpack__(**copied))
        assert driver.calls() == []
        del obj, capsule


@isolated
def test_P29_stream_must_be_none_and_copy_must_be_allowed():
    driver = Driver()
    for stream in (-1, 0, 1, 2, 7):
        refused(ValueError, "stream", dl_device=CPU, stream=stream)
    refused(BufferError, "copy", dl_device=CPU, copy=False)
    assert driver.calls() == []


@isolated
def test_P29_managed_memory_shown_as_the_cpus_is_synchronized():
    """The CPU has no streams to wait on: what the device still has to do must be done."""
    driver = Driver()
    driver.inactive(0)
    for kind in (CUDA_MANAGED, CUDA_HOST, (CUDA_HOST[0], 5)):  # the number names no device (P42)
        assert exported(device=kind, dl_device=CPU)["device"] == CPU
        calls = driver.calls()
        assert calls.count("cuCtxSynchronize") == 1, "the one device that is in use"
        assert "cuDevicePrimaryCtxRetain 101" in calls and "cuDevicePrimaryCtxRetain 100" not in calls


@isolated
def test_P29_copy_of_managed_memory_is_synchronized():
    driver, counter = Driver(), Counter()
    with exactly_once(counter):
        tenon_exports.produce(counter, device=CUDA_MANAGED).__dlpack__(copy=True, dl_device=CPU)
        assert "cuCtxSynchronize" in driver.calls()


@isolated
def test_P29_stream_of_managed_memory_shown_as_the_cpus():
    refused(ValueError, "stream", device=CUDA_MANAGED, dl_device=CPU, stream=7)


# --- P32 to P35: streams --------------------------------------------------------------------------


@isolated
def test_P32_the_default_stream_needs_no_waiting():
    driver = Driver()
    for options in ({}, dict(stream=None), dict(stream=1), VERSIONED, dict(stream=1, dl_device=CUDA)):
        assert exported(**options)["data"] == NOWHERE
        assert driver.calls() == []


@isolated
def test_P32_other_streams_wait():
    driver = Driver()
    for stream in (2, SIDE, OTHER):
        for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False)):
            assert exported(stream=stream, **options)["data"] == NOWHERE
            assert driver.calls()[:len(waits(stream))] == waits(stream)
    assert exported(stream=SIDE, device=(2, 3))["device"] == (2, 3)
    assert driver.calls()[:len(waits(SIDE))] == waits(SIDE, number=3)
    assert driver.all_closed()


@isolated
def test_P32_what_is_no_stream_is_not_given_to_the_driver():
    """A driver that is handed a handle of its own making crashes on any other."""
    driver = Driver()
    for stream in (3, 7, 0x1000, SIDE + 1, NOWHERE, 2**63 - 8):
        refused(ValueError, "no stream's handle", stream=stream)
    assert driver.calls() == []


@isolated
def test_P32_a_stream_that_is_being_captured_waits_for_nothing():
    """What is captured runs when its graph is replayed, and may not wait for work outside of it."""
    driver = Driver()
    driver.capturing(SIDE)
    assert exported(stream=SIDE)["data"] == NOWHERE
    assert not any("Event" in call for call in driver.calls()[:6])
    driver.capturing(OTHER)
    exported(stream=SIDE)
    assert f"cuStreamWaitEvent {SIDE} event 0" in driver.calls()
    driver.fail("cuStreamIsCapturing", 906)  # a stream that the default one waits for is being captured
    refused(BufferError, "captured", stream=SIDE)
    assert not any("Event" in call for call in driver.calls())


@isolated
def test_P32_a_device_nobody_has_used_has_nothing_to_wait_for():
    driver = Driver()
    driver.inactive(0)
    assert exported(stream=SIDE)["data"] == NOWHERE
    assert "cuDevicePrimaryCtxRetain 100" not in driver.calls(), "no context is made"


@isolated
def test_P32_pinned_and_managed_memory_is_ordered_by_the_device_it_belongs_to():
    driver = Driver()
    for kind in (CUDA_HOST[0], CUDA_MANAGED[0]):
        assert exported(stream=SIDE, device=(kind, 2))["device"] == (kind, 0)
        assert driver.calls()[:len(waits(SIDE))] == waits(SIDE, number=2)
        assert exported(stream=-1, device=(kind, 2))["device"] == (kind, 0)
        refused(ValueError, "stream", stream=0, device=(kind, 2))
        assert driver.calls() == []


@isolated
def test_P32_a_class_that_says_its_stream_is_waited_for():
    driver, matrix = Driver(), Matrix(2, 3, CUDA, SIDE)
    for stream, later in ((OTHER, OTHER), (2, 2), (1, 1), (None, 1)):
        matrix.__dlpack__(stream=stream)
        assert driver.calls()[:len(waits(later))] == waits(later, SIDE)
    release(owned(matrix))
    assert driver.calls()[:len(waits(1))] == waits(1, SIDE), "the table says that its work is on the default stream"
    matrix.__dlpack__(stream=SIDE)
    assert matrix.__cuda_array_interface__["stream"] == SIDE
    assert driver.calls() == [], "it is the same stream, or the consumer sees to it"


@isolated
def test_P32_driver_that_fails_is_a_buffer_error_with_its_name():
    driver = Driver()
    for name in [call.split()[0] for call in waits(SIDE)][:-3]:
        driver.fail(name)
        refused(BufferError, "stream: CUDA_ERROR_ILLEGAL_ADDRESS .got 700.", stream=SIDE)
        assert driver.calls()[-1].split()[0] in (name, "cuDevicePrimaryCtxRelease") and driver.all_closed()
    for name in [call.split()[0] for call in fetches(1)[len(ASKED) * 2:]][:-2]:
        driver.fail(name)
        refused(BufferError, "700", dl_device=CPU)
        assert driver.calls() and driver.all_closed()
    for name in ("cuMemAlloc", "cuMemcpyDtoD"):
        driver.fail(name)
        refused(BufferError, "700", copy=True)
        assert driver.allocations == 0 and driver.all_closed()
    driver.fail("cuMemAlloc", 2)
    refused(MemoryError, "device memory", copy=True)


def test_P32_without_a_driver():
    run_isolated("""
from test_producer_cuda import *
for options in (dict(stream=SIDE), dict(dl_device=CPU), dict(copy=True)):
    refused(BufferError, "CUDA driver cannot be loaded", **options)
assert exported(stream=1)["data"] == NOWHERE
""", env={"LD_LIBRARY_PATH": str(library("WITHOUT_EVENTS").parent)})


@isolated
def test_P33_zero_is_no_stream():
    driver = Driver()
    for options in ({}, VERSIONED, dict(dl_device=CUDA)):
        refused(ValueError, "stream=0", stream=0, **options)
    for stream in (-2, -(2**63)):
        refused(ValueError, "stream", stream=stream)
    assert driver.calls() == []


def test_P34_minus_1_does_not_even_load_the_driver():
    run_isolated("""
from test_producer_cuda import *

for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False), dict(device=(2, 5)), dict(device=CUDA_MANAGED)):
    assert exported(stream=-1, **options)["data"] == NOWHERE
    assert not is_loaded(), options
exported(stream=SIDE)
assert is_loaded(), "this test would not notice"
""", env={"LD_LIBRARY_PATH": str(library().parent)})


@isolated
def test_P34_minus_1_makes_no_call():
    driver = Driver()
    exported(stream=SIDE)
    assert driver.calls()
    for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False)):
        exported(stream=-1, **options)
        assert driver.calls() == []


@isolated
def test_P35_rocm_has_no_streams_1_and_2():
    driver, hip = Driver(), Driver("HIP")
    for stream in (1, 2):
        refused(ValueError, "ROCm", device=ROCM, stream=stream)
    for stream in (None, 0, -1):
        assert exported(device=ROCM, stream=stream)["device"] == ROCM
    assert hip.calls() == []
    exported(device=ROCM, stream=SIDE)
    assert hip.calls()[:len(waits(SIDE))] == waits(SIDE, earlier=0)
    assert driver.calls() == [] and hip.all_closed()


@isolated
def test_P35_rocm_memory_is_copied_by_hip():
    hip, memory = Driver("HIP"), np.arange(6, dtype=np.float32)
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, device=ROCM, data=memory.tobytes())
        capsule = obj.__dlpack__(dl_device=CPU, **VERSIONED)
        assert ctypes.string_at(opened(capsule).dl_tensor.data, 24) == memory.tobytes()
        assert hip.calls() == within("cuCtxSynchronize", "cuMemcpyDtoH 24")
        capsule = obj.__dlpack__(copy=True, **VERSIONED)
        seen = described(opened(capsule).dl_tensor)
        assert seen["device"] == ROCM and ctypes.string_at(seen["data"], 24) == memory.tobytes()
        del obj, capsule
    assert hip.allocations == 0


def test_P35_without_hip():
    run_isolated("""
from test_producer_cuda import *
refused(BufferError, "HIP library .libamdhip64.so. cannot be loaded", device=ROCM, stream=SIDE)
""")


# --- memory that may move while others run ---------------------------------------------------------


def tells_about_the_gil(ask, call, device=CUDA, stream=1):
    """A user's class may move its memory whenever another thread runs; a Tensor's stays where it is."""
    driver, moving = Driver(), Matrix(2, 3, device, stream)
    moving.fault = 4  # one axis, as Arrow wants it
    steady = tenon_exports.produce(Counter(), device=device, stream=stream, shape=(6,))
    driver.watch_gil()
    for obj, holds_it in ((moving, True), (steady, False)):
        driver.calls()
        ask(obj)
        assert {seen.endswith("with the GIL") for seen in driver.calls() if seen.startswith(call)} == {holds_it}


SYNCHRONIZES = dict(call="cuCtxSynchronize", device=CUDA_MANAGED)
table(globals(), {
    "test_gil_of_an_order": dict(ask=lambda o: o.__dlpack__(stream=SIDE, **VERSIONED), call="cuStreamWaitEvent"),
    "test_gil_of_a_fetch": dict(ask=lambda o: o.__dlpack__(dl_device=CPU), call="cuMemcpyDtoH"),
    "test_gil_of_a_copy": dict(ask=lambda o: o.__dlpack__(copy=True), call="cuMemcpyDtoD"),
    "test_gil_of_a_table": dict(ask=lambda o: release(owned(o)), call="cuStreamWaitEvent", stream=SIDE),
    "test_gil_of_arrow": dict(ask=lambda o: o.__arrow_c_device_array__(), call="cuCtxSynchronize"),
    "test_gil_of_arrow_on_the_host": dict(ask=lambda o: o.__arrow_c_array__(), **SYNCHRONIZES),
    "test_gil_of_a_buffer": dict(ask=memoryview, **SYNCHRONIZES),
    "test_gil_of_an_interface": dict(ask=lambda o: o.__array_interface__, **SYNCHRONIZES),
    "test_gil_of_array": dict(ask=lambda o: o.__array__(), **SYNCHRONIZES),
    "test_gil_of_a_view_on_the_host": dict(ask=lambda o: o.__dlpack__(dl_device=CPU, **VERSIONED), **SYNCHRONIZES),
    "test_gil_before_a_copy_there": dict(ask=lambda o: o.__dlpack__(dl_device=CUDA), call="cuCtxSynchronize",
                                         device=CUDA_HOST),
}, tells_about_the_gil)


@isolated
def test_memory_that_may_move_is_copied_before_it_goes_to_the_device():
    driver = Driver()
    for obj, stays in ((Matrix(2, 3), False), (tenon_exports.produce(Counter()), True)):
        driver.watch_gil()
        capsule = obj.__dlpack__(dl_device=CUDA)
        assert "cuMemcpyHtoD 24" in driver.calls(), "without the GIL"
        address = obj.data_ptr if stays else obj.address
        assert (driver.copied_from == address) == stays
        assert ctypes.string_at(opened(capsule).dl_tensor.data, 24) == ctypes.string_at(address, 24)


# --- copies on the device -------------------------------------------------------------------------


def is_copied_on_the_device(array, how, stream=None):
    """`how` names the call that copies: once for compact memory, by rows, or by way of the host."""
    driver, base = Driver(), array
    while base.base is not None:
        base = base.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(
            counter, device=CUDA, data=base.tobytes(), byte_offset=offset, shape=array.shape, dtype=str(array.dtype),
            strides=[stride // array.itemsize for stride in array.strides], readonly=True)
        capsule = obj.__dlpack__(copy=True, stream=stream, **VERSIONED)
        managed, seen = opened(capsule), described(opened(capsule).dl_tensor)
        assert (managed.flags, seen["device"], seen["shape"]) == (IS_COPIED, CUDA, array.shape)
        assert ctypes.string_at(seen["data"], array.nbytes) == array.tobytes()
        copies = [call for call in driver.calls() if call.startswith("cuMemcpy")]
        assert len(copies) < 100 and {call.split()[0] for call in copies} == set(how.split())
        if how != "cuMemcpyDtoH cuMemcpyHtoD":
            assert all(call.split()[2] == str(stream or 1) for call in copies), "on the consumer's stream"
        assert driver.allocations == 1
        del obj
        assert counter.releases == 1, "the copy keeps nothing of the original"
        del capsule, managed
    assert driver.allocations == 0 and driver.all_closed()


BIG = np.arange(2 * 3 * 4 * 5 * 6, dtype=np.int16).reshape(2, 3, 4, 5, 6)
table(globals(), {
    "test_copy_compact": dict(array=WHOLE, how="cuMemcpyDtoD"),
    "test_copy_compact_on_a_stream": dict(array=WHOLE, how="cuMemcpyDtoD", stream=SIDE),
    "test_copy_one_element": dict(array=WHOLE[2, 2, 2:3], how="cuMemcpyDtoD"),
    "test_copy_no_axes": dict(array=np.array(5.0), how="cuMemcpyDtoD"),
    "test_copy_rows": dict(array=WHOLE[:, :, 1:4], how="cuMemcpy2D"),
    "test_copy_rows_on_a_stream": dict(array=WHOLE[:, :, 1:4], how="cuMemcpy2D", stream=SIDE),
    "test_copy_every_other_row": dict(array=WHOLE[:, ::2], how="cuMemcpy2D"),
    "test_copy_every_other_element": dict(array=WHOLE[:, :, ::2], how="cuMemcpy2D"),
    "test_copy_transposed": dict(array=WHOLE.T, how="cuMemcpy2D"),
    "test_copy_permuted": dict(array=BIG.transpose(4, 0, 3, 1, 2)[::2, :, 1:], how="cuMemcpy2D"),
    "test_copy_negative_strides": dict(array=WHOLE[::-1, :, ::-2], how="cuMemcpyDtoH cuMemcpyHtoD"),
    "test_copy_broadcast": dict(array=np.broadcast_to(WHOLE[0, 0], (3, 6)), how="cuMemcpyDtoH cuMemcpyHtoD"),
    "test_copy_overlapping": dict(array=np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 4)[::2],
                                  how="cuMemcpyDtoH cuMemcpyHtoD"),
}, is_copied_on_the_device)


@isolated
def test_copy_of_memory_the_driver_does_not_know():
    driver = Driver()
    driver.place(known=False)
    for options in (dict(copy=True), dict(dl_device=CPU)):
        refused(ValueError, "no memory at this address", **options)
        assert not any(call.startswith("cuMemcpy") for call in driver.calls()), "it may cost the process its device"


@isolated
def test_copy_to_the_device_and_managed_memory_as_the_devices():
    driver, memory = Driver(), np.arange(6, dtype=np.float32)
    for strides in ((3, 1), (1, 2)):
        counter = Counter()
        with exactly_once(counter):
            obj = tenon_exports.produce(counter, data=memory.tobytes(), shape=(2, 3), strides=strides)
            capsule = obj.__dlpack__(dl_device=CUDA, stream=SIDE, **VERSIONED)
            managed, seen = opened(capsule), described(opened(capsule).dl_tensor)
            assert (managed.flags, seen["device"], seen["strides"]) == (IS_COPIED, CUDA, (3, 1))
            assert ctypes.string_at(seen["data"], 24) == bytes(memoryview(obj).tobytes())
            assert driver.allocations == 1
            del capsule, managed, obj
        assert driver.allocations == 0
    refused(BufferError, "copy=False", device=CPU, address=memory.ctypes.data, dl_device=CUDA, copy=False)
    refused(ValueError, "stream=0", device=CPU, address=memory.ctypes.data, dl_device=CUDA, stream=0)
    driver.calls()
    assert exported(device=CUDA_MANAGED, dl_device=CUDA)["device"] == CUDA
    assert exported(device=CUDA_MANAGED, dl_device=CUDA)["data"] == NOWHERE
    assert driver.calls() == [], "the same memory, shown as the device's"


@isolated
def test_asdlpack_to_the_device():
    driver, memory = Driver(), np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (memory, memory.T, memory[:, ::-1], memory[:0]):
        t = tenon.asdlpack(array, device="cuda:0")
        assert (t.device, t.shape, t.is_contiguous, t.readonly, t.flags) == ("cuda:0", array.shape, True, False, 2)
        assert ctypes.string_at(t.data_ptr, t.nbytes) == array.tobytes()
        assert driver.allocations == (1 if array.size else 0)
        assert tenon.asdlpack(t, device="cuda:0") is t
        del t
        assert driver.allocations == 0
    refuse(memory, BufferError, "copy=False", device="cuda:0", copy=False)
    there = tenon.asdlpack(memory, device="cuda:0")
    assert tenon.asdlpack(there, device="cpu").tolist() == memory.tolist()
    assert tenon.asdlpack(there, device="cuda:1").device == "cuda:1", "by way of the host"
    assert tenon.asdlpack(there, copy=True).data_ptr != there.data_ptr
    driver.fail("cuMemcpyHtoD")
    refuse(memory, BufferError, "700", device="cuda:0")
    del there
    assert driver.allocations == 0 and driver.all_closed()


# --- releases -------------------------------------------------------------------------------------

@isolated
def test_F79_memory_is_let_go_of_after_the_consumers_work():
    driver, counter = Driver(), Counter()
    obj = tenon_exports.produce(counter, device=CUDA, address=NOWHERE)
    capsule = obj.__dlpack__(stream=SIDE)
    del obj
    driver.calls()
    driver.busy(1)
    del capsule  # the device still has work
    assert let_go_of(counter)
    calls = driver.calls()
    assert calls.index("cuCtxRecordEvent context event") < calls.index("cuEventSynchronize event")
    assert driver.all_closed()


@isolated
def test_F79_an_idle_device_is_not_waited_for():
    driver, counter = Driver(), Counter()
    obj = tenon_exports.produce(counter, device=CUDA, address=NOWHERE)
    for stream, late in ((SIDE, True), (2, True), (1, False), (None, False), (-1, False)):
        capsule = obj.__dlpack__(stream=stream)
        driver.calls()
        del capsule
        assert driver.calls() == (RECORDS_ALL if late else []), "the stream is not touched: it may be gone by now"
    del obj
    assert counter.releases == 1


class Silent:
    """A library that does not say which stream it works on, as JAX: memory it gets back may be used at once."""

    def __init__(self):
        self.counter = Counter()

    def __dlpack_device__(self):
        return CUDA

    def __dlpack__(self, **_):
        return tenon_exports.produce(self.counter, device=CUDA, address=NOWHERE).__dlpack__(stream=-1, **VERSIONED)


@isolated
def test_F79_a_library_without_a_stream_gets_its_memory_back_when_the_work_is_done():
    driver = Driver()
    for importer in (tenon.asdlpack, lambda lent: tenon_probe.borrow(lent, read=False)):
        obj = Silent()
        driver.calls()
        importer(obj)
        assert driver.calls()[-len(RECORDS_ALL):] == RECORDS_ALL
        assert obj.counter.releases == 1
        obj = Silent()
        driver.busy(1)
        importer(obj)
        assert let_go_of(obj.counter)
        calls = driver.calls()
        assert calls.index("cuCtxRecordEvent context event") < calls.index("cuEventSynchronize event"), calls
    assert driver.all_closed()


@isolated
def test_F79_what_the_table_gave_is_let_go_of_after_the_consumers_work():
    driver, counter = Driver(), Counter()
    managed = owned(tenon_exports.produce(counter, device=CUDA, address=NOWHERE, stream=SIDE))
    driver.calls()
    driver.busy(1)
    release(managed)
    assert let_go_of(counter)
    calls = driver.calls()
    assert calls.index("cuCtxRecordEvent context event") < calls.index("cuEventSynchronize event")
    for obj, late in ((Matrix(2, 3, CUDA, SIDE), True), (Matrix(2, 3, CUDA, 2), True), (Matrix(2, 3, CUDA), False),
                      (Matrix(2, 3), False), (tenon_exports.produce(counter, device=CUDA, address=NOWHERE), False)):
        managed = owned(obj)
        driver.calls()
        release(managed)
        assert driver.calls() == (RECORDS_ALL if late else [])
    assert driver.all_closed()


@isolated
def test_F79_a_capture_is_not_ended_by_a_release():
    driver, counter = Driver(), Counter()
    obj = tenon_exports.produce(counter, device=CUDA, address=NOWHERE)
    capsule = obj.__dlpack__(stream=SIDE)
    del obj
    for fault in ("cuStreamIsCapturing", "cuCtxRecordEvent"):
        other = tenon_exports.produce(Counter(), device=CUDA, address=NOWHERE).__dlpack__(stream=SIDE)
        driver.fail(fault, 906)
        del capsule
        assert counter.releases == 0, "later, at the next release that may look"
        driver.fail("", 0)
        del other
        assert counter.releases == 1
        counter = Counter()
        capsule = tenon_exports.produce(counter, device=CUDA, address=NOWHERE).__dlpack__(stream=SIDE)  # noqa: F841 - goes with the function


def lent_out(counter=None, device=CUDA):
    """A capsule that is let go of late, for a consumer on a stream of its own."""
    return tenon_exports.produce(counter or Counter(), device=device, address=NOWHERE).__dlpack__(stream=SIDE)


def questions(act) -> int:
    """How often that has tables asked for the stream they work on."""
    before = fakes.asked_for_stream()
    act()
    return fakes.asked_for_stream() - before


def test_F79_a_release_asks_only_a_table_that_has_answered():
    run_isolated("""
from test_producer_cuda import *
driver, hip, array = Driver(), Driver("HIP"), exchange_class()(device=CUDA, data=NOWHERE)
imports = lambda: tenon_exports.there_and_back(array, None)
fakes.work_on(-1)
assert questions(lambda: refuse(array, BufferError, "which stream", lambda o: imports())) == 1
assert questions(lent_out) == 0, "it might crash on a device that it does not know"
fakes.work_on(OTHER)
assert questions(imports) == 1
assert questions(lent_out) == 1
assert questions(lambda: lent_out(device=ROCM)) == 0, "it has answered for CUDA"
managed = consumed(lent_out())
assert questions(lambda: release_on_native_thread(managed)) == 0, "a function that may need Python"
driver.capturing(OTHER)
counter = Counter()
lent_out(counter)
assert counter.releases == 0, "a capture goes on"
driver.capturing()
lent_out()
assert counter.releases == 1
""")


@isolated
def test_F79_what_a_table_raises_when_a_release_asks_it_is_nobodys():
    run_isolated("""
from test_producer_cuda import *
driver, array, told = Driver(), exchange_class()(device=CUDA, data=NOWHERE), []
fakes.work_on(OTHER)
tenon_exports.there_and_back(array, None)
fakes.work_on(-3)
with patch.object(sys, "unraisablehook", told.append):
    assert questions(lent_out) == 1
assert not told, told
""")


@isolated
def test_F79_what_was_postponed_asks_the_driver_of_its_own_device():
    driver, hip, counter = Driver(), Driver("HIP"), Counter()
    capsule = lent_out(counter, device=ROCM)
    hip.fail("cuCtxRecordEvent", 906)
    del capsule
    assert counter.releases == 0
    hip.fail("", 0)
    driver.calls()
    lent_out()
    assert "cuCtxRecordEvent context event" in hip.calls() and counter.releases == 1
    assert driver.calls().count("cuCtxRecordEvent context event") == 1, "of the release itself"


@isolated
def test_F79_streams_of_a_thread_are_not_one_stream():
    """The number 2 is another stream on each thread: the memory's and the consumer's may be two."""
    driver, obj = Driver(), tenon_exports.produce(Counter(), device=CUDA, address=NOWHERE, stream=2)
    capsule = obj.__dlpack__(stream=2)
    driver.calls()
    del capsule
    assert driver.calls() == RECORDS_ALL


class GrowsAnother:
    """On the device; when it goes, memory of another class moves."""
    __cuda_array_interface__ = dict(version=3, shape=(1,), typestr="<f4", data=(NOWHERE, False))

    def __init__(self, moving):
        self.moving = moving

    def __del__(self):
        self.moving.grow()


@isolated
def test_F79_nobody_is_let_go_of_between_a_look_at_memory_that_may_move_and_its_export():
    driver = Driver()
    for ask in (lambda o: o.__dlpack__(stream=SIDE, **VERSIONED), lambda o: o.__dlpack__(copy=True, **VERSIONED), owned):
        moving = Matrix(2, 3, CUDA, OTHER)
        capsule = tenon_exports.there_and_back(GrowsAnother(moving), None).__dlpack__(stream=SIDE)
        driver.fail("cuCtxRecordEvent", 906)
        del capsule  # postponed
        driver.fail("", 0)
        given = ask(moving)
        managed = given if ask is owned else opened(given)
        assert list((ctypes.c_float * 6).from_address(managed.dl_tensor.data)) == list(range(6))
        release(managed) if ask is owned else None
        del given


@isolated
def test_F79_releases_during_a_capture_do_not_try_all_earlier_ones_again():
    driver, counters = Driver(), [Counter() for _ in range(10)]
    capsules = [lent_out(counter) for counter in counters]
    driver.calls()
    driver.fail("cuCtxRecordEvent", 906)
    capsules.clear()
    assert driver.calls().count("cuCtxRecordEvent context event") == len(counters)
    assert not any(counter.releases for counter in counters)
    lent_out()
    assert all(counter.releases == 1 for counter in counters)


def test_F79_torch_is_asked_when_memory_goes_out_and_again_only_if_it_answers():
    for stream, again in ((-1, 0), (1, 1)):
        run_isolated("""
from test_producer_cuda import *
sys.modules["torch"] = SimpleNamespace(Tensor=exchange_class())
stream, again = map(int, sys.argv[1:])
fakes.work_on(stream)
driver, hip, capsules = Driver(), Driver("HIP"), []
assert questions(lambda: capsules.append(lent_out())) == 1
assert questions(lambda: capsules.append(lent_out())) == 0, "once"
assert questions(capsules.clear) == 2 * again
assert questions(lambda: lent_out(device=ROCM)) == 0
""", args=(stream, again))


@isolated
def test_F79_an_older_driver_waits_for_the_device_without_the_gil():
    """Work that calls Python would never end otherwise."""
    run_isolated("""
from test_producer_cuda import *
driver, counter = Driver("WITHOUT_CONTEXT_RECORD"), Counter()
capsule = tenon_exports.produce(counter, device=CUDA, address=NOWHERE).__dlpack__(stream=SIDE)
driver.calls()
driver.watch_gil()
del capsule
calls = driver.calls()
assert [call.removesuffix(" with the GIL") for call in calls] == within("cuCtxSynchronize") and counter.releases == 1
assert "cuCtxSynchronize" in calls and "cuCtxPopCurrent with the GIL" in calls, calls
""")


def test_F79_an_older_driver_is_waited_for_while_the_runtime_goes():
    """A subinterpreter that nobody has ended goes with the runtime: its thread would never get the GIL back."""
    interpreters = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    pytest.importorskip(interpreters)
    run_isolated("""
from test_producer_cuda import *
interpreters = __import__(sys.argv[1])
driver = Driver("WITHOUT_CONTEXT_RECORD")
there = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
failure = interpreters.run_string(there, f'''
import sys
sys.path[:] = {sys.path!r}
import tenon_exports
made = tenon_exports.produce(tenon_exports.Counter(), device={CUDA}, address={NOWHERE})
kept = made.__dlpack__(stream={SIDE})
''')
assert failure is None, failure
""", args=(interpreters,))


@isolated
def test_memory_of_the_driver_is_freed_without_the_gil():
    """Freeing waits for work that was queued meanwhile, which may call Python."""
    driver = Driver()
    capsule = tenon_exports.produce(Counter(), device=CUDA, data=bytes(24)).__dlpack__(copy=True)
    driver.watch_gil()
    driver.calls()
    del capsule
    assert "cuMemFree" in driver.calls() and driver.allocations == 0


def test_the_cuda_driver_is_not_started_for_memory_of_others():
    run_isolated("""
from test_producer_cuda import *
driver, hip = Driver(), Driver("HIP")
sys.modules["torch"] = SimpleNamespace(Tensor=exchange_class())
for device, stream in ((ROCM, SIDE), ((14, 0), 5)):
    assert questions(lambda: tenon_exports.produce(Counter(), device=device, address=NOWHERE).__dlpack__(stream=stream)) == 0
    assert driver.loaded.fake_log() == b""
""")


def test_a_stream_function_that_throws_is_not_the_end():
    run_isolated("""
from test_producer_cuda import *
driver = Driver()
Array = exchange_class()
sys.modules["torch"] = SimpleNamespace(Tensor=Array)
fakes.work_on(-2)
lent_out()
""")


def let_go_of(counter):
    """Waits for the thread that waits for the device."""
    return wait_until(lambda: counter.releases)


@isolated
def test_F79_a_tensor_is_kept_until_a_stream_is_done():
    driver, counter = Driver(), Counter()
    memory = dict(device=CUDA, address=NOWHERE)
    tenon_exports.keep_until_done(counter, SIDE, **memory)
    assert counter.releases == 1, "the stream is idle"
    assert driver.calls() == within("cuEventCreate 3", f"cuEventRecord event {SIDE}", "cuEventQuery event",
                                    "cuEventDestroy event")
    counters = [Counter() for _ in range(5)]
    driver.busy(5)
    for counter in counters:
        tenon_exports.keep_until_done(counter, 0, **memory)
    assert all(let_go_of(counter) for counter in counters)
    calls = driver.calls()
    assert calls.count("cuEventRecord event 1") == calls.count("cuEventSynchronize event") == 5 and driver.all_closed()


@isolated
def test_F79_what_cannot_be_kept_stays_with_the_caller():
    driver, memory = Driver(), dict(device=CUDA, address=NOWHERE)

    def stays(exception, match, stream=SIDE, **fields):
        counter = Counter()
        with pytest.raises(exception, match=match):
            tenon_exports.keep_until_done(counter, stream, **{**memory, **fields})
        assert counter.releases == 1 and driver.all_closed()

    stays(ValueError, "no stream's handle", stream=7)
    stays(BufferError, "no stream has work", device=CPU, address=id(driver) & ~63)
    driver.capturing(SIDE)
    stays(BufferError, "as long as the graph")
    driver.capturing()
    for name in ("cuEventCreate", "cuEventRecord", "cuCtxPushCurrent"):
        driver.fail(name)
        stays(BufferError, "700")


class OnTheDevice:
    """Of version 3, on a stream, or None for one that is not named."""
    def __init__(self, stream):
        self.__cuda_array_interface__ = dict(version=3, shape=(1,), typestr="<f4", data=(NOWHERE, False), stream=stream)


@isolated
def test_F79_what_is_imported_for_another_stream_is_let_go_of_after_its_work():
    driver = Driver()
    fakes.work_on(OTHER)
    table = exchange_class()
    for make, own in ((lambda: table(device=CUDA, data=NOWHERE), OTHER), (lambda: OnTheDevice(OTHER), OTHER),
                      (lambda: OnTheDevice(None), None)):
        for stream, late in ((SIDE, True), (own, own is None), (-1, False)):
            made = make()
            t = tenon.asdlpack(made, stream=stream)
            assert t.owner is (made if isinstance(made, OnTheDevice) else None)
            driver.calls()
            del t
            assert (driver.calls()[-len(RECORDS_ALL):] == RECORDS_ALL) == late, (own, stream)
    driver.busy(1)
    alive = weakref.ref(made := OnTheDevice(OTHER))
    t = tenon.asdlpack(made, stream=SIDE)
    del made, t
    assert wait_until(lambda: alive() is None)
    calls = driver.calls()
    assert calls.index("cuCtxRecordEvent context event") < calls.index("cuEventSynchronize event")
    fakes.work_on(0)


@isolated
def test_F23_a_child_of_fork_asks_the_driver_nothing():
    driver, counter = Driver(), Counter()
    on_device = tenon.asdlpack(np.arange(3.0), device="cuda:0")
    capsule = tenon_exports.produce(counter, device=CUDA, address=NOWHERE).__dlpack__(stream=SIDE)
    driver.calls()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            with pytest.raises(BufferError, match="forked.*spawn"):
                tenon.asdlpack(np.arange(3.0), device="cuda:0")
            with pytest.raises(BufferError, match="forked"):
                on_device.__dlpack__(stream=SIDE)
            del capsule, on_device
            failed = 0 if counter.releases == 1 and driver.calls() == [] else 2
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0
    del capsule, on_device
    assert counter.releases == 1 and driver.allocations == 0


@isolated
def test_a_copy_comes_after_the_tensor_even_without_a_stream():
    driver, memory = Driver(), np.arange(6, dtype=np.float32)
    obj = tenon_exports.produce(Counter(), device=CUDA, data=memory.tobytes())
    capsule = obj.__dlpack__(copy=True, stream=-1, **VERSIONED)
    assert ctypes.string_at(opened(capsule).dl_tensor.data, 24) == memory.tobytes()
    assert "cuMemcpyDtoD 24 1" in driver.calls(), "and never on stream -1"


@isolated
def test_F79_what_is_copied_stays_until_the_copy_is_made():
    driver, counter = Driver(), Counter()
    obj = tenon_exports.produce(counter, device=CUDA, data=bytes(24))
    driver.calls()
    capsule = obj.__dlpack__(copy=True, stream=SIDE, **VERSIONED)
    calls = driver.calls()
    copied = next(i for i, call in enumerate(calls) if call.startswith("cuMemcpyDtoD"))
    assert "cuCtxRecordEvent context event" in calls[copied:], "the source is held until the copy is made"
    del obj, capsule
    assert let_go_of(counter)


class Held:
    """A CUDA array interface over nothing that is read."""

    def __init__(self, stream):
        self.__cuda_array_interface__ = dict(version=3, shape=(2, 3), typestr="<f4", data=(NOWHERE, False), stream=stream)


@isolated
def test_nothing_keeps_no_stream_that_may_be_gone():
    driver = Driver()
    t = tenon.asdlpack(Producer(device=CUDA, shape=(0, 3)), stream=SIDE)
    assert t.stream == 1 and t.__cuda_array_interface__["stream"] == 1
    driver.calls()
    t.__dlpack__(stream=OTHER)
    assert not any(str(SIDE) in call for call in driver.calls())


@isolated
def test_what_was_captured_is_waited_for_by_nobody():
    driver = Driver()
    driver.capturing(SIDE)
    t = tenon.asdlpack(Held(SIDE))
    driver.capturing()
    driver.calls()
    for stream in (OTHER, 1, 2):
        t.__dlpack__(stream=stream)
        assert not any(str(SIDE) in call for call in driver.calls()), "the stream may be gone by now"
    assert t.__cuda_array_interface__["stream"] is None
    assert tenon.asdlpack(t, readonly=True).data_ptr == t.data_ptr
    assert not any(str(SIDE) in call for call in driver.calls())


@isolated
def test_managed_memory_given_by_the_table_is_ready_on_the_default_stream():
    driver = Driver()
    for device in (CUDA, CUDA_MANAGED, CUDA_HOST):
        for obj in (tenon_exports.produce(Counter(), device=device, stream=SIDE), Matrix(2, 3, device, SIDE)):
            driver.calls()
            managed = owned(obj)
            assert "cuStreamWaitEvent 1 event 0" in driver.calls(), device
            release(managed)


@isolated
def test_managed_memory_is_asked_for_without_a_stream_and_waited_for_here():
    driver = Driver()
    for device in (CUDA_MANAGED, CUDA_HOST):
        producer = Producer(device=device, data=NOWHERE)
        t = tenon.asdlpack(producer, stream=SIDE)
        assert t.stream == SIDE and driver.calls()[:len(waits(SIDE))] == waits(SIDE)
        for stream in (1, None, -1):
            tenon.asdlpack(producer, stream=stream)
            assert not any(call.startswith("cuStreamWait") for call in driver.calls())
        driver.fail("cuStreamWaitEvent")
        refuse(producer, BufferError, "700", stream=SIDE)
        del t
        driver.calls()


@isolated
def test_the_host_reads_managed_memory_when_the_device_is_done():
    driver, memory = Driver(), np.arange(6, dtype=np.float32)
    for device in (CUDA_MANAGED, CUDA_HOST):
        obj = tenon_exports.produce(Counter(), device=device, data=memory.tobytes(), shape=(6,))
        for read in (memoryview, lambda o: o.__array_interface__, np.asarray, lambda o: o.__array__(),
                     lambda o: tenon.asdlpack(o, device="cpu").numpy(), lambda o: tenon.asdlpack(o, copy=True)):
            driver.calls()
            read(obj)
            assert "cuCtxSynchronize" in driver.calls(), read


@isolated
def test_streams_that_are_named_for_a_copy_to_the_device():
    driver, memory = Driver(), np.arange(6, dtype=np.float32)
    assert tenon.asdlpack(memory, device="cuda:0", stream=-1).stream == 1
    assert tenon.asdlpack(memory, device="cuda:0", stream=SIDE).stream == SIDE
    for number in (0, 7, -2):
        refuse(memory, ValueError, "stream", device="cuda:0", stream=number)
    assert driver.allocations == 0


@isolated
def test_a_driver_that_cannot_tell_a_capture_is_not_taken_for_one():
    driver, counter = Driver(), Counter()
    capsule = tenon_exports.produce(counter, device=CUDA, address=NOWHERE).__dlpack__(stream=SIDE)
    driver.fail("cuStreamIsCapturing", 700)
    del capsule
    assert counter.releases == 1


# --- back to a library -----------------------------------------------------------------------------


class Array(Producer):
    """An array of a library, on CUDA."""

    dtype = SimpleNamespace(name="float32")

    def __init__(self, shape=(2, 3)):
        super().__init__(device=CUDA, data=NOWHERE, shape=shape)


def test_a_new_array_goes_back_as_itself_when_its_librarys_stream_waits():
    run_isolated("""
from test_producer_cuda import *
driver, hip, made, asked = Driver(), Driver("HIP"), [], []
works_on = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int)(lambda device: asked.append(device) or SIDE)
ndarray = type("ndarray", (Array,), {"__module__": "cupy"})
def empty(shape, dtype):
    made.append(ndarray(shape))
    return made[-1]
capsule = new_capsule(works_on, b"intptr_t (int)")
sys.modules["cupy"] = SimpleNamespace(ndarray=ndarray, empty=empty, from_dlpack=lambda tensor: tensor)
sys.modules["cupy_backends.cuda.stream"] = SimpleNamespace(__pyx_capi__=dict(get_stream_ptr=capsule))
model = ndarray()
assert tenon_exports.twin(model) is made[-1] and driver.calls() == [], "it was made on that stream"
assert tenon_exports.twin(model, OTHER) is made[-1]
assert driver.calls() == waits(SIDE, OTHER)
driver.fail("cuStreamWaitEvent")
refuse(model, BufferError, "700", lambda o: tenon_exports.twin(o, OTHER))
driver.fail("", 0)
assert driver.all_closed()
asked.clear()
lent_out(), lent_out(device=ROCM)
assert asked == [0], "whether it is capturing on CUDA, of which it knows"
""")


@isolated
def test_a_librarys_table_gets_a_tensor_when_its_stream_waits():
    driver, model = Driver(), exchange_class()(device=CUDA, data=NOWHERE)
    for give in (tenon_exports.like, tenon_exports.described_like):
        for stream, calls in ((OTHER, [*waits(OTHER, SIDE), *RECORDS_ALL]), (SIDE, [])):
            counter = Counter()
            fakes.work_on(stream)
            with exactly_once(counter):
                refuse(model, BufferError, "fakes: never",
                       lambda o: give(counter, o, device=CUDA, address=NOWHERE, stream=SIDE))
            assert driver.calls() == calls, "and what it refuses is let go of after both streams"
    fakes.work_on(0)


@isolated
def test_a_bare_capsule_is_complete_when_tensorflow_gets_it():
    driver, counter, calls = Driver(), Counter(), []

    def from_dlpack(capsule):
        assert name_of(capsule) == b"dltensor"
        calls.append(driver.calls())
        return model

    model = type("EagerTensor", (Array,), {"__module__": "tensorflow.python"})()
    dlpack = SimpleNamespace(from_dlpack=from_dlpack)
    with patch.dict(sys.modules, {"tensorflow": SimpleNamespace(experimental=SimpleNamespace(dlpack=dlpack))}):
        assert tenon_exports.like(counter, model, device=CUDA, address=NOWHERE, stream=SIDE) is model
        assert tenon_exports.like(counter, model) is model
        assert calls == [within("cuCtxSynchronize"), []]
        driver.fail("cuCtxSynchronize")
        refuse(model, BufferError, "700", lambda o: tenon_exports.like(counter, o, device=CUDA, address=NOWHERE))
    assert len(calls) == 2 and (counter.exports, counter.releases) == (3, 3)


def test_importing_and_host_memory_load_no_driver():
    run_isolated("""
from test_producer_cuda import *

t = tenon.asdlpack(np.arange(6.0))
t.to("numpy"), memoryview(t), tenon.inspect(t), tenon.explain(t, "torch"), tenon.asdlpack(t, device="cpu", copy=True)
t.__dlpack__(max_version=(1, 3), dl_device=(1, 0))
assert not is_loaded()
tenon.asdlpack(t, device="cuda:0")
assert is_loaded(), "this test would not notice"
""", env={"LD_LIBRARY_PATH": str(library().parent)})
