# tests/python/test_capsules.py: taking a capsule over: names, versions, one owner, one release.
from __future__ import annotations

import ctypes

import fakes
import tenon
from isolation import isolated, table
from producers import CPU, Cached, Producer, Seen, exactly_once, refuse, take

get_name = ctypes.pythonapi.PyCapsule_GetName
get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@isolated
def test_C01_versioned_and_legacy_capsules_are_told_apart_by_name():
    for versioned, version in ((True, (1, 3)), (False, None)):
        struct = fakes.Struct(shape=(2, 3), versioned=versioned)
        with exactly_once(struct):
            assert take(struct.capsule()).version == version


@isolated
def test_C02_F29_other_major_version_is_refused_and_released_once():
    for major in (0, 2, 99, 2**32 - 1):
        # The rest of the struct belongs to a layout nobody knows: shape is a pointer that must not be followed.
        struct = fakes.Struct(version=(major, 0), shape=0x10, ndim=3)
        with exactly_once(struct):
            assert "version" in refuse(struct.capsule())


@isolated
def test_C02_newer_minor_version_is_taken():
    struct = fakes.Struct(version=(1, 99), shape=(2,))
    with exactly_once(struct):
        assert take(struct.capsule()).version == (1, 99)


@isolated
def test_C03_F01_capsule_is_consumed_once():
    struct = fakes.Struct(shape=(2, 3))
    with exactly_once(struct):
        capsule = struct.capsule()
        first = tenon.asdlpack(capsule)
        assert "consumed already" in refuse(capsule)
        assert struct.releases == 0
        del first
        assert struct.releases == 1
        refuse(capsule)
        del capsule


@isolated
def test_C03_F02_cached_capsule_returned_twice():
    producer = Cached()
    with exactly_once(producer.struct):
        first = tenon.asdlpack(producer)
        assert "consumed already" in refuse(producer)
        assert first.shape == (2, 3)
        del first
        del producer.capsule


@isolated
def test_C04_capsule_is_renamed_when_taken():
    for versioned, used in ((True, b"used_dltensor_versioned"), (False, b"used_dltensor")):
        struct = fakes.Struct(shape=(2, 3), versioned=versioned)
        with exactly_once(struct):
            capsule = struct.capsule()
            tensor = tenon.asdlpack(capsule)
            assert get_name(capsule) == used
            del capsule  # it is no longer the capsule that owns
            assert struct.releases == 0
            del tensor


@isolated
def test_C05_F03_refused_capsule_stays_alive_with_its_name():
    struct = fakes.Struct(shape=(-1,))
    with exactly_once(struct):
        capsule = struct.capsule()
        refuse(capsule, tenon.MalformedError)
        assert struct.releases == 0
        assert get_name(capsule) == b"dltensor_versioned"
        refuse(capsule, tenon.MalformedError)
        assert struct.releases == 0
        del capsule


@isolated
def test_C05_device_not_asked_for_leaves_the_capsule_alone():
    struct = fakes.Struct(shape=(2,), device=(2, 0), data=0x7F0000000000)
    with exactly_once(struct):
        capsule = struct.capsule()
        refuse(capsule, device="cpu")
        assert struct.releases == 0
        assert get_name(capsule) == b"dltensor_versioned"
        del capsule


@isolated
def test_C06_F07_null_deleter():
    for versioned in (True, False):
        struct = fakes.Struct(shape=(2, 3), versioned=versioned, deleter="null")
        with exactly_once(struct):
            assert take(struct.capsule()).shape == (2, 3)
        with exactly_once(struct, exports=2):
            assert take(Producer(deleter="null")).shape == (2, 3)
            struct.capsule()


@isolated
def test_C27_bare_capsules_are_accepted():
    struct = fakes.Struct(shape=(4,))
    with exactly_once(struct):
        seen = take(struct.capsule())
        assert (seen.shape, seen.data_ptr, seen.dtype, seen.device) == ((4,), struct.address, "float32", "cpu")


@isolated
def test_F04_unconsumed_capsule_is_released_by_its_own_destructor():
    struct = fakes.Struct(shape=(2, 3))
    with exactly_once(struct):
        struct.capsule()


@isolated
def test_F05_every_import_releases_once():
    producer = Producer()
    with exactly_once(producer.struct, exports=100):
        tensors = [tenon.asdlpack(producer) for _ in range(100)]
        assert producer.struct.releases == 0
        del tensors[::2]
        assert producer.struct.releases == 50
        del tensors


@isolated
def test_F06_empty_tensor_with_null_data_is_released():
    for versioned in (True, False):
        struct = fakes.Struct(shape=(0, 3), data=None, versioned=versioned)
        with exactly_once(struct):
            assert take(struct.capsule()).data_ptr == 0


@isolated
def test_F09_F11_failing_imports_do_not_leak():
    struct = fakes.Struct(shape=(2, 3), flags=1 << 40)
    with exactly_once(struct, exports=2000):
        for _ in range(2000):
            refuse(struct.capsule())


@isolated
def test_F10_capsule_names_are_static():
    """The name outlives everything: what a later look at the capsule reads is still the name."""
    struct = fakes.Struct(shape=(2, 3))
    with exactly_once(struct):
        capsule = struct.capsule()
        take(capsule)
        junk = [bytearray(b"x" * 23) for _ in range(1000)]
        assert get_name(capsule) == b"used_dltensor_versioned"
        assert junk


