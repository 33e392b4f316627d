# python/tenon/_values.py: `Tensor.item` and `Tensor.tolist`: elements of every known type as Python's own numbers.
"""Elements as numbers."""

from __future__ import annotations

import functools
import itertools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenon import _core
from tenon._core import Tensor
from tenon._device import device
from tenon._dtype import dtype
from tenon._memory import is_padded


def item(self: Tensor) -> Any:
    """The one element, as an int, a float, a complex or a bool; a tuple of those if it has several lanes.

    Raises ValueError if there is not exactly one, BufferError if it cannot be read here.

    >>> import tenon
    >>> tenon.asdlpack(b"*").item()
    42
    """
    if self.size != 1:
        count = f"{self.size} elements" if self.size else "no element"
        raise ValueError(
            f"tenon: item() is for a Tensor of exactly one element, and this one has {count} (shape {self.shape}); "
            "tolist() gives them all"
        )
    return _reader(self)(0)


def tolist(self: Tensor) -> Any:
    """All elements as nested lists, one level for each axis; without axes, the element itself.

    Any strides will do. There is no limit: a billion elements make a billion objects.
    Raises BufferError if the elements cannot be read here: memory of a device, types without a meaning; MemoryError if
    there are no elements, and yet millions of empty lists: shape ``(2**40, 0)``.

    >>> import tenon
    >>> t = tenon.asdlpack(memoryview(b"abcdef").cast("B", (2, 3)))
    >>> t.tolist()
    [[97, 98, 99], [100, 101, 102]]
    """
    if not self.size and math.prod(itertools.takewhile(bool, self.shape)) > _MOST_EMPTY_LISTS:
        raise MemoryError(
            f"tenon: a Tensor of shape {self.shape} has no elements, and more than {_MOST_EMPTY_LISTS} empty lists"
        )
    if _format_of(dtype(self.dtype)) in _READ_BY_MEMORYVIEW and device(self.device).is_host:
        return memoryview(self).tolist()
    read = _reader(self)
    return _nested([read(offset) for offset in _offsets(self)], self.shape)


#: What tolist() makes of no elements at all.
_MOST_EMPTY_LISTS = 1 << 24


def require_host(t: Tensor, deed: str) -> None:
    """BufferError unless plain code may read the memory of `t`."""
    if not device(t.device).is_host:
        raise BufferError(
            f"tenon: the memory is on {t.device} and cannot be {deed} from here; take a copy on the host first: "
            'asdlpack(t, device="cpu")'
        )


def bytes_over(t: Tensor, begin: int, end: int) -> Tensor:
    """The bytes from `begin` to before `end`, counted from the first element, in place; keeps `t`."""
    where = device(t.device).pair
    return _core.from_pointer(t.data_ptr + begin, (end - begin,), None, _BYTE, where, t.readonly, False, t, None)


# --- where elements are -----------------------------------------------------------------------------


def _offsets(t: Tensor) -> list[int]:
    """Of every element, in row-major order, from the first, in elements."""
    found = [0] if t.size else []
    for extent, step in zip(t.shape, t.strides, strict=True):
        found = [offset + i * step for offset in found for i in range(extent)]
    return found


def _nested(values: list[Any], shape: Sequence[int]) -> Any:
    """The values in row-major order, as lists of lists. Levels are made from the innermost outwards."""
    for axis in reversed(range(len(shape))):
        extent = shape[axis]
        values = [values[i * extent : (i + 1) * extent] for i in range(math.prod(shape[:axis]))]
    return values[0]


def _reader(t: Tensor) -> Callable[[int], Any]:
    """What reads the element that lies so many elements after the first."""
    require_host(t, "read")
    kind = dtype(t.dtype)
    number = _number_of(kind)
    count = kind.lanes * (2 if kind.code in _PAIRS else 1)
    steps = [(extent - 1) * step for extent, step in zip(t.shape, t.strides, strict=True)] if t.size else []
    lowest, highest = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    packed = kind.bits * kind.lanes % 8 != 0 and not is_padded(t)
    bits = kind.bits * kind.lanes if packed else kind.itemsize * 8
    begin, end = lowest * bits // 8, -(-(highest + 1) * bits // 8)
    window = memoryview(bytes_over(t, begin, end)) if t.size else memoryview(b"")

    if number.format:  # whole bytes
        unpack = struct.Struct("=" + number.format * count).unpack_from

        def codes(offset: int) -> tuple[Any, ...]:
            return unpack(window, offset * kind.itemsize - begin)

    else:  # DLPack packs from the low end of a byte, and elements may straddle two

        def codes(offset: int) -> tuple[Any, ...]:
            first = offset * bits - begin * 8
            whole = int.from_bytes(window[first // 8 : -(-(first + kind.bits * count) // 8)], "little") >> first % 8
            return tuple(whole >> lane * kind.bits & (1 << kind.bits) - 1 for lane in range(count))

    def read(offset: int) -> Any:
        lanes = codes(offset)
        if number.meaning is not None:
            lanes = tuple(map(number.meaning, lanes))
        if kind.code in _PAIRS:
            lanes = tuple(complex(lanes[i], lanes[i + 1]) for i in range(0, count, 2))
        return lanes[0] if kind.lanes == 1 else lanes

    return read


# --- what elements mean -----------------------------------------------------------------------------

_BYTE = (1, 8, 1)
_INT, _UINT, _FLOAT, _OPAQUE, _BFLOAT, _COMPLEX = range(6)
_BCOMPLEX = 18
#: Of two numbers each.
_PAIRS = (_COMPLEX, _BCOMPLEX)

#: Formats that memoryview reads quickly, and right on every Python: 'e' came in 3.12, and for '?' it reads a C bool,
#: which must be 0 or 1. The struct module looks at the byte.
_READ_BY_MEMORYVIEW = frozenset("bBhHiIqQfd")
_FORMATS: dict[tuple[int, int, int], str] = {triple: format for _, triple, _, format, _ in _core.DTYPES}


class _Number(NamedTuple):
    """How one number of an element is read."""

    #: The struct module's letter for its bytes; empty when it does not fill whole bytes.
    format: str
    #: What the number read stands for; None for itself.
    meaning: Callable[[Any], Any] | None = None


def _format_of(kind: dtype) -> str:
    return _FORMATS.get(kind.triple, "")


def _number_of(kind: dtype) -> _Number:
    """Raises BufferError for what has no meaning here."""
    code, bits, _ = kind.triple
    format = _FORMATS.get((code, bits, 1))
    if code == _OPAQUE:
        raise BufferError(f"tenon: elements of type {kind} are handles that only the library they come from can read")
    if format is None:  # not in the table
        raise BufferError(
            f"tenon: what elements of type {kind} mean is not known here; DLPack may have given the code {code} with "
            f"{bits} bits a meaning since; ask the library that made them"
        )
    if code == _COMPLEX:
        return _Number({32: "e", 64: "f", 128: "d"}[bits])
    if code in (_BFLOAT, _BCOMPLEX):
        return _Number("H", _from_bfloat16)
    if bits <= 8 and not format:
        return _Number("B" if bits == 8 else "", _meanings(code, bits).__getitem__)
    return _Number(format)


def _from_bfloat16(code: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", code << 16))[0])


@functools.cache
def _meanings(code: int, bits: int) -> tuple[Any, ...]:
    """Of all numbers of so many bits."""
    return _core.meanings(code, bits)
