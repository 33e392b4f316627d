# tests/python/test_exchange_table_own.py: the exchange tables we publish, of our own type and of a user's class, called as a C consumer would.
from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref

import fakes
import pytest
import tenon
import tenon_exports
from fakes_ctypes import DataType, Device, Tensor, Versioned, consumed, described, release, table_of
from isolation import SANITIZED, isolated
from producers import CPU, CUDA, CUDA_HOST, IS_COPIED, NOWHERE, READ_ONLY, exactly_once
from tenon_exports import Counter, Matrix, call_slot

OWN = type(tenon_exports.produce(Counter()))
CLASSES = {"Tensor of the package": tenon.Tensor, "Tensor of a module": OWN, "Matrix": Matrix}
every_class = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES.keys())
MAKE = {tenon.Tensor: lambda: tenon.asdlpack(bytearray(6)), OWN: lambda: tenon_exports.produce(Counter()),
        Matrix: lambda: Matrix(2, 3)}

SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
# Called without the GIL: the allocator needs no Python.
Allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
WithGil = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
UNTOUCHED = 0x5555_5555_5555_5555
decref = ctypes.pythonapi.Py_DecRef
decref.argtypes = [ctypes.py_object]


def own(table, obj):
    """from_py_object: (outcome, exception, the struct or None)."""
    out = ctypes.c_uint64(UNTOUCHED)
    outcome, error = call_slot(table.own, id(obj), ctypes.addressof(out))
    return outcome, error, None if out.value == UNTOUCHED else Versioned.from_address(out.value)


def lent(table, obj):
    """dltensor_from_py_object: (outcome, exception, the description or None)."""
    out = Tensor(ndim=-77)
    outcome, error = call_slot(table.borrow, id(obj), ctypes.addressof(out))
    return outcome, error, None if out.ndim == -77 else described(out)


def to_python(table, address):
    """to_py_object: (outcome, exception, the object or None)."""
    out = ctypes.c_uint64(UNTOUCHED)
    outcome, error = call_slot(table.to_python, address, ctypes.addressof(out))
    if out.value == UNTOUCHED:
        return outcome, error, None
    made = ctypes.cast(out.value, ctypes.py_object).value
    decref(made)  # `made` is one reference, the one we were given another
    return outcome, error, made


def asked_in_both_ways(table, obj):
    return [own(table, obj)] + ([lent(table, obj)] if table.borrow else [])


# --- the table itself -----------------------------------------------------------------------------


@every_class
def test_X01_X04_table_is_on_the_type_and_of_version_1_3(cls):
    assert "__dlpack_c_exchange_api__" in vars(cls) and not hasattr(cls, "__c_dlpack_exchange_api__")
    table = table_of(cls)
    assert (table.version.major, table.version.minor) == (1, 3)
    # Tensor's leads to the one by which modules hand it tensors, which is of no version of DLPack's.
    assert (table.prev_api is not None) == (cls is tenon.Tensor)
    if table.prev_api is not None:
        assert ctypes.c_uint32.from_address(table.prev_api).value == 0x544E4F4E
    assert ctypes.addressof(table) == ctypes.addressof(table_of(cls)), "one for the whole process"


@every_class
def test_X05_X10_every_mandatory_function_is_there(cls):
    table = table_of(cls)
    assert all((table.allocate, table.own, table.to_python, table.stream))
    assert (table.borrow is None) == (cls is Matrix), "a user's axes live nowhere: they cannot be lent"


@every_class
def test_X08_work_is_on_the_default_stream(cls):
    for device in (CPU, CUDA, (2, 7), (10, 0), (99, -1)):
        out = ctypes.c_uint64(UNTOUCHED)
        assert Stream(table_of(cls).stream)(*device, ctypes.addressof(out)) == 0 and out.value == 0


# --- out of an object -----------------------------------------------------------------------------


@every_class
def test_X09_objects_of_the_type_are_exported(cls):
    obj = MAKE[cls]()
    outcome, error, managed = own(table_of(cls), obj)
    assert (outcome, error) == (0, None)
    method = consumed(obj.__dlpack__(max_version=(1, 3)))
    assert described(managed.dl_tensor) == described(method.dl_tensor)
    assert (managed.version.major, managed.version.minor, managed.flags) == (1, 3, 0)
    for struct in (managed, method):
        release(struct)


