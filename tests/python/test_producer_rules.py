# tests/python/test_producer_rules.py: what the capsules of our own objects say: rules P1 to P8 and P17 to P28, P30, P31 and P36 to P42, read from the struct.
"""P9 to P16 are in test_producer_lifetimes.py, P29 and P32 to P35 in test_producer_cuda.py."""
from __future__ import annotations

import ctypes

import pytest
import tenon
import tenon_exports
from fakes_ctypes import Versioned, described, name_of, opened
from producers import CPU, CUDA, CUDA_HOST, IS_COPIED, NOWHERE, READ_ONLY, ROCM, SUBBYTE_PADDED, exactly_once, refuse
from tenon_exports import Counter, Matrix

np = pytest.importorskip("numpy")

CUDA_MANAGED, OPENCL, VULKAN, METAL, ROCM_HOST, WEBGPU = (13, 0), (4, 0), (7, 0), (8, 0), (11, 0), (15, 0)
VERSIONED = dict(max_version=(1, 3))

# One object of each class that produces: our own over C++ memory, our own over memory of Python's, a user's.
OBJECTS = {
    "own": lambda: tenon_exports.produce(Counter()),
    "imported": lambda: tenon.asdlpack(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "matrix": lambda: Matrix(2, 3),
}
every_object = pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS.keys())
both_structs = pytest.mark.parametrize("options", [{}, VERSIONED], ids=["legacy", "versioned"])


class Export:
    """What one `__dlpack__` call gave: the capsule, the struct in it, and the struct's fields in plain words."""

    def __init__(self, obj, **options):
        self.capsule = obj.__dlpack__(**options)
        self.name = name_of(self.capsule)
        self.struct = opened(self.capsule)
        self.__dict__.update(described(self.struct.dl_tensor))
        self.flags = self.struct.flags if isinstance(self.struct, Versioned) else None

    def bytes(self, count):
        return ctypes.string_at(self.data + self.byte_offset, count)


def produced(**fields):
    """A producer object of C++ memory; nothing asserts its release (see `exactly_once` for that)."""
    return tenon_exports.produce(Counter(), **fields)


def refused(obj, exception=BufferError, match=None, **options):
    """The export raises this and hands out nothing."""
    return refuse(obj, exception, match, lambda o: o.__dlpack__(**options))


# --- arguments ------------------------------------------------------------------------------------


@every_object
def test_P01_the_four_keywords(make):
    obj = make()
    assert Export(obj, stream=None, max_version=(1, 0), dl_device=None, copy=None).data == Export(obj).data


@every_object
@pytest.mark.parametrize("args", [(None,), (None, (1, 0)), (-1, None, None, None)], ids=len)
def test_P01_positional_arguments_are_a_type_error(make, args):
    obj = make()
    refuse(obj, TypeError, "keyword", lambda o: o.__dlpack__(*args))


@every_object
@pytest.mark.parametrize("name", ["device", "max_versio", "max_version2", "Stream", "", "dtype", "cop\u0443"])
def test_P02_unknown_keyword_is_a_type_error(make, name):
    refused(make(), TypeError, "unexpected keyword", **{name: None})


def test_P02_refusals_for_what_the_data_is_are_never_type_errors():
    """Consumers answer a TypeError by asking again in older words."""
    for fields, options in ((dict(readonly=True), {}), (dict(dtype="float4_e2m1fn", padded=True), {}),
                            (dict(), dict(dl_device=(2, 0), copy=False)), (dict(device=CUDA, address=NOWHERE), dict(copy=True)),
                            (dict(device=METAL, address=NOWHERE), dict(dl_device=CPU))):
        counter = Counter()
        with exactly_once(counter):
            refused(tenon_exports.produce(counter, **fields), BufferError, **options)


@every_object
@pytest.mark.parametrize("options", [{}, dict(max_version=None)], ids=str)
def test_P03_no_max_version_gives_the_legacy_struct(make, options):
    assert Export(make(), **options).name == b"dltensor"


