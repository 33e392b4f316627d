# python/tenon/_remedies.py: why an object is no tensor, in a sentence, and what makes one of it.
"""Objects that tenon does not take."""

from __future__ import annotations

import numbers
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tenon._core import LIBRARIES, MalformedError
from tenon._limits import package_of


class Remedy(NamedTuple):
    """A kind of object that is refused: how it is known, why it is, and what helps."""

    applies: Callable[[Any], Any]
    #: Half a sentence about the object, "{x}".
    reason: str
    #: What to write instead of `obj`, or what to do.
    fix: str | Callable[[Any], str]


def _last(value: Any, goes_on: Callable[[Any], bool], inside: Callable[[Any], Any]) -> Any:
    """What is in the value, and in that, and so on: not without end, whatever stands in for a library's type."""
    for _ in range(64):
        if not goes_on(value):
            return value
        value = inside(value)
    raise ValueError("there is always more in it")


def _kind(*kinds: str) -> Callable[[Any], bool]:
    """Arrays whose dtype is of one of NumPy's kinds."""
    return lambda a: a.dtype.kind in kinds


def _first_field(a: Any) -> str:
    return f"obj[{a.dtype.names[0]!r}].copy()"


def _layout(*words: str) -> Callable[[Any], bool]:
    return lambda x: any(word in str(x.layout) for word in words)


def _is_row(kind: Any) -> bool:
    """Whether a type of Arrow's is that of rows of one length, or of small tensors, which are kept so."""
    return str(kind).startswith(_ARROW_ROWS)


def _in_rows(kind: Any) -> Any:
    """A type of Arrow's, or the type of what is in its rows, and in the rows of rows."""
    return _last(kind, _is_row, lambda row: row.storage_type if hasattr(row, "storage_type") else row.value_type)


def _arrow_type(*words: str) -> Callable[[Any], bool]:
    return lambda a: str(_in_rows(a.type)).startswith(words)


def _as_bytes(kind: str) -> Callable[[Any], str]:
    """An element without an axis cannot be viewed as several."""
    return lambda a: ("obj" if a.ndim else "numpy.atleast_1d(obj)") + f'.copy().view("{kind}")'


def _numbers_of_times(a: Any) -> str:
    return "obj" + '.astype(obj.dtype.newbyteorder("="))' * (not a.dtype.isnative) + '.view("int64")'


def _bits_of_torch(t: Any) -> str:
    # Of the same size: else the last axis must be there, and without gaps.
    return "obj.view(torch.int16)" if t.element_size() == 2 else "obj.view(torch.uint8)"


def _times_of_pandas(series: Any) -> str:
    """In the unit they have: a larger one cannot say them, and a smaller one wraps around without a word."""
    if str(series.dtype).startswith(("date32", "date64")):  # of Arrow: objects, to NumPy
        return 'obj.astype("datetime64[s]").to_numpy().view("int64")'
    unit = re.split(r"[][,]", str(series.dtype))[1]  # datetime64[us, UTC], timestamp[us][pyarrow]
    times = "datetime64" if series.dtype.kind == "M" else "timedelta64"
    return f'obj.to_numpy("{times}[{unit}]").view("int64")'


def _narrowed(dtype: Any) -> str:
    """To numbers that every machine has, from pandas."""
    wide = {"g": '"float64"', "G": '"complex128"'}.get(getattr(dtype, "char", ""), "")
    return f"obj.to_numpy({wide})"


def _strings_of_pandas(series: Any) -> bool:
    return bool(sys.modules["pandas"].api.types.infer_dtype(series) == "string")


def _handed_out(series: Any) -> bool:
    """Whether this pandas hands a Series out at all: it is PyArrow that does it."""
    return hasattr(series, "__arrow_c_stream__") and sys.modules.get("pyarrow") is not None


