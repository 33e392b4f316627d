# tests/python/bound_table.py: what the functions of native/bound_functions.hpp take and refuse, however they are bound: one row each.
from __future__ import annotations

import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fakes
from fake_buffer import Buffer
from producers import CPU, CUDA, CUDA_HOST, READ_ONLY, ROCM, Ancient, Cached, Producer, exchange_class, raising
from real_support import has

import tenon

np: Any = None
if has("numpy"):
    import numpy as np

FLOAT64 = (2, 64, 1)


class Call:
    """The arguments of a call."""

    def __init__(self, *args: Any, **keywords: Any):
        self.args, self.keywords = args, keywords


@dataclass(frozen=True)
class Row:
    """One call of one function, and what must come of it."""

    name: str
    function: str
    arguments: Callable[[], Call]
    result: Any = None  # a value, or a check that is given the call and the result
    message: str = ""
    exception: type[BaseException] | None = None
    cause: BaseException | None = None
    needs: tuple[str, ...] = ("numpy",)


ROWS: list[Row] = []


def takes(name: str, function: str, arguments: Callable[[], Call], result: Any, *needs: str) -> None:
    ROWS.append(Row(name, function, arguments, result, needs=needs or ("numpy",)))


def refuses(name: str, function: str, arguments: Callable[[], Call], message: str, *needs: str,
            exception: type[BaseException] = TypeError, cause: BaseException | None = None) -> None:
    """The message without the function's name, unless it is another exception than TypeError, or the body's own."""
    said = f"{function}(): {message}" if exception is TypeError and not message.startswith("tenon: ") else message
    ROWS.append(Row(name, function, arguments, None, said, exception, cause, needs or ("numpy",)))


#: of what is written to
KEEP = ", and keep that: it is written to"

# --- what the rows are made of ---------------------------------------------------------------------------------------


def f4(*shape: int) -> Any:
    return np.arange(int(np.prod(shape)), dtype="f4").reshape(shape)


def f8(*shape: int) -> Any:
    return np.arange(int(np.prod(shape)), dtype="f8").reshape(shape)


def read_only(a: Any) -> Any:
    a.setflags(write=False)
    return a


def at_offset(bytes_past: int, dtype: str, count: int) -> Any:
    """An array so many bytes past a multiple of 64."""
    memory = np.zeros(256, "u1")
    start = -memory.ctypes.data % 64 + bytes_past
    return memory[start:start + count * np.dtype(dtype).itemsize].view(dtype)


def torch() -> Any:
    import torch

    return torch


def jax_ones(shape: Any, dtype: str = "float32") -> Any:
    """On the CPU, also where JAX would take a GPU."""
    import jax

    return jax.device_put(jax.numpy.ones(shape, dtype), jax.devices("cpu")[0])


class Subclassed:
    """Made when NumPy is there."""

    @staticmethod
    def of(a: Any) -> Any:
        return a.view(type("Subclass", (np.ndarray,), {}))


GOT3 = "got float32[3] with strides (1,), writable, on cpu (numpy.ndarray)"
FAKE6 = "got float32[6] with strides (1,), writable, on"


# --- element types ---------------------------------------------------------------------------------------------------

takes("a vector", "total", lambda: Call(f8(4)), 6.0)
takes("a vector by its name", "total", lambda: Call(x=f8(4)), 6.0)
takes("a vector with steps", "total", lambda: Call(f8(5)[::2]), 6.0)
takes("a vector backwards", "total", lambda: Call(f8(4)[::-1]), 6.0)
takes("an empty vector", "total", lambda: Call(f8(0)), 0.0)
takes("read-only memory for reading", "total", lambda: Call(read_only(f8(4))), 6.0)
takes("a memoryview", "total", lambda: Call(memoryview(array.array("d", [1, 2]))), 3.0, "tenon")
takes("an array.array", "total", lambda: Call(array.array("d", [1, 2])), 3.0, "tenon")
takes("a masked array without a mask", "total", lambda: Call(np.ma.array([1.0])), 1.0)
takes("a matrix", "total_2d", lambda: Call(f4(2, 3)), 15.0)
takes("a transposed matrix", "total_2d", lambda: Call(f4(2, 3).T), 15.0)
refuses("float32 for float64", "total", lambda: Call(f4(3)),
        f"argument 'x' has the wrong dtype: expected float64[*], {GOT3}; try x.astype('float64')")
refuses("bytes for float64", "total", lambda: Call(b"abcdefgh"),
        "argument 'x' has the wrong dtype: expected float64[*], got uint8[8] with strides (1,), read-only, on cpu "
        "(bytes); convert it to float64", "tenon")
refuses("objects", "total", lambda: Call(np.array([1, "a"], object)),
        "argument 'x' was refused: expected float64[*], got numpy.ndarray: tenon: 'numpy.ndarray' object: dtype: the "
        "elements are Python objects; convert it first (a.astype('float64'))",
        cause=BufferError("tenon: 'numpy.ndarray' object: dtype: the elements are Python objects; convert it first "
                          "(a.astype('float64'))"))
for dtype, good in {"int8": "i1", "uint16": "u2", "int64": "i8", "complex64": "c8", "complex128": "c16"}.items():
    takes(f"{dtype}", f"length_{dtype}", lambda good=good: Call(np.ones(3, good)), 3)
    refuses(f"float32 for {dtype}", f"length_{dtype}", lambda: Call(f4(3)),
            f"argument 'x' has the wrong dtype: expected {dtype}[*], {GOT3}; try x.astype('{dtype}')")
takes("truth values", "count_true", lambda: Call(np.array([True, False, True])), 2)
takes("bytes that are true", "count_true", lambda: Call(np.array([2, 0, 255], "u1").view("?")), 2)
refuses("bytes for truth values", "count_true", lambda: Call(np.ones(3, "u1")),
        "argument 'x' has the wrong dtype: expected bool[*], got uint8[3] with strides (1,), writable, on cpu "
        "(numpy.ndarray); try x.astype('bool')")
takes("any dtype: float32", "total_any", lambda: Call(f4(2, 2)), 6.0)
takes("any dtype: int32", "total_any", lambda: Call(np.arange(4, dtype="i4")), 6.0)
refuses("none that is dispatched on", "total_any", lambda: Call(np.ones(3, "u1")),
        "dtype: this function takes float32, float64 or int32, got uint8", exception=ValueError)

# --- rank and shape --------------------------------------------------------------------------------------------------

refuses("two axes for one", "total", lambda: Call(f8(3, 2)),
        "argument 'x' has the wrong number of axes: expected float64[*], got float64[3, 2] with strides (2, 1), "
        "writable, on cpu (numpy.ndarray); reshape it")
takes("rows of three", "threes", lambda: Call(f4(5, 3)), 5)
takes("no rows of three", "threes", lambda: Call(f4(0, 3)), 0)
refuses("rows of four", "threes", lambda: Call(f4(5, 4)),
        "argument 'x' has the wrong extent on axis 1: expected float32[*, 3], got float32[5, 4] with strides (4, 1), "
        "writable, on cpu (numpy.ndarray); pass one of that shape")