@isolated
def test_F12_deleter_that_frees_the_struct():
    """The struct is gone when its deleter returns: a look at it afterwards is a fault under AddressSanitizer."""
    for versioned in (True, False):
        for shape in ((2, 3), (-1,)):  # taken, and refused
            struct = fakes.Struct(shape=shape, versioned=versioned, deleter="free")
            with exactly_once(struct):
                if shape == (2, 3):
                    take(struct.capsule())
                else:
                    refuse(struct.capsule(), tenon.MalformedError)


class Returns:
    """`__dlpack__` returns whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def __dlpack__(self, **keywords):
        return self if self.answer is Returns else self.answer

    def __dlpack_device__(self):
        return CPU


def returns(answer, match):
    text = refuse(Returns(answer), (BufferError, TypeError), match=match)
    assert "__dlpack__" in text


table(globals(), {
    "test_F13_dlpack_returns_None": dict(answer=None, match="capsule"),
    "test_F13_dlpack_returns_int": dict(answer=7, match="capsule"),
    "test_F13_dlpack_returns_itself": dict(answer=Returns, match="capsule"),
    "test_F13_dlpack_returns_a_type": dict(answer=int, match="capsule"),
    "test_F13_dlpack_returns_bytes": dict(answer=b"dltensor", match="capsule"),
}, returns)


@isolated
def test_F13_capsules_of_other_names():
    for name in ("junk", "", "DLTENSOR", "dltensor ", "dltensor_versioned_", "dlpack_exchange_api", "used", "x" * 5000):
        struct = fakes.Struct(shape=(2, 3))
        with exactly_once(struct):
            refuse(struct.capsule(name=name), match="name")
    import datetime
    refuse(datetime.datetime_CAPI, match="name")


@isolated
def test_F14_versioned_struct_under_the_legacy_name():
    for version in ((1, 0), (1, 3), (2, 0), (1, 200)):
        for fields in (dict(shape=(2, 3)), dict(shape=()), dict(shape=(2,), deleter="null"), dict(shape=(2,), flags=3)):
            struct = fakes.Struct(version=version, **fields)
            with exactly_once(struct):
                capsule = struct.capsule(name="dltensor")
                refuse(capsule, tenon.MalformedError)
                assert get_name(capsule) == b"dltensor" and struct.releases == 0
                del capsule


@isolated
def test_F14_legacy_struct_under_the_versioned_name():
    for fields in (dict(shape=(2, 3)), dict(shape=()), dict(shape=(0,), data=None), dict(shape=(2,), deleter="null")):
        struct = fakes.Struct(versioned=False, **fields)
        with exactly_once(struct):
            capsule = struct.capsule(name="dltensor_versioned")
            refuse(capsule)
            assert get_name(capsule) == b"dltensor_versioned" and struct.releases == 0
            del capsule


@isolated
def test_F27_deleter_that_throws_a_cpp_exception():
    struct = fakes.Struct(shape=(2, 3), deleter="throw")
    with exactly_once(struct):
        tensor = tenon.asdlpack(struct.capsule())
        del tensor


@isolated
def test_F30_unknown_flag_bits_are_refused_and_named():
    for bits in (8, 1 << 40, 1 << 63, 8 | 1):
        struct = fakes.Struct(shape=(2, 3), flags=bits)
        with exactly_once(struct):
            assert hex(bits & ~7) in refuse(struct.capsule())


@isolated
def test_F30_known_flags_are_kept():
    for flags in range(8):
        struct = fakes.Struct(shape=(2, 3), flags=flags)
        with exactly_once(struct):
            seen = take(struct.capsule())
            assert seen.flags == flags and seen.readonly == bool(flags & 1)


@isolated
def test_F32_C10_legacy_is_read_only_unless_trusted():
    struct = fakes.Struct(shape=(2, 3), versioned=False)
    with exactly_once(struct, exports=4):
        assert take(struct.capsule()).readonly
        assert not take(struct.capsule(), trust_legacy=True).readonly
        assert not take(struct.capsule(), trust_legacy=True, readonly=False).readonly
        capsule = struct.capsule()
        refuse(capsule, readonly=False, match="read-only")
        del capsule


@isolated
def test_C24_F55_read_only_flag():
    struct = fakes.Struct(shape=(2, 3), flags=1)
    with exactly_once(struct, exports=2):
        assert take(struct.capsule()).readonly
        refuse(struct.capsule(), readonly=False, match="read-only")


@isolated
def test_F61_tensor_is_pickled_and_copied_by_value():
    import copy
    import pickle
    struct = fakes.Struct(shape=(2, 3))
    with exactly_once(struct):
        tensor = tenon.asdlpack(struct.capsule())
        assert copy.copy(tensor) is tensor
        for attempt in (copy.deepcopy, *(lambda t, p=p: pickle.loads(pickle.dumps(t, p)) for p in range(6))):
            other = attempt(tensor)
            assert other.tolist() == tensor.tolist()
            assert other.data_ptr != tensor.data_ptr
        seen = Seen(tensor)
        del tensor
        assert struct.releases == 1, "a copy keeps the memory it was made of"
        assert (other.shape, other.dtype) == (seen.shape, seen.dtype)
