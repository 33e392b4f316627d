# tests/python/test_inspect.py: looking at an object or a capsule tells everything, and changes nothing.
from __future__ import annotations

import array
import ctypes
import doctest
import gc
import json
import mmap
import pathlib
import pickle
import re
import sys

import fakes
import fakes_ctypes
import pytest
import tenon
import tenon._inspect
from isolation import SANITIZED, isolated, run_isolated, table
from producers import (
    IS_COPIED, NOWHERE, READ_ONLY, SUBBYTE_PADDED, Ancient, Cached, Producer, exactly_once, exchange_class, raising,
)
from real_support import has, need, nothing_kept

ROOT = pathlib.Path(__file__).parents[2]

_get_destructor = ctypes.PyDLL(None).PyCapsule_GetDestructor
_get_destructor.restype, _get_destructor.argtypes = ctypes.c_void_p, [ctypes.py_object]
_get_pointer = ctypes.PyDLL(None).PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

TENSOR_FACTS = ("shape", "strides", "dtype", "device", "ndim", "size", "itemsize", "nbytes", "data_ptr", "byte_offset",
                "alignment", "span", "is_c_contiguous", "is_f_contiguous", "may_overlap", "flags", "readonly", "copied",
                "padded", "owner")


def state_of(capsule):
    """All there is to a capsule, its struct byte by byte."""
    name = fakes_ctypes.name_of(capsule)
    pointer = _get_pointer(capsule, name)
    kind = fakes_ctypes.STRUCTS.get(name)
    return name, pointer, _get_destructor(capsule), kind and ctypes.string_at(pointer, ctypes.sizeof(kind))


def look(capsule) -> tenon.Inspection:
    """Inspects a capsule, which must be exactly as it was afterwards; all ways to show it work."""
    before = state_of(capsule)
    seen = tenon.inspect(capsule)
    assert state_of(capsule) == before
    shown(seen)
    return seen


def shown(seen: tenon.Inspection) -> None:
    assert json.loads(json.dumps(seen.as_dict())) == seen.as_dict()
    assert seen.type in str(seen) and "\n" not in repr(seen) and "<table>" in seen._repr_html_()
    assert pickle.loads(pickle.dumps(seen)) == seen and hash(seen) == hash(seen)


class Fails:
    """Raises a new exception for every call: an old one keeps the frames of all calls before."""

    def __dlpack__(self, **keywords):
        raise ValueError("mine")


def answers(seen) -> dict[str, str]:
    return {r.name: r.answer for r in seen.tried}


def without_facts(seen) -> bool:
    return all(getattr(seen, name) is None for name in TENSOR_FACTS)


# --- capsules ---------------------------------------------------------------------------------------


@isolated
def test_every_kind_of_capsule_is_read_and_not_consumed():
    for versioned, kind in ((True, "DLPack capsule, versioned"), (False, "DLPack capsule, legacy")):
        struct = fakes.Struct(shape=(2, 3), strides=(1, 2), versioned=versioned, byte_offset=4)
        with exactly_once(struct):
            capsule = struct.capsule()
            for _ in range(3):
                seen = look(capsule)
                assert struct.releases == 0
            assert (seen.kind, seen.used, seen.ok, seen.rung) == (kind, False, True, "DLPack capsule")
            assert (seen.shape, seen.strides, seen.ndim, seen.size) == ((2, 3), (1, 2), 2, 6)
            assert (seen.dtype, seen.device, seen.itemsize, seen.nbytes) == ("float32", "cpu", 4, 24)
            assert (seen.data_ptr, seen.byte_offset) == (struct.address + 4, 4)
            assert seen.span == (struct.address + 4, struct.address + 28)
            assert (seen.is_c_contiguous, seen.is_f_contiguous, seen.may_overlap) == (False, True, False)
            assert seen.version == ((1, 3) if versioned else None)
            assert seen.readonly is not versioned  # a legacy struct cannot say
            assert seen.owner == "the capsule"
            taken = tenon.asdlpack(capsule)
            assert taken.data_ptr == seen.data_ptr and struct.releases == 0
            del taken
            assert struct.releases == 1
            del capsule


@isolated
def test_capsule_that_is_dropped_after_the_look_is_released_by_its_producer():
    struct = fakes.Struct(shape=(2, 3))
    with exactly_once(struct):
        tenon.inspect(struct.capsule())


@isolated
def test_used_capsule_is_reported_and_nothing_is_read():
    for versioned in (True, False):
        # The struct is gone when its deleter has run: whoever reads it reads freed memory.
        struct = fakes.Struct(shape=(2, 3), versioned=versioned, deleter="free")
        with exactly_once(struct):
            capsule = struct.capsule()
            tenon.asdlpack(capsule)
            assert struct.releases == 1
            seen = tenon.inspect(capsule)
            shown(seen)
            assert seen.used is True and "consumed already" in seen.problem and "used up" in seen.kind
            assert seen.struct is None and seen.version is None and without_facts(seen) and seen.rung is None
            assert seen.capsule == ("used_dltensor_versioned" if versioned else "used_dltensor")
            del capsule