refuses("one row", "threes", lambda: Call(f4(3)),
        f"argument 'x' has the wrong number of axes: expected float32[*, 3], {GOT3}; reshape it")
takes("an exact shape", "exactly", lambda: Call(f4(2, 3)), 5.0)
refuses("another than an exact shape", "exactly", lambda: Call(f4(3, 3)),
        "argument 'x' has the wrong extent on axis 0: expected float32[2, 3], got float32[3, 3] with strides (3, 1), "
        "writable, on cpu (numpy.ndarray); pass one of that shape")
takes("no axes", "scalar", lambda: Call(np.array(2.5)), 2.5)
takes("a scalar of NumPy's", "scalar", lambda: Call(np.float64(2.5)), 2.5)
refuses("one axis for none", "scalar", lambda: Call(f8(1)),
        "argument 'x' has the wrong number of axes: expected float64[], got float64[1] with strides (1,), writable, on "
        "cpu (numpy.ndarray); reshape it")

# --- order and alignment ---------------------------------------------------------------------------------------------

takes("row-major", "last_c", lambda: Call(f4(2, 3)), 5.0)
refuses("column-major for row-major", "last_c", lambda: Call(f4(3, 2).T),
        "argument 'x' has the wrong memory order: expected C-contiguous float32[*, *], got float32[2, 3] with strides "
        "(1, 2), writable, on cpu (numpy.ndarray); try numpy.ascontiguousarray(x)")
takes("column-major", "last_f", lambda: Call(f4(3, 2).T), 5.0)
refuses("row-major for column-major", "last_f", lambda: Call(f4(2, 3)),
        "argument 'x' has the wrong memory order: expected F-contiguous float32[*, *], got float32[2, 3] with strides "
        "(3, 1), writable, on cpu (numpy.ndarray); try numpy.asfortranarray(x)")
takes("either order: row-major", "last_in_memory", lambda: Call(f4(2, 3)), 5.0)
takes("either order: column-major", "last_in_memory", lambda: Call(f4(2, 3).T), 5.0)
refuses("neither order", "last_in_memory", lambda: Call(f4(2, 3)[:, ::2]),
        "argument 'x' has the wrong memory order: expected contiguous float32[*, *], got float32[2, 2] with strides "
        "(3, 2), writable, on cpu (numpy.ndarray); try numpy.ascontiguousarray(x)")
takes("aligned to 64 bytes", "length_aligned", lambda: Call(at_offset(0, "f4", 5)), 5)
refuses("aligned to 4 bytes", "length_aligned", lambda: Call(at_offset(4, "f4", 5)),
        "argument 'x' is not aligned: expected float32[*], aligned to 64 bytes, got float32[5] with strides (1,), "
        "writable, on cpu (numpy.ndarray) at 4 bytes past a multiple of 64; try tenon.asdlpack(x, copy=True)")
refuses("not aligned for its type", "total", lambda: Call(at_offset(1, "f8", 2)),
        "argument 'x' is not aligned: expected float64[*], got float64[2] with strides (1,), writable, on cpu "
        "(numpy.ndarray) at 1 bytes past a multiple of 8; try tenon.asdlpack(x, copy=True)")

# --- writability -----------------------------------------------------------------------------------------------------

takes("filled", "fill", lambda: Call(f4(3), 2.0), lambda call, _: list(call.args[0]) == [2.0] * 3)
takes("filled with steps", "fill", lambda: Call(f4(6)[::2], 9.0), lambda call, _: list(call.args[0].base) == [9, 1, 9, 3, 9, 5])
takes("rows filled", "fill_2d", lambda: Call(f4(2, 3).T, 2.0), lambda call, _: (call.args[0] == 2.0).all())
refuses("read-only", "fill", lambda: Call(read_only(f4(3)), 2.0),
        "argument 'x' is read-only: expected writable float32[*], got float32[3] with strides (1,), read-only, on cpu "
        f"(numpy.ndarray); try x.copy(){KEEP}")
refuses("a broadcast array", "fill_2d", lambda: Call(np.broadcast_to(f4(3), (2, 3)), 1.0),
        "argument 'x' is read-only: expected writable float32[*, *], got float32[2, 3] with strides (0, 1), read-only, "
        f"on cpu (numpy.ndarray); try x.copy(){KEEP}")
refuses("elements that share memory", "fill_2d",
        lambda: Call(np.lib.stride_tricks.as_strided(f4(8), (2, 3), (4, 4)), 1.0),
        "argument 'x' has elements that share memory: expected writable float32[*, *], got float32[2, 3] with strides "
        f"(1, 1), writable, on cpu (numpy.ndarray); try x.copy(){KEEP}")
refuses("a read-only buffer", "fill", lambda: Call(memoryview(array.array("f", [1, 2])).toreadonly(), 1.0),
        "argument 'x' is read-only: expected writable float32[*], got float32[2] with strides (1,), read-only, on cpu "
        f"(memoryview); pass a writable copy{KEEP}", "tenon")
refuses("read-only by its flags", "fill", lambda: Call(Producer(shape=(6,), flags=READ_ONLY), 1.0),
        "argument 'x' is read-only: expected writable float32[*], got float32[6] with strides (1,), read-only, on cpu "
        f"(producers.Producer); pass a writable copy{KEEP}", "tenon")

# --- devices ---------------------------------------------------------------------------------------------------------


def is_seen(device: str, stream: int = 0, shape: tuple[int, ...] = (6,), strides: tuple[int, ...] = (1,)) -> Any:
    def check(call: Call, result: Any) -> bool:
        return result == ("float32", list(shape), list(strides), device, call.args[0].struct.address, stream)

    return check


takes("on the CPU", "on_cpu", lambda: Call(Producer(shape=(6,))), is_seen("cpu"), "tenon")
takes("on CUDA", "on_cuda", lambda: Call(Producer(shape=(6,), device=CUDA)), is_seen("cuda:0", 1), "tenon")
takes("on the second of CUDA", "on_cuda", lambda: Call(Producer(shape=(6,), device=(2, 1))), is_seen("cuda:1", 1), "tenon")
takes("on CUDA, by its table", "on_cuda", lambda: Call(exchange_class()(shape=(6,), device=CUDA)), is_seen("cuda:0", 1), "tenon")
takes("on ROCm", "on_rocm", lambda: Call(Producer(shape=(6,), device=ROCM)), is_seen("rocm:0"), "tenon")
for device, kind, stream in ((CPU, "cpu", 0), (CUDA, "cuda:0", 1), (CUDA_HOST, "cuda_host:0", 1), (ROCM, "rocm:0", 0)):
    takes(f"anywhere: {kind}", "anywhere", lambda device=device: Call(Producer(device=device)),
          is_seen(kind, stream, (2, 3), (3, 1)), "tenon")