@every_object
@pytest.mark.parametrize("version", [(1, 0), (1, 3), (1, 99), (2, 0), (2**32 - 1, 2**32 - 1)], ids=str)
def test_P04_major_1_and_later_gives_the_versioned_struct(make, version):
    assert Export(make(), max_version=version).name == b"dltensor_versioned"


@every_object
@pytest.mark.parametrize("version", [(0, 8), (0, 0), (0, 99)], ids=str)
def test_P05_major_0_gives_the_legacy_struct(make, version):
    assert Export(make(), max_version=version).name == b"dltensor"


@every_object
@pytest.mark.parametrize("version", [1, 1.0, "1.0", (), (1,), (1, 0, 0), [1, 0], ("1", "0"), (1.0, 0), (1, None)],
                         ids=str)
def test_P06_max_version_that_is_no_pair_of_integers_is_a_type_error(make, version):
    refused(make(), TypeError, "max_version", max_version=version)


@every_object
@pytest.mark.parametrize("version", [(1, 0), (1, 3), (1, 99), (2, 0)], ids=str)
def test_P07_the_version_is_our_own_whatever_was_asked_for(make, version):
    said = Export(make(), max_version=version).struct.version
    assert (said.major, said.minor) == (1, 3)


@every_object
@pytest.mark.parametrize("copy", [None, True, False])
def test_P08_reserved_flag_bits_are_zero(make, copy):
    assert Export(make(), copy=copy, **VERSIONED).flags & ~(READ_ONLY | IS_COPIED | SUBBYTE_PADDED) == 0


# --- layout ---------------------------------------------------------------------------------------


@both_structs
@pytest.mark.parametrize(("fields", "strides"), [
    (dict(shape=(2, 3)), (3, 1)), (dict(shape=(5,)), (1,)), (dict(shape=(0,)), (1,)), (dict(shape=(2, 0, 3)), None),
    (dict(shape=(1,) * 64), None), (dict(shape=(2, 3), strides=(1, 2)), (1, 2)),
], ids=str)
def test_P17_strides_are_always_there(fields, strides, options):
    counter = Counter()
    with exactly_once(counter):
        export = Export(tenon_exports.produce(counter, **fields), **options)
        assert export.strides is not None and export.shape == fields["shape"]
        assert strides is None or export.strides == strides
        del export


@both_structs
@pytest.mark.parametrize("make", [
    lambda: tenon.asdlpack(np.array(7, np.int32)), lambda: produced(shape=(), dtype="int32", data=b"\7\0\0\0"),
], ids=["imported", "own"])
def test_P18_no_axes_at_all(make, options):
    obj = make()
    export = Export(obj, **options)
    assert (export.shape, export.struct.dl_tensor.ndim, export.bytes(4)) == ((), 0, b"\7\0\0\0")
    again = tenon.asdlpack(export.capsule)
    assert (again.shape, again.data_ptr) == ((), export.data)
    assert np.asarray(obj) == 7 and memoryview(obj).shape == ()


@both_structs
@pytest.mark.parametrize(("array", "strides"), [
    (np.zeros((4, 6), np.float64)[::2, ::3], (12, 3)), (np.zeros((4, 6), np.float64)[::-1], (-6, 1)),
    (np.broadcast_to(np.zeros(3, np.int16), (4, 3)).view(), (0, 1)), (np.zeros((4, 6), np.complex64).T, (1, 6)),
], ids=["steps", "negative", "broadcast", "transposed"])
def test_P19_strides_count_elements(array, strides, options):
    if not array.flags.writeable:
        options = VERSIONED
    assert Export(tenon.asdlpack(array), **options).strides == strides


def records(shape):
    return np.zeros(shape, dtype=[("a", "<f4"), ("b", "i1")])["a"]


def test_P19_byte_stride_that_no_element_count_gives():
    refuse(records(4), BufferError, "stride")


def test_P19_axis_of_one_element_may_have_any_stride():
    array = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (1, 2), (5, 4))
    assert Export(tenon.asdlpack(array)).shape == (1, 2)
    assert Export(tenon.asdlpack(records(1))).shape == (1,)


