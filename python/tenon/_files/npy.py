# python/tenon/_files/npy.py: NumPy's .npy format: a Python literal as the header, then one array.
"""The .npy format, versions 1.0, 2.0 and 3.0."""

from __future__ import annotations

import itertools
import re
import struct
import sys
from collections.abc import Sequence
from typing import Any

from tenon._core import Tensor
from tenon._dtype import dtype
from tenon._files.layout import byte_count, shown
from tenon._files.source import SourceFile

MAGIC = b"\x93NUMPY"
#: Bytes of a header. The headers of the types that are taken need 200; NumPy itself reads 10,000.
MAX_HEADER = 65535
#: How each version of the format writes the length of its header, and then the header.
_VERSIONS = {b"\1\0": ("<H", "latin-1"), b"\2\0": ("<I", "latin-1"), b"\3\0": ("<I", "utf-8")}
_FIELDS = ("descr", "fortran_order", "shape")


def read(source: SourceFile) -> Tensor:
    """The array in the file."""
    header, begin = _header(source)
    descr, fortran_order, shape = _Parser(source, header).fields()
    kind = _element_type(source, descr)
    try:
        wanted, there = byte_count(shape, kind), source.size - begin
    except ValueError as error:
        raise source.fault("shape", str(error)) from None
    if wanted > there:
        text = f"{there} bytes, expected {wanted} for shape {shown(shape)} of {kind}: it is cut short"
        raise source.fault("data", text)
    return source.map().tensor(begin, shape, kind, strides=_column_major(shape) if fortran_order else None)


def _header(source: SourceFile) -> tuple[str, int]:
    """The text of the header, and where the data begins."""
    start = source.read(0, 12)
    if not start.startswith(MAGIC):
        raise source.fault("magic", f"begins with {start[:6]!r}, expected {MAGIC!r}, as every .npy file")
    version = start[6:8]
    if version not in _VERSIONS:
        raise source.fault("version", f"{'.'.join(map(str, version)) or 'none'}, expected 1.0, 2.0 or 3.0")
    size_format, encoding = _VERSIONS[version]
    at = 8 + struct.calcsize(size_format)
    if len(start) < at:
        raise source.fault("header length", f"the file ends after {len(start)} bytes, in the middle of it")
    (length,) = struct.unpack(size_format, start[8:at])
    if length > MAX_HEADER:
        raise source.fault("header length", f"{length} bytes, expected at most {MAX_HEADER}")
    raw = source.read(at, length)
    if len(raw) < length:
        raise source.fault("header", f"the file ends after {len(raw)} of its {length} bytes: it is cut short")
    try:
        return raw.decode(encoding), at + length
    except UnicodeDecodeError as error:
        raise source.fault("header", f"not UTF-8, as version 3.0 has it, at byte {error.start}") from None