takes("pinned memory is host memory", "total_2d", lambda: Call(Producer(device=CUDA_HOST)), 15.0, "tenon")
refuses("on CUDA for host memory", "total_2d", lambda: Call(Producer(device=CUDA)),
        "argument 'x' is on the wrong device: expected float32[*, *] in host memory, got float32[2, 3] with strides "
        "(3, 1), writable, on cuda:0 (producers.Producer); move it to the CPU", "tenon")
refuses("on CUDA for the CPU", "on_cpu", lambda: Call(Producer(shape=(6,), device=CUDA)),
        f"argument 'x' is on the wrong device: expected float32[*] on cpu, {FAKE6} cuda:0 (producers.Producer); move it "
        "to the CPU", "tenon")
refuses("pinned memory for the CPU", "on_cpu", lambda: Call(Producer(shape=(6,), device=CUDA_HOST)),
        f"argument 'x' is on the wrong device: expected float32[*] on cpu, {FAKE6} cuda_host:0 (producers.Producer); "
        "move it to the CPU", "tenon")
refuses("on the CPU for CUDA", "on_cuda", lambda: Call(f4(3)),
        f"argument 'x' is on the wrong device: expected float32[*] on cuda, {GOT3}; try cupy.asarray(x)")
for device, kind in (((18, 0), "trn"), ((21, 2), "ascend")):
    takes(f"on {kind}", f"on_{kind}", lambda device=device: Call(Producer(shape=(6,), device=device)),
          is_seen(f"{kind}:{device[1]}"), "tenon")
takes("on Metal, by its handle", "on_metal", lambda: Call(Producer(shape=(6,), device=(8, 0), byte_offset=8)),
      ("float32", "metal:0", 8), "tenon")
refuses("on the CPU for a Trainium", "on_trn", lambda: Call(f4(3)),
        f"argument 'x' is on the wrong device: expected float32[*] on trn, {GOT3}; move it to that device")
for device, kind in ((CUDA_HOST, "cuda_host"), ((13, 0), "cuda_managed"), ((11, 0), "rocm_host")):
    takes(f"read by the host: {kind}", f"total_{kind}", lambda device=device: Call(Producer(device=device)), 15.0, "tenon")
    refuses(f"on the CPU for {kind}", f"total_{kind}", lambda: Call(f4(2, 3)),
            f"argument 'x' is on the wrong device: expected float32[*, *] on {kind}, got float32[2, 3] with strides "
            "(3, 1), writable, on cpu (numpy.ndarray); move it to that device")
refuses("on CUDA for ROCm", "on_rocm", lambda: Call(Producer(shape=(6,), device=CUDA)),
        f"argument 'x' is on the wrong device: expected writable float32[*] on rocm, {FAKE6} cuda:0 "
        f"(producers.Producer); move it to that device{KEEP}", "tenon")

# --- what is no array ------------------------------------------------------------------------------------------------

refuses("None", "total", lambda: Call(None), "argument 'x' is None: expected float64[*]; pass an array", "tenon")
for thing, kind in (([1.0], "list"), ("abc", "str"), (1.0, "float"), ({}, "dict"), (object(), "object")):
    refuses(f"no array: {kind}", "total", lambda thing=thing: Call(thing),
            f"argument 'x' is not an array: expected float64[*], got {kind}; try numpy.asarray(x, 'float64')", "tenon")
refuses("no array, of any dtype", "anywhere", lambda: Call([1]),
        "argument 'x' is not an array: expected any[...] on any device, got list; try numpy.asarray(x)", "tenon")
refuses("a class", "total", lambda: Call(Producer),
        "argument 'x' was refused: expected float64[*], got type: tenon: cannot take a tensor from the class 'Producer'; "
        "pass an instance of it", "tenon",
        cause=TypeError("tenon: cannot take a tensor from the class 'Producer'; pass an instance of it"))

# --- producers -------------------------------------------------------------------------------------------------------


def used_capsule() -> Any:
    capsule = fakes.Struct(shape=(6,)).capsule()
    import tenon

    tenon.asdlpack(capsule)
    return capsule


USED = ("tenon: cannot take a tensor from 'PyCapsule' object. Tried:\n  DLPack capsule: capsule: it has been consumed "
        "already; a capsule can be imported once; ask the producer for a new one")

takes("a producer of 2021", "total_2d", lambda: Call(Ancient()), 15.0, "tenon")
takes("a buffer", "total_2d", lambda: Call(Buffer(shape=(2, 3), data=array.array("f", range(6)).tobytes())), 15.0, "tenon")
takes("a capsule", "total_2d", lambda: Call(fakes.Struct(shape=(2, 3)).capsule()), 15.0, "tenon")
takes("a capsule to keep", "kept_dtype", lambda: Call(fakes.Struct(shape=(2, 3)).capsule()), "float32", "tenon")
takes("a capsule in a list", "total_of", lambda: Call([fakes.Struct(shape=(0,), dtype=FLOAT64).capsule()]), 0.0, "tenon")
refuses("a capsule of another dtype", "total", lambda: Call(fakes.Struct(shape=(6,)).capsule()),
        f"argument 'x' has the wrong dtype: expected float64[*], {FAKE6} cpu (PyCapsule); convert it to float64", "tenon")
refuses("a capsule of another dtype in a list", "total_of", lambda: Call([fakes.Struct(shape=(6,)).capsule()]),
        f"argument 'xs', item 0, has the wrong dtype: expected float64[*], {FAKE6} cpu (PyCapsule); convert it to "
        "float64", "tenon")
refuses("a used capsule", "total", lambda: Call(used_capsule()),
        f"argument 'x' was refused: expected float64[*], got PyCapsule: {USED}", "tenon", cause=BufferError(USED))
takes("a capsule that its producer keeps", "total_2d", lambda: Call(Cached()), 15.0, "tenon")
for kind, exception in (("ValueError", ValueError("its own words")), ("BufferError", BufferError("its own words"))):
    refuses(f"a producer that raises {kind}", "total", lambda exception=exception: Call(raising(exception)),
            "argument 'x' was refused: expected float64[*], got producers.Raises: its own words", "tenon", cause=exception)
    refuses(f"a producer in a list that raises {kind}", "total_of", lambda exception=exception: Call([raising(exception)]),
            "argument 'xs', item 0, was refused: expected float64[*], got producers.Raises: its own words", "tenon",
            cause=exception)
    refuses(f"a producer to keep that raises {kind}", "keep", lambda exception=exception: Call(raising(exception)),
            "argument 't' was refused: expected any[...] on any device, got producers.Raises: its own words", "tenon",
            cause=exception)


class RaisesOnce(Producer):
    """Only the first question ends the call: whoever asks again does not hear of it."""

    def __init__(self, exception: BaseException):
        super().__init__(shape=(6,), dtype=FLOAT64)
        self.exception: BaseException | None = exception

    def answer(self, **keywords: Any) -> Any:
        exception, self.exception = self.exception, None
        if exception is not None:
            raise exception
        return super().answer()


