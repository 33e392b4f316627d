# tests/python/real_consumers.py: every way a real library takes an object of ours, and what it then says of the memory.
from __future__ import annotations

import contextlib
import ctypes
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from real_support import address_of_buffer, has, need, raw, struct_in

import tenon


class Look(NamedTuple):
    """What a library says. None: it has no word for that, or keeps it to itself."""

    address: int
    dtype: str | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None  # in elements
    data: bytes | None  # in row-major order
    writable: bool | None


@dataclass(frozen=True)
class Consumer:
    name: str
    library: str
    take: Callable[[Any], Any]
    look: Callable[[Any], Look]
    write: Callable[[Any, bytes], None] | None = None  # over the first bytes of a contiguous view

    def need(self) -> None:
        """Skips where the library is missing, or too old to have this door."""
        module = need(self.library)
        if self.name in ("pa.Array", "pa.Tensor") and not hasattr(module.Array, "from_dlpack"):
            pytest.skip(f"pyarrow {module.__version__} has no from_dlpack")


CONSUMERS: dict[str, Consumer] = {}


def consumer(name: str, library: str, **doors: Any) -> None:
    CONSUMERS[name] = Consumer(name, library, **doors)


# --- NumPy and the buffer protocol ------------------------------------------------------------------


def look_numpy(a: Any) -> Look:
    strides = tuple(s // a.itemsize for s in a.strides)
    return Look(a.ctypes.data, a.dtype.name, a.shape, strides, a.tobytes(), a.flags.writeable)


def write_numpy(a: Any, data: bytes) -> None:
    a.reshape(-1).view("u1")[: len(data)] = list(data)


FORMATS = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "q": "int64", "B": "uint8", "H": "uint16", "I": "uint32",
    "Q": "uint64", "e": "float16", "f": "float32", "d": "float64", "Zf": "complex64",
    "Zd": "complex128",
}  # fmt: skip