@isolated
def test_used_capsule_whose_struct_is_nowhere():
    for name in (b"used_dltensor", b"used_dltensor_versioned"):
        capsule = fakes_ctypes._new(NOWHERE, name, fakes_ctypes.Destructor())
        assert tenon.inspect(capsule).used is True


def malformed(match, *, shape=(2, 3), facts=False, name=None, **fields):
    struct = fakes.Struct(shape=shape, **fields)
    with exactly_once(struct):
        capsule = struct.capsule(**({"name": name} if name else {}))
        seen = look(capsule)
        assert struct.releases == 0
        assert re.search(match, seen.problem), seen.problem
        assert seen.used is False and not seen.ok and seen.rung is None
        assert without_facts(seen) is not facts
        assert seen.struct is not None
        # It is refused by an import for the same reason, and stays the producer's.
        with pytest.raises(BufferError, match=match):
            tenon.asdlpack(capsule)
        assert struct.releases == 0
        del capsule


table(globals(), {
    "test_hostile_null_shape": dict(match="shape: the pointer is null", shape=0, ndim=2),
    "test_hostile_shape_in_the_first_page": dict(match="shape", shape=0x10, ndim=2),
    "test_hostile_negative_ndim": dict(match=r"ndim.*negative \(got -3\)", ndim=-3),
    "test_hostile_huge_ndim": dict(match="ndim: too many axes", ndim=2**31 - 1),
    "test_hostile_null_data": dict(match="data: the pointer is null", data=None),
    "test_hostile_negative_extent": dict(match=r"shape\[1\]", shape=(2, -1)),
    "test_hostile_size_overflow": dict(match="64 bits", shape=(2**40, 2**40)),
    "test_hostile_version_2": dict(match="version", version=(2, 0), shape=0x10, ndim=3),
    "test_hostile_unknown_flags": dict(match="0x100", flags=0x100),
    "test_hostile_no_bits": dict(match="dtype", dtype=(2, 0, 1)),
    "test_hostile_device_kind": dict(match="kind of device", device=(0, 0)),
    "test_hostile_negative_device_id": dict(match="device id", device=(1, -1)),
    "test_hostile_versioned_under_the_legacy_name": dict(match="versioned struct under", name="dltensor"),
}, malformed)


@isolated
def test_what_is_only_unknown_is_described_like_anything_else():
    struct = fakes.Struct(shape=(2, 3), dtype=(200, 16, 1), device=(77, 5))
    with exactly_once(struct):
        seen = tenon.inspect(struct.capsule())
        assert seen.problem is None and seen.dtype.triple == (200, 16, 1) and seen.device.pair == (77, 5)
        assert (seen.shape, seen.strides, seen.nbytes) == ((2, 3), (3, 1), 12)


@isolated
def test_struct_shows_its_numbers_unchecked():
    fields = dict(data=0x1234560, shape=0x10, strides=0x18, ndim=-7, dtype=(9, 8, 7), device=(66, -5),
                  byte_offset=2**63, version=(1, 77), flags=0xFFFF)
    struct = fakes.Struct(**fields)
    with exactly_once(struct):
        capsule = struct.capsule()
        inside = look(capsule).struct
        for name, value in fields.items():
            assert getattr(inside, name) == value, name
        assert inside.address == state_of(capsule)[1] and inside.deleter and inside.manager_ctx
        del capsule


@isolated
def test_struct_of_another_major_version_is_not_read_beyond_what_is_stable():
    struct = fakes.Struct(shape=(2, 3), version=(2, 5), flags=9)
    with exactly_once(struct):
        seen = tenon.inspect(struct.capsule())
        assert seen.version == seen.struct.version == (2, 5) and seen.struct.flags == 9
        assert (seen.struct.data, seen.struct.ndim, seen.struct.dtype, seen.struct.shape) == (None,) * 4


@pytest.mark.skipif(sys.platform != "linux", reason="the system is asked what can be read on Linux alone")
def test_pointers_to_nowhere_are_a_problem_and_no_crash():
    run_isolated("""
import fakes_ctypes, fakes, tenon
from producers import NOWHERE
for name in (b"dltensor", b"dltensor_versioned"):
    for address in (NOWHERE, 8, 4097, 2**64 - 8, 2**63):
        seen = tenon.inspect(fakes_ctypes._new(address, name, fakes_ctypes.Destructor()))
        assert "cannot be read" in seen.problem and seen.struct is None and seen.shape is None, seen
for field in ("shape", "strides"):
    for versioned in (True, False):
        struct = fakes.Struct(versioned=versioned, **{"shape": (2, 3), field: NOWHERE, "ndim": 2})
        capsule = struct.capsule()
        seen = tenon.inspect(capsule)
        assert field in seen.problem and "cannot be read" in seen.problem, seen.problem
        assert seen.struct.ndim == 2 and getattr(seen.struct, field) == NOWHERE
        del capsule
        assert struct.releases == 1
""")