def _table_of_pandas(table: Any) -> str:
    # A type of pandas' own may have gaps, and becomes another one with them.
    own = any(hasattr(dtype, "na_value") for dtype in table.dtypes)
    together = table.iloc[:0].to_numpy().dtype
    if not own and together.kind in _NUMBER_KINDS:
        return _narrowed(together)
    return _FLOATS_OF_PANDAS if all(dtype.kind in "biuf" for dtype in table.dtypes) else _COLUMN


def _table_of_polars(start: str) -> Callable[[Any], str]:
    def fix(table: Any) -> str:
        types = table.collect_schema().dtypes()
        if not all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in types):
            return _COLUMN if start == "obj" else f"{_COLUMN} of {start}"
        others = any(str(dtype).startswith(("Boolean", *_NOT_IN_NUMPY)) for dtype in types)
        return start + ".cast(float)" * others + ".to_numpy()"

    return fix


def _has_rows(series: Any) -> bool:
    """Whether the elements of a polars Series are rows of one length."""
    return hasattr(series.dtype, "shape")


def _innermost(series: Any) -> Any:
    """The type of what is in the rows, and in the rows of rows."""
    return _last(series.dtype, lambda dtype: hasattr(dtype, "shape"), lambda dtype: dtype.inner)


def _polars_type(*words: str) -> Callable[[Any], bool]:
    return lambda s: str(_innermost(s)).startswith(words)


def _gaps_in_rows(series: Any) -> bool:
    if not _has_rows(series):
        return False
    elements = _last(series.drop_nulls(), _has_rows, lambda rows: rows.explode())
    return bool(elements.null_count() > 0)


def _rechunked(series: Any) -> str:
    return ".rechunk()" * bool(series.n_chunks() > 1)


def _whole(series: Any) -> str:
    """What takes the gaps of a polars Series away, and puts its pieces together."""
    gaps = bool(series.null_count() > 0)
    if not _has_rows(series):
        return ".fill_null(0)" * gaps + _rechunked(series)
    return ".drop_nulls()" * gaps + (".to_numpy()" if _gaps_in_rows(series) else _rechunked(series))


def _floats_of_polars(series: Any) -> str:
    kind = f"polars.Array(float, {series.dtype.shape})" if _has_rows(series) else "float"
    return f"obj.cast({kind})" + _whole(series)


def _bools_of_polars(series: Any) -> str:
    if series.null_count() == 0 and not _gaps_in_rows(series):
        return "obj.to_numpy()"
    return _floats_of_polars(series) if _has_rows(series) else "obj.fill_null(False).to_numpy()"


def _codes_of_polars(series: Any) -> str:
    gaps = ".cast(int).fill_null(-1)" * bool(series.null_count() > 0)
    return "obj.to_physical()" + gaps + _rechunked(series)


def _pieces(array: Any) -> list[Any]:
    return getattr(array, "chunks", [array])


def _joined(array: Any) -> str:
    return ".combine_chunks()" * (len(_pieces(array)) > 1)


def _cast(kind: Any) -> str:
    return next((f'.cast("{to}")' for word, to in _ARROW_NUMBERS.items() if str(kind).startswith(word)), "")


def _numbers_of_arrow(start: str, kind: Any, array: Any) -> str:
    """Plain numbers, in one piece and without gaps, of `start`: it has elements of this kind, and is of the array."""
    # The values that a dictionary, or runs, refer to may have nulls, too.
    values = (getattr(piece, "dictionary", getattr(piece, "values", piece)) for piece in _pieces(array))
    gaps = bool(array.null_count > 0 or any(value.null_count > 0 for value in values))
    return start + _cast(kind) + ".fill_null(0)" * gaps + _joined(array)


def _table_of_arrow(table: Any) -> str:
    for at, kind in enumerate(table.schema.types):
        if not str(kind).startswith((*_ARROW_OTHERS, *_ARROW_NESTED)):
            return _numbers_of_arrow(f"obj.column({at})", kind, table.column(at))
    return _COLUMN


