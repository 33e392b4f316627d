# python/tenon/_files/layout.py: what a header says of a tensor, checked: its shape, and the bytes it takes.
"""Shapes out of headers."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence

from tenon._dtype import dtype
from tenon._files.source import SourceFile

#: Axes that a Tensor, or a NumPy array, can have.
MAX_AXES = 64
#: Extents, strides and sizes are 64-bit numbers everywhere.
MAX_NUMBER = 2**63 - 1

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown(value: object) -> str:
    """A value out of a header as it goes into a message: short, whatever it is."""
    return _short.repr(value)


def byte_count(source: SourceFile, field: str, shape: Sequence[int], kind: dtype) -> int:
    """The bytes that a packed tensor takes; the extents are known not to be negative."""
    if len(shape) > MAX_AXES:
        raise source.fault(field, f"{len(shape)} axes, expected at most {MAX_AXES}")
    bits = math.prod(shape) * kind.bits
    # An empty tensor has strides too, and they must be numbers.
    if (bits or math.prod(filter(None, shape)) * kind.bits) > 8 * MAX_NUMBER or max(shape, default=0) > MAX_NUMBER:
        raise source.fault(field, f"{shown(tuple(shape))} of {kind} is more than any memory holds")
    if bits % 8:
        raise source.fault(field, f"{shown(tuple(shape))} of {kind} takes {bits} bits, expected whole bytes")
    return bits // 8
