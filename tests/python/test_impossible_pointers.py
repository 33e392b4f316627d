# tests/python/test_impossible_pointers.py: tables that lose their functions, and pointers that cannot be any: refused, and nothing is read there.
from __future__ import annotations

import ctypes
import platform
import sys

import fakes
import tenon
import tenon_exports
import tenon_probe
from fakes_ctypes import ExchangeTable, Version, new_capsule
from isolation import SANITIZED, isolated, table
from producers import exactly_once, exchange_class, refuse

X86 = platform.machine() == "x86_64"
IMPOSSIBLE = [8, 4088] + ([1 << 56, 1 << 60, 0xFFFF_8000_0000_0000, 0xFFFF_FFFF_FFFF_FFF8] if X86 else [])
ALIGNED = (ctypes.c_int64 * 64)()
ADDRESSES = {**{f"{address:x}": address for address in IMPOSSIBLE}, "an_odd_address": ctypes.addressof(ALIGNED) + 4}


def borrow(obj, **options):
    return tenon_probe.borrow(obj, read=False, **options)


# --- a table that was good once -------------------------------------------------------------------

FUNCTIONS = ("allocate", "own", "to_python", "borrow", "stream")
USES = {
    "asdlpack": (tenon.asdlpack, "own"),
    "borrow": (borrow, "borrow"),
    "borrow_writable": (lambda obj: borrow(obj, writable=True), "own"),
    "like": (lambda obj: tenon_exports.like(tenon_exports.Counter(), obj, shape=(2, 3)), "to_python"),
}


def lose_a_function(use, function):
    act, needed = USES[use]
    published = fakes.Table()
    obj = exchange_class(published)()

    def attempt():
        try:
            act(obj)
        except BufferError as error:
            assert "fakes: never" in str(error), error  # the fake makes no objects

    attempt()
    held = ExchangeTable.from_address(published.address)
    setattr(held, function, None)
    if function == needed and function != "borrow":  # that one may be missing, and then memory is owned for a while
        refuse(obj, BufferError, "null", act)
    else:
        attempt()
    for name in FUNCTIONS:
        setattr(held, name, None)
    refuse(obj, BufferError, "null", act)


table(globals(), {f"test_F91_table_that_loses_{function}_before_{use}": dict(use=use, function=function)
                  for use in USES for function in FUNCTIONS}, lose_a_function)


@isolated
def test_F91_table_that_is_emptied_by_its_own_function():
    """The borrowed struct is asked for twice when something must be asked of the object in between."""
    published = fakes.Table()

    class Emptying(exchange_class(published)):
        def is_conj(self):
            return False

        def is_neg(self):
            ctypes.memset(published.address + 16, 0, 40)
            return False

        requires_grad = False

    obj = Emptying(shape=(4, 2), strides=(4, 2))
    for use in (borrow, tenon.asdlpack):
        try:
            use(obj)
        except BufferError as error:
            assert "null" in str(error)


# --- pointers that cannot be a struct -------------------------------------------------------------

Own = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
Allocate = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)


def own_table(address):
    """A class whose table hands this address out for a struct."""
    def give(_, out):
        out[0] = address
        return 0

    def allocate(prototype, out, context, report):
        out[0] = address
        return 0

    functions = Own(give), Allocate(allocate)
    made = ExchangeTable(Version(1, 3), None, *[None] * 5)
    fake = ExchangeTable.from_address(fakes.Table().address)
    made.own = ctypes.cast(functions[0], ctypes.c_void_p).value
    made.allocate = ctypes.cast(functions[1], ctypes.c_void_p).value
    made.to_python, made.borrow = fake.to_python, fake.borrow
    return type("Impossible", (), {"__dlpack_c_exchange_api__": new_capsule(ctypes.addressof(made), b"dlpack_exchange_api"),
                                   "kept": (functions, made), "struct": fakes.Struct(shape=(2, 3))})


def managed_struct_of_a_table(address):
    obj = own_table(address)()
    for act in (tenon.asdlpack, lambda o: borrow(o, writable=True)):
        for _ in range(2):
            refuse(obj, ValueError, "cannot be", act)
    refuse(obj, ValueError, "cannot be", lambda o: tenon_exports.empty_like(o, (2, 3), "float32"))


def managed_struct_in_a_capsule(address):
    for name in (b"dltensor", b"dltensor_versioned"):
        def capsule(name=name):
            return new_capsule(address, name)

        producer = type("Impossible", (), {"__dlpack__": lambda self, **keywords: capsule()})()
        for act in (tenon.asdlpack, borrow):
            refuse(capsule(), ValueError, "cannot be", act)
            refuse(producer, ValueError, "cannot be", act)