for over in (KeyboardInterrupt, SystemExit, MemoryError):
    for often in (raising, RaisesOnce):
        for function, wrap in {"total": lambda p: p, "maybe": lambda p: p, "either": lambda p: p, "keep": lambda p: p,
                               "total_of": lambda p: [p], "totals": lambda p: {"a": p},
                               "mixed": lambda p: (p, p)}.items():
            refuses(f"{over.__name__} from a producer that is {often.__name__}, {function}", function,
                    lambda over=over, often=often, wrap=wrap: Call(wrap(often(over("enough")))), "enough", "tenon",
                    exception=over)

# --- optional, alternative, several ----------------------------------------------------------------------------------

takes("left out", "maybe", lambda: Call(), -1, "tenon")
takes("None for an optional one", "maybe", lambda: Call(None), -1, "tenon")
takes("an optional one", "maybe", lambda: Call(f4(3)), 3)
refuses("an optional one of another dtype", "maybe", lambda: Call(f8(2)),
        "argument 'x' has the wrong dtype: expected float32[*], got float64[2] with strides (1,), writable, on cpu "
        "(numpy.ndarray); try x.astype('float32')")
takes("the first alternative", "either", lambda: Call(f4(2)), 0)
takes("the second alternative", "either", lambda: Call(f8(2)), 1)
refuses("no alternative", "either", lambda: Call(np.ones(2, "i4")),
        "argument 'x' has the wrong dtype: expected float32[*] or float64[*], got int32[2] with strides (1,), writable, "
        "on cpu (numpy.ndarray); try x.astype('float32')")
refuses("the second alternative but for its axes", "either", lambda: Call(f8(2, 2)),
        "argument 'x' has the wrong number of axes: expected float32[*] or float64[*], got float64[2, 2] with strides "
        "(2, 1), writable, on cpu (numpy.ndarray); reshape it")
refuses("None for an alternative", "either", lambda: Call(None),
        "argument 'x' is None: expected float32[*] or float64[*]; pass an array", "tenon")
takes("three arrays", "add", lambda: Call(f8(3), f8(3), np.zeros(3)), lambda call, _: list(call.args[2]) == [0, 2, 4])
takes("three arrays by their names", "add", lambda: Call(out=np.zeros(3), y=f8(3), x=f8(3)),
      lambda call, _: list(call.keywords["out"]) == [0, 2, 4])
refuses("the second of three", "add", lambda: Call(f8(3), f4(3), np.zeros(3)),
        f"argument 'y' has the wrong dtype: expected float64[*], {GOT3}; try y.astype('float64')")
refuses("the last of three, by its name", "add", lambda: Call(f8(3), y=f8(3), out=read_only(np.zeros(3))),
        "argument 'out' is read-only: expected writable float64[*], got float64[3] with strides (1,), read-only, on cpu "
        f"(numpy.ndarray); try out.copy(){KEEP}")

takes("a list", "total_of", lambda: Call([f8(3), f8(4)]), 9.0)
takes("a tuple for a list", "total_of", lambda: Call((f8(3),)), 3.0)
takes("an empty list", "total_of", lambda: Call([]), 0.0, "tenon")
takes("an array for a list of its rows", "total_of", lambda: Call(f8(2, 2)), 6.0)
refuses("a wrong item", "total_of", lambda: Call([f8(3), f4(3)]),
        f"argument 'xs', item 1, has the wrong dtype: expected float64[*], {GOT3}; try xs[1].astype('float64')")
refuses("None in a list", "total_of", lambda: Call([f8(3), None]),
        "argument 'xs', item 1, is None: expected float64[*]; pass an array")
for thing, kind in ((3, "int"), ("ab", "str"), (None, "NoneType"), ({}, "dict")):
    refuses(f"no list: {kind}", "total_of", lambda thing=thing: Call(thing),
            f"argument 'xs' is not a list of arrays: expected each to be float64[*], got {kind}", "tenon")
takes("a dict", "totals", lambda: Call({"a": f8(3), "b": f8(4)}), {"a": 3.0, "b": 6.0})
refuses("a wrong value", "totals", lambda: Call({"a": f8(3), "b": f4(3)}),
        f"argument 'xs', item 'b', has the wrong dtype: expected float64[*], {GOT3}; try xs['b'].astype('float64')")
refuses("a key that is no text", "totals", lambda: Call({1: f8(3)}),
        "argument 'xs' has a key that is no text: got int")
refuses("a list for a dict", "totals", lambda: Call([f8(3)]),
        "argument 'xs' is not a dict of arrays: expected each to be float64[*], got list")
takes("a tuple", "mixed", lambda: Call((f4(2) + 1, f8(2) + 2)), 3.0)
takes("a list for a tuple", "mixed", lambda: Call([f4(2) + 1, f8(2) + 2]), 3.0)
refuses("a tuple the wrong way round", "mixed", lambda: Call((f8(2), f4(2))),
        "argument 'xs', item 0, has the wrong dtype: expected float32[*], got float64[2] with strides (1,), writable, on "
        "cpu (numpy.ndarray); try xs[0].astype('float32')")
refuses("a tuple with too few items", "mixed", lambda: Call((f4(2),)),
        "argument 'xs' has the wrong length: expected 2 items, got 1")
refuses("a tuple with too many items", "mixed", lambda: Call((f4(2), f8(2), None)),
        "argument 'xs' has the wrong length: expected 2 items, got 3")
refuses("a number in a tuple", "mixed", lambda: Call((f4(2), 3)),
        "argument 'xs', item 1, is not an array: expected float64[*], got int; try numpy.asarray(xs[1], 'float64')")

# --- arguments -------------------------------------------------------------------------------------------------------

refuses("too few arguments", "add", lambda: Call(f8(3), f8(3)), "argument 'out' is missing")
refuses("no arguments", "total", lambda: Call(), "argument 'x' is missing", "tenon")
refuses("too many arguments for one", "total", lambda: Call(f8(3), 1), "takes 1 positional argument, got 2")
refuses("too many arguments for three", "add", lambda: Call(f8(3), f8(3), f8(3), 1, 2),
        "takes 3 positional arguments, got 5")
refuses("an unknown name", "total", lambda: Call(y=f8(3)), "has no argument 'y'")
refuses("a name that goes on behind a NUL", "total", lambda: Call(**{"x\0y": f8(3)}), "has no argument 'x\\0y'")
refuses("two values for one", "total", lambda: Call(f8(3), x=f8(3)), "got two values for argument 'x'")
takes("a default", "scale", lambda: Call(f4(3)), lambda _, result: list(result) == [0, 2, 4])
takes("another than the default", "scale", lambda: Call(f4(3), 3.0), lambda _, result: list(result) == [0, 3, 6])
takes("another by its name", "scale", lambda: Call(f4(3), s=3), lambda _, result: list(result) == [0, 3, 6])

