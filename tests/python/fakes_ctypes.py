# tests/python/fakes_ctypes.py: DLPack structs and capsules with ctypes alone: built as a producer without a compiler would, and taken apart.
from __future__ import annotations

import ctypes


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("dl_tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", Deleter)]


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", Tensor),
    ]


class ExchangeTable(ctypes.Structure):
    """The functions as addresses: whoever calls one says how."""

    _fields_ = [("version", Version), ("prev_api", ctypes.c_void_p)] + [
        (name, ctypes.c_void_p) for name in ("allocate", "own", "to_python", "borrow", "stream")]


assert (ctypes.sizeof(Tensor), ctypes.sizeof(Legacy), ctypes.sizeof(Versioned)) == (48, 64, 80)
assert ctypes.sizeof(ExchangeTable) == 56

Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.PyDLL(None)  # not ctypes.pythonapi: libraries set types on its functions, and they are everybody's
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, Destructor]
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_get_name = _api.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_set_name = _api.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_void_p]
_set_destructor = _api.PyCapsule_SetDestructor
_set_destructor.argtypes = [ctypes.py_object, ctypes.c_void_p]

STRUCTS = {b"dltensor": Legacy, b"dltensor_versioned": Versioned}
# A capsule keeps the pointer of its name: these live for ever.
USED = {name: ctypes.create_string_buffer(b"used_" + name) for name in STRUCTS}


def new_capsule(address, name: bytes):
    """A capsule that lets go of nothing; `name` must live as long, as a literal does."""
    return _new(ctypes.cast(address, ctypes.c_void_p), name, Destructor())


def name_of(capsule) -> bytes:
    return _get_name(capsule)


def opened(capsule) -> Legacy | Versioned:
    """The struct in a capsule nobody has taken, where it lies."""
    name = _get_name(capsule)
    return STRUCTS[name].from_address(_get_pointer(capsule, name))


def consumed(capsule, by="rename") -> Legacy | Versioned:
    """The struct, taken over as consumers do: renamed, the destructor taken off, or both. Its deleter is left to do."""
    name, managed = _get_name(capsule), opened(capsule)
    if by in ("rename", "both"):
        _set_name(capsule, ctypes.addressof(USED[name]))
    if by in ("destructor", "both"):
        _set_destructor(capsule, None)
    return managed


def release(managed) -> None:
    """Runs the deleter on this thread, which lets go of the GIL for it."""
    managed.deleter(ctypes.addressof(managed))


def release_on_native_thread(managed) -> None:
    """Runs the deleter on a thread that Python knows nothing of, and waits for its end without the GIL."""
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, managed.deleter, ctypes.byref(managed)) == 0
    assert libc.pthread_join(thread, None) == 0


def described(tensor: Tensor) -> dict:
    """What a struct says, as Python values; `strides` None when there are none."""
    axes = range(tensor.ndim)
    return dict(
        data=tensor.data, device=(tensor.device.device_type, tensor.device.device_id),
        dtype=(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), byte_offset=tensor.byte_offset,
        shape=tuple(tensor.shape[i] for i in axes),
        strides=tuple(tensor.strides[i] for i in axes) if tensor.strides else None,
    )


def table_of(cls) -> ExchangeTable:
    """The exchange table a class publishes."""
    return ExchangeTable.from_address(_get_pointer(cls.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


class CtypesProducer:
    """A producer of int32 values that counts its exports and releases; `versioned` says which struct it hands out."""

    has_deleter = True
    had_error = False

    def __init__(self, values=(1, 2, 3, 4, 5, 6), shape=(2, 3), strides=None, versioned=True, flags=0, minor=3):
        self.memory = (ctypes.c_int32 * len(values))(*values)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.exports = self.releases = 0
        self.structs = []  # alive as long as the producer: a second release must find them
        self.versioned = versioned
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.deleter = Deleter(self._release)
        self.destructor = Destructor(self._destroy)
        self.flags, self.minor = flags, minor

    def _release(self, _):
        self.releases += 1

    def _destroy(self, capsule):
        if _is_valid(capsule, self.name):
            self._release(None)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        managed = (Versioned if self.versioned else Legacy)()
        if self.versioned:
            managed.version = Version(1, self.minor)
            managed.flags = self.flags
        managed.deleter = self.deleter
        managed.dl_tensor = Tensor(
            data=ctypes.addressof(self.memory),
            device=Device(1, 0),
            ndim=len(self.shape),
            dtype=DataType(0, 32, 1),
            shape=ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            strides=ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)) if self.strides else None,
        )
        self.exports += 1
        self.structs.append(managed)
        return _new(ctypes.addressof(managed), self.name, self.destructor)
