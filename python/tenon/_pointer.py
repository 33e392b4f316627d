# python/tenon/_pointer.py: `tenon.from_pointer`: memory that is known by its address alone.
"""Memory by its address."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from tenon import _core
from tenon._device import device as device_type
from tenon._dtype import dtype as dtype_type


_MOST_AXES = 64  # as in C++; what iterates without end is not read to its end


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
    deleter: called with `ptr`, once, when nobody does any more; not if this function raises, and not for memory that
        somebody still holds when the interpreter exits
    readonly: whether the memory must not be written to

    Where the collector takes a cycle apart, the deleter runs after all finalizers of it. One that can reach the Tensor
    itself, as a method of the object that has it, runs while there is still a Tensor, and must not give it to anybody.
    NumPy's arrays hide what they hold from the collector: a cycle through one is never found.

    How much memory there is nobody can check: the shape must be true.

    >>> import ctypes, tenon
    >>> numbers = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6)
    >>> t = tenon.from_pointer(ctypes.addressof(numbers), (2, 3), "float32", owner=numbers)
    >>> t.tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    axes = _numbers("shape", shape)
    steps = None if strides is None else _numbers("strides", strides)
    kind, place = dtype_type(dtype).triple, device_type(device).pair
    return _core.from_pointer(ptr, axes, steps, kind, place, readonly, False, owner, deleter)


def _numbers(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    try:
        return (operator.index(value),)  # type: ignore[arg-type]
    except TypeError:  # NumPy's arrays all have __index__, and few answer
        pass
    try:
        numbers = tuple(itertools.islice(cast("Iterable[int]", value), _MOST_AXES + 1))
    except TypeError:
        raise TypeError(f"tenon: {name} must be integers, one for each axis, not {value!r}") from None
    if len(numbers) > _MOST_AXES:
        raise ValueError(f"tenon: from_pointer(): {name} has more than {_MOST_AXES} axes, which is the most there can be")
    return numbers