def look_memoryview(m: memoryview) -> Look:
    strides = tuple(s // m.itemsize for s in m.strides)
    return Look(address_of_buffer(m), FORMATS[m.format], m.shape, strides, m.tobytes(), not m.readonly)


def write_buffer(m: Any, data: bytes) -> None:
    ctypes.memmove((ctypes.c_char * len(data)).from_buffer(m), data, len(data))


consumer("np.from_dlpack", "numpy", take=lambda o: need("numpy").from_dlpack(o), look=look_numpy, write=write_numpy)
consumer("np.asarray", "numpy", take=lambda o: need("numpy").asarray(o), look=look_numpy, write=write_numpy)
consumer("memoryview", "builtins", take=memoryview, look=look_memoryview, write=write_buffer)


# --- PyTorch ----------------------------------------------------------------------------------------


def look_torch(x: Any) -> Look:
    data = x.contiguous().reshape(-1).view(need("torch").uint8).numpy().tobytes()
    return Look(x.data_ptr(), str(x.dtype).removeprefix("torch."), tuple(x.shape), x.stride(), data, None)


def write_torch(x: Any, data: bytes) -> None:
    torch = need("torch")
    x.reshape(-1).view(torch.uint8)[: len(data)] = torch.tensor(list(data), dtype=torch.uint8)


consumer("torch", "torch", take=lambda o: need("torch").from_dlpack(o), look=look_torch, write=write_torch)


# --- JAX and TensorFlow -----------------------------------------------------------------------------


@contextlib.contextmanager
def wide_types():
    """JAX has 64-bit types only when it is told so."""
    jax = need("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def take_jax(obj: Any) -> Any:
    with wide_types():
        return need("jax").dlpack.from_dlpack(obj)


@functools.cache
def jax_reads_strides() -> bool:
    """JAX 0.6 takes column-major memory and reads it as if it were row-major; NumPy's own arrays too."""
    np = need("numpy")
    memory = np.zeros(64, np.float32)
    start = -memory.ctypes.data % 64 // 4
    a = memory[start : start + 6].reshape(2, 3)
    a[:] = np.arange(6).reshape(2, 3)
    return bool((np.asarray(take_jax(a.T)) == a.T).all())


def look_jax(x: Any) -> Look:
    packed = x.dtype.name.endswith(("2", "4", "2m1fn"))
    data = need("numpy").asarray(x).tobytes() if not packed or x.dtype.itemsize > 1 else None
    return Look(x.unsafe_buffer_pointer(), x.dtype.name, x.shape, None, data, None)


def look_tensorflow(x: Any) -> Look:
    struct = struct_in(x.__dlpack__()).dl_tensor
    return Look(struct.data or 0, x.dtype.name, tuple(x.shape), None, x.numpy().tobytes(), None)


consumer("jax", "jax", take=take_jax, look=look_jax)
consumer(
    "tensorflow",
    "tensorflow",
    take=lambda o: need("tensorflow").experimental.dlpack.from_dlpack(o.__dlpack__()),
    look=look_tensorflow,
)


# --- PyArrow ----------------------------------------------------------------------------------------

ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def look_arrow_array(a: Any) -> Look:
    size = a.type.bit_width // 8
    memory = a.buffers()[1]
    data = ctypes.string_at(memory.address + a.offset * size, len(a) * size)
    dtype = ARROW_NAMES.get(str(a.type), str(a.type))
    return Look(memory.address + a.offset * size, dtype, (len(a),), None, data, memory.is_mutable)


def look_arrow_tensor(x: Any) -> Look:
    dtype = ARROW_NAMES.get(str(x.type), str(x.type))
    strides = tuple(s * 8 // x.type.bit_width for s in x.strides)
    a = x.to_numpy()
    return Look(a.ctypes.data, dtype, tuple(x.shape), strides, a.tobytes(), x.is_mutable)


def look_arrow_buffer(b: Any) -> Look:
    return Look(b.address, None, None, None, b.to_pybytes(), b.is_mutable)


consumer("pa.Array", "pyarrow", take=lambda o: need("pyarrow").Array.from_dlpack(o), look=look_arrow_array)
consumer("pa.Tensor", "pyarrow", take=lambda o: need("pyarrow").Tensor.from_dlpack(o), look=look_arrow_tensor)
consumer(
    "pa.py_buffer", "pyarrow", take=lambda o: need("pyarrow").py_buffer(o), look=look_arrow_buffer, write=write_buffer
)


# --- tvm-ffi ----------------------------------------------------------------------------------------


def look_tvm(x: Any) -> Look:
    t = tenon.asdlpack(x)  # its own `dtype` has no name for the complex types
    return Look(x.data_ptr(), t.dtype, tuple(x.shape), tuple(x.strides), bits_of(t), None)


def look_tensor(t: tenon.Tensor) -> Look:
    return Look(t.data_ptr, t.dtype, t.shape, t.strides, bits_of(t), None)


def bits_of(t: tenon.Tensor) -> bytes:
    """The bytes of the elements; packed ones stay packed."""
    return ctypes.string_at(t.data_ptr, t.nbytes) if t.is_contiguous and t.size else raw(t)


def call_tvm(obj: Any) -> Any:
    """As an argument of a function of tvm-ffi's, which gives it back."""
    back = need("tvm_ffi").get_global_func("testing.echo")(obj)
    assert type(back).__name__ == "Tensor"
    assert type(back).__module__ == "tenon"
    return back


consumer("tvm_ffi", "tvm_ffi", take=lambda o: need("tvm_ffi").from_dlpack(o), look=look_tvm)
consumer("tvm_ffi call", "tvm_ffi", take=call_tvm, look=look_tensor)


# --- which cell does what ---------------------------------------------------------------------------

# What a letter of the tables below stands for: whether the memory may be shared, and the exceptions that may come
# instead. An exception of ours is a BufferError; the others are the libraries' own.
LETTERS = {
    "=": (True, ()),
    "0": (True, ()),  # an empty tensor has no memory to share
    "c": (True, ()),  # JAX copies what is not aligned to its liking
    "m": (True, ()),  # by ml_dtypes, or else a BufferError
    "~": (True, ("RuntimeError",)),  # by version
    "b": (True, ("BufferError",)),  # read-only: refused where the library only knows legacy capsules
    "B": (False, ("BufferError",)),
    "R": (False, ("RuntimeError",)),
    "r": (False, ("RuntimeError", "BufferError")),  # by version: NumPy 2.5 and JAX 0.12 changed it
    "V": (False, ("ValueError",)),
    "T": (False, ("TypeError",)),
    "O": (False, ("InvalidArgumentError",)),  # of TensorFlow
}
COLUMNS = [
    "np.from_dlpack", "np.asarray", "memoryview", "torch", "jax", "tensorflow", "pa.Array", "pa.Tensor",
    "pa.py_buffer", "tvm_ffi", "tvm_ffi call",
]  # fmt: skip
assert list(CONSUMERS) == COLUMNS


def parse(table: str) -> dict[str, dict[str, str]]:
    rows = [line.rsplit(maxsplit=len(COLUMNS)) for line in table.strip().splitlines()]
    return {name.strip(): dict(zip(COLUMNS, letters, strict=True)) for name, *letters in rows}


# Columns: as in COLUMNS. "+pad": a byte for each sub-byte element.
DTYPES = parse("""
    bool                 =  =  =  =  =  =  V  V  =  =  =
    int8                 =  =  =  =  =  =  =  =  =  =  =
    int16                =  =  =  =  =  =  =  =  =  =  =
    int32                =  =  =  =  =  =  =  =  =  =  =
    int64                =  =  =  =  =  =  =  =  =  =  =
    uint8                =  =  =  =  =  =  =  =  =  =  =
    uint16               =  =  =  =  =  =  =  =  =  =  =
    uint32               =  =  =  =  =  =  =  =  =  =  =
    uint64               =  =  =  =  =  =  =  =  =  =  =
    float16              =  =  =  =  =  =  =  =  =  =  =
    float32              =  =  =  =  =  =  =  =  =  =  =
    float64              =  =  =  =  =  =  =  =  =  =  =
    complex32            r  m  B  =  R  O  V  V  B  =  =
    complex64            =  =  =  =  =  =  V  V  =  =  =
    complex128           =  =  =  =  =  =  V  V  =  =  =
    bfloat16             r  m  B  =  =  =  V  V  B  =  =
    float8_e3m4          r  m  B  B  =  O  V  V  B  =  =
    float8_e4m3          r  m  B  B  =  O  V  V  B  =  =
    float8_e4m3b11fnuz   r  m  B  B  =  O  V  V  B  =  =
    float8_e4m3fn        r  m  B  =  =  O  V  V  B  =  =
    float8_e4m3fnuz      r  m  B  =  =  O  V  V  B  =  =
    float8_e5m2          r  m  B  =  =  O  V  V  B  =  =
    float8_e5m2fnuz      r  m  B  =  =  O  V  V  B  =  =
    float8_e8m0fnu       r  m  B  =  =  O  V  V  B  =  =
    float6_e2m3fn        r  B  B  B  R  O  V  V  B  =  =
    float6_e3m2fn        r  B  B  B  R  O  V  V  B  =  =
    float4_e2m1fn        r  B  B  B  ~  O  V  V  B  =  =
    float4_e2m1fn_x2     r  B  B  =  R  O  T  T  B  =  =
    int2                 r  B  B  B  R  O  V  V  B  =  =
    int4                 r  B  B  B  R  O  V  V  B  =  =
    uint2                r  B  B  B  R  O  V  V  B  =  =
    uint4                r  B  B  B  R  O  V  V  B  =  =
    opaque_handle64      r  B  B  B  R  O  V  V  B  =  =
    float6_e2m3fn+pad    r  m  B  B  r  B  V  V  B  B  B
    float6_e3m2fn+pad    r  m  B  B  r  B  V  V  B  B  B
    float4_e2m1fn+pad    r  m  B  B  r  B  V  V  B  B  B
    int2+pad             r  m  B  B  r  B  V  V  B  B  B
    int4+pad             r  m  B  B  r  B  V  V  B  B  B
    uint2+pad            r  m  B  B  r  B  V  V  B  B  B
    uint4+pad            r  m  B  B  r  B  V  V  B  B  B
""")

# Torch has no negative strides; JAX wants compact ones and TensorFlow row-major ones; a pyarrow.Array is one axis, a
# pyarrow.Buffer all bytes in a row.
LAYOUTS = parse("""
    0-d                  =  =  =  =  =  =  V  =  =  =  =
    1-d                  =  =  =  =  =  =  =  =  =  =  =
    2-d                  =  =  =  =  =  =  V  =  =  =  =
    3-d                  =  =  =  =  =  =  V  =  =  =  =
    empty                0  0  0  0  0  0  0  0  0  0  0
    empty, 3-d           0  0  0  0  0  0  V  0  0  0  0
    sliced               =  =  =  =  R  O  V  =  B  =  =
    transposed           =  =  =  =  =  O  V  =  =  =  =
    negative             =  =  =  R  R  O  V  V  B  =  =
    broadcast            =  =  =  =  R  O  V  =  B  =  =
    extents of 1         =  =  =  =  =  =  V  V  =  =  =
    padded rows          =  =  =  =  R  O  V  =  B  =  =
    offset               =  =  =  =  c  =  =  =  =  =  =
    read-only            =  =  =  =  b  B  =  =  =  =  =
    read-only, 0-d       =  =  =  =  b  B  V  =  =  =  =
    read-only, empty     0  0  0  0  b  B  0  0  0  0  0
    read-only, sliced    =  =  =  =  r  B  V  =  B  =  =
""")
FIELDS = {
    "0-d": {"shape": ()},
    "1-d": {"shape": (6,)},
    "2-d": {"shape": (3, 4)},
    "3-d": {"shape": (2, 3, 4)},
    "empty": {"shape": (0,)},
    "empty, 3-d": {"shape": (3, 0, 2)},
    "sliced": {"shape": (2, 3), "strides": (8, 2)},
    "transposed": {"shape": (3, 2), "strides": (1, 3)},
    "negative": {"shape": (2, 3), "strides": (-3, -1), "byte_offset": 20},
    "broadcast": {"shape": (2, 3), "strides": (0, 1)},
    "extents of 1": {"shape": (1, 3, 1), "strides": (77, 1, -5)},
    "padded rows": {"shape": (2, 3), "strides": (16, 1)},
    "offset": {"shape": (3,), "byte_offset": 4},
    "read-only": {"shape": (6,), "readonly": True},
    "read-only, 0-d": {"shape": (), "readonly": True},
    "read-only, empty": {"shape": (0,), "readonly": True},
    "read-only, sliced": {"shape": (3,), "strides": (2,), "readonly": True},
}

PATTERN = bytes(i * 37 % 256 for i in range(512))


def fields_of(row: str) -> tuple[str, int, dict[str, Any]]:
    """Of a row of DTYPES: the type's name, the bits of a byte it uses, and the fields of a tensor of 24 elements."""
    dtype, _, padded = row.partition("+")
    mask = 1 if dtype == "bool" else 0x0F if padded else 0xFF
    data = bytes(b & mask for b in PATTERN[: 24 * 16])
    return dtype, mask, {"shape": (24,), "dtype": dtype, "data": data, "padded": bool(padded)}


# --- trying -----------------------------------------------------------------------------------------


def attempt(take: Callable[[Any], Any], obj: Any) -> tuple[Any, tuple[str, ...] | None]:
    """The view, or the names of the classes of the exception: nothing of the exception itself is kept."""
    try:
        return take(obj), None
    except Exception as e:
        return None, tuple(c.__name__ for c in type(e).__mro__)


def try_out(door: Consumer, obj: Any, said: tenon.Tensor, letter: str, dtype: str, take: Any = None) -> Any:
    """One cell: the view a library made and what it says of it, or None and None after the right refusal.

    `said` is a Tensor over the memory in question, `take` another way than the door's own.
    """
    shares, exceptions = LETTERS[letter]
    if letter == "m" and not (has("ml_dtypes") and hasattr(need("ml_dtypes"), dtype)):
        shares, exceptions = False, ("BufferError",)
    if door.library == "torch" and min(said.strides, default=0) < 0 and not torch_survives_negative_strides():
        pytest.skip("this PyTorch ends the process for negative strides")
    view, refusal = attempt(take or door.take, obj)
    if refusal is not None:
        assert set(refusal) & set(exceptions), f"refused: {refusal[0]}"
        return None, None
    assert shares, f"accepted: {view!r}"
    look = door.look(view)
    assert look.dtype in (dtype, None)
    assert look.shape in (said.shape, None)
    may_copy = letter == "c" or (door.name == "jax" and said.data_ptr % 64 != 0)
    if said.size and not may_copy:
        assert look.address == said.data_ptr
    if door.name == "jax" and not said.is_contiguous and not jax_reads_strides():
        pytest.skip("this JAX does not look at strides")
    return view, look


@functools.cache
def torch_survives_negative_strides() -> bool:
    """Until 2.14 it aborted (pytorch#188023): tried in a process of its own."""
    code = ("import tenon_exports, torch\n"
            "try: torch.from_dlpack(tenon_exports.produce(tenon_exports.Counter(), shape=(2,), strides=(-1,), byte_offset=4))\n"
            "except Exception: pass")
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def installed() -> list[str]:
    """The consumers whose library is here. Imports none."""
    return [n for n, c in CONSUMERS.items() if c.library == "builtins" or has(c.library)]
