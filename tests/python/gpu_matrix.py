# tests/python/gpu_matrix.py: producers and consumers on a machine with a GPU, and the table of what each pair comes to.
"""Data and helpers of test_gpu_matrix.py. No library is imported before a cell needs it."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from real_support import address_of_buffer, need, row_major

import tenon

# --- the device, with no library's help -------------------------------------------------------------


class Gpu:
    """The first CUDA device by its driver: waiting, reading and writing at an address."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)  # the one that every library uses

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.driver, name)(*arguments)
        assert code == 0, f"{name} returned {code}"

    def settle(self) -> None:
        """Waits for everything that anybody has queued."""
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuCtxSynchronize")

    def read(self, address: int, size: int) -> bytes:
        room = ctypes.create_string_buffer(size)
        self.settle()
        self.call("cuMemcpyDtoH_v2", room, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return room.raw

    def write(self, address: int, data: bytes) -> None:
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))


@functools.cache
def count_devices() -> int:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


@functools.cache
def gpu() -> Gpu:
    return Gpu()


def fetch(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, on_gpu: bool) -> Any:
    """The elements at an address, copied. Strides count elements, and do not go backwards."""
    np = need("numpy")
    if 0 in shape:
        return np.empty(shape, dtype)
    size = np.dtype(dtype).itemsize
    span = (1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))) * size
    data = gpu().read(address, span) if on_gpu else ctypes.string_at(address, span)
    return np.lib.stride_tricks.as_strided(np.frombuffer(data, dtype), shape, [s * size for s in strides]).copy()


def store(address: int, strides: tuple[int, ...], new: Any, on_gpu: bool) -> None:
    """Writes the elements one by one."""
    for index in itertools.product(*map(range, new.shape)):
        at = address + sum(i * step for i, step in zip(index, strides, strict=True)) * new.itemsize
        data = new[index].tobytes()
        if on_gpu:
            gpu().write(at, data)
        else:
            ctypes.memmove(at, data, len(data))


# --- what every array holds -------------------------------------------------------------------------

DTYPES = ("float32", "int32", "float16", "complex64", "bool", "uint8", "int8")
COUNT = 12

#: Of a vector of COUNT elements, in the words that NumPy, PyTorch and CuPy share.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "compact": lambda m: m.reshape(3, 4),
    "strided": lambda m: m.reshape(3, 4)[:, ::2],
    "transposed": lambda m: m.reshape(4, 3).T,
    "offset": lambda m: m[1:],
    "empty": lambda m: m[:0],
    "0-d": lambda m: m[:1].reshape(()),
}


def numbers(dtype: str, turn: int = 0) -> Any:
    """A vector aligned to 64 bytes, so that JAX shares it. Each turn differs from the one before in every element."""
    np = need("numpy")
    i = np.arange(COUNT)
    whole = {
        "bool": (i + turn) % 2 == 0,
        "uint8": i * 7 + turn,
        "int8": i * 7 - 40 + turn,
        "complex64": i * 0.5 - 3 + turn + 1j * (i + 1),
    }.get(dtype, i * 5 - 20 + turn)
    room = np.zeros(COUNT * 8 + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + COUNT * np.dtype(dtype).itemsize].view(dtype)
    made[:] = whole.astype(dtype)
    return made


# --- arrays of every kind: where they are, what they say, how they are read and written --------------


@dataclass(frozen=True)
class Hands:
    """A kind of array, by its own library's operations where it has any."""

    address: Callable[[Any], int]
    #: Element type, shape, strides in elements (None: it does not say), and whether it may be written to (the same).
    about: Callable[[Any], tuple[str, tuple[int, ...], tuple[int, ...] | None, bool | None]]
    values: Callable[[Any], Any]
    write: Callable[[Any, Any], None] | None = None