@pytest.mark.skipif(sys.platform != "linux", reason="the system is asked what can be read on Linux alone")
def test_struct_of_another_major_version_may_end_where_the_stable_part_ends():
    run_isolated("""
import ctypes, mmap, fakes_ctypes, tenon
pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
start = tenon.asdlpack(pages).data_ptr
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
stable = fakes_ctypes.Versioned.dl_tensor.offset
head = fakes_ctypes.Versioned(version=fakes_ctypes.Version(2, 1), flags=5)
address = start + mmap.PAGESIZE - stable
ctypes.memmove(address, ctypes.addressof(head), stable)
new = lambda: fakes_ctypes._new(address, b"dltensor_versioned", fakes_ctypes.Destructor())
seen = tenon.inspect(new())
assert seen.version == (2, 1) and seen.struct.flags == 5 and "major version" in seen.problem, seen
head.version.major = 1
ctypes.memmove(address, ctypes.addressof(head), stable)
assert "cannot be read" in tenon.inspect(new()).problem
""")


@isolated
def test_flags_of_a_capsule():
    for flags in range(8):
        struct = fakes.Struct(shape=(2, 3), flags=flags)
        with exactly_once(struct):
            seen = tenon.inspect(struct.capsule())
            assert seen.flags == flags and seen.readonly == bool(flags & READ_ONLY)
            assert seen.copied == bool(flags & IS_COPIED) and seen.padded == bool(flags & SUBBYTE_PADDED)


@isolated
def test_notes_on_a_capsule():
    struct = fakes.Struct(shape=(2, 3), deleter="null")
    assert any("no deleter" in note for note in tenon.inspect(struct.capsule()).notes)
    assert any("strides are null" in note for note in tenon.inspect(struct.capsule()).notes)
    struct = fakes.Struct(shape=(2, 3), strides=(3, 1), versioned=False)
    capsule = struct.capsule()
    assert [("legacy" in note) for note in tenon.inspect(capsule).notes] == [True]
    with exactly_once(struct):
        fakes_ctypes.consumed(capsule, by="destructor")
        assert any("no destructor" in note for note in tenon.inspect(capsule).notes)
        tenon.asdlpack(capsule)


@isolated
def test_sub_byte_elements_span_what_they_fill():
    for flags, nbytes in ((0, 3), (SUBBYTE_PADDED, 5)):
        struct = fakes.Struct(shape=(5,), dtype=(17, 4, 1), flags=flags)
        with exactly_once(struct):
            seen = tenon.inspect(struct.capsule())
            assert seen.nbytes == nbytes and seen.span == (struct.address, struct.address + nbytes)
            assert (seen.dtype, seen.itemsize, seen.padded) == ("float4_e2m1fn", 1, bool(flags))


@isolated
def test_handles_are_no_addresses():
    struct = fakes.Struct(shape=(4,), device=(8, 0), byte_offset=64)  # Metal
    with exactly_once(struct):
        seen = tenon.inspect(struct.capsule())
        assert seen.data_ptr == struct.address and seen.byte_offset == 64
        assert seen.alignment is None and seen.span is None and any("handle" in note for note in seen.notes)


@isolated
def test_alignment():
    memory = mmap.mmap(-1, 3 * 4096)
    start = tenon.asdlpack(memory).data_ptr
    for offset, alignment in ((0, 4096), (4096, 4096), (4, 4), (64, 64), (48, 16), (1, 1)):
        assert tenon.inspect(memoryview(memory)[offset:]).alignment == alignment
        struct = fakes.Struct(shape=(2,), dtype=(1, 8, 1), data=start, byte_offset=offset)
        assert tenon.inspect(struct.capsule()).alignment == alignment
    for empty in (b"", memoryview(memory)[:0]):
        assert tenon.inspect(empty).alignment is None and tenon.inspect(empty).span is None
    del empty


@isolated
def test_other_capsules_are_named():
    import datetime
    for name, kind in (("arrow_array", "Arrow C array"), ("arrow_schema", "Arrow C schema"),
                       ("arrow_array_stream", "Arrow C array stream"), ("arrow_device_array", "Arrow C device array"),
                       ("junk", "capsule named 'junk'"), ("", "capsule without a name")):
        struct = fakes.Struct(shape=(2, 3))
        with exactly_once(struct):
            seen = look(struct.capsule(name=name))
            assert seen.kind == kind and seen.problem.startswith(kind) and seen.capsule == (name or None)
            assert seen.used is None and seen.struct is None and without_facts(seen)
    assert tenon.inspect(datetime.datetime_CAPI).capsule == "datetime.datetime_CAPI"
    assert tenon.inspect(fakes.Struct(shape=()).capsule(name="\u00e9")).capsule == "\u00e9"


