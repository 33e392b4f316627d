# python/tenon/tests/producers.py: how each library makes the array of a cell, and what it says itself of it.
"""Producers of the matrix."""

from __future__ import annotations

import array
import ctypes
import importlib
import math
import mmap
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon.tests.cells import COUNT, FORMATS, Layout, Memory, address_of, address_of_buffer, itemsize, packed, row_major
from tenon.tests.cells import same_strides, values


class CannotMake(Exception):
    """The library has no such array; the text is what came instead."""


@dataclass(frozen=True)
class Made:
    """An array of a library, with what the library itself says of it."""

    kind: str
    obj: Any
    address: int
    strides: tuple[int, ...]
    readonly: bool
    keep: Any = None


@dataclass(frozen=True)
class Producer:
    """A library that makes arrays; or several kinds of objects that belong together."""

    name: str
    #: The module that must be there, None for what always is.
    module: str | None
    #: What to install for it.
    install: str
    make: Callable[[str, Layout], list[Made]]


#: All elements in one axis.
_ALL = Layout("all", (COUNT,), (1,))


def _import(name: str) -> Any:
    return importlib.import_module(name)


def _arrange(flat: Any, layout: Layout, broadcast_to: Any, transpose: Any = None) -> Any:
    """A layout as people write it, of all elements in one axis."""
    name = layout.name
    if layout is _ALL:
        return flat
    if name == "0-d":
        return flat[:1].reshape(())
    if name == "3-d":
        return flat.reshape((2, 3, 4))
    if name == "empty":
        return flat[:0]
    if name == "sliced":
        return flat[1:11:2]
    if name == "reversed":
        return flat[5::-1]
    if name == "transposed":
        rows = flat[:12].reshape((3, 4))
        return rows.T if transpose is None else transpose(rows)
    if name == "broadcast":
        return broadcast_to(flat[:4], (3, 4))
    return flat[:6]


def _checked(layout: Layout, made: Made, shape: tuple[int, ...]) -> list[Made]:
    """Only what has the layout that was asked for counts as made."""
    if shape != layout.shape:
        raise CannotMake(f"its shape is {shape}")
    if not same_strides(shape, made.strides, layout.strides):
        raise CannotMake(f"its strides are {made.strides}, not {layout.strides}")
    if layout.readonly and not made.readonly:
        raise CannotMake("it is writable")
    return [made]


def _or_cannot(make: Callable[[], Any]) -> Any:
    """What a library refuses to make itself, it cannot make."""
    try:
        return make()
    except CannotMake:
        raise
    except Exception as e:
        raise CannotMake(f"{type(e).__name__}: {e}".splitlines()[0][:200]) from None


# --- NumPy and what is built on it --------------------------------------------------------------------


