# tests/python/arrow_producers.py: fake producers of Arrow's interfaces as Python sees them, and their structs as ctypes sees them.
from __future__ import annotations

import ctypes
import struct

import fake_arrow

#: Arrow format -> (name of the dtype, letter of the struct module)
FORMATS = {
    "c": ("int8", "b"), "s": ("int16", "h"), "i": ("int32", "i"), "l": ("int64", "q"), "C": ("uint8", "B"),
    "S": ("uint16", "H"), "I": ("uint32", "I"), "L": ("uint64", "Q"), "e": ("float16", "e"), "f": ("float32", "f"),
    "g": ("float64", "d"),
}


def pack(format: str, values) -> bytes:
    values = list(values)
    return struct.pack(f"={len(values)}{FORMATS[format][1]}", *values)


def numbers(format: str = "i", count: int = 6, **fields) -> dict:
    """The fields of an array 0, 1, 2, ...; the offset is taken from its length."""
    return {"length": count - fields.get("offset", 0), "buffers": [None, pack(format, range(count))], **fields}


def lists(size: int, child: dict, **fields) -> dict:
    """The fields of an array of fixed-size lists of the child's values."""
    return {"length": child["length"] // size, "buffers": [None], "children": [child], **fields}


def list_schema(size: int, child: dict | str = "i", **fields) -> dict:
    return {"format": f"+w:{size}", "children": [child if isinstance(child, dict) else {"format": child}], **fields}


def bitmap(text: str) -> bytes:
    """Bits as they are written from the first item on: "1101"."""
    return sum(1 << i for i, bit in enumerate(text) if bit == "1").to_bytes(len(text) // 8 + 1, "little")


class Base:
    """Hands out new structs at every call, and counts them."""

    def __init__(self, array=None, schema=None):
        self.struct = fake_arrow.Arrow()
        self.array = numbers() if array is None else array
        self.schema = {"format": "i"} if schema is None else schema
        self.calls: list[str] = []

    def called(self, name: str) -> None:
        if len(self.calls) < 10:  # enough for any test to look at
            self.calls.append(name)

    def pair(self):
        return self.struct.schema(**self.schema), self.struct.array(**self.array)


class Array(Base):
    def __arrow_c_array__(self, requested_schema=None):
        self.called("array")
        return self.pair()


class Device(Base):
    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        assert not kwargs
        self.called("device_array")
        return self.struct.schema(**self.schema), self.struct.device_array(**self.array)


class Stream(Base):
    """`chunks` and what else a stream is made of."""

    def __init__(self, *chunks, schema=None, **fields):
        super().__init__(schema=schema)
        self.chunks, self.fields = chunks, fields

    def __arrow_c_stream__(self, requested_schema=None):
        self.called("stream")
        return self.struct.stream(schema=self.schema, chunks=self.chunks, **self.fields)


class Given:
    """Gives an object that is there already, whatever it is. `struct` counts what is in it."""

    def __init__(self, answer, struct=None):
        self.answer, self.struct = answer, struct


class Answer(Given):
    def __arrow_c_array__(self, requested_schema=None):
        return self.answer


class DeviceAnswer(Given):
    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.answer


class StreamAnswer(Given):
    def __arrow_c_stream__(self, requested_schema=None):
        return self.answer


def prepared(producer) -> Given:
    """One that gives what this producer gives, made beforehand."""
    for method, cls in (("array", Answer), ("device_array", DeviceAnswer), ("stream", StreamAnswer)):
        if hasattr(producer, f"__arrow_c_{method}__"):
            return cls(getattr(producer, f"__arrow_c_{method}__")(), producer.struct)
    raise AssertionError("no producer")


# --- the structs a consumer is given ----------------------------------------------------------------


class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class ArrayStruct(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class DeviceArray(ctypes.Structure):
    _fields_ = [("array", ArrayStruct), ("device_id", ctypes.c_int64), ("device_type", ctypes.c_int32),
                ("sync_event", ctypes.c_void_p), ("reserved", ctypes.c_int64 * 3)]


assert (ctypes.sizeof(Schema), ctypes.sizeof(ArrayStruct), ctypes.sizeof(DeviceArray)) == (72, 80, 128)

_pointer_of = ctypes.PyDLL(None).PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
STRUCTS = {b"arrow_schema": Schema, b"arrow_array": ArrayStruct, b"arrow_device_array": DeviceArray}
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # without the GIL, as a consumer in C++ calls it


def opened(capsule):
    """The struct as it lies in the capsule: for as long as that is held."""
    name = repr(capsule).split('"')[1].encode()
    made = STRUCTS[name].from_address(_pointer_of(capsule, name))
    made.capsule = capsule
    return made


def moved(struct):
    """The struct, moved out as a consumer does: the source is marked as released."""
    inner = struct.array if isinstance(struct, DeviceArray) else struct
    copied = type(inner).from_buffer_copy(inner)
    inner.release = None
    return copied


def release(struct) -> None:
    """Calls its release, which marks it."""
    _Release(struct.release)(ctypes.addressof(struct))
    assert struct.release is None, "a released struct says so"
