# tests/python/awkward.py: a table of arrays that are hard to hand over, and what each library really does with them.
"""Used in child processes by test_explain.py: every function here ends in an answer that can be printed."""

from __future__ import annotations

import array
import ctypes
import functools
import importlib
import mmap
import os
import sys
from collections.abc import Callable
from typing import Any

from real_consumers import CONSUMERS
from real_support import has, raw, struct_in

import tenon
from tenon import _core

# Name: the library it needs, and what makes the object.
AWKWARD: dict[str, tuple[str, Callable[[], Any]]] = {}


def awkward(library: str, **makers: Callable[[], Any]) -> None:
    for name, make in makers.items():
        key = f"{library}: {name.replace('_', ' ')}"
        assert key not in AWKWARD, key
        AWKWARD[key] = (library, make)


def load(module: str) -> Any:
    return importlib.import_module(module)


# --- memory of our own, of every type, layout, address and place ------------------------------------

ROOM = (ctypes.c_char * 16384)()
BASE = (ctypes.addressof(ROOM) + 8191) // 4096 * 4096
assert BASE + 4096 <= ctypes.addressof(ROOM) + len(ROOM)
PATTERN = bytes(i * 37 % 251 for i in range(4096))


def memory(
    shape: tuple[int, ...] = (6,),
    dtype: Any = "float32",
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    readonly: bool = False,
    padded: bool = False,
    device: str = "cpu",
) -> tenon.Tensor:
    ctypes.memmove(BASE - 2048, bytes(b % 2 for b in PATTERN) if dtype == "bool" else PATTERN, 4096)
    triple = tenon.dtype(dtype).triple
    where = tenon.device(device).pair
    return _core.from_pointer(BASE + offset, shape, strides, triple, where, readonly, padded, ROOM, None)


def memories(prefix: str, rows: dict[str, dict[str, Any]]) -> None:
    for name, fields in rows.items():
        AWKWARD[f"{prefix}: {name}"] = ("builtins", lambda fields=fields: memory(**fields))


DTYPES = [name for name, *_ in _core.DTYPES]
LAYOUTS: dict[str, dict[str, Any]] = {
    "0-d": {"shape": ()},
    "1-d": {"shape": (6,)},
    "2-d": {"shape": (3, 4)},
    "3-d": {"shape": (2, 3, 4)},
    "empty": {"shape": (0,)},
    "empty, 3-d": {"shape": (3, 0, 2)},
    "empty, odd strides": {"shape": (0, 3), "strides": (7, 2)},
    "empty, backwards": {"shape": (0,), "strides": (-1,)},
    "sliced": {"shape": (6,), "strides": (2,)},
    "sliced twice": {"shape": (2, 3), "strides": (8, 2)},
    "padded rows": {"shape": (2, 3), "strides": (16, 1)},
    "column-major": {"shape": (3, 2), "strides": (1, 3)},
    "permuted": {"shape": (2, 3, 4), "strides": (4, 8, 1)},
    "backwards": {"shape": (4,), "strides": (-1,)},
    "rows backwards": {"shape": (2, 3), "strides": (-3, 1)},
    "columns backwards": {"shape": (2, 3), "strides": (3, -1)},
    "one element, backwards": {"shape": (1,), "strides": (-1,)},
    "extents of 1": {"shape": (1, 3, 1), "strides": (77, 1, -5)},
    "extents of 1, odd": {"shape": (1, 3, 1), "strides": (77, 1, 5)},
    "repeated": {"shape": (4,), "strides": (0,)},
    "rows repeated": {"shape": (2, 3), "strides": (0, 1)},
    "columns repeated": {"shape": (2, 3), "strides": (1, 0)},
    "overlapping": {"shape": (3, 3), "strides": (1, 1)},
}
memories("dtype", {name: {"dtype": name, "shape": (8,)} for name in DTYPES})
memories("dtype, 2-d", {name: {"dtype": name, "shape": (4, 4)} for name in DTYPES})
memories(
    "dtype, padded",
    {name: {"dtype": name, "padded": True} for name in DTYPES if tenon.dtype(name).bits < 8},
)
memories(
    "dtype without a name",
    {str(t): {"dtype": t} for t in [(0, 128, 1), (2, 128, 1), (2, 32, 4), (0, 8, 3), (1, 1, 1), (6, 1, 1)]},
)
memories("layout", LAYOUTS)
memories("read-only", {name: {**fields, "readonly": True} for name, fields in LAYOUTS.items()})
memories("bytes", {name: {**LAYOUTS[name], "dtype": "uint8"} for name in ("sliced", "backwards", "0-d")})
memories("float64", {name: {**LAYOUTS[name], "dtype": "float64"} for name in ("sliced", "column-major", "0-d")})
memories("axes", {str(n): {"shape": (1,) * (n - 2) + (2, 3)} for n in (5, 8, 9, 10, 32, 33, 64)})
memories("offset", {f"{n} of int8": {"dtype": "int8", "offset": n} for n in (1, 3, 16, 32, 64)})
memories("offset", {f"{n} of float32": {"offset": n} for n in (4, 8, 16, 32, 64, 128)})
memories("offset", {f"{n} of float64": {"dtype": "float64", "offset": n} for n in (8, 16, 32, 64)})
memories("offset", {f"{n} of complex128": {"dtype": "complex128", "offset": n} for n in (8, 16, 64)})
memories("offset", {"0-d": {"shape": (), "offset": 4}, "empty": {"shape": (0,), "offset": 4}})
memories("offset", {"column-major": {**LAYOUTS["column-major"], "offset": 8}})
memories("offset", {"read-only": {"readonly": True, "offset": 8}})
#: Where there is a GPU, memory that is said to be managed is shown to it, and this is none.
HAS_GPU = os.path.exists("/dev/nvidiactl")
memories("place", {kind: {"device": kind} for kind in ("cuda_host", "rocm_host")})
memories("place", {kind: {"device": kind} for kind in ("cuda_managed",) if not HAS_GPU})