# --- one of several element types ------------------------------------------------------------------------------------


def is_like(dtype: str, *values: float) -> Any:
    return lambda _, result: type(result) is np.ndarray and result.dtype == dtype and result.tolist() == list(values)


for dtype in ("f4", "f8"):
    takes(f"one of two: {dtype}", "total_either", lambda dtype=dtype: Call(np.arange(4, dtype=dtype)), 6.0)
    takes(f"two of one: {dtype}", "dot_either",
          lambda dtype=dtype: Call(np.ones(3, dtype), np.full(3, 2, dtype)), 6.0)
    takes(f"memory of one of two: {dtype}", "empty_either", lambda dtype=dtype: Call(np.ones(3, dtype)),
          lambda call, result: result.dtype == call.args[0].dtype and result.shape == (3,))
    takes(f"one of two in the second alternative: {dtype}", "either_or_int",
          lambda dtype=dtype: Call(np.ones(2, dtype)), 0)
for dtype in ("f4", "f8", "i4"):
    takes(f"a result of its type: {dtype}", "twice", lambda dtype=dtype: Call(np.arange(3, dtype=dtype)),
          is_like(dtype, 0, 2, 4))
takes("one of two as a result", "halves", lambda: Call(f4(3)), is_like("f4", 0.0, 0.5, 1.0))
takes("the other one as a result", "halves", lambda: Call(np.arange(3, dtype="i4")), is_like("f8", 0.0, 0.5, 1.0))
takes("one of two on CUDA", "device_of_either", lambda: Call(Producer(shape=(6,), dtype=FLOAT64, device=CUDA)),
      "float64 on cuda:0", "tenon")
takes("one of two in a list", "total_of_either", lambda: Call([f4(3), f8(3)]), 6.0)
takes("one of two to be written to", "fill_either", lambda: Call(np.zeros(2, "i4"), 2.0),
      lambda call, _: call.args[0].tolist() == [2, 2])
takes("every pair of them", "add_either", lambda: Call(f8(3), np.ones(3, "i4"), np.zeros(3)),
      lambda call, _: call.args[2].tolist() == [1, 2, 3])
refuses("none of two", "total_either", lambda: Call(np.ones(2, "i4")),
        "argument 'x' has the wrong dtype: expected float32|float64[*], got int32[2] with strides (1,), writable, on cpu "
        "(numpy.ndarray); try x.astype('float64')")
refuses("none of two, which one can hold", "total_either", lambda: Call(np.ones(2, "i1")),
        "argument 'x' has the wrong dtype: expected float32|float64[*], got int8[2] with strides (1,), writable, on cpu "
        "(numpy.ndarray); try x.astype('float32')")
refuses("none of two: complex", "total_either", lambda: Call(np.ones(2, "c8")),
        "argument 'x' has the wrong dtype: expected float32|float64[*], got complex64[2] with strides (1,), writable, on "
        "cpu (numpy.ndarray); try x.real")
refuses("none of two: complex, of the second one's", "total_either", lambda: Call(np.ones(2, "c16")),
        "argument 'x' has the wrong dtype: expected float32|float64[*], got complex128[2] with strides (1,), writable, on "
        "cpu (numpy.ndarray); try x.real")
refuses("no array for one of two", "total_either", lambda: Call([1]),
        "argument 'x' is not an array: expected float32|float64[*], got list; try numpy.asarray(x, 'float32')", "tenon")
refuses("None for one of two", "total_either", lambda: Call(None),
        "argument 'x' is None: expected float32|float64[*]; pass an array", "tenon")
refuses("one of two, with too many axes", "total_either", lambda: Call(f8(2, 2)),
        "argument 'x' has the wrong number of axes: expected float32|float64[*], got float64[2, 2] with strides (2, 1), "
        "writable, on cpu (numpy.ndarray); reshape it")
refuses("one of two, not aligned", "total_either", lambda: Call(at_offset(4, "f8", 2)),
        "argument 'x' is not aligned: expected float32|float64[*], got float64[2] with strides (1,), writable, on cpu "
        "(numpy.ndarray) at 4 bytes past a multiple of 8; try tenon.asdlpack(x, copy=True)")
takes("one of two, aligned for the smaller one", "total_either", lambda: Call(at_offset(4, "f4", 2)), 0.0)
refuses("one of two, read-only", "fill_either", lambda: Call(read_only(f4(3)), 2.0),
        "argument 'x' is read-only: expected writable float32|int32[*], got float32[3] with strides (1,), read-only, on "
        f"cpu (numpy.ndarray); try x.copy(){KEEP}")
refuses("no alternative of a set and another", "either_or_int", lambda: Call(np.ones(2, "i8")),
        "argument 'x' has the wrong dtype: expected float32|float64[*] or int32[*], got int64[2] with strides (1,), "
        "writable, on cpu (numpy.ndarray); try x.astype('float64')")
refuses("two of two, where they must be of one", "dot_either", lambda: Call(f4(3), f8(3)),
        "tenon: dtype: this function does not take such element types together, got float32, float64")
refuses("what the function itself does not take", "length_of_float", lambda: Call(np.ones(3, "i4")),
        "argument 'x' has the wrong dtype: this function takes float32 or float64, got int32 (numpy.ndarray)")
takes("what the function itself takes", "length_of_float", lambda: Call(f8(3)), 3)
for given, made in {"f4": "float32", "f8": "float64", "i1": "float32", "i4": "float64", "f2": "float32"}.items():
    takes(f"the first that holds it: {given}", "converted_either", lambda given=given: Call(np.ones(2, given)), made)
for given, made in {"i1": "float32", "i4": "float32", "f8": "float32"}.items():
    takes(f"the first that holds it, or narrower: {given}", "narrowed_either",
          lambda given=given: Call(np.ones(2, given)), made)
takes("itself before others", "narrowed_either", lambda: Call(np.ones(2, "i2")), "int16")
refuses("none that holds it", "converted_either", lambda: Call(np.ones(2, "c8")),
        "argument 'x' has the wrong dtype: expected float32|float64[*], or convertible, got complex64[2] with strides "
        "(1,), writable, on cpu (numpy.ndarray); try x.real")
takes("another order of the same type", "strides_either", lambda: Call(f8(3, 2).T), [3, 1, 64])
takes("another order and type of two", "strides_either", lambda: Call(np.ones((3, 2), "i4").T), [3, 1, 64])

# --- extents with names ----------------------------------------------------------------------------------------------


def matrix(*shape: int) -> str:
    """What came, a row-major array of float64 of NumPy's."""
    strides = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    return f"got float64{list(shape)} with strides ({', '.join(map(str, strides))}{',' * (len(shape) == 1)}), writable, on cpu (numpy.ndarray)"


def does_not_agree(name: str, function: str, arguments: Callable[[], Call], said: str, *needs: str) -> None:
    refuses(name, function, arguments, f"argument {said}; pass one of that shape", *needs)


