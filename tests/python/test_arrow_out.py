# tests/python/test_arrow_out.py: tensors as Arrow arrays: what their structs say, what is refused, and who releases them.
from __future__ import annotations

import ctypes
import gc
import sys
import threading

import tenon
from arrow_producers import FORMATS, Base, moved, opened, release
from fake_cuda import Driver, within
from isolation import isolated, run_isolated, table
from producers import CUDA, CUDA_HOST, NOWHERE, ROCM, exactly_once, refuse
from tenon_exports import Counter, Matrix, produce

MANAGED = (13, 0)
METHODS = ("__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_device_array__")


def produced(counter, **fields):
    return produce(counter, **{"shape": (6,), **fields})


# --- what the structs say ---------------------------------------------------------------------------


def is_described(format, dtype):
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter, dtype=dtype)
        alone = opened(tensor.__arrow_c_schema__())
        first, second = tensor.__arrow_c_array__()
        schema, array = opened(first), opened(second)
        for s in (alone, schema):
            assert (s.format, s.name, s.metadata, s.n_children) == (format.encode(), b"", None, 0)
            assert s.children is None and s.dictionary is None and s.release is not None
        assert (array.length, array.null_count, array.offset, array.n_buffers, array.n_children) == (6, 0, 0, 2, 0)
        assert array.buffers[0] is None and array.buffers[1] == tensor.data_ptr
        assert array.children is None and array.dictionary is None and array.release is not None
        del tensor, alone, first, second, schema, array, s


table(globals(), {f"test_{name}": dict(format=f, dtype=name) for f, (name, _) in FORMATS.items()}, is_described)


@isolated
def test_device_array_of_the_host():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        first, second = tensor.__arrow_c_device_array__()
        device = opened(second)
        assert (device.device_type, device.device_id, device.sync_event) == (1, -1, None)
        assert [*device.reserved] == [0, 0, 0]
        assert (device.array.length, device.array.buffers[1]) == (6, tensor.data_ptr)
        assert opened(first).format == b"f"
        del tensor, first, second, device


@isolated
def test_nothing_is_an_array_too():
    for address in ({}, {"address": 0}):
        counter = Counter()
        with exactly_once(counter):
            tensor = produced(counter, shape=(0,), **address)
            pair = tensor.__arrow_c_array__()
            array = opened(pair[1])
            assert array.length == 0 and array.buffers[1] is not None, "consumers take null for a fault"
            del tensor, pair, array


@isolated
def test_one_element_of_any_step_and_read_only_memory():
    counter = Counter()
    with exactly_once(counter, exports=2):
        assert opened(produced(counter, shape=(1,), strides=(7,)).__arrow_c_array__()[1]).length == 1
        assert opened(produced(counter, readonly=True).__arrow_c_array__()[1]).length == 6


@isolated
def test_byte_offset_is_applied():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter, byte_offset=8)
        pair = tensor.__arrow_c_array__()
        assert opened(pair[1]).buffers[1] == tensor.data_ptr and opened(pair[1]).offset == 0
        del tensor, pair


@isolated
def test_memory_that_is_hardly_aligned_is_not_refused():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter, dtype="int32", byte_offset=4)
        assert tensor.data_ptr % 8 == 4
        tensor.__arrow_c_array__()
        del tensor


@isolated
def test_class_of_the_users_own():
    matrix = Matrix(2, 3)
    for method in METHODS:
        assert method in vars(Matrix)
        refuse(matrix, BufferError, "one axis.*ravel", lambda o, m=method: getattr(o, m)())
    matrix.fault = 4  # one axis
    address, seen = matrix.address, sys.getrefcount(matrix)
    for method in METHODS[1:]:
        pair = getattr(matrix, method)()
        assert sys.getrefcount(matrix) == seen + 1, "what is exported keeps the object"
        array = moved(opened(pair[1]))
        del pair
        assert (array.length, array.buffers[1]) == (6, address)
        assert sys.getrefcount(matrix) == seen + 1
        release(array)
        assert sys.getrefcount(matrix) == seen
    matrix.fault = 1
    for method in METHODS:
        refuse(matrix, RuntimeError, "does not want to", lambda o, m=method: getattr(o, m)())


@isolated
def test_there_and_back():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter, dtype="int16")

        class Only:
            """Of all protocols, Arrow's alone."""

            def __arrow_c_array__(self, requested_schema=None):
                return tensor.__arrow_c_array__(requested_schema)

        back = tenon.asdlpack(Only())
        assert (back.data_ptr, back.shape, back.dtype, back.readonly) == (tensor.data_ptr, (6,), "int16", True)
        data = bytes(back)
        del tensor, Only
        gc.collect()
        assert counter.releases == 0 and bytes(back) == data
        del back


# --- what is refused --------------------------------------------------------------------------------