# Handed over by `Tensor.to` only, which must know better: some libraries end the process for these.
#: There is nothing to be found on these devices, unless the machine has one.
NOWHERE = [] if HAS_GPU else ["cuda:0", "opencl:0", "metal:0", "vulkan:0", "ext_dev:0"]
memories("nowhere", {kind: {"device": kind} for kind in NOWHERE})


# --- what the libraries make ------------------------------------------------------------------------


def np_array(**how: Any) -> Any:
    return load("numpy").arange(12, **how)


def misaligned() -> Any:
    np = load("numpy")
    return np.frombuffer(bytearray(65), np.uint8)[1:].view(np.float64)


def masked() -> Any:
    np = load("numpy")
    return np.ma.masked_array(np.arange(4.0), [False, True, False, False])


awkward(
    "numpy",
    array=lambda: np_array(dtype="f4"),
    array_of_float64=lambda: np_array(dtype="f8"),
    backwards=lambda: np_array(dtype="f4")[::-1],
    transposed=lambda: np_array(dtype="f4").reshape(3, 4).T,
    broadcast=lambda: load("numpy").broadcast_to(np_array(dtype="f4"), (2, 12)),
    scalar=lambda: load("numpy").float32(3),
    matrix=lambda: load("numpy").matrix([[1.0, 2.0]]),
    misaligned=misaligned,
    big_endian=lambda: np_array(dtype=">f4" if sys.byteorder == "little" else "<f4"),
    masked=masked,
    structured=lambda: load("numpy").zeros(3, [("a", "u1"), ("b", "f4")]),
    field_of_a_structure=lambda: load("numpy").zeros(3, [("a", "u1"), ("b", "f4")])["b"],
    aligned_field_of_a_structure=lambda: load("numpy").zeros(3, [("a", "f4"), ("b", "f8")])["a"],
    records=lambda: load("numpy").rec.array(load("numpy").zeros(3, [("a", "f4")])),
    objects=lambda: load("numpy").array([1, 2.5], object),
    datetimes=lambda: load("numpy").array(["2020-01-01"], "M8[s]"),
    timedeltas=lambda: load("numpy").array([1], "m8[s]"),
    long_doubles=lambda: np_array(dtype="g"),
    complex_long_doubles=lambda: np_array(dtype="i8").astype("G"),
    bytes=lambda: load("numpy").array([b"ab", b"c"]),
    strings=lambda: load("numpy").array(["ab", "c"]),
    strings_of_any_length=lambda: load("numpy").array(["ab", "c"], load("numpy").dtypes.StringDType()),
    void=lambda: load("numpy").zeros(3, "V4"),
)
awkward(
    "ml_dtypes",
    bfloat16=lambda: np_array(dtype="f4").astype(load("ml_dtypes").bfloat16),
    float8=lambda: np_array(dtype="f4").astype(load("ml_dtypes").float8_e5m2),
    int4=lambda: (np_array(dtype="i1") % 7).astype(load("ml_dtypes").int4),
)