if np is not None:
    takes("equal lengths", "dot", lambda: Call(f8(3), f8(3)), 5.0)
    takes("equal lengths of zero", "dot", lambda: Call(f8(0), f8(0)), 0.0)
    takes("equal lengths, one with steps", "dot", lambda: Call(f8(3), f8(6)[::2]), 10.0)
    does_not_agree("another length", "dot", lambda: Call(f8(3), f8(4)),
                   "'y' has the wrong extent on axis 0: expected float64[n] (n = 3, as argument 'x' has on axis 0), "
                   + matrix(4))
    does_not_agree("another length, by their names", "dot", lambda: Call(y=f8(1), x=f8(0)),
                   "'y' has the wrong extent on axis 0: expected float64[n] (n = 0, as argument 'x' has on axis 0), "
                   + matrix(1))
    refuses("the rank before the length", "dot", lambda: Call(f8(3), f8(3, 3)),
            f"argument 'y' has the wrong number of axes: expected float64[n], {matrix(3, 3)}; reshape it")
    takes("equal lengths, converted", "dot_converted", lambda: Call(f4(3), np.arange(3, dtype="i4")), 5.0)
    does_not_agree("another length, converted", "dot_converted", lambda: Call(f4(3), np.arange(2, dtype="f8")),
                   "'y' has the wrong extent on axis 0: expected float64[n], or convertible (n = 3, as argument 'x' has "
                   "on axis 0), " + matrix(2))
    does_not_agree("another length than what was converted", "dot_converted", lambda: Call(f8(3), f4(2)),
                   "'y' has the wrong extent on axis 0: expected float64[n], or convertible (n = 3, as argument 'x' has "
                   "on axis 0), got float64[2] with strides (1,), writable, on cpu (numpy.ndarray)")
    takes("a product", "matmul", lambda: Call(f8(2, 3), f8(3, 1)), lambda _, result: result.tolist() == [[5], [14]])
    takes("a product into an array", "matmul", lambda: Call(f8(2, 3), f8(3, 1), np.ones((2, 1))),
          lambda call, result: result is call.args[2] and result.tolist() == [[5], [14]])
    takes("a product of views", "matmul", lambda: Call(f8(3, 2).T, f8(1, 3).T), lambda _, result: result.tolist() == [[10], [13]])
    does_not_agree("no product", "matmul", lambda: Call(f8(2, 3), f8(2, 1)),
                   "'b' has the wrong extent on axis 0: expected float64[k, m] (k = 3, as argument 'a' has on axis 1), "
                   + matrix(2, 1))
    does_not_agree("a product into an array of other rows", "matmul", lambda: Call(f8(2, 3), f8(3, 1), np.ones((3, 1))),
                   "'out' has the wrong extent on axis 0: expected writable float64[n, m] (n = 2, as argument 'a' has on "
                   "axis 0), " + matrix(3, 1))
    does_not_agree("a product into an array of other columns", "matmul", lambda: Call(f8(2, 3), f8(3, 1), out=np.ones((2, 2))),
                   "'out' has the wrong extent on axis 1: expected writable float64[n, m] (m = 1, as argument 'b' has on "
                   "axis 1), " + matrix(2, 2))
    takes("a square", "trace", lambda: Call(f8(2, 2)), 3.0)
    takes("a square of nothing", "trace", lambda: Call(f8(0, 0)), 0.0)
    does_not_agree("no square", "trace", lambda: Call(f8(2, 3)),
                   "'x' has the wrong extent on axis 1: expected float64[n, n] (n = 2, as it has on axis 0), " + matrix(2, 3))
    takes("as many rows", "rows_of", lambda: Call(f8(2, 3), f8(2)), 3)
    takes("as many rows, the first alternative", "rows_of", lambda: Call(f8(2, 3), f4(2)), 2)
    does_not_agree("rows of another number", "rows_of", lambda: Call(f8(3, 2), f8(3)),
                   "'x' has the wrong extent on axis 1: expected float64[n, 3], " + matrix(3, 2))
    does_not_agree("not as many rows", "rows_of", lambda: Call(f8(2, 3), f8(3)),
                   "'y' has the wrong extent on axis 0: expected float32[n] or float64[n] (n = 2, as argument 'x' has on "
                   "axis 0), " + matrix(3))
    takes("equal lengths of two libraries", "dot", lambda: Call(f8(3), torch().ones(3, dtype=torch().float64)), 3.0,
          "numpy", "torch")
    does_not_agree("other lengths of two libraries", "dot", lambda: Call(torch().ones(2, dtype=torch().float64), f8(3)),
                   "'y' has the wrong extent on axis 0: expected float64[n] (n = 2, as argument 'x' has on axis 0), "
                   + matrix(3), "numpy", "torch")
    does_not_agree("other lengths of two libraries, the other way round", "dot",
                   lambda: Call(f8(3), torch().ones(2, dtype=torch().float64)),
                   "'y' has the wrong extent on axis 0: expected float64[n] (n = 3, as argument 'x' has on axis 0), "
                   "got float64[2] with strides (1,), writable, on cpu (torch.Tensor)", "numpy", "torch")

def vector(size: int) -> Producer:
    return Producer(shape=(size,), dtype=FLOAT64, data=bytes(8 * size))


takes("capsules of equal length", "dot", lambda: Call(vector(2).struct.capsule(), vector(2).struct.capsule()), 0.0, "tenon")
refuses("a capsule of another length stays whose it is", "dot",
        lambda: Call(vector(2).struct.capsule(), vector(3).struct.capsule()),
        "argument 'y' has the wrong extent on axis 0: expected float64[n] (n = 2, as argument 'x' has on axis 0), got "
        "float64[3] with strides (1,), writable, on cpu (PyCapsule); pass one of that shape", "tenon")

# --- errors about one of the arguments -------------------------------------------------------------------------------

takes("the dtype of the second", "total_of_second", lambda: Call(b"ab", f8(3)), 5.0)
refuses("another dtype of the second", "total_of_second", lambda: Call(f8(3), np.ones(3, "i4")),
        "argument 'y' has the wrong dtype: this function takes float32 or float64, got int32 (numpy.ndarray)")
refuses("another dtype of the second, of bytes", "total_of_second", lambda: Call(y=b"ab", x=f8(3)),
        "argument 'y' has the wrong dtype: this function takes float32 or float64, got uint8 (bytes)")
takes("a view of the second", "first_of_second", lambda: Call(b"ab", f8(3)), 2.0)
refuses("no view of the second: its dtype", "first_of_second", lambda: Call(f8(3), f4(3)),
        "first_of_second(): argument 'y': dtype: another element type is needed (got float32, expected float64) "
        "(numpy.ndarray)", exception=BufferError)
refuses("no view of the second: its axes", "first_of_second", lambda: Call(f8(3), f8(3, 2)),
        "first_of_second(): argument 'y': ndim: another number of axes is needed (got 2, expected 1) (numpy.ndarray)",
        exception=BufferError)