def _numpy_dtype(dtype: str) -> Any:
    np = _import("numpy")
    return np.dtype(_import("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)


def _numpy_array(dtype: str, layout: Layout) -> Any:
    np = _import("numpy")
    flat = np.frombuffer(Memory(dtype).view(), _numpy_dtype(dtype), COUNT)
    made = _arrange(flat, layout, np.broadcast_to)
    if layout.readonly:
        made.flags.writeable = False
    return made


def _say_numpy(kind: str, obj: Any, a: Any) -> Made:
    strides = tuple(s // a.itemsize for s in a.strides)
    return Made(kind, obj, int(a.__array_interface__["data"][0]), strides, not a.flags.writeable, keep=a)


def _make_numpy(dtype: str, layout: Layout) -> list[Made]:
    a = _or_cannot(lambda: _numpy_array(dtype, layout))
    return _checked(layout, _say_numpy("ndarray", a, a), a.shape)


def _make_strict(dtype: str, layout: Layout) -> list[Made]:
    xp, np = _import("array_api_strict"), _import("numpy")

    def make() -> Any:
        flat = xp.asarray(_numpy_array(dtype, _ALL), copy=False)
        if layout.name == "0-d":
            return xp.reshape(flat[:1], ())
        if layout.name == "3-d":
            return xp.reshape(flat, (2, 3, 4))
        if layout.name == "transposed":
            return xp.reshape(flat[:12], (3, 4)).T
        made = _arrange(flat, layout, xp.broadcast_to)
        if layout.readonly:
            made = xp.asarray(_numpy_array(dtype, layout), copy=False)
        return made

    a = _or_cannot(make)
    return _checked(layout, _say_numpy("Array", a, np.asarray(a)), tuple(a.shape))


def _make_pandas(dtype: str, layout: Layout) -> list[Made]:
    pandas, np = _import("pandas"), _import("numpy")
    if len(layout.shape) != 1:
        raise CannotMake("a Series has one axis")
    series = _or_cannot(lambda: _arrange_series(pandas.Series(_numpy_array(dtype, _ALL), copy=False), layout))
    if layout.name in ("sliced", "reversed"):
        packed_up = _or_cannot(lambda: _import("pyarrow").array(series)).buffers()[1].address
        if packed_up != np.asarray(series).__array_interface__["data"][0]:
            raise CannotMake("it leaves pandas as a packed copy")
    return _checked(layout, _say_numpy("Series", series, np.asarray(series)), series.shape)


def _arrange_series(series: Any, layout: Layout) -> Any:
    slices = {"empty": slice(0), "sliced": slice(1, 11, 2), "reversed": slice(5, None, -1)}
    return series.iloc[slices.get(layout.name, slice(6))]


# --- PyTorch, JAX, TensorFlow, Paddle -----------------------------------------------------------------


def _make_torch(dtype: str, layout: Layout) -> list[Made]:
    torch = _import("torch")
    memory = Memory(dtype)
    flat = _or_cannot(lambda: torch.frombuffer(memory.view(), dtype=getattr(torch, dtype)))
    x = _or_cannot(lambda: _arrange(flat, layout, torch.broadcast_to))
    made = Made("Tensor", x, x.data_ptr(), tuple(x.stride()), readonly=False, keep=memory)
    return _checked(layout, made, tuple(x.shape))


def _nested(elements: list[Any], shape: tuple[int, ...]) -> Any:
    """The first elements as lists of lists."""
    if not shape:
        return elements[0]
    size = math.prod(shape[1:])
    return [_nested(elements[i * size :], shape[1:]) for i in range(shape[0])]


def _make_jax(dtype: str, layout: Layout) -> list[Made]:
    jax = _import("jax")
    jax.config.update("jax_enable_x64", True)  # it has 64-bit types only when it is told so
    jnp = jax.numpy

    def packed_array(*shape: int) -> Any:  # from the host: each operation on an array has to be compiled first
        return jnp.array(_nested(values(dtype), shape), dtype)

    def make() -> Any:
        if layout.name == "sliced":
            return packed_array(COUNT)[1:11:2]
        if layout.name == "reversed":
            return jnp.flip(packed_array(6))
        if layout.name == "transposed":
            return packed_array(3, 4).T
        if layout.name == "broadcast":
            return jnp.broadcast_to(packed_array(4), (3, 4))
        return packed_array(*layout.shape)

    x = _or_cannot(make)
    made = Made("Array", x, x.unsafe_buffer_pointer(), row_major(x.shape), readonly=True)
    return _checked(layout, made, x.shape)


def _make_tensorflow(dtype: str, layout: Layout) -> list[Made]:
    tf = _import("tensorflow")

    def make() -> Any:
        flat = tf.constant(values(dtype), getattr(tf, dtype))
        if layout.name == "0-d":
            return tf.reshape(flat[:1], ())
        if layout.name == "3-d":
            return tf.reshape(flat, (2, 3, 4))
        if layout.name == "transposed":
            return tf.transpose(tf.reshape(flat[:12], (3, 4)))
        return _arrange(flat, layout, tf.broadcast_to)

    x = _or_cannot(make)
    shape = tuple(x.shape)
    return _checked(layout, Made("Tensor", x, address_of(x.__dlpack__()), row_major(shape), readonly=True), shape)


def _make_paddle(dtype: str, layout: Layout) -> list[Made]:
    paddle = _import("paddle")

    def make() -> Any:
        flat = paddle.to_tensor(values(dtype), dtype=dtype, place="cpu")
        if flat.dtype != getattr(paddle, dtype):
            raise CannotMake(f"its dtype is {flat.dtype}")
        return _arrange(flat, layout, paddle.broadcast_to)

    x = _or_cannot(make)
    made = Made("Tensor", x, x.data_ptr() if x.size else 0, tuple(x.strides), readonly=False)
    return _checked(layout, made, tuple(x.shape))


# --- PyArrow, Polars, tvm-ffi -------------------------------------------------------------------------


def _arrow_array(dtype: str, layout: Layout) -> list[Made]:
    pa = _import("pyarrow")

    def make() -> Any:
        kind = pa.from_numpy_dtype(dtype) if dtype != "bool" else pa.bool_()
        return pa.array(values(dtype), kind)[:6]

    if len(layout.shape) != 1:
        raise CannotMake("an Array has one axis")
    if not layout.readonly:
        raise CannotMake("an Array is read-only")
    a = _or_cannot(make)
    memory = a.buffers()[1]
    address = memory.address + a.offset * itemsize(dtype)
    return _checked(layout, Made("Array", a, address, (1,), readonly=True, keep=memory), (len(a),))


def _arrow_tensor(dtype: str, layout: Layout) -> list[Made]:
    if layout.name == "read-only" and dtype != "bool":
        raise CannotMake("an Array does: this leaves as no legacy struct, as it leaves PyArrow as none")
    pa = _import("pyarrow")
    source = _or_cannot(lambda: _numpy_array(dtype, layout))
    x = _or_cannot(lambda: pa.Tensor.from_numpy(source))
    if dtype == "bool":
        raise CannotMake(f"its type is {x.type}")
    a = x.to_numpy()
    strides = tuple(s // itemsize(dtype) for s in x.strides)
    cannot_say = not hasattr(pa.Tensor, "from_dlpack")  # before 26 its capsules were legacy, and count as read-only
    readonly = not x.is_mutable or cannot_say
    made = Made("Tensor", x, int(a.__array_interface__["data"][0]), strides, readonly, keep=a)
    return _checked(layout, made, tuple(x.shape))


def _make_pyarrow(dtype: str, layout: Layout) -> list[Made]:
    return _every([("Array", _arrow_array), ("Tensor", _arrow_tensor)], dtype, layout)


def _make_polars(dtype: str, layout: Layout) -> list[Made]:
    polars = _import("polars")
    names = {"bool": "Boolean", **{n: n.replace("uint", "UInt").replace("int", "Int") for n in FORMATS if "int" in n}}
    if len(layout.shape) != 1:
        raise CannotMake("a Series has one axis")

    slices = {"empty": slice(0), "sliced": slice(1, 11, 2), "reversed": slice(5, None, -1)}

    def make(room: int) -> Any:
        kind = getattr(polars, names.get(dtype, dtype.capitalize()))
        flat = polars.Series(values(dtype) + values(dtype)[:1] * room, dtype=kind)
        return flat[slices.get(layout.name, slice(6))]

    def address_of_series(series: Any) -> int:
        if dtype == "bool" or layout.shape == (0,):  # single bits, or none
            return 0
        return int(series.to_numpy(allow_copy=False).__array_interface__["data"][0])

    series = _or_cannot(lambda: make(0))
    if layout.name in ("sliced", "reversed"):
        raise CannotMake("it is a packed copy")
    tried = [series]
    while (address := address_of_series(series)) % 64 and len(tried) < 4096:
        series = make(len(tried) % 64)
        tried.append(series)
    return _checked(layout, Made("Series", series, address, (1,), readonly=True), (len(series),))


def _make_tvm_ffi(dtype: str, layout: Layout) -> list[Made]:
    tvm_ffi = _import("tvm_ffi")
    memory = Memory(dtype)
    # It has no arrays of its own making: each is made over somebody's memory.
    first = memory.address + layout.offset * itemsize(dtype)
    source = tenon.from_pointer(
        first, layout.shape, dtype, strides=layout.strides, owner=memory, readonly=layout.readonly
    )
    x = _or_cannot(lambda: tvm_ffi.from_dlpack(source))
    made = Made("Tensor", x, x.data_ptr() or 0, tuple(x.strides), readonly=False)
    return _checked(layout, made, tuple(x.shape))


# --- the standard library -----------------------------------------------------------------------------


def _every(
    kinds: Sequence[tuple[str, Callable[[str, Layout], list[Made]]]], dtype: str, layout: Layout
) -> list[Made]:
    """What every kind of object makes that can; if none can, why not."""
    made, reasons = [], []
    for kind, make in kinds:
        try:
            made += make(dtype, layout)
        except CannotMake as e:
            reasons.append(f"{kind}: {e}")
    if not made:
        raise CannotMake("; ".join(reasons))
    return made


def _say_buffer(kind: str, obj: Any, layout: Layout, keep: Any = None) -> list[Made]:
    view = memoryview(obj)
    strides = tuple(s // view.itemsize for s in view.strides or ())
    made = Made(kind, obj, address_of_buffer(obj), strides, view.readonly, keep)
    return _checked(layout, made, tuple(view.shape or ()))


def _aligned(make: Callable[[int], Any]) -> Any:
    """One of many that happens to be aligned: nobody can say where Python puts an object. `make` gets a number."""
    tried = []
    for number in range(4096):
        tried.append(make(number))
        if address_of_buffer(tried[-1]) % 64 == 0:
            break
    return tried[-1]


def _array_with_room(letter: str, numbers: list[Any], room: int) -> Any:
    """An array that had `room` more elements, for which memory of another size was asked."""
    made = array.array(letter, numbers + numbers[:1] * room)
    del made[len(numbers) :]
    return made


def _octets(data: bytes, dtype: str, layout: Layout) -> bytes:
    if dtype != "uint8" or len(layout.shape) != 1 or layout.name in ("sliced", "reversed"):
        raise CannotMake("it is bytes in a row")
    return data[: layout.shape[0]]


def _bytes(dtype: str, layout: Layout) -> list[Made]:
    data = _octets(packed("uint8"), dtype, layout)
    if not layout.readonly:
        raise CannotMake("it is read-only")
    return _say_buffer("bytes", _aligned(lambda _: bytes(bytearray(data))), layout)


def _bytearray(dtype: str, layout: Layout) -> list[Made]:
    data = _octets(packed("uint8"), dtype, layout)
    return _say_buffer("bytearray", _aligned(lambda _: bytearray(data)), layout)


def _array_array(dtype: str, layout: Layout) -> list[Made]:
    letter = FORMATS[dtype]
    if len(layout.shape) != 1:
        raise CannotMake("it has one axis")
    if dtype == "bool" or not letter or letter not in array.typecodes:
        raise CannotMake("it has no such letter")
    if layout.name in ("sliced", "reversed"):
        raise CannotMake("its slices are copies")
    numbers = values(dtype)[: layout.shape[0]]
    return _say_buffer("array.array", _aligned(lambda n: _array_with_room(letter, numbers, n % 15)), layout)


def _mmap(dtype: str, layout: Layout) -> list[Made]:
    data = _octets(packed("uint8"), dtype, layout)
    if not data:
        raise CannotMake("it is never empty")
    return _say_buffer("mmap", _map_of(data, layout.readonly), layout)


def _map_of(data: bytes, readonly: bool) -> mmap.mmap:
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return mmap.mmap(file.fileno(), len(data), access=mmap.ACCESS_READ if readonly else mmap.ACCESS_WRITE)


def _memoryview(dtype: str, layout: Layout) -> list[Made]:
    memory = Memory(dtype)
    if len(FORMATS[dtype]) != 1:
        raise CannotMake("it has no such format")
    if layout.name in ("transposed", "broadcast"):
        raise CannotMake("its axes stay as they are")

    def make() -> memoryview:
        flat = memory.view().cast(FORMATS[dtype])  # type: ignore[call-overload]
        if layout.name in ("0-d", "3-d"):
            size = itemsize(dtype) * (1 if layout.name == "0-d" else COUNT)
            return memory.view()[:size].cast(FORMATS[dtype], layout.shape)  # type: ignore[call-overload, no-any-return]
        return _arrange(flat, layout, None)  # type: ignore[no-any-return]

    view = _or_cannot(make)
    return _say_buffer("memoryview", view.toreadonly() if layout.readonly else view, layout, keep=memory)


_CTYPES = {
    "bool": "c_bool", **{n: f"c_{n}" for n in FORMATS if "int" in n}, "float32": "c_float", "float64": "c_double",
    "complex64": "c_float_complex", "complex128": "c_double_complex",
}  # fmt: skip


def _ctypes(dtype: str, layout: Layout) -> list[Made]:
    kind = getattr(ctypes, _CTYPES.get(dtype, ""), None)
    if kind is None:
        raise CannotMake("it has no such type")
    if layout.name in ("sliced", "reversed", "transposed", "broadcast"):
        raise CannotMake("its arrays are packed")
    if layout.readonly:
        raise CannotMake("it is writable")
    for extent in reversed(layout.shape):
        kind = kind * extent
    memory = Memory(dtype)
    return _say_buffer("ctypes", kind.from_buffer(memory.block, memory.start), layout, keep=memory)


def _pep688(dtype: str, layout: Layout) -> list[Made]:
    if sys.version_info < (3, 12):
        raise CannotMake("__buffer__ came with Python 3.12")
    (inner,) = _memoryview(dtype, layout)
    obj = _Exporter(inner.obj)
    return [Made("__buffer__", obj, inner.address, inner.strides, inner.readonly, keep=inner)]


class _Exporter:
    """A class whose buffer is written in Python."""

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __buffer__(self, flags: int, /) -> memoryview:
        return self.view


_STANDARD = [
    ("bytes", _bytes), ("bytearray", _bytearray), ("array.array", _array_array), ("mmap", _mmap),
    ("memoryview", _memoryview), ("ctypes", _ctypes), ("__buffer__", _pep688),
]  # fmt: skip


def _make_python(dtype: str, layout: Layout) -> list[Made]:
    return _every(_STANDARD, dtype, layout)


# --- the array interface ------------------------------------------------------------------------------

_LETTERS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


class _Interface3:
    """An object that has `__array_interface__` and nothing else."""

    def __init__(self, fields: dict[str, Any], memory: Memory) -> None:
        self.__array_interface__ = {**fields, "version": 3}
        self.memory = memory


class _Interface2:
    """An object that has the attributes that came before `__array_interface__`."""

    def __init__(self, fields: dict[str, Any], memory: Memory) -> None:
        self.fields, self.memory = fields, memory

    __array_typestr__ = property(lambda self: self.fields["typestr"])
    __array_shape__ = property(lambda self: self.fields["shape"])
    __array_strides__ = property(lambda self: self.fields["strides"])
    __array_data__ = property(lambda self: self.fields["data"])


def _make_interface(kind: Callable[[dict[str, Any], Memory], Any], dtype: str, layout: Layout) -> list[Made]:
    letter = _LETTERS.get(dtype.rstrip("0123456789"))
    if letter is None:
        raise CannotMake("its type strings have no letter for it")
    size = itemsize(dtype)
    memory = Memory(dtype)
    order = "|" if size == 1 else "<" if sys.byteorder == "little" else ">"
    first = memory.address + layout.offset * size
    fields = {
        "typestr": f"{order}{letter}{size}",
        "shape": layout.shape,
        "strides": tuple(s * size for s in layout.strides),
        "data": (first, layout.readonly),
    }
    return [Made(kind.__name__, kind(fields, memory), first, layout.strides, layout.readonly)]


PRODUCERS = {
    p.name: p
    for p in (
        Producer("numpy", "numpy", "numpy ml_dtypes", _make_numpy),
        Producer("torch", "torch", "torch", _make_torch),
        Producer("jax", "jax", "jax", _make_jax),
        Producer("tensorflow", "tensorflow", "tensorflow", _make_tensorflow),
        Producer("paddle", "paddle", "paddlepaddle", _make_paddle),
        Producer("pyarrow", "pyarrow", "pyarrow numpy", _make_pyarrow),
        Producer("tvm_ffi", "tvm_ffi", "apache-tvm-ffi", _make_tvm_ffi),
        Producer("array_api_strict", "array_api_strict", "array-api-strict", _make_strict),
        Producer("pandas", "pandas", "pandas", _make_pandas),
        Producer("polars", "polars", "polars", _make_polars),
        Producer("python", None, "", _make_python),
        Producer("interface3", None, "", lambda dtype, layout: _make_interface(_Interface3, dtype, layout)),
        Producer("interface2", None, "", lambda dtype, layout: _make_interface(_Interface2, dtype, layout)),
    )
}