def fake() -> Any:
    torch = load("torch")
    return load("torch._subclasses").FakeTensorMode().from_tensor(torch.ones(3))


awkward(
    "torch",
    tensor=lambda: load("torch").arange(12.0),
    transposed=lambda: load("torch").arange(12.0).reshape(3, 4).T,
    expanded=lambda: load("torch").arange(3.0).expand(2, 3),
    bfloat16=lambda: load("torch").ones(3, dtype=load("torch").bfloat16),
    needs_gradient=lambda: load("torch").ones(3, requires_grad=True),
    needs_gradient_by_its_history=lambda: load("torch").ones(3, requires_grad=True) * 2,
    parameter=lambda: load("torch").nn.Parameter(load("torch").ones(3)),
    conjugate=lambda: load("torch").ones(3, dtype=load("torch").complex64).conj(),
    negative_view=lambda: load("torch").ones(3, dtype=load("torch").complex64).conj().imag,
    sparse=lambda: load("torch").eye(3).to_sparse(),
    sparse_rows=lambda: load("torch").eye(3).to_sparse_csr(),
    meta=lambda: load("torch").ones(3, device="meta"),
    quantized=lambda: load("torch").quantize_per_tensor(load("torch").ones(3), 0.1, 0, load("torch").quint8),
    nested=lambda: load("torch").nested.nested_tensor([load("torch").ones(2), load("torch").ones(3)]),
    mkldnn=lambda: load("torch").ones(3).to_mkldnn(),
    bits=lambda: load("torch").empty(3, dtype=load("torch").bits8),
    fake=fake,
)


def deleted() -> Any:
    x = load("jax.numpy").ones(3)
    x.delete()
    return x


def traced() -> Any:
    seen = []
    load("jax").jit(lambda x: seen.append(x) or x)(1.0)
    return seen[0]


def spread(*axes: str) -> Any:
    jax, sharding = load("jax"), load("jax.sharding")
    assert len(jax.devices()) > 1
    mesh = sharding.Mesh(load("numpy").array(jax.devices()), ("x",))
    return jax.device_put(jax.numpy.arange(8.0), sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes)))


awkward(
    "jax",
    array=lambda: load("jax.numpy").arange(12.0),
    bfloat16=lambda: load("jax.numpy").ones(3, dtype="bfloat16"),
    int4=lambda: load("jax.numpy").ones(4, dtype="int4"),
    key=lambda: load("jax").random.key(0),
    shape_only=lambda: load("jax").ShapeDtypeStruct((3,), "float32"),
    deleted=deleted,
    traced=traced,
    sharded=lambda: spread("x"),
    replicated=lambda: spread(),
)


def symbolic() -> Any:
    tf, seen = load("tensorflow"), []
    tf.function(lambda x: seen.append(x) or x)(tf.ones(3))
    return seen[0]