def _gaps_in_arrow(array: Any) -> bool:
    """Whether values are missing in rows that are not."""
    storage = [getattr(piece, "storage", piece) for piece in _pieces(array)]
    elements = (_last(piece, lambda rows: _is_row(rows.type), lambda rows: rows.flatten()) for piece in storage)
    return any(piece.null_count > 0 for piece in elements) and _is_row(array.type)


def _numbers(array: Any) -> str:
    if not _is_row(array.type):
        return _numbers_of_arrow("obj", array.type, array)
    if hasattr(array.type, "storage_type"):
        return _NUMBERS_IN_IT
    # Flattening leaves missing rows out; several arrays it does not know how to.
    sizes: list[int] = []

    def inside(row: Any) -> Any:
        sizes.append(row.list_size)
        return row.value_type

    kind = _last(array.type, _is_row, inside)
    start = "obj" + ".combine_chunks()" * hasattr(array, "chunks") + ".flatten()" * len(sizes)
    cast = _cast(kind) + ".fill_null(0)" * _gaps_in_arrow(array)
    return f"{start}{cast}.to_numpy().reshape(-1, {', '.join(map(str, sizes))})"


def _value(scalar: Any) -> str:
    return "numpy.asarray(obj.as_py())" if isinstance(scalar.as_py(), numbers.Real) else _NUMBERS_IN_IT


def _entries(array: Any) -> str:
    if _is_row(array.type):
        return _NUMBERS_IN_IT
    kind = array.type.value_type
    if not str(kind).startswith((*_ARROW_OTHERS, *_ARROW_NESTED)):
        return _numbers_of_arrow("obj.cast(obj.type.value_type)", kind, array)
    gaps = '.cast("int64").fill_null(-1)' * bool(array.null_count > 0)
    return "obj" + ".combine_chunks()" * hasattr(array, "chunks") + ".indices" + gaps


def _runs(array: Any) -> str:
    kind = array.type.value_type
    if _is_row(array.type) or str(kind).startswith((*_ARROW_OTHERS, *_ARROW_NESTED)):
        return _NUMBERS_IN_IT
    return _numbers_of_arrow("pyarrow.compute.run_end_decode(obj)", kind, array)


def _class(*names: str) -> Callable[[Any], bool]:
    return lambda obj: any(base.__name__ in names for base in type(obj).__mro__)


_TRACED = "it stands for a value that is not there yet: a function is being traced"
_OUTSIDE = "hand over what the function returns, outside of it"

_TABLE = "it is a table, and a tensor is one array"
_COLUMN = "hand over a column of numbers"
_NUMBERS_IN_IT = "hand over the numbers in it"
_NO_NUMBERS = "its elements are no numbers"
_TIMES = "its elements are times, which a tensor has no type for"
_DECIMALS = "its elements are decimals, which a tensor has no type for"
_CATEGORIES = "its elements are numbers of entries in a list of categories"
_BITS = "its elements are single bits"
_LONG_DOUBLES = "its elements are long doubles, which differ by machine"
_MISSING = "some of its values are missing, which a tensor cannot say"
_ROWS_MISSING = "some of its rows are missing, which a tensor cannot say"
_PIECES = "it is in several pieces"

#: Of NumPy.
_NUMBER_KINDS = "biufc"
_FLOATS_OF_PANDAS = 'obj.to_numpy("float64", na_value=float("nan"))'
_WIDE = ("Int128", "UInt128")
_NOT_IN_NUMPY = ("Decimal", *_WIDE)

_ARROW_OTHERS = tuple(
    "string large_string binary large_binary fixed_size_binary list large_list struct map sparse_union dense_union "
    "null month_day_nano_interval".split()
)
_ARROW_ROWS = ("fixed_size_list", "extension")
_ARROW_NESTED = ("dictionary", "run_end_encoded", *_ARROW_ROWS)
#: What a type is cast to.
_ARROW_TIMES = {
    **dict.fromkeys(("date32", "time32"), "int32"),
    **dict.fromkeys(("date64", "time64", "timestamp", "duration"), "int64"),
}
_ARROW_NUMBERS = {"bool": "uint8", "decimal": "float64", **_ARROW_TIMES}