@pytest.mark.parametrize(("fields", "seen"), [
    (dict(readonly=True), dict(flags=READ_ONLY)), (dict(shape=()), dict(shape=())),
    (dict(shape=(3, 0)), dict(data=None, strides=(0, 1))),
    (dict(device=CUDA, address=NOWHERE, byte_offset=64), dict(data=NOWHERE + 64, byte_offset=0, device=CUDA)),
    (dict(device=(8, 0), address=0x1001, byte_offset=64), dict(data=0x1001, byte_offset=64, device=(8, 0))),
    (dict(device=(3, 5), address=NOWHERE), dict(device=CUDA_HOST)),
    (dict(shape=(2, 3), strides=(-3, 1), byte_offset=12), dict(strides=(-3, 1))),
], ids=["read-only", "scalar", "empty", "offset", "handle", "pinned", "negative"])
def test_X09_struct_and_borrowed_description_agree(fields, seen):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, **fields)
        outcome, error, managed = own(table_of(OWN), obj)
        assert (outcome, error) == (0, None)
        said = described(managed.dl_tensor)
        assert lent(table_of(OWN), obj) == (0, None, said)
        if fields.get("shape") == (3, 0):
            seen = {**seen, "strides": said["strides"]}
        assert (said | {"flags": managed.flags}).items() >= seen.items()
        del obj
        assert counter.releases == 0
        release(managed)


def test_X09_wrong_type_is_a_buffer_error():
    strangers = [None, 7, "text", object(), int, type, [], bytearray(6), NotImplemented, fakes.Table().capsule(),
                 *(make() for make in MAKE.values())]
    for cls in CLASSES.values():
        for stranger in strangers:
            if type(stranger) is not cls:
                for outcome, error, out in asked_in_both_ways(table_of(cls), stranger):
                    assert (outcome, type(error), out) == (-1, BufferError, None)
                    assert type(stranger).__name__ in str(error)


@every_class
def test_X09_null_is_a_buffer_error(cls):
    out = ctypes.c_uint64(UNTOUCHED)
    outcome, error = call_slot(table_of(cls).own, 0, ctypes.addressof(out))
    assert (outcome, type(error), out.value) == (-1, BufferError, UNTOUCHED)


def borrowing(cls, bases=(), args=(), **members):
    """An object of a class that says it has the table of another."""
    return type("Thief", bases, {"__dlpack_c_exchange_api__": cls.__dlpack_c_exchange_api__, **members})(*args)


@isolated
def test_X09_type_that_borrows_the_table():
    for cls in CLASSES.values():
        for thief in (borrowing(cls), borrowing(cls, __slots__=()), borrowing(cls, (bytearray,))):
            for outcome, error, out in asked_in_both_ways(table_of(cls), thief):
                assert (outcome, type(error), out) == (-1, BufferError, None)


@isolated
def test_X09_type_that_borrows_the_table_cannot_be_imported():
    import tenon_probe

    for cls in CLASSES.values():
        for importer in (tenon.asdlpack, tenon_probe.borrow, tenon_probe.hold):
            with pytest.raises(BufferError):
                importer(borrowing(cls))


@isolated
def test_X09_type_that_borrows_the_table_of_another_of_ours():
    thief = borrowing(OWN, (Matrix,), (2, 3))
    for outcome, error, out in asked_in_both_ways(table_of(OWN), thief):
        assert (outcome, type(error), out) == (-1, BufferError, None)


def test_X09_subclass_of_a_users_class_is_one_of_its_objects():
    class Sub(Matrix):
        pass

    matrix = Sub(2, 3)
    outcome, error, managed = own(table_of(Matrix), matrix)
    assert (outcome, error, managed.dl_tensor.data) == (0, None, matrix.address)
    release(managed)
    assert tenon.asdlpack(matrix).data_ptr == matrix.address


def test_X06_failure_sets_an_exception_and_leaves_the_result_alone():
    matrix = Matrix(2, 3)
    for fault in (1, 2, 3):
        matrix.fault = fault
        outcome, error, out = own(table_of(Matrix), matrix)
        assert (outcome, out) == (-1, None) and isinstance(error, Exception)


def test_X07_borrowed_description_is_the_objects_and_says_nothing_twice():
    obj = tenon_exports.produce(Counter(), shape=(1,) * 7)  # more axes than fit inside the tensor
    assert lent(table_of(OWN), obj) == lent(table_of(OWN), obj)
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        before = sys.getrefcount(obj)
        lent(table_of(OWN), obj)
        assert sys.getrefcount(obj) == before
        del obj
        assert counter.releases == 1, "borrowing keeps nothing"


def test_X09_object_lives_until_the_struct_goes():
    class Sub(Matrix):
        pass

    matrix = Sub(2, 3)
    seen = weakref.ref(matrix)
    managed = own(table_of(Matrix), matrix)[2]
    del matrix
    gc.collect()
    assert seen() is not None
    release(managed)
    assert seen() is None