awkward(
    "tensorflow",
    tensor=lambda: load("tensorflow").range(12.0),
    strings=lambda: load("tensorflow").constant(["1", "2"]),
    variable=lambda: load("tensorflow").Variable([1.0, 2.0]),
    ragged=lambda: load("tensorflow").ragged.constant([[1.0], [2.0, 3.0]]),
    sparse=lambda: load("tensorflow").sparse.from_dense([[1.0, 0.0]]),
    variant=lambda: load("tensorflow").data.Dataset.range(3)._variant_tensor,
    symbolic=symbolic,
)
awkward(
    "paddle",
    tensor=lambda: load("paddle").arange(12, dtype="float32"),
    needs_gradient=lambda: load("paddle").to_tensor([1.0], stop_gradient=False),
    bfloat16=lambda: load("paddle").ones([3], dtype="bfloat16"),
    sparse=lambda: load("paddle").ones([3, 3]).to_sparse_coo(2),
)
awkward(
    "pandas",
    series=lambda: load("pandas").Series([1.0, 2.0]),
    series_with_gaps=lambda: load("pandas").Series([1, None], dtype="Int64"),
    index=lambda: load("pandas").Index([1, 2]),
    table=lambda: load("pandas").DataFrame({"a": [1.0, 2.0]}),
    strings=lambda: load("pandas").Series(["a", "b"]),
    objects=lambda: load("pandas").Series(["a", "b"], dtype="object"),
    categories=lambda: load("pandas").Series(["a", "b"], dtype="category"),
    times=lambda: load("pandas").Series(load("pandas").to_datetime(["2020-01-01", None])),
    times_of_a_zone=lambda: load("pandas").date_range("2020-01-01", periods=2, tz="UTC"),
    durations=lambda: load("pandas").Series(load("pandas").to_timedelta([1, 2])),
)
awkward(
    "polars",
    series=lambda: load("polars").Series([1.0, 2.0]),
    series_with_gaps=lambda: load("polars").Series([1, None]),
    table=lambda: load("polars").DataFrame({"a": [1.0, 2.0]}),
    strings=lambda: load("polars").Series(["a", "b"]),
    bools=lambda: load("polars").Series([True, False]),
    times=lambda: load("polars").Series([1, 2]).cast(load("polars").Datetime("us")),
)
awkward(
    "pyarrow",
    array=lambda: load("pyarrow").array([1.0, 2.0]),
    array_with_gaps=lambda: load("pyarrow").array([1.0, None]),
    bools=lambda: load("pyarrow").array([True, False]),
    strings=lambda: load("pyarrow").array(["a"]),
    times=lambda: load("pyarrow").array([1], load("pyarrow").timestamp("s")),
    dates=lambda: load("pyarrow").array([1], load("pyarrow").date32()),
    decimals=lambda: load("pyarrow").array([1], load("pyarrow").decimal128(3)),
    dictionary=lambda: load("pyarrow").array(["a"]).dictionary_encode(),
    dictionary_of_numbers=lambda: load("pyarrow").array([1, 2]).dictionary_encode(),
    runs=lambda: load("pyarrow.compute").run_end_encode(load("pyarrow").array([1, 1, 2])),
    intervals=lambda: load("pyarrow").array([(1, 2, 3)], load("pyarrow").month_day_nano_interval()),
    times_with_gaps=lambda: load("pyarrow").array([1, None], load("pyarrow").timestamp("s")),
    rows_with_gaps=lambda: load("pyarrow").array([[1, 2], None], load("pyarrow").list_(load("pyarrow").int32(), 2)),
    rows_of_gaps=lambda: load("pyarrow").array([[1, None]], load("pyarrow").list_(load("pyarrow").int32(), 2)),
    chunks=lambda: load("pyarrow").chunked_array([[1, 2], [3]]),
    chunk_with_gaps=lambda: load("pyarrow").chunked_array([[1, None]]),
    chunk_of_bools=lambda: load("pyarrow").chunked_array([[True, False]]),
    chunk_of_strings=lambda: load("pyarrow").chunked_array([["a"]]),
    chunks_of_times=lambda: load("pyarrow").chunked_array([[1], [2, None]], load("pyarrow").duration("s")),
    scalar=lambda: load("pyarrow").scalar(3),
    type=lambda: load("pyarrow").int32(),
    schema=lambda: load("pyarrow").schema([]),
    table=lambda: load("pyarrow").table({"a": [1.0]}),
    buffer=lambda: load("pyarrow").py_buffer(b"abc"),
)


def released() -> memoryview:
    m = memoryview(b"abc")
    m.release()
    return m


