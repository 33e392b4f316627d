# python/tenon/_libraries.py: array libraries as places for a Tensor: what the one table says, and what must be code.
"""Array libraries."""

from __future__ import annotations

import functools
import importlib
import operator
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, NamedTuple

from tenon._core import (
    GRADIENT_WARNING,
    LIBRARIES as _ROWS,
    Tensor,
    as_like,
    asdlpack,
    device_of,
    dtype_of,
    leaves_as_legacy,
    relaxed,
    requires_grad,
)
from tenon._limits import (
    GPUS,
    PLAIN,
    WIDE,
    Condition,
    Fix,
    Limit,
    cast_it,
    cast_or_split_it,
    copy_it,
    dtype_in,
    dtype_name,
    flatten_it,
    has_more_axes_than,
    has_negative_strides,
    has_parts_of_bytes,
    is_complex,
    is_not_compact,
    is_not_row_major,
    is_off,
    kind_of_device,
    loaded,
    move_to_cpu,
    move_to_cuda,
    numpy_has_no_such,
    other_device_than,
    other_dtype_than,
    say,
    version_of,
)
from tenon._memory import is_padded

_CPU = (1, 0)


class Library(NamedTuple):
    """An array library as a place to hand tensors to."""

    name: str
    #: What is imported for it; empty for a module that the user has in hand.
    module: str
    #: Its array over the same memory, or whatever it raises.
    take: Callable[[Tensor], Any]
    #: Where the first element of its array is, on the device the array is on.
    address: Callable[[Any], int]
    #: What is installed for it, if that has another name.
    distribution: str = ""
    #: What it does not take. The first that applies is the reason that is given.
    limits: tuple[Limit, ...] = ()
    #: What is worth knowing of what it does take: when, and a sentence.
    notes: tuple[tuple[Condition, str], ...] = ()
    #: It has no read-only arrays: it takes read-only memory, and lets it be written to.
    forgets_readonly: bool = False
    #: It has none on a GPU.
    forgets_readonly_on_gpu: bool = False
    #: On a GPU it writes to memory of others when the array it made of it is donated (seen with jax 0.11; on the CPU it
    #: makes a copy then). Memory that came from such a library it would treat so without us.
    donates_on_gpu: bool = False
    #: What memory must be aligned to for `is_ordinary_for`.
    alignment: int = 16

    def is_ordinary_for(self, t: Tensor) -> bool:
        """Whether it is so ordinary that no limit can apply of those the library does not notice. Quick."""
        return (
            t.is_contiguous
            and device_of(t) == _CPU
            and dtype_of(t) in _ORDINARY
            and t.data_ptr % self.alignment == 0
        )

    def forgets(self, t: Tensor) -> bool:
        """Whether it would let the tensor be written to if it were read-only."""
        return self.forgets_readonly or (self.forgets_readonly_on_gpu and kind_of_device(t) in GPUS)

    def warning_on(self, t: Tensor) -> str:
        """What to say when it is given a read-only tensor; empty if it never writes to one."""
        if self.forgets(t):
            if self.name == "torch" and requires_grad(t):
                return GRADIENT_WARNING
            return (
                f"{self.name} has no read-only tensors: writing to this one writes to memory that must not be "
                "written to; pass copy=True for memory of its own"
            )
        if self.donates_on_gpu and kind_of_device(t) in GPUS and not leaves_as_legacy(t):
            return (
                f"{self.name} writes to arrays that are donated: donating this one writes to memory that must not be "
                "written to; pass copy=True for memory of its own"
            )
        return ""

    def limit_on(self, t: Tensor, *, unnoticed: bool = False) -> Limit | None:
        """The limit that decides what becomes of a tensor; only of those the library does not notice, if asked."""
        copied = None
        for limit in self.limits:
            if (unnoticed and not limit.unnoticed) or not self._is_current(limit) or not limit.applies(t):
                continue
            if limit.outcome == "refused":
                return limit
            copied = copied or limit
        return copied

    def is_installed(self) -> bool:
        """Whether it can be imported. Does not import it."""
        if not self.module or loaded(self.module) is not None:
            return True
        try:
            return importlib.import_module("importlib.util").find_spec(self.module) is not None
        except ModuleNotFoundError:  # of the package it is in
            return False

    def _is_current(self, limit: Limit) -> bool:
        if limit.until is None:
            return True
        installed = version_of(self.module, self.distribution or self.module)
        return installed is not None and installed < limit.until


