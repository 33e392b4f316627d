# python/tenon/_files/safetensors.py: the .safetensors format: a JSON header, then tensors without gaps between them.
"""The .safetensors format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tenon._core import Tensor
from tenon._dtype import dtype
from tenon._files.layout import byte_count, shown
from tenon._files.source import Mapped, SourceFile

#: Bytes of a header, as in the reference implementation.
MAX_HEADER = 100_000_000
_DTYPES = {
    code: dtype(name)
    for code, name in {
        "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
        "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
        "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2": "float8_e5m2",
        "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu", "F6_E2M3": "float6_e2m3fn",
        "F6_E3M2": "float6_e3m2fn", "F4": "float4_e2m1fn",
    }.items()
}  # fmt: skip
_FIELDS = {"dtype", "shape", "data_offsets"}


class Entry(NamedTuple):
    """What the header says of one tensor; `begin` and `end` count from the start of the data."""

    begin: int
    end: int
    kind: dtype
    shape: tuple[int, ...]


class SafetensorsFile(Mapping[str, Tensor]):
    """The tensors of a file by name, in the order of its header. Each is made when it is asked for."""

    #: What the file says of itself.
    metadata: dict[str, str]

    def __init__(self, mapped: Mapped, begin: int, entries: dict[str, Entry], metadata: dict[str, str]) -> None:
        self._mapped, self._begin, self._entries = mapped, begin, entries
        self.metadata = metadata

    @property
    def path(self) -> str:
        """The file, as it was given to `tenon.open`."""
        return self._mapped.path

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entries.get(name)
        if entry is None:
            raise KeyError(f"tenon: {self.path}: no tensor is called {shown(name)}")
        return self._mapped.tensor(self._begin + entry.begin, entry.shape, entry.kind, name=name)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    # Two mappings are equal when their values are; tensors are not compared by value here.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        lines = [f"{shown(n)}: {e.kind} {e.shape}" for n, e in list(self._entries.items())[:3]]
        more = [f"... {len(self) - 3} more"] if len(self) > 3 else []
        return f"SafetensorsFile({self.path!r}, {{{', '.join(lines + more)}}})"


def read(source: SourceFile) -> SafetensorsFile:
    """The tensors in the file. The header is checked as a whole; of the data nothing is read."""
    header, begin = _header(source)
    metadata = _metadata(source, header.pop("__metadata__", {}))
    entries = {name: _entry(source, name, header.pop(name)) for name in list(header)}
    _check_offsets(source, entries, source.size - begin)
    return SafetensorsFile(source.map(), begin, entries, metadata)


# --- the header -------------------------------------------------------------------------------------


class _Twice(Exception):
    """A key that one object has twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(shown(key))
            seen.add(key)
    return made


def _header(source: SourceFile) -> tuple[dict[str, Any], int]:
    """The header as it was written, and where the data begins."""
    length = int.from_bytes(source.read(0, 8), "little")
    there = source.size - 8
    if there < 0:
        raise source.fault("header length", f"the file has {source.size} bytes, expected 8 for it alone")
    if length > MAX_HEADER:
        raise source.fault("header length", f"{length} bytes, expected at most {MAX_HEADER}")
    if length > there:
        raise source.fault("header length", f"{length} bytes, expected at most the {there} after it: it is cut short")
    try:
        text = source.read(8, length).decode()
    except UnicodeDecodeError as error:
        raise source.fault("header", f"not UTF-8 at byte {error.start}") from None
    if not text.startswith("{"):
        raise source.fault("header", f"begins with {shown(text[:8])}, expected a JSON object")
    try:
        return json.loads(text, object_pairs_hook=_unique), 8 + length
    except json.JSONDecodeError as error:
        raise source.fault("header", f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise source.fault("header", "nested too deep, expected objects of objects") from None
    except _Twice as key:
        raise source.fault("header", f"the key {key} appears twice in one object") from None
    except ValueError:  # Python converts no more digits than sys.get_int_max_str_digits()
        raise source.fault("header", "a number of thousands of digits, expected numbers below 2**63") from None


def _metadata(source: SourceFile, said: Any) -> dict[str, str]:
    if not isinstance(said, dict):
        raise source.fault("__metadata__", f"{shown(said)}, expected an object of strings")
    for key, value in said.items():
        if not isinstance(value, str) or not _is_text(value) or not _is_text(key):
            raise source.fault(f"__metadata__[{shown(key)}]", f"{shown(value)}, expected a string")
    return said


def _entry(source: SourceFile, name: str, said: Any) -> Entry:
    """What is said of one tensor, checked as far as it can be without the others."""
    if not _is_text(name):
        raise source.fault("header", f"the name {shown(name)} is half of a character, expected text")
    if not isinstance(said, dict) or said.keys() != _FIELDS:
        got = ", ".join(map(shown, said)) or "nothing" if isinstance(said, dict) else shown(said)
        raise source.fault(_field(name), f"has {got}, expected exactly dtype, shape and data_offsets")
    code, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    kind = _DTYPES.get(code) if isinstance(code, str) else None
    if kind is None:
        raise source.fault(_field(name, "dtype"), f"{shown(code)}, expected one of {', '.join(_DTYPES)}")
    if not _are_counts(shape):
        raise source.fault(_field(name, "shape"), f"{shown(shape)}, expected a list of numbers below 2**63")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise source.fault(_field(name, "data_offsets"), f"{shown(offsets)}, expected two numbers: begin and end")
    begin, end = offsets
    try:
        wanted = byte_count(shape, kind)
    except ValueError as error:
        raise source.fault(_field(name, "shape"), str(error)) from None
    if end - begin != wanted:
        text = f"{shown(offsets)}: {end - begin} bytes, expected {wanted} for shape {shown(shape)} of {kind}"
        raise source.fault(_field(name, "data_offsets"), text)
    return Entry(begin, end, kind, tuple(shape))


def _check_offsets(source: SourceFile, entries: dict[str, Entry], there: int) -> None:
    """The tensors cover the data: without gaps, without overlaps, to its last byte."""
    covered = 0
    for name in sorted(entries, key=entries.__getitem__):
        entry = entries[name]
        if entry.begin != covered:
            gap = entry.begin - covered
            what = "overlaps the one before" if gap < 0 else f"leaves {gap} bytes unused"
            raise source.fault(_field(name, "data_offsets"), f"begins at {entry.begin}, expected {covered}: it {what}")
        covered = entry.end
    if covered != there:
        what = "it is cut short" if there < covered else f"{there - covered} belong to no tensor"
        raise source.fault("data", f"{there} bytes, expected the {covered} of the tensors: {what}")


def _field(name: str, field: str = "") -> str:
    return f"tensor {shown(name)}: {field}" if field else f"tensor {shown(name)}"


def _are_counts(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    for number in value:
        if type(number) is not int or number < 0:  # a bool is an int, and no number
            return False
    return True


def _is_text(value: str) -> bool:
    """JSON can spell halves of surrogate pairs, which nobody can print."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
