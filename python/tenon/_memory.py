# python/tenon/_memory.py: how the elements of a Tensor lie in its memory: DLPack's flags, and whether there are gaps.
"""Memory."""

from __future__ import annotations

from collections.abc import Sequence

from tenon._core import Tensor

# DLPack's flags.
READ_ONLY = 1
COPIED = 2  # the memory is a copy that was made for the consumer
PADDED = 4  # elements of less than 8 bits take a byte each


def is_padded(t: Tensor) -> bool:
    return bool(t.flags & PADDED)


def is_compact(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill the memory after the first one, each a place of its own, in whatever order of axes."""
    if 0 in shape:
        return True
    filled = 1
    for step, extent in sorted(zip(strides, shape, strict=True)):
        if extent != 1:
            if step != filled:
                return False
            filled *= extent
    return True