@both_structs
@pytest.mark.parametrize("device", [CPU, CUDA, METAL], ids=str)
def test_P20_nothing_has_no_address(device, options):
    export = Export(produced(shape=(3, 0), device=device, address=0x10000, byte_offset=64), **options)
    assert (export.data, export.byte_offset) == (None, 0)


@both_structs
@pytest.mark.parametrize("device", [CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED], ids=str)
def test_P21_byte_offset_is_folded_into_the_address(device, options):
    export = Export(produced(device=device, address=NOWHERE, byte_offset=256), stream=-1, **options)
    assert (export.data, export.byte_offset) == (NOWHERE + 256, 0)


@both_structs
@pytest.mark.parametrize("device", [OPENCL, VULKAN, METAL, WEBGPU], ids=str)
def test_P22_handles_keep_their_offset(device, options):
    export = Export(produced(device=device, address=0x1001, byte_offset=256), **options)
    assert (export.data, export.byte_offset, export.device) == (0x1001, 256, device)


# --- flags and copies -----------------------------------------------------------------------------


def readonly_array():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    return array


READ_ONLY_OBJECTS = {"own": lambda: produced(readonly=True), "imported": lambda: tenon.asdlpack(readonly_array()),
                     "bytes": lambda: tenon.asdlpack(b"abcdef")}
read_only_object = pytest.mark.parametrize("make", READ_ONLY_OBJECTS.values(), ids=READ_ONLY_OBJECTS.keys())


@read_only_object
def test_P23_read_only_memory_says_so(make):
    assert Export(make(), **VERSIONED).flags == READ_ONLY


@every_object
def test_P23_writable_memory_says_nothing(make):
    assert Export(make(), **VERSIONED).flags == 0


@read_only_object
@pytest.mark.parametrize("options", [{}, dict(max_version=(0, 8)), dict(copy=False), dict(dl_device=CPU)], ids=str)
def test_P24_read_only_memory_does_not_leave_in_a_legacy_struct(make, options):
    refused(make(), BufferError, "read-only", **options)


@read_only_object
def test_P24_unless_it_is_a_copy(make):
    obj = make()
    export = Export(obj, copy=True)
    assert export.name == b"dltensor" and export.data != obj.data_ptr
    assert export.bytes(obj.nbytes) == ctypes.string_at(obj.data_ptr, obj.nbytes)


@every_object
@both_structs
def test_P25_copy_true_is_memory_of_its_own(make, options):
    obj = make()
    view, copy = Export(obj, **options), Export(obj, copy=True, **options)
    assert copy.data != view.data and copy.bytes(24) == view.bytes(24)
    assert copy.flags in (None, IS_COPIED) and (copy.shape, copy.strides) == ((2, 3), (3, 1))
    assert copy.data % 64 == 0
    ctypes.memset(copy.data, 0x55, 24)
    assert view.bytes(24) != copy.bytes(24)


def test_P25_copy_of_read_only_memory_is_writable():
    for make in READ_ONLY_OBJECTS.values():
        assert Export(make(), copy=True, **VERSIONED).flags == IS_COPIED


@pytest.mark.parametrize("array", [np.arange(24, dtype=np.int16).reshape(4, 6)[::-1, ::2], np.arange(6, dtype=">i1"),
                                   np.zeros((0, 3), np.float64), np.array(7.5), np.broadcast_to(np.float32(3), (2, 2))],
                         ids=["strided", "bytes", "empty", "scalar", "broadcast"])
def test_P25_copy_is_compact_whatever_the_strides(array):
    copy = Export(tenon.asdlpack(array), copy=True, **VERSIONED)
    assert copy.shape == array.shape
    assert (copy.data and copy.bytes(array.nbytes)) == (array.tobytes() or None)


def test_P25_copied_memory_is_released_once():
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        copy = Export(obj, copy=True, **VERSIONED)
        del obj
        assert counter.releases == 1, "a copy does not keep what it was copied from"
        del copy


