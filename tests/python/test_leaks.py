# tests/python/test_leaks.py: round trips out and in again, by the thousand here and by the million in `make test-leaks`: nothing grows.
from __future__ import annotations

import ctypes
import pickle

import pytest
import tenon
import tenon_exports
from arrow_producers import Array, Device, Stream, list_schema, lists, numbers
from growth import ALLOWED_BLOCKS, ROUNDS, grows
from isolation import SANITIZED

COUNTER = tenon_exports.Counter()
KEPT = tenon_exports.produce(COUNTER)
MATRIX = tenon_exports.Matrix(4, 4)
LINE = tenon_exports.produce(COUNTER, shape=(6,))
TAKEN = tenon.asdlpack(KEPT)
ADDRESS = TAKEN.data_ptr


def produce():
    return tenon_exports.produce(COUNTER)


def through_numpy(out):
    numpy = pytest.importorskip("numpy")
    return {
        "from_dlpack": lambda: numpy.from_dlpack(produce()),
        "asarray": lambda: numpy.asarray(produce()),
        "like": lambda: tenon_exports.like(COUNTER, out),
        "there_and_back": lambda: tenon.asdlpack(numpy.from_dlpack(tenon.asdlpack(out))),
        "empty_like": lambda: tenon_exports.empty_like(out, (2, 2), "float32"),
        "to": lambda: TAKEN.to("numpy"),
        "explained": lambda: tenon.explain(out, "numpy"),
    }


def pickled_out_of_band():
    buffers: list[pickle.PickleBuffer] = []
    pickle.loads(pickle.dumps(TAKEN, 5, buffer_callback=buffers.append), buffers=buffers)


ARROW = {
    "array": Array(),
    "array of lists": Array(lists(3, numbers()), list_schema(3)),
    "device array": Device(),
    "stream": Stream(numbers(length=0), numbers()),
}
ARROW_REFUSED = (Array(numbers(length=-1)), Stream(numbers(), numbers()), Stream(numbers(), next_error=5))


class ArrowOnly:
    def __arrow_c_array__(self, requested_schema=None):
        return LINE.__arrow_c_array__(requested_schema)


def ways() -> dict:
    found = {
        "produce": produce,
        "versioned, never used": lambda: tenon_exports.versioned(COUNTER),
        "legacy, never used": lambda: tenon_exports.legacy(COUNTER),
        "versioned, used": lambda: tenon.asdlpack(tenon_exports.versioned(COUNTER)),
        "legacy, used": lambda: tenon.asdlpack(tenon_exports.legacy(COUNTER)),
        "object, again and again": lambda: tenon.asdlpack(KEPT.__dlpack__(max_version=(1, 3))),
        "object, by its table": lambda: tenon.asdlpack(KEPT),
        "object, as a buffer": lambda: memoryview(KEPT),
        "object, by its interface": lambda: KEPT.__array_interface__,
        "object, copied": lambda: tenon.asdlpack(KEPT.__dlpack__(max_version=(1, 3), copy=True)),
        "object, by Arrow, never used": lambda: LINE.__arrow_c_array__(),
        "object, by Arrow on a device, never used": lambda: LINE.__arrow_c_device_array__(),
        "object, by Arrow, used": lambda: tenon.asdlpack(ArrowOnly()),
        **{f"arrow, {name}": lambda producer=producer: tenon.asdlpack(producer) for name, producer in ARROW.items()},
        "class, by its table": lambda: tenon.asdlpack(MATRIX),
        "class, as a buffer": lambda: memoryview(MATRIX),
        "memory inside the object": lambda: tenon_exports.inline_object(COUNTER),
        "no library": lambda: tenon_exports.empty_like(None, (3,), "float64"),
        "by its address": lambda: memoryview(tenon.from_pointer(ADDRESS, (2, 3), "float32", owner=object())),
        "by its address, with a deleter": lambda: tenon.from_pointer(ADDRESS, 6, "float32", deleter=hash),
        "pickled": lambda: pickle.loads(pickle.dumps(TAKEN, 5)),
        "pickled out of band": pickled_out_of_band,
        "values": lambda: (TAKEN.tolist(), repr(TAKEN), TAKEN.dtype, TAKEN.device),
    }
    try:
        import numpy

        out = numpy.ones((2, 3), numpy.float32)
        found |= {f"numpy, {name}": step for name, step in through_numpy(out).items()}
    except ImportError:
        pass
    try:
        import torch

        t = torch.ones(2, 3)
        found |= {
            "torch, from_dlpack": lambda: torch.from_dlpack(produce()),
            "torch, like": lambda: tenon_exports.like(COUNTER, t),
            "torch, there and back": lambda: tenon_exports.there_and_back(t),
            "torch, to": lambda: TAKEN.to("torch"),
            "torch, empty_like": lambda: tenon_exports.empty_like(t, (2, 2), "float32"),
        }
    except ImportError:
        pass
    return found


WAYS = ways()


def refused():
    """A refusal must not cost anything either."""
    for attempt in (lambda: tenon.from_pointer(ADDRESS, (2, -3), "float32", deleter=hash),
                    lambda: tenon_exports.legacy(COUNTER, readonly=True),
                    lambda: tenon_exports.produce(COUNTER, shape=(-1,)),
                    lambda: KEPT.__dlpack__(dl_device=(2, 0), copy=False),
                    lambda: KEPT.__dlpack__(stream="junk"),
                    lambda: KEPT.__arrow_c_array__(),
                    lambda: LINE.__arrow_c_array__("junk"),
                    *(lambda producer=producer: tenon.asdlpack(producer) for producer in ARROW_REFUSED)):
        try:
            attempt()
        except (BufferError, TypeError):
            continue
        raise AssertionError("not refused")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc's mallinfo2")
@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps freed memory back, and looks for leaks itself")
@pytest.mark.parametrize("way", [*WAYS, "refused"])
def test_nothing_grows(way):
    step = WAYS.get(way, refused)
    owed = COUNTER.exports - COUNTER.releases
    blocks, grown = grows(step, ROUNDS)
    # One that leaks leaks in every round; the allowance is for what goes on beside it.
    assert abs(blocks) <= ALLOWED_BLOCKS, f"{blocks} Python blocks in {ROUNDS} rounds"
    assert grown <= 64 << 10, f"{grown} bytes in {ROUNDS} rounds"
    assert COUNTER.exports - COUNTER.releases == owed, "something was handed out and not released"


@pytest.mark.skipif(SANITIZED, reason="Python's blocks are not counted under the sanitizer")
def test_a_leak_would_be_seen():
    kept = []
    blocks, _ = grows(lambda: kept.append(produce()), 2000)
    assert blocks >= 2000 - ALLOWED_BLOCKS
