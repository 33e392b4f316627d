# python/tenon/_pickle.py: a Tensor in host memory is pickled and deep-copied by value.
"""Pickling and copying."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

from tenon import _core
from tenon._core import Tensor, asdlpack
from tenon._dtype import dtype
from tenon._memory import is_compact, is_padded
from tenon._values import bytes_over, require_host

_CPU = (1, 0)


def reduce_ex(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """How `pickle` takes a Tensor apart: by value, whatever its element type, its strides where they leave no gaps.

    Under protocol 5 the memory itself is handed to the pickler, which need not copy it (`buffer_callback`). Memory
    with gaps or repetitions is copied first. Raises BufferError for memory of a device.

    >>> import pickle, tenon
    >>> t = tenon.asdlpack(bytearray(b"abc"))
    >>> pickle.loads(pickle.dumps(t)).tolist()
    [97, 98, 99]
    """
    protocol = operator.index(protocol)
    require_host(self, "pickled")
    compact = self if is_compact(self.shape, self.strides) else asdlpack(self, copy=True)
    memory: Any = asdlpack(bytes_over(compact, 0, compact.nbytes), readonly=self.readonly)
    if protocol >= 5:
        from pickle import PickleBuffer

        memory = PickleBuffer(memory)
    else:  # the pickler knows of no read-only memory but bytes
        memory = bytes(memory) if self.readonly else bytearray(memory)
    # Along an axis of one element nobody steps: backwards is as good as not at all, and `rebuild` wants numbers from 0 on.
    strides = None if compact.is_contiguous else tuple(max(step, 0) for step in compact.strides)
    kind = dtype(compact.dtype).triple
    return rebuild, (memory, compact.shape, strides, kind, is_padded(compact), sys.byteorder)


def reduce(self: Tensor) -> tuple[Any, ...]:
    """As `reduce_ex` under protocol 0, which has no buffers."""
    return reduce_ex(self, 0)


def rebuild(buffer: Any, shape: Any, strides: Any, triple: Any, padded: Any, byteorder: Any) -> Tensor:
    """A Tensor over the memory of `buffer`, which it keeps; over a copy where that is not aligned.

    It is what pickles call, so its name and arguments stay as they are. Pickles can come from anywhere: arguments
    that do not fit each other raise TypeError or ValueError.
    """
    from pickle import PickleBuffer

    kind = dtype(triple) if isinstance(triple, tuple) else None
    if kind is None or not isinstance(padded, bool) or not _are_numbers(shape):
        raise TypeError(f"tenon: no Tensor is pickled with {shape=!r}, {triple=!r}, {padded=!r}; the pickle is damaged")
    if strides is not None and (
        not _are_numbers(strides) or len(strides) != len(shape) or not is_compact(shape, strides)
    ):
        raise ValueError(f"tenon: {strides=!r} leave gaps in {shape=!r}, or do not fit it; the pickle is damaged")
    if byteorder != sys.byteorder and kind.itemsize > 1:
        raise ValueError(
            f"tenon: the pickle holds {kind} in the byte order {byteorder!r}, and this machine's is {sys.byteorder!r}"
        )
    flat = asdlpack(PickleBuffer(buffer).raw())
    bits = kind.bits * kind.lanes
    needed = math.prod(shape) * kind.itemsize if padded or bits % 8 == 0 else -(-math.prod(shape) * bits // 8)
    if flat.nbytes != needed:
        raise ValueError(
            f"tenon: a Tensor of shape {shape} and type {kind} takes {needed} bytes, and the pickle holds "
            f"{flat.nbytes}; it is damaged"
        )
    if flat.data_ptr % _alignment(kind):
        flat = asdlpack(asdlpack(flat, copy=True), readonly=flat.readonly)
    return _core.from_pointer(flat.data_ptr, shape, strides, kind.triple, _CPU, flat.readonly, padded, flat, None)


def copy_view(self: Tensor) -> Tensor:
    """Itself: a Tensor is a view, and nothing about it can be changed."""
    return self


def deepcopy_view(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """The same values in memory of their own, writable and row-major. BufferError where that cannot be copied.

    `copy.deepcopy` itself remembers what was copied already.
    """
    return asdlpack(self, copy=True)


def _are_numbers(value: Any) -> bool:
    """Whether it can be a shape, or the strides of a compact one. Keeps hostile numbers out of the arithmetic."""
    return (
        type(value) is tuple  # whoever derives from it can say one thing and hold another
        and len(value) <= 64  # the most axes a Tensor has
        and all(type(number) is int and 0 <= number < 1 << 63 for number in value)
    )


def _alignment(kind: dtype) -> int:
    """What the address of an element must be a multiple of: the size of the number in it."""
    number = kind.bits // (16 if kind.code == 5 else 8)  # a complex element has two
    return number if number and number & number - 1 == 0 else 1