@isolated
def test_exchange_table_capsules():
    seen = look(fakes.Table(version=(1, 9), null=("borrow", "stream")).capsule())
    assert seen.kind == "DLPack C exchange table" and seen.table.version == (1, 9) and seen.table.problem is None
    assert seen.table.functions == ("managed_tensor_allocator", "managed_tensor_from_py_object_no_sync",
                                    "managed_tensor_to_py_object_no_sync")
    assert "no tensor" in seen.problem
    newer = look(fakes.Table(version=(2, 0)).capsule())
    assert newer.table.version == (2, 0) and "major version 1" in newer.table.problem and not newer.table.functions
    older = look(fakes.Table(version=(2, 0), prev=fakes.Table()).capsule())
    assert older.table.version == (1, 3) and older.table.problem is None
    broken = look(fakes.Table(null=("own",)).capsule())
    assert "null" in broken.table.problem


# --- objects ----------------------------------------------------------------------------------------


@isolated
def test_object_is_asked_once_and_released_once():
    for make, rung in ((Producer, "__dlpack__"), (Ancient, "__dlpack__"), (exchange_class(), "C exchange table")):
        producer = make()
        with exactly_once(producer.struct, exports=2), nothing_kept(producer):
            for _ in range(2):
                seen = tenon.inspect(producer)
                shown(seen)
                assert (seen.ok, seen.rung, seen.shape) == (True, rung, (2, 3))
        assert any("__dlpack__ was called" in note for note in seen.notes) is (rung == "__dlpack__")


@isolated
def test_capsule_a_producer_keeps_is_not_used_up():
    producer = Cached()
    with exactly_once(producer.struct):
        for _ in range(3):
            assert tenon.inspect(producer).shape == (2, 3)
            assert producer.struct.releases == 0
        taken = tenon.asdlpack(producer)
        assert taken.shape == (2, 3)
        del taken
        assert "consumed already" in tenon.inspect(producer).problem
        del producer.capsule


@isolated
def test_capsule_without_a_destructor_made_for_us_is_released():
    """Its producer relies on the consumer: a mere look at the capsule would leak the struct."""
    class Careless(Producer):
        def answer(self, **keywords):
            capsule = self.struct.capsule()
            fakes_ctypes.consumed(capsule, by="destructor")
            return capsule

    producer = Careless()
    with exactly_once(producer.struct):
        assert tenon.inspect(producer).ok


@isolated
def test_what_each_rung_answered():
    class Two(Producer):
        __array_interface__ = None  # replaced below

    producer = Two(flags=0x100)
    memory = (ctypes.c_float * 4)()
    Two.__array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (ctypes.addressof(memory), False)}
    with exactly_once(producer.struct):
        seen = tenon.inspect(producer)
    wanted = {"C exchange table": "absent", "NumPy struct": "absent", "__dlpack__": "refused",
              "__cuda_array_interface__": "absent", "buffer protocol": "absent", "__array_interface__": "taken"}
    assert [(r.name, r.answer) for r in seen.tried if r.name in wanted] == list(wanted.items())
    reasons = {r.name: r.reason for r in seen.tried}
    assert "flag bits" in reasons["__dlpack__"] and "no such attribute" in reasons["__cuda_array_interface__"]
    assert reasons["__array_interface__"] is None
    assert (seen.rung, seen.shape, seen.data_ptr) == ("__array_interface__", (4,), ctypes.addressof(memory))
    assert seen.spoken == ("__dlpack__", "__array_interface__")


@isolated
def test_copy_is_admitted():
    producer = Producer(flags=IS_COPIED)
    with exactly_once(producer.struct):
        seen = tenon.inspect(producer)
    assert seen.copied and any("copy" in note for note in seen.notes)
    assert not any("copy" in note for note in tenon.inspect(Producer()).notes)


@isolated
def test_refused_object_says_why():
    producer = Producer(shape=(2, -1))
    with exactly_once(producer.struct):
        seen = tenon.inspect(producer)
    shown(seen)
    assert not seen.ok and seen.rung is None and without_facts(seen) and answers(seen)["__dlpack__"] == "refused"
    assert seen.problem.startswith("tenon.MalformedError: ") and "shape[1]" in seen.problem
    assert "__dlpack__" in seen.spoken


@isolated
def test_producers_own_exception_is_the_problem():
    seen = tenon.inspect(raising(ZeroDivisionError("mine")))
    assert seen.problem == "ZeroDivisionError: mine" and seen.tried[-1] == ("__dlpack__", "raised", None)


@isolated
def test_what_speaks_nothing():
    for obj in (3, None, "text", object(), [1, 2], {}, sys, tenon.inspect):
        seen = tenon.inspect(obj)
        shown(seen)
        assert seen.problem.startswith("TypeError: ") and seen.spoken == () and without_facts(seen)
        assert set(answers(seen).values()) == {"absent"}


@isolated
def test_classes():
    for kind in (int, Producer, exchange_class(), type, tenon.Tensor, type("Meta", (type,), {})("Made", (), {})):
        seen = tenon.inspect(kind)
        shown(seen)
        assert seen.kind == "class" and "instance" in seen.problem and seen.protocols == ()


@isolated
def test_argument_is_needed():
    for call in (lambda: tenon.inspect(), lambda: tenon.inspect(b"", b""), lambda: tenon.inspect(obj=b"")):
        with pytest.raises(TypeError):
            call()


