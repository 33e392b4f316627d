# python/tenon/_tensor.py: what `tenon.Tensor` can do beyond the protocols, which are compiled.
"""The methods of Tensor that are written in Python."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

from tenon import _core
from tenon._core import Tensor, asdlpack, device_of, dtype_of
from tenon._device import device
from tenon._dtype import dtype
from tenon._explain import why_copied, why_refused
from tenon._html import repr_html
from tenon._libraries import LIBRARIES, Library, library_of
from tenon._pickle import copy_view, deepcopy_view, reduce, reduce_ex
from tenon._values import item, tolist


class ReadOnlyWarning(UserWarning):
    """Read-only memory was handed to a library that lets it be written to."""


def to(self: Tensor, library: str | ModuleType, *, device: Any = None, copy: bool | None = None) -> Any:
    """The tensor as an array of another library, over the same memory.

    library: "numpy", "torch", "jax", "tensorflow", "paddle", "cupy", "pyarrow", "numba", "tvm_ffi", "cuda.core", or
        any module that has from_dlpack
    device: where the data must be; another place than it is in needs a copy
    copy: True always copies, False never does, None leaves it to the library

    Raises BufferError, with the reason and what to do, when the library cannot take the memory.
    """
    return _hand_over(self, library_of(library), device, copy)


def _hand_over(self: Tensor, library: Library, device: Any, copy: bool | None) -> Any:
    """What `to` does. Called by the method the user called, and by nothing else: the warning names his line."""
    given = self if device is None and (copy is None or copy is False) else asdlpack(self, device=device, copy=copy)
    if given.readonly and (words := library.warning_on(given)):
        warnings.warn(words, ReadOnlyWarning, stacklevel=3)
    made = _take(given, library)
    if copy is False and self.nbytes and _address(made, library) != self.data_ptr:
        raise BufferError(f"tenon: {library.name} made a copy, and copy=False forbids it{why_copied(given, library)}")
    return made


def _take(t: Tensor, library: Library) -> Any:
    """The library's array; BufferError says why there is none. What the library does not survive it is not given."""
    limit = None if library.is_ordinary_for(t) else library.limit_on(t, unnoticed=True)
    if limit is not None and limit.outcome == "refused":
        raise BufferError(why_refused(t, library, None))
    if limit is not None and limit is library.limit_on(t):
        t = asdlpack(t, copy=True)
    try:
        return library.take(t)
    except (ImportError, MemoryError):
        raise
    except Exception as e:
        raise BufferError(why_refused(t, library, e)) from e


def _address(made: Any, library: Library) -> int:
    try:
        return library.address(made)
    except Exception as e:
        raise BufferError(
            f"tenon: {library.name} returned {type(made).__name__!r}, which does not say where its memory is, and "
            "copy=False allows no copy; leave it out to take what the library makes"
        ) from e


def _method_of(library: Library) -> Any:
    def method(self: Tensor, *, device: Any = None, copy: bool | None = None) -> Any:
        return _hand_over(self, library, device, copy)

    method.__name__, method.__qualname__ = library.name, f"Tensor.{library.name}"
    method.__doc__ = f'The same as ``to("{library.name}")``.'
    return method


# Objects made of the few names that occur.
_dtype = functools.lru_cache(maxsize=64)(dtype)
_device = functools.lru_cache(maxsize=64)(device)


def complete() -> None:
    """Gives the compiled type the methods of this file."""
    names: dict[str, Any] = {
        "to": to,
        "item": item,
        "tolist": tolist,
        "_repr_html_": repr_html,
        "__reduce__": reduce,
        "__reduce_ex__": reduce_ex,
        "__copy__": copy_view,
        "__deepcopy__": deepcopy_view,
        "dtype": property(lambda self: _dtype(dtype_of(self)), doc="The element type: a `tenon.dtype`."),
        "device": property(lambda self: _device(device_of(self)), doc="Where the memory is: a `tenon.device`."),
    }
    methods = {name: _method_of(library) for name, library in LIBRARIES.items() if name.isidentifier()}
    _core.complete_tensor(names | methods)
