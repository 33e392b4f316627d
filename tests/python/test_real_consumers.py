# tests/python/test_real_consumers.py: what we export, taken by the real libraries themselves: every element type and every layout by every consumer, no cell left out.
from __future__ import annotations

import ctypes
import gc
import weakref

import pytest
import tenon_exports
from producers import exactly_once
from real_consumers import (
    COLUMNS,
    CONSUMERS,
    DTYPES,
    FIELDS,
    LAYOUTS,
    LETTERS,
    PATTERN,
    attempt,
    bits_of,
    fields_of,
    installed,
    try_out,
)
from real_support import need, raw, settle

import tenon

# C++ memory as it leaves, and the same imported by the package and handed on.
SOURCES = {
    "own": tenon_exports.produce,
    "imported": lambda counter, **fields: tenon.asdlpack(tenon_exports.versioned(counter, **fields)),
}


def test_no_cell_is_left_out():
    assert list(LAYOUTS) == list(FIELDS)
    assert (len(DTYPES), len(COLUMNS), len(LAYOUTS)) == (40, 11, 17)
    cells = [letter for row in (*DTYPES.values(), *LAYOUTS.values()) for letter in row.values()]
    assert len(cells) == 40 * 11 + 17 * 11 == 627
    assert set(cells) <= set(LETTERS)
    shared = sum(letter in "=m" for row in DTYPES.values() for letter in row.values())
    assert (shared, sum(LETTERS[c][0] for c in cells)) == (221, 375)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", DTYPES)
def test_dtype(row, column, source):
    """Shared or refused; what is shared has the right bytes, and shows what either side writes."""
    door = CONSUMERS[column]
    door.need()
    dtype, mask, fields = fields_of(row)
    data = fields["data"]

    def check():
        obj = SOURCES[source](counter, **fields)
        view, look = try_out(door, obj, obj, DTYPES[row][column], dtype)
        if view is None:
            return
        assert look.data in (data[: obj.nbytes], None)
        assert look.writable in (True, None)
        other = bytes(b ^ mask for b in data[: obj.nbytes])
        ctypes.memmove(obj.data_ptr, other, obj.nbytes)
        assert door.look(view).data in (other, None)
        if door.write is not None:
            door.write(view, data[: obj.nbytes // 2])
            assert bits_of(obj) == data[: obj.nbytes // 2] + other[obj.nbytes // 2 :]

    counter = tenon_exports.Counter()
    with exactly_once(counter):
        check()
        settle(counter)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", LAYOUTS)
def test_layout(row, column, source):
    CONSUMERS[column].need()

    def check():
        obj = SOURCES[source](counter, dtype="float32", room=512, data=PATTERN, **FIELDS[row])
        view, look = try_out(CONSUMERS[column], obj, obj, LAYOUTS[row][column], "float32")
        if view is None:
            return
        if column == "pa.py_buffer" and row == "transposed":
            assert look.data == PATTERN[: obj.nbytes]  # as it lies in memory
        else:
            assert look.data == raw(obj)
        if obj.size == 0:
            return  # no memory: whether it may be written to and how far its elements are apart is anybody's choice
        assert look.writable in (not obj.readonly, None)
        if look.strides is not None:
            both = zip(obj.shape, look.strides, obj.strides, strict=True)
            assert all(n == 1 or a == b for n, a, b in both)

    counter = tenon_exports.Counter()
    with exactly_once(counter):
        check()
        settle(counter)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", COLUMNS)
def test_memory_lives_as_long_as_the_view(column, source):
    door = CONSUMERS[column]
    door.need()
    counter = tenon_exports.Counter()
    obj = SOURCES[source](counter, shape=(6,), data=PATTERN)
    expected = raw(obj)
    view = door.take(obj)
    del obj
    gc.collect()
    assert counter.releases == 0
    assert door.look(view).data == expected
    del view
    settle(counter)
    assert counter.releases == 1


@pytest.mark.parametrize("source", SOURCES)
def test_all_libraries_at_once(source):
    """One memory, and every library that is here looks at it."""

    def check():
        obj = SOURCES[source](counter, shape=(8,), dtype="int32", data=bytes(32))
        views = {}
        for name in installed():
            try:
                CONSUMERS[name].need()
            except pytest.skip.Exception:
                continue
            views[name] = CONSUMERS[name].take(obj)
        assert {CONSUMERS[name].look(view).address for name, view in views.items()} == {obj.data_ptr}
        for writer in (name for name in views if CONSUMERS[name].write):
            data = bytes(writer.encode().ljust(32, b"."))
            CONSUMERS[writer].write(views[writer], data)
            assert {CONSUMERS[name].look(view).data for name, view in views.items()} == {data}

    counter = tenon_exports.Counter()
    with exactly_once(counter):
        check()
        settle(counter)


# --- a class of the user's own ----------------------------------------------------------------------


class Watched(tenon_exports.Matrix):
    """Python sees when its `__dlpack__` is called, and how."""

    def __init__(self, *_):
        self.calls = []

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return super().__dlpack__(**keywords)


@pytest.mark.parametrize("column", COLUMNS)
def test_user_class(column):
    """The memory of an object of a user's class, which the view keeps alive."""
    door = CONSUMERS[column]
    door.need()
    m = Watched(3, 4)
    address, watch = m.address, weakref.ref(m)
    view, refusal = attempt(door.take, m)
    asked = list(m.calls)
    del m
    gc.collect()
    if LAYOUTS["2-d"][column] == "V":
        assert "ValueError" in refusal
        assert watch() is None
        return
    look = door.look(view)
    floats = need("numpy").arange(12, dtype="float32")
    assert look.data == floats.tobytes()
    assert (look.dtype, look.shape) in {("float32", (3, 4)), (None, None)}
    if column == "jax":  # may have copied: the memory is aligned as malloc likes it
        assert look.address == address or address % 64
    else:
        assert look.address == address
        assert watch() is not None
        if door.write is not None:
            door.write(view, b"\x07" * 4)
            assert watch().__array__()[0, 0] == need("numpy").frombuffer(b"\x07" * 4, "f4")[0]
    # The exchange table and the buffer protocol go past `__dlpack__`.
    assert len(asked) == (column not in ("np.asarray", "memoryview", "pa.py_buffer", "tvm_ffi", "tvm_ffi call"))
    del view, look
    gc.collect()
    assert watch() is None


def test_user_class_empty():
    """No memory, no address, and still a shape for everybody."""
    for name in installed():
        door = CONSUMERS[name]
        if LAYOUTS["empty, 3-d"][name] != "0":
            continue
        try:
            door.need()
        except pytest.skip.Exception:
            continue
        look = door.look(door.take(tenon_exports.Matrix(0, 4)))
        assert (look.shape or (0, 4), look.data) == ((0, 4), b""), name


@pytest.mark.parametrize(("fault", "exception"), [(1, "RuntimeError"), (2, "RuntimeError"), (3, "BufferError")])
@pytest.mark.parametrize("column", COLUMNS)
def test_user_class_that_cannot_describe_itself(column, fault, exception):
    """What the class threw comes out at the other end of every library."""
    CONSUMERS[column].need()
    m = Watched(3, 4)
    m.fault = fault
    view, refusal = attempt(CONSUMERS[column].take, m)
    assert view is None
    assert exception in refusal
    watch = weakref.ref(m)
    del m
    gc.collect()
    assert watch() is None
