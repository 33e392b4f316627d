# python/tenon/_pointer.py: `tenon.from_pointer`: memory that is known by its address alone.
"""Memory by its address."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from tenon import _core
from tenon._device import device as device_type
from tenon._dtype import dtype as dtype_type


class Memory:
    """What a pointer's memory belongs to: goes when nobody looks at it any more, and then calls the deleter."""

    __slots__ = ("__weakref__", "deleter", "owner", "ptr")

    def __init__(self, ptr: int, owner: object) -> None:
        self.ptr, self.owner = ptr, owner
        self.deleter: Callable[[int], object] | None = None

    def __del__(self) -> None:
        if self.deleter is not None:
            self.deleter(self.ptr)


def from_pointer(
    ptr: int,
    shape: int | Sequence[int],
    dtype: Any,
    *,
    device: Any = "cpu",
    strides: Sequence[int] | None = None,
    owner: object = None,
    deleter: Callable[[int], object] | None = None,
    readonly: bool = False,
) -> _core.Tensor:
    """A Tensor over memory that is known by its address.

    ptr: the address of the first element
    shape: extent of each axis, or of the only one; strides: step along each, in elements, row-major if None
    dtype, device: anything `tenon.dtype` and `tenon.device` take
    owner: kept for as long as anybody looks at the memory
    deleter: called with `ptr`, once, when nobody does any more; not if this function raises
    readonly: whether the memory must not be written to

    How much memory there is nobody can check: the shape must be true.

    >>> import ctypes, tenon
    >>> numbers = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6)
    >>> t = tenon.from_pointer(ctypes.addressof(numbers), (2, 3), "float32", owner=numbers)
    >>> t.tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    if deleter is not None and not callable(deleter):
        raise TypeError(f"tenon: deleter must be None or a function of the address, not {deleter!r}")
    axes = _numbers("shape", shape)
    steps = None if strides is None else _numbers("strides", strides)
    keeper = owner if deleter is None else Memory(ptr, owner)
    made = _core.from_pointer(
        ptr, axes, steps, dtype_type(dtype).triple, device_type(device).pair, readonly, False, keeper
    )
    if isinstance(keeper, Memory):
        keeper.deleter = deleter  # not before: what was refused is still the caller's
    return made


def _numbers(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    try:
        return (operator.index(value),) if isinstance(value, SupportsIndex) else tuple(value)
    except TypeError:
        raise TypeError(f"tenon: {name} must be integers, one for each axis, not {value!r}") from None