def is_refused(match, methods=METHODS, **fields):
    for method in methods:
        counter = Counter()
        with exactly_once(counter):
            tensor = produced(counter, **fields)
            text = refuse(tensor, BufferError, match, lambda o: getattr(o, method)())
            assert "; " in text, "a way out"
            del tensor


table(globals(), {
    "test_two_axes": dict(match="ndim.*got 2, expected 1.*ravel", shape=(2, 3)),
    "test_no_axes": dict(match="ndim.*got 0, expected 1.*reshape", shape=()),
    "test_no_elements_of_two_axes": dict(match="ndim", shape=(0, 3)),
    "test_steps": dict(match="strides.*copy", strides=(2,)),
    "test_reversed": dict(match="strides.*copy", strides=(-1,), byte_offset=20),
    "test_broadcast": dict(match="strides.*copy", strides=(0,)),
    "test_booleans": dict(match="bits.*uint8", dtype="bool"),
    "test_bfloat16": dict(match="no format", dtype="bfloat16"),
    "test_complex": dict(match="no format", dtype="complex64"),
    "test_float8": dict(match="no format", dtype="float8_e4m3fn"),
    "test_int4": dict(match="no format", dtype="int4"),
    "test_cuda_as_host_memory": dict(
        match="__arrow_c_device_array__", methods=METHODS[1:2], device=CUDA, address=NOWHERE),
    "test_rocm": dict(match="device", device=ROCM, address=NOWHERE),
    "test_metal": dict(match="device", device=(8, 0), address=NOWHERE),
}, is_refused)


# --- arguments --------------------------------------------------------------------------------------


@isolated
def test_schema_asked_for():
    asked = Base()
    tensor = produced(Counter())
    with exactly_once(asked.struct, exports=4):
        for method in (tensor.__arrow_c_array__, tensor.__arrow_c_device_array__):
            assert opened(method(None)[0]).format == opened(method(requested_schema=None)[0]).format == b"f"
            for how in (lambda c, m=method: m(c), lambda c, m=method: m(requested_schema=c)):
                capsule = asked.struct.schema(format="l")
                assert opened(how(capsule)[0]).format == b"f", "a wish that cannot be granted without a copy"
                assert opened(capsule).release is not None, "it stays the consumer's"
                del capsule


def is_type_error(*args, method="__arrow_c_array__", exception=TypeError, match="", **keywords):
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        refuse(tensor, exception, match, lambda o: getattr(o, method)(*args, **keywords))
        del tensor


@isolated
def test_arguments_that_mean_nothing():
    asked = Base()
    with exactly_once(asked.struct, exports=2):
        array, schema = asked.struct.array(**asked.array), asked.struct.schema(**asked.schema)
        for method in ("__arrow_c_array__", "__arrow_c_device_array__"):
            for junk in (1, "i", object(), (), array):
                is_type_error(junk, method=method, match="arrow_schema")
                is_type_error(requested_schema=junk, method=method, match="arrow_schema")
            is_type_error(None, None, method=method, match="at most 1")
            is_type_error(None, requested_schema=None, method=method, match="two values")
            is_type_error(schema, requested_schema=schema, method=method, match="two values")
        is_type_error(other=None, match="other")
        is_type_error(1, method="__arrow_c_schema__")
        del array, schema, junk


@isolated
def test_keywords_of_the_future():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        assert len(tensor.__arrow_c_device_array__(stream=None, other=None)) == 2
        refuse(tensor, NotImplementedError, "stream", lambda o: o.__arrow_c_device_array__(stream=1))
        del tensor


# --- who releases -----------------------------------------------------------------------------------


@isolated
def test_unused_capsules_release_what_they_hold():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        for method in METHODS:
            for _ in range(10):
                getattr(tensor, method)()
        pair = tensor.__arrow_c_array__()
        del tensor
        gc.collect()
        assert counter.releases == 0, "the capsule keeps the memory"
        del pair
        assert counter.releases == 1


def is_moved(method, thread):
    """As a consumer does: the struct is moved out, the capsules go, and it is released much later."""
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        data, pair = bytes(tensor), getattr(tensor, method)()
        schema, array = moved(opened(pair[0])), moved(opened(pair[1]))
        del tensor, pair
        gc.collect()
        assert counter.releases == 0
        release(schema)
        assert counter.releases == 0, "the schema keeps nothing"
        assert ctypes.string_at(array.buffers[1], 24) == data
        if thread:
            worker = threading.Thread(target=release, args=(array,))
            worker.start()
            worker.join()
        else:
            release(array)
        assert counter.releases == 1


table(globals(), {
    f"test_moved_out_of_{method.strip('_')}{'_and_released_elsewhere' * thread}": dict(method=method, thread=thread)
    for method in METHODS[1:] for thread in (False, True)
}, is_moved)