def in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(s // itemsize for s in strides)


def write_numpy(a: Any, new: Any) -> None:
    need("numpy").asarray(a)[...] = new  # not by a subclass of Numba's, which has methods of its own


def write_torch(x: Any, new: Any) -> None:
    x.copy_(need("torch").from_numpy(new))


def write_cupy(a: Any, new: Any) -> None:
    a[...] = need("cupy").asarray(new)


def write_numba(a: Any, new: Any) -> None:
    """It copies to what has no gaps, and compiles a kernel for the rest."""
    if a.flags["C_CONTIGUOUS"] or a.flags["F_CONTIGUOUS"]:
        a.copy_to_device(new)
    else:
        store(a.device_ctypes_pointer.value, in_elements(a.strides, a.dtype.itemsize), new, True)


def steps_of(view: Any) -> tuple[int, ...]:
    return tuple(view.strides) if view.strides is not None else row_major(tuple(view.shape))


def about_numpy(a: Any) -> Any:
    return a.dtype.name, a.shape, in_elements(a.strides, a.itemsize), a.flags.writeable


def about_bytes(a: Any) -> Any:
    view = memoryview(a)
    names = {"B": "uint8", "b": "int8", "i": "int32", "f": "float32"}
    return names[view.format], view.shape, (1,), not view.readonly


def write_bytes(a: Any, new: Any) -> None:
    memoryview(a).cast("B")[:] = new.tobytes()


def address_of_arrow(a: Any) -> int:
    return int(a.buffers()[1].address + a.offset * a.type.bit_width // 8)


HANDS = {
    "numpy": Hands(lambda a: int(a.ctypes.data), about_numpy, lambda a: a, write_numpy),
    "torch": Hands(
        lambda x: int(x.data_ptr()),
        lambda x: (str(x.dtype).removeprefix("torch."), tuple(x.shape), tuple(x.stride()), None),
        lambda x: x.cpu().numpy(),
        write_torch,
    ),
    "cupy": Hands(
        lambda a: int(a.data.ptr),
        lambda a: (a.dtype.name, a.shape, in_elements(a.strides, a.itemsize), None),
        lambda a: a.get(order="A"),
        write_cupy,
    ),
    "numba": Hands(
        lambda a: int(a.device_ctypes_pointer.value or 0),
        lambda a: (a.dtype.name, a.shape, in_elements(a.strides, a.dtype.itemsize), None),
        lambda a: a.copy_to_host(),
        write_numba,
    ),
    "jax": Hands(
        lambda x: int(x.unsafe_buffer_pointer()),
        lambda x: (x.dtype.name, x.shape, None, None),
        lambda x: need("numpy").asarray(x),
    ),
    "view": Hands(
        lambda v: int(v.ptr),
        lambda v: (v.dtype.name, tuple(v.shape), steps_of(v), not v.readonly),
        lambda v: fetch(v.ptr, tuple(v.shape), steps_of(v), v.dtype.name, v.is_device_accessible),
        lambda v, new: store(v.ptr, steps_of(v), new, v.is_device_accessible),
    ),
    "buffer": Hands(
        lambda b: int(b.handle),
        lambda b: ("int8", (b.size,), (1,), True),
        lambda b: fetch(int(b.handle), (b.size,), (1,), "int8", True),
        lambda b, new: store(int(b.handle), (1,), new, True),
    ),
    "tenon": Hands(
        lambda t: t.data_ptr,
        lambda t: (str(t.dtype), t.shape, t.strides, not t.readonly),
        lambda t: fetch(t.data_ptr, t.shape, t.strides, str(t.dtype), t.device != "cpu"),
    ),
    "bytes": Hands(
        address_of_buffer, about_bytes, lambda a: need("numpy").frombuffer(a, about_bytes(a)[0]), write_bytes
    ),
    "arrow": Hands(
        address_of_arrow,
        lambda a: ({"float": "float32", "halffloat": "float16"}.get(str(a.type), str(a.type)), (len(a),), (1,), False),
        lambda a: a.to_numpy(),
    ),
}  # fmt: skip

#: By the package that an array's class says it is from, or the class itself.
KINDS = {
    "torch": "torch", "cupy": "cupy", "numba": "numba", "jaxlib": "jax", "jax": "jax", "tenon": "tenon",
    "pyarrow": "arrow", "builtins": "bytes", "array": "bytes", "StridedMemoryView": "view", "Buffer": "buffer",
}  # fmt: skip


def hands_of(array: Any) -> Hands:
    if isinstance(array, need("numpy").ndarray):
        return HANDS["numpy"]
    for base in type(array).__mro__:
        if kind := KINDS.get(base.__name__) or KINDS.get(base.__module__.partition(".")[0]):
            return HANDS[kind]
    raise TypeError(f"no array of a kind that is known: {type(array)}")


def read(array: Any) -> Any:
    """What an array holds once everything is done: a copy on the host."""
    gpu().settle()
    seen = hands_of(array).values(array)
    gpu().settle()  # Numba copies on its array's stream, and does not wait
    return need("numpy").array(seen, copy=True, subok=False)


# --- libraries that must be there -------------------------------------------------------------------


def need_gpu() -> None:
    if not count_devices():
        pytest.skip("needs a CUDA device")


def need_all(modules: tuple[str, ...]) -> None:
    """Skips unless all are there, and find the GPU if they have to."""
    need_gpu()
    for module in modules:
        need(module)
    if "jax" in modules:
        need_jax_gpu()
    if "torch" in modules and not need("torch").cuda.is_available():
        pytest.skip("this PyTorch finds no GPU")


@functools.cache
def jax_finds_gpu() -> bool:
    try:
        return bool(need("jax").devices("cuda"))
    except RuntimeError:
        return False


def need_jax_gpu() -> None:
    if not jax_finds_gpu():
        pytest.skip("this JAX finds no GPU")


# --- producers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """An object with numbers in it, and what must outlive it."""

    obj: Any
    kept: Any = None


@dataclass(frozen=True)
class Producer:
    name: str
    modules: tuple[str, ...]
    #: Of a vector of numbers and the name of a layout.
    make: Callable[[Any, str], Made]
    #: The device of its Tensor, and whether that is read-only.
    device: str
    readonly: bool = False
    #: Element types and layouts that it has not, and why.
    without: dict[str, str] = field(default_factory=dict)
    #: It has vectors only: "compact" is one.
    vectors: bool = False

    def need(self) -> None:
        need_all(self.modules)

    def wanted(self, dtype: str, layout: str, turn: int = 0) -> Any:
        """What an array of it must hold, worked out by NumPy."""
        vector = numbers(dtype, turn)
        return vector if self.vectors and layout == "compact" else LAYOUTS[layout](vector)


def make_numpy(vector: Any, layout: str) -> Made:
    return Made(LAYOUTS[layout](vector))


def make_torch(place: Callable[[Any], Any]) -> Callable[[Any, str], Made]:
    return lambda vector, layout: Made(LAYOUTS[layout](place(need("torch").from_numpy(vector))))


def make_cupy(vector: Any, layout: str) -> Made:
    return Made(LAYOUTS[layout](need("cupy").asarray(vector)))


def make_cupy_managed(vector: Any, layout: str) -> Made:
    cupy = need("cupy")
    whole = cupy.ndarray((COUNT,), vector.dtype, cupy.cuda.malloc_managed(vector.nbytes))
    whole.set(vector)
    return Made(LAYOUTS[layout](whole))


@functools.cache
def numba_stream() -> Any:
    return need("numba.cuda").stream()


def make_numba(on_stream: bool) -> Callable[[Any, str], Made]:
    def make(vector: Any, layout: str) -> Made:
        """Its own transpose copies, and so does a slice of nothing: those are made as they are wanted."""
        cuda = need("numba.cuda")
        how = {"stream": numba_stream()} if on_stream else {}
        if layout == "empty":
            return Made(cuda.device_array((0,), vector.dtype, **how))
        if layout == "strided":
            whole = cuda.to_device(vector.reshape(3, 4), **how)
            return Made(whole[:, ::2], (whole, vector))
        if layout == "offset":
            whole = cuda.to_device(vector, **how)
            return Made(whole[1:], (whole, vector))
        return Made(cuda.to_device(LAYOUTS[layout](vector), **how), vector)

    return make


def make_numba_host(function: str) -> Callable[[Any, str], Made]:
    def make(vector: Any, layout: str) -> Made:
        """`.T` is no view of its arrays: column-major memory is asked for."""
        allocate = getattr(need("numba.cuda"), function)
        shape, order = {
            "transposed": ((3, 4), "F"), "compact": ((3, 4), "C"), "strided": ((3, 4), "C"),
        }.get(layout, ((COUNT,), "C"))  # fmt: skip
        whole = allocate(shape, vector.dtype, order=order)
        write_numpy(whole, LAYOUTS[layout](vector) if layout == "transposed" else vector.reshape(shape))
        cut = {
            "strided": lambda m: m[:, ::2], "offset": lambda m: m[1:], "empty": lambda m: m[:0],
            "0-d": lambda m: m[:1].reshape(()),
        }.get(layout, lambda m: m)  # fmt: skip
        return Made(cut(whole), whole)

    return make


def make_jax(platform: str) -> Callable[[Any, str], Made]:
    def make(vector: Any, layout: str) -> Made:
        jax = need("jax")
        made = jax.device_put(LAYOUTS[layout](vector), jax.devices(platform)[0])
        return Made(made.block_until_ready(), vector)  # whose memory it may be

    return make


def make_pyarrow(vector: Any, layout: str) -> Made:
    made = need("pyarrow").array(vector)  # over the same memory
    return Made(made if layout == "compact" else LAYOUTS[layout](made), vector)


@functools.cache
def core_device() -> tuple[Any, Any]:
    device = need("cuda.core").Device(0)
    device.set_current()
    return device, device.create_stream()


def make_buffer(vector: Any, layout: str) -> Made:
    device, stream = core_device()
    made = device.allocate(vector.nbytes, stream=stream)
    stream.sync()
    gpu().write(int(made.handle), vector.tobytes())
    return Made(made)


def make_view(vector: Any, layout: str) -> Made:
    """Over memory of CuPy's, which it keeps."""
    made = make_cupy(vector, layout)
    gpu().settle()
    return Made(need("cuda.core.utils").StridedMemoryView.from_any_interface(made.obj, stream_ptr=-1), made)


def make_bytes(kind: Callable[[Any], Any]) -> Callable[[Any, str], Made]:
    def make(vector: Any, layout: str) -> Made:
        """Not aligned to 64 bytes, so that it is no chance whether JAX shares it."""
        others = []
        while True:
            made = kind(vector if layout == "compact" else vector[:0])
            if layout == "empty" or address_of_buffer(made) % 64:
                return Made(made)
            others.append(made)  # kept, or the next one would lie in the same place

    return make


def make_array(vector: Any) -> Any:
    import array

    return array.array({"float32": "f", "int32": "i", "uint8": "B", "int8": "b"}[vector.dtype.name], vector.tolist())


VIEW_COPIES = {layout: "a view of it is a copy" for layout in ("strided", "transposed", "offset")}
ONE_AXIS = {layout: "it has one axis and no gaps" for layout in ("strided", "transposed", "0-d")}
BYTES = {dtype: "it holds bytes" for dtype in DTYPES if dtype != "uint8"}

_PRODUCERS = (
    Producer("numpy", ("numpy",), make_numpy, "cpu"),
    Producer("torch, CPU", ("torch",), make_torch(lambda x: x.clone()), "cpu"),
    Producer("torch, pinned", ("torch",), make_torch(lambda x: x.pin_memory()), "cpu"),
    Producer("torch, CUDA", ("torch",), make_torch(lambda x: x.to("cuda:0")), "cuda:0"),
    Producer("cupy", ("cupy",), make_cupy, "cuda:0"),
    Producer("cupy, managed", ("cupy",), make_cupy_managed, "cuda_managed:0"),
    Producer("numba", ("numba.cuda",), make_numba(False), "cuda:0"),
    Producer("numba, on a stream", ("numba.cuda",), make_numba(True), "cuda:0"),
    # NumPy's arrays, and taken as such.
    Producer("numba, managed", ("numba.cuda",), make_numba_host("managed_array"), "cpu"),
    Producer("numba, mapped", ("numba.cuda",), make_numba_host("mapped_array"), "cpu"),
    Producer("numba, pinned", ("numba.cuda",), make_numba_host("pinned_array"), "cpu"),
    Producer("jax, CPU", ("jax",), make_jax("cpu"), "cpu", readonly=True, without=VIEW_COPIES),
    Producer("jax, CUDA", ("jax",), make_jax("cuda"), "cuda:0", readonly=True, without=VIEW_COPIES),
    Producer(
        "pyarrow", ("pyarrow",), make_pyarrow, "cpu", readonly=True, vectors=True,
        without={**ONE_AXIS, "complex64": "it has no complex numbers", "bool": "its booleans are single bits"},
    ),
    Producer(
        "cuda.core Buffer", ("cuda.core",), make_buffer, "cuda:0", vectors=True,
        without={
            **ONE_AXIS, "offset": "a part of it is none", "empty": "none of no size is allocated",
            **{dtype: "it is a vector of int8" for dtype in DTYPES if dtype != "int8"},
        },
    ),
    Producer("cuda.core view", ("cuda.core.utils", "cupy"), make_view, "cuda:0"),
    Producer(
        "bytes", (), make_bytes(lambda v: v.tobytes()), "cpu", readonly=True, vectors=True,
        without={**ONE_AXIS, "offset": "a part of it is a copy", **BYTES},
    ),
    Producer(
        "bytearray", (), make_bytes(lambda v: bytearray(v.tobytes())), "cpu", vectors=True,
        without={**ONE_AXIS, "offset": "a part of it is a copy", **BYTES},
    ),
    Producer(
        "array.array", (), make_bytes(make_array), "cpu", vectors=True,
        without={
            **ONE_AXIS, "offset": "a part of it is a copy",
            **dict.fromkeys(("float16", "complex64", "bool"), "it has no letter for them"),
        },
    ),
)  # fmt: skip
PRODUCERS = {producer.name: producer for producer in _PRODUCERS}


# --- consumers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Door:
    """A way in: of a library itself, by Tensor.to, or by asdlpack, which moves."""

    name: str
    modules: tuple[str, ...]
    #: Of a Tensor.
    take: Callable[[tenon.Tensor], Any]
    #: What `to` is given, None for other doors.
    library: str | None = None
    #: What asdlpack is given, None for other doors.
    move: dict[str, Any] | None = None

    def need(self) -> None:
        need_all(self.modules)

    def enter(self, obj: Any, t: tenon.Tensor, **way: Any) -> Any:
        """The object, or its Tensor, by this way; or by the way out of a refusal."""
        if self.library is not None:
            return t.to(self.library, **way)
        if self.move is not None:
            return tenon.asdlpack(obj, **self.move)
        return self.take(tenon.asdlpack(obj, **way) if way else t)


def take_view(by: str) -> Callable[[tenon.Tensor], Any]:
    return lambda t: getattr(need("cuda.core.utils").StridedMemoryView, by)(t, stream_ptr=-1)


def by_to(library: str, *modules: str) -> Door:
    return Door(f'to("{library}")', modules or (library,), take=lambda t: t.to(library), library=library)


def by_moving(name: str, **how: Any) -> Door:
    return Door(name, (), take=lambda t: tenon.asdlpack(t, **how), move=how)


_DOORS = (
    Door("numpy.from_dlpack", ("numpy",), lambda t: need("numpy").from_dlpack(t)),
    Door("torch.from_dlpack", ("torch",), lambda t: need("torch").from_dlpack(t)),
    Door("cupy.from_dlpack", ("cupy",), lambda t: need("cupy").from_dlpack(t)),
    Door("cupy.asarray", ("cupy",), lambda t: need("cupy").asarray(t)),
    Door("numba.cuda.as_cuda_array", ("numba.cuda",), lambda t: need("numba.cuda").as_cuda_array(t)),
    Door("jax.dlpack.from_dlpack", ("jax",), lambda t: need("jax").dlpack.from_dlpack(t)),
    Door("view.from_any_interface", ("cuda.core.utils",), take_view("from_any_interface")),
    Door("view.from_dlpack", ("cuda.core.utils",), take_view("from_dlpack")),
    by_to("numpy"),
    by_to("torch"),
    by_to("cupy"),
    by_to("numba", "numba.cuda"),
    by_to("jax"),
    by_to("cuda.core", "cuda.core.utils"),
    by_moving('device="cuda:0"', device="cuda:0"),
    by_moving('device="cpu"', device="cpu"),
    by_moving("copy=True", copy=True),
)
DOORS = {door.name: door for door in _DOORS}


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a letter stands for."""

    #: "shared": the same memory; "copied": other memory, the same values; "nothing": there is no memory to share;
    #: "refused": it raises.
    kind: str
    raises: tuple[type[Exception], ...] = ()
    #: What the exception says. For Tensor.to that is the way out.
    says: str = ""
    #: What to pass to asdlpack or Tensor.to instead, so that it is taken.
    way: dict[str, Any] = field(default_factory=dict)


OUTCOMES = {
    "=": Outcome("shared"),
    "c": Outcome("copied"),
    "0": Outcome("nothing"),
    # The libraries' own words.
    "N": Outcome("refused", (BufferError, RuntimeError), "Unsupported device", {"device": "cpu"}),
    "U": Outcome("refused", (BufferError,), "Unsupported device_type: 13", {"device": "cuda:0"}),
    "G": Outcome("refused", (TypeError,), "CPU arrays cannot be directly imported", {"device": "cuda:0"}),
    "I": Outcome("refused", (TypeError,), "cuda array interface", {"device": "cuda:0"}),
    "J": Outcome("refused", (TypeError,), "unsupported device type", {"device": "cuda:0"}),
    "K": Outcome("refused", (TypeError,), "unsupported device type", {"device": "cuda:0", "copy": True}),
    "S": Outcome("refused", (RuntimeError,), "striding", {"copy": True}),
    # Ours, in a library that can only be told by a legacy capsule.
    "R": Outcome("refused", (BufferError,), "read-only", {"copy": True}),
    # Ours, by Tensor.to.
    "d": Outcome("refused", (BufferError,), 'pass device="cpu"', {"device": "cpu"}),
    "g": Outcome("refused", (BufferError,), 'pass device="cuda:0"', {"device": "cuda:0"}),
    "h": Outcome("refused", (BufferError,), 'pass device="cuda:0"', {"device": "cuda:0", "copy": True}),
    "k": Outcome("refused", (BufferError,), "pass copy=True", {"copy": True}),
}

#: Cells that are as they are up to a version, and not known after it: the letter, the columns, the library, the
#: first version that may differ, and why. NumPy's exception at "N" was a RuntimeError before 2.5.
BY_VERSION = (
    ("R", ("jax.dlpack.from_dlpack",), "jax", (0, 12), "it may take versioned capsules, which can say read-only"),
    ("G", ("cupy.from_dlpack",), "cupy", (15,), "it may copy what is on the CPU"),
    ("J", ("jax.dlpack.from_dlpack",), "jax", (0, 12), "it may take managed memory"),
    ("K", ("jax.dlpack.from_dlpack",), "jax", (0, 12), "it may take managed memory"),
    ("U", ("torch.from_dlpack",), "torch", (2, 16), "it may take managed memory"),
)

# A block for each producer, a row for each layout it has, a letter for each door: the libraries' own, Tensor.to,
# asdlpack's moves. The element type makes no difference anywhere.
#
#     numpy.from_dlpack            to("numpy")            device="cuda:0"
#     | torch.from_dlpack          | to("torch")          | device="cpu"
#     | | cupy.from_dlpack         | | to("cupy")         | | copy=True
#     | | | cupy.asarray           | | | to("numba")      | | |
#     | | | | as_cuda_array        | | | | to("jax")      | | |
#     | | | | | jax.dlpack         | | | | | to("cuda.core")
#     | | | | | | view.from_any_interface  | | |
#     | | | | | | | view.from_dlpack       | | |
TABLE = """
numpy
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
torch, CPU
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
torch, pinned
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
torch, CUDA
    compact       N = = = = = = =   d = = = = =   = c c
    strided       N = = = = S = =   d = = = k =   = c c
    transposed    N = = = = = = =   d = = = = =   = c c
    offset        N = = = = = = =   d = = = c =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
cupy
    compact       N = = = = = = =   d = = = = =   = c c
    strided       N = = = = S = =   d = = = k =   = c c
    transposed    N = = = = = = =   d = = = = =   = c c
    offset        N = = = = = = =   d = = = c =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
cupy, managed
    compact       = U = = = J = =   = g = = g =   = = c
    strided       = U = = = K = =   = g = = h =   = = c
    transposed    = U = = = J = =   = g = = g =   = = c
    offset        = U = = = J = =   = g = = g =   = = c
    empty         0 U 0 0 0 J 0 0   0 g 0 0 g 0   0 0 0
    0-d           = U = = = J = =   = g = = g =   = = c
numba
    compact       N = = = = = = =   d = = = = =   = c c
    strided       N = = = = S = =   d = = = k =   = c c
    transposed    N = = = = = = =   d = = = = =   = c c
    offset        N = = = = = = =   d = = = c =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
numba, on a stream
    compact       N = = = = = = =   d = = = = =   = c c
    strided       N = = = = S = =   d = = = k =   = c c
    transposed    N = = = = = = =   d = = = = =   = c c
    offset        N = = = = = = =   d = = = c =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
numba, managed
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
numba, mapped
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
numba, pinned
    compact       = = G c I = = =   = = g = = =   c = c
    strided       = = G c I S = =   = = g = k =   c = c
    transposed    = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
jax, CPU
    compact       = = G c I = = =   = = g = = =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
    0-d           = = G c I = = =   = = g = = =   c = c
jax, CUDA
    compact       N = = = = = = =   d = = = = =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
pyarrow
    compact       = = G c I = = =   = = g = = =   c = c
    offset        = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
cuda.core Buffer
    compact       N = = = = = = =   d = = = = =   = c c
cuda.core view
    compact       N = = = = = = =   d = = = = =   = c c
    strided       N = = = = S = =   d = = = k =   = c c
    transposed    N = = = = = = =   d = = = = =   = c c
    offset        N = = = = = = =   d = = = c =   = c c
    empty         N 0 0 0 0 0 0 0   d 0 0 0 0 0   0 0 0
    0-d           N = = = = = = =   d = = = = =   = c c
bytes
    compact       = = G c I R = =   = = g = c =   c = c
    empty         0 0 G 0 I R 0 0   0 0 g 0 0 0   0 0 0
bytearray
    compact       = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
array.array
    compact       = = G c I c = =   = = g = c =   c = c
    empty         0 0 G 0 I 0 0 0   0 0 g 0 0 0   0 0 0
"""


def parse(table: str) -> dict[str, dict[str, dict[str, str]]]:
    """Letters by producer, layout and door."""
    blocks: dict[str, dict[str, dict[str, str]]] = {}
    block: dict[str, dict[str, str]] = {}
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            block = blocks[line] = {}
            continue
        layout, *letters = line.split()
        block[layout] = dict(zip(DOORS, letters, strict=True))
    return blocks


EXPECTED = parse(TABLE)


@dataclass(frozen=True)
class Cell:
    producer: str
    dtype: str
    layout: str
    door: str
    letter: str

    def __str__(self) -> str:
        return f"{self.producer}; {self.dtype}; {self.layout} -> {self.door}"


def rows() -> list[tuple[str, str, str]]:
    """Every array that can be made: producer, element type, layout."""
    return [
        (name, dtype, layout)
        for name, block in EXPECTED.items()
        for dtype in DTYPES
        if dtype not in PRODUCERS[name].without
        for layout in block
    ]


def cells() -> list[Cell]:
    return [Cell(*row, door, letter) for row in rows() for door, letter in EXPECTED[row[0]][row[2]].items()]


def inexpressible() -> dict[tuple[str, str, str], str]:
    """Arrays that cannot be made, and why."""
    return {
        (name, dtype, layout): producer.without.get(dtype) or producer.without[layout]
        for name, producer in PRODUCERS.items()
        for dtype in DTYPES
        for layout in LAYOUTS
        if dtype in producer.without or layout in producer.without
    }


def few() -> list[Cell]:
    """One cell for each producer and door, of another element type and layout every time."""
    by_pair: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells():
        by_pair.setdefault((cell.producer, cell.door), []).append(cell)
    return [of_pair[11 * turn % len(of_pair)] for turn, of_pair in enumerate(by_pair.values())]


def few_rows() -> list[tuple[str, str, str]]:
    """The arrays of the sample."""
    return list(dict.fromkeys((cell.producer, cell.dtype, cell.layout) for cell in few()))


def version_of(distribution: str) -> tuple[int, ...]:
    """Of what is loaded, by its numbers."""
    text = getattr(need(distribution), "__version__", None) or importlib.metadata.version(distribution)
    return tuple(int(part) for part in text.split("+")[0].split(".")[:3] if part.isdigit())


def why_unknown(cell: Cell) -> str:
    """Why a cell says nothing of the versions that are installed; empty if it does."""
    for letter, doors, library, first, why in BY_VERSION:
        if cell.letter == letter and cell.door in doors and version_of(library) >= first:
            return f"{library} {'.'.join(map(str, version_of(library)))}: {why}"
    return ""