def test_P25_a_copy_passed_on_is_no_copy_for_the_next():
    """Both then see the same memory."""
    first = tenon.asdlpack(np.arange(3), copy=True)
    assert Export(first, **VERSIONED).flags == Export(first, **VERSIONED).flags == 0


def test_P26_copy_false_where_a_copy_is_needed():
    refused(produced(device=CUDA, address=NOWHERE), BufferError, "copy", copy=False, dl_device=CPU)


@every_object
@both_structs
@pytest.mark.parametrize("copy", [None, False])
def test_P27_no_copy_where_a_view_will_do(make, copy, options):
    obj = make()
    export = Export(obj, copy=copy, **options)
    assert export.data == (obj.address if isinstance(obj, Matrix) else obj.data_ptr)
    assert export.flags in (None, 0)


@pytest.mark.parametrize("device", [CPU, CUDA, CUDA_HOST, METAL, ROCM, ROCM_HOST, CUDA_MANAGED, (12, 7), (2, 3)],
                         ids=str)
@pytest.mark.parametrize("copy", [None, False])
def test_P28_ones_own_device_is_no_reason_to_copy(device, copy):
    obj = produced(device=device, address=NOWHERE)
    export = Export(obj, dl_device=obj.__dlpack_device__(), copy=copy, **VERSIONED)
    assert (export.data, export.flags, export.device) == (NOWHERE, 0, device)


@pytest.mark.parametrize("device", [CUDA_HOST, ROCM_HOST, CUDA_MANAGED, (3, 5)], ids=str)
@pytest.mark.parametrize("copy", [None, False])
def test_P28_host_memory_of_any_kind_can_be_the_cpus(device, copy):
    export = Export(produced(device=device), dl_device=CPU, copy=copy, **VERSIONED)
    assert (export.device, export.flags) == (CPU, 0)


@pytest.mark.parametrize(("device", "wanted"), [
    (CPU, (1, 1)), (CPU, CUDA_HOST), (CPU, (99, 0)), (CPU, (-1, 0)), (CPU, (2**31 - 1, 2**31 - 1)),
    (CUDA, (2, 1)), (CUDA, ROCM), (METAL, CPU), ((12, 0), CPU),
], ids=str)
@pytest.mark.parametrize("copy", [None, True, False])
def test_P30_device_that_cannot_be_reached(device, wanted, copy):
    counter = Counter()
    with exactly_once(counter):
        refused(tenon_exports.produce(counter, device=device, address=NOWHERE), BufferError, "dl_device",
                dl_device=wanted, copy=copy)


@pytest.mark.parametrize("device", [CUDA_HOST, ROCM_HOST, CUDA_MANAGED], ids=str)
def test_P30_copy_on_a_device_where_none_can_be_made(device):
    """Asked for by name, pinned memory is not answered with memory that is not."""
    obj = produced(device=device)
    try:
        export = Export(obj, dl_device=device, copy=True, **VERSIONED)
    except BufferError:
        return
    assert export.device == device


@every_object
@pytest.mark.parametrize("stream", [0, 1, 2, 7, -2, 2**62])
@pytest.mark.parametrize("copy", [None, True])
def test_P31_host_memory_has_no_streams(make, stream, copy):
    refused(make(), ValueError, "stream", stream=stream, copy=copy)


@every_object
@pytest.mark.parametrize("stream", [None, -1])
def test_P31_no_stream_and_no_synchronization_are_fine(make, stream):
    assert Export(make(), stream=stream).device == CPU


@every_object
@pytest.mark.parametrize("stream", ["0", 1.0, 1j, b"1", (1,), object(), True, False], ids=lambda s: type(s).__name__ + (str(s) if isinstance(s, bool) else ""))
def test_P36_stream_that_is_no_integer_is_a_type_error(make, stream):
    refused(make(), TypeError, "stream", stream=stream)


# --- element types --------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [
    np.zeros(3, ">f4"), np.zeros(3, object), np.zeros(3, [("a", "i4")]), np.zeros(3, np.longdouble), np.zeros(3, "S3"),
    np.zeros(3, "U3"), np.zeros(3, np.clongdouble), np.zeros(3, "V4"),
], ids=lambda array: str(array.dtype))
def test_P37_element_types_dlpack_has_no_words_for(array):
    refuse(array, BufferError)