#: By the package an object comes from; the first that applies is the one.
REMEDIES: dict[str, tuple[Remedy, ...]] = {
    "numpy": (
        Remedy(
            lambda a: _class("MaskedArray")(a) and a.mask.any(),
            "some of its elements are masked, which a tensor cannot say",
            "obj.filled()",
        ),
        Remedy(lambda a: a.dtype.names is not None, "its elements are structures of several fields", _first_field),
        Remedy(_kind("O"), "its elements are Python objects", 'obj.astype("float64")'),
        Remedy(_kind("M", "m"), _TIMES, _numbers_of_times),
        Remedy(
            lambda a: not a.dtype.isnative,
            "its elements are not in this machine's byte order",
            'obj.astype(obj.dtype.newbyteorder("="))',
        ),
        Remedy(_kind("S"), "its elements are strings of bytes", _as_bytes("uint8")),
        Remedy(_kind("U"), "its elements are strings of characters", _as_bytes("uint32")),
        Remedy(_kind("T"), "its elements are strings", _NUMBERS_IN_IT),
        Remedy(
            lambda a: a.dtype.char in "gG",
            _LONG_DOUBLES,
            lambda a: 'obj.astype("float64")' if a.dtype.char == "g" else 'obj.astype("complex128")',
        ),
        Remedy(
            lambda x: type(x).__module__ == "ml_dtypes",
            "it is a single value, which NumPy does not hand out as a buffer",
            "numpy.asarray(obj)",
        ),
        Remedy(_kind("V"), "its elements are bytes without a type", _as_bytes("uint8")),
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
        Remedy(lambda x: "bits" in str(x.dtype), "its elements are bits without a type", _bits_of_torch),
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
        Remedy(lambda x: True, _NO_NUMBERS, _NUMBERS_IN_IT),
    ),
    "paddle": (
        Remedy(lambda x: x.is_sparse(), "it is sparse, and not a plain block of memory", "obj.to_dense()"),
    ),
    "pandas": (
        Remedy(_class("DataFrame"), _TABLE, _table_of_pandas),
        Remedy(lambda s: s.dtype.kind in "iufb" and bool(s.isna().any()), _MISSING, _FLOATS_OF_PANDAS),
        Remedy(lambda s: s.cat is not None, _CATEGORIES, "obj.cat.codes.to_numpy()"),
        Remedy(lambda s: str(s.dtype) == "category", _CATEGORIES, "obj.codes"),
        Remedy(lambda s: s.dtype.kind in "Mm", _TIMES, _times_of_pandas),
        Remedy(lambda s: s.dtype.char in "gG", _LONG_DOUBLES, lambda s: _narrowed(s.dtype)),
        Remedy(_strings_of_pandas, "its elements are strings", _NUMBERS_IN_IT),
        Remedy(lambda s: str(s.dtype) == "object", "its elements are Python objects", _NUMBERS_IN_IT),
        Remedy(lambda s: s.dtype.kind == "O", "its elements are of the type {x.dtype}", _NUMBERS_IN_IT),
        Remedy(
            lambda s: s.dtype.kind == "b" and _handed_out(s),
            "pandas hands its elements out as single bits",
            "obj.to_numpy()",
        ),
        Remedy(
            lambda s: _handed_out(s) and s.array.__arrow_array__().num_chunks > 1,
            _PIECES,
            "obj.to_numpy()",
        ),
        Remedy(lambda s: s.dtype.kind in _NUMBER_KINDS, "pandas hands out no memory of it", "obj.to_numpy()"),
    ),
    "polars": (
        Remedy(_class("DataFrame"), _TABLE, _table_of_polars("obj")),
        Remedy(_class("LazyFrame"), "it is a query that has not run yet", _table_of_polars("obj.collect()")),
        Remedy(_class("Expr"), "it is an expression, which has no values", "hand over what it selects from a table"),
        Remedy(lambda s: _innermost(s).is_temporal(), _TIMES, lambda s: "obj.to_physical()" + _whole(s)),
        Remedy(lambda s: str(s.dtype).startswith(("Categorical", "Enum")), _CATEGORIES, _codes_of_polars),
        Remedy(_polars_type("Decimal"), _DECIMALS, _floats_of_polars),
        Remedy(
            _polars_type(*_WIDE),
            "its elements are integers of 128 bits, which a tensor has no type for",
            _floats_of_polars,
        ),
        Remedy(_polars_type("Boolean"), _BITS, _bools_of_polars),
        Remedy(lambda s: not _innermost(s).is_numeric(), _NO_NUMBERS, _NUMBERS_IN_IT),
        Remedy(
            lambda s: _gaps_in_rows(s) or (s.null_count() > 0 and not _has_rows(s)),
            _MISSING,
            lambda s: "obj" + _whole(s),
        ),
        Remedy(lambda s: s.null_count() > 0, _ROWS_MISSING, lambda s: "obj" + _whole(s)),
        Remedy(lambda s: s.n_chunks() > 1, _PIECES, "obj.rechunk()"),
    ),
    "pyarrow": (
        Remedy(_class("Table", "RecordBatch"), _TABLE, _table_of_arrow),
        Remedy(_class("Scalar"), "it is a single value, and no array", _value),
        # First what the elements are: no null and no piece is of any use before that.
        Remedy(_arrow_type(*_ARROW_OTHERS), _NO_NUMBERS, _NUMBERS_IN_IT),
        Remedy(_arrow_type("dictionary"), "its elements are numbers of entries in a dictionary", _entries),
        Remedy(_arrow_type("run_end_encoded"), "it holds each run of equal elements once", _runs),
        Remedy(_arrow_type("bool"), _BITS, _numbers),
        Remedy(_arrow_type("decimal"), _DECIMALS, _numbers),
        Remedy(_arrow_type(*_ARROW_TIMES), _TIMES, _numbers),
        Remedy(_gaps_in_arrow, _MISSING, _numbers),
        Remedy(
            lambda a: a.null_count > 0 and _is_row(a.type),
            _ROWS_MISSING,
            lambda a: "obj.drop_null()" + _joined(a),
        ),
        Remedy(lambda a: a.null_count > 0, _MISSING, _numbers),
        Remedy(lambda a: a.num_chunks > 1, _PIECES, "obj.combine_chunks()"),
    ),
}

