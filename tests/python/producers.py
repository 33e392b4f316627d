# tests/python/producers.py: fake producers as Python sees them, and the check that each was released exactly once.
from __future__ import annotations

import contextlib
import gc

import fakes
import pytest
import tenon

CPU = (1, 0)
CUDA = (2, 0)
CUDA_HOST = (3, 0)
ROCM = (10, 0)
FLOAT32 = (2, 32, 1)

READ_ONLY, IS_COPIED, SUBBYTE_PADDED = 1, 2, 4

# A pointer that must never be followed: canonical, aligned, and nothing is mapped there.
NOWHERE = 0x7F00_0000_0000


@contextlib.contextmanager
def exactly_once(*fake_producers, exports: int | None = 1):
    """Everything the producers handed out is given back by the end of the block, and nothing twice.

    ``exports`` is how often each is to hand something out; None leaves that open.
    """
    yield
    gc.collect()
    for fake in fake_producers:
        if exports is not None:
            assert fake.exports == exports, f"handed out {fake.exports} times, not {exports}"
        wanted = fake.exports if fake.has_deleter else 0
        assert fake.releases == wanted, f"handed out {fake.exports}, released {fake.releases} times"
        assert not fake.had_error, "released with an exception pending"


class Seen:
    """What a Tensor said, without keeping it."""

    NAMES = ("shape", "strides", "dtype", "device", "ndim", "size", "nbytes", "itemsize", "data_ptr", "readonly",
             "is_contiguous", "flags", "version")

    def __init__(self, tensor):
        for name in self.NAMES:
            setattr(self, name, getattr(tensor, name))


def take(obj, **options) -> Seen:
    """Imports, looks, lets go."""
    return Seen(tenon.asdlpack(obj, **options))


def refuse(obj, exception=BufferError, match: str | None = None, importer=None, **options) -> str:
    """The import must raise exactly this; returns the message, and keeps nothing alive."""
    with pytest.raises(exception, match=match) as caught:
        (importer or tenon.asdlpack)(obj, **options)
    text = str(caught.value)
    caught.value.__traceback__ = None  # its frames hold the producer's capsule
    caught.value.__context__ = None
    return text


class Producer:
    """`__dlpack__` over the structs it is given fields for; remembers every call.

    The class knows every keyword; subclasses know fewer, or raise.
    """

    def __init__(self, said_device=None, **fields):
        fields.setdefault("shape", (2, 3))
        self.struct = fakes.Struct(**fields)
        self.said_device = said_device or tuple(fields.get("device", CPU))
        self.calls: list[dict] = []
        self.device_calls = 0

    def __dlpack_device__(self):
        self.device_calls += 1
        return self.said_device

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.answer(**keywords)

    def answer(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.struct.capsule()


class Ancient(Producer):
    """Of 2021: knows `stream` alone, answers with a legacy struct."""

    def __init__(self, said_device=None, **fields):
        super().__init__(said_device, versioned=False, **fields)

    def answer(self, *, stream=None):
        return self.struct.capsule()


class Cached(Producer):
    """Makes one capsule and hands it out again and again."""

    def answer(self, **keywords):
        if not hasattr(self, "capsule"):
            self.capsule = self.struct.capsule()
        return self.capsule


def raising(exception, **methods) -> object:
    """An object of a new class whose `__dlpack__` raises this very exception; counts the calls."""

    class Raises:
        calls = 0

        def __dlpack__(self, **keywords):
            type(self).calls += 1
            raise exception

        def __dlpack_device__(self):
            return CPU

    return Raises()


def exchange_class(table=None, *, attribute="__dlpack_c_exchange_api__", value=None, bases=(), **members):
    """A new class that publishes a table; its instances carry the struct the table's functions look for."""
    published = value if value is not None else (table or fakes.Table()).capsule()

    def __init__(self, **fields):
        fields.setdefault("shape", (2, 3))
        self.struct = fakes.Struct(**fields)

    return type("Exchanged", bases, {attribute: published, "__init__": __init__, **members})
