# python/tenon/tests/consumers.py: how each library takes a Tensor, the way its users do, and what it then says of the memory.
"""Consumers of the matrix."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tenon
from tenon.tests.cells import address_of, address_of_buffer, itemsize, read


@dataclass(frozen=True)
class Look:
    """What a library says of an array. None: it has no word for that."""

    address: int
    dtype: str | None
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements
    data: bytes  # of the elements, in row-major order
    writable: bool | None


@dataclass(frozen=True)
class Consumer:
    """A library that takes arrays."""

    name: str
    #: The module that must be there, None for what always is.
    module: str | None
    install: str
    take: Callable[[tenon.Tensor], Any]
    look: Callable[[Any], Look]
    #: What `Tensor.to` is given for it, None for what is no library.
    target: Callable[[], Any] | None


def _import(name: str) -> Any:
    return importlib.import_module(name)


def _look_numpy(a: Any) -> Look:
    strides = tuple(s // a.itemsize for s in a.strides)
    return Look(int(a.__array_interface__["data"][0]), a.dtype.name, a.shape, strides, a.tobytes(), a.flags.writeable)


def _look_strict(x: Any) -> Look:
    return _look_numpy(_import("numpy").asarray(x))


def _look_torch(x: Any) -> Look:
    octets = x.contiguous().reshape(-1).view(_import("torch").uint8).tolist()
    return Look(x.data_ptr(), str(x.dtype).removeprefix("torch."), tuple(x.shape), x.stride(), bytes(octets), None)


def _take_jax(t: tenon.Tensor) -> Any:
    jax = _import("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.from_dlpack(t)


def _look_jax(x: Any) -> Look:
    data = _import("numpy").asarray(x).tobytes()
    return Look(x.unsafe_buffer_pointer(), x.dtype.name, x.shape, None, data, writable=False)


def _take_tensorflow(t: tenon.Tensor) -> Any:
    return _import("tensorflow").experimental.dlpack.from_dlpack(t.__dlpack__())  # it takes capsules, of the old kind


def _look_tensorflow(x: Any) -> Look:
    return Look(address_of(x.__dlpack__()), x.dtype.name, tuple(x.shape), None, x.numpy().tobytes(), writable=False)


def _look_paddle(x: Any) -> Look:
    dtype = x.dtype.name.lower()  # printed, its uint16 is called bfloat16
    address = x.data_ptr() if x.size else 0  # an empty one has none to give
    strides = tuple(x.strides)
    data = x.contiguous().numpy().tobytes()  # numpy() alone fails for negative strides; contiguous() changes x
    return Look(address, dtype, tuple(x.shape), strides, data, None)


def _take_pyarrow(t: tenon.Tensor) -> Any:
    pa = _import("pyarrow")
    if hasattr(pa.Array, "from_dlpack"):
        return (pa.Array if t.ndim == 1 and t.is_contiguous else pa.Tensor).from_dlpack(t)
    if t.ndim == 1 and t.is_contiguous:
        return pa.array(_import("numpy").asarray(t))
    return pa.Tensor.from_numpy(_import("numpy").asarray(t))


_ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def _look_pyarrow(x: Any) -> Look:
    dtype = _ARROW_NAMES.get(str(x.type), str(x.type))
    if type(x).__name__ == "Tensor":
        a = x.to_numpy()
        strides = tuple(s * 8 // x.type.bit_width for s in x.strides)
        return Look(int(a.__array_interface__["data"][0]), dtype, tuple(x.shape), strides, a.tobytes(), x.is_mutable)
    memory = x.buffers()[1]
    if dtype == "bool":  # a bit for each element: nobody's memory but its own
        return Look(memory.address, dtype, (len(x),), None, bytes(map(int, x.to_pylist())), memory.is_mutable)
    size = x.type.bit_width // 8
    address = memory.address + x.offset * size
    return Look(address, dtype, (len(x),), None, ctypes.string_at(address, len(x) * size), memory.is_mutable)


def _look_tvm_ffi(x: Any) -> Look:
    # It has no way to read an element, and no name for the complex types: `tenon.dtype` has.
    dtype = tenon.asdlpack(x).dtype.name
    address, shape, strides = x.data_ptr() or 0, tuple(x.shape), tuple(x.strides)
    return Look(address, dtype, shape, strides, read(address, shape, strides, itemsize(dtype)), None)


_NAMES = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "q": "int64", "l": "int64", "B": "uint8", "H": "uint16",
    "I": "uint32", "Q": "uint64", "L": "uint64", "e": "float16", "f": "float32", "d": "float64", "Zf": "complex64",
    "Zd": "complex128",
}  # fmt: skip


def _look_memoryview(m: memoryview) -> Look:
    strides = tuple(s // m.itemsize for s in m.strides or ())
    return Look(address_of_buffer(m), _NAMES[m.format], tuple(m.shape or ()), strides, m.tobytes(), not m.readonly)


CONSUMERS = {
    c.name: c
    for c in (
        Consumer("numpy", "numpy", "numpy", lambda t: _import("numpy").from_dlpack(t), _look_numpy, lambda: "numpy"),
        Consumer("torch", "torch", "torch", lambda t: _import("torch").from_dlpack(t), _look_torch, lambda: "torch"),
        Consumer("jax", "jax", "jax", _take_jax, _look_jax, lambda: "jax"),
        Consumer(
            "tensorflow", "tensorflow", "tensorflow", _take_tensorflow, _look_tensorflow, lambda: "tensorflow"
        ),
        Consumer(
            "paddle", "paddle", "paddlepaddle", lambda t: _import("paddle").from_dlpack(t), _look_paddle,
            lambda: "paddle",
        ),
        Consumer("pyarrow", "pyarrow", "pyarrow numpy", _take_pyarrow, _look_pyarrow, lambda: "pyarrow"),
        Consumer(
            "tvm_ffi", "tvm_ffi", "apache-tvm-ffi", lambda t: _import("tvm_ffi").from_dlpack(t), _look_tvm_ffi,
            lambda: "tvm_ffi",
        ),
        Consumer(
            "array_api_strict", "array_api_strict", "array-api-strict",
            lambda t: _import("array_api_strict").from_dlpack(t), _look_strict, lambda: _import("array_api_strict"),
        ),
        Consumer("memoryview", None, "", memoryview, _look_memoryview, None),
    )
}  # fmt: skip
