# tests/python/test_malformed.py: descriptions that contradict themselves, and odd ones that do not.
from __future__ import annotations

import struct as packing

import fakes
import tenon
import tenon_probe
from isolation import SANITIZED, isolated, table
from producers import CUDA, NOWHERE, SUBBYTE_PADDED, Producer, exactly_once, refuse, take

MALFORMED = tenon.MalformedError
BIG = 2**63 - 1
LOW = -(2**63)


def every_way_in(fields, check):
    """A capsule, a producer's method, an exchange table (owned and borrowed), legacy and versioned."""
    from producers import exchange_class

    for versioned in (True, False):
        if "flags" in fields and not versioned:
            continue
        struct = fakes.Struct(versioned=versioned, **fields)
        with exactly_once(struct):
            check(struct.capsule(), tenon.asdlpack)
        producer = Producer(versioned=versioned, **fields)
        with exactly_once(producer.struct):
            check(producer, tenon.asdlpack)
        with exactly_once(producer.struct, exports=2):
            check(producer, lambda obj: tenon_probe.borrow(obj, read=False))
    exchanged = exchange_class()(**fields)
    with exactly_once(exchanged.struct):
        check(exchanged, tenon.asdlpack)
    if "flags" not in fields:  # a borrowed struct has none
        with exactly_once(exchanged.struct, exports=None):
            check(exchanged, lambda obj: tenon_probe.borrow(obj, read=False))


def is_refused(fields, exception=MALFORMED, match=None):
    every_way_in(fields, lambda obj, importer: refuse(obj, exception, match, importer))


def is_taken(fields, **wanted):
    struct = fakes.Struct(**fields)
    with exactly_once(struct):
        seen = take(struct.capsule())
        for name, value in wanted.items():
            assert getattr(seen, name) == value, (name, getattr(seen, name), value)
    every_way_in(fields, lambda obj, importer: importer(obj))


table(globals(), {
    "test_F33_C16_negative_ndim": dict(fields=dict(shape=(2,), ndim=-1), match="ndim"),
    "test_F33_C16_lowest_ndim": dict(fields=dict(shape=(2,), ndim=-(2**31)), match="ndim"),
    "test_F34_null_shape": dict(fields=dict(shape=None, ndim=2), match="shape"),
    "test_F34_shape_is_a_small_integer": dict(fields=dict(shape=8, ndim=2), match="shape"),
    "test_F34_strides_are_a_small_integer": dict(fields=dict(shape=(2,), strides=24), match="strides"),
    "test_F35_C16_ndim_65": dict(fields=dict(shape=(1,) * 65), exception=BufferError, match="ndim.*65"),
    "test_F35_huge_ndim_with_null_shape": dict(fields=dict(shape=None, ndim=2**31 - 1), exception=BufferError,
                                               match="ndim"),
    "test_F36_negative_extents": dict(fields=dict(shape=(-2, -3)), match=r"shape\[0\].*-2"),
    "test_F36_negative_extent_beside_a_zero": dict(fields=dict(shape=(0, -3)), match=r"shape\[1\]"),
    "test_F36_lowest_extent": dict(fields=dict(shape=(LOW,)), match="shape"),
    "test_F37_element_count_wraps_to_zero": dict(fields=dict(shape=(2**32, 2**32, 16)), match="shape"),
    "test_F37_element_count_wraps": dict(fields=dict(shape=(BIG, BIG)), match="shape"),
    "test_F38_byte_count_wraps": dict(fields=dict(shape=(2**61,)), match="shape|strides"),
    "test_F39_stride_times_itemsize_wraps": dict(fields=dict(shape=(2, 2), strides=(2**62, 1)), match="strides"),
    "test_F39_lowest_stride": dict(fields=dict(shape=(2,), strides=(LOW,)), match="strides"),
    "test_F39_strides_that_cancel": dict(fields=dict(shape=(2, 2), strides=(BIG, -BIG)), match="strides"),
    "test_F39_negative_stride_below_zero": dict(fields=dict(shape=(2,), strides=(-(2**60),)), match="strides"),
    "test_F40_data_plus_offset_wraps": dict(fields=dict(shape=(2,), byte_offset=2**64 - 4), match="byte_offset"),
    "test_F40_last_element_wraps": dict(fields=dict(shape=(4,), data=2**64 - 8), match="strides"),
    "test_F42_null_data": dict(fields=dict(shape=(2,), data=None), match="data"),
    "test_F42_null_data_of_a_scalar": dict(fields=dict(shape=(), data=None), match="data"),
    "test_F42_null_data_with_offset": dict(fields=dict(shape=(2,), data=None, byte_offset=4096), match="data"),
    "test_F44_C17_no_bits": dict(fields=dict(shape=(2,), dtype=(2, 0, 1)), match="dtype"),
    "test_F44_C17_no_lanes": dict(fields=dict(shape=(2,), dtype=(2, 32, 0)), match="dtype"),
    "test_F44_C17_fp8_of_16_bits": dict(fields=dict(shape=(2,), dtype=(12, 16, 1)), match="dtype"),
    "test_C17_fp4_of_8_bits": dict(fields=dict(shape=(2,), dtype=(17, 8, 1)), match="dtype"),
    "test_C17_fp6_of_8_bits": dict(fields=dict(shape=(2,), dtype=(15, 8, 1)), match="dtype"),
    "test_C23_F44_device_kind_zero": dict(fields=dict(shape=(2,), device=(0, 0)), match="device"),
    "test_C23_F44_negative_device_kind": dict(fields=dict(shape=(2,), device=(-1, 0)), match="device"),
    "test_F44_negative_device_id": dict(fields=dict(shape=(2,), device=(1, -1)), match="device"),
}, is_refused)