def struct_of_arrow(address):
    from arrow_producers import Array

    good = Array()
    for at, name in ((0, b"arrow_schema"), (1, b"arrow_array")):
        class Impossible:
            def __arrow_c_array__(self, requested_schema=None):
                pair = list(good.__arrow_c_array__())
                pair[at] = new_capsule(address, name)
                return tuple(pair)

        refuse(Impossible(), ValueError, "cannot be")

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return new_capsule(address, b"arrow_array_stream")

    refuse(Stream(), ValueError, "cannot be")


for what in (managed_struct_of_a_table, managed_struct_in_a_capsule, struct_of_arrow):
    table(globals(), {f"test_F91_{what.__name__}_at_{name}": dict(address=address)
                      for name, address in ADDRESSES.items()}, what)


# --- functions that cannot be any -----------------------------------------------------------------


def deleter(address):
    """It is never called: what is refused stays with its producer, and what a table gave is left alone."""
    from fakes_ctypes import Deleter, Legacy, Versioned

    for name, kind in ((b"dltensor", Legacy), (b"dltensor_versioned", Versioned)):
        shape, numbers = (ctypes.c_int64 * 1)(6), (ctypes.c_float * 6)()
        struct = kind(deleter=ctypes.cast(address, Deleter))
        if kind is Versioned:
            struct.version = Version(1, 3)
        t = struct.dl_tensor
        t.data, t.ndim, t.shape = ctypes.addressof(numbers), 1, shape
        t.device.device_type, t.dtype.code, t.dtype.bits, t.dtype.lanes = 1, 2, 32, 1
        at = ctypes.addressof(struct)
        refuse(new_capsule(at, name), ValueError, "deleter", tenon.asdlpack)
        refuse(new_capsule(at, name), ValueError, "deleter", borrow)
        if kind is Versioned:
            refuse(own_table(at)(), ValueError, "deleter", tenon.asdlpack)
        struct.deleter = ctypes.cast(None, Deleter)
        assert tenon.asdlpack(new_capsule(at, name)).tolist() == [0.0] * 6


def function_of_a_table(address):
    for function in FUNCTIONS:
        cls = own_table(8)
        setattr(cls.kept[1], function, address)
        for act in (tenon.asdlpack, borrow):
            refuse(cls(), BufferError, "cannot be functions", act)


for what in (deleter, function_of_a_table):
    table(globals(), {f"test_F91_{what.__name__}_at_{address:x}": dict(address=address) for address in IMPOSSIBLE}, what)


# --- a table that is an integer -------------------------------------------------------------------


def integer_table(address):
    return type("Integer", (), {"__c_dlpack_exchange_api__": address})()


def refused_integer(address):
    for act in (tenon.asdlpack, borrow, lambda o: tenon_exports.twin(o)):
        refuse(integer_table(address), (TypeError, BufferError), None, act)


@isolated
def test_F91_integer_that_is_no_table():
    words = (ctypes.c_uint64 * 64)()
    # Shorter than a table: readable, but a sanitizer knows where they end.
    short = () if SANITIZED else (id(words), id({}))
    for address in (0, -1, 1, *IMPOSSIBLE, ctypes.addressof(words), ctypes.addressof(words) + 1, id(object), *short, 2**64,
                    ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value & ~7):
        refused_integer(address)


@isolated
def test_F91_integer_that_begins_like_a_table():
    """Version 1.2, and then whatever: addresses of data, small numbers, text."""
    memory = ctypes.create_string_buffer(4096)
    somewhere = ctypes.addressof(memory) + 256
    for functions in ([somewhere] * 5, [8] * 5, [0x4141_4141_4141_4141] * 5, [0, somewhere, 0, 0, 0],
                      [id(object)] * 5, [2**64 - 8] * 5):
        ExchangeTable.from_address(ctypes.addressof(memory)).version = Version(1, 2)
        for name, value in zip(FUNCTIONS, functions):
            setattr(ExchangeTable.from_address(ctypes.addressof(memory)), name, value)
        if sys.platform == "linux":
            refuse(integer_table(ctypes.addressof(memory)), BufferError, "cannot be functions")
            refuse(integer_table(ctypes.addressof(memory)), BufferError, "cannot be functions", borrow)


@isolated
def test_F91_integer_that_is_a_table_of_callbacks():
    """Functions that ctypes makes at run time are in no library, and functions all the same."""
    cls = own_table(8)
    _, made = cls.kept
    refuse(integer_table(ctypes.addressof(made)), ValueError, "cannot be a managed struct")


@isolated
def test_F91_integer_that_is_a_table():
    published = fakes.Table()
    obj = exchange_class(attribute="__c_dlpack_exchange_api__", value=published.address)()
    with exactly_once(obj.struct):
        assert tenon.asdlpack(obj).shape == (2, 3)
