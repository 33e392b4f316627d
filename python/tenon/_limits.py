# python/tenon/_limits.py: the words in which a library's limits are written: what it minds, why, and what helps.
"""Limits of libraries."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tenon._core import DTYPES, LIBRARIES, Tensor
from tenon._device import HOST
from tenon._dtype import dtype
from tenon._memory import is_compact, is_padded

Condition = Callable[[Tensor], bool]
#: Of the object the user has and its Tensor: what to write instead of `obj`, or what to do.
Fix = Callable[[object, Tensor], str]

#: What `Tensor.to` takes as `asdlpack` does, by what is written where there is no Tensor yet.
ASKING = {f"tenon.asdlpack(obj, {keyword})": keyword for keyword in ("copy=True", 'device="cpu"', 'device="cuda:0"')}
COPY, ON_CPU, ON_CUDA = ASKING


class Limit(NamedTuple):
    """Something a library does not take, or not without a copy."""

    applies: Condition
    #: Half a sentence about the tensor, "{t}", whose element type is "{dtype}".
    reason: str
    fix: Fix
    #: What the library does about it.
    outcome: str = "refused"
    #: The library does not notice: it would crash, now or later, or show other numbers. Such a tensor is never
    #: handed over; where the outcome is "copied", a copy of ours is.
    unnoticed: bool = False
    #: The first version that has the limit no more.
    until: tuple[int, ...] | None = None

    def reason_for(self, t: Tensor) -> str:
        return self.reason.format(t=t, dtype=dtype_name(t))


# --- what is looked at ------------------------------------------------------------------------------

#: The element types that NumPy has itself.
PLAIN = frozenset(name for name, _, typestr, *_ in DTYPES if typestr)
WIDE = frozenset(("int64", "uint64", "float64", "complex128"))
#: Whose memory is copied here, with the driver's help.
GPUS = frozenset(("cuda", "rocm"))

#: Stands in a sentence for the name of an element type that has none.
NAMELESS = "of this kind"


def dtype_name(t: Tensor) -> str:
    try:
        return str(t.dtype)
    except TypeError:  # nobody has a name for it
        return NAMELESS


def kind_of_device(t: Tensor) -> str:
    return str(t.device).partition(":")[0]


def other_dtype_than(names: frozenset[str]) -> Condition:
    return lambda t: dtype_name(t) not in names


def dtype_in(names: frozenset[str]) -> Condition:
    return lambda t: dtype_name(t) in names


def other_device_than(kinds: frozenset[str]) -> Condition:
    return lambda t: kind_of_device(t) not in kinds


def is_complex(t: Tensor) -> bool:
    return dtype_name(t).startswith("complex")


def has_negative_strides(t: Tensor) -> bool:
    return t.size > 0 and any(step < 0 for n, step in zip(t.shape, t.strides, strict=True) if n > 1)


def is_not_row_major(t: Tensor) -> bool:
    return not t.is_contiguous


def is_not_compact(t: Tensor) -> bool:
    return not is_compact(t.shape, t.strides)


def is_off(alignment: int) -> Condition:
    return lambda t: t.size > 0 and t.data_ptr % alignment != 0


def has_more_axes_than(most: int) -> Condition:
    return lambda t: t.ndim > most


def has_parts_of_bytes(t: Tensor) -> bool:
    """Whether an element is no whole number of bytes, however it is stored."""
    name = dtype_name(t)
    if name == NAMELESS:
        return t.itemsize * t.size != t.nbytes
    return dtype(name).bits * dtype(name).lanes % 8 != 0


def numpy_has_no_such(t: Tensor) -> bool:
    """Whether neither NumPy nor ml_dtypes has the element type. Imports ml_dtypes for what NumPy has not."""
    name = dtype_name(t)
    if name in PLAIN:
        return False
    if name == NAMELESS or (dtype(name).bits * dtype(name).lanes < 8 and not is_padded(t)):
        return True
    try:
        return not hasattr(importlib.import_module("ml_dtypes"), name)
    except ImportError:
        return True


# --- what helps -------------------------------------------------------------------------------------


def copy_it(obj: object, t: Tensor) -> str:
    """A copy of ours is row-major, aligned to 64 bytes and writable: on the same GPU, or on the CPU."""
    return COPY if kind_of_device(t) in HOST | GPUS else _BY_ITS_OWN


def move_to_cpu(obj: object, t: Tensor) -> str:
    kind = kind_of_device(t)
    if kind in HOST:
        return COPY
    return ON_CPU if kind in GPUS else _BY_ITS_OWN


def move_to_cuda(obj: object, t: Tensor) -> str:
    """By a copy, or none: managed memory is a GPU's as it is."""
    return ON_CUDA if kind_of_device(t) in HOST else "copy it to the GPU with the library it comes from"


_BY_ITS_OWN = "copy it to the CPU with the library it comes from"


def package_of(kind: type) -> str:
    """The package a class says it is from; empty if it says nothing sensible. None of its own code runs."""
    try:
        module = type.__dict__["__module__"].__get__(kind)
    except AttributeError:  # it has been deleted
        module = None
    return module.partition(".")[0] if type(module) is str else ""


def cast_it(obj: object, t: Tensor) -> str:
    """The next element type that everybody has."""
    name = dtype_name(t)
    if name == "bool":
        wanted = "uint8"
    elif name == "complex32":
        wanted = "complex64"
    elif name.startswith(("int", "uint")):
        wanted = "int8" if name.startswith("int") else "uint8"
    elif name.startswith(("float", "bfloat")) and "_x2" not in name:
        wanted = "float32"
    else:
        return "make numbers of another type of it, with the library it comes from"
    row = LIBRARIES.get(package_of(type(obj)))
    if row is not None and row["to_type"]:
        return row["to_type"].replace("$x", "obj").replace("$t", wanted).replace("'", '"')
    if numpy_has_no_such(t):
        return f"make {wanted} of it, with the library it comes from"
    taken = "obj" if type(obj) is Tensor else "tenon.asdlpack(obj)"
    return f'{taken}.numpy().astype("{wanted}")'


def cast_or_split_it(obj: object, t: Tensor) -> str:
    """As `cast_it`, for whom has no complex numbers: the real and the imaginary parts by turns."""
    halves = {"complex64": "float32", "complex128": "float64"}.get(dtype_name(t))
    if halves is None:
        return cast_it(obj, t)
    taken = "tenon.asdlpack(obj)" if t.is_contiguous else COPY
    return f'{taken}.numpy().view("{halves}")'


def flatten_it(obj: object, t: Tensor) -> str:
    return "reshape it to fewer axes, with the library it comes from"


def say(text: str) -> Fix:
    return lambda obj, t: text


# --- libraries that are here ------------------------------------------------------------------------


def loaded(module: str) -> Any:
    """The module if somebody has imported it, else None."""
    return sys.modules.get(module)


def version_of(module: str, distribution: str) -> tuple[int, ...] | None:
    """The version that is loaded or installed, its numbers only; None if there is none. Imports nothing of it."""
    text = getattr(loaded(module), "__version__", None)
    if text is None:
        metadata = importlib.import_module("importlib.metadata")
        try:
            text = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return None
    numbers = []
    for part in str(text).split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