#: Element types that every library has, or says that it has not.
_ORDINARY = PLAIN - {"bool"}


def load(library: Library, submodule: str = "") -> Any:
    """The library's module, imported; ImportError says what to install."""
    wanted = library.module + submodule
    if (there := sys.modules.get(wanted)) is not None:
        return there
    try:
        return importlib.import_module(wanted)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{library.module}.".startswith(f"{e.name}."):
            raise  # it is there, and misses something
        distribution = library.distribution or library.module
        raise ModuleNotFoundError(
            f"tenon: {library.name} is not installed; pip install {distribution}", name=library.module
        ) from e


# --- how each takes a Tensor ------------------------------------------------------------------------


def _from_dlpack_of(name: str, given: Callable[[Tensor], Any] = lambda t: t) -> Callable[[Tensor], Any]:
    """By the function the table names, which is given the Tensor, or what is made of it."""
    function_of = operator.attrgetter(_ROWS[name]["from_dlpack"].partition(".")[2])
    return lambda t: function_of(load(LIBRARIES[name]))(given(t))


def _take_numpy(t: Tensor) -> Any:
    load(LIBRARIES["numpy"])
    return t.__array__()


def _take_torch(t: Tensor) -> Any:
    torch = load(LIBRARIES["torch"])
    model = _torch_model(torch)
    return as_like(t, model) if model is not None else torch.from_dlpack(relaxed(t))


@functools.cache
def _torch_model(torch: Any) -> Any:
    """A tensor to be like, which takes a third of the time; None before 2.10, which has no exchange table."""
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return None
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():  # whatever mode is in force, a plain one
        return torch.empty(0, device="cpu")


def _for_reading(t: Tensor) -> Tensor:
    """For a library that never writes to what it is given: it takes legacy capsules alone, which cannot say "read-only"."""
    return relaxed(t) if t.readonly else t


def _legacy_capsule(t: Tensor) -> Any:
    return _for_reading(t).__dlpack__()


def _take_pyarrow(t: Tensor) -> Any:
    """An Array if it has one axis and no gaps, else a Tensor."""
    pyarrow = load(LIBRARIES["pyarrow"])
    if t.ndim == 1 and t.is_contiguous:
        return pyarrow.array(t)
    if hasattr(pyarrow.Tensor, "from_dlpack"):
        return pyarrow.Tensor.from_dlpack(t)
    return pyarrow.Tensor.from_numpy(t.__array__())  # before 26


def _take_numba(t: Tensor) -> Any:
    numba = load(LIBRARIES["numba"])
    if kind_of_device(t) == "cuda":
        return importlib.import_module(f"{numba.__name__}.cuda").as_cuda_array(t)
    return t.__array__()  # on the host Numba's arrays are NumPy's


def _take_cuda_core(t: Tensor) -> Any:
    """A view. It knows no current stream: the default one is made to wait for what has been queued."""
    views = load(LIBRARIES["cuda.core"], ".utils").StridedMemoryView
    return views.from_dlpack(t, stream_ptr=-1 if kind_of_device(t) == "cpu" else _DEFAULT_STREAM)


_DEFAULT_STREAM = 1


# --- where their memory is --------------------------------------------------------------------------


def _address_as_dlpack(array: Any) -> int:
    return asdlpack(array).data_ptr


def _address_as_interface(array: Any) -> int:
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])


# --- whether they reach the GPU ---------------------------------------------------------------------


def _finds_gpu(sees_one: Callable[[Any], bool], module: str) -> bool:
    """Imports the library: there is no other way to know. One that is not there may find one."""
    try:
        return sees_one(importlib.import_module(module))
    except ImportError:
        return True  # which says all there is to say


def _torch_sees_one(torch: Any) -> bool:
    return bool(torch.cuda.is_available())


def _jax_sees_one(jax: Any) -> bool:
    try:
        return bool(jax.devices("cuda"))
    except RuntimeError:
        return False


def _cuda_only_if(
    name: str, sees_one: Callable[[Any], bool], *, module: str = "", kinds: tuple[str, ...] = ("cuda",)
) -> Limit:
    return Limit(
        lambda t: kind_of_device(t) in kinds and not _finds_gpu(sees_one, module or name),
        f"it is on {{t.device}}, and this {name} finds no GPU",
        move_to_cpu,
        unnoticed=True,
    )


def _words(name: str, field: Literal["devices", "more_types", "fewer_types"]) -> frozenset[str]:
    return frozenset(_ROWS[name][field].split())


