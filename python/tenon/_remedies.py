# python/tenon/_remedies.py: why an object is no tensor, in a sentence, and what makes one of it.
"""Objects that tenon does not take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tenon._limits import package_of


class Remedy(NamedTuple):
    """A kind of object that is refused: how it is known, why it is, and what helps."""

    applies: Callable[[Any], Any]
    #: Half a sentence about the object, "{x}".
    reason: str
    #: What to write instead of `obj`, or what to do.
    fix: str | Callable[[Any], str]


def _kind(*kinds: str) -> Callable[[Any], bool]:
    """Arrays whose dtype is of one of NumPy's kinds."""
    return lambda a: a.dtype.kind in kinds


def _first_field(a: Any) -> str:
    return f"obj[{a.dtype.names[0]!r}].copy()"


def _layout(*words: str) -> Callable[[Any], bool]:
    return lambda x: any(word in str(x.layout) for word in words)


def _arrow_type(*words: str) -> Callable[[Any], bool]:
    return lambda a: str(a.type).startswith(words)


def _nanoseconds(series: Any) -> str:
    times = "datetime64[ns]" if series.dtype.kind == "M" else "timedelta64[ns]"
    return f'obj.to_numpy("{times}").view("int64")'


def _strings_of_pandas(series: Any) -> bool:
    return bool(sys.modules["pandas"].api.types.infer_dtype(series) == "string")


def _class(*names: str) -> Callable[[Any], bool]:
    return lambda obj: any(base.__name__ in names for base in type(obj).__mro__)


_TRACED = "it stands for a value that is not there yet: a function is being traced"
_OUTSIDE = "hand over what the function returns, outside of it"

_ARROW_OTHERS = (
    "string large_string binary large_binary fixed_size_binary list large_list struct map sparse_union dense_union "
    "null month_day_nano_interval"
).split()