class _Parser:
    """Reads ``{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`` and nothing else.

    Python's own parser takes any literal, nested as deep as its stack allows; this one has no depth.
    """

    _TOKEN = re.compile(
        r"""[ \t\n]*('[^'\\\n]*'|"[^"\\\n]*"|True|False|(?:0|[1-9][0-9]*)(?![0-9A-Za-z_.])|[][{}():,])"""
    )

    def __init__(self, source: SourceFile, text: str) -> None:
        self._source, self._text, self._at = source, text, 0
        self._field = "header"  # what is being read, for the message

    def fields(self) -> tuple[str, bool, tuple[int, ...]]:
        """descr, fortran_order and shape; the keys in any order, each once."""
        readers = {"descr": self._descr, "fortran_order": self._fortran_order, "shape": self._shape}
        found: dict[str, Any] = {}
        if not self._text.startswith("{"):
            raise self._fault("a dictionary")
        self._take("{")
        while not self._take("}"):
            key = self._string("a key in quotes")
            if key not in readers or key in found:
                why = "appears twice" if key in found else f"is not one of {', '.join(_FIELDS)}"
                raise self._source.fault("header", f"the key {shown(key)} {why}")
            self._expect(":")
            self._field = key
            found[key] = readers[key]()
            self._field = "header"
            if not self._take(","):
                self._expect("}")
                break
        if self._text[self._at :].strip(" \t\n"):
            raise self._fault("nothing after the dictionary")
        for key in _FIELDS:
            if key not in found:
                raise self._source.fault(key, "missing in the header")
        return found["descr"], found["fortran_order"], found["shape"]

    def _descr(self) -> str:
        if self._take("["):
            raise self._source.fault(
                "descr",
                "a structured type, expected a type string like '<f4'; numpy.load(path, mmap_mode='r')[name] is one of "
                "its fields, and can be given to tenon.asdlpack",
            )
        return self._string("a type string like '<f4'")

    def _fortran_order(self) -> bool:
        if self._take("True"):
            return True
        if self._take("False"):
            return False
        raise self._fault("True or False")

    def _shape(self) -> tuple[int, ...]:
        self._expect("(")
        shape: list[int] = []
        while not self._take(")"):
            shape.append(self._extent())
            if not self._take(","):
                self._expect(")")
                if len(shape) == 1:
                    raise self._source.fault("shape", f"({shape[0]}) is no tuple, expected ({shape[0]},)")
                break
        return tuple(shape)

    def _extent(self) -> int:
        match = self._TOKEN.match(self._text, self._at)
        if match is None or not match[1].isdigit() or len(match[1]) > 19:  # as many digits as 2**63 has
            raise self._fault("an extent, a number from 0 to 2**63 - 1,")
        self._at = match.end()
        return int(match[1])

    def _string(self, wanted: str) -> str:
        match = self._TOKEN.match(self._text, self._at)
        if match is None or match[1][0] not in "'\"":
            raise self._fault(wanted)
        self._at = match.end()
        return match[1][1:-1]

    def _take(self, token: str) -> bool:
        match = self._TOKEN.match(self._text, self._at)
        if match is None or match[1] != token:
            return False
        self._at = match.end()
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._fault(shown(token))

    def _fault(self, wanted: str) -> ValueError:
        rest = self._text[self._at :].lstrip(" \t\n")
        got = shown(rest[:30]) if rest else "its end"
        return self._source.fault(self._field, f"the header has {got} where {wanted} is expected")


# --- element types ----------------------------------------------------------------------------------

#: What NumPy saves and no Tensor holds: the letter of its type string, what it is, and what to do.
_REFUSED = {
    "O": ("Python objects, which are pickled", "numpy.load(path, allow_pickle=True) reads them, if you trust the file"),
    "V": (
        "bytes that are of no type to NumPy, as it saves bfloat16 and the smaller floats",
        "numpy.load(path, mmap_mode='r').view(ml_dtypes.bfloat16), or what they are, can be given to tenon.asdlpack",
    ),
    "U": ("text", "numpy.load(path) reads it"),
    "S": ("text", "numpy.load(path) reads it, and .view('uint8') is its bytes"),
    "M": ("points in time", "numpy.load(path, mmap_mode='r').view('int64') can be given to tenon.asdlpack"),
    "m": ("spans of time", "numpy.load(path, mmap_mode='r').view('int64') can be given to tenon.asdlpack"),
}
_SWAPPED = {"little": (">", "<", "big"), "big": ("<", ">", "little")}[sys.byteorder]


def _element_type(source: SourceFile, descr: str) -> dtype:
    """The type of a type string: a byte order, a letter and a size."""
    if re.fullmatch("[<>|=][a-zA-Z][0-9]+", descr):
        try:
            return dtype(descr)
        except TypeError:
            pass
        swapped, native, order = _SWAPPED
        try:
            kind = dtype(native + descr[1:]) if descr[0] == swapped else None
        except TypeError:
            kind = None
        if kind is not None:
            raise source.fault(
                "descr",
                f"{descr!r} is {kind} in {order}-endian byte order, expected {native + descr[1:]!r}; "
                f"numpy.load(path).astype('{kind}') is a converted copy",
            )
    what, advice = _REFUSED.get(descr[1:2], ("no type a Tensor can have", "numpy.load(path) may read it"))
    raise source.fault("descr", f"{shown(descr)} is {what}, expected a type string like '<f4'; {advice}")


def _column_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of an array whose first axis is the fastest."""
    return tuple(itertools.accumulate([1, *(max(extent, 1) for extent in shape[:-1])], int.__mul__))[: len(shape)]