# --- X11: the allocator ---------------------------------------------------------------------------


class Prototype:
    """What is asked of an allocator, and what it said."""

    def __init__(self, shape=(2, 3), dtype=(2, 32, 1), device=CPU, ndim=None, address=None, strides=None):
        self.axes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        where = ctypes.addressof(self.axes) if address is None else address
        self.tensor = Tensor(data=NOWHERE, device=Device(*device), ndim=len(shape) if ndim is None else ndim,
                             dtype=DataType(*dtype), shape=ctypes.cast(where, ctypes.POINTER(ctypes.c_int64)),
                             strides=ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), byte_offset=3)
        self.said = []

    def allocate(self, table, told=True):
        """(outcome, the struct or None)"""
        out = ctypes.c_void_p(UNTOUCHED)
        context = ctypes.c_void_p(0xC0)
        set_error = SetError(lambda *said: self.said.append(said))
        outcome = Allocate(table.allocate)(ctypes.addressof(self.tensor), ctypes.addressof(out), context,
                                           ctypes.cast(set_error, ctypes.c_void_p) if told else None)
        return outcome, Versioned.from_address(out.value) if out.value not in (None, UNTOUCHED) else None


@every_class
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (5, 0, 2), (1,) * 64, (1000, 1000), (1,)], ids=str)
@pytest.mark.parametrize("dtype", [(2, 32, 1), (0, 8, 1), (5, 128, 1), (17, 4, 1)], ids=str)
def test_X11_allocated_memory(cls, shape, dtype):
    wanted = Prototype(shape, dtype, strides=NOWHERE)  # its data, strides and offset are nobody's business
    outcome, managed = wanted.allocate(table_of(cls))
    assert (outcome, wanted.said, managed.flags) == (0, [], 0)
    said = described(managed.dl_tensor)
    assert (said["shape"], said["dtype"], said["device"], said["byte_offset"]) == (shape, dtype, CPU, 0)
    size = 1
    for i, extent in reversed(list(enumerate(shape))):
        assert 0 in shape or extent == 1 or said["strides"][i] == size
        size *= extent
    if size == 0:
        assert said["data"] is None
    else:
        assert said["data"] % 64 == 0
        ctypes.memset(said["data"], 0x5A, (size * dtype[1] + 7) // 8)
    release(managed)


JUNK = {
    "other device": (dict(device=CUDA), b"BufferError"), "pinned": (dict(device=CUDA_HOST), b"BufferError"),
    "second CPU": (dict(device=(1, 1)), b"BufferError"), "null shape": (dict(address=0), b"ValueError"),
    "small integer for a shape": (dict(address=24), b"ValueError"), "negative rank": (dict(ndim=-1), b"ValueError"),
    "rank 65": (dict(shape=(1,) * 65), b"BufferError"), "negative extent": (dict(shape=(2, -3)), b"ValueError"),
    "elements overflow": (dict(shape=(2**40, 2**40)), b"ValueError"),
    "bytes overflow": (dict(shape=(2**62,)), b"ValueError"),
    "no bits": (dict(dtype=(2, 0, 1)), b"ValueError"), "no lanes": (dict(dtype=(2, 32, 0)), b"ValueError"),
    "fp4 of 8 bits": (dict(dtype=(17, 8, 1)), b"ValueError"), "rank of 2**31-1": (dict(ndim=2**31 - 1), b"BufferError"),
}


@pytest.mark.parametrize(("fields", "kind"), JUNK.values(), ids=JUNK.keys())
def test_X11_junk_is_refused_and_said_once(fields, kind):
    for cls in CLASSES.values():
        wanted = Prototype(**fields)
        assert wanted.allocate(table_of(cls)) == (-1, None)
        [(context, said_kind, message)] = wanted.said
        assert (context, said_kind) == (0xC0, kind) and message.startswith(b"tenon: ")
        assert wanted.allocate(table_of(cls), told=False) == (-1, None) and len(wanted.said) == 1


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not return null")
def test_X11_no_memory_is_a_memory_error():
    wanted = Prototype(shape=(2**55,))
    assert wanted.allocate(table_of(OWN)) == (-1, None)
    assert [said[1] for said in wanted.said] == [b"MemoryError"]


def test_X11_null_arguments():
    said = []
    set_error, out = SetError(lambda *words: said.append(words)), ctypes.c_void_p(UNTOUCHED)
    allocate, wanted = Allocate(table_of(OWN).allocate), Prototype()
    told = ctypes.cast(set_error, ctypes.c_void_p)
    assert allocate(None, ctypes.addressof(out), None, told) == -1
    assert allocate(ctypes.addressof(wanted.tensor), None, None, told) == -1
    assert [words[1] for words in said] == [b"ValueError"] * 2


def test_X11_strides_of_the_prototype_are_not_looked_at():
    outcome, managed = Prototype(strides=24).allocate(table_of(OWN))  # as uninitialised memory has it
    assert outcome == 0
    release(managed)


# --- X12: into an object --------------------------------------------------------------------------


def handed_out(**fields):
    """A managed struct of somebody else's: who counts, and the struct."""
    struct = fakes.Struct(**fields)
    return struct, consumed(struct.capsule())


MALFORMED = {"null shape": dict(shape=None, ndim=3), "negative extent": dict(shape=(-1,)),
             "unknown flag": dict(shape=(2,), flags=8),
             "major 2": dict(shape=0x10, ndim=3, version=(2, 0)), "major 0": dict(shape=(2,), version=(0, 8)),
             "null data": dict(shape=(2,), data=None), "no bits": dict(shape=(2,), dtype=(2, 0, 1)),
             "rank 65": dict(shape=(1,) * 65), "negative rank": dict(shape=(2,), ndim=-1),
             "overflow": dict(shape=(2**40, 2**40)), "negative device": dict(shape=(2,), device=(1, -1))}


@every_class
@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED.keys())
def test_X12_refused_struct_stays_with_the_caller_untouched(cls, fields):
    struct, managed = handed_out(**fields)
    with exactly_once(struct):
        before = ctypes.string_at(ctypes.addressof(managed), ctypes.sizeof(managed))
        outcome, error, out = to_python(table_of(cls), ctypes.addressof(managed))
        assert (outcome, out) == (-1, None) and isinstance(error, (BufferError, ValueError))
        gc.collect()
        assert struct.releases == 0
        assert ctypes.string_at(ctypes.addressof(managed), ctypes.sizeof(managed)) == before
        WithGil(ctypes.cast(managed.deleter, ctypes.c_void_p).value)(ctypes.addressof(managed))