table(globals(), {
    "test_C12_F48_null_strides_are_row_major": dict(fields=dict(shape=(2, 3, 4)), strides=(12, 4, 1)),
    "test_C14_F53_scalar_with_null_arrays": dict(fields=dict(shape=None, ndim=0), shape=(), strides=(), size=1, nbytes=4),
    "test_C14_F53_scalar_with_junk_arrays": dict(fields=dict(shape=16, strides=8, ndim=0), shape=(), size=1),
    "test_C15_F52_empty_with_null_data": dict(fields=dict(shape=(0,), data=None), size=0, nbytes=0, data_ptr=0),
    "test_C15_F52_empty_with_data": dict(fields=dict(shape=(3, 0)), size=0, is_contiguous=True),
    "test_F52_empty_with_huge_extents": dict(fields=dict(shape=(BIG, 0, BIG)), size=0, is_contiguous=True),
    "test_F52_empty_with_any_strides": dict(fields=dict(shape=(0, 5), strides=(LOW, BIG)), size=0, strides=(LOW, BIG)),
    "test_F51_size_one_axes_take_any_stride": dict(fields=dict(shape=(1, 3, 1), strides=(LOW, 1, BIG)),
                                                   strides=(LOW, 1, BIG), is_contiguous=True),
    "test_C13_F50_zero_stride": dict(fields=dict(shape=(2**40, 3), strides=(0, 1)), size=3 * 2**40),
    "test_F35_C16_ndim_64": dict(fields=dict(shape=(1,) * 64), ndim=64),
    "test_F45_C19_three_packed_fp4_are_two_bytes": dict(fields=dict(shape=(3,), dtype=(17, 4, 1)), nbytes=2),
    "test_F45_C19_three_padded_fp4_are_three_bytes": dict(
        fields=dict(shape=(3,), dtype=(17, 4, 1), flags=SUBBYTE_PADDED), nbytes=3),
    "test_F44_C17_unknown_code": dict(fields=dict(shape=(2,), dtype=(99, 8, 1)), nbytes=2),
    "test_F44_C17_lanes": dict(fields=dict(shape=(2,), dtype=(2, 32, 4)), nbytes=32, itemsize=16),
    "test_F44_C17_24_bits": dict(fields=dict(shape=(2,), dtype=(0, 24, 1)), nbytes=6, itemsize=3),
    "test_F44_C17_one_bit_bool": dict(fields=dict(shape=(9,), dtype=(6, 1, 1)), nbytes=2, itemsize=1),
    "test_F44_C17_float_of_8_bits": dict(fields=dict(shape=(2,), dtype=(2, 8, 1)), nbytes=2),
    "test_C23_F44_unknown_device": dict(fields=dict(shape=(2,), device=(99, 0)), device="device(99):0"),
    "test_F44_fp4_pairs_as_torch_has_them": dict(fields=dict(shape=(3,), dtype=(17, 4, 2)), nbytes=3),
    "test_F41_C11_offset_is_applied_on_a_device": dict(
        fields=dict(shape=(2,), device=CUDA, data=NOWHERE, byte_offset=256), data_ptr=NOWHERE + 256, device="cuda:0"),
}, is_taken)


@isolated
def test_F41_C11_byte_offset_is_applied():
    struct = fakes.Struct(shape=(3,), byte_offset=8)
    with exactly_once(struct, exports=2):
        assert take(struct.capsule()).data_ptr == struct.address + 8
        assert tenon_probe.borrow(struct.capsule())["sum"] == 2 + 3 + 4


@isolated
def test_C13_F49_negative_strides_read_backwards():
    struct = fakes.Struct(shape=(2, 3), strides=(-3, -1), byte_offset=5 * 4)
    with exactly_once(struct, exports=2):
        assert take(struct.capsule()).strides == (-3, -1)
        assert tenon_probe.borrow(struct.capsule())["sum"] == sum(range(6))