def closed() -> mmap.mmap:
    m = mmap.mmap(-1, 10)
    m.close()
    return m


def behind_pointers() -> Any:
    testbuffer = load("_testbuffer")
    return testbuffer.ndarray([1, 2, 3, 4], shape=[2, 2], format="i", flags=testbuffer.ND_PIL)


awkward(
    "builtins",
    bytes=lambda: b"abc",
    no_bytes=lambda: b"",
    bytearray=lambda: bytearray(b"abc"),
    array=lambda: array.array("d", [1.0, 2.0]),
    array_of_characters=lambda: array.array("u", "ab"),
    ctypes_array=lambda: (ctypes.c_double * 3)(),
    ctypes_structure=lambda: type("S", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int)]})(),
    ctypes_of_another_order=lambda: (ctypes.c_int.__ctype_be__ * 3)(),
    list=lambda: [1.0, 2.0],
    number=lambda: 3.5,
    nothing=lambda: None,
    string=lambda: "abc",
    the_class_itself=lambda: bytes,
    released=released,
    closed=closed,
)
if has("_testbuffer"):
    awkward("_testbuffer", behind_pointers=behind_pointers)


# --- what really happens ----------------------------------------------------------------------------


def take_paddle(t: Any) -> Any:
    return load("paddle").from_dlpack(t)


def for_reading(t: Any) -> Any:
    """As for a library that never writes: a legacy struct may carry what is read-only."""
    return _core.relaxed(t) if t.readonly else t


def take_jax(t: Any) -> Any:
    return load("jax.numpy").from_dlpack(for_reading(t))


def take_pyarrow(t: Any) -> Any:
    pyarrow = load("pyarrow")
    if t.device.kind != "cpu":
        raise BufferError("pyarrow takes it for memory of the CPU")
    if t.ndim == 1 and t.is_contiguous:
        return pyarrow.array(t)
    if hasattr(pyarrow.Tensor, "from_dlpack"):
        return CONSUMERS["pa.Tensor"].take(t)
    if t.dtype == "bool":
        raise BufferError("pyarrow makes bits or other numbers of them")
    return pyarrow.Tensor.from_numpy(t.__array__())


def take_cuda_core(t: Any) -> Any:
    """A view, which says its shape when it is asked."""
    view = load("cuda.core.utils").StridedMemoryView.from_any_interface(t, stream_ptr=-1)
    assert view.shape == t.shape
    return view


def address_of(array_: Any, target: str) -> int:
    """Asked of the library itself, in another way than the package does it."""
    if target == "cuda.core":
        return int(array_.ptr)
    if target in ("torch", "paddle", "tvm_ffi"):
        return int(array_.data_ptr())
    if target == "jax":
        return int(array_.unsafe_buffer_pointer())
    if target in ("numpy", "numba"):
        return int(array_.ctypes.data)
    if target == "tensorflow":
        description = struct_in(load("tensorflow").experimental.dlpack.to_dlpack(array_)).dl_tensor
        return int(description.data) + description.byte_offset
    assert target == "pyarrow"
    if isinstance(array_, load("pyarrow").Array):
        return int(array_.buffers()[1].address)
    return int(array_.to_numpy().ctypes.data)


DOORS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda t: load("numpy").asarray(t),
    "numba": lambda t: load("numpy").asarray(t),
    "torch": lambda t: load("torch").from_dlpack(t),
    "jax": take_jax,
    "tensorflow": lambda t: CONSUMERS["tensorflow"].take(for_reading(t)),
    "paddle": take_paddle,
    "tvm_ffi": CONSUMERS["tvm_ffi"].take,
    "pyarrow": take_pyarrow,
    "cuda.core": take_cuda_core,
}