def _devices(name: str, fix: Fix = move_to_cpu, called: str = "") -> Limit:
    return Limit(
        other_device_than(_words(name, "devices")),
        f"it is on {{t.device}}, and {called or name} has nothing there",
        fix,
        unnoticed=True,
    )


def _managed_to_cuda(sees_one: Callable[[Any], bool], module: str) -> Fix:
    """Managed memory is shown as the GPU's to a library that finds one; everything else goes to the CPU."""

    def fix(obj: object, t: Tensor) -> str:
        is_managed = kind_of_device(t) == "cuda_managed"
        return move_to_cuda(obj, t) if is_managed and _finds_gpu(sees_one, module) else move_to_cpu(obj, t)

    return fix


# --- the list ---------------------------------------------------------------------------------------


def _types_of(name: str) -> frozenset[str]:
    return (PLAIN | _words(name, "more_types")) - _words(name, "fewer_types")


def _dtypes(name: str, fix: Fix = cast_it, *, unnoticed: bool = False) -> Limit:
    return Limit(
        other_dtype_than(_types_of(name)), f"{name} has no element type {{dtype}}", fix, unnoticed=unnoticed
    )


_NUMPY_DTYPES = Limit(
    numpy_has_no_such, "NumPy has no element type {dtype} that lies in memory like this, nor has ml_dtypes", cast_it
)
_NO_ML_DTYPES = Limit(
    lambda t: numpy_has_no_such(t) and not is_padded(t) and _is_whole(t) and not _has_ml_dtypes(),
    "NumPy itself has no element type {dtype}: ml_dtypes has it, which is not installed",
    say("pip install ml_dtypes"),
)


def _is_whole(t: Tensor) -> bool:
    return t.itemsize * t.size == t.nbytes


def _has_ml_dtypes() -> bool:
    try:
        importlib.import_module("ml_dtypes")
    except ImportError:
        return False
    return True


def _whole_complex_numbers(name: str) -> Limit:
    """It reads them by instructions that end the process off that alignment."""
    whole = _ROWS[name]["alignment_of_complex128"]
    return Limit(
        lambda t: dtype_name(t) == "complex128" and is_off(whole)(t),
        f"its complex numbers are not aligned to {whole} bytes, as {name} reads them",
        copy_it,
        unnoticed=True,
    )


def _needs_a_flag(what: str, name: str) -> str:
    return f"{what}: a legacy DLPack capsule has no flag to say it, and {name} takes no other"


def _jax_narrows(t: Tensor) -> bool:
    """Whether JAX makes 32 bits of 64, which it does unless it is told not to."""
    if dtype_name(t) not in WIDE or t.size == 0:
        return False
    config = getattr(loaded("jax"), "config", None)  # which is not there while it is being imported
    if config is not None:
        return not config.jax_enable_x64
    return os.environ.get("JAX_ENABLE_X64", "0").lower() not in ("1", "y", "yes", "t", "true", "on")


def _goes_backwards_for_pyarrow(t: Tensor) -> bool:
    """It looks at strides that are never stepped along, too: since 26 unless there is nothing along the axis, before
    at those of the NumPy array it gets, which has none of its own where the memory is row-major."""
    if t.ndim == 1 and t.is_contiguous:
        return False
    if (version_of("pyarrow", "pyarrow") or (26,)) < (26,):
        return min(t.strides, default=0) < 0 and not (t.size and t.is_contiguous)
    return any(step < 0 for extent, step in zip(t.shape, t.strides, strict=True) if extent)


def _library(
    name: str,
    take: Callable[[Tensor], Any],
    address: Callable[[Any], int],
    limits: tuple[Limit, ...],
    notes: tuple[tuple[Condition, str], ...] = (),
) -> Library:
    """What the table says of a library, and what must be code."""
    row = _ROWS[name]
    return Library(
        name,
        name,
        take,
        address,
        row["distribution"],
        limits,
        notes,
        row["forgets_readonly"],
        row["forgets_readonly_on_gpu"],
        row["donates_on_gpu"],
        max(16, row["alignment"]),
    )


