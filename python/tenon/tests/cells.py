# python/tenon/tests/cells.py: the element types and layouts of the matrix, and what every cell must hold, worked out without any library.
"""Cells of the matrix: 15 element types in 9 layouts."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: How Python's `struct` writes one element; bfloat16, which it has no letter for, is the upper half of a float32.
FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
    "bfloat16": "",
}
DTYPES = tuple(FORMATS)

#: Elements of the memory every array is made over, or filled from.
COUNT = 24


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return 2 if dtype == "bfloat16" else struct.calcsize(FORMATS[dtype])


def value(dtype: str, i: int) -> Any:
    """Element number `i`: exact in its type, and wrong in any narrower one."""
    if dtype == "bool":
        return i % 3 == 0
    if "int" in dtype:
        wide = max(itemsize(dtype) * 8 - 10, 0)
        return (i * 7 + 3 << wide) + i if dtype.startswith("u") else (i * 5 - 40 << wide) + i
    number = i * 0.5 - 3 + (2.0**-40 if dtype in ("float64", "complex128") else 0)
    return complex(number, i + 1) if dtype.startswith("complex") else number


def pack(dtype: str, element: Any) -> bytes:
    """The element's bytes."""
    if dtype == "bfloat16":
        (bits,) = struct.unpack("=I", struct.pack("=f", element))
        return struct.pack("=H", bits >> 16)
    if dtype.startswith("complex"):
        return struct.pack("=" + FORMATS[dtype], element.real, element.imag)
    return struct.pack("=" + FORMATS[dtype], element)


def values(dtype: str) -> list[Any]:
    """All elements of the memory, in order."""
    return [value(dtype, i) for i in range(COUNT)]


def packed(dtype: str) -> bytes:
    """The bytes of the memory."""
    return b"".join(pack(dtype, v) for v in values(dtype))


@dataclass(frozen=True)
class Layout:
    """A way for elements to lie in the memory."""

    name: str
    shape: tuple[int, ...]
    #: In elements.
    strides: tuple[int, ...]
    #: Which element of the memory is the first.
    offset: int = 0
    readonly: bool = False

    def indices(self) -> Iterator[int]:
        """Which element of the memory is where, in row-major order."""
        for index in itertools.product(*map(range, self.shape)):
            yield self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def data(self, dtype: str) -> bytes:
        """The bytes of the elements in row-major order."""
        return b"".join(pack(dtype, value(dtype, i)) for i in self.indices())


_LAYOUTS = (
    Layout("0-d", (), ()),
    Layout("1-d", (6,), (1,)),
    Layout("3-d", (2, 3, 4), (12, 4, 1)),
    Layout("empty", (0,), (1,)),
    Layout("sliced", (5,), (2,), offset=1),
    Layout("reversed", (6,), (-1,), offset=5),
    Layout("transposed", (4, 3), (1, 4)),
    Layout("broadcast", (3, 4), (0, 1)),
    Layout("read-only", (6,), (1,), readonly=True),
)
LAYOUTS = {layout.name: layout for layout in _LAYOUTS}

#: Every cell of a pair, in order.
CELLS = tuple(itertools.product(DTYPES, LAYOUTS))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a packed array."""
    steps = [1]
    for extent in reversed(shape[1:]):
        steps.append(steps[-1] * extent)
    return tuple(reversed(steps))[: len(shape)] if shape else ()


def same_strides(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether strides mean the same: those of axes with one element, or of empty arrays, mean nothing."""
    return len(a) == len(b) and (0 in shape or all(n == 1 or x == y for n, x, y in zip(shape, a, b, strict=True)))


class Memory:
    """The elements of one type in memory of our own, aligned to 64 bytes so that nobody has to copy it."""

    def __init__(self, dtype: str) -> None:
        data = packed(dtype)
        self.block = (ctypes.c_char * (len(data) + 63))()
        self.start = -ctypes.addressof(self.block) % 64
        self.address = ctypes.addressof(self.block) + self.start
        self.size = len(data)
        ctypes.memmove(self.address, data, len(data))

    def view(self) -> memoryview:
        """The elements' bytes, writable."""
        return memoryview(self.block).cast("B")[self.start : self.start + self.size]


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


_api = ctypes.PyDLL(None)  # not ctypes.pythonapi: the types set on its functions are everybody's
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def address_of_buffer(obj: Any) -> int:
    """Where the first element of a buffer is, of any format, layout and writability."""
    view = _Buffer()
    full_read_only = 0x0100 | 0x0010 | 0x0008 | 0x0004  # PyBUF_FULL_RO
    _api.PyObject_GetBuffer(ctypes.py_object(obj), ctypes.byref(view), full_read_only)
    address = view.buf or 0
    _api.PyBuffer_Release(ctypes.byref(view))
    return int(address)


def flags_of(capsule: Any) -> int:
    """The flags of a versioned capsule, read from the struct itself."""
    return ctypes.c_uint64.from_address(_pointer_of(capsule, b"dltensor_versioned") + 24).value


def address_of(capsule: Any) -> int:
    """The data pointer of a legacy capsule, read from the struct itself."""
    struct_at = _pointer_of(capsule, b"dltensor")
    data = ctypes.c_void_p.from_address(struct_at).value or 0
    return int(data + ctypes.c_uint64.from_address(struct_at + 40).value)


def read(address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bytes:
    """Elements of `size` bytes at an address, in row-major order, read with no library's help."""
    found = Layout("", shape, strides)
    return b"".join(ctypes.string_at(address + i * size, size) for i in found.indices())
