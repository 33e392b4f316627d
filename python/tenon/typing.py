# python/tenon/typing.py: the types that signatures and stubs of bound functions are written with.
"""The type of a bound function's array, for type checkers: `Array[numpy.float32, Literal["float32[*]"]]`.

Nothing here is looked at when a program runs: the function itself looks at what it is given.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np

_Element = TypeVar("_Element", bound="np.generic")
_Element_co = TypeVar("_Element_co", bound="np.generic", covariant=True)
_Words = TypeVar("_Words", bound=str)
_Words_co = TypeVar("_Words_co", bound=str, covariant=True)

# The words stand in each protocol and in none of its members: what meets one meets it with any words, but two with other words
# are two types, so that no overload hides another.


class _Typed(Protocol[_Element_co, _Words_co]):
    """An array of NumPy's, whose element type is part of its type."""

    @property
    def dtype(self) -> np.dtype[_Element_co]: ...
    @property
    def __array_interface__(self) -> Any: ...


# The types of all others say nothing of their elements. Each asks for something that NumPy's do not have, which would meet it
# whatever their elements are.


class _Producer(Protocol[_Words_co]):
    """Whatever has `__dlpack__`. NumPy's cannot be hashed."""

    def __dlpack__(self) -> Any: ...
    def __hash__(self) -> int: ...


class _OfNamespace(Protocol[_Words_co]):
    """An array of the array API, whether it can be hashed or not. NumPy's takes some versions only; before 2.1, no stream."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(self, *, stream: int | None = None) -> Any: ...


class _OfJax(Protocol[_Words_co]):
    """JAX's cannot be hashed either, and their `__dlpack__` is declared without a stream."""

    def __dlpack__(self) -> Any: ...
    @property
    def weak_type(self) -> bool: ...


class _OnCuda(Protocol[_Words_co]):
    @property
    def __cuda_array_interface__(self) -> Any: ...


class _OfArrow(Protocol[_Words_co]):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class _OfArrowOnDevice(Protocol[_Words_co]):
    def __arrow_c_device_array__(self, requested_schema: Any = None) -> Any: ...


class _ArrowStream(Protocol[_Words_co]):
    """A column of pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class _Buffer(Protocol[_Words_co]):
    """bytes, memoryview, mmap, arrays of ctypes."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __hash__(self) -> int: ...


class _MutableBuffer(Protocol[_Words_co]):
    """bytearray, array.array: they count what is in them."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def count(self, value: Any, /) -> int: ...


class _Described(Protocol[_Words_co]):
    """An object with nothing but `__array_interface__`."""

    @property
    def __array_interface__(self) -> Any: ...
    def __hash__(self) -> int: ...


class _Picture(Protocol[_Words_co]):
    """An image of PIL's, whose size has a width and a height."""

    @property
    def __array_interface__(self) -> Any: ...
    @property
    def size(self) -> tuple[int, int]: ...


#: An array of any library with elements of a type, and the constraint in words. Lists, numbers and text are none.
Array: TypeAlias = (
    _Typed[_Element, _Words]
    | _Producer[_Words]
    | _OfNamespace[_Words]
    | _OfJax[_Words]
    | _OnCuda[_Words]
    | _OfArrow[_Words]
    | _OfArrowOnDevice[_Words]
    | _ArrowStream[_Words]
    | _Buffer[_Words]
    | _MutableBuffer[_Words]
    | _Described[_Words]
    | _Picture[_Words]
)