@isolated
def test_tensor_inspects_as_itself():
    memory = bytearray(b"tenon!")
    tensor = tenon.asdlpack(memoryview(memory).cast("B", (2, 3)))
    seen = tenon.inspect(tensor)
    shown(seen)
    assert (seen.kind, seen.rung, seen.ok) == ("tenon.Tensor", "itself", True)
    for name in ("shape", "strides", "dtype", "device", "ndim", "size", "nbytes", "itemsize", "data_ptr", "readonly",
                 "flags", "version"):
        assert getattr(seen, name) == getattr(tensor, name), name
    assert seen.is_c_contiguous is tensor.is_contiguous and seen.owner == "buffer of memoryview"
    assert {"C exchange table", "__dlpack__", "buffer protocol", "__array_interface__"} <= set(seen.spoken)
    pointer = tenon.from_pointer(tensor.data_ptr, (6,), "uint8", owner=memory, readonly=True)
    assert (tenon.inspect(pointer).owner, tenon.inspect(pointer).readonly) == ("bytearray", True)


@isolated
def test_layouts():
    memory = (ctypes.c_float * 24)()
    start = ctypes.addressof(memory)

    def of(shape, strides, at=0):
        return tenon.inspect(tenon.from_pointer(start + 4 * at, shape, "float32", strides=strides))

    def layout(seen):
        return seen.is_c_contiguous, seen.is_f_contiguous, seen.may_overlap, tuple(x - start for x in seen.span)

    assert layout(of((2, 3), (3, 1))) == (True, False, False, (0, 24))
    assert layout(of((2, 3), (1, 2))) == (False, True, False, (0, 24))
    assert layout(of((4,), (-2,), at=6)) == (False, False, False, (0, 28))
    assert layout(of((2, 3), (0, 1))) == (False, False, True, (0, 12))
    assert layout(of((4, 3), (1, 1))) == (False, False, True, (0, 24))
    assert layout(of((), ())) == (True, True, False, (0, 4))
    assert layout(of((3, 2), (-8, 3), at=16)) == (False, False, False, (0, 80))


# --- hostile objects --------------------------------------------------------------------------------

ATTRIBUTES = ("__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "__array_interface__", "__array_struct__",
              "__array__", "__arrow_c_array__", "__arrow_c_stream__")


@isolated
def test_attributes_that_raise_are_the_protocols_problem():
    def fail(self):
        raise ValueError("mine")

    for attribute in ATTRIBUTES:
        members = {attribute: property(fail)}
        if attribute == "__dlpack_device__":
            members["__dlpack__"] = lambda self, **keywords: None
        seen = tenon.inspect(type("Raises", (), members)())
        shown(seen)
        name = "__dlpack__" if attribute == "__dlpack_device__" else attribute
        (protocol,) = [p for p in seen.protocols if p.name == name]
        assert "ValueError: mine" in protocol.problem, attribute
        assert protocol.spoken is (attribute == "__dlpack_device__") and seen.problem is not None


@isolated
def test_everything_raises():
    class Hostile:
        def __getattribute__(self, name):
            raise ZeroDivisionError(name)

        def __repr__(self):
            raise ZeroDivisionError("repr")

    seen = tenon.inspect(Hostile())
    shown(seen)
    assert "ZeroDivisionError" in seen.problem and seen.spoken == ()
    assert sum(p.problem is not None for p in seen.protocols) == 9


@isolated
def test_attributes_of_wrong_types():
    class Odd:
        @property
        def __class__(self):
            raise ZeroDivisionError("class")

    for value in (42, "text", (), [], Odd(), object(), int):
        class Lies:
            def __getattr__(self, name, value=value):
                return value

        seen = tenon.inspect(Lies())
        shown(seen)
        assert seen.problem is not None and without_facts(seen)
        assert not {"__cuda_array_interface__", "__array_interface__", "__array_struct__"} & set(seen.spoken)


@isolated
def test_devices_of_wrong_types():
    class Endless:
        def __iter__(self):
            while True:
                yield 1

    for answer in (None, 7, "cpu", (), (1,), (1, 0, 0), ("cpu", 0), (1, 2**40), [1, 0], Endless(), (True, 0)):
        producer = Producer()
        producer.said_device = answer
        with exactly_once(producer.struct, exports=None):
            seen = tenon.inspect(producer)
        shown(seen)
        (protocol,) = [p for p in seen.protocols if p.name == "__dlpack__"]
        assert protocol.spoken and protocol.says is None and "__dlpack_device__: " in protocol.problem, answer


@isolated
def test_exceptions_that_cannot_be_shown():
    class Mute(Exception):
        def __str__(self):
            raise ValueError("no")

    Mute.__module__ = 7
    seen = tenon.inspect(raising(Mute()))
    assert seen.problem == Mute.__qualname__


