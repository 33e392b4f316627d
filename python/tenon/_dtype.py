# python/tenon/_dtype.py: `tenon.dtype`, an element type that compares with every library's word for it.
"""Element types."""

from __future__ import annotations

import operator
import sys
from typing import Any

from tenon import _core
from tenon._device import WHAT_LIARS_RAISE, renamed

_TRIPLES: dict[str, tuple[int, int, int]] = {name: triple for name, triple, *_ in _core.DTYPES}
_BY_TYPESTR = {typestr: name for name, _, typestr, *_ in _core.DTYPES if typestr}
_OF_PYTHON: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class dtype(str):
    """The type of a tensor's elements: its name, which is a string, and DLPack's numbers for it.

    It is made from, and equal to, whatever people call it: a name, a NumPy typestr, a class or dtype object of
    NumPy, ml_dtypes, PyTorch, JAX, TensorFlow, Paddle, CuPy or PyArrow, one of Python's own types, or DLPack's
    ``(code, bits, lanes)``.

    >>> import tenon
    >>> d = tenon.dtype("float32")
    >>> d
    tenon.dtype('float32')
    >>> d == (2, 32, 1), d == "float32", d == tenon.dtype("<f4"), d == "int8"
    (True, True, True, False)
    >>> d.code, d.bits, d.lanes, d.itemsize
    (2, 32, 1, 4)

    Being a string, it can be passed to all libraries that take names: ``numpy.zeros(3, t.dtype)``. In a dictionary
    or a set it is found by its name and by nothing else that it is equal to: ``{"float32": 1}[t.dtype]``.
    """

    __slots__ = ("_triple",)
    _triple: tuple[int, int, int]

    def __new__(cls, value: Any) -> dtype:
        if type(value) is cls:
            return value
        found = _name_of(value)
        if found is None:
            raise TypeError(
                f"tenon: {value!r} is no element type; expected a name like 'float32', a dtype of an array "
                "library, or a (code, bits, lanes) triple"
            )
        name, triple = found
        self = super().__new__(cls, name)
        self._triple = triple
        return self

    @property
    def code(self) -> int:
        """DLPack's number for the kind: 0 signed, 1 unsigned, 2 float, ..."""
        return self._triple[0]

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return self._triple[1]

    @property
    def lanes(self) -> int:
        """Lanes of one element: 1, except for vector types."""
        return self._triple[2]

    @property
    def triple(self) -> tuple[int, int, int]:
        """``(code, bits, lanes)``, as DLPack has it."""
        return self._triple

    @property
    def itemsize(self) -> int:
        """Bytes of one element standing alone."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def name(self) -> str:
        """The name as a plain string."""
        return str(self)

    def __eq__(self, other: object) -> bool:
        found = _name_of(other)
        return found is not None and found[1] == self._triple

    def __ne__(self, other: object) -> bool:
        return not self == other

    # Equal to its name, so hashed like it: either finds the other in a dictionary.
    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"tenon.dtype({str.__str__(self)!r})"

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self._triple,)


def _name_of(value: Any) -> tuple[str, tuple[int, int, int]] | None:
    """The name and the triple of whatever people call an element type; None for what is none. Passes on what is no answer: an interrupt, no memory, no stack."""
    try:
        return _understood(value)
    except WHAT_LIARS_RAISE:  # an object that lies about itself is no element type
        return None


def _understood(value: Any) -> tuple[str, tuple[int, int, int]] | None:
    """What `_name_of` answers, or whatever a strange object raises. What an object says its class is, is not asked."""
    if issubclass(type(value), dtype):
        return str.__str__(value), value._triple
    if issubclass(type(value), tuple):
        return _of_triple(*tuple.__iter__(value))
    word = value if issubclass(type(value), str) else _word_for(value)
    if word is None:
        return None
    name = str.__str__(word)  # whoever derives from str can say one thing and hold another
    if name.startswith("dtype("):  # what has no name says its numbers
        return _of_numbers(name)
    known = name if name in _TRIPLES else _of_typestr(name)
    return None if known is None else (known, _TRIPLES[known])


def _of_triple(code: Any, bits: Any, lanes: Any = 1) -> tuple[str, tuple[int, int, int]] | None:
    """Raises TypeError for what is no integer or out of range."""
    if bool in map(type, (code, bits, lanes)):
        return None
    triple = operator.index(code), operator.index(bits), operator.index(lanes)
    return _core.dtype_name(*triple), triple


def _of_numbers(text: str) -> tuple[str, tuple[int, int, int]] | None:
    """The core's "dtype(code=42, bits=8, lanes=1)"."""
    numbers = [field.partition("=")[2] for field in text.removeprefix("dtype(").removesuffix(")").split(",")]
    found = _of_triple(*map(int, numbers))
    return found if found is not None and found[0] == text else None


def _of_typestr(text: str) -> str | None:
    """NumPy's "<f4", if it is in this machine's byte order."""
    mark, rest = text[:1], text[1:]
    if rest not in _BY_TYPESTR:
        return None
    native = "<" if sys.byteorder == "little" else ">"
    return _BY_TYPESTR[rest] if mark in (native, "=") or (rest[1:] == "1" and mark in "<>=|") else None


def _word_for(value: Any) -> str | None:
    """A library's own object for an element type, as a name."""
    if isinstance(value, type) and value in _OF_PYTHON:
        return _OF_PYTHON[value]
    row = _core.LIBRARIES.get(type(value).__module__.partition(".")[0])
    if row is not None and row["types_as_text"]:
        return renamed(str(value).removeprefix(row["type_prefix"]), row["type_names"])
    if row is not None and row["type_attribute"]:
        return str(getattr(value, row["type_attribute"])).lower()
    numpy = sys.modules.get("numpy")
    return _of_numpy(value, numpy) if numpy is not None else None


def _of_numpy(value: Any, numpy: Any) -> str | None:
    """The dtype itself, or a class that stands for one: numpy.float32, ml_dtypes.bfloat16, jax.numpy.float32."""
    if isinstance(value, type):
        value = numpy.dtype(value) if issubclass(value, numpy.generic) else value.dtype  # type: ignore[attr-defined]
    if not isinstance(value, numpy.dtype):
        return None
    return str(value.name) if value.isnative else None