refuses("an error about no argument", "first_of_none", lambda: Call(f8(3), f8(3)),
        "tenon: dtype: another element type is needed (got float32, expected float64)", exception=BufferError)

# --- conversions -----------------------------------------------------------------------------------------------------

takes("no conversion needed", "first_converted", lambda: Call(f4(3) + 1), 1.0)
takes("another dtype", "first_converted", lambda: Call(f8(3) + 1), 1.0)
takes("another dtype in a list", "total_of_converted", lambda: Call([f4(3) + 1, f8(3) + 2]), 3.0)
takes("another order", "strides_c", lambda: Call(f4(3, 2).T), [3, 1])
takes("another dtype and order", "strides_c", lambda: Call(f8(3, 2).T), [3, 1])
takes("another dtype in the right order", "strides_c", lambda: Call(f8(2, 3)), [3, 1])
takes("column-major memory", "strides_f", lambda: Call(f4(2, 3)), [1, 2])
takes("column-major memory of another dtype", "strides_f", lambda: Call(f8(2, 3)), [1, 2])
takes("either order as it is", "strides_any", lambda: Call(f4(2, 3).T), [1, 3])
takes("another dtype in either order", "strides_any", lambda: Call(f8(2, 3).T), [1, 3])
takes("neither order, converted", "strides_any", lambda: Call(f4(2, 6)[:, ::2]), [3, 1])
takes("another order of any dtype", "strides_untyped", lambda: Call(np.ones((3, 2), "u2").T), [3, 1, 16])
takes("the order it has, of any dtype", "strides_untyped", lambda: Call(np.ones((2, 3), "f8")), [3, 1, 64])
takes("column-major memory of any dtype", "strides_untyped_f", lambda: Call(np.ones((2, 3), "c8")), [1, 2, 64])
refuses("no conversion of axes, of any dtype", "strides_untyped", lambda: Call(f8(2)),
        "argument 'x' has the wrong number of axes: expected C-contiguous any[*, *], or convertible, got float64[2] with "
        "strides (1,), writable, on cpu (numpy.ndarray); reshape it")
takes("another order of PyTorch's", "strides_untyped", lambda: Call(torch().ones((3, 2), dtype=torch().bfloat16).t()),
      [3, 1, 16], "numpy", "torch")
refuses("no conversion of axes", "first_converted", lambda: Call(f8(2, 2)),
        "argument 'x' has the wrong number of axes: expected float32[*], or convertible with narrowing, got float64[2, 2] with strides "
        "(2, 1), writable, on cpu (numpy.ndarray); reshape it")
refuses("no conversion of lists", "first_converted", lambda: Call([1.0]),
        "argument 'x' is not an array: expected float32[*], or convertible with narrowing, got list; try numpy.asarray(x, 'float32')",
        "tenon")
refuses("no conversion without a library", "first_converted", lambda: Call(array.array("d", [1.0])),
        "argument 'x' has the wrong dtype: expected float32[*], or convertible with narrowing, got float64[1] with strides (1,), "
        "writable, on cpu (array.array); convert it to float32", "tenon")
refuses("no conversion of a device", "first_converted", lambda: Call(Producer(shape=(6,), dtype=FLOAT64, device=CUDA)),
        "argument 'x' is on the wrong device: expected float32[*], or convertible with narrowing, in host memory, got float64[6] with "
        "strides (1,), writable, on cuda:0 (producers.Producer); move it to the CPU", "tenon")

# --- results ---------------------------------------------------------------------------------------------------------

takes("the very same array", "same", lambda: Call(f4(3)), lambda call, result: result is call.args[0])
takes("an array of the caller's", "scale", lambda: Call(f4(3)),
      lambda _, result: type(result) is np.ndarray and result.dtype == "f4" and result.flags.writeable)
takes("an array for a subclass", "scale", lambda: Call(Subclassed.of(f4(3))),
      lambda _, result: isinstance(result, np.ndarray) and list(result) == [0, 2, 4])
takes("another dtype as a result", "widened", lambda: Call(f4(3)),
      lambda _, result: result.dtype == "f8" and list(result) == [0, 1, 2])
takes("another shape and dtype as a result", "counted", lambda: Call(f4(1), 2, 3),
      lambda _, result: result.dtype == "i4" and result.tolist() == [[0, 1, 2], [3, 4, 5]])
takes("an open dtype as a result", "zeros_like", lambda: Call(np.ones((2, 3), "u2")),
      lambda _, result: result.dtype == "u2" and result.tolist() == [[0, 0, 0]] * 2)
refuses("a shape that is none", "counted", lambda: Call(f4(1), -2, 3),
        "tenon: shape[0]: the extent is negative (got -2)", exception=ValueError)
takes("a tuple of arrays as a result", "pair_of", lambda: Call(f4(3)),
      lambda call, result: type(result) is tuple and list(result[0]) == [0, 2, 4] and result[1] is call.args[0])
takes("two arrays that share their memory", "both", lambda: Call(f4(3)),
      lambda _, result: type(result) is list and [list(a) for a in result] == [[0, 2, 4]] * 2
      and np.shares_memory(*result))
takes("a dict of arrays as a result", "named", lambda: Call(f4(3)),
      lambda _, result: list(result) == ["double"] and list(result["double"]) == [0, 2, 4])
takes("a result for memory of no library", "scale", lambda: Call(array.array("f", [1, 2])),
      lambda _, result: type(result) is np.ndarray and result.tolist() == [2, 4], "tenon", "numpy")
takes("a result for a Tensor", "scale", lambda: Call(tenon.asdlpack(array.array("f", [1, 2]))),
      lambda _, result: type(result).__name__ == "Tensor" and memoryview(result).tolist() == [2, 4], "tenon")
refuses("a result its library does not take", "scale",
        lambda: Call(exchange_class(fakes.Table(null=("allocate",)))(shape=(6,))), "fakes: never", "tenon",
        exception=BufferError)
refuses("a result its library does not allocate", "scale", lambda: Call(exchange_class()(shape=(6,))), "fakes: never",
        "tenon", exception=MemoryError)
takes("a tensor kept and given back", "keep", lambda: Call(f4(3)),
      lambda call, result: type(result).__name__ == "Tensor" and np.shares_memory(np.asarray(result), call.args[0]))
takes("a tensor for reading", "kept_dtype", lambda: Call(f4(3)), "float32")
takes("a tensor on CUDA", "kept_dtype", lambda: Call(Producer(device=CUDA)), "float32", "tenon")
takes("a tensor of our own", "numbers", lambda: Call(3, 3), lambda _, result: memoryview(result).tolist() == [0, 1, 2], "tenon")
refuses("a tensor that could not be made", "numbers", lambda: Call(3, 4),
        "tenon: shape: it does not have as many elements as the vector (got 4, expected 3)", "tenon",
        exception=BufferError)
