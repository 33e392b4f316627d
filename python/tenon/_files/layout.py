# python/tenon/_files/layout.py: what a header says of a tensor, checked: its shape, and the bytes it takes.
"""Shapes out of headers."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence

from tenon._dtype import dtype

#: Axes that a Tensor, or a NumPy array, can have.
MAX_AXES = 64
#: Extents, strides and sizes are 64-bit numbers everywhere.
MAX_NUMBER = 2**63 - 1

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown(value: object) -> str:
    """A value out of a header as it goes into a message: short, whatever it is."""
    return _short.repr(value)


def byte_count(shape: Sequence[int], kind: dtype) -> int:
    """The bytes that a packed tensor takes; the extents are known not to be negative.

    Raises ValueError, with only what is wrong: which file and field it is in is the caller's to say.
    """
    if len(shape) > MAX_AXES:
        raise ValueError(f"{len(shape)} axes, expected at most {MAX_AXES}")
    count = math.prod(shape)
    # An empty tensor has strides too, and they must be numbers.
    if (count or math.prod(filter(None, shape))) * kind.itemsize > MAX_NUMBER:
        raise ValueError(f"{shown(tuple(shape))} of {kind} is more than any memory holds")
    size, rest = divmod(count * kind.bits, 8)
    if rest:
        raise ValueError(f"{shown(tuple(shape))} of {kind} takes {size} bytes and {rest} bits, expected whole bytes")
    return size