#: What is of no package of arrays.
_ANYTHING = (
    Remedy(lambda o: isinstance(o, (list, tuple, int, float, complex, range)), "it is no array", "numpy.asarray(obj)"),
    Remedy(
        lambda o: memoryview(o).suboffsets != (),
        "its rows are behind pointers, which a tensor cannot express",
        "memoryview(obj).tobytes()",
    ),
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
        name = LIBRARIES[package]["name"] if package in LIBRARIES else package
        if name in REMEDIES and package in sys.modules:
            return REMEDIES[name]
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


def parts_of(raised: BaseException | None) -> tuple[str, list[str]] | None:
    """What the import ladder's exception says first, and the reasons of what was tried; None of anybody else's."""
    if type(raised) not in (TypeError, BufferError, MalformedError):
        return None
    noted = vars(raised)
    reason, tried = noted.get("reason"), noted.get("tried")
    if type(reason) is not str or type(tried) is not tuple:
        return None
    return reason, [line[1] for line in tried if type(line) is tuple and len(line) == 2 and type(line[1]) is str]


def _said_by(raised: Exception) -> str:
    """The sentence that matters: of the protocol that was there and refused, if several were tried."""
    if (parts := parts_of(raised)) is None:
        return message_of(raised)[0].removeprefix("tenon: ").rstrip(".")
    reason, tried = parts
    return tried[0] if tried else reason