@isolated
def test_array_released_before_its_schema():
    counter = Counter()
    with exactly_once(counter):
        pair = produced(counter).__arrow_c_array__()
        schema, array = moved(opened(pair[0])), moved(opened(pair[1]))
        del pair
        release(array)
        assert counter.releases == 1 and schema.format == b"f"
        release(schema)


@isolated
def test_released_in_the_capsule_by_a_consumer():
    counter = Counter()
    with exactly_once(counter):
        pair = produced(counter).__arrow_c_array__()
        release(opened(pair[1]))
        assert counter.releases == 1
        release(opened(pair[0]))
        del pair


@isolated
def test_each_export_is_its_own():
    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        pairs = [tensor.__arrow_c_array__() for _ in range(5)]
        arrays = [moved(opened(pair[1])) for pair in pairs]
        del tensor, pairs
        assert len({array.private_data for array in arrays}) == 5
        for i, array in enumerate(arrays):
            assert counter.releases == 0, i
            release(array)
        assert counter.releases == 1


@isolated
def test_capsule_dropped_with_an_exception_pending():
    counter = Counter()
    with exactly_once(counter):
        pair = produced(counter).__arrow_c_array__()
        try:
            try:
                raise KeyError("mine")
            finally:
                del pair
        except KeyError as error:
            assert error.args == ("mine",)
        assert counter.releases == 1


@isolated
def test_long_chain_is_let_go_of_without_recursing():
    class Only:
        def __init__(self, inner):
            self.pair = inner.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.pair

    counter = Counter()
    with exactly_once(counter):
        tensor = produced(counter)
        for _ in range(30_000):
            tensor = tenon.asdlpack(Only(tensor))
        del tensor


def test_released_while_the_interpreter_goes():
    run_isolated("""
import threading, time, ctypes
import tenon_exports
from arrow_producers import moved, opened, release
arrays = [moved(opened(tenon_exports.produce(tenon_exports.Counter(), shape=(3,)).__arrow_c_array__()[1]))
          for _ in range(50)]
def work():
    for array in arrays:
        release(array)
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.01)
""")


# --- devices ----------------------------------------------------------------------------------------

@isolated
def test_cuda_is_complete_when_it_is_handed_out():
    driver, counter = Driver(), Counter()
    with exactly_once(counter):
        tensor = produced(counter, device=(2, 1), address=NOWHERE)
        assert opened(tensor.__arrow_c_schema__()).format == b"f"
        assert driver.calls() == []
        pair = tensor.__arrow_c_device_array__()
        assert driver.calls() == within("cuCtxSynchronize", number=1)
        device = opened(pair[1])
        assert (device.device_type, device.device_id, device.sync_event) == (2, 1, None)
        assert device.array.buffers[1] == NOWHERE
        refuse(tensor, BufferError, "host", lambda o: o.__arrow_c_array__())
        assert driver.calls() == []
        del tensor, pair, device


@isolated
def test_nothing_on_cuda_needs_no_driver():
    driver, counter = Driver(), Counter()
    with exactly_once(counter):
        tensor = produced(counter, device=CUDA, address=0, shape=(0,))
        assert opened(tensor.__arrow_c_device_array__()[1]).device_type == 2
        assert driver.calls() == []
        del tensor


@isolated
def test_driver_that_fails():
    driver = Driver()
    for function in ("cuDeviceGet", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain", "cuCtxSynchronize"):
        counter = Counter()
        with exactly_once(counter):
            tensor = produced(counter, device=CUDA, address=NOWHERE)
            driver.fail(function, 719)
            refuse(tensor, BufferError, "719", lambda o: o.__arrow_c_device_array__())
            driver.calls()
            del tensor


@isolated
def test_pinned_and_managed_memory_is_host_memory():
    driver = Driver()
    for device in (CUDA_HOST, MANAGED):
        counter = Counter()
        with exactly_once(counter):
            tensor = produced(counter, device=device)
            assert opened(tensor.__arrow_c_array__()[1]).buffers[1] == tensor.data_ptr
            assert "cuCtxSynchronize" in driver.calls(), "the device may still be writing"
            given = opened(tensor.__arrow_c_device_array__()[1])
            assert (given.device_type, given.device_id) == device
            assert "cuCtxSynchronize" in driver.calls()
            del tensor, given


def test_no_driver():
    run_isolated("""
import ctypes, sys
import tenon_exports
from producers import NOWHERE, exactly_once, refuse
try:
    ctypes.CDLL("libcuda.so.1")
    sys.exit(0)      # there is a real one
except OSError:
    pass
counter = tenon_exports.Counter()
with exactly_once(counter):
    tensor = tenon_exports.produce(counter, shape=(6,), device=(2, 0), address=NOWHERE)
    assert "driver cannot be loaded" in refuse(tensor, BufferError, None, lambda o: o.__arrow_c_device_array__())
    del tensor
""")