#: By the package an object comes from; the first that applies is the one.
REMEDIES: dict[str, tuple[Remedy, ...]] = {
    "numpy": (
        Remedy(_class("MaskedArray"), "some of its elements are masked, which a tensor cannot say", "obj.filled()"),
        Remedy(lambda a: a.dtype.names is not None, "its elements are structures of several fields", _first_field),
        Remedy(_kind("O"), "its elements are Python objects", 'obj.astype("float64")'),
        Remedy(
            lambda a: not a.dtype.isnative,
            "its elements are not in this machine's byte order",
            'obj.astype(obj.dtype.newbyteorder("="))',
        ),
        Remedy(_kind("M", "m"), "its elements are times, which a tensor has no type for", 'obj.view("int64")'),
        Remedy(_kind("S"), "its elements are strings of bytes", 'obj.copy().view("uint8")'),
        Remedy(_kind("U"), "its elements are strings of characters", 'obj.copy().view("uint32")'),
        Remedy(_kind("T"), "its elements are strings", "hand over the numbers in it"),
        Remedy(
            lambda a: a.dtype.char == "g",
            "its elements are long doubles, which differ by machine",
            'obj.astype("float64")',
        ),
        Remedy(
            lambda a: a.dtype.char == "G",
            "its elements are long doubles, which differ by machine",
            'obj.astype("complex128")',
        ),
        Remedy(
            lambda x: type(x).__module__ == "ml_dtypes",
            "it is a single value, which NumPy does not hand out as a buffer",
            "numpy.asarray(obj)",
        ),
        Remedy(_kind("V"), "its elements are bytes without a type", 'obj.copy().view("uint8")'),
        Remedy(
            lambda a: any(step % a.itemsize for step in a.strides),
            "its elements are not whole elements apart, as a field of a structure is",
            "obj.copy()",
        ),
    ),
    "torch": (
        Remedy(_class("FakeTensor", "FunctionalTensor"), _TRACED, _OUTSIDE),
        Remedy(
            lambda x: x.is_nested,
            "it is a list of tensors of several shapes",
            "torch.nested.to_padded_tensor(obj, 0.0)",
        ),
        Remedy(_layout("sparse", "mkldnn"), "it is not a plain block of memory, but {x.layout}", "obj.to_dense()"),
        Remedy(
            lambda x: x.is_meta,
            "it is on the meta device, which has no memory",
            'torch.empty_like(obj, device="cpu")',
        ),
        Remedy(lambda x: x.is_quantized, "its elements are quantized, which a tensor cannot say", "obj.dequantize()"),
        Remedy(
            lambda x: x.is_conj(),
            "it is a conjugate view, whose memory holds other numbers than it shows",
            "obj.resolve_conj()",
        ),
        Remedy(
            lambda x: x.is_neg(),
            "it is a negative view, whose memory holds other numbers than it shows",
            "obj.resolve_neg()",
        ),
        Remedy(lambda x: "bits" in str(x.dtype), "its elements are bits without a type", "obj.view(torch.uint8)"),
    ),
    "jax": (
        Remedy(_class("Tracer"), _TRACED, _OUTSIDE),
        Remedy(
            _class("ShapeDtypeStruct"),
            "it is only a shape and a type, and has no memory",
            "jax.numpy.zeros(obj.shape, obj.dtype)",
        ),
        Remedy(_class("PRNGKeyArray"), "it holds random keys, which are no numbers", "jax.random.key_data(obj)"),
        Remedy(
            lambda x: x.is_deleted(),
            "its memory was deleted or donated",
            "make the array again: its memory is gone",
        ),
        Remedy(
            lambda x: x.is_fully_replicated and len(x.devices()) > 1,
            "it has a copy on each of several devices",
            "obj.addressable_data(0)",
        ),
        Remedy(
            lambda x: len(x.devices()) > 1,
            "it is spread over several devices",
            "jax.device_put(obj, jax.devices()[0])",
        ),
        Remedy(lambda x: "int" in x.dtype.name, "jax does not export its element type", 'obj.astype("int8")'),
        Remedy(lambda x: True, "jax does not export its element type", 'obj.astype("float32")'),
    ),
    "tensorflow": (
        Remedy(_class("SymbolicTensor", "KerasTensor"), _TRACED, _OUTSIDE),
        Remedy(_class("RaggedTensor"), "its rows are of several lengths", "obj.to_tensor()"),
        Remedy(
            _class("SparseTensor"),
            "it is sparse, and not a plain block of memory",
            "tensorflow.sparse.to_dense(obj)",
        ),
        Remedy(
            _class("Variable", "ResourceVariable"),
            "it is a variable, which names memory that may change",
            "obj.read_value()",
        ),
        Remedy(lambda x: x.dtype.name == "string", "its elements are strings", "tensorflow.strings.to_number(obj)"),
        Remedy(lambda x: True, "its elements are no numbers", "hand over the numbers in it"),
    ),
    "paddle": (
        Remedy(lambda x: x.is_sparse(), "it is sparse, and not a plain block of memory", "obj.to_dense()"),
    ),
    "pandas": (
        Remedy(
            lambda s: bool(getattr(s, "hasnans", False)) and s.dtype.kind in "iufb",
            "some of its values are missing, which a tensor cannot say",
            'obj.to_numpy("float64", na_value=float("nan"))',
        ),
        Remedy(
            lambda s: s.cat is not None,
            "its elements are numbers of entries in a list of categories",
            "obj.cat.codes.to_numpy()",
        ),
        Remedy(lambda s: s.dtype.kind in "Mm", "its elements are times, which a tensor has no type for", _nanoseconds),
        Remedy(_strings_of_pandas, "its elements are strings", "hand over the numbers in it"),
        Remedy(lambda s: s.dtype.kind == "O", "its elements are Python objects", "hand over the numbers in it"),
        Remedy(lambda s: True, "it is a table of its own kind, and no array", "obj.to_numpy()"),
    ),
    "polars": (
        Remedy(
            lambda s: s.null_count() > 0,
            "some of its values are missing, which a tensor cannot say",
            "obj.fill_null(0).to_numpy()",
        ),
        Remedy(
            lambda s: s.dtype.is_temporal(),
            "its elements are times, which a tensor has no type for",
            "obj.to_physical()",
        ),
        Remedy(
            lambda s: not s.dtype.is_numeric() and str(s.dtype) != "Boolean",
            "its elements are no numbers",
            "hand over the numbers in it",
        ),
        Remedy(lambda s: True, "it is a table of its own kind, and no array", "obj.to_numpy()"),
    ),
    "pyarrow": (
        Remedy(_class("Table", "RecordBatch"), "it is a table, and a tensor is one array", "obj.column(0)"),
        Remedy(_class("Scalar"), "it is a single value, and no array", "numpy.asarray(obj.as_py())"),
        # First what the elements are: no null and no piece is of any use before that.
        Remedy(
            _arrow_type(*_ARROW_OTHERS),
            "its elements are no numbers",
            "hand over the numbers in it",
        ),
        Remedy(
            _arrow_type("dictionary"),
            "its elements are numbers of entries in a dictionary",
            "obj.cast(obj.type.value_type)",
        ),
        Remedy(
            _arrow_type("run_end_encoded"),
            "it holds each run of equal elements once",
            "pyarrow.compute.run_end_decode(obj)",
        ),
        Remedy(_arrow_type("bool"), "its elements are single bits", 'obj.cast("uint8")'),
        Remedy(
            _arrow_type("decimal"),
            "its elements are decimals, which a tensor has no type for",
            'obj.cast("float64")',
        ),
        Remedy(
            _arrow_type("date32", "time32"),
            "its elements are times, which a tensor has no type for",
            'obj.cast("int32")',
        ),
        Remedy(
            _arrow_type("date64", "time64", "timestamp", "duration"),
            "its elements are times, which a tensor has no type for",
            'obj.cast("int64")',
        ),
        Remedy(
            lambda a: a.null_count > 0 and _arrow_type("fixed_size_list", "extension")(a),
            "some of its rows are missing, which a tensor cannot say",
            "obj.drop_null()",
        ),
        Remedy(
            lambda a: a.null_count > 0,
            "some of its values are missing, which a tensor cannot say",
            "obj.fill_null(0)",
        ),
        Remedy(lambda a: a.num_chunks > 1, "it is in several pieces", "obj.combine_chunks()"),
    ),
}
REMEDIES["jaxlib"] = REMEDIES["jax"]