@isolated
def test_interrupts_pass():
    for interrupt in (KeyboardInterrupt, SystemExit, GeneratorExit):
        def fail(self, interrupt=interrupt):
            raise interrupt

        for attribute in ATTRIBUTES:
            with pytest.raises(interrupt):
                tenon.inspect(type("Raises", (), {attribute: property(fail), **(
                    {"__dlpack__": lambda self: None} if attribute == "__dlpack_device__" else {})})())
        with pytest.raises(interrupt):
            tenon.inspect(raising(interrupt()))
    exchanged = exchange_class()(exchange="interrupt")
    with pytest.raises(KeyboardInterrupt):
        tenon.inspect(exchanged)


@isolated
def test_recursive_producer():
    class Recursive:
        def __dlpack__(self, **keywords):
            return tenon.asdlpack(self)

    assert "RecursionError" in tenon.inspect(Recursive()).problem


@pytest.mark.parametrize("triple", [(1, 12, 1), (1, 4, 3), (1, 1, 1), (0, 4, 1), (0, 6, 1), (1, 24, 1), (2, 32, 2)])
def test_the_span_is_what_the_elements_take(triple):
    _, bits, lanes = triple
    memory = bytearray(64)
    t = tenon.from_pointer(tenon.asdlpack(memory).data_ptr, (3,), triple, owner=memory)
    begin, end = tenon.inspect(t).span
    assert (begin, end - begin) == (t.data_ptr, t.nbytes) == (t.data_ptr, -(-3 * bits * lanes // 8))


@pytest.mark.parametrize("names", [["__array_interface__"], ["__dlpack__"], ATTRIBUTES], ids=["interface", "dlpack", "all"])
def test_an_object_that_inspects_itself_does_so_a_few_times(names):
    """Each inspection asks several times and raises nothing: without a limit they multiply until the stack's."""
    asked = 0

    def look(self):
        nonlocal asked
        asked += 1
        if asked > 20_000:
            pytest.fail("inspections without end")  # no Exception: it passes
        return tenon.inspect(self)

    Curious = type("Curious", (), {name: property(look) for name in names})
    seen = tenon.inspect(Curious())
    assert not seen.ok and 3 <= asked
    assert tenon.inspect(b"abc").ok  # and the count of levels is as before


@isolated
def test_published_tables_that_cannot_be_used():
    for published, problem in ((fakes.Table(version=(2, 0)), "major version 1"), (fakes.Table(null=("own",)), "null")):
        seen = tenon.inspect(exchange_class(published)())
        assert problem in seen.table.problem and problem in seen.protocols[0].problem and not seen.protocols[0].spoken
        assert answers(seen)["C exchange table"] == "refused"


@isolated
def test_proxy_is_seen_through():
    class Proxy:
        def __init__(self, target):
            self._target = target

        def __getattr__(self, name):
            return getattr(self._target, name)

    producer = Producer()
    with exactly_once(producer.struct):
        seen = tenon.inspect(Proxy(producer))
    assert seen.ok and seen.spoken == ("__dlpack__",) and seen.type.endswith("Proxy")


@isolated
def test_masked_array_is_not_recommended_to_be_unmasked():
    np = need("numpy")
    seen = tenon.inspect(np.ma.masked_array([1.0, 2.0], [False, True]))
    assert "filled()" in seen.problem and not any("__array__" in note for note in seen.notes)

    class Only:
        def __array__(self, dtype=None, copy=None):
            raise AssertionError("asked")

    assert any("__array__" in note for note in tenon.inspect(Only()).notes)


# --- nothing is kept --------------------------------------------------------------------------------


def test_references_are_as_before():
    producer, struct = Producer(), fakes.Struct(shape=(2, 3))
    capsule, tensor, memory = struct.capsule(), tenon.asdlpack(b"tenon"), bytearray(8)
    refused, exchanged = Fails(), exchange_class()()
    for obj in (producer, capsule, tensor, memory, refused, exchanged, 3.5, type(producer)):
        with nothing_kept(obj, type(obj)):
            seen = tenon.inspect(obj)
            shown(seen)
            del seen
    memory.append(1)  # a buffer that is still held would forbid it


@pytest.mark.skipif(SANITIZED, reason="the sanitizer looks for leaks itself")
def test_nothing_leaks():
    import tracemalloc

    struct, used = fakes.Struct(shape=(2, 3)), fakes.Struct(shape=(2, 3))
    capsule, consumed = struct.capsule(), used.capsule()
    tenon.asdlpack(consumed)
    producer = Producer()
    kept = [producer, Fails(), b"tenon", tenon.asdlpack(b"tenon"), 7, capsule, consumed,
            exchange_class()(), type("Odd", (), {"__array_interface__": {"shape": (-1,)}})(), fakes.Table().capsule(),
            fakes.Struct(shape=(2, -3)).capsule(), fakes.Struct(shape=(2,), dtype=(200, 8, 1)).capsule()]

    def growth(rounds):
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(rounds):
            for obj in kept:
                str(tenon.inspect(obj))
            producer.calls.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        growth(200)
        assert growth(1000) < 1000 * 24  # less than the smallest object for each round
    finally:
        tracemalloc.stop()


# --- real libraries ---------------------------------------------------------------------------------


def test_buffers_of_the_standard_library():
    page = mmap.mmap(-1, 4096)
    for obj, dtype, shape, readonly, owner in (
        (b"abc", "uint8", (3,), True, "buffer of bytes"),
        (bytearray(5), "uint8", (5,), False, "buffer of bytearray"),
        (array.array("d", [1, 2]), "float64", (2,), False, "buffer of array.array"),
        (memoryview(b"abcd").cast("H"), "uint16", (2,), True, "buffer of memoryview"),
        ((ctypes.c_int32 * 3 * 2)(), "int32", (2, 3), False, None),
        (page, "uint8", (4096,), False, "buffer of mmap.mmap"),
    ):
        seen = tenon.inspect(obj)
        shown(seen)
        assert (seen.rung, seen.dtype, seen.shape, seen.readonly) == ("buffer protocol", dtype, shape, readonly)
        assert seen.spoken == ("buffer protocol",) and seen.owner.startswith(owner or "buffer of ")
    page.close()  # which a buffer that is still held would forbid


def test_numpy():
    np = need("numpy")
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    for a in (base, base.T, base[::-1, ::2], np.broadcast_to(base[0], (5, 4)), np.ones(())):
        with nothing_kept(a):
            seen = tenon.inspect(a)
        shown(seen)
        assert (seen.rung, seen.owner, seen.type) == ("NumPy struct", "numpy.ndarray", "numpy.ndarray")
        assert (seen.shape, seen.dtype, seen.nbytes, seen.itemsize) == (a.shape, a.dtype, a.nbytes, a.itemsize)
        assert tuple(s * a.itemsize for s in seen.strides) == a.strides
        assert (seen.is_c_contiguous, seen.is_f_contiguous) == (a.flags.c_contiguous, a.flags.f_contiguous)
        assert seen.data_ptr == a.__array_interface__["data"][0] and seen.readonly is not a.flags.writeable
        assert seen.span == np.lib.array_utils.byte_bounds(a)
        assert seen.may_overlap is (0 in a.strides)
    assert set(seen.spoken) == {"NumPy struct", "__dlpack__", "buffer protocol", "__array_interface__",
                                "__array_struct__", "__array__"}
    text = tenon.inspect(np.array(["text"]))
    assert text.rung is None and text.problem is not None
    for versioned in (None, (1, 0)):
        capsule = base.__dlpack__(max_version=versioned)
        seen = look(capsule)
        assert seen.shape == (3, 4) and seen.data_ptr == base.ctypes.data
        assert np.shares_memory(np.asarray(tenon.asdlpack(capsule)), base)


def test_torch():
    torch = need("torch")
    x = torch.arange(12.0).reshape(3, 4)
    with nothing_kept(x):
        seen = tenon.inspect(x.T)
    assert (seen.rung, seen.owner) == ("C exchange table", "torch.storage.UntypedStorage")
    assert (seen.shape, seen.strides, seen.data_ptr) == ((4, 3), (1, 4), x.data_ptr())
    assert (seen.is_c_contiguous, seen.is_f_contiguous) == (False, True)
    assert {"C exchange table", "__dlpack__", "__array__"} == set(seen.spoken)
    assert seen.table.version[0] == 1 and len(seen.table.functions) == 5
    needs_grad = tenon.inspect(torch.ones(2, requires_grad=True))
    assert needs_grad.ok and needs_grad.readonly
    assert "conj" in tenon.inspect(torch.ones(2, dtype=torch.complex64).conj()).problem
    capsule = torch.utils.dlpack.to_dlpack(x)
    assert look(capsule).data_ptr == x.data_ptr()
    assert torch.from_dlpack(capsule).data_ptr() == x.data_ptr()
    assert tenon.inspect(capsule).used
    assert look(torch.Tensor.__dlpack_c_exchange_api__).table == seen.table


def test_jax():
    jax = need("jax")
    cpu = jax.devices("cpu")[0]
    x = jax.device_put(jax.numpy.arange(6.0).reshape(2, 3), cpu)
    tenon.asdlpack(x)  # an array before this one may have had no buffer: then `__dlpack__` was asked first, once
    seen = tenon.inspect(x)
    assert (seen.rung, seen.shape, seen.readonly) == ("buffer protocol", (2, 3), True)
    assert [r.name for r in seen.tried] == ["C exchange table", "NumPy struct", "buffer protocol"]
    assert {"__dlpack__", "buffer protocol", "__array__"} <= set(seen.spoken)
    assert "__cuda_array_interface__" not in seen.spoken
    bfloat = tenon.inspect(jax.device_put(jax.numpy.ones(3, "bfloat16"), cpu))
    assert (bfloat.dtype, bfloat.rung) == ("bfloat16", "__dlpack__")
    assert answers(bfloat)["buffer protocol"] == "refused"
    names = [r.name for r in bfloat.tried]
    assert names.index("buffer protocol") < names.index("__dlpack__"), "not in the order in which they were asked"


def test_pyarrow():
    pyarrow = need("pyarrow")
    x = pyarrow.array([1, 2, 3], type=pyarrow.int32())
    seen = tenon.inspect(x)
    assert (seen.rung, seen.shape, seen.readonly, seen.dtype) == ("__dlpack__", (3,), True, "int32")
    assert {"__dlpack__", "__arrow_c_array__", "__arrow_c_device_array__", "__array__"} <= set(seen.spoken)
    schema, data = x.__arrow_c_array__()
    assert (look(schema).kind, look(data).kind) == ("Arrow C schema", "Arrow C array")
    assert pyarrow.Array._import_from_c_capsule(schema, data) == x
    assert tenon.inspect(pyarrow.table({"a": x})).spoken.count("__arrow_c_stream__") == 1


@pytest.mark.slow
def test_tensorflow():
    if not has("tensorflow"):
        pytest.skip("tensorflow is not installed")
    said = run_isolated("""
import os; os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf, tenon
seen = tenon.inspect(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
assert (seen.rung, seen.shape, seen.readonly) == ("__dlpack__", (2, 2), True), seen
assert {"__dlpack__", "buffer protocol", "__array__"} <= set(seen.spoken), seen.spoken
refused = tenon.inspect(tf.constant(["text"]))
assert refused.problem is not None and refused.shape is None
capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1, 2, 3]))
assert tenon.inspect(capsule).shape == (3,)
print(tf.experimental.dlpack.from_dlpack(capsule).numpy().tolist(), tenon.inspect(capsule).used)
""")
    assert said.split("\n")[-2] == "[1, 2, 3] True"


def test_everything_pydlpacks_todict_says_is_here():
    np, dlpack = need("numpy"), need("dlpack")
    if not hasattr(dlpack, "todict"):
        pytest.skip("dlpack is not pydlpack")
    a = np.arange(12, dtype=np.int16).reshape(3, 4)[:, 1:]
    for max_version in (None, (1, 0)):
        capsule = a.__dlpack__(max_version=max_version)
        if max_version is None:
            said = dlpack.todict(capsule)
        else:  # its function takes legacy capsules alone, its struct says the same of the others
            said = dlpack.DLManagedTensorVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned")).todict()
        seen = look(capsule)
        told = said.pop("dl_tensor")
        assert told.pop("data") == seen.struct.data == seen.data_ptr - seen.byte_offset
        assert told.pop("shape") == seen.shape and told.pop("strides") == seen.strides
        assert told.pop("ndim") == seen.struct.ndim == seen.ndim
        assert told.pop("byte_offset") == seen.struct.byte_offset == seen.byte_offset
        device, element = told.pop("device"), told.pop("dtype")
        assert dlpack.DLDeviceType.from_label(device["device_type"]).value == seen.struct.device[0] == seen.device.type
        assert device["device_id"] == seen.struct.device[1] == seen.device.id
        assert dlpack.DLDataTypeCode.from_label(element["code"]).value == seen.struct.dtype[0] == seen.dtype.code
        assert (element["bits"], element["lanes"]) == seen.struct.dtype[1:] == (seen.dtype.bits, seen.dtype.lanes)
        assert (said.pop("manager_ctx") or 0) == seen.struct.manager_ctx
        assert ctypes.cast(said.pop("deleter"), ctypes.c_void_p).value == seen.struct.deleter
        if max_version:
            assert tuple(said.pop("version").values()) == seen.version == seen.struct.version
            assert said.pop("flags") == seen.flags == seen.struct.flags
        assert said == told == {}, "todict says more"


# --- the package ------------------------------------------------------------------------------------


def test_is_loaded_when_it_is_asked_for():
    said = run_isolated("""
import sys, tenon
assert "tenon._inspect" not in sys.modules and {"inspect", "Inspection", "asdlpack"} <= set(dir(tenon))
assert tenon.inspect(b"").ok and "inspect" in vars(tenon)
from tenon import Inspection, inspect
assert isinstance(inspect(b""), Inspection)
names = {}
exec("from tenon import *", names)
assert names["inspect"] is inspect
try:
    tenon.no_such_thing
except AttributeError as error:
    print(error)
""")
    assert said == "module 'tenon' has no attribute 'no_such_thing'\n"


# --- the guide --------------------------------------------------------------------------------------


def test_examples_of_the_module():
    failed, tried = doctest.testmod(tenon._inspect)
    assert tried > 5 and failed == 0


def test_guide():
    need("numpy")
    guide = ROOT / "docs" / "guides" / "inspect.md"
    sessions = re.findall(r"```pycon\n(.*?)```", guide.read_text(), re.S)
    assert sessions
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict = {}
    for number, session in enumerate(sessions):
        test = doctest.DocTestParser().get_doctest(session, names, f"{guide.name}[{number}]", str(guide), 0)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.tries > 5 and runner.failures == 0


def test_what_is_told_is_short_whatever_the_type_is_called():
    long = type("L" * 1_000_000, (), {})
    for seen in (tenon.inspect(long()), tenon.inspect(type(long.__name__, (bytes,), {})(b"abc"))):
        assert len(seen.type) > 1_000_000  # the fact itself is whole
        assert len(repr(seen)) < 10_000 and len(str(seen)) < 100_000 and len(seen._repr_html_()) < 100_000