@pytest.mark.parametrize("array", [np.zeros(3, "datetime64[s]"), np.zeros(3, "timedelta64[ns]")], ids=["date", "delta"])
def test_P37_dates_are_not_passed_off_as_something_else(array):
    refuse(array, (BufferError, ValueError))


DTYPES = {"bool": (6, 8, 1), "complex64": (5, 64, 1), "complex128": (5, 128, 1), "complex32": (5, 32, 1),
          "int8": (0, 8, 1), "int64": (0, 64, 1), "uint16": (1, 16, 1), "float16": (2, 16, 1), "float64": (2, 64, 1),
          "bfloat16": (4, 16, 1), "float8_e4m3fn": (10, 8, 1), "float8_e5m2": (12, 8, 1)}


def exported_dtype(name, **options):
    return Export(produced(dtype=name), **options).dtype


@both_structs
def test_P38_bool_is_a_byte(options):
    assert exported_dtype("bool", **options) == Export(tenon.asdlpack(np.zeros(3, bool)), **options).dtype == (6, 8, 1)


@both_structs
@pytest.mark.parametrize(("name", "triple"), DTYPES.items())
def test_P39_bits_of_complex_and_other_types_count_the_whole_element(name, triple, options):
    assert exported_dtype(name, **options) == triple


@pytest.mark.parametrize(("name", "triple"), [("float4_e2m1fn", (17, 4, 1)), ("float6_e2m3fn", (15, 6, 1)),
                                              ("float6_e3m2fn", (16, 6, 1)), ("float4_e2m1fn_x2", (17, 4, 2))])
def test_P40_small_floats_say_their_bits_and_whether_they_are_padded(name, triple):
    packed, padded = Export(produced(dtype=name), **VERSIONED), Export(produced(dtype=name, padded=True), **VERSIONED)
    assert packed.dtype == padded.dtype == triple
    assert (packed.flags, padded.flags) == (0, SUBBYTE_PADDED)
    assert Export(produced(dtype=name)).dtype == triple
    refused(produced(dtype=name, padded=True), BufferError, "padded")
    assert Export(produced(dtype=name, padded=True), copy=True, **VERSIONED).flags == IS_COPIED | SUBBYTE_PADDED


@pytest.mark.parametrize("triple", [(17, 8, 1), (15, 4, 1), (16, 8, 1), (17, 4, 0), (2, 0, 1)], ids=str)
def test_P40_small_floats_of_other_bits_are_never_made(triple):
    counter = Counter()
    with exactly_once(counter):
        refuse(counter, tenon.MalformedError, "dtype", lambda c: tenon_exports.produce(c, dtype=triple))


# --- devices --------------------------------------------------------------------------------------


@both_structs
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("kind", [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 99])
def test_P41_the_method_says_what_the_capsule_says(kind, number, options):
    obj = produced(device=(kind, number), address=NOWHERE)
    assert obj.__dlpack_device__() == Export(obj, stream=-1, **options).device


@every_object
def test_P41_the_methods_answer_is_a_pair_of_integers_and_takes_no_arguments(make):
    obj = make()
    said = obj.__dlpack_device__()
    assert said == (1, 0) and type(said) is tuple and set(map(type, said)) == {int}
    with pytest.raises(TypeError):
        obj.__dlpack_device__(0)


@both_structs
@pytest.mark.parametrize("kind", [1, 3, 11, 13])
def test_P42_host_memory_has_number_0_wherever_it_was_pinned(kind, options):
    obj = produced(device=(kind, 5), address=NOWHERE)
    assert Export(obj, **options).device == obj.__dlpack_device__() == (kind, 0)
    assert Export(obj, dl_device=(kind, 5), **options).device == (kind, 0)


def test_P42_devices_keep_their_number():
    assert Export(produced(device=(2, 5), address=NOWHERE)).device == (2, 5)