#: What is of no package of arrays.
_ANYTHING = (
    Remedy(lambda o: isinstance(o, (list, tuple, int, float, complex, range)), "it is no array", "numpy.asarray(obj)"),
    Remedy(
        lambda o: memoryview(o).suboffsets != (),
        "its rows are behind pointers, which a tensor cannot express",
        "memoryview(obj).tobytes()",
    ),
)
#: Lines of a message that say only that there was nothing to try.
_NOTHING = (
    "the type has no",
    "not a numpy.ndarray",
    "no such",
    "the type does not support",
    "no __arrow_c_array__",
    "it raised the exception that stands before",
)


def remedy_for(obj: object, raised: Exception) -> tuple[str, str]:
    """Why `asdlpack(obj)` raised, and what helps; in the words of the exception if the object is of no known kind."""
    for remedy in (*_known(type(obj)), *_ANYTHING):
        try:
            if remedy.applies(obj):
                fix = remedy.fix if isinstance(remedy.fix, str) else remedy.fix(obj)
                return remedy.reason.format(x=obj), fix
        except Exception:  # an object that does not answer is not of this kind
            pass
    return _said_by(raised), "make an array of numbers of it first, with the library it comes from"


def _known(kind: type) -> tuple[Remedy, ...]:
    for base in type.__dict__["__mro__"].__get__(kind):
        package = package_of(base)
        if package in REMEDIES and package in sys.modules:
            return REMEDIES[package]
    return ()


def message_of(raised: BaseException | None) -> list[str]:
    """The lines of what an exception says, which may be anybody's; its kind, if it says nothing."""
    try:
        lines = str(raised).strip().splitlines()
    except Exception:
        lines = []
    return lines or [name_of(type(raised))]


def name_of(kind: type) -> str:
    """The name of a class; none of its own code runs."""
    name: str = type.__dict__["__name__"].__get__(kind)
    return name


def _said_by(raised: Exception) -> str:
    """The sentence of a message that matters: the protocol that was there and refused, if several were tried."""
    lines = message_of(raised)
    for line in lines[1:]:
        said = line.partition(": ")[2]
        if line.startswith("  ") and said and not said.startswith(_NOTHING):
            return said
    return lines[0].removeprefix("tenon: ").removesuffix(" Tried:").rstrip(".")