@isolated
def test_C13_F49_reversed_values_in_order():
    struct = fakes.Struct(shape=(4,), strides=(-1,), byte_offset=12)
    with exactly_once(struct):
        copied = tenon.asdlpack(struct.capsule(), copy=True)
        assert packing.unpack("4f", bytes_of(copied)) == (3, 2, 1, 0)


def bytes_of(tensor) -> bytes:
    import ctypes
    return ctypes.string_at(tensor.data_ptr, tensor.nbytes)


@isolated
def test_F50_overlap_is_readable_and_not_writable():
    for shape, strides in (((4, 3), (0, 1)), ((3, 3), (1, 1))):
        struct = fakes.Struct(shape=shape, strides=strides)
        with exactly_once(struct, exports=4):
            assert take(struct.capsule()).shape == shape
            assert tenon_probe.borrow(struct.capsule())["size"] == shape[0] * shape[1]
            refuse(struct.capsule(), readonly=False, match="strides")
            refuse(struct.capsule(), match="strides", importer=lambda obj: tenon_probe.borrow(obj, writable=True))


@isolated
def test_C18_F43_misaligned_data_is_not_read_through_a_typed_view():
    struct = fakes.Struct(shape=(2,), byte_offset=1)
    with exactly_once(struct, exports=3):
        assert take(struct.capsule()).data_ptr == struct.address + 1
        refuse(struct.capsule(), match="align", importer=tenon_probe.borrow)
        assert take(struct.capsule(), copy=True).data_ptr % 64 == 0


@isolated
def test_F46_bool_bytes_other_than_one():
    struct = fakes.Struct(data=bytes([0, 1, 2, 255]), shape=(4,), dtype=(6, 8, 1))
    with exactly_once(struct):
        assert tenon_probe.borrow(struct.capsule())["sum"] == 3


@isolated
def test_C23_unknown_device_and_dtype_are_carried():
    for fields, shown in ((dict(device=(99, 7)), ("float32", "device(99):7")),
                          (dict(dtype=(99, 8, 3)), ("dtype(code=99, bits=8, lanes=3)", "cpu"))):
        struct = fakes.Struct(shape=(2,), **fields)
        with exactly_once(struct):
            held = tenon_probe.hold(struct.capsule())
            said = held.describe()
            assert (said["dtype"], said["device"]) == shown
            held.drop()


@isolated
def test_F37_snapshot_is_taken_before_it_is_checked():
    """The producer changes its arrays after the import: the tensor keeps what was checked."""
    import ctypes
    shape = (ctypes.c_int64 * 2)(2, 3)
    struct = fakes.Struct(shape=ctypes.addressof(shape), ndim=2)
    with exactly_once(struct):
        tensor = tenon.asdlpack(struct.capsule())
        shape[0] = 2**40
        assert tensor.shape == (2, 3) and tensor.size == 6
        del tensor


@isolated
def test_F44_every_type_code_and_width_is_judged_without_a_crash():
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    extents = st.one_of(st.integers(LOW, BIG), st.integers(-2, 5), st.sampled_from([0, 1, LOW, BIG, 2**32]))

    @settings(max_examples=100 if SANITIZED else 600, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(shape=st.one_of(st.none(), st.lists(extents, max_size=70)), strides=st.one_of(st.none(), st.lists(
        extents, min_size=70, max_size=70)), ndim=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
        dtype=st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 65535)),
        device=st.tuples(st.integers(-5, 30), st.integers(-2, 3)), flags=st.integers(0, 9),
        byte_offset=st.integers(0, 2**64 - 1), data=st.sampled_from([None, NOWHERE, 2**64 - 16, 1]),
        versioned=st.booleans(), version=st.tuples(st.integers(0, 2), st.integers(0, 2**32 - 1)))
    def any_description(shape, ndim, **fields):
        # The arrays are as long as ndim says, or absent: how much lies behind a pointer cannot be checked.
        if shape is None:
            fields["ndim"] = ndim or 0
        elif ndim is not None and not 0 <= ndim <= len(shape):
            fields["ndim"] = ndim if ndim < 0 or ndim > 64 else len(shape)
        struct = fakes.Struct(shape=shape, **fields)
        with exactly_once(struct):
            try:
                tensor = tenon.asdlpack(struct.capsule())
            except (BufferError, TypeError):
                return
            assert tensor.size >= 0 and tensor.nbytes >= 0 and repr(tensor)
            assert all(extent >= 0 for extent in tensor.shape) and len(tensor.strides) == tensor.ndim <= 64
            del tensor

    any_description()
