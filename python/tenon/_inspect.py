# python/tenon/_inspect.py: `tenon.inspect`: everything that can be told of an array or a capsule without using it up.
"""Looking at arrays and capsules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from tenon import _core
from tenon._device import device as device_type
from tenon._dtype import dtype as dtype_type
from tenon._memory import COPIED, PADDED, READ_ONLY
from tenon._nesting import one_level
from tenon._remedies import parts_of

#: Alignment is told up to a page: more says nothing of how the memory was allocated.
_PAGE = 4096
_CAPSULES = {
    "dltensor": "DLPack capsule, legacy",
    "dltensor_versioned": "DLPack capsule, versioned",
    "used_dltensor": "DLPack capsule, legacy, used up",
    "used_dltensor_versioned": "DLPack capsule, versioned, used up",
    "dlpack_exchange_api": "DLPack C exchange table",
    "arrow_schema": "Arrow C schema",
    "arrow_array": "Arrow C array",
    "arrow_array_stream": "Arrow C array stream",
    "arrow_device_array": "Arrow C device array",
    "arrow_device_array_stream": "Arrow C device array stream",
}
_ARROW = ("__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__", "__arrow_c_device_stream__")


class Protocol(NamedTuple):
    """One way in which arrays are handed on, and whether an object knows it."""

    name: str
    spoken: bool
    #: What it says there, as far as it can be asked without taking anything.
    says: str | None = None
    #: Why it cannot be used, although something is there.
    problem: str | None = None


class Rung(NamedTuple):
    """One rung of the import ladder, and what it answered: "taken", "absent", "refused" or "raised"."""

    name: str
    answer: str
    reason: str | None = None


class Struct(NamedTuple):
    """The numbers in a capsule's struct as they lie there: nothing of it has been checked.

    `None` is what a legacy struct does not have, or what cannot be read because the version is not known.
    Addresses are 0 for null.
    """

    address: int
    version: tuple[int, int] | None
    flags: int | None
    manager_ctx: int
    deleter: int
    data: int | None = None
    byte_offset: int | None = None
    ndim: int | None = None
    dtype: tuple[int, int, int] | None = None
    device: tuple[int, int] | None = None
    shape: int | None = None
    strides: int | None = None


class Table(NamedTuple):
    """A C exchange table: its version, and which of its functions there are."""

    version: tuple[int, int] | None
    functions: tuple[str, ...]
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What `tenon.inspect` found. `None` is what is not known."""

    #: The full name of the object's type.
    type: str
    #: "array", "tenon.Tensor", "class", or what the capsule is.
    kind: str
    #: Why it cannot be imported; None when it can.
    problem: str | None = None
    #: The same in one line, without what each rung said, where that differs: see `tried`.
    headline: str | None = None
    #: What is not a fact but should be known.
    notes: tuple[str, ...] = ()
    protocols: tuple[Protocol, ...] = ()
    #: The rung an import takes, and all that were tried, in order.
    rung: str | None = None
    tried: tuple[Rung, ...] = ()
    #: The exchange table of the object's type, or inside the capsule.
    table: Table | None = None

    #: Of a capsule: its name, whether it has been consumed, and the struct inside.
    capsule: str | None = None
    used: bool | None = None
    struct: Struct | None = None

    shape: tuple[int, ...] | None = None
    #: In elements.
    strides: tuple[int, ...] | None = None
    dtype: dtype_type | None = None
    device: device_type | None = None
    ndim: int | None = None
    size: int | None = None
    itemsize: int | None = None
    #: Bytes of the elements side by side.
    nbytes: int | None = None
    #: Address of the first element; on a device with handles, the handle.
    data_ptr: int | None = None
    byte_offset: int | None = None
    #: The largest power of two, up to 4096, that divides the address.
    alignment: int | None = None
    #: Where the lowest byte is and where the highest one ends. None for no elements.
    span: tuple[int, int] | None = None
    is_c_contiguous: bool | None = None
    is_f_contiguous: bool | None = None
    #: Whether two indices may lead to one element.
    may_overlap: bool | None = None
    flags: int | None = None
    readonly: bool | None = None
    #: The producer says that it made a copy for this import.
    copied: bool | None = None
    #: Elements of less than a byte take one each.
    padded: bool | None = None
    #: Of DLPack, as the producer says it; None by other protocols and in legacy structs.
    version: tuple[int, int] | None = None
    #: What keeps the memory alive.
    owner: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it can be imported."""
        return self.problem is None

    @property
    def spoken(self) -> tuple[str, ...]:
        """The names of the protocols it speaks."""
        return tuple(p.name for p in self.protocols if p.spoken)

    def as_dict(self) -> dict[str, Any]:
        """Every fact by its name, as plain values that `json` can write.

        >>> import json, tenon
        >>> facts = tenon.inspect(b"tenon").as_dict()
        >>> facts["shape"], facts["dtype"], facts["dtype_triple"], facts["device_pair"]
        ([5], 'uint8', [1, 8, 1], [1, 0])
        >>> json.loads(json.dumps(facts)) == facts
        True
        """
        facts = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        facts["dtype_triple"] = None if self.dtype is None else list(self.dtype.triple)
        facts["device_pair"] = None if self.device is None else list(self.device.pair)
        return facts

    def __repr__(self) -> str:
        said = [_cut(self.type if self.capsule is None else self.kind, _LONGEST_NAME)]
        if self.shape is not None:
            said += [f"shape={self.shape}", f"dtype={self.dtype}", f"device={self.device}"]
        if self.rung is not None:
            said.append(f"rung={self.rung!r}")
        if self.problem is not None:
            said.append(f"problem={_cut(self._problem_line(self.problem), _LONGEST_TEXT)!r}")
        return f"tenon.Inspection({', '.join(said)})"

    def __str__(self) -> str:
        rows = [(name, _cut(text, _LONGEST_TEXT)) for name, text in self._rows()]
        width = max(len(name) for name, _ in rows)
        gap = "\n" + " " * (width + 2)
        return "\n".join(f"{name:{width}}  {text.replace(chr(10), gap)}".rstrip() for name, text in rows)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
            f"<td style='text-align:left;white-space:pre-wrap'>{escape(_cut(text, _LONGEST_TEXT))}</td></tr>"
            for name, text in self._rows()
        )
        return f"<table>{rows}</table>"

    def _problem_line(self, problem: str) -> str:
        return self.headline or problem.partition("\n")[0]

    def _rows(self) -> Iterator[tuple[str, str]]:
        """What there is to tell, line by line."""
        yield "type", self.type
        if self.kind != "array":
            yield "kind", self.kind
        if self.problem is not None:
            yield "problem", self._problem_line(self.problem)
        if self.shape is not None:
            yield from self._tensor_rows()
        if self.struct is not None:
            given = self.struct._asdict()
            pointers = ("address", "manager_ctx", "deleter", "data", "shape", "strides")
            yield (
                "struct",
                "\n".join(
                    f"{name} {value:#x}" if name in pointers else f"{name} {value}"
                    for name, value in given.items()
                    if value is not None
                ),
            )
        if self.table is not None:
            said = ["version " + _dotted(self.table.version), *self.table.functions]
            yield "table", "\n".join(said + ([self.table.problem] if self.table.problem else []))
        if self.protocols:
            known = [p for p in self.protocols if p.spoken or p.problem]
            yield "protocols", "\n".join(map(_line_of, known)) or "none"
        if self.tried:
            lines = (f"{r.name}: {r.answer}" + (f", {r.reason}" if r.reason else "") for r in self.tried)
            yield "rungs", "\n".join(lines)
        for note in self.notes:
            yield "note", note

    def _tensor_rows(self) -> Iterator[tuple[str, str]]:
        assert self.dtype is not None and self.data_ptr is not None
        layouts = {"C": self.is_c_contiguous, "F": self.is_f_contiguous}
        marks = {
            "read-only": self.readonly,
            "copied": self.copied,
            "padded": self.padded,
            "elements may overlap": self.may_overlap,
        }
        code, bits, lanes = self.dtype.triple
        yield "shape", f"{self.shape}"
        yield "strides", f"{self.strides}"
        yield "contiguous", ", ".join(name for name, yes in layouts.items() if yes) or "no"
        yield "dtype", f"{self.dtype} (code {code}, {bits} bits, {lanes} {'lane' if lanes == 1 else 'lanes'})"
        yield "device", f"{self.device}"
        yield "size", f"{self.size} elements, {self.nbytes} bytes"
        yield "address", f"{self.data_ptr:#x}" + (f", aligned to {self.alignment}" if self.alignment else "")
        if self.span is not None:
            yield "span", f"{self.span[0]:#x} to {self.span[1]:#x}, {self.span[1] - self.span[0]} bytes"
        yield "flags", ", ".join(name for name, yes in marks.items() if yes) or "none"
        if self.version is not None:
            yield "DLPack", _dotted(self.version)
        if self.owner is not None:
            yield "owner", self.owner


def inspect(obj: object, /) -> Inspection:
    """Every fact of an array, a buffer or a capsule, without using it up.

    What cannot be imported is no exception here: `problem` says why, and `tried` what each protocol answered.
    The object is asked as an import would ask it, so its `__dlpack__` may be called; what it hands out is let
    go of at once. A capsule is only read, through the same checks as an import, and stays as it was.

    >>> import tenon
    >>> seen = tenon.inspect(memoryview(b"0123456789")[::-2])
    >>> seen.rung, seen.shape, seen.strides, seen.readonly, seen.is_c_contiguous
    ('buffer protocol', (5,), (-2,), True, False)
    >>> capsule = tenon.asdlpack(b"tenon").__dlpack__(max_version=(1, 3))
    >>> tenon.inspect(capsule)
    tenon.Inspection(DLPack capsule, versioned, shape=(5,), dtype=uint8, device=cpu, rung='DLPack capsule')
    >>> bytes(tenon.asdlpack(capsule))
    b'tenon'
    >>> tenon.inspect(capsule).problem
    'the capsule has been consumed already; a capsule can be imported once; ask the producer for a new one'
    >>> tenon.inspect("text").spoken
    ()

    ``print(tenon.inspect(obj))`` shows all of it.
    """
    with one_level("inspections"):
        return _inspect(obj)


def _inspect(obj: object) -> Inspection:
    if _is_capsule(obj):
        return _inspect_capsule(obj)
    if issubclass(type(obj), type):  # and not isinstance(), which believes what an object says of itself
        named = _type_name(cast(type, obj))
        return Inspection(
            type=_type_name(type(obj)),
            kind="class",
            problem=f"the class '{named}' is no array; pass an instance of it",
        )
    return _inspect_object(obj)


# --- objects ----------------------------------------------------------------------------------------


def _inspect_object(obj: object) -> Inspection:
    name = _type_name(type(obj))
    itself = type(obj) is _core.Tensor
    table, table_problem = _asked(_core.inspect_table, obj)
    table = None if table is None else Table(*table)
    protocols = tuple(_protocols(obj, table, table_problem))
    facts, tried, refusal = _core.inspect_object(obj)
    rungs = tuple(Rung(*r) for r in tried)
    problem = None if refusal is None else _text_of(refusal)
    headline = None if refusal is None else _headline_of(refusal)
    refusal = None  # its traceback holds the frames of the producer
    notes = []
    if any(r.name == "__dlpack__" and r.answer != "absent" for r in rungs):
        notes.append("its __dlpack__ was called, as an import calls it, and what it returned was let go of")
    if any(r.name == "Arrow" and r.answer != "absent" for r in rungs):
        notes.append("it was asked by Arrow, as an import asks it: a stream that can be had only once is used up")
    if facts is not None and facts["flags"] & COPIED:
        notes.append("the producer made a copy for this look, and makes another for every import")
    if {r.answer for r in rungs} == {"absent"} and any(p.name == "__array__" and p.spoken for p in protocols):
        notes.append("it has __array__: numpy.asarray(obj), which may copy, can be imported")
    if itself:
        taken: str | None = "itself"
        rungs = (Rung("itself", "taken", "a tenon.Tensor is handed back as it is"),)
    else:
        taken = next((r.name for r in rungs if r.answer == "taken"), None)
    return Inspection(
        type=name,
        kind="tenon.Tensor" if itself else "array" if problem is None else "object",
        problem=problem,
        headline=headline,
        notes=(*notes, *_notes_on(facts)),
        protocols=protocols,
        rung=taken,
        tried=rungs,
        table=table,
        **_facts(facts),
    )


def _protocols(obj: Any, table: Table | None, table_problem: str | None) -> Iterator[Protocol]:
    """Every protocol, each asked for once; what an attribute raises is its problem."""
    usable = table is not None and table.problem is None
    yield Protocol(
        "C exchange table",
        usable,
        says="version " + _dotted(table.version) if usable and table is not None else None,
        problem=table_problem if table is None else table.problem,
    )
    by_type, type_problem = _asked(_core.inspect_type, obj)
    has_numpy_struct, has_buffer = by_type or (False, False)
    yield Protocol("NumPy struct", has_numpy_struct, problem=type_problem)
    yield _dlpack(obj)
    yield _mapping(obj, "__cuda_array_interface__")
    yield Protocol("buffer protocol", has_buffer)
    yield _mapping(obj, "__array_interface__")
    yield _attribute(obj, "__array_struct__", _is_capsule, "it is not a capsule")
    for name in ("__array__", *_ARROW):
        yield _attribute(obj, name, callable, "it cannot be called")


def _attribute(obj: Any, name: str, fits: Any, otherwise: str) -> Protocol:
    value, problem = _asked(lambda o: getattr(o, name, None), obj)
    if value is None:
        return Protocol(name, False, problem=problem)
    return Protocol(name, True) if fits(value) else Protocol(name, False, problem=otherwise)


def _dlpack(obj: Any) -> Protocol:
    found = _attribute(obj, "__dlpack__", callable, "it cannot be called")
    if not found.spoken:
        return found
    ask, problem = _asked(lambda o: getattr(o, "__dlpack_device__", None), obj)
    if ask is None:
        return found._replace(says=None if problem else "no __dlpack_device__", problem=problem)
    place, problem = _asked(lambda method: _stated_device(method()), ask)
    return found._replace(
        says=None if problem else f"device {place}", problem=problem and f"__dlpack_device__: {problem}"
    )


def _stated_device(answer: object) -> device_type:
    if not issubclass(type(answer), tuple):
        raise TypeError("it did not return a pair of integers")
    return device_type(answer)


def _mapping(obj: Any, name: str) -> Protocol:
    value, problem = _asked(lambda o: getattr(o, name, None), obj)
    if value is None:
        return Protocol(name, False, problem=problem)
    if not issubclass(type(value), dict):
        return Protocol(name, False, problem="it is not a dictionary")
    version, _ = _asked(lambda mapping: dict.get(mapping, "version"), value)
    return Protocol(name, True, says=f"version {version}" if type(version) is int else None)


# --- capsules ---------------------------------------------------------------------------------------


def _inspect_capsule(obj: object) -> Inspection:
    name, has_destructor, struct, unreadable = _core.inspect_capsule(obj)
    kind = "capsule without a name" if name is None else _CAPSULES.get(name, f"capsule named {name!r}")
    known = Inspection(type=_type_name(type(obj)), kind=kind, capsule=name)
    if name == "dlpack_exchange_api":
        table = _core.inspect_table(obj)
        problem = "it holds functions and no tensor; pass an instance of the class that publishes it"
        return dataclasses.replace(known, problem=problem, table=None if table is None else Table(*table))
    if name in ("used_dltensor", "used_dltensor_versioned"):
        problem = (
            "the capsule has been consumed already; a capsule can be imported once; ask the producer for a new one"
        )
        return dataclasses.replace(known, problem=problem, used=True)
    if name not in ("dltensor", "dltensor_versioned"):
        problem = f"{kind}: no DLPack capsule; expected the name 'dltensor' or 'dltensor_versioned'"
        return dataclasses.replace(known, problem=problem)
    notes = []
    if not has_destructor:
        notes.append("the capsule has no destructor: its struct leaks unless it is imported, or is another's already")
    found = None
    if struct is not None:
        tensor = struct.pop("tensor")
        found = Struct(**struct, **(tensor or {}))
        if not found.deleter:
            notes.append("the struct has no deleter: its producer does not hear when the memory is no longer used")
        if found.strides == 0 and found.ndim:
            notes.append("the struct's strides are null: they are row-major")
    known = dataclasses.replace(
        known, used=False, struct=found, version=found.version if found else None, notes=tuple(notes)
    )
    if unreadable is not None:
        return dataclasses.replace(known, problem=unreadable)
    facts, tried, refusal = _core.inspect_object(obj)
    rungs = tuple(Rung(*r) for r in tried)
    return dataclasses.replace(
        known,
        problem=None if refusal is None else _reason_of(rungs) or _text_of(refusal),
        notes=(*notes, *_notes_on(facts, legacy=name == "dltensor")),
        rung=next((r.name for r in rungs if r.answer == "taken"), None),
        tried=rungs,
        **_facts(facts),
    )


# --- facts ------------------------------------------------------------------------------------------


def _facts(found: dict[str, Any] | None) -> dict[str, Any]:
    """The compiled half's facts, as the fields of an Inspection."""
    if found is None:
        return {}
    facts = dict(found)
    low, high = facts.pop("reach")
    is_address = facts.pop("is_address")
    element = dtype_type(facts["dtype"])
    flags, address, size = facts["flags"], facts["data_ptr"], facts["size"]
    padded = bool(flags & PADDED)
    packed = element.bits * element.lanes % 8 != 0 and not padded
    bits = element.bits * element.lanes if packed else 8 * element.itemsize
    there = is_address and bool(size) and bool(address)
    return {
        **facts,
        "dtype": element,
        "device": device_type(facts["device"]),
        "ndim": len(facts["shape"]),
        "alignment": min(address & -address, _PAGE) if there else None,
        "span": (address + low * bits // 8, address - (-(high + 1) * bits // 8)) if there else None,
        "readonly": bool(flags & READ_ONLY),
        "copied": bool(flags & COPIED),
        "padded": padded,
        "owner": _owner(facts["owner"]),
    }


def _owner(found: tuple[str, type | None] | None) -> str | None:
    if found is None:
        return "the capsule"
    kind, kept = found
    if kept is not None:
        return _type_name(kept) if kind == "object" else f"buffer of {_type_name(kept)}"
    return {"struct": "DLPack struct", "arrow": "Arrow array", "buffer": "buffer"}.get(kind, "memory of its own")


def _notes_on(facts: dict[str, Any] | None, legacy: bool = False) -> Iterator[str]:
    if facts is None:
        return
    if legacy:
        yield "a legacy struct cannot say whether it may be written to: it is taken as read-only"
    if not facts["is_address"]:
        yield "the pointer is a handle of the device and no address"


# --- text -------------------------------------------------------------------------------------------


def _is_capsule(obj: object) -> bool:
    return type(obj) is _CAPSULE_TYPE


_CAPSULE_TYPE = type(_core.Tensor.__dlpack_c_exchange_api__)


def _asked(question: Any, obj: object) -> tuple[Any, str | None]:
    """The answer, or why there is none. What is no `Exception` passes."""
    try:
        return question(obj), None
    except Exception as error:
        return None, _text_of(error)


def _text_of(error: BaseException) -> str:
    """Kind and message of an exception, which may be anybody's."""
    kind = _type_name(type(error))
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{kind}: {text}" if text else kind


def _headline_of(error: BaseException) -> str | None:
    """What `_text_of` says without the list of rungs, if there is one."""
    parts = parts_of(error)
    return None if parts is None else f"{_type_name(type(error))}: tenon: {parts[0]}."


def _reason_of(rungs: tuple[Rung, ...]) -> str | None:
    """Why the only rung there is for a capsule refused it."""
    return next((r.reason for r in rungs if r.answer == "refused"), None)


def _type_name(kind: type) -> str:
    """The full name of a class; none of its own code runs."""
    try:
        module = type.__dict__["__module__"].__get__(kind)
    except AttributeError:  # a class whose __module__ has been deleted
        module = None
    name: str = type.__dict__["__qualname__"].__get__(kind)
    return name if type(module) is not str or module == "builtins" else f"{module}.{name}"


# Types and exceptions can say a megabyte; as_dict() has all of it.
_LONGEST_NAME, _LONGEST_TEXT = 100, 4000


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _dotted(version: tuple[int, int] | None) -> str:
    return "unknown" if version is None else ".".join(map(str, version))


def _line_of(p: Protocol) -> str:
    return f"{p.name}" + (f": {p.says}" if p.says else "") + (f": {p.problem}" if p.problem else "")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)  # a dtype or device is more than its name
    if isinstance(value, (Protocol, Rung, Struct, Table)):
        return {name: _plain(item) for name, item in value._asdict().items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
