# tests/python/test_producer_cuda.py: streams and copies of CUDA and ROCm memory, rules P29 and P32 to P35, with a driver that writes every call down.
from __future__ import annotations

import ctypes

import pytest
import tenon_exports
from fake_cuda import Driver, library
from fakes_ctypes import described, opened
from isolation import isolated, run_isolated, table
from producers import CPU, CUDA, CUDA_HOST, IS_COPIED, NOWHERE, ROCM, exactly_once, refuse
from tenon_exports import Counter

np = pytest.importorskip("numpy")

CUDA_MANAGED = (13, 0)
VERSIONED = dict(max_version=(1, 3))
ENTER = ["cuInit 0", "cuDeviceGet 0", "cuDevicePrimaryCtxRetain 100", "cuCtxPushCurrent context"]
LEAVE = ["cuCtxPopCurrent", "cuDevicePrimaryCtxRelease 100"]


def waits(stream, number=0):
    """The calls that make a stream wait for all that is queued on the default stream (1) of its device."""
    inside = ["cuEventCreate 2", "cuEventRecord event 1", f"cuStreamWaitEvent {stream} event 0", "cuEventDestroy event"]
    return [call.replace("Get 0", f"Get {number}").replace("100", str(100 + number)) for call in ENTER + inside + LEAVE]


def fetches(count):
    return [*ENTER, "cuCtxSynchronize", f"cuMemcpyDtoH {count}", *LEAVE]


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
        refuse(obj, BufferError, "sub-byte", lambda o: o.__dlpack__(dl_device=CPU))
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
    for stream in (2, 3, 7, 0x7F12_3456_7890):
        for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False)):
            assert exported(stream=stream, **options)["data"] == NOWHERE
            assert driver.calls() == waits(stream)
    assert exported(stream=7, device=(2, 3))["device"] == (2, 3)
    assert driver.calls() == waits(7, number=3)


@isolated
def test_P32_pinned_and_managed_memory_is_ordered_by_the_device_it_belongs_to():
    driver = Driver()
    for kind in (CUDA_HOST[0], CUDA_MANAGED[0]):
        assert exported(stream=7, device=(kind, 2))["device"] == (kind, 0)
        assert driver.calls() == waits(7, number=2)
        assert exported(stream=-1, device=(kind, 2))["device"] == (kind, 0)
        refused(ValueError, "stream", stream=0, device=(kind, 2))
        assert driver.calls() == []


@isolated
def test_P32_driver_that_fails_is_a_buffer_error_with_its_number():
    driver = Driver()
    for name in [call.split()[0] for call in waits(7)][:-2]:
        driver.fail(name)
        refused(BufferError, "700", stream=7)
        calls = driver.calls()
        assert calls[-1].split()[0] in (name, "cuDevicePrimaryCtxRelease")
    for name in [call.split()[0] for call in fetches(1)][:-2]:
        driver.fail(name)
        refused(BufferError, "700", dl_device=CPU)
        assert driver.calls()


def test_P32_without_a_driver():
    run_isolated("""
from test_producer_cuda import *
for options in (dict(stream=7), dict(dl_device=CPU)):
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
import os
from test_producer_cuda import *

def is_loaded():
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True

for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False), dict(device=(2, 5)), dict(device=CUDA_MANAGED)):
    assert exported(stream=-1, **options)["data"] == NOWHERE
    assert not is_loaded(), options
exported(stream=7)
assert is_loaded(), "this test would not notice"
""", env={"LD_LIBRARY_PATH": str(library().parent)})


@isolated
def test_P34_minus_1_makes_no_call():
    driver = Driver()
    exported(stream=7)
    assert driver.calls() == waits(7)
    for options in ({}, VERSIONED, dict(dl_device=CUDA), dict(copy=False)):
        exported(stream=-1, **options)
        assert driver.calls() == []


@isolated
def test_P35_rocm_has_no_streams_1_and_2():
    driver = Driver()
    for stream in (1, 2):
        refused(ValueError, "ROCm", device=ROCM, stream=stream)
    for stream in (None, 0, -1):
        assert exported(device=ROCM, stream=stream)["device"] == ROCM
    refused(BufferError, "ROCm", device=ROCM, stream=7)  # nothing here could make it wait
    assert driver.calls() == []
