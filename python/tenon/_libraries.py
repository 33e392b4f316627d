# python/tenon/_libraries.py: the one list of array libraries, and how each takes a Tensor over the same memory.
"""Array libraries."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tenon._core import Tensor


@dataclass(frozen=True)
class Library:
    """An array library as a place to hand tensors to."""

    name: str
    #: What is imported for it.
    module: str
    #: Its array over the same memory, or whatever it raises.
    take: Callable[[Tensor], Any]
    #: Where the first element of its array is, on the device the array is on.
    address: Callable[[Any], int]
    #: It has no read-only arrays: it takes read-only memory, and lets it be written to.
    forgets_readonly: bool = False


def _import(name: str) -> Any:
    return importlib.import_module(name)


# --- how each takes a Tensor ------------------------------------------------------------------------


def _take_jax(t: Tensor) -> Any:
    return _import("jax.numpy").from_dlpack(t)


def _take_tensorflow(t: Tensor) -> Any:
    return _import("tensorflow").experimental.dlpack.from_dlpack(t.__dlpack__())  # a legacy capsule, and no object


def _take_pyarrow(t: Tensor) -> Any:
    """An Array if it has one axis and no gaps, else a Tensor."""
    pyarrow = _import("pyarrow")
    one_by_one = t.ndim == 1 and t.is_contiguous
    if hasattr(pyarrow.Array, "from_dlpack"):
        return (pyarrow.Array if one_by_one else pyarrow.Tensor).from_dlpack(t)
    return pyarrow.array(t.__array__()) if one_by_one else pyarrow.Tensor.from_numpy(t.__array__())  # before 26


def _take_numba(t: Tensor) -> Any:
    if t.__dlpack_device__()[0] == 2:
        return _import("numba.cuda").as_cuda_array(t)
    return t.__array__()  # on the host Numba's arrays are NumPy's


# --- where their memory is --------------------------------------------------------------------------


def _address_of_jax(array: Any) -> int:
    return int(array.unsafe_buffer_pointer())


def _address_of_tensorflow(array: Any) -> int:
    from tenon._core import asdlpack

    return asdlpack(array).data_ptr


def _address_of_pyarrow(array: Any) -> int:
    from tenon._core import asdlpack

    return asdlpack(array).data_ptr


def _address_of_numba(array: Any) -> int:
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])


_LIBRARIES = (
    Library(
        "numpy", "numpy", take=lambda t: t.__array__(), address=lambda a: int(a.__array_interface__["data"][0])
    ),
    Library(
        "torch",
        "torch",
        take=lambda t: _import("torch").from_dlpack(t),
        address=lambda a: int(a.data_ptr()),
        forgets_readonly=True,
    ),
    Library("jax", "jax", take=_take_jax, address=_address_of_jax),
    Library("tensorflow", "tensorflow", take=_take_tensorflow, address=_address_of_tensorflow),
    Library(
        "paddle",
        "paddle",
        take=lambda t: _import("paddle").from_dlpack(t),
        address=lambda a: int(a.data_ptr()),
        forgets_readonly=True,
    ),
    Library("cupy", "cupy", take=lambda t: _import("cupy").from_dlpack(t), address=lambda a: int(a.data.ptr)),
    Library("pyarrow", "pyarrow", take=_take_pyarrow, address=_address_of_pyarrow),
    Library("numba", "numba", take=_take_numba, address=_address_of_numba),
    Library(
        "tvm_ffi",
        "tvm_ffi",
        take=lambda t: _import("tvm_ffi").from_dlpack(t),
        address=lambda a: int(a.data_ptr()),
        forgets_readonly=True,
    ),
)

LIBRARIES: dict[str, Library] = {library.name: library for library in _LIBRARIES}


def library_of(target: str | ModuleType) -> Library:
    """The library of that name, or that module; any other module that has `from_dlpack` will do.

    Raises ValueError for a name nobody knows, ImportError for a library that is not installed.
    """
    if isinstance(target, ModuleType):
        name = target.__name__
        known = LIBRARIES.get(name.partition(".")[0])
        if known is not None:
            return known
        if hasattr(target, "from_dlpack"):
            return Library(name, name, take=target.from_dlpack, address=_address_of_pyarrow)
        raise ValueError(f"tenon: the module '{name}' has no from_dlpack, and is none of {', '.join(LIBRARIES)}")
    if not isinstance(target, str):
        raise TypeError(f"tenon: a library is named by a string or its module, not by {target!r}")
    if target not in LIBRARIES:
        raise ValueError(
            f"tenon: no library is called {target!r} here; pass one of {', '.join(LIBRARIES)}, or a module that has "
            "from_dlpack"
        )
    return LIBRARIES[target]