# In each: first where the memory is, then its elements, its layout, its flags, its address.
_LIBRARIES = (
    _library(
        "numpy",
        take=_take_numpy,
        address=_address_as_interface,
        limits=(_devices("numpy", called="NumPy"), _NO_ML_DTYPES, _NUMPY_DTYPES),
    ),
    _library(
        "torch",
        take=_take_torch,
        address=lambda a: int(a.data_ptr()),
        limits=(
            _devices("torch", _managed_to_cuda(_torch_sees_one, "torch")),  # what else it refuses, it releases twice
            _cuda_only_if("torch", _torch_sees_one),
            _dtypes("torch"),
            # pytorch#188023: 2.13 ended the process, 2.14 was seen to refuse.
            Limit(
                has_negative_strides,
                "its strides {t.strides} go backwards, and torch takes no negative ones",
                copy_it,
                unnoticed=True,
            ),
            _whole_complex_numbers("torch"),
        ),
    ),
    _library(
        "jax",
        take=_from_dlpack_of("jax", _for_reading),
        address=lambda a: int(a.unsafe_buffer_pointer()),
        limits=(
            _devices("jax", _managed_to_cuda(_jax_sees_one, "jax")),
            _cuda_only_if("jax", _jax_sees_one, kinds=("cuda", "cuda_host")),
            _dtypes("jax"),
            Limit(
                is_not_compact,
                "its strides {t.strides} leave gaps, go backwards or repeat elements, and jax takes only compact "
                "memory",
                copy_it,
            ),
            # 0.6 does not look at strides of compact memory, and shows other numbers; 0.10 was seen to do it right.
            Limit(
                lambda t: is_not_row_major(t) and not is_not_compact(t),
                "its strides {t.strides} are not row-major, and this old jax does not look at them",
                copy_it,
                unnoticed=True,
                until=(0, 10),
            ),
            # XLA takes it, and refuses to run anything on it: "Address of buffer 0 must be a multiple of 10".
            Limit(
                lambda t: kind_of_device(t) in GPUS and is_off(_ROWS["jax"]["alignment_on_gpu"])(t),
                f"its memory is not aligned to {_ROWS['jax']['alignment_on_gpu']} bytes, and jax cannot compute with "
                "other memory of a GPU",
                copy_it,
                outcome="copied",
                unnoticed=True,
            ),
            Limit(
                _jax_narrows,
                "jax makes 32 bits of {dtype} unless its 64-bit types are turned on",
                say('jax.config.update("jax_enable_x64", True)'),
                outcome="copied",
            ),
            Limit(
                lambda t: kind_of_device(t) == "cpu" and is_off(_ROWS["jax"]["copies_below"])(t),
                f"its memory is not aligned to {_ROWS['jax']['copies_below']} bytes, as jax needs it on the CPU",
                copy_it,
                outcome="copied",
            ),
        ),
        notes=(
            (lambda t: not t.readonly, "jax takes it for immutable: do not write to the memory meanwhile"),
            (
                lambda t: t.readonly and kind_of_device(t) in GPUS,
                "jax writes to arrays of a GPU that are donated: do not donate this one",
            ),
        ),
    ),
    _library(
        "tensorflow",
        take=_from_dlpack_of("tensorflow", _legacy_capsule),
        address=_address_as_dlpack,
        limits=(
            _devices("tensorflow"),
            _cuda_only_if("tensorflow", lambda tf: bool(tf.config.list_physical_devices("GPU"))),
            _dtypes("tensorflow", unnoticed=True),  # vectors are read as single numbers
            Limit(
                is_not_row_major, "its strides {t.strides} are not row-major, and tensorflow takes no others", copy_it
            ),
            # It shares it, and ends the process with "Check failed: IsAligned()" at the first sum.
            Limit(
                is_off(_ROWS["tensorflow"]["alignment"]),
                f"its memory is not aligned to {_ROWS['tensorflow']['alignment']} bytes, and tensorflow cannot compute "
                "with other memory",
                copy_it,
                outcome="copied",
                unnoticed=True,
            ),
        ),
        notes=((lambda t: True, "tensorflow takes it for immutable: do not write to the memory meanwhile"),),
    ),
    _library(
        "paddle",
        take=_from_dlpack_of("paddle"),
        address=lambda a: int(a.data_ptr()),
        limits=(
            _devices("paddle"),
            _cuda_only_if("paddle", lambda paddle: bool(paddle.is_compiled_with_cuda())),  # else it crashes
            _dtypes("paddle"),
            Limit(
                has_more_axes_than(_ROWS["paddle"]["most_axes"]),
                f"it has {{t.ndim}} axes, and paddle has no more than {_ROWS['paddle']['most_axes']}",
                flatten_it,
            ),
            # It takes them, and fails when it reads.
            Limit(
                has_negative_strides,
                "its strides {t.strides} go backwards, and paddle cannot read negative ones",
                copy_it,
                unnoticed=True,
            ),
            _whole_complex_numbers("paddle"),
        ),
    ),
    _library(
        "cupy",
        take=_from_dlpack_of("cupy"),
        address=lambda a: int(a.data.ptr),
        limits=(
            Limit(
                other_device_than(_words("cupy", "devices")),
                "it is on {t.device}, and cupy has only memory of the GPU",
                move_to_cuda,
            ),
            # cupy#8801: other element types ended the process in 13; bfloat16 came with 14.
            Limit(
                dtype_in(frozenset(("bfloat16",))),
                "this cupy has no element type bfloat16",
                cast_it,
                unnoticed=True,
                until=(14,),
            ),
            _dtypes("cupy", unnoticed=True),
        ),
    ),
    _library(
        "pyarrow",
        take=_take_pyarrow,
        address=_address_as_dlpack,
        limits=(
            _devices("pyarrow"),
            Limit(
                dtype_in(frozenset(("bool",))),
                "pyarrow's booleans are single bits, and these are bytes",
                cast_it,
                unnoticed=True,  # before 26 it makes bits or other numbers of them
            ),
            _dtypes("pyarrow", cast_or_split_it),
            Limit(
                _goes_backwards_for_pyarrow,
                "its strides {t.strides} go backwards, and pyarrow takes no negative ones",
                copy_it,
            ),
        ),
        notes=(
            (lambda t: not t.readonly, "pyarrow takes it for immutable: do not write to the memory meanwhile"),
            (lambda t: t.ndim != 1 or not t.is_contiguous, "it becomes a pyarrow.Tensor, not an Array"),
        ),
    ),
    _library(
        "numba",
        take=_take_numba,
        address=_address_as_interface,
        limits=(
            _devices("numba"),
            _cuda_only_if("numba", lambda cuda: bool(cuda.is_available()), module="numba.cuda"),
            Limit(
                lambda t: kind_of_device(t) == "cuda" and dtype_name(t) not in PLAIN,
                "numba has no element type {dtype} on the GPU",
                cast_it,
            ),
            _NO_ML_DTYPES,
            _NUMPY_DTYPES,
        ),
        notes=((other_dtype_than(PLAIN), "numba holds it, and compiles no code for its element type"),),
    ),
    _library(
        "tvm_ffi",
        take=_from_dlpack_of("tvm_ffi"),
        address=lambda a: int(a.data_ptr()),
        limits=(
            Limit(is_padded, _needs_a_flag("its elements are padded to bytes", "tvm_ffi"), cast_it),
        ),
        notes=((is_complex, "tvm_ffi holds complex numbers, and has no name for them"),),
    ),
    _library(
        "cuda.core",
        take=_take_cuda_core,
        address=lambda view: int(view.ptr),
        limits=(
            _devices("cuda.core"),
            # It takes them, and cannot say its own shape.
            Limit(
                has_parts_of_bytes, "cuda.core has no elements that are no whole bytes", cast_it, unnoticed=True
            ),
        ),
        notes=(
            (other_dtype_than(_types_of("cuda.core")), "cuda.core holds it, and has no name for its element type"),
        ),
    ),
)


LIBRARIES: dict[str, Library] = {library.name: library for library in _LIBRARIES}


def library_of(target: object) -> Library:
    """The library of that name, or that module; any other module that has `from_dlpack` will do.

    Raises ValueError for a name nobody knows, TypeError for what is neither.
    """
    if isinstance(target, ModuleType):
        name = getattr(target, "__name__", None)
        if type(name) is not str:
            name = "a module without a name"
        for known in LIBRARIES.values():
            if f"{name}.".startswith(f"{known.module}."):
                return known
        if hasattr(target, "from_dlpack"):
            unknown = f"tenon knows nothing of what {name} takes: this is what the protocol promises"
            return Library(
                name, "", take=target.from_dlpack, address=_address_as_dlpack, notes=((lambda t: True, unknown),)
            )
        raise ValueError(f"tenon: the module '{name}' has no from_dlpack, and is none of {', '.join(LIBRARIES)}")
    if not isinstance(target, str):
        raise TypeError(f"tenon: a library is named by a string or its module, not by {target!r}")
    if target not in LIBRARIES:
        raise ValueError(
            f"tenon: no library is called {target!r} here; pass one of {', '.join(LIBRARIES)}, or a module that has "
            "from_dlpack"
        )
    return LIBRARIES[target]