@every_class
@pytest.mark.parametrize("fields", [dict(), dict(flags=READ_ONLY), dict(flags=IS_COPIED), dict(version=(1, 99)),
                                    dict(device=CUDA, data=NOWHERE), dict(device=(99, 0), data=NOWHERE)], ids=str)
def test_X12_good_struct_is_released_when_the_object_goes(cls, fields):
    struct, managed = handed_out(shape=(2, 3), **fields)
    with exactly_once(struct):
        outcome, error, made = to_python(table_of(cls), ctypes.addressof(managed))
        assert (outcome, error) == (0, None) and isinstance(made, OWN if cls is Matrix else cls)
        assert (made.shape, made.data_ptr) == ((2, 3), managed.dl_tensor.data)
        assert made.readonly == (fields.get("flags") == READ_ONLY)
        assert struct.releases == 0
        del made
        assert struct.releases == 1


def test_X12_struct_with_no_deleter():
    struct, managed = handed_out(shape=(2, 3), deleter="null")
    outcome, _, made = to_python(table_of(OWN), ctypes.addressof(managed))
    assert outcome == 0 and made.shape == (2, 3)
    del made
    assert struct.releases == 0


@every_class
def test_X12_null_arguments(cls):
    table = table_of(cls)
    assert to_python(table, 0)[0] == -1
    struct, managed = handed_out(shape=(2,))
    with exactly_once(struct):
        outcome, error = call_slot(table.to_python, ctypes.addressof(managed), 0)
        assert outcome == -1 and isinstance(error, ValueError) and struct.releases == 0
        WithGil(ctypes.cast(managed.deleter, ctypes.c_void_p).value)(ctypes.addressof(managed))


@every_class
def test_X11_X12_allocated_then_wrapped(cls):
    outcome, managed = Prototype(shape=(4, 5)).allocate(table_of(cls))
    assert outcome == 0
    ctypes.memset(managed.dl_tensor.data, 0, 80)
    _, _, made = to_python(table_of(cls), ctypes.addressof(managed))
    assert memoryview(made).tolist() == [[0.0] * 5] * 4 and not made.readonly


def test_X15_many_threads_at_once():
    counter = Counter()
    with exactly_once(counter):
        obj, table = tenon_exports.produce(counter), table_of(OWN)
        wrong = []

        def work():
            for _ in range(300):
                outcome, error, managed = own(table, obj)
                made = to_python(table, ctypes.addressof(managed))[2]
                if (outcome, error, made.data_ptr) != (0, None, obj.data_ptr) or lent(table, obj)[0] != 0:
                    wrong.append(error)
                outcome, struct = Prototype(shape=(3,)).allocate(table)
                release(struct)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        del obj, work