refuses("None for a tensor", "keep", lambda: Call(None),
        "argument 't' is None: expected any[...] on any device; pass an array", "tenon")
refuses("no tensor", "keep", lambda: Call([1]),
        "argument 't' is not an array: expected any[...] on any device, got list; try numpy.asarray(t)", "tenon")

# --- failures of the function itself ---------------------------------------------------------------------------------

for kind, exception, said in (("invalid_argument", ValueError, "not a good argument"),
                              ("out_of_range", IndexError, "not in there"), ("runtime_error", RuntimeError, "went wrong"),
                              ("python_error", LookupError, "said by Python")):
    refuses(f"throws {kind}", "fail", lambda kind=kind: Call(array.array("d", [1]), kind), said, "tenon", exception=exception)
takes("throws nothing", "fail", lambda: Call(array.array("d", [1]), ""), 1.0, "tenon")

# --- PyTorch ---------------------------------------------------------------------------------------------------------

CONJUGATE = ("tenon: cannot take this tensor: data: a conjugate view: its memory holds other numbers than it shows; call "
             ".resolve_conj() first")
GRAD = ("tenon: cannot take this tensor: data: it requires grad, so it may not be written to from outside; pass "
        ".detach(), or take it for reading only")

takes("torch", "total_2d", lambda: Call(torch().ones(2, 3)), 6.0, "torch")
takes("torch, requires grad, for reading", "total_2d", lambda: Call(torch().ones(2, 3, requires_grad=True)), 6.0, "torch")
takes("torch, filled", "fill", lambda: Call(torch().zeros(3), 2.0), lambda call, _: call.args[0].tolist() == [2.0] * 3, "torch")
takes("torch, a result", "scale", lambda: Call(torch().ones(3)),
      lambda _, result: type(result) is torch().Tensor and result.tolist() == [2.0] * 3, "torch")
takes("torch, a result for a parameter", "scale", lambda: Call(torch().nn.Parameter(torch().ones(3))),
      lambda _, result: type(result) is torch().Tensor and not result.requires_grad, "torch")
takes("torch, another dtype as a result", "widened", lambda: Call(torch().ones(3)),
      lambda _, result: result.dtype == torch().float64, "torch")
takes("torch, bfloat16 as a result", "zeros_like", lambda: Call(torch().ones(3, dtype=torch().bfloat16)),
      lambda _, result: result.dtype == torch().bfloat16 and result.tolist() == [0.0] * 3, "torch")
takes("torch, the very same", "same", lambda: Call(torch().ones(3)), lambda call, result: result is call.args[0], "torch")
takes("torch, a list", "total_of", lambda: Call([torch().ones(3, dtype=torch().float64)] * 2), 6.0, "torch")
takes("torch, converted", "first_converted", lambda: Call(torch().ones(3, dtype=torch().int32)), 1.0, "torch")
takes("torch, converted in order", "strides_c", lambda: Call(torch().ones(3, 2).T), [3, 1], "torch")
takes("torch, converted in dtype and order", "strides_c", lambda: Call(torch().ones(3, 2, dtype=torch().int32).T), [3, 1], "torch")
refuses("torch, another dtype", "total_2d", lambda: Call(torch().ones(2, 3, dtype=torch().float64)),
        "argument 'x' has the wrong dtype: expected float32[*, *], got float64[2, 3] with strides (3, 1), writable, on "
        "cpu (torch.Tensor); try x.to(torch.float32)", "torch")
refuses("torch, another order", "last_c", lambda: Call(torch().ones(2, 3).T),
        "argument 'x' has the wrong memory order: expected C-contiguous float32[*, *], got float32[3, 2] with strides "
        "(1, 3), writable, on cpu (torch.Tensor); try x.contiguous()", "torch")
refuses("torch, column-major", "last_f", lambda: Call(torch().ones(2, 3)),
        "argument 'x' has the wrong memory order: expected F-contiguous float32[*, *], got float32[2, 3] with strides "
        "(3, 1), writable, on cpu (torch.Tensor); try x.T.contiguous().T", "torch")
refuses("torch, for CUDA", "on_cuda", lambda: Call(torch().ones(3)),
        "argument 'x' is on the wrong device: expected float32[*] on cuda, got float32[3] with strides (1,), writable, "
        "on cpu (torch.Tensor); try x.cuda()", "torch")
refuses("torch, expanded", "fill_2d", lambda: Call(torch().ones(3).expand(2, 3), 1.0),
        "argument 'x' has elements that share memory: expected writable float32[*, *], got float32[2, 3] with strides "
        f"(0, 1), writable, on cpu (torch.Tensor); try x.clone(){KEEP}", "torch")
refuses("torch, requires grad, for writing", "fill", lambda: Call(torch().ones(3, requires_grad=True), 1.0),
        f"argument 'x' was refused: expected writable float32[*], got torch.Tensor: {GRAD}", "torch",
        cause=BufferError(GRAD))
refuses("torch, conjugate", "length_complex64", lambda: Call(torch().ones(3, dtype=torch().complex64).conj()),
        f"argument 'x' was refused: expected complex64[*], got torch.Tensor: {CONJUGATE}", "torch",
        cause=BufferError(CONJUGATE))

# --- JAX -------------------------------------------------------------------------------------------------------------

JAX_ARRAY = "<type of JAX arrays>"  # its module is another with every other release


def said_by(row: Row) -> str:
    """The message, with the types' names as they are here."""
    if JAX_ARRAY not in row.message:
        return row.message
    kind = type(jax_ones(1))
    return row.message.replace(JAX_ARRAY, f"{kind.__module__}.{kind.__name__}")


def is_jax(values: list) -> Any:
    return lambda _, result: isinstance(result, type(jax_ones(1))) and result.tolist() == values


takes("jax", "total_2d", lambda: Call(jax_ones((2, 3))), 6.0, "jax")
takes("jax, a result", "scale", lambda: Call(jax_ones(3)), is_jax([2.0] * 3), "jax")
takes("jax, another shape and dtype as a result", "counted", lambda: Call(jax_ones(1), 1, 2), is_jax([[0, 1]]), "jax")
takes("jax, converted", "first_converted", lambda: Call(jax_ones(3, "int32")), 1.0, "jax")
takes("jax, converted, in order as it is", "strides_c", lambda: Call(jax_ones((2, 3), "int32")), [3, 1], "jax")
refuses("jax, another dtype", "total_2d", lambda: Call(jax_ones((2, 3), "int32")),
        "argument 'x' has the wrong dtype: expected float32[*, *], got int32[2, 3] with strides (3, 1), read-only, on "
        f"cpu ({JAX_ARRAY}); try x.astype('float32')", "jax")
refuses("jax, for writing", "fill", lambda: Call(jax_ones(3), 1.0),
        "argument 'x' is read-only: expected writable float32[*], got float32[3] with strides (1,), read-only, on cpu "
        f"({JAX_ARRAY}); try numpy.array(x){KEEP}", "jax")