def shown_by(array_: Any, target: str, t: tenon.Tensor) -> bytes | None:
    """The elements' bytes, row by row, as the library reads them. None: it cannot say."""
    if target in ("tvm_ffi", "cuda.core"):
        return None
    if target == "torch":
        torch = load("torch")
        plain = torch.empty(array_.shape, dtype=array_.dtype).copy_(array_)  # with no odd strides left
        return bytes(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    if target == "pyarrow" and isinstance(array_, load("pyarrow").Array):
        return bytes(array_.to_numpy(zero_copy_only=True).tobytes())
    if target in ("paddle", "tensorflow"):
        return bytes(array_.numpy().tobytes())
    if target == "pyarrow":
        return bytes(array_.to_numpy().tobytes())
    return bytes(load("numpy").asarray(array_).tobytes())


def what_happens(obj: Any, target: str, take: Callable[[tenon.Tensor], Any]) -> tuple[str, str]:
    """The outcome, and whose words for it."""
    try:
        t = tenon.asdlpack(obj)
        made = take(t)
    except Exception as e:
        return "refused", f"{type(e).__name__}: {e}"
    try:
        if t.size == 0:
            return "shared", ""
        outcome = "shared" if address_of(made, target) == t.data_ptr else "copied"
        shown = shown_by(made, target, t)
    except Exception as e:
        return "refused", f"cannot be read: {type(e).__name__}: {e}"
    narrowed = outcome == "copied" and target == "jax" and made.dtype.itemsize < t.itemsize
    if shown is not None and shown != raw(t) and not narrowed:
        return "refused", "shows other numbers"
    return outcome, ""


def said(name: str, target: str) -> tuple[str, str, str, tuple[str, ...]]:
    answer = tenon.explain(made(name), target)
    assert bool(answer) is answer.zero_copy is (answer.outcome == "shared")
    assert answer.target == target
    return answer.outcome, answer.reason, answer.fix, answer.notes


# What a library shares and does not survive, and what becomes of it instead: test_what_ends_the_process_later tries it.
DEADLY: dict[str, tuple[Callable[[tenon.Tensor], bool], str]] = {
    "tensorflow": (lambda t: t.size > 0 and t.data_ptr % 64 != 0, "copied"),
    "torch": (lambda t: t.dtype == "complex128" and t.data_ptr % 16 != 0, "refused"),
    "paddle": (lambda t: t.dtype == "complex128" and t.data_ptr % 16 != 0, "refused"),
}


@functools.lru_cache(maxsize=1)
def made(name: str) -> Any:
    """One object for all the questions about it: where its memory lies is chance."""
    return AWKWARD[name][1]()


def by_the_door(name: str, target: str) -> tuple[str, str]:
    """As the library does it alone."""
    outcome, words = what_happens(made(name), target, DOORS[target])
    if outcome == "shared" and target in DEADLY:
        kills, instead = DEADLY[target]
        if kills(tenon.asdlpack(made(name))):
            return instead, "or the process ends later"
    return outcome, words


def computed_by(target: str, offset: int, dtype: str) -> str:
    """What a library computes over the memory itself: ends the process, or returns a word."""
    apart = 1 if target == "tensorflow" else 2
    view = DOORS[target](memory(shape=(16,), dtype=dtype, strides=(apart,), offset=offset))
    results = [view + view, view * view]
    if target != "tensorflow":
        results += [view.clone(), view.contiguous(), view.sum()]
    return type(results[-1]).__name__


def by_to(name: str, target: str) -> tuple[str, str]:
    return what_happens(made(name), target, lambda t: t.to(target))


def fixed(name: str, target: str) -> tuple[str, list[str]]:
    """Does what `explain` says helps, again and again: how it ends, and what was done. "told": it was no code."""
    try:
        return _fix(made(name), target)
    finally:
        if "jax" in sys.modules:  # a fix may have turned it on
            load("jax").config.update("jax_enable_x64", False)


NAMED_IN_FIXES = ("numpy", "torch", "jax", "tensorflow", "pyarrow", "tenon")


def _fix(obj: Any, target: str) -> tuple[str, list[str]]:
    done: list[str] = []
    while not (answer := tenon.explain(obj, target)):
        done.append(answer.fix)
        assert len(done) <= 4, done
        try:
            code = compile(answer.fix, "fix", "eval")
        except SyntaxError:
            return "told", done
        names = {name: load(name) for name in code.co_names if name in NAMED_IN_FIXES}
        result = eval(code, {**names, "obj": obj})
        obj = obj if result is None else result
    return what_happens(obj, target, DOORS[target])[0], done
